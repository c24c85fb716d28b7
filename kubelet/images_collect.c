/*
 * Images that nobody uses, when the disk fills: those that were used longest ago go first, until usage is below the low mark. An image must be
 * known for a while before it goes: it may have been pulled for a container that is about to start.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/images_priv.h"

enum { NODE_IMAGES_MAX = 50, NODE_NAMES_MAX = 5 };

/* What is known of an image of the node. */
struct known {
	int64_t seen_ns, used_ns;              /* as clock_now_ns counts; used_ns 0: never */
	int64_t size;
	bool used, pinned, there;
	bool old;                              /* there before this kubelet: for how long is unknown */
	size_t id_n;
	char id[];
};

static str known_id(const struct known *k) { return str_span(k->id, k->id_n); }

static struct known *known_get(struct images_manager *m, str id, int64_t now_ns)
{
	struct known *k = map_get(&m->images, id);

	if (k)
		return k;
	k = mem_zalloc(sizeof(*k) + id.n);
	memcpy(k->id, id.p, k->id_n = id.n);
	k->seen_ns = now_ns;
	k->old = !m->looked;
	(void)map_put(&m->images, known_id(k), k);
	return k;
}

static void known_remove(struct images_manager *m, struct known *k)
{
	(void)map_remove(&m->images, known_id(k));
	free(k);
}

void images_collect_done(struct images_manager *m)
{
	struct map_iter it = map_iter(&m->images);
	struct known *k;

	while ((k = map_next(&it, NULL)))
		free(k);
	map_done(&m->images);
}

static bool has(struct val list, str text)
{
	VAL_EACH(one, list)
		if (str_eq(val_as_str(*one), text))
			return true;
	return false;
}

static bool is_used(struct val image, struct val in_use)
{
	if (has(in_use, val_str(image, id)))
		return true;
	VAL_EACH(name, val_get(image, repoTags))
		if (has(in_use, val_as_str(*name)))
			return true;
	VAL_EACH(name, val_get(image, repoDigests))
		if (has(in_use, val_as_str(*name)))
			return true;
	return false;
}

static int images_list(struct images_manager *m, struct arena *a, struct val *ret, struct err *err)
{
	struct val answer;
	int r = cri_ask(m->o.cri, &rpc_ImageService_ListImages, a, VAL_EMPTY_OBJECT, 0, &answer, err);

	if (r == 0)
		*ret = val_get(answer, images);
	return r;
}

/* (suspends) Brings what is known up to date. */
static int look(struct images_manager *m, struct arena *a, struct val in_use, struct val *ret_images, struct err *err)
{
	int64_t now_ns = clock_now_ns();
	struct known *k;
	int r = images_list(m, a, ret_images, err);

	if (r < 0)
		return r;
	struct map_iter it = map_iter(&m->images);
	while ((k = map_next(&it, NULL)))
		k->there = false;
	VAL_EACH(image, *ret_images) {
		k = known_get(m, val_str(*image, id), now_ns);
		k->there = true;
		k->size = val_int(*image, size);
		k->pinned = val_bool(*image, pinned);
		k->used = is_used(*image, in_use);
		if (k->used)
			k->used_ns = now_ns;
	}
	m->looked = true;
	it = map_iter(&m->images);
	while ((k = map_next(&it, NULL)))
		if (!k->there)
			known_remove(m, k);
	return 0;
}

static int by_use(const void *x, const void *y)
{
	const struct known *a = *(struct known *const *)x, *b = *(struct known *const *)y;

	if (a->used_ns != b->used_ns)
		return a->used_ns < b->used_ns ? -1 : 1;
	return a->seen_ns == b->seen_ns ? str_cmp(known_id(a), known_id(b)) : a->seen_ns < b->seen_ns ? -1 : 1;
}

/* Those that may go, the first to go first. */
static struct known **candidates(struct images_manager *m, struct arena *a, size_t *ret_n)
{
	struct known **all = ARENA_ARRAY(a, struct known *, map_len(&m->images) + 1), *k;
	struct map_iter it = map_iter(&m->images);

	*ret_n = 0;
	while ((k = map_next(&it, NULL)))
		if (!k->used && !k->pinned)
			all[(*ret_n)++] = k;
	qsort(all, *ret_n, sizeof(*all), by_use);
	return all;
}

