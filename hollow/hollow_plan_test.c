#include "hollow/hollow_plan.h"

#include "base/clock.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/json.h"

static struct val tree(struct arena *a, const char *text)
{
	struct val v;
	str copy = arena_str(a, str_of(text));

	for (size_t i = 0; i < copy.n; i++)
		if (copy.p[i] == '\'')
			((char *)copy.p)[i] = '"';
	if (json_decode(a, copy, &(struct json_decode_options){ 0 }, &v, NULL) < 0)
		fail_msg("no JSON: %s", text);
	return v;
}

TEST(hollow_addresses)
{
	static const struct {
		uint32_t index;
		unsigned slot;
		const char *node, *pod;
	} t[] = {
		{ 0, 0, "172.16.0.1", "10.128.0.1" },
		{ 1, 125, "172.16.0.2", "10.128.0.254" },
		{ 4999, 9, "172.16.19.136", "10.137.195.138" },
		{ 65535, 125, "172.17.0.0", "10.255.255.254" },
	};
	char text[IP_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_STR_ROW(i, hollow_node_ip(t[i].index, text), t[i].node);
		CHECK_STR_ROW(i, hollow_pod_ip(t[i].index, t[i].slot, text), t[i].pod);
		CHECK_ROW(i, hollow_slot_of(t[i].index, str_of(t[i].pod)) == (int)t[i].slot);
		CHECK_ROW(i, hollow_slot_of(t[i].index + 1, str_of(t[i].pod)) == -1);
	}
	CHECK_INT(hollow_slot_of(0, STR("")), -1);
}

#define AT(s) ((s) * NS_PER_S)

