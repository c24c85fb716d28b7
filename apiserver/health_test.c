#include "apiserver/documents_testing.h"

TEST(health_ok)
{
	struct fixture f;
	fixture_init(&f);
	CHECK_INT(fixture_get(&f, "/livez/ping", NULL), 0);
	CHECK_STR(f.q.answer.bytes, "ok");
	CHECK_INT(f.q.answer.status, 200);
	/* This server has no store. */
	CHECK_INT(fixture_get(&f, "/livez/etcd", NULL), 0);
	CHECK_STR(f.q.answer.bytes, "internal server error: etcd client connection not yet established\n");
	CHECK_INT(f.q.answer.status, 500);
	CHECK_INT(fixture_get(&f, "/livez/shutdown", NULL), -ERR_NOT_FOUND);
	CHECK_INT(fixture_get(&f, "/readyz/shutdown", NULL), 0);
	CHECK_STR(f.q.answer.bytes, "ok");
	fixture_done(&f);
}

static void get_with(struct fixture *f, const char *path, const char *const *query)
{
	(void)fixture_get(f, path, NULL);
	f->q.query = f->query;
	for (; query[0]; query += 2)
		f->query[f->q.n_query++] = (struct query_parameter){ str_of(query[0]), str_of(query[1]) };
	f->q.answer = (struct answer){ 0 };
	CHECK_INT(nonresource_handle(&f->q, &f->err), 0);
}

TEST(health_exclude)
{
	struct fixture f;
	fixture_init(&f);
	get_with(&f, "/livez", (const char *[]){ "exclude", "etcd", NULL });
	CHECK_INT(f.q.answer.status, 200);
	CHECK_STR(f.q.answer.bytes, "ok");

	get_with(&f, "/livez", (const char *[]){ "exclude", "etcd", "verbose", "", "exclude", "x\"y", "exclude", "a", "exclude", "a", NULL });
	CHECK_INT(f.q.answer.status, 200);
	CHECK(str_starts(f.q.answer.bytes, STR("[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]etcd excluded: ok\n"
					       "[+]poststarthook/start-apiserver-admission-initializer ok\n")));
	CHECK(str_ends(f.q.answer.bytes, STR("[+]poststarthook/apiservice-openapiv3-controller ok\n"
					     "warn: some health checks cannot be excluded: no matches for \"a\",\"x\\\"y\"\n"
					     "livez check passed\n")));
	fixture_done(&f);
}

TEST(health_failing)
{
	struct fixture f;
	fixture_init(&f);
	f.server.ready = false;
	get_with(&f, "/readyz", (const char *[]){ "exclude", "etcd", NULL });
	CHECK_INT(f.q.answer.status, 500);
	CHECK_STR(f.q.answer.content_type, "text/plain; charset=utf-8");
	CHECK(str_find(f.q.answer.bytes, STR("\n[-]etcd-readiness failed: reason withheld\n[-]informer-sync failed: reason withheld\n")) > 0);
	CHECK(str_find(f.q.answer.bytes, STR("\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n")) > 0);
	CHECK(str_ends(f.q.answer.bytes, STR("[+]shutdown ok\nreadyz check failed\n")));
	get_with(&f, "/readyz/poststarthook/rbac/bootstrap-roles", (const char *[]){ NULL });
	CHECK_STR(f.q.answer.bytes, "internal server error: not finished\n");
	/* A server that stops is alive, but not ready. */
	f.server.stopping = true;
	get_with(&f, "/livez", (const char *[]){ "exclude", "etcd", NULL });
	CHECK_INT(f.q.answer.status, 200);
	get_with(&f, "/readyz", (const char *[]){ NULL });
	CHECK(str_find(f.q.answer.bytes, STR("\n[+]poststarthook/rbac/bootstrap-roles ok\n")) > 0);
	CHECK(str_ends(f.q.answer.bytes, STR("[-]shutdown failed: reason withheld\nreadyz check failed\n")));
	fixture_done(&f);
}

TEST(version_and_root)
{
	struct fixture f;
	fixture_init(&f);
	CHECK_INT(fixture_get(&f, "/version", NULL), 0);
	CHECK(str_starts(f.q.answer.bytes, STR("{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n  \"emulationMajor\": \"1\",\n")));
	CHECK(str_find(f.q.answer.bytes, STR("\"gitVersion\": \"v1.36.4\"")) > 0);
	CHECK_INT(fixture_get(&f, "/", NULL), 0);
	CHECK(str_starts(f.q.answer.bytes, STR("{\n  \"paths\": [\n    \"/.well-known/openid-configuration\",\n    \"/api\",\n"
					       "    \"/api/v1\",\n    \"/apis\",\n    \"/apis/\",\n"
					       "    \"/apis/admissionregistration.k8s.io\",\n")));
	CHECK(str_find(f.q.answer.bytes, STR("\"/debug")) < 0);
	CHECK(str_find(f.q.answer.bytes, STR("\n    \"/readyz/shutdown\",\n    \"/version\"\n  ]\n}")) > 0);
	fixture_done(&f);
}
