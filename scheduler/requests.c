#include "scheduler/requests.h"

#include "codec/atoms.h"
#include "machinery/resources.h"

#define NANOS ((quantity_nanos)1000000000)

enum { COMPUTE = 1 << RES_CPU | 1 << RES_MEMORY };

/* Amounts in billionths by resource; given: which of them were said, as zero is not the same as nothing. */
struct amounts {
	quantity_nanos v[RES_MAX];
	uint32_t given;
};

_Static_assert(RES_MAX <= 32, "one bit per resource");

static void amounts_init(struct amounts *m, unsigned n)
{
	memset(m->v, 0, n * sizeof(m->v[0]));
	m->given = 0;
}

static void amount_add(struct amounts *m, unsigned r, quantity_nanos by)
{
	struct quantity sum = quantity_add((struct quantity){ .nanos = m->v[r] }, (struct quantity){ .nanos = by });
	m->v[r] = sum.nanos;
	m->given |= 1u << r;
}

static void amount_raise(struct amounts *m, unsigned r, quantity_nanos to)
{
	if (!(m->given >> r & 1) || to > m->v[r])
		m->v[r] = to;
	m->given |= 1u << r;
}

static void amounts_add(struct amounts *m, const struct amounts *by)
{
	for (uint32_t left = by->given; left; left &= left - 1)
		amount_add(m, (unsigned)__builtin_ctz(left), by->v[__builtin_ctz(left)]);
}

static void amounts_raise(struct amounts *m, const struct amounts *to)
{
	for (uint32_t left = to->given; left; left &= left - 1)
		amount_raise(m, (unsigned)__builtin_ctz(left), to->v[__builtin_ctz(left)]);
}

/* What is being computed. */
struct asking {
	const struct nodes *table;
	unsigned missing;             /* bits of resources that stand for something when they are not said */
	bool infeasible;              /* a resize that cannot be done: what was asked for does not count */
	bool unknown, lacks;
	struct map statuses;          /* of containers that say what is in force, by name */
};

/* True for names that the scheduler counts; *ret_index is RES_MAX for those that no node has. */
static bool resource_index(const struct nodes *t, str name, unsigned *ret_index)
{
	*ret_index = nodes_resource_find(t, name);
	return *ret_index != RES_PODS && (*ret_index < RES_MAX || resource_is_scalar(name));
}

static void list_raise(struct asking *q, struct amounts *m, struct val list)
{
	VAL_EACH_MEMBER(e, list) {
		unsigned r;
		quantity_nanos nanos;
		if (!resource_index(q->table, atom_str(e->key), &r))
			continue;
		nanos = quantity_of(e->val).nanos;
		if (r < RES_MAX)
			amount_raise(m, r, nanos);
		else
			q->unknown |= nanos > 0;
	}
}

/* What was asked for, what is set aside and what is in force: the most of them. */
static void effective(struct asking *q, struct amounts *m, struct val asked, struct val in_force, struct val set_aside)
{
	if (!q->infeasible)
		list_raise(q, m, asked);
	list_raise(q, m, in_force);
	list_raise(q, m, set_aside);
}

/* Those that say what is in force. */
static void index_statuses(struct map *by_name, struct val statuses)
{
	VAL_EACH(s, statuses)
		if (!val_is_nil(val_get(*s, resources)))
			map_put(by_name, val_str(*s, name), (void *)(uintptr_t)s);
}

static void container_amounts(struct asking *q, struct val container, bool stays, struct amounts *ret)
{
	struct val asked = val_get(container, resources, requests);
	const struct val *status = stays && map_len(&q->statuses) ? map_get(&q->statuses, val_str(container, name)) : NULL;

	amounts_init(ret, q->table->n_resources);
	if (status)
		effective(q, ret, asked, val_get(*status, resources, requests), val_get(*status, allocatedResources));
	else
		list_raise(q, ret, asked);
	q->lacks |= (ret->given & COMPUTE) != COMPUTE;
	if (q->missing & ~ret->given & 1u << RES_CPU)
		amount_add(ret, RES_CPU, NANOS / 10);
	if (q->missing & ~ret->given & 1u << RES_MEMORY)
		amount_add(ret, RES_MEMORY, 200 * 1024 * 1024 * NANOS);
}

static void containers_sum(struct asking *q, struct val pod, struct amounts *ret)
{
	struct amounts one, sidecars, most;
	unsigned n = q->table->n_resources;

	amounts_init(ret, n);
	VAL_EACH(c, val_get(pod, spec, containers)) {
		container_amounts(q, *c, true, &one);
		amounts_add(ret, &one);
	}
	if (!val_len(val_get(pod, spec, initContainers)))
		return;
	amounts_init(&sidecars, n);
	amounts_init(&most, n);
	VAL_EACH(c, val_get(pod, spec, initContainers)) {
		bool stays = container_is_sidecar(*c);
		container_amounts(q, *c, stays, &one);
		if (stays) {
			amounts_add(ret, &one);
			amounts_add(&sidecars, &one);
			amounts_raise(&most, &sidecars);
		} else {
			amounts_add(&one, &sidecars);
			amounts_raise(&most, &one);
		}
	}
	amounts_raise(ret, &most);
}

static bool says_pod_level(struct val pod)
{
	VAL_EACH_MEMBER(e, val_get(pod, spec, resources, requests))
		if (resource_is_pod_level(atom_str(e->key)))
			return true;
	return false;
}

