/*
 * A session is its streams, a fiber that reads, and a lock under which frames are written (and header blocks packed,
 * since their order counts). The session and its streams hold references to each other's memory, so that either may be
 * let go first:
 *
 *	session   one reference for the owner, one per stream
 *	stream    one for whoever accepted or opened it (before: the accept queue), one while it is registered by number,
 *	          one while the reader works on a frame of it
 *
 * A stream is registered from its SYN_STREAM until both directions have ended. Frames for numbers that are not
 * registered are dropped: they crossed a reset.
 */
#include "net/spdy.h"

#include "base/clock.h"
#include "base/fiber.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/write_lock.h"

enum { INPUT_BYTES = 16 * 1024, DATA_BYTES = 32 * 1024, GOODBYE_MS = 1000 };

struct spdy {
	unsigned refs;
	bool client;
	size_t queue_bytes;
	unsigned max_streams, n_remote; /* n_remote: streams of the other side whose memory lives */
	int64_t idle_timeout_ms, active_ns;
	struct loop_timer idle_timer;
	struct stream *stream;          /* NULL once freed */
	struct write_lock lock;
	struct spdy_packer *packer;
	struct spdy_unpacker *unpacker;
	struct fiber *reader;
	struct map streams;             /* by number */
	struct list waiting;            /* to be accepted */
	struct list pings;
	struct fiber_cond changed;      /* waiting, pings, gone_away, ended */
	uint32_t next_id, last_id, next_ping;
	bool gone_away, closing, idled, ended;
	struct err why;                 /* it ended, when not properly */
	struct buf control;
	size_t at, n;                   /* of in: what is left to take */
	char in[INPUT_BYTES];
};

struct spdy_stream {
	unsigned refs;
	uint32_t id;
	struct spdy *session;
	struct list link;               /* in session->waiting */
	struct arena arena;
	const struct http_header *headers;
	size_t n_headers;
	bool own;                       /* opened by this side */
	bool registered, replied, read_done, write_done;
	uint32_t reset_status;
	struct buf queue;
	size_t at;                      /* of the queue: what was read of it */
	struct fiber_cond changed;
};

struct ping {
	struct list link;
	uint32_t id;
	bool echoed;
};

/* ---- life of memory ---- */

static void session_unref(struct spdy *s)
{
	if (--s->refs)
		return;
	spdy_packer_free(s->packer);
	spdy_unpacker_free(s->unpacker);
	map_done(&s->streams);
	buf_done(&s->control);
	free(s);
}

static void session_unrefp(struct spdy **s) { session_unref(*s); }

/* For calls that wait: the owner may let go of the session meanwhile. */
#define HOLD_SESSION(s) CLEANUP(session_unrefp) __attribute__((unused)) struct spdy *held_ = ((s)->refs++, (s))

static void stream_unref(struct spdy_stream *st)
{
	if (--st->refs)
		return;
	st->session->n_remote -= !st->own && st->id;
	buf_done(&st->queue);
	arena_done(&st->arena);
	session_unref(st->session);
	free(st);
}

static void stream_unrefp(struct spdy_stream **st)
{
	if (*st)
		stream_unref(*st);
}

static struct spdy_stream *stream_new(struct spdy *s, bool own)
{
	struct spdy_stream *st = mem_zalloc(sizeof(*st));
	st->refs = 1;
	st->session = s;
	st->own = own;
	s->refs++;
	arena_init(&st->arena);
	buf_init(&st->queue, 2 * s->queue_bytes);
	fiber_cond_init(&st->changed, "a SPDY stream");
	return st;
}

static str id_key(const uint32_t *id) { return str_span((const char *)id, sizeof(*id)); }

static void stream_register(struct spdy_stream *st, uint32_t id)
{
	st->id = id;
	st->registered = true;
	st->refs++;
	st->session->n_remote += !st->own; /* until its memory goes, so that resets do not make room for more */
	(void)map_put(&st->session->streams, id_key(&st->id), st);
}

static void stream_unregister(struct spdy_stream *st)
{
	if (!st->registered)
		return;
	st->registered = false;
	(void)map_remove(&st->session->streams, id_key(&st->id));
	stream_unref(st);
}

