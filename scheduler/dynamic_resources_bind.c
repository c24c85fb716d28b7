/* DynamicResources, once a node has been chosen: what is written to claims, and taken back. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "machinery/resource_claim.h"
#include "scheduler/dynamic_resources_priv.h"

enum { BIND_TRIES = 5, RETRY_MS = 10, SEEN_MS = 120000, READY_POLL_MS = 5000 };

static void let_go(struct dynamic *s)
{
	for (size_t i = 0; i < s->n; i++) {
		frozen_unref(s->claims[i].held);
		frozen_unref(s->claims[i].allocation);
		s->claims[i].held = s->claims[i].allocation = NULL;
	}
	frozen_unref(TAKE(s->kept_mappings));
}

/* ---- reserve ---- */

static void claim_depart(struct cycle *c, struct pod_claim *x, struct val allocation)
{
	x->allocation = val_freeze(allocation);
	devices_depart(c->devices, x->uid, x->allocation->val);
}

enum verdict dynamic_reserve(struct cycle *c, uint32_t node)
{
	struct dynamic *s = c->state[c->at];
	struct err err = ERR_INIT;
	bool extended;
	size_t at = 0;
	if (!s || !s->n)
		return FIT;
	struct val *allocations = ARENA_ARRAY(c->arena, struct val, s->n_open + 2);
	int r = dynamic_search(c, s, node, allocations, &extended, &err);
	c->reason = r < 0 ? arena_str(c->arena, err_str(&err)) : STR("claim allocation not found for node");
	if (r <= 0)
		return FAILED;
	s->node_name = arena_str(c->arena, word_str(c->nodes, c->nodes->name[node]));
	for (size_t i = 0; i < s->n; i++) {
		struct pod_claim *x = &s->claims[i];
		if (x->extended)
			continue;
		struct frozen *object = copies_get(&c->devices->claims, x->key);
		x->held = object ? frozen_ref(object) : val_freeze(x->object);
		x->object = x->held->val;
		if (x->open)
			claim_depart(c, x, allocations[at++]);
	}
	if (extended) {
		struct pod_claim *x = &s->claims[s->n - 1];
		x->held = val_freeze(s->extended);
		x->object = x->held->val;
		s->kept_mappings = val_freeze(s->mappings);
		claim_depart(c, x, allocations[at]);
	}
	return FIT;
}

/* ---- taking back ---- */

static int finalizer_remove(struct client *client, struct arena *a, str namespace, str name, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *claim = NULL;
	int r = client_get(client, CLAIM_TYPE, namespace, name, &claim, err);
	if (r < 0)
		return err_wrap(err, r, "get resourceclaim " STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
	r = client_update(client, CLAIM_TYPE, claim_without_finalizer(a, claim->val), NULL, NULL, err);
	return r < 0 ? err_wrap(err, r, "update resourceclaim " STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)) : 0;
}

int claim_delete(struct client *client, str key, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str namespace, name;
	(void)str_cut(key, '/', &namespace, &name);
	int r = finalizer_remove(client, &a, namespace, name, err);
	for (unsigned i = 1; i < BIND_TRIES && r == -ERR_CONFLICT; i++) {
		err_clear(err);
		if ((r = fiber_sleep_ms(RETRY_MS, err)) == 0)
			r = finalizer_remove(client, &a, namespace, name, err);
	}
	if (r < 0)
		return r;
	return client_delete(client, CLAIM_TYPE, namespace, name, &(struct client_delete_options){ .grace_s = -1 }, err);
}

struct giving_back {                  /* the pod does not use the claim after all */
	struct scheduler *scheduler;
	struct client *client;
	struct frozen *patch;         /* NULL: the claim is to be deleted */
	str key;                      /* in the block */
};

