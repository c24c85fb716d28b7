/* Access to devices that are in use, for those who look after them: only in namespaces that are labelled for it. */
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/write.h"
#include "codec/atoms.h"

#define LABEL "resource.kubernetes.io/admin-access"

static void require_label(struct request *q, const struct field_path *at, struct field_errors *e)
{
	struct object *namespace = cache_get(kinds_find(&q->server->kinds, STR(""), STR("namespaces")), q->namespace);
	struct val labels = namespace ? val_get(namespace->val, metadata, labels) : VAL_EMPTY;
	if (!str_eq(val_as_str(val_find(labels, STR(LABEL))), STR("true")))
		field_forbidden(e, FIELD(at, "adminAccess"),
				"admin access to devices requires the `" LABEL ": true` label on the containing namespace");
}

/* The first request with such access; a claim's path is given for templates too, as Kubernetes has it. */
static void check_requests(struct request *q, struct val requests, struct field_errors *e)
{
	const struct field_path *at = FIELD(FIELD(FIELD(NULL, "spec"), "devices"), "requests");
	size_t i = 0;
	VAL_EACH(r, requests) {
		if (val_bool(*r, exactly, adminAccess)) {
			require_label(q, FIELD_INDEX(at, i), e);
			return;
		}
		i++;
	}
}

/* The position of the first result with such access, or -1. */
static ptrdiff_t granted(struct val claim)
{
	struct val results = val_get(claim, status, allocation, devices, results);
	for (size_t i = 0; i < val_len(results); i++)
		if (val_bool(val_at(results, i), adminAccess))
			return (ptrdiff_t)i;
	return -1;
}

void admin_access_check(struct request *q, struct field_errors *e)
{
	bool claim = str_eq(q->resource, STR("resourceclaims")), creating = !q->current;
	if (!str_eq(q->group, STR("resource.k8s.io")))
		return;
	if (creating && claim)
		check_requests(q, val_get(q->object, spec, devices, requests), e);
	else if (creating && str_eq(q->resource, STR("resourceclaimtemplates")))
		check_requests(q, val_get(q->object, spec, spec, devices, requests), e);
	ptrdiff_t i = claim && str_eq(q->subresource, STR("status")) && granted(q->old) < 0 ? granted(q->object) : -1;
	if (i >= 0) {
		const struct field_path *devices = FIELD(FIELD(FIELD(NULL, "status"), "allocation"), "devices");
		require_label(q, FIELD_INDEX(FIELD(devices, "results"), i), e);
	}
}
