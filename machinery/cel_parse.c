/*
 * The parser: recursive descent with precedence climbing. Recovery from mistakes follows ANTLR's as far as its texts show it: one
 * superfluous token is skipped, one missing bracket is assumed, anything else ends the parse.
 *
 * Nesting is bounded by CEL_DEPTH_MAX and the height of the tree by HEIGHT_MAX, so that everything which walks nodes may recurse.
 */
#include <errno.h>
#include <stdlib.h>

#include "machinery/cel_priv.h"

enum { HEIGHT_MAX = CEL_DEPTH_MAX + 50, EXPR_FRAMES = 5, FRAMES_MAX = CEL_DEPTH_MAX * (EXPR_FRAMES + 1) + 10 };

#define EXPR_FIRST "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
static const char expect_expr[] = "{'[', '{', '(', '.', '-', '!', " EXPR_FIRST;
static const char expect_args[] = "{'[', '{', '(', ')', '.', '-', '!', " EXPR_FIRST;
static const char expect_index[] = "{'[', '{', '(', '.', '-', '!', '?', " EXPR_FIRST;

static struct cel_node *parse_expr(struct cel_parser *p, const char *expected);

/* ---- nodes ---- */

struct cel_node *cel_node_new(struct cel_parser *p, enum cel_node_kind kind, uint32_t at)
{
	struct cel_node *n = ARENA_NEW(p->arena, struct cel_node);

	n->kind = kind;
	n->at = at;
	n->height = 1;
	return n;
}

static void too_deep(struct cel_parser *p)
{
	if (!p->stop)
		cel_issue(p->issues, CEL_NOWHERE, "Internal error: expression recursion limit exceeded: %d", CEL_DEPTH_MAX);
	p->stop = true;
}

static void stands_on(struct cel_parser *p, struct cel_node *n, const struct cel_node *child)
{
	n->height = MAX(n->height, (uint16_t)(child->height + 1));
	if (n->height > HEIGHT_MAX)
		too_deep(p);
}

static struct cel_node *bad_node(struct cel_parser *p, uint32_t at) { return cel_node_new(p, CEL_N_BAD, at); }

static struct cel_node *node_parts(struct cel_parser *p, enum cel_node_kind kind, uint32_t at, str name, struct cel_node *target,
				   struct cel_node **args, size_t n)
{
	struct cel_node *node = cel_node_new(p, kind, at);

	node->call.name = name;
	node->call.target = target;
	node->call.args = args;
	node->call.n = (uint32_t)n;
	node->call.method = target != NULL;
	if (target)
		stands_on(p, node, target);
	for (size_t i = 0; i < n; i++)
		stands_on(p, node, args[i]);
	return node;
}

struct cel_node *cel_node_call(struct cel_parser *p, uint32_t at, str name, struct cel_node *target, struct cel_node **args, size_t n)
{
	enum cel_node_kind kind = CEL_N_CALL;

	if (!target && n >= 2 && str_eq(name, STR("_&&_")))
		kind = CEL_N_AND;
	else if (!target && n >= 2 && str_eq(name, STR("_||_")))
		kind = CEL_N_OR;
	else if (!target && n == 3 && str_eq(name, STR("_?_:_")))
		kind = CEL_N_COND;
	return node_parts(p, kind, at, name, target, args, n);
}

static struct cel_node *call_or_macro(struct cel_parser *p, uint32_t at, str name, struct cel_node *target, struct cel_node **args,
				      size_t n)
{
	struct cel_node *m = p->stop ? NULL : cel_macro(p, at, name, target, args, n);

	if (!m)
		return cel_node_call(p, at, name, target, args, n);
	if (m->kind == CEL_N_FOLD) {
		const struct cel_node *parts[] = { m->fold.range, m->fold.init, m->fold.cond, m->fold.step, m->fold.result };
		for (size_t i = 0; i < ARRAY_LEN(parts); i++)
			stands_on(p, m, parts[i]);
	}
	return m;
}

static struct cel_node *binary(struct cel_parser *p, uint32_t at, str name, struct cel_node *a, struct cel_node *b)
{
	struct cel_node **args = ARENA_ARRAY(p->arena, struct cel_node *, 2);

	args[0] = a;
	args[1] = b;
	return cel_node_call(p, at, name, NULL, args, 2);
}

