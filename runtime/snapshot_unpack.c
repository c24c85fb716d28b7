/*
 * The layers of an image. With overlayfs each is a folder of its own, so they are unpacked side by side; only what a layer leaves out
 * (struct layer_left) is taken over from those below it, afterwards and from the lowest up. Then all that is new is synced at
 * once, and gets its names.
 *
 * A layer is worked on by one call at a time. Calls wait for each other only for lower layers, so never in a circle.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/file.h"
#include "base/path.h"
#include "runtime/layer.h"
#include "runtime/snapshot_priv.h"

struct job {
	struct unpack *u;
	struct snapshot_layer *layer;    /* that this call works on; NULL: it is there, or somebody else does */
	struct snapshot_layer *used;     /* that this call counts on */
	const char *blob;
	str diff_id;
	struct layer_left left;
	int r;
	struct err err;
};

struct unpack {
	struct snapshots *s;
	bool copy;
	char (*ids)[SNAPSHOT_ID + 1];
	struct job *jobs;
	size_t n;                        /* copy: of layers, though there is one id */
	struct arena *arena;
	size_t from, to;                 /* that are given their names */
};

/* ---- in the thread pool ---- */

static int unpack_into(const struct job *j, const char *into, bool overlay, struct layer_left *left, struct err *err)
{
	struct layer_result result;
	int r = layer_unpack_left(j->blob, into, overlay, left, &result, err);
	if (r == 0 && !str_eq(str_of(result.diff_id), j->diff_id))
		r = err_set(err, ERR_INVALID, "wrong diff id calculated on extraction \"%s\"", result.diff_id);
	return err_wrap(err, r, "layer " STR_FMT, STR_ARG(j->diff_id));
}

static int make_tmp(struct unpack *u, struct arena *a, const char *id, const char **ret_fs, struct err *err)
{
	const char *tmp = arena_printf(a, "tmp/%s", id).p, *fs = arena_printf(a, "tmp/%s/fs", id).p;
	int r = snapshot_clear(u->s->top, tmp, err);
	if (r == 0)
		r = snapshot_make_folder(u->s->top, tmp, 0700, err);
	if (r == 0)
		r = snapshot_make_folder(u->s->top, fs, 0755, err);
	*ret_fs = arena_printf(a, "%s/%s", u->s->root, fs).p;
	return r;
}

static int work_on_layer(void *arg, struct err *err)
{
	struct job *j = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *fs;
	int r = make_tmp(j->u, &a, j->layer->id, &fs, err);
	return r < 0 ? r : unpack_into(j, fs, true, &j->left, err);
}

/* All of them, one over the other. */
static int work_on_tree(void *arg, struct err *err)
{
	struct unpack *u = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *fs;
	int r = make_tmp(u, &a, u->ids[0], &fs, err);
	for (size_t i = 0; r == 0 && i < u->n; i++)
		r = unpack_into(&u->jobs[i], fs, false, NULL, err);
	return r;
}

/* The folders of layers: those that wait for their names are elsewhere. */
static int open_layer(struct unpack *u, struct arena *a, size_t i, struct err *err)
{
	bool waits = i >= u->from && i < u->to;
	return path_open(u->s->top, arena_printf(a, "%s/%s/fs", waits ? "tmp" : "layers", u->ids[i]).p, O_RDONLY | O_DIRECTORY, err);
}

static int inherit(struct unpack *u, size_t i, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int *lowers = ARENA_ARRAY(&a, int, i + 1);
	size_t n = 0;
	CLEANUP(fd_closep) int top = open_layer(u, &a, i, err);
	int r = MIN(top, 0);
	for (; r == 0 && n < i; n += r == 0) {
		lowers[n] = open_layer(u, &a, i - n - 1, err);
		r = MIN(lowers[n], 0);
	}
	if (r == 0)
		r = layer_inherit(top, &u->jobs[i].left, lowers, n, err);
	while (n)
		close(lowers[--n]);
	return r;
}

