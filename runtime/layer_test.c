#include "runtime/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test.h"
#include "runtime/layer_testing.h"

/* outside/canary must stay as it is, and outside/in is where layers go. */
struct place {
	struct arena arena;
	char *outside;
	const char *in;
};

static void open_place(struct place *p)
{
	*p = (struct place){ .outside = test_folder_make() };
	p->in = arena_printf(&p->arena, "%s/in", p->outside).p;
	CHECK_INT(mkdir(p->in, 0755), 0);
	test_file(&p->arena, p->outside, "canary", STR("alive"));
}

static void close_place(struct place *p)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(4096), canary = BUF_INIT(100);
	int fd = open(p->outside, O_RDONLY | O_DIRECTORY);
	CHECK_INT(layer_folder_names(fd, &names, NULL), 0);
	close(fd);
	CHECK(names.n == sizeof("canary") + sizeof("in") || names.n == sizeof("canary") + sizeof("in") + sizeof("blob"));
	CHECK_INT(file_read(arena_printf(&p->arena, "%s/canary", p->outside).p, &canary, NULL), 0);
	CHECK_STR(buf_str(&canary), "alive");
	test_folder_remove(&p->outside);
	arena_done(&p->arena);
}

static int unpack_bytes(struct place *p, str blob, bool overlay, struct layer_result *ret, struct err *err)
{
	return layer_unpack(test_file(&p->arena, p->outside, "blob", blob), p->in, overlay, ret, err);
}

static int unpack(struct place *p, const struct tar_entry *entries, bool overlay, struct err *err)
{
	CLEANUP(buf_done) struct buf tar = BUF_INIT(16 << 20);
	struct layer_result result;
	tar_make(&tar, entries);
	return unpack_bytes(p, buf_str(&tar), overlay, &result, err);
}

static void unpack_well(struct place *p, const struct tar_entry *entries, bool overlay)
{
	struct err err = ERR_INIT;
	if (unpack(p, entries, overlay, &err) < 0)
		fail_msg("%s", err.msg);
}

static struct stat look(struct place *p, const char *name)
{
	struct stat st = { 0 };
	if (lstat(arena_printf(&p->arena, "%s/%s", p->in, name).p, &st) < 0)
		CHECK_INT(errno, ENOENT);
	return st;
}

static bool there(struct place *p, const char *name)
{
	return look(p, name).st_mode != 0;
}

