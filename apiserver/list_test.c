#include "apiserver/list.h"

#include "apiserver/read_fixture.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/testing.h"

#define CONFIG_MAP(namespace, name, labels) \
	"{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'" name "','namespace':'" namespace "','labels':{" labels "}}," \
	"'data':{'x':'" name "'}}"
#define PARTIAL_LIST "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"

/* The names of a JSON list, and its continue token in f->arena. */
static str names_of(struct read_fixture *f, str json, str *ret_next, struct val *ret_list)
{
	struct err err = ERR_INIT;
	struct buf names = BUF_INIT(1 << 16);
	if (json_decode(&f->arena, json, &(struct json_decode_options){ 0 }, ret_list, &err) < 0)
		fail_msg("%s in " STR_FMT, err.msg, STR_ARG(json));
	*ret_next = val_str(*ret_list, metadata, continue);
	VAL_EACH(item, val_get(*ret_list, items)) {
		if (names.n)
			buf_addc(&names, ' ');
		buf_add(&names, val_str(*item, metadata, name));
	}
	str text = arena_str(&f->arena, buf_str(&names));
	buf_done(&names);
	return text;
}

/* Lists, and compares names; an expectation that begins with "! " is the message of a failure. */
static struct val check_list(struct read_fixture *f, const char *namespace, const char *query, const char *want, str *ret_next)
{
	struct val list = VAL_EMPTY;
	bool end;
	int r = read_fixture_call(f, "LIST", "configmaps", namespace, "", query, NULL);
	if (want[0] == '!') {
		CHECK(r < 0);
		CHECK_STR(val_str(f->q.failure, message), want + 2);
		return f->q.failure;
	}
	CHECK_INT(r, 0);
	str json = arena_str(&f->arena, read_fixture_drain(f, 7, &end));
	CHECK(end && str_ends(json, STR("\n")));
	CHECK_STR(names_of(f, json, ret_next, &list), want);
	read_fixture_stop(f);
	return list;
}

static void put_five(struct read_fixture *f)
{
	static const char *const maps[][2] = {
		{ "n/c0", CONFIG_MAP("n", "c0", "'par':'even','i':'0'") }, { "n/c1", CONFIG_MAP("n", "c1", "'par':'odd','i':'1'") },
		{ "n/c2", CONFIG_MAP("n", "c2", "'par':'even','i':'2'") }, { "n/c3", CONFIG_MAP("n", "c3", "'par':'odd','i':'3'") },
		{ "n/c4", CONFIG_MAP("n", "c4", "'par':'even','i':'4'") }, { "na/z", CONFIG_MAP("na", "z", "") },
	};
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		read_fixture_put(f, STR("configmaps"), maps[i][0], maps[i][1]);
}

FIBER_TEST(list_selects)
{
	static const struct {
		const char *namespace, *query, *want;
	} t[] = {
		{ "n", "", "c0 c1 c2 c3 c4" },
		{ "", "", "c0 c1 c2 c3 c4 z" },
		{ "nowhere", "", "" },
		{ "n", "labelSelector=par%3Deven", "c0 c2 c4" },
		{ "n", "labelSelector=i%20notin%20(1,2)", "c0 c3 c4" },
		{ "n", "labelSelector=!par", "" },
		{ "", "fieldSelector=metadata.namespace%3Dna", "z" },
		{ "n", "fieldSelector=metadata.name%3Dc1", "c1" },
		{ "", "fieldSelector=metadata.name%3Dc1", "c1" },
		{ "n", "fieldSelector=metadata.name!%3Dc1&labelSelector=par%3Dodd", "c3" },
		{ "n", "resourceVersion=0&limit=1", "c0 c1 c2 c3 c4" },
		{ "n", "limit=-1", "c0 c1 c2 c3 c4" },
		{ "n", "limit=500", "c0 c1 c2 c3 c4" },
		{ "n", "limit=abc", "! strconv.ParseInt: parsing \"abc\": invalid syntax" },
		{ "n", "limit=99999999999999999999", "! strconv.ParseInt: parsing \"99999999999999999999\": value out of range" },
		{ "n", "labelSelector=!", "! unable to parse requirement: found '', expected: identifier" },
		{ "n", "fieldSelector=spec.nope%3Dx",
		  "! \"spec.nope\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"" },
		{ "n", "continue=bogus", "! invalid continue token: continue key is not valid: illegal base64 data at input byte 4" },
		{ "n", "continue=bogus&resourceVersion=5",
		  "! invalid continue token: continue key is not valid: illegal base64 data at input byte 4" },
		{ "n", "resourceVersion=abc",
		  "! invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax" },
		{ "n", "resourceVersionMatch=Exact", "! ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
						     "resourceVersionMatch is forbidden unless resourceVersion is provided" },
		{ "n", "resourceVersionMatch=Foo&resourceVersion=1",
		  "! ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"Foo\": supported values: "
		  "\"Exact\", \"NotOlderThan\", \"\"" },
		{ "n", "resourceVersionMatch=Exact&resourceVersion=0",
		  "! ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is "
		  "forbidden for resourceVersion \"0\"" },
		{ "n", "sendInitialEvents=true", "! ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
						 "sendInitialEvents is forbidden for list" },
	};
	struct read_fixture f;
	read_fixture_init(&f);
	put_five(&f);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str next;
		(void)check_list(&f, t[i].namespace, t[i].query, t[i].want, &next);
	}
	read_fixture_done(&f);
}

