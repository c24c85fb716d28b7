#include "machinery/jsonpath_priv.h"

#include <math.h>
#include <stdlib.h>

#include "codec/go.h"

/*
 * The grammar is what client-go's parser accepts, which was grown rather than designed: an action is a sequence of steps that need
 * nothing between them, and what stands in brackets is cut out first (up to the next ']') and then parsed as an action of its own.
 * This parser keeps that two-level way of working, because error texts and odd cases follow from it.
 */

struct parser {
	struct arena *arena;
	str in;
	size_t at;
	unsigned depth;  /* of actions inside of actions */
	struct err *err;
};

static int parse_template(struct parser *p, struct nodes *root);

static struct node *add_node(struct parser *p, struct nodes *list, enum node_type type)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 4;
		struct node *more = ARENA_ARRAY(p->arena, struct node, cap);
		if (list->n)
			memcpy(more, list->all, list->n * sizeof(*more));
		list->all = more;
		list->cap = cap;
	}
	struct node *node = &list->all[list->n++];
	*node = (struct node){ .type = type };
	return node;
}

static void add_field(struct parser *p, struct nodes *list, str name)
{
	struct node *node = add_node(p, list, NODE_FIELD);
	node->text = name;
	node->key = atom_make(p->arena, name);
}

static int fail(struct parser *p, const char *text) { return err_set(p->err, ERR_BAD_REQUEST, "%s", text); }

