/*
 * client/: how the parts of a cluster talk to its API server, and what every loop of them needs around that.
 *
 *	client.h        calls: get, list, create, update, patch, apply, delete, watch (this file)
 *	raw.h           requests and answers as they are, streams of bytes, WebSockets
 *	kubeconfig.h    where the server is and who we are: kubeconfig files, exec plugins, in-cluster
 *	informer.h      a copy of all objects of a kind, kept up to date, with indexes
 *	work_queue.h    keys to look at, each once at a time, with back-off
 *	expectations.h  what a loop has done that its informer does not show yet
 *	recorder.h      events
 *	rexec.h         the client's side of exec and attach     terminal.h   our own terminal meanwhile
 *	election.h      one leader among several, by a Lease
 *
 * There are two transports behind one interface: HTTPS, and in-process for loops that live with the API server, which
 * skips sockets and encoding but no stage of the pipeline: identity, authorization, admission and audit apply to both.
 *
 * Objects come as frozen trees (codec/val.h): immutable, shared, with one reference for the caller. Types are those of
 * the schema, TYPE(core_v1, Pod), and name the version that is spoken.
 *
 *	CLEANUP(frozen_unrefp) struct frozen *pod = NULL;
 *	int r = client_get(c, TYPE(core_v1, Pod), STR("default"), STR("web"), &pod, err);
 *	if (r == 0)
 *		printf(STR_FMT "\n", STR_ARG(val_str(pod->val, spec, nodeName)));
 *
 * Errors have the code and the message of the server's Status (-ERR_NOT_FOUND, -ERR_CONFLICT, -ERR_EXPIRED, ...), or say
 * what of the connection failed (-ERR_UNAVAILABLE, -ERR_TIMEOUT, -ERR_CANCELED). 429, and 5xx with Retry-After, are tried
 * again up to ten times. Everything belongs to the loop of the thread that made the client; all calls suspend.
 */
#ifndef C8S_CLIENT_CLIENT_H
#define C8S_CLIENT_CLIENT_H

#include "codec/schema.h"
#include "codec/val.h"

struct apiserver;
struct client;
struct client_config; /* kubeconfig.h */
struct user;          /* apiserver/request.h */

/* Over HTTPS (or http, where the configuration says so). The configuration is copied. */
int client_open(const struct client_config *config, struct client **ret, struct err *err);
/* In-process, as this user, whose texts are copied. The server must outlive the client. In the library client_inside. */
struct client *client_inside(struct apiserver *s, const struct user *user, const char *user_agent) NONNULL_RESULT;
/* There must be no calls. NULL is fine. */
void client_free(struct client *c);
void client_freep(struct client **c);

/*
 * At most qps calls per second in the long run, after burst at once; calls wait for their turn. qps 0 (which is how a client
 * begins): no limit. Watches count once.
 */
void client_limit(struct client *c, double qps, unsigned burst);

/* How often a server has answered after none could be reached: who has waited because of that need not wait longer. */
unsigned client_recoveries(const struct client *c);

/* ---- one object ---- */

int client_get(struct client *c, const struct type *type, str namespace, str name, struct frozen **ret, struct err *err);

struct client_write_options {
	str subresource;             /* "status", "binding", ...; the object's type is then still given as `type` */
	const struct type *reply;    /* what a subresource answers with where that is another type; NULL: type */
	str manager;                 /* field manager; empty: made from the user agent by the server */
	bool dry_run;
	bool force;                  /* of client_apply: take fields over from others */
};

/*
 * Namespace and name are the object's own; apiVersion and kind need not be there. o and ret may be NULL.
 * client_create of a subresource (binding, eviction, token) names its object by metadata.name.
 */
int client_create(struct client *c, const struct type *type, struct val object, const struct client_write_options *o,
		  struct frozen **ret, struct err *err);
/* -ERR_CONFLICT when the object's resourceVersion is not the stored one. */
int client_update(struct client *c, const struct type *type, struct val object, const struct client_write_options *o,
		  struct frozen **ret, struct err *err);

enum client_patch { CLIENT_PATCH_JSON, CLIENT_PATCH_MERGE, CLIENT_PATCH_STRATEGIC };

int client_patch(struct client *c, const struct type *type, str namespace, str name, enum client_patch kind, struct val patch,
		 const struct client_write_options *o, struct frozen **ret, struct err *err);
/* Server-side apply of the fields that the object has. */
int client_apply(struct client *c, const struct type *type, struct val object, const struct client_write_options *o,
		 struct frozen **ret, struct err *err);

/*
 * What becomes of a stored object: the object as it shall be, in the arena; VAL_NONE leaves it as it is. May be called
 * several times.
 */
typedef struct val client_change(struct arena *a, struct val live, void *arg);
/* Reads, changes and updates until nobody else was in between. */
int client_change_object(struct client *c, const struct type *type, str namespace, str name, client_change *change, void *arg,
			 const struct client_write_options *o, struct frozen **ret, struct err *err);

struct client_delete_options {
	int64_t grace_s;             /* -1: the object's own */
	str uid, revision;           /* only if it still is that one; empty: whichever */
	str propagation;             /* "Background", "Foreground", "Orphan"; empty: the kind's default */
};

/* o may be NULL. */
int client_delete(struct client *c, const struct type *type, str namespace, str name, const struct client_delete_options *o,
		  struct err *err);

/* ---- many objects ---- */

struct client_list_options {
	str namespace;               /* empty: all */
	str labels, fields;          /* selectors; empty: all */
	str revision;                /* resourceVersion; empty: the newest state */
	str match;                   /* resourceVersionMatch */
	int64_t limit;               /* 0: none */
	str next;                    /* continue */
};

/* All that client_list would show (the namespace must be given for a kind that has one). o and how may be NULL. */
int client_delete_collection(struct client *c, const struct type *type, const struct client_list_options *o,
			     const struct client_delete_options *how, struct err *err);

/* *ret is the list object (PodList): items, metadata.resourceVersion, metadata.continue. */
int client_list(struct client *c, const struct type *type, const struct client_list_options *o, struct frozen **ret,
		struct err *err);

enum client_event_type { CLIENT_ADDED, CLIENT_MODIFIED, CLIENT_DELETED, CLIENT_BOOKMARK };

struct client_event {
	enum client_event_type type;
	struct frozen *object;       /* owned by the watch until the next event; of a bookmark: its resourceVersion counts */
	bool initial_end;            /* of a bookmark: the objects that existed have all been told */
};

struct client_watch_options {
	struct client_list_options list; /* limit, next and match do not count here */
	bool bookmarks;
	bool initial;                /* first the objects that exist, as ADDED events, then a bookmark with initial_end */
	int64_t timeout_s;           /* the server ends it then; 0: its own choice */
	bool shared;                 /* one of very many: it shares a connection with others where the server can do that */
};

struct client_watch;

int client_watch(struct client *c, const struct type *type, const struct client_watch_options *o, struct client_watch **ret,
		 struct err *err);
/*
 * The next event: 1; 0 when the server has ended the watch in good order, or it has to begin anew because our certificates or the
 * server are others now; an ERROR event is that Status as an error
 * (-ERR_EXPIRED: list again).
 */
int client_watch_next(struct client_watch *w, struct client_event *ret, struct err *err);
void client_watch_free(struct client_watch *w);
void client_watch_freep(struct client_watch **w);

/* ---- other paths ---- */

/* GET of a path that is no resource ("/version", "/healthz"), whole. *ret lives in the arena. */
int client_get_raw(struct client *c, struct arena *a, str path, size_t max, str *ret, struct err *err);

#endif
