#include "oci/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "oci/copy.h"
#include "oci/oci_priv.h"
#include "oci/spec.h"

enum option_kind {
	OPTION_SET,            /* an attribute of the mount */
	OPTION_CLEAR,
	OPTION_RECURSIVE_SET,
	OPTION_RECURSIVE_CLEAR,
	OPTION_ATIME,          /* one of several ways, all in one mask */
	OPTION_RECURSIVE_ATIME,
	OPTION_PROPAGATION,
	OPTION_BIND,           /* value: whether it is recursive */
	OPTION_IDMAP,
	OPTION_REMOUNT,
	OPTION_SUPER,          /* of the file system as a whole: passed on to it */
	OPTION_NOTHING,        /* the default, or without effect since long */
	OPTION_COPY,           /* a tmpfs begins with what was there */
};

static const struct {
	const char *name;
	enum option_kind kind;
	uint64_t value;
} options[] = {
	{ "async", OPTION_SUPER, 0 },
	{ "atime", OPTION_ATIME, MOUNT_ATTR_RELATIME },
	{ "bind", OPTION_BIND, 0 },
	{ "defaults", OPTION_NOTHING, 0 },
	{ "dev", OPTION_CLEAR, MOUNT_ATTR_NODEV },
	{ "diratime", OPTION_CLEAR, MOUNT_ATTR_NODIRATIME },
	{ "dirsync", OPTION_SUPER, 0 },
	{ "exec", OPTION_CLEAR, MOUNT_ATTR_NOEXEC },
	{ "idmap", OPTION_IDMAP, 0 },
	{ "iversion", OPTION_NOTHING, 0 },
	{ "lazytime", OPTION_SUPER, 0 },
	{ "loud", OPTION_NOTHING, 0 },
	{ "mand", OPTION_NOTHING, 0 },
	{ "noatime", OPTION_ATIME, MOUNT_ATTR_NOATIME },
	{ "nodev", OPTION_SET, MOUNT_ATTR_NODEV },
	{ "nodiratime", OPTION_SET, MOUNT_ATTR_NODIRATIME },
	{ "noexec", OPTION_SET, MOUNT_ATTR_NOEXEC },
	{ "noiversion", OPTION_NOTHING, 0 },
	{ "nolazytime", OPTION_SUPER, 0 },
	{ "nomand", OPTION_NOTHING, 0 },
	{ "norelatime", OPTION_NOTHING, 0 },
	{ "nostrictatime", OPTION_ATIME, MOUNT_ATTR_RELATIME },
	{ "nosuid", OPTION_SET, MOUNT_ATTR_NOSUID },
	{ "nosymfollow", OPTION_SET, MOUNT_ATTR_NOSYMFOLLOW },
	{ "private", OPTION_PROPAGATION, MS_PRIVATE },
	{ "ratime", OPTION_RECURSIVE_ATIME, MOUNT_ATTR_RELATIME },
	{ "rbind", OPTION_BIND, 1 },
	{ "rdev", OPTION_RECURSIVE_CLEAR, MOUNT_ATTR_NODEV },
	{ "rdiratime", OPTION_RECURSIVE_CLEAR, MOUNT_ATTR_NODIRATIME },
	{ "relatime", OPTION_ATIME, MOUNT_ATTR_RELATIME },
	{ "remount", OPTION_REMOUNT, 0 },
	{ "rexec", OPTION_RECURSIVE_CLEAR, MOUNT_ATTR_NOEXEC },
	{ "ridmap", OPTION_IDMAP, 1 },
	{ "rnoatime", OPTION_RECURSIVE_ATIME, MOUNT_ATTR_NOATIME },
	{ "rnodev", OPTION_RECURSIVE_SET, MOUNT_ATTR_NODEV },
	{ "rnodiratime", OPTION_RECURSIVE_SET, MOUNT_ATTR_NODIRATIME },
	{ "rnoexec", OPTION_RECURSIVE_SET, MOUNT_ATTR_NOEXEC },
	{ "rnorelatime", OPTION_NOTHING, 0 },
	{ "rnostrictatime", OPTION_RECURSIVE_ATIME, MOUNT_ATTR_RELATIME },
	{ "rnosuid", OPTION_RECURSIVE_SET, MOUNT_ATTR_NOSUID },
	{ "rnosymfollow", OPTION_RECURSIVE_SET, MOUNT_ATTR_NOSYMFOLLOW },
	{ "ro", OPTION_SET, MOUNT_ATTR_RDONLY },
	{ "rprivate", OPTION_PROPAGATION, MS_PRIVATE | MS_REC },
	{ "rrelatime", OPTION_RECURSIVE_ATIME, MOUNT_ATTR_RELATIME },
	{ "rro", OPTION_RECURSIVE_SET, MOUNT_ATTR_RDONLY },
	{ "rrw", OPTION_RECURSIVE_CLEAR, MOUNT_ATTR_RDONLY },
	{ "rshared", OPTION_PROPAGATION, MS_SHARED | MS_REC },
	{ "rslave", OPTION_PROPAGATION, MS_SLAVE | MS_REC },
	{ "rstrictatime", OPTION_RECURSIVE_ATIME, MOUNT_ATTR_STRICTATIME },
	{ "rsuid", OPTION_RECURSIVE_CLEAR, MOUNT_ATTR_NOSUID },
	{ "rsymfollow", OPTION_RECURSIVE_CLEAR, MOUNT_ATTR_NOSYMFOLLOW },
	{ "runbindable", OPTION_PROPAGATION, MS_UNBINDABLE | MS_REC },
	{ "rw", OPTION_CLEAR, MOUNT_ATTR_RDONLY },
	{ "shared", OPTION_PROPAGATION, MS_SHARED },
	{ "silent", OPTION_NOTHING, 0 },
	{ "slave", OPTION_PROPAGATION, MS_SLAVE },
	{ "strictatime", OPTION_ATIME, MOUNT_ATTR_STRICTATIME },
	{ "suid", OPTION_CLEAR, MOUNT_ATTR_NOSUID },
	{ "symfollow", OPTION_CLEAR, MOUNT_ATTR_NOSYMFOLLOW },
	{ "sync", OPTION_SUPER, 0 },
	{ "tmpcopyup", OPTION_COPY, 0 },
	{ "unbindable", OPTION_PROPAGATION, MS_UNBINDABLE },
};

