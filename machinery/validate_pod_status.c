/* The status of pods, as kubelets and schedulers write it. */
#include "codec/atoms.h"
#include "machinery/ip.h"
#include "machinery/validate_pod.h"

enum { HEALTH_MESSAGE_MAX = 1024 };

/* ---- containers do not come back to life ---- */

static bool in_values(struct val values, int64_t code)
{
	VAL_EACH(v, values)
		if (val_as_int(*v) == code)
			return true;
	return false;
}

/* A rule for this exit code says to restart. */
static bool rules_restart(struct val container, int64_t code)
{
	VAL_EACH(rule, val_get(container, restartPolicyRules)) {
		bool in = in_values(val_get(*rule, exitCodes, values), code);
		str operator = val_str(*rule, exitCodes, operator), action = val_str(*rule, action);
		if (!val_has(*rule, exitCodes) || in != str_eq(operator, STR("In")))
			continue;
		return str_eq(action, STR("Restart")) || str_eq(action, STR("RestartAllContainers"));
	}
	return false;
}

static bool may_restart(struct val spec, struct val container, int64_t code)
{
	static const str known[] = { STR_INIT("Always"), STR_INIT("OnFailure"), STR_INIT("Never"), { NULL, 0 } };
	str policy = val_str(container, restartPolicy);

	if (policy.n && rules_restart(container, code))
		return true;
	if (!str_in(policy, known))
		policy = val_str(spec, restartPolicy);
	if (str_eq(policy, STR("OnFailure")))
		return code != 0;
	return !str_eq(policy, STR("Never"));
}

static bool can_restart_all(struct val spec)
{
	const struct val lists[] = { val_get(spec, initContainers), val_get(spec, containers) };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(container, lists[i])
			VAL_EACH(rule, val_get(*container, restartPolicyRules))
				if (str_eq(val_str(*rule, action), STR("RestartAllContainers")))
					return true;
	return false;
}

/* name -> item, the first of that name */
static void index_names(struct map *by_name, struct val list)
{
	VAL_EACH(item, list)
		if (!map_get(by_name, val_str(*item, name)))
			map_put(by_name, val_str(*item, name), (void *)item);
}

/* containers: those of the spec, NULL for ephemeral ones, which never restart. */
static void check_transitions(struct field_errors *e, const struct field_path *at, struct val now, struct val before,
			      struct val spec, const struct val *containers)
{
	CLEANUP(map_done) struct map statuses = MAP_INIT;
	CLEANUP(map_done) struct map specs = MAP_INIT;
	size_t i = 0;

	index_names(&statuses, now);
	if (containers)
		index_names(&specs, *containers);
	VAL_EACH(old, before) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		const struct val *status = map_get(&statuses, val_str(*old, name)),
			*container = map_get(&specs, val_str(*old, name));
		if (!val_has(*old, state, terminated) || !status || val_has(*status, state, terminated))
			continue;
		if (!container || !may_restart(spec, *container, val_int(*old, state, terminated, exitCode)))
			field_forbidden(e, FIELD(item, "state"), "may not be transitioned to non-terminated state");
	}
}

static void check_all_transitions(struct field_errors *e, const struct field_path *at, struct val now, struct val before,
				  struct val spec)
{
	struct val containers = val_get(spec, containers), init = val_get(spec, initContainers);

	if (!can_restart_all(spec)) {
		check_transitions(e, FIELD(at, "containerStatuses"), val_get(now, containerStatuses),
				  val_get(before, containerStatuses), spec, &containers);
		check_transitions(e, FIELD(at, "initContainerStatuses"), val_get(now, initContainerStatuses),
				  val_get(before, initContainerStatuses), spec, &init);
	}
	check_transitions(e, FIELD(at, "ephemeralContainerStatuses"), val_get(now, ephemeralContainerStatuses),
			  val_get(before, ephemeralContainerStatuses), spec, NULL);
}

/* ---- conditions and claims ---- */

static void check_pod_conditions(struct field_errors *e, const struct field_path *at, struct val conditions)
{
	static const str own[] = { STR_INIT("PodScheduled"), STR_INIT("Ready"), STR_INIT("Initialized"), { NULL, 0 } };
	size_t i = 0;

	VAL_EACH(condition, conditions) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (val_int(*condition, observedGeneration) < 0)
			field_invalid(e, FIELD(item, "observedGeneration"), val_get(*condition, observedGeneration),
				      "must be a non-negative integer");
		if (!str_in(val_str(*condition, type), own))
			check_label_key(e, FIELD(item, "Type"), val_str(*condition, type));
	}
}

