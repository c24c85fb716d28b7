/*
 * Port-forward. Over SPDY the client opens two streams for each connection, data and error, which say their port and belong together by
 * a request id; any number come over one session. The same session may travel in WebSocket messages (SPDY/3.1+portforward.k8s.io). Old
 * WebSocket clients have two channels per port that was asked for, each of which begins with the port's number.
 *
 * A connection is two fibers, one per direction, and ends each direction by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "runtime/stream_priv.h"

#define TUNNEL "SPDY/3.1+portforward.k8s.io"

enum { PORTS_MAX = 64, PAIRS_MAX = 1000, LINGER_MS = 5000 };

static const char *const spdy_protocols[] = { "portforward.k8s.io", NULL };
static const char *const ws_protocols[] = { TUNNEL, "v4.channel.k8s.io", "v4.base64.channel.k8s.io", NULL };

/* One client and the pod it wants to reach. */
struct forwarding {
	struct sandbox *sandbox;             /* a reference */
	const char *netns;                   /* NULL: the node's own */
	struct spdy *session;
	struct list pairs;
	size_t n_pairs;
	struct fiber_group group;
};

static int dial(struct forwarding *f, uint16_t port, struct err *err)
{
	if (f->sandbox->state != SANDBOX_READY)
		return err_set(err, ERR_UNAVAILABLE, "sandbox container \"%s\" is not running", f->sandbox->id);
	return stream_dial_netns(f->netns, port, err);
}

static str failure(struct forwarding *f, struct arena *a, uint16_t port, const struct err *err)
{
	return arena_printf(a, "error forwarding port %u to pod %s, uid : %s", port, f->sandbox->id, err->msg);
}

/* ---- pairs of SPDY streams ---- */

struct pair {
	struct list link;                    /* while one of them is missing */
	struct forwarding *f;
	char *id;
	uint16_t port;
	int64_t made_ns;
	struct spdy_stream *data, *error;
	int fd;
	bool up_ended, down_ended;
	struct fiber_cond changed;
};

static void pair_free(struct pair *p)
{
	if (list_linked(&p->link))
		list_remove(&p->link);
	p->f->n_pairs--;
	spdy_stream_free(p->data);
	spdy_stream_free(p->error);
	fd_closep(&p->fd);
	free(p->id);
	free(p);
}

static int copy_up(void *arg)
{
	struct pair *p = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(STREAM_COPY);
	ssize_t n;
	while ((n = spdy_stream_read(p->data, room, STREAM_COPY, NULL)) > 0 && fiber_write(p->fd, room, (size_t)n, NULL) == 0)
		;
	(void)shutdown(p->fd, n == 0 ? SHUT_WR : SHUT_RDWR);
	p->up_ended = true;
	fiber_cond_broadcast(&p->changed);
	return 0;
}

static int copy_down(void *arg)
{
	struct pair *p = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(STREAM_COPY);
	ssize_t n;
	while ((n = fiber_read(p->fd, room, STREAM_COPY, NULL)) > 0 && spdy_stream_write(p->data, str_span(room, (size_t)n), NULL) == 0)
		;
	(void)spdy_stream_close_write(p->data, NULL);
	p->down_ended = true;
	fiber_cond_broadcast(&p->changed);
	return 0;
}

/* (suspends) Both directions. Once the pod has nothing more to say, the client has a moment to end too. */
static void copy_pair(struct pair *p)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = fiber_group_spawn(&group, copy_up, p, NULL, "port up");
	if (r == 0)
		r = fiber_group_spawn(&group, copy_down, p, NULL, "port down");
	while (r == 0 && !p->down_ended)
		r = fiber_cond_wait(&p->changed, NULL);
	DEADLINE_SCOPE(LINGER_MS);
	while (r == 0 && !p->up_ended)
		r = fiber_cond_wait(&p->changed, NULL);
}

static int run_pair(void *arg)
{
	struct pair *p = arg;
	struct err err = ERR_INIT;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	p->fd = dial(p->f, p->port, &err);
	if (p->fd >= 0) {
		copy_pair(p);
		(void)spdy_stream_close_write(p->error, NULL);
	} else {
		(void)spdy_stream_write(p->error, failure(p->f, &a, p->port, &err), NULL);
		(void)spdy_stream_close_write(p->error, NULL);
		(void)spdy_stream_reset(p->data, SPDY_CANCEL, NULL);
	}
	pair_free(p);
	return 0;
}

