#include "store/sqlite_fixture.h"

#include <stdlib.h>
#include <unistd.h>

static const char name[] = "/store.db";

char *sqlite_fixture_folder(void)
{
	const char *base = getenv("TMPDIR");
	char *path = NULL;

	CHECK(asprintf(&path, "%s/c8s-store-XXXXXX%s", base ? base : "/tmp", name) > 0);
	path[strlen(path) - strlen(name)] = '\0';
	CHECK(mkdtemp(path));
	path[strlen(path)] = '/';
	return path;
}

void sqlite_fixture_remove(char *path)
{
	static const char *const tails[] = { "", "-wal", "-shm", ".old", ".old-wal", ".old-shm", ".snapshot",
		".snapshot-wal", ".snapshot-shm", ".other" };
	char file[512];

	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		(void)snprintf(file, sizeof file, "%s%s", path, tails[i]);
		(void)unlink(file);
	}
	path[strlen(path) - strlen(name)] = '\0';
	CHECK_INT(rmdir(path), 0);
	free(path);
}

static void setup(struct suite *t) { t->state = sqlite_fixture_folder(); }
static void teardown(struct suite *t) { sqlite_fixture_remove(t->state); }

static int open_store(struct suite *t, struct store **ret, struct err *err)
{
	struct store_options o = { .path = t->state };
	return store_open(&o, ret, err);
}

const struct suite_engine sqlite_fixture = { .setup = setup, .teardown = teardown, .open = open_store, .ttl_slack_ms = 2000 };
