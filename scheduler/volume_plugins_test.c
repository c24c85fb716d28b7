/* VolumeRestrictions, VolumeZone, NodeVolumeLimits and SchedulingGates, as tables. */
#include "codec/atoms.h"
#include "scheduler/storage_testing.h"

/* A pod with these volumes, on a node. */
static struct placed *pod_on(struct world *w, const char *node, const char *name, const char *volumes)
{
	struct placed *p = world_pod(w, node, arena_printf(&w->arena, "{'metadata':{'namespace':'d','name':'%s','uid':'%s'},'spec':{'nodeName':'%s',"
							   "'volumes':[%s]}}", name, name, node, volumes).p);
	storage_pod_placed(w->storage, p->pod->val);
	return p;
}

static str answers(struct world *w, const char *volumes)
{
	return world_filter(w, arena_printf(&w->arena, "{'metadata':{'namespace':'d','name':'p','uid':'p'},'spec':{'volumes':[%s]}}", volumes).p);
}

#define CLAIM(name) "{'name':'v','persistentVolumeClaim':{'claimName':'" name "'}}"

TEST(scheduling_gates)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct cycle c = { .arena = &a, .pod = testing_typed(&a, TYPE(core_v1, Pod), "{'spec':{'schedulingGates':[{'name':'a/b'},{'name':'c'}]}}") };
	CHECK_INT(plugin_scheduling_gates.pre_enqueue(&c), UNRESOLVABLE);
	CHECK_STR(c.reason, "waiting for scheduling gates: [a/b c]");
	c.pod = testing_typed(&a, TYPE(core_v1, Pod), "{'metadata':{'uid':'u'}}");
	CHECK_INT(plugin_scheduling_gates.pre_enqueue(&c), FIT);
	CHECK(plugin_scheduling_gates.hint(&c, c.pod, EV_POD_GATES, VAL_EMPTY, c.pod));
	CHECK(!plugin_scheduling_gates.hint(&c, c.pod, EV_POD_GATES, VAL_EMPTY, VAL_EMPTY_OBJECT));
}

