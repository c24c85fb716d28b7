/*
 * From tree to protobuf, backwards: the room is filled from its end, so that the length of a message is known when it is to be
 * written before the message, at no cost. No recursion: a level per message that is being written. Every object has a cell per
 * field of its type that points to the member's value; embedded messages take their members from the object around them.
 */
#include "base/encoding.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/proto.h"
#include "codec/proto_wire.h"
#include "codec/quantity.h"
#include "codec/time.h"

#include <endian.h>
#include <stdlib.h>

struct level {
	const struct type *object, *message; /* message: object, or something embedded in it */
	uint32_t cells;              /* the first cell of message */
	uint16_t left;               /* wire entries still to be written */
	uint16_t number;             /* of the field in the message around; 0 for the root */
	bool embedded, entry;        /* entry: it is the value of a map entry */
	const struct field *field;   /* the list or map that is being written, or NULL */
	struct val many;             /* its value */
	uint32_t items;              /* how many of its items are left */
	size_t after;                /* bytes behind the message */
	size_t after_entry;          /* bytes behind the map entry that is being written */
};

struct encoder {
	char *room;
	size_t cap, used;            /* the last used bytes of room are written */
	size_t max;
	bool overflow;
	struct level *levels;
	uint32_t n_levels, cap_levels;
	const struct val **cells;
	uint32_t n_cells, cap_cells;
	struct arena arena;          /* sorted copies of maps */
	struct buf json;             /* for KIND_JSON */
	struct err *err;
};

/* ---- writing backwards ---- */

/* Room for n bytes before what is written; NULL and overflow when that is too much. Valid until the next call. */
static char *put(struct encoder *e, size_t n)
{
	if (UNLIKELY(n > e->cap - e->used)) {
		if (e->overflow || n > e->max || e->used > e->max - n) {
			e->overflow = true;
			return NULL;
		}
		size_t cap = MAX(e->used + n, e->cap * 2);
		char *room = mem_alloc(cap);
		if (e->used)
			memcpy(room + cap - e->used, e->room + e->cap - e->used, e->used);
		free(e->room);
		e->room = room;
		e->cap = cap;
	}
	e->used += n;
	return e->room + e->cap - e->used;
}

static void put_str(struct encoder *e, str s)
{
	char *at = put(e, s.n);
	if (at && s.n)
		memcpy(at, s.p, s.n);
}

static void put_varint(struct encoder *e, uint64_t v)
{
	char *at = put(e, v < 0x80 ? 1 : (size_t)(63 - __builtin_clzll(v)) / 7 + 1);
	if (!at)
		return;
	for (; v >= 0x80; v >>= 7)
		*at++ = (char)(v | 0x80);
	*at = (char)v;
}

static void put_tag(struct encoder *e, unsigned number, enum wire_type wire_type) { put_varint(e, number << 3 | wire_type); }

static void put_varint_field(struct encoder *e, unsigned number, uint64_t v)
{
	put_varint(e, v);
	put_tag(e, number, WIRE_VARINT);
}

/* The length and tag of what was written since `after` bytes were used. */
static void put_head(struct encoder *e, unsigned number, size_t after)
{
	put_varint(e, e->used - after);
	put_tag(e, number, WIRE_BYTES);
}

static void put_str_field(struct encoder *e, unsigned number, str s)
{
	size_t after = e->used;
	put_str(e, s);
	put_head(e, number, after);
}

static void put_fixed(struct encoder *e, uint64_t v, size_t n)
{
	char *at = put(e, n);
	v = htole64(v);
	if (at)
		memcpy(at, &v, n);
}

/* ---- values ---- */

static int misfit(const struct encoder *e, const struct field *f, struct val v)
{
	static const char *const names[] = {
		[VAL_NONE] = "nothing", [VAL_NULL] = "null", [VAL_BOOL] = "a boolean", [VAL_INT] = "an integer",
		[VAL_DOUBLE] = "a number", [VAL_STRING] = "a string", [VAL_RAW] = "raw JSON", [VAL_LIST] = "a list",
		[VAL_OBJECT] = "an object",
	};
	return err_set(e->err, ERR_INTERNAL, "proto: field " STR_FMT " cannot hold %s", STR_ARG(atom_str(f->name)), names[v.type]);
}

