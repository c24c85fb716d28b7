#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

static str encode(struct buf *b, struct val v, const struct type *type)
{
	struct json_encode_options opt = { .type = type };
	struct err err = ERR_INIT;

	buf_reset(b);
	return json_encode(b, v, &opt, &err) < 0 ? str_of(err.msg) : buf_str(b);
}

/* What val_canonical makes of a free tree is what the decoder makes of the text, in values and in words. */
TEST(canonical_equals_decoding)
{
	static const char *const t[] = {
		"{\"kind\":\"Pod\",\"spec\":{\"containers\":[{\"image\":\"i\",\"name\":\"n\",\"args\":[]}],\"nodeName\":\"\",\"priority\":0}}",
		"{\"spec\":{\"containers\":[null,{\"env\":[null]}]}}",
		"{\"metadata\":{\"labels\":{\"b\":\"1\",\"a\":null},\"annotations\":{},\"generation\":0}}",
		"{\"metadata\":{\"creationTimestamp\":\"2020-01-01T02:00:00+02:00\",\"deletionTimestamp\":null}}",
		"{\"metadata\":{\"creationTimestamp\":\"x\"}}",
		"{\"metadata\":{\"creationTimestamp\":5}}",
		"{\"metadata\":{\"generation\":1.5}}",
		"{\"metadata\":{\"generation\":\"1\"}}",
		"{\"metadata\":{\"managedFields\":[{\"fieldsV1\":{\"f:a\":{},\"k:{\\\"x\\\":1}\":{}}}]}}",
		"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":1,\"memory\":\"1024Ki\",\"x\":0.5,\"y\":null}}}]}}",
		"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":\"x\"}}}]}}",
		"{\"spec\":{\"containers\":[{\"livenessProbe\":{\"httpGet\":{\"port\":\"a\"},\"periodSeconds\":1}}]}}",
		"{\"spec\":{\"containers\":[{\"livenessProbe\":{\"httpGet\":{\"port\":true}}}]}}",
		"{\"spec\":{\"containers\":[{\"ports\":[{\"containerPort\":2147483648}]}]}}",
		"{\"spec\":{\"volumes\":[{\"emptyDir\":{},\"hostPath\":null}]}}",
		"{\"spec\":{\"foo\":1,\"containers\":[{\"bar\":{\"x\":1}}]},\"foo\":{}}",
		"{\"spec\":[]}",
		"{\"spec\":\"x\"}",
		"[]",
		"null",
		"5",
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf x = BUF_INIT(1 << 20), y = BUF_INIT(1 << 20);
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		static struct strict_errors strict, strict2; /* large */
		struct json_decode_options typed = { .type = TYPE(core_v1, Pod), .strict = &strict },
			free_tree = { .type = NULL };
		struct err err = ERR_INIT, err2 = ERR_INIT;
		struct val v, loose, w;
		strict.arena = strict2.arena = &a;
		strict.n = strict2.n = 0;
		int r = json_decode(&a, str_of(t[i]), &typed, &v, &err);
		CHECK_ROW(i, json_decode(&a, str_of(t[i]), &free_tree, &loose, NULL) == 0);
		CHECK_ROW(i, val_canonical(&a, loose, TYPE(core_v1, Pod), &strict2, &w, &err2) == r);
		CHECK_STR_ROW(i, err_str(&err2), err.msg);
		CHECK_ROW(i, strict.n == strict2.n);
		for (size_t k = 0; k < strict.n; k++)
			CHECK_ROW(i, str_eq(strict.text[k], strict2.text[k]));
		if (r < 0)
			continue;
		CHECK_ROW(i, val_equal(v, w));
		str want = encode(&y, v, TYPE(core_v1, Pod));
		CHECK_STR_ROW(i, encode(&x, w, TYPE(core_v1, Pod)), want.p);
	}
}

TEST(canonical_shares_and_is_stable)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = OBJECT(&a, F(spec, OBJECT(&a, F(nodeName, VAL_LIT("n")))),
				F(metadata, OBJECT(&a, F(name, VAL_LIT("p")))),
				F(kind, VAL_LIT("Pod")));
	struct val once, twice;

	CHECK(val_canonical(&a, pod, TYPE(core_v1, Pod), NULL, &once, NULL) == 0);
	CHECK(once.members[0].key == A_kind && once.members[1].key == A_metadata && once.members[2].key == A_spec);
	CHECK(val_str(once, spec, nodeName).p == val_str(pod, spec, nodeName).p);
	CHECK(val_canonical(&a, once, TYPE(core_v1, Pod), NULL, &twice, NULL) == 0);
	CHECK(val_equal(once, twice));
}

/* Texts that are kept in the tree must live as long as the tree, also those made of numbers. */
TEST(canonical_numbers_as_quantities)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val list = OBJECT(&a, F(limits, OBJECT(&a, F(cpu, val_of_int(2)), F(memory, val_of_double(1.5)))));
	struct val v;

	CHECK(val_canonical(&a, list, TYPE(core_v1, ResourceRequirements), NULL, &v, NULL) == 0);
	CHECK_STR(encode(&b, v, TYPE(core_v1, ResourceRequirements)),
		  "{\"limits\":{\"cpu\":\"2\",\"memory\":\"1500m\"}}");
}

TEST(canonical_depth)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val v = VAL_EMPTY_OBJECT, out;

	for (int i = 0; i < VAL_MAX_DEPTH + 1; i++)
		v = OBJECT(&a, F(not, v));
	CHECK(val_canonical(&a, v, TYPE(apiextensions_v1, JSONSchemaProps), NULL, &out, &err) == -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "exceeded max depth");
}

