/*
 * What every cluster has: system namespaces, the kubernetes Service with its endpoints, priority classes, flow schemas,
 * and the addresses that Services get. Made when the server starts, looked after while it runs.
 */
#ifndef C8S_APISERVER_BOOTSTRAP_H
#define C8S_APISERVER_BOOTSTRAP_H

#include "apiserver/apiserver.h"

/* (suspends) Makes what is missing. Called once the cache is loaded, before requests are served. */
int bootstrap_make(struct apiserver *s, struct err *err);
/* (suspends, until canceled) Makes again what somebody removed, and repairs allocations. */
int bootstrap_run(struct apiserver *s, struct err *err);

#endif
