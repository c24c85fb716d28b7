/* The functions of templates. */
#include <stdio.h>

#include "base/encoding.h"
#include "kubectl/template_priv.h"
#include "net/url.h"

static int fail(struct template_call *c, const char *text)
{
	buf_add(&c->problem, str_of(text));
	return -1;
}

static int fail_type(struct template_call *c, const char *before, struct template_value v)
{
	buf_addf(&c->problem, "%s%s", before, template_type_name(v));
	return -1;
}

/* What was made becomes a value; it counts as work. */
static int give_text(struct template_call *c, const struct buf *b, struct template_value *ret)
{
	if (b->overflow || b->n > c->work)
		return fail(c, "the text is too long");
	c->work -= b->n;
	*ret = template_plain(val_of_str(arena_str(c->arena, buf_str(b))));
	return 0;
}

static int give_bool(bool b, struct template_value *ret)
{
	*ret = template_plain(val_of_bool(b));
	return 0;
}

/* ---- texts ---- */

static int run_print(struct template_call *c, struct template_value *ret)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(c->work);
	template_sprint(&b, c->args, c->n, c->func->detail);
	return give_text(c, &b, ret);
}

static int run_printf(struct template_call *c, struct template_value *ret)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(c->work);
	template_sprintf(&b, val_as_str(c->args[0].v), c->args + 1, c->n - 1);
	return give_text(c, &b, ret);
}

static void escape_html(struct buf *b, str s)
{
	for (size_t i = 0; i < s.n; i++) {
		switch (s.p[i]) {
		case '\0': buf_add(b, STR("\xef\xbf\xbd")); break;
		case '"': buf_add(b, STR("&#34;")); break;
		case '\'': buf_add(b, STR("&#39;")); break;
		case '&': buf_add(b, STR("&amp;")); break;
		case '<': buf_add(b, STR("&lt;")); break;
		case '>': buf_add(b, STR("&gt;")); break;
		default: buf_addc(b, s.p[i]);
		}
	}
}

static void escape_js(struct buf *b, str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		uint32_t rune;
		size_t n = c < 0x80 ? 0 : str_rune(str_skip(s, i), &rune);
		if (c == '\\' || c == '\'' || c == '"')
			buf_addf(b, "\\%c", c);
		else if (c < ' ' || c == '<' || c == '>' || c == '&' || c == '=')
			buf_addf(b, "\\u%04X", c);
		else if (c < 0x80)
			buf_addc(b, (char)c);
		else if (n && !(rune < 0xa0 || rune == 0xad || (rune >= 0x2028 && rune <= 0x202e) || rune == 0xfeff))
			buf_add(b, str_span(s.p + i, n));
		else
			buf_addf(b, n ? "\\u%04X" : "\xef\xbf\xbd", n ? rune : 0);
		i += n ? n - 1 : 0;
	}
}

static int run_escape(struct template_call *c, struct template_value *ret)
{
	static void (*const escapes[])(struct buf *, str) = { escape_html, escape_js, url_query_escape };
	CLEANUP(buf_done) struct buf plain = BUF_INIT(c->work), b = BUF_INIT(c->work);
	struct template_value *args = ARENA_ARRAY(c->arena, struct template_value, c->n + 1);
	for (size_t i = 0; i < c->n; i++)
		args[i] = val_exists(c->args[i].v) ? c->args[i] : template_plain(VAL_LIT("<no value>"));
	template_sprint(&plain, args, c->n, false);
	escapes[c->func->detail](&b, buf_str(&plain));
	return give_text(c, &b, ret);
}

static int run_base64decode(struct template_call *c, struct template_value *ret)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(c->work);
	struct err err = ERR_INIT;
	if (base64_decode_buf(&b, val_as_str(c->args[0].v), &err) < 0) {
		buf_addf(&c->problem, "base64 decode failed: %s", err.msg);
		return -1;
	}
	return give_text(c, &b, ret);
}

/* ---- lists and maps ---- */

static int run_len(struct template_call *c, struct template_value *ret)
{
	struct template_value v = c->args[0];
	if (v.how == VALUE_INTERFACE && val_is_nil(v.v))
		return fail(c, "len of nil pointer");
	v = template_inside(v);
	if (!val_exists(v.v))
		return fail(c, "reflect: call of reflect.Value.Type on zero Value");
	if (!val_is(v.v, VAL_STRING) && v.v.type < VAL_LIST)
		return fail_type(c, "len of type ", v);
	*ret = template_plain(val_of_int(v.v.n));
	return 0;
}

