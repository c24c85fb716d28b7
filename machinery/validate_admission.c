/* Admission policies and their bindings. The language of the expressions is not looked at here. */
#include "codec/atoms.h"
#include "machinery/jsonpath.h"
#include "machinery/validate_groups.h"

enum { AUDIT_ANNOTATIONS_MAX = 20, AUDIT_EXPRESSION_MAX = 5 << 10 };

/* ---- what policies and bindings share ---- */

static void check_policy_meta(struct field_errors *e, struct val policy)
{
	check_generic_meta(e, FIELD(NULL, "metadata"), val_get(policy, metadata), false, name_rule_subdomain);
}

static void check_named_rule(struct field_errors *e, const struct field_path *at, struct val rule)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	VAL_EACH(name, val_get(rule, resourceNames)) {
		const struct field_path *item = FIELD_INDEX(FIELD(at, "resourceNames"), i++);
		check_name(e, item, val_as_str(*name), name_check_path_segment);
		if (!set_add(&seen, val_as_str(*name)))
			field_duplicate(e, item, *name);
	}
	check_admission_rule(e, at, rule);
}

static void check_given_selector(struct field_errors *e, const struct field_path *at, struct val selector)
{
	if (val_exists(selector))
		check_label_selector(e, at, selector, false);
	else
		field_missing(e, at);
}

static void check_match_resources(struct field_errors *e, const struct field_path *at, struct val match)
{
	size_t i = 0;

	if (!val_exists(match))
		return;
	if (val_has(match, matchPolicy))
		check_one_of(e, FIELD(at, "matchPolicy"), val_str(match, matchPolicy), match_policies);
	else
		field_missing(e, FIELD(at, "matchPolicy"));
	check_given_selector(e, FIELD(at, "namespaceSelector"), val_get(match, namespaceSelector));
	check_given_selector(e, FIELD(at, "objectSelector"), val_get(match, objectSelector));
	VAL_EACH(rule, val_get(match, resourceRules))
		check_named_rule(e, FIELD_INDEX(FIELD(at, "resourceRules"), i++), *rule);
	i = 0;
	VAL_EACH(rule, val_get(match, excludeResourceRules))
		check_named_rule(e, FIELD_INDEX(FIELD(at, "excludeResourceRules"), i++), *rule);
}

/* Deletions cannot be changed. */
static void check_mutating_operations(struct field_errors *e, const struct field_path *at, struct val match)
{
	static const str operations[] = { STR_INIT("*"), STR_INIT("CONNECT"), STR_INIT("CREATE"), STR_INIT("UPDATE"),
					  { NULL, 0 } };
	VAL_EACH(rule, val_get(match, resourceRules))
		VAL_EACH(operation, val_get(*rule, operations))
			check_one_of(e, FIELD(FIELD(at, "resourceRules"), "operations"), val_as_str(*operation), operations);
}

static void check_param_version(struct field_errors *e, const struct field_path *at, str text)
{
	str group = STR_NONE, version = text;

	if (!check_given(e, at, text))
		return;
	if (str_cut(text, '/', &group, &version)) {
		if (str_chr(version, '/') >= 0) {
			field_invalid(e, at, VAL_STR(text), "unexpected GroupVersion string: " STR_FMT, STR_ARG(text));
			return;
		}
	} else {
		group = STR_NONE;
		version = text;
	}
	if (group.n)
		check_name_joined(e, at, group, name_check_dns1123_subdomain, ",");
	if (version.n == 0)
		field_invalid(e, at, VAL_STR(text), "version must be specified");
	else
		check_name_joined(e, at, version, name_check_dns1035_label, ",");
}

static void check_param_kind(struct field_errors *e, const struct field_path *at, struct val param)
{
	str kind = val_str(param, kind);
	struct name_errors found;

	if (!val_exists(param))
		return;
	check_param_version(e, FIELD(at, "apiVersion"), val_str(param, apiVersion));
	if (check_given(e, FIELD(at, "kind"), kind) && name_check_dns1035_label(ascii_lower(e->arena, kind), &found))
		field_invalid(e, FIELD(at, "kind"), VAL_STR(kind),
			      "may have mixed case, but should otherwise match: " STR_FMT,
			      STR_ARG(name_errors_join(e->arena, &found, ",")));
}

