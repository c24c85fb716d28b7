/*
 * JSON, directed by the schema: one pass from text to tree and back, equal to Kubernetes in error texts, field order,
 * omission and escaping. No recursion: depth is bounded by VAL_MAX_DEPTH, not by the stack.
 */
#ifndef C8S_CODEC_JSON_H
#define C8S_CODEC_JSON_H

#include "base/buf.h"
#include "codec/schema.h"

/*
 * Fields that the schema does not know or that occur twice, as Kubernetes words them: unknown field "spec.foo",
 * duplicate field "spec.replicas". At most 100 are kept. Nobody asks: fieldValidation=Ignore. Warn makes Warning
 * headers of them, Strict makes one error by strict_errors_fail.
 */
enum { STRICT_ERRORS_MAX = 100 };

struct strict_errors {
	struct arena *arena;
	size_t n;
	str text[STRICT_ERRORS_MAX];
};

/* 0 if there are none, else -ERR_BAD_REQUEST "strict decoding error: unknown field ..., duplicate field ...". */
int strict_errors_fail(const struct strict_errors *s, struct err *err);

struct json_decode_options {
	const struct type *type;       /* NULL: free */
	struct strict_errors *strict;  /* NULL: do not collect */
	bool sort_keys;                /* free trees: members sorted by key, last duplicate wins, as Go's maps */
};

/*
 * Decodes one JSON text. Strings without escapes are borrowed from it: the text must live as long as the tree.
 * Errors are -ERR_BAD_REQUEST with Go's wording; json_error_offset tells where a syntax error is.
 */
int json_decode(struct arena *a, str text, const struct json_decode_options *opt, struct val *ret, struct err *err);
/*
 * The same for an API object of any kind, found by its apiVersion and kind as the API server does. *ret_type is NULL
 * for a kind that the schema does not have; the tree is then free, with sorted keys.
 */
int json_decode_object(struct arena *a, str text, struct strict_errors *strict, struct val *ret,
		       const struct type **ret_type, struct err *err);
/* What an object says it is. */
struct object_kind {
	str api_version, kind;
};
/*
 * The same where a certain kind is expected: what the object does not say about itself is taken from that. *ret_kind is
 * filled as soon as it is known, also when decoding fails afterwards; its kind is empty before.
 */
int json_decode_expected(struct arena *a, str text, const struct type *expected, struct strict_errors *strict,
			 struct val *ret, const struct type **ret_type, struct object_kind *ret_kind, struct err *err);
/* The byte where the text stops being JSON (its length when it ends too early), or -1 for well-formed JSON. */
ptrdiff_t json_error_offset(str text);

struct json_encode_options {
	const struct type *type; /* NULL: free; written in the order of the tree */
	unsigned indent;         /* spaces per level; 0: compact */
	bool plain;              /* leave < > & unescaped; Kubernetes' default escapes them */
};

/* Appends the JSON of v; fails only when the buffer's maximum is reached or v does not fit the type. */
int json_encode(struct buf *b, struct val v, const struct json_encode_options *opt, struct err *err);
/* Appends s as a JSON string with quotes. */
void json_quote(struct buf *b, str s, bool plain);

#endif