struct val mount_options(struct arena *a)
{
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		val_add_item(&b, VAL_STR(str_of(options[i].name)));
	return val_end_list(&b);
}

static size_t find_option(str name)
{
	size_t i = 0;

	while (i < ARRAY_LEN(options) && !str_eq(name, str_of(options[i].name)))
		i++;
	return i;
}

unsigned long mount_propagation(str name)
{
	size_t i = find_option(name);
	return i < ARRAY_LEN(options) && options[i].kind == OPTION_PROPAGATION ? options[i].value : 0;
}

static void change(uint64_t *on, uint64_t *off, uint64_t set, uint64_t clear)
{
	*on = (*on & ~clear) | set;
	*off = (*off & ~set) | clear;
}

/* The ways to count reads: which one it is, is told in the bits of a mask, so that all of it must be cleared. */
static void change_atime(uint64_t *on, uint64_t *off, uint64_t way)
{
	*on = (*on & ~(uint64_t)MOUNT_ATTR__ATIME) | way;
	*off |= MOUNT_ATTR__ATIME;
}

static void apply_option(struct mount *m, size_t i)
{
	uint64_t value = options[i].value;

	switch (options[i].kind) {
	case OPTION_SET: change(&m->set, &m->clear, value, 0); break;
	case OPTION_CLEAR: change(&m->set, &m->clear, 0, value); break;
	case OPTION_RECURSIVE_SET: change(&m->recursive_set, &m->recursive_clear, value, 0); break;
	case OPTION_RECURSIVE_CLEAR: change(&m->recursive_set, &m->recursive_clear, 0, value); break;
	case OPTION_ATIME: change_atime(&m->set, &m->clear, value); break;
	case OPTION_RECURSIVE_ATIME: change_atime(&m->recursive_set, &m->recursive_clear, value); break;
	case OPTION_PROPAGATION:
		if (m->propagations < MOUNT_PROPAGATIONS_MAX)
			m->propagation[m->propagations++] = (unsigned long)value;
		break;
	case OPTION_BIND:
		m->bind = true;
		m->recursive |= value != 0;
		break;
	case OPTION_IDMAP:
		m->idmap = true;
		m->recursive_idmap |= value != 0;
		break;
	case OPTION_REMOUNT: m->remount = true; break;
	case OPTION_COPY: m->copy = true; break;
	case OPTION_SUPER:
	case OPTION_NOTHING: break;
	}
}

