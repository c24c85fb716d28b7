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

/* (suspends) Does what the row says, and counts it while it is at work when it may take as long as it likes. */
int subresource_run(const struct subresource *s, struct request *q, struct err *err);

/*
 * A subresource that shows another object than the one that is stored (the Scale of a Deployment). It goes the way of all
 * reads and writes, but clients read, send and patch that other object.
 */
struct subresource_view {
	const struct type *type;
	/* What it shows of a stored object in the endpoint's version; managed: with the managers of what it shows. */
	int (*show)(struct request *q, struct val object, bool managed, struct val *ret, struct err *err);
	/* The stored object with what a client has made of the shown one, in the endpoint's version; or a failure. */
	int (*take)(struct request *q, struct val stored, struct val shown, struct val *ret, struct err *err);
};

/* NULL: the stored object is shown. */
const struct subresource_view *subresource_view(const struct request *q);
/* An answer with the stored object becomes one with what the view shows of it; for requests without a view, nothing. */
int subresource_answer(struct request *q, struct err *err);

/* {"kind":"Status",...,"status":"Success","code":201}: what was asked for is done. Replaces an answer that was there. */
void answer_created(struct request *q);

/* ---- one per subject ---- */

int binding_handle(struct request *q, struct err *err);        /* subresource_binding.c */
int eviction_handle(struct request *q, struct err *err);       /* subresource_eviction.c */

int log_handle(struct request *q, struct err *err);            /* subresource_log.c */
int exec_handle(struct request *q, struct err *err);           /* subresource_streams.c */
int attach_handle(struct request *q, struct err *err);
int portforward_handle(struct request *q, struct err *err);
int proxy_handle(struct request *q, struct err *err);          /* subresource_proxy.c */
/* Before any of these four: what admission says to it. It may change the options that are in the query. */
int connect_admit(struct request *q, struct err *err);         /* subresource_connect.c */
int component_handle(struct request *q, struct err *err);      /* subresource_component.c */

extern const struct subresource_view scale_view;               /* subresource_scale.c */

#endif
