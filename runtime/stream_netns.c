/*
 * A socket belongs to the network namespace that its thread was in when it was made, and to no thread afterwards. So a thread is made
 * that enters the pod's namespace, makes sockets there and ends: no thread of ours is ever left in a pod.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "runtime/stream_priv.h"

struct sockets {
	const char *netns;
	int v4, v6;                          /* -1: none */
	int sys;                             /* why the namespace could not be entered */
};

static void close_sockets(struct sockets *s)
{
	if (s->v4 >= 0)
		close(s->v4);
	if (s->v6 >= 0)
		close(s->v6);
}

static void *make_sockets(void *arg)
{
	struct sockets *s = arg;
	int fd = s->netns ? open(s->netns, O_RDONLY | O_CLOEXEC) : -1;
	if (s->netns && (fd < 0 || setns(fd, CLONE_NEWNET) < 0)) {
		s->sys = errno;
	} else {
		s->v4 = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		s->v6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int run_thread(void *arg, struct err *err)
{
	pthread_t thread;
	int sys = pthread_create(&thread, NULL, make_sockets, arg);
	if (sys)
		return err_sys(err, sys, "a thread");
	pthread_join(thread, NULL);
	return 0;
}

static int dial(int *fd, const struct sockaddr *address, socklen_t n, struct err *err)
{
	int r = *fd < 0 ? err_set(err, ERR_SYSTEM, "no socket") : fiber_connect(*fd, address, n, err);
	if (r < 0)
		return r;
	r = *fd;
	*fd = -1;
	return r;
}

/* "connect: connection refused", as Go's programs have it. */
static const char *reason(const struct err *err, char *text, size_t n)
{
	const char *what = err->sys ? strerror(err->sys) : err->msg;
	snprintf(text, n, "connect: %c%s", what[0] | 0x20, what[0] ? what + 1 : "");
	return text;
}

int stream_dial_netns(const char *netns, uint16_t port, struct err *err)
{
	CLEANUP(close_sockets) struct sockets s = { netns, -1, -1, 0 };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct err e4 = ERR_INIT, e6 = ERR_INIT;
	int r = fiber_blocking(run_thread, &s, err);
	if (r < 0)
		return r;
	if (s.sys)
		return err_sys(err, s.sys, "failed to execute portforward in network namespace \"%s\"", netns);
	int fd = dial(&s.v4, (const struct sockaddr *)&v4, sizeof(v4), &e4);
	if (fd < 0 && fd != -ERR_CANCELED)
		fd = dial(&s.v6, (const struct sockaddr *)&v6, sizeof(v6), &e6);
	if (fd >= 0 || fd == -ERR_CANCELED)
		return fd;
	char why4[80], why6[80];
	/* a struct err has room for both */
	return err_set(err, ERR_UNAVAILABLE,
		       "failed to execute portforward in network namespace \"%.80s\": failed to connect to localhost:%u inside namespace "
		       "\"%.80s\", IPv4: dial tcp4 127.0.0.1:%u: %s IPv6 dial tcp6 [::1]:%u: %s",
		       netns ? netns : "host", port, netns ? netns : "host", port, reason(&e4, why4, sizeof(why4)), port,
		       reason(&e6, why6, sizeof(why6)));
}
