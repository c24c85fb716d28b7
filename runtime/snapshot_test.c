#include "runtime/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fiber_test.h"
#include "base/file.h"
#include "base/log.h"
#include "runtime/layer_testing.h"
#include "runtime/snapshot_priv.h"

enum { LAYERS_MAX = 160 };

/* A store of images and one of snapshots, and an image in them that grows by layers. */
struct world {
	struct arena arena;
	char *folder;
	struct images *images;
	struct snapshots *snapshots;
	struct image image;
	str *diff_ids, *layers;
};

static const char *path(struct world *w, const char *name)
{
	return arena_printf(&w->arena, "%s/%s", w->folder, name).p;
}

static void open_world(struct world *w, int mode)
{
	*w = (struct world){ .folder = test_folder_make() };
	w->diff_ids = ARENA_ARRAY(&w->arena, str, LAYERS_MAX);
	w->layers = ARENA_ARRAY(&w->arena, str, LAYERS_MAX);
	CHECK_INT(images_open(&(struct images_options){ .root = path(w, "images") }, &w->images, NULL), 0);
	CHECK_INT(snapshots_open(path(w, "snapshots"), &w->snapshots, NULL), 0);
	if (mode >= 0)
		snapshots_force(w->snapshots, (enum snapshot_mode)mode);
	w->image = (struct image){ .id = STR("sha256:0"), .diff_ids = w->diff_ids, .layers = w->layers };
}

static void close_world(struct world *w)
{
	struct err err = ERR_INIT;
	if (snapshots_keep(w->snapshots, NULL, 0, &err) < 0)
		fail_msg("%s", err.msg);
	snapshots_free(w->snapshots);
	images_free(w->images);
	test_folder_remove(&w->folder);
	arena_done(&w->arena);
}

static void reopen(struct world *w)
{
	enum snapshot_mode mode = w->snapshots->mode;
	snapshots_free(w->snapshots);
	CHECK_INT(snapshots_open(path(w, "snapshots"), &w->snapshots, NULL), 0);
	snapshots_force(w->snapshots, mode);
}

static void add_layer(struct world *w, const struct tar_entry *entries)
{
	CLEANUP(buf_done) struct buf tar = BUF_INIT(64 << 20), packed = BUF_INIT(64 << 20);
	char digest[DIGEST_TEXT + 1], hex[SHA256_HEX + 1];
	struct image_lease lease;
	tar_make(&tar, entries);
	tar_compress(&packed, buf_str(&tar), w->image.n_layers % 2 ? "zstd" : "gzip");
	CHECK_INT(image_lease_open(path(w, "images"), &lease, NULL), 0);
	CHECK_INT(image_blob_write(path(w, "images"), &lease, buf_str(&packed), digest, NULL), 0);
	image_lease_done(&lease);
	sha256_hex(buf_str(&tar), hex);
	w->diff_ids[w->image.n_layers] = arena_printf(&w->arena, "sha256:%s", hex);
	w->layers[w->image.n_layers++] = arena_str(&w->arena, str_of(digest));
}

static void unpack(struct world *w)
{
	struct err err = ERR_INIT;
	if (snapshot_unpack(w->snapshots, w->images, &w->image, &err) < 0)
		fail_msg("%s", err.msg);
}

static const char *mount_root(struct world *w, const char *key)
{
	const char *root;
	struct err err = ERR_INIT;
	if (snapshot_mount(w->snapshots, str_of(key), &w->image, STR_NONE, &w->arena, &root, &err) < 0)
		fail_msg("%s", err.msg);
	return root;
}

/* The content of a file, "-" when there is none, "/" for a folder. */
static const char *content(struct world *w, const char *root, const char *name)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct stat st;
	const char *file = arena_printf(&w->arena, "%s/%s", root, name).p;
	if (lstat(file, &st) < 0)
		return "-";
	if (S_ISDIR(st.st_mode))
		return "/";
	CHECK_INT(file_read(file, &b, NULL), 0);
	return arena_str(&w->arena, buf_str(&b)).p;
}

