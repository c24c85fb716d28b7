#include "kubelet/devices_testing.h"

#define TWO "{'devices':[{'ID':'a','health':'Healthy'},{'ID':'b','health':'Healthy'}]}"

static str node_text(struct kubelet_test *k)
{
	struct val capacity, allocatable;

	devices_of_node(k->devices, &k->arena, &capacity, &allocatable);
	return arena_printf(&k->arena, STR_FMT " " STR_FMT, STR_ARG(text_of(&k->arena, capacity)),
			    STR_ARG(text_of(&k->arena, allocatable)));
}

/* A pod whose one container asks for n of v.com/x; it is among the active ones. */
static struct val pod_make(struct kubelet_test *k, const char *uid, int n)
{
	struct val pod = tree(&k->arena, TYPE(core_v1, Pod), arena_printf(&k->arena,
		"{'metadata':{'name':'p-%s','namespace':'ns','uid':'%s'},'spec':{'containers':[{'name':'c','resources':"
		"{'limits':{'cpu':'1','v.com/x':'%d'}}}]}}", uid, uid, n).p);

	k->pods = val_list_append(&k->arena, k->pods, pod);
	return pod;
}

static str allocate(struct kubelet_test *k, struct val pod)
{
	struct err err = ERR_INIT;

	return devices_allocate(k->devices, pod, &err) < 0 ? arena_str(&k->arena, err_str(&err)) : STR("ok");
}

/* What the container at an index is told, and more than that: "env devices cdi annotations mounts". */
static str told(struct kubelet_test *k, struct val pod, struct val container)
{
	struct cri_container_input in = { .pod = pod, .container = container };
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	struct err err = ERR_INIT;
	struct arena *a = &k->arena;
	struct cri_mount *mounts;
	size_t n;

	if (devices_of_container(k->devices, a, &in, &mounts, &n, &err) < 0)
		return arena_str(a, err_str(&err));
	const struct val parts[] = { in.extra_env, in.devices, in.cdi_devices, in.extra_annotations };
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		buf_addf(&b, "%s" STR_FMT, i ? " " : "", STR_ARG(val_exists(parts[i]) ? text_of(a, parts[i]) : STR("-")));
	for (size_t i = 0; i < n; i++)
		buf_addf(&b, " " STR_FMT "=" STR_FMT "%s", STR_ARG(mounts[i].container_path), STR_ARG(mounts[i].host_path),
			 mounts[i].readonly ? ":ro" : "");
	return arena_str(a, buf_str(&b));
}

static str status(struct kubelet_test *k, const char *uid)
{
	struct val v = devices_status(k->devices, &k->arena, str_of(uid), STR("c"));

	return val_exists(v) ? text_of(&k->arena, v) : STR("-");
}

FIBER_TEST(devices_register_refuses)
{
	static const struct {
		const char *request, *error;
	} t[] = {
		{ "{'version':'v1alpha','endpoint':'x.sock','resourceName':'v.com/x'}",
		  "rpc error: code = Unknown desc = requested API version \"v1alpha\" is not supported by kubelet. Supported version is "
		  "[\"v1beta1\"]" },
		{ "{'version':'v1beta1','endpoint':'x.sock','resourceName':'cpu'}",
		  "rpc error: code = Unknown desc = the ResourceName \"cpu\" is invalid" },
		{ "{'version':'v1beta1','endpoint':'x.sock','resourceName':'kubernetes.io/x'}",
		  "rpc error: code = Unknown desc = the ResourceName \"kubernetes.io/x\" is invalid" },
	};
	struct kubelet_test k;

	kubelet_test_init(&k);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, test_ask(&k.arena, test_path(&k, "device-plugins/kubelet.sock"), &rpc_Registration_Register, t[i].request),
			      t[i].error);
	struct plugin_test p = { .fails = "GetDevicePluginOptions" };
	plugin_test_start(&p, &k, "device-plugins/x.sock");
	CHECK_STR(test_ask(&k.arena, test_path(&k, "device-plugins/kubelet.sock"), &rpc_Registration_Register,
			   "{'version':'v1beta1','endpoint':'x.sock','resourceName':'v.com/x'}"),
		  "rpc error: code = Unknown desc = failed to get device plugin options: rpc error: code = Unknown desc = the plugin does "
		  "not want to");
	plugin_test_stop(&p);
	CHECK_STR(node_text(&k), "{} {}");
	kubelet_test_done(&k);
}

