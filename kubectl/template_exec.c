/*
 * Running a template. The node that an error names is the one looked at last, as in Go; so every step notes where it is. Steps return a
 * negative number after a failure, and one of enum jump where a loop is left or begun again.
 */
#include "kubectl/template_priv.h"

enum jump { JUMP_BREAK = 1, JUMP_CONTINUE };

struct variable {
	str name;
	struct template_value value;
	struct variable *before;
};

struct run {
	const struct template *template;
	const struct template_tree *tree;
	const struct template_options *options;
	struct arena *arena;
	struct buf *out;
	struct err *err;
	const struct template_node *at;
	struct variable *variables;
	size_t work, depth;
};

static const struct template_value no_value = { .v = { .type = VAL_NONE } };

/* ---- values ---- */

struct template_value template_of_data(struct val v)
{
	return (struct template_value){ val_is(v, VAL_INT) ? val_of_double((double)v.i) : v, val_exists(v) ? VALUE_INTERFACE : VALUE_PLAIN };
}

struct template_value template_inside(struct template_value v)
{
	if (v.how != VALUE_INTERFACE)
		return v;
	return val_is_nil(v.v) ? no_value : template_plain(v.v);
}

bool template_is_true(struct template_value v)
{
	switch (v.v.type) {
	case VAL_BOOL: return v.v.b;
	case VAL_INT: return v.v.i != 0;
	case VAL_DOUBLE: return v.v.d != 0;
	case VAL_STRING: return v.v.n > 0;
	default: return val_len(v.v) > 0;
	}
}

const char *template_type_name(struct template_value v)
{
	static const char *const names[] = {
		[VAL_NONE] = "<nil>", [VAL_NULL] = "<nil>", [VAL_BOOL] = "bool", [VAL_INT] = "int", [VAL_DOUBLE] = "float64", [VAL_STRING] = "string",
		[VAL_RAW] = "string", [VAL_LIST] = "[]interface {}", [VAL_OBJECT] = "map[string]interface {}",
	};
	return v.how == VALUE_INTERFACE ? "interface {}" : v.how == VALUE_BYTE ? "uint8" : names[v.v.type];
}

/* ---- errors and bounds ---- */

