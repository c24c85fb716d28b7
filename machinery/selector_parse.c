#include "machinery/selector.h"

#include <stdlib.h>

/*
 * The grammar of labels.Parse: a scanner that looks one token ahead, and a function per rule. "in" and "notin" are operators
 * only where one can stand, and words everywhere else: "in in (in)" selects the label "in".
 */

enum token { END, WORD, IN, NOT_IN, COMMA, OPEN, CLOSE, NOT, EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER, LESS };

struct parser {
	str text;
	size_t at;
	enum token token;     /* the next one */
	str literal;
	struct field_errors errors;
	struct err *err;
};

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool is_symbol(char c)
{
	switch (c) {
	case '=':
	case '!':
	case '(':
	case ')':
	case ',':
	case '>':
	case '<': return true;
	default: return false;
	}
}

/* The byte at a position; Kubernetes' scanner takes NUL for the end of the text, and so do we. */
static char byte_at(const struct parser *p, size_t at) { return at < p->text.n ? p->text.p[at] : '\0'; }

static enum token symbol_at(const struct parser *p, size_t *ret_length)
{
	char first = byte_at(p, p->at), second = byte_at(p, p->at + 1);
	*ret_length = 1;
	switch (first) {
	case ',': return COMMA;
	case '(': return OPEN;
	case ')': return CLOSE;
	case '>': return GREATER;
	case '<': return LESS;
	}
	if (second != '=')
		return first == '=' ? EQUALS : NOT;
	*ret_length = 2;
	return first == '=' ? DOUBLE_EQUALS : NOT_EQUALS;
}

static void advance(struct parser *p)
{
	size_t length = 0;

	while (is_space(byte_at(p, p->at)))
		p->at++;
	char c = byte_at(p, p->at);
	if (c == '\0') {
		p->token = END;
	} else if (is_symbol(c)) {
		p->token = symbol_at(p, &length);
	} else {
		while ((c = byte_at(p, p->at + length)) != '\0' && !is_space(c) && !is_symbol(c))
			length++;
		str word = str_span(p->text.p + p->at, length);
		p->token = str_eq(word, STR("in")) ? IN : str_eq(word, STR("notin")) ? NOT_IN : WORD;
	}
	p->literal = length ? str_span(p->text.p + p->at, length) : STR_NONE;
	p->at += length;
	/* A NUL right behind a token is skipped, only a lone one is an end. */
	if (length && p->at < p->text.n && p->text.p[p->at] == '\0')
		p->at++;
}

/* The next token where words are expected. */
static enum token value_token(const struct parser *p) { return p->token == IN || p->token == NOT_IN ? WORD : p->token; }

static int unexpected(struct parser *p, const char *expected)
{
	return err_set(p->err, ERR_BAD_REQUEST, "found '" STR_FMT "'%s", STR_ARG(p->literal), expected);
}

struct words {
	str *all;
	size_t n, cap;
};

static void add_word(struct parser *p, struct words *w, str word)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 4;
		str *more = ARENA_ARRAY(p->errors.arena, str, cap);
		if (w->n)
			memcpy(more, w->all, w->n * sizeof(*more));
		w->all = more;
		w->cap = cap;
	}
	w->all[w->n++] = word;
}

