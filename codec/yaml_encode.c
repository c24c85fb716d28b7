/*
 * Trees as block YAML, the way kubectl prints them: through JSON, back into values, and out through go-yaml's
 * emitter. The choice of a style for each string, the folding of long lines and the order of keys follow that
 * emitter; nothing else of YAML is needed.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/go.h"
#include "codec/yaml.h"
#include "codec/yaml_resolve.h"

enum { INDENT = 2, WIDTH = 80, SIMPLE_KEY_MAX = 128 };

enum style { STYLE_PLAIN, STYLE_SINGLE, STYLE_DOUBLE, STYLE_LITERAL };

struct frame {
	bool list;
	int indent;
	uint32_t i, n;
	const struct val *items;
	const struct member *members;
};

struct emitter {
	struct buf *b;
	int column, indent;
	bool whitespace;   /* the last character was white space, or there is none */
	bool indention;    /* so far this line has only indentation and "- ", "? ", ": " */
	struct arena scratch;
	struct frame *frames;
	uint32_t n_frames, cap_frames;
};

/* ---- characters ---- */

static void put(struct emitter *e, char c)
{
	buf_addc(e->b, c);
	e->column++;
}

static void put_text(struct emitter *e, str s, int columns)
{
	buf_add(e->b, s);
	e->column += columns;
}

static void put_break(struct emitter *e)
{
	buf_addc(e->b, '\n');
	e->column = 0;
}

/* Moves to the current indentation, on a new line if there is anything on this one. */
static void put_indent(struct emitter *e)
{
	int indent = MAX(e->indent, 0);

	if (!e->indention || e->column > indent || (e->column == indent && !e->whitespace))
		put_break(e);
	while (e->column < indent)
		put(e, ' ');
	e->whitespace = e->indention = true;
}

static void put_indicator(struct emitter *e, char c, bool needs_space, bool keeps_indention)
{
	if (needs_space && !e->whitespace)
		put(e, ' ');
	put(e, c);
	e->whitespace = false;
	e->indention = e->indention && keeps_indention;
}

static bool is_break(uint32_t rune)
{
	return rune == '\n' || rune == '\r' || rune == 0x85 || rune == 0x2028 || rune == 0x2029;
}

/* What the emitter takes for printable: nothing beyond the basic plane, no controls, no byte order mark. */
static bool is_printable(uint32_t rune)
{
	return rune == '\n' || (rune >= 0x20 && rune <= 0x7e) || (rune >= 0xa0 && rune <= 0xd7ff) ||
	       (rune >= 0xe000 && rune <= 0xfffd && rune != 0xfeff);
}

/* ---- choosing a style ---- */

struct analysis {
	bool multiline, plain, single, block; /* the last three: allowed */
};

/* Characters that have a meaning where they stand. */
static bool is_indicator(str s, size_t i, size_t width, bool after_space)
{
	bool before_space = i + width >= s.n || s.p[i + width] == ' ' || s.p[i + width] == '\t';
	char c = s.p[i];

	if (i == 0 && memchr("#,[]{}&*!|>'\"%@`", c, 16))
		return true;
	if (c == ':' || (i == 0 && (c == '?' || c == '-')))
		return before_space;
	return c == '#' && after_space;
}

static bool is_blank_or_break(uint32_t rune) { return rune == ' ' || rune == '\t' || rune == 0 || is_break(rune); }

/* s is valid UTF-8. */
static struct analysis analyze(str s)
{
	bool indicators = str_starts(s, STR("---")) || str_starts(s, STR("..."));
	bool special = false, edge = false, breaks = false, break_space = false, space_break = false;
	bool trailing_space = false, was_space = false, was_break = false, blank = true;
	uint32_t rune;

