/*
 * level: the priority levels, and how many seats each has. The server's seats are divided by shares (nominal); what a level may
 * lend and borrow of that makes a range, and within it seats move now and then to where they are needed (current).
 */
#ifndef C8S_APISERVER_FAIRNESS_LEVEL_H
#define C8S_APISERVER_FAIRNESS_LEVEL_H

#include "apiserver/fairness/queue_set.h"
#include "base/map.h"
#include "codec/val.h"

enum { RETRY_AFTER_MAX = 32 };

/* How long those that are rejected should stay away, in seconds: longer while many are, shorter again after. */
struct retry_after {
	int64_t seconds;                   /* 0 stands for 1 */
	int64_t changed;                   /* when it was doubled */
	int64_t current, n_current;        /* this second, and how many were rejected in it */
	struct {
		int64_t second, n;
	} history[RETRY_AFTER_MAX + 2];    /* oldest first */
	size_t n;
};

/* One more was rejected at this second (since any beginning); returns how long it should stay away. */
int64_t retry_after_note(struct retry_after *r, int64_t second);

struct priority_level {
	str name, uid;                     /* its own copies */
	bool wanted;                       /* there is an object of it, or must be; else it only drains */
	bool begun;                        /* it has seats already */
	bool exempt;
	unsigned shares, lendable_percent;
	int64_t borrowing_percent;         /* -1: as much as there is */
	unsigned nominal, least, most, current;
	unsigned max_seats;                /* that one request may take; 0: no limit of its own */
	struct queue_set queues;
	struct retry_after rejected;
	double average, deviation, smoothed, highest, target; /* demand, when last looked at */
};

struct levels {
	struct priority_level **v;         /* by name */
	size_t n;
	unsigned total;                    /* seats of the server */
	unsigned nominal_sum;
	double fair_fraction;
};

void levels_init(struct levels *l, unsigned total);
void levels_done(struct levels *l);
/*
 * The PriorityLevelConfigurations have changed: these are all of them now. The mandatory ones are there in any case; those that are
 * no longer drain and then go.
 */
void levels_update(struct levels *l, const struct val *objects, size_t n);
/* NULL when there is none, or it only drains. */
struct priority_level *levels_find(const struct levels *l, str name);
/* Seats go to the levels that need them; every LEVELS_ADJUST_MS. Levels that have drained go. */
void levels_adjust(struct levels *l);

enum { LEVELS_ADJUST_MS = 10000 };

/* ---- division (allocate.c) ---- */

struct allocation {
	double target, low, high;          /* wanted: target >= low, high >= low */
	double share;                      /* the result */
};

/*
 * Divides sum so that each gets the same fraction of its target, but not less than low nor more than high: *ret_fraction.
 * False when sum is less than all lows or more than all highs together.
 */
bool allocate(double sum, struct allocation *a, size_t n, double *ret_fraction);

#endif
