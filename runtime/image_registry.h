/*
 * One conversation with a registry about one repository: which hosts to ask, tokens, redirects, retries. Errors are worded as
 * containerd words them, because the events of pods show them.
 */
#ifndef C8S_RUNTIME_IMAGE_REGISTRY_H
#define C8S_RUNTIME_IMAGE_REGISTRY_H

#include "net/http_client.h"
#include "runtime/image_hosts.h"
#include "runtime/image_priv.h"

struct registry;

/* Borrows all until registry_free. push: ask for the right to write, too. Blocks for the files of the configuration. */
int registry_open(struct images *m, const struct image_ref *ref, const struct image_auth *auth, bool push, struct registry **ret,
		  struct err *err);
/* (suspends) Takes NULL. */
void registry_free(struct registry *g);
void registry_freep(struct registry **g);

/* Lives as long as the conversation. */
struct arena *registry_arena(struct registry *g);

/* The hosts in order; NULL beyond the last. */
struct registry_host *registry_host(struct registry *g, size_t i);

struct registry_request {
	str method;
	str suffix;               /* "manifests/latest", behind .../v2/<repository>/ */
	str url;                  /* instead: the whole URL, or the path on the same host */
	str accept, content_type, range; /* empty: none */
	str body;
	bool streamed;            /* the body follows by http_call_write; such a request is not repeated */
	int64_t content_length;
};

/*
 * (suspends) Sends it, answers challenges, follows redirects of GET and HEAD, repeats what was refused for the moment. 0 with a response
 * of any other status; the call is the caller's to free, the head lives as long.
 */
int registry_send(struct registry *g, struct registry_host *h, const struct registry_request *q, struct http_call **ret_call,
		  const struct http1_head **ret_head, struct err *err);

/*
 * (suspends) The error for an answer that was not hoped for: "unexpected status from HEAD request to https://...: 500 Internal Server
 * Error". What the body says is added when it is in the registries' form.
 */
int registry_refuse(struct registry *g, struct registry_host *h, const struct registry_request *q, struct http_call *call,
		    const struct http1_head *head, struct err *err);

#endif