FIBER_TEST(devices_of_node_follow_the_plugin)
{
	struct kubelet_test k;
	struct plugin_test p = { .list = TWO };

	kubelet_test_init(&k);
	struct val node = tree(&k.arena, TYPE(core_v1, Node), "{'status':{'allocatable':{'cpu':'2','v.com/x':'2','w.com/x':'1'}}}");
	CHECK(val_same(devices_hide(k.devices, &k.arena, node), node));
	plugin_test_register(&p, &k, "v.com/x");
	CHECK_STR(node_text(&k), "{'v.com/x':'2'} {'v.com/x':'2'}");
	CHECK_STR(text_of(&k.arena, devices_hide(k.devices, &k.arena, node)), "{'status':{'allocatable':{'cpu':'2','w.com/x':'1'}}}");
	unsigned before = k.changed;
	CHECK(before > 0);
	p.sends = 1; /* the same again is no change */
	UNTIL(!p.sends);
	p.list = "{'devices':[{'ID':'a','health':'Healthy'},{'ID':'b','health':'Unhealthy'},{'ID':'c','health':'Healthy'},"
		 "{'ID':'c','health':'Unhealthy'}]}";
	UNTIL(k.changed > before);
	CHECK_INT(k.changed, before + 1);
	CHECK_STR(node_text(&k), "{'v.com/x':'3'} {'v.com/x':'1'}");
	p.list = "{}";
	UNTIL(k.changed > before + 1);
	CHECK_STR(node_text(&k), "{'v.com/x':'0'} {'v.com/x':'0'}");
	plugin_test_stop(&p);
	kubelet_test_done(&k);
}

/* After its end: unhealthy at once, none after five minutes; back when it registers again. */
FIBER_TEST(devices_of_a_plugin_that_ends)
{
	struct kubelet_test k;
	struct plugin_test p = { .list = TWO };

	kubelet_test_init(&k);
	plugin_test_register(&p, &k, "v.com/x");
	struct val pod = pod_make(&k, "u1", 1), late = pod_make(&k, "u2", 1);
	CHECK_STR(allocate(&k, pod), "ok");
	unsigned before = k.changed;
	plugin_test_stop(&p);
	UNTIL(k.changed > before);
	CHECK_STR(node_text(&k), "{'v.com/x':'2'} {'v.com/x':'0'}");
	CHECK_STR(allocate(&k, late),
		  "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices v.com/x, which is unexpected");
	CHECK_STR(status(&k, "u1"), "[{'name':'v.com/x','resources':[{'resourceID':'a','health':'Healthy'}]}]");
	offer_find(k.devices, STR("v.com/x"))->stopped_ns -= 299 * NS_PER_S;
	fiber_cond_signal(&k.devices->stopped);
	(void)fiber_sleep_ms(20, NULL);
	CHECK_STR(node_text(&k), "{'v.com/x':'2'} {'v.com/x':'0'}");
	before = k.changed;
	offer_find(k.devices, STR("v.com/x"))->stopped_ns -= 2 * NS_PER_S;
	fiber_cond_signal(&k.devices->stopped);
	UNTIL(k.changed > before);
	CHECK_STR(node_text(&k), "{'v.com/x':'0'} {'v.com/x':'0'}");
	CHECK_STR(allocate(&k, late), "Allocate failed due to cannot allocate unregistered device v.com/x, which is unexpected");
	plugin_test_register(&p, &k, "v.com/x");
	CHECK_STR(node_text(&k), "{'v.com/x':'2'} {'v.com/x':'2'}");
	CHECK_STR(allocate(&k, late), "ok");
	CHECK_STR(status(&k, "u2"), "[{'name':'v.com/x','resources':[{'resourceID':'b','health':'Healthy'}]}]");
	plugin_test_stop(&p);
	kubelet_test_done(&k);
}

