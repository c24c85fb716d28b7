/*
 * Fields of features that Kubernetes 1.36 has but that are off by default. The server takes them away from what users
 * send, unless the object already uses them: then the feature was on once, and nothing must be lost. Rows without a gate
 * are of features that cannot be switched on here.
 */
#include "codec/atoms.h"
#include "machinery/gates.h"
#include "machinery/validate_priv.h"

static const struct disabled {
	const struct type *type;
	uint16_t field;
	bool empties; /* the object goes with it when nothing else is left */
	const char *gate; /* that keeps the field; NULL: none */
} disabled[] = {
	{ TYPE(core_v1, Lifecycle), A_stopSignal, true, NULL },                             /* ContainerStopSignals */
	{ TYPE(core_v1, PodSpec), A_schedulingGroup, false, NULL },                         /* GenericWorkload */
	{ TYPE(core_v1, PodStatus), A_nodeAllocatableResourceClaimStatuses, false, NULL },  /* DRANodeAllocatableResources */
	{ TYPE(core_v1, VolumeProjection), A_clusterTrustBundle, false, "ClusterTrustBundleProjection" },
	{ TYPE(core_v1, VolumeProjection), A_podCertificate, false, NULL },                 /* PodCertificateRequest */
	{ TYPE(core_v1, VolumeStatus), A_image, false, NULL },                              /* ImageVolumeWithDigest */
	{ TYPE(apps_v1, RollingUpdateStatefulSetStrategy), A_maxUnavailable, false, NULL }, /* MaxUnavailableStatefulSet */
	{ TYPE(scheduling_v1alpha2, PodGroupSpec), A_schedulingConstraints, false, NULL },  /* TopologyAwareWorkloadScheduling */
	{ TYPE(scheduling_v1alpha2, PodGroupSpec), A_resourceClaims, false, NULL },         /* DRAWorkloadResourceClaims */
	{ TYPE(scheduling_v1alpha2, PodGroupSpec), A_disruptionMode, false, NULL },         /* WorkloadAwarePreemption */
	{ TYPE(scheduling_v1alpha2, PodGroupSpec), A_priorityClassName, false, NULL },
	{ TYPE(scheduling_v1alpha2, PodGroupSpec), A_priority, false, NULL },
	{ TYPE(scheduling_v1alpha2, PodGroupStatus), A_resourceClaimStatuses, false, NULL },
	{ TYPE(scheduling_v1alpha2, PodGroupTemplate), A_schedulingConstraints, false, NULL },
	{ TYPE(scheduling_v1alpha2, PodGroupTemplate), A_resourceClaims, false, NULL },
	{ TYPE(scheduling_v1alpha2, PodGroupTemplate), A_disruptionMode, false, NULL },
	{ TYPE(scheduling_v1alpha2, PodGroupTemplate), A_priorityClassName, false, NULL },
	{ TYPE(scheduling_v1alpha2, PodGroupTemplate), A_priority, false, NULL },
	{ TYPE(coordination_v1, LeaseSpec), A_strategy, false, NULL },                      /* CoordinatedLeaderElection */
	{ TYPE(coordination_v1, LeaseSpec), A_preferredHolder, false, NULL },
	{ TYPE(storage_v1, CSIDriverSpec), A_preventPodSchedulingIfMissing, false, NULL },  /* VolumeLimitScaling */
	{ TYPE(resource_v1, Device), A_nodeAllocatableResourceMappings, false, NULL },      /* DRANodeAllocatableResources */
	{ TYPE(resource_v1, DeviceAttribute), A_bools, false, NULL },                       /* DRAListTypeAttributes */
	{ TYPE(resource_v1, DeviceAttribute), A_ints, false, NULL },
	{ TYPE(resource_v1, DeviceAttribute), A_strings, false, NULL },
	{ TYPE(resource_v1, DeviceAttribute), A_versions, false, NULL },
};

/* ---- does an object use one of them? ---- */

struct search {
	const struct disabled *what; /* NULL: any of them */
	bool found;
};

static void search_object(struct search *s, const struct type *type, struct val v, unsigned depth);

static void search_field(struct search *s, const struct field *f, struct val v, unsigned depth)
{
	if (f->shape == SHAPE_ONE)
		search_object(s, f->type, v, depth);
	else if (f->shape == SHAPE_LIST)
		VAL_EACH(item, v)
			search_object(s, f->type, *item, depth);
	else
		VAL_EACH_MEMBER(m, v)
			search_object(s, f->type, m->val, depth);
}

static void search_object(struct search *s, const struct type *type, struct val v, unsigned depth)
{
	if (depth == VAL_RECURSION_MAX || s->found || !val_is(v, VAL_OBJECT))
		return;
	const struct disabled *end = s->what ? s->what + 1 : disabled + ARRAY_LEN(disabled);
	for (const struct disabled *d = s->what ? s->what : disabled; d < end; d++)
		if (d->type == type && val_exists(val_member(v, d->field)))
			s->found = true;
	VAL_EACH_MEMBER(m, v) {
		const struct field *f = type_field(type, m->key);
		if (f && f->kind == KIND_MESSAGE && !s->found)
			search_field(s, f, m->val, depth + 1);
	}
}

static bool is_used(const struct disabled *what, const struct type *type, struct val v)
{
	struct search s = { .what = what };
	search_object(&s, type, v, 0);
	return s.found;
}

/* ---- taking them away ---- */

struct dropper {
	struct arena *arena;
	const struct type *type;
	struct val gates, old;
};

static struct val drop_object(struct dropper *d, const struct type *type, struct val v, unsigned depth);

static struct val drop_field(struct dropper *d, const struct field *f, struct val v, unsigned depth)
{
	struct val_builder b = val_builder(d->arena);

	if (f->shape == SHAPE_ONE)
		return drop_object(d, f->type, v, depth);
	if (f->shape == SHAPE_LIST) {
		VAL_EACH(item, v)
			val_add_item(&b, drop_object(d, f->type, *item, depth));
		return val_end_list(&b);
	}
	VAL_EACH_MEMBER(m, v)
		val_add_member(&b, m->key, drop_object(d, f->type, m->val, depth));
	return val_end_object(&b);
}

static struct val drop_own(struct dropper *d, const struct type *type, struct val v)
{
	for (size_t i = 0; i < ARRAY_LEN(disabled); i++) {
		const struct disabled *what = &disabled[i];
		if (what->type != type || !val_exists(val_member(v, what->field)) || (what->gate && gate_is_on(d->gates, str_of(what->gate))) ||
		    is_used(what, d->type, d->old))
			continue;
		v = val_put(d->arena, v, what->field, VAL_EMPTY);
		if (what->empties && val_len(v) == 0)
			return VAL_EMPTY;
	}
	return v;
}

static struct val drop_object(struct dropper *d, const struct type *type, struct val v, unsigned depth)
{
	if (!val_is(v, VAL_OBJECT) || depth == VAL_RECURSION_MAX)
		return v;
	v = drop_own(d, type, v);
	for (const struct field *f = type->fields; f < type->fields + type->n_fields; f++) {
		struct val member = f->kind == KIND_MESSAGE ? val_member(v, f->name) : VAL_EMPTY;
		if (val_len(member))
			v = val_put(d->arena, v, f->name, drop_field(d, f, member, depth + 1));
	}
	return v;
}

struct val drop_disabled_fields(struct arena *a, const struct type *type, struct val gates, struct val object, struct val old)
{
	struct dropper d = { a, type, gates, old };
	return is_used(NULL, type, object) ? drop_object(&d, type, object, 0) : object;
}
