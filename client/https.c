/*
 * Over HTTPS, with HTTP/1.1 on connections that are kept: one for each call that is under way, of which there are not too many, and one for
 * each watch that does not share one by HTTP/2. Objects travel as protobuf where the server takes it. Certificates that lie in files are looked
 * at again once a second when there are calls; what changed leads to new connections. So does a server that cannot be reached when others are known: a
 * request that it cannot have seen goes to the next one at once.
 */
#include "client/https_priv.h"

#include <errno.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/types.h"
#include "net/url.h"

/* The last three count where there are other servers: one that is cut off answers to nothing, and leases of nodes do not wait for long. */
enum { LOOK_MS = 1000, CALLS_MAX = 32, TURN_MS = 5000, UNWELL_MS = 10 * 1000, DIAL_MS = 4000, HEAD_MS = 30 * 1000 };

/* ---- sessions ---- */

static struct session *session_ref(struct session *s)
{
	s->refs++;
	return s;
}

static void session_unref(struct session *s)
{
	if (!s || --s->refs)
		return;
	http_client_free(s->http);
	shared_free(s->shared);
	tls_context_free(s->tls);
	free(s);
}

static const char *text(struct arena *a, str s) { return s.n ? arena_str(a, s).p : NULL; }

static int make_tls(const struct https *h, const struct credential *cred, const char *const *protocols, struct tls_context **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct client_config *c = &h->config;
	struct tls_options o = {
		.cert_file = text(&a, c->client_cert_file), .key_file = text(&a, c->client_key_file),
		.cert_pem = cred->cert ? cred->cert : text(&a, c->client_cert),
		.key_pem = cred->key ? cred->key : text(&a, c->client_key),
		.ca_file = text(&a, c->ca_file), .ca_pem = text(&a, c->ca), .insecure_skip_verify = c->insecure,
		.server_name = text(&a, c->tls_server_name), .alpn = protocols,
	};
	return tls_client_new(&o, ret, err);
}

static int session_new(struct https *h, const struct credential *cred, struct session **ret, struct err *err)
{
	static const char *const protocols[] = { "http/1.1", NULL };
	struct tls_context *tls = NULL;
	int r = h->secure ? make_tls(h, cred, protocols, &tls, err) : 0;
	if (r < 0)
		return cred->cert ? err_wrap(err, r, "failed parsing client key/certificate") : r;
	size_t n = strlen(h->servers.current);
	bool several = h->servers.file;
	struct session *s = mem_zalloc(sizeof(*s) + n + 1);
	s->refs = 1;
	s->tls = tls;
	s->http = http_client_new(&(struct http_client_options){ .tls = tls, .max_idle_per_host = CALLS_MAX, .dial_timeout_ms = several ? DIAL_MS : 0,
								 .head_timeout_ms = several ? HEAD_MS : 0 });
	list_init(&s->watches);
	s->server = h->servers.number;
	s->base = str_span(memcpy(s + 1, h->servers.current, n), n);
	*ret = s;
	return 0;
}

/* What watches of this session share, made for the first one: most clients have none. NULL: none may share. */
static struct shared *session_shared(const struct https *h, const struct credential *cred, struct session *s)
{
	static const char *const protocols[] = { "h2", "http/1.1", NULL };
	struct tls_context *tls = NULL;
	if (!s->shared && h->secure && !h->has_proxy && make_tls(h, cred, protocols, &tls, NULL) == 0)
		s->shared = shared_new(tls);
	return s->shared;
}

/* Has something changed that connections were made with? */
static bool is_stale(struct https *h, const struct credential *cred)
{
	struct err why = ERR_INIT;
	if (!h->session || cred->cert_number != h->cert_number || h->session->server != h->servers.number)
		return true;
	int64_t now = clock_now_ns();
	if (!h->session->tls || now - h->looked_ns < LOOK_MS * NS_PER_MS)
		return false;
	h->looked_ns = now;
	int r = tls_reload(h->session->tls, &why);
	if (r < 0)
		log_warn("the certificates cannot be read again, ignoring", KV("error", &why));
	return r == 1;
}

/* (suspends) The session to use now, with a reference for the caller. */
static int session_get(struct https *h, const struct credential *cred, struct session **ret, struct err *err)
{
	if (is_stale(h, cred)) {
		struct session *fresh = NULL, *old = h->session;
		int r = session_new(h, cred, &fresh, err);
		if (r < 0)
			return r;
		h->session = fresh;
		h->cert_number = cred->cert_number;
		h->looked_ns = clock_now_ns();
		*ret = session_ref(fresh);
		if (old)
			https_watches_break(old);
		session_unref(old);
		return 0;
	}
	*ret = session_ref(h->session);
	return 0;
}

