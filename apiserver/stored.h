/*
 * One stored object on behalf of a request: read, written, removed. Each write holds only as long as nobody else was there
 * since the object was read, and is done when reads show it: the cache has it.
 */
#ifndef C8S_APISERVER_STORED_H
#define C8S_APISERVER_STORED_H

#include "apiserver/request.h"
#include "store/store.h"

/*
 * (suspends) The object of that key ("namespace/name" or "name") with a reference; NULL: there is none. fresh asks the
 * store; else it comes from the cache, which has by then what the store has now.
 */
int stored_get(struct request *q, struct kind *kind, str key, bool fresh, struct object **ret, struct err *err);

/*
 * (suspends) Writes this tree (as cache_stored_form makes it; its resourceVersion does not count) if the key is still at this
 * revision (STORE_ABSENT: if it does not exist). 1 and what is stored now, or 0 and what somebody else has made of it meanwhile
 * (NULL: it is gone); both with a reference. ret may be NULL.
 */
int stored_put(struct request *q, struct kind *kind, str key, struct val object, int64_t expect, struct object **ret,
	       struct err *err);

/*
 * (suspends) Removes this object. 1 and its revision in *ret_revision, or 0 and what somebody else has made of it meanwhile
 * (NULL: it is gone) in *ret_now, which may be NULL.
 */
int stored_remove(struct request *q, struct object *o, int64_t *ret_revision, struct object **ret_now, struct err *err);

#endif
