/*
 * The lexer. As the grammar of cel-go has it: the longest token wins, and of two equally long ones a keyword over an identifier. What
 * begins no token is reported with as many characters as a token could have gone on for, as ANTLR does, and skipped.
 */
#include "codec/go.h"
#include "machinery/cel_priv.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
static char at(str s, size_t i) { return i < s.n ? s.p[i] : '\0'; }

static size_t digits(str s, size_t i)
{
	while (is_digit(at(s, i)))
		i++;
	return i;
}

/* The end of an exponent at i, or i. */
static size_t exponent(str s, size_t i)
{
	if (at(s, i) != 'e' && at(s, i) != 'E')
		return i;
	size_t sign = i + 1 + (at(s, i + 1) == '+' || at(s, i + 1) == '-');
	size_t end = digits(s, sign);
	return end > sign ? end : i;
}

static size_t lex_number(str s, size_t i, uint8_t *ret_kind)
{
	size_t end;

	*ret_kind = CEL_T_INT;
	if (at(s, i) == '0' && at(s, i + 1) == 'x' && is_hex(at(s, i + 2))) {
		for (end = i + 2; is_hex(at(s, end)); end++)
			;
	} else {
		end = digits(s, i);
		size_t fraction = at(s, end) == '.' ? digits(s, end + 1) : 0;
		size_t whole = end;
		if (fraction > end + 1)
			end = exponent(s, fraction);
		else if (end > i)
			end = exponent(s, end);
		if (end > whole) {
			*ret_kind = CEL_T_FLOAT;
			return end;
		}
	}
	if (at(s, end) == 'u' || at(s, end) == 'U') {
		*ret_kind = CEL_T_UINT;
		end++;
	}
	return end;
}

/* The length of an escape sequence after its backslash; 0 when it is none. */
static size_t escape_len(str s, size_t i)
{
	char c = at(s, i);
	size_t n = 0;

	if (c && strchr("abfnrtv\"'\\?`", c))
		return 1;
	if (c >= '0' && c <= '3')
		return at(s, i + 1) >= '0' && at(s, i + 1) <= '7' && at(s, i + 2) >= '0' && at(s, i + 2) <= '7' ? 3 : 0;
	if (c == 'x' || c == 'X')
		n = 2;
	else if (c == 'u')
		n = 4;
	else if (c == 'U')
		n = 8;
	for (size_t k = 1; k <= n; k++)
		if (!is_hex(at(s, i + k)))
			return 0;
	return n ? n + 1 : 0;
}

/* The end of the string whose quotes begin at i; 0 when it has none, and then how far one got in *ret_far. */
static size_t lex_string(str s, size_t i, bool raw, size_t *ret_far)
{
	char q = at(s, i);
	bool triple = at(s, i + 1) == q && at(s, i + 2) == q;
	size_t k = i + (triple ? 3 : 1);

	for (; k < s.n; k++) {
		char c = s.p[k];
		if (c == q && (!triple || (at(s, k + 1) == q && at(s, k + 2) == q)))
			return k + (triple ? 3 : 1);
		if (!triple && (c == '\n' || c == '\r'))
			break;
		if (c == '\\' && !raw) {
			size_t n = escape_len(s, k + 1);
			if (!n) {
				k++;
				break;
			}
			k += n;
		}
	}
	*ret_far = MIN(k, s.n);
	/* """ that does not end is still an empty string and a quote. */
	return triple ? i + 2 : 0;
}

/* A string with its prefix (r, b, br ...); 0 when there is none at i. */
static size_t lex_quoted(str s, size_t i, uint8_t *ret_kind, size_t *ret_far)
{
	bool raw = false;

	*ret_kind = CEL_T_STRING;
	if (at(s, i) == 'b' || at(s, i) == 'B') {
		*ret_kind = CEL_T_BYTES;
		i++;
	}
	if (at(s, i) == 'r' || at(s, i) == 'R') {
		raw = true;
		i++;
	}
	return at(s, i) == '"' || at(s, i) == '\'' ? lex_string(s, i, raw, ret_far) : 0;
}