/* A plugin that registers again while its old stream still runs takes its own place. */
FIBER_TEST(devices_of_a_plugin_that_registers_twice)
{
	struct kubelet_test k;
	struct plugin_test p = { .list = TWO }, q = { .list = "{'devices':[{'ID':'z','health':'Healthy'}]}" };

	kubelet_test_init(&k);
	plugin_test_register(&p, &k, "v.com/x");
	plugin_test_start(&q, &k, "device-plugins/other.sock");
	CHECK_STR(test_ask(&k.arena, test_path(&k, "device-plugins/kubelet.sock"), &rpc_Registration_Register,
			   "{'version':'v1beta1','endpoint':'other.sock','resourceName':'v.com/x'}"), "{}");
	unsigned before = k.changed;
	UNTIL(k.changed > before);
	CHECK_STR(node_text(&k), "{'v.com/x':'1'} {'v.com/x':'1'}");
	plugin_test_stop(&p);
	(void)fiber_sleep_ms(20, NULL);
	CHECK_STR(node_text(&k), "{'v.com/x':'1'} {'v.com/x':'1'}");
	plugin_test_stop(&q);
	kubelet_test_done(&k);
}

FIBER_TEST(devices_allocate_and_free)
{
	struct kubelet_test k;
	struct plugin_test p = { .list = TWO, .response =
		"{'containerResponses':[{'envs':{'B':'2','A':'1'},'mounts':[{'containerPath':'/m','hostPath':'/h','readOnly':true}],"
		"'devices':[{'containerPath':'/dev/c','hostPath':'/dev/h','permissions':'rw'}],'annotations':{'an':'x'},"
		"'cdiDevices':[{'name':'v.com/x=a'}]}]}" };

	kubelet_test_init(&k);
	plugin_test_register(&p, &k, "v.com/x");
	struct val one = pod_make(&k, "u1", 1), two = pod_make(&k, "u2", 2), none = pod_make(&k, "u3", 0);
	struct val c = val_at(val_get(one, spec, containers), 0);
	p.calls[0] = '\0';
	CHECK_STR(allocate(&k, one), "ok");
	CHECK_STR(str_of(p.calls), "Allocate{'containerRequests':[{'devicesIds':['a']}]};");
	CHECK_STR(told(&k, one, c), "[{'key':'A','value':'1'},{'key':'B','value':'2'}] "
		  "[{'containerPath':'/dev/c','hostPath':'/dev/h','permissions':'rw'}] [{'name':'v.com/x=a'}] {'an':'x'} /m=/h:ro");
	CHECK_STR(allocate(&k, two), "Allocate failed due to requested number of devices unavailable for v.com/x. Requested: 2, "
		  "Available: 1, which is unexpected");
	CHECK_STR(allocate(&k, none), "ok");
	CHECK_STR(told(&k, none, val_at(val_get(none, spec, containers), 0)), "- - - -");
	CHECK_STR(allocate(&k, one), "ok"); /* again: it has what it needs */
	CHECK_STR(str_of(p.calls), "Allocate{'containerRequests':[{'devicesIds':['a']}]};");
	CHECK_STR(allocate(&k, val_with(&k.arena, pod_make(&k, "u1", 2), VAL_LIT("u1"), metadata, uid)),
		  "Allocate failed due to pod \"u1\" container \"c\" changed request for resource \"v.com/x\" from 1 to 2, which is unexpected");
	k.pods = VAL_EMPTY; /* not known yet who is there: nobody has ended */
	CHECK_STR(allocate(&k, two), "Allocate failed due to requested number of devices unavailable for v.com/x. Requested: 2, "
		  "Available: 1, which is unexpected");
	k.pods = LIST(&k.arena, two);
	CHECK_STR(allocate(&k, two), "ok");
	CHECK_STR(status(&k, "u1"), "-");
	CHECK_STR(status(&k, "u2"),
		  "[{'name':'v.com/x','resources':[{'resourceID':'a','health':'Healthy'},{'resourceID':'b','health':'Healthy'}]}]");
	plugin_test_stop(&p);
	kubelet_test_done(&k);
}

