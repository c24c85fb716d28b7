#include "scheduler/extended_claim.h"

#include <stdlib.h>

#include "codec/atoms.h"
#include "machinery/resources.h"

#define CLAIM_ANNOTATION "resource.kubernetes.io/extended-resource-claim"
#define CLASS_PREFIX "deviceclass.resource.kubernetes.io/"

/* ---- what is asked for ---- */

static void need(struct devices *d, struct val list, struct extended_needs *e)
{
	VAL_EACH_MEMBER(m, list) {
		str name = atom_str(m->key);
		size_t at = 0;
		if (!(resource_is_extended(name) || str_starts(name, STR(CLASS_PREFIX))) || quantity_of(m->val).nanos <= 0)
			continue;
		while (at < e->n && str_cmp(e->names[at], name) < 0)
			at++;
		if (e->n == EXTENDED_MAX || (at < e->n && str_eq(e->names[at], name)))
			continue;
		memmove(&e->names[at + 1], &e->names[at], (e->n - at) * sizeof(e->names[0]));
		memmove(&e->class[at + 1], &e->class[at], (e->n - at) * sizeof(e->class[0]));
		e->names[at] = name;
		e->class[at] = devices_class_of(d, name);
		e->any |= val_exists(e->class[at]);
		e->n++;
	}
}

/* Most pods ask for cpu and memory, and get here without any work. */
static bool asks_for_others(struct val list)
{
	VAL_EACH_MEMBER(m, list)
		if (m->key != A_cpu && m->key != A_memory)
			return true;
	return false;
}

void extended_needs_read(struct arena *a, struct devices *d, struct val pod, struct extended_needs *ret)
{
	struct val spec = val_get(pod, spec);
	bool others = asks_for_others(val_get(spec, overhead));
	ret->n = 0;
	ret->any = false;
	VAL_EACH(c, val_get(spec, containers))
		others = others || asks_for_others(val_get(*c, resources, requests));
	VAL_EACH(c, val_get(spec, initContainers))
		others = others || asks_for_others(val_get(*c, resources, requests));
	if (!others || !d->features.extended_resources)
		return;
	need(d, pod_container_resources(a, spec, A_requests), ret);
	need(d, val_get(spec, overhead), ret);
}

bool extended_needs_on(const struct extended_needs *e, struct val node, uint64_t *ret_bits)
{
	struct val allocatable = val_get(node, status, allocatable);
	*ret_bits = 0;
	for (size_t i = 0; i < e->n; i++) {
		struct val has = sorted_find(allocatable, e->names[i]);
		if (val_exists(e->class[i]) && quantity_value(quantity_of(has)) == 0)
			*ret_bits |= UINT64_C(1) << i;
		else if (!val_exists(has))
			return false;
	}
	return true;
}

/* ---- the claim ---- */

struct asking {                       /* for one resource */
	str name;                     /* of the request */
	int64_t count;                /* 0: nothing */
};

struct making {
	struct arena *arena;
	struct val *containers;       /* init containers first */
	bool *brief;                  /* those that end before the others run */
	size_t n;
	struct asking *lasting;       /* requests of containers that stay, by container */
	struct val_builder long_mappings, brief_mappings;
	struct asking most;           /* request for containers that do not stay: the largest serves all of them */
	struct val_builder *requests;
};

static struct val mapping(struct arena *a, struct val container, str resource, str request)
{
	return OBJECT(a, F(containerName, val_get(container, name)), F(resourceName, VAL_STR(resource)), F(requestName, VAL_STR(request)));
}

/* The place of a resource among all that the container asks for, sorted. */
static size_t place_of(struct val requests, str resource)
{
	size_t before = 0;
	VAL_EACH_MEMBER(m, requests)
		before += str_cmp(atom_str(m->key), resource) < 0;
	return before;
}

static int64_t asked_by(struct val container, str resource)
{
	struct val amount = val_find(val_get(container, resources, requests), resource);
	return val_exists(amount) ? quantity_value(quantity_of(amount)) : 0;
}

/* What a container still needs when it may use what later ones that stay have; count 0: nothing. */
static struct asking ask(struct making *m, size_t at, str resource, bool reuses, struct val_builder *mappings)
{
	struct val container = m->containers[at];
	int64_t want = asked_by(container, resource), sum = 0;
	if (want <= 0)
		return (struct asking){ .count = 0 };
	for (size_t i = at; i < m->n && reuses; i++) {
		if (!m->lasting[i].count)
			continue;
		sum += m->lasting[i].count;
		val_add_item(mappings, mapping(m->arena, container, resource, m->lasting[i].name));
		if (sum >= want)
			return (struct asking){ .count = 0 };
	}
	return (struct asking){ arena_printf(m->arena, "container-%zu-request-%zu", at, place_of(val_get(container, resources, requests), resource)),
				want - sum };
}

