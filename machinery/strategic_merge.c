/*
 * Applying a strategic merge patch. The steps on one object are those of Kubernetes: $patch, $retainKeys, lists that have
 * a $setElementOrder, then everything else member by member. Go visits the members in random order; here it is the order
 * of the keys, so directives that begin with "$" come before what they speak of.
 *
 * The same code merges two patches for the three-way patch (keep): then directives are data, and nulls stay.
 *
 * Every merge makes a new object or list. A patch whose list names the same item again and again would have it made as
 * often, with all that came before. So members and items are counted, and a patch that merges far more of them than
 * documents have fails.
 */
#include "machinery/strategic_priv.h"

enum { MERGED_MAX = 1 << 20 };

struct merge {
	struct arena *a;
	bool keep;
	size_t *merged; /* members and items so far */
	struct err *err;
};

/* Counts two lists or objects that are about to be merged. */
static int merge_account(const struct merge *m, struct val doc, struct val patch)
{
	*m->merged += (size_t)val_len(doc) + val_len(patch);
	if (*m->merged <= MERGED_MAX)
		return 0;
	return err_set(m->err, ERR_TOO_LARGE, "the patch merges more than %d members and items", MERGED_MAX);
}

static int merge_object(const struct merge *m, struct val doc, struct val patch, struct meta meta, unsigned depth,
			struct val *ret);

/* ---- $patch ---- */

/* %s of a value that should have been a string. */
static str directive_text(struct arena *a, struct val v)
{
	if (v.type == VAL_STRING)
		return val_as_str(v);
	if (v.type == VAL_NULL)
		return STR("%!s(<nil>)");
	return arena_printf(a, "%%!s(%s=" STR_FMT ")", smp_go_type(v), STR_ARG(patch_go_text(a, v)));
}

static int bad_directive(const struct merge *m, struct val directive, struct val object)
{
	return err_set(m->err, ERR_INTERNAL, "unknown patch type: " STR_FMT " in map: " STR_FMT,
		       STR_ARG(directive_text(m->a, directive)), STR_ARG(patch_go_text(m->a, object)));
}

static int merge_directive(const struct merge *m, struct val directive, struct val patch, struct val *ret)
{
	str text = val_as_str(directive);

	if (str_eq(text, STR("replace"))) {
		struct pairs ps = patch_pairs_join(m->a, patch, VAL_EMPTY);
		patch_pairs_find(ps, PATCH_DIRECTIVE)->left = VAL_EMPTY;
		*ret = patch_pairs_left(m->a, ps);
		return 0;
	}
	if (str_eq(text, STR("delete"))) {
		*ret = VAL_EMPTY_OBJECT;
		return 0;
	}
	return bad_directive(m, directive, patch);
}

/*
 * What a value of a patch leaves where nothing was: without objects that have a $patch and, when nulls is false, without
 * members that are null. VAL_NONE when it is such an object itself.
 */
static int take_new(const struct merge *m, struct val v, bool nulls, unsigned depth, struct val *ret)
{
	struct val_builder b = val_builder(m->a);
	struct val child;
	int r = patch_depth(depth, m->err);

	*ret = v;
	if (r < 0 || v.type < VAL_LIST)
		return r;
	if (v.type == VAL_LIST) {
		for (uint32_t i = 0; i < v.n; i++) {
			if ((r = take_new(m, v.items[i], nulls, depth + 1, &child)) < 0)
				return r;
			if (val_exists(child))
				val_add_item(&b, child);
		}
		*ret = val_end_list(&b);
		return 0;
	}
	struct val directive = val_find(v, PATCH_DIRECTIVE);
	if (val_exists(directive) && (nulls || directive.type != VAL_NULL)) {
		*ret = VAL_EMPTY;
		return 0;
	}
	v = patch_sorted(m->a, v);
	for (uint32_t i = 0; i < v.n; i++) {
		if (!nulls && v.members[i].val.type == VAL_NULL)
			continue;
		if ((r = take_new(m, v.members[i].val, nulls, depth + 1, &child)) < 0)
			return r;
		val_add_member(&b, v.members[i].key, child);
	}
	*ret = val_end_object(&b);
	return 0;
}

