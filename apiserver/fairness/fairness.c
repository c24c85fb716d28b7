/*
 * STAGE_FAIRNESS: whether there is room for a request now. Reads and writes have limits of their own; streams do not count,
 * and system:masters are let in whatever there is at work. Who is turned away is told when to come again.
 */
#include "apiserver/fairness/fairness.h"

#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/pipeline.h"
#include "apiserver/user.h"
#include "base/mem.h"

struct flow_control {
	unsigned reading, writing; /* at work now */
};

struct flow_seat {
	unsigned *counted;
};

struct flow_control *fairness_new(struct apiserver *s)
{
	(void)s;
	return mem_zalloc(sizeof(struct flow_control));
}

void fairness_free(struct flow_control *f) { free(f); }

int fairness_run(struct apiserver *s, struct err *err)
{
	(void)s, (void)err;
	return 0;
}

static bool writes(const struct request *q)
{
	return !str_eq(q->method, STR("GET")) && !str_eq(q->method, STR("HEAD")) && !str_eq(q->method, STR("OPTIONS"));
}

int stage_fairness(struct request *q, struct err *err)
{
	(void)err;
	struct flow_control *flow = q->server->flow;
	bool writing = writes(q);
	unsigned *at_work = writing ? &flow->writing : &flow->reading;
	unsigned limit = writing ? q->server->options.max_mutating_requests_inflight :
				   q->server->options.max_requests_inflight;
	if (!q->timeout_ms) /* a stream */
		return STAGE_NEXT;
	bool full = limit && *at_work >= limit;
	if (full && user_is_master(&q->user))
		return STAGE_NEXT;
	if (full) {
		answer_header(q, STR("retry-after"), STR("1"));
		answer_bytes(q, 429, STR("text/plain; charset=utf-8"), STR("Too many requests, please try again later.\n"));
		return STAGE_ANSWER;
	}
	++*at_work;
	q->seat = ARENA_NEW(q->arena, struct flow_seat);
	q->seat->counted = at_work;
	return STAGE_NEXT;
}

void fairness_count(const struct flow_control *f, unsigned *ret_reading, unsigned *ret_writing)
{
	*ret_reading = f->reading;
	*ret_writing = f->writing;
}

void fairness_leave(struct request *q)
{
	if (q->seat)
		--*q->seat->counted;
	q->seat = NULL;
}
