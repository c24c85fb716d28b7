/*
 * Mounts and devices of a container: those that every one has, those that CRI asks for, and the pod's files. What CRI asks for takes
 * the place of what is there by default; those above come before those below.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "oci/cgroup.h"
#include "runtime/config_json.h"
#include "runtime/userns.h"

enum { MOUNTS_MAX = 4096, MOUNTINFO_MAX = 64 << 20, DEVICES_MAX = 10000 };

/* ---- small things ---- */

static struct val words(struct arena *a, const char *text)
{
	struct val_builder b = val_builder(a);
	str rest = str_of(text), one;

	while (rest.n) {
		(void)str_cut(rest, ' ', &one, &rest);
		val_add_item(&b, VAL_STR(one));
	}
	return val_end_list(&b);
}

static struct val mount_of(struct arena *a, str destination, str type, str source, const char *options)
{
	return OBJECT(a, F(destination, VAL_STR(destination)), F(type, VAL_STR(type)), F(source, VAL_STR(source)),
		      F(options, words(a, options)));
}

/* ---- propagation of what is mounted on the node ---- */

/* "shared:3 master:1" of the mount that path is on; the longest mount point that leads to it, the last of those. */
static str optional_fields(str mountinfo, str path)
{
	str best = STR_NONE, line;
	size_t longest = 0;

	while (mountinfo.n) {
		(void)str_cut(mountinfo, '\n', &line, &mountinfo);
		str point = STR_NONE, rest = line;
		for (int i = 0; i < 5; i++)
			(void)str_cut(rest, ' ', &point, &rest);
		bool leads = str_eq(point, STR("/")) || str_eq(path, point) ||
			     (str_starts(path, point) && path.n > point.n && path.p[point.n] == '/');
		if (!leads || point.n < longest)
			continue;
		longest = point.n;
		str options;
		(void)str_cut(rest, ' ', &options, &rest);
		ptrdiff_t dash = str_find(rest, STR("- "));
		best = dash > 0 ? str_head(rest, (size_t)dash) : STR_NONE;
	}
	return best;
}

static int check_propagation(struct arena *a, str path, bool shared, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MOUNTINFO_MAX);
	int r = file_read("/proc/self/mountinfo", &b, err);

	(void)a;
	if (r < 0)
		return r;
	str fields = optional_fields(buf_str(&b), path);
	if (str_find(fields, STR("shared:")) >= 0 || (!shared && str_find(fields, STR("master:")) >= 0))
		return 0;
	return err_set(err, ERR_INTERNAL, "path \"" STR_FMT "\" is mounted on a mount but it is not a shared%s mount", STR_ARG(path),
		       shared ? "" : " or slave");
}

/* ---- one mount of CRI ---- */

/* The real path on the node; a folder is made when nothing is there. */
static int source_of(struct arena *a, str path, str *ret, struct err *err)
{
	const char *p = arena_str(a, path).p;
	int r;

	if (access(p, F_OK) < 0 && errno == ENOENT && (r = file_make_dirs(p, 0755, err)) < 0)
		return err_wrap(err, r, "failed to mkdir \"%s\"", p);
	CLEANUP(mem_freep) char *real = realpath(p, NULL);
	if (!real)
		return err_sys(err, errno, "failed to resolve symlink \"%s\"", p);
	*ret = arena_str(a, str_of(real));
	return 0;
}

/* "rbind rprivate ro" and so on. The strongest propagation is that of the root. */
static int options_of(struct arena *a, struct val m, str source, str *propagation, const char **ret, struct err *err)
{
	struct val wanted = val_get(m, propagation);
	bool private = false, ro = val_bool(m, readonly), rro = val_bool(m, recursiveReadOnly);
	const char *word = "rprivate";
	int r = 0;

	if (runtime_is(wanted, "PROPAGATION_BIDIRECTIONAL")) {
		r = check_propagation(a, source, true, err);
		word = "rshared";
		*propagation = STR("rshared");
	} else if (runtime_is(wanted, "PROPAGATION_HOST_TO_CONTAINER")) {
		r = check_propagation(a, source, false, err);
		word = "rslave";
		*propagation = propagation->n ? *propagation : STR("rslave");
	} else {
		private = true;
	}
	if (r < 0)
		return r;
	if (rro && !ro)
		return err_set(err, ERR_INTERNAL, "recursive read-only mount conflicts with RW mount (hostPath=\"" STR_FMT "\")",
			       STR_ARG(val_str(m, hostPath)));
	if (rro && !private)
		return err_set(err, ERR_INTERNAL, "recursive read-only mount needs private propagation, got \"" STR_FMT
			       "\" (hostPath=\"" STR_FMT "\")", STR_ARG(val_as_str(wanted)), STR_ARG(val_str(m, hostPath)));
	*ret = runtime_text(a, "rbind %s %s", word, rro ? "rro" : ro ? "ro" : "rw");
	return 0;
}

