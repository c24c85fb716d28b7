/*
 * Blocks of pod addresses for nodes, cut out of --cluster-cidr: one of each family. A key is a node's. What is taken follows from the nodes
 * themselves, as they are told of; a block that was given and could not be written is free again.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/node_ipam_plan.h"

enum { FAMILIES_MAX = 2 };

struct ipam {
	struct informer *nodes;
	struct cidr_set sets[FAMILIES_MAX];
	size_t n;
};

static void node_blocks(struct ipam *s, struct val node, bool (*mark)(struct cidr_set *s, const struct cidr *c))
{
	struct cidr c;

	VAL_EACH(text, val_get(node, spec, podCIDRs)) {
		for (size_t i = 0; i < s->n && cidr_parse(val_as_str(*text), &c, NULL); i++)
			(void)mark(&s->sets[i], &c);
	}
}

static void node_changed(struct controller *c, struct frozen *old, struct frozen *node)
{
	struct ipam *s = c->state;

	if (node && val_len(val_get(node->val, spec, podCIDRs)))
		node_blocks(s, node->val, cidr_set_occupy);
	else if (node)
		controller_key_self(c, old, node);
	else
		node_blocks(s, old->val, cidr_set_release);
}

/* ---- giving ---- */

static void tell(struct controller *c, struct arena *a, str name, str uid, const char *what)
{
	struct val about = OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Node")), F(name, VAL_STR(name)), F(uid, VAL_STR(uid)));
	controller_event(c, about, false, what, "Node " STR_FMT " status is now: %s", STR_ARG(name), what);
}

static int take_blocks(struct ipam *s, struct arena *a, struct cidr taken[FAMILIES_MAX], struct val *ret_list)
{
	struct val_builder list = val_builder(a);
	char text[CIDR_TEXT_MAX];

	for (size_t i = 0; i < s->n; i++) {
		if (!cidr_set_take(&s->sets[i], &taken[i])) {
			while (i-- > 0)
				(void)cidr_set_release(&s->sets[i], &taken[i]);
			return -ERR_UNAVAILABLE;
		}
		val_add_item(&list, VAL_STR(arena_str(a, cidr_format(&taken[i], text))));
	}
	*ret_list = val_end_list(&list);
	return 0;
}

static int ipam_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct ipam *s = c->state;
	const struct frozen *node = informer_get(s->nodes, key);
	struct cidr taken[FAMILIES_MAX];
	struct val list;

	if (!node || val_len(val_get(node->val, spec, podCIDRs)) || val_has(node->val, metadata, deletionTimestamp))
		return 0;
	str uid = arena_str(a, val_str(node->val, metadata, uid));
	int r = take_blocks(s, a, taken, &list);
	if (r < 0) {
		tell(c, a, key, uid, "CIDRNotAvailable");
		return err_set(err, ERR_UNAVAILABLE, "failed to allocate cidr from cluster cidr: CIDR allocation failed; there are no remaining CIDRs left to "
						     "allocate in the accepted range");
	}
	struct val patch = OBJECT(a, F(metadata, OBJECT(a, F(uid, VAL_STR(uid)))),
				  F(spec, OBJECT(a, F(podCIDR, val_at(list, 0)), F(podCIDRs, list))));
	r = client_patch(c->client, TYPE(core_v1, Node), STR_NONE, key, CLIENT_PATCH_MERGE, patch, NULL, NULL, err);
	if (r == 0)
		return 0;
	/* Whether it was written after all is not known: then the block stays taken until the informer tells. */
	if (r != -ERR_TIMEOUT && r != -ERR_UNAVAILABLE && r != -ERR_CANCELED)
		for (size_t i = 0; i < s->n; i++)
			(void)cidr_set_release(&s->sets[i], &taken[i]);
	if (r == -ERR_NOT_FOUND) {
		err_clear(err);
		return 0;
	}
	tell(c, a, key, uid, "CIDRAssignmentFailed");
	return r;
}

/* ---- starting ---- */

static int add_family(struct ipam *s, const struct controllers_options *o, str text, struct err *err)
{
	struct cidr c;

	if (!cidr_parse(text, &c, NULL))
		return err_set(err, ERR_INVALID, "--cluster-cidr: invalid CIDR address: " STR_FMT, STR_ARG(text));
	for (size_t i = 0; i < s->n; i++)
		if (s->sets[i].whole.ip.family == c.ip.family)
			return err_set(err, ERR_INVALID, "--cluster-cidr: more than one block of one family");
	unsigned bits = c.ip.family == 4 ? (o->node_mask_v4 > 0 ? (unsigned)o->node_mask_v4 : 24) : (o->node_mask_v6 > 0 ? (unsigned)o->node_mask_v6 : 64);
	int r = cidr_set_init(&s->sets[s->n], &c, bits, err);
	s->n += r == 0;
	return r;
}

/* Services' addresses are not pods'. */
static int leave_out_services(struct ipam *s, const char *service_cidr, struct err *err)
{
	str text, rest = str_of(service_cidr);
	struct cidr c;

	while (rest.n) {
		(void)str_cut(rest, ',', &text, &rest);
		if (!cidr_parse(text, &c, NULL))
			return err_set(err, ERR_INVALID, "--service-cluster-ip-range: invalid CIDR address: " STR_FMT, STR_ARG(text));
		for (size_t i = 0; i < s->n; i++)
			(void)cidr_set_occupy(&s->sets[i], &c);
	}
	return 0;
}

static void ipam_stop(struct controller *c)
{
	struct ipam *s = c->state;

	for (size_t i = 0; i < s->n; i++)
		cidr_set_done(&s->sets[i]);
	free(s);
}

static int ipam_start(struct controller *c, struct err *err)
{
	struct ipam *s = mem_zalloc(sizeof *s);
	str text, rest = str_of(c->o->cluster_cidr);
	int r = 0;

	c->state = s;
	c->sync = ipam_sync;
	if (!c->o->allocate_node_cidrs || !rest.n)
		return 0;
	while (r == 0 && rest.n) {
		(void)str_cut(rest, ',', &text, &rest);
		r = s->n == FAMILIES_MAX ? err_set(err, ERR_INVALID, "--cluster-cidr: more than two blocks") : add_family(s, c->o, text, err);
	}
	if (r == 0)
		r = leave_out_services(s, c->o->service_cidr, err);
	if (r < 0)
		return r;
	s->nodes = controller_informer(c, TYPE(core_v1, Node));
	controller_watch(c, s->nodes, node_changed);
	return 0;
}

const struct controller_kind controller_node_ipam = { .name = "node-ipam-controller", .start = ipam_start, .workers = 30, .stop = ipam_stop,
						      .account = "node-controller", .source = "cidrAllocator" };
