/*
 * Dynamic resource allocation: ResourceClaim, ResourceClaimTemplate, DeviceClass and DeviceTaintRule; ResourceSlices are
 * in validate_device_slices.c.
 */
#include "codec/atoms.h"
#include "codec/json.h"
#include "machinery/cel_device.h"
#include "machinery/gates.h"
#include "machinery/ip.h"
#include "machinery/validate_devices.h"

enum {
	REQUESTS_MAX = 32,
	SUBREQUESTS_MAX = 8,
	CONSTRAINTS_MAX = 32,
	CONFIG_MAX = 32,
	SELECTORS_MAX = 32,
	PARAMETERS_MAX = 10 << 10,
	RESERVED_MAX = 256,
	RESULTS_MAX = 32,
	CONDITIONS_MAX = 8,
	BINDING_CONDITIONS_MAX = 4,
	IPS_MAX = 16,
	INTERFACE_MAX = 256,
	HARDWARE_ADDRESS_MAX = 128,
};

/* ---- words ---- */

bool check_size(struct field_errors *e, const struct field_path *at, struct val list, uint32_t max)
{
	if (val_len(list) <= max)
		return true;
	field_too_many(e, at, val_len(list), max);
	return false;
}

void check_unique(struct field_errors *e, const struct field_path *at, struct val list, atom key)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	VAL_EACH(item, list) {
		str text = val_as_str(key ? val_member(*item, key) : *item);
		if (!set_add(&seen, text))
			field_duplicate(e, FIELD_INDEX(at, i), VAL_STR(text));
		i++;
	}
}

void check_pool_name(struct field_errors *e, const struct field_path *at, str name)
{
	str part, rest = name;

	if (!check_given(e, at, name))
		return;
	if (name.n > NAME_SUBDOMAIN_MAX)
		field_too_long(e, at, NAME_SUBDOMAIN_MAX);
	for (bool more = true; more;) {
		more = str_cut(rest, '/', &part, &rest);
		check_name(e, at, part, name_check_dns1123_subdomain);
	}
}

/* What Go's uuid package says about a text that is none, or nothing. */
static str uuid_error(struct arena *a, str s)
{
	if (s.n == 45 && str_starts(ascii_lower(a, s), STR("urn:uuid:")))
		s = str_skip(s, 9);
	else if (s.n == 38 && s.p[0] == '{' && s.p[37] == '}')
		s = str_span(s.p + 1, 36);
	else if (s.n != 36 && s.n != 32)
		return arena_printf(a, "invalid UUID length: %zu", s.n);
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool dash = s.n == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
		bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
		if (dash ? c != '-' : !hex)
			return STR("invalid UUID format");
	}
	return STR_NONE;
}

static void check_share_id(struct field_errors *e, const struct field_path *at, struct val id)
{
	str text = val_as_str(id), wrong = uuid_error(e->arena, text);

	if (!val_exists(id))
		return;
	if (wrong.n)
		field_invalid(e, at, id, "error validating uid: " STR_FMT, STR_ARG(wrong));
	else if (text.n != 36 || !str_eq(ascii_lower(e->arena, text), text))
		field_invalid(e, at, id,
			      "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase"
			      " hexadecimal characters");
}

/* A JSON object of at most that many bytes. */
static void check_raw_object(struct field_errors *e, const struct field_path *at, struct val raw, size_t max, bool stored)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(max + 1);
	struct err ignored;

	if (val_is_nil(raw)) {
		field_missing(e, at);
		return;
	}
	bool fits = json_encode(&text, raw, &(struct json_encode_options){ .plain = true }, &ignored) == 0;
	fits = fits && text.n <= max && !text.overflow;
	if (!fits && !stored)
		field_too_long(e, at, (int64_t)max);
	else if (!val_is(raw, VAL_OBJECT))
		field_invalid(e, at, VAL_LIT("<value omitted>"), "must be a valid JSON object");
}

static void check_identifier(struct field_errors *e, const struct field_path *at, str id)
{
	if (id.n > DEVICE_ID_MAX)
		field_too_long(e, at, DEVICE_ID_MAX);
	check_name(e, at, id, name_check_c_identifier);
}

