/*
 * The search for devices. Claims, their requests and the devices of each request are served one after another; when something is missing, the
 * last choice is made otherwise: the first solution is taken, as in Kubernetes. Devices of one request are only tried in the order they have, as
 * another order would be the same solution. The time is limited, and so is the depth: by the number of devices that a pod may have. A search that
 * takes long lets others have their turn.
 */
#include "scheduler/device_search.h"

#include "base/clock.h"
#include "base/fiber.h"
#include "codec/atoms.h"
#include "machinery/resources.h"
#include "scheduler/device_capacity.h"
#include "scheduler/device_search_priv.h"

enum { NOT_KNOWN, SELECTED, NOT_SELECTED };
enum { LOOKS = 64 /* devices between two looks at the clock */, TURN_MS = 5 };
/* What a look for devices may say besides 0 and 1: more than a claim may have would be needed, whichever devices are picked. */
enum { EXCEEDED = 2 };

int device_search_new(struct arena *a, struct devices *d, const struct val *claims, size_t n, struct device_search **ret, struct err *err)
{
	struct device_search *s = ARENA_NEW(a, struct device_search);
	devices_begin(d);
	s->arena = a;
	s->devices = d;
	s->claims = ARENA_ARRAY(a, struct claim, n + 1);
	for (; s->n_own < n; s->n_own++) {
		device_claim_read(s, claims[s->n_own], &s->claims[s->n_own]);
		int r = device_claim_check(s, &s->claims[s->n_own], err);
		if (r < 0)
			return r;
	}
	s->n_own_options = s->n_options;
	*ret = s;
	return 0;
}

void device_search_limit(struct device_search *s, int64_t ns) { s->limit_ns = ns; }

/* ---- time ---- */

/* Where nothing else ends it: without a limit, and where time stands still. */
static bool is_counted(const struct device_search *s) { return s->limit_ns <= 0 || clock_is_virtual(); }

static int timed_out(const struct device_search *s, struct err *err)
{
	return err_set(err, ERR_TIMEOUT, "node " STR_FMT ": timed out trying to allocate devices", STR_ARG(s->node_name));
}

/* (suspends) */
static int look_at_clock(struct device_search *s, struct err *err)
{
	int64_t now = clock_now_ns();
	if (now - s->turn_ns >= TURN_MS * NS_PER_MS && fiber_self()) {
		int r = fiber_yield(err);
		if (r < 0)
			return r;
		s->turn_ns = now = clock_now_ns();
	}
	return s->limit_ns > 0 && now - s->began_ns >= s->limit_ns ? timed_out(s, err) : 0;
}

static int another_try(struct device_search *s, struct err *err)
{
	if (++s->tries > DEVICE_TRIES_MAX && is_counted(s))
		return timed_out(s, err);
	return s->tries % LOOKS ? 0 : look_at_clock(s, err);
}

/* ---- the devices of a node ---- */

static void add_devices(struct device_search *s, const struct pool_view *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct device_slice *slice = v->slices[i];
		struct val list = val_get(slice->object, spec, devices);
		size_t at = 0;
		if (s->cap < s->n + val_len(list)) {
			s->cap = 2 * s->cap + val_len(list);
			struct device *more = ARENA_ARRAY(s->arena, struct device, s->cap);
			if (s->n)
				memcpy(more, s->all, s->n * sizeof(*more));
			s->all = more;
		}
		VAL_EACH(d, slice->counters ? VAL_EMPTY : list)
			s->all[s->n++] = (struct device){ .slice = slice, .pool = v->pool, .object = *d, .name = val_str(*d, name), .at = at++,
							  .use = devices_use(s->devices, slice, val_str(*d, name)),
							  .shares = s->devices->features.consumable_capacity && val_bool(*d, allowMultipleAllocations) };
	}
}

static void gather(struct device_search *s)
{
	s->n = s->n_picks = s->tries = 0;
	s->began_ns = s->turn_ns = clock_now_ns();
	devices_see(s->devices, s->arena, s->node_name, s->node, &s->views);
	for (size_t i = 0; i < s->views.n; i++)
		if (!s->views.all[i].incomplete && !s->views.all[i].invalid)
			add_devices(s, &s->views.all[i]);
	if (s->cap_known < s->n * s->n_options) {
		s->cap_known = 2 * s->n * s->n_options;
		s->known = ARENA_ARRAY(s->arena, uint8_t, s->cap_known);
	}
	if (s->known)
		memset(s->known, NOT_KNOWN, s->n * s->n_options);
	for (size_t i = 0; i < s->n_claims; i++) {
		s->claims[i].n_picked = 0;
		for (size_t k = 0; k < s->claims[i].n_constraints; k++)
			s->claims[i].constraints[k].n = 0;
	}
}

