/* PodTopologyLabels: a pod that gets a node gets the node's zone and region as labels. */
#include "apiserver/admission/plugins.h"
#include "apiserver/cache.h"
#include "apiserver/meta.h"
#include "codec/atoms.h"

static void copy_labels(struct request *q, str node_name)
{
	static const str names[] = { STR_INIT("topology.kubernetes.io/region"), STR_INIT("topology.kubernetes.io/zone") };
	struct object *node = cache_get(kinds_find(&q->server->kinds, STR_NONE, STR("nodes")), node_name);
	struct val labels = val_get(q->object, metadata, labels), had = labels;
	for (size_t i = 0; node && i < ARRAY_LEN(names); i++) {
		struct val v = val_find(val_get(node->val, metadata, labels), names[i]);
		if (val_exists(v) && !val_equal(v, val_find(labels, names[i])))
			labels = val_put(q->arena, labels, atom_make(q->arena, names[i]), val_copy(q->arena, v));
	}
	if (!val_same(labels, had))
		q->object = meta_put(q->arena, q->object, A_labels, val_sorted(q->arena, labels));
}

static int mutate(struct request *q, struct err *err)
{
	(void)err;
	if (admission_operation(q) != ADMISSION_CREATE || !str_eq(q->resource, STR("pods")) || q->group.n)
		return 0;
	if (!q->subresource.n)
		copy_labels(q, val_str(q->object, spec, nodeName));
	else if (str_eq(q->subresource, STR("binding")) && str_eq(val_str(q->object, target, kind), STR("Node")))
		copy_labels(q, val_str(q->object, target, name));
	return 0;
}

const struct admission_plugin admission_pod_topology_labels = { .name = "PodTopologyLabels", .mutate = mutate };
