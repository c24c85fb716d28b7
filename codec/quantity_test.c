#include "codec/quantity.h"

#include "base/test.h"

static const char FORMAT[] = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
static const char SUFFIX[] = "unable to parse quantity's suffix";
static const char NUMERIC[] = "unable to parse numeric part of quantity";

/* What Kubernetes' own implementation makes of each text. */
TEST(quantity_parse)
{
	enum { D = QUANTITY_DECIMAL_SI, B = QUANTITY_BINARY_SI, E = QUANTITY_DECIMAL_EXPONENT };
	static const struct {
		const char *in, *canonical;
		int format;
		int64_t value, milli;
	} t[] = {
		{ "0", "0", D, 0, 0 }, { "00", "0", D, 0, 0 }, { "0.0", "0", D, 0, 0 }, { "0m", "0", D, 0, 0 },
		{ "0Ki", "0", B, 0, 0 }, { "-0", "0", D, 0, 0 }, { "+0", "0", D, 0, 0 }, { "1", "1", D, 1, 1000 },
		{ "5", "5", D, 5, 5000 }, { "10", "10", D, 10, 10000 }, { "100", "100", D, 100, 100000 },
		{ "999", "999", D, 999, 999000 }, { "1000", "1k", D, 1000, 1000000 }, { "1001", "1001", D, 1001, 1001000 },
		{ "1024", "1024", D, 1024, 1024000 }, { "1500", "1500", D, 1500, 1500000 },
		{ "12000", "12k", D, 12000, 12000000 }, { "120000", "120k", D, 120000, 120000000 },
		{ "1234567", "1234567", D, 1234567, 1234567000 }, { "1000000", "1M", D, 1000000, 1000000000 },
		{ "123456789", "123456789", D, 123456789, INT64_C(123456789000) },
		{ "1000000000", "1G", D, 1000000000, INT64_C(1000000000000) }, { "-1", "-1", D, -1, -1000 },
		{ "-1000", "-1k", D, -1000, -1000000 }, { "-1500", "-1500", D, -1500, -1500000 },
		{ "+5", "+5", D, 5, 5000 }, { "005", "005", D, 5, 5000 }, { "007m", "007m", D, 1, 7 },
		{ "1.", "1.", D, 1, 1000 }, { ".5", "500m", D, 1, 500 }, { "-.5", "-500m", D, -1, -500 },
		{ "+.5", "500m", D, 1, 500 }, { ".", "0", D, 0, 0 }, { "-", "0", D, 0, 0 }, { "+", "0", D, 0, 0 },
		{ "m", "0", D, 0, 0 }, { "Ki", "0", B, 0, 0 }, { "0.5", "500m", D, 1, 500 },
		{ "1.5", "1500m", D, 2, 1500 }, { "1.500", "1.500", D, 2, 1500 }, { "1.5000", "1500m", D, 2, 1500 },
		{ "0.500", "500m", D, 1, 500 }, { "0.001", "1m", D, 1, 1 }, { "0.0001", "100u", D, 1, 1 },
		{ "0.0000001", "100n", D, 1, 1 }, { "0.000000001", "1n", D, 1, 1 }, { "0.0000000001", "1n", D, 1, 1 },
		{ "0.00000000149", "2n", D, 1, 1 }, { "-0.0000000001", "-1n", D, -1, -1 },
		{ "1.0000000001", "1000000001n", D, 2, 1001 }, { "1n", "1n", D, 1, 1 }, { "1000n", "1u", D, 1, 1 },
		{ "1500n", "1500n", D, 1, 1 }, { "1u", "1u", D, 1, 1 }, { "1000u", "1m", D, 1, 1 },
		{ "2500u", "2500u", D, 1, 3 }, { "1m", "1m", D, 1, 1 }, { "10m", "10m", D, 1, 10 },
		{ "100m", "100m", D, 1, 100 }, { "250m", "250m", D, 1, 250 }, { "1000m", "1", D, 1, 1000 },
		{ "1500m", "1500m", D, 2, 1500 }, { "100000m", "100", D, 100, 100000 }, { "0.1m", "100u", D, 1, 1 },
		{ "0.5m", "500u", D, 1, 1 }, { "1.5m", "1500u", D, 1, 2 }, { "0.0001m", "100n", D, 1, 1 },
		{ "1k", "1k", D, 1000, 1000000 }, { "10k", "10k", D, 10000, 10000000 },
		{ "1000k", "1M", D, 1000000, 1000000000 }, { "1500k", "1500k", D, 1500000, 1500000000 },
		{ "0.5k", "500", D, 500, 500000 }, { "0.0005k", "500m", D, 1, 500 },
		{ "1M", "1M", D, 1000000, 1000000000 }, { "2.5M", "2500k", D, 2500000, INT64_C(2500000000) },
		{ "1000M", "1G", D, 1000000000, INT64_C(1000000000000) },
		{ "1G", "1G", D, 1000000000, INT64_C(1000000000000) },
		{ "0.25G", "250M", D, 250000000, INT64_C(250000000000) },
		{ "1T", "1T", D, INT64_C(1000000000000), INT64_C(1000000000000000) },
		{ "1P", "1P", D, INT64_C(1000000000000000), INT64_C(1000000000000000000) },
		{ "1E", "1E", D, INT64_C(1000000000000000000), INT64_MAX },
		{ "8E", "8E", D, INT64_C(8000000000000000000), INT64_MAX },
		{ "9E", "9E", D, INT64_C(9000000000000000000), INT64_MAX }, { "10E", "10E", D, INT64_MAX, INT64_MAX },
		{ "100E", "100E", D, INT64_MAX, INT64_MAX }, { "1000E", "1", D, INT64_MAX, INT64_MAX },
		{ "10000E", "10", D, INT64_MAX, INT64_MAX },
		{ "0.001E", "1P", D, INT64_C(1000000000000000), INT64_C(1000000000000000000) },
		{ "9223372036854775807", "9223372036854775807", D, INT64_C(9223372036854775807), INT64_MAX },
		{ "9223372036854775808", "9223372036854775808", D, INT64_MAX, INT64_MAX },
		{ "-9223372036854775808", "-9223372036854775808", D, INT64_MIN, INT64_MIN },
		{ "92233720368547758070", "92233720368547758070", D, INT64_MAX, INT64_MAX },
		{ "123456789012345678", "123456789012345678", D, INT64_C(123456789012345678), INT64_MAX },
		{ "1234567890123456789", "1234567890123456789", D, INT64_C(1234567890123456789), INT64_MAX },
		{ "123456789012345678901234567890", "123456789012345678901234567890", D, INT64_MAX, INT64_MAX },
		{ "1Ki", "1Ki", B, 1024, 1024000 }, { "2Ki", "2Ki", B, 2048, 2048000 }, { "8Ki", "8Ki", B, 8192, 8192000 },
		{ "100Ki", "100Ki", B, 102400, 102400000 }, { "1000Ki", "1000Ki", B, 1024000, 1024000000 },
		{ "1023Ki", "1023Ki", B, 1047552, 1047552000 }, { "1024Ki", "1Mi", B, 1048576, 1048576000 },
		{ "1025Ki", "1025Ki", B, 1049600, 1049600000 }, { "1536Ki", "1536Ki", B, 1572864, 1572864000 },
		{ "2048Ki", "2Mi", B, 2097152, 2097152000 }, { "1Mi", "1Mi", B, 1048576, 1048576000 },
		{ "1.5Mi", "1536Ki", B, 1572864, 1572864000 }, { "64Mi", "64Mi", B, 67108864, INT64_C(67108864000) },
		{ "128Mi", "128Mi", B, 134217728, INT64_C(134217728000) },
		{ "500Mi", "500Mi", B, 524288000, INT64_C(524288000000) },
		{ "1024Mi", "1Gi", B, 1073741824, INT64_C(1073741824000) },
		{ "1Gi", "1Gi", B, 1073741824, INT64_C(1073741824000) },
		{ "0.5Gi", "512Mi", B, 536870912, INT64_C(536870912000) },
		{ "1.5Gi", "1536Mi", B, 1610612736, INT64_C(1610612736000) },
		{ "2.75Gi", "2816Mi", B, INT64_C(2952790016), INT64_C(2952790016000) },
		{ "10Gi", "10Gi", B, INT64_C(10737418240), INT64_C(10737418240000) },
		{ "1Ti", "1Ti", B, INT64_C(1099511627776), INT64_C(1099511627776000) },
		{ "1.1Ti", "1209462790553600m", B, INT64_C(1209462790554), INT64_C(1209462790553600) },
		{ "1Pi", "1Pi", B, INT64_C(1125899906842624), INT64_C(1125899906842624000) },
		{ "4Pi", "4Pi", B, INT64_C(4503599627370496), INT64_C(4503599627370496000) },
		{ "16Pi", "16Pi", B, INT64_C(18014398509481984), INT64_MAX },
		{ "1Ei", "1Ei", B, INT64_C(1152921504606846976), INT64_MAX },
		{ "7Ei", "7Ei", B, INT64_C(8070450532247928832), INT64_MAX },
		{ "7.9Ei", "9108079886394091110400m", B, INT64_C(9108079886394091111), INT64_MAX },
		{ "8Ei", "9223372036854775807", B, INT64_C(9223372036854775807), INT64_MAX },
		{ "100Ei", "9223372036854775807", B, INT64_C(9223372036854775807), INT64_MAX },
		{ "-1Ki", "-1Ki", B, -1024, -1024000 },
		{ "-8Ei", "-9223372036854775807", B, INT64_C(-9223372036854775807), INT64_MIN },
		{ "-100Ei", "-9223372036854775807", B, INT64_C(-9223372036854775807), INT64_MIN },
		{ "0.5Ki", "512", B, 512, 512000 }, { "0.25Ki", "256", B, 256, 256000 },
		{ "0.0001Ki", "102400u", D, 1, 103 }, { "0.000001Ki", "1024u", D, 1, 2 },
		{ "1.1Ki", "1126400m", B, 1127, 1126400 }, { "1.0001Mi", "1048680857600u", B, 1048681, 1048680858 },
		{ "-0.5Mi", "-512Ki", B, -524288, -524288000 }, { "+1Gi", "+1Gi", B, 1073741824, INT64_C(1073741824000) },
		{ "01Ki", "01Ki", B, 1024, 1024000 }, { "1.Ki", "1.Ki", B, 1024, 1024000 },
		{ "1.0Ki", "1Ki", B, 1024, 1024000 }, { "0.9765625Ki", "1k", B, 1000, 1000000 },
		{ "9007199254740993Ki", "9223372036854775807", B, INT64_C(9223372036854775807), INT64_MAX },
		{ "8796093022207Mi", "8796093022207Mi", B, INT64_C(9223372036853727232), INT64_MAX },
		{ "0.00000000000000000001Ei", "11529216n", D, 1, 12 },
		{ "1.00000000000000000000000001Ki", "1024000000001n", B, 1025, 1024001 },
		{ "1e3", "1e3", E, 1000, 1000000 }, { "1E3", "1E3", E, 1000, 1000000 },
		{ "1e+3", "1e+3", E, 1000, 1000000 }, { "1e-3", "1e-3", E, 1, 1 }, { "1e0", "1e0", E, 1, 1000 },
		{ "0e5", "0", E, 0, 0 }, { "1e1", "10", E, 10, 10000 }, { "1e2", "100", E, 100, 100000 },
		{ "15e2", "1500", E, 1500, 1500000 }, { "1.5e3", "1500", E, 1500, 1500000 },
		{ "1.5E4", "1.5E4", E, 15000, 15000000 }, { "1e6", "1e6", E, 1000000, 1000000000 },
		{ "12e6", "12e6", E, 12000000, INT64_C(12000000000) },
		{ "1e9", "1e9", E, 1000000000, INT64_C(1000000000000) },
		{ "1e18", "1e18", E, INT64_C(1000000000000000000), INT64_MAX },
		{ "1e20", "100e18", E, INT64_MAX, INT64_MAX }, { "1e21", "1e21", E, INT64_MAX, INT64_MAX },
		{ "123e-9", "123e-9", E, 1, 1 }, { "123e-10", "13e-9", E, 1, 1 }, { "1e-9", "1e-9", E, 1, 1 },
		{ "1e-10", "1e-9", E, 1, 1 }, { "1e-20", "1e-9", E, 1, 1 }, { "5e-1", "500e-3", E, 1, 500 },
		{ "25e-2", "250e-3", E, 1, 250 }, { "-1e3", "-1e3", E, -1000, -1000000 },
		{ "-25e-1", "-2500e-3", E, -3, -2500 }, { "+1e3", "+1e3", E, 1000, 1000000 },
		{ "1000e3", "1e6", E, 1000000, 1000000000 }, { "1e4294967299", "1e4294967299", E, 1000, 1000000 },
		{ "1.23456789e8", "1.23456789e8", E, 123456789, INT64_C(123456789000) },
		{ "1.234567890123456789e18", "1234567890123456789", E, INT64_C(1234567890123456789), INT64_MAX },
		{ "e5", "0", E, 0, 0 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct quantity q;
		str canonical;
		CHECK_ROW(i, quantity_parse(str_of(t[i].in), &q, NULL) == 0);
		CHECK_ROW(i, quantity_canonical(&a, str_of(t[i].in), &canonical, NULL) == 0);
		CHECK_STR_ROW(i, canonical, t[i].canonical);
		CHECK_ROW(i, (int)q.format == t[i].format);
		CHECK_ROW(i, quantity_value(q) == t[i].value);
		CHECK_ROW(i, quantity_milli(q) == t[i].milli);
	}
}

TEST(quantity_parse_errors)
{
	static const struct {
		const char *in, *message;
	} t[] = {
		{ "", FORMAT }, { "1x", FORMAT }, { "1Kii", SUFFIX }, { "1ki", SUFFIX }, { "1K", SUFFIX },
		{ "1mi", SUFFIX }, { "1e", SUFFIX }, { "1E+", SUFFIX }, { "1e3.5", FORMAT }, { "1ee3", SUFFIX },
		{ "1eE3", SUFFIX }, { "1e9223372036854775808", SUFFIX }, { "abc", FORMAT }, { "1 ", FORMAT },
		{ " 1", FORMAT }, { "1,5", FORMAT }, { "--1", SUFFIX }, { "+-1", SUFFIX }, { "1.2.3", FORMAT },
		{ "1i", SUFFIX }, { "1Mi5", SUFFIX }, { "Pi", NUMERIC }, { "Ei", NUMERIC }, { "e-12", NUMERIC },
		{ "1-", SUFFIX }, { "1-3", SUFFIX }, { "0x10", FORMAT }, { "1_000", FORMAT }, { "1e--3", FORMAT },
		{ "1n5", SUFFIX }, { "∞", FORMAT },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct quantity q;
		str canonical;
		struct err err = ERR_INIT;
		CHECK_ROW(i, quantity_parse(str_of(t[i].in), &q, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
		CHECK_ROW(i, quantity_canonical(&a, str_of(t[i].in), &canonical, NULL) == -ERR_BAD_REQUEST);
	}
}

/* Texts that are kept as they came still format canonically after arithmetic. */
TEST(quantity_format)
{
	static const struct {
		const char *in, *want;
	} t[] = {
		{ "+5", "5" }, { "005", "5" }, { "1.500", "1500m" }, { "1E3", "1e3" }, { "1e+3", "1e3" }, { "1.Ki", "1Ki" },
		{ "-1500m", "-1500m" }, { "-100Ei", "-9223372036854775807" }, { "1e18", "1e18" }, { "1e-9", "1e-9" }, { "0e5", "0" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct quantity q;
		char out[QUANTITY_TEXT_MAX];
		CHECK_ROW(i, quantity_parse(str_of(t[i].in), &q, NULL) == 0);
		CHECK_STR_ROW(i, quantity_format(q, out), t[i].want);
	}
}

/* Digits and exponents beyond 128 bits survive in the canonical text, and saturate in arithmetic. */
TEST(quantity_huge)
{
	static const struct {
		const char *in, *canonical;
	} t[] = {
		{ "1e30", "1e30" },
		{ "1e100", "10e99" },
		{ "1000000000000000000000000000000000000000000000000001m", "1000000000000000000000000000000000000000000000000001m" },
		{ "99999999999999999999999999999999999999999999999999.9999999999", "100" },
		{ "-12345678901234567890e2147483642", "-1234567890123456789e2147483643" },
		{ "1234567890123456789012345e-2147483640", "1e-9" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str canonical;
		CHECK_ROW(i, quantity_canonical(&a, str_of(t[i].in), &canonical, NULL) == 0);
		CHECK_STR_ROW(i, canonical, t[i].canonical);
	}
	struct quantity big, small = quantity_of_int(1, QUANTITY_DECIMAL_SI);
	char out[QUANTITY_TEXT_MAX];
	CHECK(quantity_parse(STR("-1e300"), &big, NULL) == 0);
	CHECK(quantity_cmp(big, small) < 0);
	CHECK(quantity_value(big) == INT64_MIN);
	CHECK(quantity_cmp(quantity_sub(big, small), big) == 0);
	CHECK(quantity_cmp(quantity_round_up(big, 0), big) == 0);
	CHECK(quantity_format(big, out).n < QUANTITY_TEXT_MAX);
}

TEST(quantity_arithmetic)
{
	static const struct {
		const char *a, *b, *sum, *difference;
		int cmp;
	} t[] = {
		{ "1", "2", "3", "-1", -1 }, { "0", "1Ki", "1Ki", "-1Ki", -1 }, { "0Ki", "1k", "1k", "-1k", -1 },
		{ "1Ki", "24", "1048", "1k", 1 }, { "1000Ki", "24Ki", "1Mi", "976Ki", 1 },
		{ "100m", "1", "1100m", "-900m", -1 }, { "1500m", "500m", "2", "1", 1 },
		{ "1Gi", "1G", "2073741824", "73741824", 1 }, { "1G", "1Gi", "2073741824", "-73741824", -1 },
		{ "1e3", "1k", "2e3", "0", 0 }, { "1k", "1e3", "2k", "0", 0 }, { "0.5Gi", "512Mi", "1Gi", "0", 0 },
		{ "-1", "1", "0", "-2", -1 }, { "1n", "1", "1000000001n", "-999999999n", -1 },
		{ "8Ei", "8Ei", "18446744073709551614", "0", 0 }, { "-5", "3m", "-4997m", "-5003m", -1 },
		{ "1023", "1", "1024", "1022", 1 }, { "1Ki", "1", "1025", "1023", 1 },
		{ "2", "1500m", "3500m", "500m", 1 }, { "250m", "64Mi", "67108864250m", "-67108863750m", -1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct quantity a, b;
		char out[QUANTITY_TEXT_MAX];
		CHECK_ROW(i, quantity_parse(str_of(t[i].a), &a, NULL) == 0);
		CHECK_ROW(i, quantity_parse(str_of(t[i].b), &b, NULL) == 0);
		CHECK_STR_ROW(i, quantity_format(quantity_add(a, b), out), t[i].sum);
		CHECK_STR_ROW(i, quantity_format(quantity_sub(a, b), out), t[i].difference);
		CHECK_ROW(i, quantity_cmp(a, b) == t[i].cmp);
		CHECK_ROW(i, quantity_cmp(b, a) == -t[i].cmp);
	}
}

TEST(quantity_round_up)
{
	static const struct {
		const char *in;
		int scale;
		const char *want;
	} t[] = {
		{ "1500m", 0, "2" }, { "1m", 0, "1" }, { "0", 0, "0" }, { "-1500m", 0, "-2" }, { "1500001n", -3, "2m" },
		{ "1500001n", -6, "1501u" }, { "1500001n", -9, "1500001n" }, { "1Gi", 0, "1Gi" }, { "1.5Ki", 0, "1536" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct quantity q;
		char out[QUANTITY_TEXT_MAX];
		CHECK_ROW(i, quantity_parse(str_of(t[i].in), &q, NULL) == 0);
		CHECK_STR_ROW(i, quantity_format(quantity_round_up(q, t[i].scale), out), t[i].want);
	}
}

TEST(quantity_of_numbers)
{
	char out[QUANTITY_TEXT_MAX];
	CHECK_STR(quantity_format(quantity_of_int(2048, QUANTITY_BINARY_SI), out), "2Ki");
	CHECK_STR(quantity_format(quantity_of_int(INT64_MIN, QUANTITY_BINARY_SI), out), "-8Ei");
	CHECK_STR(quantity_format(quantity_of_int(2000, QUANTITY_DECIMAL_SI), out), "2k");
	CHECK_STR(quantity_format(quantity_of_milli(1500, QUANTITY_DECIMAL_SI), out), "1500m");
	CHECK_STR(quantity_format(quantity_of_milli(1000, QUANTITY_DECIMAL_EXPONENT), out), "1");
}
