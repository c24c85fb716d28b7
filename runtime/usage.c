/*
 * ImageFsInfo: how much room images and the containers' writable layers take. Trees are walked in the thread pool, one walk at a time,
 * and not again for some seconds: the kubelet asks often.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "runtime/cri.h"
#include "runtime/stats.h"
#include "runtime/usage.h"

enum { KEEP_S = 10 };

struct usage {
	uint64_t bytes, inodes;
};

struct usage_cache {
	struct turn measuring;
	int64_t at_ns;                   /* 0: never */
	struct usage images, containers;
};

struct usage_cache *usage_cache_new(void)
{
	struct usage_cache *u = mem_zalloc(sizeof *u);

	turn_init(&u->measuring, "a walk through the images");
	return u;
}

void usage_cache_free(struct usage_cache *u) { free(u); }

struct walk {
	const char *paths[4];            /* NULL-ended */
	struct usage usage;
};

static int walk(void *arg, struct err *err)
{
	struct walk *w = arg;
	char *paths[4] = { NULL };

	for (size_t i = 0; w->paths[i]; i++)
		paths[i] = (char *)(uintptr_t)w->paths[i];
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	FTSENT *e;
	if (!tree)
		return err_sys(err, errno, "walk through %s", w->paths[0]);
	/* What goes away meanwhile is not counted. */
	while ((e = fts_read(tree))) {
		if (e->fts_info == FTS_DP || e->fts_info == FTS_NS || e->fts_info == FTS_ERR || e->fts_info == FTS_DNR)
			continue;
		w->usage.bytes += (uint64_t)e->fts_statp->st_blocks * 512;
		w->usage.inodes++;
	}
	(void)fts_close(tree);
	return 0;
}

/* (suspends) Not by fts, which keeps all of a folder in memory: containers make folders of many millions of names. */
static struct usage measure_containers(struct runtime *r, struct arena *a)
{
	struct container **all = ARENA_ARRAY(a, struct container *, map_len(&r->container_ids) + 1);
	struct usage sum = { 0 };
	size_t n = 0;

	LIST_EACH(struct container, c, &r->containers, link)
		all[n++] = container_ref(c);
	for (size_t i = 0; i < n; i++) {
		struct err err = ERR_INIT;
		if (stats_layer(all[i], &err) == 0) { /* others have gone meanwhile */
			sum.bytes += all[i]->layer_bytes;
			sum.inodes += all[i]->layer_inodes;
		}
		container_unref(all[i]);
	}
	return sum;
}

static int measure(struct runtime *r, struct arena *a, struct err *err)
{
	struct usage_cache *u = r->usage;
	struct walk images = { .paths = { runtime_text(a, "%s/images", r->o.root), runtime_text(a, "%s/snapshots/layers", r->o.root) } };
	int code;

	if (u->at_ns && clock_now_ns() - u->at_ns < KEEP_S * NS_PER_S)
		return 0;
	if ((code = fiber_blocking(walk, &images, err)) < 0)
		return code;
	u->images = images.usage;
	u->containers = measure_containers(r, a);
	u->at_ns = clock_now_ns();
	return 0;
}

static struct val usage_value(struct arena *a, const char *path, const struct usage *u)
{
	return OBJECT(a, F(timestamp, val_of_int(clock_wall_ns())), F(fsId, OBJECT(a, F(mountpoint, VAL_STR(str_of(path))))),
		      F(usedBytes, OBJECT(a, F(value, val_of_int((int64_t)u->bytes)))),
		      F(inodesUsed, OBJECT(a, F(value, val_of_int((int64_t)u->inodes)))));
}

int cri_image_fs_info(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	int code = turn_take(&r->usage->measuring, err);

	(void)request;
	if (code < 0)
		return code;
	code = measure(r, a, err);
	turn_give(&r->usage->measuring);
	if (code < 0)
		return code;
	/* One file system for both, as the kubelet is told: it then counts the two together. */
	const char *path = runtime_text(a, "%s/snapshots", r->o.root);
	*ret = OBJECT(a, F(imageFilesystems, LIST(a, usage_value(a, path, &r->usage->images))),
		      F(containerFilesystems, LIST(a, usage_value(a, path, &r->usage->containers))));
	return 0;
}
