/*
 * httpGet, as Go's client does it for kubelets: no certificate is verified, no proxy, no connection kept, redirects are followed on the
 * same host only. Any answer from 200 to 399 will do; one that redirects elsewhere is worth a warning.
 */
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "codec/atoms.h"
#include "kubelet/probe_priv.h"
#include "net/http_client.h"
#include "net/url.h"

enum { REDIRECTS_MAX = 10, URL_MAX = 64 << 10, HEADERS_MAX = 1000 };

/* What a request needs; texts in the arena. */
struct target {
	str url;
	str host;                     /* of the first URL, without port */
	struct http_header *headers;
	size_t n_headers;
	struct http_client *client;
	struct tls_context *tls;      /* of the client; NULL: it can only http */
};

/* ---- the URL ---- */

static bool is_path_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~$&+,/:;=@!'()*[]", c));
}

static void add_escaped(struct buf *b, str path, bool has_escapes)
{
	for (size_t i = 0; i < path.n; i++)
		if (is_path_char(path.p[i]) || (has_escapes && path.p[i] == '%'))
			buf_addc(b, path.p[i]);
		else
			buf_addf(b, "%%%02X", (unsigned char)path.p[i]);
}

static bool has_control(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return true;
	return false;
}

/* A path that is no part of a URL is taken letter by letter. */
static void add_path(struct buf *b, str text)
{
	str path, query, rest, fragment;

	(void)str_cut(text, '#', &rest, &fragment);
	bool asks = str_cut(rest, '?', &path, &query);
	if (text.n && text.p[0] != '/' && text.p[0] != '?')
		buf_addc(b, '/');
	if (has_control(text) || !url_escapes_valid(path)) {
		add_escaped(b, text, false);
		return;
	}
	add_escaped(b, path, true);
	if (asks) {
		buf_addc(b, '?');
		buf_add(b, query);
	}
}

static int url_make(struct probe_check *c, struct val action, struct target *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(URL_MAX);
	bool https = str_eq(val_str(action, scheme), STR("HTTPS"));
	uint16_t port;
	int r = probe_port(val_get(action, port), c->container, &port, err);

	if (r < 0 || (r = probe_host(c, action, &ret->host, err)) < 0)
		return r;
	buf_addf(&b, "%s://", https ? "https" : "http");
	buf_add(&b, probe_address(c->arena, ret->host, port));
	add_path(&b, val_str(action, path));
	if ((r = buf_check(&b, "the URL", err)) < 0)
		return r;
	ret->url = arena_str(c->arena, buf_str(&b));
	return 0;
}

/* ---- headers ---- */

static str lower(struct arena *a, str s)
{
	char *p = ARENA_ARRAY(a, char, s.n + 1);

	for (size_t i = 0; i < s.n; i++)
		p[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 'a' - 'A') : s.p[i];
	return str_span(p, s.n);
}

static void header_add(struct target *t, str name, str value)
{
	t->headers[t->n_headers++] = (struct http_header){ name, value };
}

/* Those of the probe; user-agent, accept and host given empty mean that there is none (host: the usual one). */
static void headers_make(struct probe_check *c, struct val action, struct target *t)
{
	struct val given = val_get(action, httpHeaders);
	bool agent = false, accept = false;
	size_t n = MIN(val_len(given), (uint32_t)HEADERS_MAX);

	t->headers = ARENA_ARRAY(c->arena, struct http_header, n + 3);
	for (size_t i = 0; i < n; i++) {
		str name = lower(c->arena, val_str(given.items[i], name)), value = val_str(given.items[i], value);
		bool is_agent = str_eq(name, STR("user-agent")), is_accept = str_eq(name, STR("accept"));
		agent |= is_agent;
		accept |= is_accept;
		if (value.n || !(is_agent || is_accept || str_eq(name, STR("host"))))
			header_add(t, name, value);
	}
	if (!agent)
		header_add(t, STR("user-agent"), c->hook ? STR("kube-lifecycle/1.36") : STR("kube-probe/1.36"));
	if (!accept)
		header_add(t, STR("accept"), STR("*/*"));
	header_add(t, STR("connection"), STR("close"));
}

