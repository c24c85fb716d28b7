#include "cmd/flags_config.h"

#include <stdlib.h>

#include "codec/time.h"

enum { DEPTH_MAX = 8 };

struct place {
	atom path[DEPTH_MAX];
	size_t n;
	const struct field *field;
};

static bool find_place(const struct type *type, const char *path, struct place *ret)
{
	str rest = str_of(path), name;

	ret->n = 0;
	for (bool more = true; more;) {
		more = str_cut(rest, '.', &name, &rest);
		if (ret->n == DEPTH_MAX || !type || !(ret->field = type_field(type, atom_find(name))))
			return false;
		ret->path[ret->n++] = ret->field->name;
		type = ret->field->type;
	}
	return true;
}

/* ---- values ---- */

static int read_bool(str text, struct val *ret, struct err *err)
{
	bool b;

	if (!flag_parse_bool(text, &b))
		return err_set(err, ERR_BAD_REQUEST, "strconv.ParseBool: parsing \"" STR_FMT "\": invalid syntax", STR_ARG(text));
	*ret = val_of_bool(b);
	return 0;
}

static int read_int(const struct field *f, str text, struct val *ret, struct err *err)
{
	bool sign = text.n && text.p[0] == '+', positive = f->kind == KIND_UINT32 || f->kind == KIND_UINT64;
	int64_t low = f->kind == KIND_INT32 ? INT32_MIN : positive ? 0 : INT64_MIN;
	int64_t high = f->kind == KIND_INT32 || f->kind == KIND_UINT32 ? INT32_MAX : INT64_MAX, i;

	if (!str_to_i64(sign ? str_skip(text, 1) : text, &i) || (positive && (sign || i < 0)))
		return err_set(err, ERR_BAD_REQUEST, "strconv.Parse%s: parsing \"" STR_FMT "\": invalid syntax", positive ? "Uint" : "Int",
			       STR_ARG(text));
	if (i < low || i > high)
		return err_set(err, ERR_BAD_REQUEST, "strconv.Parse%s: parsing \"" STR_FMT "\": value out of range", positive ? "Uint" : "Int",
			       STR_ARG(text));
	*ret = val_of_int(i);
	return 0;
}

static int read_double(str text, struct val *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *p = arena_str(&a, text).p;
	char *end;
	double d = strtod(p, &end);

	if (!text.n || *end)
		return err_set(err, ERR_BAD_REQUEST, "strconv.ParseFloat: parsing \"" STR_FMT "\": invalid syntax", STR_ARG(text));
	*ret = val_of_double(d);
	return 0;
}

static int read_one(const struct field *f, str text, struct val *ret, struct err *err)
{
	int64_t ns;

	switch ((enum field_kind)f->kind) {
	case KIND_BOOL: return read_bool(text, ret, err);
	case KIND_INT32:
	case KIND_INT64:
	case KIND_UINT32:
	case KIND_UINT64: return read_int(f, text, ret, err);
	case KIND_FLOAT:
	case KIND_DOUBLE: return read_double(text, ret, err);
	case KIND_DURATION: *ret = VAL_STR(text); return duration_parse(text, &ns, err);
	default: *ret = VAL_STR(text); return 0;
	}
}

static int read_pair(struct arena *a, const struct field *f, enum flag_pairs pairs, str pair, struct val *map, struct err *err)
{
	static const char separators[] = { [PAIRS_EQUAL] = '=', [PAIRS_LESS] = '<', [PAIRS_COLON] = ':', [PAIRS_ONE] = '=' };
	const char *type = f->kind == KIND_BOOL ? "bool" : "string";
	str key, value;
	struct val v;
	int r;

	if (!str_cut(pair, separators[pairs], &key, &value))
		return err_set(err, ERR_BAD_REQUEST, "malformed pair, expect string%c%s", separators[pairs], type);
	key = str_trim(key);
	value = str_trim(value);
	if ((r = read_one(f, value, &v, err)) < 0)
		return err_wrap(err, r, "invalid value of " STR_FMT ": " STR_FMT ", err", STR_ARG(key), STR_ARG(value));
	if (f->kind == KIND_STRINGS)
		v = val_list_append(a, val_find(*map, key), v);
	*map = val_put(a, *map, atom_make(a, key), v);
	return 0;
}

static int read_map(struct arena *a, const struct field *f, enum flag_pairs pairs, struct val before, str text, struct val *ret,
		    struct err *err)
{
	struct val map = val_exists(before) ? before : VAL_EMPTY_OBJECT;
	str pair;
	int r = 0;

	if (pairs == PAIRS_ONE)
		r = read_pair(a, f, pairs, text, &map, err);
	while (pairs != PAIRS_ONE && r == 0 && text.n) {
		(void)str_cut(text, ',', &pair, &text);
		if (pair.n)
			r = read_pair(a, f, pairs, pair, &map, err);
	}
	*ret = map;
	return r;
}

static int read_list(struct arena *a, const struct field *f, struct val before, str text, struct val *ret, struct err *err)
{
	struct val list = val_exists(before) ? before : VAL_EMPTY_LIST, v;
	str item;
	int r = 0;

	while (r == 0 && text.n) {
		(void)str_cut(text, ',', &item, &text);
		if ((r = read_one(f, item, &v, err)) == 0)
			list = val_list_append(a, list, v);
	}
	*ret = list;
	return r;
}

/* ---- all of them ---- */

static int read_setting(struct arena *a, const struct flag_field *field, const struct place *at, flag_reader *special, str text,
			struct val *config, struct err *err)
{
	struct val before = val_path(*config, at->path, at->n), v;
	int r = special ? special(a, field->path, before, text, &v, err) : 0;

	if (r == 0 && at->field->shape == SHAPE_MAP)
		r = read_map(a, at->field, field->pairs, before, text, &v, err);
	else if (r == 0 && at->field->shape == SHAPE_LIST)
		r = read_list(a, at->field, before, text, &v, err);
	else if (r == 0)
		r = read_one(at->field, text, &v, err);
	if (r >= 0)
		*config = val_put_path(a, *config, at->path, at->n, v);
	return MIN(r, 0);
}

int flags_config(struct arena *a, const struct flag_settings *s, const struct flag_field *fields, const struct type *type,
		 flag_reader *special, struct val *ret, struct err *err)
{
	struct err why = ERR_INIT;

	*ret = VAL_EMPTY_OBJECT;
	for (size_t i = 0; i < s->n; i++) {
		const struct flag_field *f = fields;
		struct place at;
		while (f->name && strcmp(f->name, s->items[i].name) != 0)
			f++;
		if (!f->name || !find_place(type, f->path, &at))
			return err_set(err, ERR_INTERNAL, "--%s stands for no field", s->items[i].name);
		if (read_setting(a, f, &at, special, str_of(s->items[i].text), ret, &why) < 0)
			return err_set(err, ERR_BAD_REQUEST, "invalid argument \"%s\" for \"--%s\" flag: %s", s->items[i].text, f->name, why.msg);
	}
	return 0;
}
