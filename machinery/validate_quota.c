/* LimitRange and ResourceQuota. */
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "machinery/validate_groups.h"

/* ---- LimitRange ---- */

static bool is_one_word(str name) { return str_chr(name, '/') < 0; }

static void check_limit_type(struct field_errors *e, const struct field_path *at, str type)
{
	static const str standard[] = { STR_INIT("Pod"), STR_INIT("Container"), STR_INIT("PersistentVolumeClaim"),
					{ NULL, 0 } };
	size_t before = e->n;

	check_label_key(e, at, type);
	if (e->n == before && is_one_word(type) && !str_in(type, standard))
		field_invalid(e, at, VAL_STR(type), "must be a standard limit type or fully qualified");
}

static void check_limit_names(struct field_errors *e, const struct field_path *at, str type, struct val list)
{
	bool of_containers = str_eq(type, STR("Pod")) || str_eq(type, STR("Container"));
	VAL_EACH_MEMBER(m, list) {
		const struct field_path *key = FIELD_KEY(at, atom_str(m->key));
		if (of_containers)
			check_container_resource_name(e, key, atom_str(m->key));
		else
			check_resource_name(e, key, atom_str(m->key));
	}
}

/* The values that one resource has in a LimitRangeItem; absent ones are VAL_NONE. */
struct limit {
	str resource;
	struct val min, max, limit, request, ratio;
};

static bool is_above(struct val a, struct val b)
{
	return val_exists(a) && val_exists(b) && quantity_cmp(quantity_of(a), quantity_of(b)) > 0;
}

/* text names both values: "min value %s is greater than max value %s". */
static void limit_order(struct field_errors *e, const struct field_path *at, const struct limit *l, struct val low,
			struct val high, struct val shown, const char *low_name, const char *high_name)
{
	if (is_above(low, high))
		field_invalid(e, FIELD_KEY(at, l->resource), shown,
			      "%s value " STR_FMT " is greater than %s value " STR_FMT, low_name,
			      STR_ARG(val_as_str(low)), high_name, STR_ARG(val_as_str(high)));
}

/* Above this, thousandths do not fit 64 bits and whole units are compared. */
#define MILLI_MAX INT64_C(9223372036854775)

static void check_ratio(struct field_errors *e, const struct field_path *at, const struct limit *l)
{
	struct quantity ratio = quantity_of(l->ratio), min = quantity_of(l->min), max = quantity_of(l->max);
	const struct field_path *key = FIELD_KEY(at, l->resource);

	if (!val_exists(l->ratio))
		return;
	if (quantity_cmp(ratio, quantity_of_int(1, QUANTITY_DECIMAL_SI)) < 0)
		field_invalid(e, key, l->ratio, "ratio " STR_FMT " is less than 1", STR_ARG(val_as_str(l->ratio)));
	if (!val_exists(l->min) || !val_exists(l->max))
		return;
	double value = (double)quantity_value(ratio);
	int64_t low = quantity_value(min), high = quantity_value(max);
	if (quantity_value(ratio) < MILLI_MAX && low < MILLI_MAX && high < MILLI_MAX) {
		value = (double)quantity_milli(ratio) / 1000;
		low = quantity_milli(min);
		high = quantity_milli(max);
	}
	if (low == 0)
		return; /* anything is below infinity */
	double most = (double)high / (double)low;
	if (value > most)
		field_invalid(e, key, l->ratio, "ratio " STR_FMT " is greater than max/min = %f",
			      STR_ARG(val_as_str(l->ratio)), most);
}

