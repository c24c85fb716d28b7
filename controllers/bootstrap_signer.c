/*
 * The ConfigMap kube-public/cluster-info tells those who join where the cluster is and whom to trust; everybody may read it. Who has a
 * bootstrap token can tell that it is true by a signature that only the cluster and the token's owner can make.
 */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/bootstrap_token.h"
#include "controllers/controller.h"

#define INFO_KEY "kube-public/cluster-info"

static void map_keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	(void)old;
	if (object && str_eq(val_str(object->val, metadata, name), STR("cluster-info")) &&
	    str_eq(val_str(object->val, metadata, namespace), STR("kube-public")))
		controller_add(c, STR(INFO_KEY));
}

static void secret_keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	if (bootstrap_token_is(object ? object->val : old->val))
		controller_add(c, STR(INFO_KEY));
}

static int sync_info(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct informer *secrets = controller_informer(c, TYPE(core_v1, Secret));
	struct frozen *info = informer_get(controller_informer(c, TYPE(core_v1, ConfigMap)), key);
	struct val_builder tokens = val_builder(a);
	if (!info)
		return 0;
	struct val map = controller_hold(c, a, info);
	INFORMER_EACH(secret, informer_each_indexed(secrets, "namespace", STR(BOOTSTRAP_TOKEN_NAMESPACE)))
		if (bootstrap_token_is(secret->val))
			val_add_item(&tokens, controller_hold(c, a, secret));
	struct val data = bootstrap_signed_data(a, val_get(map, data), val_end_list(&tokens), clock_wall_ns());
	if (!val_exists(data))
		return 0;
	int r = client_update(c->client, TYPE(core_v1, ConfigMap), val_with(a, map, data, data), NULL, NULL, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int start(struct controller *c, struct err *err)
{
	struct informer *secrets = controller_informer(c, TYPE(core_v1, Secret));
	(void)err;
	informer_index(secrets, "namespace", informer_by_namespace);
	controller_watch(c, controller_informer(c, TYPE(core_v1, ConfigMap)), map_keys);
	controller_watch(c, secrets, secret_keys);
	c->sync = sync_info;
	return 0;
}

const struct controller_kind controller_bootstrap_signer = {
	.name = "bootstrap-signer-controller", .start = start, .workers = 1, .off = true, .account = "bootstrap-signer",
};
