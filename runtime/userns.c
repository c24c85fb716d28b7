/*
 * User namespaces. A process is needed to make one: a copy of ours that does nothing but wait for the end of a pipe, so that it
 * goes with us whatever happens. It calls the kernel only, since other threads may have held any lock, and closes all that is ours: two
 * that had each other's pipe would wait for each other for ever.
 */
#include "runtime/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "runtime/image_priv.h"
#include "runtime/runtime_priv.h"

enum { MAPPINGS_MAX = 340, MAP_TEXT_MAX = 32 << 10 };

/* ---- what is asked for ---- */

bool userns_wanted(struct val options)
{
	return val_has(options, usernsOptions) && !runtime_is(val_get(options, usernsOptions, mode), "NODE");
}

static int check_mappings(struct val mappings, const char *what, struct err *err)
{
	if (val_len(mappings) > MAPPINGS_MAX)
		return err_set(err, ERR_INVALID, "user namespace configuration: more than %d %s mappings", MAPPINGS_MAX, what);
	VAL_EACH(m, mappings) {
		int64_t inside = val_int(*m, containerId), outside = val_int(*m, hostId), n = val_int(*m, length);
		if (n <= 0 || inside + n > UINT32_MAX || outside + n > UINT32_MAX)
			return err_set(err, ERR_INVALID, "user namespace configuration: a %s mapping is not within 0 to 4294967294", what);
	}
	return 0;
}

int userns_check(struct val options, struct err *err)
{
	struct val userns = val_get(options, usernsOptions), mode = val_get(userns, mode);
	size_t uids = val_len(val_get(userns, uids)), gids = val_len(val_get(userns, gids));
	int r;

	if (val_is_nil(userns))
		return 0;
	if (runtime_is(mode, "NODE"))
		return !uids && !gids ? 0 :
			err_set(err, ERR_INVALID, "user namespace configuration: can't use user namespace mode \"NODE\" with mappings. "
				"Got %zu UID mappings and %zu GID mappings", uids, gids);
	if (runtime_is(mode, "CONTAINER") || runtime_is(mode, "TARGET"))
		return err_set(err, ERR_INVALID, "user namespace configuration: unsupported user namespace mode: \"" STR_FMT "\"",
			       STR_ARG(val_as_str(mode)));
	if (!uids || !gids)
		return err_set(err, ERR_INVALID,
			       "user namespace configuration: can't use user namespace mode \"POD\" without UID and GID mappings");
	if ((r = check_mappings(val_get(userns, uids), "UID", err)) < 0)
		return r;
	return check_mappings(val_get(userns, gids), "GID", err);
}

struct val userns_oci(struct arena *a, struct val mappings)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(m, mappings)
		val_add_item(&b, OBJECT(a, F(containerID, val_of_int(val_int(*m, containerId))), F(hostID, val_of_int(val_int(*m, hostId))),
					F(size, val_of_int(val_int(*m, length)))));
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

/* ---- the process ---- */

struct keeper {
	pid_t pid;
	int pipe;                        /* its end is that of the process */
};

static void wait_for_end(int own) __attribute__((noreturn));
static void wait_for_end(int own)
{
	char c;

	if (own > 0)
		(void)syscall(SYS_close_range, 0, own - 1, 0);
	(void)syscall(SYS_close_range, own + 1, ~0u, 0);
	(void)syscall(SYS_read, own, &c, sizeof c);
	for (;;)
		(void)syscall(SYS_exit_group, 0);
}

static int keeper_start(struct keeper *k, uint64_t flags, struct err *err)
{
	struct clone_args args = { .flags = flags | CLONE_CLEAR_SIGHAND };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "make a pipe");
	k->pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (k->pid == 0)
		wait_for_end(ends[0]);
	int sys = errno;
	(void)close(ends[0]);
	k->pipe = ends[1];
	if (k->pid > 0)
		return 0;
	(void)close(ends[1]);
	return err_sys(err, sys, "make a user namespace");
}

static void keeper_end(struct keeper *k)
{
	(void)close(k->pipe);
	while (waitpid(k->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

static int write_map(const struct keeper *k, const char *file, struct val mappings, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MAP_TEXT_MAX);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *path = runtime_text(&a, "/proc/%d/%s", (int)k->pid, file);

	VAL_EACH(m, mappings)
		buf_addf(&text, "%lld %lld %lld\n", (long long)val_int(*m, containerId), (long long)val_int(*m, hostId),
			 (long long)val_int(*m, length));
	int r = buf_check(&text, file, err);
	if (r < 0)
		return r;
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text.p, text.n) != (ssize_t)text.n)
		return err_sys(err, errno, "%s of a user namespace", file);
	return 0;
}

static int keeper_map(const struct keeper *k, struct val userns, struct err *err)
{
	int r = write_map(k, "uid_map", val_get(userns, uids), err);

	return r < 0 ? r : write_map(k, "gid_map", val_get(userns, gids), err);
}

