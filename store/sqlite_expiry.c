/* Keys that go by themselves: a timer for each, by wall time so that a restart does not prolong them. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/sqlite_priv.h"

/* While writes fail, deletions are not tried more often than this. */
enum { AGAIN_S = 5 };

struct expiry {
	struct loop_timer timer;
	struct list link;
	struct sqlite_store *store;
	struct index_key *versions;
	size_t n;
	char key[];
};

static void expiry_free(struct expiry *e)
{
	loop_timer_stop(&e->timer);
	list_remove(&e->link);
	e->versions->expiry = NULL;
	index_key_unref(e->versions);
	free(e);
}

static void expiry_fire(struct loop_timer *timer)
{
	struct expiry *e = CONTAINER_OF(timer, struct expiry, timer);
	int64_t left_ns = e->versions->newest.expires_ns - clock_wall_ns();

	/* The wall clock may have been set back. */
	if (left_ns > 0)
		loop_timer_start(timer, clock_now_ns() + left_ns);
	else
		sqlite_drop(e->store, str_span(e->key, e->n));
}

static struct expiry *expiry_new(struct sqlite_store *s, str key, struct index_key *k)
{
	struct expiry *e = mem_zalloc(sizeof *e + key.n);

	e->timer = (struct loop_timer)LOOP_TIMER_INIT(expiry_fire);
	e->store = s;
	e->versions = index_key_ref(k);
	e->n = key.n;
	memcpy(e->key, key.p, key.n);
	list_add(&s->expiries, &e->link);
	k->expiry = e;
	return e;
}

void sqlite_expiry_follow(struct sqlite_store *s, str key, struct index_key *k)
{
	struct expiry *e = k->expiry;
	int64_t expires_ns = k->newest.version ? k->newest.expires_ns : 0;
	int64_t least_ns = s->failing ? AGAIN_S * NS_PER_S : 0;

	if (!expires_ns || s->read_only) {
		if (e)
			expiry_free(e);
		return;
	}
	if (!e)
		e = expiry_new(s, key, k);
	loop_timer_start(&e->timer, clock_now_ns() + MAX(expires_ns - clock_wall_ns(), least_ns));
}

void sqlite_expiry_done(struct sqlite_store *s)
{
	LIST_EACH_SAFE(struct expiry, e, &s->expiries, link)
		expiry_free(e);
}