/* A growing list of nodes. */
struct nodes {
	struct cel_node **list;
	size_t n, cap;
};

static void nodes_add(struct cel_parser *p, struct nodes *l, struct cel_node *node)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 4;
		struct cel_node **more = ARENA_ARRAY(p->arena, struct cel_node *, cap);
		if (l->n)
			memcpy(more, l->list, l->n * sizeof(*more));
		l->list = more;
		l->cap = cap;
	}
	l->list[l->n++] = node;
}

/* ---- tokens ---- */

static str token_text(const struct cel_parser *p, const struct cel_token *t)
{
	return t->kind == CEL_T_EOF ? STR("<EOF>") : str_span(p->issues->source.p + t->at, t->n);
}

static const char *token_name(uint8_t kind)
{
	static const char *const names[] = {
#define CEL_TOKEN_NAME(name, text) text,
		CEL_TOKENS(CEL_TOKEN_NAME)
#undef CEL_TOKEN_NAME
	};
	return names[kind];
}

static bool begins_expr(uint8_t kind)
{
	switch (kind) {
	case CEL_T_LBRACKET:
	case CEL_T_LBRACE:
	case CEL_T_LPAREN:
	case CEL_T_DOT:
	case CEL_T_MINUS:
	case CEL_T_NOT:
		return true;
	default:
		return kind >= CEL_T_TRUE && kind <= CEL_T_IDENT;
	}
}

static void complain(struct cel_parser *p, const char *what, const char *expected)
{
	if (p->stop)
		return;
	str text = token_text(p, p->t);
	cel_issue(p->issues, p->t->at, "Syntax error: %s input '" STR_FMT "' expecting %s", what, STR_ARG(text), expected);
}

static void mismatch(struct cel_parser *p, const char *expected)
{
	complain(p, "mismatched", expected);
	p->stop = true;
}

static const struct cel_token *second(const struct cel_parser *p) { return p->t->kind == CEL_T_EOF ? p->t : p->t + 1; }

static bool next_is(struct cel_parser *p, uint8_t kind) { return !p->stop && p->t->kind == kind; }

static bool accept(struct cel_parser *p, uint8_t kind)
{
	if (!next_is(p, kind))
		return false;
	p->t++;
	return true;
}

/* A token that has to come. ends: it is the end of something, after which no expression begins. */
static void expect(struct cel_parser *p, uint8_t kind, bool ends)
{
	if (p->stop || accept(p, kind))
		return;
	const char *name = token_name(kind);
	if (second(p)->kind == kind && p->t->kind != CEL_T_EOF) {
		complain(p, "extraneous", name);
		p->t += 2;
	} else if (begins_expr(p->t->kind) != ends) {
		str text = token_text(p, p->t);
		cel_issue(p->issues, p->t->at, "Syntax error: missing %s at '" STR_FMT "'", name, STR_ARG(text));
	} else {
		mismatch(p, name);
	}
}

/* After an element of a list or map: true when another one follows. */
static bool more_elements(struct cel_parser *p, uint8_t close, const char *expected)
{
	if (!p->stop && p->t->kind != close && p->t->kind != CEL_T_COMMA) {
		uint8_t then = second(p)->kind;
		if ((then != close && then != CEL_T_COMMA) || p->t->kind == CEL_T_EOF) {
			mismatch(p, expected);
			return false;
		}
		complain(p, "extraneous", expected);
		p->t++;
	}
	if (!accept(p, CEL_T_COMMA) || next_is(p, close))
		return false;
	if (next_is(p, CEL_T_COMMA))
		mismatch(p, token_name(close));
	return !p->stop;
}

/* ---- literals ---- */

static struct cel_node *literal(struct cel_parser *p, uint32_t at, struct cel_val v)
{
	struct cel_node *n = cel_node_new(p, CEL_N_LITERAL, at);

	n->literal = v;
	n->constant = true;
	return n;
}

static struct cel_node *bad_literal(struct cel_parser *p, uint32_t at, const char *what)
{
	cel_issue(p->issues, at, "%s", what);
	return bad_node(p, at);
}

