#include "oci/copy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/test.h"
#include "oci/oci_priv.h"

static char top[] = "/tmp/c8s-copy-XXXXXX";
static int from = -1, to = -1, tree = -1;

static void begin(void)
{
	memcpy(top, "/tmp/c8s-copy-XXXXXX", sizeof(top));
	CHECK(mkdtemp(top) != NULL);
	tree = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdirat(tree, "from", 0700) == 0 && mkdirat(tree, "to", 0700) == 0);
	from = openat(tree, "from", O_PATH | O_DIRECTORY | O_CLOEXEC);
	to = openat(tree, "to", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void end(void)
{
	fd_closep(&from);
	fd_closep(&to);
	CHECK_INT(path_remove(tree, "from", NULL), 0);
	CHECK_INT(path_remove(tree, "to", NULL), 0);
	fd_closep(&tree);
	CHECK_INT(rmdir(top), 0);
}

static struct stat look(int folder, const char *name)
{
	struct stat st = { 0 };
	CHECK_INT(fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

TEST(copy_of_all_kinds)
{
	struct err err = ERR_INIT;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char text[16] = "";

	begin();
	CHECK(mkdirat(from, "d", 0700) == 0 && mkdirat(from, "d/e", 0700) == 0 && fchmodat(from, "d/e", 01753, 0) == 0);
	int fd = openat(from, "d/e/f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	/* A hole of a terabyte, and something behind it. */
	CHECK(pwrite(fd, "head", 4, 0) == 4 && pwrite(fd, "tail", 4, INT64_C(1) << 40) == 4 && fchmod(fd, 04751) == 0);
	close(fd);
	CHECK(symlinkat("/nowhere", from, "l") == 0 && mkfifoat(from, "p", 0) == 0 && fchmodat(from, "p", 0622, 0) == 0);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/from/s", top);
	CHECK_INT(bind(s, (struct sockaddr *)&at, sizeof(at)), 0);
	close(s);
	CHECK_INT(chmod(at.sun_path, 0600), 0);
	CHECK_INT(fchmodat(tree, "from", 01711, 0), 0);
	CHECK_INT(copy_tree(from, to, &err), 0);
	CHECK_INT(look(tree, "to").st_mode, S_IFDIR | 01711);
	CHECK_INT(look(to, "d/e").st_mode, S_IFDIR | 01753);
	struct stat st = look(to, "d/e/f");
	CHECK(st.st_mode == (S_IFREG | 04751) && st.st_size == (INT64_C(1) << 40) + 4 && st.st_blocks < 1024);
	fd = openat(to, "d/e/f", O_RDONLY | O_CLOEXEC);
	CHECK(pread(fd, text, 4, 0) == 4 && pread(fd, text + 4, 4, INT64_C(1) << 40) == 4);
	close(fd);
	CHECK_STR(str_of(text), "headtail");
	CHECK_INT(readlinkat(to, "l", text, sizeof(text)), 8);
	CHECK_INT(look(to, "p").st_mode, S_IFIFO | 0622);
	CHECK(faccessat(to, "s", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	end();
}

TEST(copy_too_deep)
{
	struct err err = ERR_INIT;

	begin();
	int at = dup(from);
	for (int i = 0; i < 200; i++) {
		CHECK_INT(mkdirat(at, "d", 0700), 0);
		int next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
	}
	close(at);
	CHECK_INT(copy_tree(from, to, &err), -ERR_TOO_LARGE);
	CHECK_STR(err_str(&err), "copying: folders are more than 128 deep");
	end();
}
