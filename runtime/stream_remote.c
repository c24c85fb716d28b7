/*
 * exec and attach towards a client: five channels. SPDY has a stream for each, which the client opens and says what it is for;
 * WebSocket has messages that begin with the channel's number, as a byte or (base64) as a digit.
 */
#include <stdlib.h>

#include "base/encoding.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/stream_priv.h"

enum { CHANNEL_CLOSE = 255, SIZE_TEXT_MAX = 4096, SIZE_MAX_CELLS = 65535, STATUS_TEXT_MAX = 1 << 20 };

static const char *const spdy_protocols[] = { "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io", NULL };
static const char *const ws_protocols[] = { "v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io",
					    "base64.channel.k8s.io", NULL };
static const char *const stream_types[REMOTE_CHANNELS] = { "stdin", "stdout", "stderr", "error", "resize" };

/* ---- opening ---- */

/* The channel that a client's stream is for; -1: none that is wanted. */
static int channel_of(const struct remote *r, const struct spdy_stream *st)
{
	str type = spdy_stream_header(st, STR("streamtype"));
	bool wanted[REMOTE_CHANNELS] = { r->in, r->out, r->err, true, r->terminal };
	for (int i = 0; i < REMOTE_CHANNELS; i++)
		if (str_eq(type, str_of(stream_types[i])))
			return wanted[i] && !r->streams[i] ? i : -1;
	return -1;
}

static int wait_for_streams(struct remote *r, unsigned expected, struct err *err)
{
	DEADLINE_SCOPE(STREAM_CREATION_MS);
	while (expected) {
		struct spdy_stream *st;
		int got = spdy_accept(r->session, &st, err);
		if (got <= 0)
			return got < 0 ? got : err_set(err, ERR_GONE, "the client went away before it had opened its streams");
		int channel = channel_of(r, st);
		if (channel < 0) {
			(void)spdy_stream_reset(st, SPDY_REFUSED_STREAM, NULL);
			spdy_stream_free(st);
			continue;
		}
		r->streams[channel] = st;
		expected--;
		if ((got = spdy_stream_reply(st, NULL, 0, err)) < 0)
			return got;
	}
	return 0;
}

static int open_spdy(struct remote *r, struct http_exchange *x, struct err *err)
{
	str protocol;
	int code = stream_accept_spdy(x, spdy_protocols, &r->session, &protocol, err);
	if (code <= 0)
		return code;
	r->json = str_starts(protocol, STR("v4."));
	bool resizes = r->terminal && (r->json || str_starts(protocol, STR("v3.")));
	code = wait_for_streams(r, 1u + r->in + r->out + r->err + resizes, err);
	return code < 0 ? code : 1;
}

static int open_ws(struct remote *r, struct http_exchange *x, struct err *err)
{
	str protocol;
	int code = stream_accept_ws(x, ws_protocols, &r->ws, &protocol, err);
	if (code <= 0)
		return code;
	r->closes = str_starts(protocol, STR("v5."));
	r->json = r->closes || str_starts(protocol, STR("v4."));
	r->base64 = str_find(protocol, STR("base64")) >= 0;
	/* an empty message tells the client that the connection stands */
	code = remote_write(r, r->out ? REMOTE_OUT : r->err ? REMOTE_ERR : REMOTE_STATUS, STR_NONE, err);
	return code < 0 ? code : 1;
}

int remote_open(struct remote *r, struct http_exchange *x, struct err *err)
{
	buf_init(&r->size, SIZE_TEXT_MAX);
	fiber_group_init(&r->group);
	return ws_is_upgrade(x->headers, x->n_headers) ? open_ws(r, x, err) : open_spdy(r, x, err);
}

void remote_done(struct remote *r)
{
	if (r->changed)
		fiber_group_done(&r->group);
	for (size_t i = 0; i < REMOTE_CHANNELS; i++)
		spdy_stream_free(r->streams[i]);
	spdy_free(r->session);
	ws_free(r->ws);
	buf_done(&r->size);
}

/* ---- from the client ---- */

/* {"Width":80,"Height":24}, one after the other and cut anywhere. */
static void take_size(struct remote *r, str text)
{
	while (text.n) {
		str piece, rest;
		bool complete = str_cut(text, '}', &piece, &rest);
		buf_add(&r->size, piece);
		text = rest;
		if (!complete)
			return;
		buf_addc(&r->size, '}');
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val size;
		bool ok = !r->size.overflow &&
			  json_decode(&a, str_trim(buf_str(&r->size)), &(struct json_decode_options){ 0 }, &size, NULL) == 0;
		int64_t width = ok ? val_int(size, Width) : 0, height = ok ? val_int(size, Height) : 0;
		if (width > 0 && height > 0 && width <= SIZE_MAX_CELLS && height <= SIZE_MAX_CELLS)
			r->taker->resize(r->arg, (unsigned)width, (unsigned)height);
		r->size.overflow = false;
		buf_reset(&r->size);
	}
}

