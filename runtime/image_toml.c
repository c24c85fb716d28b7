#include "runtime/image_toml.h"

#include "base/buf.h"
#include "base/map.h"

struct toml {
	struct arena *arena;
	str text;
	size_t at, line, keys;
	struct map tables;      /* headers that were given, by their parts */
	struct err *err;
};

struct key {
	atom parts[TOML_DEPTH_MAX];
	size_t n;
};

static int fail(struct toml *t, const char *what) { return err_set(t->err, ERR_INVALID, "line %zu: %s", t->line, what); }

static int too_large(struct toml *t, const char *what) { return err_set(t->err, ERR_TOO_LARGE, "line %zu: too many %s", t->line, what); }

static int peek(const struct toml *t) { return t->at < t->text.n ? (unsigned char)t->text.p[t->at] : -1; }
static str rest(const struct toml *t) { return str_skip(t->text, t->at); }

static void skip_blanks(struct toml *t)
{
	while (peek(t) == ' ' || peek(t) == '\t')
		t->at++;
}

static bool at_line_end(const struct toml *t) { return peek(t) < 0 || peek(t) == '\n' || str_starts(rest(t), STR("\r\n")); }

static void skip_comment(struct toml *t)
{
	if (peek(t) == '#')
		while (!at_line_end(t))
			t->at++;
}

/* Over the end of a line; false when there is something else. */
static bool take_line_end(struct toml *t)
{
	if (!at_line_end(t))
		return false;
	if (peek(t) < 0)
		return true;
	t->at += peek(t) == '\r' ? 2 : 1;
	t->line++;
	return true;
}

/* Blanks, comments and ends of lines: what may stand between the items of an array. */
static void skip_space(struct toml *t)
{
	do {
		skip_blanks(t);
		skip_comment(t);
	} while (peek(t) >= 0 && take_line_end(t));
}

/* ---- strings ---- */

static void add_rune(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_addc(b, (char)c);
		return;
	}
	if (c < 0x800) {
		buf_addc(b, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			buf_addc(b, (char)(0xe0 | c >> 12));
		} else {
			buf_addc(b, (char)(0xf0 | c >> 18));
			buf_addc(b, (char)(0x80 | (c >> 12 & 63)));
		}
		buf_addc(b, (char)(0x80 | (c >> 6 & 63)));
	}
	buf_addc(b, (char)(0x80 | (c & 63)));
}

static int unicode(struct toml *t, size_t digits, struct buf *b)
{
	uint32_t c = 0;
	for (size_t i = 0; i < digits; i++) {
		int d = peek(t);
		if (d >= '0' && d <= '9')
			d -= '0';
		else if ((d | 32) >= 'a' && (d | 32) <= 'f')
			d = (d | 32) - 'a' + 10;
		else
			return fail(t, "an escape needs more hexadecimal digits");
		c = c << 4 | (uint32_t)d;
		t->at++;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return fail(t, "an escape is no character");
	add_rune(b, c);
	return 0;
}

static int escape(struct toml *t, bool multi_line, struct buf *b)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	int c = peek(t);
	const char *known = c > 0 ? strchr(from, c) : NULL;
	if (multi_line && (c == '\n' || c == '\r' || c == ' ' || c == '\t')) {
		skip_blanks(t);
		if (!at_line_end(t))
			return fail(t, "a backslash in a string is followed by a blank");
		while (peek(t) >= 0 && take_line_end(t))
			skip_blanks(t);
		return 0;
	}
	t->at++;
	if (known && *known)
		buf_addc(b, to[known - from]);
	else if (c == 'u' || c == 'U')
		return unicode(t, c == 'u' ? 4 : 8, b);
	else
		return fail(t, "unknown escape in a string");
	return 0;
}

