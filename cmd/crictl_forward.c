/*
 * crictl port-forward: connections to local ports are passed on to a pod. Each goes over a SPDY session of its own, which may itself
 * travel in WebSocket messages, with a stream for data and one for an error, which belong together by a request id.
 *
 * One session could carry them all, but then they hold each other up: SPDY as Kubernetes speaks it has no windows, and in servers made
 * with spdystream (containerd, CRI-O) data for a stream that nobody reads, as of a port where nobody listens, blocks every fifth stream
 * of its session for good. Kubernetes' own client gives up all connections for that reason when one has failed.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/mem.h"
#include "cmd/crictl_remote.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { PIECE = 32 << 10, BACKLOG = 128, CONNECTIONS_MAX = 1000, ERROR_MAX = 4096, LINGER_MS = 5000, CLOSE_MS = 1000, PING_MS = 60 * 1000 };

struct forward {
	struct crictl *c;
	struct fiber_group group;
	struct listener {
		struct forward *f;
		int fd[2];                   /* for IPv4 and IPv6; -1: none */
		uint16_t local, remote;
	} listeners[CRICTL_ARGUMENTS_MAX];
	size_t n;
	unsigned requests, connections;
};

/* ---- sessions ---- */

struct session {
	struct crictl c;                     /* what was asked for, with memory that ends with the session */
	struct crictl_dialer dialer;
	struct spdy *spdy;
	struct ws *ws;                       /* in which it travels; NULL: it does not */
	int tunnel;                          /* our end towards it; -1 */
	struct fiber_group pumps;
};

static int pump_in(void *arg)
{
	struct session *s = arg;
	str data;
	bool last;

	while (ws_read_part(s->ws, &data, &last, NULL) > 0 && (!data.n || fiber_write(s->tunnel, data.p, data.n, NULL) == 0))
		;
	(void)shutdown(s->tunnel, SHUT_RDWR);
	return 0;
}

static int pump_out(void *arg)
{
	struct session *s = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(PIECE);
	ssize_t n;

	while ((n = fiber_read(s->tunnel, room, PIECE, NULL)) > 0 && ws_write(s->ws, WS_BINARY, str_span(room, (size_t)n), NULL) == 0)
		;
	(void)shutdown(s->tunnel, SHUT_RDWR);
	return 0;
}

static int open_tunnel(struct session *s, struct err *err)
{
	static const char *const protocols[] = { "SPDY/3.1+portforward.k8s.io", NULL };
	const char *protocol;
	int ends[2], r = crictl_dial_ws(&s->dialer, protocols, &s->ws, &protocol, err);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return err_sys(err, errno, "a pair of sockets");
	s->tunnel = ends[0];
	if ((r = spdy_new(stream_of_fd(ends[1]), &(struct spdy_options){ .client = true }, &s->spdy, err)) < 0 ||
	    (r = fiber_group_spawn(&s->pumps, pump_in, s, err, "tunnel in")) < 0)
		return r;
	return fiber_group_spawn(&s->pumps, pump_out, s, err, "tunnel out");
}

/* (suspends) Takes NULL. */
static void session_free(struct session *s)
{
	if (!s)
		return;
	spdy_free(s->spdy);
	fiber_group_done(&s->pumps);
	if (s->ws)
		(void)ws_close(s->ws, WS_NORMAL, STR_NONE, CLOSE_MS, NULL);
	ws_free(s->ws);
	if (s->tunnel >= 0)
		(void)close(s->tunnel);
	crictl_dialer_done(&s->dialer);
	arena_done(&s->c.arena);
	free(s);
}

static void session_freep(struct session **s) { session_free(*s); }

