/*
 * A key is in the queue's map for as long as there is something to remember about it: that it waits, is worked on, will
 * be added later, or has failed. It waits in one list, in the order of coming.
 */
#include "client/work_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/mem.h"
#include "client/rate.h"

enum { BASE_MS = 5, MAX_MS = 1000 * 1000, QPS = 10, BURST = 100, DOUBLINGS_MAX = 62, HIRE_AGAIN_MS = 1000 };

/* Longer waits end then: decades, and far from the end of the clock. Times come from objects, whose owners write what they like. */
#define AFTER_MAX_MS (INT64_MAX / NS_PER_MS / 4)

struct entry {
	struct work_queue *queue;
	struct list link;        /* in waiting */
	struct loop_timer later;
	unsigned failures;
	bool at_work;
	bool again;              /* added while at work */
	uint32_t n;
	char key[];
};

struct work_queue {
	const char *name;
	int64_t base_ms, max_ms;
	struct rate rate;
	struct map entries;
	struct list waiting;
	size_t n_waiting;
	struct fiber_cond filled;
};

struct work_queue *work_queue_new(const struct work_queue_options *o)
{
	struct work_queue *q = mem_zalloc(sizeof *q);

	q->name = o->name;
	q->base_ms = o->base_ms ? o->base_ms : BASE_MS;
	q->max_ms = o->max_ms ? o->max_ms : MAX_MS;
	q->rate = (struct rate){ .qps = o->qps > 0 ? o->qps : QPS, .burst = o->burst ? o->burst : BURST };
	map_init(&q->entries);
	list_init(&q->waiting);
	fiber_cond_init(&q->filled, "work");
	return q;
}

void work_queue_free(struct work_queue *q)
{
	struct entry *e;

	if (!q)
		return;
	struct map_iter it = map_iter(&q->entries);
	while ((e = map_next(&it, NULL))) {
		loop_timer_stop(&e->later);
		free(e);
	}
	map_done(&q->entries);
	free(q);
}

/* ---- entries ---- */

static str entry_key(const struct entry *e) { return str_span(e->key, e->n); }

static void entry_wait(struct entry *e)
{
	struct work_queue *q = e->queue;

	if (e->at_work) {
		e->again = true;
	} else if (!list_linked(&e->link)) {
		list_add(&q->waiting, &e->link);
		q->n_waiting++;
		fiber_cond_signal(&q->filled);
	}
}

static void on_later(struct loop_timer *timer) { entry_wait(CONTAINER_OF(timer, struct entry, later)); }

static struct entry *entry_of(struct work_queue *q, str key)
{
	struct entry *e = map_get(&q->entries, key);

	if (e)
		return e;
	e = mem_zalloc(sizeof *e + key.n);
	e->queue = q;
	e->later = (struct loop_timer)LOOP_TIMER_INIT(on_later);
	e->n = (uint32_t)key.n;
	memcpy(e->key, key.p, key.n);
	(void)map_put(&q->entries, entry_key(e), e);
	return e;
}

/* Frees it if there is nothing to remember. */
static void entry_settle(struct entry *e)
{
	if (e->at_work || e->failures || list_linked(&e->link) || loop_timer_running(&e->later))
		return;
	(void)map_remove(&e->queue->entries, entry_key(e));
	free(e);
}

/* ---- adding ---- */

void work_queue_add(struct work_queue *q, str key) { entry_wait(entry_of(q, key)); }

static void entry_after_ns(struct entry *e, int64_t ns)
{
	int64_t due_ns = clock_now_ns() + ns;

	if (ns <= 0)
		entry_wait(e);
	else if (!loop_timer_running(&e->later) || due_ns < e->later.due_ns)
		loop_timer_start(&e->later, due_ns);
}

void work_queue_add_after(struct work_queue *q, str key, int64_t ms)
{
	entry_after_ns(entry_of(q, key), ms <= 0 ? 0 : MIN(ms, (int64_t)AFTER_MAX_MS) * NS_PER_MS);
}

void work_queue_add_again(struct work_queue *q, str key)
{
	struct entry *e = entry_of(q, key);
	int64_t ms = e->failures < DOUBLINGS_MAX && q->base_ms <= q->max_ms >> e->failures ? q->base_ms << e->failures : q->max_ms;
	int64_t rate_ns = rate_take(&q->rate);

	e->failures++;
	entry_after_ns(e, MAX(ms * NS_PER_MS, rate_ns));
}

void work_queue_forget(struct work_queue *q, str key)
{
	struct entry *e = map_get(&q->entries, key);

	if (!e)
		return;
	e->failures = 0;
	entry_settle(e);
}

unsigned work_queue_failures(const struct work_queue *q, str key)
{
	const struct entry *e = map_get(&q->entries, key);
	return e ? e->failures : 0;
}

size_t work_queue_length(const struct work_queue *q) { return q->n_waiting; }

/* ---- working ---- */

/* Fibers that work come when there is work and go when there is none: at rest a queue has the stack of its caller only. */
struct workers {
	struct work_queue *queue;
	work_fn *work;
	void *arg;
	unsigned n, n_starting; /* of them, those that have not yet taken anything */
};

static struct entry *take(struct work_queue *q)
{
	struct entry *e = LIST_FIRST(struct entry, &q->waiting, link);

	list_remove(&e->link);
	q->n_waiting--;
	e->at_work = true;
	return e;
}

static void worked(struct entry *e, int r, const struct err *err)
{
	struct work_queue *q = e->queue;

	e->at_work = false;
	if (r >= 0) {
		e->failures = 0;
	} else if (r != -ERR_CANCELED || fiber_check(NULL) != -ERR_CANCELED) {
		if (r != -ERR_CONFLICT)
			log_warn("work failed, trying again later", KV("queue", q->name), KV("key", entry_key(e)), KV("err", err));
		work_queue_add_again(q, entry_key(e));
	}
	if (e->again) {
		e->again = false;
		entry_wait(e);
	}
	entry_settle(e);
}

static int worker(void *arg)
{
	struct workers *w = arg;

	w->n_starting--;
	while (!list_empty(&w->queue->waiting) && fiber_check(NULL) == 0) {
		struct entry *e = take(w->queue);
		struct err err = ERR_INIT;
		worked(e, w->work(entry_key(e), w->arg, &err), &err);
	}
	w->n--;
	return 0;
}

/* (suspends) One more; without memory for its stack those that are there have to do, or a later try. */
static int hire(struct workers *w, struct fiber_group *group, struct err *err)
{
	struct err why = ERR_INIT;

	if (fiber_group_spawn(group, worker, w, &why, "%s", w->queue->name) < 0) {
		log_warn("no worker, trying again", KV("queue", w->queue->name), KV("err", &why));
		return fiber_sleep_ms(HIRE_AGAIN_MS, err);
	}
	w->n++;
	w->n_starting++;
	return 0;
}

int work_queue_run(struct work_queue *q, unsigned n, work_fn *work, void *arg, struct err *err)
{
	struct workers w = { .queue = q, .work = work, .arg = arg };
	CLEANUP(fiber_group_done) struct fiber_group workers;
	int r = fiber_check(err);

	fiber_group_init(&workers);
	while (r == 0)
		r = w.n < n && q->n_waiting > w.n_starting ? hire(&w, &workers, err) : fiber_cond_wait(&q->filled, err);
	return r;
}
