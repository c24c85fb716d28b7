/*
 * Volumes and claims. Keys are claims ("namespace/name") and volumes ("name"). Claims that wait are looked at again every 15 seconds, and when
 * a volume of their class becomes available.
 *
 * Deleting a hostPath volume (only below /tmp, for tests and development) removes the folder on this machine, as Kubernetes does.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/mem.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/claim_pods.h"
#include "controllers/controller.h"
#include "controllers/pv_binder_plan.h"

enum { RESYNC_MS = 15 * 1000 };

/* Claims that are not bound, by class. */
#define WAITING_INDEX "waiting-class"

struct binder {
	struct informer *claims, *volumes, *classes, *pods;
};

static void waiting_by_class(struct val claim, void (*add)(str value, void *arg), void *arg)
{
	if (!str_eq(val_str(claim, status, phase), STR("Bound")))
		add(storage_class_of(claim), arg);
}

/* ---- writing ---- */

/* Writes what differs; *object is then what was stored. */
static int write_object(struct controller *c, struct arena *a, const struct type *type, struct val next, const char *subresource, struct val *object,
			struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *stored = NULL;

	if (!val_exists(next))
		return 0;
	int r = client_update(c->client, type, next, &(struct client_write_options){ .subresource = str_of(subresource) }, &stored, err);
	if (r == 0)
		*object = controller_hold(c, a, stored);
	return r;
}

#define WRITE_VOLUME(c, a, next, sub, object, err) write_object(c, a, TYPE(core_v1, PersistentVolume), next, sub, object, err)
#define WRITE_CLAIM(c, a, next, sub, object, err) write_object(c, a, TYPE(core_v1, PersistentVolumeClaim), next, sub, object, err)

static int bind_both(struct controller *c, struct arena *a, struct val claim, struct val volume, struct err *err)
{
	int r = WRITE_VOLUME(c, a, volume_bound(a, volume, claim), "", &volume, err);

	if (r == 0)
		r = WRITE_VOLUME(c, a, volume_with_phase(a, volume, "Bound", STR_NONE), "status", &volume, err);
	if (r == 0)
		r = WRITE_CLAIM(c, a, claim_bound(a, claim, volume), "", &claim, err);
	if (r == 0)
		r = WRITE_CLAIM(c, a, claim_with_phase(a, claim, "Bound", volume), "status", &claim, err);
	return r;
}

/* ---- claims ---- */

static struct val all_of(struct controller *c, struct arena *a, const struct informer *i)
{
	struct val_builder list = val_builder(a);

	INFORMER_EACH(object, informer_each(i))
		val_add_item(&list, controller_hold(c, a, object));
	return val_end_list(&list);
}

static struct val waiting_pods(const struct binder *s, struct arena *a, str claim_key)
{
	struct val_builder list = val_builder(a);

	INFORMER_EACH(pod, informer_each_indexed(s->pods, CLAIM_INDEX, claim_key)) {
		str phase = val_str(pod->val, status, phase);
		if (!val_str(pod->val, spec, nodeName).n && !str_eq(phase, STR("Failed")) && !str_eq(phase, STR("Succeeded")))
			val_add_item(&list, VAL_STR(arena_str(a, val_str(pod->val, metadata, name))));
	}
	return val_end_list(&list);
}

static struct val held(struct controller *c, struct arena *a, const struct informer *i, str key)
{
	struct frozen *object = key.n ? informer_get(i, key) : NULL;
	return object ? controller_hold(c, a, object) : VAL_EMPTY;
}

static struct claim_input claim_input(struct controller *c, struct arena *a, str key, struct val claim)
{
	const struct binder *s = c->state;
	str named = val_str(claim, spec, volumeName);
	struct val volume = held(c, a, s->volumes, named);

	if (named.n)
		return (struct claim_input){ .claim = claim, .volumes = val_exists(volume) ? LIST(a, volume) : VAL_EMPTY_LIST };
	return (struct claim_input){ .claim = claim, .volumes = all_of(c, a, s->volumes), .class = held(c, a, s->classes, storage_class_of(claim)),
				     .default_class = claim_has_class(claim) ? VAL_EMPTY : default_class(all_of(c, a, s->classes)),
				     .waiting_pods = waiting_pods(s, a, key) };
}

static void tell(struct controller *c, struct val about, const struct claim_plan *p)
{
	if (p->reason)
		controller_event(c, about, p->warning, p->reason, STR_FMT, STR_ARG(p->message));
}

static int lose(struct controller *c, struct arena *a, struct val claim, const struct claim_plan *p, struct err *err)
{
	struct val next = claim_with_phase(a, claim, "Lost", VAL_EMPTY);
	int r = WRITE_CLAIM(c, a, next, "status", &claim, err);

	if (r == 0 && val_exists(next))
		tell(c, claim, p);
	return r;
}

