/*
 * Quantities: two of them, separated by a space. The canonical text is the same number, and stays what it is from the
 * second time on; numbers survive their text, and sums can be undone.
 */
#include "codec/quantity.h"
#include "fuzz/fuzz.h"

/* Kubernetes has no suffix beyond exa and leaves it out, so that larger texts mean something else. */
static bool is_writable(struct quantity q)
{
	quantity_nanos limit = (quantity_nanos)1000000000000000000 * 1000000000000;
	return q.nanos < limit && q.nanos > -limit;
}

static bool check_one(struct arena *a, str text, struct quantity *ret)
{
	struct quantity same;
	str canonical, again, last;
	char out[QUANTITY_TEXT_MAX];
	int r = quantity_parse(text, ret, NULL);

	check(r == quantity_canonical(a, text, &canonical, NULL), "a text has a number when it has a canonical text");
	if (r < 0)
		return false;
	check(quantity_canonical(a, canonical, &again, NULL) == 0, "a canonical text can be parsed");
	/* 62.5Ki is 64000, for want of a binary suffix that fits, and 64000 by itself is 64k */
	check(quantity_canonical(a, again, &last, NULL) == 0 && str_eq(again, last), "a canonical text is canonical");
	str formatted = quantity_format(*ret, out);
	check(formatted.n < QUANTITY_TEXT_MAX, "a text fits");
	if (is_writable(*ret)) {
		check(quantity_parse(canonical, &same, NULL) == 0, "a canonical text is a number");
		check(quantity_cmp(*ret, same) == 0, "a canonical text is the same number");
		check(quantity_parse(formatted, &same, NULL) == 0, "a formatted text is a number");
		check(quantity_cmp(*ret, same) == 0, "a number survives its text");
	}
	for (int scale = -9; scale <= 0; scale++) {
		struct quantity up = quantity_round_up(*ret, scale);
		check(quantity_cmp(quantity_round_up(up, scale), up) == 0, "what is rounded is round");
	}
	(void)quantity_value(*ret);
	(void)quantity_milli(*ret);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct quantity a, b;
	str first, second;

	(void)str_cut(str_span((const char *)data, n), ' ', &first, &second);
	bool both = check_one(&arena, first, &a);
	both &= check_one(&arena, second, &b);
	if (both && is_writable(a) && is_writable(b))
		check(quantity_cmp(quantity_sub(quantity_add(a, b), b), a) == 0, "a sum can be undone");
	return 0;
}
