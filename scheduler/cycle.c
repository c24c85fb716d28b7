/*
 * One pod, from PreFilter to a node. Nodes are examined in the table's order from where the last pod left off, and no more than are needed to
 * find enough that fit; arrays for that belong to the scheduler and are used again by the next pod. Reasons of refusals are counted by their
 * text: plugins give constants or texts of the cycle's arena, so that the same text mostly is the same address.
 */
#include "scheduler/cycle.h"

#include <stdlib.h>

#include "base/log.h"
#include "codec/atoms.h"
#include "scheduler/extenders.h"
#include "scheduler/fit_error.h"
#include "scheduler/scheduler_priv.h"

enum { LEAST_TO_FIND = 100, LEAST_PERCENTAGE = 5 };

#define EACH_AT(i, p, point) for (unsigned i##_k = 0, i; i##_k < (p)->n_order[point] && (i = (p)->order[point][i##_k], true); i##_k++)

static bool has(uint64_t bits, unsigned i) { return bits >> i & 1; }

void cycle_init(struct cycle *c, struct profile *p)
{
	c->state = arena_zero_of(c->arena, MAX(p->n, (size_t)1) * sizeof(void *), _Alignof(void *));
	c->config = p->config;
	c->skip = 0;
	c->only = NULL;
	c->n_only = 0;
}

/* ---- PreFilter ---- */

static int compare_index(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return a < b ? -1 : a > b;
}

/* What is in both; `all` is as it was for the plugins before. */
static void narrow(struct cycle *c, const uint32_t *all, size_t n_all)
{
	if (!all) {
		if (c->only) {
			uint32_t *sorted = ARENA_ARRAY(c->arena, uint32_t, c->n_only + 1);
			memcpy(sorted, c->only, c->n_only * sizeof(*sorted));
			qsort(sorted, c->n_only, sizeof(*sorted), compare_index);
			c->only = sorted;
		}
		return;
	}
	uint32_t *both = ARENA_ARRAY(c->arena, uint32_t, n_all + 1);
	size_t n = 0;
	for (size_t i = 0; i < n_all; i++)
		for (size_t k = 0; k < c->n_only; k++)
			if (all[i] == c->only[k]) {
				both[n++] = all[i];
				break;
			}
	c->only = both;
	c->n_only = n;
}

/* "A B", of the plugins with these bits, by name. */
static str plugin_names(struct cycle *c, const struct profile *p, uint64_t bits)
{
	const char *names[PLUGINS_MAX];
	size_t n = 0;
	str text = STR("");

	for (unsigned i = 0; i < p->n; i++)
		if (has(bits, i)) {
			size_t at = n++;
			for (; at > 0 && strcmp(names[at - 1], p->plugins[i]->name) > 0; at--)
				names[at] = names[at - 1];
			names[at] = p->plugins[i]->name;
		}
	for (size_t i = 0; i < n; i++)
		text = arena_printf(c->arena, STR_FMT "%s%s", STR_ARG(text), i ? " " : "", names[i]);
	return text;
}

static enum verdict nothing_left(struct cycle *c, const struct profile *p, uint64_t narrowed)
{
	str names = plugin_names(c, p, narrowed);

	c->reason = arena_printf(c->arena, "node(s) didn't satisfy plugin(s) [" STR_FMT "] simultaneously", STR_ARG(names));
	return UNRESOLVABLE;
}

static bool filters_by_sums(const struct cycle *c, const struct profile *p)
{
	EACH_AT(i, p, POINT_FILTER)
		if (!has(c->skip, i) && !p->plugins[i]->by_node_alone && !p->plugins[i]->filter_without)
			return false;
	return true;
}

/* What looks at nodes with nominated pods ask of the pod, once. */
static void learn(struct cycle *c, const struct profile *p)
{
	c->by_sums = filters_by_sums(c, p) && !(c->placed->unknown && nodes_are_full(c->nodes));
	c->nominated_to = c->scheduler ? nominations_node_of(&c->scheduler->nominations, val_str(c->pod, metadata, uid)) : NODE_NONE;
	c->only_fixed = !c->placed->unknown;
	for (unsigned r = RES_FIXED; r < c->nodes->n_resources; r++)
		c->only_fixed = c->only_fixed && !c->placed->request.v[r];
}

enum verdict cycle_pre_filter(struct cycle *c, struct profile *p, int *ret_plugin, uint64_t *ret_asked, uint64_t *ret_narrowed)
{
	enum verdict result = FIT;
	str reason = STR_NONE;

