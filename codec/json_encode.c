/*
 * From tree to JSON. Members of typed trees stand in the schema's order, so that one walk over fields and members
 * side by side finds both what is there and what must be written though it is not. Every value is written with a
 * comma behind it; closing a list or object overwrites the last one.
 *
 * Trees that were put together by hand may have members in another order. The first one that is met makes the encoder
 * begin again and sort as it goes.
 */
#include "codec/json.h"

#include <stdlib.h>

#include "base/encoding.h"
#include "base/mem.h"
#include "codec/go.h"
#include "codec/json_scan.h"
#include "codec/json_write.h"
#include "codec/schema_tables.h"

enum frame_kind { FRAME_STRUCT, FRAME_MAP, FRAME_LIST, FRAME_FREE_OBJECT };

struct frame {
	uint8_t kind;               /* enum frame_kind */
	uint8_t elements;           /* list and map: enum field_kind of the elements */
	const struct type *type;    /*   ... and their type */
	union {
		const struct member *member;
		const struct val *item;
	};
	union {
		const struct member *member_end;
		const struct val *item_end;
	};
	const struct field *field, *field_end; /* struct: the next field that may come */
};

struct encoder {
	struct json_writer w;
	bool careful;               /* sort before writing */
	bool disorder;              /* careful is needed */
	struct frame *frames;
	uint32_t n_frames, cap_frames;
	struct arena scratch;
	struct err *err;
	int result;
	struct frame first_frames[16];
};

static bool mismatch(struct encoder *e, const char *want)
{
	e->result = err_set(e->err, ERR_INTERNAL, "value does not fit its type: %s expected", want);
	return false;
}

/* ---- order ---- */

static int compare_members(const void *x, const void *y)
{
	const struct member *a = x, *b = y;
	return str_cmp(atom_str(a->key), atom_str(b->key));
}

static struct val sorted_map(struct encoder *e, struct val v)
{
	struct val copy = val_object(&e->scratch, v.members, v.n);
	if (copy.n > 1)
		qsort((struct member *)copy.members, copy.n, sizeof(struct member), compare_members);
	return copy;
}

/* The members that the type has, in its order. */
static struct val sorted_struct(struct encoder *e, struct val v, const struct type *type)
{
	const struct val **found = ARENA_ARRAY(&e->scratch, const struct val *, type->n_fields);
	struct member *members = ARENA_ARRAY(&e->scratch, struct member, type->n_fields);
	uint32_t n = 0;

	memset(found, 0, type->n_fields * sizeof(*found));
	for (uint32_t i = 0; i < v.n; i++) {
		const struct field *f = type_field(type, v.members[i].key);
		if (f)
			found[f - type->fields] = &v.members[i].val;
	}
	for (uint32_t i = 0; i < type->n_fields; i++)
		if (found[i])
			members[n++] = (struct member){ type->fields[i].name, *found[i] };
	return (struct val){ .type = VAL_OBJECT, .n = n, .members = members };
}

/* ---- opening ---- */

static void grow_frames(struct encoder *e)
{
	struct frame *more = mem_array((size_t)e->cap_frames * 2, sizeof(*more));

	memcpy(more, e->frames, e->n_frames * sizeof(*more));
	if (e->frames != e->first_frames)
		free(e->frames);
	e->frames = more;
	e->cap_frames *= 2;
}

static inline struct frame *push(struct encoder *e, enum frame_kind kind, char open)
{
	if (UNLIKELY(e->n_frames == e->cap_frames))
		grow_frames(e);
	struct frame *f = &e->frames[e->n_frames++];
	f->kind = (uint8_t)kind;
	*e->w.at++ = open;
	return f;
}

static inline bool open_list(struct encoder *e, struct val v, unsigned kind, const struct type *type)
{
	if (UNLIKELY(v.type != VAL_LIST))
		return mismatch(e, "list");
	struct frame *f = push(e, FRAME_LIST, '[');
	f->elements = (uint8_t)kind;
	f->type = type;
	f->item = v.items;
	f->item_end = v.n ? v.items + v.n : v.items;
	return true;
}

static inline bool open_object(struct encoder *e, struct val v, enum frame_kind kind, unsigned elements,
			       const struct type *type)
{
	if (UNLIKELY(v.type != VAL_OBJECT))
		return mismatch(e, "object");
	if (UNLIKELY(e->careful && kind != FRAME_FREE_OBJECT))
		v = kind == FRAME_STRUCT ? sorted_struct(e, v, type) : sorted_map(e, v);
	struct frame *f = push(e, kind, '{');
	f->elements = (uint8_t)elements;
	f->type = type;
	f->member = v.members;
	f->member_end = v.n ? v.members + v.n : v.members;
	if (kind == FRAME_STRUCT) {
		f->field = type->fields;
		f->field_end = type->fields + type->n_fields;
	}
	return true;
}