struct wanted_mount {
	str destination;
	struct val mount;                /* CRI's Mount */
	const char *image;               /* where its image is; NULL: it has none */
	size_t depth, order;
};

/* The mount with the ids that CRI wants for it; a file system that cannot do that is told of now, not when the container starts. */
static int map_ids(const struct sandbox *s, struct arena *a, struct val m, str source, struct val *mount, struct err *err)
{
	struct val uids = val_get(m, uidMappings), gids = val_get(m, gidMappings);
	const char *userns = sandbox_userns(s, a);
	int r;

	if (!val_len(uids) && !val_len(gids))
		return 0;
	if (!val_len(uids) || !val_len(gids))
		return err_set(err, ERR_INVALID, "mount \"" STR_FMT "\": UID and GID mappings are needed both", STR_ARG(source));
	if (userns && (r = userns_check_source(source.p, userns, err)) < 0)
		return err_wrap(err, r, "idmap mount \"" STR_FMT "\"", STR_ARG(source));
	*mount = val_with(a, val_with(a, *mount, userns_oci(a, uids), uidMappings), userns_oci(a, gids), gidMappings);
	return 0;
}

static int add_wanted(const struct config_input *in, struct arena *a, struct val_builder *b, const struct wanted_mount *w,
		      str *propagation, struct err *err)
{
	const char *options = "";
	str source;
	int r;

	if (w->image) {
		val_add_item(b, mount_of(a, w->destination, STR("bind"), str_of(w->image), "rbind rprivate ro"));
		return 0;
	}
	if ((r = source_of(a, val_str(w->mount, hostPath), &source, err)) < 0 ||
	    (val_bool(w->mount, selinuxRelabel) && (r = config_selinux_relabel(a, source, in->labels.files, err)) < 0) ||
	    (r = options_of(a, w->mount, source, propagation, &options, err)) < 0)
		return r;
	struct val mount = mount_of(a, w->destination, STR("bind"), source, options);
	if ((r = map_ids(in->sandbox, a, w->mount, source, &mount, err)) < 0)
		return r;
	val_add_item(b, mount);
	return 0;
}

/* ---- all ---- */

