/*
 * STAGE_AUTHENTICATE: who asks. The ways are tried one after the other, and the first that says yes wins: a proxy's headers, the
 * client's certificate, then a bearer token, in a header or among the subprotocols of a WebSocket. Credentials that were refused
 * by one may be good for another; but who has shown credentials, and none that is good, is no stranger: that is 401.
 */
#include <openssl/x509.h>

#include "apiserver/audit/audit.h"
#include "apiserver/authn/authn_priv.h"
#include "apiserver/authn/authorities.h"
#include "apiserver/authn/jwt_verify.h"
#include "apiserver/authn/x509.h"
#include "apiserver/local.h"
#include "apiserver/pipeline.h"
#include "apiserver/user.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/websocket.h"

/* ---- the ways ---- */

static int add_way(struct authn *n, const struct authn_way *way, bool any_audience, struct err *err)
{
	if (!way->self)
		return 0;
	if (n->n_links == AUTHN_WAYS_MAX)
		return err_set(err, ERR_INVALID, "there are more than %d ways to authenticate", AUTHN_WAYS_MAX);
	n->links[n->n_links++] = (struct authn_link){ *way, any_audience };
	return 0;
}

/* In Kubernetes' order: local ones first. */
static int add_ways(struct apiserver *s, struct authn *n, struct err *err)
{
	static const struct {
		int (*make)(struct apiserver *s, struct authn_way *ret, struct err *err);
		bool any_audience;
	} table[] = {
		{ authn_token_file_way, true }, { authn_service_account_way, false }, { authn_bootstrap_way, true },
		{ authn_oidc_way, true },       { authn_issuers_way, true },          { authn_webhook_way, false },
	};
	int r = 0;
	for (size_t i = 0; i < ARRAY_LEN(table) && r >= 0; i++) {
		struct authn_way way = { 0 };
		if ((r = table[i].make(s, &way, err)) >= 0)
			r = add_way(n, &way, table[i].any_audience, err);
	}
	return r;
}

/* Those that are named, or the public part of the one that signs. */
static int read_keys(const struct authn_options *o, struct authn *n, struct err *err)
{
	const char *const own[] = { o->service_account_signing_key_file, NULL };
	const char *const *files = o->service_account_key_files;
	bool named = files && *files;
	if (!named && !own[0])
		return 0;
	int r = jwt_keys_from_files(named ? files : own, &n->keys, err);
	return r < 0 ? err_wrap(err, r, "--service-account-%s-file", named ? "key" : "signing-key") : 0;
}

int authn_new(struct apiserver *s, struct authn **ret, struct err *err)
{
	struct authn *n = *ret = mem_zalloc(sizeof *n);
	const struct authn_options *o = &s->options.authn;
	arena_init(&n->arena);
	n->anonymous.enabled = o->anonymous_auth;
	n->audiences = authn_list(&n->arena, o->api_audiences, &n->n_audiences);
	int r = request_header_new(s, &n->proxies, err);
	if (r >= 0 && s->options.client_ca_file &&
	    (r = authorities_open(s->options.client_ca_file, "clients", &n->clients, err)) < 0)
		err_wrap(err, r, "--client-ca-file");
	if (r >= 0)
		r = read_keys(o, n, err);
	return r < 0 ? r : add_ways(s, n, err);
}

void authn_free(struct authn *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n_links; i++)
		if (n->links[i].way.free)
			n->links[i].way.free(n->links[i].way.self);
	request_header_free(n->proxies);
	authorities_free(n->clients);
	jwt_keys_free(n->keys);
	arena_done(&n->arena);
	free(n);
}

int authn_run_way(void *arg)
{
	const struct authn_way *way = arg;
	struct err err = ERR_INIT;
	int r = way->run(way->self, &err);
	if (r < 0 && r != -ERR_CANCELED)
		log_error("a way to authenticate is no longer looked after", KV("way", way->name), KV("error", &err));
	return r;
}

static int run_proxies(void *arg) { return request_header_run(arg, NULL); }
static int run_clients(void *arg) { return authorities_run(arg, NULL); }

int authn_run(struct apiserver *s, struct err *err)
{
	struct authn *n = s->authn;
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = n->proxies ? fiber_group_spawn(&group, run_proxies, n->proxies, err, "proxy authorities") : 0;
	if (r == 0 && n->clients)
		r = fiber_group_spawn(&group, run_clients, n->clients, err, "client authorities");
	for (size_t i = 0; i < n->n_links && r == 0; i++)
		if (n->links[i].way.run)
			r = fiber_group_spawn(&group, authn_run_way, &n->links[i].way, err, "%s", n->links[i].way.name);
	return r < 0 ? r : fiber_group_wait(&group, err);
}

