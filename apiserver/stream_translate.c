/*
 * exec and attach for clients that speak WebSocket, with kubelets that speak SPDY. The client has numbered channels: the first
 * byte of a message says which. The kubelet has a stream for each: stdin, stdout, stderr, error and resize.
 *
 * A fiber per direction and stream copies; when the output streams have ended and the error stream has said how it went,
 * the client is told and the connection closed. A client that goes away ends everything at once.
 */
#include "apiserver/stream_proxy.h"
#include "base/fiber.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "net/spdy.h"
#include "net/websocket.h"

enum { CHANNEL_IN = 0, CHANNEL_OUT = 1, CHANNEL_ERR = 2, CHANNEL_STATUS = 3, CHANNEL_RESIZE = 4, CHANNEL_CLOSE = 255 };
enum { COPY_BYTES = 32 << 10, STATUS_MAX = 1 << 20, STATUS_WAIT_MS = 10000, CLOSE_WAIT_MS = 1000 };

static const char *const ws_protocols[] = { "v5.channel.k8s.io", NULL };
static const char *const spdy_protocols[] = { "v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io",
					      "v2.channel.k8s.io", "channel.k8s.io", NULL };

struct translation {
	struct request *q;
	const struct translate_streams *want;
	struct ws *ws;
	struct spdy *session;
	bool old;                     /* the error stream carries plain text, as before v4 */
	struct spdy_stream *in, *out, *err, *error, *resize; /* NULL: not wanted */
	unsigned open;                /* of out, err and error: those that have not ended */
	bool client_gone, broken;     /* broken: the kubelet's connection, before it said how it went */
	struct fiber_cond changed;
	struct buf status;            /* what the error stream said */
};

bool translate_is_wanted(const struct request *q)
{
	const struct http_exchange *x = q->http;
	return ws_is_upgrade(x->headers, x->n_headers) && ws_choose_protocol(x->headers, x->n_headers, ws_protocols).n;
}

/* ---- copying ---- */

static int finished(struct translation *t)
{
	t->open--;
	fiber_cond_broadcast(&t->changed);
	return 0;
}

static void copy_out(struct translation *t, struct spdy_stream *from, unsigned char channel)
{
	CLEANUP(mem_freep) char *room = mem_alloc(COPY_BYTES);
	ssize_t n;
	while ((n = spdy_stream_read(from, room, COPY_BYTES, NULL)) > 0)
		if (ws_write2(t->ws, WS_BINARY, str_span((const char *)&channel, 1), str_span(room, (size_t)n), NULL) < 0)
			break;
}

static int copy_stdout(void *arg)
{
	struct translation *t = arg;
	copy_out(t, t->out, CHANNEL_OUT);
	return finished(t);
}

static int copy_stderr(void *arg)
{
	struct translation *t = arg;
	copy_out(t, t->err, CHANNEL_ERR);
	return finished(t);
}

static int read_status(void *arg)
{
	struct translation *t = arg;
	char *room;
	ssize_t n = 0;
	while ((room = buf_reserve(&t->status, 4096)) && (n = spdy_stream_read(t->error, room, 4096, NULL)) > 0)
		buf_commit(&t->status, (size_t)n);
	t->broken = n < 0;
	return finished(t);
}

/* One message of the client. False: it makes no sense to go on. */
static bool take_message(struct translation *t, str message)
{
	if (!message.n)
		return true;
	unsigned char channel = (unsigned char)message.p[0];
	str data = str_skip(message, 1);
	if (channel == CHANNEL_IN && t->in && data.n)
		return spdy_stream_write(t->in, data, NULL) == 0 || !spdy_ended(t->session);
	if (channel == CHANNEL_RESIZE && t->resize && data.n)
		return spdy_stream_write(t->resize, data, NULL) == 0 && spdy_stream_write(t->resize, STR("\n"), NULL) == 0;
	if (channel == CHANNEL_CLOSE && data.n && data.p[0] == CHANNEL_IN && t->in)
		(void)spdy_stream_close_write(t->in, NULL);
	return true;
}

