#include "kubectl/flags.h"

#include <errno.h>
#include <stdlib.h>

#include "codec/time.h"

/* ---- values ---- */

bool ktl_parse_bool(str text, bool *ret)
{
	static const char *const words[2][6] = { { "0", "f", "F", "false", "FALSE", "False" }, { "1", "t", "T", "true", "TRUE", "True" } };
	for (size_t i = 0; i < 12; i++)
		if (str_eq(text, str_of(words[i / 6][i % 6]))) {
			*ret = i >= 6;
			return true;
		}
	return false;
}

static void add_text(struct arena *a, struct ktl_texts *list, const char *text)
{
	const char **more = ARENA_ARRAY(a, const char *, list->n + 1);
	if (list->n)
		memcpy(more, list->v, list->n * sizeof(*more));
	more[list->n++] = text;
	list->v = more;
}

static void add_list(struct arena *a, struct ktl_texts *list, const char *text)
{
	str item, rest = str_of(text);
	while (rest.n) {
		(void)str_cut(rest, ',', &item, &rest);
		add_text(a, list, arena_str(a, item).p);
	}
}

/* What Go's strconv says of a text that is no number. */
static int bad_number(const char *text, bool range, struct err *err)
{
	return err_set(err, ERR_BAD_REQUEST, "strconv.ParseInt: parsing \"%s\": %s", text, range ? "value out of range" : "invalid syntax");
}

static int parse_int(const char *text, int64_t *ret, struct err *err)
{
	char *end;
	errno = 0;
	long long v = strtoll(text, &end, 0);
	if (end == text || *end || text[0] == ' ')
		return bad_number(text, false, err);
	if (errno == ERANGE)
		return bad_number(text, true, err);
	*ret = v;
	return 0;
}

static int set_value(struct arena *a, const struct ktl_flag *f, char *target, const char *text, struct err *err)
{
	void *member = target + f->offset;
	switch (f->type) {
	case KTL_BOOL:
		return ktl_parse_bool(str_of(text), member) ?
			       0 : err_set(err, ERR_BAD_REQUEST, "strconv.ParseBool: parsing \"%s\": invalid syntax", text);
	case KTL_STRING:
		*(const char **)member = text;
		return 0;
	case KTL_INT:
		return parse_int(text, member, err);
	case KTL_DURATION:
		return duration_parse(str_of(text), member, err);
	case KTL_LIST:
		add_list(a, member, text);
		return 0;
	case KTL_ARRAY:
		add_text(a, member, text);
		return 0;
	}
	return 0;
}

static void set_initial(struct arena *a, const struct ktl_flag *f, char *target)
{
	if (f->initial || f->type == KTL_STRING)
		(void)set_value(a, f, target, f->initial ? f->initial : "", NULL);
}

/* ---- rows ---- */

/* A flag and the struct that it fills. */
struct found {
	const struct ktl_flag *flag;
	char *target;
};

static struct found find_in(const struct ktl_flag *table, char *target, str name, char letter)
{
	for (const struct ktl_flag *f = table; f && f->name; f++)
		if (letter ? f->letter == letter : str_eq(name, str_of(f->name)))
			return (struct found){ f, target };
	return (struct found){ 0 };
}

static struct found find(const struct ktl_flags *f, str name, char letter)
{
	struct found x = { 0 };
	for (const struct ktl_flag_set *s = f->sets; s && s->flags && !x.flag; s++)
		x = find_in(s->flags, (char *)f->target + s->offset, name, letter);
	return x.flag ? x : find_in(f->globals, f->global_target, name, letter);
}

bool ktl_flag_given(const struct ktl_flags *f, const char *name)
{
	for (size_t i = 0; i < f->n_given; i++)
		if (strcmp(f->given[i]->name, name) == 0)
			return true;
	return false;
}

/* ---- the command line ---- */

struct parse {
	struct ktl_flags *f;
	struct arena *arena;
	int argc, at;
	char **argv;
	struct err *err;
};

static int give(struct parse *p, const struct found *x, const char *value)
{
	struct ktl_flags *f = p->f;
	struct err why = ERR_INIT;
	int r = set_value(p->arena, x->flag, x->target, value, &why);
	if (r < 0) {
		char letter[] = { '-', x->flag->letter, ',', ' ', '\0' };
		return err_set(p->err, ERR_BAD_REQUEST, "invalid argument \"%s\" for \"%s--%s\" flag: %s", value, x->flag->letter ? letter : "",
			       x->flag->name, why.msg);
	}
	f->given[f->n_given++] = x->flag;
	return 0;
}

