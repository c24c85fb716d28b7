#include "apiserver/request_testing.h"

#include "base/test.h"
#include "codec/atoms.h"

TEST(info_reads_paths)
{
	static const struct {
		const char *method, *target, *verb, *group, *version, *namespace, *resource, *name, *subresource;
	} t[] = {
		{ "GET", "/api/v1/pods", "list", "", "v1", "", "pods", "", "" },
		{ "GET", "/api/v1/pods/", "list", "", "v1", "", "pods", "", "" },
		{ "GET", "//api/v1/pods", "list", "", "v1", "", "pods", "", "" },
		{ "GET", "/api/v1/pods?watch=true", "watch", "", "v1", "", "pods", "", "" },
		{ "GET", "/api/v1/pods?watch", "watch", "", "v1", "", "pods", "", "" },
		{ "GET", "/api/v1/pods?watch=false", "list", "", "v1", "", "pods", "", "" },
		{ "GET", "/api/v1/pods?watch=0", "list", "", "v1", "", "pods", "", "" },
		{ "GET", "/api/v1/watch/pods", "watch", "", "v1", "", "pods", "", "" },
		{ "GET", "/api/v1/watch/namespaces/n/pods/p", "watch", "", "v1", "n", "pods", "p", "" },
		{ "GET", "/api/v1/namespaces/n/pods/p", "get", "", "v1", "n", "pods", "p", "" },
		{ "HEAD", "/api/v1/namespaces/n/pods/p", "get", "", "v1", "n", "pods", "p", "" },
		{ "GET", "/api/v1/namespaces/n/pods/p/status", "get", "", "v1", "n", "pods", "p", "status" },
		{ "POST", "/api/v1/namespaces/n/pods", "create", "", "v1", "n", "pods", "", "" },
		{ "POST", "/api/v1/namespaces/n/pods/p/eviction", "create", "", "v1", "n", "pods", "p", "eviction" },
		{ "PUT", "/apis/apps/v1/namespaces/n/deployments/d/scale", "update", "apps", "v1", "n", "deployments",
		  "d", "scale" },
		{ "PATCH", "/apis/apps/v1/namespaces/n/deployments/d", "patch", "apps", "v1", "n", "deployments", "d",
		  "" },
		{ "DELETE", "/api/v1/nodes/a", "delete", "", "v1", "", "nodes", "a", "" },
		{ "DELETE", "/api/v1/namespaces/n/pods", "deletecollection", "", "v1", "n", "pods", "", "" },
		/* namespaces are their own namespace */
		{ "GET", "/api/v1/namespaces", "list", "", "v1", "", "namespaces", "", "" },
		{ "GET", "/api/v1/namespaces/n", "get", "", "v1", "n", "namespaces", "n", "" },
		{ "PUT", "/api/v1/namespaces/n/status", "update", "", "v1", "n", "namespaces", "n", "status" },
		{ "PUT", "/api/v1/namespaces/n/finalize", "update", "", "v1", "n", "namespaces", "n", "finalize" },
		/* decoded once: what looks like a slash then is one */
		{ "GET", "/api/v1/namespaces/n/configmaps/a%20b", "get", "", "v1", "n", "configmaps", "a b", "" },
		{ "GET", "/api/v1/namespaces/n/configmaps/a%252fb", "get", "", "v1", "n", "configmaps", "a%2fb", "" },
		{ "GET", "/api/v1/namespaces/n/configmaps/a%2fb", "get", "", "v1", "n", "configmaps", "a", "b" },
		{ "GET", "/api/v1/namespaces/n/configmaps/..", "get", "", "v1", "n", "configmaps", "..", "" },
	};
	struct call c;

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		call_new(&c, str_of(t[i].method), str_of(t[i].target));
		CHECK_ROW(i, stage_info(&c.q, &c.err) == STAGE_NEXT && c.q.is_resource);
		CHECK_STR_ROW(i, c.q.verb_text, t[i].verb);
		CHECK_STR_ROW(i, c.q.group, t[i].group);
		CHECK_STR_ROW(i, c.q.version, t[i].version);
		CHECK_STR_ROW(i, c.q.namespace, t[i].namespace);
		CHECK_STR_ROW(i, c.q.resource, t[i].resource);
		CHECK_STR_ROW(i, c.q.name, t[i].name);
		CHECK_STR_ROW(i, c.q.subresource, t[i].subresource);
	}
	call_done(&c);
}

