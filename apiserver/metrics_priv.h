/* What metrics.c (counting) and metrics_text.c (showing) share. */
#ifndef C8S_APISERVER_METRICS_PRIV_H
#define C8S_APISERVER_METRICS_PRIV_H

#include "apiserver/metrics.h"

/* Upper limits of the buckets for durations; one more bucket holds the rest. */
#define METRICS_SECONDS(X)                                                                                          \
	X(0.005) X(0.025) X(0.05) X(0.1) X(0.2) X(0.4) X(0.6) X(0.8) X(1) X(1.25) X(1.5) X(2) X(3) X(4) X(5) X(6) X(8) \
	X(10) X(15) X(20) X(30) X(45) X(60)
/* And for sizes of watch events, in bytes. */
#define METRICS_BYTES(X) X(1024) X(2048) X(4096) X(8192) X(16384) X(32768) X(65536) X(131072)

#define METRICS_ONE(limit) +1
enum { METRICS_N_SECONDS = METRICS_SECONDS(METRICS_ONE), METRICS_N_BYTES = METRICS_BYTES(METRICS_ONE) };
#undef METRICS_ONE

struct metrics_duration {
	uint64_t buckets[METRICS_N_SECONDS + 1];
	int64_t sum_ns;
};

enum { METRICS_CODES_MAX = 16 };

/* Requests with the same labels but for the code. */
struct metrics_series {
	struct metrics_series *next;
	const struct endpoint *endpoint; /* NULL: of a path */
	const char *verb, *scope, *subresource;
	bool dry_run;
	struct metrics_duration duration;
	struct {
		int status;
		uint64_t n;
	} codes[METRICS_CODES_MAX];
	size_t n_codes;
	int64_t running;
	bool lasts;                      /* running was not always 0 */
	uint64_t event_buckets[METRICS_N_BYTES + 1];
	uint64_t event_bytes;
};

struct metrics_store {
	struct metrics_duration duration;
	uint64_t requests, errors;
};

struct metrics {
	const struct kinds *kinds;
	struct metrics_series **endpoints; /* a list per endpoint, in the order of kinds; behind them one for all paths */
	struct metrics_store **stores;     /* per kind and operation; NULL: never used */
};

void metrics_write(const struct metrics *m, struct apiserver *s, struct buf *b);

/* ---- for other rooms' metrics too ---- */

/* The bucket that a value falls into: one per limit, which it does not exceed, and one more for the rest. */
size_t metrics_bucket(const int64_t *limits, size_t n, int64_t value);

/* A family that has been begun. */
struct metrics_family {
	struct buf *b;
	size_t begin, lines;      /* where it begins, and where its first series would */
};

struct metrics_family metrics_family(struct buf *b, const char *name, const char *type, const char *help);
/* For families that may be empty: those without a series go again. */
void metrics_family_end(const struct metrics_family *f);
/* labels: what all lines of the series carry, `a="b",c="d"` or "". n limits, n + 1 buckets. */
void metrics_histogram(struct buf *b, const char *name, str labels, const char *const *limits, const uint64_t *buckets, size_t n,
		       double sum);

#endif
