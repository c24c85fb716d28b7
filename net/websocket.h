/*
 * WebSocket (RFC 6455), as server and as client, without extensions.
 *
 * Three layers: frames without I/O, the headers of the handshake, and messages over a struct stream for fibers. A server:
 *
 *	str protocol = ws_choose_protocol(x->headers, x->n_headers, supported);
 *	if ((r = ws_accept_headers(x->arena, x->headers, x->n_headers, protocol, &answer, err)) == 0 &&
 *	    (r = http_upgrade(x, answer.headers, answer.n, &stream, err)) == 0)
 *		ws = ws_new(stream, &(struct ws_options){ 0 });
 */
#ifndef C8S_NET_WEBSOCKET_H
#define C8S_NET_WEBSOCKET_H

#include "base/arena.h"
#include "net/http.h"

enum ws_opcode { WS_CONTINUATION = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

/* Codes of close frames; WS_NO_CODE and WS_ABNORMAL never travel. */
enum {
	WS_NORMAL = 1000, WS_GOING_AWAY = 1001, WS_PROTOCOL_ERROR = 1002, WS_UNSUPPORTED = 1003, WS_NO_CODE = 1005,
	WS_ABNORMAL = 1006, WS_BAD_DATA = 1007, WS_POLICY = 1008, WS_TOO_BIG = 1009, WS_INTERNAL = 1011,
};

/* ---- frames ---- */

struct ws_frame {
	bool fin, masked;
	enum ws_opcode opcode;
	uint8_t mask[4];
	uint64_t length;
};

enum { WS_FRAME_HEAD_MAX = 14, WS_CONTROL_MAX = 125 };

/* 1: the head was the first *ret_used bytes of in; 0: more is needed; -ERR_BAD_REQUEST: nobody may send such a frame. */
int ws_frame_parse(str in, struct ws_frame *ret_frame, size_t *ret_used, struct err *err);
size_t ws_frame_write(char p[WS_FRAME_HEAD_MAX], const struct ws_frame *f);
/* Masks or unmasks n bytes that stand at this offset in the payload. */
void ws_mask(char *p, size_t n, const uint8_t mask[4], uint64_t offset);

/* Checks UTF-8 that comes in pieces. */
struct ws_utf8 {
	uint8_t left, low, high; /* bytes of the character still to come, and the range of the next */
};

bool ws_utf8_next(struct ws_utf8 *u, str piece);

/* ---- handshake ---- */

enum { WS_ACCEPT_KEY = 28 };
void ws_accept_key(str key, char ret_key[WS_ACCEPT_KEY + 1]);

/* Does this request (a GET) ask for a WebSocket? */
bool ws_is_upgrade(const struct http_header *headers, size_t n);
/* The first of the client's protocols that is in the NULL-ended list, a slice of the header; n == 0: none. */
str ws_choose_protocol(const struct http_header *headers, size_t n, const char *const *supported);

struct ws_headers {
	struct http_header headers[6];
	size_t n;
	char key[24]; /* of a client: to be given to ws_check_response */
};

/* What a server answers with beside 101; protocol may be empty. -ERR_BAD_REQUEST says what the request lacks. */
int ws_accept_headers(struct arena *a, const struct http_header *headers, size_t n, str protocol, struct ws_headers *ret,
		      struct err *err);
/* What a client sends; protocols is NULL-ended, or NULL. */
void ws_request_headers(struct arena *a, const char *const *protocols, struct ws_headers *ret);
/*
 * Whether the response accepts that request, and the protocol chosen (n == 0: none), a slice of the header.
 * -ERR_BAD_REQUEST says why not.
 */
int ws_check_response(const struct ws_headers *request, const char *const *protocols, int status,
		      const struct http_header *headers, size_t n, str *ret_protocol, struct err *err);

/* ---- messages ---- */

struct ws;

struct ws_options {
	bool client;
	size_t max_message; /* for ws_read; 0: 4 MiB */
};

/* Takes the stream over. */
struct ws *ws_new(struct stream *s, const struct ws_options *o) NONNULL_RESULT;
/* (suspends) Closes without a word: see ws_close. No other fiber may be using it. Takes NULL. */
void ws_free(struct ws *w);
void ws_freep(struct ws **w);

/*
 * (suspends) The next message: WS_TEXT or WS_BINARY, with *ret_data valid until the next read. 0 when the other side has
 * closed (see ws_close_code), which was answered. Pings are answered, pongs dropped. -ERR_BAD_REQUEST (broken protocol or
 * text) and -ERR_TOO_LARGE have been told to the other side; -ERR_GONE: the connection ended without a close frame.
 * Only one fiber at a time may read.
 */
int ws_read(struct ws *w, str *ret_data, struct err *err);
/*
 * (suspends) The same piece by piece as it comes, for messages of any size: *ret_data is a part (perhaps empty) of the
 * message, the last one when *ret_last.
 */
int ws_read_part(struct ws *w, str *ret_data, bool *ret_last, struct err *err);

/* (suspends) One message. Any number of fibers may write. -ERR_GONE after a close frame was sent. */
int ws_write(struct ws *w, enum ws_opcode opcode, str data, struct err *err);
/* (suspends) The same with two parts that need not lie together: Kubernetes' channel byte, and what it carries. */
int ws_write2(struct ws *w, enum ws_opcode opcode, str first, str second, struct err *err);
/* (suspends) At most WS_CONTROL_MAX bytes. */
int ws_ping(struct ws *w, str data, struct err *err);
/*
 * (suspends) Sends a close frame (the reason is cut to fit), unless one was sent; then, when wait_ms is not 0 and no
 * other fiber reads, drops what comes until the other side has closed too, for so long at most. Closing a connection with
 * unread bytes could otherwise destroy what was just sent.
 */
int ws_close(struct ws *w, int code, str reason, int64_t wait_ms, struct err *err);

/* What the other side closed with: WS_ABNORMAL before it has, WS_NO_CODE when it gave none. */
int ws_close_code(const struct ws *w);
str ws_close_reason(const struct ws *w);

/* ---- client ---- */

struct http_client;
struct http_request;

/*
 * (suspends) Opens a WebSocket to the request's http(s) URL with its headers. *ret_protocol (may be NULL) is one of the
 * given ones, or NULL. -ERR_BAD_REQUEST when the server does not want to; its status is in *ret_status (0 before there
 * was one; may be NULL).
 */
int ws_dial(struct http_client *c, const struct http_request *q, const char *const *protocols, const struct ws_options *o,
	    struct ws **ret_ws, const char **ret_protocol, int *ret_status, struct err *err);

#endif
