/* Finished Jobs are deleted, with all that they own, when spec.ttlSecondsAfterFinished has passed. */
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/moment.h"
#include "controllers/ttl_after_finished_plan.h"

/* Whether it is time; else the key comes back then. */
static int is_due(struct controller *c, str key, struct val job, struct err *err)
{
	int64_t left;
	int r = ttl_left(job, clock_wall_ns(), &left, err);

	if (r <= 0)
		return r;
	if (left <= 0)
		return 1;
	controller_add_after(c, key, moment_wait_ms(left));
	return 0;
}

static int ttl_sync(struct controller *c, struct arena *a, str key, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *fresh = NULL;
	struct frozen *job = informer_get(c->state, key);
	str namespace, name;

	(void)a;
	int r = job ? is_due(c, key, job->val, err) : 0;
	if (r <= 0)
		return r;
	/* The limit may have been changed a moment ago: the stored object decides. */
	str_cut(key, '/', &namespace, &name);
	if ((r = client_get(c->client, TYPE(batch_v1, Job), namespace, name, &fresh, err)) < 0)
		return r == -ERR_NOT_FOUND ? 0 : r;
	if ((r = is_due(c, key, fresh->val, err)) <= 0)
		return r;
	const struct client_delete_options o = { .grace_s = -1, .uid = val_str(fresh->val, metadata, uid), .propagation = STR("Foreground") };
	r = client_delete(c->client, TYPE(batch_v1, Job), namespace, name, &o, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int ttl_start(struct controller *c, struct err *err)
{
	(void)err;
	c->state = controller_informer(c, TYPE(batch_v1, Job));
	c->sync = ttl_sync;
	controller_watch(c, c->state, controller_key_self);
	return 0;
}

const struct controller_kind controller_ttl_after_finished = { .name = "ttl-after-finished-controller", .start = ttl_start, .workers = 5 };
