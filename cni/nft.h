/*
 * nft: rules of nf_tables, by nfnetlink. A batch is built and then committed, all of it or nothing. Everything is in one table of
 * the family inet that is ours alone; the tables of others are never touched. What the table holds: rules.h.
 *
 *	CLEANUP(nft_batch_done) struct nft_batch b;
 *	nft_batch_begin(&b, "c8s_cni");
 *	nft_rule_begin(&b, "masquerade", "net id eth0");
 *	nft_match_ip(&b, NFT_FROM, pod, false);
 *	nft_masquerade(&b);
 *	nft_rule_end(&b);
 *	r = nft_batch_commit(&b, &netlink, err);
 */
#ifndef C8S_CNI_NFT_H
#define C8S_CNI_NFT_H

#include "cni/inet.h"
#include "cni/netlink.h"

struct nft_batch {
	struct netlink_msg msg;
	const char *table;
	const char *comment;           /* of the rule that is being built */
	size_t exprs;                  /* where its expressions begin */
};

void nft_batch_begin(struct nft_batch *b, const char *table);
void nft_batch_done(struct nft_batch *b);
/* One commit of a batch; the batch is used up. -ERR_NOT_FOUND when something that it names is gone. */
int nft_batch_commit(struct nft_batch *b, struct netlink *n, struct err *err);

/* The table and its chains; fine when they exist. A chain without a hook is one to jump to. */
void nft_table(struct nft_batch *b);
void nft_table_delete(struct nft_batch *b);
void nft_chain(struct nft_batch *b, const char *chain);
/* A chain of type nat; hook: NF_INET_POST_ROUTING, ... */
void nft_nat_chain(struct nft_batch *b, const char *chain, uint32_t hook, int32_t priority);
void nft_chain_flush(struct nft_batch *b, const char *chain);

/* A set of networks of one family; fine when it exists. */
void nft_set(struct nft_batch *b, const char *set, int family);
void nft_set_flush(struct nft_batch *b, const char *set);
/* No rule may use it any more. */
void nft_set_delete(struct nft_batch *b, const char *set);
/* The networks must not overlap. */
void nft_set_add(struct nft_batch *b, const char *set, const struct inet_net *nets, size_t n);

/* A rule at the end of a chain; the comment (at most NFT_COMMENT_MAX bytes, may be NULL) is how it is found again. */
enum { NFT_COMMENT_MAX = 250 };
void nft_rule_begin(struct nft_batch *b, const char *chain, const char *comment);
void nft_rule_end(struct nft_batch *b);

enum nft_side { NFT_FROM, NFT_TO };

void nft_match_family(struct nft_batch *b, int family);
/* Also matches the family. */
void nft_match_ip(struct nft_batch *b, enum nft_side side, struct inet_net net, bool not);
void nft_match_set(struct nft_batch *b, enum nft_side side, const char *set, int family);
void nft_match_protocol(struct nft_batch *b, uint8_t protocol);
void nft_match_to_port(struct nft_batch *b, uint16_t port);
/* The port that a connection had been made to before it was translated. */
void nft_match_original_port(struct nft_batch *b, uint16_t port);
/* To an address of this machine. */
void nft_match_to_local(struct nft_batch *b);
/* Came in by this link. */
void nft_match_link(struct nft_batch *b, const char *name, bool not);
void nft_dnat(struct nft_batch *b, struct inet to, uint16_t port);
void nft_masquerade(struct nft_batch *b);
void nft_jump(struct nft_batch *b, const char *chain);
void nft_accept(struct nft_batch *b);
void nft_return(struct nft_batch *b);

/* A rule that is there. */
struct nft_rule {
	uint64_t handle;
	str chain, comment;
};

/* All rules of the table that have a comment, in the arena; none when there is no such table. */
int nft_rules(struct netlink *n, const char *table, struct arena *a, struct nft_rule **ret, size_t *ret_n, struct err *err);
void nft_rule_delete(struct nft_batch *b, const struct nft_rule *rule);

#endif
