/* Claims that pods use stay until those are gone. A key is a claim's. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/claim_pods.h"
#include "controllers/controller.h"
#include "controllers/protection.h"

struct claims {
	struct informer *claims, *pods;
};

static bool used_by_known(const struct claims *s, str key, struct val claim)
{
	INFORMER_EACH(pod, informer_each_indexed(s->pods, CLAIM_INDEX, key))
		if (pod_uses_claim(pod->val, claim))
			return true;
	return false;
}

/* (suspends) Before data may go the server itself is asked: the informer may not know the newest pod. */
static int used_by_any(struct controller *c, struct val claim, bool *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *pods = NULL;
	int r = client_list(c->client, TYPE(core_v1, Pod), &(struct client_list_options){ .namespace = val_str(claim, metadata, namespace) }, &pods, err);

	*ret = false;
	if (r < 0)
		return r;
	VAL_EACH(pod, val_get(pods->val, items))
		*ret |= pod_uses_claim(*pod, claim);
	return 0;
}

static int protection_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct claims *s = c->state;
	struct frozen *found = informer_get(s->claims, key);
	bool used = false;
	int r = 0;

	if (!found)
		return 0;
	struct val claim = controller_hold(c, a, found);
	if (val_has(claim, metadata, deletionTimestamp) && finalizers_have(claim, STR(PVC_PROTECTION))) {
		used = used_by_known(s, key, claim);
		if (!used)
			r = used_by_any(c, claim, &used, err);
	}
	if (r < 0)
		return r;
	enum protection_step step = protection_plan(claim, STR(PVC_PROTECTION), used);
	if (step == PROTECTION_REST)
		return 0;
	struct val next = step == PROTECTION_ADD ? finalizer_put(a, claim, STR(PVC_PROTECTION)) : finalizer_remove(a, claim, STR(PVC_PROTECTION));
	r = client_update(c->client, TYPE(core_v1, PersistentVolumeClaim), next, NULL, NULL, err);
	if (r == -ERR_NOT_FOUND)
		err_clear(err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* ---- being told ---- */

static void claim_changed(struct controller *c, struct frozen *old, struct frozen *claim)
{
	if (claim && (val_has(claim->val, metadata, deletionTimestamp) || !finalizers_have(claim->val, STR(PVC_PROTECTION))))
		controller_key_self(c, old, claim);
}

struct adding {
	struct controller *c;
	struct arena *arena;
	str namespace;
};

static void add_claim(str claim, void *arg)
{
	const struct adding *x = arg;
	controller_add(x->c, arena_printf(x->arena, STR_FMT "/" STR_FMT, STR_ARG(x->namespace), STR_ARG(claim)));
}

/* One that is gone, or has ended, may have been the last. */
static void pod_changed(struct controller *c, struct frozen *old, struct frozen *pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val last = pod ? pod->val : old->val;
	struct adding x = { c, &a, val_str(last, metadata, namespace) };
	str phase = val_str(last, status, phase);
	bool replaced = old && pod && !str_eq(val_str(old->val, metadata, uid), val_str(pod->val, metadata, uid));

	if (!pod || replaced || val_has(last, metadata, deletionTimestamp) || str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded")))
		pod_claims(&a, replaced ? old->val : last, add_claim, &x);
}

static void protection_stop(struct controller *c) { free(c->state); }

static int protection_start(struct controller *c, struct err *err)
{
	struct claims *s = mem_zalloc(sizeof *s);

	(void)err;
	c->state = s;
	c->sync = protection_sync;
	s->claims = controller_informer(c, TYPE(core_v1, PersistentVolumeClaim));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	informer_index(s->pods, CLAIM_INDEX, pod_by_claim);
	controller_watch(c, s->claims, claim_changed);
	controller_watch(c, s->pods, pod_changed);
	return 0;
}

const struct controller_kind controller_pvc_protection = { .name = "persistentvolumeclaim-protection-controller", .start = protection_start,
							   .workers = 1, .stop = protection_stop, .account = "pvc-protection-controller" };
