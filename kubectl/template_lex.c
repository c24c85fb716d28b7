/* Tokens of templates. Positions are bytes in the text; lines are counted only for an error. */
#include "kubectl/template_priv.h"

static bool is_space(int c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
/* All that is not ASCII counts as a letter. */
static bool is_word(int c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c >= 0x80; }

/* The byte at an offset from here; -1 behind the end. */
static int at(const struct template_lexer *l, size_t offset)
{
	return offset < l->in.n - l->pos ? (unsigned char)l->in.p[l->pos + offset] : -1;
}

static str rest(const struct template_lexer *l) { return str_skip(l->in, l->pos); }

static struct template_token emit(struct template_lexer *l, enum template_token_type type)
{
	struct template_token t = { type, l->start, str_span(l->in.p ? l->in.p + l->start : "", l->pos - l->start) };
	l->start = l->pos;
	return t;
}

static struct template_token fail(struct template_lexer *l, str text)
{
	struct template_token t = { TOKEN_ERROR, l->start, text };
	l->in = STR_NONE;
	l->start = l->pos = 0;
	return t;
}

static struct template_token fail_char(struct template_lexer *l, const char *what, int c)
{
	bool printable = c >= ' ' && c < 0x7f;
	return fail(l, printable ? arena_printf(l->arena, "%s U+%04X '%c'", what, (unsigned)c, c) : arena_printf(l->arena, "%s U+%04X", what, (unsigned)c));
}

static void skip_space(struct template_lexer *l)
{
	while (is_space(at(l, 0)))
		l->pos++;
}

/* Whether "}}" stands here; *ret_trims: with " -" before it. */
static bool at_right_delim(const struct template_lexer *l, bool *ret_trims)
{
	*ret_trims = is_space(at(l, 0)) && at(l, 1) == '-';
	return str_starts(str_skip(rest(l), *ret_trims ? 2 : 0), STR("}}"));
}

/* Behind "/" "*". */
static bool skip_comment(struct template_lexer *l, struct template_token *ret)
{
	bool trims;
	ptrdiff_t end = str_find(str_skip(rest(l), 2), STR("*/"));
	if (end < 0) {
		*ret = fail(l, STR("unclosed comment"));
		return false;
	}
	l->pos += (size_t)end + 4;
	if (!at_right_delim(l, &trims)) {
		*ret = fail(l, STR("comment ends before closing delimiter"));
		return false;
	}
	l->pos += trims ? 4 : 2;
	if (trims)
		skip_space(l);
	l->start = l->pos;
	return true;
}

static struct template_token text_token(struct template_lexer *l)
{
	for (;;) {
		ptrdiff_t x = str_find(rest(l), STR("{{"));
		size_t end = x < 0 ? l->in.n : l->pos + (size_t)x;
		bool trims = x >= 0 && end + 3 < l->in.n && l->in.p[end + 2] == '-' && is_space(l->in.p[end + 3]);
		for (l->pos = end; trims && l->pos > l->start && is_space(l->in.p[l->pos - 1]); l->pos--)
			;
		struct template_token t = emit(l, TOKEN_TEXT);
		l->start = l->pos = end;
		if (t.text.n)
			return t;
		if (x < 0)
			return (struct template_token){ TOKEN_EOF, l->pos, STR("EOF") };
		l->pos += 2;
		if (!str_starts(str_skip(rest(l), trims ? 2 : 0), STR("/*"))) {
			t = emit(l, TOKEN_LEFT_DELIM);
			l->start = l->pos += trims ? 2 : 0;
			l->inside = true;
			l->parens = 0;
			return t;
		}
		l->start = l->pos += trims ? 2 : 0;
		if (!skip_comment(l, &t))
			return t;
	}
}

static struct template_token right_delim(struct template_lexer *l, bool trims)
{
	if (trims)
		l->start = l->pos += 2;
	l->pos += 2;
	struct template_token t = emit(l, TOKEN_RIGHT_DELIM);
	if (trims)
		skip_space(l);
	l->start = l->pos;
	l->inside = false;
	return t;
}

static struct template_token space(struct template_lexer *l)
{
	bool trims;
	skip_space(l);
	l->pos--;
	if (at_right_delim(l, &trims) && trims) {
		if (l->pos == l->start)
			return right_delim(l, true);
	} else {
		l->pos++;
	}
	return emit(l, TOKEN_SPACE);
}

static bool at_end_of_word(const struct template_lexer *l)
{
	int c = at(l, 0);
	return c < 0 || is_space(c) || (c && strchr(".,|:)(", c)) || str_starts(rest(l), STR("}}"));
}

static struct template_token word(struct template_lexer *l, enum template_token_type type)
{
	static const struct { const char *name; enum template_token_type type; } known[] = {
		{ "block", TOKEN_BLOCK }, { "break", TOKEN_BREAK }, { "continue", TOKEN_CONTINUE }, { "define", TOKEN_DEFINE }, { "else", TOKEN_ELSE },
		{ "end", TOKEN_END }, { "if", TOKEN_IF }, { "nil", TOKEN_NIL }, { "range", TOKEN_RANGE }, { "template", TOKEN_TEMPLATE },
		{ "with", TOKEN_WITH }, { "true", TOKEN_BOOL }, { "false", TOKEN_BOOL },
	};
	if (type != TOKEN_IDENTIFIER)
		l->pos++;
	if (type == TOKEN_FIELD && at_end_of_word(l))
		return emit(l, TOKEN_DOT);
	while (is_word(at(l, 0)))
		l->pos++;
	if (!at_end_of_word(l))
		return fail_char(l, "bad character", at(l, 0));
	str text = str_span(l->in.p + l->start, l->pos - l->start);
	for (size_t i = 0; i < ARRAY_LEN(known) && type == TOKEN_IDENTIFIER; i++)
		if (str_eq(text, str_of(known[i].name)))
			type = known[i].type;
	return emit(l, type);
}

static void take_any(struct template_lexer *l, const char *set, bool all)
{
	while (at(l, 0) > 0 && strchr(set, at(l, 0))) {
		l->pos++;
		if (!all)
			break;
	}
}

/* Like Go's, it takes more than are numbers: the parser tells. */
static struct template_token number(struct template_lexer *l)
{
	const char *digits = "0123456789_";
	char base = at(l, 0) == '0' || ((at(l, 0) == '+' || at(l, 0) == '-') && at(l, 1) == '0') ? 1 : 0;
	take_any(l, "+-", false);
	if (base) {
		base = (char)(at(l, 1) | 0x20);
		l->pos += base == 'x' || base == 'o' || base == 'b' ? 2 : 1;
		digits = base == 'x' ? "0123456789abcdefABCDEF_" : base == 'o' ? "01234567_" : base == 'b' ? "01_" : digits;
	}
	take_any(l, digits, true);
	if (at(l, 0) == '.') {
		l->pos++;
		take_any(l, digits, true);
	}
	if ((base == 'x' ? (at(l, 0) | 0x20) == 'p' : base != 'o' && base != 'b' && (at(l, 0) | 0x20) == 'e')) {
		l->pos++;
		take_any(l, "+-", false);
		take_any(l, "0123456789_", true);
	}
	if (!is_word(at(l, 0)) && at(l, 0) != '+' && at(l, 0) != '-')
		return emit(l, TOKEN_NUMBER);
	l->pos += at(l, 0) == 'i' && is_word(at(l, 1)) ? 2 : 1;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1024);
	buf_add_quoted(&b, str_span(l->in.p + l->start, l->pos - l->start));
	return fail(l, arena_printf(l->arena, "bad number syntax: %s", b.p ? b.p : ""));
}

