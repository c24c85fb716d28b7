#include "scheduler/score.h"

void scores_normalize(int64_t *scores, size_t n, bool reverse)
{
	int64_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = MAX(most, scores[i]);
	if (most == 0 && !reverse)
		return;
	for (size_t i = 0; i < n; i++) {
		int64_t score = most ? SCORE_MAX * scores[i] / most : 0;
		scores[i] = reverse ? SCORE_MAX - score : score;
	}
}
