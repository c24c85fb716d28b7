/*
 * Nobody compares clocks: a lease counts as held for its duration from when this process saw it change last, by its own
 * clock.
 */
#include "client/election.h"

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"

enum { LEASE_MS = 15000, RENEW_MS = 10000, RETRY_MS = 2000 };

struct state {
	const struct election *e;
	int64_t lease_ms, renew_ms, retry_ms;
	struct frozen *lease;        /* as it was seen last; NULL: never */
	int64_t seen_ns;
};

static str holder(const struct frozen *lease) { return lease ? val_str(lease->val, spec, holderIdentity) : STR_NONE; }
static bool is_ours(const struct state *s) { return s->lease && str_eq(holder(s->lease), s->e->identity); }

static bool is_valid(const struct state *s)
{
	return s->lease && s->seen_ns + val_int(s->lease->val, spec, leaseDurationSeconds) * NS_PER_S > clock_now_ns();
}

/* Takes the reference over. */
static void see(struct state *s, struct frozen *lease)
{
	if (!str_eq(holder(s->lease), holder(lease)))
		log_info("new leader", KV("lease", s->e->name), KV("leader", holder(lease)));
	frozen_unref(s->lease);
	s->lease = lease;
	s->seen_ns = clock_now_ns();
}

/* ---- writing the lease ---- */

static struct val now_text(struct arena *a)
{
	char out[TIME_TEXT_MAX];
	int64_t wall_ns = clock_wall_ns();
	struct timestamp t = { .seconds = wall_ns / NS_PER_S, .nanos = (int32_t)(wall_ns % NS_PER_S) };
	return val_of_str(arena_str(a, microtime_format(t, out)));
}

/* The lease in our name; lease is the one to change, or VAL_NONE. */
static struct val in_our_name(const struct state *s, struct arena *a, struct val lease)
{
	struct val now = now_text(a), spec = val_get(lease, spec);
	bool renewed = str_eq(val_str(spec, holderIdentity), s->e->identity);
	int64_t transitions = val_int(spec, leaseTransitions) + (val_exists(lease) && !renewed);

	spec = OBJECT(a, F(holderIdentity, val_of_str(s->e->identity)), F(leaseDurationSeconds, val_of_int(s->lease_ms / 1000)),
		      F(acquireTime, renewed ? val_get(spec, acquireTime) : now), F(renewTime, now),
		      F(leaseTransitions, val_of_int(transitions)));
	if (val_exists(lease))
		return val_with(a, lease, spec, spec);
	return OBJECT(a, F(metadata, OBJECT(a, F(name, val_of_str(s->e->name)), F(namespace, val_of_str(s->e->namespace)))),
		      F(spec, spec));
}

static int write_lease(struct state *s, struct val old, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct frozen *lease = NULL;
	struct val object = in_our_name(s, &a, old);
	int r = val_exists(old) ? client_update(s->e->client, TYPE(coordination_v1, Lease), object, NULL, &lease, err) :
				  client_create(s->e->client, TYPE(coordination_v1, Lease), object, NULL, &lease, err);
	if (r >= 0)
		see(s, lease);
	return r;
}

/* Becomes the leader or stays it: 1; 0 when somebody else is. */
static int try_to_lead(struct state *s, struct err *err)
{
	const struct election *e = s->e;
	CLEANUP(frozen_unrefp) struct frozen *lease = NULL;

	if (is_ours(s) && is_valid(s) && write_lease(s, s->lease->val, err) >= 0)
		return 1;
	int r = client_get(e->client, TYPE(coordination_v1, Lease), e->namespace, e->name, &lease, err);
	if (r == -ERR_NOT_FOUND)
		return (r = write_lease(s, VAL_EMPTY, err)) < 0 ? r : 1;
	if (r < 0)
		return r;
	if (!s->lease || !val_equal(s->lease->val, lease->val))
		see(s, frozen_ref(lease));
	if (holder(lease).n && is_valid(s) && !is_ours(s))
		return 0;
	return (r = write_lease(s, lease->val, err)) < 0 ? r : 1;
}

/* ---- the story ---- */

static void tell(const struct state *s, const char *what)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	log_info(what, KV("lease", s->e->name), KV("identity", s->e->identity));
	if (!s->e->recorder)
		return;
	struct val about = OBJECT(&a, F(kind, VAL_LIT("Lease")), F(apiVersion, VAL_LIT("coordination.k8s.io/v1")),
				  F(metadata, val_get(s->lease->val, metadata)));
	record(s->e->recorder, about, RECORD_NORMAL, "LeaderElection", STR_FMT " %s", STR_ARG(s->e->identity), what);
}