/* Ends directions of a stream; its memory may go with the last reference but the caller's. */
static void stream_end(struct spdy_stream *st, bool reading, bool writing)
{
	st->read_done |= reading;
	st->write_done |= writing;
	fiber_cond_broadcast(&st->changed);
	if (st->read_done && st->write_done)
		stream_unregister(st);
}

/* ---- writing ---- */

/* (suspends) */
static int session_write(struct spdy *s, str head, str body, struct err *err)
{
	if (!s->stream || s->ended)
		return err_set(err, ERR_GONE, "spdy: the session has ended");
	s->active_ns = clock_now_ns();
	return write_lock_write(&s->lock, s->stream, head, body, err);
}

/* (suspends) */
static int write_rst(struct spdy *s, uint32_t id, enum spdy_status status, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64);
	spdy_add_rst(&b, id, status);
	return session_write(s, buf_str(&b), STR_NONE, err);
}

/* (suspends) A frame with headers; a new stream of ours gets its number here, where the order is settled. */
static int write_headers(struct spdy_stream *st, enum spdy_type type, const struct http_header *headers, size_t n,
			 struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SPDY_BLOCK_MAX + 1024);
	struct spdy *s = st->session;
	int r = s->stream ? write_lock_take(&s->lock, err) : err_set(err, ERR_GONE, "spdy: the session has ended");
	if (r < 0)
		return r;
	if (type == SPDY_SYN_STREAM && (s->gone_away || s->closing || s->next_id > INT32_MAX))
		r = err_set(err, ERR_GONE, "spdy: the session takes no more streams");
	uint32_t id = type == SPDY_SYN_STREAM ? s->next_id : st->id;
	if (r == 0 && (r = spdy_add_headers(&b, type, id, 0, s->packer, headers, n, err)) == 0) {
		if (type == SPDY_SYN_STREAM) {
			s->next_id += 2;
			stream_register(st, id);
		}
		s->active_ns = clock_now_ns();
		r = stream_write(s->stream, b.p, b.n, err);
		s->lock.broken |= r < 0;
	}
	write_lock_release(&s->lock);
	return r;
}

/* ---- the reader ---- */

/* (suspends) At least n bytes at in + at; 0 when the connection ended before the first of them. */
static int need(struct spdy *s, size_t n, struct err *err)
{
	while (s->n < n) {
		memmove(s->in, s->in + s->at, s->n);
		s->at = 0;
		ssize_t got = stream_read(s->stream, s->in + s->n, sizeof(s->in) - s->n, err);
		if (got < 0)
			return (int)got;
		if (got == 0 && s->n)
			return err_set(err, ERR_GONE, "spdy: unexpected EOF");
		if (got == 0)
			return 0;
		s->n += (size_t)got;
		s->active_ns = clock_now_ns();
	}
	return 1;
}

static str take(struct spdy *s, size_t n)
{
	str got = str_span(s->in + s->at, MIN(n, s->n));
	s->at += got.n;
	s->n -= got.n;
	return got;
}

/* (suspends) Some of a frame's payload. */
static int take_payload(struct spdy *s, size_t left, str *ret, struct err *err)
{
	int r = need(s, 1, err);
	if (r == 0)
		return err_set(err, ERR_GONE, "spdy: unexpected EOF");
	if (r > 0)
		*ret = take(s, left);
	return r;
}

static size_t queue_len(const struct spdy_stream *st) { return st->queue.n - st->at; }

static size_t queue_room(const struct spdy_stream *st) { return st->session->queue_bytes - queue_len(st); }

/* Puts data behind what waits; there is room. The buffer is twice as large as the queue, so that moving stays cheap. */
static void queue_add(struct spdy_stream *st, str data)
{
	if (st->at >= st->session->queue_bytes) {
		memmove(st->queue.p, st->queue.p + st->at, queue_len(st));
		st->queue.n -= st->at;
		st->at = 0;
	}
	buf_add(&st->queue, data);
	fiber_cond_broadcast(&st->changed);
}

