/*
 * What goes wrong: several fibers, each with one thing after the other, each thing for a while. So any two can fall together: a restart while
 * somebody is cut off, a store that fails while nodes are lost.
 */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "simulation/simulation.h"

enum { PAUSE_MS = 25000, DOWN_MS = 8000, CUT_MS = 30000, LONG_CUT_MS = 90000, SLOW_MS = 10000, FIBERS_MOST = 3, TOUCHES_MOST = 12 };

static void nap(struct simulation *s, int64_t at_most_ms) { (void)fiber_sleep_ms(dice_below(&s->dice, at_most_ms), NULL); }

/* ---- components ---- */

static void start_again(struct simulation *s, struct part *p)
{
	struct err err = ERR_INIT;
	SHIELD_SCOPE();

	if (part_start(p, &err) < 0)
		rules_fail(&s->rules, "a component does not start", STR_NONE, "%s", err.msg);
	history_say(&s->history, "== %s starts", p->name);
	p->in_trouble = false;
}

/* Mostly the one that leads. */
static struct sim_replica *choose_replica(struct simulation *s)
{
	struct sim_replica *all = dice_chance(&s->dice, 5000) ? s->schedulers : s->managers;
	struct sim_replica *leader = replica_leader(all), *other = &all[dice_below(&s->dice, SIM_REPLICAS)];

	return leader && dice_chance(&s->dice, 7500) ? leader : other;
}

static void restart_replica(struct simulation *s)
{
	struct sim_replica *r = choose_replica(s);
	bool killed = dice_chance(&s->dice, 5000);

	if (r->part.in_trouble)
		return;
	r->part.in_trouble = true;
	history_say(&s->history, "== %s %s", r->part.name, killed ? "is killed" : "stops");
	if (killed)
		replica_kill(r);
	else
		part_stop(&r->part);
	nap(s, DOWN_MS);
	start_again(s, &r->part);
}

static void restart_server(struct simulation *s)
{
	struct err err = ERR_INIT;

	if (s->server.in_trouble)
		return;
	s->server.in_trouble = true;
	history_say(&s->history, "== API server stops");
	server_stop(s);
	nap(s, DOWN_MS);
	SHIELD_SCOPE();
	if (server_start(s, &err) < 0)
		rules_fail(&s->rules, "a component does not start", STR_NONE, "%s", err.msg);
	history_say(&s->history, "== API server starts");
	s->server.in_trouble = false;
}

/* ---- links ---- */

static void cut_replica(struct simulation *s)
{
	struct sim_replica *r = choose_replica(s);

	history_say(&s->history, "== %s is cut off", r->part.name);
	replica_cut(r, true);
	nap(s, CUT_MS);
	replica_cut(r, false);
	history_say(&s->history, "== %s is back", r->part.name);
}

static void cut_for_a_while(struct simulation *s, struct client *c, const char *whose, int64_t at_most_ms)
{
	history_say(&s->history, "== %s is cut off", whose);
	link_cut(c, true);
	nap(s, at_most_ms);
	link_cut(c, false);
	history_say(&s->history, "== %s is back", whose);
}

/* One of its connections; what its informers see goes on. */
static void cut_controller(struct simulation *s)
{
	const struct sim_replica *r = replica_leader(s->managers);

	if (!r)
		return;
	size_t i = (size_t)dice_below(&s->dice, (int64_t)r->n_accounts);
	cut_for_a_while(s, r->accounts[i].client, r->accounts[i].name, CUT_MS);
}

/* ---- nodes ---- */

static struct sim_node *choose_node(struct simulation *s) { return &s->nodes[dice_below(&s->dice, s->n_nodes)]; }

static void cut_node(struct simulation *s)
{
	struct sim_node *n = choose_node(s);
	cut_for_a_while(s, n->client, n->part.name, LONG_CUT_MS);
}

static void restart_node(struct simulation *s)
{
	struct sim_node *n = choose_node(s);

	if (n->lost || n->part.in_trouble)
		return;
	n->part.in_trouble = true;
	history_say(&s->history, "== %s stops", n->part.name);
	part_stop(&n->part);
	nap(s, DOWN_MS);
	if (!n->lost)
		start_again(s, &n->part);
}

/* The first is never lost: something has to go on. */
static void lose_node(struct simulation *s)
{
	struct sim_node *n = choose_node(s);

	if (n->lost || n->number == 0)
		return;
	n->lost = true;
	history_say(&s->history, "== %s is lost", n->part.name);
	part_stop(&n->part);
}

/* ---- store and network ---- */

static void slow_store(struct simulation *s)
{
	int64_t before = s->slow_ns;

	if (s->store_in_trouble)
		return;
	s->store_in_trouble = true;
	history_say(&s->history, "== the store is slow");
	s->slow_ns = dice_between(&s->dice, 10, 2000) * NS_PER_MS;
	s->bad_writes = (unsigned)dice_below(&s->dice, 500);
	nap(s, SLOW_MS);
	s->slow_ns = before;
	s->bad_writes = 0;
	s->store_in_trouble = false;
	history_say(&s->history, "== the store is quick again");
}

static void full_store(struct simulation *s)
{
	history_say(&s->history, "== the store takes no writes");
	s->no_writes++;
	nap(s, SLOW_MS);
	s->no_writes--;
	history_say(&s->history, "== the store takes writes again");
}