void check_device_key(struct field_errors *e, const struct field_path *at, str key)
{
	str domain, name;

	if (!str_cut(key, '/', &domain, &name)) {
		check_identifier(e, at, key);
		return;
	}
	if (str_chr(name, '/') >= 0)
		return; /* Kubernetes lets these pass */
	if (domain.n)
		check_csi_driver_name(e, at, domain);
	else
		field_invalid(e, at, VAL_LIT(""), "the domain must not be empty");
	if (name.n)
		check_identifier(e, at, name);
	else
		field_invalid(e, at, VAL_LIT(""), "the name must not be empty");
}

static void check_qualified_key(struct field_errors *e, const struct field_path *at, str key)
{
	check_device_key(e, at, key);
	if (str_chr(key, '/') < 0)
		field_invalid(e, at, VAL_STR(key),
			      "a fully qualified name must be a domain and a name separated by a slash");
}

/* ---- taints and tolerations ---- */

static const str taint_effects[] = { STR_INIT("NoExecute"), STR_INIT("NoSchedule"), STR_INIT("None"), { NULL, 0 } };

void check_device_taint(struct field_errors *e, const struct field_path *at, struct val taint, struct val old)
{
	str effect = val_str(taint, effect);

	check_label_key(e, FIELD(at, "key"), val_str(taint, key));
	check_name(e, FIELD(at, "value"), val_str(taint, value), name_check_label_value);
	if (!val_exists(old) || !str_eq(val_str(old, effect), effect))
		check_required_one_of(e, FIELD(at, "effect"), effect, taint_effects);
}

static void check_device_tolerations(struct field_errors *e, const struct field_path *at, struct val tolerations)
{
	static const str operators[] = { STR_INIT("Equal"), STR_INIT("Exists"), { NULL, 0 } };
	size_t i = 0;

	VAL_EACH(t, tolerations) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str operator = val_str(*t, operator), value = val_str(*t, value);
		if (val_str(*t, key).n)
			check_label_key(e, FIELD(item, "key"), val_str(*t, key));
		if (str_eq(operator, STR("Exists"))) {
			if (value.n)
				field_invalid(e, FIELD(item, "value"), VAL_STR(value),
					      "must be empty for operator `Exists`");
		} else if (str_eq(operator, STR("Equal"))) {
			check_name(e, FIELD(item, "value"), value, name_check_label_value);
		} else {
			check_required_one_of(e, FIELD(item, "operator"), operator, operators);
		}
		if (val_str(*t, effect).n)
			check_one_of(e, FIELD(item, "effect"), val_str(*t, effect), taint_effects);
	}
}

/* ---- requests of claims ---- */

static void check_expression(struct field_errors *e, const struct field_path *at, str expression)
{
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	CLEANUP(cel_program_freep) struct cel_program *p = NULL;
	unsigned features = 0;
	str why;

	if (expression.n > CEL_DEVICE_EXPRESSION_MAX) {
		field_too_long(e, at, CEL_DEVICE_EXPRESSION_MAX);
		return;
	}
	if (gate_is_on(e->gates, STR("DRAConsumableCapacity")))
		features |= CEL_DEVICE_CONSUMABLE_CAPACITY;
	if (gate_is_on(e->gates, STR("DRAListTypeAttributes")))
		features |= CEL_DEVICE_LIST_ATTRIBUTES;
	int r = cel_device_compile(expression, features, &scratch, &p, &why);
	if (r == -ERR_INVALID)
		field_invalid(e, at, VAL_STR(expression), STR_FMT, STR_ARG(why));
	else if (r < 0)
		field_internal(e, at, STR_FMT, STR_ARG(why));
	else if (cel_program_max_cost(p) > CEL_DEVICE_COST_MAX)
		field_forbidden(e, at, "too complex, exceeds cost limit");
}

static void check_selectors(struct field_errors *e, const struct field_path *at, struct val selectors)
{
	size_t i = 0;

	if (!check_size(e, at, selectors, SELECTORS_MAX))
		return;
	VAL_EACH(selector, selectors) {
		const struct field_path *cel = FIELD(FIELD_INDEX(at, i++), "cel");
		if (!val_has(*selector, cel))
			field_missing(e, cel);
		else
			check_expression(e, FIELD(cel, "expression"), val_str(*selector, cel, expression));
	}
}

