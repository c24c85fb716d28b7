/*
 * What users do: a list of deeds, each drawn by its weight at a time of its own. Names come from small sets, so that deeds meet the same
 * objects again and again; whether one succeeds does not matter, only what the cluster makes of it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "controllers/owner.h"
#include "simulation/simulation.h"

enum { DEEDS_LEAST = 15, DEEDS_MOST = 40, GAP_MS = 8000, NAMES = 3, SLOTS = 2 };

struct deed {
	struct simulation *sim;
	struct arena *arena;
	char namespace[8];
};

static struct val tree(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);

/* JSON with ' for " */
static struct val tree(struct arena *a, const char *format, ...)
{
	char text[2048];
	va_list args;
	struct val v = VAL_EMPTY;

	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	if (n >= (int)sizeof text || json_decode(a, arena_str(a, str_of(text)), &(struct json_decode_options){ .sort_keys = true }, &v, NULL) < 0)
		abort(); /* ours */
	return v;
}

static int64_t below(struct deed *d, int64_t n) { return dice_below(&d->sim->dice, n); }

static void create(struct deed *d, const struct type *type, struct val object)
{
	(void)client_create(d->sim->operator, type, object, NULL, NULL, NULL);
}

static void patch(struct deed *d, const struct type *type, str name, struct val v)
{
	(void)client_patch(d->sim->operator, type, str_of(d->namespace), name, CLIENT_PATCH_MERGE, v, NULL, NULL, NULL);
}

static str name_of(struct deed *d, const char *kind) { return arena_printf(d->arena, "%s%lld", kind, (long long)below(d, SLOTS)); }

/* One object of the namespace that there is now, as the rules know it; VAL_EMPTY: none. */
static struct val any(struct deed *d, const char *resource)
{
	str prefix = arena_printf(d->arena, "/registry/%s/%s/", resource, d->namespace), key;
	struct val found = VAL_EMPTY, v;
	struct omap_iter it;
	int64_t n = 0;

	omap_seek(&it, d->sim->rules.objects, prefix);
	while (val_exists(v = rules_next(&it, prefix, &key)))
		if (below(d, ++n) == 0)
			found = v;
	return val_exists(found) ? val_copy(d->arena, found) : VAL_EMPTY;
}

/* ---- workloads ---- */

/* Labels are by kind and name, and so are budgets. Here and below: one throw per statement, since the order of arguments is the compiler's. */
static str pod_template(struct deed *d, str app, const char *restart, const char *annotations)
{
	static const char *const classes[] = { "", "", "'priorityClassName':'high',", "'priorityClassName':'low'," };
	static const char *const tolerations[] = {
		"",
		"'tolerations':[{'key':'node.kubernetes.io/unreachable','operator':'Exists','effect':'NoExecute','tolerationSeconds':5},"
		"{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':'NoExecute','tolerationSeconds':5}],",
	};
	const char *class = classes[below(d, (int64_t)ARRAY_LEN(classes))], *tolerates = tolerations[below(d, 2)];
	long long grace_s = 1 + below(d, 3), version = below(d, 5), cpu_milli = 100 * dice_between(&d->sim->dice, 1, 8);

	return arena_printf(d->arena, "{'metadata':{'labels':{'app':'" STR_FMT "'}%s},'spec':{%s%s'restartPolicy':'%s','terminationGracePeriodSeconds':%lld,"
			    "'containers':[{'name':'c','image':'x:%lld','resources':{'requests':{'cpu':'%lldm'}}}]}}", STR_ARG(app), annotations, class,
			    tolerates, restart, grace_s, version, cpu_milli);
}

/* name, namespace, and the label again */
#define HEAD "{'metadata':{'name':'" STR_FMT "','namespace':'%s'},'spec':{'selector':{'matchLabels':{'app':'" STR_FMT "'}},"

