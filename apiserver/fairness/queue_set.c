/*
 * Queues are found by their number; one that no request was ever dealt to costs a pointer. What fair queuing needs of all queues
 * together (how many are active, how many seats they could use) is kept as sums, so that a request that gets its seat at once
 * costs the same with any number of queues; serving looks at the queues with waiting requests only.
 *
 * R and work are seat-seconds in floating point: they never overflow, and lose less than a microsecond after years.
 */
#include "apiserver/fairness/queue_set.h"

#include <math.h>
#include <stdlib.h>

#include "apiserver/metrics_priv.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/mem.h"

/* What a request is guessed to take, as Kubernetes guesses. */
#define SERVICE_SECONDS 0.003

struct queue {
	struct list link;             /* among those with waiting requests */
	struct list waiting, executing;
	size_t index;
	unsigned n_waiting, n_executing;
	unsigned seats;               /* in use, also by what lingers */
	unsigned seats_waiting, initial_waiting;
	double work_waiting;
	double next_r;                /* R at which its next request begins, were all queues served in turns */
};

/* Seats that stay taken after their request; the request itself is gone. */
struct lingering {
	struct list link;
	struct loop_timer timer;
	struct queue_set *set;
	struct queue *queue;
	struct flow_series *series;
	unsigned seats;
};

static double seconds(int64_t ns) { return (double)ns / 1e9; }

void flow_observe(struct flow_duration *d, int64_t ns)
{
#define LIMIT(s) (int64_t)((s) * 1e9),
	static const int64_t limits[] = { FLOW_SECONDS(LIMIT) };
#undef LIMIT
	d->buckets[metrics_bucket(limits, ARRAY_LEN(limits), ns)]++;
	d->sum_ns += ns;
}

/* ---- demand ---- */

static void demand_set(struct seat_demand *d, double value, int64_t now)
{
	double dt = seconds(now - d->since_ns);
	d->elapsed += dt;
	d->sum += dt * d->value;
	d->squares += dt * d->value * d->value;
	d->since_ns = now;
	d->value = value;
	d->highest = MAX(d->highest, value);
}

struct seat_demand_result seat_demand_take(struct seat_demand *d)
{
	demand_set(d, d->value, clock_now_ns());
	struct seat_demand_result r = { .elapsed = d->elapsed, .highest = d->highest };
	if (d->elapsed > 0) {
		r.average = d->sum / d->elapsed;
		double variance = d->squares / d->elapsed - r.average * r.average;
		r.deviation = variance > 0 ? sqrt(variance) : 0;
	}
	*d = (struct seat_demand){ .since_ns = d->since_ns, .value = d->value, .highest = d->value };
	return r;
}

/* ---- time ---- */

/* Brings R up to date: things have been as they are since the last call. To be called before anything is changed. */
static void sync_time(struct queue_set *s, int64_t now)
{
	double dt = seconds(now - s->synced_ns);
	s->synced_ns = now;
	if (s->active)
		s->r += dt * MIN(s->seats + s->seats_waiting, s->limit) / s->active;
}

static void note_demand(struct queue_set *s) { demand_set(&s->demand, s->seats + s->seats_waiting, s->synced_ns); }

/* A queue that could not use all its turns does not save them up: nothing begins before it came. */
static void bound_next(struct queue *queue)
{
	const struct flow_seat *oldest = LIST_FIRST(struct flow_seat, &queue->waiting, link);
	if (oldest && queue->next_r < oldest->arrival_r)
		queue->next_r = oldest->arrival_r;
}

/* ---- queues ---- */

void shuffle_deal(uint64_t hash, unsigned deck, unsigned n, unsigned hand[])
{
	unsigned rest[HAND_MAX] = { 0 };
	for (unsigned i = 0; i < n; i++) {
		uint64_t next = hash / (deck - i);
		rest[i] = (unsigned)(hash - next * (deck - i));
		hash = next;
	}
	/* rest[i] counts the cards that are still there when the i-th one is drawn */
	for (unsigned i = 0; i < n; i++) {
		unsigned card = rest[i];
		for (unsigned k = i; k > 0; k--)
			card += card >= rest[k - 1];
		hand[i] = card;
	}
}

