#include "cmd/component_server.h"

#include <openssl/evp.h>
#include <strings.h>

#include "apiserver/authn/x509.h"
#include "apiserver/pki_priv.h"
#include "base/fiber.h"
#include "base/log.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/certificates_priv.h"
#include "net/tls.h"

enum { REVIEW_MS = 10000, BODY_MAX = 64 << 20, PEM_MAX = 1 << 20, GRACE_MS = 5000, LOOK_MS = 60000, LOOK_SOON_MS = 5000 };

/* ---- who asks ---- */

static str bearer_token(const struct http_exchange *x)
{
	str header = str_trim(http_request_header(x, STR("authorization"))), scheme, token;

	(void)str_cut(header, ' ', &scheme, &token);
	return scheme.n == 6 && strncasecmp(scheme.p, "bearer", 6) == 0 ? str_trim(token) : STR_NONE;
}

/* UserInfo with its groups; VAL_NONE: a credential that is no good. */
static struct val token_user(struct component_server *s, struct arena *a, str token, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	DEADLINE_SCOPE(REVIEW_MS);

	if (client_create(s->client, TYPE(authentication_v1, TokenReview), OBJECT(a, F(spec, OBJECT(a, F(token, VAL_STR(token))))), NULL, &answer, err) < 0)
		return VAL_EMPTY;
	if (!val_bool(answer->val, status, authenticated))
		return VAL_EMPTY;
	return val_copy(a, val_get(answer->val, status, user));
}

static struct val certificate_user(struct arena *a, const struct http_peer *peer, struct err *err)
{
	struct val_builder groups = val_builder(a);
	struct user u = { 0 };

	if (authn_x509_user(peer->certificate, a, &u, err) <= 0)
		return VAL_EMPTY;
	for (size_t i = 0; i < u.n_groups; i++)
		val_add_item(&groups, VAL_STR(u.groups[i]));
	val_add_item(&groups, VAL_LIT("system:authenticated"));
	return OBJECT(a, F(username, VAL_STR(u.name)), F(groups, val_end_list(&groups)));
}

static struct val find_user(struct component_server *s, struct http_exchange *x, struct err *err)
{
	str token = bearer_token(x);

	if (x->peer && x->peer->certificate && s->trusts && x->peer->verify_result == 0)
		return certificate_user(x->arena, x->peer, err);
	if (token.n)
		return token_user(s, x->arena, token, err);
	return OBJECT(x->arena, F(username, VAL_LIT("system:anonymous")), F(groups, LIST(x->arena, VAL_LIT("system:unauthenticated"))));
}

/* ---- what they may ---- */

static bool is_open(const struct component_server *s, str path)
{
	for (const char *const *p = s->flags->always_allow_paths; *p; p++) {
		str rule = str_of(*p);
		if (str_ends(rule, STR("*")) ? str_starts(path, str_head(rule, rule.n - 1)) : str_eq(path, rule))
			return true;
	}
	return false;
}

static bool is_master(struct val user)
{
	VAL_EACH(g, val_get(user, groups))
		if (str_eq(val_as_str(*g), STR("system:masters")))
			return true;
	return false;
}

static int may(struct component_server *s, struct http_exchange *x, struct val user, bool *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	struct arena *a = x->arena;
	bool get = str_eq(x->method, STR("GET"));
	struct val what = OBJECT(a, F(path, VAL_STR(x->path)), F(verb, get ? VAL_LIT("get") : VAL_LIT("post")));
	struct val spec = OBJECT(a, F(nonResourceAttributes, what), F(user, val_get(user, username)), F(groups, val_get(user, groups)));
	DEADLINE_SCOPE(REVIEW_MS);
	int r = client_create(s->client, TYPE(authorization_v1, SubjectAccessReview), OBJECT(a, F(spec, spec)), NULL, &answer, err);

	if (r == 0)
		*ret = val_bool(answer->val, status, allowed);
	return r;
}