/* ---- tokens ---- */

const str *authn_list(struct arena *a, const char *const *list, size_t *ret_n)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	str *out = ARENA_ARRAY(a, str, n + 1);
	for (size_t i = 0; i < n; i++)
		out[i] = str_of(list[i]);
	*ret_n = n;
	return out;
}

static bool has(const str *list, size_t n, str s)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i], s))
			return true;
	return false;
}

const str *authn_common(struct arena *a, const str *own, size_t n_own, const str *asked, size_t n_asked, size_t *ret_n)
{
	str *common = ARENA_ARRAY(a, str, n_asked + 1);
	*ret_n = 0;
	for (size_t i = 0; i < n_asked; i++)
		if (has(own, n_own, asked[i]))
			common[(*ret_n)++] = asked[i];
	return common;
}

str authn_quoted(struct arena *a, const str *list, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	buf_addc(&b, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_addc(&b, ' ');
		buf_add_quoted(&b, list[i]);
	}
	buf_addc(&b, ']');
	return arena_str(a, buf_str(&b));
}

/* What several said, each once: as it is, or [a, b]. */
struct complaints {
	enum err_code code;
	size_t n;
	str texts[AUTHN_WAYS_MAX];
};

static void complain(struct complaints *c, struct arena *a, const struct err *err)
{
	if (has(c->texts, c->n, err_str(err)) || c->n == ARRAY_LEN(c->texts))
		return;
	c->texts[c->n++] = arena_str(a, err_str(err));
	c->code = err->code;
}

static int complaints_fail(const struct complaints *c, struct err *err)
{
	if (c->n == 1)
		return err_set(err, c->code, STR_FMT, STR_ARG(c->texts[0]));
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	for (size_t i = 0; i < c->n; i++)
		buf_addf(&b, "%s" STR_FMT, i ? ", " : "", STR_ARG(c->texts[i]));
	return err_set(err, ERR_UNAUTHORIZED, "[" STR_FMT "]", STR_ARG(buf_str(&b)));
}

/* One way, with what audiences mean to it. */
static int ask(const struct authn *n, const struct authn_link *link, struct arena *a, str token, const str *audiences,
	       size_t n_audiences, struct authn_identity *ret, struct err *err)
{
	size_t n_common = 0;
	const str *common = NULL;
	*ret = (struct authn_identity){ 0 };
	if (link->any_audience) {
		common = authn_common(a, n->audiences, n->n_audiences, audiences, n_audiences, &n_common);
		if (!n_common)
			return 0;
	}
	int r = link->way.token(link->way.self, a, token, audiences, n_audiences, ret, err);
	if (r > 0 && link->any_audience) {
		ret->audiences = common;
		ret->n_audiences = n_common;
	}
	return r;
}

int authn_token(struct apiserver *s, struct arena *a, str token, const str *audiences, size_t n_audiences,
		struct authn_identity *ret, struct err *err)
{
	const struct authn *n = s->authn;
	struct complaints c = { .n = 0 };
	struct val annotations = VAL_EMPTY;
	if (!n_audiences) {
		audiences = n->audiences;
		n_audiences = n->n_audiences;
	}
	for (size_t i = 0; i < n->n_links; i++) {
		struct err one = ERR_INIT;
		int r = ask(n, &n->links[i], a, token, audiences, n_audiences, ret, &one);
		VAL_EACH_MEMBER(m, ret->annotations)
			annotations = val_put(a, annotations, m->key, m->val);
		ret->annotations = annotations;
		if (r > 0 || r == -ERR_CANCELED)
			return r;
		if (r < 0)
			complain(&c, a, &one);
	}
	return c.n ? complaints_fail(&c, err) : 0;
}

str authn_bearer(str header, bool *ret_spaced)
{
	static const char bearer[] = "bearer";
	str scheme, token, rest;
	*ret_spaced = false;
	str_cut(str_trim(header), ' ', &scheme, &token);
	if (scheme.n != sizeof bearer - 1)
		return STR_NONE;
	for (size_t i = 0; i < scheme.n; i++)
		if ((scheme.p[i] | 0x20) != bearer[i])
			return STR_NONE;
	*ret_spaced = token.n && token.p[0] == ' ';
	str_cut(token, ' ', &token, &rest);
	return token;
}

/* ---- certificates ---- */

/* What a connection's certificate says about its user: the same for all its requests. */
struct certified {
	struct arena arena;
	struct user user;
	int user_result, proxy_result;
	struct err user_error, proxy_error;
	int64_t checked_ns;
	unsigned generation;          /* of those whom users and proxies are certified by */
};

/* Certificates expire while connections live, so once in a while they are looked at again. */
enum { CHECK_AGAIN_S = 60 };

