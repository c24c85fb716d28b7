#include "machinery/field_error.h"

#include <stdarg.h>

#include "base/buf.h"
#include "codec/json.h"

/* Beyond this a message helps nobody; the API server's answers stay well below. */
enum { MESSAGE_MAX = 4 << 20 };

static const struct {
	const char *reason, *text;
	bool shows_value;
} types[] = {
#define FIELD_ERROR_ROW(name, reason, text, shows) [FIELD_ERROR_##name] = { reason, text, shows },
	FIELD_ERROR_TYPES(FIELD_ERROR_ROW)
#undef FIELD_ERROR_ROW
};

const char *field_error_reason(enum field_error_type type) { return types[type].reason; }

static void add_path(struct buf *b, const struct field_path *p)
{
	if (p->parent)
		add_path(b, p->parent);
	switch (p->step) {
	case STEP_NAME: buf_addf(b, "%s" STR_FMT, b->n ? "." : "", STR_ARG(p->name)); break;
	case STEP_KEY: buf_addf(b, "[" STR_FMT "]", STR_ARG(p->name)); break;
	case STEP_INDEX: buf_addf(b, "[%lld]", (long long)p->index); break;
	}
}

str field_path_text(struct arena *a, const struct field_path *path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);
	if (!path)
		return STR("<nil>");
	add_path(&b, path);
	return arena_str(a, buf_str(&b));
}

void field_errors_init(struct field_errors *e, struct arena *a) { *e = (struct field_errors){ .arena = a }; }

/*
 * As Go prints it: strings quoted, lists and objects as JSON. Values of enums are strings of a type of their own there,
 * which makes them JSON too; that shows in characters that only JSON escapes.
 */
static void add_value(struct buf *b, struct val v, enum field_error_type type)
{
	struct err ignored;
	if (v.type == VAL_STRING && type != FIELD_ERROR_NOT_SUPPORTED)
		buf_add_quoted(b, val_as_str(v));
	else if (val_is_nil(v))
		buf_add(b, STR("null"));
	else
		(void)json_encode(b, v, &(struct json_encode_options){ 0 }, &ignored);
}

static void add(struct field_errors *e, enum field_error_type type, const struct field_path *at, struct val value,
		str detail)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(MESSAGE_MAX);

	if (e->n == FIELD_ERRORS_MAX || e->size > FIELD_ERRORS_SIZE_MAX)
		return;
	if (e->n == e->cap) {
		size_t cap = e->cap ? e->cap * 2 : 8;
		struct field_error *more = ARENA_ARRAY(e->arena, struct field_error, cap);
		if (e->n)
			memcpy(more, e->list, e->n * sizeof(*more));
		e->list = more;
		e->cap = cap;
	}
	buf_addf(&body, "%s", types[type].text);
	if (types[type].shows_value && !(value.type == VAL_RAW && value.n == 0)) {
		buf_add(&body, STR(": "));
		add_value(&body, value, type);
	}
	if (detail.n)
		buf_addf(&body, ": " STR_FMT, STR_ARG(detail));
	e->size += body.n;
	e->list[e->n++] = (struct field_error){ type, field_path_text(e->arena, at), arena_str(e->arena, buf_str(&body)) };
}

/* The functions with a printf-like detail differ in nothing but their type and whether they have a value. */
#define ADD_FORMATTED(type, value)                                            \
	do {                                                                  \
		va_list ap;                                                   \
		va_start(ap, fmt);                                            \
		add(e, (type), at, (value), arena_vprintf(e->arena, fmt, ap)); \
		va_end(ap);                                                   \
	} while (0)

void field_required(struct field_errors *e, const struct field_path *at, const char *fmt, ...)
{
	ADD_FORMATTED(FIELD_ERROR_REQUIRED, VAL_EMPTY);
}

void field_invalid(struct field_errors *e, const struct field_path *at, struct val value, const char *fmt, ...)
{
	ADD_FORMATTED(FIELD_ERROR_INVALID, value);
}

void field_forbidden(struct field_errors *e, const struct field_path *at, const char *fmt, ...)
{
	ADD_FORMATTED(FIELD_ERROR_FORBIDDEN, VAL_EMPTY);
}

void field_internal(struct field_errors *e, const struct field_path *at, const char *fmt, ...)
{
	ADD_FORMATTED(FIELD_ERROR_INTERNAL, VAL_EMPTY);
}

void field_error_add(struct field_errors *e, enum field_error_type type, const struct field_path *at, struct val value,
		     const char *fmt, ...)
{
	ADD_FORMATTED(type, value);
}

void field_duplicate(struct field_errors *e, const struct field_path *at, struct val value)
{
	add(e, FIELD_ERROR_DUPLICATE, at, value, STR_NONE);
}

void field_not_found(struct field_errors *e, const struct field_path *at, struct val value)
{
	add(e, FIELD_ERROR_NOT_FOUND, at, value, STR_NONE);
}

void field_not_supported(struct field_errors *e, const struct field_path *at, struct val value, const str *supported)
{
	CLEANUP(buf_done) struct buf detail = BUF_INIT(MESSAGE_MAX);
	for (const str *s = supported; s && s->p; s++) {
		buf_add(&detail, s == supported ? STR("supported values: ") : STR(", "));
		buf_add_quoted(&detail, *s);
	}
	add(e, FIELD_ERROR_NOT_SUPPORTED, at, value, buf_str(&detail));
}

void field_too_long(struct field_errors *e, const struct field_path *at, int64_t max_bytes)
{
	add(e, FIELD_ERROR_TOO_LONG, at, VAL_EMPTY,
	    arena_printf(e->arena, "may not be more than %lld byte%s", (long long)max_bytes, max_bytes == 1 ? "" : "s"));
}

void field_too_many(struct field_errors *e, const struct field_path *at, int64_t n, int64_t max)
{
	add(e, FIELD_ERROR_TOO_MANY, at, val_of_int(n),
	    arena_printf(e->arena, "must have at most %lld item%s", (long long)max, max == 1 ? "" : "s"));
}

static bool shown_before(const struct field_errors *e, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (str_eq(e->list[j].field, e->list[i].field) && str_eq(e->list[j].body, e->list[i].body))
			return true;
	return false;
}

str field_errors_join(const struct field_errors *e, size_t *ret_n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);

	*ret_n = 0;
	for (size_t i = 0; i < e->n; i++)
		if (!shown_before(e, i))
			buf_addf(&b, "%s" STR_FMT ": " STR_FMT, (*ret_n)++ ? ", " : "", STR_ARG(e->list[i].field),
				 STR_ARG(e->list[i].body));
	return arena_str(e->arena, buf_str(&b));
}

str field_errors_plain(const struct field_errors *e)
{
	size_t n;
	str text = field_errors_join(e, &n);
	return n > 1 ? arena_printf(e->arena, "[" STR_FMT "]", STR_ARG(text)) : text;
}

str field_errors_message(const struct field_errors *e, const struct type *type, str name)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);
	size_t shown;
	str list = field_errors_join(e, &shown);

	buf_addf(&b, STR_FMT "%s" STR_FMT " ", STR_ARG(type->name), type->package->group.n ? "." : "", STR_ARG(type->package->group));
	buf_add_quoted(&b, name);
	buf_addf(&b, shown == 1 ? " is invalid: " STR_FMT : " is invalid: [" STR_FMT "]", STR_ARG(list));
	return arena_str(e->arena, buf_str(&b));
}
