/*
 * metrics: what the server counts, and /metrics in the text form of Prometheus, under the names that dashboards for
 * Kubernetes know. Counting is an addition in memory that was found once per request; nothing here suspends or fails.
 * A server without metrics (NULL) counts nothing.
 */
#ifndef C8S_APISERVER_METRICS_H
#define C8S_APISERVER_METRICS_H

#include "apiserver/request.h"

struct metrics;
struct metrics_series;

/* kinds must outlive it and not change. */
struct metrics *metrics_new(const struct kinds *kinds) NONNULL_RESULT;
void metrics_free(struct metrics *m); /* NULL is fine */

/*
 * A request has been answered with this status, ns after it came. One that goes on by itself (a watch, an upgraded
 * connection) is counted, but how long it takes is not known yet and left out.
 */
void metrics_request(const struct request *q, int status, int64_t ns);

/*
 * What a request is counted under, for what outlives its struct request; lives as long as the metrics. NULL when it is
 * not counted, which the functions below take too.
 */
struct metrics_series *metrics_series(const struct request *q);
/* Requests that may take long: +1 when it begins, -1 when it ends. */
void metrics_longrunning(struct metrics_series *s, int change);
/* One event was sent to a watcher. */
void metrics_watch_event(struct metrics_series *s, size_t bytes);

#define METRICS_STORE_OPS(X) X(GET, "get") X(LIST, "list") X(CREATE, "create") X(UPDATE, "update") X(DELETE, "delete")

enum metrics_store_op {
#define METRICS_STORE_ENUM(name, text) METRICS_STORE_##name,
	METRICS_STORE_OPS(METRICS_STORE_ENUM)
#undef METRICS_STORE_ENUM
	METRICS_STORE_MAX,
};

/* The store was asked about objects of a kind and took ns to answer. */
void metrics_store(struct metrics *m, const struct kind *kind, enum metrics_store_op op, bool failed, int64_t ns);

/* Answers /metrics. */
int metrics_handle(struct request *q, struct err *err);

#endif
