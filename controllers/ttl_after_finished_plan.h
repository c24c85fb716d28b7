/* ttl_after_finished_plan: how long a finished Job is kept. Pure. */
#ifndef C8S_CONTROLLERS_TTL_AFTER_FINISHED_PLAN_H
#define C8S_CONTROLLERS_TTL_AFTER_FINISHED_PLAN_H

#include "codec/val.h"

/*
 * 1 with the nanoseconds that are left (0 or less: it is to be deleted); 0: it stays, as it runs, has no limit or is being deleted already.
 * -ERR_INVALID for a finished Job that does not say since when.
 */
int ttl_left(struct val job, int64_t now_ns, int64_t *ret_ns, struct err *err);

#endif
