/* Every namespace that is not being deleted has a service account "default". Keys are namespaces. */
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"

static void namespace_keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	(void)old;
	if (object)
		controller_add(c, val_str(object->val, metadata, name));
}

static void account_keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	if (!object)
		controller_add(c, val_str(old->val, metadata, namespace));
}

static int sync_namespace(struct controller *c, struct arena *a, str key, struct err *err)
{
	const struct frozen *namespace = informer_get(controller_informer(c, TYPE(core_v1, Namespace)), key);
	if (!namespace || !str_eq(val_str(namespace->val, status, phase), STR("Active")) ||
	    informer_get(controller_informer(c, TYPE(core_v1, ServiceAccount)), arena_join(a, key, STR("/default"))))
		return 0;
	struct val account = OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT("default")), F(namespace, VAL_STR(key)))));
	int r = client_create(c->client, TYPE(core_v1, ServiceAccount), account, NULL, NULL, err);
	return r == -ERR_ALREADY_EXISTS || error_is_namespace_ending(err) ? 0 : r;
}

static int start(struct controller *c, struct err *err)
{
	(void)err;
	controller_watch(c, controller_informer(c, TYPE(core_v1, ServiceAccount)), account_keys);
	controller_watch(c, controller_informer(c, TYPE(core_v1, Namespace)), namespace_keys);
	c->sync = sync_namespace;
	return 0;
}

const struct controller_kind controller_service_account = {
	.name = "serviceaccount-controller", .start = start, .workers = 1, .account = "service-account-controller",
};
