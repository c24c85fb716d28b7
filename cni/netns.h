/* netns: network namespaces by path, and the settings of the one that the thread is in. For programs with one thread. */
#ifndef C8S_CNI_NETNS_H
#define C8S_CNI_NETNS_H

#include "cni/netlink.h"

/* A descriptor of the namespace; -ERR_NOT_FOUND when there is no such file, or it is no network namespace (any more). */
int netns_open(const char *path, struct err *err);
/* Of the thread's own. */
int netns_open_own(struct err *err);
/* Whether both are descriptors of one namespace. */
bool netns_same(int a, int b);
int netns_enter(int netns, struct err *err);

/* From here to the end of the block the thread is in another namespace; the way back cannot fail short of ending the process. */
struct netns_visit {
	int home;                  /* -1: the thread is at home */
};

#define NETNS_VISIT_INIT { .home = -1 }
int netns_visit(struct netns_visit *v, int netns, struct err *err);
void netns_leave(struct netns_visit *v);

/* A socket of rtnetlink in that namespace, to be used from anywhere. */
int netns_netlink(int netns, struct netlink *n, struct err *err);

/* A setting of the thread's namespace: sysctl_set("net/ipv4/ip_forward", "1"). Not written when it has that value already. */
int sysctl_set(const char *name, const char *value, struct err *err);

#endif
