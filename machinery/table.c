#include "machinery/table_priv.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "codec/time.h"
#include "machinery/jsonpath.h"
#include "machinery/selector.h"

/* Cells are for people; this is far more than they read. */
enum { CELL_MAX = 1 << 20 };

/* A printer column is a plain path in a custom resource; one that finds this much is not meant seriously. */
enum { CUSTOM_VALUES_MAX = 10000 };

static const struct table_set *const sets[] = {
	&tables_core, &tables_network, &tables_policy, &tables_resource, &tables_storage, &tables_workload,
};

static struct val created_at(const struct row *row)
{
	str time = val_str(row->object, metadata, creationTimestamp);
	return val_of_str(time.n ? time : STR("0001-01-01T00:00:00Z"));
}

static const struct column default_columns[] = {
	NAME,
	COLUMN("Created At", "date", 0, AGE_TEXT, CALL(created_at)),
};

static const struct table default_table = TABLE("", "", default_columns);

const struct table *table_of(const struct type *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		for (size_t j = 0; j < sets[i]->n; j++) {
			const struct table *t = &sets[i]->all[j];
			if (str_eq(t->kind, kind->name) && str_eq(t->group, kind->package->group))
				return t;
		}
	return &default_table;
}

struct val table_columns(struct arena *a, const struct table *t)
{
	struct val_builder list = val_builder(a);
	for (size_t i = 0; i < t->n; i++) {
		const struct column *c = &t->columns[i];
		if (c->unlisted)
			continue;
		val_add_item(&list, OBJECT(a, F(name, val_of_str(c->name)), F(type, val_of_str(c->type)),
					   F(format, val_of_str(c->format)), F(description, val_of_str(c->description)),
					   F(priority, val_of_int(c->priority))));
	}
	return val_end_list(&list);
}

/* ---- for cells ---- */

struct val cell_printf(const struct row *row, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(row->arena, fmt, ap);
	va_end(ap);
	return val_of_str(text);
}

str cell_duration(struct arena *a, int64_t ns)
{
	char room[DURATION_TEXT_MAX];
	return arena_str(a, duration_human(ns, room));
}

str cell_since(const struct row *row, struct val time)
{
	struct timestamp t;
	int64_t ns;
	/* Time and MicroTime alike; a time that cannot be read is no time. */
	if (!val_is(time, VAL_STRING) || time_parse(val_as_str(time), &t, NULL) < 0 || t.seconds == TIME_ZERO_SECONDS)
		return STR("<unknown>");
	/* Times that 64 bits of nanoseconds do not reach (before 1678, after 2262) count as the nearest ones that they do. */
	if (__builtin_mul_overflow(t.seconds, NS_PER_S, &ns))
		ns = t.seconds < 0 ? INT64_MIN : INT64_MAX;
	else if (__builtin_add_overflow(ns, t.nanos, &ns))
		ns = INT64_MAX;
	int64_t age;
	if (__builtin_sub_overflow(row->now_ns, ns, &age))
		age = ns < 0 ? INT64_MAX : INT64_MIN;
	return cell_duration(row->arena, age);
}

str cell_qualified(struct arena *a, str name, str group)
{
	return group.n ? arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(group)) : name;
}

str cell_text_or(struct val v, str other)
{
	str s = val_as_str(v);
	return s.n ? s : other;
}

str cell_join(struct arena *a, struct val list, atom field, const char *sep)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CELL_MAX);
	bool first = true;
	VAL_EACH(item, list) {
		if (!first)
			buf_add(&b, str_of(sep));
		first = false;
		buf_add(&b, val_as_str(field ? val_member(*item, field) : *item));
	}
	return arena_str(a, buf_str(&b));
}

struct val cell_condition(struct val conditions, str type)
{
	VAL_EACH(c, conditions)
		if (str_eq(val_str(*c, type), type))
			return *c;
	return VAL_EMPTY;
}

bool cell_condition_is_true(struct val conditions, str type)
{
	return str_eq(val_str(cell_condition(conditions, type), status), STR("True"));
}

bool cell_is_deleted(const struct row *row) { return val_has(row->object, metadata, deletionTimestamp); }

