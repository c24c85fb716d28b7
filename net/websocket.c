/*
 * Messages over a stream. Input goes through one buffer, where payload is unmasked in place; output of several fibers
 * goes frame by frame through a write lock. Control frames are handled inside reads, so a pong or the answer to a close
 * frame is written by the fiber that reads.
 */
#include "net/websocket.h"

#include "base/fiber.h"
#include "base/mem.h"
#include "base/random.h"
#include "net/http_client.h"
#include "net/write_lock.h"

enum { BUFFER_BYTES = 16 * 1024, MESSAGE_MAX_DEFAULT = 4 << 20, CLOSE_WRITE_MS = 1000 };

struct ws {
	struct stream *stream;
	bool client;
	struct write_lock lock;
	bool close_sent, close_received;
	int code;
	char reason[WS_CONTROL_MAX];
	size_t n_reason;

	/* reading */
	struct ws_frame frame;          /* the one being read */
	uint64_t at_payload;            /* bytes of its payload that were taken */
	bool in_frame, in_message;
	enum ws_opcode message;         /* of the message being read */
	struct ws_utf8 utf8;
	struct buf whole;               /* for ws_read, which goes on with it when it was interrupted */
	bool collecting;
	char control[WS_CONTROL_MAX];
	size_t n_control;
	size_t at, n;                   /* of in: what is left to take */
	char in[BUFFER_BYTES];
};

struct ws *ws_new(struct stream *s, const struct ws_options *o)
{
	struct ws *w = mem_alloc(sizeof(*w));
	memset(w, 0, offsetof(struct ws, in));
	w->stream = s;
	w->client = o->client;
	w->code = WS_ABNORMAL;
	write_lock_init(&w->lock);
	buf_init(&w->whole, o->max_message ? o->max_message : MESSAGE_MAX_DEFAULT);
	return w;
}

void ws_free(struct ws *w)
{
	if (!w)
		return;
	stream_free(w->stream);
	buf_done(&w->whole);
	free(w);
}

void ws_freep(struct ws **w) { ws_free(*w); }

int ws_close_code(const struct ws *w) { return w->code; }
str ws_close_reason(const struct ws *w) { return str_span(w->reason, w->n_reason); }

/* ---- writing ---- */

/* (suspends) Under the lock. Copies in pieces, because clients must mask, and so that a small frame is one write. */
static int write_payload(struct ws *w, const struct ws_frame *f, str parts[2], struct err *err)
{
	char out[2048];
	size_t n = ws_frame_write(out, f);
	uint64_t offset = 0;
	for (int i = 0; i < 2; i++) {
		str part = parts[i];
		while (part.n) {
			str piece = str_head(part, sizeof(out) - n);
			memcpy(out + n, piece.p, piece.n);
			if (f->masked)
				ws_mask(out + n, piece.n, f->mask, offset);
			offset += piece.n;
			n += piece.n;
			part = str_skip(part, piece.n);
			/* Nothing is to be masked in the rest of a big part: no need to copy it. */
			bool direct = !f->masked && part.n >= sizeof(out);
			if (n < sizeof(out) && !direct)
				continue;
			int r = stream_write(w->stream, out, n, err);
			if (r == 0 && direct)
				r = stream_write(w->stream, part.p, part.n, err);
			if (r < 0)
				return r;
			part = direct ? STR_NONE : part;
			n = 0;
		}
	}
	return n ? stream_write(w->stream, out, n, err) : 0;
}

/* (suspends) */
static int write_frame(struct ws *w, enum ws_opcode opcode, str first, str second, struct err *err)
{
	struct ws_frame f = { .fin = true, .masked = w->client, .opcode = opcode, .length = (uint64_t)first.n + second.n };
	str parts[2] = { first, second };
	int r = write_lock_take(&w->lock, err);
	if (r < 0)
		return r;
	if (w->close_sent) {
		r = err_set(err, ERR_GONE, "websocket: close sent");
	} else {
		w->close_sent = opcode == WS_CLOSE;
		if (f.masked)
			random_bytes(f.mask, sizeof(f.mask));
		r = write_payload(w, &f, parts, err);
		w->lock.broken |= r < 0;
	}
	write_lock_release(&w->lock);
	return r;
}

int ws_write2(struct ws *w, enum ws_opcode opcode, str first, str second, struct err *err)
{
	return write_frame(w, opcode, first, second, err);
}

int ws_write(struct ws *w, enum ws_opcode opcode, str data, struct err *err)
{
	return write_frame(w, opcode, data, STR_NONE, err);
}

int ws_ping(struct ws *w, str data, struct err *err)
{
	return write_frame(w, WS_PING, str_head(data, WS_CONTROL_MAX), STR_NONE, err);
}

