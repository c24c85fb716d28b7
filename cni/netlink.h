/*
 * netlink: messages to the kernel about links (link.h) and rules (nft.h): building them, sending them, reading the answers. By
 * hand, because the small static program has no library for it. A socket belongs to the network namespace that its thread was
 * in when it was opened, and stays there. Calls block (the kernel answers at once); nothing suspends.
 */
#ifndef C8S_CNI_NETLINK_H
#define C8S_CNI_NETLINK_H

#include <linux/netlink.h>

#include "base/buf.h"

/* ---- building ---- */

/* One or more messages in a row. Too long ones are noticed when they are sent. */
struct netlink_msg {
	struct buf buf;
	size_t at;         /* where the last message begins */
	size_t n;          /* messages */
};

#define NETLINK_MSG_INIT { .buf = BUF_INIT(NETLINK_MSG_MAX) }
enum { NETLINK_MSG_MAX = 4 << 20 };

void netlink_msg_done(struct netlink_msg *m);
/* A message; head is what follows the header by type (struct ifinfomsg, ...). The length is kept right by every call below. */
void netlink_begin(struct netlink_msg *m, uint16_t type, uint16_t flags, const void *head, size_t head_n);
void netlink_put(struct netlink_msg *m, uint16_t attr, const void *data, size_t n);
void netlink_put_u8(struct netlink_msg *m, uint16_t attr, uint8_t v);
void netlink_put_u16(struct netlink_msg *m, uint16_t attr, uint16_t v);
void netlink_put_u32(struct netlink_msg *m, uint16_t attr, uint32_t v);
/* In network order. */
void netlink_put_be16(struct netlink_msg *m, uint16_t attr, uint16_t v);
void netlink_put_be32(struct netlink_msg *m, uint16_t attr, uint32_t v);
void netlink_put_be64(struct netlink_msg *m, uint16_t attr, uint64_t v);
/* With its '\0'. */
void netlink_put_str(struct netlink_msg *m, uint16_t attr, const char *s);
/* Attributes inside an attribute: what is put until netlink_nest_end(m, result). */
size_t netlink_nest(struct netlink_msg *m, uint16_t attr);
void netlink_nest_end(struct netlink_msg *m, size_t nest);

/* ---- reading ---- */

/* for each attribute: NETLINK_EACH(a, data, n) gives const struct nlattr *a; broken ones end the loop. */
#define NETLINK_EACH(a, data_, n_)                                                                                        \
	for (const struct nlattr *a = (const void *)(data_), *a##_end = (const void *)((const char *)(data_) + (n_));      \
	     netlink_attr_ok(a, a##_end); a = (const void *)((const char *)a + NLA_ALIGN(a->nla_len)))

static inline bool netlink_attr_ok(const struct nlattr *a, const struct nlattr *end)
{
	ptrdiff_t left = (const char *)end - (const char *)a;
	return left >= NLA_HDRLEN && a->nla_len >= NLA_HDRLEN && a->nla_len <= left;
}

static inline unsigned netlink_attr_type(const struct nlattr *a) { return a->nla_type & NLA_TYPE_MASK; }
static inline const void *netlink_attr_data(const struct nlattr *a) { return (const char *)a + NLA_HDRLEN; }
static inline size_t netlink_attr_len(const struct nlattr *a) { return a->nla_len - (size_t)NLA_HDRLEN; }
/* 0 when it is shorter. */
uint32_t netlink_attr_u32(const struct nlattr *a);
/* Up to its '\0'. */
str netlink_attr_str(const struct nlattr *a);

/* ---- asking ---- */

struct netlink {
	int fd;            /* -1: not open */
	uint32_t seq;
};

#define NETLINK_INIT { .fd = -1 }

/* protocol: NETLINK_ROUTE or NETLINK_NETFILTER. */
int netlink_open(struct netlink *n, int protocol, struct err *err);
void netlink_close(struct netlink *n); /* fine when it is not open */

/* Sends one message and waits until the kernel has done it. err->sys is errno; the message is the kernel's own, if it gives one. */
int netlink_do(struct netlink *n, struct netlink_msg *m, struct err *err);
/* Many messages at once, all tried; the first error. */
int netlink_do_all(struct netlink *n, struct netlink_msg *m, struct err *err);
/*
 * Sends one request; visit gets every message of the answer. A list that changed while it was read is read again: visit(NULL)
 * says that it begins, also the first time.
 */
typedef void netlink_visit(const struct nlmsghdr *h, void *arg);
int netlink_ask(struct netlink *n, struct netlink_msg *m, netlink_visit *visit, void *arg, struct err *err);
/* A batch of nfnetlink (the first message begins and the last one ends it): all or nothing. */
int netlink_batch(struct netlink *n, struct netlink_msg *m, struct err *err);

#endif
