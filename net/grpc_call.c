/*
 * Calls: one exchange of messages over an HTTP/2 stream, for unary calls and streams alike. The events of the HTTP/2 client
 * fill it and wake the fiber that waits for it.
 */
#include "net/grpc.h"

#include "base/clock.h"
#include "base/mem.h"
#include "net/grpc_frame.h"
#include "net/grpc_priv.h"

enum {
	STATUS_NONE = -1,
	STATUS_TEXT_MAX = 4096,
	SEND_QUEUE_MAX = 1 << 20, /* beyond it senders wait */
	METADATA_MAX = 16,
};

struct exchange {
	struct http2_call http;
	struct fiber_cond changed;
	/* What goes out: framed bytes, then borrowed ones. */
	struct buf out;
	size_t out_at;
	str body;
	bool out_end;
	/* What comes in. */
	struct grpc_deframer in;
	struct list messages;
	int http_status, status;
	struct buf text;
	/* How it ended. */
	bool ended;
	enum http2_end how;
	uint32_t code;
	struct err failure; /* a message that cannot be taken */
	struct err broken;  /* HTTP2_BROKEN: why */
};

void grpc_message_free(struct grpc_message *m) { free(m); }
void grpc_message_freep(struct grpc_message **m) { grpc_message_free(*m); }

/* ---- events ---- */

static struct exchange *exchange_of(struct http2_call *call) { return CONTAINER_OF(call, struct exchange, http); }

static void on_header(struct http2_call *call, str name, str value)
{
	struct exchange *x = exchange_of(call);

	if (str_eq(name, STR(":status"))) {
		x->http_status = grpc_status_parse(value);
	} else if (str_eq(name, STR("grpc-status"))) {
		x->status = grpc_status_parse(value);
		if (x->status < 0)
			x->status = GRPC_UNKNOWN;
	} else if (str_eq(name, STR("grpc-message"))) {
		buf_reset(&x->text);
		grpc_message_decode(&x->text, str_head(value, STATUS_TEXT_MAX));
	}
}

static void exchange_fail(struct exchange *x)
{
	x->ended = true;
	http2_call_cancel(&x->http);
	fiber_cond_broadcast(&x->changed);
}

static void on_data(struct http2_call *call, str bytes)
{
	struct exchange *x = exchange_of(call);
	struct grpc_message *m;
	int r;

	while ((r = grpc_deframe(&x->in, &bytes, &m, &x->failure)) > 0) {
		list_add(&x->messages, &m->link);
		fiber_cond_broadcast(&x->changed); /* one fiber may wait to send, and another for this */
	}
	if (r < 0)
		exchange_fail(x);
	else
		call->held = !list_empty(&x->messages);
}

static size_t on_fill(struct http2_call *call, char *p, size_t n, bool *ret_end)
{
	struct exchange *x = exchange_of(call);
	size_t framed = MIN(n, x->out.n - x->out_at);
	size_t borrowed = MIN(n - framed, x->body.n);

	if (framed)
		memcpy(p, x->out.p + x->out_at, framed);
	x->out_at += framed;
	if (borrowed)
		memcpy(p + framed, x->body.p, borrowed);
	x->body = str_skip(x->body, borrowed);
	if (x->out_at == x->out.n) {
		buf_reset(&x->out);
		x->out_at = 0;
		*ret_end = x->out_end && x->body.n == 0;
		fiber_cond_broadcast(&x->changed);
	}
	return framed + borrowed;
}

static void on_end(struct http2_call *call, enum http2_end how, uint32_t code, const struct err *why)
{
	struct exchange *x = exchange_of(call);

	x->ended = true;
	x->how = how;
	x->code = code;
	if (why)
		x->broken = *why;
	fiber_cond_broadcast(&x->changed);
}

static const struct http2_call_events exchange_events = {
	.header = on_header, .data = on_data, .fill = on_fill, .end = on_end,
};

/* ---- an exchange ---- */

static void exchange_init(struct exchange *x, const struct grpc_channel *c)
{
	*x = (struct exchange){ .http = { .events = &exchange_events }, .status = STATUS_NONE,
				.in = { .max = c->max_message } };
	fiber_cond_init(&x->changed, "a gRPC answer");
	list_init(&x->messages);
	buf_init(&x->out, SIZE_MAX);
	buf_init(&x->text, STATUS_TEXT_MAX);
}

static struct grpc_message *exchange_take(struct exchange *x)
{
	struct grpc_message *m = LIST_FIRST(struct grpc_message, &x->messages, link);

	if (!m)
		return NULL;
	list_remove(&m->link);
	if (list_empty(&x->messages))
		http2_call_hold(&x->http, false);
	return m;
}

