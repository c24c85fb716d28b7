/* All plugins, and which of them a profile asks at which point: those of the point itself, and those of multiPoint that know the point. */
#include <stdlib.h>

#include "base/log.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "scheduler/config.h"
#include "scheduler/profile.h"

static const struct plugin *const all[] = {
	&plugin_scheduling_gates, &plugin_priority_sort, &plugin_node_unschedulable, &plugin_node_name, &plugin_taint_toleration,
	&plugin_node_affinity, &plugin_node_ports, &plugin_node_resources_fit, &plugin_volume_restrictions, &plugin_node_volume_limits,
	&plugin_volume_binding, &plugin_volume_zone, &plugin_pod_topology_spread, &plugin_inter_pod_affinity, &plugin_dynamic_resources,
	&plugin_default_preemption, &plugin_balanced_allocation, &plugin_image_locality, &plugin_default_binder,
	&plugin_node_declared_features,
};

_Static_assert(ARRAY_LEN(all) <= PLUGINS_MAX && PLUGINS_MAX < EXTENDER_BIT, "a bit for each plugin");

/* Two do what the framework does for them: the queue is sorted, and pods are bound, in one way. */
const struct plugin plugin_priority_sort = { .name = "PrioritySort" };
const struct plugin plugin_default_binder = { .name = "DefaultBinder" };

size_t plugins_count(void) { return ARRAY_LEN(all); }
const struct plugin *plugin_at(size_t i) { return all[i]; }

/* ---- points ---- */

struct point_name {
	atom field;
	const char *type;             /* as Kubernetes names it in messages */
};

static const struct point_name points[POINT_MAX] = {
	[POINT_PRE_ENQUEUE] = { A_preEnqueue, "PreEnqueuePlugin" }, [POINT_QUEUE_SORT] = { A_queueSort, "QueueSortPlugin" },
	[POINT_PRE_FILTER] = { A_preFilter, "PreFilterPlugin" }, [POINT_FILTER] = { A_filter, "FilterPlugin" },
	[POINT_POST_FILTER] = { A_postFilter, "PostFilterPlugin" }, [POINT_PRE_SCORE] = { A_preScore, "PreScorePlugin" },
	[POINT_SCORE] = { A_score, "ScorePlugin" }, [POINT_RESERVE] = { A_reserve, "ReservePlugin" },
	[POINT_PERMIT] = { A_permit, "PermitPlugin" }, [POINT_PRE_BIND] = { A_preBind, "PreBindPlugin" },
	[POINT_BIND] = { A_bind, "BindPlugin" }, [POINT_POST_BIND] = { A_postBind, "PostBindPlugin" },
};

static bool knows(const struct plugin *p, enum point at)
{
	switch (at) {
	case POINT_PRE_ENQUEUE: return p->pre_enqueue != NULL;
	case POINT_QUEUE_SORT: return p == &plugin_priority_sort;
	case POINT_PRE_FILTER: return p->pre_filter != NULL;
	case POINT_FILTER: return p->filter != NULL;
	case POINT_POST_FILTER: return p->post_filter != NULL;
	case POINT_PRE_SCORE: return p->pre_score != NULL;
	case POINT_SCORE: return p->score != NULL;
	case POINT_RESERVE: return p->reserve != NULL || p->unreserve != NULL;
	case POINT_PRE_BIND: return p->pre_bind != NULL;
	case POINT_BIND: return p == &plugin_default_binder;
	default: return false;
	}
}

/* ---- making a profile ---- */

static int index_of(const struct profile *p, str name)
{
	for (size_t i = 0; i < p->n; i++)
		if (str_eq(name, str_of(p->plugins[i]->name)))
			return (int)i;
	return -1;
}

static bool lists(struct val plugins, str name)
{
	VAL_EACH(e, plugins)
		if (str_eq(val_str(*e, name), name))
			return true;
	return false;
}

/* Of a point, as messages have it; multiPoint is found out at the first of all points. */
static const char *point_type(atom field)
{
	for (int at = 0; at < POINT_MAX; at++)
		if (points[at].field == field)
			return points[at].type;
	return "PreFilterPlugin";
}

/* All that some point enables, in the order of the table: indexes do not depend on how a profile is written. */
static int add_plugins(struct profile *p, struct val sets, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		bool used = false;
		VAL_EACH_MEMBER(set, sets)
			used |= lists(val_get(set->val, enabled), str_of(all[i]->name));
		if (used)
			p->plugins[p->n++] = all[i];
	}
	VAL_EACH_MEMBER(set, sets)
		VAL_EACH(e, val_get(set->val, enabled))
			if (index_of(p, val_str(*e, name)) < 0)
				return err_set(err, ERR_INVALID, "%s \"" STR_FMT "\" does not exist", point_type(set->key), STR_ARG(val_str(*e, name)));
	return 0;
}

static void ask(struct profile *p, enum point at, str name) { p->order[at][p->n_order[at]++] = (uint8_t)index_of(p, name); }

static int check_set(const struct profile *p, enum point at, struct val enabled, struct err *err)
{
	VAL_EACH(e, enabled) {
		str name = val_str(*e, name);
		unsigned times = 0;
		if (!knows(p->plugins[index_of(p, name)], at))
			return err_set(err, ERR_INVALID, "plugin \"" STR_FMT "\" does not extend %s plugin", STR_ARG(name), points[at].type);
		VAL_EACH(f, enabled)
			times += str_eq(val_str(*f, name), name);
		if (times > 1)
			return err_set(err, ERR_INVALID, "plugin \"" STR_FMT "\" already registered as \"%s\"", STR_ARG(name), points[at].type);
	}
	return 0;
}

