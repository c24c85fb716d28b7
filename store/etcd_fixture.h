/* Members of etcd as children, for tests: unix sockets and data in a folder of their own. */
#ifndef C8S_STORE_ETCD_FIXTURE_H
#define C8S_STORE_ETCD_FIXTURE_H

#include "base/process.h"
#include "base/test.h"
#include "store/store.h"

enum { ETCD_MEMBERS_MAX = 3 };

struct etcd_cluster {
	char folder[256];
	unsigned n;
	const char *quota;        /* bytes that the database may have; NULL: etcd's own limit */
	bool tls;                 /* on loopback ports, with certificates in the folder: ca.crt, client.crt, client.key */
	struct process *members[ETCD_MEMBERS_MAX];
	char urls[ETCD_MEMBERS_MAX][64 + 256];
	const char *endpoints[ETCD_MEMBERS_MAX + 1]; /* for store_options */
};

/* The path of a program of etcd: in PATH, or where the tests of peers unpack it. NULL, after saying so, if there is none. */
const char *etcd_program(const char *name);

/* Makes the folder and starts the members; does not wait for them. The struct outlives the test. */
void etcd_cluster_start(struct etcd_cluster *c, unsigned n, bool tls, const char *quota);
void etcd_member_start(struct etcd_cluster *c, unsigned i);
void etcd_member_signal(struct etcd_cluster *c, unsigned i, int sig);
/* (suspends) SIGKILL, and waits for it. */
void etcd_member_kill(struct etcd_cluster *c, unsigned i);
/* (suspends) Kills all and removes the folder. At the latest this is done at the end of the process. */
void etcd_cluster_stop(struct etcd_cluster *c);

/* (suspends) Standard output of etcdctl against all members, in memory that the caller frees. */
char *etcd_ctl(struct etcd_cluster *c, const char *const *args);

#endif
