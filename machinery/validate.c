/*
 * Finds a kind's rules and calls them in the order in which Kubernetes does: the generic part of the server on one
 * side, the strategy of the kind on the other (see validate_priv.h).
 */
#include "codec/atoms.h"
#include "codec/codec.h"
#include "machinery/validate_priv.h"

static const struct kind_rules *const all_rules[] = {
	rules_pod, rules_workloads, rules_core, rules_networking, rules_storage, rules_access, rules_extensions,
};

static const struct kind_rules *rules_of(const struct type *type)
{
	static const struct kind_rules none;
	for (size_t i = 0; i < ARRAY_LEN(all_rules); i++)
		for (const struct kind_rules *r = all_rules[i]; r->type; r++)
			if (r->type == type || (str_eq(r->type->name, type->name) && str_eq(r->type->package->group, type->package->group)))
				return r;
	return &none;
}

static bool has_status(const struct type *type) { return schema_resource(type, STR("status")) != NULL; }

/* ---- defaults ---- */

struct val default_member(struct arena *a, struct val object, atom key, struct val v)
{
	return val_exists(val_member(object, key)) || !val_exists(v) ? object : val_put(a, object, key, v);
}

struct val edit_member(struct arena *a, struct val object, atom key, struct val (*fn)(struct arena *a, struct val member))
{
	struct val v = val_member(object, key), now = val_exists(v) ? fn(a, v) : v;
	return val_same(now, v) ? object : val_put(a, object, key, now);
}

struct val edit_items(struct arena *a, struct val list, struct val (*fn)(struct arena *a, struct val item))
{
	struct val_builder b = val_builder(a);
	bool changed = false;

	VAL_EACH(item, list) {
		struct val now = fn(a, *item);
		changed |= !val_same(now, *item);
		val_add_item(&b, now);
	}
	return changed ? val_end_list(&b) : list;
}

static struct val declared_default(struct arena *a, const struct field *f)
{
	struct json_decode_options plain = { 0 };
	struct err ignored;
	struct val v;

	return json_decode(a, f->facts->default_json, &plain, &v, &ignored) < 0 ? VAL_EMPTY : v;
}

static struct val set_declared(struct arena *a, const struct type *type, struct val v, unsigned depth);

static struct val set_declared_items(struct arena *a, const struct field *f, struct val list, unsigned depth)
{
	struct val_builder b = val_builder(a);
	bool changed = false;

	VAL_EACH(item, list) {
		struct val now = set_declared(a, f->type, *item, depth);
		changed |= !val_same(now, *item);
		val_add_item(&b, now);
	}
	return changed ? val_end_list(&b) : list;
}

static struct val set_declared_entries(struct arena *a, const struct field *f, struct val map, unsigned depth)
{
	struct val_builder b = val_builder(a);
	bool changed = false;

	VAL_EACH_MEMBER(m, map) {
		struct val now = set_declared(a, f->type, m->val, depth);
		changed |= !val_same(now, m->val);
		val_add_member(&b, m->key, now);
	}
	return changed ? val_end_object(&b) : map;
}

/* The value of a field with the defaults below it. A struct that is no pointer is always there. */
static struct val set_declared_below(struct arena *a, const struct field *f, struct val v, unsigned depth)
{
	if (f->shape == SHAPE_LIST)
		return set_declared_items(a, f, v, depth);
	if (f->shape == SHAPE_MAP)
		return set_declared_entries(a, f, v, depth);
	if (val_exists(v))
		return set_declared(a, f->type, v, depth);
	if (f->flags & FIELD_POINTER)
		return v;
	struct val made = set_declared(a, f->type, VAL_EMPTY_OBJECT, depth);
	return val_len(made) ? made : v;
}

static struct val set_declared(struct arena *a, const struct type *type, struct val v, unsigned depth)
{
	if (!(type->flags & TYPE_DEFAULTS) || !val_is(v, VAL_OBJECT) || depth == VAL_RECURSION_MAX)
		return v;
	for (const struct field *f = type->fields; f < type->fields + type->n_fields; f++) {
		bool message = f->kind == KIND_MESSAGE;
		if (!(message ? f->type->flags & TYPE_DEFAULTS : f->flags & FIELD_DEFAULT))
			continue;
		struct val before = val_member(v, f->name), now = before;
		if (message)
			now = set_declared_below(a, f, before, depth + 1);
		else if (!val_exists(before))
			now = declared_default(a, f);
		if (!val_same(now, before))
			v = val_put(a, v, f->name, now);
	}
	return v;
}

int default_object(struct arena *a, const struct type *type, struct val object, struct val *ret, struct err *err)
{
	const struct kind_rules *rules = rules_of(type);
	struct val now = rules->defaults ? rules->defaults(a, object) : object;

	return val_canonical_edit(a, set_declared(a, type, now, 0), object, type, ret, err);
}

/* ---- preparing ---- */

