/*
 * Proxies between a client and the servers it asks, as the environment names them: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, also in small
 * letters, with the meaning that they have to Go's programs. This machine is never reached by a proxy. Proxies that speak HTTP,
 * with or without TLS, are sent whole requests for http://, and for https:// they pass bytes on (CONNECT), as those that speak
 * SOCKS do with both.
 */
#ifndef C8S_NET_HTTP_PROXY_H
#define C8S_NET_HTTP_PROXY_H

#include "net/stream.h"
#include "net/url.h"

enum http_proxy_kind { HTTP_PROXY_PLAIN, HTTP_PROXY_TLS, HTTP_PROXY_SOCKS5 };

struct http_proxy {
	enum http_proxy_kind kind;
	const char *host;
	uint16_t port;
	str authorization;          /* "Basic ..."; empty: none */
	str user, password;         /* the same for SOCKS */
};

/*
 * The proxy that a URL names (http, https, socks5 or socks5h), in the arena. -ERR_INVALID with client-go's words: could not parse:
 * ..., unsupported scheme "x", must be http, https, or socks5.
 */
int http_proxy_parse(struct arena *a, str url, struct http_proxy *ret, struct err *err);

/*
 * 1 with the proxy for this URL, in the arena; 0: there is none, the server is asked directly. -ERR_INVALID: the environment names one
 * that cannot be used.
 */
int http_proxy_find(struct arena *a, const struct url *u, struct http_proxy *ret, struct err *err);
/* (suspends) A stream to the proxy itself. tls is for one that speaks TLS, which is checked by the same rules as servers are. */
int http_proxy_connect(const struct http_proxy *p, struct tls_context *tls, struct stream **ret, struct err *err);
/* (suspends) A stream to a server through a proxy; with secure it also shakes hands with the server, by tls. */
int http_proxy_dial(const struct http_proxy *p, const char *host, uint16_t port, struct tls_context *tls, bool secure,
		    struct stream **ret, struct err *err);

#endif
