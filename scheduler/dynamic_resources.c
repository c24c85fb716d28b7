/*
 * The plugin DynamicResources. Claims that have an allocation allow the nodes that it allows; for the others devices are sought on each node. As
 * with volumes, what was found is sought once more for the chosen node (reserve), so that nothing is kept per node. From then on the devices
 * are taken ("in flight"), until pre_bind has written the allocation and the server's answer is known.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "machinery/resource_claim.h"
#include "scheduler/config.h"
#include "scheduler/dynamic_resources_priv.h"

enum { ALTERNATIVES_MAX = 8 };

const struct dynamic_config *dynamic_config_of(const struct cycle *c)
{
	static const struct dynamic_config usual = { 10 * NS_PER_S, 600 * NS_PER_S };
	const struct dynamic_config *config = c->config ? c->config[c->at] : NULL;
	return config ? config : &usual;
}

/* ---- claims of a pod ---- */

static str no_name(struct arena *a, struct val pod, struct val ref, int r)
{
	str namespace = val_str(pod, metadata, namespace), name = val_str(pod, metadata, name);
	if (r == -ERR_NOT_FOUND)
		return arena_printf(a, "pod \"" STR_FMT "/" STR_FMT "\": ResourceClaim not created yet", STR_ARG(namespace), STR_ARG(name));
	return arena_printf(a, "pod \"" STR_FMT "/" STR_FMT "\", spec.resourceClaim \"" STR_FMT "\": none of the supported fields are set",
			    STR_ARG(namespace), STR_ARG(name), STR_ARG(val_str(ref, name)));
}

static bool is_controlled_by(struct val object, struct val owner)
{
	VAL_EACH(o, val_get(object, metadata, ownerReferences))
		if (val_bool(*o, controller) && str_eq(val_str(*o, uid), val_str(owner, metadata, uid)))
			return true;
	return false;
}

/* All claims, or false and why not. ret: room for as many as the pod names; may be NULL. */
static bool pod_claims(struct arena *a, const struct devices *d, struct val pod, struct frozen **ret, size_t *ret_n, str *ret_why)
{
	str namespace = val_str(pod, metadata, namespace), name;
	char room[COPY_KEY_MAX];
	bool made;
	*ret_n = 0;
	VAL_EACH(ref, val_get(pod, spec, resourceClaims)) {
		int r = pod_claim_name(pod, *ref, &name, &made);
		if (r < 0) {
			*ret_why = no_name(a, pod, *ref, r);
			return false;
		}
		if (r == 0)
			continue;
		struct frozen *claim = copies_get(&d->claims, copy_key(room, namespace, name));
		if (!claim)
			*ret_why = arena_printf(a, "could not find ResourceClaim \"" STR_FMT "/" STR_FMT "\"", STR_ARG(namespace), STR_ARG(name));
		else if (val_has(claim->val, metadata, deletionTimestamp))
			*ret_why = arena_printf(a, "resourceclaim \"" STR_FMT "\" is being deleted", STR_ARG(name));
		else if (made && !is_controlled_by(claim->val, pod))
			*ret_why = arena_printf(a, "ResourceClaim " STR_FMT "/" STR_FMT " was not created for Pod " STR_FMT "/" STR_FMT " (Pod is not owner)",
						STR_ARG(namespace), STR_ARG(name), STR_ARG(namespace), STR_ARG(val_str(pod, metadata, name)));
		else {
			if (ret)
				ret[*ret_n] = claim;
			++*ret_n;
			continue;
		}
		return false;
	}
	return true;
}

/* ---- what devices wait for ---- */

static struct val condition_of(struct val device_status, str type)
{
	VAL_EACH(c, val_get(device_status, conditions))
		if (str_eq(val_str(*c, type), type))
			return *c;
	return VAL_EMPTY;
}

static struct val device_status(struct val claim, struct val result)
{
	VAL_EACH(d, val_get(claim, status, devices))
		if (str_eq(val_str(*d, device), val_str(result, device)) && str_eq(val_str(*d, driver), val_str(result, driver)) &&
		    str_eq(val_str(*d, pool), val_str(result, pool)))
			return *d;
	return VAL_EMPTY;
}