static void exchange_done(struct exchange *x)
{
	struct grpc_message *m;

	http2_call_cancel(&x->http);
	while ((m = exchange_take(x)))
		grpc_message_free(m);
	grpc_deframer_done(&x->in);
	buf_done(&x->out);
	buf_done(&x->text);
}

/* deadline_ns: INT64_MAX for none. */
static bool exchange_start(struct exchange *x, struct grpc_channel *c, struct http2_client *client, str path,
			   int64_t deadline_ns)
{
	const struct grpc_endpoint *e = &c->endpoints[c->at];
	struct http_header headers[8 + METADATA_MAX];
	char timeout[GRPC_TIMEOUT_TEXT];
	size_t n = 0;

	headers[n++] = (struct http_header){ STR(":method"), STR("POST") };
	headers[n++] = (struct http_header){ STR(":scheme"), e->tls ? STR("https") : STR("http") };
	headers[n++] = (struct http_header){ STR(":path"), path };
	headers[n++] = (struct http_header){ STR(":authority"), e->authority };
	headers[n++] = (struct http_header){ STR("content-type"), STR("application/grpc") };
	headers[n++] = (struct http_header){ STR("te"), STR("trailers") };
	headers[n++] = (struct http_header){ STR("user-agent"), STR("c8s") };
	if (deadline_ns != INT64_MAX)
		headers[n++] = (struct http_header){ STR("grpc-timeout"),
						     grpc_timeout_text(deadline_ns - clock_now_ns(), timeout) };
	for (size_t i = 0; i < c->n_metadata && i < METADATA_MAX; i++)
		headers[n++] = c->metadata[i];
	return http2_call_start(client, &x->http, headers, n);
}

/* The error of an exchange that has ended, or 0. */
static int exchange_result(const struct exchange *x, struct err *err)
{
	int status = x->status;

	if (x->failure.code != ERR_NONE)
		return err_set(err, x->failure.code, "%s", x->failure.msg);
	if (status == STATUS_NONE && x->http_status > 0 && x->http_status != 200)
		status = grpc_status_of_http(x->http_status);
	if (status == GRPC_OK && grpc_deframe_pending(&x->in))
		return err_set(err, ERR_INTERNAL, "grpc: the answer ends in the middle of a message");
	if (status == GRPC_OK)
		return 0;
	if (status > 0 && x->text.n)
		return err_set(err, grpc_status_err(status), STR_FMT, STR_ARG(buf_str(&x->text)));
	if (status > 0)
		return err_set(err, grpc_status_err(status), "grpc: status %s (HTTP status %d)", grpc_status_name(status),
			       x->http_status);
	if (x->how == HTTP2_BROKEN)
		return err_set(err, ERR_UNAVAILABLE, "grpc: the connection was lost: %s", x->broken.msg);
	if (x->how == HTTP2_REFUSED)
		return err_set(err, ERR_UNAVAILABLE, "grpc: the peer refused the call");
	return err_set(err, ERR_UNAVAILABLE, "grpc: the answer ended without a status (HTTP/2 code %u)", x->code);
}

/* ---- unary calls ---- */

/* The answer of a call that ended in order. */
static int unary_answer(struct exchange *x, struct grpc_message **ret_response, struct err *err)
{
	int r = exchange_result(x, err);

	if (r < 0)
		return r;
	CLEANUP(grpc_message_freep) struct grpc_message *m = exchange_take(x);
	if (!m || !list_empty(&x->messages))
		return err_set(err, ERR_INTERNAL, "grpc: %s", m ? "more than one answer" : "no answer");
	*ret_response = TAKE(m);
	return 0;
}

static int unary_once(struct grpc_channel *c, struct exchange *x, struct http2_client *client, str path, str request,
		      bool *ret_lost, struct err *err)
{
	char prefix[GRPC_PREFIX];
	int r = 0;

	grpc_prefix(prefix, request.n);
	buf_add(&x->out, str_span(prefix, GRPC_PREFIX));
	x->body = request;
	x->out_end = true;
	x->http.urgent = true;
	*ret_lost = true;
	if (!exchange_start(x, c, client, path, fiber_deadline_ns())) {
		x->how = HTTP2_REFUSED;
		return 0;
	}
	while (r == 0 && !x->ended)
		r = fiber_cond_wait(&x->changed, err);
	*ret_lost = x->ended && x->status == STATUS_NONE && x->failure.code == ERR_NONE &&
		    (x->http_status <= 0 || x->http_status == 200);
	return x->ended ? 0 : r;
}

struct unary {
	str path, request;
	unsigned flags;
	bool again;  /* it may be made once more */
	int status;  /* the peer's */
};

