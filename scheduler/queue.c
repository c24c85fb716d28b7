/*
 * Where a pod waits, and when it moves:
 *
 *	put ------> active ------> taken ---refused---> unschedulable --an event that helps, or five minutes--> active, or back-off
 *	  \-> gated -^   ^           \-----again-----> back-off of errors --time--> active
 *	                 \---------- back-off --time, or nothing else to do--/
 *
 * Active pods come by priority, then by how long they have waited. Back-offs end at whole seconds, and those of the same second are in the
 * order of active ones; when no pod is active, the first that backs off is taken early, but not one that had an error.
 */
#include "scheduler/queue.h"

#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "scheduler/changes.h"

enum { FLUSH_EVERY_S = 30, FLUSH_AFTER_S = 300, EVENTS = 32 };

enum place { ACTIVE, BACKOFF, ERROR_BACKOFF, UNSCHEDULABLE_PLACE, GATED, TAKEN, PLACES };

struct entry {
	struct queued q;
	str uid;
	enum place place;
	struct list link;             /* unschedulable, gated */
	size_t at;                    /* in its heap */
	int32_t priority;
	uint64_t number;              /* of those added at the same moment the first comes first */
	unsigned refusals, errors;    /* errors: in a row */
	unsigned wants;               /* unschedulable: events that may help */
	uint64_t taken_at;            /* n_events then */
	unsigned meanwhile;           /* what changed in itself while it was taken */
	struct frozen *newer;         /* it changed while it was taken */
	bool gone;                    /* it was removed while it was taken */
};

struct heap {
	struct entry **items;
	size_t n, cap;
	bool (*before)(const struct entry *x, const struct entry *y);
};

struct sched_queue {
	struct sched_queue_options o;
	struct map by_uid;
	struct heap heaps[ERROR_BACKOFF + 1];
	struct list lists[GATED + 1];
	size_t n[PLACES];
	struct list taken;
	struct fiber_cond filled;
	uint64_t next_number;
	size_t n_wanting[EVENTS];     /* by bit: unschedulable ones that it may help */
	uint64_t n_events, last_event[EVENTS]; /* by bit: the number of the last one, so that pods that are taken need not be told of each */
	int64_t flushed_ns;
};

/* ---- heaps ---- */

static bool before_active(const struct entry *x, const struct entry *y)
{
	if (x->priority != y->priority)
		return x->priority > y->priority;
	return x->q.added_ns != y->q.added_ns ? x->q.added_ns < y->q.added_ns : x->number < y->number;
}

static bool before_backoff(const struct entry *x, const struct entry *y)
{
	return x->q.backoff_until_ns != y->q.backoff_until_ns ? x->q.backoff_until_ns < y->q.backoff_until_ns : before_active(x, y);
}

static void heap_set(struct heap *h, size_t at, struct entry *e)
{
	h->items[at] = e;
	e->at = at;
}

static void heap_up(struct heap *h, size_t at)
{
	struct entry *e = h->items[at];

	for (; at > 0 && h->before(e, h->items[(at - 1) / 2]); at = (at - 1) / 2)
		heap_set(h, at, h->items[(at - 1) / 2]);
	heap_set(h, at, e);
}

static void heap_down(struct heap *h, size_t at)
{
	struct entry *e = h->items[at];
	size_t child;

	while ((child = 2 * at + 1) < h->n) {
		if (child + 1 < h->n && h->before(h->items[child + 1], h->items[child]))
			child++;
		if (!h->before(h->items[child], e))
			break;
		heap_set(h, at, h->items[child]);
		at = child;
	}
	heap_set(h, at, e);
}

static void heap_add(struct heap *h, struct entry *e)
{
	if (h->n == h->cap) {
		h->cap = h->cap ? 2 * h->cap : 64;
		h->items = mem_resize(h->items, h->cap * sizeof(struct entry *));
	}
	heap_set(h, h->n++, e);
	heap_up(h, e->at);
}

static void heap_remove(struct heap *h, struct entry *e)
{
	size_t at = e->at;
	struct entry *last = h->items[--h->n];

	if (last == e)
		return;
	heap_set(h, at, last);
	heap_up(h, at);
	heap_down(h, last->at);
}

