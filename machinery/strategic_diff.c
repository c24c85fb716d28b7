/*
 * Making a strategic merge patch from two documents: what the second has more or different, null or a directive for what
 * it has less.
 *
 * Lists are compared in sorted order, of the keys' texts as Go prints them. Equal texts, which only lists with duplicate
 * keys have, stand in reverse order as Go's insertion sort leaves them.
 */
#include <stdlib.h>

#include "machinery/strategic_priv.h"

struct diff {
	struct arena *a;
	struct err *err;
};

static int diff_objects(const struct diff *d, struct val original, struct val modified, struct meta meta,
			struct diff_options opt, unsigned depth, struct val *ret);

/* ---- lists ---- */

struct texted {
	struct val item, key;
	str text;
	uint32_t at;
};

static int texted_cmp(const void *x, const void *y)
{
	const struct texted *a = x, *b = y;
	int r = str_cmp(a->text, b->text);
	return r ? r : a->at > b->at ? -1 : 1;
}

/* The items sorted by the text of their key, or of themselves when merge_key is empty. */
static struct texted *list_texted(const struct diff *d, struct val list, str merge_key)
{
	uint32_t n = val_len(list);
	struct texted *t = ARENA_ARRAY(d->a, struct texted, n);

	for (uint32_t i = 0; i < n; i++) {
		struct val item = list.items[i], key = merge_key.n ? val_find(item, merge_key) : item;
		str text = key.type == VAL_STRING ? val_as_str(key) : patch_go_text(d->a, key);
		t[i] = (struct texted){ item, key, text, i };
	}
	qsort(t, n, sizeof(*t), texted_cmp);
	return t;
}

static struct val delete_item(struct arena *a, str merge_key, struct val key)
{
	const struct member m[] = {
		{ atom_make(a, PATCH_DIRECTIVE), VAL_LIT("delete") },
		{ atom_make(a, merge_key), key },
	};
	return val_object(a, m, ARRAY_LEN(m));
}

/* One item that both have: its difference, with the merge key. */
static int diff_item(const struct diff *d, const struct texted *original, const struct texted *modified,
		     const struct patch_meta *pm, struct diff_options opt, unsigned depth, struct val_builder *changes)
{
	struct val patch;
	int r = diff_objects(d, original->item, modified->item, pm->sub, opt, depth + 2, &patch);

	if (r >= 0 && patch.n)
		val_add_item(changes,
			     patch_sorted(d->a, val_put(d->a, patch, atom_make(d->a, pm->merge_key), modified->key)));
	return r;
}

/* Walks both lists; pm with a merge key: of objects. */
static int diff_items(const struct diff *d, struct val original, struct val modified, const struct patch_meta *pm,
		      bool objects, struct diff_options opt, unsigned depth, struct val *ret_changes,
		      struct val *ret_deletions)
{
	struct val_builder changes = val_builder(d->a), deletions = val_builder(d->a);
	str merge_key = objects ? pm->merge_key : STR_NONE;
	uint32_t i = 0, j = 0, ni = val_len(original), nj = val_len(modified);
	struct texted *o = list_texted(d, original, merge_key), *m = list_texted(d, modified, merge_key);
	int r;

	while (i < ni || j < nj) {
		if (i < ni && !val_exists(o[i].key))
			return smp_no_merge_key(o[i].item, merge_key, d->err);
		if (j < nj && !val_exists(m[j].key))
			return smp_no_merge_key(m[j].item, merge_key, d->err);
		int c = i == ni ? 1 : j == nj ? -1 : str_cmp(o[i].text, m[j].text);
		if (c == 0 && objects && (r = diff_item(d, &o[i], &m[j], pm, opt, depth, &changes)) < 0)
			return r;
		if (c > 0 && !opt.no_changes)
			val_add_item(&changes, m[j].item);
		if (c < 0 && !opt.no_deletions)
			val_add_item(&deletions, objects ? delete_item(d->a, merge_key, o[i].key) : o[i].item);
		i += c <= 0;
		j += c >= 0;
	}
	*ret_changes = val_end_list(&changes);
	*ret_deletions = val_end_list(&deletions);
	return 0;
}

/* The patch of a field that is a list to be merged, in up to three members. */
struct list_diff {
	struct val items, deletions, order;
};

