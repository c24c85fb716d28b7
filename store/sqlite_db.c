/* Rows in and out. Every statement is prepared once per connection, at its first use. */
#include "store/sqlite_db.h"

#include "store/sqlite_sql.h"

/* ---- statements ---- */

static const char *const sql_text[SQL_MAX] = {
	[SQL_BEGIN] = "BEGIN IMMEDIATE",
	[SQL_COMMIT] = "COMMIT",
	[SQL_ROLLBACK] = "ROLLBACK",
	[SQL_INSERT] = "INSERT INTO row(revision, prev, created, version, expires, key, value) VALUES(?,?,?,?,?,?,?)",
	[SQL_READ] = "SELECT value FROM row WHERE revision = ?",
	/* Not the value: SQLite would read all of it, also of rows that are not wanted. */
	[SQL_SCAN] = ("SELECT revision, prev, created, version, expires, key FROM row"
		      " WHERE revision BETWEEN ? AND ? ORDER BY revision"),
	[SQL_LAST] = "SELECT max(revision) FROM row",
	[SQL_META_GET] = "SELECT value FROM meta WHERE name = ?",
	[SQL_META_SET] = "INSERT INTO meta(name, value) VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
	[SQL_REMOVE] = "DELETE FROM row WHERE revision = ?",
	[SQL_PAGE_COUNT] = "PRAGMA page_count",
	[SQL_FREE_COUNT] = "PRAGMA freelist_count",
};

bool db_is_damaged(const struct db *db) { return db->damaged; }
int64_t db_log_pages(const struct db *db) { return db->log_pages; }

/* Unlike strerror for every thread at a time. */
static const char *errno_text(int sys)
{
	const char *text = strerrordesc_np(sys);
	return text ? text : "unknown error";
}

int db_error(struct db *db, int rc, const char *what, struct err *err)
{
	switch (rc & 0xff) {
	case SQLITE_FULL:
		return err_set(err, ERR_UNAVAILABLE,
			       "%s %s: the disk is full; free some space, and writes go on by themselves", what, db->path);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		db->damaged = true;
		return err_set(err, ERR_UNAVAILABLE,
			       "%s %s: the file is damaged (%s); stop the server, look with 'c8s store check' and bring"
			       " back a snapshot with 'c8s store restore'", what, db->path, sqlite3_errmsg(db->c));
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, ERR_UNAVAILABLE, "%s %s: another program holds a lock on the file", what, db->path);
	case SQLITE_IOERR:
		return err_set(err, ERR_UNAVAILABLE, "%s %s: %s (%s)", what, db->path, sqlite3_errmsg(db->c),
			       errno_text(sqlite3_system_errno(db->c)));
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_CANTOPEN:
	case SQLITE_AUTH:
		return err_set(err, ERR_UNAVAILABLE, "%s %s: %s; look at the owner and mode of the file and its folder", what,
			       db->path, sqlite3_errmsg(db->c));
	default:
		return err_set(err, ERR_INTERNAL, "%s %s: %s", what, db->path, sqlite3_errmsg(db->c));
	}
}

sqlite3_stmt *db_statement(struct db *db, enum db_sql which, int *ret_rc)
{
	*ret_rc = SQLITE_OK;
	if (!db->statements[which])
		*ret_rc = sqlite3_prepare_v3(db->c, sql_text[which], -1, SQLITE_PREPARE_PERSISTENT,
					     &db->statements[which], NULL);
	return db->statements[which];
}

/* Runs a statement whose parameters are bound. */
static int finish(sqlite3_stmt *q)
{
	int rc = sqlite3_step(q);
	int reset = sqlite3_reset(q);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? reset : rc;
}

static int run(struct db *db, enum db_sql which)
{
	int rc;
	sqlite3_stmt *q = db_statement(db, which, &rc);
	return q ? finish(q) : rc;
}