TEST(volume_restrictions_disks)
{
	static const struct { const char *mine, *other; bool conflict; } t[] = {
		{ "{'gcePersistentDisk':{'pdName':'a'}}", "{'gcePersistentDisk':{'pdName':'a'}}", true },
		{ "{'gcePersistentDisk':{'pdName':'a'}}", "{'gcePersistentDisk':{'pdName':'b'}}", false },
		{ "{'gcePersistentDisk':{'pdName':'a','readOnly':true}}", "{'gcePersistentDisk':{'pdName':'a','readOnly':true}}", false },
		{ "{'gcePersistentDisk':{'pdName':'a','readOnly':true}}", "{'gcePersistentDisk':{'pdName':'a'}}", true },
		{ "{'awsElasticBlockStore':{'volumeID':'a','readOnly':true}}", "{'awsElasticBlockStore':{'volumeID':'a','readOnly':true}}", true },
		{ "{'iscsi':{'targetPortal':'x','iqn':'a','lun':0}}", "{'iscsi':{'targetPortal':'y','iqn':'a','lun':1}}", true },
		{ "{'rbd':{'monitors':['m','n'],'pool':'p','image':'i'}}", "{'rbd':{'monitors':['n'],'pool':'p','image':'i'}}", true },
		{ "{'rbd':{'monitors':['m'],'pool':'p','image':'i'}}", "{'rbd':{'monitors':['n'],'pool':'p','image':'i'}}", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		storage_world_init(&w, &plugin_volume_restrictions);
		(void)world_node(&w, "{'metadata':{'name':'n1'}}");
		(void)world_node(&w, "{'metadata':{'name':'n2'}}");
		(void)pod_on(&w, "n1", "o", t[i].other);
		CHECK_STR_ROW(i, answers(&w, t[i].mine), t[i].conflict ? "n1: UNSCHEDULABLE node(s) had no available disk, n2: FIT" : "n1: FIT, n2: FIT");
		CHECK_STR_ROW(i, answers(&w, "{'emptyDir':{}}"), "skip");
		storage_world_done(&w);
	}
}

TEST(volume_restrictions_one_pod)
{
	struct world w;
	storage_world_init(&w, &plugin_volume_restrictions);
	uint32_t n1 = world_node(&w, "{'metadata':{'name':'n1'}}");
	(void)world_node(&w, "{'metadata':{'name':'n2'}}");
	CHECK_STR(answers(&w, CLAIM("once")), "UNRESOLVABLE persistentvolumeclaim \"once\" not found");
	store(&w, STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'once'},'spec':{'accessModes':['ReadWriteOncePod']}}");
	store(&w, STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'many'},'spec':{'accessModes':['ReadWriteMany']}}");
	CHECK_STR(answers(&w, CLAIM("once")), "skip");
	struct placed *p = pod_on(&w, "n1", "o", CLAIM("once") "," CLAIM("many"));
	CHECK_STR(answers(&w, CLAIM("many")), "skip");
	CHECK_STR(answers(&w, CLAIM("once")), "n1: UNSCHEDULABLE node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
		  "in-use by another pod, n2: UNSCHEDULABLE node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use "
		  "by another pod");
	/* Preemption: without that pod it fits. */
	struct cycle c = world_cycle(&w, "{'metadata':{'namespace':'d','name':'p'},'spec':{'volumes':[" CLAIM("once") "]}}");
	void *own;
	bool skip;
	CHECK_INT(plugin_volume_restrictions.pre_filter(&c, &own, &skip), FIT);
	plugin_volume_restrictions.remove_pod(&c, own, p, n1);
	CHECK_INT(plugin_volume_restrictions.filter(&c, own, n1), FIT);
	plugin_volume_restrictions.add_pod(&c, own, p, n1);
	CHECK_INT(plugin_volume_restrictions.filter(&c, own, n1), UNSCHEDULABLE);
	CHECK(plugin_volume_restrictions.hint(&c, c.pod, EV_POD_DELETE, p->pod->val, VAL_EMPTY));
	storage_pod_gone(w.storage, p->pod->val);
	CHECK_STR(answers(&w, CLAIM("once")), "skip");
	storage_world_done(&w);
}

TEST(volume_zone)
{
	struct world w;
	storage_world_init(&w, &plugin_volume_zone);
	(void)world_node(&w, "{'metadata':{'name':'a','labels':{'topology.kubernetes.io/zone':'z1'}}}");
	(void)world_node(&w, "{'metadata':{'name':'b','labels':{'failure-domain.beta.kubernetes.io/zone':'z2'}}}");
	(void)world_node(&w, "{'metadata':{'name':'c'}}");
	store(&w, STORAGE_VOLUME, "{'metadata':{'name':'v1','labels':{'topology.kubernetes.io/zone':'z1'}}}");
	store(&w, STORAGE_VOLUME, "{'metadata':{'name':'v2','labels':{'failure-domain.beta.kubernetes.io/zone':'z1__z2'}}}");
	store(&w, STORAGE_VOLUME, "{'metadata':{'name':'v3'}}");
	store(&w, STORAGE_VOLUME, "{'metadata':{'name':'v4','labels':{'topology.kubernetes.io/zone':'z1__'}}}");
	store(&w, STORAGE_CLASS, "{'metadata':{'name':'wait'},'provisioner':'p','volumeBindingMode':'WaitForFirstConsumer'}");
	store(&w, STORAGE_CLASS, "{'metadata':{'name':'now'},'provisioner':'p','volumeBindingMode':'Immediate'}");
	static const char *const claims[] = { "'volumeName':'v1'", "'volumeName':'v2'", "'volumeName':'v3'", "'volumeName':'v4'", "'storageClassName':'wait'",
					      "'storageClassName':'now'", "'accessModes':['x']", "'volumeName':'gone'", "'storageClassName':'none'" };
	static const char *const wants[] = {
		"a: FIT, b: UNRESOLVABLE node(s) had no available volume zone, c: FIT",
		"a: FIT, b: FIT, c: FIT",
		"skip", "skip", "skip",
		"UNRESOLVABLE PersistentVolume had no name",
		"UNRESOLVABLE PersistentVolumeClaim had no pv name and storageClass name",
		"UNRESOLVABLE persistentvolume \"gone\" not found",
		"UNRESOLVABLE storageclass.storage.k8s.io \"none\" not found",
	};
	for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
		store(&w, STORAGE_CLAIM, arena_printf(&w.arena, "{'metadata':{'namespace':'d','name':'c%zu'},'spec':{%s}}", i, claims[i]).p);
		str volume = arena_printf(&w.arena, "{'name':'v','persistentVolumeClaim':{'claimName':'c%zu'}}", i);
		CHECK_STR_ROW(i, answers(&w, volume.p), wants[i]);
	}
	CHECK_STR(answers(&w, CLAIM("nobody")), "UNRESOLVABLE persistentvolumeclaim \"nobody\" not found");
	storage_world_done(&w);
}