/* ---- places ---- */

static void count_wanting(struct sched_queue *q, const struct entry *e, int change)
{
	for (unsigned left = e->wants; left; left &= left - 1)
		q->n_wanting[__builtin_ctz(left)] += (size_t)change;
}

static void leave(struct sched_queue *q, struct entry *e)
{
	if (e->place <= ERROR_BACKOFF)
		heap_remove(&q->heaps[e->place], e);
	else
		list_remove(&e->link);
	if (e->place == UNSCHEDULABLE_PLACE)
		count_wanting(q, e, -1);
	q->n[e->place]--;
}

static void enter(struct sched_queue *q, struct entry *e, enum place place)
{
	e->place = place;
	q->n[place]++;
	e->q.gated = place == GATED;
	if (place <= ERROR_BACKOFF)
		heap_add(&q->heaps[place], e);
	else
		list_add(place == TAKEN ? &q->taken : &q->lists[place], &e->link);
	if (place == UNSCHEDULABLE_PLACE) {
		e->wants = e->q.refused_by && q->o.events ? q->o.events(q->o.arg, &e->q) : UINT_MAX;
		count_wanting(q, e, 1);
	}
	if (place == ACTIVE || place == BACKOFF)
		fiber_cond_signal(&q->filled);
}

static void entry_free(struct entry *e)
{
	frozen_unref(e->q.pod);
	frozen_unref(e->newer);
	free(e);
}

static void set_pod(struct entry *e, struct frozen *pod)
{
	frozen_ref(pod);
	frozen_unref(e->q.pod);
	e->q.pod = pod;
	e->priority = (int32_t)val_int(pod->val, spec, priority);
}

/* The map's key is the uid's text in the pod. */
static void change_pod(struct sched_queue *q, struct entry *e, struct frozen *pod)
{
	map_remove(&q->by_uid, e->uid);
	set_pod(e, pod);
	e->uid = val_str(e->q.pod->val, metadata, uid);
	map_put(&q->by_uid, e->uid, e);
}

static int64_t to_window(int64_t ns) { return ns - ns % NS_PER_S; }

/* When a pod that was tried so often may be tried again, counted from the last time. */
static int64_t backoff_ns(const struct sched_queue *q, unsigned count)
{
	int64_t first = q->o.backoff_first_ms * NS_PER_MS, most = q->o.backoff_max_ms * NS_PER_MS;
	unsigned shift = count - 1;

	return shift > 62 || first > most >> shift ? most : first << shift;
}

static void set_backoff(const struct sched_queue *q, struct entry *e)
{
	unsigned count = e->errors ? e->errors : e->refusals;

	e->q.backoff_until_ns = !count || !q->o.backoff_max_ms ? 0 : to_window(e->q.added_ns + backoff_ns(q, count));
}

static bool backs_off(const struct entry *e)
{
	return e->q.backoff_until_ns && e->q.backoff_until_ns >= to_window(clock_now_ns());
}

/* To active, or first to back-off if it has not waited long enough; gates are asked on the way. */
static void requeue(struct sched_queue *q, struct entry *e, bool error)
{
	if (q->o.may_enter && !q->o.may_enter(q->o.arg, e->q.pod->val))
		enter(q, e, GATED);
	else if (backs_off(e))
		enter(q, e, error ? ERROR_BACKOFF : BACKOFF);
	else
		enter(q, e, ACTIVE);
}

/* ---- life ---- */

struct sched_queue *sched_queue_new(const struct sched_queue_options *o)
{
	struct sched_queue *q = mem_zalloc(sizeof(*q));

	q->o = *o;
	map_init(&q->by_uid);
	q->heaps[ACTIVE].before = before_active;
	q->heaps[BACKOFF].before = q->heaps[ERROR_BACKOFF].before = before_backoff;
	for (int i = UNSCHEDULABLE_PLACE; i <= GATED; i++)
		list_init(&q->lists[i]);
	list_init(&q->taken);
	fiber_cond_init(&q->filled, "a pod to schedule");
	q->flushed_ns = clock_now_ns();
	return q;
}

