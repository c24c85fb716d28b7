/*
 * In rounds: all temporary files are written, then all are synced at the same time, each by a thread; then all are renamed in order, and the
 * folders are synced. A thread that cannot be had is no error: its work is done without it.
 */
#include "base/file_batch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { THREADS_MAX = 16, STACK_BYTES = 128 * 1024 };

struct file_batch_item {
	struct file_batch_item *next;
	const char *path, *folder;
	char *tmp;                    /* there is a file of this name; NULL: not */
	char *content;
	size_t n;
	mode_t mode;
	int fd;
};

/* ---- syncing ---- */

struct syncing {
	pthread_mutex_t mutex;
	const int *fds;
	size_t next, n;
	int failed;                   /* errno of the first one that failed */
};

static void *sync_some(void *arg)
{
	struct syncing *s = arg;

	for (;;) {
		(void)pthread_mutex_lock(&s->mutex);
		size_t i = s->next < s->n ? s->next++ : s->n;
		(void)pthread_mutex_unlock(&s->mutex);
		if (i == s->n)
			return NULL;
		int failed = fsync(s->fds[i]) < 0 ? errno : 0;
		(void)pthread_mutex_lock(&s->mutex);
		if (!s->failed)
			s->failed = failed;
		(void)pthread_mutex_unlock(&s->mutex);
	}
}

/* 0, or an errno. */
static int sync_all(const int *fds, size_t n)
{
	struct syncing s = { .mutex = PTHREAD_MUTEX_INITIALIZER, .fds = fds, .n = n };
	pthread_t threads[THREADS_MAX];
	pthread_attr_t attr;
	size_t started = 0;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, MAX((size_t)STACK_BYTES, (size_t)PTHREAD_STACK_MIN));
	while (started < THREADS_MAX && started + 1 < n && pthread_create(&threads[started], &attr, sync_some, &s) == 0)
		started++;
	(void)sync_some(&s);
	while (started)
		(void)pthread_join(threads[--started], NULL);
	(void)pthread_attr_destroy(&attr);
	return s.failed;
}

/* ---- the batch ---- */

void file_batch_add(struct file_batch *b, const char *path, str content, mode_t mode)
{
	struct file_batch_item *x = arena_zero_of(&b->arena, sizeof(*x), _Alignof(struct file_batch_item));
	str copy = arena_str(&b->arena, str_of(path));
	ptrdiff_t slash = str_rchr(copy, '/');

	x->path = copy.p;
	x->folder = slash < 0 ? "." : arena_str(&b->arena, str_head(copy, slash ? (size_t)slash : 1)).p;
	x->content = (char *)arena_str(&b->arena, content).p;
	x->n = content.n;
	x->mode = mode;
	x->fd = -1;
	if (!b->end)
		b->end = &b->first;
	*b->end = x;
	b->end = &x->next;
	b->n++;
}

int file_batch_read(const struct file_batch *b, const char *path, struct buf *ret, struct err *err)
{
	const struct file_batch_item *found = NULL;

	for (const struct file_batch_item *x = b->first; x; x = x->next)
		if (strcmp(x->path, path) == 0)
			found = x;
	if (!found)
		return file_read(path, ret, err);
	buf_add(ret, (str){ found->content, found->n });
	return buf_check(ret, path, err);
}

static int write_tmp(struct file_batch *b, struct file_batch_item *x, struct err *err)
{
	char *name = (char *)arena_printf(&b->arena, "%s.XXXXXX", x->path).p;

	x->fd = mkostemp(name, O_CLOEXEC);
	if (x->fd < 0)
		return err_sys(err, errno, "%s", x->path);
	x->tmp = name;
	int r = file_write_fd(x->fd, (str){ x->content, x->n }, -1, x->path, err);
	return r == 0 && fchmod(x->fd, x->mode) < 0 ? err_sys(err, errno, "%s", x->path) : r;
}

/* Each folder once. */
static int sync_folders(struct file_batch *b, int *fds, struct err *err)
{
	size_t n = 0;
	int failed = 0;

	for (struct file_batch_item *x = b->first; x; x = x->next) {
		struct file_batch_item *same = b->first;
		while (same != x && strcmp(same->folder, x->folder) != 0)
			same = same->next;
		if (same != x)
			continue;
		fds[n] = open(x->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fds[n] < 0)
			failed = errno;
		else
			n++;
	}
	if (!failed)
		failed = sync_all(fds, n);
	while (n)
		(void)close(fds[--n]);
	return failed ? err_sys(err, failed, "making files durable") : 0;
}

static int write_all(struct file_batch *b, struct err *err)
{
	int *fds = ARENA_ARRAY(&b->arena, int, b->n), r;
	size_t n = 0;

	for (struct file_batch_item *x = b->first; x; x = x->next) {
		if ((r = write_tmp(b, x, err)) < 0)
			return r;
		fds[n++] = x->fd;
	}
	if ((r = sync_all(fds, n)) != 0)
		return err_sys(err, r, "making files durable");
	for (struct file_batch_item *x = b->first; x; x = x->next) {
		if (rename(x->tmp, x->path) < 0)
			return err_sys(err, errno, "%s", x->path);
		x->tmp = NULL;
	}
	return sync_folders(b, fds, err);
}

int file_batch_write(struct file_batch *b, struct err *err)
{
	int r = b->first ? write_all(b, err) : 0;

	file_batch_done(b);
	return r;
}

void file_batch_done(struct file_batch *b)
{
	for (struct file_batch_item *x = b->first; x; x = x->next) {
		if (x->tmp)
			(void)unlink(x->tmp);
		if (x->fd >= 0)
			(void)close(x->fd);
		explicit_bzero(x->content, x->n);
	}
	arena_done(&b->arena);
	*b = (struct file_batch)FILE_BATCH_INIT;
}
