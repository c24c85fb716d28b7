/* Questions about pods and conditions, and small changes of them. */
#ifndef C8S_APISERVER_POD_H
#define C8S_APISERVER_POD_H

#include "apiserver/request.h"

/* A list of conditions with this one in it: the time of its last transition is now, or as it was when its status stays. */
struct val conditions_put(struct request *q, struct val list, struct val condition);
/* The pod with this condition in its status. */
struct val pod_with_condition(struct request *q, struct val pod, struct val condition);

/* (suspends) The pod of that name in the request's namespace, borrowed from the cache until the next wait. 404. */
int pod_get(struct request *q, str name, struct object **ret, struct err *err);
/* The container that a request means: *name must be one of the pod's; the only one when it is empty. Copies the name. 400. */
int pod_container(struct request *q, struct val pod, str *name);

#endif
