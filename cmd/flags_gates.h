/* --feature-gates: what it says of the gates of machinery/gates.h. */
#ifndef C8S_CMD_FLAGS_GATES_H
#define C8S_CMD_FLAGS_GATES_H

#include "base/err.h"
#include "codec/val.h"

/* "A=true" each, NULL-ended. -ERR_INVALID with Kubernetes' text: also for gates that are not known, locked, or need others. */
int flags_gates(struct arena *a, const char *const *pairs, struct val *ret, struct err *err);

#endif