/* What is said for the pod as a whole takes the place of the sum. */
static void pod_level(struct asking *q, struct val pod, struct amounts *sum)
{
	struct val asked = val_get(pod, spec, resources, requests), in_force = val_get(pod, status, resources);
	struct amounts one;
	bool unknown = q->unknown;

	amounts_init(&one, q->table->n_resources);
	if (q->table->no_pod_level_resize || val_is_nil(in_force))
		list_raise(q, &one, asked);
	else
		effective(q, &one, asked, val_get(in_force, requests), val_get(pod, status, allocatedResources));
	q->unknown = unknown; /* other resources do not count here */
	VAL_EACH_MEMBER(e, asked) {
		unsigned r;
		if (!resource_is_pod_level(atom_str(e->key)) || !resource_index(q->table, atom_str(e->key), &r))
			continue;
		if (r == RES_MAX) {
			q->unknown |= quantity_of(e->val).nanos > 0;
			continue;
		}
		sum->v[r] = one.v[r];
		sum->given |= 1u << r;
	}
}

bool resize_is_infeasible(struct val pod)
{
	VAL_EACH(c, val_get(pod, status, conditions))
		if (str_eq(val_str(*c, type), STR("PodResizePending")))
			return str_eq(val_str(*c, reason), STR("Infeasible"));
	return false;
}

static void overhead_add(struct asking *q, struct val pod, struct amounts *sum)
{
	struct val overhead = val_get(pod, spec, overhead);
	struct amounts one;

	if (!val_len(overhead))
		return;
	amounts_init(&one, q->table->n_resources);
	list_raise(q, &one, overhead);
	amounts_add(sum, &one);
}

static int64_t rounded(unsigned r, quantity_nanos nanos)
{
	struct quantity q = { .nanos = nanos };
	return MAX(r == RES_CPU ? quantity_milli(q) : quantity_value(q), INT64_C(0));
}

static void amounts_round(const struct amounts *m, struct res *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t left = m->given; left; left &= left - 1)
		ret->v[__builtin_ctz(left)] = rounded((unsigned)__builtin_ctz(left), m->v[__builtin_ctz(left)]);
}

static void compute(struct asking *q, struct val pod, bool of_pod, struct amounts *sum)
{
	containers_sum(q, pod, sum);
	if (of_pod)
		pod_level(q, pod, sum);
	overhead_add(q, pod, sum);
}

void pod_request(const struct nodes *t, struct val pod, unsigned how, struct pod_request *ret)
{
	struct asking q = { .table = t, .infeasible = resize_is_infeasible(pod), .missing = how & REQUEST_NONZERO ? COMPUTE : 0 };
	bool of_pod = !(how & REQUEST_CONTAINERS) && !t->no_pod_level && says_pod_level(pod);
	struct amounts sum;

	index_statuses(&q.statuses, val_get(pod, status, containerStatuses));
	index_statuses(&q.statuses, val_get(pod, status, initContainerStatuses));
	if (of_pod && q.missing) {
		/* Only what neither the pod nor any of its containers says is missing. */
		q.missing = 0;
		compute(&q, pod, of_pod, &sum);
		q.missing = COMPUTE & ~sum.given;
	}
	compute(&q, pod, of_pod, &sum);
	amounts_round(&sum, &ret->amount);
	ret->amount.v[RES_PODS] = 1;
	ret->unknown = q.unknown;
	ret->lacks = q.lacks;
	map_done(&q.statuses);
}

void placed_request(struct placed *p)
{
	struct pod_request q;

	pod_request(p->table, p->pod->val, 0, &q);
	p->request = q.amount;
	p->unknown = q.unknown;
	if (q.lacks)
		pod_request(p->table, p->pod->val, REQUEST_NONZERO, &q);
	p->nonzero_cpu = q.amount.v[RES_CPU];
	p->nonzero_memory = q.amount.v[RES_MEMORY];
}

void resources_read(const struct nodes *t, struct val list, struct res *ret)
{
	memset(ret, 0, sizeof(*ret));
	VAL_EACH_MEMBER(e, list) {
		unsigned r = nodes_resource_find(t, atom_str(e->key));
		if (r < RES_MAX)
			ret->v[r] = rounded(r, quantity_of(e->val).nanos);
	}
}

/* ---- what is not known ---- */

struct names {
	const struct nodes *table;
	str *list;
	size_t n, cap;
};

static void names_add(struct names *names, struct val list, bool of_pod)
{
	VAL_EACH_MEMBER(e, list) {
		str name = atom_str(e->key);
		unsigned r;
		size_t i = 0;
		if (!resource_index(names->table, name, &r) || r < RES_MAX || quantity_of(e->val).nanos <= 0 ||
		    (of_pod && !resource_is_pod_level(name)))
			continue;
		while (i < names->n && !str_eq(names->list[i], name))
			i++;
		if (i == names->n && names->n < names->cap)
			names->list[names->n++] = name;
	}
}

size_t pod_unknown_resources(const struct nodes *t, struct arena *a, struct val pod, str **ret)
{
	enum { MANY = 64 };
	struct names names = { t, ARENA_ARRAY(a, str, MANY), 0, MANY };
	const struct val lists[] = { val_get(pod, spec, containers), val_get(pod, spec, initContainers) };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			names_add(&names, val_get(*c, resources, requests), false);
	names_add(&names, val_get(pod, spec, resources, requests), true);
	names_add(&names, val_get(pod, spec, overhead), false);
	*ret = names.list;
	return names.n;
}

int64_t pod_asks_for(const struct nodes *t, struct val pod, str name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct quantity sum = quantity_of(sorted_find(pod_container_resources(&a, val_get(pod, spec), A_requests), name));
	struct val whole = resource_is_pod_level(name) && !t->no_pod_level ? sorted_find(val_get(pod, spec, resources, requests), name) : VAL_EMPTY;

	if (val_exists(whole))
		sum = quantity_of(whole);
	return quantity_value(quantity_add(sum, quantity_of(sorted_find(val_get(pod, spec, overhead), name))));
}
