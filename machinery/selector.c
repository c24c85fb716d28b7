#include "machinery/selector.h"

#include <stdlib.h>

#include "base/buf.h"
#include "codec/atoms.h"
#include "machinery/names.h"

/* Texts of selectors; a request is not longer. */
enum { TEXT_MAX = 4 << 20 };

/* ---- requirements ---- */

/* As strconv.ParseInt with base 10. */
static bool parse_int(str s, int64_t *ret)
{
	if (s.n > 1 && s.p[0] == '+' && s.p[1] != '-')
		s = str_skip(s, 1);
	return str_to_i64(s, ret);
}

static struct val list_of(struct arena *a, const str *values, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, val_of_str(values[i]));
	return values ? val_end_list(&b) : VAL_NULL_VALUE;
}

static void check_values(struct field_errors *errors, const struct field_path *at, enum selector_op op, const str *values, size_t n,
			 int64_t *ret_number)
{
	const char *complaint = NULL;
	switch (op) {
	case SELECTOR_IN:
	case SELECTOR_NOT_IN:
		if (n == 0)
			complaint = "for 'in', 'notin' operators, values set can't be empty";
		break;
	case SELECTOR_EQUALS:
	case SELECTOR_DOUBLE_EQUALS:
	case SELECTOR_NOT_EQUALS:
		if (n != 1)
			complaint = "exact-match compatibility requires one single value";
		break;
	case SELECTOR_EXISTS:
	case SELECTOR_NOT_EXISTS:
		if (n != 0)
			complaint = "values set must be empty for exists and does not exist";
		break;
	case SELECTOR_GREATER:
	case SELECTOR_LESS:
		if (n != 1)
			complaint = "for 'Gt', 'Lt' operators, exactly one value is required";
		break;
	}
	if (complaint)
		field_invalid(errors, at, list_of(errors->arena, values, n), "%s", complaint);
	if (op == SELECTOR_GREATER || op == SELECTOR_LESS)
		for (size_t i = 0; i < n; i++)
			if (!parse_int(values[i], ret_number))
				field_invalid(errors, FIELD_INDEX(at, i), val_of_str(values[i]),
					      "for 'Gt', 'Lt' operators, the value must be an integer");
}

bool selector_check_key(struct field_errors *errors, const struct field_path *at, str key)
{
	struct name_errors e;
	if (name_check_label_key(key, &e) == 0)
		return true;
	field_invalid(errors, at, val_of_str(key), STR_FMT, STR_ARG(name_errors_join(errors->arena, &e, "; ")));
	return false;
}

bool selector_requirement(struct field_errors *errors, const struct field_path *at, str key, enum selector_op op, const str *values,
			  size_t n, struct requirement *ret)
{
	struct arena *a = errors->arena;
	size_t before = errors->n;
	int64_t number = 0;

	(void)selector_check_key(errors, FIELD(at, "key"), key);
	check_values(errors, FIELD(at, "values"), op, values, n, &number);
	for (size_t i = 0; i < n; i++) {
		struct name_errors e;
		if (name_check_label_value(values[i], &e))
			field_invalid(errors, FIELD_KEY(FIELD_INDEX(FIELD(at, "values"), i), key), val_of_str(values[i]), STR_FMT,
				      STR_ARG(name_errors_join(a, &e, "; ")));
	}
	if (errors->n > before)
		return false;
	str *copy = ARENA_ARRAY(a, str, n);
	for (size_t i = 0; i < n; i++)
		copy[i] = arena_str(a, values[i]);
	*ret = (struct requirement){ atom_make(a, key), (uint8_t)op, (uint32_t)n, copy, number };
	return true;
}

static bool has_value(const struct requirement *r, str value)
{
	for (uint32_t i = 0; i < r->n_values; i++)
		if (str_eq(r->values[i], value))
			return true;
	return false;
}