str cell_annotation(const struct row *row, str name)
{
	return val_as_str(val_find(val_get(row->object, metadata, annotations), name));
}

str cell_lower(struct arena *a, str text)
{
	char *out = arena_alloc(a, text.n + 1, 1);
	for (size_t i = 0; i < text.n; i++)
		out[i] = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] | 0x20) : text.p[i];
	out[text.n] = '\0';
	return str_span(out, text.n);
}

static int compare_strs(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

str cell_sorted_set(struct arena *a, str *all, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CELL_MAX);
	qsort(all, n, sizeof(*all), compare_strs);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || !str_eq(all[i], all[i - 1]))
			buf_addf(&b, "%s" STR_FMT, i ? "," : "", STR_ARG(all[i]));
	return arena_str(a, buf_str(&b));
}

str cell_load_balancer(struct arena *a, struct val ingress)
{
	str *all = ARENA_ARRAY(a, str, val_len(ingress));
	size_t n = 0;
	VAL_EACH(i, ingress) {
		str address = cell_text_or(val_get(*i, ip), val_str(*i, hostname));
		if (address.n)
			all[n++] = address;
	}
	return cell_sorted_set(a, all, n);
}

bool cell_few_is_full(const struct cell_few *f) { return f->n == f->max; }

void cell_few_add(struct cell_few *f, str item)
{
	f->count++;
	if (cell_few_is_full(f))
		return;
	f->shown = f->n ? arena_printf(f->arena, STR_FMT "," STR_FMT, STR_ARG(f->shown), STR_ARG(item)) : item;
	f->n++;
}

str cell_few_text(const struct cell_few *f, str otherwise)
{
	if (f->count > f->max)
		return arena_printf(f->arena, STR_FMT " + %zu more...", STR_ARG(f->shown), f->count - f->max);
	return f->shown.n ? f->shown : otherwise;
}

/* ---- rows ---- */

static struct val plain_cell(const struct row *row, const struct column *c, struct val v)
{
	struct arena *a = row->arena;
	switch (c->form) {
	case CELL_TEXT: return val_is(v, VAL_INT) ? cell_printf(row, "%lld", (long long)v.i) : val_of_str(val_as_str(v));
	case CELL_NUMBER: return val_of_int(val_as_int(v));
	case CELL_BOOL: return val_of_bool(val_as_bool(v));
	case CELL_COUNT: return val_of_int(val_len(v));
	case CELL_JOINED: return val_of_str(cell_join(a, v, 0, ","));
	case CELL_SINCE: return val_of_str(cell_since(row, v));
	case CELL_LABELS: return val_of_str(labels_display(a, v));
	case CELL_SELECTOR: return val_of_str(selector_display(a, v));
	case CELL_NAMES: return val_of_str(cell_join(a, v, A_name, ","));
	case CELL_IMAGES: return val_of_str(cell_join(a, v, A_image, ","));
	case CELL_CALL:
	case CELL_JSONPATH: break;
	}
	return VAL_NULL_VALUE;
}

static struct val date_cell(const struct row *row, str text)
{
	struct timestamp t;
	if (text.n && !str_eq(text, STR("null")) && time_parse(text, &t, NULL) < 0)
		return VAL_LIT("<invalid>");
	return val_of_str(cell_since(row, val_of_str(text)));
}

/* A value of a custom resource as its column's type wants it; null if it is of another one. */
static struct val typed_cell(const struct row *row, str type, struct val v)
{
	bool number = val_is(v, VAL_INT) || val_is(v, VAL_DOUBLE);
	if (str_eq(type, STR("integer")) && number)
		return val_of_int(val_as_int(v));
	if (str_eq(type, STR("number")) && number)
		return val_of_double(val_as_double(v));
	if (str_eq(type, STR("boolean")) && val_is(v, VAL_BOOL))
		return v;
	if (str_eq(type, STR("date")) && val_is(v, VAL_STRING))
		return date_cell(row, val_as_str(v));
	return VAL_NULL_VALUE;
}

