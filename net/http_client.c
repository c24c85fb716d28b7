/*
 * Calls own their connection while they last; it goes back to the client's list of idle ones only when request and
 * response are complete and nothing else was read. Idle connections are watched by nobody: one that became readable (the
 * server closed it, or said something unasked) is dropped when it would be taken, and one that fails before the first
 * byte of a response is replaced once, as Go's transport does, when the request may be made twice. One timer closes those
 * that were idle for too long.
 */
#include "net/http_client.h"

#include "base/clock.h"
#include "base/fiber.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/http_proxy.h"
#include "net/stream_priv.h"
#include "net/url.h"

/* READ_BYTES and the end of a text are a power of two: buffers are. */
enum { READ_BYTES = 16 * 1024 - 1, IDLE_MAX = 256, INFORMATIONAL_MAX = 5 };

struct connection {
	struct list link;               /* among the idle ones */
	struct stream *stream;
	char *key;                      /* what it is connected to */
	int64_t since_ns;
};

struct http_client {
	struct http_client_options o;
	struct list idle;               /* oldest first */
	struct loop_timer timer;
	struct http_client_stats stats;
};

struct http_call {
	struct http_client *client;
	struct arena arena;
	struct connection *connection;  /* NULL once given back or given away */
	struct url url;
	const char *dial, *key, *label; /* in the arena; label: Get "https://..." */
	uint16_t port;
	const struct http_proxy *proxy; /* NULL: none */
	struct buf out;                 /* the request's head */
	str body;
	bool reused, streamed, chunked, sent, head_known, method_head;
	bool repeatable;                /* does no harm when the server gets it twice */
	bool aborted;
	uint64_t left;                  /* of a streamed body with a length */
	struct err write_err;           /* why the request could not be sent; told when there is no response either */
	struct buf in;                  /* what was read */
	size_t at;                      /* and how much of it was used */
	struct http1_head head;
	struct http1_body decoder;
};

/* ---- connections ---- */

static void connection_free(struct connection *c)
{
	if (!c)
		return;
	list_remove(&c->link);
	stream_free(c->stream);
	free(c->key);
	free(c);
}

static int close_list(void *arg)
{
	struct list *old = arg;
	LIST_EACH_SAFE(struct connection, c, old, link)
		connection_free(c);
	free(old);
	return 0;
}

static int64_t idle_due_ns(const struct http_client *c, const struct connection *conn)
{
	return conn->since_ns + c->o.idle_timeout_ms * NS_PER_MS;
}

static void start_timer(struct http_client *c)
{
	struct connection *oldest = LIST_FIRST(struct connection, &c->idle, link);
	if (oldest)
		loop_timer_start(&c->timer, idle_due_ns(c, oldest));
	else
		loop_timer_stop(&c->timer);
}

/* Closing suspends, so a fiber of its own does it. Without one they wait for the next turn. */
static void idle_expired(struct loop_timer *timer)
{
	struct http_client *c = CONTAINER_OF(timer, struct http_client, timer);
	struct list *old = mem_alloc(sizeof(*old));
	list_init(old);
	LIST_EACH_SAFE(struct connection, conn, &c->idle, link) {
		if (idle_due_ns(c, conn) > clock_now_ns())
			break;
		list_remove(&conn->link);
		list_add(old, &conn->link);
		c->stats.idle--;
	}
	if (fiber_spawn(close_list, old, NULL, NULL, "http idle close") < 0) {
		LIST_EACH_SAFE(struct connection, conn, old, link) {
			list_remove(&conn->link);
			conn->since_ns = clock_now_ns();
			list_add(&c->idle, &conn->link);
			c->stats.idle++;
		}
		free(old);
	}
	start_timer(c);
}

/* (suspends) The newest idle one for this place that still looks alive. */
static struct connection *take_idle(struct http_client *c, const char *key)
{
	for (;;) {
		struct connection *found = NULL;
		LIST_EACH(struct connection, conn, &c->idle, link)
			if (strcmp(conn->key, key) == 0)
				found = conn;
		if (!found)
			return NULL;
		list_remove(&found->link);
		c->stats.idle--;
		start_timer(c);
		if (stream_is_quiet(found->stream))
			return found;
		connection_free(found);
	}
}

/* (suspends) */
static void put_idle(struct http_client *c, struct connection *conn)
{
	unsigned same = 0;
	LIST_EACH(struct connection, other, &c->idle, link)
		same += strcmp(other->key, conn->key) == 0;
	if (same >= c->o.max_idle_per_host || c->stats.idle >= IDLE_MAX) {
		connection_free(conn);
		return;
	}
	conn->since_ns = clock_now_ns();
	list_add(&c->idle, &conn->link);
	c->stats.idle++;
	start_timer(c);
}

