/* VolumeZone: volumes with labels of zone or region are used by nodes with the same ones. */
#include "codec/atoms.h"
#include "scheduler/plugin.h"
#include "scheduler/storage.h"

static const str zone_keys[] = {
	STR_INIT("failure-domain.beta.kubernetes.io/zone"),
	STR_INIT("failure-domain.beta.kubernetes.io/region"),
	STR_INIT("topology.kubernetes.io/zone"),
	STR_INIT("topology.kubernetes.io/region"),
};
enum { ZONE_KEYS = ARRAY_LEN(zone_keys), ZONE_NEWER = 2 }; /* the key that came later stands ZONE_NEWER after the old one */

struct zone_need {                    /* the node's label must be one of these */
	unsigned key;
	size_t n;
	const word *values;           /* 0: a text that no node has */
};

struct zones {
	word keys[ZONE_KEYS];
	size_t n;
	const struct zone_need *needs;
};

/* The zones of a label of a volume: "a__b". None when one of them is empty: the label does not count then. */
static bool zone_values(struct cycle *c, str label, struct zone_need *ret)
{
	word *values = ARENA_ARRAY(c->arena, word, label.n / 2 + 1);
	size_t n = 0;
	for (bool more = true; more;) {
		ptrdiff_t at = str_find(label, STR("__"));
		str one = str_trim(at < 0 ? label : str_head(label, (size_t)at));
		if (!one.n)
			return false;
		values[n++] = word_find(c->nodes, one);
		more = at >= 0;
		label = more ? str_skip(label, (size_t)at + 2) : label;
	}
	ret->n = n;
	ret->values = values;
	return true;
}

static enum verdict refuse(struct cycle *c, str reason)
{
	c->reason = reason;
	return UNRESOLVABLE;
}

/* The volume of a claim: VAL_NONE when it is bound later. */
static enum verdict claim_volume(struct cycle *c, str name, struct val *ret)
{
	*ret = VAL_EMPTY;
	if (!name.n)
		return refuse(c, STR("PersistentVolumeClaim had no name"));
	struct val claim = storage_claim(c->storage, val_str(c->pod, metadata, namespace), name);
	if (!val_exists(claim))
		return refuse(c, arena_printf(c->arena, "persistentvolumeclaim \"" STR_FMT "\" not found", STR_ARG(name)));
	str volume = val_str(claim, spec, volumeName), class_name = claim_class(claim);
	if (volume.n) {
		*ret = storage_get(c->storage, STORAGE_VOLUME, volume);
		return val_exists(*ret) ? FIT :
			refuse(c, arena_printf(c->arena, "persistentvolume \"" STR_FMT "\" not found", STR_ARG(volume)));
	}
	if (!class_name.n)
		return refuse(c, STR("PersistentVolumeClaim had no pv name and storageClass name"));
	struct val class = storage_get(c->storage, STORAGE_CLASS, class_name);
	if (!val_exists(class))
		return refuse(c, arena_printf(c->arena, "storageclass.storage.k8s.io \"" STR_FMT "\" not found", STR_ARG(class_name)));
	str mode = val_str(class, volumeBindingMode);
	if (!mode.n)
		return refuse(c, arena_printf(c->arena, "VolumeBindingMode not set for StorageClass \"" STR_FMT "\"", STR_ARG(class_name)));
	return str_eq(mode, STR("WaitForFirstConsumer")) ? FIT : refuse(c, STR("PersistentVolume had no name"));
}

static enum verdict zone_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	struct zones *s = ARENA_NEW(c->arena, struct zones);
	struct val volumes = val_get(c->pod, spec, volumes);
	struct zone_need *needs = ARENA_ARRAY(c->arena, struct zone_need, (size_t)val_len(volumes) * ZONE_KEYS + 1);
	VAL_EACH(v, volumes) {
		if (!val_has(*v, persistentVolumeClaim))
			continue;
		struct val volume;
		enum verdict r = claim_volume(c, val_str(*v, persistentVolumeClaim, claimName), &volume);
		if (r != FIT)
			return r;
		for (unsigned k = 0; k < ZONE_KEYS; k++) {
			struct val label = val_find(val_get(volume, metadata, labels), zone_keys[k]);
			if (val_exists(label) && zone_values(c, val_as_str(label), &needs[s->n]))
				needs[s->n++].key = k;
		}
	}
	for (unsigned k = 0; k < ZONE_KEYS; k++)
		s->keys[k] = word_find(c->nodes, zone_keys[k]);
	s->needs = needs;
	*ret_state = s;
	*ret_skip = s->n == 0;
	return FIT;
}

static enum verdict zone_filter(struct cycle *c, void *state, uint32_t node)
{
	const struct zones *s = state;
	word at[ZONE_KEYS];
	bool any = false;
	for (unsigned k = 0; k < ZONE_KEYS; k++) {
		at[k] = s->keys[k] ? nodes_label(c->nodes, node, s->keys[k]) : 0;
		any |= at[k] != 0;
	}
	if (!any) /* a cluster of one zone need not say so */
		return FIT;
	for (size_t i = 0; i < s->n; i++) {
		const struct zone_need *need = &s->needs[i];
		word have = at[need->key];
		if (!have && need->key < ZONE_NEWER)
			have = at[need->key + ZONE_NEWER];
		bool ok = false;
		for (size_t j = 0; have && j < need->n; j++)
			ok |= need->values[j] == have;
		if (!ok)
			return refuse(c, STR("node(s) had no available volume zone"));
	}
	return FIT;
}

static bool zone_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	(void)c;
	if (event == EV_STORAGE_CLASS)
		return !val_exists(old) && str_eq(val_str(new, volumeBindingMode), STR("WaitForFirstConsumer"));
	if (event == EV_PVC)
		return pod_names_claim(pod, new, false);
	if (event != EV_PV || !val_exists(old))
		return true;
	for (unsigned k = 0; k < ZONE_KEYS; k++)
		if (!str_eq(val_as_str(val_find(val_get(old, metadata, labels), zone_keys[k])),
			    val_as_str(val_find(val_get(new, metadata, labels), zone_keys[k]))))
			return true;
	return false;
}

const struct plugin plugin_volume_zone = {
	.name = "VolumeZone",
	.events = EV_NODE_ADD | EV_NODE_LABEL | EV_PVC | EV_PV | EV_STORAGE_CLASS,
	.hint = zone_hint,
	.pre_filter = zone_pre_filter,
	.filter = zone_filter,
};
