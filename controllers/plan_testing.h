/* What tests of plans share: trees from texts, and texts of trees. */
#ifndef C8S_CONTROLLERS_PLAN_TESTING_H
#define C8S_CONTROLLERS_PLAN_TESTING_H

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/json.h"

/* The tree of a JSON text in which ' stands for ". */
static inline struct val tree(struct arena *a, const char *text)
{
	struct val v;
	str copy = arena_str(a, str_of(text));
	for (size_t i = 0; i < copy.n; i++)
		if (copy.p[i] == '\'')
			((char *)copy.p)[i] = '"';
	if (json_decode(a, copy, &(struct json_decode_options){ 0 }, &v, NULL) < 0)
		fail_msg("no JSON: %s", text);
	return v;
}

/* And back. */
static inline str tree_text(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	CHECK_INT(json_encode(&b, v, &(struct json_encode_options){ .plain = true }, NULL), 0);
	str copy = arena_str(a, buf_str(&b));
	for (size_t i = 0; i < copy.n; i++)
		if (copy.p[i] == '"')
			((char *)copy.p)[i] = '\'';
	return copy;
}

#endif
