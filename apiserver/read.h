/*
 * Reading: what STAGE_STORE does for get, list and watch. All answer from the cache and set q->answer; -ERR_x with
 * q->failure set when the client is told otherwise. (suspends) while the cache is behind what was asked for.
 */
#ifndef C8S_APISERVER_READ_H
#define C8S_APISERVER_READ_H

#include "apiserver/request.h"

/* One object; of a subresource that shows the object itself (status), that object. */
int read_get(struct request *q, struct err *err);
/* The objects of a kind, in one namespace or all, as list.h says. */
int read_list(struct request *q, struct err *err);
/* Their changes from now or from a revision on, as watch.h says. */
int read_watch(struct request *q, struct err *err);

/* ---- what all three have in common ---- */

/*
 * The number of ?resourceVersion=; "" is 0. -ERR_BAD_REQUEST with Kubernetes' text in err (not yet a failure of the
 * request: each verb words it in its own way).
 */
int read_revision(str text, int64_t *ret, struct err *err);
/*
 * (suspends) Until the cache has reached this revision; at most three seconds, then "Too large resource version". With
 * revision 0 it waits for what the store has now when `current` is set, else for nothing.
 */
int read_wait(struct request *q, int64_t revision, bool current, struct err *err);
/* The Status of -ERR_EXPIRED: 410 with this message. */
struct val read_expired(struct arena *a, str message);

#endif
