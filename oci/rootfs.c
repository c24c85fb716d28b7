/*
 * The root of a container. The runtime clones the tree of root.path, detached; the new process puts that over its own "/", where
 * everybody who still looks from the old root does not see it, mounts what config.json says into it by descriptors, and pivots.
 * All writing to /proc and all masking happens before, so that nothing of ours depends on a name inside the container.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "oci/cgroup_priv.h"
#include "oci/oci_priv.h"

static bool is_cgroup(const struct mount *m)
{
	return str_eq(str_of(m->type), STR("cgroup")) || str_eq(str_of(m->type), STR("cgroup2"));
}

/* What is in it has the labels that the policy says, file by file. */
static bool is_of_kernel(const struct mount *m)
{
	return str_eq(str_of(m->type), STR("proc")) || str_eq(str_of(m->type), STR("sysfs"));
}

/* ---- outside ---- */

static int open_cgroups(struct rootfs *r, struct arena *a, struct err *err)
{
	if (r->cgroups || !r->cgroup)
		return 0;
	r->cgroups = ARENA_ARRAY(a, int, r->cgroup->n + 1);
	for (size_t i = 0; i < r->cgroup->n; i++)
		r->cgroups[i] = -1;
	for (size_t i = 0; i < r->cgroup->n; i++) {
		CLEANUP(fd_closep) int folder = path_open_tree(r->cgroup->hierarchies[i].dir, err);
		if (folder < 0)
			return folder;
		if ((r->cgroups[i] = mount_clone(folder, 0, err)) < 0)
			return r->cgroups[i];
		int done = mount_propagate(r->cgroups[i], MS_PRIVATE, err);
		if (done < 0)
			return done;
	}
	return 0;
}

/* Ids of a bind that is to be mapped as the container's own are. */
static void default_maps(struct mount *m, const struct spec *s)
{
	if (m->idmap && !val_len(m->uid_maps)) {
		m->uid_maps = val_get(s->linux_part, uidMappings);
		m->gid_maps = val_get(s->linux_part, gidMappings);
	}
}

static int open_mounts(struct rootfs *r, bool shared, struct arena *a, struct err *err)
{
	struct val mounts = val_get(r->spec->config, mounts);
	int done;

	r->mounts = ARENA_ARRAY(a, struct mount, val_len(mounts) + 1);
	VAL_EACH(entry, mounts) {
		struct mount *m = &r->mounts[r->mounts_n];
		if ((done = mount_read(*entry, a, m, err)) < 0)
			return done;
		r->mounts_n++;
		m->label = is_of_kernel(m) ? NULL : r->label;
		default_maps(m, r->spec);
		if (is_cgroup(m))
			done = open_cgroups(r, a, err);
		else
			done = mount_open_source(m, r->spec->bundle, shared, err);
		if (done < 0)
			return done;
	}
	return 0;
}

int rootfs_open(struct rootfs *r, const struct spec *s, const struct cgroup *c, struct arena *a, struct err *err)
{
	str name = val_str(s->linux_part, rootfsPropagation);
	int done;

	r->spec = s;
	r->cgroup = c;
	struct val label = val_get(s->linux_part, mountLabel);
	if (val_as_str(label).n && (done = spec_text(a, label, "linux.mountLabel", &r->label, err)) < 0)
		return done;
	r->propagation = mount_propagation(name);
	if (name.n && !r->propagation)
		return err_set(err, ERR_INVALID, "config.json: linux.rootfsPropagation: \"" STR_FMT "\" is not known", STR_ARG(name));
	bool shared = r->propagation & MS_SHARED;
	CLEANUP(fd_closep) int root = path_open_tree(s->rootfs, err);
	if (root < 0)
		return root;
	if ((r->tree = mount_clone(root, AT_RECURSIVE, err)) < 0)
		return r->tree;
	/* Volumes may be shared with outside, but what is mounted into the root is the container's own business. */
	if ((done = mount_propagate(r->tree, (shared ? MS_PRIVATE : MS_SLAVE) | MS_REC, err)) < 0)
		return done;
	return open_mounts(r, shared, a, err);
}

void rootfs_close(struct rootfs *r)
{
	fd_closep(&r->tree);
	for (size_t i = 0; i < r->mounts_n; i++)
		fd_closep(&r->mounts[i].tree);
	for (size_t i = 0; r->cgroups && i < r->cgroup->n; i++)
		fd_closep(&r->cgroups[i]);
}

/* ---- inside ---- */

/* Nothing that is mounted here shall be seen outside, and the place where the new root is put least of all. */
static int attach_root(struct rootfs *r, struct err *err)
{
	unsigned long old = r->propagation ? r->propagation : MS_SLAVE | MS_REC;

	/* What is to be unbindable in the end has still to be bound from here. */
	if (old & MS_UNBINDABLE)
		old = MS_PRIVATE | (old & MS_REC);
	if (mount(NULL, "/", NULL, old, NULL) < 0)
		return err_sys(err, errno, "propagation of /");
	if (mount(NULL, "/", NULL, MS_PRIVATE, NULL) < 0)
		return err_sys(err, errno, "making / private");
	CLEANUP(fd_closep) int top = path_open_tree("/", err);
	return top < 0 ? top : mount_put(r->tree, top, err);
}

