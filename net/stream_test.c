#include "net/stream_priv.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fiber_test.h"
#include "base/mem.h"
#include "net/test_certs.h"

static const char *const both[] = { "h2", "http/1.1", NULL };
static const char *const old[] = { "http/1.1", NULL };

static void make_pair(int fd[2])
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}

struct side {
	int fd;
	struct tls_context *tls;
	struct stream *s;
	struct err err;
};

static int accept_side(void *arg)
{
	struct side *side = arg;
	return stream_accept_tls(side->fd, side->tls, &side->s, &side->err);
}

/* Shakes hands over a pair of sockets: the client's result; both streams may be NULL afterwards. */
static int meet(struct tls_context *server, struct tls_context *client, const char *host, struct side *ret_server,
		struct side *ret_client)
{
	int fd[2];

	make_pair(fd);
	*ret_server = (struct side){ .fd = fd[0], .tls = server };
	*ret_client = (struct side){ .fd = fd[1], .tls = client };
	struct fiber *f = start(accept_side, ret_server);
	int r = stream_connect_tls(fd[1], client, host, &ret_client->s, &ret_client->err);
	if (r < 0)
		(void)join(f);
	else
		CHECK_INT(join(f), 0);
	return r;
}

static void part(struct side *a, struct side *b)
{
	stream_free(a->s);
	stream_free(b->s);
}

static struct tls_context *server_of(const struct test_cert *c, const struct test_cert *ca, enum tls_client_auth auth)
{
	struct tls_options o = { .cert_pem = c->cert, .key_pem = c->key, .ca_pem = ca ? ca->cert : NULL, .alpn = both };
	struct tls_context *t = NULL;
	struct err err = ERR_INIT;

	o.client_auth = auth;
	if (tls_server_new(&o, &t, &err) < 0)
		fail_msg("%s", err.msg);
	return t;
}

static struct tls_context *client_of(const struct test_cert *ca, const struct test_cert *own, const char *const *alpn)
{
	struct tls_options o = { .ca_pem = ca->cert, .alpn = alpn };
	struct tls_context *t = NULL;
	struct err err = ERR_INIT;

	if (own) {
		o.cert_pem = own->cert;
		o.key_pem = own->key;
	}
	if (tls_client_new(&o, &t, &err) < 0)
		fail_msg("%s", err.msg);
	return t;
}

/* ---- Bytes ---- */

enum { LOTS = 3 << 20 };

static int write_lots(void *arg)
{
	CLEANUP(mem_freep) char *p = mem_alloc(LOTS);

	for (int i = 0; i < LOTS; i++)
		p[i] = (char)(i * 31 >> 4);
	return stream_write(arg, p, LOTS, NULL);
}

