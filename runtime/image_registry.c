/*
 * Authorization is a header kept per host. It is asked for when a host answers 401, once per request: a second 401 is the answer.
 * It goes to that host alone: a redirect to another place (storage behind the registry) is followed without it.
 *
 * Who hands out tokens is often another server than the registry. Credentials go there, so what hosts.toml says of that server counts
 * (skip_verify, client certificates), not what it says of the registry; only authorities that the registry may be signed by are
 * trusted there too, because those who run both with an authority of their own mostly name it once.
 */
#include "runtime/image_registry.h"

#include <errno.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "net/http_proxy.h"
#include "net/url.h"
#include "runtime/image_auth.h"

enum {
	TRIES = 4,                  /* of a request, with pauses of PAUSE_MS, twice that, ... */
	PAUSE_MS = 250,
	PAUSE_MAX_MS = 10000,
	REDIRECTS = 10,
	HEAD_TIMEOUT_MS = 60000,
	TOKEN_MAX = 1 << 20,
	CA_MAX = 16 << 20,
	ERROR_BODY_MAX = 64 << 10,
	REALMS_MAX = 8,             /* servers that hand out tokens, in one conversation */
};

#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

struct live_host {
	struct registry_host host;
	struct tls_context *tls;
	struct http_client *client;
	str authorization;          /* "Bearer ..."; empty: none */
};

struct registry {
	struct images *images;
	const struct image_ref *ref;
	const struct image_auth *auth; /* NULL: what the files say */
	bool push;
	struct arena arena;
	struct live_host *hosts;
	size_t n;
	struct live_host realms[REALMS_MAX];
	size_t n_realms;
};

/* ---- opening ---- */

/* Whom to trust: the system's and the ones given. */
static int read_ca(const struct registry_host *h, struct buf *b, struct err *err)
{
	int r = file_read(SYSTEM_CA, b, NULL);
	(void)r; /* a machine without any trusts only those given */
	for (size_t i = 0; i < h->n_ca; i++) {
		buf_addc(b, '\n');
		if ((r = file_read(h->ca_files[i], b, err)) < 0)
			return err_wrap(err, r, "unable to read CA cert");
	}
	return 0;
}

static int open_host(struct live_host *l, struct err *err)
{
	const struct registry_host *h = &l->host;
	CLEANUP(buf_done) struct buf ca = BUF_INIT(CA_MAX);
	int r = h->n_ca ? read_ca(h, &ca, err) : 0;
	if (r < 0)
		return r;
	struct tls_options o = { .ca_pem = ca.n ? ca.p : NULL, .cert_file = h->cert_file, .key_file = h->key_file,
				 .insecure_skip_verify = h->skip_verify };
	if ((r = tls_client_new(&o, &l->tls, err)) < 0)
		return err_wrap(err, r, "registry " STR_FMT, STR_ARG(h->authority));
	l->client = http_client_new(&(struct http_client_options){
		.tls = l->tls, .max_idle_per_host = 4, .head_timeout_ms = HEAD_TIMEOUT_MS, .dial_timeout_ms = h->dial_timeout_ms });
	return 0;
}

static void close_host(struct live_host *l)
{
	http_client_free(l->client);
	tls_context_free(l->tls);
}

int registry_open(struct images *m, const struct image_ref *ref, const struct image_auth *auth, bool push, struct registry **ret,
		  struct err *err)
{
	CLEANUP(registry_freep) struct registry *g = mem_zalloc(sizeof(*g));
	struct registry_host *hosts;
	size_t n;

	g->images = m;
	g->ref = ref;
	g->auth = auth && (auth->user.n || auth->identity_token.n || auth->registry_token.n) ? auth : NULL;
	g->push = push;
	arena_init(&g->arena);
	int r = registry_hosts_find(&g->arena, m->registry_config, m->plain_http, ref->domain, &hosts, &n, err);
	if (r < 0)
		return r;
	g->hosts = arena_zero_of(&g->arena, n * sizeof(*g->hosts), _Alignof(struct live_host));
	for (; r == 0 && g->n < n; g->n++) {
		g->hosts[g->n].host = hosts[g->n];
		r = open_host(&g->hosts[g->n], err);
	}
	if (r < 0)
		return r;
	*ret = TAKE(g);
	return 0;
}

void registry_free(struct registry *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n; i++)
		close_host(&g->hosts[i]);
	for (size_t i = 0; i < g->n_realms; i++)
		close_host(&g->realms[i]);
	arena_done(&g->arena);
	free(g);
}

