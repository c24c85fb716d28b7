/*
 * write_lock: several fibers write frames to one stream, one frame at a time. A frame that was cut short (by a cancel, a
 * deadline or an error) leaves the stream unusable, and the lock remembers that.
 */
#ifndef C8S_NET_WRITE_LOCK_H
#define C8S_NET_WRITE_LOCK_H

#include "base/fiber.h"
#include "net/stream.h"

struct write_lock {
	bool held, broken;
	struct fiber_cond released;
};

static inline void write_lock_init(struct write_lock *l)
{
	*l = (struct write_lock){ 0 };
	fiber_cond_init(&l->released, "the turn to write");
}

/* (suspends) -ERR_GONE once the stream is broken. */
static inline int write_lock_take(struct write_lock *l, struct err *err)
{
	while (l->held && !l->broken) {
		int r = fiber_cond_wait(&l->released, err);
		if (r < 0)
			return r;
	}
	if (l->broken)
		return err_set(err, ERR_GONE, "the connection is closed");
	l->held = true;
	return 0;
}

static inline void write_lock_release(struct write_lock *l)
{
	l->held = false;
	fiber_cond_broadcast(&l->released);
}

/* (suspends) Writes the parts of one frame, in this order, under the lock. */
static inline int write_lock_write(struct write_lock *l, struct stream *s, str head, str body, struct err *err)
{
	int r = write_lock_take(l, err);
	if (r < 0)
		return r;
	r = head.n ? stream_write(s, head.p, head.n, err) : 0;
	if (r == 0 && body.n)
		r = stream_write(s, body.p, body.n, err);
	l->broken |= r < 0;
	write_lock_release(l);
	return r;
}

#endif