static int read_lots(void *arg)
{
	CLEANUP(mem_freep) char *p = mem_alloc(10000);
	ssize_t n = 1;
	int at = 0;

	while (at < LOTS && (n = stream_read(arg, p, 10000, NULL)) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			if (p[i] != (char)(at * 31 >> 4))
				return -1;
	return n <= 0 ? (int)n : at;
}

static void both_ways(struct stream *a, struct stream *b)
{
	struct fiber *f[] = { start(write_lots, a), start(write_lots, b), start(read_lots, a), start(read_lots, b) };

	CHECK_INT(join(f[0]), 0);
	CHECK_INT(join(f[1]), 0);
	CHECK_INT(join(f[2]), LOTS);
	CHECK_INT(join(f[3]), LOTS);
}

FIBER_TEST(stream_plain_both_ways)
{
	int fd[2];
	char p[16];

	make_pair(fd);
	CLEANUP(stream_freep) struct stream *a = stream_of_fd(fd[0]), *b = stream_of_fd(fd[1]);
	both_ways(a, b);
	CHECK_INT(stream_write(a, "tail", 4, NULL), 0);
	CHECK_INT(stream_shutdown_write(a, NULL), 0);
	stream_unread(b, STR("de"));
	stream_unread(b, STR("abc"));
	CHECK_INT(stream_read(b, p, 4, NULL), 4);
	CHECK_STR(str_span(p, 4), "abcd");
	CHECK_INT(stream_read(b, p, sizeof(p), NULL), 1);
	CHECK_INT(stream_read(b, p, sizeof(p), NULL), 4);
	CHECK_STR(str_span(p, 4), "tail");
	CHECK_INT(stream_read(b, p, sizeof(p), NULL), 0);
	CHECK_INT(stream_write(b, "x", 1, NULL), 0);
	CHECK_INT(stream_read(a, p, sizeof(p), NULL), 1);
}

/* TLS between two sides that trust each other. */
static void meet_well(struct side *a, struct side *b)
{
	CLEANUP(test_cert_done) struct test_cert ca = test_cert_new("ca", NULL, NULL);
	CLEANUP(test_cert_done) struct test_cert cert = test_cert_new("server", "DNS:localhost,IP:127.0.0.1", &ca);
	struct tls_context *server = server_of(&cert, NULL, TLS_CLIENT_AUTH_NONE), *client = client_of(&ca, NULL, both);

	CHECK_INT(meet(server, client, "localhost", a, b), 0);
	tls_context_free(server);
	tls_context_free(client);
}

FIBER_TEST(stream_tls_both_ways)
{
	struct side a, b;
	char p[16];

	meet_well(&a, &b);
	CHECK_STR(stream_alpn(a.s), "h2");
	CHECK_STR(stream_alpn(b.s), "h2");
	both_ways(a.s, b.s);
	CHECK_INT(stream_shutdown_write(a.s, NULL), 0);
	CHECK_INT(stream_read(b.s, p, sizeof(p), NULL), 0);
	CHECK_INT(stream_write(b.s, "still", 5, NULL), 0);
	CHECK_INT(stream_read(a.s, p, sizeof(p), NULL), 5);
	part(&a, &b);
}

static int shutdown_write(void *arg) { return stream_shutdown_write(arg, NULL); }

/* The end comes behind what is queued, also when the socket is full. */
FIBER_TEST(stream_tls_end_behind_a_full_socket)
{
	CLEANUP(mem_freep) char *p = mem_zalloc(65536);
	size_t put = 0, got = 0;
	struct side a, b;
	ssize_t n;
	DEADLINE_SCOPE(10000);

	meet_well(&a, &b);
	do {
		CHECK_INT(stream_put(a.s, p, 65536, NULL), 0);
		put += 65536;
	} while (stream_send(a.s, NULL) == 1);
	struct fiber *f = start(shutdown_write, a.s);
	fiber_settle();
	while ((n = stream_read(b.s, p, 65536, NULL)) > 0)
		got += (size_t)n;
	CHECK_INT(n, 0);
	CHECK_INT(got, put);
	CHECK_INT(join(f), 0);
	part(&a, &b);
}

FIBER_TEST(stream_tls_end_without_goodbye_is_an_error)
{
	struct err err = ERR_INIT;
	struct side a, b;
	char c;

	meet_well(&a, &b);
	CHECK_INT(stream_write(a.s, "x", 1, NULL), 0);
	stream_abort(a.s);
	CHECK_INT(stream_read(b.s, &c, 1, NULL), 1);
	CHECK_INT(stream_read(b.s, &c, 1, &err), -ERR_GONE);
	CHECK_STR(err_str(&err), "read: unexpected EOF");
	part(&a, &b);
}

static int read_one(void *arg)
{
	char c;
	return (int)stream_read(arg, &c, 1, NULL);
}

FIBER_TEST(stream_abort_ends_waits)
{
	int fd[2], pipes[2];

	make_pair(fd);
	CHECK_INT(pipe2(pipes, O_NONBLOCK | O_CLOEXEC), 0);
	struct stream *s[] = { stream_of_fd(fd[0]), stream_of_fd(fd[1]), stream_of_fd(pipes[0]), stream_of_fd(pipes[1]) };
	struct fiber *writer = start(write_lots, s[0]), *reader = start(read_one, s[0]);
	struct fiber *pipe_reader = start(read_one, s[2]), *pipe_writer = start(write_lots, s[3]);
	fiber_settle();
	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		stream_abort(s[i]);
	CHECK_INT(join(writer), -ERR_GONE);
	CHECK_INT(join(reader), -ERR_GONE);
	CHECK(join(pipe_reader) >= -ERR_GONE);
	CHECK_INT(join(pipe_writer), -ERR_GONE);
	CHECK_INT(read_one(s[0]), -ERR_GONE);
	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		stream_free(s[i]);
}

/* ---- Trust ---- */

FIBER_TEST(tls_client_verifies_the_server)
{
	CLEANUP(test_cert_done) struct test_cert ca = test_cert_new("ca", NULL, NULL), other = test_cert_new("other", NULL, NULL);
	CLEANUP(test_cert_done) struct test_cert cert = test_cert_new("server", "DNS:localhost,IP:127.0.0.1", &ca);
	struct tls_context *server = server_of(&cert, NULL, TLS_CLIENT_AUTH_NONE);
	const struct {
		const struct test_cert *ca;
		const char *host, *message;
	} t[] = {
		{ &ca, "localhost", NULL },
		{ &ca, "127.0.0.1", NULL },
		{ &other, "localhost", "tls: failed to verify certificate: x509: certificate signed by unknown authority" },
		{ &ca, "example.com", "tls: failed to verify certificate: x509: certificate is valid for localhost, not example.com" },
		{ &ca, "127.0.0.2", "tls: failed to verify certificate: x509: certificate is valid for 127.0.0.1, not 127.0.0.2" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct tls_context *client = client_of(t[i].ca, NULL, old);
		struct side a, b;
		int r = meet(server, client, t[i].host, &a, &b);
		CHECK_ROW(i, (r == 0) == !t[i].message);
		if (r < 0)
			CHECK_STR_ROW(i, err_str(&b.err), t[i].message);
		else
			CHECK_STR_ROW(i, stream_alpn(b.s), "http/1.1");
		part(&a, &b);
		tls_context_free(client);
	}
	tls_context_free(server);
}

FIBER_TEST(tls_client_wants_the_name_among_the_alternatives)
{
	CLEANUP(test_cert_done) struct test_cert cert = test_cert_new("localhost", NULL, NULL);
	struct tls_context *server = server_of(&cert, NULL, TLS_CLIENT_AUTH_NONE), *client = client_of(&cert, NULL, both);
	struct side a, b;

	CHECK(meet(server, client, "localhost", &a, &b) < 0);
	CHECK_STR(err_str(&b.err), "tls: failed to verify certificate: x509: certificate relies on legacy Common Name field, "
				   "use SANs instead");
	part(&a, &b);
	tls_context_free(server);
	tls_context_free(client);
}

FIBER_TEST(tls_without_a_common_protocol_fails)
{
	static const char *const foreign[] = { "imap", NULL };
	CLEANUP(test_cert_done) struct test_cert ca = test_cert_new("ca", NULL, NULL);
	CLEANUP(test_cert_done) struct test_cert cert = test_cert_new("server", "DNS:localhost", &ca);
	struct tls_context *server = server_of(&cert, NULL, TLS_CLIENT_AUTH_NONE), *client = client_of(&ca, NULL, foreign);
	struct side a, b;

	CHECK(meet(server, client, "localhost", &a, &b) < 0);
	part(&a, &b);
	tls_context_free(server);
	tls_context_free(client);
}

FIBER_TEST(tls_server_sees_any_client_certificate)
{
	CLEANUP(test_cert_done) struct test_cert ca = test_cert_new("ca", NULL, NULL), other = test_cert_new("other", NULL, NULL);
	CLEANUP(test_cert_done) struct test_cert cert = test_cert_new("server", "DNS:localhost", &ca);
	CLEANUP(test_cert_done) struct test_cert good = test_cert_new("good", "DNS:c", &ca);
	CLEANUP(test_cert_done) struct test_cert bad = test_cert_new("bad", "DNS:c", &other);
	struct tls_context *server = server_of(&cert, &ca, TLS_CLIENT_AUTH_REQUEST);
	const struct test_cert *own[] = { &good, &bad, NULL };

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		struct tls_context *client = client_of(&ca, own[i], both);
		struct side a, b;
		char c;
		CHECK_INT(meet(server, client, "localhost", &a, &b), 0);
		CHECK_INT(stream_write(b.s, "x", 1, NULL), 0);
		CHECK_INT(stream_read(a.s, &c, 1, NULL), 1);
		CHECK_ROW(i, (stream_peer_certificate(a.s) != NULL) == (own[i] != NULL));
		CHECK_ROW(i, (stream_peer_verify_result(a.s) == X509_V_OK) == (own[i] != &bad));
		/* the client knows who has signed it, but was not given that to be shown */
		CHECK_ROW(i, sk_X509_num(stream_peer_chain(a.s)) <= 0);
		part(&a, &b);
		tls_context_free(client);
	}
	tls_context_free(server);
}

FIBER_TEST(tls_server_may_require_a_certificate)
{
	CLEANUP(test_cert_done) struct test_cert ca = test_cert_new("ca", NULL, NULL), other = test_cert_new("other", NULL, NULL);
	CLEANUP(test_cert_done) struct test_cert cert = test_cert_new("server", "DNS:localhost", &ca);
	CLEANUP(test_cert_done) struct test_cert good = test_cert_new("good", "DNS:c", &ca);
	CLEANUP(test_cert_done) struct test_cert bad = test_cert_new("bad", "DNS:c", &other);
	struct tls_context *server = server_of(&cert, &ca, TLS_CLIENT_AUTH_REQUIRE);
	const struct test_cert *own[] = { &good, &bad, NULL };

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		struct tls_context *client = client_of(&ca, own[i], both);
		int fd[2];
		make_pair(fd);
		struct side a = { .fd = fd[0], .tls = server }, b = { .fd = fd[1], .tls = client };
		struct fiber *f = start(accept_side, &a);
		(void)stream_connect_tls(fd[1], client, "localhost", &b.s, &b.err);
		CHECK_ROW(i, (join(f) == 0) == (own[i] == &good));
		part(&a, &b);
		tls_context_free(client);
	}
	tls_context_free(server);
}

