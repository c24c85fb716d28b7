/*
 * FieldsV1: a set as JSON, read in one pass over the text without a tree in between. An element is itself JSON inside
 * of a JSON string; only those (keys and values of list items) go through the general decoder.
 *
 * The writer is the one of Kubernetes' structured-merge-diff, whose escaping differs from the rest of the API: what
 * is inside of an element has <, > and & escaped, the element around it has not.
 */
#include "codec/go.h"
#include "codec/json.h"
#include "machinery/field_set.h"

struct reader {
	struct arena *arena;
	const char *start, *p, *end;
	struct field_set_builder builder;
	struct err *err;
};

static int syntax(struct reader *r, const char *what)
{
	return err_set(r->err, ERR_BAD_REQUEST, "fieldsV1: %s", what);
}

static char peek(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
		r->p++;
	return r->p < r->end ? *r->p : '\0';
}

static bool accept(struct reader *r, char c)
{
	if (peek(r) != c)
		return false;
	r->p++;
	return true;
}

static bool accept_null(struct reader *r)
{
	if (peek(r) != 'n' || r->end - r->p < 4 || memcmp(r->p, "null", 4) != 0)
		return false;
	r->p += 4;
	return true;
}

/* A JSON string: what has no escapes is borrowed from the text, the rest is in the arena. */
static int read_string(struct reader *r, str *ret)
{
	if (!accept(r, '"'))
		return syntax(r, "expected a string");
	const char *from = r->p;
	bool plain = true;
	for (; r->p < r->end && *r->p != '"'; r->p++) {
		unsigned char c = (unsigned char)*r->p;
		if (c < 0x20)
			return syntax(r, "control character in a string");
		if (c == '\\' && r->p + 1 < r->end)
			r->p++;
		plain &= c != '\\' && c < 0x80;
	}
	if (r->p == r->end)
		return syntax(r, "unterminated string");
	str inside = str_span(from, (size_t)(r->p++ - from));
	if (plain) {
		*ret = inside;
		return 0;
	}
	struct val v;
	int res = json_decode(r->arena, str_span(inside.p - 1, inside.n + 2), &(struct json_decode_options){ 0 }, &v,
			      r->err);
	if (res < 0)
		return res;
	*ret = val_as_str(v);
	return 0;
}

/* Numbers that were read from a set are floating point in Kubernetes. False: too deep for those who recurse over it. */
static bool value_normal(struct arena *a, struct val *v, unsigned depth)
{
	if (depth == VAL_RECURSION_MAX)
		return false;
	if (v->type == VAL_INT)
		*v = val_of_double((double)v->i);
	struct val_builder b = val_builder(a);
	if (v->type == VAL_LIST) {
		VAL_EACH(item, *v) {
			struct val copy = *item;
			if (!value_normal(a, &copy, depth + 1))
				return false;
			val_add_item(&b, copy);
		}
		*v = val_end_list(&b);
	} else if (v->type == VAL_OBJECT) {
		VAL_EACH_MEMBER(m, *v) {
			struct val copy = m->val;
			if (!value_normal(a, &copy, depth + 1))
				return false;
			val_add_member(&b, m->key, copy);
		}
		*v = val_end_object(&b);
	}
	return true;
}

static int read_value(struct reader *r, str text, struct val *ret)
{
	struct json_decode_options opt = { .sort_keys = true };
	struct val v;
	/* The decoder borrows what it can, but the set may outlive the text that it is read from. */
	if (text.p >= r->start && text.p < r->end)
		text = arena_str(r->arena, text);
	int res = json_decode(r->arena, text, &opt, &v, r->err);
	if (res < 0)
		return res;
	if (!value_normal(r->arena, &v, 0))
		return syntax(r, "nested too deeply");
	*ret = v;
	return 0;
}

