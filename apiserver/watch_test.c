#include "apiserver/watch.h"

#include "apiserver/read_fixture.h"
#include "base/clock.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/testing.h"

#define CONFIG_MAP(name, labels, x) \
	"{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'" name "','labels':{" labels "}},'data':{'x':'" x "'}}"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"
#define PARTIAL "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

static void watch(struct read_fixture *f, const char *query, const char *accept)
{
	int r = read_fixture_call(f, "WATCH", "configmaps", "n", "", query, accept);
	if (r < 0)
		fail_msg(STR_FMT, STR_ARG(val_str(f->q.failure, message)));
}

/* What comes now as "TYPE name revision x", one per word group; "." at the end of the stream. */
static str events(struct read_fixture *f, size_t step)
{
	struct buf b = BUF_INIT(1 << 16);
	bool end;
	str text = arena_str(&f->arena, read_fixture_drain(f, step, &end)), line;
	while (text.n) {
		struct err err = ERR_INIT;
		struct val v;
		str_cut(text, '\n', &line, &text);
		if (json_decode(&f->arena, line, &(struct json_decode_options){ 0 }, &v, &err) < 0)
			fail_msg("%s in " STR_FMT, err.msg, STR_ARG(line));
		struct val o = val_get(v, object);
		if (b.n)
			buf_add(&b, STR(", "));
		buf_addf(&b, STR_FMT " " STR_FMT STR_FMT " " STR_FMT STR_FMT, STR_ARG(val_str(v, type)), STR_ARG(val_str(o, metadata, name)),
			 STR_ARG(val_str(o, message)), STR_ARG(val_str(o, metadata, resourceVersion)), STR_ARG(val_str(o, data, x)));
	}
	if (end)
		buf_addc(&b, '.');
	str s = arena_str(&f->arena, buf_str(&b));
	buf_done(&b);
	return s;
}

FIBER_TEST(watch_follows)
{
	struct read_fixture f;
	read_fixture_init(&f);
	read_fixture_put(&f, STR("configmaps"), "n/a", CONFIG_MAP("a", "'t':'1'", "1"));
	watch(&f, "", NULL);
	CHECK_STR(events(&f, 3), "ADDED a 21");
	CHECK_STR(events(&f, 3), "");
	read_fixture_put(&f, STR("configmaps"), "n/a", CONFIG_MAP("a", "'t':'1'", "2"));
	read_fixture_put(&f, STR("configmaps"), "other/b", CONFIG_MAP("b", "", "1"));
	read_fixture_put(&f, STR("configmaps"), "n/b", CONFIG_MAP("b", "", "1"));
	CHECK_STR(events(&f, 500), "MODIFIED a 32, ADDED b 51");
	read_fixture_put(&f, STR("configmaps"), "n/a", NULL);
	CHECK_STR(events(&f, 1), "DELETED a 62");
	f.server.stopping = true;
	watches_end(&f.server);
	CHECK_STR(events(&f, 10), ".");
	read_fixture_stop(&f);
	f.server.stopping = false;

	watch(&f, "resourceVersion=2", NULL);
	CHECK_STR(events(&f, 100), "MODIFIED a 32, ADDED b 51, DELETED a 62");
	read_fixture_stop(&f);
	watch(&f, "resourceVersion=0", NULL);
	CHECK_STR(events(&f, 100), "ADDED b 51");
	read_fixture_stop(&f);
	watch(&f, "resourceVersion=99999999", NULL);
	CHECK_STR(events(&f, 100), "");
	read_fixture_stop(&f);
	watch(&f, "resourceVersion=2&fieldSelector=metadata.name%3Db", NULL);
	CHECK_STR(events(&f, 100), "ADDED b 51");
	read_fixture_stop(&f);
	watch(&f, "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=3", NULL);
	CHECK_STR(events(&f, 100), "ADDED b 51, DELETED a 62");
	read_fixture_stop(&f);
	read_fixture_done(&f);
}

/* An object that comes into a selection or leaves it is added or deleted there, with the state that the selection knew. */
FIBER_TEST(watch_selects)
{
	struct read_fixture f;
	read_fixture_init(&f);
	watch(&f, "labelSelector=t%3D1", NULL);
	CHECK_STR(events(&f, 100), "");
	read_fixture_put(&f, STR("configmaps"), "n/a", CONFIG_MAP("a", "'t':'1'", "in"));
	read_fixture_put(&f, STR("configmaps"), "n/a", CONFIG_MAP("a", "'t':'2'", "out"));
	read_fixture_put(&f, STR("configmaps"), "n/a", CONFIG_MAP("a", "'t':'2'", "far"));
	read_fixture_put(&f, STR("configmaps"), "n/a", CONFIG_MAP("a", "'t':'1'", "back"));
	CHECK_STR(events(&f, 100), "ADDED a 2in, DELETED a 3in, ADDED a 5back");
	read_fixture_put(&f, STR("configmaps"), "n/a", NULL);
	CHECK_STR(events(&f, 100), "DELETED a 6back");
	read_fixture_stop(&f);
	read_fixture_done(&f);
}