static const struct tar_entry base_layer[] = {
	{ "./", '5', .mode = 0751, .uid = 7 },
	{ "etc/", '5', .mode = 0750, .uid = 5, .gid = 6, .mtime = 1000 },
	{ "etc/passwd", '0', .data = "root" },
	{ "etc/gone", '0', .data = "x" },
	{ "data/", '5', .mode = 0755 },
	{ "data/old", '0', .data = "old" },
	{ "again/", '5', .mode = 0755 },
	{ "again/old", '0', .data = "old" },
	{ "file", '0', .data = "file" },
	{ "hard", '1', .link = "file" },
	{ "low/", '5', .mode = 0711, .uid = 9, .mtime = 2000 },
	{ "low/tool", '0', .data = "tool", .mode = 04755, .uid = 3, .mtime = 3000, .pax_key = "SCHILY.xattr.user.note", .pax_value = "hi" },
	{ "low/sym", '2', .link = "tool" },
	{ "taken", '0', .data = "taken" },
	{ 0 },
};

static const struct tar_entry second_layer[] = {
	{ "etc/.wh.gone", .type = '0' },
	{ "etc/new", '0', .data = "new" },           /* without an entry for etc */
	{ "data/fresh", '0', .data = "fresh" },
	{ "data/.wh..wh..opq", .type = '0' },                 /* after what it stands beside */
	{ ".wh.again", .type = '0' },
	{ "again/", '5', .mode = 0700 },
	{ "again/new", '0', .data = "new" },
	{ "file", '5', .mode = 0755 },                /* becomes a folder */
	{ "file/in", '0', .data = "in" },
	/* second names for files of the layer below, and nothing else */
	{ "tools/", '5', .mode = 0755, .mtime = 4000 },
	{ "tools/one", '1', .link = "low/tool" },
	{ "tools/two", '1', .link = "/low/tool" },
	{ "tools/sym", '1', .link = "low/sym" },
	{ "early", '1', .link = "taken" },
	{ "early", '0', .data = "later" },
	{ "again-linked", '1', .link = "taken" },
	{ ".wh.again-linked", .type = '0' },
	{ 0 },
};

