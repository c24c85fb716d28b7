/*
 * Waiting for descriptors. Every loop has an epoll set of its own, which libuv watches as one descriptor. Each wait
 * arms its descriptor there once (EPOLLONESHOT), so nothing stays registered that could fire for a descriptor that was
 * closed and opened again as something else: the kernel alone knows what is registered, and a stale event finds no
 * waiter. That is the reason not to use a uv_poll_t per descriptor: it must outlive its descriptor, allows one user,
 * and costs more calls when made per wait.
 */
#include "base/fiber_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/mem.h"

/* One descriptor that one fiber waits for; on that fiber's stack. */
struct poll_wait {
	struct poll_wait *next; /* of the same descriptor */
	struct fiber *fiber;
	int fd;
	bool linked;
	uint32_t events, revents;
};

struct poll_fd {
	struct poll_wait *waits;
	bool known; /* the epoll set probably has it: saves a failing call, nothing else depends on it */
};

static const uint32_t always = EPOLLERR | EPOLLHUP;

static void unlink_wait(struct loop *loop, struct poll_wait *w)
{
	struct poll_wait **at = &loop->fds[w->fd].waits;

	if (!w->linked)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->linked = false;
}

/* Arms fd for all that its waiters want. 0 or errno. */
static int arm(struct loop *loop, int fd)
{
	struct poll_fd *entry = &loop->fds[fd];
	struct epoll_event e = { .events = EPOLLONESHOT, .data.fd = fd };

	for (struct poll_wait *w = entry->waits; w; w = w->next)
		e.events |= w->events;
	int r = epoll_ctl(loop->epoll, entry->known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e);
	if (r < 0 && errno == (entry->known ? ENOENT : EEXIST))
		r = epoll_ctl(loop->epoll, entry->known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &e);
	entry->known = r == 0;
	return r < 0 ? errno : 0;
}

static void deliver(struct loop *loop, int fd, uint32_t events)
{
	bool left = false;

	for (struct poll_wait *w = loop->fds[fd].waits, *next; w; w = next) {
		next = w->next;
		w->revents = events & (w->events | always);
		if (w->revents) {
			unlink_wait(loop, w);
			fiber_wake(w->fiber);
		} else {
			left = true;
		}
	}
	if (left)
		(void)arm(loop, fd);
}

static void on_epoll_ready(uv_poll_t *handle, int status, int events)
{
	struct loop *loop = CONTAINER_OF(handle, struct loop, epoll_ready);
	struct epoll_event e[64];
	int n;

	(void)status, (void)events;
	do {
		n = epoll_wait(loop->epoll, e, ARRAY_LEN(e), 0);
		for (int i = 0; i < n; i++)
			deliver(loop, e[i].data.fd, e[i].events);
	} while (n == ARRAY_LEN(e));
}

int fiber_io_init(struct loop *loop, struct err *err)
{
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0)
		return err_sys(err, errno, "make an epoll set");
	int r = uv_poll_init(&loop->uv, &loop->epoll_ready, loop->epoll);
	if (r == 0)
		r = uv_poll_start(&loop->epoll_ready, UV_READABLE, on_epoll_ready);
	return r < 0 ? err_sys(err, -r, "watch an epoll set") : 0;
}

void fiber_io_close(struct loop *loop)
{
	if (loop->epoll >= 0)
		(void)close(loop->epoll);
	free(loop->fds);
}

/* ---- Waiting ---- */

static void grow_fds(struct loop *loop, size_t n)
{
	if (n <= loop->n_fds)
		return;
	n = MAX(n, loop->n_fds * 2);
	loop->fds = mem_resize(loop->fds, n * sizeof(*loop->fds));
	memset(loop->fds + loop->n_fds, 0, (n - loop->n_fds) * sizeof(*loop->fds));
	loop->n_fds = n;
}

/*
 * Links w and arms its descriptor; a file that is always ready (epoll refuses those) gets its revents at once. 0 or
 * errno.
 */
static int start_wait(struct loop *loop, struct poll_wait *w)
{
	grow_fds(loop, (size_t)w->fd + 1);
	w->next = loop->fds[w->fd].waits;
	w->linked = true;
	loop->fds[w->fd].waits = w;
	int sys = arm(loop, w->fd);
	if (sys == EPERM)
		w->revents = w->events;
	return sys == EPERM ? 0 : sys;
}

