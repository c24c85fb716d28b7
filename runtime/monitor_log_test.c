#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/test.h"
#include "runtime/logs_rotate.h"
#include "runtime/monitor_priv.h"

enum { LINE = 512, LINE_BYTES = LINE + 40 }; /* what it takes in the file, about */

struct place {
	char folder[32], path[64];
	struct log log;
	struct buf held;
	int lines;
};

static void place_init(struct place *p, uint64_t max_size, size_t max_files)
{
	*p = (struct place){ .lines = 0 };
	snprintf(p->folder, sizeof(p->folder), "/tmp/c8s-mlog-XXXXXX");
	CHECK(mkdtemp(p->folder));
	snprintf(p->path, sizeof(p->path), "%s/0.log", p->folder);
	buf_init(&p->held, LOGS_TEXT_MAX);
	CHECK_INT(log_open(&p->log, str_of(p->path), max_size, max_files, NULL), 0);
}

/* The suffixes of the files of before, oldest first. */
static size_t rotated(const struct place *p, char suffixes[][LOGS_SUFFIX_MAX], size_t max)
{
	char at[LOGS_SUFFIX_MAX] = "";
	size_t i = 0, n;

	while (i < max && logs_rotated_after(p->path, at, at, &n, NULL) == 0 && n)
		memcpy(suffixes[i++], at, sizeof(at));
	return i;
}

static void place_done(struct place *p)
{
	char suffixes[16][LOGS_SUFFIX_MAX];
	size_t n = rotated(p, suffixes, ARRAY_LEN(suffixes));

	for (size_t i = 0; i < n; i++) {
		CLEANUP(mem_freep) char *path = logs_rotated(p->path, suffixes[i]);
		unlink(path);
	}
	log_close(&p->log);
	buf_done(&p->held);
	unlink(p->path);
	CHECK_INT(rmdir(p->folder), 0);
}

/* Numbered lines of one size, one block each. */
static void add_lines(struct place *p, int n)
{
	char line[LINE + 1];

	for (; n > 0; n--) {
		int used = snprintf(line, sizeof(line), "line %d ", p->lines++);
		memset(line + used, '.', (size_t)(LINE - used));
		line[LINE - 1] = '\n';
		CHECK(log_add(&p->log, LOGS_STDOUT, &p->held, str_span(line, LINE)) == LINE);
	}
}

/* How many lines a file has, and whether they follow those before: *next is the number of the first. */
static void check_lines(const char *path, int *next, size_t max_size)
{
	struct buf text = BUF_INIT(1 << 20);
	int first = *next;
	char want[32];

	CHECK_INT(file_read(path, &text, NULL), 0);
	CHECK(text.n <= max_size);
	for (str rest = buf_str(&text), line; rest.n; ++*next) {
		(void)str_cut(rest, '\n', &line, &rest);
		struct logs_entry e;
		CHECK_INT(logs_parse(line, &e, NULL), 0);
		snprintf(want, sizeof(want), "line %d ", *next);
		CHECK(!e.partial && str_starts(e.text, str_of(want)));
	}
	CHECK(*next > first);
	buf_done(&text);
}

TEST(log_rotates)
{
	CLEANUP(place_done) struct place p;
	char suffixes[16][LOGS_SUFFIX_MAX];
	int next = 0;

	place_init(&p, 4 * LINE_BYTES + LINE_BYTES / 2, 3);
	add_lines(&p, 4);
	CHECK(rotated(&p, suffixes, ARRAY_LEN(suffixes)) == 0);
	/* All of these within a second or two: the names differ nevertheless, in their order. */
	add_lines(&p, 8);
	CHECK(rotated(&p, suffixes, ARRAY_LEN(suffixes)) == 2);
	for (size_t i = 0; i < 2; i++) {
		CLEANUP(mem_freep) char *path = logs_rotated(p.path, suffixes[i]);
		check_lines(path, &next, p.log.max_size);
	}
	check_lines(p.path, &next, p.log.max_size);
	CHECK_INT(next, 12);
	/* No more files than are wanted: the oldest go. */
	add_lines(&p, 20);
	CHECK(rotated(&p, suffixes, ARRAY_LEN(suffixes)) == 2);
	next = 20;
	for (size_t i = 0; i < 2; i++) {
		CLEANUP(mem_freep) char *path = logs_rotated(p.path, suffixes[i]);
		check_lines(path, &next, p.log.max_size);
	}
	check_lines(p.path, &next, p.log.max_size);
	CHECK_INT(next, 32);
}

/* What was there before counts; a rotation from outside is one; without a size there is none. */
TEST(log_size_at_open)
{
	CLEANUP(place_done) struct place p, q;
	char suffixes[4][LOGS_SUFFIX_MAX], other[80];
	struct stat st;

	place_init(&p, 4 * LINE_BYTES, 5);
	add_lines(&p, 3);
	log_close(&p.log);
	CHECK_INT(log_open(&p.log, str_of(p.path), 4 * LINE_BYTES, 5, NULL), 0);
	add_lines(&p, 2);
	CHECK(rotated(&p, suffixes, ARRAY_LEN(suffixes)) == 1);
	snprintf(other, sizeof(other), "%s.old", p.path);
	CHECK_INT(rename(p.path, other), 0);
	CHECK_INT(log_reopen(&p.log, NULL), 0);
	add_lines(&p, 3);
	CHECK(rotated(&p, suffixes, ARRAY_LEN(suffixes)) == 1);
	CHECK_INT(unlink(other), 0);
	place_init(&q, 0, 5);
	add_lines(&q, 100);
	CHECK(rotated(&q, suffixes, ARRAY_LEN(suffixes)) == 0);
	CHECK(stat(q.path, &st) == 0 && st.st_size > 100 * LINE);
}

/* Where no file can be made, the log goes on in the one that it has. */
TEST(log_rotation_fails)
{
	CLEANUP(place_done) struct place p;
	char suffixes[4][LOGS_SUFFIX_MAX], away[64];
	struct stat st;

	place_init(&p, 4 * LINE_BYTES, 5);
	add_lines(&p, 4);
	snprintf(away, sizeof(away), "%s.away", p.folder);
	CHECK_INT(rename(p.folder, away), 0);
	add_lines(&p, 2);
	CHECK_INT(rename(away, p.folder), 0);
	CHECK(rotated(&p, suffixes, ARRAY_LEN(suffixes)) == 0);
	CHECK(stat(p.path, &st) == 0 && st.st_size > 6 * LINE);
	add_lines(&p, 4);
	CHECK(rotated(&p, suffixes, ARRAY_LEN(suffixes)) == 1);
}