	if (!s.n)
		return (struct analysis){ .plain = true, .single = true };
	for (size_t i = 0, width; i < s.n; i += width) {
		width = str_rune(str_skip(s, i), &rune);
		bool last = i + width == s.n, space = rune == ' ', line_break = is_break(rune);
		indicators |= is_indicator(s, i, width, blank);
		special |= !is_printable(rune);
		breaks |= line_break;
		edge |= (space || line_break) && (i == 0 || last);
		trailing_space |= space && last;
		break_space |= space && was_break;
		space_break |= line_break && was_space;
		was_space = space;
		was_break = line_break;
		blank = is_blank_or_break(rune);
	}
	bool never = space_break || special;
	return (struct analysis){
		.multiline = breaks,
		.plain = !(edge || break_space || never || breaks || indicators),
		.single = !(break_space || never),
		.block = !(trailing_space || never),
	};
}

/* Numbers of base 60 are read as such by other parsers: [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)? */
static bool is_base60(str s)
{
	size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+'), groups = 0;

	if (i >= s.n || s.p[i] < '0' || s.p[i] > '9')
		return false;
	while (i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '_'))
		i++;
	for (; i < s.n && s.p[i] == ':'; groups++) {
		size_t digits = 0;
		for (i++; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
			digits++;
		if (digits < 1 || digits > 2 || (digits == 2 && s.p[i - 2] > '5'))
			return false;
	}
	if (i < s.n && s.p[i] == '.')
		for (i++; i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '_');)
			i++;
	return groups && i == s.n;
}

static enum style choose_style(str s, const struct analysis *a, bool simple_key)
{
	enum style style = STYLE_DOUBLE;

	if (str_chr(s, '\n') >= 0)
		style = STYLE_LITERAL;
	else if (yaml_resolve(s).kind == YAML_STR && !is_base60(s))
		style = STYLE_PLAIN;
	if (simple_key && a->multiline)
		style = STYLE_DOUBLE;
	if (style == STYLE_PLAIN && (!a->plain || (!s.n && simple_key)))
		style = STYLE_SINGLE;
	if (style == STYLE_SINGLE && !a->single)
		style = STYLE_DOUBLE;
	if (style == STYLE_LITERAL && (!a->block || simple_key))
		style = STYLE_DOUBLE;
	return style;
}

/* ---- writing strings ---- */

static bool space_at(str s, size_t i) { return i < s.n && s.p[i] == ' '; }

/* Plain and single quoted text differ in the quotes only. Lines longer than WIDTH are broken at single spaces. */
static void put_flowing(struct emitter *e, str s, bool quoted, bool fold)
{
	bool spaces = false, breaks = false;
	uint32_t rune;

	if (quoted)
		put_indicator(e, '\'', true, false);
	else if (!e->whitespace)
		put(e, ' ');
	for (size_t i = 0, width; i < s.n; i += width) {
		width = str_rune(str_skip(s, i), &rune);
		if (rune == ' ') {
			bool inside = !quoted || (i > 0 && i + 1 < s.n);
			if (fold && !spaces && e->column > WIDTH && inside && !space_at(s, i + 1))
				put_indent(e);
			else
				put(e, ' ');
			spaces = true;
		} else if (is_break(rune)) {
			if (!breaks && rune == '\n')
				put_break(e);
			buf_add(e->b, str_span(s.p + i, width));
			e->column = 0;
			e->indention = breaks = true;
		} else {
			if (breaks)
				put_indent(e);
			if (quoted && rune == '\'')
				put(e, '\'');
			put_text(e, str_span(s.p + i, width), 1);
			e->indention = spaces = breaks = false;
		}
	}
	if (quoted)
		put_indicator(e, '\'', false, false);
	e->whitespace = e->indention = false;
}

