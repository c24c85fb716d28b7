/* Trees (struct val) as values of CEL, and values as trees. */
#include <inttypes.h>

#include "base/encoding.h"
#include "codec/go.h"
#include "codec/quantity.h"
#include "codec/time.h"
#include "machinery/cel_priv.h"
#include "machinery/cel_url.h"
#include "machinery/ip.h"
#include "machinery/semver.h"

static struct cel_val bad_text(struct arena *a, const struct err *err)
{
	str copy = arena_str(a, err_str(err));

	return (struct cel_val){ .kind = CEL_ERROR, .n = (uint32_t)copy.n, .s = copy.p };
}

/* A text whose type says that it is more than a text. */
static struct cel_val of_text(struct arena *a, const struct cel_type *t, str text)
{
	struct err err = ERR_INIT;
	struct timestamp time;
	int64_t ns;
	size_t n;
	char *bytes;

	switch (t->kind) {
	case CEL_TIMESTAMP:
		return time_parse(text, &time, &err) < 0 ? bad_text(a, &err) : cel_timestamp(time.seconds, time.nanos, cel_zone_of(text));
	case CEL_DURATION:
		return duration_parse(text, &ns, &err) < 0 ? bad_text(a, &err) : cel_of_duration(ns);
	case CEL_BYTES:
		bytes = arena_alloc(a, base64_decoded_max(text.n) + 1, 1);
		return base64_decode(bytes, text, &n, &err) < 0 ? bad_text(a, &err) : cel_of_bytes(str_span(bytes, n));
	default:
		return cel_of_str(text);
	}
}

struct cel_val cel_of_val(struct arena *a, const struct cel_type *t, struct val v)
{
	struct cel_list *l;
	struct cel_map *m;

	switch ((enum val_type)v.type) {
	case VAL_NONE:
	case VAL_NULL:
		break;
	case VAL_BOOL:
		return cel_of_bool(v.b);
	case VAL_INT:
		return t->kind == CEL_DOUBLE ? cel_of_double((double)v.i) : t->kind == CEL_UINT ? cel_of_uint((uint64_t)v.i) : cel_of_int(v.i);
	case VAL_DOUBLE:
		return t->kind == CEL_INT ? cel_of_int(val_as_int(v)) : cel_of_double(v.d);
	case VAL_STRING:
	case VAL_RAW:
		return of_text(a, t, val_as_str(v));
	case VAL_LIST:
		l = ARENA_NEW(a, struct cel_list);
		l->n = v.n;
		l->tree = v;
		l->elem = t->kind == CEL_LIST ? t->elem : NULL;
		return (struct cel_val){ .kind = CEL_LIST, .list = l };
	case VAL_OBJECT:
		m = ARENA_NEW(a, struct cel_map);
		m->n = v.n;
		m->tree = v;
		m->object = t->kind == CEL_OBJECT ? t : NULL;
		m->elem = t->kind == CEL_MAP ? t->elem : NULL;
		return (struct cel_val){ .kind = m->object ? CEL_OBJECT : CEL_MAP, .map = m };
	}
	return cel_of_null();
}

/* ---- back ---- */

static str time_text(struct arena *a, struct cel_val v)
{
	char whole[TIME_TEXT_MAX], zone[8] = "Z";
	str s = time_format((struct timestamp){ v.i + v.zone * INT64_C(60), 0 }, whole);
	uint32_t nanos = v.n;
	unsigned east = (unsigned)(v.zone < 0 ? -v.zone : v.zone);
	int digits = 9;

	if (east)
		snprintf(zone, sizeof(zone), "%c%02u:%02u", v.zone < 0 ? '-' : '+', east / 60 % 100, east % 60);
	s = str_head(s, s.n - 1);
	if (!nanos)
		return arena_printf(a, STR_FMT "%s", STR_ARG(s), zone);
	while (nanos % 10 == 0) {
		nanos /= 10;
		digits--;
	}
	return arena_printf(a, STR_FMT ".%0*u%s", STR_ARG(s), digits, nanos, zone);
}

/* 90.5s: seconds, with as many digits as it takes. */
static str duration_text(struct arena *a, int64_t ns)
{
	uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, fraction = u % 1000000000;
	const char *sign = ns < 0 ? "-" : "";
	int digits = 9;

	if (!fraction)
		return arena_printf(a, "%s%" PRIu64 "s", sign, u / 1000000000);
	while (fraction % 10 == 0) {
		fraction /= 10;
		digits--;
	}
	return arena_printf(a, "%s%" PRIu64 ".%0*" PRIu64 "s", sign, u / 1000000000, digits, fraction);
}

