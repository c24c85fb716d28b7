/*
 * /dev: device files are made, or, where a user namespace forbids that, shown by binds of those outside. Folders and names are
 * reached by descriptors; what is there already must be the very device.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/path.h"
#include "codec/atoms.h"
#include "oci/oci_priv.h"

struct device {
	const char *path;
	mode_t mode;       /* with its type */
	unsigned major, minor;
	uid_t uid;
	gid_t gid;
};

static bool is_device(int fd, const struct device *d)
{
	struct stat st;
	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == (d->mode & S_IFMT) && (S_ISFIFO(d->mode) || st.st_rdev == makedev(d->major, d->minor));
}

int devices_open_null(struct err *err)
{
	static const struct device null = { .path = "/dev/null", .mode = S_IFCHR, .major = 1, .minor = 3 };
	int fd = open(null.path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "/dev/null");
	if (is_device(fd, &null))
		return fd;
	close(fd);
	return err_set(err, ERR_FORBIDDEN, "/dev/null is not the device that it should be");
}

/* Shows the device of the same path outside. */
static int bind_device(int root, const struct device *d, struct err *err)
{
	CLEANUP(fd_closep) int outside = open(d->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (outside < 0)
		return err_sys(err, errno, "%s outside", d->path);
	if (!is_device(outside, d))
		return err_set(err, ERR_FORBIDDEN, "%s outside is another device", d->path);
	CLEANUP(fd_closep) int tree = mount_clone(outside, 0, err);
	if (tree < 0)
		return tree;
	CLEANUP(fd_closep) int target = mount_make_file(root, d->path, err);
	return target < 0 ? target : mount_put(tree, target, err);
}

static int make_device(int root, const struct device *d, struct err *err)
{
	char folder[256];
	const char *slash = strrchr(d->path, '/');
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - d->path + 1), d->path);
	CLEANUP(fd_closep) int parent = path_mkdirs(root, folder, 0755, err);
	if (parent < 0)
		return parent;
	if (mknodat(parent, slash + 1, d->mode, makedev(d->major, d->minor)) == 0) {
		CLEANUP(fd_closep) int made = openat(parent, slash + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (made < 0 || !is_device(made, d))
			return err_set(err, ERR_FORBIDDEN, "%s was replaced", d->path);
		if (fchownat(made, "", d->uid, d->gid, AT_EMPTY_PATH) < 0)
			return err_sys(err, errno, "fchown");
		return 0;
	}
	if (errno == EPERM)
		return bind_device(root, d, err);
	if (errno != EEXIST)
		return err_sys(err, errno, "mknod");
	CLEANUP(fd_closep) int there = openat(parent, slash + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (there < 0 || !is_device(there, d))
		return err_set(err, ERR_FORBIDDEN, "something else is there");
	return 0;
}

static int make_configured(int root, struct val v, struct err *err)
{
	char path[256];
	str type = val_str(v, type), name = val_str(v, path);
	mode_t kind = str_eq(type, STR("b")) ? S_IFBLK :
		      str_eq(type, STR("p")) ? S_IFIFO :
		      str_eq(type, STR("c")) || str_eq(type, STR("u")) ? S_IFCHR : 0;

	if (!kind)
		return err_set(err, ERR_INVALID, "type \"" STR_FMT "\" is not c, u, b or p", STR_ARG(type));
	if (!str_starts(name, STR("/")) || name.n >= sizeof(path) || str_ends(name, STR("/")) || str_chr(name, '\0') >= 0)
		return err_set(err, ERR_INVALID, "the path must be absolute, shorter than 256 bytes and end in a name");
	/* All devices of a node have this one among them: the link to the container's own stands there. */
	if (str_eq(name, STR("/dev/ptmx")))
		return 0;
	snprintf(path, sizeof(path), STR_FMT, STR_ARG(name));
	struct device d = {
		.path = path,
		.mode = kind | (val_has(v, fileMode) ? (mode_t)val_int(v, fileMode) & 07777 : 0666),
		.major = (unsigned)val_int(v, major),
		.minor = (unsigned)val_int(v, minor),
		.uid = (uid_t)val_int(v, uid),
		.gid = (gid_t)val_int(v, gid),
	};
	return make_device(root, &d, err);
}

static int make_links(int root, struct err *err)
{
	static const struct {
		const char *text, *name;
	} links[] = {
		{ "/proc/self/fd", "fd" }, { "/proc/self/fd/0", "stdin" }, { "/proc/self/fd/1", "stdout" }, { "/proc/self/fd/2", "stderr" },
		{ "pts/ptmx", "ptmx" },
	};
	CLEANUP(fd_closep) int dev = path_mkdirs(root, "/dev", 0755, err);

	if (dev < 0)
		return dev;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		/* /dev/ptmx of an image could belong to another instance of devpts. */
		if (str_eq(str_of(links[i].name), STR("ptmx")) && unlinkat(dev, "ptmx", 0) < 0 && errno != ENOENT)
			return err_sys(err, errno, "/dev/ptmx");
		if (symlinkat(links[i].text, dev, links[i].name) < 0 && errno != EEXIST)
			return err_sys(err, errno, "/dev/%s", links[i].name);
	}
	return 0;
}

int devices_make(int root, const struct spec *s, struct err *err)
{
	static const struct device defaults[] = {
		{ "/dev/null", S_IFCHR | 0666, 1, 3, 0, 0 }, { "/dev/zero", S_IFCHR | 0666, 1, 5, 0, 0 },
		{ "/dev/full", S_IFCHR | 0666, 1, 7, 0, 0 }, { "/dev/random", S_IFCHR | 0666, 1, 8, 0, 0 },
		{ "/dev/urandom", S_IFCHR | 0666, 1, 9, 0, 0 }, { "/dev/tty", S_IFCHR | 0666, 5, 0, 0, 0 },
	};
	int r;

	mode_t mask = umask(0);
	VAL_EACH(d, val_get(s->linux_part, devices))
		if ((r = make_configured(root, *d, err)) < 0)
			return err_wrap(err, r, "device " STR_FMT, STR_ARG(val_str(*d, path)));
	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		if ((r = make_device(root, &defaults[i], err)) < 0)
			return err_wrap(err, r, "device %s", defaults[i].path);
	umask(mask);
	return make_links(root, err);
}
