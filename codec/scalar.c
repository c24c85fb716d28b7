/* One JSON scalar and one kind: what is accepted, its canonical form, and Go's words for what is not. */
#include "base/encoding.h"
#include "base/mem.h"
#include "codec/assemble.h"
#include "codec/go.h"
#include "codec/json_scan.h"
#include "codec/quantity.h"
#include "codec/time.h"

/* ---- names ---- */

static str token_name(enum token token)
{
	static const str names[] = {
		[TOKEN_NULL] = STR_INIT("null"), [TOKEN_BOOL] = STR_INIT("bool"), [TOKEN_NUMBER] = STR_INIT("number"),
		[TOKEN_STRING] = STR_INIT("string"), [TOKEN_LIST] = STR_INIT("array"),
		[TOKEN_OBJECT] = STR_INIT("object"),
	};
	return names[token];
}

static str kind_go_type(struct arena *a, const struct target *t)
{
	static const str names[] = {
		[KIND_STRING] = STR_INIT("string"), [KIND_BOOL] = STR_INIT("bool"), [KIND_INT32] = STR_INIT("int32"),
		[KIND_INT64] = STR_INIT("int64"), [KIND_UINT32] = STR_INIT("uint32"), [KIND_UINT64] = STR_INIT("uint64"),
		[KIND_DOUBLE] = STR_INIT("float64"), [KIND_FLOAT] = STR_INIT("float32"),
		[KIND_BYTES] = STR_INIT("[]uint8"),
		[KIND_RAW_BYTES] = STR_INIT("[]uint8"), [KIND_ENUM] = STR_INIT("int32"),
		[KIND_TIME] = STR_INIT("v1.Time"),
		[KIND_MICROTIME] = STR_INIT("v1.MicroTime"), [KIND_DURATION] = STR_INIT("v1.Duration"),
		[KIND_QUANTITY] = STR_INIT("resource.Quantity"), [KIND_INT_OR_STRING] = STR_INIT("intstr.IntOrString"),
		[KIND_JSON] = STR_INIT("runtime.RawExtension"), [KIND_FIELDS] = STR_INIT("v1.FieldsV1"),
		[KIND_STRINGS] = STR_INIT("[]string"),
		[KIND_UINT8] = STR_INIT("uint8"),
	};

	if (t->kind != KIND_MESSAGE)
		return names[t->kind];
	ptrdiff_t slash = str_rchr(t->type->package->name, '/');
	return arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(str_skip(t->type->package->name, (size_t)(slash + 1))),
			    STR_ARG(t->type->name));
}

/* The name that the schema gives a field's type, or that of its elements: v1.PodPhase out of []v1.PodPhase. */
static str named_go_type(const struct target *t)
{
	str name = t->field ? t->field->facts->go_type : STR_NONE;

	if (t->kind == KIND_UINT8)
		return STR_NONE;
	if (!t->element || !name.n)
		return name;
	if (str_starts(name, STR("[]")))
		return str_skip(name, 2);
	return str_starts(name, STR("map[")) ? str_skip(name, (size_t)str_chr(name, ']') + 1) : STR_NONE;
}

str target_go_type(struct arena *a, const struct target *t)
{
	str named = named_go_type(t);
	if (named.n)
		return named;
	str kind = kind_go_type(a, t);
	if (t->shape == SHAPE_ONE)
		return kind;
	return arena_join(a, t->shape == SHAPE_LIST ? STR("[]") : STR("map[string]"), kind);
}

/* ---- zeros ---- */

struct val scalar_zero(const struct target *t)
{
	switch (t->kind) {
	case KIND_BOOL: return val_of_bool(false);
	case KIND_INT32:
	case KIND_INT64:
	case KIND_UINT32:
	case KIND_UINT64:
	case KIND_UINT8:
	case KIND_INT_OR_STRING: return val_of_int(0);
	case KIND_DOUBLE:
	case KIND_FLOAT: return val_of_double(0);
	case KIND_QUANTITY: return VAL_LIT("0");
	case KIND_DURATION: return VAL_LIT("0s");
	case KIND_MESSAGE: return t->type->form == FORM_OBJECT ? VAL_EMPTY_OBJECT : VAL_NULL_VALUE;
	case KIND_STRING:
	case KIND_RAW_BYTES: return VAL_LIT("");
	default: return VAL_NULL_VALUE; /* bytes, times, lists and JSON: Go writes null */
	}
}

bool target_keeps(const struct target *t, struct val v)
{
	if (t->element || t->flags & FIELD_POINTER)
		return val_exists(v);
	if (t->shape != SHAPE_ONE || t->kind == KIND_BYTES || t->kind == KIND_STRINGS)
		return v.n > 0 || t->flags & FIELD_ALWAYS;
	switch (t->kind) {
	case KIND_QUANTITY: return !(v.n == 1 && v.s[0] == '0');
	case KIND_DURATION: return !(v.n == 2 && v.s[0] == '0');
	case KIND_INT_OR_STRING: return v.type == VAL_STRING || v.i != 0;
	case KIND_JSON: return v.type > VAL_NULL;
	default: return !val_is_zero(v);
	}
}

