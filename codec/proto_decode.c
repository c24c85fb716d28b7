/*
 * From protobuf to a typed tree without recursion. Every message that is being read has a level; every object has one cell per
 * field of its type, in the order of the schema, so that a canonical tree comes out whatever the order of the input. Embedded
 * messages share the cells of the object around them.
 *
 * A message that occurs twice is decoded into the same struct by Kubernetes, which is the same as decoding its pieces one
 * after the other. So single messages are not decoded where they stand: their pieces are gathered in the cell and read when
 * the message around them has ended. That keeps hostile input linear. Lists and maps grow in place.
 */
#include "base/encoding.h"
#include "base/mem.h"
#include "codec/assemble.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/proto_wire.h"

#include <stdlib.h>

/* What a cell holds until its message is read, beside enum val_type: one piece as text, or a chain of pieces. */
enum { CELL_PIECE = 0x80, CELL_CHAIN };

struct chain {
	struct segment first, *last;
};

struct cell {
	struct val v;
	uint32_t cap;                /* room of a list or map */
};

/* Where a finished object goes. */
enum place { PLACE_ROOT, PLACE_CELL, PLACE_ITEM, PLACE_ENTRY, PLACE_EMBEDDED };

struct level {
	struct reader in;
	const struct segment *more;  /* further pieces of the same message */
	const struct type *object;   /* whose cells are filled */
	const struct type *message;  /* which is read: object, or something embedded in it */
	uint32_t cells;              /* the first cell of object */
	uint32_t target;             /* the cell, list or map below that it is for */
	atom key;                    /* PLACE_ENTRY */
	uint32_t depth;              /* lists and objects of the tree around it */
	uint16_t hint;               /* the wire entry that should come next */
	uint16_t settled;            /* cells whose pieces were read */
	uint8_t place;               /* enum place */
};

struct decoder {
	struct arena *arena;
	struct err *err;
	unsigned nesting;
	struct level *levels;
	uint32_t n_levels, cap_levels;
	struct cell *cells;
	uint32_t n_cells, cap_cells;
	struct val result;
};

static str field_go_name(struct arena *a, const struct field *f)
{
	str name = arena_str(a, atom_str(f->name));
	char *first = (char *)name.p;
	if (name.n && *first >= 'a' && *first <= 'z')
		*first = (char)(*first - 'a' + 'A');
	return name;
}

static int field_wire_error(const struct decoder *d, const struct tag *t, const struct field *f)
{
	return wire_type_error(t, field_go_name(d->arena, f), d->err);
}

/* ---- levels and cells ---- */

static struct level *push(struct decoder *d)
{
	if (d->n_levels == d->cap_levels) {
		d->cap_levels = d->cap_levels ? d->cap_levels * 2 : 16;
		d->levels = mem_resize(d->levels, d->cap_levels * sizeof(*d->levels));
	}
	struct level *l = &d->levels[d->n_levels++];
	*l = (struct level){ 0 };
	return l;
}

static int push_object(struct decoder *d, const struct type *type, const struct segment *pieces, enum place place, uint32_t target,
		       atom key)
{
	uint32_t depth = d->n_levels ? d->levels[d->n_levels - 1].depth + (place == PLACE_CELL ? 1 : 2) : 0;
	if (depth >= VAL_MAX_DEPTH)
		return err_set(d->err, ERR_BAD_REQUEST, "proto: exceeded max depth");
	if (!d->cells || d->cap_cells - d->n_cells < type->n_fields) {
		d->cap_cells = MAX(d->cap_cells * 2, d->n_cells + type->n_fields + 128);
		d->cells = mem_resize(d->cells, d->cap_cells * sizeof(*d->cells));
	}
	struct level *l = push(d);
	l->in = reader_of(pieces->bytes);
	l->more = pieces->next;
	l->object = l->message = type;
	l->cells = d->n_cells;
	l->place = (uint8_t)place;
	l->target = target;
	l->key = key;
	l->depth = depth;
	memset(&d->cells[l->cells], 0, type->n_fields * sizeof(*d->cells));
	d->n_cells += type->n_fields;
	return 0;
}

static void push_embedded(struct decoder *d, const struct type *type, str bytes)
{
	struct level *l = push(d), *around = l - 1;
	l->in = reader_of(bytes);
	l->object = around->object;
	l->message = type;
	l->cells = around->cells;
	l->depth = around->depth;
	l->place = PLACE_EMBEDDED;
}

