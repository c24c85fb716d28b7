/* Check, snapshot and restore: copies are made under another name, checked, made durable, and only then renamed. */
#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "store/index.h"
#include "store/sqlite_db.h"

/* path with something behind it, in the arena. */
static const char *name_with(struct arena *a, const char *path, const char *tail)
{
	return arena_printf(a, "%s%s", path, tail).p;
}

static bool exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

/* ---- check ---- */

static bool is_in_use(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool in_use = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return in_use;
}

struct count {
	struct index index;
	struct store_report *report;
	int64_t last;
};

static int count_row(void *arg, const struct row *row, struct err *err)
{
	struct count *c = arg;
	struct store_report *report = c->report;
	const struct index_key *k = index_find(&c->index, row->key);
	const char *wrong = NULL;

	if (row->revision <= 1 || !row->key.n || row->prev >= row->revision)
		wrong = "makes no sense";
	else if (k && row->prev != k->newest.revision)
		wrong = "does not follow the one before of its key";
	else if (row->version > 0 && k && row->version != k->newest.version + 1)
		wrong = "has not the version that follows";
	else if (row->version > 0 && (row->created > row->revision || (row->version == 1) != (row->created == row->revision)))
		wrong = "has a creation that does not fit its version";
	if (wrong)
		return err_set(err, ERR_UNAVAILABLE, "the row of revision %lld %s", (long long)row->revision, wrong);
	report->rows++;
	(void)index_push(&c->index, row->key, row_version(row));
	return 0;
}

/* Do the rows make sense together? What does not is the report's problem. */
static int count_rows(struct db *db, struct store_report *ret, struct err *err)
{
	struct count c = { .report = ret };
	struct err wrong = ERR_INIT;
	struct omap_iter it;
	const struct index_key *k;

	index_init(&c.index);
	int r = db_each(db, count_row, &c, &wrong);
	if (r < 0 && r != -ERR_UNAVAILABLE) {
		index_done(&c.index);
		return err_set(err, (enum err_code)-r, "%s", wrong.msg);
	}
	if (r < 0) {
		ret->sound = false;
		(void)snprintf(ret->problem, sizeof ret->problem, "%.250s", wrong.msg);
	}
	ret->keys = c.index.live;
	omap_seek(&it, c.index.keys, STR_NONE);
	while ((k = omap_next(&it, NULL)))
		ret->expiring += k->newest.version && k->newest.expires_ns;
	index_done(&c.index);
	return 0;
}

static int check_open(struct db *db, struct store_report *ret, struct err *err)
{
	struct db_state state;
	int r = db_check(db, true, ret->problem, sizeof ret->problem, err);
	if (r < 0)
		return r;
	ret->sound = r == 0;
	if (ret->sound)
		ret->problem[0] = '\0';
	r = db_state(db, &state, err);
	if (r < 0)
		return ret->sound ? r : 0;
	ret->revision = state.revision;
	ret->compact_revision = state.compact_revision;
	ret->size_bytes = state.size_bytes;
	ret->free_bytes = state.free_bytes;
	return ret->sound ? count_rows(db, ret, err) : 0;
}

int store_file_check(const char *path, struct store_report *ret, struct err *err)
{
	CLEANUP(db_closep) struct db *db = NULL;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct stat st;

	*ret = (struct store_report){ 0 };
	if (stat(path, &st) < 0)
		return err_sys(err, errno, "%s", path);
	ret->in_use = is_in_use(path);
	ret->log_bytes = stat(name_with(&a, path, "-wal"), &st) == 0 ? st.st_size : 0;
	int r = db_open(path, DB_INSPECT, &db, err);
	return r < 0 ? r : check_open(db, ret, err);
}

/* ---- copies ---- */