static int put_base64(struct encoder *e, const struct field *f, struct val v)
{
	size_t max = base64_decoded_max(v.n), n;
	char *at = put(e, max);
	if (!at)
		return 0;
	int r = base64_decode(at, val_as_str(v), &n, e->err);
	if (r < 0)
		return err_wrap(e->err, r, "proto: field " STR_FMT, STR_ARG(atom_str(f->name)));
	/* Padding and line ends decode to nothing: close up to what follows. */
	memmove(at + max - n, at, n);
	e->used -= max - n;
	return 0;
}

static bool int_fits(enum field_kind kind, int64_t i)
{
	switch (kind) {
	case KIND_INT32:
	case KIND_ENUM: return i >= INT32_MIN && i <= INT32_MAX;
	case KIND_UINT32: return i >= 0 && i <= UINT32_MAX;
	default: return true;
	}
}

static int put_enum(struct encoder *e, const struct field *f, struct val v)
{
	const struct enum_value *known = f->facts->enum_values;
	while (known && known->name.n && !str_eq(known->name, val_as_str(v)))
		known++;
	if (!known || !known->name.n)
		return err_set(e->err, ERR_INTERNAL, "proto: field " STR_FMT " has no value \"" STR_FMT "\"",
			       STR_ARG(atom_str(f->name)), STR_ARG(val_as_str(v)));
	put_varint(e, (uint64_t)(int64_t)known->number);
	return 0;
}

static int put_number(struct encoder *e, const struct field *f, struct val v)
{
	double number = val_as_double(v);
	float single = (float)number;
	uint64_t bits;
	uint32_t low;

	if (f->kind == KIND_ENUM && val_is(v, VAL_STRING))
		return put_enum(e, f, v);
	if (f->kind == KIND_DOUBLE || f->kind == KIND_FLOAT) {
		if (v.type != VAL_DOUBLE && v.type != VAL_INT && !val_is_nil(v))
			return misfit(e, f, v);
		memcpy(&bits, &number, sizeof(bits));
		memcpy(&low, &single, sizeof(low));
		put_fixed(e, f->kind == KIND_DOUBLE ? bits : low, f->kind == KIND_DOUBLE ? 8 : 4);
		return 0;
	}
	bool fits = f->kind == KIND_BOOL ? val_is(v, VAL_BOOL) : val_is(v, VAL_INT) && int_fits(f->kind, v.i);
	if (!fits && !val_is_nil(v))
		return misfit(e, f, v);
	put_varint(e, f->kind == KIND_BOOL ? val_as_bool(v) : (uint64_t)val_as_int(v));
	return 0;
}

/* The bytes of a value that is no message, without length and tag; an absent one counts as zero. */
static int put_scalar(struct encoder *e, const struct field *f, struct val v)
{
	if (kind_wire_type(f->kind) != WIRE_BYTES)
		return put_number(e, f, v);
	if (v.type != VAL_STRING && !val_is_nil(v))
		return misfit(e, f, v);
	if (f->kind == KIND_BYTES)
		return put_base64(e, f, v);
	put_str(e, val_as_str(v));
	return 0;
}

static int put_time(struct encoder *e, const struct field *f, struct val v)
{
	struct timestamp t;
	str text = val_as_str(v);
	if (!time_unformat(text, &t)) {
		int r = (f->kind == KIND_TIME ? time_parse : microtime_parse)(text, &t, e->err);
		if (r < 0)
			return r;
	}
	if (t.seconds == TIME_ZERO_SECONDS && t.nanos / 1000 == 0)
		return 0;
	put_varint_field(e, 2, f->kind == KIND_TIME ? 0 : (uint64_t)(t.nanos / 1000 * 1000));
	put_varint_field(e, 1, (uint64_t)t.seconds);
	return 0;
}

static int put_duration(struct encoder *e, struct val v)
{
	int64_t ns = 0;
	int r = val_is_nil(v) ? 0 : duration_parse(val_as_str(v), &ns, e->err);
	if (r >= 0)
		put_varint_field(e, 1, (uint64_t)ns);
	return r;
}

static int put_int_or_string(struct encoder *e, const struct field *f, struct val v)
{
	if (v.type != VAL_STRING && !val_is_nil(v) && (v.type != VAL_INT || !int_fits(KIND_INT32, v.i)))
		return misfit(e, f, v);
	put_str_field(e, 3, val_as_str(v));
	put_varint_field(e, 2, (uint64_t)val_as_int(v));
	put_varint_field(e, 1, val_is(v, VAL_STRING));
	return 0;
}

