/*
 * fairness/: whether there is room for a request now. Flow schemas sort requests into priority levels; a level has seats, and
 * what does not get one waits in queues that are served fairly.
 *
 *	fairness.c    the stage
 *	flow.h        which schema and level a request falls under: the flow control objects, as the cache has them
 *	queue_set.h   the queues of a level: shuffle sharding, virtual time, seats
 *	estimate.c    how many seats a request takes, and for how long
 */
#ifndef C8S_APISERVER_FAIRNESS_FAIRNESS_H
#define C8S_APISERVER_FAIRNESS_FAIRNESS_H

#include "apiserver/request.h"

struct flow_control;

struct flow_control *fairness_new(struct apiserver *s) NONNULL_RESULT;
void fairness_free(struct flow_control *f); /* NULL is fine */
/* (suspends, until canceled) Follows the flow control objects, and moves seats to the levels that need them. */
int fairness_run(struct apiserver *s, struct err *err);
/* How many are at work now. */
void fairness_count(const struct flow_control *f, unsigned *ret_reading, unsigned *ret_writing);
/* The request is over; or, of a watch, it has begun well: its seat is given back. */
void fairness_leave(struct request *q);

#endif
