/* FlowSchema and PriorityLevelConfiguration. */
#include "codec/atoms.h"
#include "codec/json.h"
#include "machinery/validate_groups.h"

enum { PRECEDENCE_MAX = 10000, QUEUES_MAX = 10 * 1000 * 1000, HASH_BITS = 60 };

static bool has_wildcard(struct val list) { return list_has(list, STR("*")); }

/* ---- FlowSchema: rules ---- */

static void check_verbs(struct field_errors *e, const struct field_path *at, struct val verbs)
{
	static const str supported[] = {
		STR_INIT("create"), STR_INIT("delete"), STR_INIT("deletecollection"), STR_INIT("get"), STR_INIT("list"),
		STR_INIT("patch"), STR_INIT("proxy"), STR_INIT("update"), STR_INIT("watch"), { NULL, 0 },
	};
	bool known = true;

	VAL_EACH(verb, verbs)
		known &= str_in(val_as_str(*verb), supported);
	if (val_len(verbs) == 0)
		field_required(e, at, "verbs must contain at least one value");
	else if (has_wildcard(verbs) && val_len(verbs) > 1)
		field_invalid(e, at, verbs, "if '*' is present, must not specify other verbs");
	else if (!has_wildcard(verbs) && !known)
		field_not_supported(e, at, verbs, supported);
}

/* What is wrong with a path that may end in a wildcard, or NULL. */
static const char *url_error(str path)
{
	ptrdiff_t star = str_chr(path, '*');
	if (path.n == 0)
		return "must not be empty";
	if (str_eq(path, STR("/")))
		return NULL;
	if (path.p[0] != '/')
		return "must start with slash";
	if (str_chr(path, ' ') >= 0)
		return "must not contain white-space";
	if (str_find(path, STR("//")) >= 0)
		return "must not contain double slash";
	if (star >= 0 && (star != str_rchr(path, '*') || !str_ends(path, STR("/*"))))
		return "wildcard can only do suffix matching";
	return NULL;
}

static void check_non_resource_rule(struct field_errors *e, const struct field_path *at, struct val rule)
{
	const struct field_path *at_urls = FIELD(at, "nonResourceURLs");
	struct val urls = val_get(rule, nonResourceURLs);
	size_t i = 0;

	check_verbs(e, FIELD(at, "verbs"), val_get(rule, verbs));
	if (val_len(urls) == 0)
		field_required(e, at_urls, "nonResourceURLs must contain at least one value");
	if (has_wildcard(urls)) {
		if (val_len(urls) > 1)
			field_invalid(e, at_urls, urls, "if '*' is present, must not specify other non-resource URLs");
		return;
	}
	VAL_EACH(url, urls) {
		const char *wrong = url_error(val_as_str(*url));
		if (wrong)
			field_invalid(e, FIELD_INDEX(at_urls, i), *url, "%s", wrong);
		i++;
	}
}

static void check_namespaces(struct field_errors *e, const struct field_path *at, struct val rule)
{
	struct val namespaces = val_get(rule, namespaces);
	struct name_errors found;
	size_t i = 0;

	if (val_len(namespaces) == 0 && !val_bool(rule, clusterScope))
		field_required(e, at, "resource rules that are not cluster scoped must supply at least one namespace");
	if (has_wildcard(namespaces)) {
		if (val_len(namespaces) > 1)
			field_invalid(e, at, namespaces, "if '*' is present, must not specify other namespaces");
		return;
	}
	VAL_EACH(namespace, namespaces) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (!name_check_dns1123_label(val_as_str(*namespace), &found))
			continue;
		for (size_t j = 0; j < found.n; j++)
			field_invalid(e, item, *namespace,
				      "each member of this list must be '*' or a DNS-1123 label; " STR_FMT,
				      STR_ARG(found.text[j]));
	}
}