/* ---- Choosing and changing certificates ---- */

static void common_name(struct tls_context *server, struct tls_context *client, const char *host, char *ret, size_t n)
{
	struct side a, b;

	if (meet(server, client, host, &a, &b) < 0)
		fail_msg("%s", b.err.msg);
	X509_NAME_get_text_by_NID(X509_get_subject_name(stream_peer_certificate(b.s)), NID_commonName, ret, (int)n);
	CHECK_STR(stream_alpn(b.s), "h2");
	part(&a, &b);
}

static struct tls_context *trusting_client(void)
{
	struct tls_options o = { .insecure_skip_verify = true, .alpn = both };
	struct tls_context *t = NULL;
	CHECK_INT(tls_client_new(&o, &t, NULL), 0);
	return t;
}

FIBER_TEST(tls_sni_chooses_the_certificate)
{
	char dir[] = "/tmp/tls-test-XXXXXX", cn[64];
	CHECK(mkdtemp(dir) != NULL);
	CLEANUP(test_cert_done) struct test_cert main_cert = test_cert_new("main", "DNS:main.test", NULL);
	CLEANUP(test_cert_done) struct test_cert a = test_cert_new("a", "DNS:a.test,DNS:*.wild.test", NULL);
	CLEANUP(test_cert_done) struct test_cert b = test_cert_new("b", "DNS:b.test", NULL);
	char *file[] = { test_file(dir, "a.crt", a.cert), test_file(dir, "a.key", a.key), test_file(dir, "b.crt", b.cert),
			 test_file(dir, "b.key", b.key) };
	struct tls_context *server = server_of(&main_cert, NULL, TLS_CLIENT_AUTH_REQUEST), *client = trusting_client();
	static const char *const names[] = { "given.test", NULL };
	static const struct { const char *host, *cn; } t[] = {
		{ "main.test", "main" }, { "a.test", "a" }, { "A.Test", "a" }, { "x.wild.test", "a" }, { "x.y.wild.test", "main" },
		{ "given.test", "b" }, { "b.test", "main" }, { "127.0.0.1", "main" },
	};

	CHECK_INT(tls_add_sni(server, file[0], file[1], NULL, NULL), 0);
	CHECK_INT(tls_add_sni(server, file[2], file[3], names, NULL), 0);
	CHECK(tls_add_sni(server, file[2], file[1], names, NULL) < 0);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		common_name(server, client, t[i].host, cn, sizeof(cn));
		CHECK_STR_ROW(i, str_of(cn), t[i].cn);
	}
	tls_context_free(server);
	tls_context_free(client);
	for (size_t i = 0; i < ARRAY_LEN(file); i++) {
		(void)unlink(file[i]);
		free(file[i]);
	}
	(void)rmdir(dir);
}

