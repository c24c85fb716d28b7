/*
 * A store in memory that keeps the contract of store/store.h on one thread: no files, no other threads, so that a run depends on nothing but
 * its seed. How long a write takes is asked for each time; what was written stays when an API server that used it is gone.
 */
#ifndef C8S_SIMULATION_MEMORY_STORE_H
#define C8S_SIMULATION_MEMORY_STORE_H

#include "store/store.h"

struct memory_store;

/* What happens to one write. */
struct memory_store_fate {
	int64_t before_ns, after_ns; /* that it takes until it is done, and from there until that is known */
	int64_t seen_ns;             /* and until watches tell of it */
	bool refused;                /* it is not done: -ERR_UNAVAILABLE */
	bool unknown;                /* it is done, and nobody is told: -ERR_TIMEOUT */
};

struct memory_store_options {
	/* NULL: everything happens at once. */
	struct memory_store_fate (*fate)(void *arg);
	/* Told of every write when it is done; value NULL: the key is gone. May be NULL. Must not suspend. */
	void (*written)(void *arg, str key, struct store_value *value, int64_t revision);
	void *arg;
};

/* With all that the other one has (NULL: nothing), which costs O(1). store_free of its store does nothing. */
struct memory_store *memory_store_new(const struct memory_store_options *o, const struct memory_store *like) NONNULL_RESULT;
struct store *memory_store_of(struct memory_store *m);
/*
 * Nobody may be using it. What API servers have attached to values is let go, as a process that ends does: to be called when one has ended,
 * and before the free.
 */
void memory_store_detach(struct memory_store *m);
void memory_store_free(struct memory_store *m);

#endif