static bool same_order(struct val original, struct val modified, str merge_key)
{
	bool same = original.n == modified.n;
	for (uint32_t i = 0; same && i < original.n; i++)
		same = smp_scalar_same(val_find(original.items[i], merge_key), val_find(modified.items[i], merge_key));
	return same;
}

static int diff_object_lists(const struct diff *d, struct val original, struct val modified, const struct patch_meta *pm,
			     struct diff_options opt, unsigned depth, struct list_diff *ret)
{
	struct val changes, deletions;
	int r = diff_items(d, original, modified, pm, true, opt, depth, &changes, &deletions);

	if (r < 0 || (r = smp_list_sort(d->a, changes, modified, pm->merge_key, true, &changes, d->err)) < 0)
		return r;
	bool same = same_order(original, modified, pm->merge_key);
	ret->items = smp_list_concat(d->a, changes, deletions);
	bool any = ret->items.n > 0;
	if (!opt.element_order || !((!opt.no_changes && (any || !same)) || (!opt.no_deletions && any)))
		return 0;
	struct val_builder order = val_builder(d->a);
	atom key = atom_make(d->a, pm->merge_key);
	VAL_EACH(item, modified) {
		struct member m = { key, val_find(*item, pm->merge_key) };
		val_add_item(&order, val_object(d->a, &m, 1));
	}
	ret->order = val_end_list(&order);
	return 0;
}

/* Whether modified is original, sorted: Kubernetes sorts the original in place before it compares the two. */
static bool is_sorted_copy(const struct diff *d, struct val original, struct val modified)
{
	const struct texted *t = list_texted(d, original, STR_NONE);
	bool same = original.n == modified.n;

	for (uint32_t i = 0; same && i < modified.n; i++)
		same = smp_scalar_same(t[i].item, modified.items[i]);
	return same;
}

static int diff_primitive_lists(const struct diff *d, struct val original, struct val modified,
				const struct patch_meta *pm, struct diff_options opt, unsigned depth,
				struct list_diff *ret)
{
	int r = diff_items(d, original, modified, pm, false, opt, depth, &ret->items, &ret->deletions);

	if (r < 0)
		return r;
	ret->deletions = smp_list_unique(d->a, ret->deletions);
	if ((r = smp_list_sort(d->a, ret->items, modified, pm->merge_key, false, &ret->items, d->err)) < 0)
		return r;
	bool deleted = !opt.no_deletions && ret->deletions.n;
	if (opt.element_order && (deleted || (!opt.no_changes && !is_sorted_copy(d, original, modified))))
		ret->order = modified;
	return 0;
}

static int diff_merged_lists(const struct diff *d, struct val original, struct val modified, const struct patch_meta *pm,
			     struct diff_options opt, unsigned depth, struct list_diff *ret)
{
	uint8_t type;
	int r;

	if (original.n == 0) {
		if (!opt.no_changes)
			ret->items = modified;
		return 0;
	}
	if ((r = smp_list_type(original, modified, &type, d->err)) < 0)
		return r;
	opt.retain_keys = pm->retain_keys;
	return type == VAL_OBJECT ? diff_object_lists(d, original, modified, pm, opt, depth, ret)
				  : diff_primitive_lists(d, original, modified, pm, opt, depth, ret);
}

/* ---- members ---- */

static void add_list(const struct diff *d, struct val_builder *b, str directive, atom key, struct val list)
{
	if (!val_len(list))
		return;
	if (directive.n)
		key = atom_make(d->a,
				arena_printf(d->a, STR_FMT "/" STR_FMT, STR_ARG(directive), STR_ARG(atom_str(key))));
	val_add_member(b, key, list);
}

static int diff_list_member(const struct diff *d, const struct pair *p, struct meta meta, struct diff_options opt,
			    unsigned depth, struct val_builder *b)
{
	struct list_diff ld = { 0 };
	struct patch_meta pm;
	int r;

	/* Without a description of the field it does not matter as long as nothing changed. */
	if ((r = smp_meta_list(meta, atom_str(p->key), &pm, d->err)) < 0)
		return val_equal(p->left, p->right) ? 0 : r;
	if (!pm.merge) {
		if (!opt.no_changes && !val_equal(p->left, p->right))
			val_add_member(b, p->key, p->right);
		return 0;
	}
	if ((r = diff_merged_lists(d, p->left, p->right, &pm, opt, depth, &ld)) < 0)
		return r;
	add_list(d, b, STR_NONE, p->key, ld.items);
	add_list(d, b, DELETE_FROM_LIST, p->key, ld.deletions);
	add_list(d, b, SET_ELEMENT_ORDER, p->key, ld.order);
	return 0;
}

