/*
 * ServiceAccount: every pod acts as one. The account must exist; its token, the cluster's certificate and the name of
 * the namespace are mounted into each container that does not mount something there itself.
 */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"
#include "machinery/names.h"

#define TOKEN_PATH "/var/run/secrets/kubernetes.io/serviceaccount"
#define VOLUME_NAME "kube-api-access-"

/* Tokens live a little longer than the hour after which they are renewed, so that clocks may differ. */
enum { TOKEN_SECONDS = 3607, FILE_MODE = 0644 };

static struct val token_volume(struct arena *a, str name)
{
	struct val token = OBJECT(a, F(expirationSeconds, val_of_int(TOKEN_SECONDS)), F(path, VAL_LIT("token")));
	struct val ca_item = OBJECT(a, F(key, VAL_LIT("ca.crt")), F(path, VAL_LIT("ca.crt")));
	struct val ca = OBJECT(a, F(name, VAL_LIT("kube-root-ca.crt")), F(items, LIST(a, ca_item)));
	struct val ref = OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(fieldPath, VAL_LIT("metadata.namespace")));
	struct val downward = OBJECT(a, F(items, LIST(a, OBJECT(a, F(path, VAL_LIT("namespace")), F(fieldRef, ref)))));
	struct val sources = LIST(a, OBJECT(a, F(serviceAccountToken, token)), OBJECT(a, F(configMap, ca)),
				  OBJECT(a, F(downwardAPI, downward)));
	struct val projected = OBJECT(a, F(sources, sources), F(defaultMode, val_of_int(FILE_MODE)));
	return OBJECT(a, F(name, val_of_str(name)), F(projected, projected));
}

static bool mounts_token(struct val container)
{
	VAL_EACH(m, val_get(container, volumeMounts))
		if (str_eq(val_str(*m, mountPath), STR(TOKEN_PATH)))
			return true;
	return false;
}

/* The containers with the volume mounted; *ret_any when one of them was changed. */
static struct val mount_in(struct arena *a, struct val containers, struct val mount, bool *ret_any)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(c, containers) {
		bool has = mounts_token(*c);
		struct val mounts = val_get(*c, volumeMounts);
		*ret_any = *ret_any || !has;
		val_add_item(&b, has ? *c : val_with(a, *c, val_list_append(a, mounts, mount), volumeMounts));
	}
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

static struct val mount_token(struct arena *a, struct val pod)
{
	str name = STR_NONE;
	bool any = false;
	VAL_EACH(v, val_get(pod, spec, volumes))
		if (!name.n && str_starts(val_str(*v, name), STR(VOLUME_NAME)))
			name = val_str(*v, name);
	bool has_volume = name.n;
	if (!has_volume)
		name = name_generate(a, STR(VOLUME_NAME));
	struct val mount = OBJECT(a, F(name, val_of_str(name)), F(readOnly, val_of_bool(true)),
				  F(mountPath, VAL_LIT(TOKEN_PATH)));
	pod = val_with(a, pod, mount_in(a, val_get(pod, spec, initContainers), mount, &any), spec, initContainers);
	pod = val_with(a, pod, mount_in(a, val_get(pod, spec, containers), mount, &any), spec, containers);
	if (has_volume || !any)
		return pod;
	return val_with(a, pod, val_list_append(a, val_get(pod, spec, volumes), token_volume(a, name)), spec, volumes);
}

static bool mounts_automatically(struct val account, struct val pod)
{
	struct val wish = val_get(pod, spec, automountServiceAccountToken);
	if (!val_exists(wish))
		wish = val_get(account, automountServiceAccountToken);
	return !val_exists(wish) || val_as_bool(wish);
}

static int mutate(struct request *q, struct err *err)
{
	if (!admits(q, STR(""), STR("pods")) || q->current || !val_exists(q->object))
		return 0;
	struct arena *a = q->arena;
	struct val pod = q->object;
	str name = val_str(pod, spec, serviceAccountName);
	if (val_exists(val_find(val_get(pod, metadata, annotations), STR("kubernetes.io/config.mirror"))))
		return name.n ? admission_forbid(q, "a mirror pod may not reference service accounts") : 0;
	if (!name.n)
		name = STR("default");
	str key = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(q->namespace), STR_ARG(name));
	struct object *account;
	int r = admission_find(q, STR(""), STR("serviceaccounts"), key, &account, err);
	if (r < 0)
		return r;
	if (!account)
		return admission_forbid(q,
					"error looking up service account " STR_FMT ": serviceaccount \"" STR_FMT "\" not found",
					STR_ARG(key), STR_ARG(name));
	pod = val_with(a, pod, val_of_str(name), spec, serviceAccountName);
	if (mounts_automatically(account->val, pod))
		pod = mount_token(a, pod);
	struct val secrets = val_get(account->val, imagePullSecrets);
	if (!val_len(val_get(pod, spec, imagePullSecrets)))
		pod = val_with(a, pod, val_len(secrets) ? val_copy(a, secrets) : VAL_EMPTY, spec, imagePullSecrets);
	q->object = pod;
	return 0;
}

const struct admission_plugin admission_service_account = { .name = "ServiceAccount", .mutate = mutate };
