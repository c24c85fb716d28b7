#include "oci/spec.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test.h"
#include "codec/json.h"
#include "oci/oci_priv.h"

static struct val parse(struct arena *a, const char *text)
{
	struct val v;
	struct err err = ERR_INIT;
	CHECK_INT(json_decode(a, str_of(text), &(struct json_decode_options){ 0 }, &v, &err), 0);
	return v;
}

TEST(spec_process_wrong)
{
	static const struct { const char *json, *message; } t[] = {
		{ "null", "config.json: process: it is missing" },
		{ "{}", "config.json: process.args: process args cannot be empty" },
		{ "{\"args\":[]}", "config.json: process.args: process args cannot be empty" },
		{ "{\"args\":\"x\"}", "config.json: process.args: it must be a list" },
		{ "{\"args\":[1]}", "config.json: process.args: it must be a string" },
		{ "{\"args\":[\"a\\u0000b\"]}", "config.json: process.args: it has a zero byte" },
		{ "{\"args\":[\"a\"]}", "config.json: process.cwd: Cwd property must not be empty" },
		{ "{\"args\":[\"a\"],\"cwd\":\"x\"}", "config.json: process.cwd: Cwd must be an absolute path" },
		{ "{\"args\":[\"a\"],\"cwd\":\"/\",\"user\":{\"uid\":-1}}", "config.json: process.user: uid and gid must be from 0 to 4294967294" },
		{ "{\"args\":[\"a\"],\"cwd\":\"/\",\"user\":{\"uid\":4294967295}}",
		  "config.json: process.user: uid and gid must be from 0 to 4294967294" },
		{ "{\"args\":[\"a\"],\"cwd\":\"/\",\"capabilities\":{\"bounding\":[\"kill\"]}}",
		  "config.json: process.capabilities: \"kill\" is no capability" },
		{ "{\"args\":[\"a\"],\"cwd\":\"/\",\"rlimits\":[{\"type\":\"RLIMIT_CPU\",\"soft\":2,\"hard\":1}]}",
		  "config.json: process.rlimits: RLIMIT_CPU: soft is above hard" },
		{ "{\"args\":[\"a\"],\"cwd\":\"/\",\"rlimits\":[{\"type\":\"RLIMIT_CPU\"},{\"type\":\"RLIMIT_CPU\"}]}",
		  "config.json: process.rlimits: RLIMIT_CPU is there twice" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct process p;
		CHECK_ROW(i, spec_process(parse(&a, t[i].json), &a, &p, &err) == -ERR_INVALID);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
		arena_done(&a);
	}
}

TEST(spec_process_read)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct process p;
	struct val v = parse(&a, "{\"args\":[\"a\",\"b\"],\"env\":[\"X=1\"],\"cwd\":\"/c\",\"terminal\":true,\"user\":{\"uid\":1,\"gid\":2,\"umask\":18,"
				 "\"additionalGids\":[3,4]},\"consoleSize\":{\"height\":5,\"width\":6},\"noNewPrivileges\":true,"
				 "\"capabilities\":{\"bounding\":[\"CAP_KILL\",\"CAP_FUTURE\"],\"ambient\":[\"CAP_CHOWN\"]},"
				 "\"rlimits\":[{\"type\":\"RLIMIT_NOFILE\",\"soft\":1,\"hard\":18446744073709551615}]}");

	CHECK_INT(spec_process(v, &a, &p, &err), 0);
	CHECK_STR(str_of(p.args[1]), "b");
	CHECK(p.args[2] == NULL && p.env[1] == NULL && p.terminal && p.no_new_privs && p.umask == 022);
	CHECK(p.uid == 1 && p.gid == 2 && p.gids_n == 2 && p.gids[1] == 4 && p.height == 5 && p.width == 6);
	CHECK(p.caps[CAP_SET_BOUNDING] == 1 << CAP_KILL && p.caps[CAP_SET_AMBIENT] == 1 << CAP_CHOWN && p.caps[CAP_SET_EFFECTIVE] == 0);
	CHECK(p.limits_n == 1 && p.limits[0].limit.rlim_cur == 1 && p.limits[0].limit.rlim_max == RLIM_INFINITY);
	arena_done(&a);
}

TEST(spec_read)
{
	static const struct { const char *json, *message; } t[] = {
		{ "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"r\"},\"linux\":{\"namespaces\":[{\"type\":\"mount\"}]}}", NULL },
		{ "{\"ociVersion\":\"1.2.0-dev\",\"root\":{\"path\":\"r\"},\"linux\":{\"namespaces\":[{\"type\":\"mount\"}]}}", NULL },
		{ "[]", "config.json: it: no object" },
		{ "{}", "config.json: ociVersion: it is missing" },
		{ "{\"ociVersion\":\"2.0.0\"}", "config.json: ociVersion: \"2.0.0\" is not 1.x" },
		{ "{\"ociVersion\":\"1.0.2\",\"linux\":{\"namespaces\":[{\"type\":\"mount\"}]}}", "config.json: root.path: it is missing" },
		{ "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"r\"}}", "config.json: linux.namespaces: a new mount namespace is needed" },
		{ "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"r\"},\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"pid\"}]}}",
		  "config.json: linux.namespaces: pid is there twice" },
		{ "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"r\"},\"hostname\":\"x\",\"linux\":{\"namespaces\":[{\"type\":\"mount\"}]}}",
		  "config.json: hostname: unable to set hostname without a private UTS namespace" },
		{ "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"r\"},\"linux\":{\"namespaces\":[{\"type\":\"mount\"}]},\"mounts\":[{}]}",
		  "config.json: mounts: a destination is missing" },
		{ "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"r\"},\"linux\":{\"namespaces\":[{\"type\":\"mount\"}]},"
		  "\"hooks\":{\"poststop\":[{\"path\":\"x\"}]}}", "config.json: hooks: a path must be absolute" },
	};
	char dir[] = "/tmp/c8s-spec-XXXXXX", path[64], root[64];

	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/config.json", dir);
	snprintf(root, sizeof(root), "%s/r", dir);
	CHECK_INT(file_make_dirs(root, 0755, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct spec s;
		CHECK_INT(file_write(path, str_of(t[i].json), 0644, &err), 0);
		int r = spec_read(dir, &a, &s, &err);
		CHECK_ROW(i, r == (t[i].message ? -ERR_INVALID : 0));
		if (t[i].message)
			CHECK_STR_ROW(i, err_str(&err), t[i].message);
		else
			CHECK_STR_ROW(i, str_of(s.rootfs), root);
		arena_done(&a);
	}
	unlink(path);
	rmdir(root);
	rmdir(dir);
}
