#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "cni/netlink.h"

enum {
	ANSWER_MAX = 64 << 10,     /* no message of a dump is longer */
	ANSWER_WAIT_S = 10,        /* the kernel answers at once, or never */
	INTERRUPTED_TRIES = 10,
	ERRNO_MAX = 4095,
	SENT_AT_ONCE = 64,         /* of netlink_do_all: their answers must fit the socket's buffer */
};

/* ---- building ---- */

void netlink_msg_done(struct netlink_msg *m)
{
	buf_done(&m->buf);
}

/* All of a message begins and ends at a multiple of four. */
static void add(struct netlink_msg *m, const void *data, size_t n)
{
	static const char zeros[NLMSG_ALIGNTO];
	buf_add(&m->buf, str_span(data, n));
	buf_add(&m->buf, str_span(zeros, NLMSG_ALIGN(n) - n));
}

static struct nlmsghdr *last(struct netlink_msg *m)
{
	return (struct nlmsghdr *)(m->buf.p + m->at);
}

static void set_length(struct netlink_msg *m)
{
	if (!m->buf.overflow)
		last(m)->nlmsg_len = (uint32_t)(m->buf.n - m->at);
}

void netlink_begin(struct netlink_msg *m, uint16_t type, uint16_t flags, const void *head, size_t head_n)
{
	struct nlmsghdr h = { .nlmsg_type = type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) };

	m->at = m->buf.n;
	m->n++;
	add(m, &h, sizeof(h));
	add(m, head, head_n);
	set_length(m);
}

void netlink_put(struct netlink_msg *m, uint16_t attr, const void *data, size_t n)
{
	struct nlattr a = { .nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = attr };

	if (n > UINT16_MAX - NLA_HDRLEN) {
		m->buf.overflow = true;
		return;
	}
	add(m, &a, sizeof(a));
	add(m, data, n);
	set_length(m);
}

void netlink_put_u8(struct netlink_msg *m, uint16_t attr, uint8_t v) { netlink_put(m, attr, &v, sizeof(v)); }
void netlink_put_u16(struct netlink_msg *m, uint16_t attr, uint16_t v) { netlink_put(m, attr, &v, sizeof(v)); }
void netlink_put_u32(struct netlink_msg *m, uint16_t attr, uint32_t v) { netlink_put(m, attr, &v, sizeof(v)); }
void netlink_put_be16(struct netlink_msg *m, uint16_t attr, uint16_t v) { netlink_put_u16(m, attr, htons(v)); }
void netlink_put_be32(struct netlink_msg *m, uint16_t attr, uint32_t v) { netlink_put_u32(m, attr, htonl(v)); }

void netlink_put_be64(struct netlink_msg *m, uint16_t attr, uint64_t v)
{
	v = htobe64(v);
	netlink_put(m, attr, &v, sizeof(v));
}

void netlink_put_str(struct netlink_msg *m, uint16_t attr, const char *s) { netlink_put(m, attr, s, strlen(s) + 1); }

size_t netlink_nest(struct netlink_msg *m, uint16_t attr)
{
	size_t at = m->buf.n;
	netlink_put(m, attr | NLA_F_NESTED, "", 0);
	return at;
}

void netlink_nest_end(struct netlink_msg *m, size_t nest)
{
	if (m->buf.overflow || m->buf.n - nest > UINT16_MAX) {
		m->buf.overflow = true;
		return;
	}
	((struct nlattr *)(m->buf.p + nest))->nla_len = (uint16_t)(m->buf.n - nest);
}

/* ---- reading ---- */

uint32_t netlink_attr_u32(const struct nlattr *a)
{
	uint32_t v = 0;
	if (netlink_attr_len(a) >= sizeof(v))
		memcpy(&v, netlink_attr_data(a), sizeof(v));
	return v;
}

str netlink_attr_str(const struct nlattr *a)
{
	const char *p = netlink_attr_data(a);
	return str_span(p, strnlen(p, netlink_attr_len(a)));
}

/* ---- asking ---- */

