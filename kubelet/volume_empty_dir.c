/*
 * emptyDir: a folder of the pod's own, on the disk, in memory (tmpfs) or in huge pages; the volumes of content are on one, too. A file
 * "ready" in the pod's plugins folder tells that one was set up completely: from then on its content is the pod's, and nothing
 * changes owners or modes in it any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "kubelet/volume_priv.h"
#include "machinery/resources.h"

enum { FOLDER_MODE = 0777 };

/* ---- ready ---- */

static const char *ready_folder(const struct volume_setup *s)
{
	return arena_printf(s->arena, "%s/plugins/kubernetes.io~empty-dir/" STR_FMT, s->pod_folder, STR_ARG(s->volume->inner)).p;
}

static bool is_ready(const struct volume_setup *s)
{
	return access(arena_printf(s->arena, "%s/ready", ready_folder(s)).p, F_OK) == 0;
}

static int set_ready(const struct volume_setup *s, struct err *err)
{
	const char *folder = ready_folder(s);
	int r = file_make_dirs(folder, 0750, err);

	return r < 0 ? r : file_replace(arena_printf(s->arena, "%s/ready", folder).p, STR(""), 0644, err);
}

/* ---- sizes ---- */

/* What the pod can use at most; 0 when nothing is known. */
static int64_t pod_memory_limit(const struct volume_setup *s)
{
	struct val spec = val_get(s->pod, spec);
	struct quantity limit = quantity_of(val_get(spec, resources, limits, memory));

	if (limit.nanos > 0)
		return quantity_value(limit);
	const atom lists[] = { A_initContainers, A_containers };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(spec, lists[i]))
			if (quantity_of(val_get(*c, resources, limits, memory)).nanos <= 0)
				return 0;
	limit = quantity_of(val_find(pod_container_resources(s->arena, spec, A_limits), STR("memory")));
	return quantity_value(quantity_add(limit, quantity_of(val_get(spec, overhead, memory))));
}

/* The least of what the node has for pods, what the pod may use and what the volume may have. */
static int64_t memory_size(const struct volume_setup *s, struct val size_limit)
{
	int64_t size = s->node_memory;
	const int64_t limits[] = { pod_memory_limit(s), quantity_value(quantity_of(size_limit)) };

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (limits[i] > 0 && (limits[i] <= size || size <= 0))
			size = limits[i];
	return size;
}

/* ---- mounts ---- */

static int mount_at(const char *source, const char *path, const char *type, const char *options, struct err *err)
{
	char text[PATH_FD_TEXT];
	CLEANUP(volume_close) int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return volume_fail(err, errno, "open", path);
	return mount(source, path_of_fd(fd, text), type, 0, options) < 0 ? volume_fail(err, errno, "mount", path) : 0;
}

/* The file system at path: its magic number if it begins there, else 0. */
static int64_t mounted_type(const char *path, int64_t *ret_page)
{
	struct statfs fs;

	if (!volume_is_mounted(path) || statfs(path, &fs) < 0)
		return 0;
	*ret_page = (int64_t)fs.f_bsize;
	return (int64_t)fs.f_type;
}

static int mount_tmpfs(struct volume_setup *s, int64_t size, struct err *err)
{
	const char *sized = size > 0 ? arena_printf(s->arena, "size=%" PRId64, size).p : "";
	const char *no_swap = arena_printf(s->arena, "%s%snoswap", sized, *sized ? "," : "").p;
	int r = mount_at("tmpfs", s->volume->path, "tmpfs", no_swap, NULL);

	/* Older kernels have no noswap. */
	return r < 0 ? mount_at("tmpfs", s->volume->path, "tmpfs", sized, err) : 0;
}

int volume_make_disk(struct volume_setup *s, struct err *err)
{
	if (is_ready(s) && access(s->volume->path, F_OK) == 0)
		return 0;
	int r = volume_make_folder(s, FOLDER_MODE, err);
	if (r < 0)
		return r;
	(void)volume_own(s, NULL);
	return set_ready(s, err);
}

int volume_make_memory(struct volume_setup *s, struct val size_limit, struct err *err)
{
	int64_t page = 0;
	bool mounted = mounted_type(s->volume->path, &page) == TMPFS_MAGIC;

	if (mounted && is_ready(s))
		return 0;
	int r = volume_make_folder(s, FOLDER_MODE, err);
	if (r == 0 && !mounted)
		r = mount_tmpfs(s, memory_size(s, size_limit), err);
	if (r < 0)
		return r;
	(void)volume_own(s, NULL);
	return set_ready(s, err);
}

/* ---- huge pages ---- */

