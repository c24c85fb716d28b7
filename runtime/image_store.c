/*
 * The store as others see it: opening, finding, naming, removing. A change is: take the lock, read the index, change it, replace
 * the file. Reading looks whether the file is another one than before, which costs one system call.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json.h"
#include "runtime/image_priv.h"

/* ---- opening ---- */

static int make_folders(const char *root, struct err *err)
{
	static const char *const folders[] = { "blobs/sha256", "ingest", "leases", "trash" };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = file_make_dirs(root, 0711, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(folders); i++)
		r = file_make_dirs(arena_printf(&a, "%s/%s", root, folders[i]).p, 0700, err);
	return r;
}

static char **copy_files(const char *const *files)
{
	size_t n = 0;
	while (files && files[n])
		n++;
	char **copy = mem_array(n + 1, sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = strdup(files[i]);
	copy[n] = NULL;
	return copy;
}

static int refresh(struct images *m, struct err *err)
{
	struct image_index x;
	if (image_index_is_fresh(m->root, &m->index))
		return 0;
	int r = image_index_load(m->root, &x, err);
	if (r < 0)
		return r;
	image_index_done(&m->index);
	m->index = x;
	return 0;
}

int images_open(const struct images_options *o, struct images **ret, struct err *err)
{
	int r = make_folders(o->root, err);
	if (r < 0)
		return r;
	struct images *m = mem_zalloc(sizeof(*m));
	m->root = strdup(o->root);
	m->registry_config = o->registry_config ? strdup(o->registry_config) : NULL;
	m->credential_files = copy_files(o->credential_files);
	m->plain_http = o->plain_http;
	CLEANUP(fd_closep) int lock = images_lock(m->root, err);
	if ((r = lock) >= 0)
		image_clean(m->root);
	if (r < 0 || (r = refresh(m, err)) < 0) {
		images_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void images_free(struct images *m)
{
	if (!m)
		return;
	image_index_done(&m->index);
	for (char **f = m->credential_files; *f; f++)
		free(*f);
	free(m->credential_files);
	free(m->registry_config);
	free(m->root);
	free(m);
}

/* ---- finding ---- */

static bool has(const str *names, size_t n, str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

/* "a12f" or "sha256:a12f": the only image whose id begins so. */
static int find_by_id(const struct image_index *x, str name, struct image_record **ret, struct err *err)
{
	struct image_record *found = NULL;
	str prefix = str_starts(name, STR("sha256:")) ? str_skip(name, 7) : name;
	for (size_t i = 0; prefix.n && i < x->n; i++) {
		if (!str_starts(str_skip(x->records[i].id, 7), prefix))
			continue;
		if (found)
			return err_set(err, ERR_INVALID, "image id \"" STR_FMT "\" is ambiguous: several images begin with it", STR_ARG(name));
		found = &x->records[i];
	}
	*ret = found;
	return 0;
}

static int find_record(const struct image_index *x, str name, struct image_record **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct image_ref ref;
	*ret = NULL;
	if (!digest_is_valid(name) && image_ref_parse(&a, name, &ref, NULL) == 0)
		for (size_t i = 0; i < x->n && !*ret; i++)
			if (has(x->records[i].tags, x->records[i].n_tags, ref.text) ||
			    has(x->records[i].digests, x->records[i].n_digests, ref.text))
				*ret = &x->records[i];
	if (*ret)
		return 0;
	int r = find_by_id(x, name, ret, err);
	if (r == 0 && !*ret)
		return err_set(err, ERR_NOT_FOUND, "image \"" STR_FMT "\": not found", STR_ARG(str_head(name, 300)));
	return r;
}

static const str *copy_names(struct arena *a, const str *names, size_t n)
{
	str *copy = ARENA_ARRAY(a, str, n);
	for (size_t i = 0; i < n; i++)
		copy[i] = arena_str(a, names[i]);
	return copy;
}

static int read_blob(struct images *m, struct arena *a, str digest, size_t max, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(max);
	int r = image_blob_read(m->root, digest, &b, err);
	if (r == 0)
		*ret = arena_str(a, buf_str(&b));
	return r;
}

static int fill(struct images *m, const struct image_record *rec, struct arena *a, struct image *ret, struct err *err)
{
	struct image image = { .id = arena_str(a, rec->id), .manifest_digest = arena_str(a, rec->manifest), .pinned = rec->pinned,
			       .tags = copy_names(a, rec->tags, rec->n_tags), .n_tags = rec->n_tags,
			       .digests = copy_names(a, rec->digests, rec->n_digests), .n_digests = rec->n_digests };
	struct image_manifest manifest;
	str text;

	int r = read_blob(m, a, image.manifest_digest, IMAGE_MANIFEST_MAX, &text, err);
	if (r < 0 || (r = image_manifest_parse(a, text, STR_NONE, &manifest, err)) < 0)
		return r;
	image.size = text.n + (uint64_t)manifest.config.size;
	image.n_layers = manifest.n_layers;
	str *layers = ARENA_ARRAY(a, str, manifest.n_layers);
	for (size_t i = 0; i < manifest.n_layers; i++) {
		layers[i] = manifest.layers[i].digest;
		image.size += (uint64_t)manifest.layers[i].size;
	}
	image.layers = layers;
	if ((r = read_blob(m, a, image.id, IMAGE_CONFIG_MAX, &text, err)) < 0 ||
	    (r = json_decode(a, text, &(struct json_decode_options){ 0 }, &image.config, err)) < 0 ||
	    (r = image_diff_ids(a, image.config, image.n_layers, &image.diff_ids, err)) < 0)
		return r;
	*ret = image;
	return 0;
}

int image_find(struct images *m, str name, struct arena *a, struct image *ret, struct err *err)
{
	struct image_record *rec;
	int r = refresh(m, err);
	if (r < 0 || (r = find_record(&m->index, name, &rec, err)) < 0)
		return r;
	r = fill(m, rec, a, ret, err);
	return r < 0 ? err_wrap(err, -ERR_INTERNAL, "image " STR_FMT " is damaged; remove and pull it again", STR_ARG(rec->id)) : 0;
}

int image_list(struct images *m, struct arena *a, struct image **ret, size_t *ret_n, struct err *err)
{
	struct err why = ERR_INIT;
	int r = refresh(m, err);
	if (r < 0)
		return r;
	struct image *list = ARENA_ARRAY(a, struct image, m->index.n);
	size_t n = 0;
	for (size_t i = 0; i < m->index.n; i++) {
		if (fill(m, &m->index.records[i], a, &list[n], &why) == 0)
			n++;
		else
			log_warn("ignoring a damaged image", KV("image", m->index.records[i].id), KV("error", &why));
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

/* ---- changing ---- */

static void drop_name(str *names, size_t *n, str name)
{
	size_t kept = 0;
	for (size_t i = 0; i < *n; i++)
		if (!str_eq(names[i], name))
			names[kept++] = names[i];
	*n = kept;
}

static void drop_record(struct image_index *x, const struct image_record *rec)
{
	size_t at = (size_t)(rec - x->records);
	memmove(&x->records[at], &x->records[at + 1], (x->n - at - 1) * sizeof(*rec));
	x->n--;
}

/* Under the lock: change(index) and the file. */
static int change(struct images *m, int (*fn)(struct image_index *x, void *arg, struct err *err), void *arg, struct err *err)
{
	struct image_index x = { 0 };
	CLEANUP(fd_closep) int lock = images_lock(m->root, err);
	int r = lock < 0 ? lock : image_index_load(m->root, &x, err);
	if (r < 0)
		return r;
	r = fn(&x, arg, err);
	if (r == 0)
		r = image_index_save(m->root, &x, err);
	image_index_done(&x);
	return r;
}

static int remove_names(struct image_index *x, void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const str *name = arg;
	struct image_record *rec;
	struct image_ref ref;
	int r = find_record(x, *name, &rec, err);
	if (r < 0)
		return r;
	bool by_tag = image_ref_parse(&a, *name, &ref, NULL) == 0 && has(rec->tags, rec->n_tags, ref.text);
	if (by_tag && rec->n_tags > 1)
		drop_name(rec->tags, &rec->n_tags, ref.text);
	else
		drop_record(x, rec);
	return 0;
}

int image_remove(struct images *m, str name, struct err *err) { return change(m, remove_names, &name, err); }

struct pin_change {
	str name;
	bool pinned;
};

static int set_pin(struct image_index *x, void *arg, struct err *err)
{
	const struct pin_change *p = arg;
	struct image_record *rec;
	int r = find_record(x, p->name, &rec, err);
	if (r == 0)
		rec->pinned = p->pinned;
	return r;
}

int image_pin(struct images *m, str name, bool pinned, struct err *err)
{
	return change(m, set_pin, &(struct pin_change){ name, pinned }, err);
}

/* ---- new images ---- */

struct new_image {
	str id, manifest;
	const struct image_names *names;
};

static void add_names(struct arena *a, str **names, size_t *n, const str *more, size_t n_more)
{
	str *all = ARENA_ARRAY(a, str, *n + n_more);
	if (*n)
		memcpy(all, *names, *n * sizeof(str));
	for (size_t i = 0; i < n_more; i++)
		if (!has(all, *n, more[i]))
			all[(*n)++] = more[i];
	*names = all;
}

static int add_image(struct image_index *x, void *arg, struct err *err)
{
	const struct new_image *new = arg;
	struct image_record *all = ARENA_ARRAY(&x->arena, struct image_record, x->n + 1), *rec = NULL;

	(void)err;
	if (x->n)
		memcpy(all, x->records, x->n * sizeof(*all));
	x->records = all;
	for (size_t i = 0; i < x->n; i++) {
		if (str_eq(all[i].id, new->id))
			rec = &all[i];
		for (size_t k = 0; k < new->names->n_tags; k++)
			drop_name(all[i].tags, &all[i].n_tags, new->names->tags[k]);
		for (size_t k = 0; k < new->names->n_digests; k++)
			drop_name(all[i].digests, &all[i].n_digests, new->names->digests[k]);
	}
	if (!rec) {
		rec = &all[x->n++];
		*rec = (struct image_record){ .id = new->id };
	}
	rec->manifest = new->manifest;
	add_names(&x->arena, &rec->tags, &rec->n_tags, new->names->tags, new->names->n_tags);
	add_names(&x->arena, &rec->digests, &rec->n_digests, new->names->digests, new->names->n_digests);
	return 0;
}

/* A renamed blob is on disk once its folder is. */
static int sync_blobs(const char *root, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *path = arena_printf(&a, "%s/blobs/sha256", root).p;
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) < 0 ? err_sys(err, errno, "%s", path) : 0;
}

int image_commit(struct images *m, str id, str manifest, const struct image_names *names, struct err *err)
{
	int r = sync_blobs(m->root, err);
	return r < 0 ? r : change(m, add_image, &(struct new_image){ id, manifest, names }, err);
}

/* ---- collecting ---- */

struct collect_call {
	const char *root;
	uint64_t freed;
};

static int collect(void *arg, struct err *err)
{
	struct collect_call *c = arg;
	return image_collect_now(c->root, &c->freed, err);
}

int images_collect(struct images *m, uint64_t *ret_freed, struct err *err)
{
	struct collect_call c = { m->root, 0 };
	int r = fiber_blocking(collect, &c, err);
	if (r == 0 && ret_freed)
		*ret_freed = c.freed;
	return r;
}
