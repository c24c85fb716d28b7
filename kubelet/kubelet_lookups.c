/* Other objects that pods refer to, from the API server. A kubelet on its own has none of them. */
#include "base/fiber.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/kubelet_priv.h"
#include "kubelet/trust_bundles.h"

/* ClusterTrustBundles: how long the first lookup waits for the first list; how large a list of resources may be. */
enum { BUNDLES_WAIT_MS = 10000, DISCOVERY_MAX = 1 << 20 };

/* What a fetched object needs beyond this call is copied into the arena of who asked. */
static int get(struct kubelet *k, const struct type *type, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *object = NULL;

	*ret = VAL_EMPTY;
	if (!k->client)
		return err_set(err, ERR_NOT_FOUND, "\"" STR_FMT "\" not found: this kubelet has no API server", STR_ARG(name));
	int r = client_get(k->client, type, namespace, name, &object, err);
	if (r >= 0)
		*ret = val_copy(a, object->val);
	return r;
}

static int config_map(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	struct kubelet *k = arg;
	return objects_get(k->objects, TYPE(core_v1, ConfigMap), a, namespace, name, ret, err);
}

static int secret(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	struct kubelet *k = arg;
	return objects_get(k->objects, TYPE(core_v1, Secret), a, namespace, name, ret, err);
}

static struct val services(void *arg, struct arena *a)
{
	struct kubelet *k = arg;
	struct val_builder b = val_builder(a);

	if (!k->services)
		return VAL_EMPTY_LIST;
	if (!informer_synced(k->services))
		return VAL_EMPTY;
	INFORMER_EACH(s, informer_each(k->services))
		val_add_item(&b, val_copy(a, s->val));
	return val_end_list(&b);
}

/* ---- for volumes ---- */

static int token(void *arg, struct arena *a, struct val pod, str audience, int64_t *life_s, str *ret_token, int64_t *ret_expiry_s,
		 struct err *err)
{
	struct kubelet *k = arg;
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	struct timestamp expiry;
	str account = val_str(pod, spec, serviceAccountName);
	struct val bound = OBJECT(a, F(kind, VAL_LIT("Pod")), F(apiVersion, VAL_LIT("v1")), F(name, val_get(pod, metadata, name)),
				  F(uid, val_get(pod, metadata, uid)));
	struct val spec = OBJECT(a, F(audiences, audience.n ? LIST(a, VAL_STR(audience)) : VAL_EMPTY), F(expirationSeconds, val_of_int(*life_s)),
				 F(boundObjectRef, bound));
	struct val request = OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(account)), F(namespace, val_get(pod, metadata, namespace)))),
				    F(spec, spec));
	int r;

	if (!k->client)
		return err_set(err, ERR_UNAVAILABLE, "cannot use TokenManager when kubelet is in standalone mode");
	r = client_create(k->client, TYPE(core_v1, ServiceAccount), request,
			  &(struct client_write_options){ .subresource = STR("token"), .reply = TYPE(authentication_v1, TokenRequest) }, &answer, err);
	if (r < 0)
		return r;
	*ret_token = arena_str(a, val_str(answer->val, status, token));
	*life_s = val_int(answer->val, spec, expirationSeconds);
	if ((r = time_parse(val_str(answer->val, status, expirationTimestamp), &expiry, err)) >= 0)
		*ret_expiry_s = expiry.seconds;
	return r;
}

static int claim(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	return get(arg, TYPE(core_v1, PersistentVolumeClaim), a, namespace, name, ret, err);
}

static int persistent(void *arg, struct arena *a, str name, struct val *ret, struct err *err)
{
	return get(arg, TYPE(core_v1, PersistentVolume), a, STR_NONE, name, ret, err);
}

/* ---- ClusterTrustBundles: followed once a pod has asked for them, if the API server has them at all ---- */

static void bundle_changed(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct kubelet *k = CONTAINER_OF(l, struct kubelet, bundles_listener);

	(void)old, (void)object;
	if (informer_synced(k->bundles))
		objects_touch_bundles(k->objects);
}

static void bundles_synced(struct informer_listener *l)
{
	fiber_cond_broadcast(&CONTAINER_OF(l, struct kubelet, bundles_listener)->bundles_synced);
}

