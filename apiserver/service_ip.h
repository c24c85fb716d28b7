/*
 * What Services get: addresses from the ranges of ServiceCIDR objects, and ports on nodes.
 *
 * An address is taken by making the IPAddress object of its name and given back by removing it: the store decides who is
 * first, also between several servers. Nothing is kept in memory; what is free is seen in the cache.
 * Ports are bits in the RangeAllocation /registry/ranges/servicenodeports, changed by compare-and-swap, as Kubernetes' servers do.
 */
#ifndef C8S_APISERVER_SERVICE_IP_H
#define C8S_APISERVER_SERVICE_IP_H

#include "apiserver/apiserver.h"
#include "machinery/ip.h"

struct ip_allocators;

/* ranges: one CIDR or two of different families; ports first to last, inclusive. -ERR_INVALID says what is wrong. */
int service_ip_new(const char *ranges, int first_port, int last_port, struct ip_allocators **ret, struct err *err);
void service_ip_free(struct ip_allocators *al); /* takes NULL */

/* The ranges of the flag: they say which families this cluster has, and the first one its preferred family. */
size_t service_ip_n_ranges(const struct ip_allocators *al);
const struct cidr *service_ip_range(const struct ip_allocators *al, size_t i);
/* The first address of the first range: that of the Service default/kubernetes. */
struct ip service_ip_first(const struct ip_allocators *al);
/* "IPv4" or "IPv6" of the first range; whether there is a range of this family. */
str service_ip_family(const struct ip_allocators *al);
bool service_ip_has_family(const struct ip_allocators *al, str family);
str ip_family_of(const struct ip *ip);

/* What takes an address. */
struct ip_owner {
	struct apiserver *server;
	str namespace, name;          /* of the Service */
	bool dry_run;                 /* nothing is taken */
};

/* (suspends) This address. -ERR_INVALID with Kubernetes' text when it cannot be had; else the store's errors. */
int service_ip_take(const struct ip_owner *o, const struct ip *ip, struct err *err);
/* (suspends) Any of this family: dynamic ones come from the upper part of a range first. Returns 1 when there is none left. */
int service_ip_take_any(const struct ip_owner *o, str family, struct ip *ret, struct err *err);
/* (suspends) Giving back what is not taken is fine. */
int service_ip_give_back(struct apiserver *s, const struct ip *ip, struct err *err);

/* ---- ports (service_port.c) ---- */

/* Which ports of the range are taken. */
struct port_map {
	int first, last;
	uint8_t *taken;               /* a bit per port */
	bool changed;
};

bool port_map_in_range(const struct port_map *m, int port);
bool port_map_has(const struct port_map *m, int port);
void port_map_put(struct port_map *m, int port, bool taken); /* outside of the range: nothing */
/* A free one, from the upper part of the range first; 0: there is none. It is not yet taken. */
int port_map_next(const struct port_map *m);

/*
 * (suspends) Calls plan with the ports as they are, stores what it changed, and begins again when another server was faster.
 * plan returns 0 or fails, and then nothing is stored. dry_run: it is called, and nothing is stored.
 */
int service_ports_change(struct apiserver *s, bool dry_run, int (*plan)(struct port_map *m, void *arg), void *arg,
			 struct err *err);
/* Takes the ports of a Service in the map, or frees them. */
void service_ports_mark(struct port_map *m, struct val service, bool taken);

/* ---- repair (service_repair.c) ---- */

/*
 * (suspends) Makes addresses and ports agree with the Services: what a crash between two writes left taken is freed (after a
 * time in which it may still be wanted), what is used but not taken is taken. At start, and every few minutes.
 */
int service_repair(struct apiserver *s, struct err *err);

#endif
