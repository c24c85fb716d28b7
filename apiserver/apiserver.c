/*
 * Starting and stopping. The order matters: what serves needs what is below it, so the store is opened first and the
 * socket last, and on the way down the other way round: no new requests, those at work finish, watches end, the cache
 * stops following, the store closes.
 */
#include "apiserver/apiserver.h"

#include "apiserver/bootstrap.h"
#include "apiserver/cache.h"
#include "apiserver/documents.h"
#include "apiserver/fairness/fairness.h"
#include "apiserver/hooks.h"
#include "apiserver/authn/jwt.h"
#include "apiserver/kubelet_client.h"
#include "apiserver/metrics.h"
#include "apiserver/pipeline.h"
#include "apiserver/service_ip.h"
#include "apiserver/transformer.h"
#include "apiserver/watch.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "machinery/gates.h"

enum { CERT_CHECK_MS = 10000, STOP_GRACE_MS = 10000 };

/* What runs beside the requests; all of it ends when the server does. */
static int follow_store(void *arg)
{
	struct apiserver *s = arg;
	struct err err = ERR_INIT;
	int r = cache_run(s->cache, &err);
	if (r < 0 && r != -ERR_CANCELED)
		log_error("the cache no longer follows the store", KV("error", &err));
	return r;
}

static int compact_store(void *arg)
{
	struct apiserver *s = arg;
	return s->options.compaction_interval_ms ? store_compact_loop(s->store, s->options.compaction_interval_ms, NULL) : 0;
}

static int watch_certificates(void *arg)
{
	struct apiserver *s = arg;
	struct err err = ERR_INIT;
	while (s->tls && fiber_sleep_ms(CERT_CHECK_MS, NULL) == 0) {
		int r = tls_reload(s->tls, &err);
		if (r > 0)
			log_info("new serving certificate", KV("file", s->options.cert_file));
		else if (r < 0)
			log_warn("the serving certificate cannot be read again; the old one stays", KV("error", &err));
	}
	return 0;
}

static int look_after_authn(void *arg) { return authn_run(arg, NULL); }
static int look_after_authz(void *arg) { return authz_run(arg, NULL); }
static int look_after_fairness(void *arg) { return fairness_run(arg, NULL); }
static int send_audit(void *arg) { return audit_run(arg, NULL); }

static int look_after_cluster(void *arg)
{
	return bootstrap_run(arg, NULL);
}

/* ---- parts, in the order of being made ---- */

bool apiserver_gate(const struct apiserver *s, const char *name)
{
	return !name || gate_is_on(s->options.gates, str_of(name));
}

static void prepare_kinds(struct apiserver *s)
{
	kinds_init(&s->kinds, s->options.served, s->options.served_arg);
	for (size_t i = 0; i < s->kinds.n_kinds; i++) {
		struct kind *k = &s->kinds.kinds[i];
		k->hooks = hooks_of(k);
		if (str_eq(k->resource, STR("events")))
			k->ttl_s = s->options.event_ttl_s;
		if (s->encryption)
			k->transformer = encryption_for(s->encryption, k->group, k->resource);
	}
}

/* "cert,key" or "cert,key:name,name" */
static int add_sni(struct apiserver *s, str text, struct err *err)
{
	enum { NAMES_MAX = 64 };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *names[NAMES_MAX + 1] = { NULL };
	str cert, key, list, name;
	size_t n = 0;
	str_cut(text, ',', &cert, &key);
	str_cut(key, ':', &key, &list);
	while (list.n && n < NAMES_MAX) {
		str_cut(list, ',', &name, &list);
		names[n++] = arena_str(&a, name).p;
	}
	return tls_add_sni(s->tls, arena_str(&a, cert).p, arena_str(&a, key).p, names, err);
}

static int make_tls(struct apiserver *s, struct err *err)
{
	static const char *const alpn[] = { "h2", "http/1.1", NULL };
	const struct apiserver_options *o = &s->options;
	struct tls_options tls = {
		.cert_file = o->cert_file,
		.key_file = o->key_file,
		.ca_file = o->client_ca_file,
		.other_ca_file = o->authn.requestheader_client_ca_file,
		.client_auth = o->client_ca_file || o->authn.requestheader_client_ca_file ? TLS_CLIENT_AUTH_REQUEST :
											     TLS_CLIENT_AUTH_NONE,
		.min_version = o->tls_min_version,
		.cipher_suites = o->tls_cipher_suites,
		.alpn = alpn,
	};
	int r = tls_server_new(&tls, &s->tls, err);
	for (const char *const *p = o->sni_cert_keys; r >= 0 && p && *p; p++)
		r = add_sni(s, str_of(*p), err);
	return r;
}

