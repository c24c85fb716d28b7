/*
 * The status is computed often and told seldom: when something but the heartbeat has changed, or nodeStatusReportFrequency after it was told
 * last. That varies by up to a half after a change, so that the nodes of a cluster do not all report at once. Patches are made against the
 * node as it was last seen; when one fails, the next try asks the server first.
 *
 * Until the node is ready for the first time, its status is computed ten times a second, and told as soon as it says so.
 */
#include "kubelet/register.h"

#include "apiserver/version.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/node_machine.h"
#include "kubelet/register_priv.h"
#include "machinery/patch.h"

enum { TRIES = 5, FIRST_STEP_MS = 100, LAST_STEP_MS = 7000, FAST_MS = 10, FAST_MAX_MS = 100, READY_GRACE_MS = 120 * 1000, CIDRS_MAX = 1024 };

struct val node_reference(struct arena *a, str name)
{
	return OBJECT(a, F(kind, VAL_LIT("Node")), F(name, val_of_str(name)), F(apiVersion, VAL_LIT("v1")));
}

/* ---- what is known of the node ---- */

static bool is_newer(struct val node, struct val than)
{
	int64_t x, y;

	if (!str_eq(val_str(node, metadata, uid), val_str(than, metadata, uid)) ||
	    !str_to_i64(val_str(node, metadata, resourceVersion), &x) || !str_to_i64(val_str(than, metadata, resourceVersion), &y))
		return true;
	return x > y;
}

void node_keeper_see(struct node_keeper *n, struct frozen *node)
{
	if (n->seen && !is_newer(node->val, n->seen->val)) {
		frozen_unref(node);
		return;
	}
	frozen_unref(n->seen);
	n->seen = node;
}

/* What others decide (spec) is acted on at once. */
static void on_change(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct node_keeper *n = CONTAINER_OF(l, struct node_keeper, listener);

	if (!object) {
		frozen_unref(TAKE(n->seen));
		return;
	}
	node_keeper_see(n, frozen_ref(object));
	if (!old || !val_equal(val_get(old->val, spec), val_get(object->val, spec)))
		node_keeper_hurry(n);
}

static bool is_ready(struct val status)
{
	VAL_EACH(c, val_get(status, conditions))
		if (str_eq(val_str(*c, type), STR("Ready")))
			return str_eq(val_str(*c, status), STR("True"));
	return false;
}

/* ---- the status ---- */

static void keep_allocatable(struct node_keeper *n, struct val allocatable)
{
	if (n->n_allocatable && val_equal(n->o.node->allocatable, allocatable))
		return;
	struct frozen **slot = &n->allocatable[n->n_allocatable++ % NODE_ALLOCATABLE_KEPT];
	frozen_unref(*slot);
	*slot = val_freeze(allocatable);
	n->o.node->allocatable = (*slot)->val;
}

static struct node_facts basic_facts(const struct node_keeper *n)
{
	return (struct node_facts){
		.kubelet_version = str_of(version_info.git_version), .provider_id = val_str(n->config, providerID),
		.labels = n->o.options->node_labels, .taints = val_get(n->config, registerWithTaints),
		.port = (int)val_int(n->config, port), .now_ns = clock_wall_ns(),
	};
}

struct val node_keeper_object(const struct node_keeper *n, struct arena *a)
{
	const struct frozen *known = n->seen ? n->seen : n->initial;
	struct node_facts f = basic_facts(n);
	struct val status;

	if (known)
		return val_copy(a, known->val);
	struct val node = node_object_make(n->o.node, &f, a);
	return node_status_make(n->o.node, &f, a, VAL_EMPTY, &status, NULL) < 0 ? node : val_with(a, node, status, status);
}

int node_keeper_status(struct node_keeper *n, struct arena *a, struct val before, struct node_facts *ret_facts, struct val *ret, struct err *err)
{
	struct node_facts f = basic_facts(n);

	if (n->o.facts)
		n->o.facts(n->o.arg, a, &f);
	int r = node_status_make(n->o.node, &f, a, val_get(before, status), ret, err);
	if (r < 0)
		return r;
	keep_allocatable(n, val_get(*ret, allocatable));
	*ret_facts = f;
	return 0;
}

