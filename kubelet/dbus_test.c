/* Messages of D-Bus as bytes: those that we send, and those that others may. */
#include "kubelet/dbus.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/encoding.h"
#include "base/random.h"
#include "base/test.h"

/* Hexadecimal with spaces. */
static str bytes_of(struct arena *a, const char *hex)
{
	CLEANUP(buf_done) struct buf digits = BUF_INIT(1 << 16);
	for (const char *p = hex; *p; p++)
		if (*p != ' ')
			buf_addc(&digits, *p);
	char *out = ARENA_ARRAY(a, char, digits.n / 2 + 1);
	size_t n;
	CHECK_INT(hex_decode(out, buf_str(&digits), &n, NULL), 0);
	return str_span(out, n);
}

static const struct dbus_call call = {
	.destination = "a.b", .path = "/x", .interface = "a.b.C", .member = "Do", .texts = { "one", "four" }, .has_number = true, .number = -2,
};

TEST(dbus_call_is_read_as_it_was_built)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(DBUS_MESSAGE_MAX);
	struct dbus_message m;
	size_t n;
	uint64_t number;
	str text;

	dbus_build(&call, 7, &b);
	for (size_t i = 0; i < b.n; i++)
		CHECK_ROW(i, dbus_parse(str_head(buf_str(&b), i), &m, &n, NULL) == 0);
	CHECK_INT(dbus_parse(buf_str(&b), &m, &n, NULL), 1);
	CHECK_INT(n, b.n);
	CHECK_INT(m.type, DBUS_CALL);
	CHECK_INT(m.serial, 7);
	CHECK_STR(m.path, "/x");
	CHECK_STR(m.interface, "a.b.C");
	CHECK_STR(m.member, "Do");
	CHECK_STR(m.signature, "ssi");
	struct dbus_reader r = dbus_reader_of(&m);
	CHECK(!dbus_read_number(&r, 'u', &number));
	CHECK(dbus_read_text(&r, 's', &text));
	CHECK_STR(text, "one");
	CHECK(dbus_read_text(&r, 's', &text));
	CHECK_STR(text, "four");
	CHECK(dbus_read_number(&r, 'i', &number) && (int32_t)number == -2);
	CHECK(!dbus_read_text(&r, 's', &text) && !dbus_read_variant(&r));
}

#define NOT_UNDERSTOOD "! D-Bus: a header field that cannot be understood"

TEST(dbus_parse_messages)
{
	static const struct {
		const char *hex, *want;
	} rows[] = {
		{ "6c 03 00 01 00000000 09000000 1f000000 05 017500 01000000 09 017500 00000000 04 017300 06000000 612e622e4572 00 00", "3 1 a.b.Er" },
		{ "42 02 00 01 00000000 00000009 00000008 05 017500 00000102", "2 258 " },
		/* Fields that nobody knows are passed over, those of a wrong type and of types with parts are not. */
		{ "6c 02 00 01 00000000 09000000 10000000 05 017500 01000000 63 017300 00000000 00 00000000000000", NOT_UNDERSTOOD },
		{ "6c 02 00 01 00000000 09000000 11000000 05 017500 01000000 63 017300 00000000 00 00000000000000", "2 1 " },
		{ "6c 02 00 01 00000000 09000000 09000000 05 017300 00000000 00 00000000000000", "2 0 " },
		{ "6c 02 00 01 00000000 09000000 08000000 08 017500 00000000", "2 0 " },
		{ "6c 02 00 01 00000000 09000000 08000000 05 026175 00 000000", NOT_UNDERSTOOD },
		{ "6c 02 00 01 00000000 09000000 08000000 05 016900 01000000", NOT_UNDERSTOOD },
		/* Texts that end beyond the header, or not with a 0, or have one inside. */
		{ "6c 02 00 01 00000000 09000000 09000000 04 017300 ffffffff 00 00000000000000", NOT_UNDERSTOOD },
		{ "6c 02 00 01 00000000 09000000 0a000000 04 017300 01000000 61 61 000000000000", NOT_UNDERSTOOD },
		{ "6c 02 00 01 00000000 09000000 0a000000 04 017300 01000000 00 00 000000000000", NOT_UNDERSTOOD },
		{ "78 02 00 01 00000000 09000000 00000000", "! D-Bus: a message of an unknown version" },
		{ "6c 02 00 02 00000000 09000000 00000000", "! D-Bus: a message of an unknown version" },
		{ "6c 02 00 01 ffffffff 09000000 00000000", "! D-Bus: a message of more than 65536 bytes" },
		{ "6c 02 00 01 00000000 09000000 ffffffff", "! D-Bus: a message of more than 65536 bytes" },
		{ "6c 02 00 01 00000000 09000000 08000000 09 017500 11000000", "! D-Bus: a message with more than 16 descriptors" },
		{ "6c 02 00 01 00000000 09000000", "more" },
		{ "6c 02 00 01 01000000 09000000 00000000", "more" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct dbus_message m;
		size_t n;
		int r = dbus_parse(bytes_of(&a, rows[i].hex), &m, &n, &err);
		str got = r < 0 ? arena_printf(&a, "! %s", err.msg) :
			  r > 0 ? arena_printf(&a, "%d %u " STR_FMT, m.type, m.reply_to, STR_ARG(m.error)) : STR("more");
		CHECK_STR_ROW(i, got, rows[i].want);
	}
}

TEST(dbus_parse_anything)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(DBUS_MESSAGE_MAX);
	dbus_build(&call, 7, &b);
	random_seed(5);
	for (int i = 0; i < 20000; i++) {
		char *copy = malloc(b.n); /* of its exact size, for the sanitizers */
		CHECK(copy);
		memcpy(copy, b.p, b.n);
		for (int k = 0; k < 3; k++)
			copy[random_below(b.n)] = (char)random_u64();
		struct dbus_message m;
		size_t n;
		str text;
		uint64_t number;
		if (dbus_parse(str_span(copy, b.n), &m, &n, NULL) > 0) {
			CHECK(n <= b.n);
			struct dbus_reader r = dbus_reader_of(&m);
			while (dbus_read_text(&r, 's', &text) || dbus_read_number(&r, 'i', &number) || dbus_read_variant(&r))
				;
		}
		free(copy);
	}
	random_unseed();
}
