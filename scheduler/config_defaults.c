/*
 * What nobody said. Plugins of a profile are the default ones, without those that it disables, with those that it configures in the places where
 * the default ones stand, and with those it adds behind them.
 */
#include <stdlib.h>

#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "scheduler/config.h"
#include "scheduler/profile.h"

#define CONFIG_TYPE TYPE(kubeschedulerconfig_v1, KubeSchedulerConfiguration)

static struct val unless(struct arena *a, struct val object, atom key, struct val otherwise)
{
	return val_is_zero(val_member(object, key)) ? val_put(a, object, key, otherwise) : object;
}

/* A pointer in Go: 0 that was given stays. */
static struct val unless_given(struct arena *a, struct val object, atom key, struct val otherwise)
{
	return val_is_nil(val_member(object, key)) ? val_put(a, object, key, otherwise) : object;
}

static struct val unless_duration(struct arena *a, struct val object, atom key, const char *text)
{
	return sched_duration_ns(val_member(object, key)) ? object : val_put(a, object, key, VAL_STR(str_of(text)));
}

/* ---- arguments of plugins ---- */

const struct type *sched_args_type(struct arena *a, str plugin)
{
	return schema_type(arena_printf(a, "kubeschedulerconfig/v1." STR_FMT "Args", STR_ARG(plugin)));
}

static struct val default_resources(struct arena *a)
{
	return LIST(a, OBJECT(a, F(name, VAL_LIT("cpu")), F(weight, val_of_int(1))), OBJECT(a, F(name, VAL_LIT("memory")), F(weight, val_of_int(1))));
}

static struct val complete_resources(struct arena *a, struct val list)
{
	struct val_builder b = val_builder(a);

	if (!val_len(list))
		return default_resources(a);
	VAL_EACH(r, list)
		val_add_item(&b, unless(a, *r, A_weight, val_of_int(1)));
	return val_end_list(&b);
}

static struct val complete_strategy(struct arena *a, struct val s)
{
	if (val_is_nil(s))
		s = OBJECT(a, F(type, VAL_LIT("LeastAllocated")));
	return val_put(a, s, A_resources, complete_resources(a, val_get(s, resources)));
}

static struct val complete_args(struct arena *a, const struct type *type, struct val args)
{
	if (type == TYPE(kubeschedulerconfig_v1, DefaultPreemptionArgs)) {
		args = unless_given(a, args, A_minCandidateNodesPercentage, val_of_int(10));
		args = unless_given(a, args, A_minCandidateNodesAbsolute, val_of_int(100));
	} else if (type == TYPE(kubeschedulerconfig_v1, InterPodAffinityArgs)) {
		args = unless_given(a, args, A_hardPodAffinityWeight, val_of_int(1));
	} else if (type == TYPE(kubeschedulerconfig_v1, VolumeBindingArgs)) {
		args = unless_given(a, args, A_bindTimeoutSeconds, val_of_int(600));
	} else if (type == TYPE(kubeschedulerconfig_v1, NodeResourcesBalancedAllocationArgs)) {
		args = val_put(a, args, A_resources, complete_resources(a, val_get(args, resources)));
	} else if (type == TYPE(kubeschedulerconfig_v1, NodeResourcesFitArgs)) {
		args = val_put(a, args, A_scoringStrategy, complete_strategy(a, val_get(args, scoringStrategy)));
	} else if (type == TYPE(kubeschedulerconfig_v1, PodTopologySpreadArgs)) {
		args = unless(a, args, A_defaultingType, VAL_LIT("System"));
	} else if (type == TYPE(kubeschedulerconfig_v1, DynamicResourcesArgs)) {
		args = unless_given(a, args, A_filterTimeout, VAL_LIT("10s"));
		args = unless_given(a, args, A_bindingTimeout, VAL_LIT("10m0s"));
	}
	return args;
}