void registry_freep(struct registry **g) { registry_free(*g); }
struct arena *registry_arena(struct registry *g) { return &g->arena; }
struct registry_host *registry_host(struct registry *g, size_t i) { return i < g->n ? &g->hosts[i].host : NULL; }

/* ---- tokens ---- */

static int unexpected(struct err *err, enum err_code code, str method, str url, int status)
{
	return err_set(err, code, "unexpected status from " STR_FMT " request to " STR_FMT ": %d %s", STR_ARG(method),
		       STR_ARG(str_head(url, 200)), status, http1_reason(status));
}

static str basic_header(struct arena *a, const struct image_auth *auth)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	str pair = arena_printf(a, STR_FMT ":" STR_FMT, STR_ARG(auth->user), STR_ARG(auth->password));
	buf_add(&b, STR("Basic "));
	base64_encode_buf(&b, pair);
	return arena_str(a, buf_str(&b));
}

/* What was given is for the registry itself; a mirror has its own in the files. */
static int credentials(struct registry *g, const struct registry_host *h, struct image_auth *ret, struct err *err)
{
	if (g->auth && !h->mirror) {
		*ret = *g->auth;
		return 0;
	}
	return auth_find(&g->arena, g->images->credential_files, h->mirror ? h->authority : g->ref->domain, g->ref->path, ret, err);
}

/* Who hands out tokens: the registry itself, or another server with rules of its own. */
static int realm_client(struct registry *g, struct live_host *l, const struct url *realm, struct http_client **ret, struct err *err)
{
	struct registry_host *hosts;
	size_t n;
	*ret = l->client;
	if (!str_eq(realm->scheme, STR("https")) || http1_eq_nocase(realm->authority, l->host.authority))
		return 0;
	for (size_t i = 0; i < g->n_realms; i++) {
		*ret = g->realms[i].client;
		if (http1_eq_nocase(g->realms[i].host.authority, realm->authority))
			return 0;
	}
	if (g->n_realms == REALMS_MAX)
		return err_set(err, ERR_UNAUTHORIZED, "the registry names more than %d servers for tokens", REALMS_MAX);
	int r = registry_hosts_find(&g->arena, g->images->registry_config, false, realm->authority, &hosts, &n, err);
	if (r < 0)
		return r;
	struct live_host other = { .host = hosts[n - 1] };
	other.host.authority = realm->authority;
	for (size_t i = 0; i < l->host.n_ca && other.host.n_ca < REGISTRY_CA_MAX; i++)
		other.host.ca_files[other.host.n_ca++] = l->host.ca_files[i];
	if ((r = open_host(&other, err)) < 0) {
		close_host(&other);
		return r;
	}
	*ret = other.client;
	g->realms[g->n_realms++] = other;
	return 0;
}

/* Opens a call, through a proxy where the environment says so. */
static int open_call(struct registry *g, struct http_client *client, struct http_request *q, struct http_call **ret, struct err *err)
{
	struct http_proxy *proxy = ARENA_NEW(&g->arena, struct http_proxy);
	struct url u;
	int r = url_parse(&g->arena, q->url, &u, err);
	if (r < 0 || (r = http_proxy_find(&g->arena, &u, proxy, err)) < 0)
		return r;
	q->proxy = r > 0 ? proxy : NULL;
	return http_call_open(client, q, ret, err);
}

/* A secret goes over TLS, or stays on this machine, or goes where the registry itself is spoken to in the clear. */
static bool realm_is_safe(const struct registry_host *h, const struct url *realm)
{
	return str_eq(realm->scheme, STR("https")) || str_eq(h->scheme, STR("http")) || registry_is_local(realm->authority);
}

