#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

void fd_closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

int file_read(const char *path, struct buf *b, struct err *err)
{
	char chunk[2048];
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "%s", path);
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "%s", path);
		if (n == 0)
			return buf_check(b, path, err);
		buf_add(b, str_span(chunk, (size_t)n));
		if (b->overflow)
			return buf_check(b, path, err);
	}
}

int file_write_fd(int fd, str data, int64_t at, const char *name, struct err *err)
{
	while (data.n) {
		ssize_t n = at < 0 ? write(fd, data.p, data.n) : pwrite(fd, data.p, data.n, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "%s", name);
		data = str_skip(data, (size_t)n);
		at += at < 0 ? 0 : n;
	}
	return 0;
}

/* A rename is on disk once its directory is. */
static int sync_directory_of(const char *path)
{
	CLEANUP(buf_done) struct buf dir = BUF_INIT(PATH_MAX);
	ptrdiff_t slash = str_rchr(str_of(path), '/');

	buf_add(&dir, slash < 0 ? STR(".") : str_head(str_of(path), slash ? (size_t)slash : 1));
	CLEANUP(fd_closep) int fd = open(dir.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -1 : fsync(fd);
}

/* /dev/null and its like are written to: a rename would put a plain file in their place, for everybody on the machine. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/*
 * The folder may be somebody else's, who has put it there: a pipe that nobody reads is an error (ENXIO), otherwise opening it waits for ever;
 * and a link to a disk is no reason to write on that.
 */
static int write_special(const char *path, str content, struct err *err)
{
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || fcntl(fd, F_SETFL, 0) < 0)
		return err_sys(err, errno, "%s", path);
	if (S_ISBLK(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is a disk", path);
	return file_write_fd(fd, content, -1, path, err);
}

static int write_whole(const char *path, str content, mode_t mode, bool sync, struct err *err)
{
	CLEANUP(buf_done) struct buf tmp = BUF_INIT(PATH_MAX);
	int r;

	if (is_special(path))
		return write_special(path, content, err);

	buf_addf(&tmp, "%s.XXXXXX", path);
	if ((r = buf_check(&tmp, "the path of a file", err)) < 0)
		return r;
	CLEANUP(fd_closep) int fd = mkostemp(tmp.p, O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "%s", path);
	r = file_write_fd(fd, content, -1, path, err);
	if (r == 0 && (fchmod(fd, mode) < 0 || (sync && fsync(fd) < 0) || rename(tmp.p, path) < 0))
		r = err_sys(err, errno, "%s", path);
	if (r < 0) {
		unlink(tmp.p);
		return r;
	}
	if (sync && sync_directory_of(path) < 0)
		return err_sys(err, errno, "%s", path);
	return 0;
}

int file_write(const char *path, str content, mode_t mode, struct err *err) { return write_whole(path, content, mode, true, err); }

int file_replace(const char *path, str content, mode_t mode, struct err *err) { return write_whole(path, content, mode, false, err); }

static int make_dir(const char *path, mode_t mode, struct err *err)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return chmod(path, mode) < 0 ? err_sys(err, errno, "%s", path) : 0;
	int sys = errno;
	if (sys == EEXIST && stat(path, &st) == 0)
		sys = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	return sys ? err_sys(err, sys, "%s", path) : 0;
}

int file_make_dirs(const char *path, mode_t mode, struct err *err)
{
	CLEANUP(buf_done) struct buf at = BUF_INIT(PATH_MAX);
	int r;

	buf_add(&at, str_of(path));
	if ((r = buf_check(&at, "the path of a directory", err)) < 0)
		return r;
	/* Mostly, those above it are there. */
	if ((r = make_dir(path, mode, err)) != -ERR_NOT_FOUND)
		return r;
	for (size_t i = 1; i + 1 < at.n; i++) {
		if (at.p[i] != '/')
			continue;
		at.p[i] = '\0';
		r = make_dir(at.p, 0755, err);
		at.p[i] = '/';
		if (r < 0)
			return r;
	}
	return make_dir(at.p, mode, err);
}