/* ---- $retainKeys ---- */

static int retain_keys_differ(const struct merge *m, struct val x, struct val y)
{
	return err_set(m->err, ERR_INTERNAL,
		       STR_FMT " and " STR_FMT
			       " are not deep equal: this may happen when calculating the 3-way diff patch",
		       STR_ARG(patch_go_text(m->a, x)), STR_ARG(patch_go_text(m->a, y)));
}

static int merge_retain_keys(const struct merge *m, struct pairs ps)
{
	struct pair *p = patch_pairs_find(ps, RETAIN_KEYS);

	if (!p || !val_exists(p->right))
		return 0;
	struct val keys = p->right;
	p->right = VAL_EMPTY;
	if (m->keep) {
		if (val_exists(p->left) && !val_equal(p->left, keys))
			return retain_keys_differ(m, p->left, keys);
		p->left = keys;
		return 0;
	}
	if (keys.type != VAL_LIST)
		return err_set(m->err, ERR_BAD_REQUEST, "invalid patch format of retainKeys");
	struct positions retained = smp_positions_of(m->a, keys, STR_NONE);
	for (uint32_t i = 0; i < ps.n; i++) {
		str key = atom_str(ps.p[i].key);
		if (smp_positions_find(retained, val_of_str(key)) >= 0)
			continue;
		bool said = !val_is_nil(ps.p[i].right) && !str_starts(key, DELETE_FROM_LIST) &&
			    !str_starts(key, SET_ELEMENT_ORDER);
		if (said)
			return err_set(m->err, ERR_BAD_REQUEST, "invalid patch format of retainKeys");
		ps.p[i].left = VAL_EMPTY;
	}
	return 0;
}

/* ---- lists ---- */

/* The items of a list of objects after a patch. */
struct item_merge {
	struct val kept;  /* the document's items that are not deleted */
	struct val plain; /* the patch's items without directive */
	struct val merged;
	uint32_t n_deleted;
	bool replace;
};

/* Carries out the items that have a $patch. */
static int merge_special_items(const struct merge *m, struct val doc, struct val patch, str merge_key,
			       struct item_merge *im)
{
	struct val_builder plain = val_builder(m->a), deletes = val_builder(m->a), kept = val_builder(m->a);

	VAL_EACH(item, patch) {
		struct val directive = val_find(*item, PATCH_DIRECTIVE);
		str text = val_as_str(directive);

		if (!val_exists(directive))
			val_add_item(&plain, *item);
		else if (str_eq(text, STR("replace")))
			im->replace = true;
		else if (str_eq(text, STR("merge")))
			return err_set(m->err, ERR_INTERNAL, "merging lists cannot yet be specified in the patch");
		else if (!str_eq(text, STR("delete")))
			return bad_directive(m, directive, *item);
		else if (!val_exists(val_find(*item, merge_key)))
			return smp_no_merge_key(*item, merge_key, m->err);
		else
			val_add_item(&deletes, *item);
	}
	struct positions deleted = smp_positions_of(m->a, val_end_list(&deletes), merge_key);
	VAL_EACH(item, doc)
		if (smp_positions_find(deleted, val_find(*item, merge_key)) < 0)
			val_add_item(&kept, *item);
	im->plain = val_end_list(&plain);
	im->kept = val_end_list(&kept);
	im->n_deleted = val_len(doc) - im->kept.n;
	return 0;
}

