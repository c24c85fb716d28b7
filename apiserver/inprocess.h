/*
 * Writing from inside: what the server itself has to say (namespaces, addresses, leases) becomes an object the same way as
 * what others send. It is made as user system:apiserver, defaulted, prepared, validated and committed by the code of the
 * pipeline, with the field manager that Kubernetes' own loops have.
 *
 * Left out are the stages that ask who may: authentication and authorization (it is the server), admission (its objects must
 * not depend on a webhook that may need them to run), fairness and audit.
 */
#ifndef C8S_APISERVER_INPROCESS_H
#define C8S_APISERVER_INPROCESS_H

#include "apiserver/apiserver.h"

struct inprocess {
	struct apiserver *server;
	str group, resource, subresource; /* of the kind that is written, in its storage version */
	str manager;
};

/* What most writes are: INPROCESS(s, "", "namespaces") */
#define INPROCESS(s, group_, resource_)                                                                  \
	(&(const struct inprocess){ .server = (s), .group = STR(group_), .resource = STR(resource_), \
				    .manager = STR("kube-apiserver") })

/* (suspends) A new object; apiVersion and kind need not be there. -ERR_ALREADY_EXISTS, -ERR_INVALID, or the store's errors. */
int inprocess_create(const struct inprocess *w, struct val object, struct err *err);

/* The object as it shall be; VAL_NONE: as it is. live is in the storage version, the result lives in the arena. */
typedef struct val inprocess_change(struct arena *a, struct val live, void *arg);
/* (suspends) Reads, changes and writes until nobody else was in between. -ERR_NOT_FOUND when there is none. */
int inprocess_update(const struct inprocess *w, str namespace, str name, inprocess_change *change, void *arg, struct err *err);

/* (suspends) Server-side apply, with force. The patch's members are in the order of their names, at every level. */
int inprocess_apply(const struct inprocess *w, struct val patch, struct err *err);

/* (suspends) -ERR_NOT_FOUND when there is none. */
int inprocess_delete(const struct inprocess *w, str namespace, str name, struct err *err);

#endif