static void client_gone(struct remote *r)
{
	r->gone = true;
	fiber_cond_broadcast(r->changed);
}

static int read_spdy_input(void *arg)
{
	struct remote *r = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(STREAM_COPY);
	ssize_t n;
	while ((n = spdy_stream_read(r->streams[REMOTE_IN], room, STREAM_COPY, NULL)) > 0)
		r->taker->input(r->arg, str_span(room, (size_t)n));
	r->taker->input_end(r->arg);
	return 0;
}

static int read_spdy_sizes(void *arg)
{
	struct remote *r = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(SIZE_TEXT_MAX);
	ssize_t n;
	while ((n = spdy_stream_read(r->streams[REMOTE_RESIZE], room, SIZE_TEXT_MAX, NULL)) > 0)
		take_size(r, str_span(room, (size_t)n));
	return 0;
}

static int watch_spdy(void *arg)
{
	struct remote *r = arg;
	(void)spdy_wait(r->session, NULL);
	client_gone(r);
	return 0;
}

static void take_message(struct remote *r, str message)
{
	if (!message.n)
		return;
	unsigned channel = (unsigned char)message.p[0];
	str data = str_skip(message, 1);
	CLEANUP(buf_done) struct buf decoded = BUF_INIT(8 << 20);
	if (r->base64) {
		channel -= '0';
		if (base64_decode_buf(&decoded, data, NULL) < 0)
			return;
		data = buf_str(&decoded);
	}
	if (channel == REMOTE_IN && r->in && data.n)
		r->taker->input(r->arg, data);
	else if (channel == REMOTE_RESIZE && r->terminal)
		take_size(r, data);
	else if (channel == CHANNEL_CLOSE && r->closes && data.n && data.p[0] == REMOTE_IN)
		r->taker->input_end(r->arg);
}

static int read_ws(void *arg)
{
	struct remote *r = arg;
	str message;
	while (ws_read(r->ws, &message, NULL) > 0)
		take_message(r, message);
	r->taker->input_end(r->arg);
	client_gone(r);
	return 0;
}

int remote_start(struct remote *r, const struct remote_taker *taker, void *arg, struct fiber_cond *changed, struct err *err)
{
	r->taker = taker;
	r->arg = arg;
	r->changed = changed;
	if (r->ws)
		return fiber_group_spawn(&r->group, read_ws, r, err, "stream messages");
	int code = fiber_group_spawn(&r->group, watch_spdy, r, err, "stream session");
	if (code == 0 && r->streams[REMOTE_IN])
		code = fiber_group_spawn(&r->group, read_spdy_input, r, err, "stream input");
	if (code == 0 && r->streams[REMOTE_RESIZE])
		code = fiber_group_spawn(&r->group, read_spdy_sizes, r, err, "stream sizes");
	return code;
}

/* ---- to the client ---- */

static int write_ws(struct remote *r, enum remote_channel channel, str data, struct err *err)
{
	char number = (char)(r->base64 ? '0' + (int)channel : (int)channel);
	if (!r->base64)
		return ws_write2(r->ws, WS_BINARY, str_span(&number, 1), data, err);
	CLEANUP(buf_done) struct buf text = BUF_INIT(2 * STATUS_TEXT_MAX);
	base64_encode_buf(&text, data);
	int code = buf_check(&text, "a message", err);
	return code < 0 ? code : ws_write2(r->ws, WS_TEXT, str_span(&number, 1), buf_str(&text), err);
}

int remote_write(struct remote *r, enum remote_channel channel, str data, struct err *err)
{
	if ((channel == REMOTE_OUT && !r->out) || (channel == REMOTE_ERR && !r->err))
		return 0;
	if (r->ws)
		return write_ws(r, channel, data, err);
	return data.n && r->streams[channel] ? spdy_stream_write(r->streams[channel], data, err) : 0;
}

void remote_finish(struct remote *r, struct val status)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATUS_TEXT_MAX);
	DEADLINE_SCOPE(STREAM_CREATION_MS);
	if (r->json)
		(void)json_encode(&text, status, &(struct json_encode_options){ 0 }, NULL);
	else if (!str_eq(val_str(status, status), STR("Success")))
		buf_add(&text, val_str(status, message));
	for (int i = REMOTE_OUT; i <= REMOTE_ERR; i++)
		if (r->streams[i])
			(void)spdy_stream_close_write(r->streams[i], NULL);
	if (text.n)
		(void)remote_write(r, REMOTE_STATUS, buf_str(&text), NULL);
	if (r->session)
		(void)spdy_stream_close_write(r->streams[REMOTE_STATUS], NULL);
	else
		(void)ws_close(r->ws, WS_NORMAL, STR_NONE, STREAM_CLOSE_MS, NULL);
}