TEST(info_leaves_other_paths_alone)
{
	static const char *const t[] = { "/", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version",
		"/healthz/x", "/nonsense" };
	struct call c;

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		call_new(&c, STR("GET"), str_of(t[i]));
		CHECK_ROW(i, stage_info(&c.q, &c.err) == STAGE_NEXT && !c.q.is_resource);
		CHECK_STR_ROW(i, c.q.path, t[i]);
		CHECK_STR_ROW(i, c.q.verb_text, "GET");
	}
	call_done(&c);
}

/* What is passed on to a kubelet or a pod is what the client wrote, byte for byte. */
TEST(info_keeps_the_rest_of_proxied_paths)
{
	static const struct {
		const char *method, *target, *verb, *rest;
	} t[] = {
		{ "GET", "/api/v1/namespaces/n/pods/p/proxy", "get", "" },
		{ "GET", "/api/v1/namespaces/n/pods/p/proxy/", "get", "/" },
		{ "POST", "/api/v1/namespaces/n/pods/p/proxy/a%2fb//c/", "create", "/a%2fb//c/" },
		{ "DELETE", "/api/v1/nodes/a/proxy/x/y/z/w", "delete", "/x/y/z/w" },
		{ "GET", "/api/v1/namespaces/n/services/s:http/proxy/x", "get", "/x" },
		{ "GET", "/api/v1/namespaces/n/pods/p/exec?command=ls", "get", "" },
	};
	struct call c;

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_ROW(i, call_route(&c, t[i].method, t[i].target) == 0);
		CHECK_ROW(i, c.q.verb == REQUEST_CONNECT);
		CHECK_STR_ROW(i, c.q.verb_text, t[i].verb);
		CHECK_STR_ROW(i, c.q.rest, t[i].rest);
	}
	call_done(&c);
}

TEST(route_finds_what_is_served)
{
	static const struct {
		const char *method, *target;
		int status; /* 0: found */
	} t[] = {
		{ "GET", "/api/v1/pods", 0 }, { "GET", "/api/v1/namespaces/n/pods", 0 },
		{ "GET", "/api/v1/nodes/x", 0 }, { "GET", "/api/v1/watch/namespaces/n", 0 }, { "GET", "/api/v1/watch/namespaces/n/pods/p", 0 },
		{ "POST", "/api/v1/namespaces/n/pods/p/binding", 0 },
		{ "GET", "/apis/apps/v1/namespaces/n/deployments/d/scale", 0 },
		{ "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 0 },
		/* nothing that there is */
		{ "GET", "/api/v1/nothing", 404 }, { "GET", "/api/v2/pods", 404 },
		{ "GET", "/apis/nothing/v1/pods", 404 }, { "GET", "/apis/apps/v9/deployments", 404 },
		{ "GET", "/api/v1/namespaces/n/pods/p/nothing", 404 },
		{ "GET", "/api/v1/namespaces/n/pods/p/status/x", 404 },
		{ "GET", "/api/v1/namespaces/n/configmaps/a/b/c/d", 404 },
		/* names and namespaces where they do not belong */
		{ "GET", "/api/v1/pods/p", 404 }, { "PUT", "/api/v1/pods/p/status", 404 },
		{ "GET", "/api/v1/namespaces/n/nodes", 404 }, { "GET", "/api/v1/namespaces/n/nodes/x", 404 },
		{ "DELETE", "/api/v1/namespaces/n/namespaces/m", 404 }, { "GET", "/api/v1/namespaces/n/namespaces", 404 },
		{ "PUT", "/api/v1/namespaces/n/namespaces/m/finalize", 404 },
		/* a watch is about a whole object */
		{ "GET", "/api/v1/watch/namespaces/n/pods/p/status", 404 },
		{ "POST", "/api/v1/watch/nodes/a/proxy/run", 404 }, { "GET", "/api/v1/watch/namespaces/n/pods/p/exec", 404 },
		{ "GET", "/api/v1/watch/namespaces/n/services/s/proxy", 404 },
		/* methods that there are not */
		{ "POST", "/api/v1/namespaces/n/pods/p", 405 }, { "PUT", "/api/v1/namespaces/n/pods", 405 },
		{ "PATCH", "/api/v1/namespaces/n/pods", 405 }, { "DELETE", "/api/v1/pods", 405 },
		{ "POST", "/api/v1/pods", 405 }, { "HEAD", "/api/v1/namespaces/n/pods/p", 405 },
		{ "OPTIONS", "/api/v1/pods", 405 }, { "NONSENSE", "/api/v1/pods", 405 },
		{ "DELETE", "/api/v1/namespaces", 405 }, { "GET", "/api/v1/namespaces/n/pods/p/binding", 405 },
		{ "PUT", "/api/v1/namespaces/n/pods/p/exec", 405 },
	};
	struct call c;

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int r = call_route(&c, t[i].method, t[i].target);
		if (!t[i].status) {
			CHECK_ROW(i, r == 0 && c.q.endpoint);
			continue;
		}
		CHECK_ROW(i, r < 0 && val_int(c.q.failure, code) == t[i].status);
		CHECK_STR_ROW(i, val_str(c.q.failure, message),
			      t[i].status == 404 ? "the server could not find the requested resource" :
						   "the server does not allow this method on the requested resource");
	}
	call_done(&c);
}