TEST(layer_clean_names)
{
	static char deep[2 * (LAYER_DEPTH_MAX + 1) + 1], part[258], path[5000];
	for (size_t i = 0; i < LAYER_DEPTH_MAX + 1; i++)
		memcpy(deep + 2 * i, "d/", 2);
	memset(part, 'n', sizeof(part) - 1);
	for (size_t i = 0; i < sizeof(path) - 1; i++)
		path[i] = i % 100 ? 'p' : '/';
	const struct {
		const char *name, *clean; /* NULL: refused */
	} t[] = {
		{ "a/b", "a/b" }, { "./a//b/", "a/b" }, { "/a", "a" }, { "", "" }, { ".", "" }, { "/", "" }, { "a/../b", "b" },
		{ "a/..", "" }, { "a/b/../../c", "c" }, { "..", NULL }, { "../a", NULL }, { "a/../../b", NULL }, { "/../etc", NULL },
		{ "...", "..." }, { "a/.../b", "a/.../b" }, { deep, NULL }, { deep + 2, deep + 2 }, { part, NULL }, { part + 1, NULL },
		{ part + 2, part + 2 }, { path, NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(4095);
		struct err err = ERR_INIT;
		int r = layer_clean(&out, str_of(t[i].name), &err);
		CHECK_ROW(i, r == (t[i].clean ? 0 : -ERR_INVALID));
		if (t[i].clean && t[i].clean != deep + 2)
			CHECK_STR_ROW(i, buf_str(&out), t[i].clean);
	}
}

/* Each tries to reach outside/canary, or is nonsense. wrong: it must be refused; else it must stay inside. */
TEST(layer_hostile)
{
	static const struct {
		bool wrong;
		struct tar_entry entries[5];
	} t[] = {
		{ true, { { "../canary", '0', .data = "dead" } } },
		{ true, { { "a/../../canary", '0', .data = "dead" } } },
		{ true, { { "..", '5', .mode = 0777 } } },
		{ true, { { "../.wh.canary", .type = '0' } } },
		{ true, { { ".wh...", .type = '0' } } },
		{ true, { { ".wh..", .type = '0' } } },
		{ true, { { ".wh.", .type = '0' } } },
		{ true, { { "/../in/x", .type = '0' } } },
		/* links outside, and entries behind them */
		{ false, { { "up", '2', .link = ".." }, { "up/canary", '0', .data = "dead" } } },
		{ false, { { "up", '2', .link = "../../../../.." }, { "up/tmp/canary", '0', .data = "dead" } } },
		{ false, { { "abs", '2', .link = "/proc/self/root/etc" }, { "abs/canary", '0', .data = "dead" } } },
		{ false, { { "l", '2', .link = "../canary" }, { "l", '0', .data = "dead" } } },
		{ false, { { "l", '2', .link = "../canary" }, { "l", '5', .mode = 0700 } } },
		{ false, { { "up", '2', .link = ".." }, { "up/.wh.canary", .type = '0' } } },
		{ false, { { "up", '2', .link = ".." }, { "up/.wh..wh..opq", .type = '0' } } },
		{ true, { { "loop", '2', .link = "loop" }, { "loop/x", .type = '0' } } },
		{ false, { { "lost", '2', .link = "nowhere" }, { "lost/x", .type = '0' } } },
		/* hard links */
		{ true, { { "h", '1', .link = "../canary" } } },
		{ true, { { "h", '1', .link = "/canary" } } },
		{ true, { { "up", '2', .link = ".." }, { "h", '1', .link = "up/canary" } } },
		{ false, { { "l", '2', .link = "../canary" }, { "h", '1', .link = "l" }, { "h", '0', .data = "dead" } } },
		{ true, { { "h", '1', .link = "h" } } },
		{ true, { { "x", '0', .data = "x" }, { "x", '1', .link = "x" } } },
		{ true, { { "h", '1', .link = "missing" } } },
		{ true, { { "d", .type = '5' }, { "h", '1', .link = "d" } } },
		{ true, { { "h", '1', .link = "." } } },
		/* a file where a folder must be, the top as something else, kinds that do not exist */
		{ true, { { "f", .type = '0' }, { "f/x", .type = '0' } } },
		{ true, { { "./", '0', .data = "x" } } },
		{ true, { { ".", '2', .link = "/etc" } } },
		{ true, { { ".", '1', .link = "x" } } },
		{ true, { { "s", '2', .link = "" } } },
		/* what is there is replaced, whatever it was */
		{ false, { { "d", '5', .mode = 0755 }, { "d/x", .type = '0' }, { "d", '0', .data = "x" }, { "d", '2', .link = "y" } } },
		{ false, { { "f", .type = '6' }, { "f", '0', .data = "x" } } },
	};
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		for (int overlay = 0; overlay < 2; overlay++) {
			struct place p;
			struct err err = ERR_INIT;
			open_place(&p);
			int r = unpack(&p, t[i].entries, overlay, &err);
			if (t[i].wrong ? r == 0 : r < 0)
				fail_msg("row %zu, overlay %d: %d %s", i, overlay, r, err.msg);
			close_place(&p);
		}
	}
}

TEST(layer_formats)
{
	static const struct tar_entry entries[] = { { "a", '0', .data = "hello" }, { 0 } };
	static const char *const filters[] = { NULL, "gzip", "zstd" };
	CLEANUP(buf_done) struct buf tar = BUF_INIT(1 << 20);
	char want[DIGEST_TEXT + 1] = "sha256:";
	if (geteuid() != 0)
		skip();
	tar_make(&tar, entries);
	/* what follows the end counts too */
	buf_addf(&tar, "%2000s", "x");
	sha256_hex(buf_str(&tar), want + 7);
	for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
		CLEANUP(buf_done) struct buf packed = BUF_INIT(1 << 20);
		struct layer_result result;
		struct place p;
		open_place(&p);
		if (filters[i])
			tar_compress(&packed, buf_str(&tar), filters[i]);
		CHECK_INT(unpack_bytes(&p, filters[i] ? buf_str(&packed) : buf_str(&tar), true, &result, NULL), 0);
		CHECK_STR(str_of(result.diff_id), want);
		CHECK_INT(result.files, 1);
		CHECK_INT(result.bytes, 5);
		CHECK_INT(look(&p, "a").st_size, 5);
		/* cut anywhere, it is damaged */
		str half = filters[i] ? str_head(buf_str(&packed), packed.n / 2) : str_head(buf_str(&tar), 700);
		CHECK_INT(unpack_bytes(&p, half, true, &result, NULL), -ERR_INVALID);
		close_place(&p);
	}
}

