/* What is wrong with a configuration, in Kubernetes' words and order. */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "machinery/field_error.h"
#include "machinery/names.h"
#include "machinery/node_selector.h"
#include "machinery/resources.h"
#include "scheduler/config.h"

/* ---- parts that others have, too ---- */

static void check_connection(struct field_errors *e, const struct field_path *at, struct val c)
{
	if (val_int(c, burst) < 0)
		field_invalid(e, FIELD(at, "burst"), val_get(c, burst), "must be non-negative");
}

static void check_election(struct field_errors *e, const struct field_path *at, struct val c)
{
	struct val lease = val_get(c, leaseDuration), renew = val_get(c, renewDeadline), retry = val_get(c, retryPeriod);
	str lock = val_str(c, resourceLock);

	if (!val_bool(c, leaderElect))
		return;
	if (sched_duration_ns(lease) <= 0)
		field_invalid(e, FIELD(at, "leaseDuration"), lease, "must be greater than zero");
	if (sched_duration_ns(renew) <= 0)
		field_invalid(e, FIELD(at, "renewDeadline"), renew, "must be greater than zero");
	if (sched_duration_ns(retry) <= 0)
		field_invalid(e, FIELD(at, "retryPeriod"), retry, "must be greater than zero");
	if (sched_duration_ns(lease) <= sched_duration_ns(renew))
		field_invalid(e, FIELD(at, "leaseDuration"), renew, "must be greater than `RenewDeadline`");
	if (!lock.n)
		field_required(e, FIELD(at, "resourceLock"), "%s", "");
	if (!val_str(c, resourceNamespace).n)
		field_required(e, FIELD(at, "resourceNamespace"), "%s", "");
	if (!val_str(c, resourceName).n)
		field_required(e, FIELD(at, "resourceName"), "%s", "");
	if (!str_eq(lock, STR("leases")))
		field_invalid(e, FIELD(at, "resourceLock"), VAL_STR(lock), "resourceLock value must be \"leases\"");
}

/* ---- arguments ---- */

static void check_range(struct field_errors *e, const struct field_path *at, struct val v, int64_t low, int64_t high, const char *why)
{
	if (val_as_int(v) < low || val_as_int(v) > high)
		field_invalid(e, at, val_exists(v) ? v : val_of_int(0), "%s", why);
}

static void check_preemption(struct field_errors *e, const struct field_path *at, struct val args)
{
	struct val percentage = val_get(args, minCandidateNodesPercentage), absolute = val_get(args, minCandidateNodesAbsolute);

	check_range(e, FIELD(at, "minCandidateNodesPercentage"), percentage, 0, 100, "not in valid range [0, 100]");
	check_range(e, FIELD(at, "minCandidateNodesAbsolute"), absolute, 0, INT32_MAX, "not in valid range [0, inf)");
	if (val_as_int(percentage) || val_as_int(absolute))
		return;
	field_invalid(e, FIELD(at, "minCandidateNodesPercentage"), val_of_int(0), "cannot be zero at the same time as minCandidateNodesAbsolute");
	field_invalid(e, FIELD(at, "minCandidateNodesAbsolute"), val_of_int(0), "cannot be zero at the same time as minCandidateNodesPercentage");
}

static void check_affinity(struct field_errors *e, const struct field_path *at, struct val args)
{
	struct val added = val_get(args, addedAffinity), required = val_get(added, requiredDuringSchedulingIgnoredDuringExecution);
	struct node_selector s;
	struct node_term t;
	struct err err = ERR_INIT;
	size_t i = 0;

	if (val_is(required, VAL_OBJECT)) {
		node_selector_compile(e->arena, required, FIELD(FIELD(at, "addedAffinity"), "requiredDuringSchedulingIgnoredDuringExecution"), &s);
		if (node_selector_check(&s, &err) < 0)
			field_internal(e, FIELD(at, "addedAffinity"), "%s", err.msg);
	}
	VAL_EACH(p, val_get(added, preferredDuringSchedulingIgnoredDuringExecution)) {
		const struct field_path *list = FIELD(FIELD(at, "addedAffinity"), "preferredDuringSchedulingIgnoredDuringExecution");
		node_term_compile(e->arena, val_get(*p, preference), FIELD_INDEX(list, i++), &t);
		if (t.n_errors)
			field_internal(e, FIELD(at, "addedAffinity"), STR_FMT, STR_ARG(t.errors));
	}
}

