/* Settling what a Service gets, among hooks_service.c, service_families.c and service_port_plan.c. */
#ifndef C8S_APISERVER_HOOKS_SERVICE_H
#define C8S_APISERVER_HOOKS_SERVICE_H

#include "apiserver/request.h"
#include "apiserver/service_ip.h"

/* One write of a Service. Lives in the request's arena from begin to finish. */
struct allocation {
	struct request *q;
	struct val old, service;      /* old: VAL_NONE for a new one; service: as it is going to be */
	struct ip ips[2], left_ips[2]; /* taken for it; given back once it is stored */
	size_t n_ips, n_left_ips;
	int *ports, *left_ports;
	size_t n_ports, n_left_ports;
};

bool service_is(struct val service, str type);

/* ---- service_families.c ---- */

/* ipFamilyPolicy and ipFamilies, from what is said and what the cluster has; fails as Kubernetes does. Pure. */
int families_settle(struct allocation *al);
/* A PreferDualStack Service that nobody changed in this respect stays as it is, whatever the cluster has by now. */
bool families_are_kept(struct val service, struct val old);

/* ---- service_port_plan.c ---- */

/* (suspends) Takes the node ports. */
int service_ports_settle(struct allocation *al);
/* All that this Service has is to be given back. */
void service_ports_leave(struct allocation *al, struct val service);
/* (suspends) */
int service_ports_free(struct apiserver *s, const int *ports, size_t n, struct err *err);

#endif