int claim_is_ready(struct val claim, struct err *err)
{
	VAL_EACH(result, val_get(claim, status, allocation, devices, results)) {
		if (!val_len(val_get(*result, bindingConditions)))
			continue;
		struct val status = device_status(claim, *result);
		if (!val_exists(status))
			return 0;
		VAL_EACH(type, val_get(*result, bindingFailureConditions)) {
			struct val failed = condition_of(status, val_as_str(*type));
			if (str_eq(val_str(failed, status), STR("True")))
				return err_set(err, ERR_INVALID, "device binding failed: claim=" STR_FMT ", reason=" STR_FMT ", message=\"" STR_FMT "\"",
					       STR_ARG(val_str(claim, metadata, name)), STR_ARG(val_str(failed, reason)), STR_ARG(val_str(failed, message)));
		}
		VAL_EACH(type, val_get(*result, bindingConditions))
			if (!str_eq(val_str(condition_of(status, val_as_str(*type)), status), STR("True")))
				return 0;
	}
	return 1;
}

bool claim_is_late(struct val claim, int64_t binding_ns)
{
	struct timestamp at;
	bool waits = false;
	VAL_EACH(result, val_get(claim, status, allocation, devices, results))
		waits |= val_len(val_get(*result, bindingConditions)) > 0;
	return waits && time_parse(val_str(claim, status, allocation, allocationTimestamp), &at, NULL) == 0 &&
	       at.seconds + binding_ns / NS_PER_S < clock_wall_ns() / NS_PER_S;
}

/* ---- looking ---- */

static enum verdict dynamic_pre_enqueue(struct cycle *c)
{
	size_t n;
	return pod_claims(c->arena, c->devices, c->pod, NULL, &n, &c->reason) ? FIT : UNRESOLVABLE;
}

static enum verdict fail(struct cycle *c, int r, const struct err *err)
{
	c->reason = arena_str(c->arena, err_str(err));
	return r == -ERR_INVALID ? UNRESOLVABLE : FAILED;
}

static enum verdict claim_take(struct cycle *c, struct frozen *object, struct pod_claim *ret)
{
	struct err err = ERR_INIT;
	struct val allocation = val_get(object->val, status, allocation), nodes = val_get(allocation, nodeSelector);
	*ret = (struct pod_claim){ .object = object->val, .key = object_key(c->arena, object->val),
				   .uid = arena_str(c->arena, val_str(object->val, metadata, uid)), .open = !val_exists(allocation), .stored = true,
				   .anywhere = !val_exists(nodes), .reserved = claim_is_reserved_for(object->val, c->pod) };
	if (ret->open && devices_flying(c->devices, ret->uid)) {
		c->reason = arena_printf(c->arena, "resource claim " STR_FMT " is in the process of being allocated", STR_ARG(ret->key));
		return UNRESOLVABLE;
	}
	if (ret->anywhere)
		return FIT;
	node_selector_compile(c->arena, nodes, NULL, &ret->nodes);
	return node_selector_check(&ret->nodes, &err) < 0 ? fail(c, -ERR_INTERNAL, &err) : FIT;
}

/* The claim for extended resources; what is left of an earlier try has to go first. */
static enum verdict take_extended(struct cycle *c, struct dynamic *s)
{
	struct extended_needs *needs = ARENA_NEW(c->arena, struct extended_needs);
	char uid[UUID_TEXT + 1];
	extended_needs_read(c->arena, c->devices, c->pod, needs);
	if (!needs->any)
		return FIT;
	struct frozen *before = extended_claim_find(c->devices, c->pod);
	struct pod_claim *x = &s->claims[s->n++];
	s->needs = needs;
	if (before) {
		enum verdict v = claim_take(c, before, x);
		x->extended = true;
		return v;
	}
	uuid_v4(uid);
	*x = (struct pod_claim){ .uid = arena_str(c->arena, str_of(uid)), .open = true, .anywhere = true, .extended = true };
	x->key = arena_printf(c->arena, STR_FMT "/" EXTENDED_CLAIM_NAME, STR_ARG(val_str(c->pod, metadata, namespace)));
	return FIT;
}

static enum verdict dynamic_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	size_t n = 0, most = val_len(val_get(c->pod, spec, resourceClaims));
	struct err err = ERR_INIT;
	struct dynamic *s = *ret_state = ARENA_NEW(c->arena, struct dynamic);
	*ret_skip = true;
	struct frozen **found = ARENA_ARRAY(c->arena, struct frozen *, most + 1);
	if (most && !pod_claims(c->arena, c->devices, c->pod, found, &n, &c->reason))
		return UNRESOLVABLE;
	s->claims = ARENA_ARRAY(c->arena, struct pod_claim, n + 1);
	struct val *open = ARENA_ARRAY(c->arena, struct val, n + 1);
	for (; s->n < n; s->n++) {
		enum verdict v = claim_take(c, found[s->n], &s->claims[s->n]);
		if (v != FIT)
			return v;
		if (s->claims[s->n].open)
			open[s->n_open++] = s->claims[s->n].object;
	}
	enum verdict v = take_extended(c, s);
	if (v != FIT)
		return v;
	*ret_skip = s->n == 0;
	if (!s->n_open && !s->needs)
		return FIT;
	int r = device_search_new(c->arena, c->devices, open, s->n_open, &s->search, &err);
	if (r < 0)
		return fail(c, r, &err);
	device_search_limit(s->search, c->devices->features.filter_timeout ? dynamic_config_of(c)->filter_ns : 0);
	return FIT;
}

