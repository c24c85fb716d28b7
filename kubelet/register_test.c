/* The Node in the API: made, taken over, kept up to date; with a whole API server, and with one that is away. */
#include "kubelet/register.h"

#include "base/clock.h"
#include "client/fake_test.h"
#include "client/inside_testing.h"
#include "codec/atoms.h"
#include "kubelet/register_priv.h"

enum { WAIT_MS = 10000, STEP_MS = 5 };

#define NODE TYPE(core_v1, Node)
#define LEASE TYPE(coordination_v1, Lease)

static str text_of(struct arena *a, struct val v) { return testing_swap(a, testing_text(a, v), '"', '\''); }

/* ---- taking over ---- */

#define OWN "'kubernetes.io/hostname':'n1','kubernetes.io/os':'linux'"
#define ATTACH "'volumes.kubernetes.io/controller-managed-attach-detach':'true'"

static const struct {
	const char *existing;
	bool reset;
	const char *want;             /* NULL: as it is */
} takeovers[] = {
	/* All in order; what others have put there stays. */
	{ "{'metadata':{'annotations':{'x':'y'," ATTACH "},'labels':{'a':'b'," OWN "}},'spec':{'taints':[{'key':'t','effect':'NoSchedule'}]},"
	  "'status':{'allocatable':{'cpu':'4','hugepages-2Mi':'0'},'capacity':{'cpu':'4','hugepages-2Mi':'0'}}}", false, NULL },
	/* Labels and the annotation are put right; taints are not touched. */
	{ "{'metadata':{'labels':{'a':'b','kubernetes.io/hostname':'other'}},"
	  "'status':{'allocatable':{'cpu':'4','hugepages-2Mi':'0'},'capacity':{'cpu':'4','hugepages-2Mi':'0'}}}", false,
	  "{'metadata':{'annotations':{" ATTACH "},'labels':{'a':'b'," OWN "}},'spec':{},"
	  "'status':{'allocatable':{'cpu':'4','hugepages-2Mi':'0'},'capacity':{'cpu':'4','hugepages-2Mi':'0'}}}" },
	/* Resources: those of a node that has none; sizes of huge pages that are there now. */
	{ "{'metadata':{'annotations':{" ATTACH "},'labels':{" OWN "}}}", false,
	  "{'metadata':{'annotations':{" ATTACH "},'labels':{" OWN "}},'spec':{},"
	  "'status':{'allocatable':{'cpu':'2','hugepages-2Mi':'0'},'capacity':{'cpu':'4','hugepages-2Mi':'0'}}}" },
	{ "{'metadata':{'annotations':{" ATTACH "},'labels':{" OWN "}},"
	  "'status':{'allocatable':{'cpu':'2','example.com/gpu':'1','hugepages-1Gi':'1Gi'},"
	  "'capacity':{'cpu':'4','example.com/gpu':'2','hugepages-1Gi':'1Gi'}}}", false,
	  "{'metadata':{'annotations':{" ATTACH "},'labels':{" OWN "}},'spec':{},"
	  "'status':{'allocatable':{'cpu':'2','example.com/gpu':'1','hugepages-2Mi':'0'},"
	  "'capacity':{'cpu':'4','example.com/gpu':'2','hugepages-2Mi':'0'}}}" },
	/* A machine that was set up anew has no devices until somebody says so. */
	{ "{'metadata':{'annotations':{" ATTACH "},'labels':{" OWN "}},"
	  "'status':{'allocatable':{'cpu':'2','example.com/gpu':'1','hugepages-2Mi':'0'},"
	  "'capacity':{'cpu':'4','example.com/gpu':'2','hugepages-2Mi':'0'}}}", true,
	  "{'metadata':{'annotations':{" ATTACH "},'labels':{" OWN "}},'spec':{},"
	  "'status':{'allocatable':{'cpu':'2','example.com/gpu':'0','hugepages-2Mi':'0'},"
	  "'capacity':{'cpu':'4','example.com/gpu':'0','hugepages-2Mi':'0'}}}" },
};

TEST(register_takes_over_what_is_there)
{
	for (size_t i = 0; i < ARRAY_LEN(takeovers); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val initial = testing_typed(&a, NODE, "{'metadata':{'annotations':{" ATTACH "},'labels':{" OWN ",'mine':'1'}},"
						     "'spec':{'taints':[{'key':'mine','effect':'NoSchedule'}]},"
						     "'status':{'capacity':{'cpu':'4','hugepages-2Mi':'0'},"
						     "'allocatable':{'cpu':'2','hugepages-2Mi':'0'}}}");
		struct val existing = testing_typed(&a, NODE, takeovers[i].existing);
		struct val got = node_reconcile(&a, initial, existing, takeovers[i].reset);
		CHECK_ROW(i, val_same(got, existing) == !takeovers[i].want);
		if (takeovers[i].want)
			CHECK_STR_ROW(i, text_of(&a, got), text_of(&a, testing_typed(&a, NODE, takeovers[i].want)).p);
	}
}

