/*
 * Streams. TLS never touches the socket for writing: OpenSSL puts its records into the stream's queue, and one send()
 * takes many of them. Hence no call of OpenSSL ever has to be repeated for want of room, which leaves only one case to
 * wait for in each direction. It reads the socket in large pieces (read-ahead), and the stream remembers when it has
 * been emptied, so that the usual "is there more?" costs no system call.
 */
#include "net/stream_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/mem.h"
#include "net/tls_priv.h"

enum {
	PIECE = 64 * 1024,             /* written at a time */
	QUEUE_MAX = 8 * 1024 * 1024,   /* nothing of ours comes near it */
	QUEUE_KEEP = 512 * 1024,       /* a larger queue is freed as soon as it is empty */
};

struct stream {
	int fd;
	int abort_fd;                  /* wakes those who wait, where shutdown() cannot: an eventfd, or -1 */
	SSL *ssl;
	X509 *refused;                 /* the server's certificate, when it was not accepted */
	bool drained;                  /* the last read emptied the socket */
	bool ended;                    /* the other side will send no more */
	bool aborted, broken, said_goodbye;
	char *queue;                   /* to be sent: queue[at..n] */
	size_t queue_at, queue_n, queue_cap;
	char *unread;                  /* to be read first */
	size_t unread_at, unread_n;
	char address[INET6_ADDRSTRLEN + 16];
};

/* ---- The queue ---- */

static int queue_add(struct stream *s, const void *p, size_t n)
{
	if (s->queue_at == s->queue_n)
		s->queue_at = s->queue_n = 0;
	if (s->queue_n + n > s->queue_cap) {
		if (s->queue_n + n > QUEUE_MAX)
			return -1;
		s->queue_cap = MAX(s->queue_cap * 2, s->queue_n + n);
		s->queue_cap = MAX(s->queue_cap, (size_t)PIECE + 4096);
		s->queue = mem_resize(s->queue, s->queue_cap);
	}
	memcpy(s->queue + s->queue_n, p, n);
	s->queue_n += n;
	return 0;
}

void stream_trim(struct stream *s)
{
	if (s->queue_at < s->queue_n)
		return;
	free(TAKE(s->queue));
	s->queue_at = s->queue_n = s->queue_cap = 0;
}

/* The bytes that the socket took, 0 when it is full. */
static ssize_t put_socket(struct stream *s, const void *p, size_t n, struct err *err)
{
	if (s->aborted)
		return err_set(err, ERR_GONE, "the connection was broken off");
	for (;;) {
		ssize_t done = s->abort_fd < 0 ? send(s->fd, p, n, MSG_NOSIGNAL) : write(s->fd, p, n);
		if (done >= 0)
			return done;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return 0;
		if (errno == EINTR)
			continue;
		s->broken = true;
		return err_sys(err, errno, "write");
	}
}

int stream_send(struct stream *s, struct err *err)
{
	while (s->queue_at < s->queue_n) {
		ssize_t done = put_socket(s, s->queue + s->queue_at, s->queue_n - s->queue_at, err);
		if (done <= 0)
			return (int)done;
		s->queue_at += (size_t)done;
	}
	if (s->queue_cap > QUEUE_KEEP)
		stream_trim(s);
	return 1;
}

/* ---- OpenSSL's view of the socket ---- */

static int bio_write(BIO *bio, const char *p, int n)
{
	return queue_add(BIO_get_data(bio), p, (size_t)n) < 0 ? -1 : n;
}

static int bio_read(BIO *bio, char *p, int n)
{
	struct stream *s = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (s->ended)
		return 0;
	if (!s->drained) {
		ssize_t got;
		do
			got = read(s->fd, p, (size_t)n);
		while (got < 0 && errno == EINTR);
		if (got == 0)
			s->ended = true;
		s->drained = got < n;
		if (got >= 0)
			return (int)got;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return -1;
	}
	BIO_set_retry_read(bio);
	return -1;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	const struct stream *s = BIO_get_data(bio);

	(void)num, (void)ptr;
	return cmd == BIO_CTRL_FLUSH || (cmd == BIO_CTRL_EOF && s->ended);
}

static BIO_METHOD *bio_method;

