/*
 * HTTP/2 by nghttp2, without I/O.
 *
 * Answers are put where they are sent from: nghttp2 asks for the payload of a frame (on_fill), which the source writes
 * into the output buffer behind room for the frame's header, and nghttp2 delivers the header (on_send_data).
 *
 * What costs us and not the peer is paid for with tokens, which come with time and with the work that the connection is
 * there for; a connection without tokens is closed. The handlers of streams that were reset count as streams until they
 * have returned.
 */
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/http_priv.h"

enum {
	FRAME_HEADER = 9,
	ROOM_MIN = 16384 + 256 + FRAME_HEADER, /* the largest piece that nghttp2 delivers itself */
	CONNECTION_WINDOW = 8 << 20,
	CONTINUATIONS_MAX = 72,                /* of 16 KiB: the largest header that is taken */
	ACKS_MAX = 1000,                       /* of PING and SETTINGS in the queue */
	QUEUE_MAX = 4000,                      /* frames in the queue, before reading stops */
	NOISE_BURST = 10000, NOISE_PER_S = 1000, NOISE_BYTES = 512, /* one more token per so many useful bytes */
	DRAIN_MAX = 4 << 20,                   /* bytes of a body that nobody reads */
	RESET_BURST = 1000, RESET_PER_S = 100,
};

struct bucket {
	int64_t tokens, burst, per_s, since_ns;
};

struct h2 {
	nghttp2_session *session;
	char *out;                     /* during pull */
	size_t out_at, out_n;
	bool paused;                   /* out is full */
	bool stopped;
	struct bucket noise, resets;
};

static struct h2 *h2_of(const struct http_conn *c) { return c->state; }

/* ---- Abuse ---- */

static void bucket_init(struct bucket *b, int64_t burst, int64_t per_s)
{
	*b = (struct bucket){ burst, burst, per_s, clock_now_ns() };
}

static void bucket_add(struct bucket *b, int64_t n) { b->tokens = MIN(b->tokens + n, b->burst); }

static bool bucket_take(struct bucket *b)
{
	if (LIKELY(--b->tokens >= 0))
		return true;
	int64_t now = clock_now_ns(), new = (now - b->since_ns) / (NS_PER_S / b->per_s);
	if (new <= 0)
		return false;
	b->since_ns = now;
	bucket_add(b, new);
	return b->tokens >= 0;
}

static void noise(struct http_conn *c)
{
	if (!bucket_take(&h2_of(c)->noise))
		conn_abuse(c);
}

static void reset_seen(struct http_conn *c)
{
	if (!bucket_take(&h2_of(c)->resets))
		conn_abuse(c);
}

/* ---- Requests ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct http_conn *c = arg;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (c->n_exchanges >= c->server->o.max_streams || h2_of(c)->stopped) {
		reset_seen(c);
		(void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	struct exchange *x = exchange_new(c);
	x->stream_id = frame->hd.stream_id;
	(void)nghttp2_session_set_stream_user_data(session, x->stream_id, x);
	c->head_ns = clock_now_ns();
	return 0;
}

static void set_pseudo(struct exchange *x, str name, str value)
{
	if (str_eq(name, STR(":path"))) {
		value = arena_str(&x->arena, value);
		(void)str_cut(value, '?', &x->pub.path, &x->pub.query);
	} else if (str_eq(name, STR(":method"))) {
		x->pub.method = arena_str(&x->arena, value);
	} else if (str_eq(name, STR(":authority"))) {
		x->pub.authority = arena_str(&x->arena, value);
	}
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t n_name,
		     const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
	struct exchange *x = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	str k = { (const char *)name, n_name }, v = { (const char *)value, n_value };

	(void)flags, (void)arg;
	if (!x || frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST || x->closed)
		return 0;
	if (x->refused) {
		/* Small references to large entries of the table would go on for long. */
		x->header_bytes += n_name + n_value;
		if (x->header_bytes / 4 <= x->conn->server->o.max_header_bytes)
			return 0;
		x->conn->head_ns = 0;
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	if (n_name && *name == ':') {
		set_pseudo(x, k, v);
		x->header_bytes += n_name + n_value;
		return 0;
	}
	if (exchange_add_header(x, k, v) < 0)
		x->refused = 431;
	else if (str_eq(k, STR("content-length")))
		(void)str_to_i64(v, &x->pub.content_length);
	else if (str_eq(k, STR("expect")))
		x->expect_continue = str_eq(v, STR("100-continue"));
	else if (str_eq(k, STR("host")) && !x->pub.authority.n)
		x->pub.authority = x->headers[x->pub.n_headers - 1].value;
	return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct http_conn *c = arg;
	struct exchange *x = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		c->head_ns = 0;
		if (x && end)
			exchange_body_end(x);
		if (x && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
			exchange_start(x);
		bucket_add(&h2_of(c)->noise, 2);
		break;
	case NGHTTP2_DATA:
		if (x && end)
			exchange_body_end(x);
		else if (frame->hd.length < NOISE_BYTES)
			noise(c);
		break;
	case NGHTTP2_RST_STREAM:
		reset_seen(c);
		break;
	default:
		noise(c);
	}
	return 0;
}

