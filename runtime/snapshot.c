/* Opening, what is known of layers and roots, collecting. */
#include "runtime/snapshot_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "runtime/layer.h"

enum { LAYERS_FILE_MAX = 128 << 10, NAMES_MAX = 64 << 20 };

/* ---- folders ---- */

int snapshot_clear(int top, const char *path, struct err *err)
{
	int r = path_remove(top, path, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int snapshot_make_folder(int top, const char *path, mode_t mode, struct err *err)
{
	if (mkdirat(top, path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "mkdir %s", path);
	return fchmodat(top, path, mode, 0) < 0 ? err_sys(err, errno, "chmod %s", path) : 0;
}

int snapshot_link(int top, uint64_t number, const char *id, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *name = arena_printf(&a, "l/%llu", (unsigned long long)number).p;
	int r = snapshot_clear(top, name, err);
	if (r < 0)
		return r;
	if (symlinkat(arena_printf(&a, "../layers/%s/fs", id).p, top, name) < 0)
		return err_sys(err, errno, "%s", name);
	return 0;
}

/* ---- ids ---- */

int snapshot_chain(struct arena *a, const struct image *image, bool copy, char (**ret_ids)[SNAPSHOT_ID + 1], size_t *ret_n,
		   struct err *err)
{
	char(*ids)[SNAPSHOT_ID + 1] = arena_alloc(a, (image->n_layers + 1) * sizeof(*ids), 1);
	for (size_t i = 0; i < image->n_layers; i++) {
		str diff = image->diff_ids[i];
		if (!digest_is_valid(diff))
			return err_set(err, ERR_INVALID, "image " STR_FMT ": layer %zu has no valid diff id", STR_ARG(image->id), i);
		if (i)
			sha256_hex(arena_printf(a, "sha256:%s " STR_FMT, ids[i - 1], STR_ARG(diff)), ids[i]);
		else
			memcpy(ids[0], arena_str(a, str_skip(diff, 7)).p, sizeof(ids[0]));
	}
	bool last = copy && image->n_layers;
	*ret_ids = last ? ids + image->n_layers - 1 : ids;
	*ret_n = last ? 1 : image->n_layers;
	return 0;
}

static bool is_id(str name)
{
	bool ok = name.n == SNAPSHOT_ID;
	for (size_t i = 0; ok && i < name.n; i++)
		ok = (name.p[i] >= '0' && name.p[i] <= '9') || (name.p[i] >= 'a' && name.p[i] <= 'f');
	return ok;
}

struct snapshot_layer *snapshot_layer_add(struct snapshots *s, bool copy, const char *id)
{
	struct snapshot_layer *l = mem_zalloc(sizeof(*l));
	memcpy(l->id, id, SNAPSHOT_ID);
	l->number = ++s->last_number;
	map_put(snapshot_layers(s, copy), str_of(l->id), l);
	return l;
}

void snapshot_layer_drop(struct snapshots *s, bool copy, struct snapshot_layer *l)
{
	map_remove(snapshot_layers(s, copy), str_of(l->id));
	free(l);
}

void snapshot_root_free(struct snapshot_root *r)
{
	free(r->key);
	free(r->ids);
	free(r);
}

/* ---- what is there ---- */

static int names_in(struct snapshots *s, const char *folder, struct buf *ret, struct err *err)
{
	CLEANUP(fd_closep) int fd = path_open(s->top, folder, O_RDONLY | O_DIRECTORY, err);
	return fd < 0 ? fd : layer_folder_names(fd, ret, err);
}

/* What was being made or removed. Nothing of ours is mounted there; whatever is must go first. */
static int empty_tmp(struct snapshots *s, struct err *err)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(NAMES_MAX);
	CLEANUP(fd_closep) int tmp = path_open(s->top, "tmp", O_PATH | O_DIRECTORY, err);
	int r = tmp < 0 ? tmp : snapshot_unmount(s->root, "tmp", err);
	if (r == 0)
		r = layer_folder_names(tmp, &names, err);
	for (size_t at = 0; r == 0 && at < names.n; at += strlen(names.p + at) + 1)
		r = snapshot_clear(tmp, names.p + at, err);
	return r;
}

static int empty_links(struct snapshots *s, struct err *err)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(NAMES_MAX);
	CLEANUP(fd_closep) int folder = path_open(s->top, "l", O_PATH | O_DIRECTORY, err);
	int r = folder < 0 ? folder : layer_folder_names(folder, &names, err);
	for (size_t at = 0; r == 0 && at < names.n; at += strlen(names.p + at) + 1)
		r = snapshot_clear(folder, names.p + at, err);
	return r;
}

static int load_layer(struct snapshots *s, bool copy, const char *id, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(32);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int64_t n = 0;
	if (!copy && (file_read(arena_printf(&a, "%s/layers/%s/n", s->root, id).p, &text, NULL) < 0 || !str_to_i64(buf_str(&text), &n) ||
		      n <= 0)) {
		log_warn("a layer without its number is unpacked again", KV("layer", id));
		return snapshot_clear(s->top, arena_printf(&a, "layers/%s", id).p, err);
	}
	uint64_t last = s->last_number;
	struct snapshot_layer *l = snapshot_layer_add(s, copy, id);
	l->ready = true;
	l->number = (uint64_t)n;
	s->last_number = MAX(last, l->number);
	return copy ? 0 : snapshot_link(s->top, l->number, id, err);
}

static int load_layers(struct snapshots *s, bool copy, struct err *err)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(NAMES_MAX);
	int r = names_in(s, snapshot_folder(copy), &names, err);
	for (size_t at = 0; r == 0 && at < names.n; at += strlen(names.p + at) + 1)
		if (is_id(str_of(names.p + at)))
			r = load_layer(s, copy, names.p + at, err);
	return r;
}