/* They look at the cache, so it comes first. */
static int open_gates(struct apiserver *s, struct err *err)
{
	int r = authz_new(s, &s->authz, err); /* first: it may decide that strangers are not let in */
	if (r >= 0)
		r = authn_new(s, &s->authn, err);
	if (r >= 0)
		r = admission_new(s, &s->admission, err);
	if (r >= 0)
		r = audit_new(s, &s->audit, err);
	if (r >= 0)
		s->flow = fairness_new(s);
	return r;
}

static int open_parts(struct apiserver *s, struct err *err)
{
	const struct apiserver_options *o = &s->options;
	int r = 0;
	if (o->encryption_config)
		r = encryption_open(o->encryption_config, &s->encryption, err);
	if (r == 0 && o->bind_address)
		r = make_tls(s, err);
	if (r < 0)
		return r;
	prepare_kinds(s);
	s->metrics = metrics_new(&s->kinds);
	r = store_open(&o->store, &s->store, err);
	if (r < 0)
		return err_wrap(err, r, "store");
	s->cache = cache_new(s->store, &s->kinds);
	r = cache_load(s->cache, err);
	if (r < 0)
		return err_wrap(err, r, "reading the store");
	return open_gates(s, err);
}

static int listen_on(struct apiserver *s, struct err *err)
{
	struct http_server_options http = { .tls = s->tls, .handle = pipeline_handle, .arg = s };
	int r = http_server_new(&http, &s->http, err);
	if (r < 0)
		return r;
	return s->options.listen_fd > 0 ? http_server_take(s->http, s->options.listen_fd, &s->port, err) :
					  http_server_listen(s->http, s->options.bind_address, s->options.secure_port, &s->port, err);
}

static void close_parts(struct apiserver *s)
{
	http_server_free(s->http);
	fairness_free(s->flow);
	audit_free(s->audit);
	admission_free(s->admission);
	authz_free(s->authz);
	authn_free(s->authn);
	kubelet_client_free(s->kubelets);
	jwt_signer_free(s->signer);
	documents_free(s->documents);
	cache_free(s->cache);
	store_free(s->store);
	metrics_free(s->metrics);
	kinds_done(&s->kinds);
	encryption_free(s->encryption);
	tls_context_free(s->tls);
	service_ip_free(s->allocators);
	free(s);
}

static int run_http(void *arg)
{
	struct apiserver *s = arg;
	struct fiber_cond never = FIBER_COND_INIT(never, "the end");
	return s->http ? http_server_run(s->http, STOP_GRACE_MS, NULL) : fiber_cond_wait(&never, NULL);
}

/*
 * Serves until the calling fiber is canceled. Then /readyz says so for a while, so that nobody is sent here any more,
 * watches end, and requests at work get their time.
 */
static int serve_http(struct apiserver *s, struct err *err)
{
	CLEANUP(fiber_stopp) struct fiber *http = NULL;
	int result = 0, r = fiber_spawn(run_http, s, &http, err, "http");
	if (r < 0)
		return r;
	r = fiber_join(http, &result, err);
	if (r == 0) {
		http = NULL;
		return result;
	}
	SHIELD_SCOPE();
	s->ready = false;
	s->stopping = true;
	if (s->options.shutdown_delay_ms)
		(void)fiber_sleep_ms(s->options.shutdown_delay_ms, NULL);
	watches_end(s);
	return r;
}

static int serve(struct apiserver *s, void (*on_ready)(struct apiserver *s, void *arg), void *arg, struct err *err)
{
	static int (*const helpers[])(void *) = { follow_store, compact_store, watch_certificates, look_after_cluster,
						 look_after_authn, look_after_authz, look_after_fairness, send_audit };
	static const char *const names[] = { "cache", "compaction", "certificates", "bootstrap", "authentication",
					   "authorization", "fairness", "audit" };
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = fiber_group_spawn(&group, helpers[0], s, err, "%s", names[0]);
	if (r == 0)
		r = bootstrap_make(s, err);
	for (size_t i = 1; i < ARRAY_LEN(helpers) && r == 0; i++)
		r = fiber_group_spawn(&group, helpers[i], s, err, "%s", names[i]);
	if (r == 0 && s->options.bind_address)
		r = listen_on(s, err);
	if (r < 0)
		return r;
	s->ready = true;
	if (on_ready)
		on_ready(s, arg);
	r = serve_http(s, err);
	return r == -ERR_CANCELED ? 0 : r;
}

int apiserver_run(const struct apiserver_options *o, void (*on_ready)(struct apiserver *s, void *arg), void *arg,
		  struct err *err)
{
	struct apiserver *s = mem_zalloc(sizeof *s);
	s->options = *o;
	s->started_wall_ns = clock_wall_ns();
	int r = open_parts(s, err);
	if (r == 0)
		r = serve(s, on_ready, arg, err);
	close_parts(s);
	return r;
}