FIBER_TEST(devices_health_is_told_to_pods)
{
	struct kubelet_test k;
	struct plugin_test p = { .list = TWO };

	kubelet_test_init(&k);
	plugin_test_register(&p, &k, "v.com/x");
	CHECK_STR(allocate(&k, pod_make(&k, "u1", 1)), "ok");
	p.list = "{'devices':[{'ID':'a','health':'Healthy'},{'ID':'b','health':'Unhealthy'}]}"; /* nobody's */
	unsigned before = k.changed;
	UNTIL(k.changed > before);
	CHECK_STR(str_of(k.changed_pods), "");
	p.list = "{'devices':[{'ID':'a','health':'Unhealthy'},{'ID':'b','health':'Healthy'}]}";
	UNTIL(k.changed_pods[0]);
	CHECK_STR(str_of(k.changed_pods), "u1;");
	CHECK_STR(status(&k, "u1"), "[{'name':'v.com/x','resources':[{'resourceID':'a','health':'Unhealthy'}]}]");
	CHECK_STR(allocate(&k, val_at(k.pods, 0)), "Allocate failed due to previously allocated devices are no longer healthy; cannot "
		  "allocate unhealthy devices v.com/x, which is unexpected");
	k.runs = true; /* but what runs has them */
	CHECK_STR(allocate(&k, val_at(k.pods, 0)), "ok");
	plugin_test_stop(&p);
	kubelet_test_done(&k);
}

