/*
 * One connection. Its fiber shakes hands, finds out which protocol is spoken, reads until the end, and then clears up:
 * nothing of the connection is freed before every handler has returned. Everything that wants the connection to end
 * cancels that fiber; what must still be waited for is then waited for behind a shield.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http_priv.h"

enum {
	PIECES = 4,              /* of HTTP_OUT_SIZE that one connection sends before others have their turn */
	TICK_MAX_MS = 2000,      /* how exact timeouts are, at least */
	TRIM_MS = 1000,          /* of idleness, before memory is given back */
	LINGER_MS = 500,
	LINGER_BYTES = 1 << 20,
};

/* ---- Writing ---- */

enum output { OUTPUT_DONE, OUTPUT_MORE, OUTPUT_FULL, OUTPUT_BROKEN };

static enum output output(struct http_conn *c)
{
	struct http_server *s = c->server;

	for (int i = 0; i < PIECES; i++) {
		int sent = stream_send(c->stream, NULL);
		if (sent <= 0)
			return sent < 0 ? OUTPUT_BROKEN : OUTPUT_FULL;
		ssize_t n = c->protocol->pull(c, s->out, HTTP_OUT_SIZE, NULL);
		if (n == 0)
			return OUTPUT_DONE;
		if (n < 0 || stream_put(c->stream, s->out, (size_t)n, NULL) < 0)
			return OUTPUT_BROKEN;
	}
	return OUTPUT_MORE;
}

/* What follows from it, but for a full socket. */
static void after_output(struct http_conn *c, enum output result)
{
	c->broken = c->broken || result == OUTPUT_BROKEN;
	if (c->broken || (result == OUTPUT_DONE && c->protocol->finished(c)))
		conn_end(c);
	else if (c->protocol->hungry(c))
		conn_changed(c);
}

static void write_until_empty(struct http_conn *c)
{
	enum output result = OUTPUT_FULL;

	while (!c->ending && (result == OUTPUT_FULL || result == OUTPUT_MORE)) {
		int r;
		if (result == OUTPUT_FULL) {
			DEADLINE_SCOPE(c->server->o.write_timeout_ms);
			r = stream_wait(c->stream, POLLOUT, NULL);
		} else {
			r = fiber_yield(NULL);
		}
		result = r < 0 ? OUTPUT_BROKEN : output(c);
		after_output(c, result);
	}
}

static int run_writer(void *arg)
{
	struct http_conn *c = arg;

	write_until_empty(c);
	fiber_detach(TAKE(c->writer));
	conn_changed(c);
	return 0;
}

void conn_dirty(struct http_conn *c)
{
	bool linked = list_linked(&c->dirty);

	if (c->ending || c->writer || (linked && c->urgent))
		return;
	if (linked)
		list_remove(&c->dirty);
	c->urgent = true;
	list_add(&c->server->dirty, &c->dirty);
	fiber_cond_signal(&c->server->dirtied);
}

void conn_woken(struct http_conn *c)
{
	if (c->ending || c->writer || list_linked(&c->dirty))
		return;
	c->urgent = false;
	list_add(&c->server->woken, &c->dirty);
	fiber_cond_signal(&c->server->dirtied);
}

static void flush_one(struct http_conn *c)
{
	list_remove(&c->dirty);
	enum output result = output(c);
	if (result == OUTPUT_MORE) {
		conn_woken(c);
		return;
	}
	if (result != OUTPUT_FULL) {
		after_output(c, result);
		return;
	}
	if (fiber_spawn(run_writer, c, &c->writer, NULL, "http writer") < 0)
		conn_end(c);
}

/*
 * One event may wake a thousand watches, and writing to them takes a while: it is done in slices, between which answers
 * go out and requests are worked on. What comes in meanwhile for those who still wait goes out with the same write.
 */
enum { WOKEN_SLICE = 32 };

int conn_flush_all(void *arg)
{
	struct http_server *s = arg;
	int r = 0;

	while (r == 0) {
		/* Those that are added meanwhile come in the next round, after everybody else had a turn. */
		struct list round = LIST_INIT(round);
		if (!list_empty(&s->dirty)) {
			list_insert(&round, s->dirty.prev, &s->dirty);
			list_remove(&s->dirty);
		}
		while (!list_empty(&round))
			flush_one(LIST_FIRST(struct http_conn, &round, dirty));
		for (unsigned i = 0; i < WOKEN_SLICE && !list_empty(&s->woken); i++)
			flush_one(LIST_FIRST(struct http_conn, &s->woken, dirty));
		bool idle = list_empty(&s->dirty) && list_empty(&s->woken);
		r = idle ? fiber_cond_wait(&s->dirtied, NULL) : fiber_yield(NULL);
	}
	return r;
}

