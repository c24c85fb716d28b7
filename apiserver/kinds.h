/*
 * kinds: what this server serves. A kind is a set of stored objects (all Pods) with one hub version that cached objects
 * are kept in; an endpoint is a resource or subresource in one version of the API, as requests name it.
 */
#ifndef C8S_APISERVER_KINDS_H
#define C8S_APISERVER_KINDS_H

#include "apiserver/object.h"
#include "base/list.h"
#include "base/map.h"
#include "base/omap.h"
#include "codec/schema.h"

struct request;
struct apiserver;
struct cache_event;
struct transformer;

/*
 * What a kind does beyond what machinery/ does for all (defaults, preparation, validation). Every member may be NULL.
 * They run on the request's fiber and may suspend.
 */
struct kind_hooks {
	/*
	 * Before a write is prepared and validated: may change the object (allocate an address) and refuse by
	 * request_fail. old: VAL_NONE for a create; object: VAL_NONE for a removal. q->dry_run: nothing may be kept.
	 */
	int (*begin)(struct request *q, struct val old, struct val *object);
	/* After it: what begin took is kept (stored) or given back. */
	void (*finish)(struct request *q, bool stored, struct val old, struct val object);
	/* What only the server knows about a new object (who made it), once the rest is prepared. */
	struct val (*fill)(struct request *q, struct val object);
	/* What a reader is shown that is not stored; NULL: as stored. */
	struct val (*decorate)(struct arena *a, struct val object);
};

/* Stored objects of one sort, with their cache (cache.h). */
struct kind {
	str group, resource;          /* "apps", "deployments" */
	str prefix;                   /* of its keys, with slashes at both ends: "/registry/deployments/" */
	const struct type *hub;       /* cached objects are of this type: that of the storage version */
	bool namespaced;
	bool protobuf;                /* stored so, else as JSON */
	int64_t ttl_s;                /* events go by themselves */
	const struct kind_hooks *hooks;        /* never NULL */
	const struct transformer *transformer; /* encryption at rest; NULL: none */

	/* the cache's */
	struct omap *objects;         /* key ("namespace/name") to struct object */
	int64_t changed;              /* revision of the last change */
	struct cache_event *events;   /* a ring */
	size_t events_cap;
	uint64_t first_event, next_event; /* sequence numbers: event i is at events[i % events_cap] */
	int64_t floor;                /* watches can begin at revisions >= this */
	struct list watchers;
	bool watchers_due;            /* woken at the end of the batch */
};

struct endpoint {
	const struct resource *resource;     /* pods, or pods/status */
	str subresource;                     /* "" for the resource itself */
	const struct endpoint *main;         /* the resource that a subresource belongs to; itself if it is none */
	struct kind *kind;                   /* NULL: nothing is stored (reviews, bindings) */
	const struct type *type;             /* of the objects in this version: of `main`, also for its subresources */
};

struct kinds {
	struct kind *kinds;
	size_t n_kinds;
	struct endpoint *endpoints;
	size_t n_endpoints;
	struct map by_path;                  /* "apps/v1/deployments/status" to struct endpoint; core: "/v1/pods" */
	struct map by_prefix;                /* "/registry/deployments/" to struct kind */
	struct map served;                   /* "apps/v1" ("/v1" for core): group versions that have an endpoint */
	struct arena memory;                 /* keys of the maps */
};

/* served says which rows of schema_resources to serve; NULL: those that are served by default. */
void kinds_init(struct kinds *k, bool (*served)(const struct resource *r, void *arg), void *arg);
void kinds_done(struct kinds *k);

/* NULL when it is not served. subresource may be "". */
const struct endpoint *kinds_endpoint(const struct kinds *k, str group, str version, str resource, str subresource);
/* By group and plural name: ("", "pods"). NULL when nothing of it is served. */
struct kind *kinds_find(const struct kinds *k, str group, str resource);
/* The kind that a key of the store belongs to, and its key behind the prefix; NULL: none of ours. */
struct kind *kinds_of_key(const struct kinds *k, str store_key, str *ret_key);

#endif
