/*
 * Pods and pod templates. This file holds the spec together; its subjects have files of their own (validate_pod_*.c,
 * validate_affinity.c, validate_scheduling.c, validate_resources.c). Features that are off by default in Kubernetes
 * 1.36 have no rules here: their fields are dropped before.
 */
#include "codec/atoms.h"
#include "codec/json.h"
#include "machinery/validate_pod.h"

#define MIRROR_KEY STR("kubernetes.io/config.mirror")
#define TOLERATIONS_KEY STR("scheduler.alpha.kubernetes.io/tolerations")
#define DELETION_COST_KEY STR("controller.kubernetes.io/pod-deletion-cost")

void each_container(struct pod_check *c, const struct field_path *at, pod_container_fn *fn, void *arg)
{
	static const uint16_t lists[] = { A_initContainers, A_containers, A_ephemeralContainers };
	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		const struct field_path *list = FIELD_STR(at, atom_str(lists[k]));
		size_t i = 0;
		VAL_EACH(container, val_member(c->spec, lists[k]))
			fn(c, FIELD_INDEX(list, i++), *container, arg);
	}
}

/* ---- annotations ---- */

/* Tolerations in an annotation, as JSON: from before there was a field. */
static void check_tolerations_annotation(struct pod_check *c, const struct field_path *at, str text)
{
	struct json_decode_options options = { 0 };
	struct val tolerations;
	struct err err;

	if (json_decode(c->e->arena, text, &options, &tolerations, &err) < 0)
		field_invalid(c->e, at, VAL_STR(TOLERATIONS_KEY), STR_FMT, STR_ARG(err_str(&err)));
	else
		check_pod_tolerations(c, FIELD_STR(at, TOLERATIONS_KEY), tolerations);
}

void check_pod_annotations(struct pod_check *c, const struct field_path *at, struct val annotations)
{
	struct val mirror = sorted_find(annotations, MIRROR_KEY), tolerations = sorted_find(annotations, TOLERATIONS_KEY);

	if (val_exists(mirror) && !val_has(c->spec, nodeName))
		field_invalid(c->e, FIELD_KEY(at, MIRROR_KEY), mirror,
			      "must set spec.nodeName if mirror pod annotation is set");
	if (val_as_str(tolerations).n)
		check_tolerations_annotation(c, at, val_as_str(tolerations));
	if (!c->bad_deletion_cost && deletion_cost_is_bad(annotations))
		field_invalid(c->e, FIELD_KEY(at, DELETION_COST_KEY), sorted_find(annotations, DELETION_COST_KEY),
			      "must be a 32bit integer");
	check_seccomp_annotations(c, at, annotations);
	check_app_armor_annotations(c, at, annotations);
}

/* ---- spec ---- */

static void check_resource_claims(struct pod_check *c, const struct field_path *at, struct val claims)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	bool mirror = val_exists(sorted_find(val_get(c->meta, annotations), MIRROR_KEY));
	size_t i = 0;

	VAL_EACH(claim, claims) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		struct val one = val_get(*claim, resourceClaimName), other = val_get(*claim, resourceClaimTemplateName);
		struct val shown = internal_form(c->e->arena, TYPE(core_v1, PodResourceClaim), *claim);
		str name = val_str(*claim, name);

		if (mirror) {
			field_forbidden(c->e, FIELD_KEY(NULL, STR("")), "static pods do not support resource claims");
			continue;
		}
		if (name.n == 0)
			field_missing(c->e, FIELD(item, "name"));
		else if (!set_add(&names, name))
			field_duplicate(c->e, FIELD(item, "name"), VAL_STR(name));
		else
			check_name(c->e, FIELD(item, "name"), name, name_check_dns1123_label);
		if (val_exists(one) && val_exists(other))
			field_invalid(c->e, item, shown, "at most one of `resourceClaimName` or"
							 " `resourceClaimTemplateName` may be specified");
		if (!val_exists(one) && !val_exists(other))
			field_invalid(c->e, item, shown,
				      "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
		if (val_exists(one))
			check_name(c->e, FIELD(item, "resourceClaimName"), val_as_str(one), name_check_dns1123_subdomain);
		if (val_exists(other))
			check_name(c->e, FIELD(item, "resourceClaimTemplateName"), val_as_str(other),
				   name_check_dns1123_subdomain);
	}
}

