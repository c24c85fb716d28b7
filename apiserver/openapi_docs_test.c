#include <stdlib.h>
#include <zlib.h>

#include "apiserver/documents_priv.h"
#include "apiserver/documents_testing.h"
#include "apiserver/openapi_proto.h"
#include "base/fiber.h"
#include "base/loop.h"
#include "base/mem.h"
#include "codec/atoms.h"

static struct val decode(struct fixture *f, str text)
{
	struct val v = VAL_EMPTY;
	CHECK_INT(json_decode(&f->arena, text, &(struct json_decode_options){ 0 }, &v, &f->err), 0);
	return v;
}

TEST(openapi_v3_index_and_document)
{
	struct fixture f;
	fixture_init(&f);
	CHECK_INT(fixture_get(&f, "/openapi/v3", NULL), 0);
	CHECK_STR(f.q.answer.content_type, "text/plain; charset=utf-8");
	struct val paths = val_get(decode(&f, f.q.answer.bytes), paths);
	str url = val_str(val_find(paths, STR("apis/batch/v1")), serverRelativeURL), path, hash;
	CHECK(str_starts(url, STR("/openapi/v3/apis/batch/v1?hash=")));
	CHECK(val_exists(val_find(paths, STR("api"))) && val_exists(val_find(paths, STR("apis/batch"))));
	CHECK(!val_exists(val_find(paths, STR("apis/nope/v1"))));

	str_cut(url, '=', &path, &hash);
	CHECK_INT(fixture_get(&f, "/openapi/v3/apis/batch/v1", NULL), 0);
	CHECK_STR(f.q.answer.content_type, "application/json");
	CHECK(str_find(fixture_header(&f, "etag"), hash) == 1);
	CHECK(!fixture_header(&f, "content-encoding").n);
	struct val doc = decode(&f, f.q.answer.bytes);
	CHECK_STR(val_str(doc, info, version), "v1.36.4");
	CHECK(val_exists(val_find(val_get(doc, components, schemas), STR("io.k8s.api.batch.v1.JobSpec"))));

	/* With the hash it may be cached for ever; with another one the client is sent to the right one. */
	f.q.query = f.query;
	f.query[f.q.n_query++] = (struct query_parameter){ STR("hash"), hash };
	f.q.answer = (struct answer){ 0 };
	CHECK_INT(nonresource_handle(&f.q, &f.err), 0);
	CHECK_INT(f.q.answer.status, 200);
	CHECK_STR(fixture_header(&f, "cache-control"), "public, immutable");
	f.query[0].value = STR("0");
	f.q.answer = (struct answer){ 0 };
	CHECK_INT(nonresource_handle(&f.q, &f.err), 0);
	CHECK_INT(f.q.answer.status, 301);
	CHECK(str_eq(fixture_header(&f, "location"), url));
	fixture_done(&f);
}

TEST(openapi_unknown)
{
	static const struct { const char *path, *accept; int status; } t[] = {
		{ "/openapi/v3/apis/nope/v1", NULL, 404 }, { "/openapi/v3/", NULL, 404 }, { "/openapi/v2", "application/xml", 406 },
		{ "/openapi/v3/version", "application/xml", 406 }, { "/openapi/v3/version", "application/*", 200 },
	};
	struct fixture f;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_ROW(i, fixture_get(&f, t[i].path, t[i].accept) == 0);
		CHECK_ROW(i, f.q.answer.status == t[i].status);
		CHECK_ROW(i, (f.q.answer.bytes.n > 0) == (t[i].status == 200));
	}
	fixture_done(&f);
}

TEST(openapi_gzip_and_etag)
{
	struct fixture f;
	fixture_init(&f);
	CHECK_INT(fixture_get(&f, "/openapi/v3/apis/batch/v1", "application/json"), 0);
	str plain = f.q.answer.bytes, etag = fixture_header(&f, "etag");
	CHECK_INT(fixture_again(&f, "accept-encoding", STR("br, gzip;q=1")), 0);
	CHECK_STR(fixture_header(&f, "content-encoding"), "gzip");
	str packed = f.q.answer.bytes;
	char *out = arena_alloc(&f.arena, plain.n, 1);
	z_stream z = { .next_in = (Bytef *)packed.p, .avail_in = (uInt)packed.n, .next_out = (Bytef *)out, .avail_out = (uInt)plain.n };
	CHECK_INT(inflateInit2(&z, 31), Z_OK);
	CHECK_INT(inflate(&z, Z_FINISH), Z_STREAM_END);
	CHECK_INT(inflateEnd(&z), Z_OK);
	CHECK(packed.n * 4 < plain.n && str_eq(str_span(out, z.total_out), plain));

	CHECK_INT(fixture_again(&f, "if-none-match", arena_printf(&f.arena, "\"x\", W/" STR_FMT, STR_ARG(etag))), 0);
	CHECK_INT(f.q.answer.status, 304);
	fixture_done(&f);
}

