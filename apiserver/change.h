/* Changing a stored object beside the one that the request itself writes: read, change, write, again when somebody was faster. */
#ifndef C8S_APISERVER_CHANGE_H
#define C8S_APISERVER_CHANGE_H

#include "apiserver/request.h"

/*
 * What an object shall be (a typed tree of the kind's hub version; members need not be in order): sets *object, which is
 * the stored one at first, or fails by a fail_ function. Called again for every attempt.
 */
typedef int (*change_fn)(struct request *q, struct val *object, void *arg);

/*
 * (suspends) Changes the object of that key ("namespace/name" or "name"). *ret (owned; may be NULL) is the object as it is
 * stored then. Nothing is written in a dry run, nor when nothing changes; then it is the stored one. Fails with 404 when there is none.
 */
int change_object(struct request *q, struct kind *kind, str key, change_fn change, void *arg, struct object **ret,
		  struct err *err);

#endif
