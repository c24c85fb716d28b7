/* profile: which plugins are asked for the pods of one scheduler name, in which order. */
#ifndef C8S_SCHEDULER_PROFILE_H
#define C8S_SCHEDULER_PROFILE_H

#include "scheduler/cycle.h"

/* All that there are. */
size_t plugins_count(void);
/* In the order in which they are on by default. */
const struct plugin *plugin_at(size_t i) NONNULL_RESULT;

/*
 * From a complete KubeSchedulerProfile, which must outlive it. -ERR_INVALID in Kubernetes' words. profile_done also after an error.
 */
int profile_init(struct profile *p, struct val config, struct err *err);
void profile_done(struct profile *p);

#endif
