/*
 * The protocol is nghttp2's, which only turns bytes into events and back. Around it are two fibers: the one that runs the
 * connection reads, a second one writes; calls queue frames in the session and wake the writer, which gathers what all
 * of them have queued into large writes.
 *
 * Flow control. The connection's own window is large and refilled at once, so one call never blocks another; each call has
 * a window of its own, refilled while its reader keeps up. Memory is thus bounded per call.
 *
 * Keep-alive. A peer that was stopped, or is cut off, leaves the connection open and silent. When calls wait and nothing
 * has come for a while (URGENT_MS when an answer is expected soon, else the ping interval), a ping is sent; when nothing at
 * all comes within PONG_MS after it, the connection is given up.
 */
#include "net/http2_client.h"

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/mem.h"

enum {
	CALL_WINDOW = 4 << 20,
	CONNECTION_WINDOW = 1 << 30,
	READ_BYTES = 64 * 1024,
	WRITE_BYTES = 64 * 1024,
	HEADERS_MAX = 32, /* of a request */
	URGENT_MS = 1000,
	PONG_MS = 2000,
};

struct http2_client {
	struct stream *stream;
	nghttp2_session *session;
	struct http2_client_options o;
	struct list calls;
	size_t n_urgent;
	bool ready, draining, closed, pinged_too_much;
	struct err why;
	struct buf out;
	struct fiber_cond work;       /* for the writer */
	/* Keep-alive; times as clock_now_ns counts. */
	struct loop_timer timer;
	int64_t received_ns, pinged_ns, urgent_since_ns;
	bool ping_pending;
};

bool http2_client_draining(const struct http2_client *c) { return c->draining || c->closed; }
bool http2_client_pinged_too_much(const struct http2_client *c) { return c->pinged_too_much; }

void http2_client_close(struct http2_client *c, enum err_code code, const char *why)
{
	if (c->closed)
		return;
	c->closed = true;
	err_set(&c->why, code, "%s", why);
	stream_abort(c->stream);
}

static void wake_writer(struct http2_client *c) { fiber_cond_signal(&c->work); }

/* ---- keep-alive ---- */

static int64_t ping_due_ns(const struct http2_client *c)
{
	int64_t interval = c->o.ping_interval_ms * NS_PER_MS;
	int64_t quiet = c->received_ns + interval;

	if (c->n_urgent)
		quiet = MAX(c->received_ns, c->urgent_since_ns) + URGENT_MS * NS_PER_MS;
	return MAX(quiet, c->pinged_ns + interval);
}

/* Never moved when something is received: once it fires, it looks how long ago that was. */
static void timer_arm(struct http2_client *c)
{
	int64_t due = c->ping_pending ? c->pinged_ns + PONG_MS * NS_PER_MS : ping_due_ns(c);

	if (!list_empty(&c->calls) && (!loop_timer_running(&c->timer) || c->timer.due_ns > due))
		loop_timer_start(&c->timer, due);
}

static void timer_fire(struct loop_timer *timer)
{
	struct http2_client *c = CONTAINER_OF(timer, struct http2_client, timer);
	int64_t now = clock_now_ns();

	if (!c->ready) {
		http2_client_close(c, ERR_UNAVAILABLE, "the peer accepts the connection but does not answer");
		return;
	}
	if (c->ping_pending && c->received_ns >= c->pinged_ns)
		c->ping_pending = false;
	if (c->ping_pending && now >= c->pinged_ns + PONG_MS * NS_PER_MS) {
		http2_client_close(c, ERR_UNAVAILABLE, "the peer does not answer pings");
		return;
	}
	if (!c->ping_pending && !list_empty(&c->calls) && now >= ping_due_ns(c)) {
		nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
		c->pinged_ns = now;
		c->ping_pending = true;
		wake_writer(c);
	}
	timer_arm(c);
}

/* ---- calls ---- */

static void call_leave(struct http2_call *call)
{
	struct http2_client *c = call->client;

	list_remove(&call->link);
	c->n_urgent -= call->urgent;
	call->client = NULL;
	if (c->draining && list_empty(&c->calls))
		http2_client_close(c, ERR_UNAVAILABLE, "it takes no more calls");
}

