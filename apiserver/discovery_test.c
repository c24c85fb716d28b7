#include "apiserver/documents_testing.h"
#include "codec/atoms.h"

#define V2 ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define V2BETA1 ";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

TEST(discovery_legacy)
{
	static const struct { const char *path, *accept, *type, *body; } t[] = {
		{ "/api", NULL, "application/json",
		  "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[{\"clientCIDR\":\"0.0.0.0/0\","
		  "\"serverAddress\":\"192.0.2.2:6443\"}]}\n" },
		{ "/apis/batch", "application/*", "application/json",
		  "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"batch\",\"versions\":[{\"groupVersion\":\"batch/v1\","
		  "\"version\":\"v1\"}],\"preferredVersion\":{\"groupVersion\":\"batch/v1\",\"version\":\"v1\"}}\n" },
		{ "/apis/batch/", "application/yaml", "application/yaml",
		  "apiVersion: v1\nkind: APIGroup\nname: batch\npreferredVersion:\n  groupVersion: batch/v1\n  version: v1\nversions:\n"
		  "- groupVersion: batch/v1\n  version: v1\n" },
		{ "/apis/coordination.k8s.io/v1/", "*/*", "application/json",
		  "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"coordination.k8s.io/v1\",\"resources\":[{"
		  "\"name\":\"leases\",\"singularName\":\"lease\",\"namespaced\":true,\"kind\":\"Lease\",\"verbs\":[\"create\",\"delete\","
		  "\"deletecollection\",\"get\",\"list\",\"patch\",\"update\",\"watch\"],\"storageVersionHash\":\"gqkMMb/YqFM=\"}]}\n" },
	};
	struct fixture f;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		for (int again = 0; again < 2; again++) { /* made, and kept */
			CHECK_ROW(i, fixture_get(&f, t[i].path, t[i].accept) == 0);
			CHECK_STR_ROW(i, f.q.answer.bytes, t[i].body);
			CHECK_STR_ROW(i, f.q.answer.content_type, t[i].type);
			CHECK_ROW(i, f.q.answer.status == 200);
		}
	}
	fixture_done(&f);
}

TEST(discovery_core_resources)
{
	struct fixture f;
	struct val v;
	fixture_init(&f);
	CHECK_INT(fixture_get(&f, "/api/v1", NULL), 0);
	CHECK_INT(json_decode(&f.arena, f.q.answer.bytes, &(struct json_decode_options){ 0 }, &v, NULL), 0);
	CHECK(!val_has(v, apiVersion));
	CHECK_STR(val_str(v, groupVersion), "v1");
	VAL_EACH(r, val_get(v, resources)) {
		if (str_eq(val_str(*r, name), STR("pods/eviction"))) {
			CHECK_STR(val_str(*r, group), "policy");
			CHECK_STR(val_str(*r, version), "v1");
			CHECK_STR(val_str(*r, kind), "Eviction");
			CHECK(val_has(*r, singularName));
		} else if (str_eq(val_str(*r, name), STR("pods"))) {
			CHECK(!val_has(*r, group));
			CHECK_STR(val_as_str(val_at(val_get(*r, shortNames), 0)), "po");
			CHECK_STR(val_str(*r, storageVersionHash), "xPOwRZ+Yhw8=");
		}
	}
	CHECK_INT(fixture_get(&f, "/api/v1", "application/vnd.kubernetes.protobuf"), 0);
	CHECK_STR(f.q.answer.content_type, "application/vnd.kubernetes.protobuf");
	CHECK(proto_is_envelope(f.q.answer.bytes));
	fixture_done(&f);
}

TEST(discovery_unknown)
{
	static const struct { const char *path; int r; bool status; } t[] = {
		{ "/apis/nope", -ERR_NOT_FOUND, false }, { "/apis/nope/v1", -ERR_NOT_FOUND, false },
		{ "/nope", -ERR_NOT_FOUND, false }, { "/apish", -ERR_NOT_FOUND, false },
		{ "/healthz/", -ERR_NOT_FOUND, false }, { "/openapi", -ERR_NOT_FOUND, false },
		{ "/debug/fibers", -ERR_NOT_FOUND, false }, { "/debug/pprof/", -ERR_NOT_FOUND, false },
		{ "/apis/apps/v9", -ERR_NOT_FOUND, true }, { "/api/v9", -ERR_NOT_FOUND, true },
	};
	struct fixture f;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_ROW(i, fixture_get(&f, t[i].path, NULL) == t[i].r);
		CHECK_ROW(i, val_exists(f.q.failure) == t[i].status);
	}
	answer_page_not_found(&f.q);
	CHECK_STR(f.q.answer.bytes, "404 page not found\n");
	CHECK_INT(fixture_get(&f, "/api", "text/plain"), -ERR_NOT_ACCEPTABLE);
	fixture_done(&f);
}

