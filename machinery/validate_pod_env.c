/* Environment variables of containers, and references to fields of the pod, which volumes have too. */
#include "codec/atoms.h"
#include "machinery/validate_pod.h"

/* ---- references ---- */

/* metadata.labels['key']: the path before the brackets and the key; false when there are none. */
static bool split_subscript(str path, str *ret_path, str *ret_key)
{
	ptrdiff_t open = str_find(path, STR("['"));
	if (!str_ends(path, STR("']")) || open <= 0 || path.n < (size_t)open + 4)
		return false;
	*ret_path = str_head(path, (size_t)open);
	*ret_key = str_span(path.p + open + 2, path.n - (size_t)open - 4);
	return true;
}

static bool takes_subscript(str path)
{
	return str_eq(path, STR("metadata.annotations")) || str_eq(path, STR("metadata.labels"));
}

/* What pods have to offer; an older name of spec.nodeName is one of them. */
static bool is_pod_field(str path)
{
	static const str known[] = {
		STR_INIT("metadata.annotations"), STR_INIT("metadata.labels"), STR_INIT("metadata.name"),
		STR_INIT("metadata.namespace"), STR_INIT("metadata.uid"), STR_INIT("spec.nodeName"),
		STR_INIT("spec.restartPolicy"), STR_INIT("spec.serviceAccountName"), STR_INIT("spec.schedulerName"),
		STR_INIT("status.phase"), STR_INIT("status.hostIP"), STR_INIT("status.hostIPs"), STR_INIT("status.podIP"),
		STR_INIT("status.podIPs"), STR_INIT("spec.host"), { NULL, 0 },
	};
	return str_in(path, known);
}

static void check_subscript(struct field_errors *e, const struct field_path *at, str path, str key)
{
	check_label_key(e, at, str_eq(path, STR("metadata.annotations")) ? ascii_lower(e->arena, key) : key);
}

void check_field_ref(struct field_errors *e, const struct field_path *at, struct val ref, const str *paths)
{
	str version = val_str(ref, apiVersion), text = val_str(ref, fieldPath), path, key;

	if (version.n == 0)
		field_missing(e, FIELD(at, "apiVersion"));
	else if (text.n == 0)
		field_missing(e, FIELD(at, "fieldPath"));
	else if (!str_eq(version, STR("v1")))
		field_invalid(e, FIELD(at, "fieldPath"), VAL_STR(text),
			      "error converting fieldPath: unsupported pod version: " STR_FMT,
			      STR_ARG(version));
	else if (split_subscript(text, &path, &key) && takes_subscript(path))
		check_subscript(e, at, path, key);
	else if (split_subscript(text, &path, &key))
		field_invalid(e, FIELD(at, "fieldPath"), VAL_STR(text),
			      "error converting fieldPath: field label does not support subscript: " STR_FMT,
			      STR_ARG(text));
	else if (!is_pod_field(text))
		field_invalid(e, FIELD(at, "fieldPath"), VAL_STR(text),
			      "error converting fieldPath: field label not supported: " STR_FMT,
			      STR_ARG(text));
	else if (str_eq(text, STR("spec.host")))
		check_one_of(e, FIELD(at, "fieldPath"), STR("spec.nodeName"), paths);
	else
		check_one_of(e, FIELD(at, "fieldPath"), text, paths);
}

static bool is_huge_page_ref(str resource)
{
	return str_starts(resource, STR("requests.hugepages-")) || str_starts(resource, STR("limits.hugepages-"));
}

static void check_divisor(struct field_errors *e, const struct field_path *at, str resource, struct val divisor)
{
	static const str of_cpu[] = { STR_INIT("1m"), STR_INIT("1"), { NULL, 0 } };
	static const str of_bytes[] = {
		STR_INIT("1"), STR_INIT("1k"), STR_INIT("1M"), STR_INIT("1G"), STR_INIT("1T"), STR_INIT("1P"),
		STR_INIT("1E"), STR_INIT("1Ki"), STR_INIT("1Mi"), STR_INIT("1Gi"), STR_INIT("1Ti"), STR_INIT("1Pi"),
		STR_INIT("1Ei"), { NULL, 0 },
	};
	str text = val_as_str(divisor), kind, name;

	if (quantity_of(divisor).nanos == 0)
		return;
	str_cut(resource, '.', &kind, &name);
	if (!str_eq(kind, STR("limits")) && !str_eq(kind, STR("requests")))
		return;
	const char *what = str_eq(name, STR("memory")) ? "memory" :
			   str_eq(name, STR("ephemeral-storage")) ? "local ephemeral storage" :
			   is_huge_page_ref(resource) ? "hugepages" : NULL;
	if (str_eq(name, STR("cpu")) && !str_in(text, of_cpu))
		field_invalid(e, at, VAL_STR(resource),
			      "only divisor's values 1m and 1 are supported with the cpu resource");
	else if (what && !str_in(text, of_bytes))
		field_invalid(e, at, VAL_STR(resource),
			      "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are"
			      " supported with the %s resource",
			      what);
}

