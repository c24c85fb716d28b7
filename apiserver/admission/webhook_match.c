#include "apiserver/admission/webhook_match.h"

#include "codec/atoms.h"

str hook_operation_text(enum admission_operation operation)
{
	static const str texts[] = {
		[ADMISSION_CREATE] = STR_INIT("CREATE"), [ADMISSION_UPDATE] = STR_INIT("UPDATE"),
		[ADMISSION_DELETE] = STR_INIT("DELETE"), [ADMISSION_CONNECT] = STR_INIT("CONNECT"),
	};
	return texts[operation];
}

/* One of the list is it, or is "*". */
static bool lists(struct val list, str text)
{
	VAL_EACH(item, list)
		if (str_eq(val_as_str(*item), STR("*")) || str_eq(val_as_str(*item), text))
			return true;
	return false;
}

/* "pods", "pods/status", "pods/" followed by "*", "*" and so on. */
static bool lists_resource(struct val list, const struct hook_target *t)
{
	VAL_EACH(item, list) {
		str resource, subresource;
		str_cut(val_as_str(*item), '/', &resource, &subresource);
		if ((str_eq(resource, STR("*")) || str_eq(resource, t->resource)) &&
		    (str_eq(subresource, STR("*")) || str_eq(subresource, t->subresource)))
			return true;
	}
	return false;
}

static bool has_scope(struct val scope, const struct hook_target *t)
{
	str text = val_as_str(scope);
	bool is_namespace = !t->group.n && str_eq(t->version, STR("v1")) && str_eq(t->resource, STR("namespaces"));
	bool namespaced = t->namespace.n && !is_namespace;
	if (!val_exists(scope) || str_eq(text, STR("*")))
		return true;
	return str_eq(text, STR("Namespaced")) ? namespaced : str_eq(text, STR("Cluster")) && !namespaced;
}

bool hook_rule_matches(struct val rule, const struct hook_target *t)
{
	return has_scope(val_get(rule, scope), t) && lists(val_get(rule, operations), hook_operation_text(t->operation)) &&
	       lists(val_get(rule, apiGroups), t->group) && lists(val_get(rule, apiVersions), t->version) &&
	       lists_resource(val_get(rule, resources), t);
}

bool hook_rules_match(struct val rules, const struct hook_target *t)
{
	VAL_EACH(rule, rules)
		if (hook_rule_matches(*rule, t))
			return true;
	return false;
}

bool hook_is_exempt(const struct request *q)
{
	static const str resources[] = {
		STR_INIT("validatingwebhookconfigurations"), STR_INIT("mutatingwebhookconfigurations"),
		STR_INIT("validatingadmissionpolicies"), STR_INIT("validatingadmissionpolicybindings"),
		STR_INIT("mutatingadmissionpolicies"), STR_INIT("mutatingadmissionpolicybindings"),
	};
	if (!str_eq(q->group, STR("admissionregistration.k8s.io")))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(resources); i++)
		if (str_eq(q->resource, resources[i]))
			return true;
	return false;
}