struct http_client *http_client_new(const struct http_client_options *o)
{
	struct http_client *c = mem_zalloc(sizeof(*c));
	c->o = *o;
	c->o.dial_timeout_ms = o->dial_timeout_ms ? o->dial_timeout_ms : 30000;
	c->o.idle_timeout_ms = o->idle_timeout_ms ? o->idle_timeout_ms : 90000;
	c->o.max_header_bytes = o->max_header_bytes ? o->max_header_bytes : 1 << 20;
	list_init(&c->idle);
	c->timer = (struct loop_timer)LOOP_TIMER_INIT(idle_expired);
	return c;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	loop_timer_stop(&c->timer);
	LIST_EACH_SAFE(struct connection, conn, &c->idle, link)
		connection_free(conn);
	free(c);
}

void http_client_freep(struct http_client **c) { http_client_free(*c); }

struct http_client_stats http_client_stats(const struct http_client *c) { return c->stats; }

/* ---- the request ---- */

/* Get "https://10.0.0.1:10250/pods" */
static const char *make_label(struct arena *a, str method, str url)
{
	char *op = (char *)arena_str(a, str_head(method, 20)).p;
	for (char *c = op; *c; c++)
		if (c > op && *c >= 'A' && *c <= 'Z')
			*c = (char)(*c | 32);
	return arena_printf(a, "%s \"" STR_FMT "%s\"", op, STR_ARG(str_head(url, 250)), url.n > 250 ? "..." : "").p;
}

static int check_request(const struct http_request *q, const struct url *u, const struct http_client *c, struct err *err)
{
	bool https = str_eq(u->scheme, STR("https"));
	if (!https && !str_eq(u->scheme, STR("http")))
		return err_set(err, ERR_BAD_REQUEST, "unsupported protocol scheme \"" STR_FMT "\"", STR_ARG(u->scheme));
	if (https && !c->o.tls)
		return err_set(err, ERR_BAD_REQUEST, "no TLS settings for an https URL");
	if (!http1_is_token(q->method))
		return err_set(err, ERR_BAD_REQUEST, "net/http: invalid method \"" STR_FMT "\"", STR_ARG(q->method));
	if (str_chr(u->path, ' ') >= 0 || str_chr(u->query, ' ') >= 0)
		return err_set(err, ERR_BAD_REQUEST, "a space in the URL");
	for (size_t i = 0; i < q->n_headers; i++) {
		if (!http1_is_token(q->headers[i].name))
			return err_set(err, ERR_BAD_REQUEST, "net/http: invalid header field name");
		if (!http1_is_value(q->headers[i].value))
			return err_set(err, ERR_BAD_REQUEST, "net/http: invalid header field value for \"" STR_FMT "\"",
				       STR_ARG(q->headers[i].name));
	}
	return 0;
}

static bool is_own_header(str name)
{
	return http1_eq_nocase(name, STR("host")) || http1_eq_nocase(name, STR("content-length")) ||
	       http1_eq_nocase(name, STR("transfer-encoding"));
}

static void add_framing(struct http_call *call, const struct http_request *q)
{
	char digits[24];
	if (call->chunked) {
		http1_add_header(&call->out, STR("transfer-encoding"), STR("chunked"));
		return;
	}
	/* As Go: methods that usually have a body say that they have none. */
	bool usual = str_eq(q->method, STR("POST")) || str_eq(q->method, STR("PUT")) || str_eq(q->method, STR("PATCH"));
	uint64_t n = q->streamed ? call->left : q->body.n;
	if (!n && !usual)
		return;
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	http1_add_header(&call->out, STR("content-length"), str_span(digits, (size_t)len));
}

/* Does the proxy ask the server itself, instead of passing bytes on? */
static bool takes_whole_requests(const struct http_call *call)
{
	return call->proxy && call->proxy->kind != HTTP_PROXY_SOCKS5 && str_eq(call->url.scheme, STR("http"));
}

