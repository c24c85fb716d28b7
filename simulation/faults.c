/* What goes wrong: one thing after the other, and several at a time, each for a while. */
#include "base/clock.h"
#include "simulation/simulation.h"

enum { PAUSE_MS = 15000, DOWN_MS = 8000, CUT_MS = 30000, LONG_CUT_MS = 90000, SLOW_MS = 10000 };

static void nap(struct simulation *s, int64_t at_most_ms) { (void)fiber_sleep_ms(dice_below(&s->dice, at_most_ms), NULL); }

static void restart(struct simulation *s, struct part *p)
{
	struct err err = ERR_INIT;

	history_say(&s->history, "== %s stops", p->name);
	part_stop(p);
	nap(s, DOWN_MS);
	SHIELD_SCOPE();
	if (part_start(p, &err) < 0)
		rules_fail(&s->rules, "a component does not start", STR_NONE, "%s", err.msg);
	history_say(&s->history, "== %s starts", p->name);
}

static void restart_scheduler(struct simulation *s) { restart(s, &s->scheduler); }
static void restart_manager(struct simulation *s) { restart(s, &s->manager); }

static void restart_server(struct simulation *s)
{
	struct err err = ERR_INIT;

	history_say(&s->history, "== API server stops");
	server_stop(s);
	nap(s, DOWN_MS);
	SHIELD_SCOPE();
	if (server_start(s, &err) < 0)
		rules_fail(&s->rules, "a component does not start", STR_NONE, "%s", err.msg);
	history_say(&s->history, "== API server starts");
}

static void cut_for_a_while(struct simulation *s, struct client *c, const char *whose, int64_t at_most_ms)
{
	history_say(&s->history, "== %s is cut off", whose);
	link_cut(c, true);
	nap(s, at_most_ms);
	link_cut(c, false);
	history_say(&s->history, "== %s is back", whose);
}

static void cut_controller(struct simulation *s)
{
	if (!s->n_accounts)
		return;
	size_t i = (size_t)dice_below(&s->dice, (int64_t)s->n_accounts);
	cut_for_a_while(s, s->accounts[i].client, s->accounts[i].name, CUT_MS);
}

static void cut_scheduler(struct simulation *s) { cut_for_a_while(s, s->scheduler_client, "scheduler", CUT_MS); }

static void cut_node(struct simulation *s)
{
	struct sim_node *n = &s->nodes[dice_below(&s->dice, s->n_nodes)];
	cut_for_a_while(s, n->client, "a node", LONG_CUT_MS);
}

static void restart_node(struct simulation *s)
{
	struct sim_node *n = &s->nodes[dice_below(&s->dice, s->n_nodes)];

	if (!n->lost)
		restart(s, &n->part);
}

/* The first is never lost: something has to go on. */
static void lose_node(struct simulation *s)
{
	struct sim_node *n = &s->nodes[dice_below(&s->dice, s->n_nodes)];

	if (n->lost || n->number == 0)
		return;
	n->lost = true;
	history_say(&s->history, "== node-%d is lost", n->number);
	part_stop(&n->part);
}

static void slow_store(struct simulation *s)
{
	int64_t before = s->slow_ns;

	history_say(&s->history, "== the store is slow");
	s->slow_ns = dice_between(&s->dice, 10, 2000) * NS_PER_MS;
	s->bad_writes = (unsigned)dice_below(&s->dice, 500);
	nap(s, SLOW_MS);
	s->slow_ns = before;
	s->bad_writes = 0;
	history_say(&s->history, "== the store is quick again");
}

static void bad_network(struct simulation *s)
{
	struct link_faults *f = &s->hub.faults, before = *f;

	history_say(&s->history, "== the network is bad");
	*f = (struct link_faults){ .refused = 1000, .failed = 500, .closed = 300, .expired = 100, .latency_ns = 300 * NS_PER_MS };
	nap(s, SLOW_MS);
	*f = before;
	history_say(&s->history, "== the network is as before");
}

static const struct {
	void (*run)(struct simulation *s);
	int weight;
} faults[] = {
	{ restart_scheduler, 3 }, { restart_manager, 2 }, { restart_server, 2 }, { cut_controller, 4 }, { cut_scheduler, 2 }, { cut_node, 4 },
	{ restart_node, 2 }, { lose_node, 1 }, { slow_store, 3 }, { bad_network, 3 },
};

static void fault_one(struct simulation *s)
{
	int64_t total = 0, at = 0;

	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		total += faults[i].weight;
	int64_t drawn = dice_below(&s->dice, total);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		if ((at += faults[i].weight) <= drawn)
			continue;
		faults[i].run(s);
		return;
	}
}

void faults_run(struct simulation *s)
{
	while (fiber_check(NULL) == 0 && !s->rules.failed) {
		nap(s, PAUSE_MS);
		if (fiber_check(NULL) == 0)
			fault_one(s);
	}
}