static void check_limit(struct field_errors *e, const struct field_path *at, const struct limit *l)
{
	const struct field_path *request = FIELD(at, "defaultRequest"), *limit = FIELD(at, "default");

	limit_order(e, FIELD(at, "min"), l, l->min, l->max, l->min, "min", "max");
	limit_order(e, request, l, l->min, l->request, l->request, "min", "default request");
	limit_order(e, request, l, l->request, l->max, l->request, "default request", "max");
	limit_order(e, request, l, l->request, l->limit, l->request, "default request", "default limit");
	limit_order(e, limit, l, l->min, l->limit, l->min, "min", "default");
	limit_order(e, limit, l, l->limit, l->max, l->max, "default", "max");
	check_ratio(e, FIELD(at, "maxLimitRequestRatio"), l);
	bool overcommits = resource_is_native(l->resource) && !resource_is_huge_page(l->resource);
	if (!overcommits && val_exists(l->limit) && val_exists(l->request) &&
	    quantity_cmp(quantity_of(l->limit), quantity_of(l->request)) != 0)
		field_invalid(e, FIELD_KEY(request, l->resource), l->request,
			      "default value " STR_FMT " must equal to defaultRequest value " STR_FMT " in " STR_FMT,
			      STR_ARG(val_as_str(l->limit)), STR_ARG(val_as_str(l->request)), STR_ARG(l->resource));
}

static void check_limit_item(struct field_errors *e, const struct field_path *at, struct val item)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	str type = val_str(item, type);
	bool is_pod = str_eq(type, STR("Pod"));
	struct val min = val_get(item, min), max = val_get(item, max), ratio = val_get(item, maxLimitRequestRatio);
	struct val limit = is_pod ? VAL_EMPTY : val_get(item, default);
	struct val request = is_pod ? VAL_EMPTY : val_get(item, defaultRequest);
	const struct val lists[] = { max, min, limit, request, ratio };

	check_limit_names(e, FIELD(at, "max"), type, max);
	check_limit_names(e, FIELD(at, "min"), type, min);
	if (is_pod && val_len(val_get(item, default)))
		field_forbidden(e, FIELD(at, "default"), "may not be specified when `type` is 'Pod'");
	if (is_pod && val_len(val_get(item, defaultRequest)))
		field_forbidden(e, FIELD(at, "defaultRequest"), "may not be specified when `type` is 'Pod'");
	check_limit_names(e, FIELD(at, "default"), type, limit);
	check_limit_names(e, FIELD(at, "defaultRequest"), type, request);
	if (str_eq(type, STR("PersistentVolumeClaim")) && !val_has(min, storage) && !val_has(max, storage))
		field_required(e, FIELD(at, "limits"),
			       "either minimum or maximum storage value is required, but neither was provided");
	check_limit_names(e, FIELD(at, "maxLimitRequestRatio"), type, ratio);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH_MEMBER(m, lists[i]) {
			str name = atom_str(m->key);
			if (set_add(&seen, name))
				check_limit(e, at, &(struct limit){ name, val_find(min, name), val_find(max, name),
								    val_find(limit, name), val_find(request, name),
								    val_find(ratio, name) });
		}
}

void check_limit_range(struct field_errors *e, struct val range)
{
	CLEANUP(map_done) struct map types = MAP_INIT;
	size_t i = 0;

	check_meta(e, range, true, name_rule_subdomain);
	VAL_EACH(item, val_get(range, spec, limits)) {
		const struct field_path *at = FIELD_INDEX(FIELD(FIELD(NULL, "spec"), "limits"), i++);
		str type = val_str(*item, type);
		check_limit_type(e, FIELD(at, "type"), type);
		if (!set_add(&types, type))
			field_duplicate(e, FIELD(at, "type"), VAL_STR(type));
		check_limit_item(e, at, *item);
	}
}

/* ---- ResourceQuota ---- */

static bool is_quota_resource(str name)
{
	return (resource_is_standard(name) && !str_eq(name, STR("storage"))) || str_starts(name, STR("hugepages-")) ||
	       str_starts(name, STR("requests.hugepages-"));
}