TEST(layer_compressed_twice)
{
	CLEANUP(buf_done) struct buf tar = BUF_INIT(1 << 20), once = BUF_INIT(1 << 20), twice = BUF_INIT(1 << 20);
	struct layer_result result;
	struct place p;
	open_place(&p);
	tar_make(&tar, (struct tar_entry[]){ { 0 } });
	tar_compress(&once, buf_str(&tar), "gzip");
	tar_compress(&twice, buf_str(&once), "zstd");
	CHECK_INT(unpack_bytes(&p, buf_str(&twice), true, &result, NULL), -ERR_INVALID);
	CHECK_INT(unpack_bytes(&p, buf_str(&once), true, &result, NULL), 0);
	CHECK_INT(unpack_bytes(&p, STR("this is no tar at all, and long enough to see that"), true, &result, NULL), -ERR_INVALID);
	close_place(&p);
}

/* The reader stops when there is more than the blob's size allows. */
TEST(layer_bomb)
{
	CLEANUP(buf_done) struct buf tar = BUF_INIT(1 << 20), packed = BUF_INIT(1 << 20);
	CLEANUP(layer_reader_done) struct layer_reader l = { 0 };
	char digest[DIGEST_TEXT + 1];
	struct archive_entry *e;
	struct err err = ERR_INIT;
	struct place p;
	open_place(&p);
	tar_make(&tar, (struct tar_entry[]){ { "a", .type = '0' }, { 0 } });
	buf_addf(&tar, "%900000s", "x");
	tar_compress(&packed, buf_str(&tar), "zstd");
	CHECK_INT(layer_reader_open(&l, test_file(&p.arena, p.outside, "blob", buf_str(&packed)), &err), 0);
	l.plain_max = 800000;
	CHECK_INT(layer_reader_next(&l, &e, &err), 1);
	CHECK_INT(layer_reader_next(&l, &e, &err), 0);
	CHECK_INT(layer_reader_end(&l, digest, &err), -ERR_TOO_LARGE);
	CHECK_STR(err_str(&err), "the layer unpacks to more than 800000 bytes, too many for its size");
	close_place(&p);
}

