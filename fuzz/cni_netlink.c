/*
 * The kernel's answers. Nothing reaches the kernel: sendto and recvmsg are this file's. The first byte chooses what is asked; what
 * follows are the answers, each with its length before it, whose sequence numbers are made right. Names are terminated and as long
 * as names are, addresses have families, and all ends.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "cni/conntrack.h"
#include "cni/link.h"
#include "cni/nft.h"
#include "cni/rules.h"
#include "fuzz/fuzz.h"

static str answers;
static uint32_t asked;

ssize_t sendto(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t to_n)
{
	(void)fd, (void)flags, (void)to, (void)to_n;
	if (n >= sizeof(struct nlmsghdr))
		asked = ((const struct nlmsghdr *)p)->nlmsg_seq;
	return (ssize_t)n;
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	(void)fd, (void)flags;
	if (answers.n < 2) {
		errno = EAGAIN;
		return -1;
	}
	size_t n = MIN((size_t)(uint8_t)answers.p[0] | (size_t)(uint8_t)answers.p[1] << 8, answers.n - 2);
	n = MIN(n, m->msg_iov[0].iov_len);
	char *to = m->msg_iov[0].iov_base;
	memcpy(to, answers.p + 2, n);
	answers = str_skip(answers, 2 + n);
	m->msg_flags = 0;
	for (size_t at = 0; at + sizeof(struct nlmsghdr) <= n;) {
		struct nlmsghdr *h = (struct nlmsghdr *)(void *)(to + at);
		h->nlmsg_seq = asked;
		if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > n - at)
			break;
		at += NLMSG_ALIGN((size_t)h->nlmsg_len);
	}
	return (ssize_t)n;
}

static void links(struct netlink *n, struct arena *a)
{
	struct link *list, one;
	size_t count;

	if (link_list(n, a, &list, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			check(strnlen(list[i].name, IFNAMSIZ) < IFNAMSIZ && strnlen(list[i].kind, IFNAMSIZ) < IFNAMSIZ, "names end");
	(void)link_get(n, "eth0", &one, NULL);
}

static void addresses(struct netlink *n, struct arena *a)
{
	struct addr *list;
	struct route *routes;
	size_t count;
	int index;

	if (addr_list(n, 0, a, &list, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			check(inet_exists(list[i].net.ip), "an address has a family");
	if (route_list(n, AF_INET6, a, &routes, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			check(inet_exists(routes[i].dst.ip), "a route leads somewhere");
	(void)route_link_to(n, inet_of(AF_INET, "\x0a\0\0\1"), &index, NULL);
}

static void rules(struct netlink *n, struct arena *a)
{
	static const struct rules_owner owner = { "net", "id", "eth0" };
	struct nft_rule *list;
	size_t count;

	if (nft_rules(n, "c8s_cni", a, &list, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			check(list[i].comment.n > 0 && list[i].comment.n <= UINT8_MAX, "a rule that is found has a comment");
	(void)rules_count(RULES_MASQUERADE, &owner, NULL);
	(void)rules_remove(RULES_MASQUERADE | RULES_HOST_PORTS, &owner, NULL);
}

static void orders(struct netlink *n)
{
	struct err err = ERR_INIT;

	if (link_del(n, 5, &err) < 0)
		check(err.n > 0, "an error says what was attempted");
	(void)conntrack_forget(AF_INET, IPPROTO_UDP, 53, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct netlink netlink = { .fd = -1 };
	struct arena a = ARENA_INIT;

	if (n < 1)
		return 0;
	answers = str_span((const char *)data + 1, n - 1);
	switch (data[0] % 4) {
	case 0: links(&netlink, &a); break;
	case 1: addresses(&netlink, &a); break;
	case 2: rules(&netlink, &a); break;
	default: orders(&netlink); break;
	}
	arena_done(&a);
	return 0;
}