static int give_back(void *arg)
{
	struct giving_back *g = arg;
	struct err err = ERR_INIT;
	str namespace, name;
	(void)str_cut(g->key, '/', &namespace, &name);
	int r = g->patch ? client_patch(g->client, CLAIM_TYPE, namespace, name, CLIENT_PATCH_STRATEGIC, g->patch->val,
					&(struct client_write_options){ .subresource = STR("status") }, NULL, &err) :
			   claim_delete(g->client, g->key, &err);
	if (r < 0)
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
	*g = (struct giving_back){ c->scheduler, c->devices->client, x->extended ? NULL : val_freeze(patch), str_span((char *)(g + 1), x->key.n) };
	struct err err = ERR_INIT;
	if (fiber_group_spawn(&c->scheduler->work, give_back, g, &err, "unreserve") < 0) {
		log_warn("a reservation of a resource claim could not be taken back; ignoring", KV("claim", x->key), KV("err", &err));
		frozen_unref(g->patch);
		free(g);
	}
}

void dynamic_unreserve(struct cycle *c, uint32_t node)
{
	struct dynamic *s = c->state[c->at];
	bool freed = false;
	(void)node;
	if (!s || !s->n)
		return;
	for (size_t i = 0; i < s->n; i++) {
		struct pod_claim *x = &s->claims[i];
		freed |= x->open && devices_flying(c->devices, x->uid);
		if (x->open)
			devices_land(c->devices, x->uid);
		if ((x->extended ? x->stored : x->reserved) && c->scheduler)
			unreserve_claim(c, x);
		x->reserved = false;
	}
	let_go(s);
	/* The server was never told of these: nobody else wakes pods that wait for the devices, or for a claim they share. */
	if (freed && c->scheduler && c->scheduler->queue)
		sched_queue_event(c->scheduler->queue, EV_CLAIM, VAL_EMPTY, VAL_EMPTY);
}

/* ---- writing ---- */

/* The status that is to be written. */
static struct val claim_with_pod(struct cycle *c, struct val claim, struct val allocation)
{
	char text[TIME_TEXT_MAX];
	struct arena *a = c->arena;
	if (val_exists(allocation))
		claim = val_with(a, claim, allocation, status, allocation);
	if (c->devices->features.binding_conditions && !val_has(claim, status, allocation, allocationTimestamp)) {
		str now = arena_str(a, time_format((struct timestamp){ clock_wall_ns() / NS_PER_S, 0 }, text));
		claim = val_with(a, claim, VAL_STR(now), status, allocation, allocationTimestamp);
	}
	return val_with(a, claim, val_list_append(a, val_get(claim, status, reservedFor), claim_user(a, c->pod)), status, reservedFor);
}

static int claim_check_state(const struct cycle *c, const struct pod_claim *x, struct val object, struct err *err)
{
	bool allocated = val_has(object, status, allocation);
	if (val_has(object, metadata, deletionTimestamp))
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT " got deleted in the meantime", STR_ARG(x->key));
	if (x->open && allocated)
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT " got allocated elsewhere in the meantime", STR_ARG(x->key));
	if (!x->open && !allocated && c->devices->features.binding_conditions)
		return err_set(err, ERR_INTERNAL, "claim " STR_FMT " got deallocated elsewhere in the meantime", STR_ARG(x->key));
	return 0;
}

/* (suspends) One try; *claim is newer afterwards. */
static int claim_write(struct cycle *c, const struct pod_claim *x, struct frozen **claim, struct err *err)
{
	struct client *client = c->devices->client;
	struct frozen *answer = NULL;
	struct val object = (*claim)->val;
	int r = claim_check_state(c, x, object, err);
	if (r < 0)
		return r;
	if (x->open && !claim_has_finalizer(object)) {
		struct val list = val_list_append(c->arena, val_get(object, metadata, finalizers), VAL_LIT(CLAIM_FINALIZER));
		r = client_update(client, CLAIM_TYPE, val_with(c->arena, object, list, metadata, finalizers), NULL, &answer, err);
		if (r < 0)
			return err_wrap(err, r, "add finalizer to claim " STR_FMT, STR_ARG(x->key));
		frozen_unref(*claim);
		*claim = answer;
		object = answer->val;
		answer = NULL;
	}
	object = claim_with_pod(c, object, x->open ? x->allocation->val : VAL_EMPTY);
	r = client_update(client, CLAIM_TYPE, object, &(struct client_write_options){ .subresource = STR("status") }, &answer, err);
	if (r < 0)
		return err_wrap(err, r, "add %s to claim " STR_FMT, x->open ? "allocation and reservation" : "reservation", STR_ARG(x->key));
	frozen_unref(*claim);
	*claim = answer;
	return 0;
}

