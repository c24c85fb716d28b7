/*
 * Roots of containers in a user namespace. snapshot.h says what is on disk: the layers of a root, and the folder that is written to. The
 * overlay is made anew over id-mapped copies of the mounts that its layers are on, since overlayfs itself cannot be mapped; the folder
 * that is written to gets the mapped owner, because it is what the container sees as its "/". A root that is a copy is mapped as a whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "runtime/layer.h"
#include "runtime/runtime_priv.h"
#include "runtime/userns.h"

enum { LAYERS_TEXT_MAX = 1 << 20 };

struct mapping {
	struct arena *arena;
	const char *root, *folder;       /* mounts/<key>/root, and the folder that it is in */
	int user;
	struct val userns;
	str label;                       /* SELinux'; "": none */
};

static uid_t map_id(struct val mappings, uid_t id)
{
	VAL_EACH(m, mappings) {
		int64_t first = val_int(*m, containerId);
		if (id >= first && id - first < val_int(*m, length))
			return (uid_t)(val_int(*m, hostId) + (id - first));
	}
	return id;
}

static int map_owner(const struct mapping *m, const char *path, struct err *err)
{
	struct val uids = val_get(m->userns, uids), gids = val_get(m->userns, gids);
	struct stat st;

	if (lstat(path, &st) < 0 || lchown(path, map_id(uids, st.st_uid), map_id(gids, st.st_gid)) < 0)
		return err_sys(err, errno, "the owner of %s", path);
	return 0;
}

/* Layers from the top one down; below one that hides all others there are none, as overlayfs does not ask its layers' tops. */
static int add_layers(const struct mapping *m, struct userns_layers *l, int config, str text, struct err *err)
{
	bool opaque = false, any = false;
	int r = 0;

	for (str rest = str_trim(text); r == 0 && rest.n && !opaque; any = true) {
		ptrdiff_t at = str_rchr(rest, '\n');
		str id = str_skip(rest, at < 0 ? 0 : (size_t)at + 1);
		rest = str_head(rest, at < 0 ? 0 : (size_t)at);
		const char *path = runtime_text(m->arena, "%s/../../layers/" STR_FMT "/fs", m->folder, STR_ARG(id));
		CLEANUP(fd_closep) int fd = path_open_tree(path, err);
		r = fd < 0 ? fd : userns_add_layer(l, config, path, m->user, err);
		opaque = r == 0 && layer_is_opaque(fd);
	}
	return any ? r : userns_add_layer(l, config, runtime_text(m->arena, "%s/../../empty", m->folder), m->user, err);
}

static int add_folder(const struct mapping *m, int config, const char *key, const char *name, struct err *err)
{
	const char *path = runtime_text(m->arena, "%s/%s", m->folder, name);
	CLEANUP(fd_closep) int fd = path_open_tree(path, err);

	if (fd < 0)
		return fd;
	return fsconfig(config, FSCONFIG_SET_FD, key, NULL, fd) < 0 ? err_sys(err, errno, "overlayfs: %s %s", key, path) : 0;
}

/* A mount that is nowhere yet. */
static int make_overlay(const struct mapping *m, str layers, struct err *err)
{
	CLEANUP(userns_layers_done) struct userns_layers copies = { .n = 0 };
	CLEANUP(fd_closep) int config = fsopen("overlay", FSOPEN_CLOEXEC);
	int r;

	if (config < 0)
		return err_sys(err, errno, "overlayfs");
	if ((r = map_owner(m, runtime_text(m->arena, "%s/upper", m->folder), err)) < 0 ||
	    (r = add_layers(m, &copies, config, layers, err)) < 0 ||
	    (r = add_folder(m, config, "upperdir", "upper", err)) < 0 || (r = add_folder(m, config, "workdir", "work", err)) < 0)
		return r;
	if (fsconfig(config, FSCONFIG_SET_STRING, "index", "off", 0) < 0 ||
	    fsconfig(config, FSCONFIG_SET_STRING, "metacopy", "off", 0) < 0 ||
	    (m->label.n && fsconfig(config, FSCONFIG_SET_STRING, "context", arena_str(m->arena, m->label).p, 0) < 0) ||
	    fsconfig(config, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(err, errno, "overlayfs over id-mapped layers");
	int made = fsmount(config, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
	return made < 0 ? err_sys(err, errno, "overlayfs") : made;
}

static int map_root(void *arg, struct err *err)
{
	const struct mapping *m = arg;
	CLEANUP(buf_done) struct buf layers = BUF_INIT(LAYERS_TEXT_MAX);
	int r = file_read(runtime_text(m->arena, "%s/layers", m->folder), &layers, err);

	if (r < 0)
		return r;
	bool copy = str_starts(buf_str(&layers), STR("copy\n"));
	if (!copy && umount2(m->root, UMOUNT_NOFOLLOW) < 0 && errno != EINVAL)
		return err_sys(err, errno, "unmount %s", m->root);
	CLEANUP(fd_closep) int made = copy ? userns_copy(m->root, m->user, err) : make_overlay(m, buf_str(&layers), err);
	if (made < 0)
		return made;
	return move_mount(made, "", AT_FDCWD, m->root, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? err_sys(err, errno, "mount %s", m->root) : 0;
}

int userns_map_root(const char *root, const char *user, struct val options, str label, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(fd_closep) int fd = open(user, O_RDONLY | O_CLOEXEC);
	str path = str_of(root);
	struct mapping m = { &a, root, arena_str(&a, str_head(path, (size_t)MAX(str_rchr(path, '/'), (ptrdiff_t)0))).p, fd,
			     val_get(options, usernsOptions), label };

	if (fd < 0)
		return err_sys(err, errno, "open %s", user);
	return fiber_blocking(map_root, &m, err);
}
