/* What the files of the patch family share. */
#ifndef C8S_MACHINERY_PATCH_PRIV_H
#define C8S_MACHINERY_PATCH_PRIV_H

#include "base/buf.h"
#include "machinery/patch.h"

/* -ERR_BAD_REQUEST when depth has passed VAL_RECURSION_MAX, else 0. */
int patch_depth(unsigned depth, struct err *err);

/* -ERR_BAD_REQUEST when one of them is neither an object nor nothing. */
int patch_objects(struct val x, struct val y, struct val z, struct err *err);

/* Text compared as Go compares strings. */
int patch_key_cmp(atom x, atom y);
/* The object with its members sorted by key, each once (the last one counts); itself when it is so already. */
struct val patch_sorted(struct arena *a, struct val object);
/* The same for a whole tree. */
int patch_sorted_deep(struct arena *a, struct val v, unsigned depth, struct val *ret, struct err *err);

/* Appends v as Go's %v. */
void patch_go_print(struct buf *b, struct val v);
/* What encoding/json calls the type of a JSON value: "object", "number". */
const char *patch_json_type(struct val v);

/* Two objects put side by side, by key. */
struct pair {
	atom key;
	struct val left, right; /* VAL_NONE where that side has no such member */
};

struct pairs {
	struct pair *p;
	uint32_t n;
};

/* What is no object counts as an empty one. */
struct pairs patch_pairs_join(struct arena *a, struct val left, struct val right);
/* The pair of that key, or NULL. */
struct pair *patch_pairs_find(struct pairs ps, str key);
/* The object of all left sides that exist. */
struct val patch_pairs_left(struct arena *a, struct pairs ps);

/* -ERR_FORBIDDEN when the patch touches what the preconditions protect. */
int patch_preconditions(struct val patch, unsigned preconditions, struct err *err);

#endif