	*ret_asked = *ret_narrowed = 0;
	*ret_plugin = -1;
	EACH_AT(i, p, POINT_PRE_FILTER) {
		const uint32_t *all = c->only;
		size_t n_all = c->n_only;
		bool skip = false;

		c->at = i;
		c->only = NULL;
		c->n_only = 0;
		*ret_asked |= UINT64_C(1) << i;
		enum verdict v = p->plugins[i]->pre_filter(c, &c->state[i], &skip);
		if (v == UNSCHEDULABLE) {
			/* The rest is asked all the same: preemption needs their states. */
			result = v;
			reason = c->reason;
			*ret_plugin = (int)i;
		}
		if (v == UNRESOLVABLE || v == FAILED) {
			*ret_plugin = (int)i;
			return v;
		}
		if (skip)
			c->skip |= UINT64_C(1) << i;
		if (!c->only) {
			c->only = all;
			c->n_only = n_all;
			continue;
		}
		narrow(c, all, n_all);
		*ret_narrowed |= UINT64_C(1) << i;
		/* What one alone has named is not there: then no node is examined, and all count as left out. */
		if (!c->n_only && (*ret_narrowed & (*ret_narrowed - 1))) {
			*ret_plugin = -1;
			return nothing_left(c, p, *ret_narrowed);
		}
	}
	c->reason = reason;
	learn(c, p);
	return result;
}

/* ---- Filter ---- */

enum verdict cycle_filter_plain(struct cycle *c, struct profile *p, uint32_t node, int *ret_plugin)
{
	EACH_AT(i, p, POINT_FILTER) {
		if (has(c->skip, i))
			continue;
		c->at = i;
		enum verdict v = p->plugins[i]->filter(c, c->state[i], node);
		if (v != FIT) {
			*ret_plugin = (int)i;
			return v;
		}
	}
	return FIT;
}

void cycle_add_pod(struct cycle *c, struct profile *p, const struct placed *pod, uint32_t node)
{
	EACH_AT(i, p, POINT_PRE_FILTER)
		if (p->plugins[i]->add_pod && !has(c->skip, i)) {
			c->at = i;
			p->plugins[i]->add_pod(c, c->state[i], pod, node);
		}
}

void cycle_remove_pod(struct cycle *c, struct profile *p, const struct placed *pod, uint32_t node)
{
	EACH_AT(i, p, POINT_PRE_FILTER)
		if (p->plugins[i]->remove_pod && !has(c->skip, i)) {
			c->at = i;
			p->plugins[i]->remove_pod(c, c->state[i], pod, node);
		}
}

static bool counts(const struct cycle *c, const struct nominated *n)
{
	return n->placed->priority >= c->placed->priority && n->placed->uid != c->placed->uid;
}

/* What is left of `gone` when pods have come that are nominated to the node. */
static void count_nominated(const struct cycle *c, uint32_t node, struct nominated *first, struct res *left)
{
	const struct nominated_sum *sum = &c->scheduler->nominations.sums[node];

	if (c->only_fixed && sum->least >= c->placed->priority && node != c->nominated_to) {
		for (unsigned r = 0; r < RES_FIXED; r++)
			left->v[r] = res_sub(left->v[r], sum->v[r]);
		return;
	}
	for (struct nominated *n = first; n; n = n->next)
		if (counts(c, n))
			for (unsigned r = 0; r < c->nodes->n_resources; r++)
				left->v[r] = res_sub(left->v[r], n->placed->request.v[r]);
}

/* More pods never make a pod fit where sums decide: that it fits with the nominated ones is enough. */
enum verdict cycle_filter_without(struct cycle *c, struct profile *p, uint32_t node, const struct res *gone, int *ret_plugin)
{
	struct nominated *n = c->scheduler ? nominations_at(&c->scheduler->nominations, node) : NULL;
	struct res left;

	if (n) {
		memcpy(left.v, gone->v, c->nodes->n_resources * sizeof(*left.v));
		count_nominated(c, node, n, &left);
		gone = &left;
	}
	EACH_AT(i, p, POINT_FILTER) {
		const struct plugin *plugin = p->plugins[i];
		if (has(c->skip, i))
			continue;
		c->at = i;
		enum verdict v = plugin->by_node_alone ? plugin->filter(c, c->state[i], node) : plugin->filter_without(c, c->state[i], node, gone);
		if (v != FIT) {
			*ret_plugin = (int)i;
			return v;
		}
	}
	return FIT;
}

