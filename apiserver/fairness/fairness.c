/*
 * STAGE_FAIRNESS. The request's flow schema names its level; the level has a seat, a place in a queue, or neither. Streams other
 * than watches are not counted; a watch keeps its seat only until it has begun.
 */
#include "apiserver/fairness/fairness.h"

#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/fairness/fairness_priv.h"
#include "apiserver/follow.h"
#include "apiserver/pipeline.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/mem.h"

enum { WAIT_MAX_MS = 60000 };

bool request_reads(const struct request *q)
{
	if (!q->is_resource)
		return str_eq(q->method, STR("GET"));
	return q->verb == REQUEST_GET || q->verb == REQUEST_LIST || q->verb == REQUEST_WATCH;
}

int answer_too_many(struct request *q, int64_t retry_after_s)
{
	answer_header(q, STR("retry-after"), arena_printf(q->arena, "%lld", (long long)retry_after_s));
	answer_header(q, STR("x-content-type-options"), STR("nosniff"));
	answer_bytes(q, 429, STR("text/plain; charset=utf-8"), STR("Too many requests, please try again later.\n"));
	return STAGE_ANSWER;
}

/* ---- seats ---- */

struct flow_seat *seat_new(struct flow_control *f, struct request *q)
{
	struct flow_seat *seat = ARENA_NEW(q->arena, struct flow_seat);
	seat->request = q;
	seat->writes = !request_reads(q);
	seat->watch = q->verb == REQUEST_WATCH;
	++*(seat->writes ? &f->writing : &f->reading);
	return seat;
}

static void seat_leave(struct flow_control *f, struct flow_seat *seat)
{
	--*(seat->writes ? &f->writing : &f->reading);
	if (!seat->set)
		return;
	queue_set_leave(seat);
	flow_observe(&seat->series->ran[seat->watch], seat->set->synced_ns - seat->started_ns);
}

void fairness_leave(struct request *q)
{
	struct flow_seat *seat = TAKE(q->seat);
	if (seat)
		seat_leave(q->server->flow, seat);
}

void fairness_count(const struct flow_control *f, unsigned *ret_reading, unsigned *ret_writing)
{
	*ret_reading = f->reading;
	*ret_writing = f->writing;
}

/* ---- answers that are made while they are sent ---- */

struct held {
	struct http_source source, *inner;
	struct loop_timer timer;      /* nobody holds a seat longer than a request may take, however slowly they read */
	struct flow_control *flow;
	struct flow_seat *seat;       /* NULL: given back */
};

static void held_release(struct held *h)
{
	struct flow_seat *seat = TAKE(h->seat);
	loop_timer_stop(&h->timer);
	if (seat)
		seat_leave(h->flow, seat);
}

static void held_due(struct loop_timer *timer) { held_release(CONTAINER_OF(timer, struct held, timer)); }

static ssize_t held_fill(struct http_source *source, char *p, size_t n)
{
	struct held *h = CONTAINER_OF(source, struct held, source);
	ssize_t r = h->inner->fill(h->inner, p, n);
	if (r == 0)
		held_release(h);
	return r;
}

static void held_stop(struct http_source *source)
{
	struct held *h = CONTAINER_OF(source, struct held, source);
	held_release(h);
	h->inner->stop(h->inner);
}

struct http_source *fairness_hold(struct request *q, struct http_source *source)
{
	if (!q->seat)
		return source;
	struct held *h = ARENA_NEW(q->arena, struct held);
	struct request *request = ARENA_NEW(q->arena, struct request); /* the one on the fiber goes before the answer ends */
	*request = *q;
	*h = (struct held){ .source = { .fill = held_fill, .stop = held_stop }, .inner = source,
			    .timer = LOOP_TIMER_INIT(held_due), .flow = q->server->flow, .seat = TAKE(q->seat) };
	h->seat->request = request;
	loop_timer_start(&h->timer, q->begun_ns + q->timeout_ms * NS_PER_MS);
	return &h->source;
}

/* ---- the stage ---- */

/* A quarter of the time that the request has, and never more than a minute, since it came. */
static int64_t wait_until_ns(const struct request *q)
{
	int64_t total = q->server->options.request_timeout_ms;
	if (q->timeout_ms && request_query(q, STR("timeout")).n)
		total = q->timeout_ms;
	return q->begun_ns + MIN(total / 4, (int64_t)WAIT_MAX_MS) * NS_PER_MS;
}

/* (suspends) Whether it has a seat in the end. */
static bool take_seat(struct flow_seat *seat, uint64_t hash, const struct request *q)
{
	enum seat_state state = queue_set_enter(seat, hash);
	int64_t waited = 0;
	if (state == SEAT_WAITING) {
		state = queue_set_wait(seat, wait_until_ns(q)) == 0 ? SEAT_TAKEN : SEAT_NONE;
		waited = clock_now_ns() - seat->arrived_ns;
	}
	if (!seat->set->config.exempt)
		flow_observe(&seat->series->waited[state == SEAT_TAKEN], waited);
	return state == SEAT_TAKEN;
}

