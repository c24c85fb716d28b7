/* Paths into schemas, and whether a pattern is one. */
#include "base/buf.h"
#include "codec/atoms.h"
#include "machinery/validate_crd.h"

/* ---- paths ---- */

/* The next token: one of . [ ], a text in single quotes with them, or what stands before one of these. */
static str take_token(str *rest)
{
	size_t n = 0;

	if (rest->n && rest->p[0] == '\'') {
		for (n = 1; n < rest->n && !(rest->p[n] == '\'' && rest->p[n - 1] != '\\');)
			n++;
		n = MIN(n + 1, rest->n);
	} else {
		while (n < rest->n && rest->p[n] != '.' && rest->p[n] != '[' && rest->p[n] != ']')
			n++;
		n += n == 0 && rest->n;
	}
	str token = str_head(*rest, n);
	*rest = str_skip(*rest, n);
	return token;
}

static bool unescape(struct arena *a, str s, str *ret)
{
	static const str names = STR_INIT("abfnrtv'\\"), values = STR_INIT("\a\b\f\n\r\t\v'\\");
	char *out = ARENA_ARRAY(a, char, s.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		ptrdiff_t at;
		if (s.p[i] != '\\' || i + 1 == s.n) {
			out[n++] = s.p[i];
			continue;
		}
		if ((at = str_chr(names, s.p[++i])) < 0)
			return false;
		out[n++] = values.p[at];
	}
	*ret = str_span(out, n);
	return true;
}

/* One step further; false when the schema has no such member. */
static bool step(struct schema_path *p, str name, struct buf *text)
{
	struct val properties = val_get(p->schema, properties), extra = val_get(p->schema, additionalProperties);

	if (val_len(properties)) {
		p->schema = val_find(properties, name);
		buf_addf(text, "%s" STR_FMT, text->n ? "." : "", STR_ARG(name));
	} else {
		p->schema = val_is(extra, VAL_OBJECT) ? extra : VAL_EMPTY;
		buf_addf(text, "[" STR_FMT "]", STR_ARG(name));
	}
	return val_exists(p->schema) || (val_len(properties) == 0 && val_exists(extra));
}

str schema_path_find(struct arena *a, str path, bool arrays, struct val schema, struct schema_path *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(path.n + 64);
	str name, token;

	*ret = (struct schema_path){ .schema = schema };
	while (path.n) {
		token = take_token(&path);
		bool quoted = str_eq(token, STR("["));
		if (quoted && !arrays)
			return STR("array notation is not allowed");
		if (!quoted && !str_eq(token, STR(".")))
			return arena_printf(a, "expected [ or . but got: " STR_FMT, STR_ARG(token));
		if (path.n == 0)
			return STR("unexpected end of JSON path");
		name = take_token(&path);
		if (quoted) {
			if (name.n < 2 || name.p[0] != '\'' || name.p[name.n - 1] != '\'')
				return arena_printf(a, "expected single quoted string but got " STR_FMT, STR_ARG(name));
			if (!unescape(a, str_span(name.p + 1, name.n - 2), &name))
				return STR("invalid string literal: invalid escape char");
		}
		if (!step(ret, name, &text))
			return STR("does not refer to a valid field");
		ret->root = ret->root.n ? ret->root : name;
		if (!quoted)
			continue;
		token = take_token(&path);
		if (token.n == 0)
			return STR("unexpected end of JSON path");
		if (!str_eq(token, STR("]")))
			return arena_printf(a, "expected ] but got " STR_FMT, STR_ARG(token));
	}
	ret->text = arena_str(a, buf_str(&text));
	return STR_NONE;
}

/* ---- patterns ---- */

enum { REPEAT_MAX = 1000 };

struct pattern {
	struct arena *arena;
	str all, rest;
	size_t depth;         /* open groups */
	bool can_repeat;      /* the last piece is one that * can follow */
	bool no_names;        /* nothing like [:alpha:] follows: it was looked for */
	const char *repeated; /* the operator that already follows it, or NULL */
};

static str complain(struct pattern *p, const char *text, str about)
{
	return arena_printf(p->arena, "%s: `" STR_FMT "`", text, STR_ARG(about));
}

static bool is_octal(str s) { return s.n && s.p[0] >= '0' && s.p[0] <= '7'; }

