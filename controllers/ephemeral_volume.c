/*
 * Volumes that live as long as their pod: each has a claim of its own, named after both, which the pod owns, so that it goes with it. What
 * a pod asks for never changes: only new pods matter, and claims that somebody deletes.
 */
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/claim_pods.h"
#include "controllers/controller.h"
#include "controllers/owner.h"

static void add_pod(struct controller *c, struct val pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (val_has(pod, metadata, deletionTimestamp))
		return;
	VAL_EACH(v, val_get(pod, spec, volumes))
		if (val_has(*v, ephemeral)) {
			controller_add(c, object_key(&a, pod));
			return;
		}
}

static void pod_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	if (object && (!old || !str_eq(val_str(old->val, metadata, uid), val_str(object->val, metadata, uid))))
		add_pod(c, object->val);
}

static void claim_changed(struct controller *c, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (object)
		return;
	INFORMER_EACH(pod, informer_each_indexed(controller_informer(c, TYPE(core_v1, Pod)), CLAIM_INDEX, object_key(&a, old->val)))
		add_pod(c, pod->val);
}

/* (suspends) */
static int make_claim(struct controller *c, struct arena *a, struct val pod, struct val volume, struct err *err)
{
	struct val template = val_get(volume, ephemeral, volumeClaimTemplate);
	str namespace = val_str(pod, metadata, namespace), pod_name = val_str(pod, metadata, name);
	str name = arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(pod_name), STR_ARG(val_str(volume, name)));
	struct frozen *had = informer_get(controller_informer(c, TYPE(core_v1, PersistentVolumeClaim)),
					  arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)));

	if (had && owner_is(had->val, pod))
		return 0;
	if (had)
		return err_set(err, ERR_CONFLICT, "PVC " STR_FMT "/" STR_FMT " was not created for pod " STR_FMT "/" STR_FMT " (pod is not owner)",
			       STR_ARG(namespace), STR_ARG(name), STR_ARG(namespace), STR_ARG(pod_name));
	struct val meta = OBJECT(a, F(name, VAL_STR(name)), F(namespace, VAL_STR(namespace)), F(labels, val_get(template, metadata, labels)),
				 F(annotations, val_get(template, metadata, annotations)),
				 F(ownerReferences, LIST(a, owner_ref(a, pod, "v1", "Pod"))));
	int r = client_create(c->client, TYPE(core_v1, PersistentVolumeClaim), OBJECT(a, F(metadata, meta), F(spec, val_get(template, spec))), NULL, NULL, err);
	return r < 0 ? err_wrap(err, r, "create PVC " STR_FMT, STR_ARG(name)) : 0;
}

static int sync_pod(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct frozen *shown = informer_get(controller_informer(c, TYPE(core_v1, Pod)), key);

	if (!shown || val_has(shown->val, metadata, deletionTimestamp))
		return 0;
	struct val pod = controller_hold(c, a, shown);
	VAL_EACH(v, val_get(pod, spec, volumes)) {
		int r = val_has(*v, ephemeral) ? make_claim(c, a, pod, *v, err) : 0;
		if (r == -ERR_CANCELED)
			return r;
		if (r < 0) {
			str name = val_str(*v, name);
			controller_event(c, pod, true, "FailedBinding", "ephemeral volume " STR_FMT ": %s", STR_ARG(name), err->msg);
			return err_wrap(err, r, "ephemeral volume " STR_FMT, STR_ARG(name));
		}
	}
	return 0;
}

static int start(struct controller *c, struct err *err)
{
	struct informer *pods = controller_informer(c, TYPE(core_v1, Pod));

	(void)err;
	c->sync = sync_pod;
	informer_index(pods, CLAIM_INDEX, pod_by_claim);
	controller_watch(c, pods, pod_changed);
	controller_watch(c, controller_informer(c, TYPE(core_v1, PersistentVolumeClaim)), claim_changed);
	return 0;
}

const struct controller_kind controller_ephemeral_volume = { .name = "ephemeral-volume-controller", .start = start, .source = "ephemeral_volume" };
