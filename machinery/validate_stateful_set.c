/* StatefulSets: pods with names, and claims made for them from templates. */
#include "codec/atoms.h"
#include "machinery/validate_workloads.h"

/* What an update does not check again, since it cannot change or was wrong before. */
struct lenience {
	bool is_update;
	bool skip_template;
};

static void check_update_strategy(struct field_errors *e, const struct field_path *at, struct val strategy)
{
	struct val rolling = val_get(strategy, rollingUpdate);
	str type = val_str(strategy, type);

	if (type.n == 0)
		field_missing(e, at);
	else if (str_eq(type, STR("OnDelete"))) {
		if (val_exists(rolling))
			field_invalid(e, FIELD(at, "rollingUpdate"),
				      internal_form(e->arena, TYPE(apps_v1, RollingUpdateStatefulSetStrategy), rolling),
				      "only allowed for updateStrategy 'RollingUpdate'");
	} else if (!str_eq(type, STR("RollingUpdate"))) {
		field_invalid(e, at, internal_form(e->arena, TYPE(apps_v1, StatefulSetUpdateStrategy), strategy),
			      "must be 'RollingUpdate' or 'OnDelete'");
	} else {
		struct val unavailable = val_get(rolling, maxUnavailable);
		const struct field_path *below = FIELD(at, "rollingUpdate");
		check_non_negative(e, FIELD(below, "partition"), val_get(rolling, partition));
		if (!val_exists(unavailable))
			return;
		check_int_or_percent(e, FIELD(below, "maxUnavailable"), unavailable);
		if (int_or_percent(unavailable) == 0)
			field_invalid(e, FIELD(below, "maxUnavailable"), unavailable, "cannot be 0");
		check_at_most_100_percent(e, FIELD(below, "maxUnavailable"), unavailable);
	}
}

static void check_policies(struct field_errors *e, const struct field_path *at, struct val spec)
{
	static const str retention[] = { STR_INIT("Retain"), STR_INIT("Delete"), { NULL, 0 } };
	const struct field_path *claims = FIELD(at, "persistentVolumeClaimRetentionPolicy");
	struct val policy = val_get(spec, persistentVolumeClaimRetentionPolicy);
	str management = val_str(spec, podManagementPolicy);

	if (management.n == 0)
		field_missing(e, FIELD(at, "podManagementPolicy"));
	else if (!str_eq(management, STR("OrderedReady")) && !str_eq(management, STR("Parallel")))
		field_invalid(e, FIELD(at, "podManagementPolicy"), VAL_STR(management),
			      "must be 'OrderedReady' or 'Parallel'");
	check_update_strategy(e, FIELD(at, "updateStrategy"), val_get(spec, updateStrategy));
	if (val_exists(policy)) {
		check_one_of(e, FIELD(claims, "whenDeleted"), val_str(policy, whenDeleted), retention);
		check_one_of(e, FIELD(claims, "whenScaled"), val_str(policy, whenScaled), retention);
	}
}

/* The volumes that pods will have: one per template of a claim, and the pod's own of other names. */
static struct val all_volumes(struct arena *a, struct val spec)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	struct val_builder b = val_builder(a);

	VAL_EACH(claim, val_get(spec, volumeClaimTemplates)) {
		struct val name = val_get(*claim, metadata, name);
		if (set_add(&names, val_as_str(name)))
			val_add_item(&b, OBJECT(a, F(name, name), F(persistentVolumeClaim, OBJECT(a, F(claimName, name)))));
	}
	VAL_EACH(volume, val_get(spec, template, spec, volumes))
		if (!set_has(&names, val_str(*volume, name)))
			val_add_item(&b, *volume);
	return val_end_list(&b);
}

/* The template as the controller will use it: it sets host name and subdomain itself. */
static struct val effective_template(struct arena *a, struct val spec)
{
	struct val template = val_get(spec, template);

	template = val_without(a, template, spec, subdomain);
	template = val_without(a, template, spec, hostname);
	if (val_len(val_get(spec, volumeClaimTemplates)))
		template = val_with(a, template, all_volumes(a, spec), spec, volumes);
	return template;
}

