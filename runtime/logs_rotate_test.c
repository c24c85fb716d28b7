#include "runtime/logs_rotate.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/test.h"

TEST(logs_suffix)
{
	static const struct {
		int64_t seconds;
		const char *want;
	} t[] = { { 0, ".19700101-000000" }, { 1767225599, ".20251231-235959" }, { 951782400, ".20000229-000000" } };

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char got[LOGS_SUFFIX_MAX];
		logs_suffix(t[i].seconds, got);
		CHECK_STR_ROW(i, str_of(got), t[i].want);
	}
}

/* Only files of this log with names of this kind count, and they come in their order. */
TEST(logs_rotated_after)
{
	static const char *const names[] = {
		"0.log", "0.log.20260101-000002", "0.log.20260101-000001", "0.log.20251231-235959.gz", "0.log.1", "0.log.2026-101-000000",
		"0.log.20260101x000000", "0.log.20260101-00000a", "10.log.20200101-000000", "0.logs.20200101-000000", "0.log.20260203-000000",
	};
	static const char *const want[] = { ".20260101-000001", ".20260101-000002", ".20260203-000000" };
	char folder[] = "/tmp/c8s-rotate-XXXXXX", path[64], suffix[LOGS_SUFFIX_MAX] = "";
	struct err err = ERR_INIT;
	size_t n;

	CHECK(mkdtemp(folder));
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		close(openat(fd, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	snprintf(path, sizeof(path), "%s/0.log", folder);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		CHECK_INT(logs_rotated_after(path, suffix, suffix, &n, &err), 0);
		CHECK_ROW(i, n == ARRAY_LEN(want) - i);
		CHECK_STR_ROW(i, str_of(suffix), want[i]);
		CLEANUP(mem_freep) char *file = logs_rotated(path, suffix);
		CHECK_ROW(i, access(file, F_OK) == 0);
	}
	CHECK_INT(logs_rotated_after(path, suffix, suffix, &n, &err), 0);
	CHECK(n == 0 && !*suffix);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK_INT(unlinkat(fd, names[i], 0), 0);
	close(fd);
	rmdir(folder);
	CHECK_INT(logs_rotated_after(path, "", suffix, &n, &err), -ERR_NOT_FOUND);
}
