#include "controllers/daemon_set_pod.h"

#include "codec/atoms.h"
#include "controllers/labels.h"
#include "controllers/taints.h"

#define TEMPLATE_GENERATION "deprecated.daemonset.template.generation"

/* ---- tolerations ---- */

static bool same_toleration(struct val x, struct val y)
{
	return str_eq(val_str(x, key), val_str(y, key)) && str_eq(val_str(x, effect), val_str(y, effect)) &&
	       str_eq(val_str(x, operator), val_str(y, operator)) && str_eq(val_str(x, value), val_str(y, value));
}

static struct val with_toleration(struct arena *a, struct val list, const char *key, const char *effect)
{
	struct val t = OBJECT(a, F(key, VAL_STR(str_of(key))), F(operator, VAL_LIT("Exists")), F(effect, VAL_STR(str_of(effect))));

	for (size_t i = 0; i < val_len(list); i++)
		if (same_toleration(val_at(list, i), t))
			return val_equal(val_at(list, i), t) ? list : val_list_set(a, list, i, t);
	return val_list_append(a, list, t);
}

static struct val daemon_tolerations(struct arena *a, struct val spec)
{
	static const struct { const char *key, *effect; bool host_network; } all[] = {
		{ TAINT_NOT_READY, NO_EXECUTE, false },
		{ TAINT_UNREACHABLE, NO_EXECUTE, false },
		{ "node.kubernetes.io/disk-pressure", NO_SCHEDULE, false },
		{ "node.kubernetes.io/memory-pressure", NO_SCHEDULE, false },
		{ "node.kubernetes.io/pid-pressure", NO_SCHEDULE, false },
		{ "node.kubernetes.io/unschedulable", NO_SCHEDULE, false },
		{ "node.kubernetes.io/network-unavailable", NO_SCHEDULE, true },
	};
	struct val list = val_get(spec, tolerations);

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!all[i].host_network || val_bool(spec, hostNetwork))
			list = with_toleration(a, list, all[i].key, all[i].effect);
	return list;
}

/* ---- pods ---- */

static str generation_of(struct val set)
{
	int64_t n;
	str text = annotation_of(set, STR(TEMPLATE_GENERATION));
	return str_to_i64(text, &n) ? text : STR_NONE;
}

struct val daemon_template(struct arena *a, struct val set, str hash)
{
	struct val t = val_get(set, spec, template), labels = val_get(t, metadata, labels);
	str generation = generation_of(set);

	if (generation.n)
		labels = labels_put(a, labels, STR(DAEMON_GENERATION), VAL_STR(generation));
	if (hash.n)
		labels = labels_put(a, labels, STR(DAEMON_HASH), VAL_STR(hash));
	t = val_with(a, t, labels, metadata, labels);
	return val_with(a, t, daemon_tolerations(a, val_get(t, spec)), spec, tolerations);
}

struct val daemon_spec_for(struct arena *a, struct val spec, str node)
{
	struct val field = OBJECT(a, F(key, VAL_LIT("metadata.name")), F(operator, VAL_LIT("In")), F(values, LIST(a, VAL_STR(node))));
	struct val terms = LIST(a, OBJECT(a, F(matchFields, LIST(a, field))));
	return val_with(a, spec, terms, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution, nodeSelectorTerms);
}

str daemon_target(struct val pod)
{
	str node = val_str(pod, spec, nodeName);
	if (node.n)
		return node;
	VAL_EACH(t, val_get(pod, spec, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution, nodeSelectorTerms))
		VAL_EACH(f, val_get(*t, matchFields))
			if (str_eq(val_str(*f, key), STR("metadata.name")) && str_eq(val_str(*f, operator), STR("In")))
				return val_len(val_get(*f, values)) == 1 ? val_as_str(val_at(val_get(*f, values), 0)) : STR_NONE;
	return STR_NONE;
}

bool daemon_is_updated(struct val set, struct val pod, str hash)
{
	str generation = generation_of(set);
	return (hash.n && str_eq(label_of(pod, STR(DAEMON_HASH)), hash)) ||
	       (generation.n && str_eq(label_of(pod, STR(DAEMON_GENERATION)), generation));
}

/* ---- nodes ---- */

void daemon_place_compile(struct arena *a, struct val set, struct daemon_place *ret)
{
	struct val spec = val_get(set, spec, template, spec);

	*ret = (struct daemon_place){ .node_name = val_str(spec, nodeName), .tolerations = daemon_tolerations(a, spec) };
	node_affinity_compile(a, spec, &ret->affinity);
}

static bool tolerates(struct val tolerations, struct val taint)
{
	VAL_EACH(t, tolerations)
		if (toleration_tolerates(*t, taint))
			return true;
	return false;
}

void daemon_place_check(const struct daemon_place *p, struct val node, bool *ret_run, bool *ret_stay)
{
	*ret_run = *ret_stay = (!p->node_name.n || str_eq(p->node_name, val_str(node, metadata, name))) &&
			       node_affinity_matches(&p->affinity, node, NULL) == 1;
	if (!*ret_run)
		return;
	VAL_EACH(t, val_get(node, spec, taints)) {
		str effect = val_str(*t, effect);
		bool throws_out = str_eq(effect, STR(NO_EXECUTE));
		if ((!throws_out && !str_eq(effect, STR(NO_SCHEDULE))) || tolerates(p->tolerations, *t))
			continue;
		*ret_run = false;
		*ret_stay &= !throws_out;
	}
}
