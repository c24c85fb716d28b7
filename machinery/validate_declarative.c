/*
 * The declarative rules of the schema, as in facts->rules: "minimum=1 maxItems=8 immutable". Kubernetes 1.36 has them
 * for many types and enforces them for the few kinds that were made with them; those have KIND_DECLARATIVE. What an
 * update leaves as it was is not checked again.
 */
#include "codec/atoms.h"
#include "machinery/validate_priv.h"

enum { POOL_NAME_MAX = 253 };

/* ---- rules ---- */

/* The next word of a list of rules; false at its end. */
static bool next_rule(str *rules, str *ret_name, str *ret_value)
{
	str word;

	if (rules->n == 0)
		return false;
	str_cut(*rules, ' ', &word, rules);
	str_cut(word, '=', ret_name, ret_value);
	return true;
}

static bool find_rule(const struct field *f, str name, str *ret_value)
{
	str rules = f->facts->rules, found;
	while (next_rule(&rules, &found, ret_value))
		if (str_eq(found, name))
			return true;
	return false;
}

static bool has_rule(const struct field *f, str name)
{
	str ignored;
	return find_rule(f, name, &ignored);
}

static int64_t number_rule(const struct field *f, str name, int64_t otherwise)
{
	str value;
	int64_t n;
	return find_rule(f, name, &value) && str_to_i64(value, &n) ? n : otherwise;
}

/* ---- values ---- */

static void check_pool_name(struct field_errors *e, const struct field_path *at, str value)
{
	str rest = value, part;
	bool more = true;

	if (value.n > POOL_NAME_MAX)
		field_too_long(e, at, POOL_NAME_MAX);
	for (size_t i = 0; more && i <= POOL_NAME_MAX; i++) {
		struct name_errors found;
		more = str_cut(rest, '/', &part, &rest);
		if (part.n == 0)
			field_invalid(e, at, VAL_STR(value), "segment %zu: must not be empty", i);
		else if (name_check_long_name(part, &found))
			for (size_t k = 0; k < found.n; k++)
				field_invalid(e, at, VAL_STR(value), "segment %zu: " STR_FMT, i, STR_ARG(found.text[k]));
	}
}

static void check_format(struct field_errors *e, const struct field_path *at, str format, str value)
{
	static const struct {
		str name;
		name_check *check;
	} formats[] = {
		{ STR_INIT("k8s-short-name"), name_check_short_name },
		{ STR_INIT("k8s-long-name"), name_check_long_name },
		{ STR_INIT("k8s-long-name-caseless"), name_check_long_name_caseless },
		{ STR_INIT("k8s-label-key"), name_check_label_key },
		{ STR_INIT("k8s-label-value"), name_check_label_value },
		{ STR_INIT("k8s-path-segment-name"), name_check_path_segment },
	};
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (str_eq(format, formats[i].name))
			check_name(e, at, value, formats[i].check);
	if (str_eq(format, STR("k8s-resource-pool-name")))
		check_pool_name(e, at, value);
}

static void check_scalar(struct field_errors *e, const struct field_path *at, const struct field *f, struct val v)
{
	int64_t min = number_rule(f, STR("minimum"), INT64_MIN), max = number_rule(f, STR("maximum"), INT64_MAX);
	int64_t bytes = number_rule(f, STR("maxBytes"), INT64_MAX);
	str format;

	if (find_rule(f, STR("format"), &format))
		check_format(e, at, format, val_as_str(v));
	if (val_as_int(v) < min)
		field_invalid(e, at, v, "must be greater than or equal to %lld", (long long)min);
	if (val_as_int(v) > max)
		field_invalid(e, at, v, "must be less than or equal to %lld", (long long)max);
	if (val_as_str(v).n > (uint64_t)bytes)
		field_too_long(e, at, bytes);
	if (f->facts->values)
		check_one_of(e, at, val_as_str(v), f->facts->values);
}

/* ---- objects ---- */

struct change {
	struct val now, old;
	bool is_update; /* there is an old value to compare with */
};

static void check_object(struct field_errors *e, const struct field_path *at, const struct type *t, struct change c,
			 unsigned depth);

/* Exactly one of the members of a union. */
static void check_union(struct field_errors *e, const struct field_path *at, const struct type *t, struct change c)
{
	str all = STR_NONE, given = STR_NONE;
	unsigned n = 0, members = 0;
	bool changed = !c.is_update;

	for (const struct field *f = t->fields; f < t->fields + t->n_fields; f++) {
		bool set = val_exists(val_member(c.now, f->name));
		if (!has_rule(f, STR("unionMember")))
			continue;
		str name = atom_str(f->name);
		all = arena_printf(e->arena, STR_FMT "%s`" STR_FMT "`", STR_ARG(all), members++ ? ", " : "", STR_ARG(name));
		changed |= set != val_exists(val_member(c.old, f->name));
		if (set)
			given = arena_printf(e->arena, STR_FMT "%s" STR_FMT, STR_ARG(given), n++ ? ", " : "",
					     STR_ARG(name));
	}
	if (!members || !changed)
		return;
	if (n > 1)
		field_invalid(e, at, VAL_STR(arena_printf(e->arena, "{" STR_FMT "}", STR_ARG(given))),
			      "must specify exactly one of: " STR_FMT, STR_ARG(all));
	else if (n == 0)
		field_invalid(e, at, VAL_LIT(""), "must specify one of: " STR_FMT, STR_ARG(all));
}