/* ---- requests ---- */

struct headers {
	struct arena *arena;
	struct http_header *list;
	size_t n, cap;
};

static void add(struct headers *s, str name, str value)
{
	if (s->n == s->cap) {
		struct http_header *more = ARENA_ARRAY(s->arena, struct http_header, s->cap ? 2 * s->cap : 16);
		if (s->n)
			memcpy(more, s->list, s->n * sizeof(*more));
		s->cap = s->cap ? 2 * s->cap : 16;
		s->list = more;
	}
	s->list[s->n++] = (struct http_header){ name, value };
}

/* As client-go: keys may have characters that a header's name may not. */
static str extra_name(struct arena *a, str key)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 * 1024);
	buf_add(&b, STR("impersonate-extra-"));
	for (size_t i = 0; i < key.n; i++) {
		char c = key.p[i];
		if (c != '%' && http1_is_token(str_span(&c, 1)))
			buf_addc(&b, c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c);
		else
			buf_addf(&b, "%%%02X", (unsigned char)c);
	}
	return arena_str(a, buf_str(&b));
}

static void add_impersonation(struct headers *s, const struct client_config *c)
{
	if (!c->impersonate.n && !c->impersonate_uid.n && !val_len(c->impersonate_groups) && !val_len(c->impersonate_extra))
		return;
	add(s, STR("impersonate-user"), c->impersonate);
	if (c->impersonate_uid.n)
		add(s, STR("impersonate-uid"), c->impersonate_uid);
	VAL_EACH(group, c->impersonate_groups)
		add(s, STR("impersonate-group"), val_as_str(*group));
	VAL_EACH_MEMBER(m, c->impersonate_extra)
		VAL_EACH(value, m->val)
			add(s, extra_name(s->arena, atom_str(m->key)), val_as_str(*value));
}

static void add_headers(struct headers *s, const struct https *h, const struct client_request *q, const struct credential *cred,
			str content_type)
{
	bool watch = strcmp(q->verb, "watch") == 0;
	if (q->accept.n)
		add(s, STR("accept"), q->accept);
	else if (q->resource)
		add(s, STR("accept"), h->json_only ? STR("application/json") : STR("application/vnd.kubernetes.protobuf,application/json"));
	else
		add(s, STR("accept"), STR("application/json, */*"));
	add(s, STR("user-agent"), h->config.user_agent);
	if (cred->authorization.n)
		add(s, STR("authorization"), arena_str(s->arena, cred->authorization));
	if (content_type.n)
		add(s, STR("content-type"), content_type);
	/* A watch is small pieces that must not wait for more. */
	if (h->gzip && !watch)
		add(s, STR("accept-encoding"), STR("gzip"));
	add_impersonation(s, &h->config);
	for (size_t i = 0; i < q->n_headers; i++)
		add(s, q->headers[i].name, q->headers[i].value);
}

static str make_url(struct arena *a, const struct session *s, const struct client_request *q)
{
	return arena_printf(a, STR_FMT STR_FMT "%s" STR_FMT, STR_ARG(s->base), STR_ARG(q->path), q->query.n ? "?" : "", STR_ARG(q->query));
}

int https_unavailable(int r, struct err *err)
{
	if (r == -ERR_CANCELED || r == -ERR_TIMEOUT || r == -ERR_TOO_LARGE || r == -ERR_BAD_REQUEST)
		return r;
	if (err)
		err->code = ERR_UNAVAILABLE;
	return -ERR_UNAVAILABLE;
}

/* The connection was cut before there was an answer: nobody can tell what became of the request. */
static bool was_cut(const struct err *err)
{
	/* The latter is an end of TLS without a goodbye. */
	return err->sys == ECONNRESET || err->sys == EPIPE || str_ends(err_str(err), STR(": EOF")) ||
	       str_ends(err_str(err), STR(": read: unexpected EOF"));
}

static int64_t retry_after(const struct http1_head *head)
{
	enum { MOST_S = 24 * 3600 };
	int64_t seconds;
	str value = http_header_find(head->headers, head->n_headers, STR("retry-after"));
	if (!str_to_i64(value, &seconds) || seconds < 0)
		return -1;
	return MIN(seconds, (int64_t)MOST_S);
}

