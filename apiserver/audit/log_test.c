/* Rotation: by size, with names by time, and what is kept of it. */
#include "apiserver/audit/log.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/test.h"

#define NOW 1767323045678000000 /* 2026-01-02T03:04:05.678Z */

struct folder {
	char path[64], file[96];
};

static void folder_init(struct folder *f)
{
	snprintf(f->path, sizeof f->path, "/tmp/c8s-audit-XXXXXX");
	CHECK(mkdtemp(f->path));
	snprintf(f->file, sizeof f->file, "%s/sub/audit.log", f->path);
}

static int compare(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The names in the folder, in order. With remove, they go. */
static void folder_names(const struct folder *f, bool remove, struct buf *ret)
{
	char path[512], *names[16];
	size_t n = 0;
	snprintf(path, sizeof path, "%s/sub", f->path);
	DIR *dir = opendir(path);
	CHECK(dir);
	for (const struct dirent *e; (e = readdir(dir)) && n < ARRAY_LEN(names);)
		if (e->d_name[0] != '.')
			names[n++] = strdup(e->d_name);
	closedir(dir);
	qsort(names, n, sizeof *names, compare);
	for (size_t i = 0; i < n; i++) {
		buf_addf(ret, "%s%s", i ? " " : "", names[i]);
		snprintf(path, sizeof path, "%s/sub/%s", f->path, names[i]);
		if (remove)
			unlink(path);
		free(names[i]);
	}
	snprintf(path, sizeof path, "%s/sub", f->path);
	if (remove) {
		rmdir(path);
		rmdir(f->path);
	}
}

static void check_names(const struct folder *f, const char *want)
{
	struct buf b = BUF_INIT(4096);
	folder_names(f, false, &b);
	CHECK_STR(buf_str(&b), want);
	buf_done(&b);
}

static void folder_done(struct folder *f)
{
	struct buf b = BUF_INIT(4096);
	folder_names(f, true, &b);
	buf_done(&b);
}

TEST(audit_log_rotates_by_size)
{
	struct folder f;
	struct audit_log *log;
	struct err err = ERR_INIT;
	folder_init(&f);
	clock_virtual_set(0, NOW);
	CHECK_INT(audit_log_open(&(struct audit_log_options){ .path = f.file, .max_bytes = 20, .max_backups = 2 }, &log, &err), 0);
	CHECK_INT(audit_log_write(log, STR("0123456789\n"), &err), 0);
	check_names(&f, "audit.log");
	CHECK_INT(audit_log_write(log, STR("abcdefghij\n"), &err), 0);
	check_names(&f, "audit-2026-01-02T03-04-05.678.log audit.log");
	CHECK_INT(audit_log_write(log, STR("one line that no file takes\n"), &err), -ERR_TOO_LARGE);
	CHECK_STR(err_str(&err), "write length 28 exceeds maximum file size 20");
	for (int i = 0; i < 2; i++) {
		clock_virtual_advance(NS_PER_S);
		CHECK_INT(audit_log_write(log, STR("0123456789\n"), &err), 0);
	}
	CHECK(audit_log_is_untidy(log));
	CHECK_INT(audit_log_tidy(log, &err), 0);
	CHECK(!audit_log_is_untidy(log));
	check_names(&f, "audit-2026-01-02T03-04-06.678.log audit-2026-01-02T03-04-07.678.log audit.log");
	audit_log_close(log);
	/* what is there already counts */
	CHECK_INT(audit_log_open(&(struct audit_log_options){ .path = f.file, .max_bytes = 20, .max_age_days = 1, .compress = true }, &log, &err), 0);
	clock_virtual_set(0, NOW + 24 * 3600 * NS_PER_S + 2 * NS_PER_S);
	CHECK_INT(audit_log_write(log, STR("0123456789\n"), &err), 0);
	CHECK_INT(audit_log_tidy(log, &err), 0);
	check_names(&f, "audit-2026-01-02T03-04-07.678.log.gz audit-2026-01-03T03-04-07.678.log.gz audit.log");
	struct buf text = BUF_INIT(100);
	CHECK_INT(file_read(f.file, &text, &err), 0);
	CHECK_STR(buf_str(&text), "0123456789\n");
	buf_done(&text);
	audit_log_close(log);
	clock_virtual_off();
	folder_done(&f);
}
