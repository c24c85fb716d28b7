/*
 * Between client.c, which turns calls into requests, waits for its turn and tries again, and the transports, which carry
 * them: https.c, and the one inside the API server's process. A transport embeds struct client and struct client_watch as
 * the first members of its own.
 */
#ifndef C8S_CLIENT_CLIENT_PRIV_H
#define C8S_CLIENT_CLIENT_PRIV_H

#include "client/client.h"
#include "client/rate.h"
#include "client/raw.h"

struct http_header;

/* One request. Everything is borrowed until the transport returns. */
struct client_request {
	const char *verb;                /* as authorization has it: "get", "list", "watch", "create", "update", "patch", "delete" */
	str method;                      /* "GET" */
	const struct type *type;         /* of the object that the path names, or of the items of a list; NULL: no resource */
	const struct resource *resource; /* of that type */
	str namespace, name, subresource;
	str path, query;                 /* of all that, encoded: "/api/v1/namespaces/default/pods/web", "limit=500" */
	str content_type;                /* of a patch and of options: the body is JSON; empty: as the transport likes it best */
	struct val body;                 /* VAL_NONE: none */
	const struct type *body_type;    /* what the body is to be encoded as; NULL: a free tree, as it is */
	str text;                        /* or the body as it is, of that content type */
	str accept;                      /* empty: what the transport can decode */
	const struct http_header *headers; /* further ones */
	size_t n_headers;
	bool wants_object;               /* of the answer; else it need not be decoded */
	bool shared;                     /* a watch that need not have a connection of its own */
};

struct client_reply {
	struct frozen *object;           /* the caller's; NULL unless wanted */
	int status;                      /* HTTP; 0: there was no answer */
	int64_t retry_after_s;           /* -1: the server did not say */
	bool cut;                        /* the connection broke before the answer had begun */
};

struct client_transport {
	/*
	 * (suspends) One attempt. 0 for an answer of 2xx; else the error: that of the Status, or of the connection. *ret is
	 * filled in both cases.
	 */
	int (*call)(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err);
	/* (suspends) The same for a path that is no resource: all of the body, in the arena. */
	int (*call_raw)(struct client *c, const struct client_request *q, struct arena *a, size_t max, str *ret_body,
			struct client_reply *ret, struct err *err);
	/* (suspends) The same, and every answer is a success. NULL: the transport cannot. */
	int (*answer)(struct client *c, const struct client_request *q, struct arena *a, size_t max, struct client_answer *ret_answer,
		      struct client_reply *ret, struct err *err);
	/* (suspends) The request's query says watch=true. What ret says is as in call. */
	int (*watch)(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret,
		     struct err *err);
	/* (suspends) As client_watch_next; the event's object is owned by the transport until the next call. */
	int (*watch_next)(struct client_watch *w, struct client_event *ret, struct err *err);
	void (*watch_free)(struct client_watch *w); /* (suspends) */
	void (*free)(struct client *c);             /* (suspends) */
};

struct client {
	const struct client_transport *transport;
	struct rate rate;
	bool unreached;                  /* the last call had no answer */
	unsigned recoveries;
};

struct client_watch {
	struct client *client;
};

/* ---- request.c ---- */

/*
 * Fills the parts that say what the request is about, and the path. A resource of that type there must be; name and
 * subresource may be empty. -ERR_BAD_REQUEST for names that cannot stand in a path.
 */
int client_request_init(struct arena *a, const struct type *type, str namespace, str name, str subresource,
			struct client_request *ret, struct err *err);
/* One that says for itself what it is. */
struct client_request client_request_of_raw(const struct client_raw *raw);
/* What objects of a subresource of this resource are; NULL: unknown. */
const struct type *client_subresource_type(const struct resource *r, str subresource);

/* ---- status.c: how answers become errors ---- */

/*
 * An answer that is a Status with failure, or that is not 2xx (then object may be anything, also VAL_NONE, and text is its
 * body when that is readable): fills err as client-go words it.
 */
int client_status_fail(const struct client_request *q, int http_status, struct val object, str text, struct err *err);

/* ---- event.c ---- */

/*
 * Fills the event for the object of a watch that came with this type ("ADDED", ...); 1, or the error that an ERROR event is.
 * The object is taken over also then: it is unreferenced.
 */
int client_event_make(str type, struct frozen *object, struct client_event *ret, struct err *err);

#endif
