/* Between the files of device_search.h. */
#ifndef C8S_SCHEDULER_DEVICE_SEARCH_PRIV_H
#define C8S_SCHEDULER_DEVICE_SEARCH_PRIV_H

#include "scheduler/device_search.h"

struct device {
	const struct device_slice *slice;
	struct device_pool *pool;
	struct val object;
	str name;
	size_t at;                    /* in its slice */
	const struct device_use *use; /* by claims that are allocated; NULL: none */
	bool shares;                  /* can be allocated several times */
	unsigned picked;              /* by claims of this pod: how often */
};

struct selectors {
	const struct device_selector **all;
	size_t n;
};

struct option {                       /* a request, or one of its alternatives */
	str base, sub;                /* names; sub is empty for a request */
	struct val spec, class;
	struct selectors of_class, own;
	bool all, admin;
	size_t index;                 /* among all options of the pod */
	int64_t count;                /* of devices that are needed; of all: as many as the node has */
	uint32_t *devices;            /* all: which */
	size_t cap;
};

struct request {
	str name;
	struct option *options;
	size_t n;
	bool alternatives;
	size_t chosen;
};

struct constraint {                   /* the same value of an attribute, or another for each device */
	struct val requests;          /* names; none: all */
	str attribute;                /* empty: a kind that is not known */
	bool distinct;
	struct val value;             /* the same: of the devices picked so far */
	unsigned n;
};

struct claim {
	struct val object;
	struct request *requests;
	size_t n;
	struct constraint *constraints;
	size_t n_constraints;
	size_t n_picked;
};

struct pick {
	struct device *device;
	const struct option *option;
	size_t claim;
	bool counted;                 /* it takes from what devices of the pool share */
};

struct device_search {
	struct arena *arena;
	struct devices *devices;
	struct claim *claims;         /* with room for an extra one */
	size_t n_claims, n_own;       /* n_own: without the extra one */
	size_t n_options, n_own_options;
	struct val extra;             /* that was read last */
	int64_t limit_ns;             /* 0: none */
	/* ---- of one node ---- */
	str node_name;
	struct val node;
	struct pool_views views;
	struct device *all;
	size_t n, cap;
	uint8_t *known;               /* n for each option: whether a device is selected, once it is known */
	size_t cap_known;
	struct pick picks[DEVICES_PER_POD];
	size_t n_picks;
	uint64_t tries;
	int64_t began_ns, turn_ns;    /* turn_ns: others had theirs */
};

/* ---- device_requests.c ---- */

/* "namespace/name". */
str device_claim_key(const struct device_search *s, const struct claim *c);
/* The name of an option as messages about a claim have it. */
static inline str option_label(const struct option *o) { return o->sub.n ? o->sub : o->base; }
/* "request", or "request/alternative". */
str device_option_name(struct device_search *s, const struct option *o);
/* No class is looked for. */
void device_claim_read(struct device_search *s, struct val object, struct claim *ret);
/* Whether the requests of a claim can be served at all, before any node is looked at. */
int device_claim_check(struct device_search *s, const struct claim *c, struct err *err);
/* Whether a constraint or configuration that names requests is about this one. */
bool device_names_concern(struct val requests, const struct option *o);

/* ---- device_result.c ---- */

struct val device_allocation(struct device_search *s, size_t claim);

#endif
