/*
 * Protobuf messages. The first byte chooses the type, the rest is the message. What decodes must encode, and the encoded form must
 * lead back to itself.
 */
#include "codec/codec.h"
#include "codec/types.h"
#include "fuzz/fuzz.h"

enum { INPUT_MAX = 64 * 1024, ENCODED_MAX = 64 * 1024 * 1024 };

/* The first encoding may still differ from the later ones: raw JSON is normalised, bytes that are no UTF-8 take two rounds. */
static void check_tree(struct arena *a, struct val v, const struct type *type)
{
	enum { ROUNDS = 3 };
	struct buf bytes[ROUNDS];
	CLEANUP(buf_done) struct buf json = BUF_INIT(ENCODED_MAX);

	(void)json_encode(&json, v, &(struct json_encode_options){ .type = type }, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		buf_init(&bytes[i], ENCODED_MAX);
		check(proto_encode(&bytes[i], v, type, NULL) == 0, "what was decoded can be encoded");
		check(proto_decode(a, buf_str(&bytes[i]), type, &v, NULL) == 0, "what was encoded can be decoded");
	}
	check(str_eq(buf_str(&bytes[ROUNDS - 2]), buf_str(&bytes[ROUNDS - 1])), "encoding is stable");
	for (int i = 0; i < ROUNDS; i++)
		buf_done(&bytes[i]);
}

static void check_object(struct arena *a, str input)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(ENCODED_MAX);
	const struct type *type, *same;
	struct val v;

	if (proto_decode_object(a, input, &v, &type, NULL) < 0)
		return;
	check(proto_encode_object(&bytes, v, type, NULL) == 0, "a decoded object can be encoded");
	check(proto_decode_object(a, buf_str(&bytes), &v, &same, NULL) == 0, "an encoded object can be decoded");
	check(type == same, "an object keeps its type");
	check_tree(a, v, type);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct type *const types[] = {
		TYPE(core_v1, Pod), TYPE(core_v1, ConfigMap), TYPE(core_v1, Node), TYPE(meta_v1, ObjectMeta),
		TYPE(meta_v1, WatchEvent), TYPE(apps_v1, Deployment), TYPE(apps_v1, ControllerRevision),
		TYPE(apiextensions_v1, JSONSchemaProps), TYPE(coordination_v1, LeaseSpec), TYPE(authentication_v1, UserInfo),
		TYPE(policy_v1, PodDisruptionBudgetStatus), TYPE(etcdserverpb, TxnRequest), TYPE(etcdserverpb, WatchResponse),
		TYPE(cri_v1, PodSandboxConfig), TYPE(cri_v1, ContainerStats),
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v;

	if (n == 0 || n > INPUT_MAX)
		return 0;
	str rest = str_span((const char *)data + 1, n - 1);
	if (data[0] >= ARRAY_LEN(types))
		check_object(&a, str_span((const char *)data, n));
	else if (proto_decode(&a, rest, types[data[0]], &v, NULL) == 0)
		check_tree(&a, v, types[data[0]]);
	return 0;
}