static int fail(struct run *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

static int fail(struct run *s, const char *fmt, ...)
{
	CLEANUP(buf_done) struct buf where = BUF_INIT(sizeof(s->err->msg)), name = BUF_INIT(sizeof(s->err->msg));
	str before = str_head(s->template->text, s->at->pos);
	ptrdiff_t line = str_rchr(before, '\n');
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(s->arena, fmt, ap);
	va_end(ap);
	template_add_node(&where, s->at);
	buf_add_quoted(&name, s->tree->name);
	return err_set(s->err, ERR_BAD_REQUEST, "template: " STR_FMT ":%u:%zu: executing " STR_FMT " at <" STR_FMT ">: " STR_FMT,
		       STR_ARG(s->template->name), template_line(before, before.n), before.n - (size_t)(line + 1), STR_ARG(buf_str(&name)),
		       STR_ARG(buf_str(&where)), STR_ARG(text));
}

static int work(struct run *s, size_t n)
{
	if (n > s->work)
		return fail(s, "the template does too much");
	s->work -= n;
	return 0;
}

static int fail_depth(struct run *s) { return fail(s, "exceeded maximum template depth (%d)", TEMPLATE_DEPTH_MAX); }

static int deeper(struct run *s) { return ++s->depth > TEMPLATE_DEPTH_MAX ? fail_depth(s) : work(s, 1); }

/* ---- variables ---- */

static int push(struct run *s, str name, struct template_value v)
{
	int r = work(s, sizeof(struct variable));
	if (r < 0)
		return r;
	struct variable *new = ARENA_NEW(s->arena, struct variable);
	*new = (struct variable){ name, v, s->variables };
	s->variables = new;
	return 0;
}

static struct variable *find(const struct run *s, str name)
{
	struct variable *v = s->variables;
	while (v && !str_eq(v->name, name))
		v = v->before;
	return v;
}

static int set(struct run *s, str name, struct template_value value)
{
	struct variable *v = find(s, name);
	if (!v)
		return fail(s, "undefined variable: " STR_FMT, STR_ARG(name));
	v->value = value;
	return 0;
}

/* ---- fields ---- */

static str quoted(struct run *s, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(sizeof(s->err->msg));
	buf_add_quoted(&b, text);
	return arena_str(s->arena, buf_str(&b));
}

static int eval_field(struct run *s, str name, bool arguments, struct template_value *v)
{
	if (!val_exists(v->v))
		return s->options->missing_is_error ? fail(s, "nil data; no entry for key " STR_FMT, STR_ARG(quoted(s, name))) : 0;
	if (v->how == VALUE_INTERFACE && val_is_nil(v->v))
		return fail(s, "nil pointer evaluating interface {}." STR_FMT, STR_ARG(name));
	if (!val_is(v->v, VAL_OBJECT))
		return fail(s, "can't evaluate field " STR_FMT " in type %s", STR_ARG(name), template_type_name(*v));
	if (arguments)
		return fail(s, STR_FMT " is not a method but has arguments", STR_ARG(name));
	*v = template_of_data(val_find(v->v, name));
	if (!val_exists(v->v) && s->options->missing_is_error)
		return fail(s, "map has no entry for key " STR_FMT, STR_ARG(quoted(s, name)));
	return 0;
}

/* ".a.b" of *v, in place. arguments: stand behind the last one. */
static int eval_fields(struct run *s, str path, bool arguments, struct template_value *v)
{
	int r = work(s, path.n);
	path = str_skip(path, 1);
	while (r == 0 && path.n) {
		str name;
		(void)str_cut(path, '.', &name, &path);
		r = eval_field(s, name, arguments && !path.n, v);
	}
	return r;
}

/* ---- commands ---- */

static int eval_pipe(struct run *s, struct template_value dot, const struct template_node *pipe, struct template_value *ret);
static int eval_word(struct run *s, struct template_value dot, const struct template_node *n, bool arguments, struct template_value *ret);

static str shown(struct run *s, const struct template_node *n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(sizeof(s->err->msg));
	if (n)
		template_add_node(&b, n);
	return arena_str(s->arena, buf_str(&b));
}

/* A value as a parameter of a type wants it. */
static int convert(struct run *s, char type, struct template_value *v)
{
	if (type != 's') {
		if (type == 'a')
			*v = template_inside(*v);
		return 0;
	}
	if (!val_exists(v->v))
		return fail(s, "invalid value; expected string");
	if (val_is(v->v, VAL_STRING)) {
		v->how = VALUE_PLAIN;
		return 0;
	}
	if (!val_is_nil(v->v))
		*v = template_inside(*v);
	return fail(s, "wrong type for value; expected string; got %s", template_type_name(*v));
}

static int eval_argument(struct run *s, struct template_value dot, const struct template_node *n, char type, struct template_value *ret)
{
	s->at = n;
	if (n->type == NODE_NIL) {
		*ret = no_value;
		return type == 's' ? fail(s, "cannot assign nil to string") : 0;
	}
	if (type == 's' && (n->type == NODE_BOOL || n->type == NODE_NUMBER))
		return fail(s, "expected string; found " STR_FMT, STR_ARG(n->text));
	int r = eval_word(s, dot, n, false, ret);
	return r < 0 ? r : convert(s, type, ret);
}

static int eval_and_or(struct run *s, struct template_value dot, bool is_or, const struct template_node *args, const struct template_value *final,
		       struct template_value *ret)
{
	for (; args; args = args->next) {
		int r = eval_argument(s, dot, args, 'v', ret);
		if (r < 0)
			return r;
		if (template_is_true(*ret) == is_or)
			return 0;
	}
	if (final)
		*ret = *final;
	return 0;
}

static int check_count(struct run *s, const struct template_func *f, size_t written, size_t n)
{
	if (f->rest)
		return n < f->fixed ? fail(s, "wrong number of args for %s: want at least %d got %zu", f->name, f->fixed, written) : 0;
	return n != f->fixed ? fail(s, "wrong number of args for %s: want %d got %zu", f->name, f->fixed, n) : 0;
}

/* args: behind the name. command: what a failure is said of. */
static int eval_function(struct run *s, struct template_value dot, const struct template_node *name, const struct template_node *command,
			 const struct template_node *args, const struct template_value *final, struct template_value *ret)
{
	const struct template_func *f = name->func;
	size_t written = 0, n = 0;
	s->at = name;
	for (const struct template_node *a = args; a; a = a->next)
		written++;
	int r = check_count(s, f, written, written + !!final);
	if (r < 0)
		return r;
	if (!f->run)
		return eval_and_or(s, dot, f->detail == FUNC_OR, args, final, ret);
	if ((r = work(s, (written + 1) * sizeof(*ret))) < 0)
		return r;
	struct template_value *v = ARENA_ARRAY(s->arena, struct template_value, written + 1);
	for (const struct template_node *a = args; a && r == 0; a = a->next, n++)
		r = eval_argument(s, dot, a, n < f->fixed ? f->first : f->rest, &v[n]);
	if (r == 0 && final) {
		v[n] = *final;
		r = convert(s, n < f->fixed ? f->first : f->rest, &v[n]);
		n++;
	}
	if (r < 0)
		return r;
	struct template_call c = { .arena = s->arena, .func = f, .args = v, .n = n, .work = s->work, .problem = BUF_INIT(sizeof(s->err->msg)) };
	r = f->run(&c, ret);
	s->work = c.work;
	if (r < 0) {
		s->at = command;
		r = fail(s, "error calling %s: " STR_FMT, f->name, STR_ARG(buf_str(&c.problem)));
	}
	buf_done(&c.problem);
	return r;
}

/* One operand. arguments: it has some, which only functions take. */
static int eval_word(struct run *s, struct template_value dot, const struct template_node *n, bool arguments, struct template_value *ret)
{
	const struct variable *v;
	str head, path;
	int r;
	if (n->type != NODE_PIPE)
		s->at = n;
	*ret = dot;
	switch (n->type) {
	case NODE_FIELD: return eval_fields(s, n->text, arguments, ret);
	case NODE_CHAIN:
		r = eval_word(s, dot, n->parts.first, false, ret);
		return r < 0 ? r : eval_fields(s, n->text, arguments, ret);
	case NODE_VARIABLE:
		(void)str_cut(n->text, '.', &head, &path);
		if (!(v = find(s, head)))
			return fail(s, "undefined variable: " STR_FMT, STR_ARG(head));
		*ret = v->value;
		if (path.n)
			return eval_fields(s, str_skip(n->text, head.n), arguments, ret);
		break;
	case NODE_IDENTIFIER: return eval_function(s, dot, n, n, NULL, NULL, ret);
	default: break;
	}
	if (arguments)
		return fail(s, "can't give argument to non-function " STR_FMT, STR_ARG(n->type == NODE_PIPE ? shown(s, n) : n->text));
	switch (n->type) {
	case NODE_PIPE: return eval_pipe(s, dot, n, ret);
	case NODE_NIL: return fail(s, "nil is not a command");
	case NODE_NUMBER:
		if (!val_exists(n->value))
			return fail(s, STR_FMT " overflows int", STR_ARG(n->text));
		*ret = template_plain(n->value);
		return 0;
	case NODE_BOOL:
	case NODE_STRING: *ret = template_plain(n->value); return 0;
	default: return 0;
	}
}

static int eval_command(struct run *s, struct template_value dot, const struct template_node *command, const struct template_value *final,
			struct template_value *ret)
{
	const struct template_node *first = command->parts.first;
	if (first->type == NODE_IDENTIFIER)
		return eval_function(s, dot, first, command, first->next, final, ret);
	return eval_word(s, dot, first, first->next || final, ret);
}

static int eval_pipe(struct run *s, struct template_value dot, const struct template_node *pipe, struct template_value *ret)
{
	struct template_value v = no_value, before;
	s->at = pipe;
	int r = deeper(s);
	for (const struct template_node *c = pipe->parts.first; c && r == 0; c = c->next) {
		before = v;
		r = eval_command(s, dot, c, c == pipe->parts.first ? NULL : &before, &v);
		v = template_inside(v);
	}
	for (unsigned i = 0; i < pipe->n_declared && r == 0; i++)
		r = pipe->assign ? set(s, pipe->declared[i], v) : push(s, pipe->declared[i], v);
	s->depth--;
	*ret = v;
	return r;
}

/* ---- templates ---- */

static int walk(struct run *s, struct template_value dot, const struct template_node *first);

static int walk_if(struct run *s, struct template_value dot, const struct template_node *n)
{
	struct template_value v;
	int r = eval_pipe(s, dot, n->pipe, &v);
	if (r < 0)
		return r;
	if (template_is_true(v))
		return walk(s, n->type == NODE_WITH ? v : dot, n->then);
	return walk(s, dot, n->otherwise);
}

static int one_round(struct run *s, const struct template_node *n, struct template_value index, struct template_value item)
{
	const struct template_node *pipe = n->pipe;
	struct variable *variables = s->variables;
	int r = work(s, 1);
	if (r < 0)
		return r;
	if (pipe->assign) {
		if (pipe->n_declared && (r = set(s, pipe->declared[0], pipe->n_declared > 1 ? index : item)) < 0)
			return r;
		if (pipe->n_declared > 1 && (r = set(s, pipe->declared[1], item)) < 0)
			return r;
	} else if (pipe->n_declared) {
		variables->value = item;
		if (pipe->n_declared > 1)
			variables->before->value = index;
	}
	r = walk(s, item, n->then);
	s->variables = variables;
	return r == JUMP_CONTINUE ? 0 : r;
}

static int fail_range(struct run *s, const char *before, struct template_value v, const char *behind)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(sizeof(s->err->msg));
	template_add_value(&b, v, 'v');
	return fail(s, "%s " STR_FMT "%s", before, STR_ARG(buf_str(&b)), behind);
}