static struct queue *queue_get(struct queue_set *s, size_t i)
{
	if (!s->queues[i]) {
		struct queue *queue = s->queues[i] = mem_zalloc(sizeof *queue);
		queue->index = i;
		list_init(&queue->waiting);
		list_init(&queue->executing);
	}
	return s->queues[i];
}

/* Of the flow's hand the queue with the least work waiting. Where the search begins changes, so that no card is preferred. */
static struct queue *queue_choose(struct queue_set *s, uint64_t hash)
{
	unsigned hand[HAND_MAX], n = s->config.hand_size, best = 0;
	double least = INFINITY;
	shuffle_deal(hash, s->config.queues, n, hand);
	unsigned first = (unsigned)(s->enqueued++ % n);
	for (unsigned i = 0; i < n; i++) {
		unsigned card = hand[(first + i) % n];
		double work = s->queues[card] ? s->queues[card]->work_waiting : 0;
		if (work < least) {
			least = work;
			best = card;
		}
	}
	return queue_get(s, best);
}

static bool queue_is_active(const struct queue *queue) { return queue->n_waiting || queue->n_executing; }

/* A queue that is no longer dealt goes when nothing is left in it. */
static void queue_drop_unused(struct queue_set *s, struct queue *queue)
{
	if (queue->index < s->config.queues || queue_is_active(queue) || queue->seats)
		return;
	s->queues[queue->index] = NULL;
	free(queue);
}

static void wait_count(struct flow_seat *seat, int by)
{
	struct queue *queue = seat->queue;
	unsigned width = seat_work_width(&seat->work);
	queue->n_waiting += (unsigned)by;
	queue->seats_waiting += (unsigned)by * width;
	queue->initial_waiting += (unsigned)by * seat->work.initial;
	queue->work_waiting = queue->n_waiting ? queue->work_waiting + by * seat->total_work : 0;
	seat->set->n_waiting += (unsigned)by;
	seat->set->seats_waiting += (unsigned)by * width;
	seat->series->waiting += (unsigned)by;
	seat->series->seats_waiting += (unsigned)by * width;
}

static void enqueue(struct flow_seat *seat, struct queue *queue)
{
	struct queue_set *s = seat->set;
	seat->queue = queue;
	seat->arrival_r = s->r;
	seat->state = SEAT_WAITING;
	if (!queue_is_active(queue)) {
		queue->next_r = s->r;
		s->active++;
	}
	if (!queue->n_waiting)
		list_add(&s->waiting_queues, &queue->link);
	list_add(&queue->waiting, &seat->link);
	wait_count(seat, 1);
}

static void dequeue(struct flow_seat *seat)
{
	wait_count(seat, -1);
	list_remove(&seat->link);
	if (!seat->queue->n_waiting)
		list_remove(&seat->queue->link);
}

/* ---- seats ---- */

static bool has_room(const struct queue_set *s, unsigned width)
{
	if (s->config.exempt)
		return true;
	if (width > s->limit) /* wider than all there is: alone */
		return s->n_executing == 0;
	return s->seats + width <= s->limit;
}

static void sit_down(struct flow_seat *seat)
{
	struct queue_set *s = seat->set;
	struct queue *queue = seat->queue;
	unsigned width = seat_work_width(&seat->work);
	seat->state = SEAT_TAKEN;
	seat->started_ns = s->synced_ns;
	list_add(queue ? &queue->executing : &s->executing, &seat->link);
	s->n_executing++;
	s->seats += width;
	s->dispatched++;
	if (queue) {
		queue->n_executing++;
		queue->seats += width;
	}
	seat->series->dispatched++;
	seat->series->executing++;
	seat->series->seats += width;
}

