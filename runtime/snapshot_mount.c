/*
 * overlayfs. New kernels are given each layer by a descriptor: no text, no limit but overlayfs' own of 500 layers. Older ones take
 * one page of options, so layers go by short names ("l/17") which are seen from the folder's top. That needs a working directory, which
 * all threads share; a thread of its own that shares it no more does the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "runtime/layer.h"
#include "runtime/snapshot_priv.h"

enum { MOUNTINFO_MAX = 64 << 20, OPTIONS_MAX = 4095 };

/* What is mounted: layers, lowest first, by the folders they are in and by their short names. */
struct overlay {
	int top;
	const char *root;                /* the top's path */
	const char *folder;              /* with upper, work and root in it */
	const char *label;               /* SELinux'; "": none */
	const char *const *layers;       /* "layers/<id>/fs" */
	const char *const *names;        /* "l/<n>" */
	size_t n;
};

/* ---- by descriptors ---- */

static int config_fd(const struct overlay *o, int config, const char *key, const char *folder, const char *name, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *path = name ? arena_printf(&a, "%s/%s", folder, name).p : folder;
	CLEANUP(fd_closep) int fd = path_open(o->top, path, O_RDONLY | O_DIRECTORY, err);
	if (fd < 0)
		return fd;
	return fsconfig(config, FSCONFIG_SET_FD, key, NULL, fd) < 0 ? err_sys(err, errno, "overlayfs: %s %s", key, path) : 0;
}

static int mount_by_fds(const struct overlay *o, struct err *err)
{
	CLEANUP(fd_closep) int config = fsopen("overlay", FSOPEN_CLOEXEC);
	if (config < 0)
		return err_sys(err, errno, "overlayfs");
	int r = 0;
	for (size_t i = o->n; r == 0 && i-- > 0;)
		r = config_fd(o, config, "lowerdir+", o->layers[i], NULL, err);
	if (r == 0)
		r = config_fd(o, config, "upperdir", o->folder, "upper", err);
	if (r == 0)
		r = config_fd(o, config, "workdir", o->folder, "work", err);
	if (r < 0)
		return r;
	if (fsconfig(config, FSCONFIG_SET_STRING, "index", "off", 0) < 0 ||
	    fsconfig(config, FSCONFIG_SET_STRING, "metacopy", "off", 0) < 0 ||
	    (*o->label && fsconfig(config, FSCONFIG_SET_STRING, "context", o->label, 0) < 0) ||
	    fsconfig(config, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(err, errno, "overlayfs");
	CLEANUP(fd_closep) int made = fsmount(config, FSMOUNT_CLOEXEC, 0);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(fd_closep) int at = path_open(o->top, arena_printf(&a, "%s/root", o->folder).p, O_PATH | O_DIRECTORY, err);
	if (made < 0)
		return err_sys(err, errno, "overlayfs");
	if (at < 0)
		return at;
	return move_mount(made, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? err_sys(err, errno, "overlayfs") : 0;
}

/* ---- by text ---- */

struct text_mount {
	const struct overlay *o;
	struct buf options;
	const char *at;
	int sys;
};

static void *mount_in_folder(void *arg)
{
	struct text_mount *t = arg;
	bool ok = unshare(CLONE_FS) == 0 && fchdir(t->o->top) == 0 && mount("overlay", t->at, "overlay", 0, t->options.p) == 0;
	t->sys = ok ? 0 : errno;
	return NULL;
}

static int mount_by_text(const struct overlay *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct text_mount t = { .o = o, .options = BUF_INIT(OPTIONS_MAX), .at = arena_printf(&a, "%s/root", o->folder).p };
	pthread_t thread;
	if (strchr(o->label, '"'))
		return err_set(err, ERR_INVALID, "%s cannot be a label", o->label);
	if (*o->label)
		buf_addf(&t.options, "context=\"%s\",", o->label);
	buf_addf(&t.options, "index=off,metacopy=off,upperdir=%s/upper,workdir=%s/work,lowerdir=", o->folder, o->folder);
	for (size_t i = o->n; i-- > 0;)
		buf_addf(&t.options, "%s%s", o->names[i], i ? ":" : "");
	int r = t.options.overflow ? err_set(err, ERR_TOO_LARGE, "%zu layers are too many for the options of a mount", o->n) : 0;
	if (r == 0) {
		int sys = pthread_create(&thread, NULL, mount_in_folder, &t);
		if (sys == 0)
			pthread_join(thread, NULL);
		sys = sys ? sys : t.sys;
		r = sys ? err_sys(err, sys, "overlayfs") : 0;
	}
	buf_done(&t.options);
	return r;
}

static int mount_overlay(const struct overlay *o, enum snapshot_mode mode, struct err *err)
{
	return mode == SNAPSHOT_FD ? mount_by_fds(o, err) : mount_by_text(o, err);
}

/* ---- what is mounted ---- */

/* overlayfs has a device number of its own. */
static bool is_mounted(int top, const char *folder)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct stat outside, inside;
	return fstatat(top, folder, &outside, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(top, arena_printf(&a, "%s/root", folder).p, &inside, AT_SYMLINK_NOFOLLOW) == 0 && outside.st_dev != inside.st_dev;
}

/* The short name: the number is in a file beside the layer. */
static int short_name(struct arena *a, const char *root, const char *id, const char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(32);
	int64_t n;
	int r = file_read(arena_printf(a, "%s/layers/%s/n", root, id).p, &text, err);
	if (r < 0)
		return r;
	if (!str_to_i64(buf_str(&text), &n))
		return err_set(err, ERR_INVALID, "layers/%s/n is damaged", id);
	*ret = arena_printf(a, "l/%lld", (long long)n).p;
	return 0;
}

int snapshot_overlay(int top, const char *root, enum snapshot_mode mode, const char *key, str label, const char (*ids)[SNAPSHOT_ID + 1],
		     size_t n, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *folder = arena_printf(&a, "mounts/%s", key).p;
	const char **layers = ARENA_ARRAY(&a, const char *, n + 1), **names = ARENA_ARRAY(&a, const char *, n + 1);
	size_t first = n;
	int r = 0;
	if (is_mounted(top, folder))
		return 0;
	/* overlayfs does not ask whether a layer's top is opaque: what is below it is left out here */
	for (bool opaque = false; r == 0 && first > 0 && !opaque; first--) {
		layers[first - 1] = arena_printf(&a, "layers/%s/fs", ids[first - 1]).p;
		r = mode == SNAPSHOT_TEXT ? short_name(&a, root, ids[first - 1], &names[first - 1], err) : 0;
		CLEANUP(fd_closep) int fd = r < 0 ? -1 : path_open(top, layers[first - 1], O_RDONLY | O_DIRECTORY, err);
		r = r < 0 ? r : MIN(fd, 0);
		opaque = r == 0 && layer_is_opaque(fd);
	}
	if (r < 0)
		return r;
	struct overlay o = { top, root, folder, arena_str(&a, label).p, layers + first, names + first, n - first };
	if (!n) {
		layers[0] = names[0] = "empty";
		o.n = 1;
	}
	return mount_overlay(&o, mode, err);
}

/* \040 is a space. */
static void unescape(struct buf *out, str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\\' && i + 3 < text.n) {
			buf_addc(out, (char)((text.p[i + 1] - '0') * 64 + (text.p[i + 2] - '0') * 8 + (text.p[i + 3] - '0')));
			i += 3;
		} else {
			buf_addc(out, text.p[i]);
		}
	}
}

/* Where the mount of this line of mountinfo is: its fifth word. */
static void mount_point(str line, struct buf *out)
{
	str word = STR_NONE;
	for (int i = 0; i < 5; i++)
		str_cut(line, ' ', &word, &line);
	buf_reset(out);
	unescape(out, word);
}

/* The path of the last mount at or below a folder, which is the one to go first; false: none. */
static int last_mount(str folder, struct buf *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MOUNTINFO_MAX), path = BUF_INIT(2 * PATH_MAX);
	str rest, line;
	int r = file_read("/proc/self/mountinfo", &text, err);
	buf_reset(ret);
	for (rest = buf_str(&text); r == 0 && rest.n;) {
		str_cut(rest, '\n', &line, &rest);
		mount_point(line, &path);
		str at = buf_str(&path);
		if (!str_starts(at, folder) || (at.n > folder.n && at.p[folder.n] != '/'))
			continue;
		buf_reset(ret);
		buf_add(ret, at);
	}
	return r < 0 ? r : ret->n != 0;
}