/* Those whose other stream does not come. */
static int expire_pairs(void *arg)
{
	struct forwarding *f = arg;
	while (fiber_sleep_ms(STREAM_CREATION_MS / 2, NULL) == 0) {
		struct pair *p;
		int64_t old = clock_now_ns() - STREAM_CREATION_MS * (int64_t)1000000;
		while ((p = LIST_FIRST(struct pair, &f->pairs, link)) && p->made_ns <= old) {
			/* from here on nobody else finds it, also while this waits */
			list_remove(&p->link);
			if (p->error)
				(void)spdy_stream_write(p->error, STR("timed out waiting for streams"), NULL);
			pair_free(p);
		}
	}
	return 0;
}

/* The request id; old clients give none: then the number of the error stream, which comes first. */
static char *pair_id(const struct spdy_stream *st, bool error)
{
	str id = spdy_stream_header(st, STR("requestid"));
	char *text = NULL;
	if (id.n)
		return strndup(id.p, id.n);
	if (asprintf(&text, "%lld", (long long)spdy_stream_id(st) - (error ? 0 : 2)) < 0)
		abort();
	return text;
}

static struct pair *find_pair(struct forwarding *f, const char *id)
{
	LIST_EACH(struct pair, p, &f->pairs, link)
		if (str_eq(str_of(p->id), str_of(id)))
			return p;
	return NULL;
}

static struct pair *new_pair(struct forwarding *f, char *id, uint16_t port)
{
	struct pair *p = mem_zalloc(sizeof(*p));
	*p = (struct pair){ .f = f, .id = id, .port = port, .made_ns = clock_now_ns(), .fd = -1 };
	fiber_cond_init(&p->changed, "a forwarded port");
	list_add(&f->pairs, &p->link);
	f->n_pairs++;
	return p;
}

/* The pair that a stream belongs to; NULL when there are too many. */
static struct pair *pair_of(struct forwarding *f, const struct spdy_stream *st, bool error, uint16_t port)
{
	char *id = pair_id(st, error);
	struct pair *p = find_pair(f, id);
	if (!p && f->n_pairs < PAIRS_MAX)
		return new_pair(f, id, port);
	free(id);
	return p;
}

/* (suspends) -ERR_x: the stream makes no sense, and is still the caller's. */
static int take_stream(struct forwarding *f, struct spdy_stream *st, struct err *err)
{
	str type = spdy_stream_header(st, STR("streamtype"));
	bool error = str_eq(type, STR("error"));
	int64_t port;
	if (!str_to_i64(spdy_stream_header(st, STR("port")), &port) || port < 1 || port > 65535)
		return err_set(err, ERR_INVALID, "a stream without a valid port");
	if (!error && !str_eq(type, STR("data")))
		return err_set(err, ERR_INVALID, "invalid stream type");
	int r = spdy_stream_reply(st, NULL, 0, err);
	if (r < 0)
		return r;
	struct pair *p = pair_of(f, st, error, (uint16_t)port);
	if (!p)
		return err_set(err, ERR_TOO_MANY_REQUESTS, "too many connections");
	if (error ? p->error != NULL : p->data != NULL)
		return err_set(err, ERR_INVALID, "%s stream already assigned", error ? "error" : "data");
	*(error ? &p->error : &p->data) = st;
	if (!error)
		p->port = (uint16_t)port;
	if (!p->error || !p->data)
		return 0;
	list_remove(&p->link);
	if (fiber_group_spawn(&f->group, run_pair, p, NULL, "port %u", p->port) < 0)
		pair_free(p);
	return 0;
}

