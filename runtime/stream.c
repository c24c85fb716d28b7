/*
 * The server: tokens, and who handles what. A request waits in a list, the oldest first, until somebody comes with its token or it is
 * too old; it is taken away before it is looked at, so that no token works twice.
 */
#include "runtime/stream_priv.h"

#include <stdarg.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"

enum { TOKEN_BYTES = 18, TOKEN_TEXT = 24, WAITING_MAX = 1000, REQUEST_MAX = 64 << 10 };
#define TOKEN_LIFE_NS (60 * (int64_t)1000000000)

static const char *const kinds[] = { [STREAM_EXEC] = "exec", [STREAM_ATTACH] = "attach", [STREAM_PORT_FORWARD] = "portforward" };

struct waiting {
	struct list link;
	char token[TOKEN_TEXT + 1];
	int64_t due_ns;
	struct arena arena;
	struct stream_request q;             /* in the arena */
};

struct stream_server {
	struct runtime *runtime;
	struct http_server *http;
	char *base;                          /* "http://127.0.0.1:41312" */
	struct list waiting;
	struct map tokens;
};

/* ---- tokens ---- */

static void waiting_drop(struct stream_server *s, struct waiting *w)
{
	list_remove(&w->link);
	map_remove(&s->tokens, str_of(w->token));
}

static void waiting_free(struct waiting *w)
{
	arena_done(&w->arena);
	free(w);
}

static void drop_old(struct stream_server *s, int64_t now)
{
	struct waiting *w;
	while ((w = LIST_FIRST(struct waiting, &s->waiting, link)) && w->due_ns <= now) {
		waiting_drop(s, w);
		waiting_free(w);
	}
}

static int check_request(const struct stream_request *q, struct err *err)
{
	if (q->kind == STREAM_PORT_FORWARD)
		return q->id.n ? 0 : err_set(err, ERR_INVALID, "missing required pod_sandbox_id");
	if (!q->id.n)
		return err_set(err, ERR_INVALID, "missing required container_id");
	if (q->terminal && q->err)
		return err_set(err, ERR_INVALID, "tty and stderr cannot both be true");
	if (!q->in && !q->out && !q->err)
		return err_set(err, ERR_INVALID, "one of stdin, stdout, or stderr must be set");
	return 0;
}

int stream_url(struct stream_server *s, const struct stream_request *q, struct arena *a, str *ret_url, struct err *err)
{
	uint8_t random[TOKEN_BYTES];
	int r = check_request(q, err);
	if (r < 0)
		return r;
	drop_old(s, clock_now_ns());
	if (map_len(&s->tokens) >= WAITING_MAX)
		return err_set(err, ERR_TOO_MANY_REQUESTS, "maximum number of in-flight requests exceeded");
	struct waiting *w = mem_zalloc(sizeof(*w));
	w->q = *q;
	w->q.id = arena_str(&w->arena, q->id);
	w->q.args = val_copy(&w->arena, q->args);
	w->q.ports = val_copy(&w->arena, q->ports);
	w->due_ns = clock_now_ns() + TOKEN_LIFE_NS;
	random_bytes(random, sizeof(random));
	base64url_encode(w->token, str_span((const char *)random, sizeof(random)));
	list_add(&s->waiting, &w->link);
	map_put(&s->tokens, str_of(w->token), w);
	*ret_url = arena_printf(a, "%s/%s/%s", s->base, kinds[q->kind], w->token);
	return 0;
}

/* ---- upgrades ---- */

void stream_refuse(struct http_exchange *x, int status, const char *fmt, ...)
{
	static const struct http_header headers[] = { { STR_INIT("content-type"), STR_INIT("text/plain; charset=utf-8") },
						      { STR_INIT("x-content-type-options"), STR_INIT("nosniff") } };
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(x->arena, fmt, ap);
	va_end(ap);
	http_answer(x, status, headers, ARRAY_LEN(headers), arena_join(x->arena, text, STR("\n")));
}

int stream_accept_spdy(struct http_exchange *x, const char *const *protocols, struct spdy **ret, str *ret_protocol, struct err *err)
{
	bool offered;
	struct stream *stream;
	str protocol = spdy_choose_protocol(x->headers, x->n_headers, protocols, &offered);
	if (!offered) {
		stream_refuse(x, 400, "unable to upgrade: X-Stream-Protocol-Version is required");
		return 0;
	}
	if (!protocol.n) {
		str wanted = http_request_header(x, STR("x-stream-protocol-version"));
		stream_refuse(x, 403, "unable to upgrade: unable to negotiate protocol: client supports [" STR_FMT "]", STR_ARG(wanted));
		return 0;
	}
	if (!spdy_is_upgrade(x->headers, x->n_headers)) {
		stream_refuse(x, 400, "unable to upgrade: missing upgrade headers in request");
		return 0;
	}
	struct http_header headers[] = { { STR("connection"), STR("Upgrade") }, { STR("upgrade"), STR("SPDY/3.1") },
					 { STR("x-stream-protocol-version"), protocol } };
	int r = http_upgrade(x, headers, ARRAY_LEN(headers), &stream, err);
	if (r == 0)
		r = spdy_new(stream, &(struct spdy_options){ .idle_timeout_ms = STREAM_IDLE_MS }, ret, err);
	*ret_protocol = protocol;
	return r < 0 ? r : 1;
}

