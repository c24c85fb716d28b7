/* What proxies need besides HTTP. */
#ifndef C8S_NET_HTTP_PROXY_PRIV_H
#define C8S_NET_HTTP_PROXY_PRIV_H

#include "net/http_proxy.h"

/* (suspends) SOCKS 5 (RFC 1928, 1929): after it the stream is one to that host. Names are for the proxy to resolve. */
int socks5_ask(struct stream *s, const struct http_proxy *p, const char *host, uint16_t port, struct err *err);
/*
 * Takes the stream over: a descriptor of a socket that two fibers connect with it, until either side ends. For TLS inside of
 * TLS.
 */
int stream_bridge(struct stream *s, int *ret_fd, struct err *err);

#endif
