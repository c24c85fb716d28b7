/*
 * The search for devices. Claims, their requests and the devices of each request are served one after another; when something is missing, the
 * last choice is made otherwise: the first solution is taken, as in Kubernetes. The number of tries is limited, and so is the depth: by the
 * number of devices that a claim may have.
 */
#include <stdlib.h>

#include "codec/atoms.h"
#include "machinery/resources.h"
#include "scheduler/devices.h"

struct device {
	str driver, pool, name;
	struct val object, slice;
	struct device_pool *from;
	bool taken;                   /* by claims that are allocated */
	unsigned picked;              /* by claims of this pod: how often */
};

struct option {                       /* a request, or one of its alternatives */
	str base, sub;                /* names; sub is empty for a request */
	struct val spec, class;
	bool all, admin;
	int64_t count;
};

struct request {
	struct option *options;
	size_t n;
	bool alternatives;
	size_t chosen;
};

struct constraint {                   /* the same value of an attribute, or another for each device */
	struct val requests;          /* names; none: all */
	str attribute;
	bool distinct;
	struct val value;             /* the same: of the devices picked so far */
	unsigned n;
};

struct claim {
	struct val object;
	struct request *requests;
	size_t n;
	struct constraint *constraints;
	size_t n_constraints;
	size_t n_picked;
};

struct pick {
	struct device *device;
	const struct option *option;
	size_t claim;
};

struct wide_slice {                   /* of more than one node */
	struct val slice;
	bool everywhere, by_device;
	struct node_selector nodes;
};

struct device_search {
	struct arena *arena;
	struct devices *devices;
	struct claim *claims;
	size_t n_claims;
	struct wide_slice *wide;
	size_t n_wide;
	/* ---- of one node ---- */
	str node_name;
	struct val node;
	struct device *all;
	size_t n, cap;
	str incomplete;               /* a pool that is being rewritten; empty: none */
	struct pick picks[DEVICES_PER_POD];
	size_t n_picks;
	unsigned tries;
};

/* ---- once per pod ---- */

static str claim_key(const struct device_search *s, const struct claim *c)
{
	return object_key(s->arena, c->object);
}

static int option_make(struct device_search *s, const struct claim *c, str base, str sub, struct val spec, struct option *ret, struct err *err)
{
	str class_name = val_str(spec, deviceClassName), mode = val_str(spec, allocationMode), key = claim_key(s, c);
	str name = sub.n ? arena_printf(s->arena, STR_FMT "/" STR_FMT, STR_ARG(base), STR_ARG(sub)) : base;
	*ret = (struct option){ .base = base, .sub = sub, .spec = spec, .admin = val_bool(spec, adminAccess),
				.count = val_has(spec, count) ? val_int(spec, count) : 1 };
	if (!class_name.n)
		return err_set(err, ERR_INTERNAL, "request " STR_FMT ": unsupported request type", STR_ARG(name));
	ret->class = copies_val(&s->devices->classes, class_name);
	if (!val_exists(ret->class))
		return err_set(err, ERR_INVALID, "request " STR_FMT ": device class " STR_FMT " does not exist", STR_ARG(name), STR_ARG(class_name));
	if (val_len(val_get(spec, selectors)))
		return err_set(err, ERR_INVALID, "resource claim " STR_FMT ", request " STR_FMT ": has selectors (CEL), which this scheduler does not support",
			       STR_ARG(key), STR_ARG(name));
	if (val_len(val_get(ret->class, spec, selectors)))
		return err_set(err, ERR_INVALID, "request " STR_FMT ": device class " STR_FMT " has selectors (CEL), which this scheduler does not support",
			       STR_ARG(name), STR_ARG(class_name));
	ret->all = str_eq(mode, STR("All"));
	if (mode.n && !ret->all && !str_eq(mode, STR("ExactCount")))
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", request " STR_FMT ": unsupported count mode " STR_FMT, STR_ARG(key),
			       STR_ARG(sub.n ? sub : base), STR_ARG(mode));
	return 0;
}