bool requirement_matches(const struct requirement *r, struct val labels)
{
	struct val label = val_member(labels, r->key);
	str value = val_as_str(label);
	bool exists = val_is(label, VAL_STRING);
	int64_t number;

	switch ((enum selector_op)r->op) {
	case SELECTOR_IN:
	case SELECTOR_EQUALS:
	case SELECTOR_DOUBLE_EQUALS: return exists && has_value(r, value);
	case SELECTOR_NOT_IN:
	case SELECTOR_NOT_EQUALS: return !exists || !has_value(r, value);
	case SELECTOR_EXISTS: return exists;
	case SELECTOR_NOT_EXISTS: return !exists;
	case SELECTOR_GREATER: return exists && parse_int(value, &number) && number > r->number;
	case SELECTOR_LESS: return exists && parse_int(value, &number) && number < r->number;
	}
	return false;
}

bool selector_matches(const struct selector *s, struct val labels)
{
	for (size_t i = 0; i < s->n; i++)
		if (!requirement_matches(&s->all[i], labels))
			return false;
	return !s->nothing;
}

bool selector_requires(const struct selector *s, str key, str *ret_value)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct requirement *r = &s->all[i];
		if (!str_eq(atom_str(r->key), key))
			continue;
		/* Only the first of a key counts, as in Kubernetes; a second one could only narrow the match further. */
		bool equals = r->op == SELECTOR_EQUALS || r->op == SELECTOR_DOUBLE_EQUALS || r->op == SELECTOR_IN;
		if (!equals || r->n_values != 1)
			return false;
		*ret_value = r->values[0];
		return true;
	}
	return false;
}

static int requirement_cmp(const void *x, const void *y)
{
	const struct requirement *a = x, *b = y;
	return str_cmp(atom_str(a->key), atom_str(b->key));
}

/* Stable, so that requirements with the same key stay in the order in which they were written. */
static void merge_sort(struct requirement *all, struct requirement *room, size_t n)
{
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t at = 0; at < n; at += 2 * width) {
			size_t x = at, x_end = MIN(at + width, n), y = x_end, y_end = MIN(at + 2 * width, n), out = at;
			while (x < x_end && y < y_end)
				room[out++] = requirement_cmp(&all[y], &all[x]) < 0 ? all[y++] : all[x++];
			while (x < x_end)
				room[out++] = all[x++];
			while (y < y_end)
				room[out++] = all[y++];
		}
		memcpy(all, room, n * sizeof(*all));
	}
}

struct selector selector_of_requirements(struct arena *a, struct requirement *all, size_t n)
{
	merge_sort(all, ARENA_ARRAY(a, struct requirement, n), n);
	return (struct selector){ .n = n, .all = all };
}

/* ---- objects ---- */

struct selector selector_of_labels(struct arena *a, struct val map)
{
	size_t n = 0;
	struct requirement *all = ARENA_ARRAY(a, struct requirement, val_len(map));
	VAL_EACH_MEMBER(m, map) {
		str *value = ARENA_ARRAY(a, str, 1);
		*value = arena_str(a, val_as_str(m->val));
		all[n++] = (struct requirement){ atom_make(a, atom_str(m->key)), SELECTOR_EQUALS, 1, value, 0 };
	}
	return selector_of_requirements(a, all, n);
}

/* The items of a list of strings as an array in the arena; NULL if there are none. */
static const str *strings_of(struct arena *a, struct val list)
{
	str *all = val_len(list) ? ARENA_ARRAY(a, str, val_len(list)) : NULL;
	size_t n = 0;
	VAL_EACH(item, list)
		all[n++] = val_as_str(*item);
	return all;
}

static int requirement_of_expression(struct field_errors *errors, struct val expression, struct requirement *ret, struct err *err)
{
	static const struct {
		str name;
		enum selector_op op;
	} operators[] = {
		{ STR_INIT("In"), SELECTOR_IN },
		{ STR_INIT("NotIn"), SELECTOR_NOT_IN },
		{ STR_INIT("Exists"), SELECTOR_EXISTS },
		{ STR_INIT("DoesNotExist"), SELECTOR_NOT_EXISTS },
	};
	str name = val_str(expression, operator);
	struct val values = val_get(expression, values);

	for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
		if (!str_eq(operators[i].name, name))
			continue;
		const str *list = strings_of(errors->arena, values);
		if (selector_requirement(errors, NULL, val_str(expression, key), operators[i].op, list, val_len(values), ret))
			return 0;
		return err_set(err, ERR_BAD_REQUEST, STR_FMT, STR_ARG(field_errors_plain(errors)));
	}
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(TEXT_MAX);
	buf_add_quoted(&quoted, name);
	return err_set(err, ERR_BAD_REQUEST, STR_FMT " is not a valid label selector operator", STR_ARG(buf_str(&quoted)));
}

