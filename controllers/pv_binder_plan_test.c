#include "controllers/pv_binder_plan.h"

#include "controllers/labels.h"
#include "controllers/plan_testing.h"
#include "controllers/protection.h"

#define CLAIM(meta, spec) "{'metadata':{'name':'c','namespace':'ns','uid':'u1'" meta "},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'500Mi'}}" spec "}}"
#define VOLUME(name, size, modes, more) "{'metadata':{'name':'" name "'},'spec':{'capacity':{'storage':'" size "'},'accessModes':[" modes "],'storageClassName':'m'" more "},'status':{'phase':'Available'}}"
#define REF(name, uid) ",'claimRef':{'namespace':'ns','name':'" name "','uid':'" uid "'}"
#define BOUND ",'annotations':{'pv.kubernetes.io/bind-completed':'yes','pv.kubernetes.io/bound-by-controller':'yes'}"
#define RWO "'ReadWriteOnce'"

/* In the table ' stands for ", where a text has that. */
static str single_quoted(struct arena *a, str text)
{
	str copy = arena_str(a, text);

	for (size_t i = 0; i < copy.n; i++)
		if (copy.p[i] == '"')
			((char *)copy.p)[i] = '\'';
	return copy;
}

TEST(claim_steps)
{
	static const struct {
		const char *claim, *volumes, *class, *default_class, *pods;
		enum claim_step step;
		const char *volume, *reason, *message;
	} t[] = {
		{ CLAIM("", ",'storageClassName':'m'"), "[" VOLUME("big", "5Gi", RWO, "") "," VOLUME("fits", "1Gi", RWO, "") "," VOLUME("small", "1Mi", RWO, "") "]", NULL,
		  NULL, NULL, CLAIM_BIND, "fits", NULL, NULL },
		{ CLAIM("", ",'storageClassName':'m'"), "[" VOLUME("many", "1Gi", RWO ",'ReadOnlyMany'", "") "," VOLUME("one", "2Gi", RWO, "") "]", NULL, NULL, NULL,
		  CLAIM_BIND, "one", NULL, NULL },
		{ CLAIM("", ",'storageClassName':'m'"), "[" VOLUME("free", "1Gi", RWO, "") "," VOLUME("meant", "9Gi", RWO, REF("c", "")) "]", NULL, NULL, NULL, CLAIM_BIND,
		  "meant", NULL, NULL },
		{ CLAIM("", ""), "[]", NULL, NULL, NULL, CLAIM_PENDING, NULL, "FailedBinding",
		  "no persistent volumes available for this claim and no storage class is set" },
		{ CLAIM("", ",'storageClassName':''"), "[]", NULL, "{'metadata':{'name':'d'}}", NULL, CLAIM_PENDING, NULL, "FailedBinding",
		  "no persistent volumes available for this claim and no storage class is set" },
		{ CLAIM("", ""), "[]", NULL, "{'metadata':{'name':'d'}}", NULL, CLAIM_SET_CLASS, NULL, NULL, NULL },
		{ CLAIM("", ",'storageClassName':'x'"), "[]", NULL, NULL, NULL, CLAIM_REST, NULL, "ProvisioningFailed", "storageclass.storage.k8s.io 'x' not found" },
		{ CLAIM("", ",'storageClassName':'x'"), "[]", "{'provisioner':'example.test/prov','volumeBindingMode':'Immediate'}", NULL, NULL, CLAIM_PROVISION, NULL,
		  "ExternalProvisioning",
		  "Waiting for a volume to be created either by the external provisioner 'example.test/prov' or manually by the system administrator. If volume "
		  "creation is delayed, please verify that the provisioner is running and correctly registered." },
		{ CLAIM("", ",'storageClassName':'m'"), "[" VOLUME("free", "1Gi", RWO, "") "]", "{'provisioner':'x','volumeBindingMode':'WaitForFirstConsumer'}", NULL, NULL,
		  CLAIM_PENDING, NULL, "WaitForFirstConsumer", "waiting for first consumer to be created before binding" },
		{ CLAIM("", ",'storageClassName':'m'"), "[]", "{'provisioner':'x','volumeBindingMode':'WaitForFirstConsumer'}", NULL, "['a','b']", CLAIM_PENDING, NULL,
		  "WaitForPodScheduled", "waiting for pods a,b to be scheduled" },
		{ CLAIM(",'annotations':{'volume.kubernetes.io/selected-node':'n1'}", ",'storageClassName':'m'"), "[]",
		  "{'provisioner':'e/x','volumeBindingMode':'WaitForFirstConsumer'}", NULL, NULL, CLAIM_PROVISION, NULL, "ExternalProvisioning", NULL },
		{ CLAIM("", ",'volumeName':'v','storageClassName':'m'"), "[]", NULL, NULL, NULL, CLAIM_PENDING, NULL, NULL, NULL },
		{ CLAIM("", ",'volumeName':'v','storageClassName':'m'"), "[" VOLUME("v", "1Mi", RWO, "") "]", NULL, NULL, NULL, CLAIM_PENDING, NULL, "VolumeMismatch",
		  "Cannot bind to requested volume 'v': requested PV is too small" },
		{ CLAIM("", ",'volumeName':'v','storageClassName':'m'"), "[" VOLUME("v", "1Gi", RWO, REF("other", "u9")) "]", NULL, NULL, NULL, CLAIM_PENDING, NULL,
		  "FailedBinding", "volume 'v' already bound to a different claim." },
		{ CLAIM("", ",'volumeName':'v','storageClassName':'m'"), "[" VOLUME("v", "1Gi", RWO, REF("c", "u1")) "]", NULL, NULL, NULL, CLAIM_BIND, "v", NULL, NULL },
		{ CLAIM(BOUND, ",'volumeName':'v'"), "[]", NULL, NULL, NULL, CLAIM_LOST, NULL, "ClaimLost",
		  "Bound claim has lost its PersistentVolume. Data on the volume is lost!" },
		{ CLAIM(BOUND, ",'volumeName':'v'"), "[" VOLUME("v", "1Gi", RWO, REF("c", "u2")) "]", NULL, NULL, NULL, CLAIM_LOST, NULL, "ClaimMisbound",
		  "Two claims are bound to the same volume, this one is bound incorrectly" },
		{ CLAIM(BOUND, ""), "[]", NULL, NULL, NULL, CLAIM_LOST, NULL, "ClaimLost",
		  "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct claim_input in = { .claim = tree(&a, t[i].claim), .volumes = tree(&a, t[i].volumes), .class = t[i].class ? tree(&a, t[i].class) : VAL_EMPTY,
					  .default_class = t[i].default_class ? tree(&a, t[i].default_class) : VAL_EMPTY,
					  .waiting_pods = t[i].pods ? tree(&a, t[i].pods) : VAL_EMPTY };
		struct claim_plan p;

		claim_plan(&a, &in, &p);
		CHECK_ROW(i, p.step == t[i].step);
		CHECK_STR_ROW(i, val_str(p.volume, metadata, name), t[i].volume ? t[i].volume : "");
		CHECK_STR_ROW(i, str_of(p.reason), t[i].reason ? t[i].reason : "");
		if (t[i].message)
			CHECK_STR_ROW(i, single_quoted(&a, p.message), single_quoted(&a, str_of(t[i].message)).p);
	}
}