int stream_accept_ws(struct http_exchange *x, const char *const *protocols, struct ws **ret, str *ret_protocol, struct err *err)
{
	struct ws_headers answer;
	struct stream *stream;
	struct err why = ERR_INIT;
	str protocol = ws_choose_protocol(x->headers, x->n_headers, protocols);
	if (!protocol.n && http_request_header(x, STR("sec-websocket-protocol")).n) {
		stream_refuse(x, 403, "unable to upgrade websocket connection: the requested protocols are not supported");
		return 0;
	}
	if (ws_accept_headers(x->arena, x->headers, x->n_headers, protocol, &answer, &why) < 0) {
		stream_refuse(x, 400, "unable to upgrade websocket connection: %s", why.msg);
		return 0;
	}
	int r = http_upgrade(x, answer.headers, answer.n, &stream, err);
	if (r < 0)
		return r;
	*ret = ws_new(stream, &(struct ws_options){ 0 });
	*ret_protocol = protocol;
	return 1;
}

/* ---- requests ---- */

/* "/exec/<token>": the request, which now is the caller's; NULL: there is none. */
static struct waiting *take(struct stream_server *s, str path)
{
	str kind, token;
	drop_old(s, clock_now_ns());
	if (!str_starts(path, STR("/")) || !str_cut(str_skip(path, 1), '/', &kind, &token))
		return NULL;
	struct waiting *w = map_get(&s->tokens, token);
	if (!w || !str_eq(kind, str_of(kinds[w->q.kind])))
		return NULL;
	waiting_drop(s, w);
	return w;
}

static int handle(struct http_exchange *x, void *arg)
{
	static int (*const handlers[])(struct runtime *, struct http_exchange *, const struct stream_request *, struct err *) = {
		[STREAM_EXEC] = stream_exec, [STREAM_ATTACH] = stream_attach, [STREAM_PORT_FORWARD] = stream_forward,
	};
	struct stream_server *s = arg;
	struct err err = ERR_INIT;
	if (!str_eq(x->method, STR("GET")) && !str_eq(x->method, STR("POST"))) {
		stream_refuse(x, 405, "405: Method Not Allowed");
		return 0;
	}
	struct waiting *w = take(s, x->path);
	if (!w) {
		stream_refuse(x, 404, "404 page not found");
		return 0;
	}
	int r = handlers[w->q.kind](s->runtime, x, &w->q, &err);
	if (r < 0 && r != -ERR_CANCELED)
		log_debug("a stream broke off", KV("kind", kinds[w->q.kind]), KV("id", w->q.id), KV("error", &err));
	waiting_free(w);
	return r;
}

/* ---- life ---- */

int stream_server_new(struct runtime *runtime, struct stream_server **ret, struct err *err)
{
	struct stream_server *s = mem_zalloc(sizeof(*s));
	struct http_server_options o = { .handle = handle, .arg = s, .max_header_bytes = REQUEST_MAX };
	const char *address = runtime->o.stream_address ? runtime->o.stream_address : "127.0.0.1";
	uint16_t port = 0;
	s->runtime = runtime;
	list_init(&s->waiting);
	int r = http_server_new(&o, &s->http, err);
	if (r == 0)
		r = http_server_listen(s->http, address, (uint16_t)runtime->o.stream_port, &port, err);
	if (r < 0) {
		stream_server_free(s);
		return err_wrap(err, r, "exec, attach and port-forward at %s", address);
	}
	bool v6 = str_chr(str_of(address), ':') >= 0;
	if (asprintf(&s->base, v6 ? "http://[%s]:%u" : "http://%s:%u", address, port) < 0)
		abort();
	*ret = s;
	return 0;
}

int stream_server_run(struct stream_server *s, struct err *err)
{
	return http_server_run(s->http, 0, err);
}

void stream_server_free(struct stream_server *s)
{
	if (!s)
		return;
	drop_old(s, INT64_MAX);
	map_done(&s->tokens);
	if (s->http)
		http_server_free(s->http);
	free(s->base);
	free(s);
}
