/* Listening, accepting, stopping. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http_priv.h"

enum {
	BACKLOG = 1024,
	RETRY_MS = 100, /* after accept failed for want of descriptors or memory */
};

/* ---- Time ---- */

str server_date(struct http_server *s)
{
	int64_t now_s = clock_wall_ns() / NS_PER_S;

	if (UNLIKELY(now_s != s->date_s)) {
		static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
		time_t t = (time_t)now_s;
		struct tm tm;
		(void)gmtime_r(&t, &tm);
		(void)snprintf(s->date, sizeof(s->date), "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * tm.tm_wday,
			       (unsigned)tm.tm_mday % 100, months + 3 * tm.tm_mon, (unsigned)(tm.tm_year + 1900) % 10000,
			       (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
		s->date_s = now_s;
	}
	return str_of(s->date);
}

str http_digits(struct arena *a, uint64_t n)
{
	enum { DIGITS = 20 };
	char *end = (char *)arena_alloc(a, DIGITS, 1) + DIGITS, *p = end;

	do
		*--p = (char)('0' + n % 10);
	while (n /= 10);
	return str_span(p, (size_t)(end - p));
}

/* ---- Life ---- */

int http_server_new(const struct http_server_options *o, struct http_server **ret, struct err *err)
{
	if (!o->handle)
		return err_set(err, ERR_INVALID, "an HTTP server needs a handler");
	struct http_server *s = mem_zalloc(sizeof(*s));
	s->o = *o;
	s->o.max_header_bytes = o->max_header_bytes ? o->max_header_bytes : 1 << 20;
	s->o.max_streams = o->max_streams ? o->max_streams : 250;
	s->o.max_connections = o->max_connections ? o->max_connections : 10000;
	s->o.header_timeout_ms = o->header_timeout_ms ? o->header_timeout_ms : 32000;
	s->o.body_timeout_ms = o->body_timeout_ms ? o->body_timeout_ms : 60000;
	s->o.idle_timeout_ms = o->idle_timeout_ms ? o->idle_timeout_ms : 180000;
	s->o.write_timeout_ms = o->write_timeout_ms ? o->write_timeout_ms : 60000;
	list_init(&s->conns);
	list_init(&s->idle);
	list_init(&s->dirty);
	list_init(&s->woken);
	list_init(&s->free_exchanges);
	list_init(&s->parked);
	fiber_cond_init(&s->dirtied, "something to send");
	fiber_cond_init(&s->emptied, "connections to end");
	s->in = mem_alloc(HTTP_IN_SIZE);
	s->out = mem_alloc(HTTP_OUT_SIZE);
	*ret = s;
	return 0;
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_listeners; i++)
		if (s->listeners[i] >= 0)
			(void)close(s->listeners[i]);
	free(s->listeners);
	exchange_free_all(s);
	free(s->in);
	free(s->out);
	free(s);
}

struct http_server_stats http_server_stats(const struct http_server *s) { return s->stats; }

/* ---- Listening ---- */

static int address_of(const char *address, uint16_t port, struct sockaddr_storage *ret, struct err *err)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		return 0;
	}
	if (inet_pton(AF_INET6, *address ? address : "::", &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		return 0;
	}
	return err_set(err, ERR_INVALID, "%s is not an IP address", address);
}

/* "::" takes IPv4 too, as in Go. */
static int bind_to(int fd, const struct sockaddr_storage *addr)
{
	static const int on = 1, off = 0;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (addr->ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	socklen_t n = addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	return bind(fd, (const struct sockaddr *)addr, n) < 0 || listen(fd, BACKLOG) < 0 ? errno : 0;
}

static void add_listener(struct http_server *s, int fd)
{
	s->listeners = mem_resize(s->listeners, (s->n_listeners + 1) * sizeof(int));
	s->listeners[s->n_listeners++] = fd;
}

/* Nobody but owner and group can connect, from the first moment on: the socket's mode is that of its name. */
static int listen_unix(struct http_server *s, const char *path, struct err *err)
{
	enum { MODE = 0660 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	struct stat st;

	if (!n || n >= sizeof(addr.sun_path))
		return err_set(err, ERR_INVALID, "listen unix %s: the path is %s", path, n ? "too long" : "empty");
	memcpy(addr.sun_path, path, n);
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, errno, "make a socket");
	if (fchmod(fd, MODE) < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 || chmod(path, MODE) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		int sys = errno;
		(void)close(fd);
		return err_sys(err, sys, "listen unix %s", path);
	}
	add_listener(s, fd);
	return 0;
}

int http_listen_tcp(const char *address, uint16_t port, struct err *err)
{
	struct sockaddr_storage addr;
	int r = address_of(address, port, &addr, err);

	if (r < 0)
		return r;
	int fd = socket(addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 && errno == EAFNOSUPPORT && !*address)
		return http_listen_tcp("0.0.0.0", port, err);
	if (fd < 0)
		return err_sys(err, errno, "make a socket");
	int sys = bind_to(fd, &addr);
	if (sys) {
		(void)close(fd);
		return err_sys(err, sys, "listen tcp %s:%u", address, port);
	}
	return fd;
}

int http_server_listen(struct http_server *s, const char *address, uint16_t port, uint16_t *ret_port, struct err *err)
{
	if (str_starts(str_of(address), STR("unix:")))
		return listen_unix(s, address + strlen("unix:"), err);
	int fd = http_listen_tcp(address, port, err);
	return fd < 0 ? fd : http_server_take(s, fd, ret_port, err);
}

int http_server_take(struct http_server *s, int fd, uint16_t *ret_port, struct err *err)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);

	add_listener(s, fd);
	if (getsockname(fd, (struct sockaddr *)&bound, &len) < 0)
		return err_sys(err, errno, "descriptor %d", fd);
	if (bound.ss_family != AF_INET && bound.ss_family != AF_INET6)
		return err_set(err, ERR_INVALID, "descriptor %d is not a TCP socket", fd);
	if (ret_port)
		*ret_port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port :
								((struct sockaddr_in *)&bound)->sin_port);
	return 0;
}

