/*
 * ResourceQuota: what the objects of a namespace may use together. The parts:
 *	resource_quota.c            the plugin: charging, for many requests at once
 *	resource_quota_check.c      one request against the quotas of its namespace
 *	resource_quota_evaluators.c what objects use, and which scopes they are in
 *	resource_quota_pods.c       the same for pods
 *	resource_quota_amounts.c    amounts by name
 */
#ifndef C8S_APISERVER_ADMISSION_RESOURCE_QUOTA_H
#define C8S_APISERVER_ADMISSION_RESOURCE_QUOTA_H

#include "apiserver/admission/plugins.h"
#include "codec/quantity.h"

/* ---- amounts ---- */

struct quota_amount {
	str name;
	struct quantity q;
};

/* By name, each once. Names and list are borrowed from trees and an arena. */
struct quota_amounts {
	struct quota_amount *list;
	size_t n;
};

/* Of a map of quantities. */
struct quota_amounts quota_amounts_of(struct arena *a, struct val map);
/* And back. */
struct val quota_amounts_map(struct arena *a, struct quota_amounts x);
/* Puts a list, in which no name is twice, into order. */
void quota_amounts_sort(struct quota_amounts x);
struct quota_amounts quota_amounts_copy(struct arena *a, struct quota_amounts x);
/* NULL: there is none of that name. */
struct quota_amount *quota_amount_find(struct quota_amounts x, str name);

/* How two amounts become one; the union of the names, unless it says otherwise. */
enum quota_merge {
	QUOTA_ADD,
	QUOTA_MAX,
	QUOTA_REPLACE,                /* by y's */
	QUOTA_RAISE,                  /* what is above zero in x, by what y has of it */
	QUOTA_LESS,                   /* without y's; never below zero */
	QUOTA_MASK,                   /* x's, of the names that y has too */
};
struct quota_amounts quota_merge(struct arena *a, struct quota_amounts x, struct quota_amounts y, enum quota_merge how);
/* Without the zeros. */
struct quota_amounts quota_nonzero(struct arena *a, struct quota_amounts x);
/* "cpu=2,memory=1Gi" */
str quota_amounts_text(struct arena *a, struct quota_amounts x);
/* "cpu,memory" */
str quota_names_text(struct arena *a, struct quota_amounts x);

/* ---- evaluators: how objects of one resource are measured. q->object and q->old are not looked at unless it is said ---- */

struct quota_evaluator {
	str group, resource;
	/* Can this write (q->old and q->object) change what is used? */
	bool (*handles)(const struct request *q);
	/* Does it measure the resource of that name in quotas? */
	bool (*covers)(const struct request *q, str name);
	/* Is the object in a scope ({scopeName, operator, values})? 1, 0, or -1 with *ret_why. NULL: it is in none. */
	int (*in_scope)(struct arena *a, struct val selector, struct val object, str *ret_why);
	/* What the object would have to say when these are limited: "must specify ..."; "": nothing. NULL: never anything. */
	str (*missing)(struct arena *a, struct quota_amounts required, struct val object);
	struct quota_amounts (*usage)(const struct request *q, struct val object);
};

/* NULL: no quota is asked for objects of this resource. */
const struct quota_evaluator *quota_evaluator_of(const struct request *q);
extern const struct quota_evaluator quota_pods;
/* "{PriorityClass In [high]}", as Go prints it. */
str quota_selector_text(struct arena *a, struct val selector);
/* Does one of the values (none: only what asks for absence) match {scopeName, operator, values}? As in_scope. */
int quota_selector_matches(struct arena *a, struct val selector, const str *values, size_t n, str *ret_why);

/* ---- checking ---- */

/* A quota, with what is used once the requests that have passed are written. */
struct quota {
	struct object *object;
	str name;
	struct quota_amounts hard, used;
	struct val selectors;         /* list of {scopeName, operator, values} */
	bool changed;
};

/* The quota of a stored object, which it borrows; everything else is in the arena. */
struct quota quota_of(struct arena *a, struct object *o);

/* What is taken of one quota. */
struct quota_share {
	str name, uid;                /* of the quota */
	struct quota_amounts amounts;
	bool written;
};

/* What a write asks for. */
struct quota_demand {
	struct request *q;
	const struct quota_evaluator *evaluator;
	struct val limited;           /* limitedResources of the configuration */
	struct quota_amounts usage;   /* of the object */
	struct quota_amounts more;    /* than before; the same when there was nothing before */
};

void quota_demand_init(struct quota_demand *d, struct request *q, const struct quota_evaluator *e, struct val limited);

/*
 * Does it fit? 0: *ret_shares, one for each quota that is to be charged (quotas are not changed); less: refused with
 * q->failure. Shares of quotas that `had` names as written are not asked for again. All in q->arena.
 */
int quota_check(const struct quota_demand *d, const struct quota *quotas, size_t n, const struct quota_share *had, size_t n_had,
		struct quota_share **ret_shares, size_t *ret_n);

#endif
