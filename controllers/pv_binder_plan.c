#include "controllers/pv_binder_plan.h"

#include "codec/atoms.h"
#include "controllers/labels.h"
#include "machinery/resources.h"
#include "machinery/selector.h"

#define CLASS_BETA "volume.beta.kubernetes.io/storage-class"

/* ---- facts ---- */

str storage_class_of(struct val claim_or_volume)
{
	struct val old = val_find(val_get(claim_or_volume, metadata, annotations), STR(CLASS_BETA));

	return val_exists(old) ? val_as_str(old) : val_str(claim_or_volume, spec, storageClassName);
}

bool claim_has_class(struct val claim) { return annotation_has(claim, STR(CLASS_BETA)) || val_has(claim, spec, storageClassName); }

bool volume_is_for(struct val volume, struct val claim)
{
	struct val ref = val_get(volume, spec, claimRef);
	str uid = val_str(ref, uid);

	return val_exists(ref) && str_eq(val_str(ref, name), val_str(claim, metadata, name)) &&
	       str_eq(val_str(ref, namespace), val_str(claim, metadata, namespace)) && (!uid.n || str_eq(uid, val_str(claim, metadata, uid)));
}

static str volume_mode(struct val spec)
{
	str mode = val_str(spec, volumeMode);
	return mode.n ? mode : STR("Filesystem");
}

static bool same_volume_mode(struct val claim, struct val volume)
{
	return str_eq(volume_mode(val_get(claim, spec)), volume_mode(val_get(volume, spec)));
}

static bool has_mode(struct val modes, str mode)
{
	VAL_EACH(m, modes)
		if (str_eq(val_as_str(*m), mode))
			return true;
	return false;
}

static bool has_modes(struct val claim, struct val volume)
{
	VAL_EACH(m, val_get(claim, spec, accessModes))
		if (!has_mode(val_get(volume, spec, accessModes), val_as_str(*m)))
			return false;
	return true;
}

static bool same_attributes_class(struct val claim, struct val volume)
{
	return str_eq(val_str(claim, spec, volumeAttributesClassName), val_str(volume, spec, volumeAttributesClassName));
}

static struct quantity size_of(struct val volume) { return quantity_of(val_get(volume, spec, capacity, storage)); }
static struct quantity size_wanted(struct val claim) { return quantity_of(val_get(claim, spec, resources, requests, storage)); }

const char *volume_misfit(struct arena *a, struct val volume, struct val claim)
{
	if (val_has(volume, metadata, deletionTimestamp))
		return arena_printf(a, "the volume is marked for deletion \"" STR_FMT "\"", STR_ARG(val_str(volume, metadata, name))).p;
	if (quantity_value(size_of(volume)) < quantity_value(size_wanted(claim)))
		return "requested PV is too small";
	if (!str_eq(storage_class_of(volume), storage_class_of(claim)))
		return "storageClassName does not match";
	if (!same_attributes_class(claim, volume))
		return "volumeAttributesClassName does not match";
	if (!same_volume_mode(claim, volume))
		return "incompatible volumeMode";
	return has_modes(claim, volume) ? NULL : "incompatible accessMode";
}

bool class_is_default(struct val class)
{
	return str_eq(annotation_of(class, STR("storageclass.kubernetes.io/is-default-class")), STR("true")) ||
	       str_eq(annotation_of(class, STR("storageclass.beta.kubernetes.io/is-default-class")), STR("true"));
}

struct val default_class(struct val classes)
{
	struct val best = VAL_EMPTY;

	VAL_EACH(c, classes) {
		int newer = str_cmp(val_str(*c, metadata, creationTimestamp), val_str(best, metadata, creationTimestamp));
		if (class_is_default(*c) && (!val_exists(best) || newer > 0 ||
					     (newer == 0 && str_cmp(val_str(*c, metadata, name), val_str(best, metadata, name)) < 0)))
			best = *c;
	}
	return best;
}

/* ---- the best volume ---- */

static bool is_candidate(struct val claim, struct val volume, const struct selector *selector)
{
	if (val_has(volume, spec, claimRef) || val_has(volume, metadata, deletionTimestamp) || !str_eq(val_str(volume, status, phase), STR("Available")))
		return false;
	return quantity_cmp(size_of(volume), size_wanted(claim)) >= 0 && same_volume_mode(claim, volume) && same_attributes_class(claim, volume) &&
	       str_eq(storage_class_of(volume), storage_class_of(claim)) && has_modes(claim, volume) &&
	       (!selector || selector_matches(selector, val_get(volume, metadata, labels)));
}

