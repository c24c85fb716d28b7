#include "controllers/stateful_set_claims.h"

#include "codec/atoms.h"
#include "controllers/labels.h"
#include "controllers/owner.h"

/* ---- names ---- */

int64_t stateful_ordinal(struct val pod, str *ret_parent)
{
	str name = val_str(pod, metadata, name);
	size_t at = name.n;
	int64_t ordinal;

	while (at > 0 && name.p[at - 1] >= '0' && name.p[at - 1] <= '9')
		at--;
	if (at == 0 || at == name.n || name.p[at - 1] != '-' || !str_to_i64(str_skip(name, at), &ordinal) || ordinal > INT32_MAX)
		return -1;
	if (ret_parent)
		*ret_parent = str_span(name.p, at - 1);
	return ordinal;
}

bool stateful_in_range(struct val set, struct val pod)
{
	int64_t ordinal = stateful_ordinal(pod, NULL), start = val_int(set, spec, ordinals, start);
	return ordinal >= start && ordinal < start + val_int(set, spec, replicas);
}

str stateful_claim_name(struct arena *a, struct val set, struct val template, int64_t ordinal)
{
	return arena_printf(a, STR_FMT "-" STR_FMT "-%lld", STR_ARG(val_str(template, metadata, name)), STR_ARG(val_str(set, metadata, name)),
			    (long long)ordinal);
}

struct val stateful_claim(struct arena *a, struct val set, struct val template, int64_t ordinal)
{
	struct val labels = val_get(template, metadata, labels), claim = template;

	VAL_EACH_MEMBER(m, val_get(set, spec, selector, matchLabels))
		labels = labels_put(a, labels, atom_str(m->key), m->val);
	claim = val_with(a, claim, VAL_STR(stateful_claim_name(a, set, template, ordinal)), metadata, name);
	claim = val_with(a, claim, val_get(set, metadata, namespace), metadata, namespace);
	return val_with(a, claim, labels, metadata, labels);
}

/* ---- volumes ---- */

static struct val find_by_name(struct val list, str name)
{
	VAL_EACH(v, list)
		if (str_eq(val_str(*v, name), name))
			return *v;
	return VAL_EMPTY;
}

static bool has_template(struct val set, str name)
{
	VAL_EACH(t, val_get(set, spec, volumeClaimTemplates))
		if (str_eq(val_str(*t, metadata, name), name))
			return true;
	return false;
}

struct val stateful_with_volumes(struct arena *a, struct val set, struct val pod)
{
	struct val_builder b = val_builder(a);
	int64_t ordinal = stateful_ordinal(pod, NULL);

	VAL_EACH(t, val_get(set, spec, volumeClaimTemplates)) {
		struct val source = OBJECT(a, F(claimName, VAL_STR(stateful_claim_name(a, set, *t, ordinal))));
		val_add_item(&b, OBJECT(a, F(name, val_get(*t, metadata, name)), F(persistentVolumeClaim, source)));
	}
	VAL_EACH(v, val_get(pod, spec, volumes))
		if (!has_template(set, val_str(*v, name)))
			val_add_item(&b, *v);
	struct val volumes = val_end_list(&b);
	return val_with(a, pod, val_len(volumes) ? volumes : VAL_EMPTY, spec, volumes);
}

bool stateful_volumes_match(struct arena *a, struct val set, struct val pod)
{
	int64_t ordinal = stateful_ordinal(pod, NULL);

	if (ordinal < 0)
		return false;
	VAL_EACH(t, val_get(set, spec, volumeClaimTemplates)) {
		struct val v = find_by_name(val_get(pod, spec, volumes), val_str(*t, metadata, name));
		if (!str_eq(val_str(v, persistentVolumeClaim, claimName), stateful_claim_name(a, set, *t, ordinal)))
			return false;
	}
	return true;
}

/* ---- owners ---- */

static bool deletes(struct val set, bool when_scaled)
{
	struct val policy = val_get(set, spec, persistentVolumeClaimRetentionPolicy);
	return str_eq(when_scaled ? val_str(policy, whenScaled) : val_str(policy, whenDeleted), STR("Delete"));
}