static void check_claim_statuses(struct field_errors *e, const struct field_path *at, struct val statuses,
				 struct val claims)
{
	CLEANUP(map_done) struct map known = MAP_INIT;
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	index_names(&known, claims);
	VAL_EACH(status, statuses) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str name = val_str(*status, name);
		if (!map_get(&known, name))
			field_invalid(e, FIELD(item, "name"), VAL_STR(name),
				      "must match the name of an entry in `spec.resourceClaims`");
		if (!set_add(&seen, name))
			field_duplicate(e, FIELD(item, "name"), VAL_STR(name));
		if (val_has(*status, resourceClaimName))
			check_name(e, FIELD(item, "resourceClaimName"), val_str(*status, resourceClaimName),
				   name_check_dns1123_subdomain);
	}
}

static void check_request_mapping(struct field_errors *e, const struct field_path *at, struct val mapping,
				  const struct map *containers)
{
	str name = val_str(mapping, containerName), resource = val_str(mapping, resourceName);
	const struct val *container = map_get(containers, name);

	if (!container)
		field_invalid(e, FIELD(at, "containerName"), VAL_STR(name),
			      "must match the name of an entry in spec.initContainers.name or spec.containers.name");
	else if (!val_exists(sorted_find(val_get(*container, resources, requests), resource)))
		field_invalid(e, FIELD(at, "resourceName"), VAL_STR(resource),
			      "must match the extended resource name of an entry in"
			      " spec.initContainers.resources.requests or spec.containers.resources.requests");
}

static void check_extended_claim(struct field_errors *e, const struct field_path *at, struct val status, struct val spec)
{
	CLEANUP(map_done) struct map containers = MAP_INIT;
	CLEANUP(map_done) struct map seen = MAP_INIT;
	const struct field_path *mappings = FIELD(at, "requestMappings");
	size_t i = 0;

	index_names(&containers, val_get(spec, containers));
	index_names(&containers, val_get(spec, initContainers));
	if (val_len(val_get(status, requestMappings)) == 0)
		field_required(e, mappings, "at least one request mapping is required");
	VAL_EACH(m, val_get(status, requestMappings)) {
		const struct field_path *item = FIELD_INDEX(mappings, i++);
		str container = val_str(*m, containerName), resource = val_str(*m, resourceName),
			request = val_str(*m, requestName);
		check_request_mapping(e, item, *m, &containers);
		check_name(e, FIELD(at, "requestName"), request, name_check_dns1123_label);
		if (set_add(&seen, arena_printf(e->arena, STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(container),
						STR_ARG(resource), STR_ARG(request))))
			continue;
		field_duplicate(e, FIELD(item, "containerName"), VAL_STR(container));
		field_duplicate(e, FIELD(item, "resourceName"), VAL_STR(resource));
		field_duplicate(e, FIELD(item, "requestName"), VAL_STR(request));
	}
	if (val_str(status, resourceClaimName).n == 0)
		field_missing(e, FIELD(at, "resourceClaimName"));
	else
		check_name(e, FIELD(at, "resourceClaimName"), val_str(status, resourceClaimName),
			   name_check_dns1123_subdomain);
}

/* ---- addresses ---- */

/* One address of each family at most. Addresses that were there before are taken as they are. */
static void check_ips(struct field_errors *e, const struct field_path *at, struct val ips, struct val before,
		      const struct type *type)
{
	CLEANUP(map_done) struct map old = MAP_INIT;
	bool families[2] = { false, false };
	size_t i = 0;

	VAL_EACH(item, before)
		set_add(&old, val_str(*item, ip));
	VAL_EACH(item, ips) {
		const struct field_path *here = FIELD_INDEX(at, i++);
		struct name_errors found;
		str text = val_str(*item, ip);
		if (!set_has(&old, text) && ip_check_legacy(text, true, &found))
			for (size_t k = 0; k < found.n; k++)
				field_invalid(e, here, VAL_STR(text), STR_FMT, STR_ARG(found.text[k]));
	}
	if (val_len(ips) < 2)
		return;
	i = 0;
	VAL_EACH(item, ips) {
		struct ip ip;
		if (!ip_parse(val_str(*item, ip), &ip, NULL)) {
			field_internal(e, at, "failed to check for dual stack with error:invalid IP[%zu]: " STR_FMT, i,
				       STR_ARG(val_str(*item, ip)));
			families[0] = false;
			break;
		}
		families[ip_is_v4(&ip)] = true;
		i++;
	}
	if (!families[0] || !families[1] || val_len(ips) > 2)
		field_invalid(e, at, internal_form(e->arena, type, ips),
			      "may specify no more than one IP for each IP family");
}

