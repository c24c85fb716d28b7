/* Requests and limits of containers and of pods. */
#include <stdlib.h>

#include "base/buf.h"
#include "codec/atoms.h"
#include "machinery/validate_pod.h"

enum { CLAIM_LIST_MAX = 64 << 10 };

/* ---- names and amounts ---- */

void check_resource_name(struct field_errors *e, const struct field_path *at, str resource)
{
	size_t before = e->n;
	check_label_key(e, at, resource);
	if (e->n == before && str_chr(resource, '/') < 0 && !resource_is_standard(resource))
		field_invalid(e, at, VAL_STR(resource), "must be a standard resource type or fully qualified");
}

void check_container_resource_name(struct field_errors *e, const struct field_path *at, str resource)
{
	check_resource_name(e, at, resource);
	if (str_chr(resource, '/') < 0 && !resource_is_of_containers(resource))
		field_invalid(e, at, VAL_STR(resource), "must be a standard resource for containers");
	else if (!resource_is_native(resource) && !resource_is_extended(resource))
		field_invalid(e, at, VAL_STR(resource), "doesn't follow extended resource name standard");
}

static void check_pod_resource_name(struct field_errors *e, const struct field_path *at, str resource)
{
	static const str known[] = { STR_INIT("cpu"), STR_INIT("hugepages-"), STR_INIT("memory"), { NULL, 0 } };
	size_t before = e->n;
	check_resource_name(e, at, resource);
	if (e->n == before && !resource_is_pod_level(resource))
		field_not_supported(e, at, VAL_STR(resource), known);
}

void check_resource_quantity(struct field_errors *e, const struct field_path *at, str resource, struct val quantity)
{
	struct quantity q = quantity_of(quantity);
	if (q.nanos < 0)
		field_invalid(e, at, quantity, "must be greater than or equal to 0");
	if (resource_is_integer(resource) && quantity_milli(q) % 1000)
		field_invalid(e, at, quantity, "must be an integer");
}

bool huge_page_divides(str resource, struct val quantity)
{
	struct quantity page;
	struct err ignored;

	if (quantity_parse(str_skip(resource, sizeof("hugepages-") - 1), &page, &ignored) < 0 || page.nanos <= 0 ||
	    quantity_milli(page) % 1000)
		return false;
	return quantity_value(quantity_of(quantity)) % quantity_value(page) == 0;
}

static void check_huge_pages(struct pod_check *c, const struct field_path *at, str resource, struct val quantity)
{
	if (!c->indivisible_huge_pages && !huge_page_divides(resource, quantity))
		field_invalid(c->e, at, quantity, STR_FMT " is not positive integer multiple of " STR_FMT,
			      STR_ARG(val_as_str(quantity)), STR_ARG(resource));
}

/* ---- claims ---- */

static int str_order(const void *a, const void *b) { return str_cmp(*(const str *)a, *(const str *)b); }

/* The claims of the pod as errors list them. */
static str claim_names(struct pod_check *c)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CLAIM_LIST_MAX);
	str *names = ARENA_ARRAY(c->e->arena, str, map_len(&c->claims));
	struct map_iter it = map_iter(&c->claims);
	size_t n = 0;

	if (c->claim_names.p)
		return c->claim_names;
	for (str name; map_next(&it, &name);)
		names[n++] = name;
	qsort(names, n, sizeof(*names), str_order);
	for (size_t i = 0; i < n; i++)
		buf_addf(&text, "%s" STR_FMT, i ? ", " : ": ", STR_ARG(names[i]));
	c->claim_names = n ? arena_str(c->e->arena, buf_str(&text)) : STR(" which is empty");
	return c->claim_names;
}

/* A claim is used as a whole or by its requests, not both, and each of them once. */
static void check_claim(struct pod_check *c, const struct field_path *at, struct val claim, struct map *used,
			struct map *parts)
{
	str name = val_str(claim, name), request = val_str(claim, request), key = name;
	uintptr_t n_parts = (uintptr_t)map_get(parts, name);

	if (set_has(used, name)) {
		field_duplicate(c->e, at, VAL_STR(name));
		return;
	}
	if (request.n) {
		check_name(c->e, FIELD(at, "request"), request, name_check_dns1123_label);
		key = arena_printf(c->e->arena, STR_FMT "/" STR_FMT, STR_ARG(name), STR_ARG(request));
	}
	if (!set_add(used, key))
		field_duplicate(c->e, at, VAL_STR(key));
	else if (request.n)
		map_put(parts, name, (void *)(n_parts + 1));
	else
		for (uintptr_t i = 0; i < n_parts; i++)
			field_duplicate(c->e, at, VAL_STR(name));
}

static void check_claims(struct pod_check *c, const struct field_path *at, struct val claims)
{
	CLEANUP(map_done) struct map used = MAP_INIT;
	CLEANUP(map_done) struct map parts = MAP_INIT;
	size_t i = 0;

	VAL_EACH(claim, claims) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str name = val_str(*claim, name);
		if (name.n == 0) {
			field_missing(c->e, item);
			continue;
		}
		check_claim(c, item, *claim, &used, &parts);
		if (!set_has(&c->claims, name))
			field_error_add(c->e, FIELD_ERROR_NOT_FOUND, item, VAL_STR(name),
					"must be one of the names in pod.spec.resourceClaims" STR_FMT,
					STR_ARG(claim_names(c)));
	}
}

/* ---- requirements ---- */

static bool is_compute(str name) { return str_eq(name, STR("cpu")) || str_eq(name, STR("memory")); }

/* What was seen in a list, for the rule that huge pages do not come alone. */
struct seen {
	bool compute, huge_pages;
};

typedef void resource_name_check(struct field_errors *e, const struct field_path *at, str resource);

