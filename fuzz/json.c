/*
 * JSON: what decodes must encode, and decode to the same again; freely, as the kind that it says, and as a Pod. The typed tree must
 * also be what val_canonical makes of the free one.
 */
#include <stdlib.h>

#include "codec/codec.h"
#include "codec/types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* Values that JSON text cannot carry over: doubles that read back as integers are equal anyway. */
static void round_trip(struct arena *a, struct val v, const struct type *type)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(64 << 20), pretty = BUF_INIT(256 << 20);
	struct json_encode_options encode = { .type = type }, indent = { .type = type, .indent = 2 };
	struct json_decode_options decode = { .type = type };
	struct err err = ERR_INIT;
	struct val again;

	require(json_encode(&text, v, &encode, &err) == 0);
	require(json_error_offset(buf_str(&text)) < 0);
	require(json_decode(a, buf_str(&text), &decode, &again, &err) == 0);
	require(val_equal(v, again));
	if (text.n < 4096) {
		require(json_encode(&pretty, v, &indent, &err) == 0);
		require(json_decode(a, buf_str(&pretty), &decode, &again, &err) == 0);
		require(val_equal(v, again));
	}
}

static void as_type(struct arena *a, str text, const struct type *type)
{
	struct strict_errors strict = { .arena = a };
	struct json_decode_options opt = { .type = type, .strict = &strict };
	struct err err = ERR_INIT;
	struct val v;

	if (json_decode(a, text, &opt, &v, &err) < 0) {
		require(err.n > 0);
		return;
	}
	struct val canonical;
	require(val_canonical(a, v, type, NULL, &canonical, &err) == 0);
	require(val_equal(v, canonical));
	round_trip(a, v, type);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	str text = str_span((const char *)data, n);
	struct arena a = ARENA_INIT;
	struct json_decode_options opt = { .sort_keys = n % 2 };
	struct err err = ERR_INIT;
	const struct type *type = NULL;
	struct val v;

	if (json_decode(&a, text, &opt, &v, &err) == 0)
		round_trip(&a, v, NULL);
	else
		require(err.n > 0);
	if (json_decode_object(&a, text, NULL, &v, &type, &err) == 0)
		round_trip(&a, v, type);
	as_type(&a, text, TYPE(core_v1, Pod));
	as_type(&a, text, TYPE(apiextensions_v1, CustomResourceDefinition));
	arena_done(&a);
	return 0;
}
