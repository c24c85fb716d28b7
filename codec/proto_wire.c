#include "codec/proto_wire.h"

#include <endian.h>

static int unexpected_eof(struct err *err) { return err_set(err, ERR_BAD_REQUEST, "unexpected EOF"); }

int reader_varint_slow(struct reader *r, uint64_t *ret, struct err *err)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (r->at >= r->end)
			return unexpected_eof(err);
		unsigned char c = (unsigned char)*r->at++;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80) {
			*ret = v;
			return 0;
		}
	}
	return err_set(err, ERR_BAD_REQUEST, "proto: integer overflow");
}

int reader_bytes(struct reader *r, str *ret, struct err *err)
{
	uint64_t n = 0;
	int e = reader_varint(r, &n, err);
	if (e < 0)
		return e;
	if (n > INT64_MAX)
		return err_set(err, ERR_BAD_REQUEST, "proto: negative length found during unmarshaling");
	if (n > (uint64_t)(r->end - r->at))
		return unexpected_eof(err);
	*ret = str_span(r->at, (size_t)n);
	r->at += n;
	return 0;
}

int reader_fixed(struct reader *r, unsigned n, uint64_t *ret, struct err *err)
{
	uint64_t v = 0;
	if ((size_t)(r->end - r->at) < n)
		return unexpected_eof(err);
	memcpy(&v, r->at, n);
	r->at += n;
	*ret = le64toh(v);
	return 0;
}

int reader_tag(struct reader *r, str message, struct tag *ret, struct err *err)
{
	uint64_t v = 0;
	ret->start = r->at;
	int e = reader_varint(r, &v, err);
	if (e < 0)
		return e;
	ret->number = (int32_t)(uint32_t)(v >> 3);
	ret->wire_type = v & 7;
	if (ret->wire_type == WIRE_END_GROUP)
		return err_set(err, ERR_BAD_REQUEST, "proto: " STR_FMT ": wiretype end group for non-group", STR_ARG(message));
	if (ret->number <= 0)
		return err_set(err, ERR_BAD_REQUEST, "proto: " STR_FMT ": illegal tag %d (wire type %llu)", STR_ARG(message),
			       (int)ret->number, (unsigned long long)v);
	return 0;
}

static int skip_fixed(struct reader *r, unsigned n, struct err *err)
{
	uint64_t ignored;
	return reader_fixed(r, n, &ignored, err);
}

/* The value of one field; for groups *depth goes up and down. */
static int skip_value(struct reader *r, unsigned wire_type, uint64_t *depth, struct err *err)
{
	uint64_t ignored;
	str bytes;
	switch (wire_type) {
	case WIRE_VARINT: return reader_varint(r, &ignored, err);
	case WIRE_FIXED64: return skip_fixed(r, 8, err);
	case WIRE_BYTES: return reader_bytes(r, &bytes, err);
	case WIRE_FIXED32: return skip_fixed(r, 4, err);
	case WIRE_GROUP:
		++*depth;
		return 0;
	case WIRE_END_GROUP:
		--*depth;
		return 0;
	default: return err_set(err, ERR_BAD_REQUEST, "proto: illegal wireType %u", wire_type);
	}
}

int reader_skip(struct reader *r, const struct tag *t, struct err *err)
{
	uint64_t depth = 0, v = 0;
	int e = skip_value(r, t->wire_type, &depth, err);
	while (e >= 0 && depth) {
		e = reader_varint(r, &v, err);
		if (e >= 0)
			e = skip_value(r, v & 7, &depth, err);
	}
	return e;
}

int wire_type_error(const struct tag *t, str field, struct err *err)
{
	return err_set(err, ERR_BAD_REQUEST, "proto: wrong wireType = %u for field " STR_FMT, t->wire_type, STR_ARG(field));
}
