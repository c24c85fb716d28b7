/*
 * The messages that stand for one value in the tree: times, durations, quantities, IntOrString, raw JSON, named lists of
 * strings. What occurs twice is decoded into the same Go struct, so later fields win; only times begin anew.
 */
#include "codec/json.h"
#include "codec/json_scan.h"
#include "codec/proto.h"
#include "codec/proto_wire.h"
#include "codec/quantity.h"
#include "codec/time.h"

/* Envelopes inside of envelopes: a watch event has one, anything deeper is an attack. */
enum { NESTING_MAX = 4 };

/* What a wrapper can contain; each kind knows some of the numbers. */
struct content {
	uint64_t number[4];  /* varints by field number */
	str bytes[4];
	bool seen[4];
};

/* A field that a wrapper has: its number is its place in the table. */
struct part {
	const char *name;    /* Go's; NULL: there is no such field */
	uint8_t wire_type;
};

struct wrapper {
	str message;
	struct part part[4];
};

static const struct wrapper wrappers[] = {
	[KIND_TIME] = { STR_INIT("Timestamp"), { { 0 }, { "Seconds", WIRE_VARINT }, { "Nanos", WIRE_VARINT } } },
	[KIND_MICROTIME] = { STR_INIT("Timestamp"), { { 0 }, { "Seconds", WIRE_VARINT }, { "Nanos", WIRE_VARINT } } },
	[KIND_DURATION] = { STR_INIT("Duration"), { { 0 }, { "Duration", WIRE_VARINT } } },
	[KIND_QUANTITY] = { STR_INIT("Quantity"), { { 0 }, { "String_", WIRE_BYTES } } },
	[KIND_INT_OR_STRING] = { STR_INIT("IntOrString"),
		{ { 0 }, { "Type", WIRE_VARINT }, { "IntVal", WIRE_VARINT }, { "StrVal", WIRE_BYTES } } },
	[KIND_JSON] = { STR_INIT("RawExtension"), { { 0 }, { "Raw", WIRE_BYTES } } },
	[KIND_FIELDS] = { STR_INIT("FieldsV1"), { { 0 }, { "Raw", WIRE_BYTES } } },
	[KIND_STRINGS] = { STR_INIT("Items"), { { 0 }, { "Items", WIRE_BYTES } } },
};

/* Reads one segment into c; strings (may be NULL) gathers every occurrence of field 1. */
static int content_read(const struct wrapper *w, str bytes, struct content *c, struct val_builder *strings, struct err *err)
{
	struct reader r = reader_of(bytes);
	while (r.at < r.end) {
		struct tag t;
		int e = reader_tag(&r, w->message, &t, err);
		if (e < 0)
			return e;
		const struct part *part = t.number < (int)ARRAY_LEN(w->part) ? &w->part[t.number] : NULL;
		if (!part || !part->name) {
			e = reader_skip(&r, &t, err);
		} else if (t.wire_type != part->wire_type) {
			return wire_type_error(&t, str_of(part->name), err);
		} else {
			e = t.wire_type == WIRE_BYTES ? reader_bytes(&r, &c->bytes[t.number], err) :
							reader_varint(&r, &c->number[t.number], err);
			c->seen[t.number] = true;
			if (e >= 0 && strings)
				val_add_item(strings, val_of_str(c->bytes[t.number]));
		}
		if (e < 0)
			return e;
	}
	return 0;
}

static struct val time_val(struct arena *a, enum field_kind kind, const struct content *c)
{
	struct timestamp t = { .seconds = (int64_t)c->number[1] };
	char out[TIME_TEXT_MAX];