/* Room for more items or members in a cell, at least one. */
static void *cell_grow(struct decoder *d, struct cell *c, size_t size, uint32_t more)
{
	size_t cap = MAX((size_t)c->v.n + more, (size_t)c->v.n * 2);
	char *room = arena_array_of(d->arena, cap, size, _Alignof(struct member));
	if (c->v.n)
		memcpy(room, c->v.items, c->v.n * size);
	c->cap = (uint32_t)MIN(cap, (size_t)UINT32_MAX);
	return room;
}

static void list_add(struct decoder *d, struct cell *c, uint32_t more, struct val item)
{
	c->v.type = VAL_LIST;
	if (c->v.n == c->cap)
		c->v.items = cell_grow(d, c, sizeof(struct val), more);
	((struct val *)c->v.items)[c->v.n++] = item;
}

static void map_add(struct decoder *d, struct cell *c, uint32_t more, atom key, struct val v)
{
	c->v.type = VAL_OBJECT;
	if (c->v.n == c->cap)
		c->v.members = cell_grow(d, c, sizeof(struct member), more);
	((struct member *)c->v.members)[c->v.n++] = (struct member){ key, v };
}

/* How many fields with the same tag stand in a row from the one whose value begins at r: the room that a list will need. */
static uint32_t count_run(struct reader r, const struct tag *t)
{
	size_t tag_n = (size_t)(r.at - t->start);
	uint32_t n = 0;
	str bytes;
	do {
		n++;
		if (reader_bytes(&r, &bytes, NULL) < 0 || (size_t)(r.end - r.at) < tag_n || memcmp(r.at, t->start, tag_n) != 0)
			break;
		r.at += tag_n;
	} while (n < UINT32_MAX);
	return n;
}

static struct chain *cell_chain(const struct cell *c) { return (struct chain *)(uintptr_t)c->v.s; }

static void cell_add_piece(struct decoder *d, struct cell *c, str bytes)
{
	if (!val_exists(c->v)) {
		c->v = val_of_str(bytes);
		c->v.type = CELL_PIECE;
		return;
	}
	if (c->v.type == CELL_PIECE) {
		struct chain *chain = ARENA_NEW(d->arena, struct chain);
		chain->first.bytes = str_span(c->v.s, c->v.n);
		chain->last = &chain->first;
		c->v = (struct val){ .type = CELL_CHAIN, .s = (const char *)chain };
	}
	struct segment *more = ARENA_NEW(d->arena, struct segment);
	more->bytes = bytes;
	cell_chain(c)->last->next = more;
	cell_chain(c)->last = more;
}

/* ---- values ---- */

static struct val enum_val(const struct field *f, int32_t number)
{
	for (const struct enum_value *e = f->facts->enum_values; e && e->name.n; e++)
		if (e->number == number)
			return val_of_str(e->name);
	return val_of_int(number);
}

static struct val bytes_val(struct decoder *d, str bytes)
{
	size_t n = base64_encoded_len(bytes.n);
	char *text = arena_alloc(d->arena, n, 1);
	base64_encode(text, bytes);
	return val_of_str(str_span(text, n));
}

static int read_fixed(struct decoder *d, struct reader *r, enum field_kind kind, struct val *ret)
{
	uint64_t bits;
	int e = reader_fixed(r, kind == KIND_DOUBLE ? 8 : 4, &bits, d->err);
	if (e < 0)
		return e;
	double number;
	float single;
	uint32_t low = (uint32_t)bits;
	memcpy(&number, &bits, sizeof(number));
	memcpy(&single, &low, sizeof(single));
	*ret = val_of_double(kind == KIND_DOUBLE ? number : (double)single);
	return 0;
}

/* A value that is neither message nor wrapper. */
static int read_scalar(struct decoder *d, struct reader *r, const struct field *f, struct val *ret)
{
	uint64_t v;
	str bytes;
	int e;
	if (f->kind == KIND_DOUBLE || f->kind == KIND_FLOAT)
		return read_fixed(d, r, f->kind, ret);
	if (kind_wire_type(f->kind) == WIRE_BYTES) {
		e = reader_bytes(r, &bytes, d->err);
		if (e >= 0)
			*ret = f->kind == KIND_BYTES ? bytes_val(d, bytes) : val_of_str(bytes);
		return e;
	}
	e = reader_varint(r, &v, d->err);
	if (e < 0)
		return e;
	switch (f->kind) {
	case KIND_BOOL: *ret = val_of_bool(v != 0); break;
	case KIND_INT32: *ret = val_of_int((int32_t)v); break;
	case KIND_UINT32: *ret = val_of_int((uint32_t)v); break;
	case KIND_ENUM: *ret = enum_val(f, (int32_t)v); break;
	default: *ret = val_of_int((int64_t)v);
	}
	return 0;
}

