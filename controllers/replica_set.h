/* replica_set: the loop that keeps a number of pods, for the two kinds that are one. */
#ifndef C8S_CONTROLLERS_REPLICA_SET_H
#define C8S_CONTROLLERS_REPLICA_SET_H

#include "controllers/controller.h"

/* How ReplicaSet and ReplicationController differ. */
struct replica_set_flavor {
	const struct type *type;
	const char *api_version, *kind;
	struct val (*selector)(struct arena *a, struct val set); /* as a LabelSelector */
	bool tells_terminating;     /* status.terminatingReplicas */
};

/* The start and stop of a controller_kind. The flavor must live as long. */
int replica_set_start(struct controller *c, const struct replica_set_flavor *flavor, struct err *err);
void replica_set_stop(struct controller *c);

#endif
