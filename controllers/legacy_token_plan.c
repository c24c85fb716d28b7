#include "controllers/legacy_token_plan.h"

#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "controllers/moment.h"

#define DAY_NS (24 * 3600 * NS_PER_S)

enum { DATE_BYTES = 10 };

static bool date_of(str text, int64_t *ret_ns)
{
	char buf[32];
	struct timestamp t;
	if (text.n != DATE_BYTES)
		return false;
	memcpy(buf, text.p, text.n);
	memcpy(buf + text.n, "T00:00:00Z", sizeof "T00:00:00Z");
	if (time_parse(str_of(buf), &t, NULL) < 0)
		return false;
	*ret_ns = t.seconds * NS_PER_S;
	return true;
}

str legacy_token_date(struct arena *a, int64_t ns) { return str_head(val_as_str(moment_time(a, ns)), DATE_BYTES); }

bool legacy_token_is_tracked(str since, int64_t unused_ns, int64_t now_ns)
{
	int64_t ns;
	/* Another server may have been a day behind. */
	return date_of(since, &ns) && now_ns >= ns + DAY_NS + unused_ns;
}

static str label(struct val secret, const char *key) { return val_as_str(val_find(val_get(secret, metadata, labels), str_of(key))); }

/* Those that are listed there were made by Kubernetes, not by somebody who wanted one. */
static bool refers_to(struct val account, str secret)
{
	VAL_EACH(ref, val_get(account, secrets))
		if (str_eq(val_str(*ref, name), secret))
			return true;
	return false;
}

enum legacy_token_what legacy_token_judge(struct val secret, struct val account, int64_t unused_ns, int64_t now_ns)
{
	int64_t limit = now_ns - unused_ns, day_limit = limit - limit % DAY_NS, used, invalid;
	str last_used = label(secret, "kubernetes.io/legacy-token-last-used");
	if (!str_eq(val_str(secret, type), STR("kubernetes.io/service-account-token")) || val_has(secret, metadata, deletionTimestamp) ||
	    moment_of(val_get(secret, metadata, creationTimestamp)) >= limit)
		return LEGACY_TOKEN_STAYS;
	if (last_used.n && (!date_of(last_used, &used) || used >= day_limit))
		return LEGACY_TOKEN_STAYS;
	if (!refers_to(account, val_str(secret, metadata, name)))
		return LEGACY_TOKEN_STAYS;
	if (!date_of(label(secret, LEGACY_TOKEN_INVALID_SINCE), &invalid))
		return LEGACY_TOKEN_ASKS;
	return invalid >= day_limit ? LEGACY_TOKEN_STAYS : LEGACY_TOKEN_GOES;
}

/* ---- pods ---- */

static bool names(struct val reference, str secret) { return str_eq(val_str(reference, name), secret); }

static bool volume_names(struct val volume, str secret)
{
	const struct val references[] = {
		val_get(volume, azureFile), val_get(volume, secret), val_get(volume, cephfs, secretRef), val_get(volume, cinder, secretRef),
		val_get(volume, flexVolume, secretRef), val_get(volume, rbd, secretRef), val_get(volume, scaleIO, secretRef),
		val_get(volume, iscsi, secretRef), val_get(volume, storageos, secretRef), val_get(volume, csi, nodePublishSecretRef),
	};
	for (size_t i = 0; i < ARRAY_LEN(references); i++)
		if (names(references[i], secret) || str_eq(val_str(references[i], secretName), secret))
			return true;
	VAL_EACH(source, val_get(volume, projected, sources))
		if (names(val_get(*source, secret), secret))
			return true;
	return false;
}

static bool container_names(struct val container, str secret)
{
	VAL_EACH(from, val_get(container, envFrom))
		if (names(val_get(*from, secretRef), secret))
			return true;
	VAL_EACH(e, val_get(container, env))
		if (names(val_get(*e, valueFrom, secretKeyRef), secret))
			return true;
	return false;
}

bool legacy_token_is_used(struct val pod, str secret)
{
	struct val spec = val_get(pod, spec);
	const struct val containers[] = { val_get(spec, initContainers), val_get(spec, containers), val_get(spec, ephemeralContainers) };
	VAL_EACH(ref, val_get(spec, imagePullSecrets))
		if (names(*ref, secret))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(containers); i++)
		VAL_EACH(c, containers[i])
			if (container_names(*c, secret))
				return true;
	VAL_EACH(v, val_get(spec, volumes))
		if (volume_names(*v, secret))
			return true;
	return false;
}
