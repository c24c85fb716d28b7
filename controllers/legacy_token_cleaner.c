/*
 * Tokens of service accounts that Kubernetes made by itself long ago: those that nobody has used for a year (or what the flag says) are marked
 * as invalid, and deleted when as much later nobody has missed them. Once a day.
 */
#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/legacy_token_plan.h"

enum { PERIOD_MS = 24 * 3600 * 1000, YEAR_S = 365 * 24 * 3600 };

#define TRACKING "kube-apiserver-legacy-service-account-token-tracking"

static int64_t unused_ns(const struct controller *c) { return (c->o->legacy_token_s ? c->o->legacy_token_s : YEAR_S) * NS_PER_S; }

/* (suspends) Whether the server notes uses for long enough. */
static int is_tracked(struct controller *c, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *map = NULL;
	int r = client_get(c->client, TYPE(core_v1, ConfigMap), STR("kube-system"), STR(TRACKING), &map, err);
	return r < 0 ? r : legacy_token_is_tracked(val_as_str(val_find(val_get(map->val, data), STR("since"))), unused_ns(c), clock_wall_ns());
}

static struct val account_of(struct controller *c, struct arena *a, struct val secret)
{
	struct val notes = val_get(secret, metadata, annotations);
	str name = val_as_str(val_find(notes, STR("kubernetes.io/service-account.name")));
	str uid = val_as_str(val_find(notes, STR("kubernetes.io/service-account.uid")));
	str key = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(val_str(secret, metadata, namespace)), STR_ARG(name));
	struct frozen *account = name.n ? informer_get(controller_informer(c, TYPE(core_v1, ServiceAccount)), key) : NULL;
	return account && (!uid.n || str_eq(uid, val_str(account->val, metadata, uid))) ? account->val : VAL_EMPTY;
}

static bool is_mounted(struct controller *c, struct val secret)
{
	bool used = false;
	struct informer *pods = controller_informer(c, TYPE(core_v1, Pod));
	INFORMER_EACH(pod, informer_each_indexed(pods, "namespace", val_str(secret, metadata, namespace)))
		used |= legacy_token_is_used(pod->val, val_str(secret, metadata, name));
	return used;
}

/* (suspends) */
static int clean_one(struct controller *c, struct arena *a, struct val secret, struct err *err)
{
	str namespace = val_str(secret, metadata, namespace), name = val_str(secret, metadata, name);
	const struct client_delete_options o = { .grace_s = -1, .revision = val_str(secret, metadata, resourceVersion) };
	enum legacy_token_what what = legacy_token_judge(secret, account_of(c, a, secret), unused_ns(c), clock_wall_ns());
	if (what == LEGACY_TOKEN_STAYS || is_mounted(c, secret))
		return 0;
	log_info(what == LEGACY_TOKEN_GOES ? "deleting a legacy service account token" : "marking a legacy service account token as invalid",
		 KV("namespace", namespace), KV("secret", name));
	if (what == LEGACY_TOKEN_GOES) {
		int r = client_delete(c->client, TYPE(core_v1, Secret), namespace, name, &o, err);
		return r == -ERR_NOT_FOUND || r == -ERR_CONFLICT ? 0 : r;
	}
	struct val date = VAL_STR(legacy_token_date(a, clock_wall_ns()));
	struct val labels = val_put(a, VAL_EMPTY_OBJECT, atom_make(a, STR(LEGACY_TOKEN_INVALID_SINCE)), date);
	struct val patch = OBJECT(a, F(metadata, OBJECT(a, F(uid, val_get(secret, metadata, uid)), F(labels, labels))));
	return client_patch(c->client, TYPE(core_v1, Secret), namespace, name, CLIENT_PATCH_MERGE, patch, NULL, NULL, err);
}

/* (suspends) Only a cancel is an error. */
static int clean(struct controller *c, struct err *err)
{
	struct err why = ERR_INIT;
	int r = is_tracked(c, &why);
	if (r < 0 && r != -ERR_CANCELED)
		log_warn("legacy tokens: getting latest possible tracked_since time", KV("err", &why));
	if (r <= 0)
		return r == -ERR_CANCELED ? err_set(err, why.code, "%s", why.msg) : 0;
	INFORMER_EACH(secret, informer_each(controller_informer(c, TYPE(core_v1, Secret)))) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		err_clear(&why);
		r = clean_one(c, &a, secret->val, &why);
		if (r == -ERR_CANCELED)
			return err_set(err, why.code, "%s", why.msg);
		if (r < 0)
			log_warn("legacy tokens", KV("err", &why));
	}
	return 0;
}

static int run(struct controller *c, struct err *err)
{
	for (;;) {
		int r = clean(c, err);
		if (r < 0 || (r = fiber_sleep_ms(PERIOD_MS, err)) < 0)
			return r;
	}
}

static int start(struct controller *c, struct err *err)
{
	(void)err;
	(void)controller_informer(c, TYPE(core_v1, Secret));
	(void)controller_informer(c, TYPE(core_v1, ServiceAccount));
	informer_index(controller_informer(c, TYPE(core_v1, Pod)), "namespace", informer_by_namespace);
	c->run = run;
	return 0;
}

const struct controller_kind controller_legacy_token_cleaner = {
	.name = "legacy-serviceaccount-token-cleaner-controller", .start = start, .account = "legacy-service-account-token-cleaner",
};