/* In one of four kinds of quotes. */
static int string(struct toml *t, str *ret)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TOML_MAX);
	char quote = (char)peek(t);
	const char marks[] = { quote, quote, quote };
	str mark = str_span(marks, 3);
	bool multi_line = str_starts(rest(t), mark);
	int r;

	t->at += multi_line ? 3 : 1;
	mark = str_head(mark, multi_line ? 3 : 1);
	if (multi_line && peek(t) >= 0)
		(void)take_line_end(t);
	while (!str_starts(rest(t), mark)) {
		int c = peek(t);
		if (c < 0 || (!multi_line && at_line_end(t)))
			return fail(t, "a string does not end");
		if ((c < ' ' && c != '\t' && !(multi_line && at_line_end(t))) || c == 0x7f)
			return fail(t, "a control character in a string");
		t->line += c == '\n';
		t->at++;
		if (c != '\\' || quote == '\'')
			buf_addc(&b, (char)c);
		else if ((r = escape(t, multi_line, &b)) < 0)
			return r;
	}
	t->at += mark.n;
	for (int more = 0; multi_line && more < 2 && peek(t) == quote; more++) { /* up to two quotes may stand before the closing ones */
		buf_addc(&b, quote);
		t->at++;
	}
	if (!str_is_utf8(buf_str(&b)))
		return fail(t, "a string is not UTF-8");
	*ret = arena_str(t->arena, buf_str(&b));
	return 0;
}

/* ---- keys ---- */

