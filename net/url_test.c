#include "net/url.h"

#include "base/test.h"

TEST(url_unescape)
{
	static const struct { const char *in; int r; const char *path, *query; } t[] = {
		{ "", 0, "", "" },
		{ "abc", 0, "abc", "abc" },
		{ "a+b", 0, "a+b", "a b" },
		{ "1%41", 0, "1A", "1A" },
		{ "1%41%42%43", 0, "1ABC", "1ABC" },
		{ "%4a%4A", 0, "JJ", "JJ" },
		{ "%6F%2f", 0, "o/", "o/" },
		{ "%20%3F%3d", 0, " ?=", " ?=" },
		{ "%", -ERR_BAD_REQUEST, "invalid URL escape \"%\"", NULL },
		{ "%a", -ERR_BAD_REQUEST, "invalid URL escape \"%a\"", NULL },
		{ "%1", -ERR_BAD_REQUEST, "invalid URL escape \"%1\"", NULL },
		{ "123%45%6", -ERR_BAD_REQUEST, "invalid URL escape \"%6\"", NULL },
		{ "%zzzzz", -ERR_BAD_REQUEST, "invalid URL escape \"%zz\"", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		str path = STR_NONE, query = STR_NONE;
		CHECK_ROW(i, url_path_unescape(&a, str_of(t[i].in), &path, &err) == t[i].r);
		CHECK_STR_ROW(i, t[i].r < 0 ? err_str(&err) : path, t[i].path);
		CHECK_ROW(i, url_query_unescape(&a, str_of(t[i].in), &query, NULL) == t[i].r);
		CHECK_ROW(i, url_escapes_valid(str_of(t[i].in)) == (t[i].r == 0));
		if (t[i].query)
			CHECK_STR_ROW(i, query, t[i].query);
	}
}

TEST(url_escape)
{
	static const struct { const char *in, *segment, *query; } t[] = {
		{ "", "", "" },
		{ "abc-_.~", "abc-_.~", "abc-_.~" },
		{ "one two", "one%20two", "one+two" },
		{ "10%", "10%25", "10%25" },
		{ "a/b", "a%2Fb", "a%2Fb" },
		{ "$&+=:@", "$&+=:@", "%24%26%2B%3D%3A%40" },
		{ ";,?#!", "%3B%2C%3F%23%21", "%3B%2C%3F%23%21" },
		{ "\xc3\xa4\n", "%C3%A4%0A", "%C3%A4%0A" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(100), c = BUF_INIT(100);
		url_path_escape(&b, str_of(t[i].in));
		url_query_escape(&c, str_of(t[i].in));
		CHECK_STR_ROW(i, buf_str(&b), t[i].segment);
		CHECK_STR_ROW(i, buf_str(&c), t[i].query);
	}
}

TEST(url_query_parse)
{
	static const struct { const char *in, *out, *error; } t[] = {
		{ "", "", NULL },
		{ "a=1", "a=1|", NULL },
		{ "a=1&b=2&a=3", "a=1|b=2|a=3|", NULL },
		{ "a", "a=|", NULL },
		{ "a=&=b&&", "a=|=b|", NULL },
		{ "a=b=c", "a=b=c|", NULL },
		{ "a%3d=1+2%2B3", "a==1 2+3|", NULL },
		{ "a=1;b=2", "", "invalid semicolon separator in query" },
		{ "a;b=1", "", "invalid semicolon separator in query" },
		{ "a=%3B", "a=;|", NULL },
		{ "a=1&b=%zz&c=3", "a=1|c=3|", "invalid URL escape \"%zz\"" },
		{ "%=1&b=%yy&c=3", "c=3|", "invalid URL escape \"%\"" },
		{ "b=%zz&a=1;&c=2", "c=2|", "invalid semicolon separator in query" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(100);
		struct url_query q;
		struct err err = ERR_INIT;
		CHECK_ROW(i, url_query_parse(&a, str_of(t[i].in), &q, &err) == (t[i].error ? -ERR_BAD_REQUEST : 0));
		if (t[i].error)
			CHECK_STR_ROW(i, err_str(&err), t[i].error);
		for (size_t k = 0; k < q.n; k++)
			buf_addf(&b, STR_FMT "=" STR_FMT "|", STR_ARG(q.params[k].key), STR_ARG(q.params[k].value));
		CHECK_STR_ROW(i, buf_str(&b), t[i].out);
	}
}

TEST(url_query_values)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(URL_PARAMS_MAX * 2);
	struct url_query q;
	struct err err = ERR_INIT;

	url_query_add(&b, STR("command"), STR("a b"));
	url_query_add(&b, STR("x&"), STR("="));
	CHECK_STR(buf_str(&b), "command=a+b&x%26=%3D");
	buf_reset(&b);
	for (int i = 0; i < URL_PARAMS_MAX; i++)
		buf_addc(&b, '&');
	CHECK_INT(url_query_parse(&a, buf_str(&b), &q, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "number of URL query parameters exceeded limit");
}

TEST(url_parse)
{
	static const struct { const char *in, *out; } t[] = {
		{ "http://a", "http|a|80|a||" },
		{ "HTTPS://Example.com/", "https|Example.com|443|Example.com|/|" },
		{ "https://10.0.0.1:10250/exec/ns/pod/c?command=x&tty=1#frag",
		  "https|10.0.0.1|10250|10.0.0.1:10250|/exec/ns/pod/c|command=x&tty=1" },
		{ "http://[::1]:8080/x", "http|::1|8080|[::1]:8080|/x|" },
		{ "http://[fe80::1%25en0]/", "http|fe80::1%en0|80|[fe80::1%25en0]|/|" },
		{ "http://user:pw@host:1?q", "http|host|1|host:1||q" },
		{ "http://a:/", "http|a|80|a:|/|" },
		{ "ws://a/%20%41", "ws|a|0|a|/%20%41|" },
		{ "http://a/b//c?x?y", "http|a|80|a|/b//c|x?y" },
		{ "", "missing protocol scheme" },
		{ "/path", "missing protocol scheme" },
		{ "a/b:c", "missing protocol scheme" },
		{ "1http://a", "missing protocol scheme" },
		{ "mailto:x", "no host in URL" },
		{ "http:///path", "no host in URL" },
		{ "http://:80/", "no host in URL" },
		{ "http://a:x/", "invalid port \":x\" after host" },
		{ "http://a:-1/", "invalid port \":-1\" after host" },
		{ "http://a:65536/", "invalid port \":65536\" after host" },
		{ "http://a:1:2/", "invalid port \":1:2\" after host" },
		{ "http://[::1/", "missing ']' in host" },
		{ "http://[1.2.3.4]/", "invalid IP-literal" },
		{ "http://[::1%zz]/", "invalid IP-literal" },
		{ "http://[::1]x/", "invalid port after host" },
		{ "http://a b/", "invalid character in host name" },
		{ "http://a%20b/", "invalid character in host name" },
		{ "http://a/%2", "invalid URL escape \"%2\"" },
		{ "http://a/\n", "net/url: invalid control character in URL" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct url u;
		struct err err = ERR_INIT;
		if (url_parse(&a, str_of(t[i].in), &u, &err) < 0) {
			CHECK_STR_ROW(i, err_str(&err), t[i].out);
			continue;
		}
		str got = arena_printf(&a, STR_FMT "|" STR_FMT "|%d|" STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(u.scheme),
				       STR_ARG(u.host), u.port, STR_ARG(u.authority), STR_ARG(u.path), STR_ARG(u.query));
		CHECK_STR_ROW(i, got, t[i].out);
	}
}
