/*
 * ServiceAccount: every pod acts as one. The account must exist; its token, the cluster's certificate and the name of
 * the namespace are mounted into each container that does not mount something there itself. An account can ask that its
 * pods use no secrets but those that it names.
 */
#include "apiserver/admission/plugins.h"
#include "apiserver/cache.h"
#include "base/fiber.h"
#include "base/map.h"
#include "codec/atoms.h"
#include "machinery/names.h"

#define TOKEN_PATH "/var/run/secrets/kubernetes.io/serviceaccount"
#define VOLUME_NAME "kube-api-access-"

/* Tokens live a little longer than the hour after which they are renewed, so that clocks may differ. */
enum { TOKEN_SECONDS = 3607, FILE_MODE = 0644 };

/* A new namespace's account "default" is made by a controller: so long is it waited for. */
enum { DEFAULT_WAIT_MS = 1000 };

/* ---- the token ---- */

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

/* ---- the account ---- */

struct arrival {
	struct cache_watcher watcher;
	struct fiber_cond arrived;
};

static void wake(struct cache_watcher *w) { fiber_cond_broadcast(&CONTAINER_OF(w, struct arrival, watcher)->arrived); }

/* (suspends) Waits a little for an object that somebody is about to make; *ret NULL: in vain. */
static int wait_for(struct request *q, struct kind *kind, str key, struct object **ret, struct err *err)
{
	struct arrival a = { .watcher.wake = wake };
	fiber_cond_init(&a.arrived, "a service account");
	int r = cache_watch_begin(kind, cache_revision(q->server->cache), &a.watcher, err);
	if (r < 0)
		return r;
	{
		DEADLINE_SCOPE(DEFAULT_WAIT_MS);
		while (!(*ret = cache_get(kind, key)) && !a.watcher.ended && r == 0) {
			while (cache_watch_next(&a.watcher))
				;
			r = fiber_cond_wait(&a.arrived, err);
		}
	}
	cache_watch_end(&a.watcher);
	return r == -ERR_TIMEOUT ? fiber_check(err) : r;
}

/* (suspends) The account of that name in the request's namespace, borrowed until the next wait. 403. */
static int find_account(struct request *q, str name, struct object **ret, struct err *err)
{
	str key = arena_printf(q->arena, STR_FMT "/" STR_FMT, STR_ARG(q->namespace), STR_ARG(name));
	int r = admission_find(q, STR(""), STR("serviceaccounts"), key, ret, err);
	if (r == 0 && !*ret && str_eq(name, STR("default")))
		r = wait_for(q, kinds_find(&q->server->kinds, STR(""), STR("serviceaccounts")), key, ret, err);
	if (r < 0 || *ret)
		return r;
	return admission_forbid(q, "error looking up service account " STR_FMT ": serviceaccount \"" STR_FMT "\" not found",
				STR_ARG(key), STR_ARG(name));
}

/* ---- secrets ---- */

typedef int refuse_fn(struct request *q, str why);

static int refuse_forbidden(struct request *q, str why) { return admission_forbid(q, STR_FMT, STR_ARG(why)); }

/* Kubernetes answers so for ephemeral containers, as for any error that has no status of its own. */
static int refuse_plain(struct request *q, str why)
{
	return request_fail_as(q, ERR_INTERNAL, 500, STR(""), VAL_EMPTY, STR_FMT, STR_ARG(why));
}

#define NOT_REFERENCED "is not allowed because service account " STR_FMT " does not reference that "

/* The names of a list of references; they live as long as the list. */
static void names_of(struct map *names, struct val list)
{
	VAL_EACH(ref, list)
		map_put(names, val_str(*ref, name), names);
}

