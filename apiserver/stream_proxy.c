/* Passing on: headers, bytes both ways, upgrades, and SPDY inside of WebSocket messages. */
#include "apiserver/stream_proxy.h"

#include "apiserver/relay.h"
#include "apiserver/write.h"
#include "base/fiber.h"
#include "base/mem.h"
#include "net/http1.h"
#include "net/spdy.h"
#include "net/websocket.h"

#define TUNNEL_PREFIX "SPDY/3.1+"

enum { COPY_BYTES = 16 << 10, CLOSE_WAIT_MS = 1000 };

/* ---- headers ---- */

static bool is_hop_by_hop(str name)
{
	static const str names[] = { STR_INIT("connection"), STR_INIT("proxy-connection"), STR_INIT("keep-alive"),
				     STR_INIT("proxy-authenticate"), STR_INIT("proxy-authorization"), STR_INIT("te"),
				     STR_INIT("trailer"),
				     STR_INIT("transfer-encoding"), STR_INIT("upgrade") };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

/* Of this server's own business, or made anew for the other connection. */
static bool is_ours(str name)
{
	return str_eq(name, STR("authorization")) || str_eq(name, STR("host")) || str_eq(name, STR("content-length")) ||
	       str_eq(name, STR("expect")) || str_eq(name, STR("x-forwarded-for")) || str_starts(name, STR("impersonate-"));
}

bool proxy_is_upgrade(const struct request *q)
{
	return http1_has_token(q->http->headers, q->http->n_headers, STR("connection"), STR("upgrade"));
}

static str client_address(const struct request *q)
{
	str text = q->http->peer->address;
	ptrdiff_t colon = str_rchr(text, ':');
	text = colon < 0 ? text : str_head(text, (size_t)colon);
	return text.n > 2 && text.p[0] == '[' ? str_span(text.p + 1, text.n - 2) : text;
}

/* Those of the client before us, and the one who speaks to us. */
static str forwarded_for(struct request *q)
{
	str before = http_request_header(q->http, STR("x-forwarded-for")), address = client_address(q);
	return before.n ? arena_printf(q->arena, STR_FMT ", " STR_FMT, STR_ARG(before), STR_ARG(address)) : address;
}

struct http_header *proxy_request_headers(struct request *q, bool upgrade, size_t more, size_t *ret_n)
{
	const struct http_exchange *x = q->http;
	struct http_header *out = ARENA_ARRAY(q->arena, struct http_header, x->n_headers + 2 + more);
	size_t n = 0;
	for (size_t i = 0; i < x->n_headers; i++) {
		str name = x->headers[i].name;
		bool hop = is_hop_by_hop(name) || http1_has_token(x->headers, x->n_headers, STR("connection"), name);
		if (upgrade && (str_eq(name, STR("connection")) || str_eq(name, STR("upgrade"))))
			hop = false;
		if (!hop && !is_ours(name))
			out[n++] = x->headers[i];
	}
	out[n++] = (struct http_header){ STR("host"), x->authority };
	out[n++] = (struct http_header){ STR("x-forwarded-for"), forwarded_for(q) };
	*ret_n = n;
	return out;
}

struct http_header *proxy_response_headers(struct request *q, const struct http1_head *head, size_t more, size_t *ret_n)
{
	struct http_header *out = ARENA_ARRAY(q->arena, struct http_header, head->n_headers + more);
	size_t n = 0;
	for (size_t i = 0; i < head->n_headers; i++) {
		str name = head->headers[i].name;
		if (!is_hop_by_hop(name) && !str_eq(name, STR("content-length")) &&
		    !http1_has_token(head->headers, head->n_headers, STR("connection"), name))
			out[n++] = (struct http_header){ arena_str(q->arena, name),
							 arena_str(q->arena, head->headers[i].value) };
	}
	*ret_n = n;
	return out;
}

static void add(struct http_header *headers, size_t *n, str name, str value)
{
	headers[(*n)++] = (struct http_header){ name, value };
}

/* ---- bytes both ways ---- */

/* Two ends of a tunnel. The client's is a stream, or WebSocket messages. */
struct tunnel {
	struct stream *client, *server;
	struct ws *ws;
	bool ended;
	struct fiber_cond changed;
};

static int end(struct tunnel *t)
{
	t->ended = true;
	fiber_cond_broadcast(&t->changed);
	return 0;
}

static ssize_t read_client(struct tunnel *t, char *room, str *ret)
{
	bool last;
	if (t->ws) {
		int r = ws_read_part(t->ws, ret, &last, NULL);
		return r;
	}
	ssize_t n = stream_read(t->client, room, COPY_BYTES, NULL);
	*ret = str_span(room, n > 0 ? (size_t)n : 0);
	return n;
}

static int upstream(void *arg)
{
	struct tunnel *t = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(COPY_BYTES);
	str data;
	while (read_client(t, room, &data) > 0 && (!data.n || stream_write(t->server, data.p, data.n, NULL) == 0))
		;
	return end(t);
}

static int downstream(void *arg)
{
	struct tunnel *t = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(COPY_BYTES);
	ssize_t n;
	while ((n = stream_read(t->server, room, COPY_BYTES, NULL)) > 0) {
		str data = str_span(room, (size_t)n);
		int r = t->ws ? ws_write(t->ws, WS_BINARY, data, NULL) : stream_write(t->client, data.p, data.n, NULL);
		if (r < 0)
			break;
	}
	return end(t);
}

/* (suspends) Until one direction has ended: then the other one has nobody to talk to. */
static void run_tunnel(struct tunnel *t)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	fiber_cond_init(&t->changed, "one side of a tunnel to end");
	int r = fiber_group_spawn(&group, upstream, t, NULL, "tunnel up");
	if (r == 0)
		r = fiber_group_spawn(&group, downstream, t, NULL, "tunnel down");
	while (r == 0 && !t->ended)
		r = fiber_cond_wait(&t->changed, NULL);
}

