/*
 * layer: one image layer (a tar, plain or compressed by gzip, zstd, bzip2 or xz) becomes a tree of files. For snapshot*.c and the tests; all of it blocks.
 *
 * The bytes are not trusted. Names are cleaned, and everything is made by descriptors below the top (base/path.h), so that "..",
 * absolute names, links and entries behind links stay inside; sizes, names, counts and the room on the disk are bounded.
 *
 *	layer_read.c     the bytes: unpacked, hashed, cut into entries
 *	layer_tree.c     the entries: files, folders, links, nodes, whiteouts
 *	layer_meta.c     owners, modes, attributes, times
 *	layer.c          both together, and the limits
 *	layer_lower.c    what a layer left to those below it
 *
 * Whiteouts. In overlay form ".wh.x" is a character device 0:0 called x, and ".wh..wh..opq" an attribute of its folder. A whiteout is
 * about lower layers only, wherever in the tar it stands: a folder that is in the same layer too hides the lower one (it is opaque).
 * Applied (not overlay), a layer is laid over a tree that has the lower ones: the tar is read twice, first for the whiteouts.
 */
#ifndef C8S_RUNTIME_LAYER_H
#define C8S_RUNTIME_LAYER_H

#include <sys/stat.h>

#include "runtime/image_priv.h"
#include "runtime/snapshot.h"

struct archive;
struct archive_entry;

enum {
	LAYER_ENTRIES_MAX = 2000000,
	LAYER_DEPTH_MAX = 512,              /* parts of a name */
	LAYER_NAMES_MAX = 64 << 20,         /* bytes of names of folders, which are kept until the end */
};

/* ---- layer_read.c ---- */

struct layer_reader {
	struct archive *raw, *tar;
	struct sha256 hash;
	uint64_t plain, plain_max;          /* bytes of the plain tar: so far, and at most */
};

/* The tar may become this many times as large as the blob; a small one at least LAYER_SMALL. gzip cannot do more than 1,032. */
#define LAYER_RATIO 1100
#define LAYER_SMALL ((uint64_t)1 << 30)

/* A zeroed reader is a closed one. -ERR_INVALID: no layer; -ERR_TOO_LARGE. */
int layer_reader_open(struct layer_reader *l, const char *blob, struct err *err);
void layer_reader_done(struct layer_reader *l);
/* 1: an entry, valid until the next; 0: no more. */
int layer_reader_next(struct layer_reader *l, struct archive_entry **ret, struct err *err);
/* A piece of the entry's content and where in the file it belongs: 1; 0: no more. */
int layer_reader_data(struct layer_reader *l, str *ret, int64_t *ret_offset, struct err *err);
/* Reads what follows the last entry; the digest of it all. */
int layer_reader_end(struct layer_reader *l, char ret_diff_id[DIGEST_TEXT + 1], struct err *err);

/* ---- layer_tree.c ---- */

/*
 * What can only be completed when all layers below are there (an overlay's layers are unpacked side by side). Names are cleaned, and end
 * with a '\0' each.
 */
struct layer_left {
	struct buf folders;                 /* that were made without an entry; "" is the top */
	struct buf links;                   /* pairs: what a hard link is to, which is in a lower layer, and the link's own name */
};

struct layer_tree {
	int top;
	bool overlay;
	struct buf name, link;              /* of the entry at work: cleaned */
	struct buf parent_name;             /* the folder that was used last */
	int parent;                         /* -1: none */
	struct arena names;
	struct layer_time *times;           /* of folders, to be set when nothing is put into them any more */
	struct layer_left *left;            /* NULL: nothing is left to anybody */
	bool has_top;                       /* an entry for the top itself was there */
	uint64_t bytes, files;
	uint64_t checked_bytes, checked_files; /* when the disk was last looked at */
};

void layer_tree_init(struct layer_tree *t, int top, bool overlay, struct layer_left *left);
void layer_tree_done(struct layer_tree *t);
/* One entry. -ERR_INVALID: it makes no sense or would lead outside. */
int layer_tree_add(struct layer_tree *t, struct layer_reader *l, struct archive_entry *e, struct err *err);
/* Of one entry only what it removes from below; for a tree that has the lower layers. */
int layer_tree_apply_whiteout(struct layer_tree *t, struct archive_entry *e, struct err *err);
/* After the last: times of folders. */
int layer_tree_finish(struct layer_tree *t, struct err *err);

/*
 * A name inside: without "", "." and "..", relative; "" is the top. -ERR_INVALID when it leads outside or is too long or deep.
 */
int layer_clean(struct buf *out, str name, struct err *err);
/* Counts bytes that were written, and looks now and then whether the disk has room for more. */
int layer_tree_check_room(struct layer_tree *t, uint64_t bytes, struct err *err);
/* All names in a folder, each with a '\0'; appended. */
int layer_folder_names(int folder, struct buf *ret, struct err *err);
bool layer_is_whiteout(const struct stat *st);
bool layer_is_opaque(int folder);
int layer_set_opaque(int folder, struct err *err);

/* ---- layer_meta.c ---- */

/* Owner, mode, attributes and time of an entry on what was just made: fd is of it (not O_PATH). */
int layer_set_meta(int fd, struct archive_entry *e, bool with_time, struct err *err);
/* The same for links and nodes, which are not opened. */
int layer_set_node_meta(int parent, const char *name, struct archive_entry *e, struct err *err);
bool layer_time(struct archive_entry *e, struct timespec ret[2]);
/* Which extended attributes travel. */
bool layer_xattr_is_kept(str name);
/* Owner, mode, attributes and time of one file or folder onto another; neither is O_PATH. */
int layer_copy_meta(int from, int to, struct err *err);

/* ---- layer_lower.c ---- */

/*
 * A folder of one layer, without following links. 1: *ret is its descriptor; 0: it is not there; -1: not there, and what lower layers have
 * there is hidden by this one.
 */
int layer_find_folder(int top, str name, int *ret);
/*
 * Completes the layer at top. Files that it has hard links to are copied up from the next lower layer that has them, as overlayfs would
 * do; folders that it uses without an entry take after the next lower layer that has them. lowers: the nearest first.
 */
int layer_inherit(int top, const struct layer_left *left, const int *lowers, size_t n, struct err *err);

/* ---- layer.c ---- */

/* -ERR_SYSTEM: too little of the disk that top is on would be left with so many bytes more. */
int layer_check_disk(int top, uint64_t bytes, struct err *err);
/* layer_unpack with what is left for layer_inherit (NULL: a link to a lower layer is an error). */
int layer_unpack_left(const char *blob, const char *into, bool overlay, struct layer_left *left, struct layer_result *ret,
		      struct err *err);

#endif