/* ---- redirects ---- */

static bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

/* Where a Location leads from here. */
static int url_resolve(struct arena *a, str base, str location, str *ret, struct err *err)
{
	struct url u;
	int r = url_parse(a, base, &u, err);

	if (r < 0)
		return r;
	ptrdiff_t scheme = str_find(location, STR("://")), query = str_chr(location, '?');
	str authority = u.authority, folder = str_head(u.path, (size_t)(str_rchr(u.path, '/') + 1));
	if (scheme > 0 && (query < 0 || scheme < query))
		*ret = location;
	else if (str_starts(location, STR("//")))
		*ret = arena_printf(a, STR_FMT ":" STR_FMT, STR_ARG(u.scheme), STR_ARG(location));
	else
		*ret = arena_printf(a, STR_FMT "://" STR_FMT STR_FMT STR_FMT, STR_ARG(u.scheme), STR_ARG(authority),
				    STR_ARG(str_starts(location, STR("/"))   ? STR_NONE
					    : str_starts(location, STR("?")) ? u.path
					    : folder.n			     ? folder
									     : STR("/")),
				    STR_ARG(location));
	str without_fragment, fragment;
	(void)str_cut(*ret, '#', &without_fragment, &fragment);
	*ret = arena_str(a, without_fragment);
	return 0;
}

/* ---- asking ---- */

/* (suspends) Up to the maximum of the answer's body. */
static int body_read(struct probe_check *c, struct http_call *call, str *ret, struct err *err)
{
	char *p = ARENA_ARRAY(c->arena, char, PROBE_OUTPUT_MAX);
	size_t n = 0;
	ssize_t got = 1;

	while (got > 0 && n < PROBE_OUTPUT_MAX)
		if ((got = http_call_read(call, p + n, PROBE_OUTPUT_MAX - n, err)) > 0)
			n += (size_t)got;
	*ret = str_span(p, n);
	return got < 0 ? (int)got : 0;
}

/* (suspends) A client in place of the one of before, which must have no calls. */
static int client_make(struct probe_check *c, struct target *t, bool https, struct err *err)
{
	struct http_client_options o = { .dial_timeout_ms = c->timeout_ms };
	int r = https ? tls_client_new(&(struct tls_options){ .insecure_skip_verify = true }, &t->tls, err) : 0;

	if (r < 0)
		return r;
	http_client_free(TAKE(t->client));
	o.tls = t->tls;
	t->client = http_client_new(&o);
	return 0;
}

/* (suspends) The call whose answer counts, with its head there; t->url is then the URL that answered. */
static int call_make(struct probe_check *c, struct target *t, struct http_call **ret, int *ret_status, struct err *err)
{
	for (unsigned via = 1;; via++) {
		CLEANUP(http_call_freep) struct http_call *call = NULL;
		struct http_request q = { .method = STR("GET"), .url = t->url, .headers = t->headers, .n_headers = t->n_headers };
		const struct http1_head *head;
		struct url u;
		str next;
		int r = http_call_open(t->client, &q, &call, err);
		if (r < 0 || (r = http_call_head(call, &head, err)) < 0)
			return r;
		*ret_status = head->status;
		str location = http_header_find(head->headers, head->n_headers, STR("location"));
		if (!is_redirect(head->status) || !location.n) {
			*ret = TAKE(call);
			return 0;
		}
		if ((r = url_resolve(c->arena, t->url, location, &next, err)) < 0 || (r = url_parse(c->arena, next, &u, err)) < 0)
			return err_wrap(err, r, "Get \"" STR_FMT "\"", STR_ARG(t->url));
		if (!str_eq(u.host, t->host)) {
			*ret = TAKE(call);
			return 0;
		}
		if (via >= REDIRECTS_MAX)
			return err_set(err, ERR_UNAVAILABLE, "Get \"" STR_FMT "\": stopped after %d redirects", STR_ARG(t->url),
				       REDIRECTS_MAX);
		http_call_free(TAKE(call));
		if (!t->tls && str_eq(u.scheme, STR("https")) && (r = client_make(c, t, true, err)) < 0)
			return r;
		t->url = next;
	}
}