/* 1: an element; 0: one of a kind that is not known. */
static int read_element(struct reader *r, str text, struct path_element *ret)
{
	if (text.n < 2 || text.p[1] != ':')
		return err_set(r->err, ERR_BAD_REQUEST, "fieldsV1: not a path element: \"" STR_FMT "\"", STR_ARG(text));
	str rest = str_skip(text, 2);
	struct val v;
	int res;

	*ret = (struct path_element){ .kind = PATH_FIELD };
	switch (text.p[0]) {
	case 'f':
		ret->field = atom_make(r->arena, rest);
		return 1;
	case 'i':
		ret->kind = PATH_INDEX;
		if (!str_to_i64(rest, &ret->index))
			return err_set(r->err, ERR_BAD_REQUEST, "fieldsV1: not an index: \"" STR_FMT "\"",
				       STR_ARG(rest));
		return 1;
	case 'v':
	case 'k':
		if ((res = read_value(r, rest, &v)) < 0)
			return res;
		break;
	default:
		return 0;
	}
	if (text.p[0] == 'v') {
		struct val *copy = ARENA_NEW(r->arena, struct val);
		*copy = v;
		ret->kind = PATH_VALUE;
		ret->value = copy;
		return 1;
	}
	if (v.type != VAL_OBJECT && v.type != VAL_NULL)
		return err_set(r->err, ERR_BAD_REQUEST, "fieldsV1: not a key: \"" STR_FMT "\"", STR_ARG(rest));
	ret->kind = PATH_KEY;
	ret->n = val_len(v);
	ret->key = v.type == VAL_OBJECT ? v.members : NULL;
	return 1;
}

/* A number, true, false or null. */
static bool accept_literal(struct reader *r)
{
	const char *from = r->p;
	while (r->p < r->end && (*r->p == '-' || *r->p == '+' || *r->p == '.' || (*r->p >= '0' && *r->p <= '9') ||
				 ((*r->p | 0x20) >= 'a' && (*r->p | 0x20) <= 'z')))
		r->p++;
	return r->p > from;
}

/* One value of any kind. Its inside is only searched for its end: nobody will read it. */
static int skip_value(struct reader *r)
{
	size_t open = 0;
	do {
		char c = peek(r);
		str text;
		if (c == '"') {
			int res = read_string(r, &text);
			if (res < 0)
				return res;
		} else if (c == '{' || c == '[') {
			open++;
			r->p++;
		} else if (open && (c == '}' || c == ']')) {
			open--;
			r->p++;
		} else if (open && (c == ',' || c == ':')) {
			r->p++;
		} else if (!accept_literal(r)) {
			return syntax(r, "expected a value");
		}
	} while (open);
	return 0;
}

static int read_level(struct reader *r, unsigned depth, struct field_set *ret, bool *ret_member);

static int read_member(struct reader *r, unsigned depth, bool *ret_self)
{
	struct path_element at;
	str text;
	int res = read_string(r, &text);
	if (res < 0)
		return res;
	if (!accept(r, ':'))
		return syntax(r, "expected ':'");
	if (str_eq(text, STR("."))) {
		*ret_self = true;
		return skip_value(r);
	}
	if ((res = read_element(r, text, &at)) <= 0)
		return res < 0 ? res : skip_value(r);
	struct field_set children;
	bool member;
	if ((res = read_level(r, depth + 1, &children, &member)) < 0)
		return res;
	field_set_add(&r->builder, at, member, children);
	return 0;
}

/* A path is a member when "." says so or when nothing follows it. */
static int read_level(struct reader *r, unsigned depth, struct field_set *ret, bool *ret_member)
{
	uint32_t begin = field_set_begin(&r->builder);
	bool self = false;
	int res;

	if (depth >= VAL_RECURSION_MAX)
		return syntax(r, "nested too deeply");
	if (!accept_null(r)) {
		if (!accept(r, '{'))
			return syntax(r, "expected '{'");
		if (!accept(r, '}')) {
			do {
				if ((res = read_member(r, depth, &self)) < 0)
					return res;
			} while (accept(r, ','));
			if (!accept(r, '}'))
				return syntax(r, "expected '}'");
		}
	}
	*ret = field_set_end(&r->builder, begin);
	*ret_member = self || !ret->n;
	return 0;
}