TEST(info_refuses_what_is_no_path)
{
	struct call c;
	static char deep[1024] = "/api/v1";

	call_init(&c);
	call_new(&c, STR("GET"), STR("/api/v1/pods/%zz"));
	CHECK(stage_info(&c.q, &c.err) < 0);
	CHECK_INT(val_int(c.q.failure, code), 400);
	call_new(&c, STR("GET"), STR("/api/v1/watch"));
	CHECK_INT(stage_info(&c.q, &c.err), -ERR_BAD_REQUEST);
	call_new(&c, STR("GET"), STR("/api/v1/namespaces/n/configmaps/a%00b"));
	CHECK(stage_info(&c.q, &c.err) < 0);
	CHECK_INT(val_int(c.q.failure, code), 404);
	for (size_t i = 7; i + 2 < sizeof(deep); i += 2)
		memcpy(deep + i, "/a", 3);
	call_new(&c, STR("GET"), str_of(deep));
	CHECK_INT(stage_info(&c.q, &c.err), STAGE_NEXT);
	CHECK_INT(route(&c.q), -ERR_NOT_FOUND);
	call_done(&c);
}

TEST(info_reads_queries)
{
	struct call c;

	call_init(&c);
	call_new(&c, STR("GET"), STR("/api/v1/pods?a=1&a=2&b&c=%20+x&%zz=1&d=false&=e&g=0"));
	CHECK_INT(stage_info(&c.q, &c.err), STAGE_NEXT);
	CHECK_STR(request_query(&c.q, STR("a")), "1");
	CHECK(request_query(&c.q, STR("b")).p && !request_query(&c.q, STR("b")).n);
	CHECK(!request_query(&c.q, STR("z")).p);
	CHECK_STR(request_query(&c.q, STR("c")), "  x");
	CHECK(request_query_bool(&c.q, STR("a")) && request_query_bool(&c.q, STR("b")));
	CHECK(!request_query_bool(&c.q, STR("d")) && !request_query_bool(&c.q, STR("g")) &&
	      !request_query_bool(&c.q, STR("z")));
	call_done(&c);
}

TEST(old_kinds_warn)
{
	struct call c;

	call_init(&c);
	CHECK_INT(call_route(&c, "GET", "/api/v1/namespaces/n/endpoints"), 0);
	CHECK_INT(c.q.n_warnings, 1);
	CHECK_STR(c.q.warnings[0], "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
	CHECK_INT(call_route(&c, "GET", "/api/v1/namespaces/n/pods"), 0);
	CHECK_INT(c.q.n_warnings, 0);
	call_done(&c);
}