static int sync_claim(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct binder *s = c->state;
	struct val claim = held(c, a, s->claims, key);
	struct claim_plan p;
	int r;

	if (!val_exists(claim))
		return 0;
	const struct claim_input in = claim_input(c, a, key, claim);
	claim_plan(a, &in, &p);
	switch (p.step) {
	case CLAIM_BIND:
		return bind_both(c, a, claim, p.volume, err);
	case CLAIM_LOST:
		return lose(c, a, claim, &p, err);
	case CLAIM_SET_CLASS:
		return WRITE_CLAIM(c, a, val_with(a, claim, val_get(p.class, metadata, name), spec, storageClassName), "", &claim, err);
	case CLAIM_PROVISION:
		r = WRITE_CLAIM(c, a, claim_with_provisioner(a, claim, val_str(p.class, provisioner)), "", &claim, err);
		if (r == 0)
			tell(c, claim, &p);
		return r;
	case CLAIM_WRONG:
		tell(c, claim, &p);
		return err_set(err, ERR_INVALID, "invalid binding of claim \"" STR_FMT "\" to volume \"" STR_FMT "\"", STR_ARG(key),
			       STR_ARG(val_str(claim, spec, volumeName)));
	case CLAIM_PENDING:
		tell(c, claim, &p);
		return WRITE_CLAIM(c, a, claim_with_phase(a, claim, "Pending", VAL_EMPTY), "status", &claim, err);
	case CLAIM_REST:
		tell(c, claim, &p);
		return 0;
	}
	return 0;
}

/* ---- volumes ---- */

/* The claim of that name; asked of the server when the informer has none: the volume may be known before its claim is. */
static int claim_of(struct controller *c, struct arena *a, struct val volume, struct val *ret, struct err *err)
{
	const struct binder *s = c->state;
	CLEANUP(frozen_unrefp) struct frozen *fresh = NULL;
	struct val ref = val_get(volume, spec, claimRef);
	str namespace = val_str(ref, namespace), name = val_str(ref, name), phase = val_str(volume, status, phase);

	*ret = VAL_EMPTY;
	if (!val_str(ref, uid).n)
		return 0;
	*ret = held(c, a, s->claims, arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)));
	bool is_it = val_exists(*ret) && str_eq(val_str(*ret, metadata, uid), val_str(ref, uid));
	if (is_it || (!val_exists(*ret) && (str_eq(phase, STR("Released")) || str_eq(phase, STR("Failed")))))
		return 0;
	int r = client_get(c->client, TYPE(core_v1, PersistentVolumeClaim), namespace, name, &fresh, err);
	*ret = r == 0 ? controller_hold(c, a, fresh) : VAL_EMPTY;
	if (r == -ERR_NOT_FOUND)
		err_clear(err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Below /tmp, and only there: links are not followed, and no way leads out. On a thread of the pool. */
static int remove_below_tmp(void *arg, struct err *err)
{
	const char *path = arg;
	int tree = path_open_tree("/tmp", err), r;

	if (tree < 0)
		return tree;
	r = path_remove(tree, path, err);
	(void)close(tree);
	if (r == -ERR_NOT_FOUND) {
		err_clear(err);
		return 0;
	}
	return r;
}

/* (suspends) */
static int remove_folder(str path, struct arena *a, struct err *err)
{
	str below = arena_str(a, path_clean(a, str_skip(path, strlen("/tmp"))));
	return fiber_blocking(remove_below_tmp, (void *)below.p, err);
}

static int fail_volume(struct controller *c, struct arena *a, struct val volume, const char *reason, str message, struct err *err)
{
	struct val next = volume_with_phase(a, volume, "Failed", message);
	int r = WRITE_VOLUME(c, a, next, "status", &volume, err);

	if (r == 0 && val_exists(next))
		controller_event(c, volume, true, reason, STR_FMT, STR_ARG(message));
	return r;
}

static int reclaim(struct controller *c, struct arena *a, struct val volume, struct err *err)
{
	struct reclaim_plan p;
	int r = 0;

	if (!str_eq(val_str(volume, status, phase), STR("Failed")))
		r = WRITE_VOLUME(c, a, volume_with_phase(a, volume, "Released", STR_NONE), "status", &volume, err);
	reclaim_plan(a, volume, &p);
	if (r < 0 || p.step == RECLAIM_REST)
		return r;
	if (p.step == RECLAIM_FAIL)
		return fail_volume(c, a, volume, p.reason, p.message, err);
	if ((r = remove_folder(val_str(volume, spec, hostPath, path), a, err)) < 0)
		return fail_volume(c, a, volume, "VolumeFailedDelete", err ? arena_str(a, err_str(err)) : STR_NONE, NULL);
	r = client_delete(c->client, TYPE(core_v1, PersistentVolume), STR_NONE, val_str(volume, metadata, name),
			  &(struct client_delete_options){ .grace_s = -1, .uid = val_str(volume, metadata, uid) }, err);
	if (r == -ERR_NOT_FOUND)
		err_clear(err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static void tell_mismatch(struct controller *c, struct val volume, struct val claim)
{
	controller_event(c, volume, true, "VolumeMismatch",
			 "Cannot bind PersistentVolume to requested PersistentVolumeClaim \"" STR_FMT "\" due to incompatible volumeMode.",
			 STR_ARG(val_str(claim, metadata, name)));
	controller_event(c, claim, true, "VolumeMismatch",
			 "Cannot bind PersistentVolume \"" STR_FMT "\" to requested PersistentVolumeClaim due to incompatible volumeMode.",
			 STR_ARG(val_str(volume, metadata, name)));
}

static int sync_volume(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct binder *s = c->state;
	struct val volume = held(c, a, s->volumes, key), claim;
	int r;

	if (!val_exists(volume))
		return 0;
	if ((r = claim_of(c, a, volume, &claim, err)) < 0)
		return r;
	switch (volume_plan(volume, claim)) {
	case VOLUME_AVAILABLE:
		return WRITE_VOLUME(c, a, volume_with_phase(a, volume, "Available", STR_NONE), "status", &volume, err);
	case VOLUME_BOUND:
		return WRITE_VOLUME(c, a, volume_with_phase(a, volume, "Bound", STR_NONE), "status", &volume, err);
	case VOLUME_RELEASED:
		return reclaim(c, a, volume, err);
	case VOLUME_UNBIND:
		r = WRITE_VOLUME(c, a, volume_unbound(a, volume), "", &volume, err);
		return r < 0 ? r : WRITE_VOLUME(c, a, volume_with_phase(a, volume, "Available", STR_NONE), "status", &volume, err);
	case VOLUME_LOOK_AT_CLAIM:
		controller_add(c, object_key(a, claim));
		return 0;
	case VOLUME_MISMATCH:
		tell_mismatch(c, volume, claim);
		return 0;
	}
	return 0;
}

static int binder_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	return str_chr(key, '/') >= 0 ? sync_claim(c, a, key, err) : sync_volume(c, a, key, err);
}

/* ---- being told ---- */

static void claim_changed(struct controller *c, struct frozen *old, struct frozen *claim)
{
	controller_key_self(c, old, claim);
	if (!claim && val_str(old->val, spec, volumeName).n)
		controller_add(c, val_str(old->val, spec, volumeName));
}

static void volume_changed(struct controller *c, struct frozen *old, struct frozen *volume)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct binder *s = c->state;
	struct val last = volume ? volume->val : old->val, ref = val_get(last, spec, claimRef);
	bool was = old && str_eq(val_str(old->val, status, phase), STR("Available")), is = str_eq(val_str(last, status, phase), STR("Available"));

	controller_key_self(c, old, volume);
	if (!volume && val_exists(ref))
		controller_add(c, arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(val_str(ref, namespace)), STR_ARG(val_str(ref, name))));
	const struct frozen *class = informer_get(s->classes, storage_class_of(last));
	/* Where the scheduler chooses, there is nothing to do here before it has. */
	if (!volume || !is || was || (class && str_eq(val_str(class->val, volumeBindingMode), STR("WaitForFirstConsumer"))))
		return;
	INFORMER_EACH(claim, informer_each_indexed(s->claims, WAITING_INDEX, storage_class_of(last)))
		controller_add(c, object_key(&a, claim->val));
}