static int request_make(struct device_search *s, const struct claim *c, struct val request, struct request *ret, struct err *err)
{
	struct val list = val_get(request, firstAvailable), exactly = val_get(request, exactly);
	str name = val_str(request, name), key = claim_key(s, c);
	*ret = (struct request){ .alternatives = !val_exists(exactly), .options = ARENA_ARRAY(s->arena, struct option, val_len(list) + 1) };
	if (val_exists(exactly))
		return option_make(s, c, name, STR_NONE, exactly, &ret->options[ret->n++], err);
	VAL_EACH(o, list) {
		int r = option_make(s, c, name, val_str(*o, name), *o, &ret->options[ret->n++], err);
		if (r < 0)
			return r;
	}
	if (!ret->n)
		return err_set(err, ERR_INVALID, "resource claim " STR_FMT ", request " STR_FMT ": unknown request type", STR_ARG(key), STR_ARG(name));
	return 0;
}

/* At least so many devices: too many are an error that no node can change. */
static int check_count(struct device_search *s, const struct claim *c, int64_t *total, struct err *err)
{
	int64_t sum = 0;
	str key = claim_key(s, c);
	for (size_t i = 0; i < c->n; i++) {
		int64_t least = INT64_MAX;
		for (size_t k = 0; k < c->requests[i].n; k++)
			least = MIN(least, c->requests[i].options[k].all ? INT64_C(1) : c->requests[i].options[k].count);
		sum = sum > INT64_MAX - least ? INT64_MAX : sum + least;
	}
	if (sum > DEVICES_PER_CLAIM)
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT ": number of requested devices %lld exceeds the claim limit of %d", STR_ARG(key),
			       (long long)sum, DEVICES_PER_CLAIM);
	*total += sum;
	if (*total > DEVICES_PER_POD)
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT ": number of devices requested by the pod exceeds %d", STR_ARG(key), DEVICES_PER_POD);
	return 0;
}

static int claim_make(struct device_search *s, struct val object, struct claim *ret, struct err *err)
{
	struct val requests = val_get(object, spec, devices, requests), constraints = val_get(object, spec, devices, constraints);
	*ret = (struct claim){ .object = object, .requests = ARENA_ARRAY(s->arena, struct request, val_len(requests) + 1),
			       .constraints = ARENA_ARRAY(s->arena, struct constraint, val_len(constraints) + 1) };
	VAL_EACH(r, requests) {
		int x = request_make(s, ret, *r, &ret->requests[ret->n++], err);
		if (x < 0)
			return x;
	}
	VAL_EACH(k, constraints) {
		str key = claim_key(s, ret), attribute = val_str(*k, matchAttribute);
		bool distinct = !attribute.n;
		attribute = distinct ? val_str(*k, distinctAttribute) : attribute;
		if (!attribute.n)
			return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", constraint #%zu: empty constraint (unsupported constraint type?)",
				       STR_ARG(key), ret->n_constraints);
		ret->constraints[ret->n_constraints++] = (struct constraint){ .requests = val_get(*k, requests), .attribute = attribute,
									       .distinct = distinct };
	}
	return 0;
}

int device_search_new(struct arena *a, struct devices *d, const struct val *claims, size_t n, struct device_search **ret, struct err *err)
{
	struct device_search *s = ARENA_NEW(a, struct device_search);
	int64_t total = 0;
	size_t n_wide = 0;
	s->arena = a;
	s->devices = d;
	s->claims = ARENA_ARRAY(a, struct claim, n + 1);
	for (; s->n_claims < n; s->n_claims++) {
		int r = claim_make(s, claims[s->n_claims], &s->claims[s->n_claims], err);
		if (r == 0)
			r = check_count(s, &s->claims[s->n_claims], &total, err);
		if (r < 0)
			return r;
	}
	devices_refresh(d);
	COPIES_EACH(x, &d->slices, STR(""))
		n_wide++;
	s->wide = ARENA_ARRAY(a, struct wide_slice, n_wide + 1);
	COPIES_EACH(x, &d->slices, STR("")) {
		struct wide_slice *w = &s->wide[s->n_wide++];
		struct val slice = copy_val(x), nodes = val_get(slice, spec, nodeSelector);
		*w = (struct wide_slice){ .slice = slice, .everywhere = val_bool(slice, spec, allNodes),
					  .by_device = val_bool(slice, spec, perDeviceNodeSelection) };
		node_selector_compile(a, nodes, NULL, &w->nodes);
	}
	*ret = s;
	return 0;
}

/* ---- the devices of a node ---- */

