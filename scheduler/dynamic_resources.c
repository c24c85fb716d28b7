/*
 * The plugin DynamicResources. Claims that have an allocation allow the nodes that it allows; for the others devices are sought on each node. As
 * with volumes, what was found is sought once more for the chosen node (reserve), so that nothing is kept per node. From then on the devices
 * are taken ("in flight"), until pre_bind has written the allocation and the server's answer is known. Nothing here knows CEL: see devices.h.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "scheduler/devices.h"
#include "scheduler/scheduler_priv.h"

#include <stdlib.h>

#define CLAIM_FINALIZER "resource.kubernetes.io/delete-protection"
enum { BIND_TRIES = 5, ALTERNATIVES_MAX = 8 };

struct pod_claim {
	struct val object;            /* borrowed during the cycle; of held after reserve */
	struct frozen *held;
	str key, uid;
	bool open;                    /* has no allocation yet */
	bool anywhere;
	struct node_selector nodes;
	bool unavailable;             /* on at least one node, though allocated */
	struct frozen *allocation;    /* found by reserve */
	bool reserved;                /* for the pod, on the server */
};

struct dynamic {
	struct pod_claim *claims;
	size_t n, n_open;
	struct device_search *search; /* for the open ones */
};

/* ---- claims of a pod ---- */

/* 1 with the name; 0: intentionally none; an error's text in *ret_why. */
static int claim_name(struct arena *a, struct val pod, struct val ref, str *ret_name, bool *ret_made, str *ret_why)
{
	str namespace = val_str(pod, metadata, namespace), name = val_str(pod, metadata, name);
	*ret_made = false;
	*ret_name = val_str(ref, resourceClaimName);
	if (ret_name->n)
		return 1;
	if (!val_has(ref, resourceClaimTemplateName)) {
		*ret_why = arena_printf(a, "pod \"" STR_FMT "/" STR_FMT "\", spec.resourceClaim \"" STR_FMT "\": none of the supported fields are set",
					STR_ARG(namespace), STR_ARG(name), STR_ARG(val_str(ref, name)));
		return -1;
	}
	*ret_made = true;
	VAL_EACH(s, val_get(pod, status, resourceClaimStatuses))
		if (str_eq(val_str(*s, name), val_str(ref, name))) {
			*ret_name = val_str(*s, resourceClaimName);
			return ret_name->n > 0;
		}
	*ret_why = arena_printf(a, "pod \"" STR_FMT "/" STR_FMT "\": ResourceClaim not created yet", STR_ARG(namespace), STR_ARG(name));
	return -1;
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
		int r = claim_name(a, pod, *ref, &name, &made, ret_why);
		if (r < 0)
			return false;
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

static bool is_reserved_for(struct val claim, struct val pod)
{
	VAL_EACH(r, val_get(claim, status, reservedFor))
		if (str_eq(val_str(*r, uid), val_str(pod, metadata, uid)))
			return true;
	return false;
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
				   .uid = arena_str(c->arena, val_str(object->val, metadata, uid)), .open = !val_exists(allocation),
				   .anywhere = !val_exists(nodes), .reserved = is_reserved_for(object->val, c->pod) };
	if (ret->open && devices_flying(c->devices, ret->uid)) {
		c->reason = arena_printf(c->arena, "resource claim " STR_FMT " is in the process of being allocated", STR_ARG(ret->key));
		return UNRESOLVABLE;
	}
	if (ret->anywhere)
		return FIT;
	node_selector_compile(c->arena, nodes, NULL, &ret->nodes);
	return node_selector_check(&ret->nodes, &err) < 0 ? fail(c, -ERR_INTERNAL, &err) : FIT;
}

