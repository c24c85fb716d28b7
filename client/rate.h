/* rate: so many per second in the long run, after a burst at once. A bucket of tokens that may be borrowed from the future. */
#ifndef C8S_CLIENT_RATE_H
#define C8S_CLIENT_RATE_H

#include "base/clock.h"

struct rate {
	double qps;          /* 0: no limit */
	double burst;
	double used;         /* tokens that have not come back yet; more than burst: taken before their time */
	int64_t at_ns;       /* when that was so */
};

static inline void rate_refill(struct rate *r)
{
	int64_t now_ns = clock_now_ns();

	r->used -= (double)(now_ns - r->at_ns) * r->qps / 1e9;
	if (r->used < 0)
		r->used = 0;
	r->at_ns = now_ns;
}

/* Takes a token: how many nanoseconds to wait for it, 0 when it is there. */
static inline int64_t rate_take(struct rate *r)
{
	if (r->qps <= 0)
		return 0;
	rate_refill(r);
	r->used += 1;
	return r->used <= r->burst ? 0 : (int64_t)((r->used - r->burst) / r->qps * 1e9);
}

/* Takes one if it is there. */
static inline bool rate_try(struct rate *r)
{
	if (r->qps <= 0)
		return true;
	rate_refill(r);
	if (r->used + 1 > r->burst)
		return false;
	r->used += 1;
	return true;
}

#endif
