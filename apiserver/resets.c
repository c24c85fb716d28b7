/* The fields that endpoints reset, one row per endpoint that differs from the rule of thumb. */
#include "apiserver/resets.h"

#include "apiserver/apiserver.h"
#include "apiserver/meta.h"

struct rule {
	str resource, subresource;
	const char *const *fields;
};

static const char *const status_fields[] = { "status", NULL };
static const char *const spec_fields[] = { "spec", NULL };
static const char *const all_but_status[] = { "metadata", "spec", NULL };

/* What differs from the rule of thumb: the resource resets status, its status endpoint resets spec. */
static const struct rule rules[] = {
	{ STR_INIT("apiservices"), STR_INIT("status"), all_but_status },
	{ STR_INIT("certificatesigningrequests"), STR_INIT(""), (const char *const[]){ "spec", "status", NULL } },
	{ STR_INIT("certificatesigningrequests"), STR_INIT("approval"),
	  (const char *const[]){ "spec", "status.certificate", NULL } },
	{ STR_INIT("certificatesigningrequests"), STR_INIT("status"),
	  (const char *const[]){ "spec", "status.conditions", NULL } },
	{ STR_INIT("customresourcedefinitions"), STR_INIT("status"), all_but_status },
	{ STR_INIT("deployments"), STR_INIT("status"), (const char *const[]){ "spec", "metadata.labels", NULL } },
	{ STR_INIT("devicetaintrules"), STR_INIT("status"), all_but_status },
	{ STR_INIT("flowschemas"), STR_INIT("status"), all_but_status },
	{ STR_INIT("namespaces"), STR_INIT("finalize"), status_fields },
	{ STR_INIT("podgroups"), STR_INIT("status"), all_but_status },
	{ STR_INIT("pods"), STR_INIT("status"),
	  (const char *const[]){ "spec", "metadata.deletionTimestamp", "metadata.ownerReferences", NULL } },
	{ STR_INIT("prioritylevelconfigurations"), STR_INIT("status"), all_but_status },
	{ STR_INIT("resourceclaims"), STR_INIT("status"), all_but_status },
	{ STR_INIT("resourcepoolstatusrequests"), STR_INIT("status"), all_but_status },
	{ STR_INIT("servicecidrs"), STR_INIT("status"), all_but_status },
	{ STR_INIT("storageversionmigrations"), STR_INIT("status"), all_but_status },
	{ STR_INIT("storageversions"), STR_INIT("status"), all_but_status },
	{ STR_INIT("validatingadmissionpolicies"), STR_INIT("status"), all_but_status },
	{ STR_INIT("volumeattachments"), STR_INIT("status"), all_but_status },
};

static struct rule rule_of(const struct request *q, const struct endpoint *e)
{
	const struct resource *main = e->main->resource;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (str_eq(rules[i].resource, main->name) && str_eq(rules[i].subresource, e->subresource))
			return rules[i];
	if (str_eq(e->subresource, STR("status")))
		return (struct rule){ .fields = spec_fields };
	bool has_status = kinds_endpoint(&q->server->kinds, main->group, main->version, main->name, STR("status"));
	return (struct rule){ .fields = !e->subresource.n && has_status ? status_fields : NULL };
}

/* One row per version that the object has on its way: the endpoint's, and the hub's. */
static size_t resets_of(struct request *q, const struct endpoint *e, struct apply_reset **ret)
{
	struct rule rule = rule_of(q, e);
	if (!rule.fields)
		return 0;
	const struct type *types[] = { e->type, e->kind ? e->kind->hub : e->type };
	size_t n = types[0] == types[1] ? 1 : 2;
	*ret = ARENA_ARRAY(q->arena, struct apply_reset, n);
	for (size_t i = 0; i < n; i++)
		(*ret)[i] = (struct apply_reset){ .api_version = type_api_version(q->arena, types[i]), .fields = rule.fields };
	return n;
}

struct apply_request apply_request_of(struct request *q, const struct endpoint *e, const struct type *type, str manager)
{
	struct apply_reset *resets = NULL;
	size_t n = resets_of(q, e, &resets);
	return (struct apply_request){
		.type = type,
		.api_version = type_api_version(q->arena, type),
		.kind = type->name,
		.subresource = e->subresource,
		.manager = manager,
		.now = meta_timestamp(q),
		.resets = resets,
		.n_resets = n,
	};
}
