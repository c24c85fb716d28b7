/* What VolumeBinding and DynamicResources write when a node has been chosen, and what they wait for. */
#include "base/clock.h"
#include "base/fiber_test.h"
#include "client/fake_test.h"
#include "codec/atoms.h"
#include "scheduler/devices.h"
#include "scheduler/scheduler_priv.h"
#include "scheduler/storage_testing.h"
#include "scheduler/volume_binding.h"

struct binding_world {
	struct world w;
	struct fake fake;
	struct cycle c;
	void *state[1];
	uint32_t node;
	struct err err;
};

static void begin(struct binding_world *b, const struct plugin *plugin)
{
	*b = (struct binding_world){ .err = ERR_INIT };
	fake_clock(0);
	fake_init(&b->fake);
	storage_world_init(&b->w, plugin);
	b->w.devices = device_table_new(&b->fake.client, NULL);
	b->w.storage->client = &b->fake.client;
	b->node = world_node(&b->w, "{'metadata':{'name':'a','labels':{'kubernetes.io/hostname':'a'}}}");
}

static void end(struct binding_world *b)
{
	device_table_free(b->w.devices);
	storage_world_done(&b->w);
	fake_done(&b->fake);
	clock_virtual_off();
}

/* The server has it, and has told. */
static void serve(struct binding_world *b, struct copies *copies, const struct type *type, const char *quoted)
{
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	CHECK_INT(client_create(&b->fake.client, type, world_object(&b->w, type, quoted), NULL, &answer, &b->err), 0);
	copies_put(copies, answer);
}

static void serve_claim(struct binding_world *b, const char *quoted)
{
	serve(b, &b->w.storage->kinds[STORAGE_CLAIM], TYPE(core_v1, PersistentVolumeClaim), quoted);
}

/* What the server has now is told, changed by others in this way (a merge patch) before. */
static void tell(struct binding_world *b, struct copies *copies, const struct type *type, const char *namespace, const char *name, const char *patch)
{
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	CHECK_INT(client_patch(&b->fake.client, type, str_of(namespace), str_of(name), CLIENT_PATCH_MERGE, testing_tree(&b->w.arena, patch), NULL, &answer,
			       &b->err), 0);
	copies_put(copies, answer);
}

static int run_pre_bind(void *arg)
{
	struct binding_world *b = arg;
	return b->w.plugin->pre_bind(&b->c, b->node, &b->err);
}

/* The pod has its node; pre_bind runs on a fiber, which waits now or has ended. */
static struct fiber *bind_pod(struct binding_world *b, const char *pod)
{
	bool skip;
	b->c = world_cycle(&b->w, pod);
	b->c.state = b->state;
	CHECK_INT(b->w.plugin->pre_filter(&b->c, &b->state[0], &skip), FIT);
	CHECK_INT(b->w.plugin->filter(&b->c, b->state[0], b->node), FIT);
	CHECK_INT(b->w.plugin->reserve(&b->c, b->node), FIT);
	(void)fake_log(&b->fake, &b->w.arena);
	struct fiber *f = start(run_pre_bind, b);
	fiber_settle();
	return f;
}

#define POD "{'metadata':{'namespace':'d','name':'p','uid':'up'},'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c'}}]}}"
#define CLAIM "{'metadata':{'namespace':'d','name':'c','uid':'uc'},'spec':{'accessModes':['ReadWriteOnce'],'storageClassName':'wait'}}"
#define BOUND "{'metadata':{'annotations':{'pv.kubernetes.io/bind-completed':'yes'}},'spec':{'volumeName':'v'}}"

static void waiting_class(struct binding_world *b)
{
	store(&b->w, STORAGE_CLASS, "{'metadata':{'name':'wait'},'provisioner':'p','volumeBindingMode':'WaitForFirstConsumer'}");
}

