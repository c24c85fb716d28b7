/*
 * Leases, for keys that go by themselves (events). Keys share one as Kubernetes' do: a lease lives a little longer than
 * asked for, and is given out as long as it still lives long enough, at most a thousand times.
 */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "store/etcd_priv.h"

enum { LEASE_EXTRA_MAX_S = 60, LEASE_EXTRA_PERCENT = 5, LEASE_KEYS_MAX = 1000 };

static int64_t extra_s(int64_t ttl_s) { return MIN(ttl_s * LEASE_EXTRA_PERCENT / 100, (int64_t)LEASE_EXTRA_MAX_S); }

/* It lives as long as asked for, and not much longer (it was not made for a longer time). */
static bool lease_fits(const struct etcd_lease *l, int64_t ttl_s)
{
	int64_t left_ns = l->ends_ns - clock_now_ns();
	int64_t least_ns = ttl_s * NS_PER_S, most_ns = (ttl_s + extra_s(ttl_s)) * NS_PER_S;

	return l->id && l->keys < LEASE_KEYS_MAX && left_ns > least_ns && left_ns < most_ns;
}

static int lease_grant(struct etcd *e, int64_t ttl_s, struct err *err)
{
	CLEANUP(etcd_answer_done) struct etcd_answer a = ETCD_ANSWER_INIT;
	int64_t start_ns = clock_now_ns();

	ttl_s += extra_s(ttl_s);
	struct val request = OBJECT(&a.arena, F(TTL, val_of_int(ttl_s)));
	int r = etcd_call(e, &rpc_Lease_LeaseGrant, ETCD_READ, request, &a, err);
	if (r < 0)
		return r;
	e->lease.id = val_int(a.v, ID);
	e->lease.ends_ns = start_ns + ttl_s * NS_PER_S;
	e->lease.keys = 0;
	return 0;
}

int etcd_lease_get(struct etcd *e, int64_t ttl_s, int64_t *ret_lease, struct err *err)
{
	int r = 0;

	ttl_s = MIN(ttl_s, INT64_C(1) << 31);
	while (r == 0 && e->lease.granting)
		r = fiber_cond_wait(&e->lease.granted, err);
	if (r == 0 && !lease_fits(&e->lease, ttl_s)) {
		e->lease.granting = true;
		r = lease_grant(e, ttl_s, err);
		e->lease.granting = false;
		fiber_cond_broadcast(&e->lease.granted);
	}
	if (r < 0)
		return r;
	e->lease.keys++;
	*ret_lease = e->lease.id;
	return 0;
}

void etcd_lease_forget(struct etcd *e, int64_t lease)
{
	if (e->lease.id == lease)
		e->lease.id = 0;
}