/* The request that is next: of the queues the one whose first request would end first; of equals, in turns. */
static struct flow_seat *next_request(const struct queue_set *s)
{
	struct flow_seat *best = NULL;
	double least = INFINITY;
	size_t nearest = SIZE_MAX;
	LIST_EACH(struct queue, queue, &s->waiting_queues, link) {
		struct flow_seat *seat = LIST_FIRST(struct flow_seat, &queue->waiting, link);
		double end = queue->next_r + seat->total_work;
		size_t distance = (queue->index + s->n_queues - s->robin - 1) % s->n_queues;
		if (end < least || (end == least && distance < nearest)) {
			best = seat;
			least = end;
			nearest = distance;
		}
	}
	return best;
}

/* Seats for afterwards that are more than there are: as much work, but narrower and longer. */
static void narrow(struct seat_work *w, unsigned limit)
{
	if (w->final <= limit || !limit)
		return;
	w->after_ns = (int64_t)((double)w->after_ns * w->final / limit);
	w->final = limit;
}

static void serve(struct queue_set *s)
{
	while (s->n_waiting && s->seats < s->limit) {
		struct flow_seat *seat = next_request(s);
		struct queue *queue = seat->queue;
		if (!has_room(s, seat_work_width(&seat->work)))
			break;
		dequeue(seat);
		narrow(&seat->work, s->limit);
		s->robin = queue->index;
		sit_down(seat);
		queue->next_r += seat->total_work;
		bound_next(queue);
		fiber_cond_signal(&seat->served);
	}
	note_demand(s);
}

static enum seat_state reject(struct flow_seat *seat, enum flow_reject why)
{
	seat->set->rejected++;
	seat->series->rejected[why]++;
	return seat->state = SEAT_NONE;
}

enum seat_state queue_set_enter(struct flow_seat *seat, uint64_t hash)
{
	struct queue_set *s = seat->set;
	int64_t now = clock_now_ns();
	sync_time(s, now);
	seat->arrived_ns = now;
	fiber_cond_init(&seat->served, "a seat of the priority level");
	if (!s->config.queues) {
		if (!has_room(s, seat_work_width(&seat->work)))
			return reject(seat, FLOW_REJECT_CONCURRENCY);
		sit_down(seat);
		note_demand(s);
		return SEAT_TAKEN;
	}
	struct queue *queue = queue_choose(s, hash);
	if (s->seats >= s->limit && queue->n_waiting >= s->config.queue_length)
		return reject(seat, FLOW_REJECT_QUEUE_FULL);
	seat->total_work = seat->work.initial * SERVICE_SECONDS + seat->work.final * seconds(seat->work.after_ns);
	enqueue(seat, queue);
	serve(s);
	return seat->state;
}

static int wait_for_seat(struct flow_seat *seat, int64_t until_ns)
{
	int64_t left_ms = (until_ns - clock_now_ns() + NS_PER_MS - 1) / NS_PER_MS;
	DEADLINE_SCOPE(MAX(left_ms, (int64_t)0));
	int r = 0;
	while (seat->state == SEAT_WAITING && r == 0)
		r = fiber_cond_wait(&seat->served, NULL);
	return seat->state == SEAT_TAKEN ? 0 : r;
}

int queue_set_wait(struct flow_seat *seat, int64_t until_ns)
{
	struct queue_set *s = seat->set;
	int r = wait_for_seat(seat, until_ns);
	if (r == 0)
		return 0;
	sync_time(s, clock_now_ns());
	dequeue(seat);
	if (!queue_is_active(seat->queue))
		s->active--;
	bound_next(seat->queue);
	queue_drop_unused(s, TAKE(seat->queue));
	s->canceled++;
	(void)reject(seat, FLOW_REJECT_TIMEOUT);
	/* a wide request may have kept others from seats that are free */
	serve(s);
	return r;
}

/* ---- leaving ---- */

