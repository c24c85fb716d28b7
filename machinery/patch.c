#include <stdlib.h>

#include "codec/atoms.h"
#include "codec/go.h"
#include "machinery/patch_priv.h"

enum { GO_TEXT_MAX = 16 * 1024 };

int patch_depth(unsigned depth, struct err *err)
{
	if (depth <= VAL_RECURSION_MAX)
		return 0;
	return err_set(err, ERR_BAD_REQUEST, "exceeded max depth of %d", VAL_RECURSION_MAX);
}

int patch_objects(struct val x, struct val y, struct val z, struct err *err)
{
	const struct val all[] = { x, y, z };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!val_is_nil(all[i]) && all[i].type != VAL_OBJECT)
			return err_set(err, ERR_BAD_REQUEST, "invalid JSON document");
	return 0;
}

/* ---- order ---- */

int patch_key_cmp(atom x, atom y) { return x == y ? 0 : str_cmp(atom_str(x), atom_str(y)); }

struct placed {
	struct member m;
	uint32_t at;
};

static int placed_cmp(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;
	int r = patch_key_cmp(a->m.key, b->m.key);
	return r ? r : a->at < b->at ? -1 : 1;
}

static bool members_sorted(struct val object)
{
	for (uint32_t i = 1; i < object.n; i++)
		if (patch_key_cmp(object.members[i - 1].key, object.members[i].key) >= 0)
			return false;
	return true;
}

struct val patch_sorted(struct arena *a, struct val object)
{
	if (object.type != VAL_OBJECT || members_sorted(object))
		return object;
	struct placed *p = ARENA_ARRAY(a, struct placed, object.n);
	struct member *out = ARENA_ARRAY(a, struct member, object.n);
	uint32_t n = 0;

	for (uint32_t i = 0; i < object.n; i++)
		p[i] = (struct placed){ object.members[i], i };
	qsort(p, object.n, sizeof(*p), placed_cmp);
	for (uint32_t i = 0; i < object.n; i++) {
		if (n && atom_eq(out[n - 1].key, p[i].m.key))
			n--;
		out[n++] = p[i].m;
	}
	return (struct val){ .type = VAL_OBJECT, .n = n, .members = out };
}

int patch_sorted_deep(struct arena *a, struct val v, unsigned depth, struct val *ret, struct err *err)
{
	int r = patch_depth(depth, err);

	if (v.type == VAL_OBJECT) {
		v = patch_sorted(a, v);
		struct member *out = ARENA_ARRAY(a, struct member, v.n);
		for (uint32_t i = 0; r >= 0 && i < v.n; i++) {
			out[i].key = v.members[i].key;
			r = patch_sorted_deep(a, v.members[i].val, depth + 1, &out[i].val, err);
		}
		v.members = out;
	} else if (v.type == VAL_LIST) {
		struct val *out = ARENA_ARRAY(a, struct val, v.n);
		for (uint32_t i = 0; r >= 0 && i < v.n; i++)
			r = patch_sorted_deep(a, v.items[i], depth + 1, &out[i], err);
		v.items = out;
	}
	*ret = v;
	return r;
}

/* ---- pairs ---- */

struct pairs patch_pairs_join(struct arena *a, struct val left, struct val right)
{
	left = patch_sorted(a, left);
	right = patch_sorted(a, right);
	uint32_t i = 0, j = 0;
	uint32_t nl = left.type == VAL_OBJECT ? left.n : 0, nr = right.type == VAL_OBJECT ? right.n : 0;
	struct pairs ps = { .p = ARENA_ARRAY(a, struct pair, (size_t)nl + nr) };

	while (i < nl || j < nr) {
		int c = i == nl ? 1 : j == nr ? -1 : patch_key_cmp(left.members[i].key, right.members[j].key);
		ps.p[ps.n++] = (struct pair){
			.key = c <= 0 ? left.members[i].key : right.members[j].key,
			.left = c <= 0 ? left.members[i].val : VAL_EMPTY,
			.right = c >= 0 ? right.members[j].val : VAL_EMPTY,
		};
		i += c <= 0;
		j += c >= 0;
	}
	return ps;
}

