/*
 * queue_set: the seats of one priority level, and the queues before them.
 *
 * A request takes as many seats as it is wide. With seats free it begins at once. Else it waits in a queue: shuffle sharding
 * deals each flow a hand of queues, and the request goes to the one of them with the least work waiting, so that a flow that
 * floods fills its own hand and few others meet it there. Which queue is served next is fair queuing: R is a clock that runs
 * with the work done per queue; each queue knows the R at which its next request would begin if all queues were served in turns,
 * and the one whose next request would end first is served. How long a request takes is guessed, and corrected when it is known.
 *
 * Time is clock_now_ns(); everything belongs to one loop and nothing here but queue_set_wait suspends.
 */
#ifndef C8S_APISERVER_FAIRNESS_QUEUE_SET_H
#define C8S_APISERVER_FAIRNESS_QUEUE_SET_H

#include "base/fiber.h"
#include "base/str.h"

struct queue;
struct request;

enum { HAND_MAX = 15 }; /* cards that a hand can have, with the entropy that a hash has */

/* How much work a request is: seats while it runs, and seats for a while after it, when watchers hear of what it did. */
struct seat_work {
	unsigned initial, final;
	int64_t after_ns;
};

static inline unsigned seat_work_width(const struct seat_work *w) { return MAX(w->initial, w->final); }

/* ---- what is counted, by level and schema; never freed while the server lives ---- */

#define FLOW_SECONDS(X) X(0) X(0.005) X(0.02) X(0.05) X(0.1) X(0.2) X(0.5) X(1) X(2) X(5) X(10) X(15) X(30)
#define FLOW_ONE(limit) +1
enum { FLOW_N_SECONDS = FLOW_SECONDS(FLOW_ONE) };
#undef FLOW_ONE

struct flow_duration {
	uint64_t buckets[FLOW_N_SECONDS + 1];
	int64_t sum_ns;
};

#define FLOW_REJECTS(X) X(CONCURRENCY, "concurrency-limit") X(QUEUE_FULL, "queue-full") X(TIMEOUT, "time-out")

enum flow_reject {
#define FLOW_REJECT_ENUM(name, text) FLOW_REJECT_##name,
	FLOW_REJECTS(FLOW_REJECT_ENUM)
#undef FLOW_REJECT_ENUM
	FLOW_REJECT_MAX,
};

struct flow_series {
	str level, schema;
	uint64_t dispatched, rejected[FLOW_REJECT_MAX];
	unsigned waiting, seats_waiting, executing, seats;
	struct flow_duration waited[2];    /* [0]: in vain */
	struct flow_duration ran[2];       /* [1]: watches, until they have begun */
};

void flow_observe(struct flow_duration *d, int64_t ns);

/* ---- a request ---- */

enum seat_state { SEAT_NONE, SEAT_WAITING, SEAT_TAKEN };

/* The caller sets set, series, work, distinguisher and request, all else being zero; it stays where it is until it has left. */
struct flow_seat {
	struct list link;                  /* of its queue (or set): waiting or executing */
	struct queue_set *set;
	struct flow_series *series;
	struct seat_work work;
	str distinguisher;                 /* what tells its flow from others */
	const struct request *request;     /* for dumps */
	bool writes, watch;                /* the caller's */
	enum seat_state state;
	struct queue *queue;               /* NULL: it never was in one */
	double total_work, arrival_r;
	int64_t arrived_ns, started_ns;
	struct fiber_cond served;
};

/* ---- demand: how many seats a level could use, over time ---- */

struct seat_demand {
	int64_t since_ns;                  /* of value */
	double value, elapsed, sum, squares, highest;
};

struct seat_demand_result {
	double elapsed, average, deviation, highest;
};

/* What there was since the last call. */
struct seat_demand_result seat_demand_take(struct seat_demand *d);

/* ---- the set ---- */

struct queue_set_config {
	bool exempt;                       /* no limits */
	unsigned queues;                   /* 0: what has no seat is rejected */
	unsigned hand_size, queue_length;
};

struct queue_set {
	struct queue_set_config config;
	unsigned limit;                    /* seats */
	struct queue **queues;             /* made when first used; more than config.queues while some still drain */
	size_t n_queues;
	struct list waiting_queues;        /* those with requests that wait */
	struct list executing;             /* requests that have a seat and came through no queue */
	struct list lingering;             /* seats that are kept for a while after their requests */
	double r;                          /* seat-seconds per queue, since the beginning */
	int64_t synced_ns;                 /* when r was brought up to date */
	size_t robin;                      /* the queue that was served last */
	uint64_t enqueued;
	unsigned n_waiting, n_executing, seats_waiting, seats, n_lingering;
	unsigned active;                   /* queues with requests that wait or execute */
	struct seat_demand demand;
	uint64_t dispatched, rejected, canceled;
};

void queue_set_init(struct queue_set *s);
/* Nobody may be in it but seats that linger. */
void queue_set_done(struct queue_set *s);
/* Requests that wait stay where they are. */
void queue_set_configure(struct queue_set *s, const struct queue_set_config *config);
void queue_set_limit(struct queue_set *s, unsigned limit);

/*
 * SEAT_TAKEN: the request may go on. SEAT_WAITING: call queue_set_wait. SEAT_NONE: there is no room. hash tells its flow; only
 * sets with queues look at it.
 */
enum seat_state queue_set_enter(struct flow_seat *seat, uint64_t hash);
/* (suspends) 0 with a seat; -ERR_TIMEOUT at until_ns and -ERR_CANCELED: it waits no more and has none. */
int queue_set_wait(struct flow_seat *seat, int64_t until_ns);
/* Gives the seat back, and calls the next. */
void queue_set_leave(struct flow_seat *seat);

static inline bool queue_set_is_idle(const struct queue_set *s) { return !s->n_waiting && !s->n_executing; }

/* The hand of a flow: n different numbers below deck, n at most HAND_MAX. As Kubernetes deals, from the hash of a flow. */
void shuffle_deal(uint64_t hash, unsigned deck, unsigned n, unsigned hand[]);

/* One queue as dumps show it; zeros for one that was never used. */
struct queue_figures {
	unsigned waiting, executing, seats, initial_waiting, seats_waiting;
	double next_r, work_waiting;
	const struct list *waiters, *executors; /* struct flow_seat by link; NULL: none */
};

struct queue_figures queue_set_figures(const struct queue_set *s, size_t i);

#endif
