/* Nodes. Errors of taints are said to be in metadata.taints, as Kubernetes has it. */
#include "codec/atoms.h"
#include "codec/json.h"
#include "machinery/ip.h"
#include "machinery/validate_groups.h"

static void check_taints(struct field_errors *e, const struct field_path *at, struct val taints)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	VAL_EACH(taint, taints) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str key = val_str(*taint, key), effect = val_str(*taint, effect);
		check_label_key(e, FIELD(item, "key"), key);
		check_name_joined(e, FIELD(item, "value"), val_str(*taint, value), name_check_label_value, ";");
		check_taint_effect(e, FIELD(item, "effect"), effect, false);
		if (!set_add(&seen, arena_printf(e->arena, STR_FMT "\n" STR_FMT, STR_ARG(effect), STR_ARG(key))))
			field_error_add(e, FIELD_ERROR_DUPLICATE, item,
					internal_form(e->arena, TYPE(core_v1, Taint), *taint),
					"taints must be unique by key and effect pair");
	}
}

/* ---- annotations of old schedulers ---- */

static void check_taints_annotation(struct field_errors *e, const struct field_path *at, str key, str text)
{
	struct err err = ERR_INIT;
	struct val taints;

	if (text.n == 0)
		return;
	if (json_decode(e->arena, text, &(struct json_decode_options){ 0 }, &taints, &err) < 0)
		field_invalid(e, at, VAL_STR(key), "%s", err.msg);
	else
		check_taints(e, FIELD_STR(at, key), taints);
}

static void check_avoid_pods_annotation(struct field_errors *e, const struct field_path *at, str key, str text)
{
	struct err err = ERR_INIT;
	struct val avoid;
	size_t i = 0;

	if (text.n == 0)
		return;
	if (json_decode(e->arena, text, &(struct json_decode_options){ .type = TYPE(core_v1, AvoidPods) }, &avoid,
			&err) < 0) {
		field_invalid(e, FIELD(at, "AvoidPods"), VAL_STR(key), "%s", err.msg);
		return;
	}
	VAL_EACH(entry, val_get(avoid, preferAvoidPods)) {
		const struct field_path *signature = FIELD(FIELD_INDEX(FIELD_STR(at, key), i++), "PodSignature");
		struct val controller = val_get(*entry, podSignature, podController);
		if (!val_exists(controller))
			field_missing(e, signature);
		else if (!val_bool(controller, controller))
			field_invalid(e, FIELD(FIELD(signature, "PodController"), "Controller"), val_of_bool(false),
				      "must point to a controller");
	}
}

static void check_node_annotations(struct field_errors *e, struct val node)
{
	static const str taints = STR_INIT("scheduler.alpha.kubernetes.io/taints");
	static const str avoid = STR_INIT("scheduler.alpha.kubernetes.io/preferAvoidPods");
	const struct field_path *at = FIELD(FIELD(NULL, "metadata"), "annotations");
	struct val annotations = val_get(node, metadata, annotations);

	check_taints_annotation(e, at, taints, val_as_str(val_find(annotations, taints)));
	check_avoid_pods_annotation(e, at, avoid, val_as_str(val_find(annotations, avoid)));
}

/* ---- status ---- */

