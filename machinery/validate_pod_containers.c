/* Containers: regular, init (with sidecars) and ephemeral ones. */
#include "codec/atoms.h"
#include "machinery/validate_pod.h"

enum { RESTART_RULES_MAX = 20, EXIT_CODES_MAX = 255 };

/* ---- ports ---- */

static void check_port_number(struct field_errors *e, const struct field_path *at, struct val port)
{
	struct name_errors found;
	if (name_check_port_number(val_as_int(port), &found))
		field_invalid(e, at, port, STR_FMT, STR_ARG(found.text[0]));
}

static void check_ports(struct field_errors *e, const struct field_path *at, struct val ports)
{
	static const str protocols[] = { STR_INIT("SCTP"), STR_INIT("TCP"), STR_INIT("UDP"), { NULL, 0 } };
	CLEANUP(map_done) struct map names = MAP_INIT;
	size_t i = 0;

	VAL_EACH(p, ports) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str name = val_str(*p, name);
		if (name.n && name_check_port_name(name, NULL))
			check_name(e, FIELD(item, "name"), name, name_check_port_name);
		else if (name.n && !set_add(&names, name))
			field_duplicate(e, FIELD(item, "name"), VAL_STR(name));
		if (!val_has(*p, containerPort))
			field_missing(e, FIELD(item, "containerPort"));
		else
			check_port_number(e, FIELD(item, "containerPort"), val_get(*p, containerPort));
		if (val_has(*p, hostPort))
			check_port_number(e, FIELD(item, "hostPort"), val_get(*p, hostPort));
		check_required_one_of(e, FIELD(item, "protocol"), val_str(*p, protocol), protocols);
	}
}

/* No two containers that run at the same time can have a port of the host. */
static void check_host_ports(struct field_errors *e, const struct field_path *at, struct val ports, struct map *taken)
{
	size_t i = 0;
	VAL_EACH(p, ports) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (!val_has(*p, hostPort))
			continue;
		str port = arena_printf(e->arena, STR_FMT "/" STR_FMT "/%lld", STR_ARG(val_str(*p, protocol)),
					STR_ARG(val_str(*p, hostIP)), (long long)val_int(*p, hostPort));
		if (!set_add(taken, port))
			field_duplicate(e, FIELD(item, "hostPort"), VAL_STR(port));
	}
}

/* ---- mounts and devices ---- */

static void check_propagation(struct field_errors *e, const struct field_path *at, str mode, struct val container)
{
	static const str modes[] = { STR_INIT("Bidirectional"), STR_INIT("HostToContainer"), STR_INIT("None"),
				     { NULL, 0 } };
	check_one_of(e, at, mode, modes);
	if (str_eq(mode, STR("Bidirectional")) && !val_bool(container, securityContext, privileged))
		field_forbidden(e, at, "Bidirectional mount propagation is available only to privileged containers");
}

static void check_recursive_read_only(struct field_errors *e, const struct field_path *at, struct val mount)
{
	static const str modes[] = { STR_INIT("Disabled"), STR_INIT("Enabled"), STR_INIT("IfPossible"), { NULL, 0 } };
	str mode = val_str(mount, recursiveReadOnly), propagation = val_str(mount, mountPropagation);

	if (!str_in(mode, modes)) {
		field_not_supported(e, at, VAL_STR(mode), modes);
	} else if (!str_eq(mode, STR("Disabled"))) {
		if (!val_bool(mount, readOnly))
			field_forbidden(e, at, "may only be specified when readOnly is true");
		if (val_has(mount, mountPropagation) && !str_eq(propagation, STR("None")))
			field_forbidden(e, at, "may only be specified when mountPropagation is None or not specified");
	}
}

/* Names and paths of a container's mounts and devices; a name can have several mounts, of which the last counts. */
struct places {
	struct map mounts, devices;         /* by name -> path's val */
	struct map mount_paths, device_paths;
};