static void check_host_ips(struct field_errors *e, const struct field_path *at, struct val status, struct val old)
{
	struct val ips = val_get(status, hostIPs), first = val_get(val_at(ips, 0), ip);

	if (val_len(ips) == 0)
		return;
	if (!str_eq(val_str(status, hostIP), val_as_str(first)))
		field_invalid(e, FIELD(FIELD_INDEX(at, 0), "ip"), VAL_STR(val_as_str(first)), "must be equal to `hostIP`");
	check_ips(e, at, ips, val_get(old, hostIPs), TYPE(core_v1, HostIP));
}

/* ---- users and devices of containers ---- */

static void check_id(struct field_errors *e, const struct field_path *at, int64_t id)
{
	struct name_errors found;
	if (name_check_id(id, &found))
		field_invalid(e, at, val_of_int(id), STR_FMT, STR_ARG(found.text[0]));
}

static void check_users(struct field_errors *e, const struct field_path *at, struct val statuses, bool windows)
{
	size_t i = 0, j;
	VAL_EACH(status, statuses) {
		const struct field_path *user_at = FIELD(FIELD(FIELD_INDEX(at, i++), "user"), "linux");
		struct val user = val_get(*status, user, linux);
		if (!val_exists(user))
			continue;
		if (windows) {
			field_forbidden(e, user_at, "cannot be set for a windows pod");
			continue;
		}
		check_id(e, FIELD(user_at, "uid"), val_int(user, uid));
		check_id(e, FIELD(user_at, "gid"), val_int(user, gid));
		j = 0;
		VAL_EACH(group, val_get(user, supplementalGroups))
			check_id(e, FIELD_INDEX(FIELD(user_at, "supplementalGroups"), j++), val_as_int(*group));
	}
}

static bool asks_for_claim(struct val container, str name)
{
	VAL_EACH(claim, val_get(container, resources, claims)) {
		str claim_name, request;
		bool has_request = str_cut(name, '/', &claim_name, &request);
		if (str_eq(claim_name, val_str(*claim, name)) && has_request == (val_str(*claim, request).n > 0) &&
		    str_eq(request, val_str(*claim, request)))
			return true;
	}
	return false;
}

static void check_device_resource(struct field_errors *e, const struct field_path *at, str name, struct val container)
{
	bool claim = str_starts(name, STR("claim:"));
	bool known = claim ? asks_for_claim(container, str_skip(name, sizeof("claim:") - 1))
			   : val_exists(sorted_find(val_get(container, resources, requests), name));
	if (!known)
		field_invalid(e, at, VAL_STR(name), claim ? "must match one of the container's resource claims in a format"
			      " 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
			      : "must match one of the container's resource requests");
}

static void check_devices_health(struct field_errors *e, const struct field_path *at, struct val devices)
{
	static const str known[] = { STR_INIT("Healthy"), STR_INIT("Unhealthy"), STR_INIT("Unknown"), { NULL, 0 } };
	CLEANUP(map_done) struct map ids = MAP_INIT;
	size_t i = 0;

	VAL_EACH(device, devices) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		check_one_of(e, FIELD(item, "health"), val_str(*device, health), known);
		if (val_has(*device, message) && val_str(*device, message).n == 0)
			field_required(e, FIELD(item, "message"), "must be non-empty if specified");
		else if (val_str(*device, message).n > HEALTH_MESSAGE_MAX)
			field_too_long(e, FIELD(item, "message"), HEALTH_MESSAGE_MAX);
		if (!set_add(&ids, val_str(*device, resourceID)))
			field_duplicate(e, FIELD(item, "resourceID"), VAL_STR(val_str(*device, resourceID)));
	}
}

static void check_devices_status(struct field_errors *e, const struct field_path *at, struct val statuses,
				 struct val containers)
{
	CLEANUP(map_done) struct map specs = MAP_INIT;
	size_t i = 0, j;