static void bound_claim(struct world *w, const char *name)
{
	store(w, STORAGE_VOLUME, arena_printf(&w->arena, "{'metadata':{'name':'pv-%s'},'spec':{'csi':{'driver':'csi.x','volumeHandle':'h-%s'}}}", name, name).p);
	store(w, STORAGE_CLAIM, arena_printf(&w->arena, "{'metadata':{'namespace':'d','name':'%s'},'spec':{'volumeName':'pv-%s'}}", name, name).p);
}

TEST(node_volume_limits)
{
	struct world w;
	storage_world_init(&w, &plugin_node_volume_limits);
	(void)world_node(&w, "{'metadata':{'name':'n1'}}");
	(void)world_node(&w, "{'metadata':{'name':'n2'}}");
	store(&w, STORAGE_CSI_NODE, "{'metadata':{'name':'n1'},'spec':{'drivers':[{'name':'csi.x','nodeID':'n1','allocatable':{'count':2}}]}}");
	for (const char *const *name = (const char *const[]){ "a", "b", "c", NULL }; *name; name++)
		bound_claim(&w, *name);
	store(&w, STORAGE_CLASS, "{'metadata':{'name':'x'},'provisioner':'csi.x','volumeBindingMode':'WaitForFirstConsumer'}");
	store(&w, STORAGE_CLAIM, "{'metadata':{'namespace':'d','name':'later'},'spec':{'storageClassName':'x'}}");
	CHECK_STR(answers(&w, "{'emptyDir':{}}"), "skip");
	CHECK_STR(answers(&w, CLAIM("a")), "n1: FIT, n2: FIT");
	CHECK_STR(answers(&w, CLAIM("a") "," CLAIM("b") "," CLAIM("c")), "n1: UNSCHEDULABLE node(s) exceed max volume count, n2: FIT");
	CHECK_STR(answers(&w, CLAIM("nobody")), "n1: UNRESOLVABLE looking up PVC d/nobody: persistentvolumeclaim \"nobody\" not found, "
		  "n2: UNRESOLVABLE looking up PVC d/nobody: persistentvolumeclaim \"nobody\" not found");
	(void)pod_on(&w, "n1", "o1", CLAIM("a"));
	(void)pod_on(&w, "n1", "o2", CLAIM("a"));
	CHECK_STR(answers(&w, CLAIM("a") "," CLAIM("later")), "n1: FIT, n2: FIT");
	CHECK_STR(answers(&w, CLAIM("b") "," CLAIM("later")), "n1: UNSCHEDULABLE node(s) exceed max volume count, n2: FIT");
	/* Attached, and used by no pod here: counts, but not beside the pod that uses it. */
	store(&w, STORAGE_ATTACHMENT, "{'metadata':{'name':'t1'},'spec':{'attacher':'csi.x','nodeName':'n1','source':{'persistentVolumeName':'pv-a'}}}");
	CHECK_STR(answers(&w, CLAIM("b")), "n1: FIT, n2: FIT");
	store(&w, STORAGE_ATTACHMENT, "{'metadata':{'name':'t2'},'spec':{'attacher':'csi.x','nodeName':'n1','source':{'persistentVolumeName':'pv-c'}}}");
	CHECK_STR(answers(&w, CLAIM("b")), "n1: UNSCHEDULABLE node(s) exceed max volume count, n2: FIT");
	storage_world_done(&w);
}