/* What both kinds of policies say before what they do; conditions are left out when an update did not touch them. */
static void check_policy_head(struct field_errors *e, const struct field_path *at, struct val spec, bool mutating,
			      bool same_conditions)
{
	struct val match = val_get(spec, matchConstraints);

	if (val_has(spec, failurePolicy))
		check_one_of(e, FIELD(at, "failurePolicy"), val_str(spec, failurePolicy), failure_policies);
	else
		field_missing(e, FIELD(at, "failurePolicy"));
	check_param_kind(e, FIELD(at, "paramKind"), val_get(spec, paramKind));
	if (!val_exists(match)) {
		field_missing(e, FIELD(at, "matchConstraints"));
	} else {
		check_match_resources(e, FIELD(at, "matchConstraints"), match);
		if (val_len(val_get(match, resourceRules)) == 0)
			field_missing(e, FIELD(FIELD(at, "matchConstraints"), "resourceRules"));
		if (mutating)
			check_mutating_operations(e, FIELD(at, "matchConstraints"), match);
	}
	if (!same_conditions)
		check_match_conditions(e, FIELD(at, "matchConditions"), val_get(spec, matchConditions));
}

static bool has_same_conditions(struct val now, struct val before)
{
	return val_semantic_equal(TYPE(admissionregistration_v1, ParamKind), val_get(now, paramKind),
				  val_get(before, paramKind)) &&
	       val_semantic_equal(TYPE(admissionregistration_v1, MatchCondition), val_get(now, matchConditions),
				  val_get(before, matchConditions));
}

static bool is_identifier(str name)
{
	static const str reserved[] = {
		STR_INIT("true"), STR_INIT("false"), STR_INIT("null"), STR_INIT("in"), STR_INIT("as"),
		STR_INIT("break"), STR_INIT("const"),
		STR_INIT("continue"), STR_INIT("else"), STR_INIT("for"), STR_INIT("function"), STR_INIT("if"),
		STR_INIT("import"), STR_INIT("let"), STR_INIT("loop"), STR_INIT("package"), STR_INIT("namespace"),
		STR_INIT("return"), STR_INIT("var"), STR_INIT("void"), STR_INIT("while"), { NULL, 0 },
	};
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return name.n && !str_in(name, reserved);
}

static void check_variables(struct field_errors *e, const struct field_path *at, struct val variables)
{
	size_t i = 0;
	VAL_EACH(variable, variables) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str name = val_str(*variable, name);
		if (str_trim(name).n == 0)
			field_required(e, FIELD(item, "name"), "name is not specified");
		else if (!is_identifier(name))
			field_invalid(e, FIELD(item, "name"), VAL_STR(name), "must be a valid CEL identifier");
		if (str_trim(val_str(*variable, expression)).n == 0)
			field_required(e, FIELD(item, "expression"), "expression is not specified");
	}
}

static void check_param_ref(struct field_errors *e, const struct field_path *at, struct val ref)
{
	static const str actions[] = { STR_INIT("Deny"), STR_INIT("Allow"), { NULL, 0 } };
	static const char text[] = "name and selector are mutually exclusive";
	str name = val_str(ref, name);
	bool selects = val_has(ref, selector);

	if (!val_exists(ref))
		return;
	if (name.n)
		check_name(e, FIELD(at, "name"), name, name_check_path_segment);
	if (name.n && selects)
		field_forbidden(e, FIELD(at, "name"), text);
	check_label_selector(e, FIELD(at, "selector"), val_get(ref, selector), false);
	if (name.n && selects)
		field_forbidden(e, FIELD(at, "selector"), text);
	if (name.n == 0 && !selects)
		field_required(e, at, "one of name or selector must be specified");
	check_required_one_of(e, FIELD(at, "parameterNotFoundAction"), val_str(ref, parameterNotFoundAction), actions);
}

/* ---- ValidatingAdmissionPolicy ---- */

static void check_validation(struct field_errors *e, const struct field_path *at, struct val validation)
{
	static const str reasons[] = { STR_INIT("Forbidden"), STR_INIT("Invalid"), STR_INIT("RequestEntityTooLarge"),
				       { NULL, 0 } };
	str expression = val_str(validation, messageExpression), message = val_str(validation, message);
	str trimmed = str_trim(message);

	if (str_trim(val_str(validation, expression)).n == 0)
		field_required(e, FIELD(at, "expression"), "expression is not specified");
	if (expression.n && str_trim(expression).n == 0)
		field_invalid(e, FIELD(at, "messageExpression"), VAL_STR(expression), "must be non-empty if specified");
	if (message.n && trimmed.n == 0)
		field_invalid(e, FIELD(at, "message"), VAL_STR(message), "must be non-empty if specified");
	else if (str_chr(trimmed, '\n') >= 0 || str_chr(trimmed, '\r') >= 0)
		field_invalid(e, FIELD(at, "message"), VAL_STR(message), "must not contain line breaks");
	if (val_has(validation, reason))
		check_one_of(e, FIELD(at, "reason"), val_str(validation, reason), reasons);
}