static void certified_free(void *memo)
{
	struct certified *c = memo;
	arena_done(&c->arena);
	free(c);
}

/* TLS has looked at the certificate once; the authorities may be others since, also before the first request. */
static bool is_disowned(const struct authn *n, const struct http_peer *peer)
{
	return n->clients && authorities_check(n->clients, peer->certificate, peer->chain) != X509_V_OK;
}

static void certify(const struct authn *n, struct http_peer *peer, struct certified *c)
{
	/* the arena grows by a name a minute: requests at work may still have the old one */
	if (peer->verify_result == X509_V_OK)
		c->user_result = authn_x509_user(peer->certificate, &c->arena, &c->user, &c->user_error);
	else
		c->user_result = err_set(&c->user_error, ERR_UNAUTHORIZED, "verifying the certificate failed: %s",
					 X509_verify_cert_error_string(peer->verify_result));
	if (c->user_result > 0 && is_disowned(n, peer))
		c->user_result = err_set(&c->user_error, ERR_UNAUTHORIZED, "x509: certificate signed by unknown authority");
	if (c->user_result > 0)
		authn_add_authenticated(&c->arena, &c->user);
	if (n->proxies)
		c->proxy_result = request_header_check(n->proxies, peer->certificate, peer->chain, &c->proxy_error);
}

static const struct certified *certified_of(const struct authn *n, struct http_peer *peer)
{
	struct certified *c = peer->memo;
	int64_t now = clock_now_ns();
	unsigned generation = (n->proxies ? request_header_generation(n->proxies) : 0) +
		(n->clients ? authorities_generation(n->clients) : 0);
	if (c && now - c->checked_ns < CHECK_AGAIN_S * NS_PER_S && c->generation == generation)
		return c;
	if (!c) {
		c = mem_zalloc(sizeof *c);
		arena_init(&c->arena);
		peer->memo = c;
		peer->memo_free = certified_free;
	}
	certify(n, peer, c);
	c->checked_ns = now;
	c->generation = generation;
	return c;
}

/* ---- the stage ---- */

void user_add_group(struct arena *a, struct user *u, str group)
{
	if (has(u->groups, u->n_groups, group))
		return;
	str *groups = ARENA_ARRAY(a, str, u->n_groups + 1);
	for (size_t i = 0; i < u->n_groups; i++)
		groups[i] = u->groups[i];
	groups[u->n_groups++] = group;
	u->groups = groups;
}

void authn_add_authenticated(struct arena *a, struct user *u)
{
	if (!str_eq(u->name, STR("system:anonymous")) && !user_in_group(u, STR("system:unauthenticated")))
		user_add_group(a, u, STR("system:authenticated"));
}

/* One try to find out who asks: 1: that is known (q->user), 0: nothing was shown, < 0: it is not good. */
static int by_proxy(struct request *q, struct err *err)
{
	const struct authn *n = q->server->authn;
	if (!n->proxies || !q->http->peer->certificate)
		return 0;
	const struct certified *c = certified_of(n, q->http->peer);
	if (c->proxy_result < 0) {
		*err = c->proxy_error;
		return c->proxy_result;
	}
	if (!request_header_user(n->proxies, q, &q->user))
		return 0;
	authn_add_authenticated(q->arena, &q->user);
	return 1;
}

/* The same process says who it is. */
static int by_process(struct request *q, struct err *err)
{
	(void)err;
	if (!q->local)
		return 0;
	q->user = *q->local->user;
	authn_add_authenticated(q->arena, &q->user);
	return 1;
}

static int by_certificate(struct request *q, struct err *err)
{
	if (!q->http->peer->certificate || !q->server->options.client_ca_file)
		return 0;
	const struct certified *c = certified_of(q->server->authn, q->http->peer);
	if (c->user_result < 0)
		*err = c->user_error;
	else
		q->user = c->user;
	return c->user_result;
}

static int take_token(struct request *q, str token, struct err *err)
{
	struct authn_identity who = { 0 };
	int r = authn_token(q->server, q->arena, token, NULL, 0, &who, err);
	VAL_EACH_MEMBER(m, who.annotations)
		audit_annotate(q, atom_str(m->key), val_as_str(m->val));
	if (r == 0)
		return err_set(err, ERR_UNAUTHORIZED, "invalid bearer token");
	if (r < 0)
		return r;
	if (who.warning.n)
		request_warn(q, who.warning);
	q->user = who.user;
	authn_add_authenticated(q->arena, &q->user);
	return 1;
}

static int by_bearer(struct request *q, struct err *err)
{
	bool spaced;
	str token = authn_bearer(http_request_header(q->http, STR("authorization")), &spaced);
	if (spaced)
		request_warn(q, STR("the provided Authorization header contains extra space before the bearer token, "
				    "and is ignored"));
	return token.n ? take_token(q, token, err) : 0;
}

