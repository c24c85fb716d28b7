#include "base/encoding.h"

#include "base/random.h"
#include "base/test.h"

TEST(base64_encodes)
{
	static const struct {
		const char *in, *std, *url;
	} t[] = {
		{ "", "", "" },
		{ "f", "Zg==", "Zg" },
		{ "fo", "Zm8=", "Zm8" },
		{ "foo", "Zm9v", "Zm9v" },
		{ "foob", "Zm9vYg==", "Zm9vYg" },
		{ "fooba", "Zm9vYmE=", "Zm9vYmE" },
		{ "foobar", "Zm9vYmFy", "Zm9vYmFy" },
		{ "\xfb\xff\xbf", "+/+/", "-_-_" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(100);
		char out[32];
		str in = str_of(t[i].in);
		CHECK_STR_ROW(i, str_span(out, base64_encode(out, in)), t[i].std);
		CHECK_STR_ROW(i, str_span(out, base64url_encode(out, in)), t[i].url);
		CHECK_ROW(i, base64_encoded_len(in.n) == strlen(t[i].std));
		CHECK_ROW(i, base64url_encoded_len(in.n) == strlen(t[i].url));
		base64_encode_buf(&b, in);
		buf_addc(&b, '|');
		base64url_encode_buf(&b, in);
		CHECK_ROW(i, str_starts(buf_str(&b), str_of(t[i].std)) && str_ends(buf_str(&b), str_of(t[i].url)));
		CHECK_ROW(i, b.n == strlen(t[i].std) + 1 + strlen(t[i].url));
	}
}

/* at < 0: decodes to want; else Go's encoding/base64 reports corrupt input at this byte. */
struct decode_row {
	const char *in;
	int at;
	const char *want;
};

static void check_decode(const struct decode_row *t, size_t rows, int (*decode)(char *, str, size_t *, struct err *),
			 int (*decode_buf)(struct buf *, str, struct err *))
{
	for (size_t i = 0; i < rows; i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(100);
		char out[64];
		char message[80];
		struct err err = ERR_INIT;
		size_t n = 0;
		int r = decode(out, str_of(t[i].in), &n, &err);

		buf_add(&b, STR("x"));
		int r_buf = decode_buf(&b, str_of(t[i].in), NULL);
		CHECK_ROW(i, r == r_buf);
		if (t[i].at < 0) {
			CHECK_ROW(i, r == 0);
			CHECK_STR_ROW(i, str_span(out, n), t[i].want);
			CHECK_STR_ROW(i, str_skip(buf_str(&b), 1), t[i].want);
		} else {
			CHECK_ROW(i, r == -ERR_BAD_REQUEST);
			snprintf(message, sizeof(message), "illegal base64 data at input byte %d", t[i].at);
			CHECK_STR_ROW(i, err_str(&err), message);
			CHECK_STR_ROW(i, buf_str(&b), "x");
			CHECK_ROW(i, b.p[1] == '\0');
		}
	}
}

TEST(base64_decodes_like_go)
{
	static const struct decode_row t[] = {
		{ "", -1, "" },
		{ "\n", -1, "" },
		{ "Zg==", -1, "f" },
		{ "Zm8=", -1, "fo" },
		{ "Zm9v", -1, "foo" },
		{ "Zm9vYmFyZm9vYmFy", -1, "foobarfoobar" },
		{ "Zm9v\nYmFy\r\nZm9v\n", -1, "foobarfoo" },
		{ "Z\nm\r9\nv", -1, "foo" },
		{ "Zg=\n=\n", -1, "f" },
		{ "Zh==", -1, "f" }, /* spare bits */
		{ "+/+/", -1, "\xfb\xff\xbf" },
		{ "!!!!", 0, NULL },
		{ "====", 0, NULL },
		{ "x===", 1, NULL },
		{ "=AAA", 0, NULL },
		{ "A=AA", 1, NULL },
		{ "AA=A", 2, NULL },
		{ "AA==A", 4, NULL },
		{ "AAA=AAAA", 4, NULL },
		{ "AAAAA", 4, NULL },
		{ "AAAAAA", 4, NULL },
		{ "A=", 1, NULL },
		{ "A==", 1, NULL },
		{ "AA=", 3, NULL },
		{ "AAAAA=", 5, NULL },
		{ "AAAAAA=", 7, NULL },
		{ "YWJjZA=====", 8, NULL },
		{ "A!\n", 1, NULL },
		{ "A=\n", 1, NULL },
		{ "Zm9vYm-y", 6, NULL },
		{ "Zm9v YmFy", 4, NULL },
		{ "Zm9vYmFy\xff", 8, NULL },
	};
	check_decode(t, ARRAY_LEN(t), base64_decode, base64_decode_buf);

	char out[8];
	size_t n;
	CHECK_INT(base64_decode(out, STR("AAA="), &n, NULL), 0);
	CHECK(n == 2 && out[0] == '\0' && out[1] == '\0');
}

TEST(base64url_decodes_like_go)
{
	static const struct decode_row t[] = {
		{ "", -1, "" },
		{ "Zg", -1, "f" },
		{ "Zm8", -1, "fo" },
		{ "Zm9v", -1, "foo" },
		{ "Zm9vYg", -1, "foob" },
		{ "-_-_", -1, "\xfb\xff\xbf" },
		{ "Z", 0, NULL },
		{ "Zm9vY", 4, NULL },
		{ "Zg==", 2, NULL },
		{ "+/+/", 0, NULL },
		{ "Zm9v.", 4, NULL },
	};
	check_decode(t, ARRAY_LEN(t), base64url_decode, base64url_decode_buf);
}

TEST(base64_round_trip)
{
	char raw[300], text[400], back[300];
	random_seed(1);
	for (size_t n = 0; n < sizeof(raw); n++) {
		size_t got = 0;
		random_bytes(raw, n);
		size_t len = base64_encode(text, str_span(raw, n));
		CHECK_ROW(n, base64_decode(back, str_span(text, len), &got, NULL) == 0 && got == n);
		CHECK_ROW(n, n == 0 || memcmp(raw, back, n) == 0);
		len = base64url_encode(text, str_span(raw, n));
		CHECK_ROW(n, base64url_decode(back, str_span(text, len), &got, NULL) == 0 && got == n);
		CHECK_ROW(n, n == 0 || memcmp(raw, back, n) == 0);
		CHECK_ROW(n, base64_decoded_max(len) == n);
	}
	random_unseed();
}

TEST(base64_respects_the_maximum)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(7);
	struct err err;
	base64url_encode_buf(&b, STR("fooba"));
	CHECK_STR(buf_str(&b), "Zm9vYmE");
	buf_reset(&b);
	base64_encode_buf(&b, STR("foobar"));
	CHECK(b.overflow && b.n == 0);
	buf_reset(&b);
	CHECK_INT(base64_decode_buf(&b, STR("Zm9vYmFyZm9v"), &err), -ERR_TOO_LARGE);
	CHECK_STR(err_str(&err), "base64 data is larger than 7 bytes");
}

