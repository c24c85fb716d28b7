/*
 * From a patched document to its type. Other requests are decoded from JSON, but after a strategic merge patch Kubernetes
 * converts the tree itself, with messages and a tolerance of its own: 3.0 is an integer, and an integer that is too large
 * for its field is cut off.
 */
#include "machinery/patch_priv.h"

struct convert {
	struct arena *a;
	struct err *err;
};

static int convert_object(const struct convert *c, struct val v, const struct type *type, unsigned depth,
			  struct val *ret);

/* reflect.Kind of a value in a tree. */
static const char *value_kind(struct val v)
{
	switch ((enum val_type)v.type) {
	case VAL_BOOL: return "bool";
	case VAL_INT: return "int64";
	case VAL_DOUBLE: return "float64";
	case VAL_STRING: return "string";
	case VAL_LIST: return "slice";
	case VAL_RAW:
	case VAL_OBJECT: return "map";
	case VAL_NONE:
	case VAL_NULL: break;
	}
	return "invalid";
}

/* reflect.Kind of a scalar field, NULL for the kinds that decode themselves from JSON. */
static const char *scalar_kind(enum field_kind k)
{
	switch (k) {
	case KIND_STRING: return "string";
	case KIND_BOOL: return "bool";
	case KIND_INT32: return "int32";
	case KIND_INT64: return "int64";
	case KIND_UINT32: return "uint32";
	case KIND_UINT64: return "uint64";
	case KIND_DOUBLE: return "float64";
	case KIND_FLOAT: return "float32";
	default: return NULL;
	}
}

static int64_t cut_off(int64_t i, enum field_kind k)
{
	return k == KIND_INT32 ? (int32_t)i : k == KIND_UINT32 ? (int64_t)(uint32_t)i : i;
}

static int convert_scalar(const struct convert *c, struct val v, const struct field *f, struct val *ret)
{
	const char *kind = scalar_kind(f->kind);
	bool integer = f->kind >= KIND_INT32 && f->kind <= KIND_UINT64,
	     number = integer || f->kind == KIND_DOUBLE || f->kind == KIND_FLOAT;
	bool whole = v.type == VAL_DOUBLE && v.d >= -0x1p63 && v.d < 0x1p63 && v.d == (double)(int64_t)v.d;

	*ret = v;
	if ((v.type == VAL_STRING && f->kind == KIND_STRING) || (v.type == VAL_BOOL && f->kind == KIND_BOOL) ||
	    (v.type == VAL_DOUBLE && number && !integer))
		return 0;
	if (number && (v.type == VAL_INT || (integer && whole))) {
		*ret = val_of_int(cut_off(v.type == VAL_INT ? v.i : (int64_t)v.d, f->kind));
		return 0;
	}
	/* The pairs between which Go itself, but not JSON, would convert. */
	if ((v.type == VAL_INT && f->kind == KIND_STRING) || (v.type == VAL_DOUBLE && integer)) {
		str named = f->facts->go_type;
		return err_set(c->err, ERR_BAD_REQUEST, "cannot convert %s to " STR_FMT, value_kind(v),
			       STR_ARG(named.n ? named : str_of(kind)));
	}
	return err_set(c->err, ERR_BAD_REQUEST, "unrecognized type: %s", kind);
}

/* One value of a field: itself, or an element of its list or map. */
static int convert_one(const struct convert *c, struct val v, const struct field *f, unsigned depth, struct val *ret)
{
	*ret = v;
	if (val_is_nil(v))
		return 0;
	if (f->kind == KIND_MESSAGE && f->type->form == FORM_OBJECT)
		return convert_object(c, v, f->type, depth + 1, ret);
	if ((f->kind == KIND_BYTES && v.type != VAL_STRING) || (f->kind == KIND_STRINGS && v.type != VAL_LIST))
		return err_set(c->err, ERR_BAD_REQUEST, "cannot restore slice from %s", value_kind(v));
	return scalar_kind(f->kind) ? convert_scalar(c, v, f, ret) : 0;
}

static int convert_field(const struct convert *c, struct val v, const struct field *f, unsigned depth, struct val *ret)
{
	bool list = f->shape == SHAPE_LIST;
	int r = 0;

	*ret = v;
	if (val_is_nil(v))
		return 0;
	if (f->shape == SHAPE_ONE)
		return convert_one(c, v, f, depth, ret);
	if (v.type != (list ? VAL_LIST : VAL_OBJECT))
		return err_set(c->err, ERR_BAD_REQUEST, "cannot restore %s from %s", list ? "slice" : "map",
			       value_kind(v));
	struct val_builder b = val_builder(c->a);
	for (uint32_t i = 0; r >= 0 && i < v.n; i++) {
		struct val item;
		r = convert_one(c, list ? v.items[i] : v.members[i].val, f, depth, &item);
		if (list)
			val_add_item(&b, item);
		else
			val_add_member(&b, v.members[i].key, item);
	}
	*ret = list ? val_end_list(&b) : val_end_object(&b);
	return r;
}

/* In the order of the fields, so that the first misfit is Kubernetes' first. */
static int convert_object(const struct convert *c, struct val v, const struct type *type, unsigned depth, struct val *ret)
{
	struct pairs ps;
	int r = patch_depth(depth, c->err);

	if (r < 0)
		return r;
	if (v.type != VAL_OBJECT)
		return err_set(c->err, ERR_BAD_REQUEST, "cannot restore struct from: %s", value_kind(v));
	ps = patch_pairs_join(c->a, v, VAL_EMPTY);
	for (uint32_t i = 0; r >= 0 && i < type->n_fields; i++) {
		struct pair *p = patch_pairs_find(ps, atom_str(type->fields[i].name));
		if (p)
			r = convert_field(c, p->left, &type->fields[i], depth, &p->left);
	}
	*ret = patch_pairs_left(c->a, ps);
	return r;
}

int strategic_patch_convert(struct arena *a, struct val patched, const struct type *type, struct val *ret,
			    struct err *err)
{
	struct convert c = { .a = a, .err = err };
	return convert_object(&c, patched, type, 0, ret);
}