/* The types of apiextensions that are a bool, a list or an object. */
static bool put_form(struct encoder *e, struct val v, const struct type *type)
{
	const struct field *schema = NULL, *list = NULL;

	for (uint32_t i = 0; i < type->n_fields; i++) {
		const struct field *f = &type->fields[i];
		if (f->shape == SHAPE_LIST)
			list = f;
		else if (f->kind == KIND_MESSAGE)
			schema = f;
	}
	if (v.type == VAL_OBJECT && schema)
		return open_object(e, v, FRAME_STRUCT, 0, schema->type);
	if (v.type == VAL_LIST && list)
		return open_list(e, v, list->kind, list->type);
	return json_write_scalar(&e->w, v);
}

/* ---- values ---- */

static bool put_uint64(struct encoder *e, uint64_t u)
{
	char out[GO_INT_MAX];
	return json_write_text(&e->w, go_format_uint(u, out));
}

/* One value; a list or object is only opened. There is room for a bracket and a comma beforehand. */
static bool put_value(struct encoder *e, struct val v, unsigned kind, const struct type *type)
{
	if (LIKELY(v.type == VAL_STRING && kind != KIND_RAW_BYTES))
		return json_write_string(&e->w, val_as_str(v));
	switch (kind) {
	case KIND_MESSAGE:
		if (type->form != FORM_OBJECT)
			return put_form(e, v, type);
		return open_object(e, v, FRAME_STRUCT, 0, type);
	case KIND_STRINGS:
		return v.type == VAL_NULL ? json_write_scalar(&e->w, v) : open_list(e, v, KIND_STRING, NULL);
	case KIND_RAW_BYTES:
		return json_write_base64(&e->w, val_as_str(v));
	case KIND_UINT64:
		return put_uint64(e, (uint64_t)v.i);
	case KIND_FLOAT:
		return json_write_double(&e->w, val_as_double(v), true);
	default:
		if (v.type == VAL_LIST)
			return open_list(e, v, KIND_JSON, NULL);
		if (v.type == VAL_OBJECT)
			return open_object(e, v, FRAME_FREE_OBJECT, KIND_JSON, NULL);
		return json_write_scalar(&e->w, v);
	}
}

static bool put_field(struct encoder *e, const struct field *f, struct val v)
{
	if (f->shape == SHAPE_ONE)
		return put_value(e, v, f->kind, f->type);
	if (f->shape == SHAPE_LIST)
		return open_list(e, v, f->kind, f->type);
	return open_object(e, v, FRAME_MAP, f->kind, f->type);
}

/* The most frequent sort of member, in one go. */
static inline bool put_string_field(struct encoder *e, const struct field *f, struct val v)
{
	str key = atom_json_key(f->name);

	if (UNLIKELY(!json_room(&e->w, key.n + v.n + JSON_SLACK)))
		return false;
	return json_put_string(&e->w, json_copy(e->w.at, key), val_as_str(v));
}

static str zero_text(const struct field *f)
{
	static const str texts[] = {
		[KIND_STRING] = STR_INIT("\"\""), [KIND_BOOL] = STR_INIT("false"), [KIND_INT32] = STR_INIT("0"),
		[KIND_INT64] = STR_INIT("0"),
		[KIND_UINT32] = STR_INIT("0"), [KIND_UINT64] = STR_INIT("0"), [KIND_DOUBLE] = STR_INIT("0"),
		[KIND_FLOAT] = STR_INIT("0"),
		[KIND_ENUM] = STR_INIT("0"), [KIND_DURATION] = STR_INIT("\"0s\""), [KIND_QUANTITY] = STR_INIT("\"0\""),
		[KIND_INT_OR_STRING] = STR_INIT("0"), [KIND_MESSAGE] = STR_INIT(""),
	};

	if (f->shape != SHAPE_ONE || f->flags & FIELD_POINTER)
		return STR("null");
	if (f->kind == KIND_MESSAGE)
		return f->type->zero_json;
	return texts[f->kind].n ? texts[f->kind] : STR("null");
}

/* A field that is absent but has to be written. */
static bool put_zero(struct encoder *e, const struct field *f)
{
	str key = atom_json_key(f->name), zero = zero_text(f);

	if (UNLIKELY(!json_room(&e->w, key.n + zero.n + JSON_SLACK)))
		return false;
	char *at = json_copy(json_copy(e->w.at, key), zero);
	*at = ',';
	e->w.at = at + 1;
	return true;
}

/* Absent, or a zero that Go would leave out. */
static bool is_left_out(const struct field *f, struct val v)
{
	if (v.type <= VAL_NULL)
		return v.type == VAL_NONE || f->kind != KIND_MESSAGE || f->type->form == FORM_OBJECT ||
			f->shape != SHAPE_ONE;
	if (f->flags & (FIELD_POINTER | FIELD_ALWAYS))
		return false;
	return v.type >= VAL_STRING ? v.n == 0 && f->kind != KIND_INT_OR_STRING : val_is_zero(v);
}

/* ---- walking ---- */

/* Each of these writes children up to the first that is a list or object, and is called again when that is done. */

static bool close_frame(struct encoder *e, char close)
{
	if (UNLIKELY(!json_room(&e->w, JSON_SLACK)))
		return false;
	if (e->w.at[-1] == ',')
		e->w.at--;
	*e->w.at++ = close;
	*e->w.at++ = ',';
	e->n_frames--;
	return true;
}

