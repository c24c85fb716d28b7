#include "machinery/pem.h"
#include "base/test.h"

#define BLOCK(type, body) "-----BEGIN " type "-----\n" body "-----END " type "-----\n"

TEST(pem_next)
{
	static const struct {
		const char *text, *want; /* type, + for headers, and content of each block */
	} t[] = {
		{ "", "" },
		{ "text", "" },
		{ BLOCK("A", "YWJj\n"), "A:abc;" },
		{ BLOCK("A B", "YW\nJj\r\n"), "A B:abc;" },
		{ BLOCK("A", ""), "A:;" },
		{ "before\n" BLOCK("A", "YWJj\n") "between\n" BLOCK("B", "ZGVm\n") "after", "A:abc;B:def;" },
		{ BLOCK("A", "X: y\nZ: z\n\nYWJj\n"), "A+:abc;" },
		{ "x-----BEGIN A-----\nYWJj\n-----END A-----\n", "" },
		{ "-----BEGIN A-----\nYWJj\n-----END B-----\n", "" },
		{ "-----BEGIN A-----\nYWJj\n", "" },
		{ "-----BEGIN A\nYWJj\n-----END A-----\n", "" },
		{ BLOCK("A", "!\n") BLOCK("B", "ZGVm\n"), "B:def;" },
		{ "-----BEGIN A-----\n" BLOCK("B", "ZGVm\n"), "B:def;" },
		{ "-----END A-----\n" BLOCK("B", "ZGVm\n"), "B:def;" },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str rest = str_of(t[i].text), got = STR("");
		struct pem_block block;
		while (pem_next(&a, &rest, &block))
			got = arena_printf(&a, STR_FMT STR_FMT "%s:" STR_FMT ";", STR_ARG(got), STR_ARG(block.type), block.has_headers ? "+" : "",
					   STR_ARG(block.bytes));
		CHECK_STR_ROW(i, got, t[i].want);
	}
	arena_done(&a);
}