/* A stream that nghttp2 has refused or closed for what it did. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int code, void *arg)
{
	struct http_conn *c = arg;

	(void)session, (void)code;
	if (frame->hd.type == NGHTTP2_HEADERS)
		c->head_ns = 0; /* its end will not be told */
	reset_seen(c);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *p, size_t n, void *arg)
{
	struct http_conn *c = arg;
	struct exchange *x = nghttp2_session_get_stream_user_data(session, stream_id);

	(void)flags;
	bucket_add(&h2_of(c)->noise, (int64_t)(n / NOISE_BYTES));
	if (x && x->started && !x->handled) {
		exchange_body(x, str_span((const char *)p, n));
		return 0;
	}
	(void)nghttp2_session_consume(session, stream_id, n);
	if (x && (x->drained += n) > DRAIN_MAX)
		(void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_NO_ERROR);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *arg)
{
	struct exchange *x = nghttp2_session_get_stream_user_data(session, stream_id);

	(void)arg, (void)code;
	if (!x)
		return 0;
	(void)nghttp2_session_set_stream_user_data(session, stream_id, NULL);
	(void)nghttp2_session_consume_connection(session, exchange_unread(x));
	exchange_close(x);
	return 0;
}

/* ---- Answers ---- */

static nghttp2_nv nv_of(str name, str value, uint8_t flags)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n, value.n, flags };
}

/* The flags of the body's last frame. */
static uint32_t submit_trailers(nghttp2_session *session, struct exchange *x)
{
	nghttp2_nv *nv = ARENA_ARRAY(&x->arena, nghttp2_nv, x->n_trailers);

	for (size_t i = 0; i < x->n_trailers; i++)
		nv[i] = nv_of(x->trailers[i].name, x->trailers[i].value, NGHTTP2_NV_FLAG_NONE);
	return nghttp2_submit_trailer(session, x->stream_id, nv, x->n_trailers) == 0 ? NGHTTP2_DATA_FLAG_NO_END_STREAM : 0;
}

static ssize_t on_fill(nghttp2_session *session, int32_t stream_id, uint8_t *unused, size_t n, uint32_t *flags,
		       nghttp2_data_source *source, void *arg)
{
	struct exchange *x = source->ptr;
	struct h2 *h = h2_of(arg);
	bool end;

	(void)session, (void)stream_id, (void)unused;
	if (h->out_n - h->out_at < ROOM_MIN) {
		h->paused = true;
		return NGHTTP2_ERR_PAUSE;
	}
	ssize_t got = exchange_fill(x, h->out + h->out_at + FRAME_HEADER, MIN(n, h->out_n - h->out_at - FRAME_HEADER), &end);
	if (got < 0)
		return got == HTTP_LATER ? NGHTTP2_ERR_DEFERRED : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	*flags = (end ? NGHTTP2_DATA_FLAG_EOF : 0) | (got ? NGHTTP2_DATA_FLAG_NO_COPY : 0);
	if (end && x->n_trailers)
		*flags |= submit_trailers(session, x);
	return got;
}

/* The payload is in place already. */
static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header, size_t n,
			nghttp2_data_source *source, void *arg)
{
	struct exchange *x = source->ptr;
	struct http_conn *c = arg;
	struct h2 *h = h2_of(c);

	(void)session, (void)frame;
	memcpy(h->out + h->out_at, header, FRAME_HEADER);
	h->out_at += FRAME_HEADER + n;
	bucket_add(&h->noise, (int64_t)(n / NOISE_BYTES));
	if (x->source || x->body.n)
		x->progress_ns = clock_now_ns();
	return 0;
}