static void answer_status(struct http_exchange *x, int status, const char *reason, str message)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	const struct http_header type = { STR("content-type"), STR("application/json") };

	buf_add(&b, STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"));
	json_quote(&b, message, false);
	buf_addf(&b, ",\"reason\":\"%s\",\"details\":{},\"code\":%d}", reason, status);
	http_answer(x, status, &type, 1, buf_str(&b));
}

/* True: go on; else the answer has been given. */
static bool is_allowed(struct component_server *s, struct http_exchange *x)
{
	struct err err = ERR_INIT;
	bool allowed = false;

	if (is_open(s, x->path))
		return true;
	struct val user = find_user(s, x, &err);
	if (!val_exists(user)) {
		answer_status(x, 401, "Unauthorized", STR("Unauthorized"));
		return false;
	}
	if (is_master(user))
		return true;
	if (may(s, x, user, &allowed, &err) < 0) {
		answer_status(x, 500, "InternalError", arena_printf(x->arena, "Internal Server Error: \"" STR_FMT "\": %s", STR_ARG(x->path), err.msg));
		return false;
	}
	if (!allowed)
		answer_status(x, 403, "Forbidden", arena_printf(x->arena, "forbidden: User \"" STR_FMT "\" cannot get path \"" STR_FMT "\"",
							      STR_ARG(val_str(user, username)), STR_ARG(x->path)));
	return allowed;
}

/* ---- answers ---- */

static void answer_text(struct http_exchange *x, int status, const char *type, str body)
{
	const struct http_header headers[] = { { STR("content-type"), str_of(type) }, { STR("x-content-type-options"), STR("nosniff") } };

	http_answer(x, status, headers, ARRAY_LEN(headers), body);
}

static bool is_verbose(str query) { return str_eq(query, STR("verbose")) || str_starts(query, STR("verbose=")) || str_starts(query, STR("verbose&")); }

static void answer_health(struct component_server *s, struct http_exchange *x, const char *which)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	bool ready = strcmp(which, "readyz") == 0, good = true;

	buf_add(&b, STR("[+]ping ok\n"));
	for (const struct component_check *c = s->checks; c && c->name; c++) {
		const char *wrong = c->ready_only && !ready ? NULL : c->check(s->arg);
		if (c->ready_only && !ready)
			continue;
		buf_addf(&b, wrong ? "[-]%s failed: reason withheld\n" : "[+]%s ok\n", c->name);
		good &= !wrong;
	}
	buf_addf(&b, "%s check %s\n", which, good ? "passed" : "failed");
	if (good && !is_verbose(x->query))
		answer_text(x, 200, "text/plain; charset=utf-8", STR("ok"));
	else
		answer_text(x, good ? 200 : 500, "text/plain; charset=utf-8", buf_str(&b));
}

static int answer_config(struct component_server *s, struct http_exchange *x)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(BODY_MAX);
	struct err err = ERR_INIT;

	buf_addf(&b, "{\"%s\":", s->config_name);
	if (json_encode(&b, s->config(s->arg), &(struct json_encode_options){ .type = s->config_type }, &err) < 0)
		return -(int)err.code;
	buf_addc(&b, '}');
	answer_text(x, 200, "application/json", buf_str(&b));
	return 0;
}

static int handle(struct http_exchange *x, void *arg)
{
	static const char *const health[] = { "healthz", "livez", "readyz" };
	CLEANUP(buf_done) struct buf out = BUF_INIT(BODY_MAX);
	struct component_server *s = arg;
	int status = 0;

	if (!is_allowed(s, x))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(health); i++)
		if (x->path.n && str_eq(str_skip(x->path, 1), str_of(health[i]))) {
			answer_health(s, x, health[i]);
			return 0;
		}
	if (str_eq(x->path, STR("/metrics")) && s->metrics) {
		s->metrics(s->arg, &out);
		answer_text(x, 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", buf_str(&out));
		return 0;
	}
	if (str_eq(x->path, STR("/configz")) && s->config)
		return answer_config(s, x);
	if (s->other)
		status = s->other(s->arg, x, &out);
	if (status)
		answer_text(x, status, status == 200 ? "application/json" : "text/plain; charset=utf-8", buf_str(&out));
	else
		answer_text(x, 404, "text/plain; charset=utf-8", STR("404 page not found\n"));
	return 0;
}