static void check_node_resources(struct field_errors *e, struct val node)
{
	const struct field_path *at = FIELD(NULL, "status");
	VAL_EACH_MEMBER(m, val_get(node, status, capacity))
		check_resource_quantity(e, FIELD_STR(FIELD(at, "capacity"), atom_str(m->key)), atom_str(m->key), m->val);
	VAL_EACH_MEMBER(m, val_get(node, status, allocatable))
		check_resource_quantity(e, FIELD_STR(FIELD(at, "allocatable"), atom_str(m->key)), atom_str(m->key), m->val);
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Feature/sub: words of letters and digits that begin with a letter, the first with a capital one. */
static bool is_feature_name(str name)
{
	if (name.n == 0 || name.p[0] < 'A' || name.p[0] > 'Z')
		return false;
	for (size_t i = 1; i < name.n; i++) {
		char c = name.p[i], before = name.p[i - 1];
		if (before == '/' ? !is_letter(c) : !is_letter(c) && !(c >= '0' && c <= '9') && c != '/')
			return false;
	}
	return name.p[name.n - 1] != '/';
}

static void check_feature_name(struct field_errors *e, const struct field_path *at, str name)
{
	struct val shown = VAL_STR(name);
	if (name.n > NAME_SUBDOMAIN_MAX)
		field_invalid(e, at, shown, "invalid feature name \"" STR_FMT "\": must be no more than %d characters",
			      STR_ARG(name), NAME_SUBDOMAIN_MAX);
	else if (!is_feature_name(name))
		field_invalid(e, at, shown,
			      "invalid feature name \"" STR_FMT "\": must start with an UpperCamelCase segment, with subsequent"
			      " segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric"
			      " characters and slashes", STR_ARG(name));
}

static void check_declared_features(struct field_errors *e, struct val node)
{
	const struct field_path *at = FIELD(FIELD(NULL, "status"), "declaredFeatures");
	struct val features = val_get(node, status, declaredFeatures);

	for (size_t i = 0; i < val_len(features); i++) {
		str name = val_as_str(val_at(features, i)), next = val_as_str(val_at(features, i + 1));
		check_feature_name(e, FIELD_INDEX(at, i), name);
		if (i + 1 == val_len(features))
			break;
		if (str_eq(name, next))
			field_duplicate(e, FIELD_INDEX(at, i + 1), VAL_STR(next));
		else if (str_cmp(name, next) > 0)
			field_invalid(e, FIELD_INDEX(at, i + 1), VAL_STR(next), "list must be sorted alphabetically");
	}
}

static void check_addresses(struct field_errors *e, struct val addresses)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;
	VAL_EACH(address, addresses) {
		const struct field_path *at = FIELD_INDEX(FIELD(FIELD(NULL, "status"), "addresses"), i++);
		str key = arena_printf(e->arena, STR_FMT "/" STR_FMT, STR_ARG(val_str(*address, type)),
				       STR_ARG(val_str(*address, address)));
		if (!set_add(&seen, key))
			field_duplicate(e, at, internal_form(e->arena, TYPE(core_v1, NodeAddress), *address));
	}
}

/* ---- dynamic kubelet configuration: gone, but still checked ---- */

static void check_config_source(struct field_errors *e, const struct field_path *at, struct val source, bool in_status)
{
	struct val map = val_get(source, configMap);
	const struct field_path *at_map = FIELD(at, "configMap");

	if (!val_exists(map)) {
		field_invalid(e, at, internal_form(e->arena, TYPE(core_v1, NodeConfigSource), source),
			      "exactly one reference subfield must be non-nil");
		return;
	}
	if (in_status) {
		check_given(e, FIELD(at_map, "uid"), val_str(map, uid));
		check_given(e, FIELD(at_map, "resourceVersion"), val_str(map, resourceVersion));
	} else {
		if (val_str(map, uid).n)
			field_forbidden(e, FIELD(at_map, "uid"), "uid must not be set in spec");
		if (val_str(map, resourceVersion).n)
			field_forbidden(e, FIELD(at_map, "resourceVersion"), "resourceVersion must not be set in spec");
	}
	check_given_name(e, FIELD(at_map, "namespace"), val_str(map, namespace), name_check_dns1123_label);
	check_given_name(e, FIELD(at_map, "name"), val_str(map, name), name_check_dns1123_subdomain);
	check_given_name(e, FIELD(at_map, "kubeletConfigKey"), val_str(map, kubeletConfigKey), name_check_config_key);
}

