/*
 * metadata.managedFields: who set which fields, and when. One entry per manager, operation, subresource and (for
 * updates) API version.
 *
 * The entries of an object are decoded into struct managed, worked on, and encoded again, sorted and in canonical
 * form. Everything is pure and lives in the arena.
 */
#ifndef C8S_MACHINERY_MANAGED_FIELDS_H
#define C8S_MACHINERY_MANAGED_FIELDS_H

#include "codec/time.h"
#include "machinery/field_set.h"

enum {
	MANAGED_UPDATERS_MAX = 10,  /* Update entries that are kept apart; older ones are put together */
	MANAGED_ENTRIES_MAX = 1000, /* of one object; more is an error, as the work grows with each */
};

struct manager {
	str id;              /* what tells entries apart, as JSON; made by manager_id */
	str name, api_version, subresource;
	bool applied;        /* operation Apply, else Update */
	bool timed;          /* has a time */
	struct timestamp time;
	struct field_set set;
};

struct managed {
	struct manager *v;   /* sorted by id */
	uint32_t n;
};

/*
 * The id of an entry. The API version does not count for appliers: an applier has one entry, whatever version it
 * applies with.
 */
str manager_id(struct arena *a, str name, bool applied, str api_version, str subresource);

struct manager *managed_find(const struct managed *m, str id);
/* Adds or replaces; the array is copied. An empty set is left out, and takes an older entry with it. */
void managed_put(struct arena *a, struct managed *m, struct manager entry);
/* Drops entries without fields. */
void managed_drop_empty(struct managed *m);
/*
 * Puts the oldest Update entries together as "ancient-changes", one per API version, until no more than max are left
 * or no two of one version are.
 */
void managed_cap(struct arena *a, struct managed *m, uint32_t max);

/* -ERR_BAD_REQUEST with Kubernetes' words for an entry that makes no sense. fieldsV1 may be VAL_RAW or an object. */
int managed_decode(struct arena *a, struct val list, struct managed *ret, struct err *err);
/*
 * The list, or VAL_NONE if there are no entries. by_name: members sorted by name as in custom resources, else in the
 * schema's order.
 */
struct val managed_encode(struct arena *a, const struct managed *m, bool by_name);
/* True for the lists with which a client asks to forget all managers: [] and [{}]. */
bool managed_is_reset(struct val list);

/*
 * What happens to times that are all that a write would change: if the object is the same as before but for times in
 * managedFields, it is given back with the times of before, so that nothing needs to be written. Else it is given
 * back as it is.
 */
struct val managed_keep_times(struct arena *a, struct val before, struct val after);

/*
 * Client-side apply becomes server-side apply: the fields of csa_manager's Update entries of that subresource go to
 * ssa_manager's Apply entry. Returns 1 with the new list, or 0 when there is nothing to do. As csaupgrade of
 * client-go.
 */
int managed_upgrade_csa(struct arena *a, struct val list, str csa_manager, str ssa_manager, str subresource,
			struct val *ret, struct err *err);

/* ---- the scale subresource, which has a type of its own ---- */

/*
 * Where a version of the resource keeps its number of replicas: "spec.replicas". NULL: that version has no scale
 * subresource.
 */
struct scale_path {
	str api_version;
	const char *path;
};

/* The managers of the number of replicas, for a Scale object. */
int managed_to_scale(struct arena *a, struct val list, const struct scale_path *paths, size_t n, struct val *ret,
		     struct err *err);
/*
 * The managers of the resource after those of its Scale object became scale_list. api_version is the one that the
 * resource is written in. Managers that were not there before get no time, as in Kubernetes.
 */
int managed_from_scale(struct arena *a, struct val list, struct val scale_list, str api_version,
		       const struct scale_path *paths, size_t n, struct val *ret, struct err *err);

#endif