/* ---- certificates ---- */

/* (suspends) Whose client certificates the API server trusts: a ConfigMap that it keeps. Empty: nobody says. */
static int ask_authority(struct component_server *s, struct buf *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *map = NULL;
	DEADLINE_SCOPE(REVIEW_MS);
	int r = client_get(s->client, TYPE(core_v1, ConfigMap), STR("kube-system"), STR("extension-apiserver-authentication"), &map, err);

	if (r == 0)
		buf_add(ret, val_as_str(val_find(val_get(map->val, data), STR("client-ca-file"))));
	return r;
}

static int lookup_authority(struct component_server *s, struct buf *ret, struct err *err)
{
	int r = ask_authority(s, ret, err);

	if (r == 0 || r == -ERR_CANCELED)
		return r;
	if (!s->flags->tolerate_lookup_failure)
		return err_wrap(err, r, "unable to load configmap based request-header-client-ca-file");
	log_warn("Unable to get configmap/extension-apiserver-authentication in kube-system.  Client certificates are not trusted yet", KV("err", err));
	err_clear(err);
	return 0;
}

/* In memory, for this run. */
static int make_certificate(struct buf *cert, struct buf *key, struct err *err)
{
	EVP_PKEY *own = NULL;
	int r = self_signed_make(STR("localhost"), cert, &own, err);

	if (r >= 0)
		r = key_pem(own, key, err);
	EVP_PKEY_free(own);
	return r;
}

static const char *join(struct arena *a, const char *const *list)
{
	str all = STR("");

	for (; list && *list; list++)
		all = arena_printf(a, STR_FMT "%s%s", STR_ARG(all), all.n ? "," : "", *list);
	return all.n ? all.p : NULL;
}

static const char *given(const char *text) { return text && text[0] ? text : NULL; }

/* Whether the API server says whom to trust. */
static bool asks_for_authority(const struct component_server *s) { return !given(s->flags->client_ca_file) && !s->flags->skip_lookup; }