/* rest begins with a backslash. */
static str take_escape(struct pattern *p)
{
	static const str letters = STR_INIT("AbBzafnrtvdDsSwW");
	str s = p->rest;
	size_t n = 2;

	if (s.n == 1)
		return complain(p, "trailing backslash at end of expression", STR(""));
	char c = s.p[1];
	if (c == 'Q') {
		ptrdiff_t stop = str_find(s, STR("\\E"));
		n = stop < 0 ? s.n : (size_t)stop + 2;
	} else if (c == 'x' || c == 'p' || c == 'P') {
		ptrdiff_t stop = s.n > 2 && s.p[2] == '{' ? str_chr(s, '}') : c == 'x' ? 3 : 2;
		if (stop < 0 || (size_t)stop >= s.n)
			return complain(p, c == 'x' ? "invalid escape sequence" : "invalid character class range", s);
		n = (size_t)stop + 1;
	} else if ((c >= '1' && c <= '9' && !(c <= '7' && is_octal(str_skip(s, 2)))) ||
		   (((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) && str_chr(letters, c) < 0)) {
		return complain(p, "invalid escape sequence", str_head(s, 2));
	}
	p->rest = str_skip(s, n);
	return STR_NONE;
}

/* rest begins with '['. */
static str take_class(struct pattern *p)
{
	str start = p->rest, wrong;

	p->rest = str_skip(start, 1);
	if (str_starts(p->rest, STR("^")))
		p->rest = str_skip(p->rest, 1);
	for (bool first = true; first || !str_starts(p->rest, STR("]")); first = false) {
		ptrdiff_t named = str_starts(p->rest, STR("[:")) && !p->no_names ? str_find(p->rest, STR(":]")) : -1;
		p->no_names |= str_starts(p->rest, STR("[:")) && named < 0;
		if (p->rest.n == 0)
			return complain(p, "missing closing ]", start);
		if (named >= 0) {
			p->rest = str_skip(p->rest, (size_t)named + 2);
		} else if (p->rest.p[0] == '\\') {
			if ((wrong = take_escape(p)).n)
				return wrong;
		} else {
			str s = p->rest;
			bool range = s.n > 2 && s.p[1] == '-' && s.p[2] != ']' && s.p[2] != '\\' && s.p[2] != '[';
			if (range && (unsigned char)s.p[0] > (unsigned char)s.p[2])
				return complain(p, "invalid character class range", str_head(s, 3));
			p->rest = str_skip(s, range ? 3 : 1);
		}
	}
	p->rest = str_skip(p->rest, 1);
	return STR_NONE;
}

/* rest begins with '('. */
static str take_group(struct pattern *p)
{
	static const str flags = STR_INIT("imsU-");
	str s = p->rest;

	p->depth++;
	p->rest = str_skip(s, 1);
	if (!str_starts(s, STR("(?")))
		return STR_NONE;
	if (str_starts(s, STR("(?P<")) || (str_starts(s, STR("(?<")) && s.n > 3 && s.p[3] != '=' && s.p[3] != '!')) {
		ptrdiff_t stop = str_chr(s, '>');
		if (stop < 0)
			return complain(p, "invalid named capture", s);
		p->rest = str_skip(s, (size_t)stop + 1);
		return STR_NONE;
	}
	for (size_t i = 2; i < s.n; i++) {
		if (s.p[i] == ':' || s.p[i] == ')') {
			p->depth -= s.p[i] == ')';
			p->rest = str_skip(s, i + 1);
			return STR_NONE;
		}
		if (str_chr(flags, s.p[i]) < 0)
			return complain(p, "invalid or unsupported Perl syntax", str_head(s, i + 1));
	}
	return complain(p, "missing argument to repetition operator", STR("?"));
}

/* Takes a number without leading zeros; -1 for one that is too large to matter. */
static bool take_number(str *rest, int64_t *ret)
{
	size_t n = 0;

	*ret = 0;
	for (; n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9'; n++)
		*ret = *ret < 0 || *ret > REPEAT_MAX ? -1 : *ret * 10 + (rest->p[n] - '0');
	bool good = n == 1 || (n > 1 && rest->p[0] != '0');
	*rest = str_skip(*rest, n);
	return good;
}

/* {n}, {n,} or {n,m}: its length, and whether the numbers make sense; 0 for anything else, which stands for itself. */
static size_t repeat_length(str s, bool *ret_valid)
{
	str rest = str_skip(s, 1);
	int64_t low, high;

	if (!take_number(&rest, &low))
		return 0;
	high = low;
	if (str_starts(rest, STR(",")) && !str_starts(rest = str_skip(rest, 1), STR("}")) && !take_number(&rest, &high))
		return 0;
	if (!str_starts(rest, STR("}")))
		return 0;
	*ret_valid = low >= 0 && low <= REPEAT_MAX && high >= low && high <= REPEAT_MAX;
	return s.n - rest.n + 1;
}

/* rest begins with an operator that repeats what is before it, n bytes long. */
static str take_repeat(struct pattern *p, size_t n)
{
	str op = str_head(p->rest, n);

	if (!p->can_repeat)
		return complain(p, "missing argument to repetition operator", op);
	p->rest = str_skip(p->rest, n);
	if (p->repeated)
		return complain(p, "invalid nested repetition operator",
				str_span(p->repeated, (size_t)(p->rest.p - p->repeated)));
	p->repeated = op.p;
	if (str_starts(p->rest, STR("?")))
		p->rest = str_skip(p->rest, 1);
	return STR_NONE;
}

static str take_piece(struct pattern *p)
{
	bool valid = true;
	char c = p->rest.p[0];
	size_t n = c == '*' || c == '+' || c == '?' ? 1 : c == '{' ? repeat_length(p->rest, &valid) : 0;

	if (!valid)
		return complain(p, "invalid repeat count", str_head(p->rest, n));
	if (n)
		return take_repeat(p, n);
	p->repeated = NULL;
	p->can_repeat = c != '|' && c != '(';
	switch (c) {
	case '\\': return take_escape(p);
	case '[': return take_class(p);
	case '(': return take_group(p);
	case ')':
		if (p->depth == 0)
			return complain(p, "unexpected )", p->all);
		p->depth--;
		break;
	default: break;
	}
	p->rest = str_skip(p->rest, 1);
	return STR_NONE;
}

str pattern_error(struct arena *a, str pattern)
{
	struct pattern p = { .arena = a, .all = pattern, .rest = pattern };
	str wrong = STR_NONE;

	while (p.rest.n && !wrong.n)
		wrong = take_piece(&p);
	if (!wrong.n && p.depth)
		wrong = complain(&p, "missing closing )", pattern);
	return wrong;
}
