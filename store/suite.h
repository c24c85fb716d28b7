/*
 * What every engine of the store must do, as tests: each case is a function over a store that an engine's fixture opens.
 * A test file names its engine and lets the list become tests:
 *
 *	#define CASE(name) TEST(sqlite_##name) { suite_run(&sqlite_fixture, suite_##name); }
 *	SUITE_CASES(CASE)
 *
 * Cases use keys below a prefix of their own and revisions relative to what they find, so a store may be shared.
 */
#ifndef C8S_STORE_SUITE_H
#define C8S_STORE_SUITE_H

#include "base/arena.h"
#include "store/store.h"

#define SUITE_CASES(X)                                                                                                \
	X(create) X(update) X(put_any) X(delete) X(recreate) X(revisions_count_writes) X(bad_arguments)               \
	X(range_order) X(range_bounds) X(range_pages) X(range_parts) X(range_at_old_revisions) X(range_refused)       \
	X(range_from_key_on) X(values_of_any_size)                                                                     \
	X(watch_live) X(watch_past_then_live) X(watch_only_its_range) X(watch_future) X(watch_progress) X(watch_many) \
	X(watch_under_load) X(watch_compacted) X(watch_canceled)                                                       \
	X(compact) X(compact_keeps_watchable) X(compact_loop) X(counter) X(create_race) X(ttl) X(ttl_refreshed) X(reopened)

struct suite;

struct suite_engine {
	/* On the test's fiber: makes a folder, starts a server; and the end of it. state is the engine's own. */
	void (*setup)(struct suite *t);
	void (*teardown)(struct suite *t);
	int (*open)(struct suite *t, struct store **ret, struct err *err);
	/* How much later than asked a key may go. */
	int64_t ttl_slack_ms;
};

struct suite {
	const struct suite_engine *engine;
	void *state;
	struct store *store;
	str prefix;               /* of all keys; ends in "/" */
	struct arena arena;       /* for the case's duration */
};

/* Runs a case on a loop of its own, with an open store. */
void suite_run(const struct suite_engine *engine, void (*run)(struct suite *t));
/* (suspends) Closes the store and opens it again. */
void suite_reopen(struct suite *t);

#define SUITE_DECLARE(name) void suite_##name(struct suite *t);
SUITE_CASES(SUITE_DECLARE)
#undef SUITE_DECLARE

/* ---- for further tests of an engine ---- */

/* The key of that name below the prefix. */
str suite_key(struct suite *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* (suspends) Writes in any case, or removes; the revision. */
int64_t suite_put(struct suite *t, str key, const char *text);
int64_t suite_remove(struct suite *t, str key);
/* (suspends) The value as text in the arena; NULL when there is none. */
const char *suite_get(struct suite *t, str key);
int64_t suite_revision(struct suite *t);
/* (suspends) A watch over all of the prefix. */
struct store_watch *suite_watch(struct suite *t, int64_t revision);
/* (suspends) At least n next events as text, "+name=value.version -name"; that revisions ascend is checked. */
const char *suite_events(struct suite *t, struct store_watch *w, size_t n);

#endif
