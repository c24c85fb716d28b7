/*
 * net/: bytes between this program and others: sockets, TLS, and the protocols that Kubernetes' parts speak to each other.
 * It knows nothing of Kubernetes and uses base/, OpenSSL, nghttp2 and zlib. All waiting is done by fibers (base/fiber.h).
 *
 * Connections
 *	stream.h       a connected socket, in the clear or through TLS; dialling
 *	tls.h          what the connections of one server or client share: certificate, key, whom to trust
 *	crypto_part.h  the part of OpenSSL that TLS needs, for programs that are to start quickly
 *	url.h          URLs and queries as Go reads and writes them
 * HTTP
 *	http.h         the server: HTTP/1.1 and HTTP/2 on one port, a handler per request
 *	http_client.h  the client: HTTP/1.1, kept connections, bodies in pieces
 *	http1.h        heads and bodies of HTTP/1 without I/O, for both
 * What begins as a request of HTTP/1.1 and goes on as something else
 *	websocket.h    WebSocket (RFC 6455)
 *	spdy.h         SPDY/3.1 as far as exec, attach and port-forward use it
 * Calls
 *	grpc.h         gRPC client: unary calls and streams over one HTTP/2 connection, several endpoints
 *
 * The other headers are private to the folder. http_priv.h tells how the server works inside.
 */
#ifndef C8S_NET_NET_H
#define C8S_NET_NET_H

#include "net/grpc.h"
#include "net/http.h"
#include "net/http1.h"
#include "net/http_client.h"
#include "net/spdy.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/url.h"
#include "net/websocket.h"

#endif
