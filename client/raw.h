/*
 * client/raw: requests that say for themselves what they are, and answers as they come: any path, any form of answer. For
 * kubectl, which shows what the server says, of kinds that it has never heard of, too, and for streams of bytes.
 *
 * Every answer is a success here, also one that says no; errors are those of the connection alone. Only clients over HTTPS
 * (client_open) do this. All calls suspend.
 */
#ifndef C8S_CLIENT_RAW_H
#define C8S_CLIENT_RAW_H

#include "client/client.h"

struct client_raw {
	str method;                  /* "GET" */
	str path, query;             /* encoded: "/api/v1/namespaces/default/pods", "limit=500" */
	str accept;                  /* empty: JSON, or whatever there is */
	str content_type, body;      /* empty: none */
};

struct client_answer {
	int status;                  /* HTTP */
	str content_type, body;
	const str *warnings;         /* texts of Warning headers of code 299 */
	size_t n_warnings;
};

/* The whole answer, in the arena; -ERR_TOO_LARGE beyond max bytes. What the server asks to be tried again later, is. */
int client_raw(struct client *c, struct arena *a, const struct client_raw *q, size_t max, struct client_answer *ret, struct err *err);

struct client_stream;

/* The same with a body that is read as it comes. *ret is NULL when the status is not 2xx: then *ret_answer is whole. */
int client_stream(struct client *c, struct arena *a, const struct client_raw *q, struct client_stream **ret,
		  struct client_answer *ret_answer, struct err *err);
/* At least one byte: their number; 0 at the end. */
ssize_t client_stream_read(struct client_stream *s, void *p, size_t n, struct err *err);
void client_stream_free(struct client_stream *s); /* NULL is fine */
void client_stream_freep(struct client_stream **s);

struct ws;

/*
 * A WebSocket with one of these protocols (NULL-ended), *ret_protocol. *ret is NULL when the server does not want to: then
 * *ret_answer says why.
 */
int client_dial_ws(struct client *c, struct arena *a, str path, str query, const char *const *protocols, struct ws **ret,
		   const char **ret_protocol, struct client_answer *ret_answer, struct err *err);

/* Where the server is, as the configuration has it: "https://10.0.0.1:6443". Borrowed from the client. */
str client_server(const struct client *c);

#endif