/* What the answer means; the body, up to the maximum, is read in any case. */
static int judge(struct probe_check *c, struct http_call *call, int status, enum check_result *ret, struct err *err)
{
	str body;
	int r = body_read(c, call, &body, err);

	*ret = CHECK_FAILURE;
	if (r < 0 && c->hook)
		err_clear(err); /* that there was an answer is enough */
	else if (r == -ERR_TIMEOUT && !err->sys)
		return err_set(err, ERR_TIMEOUT,
			       "context deadline exceeded (Client.Timeout or context cancellation while reading body)");
	else if (r < 0)
		return r;
	if (c->hook || (status >= 200 && status < 300)) {
		*ret = CHECK_SUCCESS;
		c->output = body;
	} else if (status >= 300 && status < 400) {
		*ret = CHECK_WARNING;
		c->output = arena_printf(c->arena, "Probe terminated redirects, Response body: " STR_FMT, STR_ARG(body));
	} else {
		c->output = arena_printf(c->arena, "HTTP probe failed with statuscode: %d", status);
	}
	return 0;
}

/* The error as Go's client would word it. */
static str failure_text(struct probe_check *c, const struct target *t, int r, const struct err *err)
{
	if (r == -ERR_TIMEOUT && !err->sys)
		return arena_printf(c->arena, "Get \"" STR_FMT "\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
				    STR_ARG(t->url));
	/* What OpenSSL says of bytes that are no TLS. */
	if (str_starts(t->url, STR("https:")) && str_find(err_str(err), STR("wrong version number")) >= 0)
		return arena_printf(c->arena, "Get \"" STR_FMT "\": http: server gave HTTP response to HTTPS client", STR_ARG(t->url));
	return arena_str(c->arena, err_str(err));
}

/* (suspends) */
static int ask(struct probe_check *c, struct target *t, enum check_result *ret, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	int status = 0, r;

	DEADLINE_SCOPE(c->timeout_ms ? c->timeout_ms : INT32_MAX);
	r = call_make(c, t, &call, &status, err);
	if (r == 0)
		return judge(c, call, status, ret, err);
	if (r == -ERR_CANCELED)
		return r;
	*ret = CHECK_FAILURE;
	c->output = failure_text(c, t, r, err);
	err_clear(err);
	return 0;
}

static int ask_by(struct probe_check *c, struct target *t, enum check_result *ret, struct err *err)
{
	int r = client_make(c, t, str_starts(t->url, STR("https:")), err);

	if (r == 0)
		r = ask(c, t, ret, err);
	http_client_free(TAKE(t->client));
	tls_context_free(TAKE(t->tls));
	return r;
}

int probe_check_http(struct probe_check *c, enum check_result *ret, struct err *err)
{
	struct val action = val_get(c->handler, httpGet);
	struct target t = { 0 };
	int r = url_make(c, action, &t, err);

	if (r < 0)
		return r;
	headers_make(c, action, &t);
	r = ask_by(c, &t, ret, err);
	/* Hooks that said https when kubelets did not look at it yet. */
	if (r == 0 && c->hook && *ret == CHECK_FAILURE && str_ends(c->output, STR("server gave HTTP response to HTTPS client"))) {
		t.url = arena_printf(c->arena, "http" STR_FMT, STR_ARG(str_skip(t.url, strlen("https"))));
		r = ask_by(c, &t, ret, err);
	}
	return r;
}
