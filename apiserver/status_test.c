#include "apiserver/request_testing.h"

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"

/* The failure as JSON, in the arena. */
static str failure(struct call *c)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	CHECK_INT(json_encode(&b, c->q.failure, &(struct json_encode_options){ 0 }, NULL), 0);
	return arena_str(&c->arena, buf_str(&b));
}

#define STATUS(middle) "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\"," middle "}"

static int not_found(struct request *q) { return fail_not_found(q, STR("apps"), STR("deployments"), STR("d")); }
static int exists(struct request *q) { return fail_already_exists(q, STR(""), STR("pods"), STR("p")); }
static int conflict(struct request *q) { return fail_conflict(q, STR(""), STR("pods"), STR("p"), "it %s", "changed"); }
static int forbidden(struct request *q) { return fail_forbidden(q, STR(""), STR("pods"), STR("p"), "no"); }
static int forbidden_all(struct request *q)
{
	return fail_forbidden(q, STR("apps"), STR("deployments"), STR(""), "no");
}
static int bad(struct request *q) { return fail_bad_request(q, "100%%"); }
static int internal(struct request *q) { return fail_internal(q, "oops"); }
static int timeout(struct request *q)
{
	struct err e = ERR_INIT;
	err_set(&e, ERR_TIMEOUT, "secret details");
	return fail_err(q, &e);
}
static int unavailable(struct request *q)
{
	struct err e = ERR_INIT;
	err_set(&e, ERR_UNAVAILABLE, "the disk is full");
	return fail_err(q, &e);
}
static int system_error(struct request *q)
{
	struct err e = ERR_INIT;
	err_set(&e, ERR_SYSTEM, "no such file");
	return fail_err(q, &e);
}

TEST(failures_are_told_as_kubernetes_does)
{
	static const struct {
		int (*call)(struct request *q);
		enum err_code code;
		const char *json;
	} t[] = {
		{ not_found, ERR_NOT_FOUND, STATUS("\"message\":\"deployments.apps \\\"d\\\" not found\","
		  "\"reason\":\"NotFound\","
		  "\"details\":{\"name\":\"d\",\"group\":\"apps\",\"kind\":\"deployments\"},\"code\":404") },
		{ exists, ERR_ALREADY_EXISTS, STATUS("\"message\":\"pods \\\"p\\\" already exists\","
		  "\"reason\":\"AlreadyExists\","
		  "\"details\":{\"name\":\"p\",\"kind\":\"pods\"},\"code\":409") },
		{ conflict, ERR_CONFLICT, STATUS("\"message\":\"Operation cannot be fulfilled on pods \\\"p\\\": it "
		  "changed\","
		  "\"reason\":\"Conflict\",\"details\":{\"name\":\"p\",\"kind\":\"pods\"},\"code\":409") },
		{ forbidden, ERR_FORBIDDEN, STATUS("\"message\":\"pods \\\"p\\\" is forbidden: no\","
		  "\"reason\":\"Forbidden\","
		  "\"details\":{\"name\":\"p\",\"kind\":\"pods\"},\"code\":403") },
		{ forbidden_all, ERR_FORBIDDEN, STATUS("\"message\":\"deployments.apps is forbidden: no\","
		  "\"reason\":\"Forbidden\","
		  "\"details\":{\"group\":\"apps\",\"kind\":\"deployments\"},\"code\":403") },
		{ bad, ERR_BAD_REQUEST, STATUS("\"message\":\"100%\",\"reason\":\"BadRequest\",\"code\":400") },
		{ internal, ERR_INTERNAL, STATUS("\"message\":\"Internal error occurred: oops\","
		  "\"reason\":\"InternalError\","
		  "\"details\":{\"causes\":[{\"message\":\"oops\"}]},\"code\":500") },
		{ timeout, ERR_TIMEOUT, STATUS("\"message\":\"Timeout: request did not complete within the allotted "
		  "timeout\","
		  "\"reason\":\"Timeout\",\"details\":{},\"code\":504") },
		{ unavailable, ERR_UNAVAILABLE, STATUS("\"message\":\"the disk is full\","
		  "\"reason\":\"ServiceUnavailable\",\"code\":503") },
		{ system_error, ERR_INTERNAL, STATUS("\"message\":\"Internal error occurred: no such file\","
		  "\"reason\":\"InternalError\","
		  "\"details\":{\"causes\":[{\"message\":\"no such file\"}]},\"code\":500") },
		{ fail_method_not_allowed, ERR_METHOD_NOT_ALLOWED, STATUS("\"message\":\"the server does not allow "
		  "this method on the"
		  " requested resource\",\"reason\":\"MethodNotAllowed\",\"details\":{},\"code\":405") },
		{ fail_no_such_resource, ERR_NOT_FOUND, STATUS("\"message\":\"the server could not find the requested "
		  "resource\","
		  "\"reason\":\"NotFound\",\"details\":{},\"code\":404") },
	};
	struct call c;

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		call_new(&c, STR("GET"), STR("/"));
		CHECK_ROW(i, t[i].call(&c.q) == -(int)t[i].code);
		CHECK_STR_ROW(i, failure(&c), t[i].json);
	}
	call_done(&c);
}

