/*
 * simulation/: a whole cluster in one process on a virtual clock: API server, scheduler, controllers and hollow nodes, with work for them and
 * with what goes wrong, all of it drawn from one number. The same seed gives the same run, write by write.
 *
 *	run.c            one seed from the beginning to the end
 *	cluster.c        the components, which can be stopped and started again
 *	memory_store.h   the store, which stays
 *	link.h           the clients of the components, with faults
 *	work.c           what users do: objects that are made, changed and deleted
 *	faults.c         what goes wrong
 *	history.h        what was written, and its sum
 *	rules.h          what must hold: rules_write.c at every write, rules_end.c when everything has calmed down
 */
#ifndef C8S_SIMULATION_SIMULATION_H
#define C8S_SIMULATION_SIMULATION_H

#include "base/buf.h"
#include "base/fiber.h"
#include "simulation/dice.h"
#include "simulation/history.h"
#include "simulation/link.h"
#include "simulation/memory_store.h"
#include "simulation/rules.h"

enum { SIM_NODES_MAX = 8, SIM_ACCOUNTS_MAX = 64 };

/* A component on its fiber. */
struct part {
	struct simulation *sim;
	struct fiber *fiber;         /* NULL: it does not run */
	int (*run)(struct part *p, struct err *err);
	const char *name;
};

struct sim_node {
	struct part part;
	int number;
	struct client *client;
	bool lost;                   /* it never comes back */
};

struct simulation {
	uint64_t seed;
	bool calm;                   /* no faults */
	struct dice dice;
	struct memory_store *store;
	struct hub hub;
	struct part server, scheduler, manager;
	struct fiber_cond server_ready;
	struct client *operator, *scheduler_client;
	struct {
		char name[64];
		struct client *client;
	} accounts[SIM_ACCOUNTS_MAX];
	size_t n_accounts;
	struct sim_node nodes[SIM_NODES_MAX];
	int n_nodes;
	int64_t slow_ns;             /* how long writes take now, at most */
	unsigned bad_writes;         /* how many of 10000 fail: half of them are done all the same */
	struct fiber *faults;
	struct history history;
	struct rules rules;
};

/* ---- cluster.c; all of it suspends ---- */

/* Everything is stopped; the clients are there. */
void cluster_init(struct simulation *s);
void cluster_done(struct simulation *s);
int part_start(struct part *p, struct err *err);
void part_stop(struct part *p);
/* The API server begins, and is ready, or ends with all calls to it. */
int server_start(struct simulation *s, struct err *err);
void server_stop(struct simulation *s);
struct sim_node *node_add(struct simulation *s, struct err *err);

/* ---- work.c, faults.c; they suspend ---- */

/* What all work needs; then as much work as the seed says. */
void work_begin(struct simulation *s);
void work_run(struct simulation *s);
/* Until the fiber is canceled; what was broken is mended then. */
void faults_run(struct simulation *s);

/* ---- run.c ---- */

struct sim_result {
	uint64_t sum;                /* of the history */
	size_t writes;
	bool failed;
};

struct sim_options {
	uint64_t seed;
	bool calm;
	bool verbose;                /* every write is printed */
};

/* Blocks: runs a loop of its own. What has failed is appended to out. */
void simulate(const struct sim_options *o, struct sim_result *ret, struct buf *out);
/* Frees what runs share. */
void simulate_done(void);

#endif
