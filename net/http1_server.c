/*
 * HTTP/1.0 and 1.1, without I/O. One request is at work at a time; those that follow it on the connection wait in the
 * input buffer, of which a bounded part is read ahead (so that a client that leaves is noticed).
 *
 *	HEAD -> BODY -> WAIT -> HEAD ...    WAIT: the request is complete, its answer is not
 *	          +---> DRAIN --^           DRAIN: the answer is complete, the rest of the body is skipped
 *	any of them -> DEAD                 nothing more is read
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/http1.h"
#include "net/http_priv.h"

enum {
	AHEAD_MAX = 64 * 1024,
	DRAIN_MAX = 16 << 20,        /* bytes of a body that nobody reads: a client that sends too much should hear the answer */
	HEAD_MAX = 1 << 20,          /* of an answer */
	CHUNK_HEAD = 7,              /* "01abc\r\n" */
	CHUNK_ROOM = CHUNK_HEAD + 2 + 5 + 64, /* around the data, the last chunk included */
};

enum h1_state { H1_HEAD, H1_BODY, H1_WAIT, H1_DRAIN, H1_DEAD };

struct h1 {
	enum h1_state state;
	struct buf in;
	size_t in_at;                /* in.p[in_at..] is not used yet */
	struct http1_parser parser;
	struct http1_body body;
	size_t drained;              /* of this body */
	struct exchange *cur;
	bool close;                  /* after this answer */
	bool stopped;
	bool go_on;                  /* "100 Continue" is to be sent */
	bool chunked, ended;         /* the answer; it has been pulled to its end */
	struct buf head;             /* of the answer */
};

static struct h1 *h1_of(const struct http_conn *c) { return c->state; }
static str rest(const struct h1 *h) { return str_skip(buf_str(&h->in), h->in_at); }

static void used(struct h1 *h, size_t n)
{
	h->in_at += n;
	if (h->in_at == h->in.n) {
		buf_reset(&h->in);
		h->in_at = 0;
	}
}

/* ---- Requests ---- */

static void die(struct http_conn *c)
{
	struct h1 *h = h1_of(c);

	h->state = H1_DEAD;
	h->close = true;
	c->linger = true;
	buf_reset(&h->in);
	h->in_at = 0;
	conn_dirty(c); /* the answer may be out already, and then nothing else ends the connection */
}

static void begin_request(struct exchange *x, const struct http1_head *head)
{
	struct h1 *h = h1_of(x->conn);
	struct http_exchange *pub = &x->pub;

	pub->version = head->version;
	pub->method = head->method;
	pub->path = head->path;
	pub->query = head->query;
	pub->authority = head->authority;
	pub->n_headers = head->n_headers;
	pub->content_length = head->content_length;
	x->headers = (struct http_header *)(uintptr_t)head->headers;
	x->expect_continue = head->expect_continue;
	h->close = !head->keep_alive || h->stopped;
	h->ended = false;
	h->drained = 0;
	http1_body_init(&h->body, head);
	x->in_end = head->framing == HTTP1_BODY_NONE;
	h->state = x->in_end ? H1_WAIT : H1_BODY;
	exchange_start(x);
}

/* 1 when it got further. */
static int parse_head(struct http_conn *c)
{
	struct h1 *h = h1_of(c);
	struct http1_head head;
	size_t n = 0;

	if (!rest(h).n)
		return 0;
	if (!h->cur) {
		http1_request_init(&h->parser, c->server->o.max_header_bytes);
		h->cur = exchange_new(c);
		c->head_ns = clock_now_ns();
	}
	int r = http1_parse(&h->parser, rest(h), &h->cur->arena, &head, &n, NULL);
	if (r == 0)
		return 0;
	c->head_ns = 0;
	if (r > 0) {
		used(h, n);
		begin_request(h->cur, &head);
		return 1;
	}
	die(c);
	h->cur->pub.version = 11;
	exchange_refuse(h->cur, h->parser.status);
	return 0;
}

static int parse_body(struct http_conn *c)
{
	struct h1 *h = h1_of(c);
	struct exchange *x = h->cur;
	bool drain = h->state == H1_DRAIN || x->answered;
	size_t n = 0;
	str data = STR_NONE;

	if (!rest(h).n || (!drain && exchange_unread(x) >= HTTP_STREAM_WINDOW))
		return 0;
	int r = http1_body_next(&h->body, rest(h), &n, &data, NULL);
	if (r >= 0 && data.n && !drain)
		exchange_body(x, data);
	else if (drain)
		h->drained += n;
	used(h, n);
	if (r == 0 && h->drained <= DRAIN_MAX)
		return n > 0;
	if (r == 1) {
		if (x)
			exchange_body_end(x);
		h->state = x ? H1_WAIT : H1_HEAD;
		return 1;
	}
	die(c);
	if (x)
		exchange_body_error(x, ERR_BAD_REQUEST);
	return 0;
}

