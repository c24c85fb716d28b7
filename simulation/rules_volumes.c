/* Claims and volumes: one volume for a claim and back, pods where their volumes are. */
#include "base/clock.h"
#include "codec/atoms.h"
#include "controllers/pv_binder_plan.h"
#include "simulation/rules.h"

/* What a pod or a claim is may be known that much later. */
static const int64_t known_ns = 10 * NS_PER_S;

#define RULES_EACH_CLAIM(volume, pod) \
	VAL_EACH(volume, val_get(pod, spec, volumes)) \
		if (val_has(*volume, persistentVolumeClaim))

static struct val claim_of(const struct rules *r, struct val pod, struct val volume)
{
	return rules_find(r, "persistentvolumeclaims/" STR_FMT "/" STR_FMT, STR_ARG(val_str(pod, metadata, namespace)),
			  STR_ARG(val_str(volume, persistentVolumeClaim, claimName)));
}

static struct val volume_of(const struct rules *r, struct val claim)
{
	return rules_find(r, "persistentvolumes/" STR_FMT, STR_ARG(val_str(claim, spec, volumeName)));
}

static bool phase_is(struct val object, const char *phase) { return str_eq(val_str(object, status, phase), str_of(phase)); }

/* As the scheduler sees it: the phase is written a moment later. */
static bool is_bound(struct val claim)
{
	return val_str(claim, spec, volumeName).n && val_exists(val_find(val_get(claim, metadata, annotations), STR(PV_BIND_COMPLETED)));
}

/* The one node that a volume is on; all of ours are so. */
static str volume_node(struct val volume)
{
	struct val term = val_at(val_get(volume, spec, nodeAffinity, required, nodeSelectorTerms), 0);
	return val_as_str(val_at(val_get(val_at(val_get(term, matchExpressions), 0), values), 0));
}

static bool is_free(struct val volume, str class)
{
	return str_eq(val_str(volume, spec, storageClassName), class) && phase_is(volume, "Available") && !val_has(volume, spec, claimRef);
}

/* A volume that a claim of this class could have; on this node, or on any (empty). */
static bool has_free(const struct rules *r, str class, str node)
{
	str key;

	RULES_EACH(r, "persistentvolumes/", key, volume)
		if (is_free(volume, class) && (!node.n || str_eq(volume_node(volume), node)))
			return true;
	return false;
}

/* ---- at every write ---- */

static void check_volume(struct rules *r, str key, struct val old, struct val now)
{
	str before = val_str(old, spec, claimRef, uid), after = val_str(now, spec, claimRef, uid);

	if (str_eq(val_str(old, metadata, uid), val_str(now, metadata, uid)) && before.n && after.n && !str_eq(before, after))
		rules_fail(r, "a volume changes its claim", key, STR_FMT " and " STR_FMT, STR_ARG(before), STR_ARG(after));
}

static bool uses(struct val pod, struct val claim)
{
	if (!str_eq(val_str(pod, metadata, namespace), val_str(claim, metadata, namespace)))
		return false;
	RULES_EACH_CLAIM(v, pod)
		if (str_eq(val_str(*v, persistentVolumeClaim, claimName), val_str(claim, metadata, name)))
			return true;
	return false;
}

/* A claim stays as long as a pod runs with it; whoever looked may not have known of one that was bound just then. */
static void check_claim_removal(struct rules *r, str key, struct val claim)
{
	str at;

	RULES_EACH(r, "pods/", at, pod)
		if (val_str(pod, spec, nodeName).n && !pod_is_over(pod) && uses(pod, claim) &&
		    clock_now_ns() - rules_fact_of(r, "placed", val_str(pod, metadata, uid)) >= known_ns)
			rules_fail(r, "a claim is gone that a pod uses", key, STR_FMT, STR_ARG(at));
}

static void check_claim(struct rules *r, str key, struct val old, struct val now)
{
	bool same = str_eq(val_str(old, metadata, uid), val_str(now, metadata, uid));
	str before = val_str(old, spec, volumeName), after = val_str(now, spec, volumeName);

	if (val_exists(old) && (!val_exists(now) || !same))
		check_claim_removal(r, key, old);
	if (same && before.n && !str_eq(before, after))
		rules_fail(r, "a claim changes its volume", key, STR_FMT " and " STR_FMT, STR_ARG(before), STR_ARG(after));
	if (phase_is(now, "Bound") && (!same || !phase_is(old, "Bound")) &&
	    !str_eq(val_str(volume_of(r, now), spec, claimRef, uid), val_str(now, metadata, uid)))
		rules_fail(r, "a claim is bound to a volume that is not its own", key, STR_FMT, STR_ARG(after));
}

