/* Deployments and their replica sets. */

#include "codec/types.h"
#include "kubectl/describe.h"

bool ktl_is_controlled_by(struct val object, str uid)
{
	VAL_EACH(o, val_get(object, metadata, ownerReferences))
		if (val_bool(*o, controller))
			return str_eq(val_str(*o, uid), uid);
	return false;
}

static int by_age(const void *x, const void *y)
{
	const struct val *a = x, *b = y;
	int r = str_cmp(val_str(*a, metadata, creationTimestamp), val_str(*b, metadata, creationTimestamp));
	return r ? r : str_cmp(val_str(*a, metadata, name), val_str(*b, metadata, name));
}

int ktl_replica_sets_of(struct ktl *k, struct val deployment, struct val *ret)
{
	const struct ktl_kind *sets = ktl_kind_of_type(k, TYPE(apps_v1, ReplicaSet));
	struct val_builder own = val_builder(&k->arena);
	struct val all;
	if (ktl_list(k, sets, val_str(deployment, metadata, namespace), ktl_selector(k, val_get(deployment, spec, selector)), STR_NONE, &all) < 0)
		return -1;
	VAL_EACH(rs, all)
		if (ktl_is_controlled_by(*rs, val_str(deployment, metadata, uid)))
			val_add_item(&own, *rs);
	*ret = ktl_sorted_list(k, val_end_list(&own), by_age);
	return 0;
}

static struct val without_hash(struct ktl *k, struct val template)
{
	return val_put_path(&k->arena, template, (const atom[]){ A_metadata, A_labels, atom_make(&k->arena, STR("pod-template-hash")) }, 3, VAL_EMPTY);
}

bool ktl_same_template(struct ktl *k, struct val x, struct val y) { return val_equal(without_hash(k, x), without_hash(k, y)); }

struct val ktl_newest_replica_set(struct ktl *k, struct val deployment, struct val list)
{
	VAL_EACH(rs, list)
		if (ktl_same_template(k, val_get(*rs, spec, template), val_get(deployment, spec, template)))
			return *rs;
	return VAL_EMPTY;
}