/* Nobody wants data of a stream that has ended or whose session is being closed. */
static bool wants(const struct spdy_stream *st)
{
	return st && st->registered && !st->read_done && !st->session->closing;
}

/* (suspends) Waits for room: the one place where a slow reader holds up the session. */
static int queue_data(struct spdy_stream *st, str data, struct err *err)
{
	while (data.n && wants(st)) {
		size_t room = queue_room(st);
		if (!room) {
			int r = fiber_cond_wait(&st->changed, err);
			if (r < 0)
				return r;
			continue;
		}
		queue_add(st, str_head(data, room));
		data = str_skip(data, room);
	}
	return 0;
}

static struct spdy_stream *find_stream(struct spdy *s, uint32_t id)
{
	struct spdy_stream *st = map_get(&s->streams, id_key(&id));
	if (st)
		st->refs++;
	return st;
}

/* (suspends) */
static int read_data(struct spdy *s, const struct spdy_frame *f, struct err *err)
{
	CLEANUP(stream_unrefp) struct spdy_stream *st = find_stream(s, f->stream);
	for (size_t left = f->length; left;) {
		str data;
		int r = take_payload(s, left, &data, err);
		if (r < 0)
			return r;
		left -= data.n;
		/* The data lies in the input buffer, which only this fiber fills. */
		if (st && (r = queue_data(st, data, err)) < 0)
			return r;
	}
	if (st && f->flags & SPDY_FIN)
		stream_end(st, true, false);
	return 1;
}

/* (suspends) */
static int on_syn_stream(struct spdy *s, const struct spdy_frame *f, const struct spdy_control *c, struct spdy_stream *st,
			 struct err *err)
{
	if (s->closing || s->gone_away)
		return 0;
	if ((c->stream & 1) == s->client || c->stream <= s->last_id)
		return write_rst(s, c->stream, SPDY_PROTOCOL_ERROR, err);
	s->last_id = c->stream;
	if (s->n_remote >= s->max_streams)
		return write_rst(s, c->stream, SPDY_REFUSED_STREAM, err);
	st->headers = c->headers;
	st->n_headers = c->n_headers;
	stream_register(st, c->stream);
	st->refs++;
	list_add(&s->waiting, &st->link);
	stream_end(st, f->flags & SPDY_FIN, f->flags & SPDY_UNIDIRECTIONAL);
	fiber_cond_broadcast(&s->changed);
	return 0;
}

static void on_stream_frame(struct spdy *s, const struct spdy_frame *f, const struct spdy_control *c)
{
	CLEANUP(stream_unrefp) struct spdy_stream *st = find_stream(s, c->stream);
	if (!st)
		return;
	if (f->type == SPDY_RST_STREAM) {
		st->reset_status = c->value;
		if (list_linked(&st->link)) { /* nobody knows it yet */
			list_remove(&st->link);
			stream_unref(st);
		}
		stream_end(st, true, true);
		return;
	}
	st->replied |= f->type == SPDY_SYN_REPLY && st->own;
	stream_end(st, f->flags & SPDY_FIN, false);
}

/* (suspends) */
static int on_ping(struct spdy *s, uint32_t id, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64);
	if ((id & 1) != s->client) {
		spdy_add_ping(&b, id);
		return session_write(s, buf_str(&b), STR_NONE, err);
	}
	LIST_EACH(struct ping, p, &s->pings, link)
		p->echoed |= p->id == id;
	fiber_cond_broadcast(&s->changed);
	return 0;
}

/* Streams that the other side will not look at any more are as good as reset. */
static void on_goaway(struct spdy *s, uint32_t last_id)
{
	struct map_iter it = map_iter(&s->streams);
	struct spdy_stream *st;
	s->gone_away = true;
	while ((st = map_next(&it, NULL))) {
		if (!st->own || st->replied || st->id <= last_id)
			continue;
		st->reset_status = SPDY_REFUSED_STREAM;
		stream_end(st, true, true);
	}
	fiber_cond_broadcast(&s->changed);
}