static enum verdict dynamic_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	size_t n, most = val_len(val_get(c->pod, spec, resourceClaims));
	struct err err = ERR_INIT;
	*ret_state = ARENA_NEW(c->arena, struct dynamic);
	*ret_skip = true;
	if (!most)
		return FIT;
	struct dynamic *s = *ret_state;
	struct frozen **found = ARENA_ARRAY(c->arena, struct frozen *, most);
	if (!pod_claims(c->arena, c->devices, c->pod, found, &n, &c->reason))
		return UNRESOLVABLE;
	*ret_skip = n == 0;
	s->claims = ARENA_ARRAY(c->arena, struct pod_claim, n + 1);
	struct val *open = ARENA_ARRAY(c->arena, struct val, n + 1);
	for (; s->n < n; s->n++) {
		enum verdict v = claim_take(c, found[s->n], &s->claims[s->n]);
		if (v != FIT)
			return v;
		if (s->claims[s->n].open)
			open[s->n_open++] = s->claims[s->n].object;
	}
	int r = s->n_open ? device_search_new(c->arena, c->devices, open, s->n_open, &s->search, &err) : 0;
	return r < 0 ? fail(c, r, &err) : FIT;
}

static str name_of(const struct cycle *c, uint32_t node)
{
	return word_str(c->nodes, c->nodes->name[node]);
}

static enum verdict dynamic_filter(struct cycle *c, void *state, uint32_t node)
{
	struct dynamic *s = state;
	struct val object = c->nodes->object[node]->val;
	struct err err = ERR_INIT;
	bool unavailable = false;
	for (size_t i = 0; i < s->n; i++)
		if (!s->claims[i].anywhere && node_selector_matches(&s->claims[i].nodes, object, NULL) != 1)
			unavailable = s->claims[i].unavailable = true;
	int r = s->search ? device_search_run(s->search, name_of(c, node), object, NULL, &err) : 1;
	if (r < 0)
		return fail(c, r, &err);
	if (r > 0 && !unavailable)
		return FIT;
	c->reason = r == 0 ? STR("cannot allocate all claims") : STR("resourceclaim not available on the node");
	return UNRESOLVABLE;
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
		/* Without a search (nothing is open) Kubernetes has no score for a node. */
		scores[i] = 0;
		if (s && s->search)
			scores[i] = same;
		if (s && s->search && device_search_has_alternatives(s->search) &&
		    device_search_run(s->search, name_of(c, nodes[i]), c->nodes->object[nodes[i]]->val, NULL, NULL) > 0)
			scores[i] += device_search_score(s->search);
		most = MAX(most, scores[i]);
	}
	for (size_t i = 0; i < n && most; i++)
		scores[i] = scores[i] * 100 / most;
}

/* (suspends) A claim that nobody else uses, and that is allocated where the pod cannot be, is given back. */
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
		if (!x->unavailable || users > 1 || (users == 1 && !x->reserved))
			continue;
		struct val object = val_without(c->arena, x->object, status, allocation);
		object = val_without(c->arena, val_without(c->arena, object, status, reservedFor), status, devices);
		int r = client_update(c->devices->client, TYPE(resource_v1, ResourceClaim), object,
				      &(struct client_write_options){ .subresource = STR("status") }, NULL, &err);
		if (r < 0)
			return fail(c, -ERR_INTERNAL, &err);
		c->reason = STR("deallocation of ResourceClaim completed");
		return UNSCHEDULABLE;
	}
	c->reason = STR("still not schedulable");
	return UNSCHEDULABLE;
}

/* ---- the chosen node ---- */

static void let_go(struct dynamic *s)
{
	for (size_t i = 0; i < s->n; i++) {
		frozen_unref(s->claims[i].held);
		frozen_unref(s->claims[i].allocation);
		s->claims[i].held = s->claims[i].allocation = NULL;
	}
}

static enum verdict dynamic_reserve(struct cycle *c, uint32_t node)
{
	struct dynamic *s = c->state[c->at];
	struct err err = ERR_INIT;
	if (!s || !s->n)
		return FIT;
	struct val *allocations = ARENA_ARRAY(c->arena, struct val, s->n_open + 1);
	int r = s->search ? device_search_run(s->search, name_of(c, node), c->nodes->object[node]->val, allocations, &err) : 1;
	if (r < 0)
		return fail(c, -ERR_INTERNAL, &err);
	if (r == 0) {
		c->reason = STR("claim allocation not found for node");
		return FAILED;
	}
	size_t at = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct pod_claim *x = &s->claims[i];
		struct frozen *object = copies_get(&c->devices->claims, x->key);
		x->held = object ? frozen_ref(object) : val_freeze(x->object);
		x->object = x->held->val;
		if (!x->open)
			continue;
		x->allocation = val_freeze(allocations[at++]);
		devices_depart(c->devices, x->uid, x->allocation->val);
	}
	return FIT;
}

