/* node_ipam_plan: a block of addresses cut into equal ones, and which of these are taken. Pure, but for its own memory. */
#ifndef C8S_CONTROLLERS_NODE_IPAM_PLAN_H
#define C8S_CONTROLLERS_NODE_IPAM_PLAN_H

#include "base/err.h"
#include "machinery/ip.h"

enum { CIDR_SET_BITS_MAX = 16 };    /* of the number of a block */

struct cidr_set {
	struct cidr whole;
	unsigned bits;               /* of the prefix of each block */
	uint32_t n, n_taken, next;   /* next: where the search for a free one begins */
	uint8_t *taken;              /* a bit each */
};

/* -ERR_INVALID for a prefix that is shorter than that of the whole, or more than 16 bits longer. */
int cidr_set_init(struct cidr_set *s, const struct cidr *whole, unsigned bits, struct err *err);
void cidr_set_done(struct cidr_set *s);
/* The next free block, taken from now on; false: there is none. */
bool cidr_set_take(struct cidr_set *s, struct cidr *ret);
/* All blocks that have addresses in common with this one are taken (free). Those outside of the whole do not matter: false. */
bool cidr_set_occupy(struct cidr_set *s, const struct cidr *c);
bool cidr_set_release(struct cidr_set *s, const struct cidr *c);

#endif
