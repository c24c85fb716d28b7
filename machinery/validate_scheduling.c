/* Where and when pods may run: tolerations, gates, names of classes, DNS and host names. */
#include "codec/atoms.h"
#include "machinery/ip.h"
#include "machinery/validate_pod.h"

enum { NAMESERVERS_MAX = 3, SEARCHES_MAX = 32, SEARCH_CHARS_MAX = 2048, HOSTNAME_MAX = 64 };

/* ---- tolerations ---- */

void check_taint_effect(struct field_errors *e, const struct field_path *at, str effect, bool allow_empty)
{
	static const str effects[] = { STR_INIT("NoSchedule"), STR_INIT("PreferNoSchedule"), STR_INIT("NoExecute"),
				       { NULL, 0 } };

	if (!allow_empty && effect.n == 0)
		field_missing(e, at);
	else
		check_one_of(e, at, effect, effects);
}

/* Lt and Gt compare whole numbers of 64 bits. */
static void check_numeric(struct field_errors *e, const struct field_path *at, str value)
{
	int64_t number;
	str digits = str_starts(value, STR("+")) ? str_skip(value, 1) : value;

	check_name(e, at, value, name_check_decimal_integer);
	if (!str_to_i64(digits, &number))
		field_invalid(e, at, VAL_STR(value), "strconv.ParseInt: parsing \"" STR_FMT "\": %s", STR_ARG(value),
			      name_check_decimal_integer(value, NULL) ? "invalid syntax" : "value out of range");
}

static void check_toleration_operator(struct field_errors *e, const struct field_path *at, struct val toleration,
				      bool numeric)
{
	static const str known[] = { STR_INIT("Equal"), STR_INIT("Exists"), { NULL, 0 } };
	static const str all[] = { STR_INIT("Equal"), STR_INIT("Exists"), STR_INIT("Lt"), STR_INIT("Gt"), { NULL, 0 } };
	const struct field_path *below = FIELD(at, "operator");
	str operator = val_str(toleration, operator), value = val_str(toleration, value);
	struct name_errors found;

	if (operator.n == 0 || str_eq(operator, STR("Equal"))) {
		if (name_check_label_value(value, &found))
			field_invalid(e, below, VAL_STR(value), STR_FMT, STR_ARG(name_errors_join(e->arena, &found, ";")));
	} else if (str_eq(operator, STR("Exists"))) {
		if (value.n)
			field_invalid(e, below, VAL_STR(value), "value must be empty when `operator` is 'Exists'");
	} else if (!str_in(operator, all)) {
		field_not_supported(e, below, VAL_STR(operator), known);
	} else if (!numeric) {
		field_not_supported(e, below, VAL_STR(operator), all);
	} else {
		check_numeric(e, FIELD(at, "value"), value);
	}
}

static void check_all_tolerations(struct field_errors *e, const struct field_path *at, struct val tolerations, bool numeric)
{
	size_t i = 0;
	VAL_EACH(t, tolerations) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str key = val_str(*t, key), operator = val_str(*t, operator), effect = val_str(*t, effect);

		if (key.n)
			check_label_key(e, FIELD(item, "key"), key);
		else if (!str_eq(operator, STR("Exists")))
			field_invalid(e, FIELD(item, "operator"), VAL_STR(operator),
				      "operator must be Exists when `key` is empty, which means \"match all values and"
				      " all keys\"");
		if (val_has(*t, tolerationSeconds) && !str_eq(effect, STR("NoExecute")))
			field_invalid(e, FIELD(item, "effect"), VAL_STR(effect),
				      "effect must be 'NoExecute' when `tolerationSeconds` is set");
		check_toleration_operator(e, item, *t, numeric);
		if (effect.n)
			check_taint_effect(e, FIELD(item, "effect"), effect, true);
	}
}

void check_tolerations(struct field_errors *e, const struct field_path *at, struct val tolerations)
{
	check_all_tolerations(e, at, tolerations, false);
}

