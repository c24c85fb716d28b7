/* The parts of bootstrap.h among each other. All of them suspend and can be repeated at any time: they do what is missing. */
#ifndef C8S_APISERVER_BOOTSTRAP_PRIV_H
#define C8S_APISERVER_BOOTSTRAP_PRIV_H

#include "apiserver/bootstrap.h"
#include "apiserver/inprocess.h"

/* Makes an object unless there is one of its name. Kinds that are not served need nothing. */
int bootstrap_ensure(const struct inprocess *w, struct val object, struct err *err);
/* A copy of what the cache has of it; VAL_NONE: nothing. */
struct val bootstrap_find(struct apiserver *s, struct arena *a, str group, str resource, str key);
/* Now, as metav1.Time or (micro) metav1.MicroTime, in the arena. */
struct val bootstrap_now(struct arena *a, bool micro);

/* ---- bootstrap_flow.c: priority levels and flow schemas, by their number ---- */

size_t flow_n_levels(void), flow_n_schemas(void);
int flow_make_level(struct apiserver *s, size_t i, struct err *err);
int flow_make_schema(struct apiserver *s, size_t i, struct err *err);
/* The condition Dangling of one that was made above; of any by its name; of all. */
int flow_make_status(struct apiserver *s, size_t i, struct err *err);
int flow_sync_status(struct apiserver *s, str name, struct err *err);
int flow_sync_all(struct apiserver *s, struct err *err);
/* (suspends, until canceled) Keeps the conditions right, whoever changes schemas and levels. */
int flow_follow(struct apiserver *s, struct err *err);

/* ---- bootstrap_service.c: the range of addresses, the Service default/kubernetes and its endpoints ---- */

int service_make_cidr(struct apiserver *s, size_t i, struct err *err);
int service_make_kubernetes(struct apiserver *s, size_t i, struct err *err);
/* first: also puts the ports right, which servers that listen on different ones would else fight about. */
int service_sync_endpoints(struct apiserver *s, bool first, struct err *err);
/* This server is going: others need not wait until it is missed. */
void service_leave(struct apiserver *s);

/* ---- bootstrap_lease.c: who is there ---- */

/* Renews this server's Lease, and removes those of servers that are gone. */
int identity_make_lease(struct apiserver *s, size_t i, struct err *err);
int identity_collect(struct apiserver *s, struct err *err);

#endif