int netlink_open(struct netlink *n, int protocol, struct err *err)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	struct timeval wait = { .tv_sec = ANSWER_WAIT_S };
	int yes = 1;

	n->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (n->fd < 0)
		return err_sys(err, errno, "cannot open a netlink socket");
	if (bind(n->fd, (struct sockaddr *)&self, sizeof(self)) < 0 ||
	    setsockopt(n->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0) {
		int sys = errno;
		netlink_close(n);
		return err_sys(err, sys, "cannot use a netlink socket");
	}
	/* Better errors and filtered lists, where the kernel has them. */
	(void)setsockopt(n->fd, SOL_NETLINK, NETLINK_EXT_ACK, &yes, sizeof(yes));
	(void)setsockopt(n->fd, SOL_NETLINK, NETLINK_CAP_ACK, &yes, sizeof(yes));
	(void)setsockopt(n->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &yes, sizeof(yes));
	return 0;
}

void netlink_close(struct netlink *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

static int send_bytes(struct netlink *n, const void *p, size_t len, struct err *err)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t sent;

	do
		sent = sendto(n->fd, p, len, 0, (struct sockaddr *)&kernel, sizeof(kernel));
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? err_sys(err, errno, "netlink") : 0;
}

/* Next part of an answer: what was read; messages that are not from the kernel are dropped. */
static ssize_t receive(struct netlink *n, char *answer, struct err *err)
{
	for (;;) {
		struct sockaddr_nl from = { .nl_family = AF_NETLINK };
		struct iovec part = { answer, ANSWER_MAX };
		struct msghdr msg = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &part, .msg_iovlen = 1 };
		ssize_t got = recvmsg(n->fd, &msg, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(err, errno == EAGAIN ? ETIMEDOUT : errno, "the kernel's answer");
		if (msg.msg_flags & MSG_TRUNC)
			return err_set(err, ERR_TOO_LARGE, "the kernel's answer is too long");
		if (from.nl_pid == 0)
			return got;
	}
}

/* Of a code as the kernel sends it. */
static int sys_of(int code) { return code < 0 && code >= -ERRNO_MAX ? -code : EPROTO; }

/* 0 for an acknowledgement. */
static int error_of(const struct nlmsghdr *h, struct err *err)
{
	const struct nlmsgerr *e = NLMSG_DATA(h);

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
		return err_set(err, ERR_INTERNAL, "the kernel's answer is cut off");
	if (e->error == 0)
		return 0;
	/* With NETLINK_CAP_ACK only the header of the request is repeated; attributes about the error follow it. */
	size_t skip = NLMSG_LENGTH(sizeof(*e)) + (h->nlmsg_flags & NLM_F_CAPPED ? 0 : e->msg.nlmsg_len - sizeof(e->msg));
	if (h->nlmsg_flags & NLM_F_ACK_TLVS && skip < h->nlmsg_len) {
		NETLINK_EACH(a, (const char *)h + NLMSG_ALIGN(skip), h->nlmsg_len - NLMSG_ALIGN(skip)) {
			str text = netlink_attr_type(a) == NLMSGERR_ATTR_MSG ? netlink_attr_str(a) : STR_NONE;
			if (text.n)
				return err_sys(err, sys_of(e->error), STR_FMT, STR_ARG(text));
		}
	}
	return err_sys(err, sys_of(e->error), "%s", "");
}

/*
 * Reads answers to the requests first .. last until the last one is answered (with NLMSG_DONE or an error message, whose
 * code may be 0). The first error of all is the result; one about `first` ends it if that stands for all (a batch).
 */
struct answers {
	uint32_t first, last;
	bool batch, interrupted;
	netlink_visit *visit;
	void *arg;
};

/* One message; 1: it was the last, 0: go on. *result gets the first error. */
static int take(struct answers *q, const struct nlmsghdr *h, int *result, struct err *err)
{
	if (h->nlmsg_seq - q->first > q->last - q->first)
		return 0; /* an answer to something that timed out before */
	if (h->nlmsg_flags & NLM_F_DUMP_INTR)
		q->interrupted = true;
	if (h->nlmsg_type == NLMSG_ERROR) {
		struct err e = ERR_INIT;
		int r = error_of(h, &e);
		if (r < 0 && *result == 0) {
			*result = r;
			if (err)
				*err = e;
		}
		return h->nlmsg_seq == q->last || (q->batch && r < 0 && h->nlmsg_seq == q->first);
	}
	if (h->nlmsg_type == NLMSG_DONE) {
		int code = 0;
		if (h->nlmsg_len >= NLMSG_LENGTH(sizeof(code)))
			memcpy(&code, NLMSG_DATA(h), sizeof(code));
		if (code < 0 && *result == 0)
			*result = err_sys(err, sys_of(code), "%s", "");
		return 1;
	}
	if (q->visit && h->nlmsg_type >= NLMSG_MIN_TYPE)
		q->visit(h, q->arg);
	return 0;
}

