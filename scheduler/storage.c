#include "scheduler/storage.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"

struct claim_users {
	unsigned n;
	str key;                      /* in the block */
};

static str capacity_class(struct val capacity) { return val_str(capacity, storageClassName); }
static str attachment_node(struct val attachment) { return val_str(attachment, spec, nodeName); }

static const struct {
	const struct type *type;
	copies_group *group;
} kinds[STORAGE_KINDS] = {
	[STORAGE_CLAIM] = { TYPE(core_v1, PersistentVolumeClaim), NULL },
	[STORAGE_VOLUME] = { TYPE(core_v1, PersistentVolume), volume_class },
	[STORAGE_CLASS] = { TYPE(storage_v1, StorageClass), NULL },
	[STORAGE_CSI_NODE] = { TYPE(storage_v1, CSINode), NULL },
	[STORAGE_CSI_DRIVER] = { TYPE(storage_v1, CSIDriver), NULL },
	[STORAGE_CAPACITY] = { TYPE(storage_v1, CSIStorageCapacity), capacity_class },
	[STORAGE_ATTACHMENT] = { TYPE(storage_v1, VolumeAttachment), attachment_node },
};

struct storage *storage_new(struct client *client, struct informers *informers)
{
	struct storage *s = mem_zalloc(sizeof(*s));
	s->client = client;
	fiber_cond_init(&s->changed, "claims to be bound");
	map_init(&s->claim_users);
	for (unsigned k = 0; k < STORAGE_KINDS; k++) {
		copies_init(&s->kinds[k], kinds[k].group, k == STORAGE_CLAIM || k == STORAGE_VOLUME ? &s->changed : NULL);
		if (informers)
			copies_follow(&s->kinds[k], informers_get(informers, kinds[k].type, &(struct informer_options){ 0 }));
	}
	return s;
}

void storage_free(struct storage *s)
{
	if (!s)
		return;
	for (unsigned k = 0; k < STORAGE_KINDS; k++)
		copies_done(&s->kinds[k]);
	struct map_iter it = map_iter(&s->claim_users);
	for (struct claim_users *u; (u = map_next(&it, NULL));)
		free(u);
	map_done(&s->claim_users);
	free(s);
}

void storage_hold(struct storage *s, const bool *busy)
{
	for (unsigned k = 0; k < STORAGE_KINDS; k++)
		s->kinds[k].hold = busy;
}

/* Ephemeral volumes are left out: nobody else can use their claims. */
static void storage_count(struct storage *s, struct val pod, bool more)
{
	char room[COPY_KEY_MAX];
	VAL_EACH(v, val_get(pod, spec, volumes)) {
		if (!val_has(*v, persistentVolumeClaim))
			continue;
		str key = copy_key(room, val_str(pod, metadata, namespace), val_str(*v, persistentVolumeClaim, claimName));
		struct claim_users *u = map_get(&s->claim_users, key);
		if (more && !u) {
			u = mem_zalloc(sizeof(*u) + key.n);
			memcpy((char *)(u + 1), key.p, key.n);
			u->key = str_span((char *)(u + 1), key.n);
			map_put(&s->claim_users, u->key, u);
		}
		if (more) {
			u->n++;
		} else if (u && --u->n == 0) {
			map_remove(&s->claim_users, u->key);
			free(u);
		}
	}
}

void storage_pod_placed(struct storage *s, struct val pod)
{
	storage_count(s, pod, true);
}

void storage_pod_gone(struct storage *s, struct val pod)
{
	storage_count(s, pod, false);
}

bool storage_claim_used(const struct storage *s, str namespace, str name)
{
	char room[COPY_KEY_MAX];
	return map_get(&s->claim_users, copy_key(room, namespace, name)) != NULL;
}

struct val storage_claim(const struct storage *s, str namespace, str name)
{
	char room[COPY_KEY_MAX];
	return copies_val(&s->kinds[STORAGE_CLAIM], copy_key(room, namespace, name));
}

struct val storage_get(const struct storage *s, enum storage_kind kind, str key)
{
	return copies_val(&s->kinds[kind], key);
}

bool pod_volume_claim(struct arena *a, struct val pod, struct val volume, str *ret_name, bool *ret_ephemeral)
{
	*ret_ephemeral = false;
	if (val_has(volume, persistentVolumeClaim)) {
		*ret_name = val_str(volume, persistentVolumeClaim, claimName);
		return true;
	}
	if (!val_has(volume, ephemeral))
		return false;
	*ret_ephemeral = true;
	*ret_name = arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(val_str(pod, metadata, name)), STR_ARG(val_str(volume, name)));
	return true;
}

/* "<pod>-<volume>" without making it. */
static bool is_ephemeral_name(str name, str pod, str volume)
{
	return name.n == pod.n + 1 + volume.n && str_starts(name, pod) && name.p[pod.n] == '-' && str_ends(name, volume);
}

bool pod_names_claim(struct val pod, struct val claim, bool ephemeral)
{
	str name = val_str(claim, metadata, name);
	if (!str_eq(val_str(pod, metadata, namespace), val_str(claim, metadata, namespace)))
		return false;
	VAL_EACH(v, val_get(pod, spec, volumes)) {
		if (val_has(*v, persistentVolumeClaim) && str_eq(val_str(*v, persistentVolumeClaim, claimName), name))
			return true;
		if (ephemeral && val_has(*v, ephemeral) && is_ephemeral_name(name, val_str(pod, metadata, name), val_str(*v, name)))
			return true;
	}
	return false;
}

bool claim_is_for_pod(struct arena *a, struct val claim, struct val pod, str *ret_why)
{
	VAL_EACH(o, val_get(claim, metadata, ownerReferences))
		if (val_bool(*o, controller) && str_eq(val_str(*o, uid), val_str(pod, metadata, uid)))
			return true;
	*ret_why = arena_printf(a, "PVC " STR_FMT "/" STR_FMT " was not created for pod " STR_FMT "/" STR_FMT " (pod is not owner)",
				STR_ARG(val_str(claim, metadata, namespace)), STR_ARG(val_str(claim, metadata, name)),
				STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(val_str(pod, metadata, name)));
	return false;
}

static str class_of(struct val object)
{
	struct val old = val_find(val_get(object, metadata, annotations), STR("volume.beta.kubernetes.io/storage-class"));
	return val_exists(old) ? val_as_str(old) : val_str(object, spec, storageClassName);
}

str claim_class(struct val claim)
{
	return class_of(claim);
}

str volume_class(struct val volume)
{
	return class_of(volume);
}

bool claim_is_bound(struct val claim)
{
	return val_str(claim, spec, volumeName).n &&
	       val_exists(val_find(val_get(claim, metadata, annotations), STR("pv.kubernetes.io/bind-completed")));
}