/* (suspends) Bytes that it had, or an error. */
static int64_t image_free(struct images_manager *m, struct known *k, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str id = arena_str(&a, known_id(k));
	struct val answer, spec = OBJECT(&a, F(image, VAL_STR(id)));
	int64_t size = k->size;
	int r;

	log_info("removing an image to free space", KV("image", id), KV("bytes", size));
	r = cri_ask(m->o.cri, &rpc_ImageService_RemoveImage, &a, OBJECT(&a, F(image, spec)), 0, &answer, err);
	if (r < 0)
		return r;
	if ((k = map_get(&m->images, id))) /* another collection may have forgotten it meanwhile */
		known_remove(m, k);
	return size;
}

/* (suspends) Removes images of age until so much is free. Bytes freed; the first error is told after all others were tried. */
static int64_t free_images(struct images_manager *m, struct arena *a, int64_t wanted, struct err *err)
{
	size_t n, failed = 0;
	struct known **all = candidates(m, a, &n);
	str *ids = ARENA_ARRAY(a, str, n + 1);
	int64_t freed = 0, now_ns = clock_now_ns();
	struct err first = ERR_INIT;

	for (size_t i = 0; i < n; i++)
		ids[i] = arena_str(a, known_id(all[i])); /* removing suspends: others may go meanwhile */
	for (size_t i = 0; i < n && freed < wanted; i++) {
		struct known *k = map_get(&m->images, ids[i]);
		struct err one = ERR_INIT;
		if (!k || k->used || (!k->old && now_ns - k->seen_ns < m->o.gc_min_age_s * NS_PER_S))
			continue;
		int64_t got = image_free(m, k, &one);
		if (got == -ERR_CANCELED)
			return err_set(err, ERR_CANCELED, "%s", one.msg);
		if (got < 0 && failed++ == 0)
			first = one;
		freed += MAX(got, (int64_t)0);
	}
	if (failed)
		return err_set(err, ERR_INTERNAL, "wanted to free %lld bytes, but freed %lld bytes space with errors in image deletion: %s",
			       (long long)wanted, (long long)freed, first.msg);
	return freed;
}

/* (suspends) Those that were not used for the maximum age; what fails stays for the next time. */
static int64_t free_old(struct images_manager *m, struct arena *a)
{
	int64_t freed = 0, now_ns = clock_now_ns(), age_ns = m->o.gc_max_age_s * NS_PER_S;
	size_t n;
	struct known **all = candidates(m, a, &n);
	str *ids = ARENA_ARRAY(a, str, n + 1);

	for (size_t i = 0; i < n; i++)
		ids[i] = arena_str(a, known_id(all[i]));
	for (size_t i = 0; i < n && age_ns; i++) {
		struct known *k = map_get(&m->images, ids[i]);
		/* One that was never seen in use may have been used before this process began. */
		if (k && !k->used && now_ns - MAX(k->used_ns, k->seen_ns) > age_ns)
			freed += MAX(image_free(m, k, NULL), (int64_t)0);
	}
	return freed;
}

/* ---- the disk ---- */

static str size_text(struct arena *a, int64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double size = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024)
		return arena_printf(a, "%lld B", (long long)bytes);
	for (; size >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
		size /= 1024;
	return arena_printf(a, "%.1f %s", size, units[unit]);
}

static void tell_node(const struct images_manager *m, const char *reason, str message)
{
	if (m->o.event)
		m->o.event(VAL_EMPTY, STR_NONE, true, reason, message, m->o.arg);
}

/* (suspends) Of the file system that images are on. */
static int disk_look(struct images_manager *m, struct arena *a, int64_t *ret_capacity, int64_t *ret_available, struct err *err)
{
	struct statvfs v;
	struct val answer;
	int r = cri_ask(m->o.cri, &rpc_ImageService_ImageFsInfo, a, VAL_EMPTY_OBJECT, 0, &answer, err);

	if (r < 0)
		return r;
	str path = arena_str(a, val_str(val_at(val_get(answer, imageFilesystems), 0), fsId, mountpoint));
	if (!path.n)
		return err_set(err, ERR_INTERNAL, "the runtime does not say where images are");
	if (statvfs(path.p, &v) < 0)
		return err_sys(err, errno, "statvfs %s", path.p);
	*ret_capacity = (int64_t)(v.f_blocks * v.f_frsize);
	*ret_available = MIN((int64_t)(v.f_bavail * v.f_frsize), *ret_capacity);
	if (!*ret_capacity) {
		tell_node(m, "InvalidDiskCapacity", STR("invalid capacity 0 on image filesystem"));
		return err_set(err, ERR_INTERNAL, "invalid capacity 0 on image filesystem");
	}
	return 0;
}