static void make_deployment(struct deed *d)
{
	str name = name_of(d, "dep");
	str template = pod_template(d, name, "Always", "");
	long long replicas = below(d, 6), surge = 1 + below(d, 2), unavailable = below(d, 3), ready_s = below(d, 2);

	create(d, TYPE(apps_v1, Deployment), tree(d->arena, HEAD "'replicas':%lld,'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':%lld,"
		"'maxUnavailable':%lld}},'minReadySeconds':%lld,'template':" STR_FMT "}}", STR_ARG(name), d->namespace, STR_ARG(name), replicas, surge,
		unavailable, ready_s, STR_ARG(template)));
}

static void make_replica_set(struct deed *d)
{
	str name = name_of(d, "set");
	str template = pod_template(d, name, "Always", "");
	long long replicas = below(d, 5);

	create(d, TYPE(apps_v1, ReplicaSet), tree(d->arena, HEAD "'replicas':%lld,'template':" STR_FMT "}}", STR_ARG(name), d->namespace,
		STR_ARG(name), replicas, STR_ARG(template)));
}

static void make_stateful_set(struct deed *d)
{
	str name = name_of(d, "db");
	str template = pod_template(d, name, "Always", "");
	long long replicas = below(d, 4);
	const char *policy = below(d, 2) ? "OrderedReady" : "Parallel";

	create(d, TYPE(apps_v1, StatefulSet), tree(d->arena, HEAD "'replicas':%lld,'serviceName':'s','podManagementPolicy':'%s','template':" STR_FMT "}}",
		STR_ARG(name), d->namespace, STR_ARG(name), replicas, policy, STR_ARG(template)));
}

static void make_daemon_set(struct deed *d)
{
	str name = name_of(d, "each");
	str template = pod_template(d, name, "Always", "");

	create(d, TYPE(apps_v1, DaemonSet), tree(d->arena, HEAD "'template':" STR_FMT "}}", STR_ARG(name), d->namespace, STR_ARG(name), STR_ARG(template)));
}

static void make_job(struct deed *d)
{
	str name = name_of(d, "job");
	long long seconds = dice_between(&d->sim->dice, 1, 20);
	int fails = below(d, 4) == 0;
	str fares = arena_printf(d->arena, ",'annotations':{'hollow.c8s.io/seconds':'%lld','hollow.c8s.io/exit-code':'%d'}", seconds, fails);
	str template = pod_template(d, name, "Never", fares.p);
	long long n = dice_between(&d->sim->dice, 1, 4), at_once = dice_between(&d->sim->dice, 1, n), retries = below(d, 3);
	const char *mode = below(d, 2) ? "Indexed" : "NonIndexed";

	create(d, TYPE(batch_v1, Job), tree(d->arena, "{'metadata':{'name':'" STR_FMT "','namespace':'%s'},'spec':{'completions':%lld,"
		"'parallelism':%lld,'backoffLimit':%lld,'completionMode':'%s','template':" STR_FMT "}}", STR_ARG(name), d->namespace, n, at_once,
		retries, mode, STR_ARG(template)));
}

/* ---- what is changed ---- */

static const struct type *deployment(void) { return TYPE(apps_v1, Deployment); }
static const struct type *replica_set(void) { return TYPE(apps_v1, ReplicaSet); }
static const struct type *stateful_set(void) { return TYPE(apps_v1, StatefulSet); }
static const struct type *daemon_set(void) { return TYPE(apps_v1, DaemonSet); }
static const struct type *job(void) { return TYPE(batch_v1, Job); }

static const struct {
	const char *resource;
	const struct type *(*type)(void);
} scaled[] = { { "deployments", deployment }, { "replicasets", replica_set }, { "statefulsets", stateful_set }, { "daemonsets", daemon_set },
	       { "jobs", job } };

/* Also sets that a Deployment has made: its own will shall win. */
static void scale(struct deed *d)
{
	size_t i = (size_t)below(d, 3);
	struct val v = any(d, scaled[i].resource);

	if (val_exists(v))
		patch(d, scaled[i].type(), val_str(v, metadata, name), tree(d->arena, "{'spec':{'replicas':%lld}}", (long long)below(d, 6)));
}

