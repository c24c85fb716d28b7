#include <pthread.h>
#include <stdatomic.h>

#include "kubelet/volume_testing.h"

TEST(volume_sub_path_text)
{
	static const struct { const char *mount, *want; int r; } t[] = {
		{ "{}", "", 0 },
		{ "{\"subPath\":\"a/b\"}", "a/b", 0 },
		{ "{\"subPath\":\"..a/b..\"}", "..a/b..", 0 },
		{ "{\"subPathExpr\":\"x-$(N)/$(M)\"}", "x-pod/y", 0 },
		{ "{\"subPathExpr\":\"$$(N)-$(\"}", "$(N)-$(", 0 },
		{ "{\"subPath\":\"/abs\"}", "error SubPath `/abs` must not be an absolute path", -ERR_INVALID },
		{ "{\"subPathExpr\":\"$(ABS)\"}", "error SubPath `/abs` must not be an absolute path", -ERR_INVALID },
		{ "{\"subPath\":\"..\"}", "unable to provision SubPath `..`: must not contain '..'", -ERR_INVALID },
		{ "{\"subPathExpr\":\"a/$(UP)/b\"}", "unable to provision SubPath `a/../b`: must not contain '..'", -ERR_INVALID },
		{ "{\"subPathExpr\":\"$(NOPE)\"}", "missing value for NOPE", -ERR_INVALID },
		{ "{\"subPathExpr\":\"$(Z)$(EMPTY)$(A)$(Z)$(N)\"}", "missing value for A, EMPTY, Z", -ERR_INVALID },
	};
	struct arena a = ARENA_INIT;
	struct val env = tree(&a, "[{\"key\":\"N\",\"value\":\"pod\"},{\"key\":\"M\",\"value\":\"y\"},{\"key\":\"ABS\",\"value\":\"/abs\"},"
				  "{\"key\":\"UP\",\"value\":\"..\"},{\"key\":\"EMPTY\",\"value\":\"\"}]");

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		str got = STR_NONE;
		CHECK_ROW(i, volume_sub_path_text(&a, tree(&a, t[i].mount), env, &got, &err) == t[i].r);
		CHECK_STR_ROW(i, t[i].r < 0 ? err_str(&err) : got, t[i].want);
	}
	arena_done(&a);
}

struct scene {
	struct place place;
	struct volume volume;
	const char *pod;
};

static void scene_init(struct scene *s)
{
	place_init(&s->place);
	CHECK_INT(mkdir(in(&s->place, "pod"), 0750), 0);
	CHECK_INT(mkdir(in(&s->place, "v"), 0755), 0);
	CHECK_INT(chmod(in(&s->place, "v"), 02777), 0);
	put(&s->place, "secret", "secret", 0600);
	s->pod = in(&s->place, "pod");
	s->volume = (struct volume){ .kind = &volume_kind_empty_dir, .name = STR("v"), .inner = STR("v"), .path = in(&s->place, "v") };
}

static int resolve(struct scene *s, size_t index, const char *sub_path, const char **ret, struct err *err)
{
	return volume_sub_path(&s->place.arena, s->pod, &s->volume, STR("c"), index, str_of(sub_path), ret, err);
}

