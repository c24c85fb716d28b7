#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test.h"
#include "runtime/image_auth.h"
#include "runtime/image_hosts.h"

TEST(image_auth_challenges)
{
	static const struct {
		const char *header;
		enum auth_scheme scheme;
		const char *realm, *service, *scope, *error;
	} t[] = {
		{ "Bearer realm=\"https://a.io/token\",service=\"r.io\",scope=\"repository:x:pull,push\"", AUTH_BEARER, "https://a.io/token",
		  "r.io", "repository:x:pull,push", "" },
		{ "bearer realm=\"x\", error=\"insufficient_scope\"", AUTH_BEARER, "x", "", "", "insufficient_scope" },
		{ "Basic realm=\"a \\\"b\\\" c\"", AUTH_BASIC, "a \"b\" c", "", "", "" },
		{ "Basic realm=\"one\", Bearer realm=\"two\",service=three", AUTH_BEARER, "two", "three", "", "" },
		{ "Bearer realm=\"two\", Basic realm=\"one\"", AUTH_BEARER, "two", "", "", "" },
		{ "Negotiate", AUTH_NONE, "", "", "", "" },
		{ "Negotiate, Basic realm=x", AUTH_BASIC, "x", "", "", "" },
		{ "", AUTH_NONE, "", "", "", "" },
		{ "Bearer realm=\"unfinished", AUTH_BEARER, "unfinished", "", "", "" },
		{ "\"\"\"=,=", AUTH_NONE, "", "", "", "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct http_header header = { STR("www-authenticate"), str_of(t[i].header) };
		struct auth_challenge c;
		auth_challenge_parse(&a, &header, 1, &c);
		CHECK_ROW(i, c.scheme == t[i].scheme);
		CHECK_STR_ROW(i, c.realm, t[i].realm);
		CHECK_STR_ROW(i, c.service, t[i].service);
		CHECK_STR_ROW(i, c.scope, t[i].scope);
		CHECK_STR_ROW(i, c.error, t[i].error);
	}
}

/* A folder with one file; removed by unfolder. */
static const char *make_folder(struct arena *a, const char *sub, const char *file, const char *text)
{
	char *folder = (char *)arena_str(a, STR("/tmp/c8s-image-XXXXXX")).p;
	CHECK(mkdtemp(folder));
	CHECK_INT(file_make_dirs(arena_printf(a, "%s/%s", folder, sub).p, 0755, NULL), 0);
	CHECK_INT(file_write(arena_printf(a, "%s/%s/%s", folder, sub, file).p, str_of(text), 0600, NULL), 0);
	return folder;
}

static void remove_folder(struct arena *a, const char *folder, const char *sub, const char *file)
{
	unlink(arena_printf(a, "%s/%s/%s", folder, sub, file).p);
	rmdir(arena_printf(a, "%s/%s", folder, sub).p);
	rmdir(folder);
}

TEST(image_auth_files)
{
	static const char text[] =
		"{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":\"aHViOnNlY3JldA==\"},"
		"\"r.io:5000\":{\"username\":\"u\",\"password\":\"p\"},\"r.io:5000/team\":{\"auth\":\"dGVhbTp4OnkA\"},"
		"\"token.io\":{\"identitytoken\":\"idt\"},\"kept.io\":{},\"bad.io\":{\"auth\":\"bm9jb2xvbg==\"}},"
		"\"credsStore\":\"desktop\",\"credHelpers\":{\"gcr.io\":\"gcloud\"}}";
	static const struct {
		const char *domain, *path, *user, *password, *identity, *message;
	} t[] = {
		{ "docker.io", "library/nginx", "hub", "secret", "", NULL },
		{ "r.io:5000", "other/app", "u", "p", "", NULL },
		{ "r.io:5000", "team/app", "team", "x:y", "", NULL },
		{ "r.io:5000", "teamster/app", "u", "p", "", NULL },
		{ "r.io", "team/app", "", "", "", NULL },
		{ "token.io", "x", "", "", "idt", NULL },
		{ "none.io", "x", "", "", "", NULL },
		{ "gcr.io", "x", "", "", "", "the credentials of gcr.io are kept by the helper docker-credential-gcloud" },
		{ "kept.io", "x", "", "", "", "the credentials of kept.io are kept by the helper docker-credential-desktop" },
		{ "bad.io", "x", "", "", "", "\"auth\" is not user:password in base64" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *folder = make_folder(&a, "d", "config.json", text);
	char *const files[] = { (char *)"/nonexistent/config.json", (char *)arena_printf(&a, "%s/d/config.json", folder).p, NULL };
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct image_auth auth;
		struct err err = ERR_INIT;
		int r = auth_find(&a, files, str_of(t[i].domain), str_of(t[i].path), &auth, &err);
		CHECK_ROW(i, t[i].message ? r < 0 && str_find(err_str(&err), str_of(t[i].message)) >= 0 : r == 0);
		if (r < 0)
			continue;
		CHECK_STR_ROW(i, auth.user, t[i].user);
		CHECK_STR_ROW(i, auth.password, t[i].password);
		CHECK_STR_ROW(i, auth.identity_token, t[i].identity);
	}
	remove_folder(&a, folder, "d", "config.json");
}

TEST(image_hosts_by_default)
{
	static const struct {
		const char *domain, *scheme, *authority;
		bool plain, try_http, skip_verify;
	} t[] = {
		{ "docker.io", "https", "registry-1.docker.io", false, false, false },
		{ "registry.k8s.io", "https", "registry.k8s.io", false, false, false },
		{ "r.io:5000", "https", "r.io:5000", false, false, false },
		{ "r.io:5000", "http", "r.io:5000", true, false, false },
		{ "localhost:5000", "https", "localhost:5000", false, true, true },
		{ "127.0.0.1:80", "http", "127.0.0.1:80", false, false, false },
		{ "127.8.9.1:443", "https", "127.8.9.1:443", false, false, true },
		{ "[::1]:5000", "https", "[::1]:5000", false, true, true },
		{ "localhost", "https", "localhost", false, false, true },
		{ "128.0.0.1:5000", "https", "128.0.0.1:5000", false, false, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct registry_host *h;
		size_t n;
		CHECK_ROW(i, registry_hosts_find(&a, NULL, t[i].plain, str_of(t[i].domain), &h, &n, NULL) == 0 && n == 1);
		CHECK_STR_ROW(i, h->scheme, t[i].scheme);
		CHECK_STR_ROW(i, h->authority, t[i].authority);
		CHECK_STR_ROW(i, h->path, "/v2");
		CHECK_ROW(i, h->try_http == t[i].try_http && h->skip_verify == t[i].skip_verify && h->push && !h->mirror);
	}
}

TEST(image_hosts_toml)
{
	static const char text[] =
		"server = \"https://real.io/base\"\n"
		"[host.\"https://m.io/v2/proxy\"]\ncapabilities = [\"pull\"]\noverride_path = true\nca = [\"ca.pem\", \"/abs.pem\"]\n"
		"client = [[\"c.pem\", \"k.pem\"]]\ndial_timeout = \"2s\"\n[host.\"https://m.io/v2/proxy\".header]\nx-a = \"b\"\n"
		"[host.\"http://plain.io:81\"]\nskip_verify = true\n";
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *folder = make_folder(&a, "r.io_5000_", "hosts.toml", text);
	struct registry_host *h;
	struct err err = ERR_INIT;
	size_t n;

	CHECK_INT(registry_hosts_find(&a, folder, false, STR("r.io:5000"), &h, &n, &err), 0);
	CHECK_INT(n, 3);
	CHECK_STR(h[0].authority, "m.io");
	CHECK_STR(h[0].path, "/v2/proxy");
	CHECK(h[0].pull && !h[0].resolve && !h[0].push && h[0].mirror && h[0].n_ca == 2 && h[0].dial_timeout_ms == 2000);
	CHECK_STR(str_of(h[0].ca_files[0]), arena_printf(&a, "%s/r.io_5000_/ca.pem", folder).p);
	CHECK_STR(str_of(h[0].ca_files[1]), "/abs.pem");
	CHECK_STR(str_of(h[0].key_file), arena_printf(&a, "%s/r.io_5000_/k.pem", folder).p);
	CHECK(h[0].n_headers == 1);
	CHECK_STR(h[0].headers[0].value, "b");
	CHECK_STR(h[1].scheme, "http");
	CHECK(h[1].skip_verify && h[1].pull && h[1].resolve);
	CHECK_STR(h[2].authority, "real.io");
	CHECK_STR(h[2].path, "/base/v2");
	CHECK(!h[2].mirror);
	CHECK_INT(registry_hosts_find(&a, folder, false, STR("other.io"), &h, &n, &err), 0);
	CHECK_STR(h[0].authority, "other.io");
	CHECK_INT(file_write(arena_printf(&a, "%s/r.io_5000_/hosts.toml", folder).p, STR("[host.\"https://m\"]\ncapabilities=['fly']"), 0600, NULL), 0);
	CHECK(registry_hosts_find(&a, folder, false, STR("r.io:5000"), &h, &n, &err) < 0);
	CHECK(str_ends(err_str(&err), STR("hosts.toml: unknown capability fly")));
	remove_folder(&a, folder, "r.io_5000_", "hosts.toml");
}