static int read_options(struct val list, struct arena *a, struct mount *m, struct err *err)
{
	CLEANUP(buf_done) struct buf data = BUF_INIT(1 << 16);

	VAL_EACH(o, list) {
		size_t i = find_option(val_as_str(*o));
		if (i < ARRAY_LEN(options))
			apply_option(m, i);
	}
	VAL_EACH(o, list) {
		str name = val_as_str(*o);
		size_t i = find_option(name);
		if (i < ARRAY_LEN(options) && (options[i].kind != OPTION_SUPER || m->bind))
			continue;
		if (data.n)
			buf_addc(&data, ',');
		buf_add(&data, name);
	}
	m->data = arena_str(a, buf_str(&data));
	return buf_check(&data, "options", err);
}

int mount_read(struct val entry, struct arena *a, struct mount *ret, struct err *err)
{
	struct mount m = {
		.tree = -1,
		.bind = str_eq(val_str(entry, type), STR("bind")),
		.uid_maps = val_get(entry, uidMappings),
		.gid_maps = val_get(entry, gidMappings),
	};
	int r;

	if ((r = spec_text(a, val_get(entry, destination), "mounts.destination", &m.destination, err)) < 0 ||
	    (r = spec_text(a, val_get(entry, type), "mounts.type", &m.type, err)) < 0 ||
	    (r = spec_text(a, val_get(entry, source), "mounts.source", &m.source, err)) < 0)
		return r;
	if ((r = read_options(val_get(entry, options), a, &m, err)) < 0)
		return err_wrap(err, r, "config.json: mounts: %s", m.destination);
	if (val_len(m.uid_maps) || val_len(m.gid_maps))
		m.idmap = true;
	if (m.bind && m.data.n)
		return err_set(err, ERR_INVALID,
			       "config.json: mounts: %s: bind mounts cannot have any filesystem-specific options applied", m.destination);
	if (m.idmap && !m.bind)
		return err_set(err, ERR_INVALID, "config.json: mounts: %s: id-mapped mounts are only supported for bind-mounts",
			       m.destination);
	if (m.copy && !str_eq(str_of(m.type), STR("tmpfs")))
		return err_set(err, ERR_INVALID, "config.json: mounts: %s: tmpcopyup is only supported for tmpfs", m.destination);
	if (!m.bind && !m.remount && !*m.type)
		return err_set(err, ERR_INVALID, "config.json: mounts: %s: the type is missing", m.destination);
	*ret = m;
	return 0;
}

/* ---- detached mounts ---- */

int mount_clone(int fd, unsigned flags, struct err *err)
{
	int tree = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);
	return tree < 0 ? err_sys(err, errno, "open_tree") : tree;
}

int mount_set(int tree, uint64_t set, uint64_t clear, unsigned flags, struct err *err)
{
	struct mount_attr attr = { .attr_set = set, .attr_clr = clear };

	if (!set && !clear)
		return 0;
	if (mount_setattr(tree, "", AT_EMPTY_PATH | flags, &attr, sizeof(attr)) < 0)
		return err_sys(err, errno, "mount_setattr");
	return 0;
}

int mount_propagate(int tree, unsigned long propagation, struct err *err)
{
	struct mount_attr attr = { .propagation = propagation & ~(unsigned long)MS_REC };

	if (mount_setattr(tree, "", AT_EMPTY_PATH | (propagation & MS_REC ? AT_RECURSIVE : 0), &attr, sizeof(attr)) < 0)
		return err_sys(err, errno, "mount_setattr: propagation");
	return 0;
}