/* "copy" and an id, or ids; a line each. */
static bool parse_root(struct snapshot_root *root, str text)
{
	str line;
	root->ids = mem_array(text.n / SNAPSHOT_ID + 1, sizeof(*root->ids));
	while (text.n) {
		str_cut(text, '\n', &line, &text);
		if (!root->n_ids && !root->copy && str_eq(line, STR("copy"))) {
			root->copy = true;
			continue;
		}
		if (!is_id(line))
			return false;
		memcpy(root->ids[root->n_ids], line.p, line.n);
		root->ids[root->n_ids++][line.n] = '\0';
	}
	return !root->copy || root->n_ids <= 1;
}

static int load_roots(struct snapshots *s, struct err *err)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(NAMES_MAX);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = names_in(s, "mounts", &names, err);
	for (size_t at = 0; r == 0 && at < names.n; at += strlen(names.p + at) + 1) {
		CLEANUP(buf_done) struct buf text = BUF_INIT(LAYERS_FILE_MAX);
		struct snapshot_root *root = mem_zalloc(sizeof(*root));
		root->key = strdup(names.p + at);
		root->made = true;
		/* one that cannot be read is still known, so that it can be removed */
		const char *file = arena_printf(&a, "%s/mounts/%s/layers", s->root, root->key).p;
		if (file_read(file, &text, NULL) < 0 || !parse_root(root, buf_str(&text)))
			log_warn("what a container's root is made of cannot be read", KV("key", root->key));
		map_put(&s->roots, str_of(root->key), root);
	}
	return r;
}

/* ---- opening ---- */

static int open_folders(struct snapshots *s, const char *root, struct err *err)
{
	static const struct {
		const char *name;
		mode_t mode;
	} folders[] = { { "layers", 0700 }, { "trees", 0700 }, { "l", 0700 }, { "tmp", 0700 }, { "mounts", 0711 }, { "empty", 0755 } };
	int r = file_make_dirs(root, 0711, err);
	if (r < 0)
		return r;
	s->root = realpath(root, NULL);
	s->top = s->root ? open(s->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (s->top < 0)
		return err_sys(err, errno, "%s", root);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(folders); i++)
		r = snapshot_make_folder(s->top, folders[i].name, folders[i].mode, err);
	return r;
}

