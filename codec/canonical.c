/* The tree as its own source of events: what the JSON decoder does with text happens here with values. */
#include "codec/assemble.h"
#include "codec/codec.h"
#include "codec/go.h"
#include "codec/json_scan.h"
#include "codec/walk.h"

/* Free JSON of a value, for fields that keep text. */
static int raw_value(struct assembly *as, struct val v, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX / 2);
	struct json_encode_options opt = { .plain = true };

	if (v.type == VAL_RAW) {
		assembly_raw(as, val_as_str(v));
		return 0;
	}
	int r = json_encode(&b, v, &opt, err);
	if (r < 0)
		return r;
	assembly_raw(as, arena_str(as->arena, buf_str(&b)));
	return 0;
}

static void number(struct assembly *as, str text)
{
	/* The text itself may become the quantity. */
	bool kept = as->target.kind == KIND_QUANTITY;
	struct scalar s = { .token = TOKEN_NUMBER, .text = kept ? arena_str(as->arena, text) : text };

	s.integer = json_to_int64(text, &s.i);
	assembly_scalar(as, &s);
}

/* Whether the value is what a field of that kind holds, so that nothing has to be made of it. */
static bool fits(const struct target *t, struct val v)
{
	if (t->shape != SHAPE_ONE)
		return false;
	switch ((enum field_kind)t->kind) {
	case KIND_STRING: return v.type == VAL_STRING;
	case KIND_BOOL: return v.type == VAL_BOOL;
	case KIND_INT32: return v.type == VAL_INT && v.i == (int32_t)v.i;
	case KIND_INT64: return v.type == VAL_INT;
	default: return false;
	}
}

/* Anything that has no children. */
static int feed_leaf(struct assembly *as, struct val v, struct err *err)
{
	struct scalar s = { .token = TOKEN_NULL };
	char out[GO_FLOAT_MAX]; /* integers are shorter */

	if (as->target.kind == KIND_FIELDS && as->target.shape == SHAPE_ONE && !val_is_nil(v))
		return raw_value(as, v, err);
	if (fits(&as->target, v) || (v.type == VAL_RAW && as->target.kind == KIND_JSON) ||
	    (v.type == VAL_STRING && as->target.kind == KIND_RAW_BYTES)) {
		assembly_deliver(as, v); /* trees have these as they are, JSON does not */
		return 0;
	}
	switch ((enum val_type)v.type) {
	case VAL_NONE:
	case VAL_NULL: assembly_scalar(as, &s); break;
	case VAL_BOOL:
		s = (struct scalar){ .token = TOKEN_BOOL, .b = v.b };
		assembly_scalar(as, &s);
		break;
	case VAL_INT:
		number(as, as->target.kind == KIND_UINT64 ? go_format_uint((uint64_t)v.i, out) : go_format_int(v.i, out));
		break;
	case VAL_DOUBLE:
		if (v.d - v.d != 0) /* infinite or not a number */
			return err_set(err, ERR_BAD_REQUEST, "json: unsupported value: %f", v.d);
		number(as, go_format_float(v.d, as->target.kind == KIND_FLOAT, GO_FLOAT_JSON, out));
		break;
	default:
		s = (struct scalar){ .token = TOKEN_STRING, .text = val_as_str(v), .raw = val_as_str(v) };
		assembly_scalar(as, &s);
	}
	return 0;
}

/* base: what the tree that was edited has in this place, or VAL_NONE. */
static int feed(struct assembly *as, struct walk *w, struct val v, struct val base, struct err *err)
{
	bool raw = as->target.kind == KIND_FIELDS && as->target.shape == SHAPE_ONE;

	if (val_exists(base) && val_same(v, base)) {
		assembly_deliver(as, v);
		return 0;
	}
	if (v.type < VAL_LIST || raw)
		return feed_leaf(as, v, err);
	if (as->n_frames == VAL_MAX_DEPTH)
		return err_set(err, ERR_BAD_REQUEST, "exceeded max depth");
	if (assembly_open(as, v.type == VAL_OBJECT))
		walk_push(w, v)->other = base;
	return 0;
}

/* Member i of what was edited is most likely the one that is member i now. */
static struct val base_member(struct val base, uint32_t i, atom key)
{
	if (base.type == VAL_OBJECT && i < base.n && base.members[i].key == key)
		return base.members[i].val;
	return val_member(base, key);
}

static int feed_tree(struct assembly *as, struct walk *w, struct val v, struct val base, struct err *err)
{
	int r = feed(as, w, v, base, err);

	for (struct walk_frame *f; r == 0 && !as->failed && (f = walk_top(w));) {
		if (f->i == f->v.n) {
			walk_pop(w);
			assembly_close(as);
			continue;
		}
		uint32_t i = f->i++;
		if (f->v.type == VAL_LIST)
			r = feed(as, w, f->v.items[i], val_at(f->other, i), err);
		else if (assembly_key(as, atom_str(f->v.members[i].key), f->v.members[i].key))
			r = feed(as, w, f->v.members[i].val, base_member(f->other, i, f->v.members[i].key), err);
	}
	return r;
}

static int canonical(struct arena *a, struct val v, struct val base, const struct type *type, struct strict_errors *strict,
		     struct val *ret, struct err *err)
{
	struct assembly as;
	struct walk w;

	assembly_init(&as, a, type, strict);
	as.sort_free = true;
	walk_init(&w);
	int r = feed_tree(&as, &w, v, base, err);
	if (r == 0)
		r = assembly_finish(&as, ret, err);
	walk_done(&w);
	assembly_done(&as);
	return r;
}

int val_canonical(struct arena *a, struct val v, const struct type *type, struct strict_errors *strict, struct val *ret,
		  struct err *err)
{
	return canonical(a, v, VAL_EMPTY, type, strict, ret, err);
}

int val_canonical_edit(struct arena *a, struct val v, struct val base, const struct type *type, struct val *ret,
		       struct err *err)
{
	if (!val_same(v, base))
		return canonical(a, v, base, type, NULL, ret, err);
	*ret = v;
	return 0;
}