/* 1: the API server has them in this version. */
static int has_bundles(struct kubelet *k, struct arena *a, const char *version, struct err *err)
{
	str text;
	int r = client_get_raw(k->client, a, arena_printf(a, "/apis/certificates.k8s.io/%s", version), DISCOVERY_MAX, &text, err);

	if (r == -ERR_NOT_FOUND)
		return 0;
	return r < 0 ? err_wrap(err, r, "failed to ensure informer manager for ClusterTrustBundles: failed to determine which informer manager to choose")
		     : str_find(text, STR("\"clustertrustbundles\"")) >= 0;
}

/* (suspends) */
static int follow_bundles(struct kubelet *k, struct arena *a, struct err *err)
{
	const struct { const char *version; const struct type *type; } known[] = {
		{ "v1beta1", TYPE(certificates_v1beta1, ClusterTrustBundle) }, { "v1alpha1", TYPE(certificates_v1alpha1, ClusterTrustBundle) } };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(known) && r == 0; i++) {
		r = has_bundles(k, a, known[i].version, err);
		if (r > 0 && !k->bundles) { /* another pod may have been faster */
			k->bundles = informers_get(k->informers, known[i].type, &(struct informer_options){ 0 });
			k->bundles_listener = (struct informer_listener){ .changed = bundle_changed, .synced = bundles_synced };
			informer_listen(k->bundles, &k->bundles_listener);
		}
	}
	if (r >= 0)
		k->bundles_sought = true;
	return r < 0 ? r : 0;
}

/* (suspends) */
static int wait_for_bundles(struct kubelet *k, struct err *err)
{
	struct err waited = ERR_INIT;
	{
		DEADLINE_SCOPE(BUNDLES_WAIT_MS);
		while (!informer_synced(k->bundles) && fiber_cond_wait(&k->bundles_synced, &waited) >= 0)
			;
	}
	int r = fiber_check(err);
	if (r >= 0 && !informer_synced(k->bundles))
		r = err_set(err, ERR_UNAVAILABLE, "ClusterTrustBundle informer has not yet synced");
	return r;
}

static int trust_bundle(void *arg, struct arena *a, struct val source, str *ret_pem, struct err *err)
{
	struct kubelet *k = arg;
	struct val_builder b = val_builder(a);
	bool wanted = k->client && config_gate(k->config, STR("ClusterTrustBundleProjection"));
	int r = wanted && !k->bundles_sought ? follow_bundles(k, a, err) : 0;

	if (r < 0)
		return r;
	if (!k->bundles)
		return err_set(err, ERR_INVALID, "ClusterTrustBundle projection is not supported in static kubelet mode");
	if ((r = wait_for_bundles(k, err)) < 0)
		return r;
	INFORMER_EACH(bundle, informer_each(k->bundles))
		val_add_item(&b, val_copy(a, bundle->val));
	return trust_bundle_pem(a, val_end_list(&b), source, ret_pem, err);
}

static struct val node_object(void *arg, struct arena *a)
{
	struct kubelet *k = arg;
	return k->node_keeper ? node_keeper_object(k->node_keeper, a) : VAL_EMPTY;
}

static bool recursive_readonly(void *arg, struct val pod)
{
	const struct kubelet *k = arg;

	(void)pod;
	return k->recursive_readonly;
}

/* What a pod refers to has changed: its volumes show it, and if it waits for that, it need not any longer. */
static void object_changed(void *arg, str uid, bool appeared)
{
	struct kubelet *k = arg;

	kubelet_refresh_volumes(k, uid);
	if (appeared)
		pods_poke(k->pods, uid);
}

void kubelet_lookups_make(struct kubelet *k)
{
	bool watch = str_eq(val_str(k->config, configMapAndSecretChangeDetectionStrategy), STR("Watch"));

	fiber_cond_init(&k->bundles_synced, "the first list of ClusterTrustBundles");
	k->objects = objects_new(&(struct objects_options){ .client = k->client, .no_watches = !watch, .changed = object_changed, .arg = k });
	k->lookups = (struct cri_lookups){ config_map, secret, services, k };
	k->volumes = volumes_new(&(struct volumes_options){ .node = &k->node, .lookups = k->lookups, .token = token, .claim = claim,
							    .persistent = persistent, .trust_bundle = trust_bundle, .node_object = node_object,
							    .recursive_readonly = recursive_readonly, .arg = k });
}
