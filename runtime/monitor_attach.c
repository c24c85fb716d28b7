/*
 * Those attached to a container: each has a stream socket with frames both ways. One that does not keep up holds the container's
 * output back until it has read on; when it reads nothing for CLIENT_PATIENCE_MS, or its queue is full, it is let go of.
 *
 * Frames from it are passed on as they come, whatever length they claim. What the container's stdin does not take yet stays as it was
 * read, and nothing more is read from that client until then.
 */
#include "runtime/monitor_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

enum { CHANNEL_IN = 0, CHANNEL_OUT = 1, CHANNEL_ERR = 2, CHANNEL_END_OF_IN = 3, FRAME_HEAD = 5 };

struct client {
	struct list link;
	struct container *container;
	struct source source;
	struct timer timer;
	struct buf queue;             /* what it has to read, from queue_at on */
	size_t queue_at;
	unsigned char head[FRAME_HEAD];
	size_t head_n;
	uint32_t left;                /* of the frame's content */
	char *rest;                   /* frames that stdin has not taken yet */
	size_t rest_n;
	bool has_input;               /* it has sent some: with stdinOnce, its end is the end of stdin */
	bool closing;                 /* once it has read all */
	bool deaf;                    /* it reads no more, but may have sent something before */
};

static void client_free(struct client *cl)
{
	struct container *c = cl->container;

	list_remove(&cl->link);
	c->n_clients--;
	timer_stop(&cl->timer);
	source_close(&cl->source);
	buf_done(&cl->queue);
	free(cl->rest);
	if (cl->has_input && c->stdin_once && !c->terminal)
		stdio_close_input(c);
	free(cl);
	stdio_watch(c);
}

/* ---- to it ---- */

static bool is_behind(const struct client *cl) { return cl->queue_at < cl->queue.n; }

static void client_watch(struct client *cl)
{
	source_watch(&cl->source, (is_behind(cl) ? EPOLLOUT : 0u) | (cl->rest || cl->closing ? 0u : EPOLLIN));
}

static void client_late(struct timer *t)
{
	struct client *cl = CONTAINER_OF(t, struct client, timer);

	log_info("letting go of one attached who does not read", KV("container", cl->container->id));
	client_free(cl);
}

/* False: it is gone. */
static bool client_flush(struct client *cl)
{
	while (is_behind(cl)) {
		str rest = str_skip(buf_str(&cl->queue), cl->queue_at);
		ssize_t n = send(cl->source.fd, rest.p, rest.n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			cl->deaf = true;
			cl->queue_at = cl->queue.n;
			break;
		}
		cl->queue_at += (size_t)n;
		timer_stop(&cl->timer);
	}
	if (is_behind(cl)) {
		if (!list_linked(&cl->timer.link))
			timer_set(cl->source.pod, &cl->timer, CLIENT_PATIENCE_MS, client_late);
		client_watch(cl);
		return true;
	}
	buf_done(&cl->queue);
	buf_init(&cl->queue, CLIENT_QUEUE_MAX);
	cl->queue_at = 0;
	if (cl->closing) {
		client_free(cl);
		return false;
	}
	client_watch(cl);
	return true;
}

static void client_output(struct client *cl, char channel, str data)
{
	char head[FRAME_HEAD] = { channel, (char)(data.n >> 24), (char)(data.n >> 16), (char)(data.n >> 8), (char)data.n };

	if (cl->deaf)
		return;
	buf_add(&cl->queue, str_span(head, sizeof(head)));
	buf_add(&cl->queue, data);
	if (cl->queue.overflow)
		client_late(&cl->timer);
	else
		client_flush(cl);
}

void attach_output(struct container *c, enum logs_stream which, str data)
{
	LIST_EACH_SAFE(struct client, cl, &c->clients, link)
		client_output(cl, which == LOGS_STDOUT ? CHANNEL_OUT : CHANNEL_ERR, data);
}