/* What waits is looked at again: for volumes of other makers, and so that its events stay fresh. */
static void look_again(struct controller *c)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct binder *s = c->state;

	INFORMER_EACH(claim, informer_each(s->claims))
		if (!str_eq(val_str(claim->val, status, phase), STR("Bound")))
			controller_add(c, object_key(&a, claim->val));
	INFORMER_EACH(volume, informer_each(s->volumes))
		if (!str_eq(val_str(volume->val, status, phase), STR("Bound")))
			controller_add(c, val_str(volume->val, metadata, name));
}

static int binder_run(struct controller *c, struct err *err)
{
	int r;

	while ((r = fiber_sleep_ms(RESYNC_MS, err)) == 0)
		look_again(c);
	return r;
}

static void binder_stop(struct controller *c) { free(c->state); }

static int binder_start(struct controller *c, struct err *err)
{
	struct binder *s = mem_zalloc(sizeof *s);

	(void)err;
	c->state = s;
	c->sync = binder_sync;
	c->run = binder_run;
	s->claims = controller_informer(c, TYPE(core_v1, PersistentVolumeClaim));
	s->volumes = controller_informer(c, TYPE(core_v1, PersistentVolume));
	s->classes = controller_informer(c, TYPE(storage_v1, StorageClass));
	s->pods = controller_informer(c, TYPE(core_v1, Pod));
	informer_index(s->claims, WAITING_INDEX, waiting_by_class);
	informer_index(s->pods, CLAIM_INDEX, pod_by_claim);
	controller_watch(c, s->claims, claim_changed);
	controller_watch(c, s->volumes, volume_changed);
	return 0;
}

const struct controller_kind controller_pv_binder = { .name = "persistentvolume-binder-controller", .start = binder_start, .workers = 2,
						      .stop = binder_stop, .account = "persistent-volume-binder",
						      .source = "persistentvolume-controller" };