int mount_put(int tree, int target, struct err *err)
{
	if (move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(err, errno, "move_mount");
	return 0;
}

uint64_t mount_id(int fd)
{
	struct statx st;
	return statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) == 0 && st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0;
}

/* What a file system says about the last call on its context: "e tmpfs: Bad value for 'size'". */
static int config_error(int context, int sys, const char *what, struct err *err)
{
	char text[256];
	ssize_t n = read(context, text, sizeof(text));

	if (n <= 2)
		return err_sys(err, sys, "%s", what);
	str message = str_trim(str_span(text + 2, (size_t)n - 2));
	return err_sys(err, sys, "%s (" STR_FMT ")", what, STR_ARG(message));
}

static int configure(int context, str option, struct err *err)
{
	CLEANUP(buf_done) struct buf key = BUF_INIT(256), value = BUF_INIT(1 << 16);
	str k, v;
	bool has_value = str_cut(option, '=', &k, &v);

	buf_add(&key, k);
	buf_add(&value, v);
	buf_addc(&value, '\0');
	if (key.overflow || value.overflow || !key.n)
		return err_set(err, ERR_INVALID, "option " STR_FMT, STR_ARG(option));
	int r = has_value ? fsconfig(context, FSCONFIG_SET_STRING, key.p, value.p, 0) :
			    fsconfig(context, FSCONFIG_SET_FLAG, key.p, NULL, 0);
	return r < 0 ? config_error(context, errno, key.p, err) : 0;
}

int mount_new(const char *type, const char *source, str list, const char *label, uint64_t set, struct err *err)
{
	CLEANUP(fd_closep) int context = fsopen(type, FSOPEN_CLOEXEC);
	str option;
	int r;

	if (context < 0)
		return err_sys(err, errno, "fsopen %s", type);
	if (*source && fsconfig(context, FSCONFIG_SET_STRING, "source", source, 0) < 0)
		return config_error(context, errno, "source", err);
	while (list.n) {
		str_cut(list, ',', &option, &list);
		if (option.n && (r = configure(context, option, err)) < 0)
			return err_wrap(err, r, "%s", type);
	}
	if (label && fsconfig(context, FSCONFIG_SET_STRING, "context", label, 0) < 0)
		return config_error(context, errno, "context", err);
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return config_error(context, errno, type, err);
	int tree = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)set);
	return tree < 0 ? err_sys(err, errno, "fsmount %s", type) : tree;
}

/* ---- outside ---- */

static int idmap(struct mount *m, struct err *err)
{
	CLEANUP(fd_closep) int user = namespaces_mapped(m->uid_maps, m->gid_maps, err);

	if (user < 0)
		return user;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)user };
	if (mount_setattr(m->tree, "", AT_EMPTY_PATH | (m->recursive_idmap ? AT_RECURSIVE : 0), &attr, sizeof(attr)) < 0)
		return err_sys(err, errno, "id-mapping it");
	return 0;
}

static int prepare_source(struct mount *m, bool shared, struct err *err)
{
	int r;

	if (!shared && (r = mount_propagate(m->tree, MS_SLAVE | MS_REC, err)) < 0)
		return r;
	for (size_t i = 0; i < m->propagations; i++)
		if ((r = mount_propagate(m->tree, m->propagation[i], err)) < 0)
			return r;
	if ((r = mount_set(m->tree, m->set, m->clear, 0, err)) < 0 ||
	    (r = mount_set(m->tree, m->recursive_set, m->recursive_clear, AT_RECURSIVE, err)) < 0)
		return r;
	return m->idmap ? idmap(m, err) : 0;
}

int mount_open_source(struct mount *m, const char *bundle, bool shared, struct err *err)
{
	if (!m->bind || m->remount)
		return 0;
	CLEANUP(fd_closep) int folder = path_open_tree(bundle, err);
	if (folder < 0)
		return folder;
	m->tree = open_tree(folder, m->source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (m->recursive ? AT_RECURSIVE : 0));
	if (m->tree < 0)
		return err_sys(err, errno, "mount %s: source %s", m->destination, m->source);
	int r = prepare_source(m, shared, err);
	return r < 0 ? err_wrap(err, r, "mount %s", m->destination) : 0;
}

