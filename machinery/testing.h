/*
 * What the tests of this folder share. JSON is written with ' instead of ", in inputs as well as in expectations; the text of
 * an error that is expected has "! " before it.
 */
#ifndef C8S_MACHINERY_TESTING_H
#define C8S_MACHINERY_TESTING_H

#include "base/test.h"
#include "machinery/patch_priv.h"

/* Not inlined: a test calls them many times, and frames are small. */
#define TESTING static __attribute__((noinline, unused))

/* A copy of text with one kind of quote for the other. */
TESTING str testing_swap(struct arena *a, str text, char from, char to)
{
	str copy = arena_str(a, text);
	for (char *p = (char *)copy.p; *p; p++)
		if (*p == from)
			*p = to;
	return copy;
}

/* JSON proper. */
TESTING str testing_json(struct arena *a, const char *quoted) { return testing_swap(a, str_of(quoted), '\'', '"'); }

TESTING struct val testing_decode(struct arena *a, const char *quoted, const struct json_decode_options *opt)
{
	struct val v = VAL_EMPTY;
	struct err err = ERR_INIT;

	if (json_decode(a, testing_json(a, quoted), opt, &v, &err) < 0)
		fail_msg("%s: %s", quoted, err.msg);
	return v;
}

/* A free tree with sorted members; and one in the order of the text. NULL gives VAL_NONE. */
TESTING struct val testing_tree(struct arena *a, const char *quoted)
{
	return quoted ? testing_decode(a, quoted, &(struct json_decode_options){ .sort_keys = true }) : VAL_EMPTY;
}

TESTING struct val testing_unsorted(struct arena *a, const char *quoted)
{
	return testing_decode(a, quoted, &(struct json_decode_options){ 0 });
}

TESTING struct val testing_typed(struct arena *a, const struct type *type, const char *quoted)
{
	return testing_decode(a, quoted, &(struct json_decode_options){ .type = type });
}

/* The tree's JSON, members in their order. */
TESTING str testing_text(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct err err = ERR_INIT;

	if (json_encode(&b, v, &(struct json_encode_options){ .plain = true }, &err) < 0)
		fail_msg("%s", err.msg);
	return testing_swap(a, buf_str(&b), '"', '\'');
}

TESTING str testing_error(struct arena *a, const struct err *err) { return arena_join(a, STR("! "), err_str(err)); }

/* What a function left: the tree's JSON with sorted members, or the error. */
TESTING str testing_result(struct arena *a, int r, struct val v, const struct err *err)
{
	struct val sorted;

	if (r < 0)
		return testing_error(a, err);
	if (patch_sorted_deep(a, v, 0, &sorted, NULL) < 0)
		return STR("too deep");
	return testing_text(a, sorted);
}

#endif