/* ---- Accepting ---- */

struct acceptor {
	struct http_server *server;
	int fd;
};

/* At the maximum, the one that has been idle for longest makes room. */
static bool has_room(struct http_server *s)
{
	if (s->stats.connections < s->o.max_connections)
		return true;
	struct http_conn *oldest = LIST_FIRST(struct http_conn, &s->idle, idle);
	if (!oldest)
		return false;
	list_remove(&oldest->idle);
	oldest->protocol->stop(oldest);
	conn_end(oldest);
	return true;
}

static int run_acceptor(void *arg)
{
	struct acceptor *a = arg;
	int r = 0;

	while (r == 0) {
		struct err err = ERR_INIT;
		int fd = fiber_accept(a->fd, NULL, &err);
		if (fd == -ERR_CANCELED)
			return fd;
		if (fd < 0) {
			log_warn("cannot accept connections, trying again", KV("err", &err));
			r = fiber_sleep_ms(RETRY_MS, NULL);
		} else if (has_room(a->server)) {
			conn_start(a->server, fd);
		} else {
			(void)close(fd);
		}
	}
	return r;
}

/* ---- Running ---- */

static void stop_listening(struct http_server *s)
{
	for (size_t i = 0; i < s->n_listeners; i++) {
		(void)close(s->listeners[i]);
		s->listeners[i] = -1;
	}
	s->n_listeners = 0;
}

/* (suspends) Until no connection is left; false after ms. */
static bool wait_empty(struct http_server *s, int64_t ms)
{
	DEADLINE_SCOPE(ms);
	while (s->stats.connections)
		if (fiber_cond_wait(&s->emptied, NULL) < 0)
			return false;
	return true;
}

static void stop_all(struct http_server *s, int64_t grace_ms)
{
	SHIELD_SCOPE();
	s->stopping = true;
	stop_listening(s);
	LIST_EACH(struct http_conn, c, &s->conns, link) {
		if (!c->state)
			conn_end(c);
		else if (!c->ending) {
			c->protocol->stop(c);
			conn_dirty(c);
		}
	}
	if (wait_empty(s, grace_ms))
		return;
	s->broken_off = true;
	LIST_EACH(struct http_conn, c, &s->conns, link) {
		conn_end(c);
		if (c->stream && !c->upgraded)
			stream_abort(c->stream);
		LIST_EACH(struct exchange, x, &c->exchanges, link)
			if (x->fiber)
				fiber_cancel(x->fiber);
	}
	(void)wait_empty(s, INT64_MAX);
}

int http_server_run(struct http_server *s, int64_t grace_ms, struct err *err)
{
	CLEANUP(mem_freep) struct acceptor *acceptors = mem_array(s->n_listeners, sizeof(*acceptors));
	struct fiber_group accepting;
	struct fiber *flusher = NULL;
	int r = fiber_spawn(conn_flush_all, s, &flusher, err, "http flush");

	if (r < 0)
		return r;
	fiber_group_init(&accepting);
	for (size_t i = 0; i < s->n_listeners && r == 0; i++) {
		acceptors[i] = (struct acceptor){ s, s->listeners[i] };
		r = fiber_group_spawn(&accepting, run_acceptor, &acceptors[i], err, "http accept");
	}
	if (r == 0)
		r = fiber_group_wait(&accepting, err);
	fiber_group_done(&accepting);
	stop_all(s, grace_ms);
	SHIELD_SCOPE();
	exchange_end_workers(s);
	(void)fiber_stop(flusher);
	return r;
}
