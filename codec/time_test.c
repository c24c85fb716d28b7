#include "codec/time.h"

#include "base/test.h"

/* What Go's package time makes of each text, read as a Time or (micro) as a MicroTime. */
TEST(time_parse)
{
	static const struct {
		bool micro;
		const char *in;
		int64_t seconds;
		int32_t nanos;
		const char *text, *micro_text;
	} t[] = {
		{ false, "2006-01-02T15:04:05Z", INT64_C(1136214245), 0, "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.000000Z" },
		{ false, "1970-01-01T00:00:00Z", INT64_C(0), 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z" },
		{ false, "0001-01-01T00:00:00Z", INT64_C(-62135596800), 0, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z" },
		{ false, "0000-01-01T00:00:00Z", INT64_C(-62167219200), 0, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z" },
		{ false, "9999-12-31T23:59:59Z", INT64_C(253402300799), 0, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000000Z" },
		{ false, "2024-02-29T12:00:00Z", INT64_C(1709208000), 0, "2024-02-29T12:00:00Z", "2024-02-29T12:00:00.000000Z" },
		{ false, "2000-02-29T00:00:00Z", INT64_C(951782400), 0, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z" },
		{ false, "1969-12-31T23:59:59Z", INT64_C(-1), 0, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000000Z" },
		{ false, "2006-01-02T15:04:05+07:00", INT64_C(1136189045), 0, "2006-01-02T08:04:05Z", "2006-01-02T08:04:05.000000Z" },
		{ false, "2006-01-02T15:04:05-07:30", INT64_C(1136241245), 0, "2006-01-02T22:34:05Z", "2006-01-02T22:34:05.000000Z" },
		{ false, "2006-01-02T15:04:05+24:60", INT64_C(1136124245), 0, "2006-01-01T14:04:05Z", "2006-01-01T14:04:05.000000Z" },
		{ false, "2006-01-02T15:04:05.5Z", INT64_C(1136214245), 500000000, "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.500000Z" },
		{ false, "2006-01-02T15:04:05,25Z", INT64_C(1136214245), 250000000, "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.250000Z" },
		{ false, "2006-01-02T15:04:05.123456789Z", INT64_C(1136214245), 123456789, "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.123456Z" },
		{ false, "2006-01-02T15:04:05.1234567891234Z", INT64_C(1136214245), 123456789, "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.123456Z" },
		{ false, "2006-01-02T5:04:05Z", INT64_C(1136178245), 0, "2006-01-02T05:04:05Z", "2006-01-02T05:04:05.000000Z" },
		{ false, "2006-01-02T15:04:05.123456+02:00", INT64_C(1136207045), 123456000, "2006-01-02T13:04:05Z", "2006-01-02T13:04:05.123456Z" },
		{ false, "0000-01-01T00:00:00.000000+01:00", INT64_C(-62167222800), 0, "-0001-12-31T23:00:00Z", "-0001-12-31T23:00:00.000000Z" },
		{ false, "2006-01-02T15:04:05.12345Z", INT64_C(1136214245), 123450000, "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.123450Z" },
		{ false, "2006-01-02T15:04:05.1234567Z", INT64_C(1136214245), 123456700, "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.123456Z" },
		{ true, "2006-01-02T15:04:05.123456+02:00", INT64_C(1136207045), 123456000, "2006-01-02T13:04:05Z", "2006-01-02T13:04:05.123456Z" },
		{ true, "2006-01-02T15:04:05.+12345Z", INT64_C(1136214245), 12345000, "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.012345Z" },
		{ true, "0000-01-01T00:00:00.000000+01:00", INT64_C(-62167222800), 0, "-0001-12-31T23:00:00Z", "-0001-12-31T23:00:00.000000Z" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct timestamp got;
		char out[TIME_TEXT_MAX];
		CHECK_ROW(i, (t[i].micro ? microtime_parse : time_parse)(str_of(t[i].in), &got, NULL) == 0);
		CHECK_ROW(i, got.seconds == t[i].seconds && got.nanos == t[i].nanos);
		CHECK_STR_ROW(i, time_format(got, out), t[i].text);
		CHECK_STR_ROW(i, microtime_format(got, out), t[i].micro_text);
	}
}

TEST(time_parse_errors)
{
	static const struct {
		bool micro;
		const char *in, *message;
	} t[] = {
		{ false, "2006-01-02T15:04:05.+12345Z", "parsing time \"2006-01-02T15:04:05.+12345Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \".+12345Z\" as \"Z07:00\"" },
		{ false, "", "parsing time \"\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"2006\"" },
		{ false, "x", "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"" },
		{ false, "2006", "parsing time \"2006\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"-\"" },
		{ false, "2006-", "parsing time \"2006-\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"01\"" },
		{ false, "2006-1-02T15:04:05Z", "parsing time \"2006-1-02T15:04:05Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"1-02T15:04:05Z\" as \"01\"" },
		{ false, "20060102T150405Z", "parsing time \"20060102T150405Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"0102T150405Z\" as \"-\"" },
		{ false, "2006-13-02T15:04:05Z", "parsing time \"2006-13-02T15:04:05Z\": month out of range" },
		{ false, "2006-00-02T15:04:05Z", "parsing time \"2006-00-02T15:04:05Z\": month out of range" },
		{ false, "2006-02-30T15:04:05Z", "parsing time \"2006-02-30T15:04:05Z\": day out of range" },
		{ false, "2023-02-29T15:04:05Z", "parsing time \"2023-02-29T15:04:05Z\": day out of range" },
		{ false, "2006-04-31T15:04:05Z", "parsing time \"2006-04-31T15:04:05Z\": day out of range" },
		{ false, "2006-01-00T15:04:05Z", "parsing time \"2006-01-00T15:04:05Z\": day out of range" },
		{ false, "2006-01-02", "parsing time \"2006-01-02\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"T\"" },
		{ false, "2006-01-02 15:04:05Z", "parsing time \"2006-01-02 15:04:05Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \" 15:04:05Z\" as \"T\"" },
		{ false, "2006-01-02t15:04:05Z", "parsing time \"2006-01-02t15:04:05Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"t15:04:05Z\" as \"T\"" },
		{ false, "2006-01-02T24:04:05Z", "parsing time \"2006-01-02T24:04:05Z\": hour out of range" },
		{ false, "2006-01-02T15:60:05Z", "parsing time \"2006-01-02T15:60:05Z\": minute out of range" },
		{ false, "2006-01-02T15:04:60Z", "parsing time \"2006-01-02T15:04:60Z\": second out of range" },
		{ false, "2006-01-02T15:4:05Z", "parsing time \"2006-01-02T15:4:05Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"4:05Z\" as \"04\"" },
		{ false, "2006-01-02T15:04:5Z", "parsing time \"2006-01-02T15:04:5Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"5Z\" as \"05\"" },
		{ false, "2006-01-02T15:04:05", "parsing time \"2006-01-02T15:04:05\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"Z07:00\"" },
		{ false, "2006-01-02T15:04:05z", "parsing time \"2006-01-02T15:04:05z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"z\" as \"Z07:00\"" },
		{ false, "2006-01-02T15:04:05.Z", "parsing time \"2006-01-02T15:04:05.Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \".Z\" as \"Z07:00\"" },
		{ false, "2006-01-02T15:04:05.-12345Z", "parsing time \"2006-01-02T15:04:05.-12345Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \".-12345Z\" as \"Z07:00\"" },
		{ false, "2006-01-02T15:04:05+0700", "parsing time \"2006-01-02T15:04:05+0700\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"+0700\" as \"Z07:00\"" },
		{ false, "2006-01-02T15:04:05+25:00", "parsing time \"2006-01-02T15:04:05+25:00\": time zone offset hour out of range" },
		{ false, "2006-01-02T15:04:05+07:61", "parsing time \"2006-01-02T15:04:05+07:61\": time zone offset minute out of range" },
		{ false, "2006-01-02T15:04:05 07:00", "parsing time \"2006-01-02T15:04:05 07:00\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \" 07:00\" as \"Z07:00\"" },
		{ false, "2006-01-02T15:04:05ZZ", "parsing time \"2006-01-02T15:04:05ZZ\": extra text: \"Z\"" },
		{ false, "-006-01-02T15:04:05Z", "parsing time \"-006-01-02T15:04:05Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"-006-01-02T15:04:05Z\" as \"2006\"" },
		{ false, "+2006-01-02T15:04:05Z", "parsing time \"+2006-01-02T15:04:05Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"+2006-01-02T15:04:05Z\" as \"2006\"" },
		{ false, "Monday \"quoted\" \\ text", "parsing time \"Monday \\\"quoted\\\" \\\\ text\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"Monday \\\"quoted\\\" \\\\ text\" as \"2006\"" },
		{ false, "\xc3\xa9t\xc3\xa9 2006", "parsing time \"\\xc3\\xa9t\\xc3\\xa9 2006\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\\xc3\\xa9t\\xc3\\xa9 2006\" as \"2006\"" },
		{ false, "null", "parsing time \"null\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"null\" as \"2006\"" },
		{ true, "2006-01-02T15:04:05Z", "parsing time \"2006-01-02T15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "1970-01-01T00:00:00Z", "parsing time \"1970-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "0001-01-01T00:00:00Z", "parsing time \"0001-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "0000-01-01T00:00:00Z", "parsing time \"0000-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "9999-12-31T23:59:59Z", "parsing time \"9999-12-31T23:59:59Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "2024-02-29T12:00:00Z", "parsing time \"2024-02-29T12:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "2000-02-29T00:00:00Z", "parsing time \"2000-02-29T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "1969-12-31T23:59:59Z", "parsing time \"1969-12-31T23:59:59Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05+07:00", "parsing time \"2006-01-02T15:04:05+07:00\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"+07:00\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05-07:30", "parsing time \"2006-01-02T15:04:05-07:30\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"-07:30\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05+24:60", "parsing time \"2006-01-02T15:04:05+24:60\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"+24:60\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05.5Z", "parsing time \"2006-01-02T15:04:05.5Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \".5Z\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05,25Z", "parsing time \"2006-01-02T15:04:05,25Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \",25Z\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05.123456789Z", "parsing time \"2006-01-02T15:04:05.123456789Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"789Z\" as \"Z07:00\"" },
		{ true, "2006-01-02T15:04:05.1234567891234Z", "parsing time \"2006-01-02T15:04:05.1234567891234Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"7891234Z\" as \"Z07:00\"" },
		{ true, "2006-01-02T5:04:05Z", "parsing time \"2006-01-02T5:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "", "parsing time \"\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"\" as \"2006\"" },
		{ true, "x", "parsing time \"x\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"x\" as \"2006\"" },
		{ true, "2006", "parsing time \"2006\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"\" as \"-\"" },
		{ true, "2006-", "parsing time \"2006-\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"\" as \"01\"" },
		{ true, "2006-1-02T15:04:05Z", "parsing time \"2006-1-02T15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"1-02T15:04:05Z\" as \"01\"" },
		{ true, "20060102T150405Z", "parsing time \"20060102T150405Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"0102T150405Z\" as \"-\"" },
		{ true, "2006-13-02T15:04:05Z", "parsing time \"2006-13-02T15:04:05Z\": month out of range" },
		{ true, "2006-00-02T15:04:05Z", "parsing time \"2006-00-02T15:04:05Z\": month out of range" },
		{ true, "2006-02-30T15:04:05Z", "parsing time \"2006-02-30T15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "2023-02-29T15:04:05Z", "parsing time \"2023-02-29T15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "2006-04-31T15:04:05Z", "parsing time \"2006-04-31T15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "2006-01-00T15:04:05Z", "parsing time \"2006-01-00T15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"" },
		{ true, "2006-01-02", "parsing time \"2006-01-02\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"\" as \"T\"" },
		{ true, "2006-01-02 15:04:05Z", "parsing time \"2006-01-02 15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \" 15:04:05Z\" as \"T\"" },
		{ true, "2006-01-02t15:04:05Z", "parsing time \"2006-01-02t15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"t15:04:05Z\" as \"T\"" },
		{ true, "2006-01-02T24:04:05Z", "parsing time \"2006-01-02T24:04:05Z\": hour out of range" },
		{ true, "2006-01-02T15:60:05Z", "parsing time \"2006-01-02T15:60:05Z\": minute out of range" },
		{ true, "2006-01-02T15:04:60Z", "parsing time \"2006-01-02T15:04:60Z\": second out of range" },
		{ true, "2006-01-02T15:4:05Z", "parsing time \"2006-01-02T15:4:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"4:05Z\" as \"04\"" },
		{ true, "2006-01-02T15:04:5Z", "parsing time \"2006-01-02T15:04:5Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"5Z\" as \"05\"" },
		{ true, "2006-01-02T15:04:05", "parsing time \"2006-01-02T15:04:05\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05z", "parsing time \"2006-01-02T15:04:05z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"z\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05.Z", "parsing time \"2006-01-02T15:04:05.Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \".Z\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05.-12345Z", "parsing time \"2006-01-02T15:04:05.-12345Z\": fractional second out of range" },
		{ true, "2006-01-02T15:04:05.12345Z", "parsing time \"2006-01-02T15:04:05.12345Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \".12345Z\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05.1234567Z", "parsing time \"2006-01-02T15:04:05.1234567Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"7Z\" as \"Z07:00\"" },
		{ true, "2006-01-02T15:04:05+0700", "parsing time \"2006-01-02T15:04:05+0700\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"+0700\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05+25:00", "parsing time \"2006-01-02T15:04:05+25:00\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"+25:00\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05+07:61", "parsing time \"2006-01-02T15:04:05+07:61\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"+07:61\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05 07:00", "parsing time \"2006-01-02T15:04:05 07:00\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \" 07:00\" as \".000000\"" },
		{ true, "2006-01-02T15:04:05ZZ", "parsing time \"2006-01-02T15:04:05ZZ\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"ZZ\" as \".000000\"" },
		{ true, "-006-01-02T15:04:05Z", "parsing time \"-006-01-02T15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"-006-01-02T15:04:05Z\" as \"2006\"" },
		{ true, "+2006-01-02T15:04:05Z", "parsing time \"+2006-01-02T15:04:05Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"+2006-01-02T15:04:05Z\" as \"2006\"" },
		{ true, "Monday \"quoted\" \\ text", "parsing time \"Monday \\\"quoted\\\" \\\\ text\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Monday \\\"quoted\\\" \\\\ text\" as \"2006\"" },
		{ true, "\xc3\xa9t\xc3\xa9 2006", "parsing time \"\\xc3\\xa9t\\xc3\\xa9 2006\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"\\xc3\\xa9t\\xc3\\xa9 2006\" as \"2006\"" },
		{ true, "null", "parsing time \"null\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"null\" as \"2006\"" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct timestamp got;
		struct err err = ERR_INIT;
		CHECK_ROW(i, (t[i].micro ? microtime_parse : time_parse)(str_of(t[i].in), &got, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}

TEST(time_parse_long_text)
{
	char text[2000];
	memset(text, '\x01', sizeof(text));
	struct timestamp got;
	struct err err = ERR_INIT;
	CHECK_INT(time_parse(str_span(text, sizeof(text)), &got, &err), -ERR_BAD_REQUEST);
	CHECK(str_starts(err_str(&err), STR("parsing time \"\\x01\\x01")));
}

/* All seconds have a text, and it leads back to them. */
TEST(time_format)
{
	static const struct {
		int64_t seconds;
		const char *text, *micro_text;
	} t[] = {
		{ 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.123456Z" },
		{ 1, "1970-01-01T00:00:01Z", "1970-01-01T00:00:01.123456Z" },
		{ -1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.123456Z" },
		{ 1700000000, "2023-11-14T22:13:20Z", "2023-11-14T22:13:20.123456Z" },
		{ 951782400, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.123456Z" },
		{ INT64_C(-62135596800), "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.123456Z" },
		{ INT64_C(-62135596801), "0000-12-31T23:59:59Z", "0000-12-31T23:59:59.123456Z" },
		{ INT64_C(253402300799), "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.123456Z" },
		{ INT64_C(253402300800), "10000-01-01T00:00:00Z", "10000-01-01T00:00:00.123456Z" },
		{ INT64_C(4102444800), "2100-01-01T00:00:00Z", "2100-01-01T00:00:00.123456Z" },
		{ INT64_C(-2208988800), "1900-01-01T00:00:00Z", "1900-01-01T00:00:00.123456Z" },
		{ INT64_MAX, "292277026596-12-04T15:30:07Z", "292277026596-12-04T15:30:07.123456Z" },
		{ INT64_MIN, "292277026596-12-04T15:30:08Z", "292277026596-12-04T15:30:08.123456Z" },
		{ INT64_C(1000000000000000), "31690708-07-05T01:46:40Z", "31690708-07-05T01:46:40.123456Z" },
		{ INT64_C(-1000000000000000), "-31686769-06-29T22:13:20Z", "-31686769-06-29T22:13:20.123456Z" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct timestamp at = { t[i].seconds, 123456789 }, back;
		char out[TIME_TEXT_MAX];
		CHECK_STR_ROW(i, time_format(at, out), t[i].text);
		CHECK_ROW(i, time_unformat(str_of(out), &back));
		CHECK_ROW(i, back.seconds == at.seconds && back.nanos == 0);
		CHECK_STR_ROW(i, microtime_format(at, out), t[i].micro_text);
		CHECK_ROW(i, time_unformat(str_of(out), &back));
		CHECK_ROW(i, back.seconds == at.seconds && back.nanos == 123456000);
	}
}

TEST(time_unformat_refuses)
{
	static const char *const t[] = {
		"", "2006-01-02T15:04:05", "2006-01-02T15:04:05+00:00", "2006-01-02T15:04:05.5Z", "2006-13-02T15:04:05Z",
		"2006-02-29T15:04:05Z", "2006-01-02T24:04:05Z", "2006-01-02T15:04:05ZZ", "2006-1-02T15:04:05Z", "99999999999999-01-02T15:04:05Z",
		"2006-01-02T15:04:05.-12345Z", "-06-01-02T15:04:05Z",
	};
	struct timestamp got;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, !time_unformat(str_of(t[i]), &got));
}

TEST(duration_parse)
{
	static const struct {
		const char *in;
		int64_t ns;
		const char *text;
	} t[] = {
		{ "0", 0, "0s" }, { "+0", 0, "0s" }, { "-0", 0, "0s" }, { "0s", 0, "0s" }, { "1s", 1000000000, "1s" },
		{ "5s", INT64_C(5000000000), "5s" }, { "1m", INT64_C(60000000000), "1m0s" },
		{ "1h", INT64_C(3600000000000), "1h0m0s" }, { "1h30m", INT64_C(5400000000000), "1h30m0s" },
		{ "90s", INT64_C(90000000000), "1m30s" }, { "1.5h", INT64_C(5400000000000), "1h30m0s" },
		{ "1.5s", 1500000000, "1.5s" }, { "100ms", 100000000, "100ms" }, { "1us", 1000, "1\xc2\xb5s" },
		{ "1\xc2\xb5s", 1000, "1\xc2\xb5s" }, { "1\xce\xbcs", 1000, "1\xc2\xb5s" }, { "1ns", 1, "1ns" },
		{ "0.5ns", 0, "0s" }, { "-1.5h", INT64_C(-5400000000000), "-1h30m0s" },
		{ "+5s", INT64_C(5000000000), "5s" }, { "1h0m0.000000001s", INT64_C(3600000000001), "1h0m0.000000001s" },
		{ ".5s", 500000000, "500ms" }, { "1.s", 1000000000, "1s" },
		{ "0.3333333333333333333h", INT64_C(1200000000000), "20m0s" },
		{ "9007199254.740993ms", INT64_C(9007199254740993), "2501h59m59.254740993s" },
		{ "9223372036854775807ns", INT64_MAX, "2562047h47m16.854775807s" },
		{ "-9223372036854775808ns", INT64_MIN, "-2562047h47m16.854775808s" },
		{ "2562047h47m16.854775807s", INT64_MAX, "2562047h47m16.854775807s" }, { "1s1s", 2000000000, "2s" },
		{ "24h", INT64_C(86400000000000), "24h0m0s" }, { "100h", INT64_C(360000000000000), "100h0m0s" },
		{ "0.100000000000000000000h", INT64_C(360000000000), "6m0s" },
		{ "999999999ns", 999999999, "999.999999ms" }, { "1000000us", 1000000000, "1s" },
		{ "1500us", 1500000, "1.5ms" }, { "1m1ms", INT64_C(60001000000), "1m0.001s" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int64_t ns;
		char out[DURATION_TEXT_MAX];
		CHECK_ROW(i, duration_parse(str_of(t[i].in), &ns, NULL) == 0);
		CHECK_ROW(i, ns == t[i].ns);
		CHECK_STR_ROW(i, duration_format(ns, out), t[i].text);
	}
}

TEST(duration_parse_errors)
{
	static const struct {
		const char *in, *message;
	} t[] = {
		{ "", "time: invalid duration \"\"" },
		{ "-", "time: invalid duration \"-\"" },
		{ "+", "time: invalid duration \"+\"" },
		{ "5", "time: missing unit in duration \"5\"" },
		{ "3.14", "time: missing unit in duration \"3.14\"" },
		{ "1x", "time: unknown unit \"x\" in duration \"1x\"" },
		{ "1d", "time: unknown unit \"d\" in duration \"1d\"" },
		{ "1h5", "time: missing unit in duration \"1h5\"" },
		{ "1 h", "time: unknown unit \" h\" in duration \"1 h\"" },
		{ "1sx", "time: unknown unit \"sx\" in duration \"1sx\"" },
		{ ".s", "time: invalid duration \".s\"" },
		{ "-.s", "time: invalid duration \"-.s\"" },
		{ "s", "time: invalid duration \"s\"" },
		{ "1..5s", "time: missing unit in duration \"1..5s\"" },
		{ " 1s", "time: invalid duration \" 1s\"" },
		{ "1s ", "time: unknown unit \"s \" in duration \"1s \"" },
		{ "9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\"" },
		{ "-9223372036854775809ns", "time: invalid duration \"-9223372036854775809ns\"" },
		{ "2562048h", "time: invalid duration \"2562048h\"" },
		{ "99999999999999999999s", "time: invalid duration \"99999999999999999999s\"" },
		{ "3000000h", "time: invalid duration \"3000000h\"" },
		{ "1e3s", "time: unknown unit \"e\" in duration \"1e3s\"" },
		{ "1S", "time: unknown unit \"S\" in duration \"1S\"" },
		{ "abc", "time: invalid duration \"abc\"" },
		{ "1\xc3\xa9", "time: unknown unit \"\\xc3\\xa9\" in duration \"1\\xc3\\xa9\"" },
		{ "1\"m", "time: unknown unit \"\\\"m\" in duration \"1\\\"m\"" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int64_t ns;
		struct err err = ERR_INIT;
		CHECK_ROW(i, duration_parse(str_of(t[i].in), &ns, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}

TEST(duration_human)
{
	static const struct {
		int64_t ns;
		const char *want;
	} t[] = {
		{ 0, "0s" }, { 999999999, "0s" }, { 1000000000, "1s" }, { INT64_C(59000000000), "59s" },
		{ INT64_C(60000000000), "60s" }, { INT64_C(119000000000), "119s" }, { INT64_C(119999999999), "119s" },
		{ INT64_C(120000000000), "2m" }, { INT64_C(121000000000), "2m1s" }, { INT64_C(179000000000), "2m59s" },
		{ INT64_C(540000000000), "9m" }, { INT64_C(599000000000), "9m59s" }, { INT64_C(600000000000), "10m" },
		{ INT64_C(3600000000000), "60m" }, { INT64_C(10799000000000), "179m" }, { INT64_C(10800000000000), "3h" },
		{ INT64_C(10860000000000), "3h1m" }, { INT64_C(28799999999999), "7h59m" },
		{ INT64_C(28800000000000), "8h" }, { INT64_C(169200000000000), "47h" }, { INT64_C(172800000000000), "2d" },
		{ INT64_C(176400000000000), "2d1h" }, { INT64_C(622800000000000), "7d5h" },
		{ INT64_C(691199999999999), "7d23h" }, { INT64_C(691200000000000), "8d" },
		{ INT64_C(8640000000000000), "100d" }, { INT64_C(63071999999999999), "729d" },
		{ INT64_C(63072000000000000), "2y" }, { INT64_C(63158400000000000), "2y1d" },
		{ INT64_C(95040000000000000), "3y5d" }, { INT64_C(252287999999999999), "7y364d" },
		{ INT64_C(252288000000000000), "8y" }, { INT64_MAX, "292y" }, { -1, "0s" }, { -1000000000, "0s" },
		{ -1999999999, "0s" }, { -2000000000, "<invalid>" }, { INT64_MIN, "<invalid>" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char out[DURATION_TEXT_MAX];
		CHECK_STR_ROW(i, duration_human(t[i].ns, out), t[i].want);
	}
}

TEST(time_between)
{
	static const struct { struct timestamp from, to; int64_t want; } t[] = {
		{ { 5, 0 }, { 7, 1 }, INT64_C(2000000001) }, { { 7, 1 }, { 5, 2 }, INT64_C(-1999999999) }, { { TIME_ZERO_SECONDS, 0 }, { 0, 0 }, INT64_MAX },
		{ { 65729242921, 0 }, { 0, 0 }, INT64_MIN }, { { INT64_MIN, 0 }, { INT64_MAX, 0 }, INT64_MAX }, { { INT64_MAX, 0 }, { INT64_MIN, 0 }, INT64_MIN },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, time_between(t[i].from, t[i].to) == t[i].want);
}
