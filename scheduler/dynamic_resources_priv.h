/* Between dynamic_resources.c, which looks for devices, and dynamic_resources_bind.c, which writes what was found. */
#ifndef C8S_SCHEDULER_DYNAMIC_RESOURCES_PRIV_H
#define C8S_SCHEDULER_DYNAMIC_RESOURCES_PRIV_H

#include "scheduler/device_search.h"
#include "scheduler/extended_claim.h"
#include "scheduler/scheduler_priv.h"

#define CLAIM_TYPE TYPE(resource_v1, ResourceClaim)

struct dynamic_config {
	int64_t filter_ns, binding_ns;
};

struct pod_claim {
	struct val object;            /* borrowed during the cycle; of held after reserve */
	struct frozen *held;
	str key, uid;
	bool open;                    /* has no allocation yet */
	bool anywhere;
	struct node_selector nodes;
	bool unavailable;             /* on at least one node, though allocated */
	bool extended;                /* made by the scheduler, for extended resources: the last one */
	bool stored;                  /* on the server; those that are extended are not before pre_bind, or are left from an earlier try */
	struct frozen *allocation;    /* found by reserve */
	bool reserved;                /* for the pod, on the server */
};

struct dynamic {
	struct pod_claim *claims;
	size_t n, n_open;             /* n_open: those with an allocation to be found, extended ones apart */
	struct device_search *search; /* for them */
	struct extended_needs *needs; /* NULL: the pod has no extended claim */
	uint64_t bits;                /* of what the extended claim was made for last */
	struct val extended, mappings; /* that claim */
	struct frozen *kept_mappings; /* of the chosen node: */
	str node_name;
};

const struct dynamic_config *dynamic_config_of(const struct cycle *c) NONNULL_RESULT;
/*
 * Finds devices for all claims that are open, on this node: 1, 0 or an error as device_search_run. The extended claim among them, if the node
 * needs it: *ret_extended.
 */
int dynamic_search(struct cycle *c, struct dynamic *s, uint32_t node, struct val *ret_allocations, bool *ret_extended, struct err *err);

/* Whether the devices of an allocated claim are ready to be used: 1, 0 (not yet), or -ERR_INVALID: they never will be. */
int claim_is_ready(struct val claim, struct err *err);
/* It has waited for that too long. */
bool claim_is_late(struct val claim, int64_t binding_ns);

enum verdict dynamic_reserve(struct cycle *c, uint32_t node);
void dynamic_unreserve(struct cycle *c, uint32_t node);
int dynamic_pre_bind(struct cycle *c, uint32_t node, struct err *err);
bool dynamic_works(const struct cycle *c);
/* (suspends) */
int claim_delete(struct client *client, str key, struct err *err);

#endif