void check_pod_tolerations(struct pod_check *c, const struct field_path *at, struct val tolerations)
{
	check_all_tolerations(c->e, at, tolerations, c->numeric_tolerations);
}

/* ---- DNS ---- */

static void check_ip(struct field_errors *e, const struct field_path *at, str ip)
{
	struct name_errors found;
	if (ip_check_legacy(ip, true, &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, at, VAL_STR(ip), STR_FMT, STR_ARG(found.text[i]));
}

static void check_searches(struct field_errors *e, const struct field_path *at, struct val searches)
{
	size_t chars = 0, i = 0;

	VAL_EACH(s, searches)
		chars += val_as_str(*s).n + 1;
	if (val_len(searches) > SEARCHES_MAX)
		field_invalid(e, at, searches, "must not have more than 32 search paths");
	if (chars > SEARCH_CHARS_MAX + 1)
		field_invalid(e, at, searches,
			      "must not have more than 2048 characters (including spaces) in the search list");
	VAL_EACH(s, searches) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str search = val_as_str(*s);
		if (str_eq(search, STR(".")))
			continue;
		check_name(e, item, str_ends(search, STR(".")) ? str_head(search, search.n - 1) : search,
			   name_check_dns1123_subdomain_underscore);
	}
}

static void check_dns_config(struct pod_check *c, const struct field_path *at)
{
	struct val config = val_get(c->spec, dnsConfig), servers = val_get(config, nameservers);
	bool none = str_eq(val_str(c->spec, dnsPolicy), STR("None"));
	size_t i = 0;

	if (none && !val_exists(config)) {
		field_required(c->e, at, "must provide `dnsConfig` when `dnsPolicy` is None");
		return;
	}
	if (none && val_len(servers) == 0) {
		field_required(c->e, FIELD(at, "nameservers"),
			       "must provide at least one DNS nameserver when `dnsPolicy` is None");
		return;
	}
	if (val_len(servers) > NAMESERVERS_MAX)
		field_invalid(c->e, FIELD(at, "nameservers"), servers, "must not have more than 3 nameservers");
	VAL_EACH(server, servers)
		check_ip(c->e, FIELD_INDEX(FIELD(at, "nameservers"), i++), val_as_str(*server));
	check_searches(c->e, FIELD(at, "searches"), val_get(config, searches));
	i = 0;
	VAL_EACH(option, val_get(config, options)) {
		const struct field_path *item = FIELD_INDEX(FIELD(at, "options"), i++);
		if (val_str(*option, name).n == 0)
			field_required(c->e, item, "must not be empty");
	}
}

static void check_host_aliases(struct field_errors *e, const struct field_path *at, struct val aliases)
{
	size_t i = 0, j;
	VAL_EACH(alias, aliases) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		check_ip(e, FIELD(item, "ip"), val_str(*alias, ip));
		j = 0;
		VAL_EACH(name, val_get(*alias, hostnames))
			check_name(e, FIELD_INDEX(FIELD(item, "hostnames"), j++), val_as_str(*name),
				   name_check_dns1123_subdomain);
	}
}

static void check_hostname_override(struct pod_check *c, const struct field_path *at)
{
	str name = val_str(c->spec, hostnameOverride);

	if (!val_has(c->spec, hostnameOverride))
		return;
	if (val_bool(c->spec, setHostnameAsFQDN))
		field_forbidden(c->e, at, "may not be specified when setHostnameAsFQDN is true");
	if (val_bool(c->spec, hostNetwork))
		field_forbidden(c->e, at, "may not be specified when hostNetwork is true");
	if (name.n > HOSTNAME_MAX)
		field_too_long(c->e, at, HOSTNAME_MAX);
	check_name(c->e, at, name, name_check_dns1123_subdomain);
}

/* ---- gates ---- */

static void check_readiness_gates(struct field_errors *e, const struct field_path *at, struct val gates)
{
	size_t i = 0;
	VAL_EACH(gate, gates)
		check_label_key(e, FIELD(FIELD_INDEX(at, i++), "conditionType"), val_str(*gate, conditionType));
}