/*
 * Pods that are nominated to the node may come, or may not: it has to fit in both cases. A resource they use must be free besides, and an
 * affinity to one of them does not hold before it is there.
 */
static enum verdict filter_with_nominated(struct cycle *c, struct profile *p, uint32_t node, struct nominated *first, int *ret_plugin)
{
	bool any = false;

	for (struct nominated *n = first; n; n = n->next)
		if (counts(c, n)) {
			nodes_place(c->nodes, n->placed, node);
			cycle_add_pod(c, p, n->placed, node);
			any = true;
		}
	enum verdict v = any ? cycle_filter_plain(c, p, node, ret_plugin) : FIT;
	for (struct nominated *n = first; n; n = n->next)
		if (counts(c, n)) {
			cycle_remove_pod(c, p, n->placed, node);
			nodes_unplace(c->nodes, n->placed);
		}
	return v == FIT ? cycle_filter_plain(c, p, node, ret_plugin) : v;
}

enum verdict cycle_filter(struct cycle *c, struct profile *p, uint32_t node, int *ret_plugin)
{
	struct nominated *n = c->scheduler ? nominations_at(&c->scheduler->nominations, node) : NULL;

	if (!n)
		return cycle_filter_plain(c, p, node, ret_plugin);
	static const struct res nothing;
	return c->by_sums ? cycle_filter_without(c, p, node, &nothing, ret_plugin) : filter_with_nominated(c, p, node, n, ret_plugin);
}

uint32_t nodes_to_find(uint32_t n, int percentage)
{
	if (n < LEAST_TO_FIND)
		return n;
	if (!percentage)
		percentage = MAX(50 - (int)(n / 125), LEAST_PERCENTAGE);
	return MAX((uint32_t)((uint64_t)n * (unsigned)percentage / 100), (uint32_t)LEAST_TO_FIND);
}

/* One look at nodes. */
struct look {
	struct cycle *c;
	struct profile *p;
	struct fit_error why;
	uint64_t refused_by;
	uint32_t n_found, n_refused;
	struct tried {                /* the node that the pod waits for, when it has refused */
		bool any;
		uint32_t node;
		uint64_t by;
		str reason;
	} tried;
};

/* cycle_filter, if the node has not said it to a pod of the same class already. */
static enum verdict ask(struct cycle *c, struct profile *p, uint32_t node, int *ret_plugin)
{
	const struct class_answer *known = c->class ? class_answer(c->class, c, node) : NULL;

	if (known) {
		*ret_plugin = known->plugin;
		c->reason = class_reason(c->class, known);
		return known->verdict;
	}
	enum verdict v = cycle_filter(c, p, node, ret_plugin);
	if (c->class)
		class_learn(c->class, c, node, v, *ret_plugin);
	return v;
}

static bool examine(struct look *l, uint32_t node, struct err *err)
{
	struct scheduler *s = l->c->scheduler;
	int plugin = -1;
	enum verdict v = ask(l->c, l->p, node, &plugin);

	s->verdicts[node] = (uint8_t)v;
	if (v == FIT) {
		s->found[l->n_found++] = node;
		return true;
	}
	if (v == FAILED) {
		err_set(err, ERR_INTERNAL, "running \"%s\" filter plugin: " STR_FMT, l->p->plugins[plugin]->name, STR_ARG(l->c->reason));
		return false;
	}
	l->n_refused++;
	/* What the class knows by now is counted there. */
	if (l->c->by_class && class_answer(l->c->class, l->c, node))
		return true;
	if (l->c->by_class && v == UNSCHEDULABLE)
		class_stuck(l->c->class, l->c, node);
	l->refused_by |= UINT64_C(1) << plugin;
	fit_error_add(&l->why, l->c->reason, 1);
	return true;
}

static void count_known(struct look *l)
{
	const struct pod_class *k = l->c->class;

	for (unsigned i = 0; i < k->n_reasons; i++)
		if (k->reasons[i].n && k->reasons[i].plugin >= 0) {
			l->refused_by |= UINT64_C(1) << k->reasons[i].plugin;
			fit_error_add(&l->why, k->reasons[i].text, k->reasons[i].n);
		}
}

