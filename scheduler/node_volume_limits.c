/*
 * NodeVolumeLimits: how many volumes of a CSI driver a node can attach (CSINode). A volume counts once per node however many pods use it; one
 * that is attached without a pod counts too, and so does a claim that still waits for its volume, by its class's provisioner.
 */
#include <stdlib.h>

#include "codec/atoms.h"
#include "scheduler/plugin.h"
#include "scheduler/storage.h"

struct disk {
	uint64_t hash;
	str driver;
	str handle;                   /* of a volume; or the namespace of a claim without one, */
	str claim;                    /* and its name */
};

struct disks {
	struct disk *all;
	size_t n, cap;
};

struct limits {
	struct disks wanted;          /* the pod's, each once */
	struct disks attached;        /* room for those of a node */
	enum verdict verdict;         /* of a pod whose claims cannot be found */
	str reason;
};

static int disk_compare(const void *x, const void *y)
{
	const struct disk *a = x, *b = y;
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	int r = str_cmp(a->driver, b->driver);
	r = r ? r : str_cmp(a->handle, b->handle);
	return r ? r : str_cmp(a->claim, b->claim);
}

static void disks_add(struct arena *a, struct disks *d, str driver, str handle, str claim)
{
	if (!driver.n || (!handle.n && !claim.n))
		return;
	if (d->n == d->cap) {
		size_t cap = d->cap ? 2 * d->cap : 16;
		struct disk *more = ARENA_ARRAY(a, struct disk, cap);
		if (d->n)
			memcpy(more, d->all, d->n * sizeof(*more));
		d->all = more;
		d->cap = cap;
	}
	uint64_t hash = str_hash(driver) * 31 + str_hash(handle) * 7 + str_hash(claim);
	d->all[d->n++] = (struct disk){ hash, driver, handle, claim };
}

static void disks_unique(struct disks *d)
{
	size_t n = 0;
	if (d->n)
		qsort(d->all, d->n, sizeof(*d->all), disk_compare);
	for (size_t i = 0; i < d->n; i++)
		if (!n || disk_compare(&d->all[n - 1], &d->all[i]) != 0)
			d->all[n++] = d->all[i];
	d->n = n;
}

static bool disks_have(const struct disks *d, const struct disk *x)
{
	return d->n && bsearch(x, d->all, d->n, sizeof(*d->all), disk_compare);
}

static void disks_add_claim(struct cycle *c, struct disks *d, struct val claim)
{
	str name = val_str(claim, spec, volumeName);
	struct val volume = name.n ? storage_get(c->storage, STORAGE_VOLUME, name) : VAL_EMPTY;
	if (val_exists(volume)) {
		struct val csi = val_get(volume, spec, csi);
		disks_add(c->arena, d, val_str(csi, driver), val_str(csi, volumeHandle), STR_NONE);
		return;
	}
	str class_name = claim_class(claim);
	struct val class = class_name.n ? storage_get(c->storage, STORAGE_CLASS, class_name) : VAL_EMPTY;
	disks_add(c->arena, d, val_str(class, provisioner), val_str(claim, metadata, namespace), val_str(claim, metadata, name));
}

/* new: the pod that is being placed; its claims must exist. */
static enum verdict disks_add_pod(struct cycle *c, struct disks *d, struct val pod, bool new)
{
	str namespace = val_str(pod, metadata, namespace), name;
	bool ephemeral;
	VAL_EACH(v, val_get(pod, spec, volumes)) {
		if (!pod_volume_claim(c->arena, pod, *v, &name, &ephemeral))
			continue;
		if (!name.n) {
			c->reason = STR("PersistentVolumeClaim had no name");
			return FAILED;
		}
		struct val claim = storage_claim(c->storage, namespace, name);
		if (!val_exists(claim) && new) {
			c->reason = arena_printf(c->arena, "looking up PVC " STR_FMT "/" STR_FMT ": persistentvolumeclaim \"" STR_FMT "\" not found",
						 STR_ARG(namespace), STR_ARG(name), STR_ARG(name));
			return UNRESOLVABLE;
		}
		if (!val_exists(claim))
			continue;
		if (ephemeral && !claim_is_for_pod(c->arena, claim, pod, &c->reason))
			return FAILED;
		disks_add_claim(c, d, claim);
	}
	return FIT;
}

