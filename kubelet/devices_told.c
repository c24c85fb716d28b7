/* What containers and their statuses show of the devices that they have, by what plugins have said. */
#include "codec/types.h"
#include "kubelet/devices_priv.h"

/* The lists that are being put together. Of two with the same key the first counts. */
struct told {
	struct arena *arena;
	struct val_builder devices, cdi, env, annotations, mounts;
	struct map device_paths, cdi_names, env_names, annotation_names, mount_paths;
};

static bool is_first(struct map *seen, str key, const void *value) { return !map_get(seen, key) && !map_put(seen, key, (void *)value); }

static void tell(struct told *t, struct val response)
{
	struct arena *a = t->arena;

	VAL_EACH_MEMBER(m, val_get(response, envs))
		if (is_first(&t->env_names, atom_str(m->key), m))
			val_add_item(&t->env, OBJECT(a, F(key, VAL_STR(atom_str(m->key))), F(value, m->val)));
	VAL_EACH(x, val_get(response, devices))
		if (is_first(&t->device_paths, val_str(*x, containerPath), x))
			val_add_item(&t->devices, *x);
	VAL_EACH(x, val_get(response, mounts))
		if (is_first(&t->mount_paths, val_str(*x, containerPath), x))
			val_add_item(&t->mounts, *x);
	VAL_EACH_MEMBER(m, val_get(response, annotations))
		if (is_first(&t->annotation_names, atom_str(m->key), m))
			val_add_member(&t->annotations, m->key, m->val);
	VAL_EACH(x, val_get(response, cdiDevices))
		if (is_first(&t->cdi_names, val_str(*x, name), x))
			val_add_item(&t->cdi, *x);
}

static struct val unless_empty(struct val v) { return val_len(v) ? v : VAL_EMPTY; }

static struct cri_mount *mounts_make(struct arena *a, struct val mounts, size_t *ret_n)
{
	struct cri_mount *all = ARENA_ARRAY(a, struct cri_mount, val_len(mounts));
	size_t n = 0;

	VAL_EACH(m, mounts)
		all[n++] = (struct cri_mount){ .container_path = val_str(*m, containerPath), .host_path = val_str(*m, hostPath),
					       .readonly = val_bool(*m, readOnly), .propagation = STR("PROPAGATION_PRIVATE") };
	*ret_n = n;
	return all;
}

void devices_tell(struct devices *d, struct arena *a, struct cri_container_input *in, struct cri_mount **ret_mounts, size_t *ret_n)
{
	struct told t = { a, val_builder(a), val_builder(a), val_builder(a), val_builder(a), val_builder(a),
			  MAP_INIT, MAP_INIT, MAP_INIT, MAP_INIT, MAP_INIT };
	str uid = val_str(in->pod, metadata, uid), container = val_str(in->container, name);
	struct map *maps[] = { &t.device_paths, &t.cdi_names, &t.env_names, &t.annotation_names, &t.mount_paths };

	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		map_init(maps[i]);
	LIST_EACH(struct allocation, x, &d->allocations, link)
		if (str_eq(x->pod, uid) && str_eq(x->container, container))
			tell(&t, val_copy(a, x->response));
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		map_done(maps[i]);
	in->devices = unless_empty(val_end_list(&t.devices));
	in->cdi_devices = unless_empty(val_end_list(&t.cdi));
	in->extra_env = unless_empty(val_end_list(&t.env));
	in->extra_annotations = unless_empty(val_sorted(a, val_end_object(&t.annotations)));
	*ret_mounts = mounts_make(a, val_end_list(&t.mounts), ret_n);
}

/* As last told; of a device that no plugin tells of any more the best is assumed, as Kubernetes does. */
static struct val health_of(const struct devices *d, str resource, str id)
{
	const struct offer *r = offer_find(d, resource);
	const struct val *device = r ? map_get(&r->ids, id) : NULL;

	return !device || str_eq(val_str(*device, health), STR("Healthy")) ? VAL_LIT("Healthy") : VAL_LIT("Unhealthy");
}

struct val devices_status(struct devices *d, struct arena *a, str pod_uid, str container)
{
	struct val_builder list = val_builder(a);

	LIST_EACH(struct allocation, x, &d->allocations, link) {
		struct val_builder resources = val_builder(a);
		if (!str_eq(x->pod, pod_uid) || !str_eq(x->container, container) || !val_exists(x->response))
			continue;
		VAL_EACH(id, allocation_id_list(a, x))
			val_add_item(&resources, OBJECT(a, F(resourceID, *id), F(health, health_of(d, x->resource, val_as_str(*id)))));
		val_add_item(&list, OBJECT(a, F(name, VAL_STR(arena_str(a, x->resource))), F(resources, val_end_list(&resources))));
	}
	return unless_empty(val_end_list(&list));
}