/* ---- characters ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
/* Beyond ASCII every character counts as a letter. */
static bool is_alphanumeric(char c)
{
	return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

/* What ends a field or an identifier. */
static bool is_terminator(char c)
{
	switch (c) {
	case ' ':
	case '\t':
	case '\r':
	case '\n':
	case '.':
	case ',':
	case '[':
	case ']':
	case '$':
	case '@':
	case '{':
	case '}': return true;
	default: return false;
	}
}

static bool at_end(const struct parser *p) { return p->at >= p->in.n; }
static str rest(const struct parser *p) { return str_skip(p->in, p->at); }

/* An action inside of this one: text with what goes before and after it. *ret gets the nodes of the first action in that. */
static int parse_inner(struct parser *p, str before, str text, str after, struct nodes *ret)
{
	struct parser inner = { .arena = p->arena, .depth = p->depth + 1, .err = p->err };
	struct nodes root = { 0 };

	if (inner.depth > JSONPATH_MAX_DEPTH)
		return err_set(p->err, ERR_BAD_REQUEST, "expressions are nested more than %d levels deep", JSONPATH_MAX_DEPTH);
	inner.in = arena_join(p->arena, arena_join(p->arena, before, text), after);
	int r = parse_template(&inner, &root);
	if (r < 0)
		return r;
	*ret = root.all[0].nodes;
	return 0;
}

/* ---- [...] ---- */

/* One number of a slice: optional '-', digits. Returns how much of s it is. */
static size_t scan_bound(str s)
{
	size_t n = s.n && s.p[0] == '-';
	while (n < s.n && is_digit(s.p[n]))
		n++;
	return n;
}

/* Cuts start:end:step into its numbers, and says which were given, be it as nothing behind a colon. False if it is no such thing. */
static bool split_slice(str text, str numbers[3], bool given[3])
{
	for (size_t i = 0; i < 3; i++) {
		given[i] = i == 0 || (text.n && text.p[0] == ':');
		if (i && given[i])
			text = str_skip(text, 1);
		numbers[i] = given[i] ? str_head(text, scan_bound(text)) : STR_NONE;
		text = str_skip(text, numbers[i].n);
	}
	return text.n == 0;
}

static int parse_slice(struct parser *p, str text, struct nodes *cur)
{
	struct slice_bound bounds[3] = { 0 };
	str numbers[3];
	bool given[3];

	if (!split_slice(text, numbers, given))
		return err_set(p->err, ERR_BAD_REQUEST, "invalid array index " STR_FMT, STR_ARG(text));
	for (size_t i = 0; i < 3; i++) {
		bounds[i].known = numbers[i].n > 0;
		if (bounds[i].known && !str_to_i64(numbers[i], &bounds[i].value))
			return err_set(p->err, ERR_BAD_REQUEST, "array index " STR_FMT " is not a number", STR_ARG(numbers[i]));
	}
	if (!given[1])
		bounds[1] = (struct slice_bound){ (int64_t)((uint64_t)bounds[0].value + 1), true, true };
	memcpy(add_node(p, cur, NODE_ARRAY)->slice, bounds, sizeof(bounds));
	return 0;
}

static int parse_union(struct parser *p, str text, struct nodes *cur)
{
	struct nodes lists = { 0 };
	for (bool more = true; more;) {
		str part;
		more = str_cut(text, ',', &part, &text);
		while (part.n && part.p[0] == ' ')
			part = str_skip(part, 1);
		while (part.n && part.p[part.n - 1] == ' ')
			part.n--;
		struct node *list = add_node(p, &lists, NODE_LIST);
		int r = parse_inner(p, STR("{["), part, STR("]}"), &list->nodes);
		if (r < 0)
			return r;
	}
	add_node(p, cur, NODE_UNION)->nodes = lists;
	return 0;
}

/* 'name' without further quotes; what is quoted is read as after a dot, so dots in it need a backslash. */
static bool is_quoted_key(str s)
{
	return s.n >= 2 && s.p[0] == '\'' && s.p[s.n - 1] == '\'' && str_chr(str_span(s.p + 1, s.n - 2), '\'') < 0;
}

static int parse_array(struct parser *p, struct nodes *cur)
{
	size_t start = ++p->at;
	while (!at_end(p) && p->in.p[p->at] != ']' && p->in.p[p->at] != '\n')
		p->at++;
	if (at_end(p) || p->in.p[p->at] != ']')
		return fail(p, "unterminated array");
	str text = str_span(p->in.p + start, p->at - start);
	p->at++;

	if (str_eq(text, STR("*")))
		text = STR(":");
	if (str_chr(text, ',') >= 0)
		return parse_union(p, text, cur);
	if (!is_quoted_key(text))
		return parse_slice(p, text, cur);
	struct nodes inner;
	int r = parse_inner(p, STR("{."), str_span(text.p + 1, text.n - 2), STR("}"), &inner);
	for (size_t i = 0; r >= 0 && i < inner.n; i++)
		*add_node(p, cur, inner.all[i].type) = inner.all[i];
	return r;
}

/* ---- [?(...)] ---- */

static bool is_operator(char c) { return c == '!' || c == '<' || c == '>' || c == '='; }

/* Cuts "left op right"; false if text is not of that form: then the filter asks whether it exists. */
static bool split_comparison(str text, str *ret_left, str *ret_operator, str *ret_right)
{
	size_t left = 0, end;
	while (left < text.n && !is_operator(text.p[left]))
		left++;
	end = left;
	while (end < text.n && is_operator(text.p[end]))
		end++;
	if (end == text.n && end > left)
		end--; /* something must remain on the right side, be it a part of the operator */
	if (left == 0 || end == left)
		return false;
	*ret_left = str_head(text, left);
	*ret_operator = str_span(text.p + left, end - left);
	*ret_right = str_skip(text, end);
	return true;
}

/* Stands behind "[?("; finds the ')' that is not in the first quoted string. */
static int scan_filter(struct parser *p, str *ret)
{
	size_t start = p->at;
	bool opened = false, closed = false;
	char quote = '\0';

	for (; !at_end(p) && p->in.p[p->at] != '\n'; p->at++) {
		char c = p->in.p[p->at];
		if ((c == '"' || c == '\'') && !opened) {
			opened = true;
			quote = c;
		} else if (c == quote && opened && p->in.p[p->at - 1] != '\\') {
			closed = true;
		} else if (c == ')' && opened == closed) {
			*ret = str_span(p->in.p + start, p->at - start);
			p->at++;
			return 0;
		}
	}
	return fail(p, "unterminated filter");
}

static int parse_filter(struct parser *p, struct nodes *cur)
{
	str text, left, op, right;
	struct nodes left_nodes = { 0 }, right_nodes = { 0 };

	p->at += strlen("[?(");
	int r = scan_filter(p, &text);
	if (r < 0)
		return r;
	if (at_end(p) || p->in.p[p->at] != ']')
		return fail(p, "unclosed array expect ]");
	p->at++;
	if (split_comparison(text, &left, &op, &right)) {
		if ((r = parse_inner(p, STR("{"), left, STR("}"), &left_nodes)) < 0 ||
		    (r = parse_inner(p, STR("{"), right, STR("}"), &right_nodes)) < 0)
			return r;
	} else {
		op = STR("exists");
		if ((r = parse_inner(p, STR("{"), text, STR("}"), &left_nodes)) < 0)
			return r;
	}
	struct node *node = add_node(p, cur, NODE_FILTER);
	node->text = op;
	node->left = left_nodes;
	node->right = right_nodes;
	return 0;
}

/* ---- words ---- */

static void parse_field(struct parser *p, struct nodes *cur)
{
	size_t start = p->at, n = 0;
	while (!at_end(p) && !is_terminator(p->in.p[p->at]))
		p->at += p->in.p[p->at] == '\\' && p->at + 1 < p->in.n ? 2 : 1;
	str name = str_span(p->in.p + start, p->at - start);
	if (str_eq(name, STR("*"))) {
		add_node(p, cur, NODE_WILDCARD);
		return;
	}
	char *plain = arena_alloc(p->arena, name.n + 1, 1);
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] != '\\')
			plain[n++] = name.p[i];
	add_field(p, cur, str_span(plain, n));
}