static bool device_is_here(struct device_search *s, struct val device)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT; /* not the pod's: asked for each node */
	struct node_selector nodes;
	struct val selector = val_get(device, nodeSelector);
	if (val_has(device, nodeName))
		return str_eq(val_str(device, nodeName), s->node_name);
	if (val_bool(device, allNodes))
		return true;
	if (!val_exists(selector))
		return false;
	node_selector_compile(&a, selector, NULL, &nodes);
	return node_selector_matches(&nodes, s->node, NULL) == 1;
}

static bool device_is_plain(struct val device)
{
	return !val_bool(device, allowMultipleAllocations) && !val_len(val_get(device, bindingConditions));
}

static void add_slice(struct device_search *s, struct val slice, bool by_device)
{
	str driver = val_str(slice, spec, driver), pool = val_str(slice, spec, pool, name);
	struct device_pool *info = devices_pool(s->devices, driver, pool);
	if (!info || val_int(slice, spec, pool, generation) < info->generation)
		return;
	if (info->n_slices != val_int(slice, spec, pool, resourceSliceCount)) {
		s->incomplete = info->id;
		return;
	}
	VAL_EACH(d, val_get(slice, spec, devices)) {
		if (!device_is_plain(*d) || (by_device && !device_is_here(s, *d)))
			continue;
		if (s->n == s->cap) {
			size_t cap = s->cap ? 2 * s->cap : 64;
			struct device *more = ARENA_ARRAY(s->arena, struct device, cap);
			if (s->n)
				memcpy(more, s->all, s->n * sizeof(*more));
			s->all = more;
			s->cap = cap;
		}
		str name = val_str(*d, name);
		s->all[s->n++] = (struct device){ .driver = driver, .pool = pool, .name = name, .object = *d, .slice = slice, .from = info,
						  .taken = devices_taken(s->devices, driver, pool, name) };
	}
}

static void gather(struct device_search *s)
{
	s->n = s->n_picks = s->tries = 0;
	s->incomplete = STR_NONE;
	COPIES_EACH(x, &s->devices->slices, s->node_name)
		add_slice(s, copy_val(x), false);
	for (size_t i = 0; i < s->n_wide; i++) {
		const struct wide_slice *w = &s->wide[i];
		if (w->everywhere || w->by_device || node_selector_matches(&w->nodes, s->node, NULL) == 1)
			add_slice(s, w->slice, w->by_device);
	}
	for (size_t i = 0; i < s->n_claims; i++) {
		s->claims[i].n_picked = 0;
		for (size_t k = 0; k < s->claims[i].n_constraints; k++)
			s->claims[i].constraints[k].n = 0;
	}
}

/* ---- picking ---- */

static bool tolerates(struct val toleration, struct val taint)
{
	str effect = val_str(toleration, effect), key = val_str(toleration, key), operator = val_str(toleration, operator);
	if ((effect.n && !str_eq(effect, val_str(taint, effect))) || (key.n && !str_eq(key, val_str(taint, key))))
		return false;
	if (!operator.n || str_eq(operator, STR("Equal")))
		return str_eq(val_str(toleration, value), val_str(taint, value));
	return str_eq(operator, STR("Exists"));
}

static bool taints_prevent(struct val device, const struct option *o)
{
	VAL_EACH(t, val_get(device, taints)) {
		str effect = val_str(*t, effect);
		bool tolerated = false;
		if (!str_eq(effect, STR("NoSchedule")) && !str_eq(effect, STR("NoExecute")))
			continue;
		VAL_EACH(x, val_get(o->spec, tolerations))
			tolerated |= tolerates(*x, *t);
		if (!tolerated)
			return true;
	}
	return false;
}

/* "driver/name"; a driver's own attributes may do without the driver. */
static struct val attribute_of(const struct device *d, str name)
{
	struct val all = val_get(d->object, attributes), found = val_find(all, name);
	str domain, id;
	if (val_exists(found) || !str_cut(name, '/', &domain, &id) || !str_eq(domain, d->driver))
		return found;
	return val_find(all, id);
}

static bool constraint_concerns(const struct constraint *k, const struct option *o)
{
	if (!val_len(k->requests))
		return true;
	VAL_EACH(r, k->requests) {
		str base, sub;
		bool whole = !str_cut(val_as_str(*r), '/', &base, &sub);
		if (str_eq(base, o->base) && (whole || str_eq(sub, o->sub)))
			return true;
	}
	return false;
}