static void make_head(struct http_call *call, const struct http_request *q)
{
	const struct url *u = &call->url;
	str host = http_header_find(q->headers, q->n_headers, STR("host"));
	str target = u->path.n ? u->path : STR("/");
	bool absolute = takes_whole_requests(call);
	if (absolute)
		target = arena_printf(&call->arena, "http://" STR_FMT STR_FMT, STR_ARG(u->authority), STR_ARG(target));
	if (u->query.n)
		target = arena_printf(&call->arena, STR_FMT "?" STR_FMT, STR_ARG(target), STR_ARG(u->query));
	http1_add_request(&call->out, q->method, target);
	http1_add_header(&call->out, STR("host"), host.p ? host : u->authority);
	for (size_t i = 0; i < q->n_headers; i++)
		if (!is_own_header(q->headers[i].name))
			http1_add_header(&call->out, q->headers[i].name, q->headers[i].value);
	if (absolute && call->proxy->authorization.n)
		http1_add_header(&call->out, STR("proxy-authorization"), call->proxy->authorization);
	add_framing(call, q);
	http1_add_end(&call->out);
}

static bool is_repeatable(const struct http_request *q)
{
	static const str methods[] = { STR_INIT("GET"), STR_INIT("HEAD"), STR_INIT("OPTIONS"), STR_INIT("TRACE") };
	for (size_t i = 0; !q->streamed && i < ARRAY_LEN(methods); i++)
		if (str_eq(q->method, methods[i]))
			return true;
	return false;
}

static int call_init(struct http_call *call, const struct http_request *q, struct err *err)
{
	int r = url_parse(&call->arena, arena_str(&call->arena, q->url), &call->url, err);
	if (r < 0)
		return err_wrap(err, r, "parse \"" STR_FMT "\"", STR_ARG(str_head(q->url, 250)));
	call->label = make_label(&call->arena, q->method, q->url);
	if ((r = check_request(q, &call->url, call->client, err)) < 0)
		return err_wrap(err, r, "%s", call->label);
	call->dial = arena_str(&call->arena, q->dial ? str_of(q->dial) : call->url.host).p;
	call->port = q->dial_port ? q->dial_port : call->url.port;
	call->proxy = q->proxy;
	call->streamed = q->streamed;
	call->chunked = q->streamed && q->content_length < 0;
	call->left = q->streamed && q->content_length > 0 ? (uint64_t)q->content_length : 0;
	call->body = q->streamed ? STR_NONE : q->body;
	call->method_head = str_eq(q->method, STR("HEAD"));
	call->repeatable = is_repeatable(q);
	call->key = arena_printf(&call->arena, STR_FMT "|%s|%u|%s|%u", STR_ARG(call->url.scheme), call->dial, call->port,
				 call->proxy ? call->proxy->host : "", call->proxy ? call->proxy->port : 0).p;
	make_head(call, q);
	return buf_check(&call->out, "the head of the request", err);
}

/* ---- sending ---- */

/* (suspends) */
static int dial_stream(struct http_call *call, struct stream **ret, struct err *err)
{
	bool https = str_eq(call->url.scheme, STR("https"));
	struct tls_context *tls = call->client->o.tls;
	if (takes_whole_requests(call))
		return http_proxy_connect(call->proxy, tls, ret, err);
	if (call->proxy)
		return http_proxy_dial(call->proxy, call->dial, call->port, tls, https, ret, err);
	return stream_dial(call->dial, call->port, https ? tls : NULL, ret, err);
}

/* (suspends) */
static int dial(struct http_call *call, struct err *err)
{
	struct http_client *c = call->client;
	struct stream *stream = NULL;
	DEADLINE_SCOPE(c->o.dial_timeout_ms);
	int r = dial_stream(call, &stream, err);
	if (r < 0)
		return err_wrap(err, r, "%s", call->label);
	size_t n = strlen(call->key) + 1;
	call->connection = mem_zalloc(sizeof(*call->connection));
	call->connection->stream = stream;
	call->connection->key = mem_alloc(n);
	memcpy(call->connection->key, call->key, n);
	c->stats.dialled++;
	return 0;
}

/* (suspends) Head and body; small ones in one piece. Errors are kept: the response may say more. */
static int send_request(struct http_call *call, struct err *err)
{
	struct stream *s = call->connection->stream;
	int r;
	err_clear(&call->write_err);
	if (call->body.n && call->body.n <= READ_BYTES) {
		CLEANUP(buf_done) struct buf whole = BUF_INIT(call->out.n + call->body.n);
		buf_add(&whole, buf_str(&call->out));
		buf_add(&whole, call->body);
		r = stream_write(s, whole.p, whole.n, &call->write_err);
	} else {
		r = stream_write(s, call->out.p, call->out.n, &call->write_err);
		if (r == 0 && call->body.n)
			r = stream_write(s, call->body.p, call->body.n, &call->write_err);
	}
	call->sent = r == 0 && !call->streamed;
	if (r == -ERR_CANCELED || r == -ERR_TIMEOUT) {
		if (err)
			*err = call->write_err;
		return err_wrap(err, r, "%s", call->label);
	}
	return 0;
}

