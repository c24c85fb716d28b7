/* Which families of addresses a Service has: what its author says, what its addresses imply, what the cluster offers. */
#include "apiserver/apiserver.h"
#include "apiserver/hooks_service.h"
#include "codec/atoms.h"
#include "machinery/validate.h"

static struct val ips_of(struct val service) { return val_get(service, spec, clusterIPs); }
static struct val families_of(struct val service) { return val_get(service, spec, ipFamilies); }

static bool policy_is(struct val service, const char *policy)
{
	return str_eq(val_str(service, spec, ipFamilyPolicy), str_of(policy));
}

static bool same_list(struct val a, struct val b)
{
	if (val_len(a) != val_len(b))
		return false;
	for (size_t i = 0; i < val_len(a); i++)
		if (!str_eq(val_as_str(val_at(a, i)), val_as_str(val_at(b, i))))
			return false;
	return true;
}

static bool is_reduced(struct val now, struct val before) { return val_len(now) && val_len(now) < val_len(before); }
static str other(str family) { return str_eq(family, STR("IPv4")) ? STR("IPv6") : STR("IPv4"); }

static bool is_bare(struct val service) /* headless and without a selector: its endpoints are of anybody's making */
{
	return str_eq(val_str(service, spec, clusterIP), STR("None")) && !val_len(val_get(service, spec, selector));
}

bool families_are_kept(struct val service, struct val old)
{
	static const str types[] = { STR_INIT("ClusterIP"), STR_INIT("NodePort"), STR_INIT("LoadBalancer") };
	bool typed = false;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		typed |= service_is(service, types[i]) && service_is(old, types[i]);
	return typed && policy_is(service, "PreferDualStack") &&
	       (!val_has(old, spec, ipFamilyPolicy) || policy_is(old, "PreferDualStack")) &&
	       same_list(ips_of(service), ips_of(old)) &&
	       same_list(families_of(service), families_of(old));
}

static void put_policy(struct allocation *al)
{
	struct val policy = val_get(al->old, spec, ipFamilyPolicy);
	if (val_has(al->service, spec, ipFamilyPolicy))
		return;
	if (!val_exists(policy))
		policy = is_bare(al->service) ? VAL_LIT("RequireDualStack") : VAL_LIT("SingleStack");
	al->service = val_with(al->q->arena, al->service, policy, spec, ipFamilyPolicy);
}

static void bad_policy(const struct allocation *al, struct field_errors *e, const char *why)
{
	field_invalid(e, FIELD(FIELD(NULL, "spec"), "ipFamilyPolicy"), val_get(al->service, spec, ipFamilyPolicy), "%s", why);
}

/* Going back to one family is said by the policy; the lists may then still be the old ones. */
static void reduce(struct allocation *al, struct field_errors *e)
{
	struct arena *a = al->q->arena;
	struct val ips = ips_of(al->service), families = families_of(al->service);
	if (policy_is(al->service, "SingleStack")) {
		if (same_list(ips, ips_of(al->old)) && val_len(ips) > 1)
			al->service = val_with(a, al->service, LIST(a, val_at(ips, 0)), spec, clusterIPs);
		if (same_list(families, families_of(al->old)) && val_len(families) > 1)
			al->service = val_with(a, al->service, LIST(a, val_at(families, 0)), spec, ipFamilies);
		return;
	}
	if (is_reduced(ips, ips_of(al->old)))
		bad_policy(al, e, "must be 'SingleStack' to release the secondary cluster IP");
	if (is_reduced(families, families_of(al->old)))
		bad_policy(al, e, "must be 'SingleStack' to release the secondary IP family");
}

static void add_family(struct allocation *al, str family)
{
	struct arena *a = al->q->arena;
	al->service = val_with(a, al->service, val_list_append(a, families_of(al->service), val_of_str(family)), spec,
			       ipFamilies);
}

/* Addresses that are named say their families. */
static void infer(struct allocation *al, struct field_errors *e)
{
	struct val ips = ips_of(al->service);
	for (size_t i = 0; i < val_len(ips); i++) {
		struct ip ip;
		if (!ip_parse(val_as_str(val_at(ips, i)), &ip, NULL))
			return; /* None */
		str family = ip_family_of(&ip);
		if (i < val_len(families_of(al->service)))
			continue;
		if (service_ip_has_family(al->q->server->allocators, family))
			add_family(al, family);
		else
			field_invalid(e, FIELD_INDEX(FIELD(FIELD(NULL, "spec"), "clusterIPs"), i), ips,
				      STR_FMT " is not configured on this cluster", STR_ARG(family));
	}
}

static void check_policy(struct allocation *al, struct field_errors *e)
{
	if (val_exists(al->old))
		reduce(al, e);
	if (!policy_is(al->service, "SingleStack"))
		return;
	if (val_len(ips_of(al->service)) == 2)
		bad_policy(al, e, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified");
	if (val_len(families_of(al->service)) == 2)
		bad_policy(al, e, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified");
}

static void check_cluster(struct allocation *al, struct field_errors *e)
{
	const struct ip_allocators *ranges = al->q->server->allocators;
	struct val families = families_of(al->service);
	if (policy_is(al->service, "RequireDualStack") && service_ip_n_ranges(ranges) < 2)
		bad_policy(al, e, "this cluster is not configured for dual-stack services");
	for (size_t i = 0; i < val_len(families); i++)
		if (!service_ip_has_family(ranges, val_as_str(val_at(families, i))))
			field_invalid(e, FIELD_INDEX(FIELD(FIELD(NULL, "spec"), "ipFamilies"), i), val_at(families, i),
				      "not configured on this cluster");
}

static int failed(struct allocation *al, const struct field_errors *e)
{
	return fail_invalid(al->q, STR_NONE, STR("Service"), val_str(al->service, metadata, name), e);
}

int families_settle(struct allocation *al)
{
	const struct ip_allocators *ranges = al->q->server->allocators;
	struct field_errors e;
	field_errors_init(&e, al->q->arena);
	if (service_is(al->service, STR("ExternalName")) || (val_exists(al->old) && families_are_kept(al->service, al->old)))
		return 0;
	put_policy(al);
	validate_service_addresses(al->service, al->old, &e);
	if (e.n)
		return failed(al, &e);
	check_policy(al, &e);
	infer(al, &e);
	if (e.n)
		return failed(al, &e);
	bool bare = is_bare(al->service);
	if (!bare)
		check_cluster(al, &e);
	if (e.n)
		return failed(al, &e);
	if (!val_len(families_of(al->service)))
		add_family(al, service_ip_family(ranges));
	if (!policy_is(al->service, "SingleStack") && val_len(families_of(al->service)) == 1 &&
	    (bare || service_ip_n_ranges(ranges) == 2))
		add_family(al, other(val_as_str(val_at(families_of(al->service), 0))));
	return 0;
}
