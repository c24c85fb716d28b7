/* Rotation as Kubernetes' audit log does it: by size, named by time in UTC, and old files found by their names again. */
#include "apiserver/audit/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

struct audit_log {
	struct audit_log_options options;
	char *path;
	str folder, stem, ext;        /* of the path: "/var/log", "audit", ".log" */
	int fd;
	int64_t size;
	atomic_bool untidy;
};

enum { STAMP = sizeof("2006-01-02T15-04-05.000") - 1, COPY_BYTES = 64 << 10 };

/* ---- names ---- */

static void split_path(struct audit_log *l)
{
	str path = str_of(l->path);
	ptrdiff_t slash = str_rchr(path, '/');
	str name = slash < 0 ? path : str_skip(path, (size_t)slash + 1);
	l->folder = slash < 0 ? STR(".") : str_head(path, slash ? (size_t)slash : 1);
	ptrdiff_t dot = str_rchr(name, '.');
	l->stem = dot < 0 ? name : str_head(name, (size_t)dot);
	l->ext = dot < 0 ? STR("") : str_skip(name, (size_t)dot);
}

static str backup_name(const struct audit_log *l, struct arena *a)
{
	int64_t wall = clock_wall_ns();
	struct civil t = civil_of_seconds(wall / NS_PER_S);
	return arena_printf(a, STR_FMT "/" STR_FMT "-%04d-%02u-%02uT%02u-%02u-%02u.%03d" STR_FMT, STR_ARG(l->folder), STR_ARG(l->stem),
			    (int)t.year, t.month, t.day, t.hour, t.minute, t.second, (int)(wall % NS_PER_S / NS_PER_MS),
			    STR_ARG(l->ext));
}

/* The time in the name of a backup, in seconds since 1970; false: it is none of ours. */
static bool backup_time(const struct audit_log *l, str name, bool *ret_compressed, int64_t *ret_s)
{
	*ret_compressed = str_ends(name, STR(".gz"));
	if (*ret_compressed)
		name.n -= 3;
	if (name.n != l->stem.n + 1 + STAMP + l->ext.n || !str_starts(name, l->stem) || name.p[l->stem.n] != '-' || !str_ends(name, l->ext))
		return false;
	char stamp[STAMP + 1];
	memcpy(stamp, name.p + l->stem.n + 1, STAMP);
	stamp[STAMP] = '\0';
	struct tm tm = { 0 };
	const char *end = strptime(stamp, "%Y-%m-%dT%H-%M-%S", &tm);
	if (!end || *end != '.')
		return false;
	*ret_s = (int64_t)timegm(&tm);
	return true;
}

/* ---- writing ---- */

static int open_file(struct audit_log *l, struct err *err)
{
	struct stat st;
	l->fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (l->fd < 0 || fstat(l->fd, &st) < 0)
		return err_sys(err, errno, "open %s", l->path);
	l->size = st.st_size;
	return 0;
}

static void close_file(struct audit_log *l)
{
	if (l->fd > STDOUT_FILENO)
		(void)close(l->fd);
	l->fd = -1;
}

static int rotate(struct audit_log *l, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str backup = backup_name(l, &a);
	close_file(l);
	if (rename(l->path, backup.p) < 0 && errno != ENOENT)
		return err_sys(err, errno, "can't rename log file");
	atomic_store(&l->untidy, true);
	return open_file(l, err);
}

int audit_log_write(struct audit_log *l, str lines, struct err *err)
{
	int r = 0;
	if (l->options.max_bytes && (int64_t)lines.n > l->options.max_bytes)
		return err_set(err, ERR_TOO_LARGE, "write length %zu exceeds maximum file size %lld", lines.n, (long long)l->options.max_bytes);
	if (l->fd < 0)
		r = open_file(l, err);
	if (r == 0 && l->options.max_bytes && l->size + (int64_t)lines.n > l->options.max_bytes)
		r = rotate(l, err);
	if (r == 0)
		r = file_write_fd(l->fd, lines, -1, l->path, err);
	if (r == 0)
		l->size += (int64_t)lines.n;
	return r;
}

