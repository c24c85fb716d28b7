/* Roots of containers: made once, mounted when they are not, removed. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "runtime/snapshot_priv.h"

enum { KEY_MAX = 200, LAYERS_TEXT_MAX = 1 << 20 };

/* What the thread pool is told. */
struct root_work {
	int top;
	const char *path;                /* of the top */
	enum snapshot_mode mode;
	const char *key;
	bool copy, made;
	const char (*ids)[SNAPSHOT_ID + 1];
	size_t n_ids;
	str label;
	uint64_t bytes, inodes;
};

static bool is_key(str key)
{
	bool ok = key.n && key.n <= KEY_MAX && key.p[0] != '.';
	for (size_t i = 0; ok && i < key.n; i++) {
		char c = key.p[i];
		ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
	}
	return ok;
}

/* ---- in the thread pool ---- */

static int write_layers(const struct root_work *w, const char *folder, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(LAYERS_TEXT_MAX);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	if (w->copy)
		buf_add(&text, STR("copy\n"));
	for (size_t i = 0; i < w->n_ids; i++)
		buf_addf(&text, "%s\n", w->ids[i]);
	int r = buf_check(&text, "the list of layers", err);
	/* not synced: after a loss of power, a root that cannot be read is only removed */
	return r < 0 ? r : file_replace(arena_printf(&a, "%s/%s/layers", w->path, folder).p, buf_str(&text), 0600, err);
}