static int put_json(struct encoder *e, struct val v)
{
	if (val_is_nil(v))
		return 0;
	buf_reset(&e->json);
	int r = json_encode(&e->json, v, &(struct json_encode_options){ .plain = true }, e->err);
	if (r >= 0)
		put_str_field(e, 1, buf_str(&e->json));
	return r;
}

static int put_strings(struct encoder *e, const struct field *f, struct val v)
{
	if (v.type != VAL_LIST && !val_is_nil(v))
		return misfit(e, f, v);
	for (uint32_t i = val_len(v); i-- > 0;) {
		if (v.items[i].type != VAL_STRING)
			return misfit(e, f, v.items[i]);
		put_str_field(e, 1, val_as_str(v.items[i]));
	}
	return 0;
}

/* The content of a message that stands for one value; an absent value counts as zero. */
static int put_wrapper(struct encoder *e, const struct field *f, struct val v)
{
	bool text = f->kind == KIND_TIME || f->kind == KIND_MICROTIME || f->kind == KIND_DURATION || f->kind == KIND_QUANTITY;
	if (text && v.type != VAL_STRING && !val_is_nil(v))
		return misfit(e, f, v);
	switch (f->kind) {
	case KIND_TIME:
	case KIND_MICROTIME: return val_is_nil(v) ? 0 : put_time(e, f, v);
	case KIND_DURATION: return put_duration(e, v);
	case KIND_QUANTITY:
		put_str_field(e, 1, v.n ? val_as_str(v) : STR("0"));
		return 0;
	case KIND_INT_OR_STRING: return put_int_or_string(e, f, v);
	case KIND_JSON: return put_json(e, v);
	case KIND_FIELDS:
		if (v.type != VAL_RAW && !val_is_nil(v))
			return misfit(e, f, v);
		if (val_is(v, VAL_RAW))
			put_str_field(e, 1, val_as_str(v));
		return 0;
	default: return put_strings(e, f, v);
	}
}

/* A value that is no KIND_MESSAGE, with length and tag. */
static int put_value(struct encoder *e, const struct field *f, unsigned number, struct val v)
{
	size_t after = e->used;
	int r = kind_is_wrapper(f->kind) ? put_wrapper(e, f, v) : put_scalar(e, f, v);
	enum wire_type wire_type = kind_wire_type(f->kind);
	if (wire_type == WIRE_BYTES)
		put_head(e, number, after);
	else
		put_tag(e, number, wire_type);
	return r;
}

/* ---- messages ---- */

static const struct val val_true = { .type = VAL_BOOL, .b = true };

/* Cells of the types whose JSON is not always an object. */
static int form_cells(struct encoder *e, const struct type *type, const struct val *v, const struct val **cells)
{
	for (unsigned i = 0; i < type->n_fields; i++) {
		const struct field *f = &type->fields[i];
		bool is_schema = f->kind == KIND_MESSAGE && f->shape == SHAPE_ONE;
		if (is_schema ? val_is(*v, VAL_OBJECT) : val_is(*v, f->kind == KIND_BOOL ? VAL_BOOL : VAL_LIST))
			cells[i] = v;
		else if (f->kind == KIND_BOOL && val_is(*v, VAL_OBJECT))
			cells[i] = &val_true;
	}
	if (val_is_nil(*v) || val_is(*v, VAL_OBJECT) || val_is(*v, type->form == FORM_SCHEMA_OR_BOOL ? VAL_BOOL : VAL_LIST))
		return 0;
	return err_set(e->err, ERR_INTERNAL, "proto: a value does not fit " STR_FMT, STR_ARG(type->name));
}

static struct level *push(struct encoder *e, const struct type *message, unsigned number)
{
	if (e->n_levels == e->cap_levels) {
		e->cap_levels = e->cap_levels ? e->cap_levels * 2 : 16;
		e->levels = mem_resize(e->levels, e->cap_levels * sizeof(*e->levels));
	}
	struct level *l = &e->levels[e->n_levels++];
	*l = (struct level){ .message = message, .left = message->n_wire, .number = (uint16_t)number, .after = e->used };
	return l;
}

