/*
 * The stdio of containers. Output is read in blocks and goes to those attached and to the log; a stream is read on only when all of
 * them have taken the block before, so a slow disk or onlooker slows the container down instead of costing memory, and both have a
 * limit to the patience that they are shown.
 */
#include "runtime/monitor_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	DRAIN_BLOCKS_MAX = 256, /* 4 MiB: a pipe cannot hold more without privilege */
	HANGUP_RETRY_MS = 1000,
};

static void set_nonblocking(int fd) { (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/* The block goes to the log as far as that takes it; the rest waits. */
static void stream_log(struct stream *s, str data);

static void stream_retry(struct timer *t)
{
	struct stream *s = CONTAINER_OF(t, struct stream, timer);
	char *waiting = TAKE(s->waiting);

	if (waiting)
		stream_log(s, str_span(waiting, s->waiting_n));
	free(waiting);
	stdio_watch(s->container);
}

static void stream_log(struct stream *s, str data)
{
	str rest = str_skip(data, log_add(&s->container->log, s->which, &s->held, data));

	if (!rest.n)
		return;
	s->waiting = mem_alloc(rest.n);
	memcpy(s->waiting, rest.p, rest.n);
	s->waiting_n = rest.n;
	timer_set(s->source.pod, &s->timer, LOG_RETRY_MS, stream_retry);
}

static void stream_end(struct stream *s)
{
	if (s->source.fd < 0)
		return;
	source_close(&s->source);
	timer_stop(&s->timer);
	log_flush(&s->container->log, s->which, &s->held);
	if (stdio_ended(s->container))
		attach_close_all(s->container);
}

/* Reads one block; false when there is none now. */
static bool stream_read(struct stream *s)
{
	struct pod *pod = s->source.pod;
	ssize_t n = read(s->source.fd, pod->block, sizeof(pod->block));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (n < 0 && errno == EIO && s->container->status != STATUS_STOPPED) {
		/* Nobody has the terminal open, but somebody may open it again. */
		source_watch(&s->source, 0);
		timer_set(pod, &s->timer, HANGUP_RETRY_MS, stream_retry);
		return false;
	}
	if (n <= 0) {
		stream_end(s);
		return false;
	}
	str data = str_span(pod->block, (size_t)n);
	attach_output(s->container, s->which, data);
	stream_log(s, data);
	return true;
}

static void stream_ready(struct source *source, uint32_t events)
{
	struct stream *s = CONTAINER_OF(source, struct stream, source);

	(void)events;
	if (stream_read(s))
		stdio_watch(s->container);
}

void stdio_watch(struct container *c)
{
	bool behind = attach_behind(c);

	for (int i = 0; i < 2; i++) {
		struct stream *s = i == 0 ? &c->out : &c->err;
		source_watch(&s->source, behind || list_linked(&s->timer.link) ? 0 : EPOLLIN);
	}
}

static void stream_drain(struct stream *s)
{
	for (int n = 0; n < DRAIN_BLOCKS_MAX && s->source.fd >= 0 && !s->waiting && stream_read(s); n++)
		;
}

void stdio_drain(struct container *c)
{
	stream_drain(&c->out);
	stream_drain(&c->err);
}

static int make_pipe(int ends[2], struct err *err) { return pipe2(ends, O_CLOEXEC) < 0 ? err_sys(err, errno, "a pipe") : 0; }

static void stream_init(struct stream *s, struct container *c, enum logs_stream which)
{
	s->container = c;
	s->which = which;
	buf_init(&s->held, LOGS_TEXT_MAX);
	source_init(&s->source, c->pod, -1, stream_ready);
}

static void stream_open(struct stream *s, int fd)
{
	set_nonblocking(fd);
	s->source.fd = fd;
}

/* stdin takes more, or nobody reads there. */
static void input_ready(struct source *source, uint32_t events)
{
	struct container *c = CONTAINER_OF(source, struct container, in);

	source_watch(source, 0);
	if (events & EPOLLERR)
		stdio_close_input(c);
	else
		attach_input(c);
}

int stdio_open(struct container *c, bool with_stdin, int ret_stdio[3], struct err *err)
{
	int ends[2], r;

	stream_init(&c->out, c, LOGS_STDOUT);
	stream_init(&c->err, c, LOGS_STDERR);
	source_init(&c->in, c->pod, -1, input_ready);
	ret_stdio[0] = ret_stdio[1] = ret_stdio[2] = -1;
	if (c->terminal)
		return 0;
	if (with_stdin) {
		if ((r = make_pipe(ends, err)) < 0)
			return r;
		ret_stdio[0] = ends[0];
		set_nonblocking(ends[1]);
		c->in.fd = ends[1];
	} else if ((ret_stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
		return err_sys(err, errno, "/dev/null");
	}
	for (int i = 1; i <= 2; i++) {
		if ((r = make_pipe(ends, err)) < 0)
			return r;
		ret_stdio[i] = ends[1];
		stream_open(i == 1 ? &c->out : &c->err, ends[0]);
	}
	stdio_watch(c);
	return 0;
}

void stdio_terminal(struct container *c, int master)
{
	c->in.fd = fcntl(master, F_DUPFD_CLOEXEC, 3); /* one registration each for reading and for writing */
	stream_open(&c->out, master);
	stdio_watch(c);
}

void stdio_close_input(struct container *c)
{
	if (c->in.fd < 0)
		return;
	source_close(&c->in);
	attach_input(c); /* who waited need not any more */
}

bool stdio_ended(const struct container *c) { return c->out.source.fd < 0 && c->err.source.fd < 0; }

/* One last time: what the log does not take now is lost. */
static void stream_finish(struct stream *s)
{
	timer_stop(&s->timer);
	if (s->waiting)
		stream_retry(&s->timer);
	stream_drain(s);
	free(TAKE(s->waiting));
	stream_end(s);
}

void stdio_close(struct container *c)
{
	stdio_close_input(c);
	stream_finish(&c->out);
	stream_finish(&c->err);
	attach_free_all(c);
}
