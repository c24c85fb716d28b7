#include "client/client.h"

#include <zlib.h>

#include "base/clock.h"
#include "client/script_testing.h"
#include "codec/atoms.h"
#include "codec/types.h"

#define POD "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\",\"resourceVersion\":\"7\"}}"

static struct val pod(struct arena *a)
{
	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT("web")), F(namespace, VAL_LIT("ns")))),
		      F(spec, OBJECT(a, F(nodeName, VAL_LIT("n1")))));
}

/* ---- what is asked ---- */

struct asking {
	struct client *c;
	struct arena *a;
	struct frozen *got;
	struct err err;
};

static int ask(struct asking *q, int which)
{
	struct arena *a = q->a;
	struct err *err = &q->err;
	const struct type *t = TYPE(core_v1, Pod);
	struct val meta = OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT("web")), F(namespace, VAL_LIT("ns")))));
	struct val patch = OBJECT(a, F(spec, OBJECT(a, F(nodeName, VAL_NULL_VALUE))));
	switch (which) {
	case 0: return client_get(q->c, t, STR("ns"), STR("web"), &q->got, err);
	case 1: return client_create(q->c, t, pod(a), NULL, &q->got, err);
	case 2: return client_create(q->c, t, pod(a), &(struct client_write_options){ .manager = STR("me & you"),
			  .dry_run = true }, NULL, err);
	case 3: return client_create(q->c, t, val_with(a, meta, VAL_LIT("n1"), target, name),
			  &(struct client_write_options){ .subresource = STR("binding") }, NULL, err);
	case 4: return client_update(q->c, t, pod(a), &(struct client_write_options){ .subresource = STR("status") }, &q->got, err);
	case 5: return client_patch(q->c, t, STR("ns"), STR("web"), CLIENT_PATCH_MERGE, patch, NULL, &q->got, err);
	case 6: return client_patch(q->c, t, STR("ns"), STR("web"), CLIENT_PATCH_STRATEGIC, patch,
			  &(struct client_write_options){ .subresource = STR("status") }, NULL, err);
	case 7: return client_patch(q->c, t, STR("ns"), STR("web"), CLIENT_PATCH_JSON, LIST(a, OBJECT(a, F(op,
			  VAL_LIT("remove")), F(path, VAL_LIT("/spec")))), NULL, NULL, err);
	case 8: return client_apply(q->c, t, pod(a), &(struct client_write_options){ .manager = STR("m"),
			  .force = true }, &q->got, err);
	case 9: return client_delete(q->c, t, STR("ns"), STR("web"), NULL, err);
	case 10: return client_delete(q->c, t, STR("ns"), STR("web"), &(struct client_delete_options){ .grace_s = 0,
			  .uid = STR("u"), .revision = STR("5"), .propagation = STR("Orphan") }, err);
	case 11: return client_delete(q->c, t, STR("ns"), STR("web"), &(struct client_delete_options){ .grace_s = -1 }, err);
	case 12: return client_get(q->c, TYPE(core_v1, Node), STR("ignored"), STR("n1"), NULL, err);
	case 13: return client_get(q->c, TYPE(apps_v1, Deployment), STR("ns"), STR("d"), NULL, err);
	case 14: return client_list(q->c, t, &(struct client_list_options){ .namespace = STR("ns"),
			  .labels = STR("a in (b,c)"), .fields = STR("spec.nodeName=x"), .limit = 5,
			  .next = STR("=="), .revision = STR("0"), .match = STR("Exact") }, NULL, err);
	case 15: return client_list(q->c, t, NULL, NULL, err);
	case 16: return client_create(q->c, TYPE(core_v1, ServiceAccount), meta,
			  &(struct client_write_options){ .subresource = STR("token"),
			  .reply = TYPE(authentication_v1, TokenRequest) }, NULL, err);
	case 17: return client_update(q->c, TYPE(apps_v1, Deployment), val_with(a, meta, val_of_int(3), spec,
			  replicas), &(struct client_write_options){ .subresource = STR("scale") }, NULL, err);
	case 18: return client_delete_collection(q->c, t, &(struct client_list_options){ .namespace = STR("ns"), .labels = STR("a=b") },
			  &(struct client_delete_options){ .grace_s = -1, .propagation = STR("Background") }, err);
	default: return client_get(q->c, TYPE(rbac_v1, ClusterRole), STR_NONE, STR("system:node"), NULL, err);
	}
}