/* File times may be coarser than a test is fast. */
static void touch(const char *path)
{
	static time_t next = 1000000;
	const struct timespec times[2] = { { .tv_sec = next }, { .tv_sec = next } };

	next++;
	CHECK_INT(utimensat(AT_FDCWD, path, times, 0), 0);
}

FIBER_TEST(tls_reload_takes_new_files)
{
	char dir[] = "/tmp/tls-test-XXXXXX", cn[64];
	CHECK(mkdtemp(dir) != NULL);
	CLEANUP(test_cert_done) struct test_cert one = test_cert_new("one", "DNS:x", NULL);
	CLEANUP(test_cert_done) struct test_cert two = test_cert_new("two", "DNS:x", NULL);
	char *cert = test_file(dir, "crt", one.cert), *key = test_file(dir, "key", one.key);
	struct tls_options o = { .cert_file = cert, .key_file = key, .alpn = both };
	struct tls_context *server = NULL, *client = trusting_client();
	struct err err = ERR_INIT;

	CHECK_INT(tls_server_new(&o, &server, &err), 0);
	CHECK_INT(tls_reload(server, &err), 0);
	touch(cert);
	CHECK_INT(tls_reload(server, &err), 0);
	free(test_file(dir, "crt", two.cert));
	touch(cert);
	CHECK(tls_reload(server, &err) < 0); /* the key is still the old one */
	common_name(server, client, "x", cn, sizeof(cn));
	CHECK_STR(str_of(cn), "one");
	free(test_file(dir, "key", two.key));
	touch(key);
	CHECK_INT(tls_reload(server, &err), 1);
	CHECK_INT(tls_reload(server, &err), 0);
	common_name(server, client, "x", cn, sizeof(cn));
	CHECK_STR(str_of(cn), "two");
	(void)unlink(cert);
	CHECK(tls_reload(server, &err) < 0);
	common_name(server, client, "x", cn, sizeof(cn));
	CHECK_STR(str_of(cn), "two");
	tls_context_free(server);
	tls_context_free(client);
	(void)unlink(key);
	(void)rmdir(dir);
	free(cert);
	free(key);
}