static void call_end(struct http2_call *call, enum http2_end how, uint32_t code)
{
	const struct err *why = how == HTTP2_BROKEN ? &call->client->why : NULL;

	call_leave(call);
	call->events->end(call, how, code, why);
}

static ssize_t on_fill(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
		       nghttp2_data_source *source, void *arg)
{
	struct http2_call *call = nghttp2_session_get_stream_user_data(session, id);
	bool end = false;

	(void)source;
	(void)arg;
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* canceled meanwhile */
	size_t got = call->events->fill(call, (char *)p, n, &end);
	if (end) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		call->sent = true;
	}
	return got || end ? (ssize_t)got : NGHTTP2_ERR_DEFERRED;
}

bool http2_call_start(struct http2_client *c, struct http2_call *call, const struct http_header *headers, size_t n)
{
	nghttp2_nv nv[HEADERS_MAX];
	nghttp2_data_provider body = { .read_callback = on_fill };

	if (n > HEADERS_MAX || http2_client_draining(c))
		return false;
	for (size_t i = 0; i < n; i++)
		nv[i] = (nghttp2_nv){ .name = (uint8_t *)headers[i].name.p, .namelen = headers[i].name.n,
				      .value = (uint8_t *)headers[i].value.p, .valuelen = headers[i].value.n };
	call->id = nghttp2_submit_request(c->session, NULL, nv, n, &body, call);
	if (call->id < 0) { /* no stream numbers are left */
		http2_client_drain(c);
		return false;
	}
	call->client = c;
	list_add(&c->calls, &call->link);
	if (call->urgent && c->n_urgent++ == 0)
		c->urgent_since_ns = clock_now_ns();
	timer_arm(c);
	wake_writer(c);
	return true;
}

void http2_call_resume(struct http2_call *call)
{
	if (!call->client)
		return;
	nghttp2_session_resume_data(call->client->session, call->id);
	wake_writer(call->client);
}

void http2_call_hold(struct http2_call *call, bool hold)
{
	call->held = hold;
	if (hold || !call->owed || !call->client)
		return;
	nghttp2_session_consume_stream(call->client->session, call->id, call->owed);
	call->owed = 0;
	wake_writer(call->client);
}

void http2_call_cancel(struct http2_call *call)
{
	struct http2_client *c = call->client;

	if (!c)
		return;
	nghttp2_session_set_stream_user_data(c->session, call->id, NULL);
	nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, call->id, NGHTTP2_CANCEL);
	call_leave(call);
	wake_writer(c);
}

/* ---- what nghttp2 finds in the bytes ---- */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t n_name,
		     const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
	struct http2_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags;
	(void)arg;
	if (call)
		call->events->header(call, str_span((const char *)name, n_name), str_span((const char *)value, n_value));
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
	struct http2_call *call = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	(void)arg;
	nghttp2_session_consume_connection(session, n);
	if (!call)
		return 0;
	call->owed += n;
	call->events->data(call, str_span((const char *)p, n));
	/* The event may have canceled the call. */
	if (nghttp2_session_get_stream_user_data(session, id) == call)
		http2_call_hold(call, call->held);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	struct http2_call *call = nghttp2_session_get_stream_user_data(session, id);

	(void)arg;
	if (!call || !call->client)
		return 0;
	switch (code) {
	case NGHTTP2_NO_ERROR:
		call_end(call, HTTP2_COMPLETE, code);
		break;
	case NGHTTP2_REFUSED_STREAM:
		call_end(call, HTTP2_REFUSED, code);
		break;
	default:
		call_end(call, HTTP2_RESET, code);
	}
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct http2_client *c = arg;

	(void)session;
	if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK) && !c->ready) {
		c->ready = true;
		loop_timer_stop(&c->timer);
		timer_arm(c);
		c->o.changed(c, c->o.arg);
	} else if (frame->hd.type == NGHTTP2_GOAWAY) {
		c->pinged_too_much |= frame->goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM;
		http2_client_drain(c);
	}
	return 0;
}

/* ---- the connection ---- */