static const char *query_with(struct read_fixture *f, char room[256], const char *fmt, str next)
{
	(void)f;
	char token[200];
	(void)snprintf(token, sizeof token, STR_FMT, STR_ARG(next));
	(void)snprintf(room, 256, "%s%s", fmt, token);
	return room;
}

/* A page shows what was there when the list began, whatever happened since. */
FIBER_TEST(list_pages_are_of_one_revision)
{
	struct read_fixture f;
	char query[256];
	str next;
	read_fixture_init(&f);
	put_five(&f);
	struct val list = check_list(&f, "n", "limit=2", "c0 c1", &next);
	CHECK_INT(val_int(list, metadata, remainingItemCount), 3);
	char first[256], revision[32];
	(void)snprintf(revision, sizeof revision, STR_FMT, STR_ARG(val_str(list, metadata, resourceVersion)));
	(void)snprintf(first, sizeof first, STR_FMT, STR_ARG(next));
	read_fixture_put(&f, STR("configmaps"), "n/c3", NULL);
	read_fixture_put(&f, STR("configmaps"), "n/c2", CONFIG_MAP("n", "c2", "'changed':'yes'"));
	read_fixture_put(&f, STR("configmaps"), "n/c22", CONFIG_MAP("n", "c22", ""));

	list = check_list(&f, "n", query_with(&f, query, "limit=2&continue=", str_of(first)), "c2 c3", &next);
	CHECK_STR(val_str(list, metadata, resourceVersion), revision);
	CHECK_INT(val_int(list, metadata, remainingItemCount), 1);
	CHECK(!val_exists(val_find(val_get(val_at(val_get(list, items), 0), metadata, labels), STR("changed"))));
	(void)check_list(&f, "n", query_with(&f, query, "limit=2&continue=", next), "c4", &next);
	CHECK_INT(next.n, 0);

	char exact[128];
	(void)snprintf(exact, sizeof exact, "resourceVersionMatch=Exact&resourceVersion=%s", revision);
	(void)check_list(&f, "n", exact, "c0 c1 c2 c3 c4", &next);
	(void)snprintf(exact, sizeof exact, "resourceVersionMatch=NotOlderThan&resourceVersion=%s", revision);
	(void)check_list(&f, "n", exact, "c0 c1 c2 c22 c4", &next);
	(void)snprintf(exact, sizeof exact, "limit=2&resourceVersion=%s", revision);
	list = check_list(&f, "n", exact, "c0 c1", &next);
	CHECK_STR(val_str(list, metadata, resourceVersion), revision);
	(void)check_list(&f, "n", query_with(&f, query, "resourceVersion=5&continue=", str_of(first)),
			 "! specifying resource version is not allowed when using continue", &next);

	/* with a selector nobody knows how many are left */
	list = check_list(&f, "n", "limit=1&labelSelector=par%3Deven", "c0", &next);
	CHECK(next.n && !val_has(list, metadata, remainingItemCount));
	read_fixture_done(&f);
}