static bool is_meant(struct val claim, struct val volume)
{
	return volume_is_for(volume, claim) && !val_has(volume, metadata, deletionTimestamp) && same_volume_mode(claim, volume) &&
	       same_attributes_class(claim, volume) && has_modes(claim, volume) && quantity_cmp(size_of(volume), size_wanted(claim)) >= 0;
}

static bool suits_better(struct val volume, struct val best)
{
	uint32_t modes = val_len(val_get(volume, spec, accessModes)), best_modes = val_len(val_get(best, spec, accessModes));

	if (!val_exists(best) || modes != best_modes)
		return !val_exists(best) || modes < best_modes;
	return quantity_cmp(size_of(volume), size_of(best)) < 0;
}

struct val volume_for_claim(struct arena *a, struct val claim, struct val volumes, bool delay)
{
	struct val labels = val_get(claim, spec, selector), best = VAL_EMPTY;
	struct selector selector;

	VAL_EACH(v, volumes)
		if (is_meant(claim, *v))
			return *v;
	if (delay || (val_exists(labels) && selector_of_object(a, labels, &selector, NULL) < 0))
		return VAL_EMPTY;
	VAL_EACH(v, volumes)
		if (is_candidate(claim, *v, val_exists(labels) ? &selector : NULL) && suits_better(*v, best))
			best = *v;
	return best;
}

/* ---- claims ---- */

static void event(struct claim_plan *p, bool warning, const char *reason, str message)
{
	p->warning = warning;
	p->reason = reason;
	p->message = message;
}

static str joined_names(struct arena *a, struct val names)
{
	size_t size = 1, at = 0;

	VAL_EACH(n, names)
		size += val_as_str(*n).n + 1;
	char *all = ARENA_ARRAY(a, char, size);
	VAL_EACH(n, names) {
		str name = val_as_str(*n);
		if (at)
			all[at++] = ',';
		if (name.n)
			memcpy(all + at, name.p, name.n);
		at += name.n;
	}
	return str_span(all, at);
}

static void wait_for_consumer(struct arena *a, const struct claim_input *in, struct claim_plan *p)
{
	size_t n = val_len(in->waiting_pods);

	if (!n)
		event(p, false, "WaitForFirstConsumer", STR("waiting for first consumer to be created before binding"));
	else
		event(p, false, "WaitForPodScheduled", arena_printf(a, "waiting for pod%s " STR_FMT " to be scheduled", n > 1 ? "s" : "",
								    STR_ARG(joined_names(a, in->waiting_pods))));
}

static void provision(struct arena *a, const struct claim_input *in, struct claim_plan *p)
{
	str provisioner = val_str(in->class, provisioner);

	p->step = CLAIM_REST;
	if (!val_exists(in->class)) {
		event(p, true, "ProvisioningFailed",
		      arena_printf(a, "storageclass.storage.k8s.io \"" STR_FMT "\" not found", STR_ARG(storage_class_of(in->claim))));
		return;
	}
	if (str_starts(provisioner, STR("kubernetes.io/"))) {
		event(p, true, "ProvisioningFailed", arena_printf(a, "no volume plugin matched name: " STR_FMT, STR_ARG(provisioner)));
		return;
	}
	p->step = CLAIM_PROVISION;
	p->class = in->class;
	event(p, false, "ExternalProvisioning",
	      arena_printf(a, "Waiting for a volume to be created either by the external provisioner '" STR_FMT "' or manually by the system "
			      "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
			   STR_ARG(provisioner)));
}

static void find_volume(struct arena *a, const struct claim_input *in, struct claim_plan *p)
{
	bool delay = str_eq(val_str(in->class, volumeBindingMode), STR("WaitForFirstConsumer"));

	p->volume = volume_for_claim(a, in->claim, in->volumes, delay);
	if (val_exists(p->volume)) {
		p->step = CLAIM_BIND;
		return;
	}
	if (!claim_has_class(in->claim) && val_exists(in->default_class)) {
		p->step = CLAIM_SET_CLASS;
		p->class = in->default_class;
		return;
	}
	p->step = CLAIM_PENDING;
	if (delay && !annotation_has(in->claim, STR(PVC_SELECTED_NODE)))
		wait_for_consumer(a, in, p);
	else if (storage_class_of(in->claim).n)
		provision(a, in, p);
	else
		event(p, false, "FailedBinding", STR("no persistent volumes available for this claim and no storage class is set"));
}

static struct val named_volume(const struct claim_input *in)
{
	VAL_EACH(v, in->volumes)
		if (str_eq(val_str(*v, metadata, name), val_str(in->claim, spec, volumeName)))
			return *v;
	return VAL_EMPTY;
}

