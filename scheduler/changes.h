/* changes: what a change of a node or a pod may mean for pods that wait. Pure. */
#ifndef C8S_SCHEDULER_CHANGES_H
#define C8S_SCHEDULER_CHANGES_H

#include "scheduler/plugin.h"

/* Bits of EV_*: 0 when it concerns nobody. */
unsigned node_changes(struct val old, struct val new);
unsigned pod_changes(struct val old, struct val new);

#endif
