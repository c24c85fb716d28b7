#include "scheduler/classes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"

static void class_done(struct pod_class *k)
{
	frozen_unref(k->pod);
	for (unsigned i = 0; i < k->n_reasons; i++)
		free((char *)k->reasons[i].p);
	for (uint32_t i = 0; i < k->victims_room; i++)
		free(k->victims[i].found.pods);
	free(k->answers);
	free(k->victims);
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
	if (!k->pod || k->profile != p || k->priority != c->placed->priority || memcmp(&k->request, &c->placed->request, sizeof(k->request)) != 0)
		return false;
	struct val mine = val_get(c->pod, spec), theirs = val_get(k->pod->val, spec);
	return val_equal(val_get(mine, tolerations), val_get(theirs, tolerations)) && val_equal(val_get(mine, nodeSelector), val_get(theirs, nodeSelector)) &&
	       val_equal(val_get(mine, affinity), val_get(theirs, affinity)) && str_eq(val_str(mine, nodeName), val_str(theirs, nodeName));
}

static void make_room(struct pod_class *k, uint32_t n)
{
	if (n <= k->room)
		return;
	k->answers = mem_resize(k->answers, n * sizeof(*k->answers));
	memset(k->answers + k->room, 0, (n - k->room) * sizeof(*k->answers));
	k->room = n;
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
		found->request = c->placed->request;
	}
	found->used = ++t->now;
	make_room(found, c->nodes->cap);
	return found;
}

/* CLASS_REASONS_MAX: there are too many. */
static unsigned reason_number(struct pod_class *k, str text)
{
	unsigned i = 0;

	while (i < k->n_reasons && !str_eq(k->reasons[i], text))
		i++;
	if (i < k->n_reasons || i == CLASS_REASONS_MAX)
		return i;
	char *copy = mem_alloc(text.n + 1);
	memcpy(copy, text.p, text.n);
	k->reasons[k->n_reasons++] = str_span(copy, text.n);
	return i;
}

void class_learn(struct pod_class *k, const struct cycle *c, uint32_t node, enum verdict v, int plugin)
{
	unsigned reason = v == FIT ? 0 : reason_number(k, c->reason);

	if (v == FAILED || reason == CLASS_REASONS_MAX || node == c->nominated_to)
		return;
	k->answers[node] = (struct class_answer){ c->nodes->generation[node], (uint8_t)v, (uint8_t)MAX(plugin, 0), (uint16_t)reason };
}

const struct preempt_victims *class_victims(const struct pod_class *k, const struct cycle *c, uint32_t node)
{
	if (node >= k->victims_room || node == c->nominated_to || k->victims[node].generation != c->nodes->generation[node])
		return NULL;
	return &k->victims[node].found;
}

void class_learn_victims(struct pod_class *k, const struct cycle *c, const struct preempt_victims *v)
{
	if (v->node == c->nominated_to)
		return;
	if (k->victims_room < k->room) {
		k->victims = mem_resize(k->victims, k->room * sizeof(*k->victims));
		memset(k->victims + k->victims_room, 0, (k->room - k->victims_room) * sizeof(*k->victims));
		k->victims_room = k->room;
	}
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
}
