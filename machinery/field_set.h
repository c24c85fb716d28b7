/*
 * field_set: which fields of an object somebody owns, as metadata.managedFields keeps it. A set of paths as a trie:
 * one node per path element, 32 bytes, in one sorted array per level.
 *
 * Sets are immutable values. An operation makes new arrays in an arena and shares every branch that it does not
 * change, so its result lives as long as its arguments do. A set is at most VAL_RECURSION_MAX levels deep:
 * field_set_parse and the walkers of apply_walk.h, the only ways to make one from input, see to that; so the
 * operations may recurse.
 *
 * The JSON form (FieldsV1) is the one of Kubernetes, byte for byte:
 *	{"f:spec":{"f:ports":{".":{},"k:{\"port\":80}":{}},"f:finalizers":{"v:\"a\"":{}}}}
 */
#ifndef C8S_MACHINERY_FIELD_SET_H
#define C8S_MACHINERY_FIELD_SET_H

#include "base/buf.h"
#include "codec/val.h"

/* In the order in which elements of different kinds sort. */
enum path_kind {
	PATH_FIELD,   /* .name: a member of an object */
	PATH_KEY,     /* [name="a"]: an item of a list, by some of its fields */
	PATH_VALUE,   /* [="a"]: an item of a set */
	PATH_INDEX,   /* [0]: an item of any other list */
	PATH_BROKEN,  /* an item that has neither key nor value, such as a null; only while an object is pruned */
};

struct path_element {
	uint8_t kind;    /* enum path_kind */
	uint32_t n;      /* PATH_KEY: number of fields */
	union {
		atom field;
		const struct member *key; /* sorted by name */
		const struct val *value;
		int64_t index;
	};
};

struct field_node {
	struct path_element at;
	const struct field_node *children; /* sorted */
	uint32_t n;                        /* of children */
	bool member;                       /* the path that ends here is in the set; else only paths through it are */
};

/* The empty set is { NULL, 0 }. */
struct field_set {
	const struct field_node *nodes;
	uint32_t n;
};

#define FIELD_SET_EMPTY ((struct field_set){ NULL, 0 })

static inline struct field_set field_node_set(const struct field_node *node)
{
	return node ? (struct field_set){ node->children, node->n } : FIELD_SET_EMPTY;
}

static inline struct path_element path_field(atom name)
{
	return (struct path_element){ .kind = PATH_FIELD, .field = name };
}

/* The total order of Kubernetes' value.Compare: numbers (1 equals 1.0), strings, booleans, lists, objects, null. */
int path_value_cmp(struct val x, struct val y);
int path_element_cmp(const struct path_element *x, const struct path_element *y);
/* As in messages: .name, [name="a",port=80], [="a"], [0]. */
void path_element_print(struct buf *b, const struct path_element *e);
/* For sorting the members of an object by name; two known atoms compare without looking at their texts. */
int path_name_cmp(atom x, atom y);

/* ---- making ---- */

/*
 * Collects the nodes of one level after the other, inner ones first: field_set_begin, any number of field_set_add,
 * field_set_end. Levels nest as calls do. Nodes may come in any order; equal ones become their union. Only the sets
 * go into the arena.
 */
struct field_set_builder {
	struct arena *arena;
	struct field_node *nodes; /* of all open levels, as a stack */
	uint32_t n, cap;
	bool last_wins;           /* of equal nodes, the children of the last one count: what reading JSON does */
};

void field_set_builder_done(struct field_set_builder *b);
static inline uint32_t field_set_begin(const struct field_set_builder *b) { return b->n; }
/* A node that is neither a member nor has children is left out. */
void field_set_add(struct field_set_builder *b, struct path_element at, bool member, struct field_set children);
struct field_set field_set_end(struct field_set_builder *b, uint32_t begin);

/* The set of paths of field names, each written "metadata.labels"; the list ends with NULL. */
struct field_set field_set_of(struct arena *a, const char *const *paths);
/* The set with one path more. */
struct field_set field_set_with(struct arena *a, struct field_set s, const struct path_element *path, size_t n);

/*
 * Reads FieldsV1 JSON; "" and null are the empty set. Elements of a kind that is not known are skipped with all they
 * hold, as Kubernetes does. Other elements that make no sense are -ERR_BAD_REQUEST. The set borrows nothing from the
 * text.
 */
int field_set_parse(struct arena *a, str fields_v1, struct field_set *ret, struct err *err);
/* Appends FieldsV1 JSON. */
void field_set_encode(struct buf *b, struct field_set s);
/* The same as a value of the tree: VAL_RAW, in the arena. */
struct val field_set_val(struct arena *a, struct field_set s);

/* ---- asking ---- */

static inline bool field_set_empty(struct field_set s) { return s.n == 0; }
bool field_set_equal(struct field_set x, struct field_set y);
bool field_set_has(struct field_set s, const struct path_element *path, size_t n);
/* The node of one element, or NULL. */
const struct field_node *field_set_find(struct field_set s, const struct path_element *at);
/* Number of paths. */
size_t field_set_size(struct field_set s);

/*
 * Calls visit with every path; of one level first the members, then what lies below each (the order in which
 * Kubernetes lists conflicts). The path is only lent.
 */
void field_set_each(struct field_set s, void (*visit)(const struct path_element *path, size_t n, void *arg), void *arg);

/* ---- operations ---- */

struct field_set field_set_union(struct arena *a, struct field_set x, struct field_set y);
/* Of any number, each node copied a logarithmic number of times. */
struct field_set field_set_union_all(struct arena *a, const struct field_set *sets, size_t n);
struct field_set field_set_intersection(struct arena *a, struct field_set x, struct field_set y);
/* The paths of x that are not in y; removing a path does not remove those below it. */
struct field_set field_set_difference(struct arena *a, struct field_set x, struct field_set y);
/* The paths of x that neither are in y nor lie below a path of y. */
struct field_set field_set_recursive_difference(struct arena *a, struct field_set x, struct field_set y);
/* Without the paths that others in the set begin with. */
struct field_set field_set_leaves(struct arena *a, struct field_set s);
/*
 * The paths that begin with one of the patterns, or that are a beginning of one. A pattern is
 * "spec.containers.*.resources": field names and * for any element. The list ends with NULL.
 */
struct field_set field_set_matching(struct arena *a, struct field_set s, const char *const *patterns);

#endif
