#include "cmd/flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/time.h"
#include "machinery/ip.h"

/* A list while it grows. */
struct growing {
	const char **items;
	size_t n, cap;
	bool given;        /* the first value replaces the default, further ones add */
};

struct parser {
	const struct command *command;
	const struct flag *table;
	char *target;
	struct arena *arena;
	struct growing *lists; /* one per row */
};

/* ---- values ---- */

bool flag_parse_bool(str text, bool *ret)
{
	static const char *const yes[] = { "1", "t", "T", "true", "TRUE", "True" }, *const no[] = { "0", "f", "F", "false", "FALSE", "False" };

	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (str_eq(text, str_of(yes[i])) || str_eq(text, str_of(no[i]))) {
			*ret = str_eq(text, str_of(yes[i]));
			return true;
		}
	return false;
}

static void add_item(struct parser *p, struct growing *g, str item)
{
	if (g->n + 1 >= g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 8;
		const char **more = ARENA_ARRAY(p->arena, const char *, cap);
		if (g->n)
			memcpy(more, g->items, g->n * sizeof(*more));
		g->items = more;
		g->cap = cap;
	}
	g->items[g->n++] = arena_str(p->arena, item).p;
	g->items[g->n] = NULL;
}

static void add_items(struct parser *p, const struct flag *f, const char *text, bool given)
{
	struct growing *g = &p->lists[f - p->table];
	str rest = str_of(text), item;

	if (given && !g->given)
		*g = (struct growing){ .given = true };
	if (f->type == FLAG_ARRAY && text[0])
		add_item(p, g, rest);
	while (f->type == FLAG_LIST && rest.n) {
		str_cut(rest, ',', &item, &rest);
		add_item(p, g, item);
	}
	if (!g->items) {
		g->items = ARENA_ARRAY(p->arena, const char *, 1);
		g->items[0] = NULL;
	}
	*(const char *const **)(p->target + f->offset) = (const char *const *)g->items;
}

static void add_setting(struct parser *p, const struct flag *f, const char *text)
{
	struct flag_settings *s = (struct flag_settings *)(void *)(p->target + f->offset);

	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 16;
		struct flag_setting *more = ARENA_ARRAY(p->arena, struct flag_setting, cap);
		if (s->n)
			memcpy(more, s->items, s->n * sizeof(*more));
		s->items = more;
		s->cap = cap;
	}
	s->items[s->n++] = (struct flag_setting){ f->name, text };
}

static int parse_float(const char *text, double *ret, struct err *err)
{
	char *end;

	errno = 0;
	*ret = strtod(text, &end);
	if (end == text || *end || errno)
		return err_set(err, ERR_BAD_REQUEST, "strconv.ParseFloat: parsing \"%s\": invalid syntax", text);
	return 0;
}

/* Stores a value in its member. With a NULL target it is only checked. */
static int store(struct parser *p, const struct flag *f, const char *text, bool given, struct err *err)
{
	union {
		bool b;
		int64_t i;
		double d;
	} checked;
	void *member = f->effect == FLAG_WORKS ? p->target + f->offset : (void *)&checked;
	struct ip ip;

	switch (f->type) {
	case FLAG_HEADING:
		return 0;
	case FLAG_BOOL_GIVEN:
		((bool *)member)[1] = given;
		/* fall through */
	case FLAG_BOOL:
		if (!flag_parse_bool(str_of(text), member))
			return err_set(err, ERR_BAD_REQUEST, "strconv.ParseBool: parsing \"%s\": invalid syntax", text);
		return 0;
	case FLAG_INT:
		if (!str_to_i64(str_of(text), member))
			return err_set(err, ERR_BAD_REQUEST, "strconv.ParseInt: parsing \"%s\": invalid syntax", text);
		return 0;
	case FLAG_FLOAT:
		return parse_float(text, member, err);
	case FLAG_DURATION:
		return duration_parse(str_of(text), member, err);
	case FLAG_IP:
		if (!ip_parse(str_of(text), &ip, NULL))
			return err_set(err, ERR_BAD_REQUEST, "failed to parse IP: \"%s\"", text);
		/* fall through */
	case FLAG_STRING:
		if (f->effect == FLAG_WORKS)
			*(const char **)member = text;
		return 0;
	case FLAG_LIST:
	case FLAG_ARRAY:
		if (f->effect == FLAG_WORKS)
			add_items(p, f, text, given);
		return 0;
	case FLAG_SETTING_BOOL:
		if (!flag_parse_bool(str_of(text), &checked.b))
			return err_set(err, ERR_BAD_REQUEST, "strconv.ParseBool: parsing \"%s\": invalid syntax", text);
		/* fall through */
	case FLAG_SETTING:
		/* Also those without effect here: the configuration is shown as a whole. */
		if (given)
			add_setting(p, f, text);
		return 0;
	}
	return 0;
}

static bool is_bool(const struct flag *f)
{
	return f->type == FLAG_BOOL || f->type == FLAG_BOOL_GIVEN || f->type == FLAG_SETTING_BOOL;
}

