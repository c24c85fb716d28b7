/* What the tests of cri_config share. JSON is written with ' instead of ". */
#ifndef C8S_KUBELET_CRI_CONFIG_TESTING_H
#define C8S_KUBELET_CRI_CONFIG_TESTING_H

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/cri_config_priv.h"

#define TESTING static __attribute__((noinline, unused))

TESTING str testing_swap(struct arena *a, str text, char from, char to)
{
	str copy = arena_str(a, text);
	for (char *p = (char *)copy.p; *p; p++)
		if (*p == from)
			*p = to;
	return copy;
}

TESTING struct val testing_typed(struct arena *a, const struct type *type, const char *quoted)
{
	struct val v = VAL_EMPTY;
	struct err err = ERR_INIT;

	if (json_decode(a, testing_swap(a, str_of(quoted), '\'', '"'), &(struct json_decode_options){ .type = type }, &v, &err) < 0)
		fail_msg("%s: %s", quoted, err.msg);
	return v;
}

/* A pod of one container, with what is given of spec, of the container and of metadata (each ends in a comma, or is empty). */
TESTING struct val testing_pod(struct arena *a, const char *spec, const char *container, const char *metadata)
{
	str text = arena_printf(a,
				"{'metadata':{%s'name':'p','namespace':'ns','uid':'u1'},"
				"'spec':{%s'enableServiceLinks':true,'containers':[{%s'name':'c','image':'img'}]}}",
				metadata, spec, container);
	return testing_typed(a, TYPE(core_v1, Pod), text.p);
}

TESTING str testing_text(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct err err = ERR_INIT;

	if (json_encode(&b, v, &(struct json_encode_options){ .plain = true }, &err) < 0)
		fail_msg("%s", err.msg);
	return testing_swap(a, buf_str(&b), '"', '\'');
}

/* The tree's JSON, or "! " and the error. */
TESTING str testing_result(struct arena *a, int r, struct val v, const struct err *err)
{
	return r < 0 ? arena_join(a, STR("! "), err_str(err)) : testing_text(a, v);
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