/* v1: links for the controllers that share a hierarchy: cpu -> cpu,cpuacct. */
static int link_controllers(int folder, const struct cgroup_hierarchy *h, const char *name, struct err *err)
{
	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		const char *controller = cgroup_controller_names[c];
		if (!(h->controllers & 1u << c) || !strchr(name, ',') || str_eq(str_of(controller), str_of(name)))
			continue;
		if (symlinkat(name, folder, controller) < 0 && errno != EEXIST)
			return err_sys(err, errno, "link for cgroup %s", controller);
	}
	return 0;
}

/* The name of a hierarchy's mount: the last part of dir without path. */
static str hierarchy_name(const struct cgroup_hierarchy *h)
{
	str dir = str_of(h->dir), path = str_of(h->path);

	if (str_ends(dir, path))
		dir = str_head(dir, dir.n - path.n);
	while (dir.n && dir.p[dir.n - 1] == '/')
		dir.n--;
	return str_skip(dir, (size_t)(str_rchr(dir, '/') + 1));
}

static int mount_hierarchy(struct rootfs *r, size_t i, const struct mount *m, int folder, struct err *err)
{
	const struct cgroup_hierarchy *h = &r->cgroup->hierarchies[i];
	char name[256];
	str base = str_head(hierarchy_name(h), sizeof(name) - 1);
	int done;

	memcpy(name, base.p, base.n);
	name[base.n] = '\0';
	if (mkdirat(folder, name, 0755) < 0 && errno != EEXIST)
		return err_sys(err, errno, "cgroup %s", name);
	CLEANUP(fd_closep) int target = path_open(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, err);
	if (target < 0)
		return target;
	if ((done = mount_set(r->cgroups[i], m->set, 0, 0, err)) < 0 || (done = mount_put(r->cgroups[i], target, err)) < 0)
		return err_wrap(err, done, "cgroup %s", name);
	return link_controllers(folder, h, name, err);
}

/* The container sees its own cgroup as the top of each hierarchy. */
static int mount_cgroups(struct rootfs *r, const struct mount *m, struct err *err)
{
	CLEANUP(fd_closep) int target = path_mkdirs(r->tree, m->destination, 0755, err);
	int done;

	if (target < 0)
		return target;
	if ((done = mount_check_target(m, target, err)) < 0)
		return done;
	if (!r->cgroups)
		return err_set(err, ERR_INVALID, "there is no cgroup to be shown");
	if (r->cgroup->mode == CGROUP_V2) {
		done = mount_set(r->cgroups[0], m->set, 0, 0, err);
		return done < 0 ? done : mount_put(r->cgroups[0], target, err);
	}
	CLEANUP(fd_closep) int folder = mount_new("tmpfs", "cgroup", STR("mode=755,size=64k"), r->label,
						 m->set & ~(uint64_t)MOUNT_ATTR_RDONLY, err);
	if (folder < 0 || (done = mount_put(folder, target, err)) < 0)
		return folder < 0 ? folder : done;
	for (size_t i = 0; i < r->cgroup->n; i++)
		if ((done = mount_hierarchy(r, i, m, folder, err)) < 0)
			return done;
	return mount_set(folder, m->set & MOUNT_ATTR_RDONLY, 0, 0, err);
}

/*
 * Whether /dev is the container's own: in a bind of the host's, devices_make would remove the host's ptmx. The mount tells, since
 * there are many ways to name it. A link could lead into any part of any volume.
 */