int prepare_create(struct arena *a, const struct type *type, struct val gates, struct val object, struct val *ret, struct err *err)
{
	const struct kind_rules *rules = rules_of(type);
	struct val given = object;

	if (has_status(type) && !(rules->flags & KIND_STATUS_ON_CREATE))
		object = val_without(a, object, status);
	object = drop_disabled_fields(a, type, gates, object, VAL_EMPTY);
	if (rules->flags & KIND_GENERATION)
		object = val_with(a, object, val_of_int(1), metadata, generation);
	if (rules->prepare)
		object = rules->prepare(a, object);
	return val_canonical_edit(a, object, given, type, ret, err);
}

/* What the object is about: all but what describes it and what came of it. */
static struct val content(struct arena *a, struct val object)
{
	static const uint16_t other[] = { A_apiVersion, A_kind, A_metadata, A_status };
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		object = val_put(a, object, other[i], VAL_EMPTY);
	return object;
}

/* For a write to the status: the old object with the new metadata and status. */
static struct val keep_content(struct arena *a, struct val object, struct val old)
{
	old = val_put(a, old, A_metadata, val_get(object, metadata));
	return val_put(a, old, A_status, val_get(object, status));
}

int prepare_update(struct arena *a, const struct type *type, struct val gates, str subresource, struct val object, struct val old,
		   struct val *ret, struct err *err)
{
	const struct kind_rules *rules = rules_of(type);
	int64_t generation = val_int(old, metadata, generation);
	struct val given = object;

	if (subresource.n == 0 && has_status(type))
		object = val_put(a, object, A_status, val_get(old, status));
	else if (str_eq(subresource, STR("status")))
		object = keep_content(a, object, old);
	object = drop_disabled_fields(a, type, gates, object, old);
	object = val_with(a, object, generation ? val_of_int(generation) : VAL_EMPTY, metadata, generation);
	if (rules->prepare_update)
		object = rules->prepare_update(a, subresource, object, old);
	if ((rules->flags & KIND_GENERATION) && val_int(object, metadata, generation) == generation &&
	    !val_semantic_equal(type, content(a, object), content(a, old)))
		object = val_with(a, object, val_of_int(generation + 1), metadata, generation);
	return val_canonical_edit(a, object, given, type, ret, err);
}

/* ---- validation ---- */

static name_rule *name_of(const struct kind_rules *rules) { return rules->name ? rules->name : name_rule_path_segment; }

void validate_create(const struct type *type, struct val object, struct field_errors *errors)
{
	const struct kind_rules *rules = rules_of(type);
	const struct field_path *at = FIELD(NULL, "metadata");
	struct val meta = val_get(object, metadata);
	bool namespaced = type_is_namespaced(type);
	size_t before = errors->n;

	if (rules->type && !(rules->flags & KIND_OWN_META))
		check_object_meta(errors, at, meta, namespaced, name_of(rules));
	if (rules->check)
		rules->check(errors, object);
	if (rules->flags & KIND_DECLARATIVE)
		check_declared(errors, type, object, VAL_EMPTY);
	if (errors->n == before && !(rules->flags & KIND_NOT_STORED))
		check_generic_meta(errors, at, meta, namespaced, name_rule_path_segment);
}

/*
 * What the server does for every update before the kind's own rules; with_kind: and the part of those that is the same
 * everywhere.
 */
static void check_update_meta(struct field_errors *e, const struct type *type, struct val object, struct val old,
			      bool with_kind)
{
	const struct field_path *at = FIELD(NULL, "metadata");
	struct val meta = val_get(object, metadata), before = val_get(old, metadata);

	check_generic_meta(e, at, meta, type_is_namespaced(type), name_rule_path_segment);
	check_generic_meta_update(e, at, meta, before);
	if (with_kind)
		check_object_meta_update(e, at, meta, before);
}

void validate_update(const struct type *type, struct val object, struct val old, struct field_errors *errors)
{
	const struct kind_rules *rules = rules_of(type);

	check_update_meta(errors, type, object, old, rules->type && !(rules->flags & KIND_OWN_META));
	if (rules->check_update) {
		rules->check_update(errors, object, old);
	} else if (rules->check) {
		if (!(rules->flags & KIND_OWN_META))
			check_object_meta(errors, FIELD(NULL, "metadata"), val_get(object, metadata), type_is_namespaced(type),
					  name_of(rules));
		rules->check(errors, object);
	}
	if (rules->flags & KIND_DECLARATIVE)
		check_declared(errors, type, object, old);
}

void validate_subresource(const struct type *type, str subresource, struct val object, struct val old,
			  struct field_errors *errors)
{
	const struct kind_rules *rules = rules_of(type);

	check_update_meta(errors, type, object, old, rules->check_subresource && !(rules->flags & KIND_OWN_META));
	if (rules->check_subresource)
		rules->check_subresource(errors, subresource, object, old);
	if (rules->flags & KIND_DECLARATIVE)
		check_declared(errors, type, object, old);
}