static void roll(struct deed *d)
{
	static const size_t rolled[] = { 0, 0, 2, 3 };
	size_t i = rolled[below(d, (int64_t)ARRAY_LEN(rolled))];
	struct val v = any(d, scaled[i].resource);

	if (val_exists(v))
		patch(d, scaled[i].type(), val_str(v, metadata, name),
		      tree(d->arena, "{'spec':{'template':{'metadata':{'annotations':{'turn':'%lld'}}}}}", (long long)below(d, 4)));
}

static void delete_workload(struct deed *d)
{
	static const char *const ways[] = { "Background", "Foreground", "Orphan", "Background", "Foreground" };
	size_t i = (size_t)below(d, (int64_t)ARRAY_LEN(scaled));
	struct val v = any(d, scaled[i].resource);
	struct client_delete_options o = { .grace_s = -1, .propagation = str_of(ways[below(d, (int64_t)ARRAY_LEN(ways))]) };

	if (val_exists(v))
		(void)client_delete(d->sim->operator, scaled[i].type(), str_of(d->namespace), val_str(v, metadata, name), &o, NULL);
}

static void delete_pod(struct deed *d)
{
	struct val v = any(d, "pods");

	if (val_exists(v))
		(void)client_delete(d->sim->operator, TYPE(core_v1, Pod), str_of(d->namespace), val_str(v, metadata, name),
				    &(struct client_delete_options){ .grace_s = -1 }, NULL);
}

/* Out of its owner's selection, or into another's. A StatefulSet could not go on: the name is taken. */
static void relabel_pod(struct deed *d)
{
	static const char *const apps[] = { "free", "dep0", "set0", "set1" };
	struct val v = any(d, "pods");

	if (val_exists(v) && !str_eq(val_str(owner_controller(v), kind), STR("StatefulSet")))
		patch(d, TYPE(core_v1, Pod), val_str(v, metadata, name),
		      tree(d->arena, "{'metadata':{'labels':{'app':'%s'}}}", apps[below(d, (int64_t)ARRAY_LEN(apps))]));
}

static void lone_pod(struct deed *d)
{
	str template = pod_template(d, name_of(d, "set"), "Always", "");
	struct val v = tree(d->arena, STR_FMT, STR_ARG(template));

	v = val_with(d->arena, v, VAL_STR(arena_printf(d->arena, "lone%lld", (long long)below(d, NAMES))), metadata, name);
	create(d, TYPE(core_v1, Pod), val_with(d->arena, v, VAL_STR(str_of(d->namespace)), metadata, namespace));
}

static void evict(struct deed *d)
{
	for (int64_t n = below(d, 4); n >= 0; n--) {
		struct val v = any(d, "pods");
		if (!val_exists(v))
			return;
		struct val eviction = tree(d->arena, "{'metadata':{'name':'" STR_FMT "','namespace':'%s'}}", STR_ARG(val_str(v, metadata, name)), d->namespace);
		(void)client_create(d->sim->operator, TYPE(core_v1, Pod), eviction, &(struct client_write_options){ .subresource = STR("eviction") }, NULL, NULL);
	}
}

static void make_budget(struct deed *d)
{
	static const char *const apps[] = { "dep0", "dep1", "set0", "db0" };
	const char *app = apps[below(d, (int64_t)ARRAY_LEN(apps))], *bound = below(d, 2) ? "minAvailable" : "maxUnavailable";
	long long n = dice_between(&d->sim->dice, 1, 3);

	create(d, TYPE(policy_v1, PodDisruptionBudget), tree(d->arena, "{'metadata':{'name':'%s','namespace':'%s'},"
		"'spec':{'%s':%lld,'selector':{'matchLabels':{'app':'%s'}}}}", app, d->namespace, bound, n, app));
}

static void make_quota(struct deed *d)
{
	long long pods = dice_between(&d->sim->dice, 3, 12), cpu = dice_between(&d->sim->dice, 2, 6);

	create(d, TYPE(core_v1, ResourceQuota), tree(d->arena, "{'metadata':{'name':'q','namespace':'%s'},"
		"'spec':{'hard':{'pods':'%lld','requests.cpu':'%lld'}}}", d->namespace, pods, cpu));
}

