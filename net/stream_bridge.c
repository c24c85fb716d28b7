/* Two fibers, one for each direction; the last to end frees what they share. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/mem.h"
#include "net/http_proxy_priv.h"

enum { PIECE = 32 * 1024 };

struct bridge {
	struct stream *stream;
	int fd;
	unsigned running;
	char in[PIECE], out[PIECE];
};

/* Whoever ends ends the other, too. */
static void leave(struct bridge *b)
{
	if (--b->running) {
		stream_abort(b->stream);
		(void)shutdown(b->fd, SHUT_RDWR);
		return;
	}
	stream_free(b->stream);
	(void)close(b->fd);
	free(b);
}

static int outward(void *arg)
{
	struct bridge *b = arg;
	ssize_t n;
	while ((n = fiber_read(b->fd, b->out, PIECE, NULL)) > 0)
		if (stream_write(b->stream, b->out, (size_t)n, NULL) < 0)
			break;
	leave(b);
	return 0;
}

static int inward(void *arg)
{
	struct bridge *b = arg;
	ssize_t n;
	while ((n = stream_read(b->stream, b->in, PIECE, NULL)) > 0)
		if (fiber_write(b->fd, b->in, (size_t)n, NULL) < 0)
			break;
	leave(b);
	return 0;
}

int stream_bridge(struct stream *s, int *ret_fd, struct err *err)
{
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0) {
		int sys = errno;
		stream_free(s);
		return err_sys(err, sys, "make a pair of sockets");
	}
	struct bridge *b = mem_alloc(sizeof(*b));
	b->stream = s;
	b->fd = fds[0];
	b->running = 1;
	int r = fiber_spawn(inward, b, NULL, err, "proxy in");
	if (r < 0) {
		(void)close(fds[1]);
		leave(b);
		return r;
	}
	b->running++;
	if ((r = fiber_spawn(outward, b, NULL, err, "proxy out")) < 0) {
		(void)close(fds[1]);
		leave(b);
		return r;
	}
	*ret_fd = fds[1];
	return 0;
}
