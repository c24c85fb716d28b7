/*
 * What machinery/apply.h has to know of a write to keep managedFields: who writes what and when, and which fields the endpoint
 * does not let its users set, so that nobody comes to own them through it.
 */
#ifndef C8S_APISERVER_RESETS_H
#define C8S_APISERVER_RESETS_H

#include "apiserver/request.h"
#include "machinery/apply.h"

/* A write through this endpoint of an object of this type: that of the endpoint, or of its view. Lives in the arena. */
struct apply_request apply_request_of(struct request *q, const struct endpoint *e, const struct type *type, str manager);

#endif