/* What exact requests and subrequests have in common. */
static void check_request_body(struct field_errors *e, const struct field_path *at, struct val request)
{
	static const str modes[] = { STR_INIT("All"), STR_INIT("ExactCount"), { NULL, 0 } };
	str mode = val_str(request, allocationMode);
	int64_t count = val_int(request, count);

	check_given_name(e, FIELD(at, "deviceClassName"), val_str(request, deviceClassName), name_check_dns1123_subdomain);
	check_selectors(e, FIELD(at, "selectors"), val_get(request, selectors));
	if (str_eq(mode, STR("All"))) {
		if (count)
			field_invalid(e, FIELD(at, "count"), val_of_int(count),
				      "must not be specified when allocationMode is 'All'");
	} else if (!str_eq(mode, STR("ExactCount"))) {
		field_not_supported(e, FIELD(at, "allocationMode"), VAL_STR(mode), modes);
	} else if (count <= 0) {
		field_invalid(e, FIELD(at, "count"), val_of_int(count), "must be greater than zero");
	}
	check_device_tolerations(e, FIELD(at, "tolerations"), val_get(request, tolerations));
}

/* In version v1beta1 the members of an exact request stand in the request itself. */
static struct val exact_request(struct val request)
{
	return val_has(request, deviceClassName) && !val_has(request, exactly) ? request : val_get(request, exactly);
}

static void check_request(struct field_errors *e, const struct field_path *at, struct val request)
{
	const struct field_path *at_first = FIELD(at, "firstAvailable");
	struct val first = val_get(request, firstAvailable), exact = exact_request(request);
	size_t i = 0;

	check_name(e, FIELD(at, "name"), val_str(request, name), name_check_dns1123_label);
	if (val_len(first) == 0 && !val_exists(exact)) {
		field_required(e, at, "exactly one of `exactly` or `firstAvailable` is required");
	} else if (val_len(first) && val_exists(exact)) {
		field_invalid(e, at, VAL_EMPTY,
			      "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set");
	} else if (val_exists(exact)) {
		check_request_body(e, FIELD(at, "exactly"), exact);
	} else if (check_size(e, at_first, first, SUBREQUESTS_MAX)) {
		VAL_EACH(sub, first) {
			const struct field_path *item = FIELD_INDEX(at_first, i++);
			check_name(e, FIELD(item, "name"), val_str(*sub, name), name_check_dns1123_label);
			check_request_body(e, item, *sub);
		}
		check_unique(e, at_first, first, A_name);
	}
}

static bool has_request(struct val requests, str name)
{
	str main, sub;
	bool with_sub = str_cut(name, '/', &main, &sub);

	VAL_EACH(request, requests) {
		if (!str_eq(val_str(*request, name), main))
			continue;
		if (!with_sub)
			return true;
		VAL_EACH(s, val_get(*request, firstAvailable))
			if (str_eq(val_str(*s, name), sub))
				return true;
		return false;
	}
	return false;
}

static void check_request_ref(struct field_errors *e, const struct field_path *at, str name, struct val requests)
{
	static const char text[] = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
	str main, sub;
	bool with_sub = str_cut(name, '/', &main, &sub);

	if (str_chr(sub, '/') >= 0) {
		field_invalid(e, at, VAL_STR(name), text);
		return;
	}
	check_name(e, at, main, name_check_dns1123_label);
	if (with_sub)
		check_name(e, at, sub, name_check_dns1123_label);
	if (!has_request(requests, name))
		field_invalid(e, at, VAL_STR(name), text);
}

static void check_request_refs(struct field_errors *e, const struct field_path *at, struct val names, struct val requests)
{
	size_t i = 0;
	if (!check_size(e, at, names, REQUESTS_MAX))
		return;
	VAL_EACH(name, names)
		check_request_ref(e, FIELD_INDEX(at, i++), val_as_str(*name), requests);
	check_unique(e, at, names, 0);
}

