#include "runtime/logs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fiber_test.h"

struct got {
	struct buf out, err;
	int fail_after;               /* writes; 0: never */
	const char *path;
	int asked;                    /* how often whether it runs */
};

static int got_write(void *arg, enum logs_stream stream, str text, struct err *err)
{
	struct got *g = arg;

	buf_add(stream == LOGS_STDOUT ? &g->out : &g->err, text);
	if (g->fail_after && --g->fail_after == 0)
		return err_set(err, ERR_GONE, "the reader has left");
	return 0;
}

static void got_init(struct got *g)
{
	*g = (struct got){ .fail_after = 0 };
	buf_init(&g->out, 1 << 20);
	buf_init(&g->err, 1 << 20);
}

static void got_done(struct got *g)
{
	buf_done(&g->out);
	buf_done(&g->err);
}

struct place {
	char folder[32], path[64];
};

static void place_init(struct place *p)
{
	snprintf(p->folder, sizeof(p->folder), "/tmp/c8s-logs-XXXXXX");
	CHECK(mkdtemp(p->folder));
	snprintf(p->path, sizeof(p->path), "%s/0.log", p->folder);
}

static void place_done(struct place *p)
{
	char old[sizeof(p->path) + 4];

	snprintf(old, sizeof(old), "%s.1", p->path);
	unlink(old);
	unlink(p->path);
	rmdir(p->folder);
}

static void append(const char *path, str text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n);
	close(fd);
}

#define T1 "2026-01-01T00:00:01.000000001Z "
#define T2 "2026-01-01T00:00:02Z "
#define T3 "2026-01-01T00:00:03Z "
#define LOG T1 "stdout F one\n" T2 "stderr F bad\n" T2 "stdout P tw\n" T2 "stdout P o\n" T2 "stdout F \n" T3 "stdout F three\n"

static const struct row {
	const char *content;
	struct logs_options o;
	int r;
	const char *out, *err;
} rows[] = {
#define ALL { .tail = -1, .limit = -1, .since_ns = INT64_MIN }
	{ LOG, ALL, 0, "one\ntwo\nthree\n", "bad\n" },
	{ "", ALL, 0, "", "" },
	{ LOG, { 1, -1, INT64_MIN, false, false, false, false }, 0, "three\n", "" },
	{ LOG, { 0, -1, INT64_MIN, false, false, false, false }, 0, "", "" },
	{ LOG, { 2, -1, INT64_MIN, false, false, false, false }, 0, "\nthree\n", "" },
	{ LOG, { 5, -1, INT64_MIN, false, false, false, false }, 0, "two\nthree\n", "bad\n" },
	{ LOG, { 100, -1, INT64_MIN, false, false, false, false }, 0, "one\ntwo\nthree\n", "bad\n" },
	{ LOG, { -1, 5, INT64_MIN, false, false, false, false }, 0, "one\n", "b" },
	{ LOG, { -1, 0, INT64_MIN, false, false, false, false }, 0, "", "" },
	{ LOG, { -1, -1, 1767225602000000000, false, false, false, false }, 0, "two\nthree\n", "bad\n" },
	{ LOG, { -1, -1, 1767225602000000001, false, false, false, false }, 0, "three\n", "" },
	{ LOG, { -1, -1, INT64_MIN, false, false, true, false }, 0, "", "bad\n" },
	{ LOG, { -1, -1, INT64_MIN, false, false, false, true }, 0, "one\ntwo\nthree\n", "" },
	{ LOG, { -1, 5, INT64_MIN, false, false, true, false }, 0, "", "bad\n" },
	{ LOG, { -1, -1, INT64_MIN, false, true, false, false }, 0,
	  T1 "one\n" "2026-01-01T00:00:02.000000000Z two\n" "2026-01-01T00:00:03.000000000Z three\n", "2026-01-01T00:00:02.000000000Z bad\n" },
	{ T1 "stdout F one\nnonsense\n" T3 "stdout F three\n", ALL, 0, "one\nthree\n", "" },
	{ "nonsense\n" T3 "stdout F three\n", ALL, -ERR_INVALID, "", "" },
	{ T1 "stdout F one\n" T2 "stdout F without end", ALL, 0, "one\nwithout end", "" },
	{ T1 "stdout P one", ALL, 0, "one", "" },
	{ T1 "stdout F \n\n", ALL, 0, "\n", "" },
};

FIBER_TEST(logs_read)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(got_done) struct got g;
		CLEANUP(place_done) struct place p;
		struct err err = ERR_INIT;

		got_init(&g);
		place_init(&p);
		append(p.path, str_of(rows[i].content));
		int r = logs_read(p.path, &rows[i].o, &(struct logs_reader){ .write = got_write, .arg = &g }, &err);
		CHECK_ROW(i, r == rows[i].r);
		CHECK_STR_ROW(i, buf_str(&g.out), rows[i].out);
		CHECK_STR_ROW(i, buf_str(&g.err), rows[i].err);
	}
}