/* Only nodes that may fit are examined; those that are passed over count all the same. */
static int examine_open(struct look *l, const uint32_t *nodes, uint32_t n, uint32_t enough, struct err *err)
{
	uint32_t start = l->c->scheduler->next_start % n, last = 0;

	for (int turn = 0; turn < 2; turn++) {
		uint32_t from = turn ? 0 : start, end = turn ? start : n;
		for (; l->n_found < enough && (from = bits_next(l->c->class->open, NULL, from, end)) < end; from++) {
			if (!examine(l, nodes[from], err))
				return -ERR_INTERNAL;
			last = from;
		}
	}
	l->n_refused = (l->n_found < enough ? n : (last + n - start) % n + 1) - l->n_found;
	if (!l->n_found)
		count_known(l);
	return 0;
}

static int examine_all(struct look *l, const uint32_t *nodes, uint32_t n, struct err *err)
{
	struct scheduler *s = l->c->scheduler;
	int percentage = l->p->percentage >= 0 ? l->p->percentage : (int)val_int(s->config->val, percentageOfNodesToScore);
	bool scores = l->p->n_order[POINT_SCORE] || extenders_have(s, EXTENDER_PRIORITIZES);
	uint32_t enough = scores || extenders_have(s, EXTENDER_FILTERS) ? nodes_to_find(n, percentage) : MIN(n, 1U);
	uint32_t at = n ? s->next_start % n : 0;

	if (l->c->by_class)
		return examine_open(l, nodes, n, enough, err);
	for (uint32_t i = 0; i < n && l->n_found < enough; i++, at = at + 1 == n ? 0 : at + 1)
		if (!examine(l, nodes[at], err))
			return -ERR_INTERNAL;
	return 0;
}

/* (suspends) What extenders leave of the nodes that were found. */
static int ask_extenders(struct look *l, struct err *err)
{
	struct scheduler *s = l->c->scheduler;
	size_t n = l->n_found;

	if (!n || !s->n_extenders)
		return 0;
	int r = extenders_filter(s, l->c, s->found, &n, s->verdicts, &l->why, err);
	if (r == 0 && n != l->n_found)
		l->refused_by |= UINT64_C(1) << EXTENDER_BIT;
	l->n_found = (uint32_t)n;
	return r;
}

/* (suspends) The node that the pod waits for is tried before all others. */
static bool try_nominated(struct look *l)
{
	struct scheduler *s = l->c->scheduler;
	str name = val_str(l->c->pod, status, nominatedNodeName);
	uint32_t node = name.n ? nodes_find(l->c->nodes, name) : UINT32_MAX;
	struct look only = *l;
	struct err err = ERR_INIT;

	if (node == UINT32_MAX || !l->c->nodes->alive[node])
		return false;
	fit_error_init(&only.why, l->c->arena);
	if (!examine(&only, node, &err) || !only.n_found || ask_extenders(&only, &err) < 0) {
		if (err.code)
			log_warn("the nominated node could not be examined", KV("node", name), KV("err", &err));
		else if (s->verdicts[node] != FIT)
			l->tried = (struct tried){ true, node, only.refused_by, l->c->reason };
		return false;
	}
	l->n_found = only.n_found;
	return s->found[0] == node && l->n_found == 1;
}

/* What the node said that was tried first counts also when it is not among those that were looked at then. */
static void count_tried(struct look *l, const uint32_t *nodes, uint32_t n)
{
	uint32_t looked = l->n_found + l->n_refused, start = n ? l->c->scheduler->next_start % n : 0;

	for (uint32_t i = 0; i < looked; i++)
		if (nodes[(start + i) % n] == l->tried.node)
			return;
	l->n_refused++;
	l->refused_by |= l->tried.by;
	fit_error_add(&l->why, l->tried.reason, 1);
}

/* Those that PreFilter has left out count as refused by who narrowed. */
static void count_absent(struct look *l, uint64_t narrowed)
{
	struct cycle *c = l->c;
	uint32_t left_out = c->nodes->n_alive - l->n_found - l->n_refused;

	if (left_out)
		fit_error_add(&l->why, arena_printf(c->arena, "node(s) didn't satisfy plugin(s) [" STR_FMT "]",
						    STR_ARG(plugin_names(c, l->p, narrowed))), left_out);
	l->refused_by |= narrowed;
}

/* c->only without those that are gone. */
static void drop_dead(struct cycle *c)
{
	uint32_t *alive = ARENA_ARRAY(c->arena, uint32_t, c->n_only + 1);
	size_t n = 0;

	for (size_t i = 0; i < c->n_only; i++)
		if (c->only[i] < c->nodes->n && c->nodes->alive[c->only[i]])
			alive[n++] = c->only[i];
	c->only = alive;
	c->n_only = n;
}