struct giving_back {                  /* the pod does not use the claim after all */
	struct scheduler *scheduler;
	struct client *client;
	struct frozen *patch;
	str key;                      /* in the block */
};

static int give_back(void *arg)
{
	struct giving_back *g = arg;
	struct err err = ERR_INIT;
	str namespace, name;
	(void)str_cut(g->key, '/', &namespace, &name);
	if (client_patch(g->client, TYPE(resource_v1, ResourceClaim), namespace, name, CLIENT_PATCH_STRATEGIC, g->patch->val,
			 &(struct client_write_options){ .subresource = STR("status") }, NULL, &err) < 0)
		log_warn("a reservation of a resource claim could not be taken back; ignoring", KV("claim", g->key), KV("err", &err));
	if (g->scheduler->queue)
		fiber_cond_signal(&g->scheduler->less_work);
	frozen_unref(g->patch);
	free(g);
	return 0;
}

static void unreserve_claim(struct cycle *c, const struct pod_claim *x)
{
	struct arena *a = c->arena;
	struct val entry = OBJECT(a, { atom_make(a, STR("$patch")), VAL_LIT("delete") }, F(uid, val_get(c->pod, metadata, uid)));
	struct val patch = OBJECT(a, F(metadata, OBJECT(a, F(uid, VAL_STR(x->uid)))), F(status, OBJECT(a, F(reservedFor, LIST(a, entry)))));
	struct giving_back *g = mem_zalloc(sizeof(*g) + x->key.n + 1);
	memcpy((char *)(g + 1), x->key.p, x->key.n);
	*g = (struct giving_back){ c->scheduler, c->devices->client, val_freeze(patch), str_span((char *)(g + 1), x->key.n) };
	struct err err = ERR_INIT;
	if (fiber_group_spawn(&c->scheduler->work, give_back, g, &err, "unreserve") < 0) {
		log_warn("a reservation of a resource claim could not be taken back; ignoring", KV("claim", x->key), KV("err", &err));
		frozen_unref(g->patch);
		free(g);
	}
}

static void dynamic_unreserve(struct cycle *c, uint32_t node)
{
	struct dynamic *s = c->state[c->at];
	(void)node;
	if (!s || !s->n)
		return;
	for (size_t i = 0; i < s->n; i++) {
		struct pod_claim *x = &s->claims[i];
		if (x->open)
			devices_land(c->devices, x->uid);
		if (x->reserved && c->scheduler)
			unreserve_claim(c, x);
		x->reserved = false;
	}
	let_go(s);
}

static bool has_finalizer(struct val claim)
{
	VAL_EACH(f, val_get(claim, metadata, finalizers))
		if (str_eq(val_as_str(*f), STR(CLAIM_FINALIZER)))
			return true;
	return false;
}

/* The status that is to be written. */
static struct val claim_with_pod(struct arena *a, struct val claim, struct val allocation, struct val pod)
{
	char text[TIME_TEXT_MAX];
	struct val user = OBJECT(a, F(resource, VAL_LIT("pods")), F(name, val_get(pod, metadata, name)), F(uid, val_get(pod, metadata, uid)));
	if (val_exists(allocation))
		claim = val_with(a, claim, allocation, status, allocation);
	if (!val_has(claim, status, allocation, allocationTimestamp)) {
		str now = arena_str(a, time_format((struct timestamp){ clock_wall_ns() / NS_PER_S, 0 }, text));
		claim = val_with(a, claim, VAL_STR(now), status, allocation, allocationTimestamp);
	}
	return val_with(a, claim, val_list_append(a, val_get(claim, status, reservedFor), user), status, reservedFor);
}

