#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_batch.h"
#include "base/test.h"

enum { FILES = 40, PATH_BYTES = 96 };

struct folder {
	char path[PATH_BYTES];
};

static void folder_make(struct folder *f)
{
	snprintf(f->path, sizeof(f->path), "/tmp/c8s-file-batch-test-XXXXXX");
	CHECK(mkdtemp(f->path));
}

static const char *in(const struct folder *f, int i)
{
	static char path[PATH_BYTES + 16];

	snprintf(path, sizeof(path), "%s/%d", f->path, i);
	return path;
}

static int count(const struct folder *f)
{
	DIR *d = opendir(f->path);
	int n = -2; /* . and .. */

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void check_content(const char *path, const char *want)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(100);

	CHECK_INT(file_read(path, &b, NULL), 0);
	CHECK_STR(buf_str(&b), want);
}

TEST(file_batch_writes_all)
{
	CLEANUP(file_batch_done) struct file_batch batch = FILE_BATCH_INIT;
	struct folder f, other;
	struct err err = ERR_INIT;
	struct stat st;
	char text[32];

	folder_make(&f);
	folder_make(&other);
	CHECK_INT(file_batch_write(&batch, &err), 0);
	CHECK_INT(file_write(in(&f, 0), STR("old"), 0644, &err), 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(text, sizeof(text), "content %d", i);
		file_batch_add(&batch, in(i % 2 ? &other : &f, i), str_of(text), i % 2 ? 0640 : 0600);
	}
	check_content(in(&f, 0), "old");
	CHECK_INT(file_batch_write(&batch, &err), 0);
	CHECK_INT(count(&f), FILES / 2);
	CHECK_INT(count(&other), FILES / 2);
	for (int i = 0; i < FILES; i++) {
		const char *path = in(i % 2 ? &other : &f, i);
		snprintf(text, sizeof(text), "content %d", i);
		check_content(path, text);
		CHECK_INT(stat(path, &st), 0);
		CHECK_INT(st.st_mode & 07777, i % 2 ? 0640 : 0600);
		CHECK_INT(unlink(path), 0);
	}
	CHECK_INT(rmdir(f.path), 0);
	CHECK_INT(rmdir(other.path), 0);
}

TEST(file_batch_reads_what_is_going_to_be)
{
	CLEANUP(file_batch_done) struct file_batch batch = FILE_BATCH_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(100), small = BUF_INIT(2);
	struct folder f;

	folder_make(&f);
	CHECK_INT(file_write(in(&f, 0), STR("on disk"), 0644, NULL), 0);
	CHECK_INT(file_batch_read(&batch, in(&f, 0), &b, NULL), 0);
	file_batch_add(&batch, in(&f, 0), STR(", added"), 0644);
	file_batch_add(&batch, in(&f, 0), STR(", again"), 0644);
	CHECK_INT(file_batch_read(&batch, in(&f, 0), &b, NULL), 0);
	CHECK_STR(buf_str(&b), "on disk, again");
	CHECK_INT(file_batch_read(&batch, in(&f, 0), &small, NULL), -ERR_TOO_LARGE);
	CHECK_INT(file_batch_read(&batch, in(&f, 1), &b, NULL), -ERR_NOT_FOUND);
	CHECK_INT(unlink(in(&f, 0)), 0);
	CHECK_INT(rmdir(f.path), 0);
}

/* Nothing of a batch that cannot be written takes the place of what is there, and nothing else is left behind. */
TEST(file_batch_fails_whole)
{
	CLEANUP(file_batch_done) struct file_batch batch = FILE_BATCH_INIT;
	struct err err = ERR_INIT;
	struct folder f;

	folder_make(&f);
	CHECK_INT(file_write(in(&f, 0), STR("old"), 0644, &err), 0);
	file_batch_add(&batch, in(&f, 0), STR("new"), 0644);
	file_batch_add(&batch, "/nonexistent/folder/file", STR("new"), 0644);
	CHECK_INT(file_batch_write(&batch, &err), -ERR_NOT_FOUND);
	check_content(in(&f, 0), "old");
	CHECK_INT(count(&f), 1);
	CHECK_INT(file_batch_write(&batch, NULL), 0); /* it is empty */
	check_content(in(&f, 0), "old");
	CHECK_INT(unlink(in(&f, 0)), 0);
	CHECK_INT(rmdir(f.path), 0);
}
