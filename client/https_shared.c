#include "client/https_shared.h"

#include <stdlib.h>

#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http2_client.h"
#include "net/tls.h"

enum {
	CALLS_MAX = 100,              /* on one connection: so many kube-apiserver takes; what is beyond would wait */
	AHEAD_MAX = 64 * 1024,        /* what is not read yet, before the server is made to wait */
	BODY_MAX = 4 << 20,           /* nothing comes near it: a server has that little credit */
	CONNECT_MS = 30000,
	PING_MS = 30000,
	HEADERS_MAX = 28, TYPE_MAX = 128,
};

struct shared {
	struct tls_context *tls;
	struct list connections;
	struct fiber_group fibers;
	struct fiber_cond changed;
	size_t n_connecting, n_failed;
	bool off;                     /* the server does not speak HTTP/2 */
};

struct connection {
	struct shared *all;
	struct list link;
	struct http2_client *client;
	bool connecting;              /* it counts among n_connecting */
	bool takes_calls;
	size_t n_calls;
	const char *host;
	uint16_t port;
	struct arena arena;
};

struct shared_call {
	struct http2_call call;
	struct connection *on;        /* NULL: it has ended */
	int64_t status;
	struct buf in;
	size_t at;
	bool complete, aborted;       /* how it ended */
	struct fiber_cond more;
	size_t n_type;
	char type[TYPE_MAX];
};

struct shared *shared_new(struct tls_context *tls)
{
	struct shared *s = mem_zalloc(sizeof(*s));

	s->tls = tls;
	list_init(&s->connections);
	fiber_group_init(&s->fibers);
	fiber_cond_init(&s->changed, "a shared connection");
	return s;
}

void shared_free(struct shared *s)
{
	if (!s)
		return;
	fiber_group_done(&s->fibers);
	tls_context_free(s->tls);
	free(s);
}

void shared_leave(struct shared *s)
{
	s->n_failed++;
	fiber_cond_broadcast(&s->changed);
}

/* ---- connections ---- */

static void on_changed(struct http2_client *client, void *arg)
{
	struct connection *c = arg;
	bool takes = !http2_client_draining(client);

	if (takes && c->connecting) {
		c->connecting = false;
		c->all->n_connecting--;
	}
	c->client = client;
	c->takes_calls = takes;
	fiber_cond_broadcast(&c->all->changed);
}

static int connect_and_run(struct connection *c, struct err *err)
{
	struct shared *s = c->all;
	struct stream *stream = NULL;
	int r;

	{
		DEADLINE_SCOPE(CONNECT_MS);
		r = stream_dial(c->host, c->port, s->tls, &stream, err);
	}
	if (r < 0)
		return r;
	if (!str_eq(stream_alpn(stream), STR("h2"))) {
		s->off = true;
		stream_free(stream);
		return err_set(err, ERR_UNAVAILABLE, "the server does not speak HTTP/2");
	}
	struct http2_client *client = http2_client_new(stream, &(struct http2_client_options){
		.changed = on_changed, .arg = c, .ready_timeout_ms = CONNECT_MS, .ping_interval_ms = PING_MS });
	r = http2_client_run(client, err);
	c->takes_calls = false;
	http2_client_free(client);
	return r;
}

static int connection_main(void *arg)
{
	struct connection *c = arg;
	struct shared *s = c->all;
	struct err err = ERR_INIT;

	(void)connect_and_run(c, &err);
	log_debug("a shared connection has ended", KV("reason", &err));
	if (c->connecting) { /* it never took any */
		s->n_connecting--;
		s->n_failed++;
	}
	list_remove(&c->link);
	arena_done(&c->arena);
	free(c);
	fiber_cond_broadcast(&s->changed);
	return 0;
}

static int connection_begin(struct shared *s, const struct url *url, struct err *err)
{
	struct connection *c = mem_zalloc(sizeof(*c));

	c->all = s;
	c->host = arena_str(&c->arena, url->host).p;
	c->port = url->port;
	int r = fiber_group_spawn(&s->fibers, connection_main, c, err, "shared connection");
	if (r < 0) {
		arena_done(&c->arena);
		free(c);
		return r;
	}
	list_add(&s->connections, &c->link);
	c->connecting = true;
	s->n_connecting++;
	return 0;
}

/* (suspends) One with room; NULL: there is none to be had. */
static int connection_get(struct shared *s, const struct url *url, struct connection **ret, struct err *err)
{
	size_t failed = s->n_failed;
	int r = fiber_check(err);

	*ret = NULL;
	while (r == 0 && !s->off && s->n_failed == failed) {
		LIST_EACH(struct connection, c, &s->connections, link)
			if (c->takes_calls && c->n_calls < CALLS_MAX) {
				*ret = c;
				return 0;
			}
		if (!s->n_connecting && (r = connection_begin(s, url, err)) < 0)
			return r;
		r = fiber_cond_wait(&s->changed, err);
	}
	return r;
}

/* ---- calls ---- */