/* The absolute value of an int or uint token. */
static bool magnitude(str digits, uint64_t *ret)
{
	unsigned base = str_starts(digits, STR("0x")) ? 16 : 10;
	uint64_t v = 0;

	digits = str_skip(digits, base == 16 ? 2 : 0);
	for (size_t i = 0; i < digits.n; i++) {
		char c = digits.p[i];
		unsigned d = (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
			return false;
	}
	*ret = v;
	return true;
}

static struct cel_node *parse_number(struct cel_parser *p)
{
	uint32_t at = p->t->at;
	bool minus = accept(p, CEL_T_MINUS);
	const struct cel_token *t = p->t++;
	str text = token_text(p, t);
	uint64_t u;

	if (t->kind == CEL_T_UINT) {
		if (!magnitude(str_head(text, text.n - 1), &u))
			return bad_literal(p, at, "invalid uint literal");
		return literal(p, at, cel_of_uint(u));
	}
	if (t->kind == CEL_T_INT) {
		if (!magnitude(text, &u) || u > (uint64_t)INT64_MAX + minus)
			return bad_literal(p, at, "invalid int literal");
		return literal(p, at, cel_of_int(minus ? (int64_t)(0 - u) : (int64_t)u));
	}
	str copy = arena_str(p->arena, text);
	errno = 0;
	double d = strtod(copy.p, NULL);
	if (errno == ERANGE && d > 1)
		return bad_literal(p, at, "invalid double literal");
	return literal(p, at, cel_of_double(minus ? -d : d));
}

static struct cel_node *parse_text(struct cel_parser *p)
{
	const struct cel_token *t = p->t++;
	str text;

	if (!cel_unquote(p->issues, p->arena, t, &text))
		return bad_node(p, t->at);
	return literal(p, t->at, t->kind == CEL_T_BYTES ? cel_of_bytes(text) : cel_of_str(text));
}

/* ---- aggregates ---- */

static struct cel_node *parse_list(struct cel_parser *p)
{
	struct cel_node *n = cel_node_new(p, CEL_N_LIST, p->t->at);
	struct nodes items = { 0 };
	bool any_optional = false;
	uint32_t cap = 0;
	bool *optional = NULL;

	p->t++;
	if (!next_is(p, CEL_T_RBRACKET) && !(next_is(p, CEL_T_COMMA) && accept(p, CEL_T_COMMA))) {
		do {
			if (items.n == cap) {
				bool *more = ARENA_ARRAY(p->arena, bool, cap ? cap * 2 : 8);
				if (cap)
					memcpy(more, optional, cap);
				optional = more;
				cap = cap ? cap * 2 : 8;
			}
			optional[items.n] = accept(p, CEL_T_QUESTION);
			any_optional |= optional[items.n];
			struct cel_node *item = parse_expr(p, expect_expr);
			nodes_add(p, &items, item);
			stands_on(p, n, item);
		} while (more_elements(p, CEL_T_RBRACKET, "{']', ','}"));
	}
	expect(p, CEL_T_RBRACKET, true);
	n->list.items = items.list;
	n->list.n = (uint32_t)items.n;
	n->list.optional = any_optional ? optional : NULL;
	return n;
}

/* What stands before the colon: a key, or the name of a field. */
static void parse_key(struct cel_parser *p, struct cel_node *n, struct cel_entry *e)
{
	e->optional = accept(p, CEL_T_QUESTION);
	if (n->kind == CEL_N_MAP) {
		e->key = parse_expr(p, expect_expr);
		stands_on(p, n, e->key);
		return;
	}
	if (next_is(p, CEL_T_ESC_IDENT)) {
		cel_issue(p->issues, p->t->at, "unsupported syntax: '`'");
		p->stop = true;
	} else if (!next_is(p, CEL_T_IDENT)) {
		mismatch(p, "{IDENTIFIER, ESC_IDENTIFIER}");
	} else {
		e->field = token_text(p, p->t++);
		e->name = atom_make(p->arena, e->field);
	}
}

/* The entries of a map or of an object, from its brace on. */
static struct cel_node *parse_entries(struct cel_parser *p, enum cel_node_kind kind, str type_name)
{
	struct cel_node *n = cel_node_new(p, kind, p->t->at);
	uint32_t cap = 0;

	n->map.type_name = type_name;
	p->t++;
	if (!next_is(p, CEL_T_RBRACE) && !(next_is(p, CEL_T_COMMA) && accept(p, CEL_T_COMMA))) {
		do {
			if (n->map.n == cap) {
				struct cel_entry *more = ARENA_ARRAY(p->arena, struct cel_entry, cap ? cap * 2 : 4);
				if (cap)
					memcpy(more, n->map.entries, cap * sizeof(*more));
				n->map.entries = more;
				cap = cap ? cap * 2 : 4;
			}
			struct cel_entry e = { 0 };
			parse_key(p, n, &e);
			e.at = p->t->at;
			expect(p, CEL_T_COLON, false);
			e.val = parse_expr(p, expect_expr);
			stands_on(p, n, e.val);
			n->map.entries[n->map.n++] = e;
		} while (more_elements(p, CEL_T_RBRACE, "{'}', ','}"));
	}
	expect(p, CEL_T_RBRACE, true);
	return n;
}

/* ---- names ---- */

static bool is_reserved(str word)
{
	static const str words[] = {
		STR_INIT("as"), STR_INIT("break"), STR_INIT("const"), STR_INIT("continue"), STR_INIT("else"), STR_INIT("for"),
		STR_INIT("function"), STR_INIT("if"), STR_INIT("import"), STR_INIT("let"), STR_INIT("loop"), STR_INIT("package"),
		STR_INIT("namespace"), STR_INIT("return"), STR_INIT("var"), STR_INIT("void"), STR_INIT("while"),
	};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(words[i], word))
			return true;
	return false;
}

