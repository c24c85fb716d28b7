/*
 * What is done to the managers of an object other than by writing it: times that need no write, the move from
 * client-side to server-side apply, and the two views that a resource and its scale subresource have of who sets the
 * number of replicas.
 */
#include "codec/atoms.h"
#include "machinery/managed_fields.h"

/* ---- times ---- */

struct val managed_keep_times(struct arena *a, struct val before, struct val after)
{
	struct val old = val_get(before, metadata, managedFields), new = val_get(after, metadata, managedFields);
	bool changed = false;

	if (old.type != VAL_LIST || new.type != VAL_LIST || old.n != new.n)
		return after;
	for (uint32_t i = 0; i < new.n; i++) {
		changed |= !val_equal(val_get(old.items[i], time), val_get(new.items[i], time));
		if (!val_equal(val_without(a, old.items[i], time), val_without(a, new.items[i], time)))
			return after;
	}
	if (!changed || !val_equal(val_without(a, before, metadata, managedFields),
				   val_without(a, after, metadata, managedFields)))
		return after;
	return val_with(a, after, old, metadata, managedFields);
}

/* ---- from client-side to server-side apply ---- */

static bool entry_is(struct val entry, str manager, str operation, str subresource)
{
	return str_eq(val_str(entry, manager), manager) && str_eq(val_str(entry, operation), operation) &&
	       str_eq(val_str(entry, subresource), subresource);
}

/* Position of the first such entry (of that API version, if one is given), or -1. */
static ptrdiff_t entry_find(struct val list, str manager, str operation, str subresource, str api_version)
{
	for (uint32_t i = 0; i < val_len(list); i++)
		if (entry_is(list.items[i], manager, operation, subresource) &&
		    (!api_version.n || str_eq(val_str(list.items[i], apiVersion), api_version)))
			return (ptrdiff_t)i;
	return -1;
}

static int entry_fields(struct arena *a, struct val entry, struct field_set *ret, struct err *err)
{
	struct managed m;
	struct val full = val_with(a, entry, VAL_LIT("FieldsV1"), fieldsType);
	int r = managed_decode(a, val_list(a, &full, 1), &m, err);
	if (r < 0)
		return err_wrap(err, r, "failed to convert fields to set");
	*ret = m.v[0].set;
	return 0;
}

int managed_upgrade_csa(struct arena *a, struct val list, str csa_manager, str ssa_manager, str subresource,
			struct val *ret, struct err *err)
{
	const str apply = STR("Apply"), update = STR("Update");
	ptrdiff_t target = entry_find(list, ssa_manager, apply, subresource, STR_NONE);
	ptrdiff_t csa = entry_find(list, csa_manager, update, subresource, STR_NONE);

	if (csa < 0)
		return 0;
	struct val entry = val_at(list, (size_t)(target < 0 ? csa : target));
	if (target < 0) {
		target = csa;
		entry = val_with(a, val_with(a, entry, VAL_STR(apply), operation), VAL_STR(ssa_manager), manager);
	}
	/* Update entries of other versions have paths that may mean something else: they are dropped. */
	struct field_set fields, more = FIELD_SET_EMPTY;
	ptrdiff_t same = entry_find(list, csa_manager, update, subresource, val_str(entry, apiVersion));
	int r = entry_fields(a, entry, &fields, err);
	if (r == 0 && same >= 0 && same != target)
		r = entry_fields(a, val_at(list, (size_t)same), &more, err);
	if (r < 0)
		return r;
	entry = val_with(a, entry, field_set_val(a, field_set_union(a, fields, more)), fieldsV1);

	struct val_builder b = val_builder(a);
	for (uint32_t i = 0; i < list.n; i++) {
		if ((ptrdiff_t)i == target)
			val_add_item(&b, entry);
		else if (!entry_is(list.items[i], csa_manager, update, subresource))
			val_add_item(&b, list.items[i]);
	}
	*ret = val_end_list(&b);
	return 1;
}

/* ---- scale ---- */

static const char *const scale_replicas[] = { "spec.replicas", NULL };
static const str scale_version = STR_INIT("autoscaling/v1");

static const struct scale_path *scale_find(const struct scale_path *paths, size_t n, str api_version)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(paths[i].api_version, api_version))
			return &paths[i];
	return NULL;
}

static struct field_set scale_set(struct arena *a, const struct scale_path *path)
{
	return path && path->path ? field_set_of(a, (const char *const[]){ path->path, NULL }) : FIELD_SET_EMPTY;
}

static bool owns(struct arena *a, struct field_set s, struct field_set path)
{
	return !field_set_empty(path) && !field_set_empty(field_set_intersection(a, s, path));
}

int managed_to_scale(struct arena *a, struct val list, const struct scale_path *paths, size_t n, struct val *ret,
		     struct err *err)
{
	struct managed m;
	uint32_t kept = 0;
	int r = managed_decode(a, list, &m, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < m.n; i++) {
		if (!owns(a, m.v[i].set, scale_set(a, scale_find(paths, n, m.v[i].api_version))))
			continue;
		m.v[kept] = m.v[i];
		m.v[kept].api_version = scale_version;
		m.v[kept++].set = field_set_of(a, scale_replicas);
	}
	m.n = kept;
	*ret = managed_encode(a, &m, false);
	return 0;
}

/*
 * The ids of updaters hold the version of their entry, which in the list of a Scale is that of Scale: so an updater
 * that is in both lists is not recognised, and its number of replicas moves to an entry of its own. Kubernetes does
 * the same.
 */
int managed_from_scale(struct arena *a, struct val list, struct val scale_list, str api_version,
		       const struct scale_path *paths, size_t n, struct val *ret, struct err *err)
{
	struct managed m, scale;
	struct field_set replicas = field_set_of(a, scale_replicas);
	int r = managed_decode(a, list, &m, err);
	if (r == 0)
		r = managed_decode(a, scale_list, &scale, err);
	if (r < 0)
		return r;
	struct managed result = { ARENA_ARRAY(a, struct manager, m.n), 0 };
	for (uint32_t i = 0; i < m.n; i++) {
		struct manager *entry = &m.v[i], *still = managed_find(&scale, entry->id);
		const struct scale_path *path = scale_find(paths, n, entry->api_version);
		struct field_set set = scale_set(a, path);
		if (!path)
			continue;
		result.v[result.n] = *entry;
		if (owns(a, entry->set, set) && !still)
			result.v[result.n].set = field_set_difference(a, entry->set, set);
		else if (owns(a, entry->set, set))
			still->set = FIELD_SET_EMPTY;
		result.n++;
	}
	managed_drop_empty(&result);
	for (uint32_t i = 0; i < scale.n; i++) {
		struct manager entry = scale.v[i];
		if (!owns(a, entry.set, replicas))
			continue;
		const struct manager *before = managed_find(&m, entry.id);
		entry.timed = before && before->timed;
		entry.time = before ? before->time : entry.time;
		entry.api_version = api_version;
		entry.set = scale_set(a, scale_find(paths, n, api_version));
		managed_put(a, &result, entry);
	}
	*ret = managed_encode(a, &result, false);
	return 0;
}
