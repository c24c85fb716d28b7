/*
 * Kubernetes looks patch strategies up in Go's struct tags by reflection. The schema has the same facts; what reflection
 * would meet on the way (pointers, maps, opaque structs such as Time) is told here from a field's kind and shape, because
 * users see it in messages.
 */
#include "codec/go.h"
#include "machinery/strategic_priv.h"

struct meta smp_meta_of(const struct type *type) { return (struct meta){ .type = type, .name = type->name }; }

const char *smp_meta_kind(struct meta m) { return m.pointer ? "ptr" : m.kind ? m.kind : "struct"; }

/* The Go type of one value of the field: of its elements when it is a list or map. */
static struct meta element_meta(const struct field *f)
{
	switch ((enum field_kind)f->kind) {
	case KIND_STRING:
	case KIND_ENUM: return (struct meta){ .kind = "string" };
	case KIND_BOOL: return (struct meta){ .kind = "bool" };
	case KIND_INT32: return (struct meta){ .kind = "int32" };
	case KIND_INT64: return (struct meta){ .kind = "int64" };
	case KIND_UINT32: return (struct meta){ .kind = "uint32" };
	case KIND_UINT64: return (struct meta){ .kind = "uint64" };
	case KIND_DOUBLE: return (struct meta){ .kind = "float64" };
	case KIND_FLOAT: return (struct meta){ .kind = "float32" };
	case KIND_BYTES:
	case KIND_RAW_BYTES:
	case KIND_STRINGS: return (struct meta){ .kind = "slice" };
	case KIND_TIME: return (struct meta){ .name = STR("Time") };
	case KIND_MICROTIME: return (struct meta){ .name = STR("MicroTime") };
	case KIND_DURATION: return (struct meta){ .name = STR("Duration") };
	case KIND_QUANTITY: return (struct meta){ .name = STR("Quantity") };
	case KIND_INT_OR_STRING: return (struct meta){ .name = STR("IntOrString") };
	case KIND_FIELDS: return (struct meta){ .name = STR("FieldsV1") };
	case KIND_JSON: {
		str type = f->facts->go_type;
		ptrdiff_t dot = str_rchr(type, '.');
		return (struct meta){ .name = type.n ? str_skip(type, (size_t)(dot + 1)) : STR("RawExtension") };
	}
	case KIND_MESSAGE: break;
	}
	/* The members of the JSON forms of apiextensions are not those of the struct. */
	return (struct meta){ .type = f->type->form == FORM_OBJECT ? f->type : NULL, .name = f->type->name };
}

/* The field of that name, or else the first whose name differs only in case. */
static const struct field *field_find(struct meta m, str key)
{
	const struct field *f = m.type ? type_field(m.type, atom_find(key)) : NULL;

	for (uint32_t i = 0; !f && m.type && i < m.type->n_fields; i++)
		if (go_equal_fold(atom_str(m.type->fields[i].name), key))
			f = &m.type->fields[i];
	return f;
}

static int meta_field(struct meta m, str key, const struct field **ret, struct err *err)
{
	if (m.kind)
		return err_set(err, ERR_INTERNAL, "merging an object in json but data type is not struct, instead is: %s",
			       m.kind);
	*ret = field_find(m, key);
	if (*ret)
		return 0;
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(1024);
	buf_add_quoted(&quoted, key);
	return err_set(err, ERR_INTERNAL, "unable to find api field in struct " STR_FMT " for the json field " STR_FMT,
		       STR_ARG(m.name), STR_ARG(buf_str(&quoted)));
}

static struct patch_meta patch_meta_of(const struct field *f, struct meta sub)
{
	return (struct patch_meta){
		.merge = f->flags & FIELD_MERGE,
		.replace = f->flags & FIELD_REPLACE,
		.retain_keys = f->flags & FIELD_RETAIN_KEYS,
		.merge_key = f->facts->merge_key,
		.sub = sub,
	};
}

int smp_meta_object(struct meta m, atom key, struct patch_meta *ret, struct err *err)
{
	const struct field *f;
	struct meta sub;
	int r = meta_field(m, atom_str(key), &f, err);

	if (r < 0)
		return r;
	if (f->shape == SHAPE_ONE) {
		sub = element_meta(f);
		sub.pointer = f->flags & FIELD_POINTER;
	} else {
		sub = (struct meta){ .kind = f->shape == SHAPE_LIST ? "slice" : "map" };
	}
	*ret = patch_meta_of(f, sub);
	return 0;
}

int smp_meta_list(struct meta m, str key, struct patch_meta *ret, struct err *err)
{
	const struct field *f;
	int r = meta_field(m, key, &f, err);

	if (r < 0)
		return r;
	struct meta sub = element_meta(f);
	bool slice = sub.kind && str_eq(str_of(sub.kind), STR("slice"));
	if (f->shape == SHAPE_LIST && slice)
		return err_set(err, ERR_INTERNAL, "unexpected slice of slice");
	if (f->shape == SHAPE_ONE && slice)
		sub.kind = f->kind == KIND_STRINGS ? "string" : "uint8";
	else if (f->shape != SHAPE_LIST && !(f->shape == SHAPE_ONE && f->flags & FIELD_POINTER))
		return err_set(err, ERR_INTERNAL, "expected slice or array type, but got: %s", smp_meta_kind(m));
	*ret = patch_meta_of(f, sub);
	return 0;
}