/* Those of multiPoint that the point enables itself, as it orders them; the rest of multiPoint; the rest of the point. */
static int order_point(struct profile *p, enum point at, struct val set, struct val multi, struct err *err)
{
	struct val enabled = val_get(set, enabled), disabled = val_get(set, disabled);
	bool none = lists(disabled, STR("*"));
	int r = check_set(p, at, enabled, err);

	if (r < 0)
		return r;
	VAL_EACH(e, enabled)
		if (!none && lists(multi, val_str(*e, name)) && !lists(disabled, val_str(*e, name)))
			ask(p, at, val_str(*e, name));
	VAL_EACH(e, multi) {
		str name = val_str(*e, name);
		if (none || lists(disabled, name) || lists(enabled, name) || !knows(p->plugins[index_of(p, name)], at))
			continue;
		for (unsigned k = 0; k < p->n_order[at]; k++)
			if (p->order[at][k] == index_of(p, name))
				return err_set(err, ERR_INVALID, "plugin \"" STR_FMT "\" already registered as \"%s\"", STR_ARG(name), points[at].type);
		ask(p, at, name);
	}
	VAL_EACH(e, enabled)
		if (none || !lists(multi, val_str(*e, name)) || lists(disabled, val_str(*e, name)))
			ask(p, at, val_str(*e, name));
	return 0;
}

static int64_t weight_in(struct val plugins, str name)
{
	VAL_EACH(e, plugins)
		if (str_eq(val_str(*e, name), name))
			return val_int(*e, weight);
	return 0;
}

static int set_weights(struct profile *p, struct val sets, struct err *err)
{
	int64_t left = INT64_MAX;

	for (size_t i = 0; i < p->n; i++) {
		str name = str_of(p->plugins[i]->name);
		struct val score = val_get(sets, score, enabled);
		int64_t w = lists(score, name) ? weight_in(score, name) : weight_in(val_get(sets, multiPoint, enabled), name);
		if (!p->plugins[i]->score)
			continue;
		p->weight[i] = w ? w : 1;
		if (p->weight[i] * 100 > left)
			return err_set(err, ERR_INVALID, "score plugins: total score of Score plugins could overflow");
		left -= p->weight[i] * 100;
	}
	return 0;
}

static int configure(struct profile *p, struct val configs, struct err *err)
{
	for (size_t i = 0; i < p->n; i++) {
		struct val args = VAL_EMPTY;
		VAL_EACH(c, configs)
			if (str_eq(val_str(*c, name), str_of(p->plugins[i]->name)))
				args = val_get(*c, args);
		int r = p->plugins[i]->configure ? p->plugins[i]->configure(args, &p->config[i], err) : 0;
		if (r < 0)
			return err_wrap(err, r, "initializing plugin \"%s\"", p->plugins[i]->name);
	}
	return 0;
}

/* A filter whose pre_filter is switched off would have nothing to go by. */
static int check_states(const struct profile *p, struct err *err)
{
	for (unsigned k = 0; k < p->n_order[POINT_FILTER]; k++) {
		const struct plugin *plugin = p->plugins[p->order[POINT_FILTER][k]];
		bool made = !plugin->pre_filter;
		for (unsigned j = 0; j < p->n_order[POINT_PRE_FILTER]; j++)
			made |= p->plugins[p->order[POINT_PRE_FILTER][j]] == plugin;
		if (!made)
			return err_set(err, ERR_INVALID, "plugin \"%s\" cannot filter without its preFilter; disable both or none", plugin->name);
	}
	for (unsigned k = 0; k < p->n_order[POINT_SCORE]; k++) {
		const struct plugin *plugin = p->plugins[p->order[POINT_SCORE][k]];
		bool made = !plugin->pre_score;
		for (unsigned j = 0; j < p->n_order[POINT_PRE_SCORE]; j++)
			made |= p->plugins[p->order[POINT_PRE_SCORE][j]] == plugin;
		if (!made)
			return err_set(err, ERR_INVALID, "plugin \"%s\" cannot score without its preScore; disable both or none", plugin->name);
	}
	return 0;
}

int profile_init(struct profile *p, struct val config, struct err *err)
{
	struct val sets = val_get(config, plugins), percentage = val_get(config, percentageOfNodesToScore);
	int r;

	*p = (struct profile){ .name = val_str(config, schedulerName), .percentage = val_is(percentage, VAL_INT) ? (int)percentage.i : -1 };
	if ((r = add_plugins(p, sets, err)) < 0)
		return r;
	for (int at = 0; at < POINT_MAX; at++)
		if ((r = order_point(p, at, val_member(sets, points[at].field), val_get(sets, multiPoint, enabled), err)) < 0)
			return r;
	if (p->n_order[POINT_QUEUE_SORT] != 1)
		return err_set(err, ERR_INVALID, "only one queue sort plugin required for profile with scheduler name \"" STR_FMT "\", but got %d",
			       STR_ARG(p->name), p->n_order[POINT_QUEUE_SORT]);
	if (!p->n_order[POINT_BIND])
		return err_set(err, ERR_INVALID, "at least one bind plugin is needed for profile with scheduler name \"" STR_FMT "\"", STR_ARG(p->name));
	if ((r = check_states(p, err)) < 0 || (r = set_weights(p, sets, err)) < 0)
		return r;
	return configure(p, val_get(config, pluginConfig), err);
}

void profile_done(struct profile *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->config[i] && p->plugins[i]->config_free)
			p->plugins[i]->config_free(p->config[i]);
		else
			free(p->config[i]);
	}
	p->n = 0;
}
