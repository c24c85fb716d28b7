/*
 * Sessions for exec and attach. The status that ends one is JSON on the error channel, of which no more than STATUS_MAX bytes are taken;
 * output is passed on as it comes and never kept.
 */
#include "client/rexec.h"

#include <stdlib.h>

#include "base/fiber.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "net/spdy.h"
#include "net/websocket.h"

enum { STATUS_MAX = 1 << 20, PIECE = 32 << 10, CLOSE_MS = 1000 };
enum { CHANNEL_IN, CHANNEL_OUT, CHANNEL_ERR, CHANNEL_STATUS, CHANNEL_SIZE, CHANNELS, CHANNEL_CLOSE = 255 };

const char *const rexec_spdy_protocols[] = { "v4.channel.k8s.io", NULL };
const char *const rexec_ws_protocols[] = { "v5.channel.k8s.io", "v4.channel.k8s.io", NULL };

/* ---- opening ---- */

struct rexec {
	struct rexec_wants wants;
	struct spdy *session;
	struct spdy_stream *streams[CHANNELS];
	struct ws *ws;
	bool can_close;                  /* the other side understands the end of input */
	struct buf status;
	struct err failed;               /* of a fiber that passes on output */
};

static int open_stream(struct rexec *r, int channel, struct err *err)
{
	static const char *const types[CHANNELS] = { "stdin", "stdout", "stderr", "error", "resize" };
	struct http_header type = { STR("streamtype"), str_of(types[channel]) };
	int code = spdy_open(r->session, &type, 1, &r->streams[channel], err);

	return code < 0 ? err_wrap(err, code, "opening the stream for %s", types[channel]) : 0;
}

static int open_streams(struct rexec *r, struct err *err)
{
	static const int order[] = { CHANNEL_STATUS, CHANNEL_IN, CHANNEL_OUT, CHANNEL_ERR, CHANNEL_SIZE };
	const bool wanted[CHANNELS] = { r->wants.in, true, r->wants.err, true, r->wants.terminal };
	int code = 0;

	for (size_t i = 0; code == 0 && i < ARRAY_LEN(order); i++)
		if (wanted[order[i]])
			code = open_stream(r, order[i], err);
	return code;
}

static struct rexec *rexec_new(const struct rexec_wants *wants)
{
	struct rexec *r = mem_zalloc(sizeof(*r));

	r->wants = *wants;
	buf_init(&r->status, STATUS_MAX);
	return r;
}

int rexec_of_spdy(struct spdy *session, const struct rexec_wants *wants, struct rexec **ret, struct err *err)
{
	CLEANUP(rexec_freep) struct rexec *r = rexec_new(wants);

	r->session = session;
	r->can_close = true;
	int code = open_streams(r, err);
	if (code == 0)
		*ret = TAKE(r);
	return code;
}

struct rexec *rexec_of_ws(struct ws *ws, const char *protocol, const struct rexec_wants *wants)
{
	struct rexec *r = rexec_new(wants);

	r->ws = ws;
	r->can_close = protocol == rexec_ws_protocols[0];
	return r;
}

void rexec_free(struct rexec *r)
{
	if (!r)
		return;
	for (int i = 0; i < CHANNELS; i++)
		spdy_stream_free(r->streams[i]);
	spdy_free(r->session);
	if (r->ws)
		(void)ws_close(r->ws, WS_NORMAL, STR_NONE, CLOSE_MS, NULL);
	ws_free(r->ws);
	buf_done(&r->status);
	free(r);
}

void rexec_freep(struct rexec **r) { rexec_free(*r); }

/* ---- towards the process ---- */

static int write_channel(struct rexec *r, unsigned char channel, str data, struct err *err)
{
	char number = (char)channel;

	if (r->ws)
		return ws_write2(r->ws, WS_BINARY, str_span(&number, 1), data, err);
	return r->streams[channel] ? spdy_stream_write(r->streams[channel], data, err) : err_set(err, ERR_GONE, "there is no such stream");
}

int rexec_write(struct rexec *r, str data, struct err *err) { return write_channel(r, CHANNEL_IN, data, err); }

int rexec_close_input(struct rexec *r, struct err *err)
{
	if (!r->can_close)
		return 0;
	if (r->ws)
		return write_channel(r, CHANNEL_CLOSE, str_span("\0", 1), err); /* the number of the channel */
	return spdy_stream_close_write(r->streams[CHANNEL_IN], err);
}