static void check_balance(struct field_errors *e, const struct field_path *at, struct val args)
{
	struct val list = val_get(args, resources);

	for (size_t i = 0; i < val_len(list); i++) {
		struct val r = val_at(list, i);
		const struct field_path *here = FIELD_INDEX(FIELD(at, "resources"), i);
		bool seen = false;
		for (size_t k = 0; k < i; k++)
			seen |= str_eq(val_str(val_at(list, k), name), val_str(r, name));
		if (seen)
			field_duplicate(e, FIELD(here, "name"), val_get(r, name));
		if (val_int(r, weight) != 1)
			field_invalid(e, FIELD(here, "weight"), val_get(r, weight), "must be 1");
	}
}

static void check_label_name(struct field_errors *e, const struct field_path *at, str name)
{
	struct name_errors wrong;

	name_check_label_key(name, &wrong);
	for (size_t i = 0; i < wrong.n; i++)
		field_invalid(e, at, VAL_STR(name), STR_FMT, STR_ARG(wrong.text[i]));
}

static void check_defaulting(struct field_errors *e, const struct field_path *at, struct val args)
{
	static const str types[] = { STR_INIT("System"), STR_INIT("List"), { NULL, 0 } };
	str type = val_str(args, defaultingType);

	if (!str_eq(type, STR("System")) && !str_eq(type, STR("List")))
		field_not_supported(e, at, VAL_STR(type), types);
	else if (str_eq(type, STR("System")) && val_len(val_get(args, defaultConstraints)))
		field_invalid(e, at, VAL_STR(type), "when .defaultConstraints are not empty");
}

static void check_spreading(struct field_errors *e, const struct field_path *at, struct val args)
{
	static const str actions[] = { STR_INIT("DoNotSchedule"), STR_INIT("ScheduleAnyway"), { NULL, 0 } };
	struct val list = val_get(args, defaultConstraints);

	check_defaulting(e, FIELD(at, "defaultingType"), args);
	for (size_t i = 0; i < val_len(list); i++) {
		struct val c = val_at(list, i);
		const struct field_path *all = FIELD(at, "defaultConstraints"), *here = FIELD_INDEX(all, i);
		str key = val_str(c, topologyKey), action = val_str(c, whenUnsatisfiable);
		if (val_int(c, maxSkew) <= 0)
			field_invalid(e, FIELD(here, "maxSkew"), val_of_int(val_int(c, maxSkew)), "not in valid range (0, inf)");
		if (!key.n)
			field_required(e, FIELD(here, "topologyKey"), "can not be empty");
		else
			check_label_name(e, FIELD(here, "topologyKey"), key);
		if (!action.n)
			field_required(e, FIELD(here, "whenUnsatisfiable"), "can not be empty");
		else if (!str_eq(action, actions[0]) && !str_eq(action, actions[1]))
			field_not_supported(e, FIELD(here, "whenUnsatisfiable"), VAL_STR(action), actions);
		if (val_has(c, labelSelector))
			field_forbidden(e, FIELD(here, "labelSelector"), "constraint must not define a selector, as they deduced for each pod");
		for (size_t k = 0; k < i; k++)
			if (str_eq(val_str(val_at(list, k), topologyKey), key) && str_eq(val_str(val_at(list, k), whenUnsatisfiable), action)) {
				field_duplicate(e, here, VAL_STR(arena_printf(e->arena, "{" STR_FMT ", " STR_FMT "}", STR_ARG(key), STR_ARG(action))));
				break;
			}
	}
}

static void check_binding(struct field_errors *e, const struct field_path *at, struct val args)
{
	if (val_int(args, bindTimeoutSeconds) < 0)
		field_invalid(e, FIELD(at, "bindTimeoutSeconds"), val_get(args, bindTimeoutSeconds),
			      "invalid BindTimeoutSeconds, should not be a negative value");
	if (val_len(val_get(args, shape)))
		field_invalid(e, FIELD(at, "shape"), val_get(args, shape),
			      "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring");
}

