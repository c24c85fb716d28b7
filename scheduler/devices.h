/*
 * devices: resource claims and the devices that can serve them (resource.k8s.io/v1, structured parameters), as the scheduler sees them.
 *
 *	devices.c             the copies of claims, slices and classes; which devices are taken, selectors, extended resources of classes
 *	device_pools.c        slices by pool and generation; what a node sees of them; what their devices share
 *	device_capacity.h     how much of a device a request takes
 *	device_search.h       the search for devices of a node that serve all claims of a pod: pure
 *	extended_claim.h      the claim for extended resources that devices serve
 *	dynamic_resources.c   the plugin: looking; dynamic_resources_bind.c: writing
 *
 * What follows from objects is made anew when they have changed: by devices_refresh. There is one search at a time, which looks up what it needs
 * for each node anew.
 */
#ifndef C8S_SCHEDULER_DEVICES_H
#define C8S_SCHEDULER_DEVICES_H

#include "codec/quantity.h"
#include "machinery/node_selector.h"
#include "scheduler/copies.h"

struct cel_program;

/* Feature gates; all on unless somebody says otherwise. */
struct device_features {
	bool consumable_capacity, binding_conditions, taints, extended_resources, partitionable, prioritized_list, filter_timeout;
};

struct devices {
	struct client *client;        /* may be NULL where nothing is bound */
	struct device_features features;
	struct copies claims;         /* "namespace/name"; those that belong to a pod are in the group of its uid */
	struct copies slices;
	struct copies classes;
	struct fiber_cond claims_changed;
	struct map flights;           /* uid of a claim that is being allocated -> struct flight */
	struct map selectors;         /* expression -> struct device_selector */
	struct map extended;          /* name of an extended resource -> struct extended_class */
	struct arena extended_arena;
	struct arena eval_arena;      /* of one evaluation */
	/* Made anew when what they follow from has changed. */
	struct arena taken_arena, pools_arena;
	struct map taken;             /* "driver/pool/device" -> struct device_use */
	struct map places;            /* name of a node -> struct device_place */
	struct device_slice **all;    /* sorted by driver, pool, generation and name */
	struct device_slice *wide;    /* those that more than one node may see */
	size_t n_all;
	uint64_t flights_version, taken_claims, taken_flights, pools_version, extended_version;
	uint64_t n_taken;             /* how often taken was made anew */
};

/* How a device is used by claims that are allocated, or about to be. */
struct device_use {
	bool alone;                   /* by one of them for itself */
	bool shared, counted;         /* by several; how much of it is known */
	struct capacity_sum *sums;
};

struct capacity_sum {
	struct capacity_sum *next;
	str name;
	struct quantity used;
};

struct device_slice {
	struct val object;
	str driver, pool_name, name, node; /* node: empty for those of several */
	int64_t generation, count;    /* of slices that the pool has in all */
	size_t ordinal;               /* in all */
	struct device_pool *pool;
	bool counters, everywhere, by_device, selects, binding; /* counters: it has those and no devices; binding: conditions */
	struct node_selector nodes;   /* selects */
	struct node_selector *device_nodes; /* by_device: of each that selects */
	struct device_slice *next;    /* at the same place */
};

/* One generation of a pool. */
struct device_pool {
	struct device_slice **slices; /* in the order of names */
	size_t n;
	bool newest;
	bool distinct;                /* no two devices have the same name */
	bool sound;                   /* what its devices share is there */
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
/* What --feature-gates says (machinery/gates.h). */
void devices_set_gates(struct devices *d, struct val said);
/* While *busy, what was borrowed stays: a cycle may suspend. */
void devices_hold(struct devices *d, const bool *busy);

/* The claim gets this allocation (which is copied), though the server does not know yet; and: it knows, or nothing came of it. */
void devices_depart(struct devices *d, str claim_uid, struct val allocation);
void devices_land(struct devices *d, str claim_uid);
bool devices_flying(const struct devices *d, str claim_uid);
/* Brings all up to date: before what follows. */
void devices_refresh(struct devices *d);
/* The same for a new search; selectors that are too many are forgotten. */
void devices_begin(struct devices *d);
/* NULL: it is free. */
const struct device_use *devices_use(const struct devices *d, const struct device_slice *s, str device);

/* ---- classes ---- */

/* The class whose devices serve requests for an extended resource; VAL_NONE: none, or the feature is off. Up to date by itself. */
struct val devices_class_of(struct devices *d, str resource);

struct device_selector {
	str expression;
	struct cel_program *program;  /* NULL: it has an error: */
	str why;
};

/* Compiled once; good until the next devices_begin. */
const struct device_selector *devices_selector(struct devices *d, str expression) NONNULL_RESULT;
/* Whether a device of the slice is selected; -ERR_INVALID with the text of Kubernetes. */
int device_selected(struct devices *d, const struct device_selector *s, const struct device_slice *slice, struct val device, bool *ret, struct err *err);

/* ---- pools: device_pools.c ---- */

/* What a node sees of a pool. */
struct pool_view {
	struct device_pool *pool;
	struct device_slice **slices;
	size_t n;
	bool incomplete, invalid;     /* being rewritten; contradicts itself: its devices cannot be used */
	bool binding;
};

struct pool_views {
	struct pool_view *all;        /* as devices are tried */
	size_t n, cap;
	struct device_slice **slices;
	size_t n_slices, cap_slices;
};

void device_pools_refresh(struct devices *d);
/* ret has been zeroed once and is used again; its room grows in the arena. */
void devices_see(struct devices *d, struct arena *a, str node_name, struct val node, struct pool_views *ret);
/* The device at this place of a slice by_device is one of the node. */
bool device_is_here(const struct device_slice *s, size_t at, str node_name, struct val node);
/* How many devices of the class the node has, and how many of them are taken; none where its selectors fail. */
int64_t devices_count(struct devices *d, struct val class, str node_name, struct val node, int64_t *ret_used);
/* All of the pool's, with what is left of them. */
const struct device_counter *devices_counters(struct devices *d, struct device_pool *p);

#endif