static void make_bio_method(void)
{
	bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "c8s stream");
	BIO_meth_set_write(bio_method, bio_write);
	BIO_meth_set_read(bio_method, bio_read);
	BIO_meth_set_ctrl(bio_method, bio_ctrl);
}

/* ---- Life ---- */

void stream_format_address(const struct sockaddr_storage *addr, char *p, size_t n)
{
	char ip[INET6_ADDRSTRLEN] = "";

	if (addr->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
		(void)inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
		(void)snprintf(p, n, "%s:%u", ip, ntohs(in->sin_port));
	} else if (addr->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
		bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
		(void)inet_ntop(mapped ? AF_INET : AF_INET6, in6->sin6_addr.s6_addr + (mapped ? 12 : 0), ip, sizeof(ip));
		(void)snprintf(p, n, mapped ? "%s:%u" : "[%s]:%u", ip, ntohs(in6->sin6_port));
	} else {
		(void)snprintf(p, n, "@");
	}
}

/* Small answers must not wait for acknowledgements, and a peer that vanished must be noticed some day. */
static void tune_tcp(int fd)
{
	static const struct { int level, name, value; } options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 30 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 15 },
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

struct stream *stream_of_fd(int fd)
{
	struct stream *s = mem_zalloc(sizeof(*s));
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);

	s->fd = fd;
	s->abort_fd = -1;
	if (getpeername(fd, (struct sockaddr *)&addr, &len) == 0 || errno != ENOTSOCK) {
		stream_format_address(&addr, s->address, sizeof(s->address));
		if (addr.ss_family == AF_INET || addr.ss_family == AF_INET6)
			tune_tcp(fd);
	} else {
		s->abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	}
	return s;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	if (s->ssl && !s->aborted && !s->broken && !s->said_goodbye && SSL_is_init_finished(s->ssl)) {
		(void)SSL_shutdown(s->ssl);
		(void)stream_send(s, NULL);
	}
	ERR_clear_error();
	SSL_free(s->ssl);
	X509_free(s->refused);
	if (s->fd >= 0)
		(void)close(s->fd);
	if (s->abort_fd >= 0)
		(void)close(s->abort_fd);
	free(s->queue);
	free(s->unread);
	free(s);
}

int stream_release(struct stream *s)
{
	int fd = s->fd;
	s->fd = -1;
	stream_free(s);
	return fd;
}

void stream_freep(struct stream **s) { stream_free(TAKE(*s)); }

void stream_abort(struct stream *s)
{
	s->aborted = true;
	if (s->abort_fd >= 0)
		(void)eventfd_write(s->abort_fd, 1);
	else
		(void)shutdown(s->fd, SHUT_RDWR);
}

/* ---- Waiting ---- */

static int check_aborted(const struct stream *s, struct err *err)
{
	return s->aborted ? err_set(err, ERR_GONE, "the connection was broken off") : 0;
}

int stream_wait(struct stream *s, short events, struct err *err)
{
	int r = check_aborted(s, err);

	if (r == 0 && s->abort_fd >= 0) {
		struct pollfd fds[] = { { .fd = s->fd, .events = events }, { .fd = s->abort_fd, .events = POLLIN } };
		r = fiber_poll(fds, ARRAY_LEN(fds), err);
	} else if (r == 0) {
		r = fiber_wait_fd(s->fd, events, err);
	}
	if (r >= 0)
		r = check_aborted(s, err);
	if (events & POLLIN)
		s->drained = false;
	return MIN(r, 0);
}

/* (suspends) Sends all that is queued. */
static int flush(struct stream *s, struct err *err)
{
	int r;

	while ((r = stream_send(s, err)) == 0) {
		r = stream_wait(s, POLLOUT, err);
		if (r < 0)
			return r;
	}
	return MIN(r, 0);
}

/* ---- Reading ---- */

