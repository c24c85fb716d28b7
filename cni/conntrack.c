#include "cni/conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>

#include "cni/netlink.h"

struct search {
	int family;
	uint8_t protocol;
	uint16_t port;               /* in network order */
	struct netlink_msg doomed;
};

/* Whether the tuple is of that protocol and to that port. */
static bool matches(const struct search *s, const struct nlattr *tuple)
{
	bool protocol = false, port = false;

	NETLINK_EACH(part, netlink_attr_data(tuple), netlink_attr_len(tuple)) {
		if (netlink_attr_type(part) != CTA_TUPLE_PROTO)
			continue;
		NETLINK_EACH(a, netlink_attr_data(part), netlink_attr_len(part)) {
			const void *data = netlink_attr_data(a);
			if (netlink_attr_type(a) == CTA_PROTO_NUM && netlink_attr_len(a) == 1)
				protocol = *(const uint8_t *)data == s->protocol;
			else if (netlink_attr_type(a) == CTA_PROTO_DST_PORT && netlink_attr_len(a) == 2)
				port = memcmp(data, &s->port, sizeof(s->port)) == 0;
		}
	}
	return protocol && port;
}

static void begin(struct netlink_msg *m, uint16_t type, uint16_t flags, int family)
{
	struct nfgenmsg head = { .nfgen_family = (uint8_t)family, .version = NFNETLINK_V0 };
	netlink_begin(m, (uint16_t)(NFNL_SUBSYS_CTNETLINK << 8 | type), flags, &head, sizeof(head));
}

static void visit(const struct nlmsghdr *h, void *arg)
{
	struct search *s = arg;
	size_t skip = NLMSG_LENGTH(sizeof(struct nfgenmsg));

	if (!h) {
		buf_reset(&s->doomed.buf);
		s->doomed.n = 0;
		return;
	}
	if (h->nlmsg_type != (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW) || h->nlmsg_len < skip)
		return;
	NETLINK_EACH(a, (const char *)h + skip, h->nlmsg_len - skip) {
		if (netlink_attr_type(a) != CTA_TUPLE_ORIG || !matches(s, a))
			continue;
		begin(&s->doomed, IPCTNL_MSG_CT_DELETE, 0, s->family);
		netlink_put(&s->doomed, CTA_TUPLE_ORIG | NLA_F_NESTED, netlink_attr_data(a), netlink_attr_len(a));
	}
}

int conntrack_forget(int family, uint8_t protocol, uint16_t port, struct err *err)
{
	CLEANUP(netlink_close) struct netlink n = NETLINK_INIT;
	CLEANUP(netlink_msg_done) struct netlink_msg m = NETLINK_MSG_INIT;
	struct search s = { .family = family, .protocol = protocol, .port = htons(port), .doomed = NETLINK_MSG_INIT };
	struct err e = ERR_INIT;
	int r = netlink_open(&n, NETLINK_NETFILTER, err);

	if (r < 0)
		return r;
	begin(&m, IPCTNL_MSG_CT_GET, NLM_F_DUMP, family);
	r = netlink_ask(&n, &m, visit, &s, &e);
	/* One that has ended meanwhile is no error. */
	if (r == 0 && s.doomed.n && (r = netlink_do_all(&n, &s.doomed, &e)) < 0 && e.sys == ENOENT)
		r = 0;
	netlink_msg_done(&s.doomed);
	if (r < 0 && err)
		*err = e;
	return r < 0 ? err_wrap(err, r, "cannot forget connections to port %u", port) : 0;
}