TEST(layer_meta)
{
	static const struct tar_entry entries[] = {
		{ "bin/su", '0', .data = "x", .mode = 04755, .uid = 10, .gid = 20, .mtime = 12345 },
		{ "dir", '5', .mode = 01777, .uid = 3, .mtime = 777 },
		{ "dir/later", '0', .data = "y" },
		{ "link", '2', .link = "/anywhere", .uid = 4, .mtime = 99 },
		{ "hard", '1', .link = "bin/su" },
		{ "tty", '3', .mode = 0620, .gid = 5, .major = 5, .minor = 1 },
		{ "disk", '4', .mode = 0660, .major = 8, .minor = 2 },
		{ "pipe", '6', .mode = 0600 },
		{ "n\xc3\xa4me", '0', .data = "u" },
		{ "noted", '0', .data = "x", .pax_key = "SCHILY.xattr.user.note", .pax_value = "hi" },
		{ "secret", '5', .mode = 0700, .pax_key = "SCHILY.xattr.trusted.overlay.opaque", .pax_value = "y" },
		{ "caps", '0', .data = "x", .pax_key = "LIBARCHIVE.xattr.security.capability",
		  .pax_value = "AQAAAgAgAAAAAAAAAAAAAAAAAAA" },
		{ "sparse", '0', .pax_key = "GNU.sparse.size", .pax_value = "1" },
		{ 0 },
	};
	char value[64];
	struct place p;
	if (geteuid() != 0)
		skip();
	open_place(&p);
	unpack_well(&p, entries, true);
	struct stat su = look(&p, "bin/su"), dir = look(&p, "dir"), link = look(&p, "link"), tty = look(&p, "tty");
	CHECK(su.st_mode == (S_IFREG | 04755) && su.st_uid == 10 && su.st_gid == 20 && su.st_mtime == 12345 && su.st_nlink == 2);
	CHECK(look(&p, "hard").st_ino == su.st_ino);
	CHECK(dir.st_mode == (S_IFDIR | 01777) && dir.st_uid == 3 && dir.st_mtime == 777);
	CHECK(S_ISLNK(link.st_mode) && link.st_uid == 4 && link.st_mtime == 99);
	CHECK(tty.st_mode == (S_IFCHR | 0620) && tty.st_rdev == makedev(5, 1) && tty.st_gid == 5);
	CHECK(S_ISBLK(look(&p, "disk").st_mode) && look(&p, "disk").st_rdev == makedev(8, 2));
	CHECK(S_ISFIFO(look(&p, "pipe").st_mode));
	CHECK(there(&p, "n\xc3\xa4me"));
	CHECK(look(&p, "bin").st_mode == (S_IFDIR | 0755));
	CHECK_INT(getxattr(arena_printf(&p.arena, "%s/noted", p.in).p, "user.note", value, sizeof(value)), 2);
	CHECK_INT(getxattr(arena_printf(&p.arena, "%s/secret", p.in).p, "trusted.overlay.opaque", value, sizeof(value)), -1);
	CHECK_INT(getxattr(arena_printf(&p.arena, "%s/caps", p.in).p, "security.capability", value, sizeof(value)), 20);
	close_place(&p);
}

/* A name in UTF-8 in an extended header, which libarchive would like to convert. */
TEST(layer_long_name)
{
	char name[400];
	struct place p;
	if (geteuid() != 0)
		skip();
	memset(name, 'd', sizeof(name));
	for (size_t i = 0; i + 2 < 390; i += 60)
		memcpy(name + i, "\xc3\xa4/", 3);
	name[390] = '\0';
	open_place(&p);
	unpack_well(&p, (struct tar_entry[]){ { name, '0', .data = "x" }, { 0 } }, true);
	CHECK_INT(look(&p, name).st_size, 1);
	close_place(&p);
}

TEST(layer_whiteouts)
{
	static const struct tar_entry lower[] = {
		{ "a", '0', .data = "1" }, { "d/x", .type = '0' }, { "d/y", .type = '0' }, { "o/x", .type = '0' }, { "r/x", .type = '0' }, { "real/x", .type = '0' },
		{ "via", '2', .link = "real" }, { 0 },
	};
	static const struct tar_entry upper[] = {
		{ ".wh.a", .type = '0' }, { "d/.wh.x", .type = '0' }, { "o/new", .type = '0' }, { "o/.wh..wh..opq", .type = '0' },
		{ "r/new", .type = '0' }, { ".wh.r", .type = '0' }, { "never/.wh.was", .type = '0' }, { ".wh..wh.plnk", .type = '5' }, { "via/.wh.x", .type = '0' }, { 0 },
	};
	struct place p;
	if (geteuid() != 0)
		skip();
	open_place(&p);
	unpack_well(&p, upper, true);
	struct stat a = look(&p, "a"), x = look(&p, "d/x");
	CHECK(layer_is_whiteout(&a) && layer_is_whiteout(&x));
	CHECK(!there(&p, ".wh.a") && !there(&p, ".wh..wh.plnk"));
	static const char *const opaque[] = { "o", "r" };
	for (size_t i = 0; i < ARRAY_LEN(opaque); i++) {
		int fd = open(arena_printf(&p.arena, "%s/%s", p.in, opaque[i]).p, O_RDONLY);
		CHECK_ROW(i, layer_is_opaque(fd));
		close(fd);
	}
	close_place(&p);
	open_place(&p);
	unpack_well(&p, lower, false);
	unpack_well(&p, upper, false);
	CHECK(!there(&p, "a") && !there(&p, "d/x") && there(&p, "d/y"));
	CHECK(!there(&p, "o/x") && there(&p, "o/new") && !there(&p, "r/x") && there(&p, "r/new"));
	CHECK(there(&p, "real/x"));
	close_place(&p);
}