int field_set_parse(struct arena *a, str fields_v1, struct field_set *ret, struct err *err)
{
	if (!fields_v1.n) {
		*ret = FIELD_SET_EMPTY;
		return 0;
	}
	struct reader r = { .arena = a, .start = fields_v1.p, .p = fields_v1.p, .end = fields_v1.p + fields_v1.n,
			    .builder = { .arena = a, .last_wins = true }, .err = err };
	struct field_set s;
	bool member;
	int res = read_level(&r, 0, &s, &member);

	peek(&r);
	if (res == 0 && r.p < r.end)
		res = syntax(&r, "something follows the object");
	field_set_builder_done(&r.builder);
	if (res == 0)
		*ret = s;
	return res;
}

/* ---- writing ---- */

/*
 * A quoted string with the escapes of json-iterator: nothing outside of ASCII is touched, and only html escapes <, >
 * and &.
 */
static void put_string(struct buf *b, str s)
{
	static const char hex[] = "0123456789abcdef";
	size_t from = 0;

	buf_addc(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(b, str_span(s.p + from, i - from));
		from = i + 1;
		if (c == '"' || c == '\\')
			buf_add(b, str_span((const char[]){ '\\', (char)c }, 2));
		else if (c == '\n' || c == '\r' || c == '\t')
			buf_add(b, str_span((const char[]){ '\\', c == '\n' ? 'n' : c == '\r' ? 'r' : 't' }, 2));
		else
			buf_add(b, str_span((const char[]){ '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] }, 6));
	}
	buf_add(b, str_skip(s, from));
	buf_addc(b, '"');
}

/* An exponent has at least two digits here, unlike in the JSON of the rest of the API. */
static void put_double(struct buf *b, double d)
{
	char text[GO_FLOAT_MAX];
	str s = go_format_float(d, false, GO_FLOAT_JSON, text);
	ptrdiff_t e = str_chr(s, 'e');

	if (e < 0 || s.n - (size_t)e > 3) {
		buf_add(b, s);
		return;
	}
	buf_add(b, str_head(s, (size_t)e + 2));
	buf_addc(b, '0');
	buf_add(b, str_skip(s, (size_t)e + 2));
}

static void put_value(struct buf *b, struct val v)
{
	switch ((enum val_type)v.type) {
	case VAL_NONE:
	case VAL_NULL: buf_add(b, STR("null")); break;
	case VAL_BOOL: buf_add(b, v.b ? STR("true") : STR("false")); break;
	case VAL_INT: buf_addf(b, "%lld", (long long)v.i); break;
	case VAL_DOUBLE: put_double(b, v.d); break;
	case VAL_STRING: json_quote(b, val_as_str(v), false); break;
	case VAL_RAW: buf_add(b, val_as_str(v)); break;
	case VAL_LIST:
		buf_addc(b, '[');
		for (uint32_t i = 0; i < v.n; i++) {
			if (i)
				buf_addc(b, ',');
			put_value(b, v.items[i]);
		}
		buf_addc(b, ']');
		break;
	case VAL_OBJECT:
		buf_addc(b, '{');
		for (uint32_t i = 0; i < v.n; i++) {
			if (i)
				buf_addc(b, ',');
			json_quote(b, atom_str(v.members[i].key), false);
			buf_addc(b, ':');
			put_value(b, v.members[i].val);
		}
		buf_addc(b, '}');
		break;
	}
}

struct writer {
	struct buf *out;
	struct buf element; /* one element before it is quoted */
};

static void put_element(struct writer *w, const struct path_element *e)
{
	struct buf *b = &w->element;
	if (e->kind == PATH_FIELD && e->field < ATOM_LIMIT) { /* nearly all, and no name of the schema needs escapes */
		buf_add(w->out, STR("\"f:"));
		buf_add(w->out, atom_str(e->field));
		buf_addc(w->out, '"');
		return;
	}
	buf_reset(b);
	switch ((enum path_kind)e->kind) {
	case PATH_FIELD:
		buf_add(b, STR("f:"));
		buf_add(b, atom_str(e->field));
		break;
	case PATH_KEY:
		buf_add(b, STR("k:{"));
		for (uint32_t i = 0; i < e->n; i++) {
			if (i)
				buf_addc(b, ',');
			put_string(b, atom_str(e->key[i].key));
			buf_addc(b, ':');
			put_value(b, e->key[i].val);
		}
		buf_addc(b, '}');
		break;
	case PATH_VALUE:
		buf_add(b, STR("v:"));
		put_value(b, *e->value);
		break;
	case PATH_INDEX:
		buf_addf(b, "i:%lld", (long long)e->index);
		break;
	case PATH_BROKEN:
		break;
	}
	put_string(w->out, buf_str(b));
	w->out->overflow |= b->overflow;
}

static void put_level(struct writer *w, struct field_set s, bool self)
{
	buf_addc(w->out, '{');
	if (self && s.n)
		buf_add(w->out, STR("\".\":{}"));
	for (uint32_t i = 0; i < s.n; i++) {
		if (i || self)
			buf_addc(w->out, ',');
		put_element(w, &s.nodes[i].at);
		buf_addc(w->out, ':');
		put_level(w, field_node_set(&s.nodes[i]), s.nodes[i].member);
	}
	buf_addc(w->out, '}');
}

void field_set_encode(struct buf *b, struct field_set s)
{
	struct writer w = { .out = b, .element = BUF_INIT(b->max) };
	put_level(&w, s, false);
	buf_done(&w.element);
}

struct val field_set_val(struct arena *a, struct field_set s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
	field_set_encode(&b, s);
	str text = arena_str(a, buf_str(&b));
	return (struct val){ .type = VAL_RAW, .n = (uint32_t)text.n, .s = text.p };
}

/* ---- printing ---- */

/* fmt's %v of a number, %q of a string. */
static void print_value(struct buf *b, struct val v)
{
	char text[GO_FLOAT_MAX];

	switch ((enum val_type)v.type) {
	case VAL_NONE:
	case VAL_NULL: buf_add(b, STR("null")); break;
	case VAL_BOOL: buf_add(b, v.b ? STR("true") : STR("false")); break;
	case VAL_INT: buf_addf(b, "%lld", (long long)v.i); break;
	case VAL_DOUBLE: buf_add(b, go_format_float(v.d, false, GO_FLOAT_G, text)); break;
	case VAL_STRING: buf_add_quoted(b, val_as_str(v)); break;
	case VAL_RAW: buf_add(b, val_as_str(v)); break;
	case VAL_LIST:
		buf_addc(b, '[');
		for (uint32_t i = 0; i < v.n; i++) {
			if (i)
				buf_addc(b, ',');
			print_value(b, v.items[i]);
		}
		buf_addc(b, ']');
		break;
	case VAL_OBJECT:
		for (uint32_t i = 0; i < v.n; i++) {
			buf_add(b, atom_str(v.members[i].key));
			buf_addc(b, '=');
			print_value(b, v.members[i].val);
		}
		break;
	}
}

void path_element_print(struct buf *b, const struct path_element *e)
{
	switch ((enum path_kind)e->kind) {
	case PATH_FIELD:
		buf_addc(b, '.');
		buf_add(b, atom_str(e->field));
		return;
	case PATH_KEY:
		buf_addc(b, '[');
		for (uint32_t i = 0; i < e->n; i++) {
			if (i)
				buf_addc(b, ',');
			buf_add(b, atom_str(e->key[i].key));
			buf_addc(b, '=');
			print_value(b, e->key[i].val);
		}
		buf_addc(b, ']');
		return;
	case PATH_VALUE:
		buf_add(b, STR("[="));
		print_value(b, *e->value);
		buf_addc(b, ']');
		return;
	case PATH_INDEX:
		buf_addf(b, "[%lld]", (long long)e->index);
		return;
	case PATH_BROKEN:
		return;
	}
}
