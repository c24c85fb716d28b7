/* Compiling: the errors of a source as cel-go shows them, the functions of an environment, programs and their lives. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "machinery/cel_priv.h"

/* ---- errors ---- */

void cel_issue(struct cel_issues *e, uint32_t at, const char *fmt, ...)
{
	va_list ap;

	if (e->total++ >= CEL_ERRORS_MAX)
		return;
	va_start(ap, fmt);
	e->list[e->n++] = (struct cel_issue){ at, arena_vprintf(e->arena, fmt, ap) };
	va_end(ap);
}

static int issue_order(const void *a, const void *b)
{
	const struct cel_issue *x = a, *y = b;

	/* No place sorts before all places. */
	uint32_t p = x->at + 1, q = y->at + 1;
	return p < q ? -1 : p > q;
}

enum { SNIPPET_MAX = 16384, TEXT_MAX = 256 * 1024 };

/* The source's line with a caret under the column; a wide dot stands for a character of several bytes. */
static void add_snippet(struct buf *b, str line, size_t column)
{
	size_t i = 0;

	if (line.n > SNIPPET_MAX)
		return;
	buf_add(b, STR("\n | "));
	for (size_t k = 0; k < line.n; k++)
		buf_addc(b, line.p[k] == '\t' ? ' ' : line.p[k]);
	buf_add(b, STR("\n | "));
	for (; column && i < line.n; column--) {
		size_t n = MAX(str_rune(str_skip(line, i), NULL), (size_t)1);
		buf_add(b, n > 1 ? STR("\xef\xbc\x8e") : STR("."));
		i += n;
	}
	buf_add(b, str_rune(str_skip(line, i), NULL) > 1 ? STR("\xef\xbc\xbe") : STR("^"));
}

static void add_issue(struct buf *b, str source, const struct cel_issue *issue)
{
	size_t begin = 0, line = 1;

	if (issue->at == CEL_NOWHERE || !source.n) {
		buf_addf(b, "ERROR: <input>:%d:0: " STR_FMT, issue->at == CEL_NOWHERE ? -1 : 1, STR_ARG(issue->text));
		return;
	}
	for (size_t i = 0; i < issue->at; i++)
		if (source.p[i] == '\n') {
			begin = i + 1;
			line++;
		}
	size_t column = cel_runes(str_span(source.p + begin, issue->at - begin));
	buf_addf(b, "ERROR: <input>:%zu:%zu: " STR_FMT, line, column + 1, STR_ARG(issue->text));
	str rest = str_skip(source, begin);
	ptrdiff_t end = str_chr(rest, '\n');
	add_snippet(b, end >= 0 ? str_head(rest, (size_t)end) : rest, column);
}

str cel_issues_text(struct cel_issues *e)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	/* Insertion order is kept among equals: their number is small. */
	for (size_t i = 1; i < e->n; i++)
		for (size_t k = i; k > 0 && issue_order(&e->list[k], &e->list[k - 1]) < 0; k--) {
			struct cel_issue swap = e->list[k];
			e->list[k] = e->list[k - 1];
			e->list[k - 1] = swap;
		}
	for (size_t i = 0; i < e->n; i++) {
		buf_add(&b, i ? STR("\n") : STR(""));
		add_issue(&b, e->source, &e->list[i]);
	}
	if (e->total > e->n)
		buf_addf(&b, "\n%zu more errors were truncated", e->total - e->n);
	return arena_str(e->arena, buf_str(&b));
}

/* ---- functions ---- */

static const struct cel_library *const libraries[] = { &cel_lib_op, &cel_lib_match, &cel_lib_convert, &cel_lib_time, &cel_lib_string,
						       &cel_lib_list, &cel_lib_net, &cel_lib_kube, &cel_lib_optional };

static size_t count_named(const struct cel_overload *list, size_t n, str name, const struct cel_overload **out)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (list[i].name[0] == name.p[0] && str_eq(str_of(list[i].name), name)) {
			if (out)
				out[found] = &list[i];
			found++;
		}
	return found;
}

static size_t find_overloads(const struct cel_env *env, str name, const struct cel_overload **out)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
		n += count_named(libraries[i]->overloads, libraries[i]->n, name, out ? out + n : NULL);
	return n + count_named(env->overloads, env->n_overloads, name, out ? out + n : NULL);
}

size_t cel_overloads(const struct cel_env *env, struct arena *a, str name, const struct cel_overload *const **ret)
{
	size_t n = name.n ? find_overloads(env, name, NULL) : 0;

	if (!n)
		return 0;
	const struct cel_overload **list = ARENA_ARRAY(a, const struct cel_overload *, n);
	find_overloads(env, name, list);
	*ret = list;
	return n;
}

bool cel_overload_is_lenient(const struct cel_overload *o)
{
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
		if (o >= libraries[i]->overloads && o < libraries[i]->overloads + libraries[i]->n)
			return libraries[i]->lenient;
	return false;
}

/* ---- programs ---- */

void cel_program_free(struct cel_program *p)
{
	if (!p)
		return;
	arena_done(&p->arena);
	free(p);
}

void cel_program_freep(struct cel_program **p) { cel_program_free(*p); }

const struct cel_type *cel_program_type(const struct cel_program *p) { return p->root->type; }
uint64_t cel_program_max_cost(const struct cel_program *p) { return p->max_cost; }
bool cel_program_uses(const struct cel_program *p, size_t var) { return p->uses[var]; }

int cel_compile(const struct cel_env *env, str source, struct arena *a, struct cel_program **ret_program, str *ret_why)
{
	CLEANUP(cel_program_freep) struct cel_program *p = mem_zalloc(sizeof(*p));
	struct cel_issues issues = { .arena = a, .list = ARENA_ARRAY(a, struct cel_issue, CEL_ERRORS_MAX) };

	p->env = env;
	arena_init(&p->arena);
	issues.source = arena_str(&p->arena, source);
	p->root = cel_parse(env, &issues, &p->arena);
	if (p->root && cel_check(p, &issues))
		cel_check_literals(p, &issues);
	if (issues.total) {
		issues.source = source;
		*ret_why = cel_issues_text(&issues);
		return -ERR_INVALID;
	}
	p->max_cost = cel_estimate(p, a);
	if (cel_plan(p, ret_why) < 0) {
		*ret_why = arena_str(a, *ret_why);
		return -ERR_INTERNAL;
	}
	if (ret_program)
		*ret_program = TAKE(p);
	return 0;
}