static void free_list(struct list *l)
{
	LIST_EACH_SAFE(struct entry, e, l, link)
		entry_free(e);
}

void sched_queue_free(struct sched_queue *q)
{
	if (!q)
		return;
	for (int i = ACTIVE; i <= ERROR_BACKOFF; i++) {
		for (size_t k = 0; k < q->heaps[i].n; k++)
			entry_free(q->heaps[i].items[k]);
		free(q->heaps[i].items);
	}
	free_list(&q->lists[UNSCHEDULABLE_PLACE]);
	free_list(&q->lists[GATED]);
	free_list(&q->taken);
	map_done(&q->by_uid);
	free(q);
}

/* ---- coming and going ---- */

static void put_new(struct sched_queue *q, struct frozen *pod)
{
	struct entry *e = mem_zalloc(sizeof(*e));

	set_pod(e, pod);
	e->q.link = e;
	e->q.added_ns = clock_now_ns();
	e->number = q->next_number++;
	e->uid = val_str(pod->val, metadata, uid);
	map_put(&q->by_uid, e->uid, e);
	requeue(q, e, false);
}

/* Whether any of these events may help a pod, which nobody refused or these plugins did. */
static bool any_helps(struct sched_queue *q, struct entry *e, unsigned events, struct val old, struct val new)
{
	for (; events; events &= events - 1)
		if (!e->q.refused_by || !q->o.helps || q->o.helps(q->o.arg, &e->q, events & -events, old, new))
			return true;
	return false;
}

void sched_queue_put(struct sched_queue *q, struct frozen *pod)
{
	struct entry *e = map_get(&q->by_uid, val_str(pod->val, metadata, uid));

	if (!e) {
		put_new(q, pod);
		return;
	}
	if (e->place == TAKEN) {
		e->meanwhile |= pod_changes((e->newer ? e->newer : e->q.pod)->val, pod->val);
		frozen_ref(pod);
		frozen_unref(e->newer);
		e->newer = pod;
		return;
	}
	struct frozen *old = frozen_ref(e->q.pod);
	bool moves;
	leave(q, e);
	change_pod(q, e, pod);
	if (e->place == UNSCHEDULABLE_PLACE)
		moves = any_helps(q, e, pod_changes(old->val, pod->val), old->val, pod->val);
	else
		moves = e->place == GATED;
	if (moves)
		requeue(q, e, false);
	else
		enter(q, e, e->place);
	frozen_unref(old);
}

void sched_queue_remove(struct sched_queue *q, str uid)
{
	struct entry *e = map_remove(&q->by_uid, uid);

	if (!e)
		return;
	if (e->place == TAKEN) {
		e->gone = true;
		return;
	}
	leave(q, e);
	entry_free(e);
}

struct queued *sched_queue_try(struct sched_queue *q)
{
	struct heap *h = &q->heaps[q->heaps[ACTIVE].n || q->o.waits_out_backoff ? ACTIVE : BACKOFF];

	if (!h->n)
		return NULL;
	struct entry *e = h->items[0];
	leave(q, e);
	enter(q, e, TAKEN);
	if (!e->q.attempts++)
		e->q.first_ns = clock_now_ns();
	e->q.backoff_until_ns = 0;
	e->taken_at = q->n_events;
	e->meanwhile = 0;
	return &e->q;
}

int sched_queue_take(struct sched_queue *q, struct queued **ret, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0 && !(*ret = sched_queue_try(q)))
		r = fiber_cond_wait(&q->filled, err);
	return r < 0 ? r : 1;
}

/* False: it was removed meanwhile, and is free now. */
static bool take_back(struct sched_queue *q, struct entry *e)
{
	leave(q, e);
	if (e->gone) {
		entry_free(e);
		return false;
	}
	if (e->newer) {
		change_pod(q, e, e->newer);
		frozen_unref(TAKE(e->newer));
	}
	e->q.added_ns = clock_now_ns();
	e->number = q->next_number++;
	return true;
}

static unsigned events_since(const struct sched_queue *q, uint64_t number)
{
	unsigned events = 0;

	for (unsigned i = 0; i < EVENTS; i++)
		events |= (unsigned)(q->last_event[i] > number) << i;
	return events;
}