bool attach_behind(const struct container *c)
{
	LIST_EACH(struct client, cl, &c->clients, link)
		if (is_behind(cl))
			return true;
	return false;
}

/* ---- from it ---- */

/* Content of a frame to stdin: how much was taken. Without a stdin, all of it. */
static size_t take_content(struct client *cl, str data)
{
	struct container *c = cl->container;

	if (cl->head[0] != CHANNEL_IN || c->in.fd < 0)
		return data.n;
	cl->has_input = true;
	ssize_t n = write(c->in.fd, data.p, data.n);
	if (n >= 0)
		return (size_t)n;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	stdio_close_input(c); /* nobody reads there any more */
	return data.n;
}

/* How much of the frames was dealt with; less than all when stdin takes no more now. */
static size_t take_frames(struct client *cl, str data)
{
	size_t at = 0;

	while (at < data.n) {
		if (cl->head_n < FRAME_HEAD) {
			cl->head[cl->head_n++] = (unsigned char)data.p[at++];
			if (cl->head_n < FRAME_HEAD)
				continue;
			cl->left = (uint32_t)cl->head[1] << 24 | (uint32_t)cl->head[2] << 16 | (uint32_t)cl->head[3] << 8 | cl->head[4];
			if (cl->head[0] == CHANNEL_END_OF_IN) {
				cl->has_input = true;
				if (cl->container->stdin_once && !cl->container->terminal)
					stdio_close_input(cl->container);
			}
		}
		str content = str_head(str_skip(data, at), cl->left);
		size_t n = content.n ? take_content(cl, content) : 0;
		at += n;
		cl->left -= (uint32_t)n;
		if (cl->left == 0)
			cl->head_n = 0;
		else if (n < content.n)
			break;
	}
	return at;
}

static void client_input(struct client *cl, str data)
{
	char *old = TAKE(cl->rest); /* data may lie in it */
	str rest = str_skip(data, take_frames(cl, data));

	if (rest.n) {
		cl->rest = mem_alloc(rest.n);
		memcpy(cl->rest, rest.p, rest.n);
		cl->rest_n = rest.n;
		source_watch(&cl->container->in, EPOLLOUT);
	}
	free(old);
	client_watch(cl);
}

void attach_input(struct container *c)
{
	LIST_EACH(struct client, cl, &c->clients, link)
		if (cl->rest)
			client_input(cl, str_span(cl->rest, cl->rest_n));
}

static void client_ready(struct source *s, uint32_t events)
{
	struct client *cl = CONTAINER_OF(s, struct client, source);
	struct container *c = cl->container;

	if (events & EPOLLOUT) {
		if (client_flush(cl))
			stdio_watch(c);
		return;
	}
	ssize_t n = recv(s->fd, s->pod->block, sizeof(s->pod->block), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		client_free(cl);
	else
		client_input(cl, str_span(s->pod->block, (size_t)n));
}

/* ---- life ---- */

int attach_new(struct container *c, int *ret_fd, struct err *err)
{
	int ends[2];

	if (c->n_clients >= CLIENTS_MAX)
		return err_set(err, ERR_TOO_MANY_REQUESTS, "container %s: %d are attached already", c->id, CLIENTS_MAX);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(err, errno, "a pair of sockets");
	struct client *cl = mem_zalloc(sizeof(*cl));
	cl->container = c;
	buf_init(&cl->queue, CLIENT_QUEUE_MAX);
	source_init(&cl->source, c->pod, ends[0], client_ready);
	list_add(&c->clients, &cl->link);
	c->n_clients++;
	client_watch(cl);
	if (stdio_ended(c))
		attach_close_all(c);
	*ret_fd = ends[1];
	return 0;
}

void attach_free_all(struct container *c)
{
	LIST_EACH_SAFE(struct client, cl, &c->clients, link)
		client_free(cl);
}

void attach_close_all(struct container *c)
{
	LIST_EACH_SAFE(struct client, cl, &c->clients, link) {
		cl->closing = true;
		client_flush(cl);
	}
}