static enum verdict limits_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	bool any = false;
	VAL_EACH(v, val_get(c->pod, spec, volumes))
		any |= val_has(*v, persistentVolumeClaim) || val_has(*v, ephemeral);
	*ret_skip = !any;
	if (!any)
		return FIT;
	struct limits *s = ARENA_NEW(c->arena, struct limits);
	s->verdict = disks_add_pod(c, &s->wanted, c->pod, true);
	s->reason = c->reason;
	disks_unique(&s->wanted);
	*ret_state = s;
	return FIT; /* as in Kubernetes it is the filter that refuses */
}

/* -1: no limit. */
static int64_t driver_limit(struct val csi_node, str driver)
{
	VAL_EACH(d, val_get(csi_node, spec, drivers))
		if (str_eq(val_str(*d, name), driver))
			return val_has(*d, allocatable, count) ? val_int(*d, allocatable, count) : -1;
	return -1;
}

static bool any_limit(const struct limits *s, struct val csi_node)
{
	for (size_t i = 0; i < s->wanted.n; i++)
		if (driver_limit(csi_node, s->wanted.all[i].driver) >= 0)
			return true;
	return false;
}

/* Attachments to the node that no pod there accounts for are added behind the pods' disks, which are n. */
static void disks_add_attachments(struct cycle *c, struct disks *d, str node)
{
	struct disks pods = *d;
	COPIES_EACH(x, &c->storage->kinds[STORAGE_ATTACHMENT], node) {
		struct val attachment = copy_val(x);
		str attacher = val_str(attachment, spec, attacher), name = val_str(attachment, spec, source, persistentVolumeName);
		struct val csi = name.n ? val_get(storage_get(c->storage, STORAGE_VOLUME, name), spec, csi) : VAL_EMPTY;
		if (!attacher.n || !val_exists(csi))
			continue;
		size_t n = d->n;
		disks_add(c->arena, d, attacher, val_str(csi, volumeHandle), STR_NONE);
		if (d->n > n && disks_have(&pods, &d->all[n]))
			d->n = n;
	}
}

static int64_t disks_count(const struct disks *d, str driver)
{
	int64_t n = 0;
	for (size_t i = 0; i < d->n; i++)
		n += str_eq(d->all[i].driver, driver);
	return n;
}

static enum verdict limits_filter(struct cycle *c, void *state, uint32_t node)
{
	struct limits *s = state;
	if (s->verdict != FIT) {
		c->reason = s->reason;
		return s->verdict;
	}
	str name = word_str(c->nodes, c->nodes->name[node]);
	struct val csi_node = storage_get(c->storage, STORAGE_CSI_NODE, name);
	if (!any_limit(s, csi_node))
		return FIT;

	struct disks *d = &s->attached;
	d->n = 0;
	for (uint32_t i = 0; i < c->nodes->n_pods[node]; i++)
		if (disks_add_pod(c, d, c->nodes->pods[node][i]->pod->val, false) != FIT)
			return FAILED;
	disks_unique(d);
	struct disks pods = *d;
	disks_add_attachments(c, d, name);

	for (size_t i = 0; i < s->wanted.n; i++) {
		str driver = s->wanted.all[i].driver;
		int64_t limit = driver_limit(csi_node, driver), more = 0;
		for (size_t j = 0; limit >= 0 && j < s->wanted.n; j++)
			more += str_eq(s->wanted.all[j].driver, driver) && !disks_have(&pods, &s->wanted.all[j]);
		if (limit >= 0 && more && disks_count(d, driver) + more > limit) {
			c->reason = STR("node(s) exceed max volume count");
			return UNSCHEDULABLE;
		}
	}
	return FIT;
}

static bool pod_has_claims(struct val pod)
{
	VAL_EACH(v, val_get(pod, spec, volumes))
		if (val_has(*v, persistentVolumeClaim) || val_has(*v, ephemeral))
			return true;
	return false;
}

static bool limits_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	(void)c;
	if (event == EV_PVC)
		return !val_exists(old) && pod_names_claim(pod, new, true);
	if (event == EV_POD_DELETE)
		return (val_str(old, spec, nodeName).n || val_str(old, status, nominatedNodeName).n) && pod_has_claims(old);
	if (event != EV_CSI_NODE || !val_exists(old))
		return true; /* among them attachments that have gone, which share the event */
	VAL_EACH(d, val_get(new, spec, drivers))
		if (val_int(*d, allocatable, count) > MAX(driver_limit(old, val_str(*d, name)), INT64_C(0)))
			return true;
	return false;
}

const struct plugin plugin_node_volume_limits = {
	.name = "NodeVolumeLimits",
	.events = EV_CSI_NODE | EV_POD_DELETE | EV_PVC,
	.hint = limits_hint,
	.pre_filter = limits_pre_filter,
	.filter = limits_filter,
};
