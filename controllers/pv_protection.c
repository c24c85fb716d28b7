/* Volumes that are bound stay until their claim is gone. A key is a volume's. */
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/protection.h"

static int protection_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct frozen *found = informer_get(c->state, key);

	if (!found)
		return 0;
	struct val volume = controller_hold(c, a, found);
	enum protection_step step = protection_plan(volume, STR(PV_PROTECTION), str_eq(val_str(volume, status, phase), STR("Bound")));
	if (step == PROTECTION_REST)
		return 0;
	struct val next = step == PROTECTION_ADD ? finalizer_put(a, volume, STR(PV_PROTECTION)) : finalizer_remove(a, volume, STR(PV_PROTECTION));
	int r = client_update(c->client, TYPE(core_v1, PersistentVolume), next, NULL, NULL, err);
	if (r == -ERR_NOT_FOUND)
		err_clear(err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static void volume_changed(struct controller *c, struct frozen *old, struct frozen *volume)
{
	if (volume && (val_has(volume->val, metadata, deletionTimestamp) || !finalizers_have(volume->val, STR(PV_PROTECTION))))
		controller_key_self(c, old, volume);
}

/* state is the informer of volumes. */
static int protection_start(struct controller *c, struct err *err)
{
	(void)err;
	c->state = controller_informer(c, TYPE(core_v1, PersistentVolume));
	c->sync = protection_sync;
	controller_watch(c, c->state, volume_changed);
	return 0;
}

const struct controller_kind controller_pv_protection = { .name = "persistentvolume-protection-controller", .start = protection_start, .workers = 1,
							  .account = "pv-protection-controller" };