struct pair *patch_pairs_find(struct pairs ps, str key)
{
	uint32_t low = 0, high = ps.n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int c = str_cmp(atom_str(ps.p[mid].key), key);
		if (c == 0)
			return &ps.p[mid];
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

struct val patch_pairs_left(struct arena *a, struct pairs ps)
{
	struct member *out = ARENA_ARRAY(a, struct member, ps.n);
	uint32_t n = 0;

	for (uint32_t i = 0; i < ps.n; i++)
		if (val_exists(ps.p[i].left))
			out[n++] = (struct member){ ps.p[i].key, ps.p[i].left };
	return (struct val){ .type = VAL_OBJECT, .n = n, .members = out };
}

/* ---- documents ---- */

static int document(struct arena *a, struct val v, const struct type *type, unsigned depth, struct val *ret,
		    struct err *err);

/* What JSON writes for a member that is not in the tree; VAL_NONE when it writes nothing. */
static int member_zero(struct arena *a, const struct field *f, unsigned depth, struct val *ret, struct err *err)
{
	*ret = VAL_EMPTY;
	if (!(f->flags & FIELD_ALWAYS))
		return 0;
	*ret = VAL_NULL_VALUE;
	if (f->shape != SHAPE_ONE || f->flags & FIELD_POINTER)
		return 0;
	switch ((enum field_kind)f->kind) {
	case KIND_STRING: *ret = VAL_LIT(""); break;
	case KIND_BOOL: *ret = val_of_bool(false); break;
	case KIND_INT32:
	case KIND_INT64:
	case KIND_UINT32:
	case KIND_UINT64:
	case KIND_DOUBLE:
	case KIND_FLOAT:
	case KIND_INT_OR_STRING: *ret = val_of_int(0); break;
	case KIND_DURATION: *ret = VAL_LIT("0s"); break;
	case KIND_QUANTITY: *ret = VAL_LIT("0"); break;
	case KIND_MESSAGE: return document(a, VAL_EMPTY_OBJECT, f->type, depth + 1, ret, err);
	case KIND_BYTES:
	case KIND_RAW_BYTES:
	case KIND_ENUM:
	case KIND_TIME:
	case KIND_MICROTIME:
	case KIND_JSON:
	case KIND_FIELDS:
	case KIND_STRINGS: break;
	}
	return 0;
}

/* A list or map of messages, or one message. */
static int document_field(struct arena *a, struct val v, const struct field *f, unsigned depth, struct val *ret,
			  struct err *err)
{
	int r = 0;

	*ret = v;
	if (f->kind != KIND_MESSAGE)
		return 0;
	if (f->shape == SHAPE_ONE)
		return document(a, v, f->type, depth + 1, ret, err);
	if (v.type == VAL_LIST) {
		struct val *out = ARENA_ARRAY(a, struct val, v.n);
		for (uint32_t i = 0; r >= 0 && i < v.n; i++)
			r = document(a, v.items[i], f->type, depth + 1, &out[i], err);
		ret->items = out;
	} else if (v.type == VAL_OBJECT) {
		struct member *out = ARENA_ARRAY(a, struct member, v.n);
		for (uint32_t i = 0; r >= 0 && i < v.n; i++) {
			out[i].key = v.members[i].key;
			r = document(a, v.members[i].val, f->type, depth + 1, &out[i].val, err);
		}
		ret->members = out;
	}
	return r;
}

/* The members of a typed tree stand in the order of the fields, so one walk over the fields finds them all. */
static int document(struct arena *a, struct val v, const struct type *type, unsigned depth, struct val *ret,
		    struct err *err)
{
	struct val_builder b = val_builder(a);
	uint32_t at = 0;
	int r = patch_depth(depth, err);