static int copy_in(void *arg)
{
	struct translation *t = arg;
	str message;
	while (ws_read(t->ws, &message, NULL) > 0 && take_message(t, message))
		;
	t->client_gone = true;
	fiber_cond_broadcast(&t->changed);
	return 0;
}

/* ---- how it went ---- */

static struct val internal_error(struct arena *a, str why)
{
	struct val cause = OBJECT(a, F(message, val_of_str(why)));
	return OBJECT(a, F(metadata, VAL_EMPTY_OBJECT), F(status, VAL_LIT("Failure")),
		      F(message, val_of_str(arena_join(a, STR("Internal error occurred: "), why))),
		      F(reason, VAL_LIT("InternalError")),
		      F(details, OBJECT(a, F(causes, LIST(a, cause)))), F(code, val_of_int(500)));
}

static struct val success(struct arena *a)
{
	return OBJECT(a, F(metadata, VAL_EMPTY_OBJECT), F(status, VAL_LIT("Success")));
}

static struct val exited(struct arena *a, int64_t code)
{
	str number = arena_printf(a, "%lld", (long long)code);
	str text = arena_printf(a, "command terminated with non-zero exit code: command terminated with exit code " STR_FMT,
				STR_ARG(number));
	struct val cause = OBJECT(a, F(reason, VAL_LIT("ExitCode")), F(message, val_of_str(number)));
	return OBJECT(a, F(metadata, VAL_EMPTY_OBJECT), F(status, VAL_LIT("Failure")), F(message, val_of_str(text)),
		      F(reason, VAL_LIT("NonZeroExitCode")), F(details, OBJECT(a, F(causes, LIST(a, cause)))));
}

static struct val exit_status(struct arena *a, struct val status)
{
	if (!val_has(status, details))
		return internal_error(a, STR("error stream protocol error: details must be set"));
	VAL_EACH(cause, val_get(status, details, causes)) {
		str text = val_str(*cause, message);
		int64_t code;
		if (!str_eq(val_str(*cause, reason), STR("ExitCode")))
			continue;
		if (!str_to_i64(text, &code) || code < 0 || code > 255)
			return internal_error(a,
					      arena_printf(a,
							   "error stream protocol error: invalid exit code value \"" STR_FMT "\"",
							      STR_ARG(text)));
		return exited(a, code);
	}
	return internal_error(a, STR("error stream protocol error: no ExitCode cause given"));
}

/* The Status for the client, by what the kubelet's error stream said. */
static struct val outcome(struct translation *t)
{
	struct arena *a = t->q->arena;
	str said = arena_str(a, buf_str(&t->status));
	struct err err = ERR_INIT;
	struct val status;
	if (t->broken)
		return internal_error(a, STR("error reading from error stream: unexpected EOF"));
	if (!said.n)
		return success(a);
	if (t->old)
		return internal_error(a, arena_join(a, STR("error executing remote command: "), said));
	if (json_decode(a, said, &(struct json_decode_options){ 0 }, &status, &err) < 0) {
		str why = err_str(&err);
		return internal_error(a, arena_printf(a, "error stream protocol error: " STR_FMT " in \"" STR_FMT "\"",
						      STR_ARG(why), STR_ARG(said)));
	}
	if (str_eq(val_str(status, status), STR("Success")))
		return success(a);
	if (!str_eq(val_str(status, status), STR("Failure")))
		return internal_error(a, STR("error stream protocol error: unknown error"));
	if (str_eq(val_str(status, reason), STR("NonZeroExitCode")))
		return exit_status(a, status);
	return internal_error(a, val_str(status, message));
}

static void tell(struct translation *t, struct val status)
{
	static const char channel = CHANNEL_STATUS;
	CLEANUP(buf_done) struct buf json = BUF_INIT(2 * STATUS_MAX);
	DEADLINE_SCOPE(STATUS_WAIT_MS);
	if (json_encode(&json, status, &(struct json_encode_options){ 0 }, NULL) == 0)
		(void)ws_write2(t->ws, WS_BINARY, str_span(&channel, 1), buf_str(&json), NULL);
}

/* ---- both sides together ---- */

static int open_stream(struct translation *t, const char *type, struct spdy_stream **ret, struct err *err)
{
	struct http_header header = { STR("streamtype"), str_of(type) };
	return spdy_open(t->session, &header, 1, ret, err);
}