FIBER_TEST(watch_marks_the_end_of_the_state)
{
	struct read_fixture f;
	bool end;
	read_fixture_init(&f);
	read_fixture_put(&f, STR("configmaps"), "n/a", "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'a'}}");
	watch(&f, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", NULL);
	CHECK_STR(read_fixture_drain(&f, 9, &end),
		  "{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
		  "\"resourceVersion\":\"2\"}}}\n"
		  "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"2\","
		  "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n");
	read_fixture_stop(&f);
	watch(&f, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", NULL);
	CHECK_STR(events(&f, 100), "ADDED a 2");
	read_fixture_stop(&f);
	watch(&f, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99", NULL);
	CHECK_STR(events(&f, 100), "ERROR Timeout: Too large resource version: 99, current: 2 .");
	read_fixture_stop(&f);
	read_fixture_done(&f);
}

FIBER_TEST(watch_refuses)
{
	static const struct {
		const char *query, *message;
		int code;
	} t[] = {
		{ "sendInitialEvents=true", "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents "
					    "requires setting resourceVersionMatch to NotOlderThan", 422 },
		{ "resourceVersion=885&resourceVersionMatch=Exact",
		  "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
		  "unless sendInitialEvents is provided, resourceVersionMatch: Unsupported value: \"Exact\": supported values: "
		  "\"NotOlderThan\"]", 422 },
		{ "resourceVersion=1&resourceVersionMatch=NotOlderThan",
		  "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
		  "unless sendInitialEvents is provided", 422 },
		{ "continue=x", "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden "
				"when continue is provided", 422 },
		{ "resourceVersion=abc", "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax", 500 },
		{ "timeoutSeconds=x", "strconv.ParseInt: parsing \"x\": invalid syntax", 400 },
	};
	struct read_fixture f;
	read_fixture_init(&f);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_ROW(i, read_fixture_call(&f, "WATCH", "configmaps", "n", "", t[i].query, NULL) < 0);
		CHECK_STR_ROW(i, val_str(f.q.failure, message), t[i].message);
		CHECK_ROW(i, val_int(f.q.failure, code) == t[i].code);
	}
	CHECK(read_fixture_call(&f, "WATCH", "configmaps", "n", "b", "fieldSelector=metadata.name%3Dc", NULL) < 0);
	CHECK_STR(val_str(f.q.failure, message), "fieldSelector metadata.name doesn't match requested name");
	/* what is too old is told by an event */
	read_fixture_put(&f, STR("configmaps"), "n/a", CONFIG_MAP("a", "", "1"));
	kinds_find(&f.server.kinds, STR(""), STR("configmaps"))->floor = 2;
	watch(&f, "resourceVersion=1", NULL);
	CHECK_STR(events(&f, 100), "ERROR too old resource version: 1 (2) .");
	read_fixture_stop(&f);
	read_fixture_done(&f);
}

FIBER_TEST(watch_forms)
{
	struct read_fixture f;
	bool end;
	read_fixture_init(&f);
	read_fixture_put(&f, STR("configmaps"), "n/a", "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'a'},'data':{'x':'1'}}");
	read_fixture_put(&f, STR("configmaps"), "n/b", "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'b'}}");
	watch(&f, "", PARTIAL);
	CHECK(str_starts(read_fixture_drain(&f, 100, &end),
			 STR("{\"type\":\"ADDED\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
			     "\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"2\"}}}\n")));
	read_fixture_stop(&f);
	watch(&f, "includeObject=None", TABLE);
	str text = read_fixture_drain(&f, 100, &end);
	CHECK(str_starts(text, STR("{\"type\":\"ADDED\",\"object\":{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
				   "\"resourceVersion\":\"2\"},\"columnDefinitions\":[{\"name\":\"Name\",")));
	CHECK(str_find(text, STR("\"metadata\":{\"resourceVersion\":\"3\"},\"columnDefinitions\":null,\"rows\":[{\"cells\":[\"b\",0,")) > 0);
	read_fixture_stop(&f);
	read_fixture_done(&f);
}

FIBER_TEST(watch_in_protobuf)
{
	struct read_fixture f;
	struct err err = ERR_INIT;
	const struct type *type;
	struct val v;
	bool end;
	read_fixture_init(&f);
	read_fixture_put(&f, STR("configmaps"), "n/a", "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'a'}}");
	watch(&f, "", "application/vnd.kubernetes.protobuf;stream=watch");
	str frame = arena_str(&f.arena, read_fixture_drain(&f, 4, &end));
	CHECK(frame.n > 20 && frame.p[0] == 0 && frame.p[1] == 0 && (unsigned char)frame.p[3] == frame.n - 4);
	CHECK(str_starts(str_skip(frame, 4), STR("\n\x05" "ADDED\x12")));
	ptrdiff_t envelope = str_find(frame, STR("k8s\0"));
	CHECK(envelope > 0);
	CHECK_INT(proto_decode_object(&f.arena, str_skip(frame, (size_t)envelope), &v, &type, &err), 0);
	CHECK_STR(val_str(v, metadata, name), "a");
	read_fixture_stop(&f);
	read_fixture_done(&f);
}

/* Bookmarks come every minute and before the end. */
FIBER_TEST(watch_times)
{
	struct read_fixture f;
	read_fixture_init(&f);
	watch(&f, "allowWatchBookmarks=true&resourceVersion=1&timeoutSeconds=1", NULL);
	CHECK_STR(events(&f, 100), "");
	CHECK_INT(fiber_sleep_ms(1100, NULL), 0);
	CHECK_STR(events(&f, 100), ".");
	read_fixture_stop(&f);
	watch(&f, "allowWatchBookmarks=true&resourceVersion=1&timeoutSeconds=3", NULL);
	CHECK_STR(events(&f, 100), "");
	read_fixture_put(&f, STR("secrets"), "n/s", "{'kind':'Secret','apiVersion':'v1','metadata':{'name':'s'}}");
	CHECK_INT(fiber_sleep_ms(1200, NULL), 0);
	CHECK_STR(events(&f, 100), "BOOKMARK  2");
	read_fixture_stop(&f);
	read_fixture_done(&f);
}