/* The first column of the first row; *ret stays as it was when there is none or it is NULL. */
static int run_for_int(struct db *db, enum db_sql which, const char *parameter, int64_t *ret)
{
	int rc;
	sqlite3_stmt *q = db_statement(db, which, &rc);
	if (!q)
		return rc;
	if (parameter)
		(void)sqlite3_bind_text(q, 1, parameter, -1, SQLITE_STATIC);
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW && sqlite3_column_type(q, 0) != SQLITE_NULL)
		*ret = sqlite3_column_int64(q, 0);
	int reset = sqlite3_reset(q);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? reset : rc;
}

static void rollback(struct db *db)
{
	if (!sqlite3_get_autocommit(db->c))
		(void)run(db, SQL_ROLLBACK);
}

/* ---- state ---- */

int db_state(struct db *db, struct db_state *ret, struct err *err)
{
	int64_t pages = 0, unused = 0;
	*ret = (struct db_state){ .revision = 1 };
	int rc = run_for_int(db, SQL_LAST, NULL, &ret->revision);
	if (!rc)
		rc = run_for_int(db, SQL_META_GET, "compact_revision", &ret->compact_revision);
	if (!rc)
		rc = run_for_int(db, SQL_META_GET, "cleaned_revision", &ret->cleaned_revision);
	if (!rc)
		rc = run_for_int(db, SQL_PAGE_COUNT, NULL, &pages);
	if (!rc)
		rc = run_for_int(db, SQL_FREE_COUNT, NULL, &unused);
	ret->size_bytes = pages * DB_PAGE_SIZE;
	ret->free_bytes = unused * DB_PAGE_SIZE;
	return rc ? db_error(db, rc, "read", err) : 0;
}

static int meta_set(struct db *db, const char *name, int64_t value)
{
	int rc;
	sqlite3_stmt *q = db_statement(db, SQL_META_SET, &rc);
	if (!q)
		return rc;
	(void)sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(q, 2, value);
	return finish(q);
}

int db_set_compact_revision(struct db *db, int64_t revision, struct err *err)
{
	int rc = meta_set(db, "compact_revision", revision);
	return rc ? db_error(db, rc, "write to", err) : 0;
}

/* ---- writing ---- */

static int insert(struct db *db, const struct row *row)
{
	int rc;
	sqlite3_stmt *q = db_statement(db, SQL_INSERT, &rc);
	if (!q)
		return rc;
	(void)sqlite3_bind_int64(q, 1, row->revision);
	(void)sqlite3_bind_int64(q, 2, row->prev);
	(void)sqlite3_bind_int64(q, 3, row->created);
	(void)sqlite3_bind_int64(q, 4, row->version);
	(void)sqlite3_bind_int64(q, 5, row->expires_ns);
	(void)sqlite3_bind_blob64(q, 6, row->key.p, row->key.n, SQLITE_STATIC);
	if (!row->value)
		rc = sqlite3_bind_null(q, 7);
	else
		rc = sqlite3_bind_blob64(q, 7, row->value->bytes, row->value->n, SQLITE_STATIC);
	if (!rc)
		rc = finish(q);
	else
		(void)sqlite3_reset(q);
	return rc;
}

int db_commit(struct db *db, struct row *const *rows, size_t n, struct err *err)
{
	int rc = run(db, SQL_BEGIN);
	for (size_t i = 0; !rc && i < n; i++)
		rc = insert(db, rows[i]);
	if (rc) {
		int r = db_error(db, rc, "write to", err);
		rollback(db);
		return r;
	}
	rc = run(db, SQL_COMMIT);
	if (!rc)
		return 0;
	int r = db_error(db, rc, "write to", err);
	rollback(db);
	/* The log's last frame may have reached the disk before the error was reported. */
	if ((rc & 0xff) != SQLITE_IOERR)
		return r;
	if (err)
		err->code = ERR_TIMEOUT;
	return err_wrap(err, -ERR_TIMEOUT, "it is not known whether this write was kept");
}

