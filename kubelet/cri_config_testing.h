/* What the tests of cri_config share, beside what machinery/testing.h has. */
#ifndef C8S_KUBELET_CRI_CONFIG_TESTING_H
#define C8S_KUBELET_CRI_CONFIG_TESTING_H

#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/cri_config_priv.h"
#include "machinery/testing.h"

/* A pod of one container, with what is given of spec, of the container and of metadata (each ends in a comma, or is empty). */
TESTING struct val testing_pod(struct arena *a, const char *spec, const char *container, const char *metadata)
{
	str text = arena_printf(a,
				"{'metadata':{%s'name':'p','namespace':'ns','uid':'u1'},"
				"'spec':{%s'enableServiceLinks':true,'containers':[{%s'name':'c','image':'img'}]}}",
				metadata, spec, container);
	return testing_typed(a, TYPE(core_v1, Pod), text.p);
}

/* The tree's JSON, members in their order, or the error. */
TESTING str testing_shown(struct arena *a, int r, struct val v, const struct err *err)
{
	return r < 0 ? testing_error(a, err) : testing_text(a, v);
}

TESTING struct val testing_container(struct val pod) { return val_at(val_get(pod, spec, containers), 0); }

TESTING struct kubelet_node testing_node(void)
{
	return (struct kubelet_node){
		.name = STR("n1"), .address = STR("192.168.0.7"), .root = STR("/var/lib/kubelet"), .log_root = STR("/var/log/pods"),
		.cluster_domain = STR("cluster.local"), .memory_bytes = 1000 << 20, .cpus_milli = 4000, .pod_pids_limit = -1,
	};
}

#endif
