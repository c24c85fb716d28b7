/*
 * HTTP/1.1 towards servers: the API server's way to kubelets (logs, exec, attach, port-forward, proxy) and to webhooks.
 * A call is one request and its response; bodies are bytes or go piece by piece in either direction, and one fiber may
 * write while another reads. Redirects are not followed and content is not decompressed.
 *
 *	struct http_call *call;
 *	int r = http_call_open(client, &(struct http_request){ .method = STR("GET"), .url = url }, &call, err);
 *	if (r == 0 && (r = http_call_head(call, &head, err)) == 0)
 *		while ((n = http_call_read(call, p, sizeof(p), err)) > 0)
 *			...
 *	http_call_free(call);
 *
 * Errors begin as Go's do: Get "https://10.0.0.1:10250/pods": dial tcp 10.0.0.1:10250: ... . Codes: -ERR_BAD_REQUEST for a
 * request that cannot be sent, -ERR_TIMEOUT, -ERR_CANCELED, and what net/stream.h gives; -ERR_UNAVAILABLE for a server
 * that ends the connection early or does not speak HTTP; -ERR_TOO_LARGE for a head beyond the limit.
 *
 * Everything belongs to the loop of the thread that made the client.
 */
#ifndef C8S_NET_HTTP_CLIENT_H
#define C8S_NET_HTTP_CLIENT_H

#include "net/http1.h"
#include "net/stream.h"

struct http_client;
struct http_call;
struct http_proxy;

struct http_client_options {
	struct tls_context *tls;    /* for https; borrowed, must outlive the client */
	unsigned max_idle_per_host; /* connections kept for later calls to the same place; 0: none */
	int64_t dial_timeout_ms;    /* names, connecting and TLS; 0: 30 s */
	int64_t head_timeout_ms;    /* waiting for the head of the response; 0: as long as the caller's deadline allows */
	int64_t idle_timeout_ms;    /* of kept connections; 0: 90 s */
	size_t max_header_bytes;    /* of a response; 0: 1 MiB */
};

struct http_client *http_client_new(const struct http_client_options *o) NONNULL_RESULT;
/* (suspends) Closes kept connections. There must be no calls. Takes NULL. */
void http_client_free(struct http_client *c);
void http_client_freep(struct http_client **c);

struct http_request {
	str method;                 /* "GET" */
	str url;                    /* http:// or https://, with path and query encoded */
	/* Where to connect instead of the URL's host: a name, an address, or "unix:/path"; NULL: the URL's. */
	const char *dial;
	uint16_t dial_port;         /* 0: the URL's */
	/* Through this one instead (http_proxy_find), or NULL; borrowed as long as the call. */
	const struct http_proxy *proxy;
	/* host, content-length and transfer-encoding are added; a host header here replaces the URL's. */
	const struct http_header *headers;
	size_t n_headers;
	str body;                   /* must stay until http_call_head has returned */
	bool streamed;              /* the body follows by http_call_write: content_length bytes, or -1 in chunks */
	int64_t content_length;
};

/*
 * (suspends) Connects (or takes a kept connection), sends the head and, unless streamed, the body. A kept connection
 * that the server closes meanwhile is replaced by a new one when the method is GET, HEAD, OPTIONS or TRACE; others could
 * be carried out twice, and fail.
 */
int http_call_open(struct http_client *c, const struct http_request *q, struct http_call **ret_call, struct err *err);
/* (suspends) Breaks off what is not complete. Takes NULL. */
void http_call_free(struct http_call *call);
void http_call_freep(struct http_call **call);

/*
 * (suspends) More of a streamed body, and its end. After an error (the server may have answered early and closed) the
 * response can still be asked for.
 */
int http_call_write(struct http_call *call, str data, struct err *err);
int http_call_write_end(struct http_call *call, struct err *err);

/* (suspends) Waits for the response's head, which lives as long as the call. 1xx but 101 are skipped. */
int http_call_head(struct http_call *call, const struct http1_head **ret_head, struct err *err);
/* (suspends) The next part of the body as it comes; 0 at its end. Asks for the head first where that was not done. */
ssize_t http_call_read(struct http_call *call, void *p, size_t n, struct err *err);
/* (suspends) All (the rest) of it, in memory of the call; -ERR_TOO_LARGE beyond max. */
int http_call_read_all(struct http_call *call, size_t max, str *ret_body, struct err *err);
/*
 * After a response 101: the stream, which the caller frees, with what was read beyond the head put back into it.
 * -ERR_BAD_REQUEST for any other response. The call is only to be freed then.
 */
int http_call_upgrade(struct http_call *call, struct stream **ret_stream, struct err *err);
/* Makes pending and later calls of other fibers on this one fail with -ERR_GONE. */
void http_call_abort(struct http_call *call);

struct http_client_stats {
	uint64_t dialled, reused;
	unsigned idle;
};

struct http_client_stats http_client_stats(const struct http_client *c);

#endif