/* It says which one it wants. */
static void take_named(struct arena *a, const struct claim_input *in, struct claim_plan *p)
{
	struct val volume = named_volume(in);
	str name = val_str(in->claim, spec, volumeName);
	const char *misfit;

	p->step = CLAIM_PENDING;
	if (!val_exists(volume))
		return;
	if (!val_has(volume, spec, claimRef) && (misfit = volume_misfit(a, volume, in->claim))) {
		event(p, true, "VolumeMismatch", arena_printf(a, "Cannot bind to requested volume \"" STR_FMT "\": %s", STR_ARG(name), misfit));
	} else if (!val_has(volume, spec, claimRef) || volume_is_for(volume, in->claim)) {
		p->step = CLAIM_BIND;
		p->volume = volume;
	} else {
		event(p, true, "FailedBinding", arena_printf(a, "volume \"" STR_FMT "\" already bound to a different claim.", STR_ARG(name)));
		if (annotation_has(in->claim, STR(PV_BOUND_BY_CONTROLLER)))
			p->step = CLAIM_WRONG;
	}
}

static void keep_bound(const struct claim_input *in, struct claim_plan *p)
{
	struct val volume = named_volume(in), ref = val_get(volume, spec, claimRef);

	if (val_exists(volume) && (!val_exists(ref) || str_eq(val_str(ref, uid), val_str(in->claim, metadata, uid)))) {
		p->step = CLAIM_BIND;
		p->volume = volume;
		return;
	}
	p->step = CLAIM_LOST;
	if (!val_str(in->claim, spec, volumeName).n)
		event(p, true, "ClaimLost", STR("Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"));
	else if (!val_exists(volume))
		event(p, true, "ClaimLost", STR("Bound claim has lost its PersistentVolume. Data on the volume is lost!"));
	else
		event(p, true, "ClaimMisbound", STR("Two claims are bound to the same volume, this one is bound incorrectly"));
}

void claim_plan(struct arena *a, const struct claim_input *in, struct claim_plan *ret)
{
	*ret = (struct claim_plan){ 0 };
	if (annotation_has(in->claim, STR(PV_BIND_COMPLETED)))
		keep_bound(in, ret);
	else if (val_str(in->claim, spec, volumeName).n)
		take_named(a, in, ret);
	else
		find_volume(a, in, ret);
}

/* ---- volumes ---- */

enum volume_step volume_plan(struct val volume, struct val claim)
{
	struct val ref = val_get(volume, spec, claimRef);

	if (!val_str(ref, uid).n)
		return VOLUME_AVAILABLE;
	if (!val_exists(claim) || !str_eq(val_str(claim, metadata, uid), val_str(ref, uid)))
		return VOLUME_RELEASED;
	if (!val_str(claim, spec, volumeName).n)
		return same_volume_mode(claim, volume) ? VOLUME_LOOK_AT_CLAIM : VOLUME_MISMATCH;
	if (str_eq(val_str(claim, spec, volumeName), val_str(volume, metadata, name)))
		return VOLUME_BOUND;
	/* Its claim was bound to another one meanwhile. */
	if (annotation_has(volume, STR(PV_PROVISIONED_BY)) && str_eq(val_str(volume, spec, persistentVolumeReclaimPolicy), STR("Delete")))
		return VOLUME_RELEASED;
	return VOLUME_UNBIND;
}

void reclaim_plan(struct arena *a, struct val volume, struct reclaim_plan *ret)
{
	str policy = val_str(volume, spec, persistentVolumeReclaimPolicy), name = val_str(volume, metadata, name);
	str path = val_str(volume, spec, hostPath, path);

	*ret = (struct reclaim_plan){ 0 };
	if (str_eq(policy, STR("Retain")))
		return;
	if (str_eq(policy, STR("Recycle"))) {
		*ret = (struct reclaim_plan){ RECLAIM_FAIL, "VolumeFailedRecycle", STR("No recycler plugin found for the volume!") };
		return;
	}
	if (!str_eq(policy, STR("Delete"))) {
		*ret = (struct reclaim_plan){ RECLAIM_FAIL, "VolumeUnknownReclaimPolicy", STR("Volume has unrecognized reclaim policy") };
		return;
	}
	if (annotation_has(volume, STR(PV_PROVISIONED_BY)))
		return; /* whoever made it deletes it */
	if (!val_has(volume, spec, hostPath))
		*ret = (struct reclaim_plan){ RECLAIM_FAIL, "VolumeFailedDelete",
					      arena_printf(a, "error getting deleter volume plugin for volume \"" STR_FMT "\": no deletable volume plugin matched",
							   STR_ARG(name)) };
	else if (!str_starts(path, STR("/tmp/")) || path.n == 5)
		*ret = (struct reclaim_plan){ RECLAIM_FAIL, "VolumeFailedDelete",
					      arena_printf(a, "host_path deleter only supports /tmp/.+ but received provided " STR_FMT, STR_ARG(path)) };
	else
		ret->step = RECLAIM_DELETE;
}

