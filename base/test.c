#include "base/test.h"

#include <stdlib.h>

extern const struct test_entry __start_c8s_tests[], __stop_c8s_tests[];

void test_check_str(str got, str want, int row, const char *file, int line)
{
	if (str_eq(got, want))
		return;
	if (row >= 0)
		print_error("row %d: ", row);
	print_error("got  \"" STR_FMT "\"\nwant \"" STR_FMT "\"\n", STR_ARG(got), STR_ARG(want));
	_fail(file, line);
}

/* Runs all tests of the program, or those whose name contains the one argument. */
int main(int argc, char **argv)
{
	size_t max = (size_t)(__stop_c8s_tests - __start_c8s_tests), n = 0;
	struct CMUnitTest *tests = calloc(max + 1, sizeof(*tests));

	for (const struct test_entry *t = __start_c8s_tests; tests && t < __stop_c8s_tests; t++)
		if (argc < 2 || strstr(t->name, argv[1]))
			tests[n++] = (struct CMUnitTest){ .name = t->name, .test_func = t->run };
	int failed = tests ? _cmocka_run_group_tests("tests", tests, n, NULL, NULL) : 1;
	free(tests);
	return failed != 0;
}
