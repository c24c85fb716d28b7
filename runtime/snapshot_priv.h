/*
 * What the files of snapshots share.
 *
 *	snapshot.c         opening, collecting      snapshot_unpack.c   layers of an image
 *	snapshot_root.c    roots of containers      snapshot_mount.c    overlayfs
 *	snapshot_walk.c    trees: counting, labelling, copying
 *
 * The maps belong to the loop's thread. The thread pool works on folders, by what it is told; whoever works on a layer or a root has
 * marked it before (`ready` is false, `busy`), so that nobody else does.
 */
#ifndef C8S_RUNTIME_SNAPSHOT_PRIV_H
#define C8S_RUNTIME_SNAPSHOT_PRIV_H

#include <sys/stat.h>

#include "base/fiber.h"
#include "base/map.h"
#include "runtime/image_priv.h"
#include "runtime/snapshot.h"

enum {
	SNAPSHOT_ID = SHA256_HEX,        /* a chain id */
	SNAPSHOT_PARALLEL = 3,           /* unpacks at a time: one thread of the pool is left for everybody else */
};

enum snapshot_mode {
	SNAPSHOT_FD,                     /* overlayfs, layers given by descriptors (Linux 6.13) */
	SNAPSHOT_TEXT,                   /* overlayfs, layers given by their short names in one page of text */
	SNAPSHOT_COPY,                   /* no overlayfs */
};

struct snapshot_layer {
	char id[SNAPSHOT_ID + 1];
	uint64_t number;
	bool ready;                      /* it has its name; else somebody unpacks it */
	unsigned users;                  /* calls at work that count on it */
	bool wanted;                     /* while collecting */
};

struct snapshot_root {
	char *key;
	bool copy;
	char (*ids)[SNAPSHOT_ID + 1];    /* of its layers, lowest first; copy: of its tree */
	size_t n_ids;
	bool made;                       /* its folder has its name */
	bool busy;
};

struct snapshots {
	char *root;                      /* as realpath has it */
	int top;
	enum snapshot_mode mode;
	struct map layers, trees;        /* struct snapshot_layer by id */
	struct map roots;                /* struct snapshot_root by key */
	uint64_t last_number;
	unsigned unpacking;
	struct fiber_cond changed;       /* any of these */
};

/* For tests: another way than the one that was found to work; before anything else is done. */
void snapshots_force(struct snapshots *s, enum snapshot_mode mode);

static inline struct map *snapshot_layers(struct snapshots *s, bool copy) { return copy ? &s->trees : &s->layers; }
/* "layers" or "trees" */
static inline const char *snapshot_folder(bool copy) { return copy ? "trees" : "layers"; }

/* ---- snapshot.c ---- */

/* The chain ids of the image's layers, in the arena; copy: only the last. */
int snapshot_chain(struct arena *a, const struct image *image, bool copy, char (**ret_ids)[SNAPSHOT_ID + 1], size_t *ret_n,
		   struct err *err);
/* A new entry of the map that is not ready. */
struct snapshot_layer *snapshot_layer_add(struct snapshots *s, bool copy, const char *id) NONNULL_RESULT;
void snapshot_layer_drop(struct snapshots *s, bool copy, struct snapshot_layer *l);
void snapshot_root_free(struct snapshot_root *r);
/* Removes what is at path below the top; fine when nothing is. Blocking. */
int snapshot_clear(int top, const char *path, struct err *err);
int snapshot_make_folder(int top, const char *path, mode_t mode, struct err *err);
/* The short name of a layer. */
int snapshot_link(int top, uint64_t number, const char *id, struct err *err);

/* ---- snapshot_mount.c; all of it blocks ---- */

/* Mounts mounts/<key>/root, unless it is mounted. ids: lowest first. label: SELinux', or "". */
int snapshot_overlay(int top, const char *root, enum snapshot_mode mode, const char *key, str label, const char (*ids)[SNAPSHOT_ID + 1],
		     size_t n, struct err *err);
/* Unmounts everything at and below a folder, whoever mounted it. */
int snapshot_unmount(const char *root, const char *folder, struct err *err);
/* What works here. */
enum snapshot_mode snapshot_probe(int top, const char *root);

/* ---- snapshot_walk.c; all of it blocks ---- */

/* A walk through a tree without recursion and with one descriptor, however deep it is. Links are not followed. */
struct snapshot_visitor {
	/* Each entry. folder: a descriptor of where it is. */
	int (*entry)(void *arg, int folder, const char *name, const struct stat *st, struct err *err);
	/* After all entries of the folder above were seen: down into one, and up again. May be NULL. */
	int (*enter)(void *arg, const char *name, struct err *err);
	int (*leave)(void *arg, int folder, struct err *err);
};

/* -ERR_CONFLICT: somebody moved the folders meanwhile. */
int snapshot_walk(int top, const struct snapshot_visitor *v, void *arg, struct err *err);
/* Bytes on disk and inodes of a tree, its top included; what changes meanwhile may be counted or not. */
int snapshot_count(int top, uint64_t *ret_bytes, uint64_t *ret_inodes, struct err *err);
/* SELinux' label for a file, or a folder and all that is in it (a descriptor, O_PATH will do). File systems that have none are left alone. */
int snapshot_label(int top, const char *label, struct err *err);
/* One file (no folder) of a folder into another, with all that belongs to it. */
int snapshot_copy_file(int from, const char *name, int to, const struct stat *st, struct err *err);
/* All that is in a tree, and the top's own owner and mode, into an empty folder. */
int snapshot_copy(int from, int to, struct err *err);

#endif