static const str protocol_prefix = STR_INIT("base64url.bearer.authorization.k8s.io.");

/* Browsers cannot send headers with a WebSocket, but they can name subprotocols. */
static int by_protocol(struct request *q, struct err *err)
{
	str token = STR_NONE;
	bool seen = false, others = false;
	if (!ws_is_upgrade(q->http->headers, q->http->n_headers))
		return 0;
	for (size_t i = 0; i < q->http->n_headers; i++) {
		str list = q->http->headers[i].value, one;
		if (!str_eq(q->http->headers[i].name, STR("sec-websocket-protocol")))
			continue;
		for (bool more = true; more;) {
			more = str_cut(list, ',', &one, &list);
			one = str_trim(one);
			if (!str_starts(one, protocol_prefix)) {
				others = true;
				continue;
			}
			if (seen)
				return err_set(err, ERR_UNAUTHORIZED, "multiple base64.bearer.authorization tokens specified");
			seen = true;
			one = str_skip(one, protocol_prefix.n);
			char *room = arena_alloc(q->arena, base64_decoded_max(one.n) + 1, 1);
			size_t n;
			if (base64url_decode(room, one, &n, NULL) < 0)
				return err_set(err, ERR_UNAUTHORIZED, "invalid base64.bearer.authorization token encoding");
			token = str_span(room, n);
		}
	}
	if (!str_is_utf8(token))
		return err_set(err, ERR_UNAUTHORIZED, "invalid base64.bearer.authorization token");
	if (token.n && !others)
		return err_set(err, ERR_UNAUTHORIZED, "missing additional subprotocol");
	return token.n ? take_token(q, token, err) : 0;
}

/* The protocols of a WebSocket without the one that was a credential. */
static str other_protocols(struct request *q, str list)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	str one;
	for (bool more = true; more;) {
		more = str_cut(list, ',', &one, &list);
		one = str_trim(one);
		if (!str_starts(one, protocol_prefix))
			buf_addf(&b, "%s" STR_FMT, b.n ? "," : "", STR_ARG(one));
	}
	return arena_str(q->arena, buf_str(&b));
}

/* From here on nobody needs credentials, so that nobody can pass them on to pods and other servers. */
static void strip_credentials(struct request *q)
{
	const struct request_header *proxies = q->server->authn->proxies;
	struct http_header *headers = ARENA_ARRAY(q->arena, struct http_header, q->http->n_headers + 1);
	size_t n = 0;
	for (size_t i = 0; i < q->http->n_headers; i++) {
		struct http_header h = q->http->headers[i];
		if (str_eq(h.name, STR("authorization")) || request_header_is(proxies, h.name))
			continue;
		if (str_eq(h.name, STR("sec-websocket-protocol")) && str_find(h.value, protocol_prefix) >= 0)
			h.value = other_protocols(q, h.value);
		headers[n++] = h;
	}
	q->http->headers = headers;
	q->http->n_headers = n;
}

/* Strangers may be let in, or to some paths only. */
static bool admit_stranger(struct request *q)
{
	static const str unauthenticated = STR_INIT("system:unauthenticated");
	const struct authn_anonymous *any = &q->server->authn->anonymous;
	if (!any->enabled || (any->n_paths && !has(any->paths, any->n_paths, q->path)))
		return false;
	q->user = (struct user){ .name = STR("system:anonymous"), .groups = &unauthenticated, .n_groups = 1 };
	return true;
}

int stage_authenticate(struct request *q, struct err *err)
{
	static int (*const tries[])(struct request *q, struct err *err) = {
		by_process, by_proxy, by_certificate, by_bearer, by_protocol,
	};
	struct err why = ERR_INIT;
	bool refused = false;
	(void)err;
	for (size_t i = 0; i < ARRAY_LEN(tries) && !q->authenticated; i++) {
		struct err one = ERR_INIT;
		int r = tries[i](q, &one);
		if (r == -ERR_CANCELED)
			return r;
		q->authenticated = r > 0;
		if (r < 0) {
			refused = true;
			why = one;
		}
	}
	bool known = q->authenticated || (!refused && admit_stranger(q));
	authn_count(q->server->authn, known ? AUTHN_SUCCESS : refused ? AUTHN_ERROR : AUTHN_FAILURE, q->user.name);
	if (!known) {
		log_debug("unable to authenticate a request", KV("error", &why), KV("peer", q->http->peer->address));
		return request_fail(q, ERR_UNAUTHORIZED, VAL_EMPTY, "Unauthorized");
	}
	strip_credentials(q);
	return STAGE_NEXT;
}