static void check_audit_annotations(struct field_errors *e, const struct field_path *at, struct val annotations, str policy)
{
	CLEANUP(map_done) struct map keys = MAP_INIT;
	size_t i = 0;

	if (val_len(annotations) > AUDIT_ANNOTATIONS_MAX)
		field_invalid(e, at, internal_form(e->arena, TYPE(admissionregistration_v1, AuditAnnotation), annotations),
			      "must not have more than %d auditAnnotations", AUDIT_ANNOTATIONS_MAX);
	VAL_EACH(annotation, annotations) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str key = val_str(*annotation, key), expression = str_trim(val_str(*annotation, valueExpression));
		if (policy.n)
			check_label_key(e, FIELD(item, "key"),
					arena_printf(e->arena, STR_FMT "/" STR_FMT, STR_ARG(policy), STR_ARG(key)));
		else
			field_invalid(e, FIELD(item, "key"), VAL_STR(key), "requires metadata.name be non-empty");
		if (expression.n == 0)
			field_required(e, FIELD(item, "valueExpression"), "valueExpression is not specified");
		else if (expression.n > AUDIT_EXPRESSION_MAX)
			field_required(e, FIELD(item, "valueExpression"), "must not exceed %d bytes in length",
				       AUDIT_EXPRESSION_MAX);
		if (!set_add(&keys, key))
			field_duplicate(e, FIELD(item, "key"), VAL_STR(key));
	}
}

static void check_validating_all(struct field_errors *e, struct val policy, bool same_conditions)
{
	static const char text[] = "validations or auditAnnotations must contain at least one item";
	const struct field_path *at = FIELD(NULL, "spec");
	struct val spec = val_get(policy, spec), validations = val_get(spec, validations);
	struct val annotations = val_get(spec, auditAnnotations);
	size_t i = 0;

	check_policy_meta(e, policy);
	check_policy_head(e, at, spec, false, same_conditions);
	check_variables(e, FIELD(at, "variables"), val_get(spec, variables));
	if (val_len(validations) == 0 && val_len(annotations) == 0) {
		field_required(e, FIELD(at, "validations"), text);
		field_required(e, FIELD(at, "auditAnnotations"), text);
	}
	VAL_EACH(validation, validations)
		check_validation(e, FIELD_INDEX(FIELD(at, "validations"), i++), *validation);
	check_audit_annotations(e, FIELD(at, "auditAnnotations"), annotations, val_str(policy, metadata, name));
}

void check_validating_policy(struct field_errors *e, struct val policy) { check_validating_all(e, policy, false); }

void check_validating_policy_update(struct field_errors *e, struct val policy, struct val old)
{
	check_validating_all(e, policy, has_same_conditions(val_get(policy, spec), val_get(old, spec)));
}

static void check_expression_warnings(struct field_errors *e, const struct field_path *at, struct val warnings)
{
	size_t i = 0;
	VAL_EACH(warning, warnings) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str ref = str_trim(val_str(*warning, fieldRef));
		const struct jsonpath *path;
		struct err err = ERR_INIT;
		check_given(e, FIELD(item, "warning"), val_str(*warning, warning));
		if (check_given(e, FIELD(item, "fieldRef"), ref) &&
		    jsonpath_parse(e->arena, arena_printf(e->arena, "{" STR_FMT "}", STR_ARG(ref)), &path, &err) < 0)
			field_invalid(e, FIELD(item, "fieldRef"), VAL_STR(ref), "invalid JSONPath: %s", err.msg);
	}
}

void check_validating_policy_status(struct field_errors *e, str subresource, struct val policy, struct val old)
{
	const struct field_path *at = FIELD(NULL, "status");

	(void)subresource, (void)old;
	check_expression_warnings(e, FIELD(FIELD(at, "typeChecking"), "expressionWarnings"),
				  val_get(policy, status, typeChecking, expressionWarnings));
	check_conditions(e, FIELD(at, "conditions"), val_get(policy, status, conditions));
}