/* ---- upgrades ---- */

str proxy_reason(const struct err *err)
{
	str text = err_str(err);
	ptrdiff_t at = str_find(text, STR("\": "));
	return at < 0 ? text : str_skip(text, (size_t)at + 3);
}

static int dial_failed(struct request *q, const struct err *err)
{
	str text = proxy_reason(err);
	return fail_plain(q, "error dialing backend: " STR_FMT, STR_ARG(text));
}

/* The other side does not want to: what it says is for the client. */
static int refuse(struct request *q, struct http_call *call, const struct http1_head *head)
{
	size_t n;
	if (head->status < 400)
		return fail_plain(q, "invalid upgrade response: status code %d", head->status);
	struct http_header *headers = proxy_response_headers(q, head, 0, &n);
	answer_sent(q, head->status);
	relay_body(q->http, head->status, headers, n, call, head->content_length);
	return 0;
}

/* Sends an upgrade request. 1: agreed; 0: refused, and answered. */
static int ask(struct request *q, const struct proxy_target *target, str method, const struct http_header *headers, size_t n,
	       struct http_call **ret_call, const struct http1_head **ret_head)
{
	struct err why = ERR_INIT;
	struct http_request req = { .method = method, .url = target->url, .headers = headers, .n_headers = n };
	int r = http_call_open(target->client, &req, ret_call, &why);
	if (r == 0)
		r = http_call_head(*ret_call, ret_head, &why);
	if (r < 0)
		return r == -ERR_CANCELED ? r : dial_failed(q, &why);
	return (*ret_head)->status == 101 ? 1 : refuse(q, *ret_call, *ret_head);
}

