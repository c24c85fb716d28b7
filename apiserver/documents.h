/*
 * documents: what the server tells about itself: discovery, OpenAPI, version, health, metrics. The large ones are made
 * when they are first asked for and kept, compressed.
 */
#ifndef C8S_APISERVER_DOCUMENTS_H
#define C8S_APISERVER_DOCUMENTS_H

#include "apiserver/request.h"

struct documents;

/*
 * (suspends) Answers what is no resource: discovery, OpenAPI, /version, health, metrics, debug. -ERR_NOT_FOUND when the
 * path is none of them; answer_page_not_found is how that is told. An answer that is compressed already has its
 * content-encoding among its headers; its bytes go out as they are.
 */
int nonresource_handle(struct request *q, struct err *err);
/* "404 page not found" as plain text. */
void answer_page_not_found(struct request *q);

/* Those of a server (s->documents), which are made when there are none; nothing may be using them. Takes NULL. */
void documents_free(struct documents *d);

#endif
