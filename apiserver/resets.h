/* Which fields an endpoint does not let its users set: they are not owned by anyone through it (managedFields). */
#ifndef C8S_APISERVER_RESETS_H
#define C8S_APISERVER_RESETS_H

#include "apiserver/request.h"
#include "machinery/apply.h"

enum { RESETS_MAX = 4 };

/* One row per version that the request has to do with; returns how many. */
size_t resets_of(struct request *q, struct apply_reset ret[RESETS_MAX]);

#endif
