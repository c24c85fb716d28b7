#include "oci/sync.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

int sync_pair(int ret_fd[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fd) < 0)
		return err_sys(err, errno, "socketpair");
	return 0;
}

static int tell(int fd, const struct sync_message *m, struct err *err)
{
	ssize_t n;

	do
		n = write(fd, m, sizeof(*m));
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(err, errno, "telling the runtime") : 0;
}

int sync_tell(int fd, enum sync_kind kind, int number, struct err *err)
{
	return tell(fd, &(struct sync_message){ .kind = kind, .number = number }, err);
}

int sync_send_fd(int fd, const void *data, size_t n, int passed, struct err *err)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = n };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	ssize_t sent;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &passed, sizeof(passed));
	do
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? err_sys(err, errno, "sending a descriptor") : 0;
}

int sync_tell_fd(int fd, enum sync_kind kind, int passed, struct err *err)
{
	struct sync_message m = { .kind = kind };
	return sync_send_fd(fd, &m, sizeof(m), passed, err);
}

void sync_fail(int fd, const char *step, const struct err *err)
{
	struct sync_message m = { .kind = SYNC_FAILED, .code = (int)err->code, .sys = err->sys };
	str name = str_head(str_of(step), sizeof(m.step) - 1), text = str_head(err_str(err), sizeof(m.text) - 1);

	memcpy(m.step, name.p, name.n);
	memcpy(m.text, text.p, text.n);
	(void)tell(fd, &m, NULL);
}

static int as_error(struct sync_message *m, struct err *err)
{
	enum err_code code = m->code > ERR_NONE && m->code < ERR_MAX ? (enum err_code)m->code : ERR_INTERNAL;

	m->step[sizeof(m->step) - 1] = m->text[sizeof(m->text) - 1] = '\0';
	int r = err_set(err, code, "%s: %s", m->step, m->text);
	if (err)
		err->sys = m->sys;
	return r;
}

int sync_next(int fd, struct sync_message *ret, int *ret_passed, struct err *err)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	*ret_passed = -1;
	do
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != ECONNRESET) {
		ret->kind = SYNC_FAILED;
		return err_sys(err, errno, "hearing from the process");
	}
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_passed, CMSG_DATA(c), sizeof(int));
	if (n != (ssize_t)sizeof(*ret)) {
		ret->kind = SYNC_CLOSED;
		return err_set(err, ERR_UNAVAILABLE, "the process ended without a word");
	}
	return ret->kind == SYNC_FAILED ? as_error(ret, err) : 0;
}

int sync_expect(int fd, enum sync_kind kind, struct err *err)
{
	struct sync_message m;
	int passed, r = sync_next(fd, &m, &passed, err);

	if (passed >= 0)
		close(passed);
	if (r < 0)
		return r;
	return m.kind == kind ? 0 : err_set(err, ERR_INTERNAL, "message %d instead of %d", (int)m.kind, (int)kind);
}

int sync_ask(int fd, enum sync_kind kind, struct err *err)
{
	int r = sync_tell(fd, kind, 0, err);
	return r < 0 ? r : sync_expect(fd, SYNC_GO, err);
}
