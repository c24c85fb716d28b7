/*
 * stream: bytes in both directions over a connected socket, in the clear or through TLS, for fibers. One fiber may read
 * while another writes. All calls marked (suspends) honour cancel and deadlines as base/fiber.h says.
 */
#ifndef C8S_NET_STREAM_H
#define C8S_NET_STREAM_H

#include "base/err.h"
#include "net/tls.h"

struct stream;

/* Takes the descriptor of a connected, non-blocking socket (or pipe end) over. */
struct stream *stream_of_fd(int fd) NONNULL_RESULT;
/* (suspends) The same with a TLS handshake: as server, or as client that expects this host name (or IP address). */
int stream_accept_tls(int fd, struct tls_context *tls, struct stream **ret, struct err *err);
int stream_connect_tls(int fd, struct tls_context *tls, const char *host, struct stream **ret, struct err *err);
/*
 * (suspends) Connects to host (name or address; "unix:/path" for a local socket) and port; with tls it also shakes
 * hands. Every address that the name has is tried in turn.
 */
int stream_dial(const char *host, uint16_t port, struct tls_context *tls, struct stream **ret, struct err *err);

/* (suspends) Says goodbye when the stream is still in order (a TLS close-notify, not waited for), closes. Takes NULL. */
void stream_free(struct stream *s);
void stream_freep(struct stream **s);

/* (suspends) Waits for at least one byte: the number of bytes, or 0 at the end. */
ssize_t stream_read(struct stream *s, void *p, size_t n, struct err *err);
/* (suspends) Writes all. On error an unknown part has been written. */
int stream_write(struct stream *s, const void *p, size_t n, struct err *err);
/* (suspends) No more writes: the other side reads an end. */
int stream_shutdown_write(struct stream *s, struct err *err);
/* Makes pending and later reads and writes of all fibers fail with -ERR_GONE: how one fiber ends the work of others. */
void stream_abort(struct stream *s);
/* Bytes that were read too far are put back, to be read first. */
void stream_unread(struct stream *s, str bytes);

/* "h2", "http/1.1" or "": what both sides agreed on. */
str stream_alpn(const struct stream *s);
/* The certificate that the other side showed, whether it could be verified or not; borrowed; NULL: none. */
struct x509_st *stream_peer_certificate(const struct stream *s);
/* Those that it showed with it; borrowed; NULL: none. */
struct stack_st_X509 *stream_peer_chain(const struct stream *s);
/* Whether it could: 0, or the X509_V_ERR_ code of OpenSSL. */
long stream_peer_verify_result(const struct stream *s);
/* "10.0.0.7:41312" */
str stream_peer_address(const struct stream *s);

#endif