int selector_of_object(struct arena *a, struct val label_selector, struct selector *ret, struct err *err)
{
	struct val labels = val_get(label_selector, matchLabels), expressions = val_get(label_selector, matchExpressions);
	size_t n = 0;
	struct field_errors errors;

	if (val_is_nil(label_selector)) {
		*ret = SELECTOR_NOTHING;
		return 0;
	}
	field_errors_init(&errors, a);
	struct requirement *all = ARENA_ARRAY(a, struct requirement, val_len(labels) + val_len(expressions));
	VAL_EACH_MEMBER(m, labels) {
		str value = val_as_str(m->val);
		if (!selector_requirement(&errors, NULL, atom_str(m->key), SELECTOR_EQUALS, &value, 1, &all[n++]))
			return err_set(err, ERR_BAD_REQUEST, STR_FMT, STR_ARG(field_errors_plain(&errors)));
	}
	VAL_EACH(e, expressions) {
		int r = requirement_of_expression(&errors, *e, &all[n++], err);
		if (r < 0)
			return r;
	}
	*ret = selector_of_requirements(a, all, n);
	return 0;
}

/* ---- text ---- */

static int compare_strs(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

static void add_values(struct buf *b, struct arena *a, const struct requirement *r)
{
	str *sorted = ARENA_ARRAY(a, str, r->n_values);
	if (r->n_values)
		memcpy(sorted, r->values, r->n_values * sizeof(*sorted));
	qsort(sorted, r->n_values, sizeof(*sorted), compare_strs);
	for (uint32_t i = 0; i < r->n_values; i++)
		buf_addf(b, "%s" STR_FMT, i ? "," : "", STR_ARG(sorted[i]));
}

static void add_requirement(struct buf *b, struct arena *a, const struct requirement *r)
{
	static const char *const between[] = {
		[SELECTOR_IN] = " in (",     [SELECTOR_NOT_IN] = " notin (",  [SELECTOR_EQUALS] = "=",
		[SELECTOR_DOUBLE_EQUALS] = "==", [SELECTOR_NOT_EQUALS] = "!=", [SELECTOR_GREATER] = ">",
		[SELECTOR_LESS] = "<",       [SELECTOR_EXISTS] = "",          [SELECTOR_NOT_EXISTS] = "",
	};
	buf_addf(b, "%s" STR_FMT "%s", r->op == SELECTOR_NOT_EXISTS ? "!" : "", STR_ARG(atom_str(r->key)), between[r->op]);
	add_values(b, a, r);
	if (r->op == SELECTOR_IN || r->op == SELECTOR_NOT_IN)
		buf_addc(b, ')');
}

str selector_text(struct arena *a, const struct selector *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	for (size_t i = 0; i < s->n; i++) {
		if (i)
			buf_addc(&b, ',');
		add_requirement(&b, a, &s->all[i]);
	}
	return arena_str(a, buf_str(&b));
}

str selector_display(struct arena *a, struct val label_selector)
{
	struct selector s;
	if (selector_of_object(a, label_selector, &s, NULL) < 0)
		return STR("<error>");
	str text = selector_text(a, &s);
	return text.n ? text : STR("<none>");
}

str labels_display(struct arena *a, struct val map)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	str *all = ARENA_ARRAY(a, str, val_len(map));
	size_t n = 0;
	VAL_EACH_MEMBER(m, map)
		all[n++] = arena_printf(a, STR_FMT "=" STR_FMT, STR_ARG(atom_str(m->key)), STR_ARG(val_as_str(m->val)));
	qsort(all, n, sizeof(*all), compare_strs);
	for (size_t i = 0; i < n; i++)
		buf_addf(&b, "%s" STR_FMT, i ? "," : "", STR_ARG(all[i]));
	return n ? arena_str(a, buf_str(&b)) : STR("<none>");
}
