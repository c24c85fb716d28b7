/* Keys that go by themselves: a timer for each, by wall time so that a restart does not prolong them. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/sqlite_priv.h"

/* After a deletion that could not be done: the disk may be full. */
enum { AGAIN_S = 5 };

struct expiry {
	struct loop_timer timer;
	struct list link;
	struct sqlite_store *store;
	struct index_key *key;
};

static void expiry_free(struct expiry *e)
{
	loop_timer_stop(&e->timer);
	list_remove(&e->link);
	e->key->expiry = NULL;
	index_key_unref(e->key);
	free(e);
}

static void expiry_fire(struct loop_timer *timer)
{
	struct expiry *e = CONTAINER_OF(timer, struct expiry, timer);
	int64_t left_ns = e->key->newest.expires_ns - clock_wall_ns();

	if (!e->key->newest.version || !e->key->newest.expires_ns)
		expiry_free(e);
	else if (left_ns > 0)
		loop_timer_start(timer, clock_now_ns() + left_ns);
	else if (!sqlite_drop(e->store, e->key))
		loop_timer_start(timer, clock_now_ns() + AGAIN_S * NS_PER_S);
}

void sqlite_expiry_follow(struct sqlite_store *s, struct index_key *key)
{
	struct expiry *e = key->expiry;
	int64_t expires_ns = key->newest.version ? key->newest.expires_ns : 0;

	if (!expires_ns || s->read_only) {
		if (e)
			expiry_free(e);
		return;
	}
	if (!e) {
		e = mem_zalloc(sizeof *e);
		*e = (struct expiry){ .timer = LOOP_TIMER_INIT(expiry_fire), .store = s, .key = index_key_ref(key) };
		list_add(&s->expiries, &e->link);
		key->expiry = e;
	}
	loop_timer_start(&e->timer, clock_now_ns() + MAX(expires_ns - clock_wall_ns(), (int64_t)0));
}

void sqlite_expiry_done(struct sqlite_store *s)
{
	LIST_EACH_SAFE(struct expiry, e, &s->expiries, link)
		expiry_free(e);
}