/* ---- a kubelet's part of it ---- */

struct station {
	struct kubelet_options options;
	struct kubelet_node node;
	struct node_keeper_options o;
	struct node_keeper *keeper;
	struct fiber *fiber;
	bool runtime_ready, memory_pressure;
	char cidr[64];
	int asked;                    /* facts */
	struct arena arena;
};

static void facts(void *arg, struct arena *a, struct node_facts *f)
{
	struct station *s = arg;
	static const char *const states[] = { "false", "true" };

	s->asked++;
	f->runtime_version = testing_typed(a, TYPE(cri_v1, VersionResponse), "{'runtimeName':'c8s','runtimeVersion':'0.1'}");
	f->runtime_status = testing_typed(a, TYPE(cri_v1, StatusResponse),
				  arena_printf(a, "{'status':{'conditions':[{'type':'RuntimeReady','status':%s},"
						  "{'type':'NetworkReady','status':true}]}}", states[s->runtime_ready]).p);
	f->memory_pressure = s->memory_pressure;
}

static void pod_cidr(void *arg, str cidr)
{
	struct station *s = arg;
	(void)snprintf(s->cidr, sizeof(s->cidr), STR_FMT, STR_ARG(cidr));
}

static int run_keeper(void *arg) { return node_keeper_run(arg, NULL); }

/* more: of the configuration, each ends in a comma. */
static void station_init(struct station *s, struct client *c, struct recorder *recorder, const char *more)
{
	*s = (struct station){ .runtime_ready = true };
	struct val config = testing_typed(&s->arena, TYPE(kubeletconfig_v1beta1, KubeletConfiguration),
				  arena_printf(&s->arena, "{%s'nodeStatusUpdateFrequency':'10s','nodeStatusReportFrequency':'5m0s',"
							  "'nodeLeaseDurationSeconds':40,'port':10250,"
							  "'registerWithTaints':[{'key':'new','effect':'NoSchedule'}]}", more).p);
	s->options = (struct kubelet_options){ .config = val_freeze(config), .node_labels = testing_tree(&s->arena, "{'rack':'r1'}") };
	s->node = (struct kubelet_node){ .name = STR("n1"), .address = STR("10.0.0.1"), .root = STR("/tmp"), .max_pods = 110 };
	s->o = (struct node_keeper_options){ .options = &s->options, .node = &s->node, .client = c, .recorder = recorder, .facts = facts,
					     .pod_cidr = pod_cidr, .arg = s };
	s->keeper = node_keeper_new(&s->o);
	s->fiber = start(run_keeper, s->keeper);
}

static void station_done(struct station *s)
{
	CHECK_INT(fiber_stop(s->fiber), -ERR_CANCELED);
	node_keeper_free(s->keeper);
	frozen_unref(s->options.config);
	arena_done(&s->arena);
}

static str condition(struct val node, const char *type)
{
	VAL_EACH(c, val_get(node, status, conditions))
		if (str_eq(val_str(*c, type), str_of(type)))
			return val_str(*c, status);
	return STR_NONE;
}

static bool has_taint(struct val node, const char *key)
{
	VAL_EACH(t, val_get(node, spec, taints))
		if (str_eq(val_str(*t, key), str_of(key)))
			return true;
	return false;
}

/* (suspends) Until the node is so; in the arena. */
static struct val node_with(struct world *w, bool (*holds)(struct val node, const void *arg), const void *arg)
{
	for (int i = 0; i < WAIT_MS / STEP_MS; i++) {
		CLEANUP(frozen_unrefp) struct frozen *node = NULL;
		if (client_get(w->c, NODE, STR_NONE, STR("n1"), &node, NULL) == 0 && holds(node->val, arg))
			return val_copy(&w->arena, node->val);
		CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
	}
	fail_msg("the node does not become so");
	return VAL_EMPTY;
}

static bool is_ready(struct val node, const void *arg) { return str_eq(condition(node, "Ready"), arg ? STR("True") : STR("False")); }
static bool has_pressure(struct val node, const void *arg) { return (void)arg, str_eq(condition(node, "MemoryPressure"), STR("True")); }
static bool has_first_address(struct val node, const void *arg)
{
	return str_eq(val_str(val_at(val_get(node, status, addresses), 0), address), str_of(arg));
}

