/* Other objects that pods refer to, from the API server. A kubelet on its own has none of them. */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/kubelet_priv.h"

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
	return get(arg, TYPE(core_v1, ConfigMap), a, namespace, name, ret, err);
}

static int secret(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	return get(arg, TYPE(core_v1, Secret), a, namespace, name, ret, err);
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

static int token(void *arg, struct arena *a, struct val pod, str audience, int64_t seconds, str *ret_token, int64_t *ret_expiry_s,
		 struct err *err)
{
	struct kubelet *k = arg;
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	struct timestamp expiry;
	str account = val_str(pod, spec, serviceAccountName);
	struct val bound = OBJECT(a, F(kind, VAL_LIT("Pod")), F(apiVersion, VAL_LIT("v1")), F(name, val_get(pod, metadata, name)),
				  F(uid, val_get(pod, metadata, uid)));
	struct val spec = OBJECT(a, F(audiences, audience.n ? LIST(a, VAL_STR(audience)) : VAL_EMPTY), F(expirationSeconds, val_of_int(seconds)),
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

static int trust_bundle(void *arg, struct arena *a, struct val source, str *ret_pem, struct err *err)
{
	struct val bundle;
	int r = get(arg, TYPE(certificates_v1beta1, ClusterTrustBundle), a, STR_NONE, val_str(source, name), &bundle, err);

	if (r >= 0)
		*ret_pem = val_str(bundle, spec, trustBundle);
	return r;
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

void kubelet_lookups_make(struct kubelet *k)
{
	k->lookups = (struct cri_lookups){ config_map, secret, services, k };
	k->volumes = volumes_new(&(struct volumes_options){ .node = &k->node, .lookups = k->lookups, .token = token, .claim = claim,
							    .persistent = persistent, .trust_bundle = trust_bundle, .node_object = node_object,
							    .recursive_readonly = recursive_readonly, .arg = k });
}