/* (suspends) */
static int read_control(struct spdy *s, const struct spdy_frame *f, struct err *err)
{
	struct spdy_control c;
	int r;
	buf_reset(&s->control);
	while (s->control.n < f->length) {
		str data;
		if ((r = take_payload(s, f->length - s->control.n, &data, err)) < 0)
			return r;
		buf_add(&s->control, data);
	}
	/* Headers are kept with the stream that they open; of other frames they are not needed. */
	CLEANUP(stream_unrefp) struct spdy_stream *st = stream_new(s, false);
	r = spdy_control_parse(f, buf_str(&s->control), s->unpacker, &st->arena, &c, err);
	if (r < 0)
		return r;
	switch (f->type) {
	case SPDY_SYN_STREAM:
		r = on_syn_stream(s, f, &c, st, err);
		break;
	case SPDY_SYN_REPLY:
	case SPDY_RST_STREAM:
	case SPDY_HEADERS:
		on_stream_frame(s, f, &c);
		break;
	case SPDY_PING:
		r = on_ping(s, c.value, err);
		break;
	case SPDY_GOAWAY:
		on_goaway(s, c.stream);
		break;
	}
	return r < 0 ? r : 1;
}

static void session_end(struct spdy *s)
{
	struct map_iter it = map_iter(&s->streams);
	struct spdy_stream *st;
	s->ended = true;
	while ((st = map_next(&it, NULL)))
		stream_end(st, true, true);
	loop_timer_stop(&s->idle_timer);
	fiber_cond_broadcast(&s->changed);
}

/* (suspends) */
static void say_protocol_error(struct spdy *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64);
	DEADLINE_SCOPE(GOODBYE_MS);
	spdy_add_goaway(&b, s->last_id, 1);
	if (session_write(s, buf_str(&b), STR_NONE, NULL) == 0)
		(void)stream_shutdown_write(s->stream, NULL);
}

static int read_frames(void *arg)
{
	struct spdy *s = arg;
	struct spdy_frame f;
	int r;
	while ((r = need(s, SPDY_FRAME_HEAD, &s->why)) > 0) {
		if ((r = spdy_frame_parse(take(s, SPDY_FRAME_HEAD).p, &f, &s->why)) < 0)
			break;
		r = f.control ? read_control(s, &f, &s->why) : read_data(s, &f, &s->why);
		if (r < 0)
			break;
	}
	if (r == -ERR_BAD_REQUEST)
		say_protocol_error(s);
	if (s->idled)
		(void)err_set(&s->why, ERR_GONE, "spdy: the session was idle for too long");
	session_end(s);
	return r;
}

static void idle_check(struct loop_timer *timer)
{
	struct spdy *s = CONTAINER_OF(timer, struct spdy, idle_timer);
	int64_t due_ns = s->active_ns + s->idle_timeout_ms * NS_PER_MS;
	if (due_ns > clock_now_ns()) {
		loop_timer_start(timer, due_ns);
		return;
	}
	s->idled = true;
	stream_abort(s->stream);
	fiber_cancel(s->reader); /* which may be waiting for somebody to read a full queue */
}

/* ---- the session ---- */

int spdy_new(struct stream *stream, const struct spdy_options *o, struct spdy **ret_session, struct err *err)
{
	struct spdy *s = mem_alloc(sizeof(*s));
	memset(s, 0, offsetof(struct spdy, in));
	s->refs = 1;
	s->client = o->client;
	s->queue_bytes = o->queue_bytes ? o->queue_bytes : 256 * 1024;
	s->max_streams = o->max_streams ? o->max_streams : 1000;
	s->idle_timeout_ms = o->idle_timeout_ms;
	s->active_ns = clock_now_ns();
	s->idle_timer = (struct loop_timer)LOOP_TIMER_INIT(idle_check);
	s->stream = stream;
	write_lock_init(&s->lock);
	s->packer = spdy_packer_new();
	s->unpacker = spdy_unpacker_new();
	map_init(&s->streams);
	list_init(&s->waiting);
	list_init(&s->pings);
	fiber_cond_init(&s->changed, "a SPDY session");
	s->next_id = s->next_ping = o->client ? 1 : 2;
	buf_init(&s->control, SPDY_CONTROL_MAX);
	int r = fiber_spawn(read_frames, s, &s->reader, err, "spdy reader");
	if (r < 0) {
		stream_free(stream);
		session_unref(s);
		return r;
	}
	if (s->idle_timeout_ms)
		loop_timer_start(&s->idle_timer, s->active_ns + s->idle_timeout_ms * NS_PER_MS);
	*ret_session = s;
	return 0;
}