/* (suspends) Asks the runtime for a URL, which is good for one session, and opens it. */
static int session_open(const struct crictl *c, struct session **ret, struct err *err)
{
	static const char *const protocols[] = { "portforward.k8s.io", NULL };
	CLEANUP(session_freep) struct session *s = mem_zalloc(sizeof(*s));
	const char *protocol;
	struct val v;
	int r;

	s->c = *c;
	arena_init(&s->c.arena);
	s->tunnel = -1;
	fiber_group_init(&s->pumps);
	struct val request = OBJECT(&s->c.arena, F(podSandboxId, VAL_STR(str_of(c->arguments[0]))));
	if ((r = crictl_call(&s->c, &rpc_RuntimeService_PortForward, request, &v, err)) < 0 ||
	    (r = crictl_dialer_init(&s->dialer, &s->c, val_str(v, url), err)) < 0)
		return r;
	r = s->dialer.websocket ? open_tunnel(s, err) : crictl_dial_spdy(&s->dialer, protocols, &s->spdy, &protocol, err);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

/* ---- one connection ---- */

struct connection {
	struct listener *l;
	int fd;
	struct session *session;
	struct spdy_stream *data, *error;
	bool from_pod_ended, to_pod_ended;
	struct fiber_cond changed;
};

static void connection_free(struct connection *k)
{
	(void)close(k->fd);
	spdy_stream_free(k->data);
	spdy_stream_free(k->error);
	session_free(k->session);
	k->l->f->connections--;
	free(k);
}

static int open_streams(struct connection *k, struct err *err)
{
	char port[8], id[16];
	struct http_header headers[] = { { STR("streamtype"), STR("error") }, { STR("port"), STR_NONE }, { STR("requestid"), STR_NONE } };
	int r = session_open(k->l->f->c, &k->session, err);

	if (r < 0)
		return r;
	(void)snprintf(port, sizeof(port), "%u", k->l->remote);
	(void)snprintf(id, sizeof(id), "%u", k->l->f->requests++);
	headers[1].value = str_of(port);
	headers[2].value = str_of(id);
	if ((r = spdy_open(k->session->spdy, headers, ARRAY_LEN(headers), &k->error, err)) < 0)
		return r;
	(void)spdy_stream_close_write(k->error, NULL);
	headers[0].value = STR("data");
	return spdy_open(k->session->spdy, headers, ARRAY_LEN(headers), &k->data, err);
}

static int to_pod(void *arg)
{
	struct connection *k = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(PIECE);
	ssize_t n;

	while ((n = fiber_read(k->fd, room, PIECE, NULL)) > 0 && spdy_stream_write(k->data, str_span(room, (size_t)n), NULL) == 0)
		;
	(void)spdy_stream_close_write(k->data, NULL);
	k->to_pod_ended = true;
	fiber_cond_broadcast(&k->changed);
	return 0;
}

static int from_pod(void *arg)
{
	struct connection *k = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(PIECE);
	ssize_t n;

	while ((n = spdy_stream_read(k->data, room, PIECE, NULL)) > 0 && fiber_write(k->fd, room, (size_t)n, NULL) == 0)
		;
	(void)shutdown(k->fd, n == 0 ? SHUT_WR : SHUT_RDWR);
	k->from_pod_ended = true;
	fiber_cond_broadcast(&k->changed);
	return 0;
}

/* (suspends) Both directions. Once the pod has nothing more to say, the client has a moment to end too. */
static void copy(struct connection *k)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	int r;

	fiber_group_init(&group);
	r = fiber_group_spawn(&group, to_pod, k, NULL, "to pod");
	if (r == 0)
		r = fiber_group_spawn(&group, from_pod, k, NULL, "from pod");
	while (r == 0 && !k->from_pod_ended)
		r = fiber_cond_wait(&k->changed, NULL);
	DEADLINE_SCOPE(LINGER_MS);
	while (r == 0 && !k->to_pod_ended)
		r = fiber_cond_wait(&k->changed, NULL);
}

/* (suspends) What the runtime has to say about it. */
static void show_error(struct connection *k)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(mem_freep) char *text = mem_alloc(ERROR_MAX);
	size_t used = 0;
	ssize_t n = 1;
	DEADLINE_SCOPE(LINGER_MS);

	while (used < ERROR_MAX && (n = spdy_stream_read(k->error, text + used, ERROR_MAX - used, NULL)) > 0)
		used += (size_t)n;
	if (used)
		fprintf(stderr, "an error occurred forwarding %u -> %u: %s\n", k->l->local, k->l->remote,
			crictl_text(&a, str_span(text, used)));
}

static int run_connection(void *arg)
{
	struct connection *k = arg;
	struct err err = ERR_INIT;

	printf("Handling connection for %u\n", k->l->local);
	(void)fflush(stdout);
	if (open_streams(k, &err) < 0) {
		fprintf(stderr, "an error occurred forwarding %u -> %u: %s\n", k->l->local, k->l->remote, err.msg);
	} else {
		copy(k);
		show_error(k);
	}
	connection_free(k);
	return 0;
}

/* ---- ports ---- */

static int accept_at(struct listener *l, int fd)
{
	struct forward *f = l->f;
	int got;

	while ((got = fiber_accept(fd, NULL, NULL)) >= 0) {
		if (f->connections == CONNECTIONS_MAX) {
			(void)close(got);
			continue;
		}
		struct connection *k = mem_zalloc(sizeof(*k));
		*k = (struct connection){ .l = l, .fd = got };
		fiber_cond_init(&k->changed, "a forwarded connection");
		f->connections++;
		if (fiber_group_spawn(&f->group, run_connection, k, NULL, "port %u", l->local) < 0)
			connection_free(k);
	}
	return 0;
}