/* Whether a.b.c{ stands here: the making of an object. */
static bool object_follows(const struct cel_token *t)
{
	while (t[0].kind == CEL_T_IDENT && t[1].kind == CEL_T_DOT)
		t += 2;
	return t[0].kind == CEL_T_IDENT && t[1].kind == CEL_T_LBRACE;
}

static struct nodes parse_args(struct cel_parser *p)
{
	struct nodes args = { 0 };
	const char *expected = expect_args;

	p->t++;
	if (accept(p, CEL_T_RPAREN))
		return args;
	do {
		nodes_add(p, &args, parse_expr(p, expected));
		expected = expect_expr;
	} while (accept(p, CEL_T_COMMA));
	expect(p, CEL_T_RPAREN, true);
	return args;
}

static struct cel_node *parse_name(struct cel_parser *p)
{
	uint32_t at = p->t->at;
	bool dot = accept(p, CEL_T_DOT);

	if (!next_is(p, CEL_T_IDENT)) {
		str text = token_text(p, p->t);
		if (!p->stop)
			cel_issue(p->issues, p->t->at, "Syntax error: no viable alternative at input '." STR_FMT "'",
				  STR_ARG((p->t->kind == CEL_T_EOF ? STR("") : text)));
		p->stop = true;
		return bad_node(p, at);
	}
	str name = token_text(p, p->t);
	if (object_follows(p->t)) {
		const char *begin = name.p;
		while (p->t->kind != CEL_T_LBRACE)
			p->t++;
		name = str_span(begin, (size_t)(token_text(p, p->t - 1).p + p->t[-1].n - begin));
		return parse_entries(p, CEL_N_OBJECT, name);
	}
	const struct cel_token *t = p->t++;
	if (is_reserved(name)) {
		cel_issue(p->issues, at, "reserved identifier: " STR_FMT, STR_ARG(name));
		if (next_is(p, CEL_T_LPAREN))
			parse_args(p);
		return bad_node(p, at);
	}
	if (dot)
		name = arena_join(p->arena, STR("."), name);
	if (next_is(p, CEL_T_LPAREN)) {
		uint32_t open = p->t->at;
		struct nodes args = parse_args(p);
		return call_or_macro(p, open, name, NULL, args.list, args.n);
	}
	struct cel_node *n = cel_node_new(p, CEL_N_IDENT, t->at);
	n->ident.name = name;
	return n;
}

static struct cel_node *parse_primary(struct cel_parser *p, const char *expected)
{
	uint8_t kind = p->t->kind;
	uint32_t at = p->t->at;

