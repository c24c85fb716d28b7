#include "base/test.h"
#include "codec/atoms.h"
#include "runtime/config_json.h"

TEST(selinux_levels)
{
	static const char *const good[] = { "s0", "s0-s1", "s0:c1", "s0:c1,c2", "s0:c1.c5", "s0-s0:c0.c1023", "s1:c1,c3.c5,c1023" };
	static const char *const bad[] = { "", "s", "0", "s10", "s0-", "s0-c1", "s0:", "s0:1", "s0:c", "s0:c1,", "s0:c1.", "s0:c12345", "s0:c1 ", "s0:c1;c2" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK_ROW(i, config_selinux_level_ok(str_of(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ROW(i, !config_selinux_level_ok(str_of(bad[i])));
}

TEST(selinux_bad_level)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val options = OBJECT(&a, F(level, VAL_LIT("x")));
	struct config_labels labels;
	struct err err = ERR_INIT;

	CHECK(config_selinux(&a, options, VAL_EMPTY, &labels, &err) < 0);
	CHECK_STR(str_of(err.msg), "the format of 'level' \"x\" is not correct");
	CHECK(config_selinux(&a, VAL_EMPTY, options, &labels, &err) < 0); /* the pod's, for a container without */
}

/* What every system needs keeps its labels. */
TEST(selinux_relabel_refused)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static const char *const paths[] = { "/", "/etc", "/usr/", "//var/lib" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct err err = ERR_INIT;
		CHECK_ROW(i, config_selinux_relabel(&a, str_of(paths[i]), STR("u:r:t:s0"), &err) < 0);
		CHECK_ROW(i, str_find(str_of(err.msg), STR("is not allowed")) > 0);
		CHECK_ROW(i, config_selinux_relabel(&a, str_of(paths[i]), STR_NONE, &err) == 0);
	}
}