/* ---- States ---- */

void conn_end(struct http_conn *c)
{
	if (c->ending)
		return;
	c->ending = true;
	list_remove(&c->dirty);
	if (c->reader != fiber_self())
		fiber_cancel(c->reader);
	if (c->writer && c->writer != fiber_self())
		fiber_cancel(c->writer);
}

void conn_abuse(struct http_conn *c)
{
	if (c->abuse)
		return;
	c->abuse = true;
	c->server->stats.floods++;
	log_info("closing an abusive connection", KV("peer", c->peer.address));
}

void conn_changed(struct http_conn *c) { fiber_cond_broadcast(&c->changed); }

static int64_t tick_ms(const struct http_server *s)
{
	int64_t least = MIN(s->o.header_timeout_ms, s->o.write_timeout_ms);

	least = MIN(least, s->o.idle_timeout_ms) / 4;
	least = MAX(least, (int64_t)1);
	return MIN(least, (int64_t)TICK_MAX_MS);
}

static void start_tick(struct http_conn *c)
{
	c->quiet = false;
	loop_timer_start(&c->timer, clock_now_ns() + tick_ms(c->server) * NS_PER_MS);
}

void conn_set_idle(struct http_conn *c, bool idle)
{
	if (!idle) {
		list_remove(&c->idle);
		if (c->quiet && !c->ending)
			start_tick(c);
	} else if (!c->ending) {
		c->idle_ns = clock_now_ns();
		list_add(&c->server->idle, &c->idle);
	}
}

/*
 * Most connections change their state many times between two ticks, so the timer is not touched then; only one that has
 * been idle for some time sleeps until its end.
 */
static void on_tick(struct loop_timer *timer)
{
	struct http_conn *c = CONTAINER_OF(timer, struct http_conn, timer);
	const struct http_server_options *o = &c->server->o;
	int64_t now = clock_now_ns();

	if (c->head_ns && now - c->head_ns >= o->header_timeout_ms * NS_PER_MS) {
		c->protocol->late(c);
		conn_end(c);
		return;
	}
	if (!list_linked(&c->idle)) {
		c->protocol->expire(c, now - o->write_timeout_ms * NS_PER_MS);
		start_tick(c);
		return;
	}
	int64_t end = c->idle_ns + o->idle_timeout_ms * NS_PER_MS;
	if (now >= end) {
		c->protocol->stop(c);
		conn_end(c);
		return;
	}
	if (!c->head_ns && now - c->idle_ns >= TRIM_MS * NS_PER_MS) {
		stream_trim(c->stream);
		c->quiet = true;
		loop_timer_start(timer, end);
		return;
	}
	start_tick(c);
}

/* ---- Reading ---- */

/* (suspends) The first bytes of a connection in the clear, as far as needed to know the protocol, go back to be read. */
static int sniff(struct http_conn *c, struct err *err)
{
	char seen[64];
	size_t n = 0;

	c->protocol = &http1_protocol;
	while (n < HTTP2_PREFACE.n && memcmp(seen, HTTP2_PREFACE.p, n) == 0) {
		ssize_t got = stream_read(c->stream, seen + n, HTTP2_PREFACE.n - n, err);
		if (got <= 0)
			return got < 0 ? (int)got : err_set(err, ERR_GONE, "the client went away");
		n += (size_t)got;
	}
	if (n == HTTP2_PREFACE.n && memcmp(seen, HTTP2_PREFACE.p, n) == 0)
		c->protocol = &http2_protocol;
	stream_unread(c->stream, str_span(seen, n));
	return 0;
}

static int open_conn(struct http_conn *c, struct err *err)
{
	struct http_server *s = c->server;
	int fd = c->fd, r = 0;
	DEADLINE_SCOPE(s->o.header_timeout_ms);

	c->fd = -1;
	if (s->o.tls)
		r = stream_accept_tls(fd, s->o.tls, &c->stream, err);
	else
		c->stream = stream_of_fd(fd);
	if (r < 0)
		return r;
	c->peer.address = stream_peer_address(c->stream);
	c->peer.tls = s->o.tls != NULL;
	c->peer.certificate = stream_peer_certificate(c->stream);
	c->peer.chain = stream_peer_chain(c->stream);
	c->peer.verify_result = stream_peer_verify_result(c->stream);
	if (!str_eq(stream_alpn(c->stream), STR("h2")))
		return sniff(c, err);
	c->protocol = &http2_protocol;
	return 0;
}

