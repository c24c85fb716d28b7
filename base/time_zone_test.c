#include "base/time_zone.h"

#include "base/test.h"

TEST(time_zone_names)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static const struct { const char *name, *error; } t[] = {
		{ "", "" }, { "UTC", "" }, { "Not/There", "unknown time zone Not/There" }, { "../passwd", "time: invalid location name" },
		{ "a..b", "time: invalid location name" }, { "/etc/passwd", "time: invalid location name" }, { "\\x", "time: invalid location name" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct time_zone *zone;
		struct err err = ERR_INIT;
		int r = time_zone_load(&a, str_of(t[i].name), &zone, &err);
		CHECK_ROW(i, (r == 0) == !t[i].error[0] && time_zone_exists(str_of(t[i].name)) == (r == 0));
		CHECK_STR_ROW(i, err_str(&err), t[i].error);
		CHECK_ROW(i, r < 0 || time_zone_offset(zone, 1720000000) == 0);
	}
}

/* Version 2 with no times but a rule: summer from the last Sunday of March to that of October. */
TEST(time_zone_rule)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static const char header[44] = "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1";
	static const char body[7] = "\0\0\x0e\x10\0\0", rule[] = "\nCET-1CEST,M3.5.0,M10.5.0/3\n";
	static const struct { int64_t at, offset; } t[] = {
		{ 1711846799, 3600 }, { 1711846800, 7200 }, { 1729990799, 7200 }, { 1729990800, 3600 }, { 2540000000, 7200 },
	};
	char file[2 * (sizeof(header) + sizeof(body)) + sizeof(rule) - 1];
	const struct time_zone *zone;
	size_t n = 0;

	for (int i = 0; i < 2; i++) {
		memcpy(file + n, header, sizeof(header));
		memcpy(file + n + sizeof(header), body, sizeof(body));
		n += sizeof(header) + sizeof(body);
	}
	memcpy(file + n, rule, sizeof(rule) - 1);
	CHECK_INT(time_zone_parse(&a, str_span(file, sizeof(file)), &zone, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, time_zone_offset(zone, t[i].at) == t[i].offset);
	for (size_t cut = 0; cut < n; cut++)
		CHECK(time_zone_parse(&a, str_span(file, cut), &zone, NULL) < 0);
}