int snapshots_open(const char *root, struct snapshots **ret, struct err *err)
{
	struct snapshots *s = mem_zalloc(sizeof(*s));
	fiber_cond_init(&s->changed, "layers and roots");
	s->top = -1;
	int r = open_folders(s, root, err);
	if (r == 0)
		r = empty_tmp(s, err);
	if (r == 0)
		r = empty_links(s, err);
	if (r == 0)
		r = load_layers(s, false, err);
	if (r == 0)
		r = load_layers(s, true, err);
	if (r == 0)
		r = load_roots(s, err);
	if (r < 0) {
		snapshots_free(s);
		return err_wrap(err, r, "snapshots in %s", root);
	}
	s->mode = snapshot_probe(s->top, s->root);
	*ret = s;
	return 0;
}

void snapshots_force(struct snapshots *s, enum snapshot_mode mode)
{
	s->mode = mode;
}

static void free_layers(struct map *m)
{
	struct map_iter it = map_iter(m);
	struct snapshot_layer *l;
	while ((l = map_next(&it, NULL)))
		free(l);
	map_done(m);
}

void snapshots_free(struct snapshots *s)
{
	if (!s)
		return;
	struct map_iter it = map_iter(&s->roots);
	struct snapshot_root *r;
	while ((r = map_next(&it, NULL)))
		snapshot_root_free(r);
	map_done(&s->roots);
	free_layers(&s->layers);
	free_layers(&s->trees);
	fd_closep(&s->top);
	free(s->root);
	free(s);
}

/* ---- collecting ---- */

static void want(struct snapshots *s, bool copy, const char (*ids)[SNAPSHOT_ID + 1], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct snapshot_layer *l = map_get(snapshot_layers(s, copy), str_of(ids[i]));
		if (l)
			l->wanted = true;
	}
}

static int mark(struct snapshots *s, struct images *m, struct arena *a, struct err *err)
{
	struct image *images;
	size_t n, n_ids;
	char(*ids)[SNAPSHOT_ID + 1];
	bool copy = s->mode == SNAPSHOT_COPY;
	int r = image_list(m, a, &images, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		if ((r = snapshot_chain(a, &images[i], copy, &ids, &n_ids, err)) == 0)
			want(s, copy, (const char(*)[SNAPSHOT_ID + 1])ids, n_ids);
	struct map_iter it = map_iter(&s->roots);
	struct snapshot_root *root;
	while ((root = map_next(&it, NULL)))
		want(s, root->copy, (const char(*)[SNAPSHOT_ID + 1])root->ids, root->n_ids);
	return r;
}

struct sweep {
	struct snapshots *s;
	struct buf names;                /* below the top, each with a '\0' */
};

/* Takes the names of what nobody wants away, at once; the work of removing comes later. */
static int sweep_names(struct sweep *w, bool copy, struct err *err)
{
	struct snapshots *s = w->s;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct map_iter it = map_iter(snapshot_layers(s, copy));
	struct snapshot_layer *l;
	while ((l = map_next(&it, NULL))) {
		bool keep = l->wanted || l->users || !l->ready;
		l->wanted = false;
		if (keep)
			continue;
		str gone = arena_printf(&a, "tmp/%s.gone%llu", l->id, (unsigned long long)++s->last_number);
		if (renameat(s->top, arena_printf(&a, "%s/%s", snapshot_folder(copy), l->id).p, s->top, gone.p) < 0)
			return err_sys(err, errno, "layer %s", l->id);
		if (!copy)
			(void)unlinkat(s->top, arena_printf(&a, "l/%llu", (unsigned long long)l->number).p, 0);
		buf_add(&w->names, str_span(gone.p, gone.n + 1));
		snapshot_layer_drop(s, copy, l);
	}
	return 0;
}

static int sweep_files(void *arg, struct err *err)
{
	struct sweep *w = arg;
	int r = 0;
	for (size_t at = 0; r == 0 && at < w->names.n; at += strlen(w->names.p + at) + 1)
		r = snapshot_clear(w->s->top, w->names.p + at, err);
	return r;
}

int snapshots_collect(struct snapshots *s, struct images *m, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct sweep w = { s, BUF_INIT(NAMES_MAX) };
	int r = mark(s, m, &a, err);
	if (r == 0)
		r = sweep_names(&w, false, err);
	if (r == 0)
		r = sweep_names(&w, true, err);
	if (w.names.n) {
		int cleared = fiber_blocking(sweep_files, &w, err);
		r = r < 0 ? r : cleared;
	}
	buf_done(&w.names);
	return r;
}