/* (suspends) Fills s->found. -ERR_INVALID: PreFilter refuses, with c->reason. */
static int find_nodes(struct look *l, uint64_t *ret_asked, struct err *err)
{
	struct cycle *c = l->c;
	struct scheduler *s = c->scheduler;
	uint64_t narrowed;
	int plugin, r;
	enum verdict v = cycle_pre_filter(c, l->p, &plugin, ret_asked, &narrowed);

	if (v == FAILED)
		return err_set(err, ERR_INTERNAL, "running PreFilter plugin \"%s\": " STR_FMT, l->p->plugins[plugin]->name, STR_ARG(c->reason));
	if (v != FIT) {
		l->refused_by |= plugin >= 0 ? UINT64_C(1) << plugin : narrowed;
		memset(s->verdicts, v, c->nodes->n);
		return -ERR_INVALID;
	}
	c->class = classes_find(&s->classes, c, l->p);
	/* Extenders may refuse what was found: then those that were passed over would have to say why. */
	bool by_class = c->class && !c->only && !s->n_extenders;
	if (!by_class)
		memset(s->verdicts, UNRESOLVABLE, c->nodes->n); /* of those that nobody will have examined */
	if (try_nominated(l))
		return 0;
	c->by_class = by_class;
	l->n_found = 0;
	if (c->only)
		drop_dead(c);
	uint32_t n = c->only ? (uint32_t)c->n_only : c->nodes->n_alive;
	const uint32_t *nodes = c->only ? c->only : nodes_order(c->nodes);
	r = examine_all(l, nodes, n, err);
	if (l->tried.any)
		count_tried(l, nodes, n);
	if (c->only)
		count_absent(l, narrowed);
	s->next_start = (s->next_start + l->n_found + l->n_refused) % c->nodes->n_alive;
	return r < 0 ? r : ask_extenders(l, err);
}

/* ---- PostFilter ---- */

/* (suspends) Plugins that may make room. Their texts are put together, until one has a nomination or cannot go on. */
static void make_room(struct cycle *c, struct profile *p, uint64_t asked, struct cycle_result *ret, str *ret_text)
{
	str text = STR("");

	ret->nomination = p->n_order[POINT_POST_FILTER] ? NOMINATION_KEEP : NOMINATION_SET;
	c->verdicts = c->scheduler->verdicts;
	EACH_AT(i, p, POINT_POST_FILTER) {
		uint32_t node = NODE_KEEP;
		c->at = i;
		c->reason = STR_NONE;
		enum verdict v = p->plugins[i]->post_filter(c, c->state[i], has(asked, i), &node);
		if (node != NODE_KEEP) {
			ret->nomination = NOMINATION_SET;
			ret->nominated = node == NODE_NONE ? STR("") : arena_str(c->arena, word_str(c->nodes, c->nodes->name[node]));
		}
		if (v != UNSCHEDULABLE) {
			if (v == FAILED)
				log_warn("no room could be made for a pod", KV("plugin", p->plugins[i]->name), KV("why", c->reason));
			text = c->reason;
			break;
		}
		if (c->reason.n)
			text = arena_printf(c->arena, STR_FMT "%s" STR_FMT, STR_ARG(text), text.n ? ", " : "", STR_ARG(c->reason));
	}
	if (ret->nomination == NOMINATION_KEEP && c->unnominate)
		ret->nomination = NOMINATION_SET; /* to none */
	*ret_text = text;
}

/* ---- PreScore, Score, choice ---- */

void cycle_score(struct cycle *c, struct profile *p, const uint32_t *nodes, size_t n, int64_t *totals, cycle_told *told, void *arg)
{
	int64_t *scores = c->scheduler->scores;
	uint64_t skip = 0;
	void *states[PLUGINS_MAX] = { NULL };

	EACH_AT(i, p, POINT_PRE_SCORE) {
		c->at = i;
		if (!p->plugins[i]->pre_score(c, &states[i], nodes, n))
			skip |= UINT64_C(1) << i;
	}
	for (size_t k = 0; k < n; k++)
		totals[k] = p->n_order[POINT_SCORE] ? 0 : 1;
	EACH_AT(i, p, POINT_SCORE) {
		if (has(skip, i))
			continue;
		c->at = i;
		p->plugins[i]->score(c, states[i], nodes, n, scores);
		for (size_t k = 0; k < n; k++) {
			scores[k] *= p->weight[i];
			totals[k] += scores[k];
		}
		if (told)
			told(arg, p->plugins[i], p->weight[i], scores, n);
	}
}