static int compare_depth(const void *x, const void *y)
{
	const struct wanted_mount *a = x, *b = y;

	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

struct wanted {
	struct arena *arena;
	struct wanted_mount *all;
	size_t n;
};

static bool is_wanted(const struct wanted *w, str destination)
{
	for (size_t i = 0; i < w->n; i++)
		if (str_eq(w->all[i].destination, destination))
			return true;
	return false;
}

static void want(struct wanted *w, struct val m, const char *image)
{
	struct wanted_mount *at = &w->all[w->n];

	*at = (struct wanted_mount){ path_clean(w->arena, val_str(m, containerPath)), m, image, 0, w->n };
	for (size_t i = 0; i < at->destination.n; i++)
		at->depth += at->destination.p[i] == '/';
	w->n++;
}

/* One that CRI does not have something of its own for; ours: it is the pod's alone. */
static void want_file(struct wanted *w, const char *destination, const char *source, bool readonly, bool ours, struct val userns)
{
	if (!is_wanted(w, str_of(destination)))
		want(w, OBJECT(w->arena, F(containerPath, VAL_STR(str_of(destination))), F(hostPath, VAL_STR(str_of(source))),
			       F(readonly, val_of_bool(readonly)), F(selinuxRelabel, val_of_bool(ours)), F(uidMappings, val_get(userns, uids)),
			       F(gidMappings, val_get(userns, gids))), NULL);
}

static void want_pod_files(struct wanted *w, const struct config_input *in)
{
	struct arena *a = w->arena;
	const struct sandbox *s = in->sandbox;
	bool readonly = val_bool(in->config, linux, securityContext, readonlyRootfs);
	const char *folder = sandbox_state_folder(s, a);
	bool node_ipc = runtime_is(val_get(in->config, linux, securityContext, namespaceOptions, ipc), "NODE");

	/* The pod's own root owns them. */
	struct val userns = sandbox_userns(s, a) ? val_get(sandbox_namespaces(s), usernsOptions) : VAL_EMPTY;

	want_file(w, "/etc/hostname", runtime_text(a, "%s/hostname", folder), readonly, true, userns);
	want_file(w, "/etc/hosts", runtime_text(a, "%s/hosts", folder), readonly, true, userns);
	want_file(w, "/etc/resolv.conf", runtime_text(a, "%s/resolv.conf", folder), readonly, true, userns);
	want_file(w, "/dev/shm", node_ipc ? "/dev/shm" : sandbox_shm(s, a), false, !node_ipc, node_ipc ? VAL_EMPTY : userns);
}

static void add_default(struct val_builder *b, const struct wanted *w, str destination, const char *type, const char *source,
			const char *options)
{
	if (is_wanted(w, destination) || (is_wanted(w, STR("/dev")) && str_starts(destination, STR("/dev/"))))
		return;
	val_add_item(b, mount_of(w->arena, destination, str_of(type), str_of(source), options));
}

static void add_defaults(struct val_builder *b, const struct wanted *w, bool privileged)
{
	add_default(b, w, STR("/proc"), "proc", "proc", "nosuid noexec nodev");
	add_default(b, w, STR("/dev"), "tmpfs", "tmpfs", "nosuid strictatime mode=755 size=65536k");
	add_default(b, w, STR("/dev/pts"), "devpts", "devpts", "nosuid noexec newinstance ptmxmode=0666 mode=0620 gid=5");
	add_default(b, w, STR("/dev/mqueue"), "mqueue", "mqueue", "nosuid noexec nodev");
	add_default(b, w, STR("/sys"), "sysfs", "sysfs", privileged ? "nosuid noexec nodev rw" : "nosuid noexec nodev ro");
	add_default(b, w, STR("/sys/fs/cgroup"), "cgroup", "cgroup",
		    privileged ? "nosuid noexec nodev relatime rw" : "nosuid noexec nodev relatime ro");
}

int config_mounts(const struct config_input *in, struct arena *a, struct val *ret_mounts, str *ret_propagation, struct err *err)
{
	struct val mounts = val_get(in->config, mounts), volumes;
	struct val_builder b = val_builder(a);
	int r = config_volumes(in, a, &volumes, err);

	if (r < 0)
		return r;
	size_t n = (size_t)val_len(mounts) + val_len(volumes) + 4;
	if (n > MOUNTS_MAX)
		return err_set(err, ERR_TOO_LARGE, "more than %d mounts", MOUNTS_MAX);
	struct wanted w = { a, ARENA_ARRAY(a, struct wanted_mount, n), 0 };
	for (size_t i = 0; i < val_len(mounts); i++)
		want(&w, val_at(mounts, i), in->image_mounts[i]);
	want_pod_files(&w, in);
	VAL_EACH(v, volumes)
		want(&w, *v, NULL);
	qsort(w.all, w.n, sizeof *w.all, compare_depth);
	add_defaults(&b, &w, val_bool(in->config, linux, securityContext, privileged));
	*ret_propagation = STR_NONE;
	for (size_t i = 0; i < w.n && r == 0; i++)
		r = add_wanted(in, a, &b, &w.all[i], ret_propagation, err);
	*ret_mounts = val_end_list(&b);
	return r;
}

/* ---- devices ---- */

struct devices {
	struct arena *arena;
	struct val_builder list, rules;
	size_t n;
};

static void device_add(struct devices *d, str path, const struct stat *st, str permissions)
{
	struct arena *a = d->arena;
	struct val type = S_ISBLK(st->st_mode) ? VAL_LIT("b") : VAL_LIT("c");
	struct val major = val_of_int(major(st->st_rdev)), minor = val_of_int(minor(st->st_rdev));

	d->n++;
	val_add_item(&d->list, OBJECT(a, F(path, VAL_STR(path)), F(type, type), F(major, major), F(minor, minor),
				      F(fileMode, val_of_int(st->st_mode & 07777)), F(uid, val_of_int(st->st_uid)),
				      F(gid, val_of_int(st->st_gid))));
	if (permissions.n)
		val_add_item(&d->rules, OBJECT(a, F(allow, val_of_bool(true)), F(type, type), F(major, major), F(minor, minor),
					       F(access, VAL_STR(permissions))));
}

static bool is_device(const struct stat *st) { return S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode); }