/* Goes on with the input as far as possible. */
static void advance(struct http_conn *c)
{
	struct h1 *h = h1_of(c);
	int further = 1;

	while (further && !c->ending) {
		if (h->state == H1_HEAD)
			further = h->close ? 0 : parse_head(c);
		else if (h->state == H1_BODY || h->state == H1_DRAIN)
			further = parse_body(c);
		else
			further = 0;
	}
}

static bool hungry(const struct http_conn *c)
{
	const struct h1 *h = h1_of(c);

	if (h->state == H1_DEAD)
		return false;
	if (h->state == H1_BODY && !h->cur->answered && exchange_unread(h->cur) >= HTTP_STREAM_WINDOW)
		return false;
	return h->state == H1_HEAD || rest(h).n < AHEAD_MAX;
}

static int feed(struct http_conn *c, str in, struct err *err)
{
	struct h1 *h = h1_of(c);

	(void)err;
	if (h->state != H1_DEAD)
		buf_add(&h->in, in);
	/* What was used is moved out of the way before the buffer grows large. */
	if (h->in_at > AHEAD_MAX) {
		memmove(h->in.p, h->in.p + h->in_at, h->in.n - h->in_at);
		h->in.n -= h->in_at;
		h->in_at = 0;
	}
	advance(c);
	return 0;
}

/* ---- Answers ---- */

static void answer(struct exchange *x, const struct http_header *headers, size_t n)
{
	struct h1 *h = h1_of(x->conn);
	struct buf *b = &h->head;

	h->chunked = x->left < 0 && x->pub.version >= 11;
	h->close = h->close || h->stopped || (x->left < 0 && x->pub.version < 11);
	/* A body that was announced and that we never asked for may come or not. */
	h->close = h->close || (x->expect_continue && !x->in_end && !x->in_wanted);
	buf_reset(b);
	http1_add_status(b, x->status);
	http1_add_headers(b, headers, n);
	http1_add_header(b, STR("date"), server_date(x->conn->server));
	if (http_status_has_body(x->status) && x->left >= 0)
		http1_add_header(b, STR("content-length"), http_digits(&x->arena, (uint64_t)x->left));
	else if (http_status_has_body(x->status) && h->chunked)
		buf_add(b, STR("Transfer-Encoding: chunked\r\n"));
	if (h->close)
		buf_add(b, STR("Connection: close\r\n"));
	else if (x->pub.version < 11)
		buf_add(b, STR("Connection: keep-alive\r\n"));
	http1_add_end(b);
	x->head = buf_str(b);
	h->ended = false;
	if (b->overflow)
		conn_end(x->conn);
	conn_dirty(x->conn);
}

/* The answer has been pulled and the handler has returned: on to the next request. */
static void next_request(struct http_conn *c)
{
	struct h1 *h = h1_of(c);
	struct exchange *x = TAKE(h->cur);

	if (h->state == H1_BODY) {
		h->state = H1_DRAIN;
		c->linger = true;
	} else if (h->state == H1_WAIT) {
		h->state = H1_HEAD;
	}
	exchange_close(x);
	advance(c);
	conn_changed(c);
}

static void end_answer(struct http_conn *c)
{
	struct h1 *h = h1_of(c);

	h->ended = true;
	if (h->cur->handled || !h->cur->started)
		next_request(c);
}

static void handled(struct exchange *x)
{
	if (h1_of(x->conn)->ended) {
		next_request(x->conn);
		conn_dirty(x->conn);
	}
}

static size_t put(char *p, str s)
{
	memcpy(p, s.p, s.n);
	return s.n;
}

/* One piece of the body with what stands around it: bytes, 0 when there is nothing now, or -ERR_INTERNAL. */
static ssize_t pull_body(struct http_conn *c, char *p, size_t room)
{
	struct h1 *h = h1_of(c);
	size_t before = h->chunked ? CHUNK_HEAD : 0, at = 0;
	bool end = !h->cur->source && !h->cur->body.n;
	ssize_t got = end ? 0 : exchange_fill(h->cur, p + before, room - CHUNK_ROOM, &end);

	if (got == HTTP_LATER)
		return 0;
	if (got < 0)
		return -ERR_INTERNAL;
	if (h->chunked && got) {
		static const char hex[] = "0123456789abcdef";
		for (int i = 0; i < CHUNK_HEAD - 2; i++)
			p[i] = hex[got >> 4 * (CHUNK_HEAD - 3 - i) & 15];
		(void)put(p + CHUNK_HEAD - 2, HTTP1_CHUNK_TAIL);
		at = before + (size_t)got;
		at += put(p + at, HTTP1_CHUNK_TAIL);
	} else {
		at = (size_t)got;
	}
	if (!end)
		return (ssize_t)at;
	if (h->chunked && !h->cur->head_only && http_status_has_body(h->cur->status))
		at += put(p + at, HTTP1_LAST_CHUNK);
	end_answer(c);
	return (ssize_t)at;
}