	if (kind == KIND_MICROTIME) {
		/* As time.Unix: whole seconds of the nanoseconds are carried over. */
		int32_t nanos = (int32_t)c->number[2] / 1000 * 1000, carry = nanos / 1000000000 - (nanos % 1000000000 < 0);
		t.seconds = (int64_t)((uint64_t)t.seconds + (uint64_t)(int64_t)carry);
		t.nanos = (int32_t)(nanos - (int64_t)carry * 1000000000);
	}
	if (t.seconds == TIME_ZERO_SECONDS && t.nanos == 0)
		return VAL_NULL_VALUE;
	return val_of_str(arena_str(a, kind == KIND_TIME ? time_format(t, out) : microtime_format(t, out)));
}

static int json_val(struct arena *a, str raw, unsigned nesting, struct val *ret, struct err *err)
{
	const struct type *type;
	if (raw.n == 0) {
		*ret = VAL_NULL_VALUE;
		return 0;
	}
	if (!proto_is_envelope(raw))
		return json_decode(a, raw, &(struct json_decode_options){ 0 }, ret, err);
	if (nesting >= NESTING_MAX)
		return err_set(err, ERR_BAD_REQUEST, "proto: objects are nested too deeply");
	return proto_decode_nested(a, raw, nesting + 1, ret, &type, err);
}

static int fields_val(struct arena *a, str raw, struct val *ret, struct err *err)
{
	bool spaced;
	if (raw.n == 0) {
		*ret = VAL_NULL_VALUE;
		return 0;
	}
	const char *end = raw.p + raw.n, *after = json_value_end(raw.p, end, 0, &spaced);
	if (!after || json_skip_space(after, end) != end) {
		int e = json_syntax_error(raw, NULL, err);
		return e < 0 ? e : err_set(err, ERR_BAD_REQUEST, "exceeded max depth");
	}
	if (spaced || json_is_space(raw.p[0]) || after != end)
		raw = json_compact(a, raw);
	*ret = val_of_str(raw);
	ret->type = VAL_RAW;
	if (raw.p[0] != '{')
		return err_set(err, ERR_BAD_REQUEST, "proto: FieldsV1 is not a JSON object");
	return 0;
}

static int int_or_string_val(const struct content *c, struct val *ret, struct err *err)
{
	if (c->number[1] > 1)
		return err_set(err, ERR_BAD_REQUEST, "impossible IntOrString.Type");
	*ret = c->number[1] ? val_of_str(c->bytes[3]) : val_of_int((int32_t)c->number[2]);
	return 0;
}

static int quantity_val(struct arena *a, const struct content *c, struct val *ret, struct err *err)
{
	str text = STR("0");
	int e = c->seen[1] ? quantity_canonical(a, c->bytes[1], &text, err) : 0;
	*ret = val_of_str(text);
	return e;
}

int wrapper_decode(struct arena *a, enum field_kind kind, const struct segment *s, unsigned nesting, struct val *ret, struct err *err)
{
	struct content c = { 0 };
	struct val_builder strings = val_builder(a);
	bool is_time = kind == KIND_TIME || kind == KIND_MICROTIME;

	for (; s; s = s->next) {
		if (is_time)
			c = (struct content){ .number = { [1] = s->bytes.n ? 0 : (uint64_t)TIME_ZERO_SECONDS } };
		int e = content_read(&wrappers[kind], s->bytes, &c, kind == KIND_STRINGS ? &strings : NULL, err);
		if (e < 0)
			return e;
	}
	switch (kind) {
	case KIND_TIME:
	case KIND_MICROTIME:
		*ret = time_val(a, kind, &c);
		return 0;
	case KIND_DURATION: {
		char out[DURATION_TEXT_MAX];
		*ret = val_of_str(arena_str(a, duration_format((int64_t)c.number[1], out)));
		return 0;
	}
	case KIND_QUANTITY: return quantity_val(a, &c, ret, err);
	case KIND_INT_OR_STRING: return int_or_string_val(&c, ret, err);
	case KIND_JSON: return json_val(a, c.bytes[1], nesting, ret, err);
	case KIND_FIELDS: return fields_val(a, c.bytes[1], ret, err);
	default:
		*ret = val_end_list(&strings);
		return 0;
	}
}