/* A place in a list or text of n items; n itself is one. */
static int place(struct template_call *c, struct template_value v, uint32_t n, uint32_t *ret)
{
	v = template_inside(v);
	if (!val_exists(v.v))
		return fail(c, "cannot index slice/array with nil");
	if (!val_is(v.v, VAL_INT))
		return fail_type(c, "cannot index slice/array with type ", v);
	if (v.v.i < 0 || v.v.i > n) {
		buf_addf(&c->problem, "index out of range: %lld", (long long)v.v.i);
		return -1;
	}
	*ret = (uint32_t)v.v.i;
	return 0;
}

static struct template_value byte_at(struct val text, uint32_t i)
{
	return (struct template_value){ val_of_int((unsigned char)text.s[i]), VALUE_BYTE };
}

static int index_map(struct template_call *c, struct val map, struct template_value key, struct template_value *ret)
{
	key = template_inside(key);
	if (!val_exists(key.v))
		return fail(c, "value is nil; should be of type string");
	if (!val_is(key.v, VAL_STRING)) {
		buf_addf(&c->problem, "value has type %s; should be string", template_type_name(key));
		return -1;
	}
	struct val found = val_find(map, val_as_str(key.v));
	*ret = template_of_data(val_exists(found) ? found : VAL_NULL_VALUE);
	return 0;
}

static int run_index(struct template_call *c, struct template_value *ret)
{
	struct template_value v = template_inside(c->args[0]);
	uint32_t at;
	if (!val_exists(v.v))
		return fail(c, "index of untyped nil");
	for (size_t i = 1; i < c->n; i++) {
		if (v.how == VALUE_INTERFACE && val_is_nil(v.v))
			return fail(c, "index of nil pointer");
		v = template_inside(v);
		if (val_is(v.v, VAL_OBJECT)) {
			if (index_map(c, v.v, c->args[i], &v) < 0)
				return -1;
			continue;
		}
		if (!val_is(v.v, VAL_LIST) && !val_is(v.v, VAL_STRING))
			return fail_type(c, "can't index item of type ", v);
		if (place(c, c->args[i], v.v.n, &at) < 0)
			return -1;
		if (at == v.v.n)
			return fail(c, val_is(v.v, VAL_LIST) ? "reflect: slice index out of range" : "reflect: string index out of range");
		v = val_is(v.v, VAL_LIST) ? template_of_data(v.v.items[at]) : byte_at(v.v, at);
	}
	*ret = v;
	return 0;
}

static int run_slice(struct template_call *c, struct template_value *ret)
{
	struct template_value v = template_inside(c->args[0]);
	bool text = val_is(v.v, VAL_STRING);
	uint32_t at[3] = { 0, v.v.n, v.v.n };
	if (!val_exists(v.v))
		return fail(c, "slice of untyped nil");
	if (c->n > 4) {
		buf_addf(&c->problem, "too many slice indexes: %zu", c->n - 1);
		return -1;
	}
	if (text && c->n == 4)
		return fail(c, "cannot 3-index slice a string");
	if (!text && !val_is(v.v, VAL_LIST))
		return fail_type(c, "can't slice item of type ", v);
	for (size_t i = 1; i < c->n; i++)
		if (place(c, c->args[i], v.v.n, &at[i - 1]) < 0)
			return -1;
	for (int i = 0; i < 2; i++)
		if (at[i] > at[i + 1]) {
			buf_addf(&c->problem, "invalid slice index: %u > %u", at[i], at[i + 1]);
			return -1;
		}
	if (text)
		v.v = val_of_str(str_span(v.v.s + at[0], at[1] - at[0]));
	else
		v.v = (struct val){ .type = VAL_LIST, .n = at[1] - at[0], .items = v.v.items + at[0] };
	*ret = v;
	return 0;
}

/* kubectl's: whether a path of indices leads somewhere; an empty path always does. */
static int run_exists(struct template_call *c, struct template_value *ret)
{
	struct val v = c->args[0].v;
	for (size_t i = 1; i < c->n; i++) {
		struct val key = c->args[i].v, list = v;
		v = VAL_EMPTY;
		if (val_is(list, VAL_OBJECT) && (!val_exists(key) || val_is(key, VAL_STRING)))
			v = val_find(list, val_as_str(key));
		else if (val_is(key, VAL_INT) && key.i >= 0 && (val_is(list, VAL_LIST) || (val_is(list, VAL_STRING) && key.i < list.n)))
			v = val_is(list, VAL_LIST) ? val_at(list, (size_t)key.i) : byte_at(list, (uint32_t)key.i).v;
	}
	return give_bool(c->n == 1 || !val_is_nil(v), ret);
}

/* ---- truth ---- */

static int run_not(struct template_call *c, struct template_value *ret) { return give_bool(!template_is_true(c->args[0]), ret); }