int audit_log_open(const struct audit_log_options *o, struct audit_log **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct audit_log *l = mem_zalloc(sizeof *l);
	l->options = *o;
	str path = str_of(o->path);
	l->path = memcpy(mem_alloc(path.n + 1), path.p, path.n + 1);
	split_path(l);
	atomic_init(&l->untidy, o->max_bytes > 0);
	l->fd = STDOUT_FILENO;
	int r = 0;
	if (str_eq(path, STR("-"))) {
		l->options.max_bytes = 0;
		atomic_store(&l->untidy, false);
	} else {
		l->fd = -1;
		r = file_make_dirs(arena_str(&a, l->folder).p, 0700, err);
		if (r >= 0)
			r = open_file(l, err);
	}
	if (r < 0) {
		audit_log_close(l);
		return err_wrap(err, r, "ensureLogFile");
	}
	*ret = l;
	return 0;
}

void audit_log_close(struct audit_log *l)
{
	if (!l)
		return;
	close_file(l);
	free(l->path);
	free(l);
}

/* ---- old files ---- */

bool audit_log_is_untidy(const struct audit_log *l) { return atomic_load(&((struct audit_log *)l)->untidy); }

struct backup {
	str name;
	int64_t at;
	bool compressed;
};

static int newest_first(const void *x, const void *y)
{
	const struct backup *a = x, *b = y;
	return str_cmp(b->name, a->name);
}

static struct backup *backups(const struct audit_log *l, struct arena *a, size_t *ret_n)
{
	struct backup *v = NULL;
	size_t n = 0, cap = 0;
	DIR *dir = opendir(arena_str(a, l->folder).p);
	for (const struct dirent *e; dir && (e = readdir(dir));) {
		struct backup b = { .name = str_of(e->d_name) };
		if (!backup_time(l, b.name, &b.compressed, &b.at))
			continue;
		if (n == cap) {
			struct backup *more = ARENA_ARRAY(a, struct backup, cap ? 2 * cap : 16);
			if (n)
				memcpy(more, v, n * sizeof *v);
			v = more;
			cap = cap ? 2 * cap : 16;
		}
		b.name = arena_str(a, b.name);
		v[n++] = b;
	}
	if (dir)
		(void)closedir(dir);
	if (n)
		qsort(v, n, sizeof *v, newest_first);
	*ret_n = n;
	return v;
}

static int gzip_copy(const char *from, const char *to, struct err *err)
{
	CLEANUP(mem_freep) char *room = mem_alloc(COPY_BYTES);
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	gzFile z = out >= 0 ? gzdopen(out, "wb6") : NULL;
	ssize_t n = in >= 0 && z ? 1 : -1;
	while (n > 0) {
		n = read(in, room, COPY_BYTES);
		if (n > 0 && gzwrite(z, room, (unsigned)n) != n)
			n = -1;
	}
	int failed = n < 0 ? errno : 0;
	if (in >= 0)
		(void)close(in);
	if (z && gzclose(z) != Z_OK && !failed)
		failed = EIO;
	if (!z && out >= 0)
		(void)close(out);
	return n < 0 || failed ? err_sys(err, failed ? failed : EIO, "failed to compress log file %s", from) : 0;
}

static int compress_file(const char *path, struct arena *a, struct err *err)
{
	str target = arena_join(a, str_of(path), STR(".gz"));
	int r = gzip_copy(path, target.p, err);
	if (unlink(r < 0 ? target.p : path) < 0 && r == 0)
		return err_sys(err, errno, "unlink %s", path);
	return r;
}

int audit_log_tidy(struct audit_log *l, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	size_t n, kept = 0;
	int r = 0;
	atomic_store(&l->untidy, false);
	const struct backup *v = backups(l, &a, &n);
	int64_t oldest = clock_wall_ns() / NS_PER_S - l->options.max_age_days * 24 * 3600;
	for (size_t i = 0; i < n; i++) {
		str path = arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(l->folder), STR_ARG(v[i].name));
		bool half = i > 0 && str_eq(v[i - 1].name, arena_join(&a, v[i].name, STR(".gz"))); /* what is left of compressing it */
		kept += !half;
		if ((l->options.max_backups && (int64_t)kept > l->options.max_backups) || (l->options.max_age_days && v[i].at < oldest))
			(void)unlink(path.p);
		else if (l->options.compress && !v[i].compressed && compress_file(path.p, &a, err) < 0)
			r = -(int)err->code;
	}
	return r;
}
