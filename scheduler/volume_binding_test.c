#include "scheduler/volume_binding.h"

#include "codec/atoms.h"
#include "scheduler/storage_testing.h"

struct stored { enum storage_kind kind; const char *quoted; };

#define ON_HOST(host) "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'kubernetes.io/hostname','operator':'In','values':['" host "']}]}]}}"
#define VOLUME(name, size, more) \
	{ STORAGE_VOLUME, "{'metadata':{'name':'" name "','resourceVersion':'1'},'spec':{'capacity':{'storage':'" size "'},'accessModes':['ReadWriteOnce']," \
	  "'storageClassName':'wait'," more "},'status':{'phase':'Available'}}" }
#define CLAIM(name, size, more) \
	{ STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'" name "','uid':'u-" name "','resourceVersion':'1'},'spec':{'accessModes':['ReadWriteOnce']," \
	  "'storageClassName':'wait','resources':{'requests':{'storage':'" size "'}}" more "}}" }
#define CLASS(provisioner, more) \
	{ STORAGE_CLASS, "{'metadata':{'name':'wait'},'provisioner':'" provisioner "','volumeBindingMode':'WaitForFirstConsumer'" more "}" }
#define BOUND(name, volume) \
	{ STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'" name "','annotations':{'pv.kubernetes.io/bind-completed':'yes'}},'spec':{'volumeName':'" volume "'}}" }
#define NO_VOLUME "UNRESOLVABLE node(s) didn't find available persistent volumes to bind"