static void check_resource_rule(struct field_errors *e, const struct field_path *at, struct val rule)
{
	struct val groups = val_get(rule, apiGroups), resources = val_get(rule, resources);

	check_verbs(e, FIELD(at, "verbs"), val_get(rule, verbs));
	if (val_len(groups) == 0)
		field_required(e, FIELD(at, "apiGroups"), "resource rules must supply at least one api group");
	else if (val_len(groups) > 1 && has_wildcard(groups))
		field_invalid(e, FIELD(at, "apiGroups"), groups, "if '*' is present, must not specify other api groups");
	if (val_len(resources) == 0)
		field_required(e, FIELD(at, "resources"), "resource rules must supply at least one resource");
	else if (val_len(resources) > 1 && has_wildcard(resources))
		field_invalid(e, FIELD(at, "resources"), resources, "if '*' is present, must not specify other resources");
	check_namespaces(e, FIELD(at, "namespaces"), rule);
}

/* ---- FlowSchema: subjects ---- */

static void check_account(struct field_errors *e, const struct field_path *at, struct val account)
{
	str name = val_str(account, name), namespace = val_str(account, namespace);

	if (check_given(e, FIELD(at, "name"), name) && !str_eq(name, STR("*")))
		check_name(e, FIELD(at, "name"), name, name_check_dns1123_subdomain);
	if (namespace.n)
		check_name(e, FIELD(at, "namespace"), namespace, name_check_dns1123_label);
	else
		field_required(e, FIELD(at, "namespace"), "must specify namespace for service account");
}

/* A kind of subject and the member that belongs to it. */
static const struct subject_kind {
	str kind;
	uint16_t member;
} subject_kinds[] = {
	{ STR_INIT("ServiceAccount"), A_serviceAccount },
	{ STR_INIT("User"), A_user },
	{ STR_INIT("Group"), A_group },
};

static void check_subject(struct field_errors *e, const struct field_path *at, struct val subject)
{
	static const str kinds[] = { STR_INIT("Group"), STR_INIT("ServiceAccount"), STR_INIT("User"), { NULL, 0 } };
	str kind = val_str(subject, kind);

	if (!str_in(kind, kinds)) {
		field_not_supported(e, FIELD(at, "kind"), VAL_STR(kind), kinds);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(subject_kinds); i++) {
		const struct subject_kind *k = &subject_kinds[i];
		const struct field_path *at_member = FIELD_STR(at, atom_str(k->member));
		struct val member = val_member(subject, k->member);
		if (!str_eq(k->kind, kind))
			continue;
		if (!val_exists(member))
			field_required(e, at_member, STR_FMT " is required when subject kind is '" STR_FMT "'",
				       STR_ARG(atom_str(k->member)), STR_ARG(kind));
		else if (k->member == A_serviceAccount)
			check_account(e, at_member, member);
		else
			check_given(e, FIELD(at_member, "name"), val_str(member, name));
	}
	for (size_t i = 0; i < ARRAY_LEN(subject_kinds); i++) {
		const struct subject_kind *k = &subject_kinds[i];
		if (!str_eq(k->kind, kind) && val_exists(val_member(subject, k->member)))
			field_forbidden(e, FIELD_STR(at, atom_str(k->member)),
					STR_FMT " is forbidden when subject kind is not '" STR_FMT "'",
					STR_ARG(atom_str(k->member)), STR_ARG(k->kind));
	}
}

static void check_rule(struct field_errors *e, const struct field_path *at, struct val rule)
{
	struct val subjects = val_get(rule, subjects), resources = val_get(rule, resourceRules);
	struct val others = val_get(rule, nonResourceRules);
	size_t i = 0;

	if (val_len(subjects) == 0)
		field_required(e, FIELD(at, "subjects"), "subjects must contain at least one value");
	VAL_EACH(subject, subjects)
		check_subject(e, FIELD_INDEX(FIELD(at, "subjects"), i++), *subject);
	if (val_len(resources) == 0 && val_len(others) == 0)
		field_required(e, at, "at least one of resourceRules and nonResourceRules has to be non-empty");
	i = 0;
	VAL_EACH(resource, resources)
		check_resource_rule(e, FIELD_INDEX(FIELD(at, "resourceRules"), i++), *resource);
	i = 0;
	VAL_EACH(other, others)
		check_non_resource_rule(e, FIELD_INDEX(FIELD(at, "nonResourceRules"), i++), *other);
}