/* The field of that number, of length-delimited ones the content; fails the test when it is not there. */
static str field(str message, unsigned number)
{
	while (message.n) {
		uint64_t tag[2] = { 0 };
		for (int i = 0; i < 2; i++) {
			unsigned shift = 0;
			unsigned char c;
			do {
				CHECK(message.n > 0);
				c = (unsigned char)message.p[0];
				tag[i] |= (uint64_t)(c & 0x7f) << shift;
				shift += 7;
				message = str_skip(message, 1);
			} while (c & 0x80);
		}
		size_t n = (tag[0] & 7) == 2 ? tag[1] : 0;
		CHECK(n <= message.n);
		if (tag[0] >> 3 == number)
			return str_head(message, n);
		message = str_skip(message, n);
	}
	CHECK(false);
	return STR_NONE;
}

TEST(openapi_protobuf)
{
	static const char text[] = "{\"swagger\":\"2.0\",\"info\":{\"title\":\"T\",\"version\":\"v1\"},\"paths\":{\"/p\":{\"get\":{\"operationId\":\"o\","
		"\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"type\":\"string\"}],\"responses\":{\"200\":{\"description\":\"OK\","
		"\"schema\":{\"$ref\":\"#/definitions/d\"}}}}}},\"definitions\":{\"d\":{\"type\":\"object\",\"properties\":{\"a\":{"
		"\"type\":\"array\",\"items\":{\"type\":\"string\"}}},\"x-kubernetes-group-version-kind\":[{\"group\":\"\"}]}}}";
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct val doc;

	CHECK_INT(json_decode(&a, str_of(text), &(struct json_decode_options){ 0 }, &doc, NULL), 0);
	CHECK_INT(openapi_proto_v2(doc, &b, NULL), 0);
	str all = buf_str(&b);
	CHECK_STR(field(all, 1), "2.0");
	CHECK_STR(field(field(all, 2), 1), "T");
	str path = field(field(all, 8), 2), get = field(field(path, 2), 2);
	CHECK_STR(field(path, 1), "/p");
	CHECK_STR(field(get, 5), "o");
	str query = field(field(field(field(get, 8), 1), 2), 3); /* item, parameter, non-body, query */
	CHECK_STR(field(query, 4), "q");
	CHECK_STR(field(query, 6), "string");
	str ok = field(field(get, 9), 1);
	CHECK_STR(field(ok, 1), "200");
	CHECK_STR(field(field(field(field(field(ok, 2), 1), 2), 1), 1), "#/definitions/d");
	str definition = field(field(all, 9), 1), schema = field(definition, 2);
	CHECK_STR(field(definition, 1), "d");
	CHECK_STR(field(field(schema, 22), 1), "object");
	CHECK_STR(field(field(schema, 31), 1), "x-kubernetes-group-version-kind");
	CHECK_STR(field(field(field(schema, 31), 2), 2), "[{\"group\":\"\"}]\n");
	str a_schema = field(field(field(schema, 25), 1), 2);
	CHECK_STR(field(field(field(field(a_schema, 23), 1), 22), 1), "string");
}