/* In the network of the host, a port of a container is one of the host. Templates may leave that open. */
static void check_host_network_ports(struct pod_check *c, const struct field_path *at)
{
	size_t i = 0, j;

	if (!val_bool(c->spec, hostNetwork))
		return;
	VAL_EACH(container, val_get(c->spec, containers)) {
		const struct field_path *ports = FIELD(FIELD_INDEX(FIELD(at, "containers"), i++), "ports");
		j = 0;
		VAL_EACH(p, val_get(*container, ports)) {
			const struct field_path *item = FIELD_INDEX(ports, j++);
			int64_t host = val_int(*p, hostPort);
			if ((c->is_pod || host) && host != val_int(*p, containerPort))
				field_invalid(c->e, FIELD(item, "hostPort"), val_of_int(host),
					      "must match `containerPort` when `hostNetwork` is true");
		}
	}
}

/* Variables from files need a volume that the container can have written them to. */
static void check_file_volumes(struct pod_check *c, const struct field_path *at, struct val container, void *arg)
{
	const struct map *volumes = arg;
	size_t i = 0;

	VAL_EACH(var, val_get(container, env)) {
		const struct field_path *item = FIELD_INDEX(FIELD(at, "env"), i++);
		const struct field_path *below = FIELD(FIELD(FIELD(item, "valueFrom"), "fileKeyRef"), "volumeName");
		str name = val_str(*var, valueFrom, fileKeyRef, volumeName);
		const struct val *volume = map_get(volumes, name);

		if (!val_has(*var, valueFrom, fileKeyRef))
			continue;
		if (!volume)
			field_not_found(c->e, below, VAL_STR(name));
		else if (!val_has(*volume, emptyDir))
			field_invalid(c->e, below, VAL_STR(name), "referenced volume must be of type emptyDir");
	}
}

static void check_env_files(struct pod_check *c, const struct field_path *at)
{
	CLEANUP(map_done) struct map volumes = MAP_INIT;

	VAL_EACH(volume, val_get(c->spec, volumes))
		map_put(&volumes, val_str(*volume, name), (void *)volume);
	each_container(c, at, check_file_volumes, &volumes);
}

void check_pod_spec(struct pod_check *c, const struct field_path *at)
{
	static const str restart[] = { STR_INIT("Always"), STR_INIT("OnFailure"), STR_INIT("Never"), { NULL, 0 } };
	static const str dns[] = {
		STR_INIT("ClusterFirstWithHostNet"), STR_INIT("ClusterFirst"), STR_INIT("Default"), STR_INIT("None"),
		{ NULL, 0 },
	};
	struct arena *a = c->e->arena;

	if (!val_has(c->spec, terminationGracePeriodSeconds))
		field_missing(c->e, FIELD(at, "terminationGracePeriodSeconds"));
	check_volumes(c, FIELD(at, "volumes"), val_get(c->spec, volumes));
	check_resource_claims(c, FIELD(at, "resourceClaims"), val_get(c->spec, resourceClaims));
	check_containers(c, at);
	check_pod_resources(c, at);
	check_host_network_ports(c, at);
	check_required_one_of(c->e, FIELD(at, "restartPolicy"), val_str(c->spec, restartPolicy), restart);
	check_required_one_of(c->e, FIELD(at, "dnsPolicy"), val_str(c->spec, dnsPolicy), dns);
	check_labels(c->e, FIELD(at, "nodeSelector"), val_get(c->spec, nodeSelector));
	check_pod_security_context(c, FIELD(at, "securityContext"));
	check_scheduling(c, at);
	if (val_has(c->spec, overhead))
		check_container_resources(c, FIELD(at, "overhead"), OBJECT(a, F(limits, val_get(c->spec, overhead))));
	check_pod_os(c, at);
	check_env_files(c, at);
}

/* ---- templates ---- */