static ssize_t read_tls(struct stream *s, void *p, size_t n, struct err *err)
{
	size_t got = 0;

	ERR_clear_error();
	errno = 0;
	if (SSL_read_ex(s->ssl, p, n, &got) == 1) {
		/* It may have answered a message of TLS itself. */
		return s->queue_at < s->queue_n && stream_send(s, err) < 0 ? -ERR_GONE : (ssize_t)got;
	}
	switch (SSL_get_error(s->ssl, 0)) {
	case SSL_ERROR_WANT_READ:
		return STREAM_WAIT;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		s->broken = true;
		return err_sys(err, errno ? errno : ECONNRESET, "read");
	default:
		s->broken = true;
		(void)stream_send(s, NULL);
		/* An end without a goodbye: somebody may have cut off the rest. */
		return s->ended ? err_set(err, ERR_GONE, "read: unexpected EOF") : tls_err(err, ERR_GONE, "read");
	}
}

static ssize_t read_plain(struct stream *s, void *p, size_t n, struct err *err)
{
	if (s->drained)
		return STREAM_WAIT;
	for (;;) {
		ssize_t got = read(s->fd, p, n);
		if (got >= 0) {
			s->drained = got > 0 && (size_t)got < n;
			return got;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return STREAM_WAIT;
		if (errno != EINTR)
			return err_sys(err, errno, "read");
	}
}

ssize_t stream_try_read(struct stream *s, void *p, size_t n, struct err *err)
{
	int r = check_aborted(s, err);

	if (r < 0)
		return r;
	if (s->unread) {
		n = MIN(n, s->unread_n - s->unread_at);
		memcpy(p, s->unread + s->unread_at, n);
		s->unread_at += n;
		if (s->unread_at == s->unread_n)
			free(TAKE(s->unread));
		return (ssize_t)n;
	}
	return s->ssl ? read_tls(s, p, n, err) : read_plain(s, p, n, err);
}

ssize_t stream_read(struct stream *s, void *p, size_t n, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0) {
		ssize_t got = stream_try_read(s, p, n, err);
		if (got != STREAM_WAIT)
			return got;
		stream_trim(s); /* this may take long: a watch waits for hours */
		r = stream_wait(s, POLLIN, err);
	}
	return r;
}

bool stream_is_quiet(struct stream *s)
{
	char byte;

	s->drained = false;
	return stream_try_read(s, &byte, 1, NULL) == STREAM_WAIT;
}

void stream_unread(struct stream *s, str bytes)
{
	size_t left = s->unread ? s->unread_n - s->unread_at : 0;

	if (!bytes.n)
		return;
	char *p = mem_alloc(bytes.n + left);
	memcpy(p, bytes.p, bytes.n);
	if (left)
		memcpy(p + bytes.n, s->unread + s->unread_at, left);
	free(s->unread);
	s->unread = p;
	s->unread_at = 0;
	s->unread_n = bytes.n + left;
}

/* ---- Writing ---- */

static int put_tls(struct stream *s, const char *p, size_t n, struct err *err)
{
	ERR_clear_error();
	while (n) {
		size_t done = 0;
		if (SSL_write_ex(s->ssl, p, n, &done) != 1) {
			s->broken = true;
			return tls_err(err, ERR_GONE, "write");
		}
		p += done;
		n -= done;
	}
	return 0;
}

int stream_put(struct stream *s, const void *p, size_t n, struct err *err)
{
	int r = check_aborted(s, err);

	if (r < 0 || !n)
		return r;
	if (s->ssl)
		return put_tls(s, p, n, err);
	ssize_t done = s->queue_at == s->queue_n ? put_socket(s, p, n, err) : 0;
	if (done < 0)
		return (int)done;
	if ((size_t)done < n && queue_add(s, (const char *)p + done, n - (size_t)done) < 0)
		return err_set(err, ERR_TOO_LARGE, "too much to write");
	return 0;
}

int stream_write(struct stream *s, const void *p, size_t n, struct err *err)
{
	const char *at = p;
	int r = fiber_check(err);

	while (r == 0 && n) {
		size_t piece = MIN(n, (size_t)PIECE);
		r = stream_put(s, at, piece, err);
		if (r == 0)
			r = flush(s, err);
		at += piece;
		n -= piece;
	}
	return r;
}

int stream_shutdown_write(struct stream *s, struct err *err)
{
	int r = check_aborted(s, err);

	if (r < 0)
		return r;
	if (s->ssl && !s->said_goodbye) {
		s->said_goodbye = true;
		(void)SSL_shutdown(s->ssl);
		ERR_clear_error();
	}
	if ((r = flush(s, err)) < 0)
		return r;
	return shutdown(s->fd, SHUT_WR) < 0 ? err_sys(err, errno, "shut down a connection") : 0;
}