/* ---- GNU tar's sparse files ---- */

/* 1 MiB of hole, four bytes, and a hole to 3 MiB. */
static void check_sparse(struct place *p, const char *file, const char *how)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4 << 20);
	struct stat st = look(p, file);
	if (st.st_size != 3 << 20 || st.st_blocks > 256)
		fail_msg("%s: %lld bytes, %lld blocks", how, (long long)st.st_size, (long long)st.st_blocks);
	CHECK_INT(file_read(arena_printf(&p->arena, "%s/%s", p->in, file).p, &b, NULL), 0);
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] != (i >= 1 << 20 && i < (1 << 20) + 4 ? "data"[i - (1 << 20)] : '\0'))
			fail_msg("%s: byte %zu is wrong", how, i);
}

/* Whether it could be run, and ended well. */
static bool run(const char *const *argv)
{
	pid_t pid;
	int status;
	return posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

TEST(layer_sparse_files)
{
	static const char *const formats[][2] = { { "--format=gnu", "--sparse" }, { "--format=posix", "--sparse-version=0.0" },
						  { "--format=posix", "--sparse-version=0.1" }, { "--format=posix", "--sparse-version=1.0" } };
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		CLEANUP(buf_done) struct buf tar = BUF_INIT(8 << 20);
		struct layer_result result;
		struct place p;
		open_place(&p);
		char *from = test_folder_make();
		const char *file = arena_printf(&p.arena, "%s/holes", from).p;
		int fd = open(file, O_WRONLY | O_CREAT, 0600);
		CHECK(fd >= 0 && pwrite(fd, "data", 4, 1 << 20) == 4 && ftruncate(fd, 3 << 20) == 0 && close(fd) == 0);
		const char *out = arena_printf(&p.arena, "%s/out.tar", from).p;
		const char *const argv[] = { "tar", "-C", from, "--sparse", formats[i][0], formats[i][1], "-cf", out, "holes", NULL };
		CHECK(run(argv));
		CHECK_INT(file_read(out, &tar, NULL), 0);
		CHECK(tar.n < 1 << 20); /* it is sparse there */
		CHECK_INT(unpack_bytes(&p, buf_str(&tar), true, &result, NULL), 0);
		check_sparse(&p, "holes", formats[i][1]);
		CHECK_INT(result.files, 1);
		test_folder_remove(&from);
		close_place(&p);
	}
}

/* ---- bounds ---- */

/* Headers that promise a lot: nothing is believed before it is there. */
TEST(layer_greedy_headers)
{
	static const struct {
		const char *key, *value;
	} t[] = {
		{ "size", "99999999999999999999" }, { "size", "9223372036854775807" }, { "size", "-1" }, { "GNU.sparse.realsize", "9223372036854775807" },
		{ "uid", "4294967295" }, { "uid", "-5" }, { "path", "../../canary" }, { "linkpath", "../../canary" },
		{ "GNU.sparse.map", "9223372036854775807,9223372036854775807" }, { "GNU.sparse.numblocks", "9999999999" },
	};
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct place p;
		open_place(&p);
		int r = unpack(&p, (struct tar_entry[]){ { "a", '0', .data = "x", .pax_key = t[i].key, .pax_value = t[i].value }, { 0 } }, true, NULL);
		CHECK_ROW(i, r <= 0);
		CHECK_ROW(i, look(&p, "a").st_blocks < 1000);
		close_place(&p);
	}
	/* an extended header of 3 GB, of which a block is there */
	CLEANUP(buf_done) struct buf tar = BUF_INIT(1 << 20);
	struct layer_result result;
	struct err err = ERR_INIT;
	struct place p;
	open_place(&p);
	tar_make(&tar, (struct tar_entry[]){ { "a", '0', .data = "x", .pax_key = "comment", .pax_value = "y" }, { 0 } });
	memcpy(tar.p + 124, "26264000000", 11);
	unsigned sum = 0;
	memset(tar.p + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += (unsigned char)tar.p[i];
	(void)snprintf(tar.p + 148, 8, "%06o", sum);
	CHECK_INT(unpack_bytes(&p, buf_str(&tar), true, &result, &err), -ERR_INVALID);
	close_place(&p);
}