/* ---- what a request wants of a device ---- */

static int selectors_match(struct device_search *s, const struct selectors *list, const struct device *d, const struct option *o, const struct claim *c,
			   struct err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		bool match = false;
		if (!list->all[i]) /* a kind that is not known */
			return 0;
		int r = device_selected(s->devices, list->all[i], d->slice, d->object, &match, err);
		if (r < 0 && list == &o->of_class)
			return err_wrap(err, -ERR_INTERNAL, "class " STR_FMT ": selector #%zu", STR_ARG(val_str(o->class, metadata, name)), i);
		if (r < 0)
			return err_wrap(err, -ERR_INTERNAL, "claim " STR_FMT ": selector #%zu", STR_ARG(device_claim_key(s, c)), i);
		if (!match)
			return 0;
	}
	return 1;
}

/* 1: the device is of the right kind, and of this node. Found out once. */
static int selectable(struct device_search *s, const struct claim *c, const struct option *o, const struct device *d, struct err *err)
{
	uint8_t *known = &s->known[o->index * s->n + (size_t)(d - s->all)];
	int r = *known == SELECTED;
	if (*known != NOT_KNOWN)
		return r;
	if (s->devices->features.binding_conditions || !val_len(val_get(d->object, bindingConditions))) {
		r = selectors_match(s, &o->of_class, d, o, c, err);
		if (r > 0)
			r = selectors_match(s, &o->own, d, o, c, err);
	}
	if (r > 0 && d->slice->by_device)
		r = device_is_here(d->slice, d->at, s->node_name, s->node);
	if (r >= 0)
		*known = r > 0 ? SELECTED : NOT_SELECTED;
	int late = r < 0 ? 0 : look_at_clock(s, err); /* selectors may take long */
	return late < 0 ? late : r;
}

/* How much of a capacity of a device the claims of this pod take so far. */
static struct quantity capacity_picked(const struct device_search *s, const struct device *d, str name, struct val capacity)
{
	struct quantity sum = { 0 };
	for (size_t i = 0; d->shares && d->picked && i < s->n_picks; i++)
		if (s->picks[i].device == d)
			sum = quantity_add(sum, capacity_consumed(capacity, val_find(val_get(s->picks[i].option->spec, capacity, requests), name)));
	return sum;
}

/* Enough of everything that is asked for, and all that is asked for is there. */
static bool capacity_suffices(const struct device_search *s, const struct option *o, const struct device *d)
{
	struct val all = val_get(d->object, capacity), asked = val_get(o->spec, capacity, requests);
	if (!s->devices->features.consumable_capacity)
		return true;
	VAL_EACH_MEMBER(m, asked)
		if (!val_exists(val_find(all, atom_str(m->key))))
			return false;
	VAL_EACH_MEMBER(m, all) {
		str name = atom_str(m->key);
		struct quantity amount = capacity_consumed(m->val, val_find(asked, name));
		if (!capacity_permits(m->val, amount))
			return false;
		for (const struct capacity_sum *x = d->use ? d->use->sums : NULL; x; x = x->next)
			if (str_eq(x->name, name))
				amount = quantity_add(amount, x->used);
		amount = quantity_add(amount, capacity_picked(s, d, name, m->val));
		if (quantity_cmp(amount, quantity_of(val_get(m->val, value))) > 0)
			return false;
	}
	return true;
}

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

/* ---- constraints ---- */

/* "driver/name"; a driver's own attributes may do without the driver. */
static struct val attribute_of(const struct device *d, str name)
{
	struct val all = val_get(d->object, attributes), found = val_find(all, name);
	str domain, id;
	if (val_exists(found) || !str_cut(name, '/', &domain, &id) || !str_eq(domain, d->slice->driver))
		return found;
	return val_find(all, id);
}

