#include "controllers/claim_pods.h"

#include "codec/atoms.h"
#include "controllers/owner.h"

static str claim_of(struct arena *a, struct val pod, struct val volume)
{
	if (val_has(volume, persistentVolumeClaim))
		return val_str(volume, persistentVolumeClaim, claimName);
	if (val_has(volume, ephemeral))
		return arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(val_str(pod, metadata, name)), STR_ARG(val_str(volume, name)));
	return STR_NONE;
}

void pod_claims(struct arena *a, struct val pod, void (*add)(str claim, void *arg), void *arg)
{
	VAL_EACH(v, val_get(pod, spec, volumes)) {
		str claim = claim_of(a, pod, *v);
		if (claim.n)
			add(claim, arg);
	}
}

struct adding {
	struct arena arena;
	str namespace;
	void (*add)(str value, void *arg);
	void *arg;
};

static void add_key(str claim, void *arg)
{
	struct adding *x = arg;
	x->add(arena_printf(&x->arena, STR_FMT "/" STR_FMT, STR_ARG(x->namespace), STR_ARG(claim)), x->arg);
}

void pod_by_claim(struct val pod, void (*add)(str value, void *arg), void *arg)
{
	struct adding x = { .arena = ARENA_INIT, .namespace = val_str(pod, metadata, namespace), .add = add, .arg = arg };

	pod_claims(&x.arena, pod, add_key, &x);
	arena_done(&x.arena);
}

/* No container of it runs any more, nor will one. */
static bool is_shut_down(struct val pod)
{
	return val_has(pod, metadata, deletionTimestamp) && val_int(pod, metadata, deletionGracePeriodSeconds) == 0;
}

bool pod_uses_claim(struct val pod, struct val claim)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (!val_str(pod, spec, nodeName).n)
		return false;
	VAL_EACH(v, val_get(pod, spec, volumes)) {
		if (!str_eq(claim_of(&a, pod, *v), val_str(claim, metadata, name)))
			continue;
		if (val_has(*v, persistentVolumeClaim) || (!is_shut_down(pod) && owner_is(claim, pod)))
			return true;
	}
	return false;
}
