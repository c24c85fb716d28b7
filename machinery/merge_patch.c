/*
 * JSON merge patch as the library that Kubernetes uses applies it. It goes beyond RFC 7386 in one point: nulls are also
 * dropped inside lists, unless the list takes the place of an object.
 */
#include "machinery/patch_priv.h"

int merge_patch_check(struct val patch, struct err *err)
{
	if (val_is_nil(patch) || patch.type == VAL_OBJECT)
		return 0;
	return err_set(err, ERR_BAD_REQUEST,
		       "error decoding patch: json: cannot unmarshal %s into Go value of type map[string]interface {}",
		       patch_json_type(patch));
}

/* What a value of a patch leaves where nothing was: without the members that are null. */
static int prune(struct arena *a, struct val v, unsigned depth, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);
	struct val child;
	int r = patch_depth(depth, err);

	*ret = v;
	if (r < 0 || v.type < VAL_LIST)
		return r;
	v = patch_sorted(a, v);
	for (uint32_t i = 0; r >= 0 && i < v.n; i++) {
		if (v.type == VAL_LIST) {
			if ((r = prune(a, v.items[i], depth + 1, &child, err)) >= 0)
				val_add_item(&b, child);
		} else if (v.members[i].val.type != VAL_NULL) {
			if ((r = prune(a, v.members[i].val, depth + 1, &child, err)) >= 0)
				val_add_member(&b, v.members[i].key, child);
		}
	}
	*ret = v.type == VAL_LIST ? val_end_list(&b) : val_end_object(&b);
	return r;
}

static int merge(struct arena *a, struct val doc, struct val patch, unsigned depth, struct val *ret, struct err *err)
{
	struct pairs ps = patch_pairs_join(a, doc, patch);
	int r = patch_depth(depth, err);

	for (uint32_t i = 0; r >= 0 && i < ps.n; i++) {
		struct pair *p = &ps.p[i];
		if (!val_exists(p->right))
			continue;
		if (p->right.type == VAL_NULL)
			p->left = VAL_EMPTY;
		else if (p->left.type != VAL_OBJECT)
			r = prune(a, p->right, depth + 1, &p->left, err);
		else if (p->right.type != VAL_OBJECT)
			p->left = p->right;
		else
			r = merge(a, p->left, p->right, depth + 1, &p->left, err);
	}
	*ret = patch_pairs_left(a, ps);
	return r;
}

int merge_patch_apply(struct arena *a, struct val doc, struct val patch, struct val *ret, struct err *err)
{
	if (patch.type != VAL_OBJECT && patch.type != VAL_LIST)
		return err_set(err, ERR_BAD_REQUEST, "Invalid JSON Patch");
	if (val_is_nil(doc))
		return err_set(err, ERR_BAD_REQUEST, "Invalid JSON Document");
	if (doc.type == VAL_OBJECT && patch.type == VAL_OBJECT)
		return merge(a, doc, patch, 0, ret, err);
	return prune(a, patch, 0, ret, err);
}

static int create(struct arena *a, struct val original, struct val modified, unsigned depth, struct val *ret,
		  struct err *err)
{
	struct pairs ps = patch_pairs_join(a, original, modified);
	struct val_builder b = val_builder(a);
	int r = patch_depth(depth, err);

	for (uint32_t i = 0; r >= 0 && i < ps.n; i++) {
		const struct pair *p = &ps.p[i];
		if (!val_exists(p->right)) {
			val_add_member(&b, p->key, VAL_NULL_VALUE);
		} else if (p->left.type == VAL_OBJECT && p->right.type == VAL_OBJECT) {
			struct val sub;
			r = create(a, p->left, p->right, depth + 1, &sub, err);
			if (r >= 0 && sub.n)
				val_add_member(&b, p->key, sub);
		} else if (!val_equal(p->left, p->right)) {
			val_add_member(&b, p->key, p->right);
		}
	}
	*ret = val_end_object(&b);
	return r;
}

int merge_patch_create(struct arena *a, struct val original, struct val modified, struct val *ret, struct err *err)
{
	int r = patch_objects(original, modified, VAL_EMPTY, err);
	if (r < 0)
		return r;
	r = create(a, original, modified, 0, ret, err);
	return r < 0 ? r : patch_sorted_deep(a, *ret, 0, ret, err);
}