/* What becomes of the server that a request failed at; `sent`: it may know of the request. */
static void leave_server(struct https *h, struct exchange *x, int r, bool sent)
{
	if (r == -ERR_CANCELED || r == -ERR_BAD_REQUEST || r == -ERR_TOO_LARGE)
		return;
	size_t others = servers_move(&h->servers, x->session->server);
	/* When the caller's time is over as well, there is nothing to try again. */
	if (!sent && fiber_check(NULL) == 0)
		x->others = others;
}

/* One that answers, but cannot get at its store, is left as well; not each time: when all are like that, watches had better stay where they are. */
static void leave_unwell(struct https *h, const struct exchange *x)
{
	int64_t now = clock_now_ns();
	bool unwell = x->head->status == 503 || x->head->status == 504;

	if (unwell && (!h->left_ns || now - h->left_ns > UNWELL_MS * NS_PER_MS) && servers_move(&h->servers, x->session->server) > 0)
		h->left_ns = now;
}

/* (suspends) With this credential, once. */
static int begin_once(struct https *h, const struct client_request *q, const struct credential *cred, struct exchange *x,
		      struct client_reply *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf body = BUF_INIT(0);
	struct headers headers = { .arena = &a };
	struct err why = ERR_INIT;
	str content_type;
	int r;
	if ((r = https_body_encode(&a, q, h->json_only, &body, &content_type, err)) < 0)
		return r;
	x->sent_proto = https_is_proto(content_type);
	/* Before anything suspends: the credential is borrowed. */
	add_headers(&headers, h, q, cred, content_type);
	if ((r = session_get(h, cred, &x->session, err)) < 0)
		return credentials_fail(err);
	const struct http_request request = {
		.method = q->method, .url = make_url(&a, x->session, q), .headers = headers.list, .n_headers = headers.n, .body = buf_str(&body),
		.proxy = h->has_proxy ? &h->proxy : NULL,
	};
	r = http_call_open(x->session->http, &request, &x->call, &why);
	bool sent = r == 0;
	if (r == 0)
		r = http_call_head(x->call, &x->head, &why);
	if (r < 0) {
		leave_server(h, x, r, sent);
		ret->cut = was_cut(&why);
		if (err)
			*err = why;
		return https_unavailable(r, err);
	}
	leave_unwell(h, x);
	ret->cut = false; /* as the server before this one may have */
	ret->status = x->head->status;
	ret->retry_after_s = retry_after(x->head);
	return 0;
}

/* Does the server want the same said in JSON? */
static bool wants_json(struct https *h, const struct exchange *x)
{
	if (x->head->status != 415 || !x->sent_proto)
		return false;
	h->json_only = true;
	return true;
}

int https_begin(struct https *h, const struct client_request *q, struct exchange *ret_x, struct client_reply *ret, struct err *err)
{
	struct credential cred;
	size_t tried = 0;
	for (bool asked = false;;) {
		*ret_x = (struct exchange){ 0 };
		int r = credentials_get(h->credentials, &cred, err);
		unsigned number = cred.number;
		if (r == 0)
			r = begin_once(h, q, &cred, ret_x, ret, err);
		if (r < 0) {
			https_end(ret_x);
			if (tried++ < ret_x->others)
				continue;
			return r;
		}
		bool again = wants_json(h, ret_x) || (!asked && ret_x->head->status == 401 && credentials_refused(h->credentials, number));
		if (!again)
			return 0;
		https_end(ret_x);
		asked = true;
	}
}

int https_begin_shared(struct https *h, const struct client_request *q, struct session **ret_session, struct shared_call **ret,
		       struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct headers headers = { .arena = &a };
	struct session *s = NULL;
	struct credential cred;
	struct url url;
	int r = credentials_get(h->credentials, &cred, err);

	if (r < 0)
		return r;
	add_headers(&headers, h, q, &cred, STR_NONE);
	if ((r = session_get(h, &cred, &s, err)) < 0)
		return credentials_fail(err);
	/* Asked for again: the fiber may have been suspended, and the credential was borrowed. */
	r = credentials_get(h->credentials, &cred, err);
	struct shared *shared = r < 0 ? NULL : session_shared(h, &cred, s);
	r = shared ? url_parse(&a, make_url(&a, s, q), &url, err) : -ERR_UNAVAILABLE;
	r = r < 0 ? 0 : shared_call_open(shared, &url, headers.list, headers.n, ret, err);
	if (r == 1)
		*ret_session = s;
	else
		session_unref(s);
	return r;
}

void https_end(struct exchange *x)
{
	http_call_free(TAKE(x->call));
	session_unref(TAKE(x->session));
}

static str content_type_of(const struct exchange *x)
{
	return http_header_find(x->head->headers, x->head->n_headers, STR("content-type"));
}