void sched_queue_refused(struct sched_queue *q, struct queued *p, uint64_t refused_by)
{
	struct entry *e = p->link;

	if (!refused_by) {
		sched_queue_again(q, p);
		return;
	}
	if (!take_back(q, e))
		return;
	e->q.refused_by = refused_by;
	e->refusals++;
	e->errors = 0;
	set_backoff(q, e);
	if (any_helps(q, e, e->meanwhile | events_since(q, e->taken_at), VAL_EMPTY, VAL_EMPTY))
		requeue(q, e, false);
	else
		enter(q, e, UNSCHEDULABLE_PLACE);
}

void sched_queue_again(struct sched_queue *q, struct queued *p)
{
	struct entry *e = p->link;

	if (!take_back(q, e))
		return;
	e->q.refused_by = 0;
	e->errors++;
	set_backoff(q, e);
	requeue(q, e, true);
}

void sched_queue_done(struct sched_queue *q, struct queued *p)
{
	struct entry *e = p->link;

	if (!e->gone)
		map_remove(&q->by_uid, e->uid);
	leave(q, e);
	entry_free(e);
}

/* ---- events and time ---- */

void sched_queue_event(struct sched_queue *q, unsigned event, struct val old, struct val new)
{
	unsigned bit = (unsigned)__builtin_ctz(event);

	q->last_event[bit] = ++q->n_events;
	if (q->n_wanting[bit])
		LIST_EACH_SAFE(struct entry, e, &q->lists[UNSCHEDULABLE_PLACE], link) {
			if (!(e->wants & event) || !any_helps(q, e, event, old, new))
				continue;
			leave(q, e);
			requeue(q, e, false);
		}
	/* What gates wait for besides changes of the pod itself and the end of preemption, which asks by itself. */
	if (event & EV_CLAIM)
		sched_queue_ask_gates(q);
}

static void ask_gates_of(struct sched_queue *q, struct entry *e)
{
	if (val_len(val_get(e->q.pod->val, spec, schedulingGates)) || (q->o.may_enter && !q->o.may_enter(q->o.arg, e->q.pod->val)))
		return;
	leave(q, e);
	requeue(q, e, false);
}

void sched_queue_ask_gates(struct sched_queue *q)
{
	LIST_EACH_SAFE(struct entry, e, &q->lists[GATED], link)
		ask_gates_of(q, e);
}

void sched_queue_ask_gates_of(struct sched_queue *q, str uid)
{
	struct entry *e = map_get(&q->by_uid, uid);

	if (e && e->place == GATED)
		ask_gates_of(q, e);
}

static void end_backoffs(struct sched_queue *q, enum place place)
{
	struct heap *h = &q->heaps[place];

	while (h->n && !backs_off(h->items[0])) {
		struct entry *e = h->items[0];
		leave(q, e);
		requeue(q, e, place == ERROR_BACKOFF);
	}
}

static void flush(struct sched_queue *q, int64_t now)
{
	int64_t after = q->o.flush_after_ms ? q->o.flush_after_ms * NS_PER_MS : FLUSH_AFTER_S * NS_PER_S;

	LIST_EACH_SAFE(struct entry, e, &q->lists[UNSCHEDULABLE_PLACE], link) {
		if (now - e->q.added_ns <= after)
			continue;
		leave(q, e);
		requeue(q, e, false);
	}
}

void sched_queue_tick(struct sched_queue *q)
{
	int64_t now = clock_now_ns();

	end_backoffs(q, BACKOFF);
	end_backoffs(q, ERROR_BACKOFF);
	if (now - q->flushed_ns < FLUSH_EVERY_S * NS_PER_S)
		return;
	q->flushed_ns = now;
	flush(q, now);
}

size_t sched_queue_length(const struct sched_queue *q, const char *which)
{
	if (strcmp(which, "active") == 0)
		return q->n[ACTIVE];
	if (strcmp(which, "backoff") == 0)
		return q->n[BACKOFF] + q->n[ERROR_BACKOFF];
	return q->n[strcmp(which, "gated") == 0 ? GATED : UNSCHEDULABLE_PLACE];
}