int proxy_upgrade(struct request *q, const struct proxy_target *target, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	CLEANUP(stream_freep) struct stream *server = NULL;
	CLEANUP(stream_freep) struct stream *client = NULL;
	const struct http1_head *head;
	size_t n;
	struct http_header *headers = proxy_request_headers(q, true, 0, &n);
	int r = ask(q, target, q->method, headers, n, &call, &head);
	if (r <= 0)
		return r;
	headers = proxy_response_headers(q, head, 2, &n);
	add(headers, &n, STR("connection"), STR("Upgrade"));
	add(headers, &n, STR("upgrade"), arena_str(q->arena, head->upgrade));
	if ((r = http_call_upgrade(call, &server, err)) < 0 || (r = http_upgrade(q->http, headers, n, &client, err)) < 0)
		return r;
	answer_sent(q, 101);
	struct tunnel t = { .client = client, .server = server };
	run_tunnel(&t);
	return 0;
}

/* ---- SPDY in WebSocket messages ---- */

/* The next of the client's tunnelled protocols ("SPDY/3.1+portforward.k8s.io"), without the prefix; n == 0: no more. */
static str next_tunnelled(str *list)
{
	while (list->n) {
		str one;
		str_cut(*list, ',', &one, list);
		one = str_trim(one);
		if (str_starts(one, STR(TUNNEL_PREFIX)) && str_ends(one, STR("k8s.io")))
			return str_skip(one, sizeof(TUNNEL_PREFIX) - 1);
	}
	return STR_NONE;
}

bool proxy_is_tunnel(const struct request *q)
{
	str list = http_request_header(q->http, STR("sec-websocket-protocol"));
	return ws_is_upgrade(q->http->headers, q->http->n_headers) && next_tunnelled(&list).n;
}

/* The client's request as one for SPDY. */
static struct http_header *spdy_headers(struct request *q, size_t *ret_n)
{
	enum { PROTOCOLS_MAX = 16 };
	size_t all, n = 0;
	struct http_header *headers = proxy_request_headers(q, false, PROTOCOLS_MAX + 2, &all);
	for (size_t i = 0; i < all; i++)
		if (!str_starts(headers[i].name, STR("sec-websocket-")) &&
		    !str_eq(headers[i].name, STR("x-stream-protocol-version")))
			headers[n++] = headers[i];
	str list = http_request_header(q->http, STR("sec-websocket-protocol")), protocol;
	for (size_t i = 0; i < PROTOCOLS_MAX && (protocol = next_tunnelled(&list)).n; i++)
		add(headers, &n, STR("x-stream-protocol-version"), protocol);
	add(headers, &n, STR("connection"), STR("Upgrade"));
	add(headers, &n, STR("upgrade"), STR("SPDY/3.1"));
	*ret_n = n;
	return headers;
}

int proxy_tunnel(struct request *q, const struct proxy_target *target, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	CLEANUP(stream_freep) struct stream *server = NULL;
	const struct http1_head *head;
	struct ws_headers answer;
	size_t n;
	struct http_header *headers = spdy_headers(q, &n);
	int r = ask(q, target, STR("POST"), headers, n, &call, &head);
	if (r <= 0)
		return r;
	if (!http1_eq_nocase(head->upgrade, STR("SPDY/3.1")))
		return fail_plain(q, "unable to upgrade: missing upgrade headers in response");
	str protocol = str_trim(http_header_find(head->headers, head->n_headers, STR("x-stream-protocol-version")));
	protocol = protocol.n ? arena_printf(q->arena, TUNNEL_PREFIX STR_FMT, STR_ARG(protocol)) : STR_NONE;
	if ((r = ws_accept_headers(q->arena, q->http->headers, q->http->n_headers, protocol, &answer, err)) < 0 ||
	    (r = http_call_upgrade(call, &server, err)) < 0)
		return r;
	struct stream *client;
	if ((r = http_upgrade(q->http, answer.headers, answer.n, &client, err)) < 0)
		return r;
	answer_sent(q, 101);
	CLEANUP(ws_freep) struct ws *ws = ws_new(client, &(struct ws_options){ 0 });
	struct tunnel t = { .ws = ws, .server = server };
	run_tunnel(&t);
	(void)ws_close(ws, WS_NORMAL, STR_NONE, CLOSE_WAIT_MS, NULL);
	return 0;
}
