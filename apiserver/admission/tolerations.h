/* Tolerations of pods: which of them say the same as others. Pure functions over typed trees, any thread. */
#ifndef C8S_APISERVER_ADMISSION_TOLERATIONS_H
#define C8S_APISERVER_ADMISSION_TOLERATIONS_H

#include "codec/val.h"

/* Both lists as one; of two tolerations, one of which covers the other, only the wider one is kept (of thousands: all). */
struct val tolerations_merge(struct arena *a, struct val first, struct val second);
/* Whether each of them is covered by one of the others; none there: everything is allowed (but not thousands). */
bool tolerations_allowed(struct val tolerations, struct val by);

#endif
