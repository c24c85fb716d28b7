/*
 * The form that objects have once they were stored. Kubernetes answers a write with what it would read back, and what is
 * read back from protobuf has no empty lists and maps.
 */
#include "apiserver/cache.h"

static struct val strip(struct arena *a, struct val v, const struct type *type, unsigned depth);

static bool is_dropped(const struct field *f, struct val v)
{
	return f && f->shape != SHAPE_ONE && (val_is(v, VAL_LIST) || val_is(v, VAL_OBJECT)) && v.n == 0;
}

/* The items (members) of a list or map of messages; the same value when none of them changes. */
static struct val strip_all(struct arena *a, struct val v, const struct type *type, unsigned depth)
{
	bool list = val_is(v, VAL_LIST);
	struct val_builder b = val_builder(a);
	bool changed = false;
	for (uint32_t i = 0; i < v.n; i++) {
		struct val item = list ? v.items[i] : v.members[i].val, stripped = strip(a, item, type, depth);
		if (!changed && stripped.members != item.members) {
			changed = true;
			for (uint32_t k = 0; k < i; k++) {
				if (list)
					val_add_item(&b, v.items[k]);
				else
					val_add_member(&b, v.members[k].key, v.members[k].val);
			}
		}
		if (changed && list)
			val_add_item(&b, stripped);
		else if (changed)
			val_add_member(&b, v.members[i].key, stripped);
	}
	if (!changed)
		return v;
	return list ? val_end_list(&b) : val_end_object(&b);
}

static struct val strip_member(struct arena *a, const struct field *f, struct val v, unsigned depth)
{
	if (!f || f->kind != KIND_MESSAGE)
		return v;
	if (f->shape == SHAPE_ONE)
		return strip(a, v, f->type, depth);
	return val_len(v) ? strip_all(a, v, f->type, depth) : v;
}

static struct val strip(struct arena *a, struct val v, const struct type *type, unsigned depth)
{
	if (!val_is(v, VAL_OBJECT) || type->form != FORM_OBJECT || depth == VAL_RECURSION_MAX)
		return v;
	struct val_builder b = val_builder(a);
	bool changed = false;
	for (uint32_t i = 0; i < v.n; i++) {
		const struct member *m = &v.members[i];
		const struct field *f = type_field(type, m->key);
		bool dropped = is_dropped(f, m->val);
		struct val stripped = dropped ? VAL_EMPTY : strip_member(a, f, m->val, depth + 1);
		if (!changed && (dropped || (stripped.type >= VAL_LIST && stripped.members != m->val.members))) {
			changed = true;
			for (uint32_t k = 0; k < i; k++)
				val_add_member(&b, v.members[k].key, v.members[k].val);
		}
		if (changed)
			val_add_member(&b, m->key, stripped);
	}
	return changed ? val_end_object(&b) : v;
}

struct val cache_stored_form(struct arena *a, const struct kind *kind, struct val object)
{
	return kind->protobuf ? strip(a, object, kind->hub, 0) : object;
}