static void check_binding_head(struct field_errors *e, const struct field_path *at, struct val spec)
{
	check_given_name(e, FIELD(at, "policyName"), val_str(spec, policyName), name_check_dns1123_subdomain);
	check_param_ref(e, FIELD(at, "paramRef"), val_get(spec, paramRef));
	check_match_resources(e, FIELD(at, "matchResources"), val_get(spec, matchResources));
}

void check_validating_binding(struct field_errors *e, struct val binding)
{
	static const str supported[] = { STR_INIT("Audit"), STR_INIT("Deny"), STR_INIT("Warn"), { NULL, 0 } };
	CLEANUP(map_done) struct map seen = MAP_INIT;
	const struct field_path *at = FIELD(NULL, "spec"), *at_actions = FIELD(at, "validationActions");
	struct val actions = val_get(binding, spec, validationActions);
	size_t i = 0;

	check_policy_meta(e, binding);
	check_binding_head(e, at, val_get(binding, spec));
	VAL_EACH(action, actions) {
		const struct field_path *item = FIELD_INDEX(at_actions, i++);
		check_one_of(e, item, val_as_str(*action), supported);
		if (!set_add(&seen, val_as_str(*action)))
			field_duplicate(e, item, *action);
	}
	if (set_has(&seen, STR("Deny")) && set_has(&seen, STR("Warn")))
		field_invalid(e, at_actions, actions,
			      "must not contain both Deny and Warn (repeating the same validation failure information in"
			      " the API response and headers serves no purpose)");
	if (val_len(actions) == 0)
		field_required(e, at_actions, "at least one validation action is required");
}

/* ---- MutatingAdmissionPolicy ---- */

/* The member that the patch type asks for, and only that. */
static void check_mutation(struct field_errors *e, const struct field_path *at, struct val mutation)
{
	static const str types[] = { STR_INIT("ApplyConfiguration"), STR_INIT("JSONPatch"), { NULL, 0 } };
	str type = val_str(mutation, patchType);
	bool patches = str_eq(type, STR("JSONPatch"));
	atom wanted = patches ? A_jsonPatch : A_applyConfiguration, other = patches ? A_applyConfiguration : A_jsonPatch;
	const struct field_path *at_wanted = FIELD_STR(at, atom_str(wanted));

	if (!str_in(type, types)) {
		check_required_one_of(e, FIELD(at, "patchType"), type, types);
		return;
	}
	if (!val_exists(val_member(mutation, wanted)))
		field_required(e, at_wanted, "must be specified when patchType is " STR_FMT, STR_ARG(type));
	else
		check_given(e, FIELD(at_wanted, "expression"), str_trim(val_str(val_member(mutation, wanted), expression)));
	str shown = arena_printf(e->arena, "{" STR_FMT "}", STR_ARG(atom_str(other)));
	if (val_exists(val_member(mutation, other)))
		field_invalid(e, FIELD_STR(at, atom_str(other)), VAL_STR(shown),
			      "must not be specified when patchType is " STR_FMT, STR_ARG(type));
}

static void check_mutating_all(struct field_errors *e, struct val policy, bool same_conditions)
{
	const struct field_path *at = FIELD(NULL, "spec");
	struct val spec = val_get(policy, spec), mutations = val_get(spec, mutations);
	size_t i = 0;

	check_policy_meta(e, policy);
	check_policy_head(e, at, spec, true, same_conditions);
	check_variables(e, FIELD(at, "variables"), val_get(spec, variables));
	if (val_len(mutations) == 0)
		field_required(e, FIELD(at, "mutations"), "mutations must contain at least one item");
	VAL_EACH(mutation, mutations)
		check_mutation(e, FIELD_INDEX(FIELD(at, "mutations"), i++), *mutation);
	check_required_one_of(e, FIELD(at, "reinvocationPolicy"), val_str(spec, reinvocationPolicy), reinvocation_policies);
}

void check_mutating_policy(struct field_errors *e, struct val policy) { check_mutating_all(e, policy, false); }

void check_mutating_policy_update(struct field_errors *e, struct val policy, struct val old)
{
	check_mutating_all(e, policy, has_same_conditions(val_get(policy, spec), val_get(old, spec)));
}

void check_mutating_binding(struct field_errors *e, struct val binding)
{
	const struct field_path *at = FIELD(NULL, "spec");

	check_policy_meta(e, binding);
	check_binding_head(e, at, val_get(binding, spec));
	check_mutating_operations(e, FIELD(at, "matchResources"), val_get(binding, spec, matchResources));
}