/* Does a device that the claim has already got have this value? */
static bool value_is_used(const struct device_search *s, size_t claim, const struct constraint *k, struct val value)
{
	for (size_t i = 0; i < s->n_picks; i++)
		if (s->picks[i].claim == claim && device_names_concern(k->requests, s->picks[i].option) &&
		    val_equal(attribute_of(s->picks[i].device, k->attribute), value))
			return true;
	return false;
}

static bool constraint_add(const struct device_search *s, size_t claim, struct constraint *k, const struct device *d, const struct option *o)
{
	if (!device_names_concern(k->requests, o))
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
		if (device_names_concern(c->constraints[n].requests, o))
			c->constraints[n].n--;
}

/* ---- what devices of a pool share ---- */

static struct quantity counter_of(struct val device, str set, str name)
{
	struct quantity sum = { 0 };
	VAL_EACH(u, val_get(device, consumesCounters))
		if (str_eq(val_str(*u, counterSet), set))
			sum = quantity_add(sum, quantity_of(val_get(val_find(val_get(*u, counters), name), value)));
	return sum;
}

/* Devices of a pool may be parts of the same thing: enough of it must be left. */
static bool counters_suffice(struct device_search *s, const struct device *d)
{
	for (const struct device_counter *c = devices_counters(s->devices, d->pool); c; c = c->next) {
		struct quantity used = counter_of(d->object, c->set, c->name);
		for (size_t i = 0; i < s->n_picks; i++)
			if (s->picks[i].counted && s->picks[i].device->pool == d->pool)
				used = quantity_add(used, counter_of(s->picks[i].device->object, c->set, c->name));
		if (quantity_cmp(c->left, used) < 0)
			return false;
	}
	return true;
}

/* ---- picking ---- */

static bool picked_in(const struct device_search *s, const struct device *d, size_t claim)
{
	for (size_t i = 0; d->picked && i < s->n_picks; i++)
		if (s->picks[i].device == d && s->picks[i].claim == claim)
			return true;
	return false;
}

/* A device that can be shared is in use when somebody has it for himself. */
static bool in_use(const struct device_search *s, const struct device *d, size_t claim, const struct option *o)
{
	if (o->admin)
		return !d->shares && picked_in(s, d, claim);
	return (d->use && d->use->alone) || (d->picked && !d->shares);
}

static int constraint_error(struct device_search *s, const struct claim *c, const struct option *o, const struct device *d, struct err *err)
{
	str key = device_claim_key(s, c), name = option_label(o);
	return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", request " STR_FMT ": cannot add device " STR_FMT "/" STR_FMT "/" STR_FMT
		       " because a claim constraint would not be satisfied", STR_ARG(key), STR_ARG(name), STR_ARG(d->slice->driver),
		       STR_ARG(d->slice->pool_name), STR_ARG(d->name));
}

/* 1: it is this claim's now. must: not being able to keep a constraint is an error. */
static int pick(struct device_search *s, size_t ci, const struct option *o, struct device *d, bool must, struct err *err)
{
	const struct device_features *f = &s->devices->features;
	struct claim *c = &s->claims[ci];
	bool consumes = val_len(val_get(d->object, consumesCounters)) > 0, counted;
	size_t n = 0;
	if (s->n_picks == DEVICES_PER_POD || in_use(s, d, ci, o) || (consumes && !f->partitionable))
		return 0;
	/* Whoever shared it first took the counters. */
	counted = consumes && !(d->shares && (d->picked || (d->use && d->use->counted)));
	if ((counted && !counters_suffice(s, d)) || (f->taints && taints_prevent(d->object, o)))
		return 0;
	while (n < c->n_constraints && constraint_add(s, ci, &c->constraints[n], d, o))
		n++;
	if (n < c->n_constraints || !capacity_suffices(s, o, d)) {
		constraints_remove(c, n, o);
		return n < c->n_constraints && must ? constraint_error(s, c, o, d, err) : 0;
	}
	d->picked++;
	c->n_picked++;
	s->picks[s->n_picks++] = (struct pick){ d, o, ci, counted };
	return 1;
}

static void unpick(struct device_search *s)
{
	struct pick *p = &s->picks[--s->n_picks];
	p->device->picked--;
	s->claims[p->claim].n_picked--;
	constraints_remove(&s->claims[p->claim], s->claims[p->claim].n_constraints, p->option);
}

/* ---- searching: 1, 0, EXCEEDED or an error ---- */

static int search_request(struct device_search *s, size_t ci, size_t ri, struct err *err);