/* ---- fields ---- */

/* Setting one member of a oneof unsets the others; a message of etcd has at most one. */
static void oneof_clear(struct decoder *d, const struct level *l, const struct cell *keep)
{
	for (unsigned i = 0; i < l->object->n_fields; i++) {
		struct cell *c = &d->cells[l->cells + i];
		if (l->object->fields[i].flags & FIELD_ONEOF && c != keep)
			c->v = VAL_EMPTY;
	}
}

static int read_one(struct decoder *d, struct level *l, const struct tag *t, const struct field *field, struct cell *c)
{
	if (t->wire_type != kind_wire_type(field->kind))
		return field_wire_error(d, t, field);
	if (field->flags & FIELD_ONEOF)
		oneof_clear(d, l, c);
	if (kind_is_message(field->kind)) {
		str bytes;
		int e = reader_bytes(&l->in, &bytes, d->err);
		if (e >= 0)
			cell_add_piece(d, c, bytes);
		return e;
	}
	return read_scalar(d, &l->in, field, &c->v);
}

/* At least the number of values that a packed list has left; a varint ends with a byte below 0x80. */
static uint32_t count_packed(struct reader r, enum wire_type wire_type)
{
	uint32_t n = 0;
	if (wire_type != WIRE_VARINT)
		return (uint32_t)(r.end - r.at) / (wire_type == WIRE_FIXED64 ? 8 : 4) + 1;
	for (; r.at < r.end; r.at++)
		n += (unsigned char)*r.at < 0x80;
	return n + 1;
}

static int read_packed(struct decoder *d, struct level *l, const struct field *field, struct cell *c)
{
	str bytes;
	int e = reader_bytes(&l->in, &bytes, d->err);
	if (e < 0)
		return e;
	struct reader r = reader_of(bytes);
	while (r.at < r.end) {
		struct val v;
		uint32_t more = c->v.n == c->cap ? count_packed(r, kind_wire_type(field->kind)) : 1;
		e = read_scalar(d, &r, field, &v);
		if (e < 0)
			return e;
		list_add(d, c, more, v);
	}
	return 0;
}

static int read_item(struct decoder *d, struct level *l, const struct tag *t, const struct field *field, struct cell *c)
{
	enum wire_type want = kind_wire_type(field->kind);
	if (t->wire_type == WIRE_BYTES && want != WIRE_BYTES)
		return read_packed(d, l, field, c);
	if (t->wire_type != want)
		return field_wire_error(d, t, field);
	uint32_t more = want != WIRE_BYTES ? 4 : c->v.n == c->cap ? count_run(l->in, t) : 1;
	struct segment piece = { 0 };
	struct val v;
	int e;
	if (!kind_is_message(field->kind)) {
		e = read_scalar(d, &l->in, field, &v);
	} else {
		e = reader_bytes(&l->in, &piece.bytes, d->err);
		if (e < 0)
			return e;
		if (field->kind == KIND_MESSAGE) {
			if (c->v.n == c->cap)
				c->v.items = cell_grow(d, c, sizeof(struct val), more);
			return push_object(d, field->type, &piece, PLACE_ITEM, (uint32_t)(c - d->cells), 0);
		}
		e = wrapper_decode(d->arena, field->kind, &piece, d->nesting, &v, d->err);
	}
	if (e >= 0)
		list_add(d, c, more, v);
	return e;
}

/* The value of a map entry that has none. */
static struct val entry_zero(const struct field *field)
{
	struct target t = { .kind = field->kind, .type = field->type };
	return field->kind == KIND_BYTES ? VAL_LIT("") : scalar_zero(&t);
}

