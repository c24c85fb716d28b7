#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"

/* A tree with links that want to get out of it. The folder above it holds "secret". */
static int make_tree(char dir[])
{
	struct err err = ERR_INIT;

	CHECK(mkdtemp(dir) != NULL);
	int outer = path_open_tree(dir, &err);
	CHECK(outer >= 0);
	CHECK(mkdirat(outer, "tree", 0755) == 0);
	close(openat(outer, "secret", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	int tree = path_open(outer, "tree", O_PATH | O_DIRECTORY, &err);
	CHECK(tree >= 0);
	close(outer);
	CHECK(mkdirat(tree, "a", 0755) == 0);
	close(openat(tree, "a/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	CHECK(symlinkat("/", tree, "top") == 0);
	CHECK(symlinkat("../../../..", tree, "a/up") == 0);
	CHECK(symlinkat("/a/file", tree, "absolute") == 0);
	CHECK(symlinkat("/run", tree, "dangling") == 0);
	CHECK(symlinkat("loop", tree, "loop") == 0);
	CHECK(symlinkat("/proc/self/root", tree, "magic") == 0);
	return tree;
}

static void remove_tree(const char *dir)
{
	struct err err = ERR_INIT;
	int root = path_open_tree("/", &err);
	CHECK_INT(path_remove(root, dir, &err), 0);
	CHECK(access(dir, F_OK) < 0);
	close(root);
}

TEST(path_open_stays_inside)
{
	static const struct { const char *path; int flags, r; } t[] = {
		{ "a/file", O_RDONLY, 0 },
		{ "/a/file", O_RDONLY, 0 },
		{ "absolute", O_RDONLY, 0 },
		{ "", O_PATH, 0 },
		{ "a/../../../a/file", O_RDONLY, 0 },
		{ "../secret", O_RDONLY, -ERR_NOT_FOUND },
		{ "a/up/secret", O_RDONLY, -ERR_NOT_FOUND },
		{ "top/a/file", O_RDONLY, 0 },
		{ "top/etc/passwd", O_RDONLY, -ERR_NOT_FOUND },
		{ "a/file/x", O_RDONLY, -ERR_NOT_FOUND },
		{ "loop", O_RDONLY, -ERR_FORBIDDEN },
		{ "magic", O_PATH, -ERR_NOT_FOUND },
		{ "loop", O_PATH | O_NOFOLLOW, 0 },
	};
	char dir[] = "/tmp/c8s-path-XXXXXX";
	int tree = make_tree(dir);

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		int fd = path_open(tree, t[i].path, t[i].flags, &err);
		CHECK_ROW(i, t[i].r ? fd == t[i].r : fd >= 0);
		if (fd >= 0) {
			CHECK_ROW(i, fcntl(fd, F_GETFD) & FD_CLOEXEC);
			close(fd);
		}
	}
	close(tree);
	remove_tree(dir);
}

TEST(path_magic_links_lead_nowhere)
{
	struct err err = ERR_INIT;
	int tree = path_open_tree("/proc", &err);
	CHECK(tree >= 0);
	CHECK_INT(path_open(tree, "self/root/etc", O_PATH, &err), -ERR_FORBIDDEN);
	CHECK_INT(err.sys, ELOOP);
	close(tree);
}

TEST(path_mkdirs_follows_links_inside)
{
	static const struct { const char *path, *made; int r; } t[] = {
		{ "x/y/z", "x/y/z", 0 },
		{ "/a/b//c/", "a/b/c", 0 },
		{ "dangling/secrets/x", "run/secrets/x", 0 },
		{ "a/up/w", "w", 0 },
		{ "x/../../v", "v", 0 },
		{ "a", "a", 0 },
		{ "a/file/x", NULL, -ERR_NOT_FOUND },
		{ "loop/x", NULL, -ERR_FORBIDDEN },
	};
	char dir[] = "/tmp/c8s-path-XXXXXX";
	int tree = make_tree(dir);

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct stat by_fd, by_name;
		int fd = path_mkdirs(tree, t[i].path, 0755, &err);
		CHECK_ROW(i, t[i].r ? fd == t[i].r : fd >= 0);
		if (fd < 0)
			continue;
		CHECK_ROW(i, fstat(fd, &by_fd) == 0 && fstatat(tree, t[i].made, &by_name, AT_SYMLINK_NOFOLLOW) == 0);
		CHECK_ROW(i, by_fd.st_ino == by_name.st_ino && S_ISDIR(by_name.st_mode));
		close(fd);
	}
	close(tree);
	remove_tree(dir);
}

TEST(path_create)
{
	char dir[] = "/tmp/c8s-path-XXXXXX";
	struct err err = ERR_INIT;
	int tree = make_tree(dir), fd;

	CHECK((fd = path_create(tree, "new", O_WRONLY, 0600, &err)) >= 0);
	close(fd);
	CHECK((fd = path_create(tree, "absolute", O_WRONLY, 0600, &err)) >= 0);
	close(fd);
	CHECK_INT(path_create(tree, "absolute", O_WRONLY | O_EXCL, 0600, &err), -ERR_ALREADY_EXISTS);
	CHECK_INT(path_create(tree, "dangling", O_WRONLY, 0600, &err), -ERR_ALREADY_EXISTS);
	CHECK_INT(path_create(tree, "no/new", O_WRONLY, 0600, &err), -ERR_NOT_FOUND);
	static const char *const bad[] = { "", "/", ".", "a/..", "a/.", ".." };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *name;
		CHECK_ROW(i, path_open_parent(tree, bad[i], &name, &err) == -ERR_FORBIDDEN);
	}
	close(tree);
	remove_tree(dir);
}

TEST(path_remove_does_not_follow)
{
	char dir[] = "/tmp/c8s-path-XXXXXX";
	struct err err = ERR_INIT;
	int tree = make_tree(dir);

	/* Deeper than any path could name, and than descriptors could be open. */
	int at = path_open(tree, "a", O_PATH | O_DIRECTORY, &err);
	for (int i = 0; i < 3000; i++) {
		CHECK(mkdirat(at, "deep", 0755) == 0);
		int next = openat(at, "deep", O_PATH | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		close(at);
		at = next;
	}
	CHECK(symlinkat("/etc", at, "out") == 0);
	close(at);
	CHECK_INT(path_remove(tree, "a", &err), 0);
	CHECK(faccessat(tree, "a", F_OK, 0) < 0);
	CHECK(access("/etc/passwd", F_OK) == 0);
	CHECK_INT(path_remove(tree, "dangling", &err), 0);
	CHECK_INT(path_remove(tree, "dangling", &err), -ERR_NOT_FOUND);
	close(tree);
	remove_tree(dir);
}

TEST(path_open_proc)
{
	struct err err = ERR_INIT;
	int fd = path_open_proc("self/status", O_RDONLY, &err);
	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(path_open_proc("self/cwd/x", O_RDONLY, &err), -ERR_FORBIDDEN);
	CHECK_INT(path_open_proc("../etc/passwd", O_RDONLY, &err), -ERR_FORBIDDEN);
	CHECK_INT(path_open_proc("nothing", O_RDONLY, &err), -ERR_NOT_FOUND);
}