	if (p->stop)
		return bad_node(p, at);
	switch (kind) {
	case CEL_T_LPAREN: {
		p->t++;
		struct cel_node *n = parse_expr(p, expect_expr);
		expect(p, CEL_T_RPAREN, true);
		return n;
	}
	case CEL_T_LBRACKET:
		return parse_list(p);
	case CEL_T_LBRACE:
		return parse_entries(p, CEL_N_MAP, STR(""));
	case CEL_T_TRUE:
	case CEL_T_FALSE:
		p->t++;
		return literal(p, at, cel_of_bool(kind == CEL_T_TRUE));
	case CEL_T_NUL:
		p->t++;
		return literal(p, at, cel_of_null());
	case CEL_T_STRING:
	case CEL_T_BYTES:
		return parse_text(p);
	case CEL_T_INT:
	case CEL_T_UINT:
	case CEL_T_FLOAT:
		return parse_number(p);
	case CEL_T_DOT:
	case CEL_T_IDENT:
		return parse_name(p);
	case CEL_T_MINUS:
		if (second(p)->kind == CEL_T_INT || second(p)->kind == CEL_T_FLOAT)
			return parse_number(p);
		break;
	default:
		break;
	}
	mismatch(p, expected);
	return bad_node(p, at);
}

/* ---- operators ---- */

static struct cel_node *parse_select(struct cel_parser *p, struct cel_node *operand)
{
	uint32_t dot = p->t++->at;
	bool optional = accept(p, CEL_T_QUESTION);

	if (next_is(p, CEL_T_ESC_IDENT)) {
		cel_issue(p->issues, p->t++->at, "unsupported syntax: '`'");
		return bad_node(p, dot);
	}
	if (!next_is(p, CEL_T_IDENT)) {
		str text = p->t->kind == CEL_T_EOF ? STR("") : token_text(p, p->t);
		if (!p->stop && p->t->kind >= CEL_T_TRUE && p->t->kind < CEL_T_IDENT)
			complain(p, "mismatched", "IDENTIFIER");
		else if (!p->stop)
			cel_issue(p->issues, p->t->at, "Syntax error: no viable alternative at input '.%s" STR_FMT "'", optional ? "?" : "",
				  STR_ARG(text));
		p->stop = true;
		return bad_node(p, dot);
	}
	const struct cel_token *word = p->t++;
	str name = token_text(p, word);
	if (!optional && next_is(p, CEL_T_LPAREN)) {
		uint32_t open = p->t->at;
		struct nodes args = parse_args(p);
		return call_or_macro(p, open, name, operand, args.list, args.n);
	}
	struct cel_node *n = cel_node_new(p, CEL_N_SELECT, dot);
	n->select.operand = operand;
	n->select.field = name;
	n->select.name = atom_make(p->arena, name);
	n->select.optional = optional;
	stands_on(p, n, operand);
	return n;
}

static struct cel_node *parse_index(struct cel_parser *p, struct cel_node *operand)
{
	uint32_t at = p->t++->at;
	bool optional = accept(p, CEL_T_QUESTION);
	struct cel_node *index = parse_expr(p, optional ? expect_expr : expect_index);

	expect(p, CEL_T_RBRACKET, true);
	return binary(p, at, optional ? STR("_[?_]") : STR("_[_]"), operand, index);
}

static struct cel_node *parse_member(struct cel_parser *p, const char *expected)
{
	struct cel_node *n = parse_primary(p, expected);

	while (!p->stop)
		if (p->t->kind == CEL_T_DOT)
			n = parse_select(p, n);
		else if (p->t->kind == CEL_T_LBRACKET)
			n = parse_index(p, n);
		else
			break;
	return n;
}

static struct cel_node *parse_unary(struct cel_parser *p, const char *expected)
{
	const struct cel_token *t = p->t;
	bool number = t->kind == CEL_T_MINUS && (second(p)->kind == CEL_T_INT || second(p)->kind == CEL_T_FLOAT);

	/* A token that cannot begin anything here is skipped when the next one can go on. */
	bool goes_on = begins_expr(second(p)->kind) || (expected == expect_args && second(p)->kind == CEL_T_RPAREN);
	if (!p->stop && !begins_expr(t->kind) && goes_on && t->kind != CEL_T_EOF) {
		complain(p, "extraneous", expected);
		t = ++p->t;
		p->stop |= !begins_expr(t->kind);
	}
	if ((t->kind != CEL_T_NOT && t->kind != CEL_T_MINUS) || number || p->stop)
		return parse_member(p, expected);
	unsigned times = 0;
	while (p->t->kind == t->kind) {
		times++;
		p->t++;
	}
	struct cel_node *operand = parse_member(p, expect_expr);
	if (times % 2 == 0)
		return operand;
	struct cel_node **args = ARENA_ARRAY(p->arena, struct cel_node *, 1);
	args[0] = operand;
	return cel_node_call(p, t->at, t->kind == CEL_T_NOT ? STR("!_") : STR("-_"), NULL, args, 1);
}