/* ---- Shaking hands ---- */

static int handshake_error(struct stream *s, int why, const char *host, struct err *err)
{
	static const char plain[] = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
	int sys = errno;

	s->broken = true;
	if (why == SSL_ERROR_SYSCALL)
		return err_sys(err, sys ? sys : ECONNRESET, "TLS handshake");
	if (host && SSL_get_verify_result(s->ssl) != X509_V_OK) {
		ERR_clear_error();
		return tls_verify_error(SSL_get_verify_result(s->ssl), s->refused, host, err);
	}
	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST) {
		s->queue_at = s->queue_n = 0;
		(void)queue_add(s, plain, sizeof(plain) - 1);
		(void)stream_send(s, NULL);
	}
	if (s->ended)
		return err_set(err, ERR_GONE, "TLS handshake: EOF");
	return tls_err(err, ERR_GONE, "TLS handshake");
}

static int shake_hands(struct stream *s, const char *host, struct err *err)
{
	for (;;) {
		ERR_clear_error();
		errno = 0;
		int done = SSL_do_handshake(s->ssl), why = done == 1 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, done);
		if (done != 1 && why != SSL_ERROR_WANT_READ) {
			int r = handshake_error(s, why, host, err);
			(void)stream_send(s, NULL); /* an alert that says why */
			return r;
		}
		int r = flush(s, err);
		if (done == 1 || r < 0)
			return r;
		r = stream_wait(s, POLLIN, err);
		if (r < 0)
			return r;
	}
}

/* What a client checks in the certificate, and the name that it asks for. */
static bool expect_host(SSL *ssl, const char *host, bool insecure)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	unsigned char ip[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1)
		return insecure || X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
	/* As Go: a name in the subject counts for nothing. */
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return SSL_set_tlsext_host_name(ssl, host) == 1 && (insecure || SSL_set1_host(ssl, host) == 1);
}

static int start_tls(int fd, struct tls_context *tls, const char *host, struct stream **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	CLEANUP(stream_freep) struct stream *s = stream_of_fd(fd);

	(void)pthread_once(&once, make_bio_method);
	s->ssl = tls_ssl_new(tls, &s->refused, err);
	BIO *bio = s->ssl ? BIO_new(bio_method) : NULL;
	if (!bio)
		return -ERR_INTERNAL;
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(s->ssl, bio, bio);
	if (host)
		SSL_set_connect_state(s->ssl);
	else
		SSL_set_accept_state(s->ssl);
	if (host && !expect_host(s->ssl, host, tls_is_insecure(tls)))
		return tls_err(err, ERR_INVALID, "set the name of the server");
	int r = fiber_check(err);
	if (r == 0)
		r = shake_hands(s, host, err);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

int stream_accept_tls(int fd, struct tls_context *tls, struct stream **ret, struct err *err)
{
	return start_tls(fd, tls, NULL, ret, err);
}

int stream_connect_tls(int fd, struct tls_context *tls, const char *host, struct stream **ret, struct err *err)
{
	return start_tls(fd, tls, tls_server_name(tls) ? tls_server_name(tls) : host, ret, err);
}

/* ---- Asking ---- */

str stream_peer_address(const struct stream *s) { return str_of(s->address); }

str stream_alpn(const struct stream *s)
{
	const unsigned char *p = NULL;
	unsigned n = 0;

	if (s->ssl)
		SSL_get0_alpn_selected(s->ssl, &p, &n);
	return str_span((const char *)p, n);
}

struct x509_st *stream_peer_certificate(const struct stream *s)
{
	return s->ssl ? SSL_get0_peer_certificate(s->ssl) : NULL;
}

struct stack_st_X509 *stream_peer_chain(const struct stream *s)
{
	return s->ssl ? SSL_get_peer_cert_chain(s->ssl) : NULL;
}

long stream_peer_verify_result(const struct stream *s) { return s->ssl ? SSL_get_verify_result(s->ssl) : X509_V_OK; }