	*ret = v;
	if (r < 0 || v.type != VAL_OBJECT || type->form != FORM_OBJECT)
		return r;
	for (uint32_t i = 0; i < type->n_fields && r >= 0; i++) {
		const struct field *f = &type->fields[i];
		struct val have = at < v.n && v.members[at].key == f->name ? v.members[at++].val : VAL_EMPTY;
		struct val shown;
		r = val_exists(have) ? document_field(a, have, f, depth, &shown, err)
				     : member_zero(a, f, depth, &shown, err);
		if (r >= 0)
			val_add_member(&b, f->name, shown);
	}
	for (; r >= 0 && at < v.n; at++)
		val_add_member(&b, v.members[at].key, v.members[at].val);
	*ret = val_end_object(&b);
	return r;
}

int patch_document(struct arena *a, struct val v, const struct type *type, struct val *ret, struct err *err)
{
	if (type)
		return document(a, v, type, 0, ret, err);
	*ret = v;
	return 0;
}

/* ---- texts ---- */

const char *patch_json_type(struct val v)
{
	switch ((enum val_type)v.type) {
	case VAL_BOOL: return "bool";
	case VAL_INT:
	case VAL_DOUBLE: return "number";
	case VAL_STRING: return "string";
	case VAL_LIST: return "array";
	case VAL_RAW:
	case VAL_OBJECT: return "object";
	case VAL_NONE:
	case VAL_NULL: break;
	}
	return "null";
}

static void go_print(struct arena *a, struct buf *b, struct val v, unsigned depth)
{
	char text[GO_FLOAT_MAX];
	uint32_t i;

	if (b->overflow || depth > VAL_RECURSION_MAX)
		return;
	switch ((enum val_type)v.type) {
	case VAL_NONE:
	case VAL_NULL: buf_add(b, STR("<nil>")); break;
	case VAL_BOOL: buf_add(b, v.b ? STR("true") : STR("false")); break;
	case VAL_INT: buf_addf(b, "%lld", (long long)v.i); break;
	case VAL_DOUBLE: buf_add(b, go_format_float(v.d, false, GO_FLOAT_G, text)); break;
	case VAL_STRING:
	case VAL_RAW: buf_add(b, val_as_str(v)); break;
	case VAL_LIST:
		buf_addc(b, '[');
		for (i = 0; i < v.n && !b->overflow; i++) {
			if (i)
				buf_addc(b, ' ');
			go_print(a, b, v.items[i], depth + 1);
		}
		buf_addc(b, ']');
		break;
	case VAL_OBJECT:
		v = patch_sorted(a, v);
		buf_add(b, STR("map["));
		for (i = 0; i < v.n && !b->overflow; i++) {
			buf_addf(b, "%s" STR_FMT ":", i ? " " : "", STR_ARG(atom_str(v.members[i].key)));
			go_print(a, b, v.members[i].val, depth + 1);
		}
		buf_addc(b, ']');
		break;
	}
}

void patch_go_print(struct buf *b, struct val v)
{
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	go_print(&scratch, b, v, 0);
}

str patch_go_text(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(GO_TEXT_MAX);
	patch_go_print(&b, v);
	return arena_str(a, buf_str(&b));
}

/* ---- preconditions ---- */

int patch_preconditions(struct val patch, unsigned preconditions, struct err *err)
{
	struct val name = val_get(patch, metadata, name);
	bool touched = (preconditions & PATCH_SAME_API_VERSION && val_has(patch, apiVersion)) ||
		       (preconditions & PATCH_SAME_KIND && val_has(patch, kind)) ||
		       (preconditions & PATCH_SAME_NAME && val_exists(name));
	if (!touched)
		return 0;
	CLEANUP(buf_done) struct buf b = BUF_INIT(GO_TEXT_MAX);
	patch_go_print(&b, patch);
	return err_set(err, ERR_FORBIDDEN, "precondition failed for: " STR_FMT, STR_ARG(buf_str(&b)));
}
