#include "runtime/monitor_wire.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/atoms.h"

int monitor_wire_socket(struct err *err)
{
	int size = 2 * MONITOR_PACKET_MAX, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(err, errno, "a socket");
	/* Without the right to more than the administrator's maximum, packets are bounded by that. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return fd;
}

int monitor_wire_address(int folder, const char *name, struct sockaddr_un *ret, struct err *err)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/%d/fd/%d/%s", getpid(), folder, name);
	if (n < 0 || (size_t)n >= sizeof(ret->sun_path))
		return err_set(err, ERR_INVALID, "%s: the name of the socket is too long", name);
	return 0;
}

/* Room for the control message of all descriptors, aligned as the kernel wants it. */
union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(((struct monitor_fds *)NULL)->fd))];
};

int monitor_wire_send(int fd, str packet, const struct monitor_fds *fds)
{
	struct iovec iov = { (char *)packet.p, packet.n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control = { 0 };
	ssize_t n;

	if (fds && fds->n) {
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(fds->n * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fds->n * sizeof(int));
		memcpy(CMSG_DATA(c), fds->fd, fds->n * sizeof(int));
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -1 : 0;
}

static void take_fds(struct msghdr *msg, struct monitor_fds *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (ret->n < ARRAY_LEN(ret->fd))
				ret->fd[ret->n++] = fd;
			else
				close(fd);
		}
	}
}

ssize_t monitor_wire_receive(int fd, struct buf *b, struct monitor_fds *ret_fds)
{
	union control control;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	ret_fds->n = 0;
	do
		n = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n;
	char *at = n <= MONITOR_PACKET_MAX ? buf_reserve(b, (size_t)n) : NULL;
	iov = (struct iovec){ at, at ? (size_t)n : 0 };
	msg.msg_control = control.room;
	msg.msg_controllen = sizeof(control.room);
	n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -1;
	take_fds(&msg, ret_fds);
	if (!at) {
		monitor_fds_done(ret_fds);
		errno = EMSGSIZE;
		return -1;
	}
	buf_commit(b, (size_t)n);
	return n;
}

void monitor_fds_done(struct monitor_fds *fds)
{
	for (size_t i = 0; i < fds->n; i++)
		close(fds->fd[i]);
	fds->n = 0;
}

static const char *const codes[] = {
#define CODE_NAME(name, status, reason, text) [ERR_##name] = #name,
	ERR_CODES(CODE_NAME)
#undef CODE_NAME
};

struct val monitor_wire_error(struct arena *a, const struct err *e)
{
	const char *name = e->code ? codes[e->code] : codes[ERR_INTERNAL];
	size_t n = strlen(name);
	char *small = ARENA_ARRAY(a, char, n);

	for (size_t i = 0; i < n; i++)
		small[i] = (char)tolower((unsigned char)name[i]);
	return OBJECT(a, F(error, VAL_STR(err_str(e))), F(code, VAL_STR(str_span(small, n))));
}

int monitor_wire_fail(struct val answer, struct err *err)
{
	if (!val_has(answer, error))
		return 0;
	str text = val_str(answer, error), code = val_str(answer, code);
	for (size_t i = ERR_NONE + 1; i < ERR_MAX; i++)
		if (strlen(codes[i]) == code.n && strncasecmp(codes[i], code.p, code.n) == 0)
			return err_set(err, (enum err_code)i, STR_FMT, STR_ARG(text));
	return err_set(err, ERR_INTERNAL, STR_FMT, STR_ARG(text));
}

struct val monitor_wire_exit(struct arena *a, const struct monitor_exit *e)
{
	return OBJECT(a, F(event, VAL_LIT("exit")), F(id, VAL_STR(e->container)), F(exec, VAL_STR(e->exec)),
		      F(exitCode, val_of_int(e->exit_code)), F(finishedAt, val_of_int(e->finished_ns)),
		      F(oomKilled, val_of_bool(e->oom_killed)));
}

struct monitor_exit monitor_wire_exit_of(struct val event)
{
	return (struct monitor_exit){
		.container = val_str(event, id),
		.exec = val_str(event, exec),
		.exit_code = (int)val_int(event, exitCode),
		.finished_ns = val_int(event, finishedAt),
		.oom_killed = val_bool(event, oomKilled),
	};
}
