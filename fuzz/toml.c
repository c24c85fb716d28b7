/* hosts.toml: what can be read has bounded depth, and is JSON when written as such. */
#include <assert.h>

#include "codec/json.h"
#include "runtime/image_toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned depth_of(struct val v, unsigned level)
{
	unsigned deepest = level;
	assert(level <= 4 * TOML_DEPTH_MAX);
	VAL_EACH(item, v)
		deepest = MAX(deepest, depth_of(*item, level + 1));
	VAL_EACH_MEMBER(m, v)
		deepest = MAX(deepest, depth_of(m->val, level + 1));
	return deepest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT;
	struct buf b = BUF_INIT(16 << 20);
	struct err err = ERR_INIT;
	struct val v;
	if (toml_decode(&a, str_span((const char *)data, size), &v, &err) < 0) {
		assert(err.n > 0);
	} else {
		assert(val_is(v, VAL_OBJECT));
		(void)depth_of(v, 0);
		assert(json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL) == 0);
		assert(json_error_offset(buf_str(&b)) < 0);
	}
	buf_done(&b);
	arena_done(&a);
	return 0;
}
