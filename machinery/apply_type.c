/*
 * The two schemas that are always there. What counts as typeless, and which list has which kind, is what the API
 * server's OpenAPI v3 documents say.
 */
#include "machinery/apply_type.h"

/* ---- types of which nothing is known ---- */

enum deduced_form { ANY_MEMBERS, ANY_ATOMIC };

static void deduced_shape(struct apply_type t, struct apply_shape *ret)
{
	*ret = (struct apply_shape){
		.scalar = APPLY_UNTYPED, .list = true, .map = true,
		.list_atomic = true, .map_atomic = t.form == ANY_ATOMIC, .deduced = t.form == ANY_MEMBERS,
	};
}

static int deduced_member(struct apply_type t, atom name, struct apply_type *ret)
{
	(void)name;
	*ret = t;
	return 1;
}

static struct apply_type deduced_item(struct apply_type t)
{
	(void)t;
	return apply_type_atomic();
}

static str deduced_default(struct apply_type t, atom name)
{
	(void)t;
	(void)name;
	return STR_NONE;
}

static const struct apply_schema deduced_schema = {
	.shape = deduced_shape, .member = deduced_member, .item = deduced_item, .default_json = deduced_default,
};

struct apply_type apply_type_deduced(void) { return (struct apply_type){ &deduced_schema, NULL, ANY_MEMBERS }; }
struct apply_type apply_type_atomic(void) { return (struct apply_type){ &deduced_schema, NULL, ANY_ATOMIC }; }

/* ---- built-in types ---- */

enum table_form {
	STRUCT,          /* node is a struct type */
	STRUCT_ATOMIC,   /* ... that a field makes atomic, or */
	STRUCT_GRANULAR, /* ... makes not so */
	WHOLE,           /* node is a struct field: the list, map or scalar that it is */
	ELEMENT,         /* the elements of a list or map */
	TEXT,            /* a string; node is NULL */
};

static const struct apply_schema table_schema;

static struct apply_type table_type(const void *node, enum table_form form)
{
	return (struct apply_type){ &table_schema, node, form };
}

struct apply_type apply_type_of(const struct type *type) { return table_type(type, STRUCT); }

static enum apply_scalar scalar_of(enum field_kind kind)
{
	switch (kind) {
	case KIND_BOOL: return APPLY_BOOLEAN;
	case KIND_INT32:
	case KIND_INT64:
	case KIND_UINT32:
	case KIND_UINT64:
	case KIND_DOUBLE:
	case KIND_FLOAT: return APPLY_NUMERIC;
	case KIND_TIME:
	case KIND_MICROTIME:
	case KIND_QUANTITY: return APPLY_UNTYPED;
	case KIND_STRING:
	case KIND_BYTES:
	case KIND_RAW_BYTES:
	case KIND_ENUM:
	case KIND_DURATION: return APPLY_STRING;
	case KIND_INT_OR_STRING:
	case KIND_JSON:
	case KIND_FIELDS:
	case KIND_STRINGS:
	case KIND_MESSAGE: break;
	}
	return APPLY_NO_SCALAR;
}

static void table_shape(struct apply_type t, struct apply_shape *ret)
{
	*ret = (struct apply_shape){ .scalar = APPLY_NO_SCALAR };
	if (t.form <= STRUCT_GRANULAR) {
		const struct type *type = t.node;
		ret->map = true;
		ret->map_atomic = t.form == STRUCT_ATOMIC || (t.form == STRUCT && (type->flags & TYPE_ATOMIC));
		return;
	}
	if (t.form == TEXT) {
		ret->scalar = APPLY_STRING;
		return;
	}
	const struct field *f = t.node;
	if (t.form == WHOLE && f->shape == SHAPE_MAP) {
		ret->map = true;
		ret->map_atomic = f->flags & FIELD_ATOMIC;
	} else if (t.form == WHOLE && f->shape == SHAPE_LIST) {
		ret->list = true;
		ret->list_atomic = !(f->flags & (FIELD_SET | FIELD_MAP_LIST));
		ret->keys = f->flags & FIELD_MAP_LIST ? f->facts->map_keys : NULL;
	} else if (f->kind == KIND_STRINGS) {
		ret->list = true;
		ret->list_atomic = true;
	} else {
		ret->scalar = (uint8_t)scalar_of((enum field_kind)f->kind);
	}
}

/*
 * A single value of the field's kind. What has several JSON forms is typeless in OpenAPI, and so is JSON in the
 * package of those structs that have.
 */
static struct apply_type table_one(const struct field *f, const struct type *owner, enum table_form scalar_form)
{
	switch ((enum field_kind)f->kind) {
	case KIND_MESSAGE:
		if (f->type->form != FORM_OBJECT)
			return apply_type_deduced();
		if (scalar_form == ELEMENT)
			return table_type(f->type, STRUCT);
		if (f->flags & FIELD_ATOMIC)
			return table_type(f->type, STRUCT_ATOMIC);
		return table_type(f->type, f->flags & FIELD_GRANULAR ? STRUCT_GRANULAR : STRUCT);
	case KIND_JSON:
		if (owner && str_starts(owner->package->name, STR("apiextensions/")))
			return apply_type_deduced();
		return apply_type_atomic();
	case KIND_INT_OR_STRING:
	case KIND_FIELDS:
		return apply_type_deduced();
	default:
		return table_type(f, scalar_form);
	}
}

static int table_member(struct apply_type t, atom name, struct apply_type *ret)
{
	if (t.form == WHOLE) { /* a map with free keys */
		*ret = table_one(t.node, NULL, ELEMENT);
		return 1;
	}
	const struct type *type = t.node;
	const struct field *f = t.form <= STRUCT_GRANULAR ? type_field(type, name) : NULL;
	if (!f)
		return 0;
	*ret = f->shape == SHAPE_ONE ? table_one(f, type, WHOLE) : table_type(f, WHOLE);
	return 2;
}

static struct apply_type table_item(struct apply_type t)
{
	const struct field *f = t.node;
	if (f->kind == KIND_STRINGS && (t.form == ELEMENT || f->shape == SHAPE_ONE))
		return table_type(NULL, TEXT);
	return table_one(f, NULL, ELEMENT);
}

static str table_default(struct apply_type t, atom name)
{
	const struct field *f = t.form <= STRUCT_GRANULAR ? type_field(t.node, name) : NULL;
	return f ? f->facts->default_json : STR_NONE;
}

static const struct apply_schema table_schema = {
	.shape = table_shape, .member = table_member, .item = table_item, .default_json = table_default,
};