int rexec_resize(struct rexec *r, unsigned columns, unsigned rows, struct err *err)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "{\"Width\":%u,\"Height\":%u}\n", columns, rows);

	return write_channel(r, CHANNEL_SIZE, str_span(text, (size_t)n), err);
}

/* ---- from the process ---- */

/* Passes on what comes by one stream, until its end; the session ends when that fails. */
static int pass_on(struct rexec *r, int channel)
{
	CLEANUP(mem_freep) char *room = mem_alloc(PIECE);
	struct err err = ERR_INIT;
	ssize_t n;

	while ((n = spdy_stream_read(r->streams[channel], room, PIECE, &err)) > 0) {
		if (r->wants.write(r->wants.arg, channel, str_span(room, (size_t)n), &err) == 0)
			continue;
		(void)spdy_stream_reset(r->streams[CHANNEL_STATUS], SPDY_CANCEL, NULL);
		r->failed = err;
		break;
	}
	return 0;
}

static int pass_on_out(void *arg) { return pass_on(arg, CHANNEL_OUT); }
static int pass_on_err(void *arg) { return pass_on(arg, CHANNEL_ERR); }

static int read_status(struct rexec *r, struct err *err)
{
	char room[1024];
	ssize_t n;

	while ((n = spdy_stream_read(r->streams[CHANNEL_STATUS], room, sizeof(room), err)) > 0)
		buf_add(&r->status, str_span(room, (size_t)n));
	return r->failed.code ? -(int)r->failed.code : n < 0 ? (int)n : 0;
}

static int run_spdy(struct rexec *r, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group outputs;
	int code;

	fiber_group_init(&outputs);
	if ((code = fiber_group_spawn(&outputs, pass_on_out, r, err, "output")) < 0 ||
	    (r->wants.err && (code = fiber_group_spawn(&outputs, pass_on_err, r, err, "errors")) < 0) ||
	    (code = read_status(r, err)) < 0 || (code = fiber_group_wait(&outputs, err)) < 0) {
		if (r->failed.code && err)
			*err = r->failed;
		return code;
	}
	return 0;
}

static int take_message(struct rexec *r, str message, struct err *err)
{
	int channel = message.n ? (unsigned char)message.p[0] : CHANNELS;
	str data = str_skip(message, 1);

	if (channel == CHANNEL_STATUS)
		buf_add(&r->status, data);
	else if ((channel == CHANNEL_OUT || channel == CHANNEL_ERR) && data.n)
		return r->wants.write(r->wants.arg, channel, data, err);
	return 0;
}

static int run_ws(struct rexec *r, struct err *err)
{
	str message;
	int code;

	while ((code = ws_read(r->ws, &message, err)) > 0)
		if ((code = take_message(r, message, err)) < 0)
			return code;
	/* servers may cut the connection once they have said all */
	return code < 0 && r->status.n ? 0 : code;
}

/* The exit code of a Status: details.causes has it as text. */
static int code_of(struct val status, int *ret_code, struct err *err)
{
	str message = val_str(status, message);
	int64_t code;

	*ret_code = 0;
	if (str_eq(val_str(status, status), STR("Success")))
		return 0;
	if (str_eq(val_str(status, reason), STR("NonZeroExitCode")))
		VAL_EACH(cause, val_get(status, details, causes))
			if (str_eq(val_str(*cause, reason), STR("ExitCode")) && str_to_i64(val_str(*cause, message), &code) && code > 0 &&
			    code < 256) {
				*ret_code = (int)code;
				return 0;
			}
	return err_set(err, ERR_INTERNAL, STR_FMT, STR_ARG(message.n ? message : STR("the server reports a failure and does not say which")));
}

int rexec_run(struct rexec *r, int *ret_code, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct json_decode_options free_tree = { 0 };
	struct val status;
	int code = r->ws ? run_ws(r, err) : run_spdy(r, err);

	if (code < 0 || (code = buf_check(&r->status, "the status at the end", err)) < 0)
		return code;
	if (!r->status.n)
		return err_set(err, ERR_GONE, "the connection ended without a word about the process");
	if (json_decode(&a, buf_str(&r->status), &free_tree, &status, NULL) < 0 || !val_is(status, VAL_OBJECT))
		return err_set(err, ERR_INTERNAL, "the status at the end is not JSON: " STR_FMT, STR_ARG(str_head(buf_str(&r->status), 200)));
	return code_of(status, ret_code, err);
}