static int acquire(struct state *s, void *arg, struct err *err)
{
	for (bool told = false;;) {
		struct err why = ERR_INIT;
		int r = try_to_lead(s, &why);
		if (r > 0)
			return 0;
		if (r == 0 && !told && s->e->waits)
			s->e->waits(arg);
		told |= r == 0;
		if (r < 0 && fiber_check(NULL) == 0)
			log_warn("the lease cannot be had", KV("lease", s->e->name), KV("err", &why));
		r = fiber_sleep_ms(s->retry_ms + (int64_t)random_below((uint64_t)(s->retry_ms * 6 / 5)), err);
		if (r < 0)
			return r;
	}
}

/* Renews until that was not possible for renew_ms. */
static int keep(struct state *s, struct err *err)
{
	int64_t renewed_ns = clock_now_ns();

	for (;;) {
		struct err why = ERR_INIT;
		int r = fiber_sleep_ms(s->retry_ms, err);
		if (r < 0)
			return r;
		{
			DEADLINE_SCOPE(s->renew_ms - (clock_now_ns() - renewed_ns) / NS_PER_MS);
			r = try_to_lead(s, &why);
		}
		if (r > 0)
			renewed_ns = clock_now_ns();
		else if (fiber_check(err) < 0)
			return -ERR_CANCELED;
		else if (r == 0 || clock_now_ns() - renewed_ns >= s->renew_ms * NS_PER_MS)
			return err_set(err, ERR_UNAVAILABLE, "leadership by lease " STR_FMT " was lost", STR_ARG(s->e->name));
	}
}

/* Lets others in at once. */
static void give_back(struct state *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	SHIELD_SCOPE();
	DEADLINE_SCOPE(s->renew_ms);

	if (!is_ours(s))
		return;
	struct val now = now_text(&a);
	struct val spec = OBJECT(&a, F(holderIdentity, VAL_LIT("")), F(leaseDurationSeconds, val_of_int(1)), F(acquireTime, now),
				 F(renewTime, now), F(leaseTransitions, val_get(s->lease->val, spec, leaseTransitions)));
	(void)client_update(s->e->client, TYPE(coordination_v1, Lease), val_with(&a, s->lease->val, spec, spec), NULL, NULL, NULL);
}

/* The leading fiber, and what tells the keeping one that it has ended. */
struct lead {
	int (*fn)(void *arg);
	void *arg;
	struct fiber *keeper;        /* NULL: it has ended before */
	int result;
	bool ended;
};

static int lead_run(void *arg)
{
	struct lead *l = arg;
	l->result = l->fn(l->arg);
	l->ended = true;
	if (l->keeper)
		fiber_cancel(l->keeper);
	return l->result;
}

/* keep() on a fiber that lead_run can cancel without canceling the caller. */
struct keeping {
	struct state *s;
	struct err *err;
};

static int keep_run(void *arg)
{
	struct keeping *k = arg;
	return keep(k->s, k->err);
}

static int lead_and_keep(struct state *s, int (*fn)(void *arg), void *arg, struct err *err)
{
	struct lead l = { .fn = fn, .arg = arg };
	struct keeping k = { .s = s, .err = err };
	CLEANUP(fiber_stopp) struct fiber *leader = NULL;
	CLEANUP(fiber_stopp) struct fiber *keeper = NULL;
	int kept = 0;
	int r = fiber_spawn(keep_run, &k, &keeper, err, "lease " STR_FMT, STR_ARG(s->e->name));

	l.keeper = keeper;
	if (r == 0)
		r = fiber_spawn(lead_run, &l, &leader, err, "leader of " STR_FMT, STR_ARG(s->e->name));
	if (r == 0 && (r = fiber_join(keeper, &kept, err)) == 0)
		l.keeper = keeper = NULL;
	if (leader)
		(void)fiber_stop(TAKE(leader));
	return r < 0 ? r : l.ended && kept == -ERR_CANCELED ? l.result : kept;
}

int election_run(const struct election *e, int (*lead)(void *arg), void *arg, struct err *err)
{
	struct state s = {
		.e = e,
		.lease_ms = e->lease_ms ? e->lease_ms : LEASE_MS,
		.renew_ms = e->renew_ms ? e->renew_ms : RENEW_MS,
		.retry_ms = e->retry_ms ? e->retry_ms : RETRY_MS,
	};
	int r = acquire(&s, arg, err);

	if (r == 0) {
		tell(&s, "became leader");
		r = lead_and_keep(&s, lead, arg, err);
		tell(&s, "stopped leading");
		if (e->release)
			give_back(&s);
	}
	frozen_unref(s.lease);
	return r;
}