/* ---- making and removing ---- */

static int pin(const struct keeper *k, const char *kind, const char *path, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(fd_closep) int fd = open(path, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);

	if (fd < 0)
		return err_sys(err, errno, "make %s", path);
	if (mount(runtime_text(&a, "/proc/%d/ns/%s", (int)k->pid, kind), path, NULL, MS_BIND, NULL) < 0)
		return err_sys(err, errno, "mount a namespace at %s", path);
	return 0;
}

struct making {
	const char *user, *net;
	struct val userns;
};

static int make_blocking(void *arg, struct err *err)
{
	struct making *m = arg;
	struct keeper k;
	int r = keeper_start(&k, CLONE_NEWUSER | CLONE_NEWNET, err);

	if (r < 0)
		return r;
	if ((r = keeper_map(&k, m->userns, err)) == 0 && (r = pin(&k, "user", m->user, err)) == 0)
		r = pin(&k, "net", m->net, err);
	keeper_end(&k);
	return r;
}

int userns_make(const char *user, const char *net, struct val options, struct err *err)
{
	struct making m = { user, net, val_get(options, usernsOptions) };

	return fiber_blocking(make_blocking, &m, err);
}

int userns_remove(const char *user, struct err *err)
{
	if (umount2(user, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return err_sys(err, errno, "unmount %s", user);
	if (unlink(user) < 0 && errno != ENOENT)
		return err_sys(err, errno, "remove %s", user);
	return 0;
}

/* ---- what works here ---- */

int userns_copy(const char *path, int user, struct err *err)
{
	/* Device files of an image would belong to the namespace's root; those of its own /dev are of other mounts. */
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NODEV, .userns_fd = (uint64_t)user };
	int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

	if (tree < 0)
		return err_sys(err, errno, "open_tree %s", path);
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0)
		return tree;
	int sys = errno;
	(void)close(tree);
	if (sys == EINVAL)
		return err_set(err, ERR_INVALID, "the file system of %s does not support id-mapped mounts", path);
	return err_sys(err, sys, "id-map the mount of %s", path);
}

void userns_layers_done(struct userns_layers *l)
{
	for (size_t i = 0; i < l->n; i++)
		(void)close(l->fd[i]);
	l->n = 0;
}

int userns_add_layer(struct userns_layers *l, int config, const char *path, int user, struct err *err)
{
	if (l->n == USERNS_LAYERS_MAX)
		return err_set(err, ERR_TOO_LARGE, "more than %d layers", USERNS_LAYERS_MAX);
	int tree = userns_copy(path, user, err);
	if (tree < 0)
		return tree;
	l->fd[l->n++] = tree;
	return fsconfig(config, FSCONFIG_SET_FD, "lowerdir+", NULL, tree) < 0 ? err_sys(err, errno, "overlayfs: %s", path) : 0;
}

static int try_overlay(const char *folder, int user, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(userns_layers_done) struct userns_layers layers = { .n = 0 };
	CLEANUP(fd_closep) int config = fsopen("overlay", FSOPEN_CLOEXEC);
	int r;

	if (config < 0)
		return err_sys(err, errno, "overlayfs");
	/* without a layer to write to there must be two */
	if ((r = userns_add_layer(&layers, config, runtime_text(&a, "%s/layers", folder), user, err)) < 0 ||
	    (r = userns_add_layer(&layers, config, runtime_text(&a, "%s/mounts", folder), user, err)) < 0)
		return r;
	if (fsconfig(config, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(err, errno, "overlayfs over id-mapped layers");
	return 0;
}

static int probe_blocking(void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val range = OBJECT(&a, F(containerId, val_of_int(0)), F(hostId, val_of_int(1)), F(length, val_of_int(1)));
	struct val list = LIST(&a, range), userns = OBJECT(&a, F(uids, list), F(gids, list));
	struct keeper k;
	int r = keeper_start(&k, CLONE_NEWUSER, err);

	if (r < 0)
		return r;
	if ((r = keeper_map(&k, userns, err)) == 0) {
		CLEANUP(fd_closep) int user = open(runtime_text(&a, "/proc/%d/ns/user", (int)k.pid), O_RDONLY | O_CLOEXEC);
		r = user < 0 ? err_sys(err, errno, "open a user namespace") : try_overlay(arg, user, err);
	}
	keeper_end(&k);
	return r;
}

int userns_probe(const char *snapshots, struct err *err)
{
	return fiber_blocking(probe_blocking, (void *)(uintptr_t)snapshots, err);
}

int userns_check_source(const char *path, const char *user, struct err *err)
{
	CLEANUP(fd_closep) int fd = open(user, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "open %s", user);
	CLEANUP(fd_closep) int tree = userns_copy(path, fd, err);
	return tree < 0 ? tree : 0;
}