static bool is_bare(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static int key_part(struct toml *t, str *ret)
{
	size_t from = t->at;
	if (peek(t) == '"' || peek(t) == '\'')
		return string(t, ret);
	while (is_bare(peek(t)))
		t->at++;
	*ret = str_span(t->text.p + from, t->at - from);
	return ret->n ? 0 : fail(t, "a key is missing");
}

static int key(struct toml *t, struct key *ret)
{
	str part;
	int r;
	ret->n = 0;
	for (;;) {
		skip_blanks(t);
		if (ret->n == TOML_DEPTH_MAX)
			return too_large(t, "levels");
		if ((r = key_part(t, &part)) < 0)
			return r;
		ret->parts[ret->n++] = atom_make(t->arena, part);
		skip_blanks(t);
		if (peek(t) != '.')
			return 0;
		t->at++;
	}
}

/* ---- values ---- */

static int value(struct toml *t, unsigned depth, struct val *ret);

static int count(struct toml *t) { return ++t->keys > TOML_KEYS_MAX ? too_large(t, "keys and items") : 0; }

/* The object with v at the path; what is on the way must be tables. */
static int put(struct toml *t, struct val *object, const atom *path, size_t n, struct val v)
{
	for (size_t i = 0; i < n; i++) {
		struct val there = val_path(*object, path, i + 1);
		if (i + 1 < n ? val_exists(there) && !val_is(there, VAL_OBJECT) : val_exists(there))
			return fail(t, "a key is given twice");
	}
	*object = val_put_path(t->arena, *object, path, n, v);
	return 0;
}

static int pair(struct toml *t, unsigned depth, const struct key *prefix, struct val *object)
{
	struct key k;
	struct val v;
	int r = key(t, &k);
	if (r < 0)
		return r;
	if (peek(t) != '=')
		return fail(t, "'=' is missing after a key");
	t->at++;
	skip_blanks(t);
	if ((r = count(t)) < 0 || (r = value(t, depth, &v)) < 0)
		return r;
	if (prefix->n + k.n > TOML_DEPTH_MAX)
		return too_large(t, "levels");
	atom path[TOML_DEPTH_MAX];
	memcpy(path, prefix->parts, prefix->n * sizeof(*path));
	memcpy(path + prefix->n, k.parts, k.n * sizeof(*path));
	return put(t, object, path, prefix->n + k.n, v);
}

static int array(struct toml *t, unsigned depth, struct val *ret)
{
	struct val_builder b = val_builder(t->arena);
	struct val v;
	int r;
	t->at++;
	for (;;) {
		skip_space(t);
		if (peek(t) == ']')
			break;
		if ((r = count(t)) < 0 || (r = value(t, depth + 1, &v)) < 0)
			return r;
		val_add_item(&b, v);
		skip_space(t);
		if (peek(t) == ',')
			t->at++;
		else if (peek(t) != ']')
			return fail(t, "an array needs ',' or ']'");
	}
	t->at++;
	*ret = val_end_list(&b);
	return 0;
}

static int inline_table(struct toml *t, unsigned depth, struct val *ret)
{
	static const struct key none = { .n = 0 };
	struct val v = VAL_EMPTY_OBJECT;
	int r;
	t->at++;
	skip_blanks(t);
	while (peek(t) != '}') {
		if ((r = pair(t, depth + 1, &none, &v)) < 0)
			return r;
		skip_blanks(t);
		if (peek(t) == ',')
			t->at++;
		else if (peek(t) != '}')
			return fail(t, "an inline table needs ',' or '}'");
		skip_blanks(t);
	}
	t->at++;
	*ret = v;
	return 0;
}

static int word(struct toml *t, struct val *ret)
{
	size_t from = t->at;
	int64_t i;
	while (is_bare(peek(t)) || peek(t) == '+' || peek(t) == '.' || peek(t) == ':')
		t->at++;
	str s = str_span(t->text.p + from, t->at - from);
	if (str_eq(s, STR("true")) || str_eq(s, STR("false")))
		*ret = val_of_bool(s.n == 4);
	else if (str_to_i64(s.n && s.p[0] == '+' ? str_skip(s, 1) : s, &i))
		*ret = val_of_int(i);
	else
		return fail(t, s.n ? "a value is neither a string, an integer, a boolean, an array nor a table" : "a value is missing");
	return 0;
}

static int value(struct toml *t, unsigned depth, struct val *ret)
{
	str s;
	if (depth > TOML_DEPTH_MAX)
		return too_large(t, "levels");
	switch (peek(t)) {
	case '"':
	case '\'': {
		int r = string(t, &s);
		*ret = val_of_str(s);
		return r;
	}
	case '[': return array(t, depth, ret);
	case '{': return inline_table(t, depth, ret);
	default: return word(t, ret);
	}
}

/* ---- the text ---- */

/* "[host.\"https://x\"]": it may be given once, and be the parent of one that came before. */
static int header(struct toml *t, struct key *table, struct val *top)
{
	CLEANUP(buf_done) struct buf name = BUF_INIT(TOML_MAX * 2);
	t->at++;
	if (peek(t) == '[')
		return fail(t, "arrays of tables are not supported");
	int r = key(t, table);
	if (r < 0 || (r = count(t)) < 0)
		return r;
	if (peek(t) != ']')
		return fail(t, "']' is missing after the name of a table");
	t->at++;
	for (size_t i = 0; i < table->n; i++)
		buf_add_quoted(&name, atom_str(table->parts[i]));
	str text = arena_str(t->arena, buf_str(&name));
	if (map_put(&t->tables, text, (void *)text.p))
		return fail(t, "a table is given twice");
	if (val_is(val_path(*top, table->parts, table->n), VAL_OBJECT))
		return 0;
	return put(t, top, table->parts, table->n, VAL_EMPTY_OBJECT);
}

static int document(struct toml *t, struct val *ret)
{
	struct key table = { .n = 0 };
	struct val top = VAL_EMPTY_OBJECT;
	int r;
	for (;;) {
		skip_space(t);
		if (peek(t) < 0)
			break;
		r = peek(t) == '[' ? header(t, &table, &top) : pair(t, 0, &table, &top);
		if (r < 0)
			return r;
		skip_blanks(t);
		skip_comment(t);
		if (!at_line_end(t))
			return fail(t, "something follows on the same line");
	}
	*ret = top;
	return 0;
}

int toml_decode(struct arena *a, str text, struct val *ret, struct err *err)
{
	struct toml t = { .arena = a, .text = text, .line = 1, .tables = MAP_INIT, .err = err };
	if (text.n > TOML_MAX)
		return err_set(err, ERR_TOO_LARGE, "more than %d bytes", TOML_MAX);
	map_init(&t.tables);
	int r = document(&t, ret);
	map_done(&t.tables);
	return r;
}