static void make_token_request(struct registry *g, const struct auth_challenge *c, const struct image_auth *auth,
			       struct http_request *q, struct http_header *header)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	struct arena *a = &g->arena;
	str scope = c->scope.n ? c->scope : arena_printf(a, "repository:" STR_FMT ":%s", STR_ARG(g->ref->path), g->push ? "pull,push" : "pull");
	if (c->service.n)
		url_query_add(&b, STR("service"), c->service);
	/* several, when content is taken over from another repository: in a query each has its own word */
	for (str rest = scope, one; rest.n;) {
		if (auth->identity_token.n)
			one = rest, rest = STR_NONE;
		else
			str_cut(rest, ' ', &one, &rest);
		url_query_add(&b, STR("scope"), one);
	}
	*q = (struct http_request){ .method = STR("GET"), .url = c->realm, .headers = header };
	if (auth->identity_token.n) {
		url_query_add(&b, STR("client_id"), STR("c8s"));
		url_query_add(&b, STR("grant_type"), STR("refresh_token"));
		url_query_add(&b, STR("refresh_token"), auth->identity_token);
		*header = (struct http_header){ STR("content-type"), STR("application/x-www-form-urlencoded; charset=utf-8") };
		q->method = STR("POST");
		q->n_headers = 1;
		q->body = arena_str(a, buf_str(&b));
		return;
	}
	if (auth->user.n) {
		*header = (struct http_header){ STR("authorization"), basic_header(a, auth) };
		q->n_headers = 1;
	}
	q->url = arena_printf(a, STR_FMT "%c" STR_FMT, STR_ARG(c->realm), str_chr(c->realm, '?') < 0 ? '?' : '&', STR_ARG(buf_str(&b)));
}

/* (suspends) */
static int fetch_token(struct registry *g, struct live_host *l, const struct auth_challenge *c, const struct image_auth *auth,
		       struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http1_head *head;
	struct http_header header;
	struct http_client *client;
	struct http_request q;
	struct url realm;
	struct val v;
	str body;
	int r = url_parse(&g->arena, c->realm, &realm, err);
	if (r < 0)
		return err_wrap(err, r, "invalid token auth challenge realm");
	if ((auth->user.n || auth->identity_token.n) && !realm_is_safe(&l->host, &realm))
		return err_set(err, ERR_FORBIDDEN, "the registry asks to send credentials in the clear to " STR_FMT, STR_ARG(realm.authority));
	make_token_request(g, c, auth, &q, &header);
	if ((r = realm_client(g, l, &realm, &client, err)) < 0 || (r = open_call(g, client, &q, &call, err)) < 0 ||
	    (r = http_call_head(call, &head, err)) < 0 ||
	    (r = http_call_read_all(call, TOKEN_MAX, &body, err)) < 0)
		return r;
	if (head->status != 200)
		return unexpected(err, head->status == 401 || head->status == 403 ? ERR_UNAUTHORIZED : ERR_UNAVAILABLE, q.method, q.url,
				  head->status);
	if ((r = json_decode(&g->arena, arena_str(&g->arena, body), &(struct json_decode_options){ 0 }, &v, err)) < 0)
		return err_wrap(err, r, "unable to decode token response");
	str token = val_str(v, token).n ? val_str(v, token) : val_str(v, access_token);
	if (!token.n)
		return err_set(err, ERR_UNAUTHORIZED, "authorization server did not include a token in the response");
	l->authorization = arena_join(&g->arena, STR("Bearer "), token);
	return 0;
}

/* (suspends) After a 401: sets l->authorization. */
static int authorize(struct registry *g, struct live_host *l, const struct http1_head *head, struct err *err)
{
	struct auth_challenge c;
	struct image_auth auth;
	auth_challenge_parse(&g->arena, head->headers, head->n_headers, &c);
	int r = credentials(g, &l->host, &auth, err);
	if (r < 0)
		return r;
	if (auth.registry_token.n) {
		l->authorization = arena_join(&g->arena, STR("Bearer "), auth.registry_token);
		return 0;
	}
	if (c.scheme == AUTH_BEARER) {
		r = fetch_token(g, l, &c, &auth, err);
		if (r < 0 && !auth.user.n && !auth.identity_token.n)
			(void)err_wrap(err, r, "failed to fetch anonymous token");
		else if (r < 0)
			(void)err_wrap(err, r, "failed to fetch oauth token");
		return r < 0 ? err_wrap(err, r, "failed to authorize") : 0;
	}
	if (c.scheme == AUTH_BASIC && auth.user.n) {
		l->authorization = basic_header(&g->arena, &auth);
		return 0;
	}
	if (c.scheme == AUTH_BASIC)
		return err_set(err, ERR_UNAUTHORIZED, "%s access denied, repository does not exist or may require authorization:"
			       " authorization failed: no basic auth credentials", g->push ? "push" : "pull");
	return err_set(err, ERR_UNAUTHORIZED, "failed to find supported auth scheme: not implemented");
}

/* ---- requests ---- */

