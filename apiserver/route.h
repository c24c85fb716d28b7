/* Finding the endpoint of a request. */
#ifndef C8S_APISERVER_ROUTE_H
#define C8S_APISERVER_ROUTE_H

#include "apiserver/request.h"

/* Sets q->endpoint, or fails as Kubernetes does: 404 for what is not served, 405 for a method that it does not have. */
int route(struct request *q);

#endif
