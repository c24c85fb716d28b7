/* score: what plugins that score share. */
#ifndef C8S_SCHEDULER_SCORE_H
#define C8S_SCHEDULER_SCORE_H

#include "base/defs.h"

enum { SCORE_MAX = 100 };

/* From 0..the largest to 0..100, or the other way round when reverse; all alike (0) are 0, or 100 when reverse. */
void scores_normalize(int64_t *scores, size_t n, bool reverse);

#endif