FIBER_TEST(volume_binding_writes_volumes)
{
	struct binding_world b;
	begin(&b, &plugin_volume_binding);
	waiting_class(&b);
	serve_claim(&b, CLAIM);
	struct copies *volumes = &b.w.storage->kinds[STORAGE_VOLUME], *claims = &b.w.storage->kinds[STORAGE_CLAIM];
	serve(&b, volumes, TYPE(core_v1, PersistentVolume), "{'metadata':{'name':'v'},'spec':{'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteOnce'],"
	      "'storageClassName':'wait'},'status':{'phase':'Available'}}");
	struct fiber *f = bind_pod(&b, POD);
	CHECK_STR(fake_log(&b.fake, &b.w.arena), "update /api/v1/persistentvolumes/v\n");
	CHECK_STR(val_str(fake_get(&b.fake, "persistentvolumes//v")->val, spec, claimRef, uid), "uc");
	/* The claim is bound before the volume is told: not enough. */
	tell(&b, claims, TYPE(core_v1, PersistentVolumeClaim), "d", "c", BOUND);
	fiber_settle();
	CHECK(b.w.storage->changed.waiters.next != &b.w.storage->changed.waiters);
	tell(&b, volumes, TYPE(core_v1, PersistentVolume), "", "v", "{'status':{'phase':'Bound'}}");
	CHECK_INT(join(f), 0);
	end(&b);
}