/* ---- conversions ---- */

static bool misfit_type(struct misfit *m, bool fatal, str value, str go_type)
{
	*m = (struct misfit){ .fatal = fatal, .value = value, .go_type = go_type };
	return false;
}

static bool misfit_text(struct arena *a, struct misfit *m, bool fatal, const struct err *err)
{
	*m = (struct misfit){ .fatal = fatal, .text = arena_str(a, err_str(err)) };
	return false;
}

/* A number that the kind cannot hold: Go quotes it. */
static bool misfit_number(struct arena *a, struct misfit *m, bool fatal, str number, str go_type)
{
	return misfit_type(m, fatal, arena_join(a, STR("number "), number), go_type);
}

static bool fit_integer(struct arena *a, const struct target *t, const struct scalar *s, struct val *ret,
			struct misfit *m)
{
	static const struct { int64_t min, max; } limits[] = {
		[KIND_INT32] = { INT32_MIN, INT32_MAX }, [KIND_INT64] = { INT64_MIN, INT64_MAX },
		[KIND_UINT32] = { 0, UINT32_MAX },
		[KIND_UINT64] = { 0, INT64_MAX }, [KIND_UINT8] = { 0, UINT8_MAX },
	};
	uint64_t large;

	if (s->integer && s->i >= limits[t->kind].min && s->i <= limits[t->kind].max &&
	    !(limits[t->kind].min == 0 && s->text.p[0] == '-'))
		*ret = val_of_int(s->i);
	else if (t->kind == KIND_UINT64 && json_to_uint64(s->text, &large))
		*ret = val_of_int((int64_t)large);
	else
		return misfit_number(a, m, false, s->text, target_go_type(a, t));
	return true;
}

static bool fit_double(struct arena *a, const struct target *t, const struct scalar *s, struct val *ret, struct misfit *m)
{
	double d;

	if (!json_to_double(s->text, t->kind == KIND_FLOAT, &d))
		return misfit_number(a, m, false, s->text, target_go_type(a, t));
	*ret = val_of_double(d);
	return true;
}

/* Base64 is kept as text, but as the text that Go would write: without line ends and spare bits. */
static bool fit_bytes(struct arena *a, const struct target *t, str text, struct val *ret, struct misfit *m)
{
	CLEANUP(mem_freep) char *room = mem_alloc(base64_decoded_max(text.n) + 1);
	struct err err = ERR_INIT;
	size_t n;

	if (base64_decode(room, text, &n, &err) < 0)
		return misfit_text(a, m, false, &err);
	str bytes = str_span(room, n);
	if (t->kind == KIND_RAW_BYTES) {
		*ret = val_of_str(arena_str(a, bytes));
		return true;
	}
	char *again = arena_alloc(a, base64_encoded_len(n) + 1, 1);
	*ret = val_of_str(str_span(again, base64_encode(again, bytes)));
	return true;
}

static bool two_digits(const char *p, int most)
{
	return p[0] >= '0' && p[0] <= '9' && p[1] >= '0' && p[1] <= '9' && (p[0] - '0') * 10 + (p[1] - '0') <= most;
}

/* 2006-01-02T15:04:05Z, surely valid and canonical; rare days and years take the long way. */
static bool time_is_plain(str s)
{
	const char *p = s.p;
	return s.n == 20 && p[4] == '-' && p[7] == '-' && p[10] == 'T' && p[13] == ':' && p[16] == ':' && p[19] == 'Z' &&
	       p[0] != '0' && two_digits(p, 99) && two_digits(p + 2, 99) &&
	       two_digits(p + 5, 12) && memcmp(p + 5, "00", 2) != 0 &&
	       two_digits(p + 8, 28) && memcmp(p + 8, "00", 2) != 0 &&
	       two_digits(p + 11, 23) && two_digits(p + 14, 59) && two_digits(p + 17, 59);
}

static bool fit_time(struct arena *a, const struct target *t, str text, struct val *ret, struct misfit *m)
{
	char out[TIME_TEXT_MAX];
	struct err err = ERR_INIT;
	struct timestamp ts;
	bool micro = t->kind == KIND_MICROTIME;

	if (!micro && time_is_plain(text)) {
		*ret = val_of_str(text);
		return true;
	}
	if ((micro ? microtime_parse : time_parse)(text, &ts, &err) < 0)
		return misfit_text(a, m, true, &err);
	if (ts.seconds == TIME_ZERO_SECONDS && ts.nanos == 0) {
		*ret = t->element ? VAL_NULL_VALUE : VAL_EMPTY;
		return true;
	}
	*ret = val_of_str(arena_str(a, micro ? microtime_format(ts, out) : time_format(ts, out)));
	return true;
}