TEST(hex)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(100);
	char out[16];
	size_t n;
	struct err err;

	hex_encode_buf(&b, str_span("\x00\x7f\xab\xff", 4));
	CHECK_STR(buf_str(&b), "007fabff");
	CHECK_INT(hex_decode(out, STR("007FaBff"), &n, &err), 0);
	CHECK(n == 4 && memcmp(out, "\x00\x7f\xab\xff", 4) == 0);
	CHECK_INT(hex_decode(out, STR(""), &n, &err), 0);
	CHECK_INT(n, 0);
	CHECK_INT(hex_decode(out, STR("00g0"), &n, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "illegal hexadecimal digit at input byte 2");
	CHECK_INT(hex_decode(out, STR("001"), &n, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "odd number of hexadecimal digits");
}

TEST(sha256)
{
	static const char *const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	char hex[SHA256_HEX + 1];

	sha256_hex(STR_NONE, hex);
	CHECK_STR(str_of(hex), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256_hex(STR("abc"), hex);
	CHECK_STR(str_of(hex), abc);

	CLEANUP(sha256_done) struct sha256 h = { 0 };
	uint8_t sum[SHA256_BYTES];
	sha256_init(&h);
	sha256_add(&h, STR("a"));
	sha256_add(&h, STR_NONE);
	sha256_add(&h, STR("bc"));
	sha256_sum(&h, sum);
	CHECK_STR(str_span(hex, hex_encode(hex, str_span((char *)sum, sizeof(sum)))), abc);
}

TEST(uuid_v4)
{
	char a[UUID_TEXT + 1], b[UUID_TEXT + 1];
	for (int i = 0; i < 100; i++) {
		uuid_v4(a);
		CHECK_ROW(i, strlen(a) == UUID_TEXT);
		for (int k = 0; k < UUID_TEXT; k++) {
			bool dash = k == 8 || k == 13 || k == 18 || k == 23;
			CHECK_ROW(i, dash ? a[k] == '-' : strchr("0123456789abcdef", a[k]) != NULL);
		}
		CHECK_ROW(i, a[14] == '4' && strchr("89ab", a[19]));
	}
	uuid_v4(b);
	CHECK(strcmp(a, b) != 0);
	random_seed(9);
	uuid_v4(a);
	random_seed(9);
	uuid_v4(b);
	random_unseed();
	CHECK_STR(str_of(a), b);
}
