/*
 * The typed walks under server-side apply, as Kubernetes' structured-merge-diff has them. Private to apply.c and its
 * tests.
 *
 * All are pure. They recurse at most VAL_RECURSION_MAX deep; deeper trees are an error, and apply_validate finds it
 * first: the walks that cannot fail only get trees that went through it. Errors are -ERR_INTERNAL with Kubernetes'
 * text: ".spec.ports: duplicate entries for key [port=80]", several of them as "errors:\n  .a: ...\n  .b: ...".
 *
 * Trees of built-in types are given as patch_document shows them: typed ones leave out what Go structs always have,
 * and all of that can be owned.
 */
#ifndef C8S_MACHINERY_APPLY_WALK_H
#define C8S_MACHINERY_APPLY_WALK_H

#include "machinery/apply_type.h"
#include "machinery/field_set.h"

/*
 * Checks that the value fits the type. Without duplicates: also that no two items of an associative list have the
 * same key.
 */
int apply_validate(struct arena *a, struct apply_type t, struct val v, bool duplicates, struct err *err);

/* The paths of all leaves, and of all items and free members. */
int apply_fields(struct arena *a, struct apply_type t, struct val v, struct field_set *ret, struct err *err);

struct apply_comparison {
	struct field_set removed, modified, added;
};

/* From one value to another. Parts that they share are not even looked at. */
int apply_compare(struct arena *a, struct apply_type t, struct val from, struct val to, struct apply_comparison *ret,
		  struct err *err);

/*
 * base with everything that over has: leaves are replaced, maps and associative lists merged. Items come in the order
 * of over where it has something to say, others keep their place. Members of maps come out sorted by name.
 */
int apply_merge(struct arena *a, struct apply_type t, struct val base, struct val over, struct val *ret,
		struct err *err);

/* Without what the set names. A map or list that loses all of its content becomes null. */
struct val apply_remove(struct arena *a, struct apply_type t, struct val v, struct field_set s);

/* The set with every declared field that its paths lead through as a member too. */
struct field_set apply_name_fields(struct arena *a, struct apply_type t, struct field_set s);

/* The set after a change of schema: what lies below something that is atomic now becomes ownership of the whole. */
struct field_set apply_reconcile(struct arena *a, struct apply_type t, struct field_set s);

#endif
