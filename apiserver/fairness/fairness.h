/*
 * fairness/: whether there is room for a request now. Flow schemas sort requests into priority levels; a level has seats, and
 * what does not get one waits in queues that are served fairly.
 *
 *	fairness.c    the stage
 *	maxinflight.c the stage without priority and fairness: how many are at work
 *	flow.h        which schema and level a request falls under: the flow control objects, as the cache has them
 *	level.h       the levels and how many seats each has; allocate.c: dividing
 *	queue_set.h   the queues of a level: shuffle sharding, virtual time, seats
 *	estimate.c    how many seats a request takes, and for how long
 *	dump.c        /debug/api_priority_and_fairness/...
 *	metrics.c     what is counted, for /metrics
 */
#ifndef C8S_APISERVER_FAIRNESS_FAIRNESS_H
#define C8S_APISERVER_FAIRNESS_FAIRNESS_H

#include "apiserver/request.h"

struct flow_control;
struct fairness_watch;

struct flow_control *fairness_new(struct apiserver *s) NONNULL_RESULT;
void fairness_free(struct flow_control *f); /* NULL is fine */
/* (suspends, until canceled) Follows the flow control objects, and moves seats to the levels that need them. */
int fairness_run(struct apiserver *s, struct err *err);
/* How many are at work now. */
void fairness_count(const struct flow_control *f, unsigned *ret_reading, unsigned *ret_writing);
/* The request is over; or, of a watch, it has begun well: its seat is given back. */
void fairness_leave(struct request *q);
/*
 * A list that is sent while it is made: its seat is kept until it has been made, but no longer than the request may take. Returns
 * the source to send instead.
 */
struct http_source *fairness_hold(struct request *q, struct http_source *source);

/*
 * A watch has begun (of the objects of this name, "": all), and ends: writes are more work where many hear of them. The handle
 * may be NULL.
 */
struct fairness_watch *fairness_watch_begin(struct request *q, str name, const struct field_selector *fields);
void fairness_watch_end(struct fairness_watch *w);

/* Answers /debug/api_priority_and_fairness/NAME; -ERR_NOT_FOUND. */
int fairness_dump(struct request *q, str name, struct err *err);
/* apiserver_flowcontrol_... */
void fairness_metrics(const struct flow_control *f, struct buf *b);

#endif
