/* endpoints_plan: from a Service and its pods to its Endpoints object. Pure. */
#ifndef C8S_CONTROLLERS_ENDPOINTS_PLAN_H
#define C8S_CONTROLLERS_ENDPOINTS_PLAN_H

#include "codec/val.h"

enum { ENDPOINTS_CAPACITY = 1000 };

/*
 * The object as it shall be; VAL_NONE: as it is. current: VAL_NONE when there is none (the result is then one to create). trigger: when the
 * change happened that led to this; empty: not known. Of more than capacity addresses those beyond it are left out.
 */
struct val endpoints_plan(struct arena *a, struct val service, struct val pods, struct val current, str trigger, size_t capacity);

/*
 * Subsets in their usual form: ports that have the same addresses, all ready or not in the same way, share a subset; addresses are in
 * order. Also for what users wrote.
 */
struct val endpoint_subsets(struct arena *a, struct val subsets);

#endif
