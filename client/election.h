/*
 * election: one leader among several processes, by a Lease that the leader renews. Times are client-go's unless given.
 */
#ifndef C8S_CLIENT_ELECTION_H
#define C8S_CLIENT_ELECTION_H

#include "client/client.h"
#include "client/recorder.h"

struct election {
	struct client *client;
	struct recorder *recorder;   /* "x became leader"; may be NULL */
	str namespace, name;         /* of the Lease: "kube-system", "kube-scheduler" */
	str identity;                /* "host_uuid"; must differ between processes */
	int64_t lease_ms, renew_ms, retry_ms; /* 0: 15 s, 10 s, 2 s */
	bool release;                /* give the lease back when canceled */
	void (*waits)(void *arg);    /* told once, with lead's arg, when somebody else leads; may be NULL */
};

/*
 * (suspends) Waits to become the leader, then runs lead(arg) on a fiber of its own until it returns, the caller is
 * canceled, or the lease could not be renewed in time: lead is then canceled and waited for. -ERR_UNAVAILABLE when
 * leadership was lost, else lead's result.
 */
int election_run(const struct election *e, int (*lead)(void *arg), void *arg, struct err *err);
#endif
