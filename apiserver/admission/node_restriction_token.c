/*
 * NodeRestriction of tokens: a node gets a token of a service account only for a pod that runs on it, and only for an
 * audience that the pod asks for by a volume of its own or by a CSI driver of one of its volumes, or that somebody has
 * granted.
 */
#include "apiserver/admission/node_restriction.h"
#include "apiserver/authz/node_graph.h"
#include "apiserver/cache.h"
#include "codec/atoms.h"

/* ---- audiences of a pod ---- */

struct search {
	struct request *q;
	struct val pod;               /* in the arena */
	str audience;
	str errors;                   /* what could not be found, with ", " between */
	size_t n_errors;
};

static struct val find(struct search *s, str group, str resource, const char *singular, str namespace, str name)
{
	struct arena *a = s->q->arena;
	str key = namespace.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)) : name;
	struct object *o = cache_get(kinds_find(&s->q->server->kinds, group, resource), key);
	if (o)
		return o->val;
	str dot = group.n ? STR(".") : STR_NONE;
	str missing = arena_printf(a, "%s" STR_FMT STR_FMT " \"" STR_FMT "\" not found", singular, STR_ARG(dot), STR_ARG(group),
				   STR_ARG(name));
	if (!s->n_errors || str_find(s->errors, missing) < 0) {
		s->errors = s->n_errors ? arena_printf(a, STR_FMT ", " STR_FMT, STR_ARG(s->errors), STR_ARG(missing)) : missing;
		s->n_errors++;
	}
	return VAL_EMPTY;
}

/* The driver of a source that says so, or that has become the business of one. */
static str driver_of(struct val source)
{
	static const struct {
		atom source;
		str driver;
	} migrated[] = {
		{ A_gcePersistentDisk, STR_INIT("pd.csi.storage.gke.io") },
		{ A_awsElasticBlockStore, STR_INIT("ebs.csi.aws.com") },
		{ A_cinder, STR_INIT("cinder.csi.openstack.org") },
		{ A_azureDisk, STR_INIT("disk.csi.azure.com") },
		{ A_azureFile, STR_INIT("file.csi.azure.com") },
		{ A_vsphereVolume, STR_INIT("csi.vsphere.vmware.com") },
		{ A_portworxVolume, STR_INIT("pxd.portworx.com") },
	};
	if (val_has(source, csi))
		return val_str(source, csi, driver);
	for (size_t i = 0; i < ARRAY_LEN(migrated); i++)
		if (val_exists(val_member(source, migrated[i].source)))
			return migrated[i].driver;
	return STR_NONE;
}

static str driver_of_claim(struct search *s, str claim_name)
{
	struct val claim = find(s, STR_NONE, STR("persistentvolumeclaims"), "persistentvolumeclaim", s->q->namespace, claim_name);
	if (!val_exists(claim))
		return STR_NONE;
	struct val volume = find(s, STR_NONE, STR("persistentvolumes"), "persistentvolume", STR_NONE,
				 val_str(claim, spec, volumeName));
	return driver_of(val_get(volume, spec));
}

static bool driver_asks(struct search *s, str name)
{
	struct val driver = find(s, STR("storage.k8s.io"), STR("csidrivers"), "csidriver", STR_NONE, name);
	VAL_EACH(request, val_get(driver, spec, tokenRequests))
		if (str_eq(val_str(*request, audience), s->audience))
			return true;
	return false;
}

static bool volume_asks(struct search *s, struct val volume)
{
	VAL_EACH(source, val_get(volume, projected, sources))
		if (val_has(*source, serviceAccountToken) &&
		    str_eq(val_str(*source, serviceAccountToken, audience), s->audience))
			return true;
	str driver;
	if (val_has(volume, ephemeral, volumeClaimTemplate))
		driver = driver_of_claim(s, pod_ephemeral_claim(s->q->arena, s->pod, volume));
	else if (val_has(volume, persistentVolumeClaim))
		driver = driver_of_claim(s, val_str(volume, persistentVolumeClaim, claimName));
	else
		driver = driver_of(volume);
	return driver.n && driver_asks(s, driver);
}

static int check_audience(struct request *q, struct val token, struct val pod)
{
	struct val audiences = val_get(token, spec, audiences);
	if (val_len(audiences) > 1)
		return admission_forbid(q, "node may only request 0 or 1 audiences");
	struct search s = { .q = q, .pod = pod, .audience = val_as_str(val_at(audiences, 0)) };
	VAL_EACH(volume, val_get(pod, spec, volumes))
		if (volume_asks(&s, *volume))
			return 0;
	str quoted = admission_quoted(q, s.audience), reason;
	if (s.n_errors)
		return admission_forbid(q, "error validating audience " STR_FMT ": %s" STR_FMT "%s", STR_ARG(quoted),
					s.n_errors > 1 ? "[" : "", STR_ARG(s.errors), s.n_errors > 1 ? "]" : "");
	const struct authz_attributes what = {
		.user = &q->user, .verb = STR("request-serviceaccounts-token-audience"), .is_resource = true, .version = STR("v1"),
		.resource = s.audience, .namespace = q->namespace, .name = q->name,
	};
	struct err failed = ERR_INIT;
	int r = authz_decide(q->server, q->arena, &what, &reason, &failed);
	if (r == AUTHZ_ALLOW)
		return 0;
	if (failed.code)
		return admission_forbid(q, "audience " STR_FMT " not found in pod spec volume, error authorizing " STR_FMT
					   " to request tokens for this audience: " STR_FMT,
					STR_ARG(quoted), STR_ARG(q->user.name), STR_ARG(err_str(&failed)));
	return admission_forbid(q, "audience " STR_FMT " not found in pod spec volume, " STR_FMT
				   " is not authorized to request tokens for this audience",
				STR_ARG(quoted), STR_ARG(q->user.name));
}

/* ---- what a token is bound to ---- */

int node_restrict_token(struct request *q, str node, struct err *err)
{
	struct val token = q->object, ref = val_get(token, spec, boundObjectRef);
	str name = val_str(ref, name), uid = val_str(ref, uid);
	if (admission_operation(q) != ADMISSION_CREATE || !str_eq(q->subresource, STR("token")))
		return 0;
	if (!str_eq(val_str(ref, apiVersion), STR("v1")) || !str_eq(val_str(ref, kind), STR("Pod")) || !name.n)
		return admission_forbid(q, "node requested token not bound to a pod");
	if (!uid.n)
		return admission_forbid(q, "node requested token with a pod binding without a uid");
	struct object *o;
	str key = arena_printf(q->arena, STR_FMT "/" STR_FMT, STR_ARG(q->namespace), STR_ARG(name));
	int r = admission_find(q, STR_NONE, STR("pods"), key, &o, err);
	if (r < 0)
		return r;
	if (!o)
		return fail_not_found(q, STR_NONE, STR("pod"), name);
	if (!str_eq(val_str(o->val, metadata, uid), uid))
		return admission_forbid(q, "the UID in the bound object reference (" STR_FMT
					   ") does not match the UID in record. The object might have been deleted and then recreated",
					STR_ARG(uid));
	if (!str_eq(val_str(o->val, spec, nodeName), node))
		return admission_forbid(q, "node requested token bound to a pod scheduled on a different node");
	return check_audience(q, token, val_copy(q->arena, o->val));
}
