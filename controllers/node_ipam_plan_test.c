#include "controllers/node_ipam_plan.h"

#include "base/test.h"

static struct cidr cidr(const char *text)
{
	struct cidr c;

	CHECK(cidr_parse(str_of(text), &c, NULL));
	return c;
}

TEST(blocks_of_a_block)
{
	static const struct {
		const char *whole;
		unsigned bits;
		const char *busy;
		const char *want[4]; /* NULL: there is none left */
	} t[] = {
		{ "10.244.0.0/16", 24, NULL, { "10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24", "10.244.3.0/24" } },
		{ "10.244.0.0/16", 24, "10.244.0.0/23", { "10.244.2.0/24", "10.244.3.0/24", "10.244.4.0/24", "10.244.5.0/24" } },
		{ "10.244.0.0/16", 24, "10.244.1.7/32", { "10.244.0.0/24", "10.244.2.0/24", "10.244.3.0/24", "10.244.4.0/24" } },
		{ "10.244.0.0/16", 24, "10.0.0.0/8", { NULL } },
		{ "10.244.0.0/16", 24, "11.0.0.0/8", { "10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24", "10.244.3.0/24" } },
		{ "10.244.7.0/23", 24, NULL, { "10.244.6.0/24", "10.244.7.0/24", NULL, NULL } },
		{ "fd00:1::/48", 64, "fd00:1:0:1::/64", { "fd00:1::/64", "fd00:1:0:2::/64", "fd00:1:0:3::/64", "fd00:1:0:4::/64" } },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct cidr whole = cidr(t[i].whole), got;
		struct cidr_set s;
		char text[CIDR_TEXT_MAX];

		CHECK_ROW(i, cidr_set_init(&s, &whole, t[i].bits, NULL) == 0);
		if (t[i].busy) {
			struct cidr busy = cidr(t[i].busy);
			(void)cidr_set_occupy(&s, &busy);
		}
		for (size_t n = 0; n < 4; n++) {
			bool found = cidr_set_take(&s, &got);
			CHECK_ROW(i, found == (t[i].want[n] != NULL));
			if (found)
				CHECK_STR_ROW(i, cidr_format(&got, text), t[i].want[n]);
		}
		cidr_set_done(&s);
	}
}

TEST(blocks_come_back_when_all_are_taken)
{
	struct cidr whole = cidr("10.0.0.0/22"), got, second = cidr("10.0.1.0/24");
	struct cidr_set s;
	char text[CIDR_TEXT_MAX];

	CHECK_INT(cidr_set_init(&s, &whole, 24, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK(cidr_set_take(&s, &got));
	CHECK(!cidr_set_take(&s, &got));
	CHECK(cidr_set_release(&s, &second));
	CHECK(cidr_set_take(&s, &got));
	CHECK_STR(cidr_format(&got, text), "10.0.1.0/24");
	cidr_set_done(&s);
	CHECK_INT(cidr_set_init(&s, &whole, 20, NULL), -ERR_INVALID);
	whole = cidr("fd00::/32");
	CHECK_INT(cidr_set_init(&s, &whole, 64, NULL), -ERR_INVALID);
}
