/*
 * Unit tests: TEST(name) { CHECK(...); } in a *_test.c beside the file it tests. Tests register themselves through a
 * linker section; one program per folder runs them through cmocka.
 */
#ifndef C8S_BASE_TEST_H
#define C8S_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/str.h"

struct test_entry {
	const char *name;
	void (*run)(void **state);
};

#define TEST(test_name)                                                                                    \
	static void test_##test_name(void **state);                                                        \
	static const struct test_entry entry_##test_name                                                   \
		__attribute__((used, section("c8s_tests"), aligned(sizeof(void *)))) = { #test_name, test_##test_name }; \
	static void test_##test_name(void **state __attribute__((unused)))

/* Ends the test with the file and line when the condition does not hold. */
#define CHECK(cond) assert_true(cond)
#define CHECK_INT(got, want) assert_int_equal(got, want)
/* Compares a str with a C string and shows both when they differ; row says which line of a table it was. */
#define CHECK_STR(got, want) test_check_str(got, str_of(want), -1, __FILE__, __LINE__)
#define CHECK_STR_ROW(row, got, want) test_check_str(got, str_of(want), (int)(row), __FILE__, __LINE__)
/* CHECK inside a loop over a table. */
#define CHECK_ROW(row, cond) \
	((cond) ? (void)0 : (print_error("row %d: ", (int)(row)), assert_true(cond)))

void test_check_str(str got, str want, int row, const char *file, int line);

#endif