static ssize_t on_frame_size(nghttp2_session *session, uint8_t type, int32_t stream_id, int32_t session_window,
			     int32_t stream_window, uint32_t max, void *arg)
{
	struct h2 *h = h2_of(arg);
	size_t room = h->out_n - h->out_at;

	(void)session, (void)type, (void)stream_id, (void)session_window, (void)stream_window;
	return room < ROOM_MIN ? 1 : (ssize_t)MIN((size_t)max, room - FRAME_HEADER);
}

/*
 * An answer that came before the request's body had ended: the rest of that is not wanted, but a client that is reset
 * while it sends may lose the answer (curl does). So it may send a while longer.
 */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	bool last = (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
		    frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	struct exchange *x = last ? nghttp2_session_get_stream_user_data(session, frame->hd.stream_id) : NULL;

	(void)arg;
	if (x && !x->in_end)
		x->progress_ns = clock_now_ns();
	return 0;
}

static void answer(struct exchange *x, const struct http_header *headers, size_t n)
{
	struct h2 *h = h2_of(x->conn);
	nghttp2_nv *nv = ARENA_ARRAY(&x->arena, nghttp2_nv, n + 3);
	const uint8_t no_copy = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
	nghttp2_data_provider data = { .source.ptr = x, .read_callback = on_fill };
	bool body = x->source || x->body.n;
	size_t at = 0;

	str status = x->status == 200 ? STR("200") : http_digits(&x->arena, (unsigned)x->status);
	nv[at++] = nv_of(STR(":status"), status, no_copy);
	for (size_t i = 0; i < n; i++)
		nv[at++] = nv_of(headers[i].name, headers[i].value, NGHTTP2_NV_FLAG_NONE);
	nv[at++] = nv_of(STR("date"), server_date(x->conn->server), NGHTTP2_NV_FLAG_NO_COPY_NAME);
	if (x->left >= 0 && http_status_has_body(x->status))
		nv[at++] = nv_of(STR("content-length"), http_digits(&x->arena, (uint64_t)x->left), no_copy);
	if (nghttp2_submit_response(h->session, x->stream_id, nv, at, body ? &data : NULL) < 0)
		conn_end(x->conn);
	if (x->source) {
		/* Long answers take turns. */
		const nghttp2_extpri turns = { .urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1 };
		(void)nghttp2_session_change_extpri_stream_priority(h->session, x->stream_id, &turns, 0);
	}
	conn_dirty(x->conn);
}

static void give_up(struct exchange *x, uint32_t code)
{
	(void)nghttp2_submit_rst_stream(h2_of(x->conn)->session, NGHTTP2_FLAG_NONE, x->stream_id, code);
	conn_dirty(x->conn);
}

static void abandon(struct exchange *x) { give_up(x, NGHTTP2_INTERNAL_ERROR); }

static void want_body(struct exchange *x)
{
	const nghttp2_nv nv = nv_of(STR(":status"), STR("100"), NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);

	if (!x->expect_continue || x->answered)
		return;
	(void)nghttp2_submit_headers(h2_of(x->conn)->session, NGHTTP2_FLAG_NONE, x->stream_id, NULL, &nv, 1, NULL);
	conn_dirty(x->conn);
}

static void took_body(struct exchange *x, size_t n)
{
	nghttp2_session *session = h2_of(x->conn)->session;

	(void)nghttp2_session_consume(session, x->stream_id, n);
	if (nghttp2_session_want_write(session))
		conn_dirty(x->conn);
}

static void handled(struct exchange *x)
{
	size_t unread = exchange_unread(x);

	if (!unread)
		return;
	x->in_at = x->in.n;
	took_body(x, unread);
}

/* ---- The connection ---- */

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;

