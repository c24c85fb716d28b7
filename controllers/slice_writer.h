/* slice_writer: EndpointSlices as a plan wants them, written, and remembered until the informer shows them. */
#ifndef C8S_CONTROLLERS_SLICE_WRITER_H
#define C8S_CONTROLLERS_SLICE_WRITER_H

#include "controllers/controller.h"
#include "controllers/slice_tracker.h"

/* For both controllers of slices: the index by service ("namespace/name" of the label's). */
#define SLICE_INDEX "service"
informer_values slice_by_service;
/* The slices of a service that this manager has made; held as controller_hold does. */
struct val slices_of(struct controller *c, struct arena *a, const struct informer *slices, str service_key, const char *manager);
/* The informer tells of a slice: adds the key of its service where a look is due. */
void slice_changed(struct controller *c, struct slice_tracker *t, const char *manager, struct frozen *old, struct frozen *slice);
/*
 * (suspends) Creates, updates, deletes; stops at the first error. of ("Service") and the key are for its text. That the namespace is being
 * deleted is no error.
 */
int slices_write(struct controller *c, struct slice_tracker *t, const struct informer *slices, str service_key, struct val create, struct val update,
		 struct val gone, const char *of, struct err *err);

#endif
