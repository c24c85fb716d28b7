/*
 * What programs that work beside the API server share (the scheduler, the controller manager): who they are in an election, and the port that
 * answers while they work.
 */
#ifndef C8S_CMD_COMPONENT_H
#define C8S_CMD_COMPONENT_H

#include "client/election.h"
#include "cmd/component_server.h"

/*
 * (suspends) work(arg) on a fiber of its own, and meanwhile the component's port. Until work ends, the port fails (it cannot be listened on), or
 * the caller is canceled.
 */
int component_run(struct component_server *server, int (*work)(void *arg, struct err *err), void *arg, struct err *err);
/*
 * (suspends) election_run with an identity of this process, and events that have `source` as theirs. Losing the lease is -ERR_UNAVAILABLE
 * "leaderelection lost"; times that cannot be are -ERR_INVALID.
 */
int component_elect(struct election *e, struct client *client, str source, int (*lead)(void *arg), void *arg, struct err *err);

#endif
