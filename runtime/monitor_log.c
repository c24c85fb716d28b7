/*
 * Log files. Entries are written with one writev for many, straight from where they were read; an entry is in the file completely or
 * not at all. A file that takes nothing (a full disk) makes the streams wait, so the container's writes wait too and nothing is lost;
 * after LOG_PATIENCE_MS output is dropped instead, until the file takes some again, so that no container hangs for its log.
 *
 * A log with a largest size is renamed before it would exceed that (logs_rotate.h), and the oldest of the renamed ones removed. It is
 * done when there is something to write, so the log under its own name is never empty for that. Whatever fails there, the log goes on in
 * the file that it has, and as much again is written before the next try.
 */
#include "runtime/monitor_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "runtime/logs_rotate.h"

enum {
	ENTRIES_MAX = 64, /* per writev */
	PARTS = 4,        /* of an entry: head, held, piece, end */
	NAMES_MAX = 100,  /* that are tried for a log to be renamed to */
	REMOVED_MAX = 1000, /* old logs, at one time */
};

static int open_file(const char *path, struct err *err)
{
	/* Not waiting for a reader, should somebody have put a pipe there. */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);

	return fd < 0 ? err_sys(err, errno, "failed to open log file %s", path) : fd;
}

int log_open(struct log *l, str path, uint64_t max_size, size_t max_files, struct err *err)
{
	*l = (struct log){ .fd = -1, .max_size = max_size, .max_files = max_files };
	if (!path.n)
		return 0;
	l->path = mem_alloc(path.n + 1);
	memcpy(l->path, path.p, path.n);
	l->path[path.n] = '\0';
	return log_reopen(l, err);
}

int log_reopen(struct log *l, struct err *err)
{
	if (!l->path)
		return err_set(err, ERR_CONFLICT, "the container has no log");
	int fd = open_file(l->path, err);
	if (fd < 0)
		return fd;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = fd;
	struct stat st;
	l->rotates = l->max_size && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	l->size = l->rotates ? (uint64_t)st.st_size : 0;
	return 0;
}

void log_close(struct log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	free(l->path);
	*l = (struct log){ .fd = -1 };
}

/* One at a time: too large for a stack. */
static struct batch {
	struct iovec iov[ENTRIES_MAX * PARTS];
	size_t taken[ENTRIES_MAX]; /* bytes of data up to the end of this entry */
	size_t bytes[ENTRIES_MAX]; /* of the entry in the file */
	size_t n;
} batch;

static void batch_add(struct batch *b, str head, str held, str piece, size_t taken)
{
	struct iovec *at = b->iov + b->n * PARTS;

	at[0] = (struct iovec){ (char *)head.p, head.n };
	at[1] = (struct iovec){ (char *)held.p, held.n };
	at[2] = (struct iovec){ (char *)piece.p, piece.n };
	at[3] = (struct iovec){ "\n", 1 };
	b->bytes[b->n] = head.n + held.n + piece.n + 1;
	b->taken[b->n] = taken;
	b->n++;
}