static int by_priority(struct flow_control *f, struct request *q)
{
	const struct flow_schema *schema = flow_match(&f->table, q);
	struct priority_level *level = schema->level;
	struct flow_seat *seat = seat_new(f, q);
	uint64_t hash = 0;
	seat->set = &level->queues;
	seat->series = schema->series;
	if (level->queues.config.queues > 1) {
		seat->distinguisher = flow_distinguisher(schema, q);
		hash = flow_hash(schema, seat->distinguisher);
	}
	seat->work = estimate_work(f, q, level->max_seats);
	answer_header(q, STR("x-kubernetes-pf-flowschema-uid"), arena_str(q->arena, schema->uid));
	answer_header(q, STR("x-kubernetes-pf-prioritylevel-uid"), arena_str(q->arena, level->uid));
	if (take_seat(seat, hash, q)) {
		q->seat = seat;
		return STAGE_NEXT;
	}
	--*(seat->writes ? &f->writing : &f->reading);
	return answer_too_many(q, retry_after_note(&level->rejected, clock_wall_ns() / NS_PER_S));
}

int stage_fairness(struct request *q, struct err *err)
{
	(void)err;
	struct flow_control *f = q->server->flow;
	bool streams = !q->timeout_ms;
	if (f->shares && (!streams || q->verb == REQUEST_WATCH))
		return by_priority(f, q);
	return streams ? STAGE_NEXT : max_inflight(f, q);
}

/* ---- the flow control objects ---- */

#define GROUP "flowcontrol.apiserver.k8s.io"

/* All objects of a resource; they live as long as the cache does not change. */
static struct val *objects_of(struct apiserver *s, const char *resource, struct arena *a, size_t *ret_n)
{
	const struct kind *kind = kinds_find(&s->kinds, STR(GROUP), str_of(resource));
	size_t n = kind && kind->objects ? omap_len(kind->objects) : 0, i = 0;
	struct val *v = ARENA_ARRAY(a, struct val, n);
	if (n) {
		struct omap_iter it;
		omap_seek(&it, kind->objects, STR_NONE);
		for (const struct object *o; i < n && (o = omap_next(&it, NULL));)
			v[i++] = o->val;
	}
	*ret_n = i;
	return v;
}

/* What is counted stays, whatever becomes of the schema and the level. */
static struct flow_series *series_of(struct flow_control *f, str schema, str level)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str key = arena_printf(&a, STR_FMT " " STR_FMT, STR_ARG(schema), STR_ARG(level));
	struct flow_series *s = map_get(&f->series, key);
	if (s)
		return s;
	s = mem_zalloc(sizeof *s + key.n);
	char *text = memcpy(s + 1, key.p, key.n);
	s->schema = str_span(text, schema.n);
	s->level = str_span(text + schema.n + 1, level.n);
	map_put(&f->series, str_span(text, key.n), s);
	return s;
}

static void update(struct flow_control *f)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	size_t n;
	const struct val *levels = objects_of(f->server, "prioritylevelconfigurations", &a, &n);
	levels_update(&f->levels, levels, n);
	const struct val *schemas = objects_of(f->server, "flowschemas", &a, &n);
	flow_table_done(&f->table);
	flow_table_init(&f->table, &f->levels, schemas, n);
	for (size_t i = 0; i < f->table.n; i++)
		f->table.schemas[i].series = series_of(f, f->table.schemas[i].name, f->table.schemas[i].level->name);
}

struct flow_control *fairness_new(struct apiserver *s)
{
	struct flow_control *f = mem_zalloc(sizeof *f);
	const struct apiserver_options *o = &s->options;
	unsigned total;
	f->server = s;
	if (__builtin_add_overflow(o->max_requests_inflight, o->max_mutating_requests_inflight, &total))
		total = UINT32_MAX;
	f->shares = o->priority_and_fairness && total;
	if (!f->shares)
		return f;
	levels_init(&f->levels, MIN(total, (unsigned)INT32_MAX / 4));
	f->loads = mem_zalloc((s->kinds.n_kinds + 1) * sizeof *f->loads);
	update(f);
	return f;
}

void fairness_free(struct flow_control *f)
{
	if (!f)
		return;
	struct map_iter it = map_iter(&f->series);
	for (struct flow_series *s; (s = map_next(&it, NULL));)
		free(s);
	map_done(&f->series);
	for (size_t i = 0; f->loads && i < f->server->kinds.n_kinds; i++)
		map_done(&f->loads[i].narrower);
	free(f->loads);
	flow_table_done(&f->table);
	levels_done(&f->levels);
	free(f);
}

/* Waits for a change, at most until a time. 1: there was one; 0: it is time. */
static int wait_for_change(struct follow *changes, int64_t until_ns, struct err *err)
{
	int r;
	{
		DEADLINE_SCOPE(MAX((until_ns - clock_now_ns()) / NS_PER_MS, (int64_t)0));
		r = follow_wait(changes, NULL);
	}
	if (r == 0)
		return 1;
	return fiber_check(err);
}

int fairness_run(struct apiserver *s, struct err *err)
{
	struct flow_control *f = s->flow;
	struct kind *const kinds[] = { kinds_find(&s->kinds, STR(GROUP), STR("prioritylevelconfigurations")),
				       kinds_find(&s->kinds, STR(GROUP), STR("flowschemas")) };
	if (!f->shares)
		return 0;
	CLEANUP(follow_done) struct follow changes;
	follow_init(&changes, s->cache, kinds, ARRAY_LEN(kinds));
	int64_t adjust_ns = clock_now_ns() + LEVELS_ADJUST_MS * NS_PER_MS;
	while (true) {
		int r = wait_for_change(&changes, adjust_ns, err);
		if (r < 0)
			return r;
		if (r > 0) {
			update(f);
		} else {
			levels_adjust(&f->levels);
			adjust_ns = clock_now_ns() + LEVELS_ADJUST_MS * NS_PER_MS;
		}
	}
}