static void check_scheduling_gates(struct field_errors *e, const struct field_path *at, struct val gates)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	VAL_EACH(gate, gates) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		check_label_key(e, item, val_str(*gate, name));
		if (!set_add(&seen, val_str(*gate, name)))
			field_duplicate(e, item, VAL_STR(val_str(*gate, name)));
	}
}

/* ---- all of it, in Kubernetes' order ---- */

static void check_no_devices(struct pod_check *c, const struct field_path *at, struct val container, void *arg)
{
	(void)arg;
	if (val_len(val_get(container, volumeDevices)))
		field_forbidden(c->e, FIELD(at, "volumeDevices"), "when `hostUsers` is false");
}

static void check_host_users(struct pod_check *c, const struct field_path *at)
{
	if (pod_uses_host_users(c->spec))
		return;
	if (val_bool(c->spec, hostNetwork) && !c->user_namespace_host_network)
		field_forbidden(c->e, FIELD(at, "hostNetwork"), "when `hostUsers` is false");
	if (val_bool(c->spec, hostPID))
		field_forbidden(c->e, FIELD(at, "HostPID"), "when `hostUsers` is false");
	if (val_bool(c->spec, hostIPC))
		field_forbidden(c->e, FIELD(at, "HostIPC"), "when `hostUsers` is false");
	if (!c->user_namespace_devices)
		each_container(c, at, check_no_devices, NULL);
}

static void check_if_given(struct pod_check *c, const struct field_path *at, atom name, name_check *check)
{
	struct val v = val_member(c->spec, name);
	if (val_exists(v))
		check_name(c->e, FIELD_STR(at, atom_str(name)), val_as_str(v), check);
}

void check_scheduling(struct pod_check *c, const struct field_path *at)
{
	static const str preemption[] = { STR_INIT("PreemptLowerPriority"), STR_INIT("Never"), { NULL, 0 } };
	struct val deadline = val_get(c->spec, activeDeadlineSeconds);

	check_affinity(c, FIELD(at, "affinity"), val_get(c->spec, affinity));
	check_dns_config(c, FIELD(at, "dnsConfig"));
	check_readiness_gates(c->e, FIELD(at, "readinessGates"), val_get(c->spec, readinessGates));
	check_scheduling_gates(c->e, FIELD(at, "schedulingGates"), val_get(c->spec, schedulingGates));
	check_spread_constraints(c, FIELD(at, "topologySpreadConstraints"), val_get(c->spec, topologySpreadConstraints));
	check_host_process(c, at);
	check_host_users(c, at);
	check_hostname_override(c, FIELD(at, "hostnameOverride"));
	check_if_given(c, at, A_serviceAccountName, name_check_dns1123_subdomain);
	check_if_given(c, at, A_nodeName, name_check_dns1123_subdomain);
	if (val_exists(deadline) && (val_as_int(deadline) < 1 || val_as_int(deadline) > INT32_MAX))
		field_invalid(c->e, FIELD(at, "activeDeadlineSeconds"), deadline,
			      "must be between 1 and 2147483647, inclusive");
	check_if_given(c, at, A_hostname, name_check_dns1123_label);
	check_if_given(c, at, A_subdomain, name_check_dns1123_label);
	check_pod_tolerations(c, FIELD(at, "tolerations"), val_get(c->spec, tolerations));
	check_host_aliases(c->e, FIELD(at, "hostAliases"), val_get(c->spec, hostAliases));
	check_if_given(c, at, A_priorityClassName, name_check_dns1123_subdomain);
	check_if_given(c, at, A_runtimeClassName, name_check_dns1123_subdomain);
	if (val_has(c->spec, preemptionPolicy))
		check_required_one_of(c->e, FIELD(at, "preemptionPolicy"), val_str(c->spec, preemptionPolicy), preemption);
}