/* (suspends) Networks of pods; whether they are others than before. */
static bool tell_cidr(struct node_keeper *n, struct val cidrs)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CIDRS_MAX);

	VAL_EACH(cidr, cidrs) {
		if (b.n)
			buf_addc(&b, ',');
		buf_add(&b, val_as_str(*cidr));
	}
	if (!b.n || b.overflow || str_eq(buf_str(&b), n->cidr))
		return false;
	n->cidr = arena_str(&n->arena, buf_str(&b));
	log_info("the network of pods", KV("cidr", n->cidr));
	if (n->o.pod_cidr)
		n->o.pod_cidr(n->o.arg, n->cidr);
	return true;
}

/* ---- telling ---- */

void node_keeper_tell(struct node_keeper *n, struct arena *a, struct val before, struct val after)
{
	if (!n->o.recorder)
		return;
	struct val about = node_reference(a, n->o.node->name);
	VAL_EACH(e, node_status_events(n->o.node, a, before, after))
		record(n->o.recorder, about, str_eq(val_str(*e, type), STR("Warning")) ? RECORD_WARNING : RECORD_NORMAL,
		       arena_str(a, val_str(*e, reason)).p, STR_FMT, STR_ARG(val_str(*e, message)));
}

static void tell_schedulable(struct node_keeper *n, struct arena *a, bool unschedulable)
{
	const char *reason = unschedulable ? "NodeNotSchedulable" : "NodeSchedulable";

	if (n->o.recorder && n->unschedulable != unschedulable)
		record(n->o.recorder, node_reference(a, n->o.node->name), RECORD_NORMAL, reason, "Node " STR_FMT " status is now: %s",
		       STR_ARG(n->o.node->name), reason);
	n->unschedulable = unschedulable;
}

int64_t node_keeper_timeout_ms(const struct node_keeper *n)
{
	return MIN(config_duration_ns(val_get(n->config, nodeStatusUpdateFrequency)) / NS_PER_MS, val_int(n->config, nodeLeaseDurationSeconds) * 1000);
}

/* The schema merges addresses by type, of which there may be two: when they change, they are replaced. */
static struct val with_addresses(struct arena *a, struct val patch, struct val addresses)
{
	struct val replace = val_put(a, VAL_EMPTY_OBJECT, atom_make(a, STR("$patch")), VAL_LIT("replace"));

	return val_with(a, patch, val_list_append(a, addresses, replace), status, addresses);
}

int node_keeper_patch(struct node_keeper *n, struct arena *a, struct val before, struct val after, struct err *err)
{
	struct val old = val_get(before, status, addresses), new = val_get(after, status, addresses), patch;
	bool other_addresses = val_len(old) && !val_equal(old, new);
	struct frozen *node = NULL;

	after = val_with(a, after, val_get(before, spec), spec);
	if (other_addresses)
		after = val_with(a, after, old, status, addresses);
	int r = strategic_patch_create(a, before, after, TYPE(core_v1, Node), 0, &patch, err);
	if (r < 0)
		return r;
	if (other_addresses)
		patch = with_addresses(a, patch, new);
	{
		DEADLINE_SCOPE(node_keeper_timeout_ms(n));
		r = client_patch(n->o.client, TYPE(core_v1, Node), STR_NONE, n->o.node->name, CLIENT_PATCH_STRATEGIC, patch,
				 &(struct client_write_options){ .subresource = STR("status") }, &node, err);
	}
	if (r == 0)
		node_keeper_see(n, node);
	return r;
}

static int64_t report_ns(const struct node_keeper *n) { return config_duration_ns(val_get(n->config, nodeStatusReportFrequency)); }

static bool is_due(const struct node_keeper *n)
{
	return !n->reported || clock_now_ns() - n->reported_ns >= report_ns(n) + n->delay_ns;
}

/* From half of it less to half of it more. */
static int64_t some_delay(int64_t period_ns)
{
	return period_ns > 0 ? (int64_t)random_below((uint64_t)period_ns) - period_ns / 2 : 0;
}

/* Labels that must be there whatever somebody makes of them. */
static struct val with_own_labels(struct arena *a, struct val node)
{
	struct val labels = val_get(node, metadata, labels);

	labels = val_put(a, labels, atom_make(a, STR("kubernetes.io/os")), VAL_LIT("linux"));
	labels = val_put(a, labels, atom_make(a, STR("kubernetes.io/arch")), val_of_str(node_architecture()));
	return val_equal(labels, val_get(node, metadata, labels)) ? node : val_with(a, node, val_sorted(a, labels), metadata, labels);
}

