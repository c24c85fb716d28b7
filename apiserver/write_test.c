/* The options of writes, how kinds differ, and the form that objects have once stored. */
#include "apiserver/write.h"

#include "apiserver/cache.h"
#include "apiserver/request_testing.h"
#include "apiserver/strategy.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

#define MAPS "/api/v1/namespaces/n/configmaps"

TEST(write_options_are_checked)
{
#define INVALID(kind, text) kind ".meta.k8s.io \"\" is invalid: " text
	static const struct {
		const char *query, *kind;
		bool is_apply;
		const char *message; /* NULL: taken */
	} t[] = {
		{ "", "CreateOptions", false, NULL },
		{ "?dryRun=All&dryRun=All&fieldManager=me&fieldValidation=Strict", "CreateOptions", false, NULL },
		{ "?fieldManager=\xc3\xa4", "UpdateOptions", false, NULL },
		{ "?fieldManager=me&force=true", "PatchOptions", true, NULL },
		{ "?dryRun=Some", "CreateOptions", false, INVALID("CreateOptions",
		  "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"") },
		{ "?dryRun=", "CreateOptions", false, INVALID("CreateOptions",
		  "dryRun: Unsupported value: [\"\"]: supported values: \"All\"") },
		{ "?fieldValidation=strict", "UpdateOptions", false,
		  INVALID("UpdateOptions", "fieldValidation: Unsupported value: \"strict\": supported values: \"\", "
			  "\"Ignore\", \"Strict\", \"Warn\"") },
		{ "?fieldManager=a%01b", "CreateOptions", false,
		  INVALID("CreateOptions", "fieldManager: Invalid value: \"a\\x01b\": should only contain printable "
			  "characters") },
		{ "", "PatchOptions", true, INVALID("PatchOptions", "fieldManager: Required value: is required for "
		  "apply patch") },
		{ "?force=true", "PatchOptions", false, INVALID("PatchOptions",
		  "force: Forbidden: may not be specified for non-apply patch") },
	};
	struct call c;

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		call_new(&c, STR("POST"), arena_printf(&c.arena, MAPS "%s", t[i].query));
		CHECK_ROW(i, stage_info(&c.q, &c.err) == STAGE_NEXT);
		int r = write_options(&c.q, str_of(t[i].kind), t[i].is_apply);
		CHECK_ROW(i, r == (t[i].message ? -ERR_INVALID : 0));
		if (t[i].message)
			CHECK_STR_ROW(i, val_str(c.q.failure, message), t[i].message);
	}
	call_done(&c);
}

TEST(write_options_are_kept)
{
	struct call c;
	char name[200] = "/x?fieldManager=";

	call_init(&c);
	call_new(&c, STR("PATCH"), STR(MAPS "/a?dryRun=All&fieldManager=me&force=1"));
	CHECK_INT(stage_info(&c.q, &c.err), STAGE_NEXT);
	CHECK_INT(write_options(&c.q, STR("PatchOptions"), true), 0);
	CHECK(c.q.dry_run && c.q.force);
	CHECK_STR(c.q.field_manager, "me");
	CHECK_STR(c.q.field_validation, "Warn");
	memset(name + 16, 'm', 129);
	call_new(&c, STR("POST"), str_of(name));
	CHECK_INT(stage_info(&c.q, &c.err), STAGE_NEXT);
	CHECK_INT(write_options(&c.q, STR("CreateOptions"), false), -ERR_INVALID);
	CHECK_STR(val_str(c.q.failure, message), "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: "
		"may not be more than 128 bytes");
	call_done(&c);
}

static int delete_options(struct call *c, const char *query, const char *body)
{
	call_new(c, STR("DELETE"), arena_printf(&c->arena, MAPS "/a%s", query));
	if (body)
		call_body(c, str_of(body));
	CHECK_INT(stage_info(&c->q, &c->err), STAGE_NEXT);
	return write_delete_options(&c->q, &c->err);
}

FIBER_TEST(delete_options_are_read)
{
	static struct call c;

	call_init(&c);
	CHECK_INT(delete_options(&c, "", NULL), 0);
	CHECK(!val_len(c.q.delete_options) && !c.q.dry_run);
	CHECK_INT(delete_options(&c, "?gracePeriodSeconds=5&propagationPolicy=Orphan&dryRun=All", NULL), 0);
	CHECK(val_int(c.q.delete_options, gracePeriodSeconds) == 5 && c.q.dry_run);
	CHECK_STR(val_str(c.q.delete_options, propagationPolicy), "Orphan");
	/* a body wins over the query, and need not say what it is */
	CHECK_INT(delete_options(&c, "?gracePeriodSeconds=5", "{\"gracePeriodSeconds\":7,"
		"\"preconditions\":{\"uid\":\"u\"}}"), 0);
	CHECK_INT(val_int(c.q.delete_options, gracePeriodSeconds), 7);
	CHECK_STR(val_str(c.q.delete_options, preconditions, uid), "u");
	CHECK_INT(delete_options(&c, "", "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"apps/v1\","
		"\"gracePeriodSeconds\":9}"), 0);
	CHECK_INT(val_int(c.q.delete_options, gracePeriodSeconds), 9);
	call_done(&c);
}

FIBER_TEST(delete_options_are_checked)
{
	static const struct {
		const char *query, *body;
		int status;
		const char *message;
	} t[] = {
		{ "?gracePeriodSeconds=x", NULL, 400, "strconv.ParseInt: parsing \"x\": invalid syntax" },
		{ "", "not json", 400, "couldn't get version/kind; json parse error: invalid character 'o' in literal "
		  "null (expecting 'u')" },
		{ "", "{\"kind\":\"Foo\",\"apiVersion\":\"v1\"}", 400,
		  "no kind \"Foo\" is registered for version \"v1\" in scheme "
		  "\"pkg/apis/meta/internalversion/scheme/register.go:27\"" },
		{ "?dryRun=x", NULL, 422, "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
		  "[\"x\"]: supported values: \"All\"" },
		{ "?propagationPolicy=x", NULL, 422, "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: "
		  "Unsupported value: \"x\":"
		  " supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"" },
		{ "?propagationPolicy=Orphan&orphanDependents=true", NULL, 422,
		  "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy:"
		  " Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set" },
	};
	static struct call c;

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_ROW(i, delete_options(&c, t[i].query, t[i].body) < 0);
		CHECK_STR_ROW(i, val_str(c.q.failure, message), t[i].message);
		CHECK_ROW(i, val_int(c.q.failure, code) == t[i].status);
	}
	call_done(&c);
}

FIBER_TEST(bodies_have_a_limit)
{
	static struct call c;

	call_init(&c);
	c.server.options.max_body_bytes = 10;
	CHECK_INT(delete_options(&c, "", "12345678901"), -ERR_TOO_LARGE);
	CHECK_STR(val_str(c.q.failure, message), "Request entity too large: limit is 10");
	CHECK_STR(val_str(c.q.failure, reason), "RequestEntityTooLarge");
	CHECK_INT(val_int(c.q.failure, code), 413);
	call_done(&c);
}

TEST(strategies_differ_by_kind)
{
	static const struct {
		const char *group, *resource;
		unsigned flags;
	} t[] = {
		{ "", "configmaps", 0 },
		{ "", "pods", STRATEGY_RETURN_DELETED | STRATEGY_GRACEFUL },
		{ "", "services", STRATEGY_CREATE_ON_UPDATE | STRATEGY_RETURN_DELETED },
		{ "", "events", STRATEGY_CREATE_ON_UPDATE | STRATEGY_NO_DEPENDENTS },
		{ "events.k8s.io", "events", STRATEGY_CREATE_ON_UPDATE | STRATEGY_NO_DEPENDENTS },
		{ "apps", "deployments", 0 },
		{ "batch", "jobs", STRATEGY_ORPHAN },
		{ "coordination.k8s.io", "leases", STRATEGY_CREATE_ON_UPDATE | STRATEGY_VERSION_REQUIRED },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct kind kind = { .group = str_of(t[i].group), .resource = str_of(t[i].resource) };
		CHECK_ROW(i, strategy_of(&kind) == t[i].flags);
	}
}

TEST(stored_objects_have_no_empty_lists)
{
	static const struct {
		const char *in, *out;
	} t[] = {
		{ "{\"metadata\":{\"name\":\"p\",\"labels\":{},\"finalizers\":[]},\"spec\":{\"volumes\":[],"
		  "\"containers\":[{\"name\":\"c\",\"args\":[]}]}}",
		  "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{}}]},"
		  "\"status\":{}}" },
		{ "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\","
		  "\"env\":[]},{\"name\":\"c\"}]}}",
		  "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{}},"
		  "{\"name\":\"b\",\"resources\":{}},"
		  "{\"name\":\"c\",\"resources\":{}}]},\"status\":{}}" },
		/* what is an object of its own stays, though empty */
		{ "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"securityContext\":{},\"containers\":null}}",
		  "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":null,\"securityContext\":{}},"
		  "\"status\":{}}" },
	};
	struct arena a = ARENA_INIT;
	struct kind kind = { .hub = TYPE(core_v1, Pod), .protobuf = true };

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
		struct val v;
		CHECK_ROW(i, json_decode(&a, str_of(t[i].in), &(struct json_decode_options){ .type = kind.hub }, &v,
			NULL) == 0);
		struct val stored = cache_stored_form(&a, &kind, v);
		CHECK_ROW(i, json_encode(&b, stored, &(struct json_encode_options){ .type = kind.hub }, NULL) == 0);
		CHECK_STR_ROW(i, buf_str(&b), t[i].out);
		CHECK_ROW(i, cache_stored_form(&a, &kind, stored).members == stored.members); /* nothing more to do */
		struct kind json = { .hub = kind.hub };
		CHECK_ROW(i, cache_stored_form(&a, &json, v).members == v.members);
	}
	arena_done(&a);
}