static void add_request(struct making *m, const struct asking *q, struct val class)
{
	struct arena *a = m->arena;
	if (q->count)
		val_add_item(m->requests, OBJECT(a, F(name, VAL_STR(q->name)),
			     F(exactly, OBJECT(a, F(deviceClassName, val_get(class, metadata, name)), F(allocationMode, VAL_LIT("ExactCount")),
					       F(count, val_of_int(q->count))))));
}

static void ask_brief(struct making *m, str resource)
{
	struct asking *own = ARENA_ARRAY(m->arena, struct asking, m->n + 1);
	m->most = (struct asking){ .count = 0 };
	for (size_t i = 0; i < m->n; i++) {
		own[i] = m->brief[i] ? ask(m, i, resource, true, &(struct val_builder){ .arena = m->arena }) : (struct asking){ .count = 0 };
		if (own[i].count > m->most.count)
			m->most = own[i];
	}
	/* Once more, now that it is known which request is for all of them. */
	for (size_t i = 0; i < m->n; i++) {
		if (!m->brief[i])
			continue;
		(void)ask(m, i, resource, true, &m->brief_mappings);
		if (own[i].count)
			val_add_item(&m->brief_mappings, mapping(m->arena, m->containers[i], resource, m->most.name));
	}
}

static void ask_for(struct making *m, str resource, struct val class)
{
	for (size_t i = 0; i < m->n; i++) {
		m->lasting[i] = m->brief[i] ? (struct asking){ .count = 0 } : ask(m, i, resource, false, &m->long_mappings);
		if (m->lasting[i].count)
			val_add_item(&m->long_mappings, mapping(m->arena, m->containers[i], resource, m->lasting[i].name));
	}
	ask_brief(m, resource);
	add_request(m, &m->most, class);
	for (size_t i = 0; i < m->n; i++)
		add_request(m, &m->lasting[i], class);
}

static int by_name(const void *x, const void *y) { return str_cmp(val_str(*(const struct val *)x, name), val_str(*(const struct val *)y, name)); }

static struct val requests_make(struct arena *a, const struct extended_needs *e, struct val pod, uint64_t bits, struct val *ret_mappings)
{
	struct val init = val_get(pod, spec, initContainers), containers = val_get(pod, spec, containers);
	size_t n = val_len(init) + val_len(containers);
	struct val_builder requests = val_builder(a), mappings = val_builder(a);
	struct making m = { .arena = a, .containers = ARENA_ARRAY(a, struct val, n + 1), .brief = ARENA_ARRAY(a, bool, n + 1),
			    .lasting = ARENA_ARRAY(a, struct asking, n + 1), .requests = &requests };
	VAL_EACH(c, init) {
		m.brief[m.n] = !container_is_sidecar(*c);
		m.containers[m.n++] = *c;
	}
	VAL_EACH(c, containers) {
		m.brief[m.n] = false;
		m.containers[m.n++] = *c;
	}
	for (size_t i = 0; i < e->n; i++) {
		if (!(bits >> i & 1))
			continue;
		m.long_mappings = m.brief_mappings = val_builder(a);
		ask_for(&m, e->names[i], e->class[i]);
		VAL_EACH(x, val_end_list(&m.long_mappings))
			val_add_item(&mappings, *x);
		VAL_EACH(x, val_end_list(&m.brief_mappings))
			val_add_item(&mappings, *x);
	}
	*ret_mappings = val_end_list(&mappings);
	struct val list = val_end_list(&requests);
	struct val *sorted = ARENA_ARRAY(a, struct val, val_len(list) + 1);
	for (size_t i = 0; i < val_len(list); i++)
		sorted[i] = val_at(list, i);
	qsort(sorted, val_len(list), sizeof(struct val), by_name);
	return val_list(a, sorted, val_len(list));
}

struct val extended_claim_make(struct arena *a, const struct extended_needs *e, struct val pod, uint64_t bits, str uid, struct val *ret_mappings)
{
	struct val meta = val_get(pod, metadata), requests = requests_make(a, e, pod, bits, ret_mappings);
	struct val owner = OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Pod")), F(name, val_get(meta, name)), F(uid, val_get(meta, uid)),
				  F(controller, val_of_bool(true)));
	struct val annotations = OBJECT(a, { atom_make(a, STR(CLAIM_ANNOTATION)), VAL_LIT("true") });
	str base = arena_printf(a, STR_FMT "-extended-resources-", STR_ARG(val_str(meta, name)));
	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT(EXTENDED_CLAIM_NAME)), F(generateName, VAL_STR(base)), F(namespace, val_get(meta, namespace)),
				    F(uid, VAL_STR(uid)), F(annotations, annotations), F(ownerReferences, LIST(a, owner)))),
		      F(spec, OBJECT(a, F(devices, OBJECT(a, F(requests, requests))))));
}

struct frozen *extended_claim_find(const struct devices *d, struct val pod)
{
	COPIES_EACH(x, &d->claims, val_str(pod, metadata, uid)) {
		struct val claim = copy_val(x);
		if (str_eq(val_as_str(val_find(val_get(claim, metadata, annotations), STR(CLAIM_ANNOTATION))), STR("true")))
			return x->assumed ? x->assumed : x->told;
	}
	return NULL;
}
