/*
 * config: KubeSchedulerConfiguration v1: read, completed with the defaults of 1.36, checked with Kubernetes' messages.
 *
 *	config.c        the file, and flags laid over it      config_check.c   what is refused
 *	config_defaults.c  what nobody said: settings, plugins, their arguments
 */
#ifndef C8S_SCHEDULER_CONFIG_H
#define C8S_SCHEDULER_CONFIG_H

#include "codec/val.h"

/* The type of a plugin's arguments: NodeAffinityArgs; NULL: it has none, or is not known. */
const struct type *sched_args_type(struct arena *a, str plugin);
/* A typed configuration, in the arena. Arguments of known plugins are typed afterwards, and each that has some has an entry. */
int sched_config_defaults(struct arena *a, struct val config, struct val *ret, struct err *err);
/* -ERR_INVALID with all that is wrong. */
int sched_config_check(struct val config, struct err *err);
/* Nanoseconds of a duration's text; 0 for none. */
int64_t sched_duration_ns(struct val text);

#endif