TEST(tls_options_that_make_no_sense)
{
	CLEANUP(test_cert_done) struct test_cert c = test_cert_new("c", "DNS:x", NULL), d = test_cert_new("d", "DNS:x", NULL);
	const struct {
		struct tls_options o;
		const char *message;
	} t[] = {
		{ { 0 }, "a TLS server needs a certificate" },
		{ { .cert_pem = c.cert }, "a certificate and its private key must be given together" },
		{ { .cert_pem = c.cert, .key_pem = c.key, .min_version = "VersionTLS9" }, "unknown tls version \"VersionTLS9\"" },
		{ { .cert_pem = c.cert, .key_pem = c.key, .cipher_suites = "TLS_AES_128_GCM_SHA256,NO" },
		  "Cipher suite NO not supported or doesn't exist" },
		{ { .cert_pem = c.cert, .key_pem = c.key, .cipher_suites = "TLS_AES" }, "Cipher suite TLS_AES not supported or doesn't exist" },
		{ { .cert_pem = c.cert, .key_pem = c.key, .cipher_suites = "TLS_AES_128_GCM_SHA256" }, NULL },
		{ { .cert_pem = c.cert, .key_pem = c.key, .cert_file = "/nonexistent" }, NULL },
		{ { .cert_pem = c.cert, .key_pem = c.key, .ca_pem = "junk" }, "the given text: no certificate inside: no start line" },
		{ { .cert_pem = "junk", .key_pem = c.key }, "the given text: read the certificate: no start line" },
		{ { .cert_pem = c.cert, .key_pem = d.key }, "*" },
		{ { .cert_pem = c.cert, .key_pem = c.key,
		    .cipher_suites = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256" }, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct tls_context *s = NULL;
		struct err err = ERR_INIT;
		int r = tls_server_new(&t[i].o, &s, &err);
		CHECK_ROW(i, (r == 0) == !t[i].message);
		if (r < 0 && t[i].message && t[i].message[0] != '*')
			CHECK_STR_ROW(i, err_str(&err), t[i].message);
		tls_context_free(s);
	}
}

/* ---- Dialling ---- */

FIBER_TEST(stream_dial_says_what_failed)
{
	struct stream *s = NULL;
	struct err err = ERR_INIT;

	CHECK(stream_dial("127.0.0.1", 1, NULL, &s, &err) < 0);
	CHECK_INT(err.sys, ECONNREFUSED);
	CHECK(str_starts(err_str(&err), STR("dial tcp 127.0.0.1:1: connect")));
	CHECK(stream_dial("unix:/nonexistent/socket", 0, NULL, &s, &err) < 0);
	CHECK(str_starts(err_str(&err), STR("dial unix /nonexistent/socket: ")));
}
