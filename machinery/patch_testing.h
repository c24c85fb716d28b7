/* For the tests of patches: JSON written with ' instead of ", results as sorted JSON or "! " and the error's text. */
#ifndef C8S_MACHINERY_PATCH_TESTING_H
#define C8S_MACHINERY_PATCH_TESTING_H

#include <stdlib.h>

#include "base/test.h"
#include "machinery/patch_priv.h"

/* Not inlined: a test calls them many times, and frames are small. */
#define PATCH_TESTING static __attribute__((noinline, unused))

/* NULL gives VAL_NONE. */
PATCH_TESTING struct val patch_test_json(struct arena *a, const char *quoted, bool sort)
{
	struct val v = VAL_EMPTY;
	struct err err = ERR_INIT;

	if (!quoted)
		return v;
	str text = arena_str(a, str_of(quoted));
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] == '\'')
			((char *)text.p)[i] = '"';
	if (json_decode(a, text, &(struct json_decode_options){ .sort_keys = sort }, &v, &err) < 0)
		fail_msg("%s: %s", quoted, err.msg);
	return v;
}

/* The members in their order. */
PATCH_TESTING str patch_test_plain(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct err err = ERR_INIT;

	if (json_encode(&b, v, &(struct json_encode_options){ 0 }, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] == '"')
			b.p[i] = '\'';
	return arena_str(a, buf_str(&b));
}

PATCH_TESTING str patch_test_result(struct arena *a, int r, struct val v, const struct err *err)
{
	struct val sorted;

	if (r < 0)
		return arena_printf(a, "! " STR_FMT, STR_ARG(err_str(err)));
	if (patch_sorted_deep(a, v, 0, &sorted, NULL) < 0)
		return STR("too deep");
	return patch_test_plain(a, sorted);
}

#endif
