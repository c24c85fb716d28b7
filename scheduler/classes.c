#include "scheduler/classes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"

static void class_done(struct pod_class *k)
{
	frozen_unref(k->pod);
	for (unsigned i = 0; i < k->n_reasons; i++)
		free((char *)k->reasons[i].text.p);
	for (uint32_t i = 0; i < k->victims_room; i++)
		free(k->victims[i].found.pods);
	free(k->answers);
	free(k->victims);
	free(k->open);
	free(k->stuck);
	free(k->offers);
	*k = (struct pod_class){ .pod = NULL };
}

void classes_done(struct classes *t)
{
	for (size_t i = 0; i < CLASSES_MAX; i++)
		class_done(&t->all[i]);
}

/* All that filters by sums read of a pod. */
static bool is_of(const struct pod_class *k, const struct cycle *c, const struct profile *p)
{
	if (!k->pod || k->profile != p || k->priority != c->placed->priority || k->skip != c->skip ||
	    memcmp(&k->request, &c->placed->request, sizeof(k->request)) != 0)
		return false;
	struct val mine = val_get(c->pod, spec), theirs = val_get(k->pod->val, spec);
	return val_equal(val_get(mine, tolerations), val_get(theirs, tolerations)) && val_equal(val_get(mine, nodeSelector), val_get(theirs, nodeSelector)) &&
	       val_equal(val_get(mine, affinity), val_get(theirs, affinity)) && str_eq(val_str(mine, nodeName), val_str(theirs, nodeName));
}

static void make_victims_room(struct pod_class *k)
{
	if (k->victims_room == k->room)
		return;
	k->victims = mem_resize(k->victims, k->room * sizeof(*k->victims));
	memset(k->victims + k->victims_room, 0, (k->room - k->victims_room) * sizeof(*k->victims));
	k->victims_room = k->room;
}

static void make_room(struct pod_class *k, uint32_t n)
{
	if (n <= k->room)
		return;
	k->answers = mem_resize(k->answers, n * sizeof(*k->answers));
	memset(k->answers + k->room, 0, (n - k->room) * sizeof(*k->answers));
	k->open = mem_resize(k->open, BITS_WORDS(n) * sizeof(*k->open));
	k->stuck = mem_resize(k->stuck, BITS_WORDS(n) * sizeof(*k->stuck));
	k->offers = mem_resize(k->offers, BITS_WORDS(n) * sizeof(*k->offers));
	k->room = n;
	k->n_orders = 0;
	if (k->victims) /* not while somebody looks, who keeps what class_victims says of one node when the next is learned */
		make_victims_room(k);
}

/* ---- the sets ---- */

static void forget(struct pod_class *k, const struct nodes *t, uint32_t node)
{
	uint32_t at = t->place[node];

	if (!bits_has(k->open, at))
		k->reasons[k->answers[node].reason].n--;
	if (!bits_has(k->offers, at))
		k->reasons[k->victims[node].reason].n--;
	k->answers[node].generation = 0;
	if (node < k->victims_room)
		k->victims[node].generation = 0;
	bits_add(k->open, at);
	bits_add(k->offers, at);
	bits_remove(k->stuck, at);
}

/* From what is known of each node, after places have changed or too much else has. */
static void fill(struct pod_class *k, const struct nodes *t)
{
	const uint32_t *order = t->order;

	for (unsigned i = 0; i < k->n_reasons; i++)
		k->reasons[i].n = 0;
	memset(k->open, 0xff, BITS_WORDS(k->room) * sizeof(*k->open));
	memset(k->offers, 0xff, BITS_WORDS(k->room) * sizeof(*k->offers));
	memset(k->stuck, 0, BITS_WORDS(k->room) * sizeof(*k->stuck));
	for (uint32_t at = 0; at < t->n_alive; at++) {
		uint32_t node = order[at];
		const struct class_answer *a = &k->answers[node];
		const struct class_victims *v = node < k->victims_room ? &k->victims[node] : NULL;
		if (a->generation == t->generation[node] && a->verdict != FIT) {
			bits_remove(k->open, at);
			k->reasons[a->reason].n++;
			if (a->verdict == UNSCHEDULABLE)
				bits_add(k->stuck, at);
		}
		if (v && v->generation == t->generation[node] && !v->found.n) {
			bits_remove(k->offers, at);
			k->reasons[v->reason].n++;
		}
	}
}