/* The size of pages: what the medium says, or the only one that containers ask for. */
static int huge_page_size(struct volume_setup *s, str medium, struct quantity *ret, struct err *err)
{
	struct quantity wanted = { 0 }, found = { 0 }, size;
	bool any = str_eq(medium, STR("HugePages"));
	struct val lists[] = { val_get(s->pod, spec, containers), val_get(s->pod, spec, initContainers),
			       LIST(s->arena, val_get(s->pod, spec)) };
	int r = any ? 0 : quantity_parse(str_skip(medium, strlen("HugePages-")), &wanted, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			VAL_EACH_MEMBER(m, val_get(*c, resources, requests)) {
				str name = atom_str(m->key);
				if (!resource_is_huge_page(name))
					continue;
				if ((r = quantity_parse(str_skip(name, strlen("hugepages-")), &size, err)) < 0)
					return r;
				if (any && found.nanos && quantity_cmp(found, size))
					return err_set(err, ERR_INVALID,
						       "medium: " STR_FMT " can't be used if container requests multiple huge page sizes",
						       STR_ARG(medium));
				if (any || quantity_cmp(size, wanted) == 0)
					found = size;
			}
	if (!found.nanos)
		return err_set(err, ERR_INVALID,
			       "medium " STR_FMT ": hugePages storage requested, but there is no resource request for huge pages",
			       STR_ARG(medium));
	*ret = found;
	return 0;
}

static int make_huge(struct volume_setup *s, str medium, struct err *err)
{
	char has[QUANTITY_TEXT_MAX], wants[QUANTITY_TEXT_MAX];
	struct quantity size;
	int64_t page = 0;
	bool mounted = mounted_type(s->volume->path, &page) == HUGETLBFS_MAGIC;
	int r;

	if ((mounted && is_ready(s) && str_eq(medium, STR("HugePages"))))
		return 0;
	if ((r = volume_make_folder(s, FOLDER_MODE, err)) < 0 || (r = huge_page_size(s, medium, &size, err)) < 0)
		return r;
	if (mounted && page != quantity_value(size))
		return err_set(err, ERR_INVALID, "pod " STR_FMT ": mounted dir %s pagesize '%s' and requested medium size '%s' differ",
			       STR_ARG(val_str(s->pod, metadata, uid)), s->volume->path,
			       quantity_format(quantity_of_int(page, QUANTITY_BINARY_SI), has).p, quantity_format(size, wants).p);
	if (!mounted) {
		const char *options = arena_printf(s->arena, "pagesize=%" PRId64, quantity_value(size)).p;
		if ((r = mount_at("nodev", s->volume->path, "hugetlbfs", options, err)) < 0)
			return r;
	}
	if (is_ready(s))
		return 0;
	(void)volume_own(s, NULL);
	return set_ready(s, err);
}

static int set_up(struct volume_setup *s, struct err *err)
{
	str medium = val_str(s->source, medium);

	if (!medium.n)
		return volume_make_disk(s, err);
	if (str_eq(medium, STR("Memory")))
		return volume_make_memory(s, val_get(s->source, sizeLimit), err);
	if (str_eq(medium, STR("HugePages")) || str_starts(medium, STR("HugePages-")))
		return make_huge(s, medium, err);
	return err_set(err, ERR_INVALID, "unknown storage medium \"" STR_FMT "\"", STR_ARG(medium));
}

const struct volume_kind volume_kind_empty_dir = { .folder = "kubernetes.io~empty-dir", .managed = true, .set_up = set_up };

/* ---- places for other volumes ---- */

struct nested {
	struct volume_setup *setup;
	int top;
	struct err *err;
};

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

static size_t lower_bound(const str *all, size_t n, str text)
{
	size_t low = 0;

	for (size_t high = n; low < high;) {
		size_t middle = (low + high) / 2;
		if (str_cmp(all[middle], text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether another mount, itself below the first `from` bytes of path, has path inside. */
static bool is_inside_another(const str *all, size_t n, str path, size_t from)
{
	for (size_t i = from; i < path.n; i++) {
		str above = str_head(path, i);
		size_t at = path.p[i] == '/' ? lower_bound(all, n, above) : n;
		if (at < n && str_eq(all[at], above))
			return true;
	}
	return false;
}

/* Folders for the mounts (sorted) below a path, but not for those that are below another one of them. */
static int make_below(struct nested *n, const str *all, size_t n_all, str path)
{
	str prefix = arena_join(n->setup->arena, path, STR("/"));

	for (size_t i = lower_bound(all, n_all, prefix); i < n_all && str_starts(all[i], prefix); i++) {
		if ((i > 0 && str_eq(all[i], all[i - 1])) || is_inside_another(all, n_all, all[i], prefix.n))
			continue;
		int fd = path_mkdirs(n->top, arena_str(n->setup->arena, str_skip(all[i], prefix.n)).p, 0755, n->err);
		if (fd < 0)
			return err_wrap(n->err, fd, "unable to create nested volume mountpoints");
		close(fd);
	}
	return 0;
}

static int nested_of_container(struct nested *n, struct val mounts)
{
	str *all = ARENA_ARRAY(n->setup->arena, str, val_len(mounts) + 1);
	size_t n_all = 0;

	VAL_EACH(m, mounts) {
		str path = path_clean(n->setup->arena, val_str(*m, mountPath));
		all[n_all++] = str_eq(path, STR("/")) ? STR("") : path;
	}
	if (n_all)
		qsort(all, n_all, sizeof *all, by_text);
	VAL_EACH(m, mounts) {
		if (!str_eq(val_str(*m, name), n->setup->volume->name))
			continue;
		str at = path_clean(n->setup->arena, val_str(*m, mountPath));
		int r = make_below(n, all, n_all, str_eq(at, STR("/")) ? STR("") : at);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool mounts_volume(struct val mounts, str name)
{
	VAL_EACH(m, mounts)
		if (str_eq(val_str(*m, name), name))
			return true;
	return false;
}

int volume_make_nested(struct volume_setup *s, struct err *err)
{
	const atom lists[] = { A_initContainers, A_containers, A_ephemeralContainers };
	CLEANUP(volume_close) int top = path_open_tree(s->volume->path, err);
	struct nested n = { s, top, err };

	if (top < 0)
		return top;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(val_get(s->pod, spec), lists[i])) {
			struct val mounts = val_get(*c, volumeMounts);
			int r = mounts_volume(mounts, s->volume->name) ? nested_of_container(&n, mounts) : 0;
			if (r < 0)
				return r;
		}
	return 0;
}