/* ---- what is written ---- */

struct val volume_bound(struct arena *a, struct val volume, struct val claim)
{
	struct val ref = val_get(volume, spec, claimRef), next = volume;
	bool meant = volume_is_for(volume, claim);

	if (!meant || !str_eq(val_str(ref, uid), val_str(claim, metadata, uid)))
		next = val_with(a, next,
				OBJECT(a, F(kind, VAL_LIT("PersistentVolumeClaim")), F(namespace, val_get(claim, metadata, namespace)),
				       F(name, val_get(claim, metadata, name)), F(uid, val_get(claim, metadata, uid)), F(apiVersion, VAL_LIT("v1")),
				       F(resourceVersion, val_get(claim, metadata, resourceVersion))),
				spec, claimRef);
	if (!meant && !annotation_has(volume, STR(PV_BOUND_BY_CONTROLLER)))
		next = annotation_put(a, next, STR(PV_BOUND_BY_CONTROLLER), VAL_LIT("yes"));
	return val_same(next, volume) ? VAL_EMPTY : next;
}

struct val volume_unbound(struct arena *a, struct val volume)
{
	if (!val_has(volume, spec, claimRef))
		return VAL_EMPTY;
	if (!annotation_has(volume, STR(PV_BOUND_BY_CONTROLLER)))
		return val_has(volume, spec, claimRef, uid) ? val_without(a, volume, spec, claimRef, uid) : VAL_EMPTY;
	return annotation_put(a, val_without(a, volume, spec, claimRef), STR(PV_BOUND_BY_CONTROLLER), VAL_EMPTY);
}

struct val volume_with_phase(struct arena *a, struct val volume, const char *phase, str message)
{
	if (str_eq(val_str(volume, status, phase), str_of(phase)))
		return VAL_EMPTY;
	volume = val_with(a, volume, VAL_STR(str_of(phase)), status, phase);
	return val_with(a, volume, message.n ? VAL_STR(message) : VAL_EMPTY, status, message);
}

struct val claim_bound(struct arena *a, struct val claim, struct val volume)
{
	struct val next = claim;

	if (!str_eq(val_str(claim, spec, volumeName), val_str(volume, metadata, name))) {
		next = val_with(a, next, val_get(volume, metadata, name), spec, volumeName);
		if (!annotation_has(claim, STR(PV_BOUND_BY_CONTROLLER)))
			next = annotation_put(a, next, STR(PV_BOUND_BY_CONTROLLER), VAL_LIT("yes"));
	}
	if (!annotation_has(claim, STR(PV_BIND_COMPLETED)))
		next = annotation_put(a, next, STR(PV_BIND_COMPLETED), VAL_LIT("yes"));
	return val_same(next, claim) ? VAL_EMPTY : next;
}

static struct val status_put(struct arena *a, struct val claim, atom field, struct val value)
{
	const atom path[] = { A_status, field };

	if (val_equal(val_path(claim, path, ARRAY_LEN(path)), value))
		return claim;
	return val_put_path(a, claim, path, ARRAY_LEN(path), value);
}

struct val claim_with_phase(struct arena *a, struct val claim, const char *phase, struct val volume)
{
	bool changes = !str_eq(val_str(claim, status, phase), str_of(phase));
	struct val next = status_put(a, claim, A_phase, VAL_STR(str_of(phase)));

	next = status_put(a, next, A_accessModes, val_get(volume, spec, accessModes));
	if (!val_exists(volume))
		next = status_put(a, next, A_capacity, VAL_EMPTY);
	else if (changes) /* later the file system may be smaller than the device: that is not for us to say */
		next = status_put(a, next, A_capacity, val_get(volume, spec, capacity));
	if (val_exists(volume) && changes && val_str(volume, spec, volumeAttributesClassName).n)
		next = status_put(a, next, A_currentVolumeAttributesClassName, val_get(volume, spec, volumeAttributesClassName));
	return val_same(next, claim) ? VAL_EMPTY : next;
}

struct val claim_with_provisioner(struct arena *a, struct val claim, str provisioner)
{
	if (str_eq(annotation_of(claim, STR(PVC_PROVISIONER)), provisioner) && str_eq(annotation_of(claim, STR(PVC_PROVISIONER_BETA)), provisioner))
		return VAL_EMPTY;
	claim = annotation_put(a, claim, STR(PVC_PROVISIONER_BETA), VAL_STR(provisioner));
	return annotation_put(a, claim, STR(PVC_PROVISIONER), VAL_STR(provisioner));
}
