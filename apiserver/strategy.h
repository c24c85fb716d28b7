/* How kinds differ in being written and removed, beyond defaults and validation: Kubernetes' strategies as a table. */
#ifndef C8S_APISERVER_STRATEGY_H
#define C8S_APISERVER_STRATEGY_H

#include "apiserver/kinds.h"

enum strategy {
	STRATEGY_CREATE_ON_UPDATE = 1 << 0,   /* PUT makes what does not exist */
	STRATEGY_VERSION_REQUIRED = 1 << 1,   /* PUT must name the resourceVersion that it replaces */
	STRATEGY_RETURN_DELETED = 1 << 2,     /* DELETE answers with the object, not with a Status */
	STRATEGY_ORPHAN = 1 << 3,             /* dependents stay unless the client asks otherwise */
	STRATEGY_NO_DEPENDENTS = 1 << 4,      /* the garbage collector leaves it alone */
	STRATEGY_GRACEFUL = 1 << 5,           /* pods: first told to stop, then removed */
};

unsigned strategy_of(const struct kind *kind);

#endif