static int write_number(struct unpack *u, const struct snapshot_layer *l, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	return file_write(arena_printf(&a, "%s/tmp/%s/n", u->s->root, l->id).p, arena_printf(&a, "%llu", (unsigned long long)l->number),
			  0600, err);
}

static int sync_folder(int top, const char *folder, struct err *err)
{
	CLEANUP(fd_closep) int fd = path_open(top, folder, O_RDONLY | O_DIRECTORY, err);
	if (fd < 0)
		return fd;
	return fsync(fd) < 0 ? err_sys(err, errno, "fsync %s", folder) : 0;
}

static int give_name(struct unpack *u, const struct snapshot_layer *l, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *from = arena_printf(&a, "tmp/%s", l->id).p, *to = arena_printf(&a, "%s/%s", snapshot_folder(u->copy), l->id).p;
	/* one that nobody knows of is there when an earlier call failed right after this */
	int r = snapshot_clear(u->s->top, to, err);
	if (r < 0)
		return r;
	if (renameat(u->s->top, from, u->s->top, to) < 0)
		return err_sys(err, errno, "%s", to);
	return u->copy ? 0 : snapshot_link(u->s->top, l->number, l->id, err);
}

/* Layers from..to, whose lower ones have their names. */
static int name_layers(void *arg, struct err *err)
{
	struct unpack *u = arg;
	int r = 0;
	for (size_t i = u->from; r == 0 && i < u->to; i++) {
		struct layer_left *left = &u->jobs[i].left;
		r = left->folders.n || left->links.n ? inherit(u, i, err) : 0;
		if (r == 0 && !u->copy)
			r = write_number(u, u->jobs[i].layer, err);
	}
	/* one sync of the file system costs less than one for each of ten thousand files */
	if (r == 0 && syncfs(u->s->top) < 0)
		r = err_sys(err, errno, "syncfs");
	for (size_t i = u->from; r == 0 && i < u->to; i++)
		r = give_name(u, u->jobs[i].layer, err);
	return r < 0 ? r : sync_folder(u->s->top, snapshot_folder(u->copy), err);
}

static int remove_tmp(void *arg, struct err *err)
{
	struct job *j = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	return snapshot_clear(j->u->s->top, arena_printf(&a, "tmp/%s", j->layer->id).p, err);
}

/* ---- on the loop ---- */

static int blocking_in_turn(struct snapshots *s, int (*fn)(void *arg, struct err *err), void *arg, struct err *err)
{
	int r = 0;
	while (s->unpacking >= SNAPSHOT_PARALLEL)
		if ((r = fiber_cond_wait(&s->changed, err)) < 0)
			return r;
	s->unpacking++;
	r = fiber_blocking(fn, arg, err);
	s->unpacking--;
	fiber_cond_broadcast(&s->changed);
	return r;
}

static int run_job(void *arg)
{
	struct job *j = arg;
	j->r = blocking_in_turn(j->u->s, work_on_layer, j, &j->err);
	return 0;
}

/* Takes a layer that nobody has: true. */
static bool claim(struct unpack *u, size_t i)
{
	struct snapshot_layer *l = map_get(snapshot_layers(u->s, u->copy), str_of(u->ids[i]));
	if (l)
		return false;
	u->jobs[i].layer = snapshot_layer_add(u->s, u->copy, u->ids[i]);
	u->jobs[i].r = -ERR_CANCELED;
	return true;
}

/* (suspends) Lets go of a layer that did not get its name. */
static void unclaim(struct job *j)
{
	if (!j->layer)
		return;
	SHIELD_SCOPE();
	(void)fiber_blocking(remove_tmp, j, NULL);
	snapshot_layer_drop(j->u->s, j->u->copy, TAKE(j->layer));
	fiber_cond_broadcast(&j->u->s->changed);
}