/* (suspends) */
static int64_t free_above_mark(struct images_manager *m, struct arena *a, struct err *err)
{
	int64_t capacity = 0, available = 0;
	int r = disk_look(m, a, &capacity, &available, err);

	if (r < 0)
		return r;
	int percent = 100 - (int)(available * 100 / capacity);
	if (percent < m->o.gc_high_percent)
		return 0;
	int64_t wanted = capacity * (100 - m->o.gc_low_percent) / 100 - available;
	log_info("the disk of images is too full", KV("percent", percent), KV("wanted", wanted));
	int64_t freed = free_images(m, a, wanted, err);
	if (freed < 0 || freed >= wanted)
		return freed;
	str size = size_text(a, capacity);
	str message = arena_printf(a,
				   "Insufficient free disk space on the node's image filesystem (%d%% of " STR_FMT " used). "
				   "Failed to free sufficient space by deleting unused images (freed %lld bytes). "
				   "Investigate disk usage, as it could be used by active images, logs, volumes, or other data.",
				   percent, STR_ARG(size), (long long)freed);
	tell_node(m, "FreeDiskSpaceFailed", message);
	return err_set(err, ERR_UNAVAILABLE, STR_FMT, STR_ARG(message));
}

/* (suspends) Records of images that are gone are of no use; those of a list that cannot be had stay. */
static void prune(struct images_manager *m, struct arena *a)
{
	struct val images;
	int64_t began_s = clock_wall_ns() / NS_PER_S;

	if (images_list(m, a, &images, NULL) == 0)
		image_records_prune(m, images, began_s);
}

int64_t images_manager_collect(struct images_manager *m, struct val in_use, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val images;
	int r = look(m, &a, in_use, &images, err);

	if (r < 0)
		return r;
	int64_t old = free_old(m, &a), freed = free_above_mark(m, &a, err);
	if (old > 0 || freed > 0)
		prune(m, &a);
	return freed < 0 ? freed : old + freed;
}

int64_t images_manager_remove_unused(struct images_manager *m, struct val in_use, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val images;
	int r = look(m, &a, in_use, &images, err);

	if (r < 0)
		return r;
	int64_t freed = free_images(m, &a, INT64_MAX, err);
	prune(m, &a);
	return freed;
}

/* ---- for the Node ---- */

static int by_size(const void *x, const void *y)
{
	const struct val *a = x, *b = y;
	int64_t size_a = val_int(*a, size), size_b = val_int(*b, size);

	if (size_a != size_b)
		return size_a > size_b ? -1 : 1;
	return str_cmp(val_str(*b, id), val_str(*a, id));
}

static struct val names_of(struct arena *a, struct val image)
{
	struct val_builder names = val_builder(a);

	VAL_EACH(name, val_get(image, repoDigests))
		if (names.n < NODE_NAMES_MAX)
			val_add_item(&names, *name);
	VAL_EACH(name, val_get(image, repoTags))
		if (names.n < NODE_NAMES_MAX)
			val_add_item(&names, *name);
	return val_end_list(&names);
}

int images_of_node(struct images_manager *m, struct arena *a, struct val *ret, struct err *err)
{
	struct val_builder all = val_builder(a);
	struct val images;
	int r = images_list(m, a, &images, err);

	if (r < 0)
		return r;
	size_t n = val_len(images);
	struct val *sorted = ARENA_ARRAY(a, struct val, n + 1);
	if (n)
		memcpy(sorted, images.items, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_size);
	for (size_t i = 0; i < MIN(n, (size_t)NODE_IMAGES_MAX); i++) {
		struct val names = names_of(a, sorted[i]);
		val_add_item(&all, OBJECT(a, F(names, val_len(names) ? names : VAL_EMPTY), F(sizeBytes, val_get(sorted[i], size))));
	}
	*ret = val_end_list(&all);
	return 0;
}