/* What is being asked for, as redirects change it. */
struct attempt {
	str url;
	bool elsewhere;             /* not the host itself: no authorization, none of its headers */
	unsigned redirects, tries;
	bool authorized;            /* a challenge was answered */
};

static str make_url(struct registry *g, const struct registry_host *h, const struct registry_request *q)
{
	struct arena *a = &g->arena;
	if (q->url.n && q->url.p[0] != '/')
		return q->url;
	str base = arena_printf(a, STR_FMT "://" STR_FMT, STR_ARG(h->scheme), STR_ARG(h->authority));
	if (q->url.n)
		return arena_join(a, base, q->url);
	str url = arena_printf(a, STR_FMT STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(base), STR_ARG(h->path), STR_ARG(g->ref->path),
			       STR_ARG(q->suffix));
	return h->mirror ? arena_printf(a, STR_FMT "%cns=" STR_FMT, STR_ARG(url), str_chr(url, '?') < 0 ? '?' : '&', STR_ARG(g->ref->domain)) : url;
}

static bool is_elsewhere(struct registry *g, const struct registry_host *h, str text)
{
	struct url u;
	return url_parse(&g->arena, text, &u, NULL) < 0 || !str_eq(u.scheme, h->scheme) || !http1_eq_nocase(u.authority, h->authority);
}

enum { HEADERS_MAX = 32 };

static size_t make_headers(const struct live_host *l, const struct registry_request *q, bool elsewhere, struct http_header *out)
{
	size_t n = 0;
	out[n++] = (struct http_header){ STR("user-agent"), STR("c8s") };
	if (q->accept.n)
		out[n++] = (struct http_header){ STR("accept"), q->accept };
	if (q->content_type.n)
		out[n++] = (struct http_header){ STR("content-type"), q->content_type };
	if (q->range.n)
		out[n++] = (struct http_header){ STR("range"), q->range };
	if (l->authorization.n && !elsewhere)
		out[n++] = (struct http_header){ STR("authorization"), l->authorization };
	for (size_t i = 0; !elsewhere && i < l->host.n_headers && n < HEADERS_MAX; i++)
		out[n++] = l->host.headers[i];
	return n;
}

static int send_once(struct registry *g, struct live_host *l, const struct registry_request *q, const struct attempt *at, struct http_call **ret_call,
		     const struct http1_head **ret_head, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	struct http_header headers[HEADERS_MAX];
	struct http_request hq = { .method = q->method, .url = at->url, .headers = headers, .body = q->body, .streamed = q->streamed,
				   .content_length = q->content_length };
	hq.n_headers = make_headers(l, q, at->elsewhere, headers);
	int r = open_call(g, l->client, &hq, &call, err);
	if (r == 0 && !q->streamed)
		r = http_call_head(call, ret_head, err);
	if (r < 0)
		return err_wrap(err, r, "failed to do request");
	*ret_call = TAKE(call);
	return 0;
}

static bool is_redirect(const struct registry_request *q, int status)
{
	bool safe = str_eq(q->method, STR("GET")) || str_eq(q->method, STR("HEAD"));
	return safe && (status == 301 || status == 302 || status == 303 || status == 307 || status == 308);
}

static int follow(struct registry *g, struct live_host *l, const struct http1_head *head, struct attempt *at, struct err *err)
{
	str to = http_header_find(head->headers, head->n_headers, STR("location"));
	if (!to.n || ++at->redirects > REDIRECTS)
		return err_set(err, ERR_UNAVAILABLE, "failed to do request: stopped after %u redirects", at->redirects);
	if (to.p[0] == '/') {
		struct url u;
		int r = url_parse(&g->arena, at->url, &u, err);
		if (r < 0)
			return r;
		at->url = arena_printf(&g->arena, STR_FMT "://" STR_FMT STR_FMT, STR_ARG(u.scheme), STR_ARG(u.authority), STR_ARG(to));
	} else {
		at->url = arena_str(&g->arena, to);
	}
	at->elsewhere = is_elsewhere(g, &l->host, at->url);
	return 0;
}

/* (suspends) Waits for the next try; false: enough. */
static bool again(struct attempt *at, int64_t wish_ms)
{
	if (++at->tries >= TRIES)
		return false;
	int64_t ms = MAX((int64_t)PAUSE_MS << (at->tries - 1), wish_ms);
	return fiber_sleep_ms(MIN(ms, (int64_t)PAUSE_MAX_MS), NULL) == 0;
}