static int check_containers(struct request *q, const struct map *secrets, str account, atom which, const char *sort,
			    refuse_fn *refuse)
{
	VAL_EACH(c, val_member(val_get(q->object, spec), which)) {
		str container = val_str(*c, name);
		VAL_EACH(env, val_get(*c, env)) {
			str secret = val_str(*env, valueFrom, secretKeyRef, name);
			if (val_has(*env, valueFrom, secretKeyRef) && !map_get(secrets, secret))
				return refuse(q, arena_printf(q->arena,
							      "%s " STR_FMT " with envVar " STR_FMT
							      " referencing secret.secretName=\"" STR_FMT "\" " NOT_REFERENCED "secret",
							      sort, STR_ARG(container), STR_ARG(val_str(*env, name)),
							      STR_ARG(secret), STR_ARG(account)));
		}
		VAL_EACH(from, val_get(*c, envFrom)) {
			str secret = val_str(*from, secretRef, name);
			if (val_has(*from, secretRef) && !map_get(secrets, secret))
				return refuse(q, arena_printf(q->arena,
							      "%s " STR_FMT " with envFrom referencing secret.secretName=\"" STR_FMT
							      "\" " NOT_REFERENCED "secret",
							      sort, STR_ARG(container), STR_ARG(secret), STR_ARG(account)));
		}
	}
	return 0;
}

static int check_volumes(struct request *q, const struct map *secrets, str account)
{
	VAL_EACH(v, val_get(q->object, spec, volumes)) {
		str secret = val_str(*v, secret, secretName);
		if (val_has(*v, secret) && !map_get(secrets, secret))
			return admission_forbid(q, "volume with secret.secretName=\"" STR_FMT "\" " NOT_REFERENCED "secret",
						STR_ARG(secret), STR_ARG(account));
	}
	return 0;
}

static int check_pull_secrets(struct request *q, struct val account)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	struct val list = val_get(q->object, spec, imagePullSecrets);
	names_of(&names, val_get(account, imagePullSecrets));
	for (size_t i = 0; i < val_len(list); i++)
		if (!map_get(&names, val_str(list.items[i], name)))
			return admission_forbid(q, "imagePullSecrets[%zu].name=\"" STR_FMT "\" " NOT_REFERENCED "imagePullSecret", i,
						STR_ARG(val_str(list.items[i], name)), STR_ARG(val_str(account, metadata, name)));
	return 0;
}

static bool limits_secrets(struct val account)
{
	static const str yes[] = { STR_INIT("1"), STR_INIT("t"), STR_INIT("T"), STR_INIT("true"), STR_INIT("TRUE"),
				   STR_INIT("True") };
	struct val wish = val_find(val_get(account, metadata, annotations), STR("kubernetes.io/enforce-mountable-secrets"));
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (val_exists(wish) && str_eq(val_as_str(wish), yes[i]))
			return true;
	return false;
}

static int check_secrets(struct request *q, struct val account, bool ephemeral)
{
	CLEANUP(map_done) struct map secrets = MAP_INIT;
	str name = val_str(account, metadata, name);
	int r;
	if (!limits_secrets(account))
		return 0;
	names_of(&secrets, val_get(account, secrets));
	if (ephemeral)
		return check_containers(q, &secrets, name, A_ephemeralContainers, "ephemeral container", refuse_plain);
	if ((r = check_volumes(q, &secrets, name)) < 0 ||
	    (r = check_containers(q, &secrets, name, A_initContainers, "init container", refuse_forbidden)) < 0 ||
	    (r = check_containers(q, &secrets, name, A_containers, "container", refuse_forbidden)) < 0)
		return r;
	return check_pull_secrets(q, account);
}

/* ---- mirror pods: what a kubelet runs by itself must not depend on the API ---- */

static bool volume_has_secret(struct val v)
{
	static const atom with_ref[] = { A_cephfs, A_cinder, A_flexVolume, A_rbd, A_scaleIO, A_iscsi, A_storageos };
	for (size_t i = 0; i < ARRAY_LEN(with_ref); i++)
		if (val_str(val_member(v, with_ref[i]), secretRef, name).n)
			return true;
	VAL_EACH(source, val_get(v, projected, sources))
		if (val_str(*source, secret, name).n)
			return true;
	return val_str(v, azureFile, secretName).n || val_str(v, secret, secretName).n ||
	       val_str(v, csi, nodePublishSecretRef, name).n;
}