static void run_session(struct forwarding *f)
{
	struct spdy_stream *st;
	struct pair *p;
	int r = fiber_group_spawn(&f->group, expire_pairs, f, NULL, "port pairs");
	while (r == 0 && spdy_accept(f->session, &st, NULL) > 0) {
		struct err err = ERR_INIT;
		if (take_stream(f, st, &err) == 0)
			continue;
		log_debug("a stream for port-forwarding was refused", KV("pod", (const char *)f->sandbox->id), KV("error", &err));
		(void)spdy_stream_reset(st, SPDY_REFUSED_STREAM, NULL);
		spdy_stream_free(st);
	}
	fiber_group_done(&f->group);
	while ((p = LIST_FIRST(struct pair, &f->pairs, link)))
		pair_free(p);
	spdy_free(f->session);
}

/* ---- SPDY in WebSocket messages ---- */

struct tunnel {
	struct ws *ws;
	int fd;
};

static int tunnel_in(void *arg)
{
	struct tunnel *t = arg;
	str data;
	bool last;
	while (ws_read_part(t->ws, &data, &last, NULL) > 0 && (!data.n || fiber_write(t->fd, data.p, data.n, NULL) == 0))
		;
	(void)shutdown(t->fd, SHUT_RDWR);
	return 0;
}

static int tunnel_out(void *arg)
{
	struct tunnel *t = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(STREAM_COPY);
	ssize_t n;
	while ((n = fiber_read(t->fd, room, STREAM_COPY, NULL)) > 0 && ws_write(t->ws, WS_BINARY, str_span(room, (size_t)n), NULL) == 0)
		;
	(void)shutdown(t->fd, SHUT_RDWR);
	return 0;
}

static int run_tunnel(struct forwarding *f, struct ws *ws, struct err *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return err_sys(err, errno, "a pair of sockets");
	struct tunnel t = { ws, ends[0] };
	struct fiber_group pumps;
	fiber_group_init(&pumps);
	int r = spdy_new(stream_of_fd(ends[1]), &(struct spdy_options){ .idle_timeout_ms = STREAM_IDLE_MS }, &f->session, err);
	if (r == 0)
		r = fiber_group_spawn(&pumps, tunnel_in, &t, err, "tunnel in");
	if (r == 0)
		r = fiber_group_spawn(&pumps, tunnel_out, &t, err, "tunnel out");
	if (r == 0)
		run_session(f);
	else
		spdy_free(f->session);
	fiber_group_done(&pumps);
	fd_closep(&t.fd);
	(void)ws_close(ws, WS_NORMAL, STR_NONE, STREAM_CLOSE_MS, NULL);
	return r;
}

/* ---- channels ---- */

struct channels {
	struct forwarding *f;
	struct ws *ws;
	bool base64;
	size_t n, open;
	struct port {
		struct channels *c;
		uint16_t port;
		int fd;                      /* -1: not connected */
		bool dialed;
	} ports[PORTS_MAX];
	struct fiber_cond changed;
	bool gone;
};

static int write_channel(struct channels *c, size_t channel, str data)
{
	char number = (char)(c->base64 ? '0' + channel : channel);
	if (!c->base64)
		return ws_write2(c->ws, WS_BINARY, str_span(&number, 1), data, NULL);
	CLEANUP(buf_done) struct buf text = BUF_INIT(4 * STREAM_COPY);
	base64_encode_buf(&text, data);
	return ws_write2(c->ws, WS_TEXT, str_span(&number, 1), buf_str(&text), NULL);
}

static int run_port(void *arg)
{
	struct port *p = arg;
	struct channels *c = p->c;
	size_t channel = 2 * (size_t)(p - c->ports);
	CLEANUP(mem_freep) char *room = mem_alloc(STREAM_COPY);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	ssize_t n;
	int fd = dial(c->f, p->port, &err);
	if (fd < 0)
		(void)write_channel(c, channel + 1, failure(c->f, &a, p->port, &err));
	p->fd = fd < 0 ? -1 : fd;
	p->dialed = true;
	fiber_cond_broadcast(&c->changed);
	while (fd >= 0 && (n = fiber_read(fd, room, STREAM_COPY, NULL)) > 0 && write_channel(c, channel, str_span(room, (size_t)n)) == 0)
		;
	c->open--;
	fiber_cond_broadcast(&c->changed);
	return 0;
}