static bool ref_names(struct val ref, struct val object, const char *api_version, const char *kind)
{
	return str_eq(val_str(ref, apiVersion), str_of(api_version)) && str_eq(val_str(ref, kind), str_of(kind)) &&
	       str_eq(val_str(ref, name), val_str(object, metadata, name));
}

static bool names_set(struct val ref, struct val set) { return ref_names(ref, set, "apps/v1", "StatefulSet"); }
static bool names_pod(struct val ref, struct val pod) { return ref_names(ref, pod, "v1", "Pod"); }
static bool ref_is(struct val ref, struct val object) { return str_eq(val_str(ref, uid), val_str(object, metadata, uid)); }

static bool owned_by(struct val claim, struct val object)
{
	VAL_EACH(ref, val_get(claim, metadata, ownerReferences))
		if (ref_is(*ref, object))
			return true;
	return false;
}

bool stateful_claim_is_foreign(struct val claim, struct val set, struct val pod)
{
	if (!deletes(set, true) && !deletes(set, false))
		return false;
	VAL_EACH(ref, val_get(claim, metadata, ownerReferences)) {
		if (names_set(*ref, set)) {
			if (!ref_is(*ref, set))
				return true;
		} else if (names_pod(*ref, pod)) {
			if (!ref_is(*ref, pod))
				return true;
		} else if (val_bool(*ref, controller)) {
			return true;
		}
	}
	return false;
}

bool stateful_claim_is_stale(struct val claim, struct val pod)
{
	VAL_EACH(ref, val_get(claim, metadata, ownerReferences))
		if (names_pod(*ref, pod))
			return !ref_is(*ref, pod);
	return false;
}

static bool names_another_set(struct val claim, struct val set)
{
	VAL_EACH(ref, val_get(claim, metadata, ownerReferences))
		if (names_set(*ref, set))
			return !ref_is(*ref, set);
	return false;
}

/* Ours, but not as the one that controls. */
static bool owned_loosely(struct val claim, struct val set, struct val pod)
{
	VAL_EACH(ref, val_get(claim, metadata, ownerReferences))
		if ((ref_is(*ref, set) || ref_is(*ref, pod)) && !val_bool(*ref, controller))
			return true;
	return false;
}

static void wanted_owners(struct val set, struct val pod, bool *ret_set, bool *ret_pod)
{
	bool condemned = !stateful_in_range(set, pod);

	*ret_pod = deletes(set, true) && condemned;
	*ret_set = deletes(set, false) && !*ret_pod;
}

bool stateful_claim_is_settled(struct val claim, struct val set, struct val pod)
{
	bool by_set, by_pod;

	/* What is left of an earlier set or pod of that name will be collected with the claim: hands off. */
	if (stateful_claim_is_stale(claim, pod) || names_another_set(claim, set))
		return true;
	if (stateful_claim_is_foreign(claim, set, pod))
		return !owned_by(claim, set) && !owned_by(claim, pod);
	if (owned_loosely(claim, set, pod))
		return false;
	wanted_owners(set, pod, &by_set, &by_pod);
	return owned_by(claim, set) == by_set && owned_by(claim, pod) == by_pod;
}

struct val stateful_claim_settle(struct arena *a, struct val claim, struct val set, struct val pod)
{
	struct val_builder b = val_builder(a);
	bool by_set, by_pod;

	VAL_EACH(ref, val_get(claim, metadata, ownerReferences))
		if (!names_set(*ref, set) && !names_pod(*ref, pod))
			val_add_item(&b, *ref);
	wanted_owners(set, pod, &by_set, &by_pod);
	if (!stateful_claim_is_foreign(claim, set, pod)) {
		if (by_pod)
			val_add_item(&b, owner_ref(a, pod, "v1", "Pod"));
		if (by_set)
			val_add_item(&b, owner_ref(a, set, "apps/v1", "StatefulSet"));
	}
	struct val refs = val_end_list(&b);
	return val_with(a, claim, val_len(refs) ? refs : VAL_EMPTY, metadata, ownerReferences);
}
