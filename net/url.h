/*
 * URLs as Go's net/url reads and writes them. What is decoded lies in the caller's arena (or is a slice of the input when
 * there was nothing to decode); messages of errors are Go's.
 */
#ifndef C8S_NET_URL_H
#define C8S_NET_URL_H

#include "base/arena.h"
#include "base/buf.h"

/* PathUnescape and QueryUnescape: the latter also takes '+' for a space. -ERR_BAD_REQUEST: invalid URL escape "%zz". */
int url_path_unescape(struct arena *a, str s, str *ret, struct err *err);
int url_query_unescape(struct arena *a, str s, str *ret, struct err *err);
/* PathEscape (of one segment: '/' is escaped too) and QueryEscape (a space becomes '+'). */
void url_path_escape(struct buf *b, str segment);
void url_query_escape(struct buf *b, str s);
/* Are all escapes in s well-formed? */
bool url_escapes_valid(str s);

struct url_param {
	str key, value; /* decoded */
};

struct url_query {
	struct url_param *params; /* in the order of the query */
	size_t n;
};

enum { URL_PARAMS_MAX = 10000 };

/*
 * ParseQuery: all pairs that can be decoded are in *ret_query also after an error; the error is that of the first pair
 * that cannot: a bad escape, or "invalid semicolon separator in query". -ERR_BAD_REQUEST with more than URL_PARAMS_MAX
 * pairs, as Go has it; then there are none.
 */
int url_query_parse(struct arena *a, str query, struct url_query *ret_query, struct err *err);
/* Adds key=value, with a '&' before it unless the buffer is empty. */
void url_query_add(struct buf *b, str key, str value);

/* An absolute URL: scheme://host[:port][/path][?query]. Slices of the text unless said otherwise. */
struct url {
	str scheme;    /* in lower case, in the arena */
	str userinfo;  /* before '@', not decoded */
	str host;      /* without brackets: "10.0.0.1", "::1", "fe80::1%eth0" (zone decoded) */
	bool ipv6;     /* it stood in brackets */
	uint16_t port; /* as written, or the scheme's: 80, 443; 0 when neither says */
	str authority; /* host[:port] as written, for a Host header */
	str path;      /* not decoded; "" when there is none */
	str query;     /* without '?' */
	str fragment;  /* without '#' */
};

int url_parse(struct arena *a, str text, struct url *ret_url, struct err *err);

#endif