FIBER_TEST(client_asks)
{
	static const struct {
		const char *line, *type, *body;
	} t[] = {
		{ "GET /api/v1/namespaces/ns/pods/web HTTP/1.1", "", "" },
		{ "POST /api/v1/namespaces/ns/pods HTTP/1.1", "application/vnd.kubernetes.protobuf",
		  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\"},"
		  "\"spec\":{\"nodeName\":\"n1\"}}" },
		{ "POST /api/v1/namespaces/ns/pods?dryRun=All&fieldManager=me+%26+you HTTP/1.1", "application/vnd.kubernetes.protobuf",
		  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\"},"
		  "\"spec\":{\"nodeName\":\"n1\"}}" },
		{ "POST /api/v1/namespaces/ns/pods/web/binding HTTP/1.1", "application/vnd.kubernetes.protobuf",
		  "{\"kind\":\"Binding\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\"},"
		  "\"target\":{\"name\":\"n1\"}}" },
		{ "PUT /api/v1/namespaces/ns/pods/web/status HTTP/1.1", "application/vnd.kubernetes.protobuf",
		  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\"},"
		  "\"spec\":{\"nodeName\":\"n1\"}}" },
		{ "PATCH /api/v1/namespaces/ns/pods/web HTTP/1.1", "application/merge-patch+json", "{\"spec\":{\"nodeName\":null}}" },
		{ "PATCH /api/v1/namespaces/ns/pods/web/status HTTP/1.1", "application/strategic-merge-patch+json",
		  "{\"spec\":{\"nodeName\":null}}" },
		{ "PATCH /api/v1/namespaces/ns/pods/web HTTP/1.1", "application/json-patch+json",
		  "[{\"op\":\"remove\",\"path\":\"/spec\"}]" },
		{ "PATCH /api/v1/namespaces/ns/pods/web?fieldManager=m&force=true HTTP/1.1", "application/apply-patch+yaml",
		  "{\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\"},\"spec\":{\"nodeName\":\"n1\"},"
		  "\"kind\":\"Pod\",\"apiVersion\":\"v1\"}" },
		{ "DELETE /api/v1/namespaces/ns/pods/web HTTP/1.1", "", "" },
		{ "DELETE /api/v1/namespaces/ns/pods/web HTTP/1.1", "application/json",
		  "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0,"
		  "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"5\"},"
		  "\"propagationPolicy\":\"Orphan\"}" },
		{ "DELETE /api/v1/namespaces/ns/pods/web HTTP/1.1", "application/json",
		  "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}" },
		{ "GET /api/v1/nodes/n1 HTTP/1.1", "", "" },
		{ "GET /apis/apps/v1/namespaces/ns/deployments/d HTTP/1.1", "", "" },
		{ "GET /api/v1/namespaces/ns/pods?labelSelector=a+in+%28b%2Cc%29&fieldSelector=spec.nodeName%3Dx&resourceVersion=0"
		  "&resourceVersionMatch=Exact&limit=5&continue=%3D%3D HTTP/1.1", "", "" },
		{ "GET /api/v1/pods HTTP/1.1", "", "" },
		{ "POST /api/v1/namespaces/ns/serviceaccounts/web/token HTTP/1.1", "application/vnd.kubernetes.protobuf",
		  "{\"kind\":\"TokenRequest\",\"apiVersion\":\"authentication.k8s.io/v1\","
		  "\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\"}}" },
		{ "PUT /apis/apps/v1/namespaces/ns/deployments/web/scale HTTP/1.1", "application/vnd.kubernetes.protobuf",
		  "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"name\":\"web\","
		  "\"namespace\":\"ns\"},\"spec\":{\"replicas\":3}}" },
		{ "DELETE /api/v1/namespaces/ns/pods?labelSelector=a%3Db HTTP/1.1", "application/json",
		  "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Background\"}" },
		{ "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system:node HTTP/1.1", "", "" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct script s;
	script_init(&s);
	struct asking q = { .c = script_client(&s, (struct client_config){ .user_agent = STR("test/1") }), .a = &a };
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		script_reset(&s);
		script_add_json(&s, 200, "", POD);
		int r = ask(&q, (int)i);
		if (r < 0)
			fail_msg("row %zu: %s", i, q.err.msg);
		CHECK_STR_ROW(i, script_line(&s, 0), t[i].line);
		CHECK_STR_ROW(i, script_header(&s, 0, "Content-Type"), t[i].type);
		CHECK_STR_ROW(i, script_body(&s, 0), t[i].body);
		CHECK_STR_ROW(i, script_header(&s, 0, "Accept"), "application/vnd.kubernetes.protobuf,application/json");
		CHECK_STR_ROW(i, script_header(&s, 0, "User-Agent"), "test/1");
		if (q.got) {
			CHECK_STR_ROW(i, val_str(q.got->val, metadata, resourceVersion), "7");
			frozen_unref(TAKE(q.got));
		}
	}
	/* All of it on one connection. */
	CHECK_INT(s.n_connections, 1);
	client_free(q.c);
	script_done(&s);
}

FIBER_TEST(client_refuses_what_cannot_be_asked)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct script s;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	const struct type *t = TYPE(core_v1, Pod);
	CHECK_INT(client_get(c, t, STR("ns"), STR(""), NULL, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "resource name may not be empty");
	CHECK_INT(client_get(c, t, STR(""), STR("x"), NULL, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "an empty namespace may not be set when a resource name is provided");
	CHECK_INT(client_get(c, t, STR("ns"), STR("../../nodes/x"), NULL, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "invalid resource name \"../../nodes/x\": [may not contain '/']");
	CHECK_INT(client_delete(c, t, STR(".."), STR("x"), NULL, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "invalid namespace \"..\": [may not be '..']");
	CHECK_INT(client_create(c, t, val_without(&a, pod(&a), metadata, namespace), NULL, NULL, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "an empty namespace may not be set during creation");
	CHECK_INT(client_get(c, TYPE(core_v1, PodSpec), STR("ns"), STR("x"), NULL, &err), -ERR_BAD_REQUEST);
	CHECK_INT(client_create(c, t, val_with(&a, pod(&a), VAL_LIT("x"), spec, hostNetwork), NULL, NULL, &err), -ERR_BAD_REQUEST);
	CHECK_INT((int)s.n_seen, 0);
	script_done(&s);
}

/* ---- answers that are errors ---- */

static int get(struct client *c, struct script *s, struct frozen **ret, str *ret_error)
{
	struct err err = ERR_INIT;
	int r = client_get(c, TYPE(core_v1, Pod), STR("ns"), STR("web"), ret, &err);
	*ret_error = r < 0 ? script_error(s, &err) : STR("ok");
	return r;
}

FIBER_TEST(client_tells_errors)
{
	static const struct {
		int status;
		const char *type, *body;
		int want;
		const char *text;
	} t[] = {
		{ 404, "application/json",
		  "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"pods \\\"web\\\" "
		  "not found\",\"reason\":\"NotFound\",\"code\":404}",
		  -ERR_NOT_FOUND, "404: pods \"web\" not found" },
		{ 409, "application/json",
		  "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","
		  "\"reason\":\"Conflict\",\"code\":409}", -ERR_CONFLICT, "409: m" },
		{ 409, "application/json",
		  "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","
		  "\"reason\":\"AlreadyExists\",\"code\":409}", -ERR_ALREADY_EXISTS, "409: m" },
		{ 410, "application/json",
		  "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","
		  "\"reason\":\"Expired\",\"code\":410}", -ERR_EXPIRED, "410: m" },
		{ 500, "application/json",
		  "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","
		  "\"reason\":\"ServerTimeout\",\"code\":500}", -ERR_SERVER_TIMEOUT, "500: m" },
		{ 418, "application/json",
		  "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","
		  "\"reason\":\"Odd\"}", -ERR_BAD_REQUEST, "400: m" },
		{ 404, "text/plain", "404 page not found", -ERR_NOT_FOUND,
		  "404: the server could not find the requested resource (get pods web)" },
		{ 401, "text/plain", "", -ERR_UNAUTHORIZED,
		  "401: the server has asked for the client to provide credentials (get pods web)" },
		{ 403, "text/plain", " no \n", -ERR_FORBIDDEN, "403: no (get pods web)" },
		{ 409, "text/plain", "", -ERR_CONFLICT, "409: the server reported a conflict (get pods web)" },
		{ 429, "application/json", "{", -ERR_TOO_MANY_REQUESTS,
		  "429: the server has received too many requests and has asked us to try again later (get pods web)" },
		{ 500, "text/html", "<b>\"oops\"</b>", -ERR_INTERNAL,
		  "500: an error on the server (\"<b>\\\"oops\\\"</b>\") has prevented the request from succeeding "
		  "(get pods web)" },
		{ 502, "application/octet-stream", "\xff", -ERR_INTERNAL,
		  "500: an error on the server (\"unknown\") has prevented the request from succeeding (get pods web)" },
		{ 503, "application/json", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", -ERR_UNAVAILABLE,
		  "503: the server is currently unable to handle the request (get pods web)" },
		{ 504, "text/plain", "", -ERR_TIMEOUT,
		  "504: the server was unable to return a response in the time allotted, but may still be processing "
		  "the request (get pods web)" },
		/* canceled is only who was canceled here */
		{ 499, "text/plain", "", -ERR_BAD_REQUEST,
		  "400: the server responded with the status code 499 but did not return more information (get pods web)" },
		{ 500, "application/json",
		  "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","
		  "\"reason\":\"Canceled\",\"code\":500}", -ERR_INTERNAL, "500: m" },
		{ 302, "text/plain", "", -ERR_BAD_REQUEST,
		  "400: the server responded with the status code 302 but did not return more information (get pods web)" },
		/* answers that are none */
		{ 200, "application/json", "{", -ERR_UNAVAILABLE,
		  "503: the server's answer cannot be decoded: couldn't get version/kind; json parse error: "
		  "unexpected end of JSON input" },
		{ 200, "application/vnd.kubernetes.protobuf", "k8s", -ERR_UNAVAILABLE, "503: the server's answer cannot be decoded: " },
		{ 200, "text/html", "<html>", -ERR_UNAVAILABLE,
		  "503: the server answered with content of type \"text/html\", which is no object" },
		{ 200, "application/json", "{\"kind\":\"Service\",\"apiVersion\":\"v1\"}", -ERR_UNAVAILABLE,
		  "503: the server answered with \"Service\" in \"v1\" where Pod was expected" },
		{ 200, "application/json", "{\"kind\":\"Pod\",\"apiVersion\":\"v2\"}", -ERR_UNAVAILABLE,
		  "503: the server answered with \"Pod\" in \"v2\" where Pod was expected" },
		{ 200, "application/json", "", -ERR_UNAVAILABLE, "503: the server's answer cannot be decoded: " },
	};
	struct script s;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(frozen_unrefp) struct frozen *got = NULL;
		str text;
		script_reset(&s);
		script_add(&s, t[i].status, "", t[i].type, str_of(t[i].body));
		CHECK_ROW(i, get(c, &s, &got, &text) == t[i].want);
		CHECK_STR_ROW(i, str_ends(str_of(t[i].text), STR(": ")) ? str_head(text, strlen(t[i].text)) : text, t[i].text);
	}
	script_done(&s);
}

FIBER_TEST(client_meets_broken_servers)
{
	static const struct {
		const char *answer, *want;
		size_t tries;
	} t[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"kind\":",
		  "503: unexpected error when reading response body. Please retry. Original error: Get "
		  "\"http://127.0.0.1:PORT/api/v1/namespaces/ns/pods/web\": unexpected EOF", 1 },
		{ "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		  "503: unexpected error when reading response body. Please retry. Original error: ", 1 },
		{ "HTTP/1.1 200 OK\r\nContent-", "503: Get \"http://127.0.0.1:PORT/api/v1/namespaces/ns/pods/web\": unexpected EOF", 1 },
		{ "SSH-2.0-OpenSSH\r\n\r\n",
		  "503: Get \"http://127.0.0.1:PORT/api/v1/namespaces/ns/pods/web\": malformed HTTP response", 1 },
	};
	struct script s;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str text;
		script_reset(&s);
		script_add_raw(&s, str_of(t[i].answer));
		s.closes[0] = true;
		CHECK_ROW(i, get(c, &s, NULL, &text) == -ERR_UNAVAILABLE);
		CHECK_STR_ROW(i, str_ends(str_of(t[i].want), STR(": ")) ? str_head(text, strlen(t[i].want)) : text, t[i].want);
		CHECK_ROW(i, s.n_seen == t[i].tries);
	}
	/* Cut before there is an answer: reads are tried again, writes are not. */
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *got = NULL;
	struct err err = ERR_INIT;
	str text;
	script_reset(&s);
	script_add_raw(&s, STR_NONE);
	script_add_json(&s, 200, "", POD);
	s.closes[0] = true;
	int64_t before = clock_now_ns();
	CHECK_INT(get(c, &s, &got, &text), 0);
	CHECK(clock_now_ns() - before >= 900 * NS_PER_MS);
	CHECK_INT((int)s.n_seen, 2);
	script_reset(&s);
	script_add_raw(&s, STR_NONE);
	s.closes[0] = true;
	CHECK_INT(client_create(c, TYPE(core_v1, Pod), pod(&a), NULL, NULL, &err), -ERR_UNAVAILABLE);
	CHECK_INT((int)s.n_seen, 1);
	script_done(&s);
	/* Nobody there at all, and a name that nobody has: not to be taken for an object that does not exist. */
	CHECK_INT(client_get(c, TYPE(core_v1, Pod), STR("ns"), STR("web"), NULL, &err), -ERR_UNAVAILABLE);
	CHECK(str_find(err_str(&err), STR("connect: connection refused")) > 0);
	CLEANUP(client_freep) struct client *lost = NULL;
	CHECK_INT(client_open(&(struct client_config){ .server = STR("https://no-such-name.invalid") }, &lost, &err), 0);
	CHECK_INT(client_get(lost, TYPE(core_v1, Pod), STR("ns"), STR("web"), NULL, &err), -ERR_UNAVAILABLE);
}

/* ---- trying again ---- */

static int canceled_get(void *arg)
{
	struct err err = ERR_INIT;
	return client_get(arg, TYPE(core_v1, Pod), STR("ns"), STR("web"), NULL, &err);
}

FIBER_TEST(client_tries_again)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct script s;
	struct err err = ERR_INIT;
	str text;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	/* As often as the server wants, and writes too: it has not done anything. */
	for (int i = 0; i < 10; i++)
		script_add_json(&s, i % 2 ? 503 : 429, "Retry-After: 0\r\n", "{}");
	script_add_json(&s, 201, "", POD);
	CHECK_INT(client_create(c, TYPE(core_v1, Pod), pod(&a), NULL, NULL, &err), 0);
	CHECK_INT((int)s.n_seen, 11);
	CHECK_STR(script_body(&s, 10), script_body(&s, 0).p);
	/* But not for ever. */
	script_reset(&s);
	for (int i = 0; i < 12; i++)
		script_add_json(&s, 429, "Retry-After: 0\r\n", "{}");
	CHECK_INT(get(c, &s, NULL, &text), -ERR_TOO_MANY_REQUESTS);
	CHECK_INT((int)s.n_seen, 11);
	/* Only when it says when, and what is not the request's own fault. */
	static const struct { int status; const char *header; } not_again[] = {
		{ 503, "" }, { 429, "" }, { 429, "Retry-After: soon\r\n" }, { 404, "Retry-After: 0\r\n" }, { 409, "Retry-After: 0\r\n" },
	};
	for (size_t i = 0; i < ARRAY_LEN(not_again); i++) {
		script_reset(&s);
		script_add_json(&s, not_again[i].status, not_again[i].header, "{}");
		CHECK_ROW(i, get(c, &s, NULL, &text) < 0 && s.n_seen == 1);
	}
	/* The wait is as long as it says. */
	script_reset(&s);
	script_add_json(&s, 429, "Retry-After: 1\r\n", "{}");
	script_add_json(&s, 200, "", POD);
	int64_t before = clock_now_ns();
	CHECK_INT(get(c, &s, NULL, &text), 0);
	CHECK(clock_now_ns() - before >= 900 * NS_PER_MS);
	/* Deadlines and cancel go before it. */
	script_reset(&s);
	script_add_json(&s, 429, "Retry-After: 3600\r\n", "{}");
	script_add_json(&s, 429, "Retry-After: 3600\r\n", "{}");
	{
		DEADLINE_SCOPE(100);
		CHECK_INT(get(c, &s, NULL, &text), -ERR_TIMEOUT);
	}
	CHECK(str_ends(text,
			  STR(" - error from a previous attempt: the server has received too many requests and has "
			  "asked us to try again later (get pods web)")));
	struct fiber *f = start(canceled_get, c);
	while (s.n_seen < 2)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK_INT(fiber_stop(f), -ERR_CANCELED);
	/* A server that does not answer. */
	script_reset(&s);
	script_add_raw(&s, STR("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"));
	s.stays[0] = true;
	{
		DEADLINE_SCOPE(100);
		CHECK_INT(get(c, &s, NULL, &text), -ERR_TIMEOUT);
	}
	script_done(&s);
}

FIBER_TEST(client_speaks_json_to_those_who_want_it)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct script s;
	struct err err = ERR_INIT;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	script_add_json(&s, 415, "", "{}");
	script_add_json(&s, 201, "", POD);
	script_add_json(&s, 201, "", POD);
	CHECK_INT(client_create(c, TYPE(core_v1, Pod), pod(&a), NULL, NULL, &err), 0);
	CHECK_INT(client_create(c, TYPE(core_v1, Pod), pod(&a), NULL, NULL, &err), 0);
	CHECK_INT((int)s.n_seen, 3);
	CHECK_STR(script_header(&s, 0, "Content-Type"), "application/vnd.kubernetes.protobuf");
	for (size_t i = 1; i < 3; i++) {
		CHECK_STR(script_header(&s, i, "Content-Type"), "application/json");
		CHECK_STR(script_header(&s, i, "Accept"), "application/json");
		CHECK(str_find(script_body(&s, i), STR("\"spec\":{\"containers\":null,\"nodeName\":\"n1\"}")) > 0);
	}
	/* One that does not want JSON either is not asked for ever. */
	script_reset(&s);
	script_add_json(&s, 415, "", "{}");
	CHECK_INT(client_create(c, TYPE(core_v1, Pod), pod(&a), NULL, NULL, &err), -ERR_UNSUPPORTED_MEDIA);
	script_done(&s);
}

/* ---- sizes ---- */

static str gzip(struct arena *a, str in)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)in.p, .avail_in = (uInt)in.n };
	CHECK(deflateInit2(&z, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	size_t room = deflateBound(&z, in.n);
	char *out = arena_alloc(a, room, 1);
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)room;
	CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
	str packed = str_span(out, room - z.avail_out);
	(void)deflateEnd(&z);
	return packed;
}