/* All of the node's, without those that every container has of its own. */
static int add_folder(struct devices *d, const char *folder, unsigned depth, struct err *err)
{
	static const char *const skipped[] = { "pts", "shm", "fd", "mqueue", ".lxc", ".lxd-mounts", ".udev" };
	enum { DEPTH_MAX = 8 };
	DIR *dir = depth < DEPTH_MAX ? opendir(folder) : NULL;
	struct dirent *e;
	int r = 0;

	while (dir && r == 0 && (e = readdir(dir))) {
		bool skip = str_eq(str_of(e->d_name), STR(".")) || str_eq(str_of(e->d_name), STR("..")) ||
			    str_eq(str_of(e->d_name), STR("console"));
		struct stat st;
		for (size_t i = 0; i < ARRAY_LEN(skipped); i++)
			skip |= str_eq(str_of(e->d_name), str_of(skipped[i]));
		const char *path = runtime_text(d->arena, "%s/%s", folder, e->d_name);
		if (skip || lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			r = add_folder(d, path, depth + 1, err);
		else if (is_device(&st) && d->n >= DEVICES_MAX)
			r = err_set(err, ERR_TOO_LARGE, "more than %d devices", DEVICES_MAX);
		else if (is_device(&st))
			device_add(d, str_of(path), &st, STR_NONE);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

/* A device, or all that are in a folder. */
static int add_given(struct devices *d, struct val device, struct err *err)
{
	str inside = val_str(device, containerPath), permissions = val_str(device, permissions), source;
	struct stat st;
	const char *path = arena_str(d->arena, val_str(device, hostPath)).p;
	/* no folder is made in its place: a device that is not there is an error */
	CLEANUP(mem_freep) char *real = realpath(path, NULL);

	if (!real)
		return err_sys(err, errno, "lstat %s", path);
	source = arena_str(d->arena, str_of(real));
	if (stat(source.p, &st) < 0)
		return err_sys(err, errno, "lstat " STR_FMT, STR_ARG(source));
	if (is_device(&st)) {
		device_add(d, inside.n ? inside : source, &st, permissions);
		return 0;
	}
	DIR *dir = S_ISDIR(st.st_mode) ? opendir(source.p) : NULL;
	struct dirent *e;
	if (!dir)
		return err_set(err, ERR_INTERNAL, STR_FMT ": not a device node", STR_ARG(source));
	while ((e = readdir(dir)) && d->n < DEVICES_MAX)
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_device(&st))
			device_add(d, arena_printf(d->arena, STR_FMT "/%s", STR_ARG(inside.n ? inside : source), e->d_name), &st,
				   permissions);
	(void)closedir(dir);
	return 0;
}

int config_devices(const struct config_input *in, struct arena *a, struct val *ret_devices, struct val *ret_rules, struct err *err)
{
	bool privileged = val_bool(in->config, linux, securityContext, privileged);
	struct devices d = { .arena = a, .list = val_builder(a), .rules = val_builder(a) };
	int r = 0;

	/* None first, then what is given; the runtime adds those that every container has. */
	val_add_item(&d.rules, OBJECT(a, F(allow, val_of_bool(privileged)), F(access, VAL_LIT("rwm"))));
	VAL_EACH(device, val_get(in->config, devices))
		if (r == 0)
			r = add_given(&d, *device, err);
	if (r == 0 && privileged)
		r = add_folder(&d, "/dev", 0, err);
	*ret_devices = val_end_list(&d.list);
	*ret_rules = val_end_list(&d.rules);
	return r;
}