static void places_done(struct places *p)
{
	map_done(&p->mounts);
	map_done(&p->devices);
	map_done(&p->mount_paths);
	map_done(&p->device_paths);
}

static void gather(struct val list, atom path, struct map *by_name, struct map *paths)
{
	VAL_EACH(item, list)
		map_put(by_name, val_str(*item, name), (void *)item);
	struct map_iter it = map_iter(by_name);
	for (struct val *item; (item = map_next(&it, NULL));)
		set_add(paths, val_as_str(val_member(*item, path)));
}

/* Kubernetes leaves the index out of the paths of what follows the name. */
static void check_mount_details(struct field_errors *e, const struct field_path *at, const struct field_path *item,
				struct val mount, struct val container)
{
	str sub = val_str(mount, subPath), expression = val_str(mount, subPathExpr);

	if (sub.n)
		check_descending_path(e, FIELD(at, "subPath"), sub);
	if (expression.n) {
		if (sub.n)
			field_invalid(e, FIELD(item, "subPathExpr"), VAL_STR(expression),
				      "subPathExpr and subPath are mutually exclusive");
		check_descending_path(e, FIELD(at, "subPathExpr"), expression);
	}
	if (val_has(mount, mountPropagation))
		check_propagation(e, FIELD(at, "mountPropagation"), val_str(mount, mountPropagation), container);
	if (val_has(mount, recursiveReadOnly))
		check_recursive_read_only(e, FIELD(at, "recursiveReadOnly"), mount);
}

static void check_mounts(struct pod_check *c, const struct field_path *at, struct val container,
			 const struct places *places)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	VAL_EACH(mount, val_get(container, volumeMounts)) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str name = val_str(*mount, name), path = val_str(*mount, mountPath);

		if (name.n == 0)
			field_missing(c->e, FIELD(item, "name"));
		if (!map_get(&c->volumes, name))
			field_not_found(c->e, FIELD(item, "name"), VAL_STR(name));
		if (path.n == 0)
			field_missing(c->e, FIELD(item, "mountPath"));
		if (!set_add(&seen, path))
			field_invalid(c->e, FIELD(item, "mountPath"), VAL_STR(path), "must be unique");
		if (set_has(&places->devices, name))
			field_invalid(c->e, FIELD(item, "name"), VAL_STR(name), "must not already exist in volumeDevices");
		if (set_has(&places->device_paths, path))
			field_invalid(c->e, FIELD(item, "mountPath"), VAL_STR(path),
				      "must not already exist as a path in volumeDevices");
		check_mount_details(c->e, at, item, *mount, container);
	}
}

static bool has_backsteps(str path)
{
	for (str part; path.n;) {
		str_cut(path, '/', &part, &path);
		if (str_eq(part, STR("..")))
			return true;
	}
	return false;
}

static void check_device_name(struct pod_check *c, const struct field_path *at, str name, const struct map *seen)
{
	const struct val *volume = map_get(&c->volumes, name);

	if (name.n == 0)
		field_missing(c->e, at);
	if (set_has(seen, name))
		field_invalid(c->e, at, VAL_STR(name), "must be unique");
	if (!volume)
		field_not_found(c->e, at, VAL_STR(name));
	else if (!val_has(*volume, persistentVolumeClaim) && !val_has(*volume, ephemeral))
		field_invalid(c->e, at, VAL_STR(name),
			      "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
}

static void check_devices(struct pod_check *c, const struct field_path *at, struct val devices, const struct places *places)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	CLEANUP(map_done) struct map paths = MAP_INIT;
	size_t i = 0;

	VAL_EACH(device, devices) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str name = val_str(*device, name), path = val_str(*device, devicePath);

		check_device_name(c, FIELD(item, "name"), name, &names);
		if (path.n == 0)
			field_missing(c->e, FIELD(item, "devicePath"));
		if (set_has(&paths, path))
			field_invalid(c->e, FIELD(item, "devicePath"), VAL_STR(path), "must be unique");
		if (has_backsteps(path))
			field_invalid(c->e, FIELD(item, "devicePath"), VAL_STR(path), "can not contain backsteps ('..')");
		else
			set_add(&paths, path);
		if (set_has(&places->mounts, name))
			field_invalid(c->e, FIELD(item, "name"), VAL_STR(name), "must not already exist in volumeMounts");
		if (set_has(&places->mount_paths, path))
			field_invalid(c->e, FIELD(item, "devicePath"), VAL_STR(path),
				      "must not already exist as a path in volumeMounts");
		if (name.n)
			set_add(&names, name);
	}
}