TEST(claim_and_volume_bound_in_four_writes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val claim = tree(&a, CLAIM("", ",'storageClassName':'m'")), volume = tree(&a, VOLUME("v", "1Gi", RWO, ""));

	volume = volume_bound(&a, volume, claim);
	CHECK_STR(val_str(volume, spec, claimRef, uid), "u1");
	CHECK_STR(annotation_of(volume, STR(PV_BOUND_BY_CONTROLLER)), "yes");
	CHECK(!val_exists(volume_bound(&a, volume, claim)));
	volume = volume_with_phase(&a, volume, "Bound", STR_NONE);
	CHECK(!val_exists(volume_with_phase(&a, volume, "Bound", STR_NONE)));
	claim = claim_bound(&a, claim, volume);
	CHECK_STR(val_str(claim, spec, volumeName), "v");
	CHECK_STR(annotation_of(claim, STR(PV_BIND_COMPLETED)), "yes");
	CHECK_STR(annotation_of(claim, STR(PV_BOUND_BY_CONTROLLER)), "yes");
	CHECK(!val_exists(claim_bound(&a, claim, volume)));
	claim = claim_with_phase(&a, claim, "Bound", volume);
	CHECK_STR(tree_text(&a, val_get(claim, status)), "{'phase':'Bound','accessModes':['ReadWriteOnce'],'capacity':{'storage':'1Gi'}}");
	CHECK(!val_exists(claim_with_phase(&a, claim, "Bound", volume)));

	volume = volume_unbound(&a, volume);
	CHECK(!val_has(volume, spec, claimRef));
	CHECK(!annotation_has(volume, STR(PV_BOUND_BY_CONTROLLER)));
	struct val own = volume_unbound(&a, tree(&a, VOLUME("v", "1Gi", RWO, REF("c", "u1")))); /* the user has chosen: the name stays */
	CHECK(val_has(own, spec, claimRef, name) && !val_has(own, spec, claimRef, uid));
}