static int walk_range(struct run *s, struct template_value dot, const struct template_node *n)
{
	struct template_value v;
	int64_t rounds = 0;
	s->at = n;
	int r = eval_pipe(s, dot, n->pipe, &v);
	if (r < 0)
		return r;
	if (val_is(v.v, VAL_INT)) {
		if (n->pipe->n_declared > 1)
			return fail_range(s, "can't use", v, " to iterate over more than one variable");
		for (; rounds < v.v.i && r == 0; rounds++)
			r = one_round(s, n, no_value, (struct template_value){ val_of_int(rounds), v.how });
	} else if (val_is(v.v, VAL_LIST)) {
		for (; rounds < v.v.n && r == 0; rounds++)
			r = one_round(s, n, template_plain(val_of_int(rounds)), template_of_data(v.v.items[rounds]));
	} else if (val_is(v.v, VAL_OBJECT)) {
		struct val sorted = val_sorted(s->arena, v.v);
		for (; rounds < sorted.n && r == 0; rounds++)
			r = one_round(s, n, template_plain(val_of_str(atom_str(sorted.members[rounds].key))), template_of_data(sorted.members[rounds].val));
	} else if (val_exists(v.v)) {
		return fail_range(s, "range can't iterate over", v, "");
	}
	if (rounds == 0 && r == 0)
		return walk(s, dot, n->otherwise);
	return r == JUMP_BREAK ? 0 : r;
}