/* ---- inside ---- */

static int make_file_at(int root, struct buf *path, struct err *err)
{
	CLEANUP(buf_done) struct buf folder = BUF_INIT(PATH_MAX), link = BUF_INIT(PATH_MAX);
	ptrdiff_t slash = str_rchr(buf_str(path), '/');
	const char *name = path->p + slash + 1;

	buf_add(&folder, slash < 0 ? STR(".") : str_head(buf_str(path), (size_t)slash + 1));
	CLEANUP(fd_closep) int parent = path_mkdirs(root, folder.p, 0755, err);
	if (parent < 0)
		return parent;
	int fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd >= 0 || errno != EEXIST)
		return fd < 0 ? err_sys(err, errno, "making %s", path->p) : fd;
	ssize_t n = readlinkat(parent, name, buf_reserve(&link, PATH_MAX - 1), PATH_MAX - 1);
	if (n < 0)
		return err_sys(err, errno, "reading the link %s", path->p);
	str text = str_span(link.p, (size_t)n);
	buf_reset(path);
	if (!str_starts(text, STR("/")))
		buf_add(path, buf_str(&folder));
	if (folder.n && !str_starts(text, STR("/")) && folder.p[folder.n - 1] != '/')
		buf_addc(path, '/');
	buf_add(path, text);
	return err_set(err, ERR_CONFLICT, "%s: a link", path->p);
}

int mount_make_file(int root, const char *path, struct err *err)
{
	enum { LINKS_MAX = 40 };
	CLEANUP(buf_done) struct buf at = BUF_INIT(PATH_MAX);

	buf_add(&at, str_of(path));
	while (at.n > 1 && at.p[at.n - 1] == '/')
		at.p[--at.n] = '\0';
	for (int links = 0; links < LINKS_MAX && !at.overflow; links++) {
		int fd = path_open(root, at.p, O_PATH, err);
		if (fd != -ERR_NOT_FOUND)
			return fd;
		fd = make_file_at(root, &at, err);
		if (fd != -ERR_CONFLICT)
			return fd;
	}
	return err_sys(err, ELOOP, "%s", path);
}

static bool is_on_proc(int fd)
{
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* What is below /proc is the kernel's word; only some files of figures may be replaced, as lxcfs does. */
int mount_check_target(const struct mount *m, int target, struct err *err)
{
	static const char *const allowed[] = {
		"/proc/cpuinfo", "/proc/diskstats", "/proc/meminfo", "/proc/stat", "/proc/swaps", "/proc/uptime", "/proc/loadavg",
		"/proc/slabinfo", "/proc/sys/kernel/ns_last_pid", "/proc/sys/crypto/fips_enabled",
	};

	if (!is_on_proc(target))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		if (str_eq(str_of(m->destination), str_of(allowed[i])))
			return 0;
	return err_set(err, ERR_FORBIDDEN, "it is inside /proc");
}

/* proc and sysfs are where we and others look for the truth: they must be at the place itself, not where a link leads. */
static int open_plain_folder(const struct mount *m, int root, struct err *err)
{
	struct stat st;
	int fd = path_open(root, m->destination, O_PATH | O_NOFOLLOW, err);

	if (fd == -ERR_NOT_FOUND)
		return path_mkdirs(root, m->destination, 0755, err);
	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)))
		return fd;
	close(fd);
	return err_set(err, ERR_FORBIDDEN, "filesystem \"%s\" must be mounted on ordinary directory", m->type);
}

static int open_target(const struct mount *m, int root, struct err *err)
{
	struct stat st;

	if (str_eq(str_of(m->type), STR("proc")) || str_eq(str_of(m->type), STR("sysfs")))
		return open_plain_folder(m, root, err);
	if (m->tree >= 0) {
		if (fstat(m->tree, &st) < 0)
			return err_sys(err, errno, "looking at the source");
		if (!S_ISDIR(st.st_mode))
			return mount_make_file(root, m->destination, err);
	}
	int fd = path_open(root, m->destination, O_PATH, err);
	return fd == -ERR_NOT_FOUND ? path_mkdirs(root, m->destination, 0755, err) : fd;
}

