/* protection: finalizers that keep what is in use from being deleted. Pure. */
#ifndef C8S_CONTROLLERS_PROTECTION_H
#define C8S_CONTROLLERS_PROTECTION_H

#include "codec/val.h"

#define PVC_PROTECTION "kubernetes.io/pvc-protection"
#define PV_PROTECTION "kubernetes.io/pv-protection"

bool finalizers_have(struct val object, str finalizer);
/* The object with (without) the finalizer; VAL_NONE: it is so already. */
struct val finalizer_put(struct arena *a, struct val object, str finalizer);
struct val finalizer_remove(struct arena *a, struct val object, str finalizer);

enum protection_step { PROTECTION_REST, PROTECTION_ADD, PROTECTION_REMOVE };

/* What to do about it; used: whether somebody still needs it. */
enum protection_step protection_plan(struct val object, str finalizer, bool used);

#endif
