#include "scheduler/fit_error.h"

#include "base/test.h"

TEST(fit_error_counts_reasons_and_sorts_them_as_texts)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct fit_error e;

	fit_error_init(&e, &a);
	fit_error_add(&e, STR("node(s) had untolerated taint(s)"), 1);
	fit_error_add(&e, STR("Insufficient cpu\nInsufficient memory"), 1);
	fit_error_add(&e, STR("node(s) had untolerated taint(s)"), 1);
	CHECK_STR(fit_error_text(&e, 3, STR_NONE, STR("preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")),
		  "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 2 node(s) had untolerated taint(s). preemption: 0/3 nodes are "
		  "available: 3 Preemption is not helpful for scheduling.");
	fit_error_add(&e, STR("Too many pods"), 10);
	CHECK_STR(fit_error_text(&e, 13, STR_NONE, STR_NONE),
		  "0/13 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 10 Too many pods, 2 node(s) had untolerated taint(s).");
}

TEST(fit_error_shows_what_pre_filter_said_instead)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct fit_error e;

	fit_error_init(&e, &a);
	CHECK_STR(fit_error_text(&e, 1, STR("persistentvolumeclaim \"nope\" not found"), STR("not found")),
		  "0/1 nodes are available: persistentvolumeclaim \"nope\" not found. not found");
}

TEST(fit_error_is_bounded)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct fit_error e;

	fit_error_init(&e, &a);
	for (int i = 0; i < 3 * FIT_REASONS_MAX; i++)
		fit_error_add(&e, arena_printf(&a, "reason %d", i), 1);
	CHECK(str_starts(fit_error_text(&e, 3 * FIT_REASONS_MAX, STR_NONE, STR_NONE), STR("0/768 nodes are available: 1 reason 0, ")));
	CHECK_INT(e.n, FIT_REASONS_MAX);
	CHECK_INT(e.reasons[FIT_REASONS_MAX - 1].n, 2 * FIT_REASONS_MAX + 1);
}
