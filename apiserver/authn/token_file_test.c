#include <unistd.h>

#include "apiserver/authn/token_file.h"
#include "base/file.h"
#include "base/log.h"
#include "base/test.h"

static int load_text(const char *text, struct tokens **ret, struct err *err)
{
	char path[] = "/tmp/c8s-token-test-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(file_write(path, str_of(text), 0600, err), 0);
	*ret = NULL;
	int r = authn_token_load(path, ret, err);
	unlink(path);
	return r;
}

TEST(tokens_are_found)
{
	struct tokens *tokens;
	struct user u;
	struct err err = ERR_INIT;

	log_set_level(LOG_LEVEL_OFF);
	CHECK_INT(load_text("abc,alice,1,\"dev,ops\"\r\n\n\"q\"\"x\",\"bob\nthe builder\",2\n,nobody,3\nabd,carol,4,\nabc,dora,5,admins,more\n",
			    &tokens, &err), 0);
	log_set_level(LOG_LEVEL_INFO);
	CHECK(authn_token_find(tokens, STR("abc"), &u));
	CHECK_STR(u.name, "dora");
	CHECK_STR(u.uid, "5");
	CHECK_INT(u.n_groups, 1);
	CHECK_STR(u.groups[0], "admins");
	CHECK(authn_token_find(tokens, STR("q\"x"), &u));
	CHECK_STR(u.name, "bob\nthe builder");
	CHECK_INT(u.n_groups, 0);
	CHECK(authn_token_find(tokens, STR("abd"), &u));
	CHECK_INT(u.n_groups, 1); /* as Go splits an empty text */
	CHECK_STR(u.groups[0], "");
	CHECK(!authn_token_find(tokens, STR(""), &u));
	CHECK(!authn_token_find(tokens, STR("ab"), &u));
	CHECK(!authn_token_find(NULL, STR("abc"), &u));
	authn_token_free(tokens);

	CHECK_INT(load_text("t,u,1,\"a,b\"", &tokens, &err), 0);
	CHECK(authn_token_find(tokens, STR("t"), &u));
	CHECK_INT(u.n_groups, 2);
	CHECK_STR(u.groups[1], "b");
	authn_token_free(tokens);
}

TEST(tokens_are_refused)
{
	static const struct { const char *text, *part; } t[] = {
		{ "abc,alice\n", "must have at least 3 columns (token, user name, user uid), found 2" },
		{ "a,b,c\na,b\"c,d\n", "parse error on line 2, column 4: bare \" in non-quoted-field" },
		{ "a,\"b\"c,d\n", "parse error on line 1, column 5: extraneous or missing \" in quoted-field" },
		{ "a,b,\"c\nd", "record on line 1; parse error on line 2, column 2: extraneous or missing \" in quoted-field" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct tokens *tokens;
		struct err err = ERR_INIT;
		CHECK_ROW(i, load_text(t[i].text, &tokens, &err) < 0);
		if (str_find(err_str(&err), str_of(t[i].part)) < 0)
			CHECK_STR_ROW(i, err_str(&err), t[i].part);
	}
	struct tokens *tokens;
	struct err err = ERR_INIT;
	CHECK_INT(authn_token_load("/does/not/exist", &tokens, &err), -ERR_NOT_FOUND);
}
