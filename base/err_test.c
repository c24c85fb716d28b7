#include "base/err.h"

#include <errno.h>

#include "base/test.h"

TEST(err_set_and_wrap)
{
	struct err err = ERR_INIT;
	int r = err_set(&err, ERR_CONFLICT, "pods '%s': revision is stale", "x");
	CHECK_INT(r, -ERR_CONFLICT);
	CHECK_INT(err.code, ERR_CONFLICT);
	CHECK_STR(err_str(&err), "pods 'x': revision is stale");
	CHECK_INT(err_wrap(&err, r, "commit %d", 7), r);
	CHECK_STR(err_str(&err), "commit 7: pods 'x': revision is stale");
	CHECK_INT(err.code, ERR_CONFLICT);
	err_clear(&err);
	CHECK(err.code == ERR_NONE && err.n == 0);

	CHECK_INT(err_set(&err, ERR_NOT_FOUND, "%s", ""), -ERR_NOT_FOUND);
	CHECK_STR(err_str(&err), "not found");
	CHECK_INT(err_set(NULL, ERR_GONE, "nobody listens"), -ERR_GONE);
	CHECK_INT(err_wrap(NULL, -ERR_GONE, "nobody listens"), -ERR_GONE);
	err_clear(NULL);
}

TEST(err_sys)
{
	static const struct {
		int sys;
		enum err_code want;
		const char *text;
	} t[] = {
		{ ENOENT, ERR_NOT_FOUND, "open /x: No such file or directory" },
		{ EACCES, ERR_FORBIDDEN, "open /x: Permission denied" },
		{ EEXIST, ERR_ALREADY_EXISTS, "open /x: File exists" },
		{ EIO, ERR_SYSTEM, "open /x: Input/output error" },
		{ 123456, ERR_SYSTEM, "open /x: unknown error" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err;
		CHECK_ROW(i, err_sys(&err, t[i].sys, "open %s", "/x") == -(int)t[i].want);
		CHECK_ROW(i, err.sys == t[i].sys && err.code == t[i].want);
		CHECK_STR_ROW(i, err_str(&err), t[i].text);
	}
}

TEST(err_long_messages_are_cut)
{
	struct err err;
	err_set(&err, ERR_INTERNAL, "%1000d", 1); /* what a server refuses a pod with, and events tell, is whole */
	CHECK(err.n == 1000 && str_ends(err_str(&err), STR(" 1")));
	err_set(&err, ERR_INTERNAL, "%2000d", 1);
	CHECK_INT(err.n, sizeof(err.msg) - 1);
	CHECK(str_ends(err_str(&err), STR(" ...")) && err.msg[err.n] == '\0');
	err_wrap(&err, -1, "%400d", 2);
	CHECK(str_ends(err_str(&err), STR("...")) && err.n == sizeof(err.msg) - 1);

	/* Never in the middle of a character: whatever the offset, what is left is UTF-8. */
	for (int shift = 0; shift < 4; shift++) {
		char text[2000];
		for (size_t i = 0; i + 4 <= sizeof(text); i += 4)
			memcpy(text + i, "\xf0\x9f\x98\x80", 4);
		err_set(&err, ERR_INTERNAL, "%.*s%.*s", shift, "abcd", (int)sizeof(text), text);
		CHECK_ROW(shift, str_is_utf8(err_str(&err)) && str_ends(err_str(&err), STR("...")));
		CHECK_ROW(shift, err.n > 1005);
	}
}

TEST(err_table)
{
	CHECK_INT(err_http_status(ERR_ALREADY_EXISTS), 409);
	CHECK_STR(str_of(err_reason(ERR_ALREADY_EXISTS)), "AlreadyExists");
	for (int code = ERR_NONE + 1; code < ERR_MAX; code++)
		CHECK_ROW(code, err_http_status(code) >= 400 && err_reason(code)[0]);
}