/* All requests before this one have what they need. */
static int search_on(struct device_search *s, size_t ci, size_t ri, struct err *err)
{
	size_t claim = ci;
	/* Not by another call: a pod may name any number of claims that ask for nothing. */
	for (; ci < s->n_claims && ri == s->claims[ci].n; ci++)
		ri = 0;
	if (ci == s->n_claims)
		return 1;
	int r = search_request(s, ci, ri, err);
	/* Claims before may choose alternatives that leave this one others. */
	return r == EXCEEDED && ci != claim ? 0 : r;
}

/* The devices of an option from number `have` on, which is looked for from device `from` on. */
static int search_devices(struct device_search *s, size_t ci, size_t ri, const struct option *o, int64_t have, size_t from, struct err *err)
{
	int r = 0;
	if (o->all && !o->count)
		return 0;
	if (have >= o->count)
		return search_on(s, ci, ri + 1, err);
	if ((int64_t)s->claims[ci].n_picked + o->count - have > DEVICES_PER_CLAIM)
		return EXCEEDED;
	if (o->all) {
		r = pick(s, ci, o, &s->all[o->devices[have]], true, err);
		if (r > 0 && (r = search_devices(s, ci, ri, o, have + 1, 0, err)) != 1)
			unpick(s);
		return r;
	}
	for (size_t i = from; i < s->n && r == 0; i++) {
		struct device *d = &s->all[i];
		if ((r = another_try(s, err)) < 0)
			return r;
		if (in_use(s, d, ci, o))
			continue;
		r = selectable(s, &s->claims[ci], o, d, err);
		if (r > 0)
			r = pick(s, ci, o, d, false, err);
		if (r > 0 && (r = search_devices(s, ci, ri, o, have + 1, i + 1, err)) != 1)
			unpick(s);
	}
	return r;
}

static int search_request(struct device_search *s, size_t ci, size_t ri, struct err *err)
{
	struct request *q = &s->claims[ci].requests[ri];
	bool exceeded = true;
	for (size_t i = 0; i < q->n; i++) {
		q->chosen = i;
		/* Also where no device is looked for: alternatives that want all of theirs can be combined in far too many ways. */
		int r = another_try(s, err);
		if (r == 0)
			r = search_devices(s, ci, ri, &q->options[i], 0, 0, err);
		if (r == 1 || r < 0)
			return r;
		exceeded &= r == EXCEEDED;
	}
	return exceeded ? EXCEEDED : 0;
}

/* ---- what Kubernetes checks for each node anew ---- */

/* All devices that the request is about; none may be missing. */
static int gather_all(struct device_search *s, const struct claim *c, struct option *o, struct err *err)
{
	str key = device_claim_key(s, c), name = option_label(o);
	o->count = 0;
	if (o->cap < s->n) {
		o->cap = 2 * s->n;
		o->devices = ARENA_ARRAY(s->arena, uint32_t, o->cap);
	}
	for (size_t i = 0, at = 0; i < s->views.n; i++) {
		const struct pool_view *v = &s->views.all[i];
		if (v->incomplete || v->invalid)
			return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", request " STR_FMT ": asks for all devices, but resource pool " STR_FMT "/" STR_FMT
				       " is currently %s", STR_ARG(key), STR_ARG(name), STR_ARG(v->slices[0]->driver), STR_ARG(v->slices[0]->pool_name),
				       v->incomplete ? "being updated" : "invalid");
		for (; at < s->n && s->all[at].pool == v->pool; at++) {
			int r = selectable(s, c, o, &s->all[at], err);
			if (r < 0)
				return r;
			if (r > 0 && capacity_suffices(s, o, &s->all[at]))
				o->devices[o->count++] = (uint32_t)at;
		}
	}
	return 0;
}

