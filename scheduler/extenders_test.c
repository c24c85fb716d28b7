#include "scheduler/extenders.h"

#include "base/test.h"

TEST(extender_scores_are_added)
{
	static const struct {
		int64_t total, score, weight, want;
	} t[] = {
		{ 5, 3, 2, 65 },
		{ 5, -3, 2, -55 },
		{ INT64_MAX - 10, 1, 1, INT64_MAX },
		{ INT64_MAX - 10, 2, 1, INT64_MAX },
		{ 0, INT64_MAX / 5, 1, INT64_MAX },
		{ 0, INT64_MAX / 20, 3, INT64_MAX },
		{ 0, INT64_MIN / 5, 1, INT64_MIN },
		{ INT64_MIN, -1, 1, INT64_MIN },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, extender_score_add(t[i].total, t[i].score, t[i].weight) == t[i].want);
}
