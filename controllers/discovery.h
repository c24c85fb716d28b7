/*
 * discovery: which resources the server serves, asked over the API: for loops that have to do with objects of all kinds. Kinds that the
 * schema does not know are left out.
 */
#ifndef C8S_CONTROLLERS_DISCOVERY_H
#define C8S_CONTROLLERS_DISCOVERY_H

#include "client/client.h"
#include "codec/schema.h"

/* A resource, no subresource. Nothing of it is borrowed: it may be copied and kept. */
struct served {
	const struct resource *resource;  /* group, version, name, type */
	unsigned verbs;                   /* of enum verb: what the server said */
	bool preferred;                   /* the version of its group that is spoken: each object is seen through one only */
};

static inline bool served_namespaced(const struct served *s) { return (s->resource->flags & RESOURCE_NAMESPACED) != 0; }
static inline bool served_can(const struct served *s, unsigned verbs) { return (s->verbs & verbs) == verbs; }

struct discovery {
	struct served *all;               /* in the order of the server */
	size_t n;
	size_t n_failed;                  /* groups with their version that the server could not tell about */
	char failure[400];                /* "unable to retrieve the complete list of server APIs: ..." */
};

void discovery_init(struct discovery *d);
void discovery_done(struct discovery *d);

/*
 * (suspends) Asks anew. A group that the server lists but cannot tell about (n_failed) keeps what was known of it. -ERR_* when there is no
 * list at all: then everything stays as it was. Only one fiber at a time may ask; others may look meanwhile.
 */
int discovery_refresh(struct discovery *d, struct client *c, struct err *err);

/* By "apps/v1" and "Deployment", in any version that is served. false: there is none (yet). */
bool discovery_find(const struct discovery *d, str api_version, str kind, struct served *ret);

#endif