/* Where a pod is placed, its volumes are. */
static void check_place(struct rules *r, str key, struct val old, struct val now)
{
	str node = val_str(now, spec, nodeName), uid = val_str(now, metadata, uid);

	if (!node.n || (str_eq(val_str(old, metadata, uid), uid) && val_str(old, spec, nodeName).n))
		return;
	*rules_fact(r, "placed", uid) = clock_now_ns();
	RULES_EACH_CLAIM(v, now) {
		struct val claim = claim_of(r, now, *v), volume = volume_of(r, claim);
		if (!val_exists(claim) || val_has(claim, metadata, deletionTimestamp))
			continue; /* it is going, or gone: that need not be known yet */
		if (!is_bound(claim))
			rules_fail(r, "a pod is placed before its claim is bound", key, STR_FMT, STR_ARG(val_str(claim, metadata, name)));
		else if (!str_eq(volume_node(volume), node))
			rules_fail(r, "a pod is not where its volume is", key, STR_FMT " is on " STR_FMT, STR_ARG(val_str(volume, metadata, name)),
				   STR_ARG(volume_node(volume)));
	}
}

void rules_check_volumes(struct rules *r, str key, struct val old, struct val now)
{
	if (str_starts(key, STR("/registry/persistentvolumes/")))
		check_volume(r, key, old, now);
	else if (str_starts(key, STR("/registry/persistentvolumeclaims/")))
		check_claim(r, key, old, now);
	else if (str_starts(key, STR("/registry/pods/")))
		check_place(r, key, old, now);
}

/* ---- at the end ---- */

bool pod_claims_fit(const struct rules *r, struct val pod, str node)
{
	RULES_EACH_CLAIM(v, pod) {
		struct val claim = claim_of(r, pod, *v);
		str class = val_str(claim, spec, storageClassName);
		if (!val_exists(claim) || val_has(claim, metadata, deletionTimestamp))
			return false;
		if (phase_is(claim, "Bound")) {
			if (!str_eq(volume_node(volume_of(r, claim)), node))
				return false;
		} else if (!str_eq(class, STR("local-path")) && (str_eq(class, STR("static")) || !has_free(r, class, node))) {
			return false;
		}
	}
	return true;
}

bool claim_is_used(const struct rules *r, struct val claim)
{
	str key;

	RULES_EACH(r, "pods/", key, pod)
		if (!pod_is_over(pod) && uses(pod, claim))
			return true;
	return false;
}

static bool claim_is_well(const struct rules *r, str key, struct val claim, struct buf *why)
{
	struct val volume = volume_of(r, claim);

	if (phase_is(claim, "Bound"))
		return (str_eq(val_str(volume, spec, claimRef, uid), val_str(claim, metadata, uid)) && phase_is(volume, "Bound")) ||
		       rules_complain(why, key, "it is bound, and its volume is not");
	if (!phase_is(claim, "Pending"))
		return rules_complain(why, key, "it is neither bound nor waits");
	return !str_eq(val_str(claim, spec, storageClassName), STR("static")) || !has_free(r, STR("static"), STR_NONE) ||
	       rules_complain(why, key, "there is a volume for it");
}

static bool volume_is_well(const struct rules *r, str key, struct val volume, struct buf *why)
{
	struct val ref = val_get(volume, spec, claimRef);
	struct val claim = rules_find(r, "persistentvolumeclaims/" STR_FMT "/" STR_FMT, STR_ARG(val_str(ref, namespace)), STR_ARG(val_str(ref, name)));
	bool lives = val_exists(ref) && str_eq(val_str(claim, metadata, uid), val_str(ref, uid));

	if (phase_is(volume, "Bound"))
		return (lives && str_eq(val_str(claim, spec, volumeName), val_str(volume, metadata, name))) ||
		       rules_complain(why, key, "it is bound, and its claim is not");
	if (phase_is(volume, "Available"))
		return !val_exists(ref) || rules_complain(why, key, "it is free, and has a claim");
	if (!phase_is(volume, "Released") || lives)
		return rules_complain(why, key, "it is not what its claim makes it");
	return str_eq(val_str(volume, spec, persistentVolumeReclaimPolicy), STR("Retain")) || rules_complain(why, key, "nobody wants it, and it is there");
}

bool rules_volumes_settled(const struct rules *r, struct buf *why)
{
	str key;

	RULES_EACH(r, "persistentvolumeclaims/", key, claim)
		if (!claim_is_well(r, key, claim, why))
			return false;
	RULES_EACH(r, "persistentvolumes/", key, volume)
		if (!volume_is_well(r, key, volume, why))
			return false;
	RULES_EACH(r, "pods/", key, pod)
		RULES_EACH_CLAIM(v, pod)
			if (val_str(pod, spec, nodeName).n && !pod_is_over(pod) && !phase_is(claim_of(r, pod, *v), "Bound"))
				return rules_complain(why, key, "it runs without its claim");
	return true;
}
