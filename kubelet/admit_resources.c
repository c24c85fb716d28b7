/* Resources on a node: what pods ask for, and whether one more fits, as the scheduler's NodeResourcesFit decides. */
#include "codec/atoms.h"
#include "kubelet/admit_priv.h"
#include "machinery/resources.h"

static struct val quantity_val(struct arena *a, struct quantity q)
{
	char text[QUANTITY_TEXT_MAX];
	return val_of_str(arena_str(a, quantity_format(q, text)));
}

struct val admit_requests(struct arena *a, struct val spec)
{
	struct val map = pod_container_resources(a, spec, A_requests);

	VAL_EACH_MEMBER(m, val_get(spec, resources, requests))
		if (resource_is_pod_level(atom_str(m->key)))
			map = val_put(a, map, m->key, m->val);
	VAL_EACH_MEMBER(m, val_get(spec, overhead))
		map = val_put(a, map, m->key, quantity_val(a, quantity_add(quantity_of(val_member(map, m->key)), quantity_of(m->val))));
	return val_sorted(a, map);
}

int64_t admit_amount(struct val requests, str name)
{
	struct quantity q = quantity_of(val_find(requests, name));
	return str_eq(name, STR("cpu")) ? quantity_milli(q) : quantity_value(q);
}

bool admit_counts(const struct admit_input *in, struct val other)
{
	str phase = val_str(other, status, phase);

	return !str_eq(val_str(other, metadata, uid), val_str(in->pod, metadata, uid)) && !str_eq(phase, STR("Succeeded")) &&
	       !str_eq(phase, STR("Failed"));
}

struct fit {
	struct arena *arena;
	struct val wanted, allocatable;
	struct val *others;           /* what each of them asks for */
	size_t n_others;
	struct shortages short_of;
};

static void look_at(struct fit *f, str name)
{
	int64_t wanted = admit_amount(f->wanted, name), capacity = admit_amount(f->allocatable, name), used = 0;

	for (size_t i = 0; i < f->n_others; i++)
		if (__builtin_add_overflow(used, admit_amount(f->others[i], name), &used))
			used = INT64_MAX;
	if (wanted > 0 && wanted > capacity - used)
		f->short_of.all[f->short_of.n++] = (struct shortage){ name, wanted, used, capacity };
}

/* Devices that this node has never had are somebody else's business. */
static bool is_foreign(const struct fit *f, str name)
{
	return resource_is_extended(name) && !val_exists(val_find(f->allocatable, name));
}

struct shortages admit_shortages(struct arena *a, const struct admit_input *in)
{
	static const str first[] = { STR_INIT("cpu"), STR_INIT("memory"), STR_INIT("ephemeral-storage") };
	struct fit f = { .arena = a, .wanted = admit_requests(a, val_get(in->pod, spec)),
			 .allocatable = val_get(in->node, status, allocatable) };
	int64_t pods = quantity_value(quantity_of(val_get(f.allocatable, pods)));

	f.others = ARENA_ARRAY(a, struct val, val_len(in->others));
	VAL_EACH(other, in->others)
		if (admit_counts(in, *other))
			f.others[f.n_others++] = admit_requests(a, val_get(*other, spec));
	f.short_of.all = ARENA_ARRAY(a, struct shortage, val_len(f.wanted) + 1);
	if ((int64_t)f.n_others + 1 > pods)
		f.short_of.all[f.short_of.n++] = (struct shortage){ STR("pods"), 1, (int64_t)f.n_others, pods };
	for (size_t i = 0; i < ARRAY_LEN(first); i++)
		look_at(&f, first[i]);
	VAL_EACH_MEMBER(m, f.wanted) {
		str name = atom_str(m->key);
		bool known = str_eq(name, first[0]) || str_eq(name, first[1]) || str_eq(name, first[2]);
		if (!known && !is_foreign(&f, name))
			look_at(&f, name);
	}
	return f.short_of;
}