	index_names(&specs, containers);
	VAL_EACH(status, statuses) {
		const struct field_path *list = FIELD(FIELD_INDEX(at, i++), "allocatedResourcesStatus");
		const struct val *container = map_get(&specs, val_str(*status, name));
		j = 0;
		VAL_EACH(resource, val_get(*status, allocatedResourcesStatus)) {
			const struct field_path *item = FIELD_INDEX(list, j++);
			if (container)
				check_device_resource(e, FIELD(item, "name"), val_str(*resource, name), *container);
			check_devices_health(e, FIELD(item, "resources"), val_get(*resource, resources));
		}
	}
}

static void check_no_devices(struct field_errors *e, const struct field_path *at, struct val statuses)
{
	size_t i = 0;
	VAL_EACH(status, statuses) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (val_len(val_get(*status, allocatedResourcesStatus)))
			field_forbidden(e, FIELD(item, "allocatedResourcesStatus"),
					"must not be specified in container status");
	}
}

/* ---- all of it ---- */

static void check_nomination(struct field_errors *e, const struct field_path *at, struct val status, struct val old)
{
	str now = val_str(status, nominatedNodeName);

	if (now.n == 0 || str_eq(now, val_str(old, status, nominatedNodeName)))
		return;
	check_name(e, at, now, name_check_dns1123_subdomain);
	if (val_has(old, spec, nodeName))
		field_forbidden(e, at, "may not be set on pods that are already bound to a node");
}

static void check_container_statuses(struct field_errors *e, const struct field_path *at, struct val status,
				     struct val spec)
{
	const struct field_path *regular = FIELD(at, "containerStatuses"), *init = FIELD(at, "initContainerStatuses");
	const struct field_path *ephemeral = FIELD(at, "ephemeralContainerStatuses");
	bool windows = str_eq(val_str(spec, os, name), STR("windows"));

	check_users(e, regular, val_get(status, containerStatuses), windows);
	check_users(e, init, val_get(status, initContainerStatuses), windows);
	check_users(e, ephemeral, val_get(status, ephemeralContainerStatuses), windows);
	check_devices_status(e, regular, val_get(status, containerStatuses), val_get(spec, containers));
	check_devices_status(e, init, val_get(status, initContainerStatuses), val_get(spec, initContainers));
	check_no_devices(e, ephemeral, val_get(status, ephemeralContainerStatuses));
}

void check_pod_status(struct field_errors *e, struct val pod, struct val old)
{
	CLEANUP(pod_check_done) struct pod_check c;
	const struct field_path *at = FIELD(NULL, "status");
	struct val status = val_get(pod, status), before = val_get(old, status), spec = val_get(pod, spec);

	pod_check_init(&c, e, spec, val_get(old, spec), val_get(old, metadata));
	check_object_meta_update(e, FIELD(NULL, "metadata"), val_get(pod, metadata), val_get(old, metadata));
	check_pod_annotations_update(&c, FIELD(FIELD(NULL, "metadata"), "annotations"), val_get(pod, metadata, annotations),
				     val_get(old, metadata, annotations));
	check_pod_conditions(e, FIELD(at, "conditions"), val_get(status, conditions));
	if (!str_eq(val_str(spec, nodeName), val_str(old, spec, nodeName)))
		field_forbidden(e, FIELD(at, "nodeName"), "may not be changed directly");
	check_nomination(e, FIELD(at, "nominatedNodeName"), status, old);
	if (val_int(status, observedGeneration) < 0)
		field_invalid(e, FIELD(at, "observedGeneration"), val_get(status, observedGeneration),
			      "must be a non-negative integer");
	check_immutable(e, FIELD(at, "qosClass"), NULL, VAL_STR(val_str(status, qosClass)),
			VAL_STR(val_str(before, qosClass)));
	check_all_transitions(e, at, status, before, val_get(old, spec));
	check_claim_statuses(e, FIELD(at, "resourceClaimStatuses"), val_get(status, resourceClaimStatuses),
			     val_get(spec, resourceClaims));
	if (val_has(status, extendedResourceClaimStatus))
		check_extended_claim(e, FIELD(at, "extendedResourceClaimStatus"),
				     val_get(status, extendedResourceClaimStatus), spec);
	check_ips(e, FIELD(at, "podIPs"), val_get(status, podIPs), val_get(before, podIPs), TYPE(core_v1, PodIP));
	check_host_ips(e, FIELD(at, "hostIPs"), status, before);
	check_container_statuses(e, at, status, spec);
}
