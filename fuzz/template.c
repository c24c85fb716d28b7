/* Go templates: the first line is the data, what follows is the template. */
#include "codec/json.h"
#include "kubectl/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct template_options o = { .missing_is_error = size & 1, .work = 1 << 20 };
	struct buf out = BUF_INIT(1 << 22);
	struct arena a = ARENA_INIT;
	const struct template *t;
	struct err err = ERR_INIT;
	struct val v;
	str first, rest;
	(void)str_cut(str_span((const char *)data, size), '\n', &first, &rest);
	if (json_decode(&a, first, &(struct json_decode_options){ 0 }, &v, &err) == 0 && template_parse(&a, STR("output"), rest, &t, &err) == 0)
		(void)template_run(t, &a, v, &o, &out, &err);
	buf_done(&out);
	arena_done(&a);
	return 0;
}