/* The best; among equal ones by chance. */
static uint32_t choose(struct scheduler *s, const uint32_t *nodes, size_t n, const int64_t *totals)
{
	int64_t best = totals[0];
	size_t equal = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		if (totals[i] > best)
			best = totals[i];
	for (size_t i = 0; i < n; i++)
		equal += totals[i] == best;
	size_t which = equal > 1 ? scheduler_dice(s, equal) : 0;
	for (size_t i = 0; i < n; i++)
		if (totals[i] == best && !which--)
			at = i;
	return nodes[at];
}

/* ---- all of it ---- */

static void fail(struct cycle_result *ret, struct cycle *c, enum cycle_outcome outcome, bool unschedulable, str message)
{
	ret->outcome = outcome;
	ret->unschedulable = unschedulable;
	ret->message = arena_str(c->arena, message);
}

static void refuse(struct look *l, uint64_t asked, bool pre_filter, struct cycle_result *ret)
{
	struct cycle *c = l->c;
	str first = pre_filter ? c->reason : STR_NONE, after;

	make_room(c, l->p, asked, ret, &after);
	fail(ret, c, CYCLE_REFUSED, true, fit_error_text(&l->why, c->nodes->n_alive, first, after));
	ret->refused_by = l->refused_by;
}

void cycle_run(struct cycle *c, struct profile *p, struct cycle_result *ret)
{
	struct scheduler *s = c->scheduler;
	struct look l = { .c = c, .p = p };
	struct err err = ERR_INIT;
	uint64_t asked = 0;

	*ret = (struct cycle_result){ .nomination = NOMINATION_SET };
	cycle_init(c, p);
	fit_error_init(&l.why, c->arena);
	if (!c->nodes->n_alive) {
		fail(ret, c, CYCLE_ERROR, true, STR("no nodes available to schedule pods"));
		return;
	}
	scheduler_make_room(s);
	int r = find_nodes(&l, &asked, &err);
	if (r < 0 && r != -ERR_INVALID) {
		fail(ret, c, CYCLE_ERROR, false, err_str(&err));
		return;
	}
	if (r == -ERR_INVALID || !l.n_found) {
		refuse(&l, asked, r == -ERR_INVALID, ret);
		return;
	}
	ret->outcome = CYCLE_FOUND;
	ret->feasible = l.n_found;
	ret->evaluated = l.n_found + l.n_refused;
	ret->node = s->found[0];
	if (l.n_found == 1)
		return;
	cycle_score(c, p, s->found, l.n_found, s->totals, NULL, NULL);
	if (s->n_extenders)
		extenders_prioritize(s, c, s->found, l.n_found, s->totals);
	ret->node = choose(s, s->found, l.n_found, s->totals);
}

/* ---- Reserve ---- */

void cycle_unreserve(struct cycle *c, struct profile *p, uint32_t node)
{
	for (unsigned k = p->n_order[POINT_RESERVE]; k-- > 0;) {
		unsigned i = p->order[POINT_RESERVE][k];
		c->at = i;
		if (p->plugins[i]->unreserve)
			p->plugins[i]->unreserve(c, node);
	}
}

bool cycle_reserve(struct cycle *c, struct profile *p, uint32_t node, struct cycle_result *ret)
{
	EACH_AT(i, p, POINT_RESERVE) {
		c->at = i;
		enum verdict v = p->plugins[i]->reserve ? p->plugins[i]->reserve(c, node) : FIT;
		if (v == FIT)
			continue;
		cycle_unreserve(c, p, node);
		*ret = (struct cycle_result){ .nomination = NOMINATION_SET };
		if (v == FAILED) {
			fail(ret, c, CYCLE_ERROR, false, arena_printf(c->arena, "running Reserve plugin \"%s\": " STR_FMT, p->plugins[i]->name,
								     STR_ARG(c->reason)));
			return false;
		}
		struct fit_error why;
		fit_error_init(&why, c->arena);
		fit_error_add(&why, c->reason, 1);
		fail(ret, c, CYCLE_REFUSED, true, fit_error_text(&why, 1, STR_NONE, STR_NONE));
		ret->refused_by = UINT64_C(1) << i;
		return false;
	}
	return true;
}