FIBER_TEST(client_bounds_answers)
{
	enum { TOO_MUCH = (64 << 20) + 1 };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *got = NULL;
	struct script s;
	str text, raw;
	struct err err = ERR_INIT;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	char *spaces = arena_alloc(&a, TOO_MUCH, 1);
	memset(spaces, ' ', TOO_MUCH);
	script_add(&s, 200, "", "application/json", str_span(spaces, TOO_MUCH));
	CHECK_INT(get(c, &s, &got, &text), -ERR_TOO_LARGE);
	CHECK_STR(text, "413: the answer is larger than 67108864 bytes");
	/* Packed, it is small. */
	script_reset(&s);
	script_add(&s, 200, "Content-Encoding: gzip\r\n", "application/json", gzip(&a, str_span(spaces, TOO_MUCH)));
	CHECK_INT(get(c, &s, &got, &text), -ERR_TOO_LARGE);
	script_reset(&s);
	script_add(&s, 200, "Content-Encoding: gzip\r\n", "application/json", STR("\x1f\x8bgarbage, all of it"));
	CHECK_INT(get(c, &s, &got, &text), -ERR_UNAVAILABLE);
	str packed = gzip(&a, STR(POD));
	script_reset(&s);
	script_add(&s, 200, "Content-Encoding: gzip\r\n", "application/json", str_head(packed, packed.n - 9));
	CHECK_INT(get(c, &s, &got, &text), -ERR_UNAVAILABLE);
	script_reset(&s);
	script_add(&s, 200, "Content-Encoding: gzip\r\n", "application/json", packed);
	CHECK_INT(get(c, &s, &got, &text), 0);
	CHECK_STR(val_str(got->val, metadata, name), "web");
	/* A large one, decoded on a thread. */
	frozen_unref(TAKE(got));
	memcpy(spaces, POD, strlen(POD));
	script_reset(&s);
	script_add(&s, 200, "", "application/json", str_span(spaces, 1 << 20));
	CHECK_INT(get(c, &s, &got, &text), 0);
	CHECK_STR(val_str(got->val, metadata, name), "web");
	/* Other paths. */
	script_reset(&s);
	script_add(&s, 200, "", "text/plain", STR("ok"));
	script_add(&s, 200, "", "text/plain", STR("four"));
	script_add(&s, 403, "", "text/plain", STR("no"));
	CHECK_INT(client_get_raw(c, &a, STR("/healthz?verbose"), 3, &raw, &err), 0);
	CHECK_STR(raw, "ok");
	CHECK_STR(script_line(&s, 0), "GET /healthz?verbose HTTP/1.1");
	CHECK_INT(client_get_raw(c, &a, STR("/version"), 3, &raw, &err), -ERR_TOO_LARGE);
	CHECK_INT(client_get_raw(c, &a, STR("/version"), 3, &raw, &err), -ERR_FORBIDDEN);
	CHECK_STR(err_str(&err), "no");
	script_done(&s);
}