/* From what a file has, a free tree, to a typed one. */
static int read_args(struct arena *a, str plugin, const struct type *type, struct val args, struct val *ret, struct err *err)
{
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	str kind = val_str(args, kind);
	int r;

	strict->arena = a;
	if (kind.n && !str_eq(kind, type->name))
		return err_set(err, ERR_BAD_REQUEST, "args for plugin " STR_FMT " were not of type " STR_FMT ".kubescheduler.config.k8s.io, got " STR_FMT
			       ".kubescheduler.config.k8s.io", STR_ARG(plugin), STR_ARG(type->name), STR_ARG(kind));
	args = val_is(args, VAL_OBJECT) ? args : VAL_EMPTY_OBJECT;
	args = val_with(a, args, VAL_LIT("kubescheduler.config.k8s.io/v1"), apiVersion);
	args = val_with(a, args, VAL_STR(type->name), kind);
	if ((r = val_canonical(a, args, type, strict, &args, err)) < 0 || (r = strict_errors_fail(strict, err)) < 0)
		return err_wrap(err, r, "decoding args for plugin " STR_FMT, STR_ARG(plugin));
	return val_canonical(a, complete_args(a, type, args), type, NULL, ret, err);
}

static bool has_entry(struct val configs, str plugin)
{
	VAL_EACH(c, configs)
		if (str_eq(val_str(*c, name), plugin))
			return true;
	return false;
}

static bool is_enabled(struct val plugins, str name)
{
	VAL_EACH_MEMBER(set, plugins)
		VAL_EACH(e, val_get(set->val, enabled))
			if (str_eq(val_str(*e, name), name))
				return true;
	return false;
}

static int by_name(const void *x, const void *y)
{
	return strcmp((*(const struct plugin *const *)x)->name, (*(const struct plugin *const *)y)->name);
}

static int complete_configs(struct arena *a, size_t profile, struct val plugins, struct val given, struct val *ret, struct err *err)
{
	const struct plugin *sorted[PLUGINS_MAX];
	struct val_builder b = val_builder(a);
	size_t n = plugins_count(), at = 0;
	struct val args;
	int r;

	VAL_EACH(c, given) {
		const struct type *type = sched_args_type(a, val_str(*c, name));
		args = val_get(*c, args);
		if (type && (r = read_args(a, val_str(*c, name), type, args, &args, err)) < 0)
			return err_wrap(err, r, "decoding .profiles[%zu].pluginConfig[%zu]", profile, at);
		val_add_item(&b, val_put(a, *c, A_args, args));
		at++;
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = plugin_at(i);
	qsort(sorted, n, sizeof(*sorted), by_name);
	for (size_t i = 0; i < n; i++) {
		str name = str_of(sorted[i]->name);
		const struct type *type = sched_args_type(a, name);
		if (!type || has_entry(given, name) || !is_enabled(plugins, name))
			continue;
		if ((r = read_args(a, name, type, VAL_EMPTY, &args, err)) < 0)
			return r;
		val_add_item(&b, OBJECT(a, F(name, VAL_STR(name)), F(args, args)));
	}
	*ret = val_end_list(&b);
	return 0;
}

/* ---- plugins ---- */

static struct val default_plugins(struct arena *a)
{
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < plugins_count(); i++) {
		const struct plugin *p = plugin_at(i);
		val_add_item(&b, OBJECT(a, F(name, VAL_STR(str_of(p->name))), F(weight, p->weight ? val_of_int(p->weight) : VAL_EMPTY)));
	}
	return val_end_list(&b);
}

static struct val entry_of(struct val list, str name)
{
	struct val found = VAL_EMPTY;

	VAL_EACH(e, list)
		if (str_eq(val_str(*e, name), name))
			found = *e;
	return found;
}

static bool replaces(struct val defaults, struct val disabled, struct val enabled, const struct val *e)
{
	str name = val_str(*e, name);

	/* Of several entries of that name the last is in the default one's place; the others stay and are found to be too many. */
	return val_exists(entry_of(defaults, name)) && !val_exists(entry_of(disabled, name)) && !val_exists(entry_of(disabled, STR("*"))) &&
	       val_same(entry_of(enabled, name), *e);
}