static int read_entry(struct decoder *d, struct level *l, const struct tag *t, const struct field *field, struct cell *c)
{
	bool message = kind_is_message(field->kind);
	struct segment piece = { .bytes = STR("") };
	struct val v = entry_zero(field);
	str entry, key = STR("");

	if (t->wire_type != WIRE_BYTES)
		return field_wire_error(d, t, field);
	uint32_t more = c->v.n == c->cap ? count_run(l->in, t) : 1;
	int e = reader_bytes(&l->in, &entry, d->err);
	if (e < 0)
		return e;
	for (struct reader r = reader_of(entry); e >= 0 && r.at < r.end;) {
		struct tag part;
		if ((e = reader_tag(&r, STR("entry"), &part, d->err)) < 0)
			break;
		if (part.number == 1)
			e = reader_bytes(&r, &key, d->err);
		else if (part.number == 2)
			e = message ? reader_bytes(&r, &piece.bytes, d->err) : read_scalar(d, &r, field, &v);
		else
			e = reader_skip(&r, &part, d->err);
	}
	if (e < 0)
		return e;
	atom name = atom_make(d->arena, key);
	if (field->kind == KIND_MESSAGE) {
		if (c->v.n == c->cap)
			c->v.members = cell_grow(d, c, sizeof(struct member), more);
		return push_object(d, field->type, &piece, PLACE_ENTRY, (uint32_t)(c - d->cells), name);
	}
	if (message)
		e = wrapper_decode(d->arena, field->kind, &piece, d->nesting, &v, d->err);
	if (e >= 0)
		map_add(d, c, more, name, v);
	return e;
}

/* The entry of that number, or NULL. Fields come in ascending order as a rule: the next one is tried first. */
static const struct wire *wire_find(struct level *l, int32_t number)
{
	const struct type *m = l->message;
	if (l->hint && m->wire[l->hint - 1].number >= number)
		l->hint = m->wire[l->hint - 1].number == number ? l->hint - 1 : 0;
	while (l->hint < m->n_wire && m->wire[l->hint].number < number)
		l->hint++;
	if (l->hint == m->n_wire || m->wire[l->hint].number != number)
		return NULL;
	return &m->wire[l->hint++];
}

static int read_field(struct decoder *d, struct level *l)
{
	struct tag t;
	int e = reader_tag(&l->in, l->message->name, &t, d->err);
	if (e < 0)
		return e;
	const struct wire *w = wire_find(l, t.number);
	if (!w)
		return reader_skip(&l->in, &t, d->err);
	if (w->embedded) {
		str bytes;
		if (t.wire_type != WIRE_BYTES)
			return wire_type_error(&t, w->embedded->name, d->err);
		e = reader_bytes(&l->in, &bytes, d->err);
		if (e >= 0)
			push_embedded(d, w->embedded, bytes);
		return e;
	}
	const struct field *field = &l->message->fields[w->field];
	size_t index = w->field;
	if (l->message != l->object)
		index = (size_t)(type_field(l->object, field->name) - l->object->fields);
	struct cell *c = &d->cells[l->cells + index];
	switch ((enum shape)field->shape) {
	case SHAPE_LIST: return read_item(d, l, &t, field, c);
	case SHAPE_MAP: return read_entry(d, l, &t, field, c);
	default: return read_one(d, l, &t, field, c);
	}
}

/* ---- finishing ---- */

/* Reads the pieces in the cells. 1: a level was pushed for one of them; 0: all are settled. */
static int settle(struct decoder *d, struct level *l)
{
	for (; l->settled < l->object->n_fields; l->settled++) {
		const struct field *field = &l->object->fields[l->settled];
		uint32_t index = l->cells + l->settled;
		struct cell *c = &d->cells[index];
		if (c->v.type < CELL_PIECE)
			continue;
		struct segment one = { .bytes = str_span(c->v.s, c->v.n) };
		const struct segment *pieces = c->v.type == CELL_PIECE ? &one : &cell_chain(c)->first;
		if (field->kind == KIND_MESSAGE) {
			l->settled++;
			int e = push_object(d, field->type, pieces, PLACE_CELL, index, 0);
			return e < 0 ? e : 1;
		}
		struct val v;
		int e = wrapper_decode(d->arena, field->kind, pieces, d->nesting, &v, d->err);
		if (e < 0)
			return e;
		c->v = val_is_nil(v) ? VAL_EMPTY : v;
	}
	return 0;
}

/* Whether a cell becomes a member. */
static bool cell_keeps(const struct field *field, struct val v)
{
	struct target t = { .kind = field->kind, .shape = field->shape, .flags = field->flags };
	if (!val_exists(v))
		return false;
	if (field->flags & FIELD_POINTER)
		return true;
	if (field->kind == KIND_ENUM && field->shape == SHAPE_ONE && val_is(v, VAL_STRING))
		return !str_eq(val_as_str(v), val_as_str(enum_val(field, 0)));
	return target_keeps(&t, v);
}

