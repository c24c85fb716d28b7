/*
 * OwnerReferencesPermissionEnforcement: an object that gets an owner goes when the owner goes, so only who may delete the
 * object may give it one; to block the owner's deletion takes the right to set the owner's finalizers.
 */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

static struct val owners_of(struct val object) { return val_get(object, metadata, ownerReferences); }

static bool changes_owners(const struct request *q)
{
	struct val was = owners_of(q->old), is = owners_of(q->object);
	return (val_len(was) || val_len(is)) && !val_equal(was, is);
}

/* (suspends) 0, or 403 with what the user lacks and why. */
static int need(struct request *q, const struct authz_attributes *what, const char *lacking)
{
	str reason = STR_NONE;
	struct err failed = ERR_INIT;
	int r = authz_decide(q->server, q->arena, what, &reason, &failed);
	if (r == AUTHZ_ALLOW)
		return 0;
	return admission_forbid(q, "%s: " STR_FMT ", " STR_FMT, lacking, STR_ARG(reason),
				STR_ARG(failed.code ? err_str(&failed) : STR("<nil>")));
}

static int need_delete(struct request *q)
{
	const struct authz_attributes what = {
		.user = &q->user, .verb = STR("delete"), .is_resource = true, .group = q->group, .version = q->version,
		.resource = q->resource, .subresource = q->subresource, .namespace = q->namespace, .name = q->name,
	};
	return need(q, &what, "cannot set an ownerRef on a resource you can't delete");
}

/* ---- references that block ---- */

/* It blocks now, and did not before. */
static bool blocks_newly(const struct request *q, struct val owner)
{
	bool blocked = false;
	VAL_EACH(was, owners_of(q->old))
		if (str_eq(val_str(*was, uid), val_str(owner, uid)))
			blocked = val_bool(*was, blockOwnerDeletion);
	return val_bool(owner, blockOwnerDeletion) && !blocked;
}

static bool may_finalize_anything(struct request *q)
{
	const struct authz_attributes what = {
		.user = &q->user, .verb = STR("update"), .is_resource = true, .group = STR("*"), .version = STR("*"),
		.resource = STR("*"), .subresource = STR("finalizers"), .name = STR("*"),
	};
	return authz_allows(q, &what);
}

static int need_finalizers(struct request *q, struct val owner)
{
	str version = val_str(owner, apiVersion), kind = val_str(owner, kind);
	const struct type *type = schema_kind(version, kind);
	const struct resource *resource = type ? schema_resource(type, STR_NONE) : NULL;
	if (!resource || !kinds_endpoint(&q->server->kinds, resource->group, resource->version, resource->name, STR_NONE))
		return admission_forbid(q, "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
					STR_FMT " Kind " STR_FMT ": no matches for kind \"" STR_FMT "\" in version \"" STR_FMT "\"",
					STR_ARG(version), STR_ARG(kind), STR_ARG(kind), STR_ARG(version));
	const struct authz_attributes what = {
		.user = &q->user, .verb = STR("update"), .is_resource = true, .group = resource->group,
		.version = resource->version, .resource = resource->name, .subresource = STR("finalizers"),
		.namespace = resource->flags & RESOURCE_NAMESPACED ? q->namespace : STR_NONE, .name = val_str(owner, name),
	};
	return need(q, &what, "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on");
}

static int validate(struct request *q, struct err *err)
{
	(void)err;
	enum admission_operation operation = admission_operation(q);
	bool pod_status = str_eq(q->resource, STR("pods")) && !q->group.n && str_eq(q->subresource, STR("status"));
	if ((operation != ADMISSION_CREATE && operation != ADMISSION_UPDATE) || pod_status || !changes_owners(q))
		return 0;
	int r = operation == ADMISSION_UPDATE ? need_delete(q) : 0;
	bool asked = false;
	VAL_EACH(owner, owners_of(q->object)) {
		if (r < 0 || !blocks_newly(q, *owner))
			continue;
		if (!asked && may_finalize_anything(q))
			return 0;
		asked = true;
		r = need_finalizers(q, *owner);
	}
	return r;
}

const struct admission_plugin admission_owner_references = {
	.name = "OwnerReferencesPermissionEnforcement", .optional = true, .validate = validate,
};
