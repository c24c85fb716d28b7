/* What the two files that speak SQL share: sqlite_db.c (rows) and sqlite_open.c (the file as a whole). */
#ifndef C8S_STORE_SQLITE_SQL_H
#define C8S_STORE_SQLITE_SQL_H

#include <sqlite3.h>

#include "store/sqlite_db.h"

enum { DB_PAGE_SIZE = 4096, DB_APPLICATION_ID = 0x63387353 /* "c8sS" */, DB_FORMAT = 1 };

enum db_sql {
	SQL_BEGIN, SQL_COMMIT, SQL_ROLLBACK, SQL_INSERT, SQL_READ, SQL_SCAN, SQL_LAST, SQL_META_GET, SQL_META_SET,
	SQL_REMOVE, SQL_PAGE_COUNT, SQL_FREE_COUNT, SQL_MAX,
};

struct db {
	sqlite3 *c;
	char *path;
	sqlite3_stmt *statements[SQL_MAX];
	int64_t log_pages;
	bool damaged;
};

/* A failed call of SQLite as an error that says what to do. Notes damage. */
int db_error(struct db *db, int rc, const char *what, struct err *err);
/* The prepared statement; NULL and the reason in *ret_rc. */
sqlite3_stmt *db_statement(struct db *db, enum db_sql which, int *ret_rc);

#endif