TEST(volume_steps)
{
	static const struct {
		const char *volume, *claim;
		enum volume_step want;
	} t[] = {
		{ "{}", NULL, VOLUME_AVAILABLE },
		{ "{'spec':{'claimRef':{'name':'c'}}}", NULL, VOLUME_AVAILABLE },
		{ "{'spec':{'claimRef':{'name':'c','uid':'u1'}}}", NULL, VOLUME_RELEASED },
		{ "{'spec':{'claimRef':{'name':'c','uid':'u1'}}}", "{'metadata':{'uid':'u2'}}", VOLUME_RELEASED },
		{ "{'spec':{'claimRef':{'name':'c','uid':'u1'}}}", "{'metadata':{'uid':'u1'}}", VOLUME_LOOK_AT_CLAIM },
		{ "{'spec':{'volumeMode':'Block','claimRef':{'name':'c','uid':'u1'}}}", "{'metadata':{'uid':'u1'}}", VOLUME_MISMATCH },
		{ "{'metadata':{'name':'v'},'spec':{'claimRef':{'name':'c','uid':'u1'}}}", "{'metadata':{'uid':'u1'},'spec':{'volumeName':'v'}}", VOLUME_BOUND },
		{ "{'metadata':{'name':'v'},'spec':{'claimRef':{'name':'c','uid':'u1'}}}", "{'metadata':{'uid':'u1'},'spec':{'volumeName':'w'}}", VOLUME_UNBIND },
		{ "{'metadata':{'name':'v','annotations':{'pv.kubernetes.io/provisioned-by':'x'}},'spec':{'persistentVolumeReclaimPolicy':'Delete','claimRef':{'name':'c','uid':'u1'}}}",
		  "{'metadata':{'uid':'u1'},'spec':{'volumeName':'w'}}", VOLUME_RELEASED },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, volume_plan(tree(&a, t[i].volume), t[i].claim ? tree(&a, t[i].claim) : VAL_EMPTY) == t[i].want);
}

TEST(volume_reclaim_policies)
{
	static const struct {
		const char *volume;
		enum reclaim_step step;
		const char *message;
	} t[] = {
		{ "{'spec':{'persistentVolumeReclaimPolicy':'Retain'}}", RECLAIM_REST, "" },
		{ "{'spec':{'persistentVolumeReclaimPolicy':'Recycle','hostPath':{'path':'/tmp/x'}}}", RECLAIM_FAIL, "No recycler plugin found for the volume!" },
		{ "{'spec':{'persistentVolumeReclaimPolicy':'Delete','hostPath':{'path':'/tmp/x'}}}", RECLAIM_DELETE, "" },
		{ "{'spec':{'persistentVolumeReclaimPolicy':'Delete','hostPath':{'path':'/data'}}}", RECLAIM_FAIL,
		  "host_path deleter only supports /tmp/.+ but received provided /data" },
		{ "{'spec':{'persistentVolumeReclaimPolicy':'Delete','hostPath':{'path':'/tmp/'}}}", RECLAIM_FAIL,
		  "host_path deleter only supports /tmp/.+ but received provided /tmp/" },
		{ "{'metadata':{'annotations':{'pv.kubernetes.io/provisioned-by':'x'}},'spec':{'persistentVolumeReclaimPolicy':'Delete','csi':{}}}", RECLAIM_REST, "" },
		{ "{'metadata':{'name':'v'},'spec':{'persistentVolumeReclaimPolicy':'Delete','nfs':{}}}", RECLAIM_FAIL,
		  "error getting deleter volume plugin for volume \"v\": no deletable volume plugin matched" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct reclaim_plan p;
		reclaim_plan(&a, tree(&a, t[i].volume), &p);
		CHECK_ROW(i, p.step == t[i].step);
		CHECK_STR_ROW(i, p.message, t[i].message);
	}
}

TEST(default_class_is_the_newest)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val classes = tree(&a, "[{'metadata':{'name':'none','creationTimestamp':'2026-03-01T00:00:00Z'}},"
				      "{'metadata':{'name':'old','creationTimestamp':'2026-01-01T00:00:00Z','annotations':{'storageclass.kubernetes.io/is-default-class':'true'}}},"
				      "{'metadata':{'name':'new','creationTimestamp':'2026-02-01T00:00:00Z','annotations':{'storageclass.beta.kubernetes.io/is-default-class':'true'}}}]");

	CHECK_STR(val_str(default_class(classes), metadata, name), "new");
	CHECK(!val_exists(default_class(VAL_EMPTY_LIST)));
}

TEST(protection_of_what_is_used)
{
	static const struct {
		const char *object;
		bool used;
		enum protection_step want;
	} t[] = {
		{ "{}", false, PROTECTION_ADD },
		{ "{'metadata':{'finalizers':['kubernetes.io/pvc-protection']}}", false, PROTECTION_REST },
		{ "{'metadata':{'deletionTimestamp':'x','finalizers':['kubernetes.io/pvc-protection']}}", true, PROTECTION_REST },
		{ "{'metadata':{'deletionTimestamp':'x','finalizers':['kubernetes.io/pvc-protection']}}", false, PROTECTION_REMOVE },
		{ "{'metadata':{'deletionTimestamp':'x'}}", false, PROTECTION_REST },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, protection_plan(tree(&a, t[i].object), STR(PVC_PROTECTION), t[i].used) == t[i].want);
	CHECK_STR(tree_text(&a, finalizer_remove(&a, tree(&a, "{'metadata':{'finalizers':['a','kubernetes.io/pvc-protection']}}"), STR(PVC_PROTECTION))),
		  "{'metadata':{'finalizers':['a']}}");
}
