#include "cni/nft.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <netinet/in.h>

enum {
	/* As nft writes comments: type, length, text. */
	UDATA_RULE_COMMENT = 0,
	/* Types of keys, by which nft shows sets. */
	DATATYPE_IPV4 = 7, DATATYPE_IPV6 = 8,
	/* Elements of one message: an attribute holds 64 KiB. */
	SET_ELEMENTS_MAX = 1000,
};

static void begin(struct nft_batch *b, uint16_t type, uint16_t flags)
{
	struct nfgenmsg head = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };
	netlink_begin(&b->msg, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &head, sizeof(head));
}

static void mark(struct nft_batch *b, uint16_t type)
{
	struct nfgenmsg head = { .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES) };
	netlink_begin(&b->msg, type, 0, &head, sizeof(head));
}

void nft_batch_begin(struct nft_batch *b, const char *table)
{
	*b = (struct nft_batch){ .msg = NETLINK_MSG_INIT, .table = table };
	mark(b, NFNL_MSG_BATCH_BEGIN);
}

void nft_batch_done(struct nft_batch *b)
{
	netlink_msg_done(&b->msg);
}

int nft_batch_commit(struct nft_batch *b, struct netlink *n, struct err *err)
{
	if (b->msg.n == 1)
		return 0; /* nothing but its beginning */
	mark(b, NFNL_MSG_BATCH_END);
	int r = netlink_batch(n, &b->msg, err);
	return r < 0 ? err_wrap(err, r, "nftables") : 0;
}

/* ---- tables, chains, sets ---- */