/* ---- who asks ---- */

FIBER_TEST(client_says_who_asks)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct script s;
	str text;
	script_init(&s);
	script_add_json(&s, 200, "", POD);
	script_add_json(&s, 200, "", POD);
	struct val groups = LIST(&a, VAL_LIT("g1"), VAL_LIT("g2"));
	struct val_builder extra = val_builder(&a);
	val_add_member(&extra, atom_make(&a, STR("Scopes.io/X%")), LIST(&a, VAL_LIT("v1"), VAL_LIT("v2")));
	struct client *c = script_client(&s, (struct client_config){
		.username = STR("u"), .password = STR("p"), .impersonate = STR("root"), .impersonate_uid = STR("0"),
		.impersonate_groups = groups, .impersonate_extra = val_end_object(&extra) });
	CHECK_INT(get(c, &s, NULL, &text), 0);
	CHECK_STR(script_header(&s, 0, "Authorization"), "Basic dTpw");
	CHECK_STR(script_header(&s, 0, "Impersonate-User"), "root");
	CHECK_STR(script_header(&s, 0, "Impersonate-Uid"), "0");
	CHECK(str_find(s.seen[0], STR("\r\nImpersonate-Group: g1\r\nImpersonate-Group: g2\r\n")) > 0);
	CHECK(str_find(s.seen[0],
			  STR("\r\nImpersonate-Extra-Scopes.io%2fx%25: v1\r\nImpersonate-Extra-Scopes.io%2fx%25: v2\r\n")) > 0);
	CHECK(str_starts(script_header(&s, 0, "User-Agent"), STR("c8s/")) && str_ends(script_header(&s, 0, "User-Agent"), STR(")")));
	/* To this machine nothing is packed. */
	CHECK_STR(script_header(&s, 0, "Accept-Encoding"), "");
	client_free(c);
	c = script_client(&s, (struct client_config){ .token = STR("secret") });
	CHECK_INT(get(c, &s, NULL, &text), 0);
	CHECK_STR(script_header(&s, 1, "Authorization"), "Bearer secret");
	CHECK_STR(script_header(&s, 1, "Impersonate-User"), "");
	client_free(c);
	script_done(&s);
}

