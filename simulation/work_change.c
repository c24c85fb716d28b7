/* Objects that users change and delete, and nodes that come and go. */
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/owner.h"
#include "simulation/work.h"

/* ---- workloads ---- */

static const struct type *deployment(void) { return TYPE(apps_v1, Deployment); }
static const struct type *replica_set(void) { return TYPE(apps_v1, ReplicaSet); }
static const struct type *stateful_set(void) { return TYPE(apps_v1, StatefulSet); }
static const struct type *daemon_set(void) { return TYPE(apps_v1, DaemonSet); }
static const struct type *replication_controller(void) { return TYPE(core_v1, ReplicationController); }
static const struct type *job(void) { return TYPE(batch_v1, Job); }
static const struct type *cron_job(void) { return TYPE(batch_v1, CronJob); }
static const struct type *claim(void) { return TYPE(core_v1, PersistentVolumeClaim); }
static const struct type *service(void) { return TYPE(core_v1, Service); }

/* The first have replicas. */
static const struct {
	const char *resource;
	const struct type *(*type)(void);
} kinds[] = { { "deployments", deployment }, { "replicasets", replica_set }, { "statefulsets", stateful_set },
	      { "controllers", replication_controller }, { "daemonsets", daemon_set }, { "jobs", job }, { "cronjobs", cron_job },
	      { "persistentvolumeclaims", claim }, { "services/specs", service } };

enum { SCALED = 4, DAEMON_SETS = 4, JOBS = 5 };

/* Also sets that a Deployment has made: its own will shall win. */
static void scale(struct deed *d)
{
	size_t i = (size_t)work_below(d, SCALED);
	struct val v = work_any(d, kinds[i].resource);

	if (val_exists(v))
		work_patch(d, kinds[i].type(), val_str(v, metadata, name), work_tree(d->arena, "{'spec':{'replicas':%lld}}", (long long)work_below(d, 6)));
}

static void roll(struct deed *d)
{
	static const size_t rolled[] = { 0, 0, 2, DAEMON_SETS };
	size_t i = rolled[work_below(d, (int64_t)ARRAY_LEN(rolled))];
	struct val v = work_any(d, kinds[i].resource);

	if (val_exists(v))
		work_patch(d, kinds[i].type(), val_str(v, metadata, name),
		      work_tree(d->arena, "{'spec':{'template':{'metadata':{'annotations':{'turn':'%lld'}}}}}", (long long)work_below(d, 4)));
}

/* Those that a CronJob has made are left to it. */
static void delete_object(struct deed *d)
{
	static const char *const ways[] = { "Background", "Foreground", "Orphan", "Background", "Foreground" };
	size_t i = (size_t)work_below(d, (int64_t)ARRAY_LEN(kinds));
	struct val v = work_any(d, kinds[i].resource);
	struct client_delete_options o = { .grace_s = -1, .propagation = str_of(ways[work_below(d, (int64_t)ARRAY_LEN(ways))]) };

	if (val_exists(v) && !(i == JOBS && val_exists(owner_controller(v))))
		(void)client_delete(d->sim->operator, kinds[i].type(), str_of(d->namespace), val_str(v, metadata, name), &o, NULL);
}

static void delete_pod(struct deed *d)
{
	struct val v = work_any(d, "pods");

	if (val_exists(v))
		(void)client_delete(d->sim->operator, TYPE(core_v1, Pod), str_of(d->namespace), val_str(v, metadata, name),
				    &(struct client_delete_options){ .grace_s = -1 }, NULL);
}

/* Out of its owner's selection, or into another's. A StatefulSet could not go on: the name is taken. */
static void relabel_pod(struct deed *d)
{
	static const char *const apps[] = { "free", "dep0", "set0", "set1", "rc0" };
	struct val v = work_any(d, "pods");

	if (val_exists(v) && !str_eq(val_str(owner_controller(v), kind), STR("StatefulSet")))
		work_patch(d, TYPE(core_v1, Pod), val_str(v, metadata, name),
		      work_tree(d->arena, "{'metadata':{'labels':{'app':'%s'}}}", apps[work_below(d, (int64_t)ARRAY_LEN(apps))]));
}

static void evict(struct deed *d)
{
	for (int64_t n = work_below(d, 4); n >= 0; n--) {
		struct val v = work_any(d, "pods");
		if (!val_exists(v))
			return;
		struct val eviction = work_tree(d->arena, "{'metadata':{'name':'" STR_FMT "','namespace':'%s'}}", STR_ARG(val_str(v, metadata, name)), d->namespace);
		(void)client_create(d->sim->operator, TYPE(core_v1, Pod), eviction, &(struct client_write_options){ .subresource = STR("eviction") }, NULL, NULL);
	}
}

static void select_others(struct deed *d)
{
	static const char *const apps[] = { "dep0", "dep1", "set0", "db0" };
	struct val v = work_any(d, "services/specs");
	const char *app = apps[work_below(d, (int64_t)ARRAY_LEN(apps))];

	if (val_exists(v))
		work_patch(d, TYPE(core_v1, Service), val_str(v, metadata, name), work_tree(d->arena, "{'spec':{'selector':{'app':'%s'}}}", app));
}

static void delete_namespace(struct deed *d)
{
	(void)client_delete(d->sim->operator, TYPE(core_v1, Namespace), STR_NONE, str_of(d->namespace), NULL, NULL);
}

/* ---- nodes ---- */

static void cordon(struct deed *d)
{
	str name = arena_printf(d->arena, "node-%lld", (long long)work_below(d, d->sim->n_nodes));
	const char *off = work_below(d, 3) ? "null" : "true";

	(void)client_patch(d->sim->operator, TYPE(core_v1, Node), STR_NONE, name, CLIENT_PATCH_MERGE,
			   work_tree(d->arena, "{'spec':{'unschedulable':%s}}", off), NULL, NULL, NULL);
}

static void add_node(struct deed *d) { (void)node_add(d->sim, NULL); }

/* For good: it is turned off first. */
static void remove_node(struct deed *d)
{
	struct sim_node *n = &d->sim->nodes[work_below(d, d->sim->n_nodes)];

	if (n->lost || n->number == 0)
		return;
	n->lost = true;
	part_stop(&n->part);
	history_say(&d->sim->history, "== node-%d is removed", n->number);
	(void)client_delete(d->sim->operator, TYPE(core_v1, Node), STR_NONE, arena_printf(d->arena, "node-%d", n->number), NULL, NULL);
}

const struct deed_kind work_changes[] = {
	{ scale, "scale", 16 }, { roll, "change a template", 10 }, { delete_object, "delete something", 12 }, { delete_pod, "delete a pod", 10 },
	{ relabel_pod, "change a pod's label", 4 }, { evict, "evict", 12 }, { select_others, "change a selector", 2 },
	{ delete_namespace, "delete a namespace", 2 }, { cordon, "cordon", 3 }, { add_node, "add a node", 1 }, { remove_node, "remove a node", 1 },
	{ NULL, NULL, 0 },
};
