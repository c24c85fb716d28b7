#include "client/event_merge.h"

#include "base/clock.h"
#include "base/test.h"
#include "codec/atoms.h"

static struct val about(struct arena *a, const char *pod, const char *message)
{
	return OBJECT(a, F(metadata, OBJECT(a, F(name, val_of_str(str_of(pod))))),
		      F(involvedObject, OBJECT(a, F(kind, VAL_LIT("Pod")), F(name, val_of_str(str_of(pod))))),
		      F(reason, VAL_LIT("Failed")), F(message, val_of_str(str_of(message))), F(firstTimestamp, VAL_LIT("t1")),
		      F(lastTimestamp, VAL_LIT("t2")), F(count, val_of_int(1)), F(type, VAL_LIT("Warning")));
}

TEST(event_merge_counts_what_was_told_before)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct event_merge *m = event_merge_new();
	struct val event, patch;

	CHECK_INT(event_merge_take(m, &a, about(&a, "p", "no"), &event, &patch), EVENT_CREATE);
	CHECK_STR(val_str(event, metadata, name), "p");
	struct val again = val_with(&a, about(&a, "p", "no"), VAL_LIT("other-name"), metadata, name);
	CHECK_INT(event_merge_take(m, &a, again, &event, &patch), EVENT_COUNT);
	CHECK_STR(val_str(event, metadata, name), "p"); /* the one that is there is changed */
	CHECK_INT(val_int(patch, count), 2);
	CHECK_STR(val_str(patch, lastTimestamp), "t2");
	CHECK_INT(event_merge_take(m, &a, about(&a, "q", "no"), &event, &patch), EVENT_CREATE);
	event_merge_free(m);
}

TEST(event_merge_combines_the_tenth_of_a_sort)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct event_merge *m = event_merge_new();
	struct val event, patch;

	clock_virtual_set(1, 1);
	for (int i = 1; i < 10; i++)
		CHECK_INT(event_merge_take(m, &a, about(&a, "p", arena_printf(&a, "no %d", i).p), &event, &patch), EVENT_CREATE);
	CHECK_INT(event_merge_take(m, &a, about(&a, "p", "no 10"), &event, &patch), EVENT_CREATE);
	CHECK_STR(val_str(event, message), "(combined from similar events): no 10");
	CHECK_INT(event_merge_take(m, &a, about(&a, "p", "no 11"), &event, &patch), EVENT_COUNT);
	CHECK_STR(val_str(patch, message), "(combined from similar events): no 11");
	clock_virtual_advance(601 * NS_PER_S);
	CHECK_INT(event_merge_take(m, &a, about(&a, "p", "no 12"), &event, &patch), EVENT_CREATE);
	CHECK_STR(val_str(event, message), "no 12");
	clock_virtual_off();
	event_merge_free(m);
}

TEST(event_merge_cuts_off_who_tells_too_much)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct event_merge *m = event_merge_new();
	struct val event, patch;

	clock_virtual_set(1, 1);
	for (int i = 0; i < 25; i++)
		CHECK(event_merge_take(m, &a, about(&a, "p", "no"), &event, &patch) != EVENT_DROP);
	CHECK_INT(event_merge_take(m, &a, about(&a, "p", "no"), &event, &patch), EVENT_DROP);
	CHECK(event_merge_take(m, &a, about(&a, "q", "no"), &event, &patch) != EVENT_DROP);
	clock_virtual_advance(300 * NS_PER_S);
	CHECK_INT(event_merge_take(m, &a, about(&a, "p", "no"), &event, &patch), EVENT_COUNT);
	CHECK_INT(val_int(patch, count), 27); /* also those that nobody heard of */
	CHECK_INT(event_merge_take(m, &a, about(&a, "p", "no"), &event, &patch), EVENT_DROP);
	clock_virtual_off();
	event_merge_free(m);
}

TEST(event_name_is_always_valid)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	CHECK_STR(event_name(&a, STR("web"), 255), "web.ff");
	CHECK_INT(event_name(&a, STR("system:node"), 255).n, 36);
}
