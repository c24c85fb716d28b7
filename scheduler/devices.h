/*
 * devices: resource claims and the devices that can serve them (resource.k8s.io/v1, structured parameters), as the scheduler sees them.
 *
 *	devices.c            the copies of claims, slices and classes; which devices are taken, and what is left of what they share
 *	device_alloc.c       the search for devices of a node that serve all claims of a pod: pure
 *	dynamic_resources.c  the plugin
 *
 * What is not there: selectors. They are CEL expressions, and there is no CEL here yet: a claim whose requests or classes have selectors is
 * refused with a text that says so. Devices that can be allocated several times, or that have binding conditions, are never offered; extended
 * resources are not mapped to devices.
 */
#ifndef C8S_SCHEDULER_DEVICES_H
#define C8S_SCHEDULER_DEVICES_H

#include "codec/quantity.h"
#include "machinery/node_selector.h"
#include "scheduler/copies.h"

struct devices {
	struct client *client;        /* may be NULL where nothing is bound */
	struct copies claims;         /* "namespace/name" */
	struct copies slices;         /* by spec.nodeName; "" for those of several nodes */
	struct copies classes;
	struct map flights;           /* uid of a claim that is being allocated -> struct flight */
	/* Made anew when what they follow from has changed. */
	struct arena taken_arena, pools_arena;
	struct map taken;             /* "driver/pool/device" */
	struct map pools;             /* "driver/pool" -> struct device_pool */
	uint64_t flights_version, taken_claims, taken_flights, pools_version;
	uint64_t n_taken;             /* how often taken was made anew */
};

struct device_pool {
	str id;                       /* "driver/pool" */
	int64_t generation;           /* the newest */
	int64_t n_slices;             /* of that one */
	struct pool_slice *slices;    /* those */
	struct device_counter *counters; /* what its devices share, without what is taken; */
	uint64_t counted;             /* of this n_taken; 0: of none */
};

struct device_counter {
	struct device_counter *next;
	str set, name;
	struct quantity left;         /* may be negative */
};

/* informers NULL: whoever made it puts objects in. */
struct devices *device_table_new(struct client *client, struct informers *informers) NONNULL_RESULT;
void device_table_free(struct devices *d); /* NULL is fine */
/* While *busy, what was borrowed stays: a cycle may suspend. */
void devices_hold(struct devices *d, const bool *busy);

/* The claim gets this allocation (which is copied), though the server does not know yet; and: it knows, or nothing came of it. */
void devices_depart(struct devices *d, str claim_uid, struct val allocation);
void devices_land(struct devices *d, str claim_uid);
bool devices_flying(const struct devices *d, str claim_uid);
/* Brings taken and pools up to date: before the two below. */
void devices_refresh(struct devices *d);
bool devices_taken(const struct devices *d, str driver, str pool, str device);
/* Whether devices serve requests for an extended resource: never, as they are not mapped to devices here. */
static inline bool devices_have_resource(const struct devices *d, str name)
{
	(void)d, (void)name;
	return false;
}
struct device_pool *devices_pool(const struct devices *d, str driver, str pool);
/* NULL: there is none of that name. */
const struct device_counter *devices_counter(struct devices *d, struct device_pool *p, str set, str name);

/* ---- the search ---- */

enum { DEVICES_PER_CLAIM = 32, DEVICES_PER_POD = 256, DEVICE_TRIES = 200000 };

struct device_search;

/*
 * For all claims of a pod that have no allocation yet; in the arena, objects are borrowed. -ERR_INVALID: the claims can be served by no node as
 * they are (the text of Kubernetes); -ERR_INTERNAL: something is wrong with them.
 */
int device_search_new(struct arena *a, struct devices *d, const struct val *claims, size_t n, struct device_search **ret, struct err *err);
/*
 * 1: the node can serve all of them; 0: it cannot. ret_allocations (may be NULL): an AllocationResult for each, in the arena.
 * -ERR_INTERNAL, -ERR_TIMEOUT (too many ways to try).
 */
int device_search_run(struct device_search *s, str node_name, struct val node, struct val *ret_allocations, struct err *err);
/* After a run that found something: how good the alternatives are that were chosen (8 for a first one). Some claim has alternatives at all. */
int64_t device_search_score(const struct device_search *s);
bool device_search_has_alternatives(const struct device_search *s);

#endif
