/*
 * ClusterRoles that are made of others: their rules are all rules of the roles that their selectors match, in the order of names, each
 * once. c8s' own API server does the same before it answers (authz/rbac_aggregate.c), so that beside it nothing is left to do here.
 */
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/cluster_role_plan.h"

/* Any role may be a part of any aggregated one. */
static void keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	(void)old, (void)object;
	INFORMER_EACH(role, informer_each(controller_informer(c, TYPE(rbac_v1, ClusterRole))))
		if (val_has(role->val, aggregationRule))
			controller_add(c, val_str(role->val, metadata, name));
}

static int sync_role(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct informer *all = controller_informer(c, TYPE(rbac_v1, ClusterRole));
	struct frozen *frozen = informer_get(all, key);
	const struct client_write_options o = { .manager = STR("clusterrole-aggregation-controller"), .force = true };
	struct val_builder roles = val_builder(a);
	struct val rules;
	if (!frozen || !val_has(frozen->val, aggregationRule))
		return 0;
	struct val role = controller_hold(c, a, frozen);
	INFORMER_EACH(part, informer_each(all)) /* in the order of names */
		val_add_item(&roles, controller_hold(c, a, part));
	int r = cluster_role_rules(a, role, val_end_list(&roles), &rules, err);
	if (r <= 0)
		return r;
	struct val applied = OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(key)))), F(rules, rules));
	return client_apply(c->client, TYPE(rbac_v1, ClusterRole), applied, &o, NULL, err);
}

static int start(struct controller *c, struct err *err)
{
	(void)err;
	controller_watch(c, controller_informer(c, TYPE(rbac_v1, ClusterRole)), keys);
	c->sync = sync_role;
	return 0;
}

const struct controller_kind controller_cluster_role_aggregation = {
	.name = "clusterrole-aggregation-controller", .start = start, .workers = 5,
};
