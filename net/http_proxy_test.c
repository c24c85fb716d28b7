#include "net/http_proxy.h"

#include <stdlib.h>

#include "base/test.h"

static void set(const char *name, const char *value)
{
	CHECK_INT(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

/* What the environment says, for one URL: "host:port authorization", "-" for none, or the error. */
static str find(struct arena *a, const char *proxy, const char *no_proxy, const char *url)
{
	struct http_proxy p;
	struct err err = ERR_INIT;
	struct url u;
	set("HTTP_PROXY", proxy);
	set("https_proxy", proxy);
	set("NO_PROXY", no_proxy);
	CHECK_INT(url_parse(a, str_of(url), &u, NULL), 0);
	int r = http_proxy_find(a, &u, &p, &err);
	set("HTTP_PROXY", NULL);
	set("https_proxy", NULL);
	set("NO_PROXY", NULL);
	if (r < 0)
		return arena_str(a, err_str(&err));
	return r == 0 ? STR("-") : arena_printf(a, "%s:%u" STR_FMT, p.host, p.port, STR_ARG(p.authorization));
}

TEST(http_proxy_of_the_environment)
{
	static const struct {
		const char *proxy, *no_proxy, *url, *want;
	} t[] = {
		{ NULL, NULL, "http://a.io/", "-" },
		{ "", NULL, "http://a.io/", "-" },
		{ "proxy:3128", NULL, "http://a.io/", "proxy:3128" },
		{ "http://proxy", NULL, "https://a.io/", "proxy:80" },
		{ "http://u:p%40ss@[::2]:1/", NULL, "https://a.io/", "::2:1Basic dTpwQHNz" },
		{ "socks5://proxy", NULL, "http://a.io/", "proxy:1080" },
		{ "https://proxy", NULL, "https://a.io/", "proxy:443" },
		{ "ftp://proxy", NULL, "https://a.io/",
		  "invalid proxy address in HTTPS_PROXY: unsupported scheme \"ftp\", must be http, https, or socks5" },
		{ "http://%", NULL, "http://a.io/", "invalid proxy address in HTTP_PROXY: could not parse: http://%" },
		/* this machine */
		{ "p:1", NULL, "http://localhost:5000/", "-" },
		{ "p:1", NULL, "http://127.1.2.3/", "-" },
		{ "p:1", NULL, "http://[::1]:5000/", "-" },
		{ "p:1", NULL, "http://128.0.0.1/", "p:1" },
		/* NO_PROXY */
		{ "p:1", "*", "http://a.io/", "-" },
		{ "p:1", "b.io, A.io ", "http://a.io/", "-" },
		{ "p:1", "a.io", "http://sub.a.io/", "-" },
		{ "p:1", "a.io", "http://ba.io/", "p:1" },
		{ "p:1", ".a.io", "http://a.io/", "p:1" },
		{ "p:1", ".a.io", "http://sub.a.io/", "-" },
		{ "p:1", "*.a.io", "http://sub.a.io/", "-" },
		{ "p:1", "*.a.io", "http://a.io/", "p:1" },
		{ "p:1", "a.io:443", "https://a.io/", "-" },
		{ "p:1", "a.io:443", "https://a.io:5000/", "p:1" },
		{ "p:1", "10.0.0.0/8", "http://10.1.2.3:5000/", "-" },
		{ "p:1", "10.0.0.0/8", "http://11.1.2.3/", "p:1" },
		{ "p:1", "10.0.0.128/25", "http://10.0.0.127/", "p:1" },
		{ "p:1", "10.0.0.128/25", "http://10.0.0.200/", "-" },
		{ "p:1", "fd00::/8", "http://[fd12::1]/", "-" },
		{ "p:1", "fd00::/8", "http://10.0.0.1/", "p:1" },
		{ "p:1", "10.0.0.1", "http://10.0.0.1/", "-" },
		{ "p:1", "10.0.0.1:80", "http://10.0.0.1/", "-" },
		{ "p:1", "[fd00::1]:80", "http://[fd00::1]/", "-" },
		{ "p:1", "10.0.0.1", "http://10.0.0.12/", "p:1" },
		{ "p:1", ",,10.0.0.0/99,/,:,", "http://10.0.0.1/", "p:1" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR_ROW(i, find(&a, t[i].proxy, t[i].no_proxy, t[i].url), t[i].want);
	}
}