static int check_option(struct device_search *s, const struct claim *c, struct option *o, struct err *err)
{
	str class = val_str(o->spec, deviceClassName), mode = val_str(o->spec, allocationMode), key = device_claim_key(s, c), name = option_label(o);
	if (val_has(o->spec, capacity) && !s->devices->features.consumable_capacity)
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", %srequest " STR_FMT
			       ": has capacity requests, but the DRAConsumableCapacity feature is disabled", STR_ARG(key), o->sub.n ? "sub" : "", STR_ARG(name));
	for (size_t i = 0; i < o->own.n; i++)
		if (!o->own.all[i])
			return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", request " STR_FMT
				       ", selector #%zu: CEL expression empty (unsupported selector type?)", STR_ARG(key), STR_ARG(name), i);
	if (!class.n)
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", request " STR_FMT ": missing device class name (unsupported request type?)",
			       STR_ARG(key), STR_ARG(name));
	if (!val_exists(o->class))
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", request " STR_FMT ": could not retrieve device class " STR_FMT
			       ": deviceclass.resource.k8s.io \"" STR_FMT "\" not found", STR_ARG(key), STR_ARG(name), STR_ARG(class), STR_ARG(class));
	if (o->all)
		return gather_all(s, c, o, err);
	if (mode.n && !str_eq(mode, STR("ExactCount")))
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", request " STR_FMT ": unsupported count mode " STR_FMT, STR_ARG(key), STR_ARG(name),
			       STR_ARG(mode));
	return 0;
}

/* At least so many devices; -1 with an error. */
static int64_t least_devices(struct device_search *s, const struct claim *c, struct err *err)
{
	int64_t sum = 0;
	for (size_t i = 0; i < c->n; i++) {
		int64_t least = INT64_MAX;
		for (size_t k = 0; k < c->requests[i].n; k++) {
			int r = check_option(s, c, &c->requests[i].options[k], err);
			if (r < 0)
				return -1;
			least = MIN(least, c->requests[i].options[k].count);
		}
		sum = sum > INT64_MAX - least ? INT64_MAX : sum + least;
	}
	return sum;
}

static int check_claims(struct device_search *s, struct err *err)
{
	int64_t total = 0;
	for (size_t i = 0; i < s->n_claims; i++) {
		const struct claim *c = &s->claims[i];
		str key = device_claim_key(s, c);
		int64_t sum = least_devices(s, c, err);
		if (sum < 0)
			return -ERR_INTERNAL;
		if (sum > DEVICES_PER_CLAIM)
			return err_set(err, ERR_INTERNAL, "claim " STR_FMT ": number of requested devices %lld exceeds the claim limit of %d", STR_ARG(key),
				       (long long)sum, DEVICES_PER_CLAIM);
		if ((total += sum) > DEVICES_PER_POD)
			return err_set(err, ERR_INTERNAL, "claim " STR_FMT ": number of devices requested by the pod exceeds %d", STR_ARG(key),
				       DEVICES_PER_POD);
		for (size_t k = 0; k < c->n_constraints; k++)
			if (!c->constraints[k].attribute.n)
				return err_set(err, ERR_INTERNAL, "claim " STR_FMT ", constraint #%zu: empty constraint (unsupported constraint type?)",
					       STR_ARG(key), k);
	}
	return 0;
}

/* ---- */

int device_search_run(struct device_search *s, str node_name, struct val node, struct val extra, struct val *ret_allocations, struct err *err)
{
	s->node_name = node_name;
	s->node = node;
	s->n_claims = s->n_own + val_exists(extra);
	if (val_exists(extra) && !val_same(extra, s->extra)) {
		s->n_options = s->n_own_options;
		device_claim_read(s, extra, &s->claims[s->n_own]);
		s->extra = extra;
	}
	gather(s);
	int r = check_claims(s, err);
	if (r == 0)
		r = search_on(s, 0, 0, err);
	for (size_t i = 0; r == 0 && i < s->views.n; i++)
		if (s->views.all[i].invalid)
			return err_set(err, ERR_INVALID, "invalid resource pools were encountered");
	if (r == EXCEEDED)
		return 0;
	for (size_t i = 0; r > 0 && ret_allocations && i < s->n_claims; i++)
		ret_allocations[i] = device_allocation(s, i);
	return r;
}

bool device_search_has_alternatives(const struct device_search *s)
{
	for (size_t i = 0; i < s->n_own; i++)
		for (size_t k = 0; k < s->claims[i].n; k++)
			if (s->claims[i].requests[k].alternatives)
				return true;
	return false;
}

int64_t device_search_score(const struct device_search *s)
{
	int64_t score = 0;
	for (size_t i = 0; i < s->n_own; i++)
		for (size_t k = 0; k < s->claims[i].n; k++)
			if (s->claims[i].requests[k].alternatives)
				score += 8 - (int64_t)s->claims[i].requests[k].chosen;
	return score;
}
