/*
 * Requests from the same process: loops that live with the API server and are its clients all the same. They pass the
 * pipeline like any other, as the user that they give: impersonation, fairness, authorization, admission, validation, audit
 * and metrics apply. What they do without is a connection and the encoding: a typed body is taken as the tree that it is,
 * and objects are answered with the blocks that the cache has.
 */
#ifndef C8S_APISERVER_LOCAL_H
#define C8S_APISERVER_LOCAL_H

#include "apiserver/watch.h"

struct local_answer;
struct local_watch;

/* Borrowed until local_call returns; the user until the watch is freed. */
struct local_request {
	const struct user *user;
	str user_agent;
	str method, path, query;      /* as in struct http_exchange */
	str content_type;             /* of a body without a type, which is passed on as JSON */
	struct val body;              /* VAL_NONE: none */
	const struct type *body_type; /* of an object; NULL: patches and options */
	bool raw;                     /* the answer's bytes are wanted, not its object */
	size_t max;                   /* of them */
	struct local_answer *answer;  /* local.c's own */
};

struct local_answer {
	int status;                   /* as of HTTP */
	int64_t retry_after_s;        /* -1: not said */
	struct frozen *object;        /* what is answered, or the Status of a failure; NULL: something else */
	struct local_watch *watch;    /* of a watch that has begun */
	struct buf text;              /* what is no object, and all of a raw answer */
};

/*
 * (suspends) One request. 0 when there is an answer, also one that refuses; -ERR_CANCELED and -ERR_TIMEOUT for the caller's
 * own. *ret is to be given to local_answer_done in any case.
 */
int local_call(struct apiserver *s, const struct local_request *q, struct local_answer *ret, struct err *err);
void local_answer_done(struct local_answer *a);

/*
 * (suspends) 1 with the next event; 0 when the watch has ended. The object is the caller's: a stored one, a bookmark, or the
 * Status of an error.
 */
int local_watch_next(struct local_watch *w, enum watch_event_type *ret_type, struct frozen **ret_object, struct err *err);
void local_watch_free(struct local_watch *w); /* NULL is fine */

/* ---- for the pipeline ---- */

/* Refuses what cannot do without a connection. */
int local_check(struct request *q);
/* A body as bytes, where they are looked at. -ERR_TOO_LARGE */
int local_read_body(struct request *q, size_t max, struct err *err);
/* STAGE_RESPOND */
void local_respond(struct request *q);
/* For read_watch. */
struct watch *local_watch_new(void) NONNULL_RESULT;

#endif