static bool fit_duration(struct arena *a, str text, struct val *ret, struct misfit *m)
{
	char out[DURATION_TEXT_MAX];
	struct err err = ERR_INIT;
	int64_t ns;

	if (duration_parse(text, &ns, &err) < 0)
		return misfit_text(a, m, true, &err);
	*ret = val_of_str(arena_str(a, duration_format(ns, out)));
	return true;
}

static bool fit_quantity(struct arena *a, const struct scalar *s, struct val *ret, struct misfit *m)
{
	str text = s->token == TOKEN_STRING ? str_trim(s->raw) : s->text;
	struct err err = ERR_INIT;

	if (s->token == TOKEN_BOOL)
		text = s->b ? STR("true") : STR("false");
	if (quantity_canonical(a, text, &text, &err) < 0)
		return misfit_text(a, m, true, &err);
	*ret = val_of_str(text);
	return true;
}

static bool fit_int_or_string(struct arena *a, const struct scalar *s, struct val *ret, struct misfit *m)
{
	if (s->token == TOKEN_STRING)
		*ret = val_of_str(s->text);
	else if (s->token != TOKEN_NUMBER)
		return misfit_type(m, true, token_name(s->token), STR("int32"));
	else if (s->integer && s->i >= INT32_MIN && s->i <= INT32_MAX)
		*ret = val_of_int(s->i);
	else
		return misfit_number(a, m, true, s->text, STR("int32"));
	return true;
}

static bool fit_enum(struct arena *a, const struct target *t, const struct scalar *s, struct val *ret, struct misfit *m)
{
	const struct enum_value *e = t->field->facts->enum_values;

	for (; e->name.n; e++)
		if (s->token == TOKEN_STRING ? str_eq(e->name, s->text) : s->integer && s->i == e->number)
			break;
	if (e->name.n)
		*ret = e->number == 0 && !t->element ? VAL_EMPTY : val_of_str(e->name);
	else if (s->integer && s->i >= INT32_MIN && s->i <= INT32_MAX)
		*ret = val_of_int(s->i);
	else if (s->token == TOKEN_STRING)
		return misfit_type(m, false, STR("string"), STR("int32"));
	else
		return misfit_number(a, m, false, s->text, STR("int32"));
	return true;
}

/* The token that a kind is made of, where there is just one. */
static int kind_token(unsigned kind)
{
	switch (kind) {
	case KIND_STRING:
	case KIND_BYTES:
	case KIND_RAW_BYTES:
	case KIND_TIME:
	case KIND_MICROTIME:
	case KIND_DURATION: return TOKEN_STRING;
	case KIND_BOOL: return TOKEN_BOOL;
	case KIND_QUANTITY:
	case KIND_INT_OR_STRING: return -1;
	case KIND_STRINGS: return TOKEN_LIST;
	case KIND_MESSAGE: return TOKEN_OBJECT;
	default: return TOKEN_NUMBER;
	}
}

bool scalar_fit(struct arena *a, const struct target *t, const struct scalar *s, struct val *ret, struct misfit *m)
{
	int token = t->shape == SHAPE_ONE ? kind_token(t->kind) : TOKEN_LIST;

	if (token >= 0 && token != s->token && !(t->kind == KIND_ENUM && s->token == TOKEN_STRING)) {
		scalar_misfit(a, t, s->token, m);
		return false;
	}
	switch (t->kind) {
	case KIND_STRING: *ret = val_of_str(s->text); return true;
	case KIND_BOOL: *ret = val_of_bool(s->b); return true;
	case KIND_DOUBLE:
	case KIND_FLOAT: return fit_double(a, t, s, ret, m);
	case KIND_BYTES:
	case KIND_RAW_BYTES: return fit_bytes(a, t, s->text, ret, m);
	case KIND_TIME:
	case KIND_MICROTIME: return fit_time(a, t, s->text, ret, m);
	case KIND_DURATION: return fit_duration(a, s->text, ret, m);
	case KIND_QUANTITY: return fit_quantity(a, s, ret, m);
	case KIND_INT_OR_STRING: return fit_int_or_string(a, s, ret, m);
	case KIND_ENUM: return fit_enum(a, t, s, ret, m);
	default: return fit_integer(a, t, s, ret, m);
	}
}

void scalar_misfit(struct arena *a, const struct target *t, enum token token, struct misfit *m)
{
	struct err err = ERR_INIT;
	struct quantity q;

	if (t->shape != SHAPE_ONE) {
		misfit_type(m, false, token_name(token), target_go_type(a, t));
		return;
	}
	switch (t->kind) {
	case KIND_TIME:
	case KIND_MICROTIME:
	case KIND_DURATION: /* their UnmarshalJSON reads a string first */
		misfit_type(m, true, token_name(token), STR("string"));
		break;
	case KIND_INT_OR_STRING:
		misfit_type(m, true, token_name(token), STR("int32"));
		break;
	case KIND_QUANTITY: /* takes the text of whatever it is given */
		(void)quantity_parse(STR("{"), &q, &err);
		misfit_text(a, m, true, &err);
		break;
	default:
		misfit_type(m, false, token_name(token), target_go_type(a, t));
	}
}