/* The values of the one are those of the other: "false" and "0", "5m" and "300s". */
static bool same_value(const struct flag *f, const char *a, const char *b)
{
	int64_t i, j;
	bool x, y;

	if (is_bool(f))
		return flag_parse_bool(str_of(a), &x) && flag_parse_bool(str_of(b ? b : "false"), &y) && x == y;
	if (f->type == FLAG_DURATION)
		return duration_parse(str_of(a), &i, NULL) == 0 && duration_parse(str_of(b ? b : "0s"), &j, NULL) == 0 && i == j;
	return strcmp(a, b ? b : "") == 0;
}

/* ---- arguments ---- */

static const struct option_spec *make_specs(struct arena *a, const struct flag *table, size_t n)
{
	struct option_spec *specs = ARENA_ARRAY(a, struct option_spec, n + 1);

	for (size_t i = 0; i < n; i++) {
		/* A heading has a name that nobody can give. */
		specs[i] = (struct option_spec){ 0, table[i].name ? table[i].name : "", is_bool(&table[i]) ? OPTION_BOOL : OPTION_VALUE };
		if (table[i].name && table[i].name[0] && !table[i].name[1])
			specs[i].letter = table[i].name[0];
	}
	specs[n] = (struct option_spec){ 0 };
	return specs;
}

static int take(struct parser *p, const struct flag *f, const char *text, struct buf *later)
{
	struct err err = ERR_INIT;

	if (store(p, f, text, true, &err) < 0)
		return cmd_usage(p->command, "invalid argument \"%s\" for \"--%s\" flag: %s", text, f->name, err.msg);
	if (f->effect == FLAG_REFUSED && !same_value(f, text, f->initial))
		return cmd_usage(p->command, "not supported by c8s yet: --%s=%s", f->name, text);
	if (f->effect == FLAG_LATER && !same_value(f, text, f->initial))
		buf_addf(later, "%s--%s", later->n ? ", " : "", f->name);
	return 0;
}

int flags_parse(const struct command *c, int argc, char **argv, const struct flag *table, void *target, struct arena *a,
		struct buf *later)
{
	struct parser p = { c, table, target, a, NULL };
	struct options o = { c, argc, argv, 0, NULL };
	size_t n = 0;
	int found, r;

	while (table[n].name || table[n].help)
		n++;
	p.lists = arena_zero_of(a, (n + 1) * sizeof(*p.lists), _Alignof(struct growing));
	for (size_t i = 0; i < n; i++) {
		bool list = table[i].type == FLAG_LIST || table[i].type == FLAG_ARRAY;
		if (table[i].effect == FLAG_WORKS && (table[i].initial || list))
			(void)store(&p, &table[i], table[i].initial ? table[i].initial : "", false, NULL);
	}
	const struct option_spec *specs = make_specs(a, table, n);
	while ((found = options_next(&o, specs)) != OPTION_END) {
		if (found == OPTION_ARGUMENT)
			return cmd_usage(c, "unexpected argument '%s'; flags begin with --, and bools take =", o.value);
		if (found < 0)
			return 2;
		for (const struct flag *f = &table[found]; f < table + n; f++)
			if (f->name && strcmp(f->name, table[found].name) == 0 && (r = take(&p, f, o.value ? o.value : "true", later)) != 0)
				return r;
	}
	return 0;
}

/* ---- help ---- */

static const char *type_word(enum flag_type type)
{
	static const char *const words[] = {
		[FLAG_HEADING] = "", [FLAG_BOOL] = "", [FLAG_BOOL_GIVEN] = "", [FLAG_STRING] = " TEXT", [FLAG_IP] = " IP", [FLAG_INT] = " NUMBER",
		[FLAG_FLOAT] = " NUMBER", [FLAG_DURATION] = " DURATION", [FLAG_LIST] = " A,B,...", [FLAG_ARRAY] = " TEXT",
		[FLAG_SETTING] = " VALUE", [FLAG_SETTING_BOOL] = "",
	};
	return words[type];
}

static bool is_repeated(const struct flag *table, const struct flag *row)
{
	for (const struct flag *f = table; f < row; f++)
		if (f->name && strcmp(f->name, row->name) == 0)
			return true;
	return false;
}

void flags_help(const struct flag *table)
{
	static const char *const notes[] = {
		[FLAG_WORKS] = "", [FLAG_TUNING] = "; no effect here", [FLAG_LATER] = "; no effect yet", [FLAG_REFUSED] = "; not supported yet",
	};

	for (const struct flag *f = table; f->name || f->help; f++) {
		if (!f->name) {
			printf("\n%s:\n\n", f->help);
			continue;
		}
		if (is_repeated(table, f))
			continue;
		printf("  %s%s%s\n        %s", f->name[1] ? "--" : "-", f->name, type_word(f->type), f->help);
		if (f->initial && f->initial[0] && strcmp(f->initial, "false") != 0)
			printf(" (default %s)", f->initial);
		printf("%s\n", notes[f->effect]);
	}
}