/* ---- objects that the server keeps in place ---- */

/* Of both kinds, the specs that objects of these names must have. */
static const struct fixed {
	const struct type *type;
	str name, spec;
} fixed[] = {
#define EVERYTHING                                                                                                              \
	"\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"clusterScope\":true,\"namespaces\":[\"*\"]}]," \
	"\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]"
#define GROUP(name) "{\"kind\":\"Group\",\"group\":{\"name\":\"" name "\"}}"
	{ TYPE(flowcontrol_v1, FlowSchemaSpec), STR_INIT("exempt"),
	  STR_INIT("{\"priorityLevelConfiguration\":{\"name\":\"exempt\"},\"matchingPrecedence\":1,"
		   "\"rules\":[{\"subjects\":[" GROUP("system:masters") "]," EVERYTHING "}]}") },
	{ TYPE(flowcontrol_v1, FlowSchemaSpec), STR_INIT("catch-all"),
	  STR_INIT("{\"priorityLevelConfiguration\":{\"name\":\"catch-all\"},\"matchingPrecedence\":10000,"
		   "\"distinguisherMethod\":{\"type\":\"ByUser\"},"
		   "\"rules\":[{\"subjects\":[" GROUP("system:unauthenticated") "," GROUP("system:authenticated") "]," EVERYTHING "}]}") },
	{ TYPE(flowcontrol_v1, PriorityLevelConfigurationSpec), STR_INIT("exempt"), STR_INIT("{\"type\":\"Exempt\"}") },
	{ TYPE(flowcontrol_v1, PriorityLevelConfigurationSpec), STR_INIT("catch-all"),
	  STR_INIT("{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":5,\"limitResponse\":{\"type\":\"Reject\"},"
		   "\"lendablePercent\":0}}") },
#undef GROUP
#undef EVERYTHING
};

/* text: what the message says beyond the name; compared: the part of the spec that is fixed. */
static void check_fixed(struct field_errors *e, const struct type *type, struct val object, struct val compared,
			const char *text)
{
	str name = val_str(object, metadata, name);

	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		struct err ignored;
		struct val spec;
		if (fixed[i].type != type || !str_eq(fixed[i].name, name) ||
		    json_decode(e->arena, fixed[i].spec, &(struct json_decode_options){ .type = type }, &spec, &ignored) < 0)
			continue;
		if (!val_semantic_equal(type, compared, spec))
			field_invalid(e, FIELD(NULL, "spec"), internal_form(e->arena, type, val_get(object, spec)),
				      "spec of '" STR_FMT "' %smust equal the fixed value", STR_ARG(name), text);
	}
}

static void check_typed_conditions(struct field_errors *e, struct val conditions)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	VAL_EACH(c, conditions) {
		const struct field_path *at = FIELD(FIELD_INDEX(FIELD(FIELD(NULL, "status"), "conditions"), i++), "type");
		str type = val_str(*c, type);
		if (!set_add(&seen, type))
			field_duplicate(e, at, VAL_STR(type));
		check_given(e, at, type);
	}
}

