#include "oci/mount.h"

#include <sys/mount.h>

#include "base/test.h"
#include "codec/json.h"

static struct val parse(struct arena *a, const char *text)
{
	struct val v;
	struct err err = ERR_INIT;
	CHECK_INT(json_decode(a, str_of(text), &(struct json_decode_options){ 0 }, &v, &err), 0);
	return v;
}

TEST(mount_read)
{
	static const struct {
		const char *json;
		bool bind, recursive;
		uint64_t set, clear, recursive_set;
		const char *data;
	} t[] = {
		{ "{\"destination\":\"/a\",\"type\":\"tmpfs\",\"options\":[\"nosuid\",\"size=1k\",\"noexec\",\"mode=755\"]}", false, false,
		  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, 0, "size=1k,mode=755" },
		{ "{\"destination\":\"/a\",\"type\":\"bind\",\"source\":\"/b\",\"options\":[\"ro\",\"nodev\"]}", true, false,
		  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, 0, 0, "" },
		{ "{\"destination\":\"/a\",\"source\":\"/b\",\"options\":[\"rbind\",\"rro\",\"rw\"]}", true, true, 0, MOUNT_ATTR_RDONLY,
		  MOUNT_ATTR_RDONLY, "" },
		/* The last one that speaks of a thing counts. */
		{ "{\"destination\":\"/a\",\"type\":\"tmpfs\",\"options\":[\"ro\",\"rw\",\"noatime\",\"strictatime\"]}", false, false,
		  MOUNT_ATTR_STRICTATIME, MOUNT_ATTR_RDONLY | MOUNT_ATTR__ATIME, 0, "" },
		/* What the file system as a whole does is its own option, and means nothing for a bind. */
		{ "{\"destination\":\"/a\",\"type\":\"ext4\",\"options\":[\"sync\"]}", false, false, 0, 0, 0, "sync" },
		{ "{\"destination\":\"/a\",\"type\":\"bind\",\"options\":[\"sync\"]}", true, false, 0, 0, 0, "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct mount m;
		CHECK_ROW(i, mount_read(parse(&a, t[i].json), &a, &m, &err) == 0);
		CHECK_ROW(i, m.bind == t[i].bind && m.recursive == t[i].recursive);
		CHECK_ROW(i, m.set == t[i].set && m.clear == t[i].clear && m.recursive_set == t[i].recursive_set);
		CHECK_STR_ROW(i, m.data, t[i].data);
		arena_done(&a);
	}
}

TEST(mount_read_wrong)
{
	static const struct { const char *json, *message; } t[] = {
		{ "{\"destination\":\"/a\"}", "config.json: mounts: /a: the type is missing" },
		{ "{\"destination\":\"/a\",\"type\":\"bind\",\"options\":[\"size=1\"]}",
		  "config.json: mounts: /a: bind mounts cannot have any filesystem-specific options applied" },
		{ "{\"destination\":\"/a\",\"type\":\"bind\",\"options\":[\"tmpcopyup\"]}",
		  "config.json: mounts: /a: tmpcopyup is only supported for tmpfs" },
		{ "{\"destination\":\"/a\",\"type\":\"tmpfs\",\"options\":[\"idmap\"]}",
		  "config.json: mounts: /a: id-mapped mounts are only supported for bind-mounts" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct mount m;
		CHECK_ROW(i, mount_read(parse(&a, t[i].json), &a, &m, &err) == -ERR_INVALID);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
		arena_done(&a);
	}
}

TEST(mount_propagation)
{
	CHECK(mount_propagation(STR("rslave")) == (MS_SLAVE | MS_REC));
	CHECK(mount_propagation(STR("shared")) == MS_SHARED);
	CHECK(mount_propagation(STR("ro")) == 0 && mount_propagation(STR("")) == 0);
}