static int accept_4(void *arg)
{
	struct listener *l = arg;
	return accept_at(l, l->fd[0]);
}

static int accept_6(void *arg)
{
	struct listener *l = arg;
	return accept_at(l, l->fd[1]);
}

/* A listening socket at the loopback address; *port 0: any, which is stored there. -1: errno says why not. */
static int listen_at(int family, uint16_t *port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(*port), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const void *address = family == AF_INET ? (const void *)&v4 : &v6;
	socklen_t n = family == AF_INET ? sizeof(v4) : sizeof(v6);
	int yes = 1, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, address, n) == 0 && listen(fd, BACKLOG) == 0) {
		n = sizeof(v4);
		if (family == AF_INET && getsockname(fd, (struct sockaddr *)&v4, &n) == 0)
			*port = ntohs(v4.sin_port);
		return fd;
	}
	int sys = errno;
	(void)close(fd);
	errno = sys;
	return -1;
}

/* "8080:80", ":80" (any local port), "80". */
static int parse_ports(const char *text, struct listener *l, struct err *err)
{
	str local, remote;
	int64_t from = 0, to;

	if (!str_cut(str_of(text), ':', &local, &remote))
		remote = local;
	bool good = str_to_i64(remote, &to) && to > 0 && to < 65536 && (!local.n || str_to_i64(local, &from)) && from >= 0 && from < 65536;
	if (!good)
		return err_set(err, ERR_BAD_REQUEST, "'%s' is not [LOCAL:]PORT", text);
	l->local = (uint16_t)from;
	l->remote = (uint16_t)to;
	return 0;
}

static int open_port(struct forward *f, const char *text, struct err *err)
{
	struct listener *l = &f->listeners[f->n];
	int r;

	*l = (struct listener){ .f = f, .fd = { -1, -1 } };
	if ((r = parse_ports(text, l, err)) < 0)
		return r;
	if ((l->fd[0] = listen_at(AF_INET, &l->local)) < 0)
		return err_sys(err, errno, "unable to listen on port %u", l->local);
	f->n++;
	l->fd[1] = listen_at(AF_INET6, &l->local); /* where there is IPv6 */
	printf("Forwarding from 127.0.0.1:%u -> %u\n", l->local, l->remote);
	if (l->fd[1] >= 0)
		printf("Forwarding from [::1]:%u -> %u\n", l->local, l->remote);
	if ((r = fiber_group_spawn(&f->group, accept_4, l, err, "listen %u", l->local)) == 0 && l->fd[1] >= 0)
		r = fiber_group_spawn(&f->group, accept_6, l, err, "listen6 %u", l->local);
	return r;
}

/* ---- the action ---- */

static void forward_free(struct forward *f)
{
	fiber_group_done(&f->group);
	for (size_t i = 0; i < f->n; i++)
		for (int k = 0; k < 2; k++)
			if (f->listeners[i].fd[k] >= 0)
				(void)close(f->listeners[i].fd[k]);
	free(f);
}

static void forward_freep(struct forward **f) { forward_free(*f); }

/* (suspends) Until the session ends or is not answered any more. A sign of life now and then keeps it from being closed as idle. */
static int watch(struct session *s, struct err *err)
{
	int r = 0;

	while (r == 0 && !spdy_ended(s->spdy)) {
		DEADLINE_SCOPE(2 * PING_MS);
		{
			DEADLINE_SCOPE(PING_MS);
			r = spdy_wait(s->spdy, NULL);
		}
		if (r == -ERR_TIMEOUT)
			r = spdy_ping(s->spdy, NULL);
	}
	return r == -ERR_CANCELED ? fiber_check(err) : err_set(err, ERR_GONE, "lost connection to pod");
}

static int run(struct crictl *c, struct err *err)
{
	CLEANUP(forward_freep) struct forward *f = mem_zalloc(sizeof(*f));
	CLEANUP(session_freep) struct session *first = NULL;
	int r;

	f->c = c;
	fiber_group_init(&f->group);
	/* The first session carries nothing: it shows that the runtime will, and when it is gone. */
	r = session_open(c, &first, err);
	for (size_t i = 1; r == 0 && i < c->n; i++)
		r = open_port(f, c->arguments[i], err);
	(void)fflush(stdout);
	return r < 0 ? r : watch(first, err);
}

int crictl_port_forward(struct crictl *c, struct err *err)
{
	struct listener checked;
	int r = 0;

	for (size_t i = 1; r == 0 && i < c->n; i++)
		r = parse_ports(c->arguments[i], &checked, err);
	if (r == 0)
		r = run(c, err);
	return r < 0 ? err_wrap(err, r, "port forward") : 0;
}
