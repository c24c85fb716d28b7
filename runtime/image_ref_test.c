#include "base/test.h"
#include "runtime/image.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define PARSE(name) "couldn't parse image name \"" name "\": "
#define FORMAT(name) PARSE(name) "invalid reference format"

TEST(image_references)
{
	static const struct {
		const char *in, *text, *domain, *path, *tag, *digest;
	} good[] = {
		{ "nginx", "docker.io/library/nginx:latest", "docker.io", "library/nginx", "latest", "" },
		{ "nginx:1.27", "docker.io/library/nginx:1.27", "docker.io", "library/nginx", "1.27", "" },
		{ "me/app", "docker.io/me/app:latest", "docker.io", "me/app", "latest", "" },
		{ "docker.io/nginx", "docker.io/library/nginx:latest", "docker.io", "library/nginx", "latest", "" },
		{ "index.docker.io/nginx", "docker.io/library/nginx:latest", "docker.io", "library/nginx", "latest", "" },
		{ "index.docker.io/me/app:x", "docker.io/me/app:x", "docker.io", "me/app", "x", "" },
		{ "localhost/app", "localhost/app:latest", "localhost", "app", "latest", "" },
		{ "localhost:5000/app", "localhost:5000/app:latest", "localhost:5000", "app", "latest", "" },
		{ "127.0.0.1:5000/a/b:t", "127.0.0.1:5000/a/b:t", "127.0.0.1:5000", "a/b", "t", "" },
		{ "[::1]:5000/a", "[::1]:5000/a:latest", "[::1]:5000", "a", "latest", "" },
		{ "registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10", "registry.k8s.io", "pause", "3.10", "" },
		{ "Registry/app", "Registry/app:latest", "Registry", "app", "latest", "" },
		{ "a.b/c__d/e--f.g", "a.b/c__d/e--f.g:latest", "a.b", "c__d/e--f.g", "latest", "" },
		{ "nginx@sha256:" HEX64, "docker.io/library/nginx@sha256:" HEX64, "docker.io", "library/nginx", "", "sha256:" HEX64 },
		{ "nginx:1@sha256:" HEX64, "docker.io/library/nginx@sha256:" HEX64, "docker.io", "library/nginx", "1", "sha256:" HEX64 },
		{ "x:_T.-9", "docker.io/library/x:_T.-9", "docker.io", "library/x", "_T.-9", "" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct image_ref ref;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CHECK_ROW(i, image_ref_parse(&a, str_of(good[i].in), &ref, &err) == 0);
		CHECK_STR_ROW(i, ref.text, good[i].text);
		CHECK_STR_ROW(i, ref.domain, good[i].domain);
		CHECK_STR_ROW(i, ref.path, good[i].path);
		CHECK_STR_ROW(i, ref.tag, good[i].tag);
		CHECK_STR_ROW(i, ref.digest, good[i].digest);
	}
}

TEST(image_references_that_are_none)
{
	static const struct {
		const char *in, *message;
	} bad[] = {
		{ "", FORMAT("") },
		{ "Nginx", PARSE("Nginx") "invalid reference format: repository name (library/Nginx) must be lowercase" },
		{ "me/App:1", PARSE("me/App:1") "invalid reference format: repository name (me/App) must be lowercase" },
		{ "a//b", FORMAT("a//b") },
		{ "/a", FORMAT("/a") },
		{ "a/", FORMAT("a/") },
		{ "a:", FORMAT("a:") },
		{ "a:-x", FORMAT("a:-x") },
		{ "a:b c", FORMAT("a:b c") },
		{ "a___b", FORMAT("a___b") },
		{ "a..b", FORMAT("a..b") },
		{ "-a", FORMAT("-a") },
		{ "https://x.io/a", FORMAT("https://x.io/a") },
		{ "x.io:port/a", FORMAT("x.io:port/a") },
		{ "-x.io/a", FORMAT("-x.io/a") },
		{ "[::1/a", FORMAT("[::1/a") },
		{ "../../etc/passwd", FORMAT("../../etc/passwd") },
		{ "a@sha256:12", FORMAT("a@sha256:12") },
		{ "a@sha256:0123456789abcdef0123456789abcdef", PARSE("a@sha256:0123456789abcdef0123456789abcdef") "invalid checksum digest format" },
		{ HEX64, PARSE(HEX64) "invalid repository name (" HEX64 "), cannot specify 64-byte hexadecimal strings" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct image_ref ref;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_ROW(i, image_ref_parse(&a, str_of(bad[i].in), &ref, &err) == -ERR_INVALID);
		CHECK_STR_ROW(i, err_str(&err), bad[i].message);
	}
}
