/* For the tables of expressions in tests: what Kubernetes' own CEL answered, and the check that ours says the same. */
#ifndef C8S_MACHINERY_CEL_TESTING_H
#define C8S_MACHINERY_CEL_TESTING_H

#include <stdint.h>

/*
 * The variables are x = 5, s = "hello", d = {"a": 1, "b": "two", "c": [1, "x", null], "e": {}} (dyn), l = [1, 2, 3], m = {"k": "v"},
 * ld = [1, 2.0, "x"] (list of dyn), b = true.
 */
struct cel_fact {
	const char *expression;
	const char *type;     /* NULL: it does not compile, and result is the text */
	const char *result;   /* type and value; "!" and the text of an error */
	uint64_t cost;        /* of the evaluation; CEL_ANY_COST: not compared */
	uint64_t max;         /* the estimate, likewise */
};

#define CEL_ANY_COST UINT64_MAX

void cel_check_facts(const struct cel_fact *facts, size_t n);

#endif