static void check_opaque(struct field_errors *e, const struct field_path *at, struct val config, bool stored)
{
	if (!val_has(config, opaque)) {
		field_missing(e, FIELD(at, "opaque"));
		return;
	}
	check_csi_driver_name(e, FIELD(FIELD(at, "opaque"), "driver"), val_str(config, opaque, driver));
	check_raw_object(e, FIELD(FIELD(at, "opaque"), "parameters"), val_get(config, opaque, parameters),
			 PARAMETERS_MAX, stored);
}

static void check_constraint(struct field_errors *e, const struct field_path *at, struct val constraint, struct val requests)
{
	check_request_refs(e, FIELD(at, "requests"), val_get(constraint, requests), requests);
	if (val_has(constraint, matchAttribute))
		check_qualified_key(e, FIELD(at, "matchAttribute"), val_str(constraint, matchAttribute));
	else if (val_has(constraint, distinctAttribute))
		check_qualified_key(e, FIELD(at, "distinctAttribute"), val_str(constraint, distinctAttribute));
	else
		field_required(e, at,
			       "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set");
}

static void check_device_claim(struct field_errors *e, const struct field_path *at, struct val claim)
{
	struct val requests = val_get(claim, requests), constraints = val_get(claim, constraints);
	struct val config = val_get(claim, config);
	size_t i = 0;

	if (check_size(e, FIELD(at, "requests"), requests, REQUESTS_MAX)) {
		VAL_EACH(request, requests)
			check_request(e, FIELD_INDEX(FIELD(at, "requests"), i++), *request);
		check_unique(e, FIELD(at, "requests"), requests, A_name);
	}
	i = 0;
	if (check_size(e, FIELD(at, "constraints"), constraints, CONSTRAINTS_MAX))
		VAL_EACH(constraint, constraints)
			check_constraint(e, FIELD_INDEX(FIELD(at, "constraints"), i++), *constraint, requests);
	i = 0;
	if (check_size(e, FIELD(at, "config"), config, CONFIG_MAX))
		VAL_EACH(c, config) {
			const struct field_path *item = FIELD_INDEX(FIELD(at, "config"), i++);
			check_request_refs(e, FIELD(item, "requests"), val_get(*c, requests), requests);
			check_opaque(e, item, *c, false);
		}
}

/* ---- ResourceClaim ---- */

void check_resource_claim(struct field_errors *e, struct val claim)
{
	check_meta(e, claim, true, name_rule_subdomain);
	check_device_claim(e, FIELD(FIELD(NULL, "spec"), "devices"), val_get(claim, spec, devices));
}

void check_resource_claim_update(struct field_errors *e, struct val claim, struct val old)
{
	check_meta(e, claim, true, name_rule_subdomain);
	check_meta_update(e, claim, old);
	check_immutable(e, FIELD(NULL, "spec"), TYPE(resource_v1, ResourceClaimSpec), val_get(claim, spec),
			val_get(old, spec));
}

static void check_condition_names(struct field_errors *e, const struct field_path *at, struct val names)
{
	size_t i = 0;
	if (check_size(e, at, names, BINDING_CONDITIONS_MAX))
		VAL_EACH(name, names)
			check_label_key(e, FIELD_INDEX(at, i++), val_as_str(*name));
}

void check_binding_conditions(struct field_errors *e, const struct field_path *at, struct val device)
{
	const struct field_path *at_good = FIELD(at, "bindingConditions"), *at_bad = FIELD(at, "bindingFailureConditions");
	struct val good = val_get(device, bindingConditions), bad = val_get(device, bindingFailureConditions);
	CLEANUP(map_done) struct map seen = MAP_INIT, are_good = MAP_INIT;
	size_t i = 0;

	set_add_all(&are_good, good);
	check_condition_names(e, at_good, good);
	check_condition_names(e, at_bad, bad);
	check_unique(e, at_good, good, 0);
	VAL_EACH(name, bad) {
		const struct field_path *item = FIELD_INDEX(at_bad, i++);
		if (!set_add(&seen, val_as_str(*name)))
			field_duplicate(e, item, *name);
		if (set_has(&are_good, val_as_str(*name)))
			field_invalid(e, item, *name, "bindingFailureConditions must not overlap with bindingConditions");
	}
	if (val_len(good) == 0 && val_len(bad))
		field_invalid(e, at_good, good, "bindingConditions are required to use bindingFailureConditions");
	if (val_len(bad) == 0 && val_len(good))
		field_invalid(e, at_bad, bad, "bindingFailureConditions are required to use bindingConditions");
}

