/*
 * A log file is read in blocks. An entry that is longer than a block is given on in pieces. When following, the folder is watched;
 * what has happened is then found out by looking (another file under the name, a shorter file), not from the events.
 */
#include "runtime/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "base/mem.h"
#include "runtime/logs_rotate.h"

enum { BLOCK = 64 << 10, LOOK_EVERY_MS = 1000, ROTATED_MAX = 1000 };

struct logs {
	const struct logs_options *o;
	const struct logs_reader *to;
	char *path;
	int fd, watch;
	int64_t offset;               /* of what is read next */
	char *block;
	size_t at, n;                 /* what is in the block */
	int64_t remain, entries_left; /* negative: no limit */
	bool known;                   /* the format of the first line was */
	bool line_begins;
	bool inside;                  /* of an entry that did not fit */
	struct logs_entry entry;
	bool shown;                   /* it */
};

static void logs_done(struct logs *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->watch >= 0)
		close(l->watch);
	free(l->path);
	free(l->block);
}

/* ---- blocking work, on another thread ---- */

struct read_work {
	int fd;
	char *p;
	size_t n;
	int64_t offset;
};

static int read_blocking(void *arg, struct err *err)
{
	struct read_work *w = arg;
	ssize_t n;

	do
		n = pread(w->fd, w->p, w->n, w->offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(err, errno, "failed to read a log") : (int)n;
}

static int read_at(int fd, char *p, size_t n, int64_t offset, struct err *err)
{
	return fiber_blocking(read_blocking, &(struct read_work){ fd, p, n, offset }, err);
}

/* ---- entries ---- */

/* 1: the limit is reached. */
static int put(struct logs *l, enum logs_stream stream, str text, struct err *err)
{
	if (l->remain >= 0)
		text = str_head(text, (size_t)MIN(l->remain, (int64_t)INT_MAX));
	int r = text.n ? l->to->write(l->to->arg, stream, text, err) : 0;
	if (r < 0)
		return r;
	if (l->remain >= 0 && (l->remain -= (int64_t)text.n) <= 0)
		return 1;
	return 0;
}

static bool is_shown(const struct logs *l, const struct logs_entry *e)
{
	return e->ns >= l->o->since_ns && !(e->stream == LOGS_STDOUT ? l->o->no_stdout : l->o->no_stderr);
}

/* More of the entry's text; ends: the entry does. */
static int put_text(struct logs *l, str text, bool ends, bool with_newline, struct err *err)
{
	int r = 0;

	if (l->shown && (r = put(l, l->entry.stream, text, err)) == 0 && ends && with_newline)
		r = put(l, l->entry.stream, STR("\n"), err);
	if (r == 0 && ends && l->entries_left > 0 && --l->entries_left == 0)
		return 1;
	return r;
}

/* An entry, or the beginning of one. terminated: its line has an end in the file. */
static int put_entry(struct logs *l, str line, bool whole, bool terminated, struct err *err)
{
	struct err why = ERR_INIT;
	char time[LOGS_TIME_MAX + 1];

	if (logs_parse(line, &l->entry, &why) < 0) {
		if (!l->known)
			return err_set(err, ERR_INVALID, "failed to get parse function: unsupported log format: \"" STR_FMT "\"",
				       STR_ARG(str_head(line, 100)));
		log_debug("a line of a log is left out", KV("path", l->path), KV("error", &why));
		l->shown = false;
		return 0;
	}
	l->known = true;
	l->shown = is_shown(l, &l->entry);
	if (l->shown && l->o->timestamps && l->line_begins) {
		str t = logs_time_format(l->entry.ns, time);
		time[t.n] = ' ';
		int r = put(l, l->entry.stream, str_span(time, t.n + 1), err);
		if (r != 0)
			return r;
	}
	l->line_begins = !l->entry.partial || !l->entry.text.n;
	return put_text(l, l->entry.text, whole, !l->entry.partial && terminated, err);
}

/* All that is in the block. 1: enough was read. */
static int take_block(struct logs *l, bool last, struct err *err)
{
	while (l->at < l->n) {
		str rest = str_span(l->block + l->at, l->n - l->at);
		ptrdiff_t end = str_chr(rest, '\n');
		bool full = l->at == 0 && l->n == BLOCK;
		if (end < 0 && !last && !full && !l->inside)
			return 0;
		str line = end < 0 ? rest : str_head(rest, (size_t)end);
		l->at += line.n + (end >= 0);
		bool whole = end >= 0 || last;
		int r = l->inside ? put_text(l, line, whole, !l->entry.partial && end >= 0, err) : put_entry(l, line, whole, end >= 0, err);
		l->inside = !whole;
		if (r != 0)
			return r;
	}
	return 0;
}

/* Reads one more block and takes what is complete in it: how many bytes were read; ret_enough: stop. */
static int read_on(struct logs *l, bool *ret_enough, struct err *err)
{
	memmove(l->block, l->block + l->at, l->n - l->at);
	l->n -= l->at;
	l->at = 0;
	int n = read_at(l->fd, l->block + l->n, BLOCK - l->n, l->offset, err);
	if (n <= 0)
		return n;
	l->offset += n;
	l->n += (size_t)n;
	int r = take_block(l, false, err);
	*ret_enough = r > 0;
	return r < 0 ? r : n;
}

/* ---- where to begin ---- */

/* The offset of the last `tail` lines; one without an end does not count. */
static int seek_tail(struct logs *l, int64_t size, struct err *err)
{
	int64_t left = l->o->tail;

	for (int64_t right = size; right > 0;) {
		size_t n = (size_t)MIN(right, (int64_t)BLOCK);
		int got = read_at(l->fd, l->block, n, right - (int64_t)n, err);
		if (got < 0)
			return got;
		if ((size_t)got < n) {
			right = right - (int64_t)n + got; /* it became shorter meanwhile */
			if (got == 0)
				return 0;
			continue;
		}
		for (size_t i = n; i > 0; i--) {
			if (l->block[i - 1] == '\n' && left-- == 0) {
				l->offset = right - (int64_t)n + (int64_t)i;
				return 0;
			}
		}
		right -= (int64_t)n;
	}
	return 0;
}

static int open_file(const char *path) { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

static int begin(struct logs *l, const char *path, struct err *err)
{
	struct stat st;
	int r;

	/* The folder that is watched is that of the file itself, not that of a link to it. */
	l->path = realpath(path, NULL);
	if (!l->path)
		return err_sys(err, errno, "failed to try resolving symlinks in path \"%s\"", path);
	l->fd = open_file(l->path);
	if (l->fd < 0 || fstat(l->fd, &st) < 0)
		return err_sys(err, errno, "failed to open log file \"%s\"", l->path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "failed to open log file \"%s\": it is no file", l->path);
	if (l->o->tail >= 0 && (r = seek_tail(l, st.st_size, err)) < 0)
		return err_wrap(err, r, "failed to tail %lld lines of log file \"%s\"", (long long)l->o->tail, l->path);
	return 0;
}

/* ---- following ---- */

static int watch_folder(struct logs *l, struct err *err)
{
	char *slash = strrchr(l->path, '/');

	l->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (l->watch < 0)
		return err_sys(err, errno, "failed to create a watcher");
	*slash = '\0';
	int r = inotify_add_watch(l->watch, *l->path ? l->path : "/", IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ATTRIB);
	int sys = errno;
	*slash = '/';
	return r < 0 ? err_sys(err, sys, "failed to watch the folder of \"%s\"", l->path) : 0;
}

/* (suspends) Until something happens in the folder, or a second has passed. */
static int wait_change(struct logs *l, struct err *err)
{
	_Alignas(struct inotify_event) char events[1024];
	int r;

	{
		DEADLINE_SCOPE(LOOK_EVERY_MS);
		r = fiber_wait_fd(l->watch, POLLIN, err);
	}
	if (r == -ERR_TIMEOUT)
		return fiber_check(err);
	while (r >= 0 && read(l->watch, events, sizeof(events)) > 0)
		;
	return r < 0 ? r : 0;
}

/* Is there another file under the name now, or was this one cut? */
static bool is_other(const struct logs *l)
{
	struct stat now, old;

	if (fstat(l->fd, &old) < 0 || old.st_size < l->offset)
		return true;
	return stat(l->path, &now) == 0 && (now.st_dev != old.st_dev || now.st_ino != old.st_ino);
}

/*
 * The file that was begun when ours was renamed, if that was renamed too since: several may have been while we were reading.
 * -1: there is none, or ours is not among them any more.
 */
static int open_rotated(const struct logs *l)
{
	char suffix[LOGS_SUFFIX_MAX] = "";
	struct stat st, ours;
	bool found = false;
	size_t n;

	if (fstat(l->fd, &ours) < 0)
		return -1;
	for (int i = 0; i < ROTATED_MAX && logs_rotated_after(l->path, suffix, suffix, &n, NULL) == 0 && n; i++) {
		CLEANUP(mem_freep) char *path = logs_rotated(l->path, suffix);
		int fd = found ? open_file(path) : -1;
		if (fd >= 0)
			return fd;
		found = found || (stat(path, &st) == 0 && st.st_dev == ours.st_dev && st.st_ino == ours.st_ino);
	}
	return -1;
}

/* Goes on at the beginning of the next file: of those that have been renamed, or what is there now. */
static bool reopen(struct logs *l)
{
	/* In this order: should it be renamed before it is looked for, it is found among those. */
	int fd = open_file(l->path), rotated = open_rotated(l);

	if (rotated >= 0 && fd >= 0)
		close(fd);
	if (rotated >= 0)
		fd = rotated;
	if (fd < 0)
		return false;
	close(l->fd);
	l->fd = fd;
	l->offset = 0;
	l->at = l->n = 0;
	l->inside = false;
	return true;
}

static int follow(struct logs *l, struct err *err)
{
	bool ended = false, enough = false;
	int r = watch_folder(l, err);

	while (r >= 0 && !enough) {
		/* Once there is another file, nothing more comes into this one: it is then read to its end. */
		bool other = is_other(l);
		while ((r = read_on(l, &enough, err)) > 0 && !enough)
			;
		if (r < 0 || enough)
			break;
		if (other && reopen(l))
			continue;
		if (ended)
			break;
		/* What was written before it ended is there to be read now. */
		ended = !l->to->running(l->to->arg);
		if (!ended)
			r = wait_change(l, err);
	}
	return MIN(r, 0);
}

int logs_read(const char *path, const struct logs_options *o, const struct logs_reader *to, struct err *err)
{
	CLEANUP(logs_done) struct logs l = { .o = o, .to = to, .fd = -1, .watch = -1, .remain = o->limit, .line_begins = true };
	bool enough = false;
	int r;

	l.block = mem_alloc(BLOCK);
	/* What is added while we read is not part of the last lines. */
	l.entries_left = o->tail >= 0 && !o->follow ? o->tail : -1;
	if ((r = begin(&l, path, err)) < 0)
		return r;
	if (l.entries_left == 0)
		return 0;
	if (o->follow)
		return follow(&l, err);
	while ((r = read_on(&l, &enough, err)) > 0 && !enough)
		;
	if (r < 0 || enough)
		return r < 0 ? r : 0;
	r = take_block(&l, true, err);
	return MIN(r, 0);
}

int logs_previous(struct arena *a, str path, str *ret_path, struct err *err)
{
	ptrdiff_t slash = str_rchr(path, '/');
	str name = str_skip(path, (size_t)(slash + 1)), number, end;
	int64_t n;

	if (!str_cut(name, '.', &number, &end) || !str_eq(end, STR("log")) || !str_to_i64(number, &n) || n <= 0)
		return err_set(err, ERR_NOT_FOUND, "there is no run before that of \"" STR_FMT "\"", STR_ARG(path));
	*ret_path = arena_printf(a, STR_FMT "%lld.log", STR_ARG(str_head(path, (size_t)(slash + 1))), (long long)(n - 1));
	return 0;
}