static int push_object(struct encoder *e, const struct type *type, unsigned number, bool entry, const struct val *v)
{
	if (!e->cells || e->cap_cells - e->n_cells < type->n_fields) {
		e->cap_cells = MAX(e->cap_cells * 2, e->n_cells + type->n_fields + 128);
		e->cells = mem_resize(e->cells, e->cap_cells * sizeof(*e->cells));
	}
	const struct val **cells = &e->cells[e->n_cells];
	memset(cells, 0, type->n_fields * sizeof(*cells));
	struct level *l = push(e, type, number);
	l->object = type;
	l->cells = e->n_cells;
	l->entry = entry;
	e->n_cells += type->n_fields;
	if (type->form != FORM_OBJECT)
		return form_cells(e, type, v, cells);
	if (!val_is(*v, VAL_OBJECT) && !val_is_nil(*v))
		return err_set(e->err, ERR_INTERNAL, "proto: a " STR_FMT " is not an object", STR_ARG(type->name));
	VAL_EACH_MEMBER(m, *v) {
		const struct field *f = type_field(type, m->key);
		if (f)
			cells[f - type->fields] = &m->val;
	}
	return 0;
}

/* Ends a map entry whose value was written. */
static void put_entry(struct encoder *e, const struct level *l)
{
	put_str_field(e, 1, atom_str(l->many.members[l->items].key));
	put_head(e, l->field->number, l->after_entry);
}

static void pop(struct encoder *e)
{
	struct level l = e->levels[--e->n_levels];
	struct level *around = e->n_levels ? &e->levels[e->n_levels - 1] : NULL;
	if (!l.embedded)
		e->n_cells = l.cells;
	if (l.number)
		put_head(e, l.number, l.after);
	if (l.entry)
		put_entry(e, around);
}

static bool is_packed(const struct level *l, const struct field *f)
{
	return l->message->flags & TYPE_PROTO3 && f->shape == SHAPE_LIST && kind_is_packable(f->kind);
}

static int put_packed(struct encoder *e, const struct field *f, struct val v)
{
	size_t after = e->used;
	for (uint32_t i = v.n; i-- > 0;) {
		int r = put_scalar(e, f, v.items[i]);
		if (r < 0)
			return r;
	}
	put_head(e, f->number, after);
	return 0;
}

/* Begins a list or map; its items are then written one by one. */
static int begin_many(struct encoder *e, struct level *l, const struct field *f, struct val v)
{
	if (val_is_nil(v))
		return 0;
	if (!val_is(v, f->shape == SHAPE_LIST ? VAL_LIST : VAL_OBJECT))
		return misfit(e, f, v);
	if (v.n == 0)
		return 0;
	if (is_packed(l, f))
		return put_packed(e, f, v);
	l->field = f;
	l->many = f->shape == SHAPE_MAP ? val_sorted(&e->arena, v) : v;
	l->items = l->many.n;
	return 0;
}

static int put_item(struct encoder *e, struct level *l)
{
	const struct field *f = l->field;
	bool entry = f->shape == SHAPE_MAP;
	unsigned number = entry ? 2 : f->number;
	uint32_t i = --l->items;
	const struct val *v = entry ? &l->many.members[i].val : &l->many.items[i];

	l->after_entry = e->used;
	if (f->kind == KIND_MESSAGE)
		return push_object(e, f->type, number, entry, v);
	/* A nil []byte of a map has no value on the wire, unlike an empty one. */
	int r = entry && f->kind == KIND_BYTES && val_is_nil(*v) ? 0 : put_value(e, f, number, *v);
	if (entry)
		put_entry(e, l);
	return r;
}

static bool is_zero(const struct field *f, struct val v)
{
	if (f->kind == KIND_ENUM && val_is(v, VAL_STRING))
		for (const struct enum_value *known = f->facts->enum_values; known && known->name.n; known++)
			if (str_eq(known->name, val_as_str(v)))
				return known->number == 0;
	return val_is_zero(v);
}

/* Kubernetes writes every zero that is not a nil; proto3 writes none that does not differ from an absent one. */
static bool is_written(const struct level *l, const struct field *f, struct val v)
{
	if (l->message->flags & TYPE_PROTO3) {
		if (f->flags & FIELD_POINTER || kind_is_message(f->kind))
			return !val_is_nil(v);
		return !is_zero(f, v);
	}
	bool slice = f->kind == KIND_BYTES || f->kind == KIND_RAW_BYTES || f->kind == KIND_STRINGS;
	bool nil_is_absent = slice || f->flags & FIELD_POINTER;
	return !val_is_nil(v) || !nil_is_absent;
}

