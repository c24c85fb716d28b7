#include "kubelet/volume_testing.h"

struct row {
	const char *path, *data;
	mode_t mode;
};

static int write_rows(struct place *p, const struct row *rows, size_t n, struct err *err)
{
	struct volume_files f = { .arena = &p->arena };

	for (size_t i = 0; i < n; i++)
		volume_files_add(&f, str_of(rows[i].path), str_of(rows[i].data), rows[i].mode, -1);
	return volume_atomic_write(p->path, &f, NULL, NULL, err);
}

static void write_ok(struct place *p, const struct row *rows, size_t n)
{
	struct err err = ERR_INIT;

	if (write_rows(p, rows, n, &err) < 0)
		fail_msg("%s", err.msg);
}

static str link_of(struct place *p, const char *name)
{
	char text[256];
	ssize_t n = readlink(in(p, name), text, sizeof text);

	return n < 0 ? STR("(none)") : arena_str(&p->arena, str_span(text, (size_t)n));
}

TEST(volume_atomic_shows_files_through_data)
{
	static const struct row rows[] = { { "a", "1", 0644 }, { "x/y", "deep", 0600 }, { "x/./z", "z", 0440 }, { "..a", "", 0 } };
	struct place p;

	place_init(&p);
	write_ok(&p, rows, 3);
	CHECK_STR(get(&p, in(&p, "a")), "1");
	CHECK_STR(get(&p, in(&p, "x/y")), "deep");
	CHECK_STR(link_of(&p, "a"), "..data/a");
	CHECK_STR(link_of(&p, "x"), "..data/x");
	CHECK(str_starts(link_of(&p, "..data"), STR("..20")));
	CHECK_INT(mode_of(in(&p, "..data/a")), 0644);
	CHECK_INT(mode_of(in(&p, "..data/x/y")), 0600);
	CHECK_INT(mode_of(in(&p, "..data/x/z")), 0440);
	CHECK_INT(mode_of(in(&p, "..data/x")), 0755);
	CHECK_INT(mode_of(arena_printf(&p.arena, "%s/%s", p.path, link_of(&p, "..data").p).p), 0755);
	place_done(&p);
}

TEST(volume_atomic_replaces_only_what_changed)
{
	static const struct row first[] = { { "a", "1", 0644 }, { "b", "2", 0644 }, { "c/d", "3", 0644 } };
	static const struct row second[] = { { "a", "1", 0644 }, { "b", "new", 0644 } };
	struct place p;

	place_init(&p);
	write_ok(&p, first, 3);
	str stamp = link_of(&p, "..data");
	write_ok(&p, first, 3);
	CHECK(str_eq(link_of(&p, "..data"), stamp));
	/* A link that somebody has taken away comes back. */
	CHECK_INT(unlink(in(&p, "a")), 0);
	write_ok(&p, first, 3);
	CHECK_STR(get(&p, in(&p, "a")), "1");
	CHECK(str_eq(link_of(&p, "..data"), stamp));

	write_ok(&p, second, 2);
	CHECK(!str_eq(link_of(&p, "..data"), stamp));
	CHECK_STR(get(&p, in(&p, "b")), "new");
	CHECK_STR(link_of(&p, "c"), "(none)");
	CHECK(access(arena_printf(&p.arena, "%s/%s", p.path, stamp.p).p, F_OK) < 0);
	/* The same content, one file less. */
	write_ok(&p, second, 1);
	CHECK_STR(link_of(&p, "b"), "(none)");
	/* Nothing at all, as for an optional object that is missing. */
	write_ok(&p, second, 0);
	CHECK_STR(link_of(&p, "a"), "(none)");
	CHECK(str_starts(link_of(&p, "..data"), STR("..20")));
	place_done(&p);
}

TEST(volume_atomic_takes_the_last_of_a_path)
{
	static const struct row rows[] = { { "k", "first", 0600 }, { "a", "", 0600 }, { "./k", "last", 0640 } };
	struct place p;

	place_init(&p);
	write_ok(&p, rows, 3);
	CHECK_STR(get(&p, in(&p, "k")), "last");
	CHECK_INT(mode_of(in(&p, "..data/k")), 0640);
	place_done(&p);
}

TEST(volume_atomic_cleans_up_after_a_crash)
{
	static const struct row rows[] = { { "a", "1", 0644 }, { "a.b", "", 0644 }, { "d/e", "", 0644 } };
	struct place p;

	place_init(&p);
	CHECK_INT(mkdir(in(&p, "..2020_01_01_00_00_00.1"), 0755), 0);
	put(&p, "..2020_01_01_00_00_00.1/half", "x", 0600);
	CHECK_INT(symlink("..2020_01_01_00_00_00.1", in(&p, "..data_tmp")), 0);
	CHECK_INT(symlink("..data/old", in(&p, "old")), 0);
	CHECK_INT(mkdir(in(&p, "mountpoint"), 0755), 0);
	put(&p, "own", "of the user", 0600);
	write_ok(&p, rows, 3);
	CHECK_STR(get(&p, in(&p, "a")), "1");
	CHECK(access(in(&p, "..2020_01_01_00_00_00.1"), F_OK) < 0);
	CHECK_STR(link_of(&p, "..data_tmp"), "(none)");
	CHECK_STR(link_of(&p, "old"), "(none)");
	CHECK_STR(link_of(&p, "d"), "..data/d");
	CHECK(access(in(&p, "mountpoint"), F_OK) == 0 && access(in(&p, "own"), F_OK) == 0);
	place_done(&p);
}

static int refuse(void *arg, struct err *err)
{
	(void)arg;
	return err_set(err, ERR_SYSTEM, "no");
}

TEST(volume_atomic_keeps_the_old_files_when_it_fails)
{
	static const struct row rows[] = { { "a", "old", 0644 } };
	struct volume_files f = { 0 };
	struct place p;

	place_init(&p);
	write_ok(&p, rows, 1);
	str stamp = link_of(&p, "..data");
	f.arena = &p.arena;
	volume_files_add(&f, STR("a"), STR("new"), 0644, -1);
	CHECK_INT(volume_atomic_write(p.path, &f, refuse, NULL, NULL), -ERR_SYSTEM);
	CHECK_STR(get(&p, in(&p, "a")), "old");
	CHECK(str_eq(link_of(&p, "..data"), stamp));
	/* A file where a folder has to be. */
	static const struct row both[] = { { "a", "", 0644 }, { "a/b", "", 0644 } };
	CHECK(write_rows(&p, both, 2, NULL) < 0);
	CHECK_STR(get(&p, in(&p, "a")), "old");
	place_done(&p);
}

TEST(volume_atomic_refuses_paths)
{
	static const struct { const char *path, *text; } t[] = {
		{ "", "invalid path: must not be empty: \"\"" },
		{ "/etc/passwd", "invalid path: must be relative path: /etc/passwd" },
		{ "a/../../b", "invalid path: must not contain '..': a/../../b" },
		{ "..", "invalid path: must not contain '..': .." },
		{ "..hidden", "invalid path: must not start with '..': ..hidden" },
		{ ".", "invalid path: must not be empty: \".\"" },
	};
	struct place p;

	place_init(&p);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		CHECK_ROW(i, write_rows(&p, &(struct row){ t[i].path, "x", 0644 }, 1, &err) == -ERR_INVALID);
		CHECK_STR_ROW(i, err_str(&err), t[i].text);
	}
	CHECK_STR(link_of(&p, "..data"), "(none)");
	place_done(&p);
}