/* (suspends) The reasons of events about the node, in the order in which they were told. */
static bool has_event(struct world *w, const char *reason, const char *message)
{
	for (int i = 0; i < WAIT_MS / STEP_MS; i++) {
		CLEANUP(frozen_unrefp) struct frozen *list = NULL;
		CHECK_OK(w, client_list(w->c, TYPE(core_v1, Event), &(struct client_list_options){ .namespace = STR("default") }, &list, &w->err));
		VAL_EACH(e, val_get(list->val, items))
			if (str_eq(val_str(*e, reason), str_of(reason))) {
				CHECK_STR(val_str(*e, message), message);
				CHECK_STR(val_str(*e, involvedObject, kind), "Node");
				CHECK_STR(val_str(*e, involvedObject, name), "n1");
				return true;
			}
		CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
	}
	return false;
}

static void check_lease(struct world *w, str uid)
{
	for (int i = 0; i < WAIT_MS / STEP_MS; i++) {
		CLEANUP(frozen_unrefp) struct frozen *lease = NULL;
		if (client_get(w->c, LEASE, STR("kube-node-lease"), STR("n1"), &lease, NULL) < 0) {
			CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
			continue;
		}
		CHECK_STR(val_str(lease->val, spec, holderIdentity), "n1");
		CHECK_INT(val_int(lease->val, spec, leaseDurationSeconds), 40);
		CHECK(val_has(lease->val, spec, renewTime));
		CHECK(str_eq(val_str(val_at(val_get(lease->val, metadata, ownerReferences), 0), uid), uid));
		return;
	}
	fail_msg("there is no lease");
}

static void wait_for_namespace(struct world *w, const char *name)
{
	for (int i = 0; i < WAIT_MS / STEP_MS; i++) {
		CLEANUP(frozen_unrefp) struct frozen *f = NULL;
		if (client_get(w->c, TYPE(core_v1, Namespace), STR_NONE, str_of(name), &f, NULL) == 0)
			return;
		CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
	}
	fail_msg("there is no namespace");
}

FIBER_TEST(register_new_node)
{
	static struct world w;
	static struct station s;
	struct recorder *recorder = NULL;
	world_init(&w);
	wait_for_namespace(&w, "kube-node-lease");
	CHECK_OK(&w, recorder_new(w.c, STR("kubelet"), STR("n1"), &recorder, &w.err));
	station_init(&s, w.c, recorder, "");
	s.runtime_ready = false;
	struct val node = node_with(&w, is_ready, NULL);
	CHECK_STR(val_as_str(val_find(val_get(node, metadata, labels), STR("rack"))), "r1");
	CHECK_STR(val_as_str(val_find(val_get(node, metadata, labels), STR("kubernetes.io/hostname"))), "n1");
	CHECK(has_taint(node, "new"));
	CHECK_STR(val_str(node, status, nodeInfo, containerRuntimeVersion), "c8s://0.1");
	CHECK(val_len(s.node.allocatable) >= 3);
	/* Ready as soon as it is, without anybody saying so. */
	s.runtime_ready = true;
	node = node_with(&w, is_ready, "");
	CHECK_STR(condition(node_keeper_object(s.keeper, &w.arena), "Ready"), "True");
	check_lease(&w, val_str(node, metadata, uid));
	/* What somebody hurries about is told at once. */
	s.memory_pressure = true;
	node_keeper_hurry(s.keeper);
	(void)node_with(&w, has_pressure, NULL);
	CHECK(has_event(&w, "Starting", "Starting kubelet."));
	CHECK(has_event(&w, "NodeHasSufficientMemory", "Node n1 status is now: NodeHasSufficientMemory"));
	CHECK(has_event(&w, "NodeReady", "Node n1 status is now: NodeReady"));
	CHECK(has_event(&w, "NodeHasInsufficientMemory", "Node n1 status is now: NodeHasInsufficientMemory"));
	/* What others decide is acted on at once: the network of pods, no more pods. */
	CHECK_OK(&w, client_patch(w.c, NODE, STR_NONE, STR("n1"), CLIENT_PATCH_MERGE,
				  tree(&w, "{'spec':{'podCIDR':'10.1.0.0/24','podCIDRs':['10.1.0.0/24'],'unschedulable':true}}"), NULL, NULL, &w.err));
	CHECK(has_event(&w, "NodeNotSchedulable", "Node n1 status is now: NodeNotSchedulable"));
	CHECK_STR(str_of(s.cidr), "10.1.0.0/24");
	/* Addresses, of which two may have one type, are replaced. */
	s.node.address = STR("10.0.0.2");
	s.node.address6 = STR("fd00::2");
	node_keeper_hurry(s.keeper);
	node = node_with(&w, has_first_address, "10.0.0.2");
	CHECK_STR(text_of(&w.arena, val_get(node, status, addresses)),
		  "[{'type':'InternalIP','address':'10.0.0.2'},{'type':'InternalIP','address':'fd00::2'},{'type':'Hostname','address':'n1'}]");
	station_done(&s);
	recorder_free(recorder);
	world_done(&w);
}

