/*
 * What a cluster leaves when it has stopped: pods run on without their kubelet. The runtime is started once more, without one, to remove them
 * with their networks; after that only files, empty control groups and the bridge are left.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/path.h"
#include "base/process.h"
#include "cmd/up.h"
#include "cni/cni.h"
#include "oci/cgroup.h"

enum { RUNTIME_MS = 10 * 1000, REMOVE_MS = 30 * 1000, KILL_MS = 5000, LOOK_MS = 10, OUTPUT_MAX = 1 << 20, MOUNTS_MAX = 4096 };

/* ---- processes ---- */

/*
 * (suspends) Ends all processes in the cluster's control groups. Removing a pod does that, too, but not when what the runtime knows of it is
 * damaged: it would wait for the end of a process that it has no way to reach.
 */
static void kill_processes(const struct up_cluster *c)
{
	CLEANUP(cgroup_freep) struct cgroup *group = NULL;
	DEADLINE_SCOPE(KILL_MS);
	pid_t *pids;
	size_t n;

	if (cgroup_open(c->cgroup, &group, NULL) < 0)
		return;
	/* One by one: a group that the kernel has killed as a whole is none that it lets live again later (cgroup.h). */
	while (cgroup_pids(group, c->arena, &pids, &n, NULL) == 0 && n) {
		for (size_t i = 0; i < n; i++)
			(void)kill(pids[i], SIGKILL);
		if (fiber_sleep_ms(LOOK_MS, NULL) < 0)
			return;
	}
}

/* "c8s-pod monitor --state FOLDER/ID ...", as the kernel keeps it. */
static bool is_monitor(str words, str folder)
{
	str program, name, flag;

	(void)str_cut(words, '\0', &program, &words);
	(void)str_cut(words, '\0', &name, &words);
	(void)str_cut(words, '\0', &flag, &words);
	return str_eq(name, STR("monitor")) && str_eq(flag, STR("--state")) && str_starts(words, folder);
}

/* Monitors are in none of the cluster's control groups, and who has lost its folder cannot be told to end. */
static void kill_monitors(const struct up_cluster *c)
{
	str folder = arena_printf(c->arena, "%s/runtime/pods/", c->run_dir);
	DIR *dir = opendir("/proc");
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		CLEANUP(buf_done) struct buf words = BUF_INIT(OUTPUT_MAX);
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid > 1 && file_read(arena_printf(c->arena, "/proc/%d/cmdline", pid).p, &words, NULL) == 0 && is_monitor(buf_str(&words), folder))
			(void)kill(pid, SIGKILL);
	}
	if (dir)
		(void)closedir(dir);
}

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

	kill_processes(c);
	if (c->settings.container_runtime_endpoint)
		return remove_by(c, c->settings.container_runtime_endpoint, err);
	if (access(arena_printf(c->arena, "%s/runtime", c->node_dir).p, F_OK) < 0)
		return 0;
	if ((r = start_runtime(c, state, &runtime, err)) < 0)
		return r;
	return remove_by(c, arena_printf(c->arena, "unix://%s/cri.sock", state).p, err);
}

/* ---- everything ---- */

/* What is in it was made by containers and by the control plane's user: links, however deep, and mounts lead nowhere else. */
static int remove_from(const char *folder, const char *name, struct err *err)
{
	CLEANUP(fd_closep) int top = path_open_tree(folder, err);
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

static void remove_groups(const struct up_cluster *c)
{
	CLEANUP(cgroup_freep) struct cgroup *group = NULL;

	if (cgroup_open(c->cgroup, &group, NULL) == 0)
		(void)cgroup_remove(group, NULL);
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

/* (suspends) Also attachments of pods that the runtime could not remove. */
static int remove_network(const struct up_cluster *c, struct err *err)
{
	static const char *const bin_dirs[] = { "/opt/cni/bin", "/usr/lib/cni", NULL };
	struct arena *a = c->arena;
	const char *slash = strrchr(c->program, '/');
	struct cni *cni = cni_new(&(struct cni_options){ .conf_dir = arena_printf(a, "%s/net.d", c->node_dir).p, .bin_dirs = bin_dirs,
							 .cache_dir = arena_printf(a, "%s/runtime/cni", c->node_dir).p,
							 .own_plugins = arena_printf(a, "%.*s/c8s-pod", (int)(slash - c->program), c->program).p });

	(void)cni_gc(cni, NULL, 0, NULL);
	int r = cni_routes_sync(cni, NULL, NULL, 0, err), rest = cni_remove_default(cni, r < 0 ? NULL : err);
	cni_free(cni);
	return r < 0 ? r : rest;
}

int up_remove(const struct up_cluster *c, struct err *err)
{
	int r = up_remove_pods(c, err);

	/* Somebody may be at work on these pods. What is only damaged goes with the rest. */
	if (r == -ERR_UNAVAILABLE || r == -ERR_CANCELED)
		return r;
	kill_monitors(c);
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
