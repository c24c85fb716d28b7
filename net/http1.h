/*
 * HTTP/1.0 and 1.1 without I/O: bytes in, heads and pieces of bodies out, for servers (requests) and clients (responses).
 * As strict as Go's server, and stricter where a proxy before it might read the same bytes otherwise (RFC 9112, section
 * 11.2). Work is linear in the input also when it comes byte by byte. Nothing here suspends or keeps global state.
 */
#ifndef C8S_NET_HTTP1_H
#define C8S_NET_HTTP1_H

#include "base/arena.h"
#include "base/buf.h"
#include "net/http.h"

/* ---- heads ---- */

enum http1_framing {
	HTTP1_BODY_NONE,
	HTTP1_BODY_LENGTH,  /* content-length bytes */
	HTTP1_BODY_CHUNKED,
	HTTP1_BODY_CLOSE,   /* a response that goes on until the connection ends */
};

/* Names of headers are in lower case, values without white space at their ends; the order is that of the sender. */
struct http1_head {
	unsigned version;               /* 10 or 11 (also for 1.2 to 1.9) */
	str method, target;             /* request: as sent */
	/* request: parts of the target, not decoded, query without '?'; path is "*" for OPTIONS *, "" for CONNECT */
	str path, query;
	str authority;                  /* request: from an absolute target, else from Host */
	int status;                     /* response */
	str reason;                     /* response */
	const struct http_header *headers;
	size_t n_headers;
	enum http1_framing framing;
	int64_t content_length;         /* -1: not said; 0: there is no body */
	bool keep_alive;                /* the sender would use the connection again */
	bool expect_continue;           /* request: waits for "100 Continue" before it sends the body */
	str upgrade;                    /* the protocol asked for or agreed on ("websocket"); n == 0: none */
};

enum { HTTP1_HEADERS_MAX = 4096 };

struct http1_parser {
	bool response;
	bool head_only;                 /* the response answers HEAD: it has no body, whatever its headers say */
	size_t max;                     /* bytes of a head */
	size_t line, scanned;           /* start of the line being looked at, and how far */
	int status;                     /* after an error: what a server answers: 400, 417, 431, 501 or 505 */
};

/* For one head of at most max bytes; again for the next one. */
void http1_request_init(struct http1_parser *p, size_t max);
void http1_response_init(struct http1_parser *p, size_t max, bool head_only);

/*
 * in: all bytes since the first of the head; it may be the longer (and elsewhere in memory) the next time. 1: the head is
 * complete, in memory of the arena, and was the first *ret_used bytes of in. 0: more is needed. -ERR_BAD_REQUEST or
 * -ERR_TOO_LARGE: the connection cannot be used any more; a server answers with p->status. A first byte that can begin
 * no head (a TLS handshake, say) is refused at once.
 */
int http1_parse(struct http1_parser *p, str in, struct arena *a, struct http1_head *ret_head, size_t *ret_used,
		struct err *err);

/* Is token, in any case, among the comma-separated values of all headers of this name? */
bool http1_has_token(const struct http_header *headers, size_t n, str name, str token);

/* What RFC 9110 allows as a name of a header (or a method), and as a value (no control bytes but tab). */
bool http1_is_token(str s);
bool http1_is_value(str s);
/* Equal but for the case of ASCII letters. */
bool http1_eq_nocase(str a, str b);

/* ---- bodies ---- */

struct http1_body {
	enum http1_framing framing;
	unsigned char state;
	unsigned digits;                /* of a chunk's size */
	uint64_t left;                  /* data bytes still to come: of the body, or of the chunk */
	uint64_t line, excess;          /* bytes of the chunk line or of the trailers, and what overhead has piled up */
};

void http1_body_init(struct http1_body *b, const struct http1_head *head);
/*
 * Takes a part of in: *ret_used bytes of framing and data, of which *ret_data (a slice of in, may be empty) is data. Call
 * it again with the rest as long as it uses anything. 1: this was the end of the body, and what follows the used bytes
 * is the next message. 0: more to come. -ERR_BAD_REQUEST: broken or wasteful framing. Trailers are checked and dropped.
 */
int http1_body_next(struct http1_body *b, str in, size_t *ret_used, str *ret_data, struct err *err);
/* The connection has ended: 0 when that is a proper end of this body, else -ERR_BAD_REQUEST "unexpected EOF". */
int http1_body_eof(const struct http1_body *b, struct err *err);
bool http1_body_done(const struct http1_body *b);

/* ---- writing ---- */

/* "Not Found"; "" for a status that has no name. */
const char *http1_reason(int status);

/* "HTTP/1.1 200 OK\r\n"; also to clients of 1.0, as RFC 9110 (section 2.5) has it. */
void http1_add_status(struct buf *b, int status);
/* "GET /path?query HTTP/1.1\r\n" */
void http1_add_request(struct buf *b, str method, str target);
/* "Content-Type: text/plain\r\n": names get Go's canonical case; control bytes in the value become spaces. */
void http1_add_header(struct buf *b, str name, str value);
void http1_add_headers(struct buf *b, const struct http_header *headers, size_t n);
/* The empty line. */
void http1_add_end(struct buf *b);

/* What stands before and after the data of a chunk of n > 0 bytes, and after the last one. */
enum { HTTP1_CHUNK_HEAD_MAX = 18 };
size_t http1_chunk_head(char p[HTTP1_CHUNK_HEAD_MAX], size_t n);
#define HTTP1_CHUNK_TAIL STR("\r\n")
#define HTTP1_LAST_CHUNK STR("0\r\n\r\n")

#endif
