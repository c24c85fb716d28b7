/*
 * What is not simply stored: subresources and reviews that do something of their own (bind a pod, evict it, scale a
 * Deployment, stream a log). Each is a function that does all of it on the request's fiber in STAGE_STORE; status and others that
 * are a part of their object go the way of all writes.
 */
#ifndef C8S_APISERVER_SUBRESOURCE_H
#define C8S_APISERVER_SUBRESOURCE_H

#include "apiserver/request.h"

struct subresource {
	str group, resource, name;    /* name "": the resource itself, for kinds that are not stored */
	/* Fills in q->answer or fails. */
	int (*handle)(struct request *q, struct err *err);
};

/* NULL when the request is an ordinary one. */
const struct subresource *subresource_find(const struct request *q);

#endif
