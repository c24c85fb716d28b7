/* What the files of fairness/ share. */
#ifndef C8S_APISERVER_FAIRNESS_FAIRNESS_PRIV_H
#define C8S_APISERVER_FAIRNESS_FAIRNESS_PRIV_H

#include "apiserver/fairness/fairness.h"
#include "apiserver/fairness/flow.h"

/* What makes requests of one kind wide. */
struct kind_load {
	unsigned everywhere;               /* watches of the whole kind */
	struct map narrower;               /* "namespace/name" (either may be empty) to struct fairness_watch */
	int64_t size_until_ns;             /* when it should be guessed again: */
	unsigned size;                     /* of one object, about, in bytes */
};

struct flow_control {
	struct apiserver *server;
	unsigned reading, writing;         /* at work now */
	bool shares;                       /* by priority and fairness; else only by how many are at work */
	struct levels levels;
	struct flow_table table;
	struct map series;                 /* "schema level" to struct flow_series */
	struct kind_load *loads;           /* by kind */
};

/* How much work a request is. max_seats: that one may take in its level; 0: no limit of the level's. */
struct seat_work estimate_work(struct flow_control *f, const struct request *q, unsigned max_seats);

/* The stage when only how many are at work counts (maxinflight.c). */
int max_inflight(struct flow_control *f, struct request *q);

/* 429: come again in so many seconds. */
int answer_too_many(struct request *q, int64_t retry_after_s);
/* A request of this sort begins: its seat, counted as at work. */
struct flow_seat *seat_new(struct flow_control *f, struct request *q);
bool request_reads(const struct request *q);

#endif
