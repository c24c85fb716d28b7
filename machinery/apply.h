/*
 * Server-side apply: every write of an object also writes down who set which fields (metadata.managedFields), and an
 * apply request merges a partial object ("patch") into the live one, stops at fields that others have set to
 * something else, and removes what the same manager applied before and does not apply any more.
 *
 * All functions are pure: the time is given, results live in the arena and share what did not change with the
 * arguments. They recurse at most VAL_RECURSION_MAX levels; deeper trees are errors.
 *
 * Objects of built-in kinds come in and go out as typed trees in the version of the request. Objects of custom kinds
 * are free trees, whose members are sorted by name; so are patches of both (json_decode with sort_keys).
 *
 * What remains for the caller after apply_patch: defaulting, admission, validation, and managed_keep_times before it
 * compares the object with the stored one.
 */
#ifndef C8S_MACHINERY_APPLY_H
#define C8S_MACHINERY_APPLY_H

#include "codec/time.h"
#include "machinery/apply_type.h"

struct apply_converter {
	/*
	 * The object in another version of its kind, as patch_document shows it, with its type there. -ERR_NOT_FOUND:
	 * there is no such version, and managers that used it are forgotten. The object may be a free tree.
	 */
	int (*convert)(const struct apply_converter *c, struct arena *a, struct val object, str api_version,
		       struct val *ret, struct apply_type *ret_type, struct err *err);
};

/*
 * Which fields a resource or subresource does not let its users set, in one version: they are not owned by anyone
 * through it.
 */
struct apply_reset {
	str api_version;
	const char *const *fields;  /* paths of field names, such as "status", ended by NULL */
	const char *const *only;    /* or, if not NULL: only what matches can be owned; see field_set_matching */
};

/* What both operations need to know about the request. */
struct apply_request {
	const struct type *type;    /* a built-in kind in the version of the request; NULL: a custom one */
	struct apply_type custom;   /* its type, when it is custom */
	str api_version, kind;
	str subresource;            /* "": the resource itself */
	str manager;                /* fieldManager of the request; "" becomes "unknown" */
	struct timestamp now;
	const struct apply_reset *resets;
	size_t n_resets;
	/*
	 * For managers that use other versions. NULL: all versions of a built-in kind have the same fields, and so
	 * have all versions of a custom one in its group.
	 */
	const struct apply_converter *converter;
};

struct apply_conflict {
	str field;                  /* ".spec.replicas" */
	str message;                /* conflict with "kubectl" using apps/v1 */
};

/* A Status of reason Conflict: message and its causes, each of reason FieldManagerConflict. */
struct apply_conflicts {
	str message;
	struct apply_conflict *v;
	size_t n;
};

/*
 * The live object (VAL_NONE: there is none yet) with the patch applied and its managedFields brought up to date. If
 * that changes nothing it is the live object, perhaps with other managedFields.
 * -ERR_CONFLICT and *ret_conflicts (may be NULL) when others own what would change and force is not set.
 * -ERR_BAD_REQUEST when the patch is of another kind, has managedFields or is nested too deeply. -ERR_INTERNAL when it
 * does not fit the type: Kubernetes answers that with the same text, code 500 and no reason.
 */
int apply_patch(struct arena *a, const struct apply_request *req, struct val live, struct val patch, bool force,
		struct val *ret, struct apply_conflicts *ret_conflicts, struct err *err);

/*
 * For all other writes: the new object (as it is going to be stored) with the managedFields that it gets. live is
 * VAL_NONE for a create. A client that sends managedFields changes them, one that sends [{}] ends their tracking (so
 * does [], in trees that tell it from nothing).
 * An error means that they could not be computed: Kubernetes then stores the object without managedFields.
 */
int apply_update(struct arena *a, const struct apply_request *req, struct val live, struct val new_object,
		 struct val *ret, struct err *err);

#endif