static struct val merge_set(struct arena *a, struct val defaults, struct val set)
{
	struct val enabled = val_get(set, enabled), disabled = val_get(set, disabled);
	struct val_builder b = val_builder(a);
	bool none = val_exists(entry_of(disabled, STR("*")));

	VAL_EACH(d, defaults) {
		struct val own = entry_of(enabled, val_str(*d, name));
		if (!none && !val_exists(entry_of(disabled, val_str(*d, name))))
			val_add_item(&b, val_exists(own) ? own : *d);
	}
	VAL_EACH(e, enabled)
		if (!replaces(defaults, disabled, enabled, e))
			val_add_item(&b, *e);
	struct val all = val_end_list(&b);
	return val_len(all) || val_len(disabled) ? OBJECT(a, F(enabled, val_len(all) ? all : VAL_EMPTY), F(disabled, disabled)) : set;
}

static int complete_profile(struct arena *a, size_t index, struct val profile, bool only, struct val *ret, struct err *err)
{
	struct val plugins = val_get(profile, plugins), configs;

	if (only)
		profile = unless_given(a, profile, A_schedulerName, VAL_LIT("default-scheduler"));
	if (val_is_nil(plugins))
		plugins = VAL_EMPTY_OBJECT;
	plugins = val_put(a, plugins, A_multiPoint, merge_set(a, default_plugins(a), val_get(plugins, multiPoint)));
	int r = complete_configs(a, index, plugins, val_get(profile, pluginConfig), &configs, err);
	if (r < 0)
		return r;
	*ret = val_put(a, val_put(a, profile, A_plugins, plugins), A_pluginConfig, configs);
	return 0;
}

/* ---- all of it ---- */

static struct val complete_election(struct arena *a, struct val e)
{
	e = unless_given(a, val_is_nil(e) ? VAL_EMPTY_OBJECT : e, A_leaderElect, val_of_bool(true));
	e = unless_duration(a, e, A_leaseDuration, "15s");
	e = unless_duration(a, e, A_renewDeadline, "10s");
	e = unless_duration(a, e, A_retryPeriod, "2s");
	e = unless(a, e, A_resourceLock, VAL_LIT("leases"));
	e = unless(a, e, A_resourceName, VAL_LIT("kube-scheduler"));
	return unless(a, e, A_resourceNamespace, VAL_LIT("kube-system"));
}

static struct val complete_connection(struct arena *a, struct val c)
{
	c = unless(a, val_is_nil(c) ? VAL_EMPTY_OBJECT : c, A_contentType, VAL_LIT("application/vnd.kubernetes.protobuf"));
	c = unless(a, c, A_qps, val_of_double(50));
	return unless(a, c, A_burst, val_of_int(100));
}

int sched_config_defaults(struct arena *a, struct val config, struct val *ret, struct err *err)
{
	struct val profiles = val_get(config, profiles), done;
	struct val_builder b = val_builder(a);

	config = unless_given(a, config, A_parallelism, val_of_int(16));
	config = unless_given(a, config, A_percentageOfNodesToScore, val_of_int(0));
	config = unless_given(a, config, A_podInitialBackoffSeconds, val_of_int(1));
	config = unless_given(a, config, A_podMaxBackoffSeconds, val_of_int(10));
	config = unless_given(a, config, A_enableProfiling, val_of_bool(true));
	if (val_bool(config, enableProfiling))
		config = unless_given(a, config, A_enableContentionProfiling, val_of_bool(true));
	config = val_put(a, config, A_leaderElection, complete_election(a, val_get(config, leaderElection)));
	config = val_put(a, config, A_clientConnection, complete_connection(a, val_get(config, clientConnection)));
	if (!val_len(profiles))
		profiles = LIST(a, VAL_EMPTY_OBJECT);
	VAL_EACH(p, profiles) {
		int r = complete_profile(a, (size_t)(p - profiles.items), *p, val_len(profiles) == 1, &done, err);
		if (r < 0)
			return r;
		val_add_item(&b, done);
	}
	config = val_put(a, config, A_profiles, val_end_list(&b));
	return val_canonical(a, config, CONFIG_TYPE, NULL, ret, err);
}
