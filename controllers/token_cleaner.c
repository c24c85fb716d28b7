/* Bootstrap tokens that have ended are deleted. */
#include "base/clock.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/bootstrap_token.h"
#include "controllers/controller.h"
#include "controllers/moment.h"

static void keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	if (object && bootstrap_token_is(object->val))
		controller_key_self(c, old, object);
}

static int sync_secret(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct frozen *object = informer_get(controller_informer(c, TYPE(core_v1, Secret)), key);
	if (!object || !bootstrap_token_is(object->val))
		return 0;
	struct val secret = controller_hold(c, a, object);
	int64_t left_ns = bootstrap_token_left_ns(a, secret, clock_wall_ns());
	if (left_ns == INT64_MAX)
		return 0;
	if (left_ns > 0) {
		controller_add_after(c, key, moment_wait_ms(left_ns));
		return 0;
	}
	const struct client_delete_options o = { .grace_s = -1, .uid = val_str(secret, metadata, uid) };
	log_info("deleting expired bootstrap token", KV("secret", key));
	int r = client_delete(c->client, TYPE(core_v1, Secret), val_str(secret, metadata, namespace), val_str(secret, metadata, name), &o, err);
	return r == -ERR_NOT_FOUND || r == -ERR_CONFLICT ? 0 : r;
}

static int start(struct controller *c, struct err *err)
{
	(void)err;
	controller_watch(c, controller_informer(c, TYPE(core_v1, Secret)), keys);
	c->sync = sync_secret;
	return 0;
}

const struct controller_kind controller_token_cleaner = {
	.name = "token-cleaner-controller", .start = start, .workers = 1, .off = true, .account = "token-cleaner",
};