static str list_text(struct arena *a, struct cel_val v);

str cel_show(struct arena *a, struct cel_val v)
{
	char out[64];
	struct quantity q;

	switch (v.kind) {
	case CEL_NULL:
		return STR("<nil>");
	case CEL_BOOL:
		return v.b ? STR("true") : STR("false");
	case CEL_INT:
		return arena_str(a, go_format_int(v.i, out));
	case CEL_UINT:
		return arena_str(a, go_format_uint(v.u, out));
	case CEL_DOUBLE:
		if (__builtin_isfinite(v.d))
			return arena_str(a, go_format_float(v.d, false, GO_FLOAT_G, out));
		return v.d != v.d ? STR("NaN") : v.d > 0 ? STR("+Inf") : STR("-Inf");
	case CEL_DURATION:
		return duration_text(a, v.i);
	case CEL_TIMESTAMP:
		return time_text(a, v);
	case CEL_TYPE:
		return cel_type_runtime_name(v.type);
	case CEL_QUANTITY:
		q = *v.quantity;
		return arena_str(a, quantity_format(q, out));
	case CEL_IP:
		return arena_str(a, ip_format(v.ip, out));
	case CEL_CIDR:
		return arena_printf(a, STR_FMT "/%u", STR_ARG(ip_format(&v.cidr->ip, out)), v.cidr->bits);
	case CEL_URL:
		return v.url->text;
	case CEL_SEMVER: {
		str s = arena_printf(a, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, v.semver->major, v.semver->minor, v.semver->patch);
		if (v.semver->pre.n)
			s = arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(s), STR_ARG(v.semver->pre));
		return v.semver->build.n ? arena_printf(a, STR_FMT "+" STR_FMT, STR_ARG(s), STR_ARG(v.semver->build)) : s;
	}
	case CEL_LIST:
		return list_text(a, v);
	default:
		return v.kind == CEL_STRING || v.kind == CEL_BYTES || v.kind == CEL_ERROR ? cel_text(v) : cel_type_name(v);
	}
}

enum { SHOWN_MAX = 16 };

/* The first few items, each as its own text or type. */
static str list_text(struct arena *a, struct cel_val v)
{
	str s = STR("[");

	for (size_t i = 0; i < cel_len(v) && i < SHOWN_MAX; i++) {
		struct cel_val item = cel_at(a, v, i);
		str text = item.kind == CEL_LIST ? STR("list") : cel_show(a, item);
		s = arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(s), i ? " " : "", STR_ARG(text));
	}
	return arena_join(a, s, STR("]"));
}

static struct val to_val(struct arena *a, struct cel_val v, unsigned depth);

static struct val aggregate_to_val(struct arena *a, struct cel_val v, unsigned depth)
{
	struct val_builder b = val_builder(a);
	struct cel_val key, item;

	if (v.kind == CEL_LIST) {
		for (size_t i = 0; i < cel_len(v); i++)
			val_add_item(&b, to_val(a, cel_at(a, v, i), depth));
		return val_end_list(&b);
	}
	for (size_t i = 0; i < cel_len(v); i++) {
		cel_member_at(a, v, i, &key, &item);
		val_add_member(&b, atom_make(a, cel_show(a, key)), to_val(a, item, depth));
	}
	return val_end_object(&b);
}

static struct val to_val(struct arena *a, struct cel_val v, unsigned depth)
{
	if (depth >= VAL_RECURSION_MAX)
		return VAL_EMPTY;
	switch (v.kind) {
	case CEL_ERROR:
		return VAL_EMPTY;
	case CEL_NULL:
		return VAL_NULL_VALUE;
	case CEL_BOOL:
		return val_of_bool(v.b);
	case CEL_INT:
		return val_of_int(v.i);
	case CEL_UINT:
		return v.u <= INT64_MAX ? val_of_int((int64_t)v.u) : val_of_double((double)v.u);
	case CEL_DOUBLE:
		return val_of_double(v.d);
	case CEL_BYTES: {
		str in = cel_text(v);
		char *out = arena_alloc(a, base64_encoded_len(in.n) + 1, 1);
		return val_of_str(str_span(out, base64_encode(out, in)));
	}
	case CEL_LIST:
	case CEL_MAP:
	case CEL_OBJECT:
		return aggregate_to_val(a, v, depth + 1);
	case CEL_OPTIONAL:
		return v.optional ? to_val(a, *v.optional, depth + 1) : VAL_NULL_VALUE;
	default:
		return val_of_str(cel_show(a, v));
	}
}

struct val cel_to_val(struct arena *a, struct cel_val v) { return to_val(a, v, 0); }