static void take_message(struct channels *c, str message)
{
	CLEANUP(buf_done) struct buf decoded = BUF_INIT(8 << 20);
	str data = str_skip(message, 1);
	if (!message.n)
		return;
	size_t channel = (unsigned char)message.p[0];
	if (c->base64) {
		channel -= '0';
		if (base64_decode_buf(&decoded, data, NULL) < 0)
			return;
		data = buf_str(&decoded);
	}
	if (channel % 2 || channel / 2 >= c->n)
		return;
	struct port *p = &c->ports[channel / 2];
	/* what comes before the connection stands waits for it */
	while (!p->dialed && fiber_cond_wait(&c->changed, NULL) == 0)
		;
	if (p->fd >= 0)
		(void)fiber_write(p->fd, data.p, data.n, NULL);
}

static int read_messages(void *arg)
{
	struct channels *c = arg;
	str message;
	while (ws_read(c->ws, &message, NULL) > 0)
		take_message(c, message);
	c->gone = true;
	fiber_cond_broadcast(&c->changed);
	return 0;
}

static int open_ports(struct channels *c, struct val ports)
{
	VAL_EACH(port, ports) {
		int64_t n = val_as_int(*port);
		if (c->n == PORTS_MAX || n < 1 || n > 65535)
			continue;
		char number[2] = { (char)(n & 255), (char)(n >> 8) };
		size_t channel = 2 * c->n;
		c->ports[c->n++] = (struct port){ c, (uint16_t)n, -1, false };
		if (write_channel(c, channel, str_span(number, 2)) < 0 || write_channel(c, channel + 1, str_span(number, 2)) < 0)
			return -1;
	}
	return 0;
}

static int run_channels(struct forwarding *f, struct ws *ws, bool base64, struct val ports, struct err *err)
{
	struct channels *c = mem_zalloc(sizeof(*c));
	*c = (struct channels){ .f = f, .ws = ws, .base64 = base64 };
	fiber_cond_init(&c->changed, "forwarded ports");
	int r = open_ports(c, ports);
	c->open = c->n;
	for (size_t i = 0; r == 0 && i < c->n; i++)
		r = fiber_group_spawn(&f->group, run_port, &c->ports[i], err, "port %u", c->ports[i].port);
	if (r == 0)
		r = fiber_group_spawn(&f->group, read_messages, c, err, "port messages");
	while (r == 0 && c->open && !c->gone)
		r = fiber_cond_wait(&c->changed, err);
	fiber_group_done(&f->group);
	for (size_t i = 0; i < c->n; i++)
		fd_closep(&c->ports[i].fd);
	(void)ws_close(ws, WS_NORMAL, STR_NONE, STREAM_CLOSE_MS, NULL);
	free(c);
	return r;
}

/* ---- requests ---- */

static void forwarding_done(struct forwarding *f)
{
	sandbox_unref(f->sandbox);
}

static int forward_ws(struct forwarding *f, struct http_exchange *x, struct val ports, struct err *err)
{
	CLEANUP(ws_freep) struct ws *ws = NULL;
	str protocol;
	int r = stream_accept_ws(x, ws_protocols, &ws, &protocol, err);
	if (r <= 0)
		return r;
	if (str_eq(protocol, STR(TUNNEL)))
		return run_tunnel(f, ws, err);
	return run_channels(f, ws, str_find(protocol, STR("base64")) >= 0, ports, err);
}

int stream_forward(struct runtime *runtime, struct http_exchange *x, const struct stream_request *q, struct err *err)
{
	CLEANUP(forwarding_done) struct forwarding f = { 0 };
	str protocol;
	int r = sandbox_find(runtime, q->id, &f.sandbox, err);
	if (r < 0) {
		stream_refuse(x, 500, "failed to find sandbox \"" STR_FMT "\"", STR_ARG(q->id));
		return 0;
	}
	f.netns = sandbox_netns(f.sandbox, x->arena);
	list_init(&f.pairs);
	fiber_group_init(&f.group);
	if (ws_is_upgrade(x->headers, x->n_headers))
		return forward_ws(&f, x, q->ports, err);
	r = stream_accept_spdy(x, spdy_protocols, &f.session, &protocol, err);
	if (r > 0)
		run_session(&f);
	return MIN(r, 0);
}