/* (suspends) */
static int write_close(struct ws *w, int code, str reason, struct err *err)
{
	char bytes[2] = { (char)(code >> 8), (char)code };
	if (w->close_sent)
		return 0;
	if (code == WS_NO_CODE)
		return write_frame(w, WS_CLOSE, STR_NONE, STR_NONE, err);
	reason = str_head(reason, WS_CONTROL_MAX - 2);
	while (reason.n && !str_is_utf8(reason))
		reason.n--;
	return write_frame(w, WS_CLOSE, str_span(bytes, 2), reason, err);
}

/* (suspends) Tells the other side why, in a second at most; the error to return is already in err. */
static void refuse(struct ws *w, int code)
{
	DEADLINE_SCOPE(CLOSE_WRITE_MS);
	(void)write_close(w, code, STR_NONE, NULL);
}

/* ---- reading ---- */

/* (suspends) More input behind what is left of it. */
static int fill(struct ws *w, struct err *err)
{
	memmove(w->in, w->in + w->at, w->n);
	w->at = 0;
	ssize_t n = stream_read(w->stream, w->in + w->n, sizeof(w->in) - w->n, err);
	if (n == 0)
		return err_set(err, ERR_GONE, "websocket: unexpected EOF");
	if (n < 0)
		return (int)n;
	w->n += (size_t)n;
	return 0;
}

/* The rules that depend on the role and on what came before. */
static int check_order(struct ws *w, const struct ws_frame *f, struct err *err)
{
	if (f->masked == w->client)
		return err_set(err, ERR_BAD_REQUEST, "websocket: %s",
			       w->client ? "a masked frame from the server" : "a frame without mask");
	if (f->opcode >= WS_CLOSE)
		return 0;
	if (f->opcode == WS_CONTINUATION && !w->in_message)
		return err_set(err, ERR_BAD_REQUEST, "websocket: a continuation of nothing");
	if (f->opcode != WS_CONTINUATION && w->in_message)
		return err_set(err, ERR_BAD_REQUEST, "websocket: a new message inside another");
	return 0;
}

/* (suspends) */
static int begin_frame(struct ws *w, struct err *err)
{
	size_t used;
	int r;
	while ((r = ws_frame_parse(str_span(w->in + w->at, w->n), &w->frame, &used, err)) == 0)
		if ((r = fill(w, err)) < 0)
			return r;
	if (r < 0 || (r = check_order(w, &w->frame, err)) < 0) {
		refuse(w, WS_PROTOCOL_ERROR);
		return r;
	}
	w->at += used;
	w->n -= used;
	w->in_frame = true;
	w->at_payload = 0;
	w->n_control = 0;
	if (w->frame.opcode == WS_TEXT || w->frame.opcode == WS_BINARY) {
		w->in_message = true;
		w->message = w->frame.opcode;
		w->utf8 = (struct ws_utf8){ 0 };
	}
	return 0;
}

/* (suspends) What is there of the frame's payload, at least a byte unless there is none left. */
static int take_payload(struct ws *w, str *ret, struct err *err)
{
	uint64_t left = w->frame.length - w->at_payload;
	if (left && !w->n) {
		int r = fill(w, err);
		if (r < 0)
			return r;
	}
	size_t n = (size_t)MIN(left, (uint64_t)w->n);
	char *p = w->in + w->at;
	if (w->frame.masked)
		ws_mask(p, n, w->frame.mask, w->at_payload);
	w->at += n;
	w->n -= n;
	w->at_payload += n;
	w->in_frame = w->at_payload < w->frame.length;
	*ret = str_span(p, n);
	return 0;
}