static struct val jsonpath_cell(const struct row *row, const struct column *c)
{
	const struct jsonpath_options opt = { .allow_missing_keys = true, .max_values = CUSTOM_VALUES_MAX };
	CLEANUP(buf_done) struct buf text = BUF_INIT(CELL_MAX);
	struct val found;

	if (jsonpath_find(c->jsonpath, row->arena, row->object, &opt, &found, NULL) < 0 || val_len(val_at(found, 0)) == 0)
		return VAL_NULL_VALUE;
	struct val v = val_at(val_at(found, 0), 0);
	if (!str_eq(c->type, STR("string")))
		return typed_cell(row, c->type, v);
	if (val_is(v, VAL_NULL))
		return VAL_LIT("<no value>");
	if (jsonpath_print_value(&text, v, NULL) < 0)
		return VAL_NULL_VALUE;
	return val_of_str(arena_str(row->arena, buf_str(&text)));
}

static struct val make_cell(const struct row *row, const struct column *c)
{
	if (c->form == CELL_CALL)
		return c->call(row);
	if (c->form == CELL_JSONPATH)
		return jsonpath_cell(row, c);
	struct val v = val_path(row->object, c->path.atoms, c->path.n);
	if (c->otherwise.p && val_is_nil(v))
		return val_of_str(c->otherwise);
	return plain_cell(row, c, v);
}

void table_row(struct arena *a, const struct table *t, struct val object, int64_t now_wall_ns, struct val *ret_cells,
	       struct val *ret_conditions)
{
	struct row row = { .arena = a, .object = object, .now_ns = now_wall_ns };
	struct val *cells = ARENA_ARRAY(a, struct val, t->n);

	row.facts = t->prepare ? t->prepare(&row) : NULL;
	for (size_t i = 0; i < t->n; i++)
		cells[i] = make_cell(&row, &t->columns[i]);
	*ret_cells = (struct val){ .type = VAL_LIST, .n = (uint32_t)t->n, .items = cells };
	*ret_conditions = t->conditions ? t->conditions(&row) : VAL_EMPTY;
}

table_rank_fn *table_rank(const struct table *t) { return t->rank; }

/* ---- custom resources ---- */

static int custom_column(struct arena *a, struct val definition, struct column *ret, struct err *err)
{
	str path = val_str(definition, jsonPath), description = val_str(definition, description);
	*ret = (struct column){
		.name = arena_str(a, val_str(definition, name)),
		.type = arena_str(a, val_str(definition, type)),
		.format = arena_str(a, val_str(definition, format)),
		.priority = (int)val_int(definition, priority),
		.form = CELL_JSONPATH,
	};
	if (description.n)
		ret->description = arena_str(a, description);
	else
		ret->description = arena_printf(a, "Custom resource definition column (in JSONPath format): " STR_FMT, STR_ARG(path));
	if (jsonpath_parse(a, arena_printf(a, "{" STR_FMT "}", STR_ARG(path)), &ret->jsonpath, NULL) < 0) {
		CLEANUP(buf_done) struct buf quoted = BUF_INIT(CELL_MAX);
		buf_add_quoted(&quoted, path);
		return err_set(err, ERR_INVALID, "unrecognized column definition " STR_FMT, STR_ARG(buf_str(&quoted)));
	}
	return 0;
}

int table_of_custom(struct arena *a, struct val printer_columns, const struct table **ret, struct err *err)
{
	struct val age = OBJECT(a, F(name, VAL_LIT("Age")), F(type, VAL_LIT("date")),
				F(jsonPath, VAL_LIT(".metadata.creationTimestamp")),
				F(description, VAL_LIT("Time since the object was created")));
	struct val list = val_len(printer_columns) ? printer_columns : LIST(a, age);
	struct column *columns = ARENA_ARRAY(a, struct column, val_len(list) + 1);
	struct table *t = ARENA_NEW(a, struct table);

	columns[0] = default_columns[0];
	t->columns = columns;
	t->n = 1;
	VAL_EACH(definition, list) {
		int r = custom_column(a, *definition, &columns[t->n++], err);
		if (r < 0)
			return r;
	}
	*ret = t;
	return 0;
}
