/*
 * VolumeRestrictions: disks that only one pod (or several that only read) may use, and claims that only one pod in the cluster may use
 * (ReadWriteOncePod).
 */
#include "codec/atoms.h"
#include "scheduler/plugin.h"
#include "scheduler/storage.h"

struct restrictions {
	bool disks;                   /* the pod has such disks */
	size_t n_once;
	const str *once;              /* names of its claims with ReadWriteOncePod */
	int64_t users;                /* how many uses of them there are */
};

static bool volume_is_restricted(struct val v)
{
	return val_has(v, gcePersistentDisk) || val_has(v, awsElasticBlockStore) || val_has(v, rbd) || val_has(v, iscsi);
}

static bool lists_meet(struct val x, struct val y)
{
	VAL_EACH(a, x)
		VAL_EACH(b, y)
			if (str_eq(val_as_str(*a), val_as_str(*b)))
				return true;
	return false;
}

static bool both_read_only(struct val x, struct val y)
{
	return val_bool(x, readOnly) && val_bool(y, readOnly);
}

static bool volumes_conflict(struct val v, struct val w)
{
	struct val x = val_get(v, gcePersistentDisk), y = val_get(w, gcePersistentDisk);
	if (val_exists(x) && val_exists(y) && str_eq(val_str(x, pdName), val_str(y, pdName)) && !both_read_only(x, y))
		return true;
	x = val_get(v, awsElasticBlockStore), y = val_get(w, awsElasticBlockStore);
	if (val_exists(x) && val_exists(y) && str_eq(val_str(x, volumeID), val_str(y, volumeID)))
		return true;
	x = val_get(v, iscsi), y = val_get(w, iscsi);
	if (val_exists(x) && val_exists(y) && str_eq(val_str(x, iqn), val_str(y, iqn)) && !both_read_only(x, y))
		return true;
	x = val_get(v, rbd), y = val_get(w, rbd);
	return val_exists(x) && val_exists(y) && lists_meet(val_get(x, monitors), val_get(y, monitors)) &&
	       str_eq(val_str(x, pool), val_str(y, pool)) && str_eq(val_str(x, image), val_str(y, image)) && !both_read_only(x, y);
}

static bool pods_conflict(struct val pod, struct val other)
{
	struct val theirs = val_get(other, spec, volumes);
	if (!val_len(theirs))
		return false;
	VAL_EACH(v, val_get(pod, spec, volumes)) {
		if (!volume_is_restricted(*v))
			continue;
		VAL_EACH(w, theirs)
			if (volumes_conflict(*v, *w))
				return true;
	}
	return false;
}

static bool has_mode(struct val claim, str mode)
{
	VAL_EACH(m, val_get(claim, spec, accessModes))
		if (str_eq(val_as_str(*m), mode))
			return true;
	return false;
}

static enum verdict restrictions_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	struct restrictions *s = ARENA_NEW(c->arena, struct restrictions);
	struct val volumes = val_get(c->pod, spec, volumes);
	str namespace = val_str(c->pod, metadata, namespace);
	str *once = ARENA_ARRAY(c->arena, str, val_len(volumes) + 1);
	VAL_EACH(v, volumes) {
		s->disks |= volume_is_restricted(*v);
		if (!val_has(*v, persistentVolumeClaim))
			continue;
		str name = val_str(*v, persistentVolumeClaim, claimName);
		struct val claim = storage_claim(c->storage, namespace, name);
		if (!val_exists(claim)) {
			c->reason = arena_printf(c->arena, "persistentvolumeclaim \"" STR_FMT "\" not found", STR_ARG(name));
			return UNRESOLVABLE;
		}
		bool known = false;
		for (size_t i = 0; i < s->n_once; i++)
			known |= str_eq(once[i], name);
		if (known || !has_mode(claim, STR("ReadWriteOncePod")))
			continue;
		once[s->n_once++] = name;
		s->users += storage_claim_used(c->storage, namespace, name);
	}
	s->once = once;
	*ret_state = s;
	*ret_skip = !s->disks && s->users == 0;
	return FIT;
}

static int64_t restrictions_uses(const struct cycle *c, const struct restrictions *s, const struct placed *p)
{
	int64_t n = 0;
	if (!s->n_once || !str_eq(val_str(p->pod->val, metadata, namespace), val_str(c->pod, metadata, namespace)))
		return 0;
	VAL_EACH(v, val_get(p->pod->val, spec, volumes))
		for (size_t i = 0; i < s->n_once && val_has(*v, persistentVolumeClaim); i++)
			n += str_eq(val_str(*v, persistentVolumeClaim, claimName), s->once[i]);
	return n;
}

static void restrictions_add_pod(struct cycle *c, void *state, const struct placed *p, uint32_t node)
{
	struct restrictions *s = state;
	(void)node;
	s->users += restrictions_uses(c, s, p);
}

static void restrictions_remove_pod(struct cycle *c, void *state, const struct placed *p, uint32_t node)
{
	struct restrictions *s = state;
	(void)node;
	s->users -= restrictions_uses(c, s, p);
}

static enum verdict restrictions_filter(struct cycle *c, void *state, uint32_t node)
{
	const struct restrictions *s = state;
	for (uint32_t i = 0; s->disks && i < c->nodes->n_pods[node]; i++)
		if (pods_conflict(c->pod, c->nodes->pods[node][i]->pod->val)) {
			c->reason = STR("node(s) had no available disk");
			return UNSCHEDULABLE;
		}
	if (s->users > 0) {
		c->reason = STR("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod");
		return UNSCHEDULABLE;
	}
	return FIT;
}

static bool restrictions_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	(void)c;
	if (event == EV_PVC)
		return !val_exists(old) && pod_names_claim(pod, new, false);
	if (event != EV_POD_DELETE)
		return true;
	if (!str_eq(val_str(old, metadata, namespace), val_str(pod, metadata, namespace)))
		return false;
	if (pods_conflict(pod, old))
		return true;
	VAL_EACH(v, val_get(pod, spec, volumes))
		VAL_EACH(w, val_get(old, spec, volumes))
			if (val_has(*v, persistentVolumeClaim) && val_has(*w, persistentVolumeClaim) &&
			    str_eq(val_str(*v, persistentVolumeClaim, claimName), val_str(*w, persistentVolumeClaim, claimName)))
				return true;
	return false;
}

const struct plugin plugin_volume_restrictions = {
	.name = "VolumeRestrictions",
	.events = EV_POD_DELETE | EV_NODE_ADD | EV_PVC,
	.hint = restrictions_hint,
	.pre_filter = restrictions_pre_filter,
	.filter = restrictions_filter,
	.add_pod = restrictions_add_pod,
	.remove_pod = restrictions_remove_pod,
};