/* Codes that may stand in a close frame: those of the RFC and its registry, and the ranges for libraries and programs. */
static bool code_valid(int code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

/* (suspends) */
static int take_close(struct ws *w, str payload, struct err *err)
{
	int code = payload.n >= 2 ? (unsigned char)payload.p[0] << 8 | (unsigned char)payload.p[1] : WS_NO_CODE;
	str reason = str_skip(payload, 2);
	if (payload.n == 1 || (payload.n && !code_valid(code)) || !str_is_utf8(reason)) {
		refuse(w, WS_PROTOCOL_ERROR);
		return err_set(err, ERR_BAD_REQUEST, "websocket: a malformed close frame");
	}
	w->close_received = true;
	w->code = code;
	if (reason.n)
		memcpy(w->reason, reason.p, reason.n);
	w->n_reason = reason.n;
	/* The other side is leaving: that it may not hear the answer is no error. */
	DEADLINE_SCOPE(CLOSE_WRITE_MS);
	(void)write_close(w, code, STR_NONE, NULL);
	return 0;
}

/* (suspends) A piece of a control frame; acts when it is complete. */
static int take_control(struct ws *w, str piece, struct err *err)
{
	if (piece.n)
		memcpy(w->control + w->n_control, piece.p, piece.n);
	w->n_control += piece.n;
	if (w->in_frame)
		return 0;
	str payload = str_span(w->control, w->n_control);
	if (w->frame.opcode == WS_CLOSE)
		return take_close(w, payload, err);
	if (w->frame.opcode == WS_PONG || w->close_sent)
		return 0;
	return write_frame(w, WS_PONG, payload, STR_NONE, err);
}

int ws_read_part(struct ws *w, str *ret_data, bool *ret_last, struct err *err)
{
	for (;;) {
		str piece;
		int r;
		if (w->close_received)
			return 0;
		if (!w->in_frame && (r = begin_frame(w, err)) < 0)
			return r;
		if ((r = take_payload(w, &piece, err)) < 0)
			return r;
		if (w->frame.opcode >= WS_CLOSE) {
			if ((r = take_control(w, piece, err)) < 0)
				return r;
			continue;
		}
		bool last = !w->in_frame && w->frame.fin;
		if (w->message == WS_TEXT && (!ws_utf8_next(&w->utf8, piece) || (last && w->utf8.left))) {
			refuse(w, WS_BAD_DATA);
			return err_set(err, ERR_BAD_REQUEST, "websocket: text that is not UTF-8");
		}
		w->in_message = !last;
		if (!piece.n && !last)
			continue;
		*ret_data = piece;
		*ret_last = last;
		return (int)w->message;
	}
}

int ws_read(struct ws *w, str *ret_data, struct err *err)
{
	if (!w->collecting)
		buf_reset(&w->whole);
	w->collecting = true;
	for (;;) {
		str piece;
		bool last;
		int r = ws_read_part(w, &piece, &last, err);
		if (r <= 0)
			return r;
		w->collecting = !last;
		if (last && w->whole.n == 0 && piece.n <= w->whole.max) {
			*ret_data = piece;
			return r;
		}
		buf_add(&w->whole, piece);
		/* One that says it is too large need not be collected first. */
		uint64_t left = w->in_frame ? w->frame.length - w->at_payload : 0;
		if (w->whole.overflow || left > w->whole.max - w->whole.n) {
			refuse(w, WS_TOO_BIG);
			return err_set(err, ERR_TOO_LARGE, "websocket: a message larger than %zu bytes", w->whole.max);
		}
		if (last) {
			*ret_data = buf_str(&w->whole);
			return r;
		}
	}
}

int ws_close(struct ws *w, int code, str reason, int64_t wait_ms, struct err *err)
{
	int r = write_close(w, code, reason, err);
	if (r < 0 || !wait_ms)
		return r;
	DEADLINE_SCOPE(wait_ms);
	str data;
	bool last;
	while (ws_read_part(w, &data, &last, NULL) > 0)
		;
	return 0;
}

/* ---- client ---- */

static int dial_call(struct http_call *call, const struct ws_headers *h, const char *const *protocols,
		     const char **ret_protocol, int *ret_status, struct err *err)
{
	const struct http1_head *head;
	str protocol;
	int r = http_call_head(call, &head, err);
	if (r < 0)
		return r;
	if (ret_status)
		*ret_status = head->status;
	if ((r = ws_check_response(h, protocols, head->status, head->headers, head->n_headers, &protocol, err)) < 0)
		return r;
	for (; ret_protocol && protocols && *protocols; protocols++)
		if (str_eq(protocol, str_of(*protocols)))
			*ret_protocol = *protocols;
	return 0;
}

int ws_dial(struct http_client *c, const struct http_request *q, const char *const *protocols, const struct ws_options *o,
	    struct ws **ret_ws, const char **ret_protocol, int *ret_status, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct http_request full = *q;
	struct ws_options client = *o;
	struct ws_headers h;
	struct stream *stream;

	if (ret_protocol)
		*ret_protocol = NULL;
	if (ret_status)
		*ret_status = 0;
	ws_request_headers(&a, protocols, &h);
	struct http_header *all = ARENA_ARRAY(&a, struct http_header, q->n_headers + h.n);
	for (size_t i = 0; i < q->n_headers; i++)
		all[i] = q->headers[i];
	memcpy(all + q->n_headers, h.headers, h.n * sizeof(*all));
	full.headers = all;
	full.n_headers += h.n;
	int r = http_call_open(c, &full, &call, err);
	if (r < 0 || (r = dial_call(call, &h, protocols, ret_protocol, ret_status, err)) < 0 ||
	    (r = http_call_upgrade(call, &stream, err)) < 0)
		return r;
	client.client = true;
	*ret_ws = ws_new(stream, &client);
	return 0;
}
