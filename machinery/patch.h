/*
 * patch: the three kinds of patch that the API takes, how kubectl makes them, and kubectl apply's memory of what was
 * applied.
 *
 * Everything here is pure: trees in, a tree in the arena out, which shares what did not change with its inputs. Nothing
 * suspends, nothing is kept. Recursion ends at VAL_RECURSION_MAX levels of a patch with -ERR_BAD_REQUEST; time is at
 * worst n log n in the length of lists and objects, and a strategic merge patch that has the same things merged over and
 * over ends with -ERR_TOO_LARGE.
 *
 * Documents. Patches work on what JSON shows: a member that is always written ("resources": {}) is there to be patched
 * although a typed tree leaves it out. So:
 *
 *	doc = patch_document(arena, pod, TYPE(core_v1, Pod))     typed -> free, as its JSON
 *	strategic_patch_apply(arena, doc, patch, TYPE(core_v1, Pod), &patched, err)
 *	strategic_patch_convert(arena, patched, TYPE(core_v1, Pod), &patched, err)
 *	val_canonical(arena, patched, TYPE(core_v1, Pod), strict, &pod, err)
 *
 * Results are free trees: unknown members and nulls may be in them, and types are not checked; val_canonical (codec.h)
 * does that. Patches and free documents are decoded with json_decode_options.sort_keys, as Go's maps have neither order
 * nor duplicates. Objects that a patch went through come out with their members sorted by key, all others as they were.
 *
 * Errors. The text in err is what the Kubernetes libraries say. What the API server makes of it depends on the code:
 *	-ERR_BAD_REQUEST  400 BadRequest with the text
 *	-ERR_TOO_LARGE    413 RequestEntityTooLarge with the text
 *	-ERR_INVALID      422 Invalid, details {}, and PATCH_REJECTED instead of the text
 *	-ERR_INTERNAL     500 without a reason, with the text: a strategic merge patch that does not fit the document
 * kubectl shows the text of all of them.
 */
#ifndef C8S_MACHINERY_PATCH_H
#define C8S_MACHINERY_PATCH_H

#include "codec/json.h"

#define PATCH_REJECTED "the server rejected our request due to an error in our request"

/*
 * The typed tree v as its JSON shows it: with the zero values of members that are always written, in the schema's order.
 * A type of NULL (custom resources) gives v itself. -ERR_BAD_REQUEST when v is nested too deeply.
 */
int patch_document(struct arena *a, struct val v, const struct type *type, struct val *ret, struct err *err);

/* v as Go prints it with %v: map[a:1 b:[x y]]. For the messages that quote a patch; long ones end early. */
str patch_go_text(struct arena *a, struct val v);

/* ---- JSON Patch, RFC 6902: application/json-patch+json ---- */

enum {
	JSON_PATCH_OPERATIONS_MAX = 10000,
	/* The API server's limit on what "copy" operations add, in bytes of JSON. */
	JSON_PATCH_COPY_MAX = 3 * 1024 * 1024,
};

/*
 * The shape of the patch, as the API server checks it before applying: a list of objects whose op, path and from are
 * strings. With fieldValidation Warn or Strict: members that are not known go to strict as "json patch unknown field
 * ...", duplicates that json_decode put there get the same beginning, and errors begin with "error decoding patch: ".
 * With Ignore (strict is NULL) strings are not checked here but when the operation runs.
 * -ERR_BAD_REQUEST in Go's words, -ERR_TOO_LARGE for more than JSON_PATCH_OPERATIONS_MAX operations. null is an empty
 * patch.
 */
int json_patch_check(struct val patch, struct strict_errors *strict, struct err *err);

/*
 * Applies the operations in order; the first that fails ends it with -ERR_INVALID. As Kubernetes does it:
 * - indices may be negative: -1 is the last item, and for "add" the place after it;
 * - "replace" makes a member that does not exist, an operation without value has null;
 * - "test" knows 1 and 1.0 apart; a pointer need not begin with "/", what stands before the first one is ignored.
 * copy_max bounds the bytes of JSON that "copy" adds; 0: no bound.
 */
int json_patch_apply(struct arena *a, struct val doc, struct val patch, size_t copy_max, struct val *ret,
		     struct err *err);