static bool container_has_secret(struct val c)
{
	VAL_EACH(from, val_get(c, envFrom))
		if (val_str(*from, secretRef, name).n)
			return true;
	VAL_EACH(env, val_get(c, env))
		if (val_str(*env, valueFrom, secretKeyRef, name).n)
			return true;
	return false;
}

static bool has_secrets(struct val spec)
{
	struct val lists[] = { val_get(spec, initContainers), val_get(spec, containers), val_get(spec, ephemeralContainers) };
	VAL_EACH(ref, val_get(spec, imagePullSecrets))
		if (val_str(*ref, name).n)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			if (container_has_secret(*c))
				return true;
	VAL_EACH(v, val_get(spec, volumes))
		if (volume_has_secret(*v))
			return true;
	return false;
}

static int check_mirror(struct request *q)
{
	struct val spec = val_get(q->object, spec);
	if (val_str(spec, serviceAccountName).n)
		return admission_forbid(q, "a mirror pod may not reference service accounts");
	if (has_secrets(spec))
		return admission_forbid(q, "a mirror pod may not reference secrets");
	VAL_EACH(v, val_get(spec, volumes))
		VAL_EACH(source, val_get(*v, projected, sources))
			if (val_has(*source, serviceAccountToken))
				return admission_forbid(q, "a mirror pod may not use ServiceAccountToken volume projections");
	return 0;
}

/* ---- the plugin ---- */

static bool is_mirror(struct val pod)
{
	return val_exists(val_find(val_get(pod, metadata, annotations), STR("kubernetes.io/config.mirror")));
}

static int mutate(struct request *q, struct err *err)
{
	if (!admits(q, STR(""), STR("pods")) || q->current || !val_exists(q->object))
		return 0;
	if (is_mirror(q->object))
		return check_mirror(q);
	struct arena *a = q->arena;
	struct val pod = q->object;
	str name = val_str(pod, spec, serviceAccountName);
	if (!name.n)
		name = STR("default");
	struct object *account;
	int r = find_account(q, name, &account, err);
	if (r < 0)
		return r;
	pod = val_with(a, pod, val_of_str(name), spec, serviceAccountName);
	if (mounts_automatically(account->val, pod))
		pod = mount_token(a, pod);
	struct val secrets = val_get(account->val, imagePullSecrets);
	if (!val_len(val_get(pod, spec, imagePullSecrets)))
		pod = val_with(a, pod, val_len(secrets) ? val_copy(a, secrets) : VAL_EMPTY, spec, imagePullSecrets);
	q->object = pod;
	return check_secrets(q, account->val, false);
}

static int validate(struct request *q, struct err *err)
{
	bool ephemeral = str_eq(q->subresource, STR("ephemeralcontainers")) && val_exists(q->old);
	if (q->group.n || !str_eq(q->resource, STR("pods")) || !val_exists(q->object) ||
	    !(ephemeral || (!q->subresource.n && !val_exists(q->old))))
		return 0;
	if (!ephemeral && is_mirror(q->object))
		return check_mirror(q);
	str name = val_str(q->object, spec, serviceAccountName);
	if (!name.n)
		return admission_forbid(q, "no service account specified for pod " STR_FMT "/" STR_FMT, STR_ARG(q->namespace),
					STR_ARG(val_str(q->object, metadata, name)));
	struct object *account;
	int r = find_account(q, name, &account, err);
	return r < 0 ? r : check_secrets(q, account->val, ephemeral);
}

const struct admission_plugin admission_service_account = {
	.name = "ServiceAccount", .mutate = mutate, .validate = validate,
};
