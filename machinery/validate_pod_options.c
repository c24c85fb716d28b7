/* What the check of an updated pod tolerates: everything that the old one already does wrong. */
#include "codec/atoms.h"
#include "machinery/validate_pod.h"

/* True when check finds something wrong with v. */
static bool has_errors(struct pod_check *c, void (*check)(struct pod_check *c, struct val v), struct val v)
{
	struct field_errors found, *errors = c->e;

	field_errors_init(&found, errors->arena);
	c->e = &found;
	check(c, v);
	c->e = errors;
	return found.n > 0;
}

static void check_term_selectors(struct pod_check *c, struct val term)
{
	check_label_selector(c->e, NULL, val_get(term, labelSelector), false);
	check_label_selector(c->e, NULL, val_get(term, namespaceSelector), false);
}

static void check_pod_affinity_selectors(struct pod_check *c, struct val affinity)
{
	VAL_EACH(term, val_get(affinity, requiredDuringSchedulingIgnoredDuringExecution))
		check_term_selectors(c, *term);
	VAL_EACH(term, val_get(affinity, preferredDuringSchedulingIgnoredDuringExecution))
		check_term_selectors(c, val_get(*term, podAffinityTerm));
}

static void check_affinity_selectors(struct pod_check *c, struct val spec)
{
	check_pod_affinity_selectors(c, val_get(spec, affinity, podAffinity));
	check_pod_affinity_selectors(c, val_get(spec, affinity, podAntiAffinity));
}

static bool has_bad_node_values(struct val spec)
{
	VAL_EACH(term, val_get(spec, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution,
			       nodeSelectorTerms))
		VAL_EACH(r, val_get(*term, matchExpressions))
			VAL_EACH(v, val_get(*r, values))
				if (name_check_label_value(val_as_str(*v), NULL))
					return true;
	return false;
}

static void check_spread_selectors(struct pod_check *c, struct val spec)
{
	VAL_EACH(constraint, val_get(spec, topologySpreadConstraints))
		check_label_selector(c->e, NULL, val_get(*constraint, labelSelector), false);
}

static void check_spread_keys(struct pod_check *c, struct val spec)
{
	VAL_EACH(constraint, val_get(spec, topologySpreadConstraints))
		check_match_label_keys(c->e, NULL, *constraint);
}

static bool has_odd_huge_pages(struct val list)
{
	VAL_EACH_MEMBER(m, list)
		if (resource_is_huge_page(atom_str(m->key)) && !huge_page_divides(atom_str(m->key), m->val))
			return true;
	return false;
}

static void check_token_paths(struct pod_check *c, struct val spec)
{
	VAL_EACH(volume, val_get(spec, volumes))
		VAL_EACH(source, val_get(*volume, projected, sources))
			if (val_has(*source, serviceAccountToken))
				check_local_path(c->e, NULL, val_str(*source, serviceAccountToken, path));
}

static bool has_host_sysctl(struct val spec)
{
	const char *flag;
	VAL_EACH(s, val_get(spec, securityContext, sysctls))
		if (sysctl_is_of_host(val_str(*s, name), spec, &flag))
			return true;
	return false;
}

static bool has_numeric_toleration(struct val spec)
{
	VAL_EACH(t, val_get(spec, tolerations))
		if (str_eq(val_str(*t, operator), STR("Lt")) || str_eq(val_str(*t, operator), STR("Gt")))
			return true;
	return false;
}

static bool restarts_init_on_resize(struct val spec)
{
	VAL_EACH(container, val_get(spec, initContainers))
		if (!container_is_sidecar(*container))
			VAL_EACH(p, val_get(*container, resizePolicy))
				if (str_eq(val_str(*p, restartPolicy), STR("RestartContainer")))
					return true;
	return false;
}

struct container_use {
	bool devices, odd_huge_pages;
};

static void look_at_container(struct pod_check *c, const struct field_path *at, struct val container, void *arg)
{
	struct container_use *use = arg;
	(void)c;
	(void)at;
	use->devices |= val_len(val_get(container, volumeDevices)) > 0;
	use->odd_huge_pages |= has_odd_huge_pages(val_get(container, resources, limits)) ||
			       has_odd_huge_pages(val_get(container, resources, requests));
}

/* "", or a number of 32 bits without "+" and leading zeros. */
static bool is_deletion_cost(struct val v)
{
	str text = val_as_str(v);
	int64_t cost;

	if (!val_exists(v))
		return true;
	if (text.n == 0 || text.p[0] == '+' || (text.p[0] == '0' && text.n > 1))
		return false;
	return str_to_i64(text, &cost) && cost >= INT32_MIN && cost <= INT32_MAX;
}

bool deletion_cost_is_bad(struct val annotations)
{
	return !is_deletion_cost(val_find(annotations, STR("controller.kubernetes.io/pod-deletion-cost")));
}

void pod_check_init(struct pod_check *c, struct field_errors *e, struct val spec, struct val old_spec, struct val old_meta)
{
	struct container_use use = { 0 };

	*c = (struct pod_check){ .e = e, .spec = old_spec };
	if (val_exists(old_spec)) {
		bool userns = !pod_uses_host_users(old_spec);
		each_container(c, NULL, look_at_container, &use);
		c->indivisible_huge_pages = use.odd_huge_pages || has_odd_huge_pages(val_get(old_spec, overhead));
		c->user_namespace_devices = userns && use.devices;
		c->user_namespace_host_network = userns && val_bool(old_spec, hostNetwork);
		c->bad_selector_values = has_errors(c, check_affinity_selectors, old_spec);
		c->bad_node_affinity_values = has_bad_node_values(old_spec);
		c->bad_spread_selector = has_errors(c, check_spread_selectors, old_spec);
		c->bad_spread_keys = has_errors(c, check_spread_keys, old_spec);
		c->foreign_token_path = has_errors(c, check_token_paths, old_spec);
		c->host_sysctls = has_host_sysctl(old_spec);
		c->numeric_tolerations = has_numeric_toleration(old_spec);
		c->restart_on_resize_of_init = restarts_init_on_resize(old_spec);
		c->any_selinux_policy = val_has(old_spec, securityContext, seLinuxChangePolicy);
		c->bad_deletion_cost = deletion_cost_is_bad(val_get(old_meta, annotations));
	}
	c->spec = spec;
	VAL_EACH(claim, val_get(spec, resourceClaims))
		if (val_str(*claim, name).n)
			set_add(&c->claims, val_str(*claim, name));
}

void pod_check_done(struct pod_check *c)
{
	map_done(&c->volumes);
	map_done(&c->claims);
}
