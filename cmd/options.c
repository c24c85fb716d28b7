#include <stdarg.h>
#include <stdio.h>

#include "cmd/cmd.h"

int cmd_fail(const struct command *c, const struct err *err)
{
	fprintf(stderr, "c8s %s: %s\n", c->name, err->msg);
	return 1;
}

int cmd_usage(const struct command *c, const char *fmt, ...)
{
	va_list ap;
	fprintf(stderr, "c8s %s: ", c->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nSee 'c8s %s --help'.\n", c->name);
	return 2;
}

static int bad(struct options *o, const char *arg, const char *what)
{
	(void)cmd_usage(o->command, "option %s %s", arg, what);
	return OPTION_BAD;
}

/* The value after "=" or directly behind a letter, or else the next argument. */
static int with_value(struct options *o, int found, const char *arg, const char *attached)
{
	if (!attached && o->at + 1 < o->argc)
		attached = o->argv[++o->at];
	if (!attached)
		return bad(o, arg, "needs a value");
	o->value = attached;
	return found;
}

/* Underscores are as good as dashes, as in Kubernetes' programs. */
static bool same_name(str given, const char *name)
{
	size_t i;

	for (i = 0; i < given.n && name[i]; i++)
		if (given.p[i] != name[i] && !(given.p[i] == '_' && name[i] == '-'))
			return false;
	return i == given.n && !name[i];
}

/* How many letters have to be added, removed or replaced to make one of the other; looks at the first 64 letters. */
static size_t edit_distance(str a, str b)
{
	enum { NAME_MAX_LETTERS = 64 };
	size_t row[NAME_MAX_LETTERS + 1];

	a = str_head(a, NAME_MAX_LETTERS);
	b = str_head(b, NAME_MAX_LETTERS);
	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 0; i < a.n; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < b.n; j++) {
			size_t replaced = diagonal + (a.p[i] != b.p[j]), moved = MIN(row[j], row[j + 1]) + 1;
			diagonal = row[j + 1];
			row[j + 1] = MIN(replaced, moved);
		}
	}
	return row[b.n];
}

static int unknown(struct options *o, const struct option_spec *specs, str name, const char *arg)
{
	const char *nearest = NULL;
	size_t least = MAX(name.n / 3, (size_t)1) + 1;

	for (int i = 0; specs[i].name; i++) {
		size_t distance = edit_distance(name, str_of(specs[i].name));
		if (distance < least) {
			least = distance;
			nearest = specs[i].name;
		}
	}
	if (!nearest)
		return bad(o, arg, "is not known");
	(void)cmd_usage(o->command, "option %s is not known; did you mean --%s?", arg, nearest);
	return OPTION_BAD;
}

static int long_option(struct options *o, const struct option_spec *specs, const char *arg)
{
	str name, value;
	bool has_value = str_cut(str_of(arg + 2), '=', &name, &value);

	for (int i = 0; specs[i].name; i++) {
		if (!same_name(name, specs[i].name))
			continue;
		if (specs[i].takes == OPTION_VALUE)
			return with_value(o, i, arg, has_value ? value.p : NULL);
		if (has_value && specs[i].takes == OPTION_ALONE)
			return bad(o, arg, "takes no value");
		o->value = has_value ? value.p : NULL;
		return i;
	}
	return unknown(o, specs, name, arg);
}

static int short_option(struct options *o, const struct option_spec *specs, const char *arg)
{
	for (int i = 0; specs[i].name; i++) {
		if (specs[i].letter != arg[1])
			continue;
		if (specs[i].takes == OPTION_VALUE)
			return with_value(o, i, arg, arg[2] ? arg + 2 + (arg[2] == '=') : NULL);
		return arg[2] ? bad(o, arg, "is not known") : i;
	}
	return bad(o, arg, "is not known");
}

int options_next(struct options *o, const struct option_spec *specs)
{
	if (++o->at >= o->argc)
		return OPTION_END;
	const char *arg = o->argv[o->at];
	o->value = NULL;
	if (arg[0] == '-' && arg[1] == '-' && arg[2])
		return long_option(o, specs, arg);
	if (arg[0] == '-' && arg[1] && arg[1] != '-')
		return short_option(o, specs, arg);
	o->value = arg;
	return OPTION_ARGUMENT;
}