TEST(layer_too_many_entries)
{
	CLEANUP(buf_done) struct buf tar = BUF_INIT(1 << 20);
	CLEANUP(layer_reader_done) struct layer_reader l = { 0 };
	struct archive_entry *e;
	struct err err = ERR_INIT;
	struct layer_tree t;
	struct place p;
	open_place(&p);
	tar_make(&tar, (struct tar_entry[]){ { ".wh.a", .type = '0' }, { 0 } });
	CHECK_INT(layer_reader_open(&l, test_file(&p.arena, p.outside, "blob", buf_str(&tar)), &err), 0);
	CHECK_INT(layer_reader_next(&l, &e, &err), 1);
	int top = open(p.in, O_RDONLY | O_DIRECTORY);
	layer_tree_init(&t, top, false, NULL);
	t.files = LAYER_ENTRIES_MAX - 1;
	CHECK_INT(layer_tree_add(&t, &l, e, &err), 0);
	CHECK_INT(layer_tree_add(&t, &l, e, &err), -ERR_TOO_LARGE);
	CHECK_STR(err_str(&err), "the layer has more than 2000000 entries");
	layer_tree_done(&t);
	close(top);
	close_place(&p);
}

/* A disk that fills up: refused before it is full, with words that say so. */
TEST(layer_small_disk)
{
	CLEANUP(buf_done) struct buf tar = BUF_INIT(64 << 20), packed = BUF_INIT(1 << 20);
	struct layer_result result;
	struct err err = ERR_INIT;
	struct place p;
	if (geteuid() != 0)
		skip();
	open_place(&p);
	if (mount("tmpfs", p.in, "tmpfs", 0, "size=20m,nr_inodes=5000") < 0) {
		close_place(&p);
		skip();
	}
	for (int i = 0; i < 20000; i++) {
		char name[32];
		(void)snprintf(name, sizeof(name), "f%d", i);
		tar_add(&tar, &(struct tar_entry){ name, .type = '0' });
	}
	tar_make(&tar, (struct tar_entry[]){ { 0 } });
	tar_compress(&packed, buf_str(&tar), "gzip");
	int r = unpack_bytes(&p, buf_str(&packed), true, &result, &err);
	CHECK_INT(r, -ERR_SYSTEM);
	CHECK_INT(err.sys, ENOSPC);
	CHECK_INT(umount2(p.in, 0), 0);
	close_place(&p);
}

/* A hard link to a file of a lower layer brings that up: it is room, too, and room is kept. */
TEST(layer_links_on_a_small_disk)
{
	static const struct { size_t bytes; bool fits; } t[] = { { 5 << 20, true }, { 9 * 1000 * 1000, true }, { 10 * 1000 * 1000, false } };
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf big = BUF_INIT(16 << 20);
		struct layer_left left = { .folders = BUF_INIT(1), .links = BUF_INIT(100) };
		struct err err = ERR_INIT;
		struct place p;
		if (geteuid() != 0)
			skip();
		open_place(&p);
		if (mount("tmpfs", p.in, "tmpfs", 0, "size=20m") < 0) {
			close_place(&p);
			skip();
		}
		const char *lower = arena_printf(&p.arena, "%s/lower", p.in).p, *upper = arena_printf(&p.arena, "%s/upper", p.in).p;
		CHECK(mkdir(lower, 0755) == 0 && mkdir(upper, 0755) == 0);
		memset(buf_reserve(&big, t[i].bytes), 'x', t[i].bytes);
		buf_commit(&big, t[i].bytes);
		test_file(&p.arena, lower, "big", buf_str(&big));
		buf_add(&left.links, STR("big\0link\0"));
		int from = open(lower, O_RDONLY | O_DIRECTORY), to = open(upper, O_RDONLY | O_DIRECTORY);
		int r = layer_inherit(to, &left, &from, 1, &err);
		CHECK_ROW(i, r == (t[i].fits ? 0 : -ERR_SYSTEM) && there(&p, "upper/link") == t[i].fits);
		CHECK_ROW(i, t[i].fits || err.sys == ENOSPC);
		buf_done(&left.links);
		close(from);
		close(to);
		CHECK_INT(umount2(p.in, 0), 0);
		close_place(&p);
	}
}
