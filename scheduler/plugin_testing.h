/*
 * What tests of plugins share: a table of nodes with pods, and the answers of a plugin for one more pod as text. JSON is written with ' instead
 * of ".
 */
#ifndef C8S_SCHEDULER_PLUGIN_TESTING_H
#define C8S_SCHEDULER_PLUGIN_TESTING_H

#include "base/buf.h"
#include "codec/json.h"
#include "codec/types.h"
#include "machinery/testing.h"
#include "scheduler/plugin.h"

enum { WORLD_PODS = 64 };

struct world {
	struct nodes table;
	struct arena arena;
	struct placed *pods[WORLD_PODS];
	size_t n_pods;
	const struct plugin *plugin;
	void *config;
	struct storage *storage;      /* of tests that need them */
	struct devices *devices;
	struct scheduler *scheduler;
};

TESTING void world_init(struct world *w, const struct plugin *plugin)
{
	*w = (struct world){ .plugin = plugin };
	nodes_init(&w->table);
}

TESTING void world_done(struct world *w)
{
	for (size_t i = 0; i < w->n_pods; i++) {
		if (w->pods[i]->node != UINT32_MAX)
			nodes_unplace(&w->table, w->pods[i]);
		placed_free(w->pods[i]);
	}
	if (w->config)
		w->plugin->config_free(w->config);
	nodes_done(&w->table);
	arena_done(&w->arena);
}

TESTING struct val world_object(struct world *w, const struct type *type, const char *quoted)
{
	return testing_typed(&w->arena, type, quoted);
}

TESTING uint32_t world_node(struct world *w, const char *quoted)
{
	CLEANUP(frozen_unrefp) struct frozen *f = val_freeze(world_object(w, TYPE(core_v1, Node), quoted));
	return nodes_put(&w->table, f);
}

TESTING struct placed *world_placed(struct world *w, const char *quoted)
{
	CLEANUP(frozen_unrefp) struct frozen *f = val_freeze(world_object(w, TYPE(core_v1, Pod), quoted));
	return w->pods[w->n_pods++] = placed_new(&w->table, f);
}

TESTING struct placed *world_pod(struct world *w, const char *node, const char *quoted)
{
	struct placed *p = world_placed(w, quoted);
	nodes_place(&w->table, p, nodes_find(&w->table, str_of(node)));
	return p;
}

/* The error, or "". */
TESTING str world_configure(struct world *w, const struct type *type, const char *quoted)
{
	struct err err = ERR_INIT;
	return w->plugin->configure(world_object(w, type, quoted), &w->config, &err) < 0 ? arena_str(&w->arena, err_str(&err)) : STR("");
}

TESTING struct cycle world_cycle(struct world *w, const char *pod)
{
	struct placed *p = world_placed(w, pod);
	return (struct cycle){ .scheduler = w->scheduler, .nodes = &w->table, .arena = &w->arena, .pod = p->pod->val, .placed = p, .config = &w->config,
			       .storage = w->storage, .devices = w->devices };
}

/* "a: FIT, b: UNSCHEDULABLE reason", in the order of nodes; "skip"; only those that pre_filter leaves; or what pre_filter says. */
TESTING str world_filter(struct world *w, const char *pod)
{
	static const char *const verdicts[] = { "FIT", "UNSCHEDULABLE", "UNRESOLVABLE", "FAILED" };
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	struct cycle c = world_cycle(w, pod);
	void *state = NULL;
	bool skip = false;
	enum verdict v = w->plugin->pre_filter(&c, &state, &skip);
	const uint32_t *nodes = c.only ? c.only : nodes_order(&w->table);
	size_t n = c.only ? c.n_only : w->table.n_alive;

	if (v != FIT)
		return arena_printf(&w->arena, "%s " STR_FMT, verdicts[v], STR_ARG(c.reason));
	if (skip)
		return STR("skip");
	for (size_t i = 0; i < n; i++) {
		c.reason = STR("");
		v = w->plugin->filter(&c, state, nodes[i]);
		buf_addf(&b, "%s" STR_FMT ": %s%s" STR_FMT, i ? ", " : "", STR_ARG(word_str(&w->table, w->table.name[nodes[i]])), verdicts[v],
			 v == FIT ? "" : " ", STR_ARG(v == FIT ? STR("") : c.reason));
	}
	return arena_str(&w->arena, buf_str(&b));
}

/* "a: 100, b: 0", in the order of nodes, or "skip". */
TESTING str world_score(struct world *w, const char *pod)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	struct cycle c = world_cycle(w, pod);
	const uint32_t *nodes = nodes_order(&w->table);
	size_t n = w->table.n_alive;
	int64_t *scores = ARENA_ARRAY(&w->arena, int64_t, n);
	void *state = NULL;

	if (!w->plugin->pre_score(&c, &state, nodes, n))
		return STR("skip");
	w->plugin->score(&c, state, nodes, n, scores);
	for (size_t i = 0; i < n; i++)
		buf_addf(&b, "%s" STR_FMT ": %lld", i ? ", " : "", STR_ARG(word_str(&w->table, w->table.name[nodes[i]])), (long long)scores[i]);
	return arena_str(&w->arena, buf_str(&b));
}

/* Whether the event may help the pod; NULL: no object. */
TESTING bool world_hint(struct world *w, const struct type *type, const char *pod, unsigned event, const char *old, const char *new)
{
	struct cycle c = { .nodes = &w->table, .arena = &w->arena, .config = &w->config, .storage = w->storage, .devices = w->devices };
	return w->plugin->hint(&c, world_object(w, TYPE(core_v1, Pod), pod), event, old ? world_object(w, type, old) : VAL_EMPTY,
			       new ? world_object(w, type, new) : VAL_EMPTY);
}

#endif