static nghttp2_session *session_new(struct http2_client *c)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, CALL_WINDOW },
	};
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	nghttp2_session *session = NULL;

	if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
		nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
		nghttp2_option_set_no_auto_window_update(option, 1);
		nghttp2_session_client_new2(&session, callbacks, c, option);
	}
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
	if (session) {
		nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));
		nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
	}
	return session;
}

struct http2_client *http2_client_new(struct stream *s, const struct http2_client_options *o)
{
	struct http2_client *c = mem_zalloc(sizeof *c);

	*c = (struct http2_client){ .stream = s, .o = *o, .timer = LOOP_TIMER_INIT(timer_fire) };
	c->received_ns = clock_now_ns();
	c->pinged_ns = c->received_ns - o->ping_interval_ms * NS_PER_MS;
	list_init(&c->calls);
	fiber_cond_init(&c->work, "frames to send");
	buf_init(&c->out, 4 * WRITE_BYTES);
	c->session = session_new(c);
	loop_timer_start(&c->timer, c->received_ns + o->ready_timeout_ms * NS_PER_MS);
	return c;
}

void http2_client_drain(struct http2_client *c)
{
	if (c->draining)
		return;
	c->draining = true;
	if (list_empty(&c->calls))
		http2_client_close(c, ERR_UNAVAILABLE, "it takes no more calls");
	c->o.changed(c, c->o.arg);
}

/* Collects queued frames, up to a good size for one write. False when nghttp2 is out of memory. */
static bool gather(struct http2_client *c)
{
	const uint8_t *p;
	ssize_t n = 0;

	buf_reset(&c->out);
	while (c->out.n < WRITE_BYTES && (n = nghttp2_session_mem_send(c->session, &p)) > 0)
		buf_add(&c->out, str_span((const char *)p, (size_t)n));
	return n >= 0 && !c->out.overflow;
}

static int write_main(void *arg)
{
	struct http2_client *c = arg;
	struct err err = ERR_INIT;
	int r = 0;

	while (r == 0) {
		if (!gather(c))
			r = err_set(&err, ERR_INTERNAL, "cannot make HTTP/2 frames");
		else if (c->out.n)
			r = stream_write(c->stream, c->out.p, c->out.n, &err);
		else
			r = fiber_cond_wait(&c->work, &err);
	}
	if (!c->closed)
		http2_client_close(c, ERR_UNAVAILABLE, err.msg);
	return r;
}

static int read_loop(struct http2_client *c, char *room, struct err *err)
{
	for (;;) {
		ssize_t n = stream_read(c->stream, room, READ_BYTES, err);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return err_set(err, ERR_UNAVAILABLE, "the peer closed the connection");
		c->received_ns = clock_now_ns();
		ssize_t used = nghttp2_session_mem_recv(c->session, (uint8_t *)room, (size_t)n);
		if (used < 0)
			return err_set(err, ERR_UNAVAILABLE, "the peer does not speak HTTP/2: %s",
				       nghttp2_strerror((int)used));
		if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session))
			return err_set(err, ERR_UNAVAILABLE, "the HTTP/2 connection ended");
		wake_writer(c); /* acknowledgements, windows */
	}
}

int http2_client_run(struct http2_client *c, struct err *err)
{
	CLEANUP(mem_freep) char *room = mem_alloc(READ_BYTES);
	struct fiber *writer = NULL;
	struct err local = ERR_INIT;

	int r = c->session ? 0 : err_set(&local, ERR_INTERNAL, "out of memory");
	if (r == 0)
		r = fiber_spawn(write_main, c, &writer, &local, "http2-write");
	if (r == 0)
		r = read_loop(c, room, &local);
	http2_client_close(c, ERR_UNAVAILABLE, local.msg);
	if (writer)
		fiber_stop(writer);
	loop_timer_stop(&c->timer);
	if (!c->draining) {
		c->draining = true;
		c->o.changed(c, c->o.arg);
	}
	for (struct http2_call *call; (call = LIST_FIRST(struct http2_call, &c->calls, link));)
		call_end(call, HTTP2_BROKEN, 0);
	return err_set(err, c->why.code, "%s", c->why.msg);
}

void http2_client_free(struct http2_client *c)
{
	if (!c)
		return;
	nghttp2_session_del(c->session);
	stream_free(c->stream);
	buf_done(&c->out);
	free(c);
}
