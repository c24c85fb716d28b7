/*
 * Lists. A list is what its kind has at one revision: the newest one, one that is at least as new as the client knows,
 * or exactly one (pages of a list that was begun earlier). It is gathered as pointers to shared objects and becomes
 * bytes while it is sent.
 */
#ifndef C8S_APISERVER_LIST_H
#define C8S_APISERVER_LIST_H

#include "apiserver/encode.h"
#include "apiserver/list_options.h"

/* ANSWER_LIST: what STAGE_RESPOND sends. The source belongs to the answer and frees itself when it is stopped. */
struct list_answer {
	struct http_source *source;
	bool watch;
	bool large;                   /* worth being compressed */
	const struct list_page *page; /* of a list: what the source is going to show */
};

struct list_page {
	struct object **objects;      /* references, in the order of keys */
	size_t n;
	struct list_head head;
};

/* (suspends) The objects that a list with these options shows. Fails as Kubernetes does. */
int list_gather(struct request *q, const struct list_options *o, struct list_page *ret, struct err *err);
void list_page_done(struct list_page *p);
/* The same with references of its own. */
struct list_page list_page_ref(const struct list_page *p);
/* Answers with this page, which is taken over, also when it fails. */
int list_answer(struct request *q, struct list_page *page, struct err *err);
/* Those of the cache as it is now that match. */
void list_current(struct kind *kind, const struct list_options *o, struct list_page *ret);

/* Where a page goes on. */
struct list_token {
	int64_t revision;             /* -1: the newest, whatever it is */
	str start;                    /* key, behind the prefix of the list */
};

/* -ERR_BAD_REQUEST "continue key is not valid: ..." */
int list_token_decode(struct arena *a, str text, struct list_token *ret, struct err *err);
str list_token_encode(struct arena *a, const struct list_token *t);

#endif