static bool has_label(struct val node, const void *arg)
{
	return str_eq(val_as_str(val_find(val_get(node, metadata, labels), STR("kubernetes.io/os"))), str_of(arg));
}

FIBER_TEST(register_node_that_exists)
{
	static struct world w;
	static struct station s;
	world_init(&w);
	CHECK_OK(&w, client_create(w.c, NODE, tree(&w, "{'metadata':{'name':'n1','labels':{'kubernetes.io/os':'plan9','own':'x'}}}"), NULL, NULL,
				   &w.err));
	/* Who is not to register does not make one, but keeps up what there is. */
	station_init(&s, w.c, NULL, "'registerNode':false,");
	struct val node = node_with(&w, is_ready, "");
	CHECK(has_label(node, "linux"));
	CHECK(!has_taint(node, "new") && !val_exists(val_find(val_get(node, metadata, labels), STR("rack"))));
	station_done(&s);
	/* Taints and labels of one's own are for new nodes. */
	station_init(&s, w.c, NULL, "");
	while (!s.keeper->registered)
		CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
	node = node_with(&w, has_label, "linux");
	CHECK(!has_taint(node, "new") && !val_exists(val_find(val_get(node, metadata, labels), STR("rack"))));
	CHECK_STR(val_as_str(val_find(val_get(node, metadata, labels), STR("own"))), "x");
	CHECK_STR(val_as_str(val_find(val_get(node, metadata, annotations), STR("volumes.kubernetes.io/controller-managed-attach-detach"))),
		  "true");
	station_done(&s);
	world_done(&w);
}

FIBER_TEST(register_not_before_there_is_a_node)
{
	static struct world w;
	static struct station s;
	CLEANUP(frozen_unrefp) struct frozen *node = NULL, *lease = NULL;
	world_init(&w);
	log_set_level(LOG_LEVEL_OFF);
	station_init(&s, w.c, NULL, "'registerNode':false,");
	CHECK_INT(fiber_sleep_ms(300, NULL), 0);
	CHECK_FAILS(&w, client_get(w.c, NODE, STR_NONE, STR("n1"), &node, &w.err), ERR_NOT_FOUND, "nodes \"n1\" not found");
	CHECK_INT(client_get(w.c, LEASE, STR("kube-node-lease"), STR("n1"), &lease, NULL), -ERR_NOT_FOUND);
	wait_for_namespace(&w, "kube-node-lease");
	CHECK_OK(&w, client_create(w.c, NODE, tree(&w, "{'metadata':{'name':'n1'}}"), NULL, NULL, &w.err));
	check_lease(&w, val_str(node_with(&w, is_ready, ""), metadata, uid));
	station_done(&s);
	world_done(&w);
}

/* ---- times ---- */

static int count(struct fake *f, const char *what)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int n = 0;

	for (str rest = fake_log(f, &a), line; rest.n; n += str_starts(line, str_of(what)))
		(void)str_cut(rest, '\n', &line, &rest);
	return n;
}

FIBER_TEST(register_tells_seldom)
{
	static struct fake f;
	static struct station s;

	fake_clock(1000 * NS_PER_S);
	log_set_level(LOG_LEVEL_OFF);
	fake_init(&f);
	f.fail = ERR_UNAVAILABLE;
	station_init(&s, &f.client, NULL, "");
	/* Tries at 0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 12.7, 19.7 s. */
	CHECK_INT(fiber_sleep_ms(20000, NULL), 0);
	CHECK_INT(count(&f, "create /api/v1/nodes"), 9);
	f.fail = ERR_NONE;
	/* Once made it is told once more, then nothing new for a while: at most a half less than five minutes. */
	CHECK_INT(fiber_sleep_ms(7000, NULL), 0);
	CHECK(fake_get(&f, "nodes//n1"));
	CHECK_INT(count(&f, "patch /api/v1/nodes/n1/status"), 1);
	s.asked = 0;
	CHECK_INT(fiber_sleep_ms(140 * 1000, NULL), 0);
	CHECK_INT(count(&f, "patch /api/v1/nodes/n1/status"), 0);
	CHECK(s.asked >= 13 && s.asked <= 15);
	CHECK_INT(fiber_sleep_ms(320 * 1000, NULL), 0);
	CHECK(count(&f, "patch /api/v1/nodes/n1/status") > 0);
	station_done(&s);
	fake_done(&f);
	clock_virtual_off();
}