void check_resource_ref(struct field_errors *e, const struct field_path *at, struct val ref, bool in_volume)
{
	static const str known[] = {
		STR_INIT("limits.cpu"), STR_INIT("limits.ephemeral-storage"), STR_INIT("limits.memory"),
		STR_INIT("requests.cpu"), STR_INIT("requests.ephemeral-storage"), STR_INIT("requests.memory"), { NULL, 0 },
	};
	str resource = val_str(ref, resource);

	if (in_volume && val_str(ref, containerName).n == 0)
		field_missing(e, FIELD(at, "containerName"));
	else if (resource.n == 0)
		field_missing(e, FIELD(at, "resource"));
	else if (!is_huge_page_ref(resource))
		check_one_of(e, FIELD(at, "resource"), resource, known);
	check_divisor(e, FIELD(at, "divisor"), resource, val_get(ref, divisor));
}

/* ---- variables ---- */

/* A key of a ConfigMap or Secret. */
static void check_key_ref(struct field_errors *e, const struct field_path *at, struct val ref)
{
	check_name(e, FIELD(at, "name"), val_str(ref, name), name_check_dns1123_subdomain);
	if (val_str(ref, key).n == 0)
		field_missing(e, FIELD(at, "key"));
	else
		check_name(e, FIELD(at, "key"), val_str(ref, key), name_check_config_key);
}

static void check_file_ref(struct field_errors *e, const struct field_path *at, struct val ref)
{
	if (val_str(ref, key).n == 0)
		field_missing(e, FIELD(at, "key"));
	else
		check_name(e, FIELD(at, "key"), val_str(ref, key), name_check_env_var_relaxed);
	if (val_str(ref, volumeName).n == 0)
		field_missing(e, FIELD(at, "volumeName"));
	else
		check_name(e, FIELD(at, "volumeName"), val_str(ref, volumeName), name_check_dns1123_label);
	if (val_str(ref, path).n == 0)
		field_missing(e, FIELD(at, "path"));
	else
		check_no_backsteps(e, FIELD(at, "path"), val_str(ref, path));
}

static void check_value_from(struct field_errors *e, const struct field_path *at, struct val var)
{
	static const str paths[] = {
		STR_INIT("metadata.name"), STR_INIT("metadata.namespace"), STR_INIT("metadata.uid"),
		STR_INIT("spec.nodeName"), STR_INIT("spec.serviceAccountName"), STR_INIT("status.hostIP"),
		STR_INIT("status.hostIPs"), STR_INIT("status.podIP"), STR_INIT("status.podIPs"), { NULL, 0 },
	};
	struct val from = val_get(var, valueFrom);

	if (val_has(from, fieldRef))
		check_field_ref(e, FIELD(at, "fieldRef"), val_get(from, fieldRef), paths);
	if (val_has(from, resourceFieldRef))
		check_resource_ref(e, FIELD(at, "resourceFieldRef"), val_get(from, resourceFieldRef), false);
	if (val_has(from, configMapKeyRef))
		check_key_ref(e, FIELD(at, "configMapKeyRef"), val_get(from, configMapKeyRef));
	if (val_has(from, secretKeyRef))
		check_key_ref(e, FIELD(at, "secretKeyRef"), val_get(from, secretKeyRef));
	if (val_has(from, fileKeyRef))
		check_file_ref(e, FIELD(at, "fileKeyRef"), val_get(from, fileKeyRef));
	if (val_len(from) == 0)
		field_invalid(e, at, VAL_LIT(""),
			      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`"
			      " or `fileKeyRef`");
	else if (val_str(var, value).n)
		field_invalid(e, at, VAL_LIT(""), "may not be specified when `value` is not empty");
	else if (val_len(from) > 1)
		field_invalid(e, at, VAL_LIT(""), "may not have more than one field specified at a time");
}

void check_env(struct pod_check *c, const struct field_path *at, struct val vars)
{
	size_t i = 0;
	VAL_EACH(var, vars) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (val_str(*var, name).n == 0)
			field_missing(c->e, FIELD(item, "name"));
		else
			check_name(c->e, FIELD(item, "name"), val_str(*var, name), name_check_env_var_relaxed);
		if (val_has(*var, valueFrom))
			check_value_from(c->e, FIELD(item, "valueFrom"), *var);
	}
}

static void check_env_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	struct name_errors found;
	str name = val_str(source, name);

	if (name.n == 0)
		field_missing(e, FIELD(at, "name"));
	else if (name_rule_subdomain(name, true, &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, FIELD(at, "name"), VAL_STR(name), STR_FMT, STR_ARG(found.text[i]));
}

void check_env_from(struct pod_check *c, const struct field_path *at, struct val sources)
{
	size_t i = 0;
	VAL_EACH(source, sources) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		bool map = val_has(*source, configMapRef), secret = val_has(*source, secretRef);

		if (val_str(*source, prefix).n)
			check_name(c->e, FIELD(item, "prefix"), val_str(*source, prefix), name_check_env_var_relaxed);
		if (map)
			check_env_source(c->e, FIELD(item, "configMapRef"), val_get(*source, configMapRef));
		if (secret)
			check_env_source(c->e, FIELD(item, "secretRef"), val_get(*source, secretRef));
		if (!map && !secret)
			field_invalid(c->e, at, VAL_LIT(""), "must specify one of: `configMapRef` or `secretRef`");
		else if (map && secret)
			field_invalid(c->e, at, VAL_LIT(""), "may not have more than one field specified at a time");
	}
}