TEST(openapi_protobuf_v3)
{
	static const char text[] = "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"T\",\"version\":\"v1\"},\"paths\":{\"/p\":{\"post\":{"
		"\"parameters\":[{\"name\":\"q\",\"in\":\"query\",\"schema\":{\"type\":\"string\"}}],\"requestBody\":{\"content\":{\"*/*\":{"
		"\"schema\":{\"$ref\":\"#/components/schemas/d\"}}}},\"responses\":{\"200\":{\"description\":\"OK\"}}}}},"
		"\"components\":{\"schemas\":{\"d\":{\"type\":\"array\",\"items\":{\"allOf\":[{\"$ref\":\"#/components/schemas/e\"}],"
		"\"default\":{}},\"x-kubernetes-list-type\":\"set\"},\"e\":{\"default\":\"TCP\"}},"
		"\"securitySchemes\":{\"BearerToken\":{\"type\":\"apiKey\"}}}}";
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct val doc;

	CHECK_INT(json_decode(&a, str_of(text), &(struct json_decode_options){ 0 }, &doc, NULL), 0);
	CHECK_INT(openapi_proto_v3(doc, &b, NULL), 0);
	str all = buf_str(&b);
	CHECK_STR(field(all, 1), "3.0.0");
	CHECK_STR(field(field(all, 2), 6), "v1");
	str path = field(field(all, 4), 1), post = field(field(path, 2), 6);
	CHECK_STR(field(path, 1), "/p");
	str query = field(field(post, 6), 1);
	CHECK_STR(field(query, 1), "q");
	CHECK_STR(field(field(field(query, 10), 1), 25), "string");
	str media = field(field(field(field(post, 7), 1), 2), 1);
	CHECK_STR(field(media, 1), "*/*");
	CHECK_STR(field(field(field(field(media, 2), 1), 2), 1), "#/components/schemas/d");
	CHECK_STR(field(field(field(post, 8), 2), 1), "200");
	str first = field(field(field(all, 5), 1), 1), schema = field(field(first, 2), 1);
	CHECK_STR(field(first, 1), "d");
	CHECK_STR(field(schema, 25), "array");
	CHECK_STR(field(field(field(schema, 36), 2), 2), "\"set\"\n");
	str items = field(field(field(schema, 30), 1), 1);
	CHECK_STR(field(field(field(items, 26), 2), 1), "#/components/schemas/e");
	CHECK_STR(field(items, 33), "");
	CHECK_STR(field(field(field(all, 5), 7), 1), "\n\x0b" "BearerToken\x12\x0a\n\x08\n\x06" "apiKey");
}

TEST(openapi_v3_protobuf_answers)
{
	static const char *const accepts[] = { "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
					       "application/com.github.proto-openapi.spec.v3.v1.0+protobuf" };
	struct fixture f;
	fixture_init(&f);
	CHECK_INT(fixture_get(&f, "/openapi/v3/version", NULL), 0);
	str etag = fixture_header(&f, "etag");
	for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
		CHECK_INT(fixture_get(&f, "/openapi/v3/version", accepts[i]), 0);
		CHECK_STR(f.q.answer.content_type, accepts[1]);
		CHECK_STR(field(f.q.answer.bytes, 1), "3.0.0");
		CHECK(str_eq(fixture_header(&f, "etag"), etag));
	}
	fixture_done(&f);
}

TEST(openapi_v2)
{
	struct fixture f;
	fixture_init(&f);
	CHECK_INT(fixture_get(&f, "/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"), 0);
	CHECK_STR(f.q.answer.content_type, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
	str etag = fixture_header(&f, "etag");
	CHECK_STR(field(f.q.answer.bytes, 1), "2.0");
	CHECK_INT(fixture_get(&f, "/openapi/v2", NULL), 0);
	CHECK(str_eq(fixture_header(&f, "etag"), etag));
	CHECK_STR(val_str(decode(&f, f.q.answer.bytes), swagger), "2.0");
	fixture_done(&f);
}

/* Several who ask at once get the same document; the loop goes on meanwhile. */

static int ask(void *arg)
{
	struct fixture *f = arg;
	CHECK_INT(fixture_get(f, "/openapi/v3/apis/batch/v1", NULL), 0);
	return 0;
}

static int ask_together(void *arg)
{
	enum { N = 3 };
	struct fixture *main = arg, *fixtures = mem_zalloc(N * sizeof *fixtures);
	struct fiber *fibers[N];
	for (size_t i = 0; i < N; i++) {
		fixtures[i].other = &main->server;
		CHECK_INT(fiber_spawn(ask, &fixtures[i], &fibers[i], NULL, "asker %zu", i), 0);
	}
	main->server.options.profiling = true;
	CHECK_INT(fixture_get(main, "/debug/fibers", NULL), 0);
	CHECK(str_find(main->q.answer.bytes, STR("asker 2")) > 0);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(fiber_join(fibers[i], NULL, NULL), 0);
		CHECK(fixtures[i].q.answer.bytes.n > 1000);
		CHECK(str_eq(fixture_header(&fixtures[i], "etag"), fixture_header(&fixtures[0], "etag")));
	}
	for (size_t i = 0; i < N; i++)
		arena_done(&fixtures[i].arena);
	free(fixtures);
	return 0;
}

TEST(openapi_asked_together)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct fixture f;
	fixture_init(&f);
	CHECK_INT(loop_new("test", &loop, NULL), 0);
	CHECK_INT(loop_run(loop, ask_together, &f, NULL), 0);
	fixture_done(&f);
}