/* ---- resizing and restarting ---- */

static void check_resize_policies(struct pod_check *c, const struct field_path *at, struct val policies)
{
	static const str resources[] = { STR_INIT("cpu"), STR_INIT("memory"), { NULL, 0 } };
	static const str known[] = { STR_INIT("NotRequired"), STR_INIT("RestartContainer"), { NULL, 0 } };
	CLEANUP(map_done) struct map seen = MAP_INIT;
	bool never = str_eq(val_str(c->spec, restartPolicy), STR("Never"));
	size_t i = 0;

	VAL_EACH(p, policies) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str resource = val_str(*p, resourceName), policy = val_str(*p, restartPolicy);
		if (!set_add(&seen, resource))
			field_duplicate(c->e, item, VAL_STR(resource));
		check_required_one_of(c->e, at, resource, resources);
		check_required_one_of(c->e, at, policy, known);
		if (never && !str_eq(policy, STR("NotRequired")))
			field_invalid(c->e, at, VAL_STR(policy),
				      "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
	}
}

static void check_restart_rule(struct field_errors *e, const struct field_path *at, struct val rule)
{
	static const str actions[] = { STR_INIT("Restart"), STR_INIT("RestartAllContainers"), { NULL, 0 } };
	static const str operators[] = { STR_INIT("In"), STR_INIT("NotIn"), { NULL, 0 } };
	const struct field_path *codes_at = FIELD(at, "exitCodes");
	struct val codes = val_get(rule, exitCodes);

	check_one_of(e, FIELD(at, "action"), val_str(rule, action), actions);
	if (!val_exists(codes)) {
		field_required(e, codes_at, "must be specified");
		return;
	}
	check_one_of(e, FIELD(codes_at, "operator"), val_str(codes, operator), operators);
	if (val_len(val_get(codes, values)) > EXIT_CODES_MAX)
		field_too_many(e, FIELD(codes_at, "values"), val_len(val_get(codes, values)), EXIT_CODES_MAX);
}

static void check_restart_policy(struct field_errors *e, const struct field_path *at, struct val container)
{
	static const str policies[] = { STR_INIT("Always"), STR_INIT("Never"), STR_INIT("OnFailure"), { NULL, 0 } };
	struct val rules = val_get(container, restartPolicyRules);
	size_t i = 0;

	if (val_has(container, restartPolicy))
		check_one_of(e, FIELD(at, "restartPolicy"), val_str(container, restartPolicy), policies);
	else if (val_len(rules))
		field_required(e, FIELD(at, "restartPolicy"), "must specify restartPolicy when restart rules are used");
	if (val_len(rules) > RESTART_RULES_MAX)
		field_too_many(e, FIELD(at, "restartPolicyRules"), val_len(rules), RESTART_RULES_MAX);
	VAL_EACH(rule, rules)
		check_restart_rule(e, FIELD_INDEX(FIELD(at, "restartPolicyRules"), i++), *rule);
}

/* ---- what all containers have ---- */

