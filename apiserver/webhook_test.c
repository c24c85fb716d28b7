#include <stdlib.h>
#include <unistd.h>

#include "apiserver/webhook.h"

#include "apiserver/apiserver.h"
#include "apiserver/webhook_cache.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/test.h"

/* ---- kubeconfigs ---- */

#define KUBECONFIG(cluster, user)                                                                                       \
	"apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"     \
	"clusters: [{name: c, cluster: " cluster "}]\nusers: [{name: u, user: " user "}]\n"

TEST(webhook_kubeconfig_refused)
{
	static const char none[] = "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER "
				   "environment variable";
	static const struct { const char *yaml, *message; } t[] = {
		{ "apiVersion: v1\nkind: Config\n", none },
		{ "apiVersion: v1\nkind: Config\ncurrent-context: other\n",
		  "invalid configuration: context was not found for specified context: other" },
		{ KUBECONFIG("{}", "{}"), none },
		{ KUBECONFIG("{insecure-skip-tls-verify: true}", "{}"),
		  "invalid configuration: no server found for cluster \"c\"" },
		{ KUBECONFIG("{server: 'https://x', certificate-authority: /nowhere}", "{}"), "invalid configuration: unable to read "
		  "certificate-authority /nowhere for c due to open /nowhere: no such file or directory" },
		{ KUBECONFIG("{server: 'https://x', proxy-url: 'http://p'}", "{}"),
		  "invalid configuration: proxy-url is not supported for webhooks by c8s (cluster c)" },
		{ KUBECONFIG("{server: 'https://x'}", "{exec: {command: a, apiVersion: b}}"),
		  "invalid configuration: exec plugins are not supported for webhooks by c8s (user u)" },
		{ KUBECONFIG("{server: 'https://x'}", "{token: t, username: name}"), "invalid configuration: more than one authentication "
		  "method found for u; found [token basicAuth], only one is allowed" },
		{ KUBECONFIG("{server: 'https://x'}", "{client-certificate: /nowhere}"), "invalid configuration: [client-key-data or "
		  "client-key must be specified for u to use the clientCert authentication method., unable to read client-cert "
		  "/nowhere for u due to open /nowhere: no such file or directory]" },
		{ KUBECONFIG("{server: 'https://x', certificate-authority-data: '!'}", "{}"), NULL },
		{ KUBECONFIG("{server: 'https://x', certificate-authority-data: aGVsbG8K}", "{}"), NULL },
		{ KUBECONFIG("{server: 'https://x'}", "{tokenFile: /nowhere}"), NULL },
		{ "a: [", NULL },
		{ "apiVersion: v1\nkind: Pod\n", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char path[] = "/tmp/c8s-webhook-test-XXXXXX";
		struct apiserver s = { .port = 0 };
		struct err err = ERR_INIT;
		struct webhook *w = NULL;
		int fd = mkstemp(path);
		CHECK(fd >= 0);
		close(fd);
		CHECK_INT(file_write(path, str_of(t[i].yaml), 0600, &err), 0);
		CHECK_ROW(i, webhook_open(&s, path, &w, &err) < 0);
		unlink(path);
		if (t[i].message)
			CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}

/* ---- what a status means ---- */

TEST(webhook_reply_means)
{
	static const struct { int status; const char *type, *body, *message; enum err_code code; } t[] = {
		{ 200, "", "", NULL, 0 },
		{ 204, "", "", NULL, 0 },
		{ 302, "text/plain", "elsewhere", "the server responded with the status code 302 but did not return more information",
		  ERR_INVALID },
		{ 400, "", "", "the server rejected our request for an unknown reason", ERR_BAD_REQUEST },
		{ 403, "text/plain", " go away\n", "go away", ERR_FORBIDDEN },
		{ 404, "text/plain", "x", "the server could not find the requested resource", ERR_NOT_FOUND },
		{ 429, "", "", "the server has received too many requests and has asked us to try again later", ERR_TOO_MANY_REQUESTS },
		{ 500, "text/plain", "a \"b\"\n", "an error on the server (\"a \\\"b\\\"\") has prevented the request from succeeding",
		  ERR_INTERNAL },
		{ 500, "application/json", "{}", "an error on the server (\"unknown\") has prevented the request from succeeding",
		  ERR_INTERNAL },
		{ 500, "application/json", "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"so sorry\"}",
		  "so sorry", ERR_INTERNAL },
		{ 504, "", "", "the server was unable to return a response in the time allotted, but may still be processing the "
		  "request", ERR_SERVER_TIMEOUT },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		const struct webhook_reply reply = { t[i].status, str_of(t[i].body), str_of(t[i].type) };
		struct err err = ERR_INIT;
		CHECK_ROW(i, webhook_reply_check(&reply, &a, &err) == -(int)t[i].code);
		if (t[i].message)
			CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}

/* ---- answers that are kept ---- */

static struct webhook_cache_key key_of(struct webhook_cache *c, const char *text)
{
	str s = str_of(text);
	return webhook_cache_key(c, &s, 1);
}

static void keep(struct webhook_cache *c, const char *text, int64_t answer, int64_t ttl_ns)
{
	struct webhook_cache_key key = key_of(c, text);
	CLEANUP(frozen_unrefp) struct frozen *f = val_freeze(val_of_int(answer));
	webhook_cache_put(c, &key, f, ttl_ns);
}

static int64_t kept(struct webhook_cache *c, const char *text)
{
	struct webhook_cache_key key = key_of(c, text);
	CLEANUP(frozen_unrefp) struct frozen *f = webhook_cache_get(c, &key);
	return f ? val_as_int(f->val) : -1;
}

TEST(webhook_cache_keeps_for_a_while)
{
	clock_virtual_set(NS_PER_S, NS_PER_S);
	struct webhook_cache *c = webhook_cache_new(10);
	keep(c, "a", 1, 2 * NS_PER_S);
	keep(c, "never", 1, 0);
	CHECK_INT(kept(c, "a"), 1);
	CHECK_INT(kept(c, "b"), -1);
	CHECK_INT(kept(c, "never"), -1);
	clock_virtual_advance(NS_PER_S);
	CHECK_INT(kept(c, "a"), 1);
	clock_virtual_advance(NS_PER_S);
	CHECK_INT(kept(c, "a"), -1);
	keep(c, "a", 2, NS_PER_S);
	keep(c, "a", 3, NS_PER_S);
	CHECK_INT(kept(c, "a"), 3);
	webhook_cache_free(c);
	clock_virtual_off();
}

TEST(webhook_cache_forgets_what_is_not_asked_for)
{
	struct webhook_cache *c = webhook_cache_new(3);
	keep(c, "a", 1, NS_PER_S * 1000);
	keep(c, "b", 2, NS_PER_S * 1000);
	keep(c, "c", 3, NS_PER_S * 1000);
	CHECK_INT(kept(c, "a"), 1);
	keep(c, "d", 4, NS_PER_S * 1000);
	CHECK_INT(kept(c, "b"), -1);
	CHECK_INT(kept(c, "a"), 1);
	CHECK_INT(kept(c, "c"), 3);
	CHECK_INT(kept(c, "d"), 4);
	webhook_cache_free(c);
}

TEST(webhook_cache_tells_questions_apart)
{
	struct webhook_cache *c = webhook_cache_new(3), *other = webhook_cache_new(3);
	const str one[] = { STR("ab"), STR("c") }, two[] = { STR("a"), STR("bc") };
	struct webhook_cache_key x = webhook_cache_key(c, one, 2), y = webhook_cache_key(c, two, 2), z = webhook_cache_key(other, one, 2);
	CHECK(memcmp(&x, &y, sizeof x) != 0);
	CHECK(memcmp(&x, &z, sizeof x) != 0);
	webhook_cache_free(c);
	webhook_cache_free(other);
}