/* (suspends) */
static int connect_and_send(struct http_call *call, bool fresh, struct err *err)
{
	int r;
	if (!fresh && (call->connection = take_idle(call->client, call->key))) {
		call->reused = true;
		call->client->stats.reused++;
	} else {
		call->reused = false;
		if ((r = dial(call, err)) < 0)
			return r;
	}
	return send_request(call, err);
}

int http_call_open(struct http_client *c, const struct http_request *q, struct http_call **ret_call, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = mem_zalloc(sizeof(*call));
	call->client = c;
	arena_init(&call->arena);
	buf_init(&call->out, c->o.max_header_bytes);
	buf_init(&call->in, c->o.max_header_bytes + READ_BYTES);
	int r = call_init(call, q, err);
	if (r < 0 || (r = connect_and_send(call, false, err)) < 0)
		return r;
	/* A streamed body cannot be sent again later, so a dead connection must show now. */
	if (call->streamed && call->write_err.code && call->reused) {
		connection_free(TAKE(call->connection));
		if ((r = connect_and_send(call, true, err)) < 0)
			return r;
	}
	*ret_call = TAKE(call);
	return 0;
}

void http_call_free(struct http_call *call)
{
	if (!call)
		return;
	bool again = call->connection && call->head_known && http1_body_done(&call->decoder) && call->head.keep_alive &&
		     call->sent && call->head.status != 101 && call->at == call->in.n;
	if (again)
		put_idle(call->client, TAKE(call->connection));
	connection_free(TAKE(call->connection));
	buf_done(&call->out);
	buf_done(&call->in);
	arena_done(&call->arena);
	free(call);
}

void http_call_freep(struct http_call **call) { http_call_free(*call); }

void http_call_abort(struct http_call *call)
{
	call->aborted = true;
	if (call->connection)
		stream_abort(call->connection->stream);
}

/* (suspends) */
static int write_part(struct http_call *call, str data, struct err *err)
{
	if (!call->connection)
		return err_set(err, ERR_GONE, "%s: the connection is gone", call->label);
	int r = stream_write(call->connection->stream, data.p, data.n, err);
	return r < 0 ? err_wrap(err, r, "%s: write body", call->label) : 0;
}

int http_call_write(struct http_call *call, str data, struct err *err)
{
	char head[HTTP1_CHUNK_HEAD_MAX];
	int r;
	if (!call->streamed || call->sent || (!call->chunked && data.n > call->left))
		return err_set(err, ERR_BAD_REQUEST, "%s: more body than announced", call->label);
	if (!data.n)
		return 0;
	if (!call->chunked) {
		call->left -= data.n;
		return write_part(call, data, err);
	}
	size_t n = http1_chunk_head(head, data.n);
	if ((r = write_part(call, str_span(head, n), err)) < 0 || (r = write_part(call, data, err)) < 0)
		return r;
	return write_part(call, HTTP1_CHUNK_TAIL, err);
}

int http_call_write_end(struct http_call *call, struct err *err)
{
	if (!call->streamed || call->sent)
		return 0;
	if (!call->chunked && call->left)
		return err_set(err, ERR_BAD_REQUEST, "%s: less body than announced", call->label);
	int r = call->chunked ? write_part(call, HTTP1_LAST_CHUNK, err) : 0;
	call->sent = r == 0;
	return r;
}

/* ---- receiving ---- */

/* (suspends) Reads more into the buffer: how many bytes, 0 at the end. */
static ssize_t fill(struct http_call *call, struct err *err)
{
	if (!call->connection)
		return err_set(err, ERR_GONE, "the connection is gone");
	if (call->at == call->in.n) {
		buf_reset(&call->in);
		call->at = 0;
	}
	char *p = buf_reserve(&call->in, READ_BYTES);
	if (!p)
		return err_set(err, ERR_TOO_LARGE, "the head of the response is too large");
	ssize_t n = stream_read(call->connection->stream, p, READ_BYTES, err);
	if (n > 0)
		buf_commit(&call->in, (size_t)n);
	return n;
}

