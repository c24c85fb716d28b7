#include "machinery/text_diff.h"

#include "base/buf.h"
#include "base/test.h"

TEST(text_diff)
{
	static const struct {
		const char *before, *after, *want;
	} t[] = {
		{ "a\nb", "a\nb", "" },
		{ "a", "b", "@@ -1 +1 @@\n-a\n+b\n" },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\nx\n6\n7\n8\n9",
		  "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n" },
		/* two changes far from each other are two hunks, near ones are one */
		{ "a\n1\n2\n3\n4\n5\n6\n7\nb", "A\n1\n2\n3\n4\n5\n6\n7\nB",
		  "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n" },
		{ "a\n1\n2\n3\n4\n5\n6\nb", "A\n1\n2\n3\n4\n5\n6\nB",
		  "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n" },
		{ "a\nb\nc", "a\nc", "@@ -1,3 +1,2 @@\n a\n-b\n c\n" },
		{ "a\nc", "a\nb\nb\nc", "@@ -1,2 +1,4 @@\n a\n+b\n+b\n c\n" },
		/* the longest common run counts, not the first line that is equal */
		{ "x\na\nb\nc", "a\nb\nc\nx", "@@ -1,4 +1,4 @@\n-x\n a\n b\n c\n+x\n" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, text_diff(&a, str_of(t[i].before), str_of(t[i].after)), t[i].want);
	arena_done(&a);
}

/* Texts that would take quadratic time give no diff, soon. */
TEST(text_diff_budget)
{
	enum { LINES = 30000 };
	CLEANUP(buf_done) struct buf x = BUF_INIT(1 << 20), y = BUF_INIT(1 << 20);
	struct arena a = ARENA_INIT;

	for (int i = 0; i < LINES; i++) {
		buf_addf(&x, "%d\n", i % 150);
		buf_addf(&y, "%d\n", i % 151);
	}
	(void)text_diff(&a, buf_str(&x), buf_str(&y));
	arena_done(&a);
}