int dynamic_search(struct cycle *c, struct dynamic *s, uint32_t node, struct val *ret_allocations, bool *ret_extended, struct err *err)
{
	struct val object = c->nodes->object[node]->val, extra = VAL_EMPTY;
	uint64_t bits = 0;
	*ret_extended = false;
	if (s->needs) {
		if (s->claims[s->n - 1].stored)
			return err_set(err, ERR_INVALID, "cannot schedule extended resource claim");
		if (!extended_needs_on(s->needs, object, &bits))
			return err_set(err, ERR_INVALID, "cannot fit resource");
	}
	if (bits) {
		if (bits != s->bits)
			s->extended = extended_claim_make(c->arena, s->needs, c->pod, bits, s->claims[s->n - 1].uid, &s->mappings);
		s->bits = bits;
		extra = s->extended;
		*ret_extended = true;
	}
	if (!s->search || (!bits && !s->n_open))
		return 1;
	return device_search_run(s->search, word_str(c->nodes, c->nodes->name[node]), object, extra, ret_allocations, err);
}

/* Allocated, and the node is one of those that can use it; devices that will never be ready are of no use either. */
static bool claim_is_usable(const struct cycle *c, const struct pod_claim *x, struct val node)
{
	if (!x->anywhere && node_selector_matches(&x->nodes, node, NULL) != 1)
		return false;
	if (x->open || !c->devices->features.binding_conditions)
		return true;
	int ready = claim_is_ready(x->object, NULL);
	return ready > 0 || (ready == 0 && !claim_is_late(x->object, dynamic_config_of(c)->binding_ns));
}

static enum verdict dynamic_filter(struct cycle *c, void *state, uint32_t node)
{
	struct dynamic *s = state;
	struct err err = ERR_INIT;
	bool unavailable = false, extended;
	int r = dynamic_search(c, s, node, NULL, &extended, &err);
	if (r < 0)
		return fail(c, r, &err);
	c->reason = STR("cannot allocate all claims");
	if (r == 0)
		return UNRESOLVABLE;
	for (size_t i = 0; i < s->n; i++)
		if (!claim_is_usable(c, &s->claims[i], c->nodes->object[node]->val))
			unavailable = s->claims[i].unavailable = true;
	c->reason = STR("resourceclaim not available on the node");
	return unavailable ? UNRESOLVABLE : FIT;
}

/* Alternatives of requests that were allocated before this cycle. */
static int64_t allocated_score(struct val claim)
{
	int64_t score = 0;
	VAL_EACH(q, val_get(claim, spec, devices, requests)) {
		int64_t i = 0;
		VAL_EACH(o, val_get(*q, firstAvailable)) {
			bool chosen = false;
			VAL_EACH(r, val_get(claim, status, allocation, devices, results)) {
				str base, sub;
				chosen |= str_cut(val_str(*r, request), '/', &base, &sub) && str_eq(base, val_str(*q, name)) &&
					  str_eq(sub, val_str(*o, name));
			}
			score += chosen ? ALTERNATIVES_MAX - i : 0;
			i++;
		}
	}
	return score;
}

static void dynamic_score(struct cycle *c, void *unused, const uint32_t *nodes, size_t n, int64_t *scores)
{
	struct dynamic *s = c->state[c->at];
	int64_t same = 0, most = 0;
	(void)unused;
	for (size_t i = 0; s && i < s->n; i++)
		same += s->claims[i].open ? 0 : allocated_score(s->claims[i].object);
	for (size_t i = 0; i < n; i++) {
		bool extended;
		/* Without a search (nothing is open) Kubernetes has no score for a node. */
		scores[i] = 0;
		if (!s || !s->search || !c->devices->features.prioritized_list)
			continue;
		scores[i] = same;
		if (device_search_has_alternatives(s->search) && dynamic_search(c, s, nodes[i], NULL, &extended, NULL) > 0)
			scores[i] += device_search_score(s->search);
		most = MAX(most, scores[i]);
	}
	for (size_t i = 0; i < n && most; i++)
		scores[i] = scores[i] * 100 / most;
}

