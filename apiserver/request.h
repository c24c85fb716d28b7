/*
 * struct request: one request on its way through the pipeline (pipeline.h). Each stage fills in its part; later stages
 * only read what earlier ones wrote. It lives on the request's fiber, everything it points to in its arena.
 */
#ifndef C8S_APISERVER_REQUEST_H
#define C8S_APISERVER_REQUEST_H

#include "apiserver/kinds.h"
#include "codec/codec.h"
#include "machinery/field_error.h"
#include "machinery/field_selector.h"
#include "machinery/selector.h"
#include "net/http.h"

enum request_verb {
	REQUEST_OTHER,                /* not of a resource: the verb is the HTTP method */
	REQUEST_GET, REQUEST_LIST, REQUEST_WATCH, REQUEST_CREATE, REQUEST_UPDATE, REQUEST_PATCH, REQUEST_DELETE,
	REQUEST_DELETE_COLLECTION,
	REQUEST_CONNECT,              /* exec, attach, portforward, proxy */
};

struct user {
	str name, uid;
	const str *groups;
	size_t n_groups;
	struct val extra;             /* map of lists of strings */
};

struct query_parameter {
	str name, value;              /* decoded */
};

/* ---- media types ---- */

enum media { MEDIA_JSON, MEDIA_YAML, MEDIA_PROTO, MEDIA_CBOR };
enum media_as { AS_OBJECT, AS_TABLE, AS_PARTIAL, AS_PARTIAL_LIST };

/* What the client wants to read (negotiate.h). */
struct accept {
	enum media media;
	enum media_as as;
	const struct api_version *as_version; /* of meta.k8s.io for Table and PartialObjectMetadata: v1 or v1beta1 */
	bool pretty;
};

/* ---- the answer ---- */

enum answer_kind {
	ANSWER_NONE,
	ANSWER_OBJECT,                /* object, or val with type */
	ANSWER_LIST,                  /* list.h */
	ANSWER_BYTES,                 /* bytes with content_type, as they are */
	ANSWER_SENT,                  /* the stage has answered by itself: a stream, a proxied or upgraded connection */
};

struct answer {
	enum answer_kind kind;
	int status;
	struct object *object;        /* a stored object (owned), shown in the endpoint's version */
	struct val val;               /* or any typed tree in the version that is to be shown */
	const struct type *type;      /* of val */
	struct list_answer *list;
	str bytes, content_type;
	struct http_header *headers;  /* beyond content-type; in the arena */
	size_t n_headers;
};

struct request {
	struct apiserver *server;
	struct http_exchange *http;
	const struct local_request *local; /* it comes from this process (local.h); NULL: over a connection */
	struct arena *arena;
	int64_t begun_ns;             /* clock_now_ns() */
	int64_t begun_wall_ns;

	/* request info */
	str method, path;             /* path decoded once, as the router sees it */
	struct query_parameter *query;
	size_t n_query;
	enum request_verb verb;
	str verb_text;                /* "get", "deletecollection", ...: for authorization, audit and metrics */
	bool is_resource;
	str group, version, namespace, resource, subresource, name;
	str rest;                     /* of proxy paths: what follows, with its slash, undecoded */
	const struct endpoint *endpoint; /* NULL for what is no resource */
	struct accept accept;

	/* authentication */
	struct user user;
	struct user original_user;    /* who asked, when user is whom they act as */
	bool impersonated;
	bool authenticated;
	str audit_id;

	/* options of the request, from query and body */
	bool dry_run;
	str field_manager;            /* as given; request_manager() has the default */
	str field_validation;         /* "Ignore", "Warn" or "Strict" */
	bool force;                   /* apply */
	struct val delete_options;    /* meta/v1.DeleteOptions */