/* The fields of what is embedded stand in a row among those of what is around it: the place of the first. */
static uint32_t embedded_at(const struct type *around, const struct type *embedded)
{
	return embedded->n_fields ? (uint32_t)(type_field(around, embedded->fields[0].name) - around->fields) : 0;
}

static int put_field(struct encoder *e, struct level *l)
{
	const struct wire *w = &l->message->wire[--l->left];
	if (w->embedded) {
		struct level around = *l, *inner = push(e, w->embedded, w->number);
		inner->object = around.object;
		inner->cells = around.cells + embedded_at(around.message, w->embedded);
		inner->embedded = true;
		return 0;
	}
	const struct field *f = &l->message->fields[w->field];
	const struct val *cell = e->cells[l->cells + w->field];
	struct val v = cell ? *cell : VAL_EMPTY;
	if (f->shape != SHAPE_ONE)
		return begin_many(e, l, f, v);
	if (!is_written(l, f, v))
		return 0;
	if (f->kind != KIND_MESSAGE)
		return put_value(e, f, f->number, v);
	if (!val_is_nil(v))
		return push_object(e, f->type, f->number, false, cell);
	put_str_field(e, f->number, f->type->zero_wire);
	return 0;
}

/* Passes over fields that are absent and then not written: most of a large type. */
static void skip_absent(const struct encoder *e, struct level *l)
{
	while (l->left) {
		const struct wire *w = &l->message->wire[l->left - 1];
		const struct field *f = &l->message->fields[w->field];
		if (w->embedded || e->cells[l->cells + w->field] || (f->shape == SHAPE_ONE && !(f->flags & FIELD_POINTER)))
			return;
		l->left--;
	}
}

static int run(struct encoder *e)
{
	int r = 0;
	while (r >= 0 && e->n_levels && !e->overflow) {
		struct level *l = &e->levels[e->n_levels - 1];
		if (l->items)
			r = put_item(e, l);
		else if (skip_absent(e, l), l->left)
			r = put_field(e, l);
		else
			pop(e);
	}
	return r;
}

/* ---- from outside ---- */

enum { FIRST_ROOM = 4096 };

static void encoder_init(struct encoder *e, const struct buf *b, struct err *err)
{
	*e = (struct encoder){ .max = b->max - b->n, .cap = FIRST_ROOM, .room = mem_alloc(FIRST_ROOM), .err = err };
	buf_init(&e->json, e->max);
}

static void encoder_done(struct encoder *e)
{
	free(e->room);
	free(e->levels);
	free(e->cells);
	buf_done(&e->json);
	arena_done(&e->arena);
}

/* Hands the bytes over, unless something went wrong. */
static int finish(struct encoder *e, struct buf *b, int r)
{
	if (r < 0)
		return r;
	if (e->overflow)
		b->overflow = true;
	else
		buf_add(b, str_span(e->room + e->cap - e->used, e->used));
	return buf_check(b, "the protobuf message", e->err);
}

static int put_message(struct encoder *e, struct val v, const struct type *type)
{
	int r = push_object(e, type, 0, false, &v);
	return r < 0 ? r : run(e);
}

int proto_encode(struct buf *b, struct val v, const struct type *type, struct err *err)
{
	CLEANUP(encoder_done) struct encoder e;
	encoder_init(&e, b, err);
	return finish(&e, b, put_message(&e, v, type));
}

int proto_encode_object(struct buf *b, struct val v, const struct type *type, struct err *err)
{
	CLEANUP(encoder_done) struct encoder e;
	encoder_init(&e, b, err);
	str kind = val_str(v, kind), api_version = val_str(v, apiVersion);
	bool is_kind = type->flags & TYPE_KIND;

	put_str_field(&e, 4, STR("")); /* contentType */
	put_str_field(&e, 3, STR("")); /* contentEncoding */
	size_t after = e.used;
	int r = put_message(&e, v, type);
	put_head(&e, 2, after);
	after = e.used;
	put_str_field(&e, 2, kind.n || !is_kind ? kind : type->name);
	put_str_field(&e, 1, api_version.n || !is_kind ? api_version : type_api_version(&e.arena, type));
	put_head(&e, 1, after);
	put_str(&e, STR("k8s\0"));
	return finish(&e, b, r);
}
