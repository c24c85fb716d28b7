#include "apiserver/encode.h"

#include "apiserver/read_fixture.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "codec/types.h"

#define META "v=v1;g=meta.k8s.io"

/* The answer to a GET of the one object, or "! " and why there is none. */
static str got(struct read_fixture *f, const char *query, const char *accept)
{
	struct err err = ERR_INIT;
	buf_reset(&f->text);
	CHECK_INT(read_fixture_call(f, "GET", "configmaps", "n", "a", query, accept), 0);
	int r = encode_object(&f->q, f->q.answer.object, false, &f->text, &err);
	if (r < 0)
		buf_addf(&f->text, "! " STR_FMT STR_FMT, STR_ARG(err_str(&err)), STR_ARG(val_str(f->q.failure, message)));
	read_fixture_stop(f);
	return buf_str(&f->text);
}

FIBER_TEST(object_forms)
{
	static const struct {
		const char *query, *accept, *want;
	} t[] = {
		{ "", NULL, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"2\"},"
			    "\"data\":{\"x\":\"1\"}}\n" },
		{ "pretty=true", NULL, "{\n  \"kind\": \"ConfigMap\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n    \"name\": \"a\",\n"
				       "    \"resourceVersion\": \"2\"\n  },\n  \"data\": {\n    \"x\": \"1\"\n  }\n}\n" },
		{ "", "application/yaml",
		  "apiVersion: v1\ndata:\n  x: \"1\"\nkind: ConfigMap\nmetadata:\n  name: a\n  resourceVersion: \"2\"\n" },
		{ "", "application/json;as=PartialObjectMetadata;" META,
		  "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"a\","
		  "\"resourceVersion\":\"2\"}}\n" },
		{ "", "application/json;as=PartialObjectMetadataList;" META,
		  "! you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)" },
		{ "includeObject=x", "application/json;as=Table;" META,
		  "! Unable to convert to Table as requested: includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', 'None', or "
		  "empty" },
	};
	struct read_fixture f;
	read_fixture_init(&f);
	read_fixture_put(&f, STR("configmaps"), "n/a", "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'a'},'data':{'x':'1'}}");
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, got(&f, t[i].query, t[i].accept), t[i].want);
	str table = got(&f, "includeObject=Object", "application/json;as=Table;" META);
	CHECK(str_starts(table, STR("{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"2\"},"
				    "\"columnDefinitions\":[{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",")));
	CHECK(str_ends(table, STR("\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
				  "\"resourceVersion\":\"2\"},\"data\":{\"x\":\"1\"}}}]}\n")));
	read_fixture_done(&f);
}

/* Both ways to protobuf give the same object. */
FIBER_TEST(object_in_protobuf)
{
	static const char *const accepts[] = {
		"application/vnd.kubernetes.protobuf",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;" META,
	};
	struct read_fixture f;
	read_fixture_init(&f);
	read_fixture_put(&f, STR("configmaps"), "n/a", "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'a'},'data':{'x':'1'}}");
	for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
		const struct type *type;
		struct err err = ERR_INIT;
		struct val v;
		str bytes = got(&f, "", accepts[i]);
		CHECK_ROW(i, proto_decode_object(&f.arena, bytes, &v, &type, &err) == 0);
		CHECK_STR_ROW(i, val_str(v, metadata, name), "a");
		CHECK_ROW(i, type == (i ? TYPE(meta_v1, PartialObjectMetadata) : TYPE(core_v1, ConfigMap)));
	}
	read_fixture_done(&f);
}

/* A list that was put together, as deletions of collections answer; a Status is never a table. */
FIBER_TEST(made_answers)
{
	struct read_fixture f;
	struct err err = ERR_INIT;
	read_fixture_init(&f);
	CHECK(read_fixture_call(&f, "GET", "configmaps", "n", "none", "includeObject=None", "application/json;as=Table;" META) < 0);
	struct val item = OBJECT(&f.arena, F(metadata, OBJECT(&f.arena, F(name, VAL_LIT("a")))));
	struct val list = OBJECT(&f.arena, F(kind, VAL_LIT("ConfigMapList")), F(apiVersion, VAL_LIT("v1")),
				 F(metadata, OBJECT(&f.arena, F(resourceVersion, VAL_LIT("5")))), F(items, LIST(&f.arena, item)));
	CHECK_INT(encode_val(&f.q, list, TYPE(core_v1, ConfigMapList), false, &f.text, &err), 0);
	CHECK(str_ends(buf_str(&f.text), STR("\"object\":null}]}\n")));
	buf_reset(&f.text);
	f.q.accept.as = AS_OBJECT;
	CHECK_INT(encode_val(&f.q, list, TYPE(core_v1, ConfigMapList), true, &f.text, &err), 0);
	CHECK_STR(buf_str(&f.text), "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\"},"
				    "\"items\":[{\"metadata\":{\"name\":\"a\"}}]}");
	buf_reset(&f.text);
	f.q.accept.as = AS_TABLE;
	CHECK_INT(encode_val(&f.q, f.q.failure, TYPE(meta_v1, Status), true, &f.text, &err), 0);
	CHECK(str_starts(buf_str(&f.text), STR("{\"kind\":\"Status\",")));
	read_fixture_done(&f);
}