/* The error stream first, as kubelets expect it. */
static int open_streams(struct translation *t, struct err *err)
{
	const struct translate_streams *w = t->want;
	int r = open_stream(t, "error", &t->error, err);
	if (r == 0 && w->in)
		r = open_stream(t, "stdin", &t->in, err);
	if (r == 0 && w->out)
		r = open_stream(t, "stdout", &t->out, err);
	if (r == 0 && w->err && !w->tty)
		r = open_stream(t, "stderr", &t->err, err);
	if (r == 0 && w->tty)
		r = open_stream(t, "resize", &t->resize, err);
	return r;
}

static int spawn(struct translation *t, struct fiber_group *group, int (*fn)(void *), const char *name, struct err *err)
{
	int r = fiber_group_spawn(group, fn, t, err, "%s", name);
	if (r == 0 && fn != copy_in)
		t->open++;
	return r;
}

/* (suspends) -ERR_GONE: the client went away. */
static int copy_all(struct translation *t, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = spawn(t, &group, read_status, "exec status", err);
	if (r == 0)
		r = spawn(t, &group, copy_in, "exec stdin", err);
	if (r == 0 && t->out)
		r = spawn(t, &group, copy_stdout, "exec stdout", err);
	if (r == 0 && t->err)
		r = spawn(t, &group, copy_stderr, "exec stderr", err);
	while (r == 0 && t->open && !t->client_gone)
		r = fiber_cond_wait(&t->changed, err);
	return r == 0 && t->open ? -ERR_GONE : r;
}

static void translate(struct translation *t, const struct proxy_target *target)
{
	struct err err = ERR_INIT;
	const char *protocol = NULL;
	struct http_request req = { .method = STR("POST"), .url = target->url };
	int r = spdy_dial(target->client, &req, spdy_protocols, &(struct spdy_options){ .client = true }, &t->session,
			  &protocol, NULL, &err);
	str version = str_of(protocol);
	t->old = !str_starts(version, STR("v5.")) && !str_starts(version, STR("v4."));
	if (r == 0)
		r = open_streams(t, &err);
	if (r == -ERR_GONE)
		r = -ERR_UNAVAILABLE; /* it is the kubelet who is gone */
	if (r == 0)
		r = copy_all(t, &err);
	if (r == -ERR_GONE || r == -ERR_CANCELED)
		return;
	tell(t, r < 0 ? internal_error(t->q->arena, arena_str(t->q->arena, err_str(&err))) : outcome(t));
	(void)ws_close(t->ws, WS_NORMAL, STR_NONE, CLOSE_WAIT_MS, NULL);
}

static void translation_done(struct translation *t)
{
	spdy_stream_free(t->in);
	spdy_stream_free(t->out);
	spdy_stream_free(t->err);
	spdy_stream_free(t->error);
	spdy_stream_free(t->resize);
	spdy_free(t->session);
	ws_free(t->ws);
	buf_done(&t->status);
}

int translate_handle(struct request *q, const struct proxy_target *target, const struct translate_streams *want,
		     struct err *err)
{
	const struct http_exchange *x = q->http;
	str protocol = ws_choose_protocol(x->headers, x->n_headers, ws_protocols);
	struct ws_headers answer;
	struct stream *client;
	int r = ws_accept_headers(q->arena, x->headers, x->n_headers, protocol, &answer, err);
	if (r < 0 || (r = http_upgrade(q->http, answer.headers, answer.n, &client, err)) < 0)
		return r;
	answer_sent(q, 101);
	CLEANUP(translation_done) struct translation t = { .q = q, .want = want, .status = BUF_INIT(STATUS_MAX) };
	fiber_cond_init(&t.changed, "a container's streams");
	t.ws = ws_new(client, &(struct ws_options){ 0 });
	/* an empty message tells the client that the connection stands */
	char first = want->out ? CHANNEL_OUT : want->err ? CHANNEL_ERR : CHANNEL_STATUS;
	if (ws_write(t.ws, WS_BINARY, str_span(&first, 1), NULL) == 0)
		translate(&t, target);
	return 0;
}