TEST(invalid_objects_have_causes)
{
	struct call c;
	struct field_errors e;

	call_init(&c);
	call_new(&c, STR("POST"), STR("/"));
	field_errors_init(&e, &c.arena);
	field_required(&e, FIELD(NULL, "spec"), "say it");
	CHECK_INT(fail_invalid(&c.q, STR("apps"), STR("Deployment"), STR("d"), &e), -ERR_INVALID);
	CHECK_STR(val_str(c.q.failure, message), "Deployment.apps \"d\" is invalid: spec: Required value: say it");
	field_invalid(&e, FIELD(NULL, "kind"), val_of_str(STR("x")), "must be y");
	CHECK_INT(fail_invalid(&c.q, STR(""), STR("Pod"), STR("p"), &e), -ERR_INVALID);
	CHECK_STR(failure(&c), STATUS("\"message\":\"Pod \\\"p\\\" is invalid: [spec: Required value: say it, kind: "
		"Invalid value: \\\"x\\\": must be y]\","
		"\"reason\":\"Invalid\",\"details\":{\"name\":\"p\",\"kind\":\"Pod\",\"causes\":["
		"{\"reason\":\"FieldValueRequired\",\"message\":\"Required value: say it\",\"field\":\"spec\"},"
		"{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: \\\"x\\\": must be y\","
		"\"field\":\"kind\"}]},\"code\":422"));
	call_done(&c);
}

TEST(success_says_what_is_gone)
{
	struct call c;

	call_init(&c);
	CHECK_INT(call_route(&c, "DELETE", "/apis/apps/v1/namespaces/n/deployments/d"), 0);
	answer_success(&c.q, STR("d"), STR("u-1"));
	CHECK_INT(c.q.answer.status, 200);
	CHECK_STR(val_str(c.q.answer.val, status), "Success");
	CHECK_STR(val_str(c.q.answer.val, details, kind), "deployments");
	CHECK_STR(val_str(c.q.answer.val, details, group), "apps");
	CHECK_STR(val_str(c.q.answer.val, details, uid), "u-1");
	call_done(&c);
}

TEST(managers_come_from_the_user_agent)
{
	static const struct {
		const char *agent, *manager;
	} t[] = {
		{ "kubectl/v1.36.0 (linux/amd64) kubernetes/x", "kubectl" }, { "curl", "curl" }, { "", "" },
		{ "/x", "" },
		{ "a\x01" "b\x7f" "c/1", "abc" }, { "\xc3\xa4h/1", "\xc3\xa4h" },
	};
	struct call c;
	char long_agent[300];

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		call_new(&c, STR("POST"), STR("/"));
		call_header(&c, STR("user-agent"), str_of(t[i].agent));
		CHECK_STR_ROW(i, request_manager(&c.q), t[i].manager);
	}
	memset(long_agent, 'x', sizeof(long_agent));
	call_new(&c, STR("POST"), STR("/"));
	call_header(&c, STR("user-agent"), str_span(long_agent, sizeof(long_agent)));
	CHECK_INT(request_manager(&c.q).n, 128);
	c.q.field_manager = STR("me");
	CHECK_STR(request_manager(&c.q), "me");
	call_done(&c);
}

TEST(warnings_are_bounded)
{
	struct call c;
	char text[300];

	call_init(&c);
	call_new(&c, STR("POST"), STR("/"));
	request_warn(&c.q, STR("one"));
	request_warn(&c.q, STR("one"));
	CHECK_INT(c.q.n_warnings, 1);
	memset(text, 'w', sizeof(text));
	size_t total = 0;
	for (unsigned i = 0; i < 1000; i++) {
		str s = str_span(text, (size_t)snprintf(text, sizeof(text), "%03u", i) + 200);
		text[3] = 'w';
		request_warn(&c.q, s);
	}
	for (unsigned i = 0; i < c.q.n_warnings; i++)
		total += c.q.warnings[i].n;
	CHECK(c.q.n_warnings > 10 && total <= 4096 + 256);
	call_done(&c);
}

TEST(answers_take_any_number_of_headers)
{
	struct call c;

	call_init(&c);
	call_new(&c, STR("GET"), STR("/"));
	for (int i = 0; i < 100; i++)
		answer_header(&c.q, arena_printf(&c.arena, "h%d", i), arena_printf(&c.arena, "v%d", i));
	CHECK_INT(c.q.answer.n_headers, 100);
	CHECK_STR(http_header_find(c.q.answer.headers, 100, STR("h0")), "v0");
	CHECK_STR(http_header_find(c.q.answer.headers, 100, STR("h99")), "v99");
	call_done(&c);
}