static void check_allocation(struct field_errors *e, const struct field_path *at, struct val allocation, struct val requests)
{
	static const str origins[] = { STR_INIT("FromClaim"), STR_INIT("FromClass"), { NULL, 0 } };
	const struct field_path *at_results = FIELD(FIELD(at, "devices"), "results");
	const struct field_path *at_config = FIELD(FIELD(at, "devices"), "config");
	struct val results = val_get(allocation, devices, results), config = val_get(allocation, devices, config);
	size_t i = 0;

	if (check_size(e, at_results, results, RESULTS_MAX))
		VAL_EACH(result, results) {
			const struct field_path *item = FIELD_INDEX(at_results, i++);
			check_request_ref(e, FIELD(item, "request"), val_str(*result, request), requests);
			check_csi_driver_name(e, FIELD(item, "driver"), val_str(*result, driver));
			check_pool_name(e, FIELD(item, "pool"), val_str(*result, pool));
			check_name(e, FIELD(item, "device"), val_str(*result, device), name_check_dns1123_label);
			check_binding_conditions(e, item, *result);
			check_share_id(e, FIELD(item, "shareID"), val_get(*result, shareID));
		}
	i = 0;
	if (check_size(e, at_config, config, 2 * CONFIG_MAX))
		VAL_EACH(c, config) {
			const struct field_path *item = FIELD_INDEX(at_config, i++);
			check_required_one_of(e, FIELD(item, "source"), val_str(*c, source), origins);
			check_request_refs(e, FIELD(item, "requests"), val_get(*c, requests), requests);
			check_opaque(e, item, *c, false);
		}
	if (val_has(allocation, nodeSelector))
		check_node_selector(e, FIELD(at, "nodeSelector"), val_get(allocation, nodeSelector), false);
}

static str device_id(struct arena *a, struct val device)
{
	return arena_printf(a, STR_FMT "/" STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(val_str(device, driver)),
			    STR_ARG(val_str(device, pool)), STR_ARG(val_str(device, device)),
			    STR_ARG(val_str(device, shareID)));
}

/* Kubernetes' type for the identity of a device has no content that its JSON could show. */
static struct val shown_device_id(struct arena *a)
{
	static const str names[] = { STR_INIT("Driver"), STR_INIT("Pool"), STR_INIT("Device"), STR_INIT("ShareID") };
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		val_add_member(&b, atom_make(a, names[i]), VAL_EMPTY_OBJECT);
	return val_end_object(&b);
}

static void check_network_data(struct field_errors *e, const struct field_path *at, struct val data)
{
	struct val ips = val_get(data, ips);
	struct name_errors found;
	size_t i = 0;

	if (val_str(data, interfaceName).n > INTERFACE_MAX)
		field_too_long(e, FIELD(at, "interfaceName"), INTERFACE_MAX);
	if (val_str(data, hardwareAddress).n > HARDWARE_ADDRESS_MAX)
		field_too_long(e, FIELD(at, "hardwareAddress"), HARDWARE_ADDRESS_MAX);
	if (!check_size(e, FIELD(at, "ips"), ips, IPS_MAX))
		return;
	VAL_EACH(ip, ips) {
		const struct field_path *item = FIELD_INDEX(FIELD(at, "ips"), i++);
		if (ip_check_interface_address(e->arena, val_as_str(*ip), &found))
			for (size_t j = 0; j < found.n; j++)
				field_invalid(e, item, *ip, STR_FMT, STR_ARG(found.text[j]));
	}
	check_unique(e, FIELD(at, "ips"), ips, 0);
}

