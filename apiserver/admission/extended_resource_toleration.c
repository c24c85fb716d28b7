/* ExtendedResourceToleration: a pod that asks for a device tolerates the taint by which nodes keep that device for such pods. */
#include "apiserver/admission/plugins.h"
#include "base/map.h"
#include "codec/atoms.h"
#include "machinery/resources.h"

/* A device that the pod asks for, and whether it tolerates its taint already, in these words or with a time limit. */
struct device {
	bool same, similar;
};

/* The devices as a sorted map. */
static struct val devices_of(struct arena *a, struct val spec)
{
	static const atom lists[] = { A_containers, A_initContainers };
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(spec, lists[i]))
			VAL_EACH_MEMBER(m, val_get(*c, resources, requests))
				if (resource_is_extended(atom_str(m->key)))
					val_add_member(&b, m->key, m->val);
	return b.n ? val_sorted(a, val_end_object(&b)) : VAL_EMPTY;
}

static struct val toleration_of(struct arena *a, str device)
{
	return OBJECT(a, F(key, val_of_str(device)), F(operator, VAL_LIT("Exists")), F(effect, VAL_LIT("NoSchedule")));
}

/* The device whose taint is tolerated by this; NULL: none. */
static struct device *device_of(const struct map *devices, struct val t)
{
	bool fits = str_eq(val_str(t, operator), STR("Exists")) && str_eq(val_str(t, effect), STR("NoSchedule")) &&
		!val_str(t, value).n;
	return fits ? map_get(devices, val_str(t, key)) : NULL;
}

static int mutate(struct request *q, struct err *err)
{
	CLEANUP(map_done) struct map by_name = MAP_INIT;
	struct arena *a = q->arena;
	(void)err;
	if (!admits(q, STR(""), STR("pods")) || !val_exists(q->object))
		return 0;
	struct val devices = devices_of(a, val_get(q->object, spec)), given = val_get(q->object, spec, tolerations);
	struct val_builder b = val_builder(a);
	struct device *d;
	if (!val_len(devices))
		return 0;
	VAL_EACH_MEMBER(m, devices)
		map_put(&by_name, atom_str(m->key), ARENA_NEW(a, struct device));
	VAL_EACH(t, given)
		if ((d = device_of(&by_name, *t)))
			*(val_has(*t, tolerationSeconds) ? &d->similar : &d->same) = true;
	VAL_EACH(t, given) {
		d = device_of(&by_name, *t);
		val_add_item(&b, d && !d->same ? toleration_of(a, val_str(*t, key)) : *t);
	}
	VAL_EACH_MEMBER(m, devices) {
		d = map_get(&by_name, atom_str(m->key));
		if (!d->same && !d->similar)
			val_add_item(&b, toleration_of(a, atom_str(m->key)));
	}
	q->object = val_with(a, q->object, val_end_list(&b), spec, tolerations);
	return 0;
}

const struct admission_plugin admission_extended_resource_toleration = {
	.name = "ExtendedResourceToleration", .optional = true, .mutate = mutate,
};
