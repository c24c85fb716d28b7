/*
 * kubectl apply: the three-way patches, and the annotation that remembers the last applied configuration.
 */
#include "machinery/strategic_priv.h"

#include "codec/atoms.h"
#include "codec/yaml.h"

enum { YAML_SHOWN_MAX = 4096, ANNOTATION_MAX = 64 * 1024 * 1024 };

static int conflict(struct val patch, struct val changes, struct err *err)
{
	CLEANUP(buf_done) struct buf p = BUF_INIT(YAML_SHOWN_MAX), c = BUF_INIT(YAML_SHOWN_MAX);

	/* What does not fit would not fit into the message either. */
	(void)yaml_encode(&p, patch, NULL, NULL);
	(void)yaml_encode(&c, changes, NULL, NULL);
	return err_set(err, ERR_CONFLICT,
		       "patch:\n" STR_FMT "\nconflicts with changes made from original to current:\n" STR_FMT "\n",
		       STR_ARG(buf_str(&p)), STR_ARG(buf_str(&c)));
}

/* ---- with a schema ---- */

int strategic_patch_three_way(struct arena *a, struct val original, struct val modified, struct val current,
			      const struct type *type, bool overwrite, unsigned preconditions, struct val *ret,
			      struct err *err)
{
	struct val delta, deletions, patch, changes;
	bool conflicts = false;
	int r;

	if (!type)
		return err_set(err, ERR_BAD_REQUEST, "strategic merge patch format is not supported");
	struct meta meta = smp_meta_of(type);
	const struct diff_options additive = { .element_order = true, .no_deletions = true };
	const struct diff_options deleting = { .element_order = true, .no_changes = true };
	if ((r = patch_objects(original, modified, current, err)) < 0 ||
	    (r = smp_diff(a, current, modified, meta, additive, &delta, err)) < 0 ||
	    (r = smp_diff(a, original, modified, meta, deleting, &deletions, err)) < 0 ||
	    (r = smp_merge(a, deletions, delta, meta, true, &patch, err)) < 0 ||
	    (r = patch_preconditions(patch, preconditions, err)) < 0)
		return r;
	if (!overwrite) {
		if ((r = smp_diff(a, original, current, meta, (struct diff_options){ 0 }, &changes, err)) < 0 ||
		    (r = smp_conflicts(a, patch, changes, meta, &conflicts, err)) < 0)
			return r;
		if (conflicts)
			return conflict(patch, changes, err);
	}
	return patch_sorted_deep(a, patch, 0, ret, err);
}

/* ---- without ---- */

/* Of a merge patch, only the deletions, or everything but them; objects that have nothing left are left out. */
static int filter_nulls(struct arena *a, struct val patch, bool nulls, unsigned depth, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);
	int r = patch_depth(depth, err);

	patch = patch_sorted(a, patch);
	for (uint32_t i = 0; r >= 0 && i < patch.n; i++) {
		struct val v = patch.members[i].val;
		if (v.type == VAL_OBJECT && v.n) {
			r = filter_nulls(a, v, nulls, depth + 1, &v, err);
			if (v.n)
				val_add_member(&b, patch.members[i].key, v);
		} else if (nulls == (v.type == VAL_NULL)) {
			val_add_member(&b, patch.members[i].key, v);
		}
	}
	*ret = val_end_object(&b);
	return r;
}

static bool merges_conflict(struct arena *a, struct val left, struct val right)
{
	if (left.type != VAL_OBJECT || right.type != VAL_OBJECT)
		return !val_equal(left, right);
	struct pairs ps = patch_pairs_join(a, left, right);
	for (uint32_t i = 0; i < ps.n; i++)
		if (val_exists(ps.p[i].left) && val_exists(ps.p[i].right) &&
		    merges_conflict(a, ps.p[i].left, ps.p[i].right))
			return true;
	return false;
}

int merge_patch_three_way(struct arena *a, struct val original, struct val modified, struct val current,
			  unsigned preconditions, struct val *ret, struct err *err)
{
	struct val changes, deletions, patch;
	int r;

	if ((r = merge_patch_create(a, current, modified, &changes, err)) < 0 ||
	    (r = filter_nulls(a, changes, false, 0, &changes, err)) < 0 ||
	    (r = merge_patch_create(a, original, modified, &deletions, err)) < 0 ||
	    (r = filter_nulls(a, deletions, true, 0, &deletions, err)) < 0)
		return r;
	if (merges_conflict(a, changes, deletions))
		return conflict(changes, deletions, err);
	if ((r = merge_patch_apply(a, deletions, changes, &patch, err)) < 0 ||
	    (r = patch_preconditions(patch, preconditions, err)) < 0)
		return r;
	return patch_sorted_deep(a, patch, 0, ret, err);
}

/* ---- the annotation ---- */

#define LAST_APPLIED STR("kubectl.kubernetes.io/last-applied-configuration")

str last_applied_get(struct val object)
{
	return val_as_str(val_find(val_get(object, metadata, annotations), LAST_APPLIED));
}

/* Sets (VAL_NONE: removes) the annotation; like kubectl it leaves annotations behind even when they are empty. */
static struct val annotate(struct arena *a, struct val object, struct val text)
{
	struct val annotations = val_put(a, val_get(object, metadata, annotations), atom_make(a, LAST_APPLIED), text);
	return val_with(a, object, annotations, metadata, annotations);
}

struct val last_applied_set(struct arena *a, struct val object, str text)
{
	return annotate(a, object, val_of_str(text));
}

int last_applied_text(struct arena *a, struct val object, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(ANNOTATION_MAX);
	int r;

	if ((r = patch_sorted_deep(a, annotate(a, object, VAL_EMPTY), 0, &object, err)) < 0 ||
	    (r = json_encode(&b, object, &(struct json_encode_options){ 0 }, err)) < 0)
		return r;
	buf_addc(&b, '\n');
	if ((r = buf_check(&b, "the applied configuration", err)) < 0)
		return r;
	*ret = arena_str(a, buf_str(&b));
	return 0;
}

int last_applied_update(struct arena *a, struct val object, struct val *ret, struct err *err)
{
	str text;
	int r = last_applied_text(a, object, &text, err);
	return r < 0 ? r : patch_sorted_deep(a, last_applied_set(a, object, text), 0, ret, err);
}