static size_t lex_word(str s, size_t i, uint8_t *ret_kind)
{
	static const struct {
		str word;
		uint8_t kind;
	} words[] = { { STR_INIT("in"), CEL_T_IN }, { STR_INIT("true"), CEL_T_TRUE }, { STR_INIT("false"), CEL_T_FALSE },
		      { STR_INIT("null"), CEL_T_NUL } };
	size_t end = i;

	while (is_letter(at(s, end)) || is_digit(at(s, end)))
		end++;
	*ret_kind = CEL_T_IDENT;
	for (size_t k = 0; k < ARRAY_LEN(words); k++)
		if (str_eq(words[k].word, str_span(s.p + i, end - i)))
			*ret_kind = words[k].kind;
	return end;
}

/* `a.b-c/d` */
static size_t lex_escaped_ident(str s, size_t i)
{
	size_t end = i + 1;

	while (end < s.n && (is_letter(s.p[end]) || is_digit(s.p[end]) || strchr(".-/ ", s.p[end])))
		end++;
	return end > i + 1 && at(s, end) == '`' ? end + 1 : 0;
}

static size_t lex_sign(str s, size_t i, uint8_t *ret_kind)
{
	static const struct {
		char text[3];
		uint8_t kind;
	} signs[] = {
		{ "==", CEL_T_EQ }, { "!=", CEL_T_NE }, { "<=", CEL_T_LE }, { ">=", CEL_T_GE }, { "&&", CEL_T_AND }, { "||", CEL_T_OR },
		{ "<", CEL_T_LT }, { ">", CEL_T_GT }, { "[", CEL_T_LBRACKET }, { "]", CEL_T_RBRACKET }, { "{", CEL_T_LBRACE },
		{ "}", CEL_T_RBRACE }, { "(", CEL_T_LPAREN }, { ")", CEL_T_RPAREN }, { ".", CEL_T_DOT }, { ",", CEL_T_COMMA },
		{ "-", CEL_T_MINUS }, { "!", CEL_T_NOT }, { "?", CEL_T_QUESTION }, { ":", CEL_T_COLON }, { "+", CEL_T_PLUS },
		{ "*", CEL_T_STAR }, { "/", CEL_T_SLASH }, { "%", CEL_T_PERCENT },
	};
	for (size_t k = 0; k < ARRAY_LEN(signs); k++) {
		str sign = str_of(signs[k].text);
		if (str_starts(str_skip(s, i), sign)) {
			*ret_kind = signs[k].kind;
			return i + sign.n;
		}
	}
	return 0;
}

static size_t skip_space(str s, size_t i)
{
	for (;;) {
		while (i < s.n && strchr("\t \r\n\f", s.p[i]) && s.p[i])
			i++;
		if (at(s, i) != '/' || at(s, i + 1) != '/')
			return i;
		while (i < s.n && s.p[i] != '\n')
			i++;
	}
}

/* One token at i, which is no space: its end, or 0 with how far one got. */
static size_t lex_token(str s, size_t i, uint8_t *ret_kind, size_t *ret_far)
{
	char c = s.p[i];
	size_t end = lex_quoted(s, i, ret_kind, ret_far);

	if (end)
		return end;
	if (is_letter(c)) {
		*ret_far = 0;
		return lex_word(s, i, ret_kind);
	}
	if (is_digit(c) || (c == '.' && is_digit(at(s, i + 1))))
		return lex_number(s, i, ret_kind);
	if (c == '`') {
		*ret_kind = CEL_T_ESC_IDENT;
		return lex_escaped_ident(s, i);
	}
	return lex_sign(s, i, ret_kind);
}