static void check_device_statuses(struct field_errors *e, const struct field_path *at, struct val status)
{
	CLEANUP(map_done) struct map allocated = MAP_INIT, seen = MAP_INIT;
	size_t i = 0;

	VAL_EACH(result, val_get(status, allocation, devices, results))
		set_add(&allocated, device_id(e->arena, *result));
	VAL_EACH(device, val_get(status, devices)) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		struct val conditions = val_get(*device, conditions);
		check_csi_driver_name(e, FIELD(item, "driver"), val_str(*device, driver));
		check_pool_name(e, FIELD(item, "pool"), val_str(*device, pool));
		check_name(e, FIELD(item, "device"), val_str(*device, device), name_check_dns1123_label);
		check_share_id(e, FIELD(item, "shareID"), val_get(*device, shareID));
		if (!set_has(&allocated, device_id(e->arena, *device)))
			field_invalid(e, item, shown_device_id(e->arena), "must be an allocated device in the claim");
		check_size(e, FIELD(item, "conditions"), conditions, CONDITIONS_MAX);
		check_conditions(e, FIELD(item, "conditions"), conditions);
		if (!val_is_nil(val_get(*device, data)))
			check_raw_object(e, FIELD(item, "data"), val_get(*device, data), PARAMETERS_MAX, false);
		check_network_data(e, FIELD(item, "networkData"), val_get(*device, networkData));
	}
	i = 0;
	VAL_EACH(device, val_get(status, devices)) {
		if (!set_add(&seen, device_id(e->arena, *device)))
			field_duplicate(e, FIELD_INDEX(at, i), shown_device_id(e->arena));
		i++;
	}
}

static bool has_item(struct val list, struct val item)
{
	VAL_EACH(other, list)
		if (val_equal(*other, item))
			return true;
	return false;
}

static void check_reservations(struct field_errors *e, const struct field_path *at, struct val claim, struct val old)
{
	struct val users = val_get(claim, status, reservedFor), before = val_get(old, status, reservedFor);
	bool grows = false;

	if (val_len(users) == 0)
		return;
	if (!val_has(claim, status, allocation)) {
		field_forbidden(e, at, "may not be specified when `allocated` is not set");
		return;
	}
	if (val_len(users) <= RESERVED_MAX)
		VAL_EACH(user, users)
			grows |= !has_item(before, *user);
	if (grows && val_has(claim, metadata, deletionTimestamp))
		field_forbidden(e, at,
				"new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set");
}

void check_resource_claim_status(struct field_errors *e, str subresource, struct val claim, struct val old)
{
	const struct field_path *at = FIELD(NULL, "status"), *at_users = FIELD(at, "reservedFor");
	struct val users = val_get(claim, status, reservedFor), allocation = val_get(claim, status, allocation);
	size_t i = 0;

	(void)subresource;
	check_meta_update(e, claim, old);
	if (check_size(e, at_users, users, RESERVED_MAX)) {
		VAL_EACH(user, users) {
			const struct field_path *item = FIELD_INDEX(at_users, i++);
			check_given(e, FIELD(item, "resource"), val_str(*user, resource));
			check_given(e, FIELD(item, "name"), val_str(*user, name));
			check_given(e, FIELD(item, "uid"), val_str(*user, uid));
		}
		check_unique(e, at_users, users, A_uid);
	}
	check_device_statuses(e, FIELD(at, "devices"), val_get(claim, status));
	check_reservations(e, at_users, claim, old);
	if (val_exists(allocation) && val_has(old, status, allocation))
		check_immutable(e, FIELD(at, "allocation"), TYPE(resource_v1, AllocationResult), allocation,
				val_get(old, status, allocation));
	else if (val_exists(allocation))
		check_allocation(e, FIELD(at, "allocation"), allocation, val_get(claim, spec, devices, requests));
}

/* ---- ResourceClaimTemplate ---- */

/* Templates may give labels and annotations, nothing else. */
static void check_template_meta(struct field_errors *e, const struct field_path *at, struct val meta)
{
	check_annotations(e, FIELD(at, "annotations"), val_get(meta, annotations));
	check_labels(e, FIELD(at, "labels"), val_get(meta, labels));
	VAL_EACH_MEMBER(m, meta)
		if (m->key != A_annotations && m->key != A_labels && !val_is_zero(m->val))
			field_forbidden(e, FIELD_STR(at, atom_str(m->key)), "cannot be set");
}