/* Its value when none is attached: none needed, or the next argument; NULL: there is none. */
static const char *next_value(struct parse *p, const struct ktl_flag *f)
{
	if (f->type == KTL_BOOL && !f->bare)
		return "true";
	if (f->bare)
		return f->bare;
	return p->at + 1 < p->argc ? p->argv[++p->at] : NULL;
}

static int parse_long(struct parse *p, const char *arg)
{
	str name, value;
	bool attached = str_cut(str_of(arg + 2), '=', &name, &value);
	struct found x = find(p->f, name, 0);
	if (!x.flag && str_eq(name, STR("help"))) {
		p->f->help = true;
		return 0;
	}
	if (!x.flag)
		return err_set(p->err, ERR_BAD_REQUEST, "unknown flag: --" STR_FMT, STR_ARG(name));
	const char *text = attached ? arena_str(p->arena, value).p : next_value(p, x.flag);
	if (!text)
		return err_set(p->err, ERR_BAD_REQUEST, "flag needs an argument: %s", arg);
	return give(p, &x, text);
}

/* -it, -n value, -nvalue, -n=value */
static int parse_short(struct parse *p, const char *arg)
{
	for (const char *c = arg + 1; *c; c++) {
		struct found x = find(p->f, STR_NONE, *c);
		if (!x.flag && *c == 'h') {
			p->f->help = true;
			return 0;
		}
		if (!x.flag)
			return err_set(p->err, ERR_BAD_REQUEST, "unknown shorthand flag: '%c' in -%s", *c, c);
		bool alone = x.flag->type == KTL_BOOL || x.flag->bare;
		const char *text = c[1] == '=' ? c + 2 : c[1] && !alone ? c + 1 : next_value(p, x.flag);
		if (!text)
			return err_set(p->err, ERR_BAD_REQUEST, "flag needs an argument: '%c' in -%s", *c, c);
		int r = give(p, &x, text);
		if (r < 0)
			return r;
		if (text == c + 2 || text == c + 1 || !alone)
			break;
	}
	return 0;
}

static void set_all_initial(struct ktl_flags *f, struct arena *a)
{
	for (const struct ktl_flag_set *s = f->sets; s && s->flags; s++)
		for (const struct ktl_flag *row = s->flags; row->name; row++)
			set_initial(a, row, (char *)f->target + s->offset);
	for (const struct ktl_flag *row = f->globals; row && row->name; row++)
		set_initial(a, row, f->global_target);
}

int ktl_flags_parse(struct ktl_flags *f, struct arena *a, int argc, char **argv, struct err *err)
{
	struct parse p = { .f = f, .arena = a, .argc = argc, .argv = argv, .err = err };
	f->dash = -1;
	f->args = (struct ktl_texts){ ARENA_ARRAY(a, const char *, (size_t)argc + 1), 0 };
	/* Letters may stand together, so there can be more flags than arguments. */
	size_t most = 1;
	for (int i = 0; i < argc; i++)
		most += strlen(argv[i]);
	f->given = ARENA_ARRAY(a, const struct ktl_flag *, most);
	set_all_initial(f, a);
	for (; p.at < argc; p.at++) {
		const char *arg = argv[p.at];
		int r = 0;
		if (strcmp(arg, "--") == 0) {
			f->dash = (ptrdiff_t)f->args.n;
			while (++p.at < argc)
				f->args.v[f->args.n++] = argv[p.at];
			return 0;
		}
		if (arg[0] != '-' || !arg[1])
			f->args.v[f->args.n++] = arg;
		else
			r = arg[1] == '-' ? parse_long(&p, arg) : parse_short(&p, arg);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- help ---- */

static const char *shown_default(const struct ktl_flag *f)
{
	static const char *const zeros[] = { [KTL_BOOL] = "false", [KTL_STRING] = "", [KTL_INT] = "0", [KTL_DURATION] = "0s", [KTL_LIST] = "",
					     [KTL_ARRAY] = "" };
	return f->initial ? f->initial : zeros[f->type];
}

void ktl_flags_describe(struct buf *b, const struct ktl_flag *flags)
{
	for (const struct ktl_flag *f = flags; f->name; f++) {
		if (!f->help)
			continue;
		const char *quote = f->type == KTL_STRING ? "'" : "";
		bool list = f->type == KTL_LIST || f->type == KTL_ARRAY;
		if (f->letter)
			buf_addf(b, "    -%c, ", f->letter);
		else
			buf_add(b, STR("    "));
		buf_addf(b, "--%s=%s%s%s%s%s:\n\t%s\n\n", f->name, list ? "[" : "", quote, shown_default(f), quote, list ? "]" : "", f->help);
	}
}