static const struct {
	uint8_t level; /* 0: no operator */
	str name;
} operators[] = {
	[CEL_T_OR] = { 1, STR_INIT("_||_") },    [CEL_T_AND] = { 2, STR_INIT("_&&_") },  [CEL_T_EQ] = { 3, STR_INIT("_==_") },
	[CEL_T_NE] = { 3, STR_INIT("_!=_") },    [CEL_T_LT] = { 3, STR_INIT("_<_") },    [CEL_T_LE] = { 3, STR_INIT("_<=_") },
	[CEL_T_GT] = { 3, STR_INIT("_>_") },     [CEL_T_GE] = { 3, STR_INIT("_>=_") },   [CEL_T_IN] = { 3, STR_INIT("@in") },
	[CEL_T_PLUS] = { 4, STR_INIT("_+_") },   [CEL_T_MINUS] = { 4, STR_INIT("_-_") }, [CEL_T_STAR] = { 5, STR_INIT("_*_") },
	[CEL_T_SLASH] = { 5, STR_INIT("_/_") },  [CEL_T_PERCENT] = { 5, STR_INIT("_%_") }, [CEL_T_EOF] = { 0, { NULL, 0 } },
};

static struct cel_node *parse_binary(struct cel_parser *p, unsigned level, const char *expected)
{
	if (++p->frames > FRAMES_MAX)
		too_deep(p);
	struct cel_node *left = parse_unary(p, expected);

	while (!p->stop && operators[p->t->kind].level >= level && operators[p->t->kind].level) {
		const struct cel_token *op = p->t;
		unsigned own = operators[op->kind].level;
		if (own > 2) {
			p->t++;
			left = binary(p, op->at, operators[op->kind].name, left, parse_binary(p, own + 1, expect_expr));
			continue;
		}
		/* && and || of any length are one node. */
		struct nodes terms = { 0 };
		nodes_add(p, &terms, left);
		while (accept(p, op->kind))
			nodes_add(p, &terms, parse_binary(p, own + 1, expect_expr));
		left = cel_node_call(p, op->at, operators[op->kind].name, NULL, terms.list, terms.n);
	}
	p->frames--;
	return left;
}

static struct cel_node *parse_expr(struct cel_parser *p, const char *expected)
{
	p->frames += EXPR_FRAMES;
	if (++p->depth > CEL_DEPTH_MAX)
		too_deep(p);
	struct cel_node *n = p->stop ? bad_node(p, p->t->at) : parse_binary(p, 1, expected);
	if (next_is(p, CEL_T_QUESTION)) {
		uint32_t at = p->t++->at;
		struct cel_node **args = ARENA_ARRAY(p->arena, struct cel_node *, 3);
		args[0] = n;
		args[1] = parse_binary(p, 1, expect_expr);
		expect(p, CEL_T_COLON, false);
		args[2] = parse_expr(p, expect_expr);
		n = cel_node_call(p, at, STR("_?_:_"), NULL, args, 3);
	}
	p->depth--;
	p->frames -= EXPR_FRAMES;
	return n;
}

struct cel_node *cel_parse(const struct cel_env *env, struct cel_issues *e, struct arena *a)
{
	size_t runes = cel_runes(e->source);

	if (runes > CEL_SOURCE_MAX) {
		cel_issue(e, CEL_NOWHERE, "expression code point size exceeds limit: size: %zu, limit %d", runes, CEL_SOURCE_MAX);
		return NULL;
	}
	struct cel_parser p = { .issues = e, .arena = a, .env = env };
	p.t = cel_lex(e, a);
	struct cel_node *n = parse_expr(&p, expect_expr);
	if (!p.stop && p.t->kind != CEL_T_EOF)
		complain(&p, second(&p)->kind == CEL_T_EOF ? "extraneous" : "mismatched", "<EOF>");
	return e->total ? NULL : n;
}
