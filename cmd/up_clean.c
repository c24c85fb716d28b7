/*
 * What a cluster leaves when it has stopped: pods run on without their kubelet. The runtime is started once more, without one, to remove them
 * with their networks; after that only files, empty control groups and the bridge are left.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/path.h"
#include "base/process.h"
#include "cmd/up.h"
#include "cni/cni.h"

enum { RUNTIME_MS = 10 * 1000, REMOVE_MS = 120 * 1000, WALK_FDS = 32, OUTPUT_MAX = 1 << 20, MOUNTS_MAX = 4096 };

/* ---- pods ---- */

/* (suspends) A runtime of ours over the node's files, once it serves. */
static int start_runtime(const struct up_cluster *c, const char *state, struct process **ret, struct err *err)
{
	struct arena *a = c->arena;
	const char *argv[] = { c->program, "runtime", arena_printf(a, "--root=%s/runtime", c->node_dir).p, arena_printf(a, "--state=%s", state).p,
			       arena_printf(a, "--cni-conf-dir=%s/net.d", c->node_dir).p, NULL };
	int out[2], r;
	char word[64];

	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(err, errno, "pipe");
	r = process_spawn(&(struct process_spec){ .argv = argv, .fds = { -1, out[1], -1 }, .n_fds = 3 }, ret, err);
	(void)close(out[1]);
	if (r == 0) {
		DEADLINE_SCOPE(RUNTIME_MS);
		ssize_t n = fiber_read(out[0], word, sizeof(word), err);
		r = n > 0 ? 0 : n < 0 ? (int)n : err_set(err, ERR_UNAVAILABLE, "the container runtime did not start");
	}
	(void)close(out[0]);
	return r;
}

static int remove_by(const struct up_cluster *c, const char *endpoint, struct err *err)
{
	const char *argv[] = { c->program, "crictl", "-r", endpoint, "rmp", "-f", "-a", NULL };
	CLEANUP(process_output_done) struct process_output output = { .out = BUF_INIT(OUTPUT_MAX), .err = BUF_INIT(OUTPUT_MAX) };
	DEADLINE_SCOPE(REMOVE_MS);
	int r = process_run(&(struct process_spec){ .argv = argv }, STR_NONE, OUTPUT_MAX, &output, err);

	if (r == 0 && output.status.exit_code)
		return err_set(err, ERR_SYSTEM, "pods could not be removed: " STR_FMT, STR_ARG(buf_str(&output.err)));
	return r;
}

int up_remove_pods(const struct up_cluster *c, struct err *err)
{
	CLEANUP(process_freep) struct process *runtime = NULL;
	const char *state = arena_printf(c->arena, "%s/runtime", c->run_dir).p;
	int r;

	if (c->settings.container_runtime_endpoint)
		return remove_by(c, c->settings.container_runtime_endpoint, err);
	if (access(arena_printf(c->arena, "%s/runtime", c->node_dir).p, F_OK) < 0)
		return 0;
	if ((r = start_runtime(c, state, &runtime, err)) < 0)
		return r;
	return remove_by(c, arena_printf(c->arena, "unix://%s/cri.sock", state).p, err);
}

/* ---- everything ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

/* What is in it was made by containers and by the control plane's user: links, however deep, and mounts lead nowhere else. */
static int remove_from(const char *folder, const char *name, struct err *err)
{
	CLEANUP(close_fd) int top = path_open_tree(folder, err);
	int r = top < 0 ? top : path_remove(top, name, err);

	if (r == -ERR_NOT_FOUND && (top < 0 || faccessat(top, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)) {
		err_clear(err);
		return 0;
	}
	return r < 0 ? err_wrap(err, r, "removing %s/%s", folder, name) : 0;
}

/* Only what is ours: a data directory may have been somebody's before. The settings go last, so that what has failed can be tried again. */
static int remove_data(const char *folder, struct err *err)
{
	static const char *const names[] = { "node", "control-plane", "log", "lock", "up.yaml" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++)
		r = remove_from(folder, names[i], err);
	if (r == 0)
		(void)rmdir(folder);
	return r;
}

static int remove_group(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	if (type == FTW_DP)
		(void)rmdir(path);
	return 0;
}

/* One hierarchy, or one per controller. */
static void remove_groups(const struct up_cluster *c)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *m;

	while (mounts && (m = getmntent(mounts)))
		if (str_starts(str_of(m->mnt_type), STR("cgroup")))
			(void)nftw(arena_printf(c->arena, "%s%s", m->mnt_dir, c->cgroup).p, remove_group, WALK_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	if (mounts)
		(void)endmntent(mounts);
}

/* Volumes that a kubelet which was killed has left; the last mounted goes first. */
static void unmount_below(const struct up_cluster *c, const char *folder)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	const char **found = ARENA_ARRAY(c->arena, const char *, MOUNTS_MAX);
	str prefix = arena_printf(c->arena, "%s/", folder);
	struct mntent *m;
	size_t n = 0;

	while (mounts && n < MOUNTS_MAX && (m = getmntent(mounts)))
		if (str_starts(str_of(m->mnt_dir), prefix))
			found[n++] = arena_str(c->arena, str_of(m->mnt_dir)).p;
	if (mounts)
		(void)endmntent(mounts);
	while (n)
		(void)umount2(found[--n], MNT_DETACH | UMOUNT_NOFOLLOW);
}

static int remove_network(const struct up_cluster *c, struct err *err)
{
	struct arena *a = c->arena;
	struct cni *cni = cni_new(&(struct cni_options){ .conf_dir = arena_printf(a, "%s/net.d", c->node_dir).p, .bin_dirs = (const char *const[]){ NULL },
							 .cache_dir = arena_printf(a, "%s/runtime/cni", c->node_dir).p });
	int r = cni_remove_default(cni, err);

	cni_free(cni);
	return r;
}

int up_remove(const struct up_cluster *c, struct err *err)
{
	int r = up_remove_pods(c, err);

	if (r == 0)
		r = remove_network(c, err);
	if (r == 0 && !c->settings.server && !(c->settings.kubeconfig && !c->settings.kubeconfig[0])) /* "": it was never merged */
		r = up_unmerge_kubeconfig(c, err);
	if (r < 0)
		return r;
	unmount_below(c, c->node_dir);
	unmount_below(c, c->run_dir);
	remove_groups(c);
	if ((r = remove_from("/run/c8s", c->tag, err)) == 0)
		r = remove_data(c->settings.data_dir, err);
	return r;
}