static const struct {
	const char *claims;           /* of the pod, in order */
	struct stored stored[6];
	const char *want;
} rows[] = {
	{ "", { { 0 } }, "skip" },
	{ "c", { { 0 } }, "UNRESOLVABLE persistentvolumeclaim \"c\" not found" },
	{ "c", { { STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'c'},'spec':{'volumeName':'v'},'status':{'phase':'Lost'}}" } },
	  "UNRESOLVABLE persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"v\"" },
	{ "c", { { STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'c','deletionTimestamp':'2026-01-01T00:00:00Z'}}" } },
	  "UNRESOLVABLE persistentvolumeclaim \"c\" is being deleted" },
	{ "c", { { STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'c'}}" } }, "UNRESOLVABLE pod has unbound immediate PersistentVolumeClaims" },
	/* Bound ones. */
	{ "c", { BOUND("c", "v"), VOLUME("v", "1Gi", ON_HOST("a")) }, "a: FIT, b: UNRESOLVABLE node(s) didn't match PersistentVolume's node affinity" },
	{ "c", { BOUND("c", "v"), VOLUME("v", "1Gi", "'volumeMode':'Block'") }, "a: FIT, b: FIT" },
	{ "c", { BOUND("c", "v") }, "a: UNRESOLVABLE node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s), "
	  "b: UNRESOLVABLE node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)" },
	/* Volumes that are there already. */
	{ "c", { CLASS("kubernetes.io/no-provisioner", ""), CLAIM("c", "1Gi", ""), VOLUME("v", "1Gi", ON_HOST("b")) }, "a: " NO_VOLUME ", b: FIT" },
	{ "c", { CLASS("kubernetes.io/no-provisioner", ""), CLAIM("c", "2Gi", ""), VOLUME("v", "1Gi", ON_HOST("b")) }, "a: " NO_VOLUME ", b: " NO_VOLUME },
	{ "c", { CLASS("kubernetes.io/no-provisioner", ""), CLAIM("c", "1Gi", ",'volumeMode':'Block'"), VOLUME("v", "1Gi", ON_HOST("b")) },
	  "a: " NO_VOLUME ", b: " NO_VOLUME },
	{ "c", { CLASS("kubernetes.io/no-provisioner", ""), CLAIM("c", "1Gi", ",'selector':{'matchLabels':{'x':'y'}}"), VOLUME("v", "1Gi", ON_HOST("b")) },
	  "a: " NO_VOLUME ", b: " NO_VOLUME },
	{ "c", { CLASS("kubernetes.io/no-provisioner", ""), CLAIM("c", "1Gi", ""), VOLUME("v", "1Gi", "'claimRef':{'namespace':'d','name':'other'}") },
	  "a: " NO_VOLUME ", b: " NO_VOLUME },
	/* One volume for two claims is not enough; two are. */
	{ "c d", { CLASS("kubernetes.io/no-provisioner", ""), CLAIM("c", "1Gi", ""), CLAIM("d", "1Gi", ""), VOLUME("v", "1Gi", ON_HOST("b")) },
	  "a: " NO_VOLUME ", b: " NO_VOLUME },
	{ "c d", { CLASS("kubernetes.io/no-provisioner", ""), CLAIM("c", "1Gi", ""), CLAIM("d", "1Gi", ""), VOLUME("v", "1Gi", ON_HOST("b")),
	  VOLUME("w", "5Gi", "'volumeMode':'Filesystem'") }, "a: " NO_VOLUME ", b: FIT" },
	/* A volume that names the claim is the only one that will do. */
	{ "c", { CLASS("kubernetes.io/no-provisioner", ""), CLAIM("c", "1Gi", ""), VOLUME("v", "1Gi", ON_HOST("a") ",'claimRef':{'namespace':'d','name':'c'}"),
	  VOLUME("w", "1Gi", ON_HOST("b")) }, "a: FIT, b: " NO_VOLUME },
	/* Volumes that can be made. */
	{ "c", { CLASS("p", ""), CLAIM("c", "1Gi", "") }, "a: FIT, b: FIT" },
	{ "c", { CLASS("p", ",'allowedTopologies':[{'matchLabelExpressions':[{'key':'kubernetes.io/hostname','values':['b','x']}]}]"), CLAIM("c", "1Gi", "") },
	  "a: " NO_VOLUME ", b: FIT" },
	{ "c", { CLASS("p", ""), { STORAGE_CSI_DRIVER, "{'metadata':{'name':'p'},'spec':{'storageCapacity':true}}" }, CLAIM("c", "2Gi", ""),
	  { STORAGE_CAPACITY, "{'metadata':{'namespace':'k','name':'x'},'storageClassName':'wait','capacity':'2Gi','nodeTopology':{'matchLabels':{'kubernetes.io/hostname':'a'}}}" },
	  { STORAGE_CAPACITY, "{'metadata':{'namespace':'k','name':'y'},'storageClassName':'wait','capacity':'9Gi','maximumVolumeSize':'1Gi','nodeTopology':{}}" } },
	  "a: FIT, b: UNRESOLVABLE node(s) did not have enough free storage" },
	/* The node has been chosen before. */
	{ "c", { CLASS("p", ""), { STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'c','annotations':{'volume.kubernetes.io/selected-node':'b'}},"
	  "'spec':{'storageClassName':'wait'}}" } }, "a: " NO_VOLUME ", b: FIT" },
	/* Two reasons. */
	{ "c d", { CLASS("kubernetes.io/no-provisioner", ""), BOUND("c", "v"), CLAIM("d", "1Gi", ""), VOLUME("v", "1Gi", ON_HOST("a") ",'claimRef':{'name':'c'}"),
	  VOLUME("w", "1Gi", ON_HOST("a")) },
	  "a: FIT, b: UNRESOLVABLE node(s) didn't match PersistentVolume's node affinity\nnode(s) didn't find available persistent volumes to bind" },
};

static void begin(struct world *w)
{
	storage_world_init(w, &plugin_volume_binding);
	(void)world_node(w, "{'metadata':{'name':'a','labels':{'kubernetes.io/hostname':'a'}}}");
	(void)world_node(w, "{'metadata':{'name':'b','labels':{'kubernetes.io/hostname':'b'}}}");
}

static const char *pod_with(struct world *w, const char *claims)
{
	str list = STR(""), rest = str_of(claims), one;
	for (bool more = rest.n > 0; more;) {
		more = str_cut(rest, ' ', &one, &rest);
		list = arena_printf(&w->arena, STR_FMT "%s{'name':'" STR_FMT "','persistentVolumeClaim':{'claimName':'" STR_FMT "'}}", STR_ARG(list),
				    list.n ? "," : "", STR_ARG(one), STR_ARG(one));
	}
	return arena_printf(&w->arena, "{'metadata':{'namespace':'d','name':'p','uid':'p'},'spec':{'volumes':[" STR_FMT "]}}", STR_ARG(list)).p;
}

