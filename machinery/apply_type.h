/*
 * apply_type: what server-side apply has to know about types. Built-in types take it from the schema tables, custom
 * resources from their OpenAPI schema (whoever owns those implements struct apply_schema), and objects of which
 * nothing is known from their own shape.
 *
 * A value fits one or more of three shapes: scalar, list, map. A struct is a map with declared fields.
 */
#ifndef C8S_MACHINERY_APPLY_TYPE_H
#define C8S_MACHINERY_APPLY_TYPE_H

#include "codec/schema.h"

struct apply_schema;

/*
 * A reference to a type, passed by value. node and form mean what the schema wants. A zeroed one is a type that
 * nothing fits.
 */
struct apply_type {
	const struct apply_schema *schema;
	const void *node;
	uintptr_t form;
};

enum apply_scalar { APPLY_NO_SCALAR, APPLY_NUMERIC, APPLY_STRING, APPLY_BOOLEAN, APPLY_UNTYPED };

struct apply_shape {
	uint8_t scalar;      /* enum apply_scalar */
	bool list, map;      /* may be a list, a map */
	bool list_atomic;    /* owned as a whole; else by items: associative */
	bool map_atomic;     /* likewise; else by members */
	bool deduced;        /* a map of anything, of which nothing is declared */
	const atom *keys;    /* associative list: the fields that tell items apart, ended by 0; NULL: a set */
};

struct apply_schema {
	void (*shape)(struct apply_type t, struct apply_shape *ret);
	/*
	 * The type of a member of a map: 2 for a declared field, 1 for what may stand beside those, 0 if nothing may
	 * (*ret is then left alone).
	 */
	int (*member)(struct apply_type t, atom name, struct apply_type *ret);
	struct apply_type (*item)(struct apply_type t);
	/* The default of a declared field as JSON text; n == 0: none. Fills the keys of list items that lack them. */
	str (*default_json)(struct apply_type t, atom name);
};

/* A built-in type. */
struct apply_type apply_type_of(const struct type *type);
/* Nothing is known: objects are owned member by member, lists as a whole. */
struct apply_type apply_type_deduced(void);
/* Nothing is known, and the whole is owned as one. */
struct apply_type apply_type_atomic(void);

#endif