/* (suspends) Resets and GOAWAY in one write, then waits for the end from the other side: what it sends is dropped. */
static void say_goodbye(struct spdy *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
	struct map_iter it = map_iter(&s->streams);
	struct spdy_stream *st;
	DEADLINE_SCOPE(GOODBYE_MS);
	while ((st = map_next(&it, NULL))) {
		spdy_add_rst(&b, st->id, SPDY_CANCEL);
		stream_end(st, true, true);
	}
	spdy_add_goaway(&b, s->last_id, 0);
	if (session_write(s, buf_str(&b), STR_NONE, NULL) == 0 && stream_shutdown_write(s->stream, NULL) == 0)
		(void)spdy_wait(s, NULL);
}

void spdy_free(struct spdy *s)
{
	if (!s)
		return;
	SHIELD_SCOPE();
	s->closing = true;
	if (!s->ended)
		say_goodbye(s);
	stream_abort(s->stream);
	(void)fiber_stop(s->reader);
	/* A writer that was inside the stream leaves it now; those behind it find the lock broken. */
	while (s->lock.held)
		if (fiber_cond_wait(&s->lock.released, NULL) < 0)
			break;
	s->lock.broken = true;
	fiber_cond_broadcast(&s->lock.released);
	LIST_EACH_SAFE(struct spdy_stream, st, &s->waiting, link) {
		list_remove(&st->link);
		stream_unref(st);
	}
	stream_free(TAKE(s->stream));
	session_unref(s);
}

void spdy_freep(struct spdy **s) { spdy_free(*s); }

bool spdy_ended(const struct spdy *s) { return s->ended; }

static bool no_more_streams(const struct spdy *s) { return s->ended || s->gone_away || s->closing; }

int spdy_accept(struct spdy *s, struct spdy_stream **ret_stream, struct err *err)
{
	HOLD_SESSION(s);
	while (list_empty(&s->waiting)) {
		if (no_more_streams(s))
			return 0;
		int r = fiber_cond_wait(&s->changed, err);
		if (r < 0)
			return r;
	}
	struct spdy_stream *st = LIST_FIRST(struct spdy_stream, &s->waiting, link);
	list_remove(&st->link);
	*ret_stream = st;
	return 1;
}

int spdy_open(struct spdy *s, const struct http_header *headers, size_t n, struct spdy_stream **ret_stream, struct err *err)
{
	if (no_more_streams(s))
		return err_set(err, ERR_GONE, "spdy: the session takes no more streams");
	CLEANUP(spdy_stream_freep) struct spdy_stream *st = stream_new(s, true);
	struct http_header *copy = ARENA_ARRAY(&st->arena, struct http_header, n);
	for (size_t i = 0; i < n; i++)
		copy[i] = (struct http_header){ arena_str(&st->arena, headers[i].name),
						arena_str(&st->arena, headers[i].value) };
	st->headers = copy;
	st->n_headers = n;
	int r = write_headers(st, SPDY_SYN_STREAM, headers, n, err);
	if (r < 0)
		return r;
	while (!st->replied) {
		if (st->reset_status)
			return err_set(err, ERR_FORBIDDEN, "spdy: Stream reset");
		if (!st->registered)
			return err_set(err, ERR_GONE, "spdy: the session has ended");
		if ((r = fiber_cond_wait(&st->changed, err)) < 0)
			return r;
	}
	*ret_stream = TAKE(st);
	return 0;
}

int spdy_ping(struct spdy *s, struct err *err)
{
	HOLD_SESSION(s);
	CLEANUP(buf_done) struct buf b = BUF_INIT(64);
	struct ping p = { .id = s->next_ping };
	s->next_ping = s->next_ping > INT32_MAX - 2 ? (s->client ? 1 : 2) : s->next_ping + 2;
	spdy_add_ping(&b, p.id);
	list_add(&s->pings, &p.link);
	int r = session_write(s, buf_str(&b), STR_NONE, err);
	while (r == 0 && !p.echoed) {
		if (s->ended)
			r = err_set(err, ERR_GONE, "spdy: the session has ended");
		else
			r = fiber_cond_wait(&s->changed, err);
	}
	list_remove(&p.link);
	return r;
}