/* (suspends) Others may have changed the claim in harmless ways: it is read anew then. */
static int claim_write_on(struct cycle *c, const struct pod_claim *x, struct frozen **claim, struct err *err)
{
	str namespace, name;
	int r = claim_write(c, x, claim, err);
	(void)str_cut(x->key, '/', &namespace, &name);
	for (unsigned i = 1; i < BIND_TRIES && r == -ERR_CONFLICT; i++) {
		struct frozen *newer = NULL;
		err_clear(err);
		if ((r = fiber_sleep_ms(RETRY_MS, err)) < 0)
			return r;
		r = client_get(c->devices->client, CLAIM_TYPE, namespace, name, &newer, err);
		if (r < 0)
			return err_wrap(err, r, "get updated claim " STR_FMT " after conflict", STR_ARG(x->key));
		frozen_unref(*claim);
		*claim = newer;
		r = claim_write(c, x, claim, err);
	}
	return r;
}

/* ---- the claim for extended resources ---- */

/* (suspends) From now on the claim has a name; its devices stay taken under the uid it had so far. */
static int extended_create(struct cycle *c, struct pod_claim *x, struct frozen **claim, struct err *err)
{
	struct val object = val_without(c->arena, val_without(c->arena, x->object, metadata, name), metadata, uid);
	int r = client_create(c->devices->client, CLAIM_TYPE, object, NULL, claim, err);
	if (r < 0)
		return err_wrap(err, r, "create claim for extended resources " STR_FMT, STR_ARG(x->key));
	x->key = object_key(c->arena, (*claim)->val);
	x->stored = true;
	return 0;
}

