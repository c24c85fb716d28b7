#include "machinery/image_name.h"

#include "base/test.h"

#define SHA "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(image_name_parse)
{
	static const struct {
		const char *text, *domain, *path, *tag, *digest; /* domain NULL: no image name */
		bool latest;
	} t[] = {
		{ "busybox", "docker.io", "busybox", "", "", true },
		{ "busybox:latest", "docker.io", "busybox", "latest", "", true },
		{ "busybox:1.36", "docker.io", "busybox", "1.36", "", false },
		{ "busybox@" SHA, "docker.io", "busybox", "", SHA, false },
		{ "a/b:x@" SHA, "docker.io", "a/b", "x", SHA, false },
		{ "a/b:latest@" SHA, "docker.io", "a/b", "latest", SHA, true },
		{ "localhost/a", "localhost", "a", "", "", true },
		{ "registry.k8s.io/pause:3.10", "registry.k8s.io", "pause", "3.10", "", false },
		{ "r:5000/a_b/c__d.e---f", "r:5000", "a_b/c__d.e---f", "", "", true },
		{ "[::1]:5000/a", "[::1]:5000", "a", "", "", true },
		{ "index.docker.io/a", "docker.io", "a", "", "", true },
		{ "", NULL, "", "", "", false },
		{ "Busybox", NULL, "", "", "", false },
		{ " busybox", NULL, "", "", "", false },
		{ "a:", NULL, "", "", "", false },
		{ "a//b", NULL, "", "", "", false },
		{ "a___b", NULL, "", "", "", false },
		{ "-a/b", NULL, "", "", "", false },
		{ "a@sha256:0123", NULL, "", "", "", false },
		{ "a@md5:0123456789abcdef0123456789abcdef", NULL, "", "", "", false },
		{ "x.y:port/a", NULL, "", "", "", false },
		{ "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", NULL, "", "", "", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct image_name name;
		bool good = image_name_parse(str_of(t[i].text), &name);
		CHECK_ROW(i, good == (t[i].domain != NULL));
		CHECK_ROW(i, image_name_is_latest(str_of(t[i].text)) == t[i].latest);
		if (!good)
			continue;
		CHECK_STR_ROW(i, name.domain, t[i].domain);
		CHECK_STR_ROW(i, name.path, t[i].path);
		CHECK_STR_ROW(i, name.tag, t[i].tag);
		CHECK_STR_ROW(i, name.digest, t[i].digest);
	}
}
