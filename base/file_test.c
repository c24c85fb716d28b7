#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test.h"

static unsigned mode_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

TEST(file_write_and_read)
{
	char dir[] = "/tmp/c8s-file-test-XXXXXX";
	char path[64], deep[64];
	struct err err = ERR_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(100);

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/key", dir);
	CHECK_INT(file_write(path, STR("old"), 0644, &err), 0);
	CHECK_INT(file_write(path, STR("new content"), 0600, &err), 0);
	CHECK_INT(mode_of(path), 0600);
	CHECK_INT(file_read(path, &b, &err), 0);
	CHECK_STR(buf_str(&b), "new content");
	buf_reset(&b);
	CHECK_INT(file_replace(path, STR("newer"), 0640, &err), 0);
	CHECK_INT(mode_of(path), 0640);
	CHECK_INT(file_read(path, &b, &err), 0);
	CHECK_STR(buf_str(&b), "newer");

	struct buf small = BUF_INIT(4);
	CHECK_INT(file_read(path, &small, &err), -ERR_TOO_LARGE);
	buf_done(&small);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(file_read(path, &b, &err), -ERR_NOT_FOUND);

	snprintf(deep, sizeof(deep), "%s/a/b", dir);
	CHECK_INT(file_make_dirs(deep, 0700, &err), 0);
	CHECK_INT(file_make_dirs(deep, 0700, &err), 0);
	CHECK_INT(mode_of(deep), 0700);
	snprintf(path, sizeof(path), "%s/missing/key", dir);
	CHECK(file_write(path, STR("x"), 0600, &err) < 0);
	CHECK_INT(err.sys, ENOENT);

	/* Nothing is left behind, or these would fail. */
	CHECK_INT(rmdir(deep), 0);
	snprintf(deep, sizeof(deep), "%s/a", dir);
	CHECK_INT(rmdir(deep), 0);
	CHECK_INT(rmdir(dir), 0);
}

TEST(file_write_fd)
{
	int fd[2];
	char path[] = "/tmp/c8s-file-test-XXXXXX";
	struct err err = ERR_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(100);

	int file = mkstemp(path);
	CHECK(file >= 0);
	CHECK_INT(file_write_fd(file, STR("hello"), -1, path, &err), 0);
	CHECK_INT(file_write_fd(file, STR("JJ"), 2, path, &err), 0);
	CHECK_INT(file_write_fd(file, STR("!"), -1, path, &err), 0);
	CHECK_INT(file_write_fd(file, STR_NONE, 0, path, &err), 0);
	CHECK_INT(file_read(path, &b, &err), 0);
	CHECK_STR(buf_str(&b), "heJJo!");
	unlink(path);
	close(file);
	CHECK_INT(pipe(fd), 0);
	CHECK_INT(file_write_fd(fd[0], STR("x"), -1, "the wrong end", &err), -ERR_SYSTEM);
	CHECK(err.sys == EBADF && str_starts(err_str(&err), STR("the wrong end: ")));
	close(fd[0]);
	close(fd[1]);
}

TEST(file_write_leaves_devices)
{
	char dir[] = "/tmp/c8s-file-test-XXXXXX", path[64];
	struct err err = ERR_INIT;
	struct stat st;

	CHECK(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/pipe", dir);
	CHECK_INT(mkfifo(path, 0600), 0);
	CHECK(file_write(path, STR("to nobody"), 0644, &err) < 0); /* whoever put it there must not keep us waiting */
	CHECK_INT(err.sys, ENXIO);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	CHECK_INT(file_write(path, STR("to its reader"), 0644, &err), 0);
	CHECK_INT(file_replace(path, STR("!"), 0644, &err), 0);
	CHECK(stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
	char got[32] = "";
	CHECK_INT(read(fd, got, sizeof(got) - 1), 14);
	CHECK_STR(str_of(got), "to its reader!");
	(void)close(fd);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(rmdir(dir), 0);
}

TEST(fd_closep)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), was = fd;

	CHECK(fd >= 0);
	for (size_t i = 0; i < 2; i++) { /* none is fine */
		fd_closep(&fd);
		CHECK_INT(fd, -1);
		CHECK(fcntl(was, F_GETFD) < 0 && errno == EBADF);
	}
}
