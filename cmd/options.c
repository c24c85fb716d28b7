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

static int long_option(struct options *o, const struct option_spec *specs, const char *arg)
{
	str name, value;
	bool has_value = str_cut(str_of(arg + 2), '=', &name, &value);

	for (int i = 0; specs[i].name; i++) {
		if (!str_eq(name, str_of(specs[i].name)))
			continue;
		if (specs[i].takes_value)
			return with_value(o, i, arg, has_value ? value.p : NULL);
		return has_value ? bad(o, arg, "takes no value") : i;
	}
	return bad(o, arg, "is not known");
}

static int short_option(struct options *o, const struct option_spec *specs, const char *arg)
{
	for (int i = 0; specs[i].name; i++) {
		if (specs[i].letter != arg[1])
			continue;
		if (specs[i].takes_value)
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