int snapshot_unmount(const char *root, const char *folder, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf at = BUF_INIT(2 * PATH_MAX);
	str below = arena_printf(&a, "%s/%s", root, folder);
	int r;
	while ((r = last_mount(below, &at, err)) > 0)
		if (umount2(at.p, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
			return err_sys(err, errno, "unmount %s", at.p);
	return r;
}

/* ---- what works ---- */

static int try_mode(int top, const char *root, enum snapshot_mode mode, struct err *err)
{
	static const char *const layers[] = { "tmp/probe/lower" };
	struct overlay o = { top, root, "tmp/probe", "", layers, layers, 1 };
	int r = mount_overlay(&o, mode, err);
	return r < 0 ? r : snapshot_unmount(root, "tmp/probe", err);
}

static int make_probe(int top, struct err *err)
{
	static const char *const folders[] = { "tmp/probe", "tmp/probe/lower", "tmp/probe/upper", "tmp/probe/work", "tmp/probe/root" };
	int r = snapshot_clear(top, folders[0], err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(folders); i++)
		r = snapshot_make_folder(top, folders[i], 0700, err);
	CLEANUP(fd_closep) int lower = r < 0 ? r : path_open(top, folders[1], O_RDONLY | O_DIRECTORY, err);
	r = r < 0 ? r : MIN(lower, 0);
	/* whiteouts need these two */
	if (r == 0)
		r = layer_set_opaque(lower, err);
	return r == 0 && mknodat(lower, "gone", S_IFCHR, 0) < 0 ? err_sys(err, errno, "mknod") : r;
}

enum snapshot_mode snapshot_probe(int top, const char *root)
{
	struct err err = ERR_INIT;
	enum snapshot_mode mode = SNAPSHOT_FD;
	int r = make_probe(top, &err);
	if (r < 0 || ((r = try_mode(top, root, mode, NULL)) < 0 && (r = try_mode(top, root, mode = SNAPSHOT_TEXT, &err)) < 0)) {
		log_warn("overlayfs does not work here, every container gets a copy of its image", KV("root", root), KV("error", &err));
		mode = SNAPSHOT_COPY;
	}
	(void)snapshot_clear(top, "tmp/probe", NULL);
	return mode;
}