/* Kinds that can be compared; 0: none of them. */
static enum val_type basic_kind(struct template_value v)
{
	return v.v.type >= VAL_BOOL && v.v.type <= VAL_STRING ? v.v.type : 0;
}

static int fail_incompatible(struct template_call *c, struct template_value x, struct template_value y)
{
	buf_addf(&c->problem, "incompatible types for comparison: %s and %s", template_type_name(x), template_type_name(y));
	return -1;
}

/* Of the same basic kind. */
static int compare(struct val x, struct val y)
{
	switch (x.type) {
	case VAL_BOOL: return x.b - y.b;
	case VAL_INT: return (x.i > y.i) - (x.i < y.i);
	case VAL_DOUBLE: return (x.d > y.d) - (x.d < y.d);
	default: return str_cmp(val_as_str(x), val_as_str(y));
	}
}

/* 1: they are equal; 0: not; -1: they cannot be compared. */
static int equal(struct template_call *c, struct template_value x, struct template_value y)
{
	enum val_type k = basic_kind(x);
	if (k != basic_kind(y))
		return val_exists(x.v) && val_exists(y.v) ? fail_incompatible(c, x, y) : 0;
	if (k)
		return compare(x.v, y.v) == 0;
	if (!val_exists(x.v) || !val_exists(y.v))
		return val_exists(x.v) == val_exists(y.v);
	if (x.v.type != y.v.type) {
		buf_add(&c->problem, STR("non-comparable types "));
		template_add_value(&c->problem, x, 's');
		buf_addf(&c->problem, ": %s, %s: ", template_type_name(x), template_type_name(y));
		template_add_value(&c->problem, y, 'v');
		return -1;
	}
	buf_add(&c->problem, STR("non-comparable type "));
	template_add_value(&c->problem, y, 's');
	buf_addf(&c->problem, ": %s", template_type_name(y));
	return -1;
}

static int run_eq(struct template_call *c, struct template_value *ret)
{
	bool negate = c->func->detail;
	if (c->n < 2)
		return fail(c, "missing argument for comparison");
	int r = 0;
	for (size_t i = 1; i < c->n && r == 0; i++)
		r = equal(c, template_inside(c->args[0]), template_inside(c->args[i]));
	return r < 0 ? -1 : give_bool((r > 0) != negate, ret);
}

enum { LT, LE, GT, GE };

static int run_order(struct template_call *c, struct template_value *ret)
{
	struct template_value x = template_inside(c->args[0]), y = template_inside(c->args[1]);
	enum val_type k = basic_kind(x);
	if (!k || !basic_kind(y))
		return fail(c, "invalid type for comparison");
	if (k != basic_kind(y))
		return fail_incompatible(c, x, y);
	if (k == VAL_BOOL)
		return fail(c, "invalid type for comparison");
	int r = compare(x.v, y.v);
	const bool answers[] = { [LT] = r < 0, [LE] = r <= 0, [GT] = r > 0, [GE] = r >= 0 };
	return give_bool(answers[c->func->detail], ret);
}

static const struct template_func funcs[] = {
	{ "and", 1, 'v', 'v', NULL, FUNC_AND }, { "base64decode", 1, 's', 0, run_base64decode, 0 }, { "eq", 1, 'v', 'v', run_eq, 0 },
	{ "exists", 1, 'a', 'a', run_exists, 0 }, { "ge", 2, 'v', 0, run_order, GE }, { "gt", 2, 'v', 0, run_order, GT },
	{ "html", 0, 0, 'a', run_escape, 0 }, { "index", 1, 'v', 'v', run_index, 0 }, { "js", 0, 0, 'a', run_escape, 1 },
	{ "le", 2, 'v', 0, run_order, LE }, { "len", 1, 'v', 0, run_len, 0 }, { "lt", 2, 'v', 0, run_order, LT },
	{ "ne", 2, 'v', 0, run_eq, 1 }, { "not", 1, 'v', 0, run_not, 0 }, { "or", 1, 'v', 'v', NULL, FUNC_OR },
	{ "print", 0, 0, 'a', run_print, 0 }, { "printf", 1, 's', 'a', run_printf, 0 }, { "println", 0, 0, 'a', run_print, 1 },
	{ "slice", 1, 'v', 'v', run_slice, 0 }, { "urlquery", 0, 0, 'a', run_escape, 2 },
};

const struct template_func *template_find_func(str name)
{
	for (size_t i = 0; i < ARRAY_LEN(funcs); i++)
		if (str_eq(name, str_of(funcs[i].name)))
			return &funcs[i];
	return NULL;
}
