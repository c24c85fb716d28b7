/*
 * What the walks share: the way down with its errors, the choice of a shape for a value, and the elements of
 * associative lists.
 */
#ifndef C8S_MACHINERY_APPLY_WALK_PRIV_H
#define C8S_MACHINERY_APPLY_WALK_PRIV_H

#include "machinery/apply_walk.h"

enum { TYPED_ERRORS_MAX = 50 };

struct typed_walk {
	struct arena *arena;
	str *errors;
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
void typed_error(struct typed_walk *w, const struct step *at, str message);
/* Notes an error and returns true when the place is too deep to go on. */
bool typed_too_deep(struct typed_walk *w, const struct step *at);
/* 0, or the error that was gathered. */
int typed_result(const struct typed_walk *w, struct err *err);

static inline struct apply_shape typed_type(struct apply_type t)
{
	struct apply_shape s = { .scalar = APPLY_NO_SCALAR };
	if (t.schema)
		t.schema->shape(t, &s);
	return s;
}

enum typed_shape { TYPED_MAP, TYPED_SCALAR, TYPED_LIST, TYPED_NOTHING };

/*
 * The shape that the value takes among those that its type allows; what fits none of them is treated as the first
 * possible one.
 */
enum typed_shape typed_shape_of(const struct apply_shape *s, struct val v);
/* True when two values take the same one, so that they can be walked together. */
bool typed_same_shape(const struct apply_shape *s, struct val x, struct val y);
/* The type of a member: as apply_schema.member; for a type that nothing fits 0. */
int typed_member(struct apply_type t, atom name, struct apply_type *ret);

/* The items of an associative list with their elements, in the order of the list. */
struct typed_item {
	struct path_element at;
	struct val val;
	uint32_t index;
	bool again;                   /* an item before it has the same element */
	bool more;                    /* an item after it has */
};

struct typed_items {
	struct typed_item *v;
	struct typed_item **sorted;    /* by element, then by index */
	uint32_t n;
};

/* What is to be done with items that have no element. */
enum typed_broken {
	TYPED_STOP,   /* note the first one as an error and take only what was before it */
	TYPED_SKIP,   /* note them as errors and leave them out */
	TYPED_KEEP,   /* keep them as PATH_BROKEN */
};

/* Anything but a list has no items. Returns false when an error was noted. */
bool typed_items(struct typed_walk *w, const struct step *at, struct apply_type t, const struct apply_shape *s,
		 struct val list, enum typed_broken broken, struct typed_items *ret);
/* The first item with that element, or NULL. */
const struct typed_item *typed_items_find(const struct typed_items *items, const struct path_element *at);

#endif
