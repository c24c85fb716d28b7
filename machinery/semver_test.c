#include "machinery/semver.h"
#include "base/test.h"

TEST(semver_parse)
{
	static const struct {
		const char *text;
		bool valid;
	} t[] = {
		{ "1.2.3", true },
		{ "0.0.0", true },
		{ "1.2.3-rc.1+build.05", true },
		{ "1.2.3+a-b", true },
		{ "18446744073709551615.0.0", true },
		{ "18446744073709551616.0.0", false },
		{ "", false },
		{ "1.2", false },
		{ "1.2.3.4", false },
		{ "v1.2.3", false },
		{ "01.2.3", false },
		{ "1.2.3-", false },
		{ "1.2.3-01", false },
		{ "1.2.3-a..b", false },
		{ "1.2.3-a_b", false },
		{ "1.2.3+", false },
		{ "1.-2.3", false },
	};
	struct semver v;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, semver_parse(str_of(t[i].text), &v) == t[i].valid);
}

/* In the order of precedence. */
TEST(semver_cmp)
{
	static const char *const t[] = { "0.9.10", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
					 "1.0.0-beta", "1.0.0", "1.0.1", "1.1.0", "2.0.0" };
	struct semver a, b;

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		for (size_t j = 0; j < ARRAY_LEN(t); j++) {
			CHECK(semver_parse(str_of(t[i]), &a) && semver_parse(str_of(t[j]), &b));
			int r = semver_cmp(&a, &b);
			CHECK_ROW(i, i < j ? r < 0 : i > j ? r > 0 : r == 0);
		}
	CHECK(semver_parse(STR("1.0.0+a"), &a) && semver_parse(STR("1.0.0+b"), &b) && semver_cmp(&a, &b) == 0);
}