static void check_quota_list(struct field_errors *e, const struct field_path *at, struct val list)
{
	VAL_EACH_MEMBER(m, list) {
		str name = atom_str(m->key);
		const struct field_path *key = FIELD_KEY(at, name);
		check_resource_name(e, key, name);
		if (is_one_word(name) && !is_quota_resource(name))
			field_invalid(e, key, VAL_STR(name), "must be a standard resource for quota");
		check_resource_quantity(e, key, name, m->val);
	}
}

static const str all_scopes[] = { STR_INIT("Terminating"), STR_INIT("NotTerminating"), STR_INIT("BestEffort"),
				  STR_INIT("NotBestEffort"), STR_INIT("PriorityClass"), STR_INIT("VolumeAttributesClass"),
				  STR_INIT("CrossNamespacePodAffinity") };

/* For each scope, how many hard limits are on resources that it does not apply to. */
struct misfits {
	size_t n[ARRAY_LEN(all_scopes)];
};

/* ARRAY_LEN(all_scopes) for what is no scope. */
static size_t scope_index(str scope)
{
	size_t i = 0;
	while (i < ARRAY_LEN(all_scopes) && !str_eq(all_scopes[i], scope))
		i++;
	return i;
}

static bool is_scope(str scope) { return scope_index(scope) < ARRAY_LEN(all_scopes); }

/* Most scopes select pods, one selects claims: only what those use can be counted by scope. */
static bool scope_fits(str scope, str resource)
{
	static const str compute[] = { STR_INIT("pods"), STR_INIT("cpu"), STR_INIT("memory"), STR_INIT("limits.cpu"),
				       STR_INIT("limits.memory"), STR_INIT("requests.cpu"), STR_INIT("requests.memory"),
				       { NULL, 0 } };
	static const str claims[] = { STR_INIT("persistentvolumeclaims"), STR_INIT("requests.storage"), { NULL, 0 } };

	if (str_eq(scope, STR("BestEffort")))
		return str_eq(resource, STR("pods"));
	return str_in(resource, str_eq(scope, STR("VolumeAttributesClass")) ? claims : compute);
}

static struct misfits misfits_of(struct val hard)
{
	struct misfits misfits = { 0 };
	VAL_EACH_MEMBER(m, hard)
		for (size_t i = 0; i < ARRAY_LEN(all_scopes) && is_quota_resource(atom_str(m->key)); i++)
			misfits.n[i] += !scope_fits(all_scopes[i], atom_str(m->key));
	return misfits;
}

static void check_scope_fits(struct field_errors *e, const struct field_path *at, str scope,
			     const struct misfits *misfits, struct val shown)
{
	for (size_t n = is_scope(scope) ? misfits->n[scope_index(scope)] : 0; n; n--)
		field_invalid(e, at, shown, "unsupported scope applied to resource");
}

static void check_scope_conflicts(struct field_errors *e, const struct field_path *at, const struct map *seen,
				  struct val shown)
{
	if (set_has(seen, STR("BestEffort")) && set_has(seen, STR("NotBestEffort")))
		field_invalid(e, at, shown, "conflicting scopes");
	if (set_has(seen, STR("Terminating")) && set_has(seen, STR("NotTerminating")))
		field_invalid(e, at, shown, "conflicting scopes");
}

static void check_scopes(struct field_errors *e, const struct field_path *at, struct val scopes,
			 const struct misfits *misfits)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;

	VAL_EACH(s, scopes) {
		str scope = val_as_str(*s);
		if (!is_scope(scope))
			field_invalid(e, at, scopes, "unsupported scope");
		check_scope_fits(e, at, scope, misfits, scopes);
		set_add(&seen, scope);
	}
	check_scope_conflicts(e, at, &seen, scopes);
}

