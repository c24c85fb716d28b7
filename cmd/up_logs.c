/*
 * The logs of a cluster do not grow for ever. Those who write them have them open, for appending, and know nothing of this: what is there is copied
 * aside, and the file is made empty under them. Only what is written between the last look at its length and that moment is lost.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "cmd/up.h"

enum { LOOK_MS = 10 * 1000 };

/* All from `at` on that is there by now, and what comes meanwhile. */
static int copy_rest(int from, int to, off_t at, const char *path, struct err *err)
{
	for (;;) {
		ssize_t n = sendfile(to, from, &at, UP_LOG_MAX);
		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "copying %s", path);
		if (n == 0)
			return 0;
	}
}

/* A log of any length: the last part of it is kept. */
static int rotate(int fd, off_t size, const char *path, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *aside = arena_printf(&a, "%s.1", path).p, *made = arena_printf(&a, "%s.1.tmp", path).p;
	int to = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640), r;

	if (to < 0)
		return err_sys(err, errno, "opening %s", made);
	r = copy_rest(fd, to, size > UP_LOG_MAX ? size - UP_LOG_MAX : 0, path, err);
	(void)close(to);
	if (r == 0 && (rename(made, aside) < 0 || ftruncate(fd, 0) < 0))
		r = err_sys(err, errno, "%s", path);
	if (r < 0)
		(void)unlink(made);
	return r;
}

static int look_at(const char *path, struct err *err)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC), r = 0;

	if (fd < 0)
		return err_sys(err, errno, "opening %s", path);
	if (fstat(fd, &st) == 0 && st.st_size >= UP_LOG_MAX)
		r = rotate(fd, st.st_size, path, err);
	(void)close(fd);
	return r;
}

static int is_log(const struct dirent *entry) { return str_ends(str_of(entry->d_name), STR(".log")); }

/* Blocks. */
static int look(void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *folder = arg;
	struct dirent **entries;
	int n = scandir(folder, &entries, is_log, NULL), r = 0;

	if (n < 0)
		return err_sys(err, errno, "reading %s", folder);
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = look_at(arena_printf(&a, "%s/%s", folder, entries[i]->d_name).p, err);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int up_keep_logs(void *arg)
{
	const struct up_cluster *c = arg;

	for (;;) {
		struct err err = ERR_INIT;
		int r = fiber_blocking(look, (void *)c->log_dir, &err);
		if (r < 0 && r != -ERR_CANCELED)
			log_warn("logs cannot be kept short", KV("err", &err));
		if ((r = fiber_sleep_ms(LOOK_MS, NULL)) < 0)
			return r;
	}
}