static bool is_object(str content_type)
{
	str media, rest;
	(void)str_cut(content_type, ';', &media, &rest);
	return !media.n || http1_eq_nocase(str_trim(media), STR("application/json")) || https_is_proto(content_type);
}

int https_fail(struct exchange *x, const struct client_request *q, struct err *err)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(0);
	CLEANUP(frozen_unrefp) struct frozen *object = NULL;
	str type = content_type_of(x);
	int status = x->head->status;
	/* What cannot be read says nothing; the status does. But who is canceled stops here. */
	int r = https_body_read(x, HTTPS_FAILURE_MAX, &body, err);
	if (r == -ERR_CANCELED || r == -ERR_TIMEOUT)
		return r;
	if (r == 0 && is_object(type))
		(void)https_body_decode(type, buf_str(&body), &object, NULL);
	bool readable = r == 0 && (!type.n || str_starts(type, STR("text/"))) && str_is_utf8(buf_str(&body));
	return client_status_fail(q, status, object ? object->val : VAL_EMPTY, readable ? buf_str(&body) : STR_NONE, err);
}

/* ---- calls ---- */

static bool is_success(const struct exchange *x) { return x->head->status >= 200 && x->head->status <= 206; }

/* (suspends) */
static int receive(struct exchange *x, const struct client_request *q, size_t max, struct buf *body, struct err *err)
{
	if (!is_success(x))
		return https_fail(x, q, err);
	return https_body_read(x, max, body, err);
}

/*
 * (suspends) A call has a connection for itself, and to open one costs more than most calls: beyond so many the next waits until one has ended.
 * Whoever keeps a lease has no time for that. Those under way may hang, though, or wait for what a later call brings about: nobody waits for long.
 */
static int turn_begin(struct https *h, const struct client_request *q, struct err *err)
{
	int r = 0;
	{
		DEADLINE_SCOPE(TURN_MS);
		while (r == 0 && h->n_calls >= CALLS_MAX && q->type != TYPE(coordination_v1, Lease))
			r = fiber_cond_wait(&h->turn, err);
	}
	if (r == -ERR_TIMEOUT && fiber_check(NULL) == 0) { /* it is not the caller's time that is over */
		err_clear(err);
		r = 0;
	}
	h->n_calls += r == 0;
	return r;
}

static void turn_end(struct https *h)
{
	h->n_calls--;
	fiber_cond_signal(&h->turn);
}

static int call_once(struct https *h, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(0);
	CLEANUP(https_end) struct exchange x = { 0 };
	int r = https_begin(h, q, &x, ret, err);
	if (r < 0 || (r = receive(&x, q, HTTPS_ANSWER_MAX, &body, err)) < 0 || !q->wants_object)
		return r;
	if (!is_object(content_type_of(&x)))
		return err_set(err, ERR_UNAVAILABLE, "the server answered with content of type \"" STR_FMT "\", which is no object",
			       STR_ARG(str_head(content_type_of(&x), 100)));
	return https_body_decode(content_type_of(&x), buf_str(&body), &ret->object, err);
}

static int https_call(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	struct https *h = CONTAINER_OF(c, struct https, client);
	int r = turn_begin(h, q, err);
	if (r < 0)
		return r;
	r = call_once(h, q, ret, err);
	turn_end(h);
	return r;
}

static int https_call_raw(struct client *c, const struct client_request *q, struct arena *a, size_t max, str *ret_body,
			  struct client_reply *ret, struct err *err)
{
	struct https *h = CONTAINER_OF(c, struct https, client);
	CLEANUP(buf_done) struct buf body = BUF_INIT(0);
	CLEANUP(https_end) struct exchange x = { 0 };
	int r = https_begin(h, q, &x, ret, err);
	if (r < 0 || (r = receive(&x, q, max, &body, err)) < 0)
		return r;
	*ret_body = arena_str(a, buf_str(&body));
	return 0;
}

static void https_free(struct client *c)
{
	struct https *h = CONTAINER_OF(c, struct https, client);
	session_unref(h->session);
	credentials_free(h->credentials);
	servers_done(&h->servers);
	arena_done(&h->arena);
	free(h);
}

str client_server(const struct client *c) { return CONTAINER_OF(c, struct https, client)->base; }

static const struct client_transport transport = {
	.answer = https_answer,
	.call = https_call,
	.call_raw = https_call_raw,
	.watch = https_watch,
	.watch_next = https_watch_next,
	.watch_free = https_watch_free,
	.free = https_free,
};

/* ---- opening ---- */