static struct val decode_pod(struct arena *a, const char *text)
{
	struct json_decode_options typed = { .type = TYPE(core_v1, Pod) };
	struct val v;
	CHECK(json_decode(a, str_of(text), &typed, &v, NULL) == 0);
	return v;
}

/* What an edit left alone is shared, the rest is brought into the form that a full pass gives it. */
TEST(canonical_edit_equals_a_full_pass)
{
	CLEANUP(buf_done) struct buf x = BUF_INIT(1 << 20), y = BUF_INIT(1 << 20);
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct arena *a = &arena;
	const struct type *type = TYPE(core_v1, Pod);
	struct val pod = decode_pod(a, "{\"metadata\":{\"name\":\"p\",\"labels\":{\"b\":\"2\"}},\"spec\":{\"containers\":"
				       "[{\"name\":\"c\",\"image\":\"i\"},{\"name\":\"d\"}],\"nodeName\":\"n\"}}");
	struct val containers = val_get(pod, spec, containers), first = val_at(containers, 0);
	struct val changed = val_put(a, first, A_command, LIST(a, VAL_LIT("x")));
	const struct val t[] = {
		pod,
		val_with(a, pod, VAL_LIT("kind"), kind),
		val_with(a, pod, VAL_LIT("uid"), metadata, uid),
		val_with(a, pod, VAL_LIT(""), spec, nodeName),
		val_with(a, pod, val_put(a, val_get(pod, metadata, labels), A_apiVersion, VAL_LIT("1")), metadata, labels),
		val_with(a, pod, val_list_set(a, containers, 0, changed), spec, containers),
		val_with(a, pod, val_list_remove(a, containers, 0), spec, containers),
		val_with(a, pod, val_list_append(a, containers, first), spec, initContainers),
		val_with(a, pod, val_of_int(0), spec, priority),
		val_with(a, pod, OBJECT(a, F(memory, VAL_LIT("1024Ki"))), spec, overhead),
		val_with(a, pod, VAL_LIT("x"), spec, priority),
		val_without(a, pod, spec, containers),
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT, err2 = ERR_INIT;
		struct val full, edited;
		int r = val_canonical(a, t[i], type, NULL, &full, &err);
		CHECK_ROW(i, val_canonical_edit(a, t[i], pod, type, &edited, &err2) == r);
		CHECK_STR_ROW(i, err_str(&err2), err.msg);
		if (r == 0)
			CHECK_ROW(i, str_eq(encode(&x, full, NULL), encode(&y, edited, NULL)));
	}
	struct val same, moved;
	CHECK(val_canonical_edit(a, pod, pod, type, &same, NULL) == 0 && val_same(same, pod));
	CHECK(val_canonical_edit(a, t[2], pod, type, &moved, NULL) == 0);
	CHECK(val_same(val_get(moved, spec), val_get(pod, spec)));
}

/* A message of proto3 that is there and empty says something: user 0, the default profile. No step on any way may drop it. */
TEST(canonical_keeps_empty_messages)
{
	static const struct { const char *type, *in, *out; } t[] = {
		{ "cri/v1.LinuxContainerSecurityContext",
		  "{\"runAsUser\":{\"value\":0},\"seccomp\":{\"profileType\":\"RuntimeDefault\"},\"apparmor\":{}}",
		  "{\"runAsUser\":{},\"seccomp\":{},\"apparmor\":{}}" },
		{ "cri/v1.LinuxContainerSecurityContext",
		  "{\"runAsUser\":null,\"readonlyRootfs\":false,\"supplementalGroups\":[],\"noNewPrivs\":false}", "{}" },
		{ "runtimestore/v1.Container", "{\"id\":\"\",\"config\":{\"linux\":{\"securityContext\":{\"runAsUser\":{}}}}}",
		  "{\"config\":{\"linux\":{\"securityContext\":{\"runAsUser\":{}}}}}" },
		{ "etcdserverpb.Compare", "{\"version\":0,\"rangeEnd\":\"\"}", "{\"version\":0}" },
		{ "etcdserverpb.RequestOp", "{\"requestTxn\":{}}", "{\"requestTxn\":{}}" },
		{ "core/v1.Volume", "{\"name\":\"n\",\"emptyDir\":{\"medium\":\"\"}}", "{\"name\":\"n\",\"emptyDir\":{}}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		const struct type *type = schema_type(str_of(t[i].type));
		struct json_decode_options typed = { .type = type }, free_tree = { .type = NULL };
		struct val read, loose, tidy, wire;
		CHECK_ROW(i, json_decode(&a, str_of(t[i].in), &typed, &read, NULL) == 0);
		CHECK_STR_ROW(i, encode(&b, read, NULL), t[i].out);
		CHECK_STR_ROW(i, encode(&b, read, type), t[i].out);
		CHECK_ROW(i, json_decode(&a, str_of(t[i].in), &free_tree, &loose, NULL) == 0);
		CHECK_ROW(i, val_canonical(&a, loose, type, NULL, &tidy, NULL) == 0);
		CHECK_STR_ROW(i, encode(&b, tidy, NULL), t[i].out);
		buf_reset(&b);
		CHECK_ROW(i, proto_encode(&b, tidy, type, NULL) == 0);
		CHECK_ROW(i, proto_decode(&a, arena_str(&a, buf_str(&b)), type, &wire, NULL) == 0);
		CHECK_STR_ROW(i, encode(&b, wire, NULL), t[i].out);
	}
}