/* Writes the batch: how many entries are in the file. Fewer than all: errno says why. */
static size_t batch_write(struct batch *b, int fd)
{
	size_t done = 0, part = 0; /* entries, and bytes of the next one */
	struct iovec *at = b->iov, *end = b->iov + b->n * PARTS;

	while (at < end) {
		ssize_t n = writev(fd, at, (int)(end - at));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		for (part += (size_t)n; done < b->n && part >= b->bytes[done]; done++)
			part -= b->bytes[done];
		size_t left = (size_t)n;
		for (; at < end && left >= at->iov_len; at++)
			left -= at->iov_len;
		if (at < end)
			*at = (struct iovec){ (char *)at->iov_base + left, at->iov_len - left };
	}
	struct stat st;
	int sys = errno;
	if (part && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		(void)!ftruncate(fd, st.st_size - (off_t)part);
	errno = sys;
	return done;
}

/* ---- rotation ---- */

/* A name that no file has. Two that fall into one second get different ones, in their order. */
static char *free_name(struct log *l)
{
	char suffix[LOGS_SUFFIX_MAX];
	int64_t now = clock_wall_ns() / NS_PER_S;

	l->rotated_s = MAX(now, l->rotated_s + 1);
	for (int i = 0; i < NAMES_MAX; i++, l->rotated_s++) {
		logs_suffix(l->rotated_s, suffix);
		char *name = logs_rotated(l->path, suffix);
		if (access(name, F_OK) < 0)
			return name;
		free(name);
	}
	return NULL;
}

static void remove_oldest(const struct log *l)
{
	char suffix[LOGS_SUFFIX_MAX];
	struct err err = ERR_INIT;
	size_t n;
	int r = 0;

	for (int i = 0; i < REMOVED_MAX && (r = logs_rotated_after(l->path, "", suffix, &n, &err)) == 0 && n >= l->max_files; i++) {
		CLEANUP(mem_freep) char *name = logs_rotated(l->path, suffix);
		if (unlink(name) < 0) {
			r = err_sys(&err, errno, "%s", name);
			break;
		}
	}
	if (r < 0)
		log_warn("an old log is not removed", KV("path", l->path), KV("error", &err));
}

static void log_rotate(struct log *l)
{
	CLEANUP(mem_freep) char *name = free_name(l);
	struct err err = ERR_INIT;
	int r = 0;

	l->size = 0;
	if (!name)
		r = err_set(&err, ERR_ALREADY_EXISTS, "all names are taken");
	else if (rename(l->path, name) < 0 && errno != ENOENT) /* ENOENT: somebody else has renamed it */
		r = err_sys(&err, errno, "%s", name);
	else if ((r = log_reopen(l, &err)) < 0)
		(void)!rename(name, l->path);
	if (r < 0)
		log_warn("the log is not rotated", KV("path", l->path), KV("error", &err));
	else
		remove_oldest(l);
}

/* ---- entries ---- */

/* As batch_write, after a rotation when that is due. */
static size_t write_entries(struct log *l, struct batch *b)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < b->n; i++)
		bytes += b->bytes[i];
	if (l->rotates && l->size && l->size + bytes > l->max_size)
		log_rotate(l);
	size_t done = batch_write(b, l->fd);
	int sys = errno;
	for (size_t i = 0; i < done; i++)
		l->size += b->bytes[i];
	errno = sys;
	return done;
}

/* A write has failed: true when there is still patience. */
static bool log_failed(struct log *l, int sys)
{
	int64_t now = clock_now_ns();

	if (!l->failing_ns) {
		l->failing_ns = now;
		log_warn("the log takes no output; its container waits", KV("path", l->path), KV("error", strerror(sys)));
	}
	return now - l->failing_ns < LOG_PATIENCE_MS * NS_PER_MS;
}

static void log_works(struct log *l)
{
	if (!l->failing_ns)
		return;
	log_warn("the log takes output again", KV("path", l->path), KV("bytes lost", l->lost));
	l->failing_ns = 0;
	l->lost = 0;
}

/* Most lines come as a whole: room for the beginning of one is kept no longer than it is needed. */
static void forget(struct buf *held)
{
	buf_done(held);
	buf_init(held, LOGS_TEXT_MAX);
}

/* The next entries of data from `at` on. None: what is left is the beginning of a line. */
static void batch_fill(struct batch *b, str heads[2], str held, str data, size_t at)
{
	b->n = 0;
	while (b->n < ENTRIES_MAX && at < data.n) {
		str from, piece;
		size_t taken;
		enum logs_cut cut = logs_cut(held, str_skip(data, at), &from, &piece, &taken);
		if (cut == LOGS_MORE)
			return;
		at += taken;
		batch_add(b, heads[cut == LOGS_PARTIAL], from, piece, at);
		held = STR_NONE;
	}
}

size_t log_add(struct log *l, enum logs_stream which, struct buf *held, str data)
{
	char full[LOGS_HEAD_MAX], partial[LOGS_HEAD_MAX];
	int64_t now = clock_wall_ns();
	str heads[2] = { logs_head(now, which, false, full), logs_head(now, which, true, partial) };
	struct batch *b = &batch;
	size_t at = 0;

	if (l->fd < 0)
		return data.n;
	for (;;) {
		batch_fill(b, heads, buf_str(held), data, at);
		if (!b->n)
			break;
		size_t n = write_entries(l, b);
		if (n) {
			forget(held);
			at = b->taken[n - 1];
		}
		if (n == b->n) {
			log_works(l);
			continue;
		}
		if (log_failed(l, errno))
			return at;
		l->lost += data.n - at + held->n;
		forget(held);
		return data.n;
	}
	buf_add(held, str_skip(data, at));
	return data.n;
}

void log_flush(struct log *l, enum logs_stream which, struct buf *held)
{
	char head[LOGS_HEAD_MAX];

	if (l->fd >= 0 && held->n) {
		batch.n = 0;
		batch_add(&batch, logs_head(clock_wall_ns(), which, true, head), buf_str(held), STR_NONE, 0);
		if (!write_entries(l, &batch))
			log_warn("the end of a log is lost", KV("path", l->path), KV("error", strerror(errno)));
	}
	forget(held);
}
