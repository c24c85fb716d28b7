/* Webhooks at Services, against a server on the test's loop. */
#include "apiserver/read_fixture.h"
#include "apiserver/webhook.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "net/test_certs.h"

struct world {
	struct read_fixture f;
	struct test_cert authority, cert;
	struct tls_context *tls;
	struct http_server *http;
	struct fiber *run;
	uint16_t port;
	str host, path, query;        /* of the last request */
	int at_work, most_at_work;
};

static int handle(struct http_exchange *x, void *arg)
{
	static char host[100], path[100], query[100];
	struct world *w = arg;
	struct err err = ERR_INIT;
	str body;
	(void)snprintf(host, sizeof host, STR_FMT, STR_ARG(x->authority));
	(void)snprintf(path, sizeof path, STR_FMT, STR_ARG(x->path));
	(void)snprintf(query, sizeof query, STR_FMT, STR_ARG(x->query));
	w->host = str_of(host);
	w->path = str_of(path);
	w->query = str_of(query);
	w->at_work++;
	w->most_at_work = MAX(w->most_at_work, w->at_work);
	int r = http_read_all(x, 1 << 20, &body, &err);
	if (r == 0)
		r = fiber_sleep_ms(str_eq(x->path, STR("/slow")) ? 60000 : 20, &err);
	w->at_work--;
	if (r == 0)
		http_answer(x, 200, NULL, 0, body);
	return r;
}

static int serve(void *arg)
{
	struct world *w = arg;
	struct err err = ERR_INIT;
	return http_server_run(w->http, 0, &err);
}

static void world_init(struct world *w)
{
	struct err err = ERR_INIT;
	read_fixture_init(&w->f);
	w->authority = test_cert_new("authority", NULL, NULL);
	w->cert = test_cert_new("server", "DNS:hook.t.svc", &w->authority);
	const struct tls_options tls = { .cert_pem = w->cert.cert, .key_pem = w->cert.key };
	CHECK_INT(tls_server_new(&tls, &w->tls, &err), 0);
	const struct http_server_options o = { .tls = w->tls, .handle = handle, .arg = w };
	CHECK_INT(http_server_new(&o, &w->http, &err), 0);
	CHECK_INT(http_server_listen(w->http, "127.0.0.1", 0, &w->port, &err), 0);
	w->run = start(serve, w);
}

static void world_done(struct world *w)
{
	(void)fiber_stop(w->run);
	http_server_free(w->http);
	tls_context_free(w->tls);
	test_cert_done(&w->cert);
	test_cert_done(&w->authority);
	read_fixture_done(&w->f);
}

static void put_service(struct world *w, const char *spec)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str json = arena_printf(&a, "{'apiVersion':'v1','kind':'Service','metadata':{'name':'hook','namespace':'t'},'spec':{%s,"
				"'ports':[{'port':%u,'protocol':'TCP'}]}}", spec, w->port);
	read_fixture_put(&w->f, STR("services"), "t/hook", json.p);
}

static struct webhook *open_hook(struct world *w, const char *path, const char *ca)
{
	struct err err = ERR_INIT;
	struct webhook *hook = NULL;
	const struct webhook_options o = { .service_namespace = STR("t"), .service_name = STR("hook"), .service_path = str_of(path),
					   .service_port = w->port, .ca_bundle = str_of(ca) };
	CHECK_INT(webhook_new(&w->f.server, &o, &hook, &err), 0);
	return hook;
}

/* One question; the answer, or the error after its address. */
static str ask(struct webhook *hook, struct arena *a, const char *query, int64_t timeout_ms)
{
	struct err err = ERR_INIT;
	struct webhook_reply reply;
	if (webhook_post(hook, a, str_of(query), STR("{\"a\":1}"), timeout_ms, &reply, &err) == 0)
		return reply.status == 200 ? reply.body : STR("another status");
	ptrdiff_t at = str_find(err_str(&err), STR("\": "));
	return arena_str(a, at < 0 ? err_str(&err) : str_skip(err_str(&err), (size_t)at + 3));
}

FIBER_TEST(webhook_service_is_found)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct world w;
	w = (struct world){ 0 };
	world_init(&w);
	struct webhook *hook = open_hook(&w, "/check", w.authority.cert);
	str none = arena_printf(&a, "no service port %u found for service \"hook\"", w.port + 1u);
	CHECK_STR(ask(hook, &a, "", 0), "service \"hook\" not found");
	put_service(&w, "'type':'ClusterIP','clusterIP':'None'");
	CHECK_STR(ask(hook, &a, "", 0), "cannot route to service with ClusterIP \"None\"");
	put_service(&w, "'type':'ClusterIP','clusterIP':'127.0.0.1'");
	CHECK_STR(ask(hook, &a, "timeout=5s", 0), "{\"a\":1}");
	CHECK_STR(w.host, arena_printf(&a, "hook.t.svc:%u", w.port).p);
	CHECK_STR(w.path, "/check");
	CHECK_STR(w.query, "timeout=5s");
	put_service(&w, "'type':'ExternalName','externalName':'localhost'");
	CHECK_STR(ask(hook, &a, "", 0), "{\"a\":1}");
	CHECK_STR(w.query, "");
	webhook_free(hook);
	put_service(&w, "'type':'NodePort','clusterIP':'127.0.0.1'");
	w.port++;
	hook = open_hook(&w, "/check", w.authority.cert);
	CHECK_STR(ask(hook, &a, "", 0), none.p);
	webhook_free(hook);
	world_done(&w);
}