static int compare_words(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* Sorted, each once. */
static void make_set(struct words *w)
{
	size_t kept = 0;
	qsort(w->all, w->n, sizeof(*w->all), compare_words);
	for (size_t i = 0; i < w->n; i++)
		if (kept == 0 || !str_eq(w->all[kept - 1], w->all[i]))
			w->all[kept++] = w->all[i];
	w->n = kept;
}

/* What stands between the parentheses: words and commas, where a missing word is the empty one. */
static int parse_words(struct parser *p, struct words *w)
{
	for (;;) {
		if (value_token(p) == WORD) {
			add_word(p, w, p->literal);
			advance(p);
			if (p->token == CLOSE)
				return 0;
			if (p->token != COMMA)
				return unexpected(p, ", expected: ',' or ')'");
		} else if (p->token == COMMA) {
			if (w->n == 0)
				add_word(p, w, STR_NONE);
			advance(p);
			if (p->token == CLOSE || p->token == COMMA)
				add_word(p, w, STR_NONE);
			if (p->token == CLOSE)
				return 0;
		} else {
			return unexpected(p, ", expected: ',', or identifier");
		}
	}
}

static int parse_set(struct parser *p, struct words *w)
{
	if (p->token != OPEN)
		return unexpected(p, " expected: '('");
	advance(p);
	if (p->token == CLOSE) {
		add_word(p, w, STR_NONE);
	} else if (value_token(p) == WORD || p->token == COMMA) {
		int r = parse_words(p, w);
		if (r < 0)
			return r;
	} else {
		return unexpected(p, ", expected: ',', ')' or identifier");
	}
	advance(p);
	make_set(w);
	return 0;
}

static int parse_value(struct parser *p, struct words *w)
{
	if (p->token == END || p->token == COMMA) {
		add_word(p, w, STR_NONE);
		return 0;
	}
	if (value_token(p) != WORD)
		return unexpected(p, ", expected: identifier");
	add_word(p, w, p->literal);
	advance(p);
	return 0;
}

static int parse_operator(struct parser *p, enum selector_op *ret)
{
	switch (p->token) {
	case IN: *ret = SELECTOR_IN; break;
	case NOT_IN: *ret = SELECTOR_NOT_IN; break;
	case EQUALS: *ret = SELECTOR_EQUALS; break;
	case DOUBLE_EQUALS: *ret = SELECTOR_DOUBLE_EQUALS; break;
	case NOT_EQUALS: *ret = SELECTOR_NOT_EQUALS; break;
	case GREATER: *ret = SELECTOR_GREATER; break;
	case LESS: *ret = SELECTOR_LESS; break;
	default: return unexpected(p, ", expected: in, notin, =, ==, !=, gt, lt");
	}
	advance(p);
	return 0;
}

static int parse_requirement(struct parser *p, struct requirement *ret)
{
	enum selector_op op = SELECTOR_EXISTS;
	struct words values = { 0 };
	int r;

	if (p->token == NOT) {
		op = SELECTOR_NOT_EXISTS;
		advance(p);
	}
	if (value_token(p) != WORD)
		return unexpected(p, ", expected: identifier");
	str key = p->literal;
	if (!selector_check_key(&p->errors, NULL, key))
		return err_set(p->err, ERR_BAD_REQUEST, STR_FMT, STR_ARG(field_errors_plain(&p->errors)));
	advance(p);
	if (op == SELECTOR_EXISTS && p->token != END && p->token != COMMA) {
		if ((r = parse_operator(p, &op)) < 0)
			return r;
		r = op == SELECTOR_IN || op == SELECTOR_NOT_IN ? parse_set(p, &values) : parse_value(p, &values);
		if (r < 0)
			return r;
	}
	if (!selector_requirement(&p->errors, NULL, key, op, values.all, values.n, ret))
		return err_set(p->err, ERR_BAD_REQUEST, STR_FMT, STR_ARG(field_errors_plain(&p->errors)));
	return 0;
}

static int parse_all(struct parser *p, struct selector *ret)
{
	struct arena *a = p->errors.arena;
	struct requirement *all = NULL;
	size_t n = 0, cap = 0;
	int r;

	while (p->token != END) {
		if (value_token(p) != WORD && p->token != NOT)
			return unexpected(p, ", expected: !, identifier, or 'end of string'");
		if (n == cap) {
			struct requirement *more = ARENA_ARRAY(a, struct requirement, cap ? cap * 2 : 4);
			if (n)
				memcpy(more, all, n * sizeof(*more));
			all = more;
			cap = cap ? cap * 2 : 4;
		}
		if ((r = parse_requirement(p, &all[n])) < 0)
			return err_wrap(p->err, r, "unable to parse requirement");
		n++;
		if (p->token == END)
			break;
		if (p->token != COMMA)
			return unexpected(p, ", expected: ',' or 'end of string'");
		advance(p);
		if (value_token(p) != WORD && p->token != NOT)
			return unexpected(p, ", expected: identifier after ','");
	}
	*ret = selector_of_requirements(a, all, n);
	return 0;
}

int selector_parse(struct arena *a, str text, struct selector *ret, struct err *err)
{
	struct parser p = { .text = text, .err = err };
	field_errors_init(&p.errors, a);
	advance(&p);
	return parse_all(&p, ret);
}