/* (suspends) The node to start from: as it was last seen, or asked for. */
static int current_node(struct node_keeper *n, bool ask, struct frozen **ret, struct err *err)
{
	if (!ask && n->seen) {
		*ret = frozen_ref(n->seen);
		return 0;
	}
	DEADLINE_SCOPE(node_keeper_timeout_ms(n));
	int r = client_get(n->o.client, TYPE(core_v1, Node), STR_NONE, n->o.node->name, ret, err);
	if (r < 0)
		return err_wrap(err, r, "error getting node \"" STR_FMT "\"", STR_ARG(n->o.node->name));
	node_keeper_see(n, frozen_ref(*ret));
	return 0;
}

/* (suspends) only_ready: tell nothing but that the node is ready. */
static int try_update(struct node_keeper *n, bool ask, bool only_ready, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *before = NULL;
	struct node_facts facts;
	struct val status;
	int r = current_node(n, ask, &before, err);

	if (r < 0)
		return r;
	bool other_cidr = tell_cidr(n, val_get(before->val, spec, podCIDRs));
	r = node_keeper_status(n, &a, before->val, &facts, &status, err);
	if (r < 0 || (only_ready && !is_ready(status)))
		return r;
	tell_schedulable(n, &a, val_bool(before->val, spec, unschedulable));
	struct val after = with_own_labels(&a, before->val);
	bool changed = other_cidr || !val_same(after, before->val) || node_status_changed(&a, val_get(before->val, status), status);
	if (!changed && !is_due(n))
		return 0;
	n->delay_ns = changed || !n->reported ? some_delay(report_ns(n)) : 0;
	r = node_keeper_patch(n, &a, before->val, val_with(&a, after, status, status), err);
	if (r < 0)
		return r;
	n->reported = true;
	n->reported_ns = clock_now_ns();
	node_keeper_tell(n, &a, val_get(before->val, status), status);
	return 0;
}

/* (suspends) -ERR_CANCELED alone is passed on. */
static int update(struct node_keeper *n, struct err *err)
{
	for (int i = 0; i < TRIES; i++) {
		struct err why = ERR_INIT;
		int r = try_update(n, i > 0, false, &why);
		if (r == 0)
			return 0;
		if (fiber_check(err) < 0)
			return -ERR_CANCELED;
		log_error("the node's status cannot be updated, will retry", KV("try", i), KV("error", &why));
	}
	log_error("the node's status cannot be updated: retry count exceeded");
	return 0;
}

/* (suspends) Looks whether the node has become ready; the server is only asked when it has. */
static int update_fast(struct node_keeper *n, struct err *err)
{
	struct err why = ERR_INIT;

	if (!n->seen || try_update(n, false, true, &why) == 0)
		return 0;
	return fiber_check(err) < 0 ? -ERR_CANCELED : update(n, err);
}

/* ---- the loops ---- */

/* (suspends) Until somebody is in a hurry, or the time is over. */
static int pause_ms(struct node_keeper *n, int64_t ms, struct err *err)
{
	int r = 0;
	{
		DEADLINE_SCOPE(ms);
		while (r == 0 && !n->hurry)
			r = fiber_cond_wait(&n->wake, err);
	}
	r = fiber_check(err);
	if (r == 0)
		err_clear(err);
	return r;
}

static int register_run(struct node_keeper *n, struct err *err)
{
	for (int64_t step_ms = FIRST_STEP_MS;; step_ms = MIN(2 * step_ms, (int64_t)LAST_STEP_MS)) {
		struct err why = ERR_INIT;
		int r = node_keeper_register(n, &why);
		if (r == 0)
			return 0;
		if (fiber_check(err) < 0)
			return -ERR_CANCELED;
		log_error("the node cannot be registered", KV("node", n->o.node->name), KV("error", &why));
		if ((r = fiber_sleep_ms(step_ms, err)) < 0)
			return r;
	}
}

