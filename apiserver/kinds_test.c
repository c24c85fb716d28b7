#include "apiserver/kinds.h"
#include "base/test.h"
#include "codec/types.h"

static bool all(const struct resource *r, void *arg)
{
	(void)r;
	(void)arg;
	return true;
}

TEST(kinds_of_versions_that_share_their_keys)
{
	struct kinds k;
	kinds_init(&k, all, NULL);

	const struct endpoint *core = kinds_endpoint(&k, STR(""), STR("v1"), STR("events"), STR(""));
	const struct endpoint *events = kinds_endpoint(&k, STR("events.k8s.io"), STR("v1"), STR("events"), STR(""));
	CHECK(core && events && core->kind == events->kind);
	CHECK(core->kind->hub == TYPE(core_v1, Event) && events->type == TYPE(events_v1, Event));
	CHECK(kinds_find(&k, STR("events.k8s.io"), STR("events")) == core->kind);
	CHECK(kinds_find(&k, STR("autoscaling"), STR("horizontalpodautoscalers"))->hub ==
	      TYPE(autoscaling_v2, HorizontalPodAutoscaler));
	/* what is served need not be what is stored */
	CHECK(kinds_find(&k, STR("admissionregistration.k8s.io"), STR("mutatingadmissionpolicies"))->hub ==
	      TYPE(admissionregistration_v1beta1, MutatingAdmissionPolicy));
	CHECK(kinds_find(&k, STR("apiextensions.k8s.io"), STR("customresourcedefinitions"))->hub ==
	      TYPE(apiextensions_v1, CustomResourceDefinition));
	kinds_done(&k);
}

TEST(kinds_endpoints)
{
	struct kinds k;
	kinds_init(&k, NULL, NULL);

	const struct endpoint *pods = kinds_endpoint(&k, STR(""), STR("v1"), STR("pods"), STR(""));
	const struct endpoint *status = kinds_endpoint(&k, STR(""), STR("v1"), STR("pods"), STR("status"));
	const struct endpoint *scale = kinds_endpoint(&k, STR("apps"), STR("v1"), STR("deployments"), STR("scale"));
	CHECK(pods && status && scale);
	CHECK(pods->main == pods && status->main == pods && status->kind == pods->kind);
	CHECK(pods->kind->namespaced && pods->kind->protobuf);
	CHECK_STR(status->subresource, "status");
	CHECK(scale->type == TYPE(apps_v1, Deployment) && scale->resource->type == TYPE(autoscaling_v1, Scale));

	const struct endpoint *review = kinds_endpoint(&k, STR("authorization.k8s.io"), STR("v1"), STR("subjectaccessreviews"), STR(""));
	CHECK(review && !review->kind);
	CHECK(!kinds_endpoint(&k, STR(""), STR("v1"), STR("nopes"), STR("")));
	CHECK(!kinds_endpoint(&k, STR("resource.k8s.io"), STR("v1beta1"), STR("deviceclasses"), STR("")));
	CHECK(kinds_endpoint(&k, STR("resource.k8s.io"), STR("v1"), STR("deviceclasses"), STR("")));
	CHECK(map_get(&k.served, STR("/v1")) && map_get(&k.served, STR("apps/v1")) && !map_get(&k.served, STR("resource.k8s.io/v1beta1")));
	CHECK(!kinds_find(&k, STR("coordination.k8s.io"), STR("leasecandidates")));

	char text[600];
	memset(text, 'x', sizeof text);
	CHECK(!kinds_endpoint(&k, STR(""), STR("v1"), str_span(text, sizeof text), STR("")));
	kinds_done(&k);
}

TEST(kinds_of_keys)
{
	static const struct {
		const char *key, *resource, *rest;
	} rows[] = {
		{ "/registry/pods/default/web", "pods", "default/web" },
		{ "/registry/services/specs/default/web", "services", "default/web" },
		{ "/registry/services/endpoints/default/web", "endpoints", "default/web" },
		{ "/registry/minions/node-1", "nodes", "node-1" },
		{ "/registry/apiregistration.k8s.io/apiservices/v1.apps", "apiservices", "v1.apps" },
		{ "/registry/pods", NULL, NULL },
		{ "/registry/ranges/serviceips", NULL, NULL },
		{ "/registry/masterleases/10.0.0.1", NULL, NULL },
		{ "/registry/example.com/widgets/default/a", NULL, NULL },
		{ "compact_rev_key", NULL, NULL },
	};
	struct kinds k;
	kinds_init(&k, NULL, NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		str rest = STR_NONE;
		struct kind *kind = kinds_of_key(&k, str_of(rows[i].key), &rest);
		CHECK_ROW(i, !kind == !rows[i].resource);
		CHECK_STR_ROW(i, kind ? kind->resource : STR_NONE, rows[i].resource);
		CHECK_STR_ROW(i, rest, rows[i].rest);
	}
	kinds_done(&k);
}