/* ---- JSON merge patch, RFC 7386: application/merge-patch+json ---- */

/* fieldValidation Warn or Strict: -ERR_BAD_REQUEST when the patch is neither an object nor null. */
int merge_patch_check(struct val patch, struct err *err);

/*
 * Nulls delete, also inside what is new; other lists and scalars replace. -ERR_BAD_REQUEST "Invalid JSON Patch" when the
 * patch is a scalar or null.
 */
int merge_patch_apply(struct arena *a, struct val doc, struct val patch, struct val *ret, struct err *err);

/* The patch that makes modified of original (two objects); an empty object when they are equal. */
int merge_patch_create(struct arena *a, struct val original, struct val modified, struct val *ret, struct err *err);

/* ---- strategic merge patch: application/strategic-merge-patch+json ---- */

/*
 * Merges by the schema: lists of objects by their merge key, sets of primitives by value, everything else as a JSON merge
 * patch, with the directives $patch (replace, delete), $retainKeys, $setElementOrder/<list> and
 * $deleteFromPrimitiveList/<list>. A patch of null is empty. Type NULL (custom resources): -ERR_BAD_REQUEST "strategic
 * merge patch format is not supported".
 */
int strategic_patch_apply(struct arena *a, struct val doc, struct val patch, const struct type *type, struct val *ret,
			  struct err *err);

/*
 * The step between strategic_patch_apply and val_canonical: the API server does not decode the result of a strategic merge
 * patch from JSON. Whole numbers such as 3.0 become integers, and those that are too large for their field are cut off.
 * -ERR_BAD_REQUEST in the converter's words ("cannot restore slice from map", "unrecognized type: int32"), which the API
 * server puts behind "patch: Invalid value: " and the patch as patch_go_text shows it. What it says nothing about, such as
 * times and quantities, is left to val_canonical.
 */
int strategic_patch_convert(struct arena *a, struct val patched, const struct type *type, struct val *ret, struct err *err);

/* What a created patch must not change; kubectl edit and apply ask for all. */
enum patch_precondition {
	PATCH_SAME_API_VERSION = 1 << 0,
	PATCH_SAME_KIND = 1 << 1,
	PATCH_SAME_NAME = 1 << 2, /* metadata.name */
	PATCH_SAME_OBJECT = PATCH_SAME_API_VERSION | PATCH_SAME_KIND | PATCH_SAME_NAME,
};

/*
 * The patch that makes modified of original, with $setElementOrder for lists that changed, $retainKeys where the schema
 * asks for it; an empty object when they are equal. Members are sorted. -ERR_FORBIDDEN "precondition failed for: ..."
 * when the patch would change what preconditions (enum patch_precondition) protect.
 */
int strategic_patch_create(struct arena *a, struct val original, struct val modified, const struct type *type,
			   unsigned preconditions, struct val *ret, struct err *err);

/* ---- three-way: kubectl apply ---- */

/*
 * The patch for current: what modified adds and changes, and the deletion of what original (as last applied) had and
 * modified has not. Other people's changes stay. original may be VAL_EMPTY. Unless overwrite is set, -ERR_CONFLICT when
 * somebody changed something since original that the patch changes differently; the text shows both as YAML.
 * Preconditions as above.
 */
int strategic_patch_three_way(struct arena *a, struct val original, struct val modified, struct val current,
			      const struct type *type, bool overwrite, unsigned preconditions, struct val *ret,
			      struct err *err);
/* The same as a JSON merge patch, for kinds without a schema. */
int merge_patch_three_way(struct arena *a, struct val original, struct val modified, struct val current,
			  unsigned preconditions, struct val *ret, struct err *err);

/* ---- kubectl.kubernetes.io/last-applied-configuration ---- */

/* The annotation's text (JSON, with a newline at its end), empty when there is none. Borrowed from the object. */
str last_applied_get(struct val object);
/* The object with that text as its annotation. */
struct val last_applied_set(struct arena *a, struct val object, str text);
/* The object as one line of sorted JSON, without its annotation: what the annotation is to hold. */
int last_applied_text(struct arena *a, struct val object, str *ret, struct err *err);
/* The object with its annotation brought up to date, as apply sends it, with sorted members. */
int last_applied_update(struct arena *a, struct val object, struct val *ret, struct err *err);

#endif