int db_bump(struct db *db, int64_t n, struct err *err)
{
	struct db_state state;
	int r = db_state(db, &state, err);

	if (r < 0)
		return r;
	struct row row = { .revision = state.revision + n, .key = STR("/c8s/restored") }, *one = &row;
	r = db_commit(db, &one, 1, err);
	return r < 0 ? r : db_set_compact_revision(db, row.revision, err);
}

/* ---- reading ---- */

/* The blob in a column as a value; NULL when there is no memory or the disk failed. */
static struct store_value *column_value(sqlite3_stmt *q, int column)
{
	const char *p = sqlite3_column_blob(q, column);
	size_t n = (size_t)sqlite3_column_bytes(q, column);
	return !p && n ? NULL : store_value_new(str_span(p, n));
}

int db_read(struct db *db, struct row *const *rows, size_t n, struct err *err)
{
	int rc;
	sqlite3_stmt *q = db_statement(db, SQL_READ, &rc);
	for (size_t i = 0; q && i < n; i++) {
		(void)sqlite3_bind_int64(q, 1, rows[i]->revision);
		rc = sqlite3_step(q);
		if (rc == SQLITE_ROW)
			rows[i]->value = column_value(q, 0);
		int reset = sqlite3_reset(q);
		if (rc == SQLITE_DONE)
			return err_set(err, ERR_INTERNAL, "%s: there is no row of revision %lld; look with 'c8s store check'",
				       db->path, (long long)rows[i]->revision);
		if (rc != SQLITE_ROW || reset)
			return db_error(db, rc != SQLITE_ROW ? rc : reset, "read", err);
		if (!rows[i]->value)
			return db_error(db, SQLITE_NOMEM, "read", err);
	}
	return q ? 0 : db_error(db, rc, "read", err);
}

static void column_row(sqlite3_stmt *q, struct row *ret)
{
	*ret = (struct row){
		.revision = sqlite3_column_int64(q, 0), .prev = sqlite3_column_int64(q, 1),
		.created = sqlite3_column_int64(q, 2), .version = sqlite3_column_int64(q, 3),
		.expires_ns = sqlite3_column_int64(q, 4),
	};
	const char *key = sqlite3_column_blob(q, 5);
	ret->key = str_span(key, (size_t)sqlite3_column_bytes(q, 5));
}

static int bind_scan(struct db *db, int64_t first, int64_t last, sqlite3_stmt **ret)
{
	int rc;
	sqlite3_stmt *q = *ret = db_statement(db, SQL_SCAN, &rc);
	if (!q)
		return rc;
	(void)sqlite3_bind_int64(q, 1, first);
	(void)sqlite3_bind_int64(q, 2, last);
	return SQLITE_OK;
}

int db_each(struct db *db, int (*fn)(void *arg, const struct row *row, struct err *err), void *arg, struct err *err)
{
	sqlite3_stmt *q;
	int rc = bind_scan(db, INT64_MIN, INT64_MAX, &q), r = 0;

	while (!rc && r >= 0 && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		struct row row;
		column_row(q, &row);
		r = fn(arg, &row, err);
		rc = SQLITE_OK;
	}
	if (q)
		(void)sqlite3_reset(q);
	if (r < 0)
		return r;
	return rc == SQLITE_DONE ? 0 : db_error(db, rc, "read", err);
}

int db_scan(struct db *db, struct db_scan *scan, struct arena *arena, struct err *err)
{
	/* Rows of other keys cost time too, though less. */
	size_t bytes = 0, looked_at = 0;
	sqlite3_stmt *q;
	int rc = bind_scan(db, scan->first, scan->last, &q), r = 0;

	scan->rows = ARENA_ARRAY(arena, struct row, scan->max_rows);
	scan->n = 0;
	while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		struct row *row = &scan->rows[scan->n];
		column_row(q, row);
		scan->first = row->revision + 1;
		rc = SQLITE_OK;
		if (store_range_has(scan->from, scan->to, row->key)) {
			row->key = arena_str(arena, row->key);
			scan->n++;
			if (row->version && (r = db_read(db, &row, 1, err)) < 0)
				break;
			bytes += row->value ? row->value->n : 0;
		}
		if (scan->n == scan->max_rows || bytes >= scan->max_bytes || ++looked_at >= scan->max_rows * 16)
			break;
	}
	if (rc == SQLITE_DONE) {
		scan->first = scan->last + 1;
		rc = SQLITE_OK;
	}
	if (q)
		(void)sqlite3_reset(q);
	return r < 0 || !rc ? r : db_error(db, rc, "read", err);
}

