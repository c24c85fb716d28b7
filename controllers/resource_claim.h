/* What the controller of resource claims remembers, for itself and its tests. */
#ifndef C8S_CONTROLLERS_RESOURCE_CLAIM_H
#define C8S_CONTROLLERS_RESOURCE_CLAIM_H

#include "base/map.h"
#include "controllers/controller.h"

struct claims_state {
	struct map made;              /* "uid of the pod/entry" -> struct made: claims that informers may not show yet, of pods that they show */
};

extern const struct controller_kind controller_resource_claim;

#endif