/* Does a device that the claim has already got have this value? */
static bool value_is_used(const struct device_search *s, size_t claim, const struct constraint *k, struct val value)
{
	for (size_t i = 0; i < s->n_picks; i++)
		if (s->picks[i].claim == claim && constraint_concerns(k, s->picks[i].option) &&
		    val_equal(attribute_of(s->picks[i].device, k->attribute), value))
			return true;
	return false;
}

static bool constraint_add(const struct device_search *s, size_t claim, struct constraint *k, const struct device *d, const struct option *o)
{
	if (!constraint_concerns(k, o))
		return true;
	struct val value = attribute_of(d, k->attribute);
	if (!val_exists(value))
		return false;
	if (k->distinct ? value_is_used(s, claim, k, value) : k->n && !val_equal(value, k->value))
		return false;
	if (!k->n++)
		k->value = value;
	return true;
}

static void constraints_remove(struct claim *c, size_t n, const struct option *o)
{
	while (n-- > 0)
		if (constraint_concerns(&c->constraints[n], o))
			c->constraints[n].n--;
}

static bool picked_in(const struct device_search *s, const struct device *d, size_t claim)
{
	for (size_t i = 0; d->picked && i < s->n_picks; i++)
		if (s->picks[i].device == d && s->picks[i].claim == claim)
			return true;
	return false;
}

/* How much of a counter the devices of this pod use so far. */
static struct quantity counter_used(const struct device_search *s, const struct device_pool *pool, str set, str name)
{
	struct quantity sum = { 0 };
	for (size_t i = 0; i < s->n_picks; i++) {
		if (s->picks[i].device->from != pool)
			continue;
		VAL_EACH(u, val_get(s->picks[i].device->object, consumesCounters))
			if (str_eq(val_str(*u, counterSet), set))
				sum = quantity_add(sum, quantity_of(val_get(val_find(val_get(*u, counters), name), value)));
	}
	return sum;
}

/* Devices of a pool may be parts of the same thing: enough of it must be left. */
static bool counters_suffice(struct device_search *s, const struct device *d)
{
	VAL_EACH(u, val_get(d->object, consumesCounters)) {
		str set = val_str(*u, counterSet);
		VAL_EACH_MEMBER(m, val_get(*u, counters)) {
			const struct device_counter *c = devices_counter(s->devices, d->from, set, atom_str(m->key));
			if (!c)
				return false;
			struct quantity used = quantity_add(counter_used(s, d->from, set, c->name), quantity_of(val_get(m->val, value)));
			if (quantity_cmp(c->left, used) < 0)
				return false;
		}
	}
	return true;
}

/* 1: it is this claim's now. must: not being able to keep a constraint is an error. */
static int pick(struct device_search *s, size_t ci, const struct option *o, struct device *d, bool must, struct err *err)
{
	struct claim *c = &s->claims[ci];
	size_t n = 0;
	if (o->admin ? picked_in(s, d, ci) : d->taken || d->picked)
		return 0;
	if (s->n_picks == DEVICES_PER_POD || c->n_picked == DEVICES_PER_CLAIM || taints_prevent(d->object, o) || !counters_suffice(s, d))
		return 0;
	while (n < c->n_constraints && constraint_add(s, ci, &c->constraints[n], d, o))
		n++;
	if (n < c->n_constraints) {
		constraints_remove(c, n, o);
		if (!must)
			return 0;
		str key = claim_key(s, c);
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", request " STR_FMT ": cannot add device " STR_FMT "/" STR_FMT "/" STR_FMT
			       " because a claim constraint would not be satisfied", STR_ARG(key),
			       STR_ARG(o->sub.n ? o->sub : o->base), STR_ARG(d->driver), STR_ARG(d->pool), STR_ARG(d->name));
	}
	d->picked++;
	c->n_picked++;
	s->picks[s->n_picks++] = (struct pick){ d, o, ci };
	return 1;
}

static void unpick(struct device_search *s)
{
	struct pick *p = &s->picks[--s->n_picks];
	p->device->picked--;
	s->claims[p->claim].n_picked--;
	constraints_remove(&s->claims[p->claim], s->claims[p->claim].n_constraints, p->option);
}

static int search(struct device_search *s, size_t ci, size_t ri, int64_t di, const struct option *o, struct err *err);