static int unary_try(struct grpc_channel *c, struct http2_client *client, struct unary *u,
		     struct grpc_message **ret_response, struct err *err)
{
	CLEANUP(exchange_done) struct exchange x;
	str endpoint = grpc_channel_endpoint(c);
	bool lost;

	exchange_init(&x, c);
	u->again = false;
	int r = unary_once(c, &x, client, u->path, u->request, &lost, err);
	if (r < 0)
		return r;
	u->status = x.status;
	u->again = lost && (x.how == HTTP2_REFUSED || !x.http.sent || (u->flags & GRPC_IDEMPOTENT));
	r = unary_answer(&x, ret_response, err);
	if (lost && !u->again) {
		(void)err_wrap(err, r, STR_FMT ": it is not known whether the request was carried out", STR_ARG(endpoint));
		if (err)
			err->code = ERR_TIMEOUT;
		return -ERR_TIMEOUT;
	}
	return r;
}

int grpc_call(struct grpc_channel *c, str path, unsigned flags, str request, struct grpc_message **ret_response,
	      int *ret_status, struct err *err)
{
	uint64_t max_failures = c->failures + c->n_endpoints;
	struct unary u = { .path = path, .request = request, .flags = flags, .status = STATUS_NONE };
	int r = 0;

	if (ret_status)
		*ret_status = STATUS_NONE;

	if (request.n > UINT32_MAX)
		return err_set(err, ERR_TOO_LARGE, "grpc: a request of %zu bytes cannot be sent", request.n);
	for (size_t tries = 0; tries <= c->n_endpoints; tries++) {
		struct http2_client *client;
		if ((r = grpc_channel_client(c, max_failures, &client, err)) < 0)
			return r;
		r = unary_try(c, client, &u, ret_response, err);
		if (!u.again)
			break;
	}
	if (ret_status)
		*ret_status = u.status;
	return r;
}

/* ---- streams ---- */

struct grpc_stream {
	struct exchange x;
	uint64_t generation;
};

int grpc_stream_open(struct grpc_channel *c, str path, struct grpc_stream **ret, struct err *err)
{
	uint64_t max_failures = c->failures + c->n_endpoints;

	for (size_t tries = 0; tries <= c->n_endpoints; tries++) {
		struct http2_client *client;
		int r = grpc_channel_client(c, max_failures, &client, err);
		if (r < 0)
			return r;
		struct grpc_stream *s = mem_alloc(sizeof *s);
		exchange_init(&s->x, c);
		s->generation = c->generation;
		/* The deadline in force is that of opening it. */
		if (exchange_start(&s->x, c, client, path, INT64_MAX)) {
			*ret = s;
			return 0;
		}
		grpc_stream_free(s);
	}
	return err_set(err, ERR_UNAVAILABLE, "grpc: no connection takes a stream");
}

static bool stream_closed(const struct grpc_stream *s) { return s->x.ended || s->x.out_end; }

static void stream_queue(struct grpc_stream *s, str message)
{
	char prefix[GRPC_PREFIX];

	grpc_prefix(prefix, message.n);
	buf_add(&s->x.out, str_span(prefix, GRPC_PREFIX));
	buf_add(&s->x.out, message);
	http2_call_resume(&s->x.http);
}

int grpc_stream_send(struct grpc_stream *s, str message, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0 && !stream_closed(s) && s->x.out.n > SEND_QUEUE_MAX)
		r = fiber_cond_wait(&s->x.changed, err);
	if (r < 0)
		return r;
	if (stream_closed(s))
		return err_set(err, ERR_GONE, "grpc: the stream has ended");
	if (message.n > UINT32_MAX)
		return err_set(err, ERR_TOO_LARGE, "grpc: a message of %zu bytes cannot be sent", message.n);
	stream_queue(s, message);
	return 0;
}

bool grpc_stream_try_send(struct grpc_stream *s, str message)
{
	if (stream_closed(s) || s->x.out.n > SEND_QUEUE_MAX || message.n > UINT32_MAX)
		return false;
	stream_queue(s, message);
	return true;
}

int grpc_stream_recv(struct grpc_stream *s, struct grpc_message **ret_message, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0 && list_empty(&s->x.messages) && !s->x.ended)
		r = fiber_cond_wait(&s->x.changed, err);
	if (r < 0)
		return r;
	if ((*ret_message = exchange_take(&s->x)))
		return 1;
	return exchange_result(&s->x, err);
}

void grpc_stream_half_close(struct grpc_stream *s)
{
	s->x.out_end = true;
	http2_call_resume(&s->x.http);
}

uint64_t grpc_stream_generation(const struct grpc_stream *s) { return s->generation; }

void grpc_stream_free(struct grpc_stream *s)
{
	if (!s)
		return;
	exchange_done(&s->x);
	free(s);
}