/* (suspends) One try; *claim is newer afterwards. */
static int claim_write(struct cycle *c, const struct pod_claim *x, struct frozen **claim, struct err *err)
{
	struct client *client = c->devices->client;
	const struct type *type = TYPE(resource_v1, ResourceClaim);
	struct frozen *answer = NULL;
	struct val object = (*claim)->val;
	int r;
	if (val_has(object, metadata, deletionTimestamp))
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT " got deleted in the meantime", STR_ARG(x->key));
	if (x->open && val_has(object, status, allocation))
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT " got allocated elsewhere in the meantime", STR_ARG(x->key));
	if (!x->open && !val_has(object, status, allocation))
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT " got deallocated elsewhere in the meantime", STR_ARG(x->key));
	if (x->open && !has_finalizer(object)) {
		struct val list = val_list_append(c->arena, val_get(object, metadata, finalizers), VAL_LIT(CLAIM_FINALIZER));
		r = client_update(client, type, val_with(c->arena, object, list, metadata, finalizers), NULL, &answer, err);
		if (r < 0)
			return err_wrap(err, r, "add finalizer to claim " STR_FMT, STR_ARG(x->key));
		frozen_unref(*claim);
		*claim = answer;
		object = answer->val;
		answer = NULL;
	}
	object = claim_with_pod(c->arena, object, x->open ? x->allocation->val : VAL_EMPTY, c->pod);
	r = client_update(client, type, object, &(struct client_write_options){ .subresource = STR("status") }, &answer, err);
	if (r < 0)
		return err_wrap(err, r, "add %s to claim " STR_FMT, x->open ? "allocation and reservation" : "reservation", STR_ARG(x->key));
	frozen_unref(*claim);
	*claim = answer;
	return 0;
}

/* (suspends) Others may have changed the claim in harmless ways: it is read anew then. */
static int claim_bind(struct cycle *c, struct pod_claim *x, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *claim = frozen_ref(x->held);
	str namespace, name;
	int r = claim_write(c, x, &claim, err);
	(void)str_cut(x->key, '/', &namespace, &name);
	for (unsigned i = 1; i < BIND_TRIES && r == -ERR_CONFLICT; i++) {
		struct frozen *newer = NULL;
		err_clear(err);
		if ((r = fiber_sleep_ms(10, err)) < 0)
			return r;
		r = client_get(c->devices->client, TYPE(resource_v1, ResourceClaim), namespace, name, &newer, err);
		if (r < 0)
			return err_wrap(err, r, "get updated claim " STR_FMT " after conflict", STR_ARG(x->key));
		frozen_unref(claim);
		claim = newer;
		r = claim_write(c, x, &claim, err);
	}
	if (r < 0)
		return r;
	x->reserved = true;
	(void)copies_assume(&c->devices->claims, claim, NULL); /* deleted meanwhile, or newer already: both are fine */
	if (x->open)
		devices_land(c->devices, x->uid);
	return 0;
}

static int dynamic_pre_bind(struct cycle *c, uint32_t node, struct err *err)
{
	struct dynamic *s = c->state[c->at];
	int r = 0;
	(void)node;
	for (size_t i = 0; s && i < s->n && r == 0; i++)
		if (!s->claims[i].reserved)
			r = claim_bind(c, &s->claims[i], err);
	if (s && r == 0)
		let_go(s);
	return r;
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
	for (size_t i = 0; i < n; i++)
		if (str_eq(val_str(found[i]->val, metadata, uid), val_str(new, metadata, uid)))
			return !val_exists(old) || !val_equal(val_get(old, status), val_get(new, status));
	return false;
}

const struct plugin plugin_dynamic_resources = {
	.name = "DynamicResources",
	.weight = 2,
	.events = EV_NODE_ADD | EV_NODE_LABEL | EV_NODE_ALLOCATABLE | EV_CLAIM,
	.hint = dynamic_hint,
	.pre_enqueue = dynamic_pre_enqueue,
	.pre_filter = dynamic_pre_filter,
	.filter = dynamic_filter,
	.post_filter = dynamic_post_filter,
	.score = dynamic_score,
	.reserve = dynamic_reserve,
	.unreserve = dynamic_unreserve,
	.pre_bind = dynamic_pre_bind,
};