static void check_common(struct pod_check *c, const struct field_path *at, struct val container)
{
	static const str message_policies[] = { STR_INIT("File"), STR_INIT("FallbackToLogsOnError"), { NULL, 0 } };
	static const str pull_policies[] = { STR_INIT("Always"), STR_INIT("IfNotPresent"), STR_INIT("Never"), { NULL, 0 } };
	CLEANUP(places_done) struct places places = { 0 };
	str name = val_str(container, name);

	if (name.n == 0)
		field_missing(c->e, FIELD(at, "name"));
	else
		check_name(c->e, FIELD(at, "name"), name, name_check_dns1123_label);
	if (val_str(container, image).n == 0)
		field_missing(c->e, FIELD(at, "image"));
	check_required_one_of(c->e, FIELD(at, "terminationMessagePolicy"), val_str(container, terminationMessagePolicy),
			      message_policies);
	check_ports(c->e, FIELD(at, "ports"), val_get(container, ports));
	check_env(c, FIELD(at, "env"), val_get(container, env));
	check_env_from(c, FIELD(at, "envFrom"), val_get(container, envFrom));
	gather(val_get(container, volumeMounts), A_mountPath, &places.mounts, &places.mount_paths);
	gather(val_get(container, volumeDevices), A_devicePath, &places.devices, &places.device_paths);
	check_mounts(c, FIELD(at, "volumeMounts"), container, &places);
	check_devices(c, FIELD(at, "volumeDevices"), val_get(container, volumeDevices), &places);
	check_required_one_of(c->e, FIELD(at, "imagePullPolicy"), val_str(container, imagePullPolicy), pull_policies);
	check_container_resources(c, FIELD(at, "resources"), val_get(container, resources));
	check_resize_policies(c, FIELD(at, "resizePolicy"), val_get(container, resizePolicy));
	check_security_context(c, FIELD(at, "securityContext"), val_get(container, securityContext));
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool str_is_padded(str s) { return s.n && (is_space(s.p[0]) || is_space(s.p[s.n - 1])); }

static void check_padding(struct field_errors *e, const struct field_path *at, struct val container)
{
	str image = val_str(container, image);
	if (str_is_padded(image))
		field_invalid(e, FIELD(at, "image"), VAL_STR(image), "must not have leading or trailing whitespace");
}

void check_image_padding(struct field_errors *e, const struct field_path *at, struct val containers)
{
	size_t i = 0;
	VAL_EACH(container, containers)
		check_padding(e, FIELD_INDEX(at, i++), *container);
}

/* ---- the three lists ---- */

static void check_regular(struct pod_check *c, const struct field_path *at, struct val containers)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	CLEANUP(map_done) struct map host_ports = MAP_INIT;
	size_t i = 0;

	if (val_len(containers) == 0)
		field_missing(c->e, at);
	VAL_EACH(container, containers) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		check_common(c, item, *container);
		if (!set_add(&names, val_str(*container, name)))
			field_duplicate(c->e, FIELD(item, "name"), VAL_STR(val_str(*container, name)));
		check_probes(c, item, *container);
		check_restart_policy(c->e, item, *container);
	}
	i = 0;
	VAL_EACH(container, containers)
		check_host_ports(c->e, FIELD(FIELD_INDEX(at, i++), "ports"), val_get(*container, ports), &host_ports);
}

static void check_init_resize(struct pod_check *c, const struct field_path *at, struct val policies)
{
	size_t i = 0;
	VAL_EACH(p, policies) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (str_eq(val_str(*p, restartPolicy), STR("RestartContainer")))
			field_invalid(c->e, FIELD(item, "restartPolicy"), VAL_LIT("RestartContainer"),
				      "must not be set to 'RestartContainer' for non-sidecar initContainers");
	}
}

static void check_init_only(struct pod_check *c, const struct field_path *at, struct val container)
{
	static const uint16_t forbidden[] = { A_lifecycle, A_livenessProbe, A_readinessProbe, A_startupProbe };
	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++)
		if (val_exists(val_member(container, forbidden[i])))
			field_forbidden(c->e, FIELD_STR(at, atom_str(forbidden[i])),
					"may not be set for init containers without restartPolicy=Always");
}