static int sync_file(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 || fsync(fd) < 0 ? err_sys(err, errno, "make %s durable", path) : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

static int must_be_sound(const char *path, struct store_report *ret, struct err *err)
{
	int r = store_file_check(path, ret, err);
	if (r == 0 && !ret->sound)
		return err_set(err, ERR_UNAVAILABLE, "%s is damaged: %s", path, ret->problem);
	return r;
}

static int bump_revision(const char *path, int64_t bump, struct err *err)
{
	CLEANUP(db_closep) struct db *db = NULL;
	int r = db_open(path, DB_WRITER, &db, err);
	return r < 0 ? r : db_bump(db, bump, err);
}

/* What SQLite leaves beside a file that was only read. */
static void remove_side_files(const char *path)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	(void)unlink(name_with(&a, path, "-wal"));
	(void)unlink(name_with(&a, path, "-shm"));
}

static void remove_partial(const char *partial)
{
	(void)unlink(partial);
	remove_side_files(partial);
}

/* An empty file that only its owner may read, since the store holds secrets. */
static int create_private(const char *path, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, "write %s", path);
	close(fd);
	return 0;
}

/* A sound, durable copy under a name that nobody uses; removed again on failure. */
static int copy_to(const char *from, const char *partial, int64_t bump, struct store_report *ret, struct err *err)
{
	CLEANUP(db_closep) struct db *db = NULL;

	remove_partial(partial);
	int r = db_open(from, DB_INSPECT, &db, err);
	if (r == 0)
		r = create_private(partial, err);
	if (r == 0)
		r = db_copy_to(db, partial, err);
	if (r == 0 && bump > 0)
		r = bump_revision(partial, bump, err);
	if (r == 0)
		r = must_be_sound(partial, ret, err);
	if (r == 0 && ret->log_bytes)
		r = err_set(err, ERR_UNAVAILABLE, "%s could not be completed; is the disk full?", partial);
	if (r == 0)
		r = sync_file(partial, err);
	if (r == 0)
		remove_side_files(partial);
	else
		remove_partial(partial);
	return r;
}

static int give_name(const char *partial, const char *path, bool replace, struct err *err)
{
	if (renameat2(AT_FDCWD, partial, AT_FDCWD, path, replace ? 0 : RENAME_NOREPLACE) == 0)
		return db_sync_folder(path, err);
	int sys = errno;
	remove_partial(partial);
	return sys == EEXIST ? err_set(err, ERR_ALREADY_EXISTS, "%s exists already", path) : err_sys(err, sys, "write %s", path);
}

int store_file_snapshot(const char *path, const char *to, bool replace, struct store_report *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *partial = name_with(&a, to, ".partial");

	if (!replace && exists(to))
		return err_set(err, ERR_ALREADY_EXISTS, "%s exists already", to);
	if (!exists(path))
		return err_sys(err, ENOENT, "%s", path);
	int r = copy_to(path, partial, 0, ret, err);
	return r == 0 ? give_name(partial, to, replace, err) : r;
}

/* Moves a store that is in nobody's use out of the way, with its log, which belongs to no other file. */
static int put_aside(const char *path, struct err *err)
{
	static const char *const tails[] = { "-wal", "-shm", "" };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		const char *from = name_with(&a, path, tails[i]), *to = name_with(&a, name_with(&a, path, ".old"), tails[i]);
		(void)unlink(to); /* a log of an older one must not stay beside this one */
		if (rename(from, to) < 0 && errno != ENOENT)
			return err_sys(err, errno, "rename %s", from);
	}
	return 0;
}

int store_file_restore(const char *snapshot, const char *path, bool replace, int64_t bump, struct store_report *ret,
		       struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *partial = name_with(&a, path, ".partial");
	bool there = exists(path);
	int lock = -1;

	if (there && !replace)
		return err_set(err, ERR_ALREADY_EXISTS, "%s exists already", path);
	int r = must_be_sound(snapshot, ret, err);
	if (r == 0 && there)
		r = lock = db_lock(path, err);
	if (r >= 0)
		r = copy_to(snapshot, partial, bump, ret, err);
	if (r >= 0)
		r = put_aside(path, err);
	if (r >= 0)
		r = give_name(partial, path, false, err);
	if (lock >= 0)
		close(lock);
	return r;
}