void check_pod_template(struct field_errors *e, const struct field_path *at, struct val template, struct val old)
{
	CLEANUP(pod_check_done) struct pod_check c;
	struct val annotations = val_get(template, metadata, annotations);

	pod_check_init(&c, e, val_get(template, spec), val_get(old, spec), val_get(old, metadata));
	check_labels(e, FIELD(at, "labels"), val_get(template, metadata, labels));
	check_annotations(e, FIELD(at, "annotations"), annotations);
	check_pod_annotations(&c, FIELD(at, "annotations"), annotations);
	check_pod_spec(&c, FIELD(at, "spec"));
	check_profiles_agree(&c, FIELD(at, "spec"), annotations);
	if (val_len(val_get(c.spec, ephemeralContainers)))
		field_forbidden(e, FIELD(FIELD(at, "spec"), "ephemeralContainers"),
				"ephemeral containers not allowed in pod template");
}

void check_template_annotations(struct field_errors *e, const struct field_path *at, struct val template, struct val old)
{
	CLEANUP(pod_check_done) struct pod_check c;

	pod_check_init(&c, e, val_get(template, spec), val_get(old, spec), val_get(old, metadata));
	check_pod_annotations(&c, at, val_get(template, metadata, annotations));
}

/* ---- pods ---- */

/* Tokens need an account. */
static void check_token_volumes(struct pod_check *c, const struct field_path *at)
{
	size_t i = 0, j;
	VAL_EACH(volume, val_get(c->spec, volumes)) {
		const struct field_path *sources = FIELD(FIELD(FIELD_INDEX(at, i++), "projected"), "sources");
		j = 0;
		VAL_EACH(source, val_get(*volume, projected, sources)) {
			const struct field_path *item = FIELD_INDEX(sources, j++);
			if (val_has(*source, serviceAccountToken))
				field_forbidden(c->e, FIELD(item, "serviceAccountToken"),
						"must not be specified when serviceAccountName is not set");
		}
	}
}

void check_pod_whole(struct pod_check *c)
{
	const struct field_path *spec = FIELD(NULL, "spec"), *meta = FIELD(NULL, "metadata");

	check_object_meta(c->e, meta, c->meta, true, name_rule_subdomain);
	check_pod_annotations(c, FIELD(meta, "annotations"), val_get(c->meta, annotations));
	check_pod_spec(c, spec);
	if (!val_has(c->spec, serviceAccountName))
		check_token_volumes(c, FIELD(spec, "volumes"));
	check_image_padding(c->e, FIELD(spec, "containers"), val_get(c->spec, containers));
	check_image_padding(c->e, FIELD(spec, "initContainers"), val_get(c->spec, initContainers));
}

static void check_pod(struct field_errors *e, struct val pod)
{
	CLEANUP(pod_check_done) struct pod_check c;
	const struct field_path *spec = FIELD(NULL, "spec");

	pod_check_init(&c, e, val_get(pod, spec), VAL_EMPTY, VAL_EMPTY);
	c.is_pod = true;
	c.meta = val_get(pod, metadata);
	check_pod_whole(&c);
	if (val_len(val_get(c.spec, ephemeralContainers)))
		field_forbidden(e, FIELD(spec, "ephemeralContainers"), "cannot be set on create");
	if (val_has(c.spec, nodeName) && val_len(val_get(c.spec, schedulingGates)))
		field_forbidden(e, FIELD(spec, "nodeName"), "cannot be set until all schedulingGates have been cleared");
	check_profiles_agree(&c, spec, val_get(c.meta, annotations));
}

static void check_binding(struct field_errors *e, struct val binding)
{
	static const str kinds[] = { STR_INIT("Node"), STR_INIT("<empty>"), { NULL, 0 } };
	const struct field_path *target = FIELD(NULL, "target");
	str kind = val_str(binding, target, kind);

	if (kind.n && !str_eq(kind, STR("Node")))
		field_not_supported(e, FIELD(target, "kind"), VAL_STR(kind), kinds);
	if (val_str(binding, target, name).n == 0)
		field_missing(e, FIELD(target, "name"));
}

const struct kind_rules rules_pod[] = {
	{ TYPE(core_v1, Pod), name_rule_subdomain, KIND_OWN_META | KIND_GENERATION | KIND_STATUS_ON_CREATE, default_pod,
	  check_pod, check_pod_update, check_pod_subresource, prepare_pod, prepare_pod_update },
	{ TYPE(core_v1, Binding), .flags = KIND_OWN_META | KIND_NOT_STORED, .check = check_binding },
	{ 0 },
};