/* (suspends) Until the claim is told of: before that it cannot be assumed to be allocated, and its devices would be free. */
static int extended_assume(struct cycle *c, struct frozen *claim, struct err *err)
{
	int64_t end = clock_now_ns() + SEEN_MS * NS_PER_MS;
	while (copies_assume(&c->devices->claims, claim, NULL) == -ERR_NOT_FOUND && clock_now_ns() < end) {
		int r = fiber_sleep_ms(RETRY_MS, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* (suspends) Containers learn from the pod which devices are theirs. */
static int extended_tell(struct cycle *c, const struct dynamic *s, struct val claim, struct err *err)
{
	struct arena *a = c->arena;
	str namespace = val_str(c->pod, metadata, namespace), name = val_str(c->pod, metadata, name);
	struct val told = OBJECT(a, F(requestMappings, s->kept_mappings->val), F(resourceClaimName, val_get(claim, metadata, name)));
	struct val patch = OBJECT(a, F(status, OBJECT(a, F(extendedResourceClaimStatus, told))));
	int r = client_patch(c->devices->client, TYPE(core_v1, Pod), namespace, name, CLIENT_PATCH_STRATEGIC, patch,
			     &(struct client_write_options){ .subresource = STR("status") }, NULL, err);
	return r < 0 ? err_wrap(err, r, "update pod " STR_FMT "/" STR_FMT " ExtendedResourceClaimStatus", STR_ARG(namespace), STR_ARG(name)) : 0;
}

static int extended_bind(struct cycle *c, const struct dynamic *s, struct pod_claim *x, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *claim = NULL;
	int r = extended_create(c, x, &claim, err);
	if (r == 0)
		r = claim_write_on(c, x, &claim, err);
	if (r < 0)
		return r;
	x->reserved = true;
	if ((r = extended_assume(c, claim, err)) == 0)
		devices_land(c->devices, x->uid);
	return r < 0 ? r : extended_tell(c, s, claim->val, err);
}

/* ---- pre_bind ---- */

static int claim_bind(struct cycle *c, struct pod_claim *x, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *claim = frozen_ref(x->held);
	int r = claim_write_on(c, x, &claim, err);
	if (r < 0)
		return r;
	x->reserved = true;
	(void)copies_assume(&c->devices->claims, claim, NULL); /* deleted meanwhile, or newer already: both are fine */
	if (x->open)
		devices_land(c->devices, x->uid);
	return 0;
}

/* Of all claims: 1: ready, 0: not yet. *ret_waits: there is something to wait for at all. */
static int claims_are_ready(const struct cycle *c, const struct dynamic *s, bool *ret_waits, struct err *err)
{
	int all = 1;
	for (size_t i = 0; i < s->n && all == 1; i++) {
		const struct pod_claim *x = &s->claims[i];
		struct val claim = copies_val(&c->devices->claims, x->key);
		if (x->extended && !x->stored)
			continue;
		if (!val_exists(claim))
			return err_set(err, ERR_INVALID, "could not find ResourceClaim \"" STR_FMT "\"", STR_ARG(x->key));
		VAL_EACH(d, val_get(claim, status, allocation, devices, results))
			*ret_waits |= val_len(val_get(*d, bindingConditions)) > 0;
		all = claim_is_ready(claim, err);
		if (all == 0 && claim_is_late(claim, dynamic_config_of(c)->binding_ns))
			return err_set(err, ERR_INVALID, "device binding timeout: claim=" STR_FMT, STR_ARG(val_str(claim, metadata, name)));
	}
	return all;
}

static void tell_waiting(struct cycle *c, str node_name)
{
	struct profile *p = c->scheduler ? scheduler_profile(c->scheduler, c->pod) : NULL;
	if (p)
		record(p->recorder, pod_reference(c->arena, c->pod), RECORD_NORMAL, "BindingConditionsPending",
		       "waiting for binding conditions for device on node " STR_FMT, STR_ARG(node_name));
}

/* (suspends) Some devices have to be brought to the node first. */
static int wait_for_devices(struct cycle *c, const struct dynamic *s, struct err *err)
{
	int64_t end = clock_now_ns() + dynamic_config_of(c)->binding_ns;
	bool told = false, waits = false;
	for (;;) {
		int r = claims_are_ready(c, s, &waits, err);
		if (!waits || r < 0)
			return r < 0 ? r : 0;
		if (!told)
			tell_waiting(c, s->node_name);
		told = true;
		if (r > 0)
			return 0;
		if (clock_now_ns() >= end)
			return err_set(err, ERR_TIMEOUT, "device binding timeout: context deadline exceeded");
		DEADLINE_SCOPE(READY_POLL_MS); /* a claim may also be late without any change */
		r = fiber_cond_wait(&c->devices->claims_changed, err);
		if (r < 0 && r != -ERR_TIMEOUT)
			return r;
		err_clear(err);
	}
}

bool dynamic_works(const struct cycle *c)
{
	const struct dynamic *s = c->state[c->at];
	return s && s->n;
}

int dynamic_pre_bind(struct cycle *c, uint32_t node, struct err *err)
{
	struct dynamic *s = c->state[c->at];
	int r = 0;
	(void)node;
	if (!s || !s->n)
		return 0;
	for (size_t i = 0; i < s->n && r == 0; i++) {
		struct pod_claim *x = &s->claims[i];
		if (x->extended ? x->held != NULL : !x->reserved)
			r = x->extended ? extended_bind(c, s, x, err) : claim_bind(c, x, err);
	}
	if (r == 0 && c->devices->features.binding_conditions)
		r = wait_for_devices(c, s, err);
	if (r == 0)
		let_go(s);
	return r;
}