void check_claim_template(struct field_errors *e, struct val template)
{
	const struct field_path *at = FIELD(NULL, "spec");

	check_meta(e, template, true, name_rule_subdomain);
	check_template_meta(e, FIELD(at, "metadata"), val_get(template, spec, metadata));
	check_device_claim(e, FIELD(FIELD(at, "spec"), "devices"), val_get(template, spec, spec, devices));
}

void check_claim_template_update(struct field_errors *e, struct val template, struct val old)
{
	check_claim_template(e, template);
	check_meta_update(e, template, old);
	check_immutable(e, FIELD(NULL, "spec"), TYPE(resource_v1, ResourceClaimTemplateSpec), val_get(template, spec),
			val_get(old, spec));
}

/* ---- DeviceClass ---- */

size_t name_rule_long(str name, bool prefix, struct name_errors *ret)
{
	char masked[NAME_SUBDOMAIN_MAX + 1];
	if (!prefix || name.n < 2 || name.n > sizeof(masked) || name.p[name.n - 1] != '-')
		return name_check_long_name(name, ret);
	memcpy(masked, name.p, name.n);
	masked[name.n - 1] = 'a';
	return name_check_long_name(str_span(masked, name.n), ret);
}

static void check_class_spec(struct field_errors *e, struct val spec, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec");
	struct val config = val_get(spec, config), resource = val_get(spec, extendedResourceName);
	bool stored = val_exists(old) && val_semantic_equal(TYPE(resource_v1, DeviceClassConfiguration), config,
							    val_get(old, config));
	size_t i = 0;

	check_selectors(e, FIELD(at, "selectors"), val_get(spec, selectors));
	if (check_size(e, FIELD(at, "config"), config, CONFIG_MAX))
		VAL_EACH(c, config)
			check_opaque(e, FIELD_INDEX(FIELD(at, "config"), i++), *c, stored);
	if (val_exists(resource) && !resource_is_extended(val_as_str(resource)))
		field_invalid(e, FIELD(at, "extendedResourceName"), resource, "must be a valid extended resource name");
}

void check_device_class(struct field_errors *e, struct val class)
{
	check_meta(e, class, false, name_rule_long);
	check_class_spec(e, val_get(class, spec), VAL_EMPTY);
}

void check_device_class_update(struct field_errors *e, struct val class, struct val old)
{
	check_meta(e, class, false, name_rule_long);
	check_meta_update(e, class, old);
	check_class_spec(e, val_get(class, spec), val_get(old, spec));
}

/* ---- DeviceTaintRule ---- */

static void check_taint_rule_spec(struct field_errors *e, struct val spec, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec"), *at_selector = FIELD(at, "deviceSelector");
	struct val selector = val_get(spec, deviceSelector);

	if (val_has(selector, driver))
		check_csi_driver_name(e, FIELD(at_selector, "driver"), val_str(selector, driver));
	if (val_has(selector, pool))
		check_pool_name(e, FIELD(at_selector, "pool"), val_str(selector, pool));
	if (val_has(selector, device))
		check_name(e, FIELD(at_selector, "device"), val_str(selector, device), name_check_dns1123_label);
	check_device_taint(e, FIELD(at, "taint"), val_get(spec, taint), val_get(old, taint));
}

void check_taint_rule(struct field_errors *e, struct val rule)
{
	check_meta(e, rule, false, name_rule_subdomain);
	check_taint_rule_spec(e, val_get(rule, spec), VAL_EMPTY);
}

void check_taint_rule_update(struct field_errors *e, struct val rule, struct val old)
{
	check_meta_update(e, rule, old);
	check_taint_rule_spec(e, val_get(rule, spec), val_get(old, spec));
}

void check_taint_rule_status(struct field_errors *e, str subresource, struct val rule, struct val old)
{
	const struct field_path *at = FIELD(FIELD(NULL, "status"), "conditions");
	struct val conditions = val_get(rule, status, conditions);

	(void)subresource;
	check_meta_update(e, rule, old);
	check_conditions(e, at, conditions);
	check_size(e, at, conditions, CONDITIONS_MAX);
}