/* ---- cleaning ---- */

static int list_step(struct db *db, struct db_clean *step, struct row *rows, struct arena *arena)
{
	sqlite3_stmt *q;
	int rc = bind_scan(db, step->first, step->last, &q);

	while (!rc && step->n < step->max && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		struct row *row = &rows[step->n];
		column_row(q, row);
		step->keys[step->n++] = arena_str(arena, row->key);
		rc = SQLITE_OK;
	}
	if (q)
		(void)sqlite3_reset(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int remove_row(struct db *db, int64_t revision)
{
	int rc;
	sqlite3_stmt *q = db_statement(db, SQL_REMOVE, &rc);
	if (!q)
		return rc;
	(void)sqlite3_bind_int64(q, 1, revision);
	return finish(q);
}

int db_clean(struct db *db, struct db_clean *step, struct arena *arena, struct err *err)
{
	struct row *rows = ARENA_ARRAY(arena, struct row, step->max);

	step->keys = ARENA_ARRAY(arena, str, step->max);
	step->n = 0;
	int rc = list_step(db, step, rows, arena);
	int64_t next = !rc && step->n == step->max ? rows[step->n - 1].revision + 1 : step->last + 1;
	if (!rc)
		rc = run(db, SQL_BEGIN);
	for (size_t i = 0; !rc && i < step->n; i++) {
		if (rows[i].prev)
			rc = remove_row(db, rows[i].prev);
		if (!rc && !rows[i].version && rows[i].revision < step->last)
			rc = remove_row(db, rows[i].revision);
	}
	if (!rc)
		rc = meta_set(db, "cleaned_revision", next - 1);
	if (!rc)
		rc = run(db, SQL_COMMIT);
	if (rc) {
		int r = db_error(db, rc, "clean", err);
		rollback(db);
		return r;
	}
	step->first = next;
	return 0;
}

/* ---- care ---- */

int db_checkpoint(struct db *db, int64_t *ret_left, struct err *err)
{
	int pages = 0, done = 0;
	int rc = sqlite3_wal_checkpoint_v2(db->c, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &done);
	if (rc && rc != SQLITE_BUSY)
		return db_error(db, rc, "checkpoint", err);
	*ret_left = MAX(pages - done, 0);
	db->log_pages = *ret_left;
	return 0;
}

int db_reserve_log(struct db *db, int64_t pages, struct err *err)
{
	enum { LOG_HEADER = 32, FRAME_HEADER = 24 };
	static char zeros[64 << 10]; /* not const, which would take as much room in the program */
	sqlite3_file *log = NULL;
	sqlite3_int64 have = 0, want = LOG_HEADER + pages * (FRAME_HEADER + DB_PAGE_SIZE);
	int rc = sqlite3_file_control(db->c, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (!rc && log && log->pMethods)
		rc = log->pMethods->xFileSize(log, &have);
	else
		have = want; /* not opened yet */
	while (!rc && have < want) {
		int n = (int)MIN((sqlite3_int64)sizeof zeros, want - have);
		rc = log->pMethods->xWrite(log, zeros, n, have);
		have += n;
	}
	if (!rc && log && log->pMethods)
		rc = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
	return rc ? db_error(db, rc, "reserve the log of", err) : 0;
}

int db_shrink(struct db *db, int pages, struct err *err)
{
	char text[64];
	(void)snprintf(text, sizeof text, "PRAGMA incremental_vacuum(%d)", pages);
	int rc = sqlite3_exec(db->c, text, NULL, NULL, NULL);
	return rc ? db_error(db, rc, "shrink", err) : 0;
}