/* What has left memory is read from the store, until the store has forgotten it. */
FIBER_TEST(list_of_a_compacted_revision)
{
	struct read_fixture f;
	char query[256], first[200];
	struct err err = ERR_INIT;
	str next;
	read_fixture_init(&f);
	put_five(&f);
	(void)check_list(&f, "n", "limit=2", "c0 c1", &next);
	(void)snprintf(first, sizeof first, STR_FMT, STR_ARG(next));
	int64_t newest = read_fixture_put(&f, STR("configmaps"), "n/c3", NULL);
	struct kind *kind = kinds_find(&f.server.kinds, STR(""), STR("configmaps"));
	kind->floor = newest; /* as if its events had left the window */
	struct val list = check_list(&f, "n", query_with(&f, query, "limit=2&continue=", str_of(first)), "c2 c3", &next);
	CHECK_INT(val_int(list, metadata, remainingItemCount), 1);

	CHECK_INT(store_compact(f.server.store, newest, &err), 0);
	struct val gone = check_list(&f, "n", query_with(&f, query, "limit=2&continue=", str_of(first)),
				     "! The provided continue parameter is too old to display a consistent list result. You can start a new "
				     "list without the continue parameter, or use the continue token in this response to retrieve the "
				     "remainder of the results. Continuing with the provided token results in an inconsistent list - "
				     "objects that were created, modified, or deleted between the time the first chunk was returned and now "
				     "may show up in the list.", &next);
	CHECK_STR(val_str(gone, reason), "Expired");
	CHECK_INT(val_int(gone, code), 410);
	next = val_str(gone, metadata, continue);
	(void)check_list(&f, "n", query_with(&f, query, "limit=2&continue=", next), "c2 c4", &next);
	read_fixture_done(&f);
}

FIBER_TEST(list_of_the_future)
{
	struct read_fixture f;
	str next;
	read_fixture_init(&f);
	put_five(&f);
	struct val status = check_list(&f, "n", "resourceVersion=99999999", "! Timeout: Too large resource version: 99999999, current: 7", &next);
	CHECK_INT(val_int(status, code), 504);
	CHECK_STR(testing_text(&f.arena, val_get(status, details)),
		  "{'causes':[{'reason':'ResourceVersionTooLarge','message':'Too large resource version'}],'retryAfterSeconds':1}");
	read_fixture_done(&f);
}

static str list_as(struct read_fixture *f, const char *query, const char *accept, size_t step)
{
	bool end;
	CHECK_INT(read_fixture_call(f, "LIST", "configmaps", "n", "", query, accept), 0);
	str text = arena_str(&f->arena, read_fixture_drain(f, step, &end));
	CHECK(end);
	read_fixture_stop(f);
	return text;
}

FIBER_TEST(list_forms)
{
	struct read_fixture f;
	read_fixture_init(&f);
	CHECK_STR(list_as(&f, "", NULL, 100),
		  "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}\n");
	CHECK_STR(list_as(&f, "", PARTIAL_LIST, 100), "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\","
						     "\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}\n");
	read_fixture_put(&f, STR("configmaps"), "n/a", "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'a'},'data':{'x':'<'}}");
	read_fixture_put(&f, STR("configmaps"), "n/b", "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'b'}}");
	CHECK_STR(list_as(&f, "", NULL, 1),
		  "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"3\"},\"items\":["
		  "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"2\"},\"data\":{\"x\":\"\\u003c\"}},"
		  "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"3\"}}]}\n");
	CHECK_STR(list_as(&f, "pretty=1&limit=1", NULL, 100),
		  "{\n  \"kind\": \"ConfigMapList\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n    \"resourceVersion\": \"3\",\n"
		  "    \"continue\": \"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Mywic3RhcnQiOiIvYVx1MDAwMCJ9\",\n    \"remainingItemCount\": 1\n  },\n"
		  "  \"items\": [\n    {\n      \"metadata\": {\n        \"name\": \"a\",\n        \"resourceVersion\": \"2\"\n      },\n"
		  "      \"data\": {\n        \"x\": \"\\u003c\"\n      }\n    }\n  ]\n}\n");
	CHECK_STR(list_as(&f, "fieldSelector=metadata.name%3Db", "application/yaml", 100),
		  "apiVersion: v1\nitems:\n- metadata:\n    name: b\n    resourceVersion: \"3\"\nkind: ConfigMapList\nmetadata:\n"
		  "  resourceVersion: \"3\"\n");
	CHECK_STR(list_as(&f, "", PARTIAL_LIST, 100),
		  "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"3\"},"
		  "\"items\":[{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"a\","
		  "\"resourceVersion\":\"2\"}},{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
		  "\"name\":\"b\",\"resourceVersion\":\"3\"}}]}\n");
	str table = list_as(&f, "includeObject=None", TABLE, 100);
	CHECK(str_find(table, STR("\"rows\":[{\"cells\":[\"a\",1,\"<unknown>\"],\"object\":null},{\"cells\":[\"b\",0,")) > 0 ||
	      str_find(table, STR("\"rows\":[{\"cells\":[\"a\",1,\"\\u003cunknown\\u003e\"],\"object\":null},")) > 0);
	CHECK(read_fixture_call(&f, "LIST", "configmaps", "n", "", "includeObject=Foo", TABLE) == -ERR_BAD_REQUEST);
	CHECK_STR(val_str(f.q.failure, message), "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": must be "
						 "'Metadata', 'Object', 'None', or empty");
	CHECK(read_fixture_call(&f, "LIST", "configmaps", "n", "", "",
				"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io") == -ERR_NOT_ACCEPTABLE);
	CHECK_STR(val_str(f.q.failure, message),
		  "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)");
	read_fixture_done(&f);
}