/* The upper layer's own top hides those below it, so it must look like them. */
static int make_overlay_folders(const struct root_work *w, struct arena *a, const char *folder, struct err *err)
{
	struct stat st = { .st_mode = 0755 };
	const char *upper = arena_printf(a, "%s/upper", folder).p;
	int r = snapshot_make_folder(w->top, arena_printf(a, "%s/work", folder).p, 0700, err);
	if (r == 0)
		r = snapshot_make_folder(w->top, arena_printf(a, "%s/root", folder).p, 0700, err);
	if (r == 0 && w->n_ids && fstatat(w->top, arena_printf(a, "layers/%s/fs", w->ids[w->n_ids - 1]).p, &st, 0) < 0)
		r = err_sys(err, errno, "layer %s", w->ids[w->n_ids - 1]);
	if (r == 0)
		r = snapshot_make_folder(w->top, upper, st.st_mode & 07777, err);
	if (r == 0 && fchownat(w->top, upper, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = err_sys(err, errno, "%s: chown", upper);
	return r;
}

static int make_copy(const struct root_work *w, struct arena *a, const char *folder, struct err *err)
{
	const char *root = arena_printf(a, "%s/root", folder).p;
	int r = snapshot_make_folder(w->top, root, 0755, err);
	if (r < 0 || !w->n_ids)
		return r;
	CLEANUP(fd_closep) int from = path_open(w->top, arena_printf(a, "trees/%s/fs", w->ids[0]).p, O_RDONLY | O_DIRECTORY, err);
	CLEANUP(fd_closep) int to = from < 0 ? from : path_open(w->top, root, O_RDONLY | O_DIRECTORY, err);
	return to < 0 ? to : snapshot_copy(from, to, err);
}

static int make_root(const struct root_work *w, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *folder = arena_printf(&a, "tmp/%s.root", w->key).p;
	int r = snapshot_clear(w->top, folder, err);
	if (r == 0)
		r = snapshot_make_folder(w->top, folder, 0711, err);
	if (r == 0)
		r = write_layers(w, folder, err);
	if (r == 0)
		r = w->copy ? make_copy(w, &a, folder, err) : make_overlay_folders(w, &a, folder, err);
	if (r == 0 && renameat(w->top, folder, w->top, arena_printf(&a, "mounts/%s", w->key).p) < 0)
		r = err_sys(err, errno, "mounts/%s", w->key);
	if (r < 0)
		(void)snapshot_clear(w->top, folder, NULL);
	return r;
}

/* There is no mount that could have the label. */
static int label_copy(const struct root_work *w, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	if (!w->label.n)
		return 0;
	CLEANUP(fd_closep) int fd = path_open(w->top, arena_printf(&a, "mounts/%s/root", w->key).p, O_PATH | O_DIRECTORY, err);
	return fd < 0 ? fd : snapshot_label(fd, arena_str(&a, w->label).p, err);
}

static int mount_root(void *arg, struct err *err)
{
	struct root_work *w = arg;
	int r = w->made ? 0 : make_root(w, err);
	if (r < 0)
		return r;
	w->made = true;
	return w->copy ? label_copy(w, err) : snapshot_overlay(w->top, w->path, w->mode, w->key, w->label, w->ids, w->n_ids, err);
}

static int remove_root(void *arg, struct err *err)
{
	struct root_work *w = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *folder = arena_printf(&a, "mounts/%s", w->key).p, *gone = arena_printf(&a, "tmp/%s.gone", w->key).p;
	int r = snapshot_unmount(w->path, folder, err);
	if (r == 0)
		r = snapshot_clear(w->top, gone, err);
	if (r == 0 && renameat(w->top, folder, w->top, gone) < 0 && errno != ENOENT)
		r = err_sys(err, errno, "%s", folder);
	return r < 0 ? r : snapshot_clear(w->top, gone, err);
}

static int count_root(void *arg, struct err *err)
{
	struct root_work *w = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *folder = arena_printf(&a, "mounts/%s/%s", w->key, w->copy ? "root" : "upper").p;
	CLEANUP(fd_closep) int fd = path_open(w->top, folder, O_RDONLY | O_DIRECTORY, err);
	return fd < 0 ? fd : snapshot_count(fd, &w->bytes, &w->inodes, err);
}

/* ---- on the loop ---- */

/* (suspends) The root of that key when nobody works on it; *ret is NULL when there is none. */
static int wait_for(struct snapshots *s, str key, struct snapshot_root **ret, struct err *err)
{
	if (!is_key(key))
		return err_set(err, ERR_INVALID, "\"" STR_FMT "\" cannot be the name of a snapshot", STR_ARG(str_head(key, KEY_MAX)));
	int r = 0;
	while ((*ret = map_get(&s->roots, key)) && (*ret)->busy)
		if ((r = fiber_cond_wait(&s->changed, err)) < 0)
			return r;
	return 0;
}

static struct root_work work_of(struct snapshots *s, const struct snapshot_root *root)
{
	/* a root of before has its own way; the way to mount is always the one that works now */
	return (struct root_work){ .top = s->top, .path = s->root, .mode = s->mode == SNAPSHOT_COPY ? SNAPSHOT_TEXT : s->mode,
				   .key = root->key, .copy = root->copy, .made = root->made,
				   .ids = (const char(*)[SNAPSHOT_ID + 1])root->ids, .n_ids = root->n_ids };
}

/* (suspends) */
static int work_on(struct snapshots *s, struct snapshot_root *root, int (*fn)(void *arg, struct err *err), str label, struct root_work *w,
		   struct err *err)
{
	*w = work_of(s, root);
	w->label = label;
	root->busy = true;
	int r = fiber_blocking(fn, w, err);
	root->busy = false;
	fiber_cond_broadcast(&s->changed);
	return r;
}

static void forget(struct snapshots *s, struct snapshot_root *root)
{
	map_remove(&s->roots, str_of(root->key));
	snapshot_root_free(root);
}

static int new_root(struct snapshots *s, str key, const struct image *image, struct snapshot_root **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char(*ids)[SNAPSHOT_ID + 1];
	size_t n;
	bool copy = s->mode == SNAPSHOT_COPY;
	int r = snapshot_chain(&a, image, copy, &ids, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct snapshot_layer *l = map_get(snapshot_layers(s, copy), str_of(ids[i]));
		if (!l || !l->ready)
			r = err_set(err, ERR_NOT_FOUND, "image " STR_FMT " is not unpacked", STR_ARG(image->id));
	}
	if (r < 0)
		return r;
	struct snapshot_root *root = mem_zalloc(sizeof(*root));
	root->key = strndup(key.p, key.n);
	root->copy = copy;
	root->ids = mem_array(n + 1, sizeof(*ids));
	memcpy(root->ids, ids, n * sizeof(*ids));
	root->n_ids = n;
	map_put(&s->roots, str_of(root->key), root);
	*ret = root;
	return 0;
}

int snapshot_mount(struct snapshots *s, str key, const struct image *image, str label, struct arena *a, const char **ret_root,
		   struct err *err)
{
	struct snapshot_root *root;
	struct root_work w;
	int r = wait_for(s, key, &root, err);
	if (r == 0 && !root)
		r = new_root(s, key, image, &root, err);
	if (r < 0)
		return r;
	r = work_on(s, root, mount_root, label, &w, err);
	root->made = root->made || w.made;
	if (r < 0) {
		if (!root->made)
			forget(s, root);
		return err_wrap(err, r, "root of " STR_FMT, STR_ARG(key));
	}
	*ret_root = arena_printf(a, "%s/mounts/" STR_FMT "/root", s->root, STR_ARG(key)).p;
	return 0;
}

int snapshot_remove(struct snapshots *s, str key, struct err *err)
{
	struct snapshot_root *root;
	struct root_work w;
	int r = wait_for(s, key, &root, err);
	if (r < 0 || !root)
		return r;
	r = work_on(s, root, remove_root, STR_NONE, &w, err);
	if (r < 0)
		return err_wrap(err, r, "root of " STR_FMT, STR_ARG(key));
	forget(s, root);
	return 0;
}

int snapshot_usage(struct snapshots *s, str key, uint64_t *ret_bytes, uint64_t *ret_inodes, struct err *err)
{
	struct snapshot_root *root;
	struct root_work w;
	int r = wait_for(s, key, &root, err);
	if (r == 0 && !root)
		r = err_set(err, ERR_NOT_FOUND, "snapshot \"" STR_FMT "\" not found", STR_ARG(key));
	if (r < 0)
		return r;
	if ((r = work_on(s, root, count_root, STR_NONE, &w, err)) < 0)
		return err_wrap(err, r, "root of " STR_FMT, STR_ARG(key));
	*ret_bytes = w.bytes;
	*ret_inodes = w.inodes;
	return 0;
}

static bool is_among(const str *keys, size_t n, str key)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(keys[i], key))
			return true;
	return false;
}

int snapshots_keep(struct snapshots *s, const str *keys, size_t n, struct err *err)
{
	CLEANUP(buf_done) struct buf gone = BUF_INIT(SIZE_MAX / 2);
	struct map_iter it = map_iter(&s->roots);
	str key;
	int first = 0;
	while (map_next(&it, &key))
		if (!is_among(keys, n, key))
			buf_add(&gone, str_span(key.p, key.n + 1));
	for (size_t at = 0; at < gone.n; at += strlen(gone.p + at) + 1) {
		int r = snapshot_remove(s, str_of(gone.p + at), first < 0 ? NULL : err);
		first = first < 0 ? first : r;
	}
	return first;
}