/* Counts on a layer that is ready. */
static void use(struct job *j, struct snapshot_layer *l)
{
	j->used = l;
	l->users++;
}

static int name_ready(struct unpack *u, size_t from, size_t to, struct err *err)
{
	u->from = from;
	u->to = to;
	int r = fiber_blocking(name_layers, u, err);
	if (r < 0)
		return r;
	for (size_t i = from; i < to; i++) {
		struct snapshot_layer *l = TAKE(u->jobs[i].layer);
		l->ready = true;
		use(&u->jobs[i], l);
	}
	fiber_cond_broadcast(&u->s->changed);
	return 0;
}

static int job_failed(struct job *j, struct err *err)
{
	if (err)
		*err = j->err;
	return j->r;
}

/* One layer that is not ours: there, or somebody works on it, or (when that somebody failed) nobody. */
static int settle_other(struct unpack *u, size_t i, struct err *err)
{
	struct snapshot_layer *l = map_get(&u->s->layers, str_of(u->ids[i]));
	if (l && l->ready) {
		use(&u->jobs[i], l);
		return 1;
	}
	if (l)
		return fiber_cond_wait(&u->s->changed, err);
	claim(u, i);
	run_job(&u->jobs[i]);
	return 0;
}

static int settle(struct unpack *u, struct err *err)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < u->n;) {
		size_t to = i;
		while (to < u->n && u->jobs[to].layer && u->jobs[to].r == 0)
			to++;
		if (to > i)
			r = name_ready(u, i, to, err);
		else if (u->jobs[i].layer)
			return job_failed(&u->jobs[i], err);
		else
			r = settle_other(u, i, err);
		i = to > i ? to : i + (size_t)(r == 1);
	}
	return MIN(r, 0);
}

static int unpack_layers(struct unpack *u, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = 0;
	for (size_t i = 0; r == 0 && i < u->n; i++)
		if (claim(u, i))
			r = fiber_group_spawn(&group, run_job, &u->jobs[i], err, "layer %.12s", u->ids[i]);
	if (r == 0)
		r = fiber_group_wait(&group, err);
	return r < 0 ? r : settle(u, err);
}

static int unpack_tree(struct unpack *u, struct err *err)
{
	int r = 0;
	if (!u->n)
		return 0;
	while (r == 0 && !claim(u, 0)) {
		struct snapshot_layer *l = map_get(&u->s->trees, str_of(u->ids[0]));
		if (l->ready)
			return 0;
		r = fiber_cond_wait(&u->s->changed, err);
	}
	if (r == 0)
		r = blocking_in_turn(u->s, work_on_tree, u, err);
	return r < 0 ? r : name_ready(u, 0, 1, err);
}

static void unpack_done(struct unpack *u)
{
	for (size_t i = 0; i < u->n; i++) {
		struct job *j = &u->jobs[i];
		unclaim(j);
		if (j->used)
			j->used->users--;
		buf_done(&j->left.folders);
		buf_done(&j->left.links);
	}
}

int snapshot_unpack(struct snapshots *s, struct images *m, const struct image *image, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct unpack u = { .s = s, .copy = s->mode == SNAPSHOT_COPY, .n = image->n_layers, .arena = &a };
	size_t n_ids;
	int r = snapshot_chain(&a, image, u.copy, &u.ids, &n_ids, err);
	if (r < 0)
		return r;
	u.jobs = ARENA_ARRAY(&a, struct job, u.n + 1);
	for (size_t i = 0; i < u.n; i++)
		u.jobs[i] = (struct job){ .u = &u, .blob = image_blob_path(m, &a, image->layers[i]), .diff_id = image->diff_ids[i],
					  .left = { BUF_INIT(LAYER_NAMES_MAX), BUF_INIT(LAYER_NAMES_MAX) } };
	r = u.copy ? unpack_tree(&u, err) : unpack_layers(&u, err);
	unpack_done(&u);
	return r;
}