static void check_devices(struct field_errors *e, const struct field_path *at, struct val args)
{
	struct val filter = val_get(args, filterTimeout), binding = val_get(args, bindingTimeout);

	if (sched_duration_ns(filter) < 0)
		field_invalid(e, FIELD(at, "filterTimeout"), filter, "must be zero or positive");
	if (val_exists(binding) && sched_duration_ns(binding) < NS_PER_S)
		field_invalid(e, FIELD(at, "bindingTimeout"), binding, "must be at least 1 second");
}

static void check_weight(struct field_errors *e, const struct field_path *at, struct val args)
{
	check_range(e, FIELD(at, "hardPodAffinityWeight"), val_get(args, hardPodAffinityWeight), 0, 100, "not in valid range [0, 100]");
}

/* ---- profiles ---- */

/* NodeResourcesFit is checked by the plugin itself, as in Kubernetes. */
static void check_args(struct field_errors *e, const struct field_path *at, str plugin, struct val args)
{
	static const struct {
		const char *plugin;
		void (*check)(struct field_errors *e, const struct field_path *at, struct val args);
	} checks[] = {
		{ "DefaultPreemption", check_preemption }, { "InterPodAffinity", check_weight }, { "NodeAffinity", check_affinity },
		{ "NodeResourcesBalancedAllocation", check_balance }, { "PodTopologySpread", check_spreading }, { "VolumeBinding", check_binding },
		{ "DynamicResources", check_devices },
	};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (str_eq(plugin, str_of(checks[i].plugin)))
			checks[i].check(e, at, args);
}

static bool is_removed(str plugin)
{
	static const char *const removed[] = { "AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits" };

	for (size_t i = 0; i < ARRAY_LEN(removed); i++)
		if (str_eq(plugin, str_of(removed[i])))
			return true;
	return false;
}

#define REMOVED "was invalid in version \"kubescheduler.config.k8s.io/v1\" (KubeSchedulerConfiguration is version \"kubescheduler.config.k8s.io/v1\")"

static void check_percentage(struct field_errors *e, const struct field_path *at, struct val v)
{
	if (val_exists(v))
		check_range(e, at, v, 0, 100, "not in valid range [0-100]");
}

static void check_sets(struct field_errors *e, const struct field_path *at, struct val plugins)
{
	VAL_EACH_MEMBER(set, plugins) {
		struct val list = val_get(set->val, enabled);
		for (size_t i = 0; set->key != A_multiPoint && i < val_len(list); i++)
			if (is_removed(val_str(val_at(list, i), name)))
				field_invalid(e, FIELD_INDEX(FIELD(FIELD_STR(at, atom_str(set->key)), "enabled"), i), val_get(val_at(list, i), name),
					      REMOVED);
	}
}

static void check_profile(struct field_errors *e, const struct field_path *at, struct val p)
{
	struct val configs = val_get(p, pluginConfig);

	if (!val_str(p, schedulerName).n)
		field_required(e, FIELD(at, "schedulerName"), "%s", "");
	check_percentage(e, FIELD(at, "percentageOfNodesToScore"), val_get(p, percentageOfNodesToScore));
	check_sets(e, FIELD(at, "plugins"), val_get(p, plugins));
	for (size_t i = 0; i < val_len(configs); i++) {
		const struct field_path *here = FIELD_INDEX(FIELD(at, "pluginConfig"), i);
		struct val c = val_at(configs, i);
		for (size_t k = 0; k < i; k++)
			if (str_eq(val_str(val_at(configs, k), name), val_str(c, name))) {
				field_duplicate(e, here, val_get(c, name));
				break;
			}
		if (is_removed(val_str(c, name)))
			field_invalid(e, here, val_get(c, name), REMOVED);
		else
			check_args(e, FIELD(here, "args"), val_str(c, name), val_get(c, args));
	}
}

/* One queue has one order. */
static void check_queue_sort(struct field_errors *e, const struct field_path *at, struct val profiles)
{
	struct val first = val_get(val_at(profiles, 0), plugins, queueSort);
	uint32_t n = val_len(val_get(first, enabled));

	if (n > 1)
		field_invalid(e, FIELD(FIELD(FIELD(FIELD_INDEX(at, 0), "plugins"), "queueSort"), "Enabled"), val_of_int(n),
			      "only one queue sort plugin can be enabled");
	for (size_t i = 1; i < val_len(profiles); i++) {
		struct val other = val_get(val_at(profiles, i), plugins, queueSort);
		if (!val_equal(first, other))
			field_invalid(e, FIELD(FIELD(FIELD_INDEX(at, i), "plugins"), "queueSort"), other, "must be the same for all profiles");
	}
}

