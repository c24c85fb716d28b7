/*
 * work_queue: keys of objects to look at. A key that waits is there once however often it is added; one that is being
 * worked on is not given to a second worker, but comes again afterwards if it was added meanwhile. Failures come back
 * later and later, per key.
 *
 *	static int work(str key, void *arg, struct err *err) { ... }
 *	work_queue_run(&q, 4, work, arg, err);
 */
#ifndef C8S_CLIENT_WORK_QUEUE_H
#define C8S_CLIENT_WORK_QUEUE_H

#include "base/err.h"

struct work_queue;

struct work_queue_options {
	const char *name;            /* for logs and metrics; a constant */
	int64_t base_ms, max_ms;     /* back-off of a failing key: 0: 5 ms, doubling up to 1,000 s */
	double qps;                  /* of all that come back after a failure; 0: 10 per second */
	unsigned burst;              /* 0: 100 */
};

struct work_queue *work_queue_new(const struct work_queue_options *o) NONNULL_RESULT;
/* Nobody may run it. NULL is fine. */
void work_queue_free(struct work_queue *q);

/* Callbacks may call these. The key is copied. */
void work_queue_add(struct work_queue *q, str key);
void work_queue_add_after(struct work_queue *q, str key, int64_t ms);
/* After its back-off, which grows, and when the queue as a whole may. */
void work_queue_add_again(struct work_queue *q, str key);
/* Its back-off begins anew. */
void work_queue_forget(struct work_queue *q, str key);
unsigned work_queue_failures(const struct work_queue *q, str key);
size_t work_queue_length(const struct work_queue *q);

/*
 * (suspends, until canceled) Up to n fibers take keys and call work, which may suspend. Success forgets the key; an error is
 * logged and the key comes back; -ERR_CONFLICT comes back without a line in the log.
 */
typedef int work_fn(str key, void *arg, struct err *err);
int work_queue_run(struct work_queue *q, unsigned n, work_fn *work, void *arg, struct err *err);

#endif