void check_flow_schema(struct field_errors *e, struct val schema)
{
	static const str methods[] = { STR_INIT("ByNamespace"), STR_INIT("ByUser"), { NULL, 0 } };
	const struct field_path *at = FIELD(NULL, "spec"), *at_precedence = FIELD(at, "matchingPrecedence");
	const struct field_path *at_level = FIELD(FIELD(at, "priorityLevelConfiguration"), "name");
	struct val spec = val_get(schema, spec), method = val_get(spec, distinguisherMethod);
	int64_t precedence = val_int(spec, matchingPrecedence);
	str level = val_str(spec, priorityLevelConfiguration, name);
	size_t i = 0;

	check_meta(e, schema, false, name_rule_subdomain);
	if (precedence <= 0)
		field_invalid(e, at_precedence, val_of_int(precedence), "must be a positive value");
	if (precedence > PRECEDENCE_MAX)
		field_invalid(e, at_precedence, val_of_int(precedence), "must not be greater than %d", PRECEDENCE_MAX);
	if (precedence == 1 && !str_eq(val_str(schema, metadata, name), STR("exempt")))
		field_invalid(e, at_precedence, val_of_int(precedence),
			      "only the schema named 'exempt' may have matchingPrecedence 1");
	if (val_exists(method) && !str_in(val_str(method, type), methods))
		field_not_supported(e, FIELD(FIELD(at, "distinguisherMethod"), "type"),
				    internal_form(e->arena, TYPE(flowcontrol_v1, FlowDistinguisherMethod), method), methods);
	if (level.n)
		check_name(e, at_level, level, name_check_dns1123_subdomain);
	else
		field_required(e, at_level, "must reference a priority level");
	VAL_EACH(rule, val_get(spec, rules))
		check_rule(e, FIELD_INDEX(FIELD(at, "rules"), i++), *rule);
	check_fixed(e, TYPE(flowcontrol_v1, FlowSchemaSpec), schema, spec, "");
	check_typed_conditions(e, val_get(schema, status, conditions));
}

/* ---- PriorityLevelConfiguration ---- */

/* Whether dealing hand cards of a deck takes more bits than the hash of a flow has: deck^hand > 2^HASH_BITS. */
static bool exhausts_hash(int64_t deck, int64_t hand)
{
	uint64_t hands = 1;
	for (; hand && deck > 1; hand--)
		if (__builtin_mul_overflow(hands, (uint64_t)deck, &hands) || hands > UINT64_C(1) << HASH_BITS)
			return true;
	return false;
}

static void check_queuing(struct field_errors *e, const struct field_path *at, struct val queuing)
{
	int64_t limit = val_int(queuing, queueLengthLimit), queues = val_int(queuing, queues);
	int64_t hand = val_int(queuing, handSize);

	if (limit <= 0)
		field_invalid(e, FIELD(at, "queueLengthLimit"), val_of_int(limit), "must be positive");
	if (queues <= 0)
		field_invalid(e, FIELD(at, "queues"), val_of_int(queues), "must be positive");
	else if (queues > QUEUES_MAX)
		field_invalid(e, FIELD(at, "queues"), val_of_int(queues), "must not be greater than %d", QUEUES_MAX);
	if (hand <= 0)
		field_invalid(e, FIELD(at, "handSize"), val_of_int(hand), "must be positive");
	else if (hand > queues)
		field_invalid(e, FIELD(at, "handSize"), val_of_int(hand), "should not be greater than queues (%lld)",
			      (long long)queues);
	else if (exhausts_hash(queues, hand))
		field_invalid(e, FIELD(at, "handSize"), val_of_int(hand),
			      "required entropy bits of deckSize %lld and handSize %lld should not be greater than %d",
			      (long long)queues, (long long)hand, HASH_BITS);
}

static void check_limit_response(struct field_errors *e, const struct field_path *at, struct val response)
{
	static const str types[] = { STR_INIT("Queue"), STR_INIT("Reject"), { NULL, 0 } };
	str type = val_str(response, type);
	struct val queuing = val_get(response, queuing);

	if (str_eq(type, STR("Reject"))) {
		if (val_exists(queuing))
			field_forbidden(e, FIELD(at, "queuing"), "must be nil if limited.limitResponse.type is not Limited");
	} else if (!str_eq(type, STR("Queue"))) {
		check_required_one_of(e, FIELD(at, "type"), type, types);
	} else if (!val_exists(queuing)) {
		field_required(e, FIELD(at, "queuing"), "must not be empty if limited.limitResponse.type is Limited");
	} else {
		check_queuing(e, FIELD(at, "queuing"), queuing);
	}
}

