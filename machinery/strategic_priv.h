/* Inside strategic merge patch: the schema's view (strategic_meta.c), lists (strategic_list.c), merging and comparing. */
#ifndef C8S_MACHINERY_STRATEGIC_PRIV_H
#define C8S_MACHINERY_STRATEGIC_PRIV_H

#include "machinery/patch_priv.h"

#define PATCH_DIRECTIVE	  STR("$patch")
#define RETAIN_KEYS	  STR("$retainKeys")
#define DELETE_FROM_LIST  STR("$deleteFromPrimitiveList")
#define SET_ELEMENT_ORDER STR("$setElementOrder")

/* ---- the schema's view of an object or list ---- */

/* What Go's reflection would say about the type of a value. */
struct meta {
	const struct type *type; /* the fields; NULL when it has none that JSON could name */
	str name;		 /* of a struct */
	const char *kind;	 /* Go's reflect.Kind of what is not a struct, else NULL */
	bool pointer;
};

/* How a field is patched, and what its value, or the elements of its list, look like. */
struct patch_meta {
	bool merge, replace, retain_keys;
	str merge_key;
	struct meta sub;
};

struct meta smp_meta_of(const struct type *type);
/* -ERR_INTERNAL when the schema has no such field, in the words of Kubernetes. */
int smp_meta_object(struct meta m, atom key, struct patch_meta *ret, struct err *err);
int smp_meta_list(struct meta m, str key, struct patch_meta *ret, struct err *err);
/* reflect.Kind as text. */
const char *smp_meta_kind(struct meta m);

/* ---- values as Go compares them ---- */

/* Two scalars of the same type and value: 1 is neither 1.0 nor "1". False for lists and objects. */
bool smp_scalar_same(struct val x, struct val y);
/* "map[string]interface {}", "string", ... */
const char *smp_go_type(struct val v);
/* "expected a map[string]interface {}, but received a string" */
int smp_bad_type(const char *expected, struct val got, struct err *err);
/* "map: map[...] does not contain declared merge key: name" */
int smp_no_merge_key(struct val object, str merge_key, struct err *err);

/* A set of scalars that answers where in its list a value stands. */
struct positions {
	struct position *at;
	uint32_t n;
};

/* Of the items, or of their member merge_key when that is given. What is no scalar, or not there, is left out. */
struct positions smp_positions_of(struct arena *a, struct val list, str merge_key);
/* Its first (last) place, -1 when it does not occur. */
int64_t smp_positions_find(struct positions ps, struct val scalar);
int64_t smp_positions_last(struct positions ps, struct val scalar);

/* ---- lists ---- */

/* The type (enum val_type) that all elements of both lists have; -ERR_INTERNAL when they differ or there are none. */
int smp_list_type(struct val x, struct val y, uint8_t *ret, struct err *err);
/* The items that occur in by (by merge_key when given), and the others. */
int smp_list_partition(struct arena *a, struct val list, struct val by, str merge_key, struct val *ret_in,
		       struct val *ret_out, struct err *err);
/*
 * `list` in the order of `order`, items that are to be deleted last. Objects is the type of the items: false for a list
 * of primitives.
 */
int smp_list_sort(struct arena *a, struct val list, struct val order, str merge_key, bool objects, struct val *ret,
		  struct err *err);
/*
 * The items of a patch in the order of patch_order, put between the items that only the server has, which keep the order
 * of server_order.
 */
int smp_list_order(struct arena *a, struct val patch, struct val server_only, struct val patch_order,
		   struct val server_order, str merge_key, bool objects, struct val *ret, struct err *err);
/* Primitives, each once. */
struct val smp_list_unique(struct arena *a, struct val list);
/* Whether the sorted values of left, each once, are not also the first ones of right. */
bool smp_primitives_differ(struct arena *a, struct val left, struct val right);
struct val smp_list_concat(struct arena *a, struct val x, struct val y);
bool smp_is_delete(struct val item);

/* ---- merging and comparing ---- */

/* Merges two patches when keep is set: directives and nulls stay in the result instead of being carried out. */
int smp_merge(struct arena *a, struct val doc, struct val patch, struct meta meta, bool keep, struct val *ret,
	      struct err *err);

struct diff_options {
	bool element_order; /* write $setElementOrder */
	bool no_changes;    /* leave out what was changed or added */
	bool no_deletions;
	bool retain_keys; /* write $retainKeys into this object */
};

int smp_diff(struct arena *a, struct val original, struct val modified, struct meta meta, struct diff_options opt,
	     struct val *ret, struct err *err);
/* Whether both patches change the same thing differently. */
int smp_conflicts(struct arena *a, struct val left, struct val right, struct meta meta, bool *ret, struct err *err);

#endif
