/* A sqlite store in a folder of its own, for tests. */
#ifndef C8S_STORE_SQLITE_FIXTURE_H
#define C8S_STORE_SQLITE_FIXTURE_H

#include "base/test.h"
#include "store/suite.h"

extern const struct suite_engine sqlite_fixture;

/* The file, once the fixture is set up. */
static inline const char *sqlite_fixture_path(struct suite *t) { return t->state; }
/* Makes an empty folder below $TMPDIR or /tmp and returns the path of a file "store.db" in it, to be given to the second. */
char *sqlite_fixture_folder(void);
void sqlite_fixture_remove(char *path);

#endif
