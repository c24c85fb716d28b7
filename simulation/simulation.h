/*
 * simulation/: a whole cluster in one process on a virtual clock: API server, scheduler, controllers and hollow nodes, with work for them and
 * with what goes wrong, all of it drawn from one number. The same seed gives the same run, write by write.
 *
 *	run.c            one seed from the beginning to the end
 *	cluster.c        the API server and the nodes, which can be stopped and started again
 *	replicas.c       schedulers and controller managers: two of each, of which one leads
 *	memory_store.h   the store, which stays
 *	link.h           the clients of the components, with faults
 *	work.h           what users do: objects that are made, changed and deleted
 *	faults.c         what goes wrong
 *	history.h        what was written, and its sum
 *	rules.h          what must hold: at every write, and when everything has calmed down
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

enum { SIM_NODES_MAX = 8, SIM_ACCOUNTS_MAX = 64, SIM_REPLICAS = 2 };

/* A component on its fiber. */
struct part {
	struct simulation *sim;
	struct fiber *fiber;         /* NULL: it does not run */
	int (*run)(struct part *p, struct err *err);
	char name[32];
	bool in_trouble;             /* a fault is at it: another one leaves it alone */
};

struct sim_node {
	struct part part;
	int number;
	struct client *client;
	bool lost;                   /* it never comes back */
};

/* A scheduler or a controller manager, as a process that wants to lead. */
struct sim_replica {
	struct part part;
	const char *lease;
	int number, starts;
	struct {
		char name[64];
		struct client *client;
	} accounts[SIM_ACCOUNTS_MAX]; /* its identities; the first is its own */
	size_t n_accounts;
	bool cut, dead;              /* its links are; also those that are made meanwhile */
	bool leads;
};

struct simulation {
	uint64_t seed;
	bool calm;                   /* no faults */
	void (*story)(struct simulation *s); /* NULL: work */
	struct dice dice;
	struct memory_store *store;
	struct hub hub;
	struct part server;
	struct sim_replica schedulers[SIM_REPLICAS], managers[SIM_REPLICAS];
	bool cache_late;             /* schedulers look at nothing before they lead */
	struct fiber_cond server_ready;
	struct client *operator, *meddler;
	struct sim_node nodes[SIM_NODES_MAX];
	int n_nodes;
	int64_t slow_ns;             /* how long writes take now, at most */
	unsigned bad_writes;         /* how many of 10000 fail: half of them are done all the same */
	int no_writes;               /* above 0: none is done */
	bool store_in_trouble, network_in_trouble;
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

/* ---- replicas.c; all of it suspends ---- */

void replicas_init(struct simulation *s);
int replicas_start(struct simulation *s, struct err *err);
void replicas_stop(struct simulation *s);
/* When nothing is on the way any more. */
void replicas_free(struct simulation *s);
/* The one that leads; NULL: nobody. */
struct sim_replica *replica_leader(struct sim_replica replicas[SIM_REPLICAS]);
/* All its links at once. */
void replica_cut(struct sim_replica *r, bool cut);
/* It ends without a word, as by SIGKILL; what it has sent may still arrive. Without that: part_stop. */
void replica_kill(struct sim_replica *r);

/* ---- work.c, faults.c; they suspend ---- */

/* What all work needs; then as much work as the seed says. */
void work_begin(struct simulation *s);
void work_run(struct simulation *s);
/* CronJobs begin nothing more. */
void work_end(struct simulation *s);
/* On fibers of the group; when they have been canceled and have ended, what was broken is mended. */
int faults_start(struct simulation *s, struct fiber_group *group, struct err *err);

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

/* (suspends) Until everything is as it shall be, and stays so; after too long a time that fails. */
void settle(struct simulation *s);
/* Blocks: a cluster without work and without faults; `story` runs on a fiber of it, and fails by rules_fail. For tests. */
void simulate_story(void (*story)(struct simulation *s), struct sim_result *ret, struct buf *out);
/* Blocks: runs a loop of its own. What has failed is appended to out. */
void simulate(const struct sim_options *o, struct sim_result *ret, struct buf *out);
/* Frees what runs share. */
void simulate_done(void);

#endif
