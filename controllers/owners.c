#include "controllers/owners.h"

#include "codec/atoms.h"
#include "controllers/owner.h"
#include "machinery/conditions.h"
#include "machinery/selector.h"

struct frozen *owner_of(const struct owners *o, struct val object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val ref = owner_controller(object);

	if (!val_exists(ref) || !str_eq(val_str(ref, kind), str_of(o->kind)))
		return NULL;
	str namespace = val_str(object, metadata, namespace), name = val_str(ref, name);
	struct frozen *owner = informer_get(o->all, arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)));
	return owner && str_eq(val_str(owner->val, metadata, uid), val_str(ref, uid)) ? owner : NULL;
}

void owners_add_adopters(struct controller *c, const struct owners *o, struct val object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val labels = val_get(object, metadata, labels);

	if (!val_len(labels))
		return;
	INFORMER_EACH(owner, informer_each_indexed(o->all, "namespace", val_str(object, metadata, namespace))) {
		struct selector selector;
		struct val wanted = o->selector ? o->selector(&a, owner->val) : val_get(owner->val, spec, selector);
		if (selector_of_object(&a, wanted, &selector, NULL) == 0 && !selector_is_everything(&selector) && selector_matches(&selector, labels))
			controller_add_after(c, object_key(&a, owner->val), o->delay_ms);
	}
}

static bool is_other(struct frozen *old, struct frozen *object)
{
	return !str_eq(val_str(old->val, metadata, uid), val_str(object->val, metadata, uid));
}

static void pod_gone(struct controller *c, const struct owners *o, struct arena *a, struct val pod)
{
	struct frozen *owner = owner_of(o, pod);

	if (!owner)
		return;
	str key = object_key(a, owner->val);
	expectations_deleted(o->expectations, key, object_key(a, pod));
	controller_add(c, key);
}

static void pod_new(struct controller *c, const struct owners *o, struct arena *a, struct val pod)
{
	struct frozen *owner = owner_of(o, pod);

	if (owner) {
		str key = object_key(a, owner->val);
		expectations_created(o->expectations, key); /* also one that was deleted before it was seen */
		controller_add(c, key);
	}
	if (val_has(pod, metadata, deletionTimestamp))
		pod_gone(c, o, a, pod);
	else if (!val_exists(owner_controller(pod)))
		owners_add_adopters(c, o, pod);
}

static void pod_changed(struct controller *c, const struct owners *o, struct arena *a, struct val old, struct val pod)
{
	bool relabeled = !val_equal(val_get(old, metadata, labels), val_get(pod, metadata, labels));
	bool moved = !val_equal(owner_controller(old), owner_controller(pod));
	struct frozen *before = moved ? owner_of(o, old) : NULL, *owner = owner_of(o, pod);

	if (val_has(pod, metadata, deletionTimestamp)) {
		pod_gone(c, o, a, pod);
		if (relabeled || moved)
			pod_gone(c, o, a, old);
		return;
	}
	if (before)
		controller_add(c, object_key(a, before->val));
	if (owner) {
		str key = object_key(a, owner->val);
		int64_t min_ready_s = val_int(owner->val, spec, minReadySeconds);
		controller_add(c, key);
		if (min_ready_s > 0 && !pod_is_ready(old) && pod_is_ready(pod))
			controller_add_after(c, key, min_ready_s * 1000 + o->available_ms);
	} else if ((relabeled || moved) && !val_exists(owner_controller(pod))) {
		owners_add_adopters(c, o, pod);
	}
}

void owners_pod_changed(struct controller *c, const struct owners *o, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (old && (!object || is_other(old, object)))
		pod_gone(c, o, &a, old->val);
	if (object && (!old || is_other(old, object)))
		pod_new(c, o, &a, object->val);
	else if (object && object != old)
		pod_changed(c, o, &a, old->val, object->val);
}

void owners_changed(struct controller *c, const struct owners *o, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str key = object_key(&a, (object ? object : old)->val);

	/* Another one of that name begins anew. */
	if (old && (!object || is_other(old, object)))
		expectations_forget(o->expectations, key);
	controller_add(c, key);
}
