/*
 * What the walks share: the way down with its errors, the choice of a shape for a value, and the elements of associative lists.
 */
#ifndef C8S_MACHINERY_APPLY_WALK_PRIV_H
#define C8S_MACHINERY_APPLY_WALK_PRIV_H

#include "machinery/apply_walk.h"

enum { WALK_ERRORS_MAX = 50 };

struct walk {
	struct arena *arena;
	bool typed;                   /* members that are absent may have a value: see apply_schema.always */
	str errors[WALK_ERRORS_MAX];
	size_t n_errors;              /* also counts those that there was no room for */
};

/* One step of the way down, on the C stack. */
struct step {
	const struct step *up;
	struct path_element at;
	unsigned depth;
};

#define STEP(up_, element) (&(const struct step){ (up_), (element), (up_) ? (up_)->depth + 1 : 1 })

/* Notes an error at a place (NULL: the root). */
void walk_error(struct walk *w, const struct step *at, str message);
/* Notes an error and returns true when the place is too deep to go on. */
bool walk_too_deep(struct walk *w, const struct step *at);
/* 0, or the error that was gathered. */
int walk_result(const struct walk *w, struct err *err);

enum walk_shape { WALK_MAP, WALK_SCALAR, WALK_LIST, WALK_NOTHING };

/* The shape that the value takes among those that its type allows; what fits none of them is treated as the first possible one. */
enum walk_shape walk_shape_of(const struct apply_shape *s, struct val v);
/* True when two values take the same one, so that they can be walked together. */
bool walk_same_shape(const struct apply_shape *s, struct val x, struct val y);
/* Notes what is wrong with a scalar. prefix is put before the message. */
bool walk_scalar_fits(struct walk *w, const struct step *at, enum apply_scalar scalar, struct val v, const char *prefix);
/* Go's %v and %#v of a decoded JSON value. */
void walk_print_go(struct buf *b, struct val v, bool syntax);

/* The type of a member: as apply_schema.member; for a type that nothing fits 0. */
int walk_member(struct apply_type t, atom name, struct apply_type *ret);
/* v with its absent members, one level deep, when the walk is over typed trees. */
struct val walk_members(struct walk *w, struct apply_type t, struct val v);

/* The items of an associative list with their elements, in the order of the list. */
struct walk_item {
	struct path_element at;
	struct val val;
	uint32_t index;
	bool again;                   /* an item before it has the same element */
	bool more;                    /* an item after it has */
};

struct walk_items {
	struct walk_item *v;
	struct walk_item **sorted;    /* by element, then by index */
	uint32_t n;
};

/*
 * Items without an element are noted as errors and left out; with stop, the first one ends it. Anything but a list gives none.
 * Returns false when there was such an item.
 */
bool walk_items(struct walk *w, const struct step *at, struct apply_type t, const struct apply_shape *s, struct val list, bool stop,
		struct walk_items *ret);
/* The first item with that element, or NULL. */
const struct walk_item *walk_items_find(const struct walk_items *items, const struct path_element *at);

/* Members by name; of those with the same name only the last. */
struct walk_names {
	const struct member **v;
	uint32_t n;
};

void walk_names(struct arena *a, struct val object, struct walk_names *ret);

#endif