static int read_answers(struct netlink *n, struct answers *q, struct err *err)
{
	CLEANUP(mem_freep) char *answer = mem_alloc(ANSWER_MAX);
	int result = 0;

	for (;;) {
		ssize_t got = receive(n, answer, err);
		if (got < 0)
			return (int)got;
		str rest = str_span(answer, (size_t)got);
		while (rest.n >= sizeof(struct nlmsghdr)) {
			const struct nlmsghdr *h = (const void *)rest.p;
			if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > rest.n)
				break;
			if (take(q, h, &result, err))
				return result;
			/* The last one need not end at a multiple of four. */
			rest = str_skip(rest, NLMSG_ALIGN((size_t)h->nlmsg_len));
		}
	}
}

/* Numbers the messages and marks those that shall be acknowledged. */
static int prepare(struct netlink *n, struct netlink_msg *m, bool ack_all, struct answers *q, struct err *err)
{
	int r = buf_check(&m->buf, "a netlink message", err);
	if (r < 0)
		return r;
	q->first = n->seq + 1;
	for (size_t at = 0; at < m->buf.n;) {
		struct nlmsghdr *h = (struct nlmsghdr *)(m->buf.p + at);
		h->nlmsg_seq = ++n->seq;
		if (ack_all)
			h->nlmsg_flags |= NLM_F_ACK;
		at += NLMSG_ALIGN(h->nlmsg_len);
	}
	q->last = n->seq;
	return 0;
}

int netlink_do(struct netlink *n, struct netlink_msg *m, struct err *err)
{
	struct answers q = { 0 };
	int r = prepare(n, m, true, &q, err);

	if (r == 0)
		r = send_bytes(n, m->buf.p, m->buf.n, err);
	return r < 0 ? r : read_answers(n, &q, err);
}

int netlink_do_all(struct netlink *n, struct netlink_msg *m, struct err *err)
{
	struct answers all = { 0 };
	int r = prepare(n, m, true, &all, err), first = 0;

	for (size_t at = 0; r == 0 && at < m->buf.n;) {
		struct err e = ERR_INIT;
		size_t from = at, count = 0;
		struct answers q = { 0 };
		for (; at < m->buf.n && count < SENT_AT_ONCE; count++) {
			const struct nlmsghdr *h = (const void *)(m->buf.p + at);
			q.first = count ? q.first : h->nlmsg_seq;
			q.last = h->nlmsg_seq;
			at += NLMSG_ALIGN(h->nlmsg_len);
		}
		if ((r = send_bytes(n, m->buf.p + from, at - from, err)) < 0)
			return r;
		if ((r = read_answers(n, &q, &e)) < 0 && first == 0) {
			first = r;
			if (err)
				*err = e;
		}
		r = e.sys ? 0 : r; /* an answer of the kernel: go on with the others */
	}
	return r < 0 ? r : first;
}

int netlink_ask(struct netlink *n, struct netlink_msg *m, netlink_visit *visit, void *arg, struct err *err)
{
	bool dump = (last(m)->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	int r;

	for (int i = 0; i < INTERRUPTED_TRIES; i++) {
		struct answers q = { .visit = visit, .arg = arg };
		visit(NULL, arg);
		if ((r = prepare(n, m, !dump, &q, err)) < 0 || (r = send_bytes(n, m->buf.p, m->buf.n, err)) < 0 ||
		    (r = read_answers(n, &q, err)) < 0)
			return r;
		if (!q.interrupted)
			return 0;
	}
	return err_set(err, ERR_UNAVAILABLE, "the kernel's list changes too fast to be read");
}

int netlink_batch(struct netlink *n, struct netlink_msg *m, struct err *err)
{
	struct answers q = { .batch = true };
	int r = prepare(n, m, false, &q, err);

	if (r < 0)
		return r;
	/* The last message proper is acknowledged; the kernel reports errors of the others in any case, and before. */
	size_t before = 0;
	for (size_t at = 0; at < m->at; at += NLMSG_ALIGN(((struct nlmsghdr *)(m->buf.p + at))->nlmsg_len))
		before = at;
	((struct nlmsghdr *)(m->buf.p + before))->nlmsg_flags |= NLM_F_ACK;
	q.last--;
	if ((r = send_bytes(n, m->buf.p, m->buf.n, err)) < 0)
		return r;
	return read_answers(n, &q, err);
}