int spdy_wait(struct spdy *s, struct err *err)
{
	HOLD_SESSION(s);
	while (!s->ended) {
		int r = fiber_cond_wait(&s->changed, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- streams ---- */

void spdy_stream_free(struct spdy_stream *st)
{
	if (!st)
		return;
	if (st->registered) {
		SHIELD_SCOPE();
		DEADLINE_SCOPE(GOODBYE_MS);
		(void)spdy_stream_reset(st, SPDY_CANCEL, NULL);
	}
	stream_unref(st);
}

void spdy_stream_freep(struct spdy_stream **st) { spdy_stream_free(*st); }

uint32_t spdy_stream_id(const struct spdy_stream *st) { return st->id; }
uint32_t spdy_stream_reset_status(const struct spdy_stream *st) { return st->reset_status; }

str spdy_stream_header(const struct spdy_stream *st, str name)
{
	return http_header_find(st->headers, st->n_headers, name);
}

int spdy_stream_reply(struct spdy_stream *st, const struct http_header *headers, size_t n, struct err *err)
{
	if (st->own || st->replied)
		return err_set(err, ERR_BAD_REQUEST, "spdy: the stream was replied to");
	if (!st->registered)
		return err_set(err, ERR_GONE, "spdy: the stream was reset");
	st->replied = true;
	return write_headers(st, SPDY_SYN_REPLY, headers, n, err);
}

ssize_t spdy_stream_read(struct spdy_stream *st, void *p, size_t n, struct err *err)
{
	if (!n)
		return 0;
	while (!queue_len(st)) {
		if (st->read_done && st->session->ended && st->session->why.code && !st->session->closing)
			return err_set(err, ERR_GONE, "%s", st->session->why.msg);
		if (st->read_done)
			return 0;
		int r = fiber_cond_wait(&st->changed, err);
		if (r < 0)
			return r;
	}
	n = MIN(n, queue_len(st));
	memcpy(p, st->queue.p + st->at, n);
	st->at += n;
	if (!queue_len(st)) {
		/* An idle stream holds no memory. */
		buf_done(&st->queue);
		buf_init(&st->queue, 2 * st->session->queue_bytes);
		st->at = 0;
	}
	fiber_cond_broadcast(&st->changed);
	return (ssize_t)n;
}

static int check_writable(const struct spdy_stream *st, struct err *err)
{
	if (!st->replied)
		return err_set(err, ERR_BAD_REQUEST, "spdy: the stream was not replied to");
	if (st->write_done)
		return err_set(err, ERR_GONE, "spdy: %s", st->reset_status ? "Stream reset" : "Write on closed stream");
	return 0;
}

int spdy_stream_write(struct spdy_stream *st, str data, struct err *err)
{
	while (data.n) {
		char head[SPDY_FRAME_HEAD];
		str piece = str_head(data, DATA_BYTES);
		int r = check_writable(st, err);
		if (r < 0)
			return r;
		spdy_write_data_head(head, st->id, 0, piece.n);
		if ((r = session_write(st->session, str_span(head, sizeof(head)), piece, err)) < 0)
			return r;
		data = str_skip(data, piece.n);
	}
	return 0;
}

int spdy_stream_close_write(struct spdy_stream *st, struct err *err)
{
	char head[SPDY_FRAME_HEAD];
	int r = check_writable(st, err);
	if (r < 0)
		return r;
	spdy_write_data_head(head, st->id, SPDY_FIN, 0);
	stream_end(st, false, true);
	return session_write(st->session, str_span(head, sizeof(head)), STR_NONE, err);
}

int spdy_stream_reset(struct spdy_stream *st, enum spdy_status status, struct err *err)
{
	if (!st->registered)
		return 0;
	stream_end(st, true, true);
	return write_rst(st->session, st->id, status, err);
}