static int diff_object_member(const struct diff *d, const struct pair *p, struct meta meta, struct diff_options opt,
			      unsigned depth, struct val_builder *b)
{
	struct patch_meta pm;
	struct val sub;
	int r;

	if ((r = smp_meta_object(meta, p->key, &pm, d->err)) < 0)
		return val_equal(p->left, p->right) ? 0 : r;
	if (pm.replace) {
		if (!opt.no_changes)
			val_add_member(b, p->key, p->right);
		return 0;
	}
	opt.retain_keys = pm.retain_keys;
	r = diff_objects(d, p->left, p->right, pm.sub, opt, depth + 1, &sub);
	if (r >= 0 && sub.n)
		val_add_member(b, p->key, sub);
	return r;
}

static int diff_member(const struct diff *d, const struct pair *p, struct meta meta, struct diff_options opt,
		       unsigned depth, struct val_builder *b)
{
	if (val_exists(p->left) && str_eq(atom_str(p->key), PATCH_DIRECTIVE)) {
		if (p->left.type != VAL_STRING || p->right.type != VAL_STRING)
			return err_set(d->err, ERR_INTERNAL, "invalid value for special key: $patch");
		if (!val_equal(p->left, p->right))
			val_add_member(b, p->key, p->right);
		return 0;
	}
	if (p->left.type == VAL_OBJECT && p->right.type == VAL_OBJECT)
		return diff_object_member(d, p, meta, opt, depth, b);
	if (p->left.type == VAL_LIST && p->right.type == VAL_LIST)
		return diff_list_member(d, p, meta, opt, depth, b);
	if (!opt.no_changes && (p->left.type != p->right.type || !val_equal(p->left, p->right)))
		val_add_member(b, p->key, p->right);
	return 0;
}

static int diff_objects(const struct diff *d, struct val original, struct val modified, struct meta meta,
			struct diff_options opt, unsigned depth, struct val *ret)
{
	struct pairs ps = patch_pairs_join(d->a, original, modified);
	struct val_builder b = val_builder(d->a), retained = val_builder(d->a);
	bool removed = false;
	int r = patch_depth(depth, d->err);

	for (uint32_t i = 0; r >= 0 && i < ps.n; i++) {
		const struct pair *p = &ps.p[i];
		if (val_exists(p->right)) {
			if (opt.retain_keys && p->right.type != VAL_NULL)
				val_add_item(&retained, val_of_str(atom_str(p->key)));
			r = diff_member(d, p, meta, opt, depth, &b);
		} else {
			removed = removed || p->left.type != VAL_NULL;
			if (!opt.no_deletions)
				val_add_member(&b, p->key, VAL_NULL_VALUE);
		}
	}
	if (retained.n && (b.n || removed))
		val_add_member(&b, atom_make(d->a, RETAIN_KEYS), val_end_list(&retained));
	*ret = patch_sorted(d->a, val_end_object(&b));
	return r;
}

int smp_diff(struct arena *a, struct val original, struct val modified, struct meta meta, struct diff_options opt,
	     struct val *ret, struct err *err)
{
	struct diff d = { .a = a, .err = err };
	return diff_objects(&d, original, modified, meta, opt, 0, ret);
}

int strategic_patch_create(struct arena *a, struct val original, struct val modified, const struct type *type,
			   unsigned preconditions, struct val *ret, struct err *err)
{
	int r;

	if (!type)
		return err_set(err, ERR_BAD_REQUEST, "strategic merge patch format is not supported");
	struct val patch;
	if ((r = patch_objects(original, modified, VAL_EMPTY, err)) < 0 ||
	    (r = smp_diff(a, original, modified, smp_meta_of(type), (struct diff_options){ .element_order = true },
			  &patch, err)) < 0 ||
	    (r = patch_preconditions(patch, preconditions, err)) < 0)
		return r;
	return patch_sorted_deep(a, patch, 0, ret, err);
}