/* Merges each plain item into the first one of its key, which can be an earlier plain one, or appends it. */
static int merge_plain_items(const struct merge *m, struct item_merge *im, const struct patch_meta *pm, unsigned depth)
{
	struct positions in_doc = smp_positions_of(m->a, im->kept, pm->merge_key);
	struct positions in_patch = smp_positions_of(m->a, im->plain, pm->merge_key);
	struct val *items = ARENA_ARRAY(m->a, struct val, (size_t)im->kept.n + im->plain.n);
	uint32_t *appended = ARENA_ARRAY(m->a, uint32_t, im->plain.n), n = im->kept.n;
	int r;

	if (n)
		memcpy(items, im->kept.items, n * sizeof(*items));
	for (uint32_t i = 0; i < im->plain.n; i++) {
		struct val item = im->plain.items[i], key = val_find(item, pm->merge_key);
		if (!val_exists(key))
			return smp_no_merge_key(item, pm->merge_key, m->err);
		int64_t at = smp_positions_find(in_doc, key), first = smp_positions_find(in_patch, key);
		if (at < 0 && first >= 0 && first < i)
			at = appended[first];
		if (at < 0) {
			appended[i] = n;
			items[n++] = item;
		} else if ((r = merge_object(m, items[at], item, pm->sub, depth + 2, &items[at])) < 0) {
			return r;
		}
	}
	im->merged = (struct val){ .type = VAL_LIST, .n = n, .items = items };
	return 0;
}

/*
 * *ret_order is what Kubernetes takes for the order of the document's list afterwards: in its memory the first appended
 * items stand in the room that deleted ones left behind.
 */
static int merge_objects(const struct merge *m, struct val doc, struct val patch, const struct patch_meta *pm,
			 unsigned depth, struct val *ret, struct val *ret_order)
{
	struct item_merge im = { 0 };
	struct val in, out;
	int r;

	if (!pm->merge_key.n)
		return err_set(m->err, ERR_INTERNAL, "cannot merge lists without merge key for %s",
			       smp_meta_kind(pm->sub));
	if ((r = merge_special_items(m, doc, patch, pm->merge_key, &im)) < 0)
		return r;
	*ret_order = im.kept;
	if (im.replace) {
		im.kept = im.plain;
		im.plain = VAL_EMPTY_LIST;
	}
	if ((r = merge_plain_items(m, &im, pm, depth)) < 0 ||
	    (r = smp_list_partition(m->a, im.merged, im.plain, pm->merge_key, &in, &out, m->err)) < 0)
		return r;
	if (!im.replace) {
		*ret_order = im.merged;
		ret_order->n = MIN(im.kept.n + im.n_deleted, im.merged.n);
	}
	struct val server = im.merged;
	server.n = im.kept.n;
	return smp_list_order(m->a, in, out, im.plain, server, pm->merge_key, true, ret, m->err);
}

/* Two lists of a field; delete: patch lists what is to be deleted. */
static int merge_list(const struct merge *m, struct val doc, struct val patch, const struct patch_meta *pm, bool delete,
		      unsigned depth, struct val *ret, struct val *ret_order)
{
	struct val in, out;
	uint8_t type;
	int r;

	*ret_order = doc;
	*ret = patch;
	if (!pm->merge && !delete)
		return 0;
	*ret = doc;
	if (doc.n == 0 && patch.n == 0)
		return 0;
	if ((r = merge_account(m, doc, patch)) < 0 || (r = smp_list_type(doc, patch, &type, m->err)) < 0)
		return r;
	if (type == VAL_OBJECT)
		return merge_objects(m, doc, patch, pm, depth, ret, ret_order);
	if (delete)
		return smp_list_partition(m->a, doc, patch, STR_NONE, &in, ret, m->err);
	struct val both = smp_list_unique(m->a, smp_list_concat(m->a, doc, patch));
	if ((r = smp_list_partition(m->a, both, patch, pm->merge_key, &in, &out, m->err)) < 0)
		return r;
	return smp_list_order(m->a, in, out, patch, doc, pm->merge_key, false, ret, m->err);
}

/* ---- $setElementOrder ---- */

/* The name of the list behind "$directive/name". */
static int directive_list(str key, str directive, const char *what, str *ret, struct err *err)
{
	str head;
	if (!str_cut(key, '/', &head, ret) || !str_eq(head, directive))
		return err_set(err, ERR_BAD_REQUEST, "invalid patch format of %s", what);
	return 0;
}