TEST(client_open_refuses)
{
	static const struct {
		struct client_config c;
		const char *want;
	} t[] = {
		{ { .server = STR_INIT("ftp://x") }, "host must be a URL or a host:port pair: \"ftp://x\"" },
		{ { .token = STR_INIT("t"), .username = STR_INIT("u") }, "username/password or bearer token may be set, but not both" },
		{ { .server = STR_INIT("https://x"), .insecure = true, .ca = STR_INIT("x") },
		  "specifying a root certificates file with the insecure flag is not allowed" },
		{ { .proxy_url = STR_INIT("ftp://p") }, "unsupported scheme \"ftp\", must be http, https, or socks5" },
		{ { .server = STR_INIT("https://x"), .ca = STR_INIT("x") }, "the given text: no certificate inside: no start line" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct client *c = NULL;
		struct err err = ERR_INIT;
		CHECK_ROW(i, client_open(&t[i].c, &c, &err) < 0 && !c);
		CHECK_STR_ROW(i, err_str(&err), t[i].want);
	}
}

/* ---- taking turns ---- */

FIBER_TEST(client_keeps_to_its_limit)
{
	struct script s;
	str text;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	for (int i = 0; i < 8; i++)
		script_add_json(&s, 200, "", POD);
	client_limit(c, 50, 3);
	int64_t before = clock_now_ns();
	for (int i = 0; i < 7; i++)
		CHECK_INT(get(c, &s, NULL, &text), 0);
	/* Three at once, then one in 20 ms. */
	CHECK(clock_now_ns() - before >= 75 * NS_PER_MS);
	client_limit(c, 0.001, 1);
	CHECK_INT(get(c, &s, NULL, &text), 0);
	DEADLINE_SCOPE(20);
	CHECK_INT(get(c, &s, NULL, &text), -ERR_TIMEOUT);
	CHECK(str_starts(text, STR("504: client rate limiter Wait returned an error: ")));
	CHECK_INT((int)s.n_seen, 8);
	script_done(&s);
}

/* ---- changing ---- */

static struct val count_up(struct arena *a, struct val live, void *arg)
{
	int *calls = arg;
	return ++*calls > 5 ? VAL_EMPTY : val_with(a, live, VAL_LIT("n2"), spec, nodeName);
}

FIBER_TEST(client_changes_objects)
{
	struct script s;
	struct err err = ERR_INIT;
	CLEANUP(frozen_unrefp) struct frozen *got = NULL;
	int calls = 0;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	const char conflict[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","
			  "\"reason\":\"Conflict\",\"code\":409}";
	for (int i = 0; i < 2; i++) {
		script_add_json(&s, 200, "", POD);
		script_add_json(&s, 409, "", conflict);
	}
	script_add_json(&s, 200, "", POD);
	script_add_json(&s, 200, "", POD);
	CHECK_INT(client_change_object(c, TYPE(core_v1, Pod), STR("ns"), STR("web"), count_up, &calls, NULL, &got, &err), 0);
	CHECK_INT(calls, 3);
	CHECK(got != NULL);
	CHECK_STR(script_body(&s, 5),
			  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\","
			  "\"namespace\":\"ns\",\"resourceVersion\":\"7\"},"
				     "\"spec\":{\"nodeName\":\"n2\"}}");
	/* Nothing to change: nothing is written, and what is there is told. */
	frozen_unref(TAKE(got));
	calls = 5;
	script_reset(&s);
	script_add_json(&s, 200, "", POD);
	CHECK_INT(client_change_object(c, TYPE(core_v1, Pod), STR("ns"), STR("web"), count_up, &calls, NULL, &got, &err), 0);
	CHECK_INT((int)s.n_seen, 1);
	CHECK_STR(val_str(got->val, metadata, resourceVersion), "7");
	script_done(&s);
}
