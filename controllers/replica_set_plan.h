/*
 * replica_set_plan: what a ReplicaSet (or a ReplicationController, whose fields are the same) is to do about its pods, and what it tells about
 * them. Pure.
 */
#ifndef C8S_CONTROLLERS_REPLICA_SET_PLAN_H
#define C8S_CONTROLLERS_REPLICA_SET_PLAN_H

#include "codec/val.h"

enum { REPLICA_SET_BURST = 500 };   /* pods made or deleted in one go; the rest follows when these are seen */

struct replica_set_plan {
	size_t create;              /* so many more pods */
	struct val delete;          /* or these: a list, in the arena */
};

/*
 * active: its pods that run or will. related: those of all sets of the same deployment (its own among them): where many of them share a node,
 * pods go first.
 */
struct replica_set_plan replica_set_plan(struct arena *a, struct val set, struct val active, struct val related, int64_t now_ns);

/*
 * The set with its new status. terminating: how many pods are on their way out, -1: that is not told. failure: what went wrong with creating
 * or deleting, NULL: nothing. The set itself when all is as it was.
 */
struct val replica_set_status(struct arena *a, struct val set, struct val active, int64_t terminating, const char *failure, int64_t now_ns);

#endif