static void bad_network(struct simulation *s)
{
	struct link_faults *f = &s->hub.faults, before = *f;

	if (s->network_in_trouble)
		return;
	s->network_in_trouble = true;
	history_say(&s->history, "== the network is bad");
	*f = (struct link_faults){ .refused = 1000, .failed = 500, .closed = 300, .expired = 100, .latency_ns = 300 * NS_PER_MS };
	nap(s, SLOW_MS);
	*f = before;
	s->network_in_trouble = false;
	history_say(&s->history, "== the network is as before");
}

/* ---- others who write ---- */

static const struct type *node(void) { return TYPE(core_v1, Node); }
static const struct type *pod(void) { return TYPE(core_v1, Pod); }
static const struct type *claim(void) { return TYPE(core_v1, PersistentVolumeClaim); }
static const struct type *volume(void) { return TYPE(core_v1, PersistentVolume); }
static const struct type *deployment(void) { return TYPE(apps_v1, Deployment); }
static const struct type *replica_set(void) { return TYPE(apps_v1, ReplicaSet); }
static const struct type *stateful_set(void) { return TYPE(apps_v1, StatefulSet); }
static const struct type *job(void) { return TYPE(batch_v1, Job); }
static const struct type *budget(void) { return TYPE(policy_v1, PodDisruptionBudget); }
static const struct type *quota(void) { return TYPE(core_v1, ResourceQuota); }

/* What is touched, and whether its status can be written wrong: its controller shall put that right. */
static const struct {
	const char *prefix;
	const struct type *(*type)(void);
	bool lies;
} touched[] = {
	{ "/registry/minions/", node, false }, { "/registry/pods/", pod, false }, { "/registry/persistentvolumeclaims/", claim, false },
	{ "/registry/persistentvolumes/", volume, false }, { "/registry/deployments/", deployment, true }, { "/registry/replicasets/", replica_set, true },
	{ "/registry/statefulsets/", stateful_set, true }, { "/registry/jobs/", job, false }, { "/registry/poddisruptionbudgets/", budget, false },
	{ "/registry/resourcequotas/", quota, false },
};

static struct val one_of(struct simulation *s, struct arena *a, str prefix)
{
	struct val found = VAL_EMPTY, v;
	struct omap_iter it;
	int64_t n = 0;
	str key;

	omap_seek(&it, s->rules.objects, prefix);
	while (val_exists(v = rules_next(&it, prefix, &key)))
		if (dice_below(&s->dice, ++n) == 0)
			found = v;
	return val_exists(found) ? val_copy(a, found) : VAL_EMPTY;
}

static void touch(struct simulation *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	size_t i = (size_t)dice_below(&s->dice, (int64_t)ARRAY_LEN(touched));
	struct val object = one_of(s, &a, str_of(touched[i].prefix));
	int64_t turn = dice_below(&s->dice, 1000);
	bool lie = touched[i].lies && dice_chance(&s->dice, 5000);

	if (!val_exists(object))
		return;
	struct val annotations = val_put(&a, VAL_EMPTY_OBJECT, atom_make(&a, STR("touched")), VAL_STR(arena_printf(&a, "%lld", (long long)turn)));
	struct val patch = lie ? OBJECT(&a, F(status, OBJECT(&a, F(replicas, val_of_int(turn)))))
			       : OBJECT(&a, F(metadata, OBJECT(&a, F(annotations, annotations))));
	(void)client_patch(s->meddler, touched[i].type(), val_str(object, metadata, namespace), val_str(object, metadata, name), CLIENT_PATCH_MERGE, patch,
			   &(struct client_write_options){ .subresource = lie ? STR("status") : STR_NONE }, NULL, NULL);
}

static void meddle(struct simulation *s)
{
	history_say(&s->history, "== somebody meddles");
	for (int64_t n = dice_between(&s->dice, 2, TOUCHES_MOST); n > 0 && fiber_check(NULL) == 0; n--) {
		touch(s);
		nap(s, 500);
	}
}

/* ---- all of it ---- */

static const struct {
	void (*run)(struct simulation *s);
	int weight;
} faults[] = {
	{ restart_replica, 5 }, { cut_replica, 4 }, { restart_server, 2 }, { cut_controller, 3 }, { cut_node, 4 }, { restart_node, 2 }, { lose_node, 1 },
	{ slow_store, 3 }, { full_store, 2 }, { bad_network, 3 }, { meddle, 4 },
};

static void fault_one(struct simulation *s)
{
	int64_t total = 0, at = 0;
	size_t i;

	for (i = 0; i < ARRAY_LEN(faults); i++)
		total += faults[i].weight;
	int64_t drawn = dice_below(&s->dice, total);
	for (i = 0; (at += faults[i].weight) <= drawn;)
		i++;
	faults[i].run(s);
}

static int one_after_the_other(void *arg)
{
	struct simulation *s = arg;

	while (fiber_check(NULL) == 0 && !s->rules.failed) {
		nap(s, PAUSE_MS);
		if (fiber_check(NULL) == 0)
			fault_one(s);
	}
	return 0;
}

int faults_start(struct simulation *s, struct fiber_group *group, struct err *err)
{
	int r = 0;

	for (int64_t n = dice_between(&s->dice, 1, FIBERS_MOST); r == 0 && n > 0; n--)
		r = fiber_group_spawn(group, one_after_the_other, s, err, "faults");
	return r;
}