static void put_object(struct fake *f, const char *key, struct val object)
{
	struct frozen *frozen = val_freeze(object);
	(void)omap_put(f->objects, str_of(key), frozen);
	frozen_unref(frozen);
}

FIBER_TEST(register_lease_is_renewed)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct fake f;
	static struct station s;

	fake_clock(1000 * NS_PER_S);
	log_set_level(LOG_LEVEL_OFF);
	fake_init(&f);
	put_object(&f, "nodes//n1", testing_typed(&a, NODE, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n1','uid':'u1','resourceVersion':'1'}}"));
	station_init(&s, &f.client, NULL, "");
	CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	CHECK_INT(count(&f, "create /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"), 1);
	/* A quarter of 40 s, and a little more. */
	CHECK_INT(fiber_sleep_ms(105 * 1000, NULL), 0);
	CHECK_INT(count(&f, "update /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"), 10);
	/* Somebody else has written it: it is read, then renewed. */
	struct frozen *lease = fake_get(&f, "leases/kube-node-lease/n1");
	struct val other = val_with(&a, lease->val, VAL_LIT("777777"), metadata, resourceVersion);
	put_object(&f, "leases/kube-node-lease/n1", val_with(&a, other, VAL_LIT("1970-01-01T00:00:00.000000Z"), spec, renewTime));
	CHECK_INT(fiber_sleep_ms(11 * 1000, NULL), 0);
	CHECK(str_cmp(val_str(fake_get(&f, "leases/kube-node-lease/n1")->val, spec, renewTime), STR("1970-01-01T00:18")) > 0);
	/* It is gone: it is made again. */
	CHECK(count(&f, "get /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1") == 1);
	(void)omap_remove(f.objects, STR("leases/kube-node-lease/n1"));
	CHECK_INT(fiber_sleep_ms(11 * 1000, NULL), 0);
	CHECK(fake_get(&f, "leases/kube-node-lease/n1"));
	station_done(&s);
	fake_done(&f);
	clock_virtual_off();
}

/* The node is seen anew, and nobody has what was seen before. */
static void see_anew(void *arg)
{
	struct node_keeper *n = arg;
	struct frozen *was = TAKE(n->seen);

	if (was)
		n->seen = val_freeze(was->val);
	frozen_unref(was);
}

FIBER_TEST(register_lease_while_the_node_changes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct fake f;
	static struct station s;

	fake_clock(1000 * NS_PER_S);
	log_set_level(LOG_LEVEL_OFF);
	fake_init(&f);
	put_object(&f, "nodes//n1", testing_typed(&a, NODE, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n1','uid':'u1','resourceVersion':'1'}}"));
	station_init(&s, &f.client, NULL, "");
	f.meanwhile = see_anew;
	f.arg = s.keeper;
	CHECK_INT(fiber_sleep_ms(30 * 1000, NULL), 0);
	struct val owners = val_get(fake_get(&f, "leases/kube-node-lease/n1")->val, metadata, ownerReferences);
	CHECK_STR(val_str(val_at(owners, 0), uid), "u1");
	station_done(&s);
	fake_done(&f);
	clock_virtual_off();
}

FIBER_TEST(register_alone)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct station s;

	log_set_level(LOG_LEVEL_OFF);
	station_init(&s, NULL, NULL, "'podCIDR':'10.2.0.0/16',");
	CHECK_STR(val_str(node_keeper_object(s.keeper, &a), metadata, name), "n1");
	/* Before anything was asked: what this machine says by itself. */
	CHECK_STR(val_str(val_at(val_get(node_keeper_object(s.keeper, &a), status, addresses), 0), address), "10.0.0.1");
	fiber_settle();
	CHECK_STR(condition(node_keeper_object(s.keeper, &a), "Ready"), "True");
	CHECK_STR(str_of(s.cidr), "10.2.0.0/16");
	CHECK(val_len(s.node.allocatable) >= 3);
	station_done(&s);
}