static void check_list(struct pod_check *c, const struct field_path *at, struct val list, resource_name_check *check,
		       struct seen *seen)
{
	VAL_EACH_MEMBER(m, list) {
		str name = atom_str(m->key);
		const struct field_path *item = FIELD_KEY(at, name);
		check(c->e, item, name);
		check_resource_quantity(c->e, item, name, m->val);
		if (resource_is_huge_page(name)) {
			seen->huge_pages = true;
			check_huge_pages(c, item, name, m->val);
		}
		seen->compute |= is_compute(name);
	}
}

static void check_request_and_limit(struct pod_check *c, const struct field_path *at, str name, struct val request,
				    struct val limit)
{
	int order = quantity_cmp(quantity_of(request), quantity_of(limit));

	if (!val_exists(limit)) {
		if (!resource_can_overcommit(name))
			field_required(c->e, FIELD(at, "limits"), "Limit must be set for non overcommitable resources");
	} else if (order && !resource_can_overcommit(name)) {
		field_invalid(c->e, FIELD(at, "requests"), request, "must be equal to " STR_FMT " limit of " STR_FMT,
			      STR_ARG(name), STR_ARG(val_as_str(limit)));
	} else if (order > 0) {
		field_invalid(c->e, FIELD(at, "requests"), request,
			      "must be less than or equal to " STR_FMT " limit of " STR_FMT,
			      STR_ARG(name), STR_ARG(val_as_str(limit)));
	}
}

/* Requests are checked together with their limits, so that errors come in Kubernetes' order. */
static void check_requests(struct pod_check *c, const struct field_path *at, struct val resources,
			   resource_name_check *check, struct seen *seen)
{
	struct val limits = val_get(resources, limits);
	VAL_EACH_MEMBER(m, val_get(resources, requests)) {
		str name = atom_str(m->key);
		const struct field_path *item = FIELD_KEY(FIELD(at, "requests"), name);
		check(c->e, item, name);
		check_resource_quantity(c->e, item, name, m->val);
		check_request_and_limit(c, at, name, m->val, sorted_find(limits, name));
		if (resource_is_huge_page(name)) {
			seen->huge_pages = true;
			check_huge_pages(c, item, name, m->val);
		}
		seen->compute |= is_compute(name);
	}
}

static void check_requirements(struct pod_check *c, const struct field_path *at, struct val resources,
			       resource_name_check *check)
{
	struct seen seen = { 0 };

	check_list(c, FIELD(at, "limits"), val_get(resources, limits), check, &seen);
	check_requests(c, at, resources, check, &seen);
	if (seen.huge_pages && !seen.compute)
		field_forbidden(c->e, at, "HugePages require cpu or memory");
	check_claims(c, FIELD(at, "claims"), val_get(resources, claims));
}

void check_container_resources(struct pod_check *c, const struct field_path *at, struct val resources)
{
	check_requirements(c, at, resources, check_container_resource_name);
}

/* ---- resources of the pod as a whole ---- */

static void check_sums(struct pod_check *c, const struct field_path *at, struct val resources)
{
	struct arena *a = c->e->arena;

	VAL_EACH_MEMBER(m, pod_container_resources(a, c->spec, A_requests)) {
		struct val of_pod = sorted_find(val_get(resources, requests), atom_str(m->key));
		if (val_exists(of_pod) && quantity_cmp(quantity_of(m->val), quantity_of(of_pod)) > 0)
			field_invalid(c->e, FIELD_KEY(FIELD(at, "requests"), atom_str(m->key)), of_pod,
				      "must be greater than or equal to aggregate container requests of " STR_FMT,
				      STR_ARG(val_as_str(m->val)));
	}
	VAL_EACH_MEMBER(m, pod_container_resources(a, c->spec, A_limits)) {
		struct val of_pod = sorted_find(val_get(resources, limits), atom_str(m->key));
		if (resource_is_huge_page(atom_str(m->key)) && val_exists(of_pod) &&
		    quantity_cmp(quantity_of(m->val), quantity_of(of_pod)) > 0)
			field_invalid(c->e, FIELD_KEY(FIELD(at, "limits"), atom_str(m->key)), of_pod,
				      "must be greater than or equal to aggregate container limits of " STR_FMT,
				      STR_ARG(val_as_str(m->val)));
	}
}

static void check_container_limits(struct pod_check *c, const struct field_path *at, struct val resources)
{
	size_t i = 0;
	VAL_EACH(container, val_get(c->spec, containers)) {
		const struct field_path *item = FIELD_INDEX(FIELD(at, "containers"), i++);
		VAL_EACH_MEMBER(m, val_get(*container, resources, limits)) {
			struct val of_pod = sorted_find(val_get(resources, limits), atom_str(m->key));
			if (val_exists(of_pod) && quantity_cmp(quantity_of(m->val), quantity_of(of_pod)) > 0)
				field_invalid(c->e, FIELD(FIELD_KEY(item, atom_str(m->key)), "limits"), m->val,
					      "must be less than or equal to pod limits of " STR_FMT,
					      STR_ARG(val_as_str(of_pod)));
		}
	}
}

void check_pod_resources(struct pod_check *c, const struct field_path *at)
{
	struct val resources = val_get(c->spec, resources);
	const struct field_path *below = FIELD(at, "resources");

	if (!val_exists(resources))
		return;
	if (str_eq(val_str(c->spec, os, name), STR("windows"))) {
		field_forbidden(c->e, below, "may not be set for a windows pod");
		return;
	}
	if (val_has(resources, claims))
		field_forbidden(c->e, FIELD(below, "claims"), "claims may not be set for Resources at pod-level");
	check_requirements(c, below, resources, check_pod_resource_name);
	check_sums(c, below, resources);
	check_container_limits(c, below, resources);
}
