/* What the files of config.h share. */
#ifndef C8S_KUBELET_CONFIG_PRIV_H
#define C8S_KUBELET_CONFIG_PRIV_H

#include "kubelet/config.h"

enum { CONFIG_ERRORS_MAX = 100 };

/* All that is wrong with a configuration, in the order of Kubernetes' checks. */
struct config_errors {
	struct arena *arena;
	size_t n;
	str text[CONFIG_ERRORS_MAX];
};

void config_error(struct config_errors *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- config_defaults.c: typed trees, in the arena ---- */

/* What a file without it gets. allocatable_given: enforceNodeAllocatable is there, though empty. */
int config_set_defaults(struct arena *a, struct val config, bool allocatable_given, struct val *ret, struct err *err);
/* The thresholds for evictions that a file without them, or one that asks for them besides its own, gets. */
int config_set_eviction(struct arena *a, struct val config, bool given, struct val *ret, struct err *err);

/* ---- config_check.c ---- */

/* -ERR_INVALID with all that is wrong. unified: the machine has control groups of version 2. */
int config_check(struct val config, bool unified, struct err *err);

/* ---- config_gates.c ---- */

void config_check_gates(struct config_errors *e, struct val said);

#endif