static void check_set_template(struct field_errors *e, const struct field_path *at, struct val spec, struct val old,
			       bool skip)
{
	struct val template = effective_template(e->arena, spec);
	const struct field_path *below = FIELD(at, "template");

	if (!check_selects(e, at, spec, ""))
		return;
	if (!skip)
		check_pod_template(e, below, template, val_get(old, template));
	check_labels(e, FIELD(below, "labels"), val_get(template, metadata, labels));
	check_annotations(e, FIELD(below, "annotations"), val_get(template, metadata, annotations));
	check_template_annotations(e, FIELD(below, "annotations"), template, val_get(old, template));
}

static void check_set_spec(struct field_errors *e, const struct field_path *at, struct val spec, struct val old,
			   struct lenience lenience)
{
	size_t i = 0;

	check_policies(e, at, spec);
	if (!lenience.is_update)
		VAL_EACH(claim, val_get(spec, volumeClaimTemplates))
			check_claim_spec(e, FIELD(FIELD_INDEX(FIELD(at, "volumeClaimTemplates"), i++), "spec"),
					 val_get(*claim, spec), VAL_EMPTY);
	check_non_negative(e, FIELD(at, "replicas"), val_get(spec, replicas));
	check_non_negative(e, FIELD(at, "minReadySeconds"), val_get(spec, minReadySeconds));
	check_non_negative(e, FIELD(at, "ordinals.start"), val_get(spec, ordinals, start));
	if (!lenience.is_update && val_has(spec, serviceName))
		check_name(e, FIELD(at, "serviceName"), val_str(spec, serviceName), name_check_dns1123_label);
	check_workload_selector(e, FIELD(at, "selector"), val_get(spec, selector), "statefulset");
	check_set_template(e, at, spec, old, lenience.skip_template);
	check_runs_forever(e, FIELD(at, "template"), val_get(spec, template), "StatefulSet");
}

void check_stateful_set(struct field_errors *e, struct val sts)
{
	check_set_spec(e, FIELD(NULL, "spec"), val_get(sts, spec), VAL_EMPTY, (struct lenience){ 0 });
}

void check_stateful_set_update(struct field_errors *e, struct val sts, struct val old)
{
	static const uint16_t mutable[] = {
		A_replicas, A_template, A_updateStrategy, A_minReadySeconds, A_ordinals, A_revisionHistoryLimit,
		A_persistentVolumeClaimRetentionPolicy,
	};
	const struct field_path *at = FIELD(NULL, "spec");
	struct lenience lenience = { .is_update = true };
	struct val spec = val_get(sts, spec), before = val_get(old, spec);
	struct field_errors found;

	field_errors_init(&found, e->arena);
	check_set_spec(&found, at, before, before, lenience);
	lenience.skip_template = found.n > 0;
	check_set_spec(e, at, spec, before, lenience);
	for (size_t i = 0; i < ARRAY_LEN(mutable); i++)
		spec = val_put(e->arena, spec, mutable[i], val_member(before, mutable[i]));
	if (!val_semantic_equal(TYPE(apps_v1, StatefulSetSpec), spec, before))
		field_forbidden(e, at,
				"updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
				" 'updateStrategy',"
				" 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
				" are forbidden");
}

void check_stateful_set_status(struct field_errors *e, str subresource, struct val sts, struct val old)
{
	static const uint16_t counters[] = {
		A_replicas, A_readyReplicas, A_currentReplicas, A_updatedReplicas, A_availableReplicas,
		A_observedGeneration, A_collisionCount,
	};
	const struct field_path *at = FIELD(NULL, "status");
	struct val status = val_get(sts, status), count = val_get(status, collisionCount),
		before = val_get(old, status, collisionCount);

	if (!str_eq(subresource, STR("status")))
		return;
	for (size_t i = 0; i < ARRAY_LEN(counters); i++)
		check_non_negative(e, FIELD_STR(at, atom_str(counters[i])), val_member(status, counters[i]));
	for (size_t i = 1; i < 5; i++) {
		struct val v = val_member(status, counters[i]);
		if (val_as_int(v) > val_int(status, replicas))
			field_invalid(e, FIELD_STR(at, atom_str(counters[i])), val_of_int(val_as_int(v)),
				      "cannot be greater than status.replicas");
	}
	if (val_int(status, availableReplicas) > val_int(status, readyReplicas))
		field_invalid(e, FIELD(at, "availableReplicas"), val_of_int(val_int(status, availableReplicas)),
			      "cannot be greater than status.readyReplicas");
	if (val_exists(before) && (!val_exists(count) || val_as_int(count) < val_as_int(before)))
		field_invalid(e, FIELD(at, "collisionCount"), val_of_int(val_as_int(count)), "cannot be decremented");
}