/* (suspends) Reads until there is no more, or the connection is to end. */
static void read_all(struct http_conn *c)
{
	struct http_server *s = c->server;
	size_t since_wait = 0;
	int r = 0;

	while (r == 0 && !c->ending) {
		if (!c->protocol->hungry(c)) {
			r = fiber_cond_wait(&c->changed, NULL);
			continue;
		}
		ssize_t n = stream_try_read(c->stream, s->in, HTTP_IN_SIZE, NULL);
		if (n == STREAM_WAIT) {
			since_wait = 0;
			r = stream_wait(c->stream, POLLIN, NULL);
			continue;
		}
		if (n <= 0)
			return;
		r = c->protocol->feed(c, str_span(s->in, (size_t)n), NULL);
		/* Who sends without end must not keep the others from their turn. */
		since_wait += (size_t)n;
		if (r == 0 && since_wait >= HTTP_IN_SIZE) {
			since_wait = 0;
			r = fiber_yield(NULL);
		}
	}
}

/* ---- The end ---- */

/* (suspends) As long as the other side takes something; false when it does not take all. */
static bool send_rest(struct http_conn *c)
{
	enum output result;
	int r = 0;

	while (r == 0 && ((result = output(c)) == OUTPUT_FULL || result == OUTPUT_MORE)) {
		DEADLINE_SCOPE(c->server->o.write_timeout_ms);
		r = result == OUTPUT_FULL ? stream_wait(c->stream, POLLOUT, NULL) : fiber_yield(NULL);
	}
	return r == 0 && result == OUTPUT_DONE;
}

/*
 * (suspends) Sends what the protocol still has to say, and gives the other side time to read it. A client of HTTP/1 that
 * has only stopped sending gets its answer; in all other cases there is not much to say.
 */
static void say_goodbye(struct http_conn *c)
{
	bool brief = c->protocol != &http1_protocol || c->linger || c->server->stopping;
	size_t left = LINGER_BYTES;
	ssize_t n = 1;
	DEADLINE_SCOPE(brief ? LINGER_MS : INT64_MAX);

	if (!send_rest(c) || !c->linger || stream_shutdown_write(c->stream, NULL) < 0)
		return;
	while (n > 0 && left) {
		n = stream_read(c->stream, c->server->in, MIN(left, (size_t)HTTP_IN_SIZE), NULL);
		left -= n > 0 ? (size_t)n : 0;
	}
}

/* (suspends) Until every handler has returned and no writer is left. */
static void close_exchanges(struct http_conn *c)
{
	LIST_EACH_SAFE(struct exchange, x, &c->exchanges, link)
		exchange_close(x);
	while (c->n_exchanges || c->writer)
		(void)fiber_cond_wait(&c->changed, NULL);
}

static int serve(void *arg)
{
	struct http_conn *c = arg;
	struct http_server *s = c->server;
	struct err err = ERR_INIT;
	int r = open_conn(c, &err);

	if (r < 0)
		log_debug("no connection", KV("peer", c->peer.address), KV("err", &err));
	if (r == 0 && !c->ending) {
		c->protocol->open(c);
		conn_set_idle(c, true);
		start_tick(c);
		conn_dirty(c);
		if (s->stopping)
			c->protocol->stop(c);
		read_all(c);
	}
	c->ending = true;
	c->reader_left = true;
	list_remove(&c->dirty);
	list_remove(&c->idle);
	loop_timer_stop(&c->timer);
	if (c->writer)
		fiber_cancel(c->writer);
	SHIELD_SCOPE();
	conn_changed(c);
	while (c->writer)
		(void)fiber_cond_wait(&c->changed, NULL);
	if (c->state && !c->upgraded && !c->broken && !s->broken_off)
		say_goodbye(c);
	close_exchanges(c);
	if (c->state)
		c->protocol->done(c);
	if (c->peer.memo && c->peer.memo_free)
		c->peer.memo_free(c->peer.memo);
	stream_free(c->stream);
	list_remove(&c->link);
	if (--s->stats.connections == 0)
		fiber_cond_broadcast(&s->emptied);
	fiber_detach(c->reader);
	free(c);
	return 0;
}

void conn_start(struct http_server *s, int fd)
{
	struct http_conn *c = mem_zalloc(sizeof(*c));

	c->server = s;
	c->fd = fd;
	list_init(&c->exchanges);
	list_init(&c->woken);
	fiber_cond_init(&c->changed, "a change of a connection");
	c->timer.fire = on_tick;
	s->stats.accepted++;
	if (fiber_spawn(serve, c, &c->reader, NULL, "http %d", fd) < 0) {
		(void)close(fd);
		free(c);
		return;
	}
	s->stats.connections++;
	list_add(&s->conns, &c->link);
}