/* Init containers end before others begin, which then have their devices; sidecars keep theirs. */
FIBER_TEST(devices_of_init_containers_are_used_again)
{
	static const struct {
		const char *pod, *calls;
	} t[] = {
		{ "{'initContainers':[{'name':'i','resources':{'limits':{'v.com/x':'2'}}}],"
		  "'containers':[{'name':'c','resources':{'limits':{'v.com/x':'1'}}},{'name':'d','resources':{'limits':{'v.com/x':'1'}}}]}",
		  "a b|2 1 1" },
		{ "{'initContainers':[{'name':'i','restartPolicy':'Always','resources':{'limits':{'v.com/x':'1'}}}],"
		  "'containers':[{'name':'c','resources':{'limits':{'v.com/x':'2'}}}]}",
		  "Allocate failed due to requested number of devices unavailable for v.com/x. Requested: 2, Available: 1, which is "
		  "unexpected" },
		{ "{'initContainers':[{'name':'i','resources':{'limits':{'v.com/x':'1'}}},"
		  "{'name':'j','restartPolicy':'Always','resources':{'limits':{'v.com/x':'1'}}}],"
		  "'containers':[{'name':'c','resources':{'limits':{'v.com/x':'1'}}}]}", "a b|1 1 1" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct kubelet_test k;
		struct plugin_test p = { .list = TWO };
		kubelet_test_init(&k);
		plugin_test_register(&p, &k, "v.com/x");
		struct val pod = OBJECT(&k.arena, F(metadata, OBJECT(&k.arena, F(uid, VAL_LIT("u")))),
					F(spec, tree(&k.arena, TYPE(core_v1, PodSpec), t[i].pod)));
		k.pods = LIST(&k.arena, pod);
		str text = allocate(&k, pod);
		if (str_eq(text, STR("ok"))) {
			CLEANUP(buf_done) struct buf b = BUF_INIT(200);
			struct map used = MAP_INIT;
			map_init(&used);
			LIST_EACH(struct allocation, x, &k.devices->allocations, link)
				VAL_EACH(id, val_find(x->devices, STR("-1")))
					(void)map_put(&used, val_as_str(*id), x);
			buf_addf(&b, "%s%s|", map_get(&used, STR("a")) ? "a" : "", map_get(&used, STR("b")) ? " b" : "");
			static const char *const order[] = { "i", "j", "c", "d" };
			for (size_t o = 0; o < ARRAY_LEN(order); o++) {
				struct allocation *x = allocation_find(k.devices, STR("u"), str_of(order[o]), STR("v.com/x"));
				if (x)
					buf_addf(&b, "%s%u", o ? " " : "", val_len(val_find(x->devices, STR("-1"))));
			}
			map_done(&used);
			text = arena_str(&k.arena, buf_str(&b));
		} else {
			CHECK(list_empty(&k.devices->allocations)); /* what came before is taken back */
		}
		CHECK_STR_ROW(i, text, t[i].calls);
		plugin_test_stop(&p);
		kubelet_test_done(&k);
	}
}

FIBER_TEST(devices_preferred_and_pre_start)
{
	struct kubelet_test k;
	struct plugin_test p = { .list = "{'devices':[{'ID':'a','health':'Healthy'},{'ID':'b','health':'Healthy'},"
					 "{'ID':'c','health':'Healthy'}]}",
				 .options = "{'preStartRequired':true,'getPreferredAllocationAvailable':true}",
				 .preferred = "{'containerResponses':[{'deviceIDs':['nonsense','c']}]}" };

	kubelet_test_init(&k);
	plugin_test_register(&p, &k, "v.com/x");
	struct val pod = pod_make(&k, "u1", 2), c = val_at(val_get(pod, spec, containers), 0);
	p.calls[0] = '\0';
	CHECK_STR(allocate(&k, pod), "ok");
	CHECK_STR(str_of(p.calls), "GetPreferredAllocation{'containerRequests':[{'availableDeviceIDs':['a','b','c'],'allocationSize':2}]};"
		  "Allocate{'containerRequests':[{'devicesIds':['c','a']}]};");
	p.calls[0] = '\0';
	CHECK_STR(told(&k, pod, c), "[{'key':'DEV','value':'1'}] - - -");
	CHECK_STR(str_of(p.calls), "PreStartContainer{'devicesIds':['c','a']};");
	p.fails = "PreStartContainer";
	CHECK_STR(told(&k, pod, c), "device plugin PreStartContainer rpc failed with err: rpc error: code = Unknown desc = the plugin does "
		  "not want to");
	p.fails = "GetPreferredAllocation";
	CHECK_STR(allocate(&k, pod_make(&k, "u2", 1)), "Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: "
		  "rpc error: code = Unknown desc = the plugin does not want to, which is unexpected");
	p.fails = "Allocate";
	p.preferred = "{}";
	CHECK_STR(allocate(&k, pod_make(&k, "u3", 1)), "Allocate failed due to rpc error: code = Unknown desc = the plugin does not want to, "
		  "which is unexpected");
	p.fails = NULL;
	CHECK_STR(allocate(&k, val_at(k.pods, 2)), "ok"); /* the failures have kept nothing */
	plugin_test_stop(&p);
	UNTIL(offer_find(k.devices, STR("v.com/x"))->lost);
	CHECK_STR(told(&k, pod, c), "device plugin PreStartContainer rpc failed with err: endpoint v.com/x has been stopped");
	kubelet_test_done(&k);
}

/* The next kubelet knows who has what, and gives it to nobody else. */
struct allocating_pod {
	struct kubelet_test *k;
	struct val pod;
	struct fiber *fiber;
	bool done;
};

static int allocate_one(void *arg)
{
	struct allocating_pod *p = arg;

	int r = devices_allocate(p->k->devices, p->pod, NULL);
	p->done = true;
	return r;
}

/* A plugin is replaced while it is asked what it prefers: giving it up takes a while, in which others choose. */
FIBER_TEST(devices_are_not_given_twice)
{
	enum { PODS = 300 };
	static struct allocating_pod pods[PODS];
	CLEANUP(buf_done) struct buf list = BUF_INIT(1 << 16);
	struct kubelet_test k;
	struct plugin_test p = { .options = "{'getPreferredAllocationAvailable':true}", .holds = true, .preferred = "{'containerResponses':[{}]}" };

	kubelet_test_init(&k);
	for (int i = 0; i < PODS; i++) {
		buf_addf(&list, "%s{'ID':'d%03d','health':'Healthy'}", i ? "," : "{'devices':[", i);
		pods[i] = (struct allocating_pod){ &k, pod_make(&k, arena_printf(&k.arena, "u%d", i).p, 1), NULL, false };
	}
	buf_add(&list, STR("]}"));
	p.list = list.p;
	struct plugin_test q = { .list = list.p };
	plugin_test_register(&p, &k, "v.com/x");
	pods[0].fiber = start(allocate_one, &pods[0]);
	UNTIL(strstr(p.calls, "GetPreferredAllocation"));
	plugin_test_start(&q, &k, "device-plugins/other.sock");
	CHECK_STR(test_ask(&k.arena, test_path(&k, "device-plugins/kubelet.sock"), &rpc_Registration_Register,
			   "{'version':'v1beta1','endpoint':'other.sock','resourceName':'v.com/x'}"), "{}");
	UNTIL(strstr(q.calls, "ListAndWatch"));
	CHECK_INT(fiber_sleep_ms(20, NULL), 0); /* the first is only known to who waits for it now */
	p.answered = p.holds = false;
	while (!p.answered)
		CHECK_INT(fiber_yield(NULL), 0);
	int n = 1;
	for (; n < PODS && !pods[0].done; n++) {
		pods[n].fiber = start(allocate_one, &pods[n]);
		CHECK_INT(fiber_yield(NULL), 0);
	}
	buf_reset(&list);
	for (int i = 0; i < n; i++) {
		CHECK_ROW(i, join(pods[i].fiber) == 0);
		str uid = val_str(pods[i].pod, metadata, uid);
		str device = text_of(&k.arena, allocation_find(k.devices, uid, STR("c"), STR("v.com/x"))->devices);
		CHECK_ROW(i, str_find(buf_str(&list), device) < 0);
		buf_add(&list, device);
	}
	plugin_test_stop(&p);
	plugin_test_stop(&q);
	kubelet_test_done(&k);
}

FIBER_TEST(devices_are_kept_over_a_restart)
{
	struct kubelet_test k;
	struct plugin_test p = { .list = "{'devices':[{'ID':'a','health':'Healthy','topology':{'nodes':[{},{'ID':3}]}},"
					 "{'ID':'b','health':'Healthy'}]}" };
	struct stat st;

	kubelet_test_init(&k);
	plugin_test_register(&p, &k, "v.com/x");
	struct val pod = pod_make(&k, "u1", 1), other = pod_make(&k, "u2", 2), c = val_at(val_get(pod, spec, containers), 0);
	CHECK_STR(allocate(&k, pod), "ok");
	unsigned before = k.changed;
	kubelet_test_stop(&k);
	CHECK_INT(k.changed, before);
	kubelet_test_start(&k);
	CHECK(stat(p.path, &st) < 0); /* the plugin sees it go, and registers again */
	plugin_test_stop(&p);
	CHECK_STR(node_text(&k), "{'v.com/x':'0'} {'v.com/x':'0'}");
	CHECK_STR(allocate(&k, pod),
		  "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices v.com/x, which is unexpected");
	k.runs = true;
	CHECK_STR(allocate(&k, pod), "ok");
	k.runs = false;
	CHECK_STR(told(&k, pod, c), "[{'key':'DEV','value':'1'}] - - -");
	plugin_test_register(&p, &k, "v.com/x");
	CHECK_STR(allocate(&k, pod), "ok");
	CHECK(!strstr(p.calls, "Allocate"));
	CHECK_STR(allocate(&k, other), "Allocate failed due to requested number of devices unavailable for v.com/x. Requested: 2, "
		  "Available: 1, which is unexpected");
	CHECK_STR(text_of(&k.arena, allocation_find(k.devices, STR("u1"), STR("c"), STR("v.com/x"))->devices), "{'0':['a'],'3':['a']}");
	plugin_test_stop(&p);
	kubelet_test_done(&k);
}

/* With the sum that Kubernetes computes. */
#define CHECKPOINT                                                                                                        \
	"{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"uid-1\",\"ContainerName\":\"main\",\"ResourceName\":\"vendor.com/gpu\"," \
	"\"DeviceIDs\":{\"-1\":[\"g0\",\"g1\"],\"0\":[\"a\"],\"10\":[\"b\"],\"2\":[\"c\"]},\"AllocResp\":\"CgYKAUESATE=\"},"   \
	"{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":\"r/x\",\"DeviceIDs\":{},\"AllocResp\":\"\"}],"             \
	"\"RegisteredDevices\":{\"b/x\":[],\"vendor.com/gpu\":[\"g0\"]}},\"Checksum\":18709863}"

FIBER_TEST(devices_checkpoint_of_kubernetes)
{
	struct kubelet_test k;

	kubelet_test_init(&k);
	kubelet_test_stop(&k);
	const char *path = test_path(&k, "device-plugins/kubelet_internal_checkpoint");
	CHECK_INT(file_write(path, STR(CHECKPOINT), 0600, NULL), 0);
	kubelet_test_start(&k);
	struct allocation *x = allocation_find(k.devices, STR("uid-1"), STR("main"), STR("vendor.com/gpu"));
	CHECK(x && allocation_find(k.devices, STR("u"), STR("c"), STR("r/x")));
	CHECK_STR(text_of(&k.arena, x->response), "{'envs':{'A':'1'}}");
	CHECK_STR(node_text(&k), "{'b/x':'0','vendor.com/gpu':'0'} {'b/x':'0','vendor.com/gpu':'0'}");
	kubelet_test_stop(&k);

	/* With another sum it is damaged, and nothing of it is believed. */
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	buf_add(&b, STR(CHECKPOINT));
	*strstr(b.p, "g1") = 'h';
	CHECK_INT(file_write(path, buf_str(&b), 0600, NULL), 0);
	kubelet_test_start(&k);
	CHECK(list_empty(&k.devices->allocations) && !k.devices->n_offers);
	kubelet_test_done(&k);
}

/* Whatever a plugin does, the others and the kubelet go on. */
FIBER_TEST(devices_of_bad_plugins)
{
	struct kubelet_test k;
	struct plugin_test good = { .list = TWO }, bad = { .list = "{'devices':[{'ID':'a','health':'Healthy'}]}" };
	CLEANUP(buf_done) struct buf huge = BUF_INIT(64 << 20);

	kubelet_test_init(&k);
	plugin_test_register(&good, &k, "v.com/x");
	plugin_test_register(&bad, &k, "v.com/bad");
	buf_add(&huge, STR("{'devices':["));
	for (int i = 0; i < 66000; i++)
		buf_addf(&huge, "%s{'ID':'d%d'}", i ? "," : "", i);
	buf_add(&huge, STR("]}"));
	unsigned before = k.changed;
	bad.list = huge.p;
	UNTIL(k.changed > before);
	CHECK_STR(node_text(&k), "{'v.com/bad':'1','v.com/x':'2'} {'v.com/bad':'0','v.com/x':'2'}");
	plugin_test_stop(&bad);

	good.response = "{}";
	CHECK_STR(allocate(&k, pod_make(&k, "u1", 1)), "Allocate failed due to no containers return in allocation response "
		  "&AllocateResponse{ContainerResponses:[]*ContainerAllocateResponse{},}, which is unexpected");

	/* A flood: most of it has to wait. */
	before = k.changed;
	good.other = "{}";
	good.sends = 200;
	UNTIL(!good.sends && k.changed > before + 15);
	(void)fiber_sleep_ms(50, NULL);
	CHECK(k.changed - before < 65);
	plugin_test_stop(&good);
	kubelet_test_done(&k);
}