/* Waits for any of w[n], whose fd and events are set and not negative. */
static int wait_any(struct poll_wait *w, size_t n, struct err *err)
{
	struct loop *loop = fiber_loop;
	bool ready = false;
	size_t started = 0;
	int r = 0;

	for (; started < n && r == 0; started++) {
		w[started].fiber = fiber_self();
		int sys = start_wait(loop, &w[started]);
		if (sys)
			r = err_sys(err, sys, "wait for descriptor %d", w[started].fd);
		ready = ready || w[started].revents;
	}
	if (r == 0 && !ready)
		r = fiber_wait(NULL, n == 1 ? "descriptor" : "several descriptors", n == 1 ? w[0].fd : -1, err);
	while (started)
		unlink_wait(loop, &w[--started]);
	return r;
}

int fiber_poll(struct pollfd *fds, size_t n, struct err *err)
{
	struct poll_wait w[FIBER_POLL_MAX];
	size_t used = 0;
	int set = 0, r = fiber_check(err);

	assert(n <= FIBER_POLL_MAX);
	for (size_t i = 0; i < n; i++)
		if (fds[i].fd >= 0)
			w[used++] = (struct poll_wait){ .fd = fds[i].fd, .events = (uint16_t)fds[i].events };
	if (r == 0)
		r = wait_any(w, used, err);
	if (r < 0)
		return r;
	for (size_t i = 0, at = 0; i < n; i++) {
		fds[i].revents = fds[i].fd >= 0 ? (short)w[at++].revents : 0;
		set += fds[i].revents != 0;
	}
	return set;
}

int fiber_wait_fd(int fd, short events, struct err *err)
{
	struct poll_wait w = { .fd = fd, .events = (uint16_t)events };
	int r = fiber_check(err);

	if (r == 0 && fd < 0)
		return err_sys(err, EBADF, "wait for descriptor %d", fd);
	if (r == 0)
		r = wait_any(&w, 1, err);
	return r < 0 ? r : (int)w.revents;
}

/* After a call on fd failed with sys: waits and returns 0 when it is worth another try, else the error. */
static int retry(int sys, int fd, short events, const char *what, struct err *err)
{
	if (sys == EINTR)
		return fiber_check(err);
	if (sys != EAGAIN && sys != EWOULDBLOCK)
		return err_sys(err, sys, "%s", what);
	int r = fiber_wait_fd(fd, events, err);
	return r < 0 ? r : 0;
}

ssize_t fiber_read(int fd, void *p, size_t n, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0) {
		ssize_t got = read(fd, p, n);
		if (got >= 0)
			return got;
		r = retry(errno, fd, POLLIN, "read", err);
	}
	return r;
}

int fiber_write(int fd, const void *p, size_t n, struct err *err)
{
	const char *at = p;
	int r = fiber_check(err);

	while (r == 0 && n) {
		ssize_t done = write(fd, at, n);
		if (done < 0) {
			r = retry(errno, fd, POLLOUT, "write", err);
			continue;
		}
		at += done;
		n -= (size_t)done;
	}
	return r;
}

int fiber_accept(int fd, struct sockaddr_storage *ret_addr, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0) {
		socklen_t len = sizeof(*ret_addr);
		int conn = accept4(fd, (struct sockaddr *)ret_addr, ret_addr ? &len : NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (conn >= 0)
			return conn;
		/* The peer left before we looked: as if it had never come. */
		r = retry(errno == ECONNABORTED || errno == EPROTO ? EINTR : errno, fd, POLLIN, "accept", err);
	}
	return r;
}

int fiber_connect(int fd, const struct sockaddr *addr, socklen_t len, struct err *err)
{
	enum { BACKLOG_RETRY_MS = 5 };
	int r = fiber_check(err), sys = 0;
	socklen_t size = sizeof(sys);

	/* A unix socket whose listener's queue is full says EAGAIN, and there is nothing to poll for. */
	while (r == 0 && connect(fd, addr, len) < 0) {
		if (errno == EAGAIN) {
			r = fiber_sleep_ms(BACKLOG_RETRY_MS, err);
			continue;
		}
		if (errno != EINPROGRESS && errno != EINTR)
			return err_sys(err, errno, "connect");
		r = fiber_wait_fd(fd, POLLOUT, err);
		if (r < 0)
			return r;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &size) < 0)
			sys = errno;
		return sys ? err_sys(err, sys, "connect") : 0;
	}
	return r;
}
