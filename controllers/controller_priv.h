/* Between controller.c, controllers.c and kinds.c. */
#ifndef C8S_CONTROLLERS_CONTROLLER_PRIV_H
#define C8S_CONTROLLERS_CONTROLLER_PRIV_H

#include "controllers/controller.h"

/* (suspends) A work_fn: arg is the controller. */
int controller_sync_key(str key, void *arg, struct err *err);
/* Its listeners are told nothing any more; what it remembers is freed. */
void controller_unwatch(struct controller *c);
/* By its name or an older one. */
bool controller_is_called(const struct controller_kind *kind, const char *name);

#endif