static bool same_file(const char *x, const char *y)
{
	struct stat a, b;

	return stat(x, &a) == 0 && stat(y, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

MOUNT_TEST(volume_sub_path_mounts_what_is_there)
{
	/* A path, and what is mounted for it, both in the volume. */
	static const struct { const char *path, *is; } t[] = {
		{ "d", "d" }, { "d/./f", "d/f" }, { "f", "f" }, { "to-d", "d" }, { "to-d/f", "d/f" }, { "d/up", "f" }, { "absolute/f", "d/f" },
		{ "chain", "d" }, { "pipe", "pipe" },
	};
	const char *target = NULL;
	struct scene s;

	scene_init(&s);
	struct place *p = &s.place;
	CHECK_INT(mkdir(in(p, "v/d"), 0755), 0);
	put(p, "v/d/f", "deep", 0644);
	put(p, "v/f", "flat", 0644);
	CHECK_INT(mkfifo(in(p, "v/pipe"), 0600), 0);
	CHECK_INT(symlink("d", in(p, "v/to-d")), 0);
	CHECK_INT(symlink("../f", in(p, "v/d/up")), 0);
	CHECK_INT(symlink(in(p, "v/d"), in(p, "v/absolute")), 0);
	CHECK_INT(symlink("./to-d/../absolute/.", in(p, "v/chain")), 0);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		if (resolve(&s, i, t[i].path, &target, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		CHECK_STR_ROW(i, str_of(target), arena_printf(&p->arena, "%s/volume-subpaths/v/c/%zu", s.pod, i).p);
		CHECK_ROW(i, volume_is_mounted(target) && same_file(target, in(p, arena_printf(&p->arena, "v/%s", t[i].is).p)));
		/* Once more changes nothing. */
		CHECK_ROW(i, resolve(&s, i, t[i].path, &target, NULL) == 0);
		CHECK_ROW(i, volume_unmount(target, NULL) == 0 && !volume_is_mounted(target));
	}
	place_done(p);
}

/* All links of the machine stay in a volume that is the whole machine. */
MOUNT_TEST(volume_sub_path_of_the_root)
{
	const char *target = NULL;
	struct err err = ERR_INIT;
	struct scene s;

	scene_init(&s);
	put(&s.place, "v/f", "flat", 0644);
	CHECK_INT(symlink(in(&s.place, "v"), in(&s.place, "to-v")), 0);
	s.volume.path = "/";
	if (resolve(&s, 0, in(&s.place, "to-v/f") + 1, &target, &err) < 0)
		fail_msg("%s", err.msg);
	CHECK_STR(get(&s.place, target), "flat");
	CHECK_INT(volume_unmount(target, NULL), 0);
	place_done(&s.place);
}

MOUNT_TEST(volume_sub_path_makes_folders)
{
	const char *target = NULL;
	struct scene s;

	scene_init(&s);
	mode_t old = umask(0077);
	CHECK_INT(resolve(&s, 0, "new/deep", &target, NULL), 0);
	umask(old);
	CHECK_INT(mode_of(in(&s.place, "v/new")), 02777);
	CHECK_INT(mode_of(in(&s.place, "v/new/deep")), 02777);
	put(&s.place, "v/new/deep/f", "x", 0600);
	CHECK_STR(get(&s.place, arena_printf(&s.place.arena, "%s/f", target).p), "x");
	/* What was mounted is replaced when the path leads elsewhere, as with the files of a ConfigMap; also a folder by a file. */
	put(&s.place, "v/file", "file", 0600);
	CHECK_INT(rename(in(&s.place, "v/new"), in(&s.place, "v/old")), 0);
	CHECK_INT(symlink("file", in(&s.place, "v/new")), 0);
	CHECK_INT(resolve(&s, 0, "new", &target, NULL), 0);
	CHECK_STR(get(&s.place, target), "file");
	place_done(&s.place);
}

MOUNT_TEST(volume_sub_path_stays_in_the_volume)
{
	static const struct { const char *link, *path, *text; } t[] = {
		{ "../secret", "link", "failed to prepare subPath for volumeMount \"v\" of container \"c\"" },
		{ "/etc", "link/passwd", "failed to prepare subPath for volumeMount \"v\" of container \"c\"" },
		{ "/proc/self/root/etc", "link", "failed to prepare subPath for volumeMount \"v\" of container \"c\"" },
		{ "d/../../secret", "link", "failed to prepare subPath for volumeMount \"v\" of container \"c\"" },
		{ "link", "link", "failed to prepare subPath for volumeMount \"v\" of container \"c\"" },
		{ "f", "link/below", "failed to prepare subPath for volumeMount \"v\" of container \"c\"" },
	};
	const char *target = NULL;
	struct scene s;

	scene_init(&s);
	CHECK_INT(mkdir(in(&s.place, "v/d"), 0755), 0);
	put(&s.place, "v/f", "", 0600);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		CHECK_INT(symlink(t[i].link, in(&s.place, "v/link")), 0);
		CHECK_ROW(i, resolve(&s, i, t[i].path, &target, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].text);
		CHECK_ROW(i, !volume_is_mounted(target));
		CHECK_INT(unlink(in(&s.place, "v/link")), 0);
	}
	/* A volume that is only a file has nothing below it. */
	s.volume.path = in(&s.place, "secret");
	CHECK(resolve(&s, 9, "x", &target, NULL) < 0);
	place_done(&s.place);
}

struct swapper {
	const char *name, *other;
	atomic_bool stop;
};

/* A container that exchanges a folder and a link to the outside all the time. */
static void *swap(void *arg)
{
	struct swapper *s = arg;

	while (!s->stop)
		(void)!renameat2(AT_FDCWD, s->name, AT_FDCWD, s->other, RENAME_EXCHANGE);
	return NULL;
}

MOUNT_TEST(volume_sub_path_against_a_race)
{
	enum { ENOUGH = 50, TRIES_MAX = 100000 };
	struct scene s;
	pthread_t thread;
	int good = 0, bad = 0;

	scene_init(&s);
	struct place *p = &s.place;
	CHECK_INT(mkdir(in(p, "v/name"), 0755), 0);
	put(p, "v/name/secret", "own", 0600);
	CHECK_INT(symlink(p->path, in(p, "v/link")), 0);
	struct swapper w = { in(p, "v/name"), in(p, "v/link"), false };
	CHECK_INT(pthread_create(&thread, NULL, swap, &w), 0);
	for (int i = 0; i < TRIES_MAX && (good < ENOUGH || bad < ENOUGH); i++) {
		const char *target = NULL;
		if (resolve(&s, 0, "name/secret", &target, NULL) < 0) {
			bad++;
			continue;
		}
		CHECK_STR(get(p, target), "own");
		CHECK_INT(volume_unmount(target, NULL), 0);
		good++;
	}
	w.stop = true;
	pthread_join(thread, NULL);
	CHECK(good >= ENOUGH && bad >= ENOUGH);
	place_done(p);
}