static struct template_token quoted(struct template_lexer *l, char quote)
{
	bool raw = quote == '`';
	for (l->pos++; at(l, 0) != quote; l->pos++) {
		if (at(l, 0) == '\\' && !raw)
			l->pos++;
		if (at(l, 0) < 0 || (at(l, 0) == '\n' && !raw))
			return fail(l, raw ? STR("unterminated raw quoted string") : quote == '"' ? STR("unterminated quoted string") :
										    STR("unterminated character constant"));
	}
	l->pos++;
	return emit(l, raw ? TOKEN_RAW_STRING : quote == '"' ? TOKEN_STRING : TOKEN_CHAR_CONSTANT);
}

static struct template_token punctuation(struct template_lexer *l)
{
	int c = at(l, 0);
	if (c < ' ' || c == 0x7f)
		return fail_char(l, "unrecognized character in action:", c);
	l->pos++;
	switch (c) {
	case '=': return emit(l, TOKEN_ASSIGN);
	case '|': return emit(l, TOKEN_PIPE);
	case '(': l->parens++; return emit(l, TOKEN_LEFT_PAREN);
	case ')':
		if (l->parens == 0)
			return fail(l, STR("unexpected right paren"));
		l->parens--;
		return emit(l, TOKEN_RIGHT_PAREN);
	case ':':
		if (at(l, 0) != '=')
			return fail(l, STR("expected :="));
		l->pos++;
		return emit(l, TOKEN_DECLARE);
	default: return emit(l, TOKEN_CHAR);
	}
}

struct template_token template_next_token(struct template_lexer *l)
{
	bool trims;
	int c = at(l, 0);
	if (!l->inside)
		return text_token(l);
	if (at_right_delim(l, &trims))
		return l->parens ? fail(l, STR("unclosed left paren")) : right_delim(l, trims);
	if (c < 0)
		return fail(l, STR("unclosed action"));
	if (is_space(c))
		return space(l);
	if (c == '"' || c == '`' || c == '\'')
		return quoted(l, (char)c);
	if (c == '$')
		return word(l, TOKEN_VARIABLE);
	if (c == '.' && (at(l, 1) < '0' || at(l, 1) > '9'))
		return at(l, 1) < 0 ? number(l) : word(l, TOKEN_FIELD);
	if (c == '.' || c == '+' || c == '-' || (c >= '0' && c <= '9'))
		return number(l);
	return is_word(c) ? word(l, TOKEN_IDENTIFIER) : punctuation(l);
}
