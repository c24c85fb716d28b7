#include "machinery/cron.h"

#include "base/test.h"
#include "base/time_zone.h"

TEST(cron_parse)
{
	static const struct {
		const char *text, *why;
		uint64_t minutes, hours;
	} t[] = {
		{ "* * * * *", NULL, CRON_STAR | ((UINT64_C(1) << 60) - 1), CRON_STAR | 0xffffff },
		{ "5,10-12 */6 1 jan-MAR Sun", NULL, 1 << 5 | 7 << 10, 1 | 1 << 6 | 1 << 12 | 1 << 18 },
		{ "50/5 0 ? * *", NULL, UINT64_C(1) << 50 | UINT64_C(1) << 55, 1 },
		{ "  1\t2 3 4 5 ", NULL, 2, 4 },
		{ "*/1 * * * *", NULL, CRON_STAR | ((UINT64_C(1) << 60) - 1), CRON_STAR | 0xffffff },
		{ "@daily", NULL, 1, 1 },
		{ "@hourly", NULL, 1, CRON_STAR | 0xffffff },
		{ "", "empty spec string", 0, 0 },
		{ "bad", "expected exactly 5 fields, found 1: [bad]", 0, 0 },
		{ "1  2 3\t4", "expected exactly 5 fields, found 4: [1 2 3 4]", 0, 0 },
		{ "60 * * * *", "end of range (60) above maximum (59): 60", 0, 0 },
		{ "* * 0 * *", "beginning of range (0) below minimum (1): 0", 0, 0 },
		{ "5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1", 0, 0 },
		{ "*/0 * * * *", "step of range should be a positive number: */0", 0, 0 },
		{ "1-2-3 * * * *", "too many hyphens: 1-2-3", 0, 0 },
		{ "1/2/3 * * * *", "too many slashes: 1/2/3", 0, 0 },
		{ "x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax", 0, 0 },
		{ "99999999999999999999 * * * *",
		  "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\":"
		  " value out of range", 0, 0 },
		{ "@never", "unrecognized descriptor: @never", 0, 0 },
		{ "@every x", "failed to parse duration @every x: time: invalid duration \"x\"", 0, 0 },
		{ "TZ=No/Where * * * * *", "provided bad location No/Where: unknown time zone No/Where", 0, 0 },
		{ "TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]", 0, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct cron cron;
		struct err err = ERR_INIT;
		int r = cron_parse(str_of(t[i].text), &cron, &err);
		CHECK_STR_ROW(i, err_str(&err), t[i].why ? t[i].why : "");
		CHECK_ROW(i, (r < 0) == (t[i].why != NULL));
		if (r < 0)
			continue;
		CHECK_ROW(i, cron.minutes == t[i].minutes);
		CHECK_ROW(i, cron.hours == t[i].hours);
	}
}

TEST(cron_every)
{
	struct cron cron;
	CHECK_INT(cron_parse(STR("@every 90m1500ms"), &cron, NULL), 0);
	CHECK(cron.every_ns == INT64_C(5401) * 1000000000);
	CHECK_INT(cron_parse(STR("@every 1ms"), &cron, NULL), 0);
	CHECK(cron.every_ns == 1000000000);
	CHECK_INT(cron_parse(STR("CRON_TZ=UTC 0 0 * * *"), &cron, NULL), 0);
	CHECK_STR(cron.time_zone, "UTC");
}

TEST(cron_time_zone)
{
	CHECK(time_zone_exists(STR("UTC")));
	CHECK(!time_zone_exists(STR("../passwd")));
	CHECK(!time_zone_exists(STR("/etc/passwd")));
	CHECK(!time_zone_exists(STR("Not/There")));
}
