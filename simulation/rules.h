/*
 * rules: what must hold. They see every write when it is done, in order, whoever made it: rules.c keeps the newest state and asks each rule
 * about each change (rules_check_...); others are about the state that is left when everything has calmed down (rules_..._settled).
 *
 *	rules_write.c    pods and nodes, Jobs, budgets, quotas, leases
 *	rules_end.c      workloads, and that nothing is left over
 *	rules_volumes.c  claims and volumes
 *	rules_services.c Endpoints and EndpointSlices
 *	rules_cron.c     CronJobs
 */
#ifndef C8S_SIMULATION_RULES_H
#define C8S_SIMULATION_RULES_H

#include "base/buf.h"
#include "base/map.h"
#include "base/omap.h"
#include "codec/val.h"
#include "simulation/history.h"

struct rules {
	struct history *history;
	struct omap *objects;        /* key of the store to struct frozen: all that this run has written, leases and events aside */
	struct map facts;            /* what rules remember: struct fact */
	bool late;                   /* who made this write has given up, and may be another than the one in charge by now */
	bool failed;
	struct buf text;             /* what has failed, the first time */
};

void rules_init(struct rules *r, struct history *h);
void rules_done(struct rules *r);
/* A write: value NULL is a deletion. */
void rules_written(struct rules *r, str key, struct store_value *value);
/* The same of an object; NULL: it is gone. */
void rules_change(struct rules *r, str key, struct frozen *now);
/* The node that a pod ran on says that it has stopped it. */
void rules_stopped(struct rules *r, str uid);
/* A scheduler was not told whether it has placed a pod on this node. */
void rules_unsure(struct rules *r, str node);
/* Ends the run. `about` is a key, or empty. */
void rules_fail(struct rules *r, const char *rule, str about, const char *format, ...) PRINTF_LIKE(4, 5);
/* Whether everything is as it shall be at the end; the first thing that is not is appended to `why`. */
bool rules_settled(const struct rules *r, struct buf *why);

/* ---- among the rules ---- */

/* A number under a name, 0 at first. */
int64_t *rules_fact(struct rules *r, const char *what, str uid);
/* 0 when there is none. */
int64_t rules_fact_of(const struct rules *r, const char *what, str uid);
/* One write, before the state has it: VAL_EMPTY for what was not there, or is gone. */
void rules_check_write(struct rules *r, str key, struct val old, struct val now);

void rules_check_volumes(struct rules *r, str key, struct val old, struct val now);
void rules_check_cron(struct rules *r, str key, struct val old, struct val now);
/* The parts of rules_settled. */
bool rules_volumes_settled(const struct rules *r, struct buf *why);
bool rules_services_settled(const struct rules *r, struct buf *why);
bool rules_cron_settled(const struct rules *r, struct buf *why);
/* False, with what is wrong about this key. */
bool rules_complain(struct buf *why, str key, const char *what);

/* The object at "/registry/" and this; VAL_EMPTY: none. */
struct val rules_find(const struct rules *r, const char *format, ...) PRINTF_LIKE(2, 3);

bool pod_is_over(struct val pod);
/* Its claims do not keep it from running on that node. */
bool pod_claims_fit(const struct rules *r, struct val pod, str node);
/* By a pod that has not ended. */
bool claim_is_used(const struct rules *r, struct val claim);
/* Quotas count it: it has not ended, and is not overdue. */
bool pod_is_charged(struct val pod);
int64_t pod_cpu_milli(struct val pod);
bool condition_is(struct val object, const char *type, const char *status);
/* What pods on a node use, those of a lower priority than this aside. */
struct use {
	int64_t cpu_milli, pods;
};
struct use node_use(const struct rules *r, str node, int64_t priority);
struct use node_room(struct val node);

/* All objects below a prefix: RULES_EACH(r, "pods/", key, object) { ... } */
struct val rules_next(struct omap_iter *it, str prefix, str *ret_key);
#define RULES_EACH(rules, prefix, key, object)                                                                                          \
	for (struct omap_iter it_##object, *on_##object = (omap_seek(&it_##object, (rules)->objects, STR("/registry/" prefix)), &it_##object); \
	     on_##object; on_##object = NULL)                                                                                           \
		for (struct val object; val_exists(object = rules_next(on_##object, STR("/registry/" prefix), &(key)));)

#endif
