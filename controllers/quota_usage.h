/*
 * quota_usage: what the objects of a namespace use of a ResourceQuota, measured as admission measures them (apiserver/admission has the
 * evaluators). Claims of devices are only counted. Pure.
 */
#ifndef C8S_CONTROLLERS_QUOTA_USAGE_H
#define C8S_CONTROLLERS_QUOTA_USAGE_H

#include "apiserver/admission/resource_quota.h"
#include "codec/schema.h"

/* A quota that is being counted. */
struct quota_count {
	struct arena *arena;
	struct val quota;
	struct quota_amounts hard;    /* spec.hard */
	struct val selectors;         /* what objects must match to count: list of {scopeName, operator, values} */
	struct quota_amounts used;    /* of what was counted */
};

void quota_count_init(struct quota_count *q, struct arena *a, struct val quota);
/* Whether objects of this resource use something that it limits: then all of them are to be counted. The first answer of true puts zeros. */
bool quota_count_covers(struct quota_count *q, const struct resource *r);
void quota_count_add(struct quota_count *q, const struct resource *r, struct val object);
/* Whether the object counts differently than it did. */
bool quota_count_differs(struct quota_count *q, const struct resource *r, struct val old, struct val object);
/* The status that the quota should have, once everything was added; VAL_NONE: it has it. */
struct val quota_count_status(struct quota_count *q);

#endif