static void give_back(struct queue_set *s, struct queue *queue, struct flow_series *series, unsigned width)
{
	s->seats -= width;
	series->seats -= width;
	if (queue) {
		queue->seats -= width;
		queue_drop_unused(s, queue);
	}
	serve(s);
}

static void linger_end(struct loop_timer *timer)
{
	struct lingering *l = CONTAINER_OF(timer, struct lingering, timer);
	struct queue_set *s = l->set;
	sync_time(s, clock_now_ns());
	list_remove(&l->link);
	s->n_lingering--;
	give_back(s, l->queue, l->series, l->seats);
	free(l);
}

static void linger(struct flow_seat *seat, unsigned width)
{
	struct lingering *l = mem_alloc(sizeof *l);
	*l = (struct lingering){ .timer = LOOP_TIMER_INIT(linger_end), .set = seat->set, .queue = seat->queue,
				 .series = seat->series, .seats = width };
	list_add(&seat->set->lingering, &l->link);
	seat->set->n_lingering++;
	loop_timer_start(&l->timer, seat->set->synced_ns + seat->work.after_ns);
}

void queue_set_leave(struct flow_seat *seat)
{
	struct queue_set *s = seat->set;
	struct queue *queue = seat->queue;
	unsigned width = seat_work_width(&seat->work);
	int64_t now = clock_now_ns(), took = now - seat->started_ns;
	sync_time(s, now);
	list_remove(&seat->link);
	seat->state = SEAT_NONE;
	s->n_executing--;
	seat->series->executing--;
	if (queue) {
		queue->n_executing--;
		if (!queue_is_active(queue))
			s->active--;
		queue->next_r -= seat->work.initial * (SERVICE_SECONDS - seconds(took));
		bound_next(queue);
	}
	if (seat->work.after_ns > 0) {
		linger(seat, width);
		serve(s);
	} else {
		give_back(s, queue, seat->series, width);
	}
}

/* ---- the set ---- */

void queue_set_init(struct queue_set *s)
{
	int64_t now = clock_now_ns();
	*s = (struct queue_set){ .synced_ns = now, .demand.since_ns = now };
	list_init(&s->waiting_queues);
	list_init(&s->executing);
	list_init(&s->lingering);
}

void queue_set_done(struct queue_set *s)
{
	LIST_EACH_SAFE(struct lingering, l, &s->lingering, link) {
		loop_timer_stop(&l->timer);
		list_remove(&l->link);
		free(l);
	}
	for (size_t i = 0; i < s->n_queues; i++)
		free(s->queues[i]);
	free(s->queues);
}

void queue_set_configure(struct queue_set *s, const struct queue_set_config *config)
{
	sync_time(s, clock_now_ns());
	if (config->queues > s->n_queues) {
		struct queue **more = mem_zalloc(config->queues * sizeof *more);
		for (size_t i = 0; i < s->n_queues; i++)
			more[i] = s->queues[i];
		free(s->queues);
		s->queues = more;
		s->n_queues = config->queues;
	}
	s->config = *config;
	for (size_t i = config->queues; i < s->n_queues; i++)
		if (s->queues[i])
			queue_drop_unused(s, s->queues[i]);
	serve(s);
}

void queue_set_limit(struct queue_set *s, unsigned limit)
{
	sync_time(s, clock_now_ns());
	s->limit = limit;
	serve(s);
}

struct queue_figures queue_set_figures(const struct queue_set *s, size_t i)
{
	const struct queue *q = s->queues[i];
	if (!q)
		return (struct queue_figures){ 0 };
	return (struct queue_figures){
		.waiting = q->n_waiting, .executing = q->n_executing, .seats = q->seats, .initial_waiting = q->initial_waiting,
		.seats_waiting = q->seats_waiting, .next_r = q->next_r, .work_waiting = q->work_waiting,
		.waiters = &q->waiting, .executors = &q->executing,
	};
}