static void check_profiles(struct field_errors *e, const struct field_path *at, struct val profiles)
{
	if (!val_len(profiles)) {
		field_required(e, at, "%s", "");
		return;
	}
	for (size_t i = 0; i < val_len(profiles); i++) {
		struct val p = val_at(profiles, i);
		check_profile(e, FIELD_INDEX(at, i), p);
		for (size_t k = 0; k < i; k++)
			if (str_eq(val_str(val_at(profiles, k), schedulerName), val_str(p, schedulerName))) {
				field_duplicate(e, FIELD(FIELD_INDEX(at, i), "schedulerName"), VAL_EMPTY_OBJECT);
				break;
			}
	}
	check_queue_sort(e, at, profiles);
}

/* ---- extenders ---- */

static void check_managed(struct field_errors *e, const struct field_path *at, struct val extenders, size_t i, size_t j)
{
	str name = val_str(val_at(val_get(val_at(extenders, i), managedResources), j), name);
	struct name_errors wrong;
	bool seen = false;

	if (name_check_label_key(name, &wrong))
		check_label_name(e, at, name);
	else if (!resource_is_extended(name))
		field_invalid(e, at, VAL_STR(name), "is an invalid extended resource name");
	for (size_t k = 0; k <= i; k++) {
		struct val list = val_get(val_at(extenders, k), managedResources);
		for (size_t m = 0; m < (k == i ? j : val_len(list)); m++)
			seen |= str_eq(val_str(val_at(list, m), name), name);
	}
	if (seen)
		field_invalid(e, at, VAL_STR(name), "duplicate extender managed resource name");
}

static void check_extenders(struct field_errors *e, const struct field_path *at, struct val extenders)
{
	int binders = 0;

	for (size_t i = 0; i < val_len(extenders); i++) {
		struct val x = val_at(extenders, i), managed = val_get(x, managedResources);
		const struct field_path *here = FIELD_INDEX(at, i);
		if (val_str(x, prioritizeVerb).n && val_int(x, weight) <= 0)
			field_invalid(e, FIELD(here, "weight"), val_of_int(val_int(x, weight)), "must have a positive weight applied to it");
		binders += val_str(x, bindVerb).n > 0;
		for (size_t j = 0; j < val_len(managed); j++)
			check_managed(e, FIELD(FIELD_INDEX(FIELD(here, "managedResources"), j), "name"), extenders, i, j);
	}
	if (binders > 1)
		field_invalid(e, at, VAL_STR(arena_printf(e->arena, "found %d extenders implementing bind", binders)), "only one extender can implement bind");
}

/* ---- all of it ---- */

int sched_config_check(struct val config, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct field_errors e;

	field_errors_init(&e, &a);
	check_connection(&e, FIELD(NULL, "clientConnection"), val_get(config, clientConnection));
	check_election(&e, FIELD(NULL, "leaderElection"), val_get(config, leaderElection));
	if (val_int(config, parallelism) <= 0)
		field_invalid(&e, FIELD(NULL, "parallelism"), val_of_int(val_int(config, parallelism)), "should be an integer value greater than zero");
	check_profiles(&e, FIELD(NULL, "profiles"), val_get(config, profiles));
	check_percentage(&e, FIELD(NULL, "percentageOfNodesToScore"), val_get(config, percentageOfNodesToScore));
	if (val_int(config, podInitialBackoffSeconds) <= 0)
		field_invalid(&e, FIELD(NULL, "podInitialBackoffSeconds"), val_of_int(val_int(config, podInitialBackoffSeconds)), "must be greater than 0");
	if (val_int(config, podMaxBackoffSeconds) < val_int(config, podInitialBackoffSeconds))
		field_invalid(&e, FIELD(NULL, "podMaxBackoffSeconds"), val_of_int(val_int(config, podMaxBackoffSeconds)),
			      "must be greater than or equal to PodInitialBackoffSeconds");
	check_extenders(&e, FIELD(NULL, "extenders"), val_get(config, extenders));
	return e.n ? err_set(err, ERR_INVALID, STR_FMT, STR_ARG(field_errors_plain(&e))) : 0;
}