static struct shared_call *call_of(struct http2_call *call) { return CONTAINER_OF(call, struct shared_call, call); }

static void on_header(struct http2_call *call, str name, str value)
{
	struct shared_call *c = call_of(call);

	if (str_eq(name, STR(":status")))
		(void)str_to_i64(value, &c->status);
	else if (str_eq(name, STR("content-type")) && value.n <= TYPE_MAX)
		memcpy(c->type, value.p, c->n_type = value.n);
	fiber_cond_signal(&c->more);
}

static void on_data(struct http2_call *call, str bytes)
{
	struct shared_call *c = call_of(call);

	buf_add(&c->in, bytes);
	if (c->in.n - c->at > AHEAD_MAX)
		http2_call_hold(call, true);
	fiber_cond_signal(&c->more);
}

static size_t on_fill(struct http2_call *call, char *p, size_t n, bool *ret_end)
{
	(void)call, (void)p, (void)n;
	*ret_end = true;
	return 0;
}

/* A connection without calls is of no use. */
static void leave(struct shared_call *c)
{
	struct connection *on = TAKE(c->on);

	if (on && --on->n_calls == 0 && on->takes_calls)
		http2_client_drain(on->client);
	if (on)
		fiber_cond_broadcast(&on->all->changed);
}

static void on_end(struct http2_call *call, enum http2_end how, uint32_t code, const struct err *why)
{
	struct shared_call *c = call_of(call);

	(void)code, (void)why;
	c->complete = how == HTTP2_COMPLETE;
	leave(c);
	fiber_cond_signal(&c->more);
}

static const struct http2_call_events events = { .header = on_header, .data = on_data, .fill = on_fill, .end = on_end };

/* (suspends) Until there is something to be said about the answer. */
static int await_head(struct shared_call *c, struct err *err)
{
	int r = 0;

	while (r == 0 && c->on && !c->aborted && !(c->status && (c->status != 200 || c->n_type)))
		r = fiber_cond_wait(&c->more, err);
	return r < 0 ? r : c->status == 200 && c->n_type && !c->aborted;
}

static void call_freep(struct shared_call **c) { shared_call_free(*c); }

int shared_call_open(struct shared *s, const struct url *url, const struct http_header *headers, size_t n, struct shared_call **ret,
		     struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(call_freep) struct shared_call *c = NULL;
	struct http_header all[HEADERS_MAX + 4];
	struct connection *on;
	str path = url->path.n ? url->path : STR("/");
	int r = n > HEADERS_MAX ? 0 : connection_get(s, url, &on, err);

	if (r < 0 || n > HEADERS_MAX || !on)
		return r;
	if (url->query.n)
		path = arena_printf(&a, STR_FMT "?" STR_FMT, STR_ARG(path), STR_ARG(url->query));
	all[0] = (struct http_header){ STR(":method"), STR("GET") };
	all[1] = (struct http_header){ STR(":scheme"), STR("https") };
	all[2] = (struct http_header){ STR(":authority"), url->authority };
	all[3] = (struct http_header){ STR(":path"), path };
	memcpy(all + 4, headers, n * sizeof(*headers));
	c = mem_zalloc(sizeof(*c));
	c->call.events = &events;
	buf_init(&c->in, BODY_MAX);
	fiber_cond_init(&c->more, "the next piece of a watch");
	if (!http2_call_start(on->client, &c->call, all, n + 4))
		return 0;
	c->on = on;
	on->n_calls++;
	if ((r = await_head(c, err)) == 1)
		*ret = TAKE(c);
	return r;
}

str shared_call_type(const struct shared_call *c) { return str_span(c->type, c->n_type); }

ssize_t shared_call_read(struct shared_call *c, void *p, size_t n, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0 && c->at == c->in.n && c->on && !c->aborted)
		r = fiber_cond_wait(&c->more, err);
	if (r < 0)
		return r;
	if (c->aborted || c->in.overflow || (c->at == c->in.n && !c->complete))
		return err_set(err, ERR_UNAVAILABLE, "the connection of a watch is gone");
	size_t got = MIN(n, c->in.n - c->at);
	if (got)
		memcpy(p, c->in.p + c->at, got);
	c->at += got;
	if (c->at == c->in.n) { /* an idle watch keeps nothing */
		buf_done(&c->in);
		buf_init(&c->in, BODY_MAX);
		c->at = 0;
		if (c->on)
			http2_call_hold(&c->call, false);
	} else if (c->at > AHEAD_MAX) { /* nor does one that never rests keep what was read */
		memmove(c->in.p, c->in.p + c->at, c->in.n -= c->at);
		c->at = 0;
	}
	return (ssize_t)got;
}

void shared_call_abort(struct shared_call *c)
{
	c->aborted = true;
	fiber_cond_signal(&c->more);
}

void shared_call_free(struct shared_call *c)
{
	if (!c)
		return;
	if (c->on)
		http2_call_cancel(&c->call);
	leave(c);
	buf_done(&c->in);
	free(c);
}
