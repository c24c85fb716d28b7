/*
 * What the tests of volumes share: a folder of their own, trees from text, and for those that mount, a process with a mount namespace of
 * its own: the program calls itself for this one test, so that threads which exist already do not matter, and what is mounted goes
 * with the process.
 */
#ifndef C8S_KUBELET_VOLUME_TESTING_H
#define C8S_KUBELET_VOLUME_TESTING_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fiber_test.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/json.h"
#include "kubelet/volume_priv.h"

#define VOLUME_TEST_ENV "C8S_VOLUME_TEST"

struct place {
	char path[64];
	struct arena arena;
};

static __attribute__((unused)) void place_init(struct place *p)
{
	const char *given = getenv(VOLUME_TEST_ENV);

	*p = (struct place){ .path = "/tmp/c8s-volume-XXXXXX" };
	arena_init(&p->arena);
	if (given)
		snprintf(p->path, sizeof p->path, "%s", given);
	else
		CHECK(mkdtemp(p->path) != NULL);
}

static __attribute__((unused)) void place_remove(const char *path)
{
	int tree = path_open_tree("/tmp", NULL);
	struct err err = ERR_INIT;

	if (path_remove(tree, path + strlen("/tmp/"), &err) < 0)
		fail_msg("%s", err.msg);
	close(tree);
}

/* Of a namespace's process, the folder is removed by the one that has started it, when nothing is mounted any more. */
static __attribute__((unused)) void place_done(struct place *p)
{
	if (!getenv(VOLUME_TEST_ENV))
		place_remove(p->path);
	arena_done(&p->arena);
}

static __attribute__((unused)) const char *in(struct place *p, const char *name)
{
	return arena_printf(&p->arena, "%s/%s", p->path, name).p;
}

static __attribute__((unused)) const char *put(struct place *p, const char *name, const char *text, mode_t mode)
{
	CHECK_INT(file_write(in(p, name), str_of(text), mode, NULL), 0);
	return in(p, name);
}

static __attribute__((unused)) str get(struct place *p, const char *path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	return file_read(path, &b, NULL) < 0 ? STR("(none)") : arena_str(&p->arena, buf_str(&b));
}

static __attribute__((unused)) unsigned mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? 0 : st.st_mode & 07777;
}

static __attribute__((unused)) int group_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? -1 : (int)st.st_gid;
}

static __attribute__((unused)) struct val tree(struct arena *a, const char *json)
{
	struct err err = ERR_INIT;
	struct val v;

	if (json_decode(a, arena_str(a, str_of(json)), &(struct json_decode_options){ .sort_keys = true }, &v, &err) < 0)
		fail_msg("%s: %s", json, err.msg);
	return v;
}

static __attribute__((unused)) int run_in_this_namespace(int (*fn)(void *arg))
{
	log_set_level(LOG_LEVEL_OFF);
	return run_loop(fn, NULL);
}

static __attribute__((unused)) void run_in_namespace(const char *name)
{
	struct place p;
	int status = -1;

	place_init(&p);
	pid_t child = fork();
	if (child == 0) {
		char *argv[] = { "volume-test", (char *)(uintptr_t)name, NULL };
		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		setenv(VOLUME_TEST_ENV, p.path, 1);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execv("/proc/self/exe", argv);
		_exit(78);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	place_done(&p);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	CHECK_INT(status, 0);
}

/* A test on a fiber that may mount; where that is not allowed it is skipped. No other test's name may contain its name. */
#define MOUNT_TEST(test_name)                                                     \
	static void mount_body_##test_name(void);                                 \
	static int mount_main_##test_name(void *arg)                              \
	{                                                                         \
		(void)arg;                                                        \
		mount_body_##test_name();                                         \
		return 0;                                                         \
	}                                                                         \
	TEST(test_name)                                                           \
	{                                                                         \
		if (geteuid() != 0)                                               \
			skip();                                                   \
		if (!getenv(VOLUME_TEST_ENV))                                     \
			run_in_namespace(#test_name);                             \
		else                                                              \
			CHECK_INT(run_in_this_namespace(mount_main_##test_name), 0); \
	}                                                                         \
	static void mount_body_##test_name(void)

#endif