TEST(discovery_methods)
{
	struct fixture f;
	fixture_init(&f);
	(void)fixture_get(&f, "/version", NULL);
	f.q.method = STR("POST");
	CHECK_INT(nonresource_handle(&f.q, &f.err), -ERR_METHOD_NOT_ALLOWED);
	f.q.path = STR("/api");
	CHECK_INT(nonresource_handle(&f.q, &f.err), -ERR_METHOD_NOT_ALLOWED);
	f.q.path = STR("/apis");
	CHECK_INT(nonresource_handle(&f.q, &f.err), 0);
	fixture_done(&f);
}

TEST(discovery_aggregated_accept)
{
	static const struct { const char *accept, *type; } t[] = {
		{ "application/json" V2 ",application/json" V2BETA1 ",application/json", "application/json" V2 },
		{ "application/json" V2BETA1 ",application/json", "application/json" V2BETA1 },
		{ "application/json;as=Foo;v=v2;g=apidiscovery.k8s.io,application/json", "application/json" },
		{ "application/json;q=0.5,application/json" V2 ";q=0.9", "application/json" V2 },
		{ "application/json,application/json" V2, "application/json" },
		{ "application/vnd.kubernetes.protobuf" V2 ",application/json", "application/vnd.kubernetes.protobuf" V2 },
		{ "application/cbor" V2 ",application/yaml" V2, "application/yaml" V2 },
	};
	struct fixture f;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		for (int core = 0; core < 2; core++) {
			CHECK_ROW(i, fixture_get(&f, core ? "/api" : "/apis", t[i].accept) == 0);
			CHECK_STR_ROW(i, f.q.answer.content_type, t[i].type);
		}
	fixture_done(&f);
}

TEST(discovery_aggregated_document)
{
	static const char want[] = "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\",\"metadata\":{},\"items\":[{"
		"\"metadata\":{},\"versions\":[{\"version\":\"v1\",\"resources\":[{\"resource\":\"bindings\",\"responseKind\":{\"group\":\"\","
		"\"version\":\"\",\"kind\":\"Binding\"},\"scope\":\"Namespaced\",\"singularResource\":\"binding\",\"verbs\":[\"create\"]},";
	struct fixture f;
	fixture_init(&f);
	CHECK_INT(fixture_get(&f, "/api", "application/json" V2), 0);
	CHECK_STR(str_head(f.q.answer.bytes, sizeof want - 1), want);
	CHECK_STR(fixture_header(&f, "vary"), "Accept");
	CHECK_STR(fixture_header(&f, "cache-control"), "public");
	str etag = fixture_header(&f, "etag");
	CHECK_INT(etag.n, 130);

	/* The same content in another form has the same tag. */
	CHECK_INT(fixture_get(&f, "/api", "application/json" V2BETA1), 0);
	CHECK(str_eq(fixture_header(&f, "etag"), etag));
	CHECK_INT(fixture_again(&f, "if-none-match", etag), 0);
	CHECK_INT(f.q.answer.status, 304);
	CHECK_INT(f.q.answer.bytes.n, 0);
	CHECK(str_eq(fixture_header(&f, "etag"), etag));

	CHECK_INT(fixture_get(&f, "/apis", "application/json" V2), 0);
	CHECK(!str_eq(fixture_header(&f, "etag"), etag));
	CHECK(str_find(f.q.answer.bytes, STR("{\"subresource\":\"scale\",\"responseKind\":{\"group\":\"autoscaling\",\"version\":\"v1\","
					     "\"kind\":\"Scale\"},\"verbs\":[\"get\",\"patch\",\"update\"]}")) > 0);
	fixture_done(&f);
}
