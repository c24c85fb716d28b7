/* --feature-gates, of all components that read it as kube-apiserver does. */
#include "cmd/flags_gates.h"

#include "cmd/flags.h"
#include "machinery/gates.h"

static int parse_pair(struct arena *a, str pair, struct val *said, struct err *err)
{
	str name, value;
	bool on;

	/* "kube:" is the component; there is no other here. */
	if (str_starts(pair, STR("kube:")))
		pair = str_skip(pair, 5);
	if (!str_cut(pair, '=', &name, &value))
		return err_set(err, ERR_INVALID, "missing bool value for " STR_FMT, STR_ARG(str_trim(name)));
	name = str_trim(name);
	value = str_trim(value);
	if (!flag_parse_bool(value, &on))
		return err_set(err, ERR_INVALID, "invalid value of " STR_FMT "=" STR_FMT ", err: strconv.ParseBool: parsing \"" STR_FMT
			       "\": invalid syntax", STR_ARG(name), STR_ARG(value), STR_ARG(value));
	*said = val_put(a, *said, atom_make(a, name), val_of_bool(on));
	return 0;
}

struct complaints {
	struct arena *arena;
	str all;
	size_t n;
};

static void add(void *arg, str text)
{
	struct complaints *c = arg;

	c->all = c->n++ ? arena_printf(c->arena, STR_FMT ", " STR_FMT, STR_ARG(c->all), STR_ARG(text)) : text;
}

int flags_gates(struct arena *a, const char *const *pairs, struct val *ret, struct err *err)
{
	struct complaints c = { a, STR_NONE, 0 };
	struct val said = VAL_EMPTY_OBJECT;

	for (size_t i = 0; pairs[i]; i++) {
		int r = str_trim(str_of(pairs[i])).n ? parse_pair(a, str_trim(str_of(pairs[i])), &said, err) : 0;
		if (r < 0)
			return r;
	}
	gates_check(a, said, add, &c);
	if (!c.n)
		gates_check_needs(a, said, add, &c);
	if (c.n)
		return err_set(err, ERR_INVALID, c.n > 1 ? "[" STR_FMT "]" : STR_FMT, STR_ARG(c.all));
	*ret = said;
	return 0;
}