static bool is_passing(int status) { return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504); }

static int64_t retry_after_ms(const struct http1_head *head)
{
	int64_t s;
	str text = http_header_find(head->headers, head->n_headers, STR("retry-after"));
	return str_to_i64(text, &s) && s > 0 && s < 3600 ? s * 1000 : 0;
}

/* Nobody answered, but somebody may a moment later. Whoever refuses connections is not there at all. */
static bool may_come_back(const struct err *err, int r)
{
	return (r == -ERR_UNAVAILABLE || r == -ERR_TIMEOUT || r == -ERR_GONE) && err && err->sys != ECONNREFUSED && fiber_check(NULL) == 0;
}

/* (suspends) 1: ask again; 0: this is the answer. */
static int look(struct registry *g, struct live_host *l, const struct registry_request *q, const struct http1_head *head,
		struct attempt *at, struct err *err)
{
	int r;
	if (head->status == 401 && !at->authorized && !at->elsewhere) {
		at->authorized = true;
		return (r = authorize(g, l, head, err)) < 0 ? r : 1;
	}
	if (is_redirect(q, head->status))
		return (r = follow(g, l, head, at, err)) < 0 ? r : 1;
	return is_passing(head->status) && again(at, retry_after_ms(head)) ? 1 : 0;
}

int registry_send(struct registry *g, struct registry_host *h, const struct registry_request *q, struct http_call **ret_call,
		  const struct http1_head **ret_head, struct err *err)
{
	struct live_host *l = CONTAINER_OF(h, struct live_host, host);
	struct attempt at = { .url = make_url(g, h, q) };
	at.elsewhere = q->url.n && is_elsewhere(g, h, at.url);
	for (;;) {
		CLEANUP(http_call_freep) struct http_call *call = NULL;
		int r = send_once(g, l, q, &at, &call, ret_head, err);
		if (r < 0 && h->try_http && !at.elsewhere && r != -ERR_CANCELED) {
			h->try_http = false;
			h->scheme = STR("http");
			at.url = make_url(g, h, q);
			continue;
		}
		if (r < 0 && !q->streamed && may_come_back(err, r) && again(&at, 0))
			continue;
		if (r < 0)
			return r;
		h->try_http = false;
		if (!q->streamed && (r = look(g, l, q, *ret_head, &at, err)) != 0) {
			if (r < 0)
				return r;
			continue;
		}
		*ret_call = TAKE(call);
		return 0;
	}
}

/* ---- errors ---- */

static enum err_code code_of(int status)
{
	switch (status) {
	case 401: return ERR_UNAUTHORIZED;
	case 403: return ERR_FORBIDDEN;
	case 404: return ERR_NOT_FOUND;
	case 429: return ERR_TOO_MANY_REQUESTS;
	default: return ERR_UNAVAILABLE;
	}
}

/* (suspends) {"errors":[{"code":"DENIED","message":"..."}]} */
static str error_message(struct registry *g, struct http_call *call)
{
	struct val v;
	str body;
	if (http_call_read_all(call, ERROR_BODY_MAX, &body, NULL) < 0 ||
	    json_decode(&g->arena, arena_str(&g->arena, body), &(struct json_decode_options){ 0 }, &v, NULL) < 0)
		return STR_NONE;
	struct val first = val_at(val_get(v, errors), 0);
	return arena_printf(&g->arena, STR_FMT ": " STR_FMT, STR_ARG(val_str(first, code)), STR_ARG(str_head(val_str(first, message), 150)));
}

int registry_refuse(struct registry *g, struct registry_host *h, const struct registry_request *q, struct http_call *call,
		    const struct http1_head *head, struct err *err)
{
	struct auth_challenge c;
	auth_challenge_parse(&g->arena, head->headers, head->n_headers, &c);
	if (head->status == 401 && c.error.n)
		return err_set(err, ERR_UNAUTHORIZED, "%s access denied, repository does not exist or may require authorization:"
			       " server message: " STR_FMT ": authorization failed", g->push ? "push" : "pull", STR_ARG(c.error));
	str message = error_message(g, call);
	int r = unexpected(err, code_of(head->status), q->method, make_url(g, h, q), head->status);
	if (err && message.n > 2)
		err_set(err, err->code, "%.*s: " STR_FMT, (int)sizeof(err->msg), arena_str(&g->arena, err_str(err)).p, STR_ARG(message));
	return r;
}