TEST(volume_binding_filter)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct world w;
		begin(&w);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].stored) && rows[i].stored[k].quoted; k++)
			store(&w, rows[i].stored[k].kind, rows[i].stored[k].quoted);
		CHECK_STR_ROW(i, world_filter(&w, pod_with(&w, rows[i].claims)), rows[i].want);
		storage_world_done(&w);
	}
}

TEST(volume_binding_ephemeral)
{
	struct world w;
	const char *pod = "{'metadata':{'namespace':'d','name':'p','uid':'u'},'spec':{'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{}}}]}}";
	begin(&w);
	CHECK_STR(world_filter(&w, pod), "UNRESOLVABLE waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-v\"");
	store(&w, STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'p-v'}}");
	CHECK_STR(world_filter(&w, pod), "UNRESOLVABLE PVC d/p-v was not created for pod d/p (pod is not owner)");
	storage_world_done(&w);
}

static void reserve(struct world *w, struct cycle *c, void **state, uint32_t node)
{
	bool skip;
	c->state = state;
	CHECK_INT(w->plugin->pre_filter(c, &state[0], &skip), FIT);
	CHECK_INT(w->plugin->filter(c, state[0], node), FIT);
	CHECK_INT(w->plugin->reserve(c, node), FIT);
}

TEST(volume_binding_reserve)
{
	static const struct stored stored[] = { CLASS("p", ""), CLAIM("c", "1Gi", ""), CLAIM("d", "2Gi", ""), VOLUME("v", "3Gi", ON_HOST("a")),
						VOLUME("w", "1Gi", ON_HOST("a")) };
	struct world w;
	void *own[1] = { NULL };
	begin(&w);
	for (size_t i = 0; i < ARRAY_LEN(stored); i++)
		store(&w, stored[i].kind, stored[i].quoted);
	uint32_t a = nodes_find(&w.table, STR("a")), b = nodes_find(&w.table, STR("b"));
	struct cycle c = world_cycle(&w, pod_with(&w, "d c"));
	/* The smallest volume for the smallest claim. */
	reserve(&w, &c, own, a);
	CHECK_STR(testing_text(&w.arena, val_get(storage_get(w.storage, STORAGE_VOLUME, STR("w")), spec, claimRef)),
		  "{'kind':'PersistentVolumeClaim','namespace':'d','name':'c','uid':'u-c','apiVersion':'v1','resourceVersion':'1'}");
	CHECK_STR(val_str(storage_get(w.storage, STORAGE_VOLUME, STR("v")), spec, claimRef, name), "d");
	CHECK_STR(val_as_str(val_find(val_get(storage_get(w.storage, STORAGE_VOLUME, STR("v")), metadata, annotations),
				      STR("pv.kubernetes.io/bound-by-controller"))), "yes");
	/* Others cannot have them, until they are given back. */
	store(&w, STORAGE_CLASS, "{'metadata':{'name':'wait'},'provisioner':'kubernetes.io/no-provisioner','volumeBindingMode':'WaitForFirstConsumer'}");
	store(&w, STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'e','uid':'u-e'},'spec':{'storageClassName':'wait'}}");
	CHECK_STR(world_filter(&w, pod_with(&w, "e")), "a: " NO_VOLUME ", b: " NO_VOLUME);
	w.plugin->unreserve(&c, a);
	CHECK(!val_has(storage_get(w.storage, STORAGE_VOLUME, STR("w")), spec, claimRef));
	CHECK_STR(world_filter(&w, pod_with(&w, "e")), "a: FIT, b: " NO_VOLUME);
	/* Made for a node. */
	store(&w, STORAGE_CLASS, "{'metadata':{'name':'wait'},'provisioner':'p','volumeBindingMode':'WaitForFirstConsumer'}");
	struct cycle other = world_cycle(&w, pod_with(&w, "c"));
	reserve(&w, &other, own, b);
	CHECK_STR(val_as_str(val_find(val_get(storage_claim(w.storage, STR("d"), STR("c")), metadata, annotations), STR(SELECTED_NODE_ANNOTATION))), "b");
	w.plugin->unreserve(&other, b);
	CHECK(!val_has(storage_claim(w.storage, STR("d"), STR("c")), metadata, annotations));
	storage_world_done(&w);
}
