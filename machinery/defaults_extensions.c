/* Defaults of admission, CustomResourceDefinitions, APIServices and devices. */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "machinery/validate_groups.h"

/* ---- webhooks ---- */

static struct val default_rule(struct arena *a, struct val rule) { return default_member(a, rule, A_scope, VAL_LIT("*")); }

static struct val default_service_reference(struct arena *a, struct val service)
{
	return default_member(a, service, A_port, val_of_int(443));
}

static struct val default_client(struct arena *a, struct val config)
{
	return default_within(a, config, A_service, default_service_reference);
}

/* What webhooks and MatchResources have in common. */
static struct val default_matching(struct arena *a, struct val match)
{
	match = default_member(a, match, A_matchPolicy, VAL_LIT("Equivalent"));
	match = default_member(a, match, A_namespaceSelector, VAL_EMPTY_OBJECT);
	return default_member(a, match, A_objectSelector, VAL_EMPTY_OBJECT);
}

static struct val default_webhook(struct arena *a, struct val hook)
{
	hook = default_matching(a, default_member(a, hook, A_failurePolicy, VAL_LIT("Fail")));
	hook = default_member(a, hook, A_timeoutSeconds, val_of_int(10));
	hook = default_within(a, hook, A_clientConfig, default_client);
	return default_within(a, hook, A_rules, default_rule);
}

static struct val default_mutating_webhook(struct arena *a, struct val hook)
{
	return default_member(a, default_webhook(a, hook), A_reinvocationPolicy, VAL_LIT("Never"));
}

struct val default_webhooks(struct arena *a, struct val configuration)
{
	return default_within(a, configuration, A_webhooks, default_webhook);
}

struct val default_mutating_webhooks(struct arena *a, struct val configuration)
{
	return default_within(a, configuration, A_webhooks, default_mutating_webhook);
}

/* ---- admission policies ---- */

static struct val default_match_resources(struct arena *a, struct val match)
{
	match = default_matching(a, match);
	match = default_within(a, match, A_resourceRules, default_rule);
	return default_within(a, match, A_excludeResourceRules, default_rule);
}

static struct val default_policy_spec(struct arena *a, struct val spec)
{
	spec = default_member(a, spec, A_failurePolicy, VAL_LIT("Fail"));
	return default_within(a, spec, A_matchConstraints, default_match_resources);
}

struct val default_admission_policy(struct arena *a, struct val policy)
{
	return val_with(a, policy, default_policy_spec(a, val_get(policy, spec)), spec);
}

static struct val default_binding_spec(struct arena *a, struct val spec)
{
	return default_within(a, spec, A_matchResources, default_match_resources);
}

struct val default_admission_binding(struct arena *a, struct val binding)
{
	return default_within(a, binding, A_spec, default_binding_spec);
}

/* ---- CustomResourceDefinition and APIService ---- */

static struct val default_crd_names(struct arena *a, struct val names)
{
	str kind = val_str(names, kind);
	if (kind.n == 0)
		return names;
	names = default_member(a, names, A_singular, VAL_STR(ascii_lower(a, kind)));
	return default_member(a, names, A_listKind, VAL_STR(arena_printf(a, STR_FMT "List", STR_ARG(kind))));
}

static struct val default_webhook_conversion(struct arena *a, struct val webhook)
{
	return default_within(a, webhook, A_clientConfig, default_client);
}

static struct val default_conversion(struct arena *a, struct val conversion)
{
	return default_within(a, conversion, A_webhook, default_webhook_conversion);
}

struct val default_crd(struct arena *a, struct val crd)
{
	struct val spec = default_within(a, val_get(crd, spec), A_names, default_crd_names);

	spec = default_member(a, spec, A_conversion, OBJECT(a, F(strategy, VAL_LIT("None"))));
	spec = default_within(a, spec, A_conversion, default_conversion);
	crd = val_with(a, crd, spec, spec);
	if (val_len(val_get(crd, status, storedVersions)))
		return crd;
	VAL_EACH(version, val_get(spec, versions))
		if (val_bool(*version, storage))
			return val_with(a, crd, LIST(a, val_get(*version, name)), status, storedVersions);
	return crd;
}

struct val default_api_service(struct arena *a, struct val service)
{
	return default_within(a, service, A_spec, default_client);
}

/* ---- devices ---- */

static struct val default_request(struct arena *a, struct val request)
{
	request = default_member(a, request, A_allocationMode, VAL_LIT("ExactCount"));
	if (str_eq(val_str(request, allocationMode), STR("ExactCount")))
		request = default_member(a, request, A_count, val_of_int(1));
	return request;
}

/* In version v1beta1 an exact request is not wrapped. */
static struct val default_device_request(struct arena *a, struct val request)
{
	if (val_has(request, deviceClassName))
		request = default_request(a, request);
	request = default_within(a, request, A_exactly, default_request);
	return default_within(a, request, A_firstAvailable, default_request);
}

static struct val default_device_claim(struct arena *a, struct val claim)
{
	return default_within(a, claim, A_requests, default_device_request);
}
static struct val default_claim_spec_devices(struct arena *a, struct val spec)
{
	return default_within(a, spec, A_devices, default_device_claim);
}
static struct val default_template_spec(struct arena *a, struct val spec)
{
	return default_within(a, spec, A_spec, default_claim_spec_devices);
}

struct val default_resource_claim(struct arena *a, struct val claim)
{
	return default_within(a, claim, A_spec, default_claim_spec_devices);
}
struct val default_claim_template(struct arena *a, struct val template)
{
	return default_within(a, template, A_spec, default_template_spec);
}

static struct val default_taint(struct arena *a, struct val taint)
{
	char text[TIME_TEXT_MAX];
	struct timestamp now = { clock_wall_ns() / NS_PER_S, 0 };

	return default_member(a, taint, A_timeAdded, VAL_STR(arena_str(a, time_format(now, text))));
}

static struct val default_device_body(struct arena *a, struct val device)
{
	return default_within(a, device, A_taints, default_taint);
}

static struct val default_device(struct arena *a, struct val device)
{
	return default_within(a, default_device_body(a, device), A_basic, default_device_body);
}

static struct val default_slice_spec(struct arena *a, struct val spec)
{
	return default_within(a, spec, A_devices, default_device);
}

struct val default_resource_slice(struct arena *a, struct val slice)
{
	return default_within(a, slice, A_spec, default_slice_spec);
}

struct val default_taint_rule(struct arena *a, struct val rule)
{
	return val_with(a, rule, default_taint(a, val_get(rule, spec, taint)), spec, taint);
}
