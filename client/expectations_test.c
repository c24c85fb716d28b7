#include "client/expectations.h"

#include "base/clock.h"
#include "base/test.h"

TEST(expectations_are_met_when_all_was_seen)
{
	struct expectations *e = expectations_new();
	const str gone[] = { STR("d/p1"), STR("d/p2") };

	CHECK(expectations_met(e, STR("d/rs")));
	expect_creations(e, STR("d/rs"), 2);
	CHECK(!expectations_met(e, STR("d/rs")));
	CHECK(expectations_met(e, STR("d/other")));
	expectations_created(e, STR("d/rs"));
	CHECK(!expectations_met(e, STR("d/rs")));
	expectations_created(e, STR("d/rs"));
	CHECK(expectations_met(e, STR("d/rs")));

	expect_deletions(e, STR("d/rs"), gone, 2);
	expectations_deleted(e, STR("d/rs"), STR("d/p1"));
	expectations_deleted(e, STR("d/rs"), STR("d/p1")); /* told twice, counted once */
	expectations_deleted(e, STR("d/rs"), STR("d/p9"));
	CHECK(!expectations_met(e, STR("d/rs")));
	expectations_deleted(e, STR("d/rs"), STR("d/p2"));
	CHECK(expectations_met(e, STR("d/rs")));
	expectations_free(e);
}

TEST(expectations_lapse)
{
	struct expectations *e = expectations_new();

	clock_virtual_set(1, 1);
	expect_creations(e, STR("d/rs"), 1);
	clock_virtual_advance(299 * NS_PER_S);
	CHECK(!expectations_met(e, STR("d/rs")));
	clock_virtual_advance(2 * NS_PER_S);
	CHECK(expectations_met(e, STR("d/rs")));
	expectations_created(e, STR("d/rs"));
	expect_creations(e, STR("d/rs"), 1);
	CHECK(!expectations_met(e, STR("d/rs")));
	expectations_forget(e, STR("d/rs"));
	CHECK(expectations_met(e, STR("d/rs")));
	clock_virtual_off();
	expectations_free(e);
}