static void put_escape(struct emitter *e, uint32_t rune)
{
	static const struct { uint32_t rune; char letter; } letters[] = {
		{ 0, '0' }, { 7, 'a' }, { 8, 'b' }, { 9, 't' }, { 10, 'n' }, { 11, 'v' }, { 12, 'f' }, { 13, 'r' },
		{ 0x1b, 'e' },
		{ '"', '"' }, { '\\', '\\' }, { 0x85, 'N' }, { 0xa0, '_' }, { 0x2028, 'L' }, { 0x2029, 'P' },
	};
	char code[16];

	put(e, '\\');
	for (size_t i = 0; i < ARRAY_LEN(letters); i++) {
		if (letters[i].rune == rune) {
			put(e, letters[i].letter);
			return;
		}
	}
	int n = snprintf(code, sizeof(code), rune <= 0xff ? "x%02X" : rune <= 0xffff ? "u%04X" : "U%08X", (unsigned)rune);
	put_text(e, str_span(code, (size_t)n), n);
}

static void put_double(struct emitter *e, str s, bool fold)
{
	/* go-yaml looks for the mark at the beginning of the text instead of here, and then escapes everything. */
	bool spaces = false, bom = str_starts(s, STR("\xef\xbb\xbf"));
	uint32_t rune;

	put_indicator(e, '"', true, false);
	for (size_t i = 0, width; i < s.n; i += width) {
		width = str_rune(str_skip(s, i), &rune);
		if (!is_printable(rune) || bom || is_break(rune) || rune == '"' || rune == '\\') {
			put_escape(e, rune);
			spaces = false;
		} else if (rune == ' ' && fold && !spaces && e->column > WIDTH && i > 0 && i + 1 < s.n) {
			put_indent(e);
			if (space_at(s, i + 1))
				put(e, '\\');
			spaces = true;
		} else {
			put_text(e, str_span(s.p + i, width), 1);
			spaces = rune == ' ';
		}
	}
	put_indicator(e, '"', false, false);
	e->whitespace = e->indention = false;
}

/* "-" when the text does not end in a line break, "+" when it ends in several. */
static void put_chomping(struct emitter *e, str s)
{
	size_t ends = 0;

	/* The last two characters, counted backwards; line breaks have up to three bytes. */
	for (size_t at = s.n; at > 0 && ends < 2; ends++) {
		size_t from = at - 1;
		uint32_t rune;
		while (from > 0 && ((unsigned char)s.p[from] & 0xc0) == 0x80)
			from--;
		if (!str_rune(str_skip(s, from), &rune) || !is_break(rune))
			break;
		at = from;
	}
	bool only = ends == 1 && s.n <= 3 && (s.n == 1 || (unsigned char)s.p[0] >= 0x80);
	if (ends == 0)
		put_indicator(e, '-', false, false);
	else if (ends == 2 || only)
		put_indicator(e, '+', false, false);
}

static void put_literal(struct emitter *e, str s)
{
	bool breaks = true;
	uint32_t rune;

	put_indicator(e, '|', true, false);
	(void)str_rune(s, &rune);
	if (rune == ' ' || is_break(rune))
		put_indicator(e, '0' + INDENT, false, false);
	put_chomping(e, s);
	put_break(e);
	e->indention = e->whitespace = true;
	for (size_t i = 0, width; i < s.n; i += width) {
		width = str_rune(str_skip(s, i), &rune);
		if (is_break(rune)) {
			buf_add(e->b, str_span(s.p + i, width));
			e->column = 0;
			e->indention = breaks = true;
		} else {
			if (breaks)
				put_indent(e);
			put_text(e, str_span(s.p + i, width), 1);
			e->indention = breaks = false;
		}
	}
}

static void put_string(struct emitter *e, str s, const struct analysis *a, bool simple_key)
{
	int indent = e->indent;

	e->indent = indent < 0 ? INDENT : indent + INDENT; /* of further lines */
	switch (choose_style(s, a, simple_key)) {
	case STYLE_PLAIN: put_flowing(e, s, false, !simple_key); break;
	case STYLE_SINGLE: put_flowing(e, s, true, !simple_key); break;
	case STYLE_DOUBLE: put_double(e, s, !simple_key); break;
	case STYLE_LITERAL: put_literal(e, s); break;
	}
	e->indent = indent;
}