void nft_table(struct nft_batch *b)
{
	begin(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	netlink_put_str(&b->msg, NFTA_TABLE_NAME, b->table);
}

void nft_table_delete(struct nft_batch *b)
{
	begin(b, NFT_MSG_DELTABLE, 0);
	netlink_put_str(&b->msg, NFTA_TABLE_NAME, b->table);
}

void nft_chain(struct nft_batch *b, const char *chain)
{
	begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	netlink_put_str(&b->msg, NFTA_CHAIN_TABLE, b->table);
	netlink_put_str(&b->msg, NFTA_CHAIN_NAME, chain);
}

void nft_nat_chain(struct nft_batch *b, const char *chain, uint32_t hook, int32_t priority)
{
	nft_chain(b, chain);
	size_t nest = netlink_nest(&b->msg, NFTA_CHAIN_HOOK);
	netlink_put_be32(&b->msg, NFTA_HOOK_HOOKNUM, hook);
	netlink_put_be32(&b->msg, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	netlink_nest_end(&b->msg, nest);
	netlink_put_be32(&b->msg, NFTA_CHAIN_POLICY, NF_ACCEPT);
	netlink_put_str(&b->msg, NFTA_CHAIN_TYPE, "nat");
}

void nft_chain_flush(struct nft_batch *b, const char *chain)
{
	begin(b, NFT_MSG_DELRULE, 0);
	netlink_put_str(&b->msg, NFTA_RULE_TABLE, b->table);
	netlink_put_str(&b->msg, NFTA_RULE_CHAIN, chain);
}

void nft_set(struct nft_batch *b, const char *set, int family)
{
	bool v4 = family == AF_INET;

	begin(b, NFT_MSG_NEWSET, NLM_F_CREATE);
	netlink_put_str(&b->msg, NFTA_SET_TABLE, b->table);
	netlink_put_str(&b->msg, NFTA_SET_NAME, set);
	netlink_put_be32(&b->msg, NFTA_SET_FLAGS, NFT_SET_INTERVAL);
	netlink_put_be32(&b->msg, NFTA_SET_KEY_TYPE, v4 ? DATATYPE_IPV4 : DATATYPE_IPV6);
	netlink_put_be32(&b->msg, NFTA_SET_KEY_LEN, v4 ? 4 : 16);
	netlink_put_be32(&b->msg, NFTA_SET_ID, (uint32_t)b->msg.n);
}

static void begin_elements(struct nft_batch *b, uint16_t type, uint16_t flags, const char *set)
{
	begin(b, type, flags);
	netlink_put_str(&b->msg, NFTA_SET_ELEM_LIST_TABLE, b->table);
	netlink_put_str(&b->msg, NFTA_SET_ELEM_LIST_SET, set);
}

void nft_set_flush(struct nft_batch *b, const char *set)
{
	begin_elements(b, NFT_MSG_DELSETELEM, 0, set);
}

void nft_set_delete(struct nft_batch *b, const char *set)
{
	begin(b, NFT_MSG_DELSET, 0);
	netlink_put_str(&b->msg, NFTA_SET_TABLE, b->table);
	netlink_put_str(&b->msg, NFTA_SET_NAME, set);
}

static void put_value(struct netlink_msg *m, uint16_t attr, const void *data, size_t n)
{
	size_t nest = netlink_nest(m, attr);
	netlink_put(m, NFTA_DATA_VALUE, data, n);
	netlink_nest_end(m, nest);
}

static void put_element(struct nft_batch *b, struct inet at, bool end)
{
	size_t nest = netlink_nest(&b->msg, NFTA_LIST_ELEM);
	put_value(&b->msg, NFTA_SET_ELEM_KEY, at.b, inet_len(at));
	if (end)
		netlink_put_be32(&b->msg, NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
	netlink_nest_end(&b->msg, nest);
}

void nft_set_add(struct nft_batch *b, const char *set, const struct inet_net *nets, size_t n)
{
	for (size_t i = 0; i < n;) {
		begin_elements(b, NFT_MSG_NEWSETELEM, NLM_F_CREATE, set);
		size_t nest = netlink_nest(&b->msg, NFTA_SET_ELEM_LIST_ELEMENTS);
		for (size_t stop = MIN(n, i + SET_ELEMENTS_MAX); i < stop; i++) {
			/* An interval ends before its end; the one up to the last address has none. */
			struct inet after = inet_next(inet_net_last(nets[i]));
			put_element(b, inet_net_first(nets[i]), false);
			if (!inet_is_zero(after))
				put_element(b, after, true);
		}
		netlink_nest_end(&b->msg, nest);
	}
}

/* ---- rules ---- */

void nft_rule_begin(struct nft_batch *b, const char *chain, const char *comment)
{
	begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	netlink_put_str(&b->msg, NFTA_RULE_TABLE, b->table);
	netlink_put_str(&b->msg, NFTA_RULE_CHAIN, chain);
	b->comment = comment;
	b->exprs = netlink_nest(&b->msg, NFTA_RULE_EXPRESSIONS);
}

void nft_rule_end(struct nft_batch *b)
{
	netlink_nest_end(&b->msg, b->exprs);
	if (!b->comment)
		return;
	uint8_t data[2 + NFT_COMMENT_MAX + 1];
	size_t n = strnlen(b->comment, NFT_COMMENT_MAX);
	data[0] = UDATA_RULE_COMMENT;
	data[1] = (uint8_t)(n + 1);
	memcpy(data + 2, b->comment, n);
	data[2 + n] = '\0';
	netlink_put(&b->msg, NFTA_RULE_USERDATA, data, 2 + n + 1);
}

/* An expression: its name and, until expr_end, its parameters. */
struct expr {
	size_t elem, data;
};

static struct expr expr(struct nft_batch *b, const char *name)
{
	struct expr e = { .elem = netlink_nest(&b->msg, NFTA_LIST_ELEM) };
	netlink_put_str(&b->msg, NFTA_EXPR_NAME, name);
	e.data = netlink_nest(&b->msg, NFTA_EXPR_DATA);
	return e;
}

static void expr_end(struct nft_batch *b, struct expr e)
{
	netlink_nest_end(&b->msg, e.data);
	netlink_nest_end(&b->msg, e.elem);
}

static void meta(struct nft_batch *b, uint32_t key)
{
	struct expr e = expr(b, "meta");
	netlink_put_be32(&b->msg, NFTA_META_DREG, NFT_REG_1);
	netlink_put_be32(&b->msg, NFTA_META_KEY, key);
	expr_end(b, e);
}

static void payload(struct nft_batch *b, uint32_t base, uint32_t offset, uint32_t len)
{
	struct expr e = expr(b, "payload");
	netlink_put_be32(&b->msg, NFTA_PAYLOAD_DREG, NFT_REG_1);
	netlink_put_be32(&b->msg, NFTA_PAYLOAD_BASE, base);
	netlink_put_be32(&b->msg, NFTA_PAYLOAD_OFFSET, offset);
	netlink_put_be32(&b->msg, NFTA_PAYLOAD_LEN, len);
	expr_end(b, e);
}

static void cmp(struct nft_batch *b, uint32_t op, const void *data, size_t n)
{
	struct expr e = expr(b, "cmp");
	netlink_put_be32(&b->msg, NFTA_CMP_SREG, NFT_REG_1);
	netlink_put_be32(&b->msg, NFTA_CMP_OP, op);
	put_value(&b->msg, NFTA_CMP_DATA, data, n);
	expr_end(b, e);
}

static void mask(struct nft_batch *b, struct inet m)
{
	static const uint8_t zero[16];
	struct expr e = expr(b, "bitwise");
	netlink_put_be32(&b->msg, NFTA_BITWISE_SREG, NFT_REG_1);
	netlink_put_be32(&b->msg, NFTA_BITWISE_DREG, NFT_REG_1);
	netlink_put_be32(&b->msg, NFTA_BITWISE_LEN, (uint32_t)inet_len(m));
	put_value(&b->msg, NFTA_BITWISE_MASK, m.b, inet_len(m));
	put_value(&b->msg, NFTA_BITWISE_XOR, zero, inet_len(m));
	expr_end(b, e);
}

static void immediate(struct nft_batch *b, uint32_t reg, const void *data, size_t n)
{
	struct expr e = expr(b, "immediate");
	netlink_put_be32(&b->msg, NFTA_IMMEDIATE_DREG, reg);
	put_value(&b->msg, NFTA_IMMEDIATE_DATA, data, n);
	expr_end(b, e);
}

static void verdict(struct nft_batch *b, int32_t code, const char *chain)
{
	struct expr e = expr(b, "immediate");
	netlink_put_be32(&b->msg, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	size_t data = netlink_nest(&b->msg, NFTA_IMMEDIATE_DATA), v = netlink_nest(&b->msg, NFTA_DATA_VERDICT);
	netlink_put_be32(&b->msg, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain)
		netlink_put_str(&b->msg, NFTA_VERDICT_CHAIN, chain);
	netlink_nest_end(&b->msg, v);
	netlink_nest_end(&b->msg, data);
	expr_end(b, e);
}

void nft_match_family(struct nft_batch *b, int family)
{
	uint8_t f = family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6;
	meta(b, NFT_META_NFPROTO);
	cmp(b, NFT_CMP_EQ, &f, sizeof(f));
}

/* Where the address is in the header. */
static void load_ip(struct nft_batch *b, enum nft_side side, int family)
{
	bool v4 = family == AF_INET;
	uint32_t len = v4 ? 4 : 16;
	payload(b, NFT_PAYLOAD_NETWORK_HEADER, (v4 ? 12 : 8) + (side == NFT_TO ? len : 0), len);
}

void nft_match_ip(struct nft_batch *b, enum nft_side side, struct inet_net net, bool not)
{
	nft_match_family(b, net.ip.family);
	if (net.prefix == 0 && !not)
		return;
	load_ip(b, side, net.ip.family);
	if (net.prefix < inet_bits(net.ip))
		mask(b, inet_net_mask(net));
	struct inet first = inet_net_first(net);
	cmp(b, not ? NFT_CMP_NEQ : NFT_CMP_EQ, first.b, inet_len(first));
}

void nft_match_set(struct nft_batch *b, enum nft_side side, const char *set, int family)
{
	nft_match_family(b, family);
	load_ip(b, side, family);
	struct expr e = expr(b, "lookup");
	netlink_put_str(&b->msg, NFTA_LOOKUP_SET, set);
	netlink_put_be32(&b->msg, NFTA_LOOKUP_SREG, NFT_REG_1);
	expr_end(b, e);
}

void nft_match_protocol(struct nft_batch *b, uint8_t protocol)
{
	meta(b, NFT_META_L4PROTO);
	cmp(b, NFT_CMP_EQ, &protocol, sizeof(protocol));
}

void nft_match_to_port(struct nft_batch *b, uint16_t port)
{
	uint16_t p = htons(port);
	payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(p));
	cmp(b, NFT_CMP_EQ, &p, sizeof(p));
}

void nft_match_original_port(struct nft_batch *b, uint16_t port)
{
	uint16_t p = htons(port);
	struct expr e = expr(b, "ct");
	netlink_put_be32(&b->msg, NFTA_CT_DREG, NFT_REG_1);
	netlink_put_be32(&b->msg, NFTA_CT_KEY, NFT_CT_PROTO_DST);
	netlink_put_u8(&b->msg, NFTA_CT_DIRECTION, 0 /* IP_CT_DIR_ORIGINAL */);
	expr_end(b, e);
	cmp(b, NFT_CMP_EQ, &p, sizeof(p));
}

void nft_match_to_local(struct nft_batch *b)
{
	uint32_t local = 2 /* RTN_LOCAL */;
	struct expr e = expr(b, "fib");
	netlink_put_be32(&b->msg, NFTA_FIB_DREG, NFT_REG_1);
	netlink_put_be32(&b->msg, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	netlink_put_be32(&b->msg, NFTA_FIB_FLAGS, NFTA_FIB_F_DADDR);
	expr_end(b, e);
	cmp(b, NFT_CMP_EQ, &local, sizeof(local));
}

void nft_match_link(struct nft_batch *b, const char *name, bool not)
{
	char text[IFNAMSIZ] = { 0 };
	memcpy(text, name, strnlen(name, IFNAMSIZ - 1));
	meta(b, NFT_META_IIFNAME);
	cmp(b, not ? NFT_CMP_NEQ : NFT_CMP_EQ, text, sizeof(text));
}

void nft_dnat(struct nft_batch *b, struct inet to, uint16_t port)
{
	uint16_t p = htons(port);

	immediate(b, NFT_REG_1, to.b, inet_len(to));
	immediate(b, NFT_REG_2, &p, sizeof(p));
	struct expr e = expr(b, "nat");
	netlink_put_be32(&b->msg, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	netlink_put_be32(&b->msg, NFTA_NAT_FAMILY, inet_is_v4(to) ? NFPROTO_IPV4 : NFPROTO_IPV6);
	netlink_put_be32(&b->msg, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
	netlink_put_be32(&b->msg, NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
	expr_end(b, e);
}

void nft_masquerade(struct nft_batch *b)
{
	expr_end(b, expr(b, "masq"));
}

void nft_jump(struct nft_batch *b, const char *chain) { verdict(b, NFT_JUMP, chain); }
void nft_accept(struct nft_batch *b) { verdict(b, NF_ACCEPT, NULL); }
void nft_return(struct nft_batch *b) { verdict(b, NFT_RETURN, NULL); }

/* ---- rules that are there ---- */

struct found {
	struct arena *arena;
	struct nft_rule *rules;
	size_t n, cap;
};

static str comment_of(const struct nlattr *userdata)
{
	str data = str_span(netlink_attr_data(userdata), netlink_attr_len(userdata));

	while (data.n >= 2) {
		uint8_t type = (uint8_t)data.p[0], len = (uint8_t)data.p[1];
		str text = str_head(str_skip(data, 2), len);
		if (type == UDATA_RULE_COMMENT)
			return str_head(text, strnlen(text.p, text.n));
		data = str_skip(data, 2 + (size_t)len);
	}
	return STR_NONE;
}

static void visit_rule(const struct nlmsghdr *h, void *arg)
{
	struct found *f = arg;
	struct nft_rule rule = { 0 };
	size_t skip = NLMSG_LENGTH(sizeof(struct nfgenmsg));

	if (!h) {
		f->n = 0;
		return;
	}
	if (h->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE) || h->nlmsg_len < skip)
		return;
	NETLINK_EACH(a, (const char *)h + skip, h->nlmsg_len - skip) {
		switch (netlink_attr_type(a)) {
		case NFTA_RULE_CHAIN: rule.chain = netlink_attr_str(a); break;
		case NFTA_RULE_USERDATA: rule.comment = comment_of(a); break;
		case NFTA_RULE_HANDLE:
			if (netlink_attr_len(a) == sizeof(rule.handle))
				memcpy(&rule.handle, netlink_attr_data(a), sizeof(rule.handle));
			break;
		default: break;
		}
	}
	if (!rule.comment.n)
		return;
	if (f->n == f->cap) {
		struct nft_rule *more = ARENA_ARRAY(f->arena, struct nft_rule, f->cap ? 2 * f->cap : 32);
		if (f->n)
			memcpy(more, f->rules, f->n * sizeof(*more));
		f->cap = f->cap ? 2 * f->cap : 32;
		f->rules = more;
	}
	rule.handle = be64toh(rule.handle);
	rule.chain = arena_str(f->arena, rule.chain);
	rule.comment = arena_str(f->arena, rule.comment);
	f->rules[f->n++] = rule;
}

int nft_rules(struct netlink *n, const char *table, struct arena *a, struct nft_rule **ret, size_t *ret_n, struct err *err)
{
	struct nft_batch b = { .msg = NETLINK_MSG_INIT, .table = table };
	struct found f = { .arena = a };
	struct err e = ERR_INIT;

	begin(&b, NFT_MSG_GETRULE, NLM_F_DUMP);
	netlink_put_str(&b.msg, NFTA_RULE_TABLE, table);
	int r = netlink_ask(n, &b.msg, visit_rule, &f, &e);
	nft_batch_done(&b);
	*ret = f.rules;
	*ret_n = f.n;
	if (r == 0 || e.sys == ENOENT)
		return 0;
	if (err)
		*err = e;
	return err_wrap(err, r, "cannot list rules of nftables");
}

void nft_rule_delete(struct nft_batch *b, const struct nft_rule *rule)
{
	begin(b, NFT_MSG_DELRULE, 0);
	netlink_put_str(&b->msg, NFTA_RULE_TABLE, b->table);
	netlink_put_str(&b->msg, NFTA_RULE_CHAIN, rule->chain.p);
	netlink_put_be64(&b->msg, NFTA_RULE_HANDLE, rule->handle);
}