	/* writing: everything from the end of STAGE_DECODE on is in the kind's hub version. old and what of it is in object live
	 * as long as current does; what else goes into object or failure is copied into the arena. */
	str body;
	struct val sent;              /* the decoded body of a create or update, in the endpoint's version */
	struct object *current;       /* what is stored now (owned); NULL: nothing */
	const struct type *type;      /* of old and object */
	struct val old;               /* current's tree; VAL_NONE: nothing is stored */
	struct val object;            /* what is going to be stored; VAL_NONE: this request writes nothing */
	bool begun;                   /* this write has begun for the kind's hooks, and they wait for its end */
	void *taken;                  /* what begin took: the hook's own, until finish */
	struct admission_rounds *rounds; /* admission/'s, while it runs */
	struct quota_charge *charged; /* admission/'s: what quotas were charged for this write */
	unsigned attempt;             /* how often the store has refused because of a conflict */

	struct answer answer;
	struct val failure;           /* the Status to answer with when a stage failed; VAL_NONE: made from the error */
	str *warnings;                /* request_warn's */
	unsigned n_warnings;
	int64_t timeout_ms;           /* for the whole request; 0: none, it may take as long as it likes */
	struct flow_seat *seat;       /* fairness/'s, to be given back at the end */
	struct audit_event *audit;    /* audit/'s; NULL: nothing is told about this request */
};

/* ---- reading a request ---- */

/* The value of a query parameter (the first of that name); n == 0 and p == NULL when there is none. */
str request_query(const struct request *q, str name);
/* As the API takes bools in queries: present and neither "false" nor "0". */
bool request_query_bool(const struct request *q, str name);
/* fieldManager, or the user agent up to its first "/", at most 128 bytes. */
str request_manager(const struct request *q);

/* ---- answering ---- */

/* One header more; texts live in the arena or longer. */
void answer_header(struct request *q, str name, str value);
/* Warning: 299 - "text", once per text, within Kubernetes' limits of length. */
void request_warn(struct request *q, str text);
void answer_val(struct request *q, int status, struct val v, const struct type *type);
/* Takes the reference over. */
void answer_object(struct request *q, int status, struct object *o);
void answer_bytes(struct request *q, int status, str content_type, str bytes);
/* The stage answers by itself with this status: now. */
void answer_sent(struct request *q, int status);
/* Gives back what an answer holds that was not sent; the headers stay. */
void answer_done(struct request *q);
/* {"kind":"Status",...,"status":"Success","details":{name, group, kind, uid}} with 200 */
void answer_success(struct request *q, str name, str uid);

/* ---- failing: each makes the Status that Kubernetes makes and returns -code ---- */

/* The general form: code's HTTP status and reason, this message, details (VAL_NONE: none). */
int request_fail(struct request *q, enum err_code code, struct val details, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* With another HTTP status or reason than the code's own ("" for none). */
int request_fail_as(struct request *q, enum err_code code, int status, str reason, struct val details, const char *fmt, ...)
	PRINTF_LIKE(6, 7);
int fail_bad_request(struct request *q, const char *fmt, ...) PRINTF_LIKE(2, 3);
int fail_internal(struct request *q, const char *fmt, ...) PRINTF_LIKE(2, 3); /* Internal error occurred: ... */
/* pods "x" not found, and the like; resource without group is completed from group: "deployments.apps". */
int fail_not_found(struct request *q, str group, str resource, str name);
int fail_already_exists(struct request *q, str group, str resource, str name);
/* Operation cannot be fulfilled on pods "x": <why> */
int fail_conflict(struct request *q, str group, str resource, str name, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* pods "x" is forbidden: <why> */
int fail_forbidden(struct request *q, str group, str resource, str name, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Pod "x" is invalid: ... with causes. kind is how the message names it; group its API group. */
int fail_invalid(struct request *q, str group, str kind, str name, const struct field_errors *errors);
int fail_method_not_allowed(struct request *q); /* the server does not allow this method on the requested resource */
int fail_no_such_resource(struct request *q);   /* the server could not find the requested resource */
/* From a plain error: err's code, status and reason; what stores and codecs return. */
int fail_err(struct request *q, const struct err *err);

/* A Status object for other places than answers (watch ERROR events). */
struct val status_of(struct arena *a, int http_status, str reason, struct val details, str message);

#endif