static void set_up(void)
{
	nghttp2_session_callbacks *cb;
	nghttp2_option *o;

	/* They fail for want of memory only. */
	if (nghttp2_session_callbacks_new(&callbacks) < 0 || nghttp2_option_new(&options) < 0)
		abort();
	cb = callbacks;
	o = options;
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_send_data_callback(cb, on_send_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	nghttp2_session_callbacks_set_data_source_read_length_callback(cb, on_frame_size);
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_closed_streams(o, 1);
	nghttp2_option_set_max_outbound_ack(o, ACKS_MAX);
	nghttp2_option_set_max_continuations(o, CONTINUATIONS_MAX);
	nghttp2_option_set_max_deflate_dynamic_table_size(o, 4096);
	nghttp2_option_set_max_send_header_block_length(o, 1 << 20);
}

static void open_session(struct http_conn *c)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct http_server *s = c->server;
	struct h2 *h = c->state = mem_zalloc(sizeof(*h));
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, s->o.max_streams },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP_STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)MIN(s->o.max_header_bytes, (size_t)UINT32_MAX) },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};

	bucket_init(&h->noise, NOISE_BURST, NOISE_PER_S);
	bucket_init(&h->resets, RESET_BURST, RESET_PER_S);
	(void)pthread_once(&once, set_up);
	if (nghttp2_session_server_new2(&h->session, callbacks, c, options) < 0 ||
	    nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) < 0 ||
	    nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW) < 0)
		abort();
}

static int feed(struct http_conn *c, str in, struct err *err)
{
	struct h2 *h = h2_of(c);
	ssize_t n = nghttp2_session_mem_recv(h->session, (const uint8_t *)in.p, in.n);

	if (n == NGHTTP2_ERR_FLOODED)
		conn_abuse(c);
	if (c->abuse)
		(void)nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM);
	if (n < 0 || c->abuse)
		return err_set(err, ERR_BAD_REQUEST, "%s", c->abuse ? "too many useless frames" : nghttp2_strerror((int)n));
	if (nghttp2_session_want_write(h->session))
		conn_dirty(c);
	return nghttp2_session_want_read(h->session) ? 0 : -ERR_GONE;
}

static bool hungry(const struct http_conn *c)
{
	return nghttp2_session_get_outbound_queue_size(h2_of(c)->session) < QUEUE_MAX;
}

static ssize_t pull(struct http_conn *c, char *p, size_t room, struct err *err)
{
	struct h2 *h = h2_of(c);
	const uint8_t *data;
	ssize_t n = 1;

	for (struct exchange *x; (x = LIST_FIRST(struct exchange, &c->woken, woken));) {
		list_remove(&x->woken);
		(void)nghttp2_session_resume_data(h->session, x->stream_id);
	}
	h->out = p;
	h->out_at = 0;
	h->out_n = room;
	h->paused = false;
	while (!h->paused && h->out_n - h->out_at >= ROOM_MIN) {
		n = nghttp2_session_mem_send(h->session, &data);
		if (n <= 0)
			break;
		if ((size_t)n > h->out_n - h->out_at)
			return err_set(err, ERR_INTERNAL, "a frame of %zd bytes", n);
		memcpy(h->out + h->out_at, data, (size_t)n);
		h->out_at += (size_t)n;
	}
	return n < 0 ? err_set(err, ERR_INTERNAL, "%s", nghttp2_strerror((int)n)) : (ssize_t)h->out_at;
}

static bool finished(const struct http_conn *c)
{
	const struct h2 *h = h2_of(c);

	return !nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session);
}

static void stop(struct http_conn *c)
{
	struct h2 *h = h2_of(c);

	if (h->stopped)
		return;
	h->stopped = true;
	(void)nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->session),
				    NGHTTP2_NO_ERROR, NULL, 0);
}

static void late(struct http_conn *c)
{
	(void)nghttp2_session_terminate_session(h2_of(c)->session, NGHTTP2_PROTOCOL_ERROR);
}

/* The window of such a stream is closed and nobody opens it, or the rest of its body does not come. */
static void expire(struct http_conn *c, int64_t before_ns)
{
	LIST_EACH(struct exchange, x, &c->exchanges, link)
		if (x->answered && !x->closed && !x->later && x->progress_ns < before_ns) {
			x->progress_ns = INT64_MAX;
			give_up(x, NGHTTP2_CANCEL);
		}
}

static void done(struct http_conn *c)
{
	struct h2 *h = h2_of(c);

	nghttp2_session_del(h->session);
	free(h);
}

const struct http_protocol http2_protocol = {
	.version = 20,
	.open = open_session,
	.feed = feed,
	.hungry = hungry,
	.pull = pull,
	.finished = finished,
	.answer = answer,
	.abandon = abandon,
	.want_body = want_body,
	.took_body = took_body,
	.handled = handled,
	.stop = stop,
	.late = late,
	.expire = expire,
	.done = done,
};