static int same_key(struct val x, struct val y, str merge_key, bool *ret, struct err *err)
{
	*ret = false;
	if (!merge_key.n) {
		*ret = smp_scalar_same(x, y);
		return 0;
	}
	if (x.type != VAL_OBJECT || y.type != VAL_OBJECT)
		return smp_bad_type("map[string]interface {}", x.type != VAL_OBJECT ? x : y, err);
	struct val kx = val_find(x, merge_key), ky = val_find(y, merge_key);
	if (!val_exists(kx) || !val_exists(ky))
		return smp_no_merge_key(val_exists(kx) ? y : x, merge_key, err);
	*ret = smp_scalar_same(kx, ky);
	return 0;
}

/* All items of the patch, but for deletions, must occur in the order list, in the same sequence. */
static int check_element_order(const struct merge *m, struct val patch, struct val order, str merge_key)
{
	uint32_t i = 0, j = 0;
	bool same;
	int r;

	if (val_len(order) == 0 || val_len(patch) == 0)
		return 0;
	VAL_EACH(item, patch)
		if (merge_key.n && item->type != VAL_OBJECT)
			return smp_bad_type("map[string]interface {}", *item, m->err);
	while (i < patch.n && j < order.n) {
		if (patch.items[i].type == VAL_OBJECT && val_exists(val_find(patch.items[i], PATCH_DIRECTIVE))) {
			i++;
			continue;
		}
		if ((r = same_key(patch.items[i], order.items[j], merge_key, &same, m->err)) < 0)
			return r;
		i += same;
		j++;
	}
	while (i < patch.n && merge_key.n && smp_is_delete(patch.items[i]))
		i++;
	if (i == patch.n)
		return 0;
	return err_set(m->err, ERR_INTERNAL,
		       "The order in patch list:\n" STR_FMT "\n doesn't match $setElementOrder list:\n" STR_FMT "\n",
		       STR_ARG(patch_go_text(m->a, patch)), STR_ARG(patch_go_text(m->a, order)));
}

/* Merges the list that an order directive p speaks of. */
static int merge_ordered(const struct merge *m, struct pairs ps, struct pair *p, struct meta meta, unsigned depth)
{
	struct val order = p->right, in, out, merged, server;
	struct patch_meta pm;
	uint8_t type;
	str name;
	int r;

	if (m->keep) {
		if (val_exists(p->left) && !val_equal(p->left, order))
			return err_set(m->err, ERR_BAD_REQUEST, "invalid patch format of setElementOrder list");
		p->left = order;
	}
	p->right = VAL_EMPTY;
	if (order.type != VAL_LIST)
		return smp_bad_type("[]interface {}", order, m->err);
	if ((r = directive_list(atom_str(p->key), SET_ELEMENT_ORDER, "setElementOrder list", &name, m->err)) < 0)
		return r;
	struct pair *f = patch_pairs_find(ps, name);
	struct val doc = f ? f->left : VAL_EMPTY, patch = f ? f->right : VAL_EMPTY;
	if ((val_exists(doc) && doc.type != VAL_LIST) || (val_exists(patch) && patch.type != VAL_LIST))
		return smp_bad_type("[]interface {}", val_exists(doc) && doc.type != VAL_LIST ? doc : patch, m->err);
	if ((r = merge_account(m, doc, order)) < 0 || (r = smp_meta_list(meta, name, &pm, m->err)) < 0 ||
	    (r = check_element_order(m, patch, order, pm.merge_key)) < 0)
		return r;
	if (!val_exists(doc) && !val_exists(patch))
		return 0;

	server = merged = doc;
	if (!val_exists(doc))
		r = take_new(m, patch, true, depth + 1, &merged);
	else if (val_exists(patch))
		r = merge_list(m, doc, patch, &pm, false, depth, &merged, &server);
	if (r < 0 || (r = smp_list_partition(m->a, merged, order, pm.merge_key, &in, &out, m->err)) < 0 ||
	    (r = smp_list_type(doc, patch, &type, m->err)) < 0 ||
	    (r = smp_list_order(m->a, in, out, order, server, pm.merge_key, type == VAL_OBJECT, &f->left, m->err)) < 0)
		return r;
	f->right = VAL_EMPTY;
	return 0;
}