static int status_run(struct node_keeper *n, struct err *err)
{
	int64_t period_ms = config_duration_ns(val_get(n->config, nodeStatusUpdateFrequency)) / NS_PER_MS;
	int64_t began_ns = clock_now_ns(), next_ns = 0;
	int64_t fast_ms = FAST_MS; /* who looks after nodes mostly needs a few milliseconds for a new one */
	bool fast = true;

	for (;;) {
		bool whole = n->hurry || clock_now_ns() >= next_ns;
		n->hurry = false;
		int r = whole ? update(n, err) : update_fast(n, err);
		if (r < 0)
			return r;
		if (whole)
			next_ns = clock_now_ns() + period_ms * NS_PER_MS + (int64_t)random_below((uint64_t)(period_ms * NS_PER_MS / 25 + 1));
		if (fast && n->seen && is_ready(val_get(n->seen->val, status)))
			fast = false;
		if (fast && clock_now_ns() - began_ns >= READY_GRACE_MS * NS_PER_MS) {
			log_error("the node has not become ready in time after startup");
			fast = false;
		}
		int64_t left_ms = (next_ns - clock_now_ns()) / NS_PER_MS + 1;
		if (fast && left_ms > fast_ms) {
			left_ms = fast_ms;
			fast_ms = MIN(2 * fast_ms, (int64_t)FAST_MAX_MS);
		}
		if ((r = pause_ms(n, MAX(left_ms, (int64_t)1), err)) < 0)
			return r;
	}
}

/* Nobody is told, but those who ask get a node that is up to date. */
static int alone_run(struct node_keeper *n, struct err *err)
{
	struct val cidr = val_get(n->config, podCIDR);
	int64_t period_ms = config_duration_ns(val_get(n->config, nodeStatusUpdateFrequency)) / NS_PER_MS;

	if (val_exists(cidr)) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		(void)tell_cidr(n, LIST(&a, cidr));
	}
	for (;;) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err why = ERR_INIT;
		struct node_facts facts;
		struct val status;
		n->hurry = false;
		int r = node_keeper_status(n, &a, n->initial ? n->initial->val : VAL_EMPTY, &facts, &status, &why);
		if (r == 0) {
			struct frozen *was = n->initial; /* the status may have parts of it */
			n->initial = val_freeze(val_with(&a, node_object_make(n->o.node, &facts, &a), status, status));
			frozen_unref(was);
		} else if (fiber_check(err) < 0) {
			return -ERR_CANCELED;
		} else {
			log_error("the node's status cannot be made", KV("error", &why));
		}
		if ((r = pause_ms(n, period_ms, err)) < 0)
			return r;
	}
}

static int lease_fiber(void *arg)
{
	return node_lease_run(arg, NULL);
}

static void watch_node(struct node_keeper *n)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str fields = arena_printf(&a, "metadata.name=" STR_FMT, STR_ARG(n->o.node->name));

	n->informers = informers_new(n->o.client);
	informer_listen(informers_get(n->informers, TYPE(core_v1, Node), &(struct informer_options){ .fields = fields }), &n->listener);
}

int node_keeper_run(struct node_keeper *n, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(fiber_stopp) struct fiber *lease = NULL;
	struct val registers = val_get(n->config, registerNode);
	int r = 0;

	if (!n->o.client)
		return alone_run(n, err);
	if (n->o.recorder)
		record(n->o.recorder, node_reference(&a, n->o.node->name), RECORD_NORMAL, "Starting", "Starting kubelet.");
	if (!val_exists(registers) || val_as_bool(registers))
		r = register_run(n, err);
	if (r < 0)
		return r;
	watch_node(n);
	if ((r = informers_start(n->informers, err)) < 0 || (r = fiber_spawn(lease_fiber, n, &lease, err, "node lease")) < 0)
		return r;
	return status_run(n, err);
}

/* ---- life ---- */

struct node_keeper *node_keeper_new(const struct node_keeper_options *o)
{
	struct node_keeper *n = mem_zalloc(sizeof(*n));

	n->o = *o;
	n->config = o->options->config ? o->options->config->val : VAL_EMPTY;
	n->listener.changed = on_change;
	fiber_cond_init(&n->wake, "a change of the node");
	return n;
}

void node_keeper_free(struct node_keeper *n)
{
	if (!n)
		return;
	if (n->informers)
		informers_free(n->informers);
	n->o.node->allocatable = VAL_EMPTY;
	for (size_t i = 0; i < NODE_ALLOCATABLE_KEPT; i++)
		frozen_unref(n->allocatable[i]);
	frozen_unref(n->seen);
	frozen_unref(n->initial);
	arena_done(&n->arena);
	free(n);
}

void node_keeper_hurry(struct node_keeper *n)
{
	n->hurry = true;
	fiber_cond_broadcast(&n->wake);
}
