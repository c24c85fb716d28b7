/*
 * slice_tracker: EndpointSlices that were written and that the informer does not show yet. A plan made without them would make them twice.
 * What does not show up within a few seconds is no longer waited for.
 */
#ifndef C8S_CONTROLLERS_SLICE_TRACKER_H
#define C8S_CONTROLLERS_SLICE_TRACKER_H

#include "base/map.h"
#include "client/informer.h"

struct slice_tracker {
	struct map services;
};

void slice_tracker_done(struct slice_tracker *t);
/* After a write: the slice as it is now; after a deletion: generation 0. */
void slice_tracker_wrote(struct slice_tracker *t, const struct informer *slices, str service_key, str slice_key, int64_t generation);
/* The informer tells of a slice (generation 0: it is gone). Whether the service has to be looked at. */
bool slice_tracker_saw(struct slice_tracker *t, str service_key, str slice_key, int64_t generation);
/* Whether nothing is missing. If something is, slice_tracker_saw tells when it has come; *ret_wait_ms: look again by then at the latest. */
bool slice_tracker_settled(struct slice_tracker *t, str service_key, int64_t *ret_wait_ms);
void slice_tracker_forget(struct slice_tracker *t, str service_key);

#endif