/* All devices there are: in one order only, as all are needed. */
static int search_all(struct device_search *s, size_t ci, size_t ri, const struct option *o, struct err *err)
{
	size_t n = 0;
	int r = s->n ? 1 : 0;
	if (s->incomplete.n) {
		str key = claim_key(s, &s->claims[ci]);
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", request " STR_FMT ": asks for all devices, but resource pool " STR_FMT
			       " is currently being updated", STR_ARG(key), STR_ARG(o->sub.n ? o->sub : o->base), STR_ARG(s->incomplete));
	}
	for (size_t i = 0; i < s->n && r > 0; i++) {
		r = pick(s, ci, o, &s->all[i], true, err);
		n += r > 0;
	}
	if (r > 0)
		r = search(s, ci, ri + 1, 0, NULL, err);
	for (; r <= 0 && n > 0; n--)
		unpick(s);
	return r;
}

/* From device di of option o of request ri of claim ci on. o NULL: an option has to be chosen. 1: everything has what it needs. */
static int search(struct device_search *s, size_t ci, size_t ri, int64_t di, const struct option *o, struct err *err)
{
	int r = 0;
	/* Not by another call: a pod may name any number of claims that ask for nothing. */
	for (; ci < s->n_claims && ri == s->claims[ci].n; ci++)
		ri = 0;
	if (ci == s->n_claims)
		return 1;
	struct claim *c = &s->claims[ci];
	struct request *q = &c->requests[ri];
	if (!o) {
		for (size_t i = 0; i < q->n && r == 0; i++) {
			q->chosen = i;
			r = search(s, ci, ri, 0, &q->options[i], err);
		}
		return r;
	}
	if (o->all)
		return search_all(s, ci, ri, o, err);
	if (di == o->count)
		return search(s, ci, ri + 1, 0, NULL, err);
	if ((int64_t)c->n_picked + o->count - di > DEVICES_PER_CLAIM)
		return 0;
	for (size_t i = 0; i < s->n && r == 0; i++) {
		if (++s->tries > DEVICE_TRIES)
			return err_set(err, ERR_TIMEOUT, "node " STR_FMT ": timed out trying to allocate devices", STR_ARG(s->node_name));
		r = pick(s, ci, o, &s->all[i], false, err);
		if (r > 0 && (r = search(s, ci, ri, di + 1, o, err)) <= 0)
			unpick(s);
	}
	return r;
}

/* ---- what is written ---- */

static str option_name(struct device_search *s, const struct option *o)
{
	return o->sub.n ? arena_printf(s->arena, STR_FMT "/" STR_FMT, STR_ARG(o->base), STR_ARG(o->sub)) : o->base;
}

static struct val result_of(struct device_search *s, const struct pick *p)
{
	struct val tolerations = val_get(p->option->spec, tolerations);
	return OBJECT(s->arena, F(request, VAL_STR(option_name(s, p->option))), F(driver, VAL_STR(p->device->driver)),
		      F(pool, VAL_STR(p->device->pool)), F(device, VAL_STR(p->device->name)),
		      F(adminAccess, p->option->admin ? val_of_bool(true) : VAL_EMPTY), F(tolerations, val_len(tolerations) ? tolerations : VAL_EMPTY));
}

/* Configuration of classes first, each once with all requests of that class; then the claim's own, where it concerns what was chosen. */
static struct val configs_of(struct device_search *s, const struct claim *c)
{
	struct val_builder all = val_builder(s->arena);
	for (size_t i = 0; i < c->n; i++) {
		const struct option *o = &c->requests[i].options[c->requests[i].chosen];
		str class_name = val_str(o->spec, deviceClassName);
		struct val_builder names = val_builder(s->arena);
		bool first = true;
		for (size_t k = 0; k < c->n; k++) {
			const struct option *other = &c->requests[k].options[c->requests[k].chosen];
			if (!str_eq(val_str(other->spec, deviceClassName), class_name))
				continue;
			first &= k >= i;
			val_add_item(&names, VAL_STR(option_name(s, other)));
		}
		struct val requests = val_end_list(&names);
		VAL_EACH(config, first ? val_get(o->class, spec, config) : VAL_EMPTY)
			val_add_item(&all, OBJECT(s->arena, F(source, VAL_LIT("FromClass")), F(requests, requests), F(opaque, val_get(*config, opaque))));
	}
	VAL_EACH(config, val_get(c->object, spec, devices, config)) {
		struct val requests = val_get(*config, requests);
		bool concerns = !val_len(requests);
		for (size_t i = 0; i < c->n && !concerns; i++) {
			struct constraint k = { .requests = requests };
			concerns = constraint_concerns(&k, &c->requests[i].options[c->requests[i].chosen]);
		}
		if (concerns)
			val_add_item(&all, OBJECT(s->arena, F(source, VAL_LIT("FromClaim")), F(requests, requests), F(opaque, val_get(*config, opaque))));
	}
	return val_end_list(&all);
}

