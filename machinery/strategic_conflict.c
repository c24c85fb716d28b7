/*
 * Whether two strategic merge patches of the same document would change the same thing to different ends. Lists that
 * merge are compared item by item of the same key, other lists as a whole.
 */
#include "machinery/strategic_priv.h"

struct conflict {
	struct arena *a;
	struct err *err;
};

static int value_conflicts(const struct conflict *c, struct val left, struct val right, const struct patch_meta *pm,
			   unsigned depth, bool *ret);

static int merged_list_conflicts(const struct conflict *c, struct val left, struct val right, const struct patch_meta *pm,
				 unsigned depth, bool *ret)
{
	struct patch_meta item = { .sub = pm->sub };
	struct positions l, r;
	int result = 0;

	for (int side = 0; side < 2; side++)
		VAL_EACH(v, side ? right : left)
			if (!val_exists(val_find(*v, pm->merge_key)))
				return err_set(c->err, ERR_INTERNAL,
					       "cannot find merge key `" STR_FMT "` in merging list element:" STR_FMT,
					       STR_ARG(pm->merge_key), STR_ARG(patch_go_text(c->a, *v)));
	/* Of items with the same key the last one counts. */
	l = smp_positions_of(c->a, left, pm->merge_key);
	r = smp_positions_of(c->a, right, pm->merge_key);
	for (uint32_t i = 0; !*ret && result >= 0 && i < left.n; i++) {
		struct val key = val_find(left.items[i], pm->merge_key);
		int64_t at = smp_positions_last(r, key);
		if (at >= 0 && smp_positions_last(l, key) == i)
			result = value_conflicts(c, left.items[i], right.items[at], &item, depth + 1, ret);
	}
	return result;
}

static int list_conflicts(const struct conflict *c, struct val left, struct val right, const struct patch_meta *pm,
			  unsigned depth, bool *ret)
{
	struct patch_meta item = { .sub = pm->sub };
	uint8_t type;
	int r = smp_list_type(left, right, &type, c->err);

	if (r < 0)
		return r;
	if (pm->merge)
		return type == VAL_OBJECT ? merged_list_conflicts(c, left, right, pm, depth, ret) : 0;
	*ret = left.n != right.n || (type != VAL_OBJECT && smp_primitives_differ(c->a, left, right));
	if (type != VAL_OBJECT)
		return 0;
	for (uint32_t i = 0; !*ret && r >= 0 && i < left.n; i++)
		r = value_conflicts(c, left.items[i], right.items[i], &item, depth + 1, ret);
	return r;
}

static int object_conflicts(const struct conflict *c, struct val left, struct val right, const struct patch_meta *pm,
			    unsigned depth, bool *ret)
{
	struct val l = val_find(left, PATCH_DIRECTIVE), r = val_find(right, PATCH_DIRECTIVE);
	struct pairs ps = patch_pairs_join(c->a, left, right);
	int result = 0;

	*ret = (val_exists(l) || val_exists(r)) && !smp_scalar_same(l, r);
	if (pm->replace)
		return 0;
	for (uint32_t i = 0; !*ret && result >= 0 && i < ps.n; i++) {
		const struct pair *p = &ps.p[i];
		struct patch_meta sub = { 0 };
		str key = atom_str(p->key);
		if (!val_exists(p->left) || !val_exists(p->right) || str_eq(key, PATCH_DIRECTIVE) ||
		    str_eq(key, RETAIN_KEYS))
			continue;
		if (p->left.type == VAL_LIST)
			result = smp_meta_list(pm->sub, key, &sub, c->err);
		else if (p->left.type == VAL_OBJECT)
			result = smp_meta_object(pm->sub, p->key, &sub, c->err);
		if (result >= 0)
			result = value_conflicts(c, p->left, p->right, &sub, depth + 1, ret);
	}
	return result;
}

static int value_conflicts(const struct conflict *c, struct val left, struct val right, const struct patch_meta *pm,
			   unsigned depth, bool *ret)
{
	int r = patch_depth(depth, c->err);

	*ret = left.type != right.type;
	if (r < 0 || *ret)
		return r;
	if (left.type == VAL_OBJECT)
		return object_conflicts(c, left, right, pm, depth, ret);
	if (left.type == VAL_LIST)
		return list_conflicts(c, left, right, pm, depth, ret);
	*ret = !val_equal(left, right);
	return 0;
}

int smp_conflicts(struct arena *a, struct val left, struct val right, struct meta meta, bool *ret, struct err *err)
{
	struct conflict c = { .a = a, .err = err };
	struct patch_meta root = { .sub = meta };
	return value_conflicts(&c, left, right, &root, 0, ret);
}