/* Hard links across layers: one file, as it was, and no folder that looks as if it had been touched. */
static void check_links(struct world *w, const char *root)
{
	struct stat st, other;
	char note[8];
	CHECK_INT(stat(arena_printf(&w->arena, "%s/low/tool", root).p, &st), 0);
	CHECK_INT(stat(arena_printf(&w->arena, "%s/tools/two", root).p, &other), 0);
	CHECK(st.st_ino == other.st_ino && st.st_nlink == 3);
	CHECK(st.st_mode == (S_IFREG | 04755) && st.st_uid == 3 && st.st_mtime == 3000);
	CHECK_INT(getxattr(arena_printf(&w->arena, "%s/tools/one", root).p, "user.note", note, sizeof(note)), 2);
	CHECK_INT(lstat(arena_printf(&w->arena, "%s/tools/sym", root).p, &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_INT(stat(arena_printf(&w->arena, "%s/low", root).p, &st), 0);
	CHECK(st.st_mode == (S_IFDIR | 0711) && st.st_uid == 9 && st.st_mtime == 2000);
	CHECK_INT(stat(arena_printf(&w->arena, "%s/tools", root).p, &st), 0);
	CHECK_INT(st.st_mtime, 4000);
}

static void check_view(struct world *w, const char *root)
{
	static const struct {
		const char *name, *content;
	} t[] = {
		{ "etc/passwd", "root" }, { "etc/gone", "-" }, { "etc/new", "new" }, { "data/old", "-" }, { "data/fresh", "fresh" },
		{ "again/old", "-" }, { "again/new", "new" }, { "file", "/" }, { "file/in", "in" }, { "hard", "file" },
		{ "tools/one", "tool" }, { "tools/two", "tool" }, { "low/tool", "tool" }, { "early", "later" }, { "taken", "taken" },
		{ "again-linked", "taken" },
	};
	struct stat st;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, str_of(content(w, root, t[i].name)), t[i].content);
	CHECK_INT(stat(root, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0751);
	CHECK_INT(st.st_uid, 7);
	CHECK_INT(stat(arena_printf(&w->arena, "%s/etc", root).p, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0750);
	CHECK_INT(st.st_uid, 5);
	CHECK_INT(st.st_gid, 6);
	check_links(w, root);
}

static bool have_overlay(void)
{
	return geteuid() == 0 && access("/sys/module/overlay", F_OK) == 0;
}

/* Whatever way roots are made, containers see the same. */
static void same_view(int mode)
{
	struct world w;
	uint64_t before, bytes, inodes;
	open_world(&w, mode);
	add_layer(&w, base_layer);
	add_layer(&w, second_layer);
	unpack(&w);
	const char *root = mount_root(&w, "one");
	check_view(&w, root);
	/* another one does not see what this one writes */
	CHECK_INT(snapshot_usage(w.snapshots, STR("one"), &before, &inodes, NULL), 0);
	test_file(&w.arena, root, "written", arena_printf(&w.arena, "%10000s", "x"));
	CHECK_INT(snapshot_usage(w.snapshots, STR("one"), &bytes, &inodes, NULL), 0);
	CHECK(bytes >= before + 10000 && inodes >= 2);
	CHECK_STR(str_of(content(&w, mount_root(&w, "two"), "written")), "-");
	/* a restart finds both, and the same key is the same root */
	reopen(&w);
	CHECK_STR(str_of(mount_root(&w, "one")), root);
	CHECK(strlen(content(&w, root, "written")) == 10000);
	CHECK_INT(snapshot_remove(w.snapshots, STR("one"), NULL), 0);
	CHECK_INT(snapshot_remove(w.snapshots, STR("one"), NULL), 0);
	CHECK_INT(access(root, F_OK), -1);
	check_view(&w, mount_root(&w, "two"));
	close_world(&w);
}

FIBER_TEST_IF(have_overlay(), snapshot_view_by_fds) { same_view(SNAPSHOT_FD); }
FIBER_TEST_IF(have_overlay(), snapshot_view_by_text) { same_view(SNAPSHOT_TEXT); }
FIBER_TEST_IF(geteuid() == 0, snapshot_view_by_copy) { same_view(SNAPSHOT_COPY); }

/* The upper layer of a reboot: the folder is there, the mount is not. */
FIBER_TEST_IF(have_overlay(), snapshot_after_reboot)
{
	struct world w;
	open_world(&w, SNAPSHOT_FD);
	add_layer(&w, base_layer);
	unpack(&w);
	const char *root = mount_root(&w, "one");
	test_file(&w.arena, root, "written", STR("kept"));
	CHECK_INT(umount2(root, 0), 0);
	CHECK_STR(str_of(content(&w, root, "written")), "-");
	reopen(&w);
	mount_root(&w, "one");
	CHECK_STR(str_of(content(&w, root, "written")), "kept");
	close_world(&w);
}

FIBER_TEST_IF(geteuid() == 0, snapshot_wrong_layer)
{
	struct world w;
	struct err err = ERR_INIT;
	const char *root;
	open_world(&w, -1);
	add_layer(&w, base_layer);
	add_layer(&w, second_layer);
	w.diff_ids[1] = w.diff_ids[0];
	CHECK_INT(snapshot_unpack(w.snapshots, w.images, &w.image, &err), -ERR_INVALID);
	CHECK(str_find(err_str(&err), STR("wrong diff id calculated on extraction")) >= 0);
	CHECK_INT(snapshot_mount(w.snapshots, STR("x"), &w.image, STR_NONE, &w.arena, &root, &err), -ERR_NOT_FOUND);
	static const char *const bad[] = { "", ".", "..", "a/b", "a b", "a:b" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(snapshot_mount(w.snapshots, str_of(bad[i]), &w.image, STR_NONE, &w.arena, &root, &err), -ERR_INVALID);
	close_world(&w);
}

/* Hard links to what is in no layer below, or is hidden by one. */
FIBER_TEST_IF(geteuid() == 0, snapshot_wrong_links)
{
	static const struct tar_entry links[][4] = {
		{ { "h", '1', .link = "missing" }, { 0 } },
		{ { "h", '1', .link = "etc" }, { 0 } },
		{ { "h", '1', .link = "etc/gone" }, { 0 } },
		{ { "h", '1', .link = "data/old" }, { 0 } },
		{ { "out", '2', .link = "/" }, { "h", '1', .link = "out/etc/passwd" }, { 0 } },
		{ { ".wh.hard", .type = '0' }, { "x", .type = '5' }, { "h", '1', .link = "hard/x" }, { 0 } },
	};
	static const int modes[] = { SNAPSHOT_FD, SNAPSHOT_COPY };
	for (size_t i = 0; i < ARRAY_LEN(links) * ARRAY_LEN(modes); i++) {
		struct world w;
		struct err err = ERR_INIT;
		open_world(&w, modes[i % 2]);
		add_layer(&w, base_layer);
		add_layer(&w, second_layer);
		add_layer(&w, links[i / 2]);
		int r = snapshot_unpack(w.snapshots, w.images, &w.image, &err);
		/* a link on the way is followed in a tree, and not from layer to layer */
		if (r == 0 ? i != 9 : str_find(err_str(&err), STR("hard")) < 0)
			fail_msg("row %zu: %d %s", i, r, err.msg);
		CHECK_STR(str_of(content(&w, path(&w, "snapshots/tmp"), "x")), "-");
		close_world(&w);
	}
}

static int unpack_fiber(void *arg)
{
	unpack(arg);
	return 0;
}

/* Images that share layers, at the same time; then nothing needs them. */
FIBER_TEST_IF(have_overlay(), snapshot_shared_and_collected)
{
	struct world w;
	struct err err = ERR_INIT;
	open_world(&w, -1);
	for (int i = 0; i < 12; i++) {
		char name[32], dir[32];
		snprintf(name, sizeof(name), "f%d", i);
		snprintf(dir, sizeof(dir), "d/e/g%d", i);
		add_layer(&w, (struct tar_entry[]){ { name, '0', .data = name }, { dir, '0', .data = name }, { 0 } });
	}
	struct fiber *a = start(unpack_fiber, &w), *b = start(unpack_fiber, &w);
	unpack(&w);
	join(a);
	join(b);
	CHECK_INT(map_len(&w.snapshots->layers), 12);
	const char *root = mount_root(&w, "one");
	CHECK_STR(str_of(content(&w, root, "f0")), "f0");
	CHECK_STR(str_of(content(&w, root, "d/e/g11")), "f11");
	/* no image, but a root needs them */
	CHECK_INT(snapshots_collect(w.snapshots, w.images, &err), 0);
	CHECK_INT(map_len(&w.snapshots->layers), 12);
	CHECK_INT(snapshot_remove(w.snapshots, STR("one"), &err), 0);
	CHECK_INT(snapshots_collect(w.snapshots, w.images, &err), 0);
	CHECK_INT(map_len(&w.snapshots->layers), 0);
	reopen(&w);
	CHECK_INT(map_len(&w.snapshots->layers), 0);
	unpack(&w);
	CHECK_STR(str_of(content(&w, mount_root(&w, "one"), "f3")), "f3");
	close_world(&w);
}

/* An image of nothing has an empty root. */
FIBER_TEST_IF(have_overlay(), snapshot_empty_image)
{
	static const int modes[] = { SNAPSHOT_FD, SNAPSHOT_TEXT, SNAPSHOT_COPY };
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct world w;
		open_world(&w, modes[i]);
		unpack(&w);
		const char *root = mount_root(&w, "one");
		test_file(&w.arena, root, "x", STR("x"));
		CHECK_STR(str_of(content(&w, root, "x")), "x");
		close_world(&w);
	}
}

/* More layers than a page of options has room for by their paths; an opaque top hides all below it. */
static void many_layers(enum snapshot_mode mode)
{
	struct world w;
	open_world(&w, mode);
	for (int i = 0; i < 150; i++) {
		char name[32];
		snprintf(name, sizeof(name), "f%d", i);
		add_layer(&w, (struct tar_entry[]){ { name, '0', .data = name }, { i == 20 ? "./.wh..wh..opq" : NULL, .type = '0' }, { 0 } });
	}
	unpack(&w);
	const char *root = mount_root(&w, "one");
	CHECK_STR(str_of(content(&w, root, "f19")), "-");
	CHECK_STR(str_of(content(&w, root, "f20")), "f20");
	CHECK_STR(str_of(content(&w, root, "f149")), "f149");
	close_world(&w);
}

FIBER_TEST_IF(have_overlay(), snapshot_many_layers_by_fds) { many_layers(SNAPSHOT_FD); }
FIBER_TEST_IF(have_overlay(), snapshot_many_layers_by_text) { many_layers(SNAPSHOT_TEXT); }
