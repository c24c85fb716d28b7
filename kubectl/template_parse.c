/*
 * Tokens become nodes. Where Go looks ahead by up to three tokens, so does this, with the same memory of them: the line in an error is
 * that of the token in the first place.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "codec/go.h"
#include "kubectl/template_priv.h"

struct variable {
	str name;
	struct variable *before;
};

/* Of one template; those that are defined inside it have parsers of their own. */
struct parser {
	struct arena *arena;
	struct template *template;
	struct template_lexer *lexer;
	struct err *err;
	struct template_token token[3];
	unsigned peeked, ranges, *depth;
	size_t action;               /* where the action began that is being read; SIZE_MAX: none is */
	struct variable *variables;
};

unsigned template_line(str text, size_t pos)
{
	unsigned n = 1;
	for (size_t i = 0; i < pos && i < text.n; i++)
		n += text.p[i] == '\n';
	return n;
}

/* ---- errors ---- */

static int fail(struct parser *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

static int fail(struct parser *p, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(p->arena, fmt, ap);
	va_end(ap);
	return err_set(p->err, ERR_BAD_REQUEST, "template: " STR_FMT ":%u: " STR_FMT, STR_ARG(p->template->name),
		       template_line(p->template->text, p->token[0].pos), STR_ARG(text));
}

static str quote(struct parser *p, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(sizeof(p->err->msg));
	buf_add_quoted(&b, text);
	return arena_str(p->arena, buf_str(&b));
}

static str token_text(struct parser *p, const struct template_token *t)
{
	if (t->type == TOKEN_EOF || t->type == TOKEN_ERROR)
		return t->text;
	if (t->type > TOKEN_KEYWORD)
		return arena_printf(p->arena, "<" STR_FMT ">", STR_ARG(t->text));
	size_t end = 0, runes = 0;
	for (; end < t->text.n && runes < 10; runes++)
		end += MAX(str_rune(str_skip(t->text, end), NULL), (size_t)1);
	str shown = quote(p, str_head(t->text, end));
	return t->text.n > 10 ? arena_join(p->arena, shown, STR("...")) : shown;
}

static int unexpected(struct parser *p, const struct template_token *t, const char *where)
{
	str text = token_text(p, t);
	unsigned line = template_line(p->template->text, p->action);
	if (t->type != TOKEN_ERROR)
		return fail(p, "unexpected " STR_FMT " in %s", STR_ARG(text), where);
	if (p->action == SIZE_MAX || line == template_line(p->template->text, t->pos))
		return fail(p, STR_FMT, STR_ARG(text));
	return fail(p, STR_FMT "%s started at " STR_FMT ":%u", STR_ARG(text), str_ends(text, STR(" action")) ? "" : " in action",
		    STR_ARG(p->template->name), line);
}

/* ---- tokens ---- */

static struct template_token next(struct parser *p)
{
	if (p->peeked)
		p->peeked--;
	else
		p->token[0] = template_next_token(p->lexer);
	return p->token[p->peeked];
}

static void back(struct parser *p) { p->peeked++; }

static enum template_token_type peek(struct parser *p)
{
	struct template_token t = next(p);
	back(p);
	return t.type;
}

static struct template_token next_word(struct parser *p)
{
	struct template_token t;
	do
		t = next(p);
	while (t.type == TOKEN_SPACE);
	return t;
}

static struct template_token peek_word(struct parser *p)
{
	struct template_token t = next_word(p);
	back(p);
	return t;
}

/* ---- nodes ---- */

static struct template_node *node(struct parser *p, enum template_node_type type, size_t pos, str text)
{
	struct template_node *n = ARENA_NEW(p->arena, struct template_node);
	n->type = type;
	n->pos = pos;
	n->text = text;
	return n;
}

static void add(struct template_nodes *list, struct template_node *n)
{
	if (!list->end)
		list->end = &list->first;
	*list->end = n;
	list->end = &n->next;
}

static int deeper(struct parser *p) { return ++*p->depth > TEMPLATE_DEPTH_MAX ? fail(p, "max expression depth exceeded") : 0; }

static void declare(struct parser *p, struct template_node *pipe, str name)
{
	struct variable *v = ARENA_NEW(p->arena, struct variable);
	*v = (struct variable){ name, p->variables };
	p->variables = v;
	pipe->declared[pipe->n_declared++] = name;
}

/* ---- constants ---- */

static int parse_quoted(struct parser *p, const struct template_token *t, str *ret)
{
	if (t->type == TOKEN_RAW_STRING) {
		char *out = arena_alloc(p->arena, t->text.n, 1);
		size_t n = 0;
		for (size_t i = 1; i + 1 < t->text.n; i++)
			if (t->text.p[i] != '\r')
				out[n++] = t->text.p[i];
		*ret = str_span(out, n);
		return 0;
	}
	return go_unquote(p->arena, t->text, ret) ? 0 : fail(p, "invalid syntax");
}

/* Go's integers: digits with a base before them and underscores between. */
static bool parse_integer(const char *text, bool *ret_large, int64_t *ret)
{
	bool negative = *text == '-';
	text += *text == '-' || *text == '+';
	int base = 10;
	char mark = text[0] == '0' ? (char)(text[1] | 0x20) : 0;
	if (text[0] == '0' && text[1]) {
		base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
		text += mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1;
	}
	char *end, digits[72];
	size_t n = 0;
	for (; *text && n + 1 < sizeof(digits); text++)
		if (*text != '_')
			digits[n++] = *text;
	digits[n] = '\0';
	errno = 0;
	unsigned long long u = strtoull(digits, &end, base);
	if (!n || *end || *text || digits[0] == '-' || digits[0] == '+' || errno)
		return false;
	*ret_large = u > (unsigned long long)INT64_MAX + negative;
	*ret = negative ? (int64_t)-u : (int64_t)u;
	return !*ret_large || !negative;
}

static int parse_number(struct parser *p, const struct template_token *t, struct val *ret)
{
	const char *text = arena_str(p->arena, t->text).p;
	uint32_t rune;
	int64_t i;
	bool large;
	str s;
	char *end;
	if (t->type == TOKEN_CHAR_CONSTANT) {
		if (!go_unquote(p->arena, t->text, &s))
			return fail(p, "invalid syntax");
		if (!s.n || str_rune(s, &rune) != s.n)
			return fail(p, "malformed character constant: %s", text);
		*ret = val_of_int(rune);
		return 0;
	}
	*ret = VAL_EMPTY;
	if (parse_integer(text, &large, &i)) {
		if (!large)
			*ret = val_of_int(i);
		return 0;
	}
	double d = strtod(text, &end);
	bool number = end != text && !*end && isfinite(d) && !strpbrk(text, "xX");
	if (number && !strpbrk(text, ".eE"))
		return fail(p, "integer overflow: " STR_FMT, STR_ARG(quote(p, t->text)));
	if (!number)
		return fail(p, "illegal number syntax: " STR_FMT, STR_ARG(quote(p, t->text)));
	*ret = val_of_double(d);
	return 0;
}

/* ---- pipelines ---- */

static int parse_pipe(struct parser *p, const char *where, enum template_token_type end, struct template_node **ret);

static int check_variable(struct parser *p, str name)
{
	for (const struct variable *v = p->variables; v; v = v->before)
		if (str_eq(v->name, name))
			return 0;
	return fail(p, "undefined variable " STR_FMT, STR_ARG(quote(p, name)));
}

static int parse_parens(struct parser *p, struct template_node **ret)
{
	int r = deeper(p);
	if (r == 0)
		r = parse_pipe(p, "parenthesized pipeline", TOKEN_RIGHT_PAREN, ret);
	--*p->depth;
	return r;
}

/* *ret is NULL when there is none. */
static int parse_term(struct parser *p, struct template_node **ret)
{
	struct template_token t = next_word(p);
	struct template_node *n = *ret = node(p, NODE_DOT, t.pos, t.text);
	str text;
	int r;
	switch (t.type) {
	case TOKEN_IDENTIFIER:
		n->type = NODE_IDENTIFIER;
		n->func = template_find_func(t.text);
		return n->func ? 0 : fail(p, "function " STR_FMT " not defined", STR_ARG(quote(p, t.text)));
	case TOKEN_DOT: return 0;
	case TOKEN_NIL: n->type = NODE_NIL; return 0;
	case TOKEN_FIELD: n->type = NODE_FIELD; return 0;
	case TOKEN_VARIABLE: n->type = NODE_VARIABLE; return check_variable(p, t.text);
	case TOKEN_BOOL:
		n->type = NODE_BOOL;
		n->value = val_of_bool(t.text.n == 4);
		return 0;
	case TOKEN_NUMBER:
	case TOKEN_CHAR_CONSTANT:
		n->type = NODE_NUMBER;
		return parse_number(p, &t, &n->value);
	case TOKEN_STRING:
	case TOKEN_RAW_STRING:
		n->type = NODE_STRING;
		if ((r = parse_quoted(p, &t, &text)) == 0)
			n->value = val_of_str(text);
		return r;
	case TOKEN_LEFT_PAREN: return parse_parens(p, ret);
	default:
		back(p);
		*ret = NULL;
		return 0;
	}
}

/* A term with fields behind it. */
static int parse_operand(struct parser *p, struct template_node **ret)
{
	int r = parse_term(p, ret);
	if (r < 0 || !*ret || peek(p) != TOKEN_FIELD)
		return r;
	struct template_token t = next(p), more;
	size_t pos = t.pos;
	for (; peek(p) == TOKEN_FIELD; t.text.n += more.text.n)
		more = next(p);
	struct template_node *n = *ret;
	if (n->type == NODE_FIELD || n->type == NODE_VARIABLE) {
		n->pos = pos;
		n->text.n += t.text.n; /* they stand beside each other in the text */
		return 0;
	}
	if (n->type == NODE_DOT || n->type == NODE_NIL || n->type == NODE_BOOL || n->type == NODE_NUMBER || n->type == NODE_STRING)
		return fail(p, "unexpected . after term " STR_FMT, STR_ARG(quote(p, n->text)));
	*ret = node(p, NODE_CHAIN, pos, t.text);
	add(&(*ret)->parts, n);
	return 0;
}

static int parse_command(struct parser *p, struct template_node **ret)
{
	struct template_node *n, *command = *ret = node(p, NODE_COMMAND, peek_word(p).pos, STR_NONE);
	int r;
	for (;;) {
		(void)peek_word(p);
		if ((r = parse_operand(p, &n)) < 0)
			return r;
		if (n)
			add(&command->parts, n);
		struct template_token t = next(p);
		if (t.type == TOKEN_SPACE)
			continue;
		if (t.type == TOKEN_RIGHT_DELIM || t.type == TOKEN_RIGHT_PAREN)
			back(p);
		else if (t.type != TOKEN_PIPE)
			return unexpected(p, &t, "operand");
		break;
	}
	return command->parts.first ? 0 : fail(p, "empty command");
}

/* "$x :=", "$i, $x :=", "$x =" */
static int parse_declaration(struct parser *p, const char *where, struct template_node *pipe)
{
	for (;;) {
		struct template_token v = peek_word(p), after, then;
		if (v.type != TOKEN_VARIABLE)
			return 0;
		(void)next(p);
		(void)peek(p);
		after = p->token[p->peeked - 1];
		then = peek_word(p);
		if (then.type == TOKEN_ASSIGN || then.type == TOKEN_DECLARE) {
			pipe->assign = then.type == TOKEN_ASSIGN;
			(void)next_word(p);
			declare(p, pipe, v.text);
			return 0;
		}
		if (then.type != TOKEN_CHAR || !str_eq(then.text, STR(","))) {
			/* It is an operand. */
			p->token[1] = after.type == TOKEN_SPACE ? after : v;
			p->token[2] = v;
			p->peeked = after.type == TOKEN_SPACE ? 3 : 2;
			return 0;
		}
		(void)next_word(p);
		declare(p, pipe, v.text);
		if (strcmp(where, "range") != 0 || pipe->n_declared >= 2)
			return fail(p, "too many declarations in %s", where);
		enum template_token_type type = peek_word(p).type;
		if (type != TOKEN_VARIABLE && type != TOKEN_RIGHT_DELIM && type != TOKEN_RIGHT_PAREN)
			return fail(p, "range can only initialize variables");
	}
}

static int check_pipe(struct parser *p, const struct template_node *pipe, const char *where)
{
	const struct template_node *c = pipe->parts.first;
	if (!c)
		return fail(p, "missing value for %s", where);
	for (unsigned stage = 2; (c = c->next); stage++) {
		enum template_node_type type = c->parts.first->type;
		if (type == NODE_BOOL || type == NODE_DOT || type == NODE_NIL || type == NODE_NUMBER || type == NODE_STRING)
			return fail(p, "non executable command in pipeline stage %u", stage);
	}
	return 0;
}

static int parse_pipe(struct parser *p, const char *where, enum template_token_type end, struct template_node **ret)
{
	struct template_node *pipe = node(p, NODE_PIPE, peek_word(p).pos, STR_NONE), *command;
	int r = parse_declaration(p, where, pipe);
	while (r == 0) {
		struct template_token t = next_word(p);
		if (t.type == end) {
			*ret = pipe;
			return check_pipe(p, pipe, where);
		}
		switch (t.type) {
		case TOKEN_BOOL: case TOKEN_CHAR_CONSTANT: case TOKEN_DOT: case TOKEN_FIELD: case TOKEN_IDENTIFIER: case TOKEN_NUMBER:
		case TOKEN_NIL: case TOKEN_RAW_STRING: case TOKEN_STRING: case TOKEN_VARIABLE: case TOKEN_LEFT_PAREN:
			back(p);
			if ((r = parse_command(p, &command)) == 0)
				add(&pipe->parts, command);
			break;
		default:
			return unexpected(p, &t, where);
		}
	}
	return r;
}

/* ---- templates ---- */

static int parse_one(struct parser *p, struct template_node **ret);

/* Up to {{end}} or {{else}}, which is *ret_last. */
static int parse_list(struct parser *p, struct template_node **ret, struct template_node **ret_last)
{
	struct template_nodes list = { 0 };
	while (peek_word(p).type != TOKEN_EOF) {
		struct template_node *n;
		int r = parse_one(p, &n);
		if (r < 0)
			return r;
		if (n->type == NODE_ELSE || n->type == NODE_END) {
			*ret = list.first;
			*ret_last = n;
			return 0;
		}
		add(&list, n);
	}
	return fail(p, "unexpected EOF");
}

static const char *shown(const struct template_node *n) { return n->type == NODE_END ? "{{end}}" : "{{else}}"; }

static int parse_control(struct parser *p, enum template_node_type type, struct template_node **ret);

static int parse_else(struct parser *p, enum template_node_type type, struct template_node **ret)
{
	enum template_token_type again = type == NODE_IF ? TOKEN_IF : TOKEN_WITH;
	struct template_node *last;
	if (type != NODE_RANGE && peek(p) == again) {
		(void)next(p);
		return parse_control(p, type, ret);
	}
	int r = parse_list(p, ret, &last);
	return r < 0 || last->type == NODE_END ? r : fail(p, "expected end; found %s", shown(last));
}

/* if, with, range */
static int parse_control(struct parser *p, enum template_node_type type, struct template_node **ret)
{
	static const char *const names[] = { [NODE_IF] = "if", [NODE_WITH] = "with", [NODE_RANGE] = "range" };
	struct variable *variables = p->variables;
	struct template_node *pipe, *last, *n;
	int r = deeper(p);
	if (r < 0 || (r = parse_pipe(p, names[type], TOKEN_RIGHT_DELIM, &pipe)) < 0)
		return r;
	*ret = n = node(p, type, pipe->pos, STR_NONE);
	n->pipe = pipe;
	p->ranges += type == NODE_RANGE;
	if ((r = parse_list(p, &n->then, &last)) < 0)
		return r;
	p->ranges -= type == NODE_RANGE;
	if (last->type == NODE_ELSE)
		r = parse_else(p, type, &n->otherwise);
	p->variables = variables;
	--*p->depth;
	return r;
}

static bool is_empty(const struct template_node *n)
{
	for (; n; n = n->next)
		if (n->type != NODE_TEXT || str_trim(n->text).n)
			return false;
	return true;
}

static struct template_tree *find_tree(const struct template *t, str name)
{
	for (struct template_tree *tree = t->trees; tree; tree = tree->next)
		if (str_eq(tree->name, name))
			return tree;
	return NULL;
}

static int add_tree(struct parser *p, str name, struct template_node *root)
{
	struct template_tree *tree = find_tree(p->template, name);
	if (tree && !is_empty(tree->root))
		return is_empty(root) ? 0 : fail(p, "template: multiple definition of template " STR_FMT, STR_ARG(quote(p, name)));
	if (!tree) {
		tree = ARENA_NEW(p->arena, struct template_tree);
		tree->name = name;
		tree->next = p->template->trees;
		p->template->trees = tree;
	}
	tree->root = root;
	return 0;
}

static struct parser parser_inside(const struct parser *p)
{
	struct parser inner = { .arena = p->arena, .template = p->template, .lexer = p->lexer, .err = p->err, .depth = p->depth, .action = SIZE_MAX };
	struct template_node whole = { 0 };
	declare(&inner, &whole, STR("$"));
	return inner;
}

static int parse_template_name(struct parser *p, const struct template_token *t, const char *where, str *ret)
{
	return t->type == TOKEN_STRING || t->type == TOKEN_RAW_STRING ? parse_quoted(p, t, ret) : unexpected(p, t, where);
}

/* The body of define and block, behind its right delimiter. */
static int parse_body(struct parser *p, struct parser *inner, str name, const char *where)
{
	struct template_node *root, *end;
	int r = deeper(inner);
	if (r < 0 || (r = parse_list(inner, &root, &end)) < 0)
		return r;
	--*p->depth;
	if (end->type != NODE_END)
		return fail(where[0] == 'd' ? inner : p, "unexpected %s in %s", shown(end), where);
	return add_tree(inner, name, root);
}

static int parse_define(struct parser *p)
{
	struct parser inner = parser_inside(p);
	struct template_token t = next_word(&inner);
	str name;
	int r = parse_template_name(&inner, &t, "define clause", &name);
	if (r < 0)
		return r;
	t = next_word(&inner);
	return t.type == TOKEN_RIGHT_DELIM ? parse_body(p, &inner, name, "define clause") : unexpected(&inner, &t, "define clause");
}

/* {{template "name" pipeline}}, {{block "name" pipeline}} ... {{end}} */
static int parse_call(struct parser *p, bool block, struct template_node **ret)
{
	const char *where = block ? "block clause" : "template clause";
	struct template_token t = next_word(p);
	struct template_node *n = *ret = node(p, NODE_TEMPLATE, t.pos, STR_NONE);
	int r = parse_template_name(p, &t, where, &n->text);
	if (r < 0)
		return r;
	if (!block && next_word(p).type == TOKEN_RIGHT_DELIM)
		return 0;
	if (!block)
		back(p);
	if ((r = parse_pipe(p, where, TOKEN_RIGHT_DELIM, &n->pipe)) < 0 || !block)
		return r;
	struct parser inner = parser_inside(p);
	return parse_body(p, &inner, n->text, where);
}

static int parse_jump(struct parser *p, const struct template_token *word, struct template_node **ret)
{
	bool is_break = word->type == TOKEN_BREAK;
	struct template_token t = next_word(p);
	if (t.type != TOKEN_RIGHT_DELIM)
		return unexpected(p, &t, is_break ? "{{break}}" : "{{continue}}");
	*ret = node(p, is_break ? NODE_BREAK : NODE_CONTINUE, word->pos, STR_NONE);
	return p->ranges ? 0 : fail(p, "{{%s}} outside {{range}}", is_break ? "break" : "continue");
}

static int parse_end(struct parser *p, enum template_node_type type, struct template_node **ret)
{
	struct template_token t = peek_word(p);
	*ret = node(p, type, t.pos, STR_NONE);
	if (type == NODE_ELSE && (t.type == TOKEN_IF || t.type == TOKEN_WITH))
		return 0;
	t = next_word(p);
	return t.type == TOKEN_RIGHT_DELIM ? 0 : unexpected(p, &t, type == NODE_ELSE ? "else" : "end");
}

static int parse_action(struct parser *p, struct template_node **ret)
{
	struct template_token t = next_word(p);
	switch (t.type) {
	case TOKEN_BLOCK: return parse_call(p, true, ret);
	case TOKEN_TEMPLATE: return parse_call(p, false, ret);
	case TOKEN_BREAK:
	case TOKEN_CONTINUE: return parse_jump(p, &t, ret);
	case TOKEN_ELSE: return parse_end(p, NODE_ELSE, ret);
	case TOKEN_END: return parse_end(p, NODE_END, ret);
	case TOKEN_IF: return parse_control(p, NODE_IF, ret);
	case TOKEN_WITH: return parse_control(p, NODE_WITH, ret);
	case TOKEN_RANGE: return parse_control(p, NODE_RANGE, ret);
	default: break;
	}
	back(p);
	*ret = node(p, NODE_ACTION, t.pos, STR_NONE);
	return parse_pipe(p, "command", TOKEN_RIGHT_DELIM, &(*ret)->pipe);
}

static int parse_one(struct parser *p, struct template_node **ret)
{
	struct template_token t = next_word(p);
	if (t.type == TOKEN_TEXT) {
		*ret = node(p, NODE_TEXT, t.pos, t.text);
		return 0;
	}
	if (t.type != TOKEN_LEFT_DELIM)
		return unexpected(p, &t, "input");
	p->action = t.pos;
	int r = parse_action(p, ret);
	p->action = SIZE_MAX;
	return r;
}

static int parse_all(struct parser *p)
{
	struct template_nodes root = { 0 };
	while (peek(p) != TOKEN_EOF) {
		struct template_node *n;
		int r;
		if (peek(p) == TOKEN_LEFT_DELIM) {
			struct template_token delim = next(p);
			if (next_word(p).type == TOKEN_DEFINE) {
				if ((r = parse_define(p)) < 0)
					return r;
				continue;
			}
			p->token[1] = delim;
			p->peeked = 2;
		}
		if ((r = parse_one(p, &n)) < 0)
			return r;
		if (n->type == NODE_END || n->type == NODE_ELSE)
			return fail(p, "unexpected %s", shown(n));
		add(&root, n);
	}
	return add_tree(p, p->template->name, root.first);
}

int template_parse(struct arena *a, str name, str text, const struct template **ret, struct err *err)
{
	struct template *t = ARENA_NEW(a, struct template);
	struct template_lexer lexer = { .arena = a, .in = text };
	unsigned depth = 0;
	struct parser none = { .arena = a, .template = t, .lexer = &lexer, .err = err, .depth = &depth };
	struct parser p = parser_inside(&none);
	t->name = name;
	t->text = text;
	int r = parse_all(&p);
	*ret = t;
	return r;
}

/* ---- as an error shows it ---- */

static void add_parts(struct buf *b, const struct template_node *first, const char *between)
{
	for (const struct template_node *n = first; n; n = n->next) {
		bool parens = n->type == NODE_PIPE;
		buf_addf(b, "%s%s", n == first ? "" : between, parens ? "(" : "");
		template_add_node(b, n);
		buf_add(b, parens ? STR(")") : STR_NONE);
	}
}

void template_add_node(struct buf *b, const struct template_node *n)
{
	switch (n->type) {
	case NODE_TEMPLATE:
		buf_add(b, STR("{{template "));
		buf_add_quoted(b, n->text);
		if (n->pipe) {
			buf_addc(b, ' ');
			template_add_node(b, n->pipe);
		}
		buf_add(b, STR("}}"));
		return;
	case NODE_PIPE:
		for (unsigned i = 0; i < n->n_declared; i++)
			buf_addf(b, STR_FMT "%s", STR_ARG(n->declared[i]), i + 1 < n->n_declared ? ", " : n->assign ? " = " : " := ");
		add_parts(b, n->parts.first, " | ");
		return;
	case NODE_COMMAND:
		add_parts(b, n->parts.first, " ");
		return;
	case NODE_CHAIN:
		add_parts(b, n->parts.first, "");
		break;
	default:
		break;
	}
	buf_add(b, n->text);
}