static void check_scope_requirement(struct field_errors *e, const struct field_path *at, struct val requirement)
{
	static const str by_presence[] = { STR_INIT("BestEffort"), STR_INIT("NotBestEffort"), STR_INIT("Terminating"),
					   STR_INIT("NotTerminating"), STR_INIT("CrossNamespacePodAffinity"), { NULL, 0 } };
	static const str of_values[] = { STR_INIT("In"), STR_INIT("NotIn"), { NULL, 0 } };
	static const str of_presence[] = { STR_INIT("Exists"), STR_INIT("DoesNotExist"), { NULL, 0 } };
	str scope = val_str(requirement, scopeName), operator = val_str(requirement, operator);
	struct val values = val_get(requirement, values);

	if (str_in(scope, by_presence) && !str_eq(operator, STR("Exists")))
		field_invalid(e, FIELD(at, "operator"), VAL_STR(operator),
			      "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating,"
			      " ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
	if (str_in(operator, of_values)) {
		if (val_len(values) == 0)
			field_required(e, FIELD(at, "values"),
				       "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
	} else if (str_in(operator, of_presence)) {
		if (val_len(values))
			field_invalid(e, FIELD(at, "values"), values,
				      "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
	} else {
		field_invalid(e, FIELD(at, "operator"), VAL_STR(operator), "not a valid selector operator");
	}
}

static void check_scope_selector(struct field_errors *e, const struct field_path *at, struct val spec,
				 const struct misfits *misfits)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	struct val selector = val_get(spec, scopeSelector);
	struct val shown = internal_form(e->arena, TYPE(core_v1, ScopeSelector), selector);

	VAL_EACH(requirement, val_get(selector, matchExpressions)) {
		str scope = val_str(*requirement, scopeName);
		if (!is_scope(scope))
			field_invalid(e, FIELD(at, "scopeName"), VAL_STR(scope), "unsupported scope");
		check_scope_fits(e, at, scope, misfits, shown);
		check_scope_requirement(e, at, *requirement);
		set_add(&seen, scope);
	}
	check_scope_conflicts(e, at, &seen, val_get(spec, scopes));
}

static void check_quota_spec(struct field_errors *e, struct val spec)
{
	const struct field_path *at = FIELD(NULL, "spec");
	struct misfits misfits = misfits_of(val_get(spec, hard));

	check_quota_list(e, FIELD(at, "hard"), val_get(spec, hard));
	check_scopes(e, FIELD(at, "scopes"), val_get(spec, scopes), &misfits);
	check_scope_selector(e, FIELD(FIELD(at, "scopeSelector"), "matchExpressions"), spec, &misfits);
}

static void check_quota_status(struct field_errors *e, struct val status)
{
	const struct field_path *at = FIELD(NULL, "status");
	check_quota_list(e, FIELD(at, "hard"), val_get(status, hard));
	check_quota_list(e, FIELD(at, "used"), val_get(status, used));
}

void check_resource_quota(struct field_errors *e, struct val quota)
{
	check_meta(e, quota, true, name_rule_subdomain);
	check_quota_spec(e, val_get(quota, spec));
	check_quota_status(e, val_get(quota, status));
}

static bool has_same_scopes(struct val a, struct val b)
{
	CLEANUP(map_done) struct map of_a = MAP_INIT, of_b = MAP_INIT;

	set_add_all(&of_a, a);
	set_add_all(&of_b, b);
	VAL_EACH(scope, a)
		if (!set_has(&of_b, val_as_str(*scope)))
			return false;
	return map_len(&of_a) == map_len(&of_b);
}

void check_resource_quota_update(struct field_errors *e, struct val quota, struct val old)
{
	struct val scopes = val_get(quota, spec, scopes);

	check_meta_update(e, quota, old);
	check_quota_spec(e, val_get(quota, spec));
	if (!has_same_scopes(scopes, val_get(old, spec, scopes)))
		field_invalid(e, FIELD(FIELD(NULL, "spec"), "scopes"), scopes, "field is immutable");
}

void check_resource_quota_status(struct field_errors *e, str subresource, struct val quota, struct val old)
{
	(void)subresource;
	check_meta_update(e, quota, old);
	check_given(e, FIELD(NULL, "resourceVersion"), val_str(quota, metadata, resourceVersion));
	check_quota_status(e, val_get(quota, status));
}