static void check_init(struct pod_check *c, const struct field_path *at, struct val containers)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	size_t i = 0;

	VAL_EACH(container, val_get(c->spec, containers))
		set_add(&names, val_str(*container, name));
	VAL_EACH(container, containers) {
		CLEANUP(map_done) struct map host_ports = MAP_INIT;
		const struct field_path *item = FIELD_INDEX(at, i++);
		bool sidecar = container_is_sidecar(*container);

		check_common(c, item, *container);
		if (val_has(*container, restartPolicy))
			check_restart_policy(c->e, item, *container);
		else if (val_len(val_get(*container, restartPolicyRules)))
			field_required(c->e, FIELD(item, "restartPolicy"),
				       "must specify restartPolicy when restart rules are used");
		if (val_str(*container, name).n ? !set_add(&names, val_str(*container, name)) : set_has(&names, STR("")))
			field_duplicate(c->e, FIELD(item, "name"), VAL_STR(val_str(*container, name)));
		/* They run one after the other; Kubernetes looks at each as if it were the first. */
		check_host_ports(c->e, FIELD(FIELD_INDEX(at, 0), "ports"), val_get(*container, ports), &host_ports);
		if (sidecar)
			check_probes(c, item, *container);
		else
			check_init_only(c, item, *container);
		if (!sidecar && !c->restart_on_resize_of_init)
			check_init_resize(c, FIELD(item, "resizePolicy"), val_get(*container, resizePolicy));
	}
}

static void check_ephemeral_only(struct field_errors *e, const struct field_path *at, struct val container)
{
	static const uint16_t forbidden[] = {
		A_ports, A_resources, A_resizePolicy, A_restartPolicy, A_restartPolicyRules, A_livenessProbe,
		A_readinessProbe, A_startupProbe, A_lifecycle,
	};
	size_t i = 0;
	for (i = 0; i < ARRAY_LEN(forbidden); i++)
		if (val_exists(val_member(container, forbidden[i])))
			field_forbidden(e, FIELD_STR(at, atom_str(forbidden[i])),
					"cannot be set for an Ephemeral Container");
	i = 0;
	VAL_EACH(mount, val_get(container, volumeMounts)) {
		const struct field_path *item = FIELD_INDEX(FIELD(at, "volumeMounts"), i++);
		if (val_has(*mount, subPath))
			field_forbidden(e, FIELD(item, "subPath"), "cannot be set for an Ephemeral Container");
		if (val_has(*mount, subPathExpr))
			field_forbidden(e, FIELD(item, "subPathExpr"), "cannot be set for an Ephemeral Container");
	}
}

static void check_ephemeral(struct pod_check *c, const struct field_path *at, struct val containers)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	CLEANUP(map_done) struct map others = MAP_INIT;
	const struct val lists[] = { val_get(c->spec, containers), val_get(c->spec, initContainers) };
	size_t i = 0;

	for (size_t k = 0; k < ARRAY_LEN(lists); k++)
		VAL_EACH(container, lists[k]) {
			set_add(&names, val_str(*container, name));
			set_add(&others, val_str(*container, name));
		}
	VAL_EACH(container, containers) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str target = val_str(*container, targetContainerName);
		check_common(c, item, *container);
		check_padding(c->e, item, *container);
		if (!set_add(&names, val_str(*container, name)))
			field_duplicate(c->e, FIELD(item, "name"), VAL_STR(val_str(*container, name)));
		if (target.n && !set_has(&others, target))
			field_not_found(c->e, FIELD(item, "targetContainerName"), VAL_STR(target));
		check_ephemeral_only(c->e, item, *container);
	}
}

void check_containers(struct pod_check *c, const struct field_path *at)
{
	check_regular(c, FIELD(at, "containers"), val_get(c->spec, containers));
	check_init(c, FIELD(at, "initContainers"), val_get(c->spec, initContainers));
	check_ephemeral(c, FIELD(at, "ephemeralContainers"), val_get(c->spec, ephemeralContainers));
}