static int parse_recursive(struct parser *p, struct nodes *cur)
{
	if (cur->n && cur->all[cur->n - 1].type == NODE_RECURSIVE)
		return fail(p, "invalid multiple recursive descent");
	p->at += strlen("..");
	add_node(p, cur, NODE_RECURSIVE);
	if (!at_end(p) && is_alphanumeric(p->in.p[p->at]))
		parse_field(p, cur);
	return 0;
}

static void parse_identifier(struct parser *p, struct nodes *cur)
{
	size_t start = p->at;
	while (!at_end(p) && !is_terminator(p->in.p[p->at]))
		p->at++;
	str word = str_span(p->in.p + start, p->at - start);
	bool is_true = str_eq(word, STR("true"));
	if (is_true || str_eq(word, STR("false")))
		add_node(p, cur, NODE_LITERAL)->literal = val_of_bool(is_true);
	else
		add_node(p, cur, NODE_IDENTIFIER)->text = word;
}

static int parse_number(struct parser *p, struct nodes *cur)
{
	size_t start = p->at;
	int64_t number;

	if (p->in.p[p->at] == '+' || p->in.p[p->at] == '-')
		p->at++;
	while (!at_end(p) && (p->in.p[p->at] == '.' || is_digit(p->in.p[p->at])))
		p->at++;
	str word = str_span(p->in.p + start, p->at - start);
	if (str_to_i64(str_skip(word, word.p[0] == '+'), &number)) {
		add_node(p, cur, NODE_LITERAL)->literal = val_of_int(number);
		return 0;
	}
	char *end;
	str copy = arena_str(p->arena, word);
	double d = strtod(copy.p, &end);
	if (end == copy.p || *end || isinf(d))
		return err_set(p->err, ERR_BAD_REQUEST, "cannot parse number " STR_FMT, STR_ARG(word));
	add_node(p, cur, NODE_LITERAL)->literal = val_of_double(d);
	return 0;
}

/* ---- quoted strings ---- */