static void check_config_status(struct field_errors *e, struct val config)
{
	const struct field_path *at = FIELD(FIELD(NULL, "status"), "config");
	if (val_has(config, assigned))
		check_config_source(e, FIELD(at, "assigned"), val_get(config, assigned), true);
	if (val_has(config, active))
		check_config_source(e, FIELD(at, "active"), val_get(config, active), true);
	if (val_has(config, lastKnownGood))
		check_config_source(e, FIELD(at, "lastKnownGood"), val_get(config, lastKnownGood), true);
}

/* ---- spec ---- */

static void check_pod_cidrs(struct field_errors *e, struct val blocks)
{
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "podCIDRs");
	bool v4 = false, v6 = false;
	size_t i = 0;

	VAL_EACH(block, blocks) {
		str text = val_as_str(*block);
		struct cidr c;
		check_legacy_cidr(e, FIELD_INDEX(at, i++), text, VAL_EMPTY);
		if (cidr_parse(text, &c, NULL)) {
			v4 |= ip_is_v4(&c.ip);
			v6 |= !ip_is_v4(&c.ip);
		} else if (val_len(blocks) > 1) {
			field_internal(e, at,
				       "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR address: " STR_FMT,
				       STR_ARG(text));
			v4 = v6 = false;
			break;
		}
	}
	if (val_len(blocks) > 1 && (!v4 || !v6 || val_len(blocks) > 2))
		field_invalid(e, at, blocks, "may specify no more than one CIDR for each IP family");
}

void check_node(struct field_errors *e, struct val node)
{
	struct val swap = val_get(node, status, nodeInfo, swap, capacity);

	check_meta(e, node, false, name_rule_subdomain);
	check_node_annotations(e, node);
	check_taints(e, FIELD(FIELD(NULL, "metadata"), "taints"), val_get(node, spec, taints));
	check_node_resources(e, node);
	if (val_exists(swap) && val_as_int(swap) <= 0)
		field_invalid(e, FIELD(FIELD(FIELD(NULL, "metadata"), "nodeSwapStatus"), "capacity"), swap,
			      "must be greater than zero");
	check_declared_features(e, node);
	check_pod_cidrs(e, val_get(node, spec, podCIDRs));
}

static void check_pod_cidrs_change(struct field_errors *e, struct val now, struct val before)
{
	static const char text[] = "node updates may not change podCIDR except from \"\" to valid";
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "podCIDRs");

	if (val_len(before) == 0)
		return;
	if (val_len(before) != val_len(now)) {
		field_forbidden(e, at, text);
		return;
	}
	for (size_t i = 0; i < val_len(before); i++)
		if (!val_equal(val_at(now, i), val_at(before, i)))
			field_forbidden(e, at, text);
}

/* What holds for updates of both the node and its status. */
static void check_node_change(struct field_errors *e, struct val node, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec");
	str provider = val_str(old, spec, providerID);

	check_meta_update(e, node, old);
	check_node_annotations(e, node);
	check_node_resources(e, node);
	check_declared_features(e, node);
	check_addresses(e, val_get(node, status, addresses));
	check_pod_cidrs_change(e, val_get(node, spec, podCIDRs), val_get(old, spec, podCIDRs));
	if (provider.n && !str_eq(provider, val_str(node, spec, providerID)))
		field_forbidden(e, FIELD(at, "providerID"),
				"node updates may not change providerID except from \"\" to valid");
	if (val_has(node, spec, configSource))
		check_config_source(e, FIELD(at, "configSource"), val_get(node, spec, configSource), false);
	check_config_status(e, val_get(node, status, config));
	check_taints(e, FIELD(FIELD(NULL, "metadata"), "taints"), val_get(node, spec, taints));
	if (!str_eq(val_str(node, spec, externalID), val_str(old, spec, externalID)))
		field_forbidden(e, FIELD(at, "externalID"), "may not be updated");
}

void check_node_update(struct field_errors *e, struct val node, struct val old)
{
	check_node(e, node);
	check_node_change(e, node, old);
}

void check_node_status(struct field_errors *e, str subresource, struct val node, struct val old)
{
	(void)subresource;
	check_node_change(e, node, old);
}