const struct cel_token *cel_lex(struct cel_issues *e, struct arena *a)
{
	str s = e->source;
	size_t cap = 64, n = 0;
	struct cel_token *list = ARENA_ARRAY(a, struct cel_token, cap);

	for (size_t i = skip_space(s, 0);; i = skip_space(s, i)) {
		if (n + 1 >= cap) {
			struct cel_token *more = ARENA_ARRAY(a, struct cel_token, cap * 2);
			memcpy(more, list, n * sizeof(*list));
			list = more;
			cap *= 2;
		}
		if (i >= s.n)
			break;
		uint8_t kind = CEL_T_EOF;
		size_t far = 0, end = lex_token(s, i, &kind, &far);
		if (end) {
			list[n++] = (struct cel_token){ kind, (uint32_t)i, (uint32_t)(end - i) };
			i = end;
			continue;
		}
		/* A single & or | takes the next character with it: that is where the mistake was seen. */
		size_t stop = MAX(i + 1, far);
		if ((s.p[i] == '&' || s.p[i] == '|' || s.p[i] == '=' || far) && stop < s.n)
			stop += MAX(str_rune(str_skip(s, stop), NULL), (size_t)1);
		else if (!far)
			stop = i + MAX(str_rune(str_skip(s, i), NULL), (size_t)1);
		str bad = str_span(s.p + i, stop - i);
		cel_issue(e, (uint32_t)i, "Syntax error: token recognition error at: '" STR_FMT "'", STR_ARG(bad));
		i = stop;
	}
	list[n] = (struct cel_token){ CEL_T_EOF, (uint32_t)s.n, 0 };
	return list;
}

/* ---- literals ---- */

static uint32_t hex_value(str digits_)
{
	uint32_t v = 0;

	for (size_t i = 0; i < digits_.n; i++) {
		char c = digits_.p[i];
		v = v * 16 + (uint32_t)(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return v;
}

/* One escape (without its backslash, and complete: the lexer has seen to that); returns the bytes written, 0 when it is not allowed. */
static size_t put_escape(char *out, str esc, bool bytes)
{
	static const char from[] = "abfnrtv\"'\\?`", to[] = "\a\b\f\n\r\t\v\"'\\?`";
	const char *plain = esc.p[0] ? strchr(from, esc.p[0]) : NULL;
	uint32_t rune;

	if (plain) {
		*out = to[plain - from];
		return 1;
	}
	if (is_digit(esc.p[0]))
		rune = (uint32_t)(esc.p[0] - '0') * 64 + (uint32_t)(esc.p[1] - '0') * 8 + (uint32_t)(esc.p[2] - '0');
	else
		rune = hex_value(str_skip(esc, 1));
	if (bytes) {
		if (esc.p[0] == 'u' || esc.p[0] == 'U')
			return 0;
		*out = (char)rune;
		return 1;
	}
	if (rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000))
		return 0;
	return go_put_rune(out, rune);
}

bool cel_unquote(struct cel_issues *e, struct arena *a, const struct cel_token *t, str *ret)
{
	str s = str_span(e->source.p + t->at, t->n);
	bool bytes = t->kind == CEL_T_BYTES, raw = false;

	s = str_skip(s, bytes);
	if (s.p[0] == 'r' || s.p[0] == 'R') {
		raw = true;
		s = str_skip(s, 1);
	}
	size_t q = s.n >= 6 && s.p[1] == s.p[0] && s.p[2] == s.p[0] ? 3 : 1;
	s = str_head(str_skip(s, q), s.n - 2 * q);
	/* An escape is never shorter than what it stands for; a line end of two characters is one. */
	char *out = arena_alloc(a, s.n + 1, 1);
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\r') {
			i += at(s, i + 1) == '\n';
			out[n++] = '\n';
		} else if (s.p[i] != '\\' || raw) {
			out[n++] = s.p[i];
		} else {
			size_t len = escape_len(s, i + 1);
			size_t wrote = put_escape(out + n, str_span(s.p + i + 1, len), bytes);
			if (!wrote) {
				cel_issue(e, t->at, bytes ? "unable to unescape string" : "invalid unicode code point");
				return false;
			}
			n += wrote;
			i += len;
		}
	}
	*ret = str_span(out, n);
	return true;
}