/* The types that are an object, or something else, in JSON: a tree has what JSON has. */
static struct val form_finish(const struct type *type, const struct cell *cells)
{
	struct val schema = VAL_EMPTY, other = VAL_EMPTY;
	for (unsigned i = 0; i < type->n_fields; i++)
		*(type->fields[i].kind == KIND_MESSAGE && type->fields[i].shape == SHAPE_ONE ? &schema : &other) = cells[i].v;
	if (type->form == FORM_SCHEMA_OR_BOOL)
		return val_exists(schema) ? schema : val_of_bool(val_as_bool(other));
	return val_len(other) ? other : val_exists(schema) ? schema : VAL_NULL_VALUE;
}

static struct val object_finish(struct decoder *d, const struct level *l)
{
	const struct type *type = l->object;
	struct cell *cells = &d->cells[l->cells];
	uint32_t n = 0;

	if (type->form != FORM_OBJECT)
		return form_finish(type, cells);
	for (unsigned i = 0; i < type->n_fields; i++) {
		if (!val_exists(cells[i].v))
			continue;
		if (type->fields[i].shape == SHAPE_MAP)
			cells[i].v = val_sorted(d->arena, cells[i].v);
		if (cell_keeps(&type->fields[i], cells[i].v))
			n++;
		else
			cells[i].v = VAL_EMPTY;
	}
	if (n == 0)
		return VAL_EMPTY_OBJECT;
	struct member *m = ARENA_ARRAY(d->arena, struct member, n);
	struct val v = { .type = VAL_OBJECT, .n = n, .members = m };
	for (unsigned i = 0; i < type->n_fields; i++)
		if (val_exists(cells[i].v))
			*m++ = (struct member){ type->fields[i].name, cells[i].v };
	return v;
}

static void pop(struct decoder *d)
{
	struct level l = d->levels[d->n_levels - 1];
	if (l.place == PLACE_EMBEDDED) {
		d->n_levels--;
		return;
	}
	struct val v = object_finish(d, &l);
	d->n_levels--;
	d->n_cells = l.cells;
	switch ((enum place)l.place) {
	case PLACE_CELL: d->cells[l.target].v = val_is_nil(v) ? VAL_EMPTY : v; break;
	case PLACE_ITEM: list_add(d, &d->cells[l.target], 1, v); break;
	case PLACE_ENTRY: map_add(d, &d->cells[l.target], 1, l.key, v); break;
	default: d->result = v;
	}
}

static int run(struct decoder *d)
{
	int e = 0;
	while (e >= 0 && d->n_levels) {
		struct level *l = &d->levels[d->n_levels - 1];
		if (l->in.at < l->in.end) {
			e = read_field(d, l);
		} else if (l->more) {
			l->in = reader_of(l->more->bytes);
			l->more = l->more->next;
			l->hint = 0;
		} else {
			e = l->place == PLACE_EMBEDDED ? 0 : settle(d, l);
			if (e == 0)
				pop(d);
		}
	}
	return e;
}

static void root_set(struct decoder *d, const struct type *type, atom name, str text)
{
	const struct field *f = type_field(type, name);
	if (f && text.n)
		d->cells[f - type->fields].v = val_of_str(text);
}

int proto_decode_root(struct arena *a, str bytes, const struct type *type, const struct proto_root *root, struct val *ret,
		      struct err *err)
{
	struct decoder d = { .arena = a, .err = err, .nesting = root->nesting };
	struct segment piece = { .bytes = bytes };

	if (bytes.n > INT32_MAX)
		return err_set(err, ERR_TOO_LARGE, "proto: message of %zu bytes is too large", bytes.n);
	int e = push_object(&d, type, &piece, PLACE_ROOT, 0, 0);
	if (e >= 0) {
		root_set(&d, type, A_apiVersion, root->api_version);
		root_set(&d, type, A_kind, root->kind);
		e = run(&d);
	}
	if (e >= 0)
		*ret = d.result;
	free(d.levels);
	free(d.cells);
	return e < 0 ? e : 0;
}

int proto_decode(struct arena *a, str bytes, const struct type *type, struct val *ret, struct err *err)
{
	return proto_decode_root(a, bytes, type, &(struct proto_root){ .nesting = 0 }, ret, err);
}
