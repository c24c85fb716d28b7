/* JSONPath templates, run on a tree that has something of everything. */
#include <assert.h>

#include "codec/json.h"
#include "machinery/jsonpath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char document[] =
	"{\"a\":[{\"b\":1,\"c\":\"x\"},{\"b\":2.5,\"c\":null},{\"b\":true,\"c\":[[1,2],[3]]}],\"d\":{\"e\":{\"f\":{}}},\"g\":\"text\"}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT;
	struct buf out = BUF_INIT(1 << 20);
	struct err err = ERR_INIT;
	const struct jsonpath *path;
	struct val root;
	str text = str_span((const char *)data, size), relaxed;

	assert(json_decode(&a, str_of(document), &(struct json_decode_options){ .sort_keys = true }, &root, NULL) == 0);
	if (jsonpath_parse(&a, text, &path, &err) == 0) {
		for (int i = 0; i < 4; i++) {
			struct jsonpath_options opt = { .allow_missing_keys = i & 1, .as_json = i & 2, .max_values = 10000 };
			if (jsonpath_print(path, &a, root, &opt, &out, &err) < 0)
				assert(err.n > 0);
		}
	} else {
		assert(err.n > 0);
	}
	(void)jsonpath_relaxed(&a, text, &relaxed, NULL);
	buf_done(&out);
	arena_done(&a);
	return 0;
}
