/*
 * The wire format of protobuf, private to this folder: reading tags, varints and lengths from borrowed bytes, with the errors of
 * the code that Kubernetes generates. All lengths are checked against the input before anything is done with them.
 */
#ifndef C8S_CODEC_PROTO_WIRE_H
#define C8S_CODEC_PROTO_WIRE_H

#include "codec/schema.h"

enum wire_type { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_GROUP, WIRE_END_GROUP, WIRE_FIXED32 };

struct reader {
	const char *at, *end;
};

static inline struct reader reader_of(str s) { return (struct reader){ s.p, s.n ? s.p + s.n : s.p }; }

int reader_varint_slow(struct reader *r, uint64_t *ret, struct err *err);

static inline int reader_varint(struct reader *r, uint64_t *ret, struct err *err)
{
	if (LIKELY(r->at < r->end && (unsigned char)*r->at < 0x80)) {
		*ret = (unsigned char)*r->at++;
		return 0;
	}
	return reader_varint_slow(r, ret, err);
}

/* A length and that many bytes. */
int reader_bytes(struct reader *r, str *ret, struct err *err);
/* 4 or 8 bytes, little endian. */
int reader_fixed(struct reader *r, unsigned n, uint64_t *ret, struct err *err);

struct tag {
	int32_t number;
	unsigned wire_type;   /* enum wire_type, or 6 or 7, which do not exist */
	const char *start;    /* where it stands */
};

/* message names the message in errors. */
int reader_tag(struct reader *r, str message, struct tag *ret, struct err *err);
/* Passes over the field of a tag that was just read; groups with all they contain. */
int reader_skip(struct reader *r, const struct tag *t, struct err *err);

/* The wire type of a single value of a kind, and whether lists of it can be packed. */
static inline enum wire_type kind_wire_type(enum field_kind kind)
{
	static const uint8_t types[] = {
		[KIND_STRING] = WIRE_BYTES, [KIND_BOOL] = WIRE_VARINT, [KIND_INT32] = WIRE_VARINT, [KIND_INT64] = WIRE_VARINT,
		[KIND_UINT32] = WIRE_VARINT, [KIND_UINT64] = WIRE_VARINT, [KIND_DOUBLE] = WIRE_FIXED64, [KIND_FLOAT] = WIRE_FIXED32,
		[KIND_BYTES] = WIRE_BYTES, [KIND_RAW_BYTES] = WIRE_BYTES, [KIND_ENUM] = WIRE_VARINT,
	};
	return kind < ARRAY_LEN(types) ? types[kind] : WIRE_BYTES; /* all others are messages */
}

static inline bool kind_is_packable(enum field_kind kind) { return kind_wire_type(kind) != WIRE_BYTES; }
/* Kinds that are a message on the wire, and those of them that stand for one value in the tree: all but KIND_MESSAGE. */
static inline bool kind_is_message(enum field_kind kind) { return kind >= KIND_TIME; }
static inline bool kind_is_wrapper(enum field_kind kind) { return kind_is_message(kind) && kind != KIND_MESSAGE; }
_Static_assert(KIND_TIME == KIND_ENUM + 1 && KIND_MESSAGE == KIND_STRINGS + 1, "messages are the last kinds");

/* -ERR_BAD_REQUEST "proto: wrong wireType = 0 for field X". */
int wire_type_error(const struct tag *t, str field, struct err *err);

/*
 * The value of a wrapper (kind_is_wrapper), given in the pieces in which it occurred. *ret is VAL_NULL for a zero time or absent
 * JSON. nesting is the number of envelopes around it.
 */
struct segment {
	str bytes;
	struct segment *next;
};

int wrapper_decode(struct arena *a, enum field_kind kind, const struct segment *s, unsigned nesting, struct val *ret, struct err *err);

/* proto_decode for the object of an envelope: apiVersion and kind, when given, become members of the root. */
struct proto_root {
	str api_version, kind;
	unsigned nesting;
};

int proto_decode_root(struct arena *a, str bytes, const struct type *type, const struct proto_root *root, struct val *ret,
		      struct err *err);
/* proto_decode_object inside so many other envelopes. */
int proto_decode_nested(struct arena *a, str bytes, unsigned nesting, struct val *ret, const struct type **ret_type,
			struct err *err);

#endif