FIBER_TEST(volume_binding_asks_for_volumes)
{
	static const struct { const char *claim, *error; } t[] = {
		{ BOUND, "" },
		{ "{'metadata':{'annotations':{'volume.kubernetes.io/selected-node':null,'x':'y'}}}", "binding volumes: provisioning failed for PVC \"c\"" },
		{ "{'metadata':{'annotations':null}}", "binding volumes: selectedNode annotation reset for PVC \"c\"" },
		{ NULL, "binding volumes: context deadline exceeded" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct binding_world b;
		begin(&b, &plugin_volume_binding);
		waiting_class(&b);
		serve_claim(&b, CLAIM);
		struct fiber *f = bind_pod(&b, POD);
		CHECK_STR_ROW(i, fake_log(&b.fake, &b.w.arena), "update /api/v1/namespaces/d/persistentvolumeclaims/c\n");
		CHECK_STR_ROW(i, val_as_str(val_find(val_get(fake_get(&b.fake, "persistentvolumeclaims/d/c")->val, metadata, annotations),
						     STR(SELECTED_NODE_ANNOTATION))), "a");
		store(&b.w, STORAGE_VOLUME, "{'metadata':{'name':'v'}}");
		if (t[i].claim)
			tell(&b, &b.w.storage->kinds[STORAGE_CLAIM], TYPE(core_v1, PersistentVolumeClaim), "d", "c", t[i].claim);
		else
			clock_virtual_advance(600 * NS_PER_S);
		int r = join(f);
		CHECK_ROW(i, (r < 0) == (t[i].error[0] != '\0'));
		CHECK_STR_ROW(i, r < 0 ? err_str(&b.err) : STR(""), t[i].error);
		end(&b);
	}
}

#define DEVICE_POD "{'metadata':{'namespace':'d','name':'p','uid':'up'},'spec':{'resourceClaims':[{'name':'r','resourceClaimName':'c'}]}}"

static void begin_devices(struct binding_world *b)
{
	begin(b, &plugin_dynamic_resources);
	serve(b, &b->w.devices->classes, TYPE(resource_v1, DeviceClass), "{'metadata':{'name':'gpu'}}");
	serve(b, &b->w.devices->slices, TYPE(resource_v1, ResourceSlice), "{'metadata':{'name':'s'},'spec':{'driver':'x','pool':{'name':'a','generation':1,"
	      "'resourceSliceCount':1},'nodeName':'a','devices':[{'name':'d1'}]}}");
	serve(b, &b->w.devices->claims, TYPE(resource_v1, ResourceClaim), "{'metadata':{'namespace':'d','name':'c','uid':'uc'},'spec':{'devices':{'requests':"
	      "[{'name':'q','exactly':{'deviceClassName':'gpu','allocationMode':'ExactCount','count':1}}]}}}");
}

FIBER_TEST(dynamic_resources_writes_claims)
{
	struct binding_world b;
	begin_devices(&b);
	struct fiber *f = bind_pod(&b, DEVICE_POD);
	CHECK_INT(join(f), 0);
	CHECK_STR(fake_log(&b.fake, &b.w.arena), "update /apis/resource.k8s.io/v1/namespaces/d/resourceclaims/c\n"
		  "update /apis/resource.k8s.io/v1/namespaces/d/resourceclaims/c/status\n");
	struct val claim = fake_get(&b.fake, "resourceclaims/d/c")->val;
	CHECK_STR(testing_text(&b.w.arena, val_get(claim, metadata, finalizers)), "['resource.kubernetes.io/delete-protection']");
	CHECK_STR(testing_text(&b.w.arena, val_get(claim, status)),
		  "{'allocation':{'devices':{'results':[{'request':'q','driver':'x','pool':'a','device':'d1'}]},'nodeSelector':{'nodeSelectorTerms':[{'matchFields':"
		  "[{'key':'metadata.name','operator':'In','values':['a']}]}]},'allocationTimestamp':'1970-01-01T00:00:00Z'},"
		  "'reservedFor':[{'resource':'pods','name':'p','uid':'up'}]}");
	/* The device is taken though the informer has not told yet, and nothing is in flight any more. */
	CHECK(!devices_flying(b.w.devices, STR("uc")));
	devices_refresh(b.w.devices);
	const struct device_use *use = devices_use(b.w.devices, b.w.devices->all[0], STR("d1"));
	CHECK(use && use->alone);
	end(&b);
}

FIBER_TEST(dynamic_resources_after_others)
{
	struct binding_world b;
	begin_devices(&b);
	/* Somebody changes a label meanwhile: tried again with the newer claim. */
	CHECK_INT(client_patch(&b.fake.client, TYPE(resource_v1, ResourceClaim), STR("d"), STR("c"), CLIENT_PATCH_MERGE,
			       testing_tree(&b.w.arena, "{'metadata':{'labels':{'x':'y'}}}"), NULL, NULL, &b.err), 0);
	struct fiber *f = bind_pod(&b, DEVICE_POD);
	clock_virtual_advance(NS_PER_S);
	CHECK_INT(join(f), 0);
	CHECK_STR(val_as_str(val_find(val_get(fake_get(&b.fake, "resourceclaims/d/c")->val, metadata, labels), STR("x"))), "y");
	end(&b);

	/* Somebody else has allocated it. */
	begin_devices(&b);
	CHECK_INT(client_patch(&b.fake.client, TYPE(resource_v1, ResourceClaim), STR("d"), STR("c"), CLIENT_PATCH_MERGE,
			       testing_tree(&b.w.arena, "{'status':{'allocation':{}}}"), NULL, NULL, &b.err), 0);
	f = bind_pod(&b, DEVICE_POD);
	clock_virtual_advance(NS_PER_S);
	CHECK(join(f) < 0);
	CHECK_STR(err_str(&b.err), "claim d/c got allocated elsewhere in the meantime");
	CHECK(devices_flying(b.w.devices, STR("uc")));
	b.w.plugin->unreserve(&b.c, b.node);
	CHECK(!devices_flying(b.w.devices, STR("uc")));
	end(&b);
}

static bool always(void *arg, struct queued *q, unsigned event, struct val old, struct val new)
{
	(void)arg, (void)q, (void)old, (void)new;
	return event == EV_CLAIM;
}

/* Devices that nobody has written down yet are free again: pods that wait for them hear of it from nobody else. */
FIBER_TEST(dynamic_resources_unreserve_wakes_others)
{
	struct binding_world b;
	bool skip;
	begin_devices(&b);
	struct scheduler *s = ARENA_NEW(&b.w.arena, struct scheduler);
	s->queue = sched_queue_new(&(struct sched_queue_options){ .backoff_first_ms = 1000, .backoff_max_ms = 10000, .helps = always });
	CLEANUP(frozen_unrefp) struct frozen *other = val_freeze(world_object(&b.w, TYPE(core_v1, Pod), "{'metadata':{'name':'o','uid':'uo'}}"));
	sched_queue_put(s->queue, other);
	sched_queue_refused(s->queue, sched_queue_try(s->queue), 1);
	CHECK_INT(sched_queue_length(s->queue, "unschedulable"), 1);

	b.c = world_cycle(&b.w, DEVICE_POD);
	b.c.state = b.state;
	b.c.scheduler = s;
	CHECK_INT(b.w.plugin->pre_filter(&b.c, &b.state[0], &skip), FIT);
	CHECK_INT(b.w.plugin->reserve(&b.c, b.node), FIT);
	b.w.plugin->unreserve(&b.c, b.node);
	CHECK_INT(sched_queue_length(s->queue, "unschedulable"), 0);
	sched_queue_free(s->queue);
	end(&b);
}

#define DEVICE_STATUS(type) "{'status':{'devices':[{'driver':'x','pool':'a','device':'d1','conditions':[{'type':'" type "','status':'True','reason':'r','message':'m'}]}]}}"

FIBER_TEST(dynamic_resources_waits_for_devices)
{
	static const struct { const char *told, *error; } t[] = {
		{ DEVICE_STATUS("ready"), "" },
		{ DEVICE_STATUS("broken"), "device binding failed: claim=c, reason=r, message=\"m\"" },
		{ NULL, "device binding timeout: context deadline exceeded" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct binding_world b;
		begin_devices(&b);
		serve(&b, &b.w.devices->slices, TYPE(resource_v1, ResourceSlice), "{'metadata':{'name':'s2'},'spec':{'driver':'x','pool':{'name':'a','generation':2,"
		      "'resourceSliceCount':1},'nodeName':'a','devices':[{'name':'d1','bindingConditions':['ready'],'bindingFailureConditions':['broken']}]}}");
		struct fiber *f = bind_pod(&b, DEVICE_POD);
		CHECK_ROW(i, val_has(fake_get(&b.fake, "resourceclaims/d/c")->val, status, allocation));
		CHECK_ROW(i, b.w.devices->claims_changed.waiters.next != &b.w.devices->claims_changed.waiters);
		if (t[i].told)
			tell(&b, &b.w.devices->claims, TYPE(resource_v1, ResourceClaim), "d", "c", t[i].told);
		else
			clock_virtual_advance(606 * NS_PER_S);
		int r = join(f);
		CHECK_ROW(i, (r < 0) == (t[i].error[0] != '\0'));
		CHECK_STR_ROW(i, r < 0 ? err_str(&b.err) : STR(""), t[i].error);
		b.w.plugin->unreserve(&b.c, b.node);
		end(&b);
	}
}

#define RESOURCE_POD "{'metadata':{'namespace':'d','name':'p','uid':'up'},'spec':{'containers':[{'name':'c','resources':{'requests':{'x.example/gpu':'1'}}}]}}"

FIBER_TEST(dynamic_resources_makes_claims_for_resources)
{
	struct binding_world b;
	begin_devices(&b);
	serve(&b, &b.w.devices->classes, TYPE(resource_v1, DeviceClass), "{'metadata':{'name':'card'},'spec':{'extendedResourceName':'x.example/gpu'}}");
	CHECK_INT(client_create(&b.fake.client, TYPE(core_v1, Pod), world_object(&b.w, TYPE(core_v1, Pod), RESOURCE_POD), NULL, NULL, &b.err), 0);
	(void)fake_log(&b.fake, &b.w.arena);
	struct fiber *f = bind_pod(&b, RESOURCE_POD);
	/* The claim is on the server, but nobody has told of it yet: its device stays taken meanwhile, and the pod waits. */
	CHECK_INT(map_len(&b.w.devices->flights), 1);
	struct frozen *made = fake_get(&b.fake, "resourceclaims/d/p-extended-resources-1");
	copies_put(&b.w.devices->claims, made);
	clock_virtual_advance(NS_PER_S);
	CHECK_INT(join(f), 0);
	CHECK_INT(map_len(&b.w.devices->flights), 0);
	const struct frozen *claim = copies_get(&b.w.devices->claims, STR("d/p-extended-resources-1"));
	CHECK_STR(testing_text(&b.w.arena, val_get(claim->val, status, reservedFor)), "[{'resource':'pods','name':'p','uid':'up'}]");
	CHECK_STR(val_str(val_at(val_get(claim->val, status, allocation, devices, results), 0), device), "d1");
	CHECK_STR(testing_text(&b.w.arena, val_get(fake_get(&b.fake, "pods/d/p")->val, status, extendedResourceClaimStatus, requestMappings)),
		  "[{'containerName':'c','requestName':'container-0-request-0','resourceName':'x.example/gpu'}]");
	end(&b);
}
