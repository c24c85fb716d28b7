#include "machinery/openapi.h"

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/types.h"

/* The value at a path of plain keys, such as "paths", "/api/v1/pods", "get". */
static struct val dig(struct val v, const char *const *keys)
{
	for (; *keys; keys++)
		v = val_find(v, str_of(*keys));
	return v;
}

#define DIG(v, ...) dig(v, (const char *const[]){ __VA_ARGS__, NULL })

TEST(openapi_names)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CHECK_STR(openapi_name(&a, TYPE(core_v1, Pod)), "io.k8s.api.core.v1.Pod");
	CHECK_STR(openapi_name(&a, TYPE(meta_v1, ObjectMeta)), "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
	CHECK_STR(openapi_name(&a, TYPE(apiextensions_v1, JSONSchemaProps)),
		  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
}

TEST(openapi_v3_operations)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val doc = openapi_v3(&a, STR("batch"), STR("v1"), NULL, NULL);
	struct val get = DIG(doc, "paths", "/apis/batch/v1/namespaces/{namespace}/jobs/{name}", "get");

	CHECK_STR(val_str(doc, openapi), "3.0.0");
	CHECK_STR(val_str(get, operationId), "readBatchV1NamespacedJob");
	CHECK_STR(val_str(get, x_kubernetes_action), "get");
	CHECK_STR(val_as_str(DIG(get, "responses", "200", "content", "application/json", "schema", "$ref")),
		  "#/components/schemas/io.k8s.api.batch.v1.Job");
	CHECK(val_exists(DIG(doc, "paths", "/apis/batch/v1/cronjobs", "get")));
	CHECK(!val_exists(DIG(doc, "paths", "/apis/batch/v1/cronjobs", "post")));
	CHECK(val_exists(DIG(doc, "paths", "/apis/batch/v1/namespaces/{namespace}/cronjobs/{name}/status", "patch")));
}

TEST(openapi_v3_parameters_of_all_operations_stand_at_the_path)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val doc = openapi_v3(&a, STR(""), STR("v1"), NULL, NULL);
	struct val path = DIG(doc, "paths", "/api/v1/namespaces/{namespace}/pods/{name}/exec");
	str names = STR("");

	VAL_EACH(p, val_get(path, parameters))
		names = arena_printf(&a, STR_FMT STR_FMT " ", STR_ARG(names), STR_ARG(val_str(*p, name)));
	CHECK_STR(names, "command container name namespace stderr stdin stdout tty ");
	CHECK(!val_exists(DIG(path, "get", "parameters")));
}

TEST(openapi_v3_schemas)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val schemas = DIG(openapi_v3(&a, STR(""), STR("v1"), NULL, NULL), "components", "schemas");
	struct val containers = DIG(schemas, "io.k8s.api.core.v1.PodSpec", "properties", "containers");
	struct val protocol = DIG(schemas, "io.k8s.api.core.v1.ServicePort", "properties", "protocol");

	CHECK_STR(val_str(containers, type), "array");
	CHECK_STR(val_str(containers, x_kubernetes_list_type), "map");
	CHECK_STR(val_as_str(DIG(containers, "x-kubernetes-patch-merge-key")), "name");
	CHECK_STR(val_str(protocol, default), "TCP");
	CHECK_STR(val_as_str(val_at(val_get(protocol, enum), 0)), "SCTP");
	CHECK_INT(val_len(DIG(schemas, "io.k8s.apimachinery.pkg.api.resource.Quantity", "oneOf")), 2);
	CHECK_STR(val_str(val_at(DIG(schemas, "io.k8s.api.core.v1.Pod", "x-kubernetes-group-version-kind"), 0), kind), "Pod");
}

/* Every reference in a document leads somewhere. */
static void check_refs(struct val v, struct val definitions, unsigned depth)
{
	str ref = val_str(v, _ref);
	CHECK(depth < 50);
	if (ref.n)
		CHECK(val_exists(val_find(definitions, str_skip(ref, (size_t)str_rchr(ref, '/') + 1))));
	VAL_EACH(item, v)
		check_refs(*item, definitions, depth + 1);
	VAL_EACH_MEMBER(m, v)
		check_refs(m->val, definitions, depth + 1);
}

TEST(openapi_v2_is_complete)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val doc = openapi_v2(&a, NULL, NULL);

	CHECK_STR(val_str(doc, swagger), "2.0");
	CHECK_STR(val_as_str(DIG(doc, "definitions", "io.k8s.apimachinery.pkg.util.intstr.IntOrString", "type")), "string");
	CHECK(!val_exists(DIG(doc, "definitions", "io.k8s.api.core.v1.ContainerPort", "properties", "protocol", "default")));
	CHECK(val_exists(DIG(doc, "paths", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", "put")));
	CHECK_STR(val_as_str(DIG(doc, "paths", "/apis/apps/", "get", "operationId")), "getAppsAPIGroup");
	CHECK(val_exists(DIG(doc, "paths", "/api/", "get", "produces")) && !val_exists(DIG(doc, "paths", "/apis//")));
	check_refs(doc, val_get(doc, definitions), 0);
}

TEST(openapi_v3_roots)
{
	static const struct { const char *name, *path, *id, *tag, *media, *answer; } t[] = {
		{ "api", "/api/", "getCoreAPIVersions", "core", "application/yaml", "APIVersions" },
		{ "apis", "/apis/", "getAPIVersions", "apis", "application/vnd.kubernetes.protobuf", "APIGroupList" },
		{ "apis/rbac.authorization.k8s.io", "/apis/rbac.authorization.k8s.io/", "getRbacAuthorizationAPIGroup",
		  "rbacAuthorization", "application/json", "APIGroup" },
		{ "version", "/version/", "getCodeVersion", "version", "application/json", "Info" },
		{ "openid/v1/jwks", "/openid/v1/jwks/", "getServiceAccountIssuerOpenIDKeyset", "openid", "application/jwk-set+json", NULL },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val doc = openapi_v3_root(&a, str_of(t[i].name)), get = DIG(doc, "paths", t[i].path, "get");
		struct val schema = DIG(get, "responses", "200", "content", t[i].media, "schema");
		CHECK_ROW(i, str_eq(val_str(get, operationId), str_of(t[i].id)));
		CHECK_ROW(i, str_eq(val_as_str(val_at(val_get(get, tags), 0)), str_of(t[i].tag)));
		CHECK_ROW(i, t[i].answer ? str_ends(val_str(schema, _ref), str_of(t[i].answer)) : str_eq(val_str(schema, type), STR("string")));
		CHECK_ROW(i, val_exists(DIG(doc, "components", "schemas")) == (t[i].answer != NULL));
		check_refs(doc, DIG(doc, "components", "schemas"), 0);
	}
	CHECK(!val_exists(openapi_v3_root(&a, STR("apis/apps/v1"))) && !val_exists(openapi_v3_root(&a, STR("nope"))));
}

static bool nothing(const struct resource *r, void *arg)
{
	(void)r, (void)arg;
	return false;
}

TEST(openapi_of_what_is_not_served)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CHECK(!val_exists(openapi_v3(&a, STR("apps"), STR("v7"), NULL, NULL)));
	CHECK(!val_exists(openapi_v3(&a, STR("apps"), STR("v1"), nothing, NULL)));
}