/* ---- members ---- */

/* The member f of the document takes v, of the patch. delete: v lists what is to be deleted from it. */
static int merge_value(const struct merge *m, struct pair *f, struct val v, bool delete, struct meta meta, unsigned depth)
{
	struct patch_meta pm;
	struct val order;
	int r;

	if (v.type == VAL_NULL) {
		f->left = m->keep ? v : VAL_EMPTY;
		return 0;
	}
	if (!val_exists(f->left) || f->left.type != v.type)
		return delete ? 0 : take_new(m, v, m->keep, depth + 1, &f->left);
	if (v.type == VAL_LIST) {
		r = smp_meta_list(meta, atom_str(f->key), &pm, m->err);
		return r < 0 ? r : merge_list(m, f->left, v, &pm, delete, depth, &f->left, &order);
	}
	if (v.type == VAL_OBJECT) {
		if ((r = smp_meta_object(meta, f->key, &pm, m->err)) < 0)
			return r;
		if (!pm.replace)
			return merge_object(m, f->left, v, pm.sub, depth + 1, &f->left);
	}
	f->left = v;
	return 0;
}

static int merge_member(const struct merge *m, struct pairs ps, struct pair *p, struct meta meta, unsigned depth)
{
	str name;
	int r;

	if (!str_starts(atom_str(p->key), DELETE_FROM_LIST))
		return merge_value(m, p, p->right, false, meta, depth);
	if (m->keep) {
		p->left = p->right;
		return 0;
	}
	if ((r = directive_list(atom_str(p->key), DELETE_FROM_LIST, "primitive list", &name, m->err)) < 0)
		return r;
	struct pair *f = name.n ? patch_pairs_find(ps, name) : p;
	return f ? merge_value(m, f, p->right, true, meta, depth) : 0;
}

static int merge_object(const struct merge *m, struct val doc, struct val patch, struct meta meta, unsigned depth,
			struct val *ret)
{
	struct val directive = val_find(patch, PATCH_DIRECTIVE);
	int r = patch_depth(depth, m->err);

	if (r < 0)
		return r;
	if (val_exists(directive))
		return merge_directive(m, directive, patch, ret);
	if ((r = merge_account(m, doc, patch)) < 0)
		return r;
	struct pairs ps = patch_pairs_join(m->a, doc, patch);
	r = merge_retain_keys(m, ps);
	for (uint32_t i = 0; r >= 0 && i < ps.n; i++)
		if (val_exists(ps.p[i].right) && str_starts(atom_str(ps.p[i].key), SET_ELEMENT_ORDER))
			r = merge_ordered(m, ps, &ps.p[i], meta, depth);
	for (uint32_t i = 0; r >= 0 && i < ps.n; i++)
		if (val_exists(ps.p[i].right))
			r = merge_member(m, ps, &ps.p[i], meta, depth);
	*ret = patch_pairs_left(m->a, ps);
	return r;
}

int smp_merge(struct arena *a, struct val doc, struct val patch, struct meta meta, bool keep, struct val *ret,
	      struct err *err)
{
	size_t merged = 0;
	struct merge m = { .a = a, .keep = keep, .merged = &merged, .err = err };
	return merge_object(&m, doc, patch, meta, 0, ret);
}

int strategic_patch_apply(struct arena *a, struct val doc, struct val patch, const struct type *type, struct val *ret,
			  struct err *err)
{
	if (!val_is_nil(patch) && patch.type != VAL_OBJECT)
		return err_set(err, ERR_BAD_REQUEST,
			       "json: cannot unmarshal %s into Go value of type map[string]interface {}",
			       patch_json_type(patch));
	if (!type)
		return err_set(err, ERR_BAD_REQUEST, "strategic merge patch format is not supported");
	return smp_merge(a, doc, patch, smp_meta_of(type), false, ret, err);
}