TEST(hollow_pod_steps)
{
	static const struct {
		const char *pod;
		int64_t start_ms, stop_ms, now_s;
		enum hollow_step step;
		int64_t wait_ms;
	} t[] = {
		{ "{'status':{'phase':'Pending'}}", 0, 0, 100, HOLLOW_START, 0 },
		{ "{'status':{'phase':'Pending'}}", 3000, 0, 101, HOLLOW_START, 2000 },
		{ "{'status':{'phase':'Pending'}}", 3000, 0, 103, HOLLOW_START, 0 },
		{ "{'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}", 0, 0, 100, HOLLOW_REST, 0 },
		{ "{'status':{'phase':'Running','conditions':[{'type':'Ready','status':'False'}]}}", 0, 0, 100, HOLLOW_READY, 0 },
		{ "{'status':{'phase':'Succeeded'}}", 0, 0, 100, HOLLOW_REST, 0 },
		{ "{'metadata':{'annotations':{'hollow.c8s.io/seconds':'5'}},'spec':{'restartPolicy':'Never'},'status':{'phase':'Running','startTime':'1970-01-01T00:01:40Z','conditions':[{'type':'Ready','status':'True'}]}}", 0, 0,
		  102, HOLLOW_FINISH, 3000 },
		{ "{'metadata':{'annotations':{'hollow.c8s.io/seconds':'5'}},'spec':{'restartPolicy':'Always'},'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}", 0, 0, 102, HOLLOW_REST, 0 },
		{ "{'metadata':{'deletionTimestamp':'1970-01-01T00:02:10Z','deletionGracePeriodSeconds':30},'status':{'phase':'Running'}}", 0, 0, 100, HOLLOW_STOP, 0 },
		{ "{'metadata':{'deletionTimestamp':'1970-01-01T00:02:10Z','deletionGracePeriodSeconds':30},'status':{'phase':'Running'}}", 0, 2000, 101, HOLLOW_STOP, 1000 },
		{ "{'metadata':{'deletionTimestamp':'1970-01-01T00:01:41Z','deletionGracePeriodSeconds':1},'status':{'phase':'Running'}}", 0, 9000, 100, HOLLOW_STOP, 1000 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct hollow_options o = { .start_ms = t[i].start_ms, .stop_ms = t[i].stop_ms };
		struct hollow_pod p = hollow_pod_plan(&o, tree(&a, t[i].pod), AT(100), AT(t[i].now_s));
		CHECK_ROW(i, p.step == t[i].step);
		CHECK_ROW(i, p.wait_ms == t[i].wait_ms);
	}
}

TEST(hollow_objects)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *const taints[] = { "a=b:NoSchedule", "c:NoExecute", NULL }, *const wrong[] = { "a=b", NULL };
	struct hollow_options o = { .nodes = 1, .zones = 3, .taints = taints };
	struct val node, pod = tree(&a, "{'metadata':{'name':'p','uid':'u','generation':1,'annotations':{'hollow.c8s.io/exit-code':'3'}},"
					"'spec':{'initContainers':[{'name':'i'}],'containers':[{'name':'c','image':'x'}]}}");

	CHECK_INT(hollow_node(&a, &o, 4, STR("hollow-4"), AT(100), &node, NULL), 0);
	CHECK_STR(val_as_str(val_find(val_get(node, metadata, labels), STR("topology.kubernetes.io/zone"))), "zone-1");
	CHECK_STR(val_str(val_at(val_get(node, spec, taints), 0), value), "b");
	CHECK_STR(val_str(val_at(val_get(node, spec, taints), 1), effect), "NoExecute");
	CHECK_STR(val_str(hollow_keep_node(&a, node), metadata, name), "hollow-4");
	CHECK_STR(val_str(val_at(val_get(hollow_keep_node(&a, node), status, conditions), 0), status), "True");
	o.taints = wrong;
	CHECK_INT(hollow_node(&a, &o, 4, STR("hollow-4"), AT(100), &node, NULL), -ERR_INVALID);

	struct val running = hollow_pod_running(&a, hollow_keep_pod(&a, pod), STR("172.16.0.1"), STR("10.128.0.1"), AT(100));
	CHECK_STR(val_str(running, status, phase), "Running");
	CHECK_STR(val_str(running, status, podIP), "10.128.0.1");
	CHECK(val_has(val_at(val_get(running, status, containerStatuses), 0), state, running));
	CHECK(val_has(val_at(val_get(running, status, initContainerStatuses), 0), state, terminated));
	struct val ended = hollow_pod_ended(&a, hollow_keep_pod(&a, pod), AT(100));
	CHECK_STR(val_str(ended, status, phase), "Failed");
	CHECK_INT(val_int(val_at(val_get(ended, status, containerStatuses), 0), state, terminated, exitCode), 3);
}

/* What is kept of a pod is enough to know whether there is room; what is said otherwise has the words of kubelets. */
TEST(hollow_refuses_what_it_has_no_room_for)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = hollow_keep_pod(&a, tree(&a, "{'metadata':{'uid':'u'},'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'1500m'}}},"
						      "{'name':'d','resources':{'requests':{'cpu':'1'}}}]}}"));
	struct val none = hollow_keep_pod(&a, tree(&a, "{'spec':{'containers':[{'name':'c'}]}}"));

	CHECK_INT(hollow_pod_cpu(pod), 2500);
	CHECK_INT(hollow_pod_cpu(none), 0);
	struct val patch = hollow_pod_refused(&a, pod, (struct hollow_room){ 1501, 2 }, (struct hollow_room){ 4000, 3 });
	CHECK_STR(val_str(patch, metadata, uid), "u");
	CHECK_STR(val_str(patch, status, phase), "Failed");
	CHECK_STR(val_str(patch, status, reason), "OutOfcpu");
	CHECK_STR(val_str(patch, status, message), "Pod was rejected: Node didn't have enough resource: cpu, requested: 2500, used: 1501, capacity: 4000");
	patch = hollow_pod_refused(&a, pod, (struct hollow_room){ 1500, 3 }, (struct hollow_room){ 4000, 3 });
	CHECK_STR(val_str(patch, status, reason), "OutOfpods");
	CHECK_STR(val_str(patch, status, message), "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3");
}