static void put_word(struct emitter *e, str s)
{
	if (!e->whitespace)
		put(e, ' ');
	put_text(e, s, (int)s.n);
	e->whitespace = e->indention = false;
}

/* Numbers take the way through JSON text, where 3.0 and 3 are the same. */
static void put_double_number(struct emitter *e, double d)
{
	char text[GO_FLOAT_MAX];
	str json = go_format_float(d, false, GO_FLOAT_JSON, text);

	if (yaml_resolve(json).kind == YAML_FLOAT)
		json = go_format_float(d, false, GO_FLOAT_G, text);
	else if (str_eq(json, STR("-0")))
		json = STR("0");
	put_word(e, json);
}

/* ---- the order of keys ---- */

/* unicode.IsLetter, roughly outside of Latin-1. */
static bool is_letter(uint32_t rune)
{
	if (rune < 0x80)
		return (rune | 0x20) >= 'a' && (rune | 0x20) <= 'z';
	if (rune < 0x100)
		return rune == 0xaa || rune == 0xb5 || rune == 0xba || (rune >= 0xc0 && rune != 0xd7 && rune != 0xf7);
	static const struct { uint32_t first, last; } others[] = {
		{ 0x2000, 0x206f }, { 0x2190, 0x2bff }, { 0x3000, 0x3004 }, { 0x3008, 0x3020 }, { 0xff00, 0xff20 }, { 0x1f000, UINT32_MAX },
	};
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (rune >= others[i].first && rune <= others[i].last)
			return false;
	return true;
}

static bool is_digit_at(str s, size_t i) { return i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; }

/* The number at s[i], continued from the digit that value stands for; *ret_end is behind it. */
static int64_t number_at(str s, size_t i, uint64_t value, size_t *ret_end)
{
	for (; is_digit_at(s, i); i++)
		value = value * 10 + (uint64_t)(s.p[i] - '0');
	*ret_end = i;
	return (int64_t)value;
}

/* Where two keys first differ: letters come last, and numbers compare as such. */
static int compare_at(str a, str b, size_t i)
{
	uint32_t x, y;
	(void)str_rune(str_skip(a, i), &x);
	(void)str_rune(str_skip(b, i), &y);
	bool x_letter = is_letter(x), y_letter = is_letter(y);

	if (x_letter && y_letter)
		return x < y ? -1 : 1;
	if (x_letter || y_letter)
		return y_letter ? -1 : 1;
	uint64_t lead = 0;
	if (x == '0' || y == '0')
		for (size_t j = i; j > 0 && is_digit_at(a, j - 1) && !lead; j--)
			lead = a.p[j - 1] != '0';
	size_t x_end, y_end;
	int64_t m = number_at(a, i, lead, &x_end), n = number_at(b, i, lead, &y_end);
	if (m != n)
		return m < n ? -1 : 1;
	if (x_end != y_end)
		return x_end < y_end ? -1 : 1;
	return x < y ? -1 : 1;
}

static int compare_keys(const void *p, const void *q)
{
	str a = atom_str(((const struct member *)p)->key), b = atom_str(((const struct member *)q)->key);
	size_t n = MIN(a.n, b.n), i = 0;

	while (i < n && a.p[i] == b.p[i])
		i++;
	if (i == n)
		return a.n < b.n ? -1 : a.n > b.n;
	while (i > 0 && ((unsigned char)a.p[i] & 0xc0) == 0x80)
		i--;
	return compare_at(a, b, i);
}

/* ---- the tree ---- */

static struct frame *push(struct emitter *e)
{
	if (e->n_frames == e->cap_frames) {
		e->cap_frames = e->cap_frames ? 2 * e->cap_frames : 32;
		e->frames = mem_resize(e->frames, e->cap_frames * sizeof(*e->frames));
	}
	return &e->frames[e->n_frames++];
}