/* A member that is no string, or an empty one. */
static bool put_other_field(struct encoder *e, const struct field *field, struct val v)
{
	if (UNLIKELY(is_left_out(field, v)))
		return !(field->flags & FIELD_ALWAYS) || put_zero(e, field);
	str key = atom_json_key(field->name);
	if (UNLIKELY(!json_room(&e->w, key.n + JSON_SLACK)))
		return false;
	e->w.at = json_copy(e->w.at, key);
	return put_field(e, field, v);
}

static bool step_struct(struct encoder *e, struct frame *f)
{
	const struct member *m = f->member, *m_end = f->member_end;
	const struct field *field = f->field, *field_end = f->field_end;

	for (; m < m_end; m++, field++) {
		for (; field < field_end && field->name != m->key; field++)
			if (field->flags & FIELD_ALWAYS && UNLIKELY(!put_zero(e, field)))
				return false;
		if (UNLIKELY(field == field_end)) {
			e->disorder = true;
			return false;
		}
		if (LIKELY(m->val.type == VAL_STRING && m->val.n && field->shape == SHAPE_ONE &&
			   field->kind != KIND_RAW_BYTES)) {
			if (UNLIKELY(!put_string_field(e, field, m->val)))
				return false;
			continue;
		}
		uint32_t level = e->n_frames;
		f->member = m + 1; /* before f may move */
		f->field = field + 1;
		if (UNLIKELY(!put_other_field(e, field, m->val)))
			return false;
		if (e->n_frames != level)
			return true;
	}
	for (; field < field_end; field++)
		if (field->flags & FIELD_ALWAYS && UNLIKELY(!put_zero(e, field)))
			return false;
	return close_frame(e, '}');
}

static bool step_map(struct encoder *e, struct frame *f)
{
	uint32_t level = e->n_frames;

	while (e->n_frames == level) {
		if (f->member == f->member_end)
			return close_frame(e, '}');
		const struct member *m = f->member++;
		bool last = f->member == f->member_end;
		if (UNLIKELY(f->kind == FRAME_MAP && !last && !e->careful && compare_members(m, f->member) > 0)) {
			e->disorder = true;
			return false;
		}
		if (UNLIKELY(!json_write_string(&e->w, atom_str(m->key)) || !json_room(&e->w, JSON_SLACK)))
			return false;
		e->w.at[-1] = ':';
		if (UNLIKELY(!put_value(e, m->val, f->elements, f->type)))
			return false;
	}
	return true;
}

static bool step_list(struct encoder *e, struct frame *f)
{
	uint32_t level = e->n_frames;

	while (e->n_frames == level) {
		if (f->item == f->item_end)
			return close_frame(e, ']');
		if (UNLIKELY(!json_room(&e->w, JSON_SLACK) || !put_value(e, *f->item++, f->elements, f->type)))
			return false;
	}
	return true;
}

static bool encode_tree(struct encoder *e, struct val v, const struct type *type)
{
	if (!json_room(&e->w, JSON_SLACK) || !put_value(e, v, type ? KIND_MESSAGE : KIND_JSON, type))
		return false;
	while (e->n_frames) {
		struct frame *f = &e->frames[e->n_frames - 1];
		bool ok = f->kind == FRAME_STRUCT ? step_struct(e, f)
			: f->kind == FRAME_LIST	  ? step_list(e, f)
						  : step_map(e, f);
		if (UNLIKELY(!ok))
			return false;
	}
	e->w.at--; /* the comma behind the root */
	return true;
}

static int encode_compact(struct buf *b, struct val v, const struct json_encode_options *opt, struct err *err)
{
	struct encoder e;

	e.frames = e.first_frames;
	e.cap_frames = ARRAY_LEN(e.first_frames);
	arena_init(&e.scratch);
	e.err = err;
	e.careful = false;
	for (bool again = true; again;) {
		json_writer_begin(&e.w, b, !opt->plain);
		e.n_frames = 0;
		e.result = 0;
		e.disorder = false;
		bool ok = encode_tree(&e, v, opt->type);
		json_writer_end(&e.w, ok);
		again = e.disorder;
		e.careful |= again;
	}
	if (e.frames != e.first_frames)
		free(e.frames);
	arena_done(&e.scratch);
	if (e.w.bad)
		return err_set(err, ERR_INTERNAL, "json: unsupported value: %s", e.w.bad);
	return e.result < 0 ? e.result : buf_check(b, "JSON", err);
}

int json_encode(struct buf *b, struct val v, const struct json_encode_options *opt, struct err *err)
{
	CLEANUP(buf_done) struct buf compact = BUF_INIT(b->max);

	if (!opt->indent)
		return encode_compact(b, v, opt, err);
	int r = encode_compact(&compact, v, opt, err);
	if (r < 0)
		return r;
	json_write_indented(b, buf_str(&compact), opt->indent);
	return buf_check(b, "JSON", err);
}