/* ca: gets the authority that was asked for. */
static int make_tls(struct component_server *s, struct buf *ca, struct tls_context **ret, struct err *err)
{
	static const char *const alpn[] = { "h2", "http/1.1", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf cert = BUF_INIT(PEM_MAX), key = BUF_INIT(PEM_MAX);
	const struct component_server_flags *f = s->flags;
	struct tls_options o = { .cert_file = given(f->tls_cert_file), .key_file = given(f->tls_private_key_file), .ca_file = given(f->client_ca_file),
				 .client_auth = TLS_CLIENT_AUTH_REQUEST, .min_version = given(f->tls_min_version),
				 .cipher_suites = join(&a, f->tls_cipher_suites), .alpn = alpn };
	int r;

	if (!o.cert_file && given(f->cert_dir)) {
		o.cert_file = arena_printf(&a, "%s/%s.crt", f->cert_dir, s->name).p;
		o.key_file = arena_printf(&a, "%s/%s.key", f->cert_dir, s->name).p;
		if ((r = self_signed_ensure(o.cert_file, o.key_file, STR("localhost"), err)) < 0)
			return r;
	} else if (!o.cert_file) {
		if ((r = make_certificate(&cert, &key, err)) < 0)
			return err_wrap(err, r, "error creating self-signed certificates");
		o.cert_pem = cert.p;
		o.key_pem = key.p;
	}
	if (asks_for_authority(s) && (r = lookup_authority(s, ca, err)) < 0)
		return r;
	if (ca->n)
		o.ca_pem = ca->p;
	s->trusts = o.ca_file || o.ca_pem;
	return tls_server_new(&o, ret, err);
}

/* ---- serving ---- */

/* Reviews by another identity, where flags name one; --authorization-kubeconfig and --authentication-kubeconfig are mostly the same file. */
static int open_client(struct component_server *s, struct client **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *path = given(s->flags->authorization_kubeconfig) ? s->flags->authorization_kubeconfig : s->flags->authentication_kubeconfig;
	struct client_config config;
	int r;

	if (!given(path))
		return 0;
	if ((r = kubeconfig_open(&a, path, &config, err)) < 0)
		return r;
	return client_open(&config, ret, err);
}

static int listen_and_run(struct component_server *s, struct tls_context *tls, struct err *err)
{
	struct http_server *server = NULL;
	uint16_t port = 0;
	int r = http_server_new(&(struct http_server_options){ .tls = tls, .handle = handle, .arg = s }, &server, err);

	if (r < 0)
		return r;
	if ((r = http_server_listen(server, s->flags->bind_address, (uint16_t)s->flags->secure_port, &port, err)) >= 0) {
		log_info("Serving securely", KV("address", s->flags->bind_address), KV("port", (int)port));
		r = http_server_run(server, GRACE_MS, err);
	} else {
		r = err_wrap(err, r, "failed to create listener: failed to listen on %s:%d", s->flags->bind_address, (int)s->flags->secure_port);
	}
	http_server_free(server);
	return r;
}

struct port {
	struct component_server *server;
	struct tls_context *tls;
	bool ended;
	struct fiber_cond end;
	int result;
	struct err err;
};

static int port_main(void *arg)
{
	struct port *p = arg;

	p->result = listen_and_run(p->server, p->tls, &p->err);
	p->ended = true;
	fiber_cond_broadcast(&p->end);
	return p->result;
}

/* (suspends) 1: the API server says by now, or says something else than `used`. It need not have been there when we began. */
static int serve_by_authority(struct component_server *s, struct tls_context *tls, str used, struct err *err)
{
	struct port p = { .server = s, .tls = tls };
	CLEANUP(fiber_stopp) struct fiber *port = NULL;
	int r;

	fiber_cond_init(&p.end, "the end of a port");
	if ((r = fiber_spawn(port_main, &p, &port, err, "%s's connections", s->name)) < 0)
		return r;
	for (;;) {
		CLEANUP(buf_done) struct buf now = BUF_INIT(PEM_MAX);
		if (!p.ended) {
			DEADLINE_SCOPE(used.n ? LOOK_MS : LOOK_SOON_MS);
			(void)fiber_cond_wait(&p.end, NULL);
		}
		if (p.ended) {
			*err = p.err;
			return p.result;
		}
		if ((r = fiber_check(err)) < 0)
			return r;
		if (ask_authority(s, &now, NULL) == 0 && now.n && !str_eq(buf_str(&now), used))
			return 1;
	}
}

static int serve_once(struct component_server *s, struct err *err)
{
	CLEANUP(buf_done) struct buf ca = BUF_INIT(PEM_MAX);
	struct tls_context *tls = NULL;
	int r = make_tls(s, &ca, &tls, err);

	if (r == 0)
		r = asks_for_authority(s) ? serve_by_authority(s, tls, buf_str(&ca), err) : listen_and_run(s, tls, err);
	tls_context_free(tls);
	return r;
}

int component_serve(struct component_server *s, struct err *err)
{
	CLEANUP(client_freep) struct client *own = NULL;
	int r;

	if (!s->flags->secure_port) {
		while ((r = fiber_sleep_ms(INT64_C(3600) * 1000, err)) == 0)
			;
		return r;
	}
	if ((r = open_client(s, &own, err)) < 0)
		return r;
	if (own)
		s->client = own;
	do
		r = serve_once(s, err);
	while (r > 0);
	return r;
}