static int has_own_dev(const struct rootfs *r, struct err *err)
{
	CLEANUP(fd_closep) int dev = path_open(r->tree, "dev", O_PATH | O_NOFOLLOW, err);
	struct stat st;

	if (dev < 0)
		return dev == -ERR_NOT_FOUND ? 1 : dev;
	if (fstat(dev, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_FORBIDDEN, "/dev is no ordinary directory");
	uint64_t id = mount_id(dev);
	for (size_t i = 0; i < r->mounts_n; i++)
		if (r->mounts[i].bind && r->mounts[i].id == id)
			return 0;
	return 1;
}

int rootfs_mount(struct rootfs *r, struct err *err)
{
	int done;

	if ((done = attach_root(r, err)) < 0)
		return done;
	for (size_t i = 0; i < r->mounts_n; i++) {
		struct mount *m = &r->mounts[i];
		done = is_cgroup(m) ? mount_cgroups(r, m, err) : mount_attach(m, r->tree, err);
		if (done < 0)
			return is_cgroup(m) ? err_wrap(err, done, "mounting cgroups at %s", m->destination) : done;
	}
	done = has_own_dev(r, err);
	return done > 0 ? devices_make(r->tree, r->spec, err) : done;
}

/* ---- what must not be read or written ---- */

static int mask(struct rootfs *r, const char *path, int null, struct err *err)
{
	CLEANUP(fd_closep) int target = path_open(r->tree, path, O_PATH, err);
	struct stat st;

	if (target < 0)
		return target == -ERR_NOT_FOUND ? 0 : target;
	if (fstat(target, &st) < 0)
		return err_sys(err, errno, "%s", path);
	CLEANUP(fd_closep) int cover = S_ISDIR(st.st_mode) ? mount_new("tmpfs", "tmpfs", STR("size=0,nr_inodes=2,mode=755"), r->label,
								    MOUNT_ATTR_RDONLY, err) :
							  mount_clone(null, 0, err);
	return cover < 0 ? cover : mount_put(cover, target, err);
}

static int make_readonly(struct rootfs *r, const char *path, struct err *err)
{
	CLEANUP(fd_closep) int target = path_open(r->tree, path, O_PATH, err);
	int done;

	if (target < 0)
		return target == -ERR_NOT_FOUND ? 0 : target;
	CLEANUP(fd_closep) int tree = mount_clone(target, AT_RECURSIVE, err);
	if (tree < 0)
		return tree;
	if ((done = mount_set(tree, MOUNT_ATTR_RDONLY, 0, AT_RECURSIVE, err)) < 0)
		return done;
	return mount_put(tree, target, err);
}

static int protect_paths(struct rootfs *r, struct arena *a, struct err *err)
{
	CLEANUP(fd_closep) int null = devices_open_null(err);
	const char *path;
	int done;

	if (null < 0)
		return null;
	VAL_EACH(p, val_get(r->spec->linux_part, readonlyPaths))
		if ((done = spec_text(a, *p, "linux.readonlyPaths", &path, err)) < 0 || (done = make_readonly(r, path, err)) < 0)
			return err_wrap(err, done, "read-only path " STR_FMT, STR_ARG(val_as_str(*p)));
	VAL_EACH(p, val_get(r->spec->linux_part, maskedPaths))
		if ((done = spec_text(a, *p, "linux.maskedPaths", &path, err)) < 0 || (done = mask(r, path, null, err)) < 0)
			return err_wrap(err, done, "masked path " STR_FMT, STR_ARG(val_as_str(*p)));
	return 0;
}

int rootfs_make_folder(struct rootfs *r, const char *path, struct err *err)
{
	CLEANUP(fd_closep) int fd = path_mkdirs(r->tree, path, 0755, err);
	return fd < 0 ? fd : 0;
}

int rootfs_protect(struct rootfs *r, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int done;

	for (size_t i = 0; i < r->mounts_n; i++)
		if (!is_cgroup(&r->mounts[i]) && (done = mount_finish(&r->mounts[i], err)) < 0)
			return done;
	if ((done = protect_paths(r, &a, err)) < 0)
		return done;
	if (!val_bool(r->spec->config, root, readonly))
		return 0;
	done = mount_set(r->tree, MOUNT_ATTR_RDONLY, 0, 0, err);
	return done < 0 ? err_wrap(err, done, "making the root read-only") : 0;
}

/* ---- going in ---- */

static int pivot(struct rootfs *r, struct err *err)
{
	CLEANUP(fd_closep) int old = path_open_tree("/", err);

	if (old < 0)
		return old;
	if (fchdir(r->tree) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(err, errno, "pivot_root");
	/* The old root is now over the new one. It goes without telling the original. */
	if (fchdir(old) < 0 || mount(NULL, ".", NULL, MS_SLAVE | MS_REC, NULL) < 0 || umount2(".", MNT_DETACH) < 0)
		return err_sys(err, errno, "leaving the old root");
	return 0;
}

/* For an initial ramdisk, which cannot be left: what shows the kernel's sides is taken away, the rest stays below. */
static int chroot_only(struct rootfs *r, struct err *err)
{
	CLEANUP(buf_done) struct buf mounts = BUF_INIT(16 << 20);
	str line, rest;

	int done = file_read("/proc/self/mountinfo", &mounts, err);
	if (done < 0)
		return done;
	for (rest = buf_str(&mounts); rest.n;) {
		str_cut(rest, '\n', &line, &rest);
		if (str_find(line, STR(" - proc ")) < 0 && str_find(line, STR(" - sysfs ")) < 0)
			continue;
		str field, tail = line;
		for (int i = 0; i < 5; i++)
			str_cut(tail, ' ', &field, &tail);
		CLEANUP(buf_done) struct buf path = BUF_INIT(4096);
		buf_add(&path, field);
		if (path.n && umount2(path.p, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
			return err_sys(err, errno, "umount %s", path.p);
	}
	if (fchdir(r->tree) < 0 || chroot(".") < 0)
		return err_sys(err, errno, "chroot");
	return 0;
}

int rootfs_enter(struct rootfs *r, struct err *err)
{
	int done = r->no_pivot ? chroot_only(r, err) : pivot(r, err);

	if (done < 0)
		return done;
	if (chdir("/") < 0)
		return err_sys(err, errno, "chdir");
	if (r->propagation && mount(NULL, "/", NULL, r->propagation, NULL) < 0)
		return err_sys(err, errno, "propagation of the root");
	return 0;
}