FIBER_TEST(webhook_trusts_whom_it_is_told_to)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct world w;
	struct err err = ERR_INIT;
	struct webhook *hook = NULL;
	w = (struct world){ 0 };
	world_init(&w);
	put_service(&w, "'type':'ClusterIP','clusterIP':'127.0.0.1'");
	struct test_cert other = test_cert_new("other", NULL, NULL);
	hook = open_hook(&w, "", other.cert);
	CHECK_STR(ask(hook, &a, "", 0), "tls: failed to verify certificate: x509: certificate signed by unknown authority");
	webhook_free(hook);
	const struct webhook_options o = { .url = arena_printf(&a, "https://127.0.0.1:%u", w.port),
					   .ca_bundle = str_of(w.authority.cert) };
	CHECK_INT(webhook_new(&w.f.server, &o, &hook, &err), 0);
	CHECK_STR(ask(hook, &a, "", 0), "tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it "
					"doesn't contain any IP SANs");
	webhook_free(hook);
	struct webhook_options named = o;
	named.server_name = STR("hook.t.svc");
	CHECK_INT(webhook_new(&w.f.server, &named, &hook, &err), 0);
	CHECK_STR(ask(hook, &a, "", 0), "{\"a\":1}");
	CHECK_STR(w.path, "/");
	webhook_free(hook);
	named = o;
	named.insecure = true;
	CHECK_INT(webhook_new(&w.f.server, &named, &hook, &err), 0);
	CHECK_STR(ask(hook, &a, "", 0), "{\"a\":1}");
	webhook_free(hook);
	test_cert_done(&other);
	world_done(&w);
}

static int ask_once(void *arg)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	return str_eq(ask(arg, &a, "", 0), STR("{\"a\":1}")) ? 0 : -1;
}

FIBER_TEST(webhook_asks_in_parallel_over_kept_connections)
{
	enum { AT_ONCE = 10, ROUNDS = 3 };
	static struct world w;
	w = (struct world){ 0 };
	world_init(&w);
	put_service(&w, "'type':'ClusterIP','clusterIP':'127.0.0.1'");
	struct webhook *hook = open_hook(&w, "/check", w.authority.cert);
	for (int round = 0; round < ROUNDS; round++) {
		struct fiber *f[AT_ONCE];
		for (size_t i = 0; i < AT_ONCE; i++)
			f[i] = start(ask_once, hook);
		for (size_t i = 0; i < AT_ONCE; i++)
			CHECK_INT(join(f[i]), 0);
	}
	struct http_server_stats stats = http_server_stats(w.http);
	CHECK_INT(stats.requests, AT_ONCE * ROUNDS);
	CHECK(stats.accepted <= AT_ONCE && w.most_at_work > 1);
	webhook_free(hook);
	world_done(&w);
}

FIBER_TEST(webhook_does_not_wait_for_ever)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct world w;
	w = (struct world){ 0 };
	world_init(&w);
	put_service(&w, "'type':'ClusterIP','clusterIP':'127.0.0.1'");
	struct webhook *hook = open_hook(&w, "/slow", w.authority.cert);
	CHECK_STR(ask(hook, &a, "", 50), "context deadline exceeded");
	webhook_free(hook);
	world_done(&w);
}

FIBER_TEST(webhook_answers_have_a_type)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static struct world w;
	struct err err = ERR_INIT;
	struct val answer;
	w = (struct world){ 0 };
	world_init(&w);
	put_service(&w, "'type':'ClusterIP','clusterIP':'127.0.0.1'");
	struct webhook *hook = open_hook(&w, "/check", w.authority.cert);
	struct val question = OBJECT(&a, F(kind, VAL_LIT("TokenReview")), F(apiVersion, VAL_LIT("authentication.k8s.io/v1")),
				     F(spec, OBJECT(&a, F(token, VAL_LIT("t")))));
	CHECK_INT(webhook_ask(hook, &a, TYPE(authentication_v1, TokenReview), question, 0, &answer, &err), 0);
	CHECK_STR(val_str(answer, spec, token), "t");
	CHECK_STR(w.query, "timeout=30s");
	CHECK_INT(webhook_ask(hook, &a, TYPE(authentication_v1, TokenReview), question, 2500, &answer, &err), 0);
	CHECK_STR(w.query, "timeout=2.5s");
	webhook_free(hook);
	world_done(&w);
}