static void check_lendable(struct field_errors *e, const struct field_path *at, struct val part)
{
	struct val percent = val_get(part, lendablePercent);
	if (val_as_int(percent) < 0 || val_as_int(percent) > 100)
		field_invalid(e, FIELD(at, "lendablePercent"), percent, "must be between 0 and 100, inclusive");
}

static void check_shares(struct field_errors *e, const struct field_path *at, struct val part)
{
	struct val shares = val_get(part, nominalConcurrencyShares);
	if (val_as_int(shares) < 0)
		field_invalid(e, FIELD(at, "nominalConcurrencyShares"), shares, "must be a non-negative integer");
}

static void check_limited(struct field_errors *e, const struct field_path *at, struct val limited)
{
	struct val borrowing = val_get(limited, borrowingLimitPercent);

	check_shares(e, at, limited);
	check_limit_response(e, FIELD(at, "limitResponse"), val_get(limited, limitResponse));
	check_lendable(e, at, limited);
	if (val_as_int(borrowing) < 0)
		field_invalid(e, FIELD(at, "borrowingLimitPercent"), borrowing,
			      "if specified, must be a non-negative integer");
}

static void check_level_spec(struct field_errors *e, struct val spec, bool is_exempt)
{
	static const str types[] = { STR_INIT("Exempt"), STR_INIT("Limited"), { NULL, 0 } };
	const struct field_path *at = FIELD(NULL, "spec");
	struct val limited = val_get(spec, limited), exempt = val_get(spec, exempt);
	str type = val_str(spec, type);

	if (is_exempt != str_eq(type, STR("Exempt")))
		field_invalid(e, FIELD(at, "type"), VAL_STR(type), "must be 'Exempt' if and only if `name` is 'exempt'");
	if (str_eq(type, STR("Exempt"))) {
		if (val_exists(limited))
			field_forbidden(e, FIELD(at, "limited"), "must be nil if the type is not Limited");
		check_shares(e, FIELD(at, "exempt"), exempt);
		check_lendable(e, FIELD(at, "exempt"), exempt);
	} else if (str_eq(type, STR("Limited"))) {
		if (val_exists(exempt))
			field_forbidden(e, FIELD(at, "exempt"), "must be nil if the type is Limited");
		if (val_exists(limited))
			check_limited(e, FIELD(at, "limited"), limited);
		else
			field_required(e, FIELD(at, "limited"), "must not be empty when type is Limited");
	} else {
		check_required_one_of(e, FIELD(at, "type"), type, types);
	}
}

void check_priority_level(struct field_errors *e, struct val level)
{
	static const str old_key = STR_INIT("flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares");
	struct val spec = val_get(level, spec);
	bool is_exempt = str_eq(val_str(level, metadata, name), STR("exempt"));

	check_meta(e, level, false, name_rule_subdomain);
	if (val_exists(val_find(val_get(level, metadata, annotations), old_key)))
		field_forbidden(e, FIELD(FIELD(NULL, "metadata"), "annotations"),
				"annotation '" STR_FMT "' is forbidden", STR_ARG(old_key));
	check_level_spec(e, spec, is_exempt);
	check_fixed(e, TYPE(flowcontrol_v1, PriorityLevelConfigurationSpec), level,
		    is_exempt ? val_without(e->arena, spec, exempt) : spec,
		    is_exempt ? "except the 'spec.exempt' field " : "");
	check_typed_conditions(e, val_get(level, status, conditions));
}

void check_flowcontrol_status(struct field_errors *e, str subresource, struct val object, struct val old)
{
	(void)subresource, (void)old;
	check_typed_conditions(e, val_get(object, status, conditions));
}
