/*
 * Why a pod is where it is, or nowhere: all nodes are asked as a cycle would ask them, none is left out, and nothing is kept. The answer is a free
 * tree: {pod, message, node?, nodes: [{name, plugin, reasons} or {name, total, scores: [{plugin, weight, score}]}]}, where a score is already times
 * its weight.
 */
#include <stdlib.h>

#include "codec/atoms.h"
#include "scheduler/counters.h"
#include "scheduler/fit_error.h"
#include "scheduler/profile.h"
#include "scheduler/scheduler_priv.h"
#include "scheduler/storage.h"

struct why {
	struct arena *arena;          /* of the answer */
	struct cycle *cycle;
	struct profile *profile;
	struct val *nodes;            /* by place in the order */
	uint32_t *fits;
	size_t n_fits;
	struct val_builder *scores;   /* by place in fits */
	struct fit_error reasons;
};

static atom key(struct why *w, const char *name) { return atom_make(w->arena, str_of(name)); }

static struct val text(struct why *w, str s) { return VAL_STR(arena_str(w->arena, s)); }

static struct val reasons_of(struct why *w, str reason)
{
	struct val_builder list = val_builder(w->arena);
	str one;

	for (bool more = true; more;) {
		more = str_cut(reason, '\n', &one, &reason);
		if (one.n)
			val_add_item(&list, text(w, one));
	}
	return val_end_list(&list);
}

static struct val refused(struct why *w, uint32_t node, const char *plugin)
{
	struct val_builder b = val_builder(w->arena);

	val_add_member(&b, A_name, text(w, word_str(w->cycle->nodes, w->cycle->nodes->name[node])));
	val_add_member(&b, key(w, "plugin"), text(w, str_of(plugin)));
	val_add_member(&b, key(w, "reasons"), reasons_of(w, w->cycle->reason));
	return val_end_object(&b);
}

static void add_scores(void *arg, const struct plugin *plugin, int64_t weight, const int64_t *scores, size_t n)
{
	struct why *w = arg;

	for (size_t i = 0; i < n; i++) {
		struct val_builder b = val_builder(w->arena);
		val_add_member(&b, key(w, "plugin"), text(w, str_of(plugin->name)));
		val_add_member(&b, A_weight, val_of_int(weight));
		val_add_member(&b, A_score, val_of_int(scores[i]));
		val_add_item(&w->scores[i], val_end_object(&b));
	}
}

static struct val scored(struct why *w, size_t i, int64_t total)
{
	struct val_builder b = val_builder(w->arena);

	val_add_member(&b, A_name, text(w, word_str(w->cycle->nodes, w->cycle->nodes->name[w->fits[i]])));
	val_add_member(&b, key(w, "total"), val_of_int(total));
	val_add_member(&b, key(w, "scores"), val_end_list(&w->scores[i]));
	return val_end_object(&b);
}

static bool is_in(const struct cycle *c, uint32_t node)
{
	for (size_t i = 0; i < c->n_only; i++)
		if (c->only[i] == node)
			return true;
	return !c->only;
}

/* Nodes that do not fit, in their order; those that do are gathered. */
static void ask_nodes(struct why *w, struct val_builder *out)
{
	struct cycle *c = w->cycle;
	const uint32_t *order = nodes_order(c->nodes);

	for (uint32_t i = 0; i < c->nodes->n_alive; i++) {
		int plugin = -1;
		if (!is_in(c, order[i])) {
			c->reason = STR("node(s) didn't satisfy the pod's node names");
			val_add_item(out, refused(w, order[i], "PreFilter"));
		} else if (cycle_filter(c, w->profile, order[i], &plugin) == FIT) {
			w->fits[w->n_fits++] = order[i];
			continue;
		} else {
			val_add_item(out, refused(w, order[i], plugin >= 0 ? w->profile->plugins[plugin]->name : ""));
		}
		fit_error_add(&w->reasons, c->reason, 1);
	}
}

static int by_total(const void *x, const void *y)
{
	int64_t a = val_as_int(val_find(*(const struct val *)x, STR("total"))), b = val_as_int(val_find(*(const struct val *)y, STR("total")));

	return a > b ? -1 : a < b;
}

/* The best first. */
static struct val rank(struct why *w)
{
	struct scheduler *s = w->cycle->scheduler;
	struct val *list = ARENA_ARRAY(w->arena, struct val, w->n_fits + 1);