/* (suspends) A claim that nobody else uses, and that is allocated where the pod cannot be, is given back. */
static enum verdict claim_give_back(struct cycle *c, const struct pod_claim *x)
{
	struct err err = ERR_INIT;
	struct val object = val_without(c->arena, x->object, status, allocation);
	object = val_without(c->arena, val_without(c->arena, object, status, reservedFor), status, devices);
	int r = client_update(c->devices->client, CLAIM_TYPE, object, &(struct client_write_options){ .subresource = STR("status") }, NULL, &err);
	if (r < 0)
		return fail(c, -ERR_INTERNAL, &err);
	c->reason = STR("deallocation of ResourceClaim completed");
	return UNSCHEDULABLE;
}

static enum verdict dynamic_post_filter(struct cycle *c, void *state, bool made, uint32_t *ret_node)
{
	struct dynamic *s = state;
	struct err err = ERR_INIT;
	(void)ret_node;
	if (!made) {
		c->reason = STR("not found"); /* Kubernetes' words: the plugin has no state of the pod */
		return FAILED;
	}
	c->reason = STR("no new claims to deallocate");
	if (!s || !s->n)
		return UNSCHEDULABLE;
	for (size_t i = 0; i < s->n; i++) {
		struct pod_claim *x = &s->claims[i];
		uint32_t users = val_len(val_get(x->object, status, reservedFor));
		if (!x->extended && x->unavailable && (users == 0 || (users == 1 && x->reserved)))
			return claim_give_back(c, x);
	}
	const struct pod_claim *last = &s->claims[s->n - 1];
	c->reason = STR("still not schedulable");
	if (!last->extended || !last->stored)
		return UNSCHEDULABLE;
	if (claim_delete(c->devices->client, last->key, &err) < 0)
		return fail(c, -ERR_INTERNAL, &err);
	c->reason = STR("deletion of ResourceClaim completed");
	return UNSCHEDULABLE;
}

/* ---- the queue ---- */

static bool dynamic_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	size_t n, most = val_len(val_get(pod, spec, resourceClaims));
	str why;
	if (!(event & EV_CLAIM))
		return true;
	if (val_has(new, spec, containers)) /* a pod whose claims have been made */
		return str_eq(val_str(pod, metadata, uid), val_str(new, metadata, uid)) && pod_claims(c->arena, c->devices, new, NULL, &n, &why);
	struct frozen **found = ARENA_ARRAY(c->arena, struct frozen *, most + 1);
	if (!pod_claims(c->arena, c->devices, pod, found, &n, &why))
		return false;
	if (val_has(old, status, allocation) && !val_has(new, status, allocation))
		return true;
	if (!val_exists(new)) /* what was left of an earlier try for extended resources is gone */
		return is_controlled_by(old, pod);
	for (size_t i = 0; i < n; i++)
		if (str_eq(val_str(found[i]->val, metadata, uid), val_str(new, metadata, uid)))
			return !val_exists(old) || !val_equal(val_get(old, status), val_get(new, status));
	return false;
}

static int dynamic_configure(struct val args, void **ret_config, struct err *err)
{
	struct dynamic_config *config = mem_zalloc(sizeof(*config));
	(void)err;
	*config = (struct dynamic_config){ sched_duration_ns(val_get(args, filterTimeout)), sched_duration_ns(val_get(args, bindingTimeout)) };
	if (!val_has(args, bindingTimeout))
		config->binding_ns = 600 * NS_PER_S;
	*ret_config = config;
	return 0;
}

const struct plugin plugin_dynamic_resources = {
	.name = "DynamicResources",
	.weight = 2,
	.events = EV_NODE_ADD | EV_NODE_LABEL | EV_NODE_ALLOCATABLE | EV_CLAIM | EV_DEVICE_CLASS | EV_RESOURCE_SLICE,
	.hint = dynamic_hint,
	.pre_enqueue = dynamic_pre_enqueue,
	.pre_filter = dynamic_pre_filter,
	.filter = dynamic_filter,
	.post_filter = dynamic_post_filter,
	.score = dynamic_score,
	.reserve = dynamic_reserve,
	.unreserve = dynamic_unreserve,
	.pre_bind = dynamic_pre_bind,
	.pre_bind_works = dynamic_works,
	.configure = dynamic_configure,
};
