#include "kubectl/kinds.h"
#include "kubectl/ktl_testing.h"

TEST(kinds_names)
{
	/* Names, short names, singulars, kinds, groups, versions: all without a request. */
	static const struct { const char *arg, *resource, *api_version, *label; } cases[] = {
		{ "pods", "pods", "v1", "pod" },
		{ "po", "pods", "v1", "pod" },
		{ "Pod", "pods", "v1", "pod" },
		{ "deploy", "deployments", "apps/v1", "deployment.apps" },
		{ "deployments.apps", "deployments", "apps/v1", "deployment.apps" },
		{ "deployments.v1.apps", "deployments", "apps/v1", "deployment.apps" },
		{ "ingresses.networking", "ingresses", "networking.k8s.io/v1", "ingress.networking.k8s.io" },
		{ "events", "events", "v1", "event" },
		{ "events.events.k8s.io", "events", "events.k8s.io/v1", "event.events.k8s.io" },
		{ "hpa", "horizontalpodautoscalers", "autoscaling/v2", "horizontalpodautoscaler.autoscaling" },
		{ "hpa.v1.autoscaling", "horizontalpodautoscalers", "autoscaling/v1", "horizontalpodautoscaler.autoscaling" },
		{ "crd", "customresourcedefinitions", "apiextensions.k8s.io/v1", "customresourcedefinition.apiextensions.k8s.io" },
	};
	CLEANUP(ktl_test_done) struct ktl k = { 0 };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct ktl_kind *kind;
		CHECK(ktl_kind_known(&k, str_of(cases[i].arg), &kind));
		CHECK_STR_ROW(i, kind->resource, cases[i].resource);
		CHECK_STR_ROW(i, ktl_kind_api_version(&k, kind), cases[i].api_version);
		CHECK_STR_ROW(i, ktl_kind_label(&k, kind), cases[i].label);
	}
	const struct ktl_kind *x = NULL, *y = NULL;
	CHECK(ktl_kind_known(&k, STR("po"), &x) && ktl_kind_known(&k, STR("pods"), &y));
	CHECK(x == y);
}

TEST(kinds_paths)
{
	CLEANUP(ktl_test_done) struct ktl k = { 0 };
	const struct ktl_kind *pods, *nodes, *sets;
	CHECK_INT(ktl_kind_of(&k, STR("v1"), STR("Pod"), &pods), 0);
	CHECK_INT(ktl_kind_of(&k, STR("v1"), STR("Node"), &nodes), 0);
	CHECK_INT(ktl_kind_of(&k, STR("apps/v1"), STR("ReplicaSet"), &sets), 0);
	CHECK_STR(ktl_kind_path(&k, pods, STR("a"), STR("b"), STR("log")), "/api/v1/namespaces/a/pods/b/log");
	CHECK_STR(ktl_kind_path(&k, pods, STR_NONE, STR_NONE, STR_NONE), "/api/v1/pods");
	CHECK_STR(ktl_kind_path(&k, nodes, STR("a"), STR("x y"), STR_NONE), "/api/v1/nodes/x%20y");
	CHECK_STR(ktl_kind_path(&k, sets, STR("a"), STR_NONE, STR_NONE), "/apis/apps/v1/namespaces/a/replicasets");
}
