/* TLS, certificates that change, and proxies: with a server and proxies on the loop of the test. */
#include "client/client.h"

#include "base/clock.h"
#include "base/log.h"
#include "client/folder_testing.h"
#include "client/script_testing.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "net/http.h"
#include "net/test_certs.h"

#define POD "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\"}}"

static int listen_somewhere(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 10) == 0);
	CHECK_INT(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* ---- a server that tells who asks ---- */

struct tls_server {
	struct folder folder;
	struct test_cert ca, cert;
	struct tls_context *tls;
	struct http_server *server;
	struct fiber *fiber;
	uint16_t port;
	char peer[64];               /* the client's name in the last request; "" for none */
	int requests;
	bool holds;                  /* watches are not answered while it is so */
	bool slow;                   /* the others neither */
	int hung;                    /* so many of the first are not answered at all while it is so */
	int status;                  /* of answers to other requests; 0: 200 */
};

/* A watch that never says anything. */
static ssize_t wait_for_ever(struct http_source *s, char *p, size_t n)
{
	(void)s, (void)p, (void)n;
	return HTTP_LATER;
}

static void stop_waiting(struct http_source *s) { free(s); }

static int handle(struct http_exchange *x, void *arg)
{
	struct tls_server *s = arg;
	const struct http_header json = { STR_INIT("content-type"), STR_INIT("application/json") };
	s->peer[0] = '\0';
	int number = s->requests++;
	if (x->peer->certificate)
		(void)X509_NAME_get_text_by_NID(X509_get_subject_name(x->peer->certificate), NID_commonName, s->peer, sizeof(s->peer));
	if (str_find(x->query, STR("watch=true")) < 0) {
		while (s->slow || number < s->hung)
			if (fiber_sleep_ms(1, NULL) < 0)
				return 0;
		http_answer(x, s->status ? s->status : 200, &json, 1, STR(POD));
		return 0;
	}
	while (s->holds)
		if (fiber_sleep_ms(1, NULL) < 0)
			return 0;
	struct http_source *source = mem_zalloc(sizeof(*source));
	*source = (struct http_source){ .fill = wait_for_ever, .stop = stop_waiting };
	http_answer_source(x, 200, &json, 1, source, -1);
	return 0;
}

static int run_server(void *arg) { return http_server_run(arg, 0, NULL); }

static void tls_server_init(struct tls_server *s)
{
	struct err err = ERR_INIT;
	*s = (struct tls_server){ 0 };
	folder_init(&s->folder);
	s->ca = test_cert_new("ca", NULL, NULL);
	s->cert = test_cert_new("server", "DNS:localhost,IP:127.0.0.1", &s->ca);
	CHECK_INT(tls_server_new(&(struct tls_options){ .cert_pem = s->cert.cert, .key_pem = s->cert.key, .ca_pem = s->ca.cert,
							 .client_auth = TLS_CLIENT_AUTH_REQUEST }, &s->tls, &err), 0);
	CHECK_INT(http_server_new(&(struct http_server_options){ .tls = s->tls, .handle = handle, .arg = s }, &s->server, &err), 0);
	CHECK_INT(http_server_listen(s->server, "127.0.0.1", 0, &s->port, &err), 0);
	s->fiber = start(run_server, s->server);
}

static void tls_server_done(struct tls_server *s)
{
	if (s->fiber)
		(void)fiber_stop(s->fiber);
	http_server_free(s->server);
	tls_context_free(s->tls);
	test_cert_done(&s->cert);
	test_cert_done(&s->ca);
	folder_done(&s->folder);
}

/* The client's configuration; texts in the folder's arena. */
static struct client_config config_of(struct tls_server *s)
{
	return (struct client_config){ .server = arena_printf(&s->folder.arena, "https://127.0.0.1:%u", s->port),
			  .ca = str_of(s->ca.cert) };
}

static struct client *client_of(const struct client_config *config)
{
	struct client *c = NULL;
	struct err err = ERR_INIT;
	if (client_open(config, &c, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

/* "ok NAME" with the name that the server saw, or the error. */
static str get(struct tls_server *s, struct client *c)
{
	struct err err = ERR_INIT;
	s->peer[0] = '\0';
	if (client_get(c, TYPE(core_v1, Pod), STR("ns"), STR("web"), NULL, &err) < 0)
		return arena_printf(&s->folder.arena, "%d: %s", err_http_status(err.code), err.msg);
	return arena_printf(&s->folder.arena, "ok %s", s->peer);
}

/* ---- time ---- */

/* In step with the real one, which packets take, but many times as fast. */
static int run_time(void *arg)
{
	(void)arg;
	while (fiber_sleep_ms(10, NULL) == 0)
		(void)usleep(100);
	return 0;
}

static struct fiber *fast_time_begin(void)
{
	clock_virtual_set(1000 * NS_PER_S, clock_wall_ns());
	return start(run_time, NULL);
}

static void fast_time_end(struct fiber *time)
{
	(void)fiber_stop(time);
	clock_virtual_off();
}

static int64_t seconds_since(int64_t begin_ns) { return (clock_now_ns() - begin_ns) / NS_PER_S; }

/* ---- many calls at once ---- */

enum { MANY = 200, AT_ONCE = 32 };

static int get_one(void *arg) { return client_get(arg, TYPE(core_v1, Pod), STR("ns"), STR("web"), NULL, NULL); }
static int get_lease(void *arg) { return client_get(arg, TYPE(coordination_v1, Lease), STR("ns"), STR("l"), NULL, NULL); }

/* A connection costs more than most calls: a few are used again and again, but a lease does not wait for its turn. */
FIBER_TEST(https_opens_few_connections)
{
	struct tls_server s;
	struct fiber *calls[MANY], *lease;
	tls_server_init(&s);
	const struct client_config config = config_of(&s);
	struct client *c = client_of(&config);
	s.slow = true;
	for (int i = 0; i < MANY; i++)
		calls[i] = start(get_one, c);
	while (s.requests < AT_ONCE)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK_INT(fiber_sleep_ms(20, NULL), 0);
	CHECK_INT(s.requests, AT_ONCE);
	lease = start(get_lease, c);
	while (s.requests < AT_ONCE + 1)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	s.slow = false;
	CHECK_INT(join(lease), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(join(calls[i]), 0);
	CHECK_INT(s.requests, MANY + 1);
	CHECK(http_server_stats(s.server).accepted <= AT_ONCE + 1);
	client_free(c);
	tls_server_done(&s);
}

/* All places are taken by calls that hang: the next ones wait a little, and go ahead. */
FIBER_TEST(https_calls_that_hang_do_not_stop_others)
{
	enum { OTHERS = 10 };
	struct tls_server s;
	struct fiber *hanging[AT_ONCE], *others[OTHERS];
	tls_server_init(&s);
	struct fiber *time = fast_time_begin();
	const struct client_config config = config_of(&s);
	struct client *c = client_of(&config);
	s.hung = AT_ONCE;
	for (int i = 0; i < AT_ONCE; i++)
		hanging[i] = start(get_one, c);
	while (s.requests < AT_ONCE)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	int64_t begin_ns = clock_now_ns();
	{ /* who has less time than that is told so */
		DEADLINE_SCOPE(500);
		CHECK_INT(get_one(c), -ERR_TIMEOUT);
	}
	CHECK_INT(s.requests, AT_ONCE);
	for (int i = 0; i < OTHERS; i++)
		others[i] = start(get_one, c);
	{
		DEADLINE_SCOPE(20000);
		CHECK_STR(get(&s, c), "ok ");
		for (int i = 0; i < OTHERS; i++)
			CHECK_INT(join(others[i]), 0);
	}
	CHECK(seconds_since(begin_ns) >= 1); /* they had waited */
	CHECK_INT(s.requests, AT_ONCE + 1 + OTHERS);
	s.hung = 0;
	for (int i = 0; i < AT_ONCE; i++)
		CHECK_INT(join(hanging[i]), 0);
	client_free(c);
	fast_time_end(time);
	tls_server_done(&s);
}

/* ---- certificates ---- */

FIBER_TEST(https_checks_the_server)
{
	struct tls_server s;
	tls_server_init(&s);
	struct test_cert other = test_cert_new("other", NULL, NULL);
	const struct {
		struct client_config c;
		const char *want;
	} t[] = {
		{ config_of(&s), "ok " },
		{ { .server = config_of(&s).server, .insecure = true }, "ok " },
		{ { .server = config_of(&s).server, .ca = str_of(other.cert) },
		  "tls: failed to verify certificate: x509: certificate signed by unknown authority" },
		{ { .server = config_of(&s).server, .ca = str_of(s.ca.cert), .tls_server_name = STR("else") },
		  "tls: failed to verify certificate: x509: certificate is valid for localhost, not else" },
		{ { .server = config_of(&s).server, .ca = str_of(s.ca.cert), .tls_server_name = STR("localhost") }, "ok " },
		{ { .server = arena_printf(&s.folder.arena, "http://127.0.0.1:%u", s.port) }, "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct client *c = client_of(&t[i].c);
		str got = get(&s, c);
		CHECK_ROW(i, str_starts(got, STR("ok")) == str_starts(str_of(t[i].want), STR("ok")));
		CHECK_STR_ROW(i, str_skip(got, got.n - strlen(t[i].want)), t[i].want);
		CHECK_ROW(i, str_starts(got, STR("ok")) || str_starts(got, STR("503: ")) || str_starts(got, STR("400: ")));
		client_free(c);
	}
	test_cert_done(&other);
	tls_server_done(&s);
}

static int watch_one(void *arg) { return client_watch_next(arg, &(struct client_event){ 0 }, NULL); }

FIBER_TEST(https_follows_certificates_in_files)
{
	struct tls_server s;
	struct client_watch *w = NULL;
	tls_server_init(&s);
	struct test_cert one = test_cert_new("one", "DNS:c", &s.ca), two = test_cert_new("two", "DNS:c", &s.ca);
	struct client_config config = config_of(&s);
	config.ca = STR_NONE;
	config.ca_file = str_of(put_file(&s.folder, "ca", s.ca.cert, 0600));
	config.client_cert_file = str_of(put_file(&s.folder, "crt", one.cert, 0600));
	config.client_key_file = str_of(put_file(&s.folder, "key", one.key, 0600));
	struct client *c = client_of(&config);
	CHECK_STR(get(&s, c), "ok one");
	CHECK_INT(client_watch(c, TYPE(core_v1, Pod), NULL, &w, NULL), 0);
	CHECK_STR(get(&s, c), "ok one");
	struct fiber *watching = start(watch_one, w);
	/* Half of a change is none: the pair does not fit. */
	log_set_level(LOG_LEVEL_ERROR);
	put_file(&s.folder, "crt", two.cert, 0600);
	CHECK_INT(fiber_sleep_ms(1050, NULL), 0);
	CHECK_STR(get(&s, c), "ok one");
	log_set_level(LOG_LEVEL_INFO);
	put_file(&s.folder, "key", two.key, 0600);
	CHECK_INT(fiber_sleep_ms(1050, NULL), 0);
	CHECK_STR(get(&s, c), "ok two");
	/* What the old certificate had opened does not go on. */
	CHECK_INT(join(watching), 0);
	client_watch_free(w);
	CHECK_STR(get(&s, c), "ok two");
	client_free(c);
	test_cert_done(&one);
	test_cert_done(&two);
	tls_server_done(&s);
}

struct opening {
	struct client *client;
	struct client_watch *watch;
	bool shared;
};

static int open_watch(void *arg)
{
	struct opening *o = arg;
	return client_watch(o->client, TYPE(core_v1, Pod), &(struct client_watch_options){ .shared = o->shared }, &o->watch, NULL);
}

/* A watch whose answer comes when the certificate has changed belongs to the old one, too. */
FIBER_TEST(https_ends_watches_that_were_being_opened)
{
	struct tls_server s;
	tls_server_init(&s);
	struct test_cert one = test_cert_new("one", "DNS:c", &s.ca), two = test_cert_new("two", "DNS:c", &s.ca);
	struct client_config config = config_of(&s);
	config.client_cert_file = str_of(put_file(&s.folder, "crt", one.cert, 0600));
	config.client_key_file = str_of(put_file(&s.folder, "key", one.key, 0600));
	struct opening o = { .client = client_of(&config) };
	s.holds = true;
	struct fiber *f = start(open_watch, &o);
	while (s.requests < 1)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	put_file(&s.folder, "crt", two.cert, 0600);
	put_file(&s.folder, "key", two.key, 0600);
	CHECK_INT(fiber_sleep_ms(1050, NULL), 0);
	CHECK_STR(get(&s, o.client), "ok two");
	s.holds = false;
	CHECK_INT(join(f), 0);
	DEADLINE_SCOPE(2000);
	CHECK_INT(watch_one(o.watch), 0);
	client_watch_free(o.watch);
	client_free(o.client);
	test_cert_done(&one);
	test_cert_done(&two);
	tls_server_done(&s);
}

FIBER_TEST(https_takes_certificates_of_programs)
{
	struct tls_server s;
	tls_server_init(&s);
	struct arena *a = &s.folder.arena;
	struct test_cert one = test_cert_new("one", "DNS:c", &s.ca), two = test_cert_new("two", "DNS:c", &s.ca);
	struct test_cert certs[] = { one, two };
	for (size_t i = 0; i < 2; i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
		struct val said = OBJECT(a, F(kind, VAL_LIT("ExecCredential")), F(apiVersion,
				  VAL_LIT("client.authentication.k8s.io/v1beta1")),
					 F(status, OBJECT(a, F(clientCertificateData, val_of_str(str_of(certs[i].cert))),
							  F(clientKeyData, val_of_str(str_of(certs[i].key))),
							  F(expirationTimestamp, VAL_LIT("2001-01-01T00:00:00Z")))));
		CHECK_INT(json_encode(&b, said, &(struct json_encode_options){ 0 }, NULL), 0);
		put_file(&s.folder, i ? "said2" : "said1", b.p, 0600);
	}
	/* The first time the first one, then always the second; each has expired when it comes. */
	const char *program = put_file(&s.folder, "plugin", arena_printf(a,
			  "#!/bin/sh\ncd %s\ncat said1\ncp said2 said1\n", s.folder.path).p, 0700);
	struct client_config config = config_of(&s);
	config.exec = OBJECT(a, F(command, val_of_str(str_of(program))), F(apiVersion,
			  VAL_LIT("client.authentication.k8s.io/v1beta1")),
			     F(interactiveMode, VAL_LIT("IfAvailable")));
	struct client *c = client_of(&config);
	CHECK_STR(get(&s, c), "ok one");
	CHECK_STR(get(&s, c), "ok two");
	CHECK_STR(get(&s, c), "ok two");
	put_file(&s.folder, "said1",
			  "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
			  "\"status\":{\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\"}}", 0600);
	CHECK(str_starts(get(&s, c), STR("401: failed parsing client key/certificate: ")));
	client_free(c);
	test_cert_done(&one);
	test_cert_done(&two);
	tls_server_done(&s);
}

/* ---- several servers ---- */

FIBER_TEST(https_goes_to_another_server)
{
	struct tls_server one, two;
	struct client_watch *w = NULL;
	tls_server_init(&one);
	tls_server_init(&two);
	struct client_config config = config_of(&one);
	str url = config_of(&two).server;
	config.insecure = true; /* each has an authority of its own */
	config.ca = STR_NONE;
	config.servers_file = str_of(put_file(&one.folder, "servers", "", 0600));
	struct client *c = client_of(&config);
	CHECK_STR(get(&one, c), "ok ");
	CHECK_INT(one.requests, 1);
	CHECK_INT(client_watch(c, TYPE(core_v1, Pod), NULL, &w, NULL), 0);
	struct fiber *watching = start(watch_one, w);
	(void)fiber_stop(TAKE(one.fiber));
	http_server_free(TAKE(one.server));
	CHECK_INT(join(watching) < 0, true);
	client_watch_free(w);
	/* Nobody else is known yet. */
	CHECK(str_starts(get(&one, c), STR("503: ")));
	put_file(&one.folder, "servers", url.p, 0600);
	/* One call is enough, also of a write: the first server cannot have seen it. */
	CHECK_INT(client_create(c, TYPE(core_v1, Pod), OBJECT(&one.folder.arena, F(metadata, OBJECT(&one.folder.arena, F(name, VAL_LIT("web")),
				F(namespace, VAL_LIT("ns"))))), NULL, NULL, NULL), 0);
	CHECK_INT(two.requests, 1);
	CHECK_STR(get(&two, c), "ok ");
	CHECK_INT(two.requests, 2);
	/* A server that is silent is left by whoever gives up waiting, and so are watches that wait for it. */
	CHECK_INT(client_watch(c, TYPE(core_v1, Pod), NULL, &w, NULL), 0);
	watching = start(watch_one, w);
	two.holds = true;
	{
		DEADLINE_SCOPE(50);
		struct client_watch *never = NULL;
		CHECK_INT(client_watch(c, TYPE(core_v1, Pod), NULL, &never, NULL), -ERR_TIMEOUT);
	}
	two.holds = false;
	CHECK_STR(get(&two, c), "ok "); /* by way of the first, which is still gone */
	CHECK_INT(join(watching), 0);
	client_watch_free(w);
	client_free(c);
	tls_server_done(&two);
	tls_server_done(&one);
}

FIBER_TEST(https_leaves_a_server_that_is_not_well)
{
	struct tls_server one, two;
	tls_server_init(&one);
	tls_server_init(&two);
	struct client_config config = config_of(&one);
	config.insecure = true;
	config.ca = STR_NONE;
	config.servers_file = str_of(put_file(&one.folder, "servers", config_of(&two).server.p, 0600));
	struct client *c = client_of(&config);
	one.status = 500; /* of an object, perhaps */
	CHECK(str_starts(get(&one, c), STR("500: ")));
	one.status = 503;
	CHECK(str_starts(get(&one, c), STR("503: ")));
	CHECK_INT(one.requests, 2);
	CHECK_STR(get(&two, c), "ok ");
	/* Both of them: nobody runs to and fro. */
	two.status = 504;
	for (int i = 0; i < 3; i++)
		CHECK(str_starts(get(&two, c), STR("504: ")));
	CHECK_INT(two.requests, 4);
	CHECK_INT(one.requests, 2);
	client_free(c);
	tls_server_done(&two);
	tls_server_done(&one);
}

/* One that nobody can talk to any more. */
struct dead_server {
	int fd;
	uint16_t port;
	struct fiber *fiber;
};

/* Hangs up before there is TLS: it cannot know what was to be asked. */
static int hang_up(void *arg)
{
	const struct dead_server *d = arg;
	for (int fd; (fd = fiber_accept(d->fd, NULL, NULL)) >= 0;)
		close(fd);
	return 0;
}

/* It is cut off unless it hangs up: connections are made, by the kernel, and nothing comes of them. */
static void dead_server_init(struct dead_server *d, bool hangs_up)
{
	*d = (struct dead_server){ 0 };
	d->fd = listen_somewhere(&d->port);
	if (hangs_up)
		d->fiber = start(hang_up, d);
}

static void dead_server_done(struct dead_server *d)
{
	if (d->fiber)
		(void)fiber_stop(d->fiber);
	close(d->fd);
}

/* The client of a dead server that knows where else to go. */
static struct client *client_of_dead(const struct dead_server *d, struct tls_server *other)
{
	struct arena *a = &other->folder.arena;
	const struct client_config config = { .insecure = true, .server = arena_printf(a, "https://127.0.0.1:%u", d->port),
		.servers_file = str_of(put_file(&other->folder, "servers", config_of(other).server.p, 0600)) };
	return client_of(&config);
}

static int create_one(void *arg)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	return client_create(arg, TYPE(core_v1, Pod), OBJECT(&a, F(metadata, OBJECT(&a, F(name, VAL_LIT("web")), F(namespace, VAL_LIT("ns"))))), NULL, NULL,
			     NULL);
}

/* Writes as well: it has not seen them. All of them, and before anybody else gives up. */
FIBER_TEST(https_calls_go_on_when_a_server_is_cut_off)
{
	enum { CALLS = 3 };
	struct tls_server two;
	struct dead_server one;
	struct fiber *calls[CALLS];
	tls_server_init(&two);
	dead_server_init(&one, false);
	struct fiber *time = fast_time_begin();
	struct client *c = client_of_dead(&one, &two);
	int64_t begin_ns = clock_now_ns();
	for (int i = 0; i < CALLS; i++)
		calls[i] = start(create_one, c);
	for (int i = 0; i < CALLS; i++)
		CHECK_INT(join(calls[i]), 0);
	CHECK(seconds_since(begin_ns) < 10);
	CHECK_INT(two.requests, CALLS);
	client_free(c);
	fast_time_end(time);
	dead_server_done(&one);
	tls_server_done(&two);
}

/* A watch that waits for a connection to share begins elsewhere as soon as somebody has found out. */
FIBER_TEST(https_watches_do_not_wait_for_a_server_that_was_left)
{
	struct tls_server two;
	struct dead_server one;
	tls_server_init(&two);
	dead_server_init(&one, false);
	struct fiber *time = fast_time_begin();
	struct opening o = { .client = client_of_dead(&one, &two), .shared = true };
	int64_t begin_ns = clock_now_ns();
	struct fiber *waiting = start(open_watch, &o);
	fiber_settle();
	CHECK_STR(get(&two, o.client), "ok ");
	CHECK_INT(join(waiting), 0);
	CHECK(seconds_since(begin_ns) < 10);
	CHECK_INT(two.requests, 2);
	client_watch_free(o.watch);
	client_free(o.client);
	fast_time_end(time);
	dead_server_done(&one);
	tls_server_done(&two);
}

/* What another server says counts, and is not asked for again. */
FIBER_TEST(https_believes_the_server_after_one_that_hung_up)
{
	struct tls_server two;
	struct dead_server one;
	tls_server_init(&two);
	dead_server_init(&one, true);
	struct client *c = client_of_dead(&one, &two);
	two.status = 404;
	CHECK(str_starts(get(&two, c), STR("404: ")));
	CHECK_INT(two.requests, 1);
	client_free(c);
	dead_server_done(&one);
	tls_server_done(&two);
}

/* Nobody can tell whether a server has done what it was asked for before it died: whoever asked has to find out. */
FIBER_TEST(https_does_not_repeat_what_may_have_been_done)
{
	struct tls_server one, two;
	tls_server_init(&one);
	tls_server_init(&two);
	struct client_config config = config_of(&one);
	config.insecure = true;
	config.ca = STR_NONE;
	config.servers_file = str_of(put_file(&one.folder, "servers", config_of(&two).server.p, 0600));
	struct client *c = client_of(&config);
	one.slow = true;
	struct fiber *writes = start(create_one, c), *reads = start(get_one, c);
	while (one.requests < 2)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	(void)fiber_stop(TAKE(one.fiber));
	http_server_free(TAKE(one.server));
	CHECK_INT(join(writes), -ERR_UNAVAILABLE);
	CHECK_INT(two.requests, 0);
	/* To read once more does no harm. */
	CHECK_INT(join(reads), 0);
	CHECK_INT(two.requests, 1);
	CHECK_INT(create_one(c), 0);
	CHECK_INT(two.requests, 2);
	client_free(c);
	tls_server_done(&two);
	tls_server_done(&one);
}

/* ---- proxies ---- */

struct proxy {
	int fd;
	uint16_t port, target;
	struct tls_context *tls;     /* NULL: in the clear */
	bool socks, refuses, endless;
	struct fiber_group fibers;
	struct fiber *fiber;
	char asked[512];
	int n;
};

struct way {
	struct stream *from, *to;
};

static int pass_on(void *arg)
{
	struct way w = *(struct way *)arg;
	char p[1000];
	ssize_t n;
	while ((n = stream_read(w.from, p, sizeof(p), NULL)) > 0)
		if (stream_write(w.to, p, (size_t)n, NULL) < 0)
			break;
	stream_abort(w.to);
	stream_abort(w.from);
	return 0;
}

/* The head of an answer that would have no end; its first piece is read alone, so that all together are no round number. */
static bool talk(struct stream *s)
{
	CLEANUP(mem_freep) char *more = mem_zalloc(1 << 20);
	memset(more, 'x', 1 << 20);
	if (stream_write(s, "HTTP/1.1 200 OK\r\nX: ", 20, NULL) == 0 && fiber_sleep_ms(20, NULL) == 0)
		(void)stream_write(s, more, 1 << 20, NULL);
	return false;
}

/* What the client says first, and the answer. */
static bool agree_http(struct proxy *p, struct stream *s)
{
	size_t n = 0;
	while (n < sizeof(p->asked) - 1 && !strstr(p->asked, "\r\n\r\n")) {
		ssize_t got = stream_read(s, p->asked + n, sizeof(p->asked) - 1 - n, NULL);
		if (got <= 0)
			return false;
		n += (size_t)got;
		p->asked[n] = '\0';
	}
	if (p->endless)
		return talk(s);
	str answer = p->refuses ? STR("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: "
			  "0\r\n\r\n") : STR("HTTP/1.1 200 OK\r\n\r\n");
	return stream_write(s, answer.p, answer.n, NULL) == 0 && !p->refuses;
}

static bool read_bytes(struct stream *s, char *p, size_t n)
{
	for (ssize_t got; n; p += got, n -= (size_t)got)
		if ((got = stream_read(s, p, n, NULL)) <= 0)
			return false;
	return true;
}

static bool agree_socks(struct proxy *p, struct stream *s)
{
	char b[64];
	const char *user = p->refuses ? "\5\xff" : "\5\2";
	if (!read_bytes(s, b, 4) || memcmp(b, "\5\2\0\2", 4) != 0 || stream_write(s, user, 2, NULL) < 0 || p->refuses)
		return false;
	if (!read_bytes(s, b, 6) || memcmp(b, "\1\1u\2p@", 6) != 0 || stream_write(s, "\1\0", 2, NULL) < 0)
		return false;
	if (!read_bytes(s, b, 10) || memcmp(b, "\5\1\0\1\x7f\0\0\1", 8) != 0)
		return false;
	(void)snprintf(p->asked, sizeof(p->asked), "port %d", (unsigned char)b[8] << 8 | (unsigned char)b[9]);
	return stream_write(s, "\5\0\0\3\4name\1\2", 11, NULL) == 0;
}

struct proxied {
	struct proxy *p;
	int fd;
};

static int serve_proxy(void *arg)
{
	struct proxied x = *(struct proxied *)arg;
	struct proxy *p = x.p;
	free(arg);
	CLEANUP(stream_freep) struct stream *in = NULL;
	CLEANUP(stream_freep) struct stream *out = NULL;
	if (!p->tls)
		in = stream_of_fd(x.fd);
	else if (stream_accept_tls(x.fd, p->tls, &in, NULL) < 0)
		return 0;
	p->asked[0] = '\0';
	if (!(p->socks ? agree_socks(p, in) : agree_http(p, in)))
		return 0;
	CHECK_INT(stream_dial("127.0.0.1", p->target, NULL, &out, NULL), 0);
	struct way there = { in, out }, back = { out, in };
	struct fiber *other = start(pass_on, &back);
	(void)pass_on(&there);
	(void)fiber_stop(other);
	return 0;
}

static int accept_proxy(void *arg)
{
	struct proxy *p = arg;
	int fd;
	while ((fd = fiber_accept(p->fd, NULL, NULL)) >= 0) {
		struct proxied *x = mem_alloc(sizeof(*x));
		*x = (struct proxied){ p, fd };
		p->n++;
		CHECK_INT(fiber_group_spawn(&p->fibers, serve_proxy, x, NULL, "proxy"), 0);
	}
	return 0;
}

static void proxy_init(struct proxy *p, uint16_t target)
{
	*p = (struct proxy){ .target = target };
	p->fd = listen_somewhere(&p->port);
	fiber_group_init(&p->fibers);
	p->fiber = start(accept_proxy, p);
}

static void proxy_done(struct proxy *p)
{
	(void)fiber_stop(p->fiber);
	fiber_group_done(&p->fibers);
	close(p->fd);
}

FIBER_TEST(https_goes_through_proxies)
{
	struct tls_server s;
	struct proxy p;
	tls_server_init(&s);
	proxy_init(&p, s.port);
	struct arena *a = &s.folder.arena;
	static const struct { const char *scheme; bool socks, tls; } t[] = {
		{ "http", false, false }, { "https", false, true }, { "socks5", true, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		p.socks = t[i].socks;
		p.tls = t[i].tls ? s.tls : NULL;
		p.n = 0;
		for (p.refuses = false;; p.refuses = true) {
			struct client_config config = config_of(&s);
			config.proxy_url = arena_printf(a, "%s://u:p%%40@127.0.0.1:%u", t[i].scheme, p.port);
			struct client *c = client_of(&config);
			str got = get(&s, c);
			if (p.refuses) {
				CHECK_ROW(i, str_starts(got, STR("503: Get \"https://127.0.0.1:")));
				CHECK_ROW(i, str_ends(got,
						  p.socks ? STR("no acceptable authentication methods") : STR(": 407 "
						  "Proxy Authentication Required")));
			} else {
				CHECK_STR_ROW(i, got, "ok ");
				CHECK_STR_ROW(i, get(&s, c), "ok ");
				CHECK_ROW(i, p.n == 1);
				str want = p.socks ? arena_printf(a, "port %u", s.port) :
						     arena_printf(a, "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: "
						     "127.0.0.1:%u\r\nProxy-Authorization: Basic "
						     "dTpwQA==\r\n\r\n", s.port, s.port);
				CHECK_STR_ROW(i, str_of(p.asked), want.p);
			}
			client_free(c);
			if (p.refuses)
				break;
		}
	}
	proxy_done(&p);
	tls_server_done(&s);
}

FIBER_TEST(https_bounds_what_a_proxy_says)
{
	struct tls_server s;
	struct proxy p;
	tls_server_init(&s);
	proxy_init(&p, s.port);
	p.endless = true;
	struct client_config config = config_of(&s);
	config.proxy_url = arena_printf(&s.folder.arena, "http://127.0.0.1:%u", p.port);
	struct client *c = client_of(&config);
	str got = get(&s, c);
	CHECK_STR(str_skip(got, got.n - strlen("malformed HTTP response")), "malformed HTTP response");
	client_free(c);
	proxy_done(&p);
	tls_server_done(&s);
}

/* In the clear the proxy gets the whole request, or by SOCKS a connection. */
FIBER_TEST(http_goes_through_proxies)
{
	struct script s;
	struct err err = ERR_INIT;
	script_init(&s);
	struct client_config config = { .proxy_url = arena_printf(&s.arena, "http://u:p%%40@127.0.0.1:%u", s.port),
			  .server = STR("http://far.example:80/p/") };
	struct client *c = client_of(&config);
	script_add_json(&s, 200, "", POD);
	CHECK_INT(client_get(c, TYPE(core_v1, Pod), STR("ns"), STR("web"), NULL, &err), 0);
	CHECK_STR(script_line(&s, 0), "GET http://far.example:80/p/api/v1/namespaces/ns/pods/web HTTP/1.1");
	CHECK_STR(script_header(&s, 0, "Host"), "far.example:80");
	CHECK_STR(script_header(&s, 0, "Proxy-Authorization"), "Basic dTpwQA==");
	/* This one is far away: fewer bytes are worth the work. */
	CHECK_STR(script_header(&s, 0, "Accept-Encoding"), "gzip");
	client_free(c);
	script_done(&s);
}