	w->scores = ARENA_ARRAY(w->arena, struct val_builder, w->n_fits + 1);
	for (size_t i = 0; i < w->n_fits; i++)
		w->scores[i] = val_builder(w->arena);
	if (w->n_fits)
		cycle_score(w->cycle, w->profile, w->fits, w->n_fits, s->totals, add_scores, w);
	for (size_t i = 0; i < w->n_fits; i++)
		list[i] = scored(w, i, s->totals[i]);
	qsort(list, w->n_fits, sizeof(*list), by_total);
	return val_list(w->arena, list, w->n_fits);
}

static struct val answer(struct why *w, struct val pod, str message, struct val nodes)
{
	struct val_builder b = val_builder(w->arena);
	str node = val_str(pod, spec, nodeName);

	val_add_member(&b, key(w, "pod"), text(w, arena_printf(w->arena, STR_FMT "/" STR_FMT, STR_ARG(val_str(pod, metadata, namespace)),
							      STR_ARG(val_str(pod, metadata, name)))));
	val_add_member(&b, key(w, "message"), text(w, message));
	val_add_member(&b, key(w, "node"), node.n ? text(w, node) : VAL_EMPTY);
	val_add_member(&b, key(w, "nodes"), nodes);
	return val_end_object(&b);
}

static struct val ask_all(struct why *w, struct val pod)
{
	struct cycle *c = w->cycle;
	struct val_builder out = val_builder(w->arena);
	uint64_t asked, narrowed;
	int plugin;
	enum verdict v = cycle_pre_filter(c, w->profile, &plugin, &asked, &narrowed);

	if (v != FIT) {
		str message = fit_error_text(&w->reasons, c->nodes->n_alive, c->reason, STR_NONE);
		const uint32_t *order = nodes_order(c->nodes);
		for (uint32_t i = 0; i < c->nodes->n_alive; i++)
			val_add_item(&out, refused(w, order[i], plugin >= 0 ? w->profile->plugins[plugin]->name : "PreFilter"));
		return answer(w, pod, message, val_end_list(&out));
	}
	ask_nodes(w, &out);
	struct val best = rank(w);
	struct val_builder all = val_builder(w->arena);
	VAL_EACH(x, best)
		val_add_item(&all, *x);
	VAL_EACH(x, val_end_list(&out))
		val_add_item(&all, *x);
	str message = w->n_fits ? arena_printf(w->arena, "%zu/%u nodes fit", w->n_fits, c->nodes->n_alive)
				: fit_error_text(&w->reasons, c->nodes->n_alive, STR_NONE, STR_NONE);
	return answer(w, pod, message, val_end_list(&all));
}

struct val scheduler_why(struct scheduler *s, struct arena *a, struct val pod)
{
	CLEANUP(arena_done) struct arena own = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *frozen = val_freeze(val_without(&own, pod, spec, nodeName));
	struct profile *p = scheduler_profile(s, pod);
	struct cycle c = { .scheduler = s, .nodes = &s->nodes, .arena = &own, .pod = frozen->val, .storage = s->storage, .devices = s->devices };
	struct why w = { .arena = a, .cycle = &c, .profile = p };

	if (!p)
		return answer(&w, pod, arena_printf(a, "no profile has the scheduler name \"" STR_FMT "\"", STR_ARG(val_str(pod, spec, schedulerName))),
			      VAL_EMPTY_LIST);
	while (s->busy)
		if (fiber_cond_wait(&s->idle, NULL) < 0)
			return answer(&w, pod, STR("canceled"), VAL_EMPTY_LIST);
	s->busy = true; /* as for any cycle: filters may suspend */
	/* A pod that is placed already is asked about as if it were not. */
	struct placed *there = map_get(&s->pods, val_str(pod, metadata, uid));
	uint32_t node = there ? there->node : 0;
	if (there && (node == UINT32_MAX || !s->nodes.alive[node]))
		there = NULL;
	if (there) {
		nodes_unplace(&s->nodes, there);
		storage_pod_gone(s->storage, there->pod->val);
	}
	scheduler_make_room(s);
	counters_begin(s->nodes.counters);
	c.placed = placed_new(&s->nodes, frozen);
	w.fits = ARENA_ARRAY(&own, uint32_t, s->nodes.n_alive + 1);
	fit_error_init(&w.reasons, &own);
	cycle_init(&c, p);
	struct val result = ask_all(&w, pod);
	placed_free(c.placed);
	/* It may have left meanwhile, and be free: bindings that are canceled at the end do not wait. */
	if (there && map_get(&s->pods, val_str(pod, metadata, uid)) == there) {
		nodes_place(&s->nodes, there, node);
		storage_pod_placed(s->storage, there->pod->val);
	}
	scheduler_release_events(s);
	return result;
}