/* The content of target; of the tree itself, what its options say. */
static int copy_content(const struct mount *m, int target, int tree, struct err *err)
{
	bool owner = str_find(m->data, STR("uid=")) >= 0 || str_find(m->data, STR("gid=")) >= 0;
	struct stat st;
	int r = fstat(tree, &st) < 0 ? err_sys(err, errno, "stat") : copy_tree(target, tree, err);

	if (r == 0 && ((owner && fchownat(tree, ".", st.st_uid, st.st_gid, 0) < 0) || fchmodat(tree, ".", st.st_mode & 07777, 0) < 0))
		r = err_sys(err, errno, "its mode and owner");
	return r;
}

/* The policy may have one label for all that is in such a file system. */
static int set_label(int tree, const char *label, struct err *err)
{
	char path[PATH_FD_TEXT];

	if (setxattr(path_of_fd(tree, path), "security.selinux", label, strlen(label) + 1, 0) < 0 && errno != EOPNOTSUPP)
		return err_sys(err, errno, "label %s", label);
	return 0;
}

/* A tmpfs over a folder has that folder's mode, if nothing else is said. */
static int open_new(const struct mount *m, int target, struct err *err)
{
	CLEANUP(buf_done) struct buf list = BUF_INIT(1 << 16);
	bool tmpfs = str_eq(str_of(m->type), STR("tmpfs"));
	struct stat st;

	buf_add(&list, m->data);
	if (tmpfs && str_find(m->data, STR("mode=")) < 0 && fstat(target, &st) == 0)
		buf_addf(&list, "%smode=%o", list.n ? "," : "", (unsigned)st.st_mode & 07777);
	uint64_t late = tmpfs ? MOUNT_ATTR_RDONLY : 0;
	/* There is one file system of queues for each IPC namespace, which may be mounted elsewhere already: it gets its label later. */
	bool queues = str_eq(str_of(m->type), STR("mqueue"));
	int tree = mount_new(m->type, *m->source ? m->source : m->type, buf_str(&list), queues ? NULL : m->label,
			     (m->set | m->recursive_set) & ~late, err);
	int r = tree >= 0 && m->copy ? copy_content(m, target, tree, err) : 0;
	if (tree >= 0 && queues && m->label)
		r = set_label(tree, m->label, err);
	if (r < 0)
		fd_closep(&tree);
	return r < 0 ? r : tree;
}

static int attach(struct mount *m, int root, struct err *err)
{
	CLEANUP(fd_closep) int target = open_target(m, root, err);
	int r;

	if (target < 0)
		return target;
	if (m->remount) {
		r = mount_set(target, m->set, m->clear, 0, err);
		return r < 0 ? r : mount_set(target, m->recursive_set, m->recursive_clear, AT_RECURSIVE, err);
	}
	if ((r = mount_check_target(m, target, err)) < 0)
		return r;
	if (m->tree < 0) {
		if ((m->tree = open_new(m, target, err)) < 0)
			return m->tree;
		for (size_t i = 0; i < m->propagations; i++)
			if ((r = mount_propagate(m->tree, m->propagation[i], err)) < 0)
				return r;
	}
	if ((r = mount_put(m->tree, target, err)) < 0)
		return r;
	if (m->bind)
		m->id = mount_id(m->tree);
	if (!str_eq(str_of(m->type), STR("tmpfs")))
		fd_closep(&m->tree);
	return 0;
}

int mount_attach(struct mount *m, int root, struct err *err)
{
	int r = attach(m, root, err);
	return r < 0 ? err_wrap(err, r, "mounting \"%s\" to rootfs at \"%s\"", *m->source ? m->source : m->type, m->destination) : 0;
}

int mount_finish(struct mount *m, struct err *err)
{
	if (m->tree < 0)
		return 0;
	int r = mount_set(m->tree, m->set & MOUNT_ATTR_RDONLY, 0, 0, err);
	if (r < 0)
		return err_wrap(err, r, "making %s read-only", m->destination);
	fd_closep(&m->tree);
	return 0;
}
