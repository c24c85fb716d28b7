#include "base/test.h"
#include "kubectl/tabs.h"

static void check(void (*init)(struct ktl_tabs *), const char *in, const char *want)
{
	struct ktl_tabs t;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 16);
	init(&t);
	buf_add(&t.text, str_of(in));
	ktl_tabs_flush(&t, &out);
	CHECK_STR(str_of(out.p), want);
	ktl_tabs_done(&t);
}

TEST(tabs_columns)
{
	check(ktl_tabs_for_table, "NAME\tREADY\na\t1/1\nlonger-name\t\n", "NAME          READY\na             1/1\nlonger-name   \n");
	check(ktl_tabs_for_table, "A\tB\nc\td\n", "A     B\nc     d\n");
	/* A line without a column ends it. */
	check(ktl_tabs_for_description, "Name:\tx\nNamespace:\ty\nContainers:\n  c:\n    Image:\tz\n",
	      "Name:       x\nNamespace:  y\nContainers:\n  c:\n    Image:  z\n");
	/* Characters count, not bytes. */
	check(ktl_tabs_for_description, "\xc3\xa9\tx\nab\ty\n", "\xc3\xa9   x\nab  y\n");
	check(ktl_tabs_for_description, "", "");
}

TEST(tabs_nested)
{
	check(ktl_tabs_for_description, "a:\tb\tc\nlong:\td\ne:\tlonger\tf\n", "a:     b  c\nlong:  d\ne:     longer  f\n");
}

TEST(tabs_remember)
{
	struct ktl_tabs t;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 16);
	ktl_tabs_for_table(&t);
	buf_add(&t.text, STR("long-name\tx\n"));
	ktl_tabs_flush(&t, &out);
	buf_reset(&out);
	buf_add(&t.text, STR("s\ty\n"));
	ktl_tabs_flush(&t, &out);
	CHECK_STR(str_of(out.p), "s           y\n");
	ktl_tabs_forget(&t);
	buf_reset(&out);
	buf_add(&t.text, STR("s\ty\n"));
	ktl_tabs_flush(&t, &out);
	CHECK_STR(str_of(out.p), "s     y\n");
	ktl_tabs_done(&t);
}