static void catch_up(struct pod_class *k, struct nodes *t)
{
	(void)nodes_order(t);
	if (k->n_orders != t->n_orders || t->n_changes - k->n_changes > NODES_CHANGES)
		fill(k, t);
	else
		for (uint64_t i = k->n_changes + 1; i <= t->n_changes; i++) {
			uint32_t node = t->changed[i % NODES_CHANGES];
			if (t->alive[node])
				forget(k, t, node);
		}
	k->n_orders = t->n_orders;
	k->n_changes = t->n_changes;
}

struct pod_class *classes_find(struct classes *t, const struct cycle *c, const struct profile *p)
{
	struct pod_class *oldest = &t->all[0], *found = NULL;

	if (!c->by_sums || c->placed->unknown)
		return NULL;
	for (size_t i = 0; i < CLASSES_MAX && !found; i++) {
		if (is_of(&t->all[i], c, p))
			found = &t->all[i];
		else if (t->all[i].used < oldest->used)
			oldest = &t->all[i];
	}
	if (!found) {
		found = oldest;
		class_done(found);
		found->pod = frozen_ref(c->placed->pod);
		found->profile = p;
		found->priority = c->placed->priority;
		found->skip = c->skip;
		found->request = c->placed->request;
	}
	found->used = ++t->now;
	make_room(found, c->nodes->cap);
	catch_up(found, c->nodes);
	if (c->nominated_to != NODE_NONE && c->nodes->alive[c->nominated_to])
		forget(found, c->nodes, c->nominated_to);
	return found;
}

/* ---- learning ---- */

/* CLASS_REASONS_MAX: there are too many. */
static unsigned reason_number(struct pod_class *k, str text, int plugin)
{
	unsigned i = 0;

	while (i < k->n_reasons && !(k->reasons[i].plugin == plugin && str_eq(k->reasons[i].text, text)))
		i++;
	if (i < k->n_reasons || i == CLASS_REASONS_MAX)
		return i;
	char *copy = mem_alloc(text.n + 1);
	memcpy(copy, text.p, text.n);
	k->reasons[k->n_reasons++] = (struct class_reason){ .text = str_span(copy, text.n), .plugin = plugin };
	return i;
}

bool class_learn(struct pod_class *k, const struct cycle *c, uint32_t node, enum verdict v, int plugin)
{
	unsigned reason = v == FIT || v == FAILED ? 0 : reason_number(k, c->reason, plugin);
	uint32_t at = c->nodes->place[node];

	if (v == FAILED || reason == CLASS_REASONS_MAX || node == c->nominated_to)
		return false;
	k->answers[node] = (struct class_answer){ c->nodes->generation[node], (uint8_t)v, (uint8_t)MAX(plugin, 0), (uint16_t)reason };
	bits_remove(k->stuck, at);
	if (v == FIT)
		return true;
	bits_remove(k->open, at);
	k->reasons[reason].n++;
	if (v == UNSCHEDULABLE)
		bits_add(k->stuck, at);
	return true;
}

void class_stuck(struct pod_class *k, const struct cycle *c, uint32_t node) { bits_add(k->stuck, c->nodes->place[node]); }

const struct preempt_victims *class_victims(const struct pod_class *k, const struct cycle *c, uint32_t node)
{
	if (node >= k->victims_room || node == c->nominated_to || k->victims[node].generation != c->nodes->generation[node])
		return NULL;
	return &k->victims[node].found;
}

bool class_learn_victims(struct pod_class *k, const struct cycle *c, const struct preempt_victims *v)
{
	unsigned reason = v->n ? 0 : reason_number(k, c->reason, -1);

	if (v->node == c->nominated_to || reason == CLASS_REASONS_MAX)
		return false;
	make_victims_room(k);
	struct class_victims *e = &k->victims[v->node];
	struct placed **pods = e->found.pods;
	if (e->cap < v->n) {
		e->cap = (uint32_t)v->n;
		pods = mem_resize(pods, e->cap * sizeof(*pods));
	}
	if (v->n)
		memcpy(pods, v->pods, v->n * sizeof(*pods));
	e->found = *v;
	e->found.pods = pods;
	e->generation = c->nodes->generation[v->node];
	e->reason = reason;
	if (!v->n) {
		bits_remove(k->offers, c->nodes->place[v->node]);
		k->reasons[reason].n++;
	}
	return true;
}
