/* YAML: what converts is JSON, and what is printed of it converts to the same again. */
#include <stdlib.h>

#include "codec/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void round_trip(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf yaml = BUF_INIT(64 << 20), json = BUF_INIT(64 << 20);
	struct json_decode_options opt = { .sort_keys = true };
	struct err err = ERR_INIT;
	struct val again;

	/* Characters that go-yaml does not read are refused; very deep trees cannot be read back. */
	if (yaml_encode(&yaml, v, NULL, &err) < 0 || yaml_to_json(buf_str(&yaml), &json, NULL, &err) < 0)
		return;
	require(json_decode(a, buf_str(&json), &opt, &again, &err) == 0);
	require(val_equal(v, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(16 << 20), duplicates = BUF_INIT(1 << 20);
	str text = str_span((const char *)data, n);
	struct json_decode_options opt = { .sort_keys = true };
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val v;

	CLEANUP(yaml_closep) struct yaml_stream *s = yaml_open(text);
	while (yaml_next(s, &json, &err) > 0)
		buf_reset(&json);
	buf_reset(&json);
	if (yaml_to_json(text, &json, &duplicates, &err) == 0) {
		require(json_decode(&a, buf_str(&json), &opt, &v, &err) == 0);
		/* A key "<<" is printed without quotes, as by kubectl, and means something else then. */
		if (str_find(buf_str(&json), STR("\"\\u003c\\u003c\":")) < 0)
			round_trip(&a, v);
	}
	arena_done(&a);
	return 0;
}
