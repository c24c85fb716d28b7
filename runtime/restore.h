/* restore: what an earlier run left. */
#ifndef C8S_RUNTIME_RESTORE_H
#define C8S_RUNTIME_RESTORE_H

#include "runtime/runtime_priv.h"

/*
 * (suspends) Takes up the sandboxes and containers that there are, with what has happened to them meanwhile; removes what was
 * being made, or being removed, when it ended.
 */
int restore_all(struct runtime *r, struct err *err);

#endif
