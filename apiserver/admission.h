/*
 * Admission: what a cluster's rules make of a write, and whether they take it. A plugin is one file (admission_*.c) and
 * one row of the table in admission.c, in Kubernetes' order.
 */
#ifndef C8S_APISERVER_ADMISSION_H
#define C8S_APISERVER_ADMISSION_H

#include "apiserver/request.h"

/*
 * Both may be NULL. They see q->old and q->object (VAL_NONE: there is none; of a removal, object is VAL_NONE), may wait, and
 * refuse by a fail_ function. mutate may replace q->object.
 */
struct admission_plugin {
	const char *name;
	int (*mutate)(struct request *q, struct err *err);
	int (*validate)(struct request *q, struct err *err);
};

/* All plugins, one after the other: 0, or what the first one that refuses returns. */
int admission_mutate(struct request *q, struct err *err);
int admission_validate(struct request *q, struct err *err);
/* Both, for an object that is going to be removed: q->old is the object. */
int admission_remove(struct request *q, struct err *err);

/* Is this a write of that resource itself (not of a subresource)? */
static inline bool admits(const struct request *q, str group, str resource)
{
	return str_eq(q->resource, resource) && str_eq(q->group, group) && !q->subresource.n;
}

#endif