static int parse_quote(struct parser *p, struct nodes *cur)
{
	size_t start = p->at++;
	char quote = p->in.p[start];
	str text;

	while (!at_end(p) && p->in.p[p->at] != '\n' && (p->in.p[p->at] != quote || p->in.p[p->at - 1] == '\\'))
		p->at++;
	if (at_end(p) || p->in.p[p->at] == '\n')
		return fail(p, "unterminated quoted string");
	p->at++;
	str quoted = str_span(p->in.p + start, p->at - start);
	if (!go_unquote(p->arena, quoted, &text))
		return err_set(p->err, ERR_BAD_REQUEST, "unquote string " STR_FMT " error invalid syntax", STR_ARG(quoted));
	add_node(p, cur, NODE_TEXT)->text = text;
	return 0;
}

/* ---- actions ---- */

/* c is ASCII: all else is an identifier. */
static int unrecognized(struct parser *p, char c)
{
	if (c < ' ' || c == 0x7f)
		return err_set(p->err, ERR_BAD_REQUEST, "unrecognized character in action: U+%04X", (unsigned)c);
	return err_set(p->err, ERR_BAD_REQUEST, "unrecognized character in action: U+%04X '%c'", (unsigned)c, c);
}

/* Everything up to and with the closing brace. */
static int parse_action(struct parser *p, struct nodes *cur)
{
	for (;;) {
		int r = 0;
		str next = rest(p);
		char c = next.n ? next.p[0] : '\n';

		if (c == '}') {
			p->at++;
			return 0;
		} else if (str_starts(next, STR("[?("))) {
			r = parse_filter(p, cur);
		} else if (str_starts(next, STR(".."))) {
			r = parse_recursive(p, cur);
		} else if (c == '\r' || c == '\n') {
			return fail(p, "unclosed action");
		} else if (c == ' ' || c == '@' || c == '$') {
			p->at++;
		} else if (c == '[') {
			r = parse_array(p, cur);
		} else if (c == '"' || c == '\'') {
			r = parse_quote(p, cur);
		} else if (c == '.') {
			p->at++;
			parse_field(p, cur);
		} else if (c == '+' || c == '-' || is_digit(c)) {
			r = parse_number(p, cur);
		} else if (is_alphanumeric(c)) {
			parse_identifier(p, cur);
		} else {
			return unrecognized(p, c);
		}
		if (r < 0)
			return r;
	}
}

static int parse_template(struct parser *p, struct nodes *root)
{
	while (!at_end(p)) {
		str text = rest(p);
		ptrdiff_t brace = str_chr(text, '{');
		if (brace >= 0)
			text = str_head(text, (size_t)brace);
		if (text.n)
			add_node(p, root, NODE_TEXT)->text = text;
		p->at += text.n;
		if (brace < 0)
			break;
		p->at++;
		struct nodes action = { 0 };
		int r = parse_action(p, &action);
		if (r < 0)
			return r;
		add_node(p, root, NODE_LIST)->nodes = action;
	}
	return 0;
}

int jsonpath_parse(struct arena *a, str text, const struct jsonpath **ret, struct err *err)
{
	struct parser p = { .arena = a, .in = arena_str(a, text), .err = err };
	struct jsonpath *path = ARENA_NEW(a, struct jsonpath);
	int r = parse_template(&p, &path->nodes);
	if (r < 0)
		return r;
	*ret = path;
	return 0;
}

int jsonpath_relaxed(struct arena *a, str text, str *ret, struct err *err)
{
	str path = text;
	if (text.n == 0) {
		*ret = STR_NONE;
		return 0;
	}
	if (str_starts(path, STR("{")) && str_ends(path, STR("}")))
		path = str_span(path.p + 1, path.n - 2);
	if (path.n == 0 || str_chr(path, '{') >= 0 || str_chr(path, '}') >= 0)
		return err_set(err, ERR_BAD_REQUEST,
			       "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or "
			       "'{.name1.name2}'");
	if (path.n > 1 && path.p[0] == '.')
		path = str_skip(path, 1);
	*ret = arena_printf(a, "{." STR_FMT "}", STR_ARG(path));
	return 0;
}
