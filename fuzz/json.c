/*
 * JSON: what decodes must encode, and decode to the same again; freely, as the kind that it says, and as a Pod. The
 * typed tree must also be what val_canonical makes of the free one.
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

/* To text and back. */
static struct val again(struct arena *a, struct val v, const struct type *type, unsigned indent)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(256 << 20);
	struct json_encode_options encode = { .type = type, .indent = indent };
	struct json_decode_options decode = { .type = type };
	struct err err = ERR_INIT;
	struct val back;

	require(json_encode(&text, v, &encode, &err) == 0);
	str kept = arena_str(a, buf_str(&text));
	require(json_error_offset(kept) < 0);
	require(json_decode(a, kept, &decode, &back, &err) == 0);
	return back;
}

/*
 * A typed tree is its own reading, with one exception that Kubernetes has too: what is neither schema nor list where
 * either is expected is written as null, which reads as absent. So the first trip is not looked at.
 */
static void round_trip(struct arena *a, struct val v, const struct type *type)
{
	struct err err = ERR_INIT;
	struct val first = again(a, v, type, 0), canonical;

	require(val_equal(type ? first : v, again(a, first, type, 0)));
	if (first.n < 100)
		require(val_equal(first, again(a, first, type, 2)));
	if (type) {
		require(val_canonical(a, first, type, NULL, &canonical, &err) == 0);
		require(val_equal(first, canonical));
	}
}

static void as_type(struct arena *a, str text, const struct type *type)
{
	static struct strict_errors strict; /* large */
	struct json_decode_options opt = { .type = type, .strict = &strict };
	struct err err = ERR_INIT;
	struct val v;

	strict.arena = a;
	strict.n = 0;
	if (json_decode(a, text, &opt, &v, &err) == 0)
		round_trip(a, v, type);
	else
		require(err.n > 0);
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