/* Lines of all sizes around that of a block come out as they were, from any point. */
FIBER_TEST(logs_read_long)
{
	CLEANUP(place_done) struct place p;
	CLEANUP(buf_done) struct buf file = BUF_INIT(8 << 20), want = BUF_INIT(8 << 20);
	CLEANUP(got_done) struct got g;
	struct logs_options o = LOGS_OPTIONS_INIT;
	struct err err = ERR_INIT;

	got_init(&g);
	place_init(&p);
	for (size_t n = 1; n < 200000; n = n * 3 + 7) {
		buf_add(&file, STR(T1 "stdout F "));
		for (size_t i = 0; i < n; i++) {
			buf_addc(&file, (char)('a' + i % 26));
			buf_addc(&want, (char)('a' + i % 26));
		}
		buf_addc(&file, '\n');
		buf_addc(&want, '\n');
	}
	append(p.path, buf_str(&file));
	CHECK_INT(logs_read(p.path, &o, &(struct logs_reader){ .write = got_write, .arg = &g }, &err), 0);
	CHECK(str_eq(buf_str(&g.out), buf_str(&want)));
	buf_reset(&g.out);
	o.tail = 1;
	CHECK_INT(logs_read(p.path, &o, &(struct logs_reader){ .write = got_write, .arg = &g }, &err), 0);
	CHECK(g.out.n > 10000 && str_ends(buf_str(&want), buf_str(&g.out)));
	buf_reset(&g.out);
	g.fail_after = 1;
	CHECK_INT(logs_read(p.path, &o, &(struct logs_reader){ .write = got_write, .arg = &g }, &err), -ERR_GONE);
	CHECK_INT(logs_read("/tmp/c8s-no-such-log", &o, &(struct logs_reader){ .write = got_write, .arg = &g }, &err), -ERR_NOT_FOUND);
}

/* What happens to the file while it is followed, one step each time that the reader has come to its end. */
static bool step(void *arg)
{
	struct got *g = arg;
	char old[80];

	snprintf(old, sizeof(old), "%s.1", g->path);
	switch (g->asked++) {
	case 0:
		append(g->path, STR(T1 "stdout F two\n" T1 "stdout F thr"));
		return true;
	case 1:
		append(g->path, STR("ee\n"));
		return true;
	case 2:
		CHECK_INT(rename(g->path, old), 0);
		append(old, STR(T2 "stdout F four\n"));
		append(g->path, STR(T2 "stdout F five\n"));
		return true;
	case 3:
		CHECK_INT(truncate(g->path, 0), 0);
		append(g->path, STR(T3 "stdout F 6\n"));
		return true;
	default:
		append(g->path, STR(T3 "stderr F last\n"));
		return false;
	}
}

FIBER_TEST(logs_follow)
{
	CLEANUP(place_done) struct place p;
	CLEANUP(got_done) struct got g;
	struct logs_options o = LOGS_OPTIONS_INIT;
	struct err err = ERR_INIT;

	got_init(&g);
	place_init(&p);
	g.path = p.path;
	append(p.path, STR(T1 "stdout F zero\n" T1 "stdout F one\n"));
	o.follow = true;
	o.tail = 1;
	CHECK_INT(logs_read(p.path, &o, &(struct logs_reader){ .write = got_write, .running = step, .arg = &g }, &err), 0);
	CHECK_STR(buf_str(&g.out), "one\ntwo\nthree\nfour\nfive\n6\n");
	CHECK_STR(buf_str(&g.err), "last\n");
}

static void rotate(const char *path, const char *suffix, str content)
{
	char old[96];

	snprintf(old, sizeof(old), "%s%s", path, suffix);
	CHECK_INT(rename(path, old), 0);
	append(path, content);
}

/* The log is rotated faster than it is read. */
static bool step_often(void *arg)
{
	struct got *g = arg;

	switch (g->asked++) {
	case 0:
		append(g->path, STR(T1 "stdout P o"));
		append(g->path, STR("n\n"));
		rotate(g->path, ".20260101-000001", STR(T2 "stdout F e\n"));
		rotate(g->path, ".20260101-000002", STR(T2 "stdout F two\n"));
		rotate(g->path, ".20260101-000003", STR(T3 "stdout F three\n"));
		return true;
	case 1:
		rotate(g->path, ".20260101-000004", STR(T3 "stdout F four\n"));
		return true;
	default:
		rotate(g->path, ".20260101-000005", STR(T3 "stdout F five\n"));
		rotate(g->path, ".20260101-000006", STR(T3 "stdout F six\n"));
		return false;
	}
}

FIBER_TEST(logs_follow_rotations)
{
	CLEANUP(place_done) struct place p;
	CLEANUP(got_done) struct got g;
	struct logs_options o = LOGS_OPTIONS_INIT;
	struct err err = ERR_INIT;

	got_init(&g);
	place_init(&p);
	g.path = p.path;
	append(p.path, STR(T1 "stdout F older\n"));
	rotate(p.path, ".20260101-000000", STR(T1 "stdout F zero\n"));
	o.follow = true;
	CHECK_INT(logs_read(p.path, &o, &(struct logs_reader){ .write = got_write, .running = step_often, .arg = &g }, &err), 0);
	CHECK_STR(buf_str(&g.out), "zero\none\ntwo\nthree\nfour\nfive\nsix\n");
	for (int i = 0; i <= 6; i++) {
		char old[96];
		snprintf(old, sizeof(old), "%s.20260101-%06d", p.path, i);
		CHECK_INT(unlink(old), 0);
	}
}

TEST(logs_previous)
{
	static const struct {
		const char *path, *want;
	} t[] = {
		{ "/var/log/pods/ns_p_uid/c/3.log", "/var/log/pods/ns_p_uid/c/2.log" },
		{ "10.log", "9.log" },
		{ "/c/0.log", NULL },
		{ "/c/x.log", NULL },
		{ "/c/1.txt", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		str got;
		int r = logs_previous(&a, str_of(t[i].path), &got, NULL);
		CHECK_ROW(i, r == (t[i].want ? 0 : -ERR_NOT_FOUND));
		if (t[i].want)
			CHECK_STR_ROW(i, got, t[i].want);
	}
}
