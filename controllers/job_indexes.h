/*
 * job_indexes: sets of completion indexes as intervals, as status.completedIndexes writes them: "1,3-5,7". Pure; everything lives in the arena.
 */
#ifndef C8S_CONTROLLERS_JOB_INDEXES_H
#define C8S_CONTROLLERS_JOB_INDEXES_H

#include "base/arena.h"

struct job_interval {
	int64_t first, last;
};

/* In order, without touching each other. */
struct job_indexes {
	struct job_interval *v;
	size_t n;
};

/* Those below completions; parts that make no sense are passed over. */
struct job_indexes job_indexes_parse(struct arena *a, str text, int64_t completions);
str job_indexes_text(struct arena *a, const struct job_indexes *x);
/* The set with n more indexes, in any order and also several times. */
struct job_indexes job_indexes_with(struct arena *a, const struct job_indexes *x, const int64_t *more, size_t n);
struct job_indexes job_indexes_merge(struct arena *a, const struct job_indexes *x, const struct job_indexes *y);
int64_t job_indexes_total(const struct job_indexes *x);
bool job_indexes_has(const struct job_indexes *x, int64_t index);
/* How many are in both. */
int64_t job_indexes_common(const struct job_indexes *x, const struct job_indexes *y);
/* The lowest indexes below completions that are not in the set, at most max of them, into ret; how many. */
size_t job_indexes_missing(const struct job_indexes *x, int64_t completions, size_t max, int64_t *ret);

#endif
