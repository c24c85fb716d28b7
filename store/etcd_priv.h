/* The etcd engine's own: what its files share. */
#ifndef C8S_STORE_ETCD_PRIV_H
#define C8S_STORE_ETCD_PRIV_H

#include "base/arena.h"
#include "base/fiber.h"
#include "base/map.h"
#include "codec/schema.h"
#include "net/grpc.h"
#include "store/store_priv.h"

/* One lease for many keys, as Kubernetes does it: a lease per key would weigh on etcd. */
struct etcd_lease {
	int64_t id;               /* 0: none yet */
	int64_t ends_ns;          /* as clock_now_ns counts */
	unsigned keys;            /* that were given it */
	bool granting;            /* a fiber asks for a new one */
	struct fiber_cond granted;
};

/* Values of this process' own writes; see etcd_own.c. */
struct etcd_own {
	struct map by_key;
	struct list order;        /* oldest first */
	size_t bytes;
};

struct etcd {
	struct store store;
	struct tls_context *tls;
	struct grpc_channel *channel;
	struct etcd_lease lease;
	struct etcd_own own;
	int64_t revision, compact_revision; /* the newest that were seen */
	uint64_t asked_generation; /* the connection whose member's version is known (0: none): */
	bool progress_ordered;    /* answers to progress requests are in order with events */
	struct fiber_group askers; /* see etcd_progress.c */
};

static inline struct etcd *etcd_of(struct store *s) { return CONTAINER_OF(s, struct etcd, store); }

/* ---- etcd_client.c: calls ---- */

struct etcd_answer {
	struct arena arena;
	struct grpc_message *message; /* the tree borrows from it */
	struct val v;
};

#define ETCD_ANSWER_INIT { .arena = ARENA_INIT }
void etcd_answer_done(struct etcd_answer *a);

/*
 * (suspends) Calls a method and takes the answer apart; a is zeroed before, and given to etcd_answer_done in any case. At
 * most ETCD_CALL_MS pass, whatever happens to members. Errors are those of store.h. Reads, and writes that certainly had no
 * effect, are tried again elsewhere while there is hope.
 */
enum { ETCD_CALL_MS = 10000 };
enum etcd_effect { ETCD_READ, ETCD_WRITE };
int etcd_call(struct etcd *e, const struct rpc *rpc, enum etcd_effect effect, struct val request, struct etcd_answer *a,
	      struct err *err);

/* Gives an error that a member answered with its meaning in store.h; r is -code. */
int etcd_error(int r, enum etcd_effect effect, struct err *err);

/*
 * (suspends) Does the member on the connection of this generation answer progress requests in order with events? No, too,
 * when the connection is not in use any more.
 */
int etcd_progress_ordered(struct etcd *e, uint64_t generation, bool *ret_ordered, struct err *err);

/* The first key for a range that may begin with the empty one, which etcd does not take. */
static inline str etcd_from(str from) { return from.n ? from : STR("\0"); }
/* A mvccpb.KeyValue; the key is copied into the arena, unless that is NULL, the value always. */
struct store_kv etcd_kv(struct arena *a, struct val kv, bool with_value);

/* ---- the parts of the engine ---- */

int etcd_write(struct store *s, const struct store_write *w, int64_t *ret_revision, struct store_kv *ret_current,
	       struct err *err);
/* (suspends) A lease that lives at least ttl_s from now on. */
int etcd_lease_get(struct etcd *e, int64_t ttl_s, int64_t *ret_lease, struct err *err);
/* The server does not know it any more. */
void etcd_lease_forget(struct etcd *e, int64_t lease);

void etcd_own_init(struct etcd_own *o);
void etcd_own_done(struct etcd_own *o);
/* Remembers the value of a write that is about to be sent. */
void etcd_own_add(struct etcd_own *o, str key, struct store_value *value);
/* A reference to the value that was written with these bytes; or NULL. */
struct store_value *etcd_own_find(const struct etcd_own *o, str key, str bytes);

int etcd_revision(struct store *s, int64_t *ret_revision, struct err *err);

int etcd_watch_open(struct store *s, str from, str to, int64_t revision, struct store_watch **ret, struct err *err);
int etcd_watch_next(struct store_watch *w, struct store_batch *ret, struct err *err);
void etcd_watch_progress(struct store_watch *w);
void etcd_watch_free(struct store_watch *w);

#endif