static void make_namespace(struct deed *d)
{
	create(d, TYPE(core_v1, Namespace), tree(d->arena, "{'metadata':{'name':'%s'}}", d->namespace));
}

static void delete_namespace(struct deed *d)
{
	(void)client_delete(d->sim->operator, TYPE(core_v1, Namespace), STR_NONE, str_of(d->namespace), NULL, NULL);
}

/* ---- nodes ---- */

static void cordon(struct deed *d)
{
	str name = arena_printf(d->arena, "node-%lld", (long long)below(d, d->sim->n_nodes));
	const char *off = below(d, 3) ? "null" : "true";

	(void)client_patch(d->sim->operator, TYPE(core_v1, Node), STR_NONE, name, CLIENT_PATCH_MERGE,
			   tree(d->arena, "{'spec':{'unschedulable':%s}}", off), NULL, NULL, NULL);
}

static void add_node(struct deed *d) { (void)node_add(d->sim, NULL); }

/* For good: it is turned off first. */
static void remove_node(struct deed *d)
{
	struct sim_node *n = &d->sim->nodes[below(d, d->sim->n_nodes)];

	if (n->lost || n->number == 0)
		return;
	n->lost = true;
	part_stop(&n->part);
	history_say(&d->sim->history, "== node-%d is removed", n->number);
	(void)client_delete(d->sim->operator, TYPE(core_v1, Node), STR_NONE, arena_printf(d->arena, "node-%d", n->number), NULL, NULL);
}

/* ---- all of it ---- */

static const struct {
	void (*run)(struct deed *d);
	const char *name;
	int weight;
} deeds[] = {
	{ make_deployment, "make a Deployment", 16 }, { make_replica_set, "make a ReplicaSet", 8 }, { make_stateful_set, "make a StatefulSet", 10 },
	{ make_daemon_set, "make a DaemonSet", 4 }, { make_job, "make a Job", 10 }, { scale, "scale", 16 }, { roll, "change a template", 10 },
	{ delete_workload, "delete a workload", 10 }, { delete_pod, "delete a pod", 10 }, { relabel_pod, "change a pod's label", 4 },
	{ lone_pod, "make a pod", 4 }, { evict, "evict", 12 }, { make_budget, "make a budget", 8 }, { make_quota, "make a quota", 3 },
	{ make_namespace, "make a namespace", 8 }, { delete_namespace, "delete a namespace", 2 }, { cordon, "cordon", 3 }, { add_node, "add a node", 1 },
	{ remove_node, "remove a node", 1 },
};

static void do_one(struct simulation *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct deed d = { .sim = s, .arena = &a, .namespace = { (char)('a' + dice_below(&s->dice, 2)) } };
	int64_t total = 0, at = 0;

	for (size_t i = 0; i < ARRAY_LEN(deeds); i++)
		total += deeds[i].weight;
	int64_t drawn = dice_below(&s->dice, total);
	size_t i = 0;
	while ((at += deeds[i].weight) <= drawn)
		i++;
	history_say(&s->history, "== %s in %s", deeds[i].name, d.namespace);
	deeds[i].run(&d);
}

void work_begin(struct simulation *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct deed d = { .sim = s, .arena = &a };

	for (d.namespace[0] = 'a'; d.namespace[0] <= 'b'; d.namespace[0]++)
		make_namespace(&d);
	create(&d, TYPE(scheduling_v1, PriorityClass), tree(&a, "{'metadata':{'name':'high'},'value':1000}"));
	create(&d, TYPE(scheduling_v1, PriorityClass), tree(&a, "{'metadata':{'name':'low'},'value':-10}"));
}

void work_run(struct simulation *s)
{
	int64_t n = dice_between(&s->dice, DEEDS_LEAST, DEEDS_MOST);

	for (int64_t i = 0; i < n && !s->rules.failed; i++) {
		do_one(s);
		int64_t gap_ms = dice_below(&s->dice, 3) ? GAP_MS : 100;
		if (fiber_sleep_ms(dice_below(&s->dice, gap_ms), NULL) < 0)
			return;
	}
}