static int walk_template(struct run *s, struct template_value dot, const struct template_node *n)
{
	const struct template_tree *tree = s->template->trees, *outer = s->tree;
	struct variable *variables = s->variables;
	struct template_value v = no_value;
	while (tree && !str_eq(tree->name, n->text))
		tree = tree->next;
	if (!tree)
		return fail(s, "template " STR_FMT " not defined", STR_ARG(quoted(s, n->text)));
	if (s->depth + 1 > TEMPLATE_DEPTH_MAX)
		return fail_depth(s);
	int r = n->pipe ? eval_pipe(s, dot, n->pipe, &v) : 0;
	if (r < 0)
		return r;
	s->tree = tree;
	s->variables = NULL;
	if ((r = push(s, STR("$"), v)) == 0)
		r = walk(s, v, tree->root);
	if (r >= 0)
		s->tree = outer;
	s->variables = variables;
	return r;
}

static int walk_one(struct run *s, struct template_value dot, const struct template_node *n)
{
	struct variable *variables = s->variables;
	struct template_value v;
	int r = 0;
	s->at = n;
	switch (n->type) {
	case NODE_TEXT: buf_add(s->out, n->text); return work(s, n->text.n);
	case NODE_BREAK: return JUMP_BREAK;
	case NODE_CONTINUE: return JUMP_CONTINUE;
	case NODE_ACTION:
		if ((r = eval_pipe(s, dot, n->pipe, &v)) < 0 || n->pipe->n_declared)
			return r;
		size_t before = s->out->n;
		if (val_exists(v.v))
			template_add_value(s->out, v, 'v');
		else
			buf_add(s->out, STR("<no value>"));
		return work(s, s->out->n - before);
	case NODE_TEMPLATE: r = walk_template(s, dot, n); break;
	case NODE_RANGE: r = walk_range(s, dot, n); break;
	default: r = walk_if(s, dot, n); break;
	}
	s->variables = variables;
	return r;
}

static int walk(struct run *s, struct template_value dot, const struct template_node *first)
{
	if (!first)
		return 0;
	int r = deeper(s);
	for (const struct template_node *n = first; n && r == 0; n = n->next)
		r = walk_one(s, dot, n);
	s->depth--;
	return r;
}

int template_run(const struct template *t, struct arena *a, struct val data, const struct template_options *o, struct buf *out,
		 struct err *err)
{
	static const struct template_node nowhere = { .type = NODE_DOT };
	struct run s = { .template = t, .tree = t->trees, .options = o, .arena = a, .out = out, .err = err, .at = &nowhere, .work = o->work };
	struct template_value v = template_plain(val_is(data, VAL_INT) ? val_of_double((double)data.i) : data);
	while (s.tree && !str_eq(s.tree->name, t->name))
		s.tree = s.tree->next;
	if (!s.tree || push(&s, STR("$"), v) < 0)
		return err_set(err, ERR_BAD_REQUEST, "template: " STR_FMT ": the template cannot be run", STR_ARG(t->name));
	int r = walk(&s, v, s.tree->root);
	return r < 0 ? r : buf_check(out, "the output", err);
}