/* Both ways to make a list in protobuf can be read again. */
FIBER_TEST(list_in_protobuf)
{
	static const char *const accepts[] = {
		"application/vnd.kubernetes.protobuf",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
	};
	struct read_fixture f;
	read_fixture_init(&f);
	put_five(&f);
	for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
		const struct type *type;
		struct err err = ERR_INIT;
		struct val v;
		str bytes = list_as(&f, "limit=2", accepts[i], 5);
		if (proto_decode_object(&f.arena, bytes, &v, &type, &err) < 0)
			fail_msg("%d: %s", (int)i, err.msg);
		CHECK_ROW(i, type && val_len(val_get(v, items)) == 2 && val_int(v, metadata, remainingItemCount) == 3);
		CHECK_STR_ROW(i, val_str(val_at(val_get(v, items), 1), metadata, name), "c1");
	}
	read_fixture_done(&f);
}

FIBER_TEST(get_reads)
{
	struct read_fixture f;
	read_fixture_init(&f);
	put_five(&f);
	CHECK_INT(read_fixture_call(&f, "GET", "configmaps", "n", "c1", "", NULL), 0);
	CHECK_STR(f.q.answer.object->key, "n/c1");
	read_fixture_stop(&f);
	CHECK_INT(read_fixture_call(&f, "GET", "configmaps", "n", "c1", "resourceVersion=0", NULL), 0);
	read_fixture_stop(&f);
	CHECK(read_fixture_call(&f, "GET", "configmaps", "n", "nope", "", NULL) == -ERR_NOT_FOUND);
	CHECK_STR(val_str(f.q.failure, message), "configmaps \"nope\" not found");
	CHECK(read_fixture_call(&f, "GET", "configmaps", "n", "c1", "resourceVersion=abc", NULL) < 0);
	CHECK_STR(testing_text(&f.arena, f.q.failure),
		  "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure','message':'resourceVersion: Invalid value: \\'abc\\': "
		  "strconv.ParseUint: parsing \\'abc\\': invalid syntax','code':500}");
	read_fixture_done(&f);
}

TEST(continue_tokens)
{
	static const struct {
		const char *token, *want;
	} t[] = {
		{ "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTYzLCJzdGFydCI6Ii9jMVx1MDAwMCJ9", "" },
		{ "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYzEifQ", "" },
		{ "eyJ2IjoidjIiLCJydiI6MSwic3RhcnQiOiJhIn0", "continue key is not valid: server does not recognize this encoded version v2" },
		{ "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0",
		  "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)" },
		{ "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIifQ",
		  "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)" },
		{ "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi94In0", "continue key is not valid: ../x" },
		{ "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4Ly95In0", "continue key is not valid: x//y" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct list_token token;
		struct err err = ERR_INIT;
		int r = list_token_decode(&a, str_of(t[i].token), &token, &err);
		CHECK_STR_ROW(i, err_str(&err), t[i].want);
		CHECK_ROW(i, (r == 0) == !t[i].want[0]);
	}
	struct list_token token = { 963, { "c1", 3 } };
	CHECK_STR(list_token_encode(&a, &token), t[0].token);
	arena_done(&a);
}