/* Every text and tree of the configuration, into our own memory. */
static struct client_config copy_config(struct arena *a, const struct client_config *from)
{
	struct client_config c = *from;
	str *texts[] = {
		&c.server, &c.servers_file, &c.tls_server_name, &c.ca, &c.proxy_url, &c.client_cert, &c.client_key, &c.client_cert_file,
		&c.client_key_file, &c.ca_file, &c.token, &c.token_file, &c.username, &c.password, &c.impersonate,
		&c.impersonate_uid, &c.namespace, &c.user_agent,
	};
	struct val *trees[] = { &c.impersonate_groups, &c.impersonate_extra, &c.exec, &c.exec_cluster };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		*texts[i] = arena_str(a, *texts[i]);
	for (size_t i = 0; i < ARRAY_LEN(trees); i++)
		*trees[i] = val_copy(a, *trees[i]);
	return c;
}

static str default_user_agent(struct arena *a)
{
	struct utsname machine;
	const char *arch = "unknown";
	if (uname(&machine) == 0)
		arch = strcmp(machine.machine, "x86_64") == 0 ? "amd64" : strcmp(machine.machine, "aarch64") == 0 ? "arm64" : machine.machine;
	return arena_printf(a, "c8s/" CLIENT_VERSION " (linux/%s)", arch);
}

/* As client-go: an address without a scheme is one of http, unless there is something that only TLS has a use for. */
static int find_server(struct https *h, struct url *ret, struct err *err)
{
	const struct client_config *c = &h->config;
	str server = c->server.n ? c->server : STR("localhost");
	if (str_find(server, STR("://")) < 0) {
		bool tls = c->ca.n || c->ca_file.n || c->client_cert.n || c->client_cert_file.n || c->insecure;
		server = arena_printf(&h->arena, "%s" STR_FMT, tls ? "https://" : "http://", STR_ARG(server));
	}
	int r = url_parse(&h->arena, server, ret, err);
	if (r < 0)
		return err_wrap(err, r, "parse \"" STR_FMT "\"", STR_ARG(str_head(server, 250)));
	h->secure = str_eq(ret->scheme, STR("https"));
	if (!ret->host.n || (!h->secure && !str_eq(ret->scheme, STR("http"))))
		return err_set(err, ERR_INVALID, "host must be a URL or a host:port pair: \"" STR_FMT "\"", STR_ARG(str_head(server, 250)));
	str path = ret->path;
	while (path.n && path.p[path.n - 1] == '/')
		path.n--;
	h->base = arena_printf(&h->arena, STR_FMT "://" STR_FMT STR_FMT, STR_ARG(ret->scheme), STR_ARG(ret->authority), STR_ARG(path));
	servers_init(&h->servers, h->base, c->servers_file);
	return 0;
}

/* To this machine bytes cost less than the work of making fewer of them. */
static bool is_near(str host) { return str_eq(host, STR("localhost")) || str_starts(host, STR("127.")) || str_eq(host, STR("::1")); }

static int find_proxy(struct https *h, const struct url *server, struct err *err)
{
	str named = h->config.proxy_url;
	int r = named.n ? http_proxy_parse(&h->arena, named, &h->proxy, err) : http_proxy_find(&h->arena, server, &h->proxy, err);
	h->has_proxy = named.n || r == 1;
	return MIN(r, 0);
}

static int open_parts(struct https *h, struct err *err)
{
	struct url server;
	const struct client_config *c = &h->config;
	int r = find_server(h, &server, err);
	if (r < 0 || (r = find_proxy(h, &server, err)) < 0)
		return r;
	if (h->secure && c->insecure && (c->ca.n || c->ca_file.n))
		return err_set(err, ERR_INVALID, "specifying a root certificates file with the insecure flag is not allowed");
	h->gzip = !c->disable_compression && !is_near(server.host);
	if ((r = credentials_new(&h->config, &h->credentials, err)) < 0)
		return r;
	/* What is wrong with the certificates is known now, not at the first call. */
	return session_new(h, &(const struct credential){ 0 }, &h->session, err);
}

int client_open(const struct client_config *config, struct client **ret, struct err *err)
{
	struct https *h = mem_zalloc(sizeof(*h));
	h->client.transport = &transport;
	fiber_cond_init(&h->turn, "other calls to end");
	arena_init(&h->arena);
	h->config = copy_config(&h->arena, config);
	if (!h->config.user_agent.n)
		h->config.user_agent = default_user_agent(&h->arena);
	int r = open_parts(h, err);
	if (r < 0) {
		https_free(&h->client);
		return r;
	}
	*ret = &h->client;
	return 0;
}