/* A list or object with content; a list below a key stands at the key's indentation. */
static void open_block(struct emitter *e, struct val v, bool below_key)
{
	struct frame *f = push(e);
	bool list = v.type == VAL_LIST, same = list && below_key && !e->indention;

	*f = (struct frame){ .list = list, .indent = e->indent, .n = v.n };
	e->indent = e->indent < 0 ? 0 : same ? e->indent : e->indent + INDENT;
	if (list) {
		f->items = v.items;
		return;
	}
	struct val sorted = val_object(&e->scratch, v.members, v.n);
	qsort((struct member *)sorted.members, sorted.n, sizeof(struct member), compare_keys);
	f->members = sorted.members;
	f->n = sorted.n;
}

static void put_node(struct emitter *e, struct val v, bool below_key)
{
	char text[GO_INT_MAX];
	struct analysis a;

	switch ((enum val_type)v.type) {
	case VAL_NONE:
	case VAL_NULL: put_word(e, STR("null")); break;
	case VAL_BOOL: put_word(e, v.b ? STR("true") : STR("false")); break;
	case VAL_INT: put_word(e, go_format_int(v.i, text)); break;
	case VAL_DOUBLE: put_double_number(e, v.d); break;
	case VAL_STRING:
	case VAL_RAW:
		a = analyze(val_as_str(v));
		put_string(e, val_as_str(v), &a, false);
		break;
	case VAL_LIST:
	case VAL_OBJECT:
		if (v.n)
			open_block(e, v, below_key);
		else
			put_word(e, v.type == VAL_LIST ? STR("[]") : STR("{}"));
		break;
	}
}

/* A key that is long or has several lines gets a "?" before it and its value a line of its own. */
static void step_member(struct emitter *e, struct frame *f)
{
	const struct member *m = &f->members[f->i];
	str key = atom_str(m->key);
	struct analysis a = analyze(key);
	bool simple = !a.multiline && key.n <= SIMPLE_KEY_MAX;

	put_indent(e);
	if (!simple)
		put_indicator(e, '?', true, true);
	put_string(e, key, &a, simple);
	if (!simple)
		put_indent(e);
	put_indicator(e, ':', !simple, !simple);
	f->i++;
	put_node(e, m->val, true);
}

static void emit_tree(struct emitter *e, struct val v)
{
	put_node(e, v, false);
	while (e->n_frames) {
		struct frame *f = &e->frames[e->n_frames - 1];
		if (f->i == f->n) {
			e->indent = f->indent;
			e->n_frames--;
		} else if (f->list) {
			put_indent(e);
			put_indicator(e, '-', true, true);
			put_node(e, f->items[f->i++], false);
		} else {
			step_member(e, f);
		}
	}
	put_indent(e);
}

/* ---- reading JSON as YAML ---- */

/* go-yaml reads the JSON before it prints it, and does not take all that JSON may contain. */
static int check_text(str json, struct err *err)
{
	uint32_t rune;

	while (json.n) {
		size_t n = str_rune(json, &rune);
		if (!(is_printable(rune) || rune == '\t' || rune == '\r' || rune == 0x85 || rune == 0xfeff ||
		      rune >= 0x10000))
			return err_set(err, ERR_BAD_REQUEST, "yaml: control characters are not allowed");
		json = str_skip(json, n ? n : 1);
	}
	return 0;
}

int yaml_encode(struct buf *b, struct val v, const struct type *type, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(b->max < SIZE_MAX / 8 ? b->max * 4 : b->max);
	struct emitter e = { .b = b, .indent = -1, .whitespace = true, .indention = true };
	struct json_encode_options encode = { .type = type };
	struct json_decode_options decode = { .sort_keys = true };
	struct arena a = ARENA_INIT;

	int r = json_encode(&json, v, &encode, err);
	if (r == 0)
		r = check_text(buf_str(&json), err);
	if (r == 0)
		r = json_decode(&a, buf_str(&json), &decode, &v, err);
	if (r == 0) {
		emit_tree(&e, v);
		r = buf_check(b, "YAML", err);
	}
	free(e.frames);
	arena_done(&e.scratch);
	arena_done(&a);
	return r;
}
