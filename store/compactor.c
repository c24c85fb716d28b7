/*
 * When to forget. As Kubernetes' compactor does it, and together with those of other servers on the same store, in whatever
 * engine: the key compact_rev_key holds the revision that was compacted to last, and its own revision serves as a clock.
 * Each server waits one interval and then writes the key if nobody else has since it looked last; only who could do so
 * compacts, to the revision that it saw one interval ago. When that server is gone, another one succeeds the next time.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/fiber.h"
#include "base/log.h"
#include "store/store.h"

static const str compact_key = STR_INIT("compact_rev_key");

struct compactor {
	struct store *store;
	int64_t seen;     /* the key's revision when we looked last; 0: it did not exist, as far as we know */
	int64_t revision; /* the store's at that time; 0: not known */
};

static void valuep_unref(struct store_value **v) { store_value_unref(*v); }

/* One round. 0 also when another server has compacted meanwhile. */
static int compact_once(struct compactor *c, struct err *err)
{
	char text[32];
	int len = snprintf(text, sizeof text, "%" PRId64, c->revision);
	CLEANUP(valuep_unref) struct store_value *value = store_value_new(str_span(text, (size_t)len));
	int64_t old = c->revision, written;
	struct store_kv current;

	int r = store_put(c->store, compact_key, value, c->seen, 0, &written, &current, err);
	if (r < 0)
		return r;
	if (r == 0) {
		c->seen = current.value ? current.mod_revision : STORE_ABSENT;
		store_value_unref(current.value);
		return store_revision(c->store, &c->revision, err);
	}
	c->seen = c->revision = written;
	return old ? store_compact(c->store, old, err) : 0; /* at first there is nothing to go by */
}

int store_compact_loop(struct store *s, int64_t interval_ms, struct err *err)
{
	struct compactor c = { .store = s, .seen = STORE_ABSENT };
	int r;

	while ((r = fiber_sleep_ms(interval_ms, err)) == 0) {
		struct err why = ERR_INIT;
		if (compact_once(&c, &why) < 0 && fiber_check(NULL) == 0)
			log_error("the store could not be compacted; trying again after an interval", KV("reason", &why));
	}
	return r;
}
