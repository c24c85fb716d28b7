/* AllocationResults of what a search has found, as Kubernetes writes them. */
#include "base/encoding.h"
#include "codec/atoms.h"
#include "scheduler/device_capacity.h"
#include "scheduler/device_search_priv.h"

static struct val unless_empty(struct val list) { return val_len(list) ? list : VAL_EMPTY; }

static struct val result_of(struct device_search *s, const struct pick *p)
{
	const struct device *d = p->device;
	struct val consumed = VAL_EMPTY, share = VAL_EMPTY;
	bool waits = s->devices->features.binding_conditions;
	char id[UUID_TEXT + 1];
	if (d->shares) {
		uuid_v4(id);
		share = VAL_STR(arena_str(s->arena, str_of(id)));
		consumed = capacity_consumed_all(s->arena, val_get(d->object, capacity), val_get(p->option->spec, capacity, requests));
	}
	return OBJECT(s->arena, F(request, VAL_STR(device_option_name(s, p->option))), F(driver, VAL_STR(d->slice->driver)),
		      F(pool, VAL_STR(d->slice->pool_name)), F(device, VAL_STR(d->name)),
		      F(adminAccess, p->option->admin ? val_of_bool(true) : VAL_EMPTY), F(tolerations, unless_empty(val_get(p->option->spec, tolerations))),
		      F(bindingConditions, waits ? unless_empty(val_get(d->object, bindingConditions)) : VAL_EMPTY),
		      F(bindingFailureConditions, waits ? unless_empty(val_get(d->object, bindingFailureConditions)) : VAL_EMPTY),
		      F(shareID, share), F(consumedCapacity, unless_empty(consumed)));
}

static const struct option *chosen(const struct request *q) { return &q->options[q->chosen]; }

/* Configuration of classes, each once with all requests of that class. */
static void add_class_configs(struct device_search *s, const struct claim *c, struct val_builder *all)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct option *o = chosen(&c->requests[i]);
		str class_name = val_str(o->spec, deviceClassName);
		struct val_builder names = val_builder(s->arena);
		bool first = true;
		for (size_t k = 0; k < c->n; k++) {
			const struct option *other = chosen(&c->requests[k]);
			if (!str_eq(val_str(other->spec, deviceClassName), class_name))
				continue;
			first &= k >= i;
			val_add_item(&names, VAL_STR(device_option_name(s, other)));
		}
		struct val requests = val_end_list(&names);
		VAL_EACH(config, first ? val_get(o->class, spec, config) : VAL_EMPTY)
			val_add_item(all, OBJECT(s->arena, F(source, VAL_LIT("FromClass")), F(requests, requests), F(opaque, val_get(*config, opaque))));
	}
}

/* The claim's own where it concerns what was chosen: as in Kubernetes, once for each request that it names. */
static void add_claim_configs(struct device_search *s, const struct claim *c, struct val_builder *all)
{
	VAL_EACH(config, val_get(c->object, spec, devices, config)) {
		struct val requests = val_get(*config, requests);
		size_t times = !val_len(requests);
		for (size_t i = 0; i < c->n && val_len(requests); i++)
			times += device_names_concern(requests, chosen(&c->requests[i]));
		while (times-- > 0)
			val_add_item(all, OBJECT(s->arena, F(source, VAL_LIT("FromClaim")), F(requests, unless_empty(requests)),
						 F(opaque, val_get(*config, opaque))));
	}
}

/* Values are a set. */
static bool same_requirement(struct val x, struct val y)
{
	struct val list = val_get(x, values), other = val_get(y, values);
	if (!str_eq(val_str(x, key), val_str(y, key)) || !str_eq(val_str(x, operator), val_str(y, operator)) || val_len(list) != val_len(other))
		return false;
	VAL_EACH(v, list) {
		bool found = false;
		VAL_EACH(w, other)
			found |= val_equal(*v, *w);
		if (!found)
			return false;
	}
	return true;
}

static struct val joined(struct device_search *s, struct val have, struct val more)
{
	VAL_EACH(x, more) {
		bool known = false;
		VAL_EACH(h, have)
			known |= same_requirement(*h, *x);
		if (!known)
			have = val_list_append(s->arena, have, *x);
	}
	return have;
}

static struct val only_node(struct device_search *s)
{
	struct arena *a = s->arena;
	struct val name = VAL_STR(arena_str(a, s->node_name));
	struct val one = OBJECT(a, F(key, VAL_LIT("metadata.name")), F(operator, VAL_LIT("In")), F(values, LIST(a, name)));
	return OBJECT(a, F(nodeSelectorTerms, LIST(a, OBJECT(a, F(matchFields, LIST(a, one))))));
}

/* Where the devices can be used: on one node, on those that all their slices select, or anywhere (VAL_NONE). */
static struct val nodes_of(struct device_search *s, size_t claim)
{
	struct arena *a = s->arena;
	struct val fields = VAL_EMPTY_LIST, expressions = VAL_EMPTY_LIST;
	for (size_t i = 0; i < s->n_picks; i++) {
		const struct device *d = s->picks[i].device;
		struct val from = d->slice->by_device ? d->object : val_get(d->slice->object, spec);
		struct val term = val_at(val_get(from, nodeSelector, nodeSelectorTerms), 0);
		if (s->picks[i].claim != claim)
			continue;
		if (val_has(from, nodeName) || val_bool(d->object, bindsToNode))
			return only_node(s);
		fields = joined(s, fields, val_get(term, matchFields));
		expressions = joined(s, expressions, val_get(term, matchExpressions));
	}
	if (!val_len(fields) && !val_len(expressions))
		return VAL_EMPTY;
	struct val term = OBJECT(a, F(matchExpressions, unless_empty(expressions)), F(matchFields, unless_empty(fields)));
	return OBJECT(a, F(nodeSelectorTerms, LIST(a, term)));
}

struct val device_allocation(struct device_search *s, size_t claim)
{
	struct val_builder results = val_builder(s->arena), configs = val_builder(s->arena);
	for (size_t i = 0; i < s->n_picks; i++)
		if (s->picks[i].claim == claim)
			val_add_item(&results, result_of(s, &s->picks[i]));
	add_class_configs(s, &s->claims[claim], &configs);
	add_claim_configs(s, &s->claims[claim], &configs);
	struct val devices = OBJECT(s->arena, F(results, unless_empty(val_end_list(&results))), F(config, unless_empty(val_end_list(&configs))));
	return OBJECT(s->arena, F(devices, devices), F(nodeSelector, nodes_of(s, claim)));
}