static void add_new(struct val_builder *b, struct val list, struct val have)
{
	VAL_EACH(x, list) {
		bool known = false;
		VAL_EACH(h, have)
			known |= val_equal(*h, *x);
		if (!known)
			val_add_item(b, *x);
	}
}

static struct val joined(struct device_search *s, struct val have, struct val more)
{
	struct val_builder b = val_builder(s->arena);
	VAL_EACH(h, have)
		val_add_item(&b, *h);
	add_new(&b, more, have);
	return val_end_list(&b);
}

/* Where the devices can be used: on one node, on those that all their slices select, or anywhere (VAL_NONE). */
static struct val nodes_of(struct device_search *s, size_t claim)
{
	struct arena *a = s->arena;
	struct val fields = VAL_EMPTY_LIST, expressions = VAL_EMPTY_LIST;
	for (size_t i = 0; i < s->n_picks; i++) {
		const struct device *d = s->picks[i].device;
		struct val from = val_bool(d->slice, spec, perDeviceNodeSelection) ? d->object : val_get(d->slice, spec);
		struct val term = val_at(val_get(from, nodeSelector, nodeSelectorTerms), 0);
		if (s->picks[i].claim != claim)
			continue;
		if (val_str(from, nodeName).n) {
			struct val one = OBJECT(a, F(key, VAL_LIT("metadata.name")), F(operator, VAL_LIT("In")), F(values, LIST(a, val_get(from, nodeName))));
			return OBJECT(a, F(nodeSelectorTerms, LIST(a, OBJECT(a, F(matchFields, LIST(a, one))))));
		}
		fields = joined(s, fields, val_get(term, matchFields));
		expressions = joined(s, expressions, val_get(term, matchExpressions));
	}
	if (!val_len(fields) && !val_len(expressions))
		return VAL_EMPTY;
	struct val term = OBJECT(a, F(matchExpressions, val_len(expressions) ? expressions : VAL_EMPTY), F(matchFields, val_len(fields) ? fields : VAL_EMPTY));
	return OBJECT(a, F(nodeSelectorTerms, LIST(a, term)));
}

static struct val allocation_of(struct device_search *s, size_t claim)
{
	struct val_builder results = val_builder(s->arena);
	for (size_t i = 0; i < s->n_picks; i++)
		if (s->picks[i].claim == claim)
			val_add_item(&results, result_of(s, &s->picks[i]));
	struct val list = val_end_list(&results), configs = configs_of(s, &s->claims[claim]);
	struct val devices = OBJECT(s->arena, F(results, val_len(list) ? list : VAL_EMPTY), F(config, val_len(configs) ? configs : VAL_EMPTY));
	return OBJECT(s->arena, F(devices, devices), F(nodeSelector, nodes_of(s, claim)));
}

int device_search_run(struct device_search *s, str node_name, struct val node, struct val *ret_allocations, struct err *err)
{
	s->node_name = node_name;
	s->node = node;
	gather(s);
	int r = search(s, 0, 0, 0, NULL, err);
	for (size_t i = 0; r > 0 && ret_allocations && i < s->n_claims; i++)
		ret_allocations[i] = allocation_of(s, i);
	return r;
}

bool device_search_has_alternatives(const struct device_search *s)
{
	for (size_t i = 0; i < s->n_claims; i++)
		for (size_t k = 0; k < s->claims[i].n; k++)
			if (s->claims[i].requests[k].alternatives)
				return true;
	return false;
}

int64_t device_search_score(const struct device_search *s)
{
	int64_t score = 0;
	for (size_t i = 0; i < s->n_claims; i++)
		for (size_t k = 0; k < s->claims[i].n; k++)
			if (s->claims[i].requests[k].alternatives)
				score += 8 - (int64_t)s->claims[i].requests[k].chosen;
	return score;
}
