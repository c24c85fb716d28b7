/* struct ip_allocators among service_*.c. */
#ifndef C8S_APISERVER_SERVICE_IP_PRIV_H
#define C8S_APISERVER_SERVICE_IP_PRIV_H

#include "apiserver/service_ip.h"
#include "base/fiber.h"

struct ip_allocators {
	struct cidr ranges[2];
	size_t n_ranges;
	int first_port, last_port;
	/* One change of ports at a time: others would only lose the race for the store. */
	bool ports_busy;
	struct fiber_cond ports_free;
	uint8_t *leaks;               /* per port: repairs that found it taken by nobody */
};

static inline size_t port_count(const struct ip_allocators *al) { return (size_t)(al->last_port - al->first_port + 1); }

#endif