/* (suspends) One head, be it 1xx. -ERR_UNAVAILABLE when the server does not speak HTTP or has gone. */
static int read_head(struct http_call *call, struct err *err)
{
	struct http1_parser p;
	size_t used;
	http1_response_init(&p, call->client->o.max_header_bytes, call->method_head);
	for (;;) {
		str in = str_skip(buf_str(&call->in), call->at);
		int r = in.n ? http1_parse(&p, in, &call->arena, &call->head, &used, err) : 0;
		if (r < 0)
			return r == -ERR_BAD_REQUEST ? err_set(err, ERR_UNAVAILABLE, "malformed HTTP response") : r;
		if (r == 1) {
			call->at += used;
			return 0;
		}
		ssize_t n = fill(call, err);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return err_set(err, ERR_UNAVAILABLE, "%s", in.n ? "unexpected EOF" : "EOF");
	}
}

static int read_final_head(struct http_call *call, struct err *err)
{
	for (int i = 0; i <= INFORMATIONAL_MAX; i++) {
		int r = read_head(call, err);
		if (r < 0)
			return r;
		if (call->head.status >= 200 || call->head.status == 101)
			return 0;
	}
	return err_set(err, ERR_UNAVAILABLE, "too many 1xx informational responses");
}

/* (suspends) The head timeout counts from here: the request is on its way. */
static int await_head(struct http_call *call, struct err *err)
{
	if (!call->client->o.head_timeout_ms)
		return read_final_head(call, err);
	DEADLINE_SCOPE(call->client->o.head_timeout_ms);
	int r = read_final_head(call, err);
	return r == -ERR_TIMEOUT ? err_set(err, ERR_TIMEOUT, "timeout awaiting response headers") : r;
}

int http_call_head(struct http_call *call, const struct http1_head **ret_head, struct err *err)
{
	int r = call->head_known ? 0 : await_head(call, err);
	bool gone = (r == -ERR_UNAVAILABLE || r == -ERR_GONE) && call->in.n == 0;
	if (gone && call->reused && call->repeatable && !call->aborted) {
		connection_free(TAKE(call->connection));
		if ((r = connect_and_send(call, true, err)) < 0)
			return r;
		r = await_head(call, err);
	}
	if (r < 0) {
		if (r != -ERR_CANCELED && r != -ERR_TIMEOUT && call->write_err.code && err) {
			*err = call->write_err;
			r = -(int)err->code;
		}
		return err_wrap(err, r, "%s", call->label);
	}
	if (!call->head_known)
		http1_body_init(&call->decoder, &call->head);
	call->head_known = true;
	*ret_head = &call->head;
	return 0;
}

/* The server broke the rules: not the fault of this request. */
static int broken(struct http_call *call, struct err *err)
{
	if (err)
		err->code = ERR_UNAVAILABLE;
	return err_wrap(err, -ERR_UNAVAILABLE, "%s", call->label);
}

ssize_t http_call_read(struct http_call *call, void *p, size_t n, struct err *err)
{
	const struct http1_head *head;
	int r = http_call_head(call, &head, err);
	if (r < 0)
		return r;
	while (n > 0 && !http1_body_done(&call->decoder)) {
		size_t used;
		str data, in = str_head(str_skip(buf_str(&call->in), call->at), n);
		if (in.n) {
			if ((r = http1_body_next(&call->decoder, in, &used, &data, err)) < 0)
				return broken(call, err);
			call->at += used;
			if (data.n) {
				memcpy(p, data.p, data.n);
				return (ssize_t)data.n;
			}
			continue;
		}
		ssize_t got = fill(call, err);
		if (got < 0)
			return err_wrap(err, (int)got, "%s: read body", call->label);
		if (got == 0)
			return http1_body_eof(&call->decoder, err) < 0 ? broken(call, err) : 0;
	}
	return 0;
}

int http_call_read_all(struct http_call *call, size_t max, str *ret_body, struct err *err)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(max);
	for (;;) {
		char piece[2048];
		ssize_t n = http_call_read(call, piece, sizeof(piece), err);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		buf_add(&all, str_span(piece, (size_t)n));
		if (all.overflow)
			return err_wrap(err, buf_check(&all, "the body of the response", err), "%s", call->label);
	}
	*ret_body = arena_str(&call->arena, buf_str(&all));
	return 0;
}

int http_call_upgrade(struct http_call *call, struct stream **ret_stream, struct err *err)
{
	const struct http1_head *head;
	int r = http_call_head(call, &head, err);
	if (r < 0)
		return r;
	if (head->status != 101 || !call->connection)
		return err_set(err, ERR_BAD_REQUEST, "%s: the server did not switch protocols (status %d)", call->label,
			       head->status);
	struct connection *c = TAKE(call->connection);
	stream_unread(c->stream, str_skip(buf_str(&call->in), call->at));
	*ret_stream = TAKE(c->stream);
	connection_free(c);
	return 0;
}
