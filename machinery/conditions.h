/* Questions about the conditions in an object's status. */
#ifndef C8S_MACHINERY_CONDITIONS_H
#define C8S_MACHINERY_CONDITIONS_H

#include "codec/val.h"

/* The condition of that type; VAL_EMPTY: there is none. */
struct val condition_find(struct val conditions, const char *type);
/*
 * A status with one condition more in a strategic patch of an object that has those conditions: the others stay where they are, a new one comes
 * after them.
 */
struct val condition_patch(struct arena *a, struct val status, struct val conditions, struct val condition);
/* Its condition Ready is True. */
bool pod_is_ready(struct val pod);

#endif
