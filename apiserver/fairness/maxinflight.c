/*
 * Without priority and fairness: reads and writes have a limit each; streams do not count, and system:masters are let in whatever
 * there is at work.
 */
#include "apiserver/apiserver.h"
#include "apiserver/fairness/fairness_priv.h"
#include "apiserver/pipeline.h"
#include "apiserver/user.h"

int max_inflight(struct flow_control *f, struct request *q)
{
	bool reads = request_reads(q);
	unsigned at_work = reads ? f->reading : f->writing;
	unsigned limit = reads ? q->server->options.max_requests_inflight : q->server->options.max_mutating_requests_inflight;
	bool full = limit && at_work >= limit;
	if (full && user_is_master(&q->user))
		return STAGE_NEXT;
	if (full)
		return answer_too_many(q, 1);
	q->seat = seat_new(f, q);
	return STAGE_NEXT;
}