static ssize_t pull(struct http_conn *c, char *p, size_t room, struct err *err)
{
	struct h1 *h = h1_of(c);
	size_t at = 0;

	if (h->go_on && h->cur && !h->cur->answered)
		at += put(p, STR("HTTP/1.1 100 Continue\r\n\r\n"));
	h->go_on = false;
	/* Sources are asked when the answer begins and when they are woken; they need no list of their own. */
	while (!list_empty(&c->woken))
		list_remove(c->woken.next);
	while (h->cur && h->cur->answered && !h->ended && room - at > CHUNK_ROOM) {
		struct exchange *x = h->cur;
		if (x->head.n) {
			size_t n = MIN(x->head.n, room - at);
			at += put(p + at, str_head(x->head, n));
			x->head = str_skip(x->head, n);
			continue;
		}
		ssize_t n = x->later ? 0 : pull_body(c, p + at, room - at);
		if (n < 0)
			return err_set(err, ERR_INTERNAL, "an answer broke off");
		if (n == 0 && x == h->cur && !h->ended)
			break;
		at += (size_t)n;
	}
	return (ssize_t)at;
}

static void abandon(struct exchange *x)
{
	x->conn->broken = true;
	conn_end(x->conn);
}

static void want_body(struct exchange *x)
{
	if (!x->expect_continue || x->answered)
		return;
	h1_of(x->conn)->go_on = true;
	conn_dirty(x->conn);
}

static void took_body(struct exchange *x, size_t n)
{
	struct http_conn *c = x->conn;

	(void)n;
	advance(c);
	if (hungry(c))
		conn_changed(c);
}

/* ---- The connection ---- */

static void open_state(struct http_conn *c)
{
	struct h1 *h = c->state = mem_zalloc(sizeof(*h));

	/* A head, a body's window, and what is read at a time. */
	buf_init(&h->in, c->server->o.max_header_bytes + HTTP_STREAM_WINDOW + HTTP_IN_SIZE + AHEAD_MAX);
	buf_init(&h->head, HEAD_MAX);
}

static bool finished(const struct http_conn *c) { return h1_of(c)->close && !h1_of(c)->cur; }

static void stop(struct http_conn *c)
{
	struct h1 *h = h1_of(c);

	h->stopped = true;
	if (!h->cur)
		h->close = true;
	else if (!h->cur->started)
		conn_end(c);
}

static void late(struct http_conn *c)
{
	struct h1 *h = h1_of(c);

	die(c);
	if (h->cur && !h->cur->started && !h->cur->answered)
		exchange_refuse(h->cur, 408);
}

/* A full socket has a fiber that looks at the time. */
static void expire(struct http_conn *c, int64_t before_ns) { (void)c, (void)before_ns; }

static void done(struct http_conn *c)
{
	struct h1 *h = h1_of(c);

	buf_done(&h->in);
	buf_done(&h->head);
	free(h);
}

const struct http_protocol http1_protocol = {
	.version = 11,
	.open = open_state,
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

/* ---- Leaving HTTP ---- */

/* (suspends) The reader is sent away first: two must not wait for the same bytes. */
static int switch_protocols(struct http_conn *c, const struct http_header *headers, size_t n, struct err *err)
{
	CLEANUP(buf_done) struct buf head = BUF_INIT(HEAD_MAX);
	int r = 0;

	c->upgraded = true;
	conn_end(c);
	while (r == 0 && (!c->reader_left || c->writer))
		r = fiber_cond_wait(&c->changed, err);
	if (r < 0)
		return r;
	http1_add_status(&head, 101);
	http1_add_headers(&head, headers, n);
	http1_add_end(&head);
	r = buf_check(&head, "the head of the answer", err);
	return r < 0 ? r : stream_write(c->stream, head.p, head.n, err);
}

int http_upgrade(struct http_exchange *pub, const struct http_header *headers, size_t n, struct stream **ret,
		 struct err *err)
{
	struct exchange *x = CONTAINER_OF(pub, struct exchange, pub);
	struct http_conn *c = x->conn;

	if (pub->version != 11 || !x->in_end || exchange_unread(x))
		return err_set(err, ERR_BAD_REQUEST, "only a request of HTTP/1.1 without a body can be upgraded");
	if (x->closed || c->ending)
		return err_set(err, ERR_GONE, "the client went away");
	x->answered = true; /* so that the end of the connection does not cancel this fiber */
	int r = switch_protocols(c, headers, n, err);
	if (r < 0) {
		x->answered = false; /* what the handler answers with then goes nowhere */
		return r;
	}
	stream_unread(c->stream, rest(h1_of(c)));
	*ret = TAKE(c->stream);
	return 0;
}
