/* The file as a whole: the lock, what it is, whether it is sound, copies of it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/sqlite_sql.h"

enum {
	BUSY_MS = 5000,
	WRITER_CACHE_KIB = 16 * 1024,
	READER_CACHE_KIB = 4 * 1024,
};

/* ---- the lock ---- */

int db_sync_folder(const char *path, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	ptrdiff_t slash = str_rchr(str_of(path), '/');
	str folder = arena_str(&a, slash < 0 ? STR(".") : str_span(path, (size_t)MAX(slash, (ptrdiff_t)1)));
	int fd = open(folder.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 || fsync(fd) < 0 ? err_sys(err, errno, "make %s durable", folder.p) : 0;

	if (fd >= 0)
		(void)close(fd);
	return r;
}

int db_lock(const char *path, struct err *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0) {
		int sys = errno;
		return err_set(err, ERR_UNAVAILABLE, "open %s: %s; its folder must exist and be writable", path,
			       strerrordesc_np(sys));
	}
	/* flock, not fcntl: it is apart from SQLite's own locks on the file. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int sys = errno;
		close(fd);
		if (sys == EWOULDBLOCK)
			return err_set(err, ERR_UNAVAILABLE,
				       "%s is in use by another process; stop that server first ('fuser %s' names it)",
				       path, path);
		return err_sys(err, sys, "lock %s", path);
	}
	(void)db_sync_folder(path, NULL); /* so that a new file is not lost with its name; some file systems cannot */
	return fd;
}

/* ---- opening ---- */

static int exec(struct db *db, const char *sql) { return sqlite3_exec(db->c, sql, NULL, NULL, NULL); }

static int exec_for_int(struct db *db, const char *sql, int64_t *ret)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db->c, sql, -1, &q, NULL);
	if (rc)
		return rc;
	rc = sqlite3_step(q);
	*ret = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
	int done = sqlite3_finalize(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? done : rc;
}

static int on_commit(void *arg, sqlite3 *c, const char *name, int pages)
{
	struct db *db = arg;
	(void)c, (void)name;
	db->log_pages = pages;
	return SQLITE_OK;
}

static int create(struct db *db)
{
	char stamp[96];
	(void)snprintf(stamp, sizeof stamp, "PRAGMA application_id = %d; PRAGMA user_version = %d;", DB_APPLICATION_ID,
		       DB_FORMAT);
	int rc = exec(db, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
			  "BEGIN IMMEDIATE;"
			  "CREATE TABLE row(revision INTEGER PRIMARY KEY, prev INTEGER NOT NULL, created INTEGER NOT NULL,"
			  " version INTEGER NOT NULL, expires INTEGER NOT NULL, key BLOB NOT NULL, value BLOB);"
			  "CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;");
	if (!rc)
		rc = exec(db, stamp);
	return rc ? rc : exec(db, "COMMIT");
}

static int open_error(struct db *db, int rc, struct err *err)
{
	if (rc == SQLITE_NOTADB)
		return err_set(err, ERR_UNAVAILABLE, "%s is not a store of c8s, or its beginning is destroyed", db->path);
	return db_error(db, rc, "open", err);
}

/* Is this a store, and of a format that we know? A file without any table becomes one if may_create. */
static int identify(struct db *db, bool may_create, struct err *err)
{
	int64_t id = 0, format = 0, tables = 0;
	int rc = exec_for_int(db, "PRAGMA application_id", &id);
	if (!rc)
		rc = exec_for_int(db, "PRAGMA user_version", &format);
	if (!rc)
		rc = exec_for_int(db, "SELECT count(*) FROM sqlite_schema", &tables);
	if (!rc && may_create && !id && !tables)
		rc = create(db);
	else if (!rc && id != DB_APPLICATION_ID)
		return err_set(err, ERR_UNAVAILABLE, "%s is not a store of c8s; name another file", db->path);
	else if (!rc && format > DB_FORMAT)
		return err_set(err, ERR_UNAVAILABLE,
			       "%s has format %lld, written by a newer c8s; this one knows formats up to %d", db->path,
			       (long long)format, DB_FORMAT);
	return rc ? open_error(db, rc, err) : 0;
}

static int configure(struct db *db, enum db_mode mode)
{
	char text[256];
	(void)snprintf(text, sizeof text,
		       "PRAGMA cache_size = -%d; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
		       "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;",
		       mode == DB_WRITER ? WRITER_CACHE_KIB : READER_CACHE_KIB);
	(void)sqlite3_busy_timeout(db->c, BUSY_MS);
	return exec(db, text);
}

static pthread_once_t sqlite_once = PTHREAD_ONCE_INIT;

/* Without this each connection takes the memory of 20 pages at once; most of ours use fewer. */
static void set_up_sqlite(void) { (void)sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0); }

int db_open(const char *path, enum db_mode mode, struct db **ret, struct err *err)
{
	CLEANUP(db_closep) struct db *db = mem_zalloc(sizeof *db);
	static const int flags[] = {
		[DB_WRITER] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
		[DB_READER] = SQLITE_OPEN_READWRITE, /* for checkpoints, which change nothing that a reader sees */
		[DB_INSPECT] = SQLITE_OPEN_READONLY,
	};

	(void)pthread_once(&sqlite_once, set_up_sqlite);
	db->path = strdup(path);
	int rc = sqlite3_open_v2(path, &db->c, SQLITE_OPEN_NOMUTEX | flags[mode], NULL);
	if (!rc)
		rc = configure(db, mode);
	if (rc)
		return open_error(db, rc, err);
	int r = mode == DB_READER ? 0 : identify(db, mode == DB_WRITER, err);
	if (r < 0)
		return r;
	/* A snapshot that was put in place is not in WAL mode yet. */
	if (mode == DB_WRITER && (rc = exec(db, "PRAGMA journal_mode = WAL")))
		return open_error(db, rc, err);
	(void)sqlite3_wal_hook(db->c, on_commit, db);
	*ret = TAKE(db);
	return 0;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < SQL_MAX; i++)
		(void)sqlite3_finalize(db->statements[i]);
	(void)sqlite3_close(db->c);
	free(db->path);
	free(db);
}

void db_closep(struct db **db) { db_close(TAKE(*db)); }

/* ---- soundness and copies ---- */

int db_check(struct db *db, bool thorough, char *problem, size_t size, struct err *err)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db->c, thorough ? "PRAGMA integrity_check(1)" : "PRAGMA quick_check(1)", -1, &q, NULL);
	int wrong = 0;

	if (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(q, 0);
		const char *end = text ? strchr(text, '\n') : NULL; /* behind a heading */
		wrong = !text || strcmp(text, "ok") != 0;
		(void)snprintf(problem, size, "%s", end ? end + 1 : text ? text : "no answer");
		rc = SQLITE_OK;
	}
	if (rc == SQLITE_CORRUPT) {
		(void)snprintf(problem, size, "%s", sqlite3_errmsg(db->c));
		wrong = 1;
		rc = SQLITE_OK;
	}
	(void)sqlite3_finalize(q);
	if (wrong)
		db->damaged = true;
	return rc && rc != SQLITE_DONE ? db_error(db, rc, "check", err) : wrong;
}

int db_copy_to(struct db *db, const char *path, struct err *err)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db->c, "VACUUM INTO ?", -1, &q, NULL);
	if (!rc) {
		(void)sqlite3_bind_text(q, 1, path, -1, SQLITE_STATIC);
		rc = sqlite3_step(q);
		rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
	}
	int r = rc ? db_error(db, rc, "copy", err) : 0;
	(void)sqlite3_finalize(q);
	return r;
}