static bool same_keys(const struct field *f, struct val a, struct val b)
{
	for (const atom *key = f->facts->map_keys; *key; key++)
		if (!val_equal(val_member(a, *key), val_member(b, *key)))
			return false;
	return true;
}

/*
 * Items of keyed lists are compared with the old item of the same keys, others are new. Lists are short: maxItems was
 * checked.
 */
static void check_items(struct field_errors *e, const struct field_path *at, const struct field *f, struct change c,
			unsigned depth)
{
	bool keyed = f->facts->map_keys != NULL;

	for (uint32_t i = 0; keyed && i < val_len(c.now); i++)
		for (uint32_t j = 0; j < i; j++)
			if (same_keys(f, val_at(c.now, i), val_at(c.now, j))) {
				field_duplicate(e, FIELD_INDEX(at, i), published_form(e->arena, f->type, val_at(c.now, i)));
				break;
			}
	for (uint32_t i = 0; i < val_len(c.now); i++) {
		struct change item = { .now = val_at(c.now, i) };
		for (uint32_t j = 0; keyed && c.is_update && j < val_len(c.old) && !item.is_update; j++)
			if (same_keys(f, item.now, val_at(c.old, j)))
				item = (struct change){ item.now, val_at(c.old, j), true };
		if (f->kind != KIND_MESSAGE)
			check_scalar(e, FIELD_INDEX(at, i), f, item.now);
		else if (!item.is_update || !val_semantic_equal(f->type, item.now, item.old))
			check_object(e, FIELD_INDEX(at, i), f->type, item, depth);
	}
}

static bool is_required(const struct field *f)
{
	bool is_struct = f->kind == KIND_MESSAGE && f->shape == SHAPE_ONE && !(f->flags & FIELD_POINTER);
	return !is_struct && ((f->flags & FIELD_REQUIRED) || has_rule(f, STR("required")));
}

/* Rules about the field as a whole; false when it is not to be looked into any further. */
static bool check_whole(struct field_errors *e, const struct field_path *at, const struct field *f, struct change c)
{
	int64_t max_items = number_rule(f, STR("maxItems"), INT64_MAX);
	size_t before = e->n;

	if (has_rule(f, STR("gated"))) { /* by features that are off */
		if (!val_is_zero(c.now))
			field_forbidden(e, at, "%s", "");
		return false;
	}
	if (c.is_update && has_rule(f, STR("immutable")))
		field_invalid(e, at, VAL_NULL_VALUE, "field is immutable");
	if (f->shape == SHAPE_LIST && (int64_t)val_len(c.now) > max_items)
		field_too_many(e, at, val_len(c.now), max_items);
	if (is_required(f) && (f->flags & FIELD_POINTER ? val_is_nil(c.now) : val_is_zero(c.now)))
		field_missing(e, at);
	return e->n == before;
}

static void check_field(struct field_errors *e, const struct field_path *at, const struct field *f, struct change c,
			unsigned depth)
{
	if ((c.is_update && field_semantic_equal(f, c.now, c.old)) || !check_whole(e, at, f, c))
		return;
	if (f->shape == SHAPE_LIST)
		check_items(e, at, f, c, depth);
	else if (f->kind == KIND_MESSAGE && f->shape == SHAPE_ONE && (val_exists(c.now) || !(f->flags & FIELD_POINTER)))
		check_object(e, at, f->type, c, depth);
	else if (f->kind != KIND_MESSAGE && val_exists(c.now))
		check_scalar(e, at, f, c.now);
}

static void check_object(struct field_errors *e, const struct field_path *at, const struct type *t, struct change c,
			 unsigned depth)
{
	if (depth == VAL_RECURSION_MAX || str_starts(t->package->name, STR("meta/")))
		return;
	check_union(e, at, t, c);
	for (const struct field *f = t->fields; f < t->fields + t->n_fields; f++) {
		struct change below = { val_member(c.now, f->name), val_member(c.old, f->name), c.is_update };
		check_field(e, FIELD_STR(at, atom_str(f->name)), f, below, depth + 1);
	}
}

void check_declared(struct field_errors *e, const struct type *type, struct val object, struct val old)
{
	check_object(e, NULL, type, (struct change){ object, old, val_exists(old) }, 0);
}
