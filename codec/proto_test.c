#include "codec/proto.h"

#include "base/encoding.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"

static str unhex(struct arena *a, const char *hex)
{
	str in = str_of(hex);
	char *out = arena_alloc(a, in.n / 2 + 1, 1);
	size_t n = 0;
	CHECK(hex_decode(out, in, &n, NULL) == 0);
	return str_span(out, n);
}

static const char *to_hex(struct arena *a, str bytes)
{
	char *out = arena_alloc(a, bytes.n * 2 + 1, 1);
	out[hex_encode(out, bytes)] = '\0';
	return out;
}

/* The tree as it is, whatever its type. */
static str tree_text(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	CHECK(json_encode(&b, v, &(struct json_encode_options){ .plain = true }, NULL) == 0);
	return arena_str(a, buf_str(&b));
}

static str encode(struct arena *a, struct val v, const struct type *type)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 24);
	struct err err = ERR_INIT;
	if (proto_encode(&b, v, type, &err) < 0)
		fail_msg("%s", err.msg);
	return arena_str(a, buf_str(&b));
}

/* Bytes as Kubernetes writes them, and their tree: both directions. */
TEST(proto_canonical)
{
	static const struct {
		const char *type, *hex, *tree;
	} t[] = {
		{ "core/v1.KeyToPath", "0a016b120170", "{\"key\":\"k\",\"path\":\"p\"}" },
		{ "core/v1.KeyToPath", "0a0012001800", "{\"mode\":0}" },
		{ "core/v1.KeyToPath", "0a00120018ffffffffffffffffff01", "{\"mode\":-1}" },
		{ "core/v1.ContainerPort", "0a00100018903f22035443502a00", "{\"containerPort\":8080,\"protocol\":\"TCP\"}" },
		{ "core/v1.ContainerPort", "0a001000180022002a00", "{}" },
		{ "core/v1.SecurityContext", "1000208080808080808080402801",
		  "{\"privileged\":false,\"runAsUser\":4611686018427387904,\"runAsNonRoot\":true}" },
		{ "core/v1.PodSecurityContext", "2001200020feffffffffffffffff01", "{\"supplementalGroups\":[1,0,-2]}" },
		{ "core/v1.PodSecurityContext", "10003a060a01611201623a040a001200",
		  "{\"runAsUser\":0,\"sysctls\":[{\"name\":\"a\",\"value\":\"b\"},{}]}" },
		{ "meta/v1.Condition", "0a0552656164791204547275651807220808e581e59d0410002a003200",
		  "{\"type\":\"Ready\",\"status\":\"True\",\"observedGeneration\":7,\"lastTransitionTime\":\"2006-01-02T15:04:05Z\"}" },
		{ "meta/v1.Condition", "0a001200180022002a003200", "{}" },
		{ "meta/v1.Condition", "0a0012001800220d08ffffffffffffffffff0110002a003200",
		  "{\"lastTransitionTime\":\"1969-12-31T23:59:59Z\"}" },
		{ "coordination/v1.LeaseSpec", "0a026d65100f1a0b08e581e59d04108094ef3a2800",
		  "{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,\"acquireTime\":\"2006-01-02T15:04:05.123456Z\",\"leaseTransitions\":0}" },
		{ "metrics/v1beta1.NodeMetrics", "0a100a0012001a0022002a0032003800420012001a07088088aca3cf02",
		  "{\"window\":\"1m30s\"}" },
		{ "metrics/v1beta1.NodeMetrics", "0a100a0012001a0022002a0032003800420012001a020800", "{}" },
		{ "apps/v1.ControllerRevision", "0a100a0012001a0022002a0032003800420012180a167b2262223a5b312c6e756c6c5d2c2261223a223c227d1802",
		  "{\"data\":{\"b\":[1,null],\"a\":\"<\"},\"revision\":2}" },
		{ "apps/v1.ControllerRevision", "0a100a0012001a0022002a0032003800420012001800", "{}" },
		{ "core/v1.Secret", "0a100a0012001a0022002a0032003800420012070a0161120200ff12050a016212001a064f7061717565",
		  "{\"data\":{\"a\":\"AP8=\",\"b\":\"\"},\"type\":\"Opaque\"}" },
		{ "core/v1.ResourceRequirements", "0a0d0a0363707512060a043530306d0a0f0a066d656d6f727912050a03314769120a0a0363707512030a0130",
		  "{\"limits\":{\"cpu\":\"500m\",\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"0\"}}" },
		{ "apps/v1.RollingUpdateDeployment", "0a09080110001a033235251206080010001a00",
		  "{\"maxUnavailable\":\"25%\",\"maxSurge\":0}" },
		{ "core/v1.HTTPGetAction", "0a012f120f080010b0ffffffffffffffff011a001a0022002a050a01611200",
		  "{\"path\":\"/\",\"port\":-80,\"httpHeaders\":[{\"name\":\"a\"}]}" },
		{ "core/v1.HTTPGetAction", "0a001206080010001a001a002200", "{}" },
		{ "meta/v1.ManagedFieldsEntry", "0a016d12065570646174651a02763132084669656c647356313a0c0a0a7b22663a61223a7b7d7d4200",
		  "{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:a\":{}}}" },
		{ "authentication/v1.UserInfo", "0a017512001a01671a00220b0a016112060a01780a017922050a01621200",
		  "{\"username\":\"u\",\"groups\":[\"g\",\"\"],\"extra\":{\"a\":[\"x\",\"y\"],\"b\":[]}}" },
		{ "meta/v1.APIResource", "0a04706f647310011a03506f64220b0a036765740a046c697374320042004a005200",
		  "{\"name\":\"pods\",\"namespaced\":true,\"kind\":\"Pod\",\"verbs\":[\"get\",\"list\"]}" },
		{ "meta/v1.APIResource", "0a0010001a002200320042004a005200", "{\"verbs\":[]}" },
		{ "core/v1.ConfigMapKeySelector", "0a040a02636d12036b65791801", "{\"name\":\"cm\",\"key\":\"key\",\"optional\":true}" },
		{ "core/v1.ConfigMapKeySelector", "0a020a001200", "{}" },
		{ "policy/v1.PodDisruptionBudgetStatus", "080012050a0161120012090a01621204080010001800200028003000",
		  "{\"disruptedPods\":{\"a\":null,\"b\":\"1970-01-01T00:00:00Z\"}}" },
		{ "core/v1.Affinity", "0a001200", "{\"nodeAffinity\":{},\"podAffinity\":{}}" },
		{ "admissionregistration/v1.WebhookClientConfig", "120300ff101a0175", "{\"url\":\"u\",\"caBundle\":\"AP8Q\"}" },
		{ "apiextensions/v1.JSONSchemaProps", "0a00120022002a0032003a00500060007a00900100a80200b80200c00200", "{}" },
		{ "apiextensions/v1.JSONSchemaProps", "0a00120022002a0032003a0049000000000000f83f500059000000000000000060007a00900100a80200b80200c00200",
		  "{\"maximum\":1.5,\"minimum\":0}" },
		{ "apiextensions/v1.JSONSchemaProps", "0a00120022002a0032003a0042030a0135500060007a00900100a201050a03226122a20100a80200b80200c00200",
		  "{\"default\":5,\"enum\":[\"a\",null]}" },
		{ "apiextensions/v1.JSONSchemaProps", "0a00120022002a0032003a00500060007a00900100c201260a240a00120022002a06737472696e6732003a00500060007a00900100a80200b80200c00200a80200b80200c00200",
		  "{\"items\":{\"type\":\"string\"}}" },
		{ "apiextensions/v1.JSONSchemaProps", "0a00120022002a0032003a00500060007a00900100c2014612240a00120022002a06737472696e6732003a00500060007a00900100a80200b80200c00200121e0a00120022002a0032003a00500060007a00900100a80200b80200c00200a80200b80200c00200",
		  "{\"items\":[{\"type\":\"string\"},{}]}" },
		{ "apiextensions/v1.JSONSchemaProps", "0a00120022002a0032003a00500060007a00900100f2010208008a02020801a80200b80200c00200",
		  "{\"additionalProperties\":false,\"additionalItems\":true}" },
		{ "apiextensions/v1.JSONSchemaProps", "0a00120022002a0032003a00500060007a00900100f201230801121f0a00120022002a017832003a00500060007a00900100a80200b80200c00200a80200b80200c00200",
		  "{\"additionalProperties\":{\"type\":\"x\"}}" },
		{ "apiextensions/v1.JSONSchemaProps", "0a00120022002a0032003a00500060007a0090010082020b0a016112061201701201718202250a016212200a1e0a00120022002a0032003a00500060007a00900100a80200b80200c002008202050a01631200a80200b80200c00200",
		  "{\"dependencies\":{\"a\":[\"p\",\"q\"],\"b\":{},\"c\":null}}" },
		{ "apiextensions/v1.JSONSchemaProps", "0a00120022002a0032003a00500060007a00900100e2013f0a00120022002a0032003a00500060007a00900100e2011e0a00120022002a0032003a00500060007a00900100a80200b80200c00200a80200b80200c00200ea01240a0161121f0a00120022002a017832003a00500060007a00900100a80200b80200c00200ea01230a0162121e0a00120022002a0032003a00500060007a00900100a80200b80200c00200a80200b80200c00200",
		  "{\"not\":{\"not\":{}},\"properties\":{\"a\":{\"type\":\"x\"},\"b\":{}}}" },
		{ "etcdserverpb.Compare", "080210021a016b3000",
		  "{\"result\":\"LESS\",\"target\":\"MOD\",\"key\":\"k\",\"modRevision\":0}" },
		{ "etcdserverpb.Compare", "084d3a00", "{\"result\":77,\"value\":\"\"}" },
		{ "etcdserverpb.Compare", "8204017a", "{\"rangeEnd\":\"z\"}" },
		{ "etcdserverpb.WatchCreateRequest", "0a016b20012a03000109",
		  "{\"key\":\"k\",\"progressNotify\":true,\"filters\":[\"NOPUT\",\"NODELETE\",9]}" },
		{ "etcdserverpb.RequestOp", "1200", "{\"requestPut\":{}}" },
		{ "etcdserverpb.RequestOp", "0a050a016b180a", "{\"requestRange\":{\"key\":\"k\",\"limit\":10}}" },
		{ "etcdserverpb.ResponseHeader", "08ffffffffffffffffff011805", "{\"clusterId\":-1,\"revision\":5}" },
		{ "cri/v1.LinuxSandboxSecurityContext", "0a001a002a0300ac02",
		  "{\"namespaceOptions\":{},\"runAsUser\":{},\"supplementalGroups\":[0,300]}" },
		{ "cri/v1.NamespaceOption", "1002220174", "{\"pid\":\"NODE\",\"targetId\":\"t\"}" },
		{ "cri/v1.PodSandboxMetadata", "0a016e20ffffffff0f", "{\"name\":\"n\",\"attempt\":4294967295}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		const struct type *type = schema_type(str_of(t[i].type));
		struct val v;
		CHECK_ROW(i, type != NULL);
		CHECK_ROW(i, proto_decode(&a, unhex(&a, t[i].hex), type, &v, NULL) == 0);
		CHECK_STR_ROW(i, tree_text(&a, v), t[i].tree);
		CHECK_STR_ROW(i, str_of(to_hex(&a, encode(&a, v, type))), t[i].hex);
	}
}

/* What others may send: any order, repeated and unknown fields, packed or not, absent parts. */
TEST(proto_decode_loose)
{
	static const struct {
		const char *type, *hex, *tree;
	} t[] = {
		{ "core/v1.KeyToPath", "", "{}" },
		{ "core/v1.KeyToPath", "18041201700a016b", "{\"key\":\"k\",\"path\":\"p\",\"mode\":4}" },
		{ "core/v1.KeyToPath", "0a036f6c640a036e657718011802", "{\"key\":\"new\",\"mode\":2}" },
		{ "core/v1.KeyToPath", "0a016b0a00", "{}" },
		{ "core/v1.ContainerPort", "188580808010", "{\"containerPort\":5}" },
		{ "core/v1.KeyToPath", "0a016ba00601aa060178b1063132333435363738bd0631323334120170",
		  "{\"key\":\"k\",\"path\":\"p\"}" },
		{ "core/v1.KeyToPath", "4b0807530a02696e544c0a016b", "{\"key\":\"k\"}" },
		{ "core/v1.PodSecurityContext", "220c0100feffffffffffffffff012009", "{\"supplementalGroups\":[1,0,-2,9]}" },
		{ "core/v1.PodSecurityContext", "2200", "{}" },
		{ "core/v1.PodSecurityContext", "2001100320023a030a016128043a030a0162",
		  "{\"runAsUser\":3,\"supplementalGroups\":[1,2],\"fsGroup\":4,\"sysctls\":[{\"name\":\"a\"},{\"name\":\"b\"}]}" },
		{ "core/v1.PodSecurityContext", "1802", "{\"runAsNonRoot\":true}" },
		{ "core/v1.Probe", "0a0612040a022f6110030a0512031a0168",
		  "{\"httpGet\":{\"path\":\"/a\",\"host\":\"h\"},\"initialDelaySeconds\":3}" },
		{ "core/v1.Affinity", "0a04120208011a000a0412020802",
		  "{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1},{\"weight\":2}]},\"podAntiAffinity\":{}}" },
		{ "core/v1.ConfigMap", "12060a016212013112060a016112013212061201340a01621200",
		  "{\"data\":{\"\":\"\",\"a\":\"2\",\"b\":\"4\"}}" },
		{ "core/v1.ConfigMap", "1a030a0161", "{\"binaryData\":{\"a\":\"\"}}" },
		{ "core/v1.ConfigMap", "12080a01614801120178", "{\"data\":{\"a\":\"x\"}}" },
		{ "meta/v1.Condition", "2205080510e707", "{\"lastTransitionTime\":\"1970-01-01T00:00:05Z\"}" },
		{ "meta/v1.Condition", "220208052200", "{}" },
		{ "meta/v1.Condition", "2202080522021000", "{\"lastTransitionTime\":\"1970-01-01T00:00:00Z\"}" },
		{ "meta/v1.Condition", "220b088092b8c398feffffff01", "{}" },
		{ "meta/v1.Condition", "2207088083d1ffaf07", "{\"lastTransitionTime\":\"10000-01-01T00:00:00Z\"}" },
		{ "coordination/v1.LeaseSpec", "1a00220d080510a4f4ffffffffffffff01",
		  "{\"renewTime\":\"1970-01-01T00:00:04.999999Z\"}" },
		{ "coordination/v1.LeaseSpec", "2208080510ffffffff07", "{\"renewTime\":\"1970-01-01T00:00:07.147483Z\"}" },
		{ "core/v1.ResourceRequirements", "0a0c0a0363707512050a03302e35", "{\"limits\":{\"cpu\":\"500m\"}}" },
		{ "core/v1.ResourceRequirements", "0a050a03637075", "{\"limits\":{\"cpu\":\"0\"}}" },
		{ "apps/v1.RollingUpdateDeployment", "0a001202080112031a0178", "{\"maxUnavailable\":0,\"maxSurge\":\"x\"}" },
		{ "meta/v1.ManagedFieldsEntry", "3a120a10207b2022663a6122203a207b7d207d20", "{\"fieldsV1\":{\"f:a\":{}}}" },
		{ "meta/v1.ManagedFieldsEntry", "3a00", "{}" },
		{ "meta/v1.APIResource", "22030a016122030a0162", "{\"verbs\":[\"a\",\"b\"]}" },
		{ "apiextensions/v1.JSONSchemaProps", "4200", "{}" },
		{ "apiextensions/v1.JSONSchemaProps", "c20100", "{}" },
		{ "apiextensions/v1.JSONSchemaProps", "f201021200", "{\"additionalProperties\":{}}" },
		{ "apiextensions/v1.JSONSchemaProps", "c2010d12000a092a0769676e6f726564", "{\"items\":[{}]}" },
		{ "apps/v1.ControllerRevision", "12100a0e205b312e3530202c203265335d20", "{\"data\":[1.5,2000]}" },
		{ "etcdserverpb.Compare", "20013002", "{\"modRevision\":2}" },
		{ "etcdserverpb.Compare", "08001a00", "{}" },
		{ "etcdserverpb.RequestOp", "0a030a016112030a01621203120163", "{\"requestPut\":{\"key\":\"b\",\"value\":\"c\"}}" },
		{ "etcdserverpb.WatchCreateRequest", "28012800", "{\"filters\":[\"NODELETE\",\"NOPUT\"]}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		const struct type *type = schema_type(str_of(t[i].type));
		struct val v, again;
		struct err err = ERR_INIT;
		CHECK_ROW(i, type != NULL);
		if (proto_decode(&a, unhex(&a, t[i].hex), type, &v, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		CHECK_STR_ROW(i, tree_text(&a, v), t[i].tree);
		CHECK_ROW(i, proto_decode(&a, encode(&a, v, type), type, &again, NULL) == 0);
		CHECK_STR_ROW(i, tree_text(&a, again), t[i].tree);
	}
}

TEST(proto_decode_errors)
{
	static const struct {
		const char *type, *hex, *message;
	} t[] = {
		{ "core/v1.KeyToPath", "0a", "unexpected EOF" },
		{ "core/v1.KeyToPath", "0a056162", "unexpected EOF" },
		{ "core/v1.KeyToPath", "80", "unexpected EOF" },
		{ "core/v1.KeyToPath", "1880", "unexpected EOF" },
		{ "core/v1.KeyToPath", "8080808080808080808001", "proto: integer overflow" },
		{ "core/v1.KeyToPath", "18ffffffffffffffffffff01", "proto: integer overflow" },
		{ "core/v1.KeyToPath", "0affffffffffffffffff01", "proto: negative length found during unmarshaling" },
		{ "core/v1.KeyToPath", "0affffffffffffffff7f78", "unexpected EOF" },
		{ "core/v1.KeyToPath", "0801", "proto: wrong wireType = 0 for field Key" },
		{ "core/v1.KeyToPath", "1a0178", "proto: wrong wireType = 2 for field Mode" },
		{ "core/v1.ContainerPort", "1d31323334", "proto: wrong wireType = 5 for field ContainerPort" },
		{ "core/v1.PodSecurityContext", "213132333435363738",
		  "proto: wrong wireType = 1 for field SupplementalGroups" },
		{ "core/v1.ConfigMap", "1001", "proto: wrong wireType = 0 for field Data" },
		{ "core/v1.ConfigMapKeySelector", "0801", "proto: wrong wireType = 0 for field LocalObjectReference" },
		{ "core/v1.KeyToPath", "0200", "proto: KeyToPath: illegal tag 0 (wire type 2)" },
		{ "core/v1.KeyToPath", "808080804000", "proto: KeyToPath: illegal tag -2147483648 (wire type 17179869184)" },
		{ "core/v1.KeyToPath", "0c", "proto: KeyToPath: wiretype end group for non-group" },
		{ "core/v1.KeyToPath", "9603", "proto: illegal wireType 6" },
		{ "core/v1.KeyToPath", "9703", "proto: illegal wireType 7" },
		{ "core/v1.KeyToPath", "93030801", "unexpected EOF" },
		{ "core/v1.KeyToPath", "910331323334353637", "unexpected EOF" },
		{ "core/v1.KeyToPath", "9503313233", "unexpected EOF" },
		{ "core/v1.KeyToPath", "920305", "unexpected EOF" },
		{ "apiextensions/v1.JSONSchemaProps", "4931323334353637", "unexpected EOF" },
		{ "core/v1.PodSecurityContext", "220180", "unexpected EOF" },
		{ "meta/v1.Condition", "22030a0178", "proto: wrong wireType = 2 for field Seconds" },
		{ "meta/v1.Condition", "220108", "unexpected EOF" },
		{ "core/v1.ResourceRequirements", "0a090a0363707512020a00",
		  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" },
		{ "core/v1.ResourceRequirements", "0a0b0a0363707512040a023178",
		  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" },
		{ "apps/v1.RollingUpdateDeployment", "0a020802", "impossible IntOrString.Type" },
		{ "apps/v1.ControllerRevision", "12030a017b", "unexpected end of JSON input" },
		{ "meta/v1.ManagedFieldsEntry", "3a040a027b5d",
		  "invalid character ']' looking for beginning of object key string" },
		{ "meta/v1.ManagedFieldsEntry", "3a030a0135", "proto: FieldsV1 is not a JSON object" },
		{ "core/v1.Secret", "12060a0161120978", "unexpected EOF" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val v;
		struct err err = ERR_INIT;
		CHECK_ROW(i, proto_decode(&a, unhex(&a, t[i].hex), schema_type(str_of(t[i].type)), &v, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}

/* Kinds that no API type has on the wire today. */
TEST(proto_plain_kinds)
{
	static const struct {
		enum field_kind kind;
		enum shape shape;
		unsigned flags;
		const char *hex, *tree;
	} t[] = {
		{ KIND_FLOAT, SHAPE_ONE, 0, "0d0000c03f", "{\"value\":1.5}" },
		{ KIND_FLOAT, SHAPE_ONE, 0, "0d00000000", "{}" },
		{ KIND_FLOAT, SHAPE_ONE, TYPE_PROTO3, "", "{}" },
		{ KIND_FLOAT, SHAPE_LIST, 0, "0d0000c03f0d00000000", "{\"value\":[1.5,0]}" },
		{ KIND_FLOAT, SHAPE_LIST, TYPE_PROTO3, "0a080000c03f00000000", "{\"value\":[1.5,0]}" },
		{ KIND_DOUBLE, SHAPE_LIST, TYPE_PROTO3, "0a08000000000000f8bf", "{\"value\":[-1.5]}" },
		{ KIND_DOUBLE, SHAPE_MAP, 0, "0a0c0a016111000000000000f83f", "{\"value\":{\"a\":1.5}}" },
		{ KIND_UINT32, SHAPE_ONE, 0, "08ffffffff0f", "{\"value\":4294967295}" },
		{ KIND_BOOL, SHAPE_LIST, TYPE_PROTO3, "0a020100", "{\"value\":[true,false]}" },
		{ KIND_INT32, SHAPE_MAP, TYPE_PROTO3, "0a050a01611005", "{\"value\":{\"a\":5}}" },
		{ KIND_BYTES, SHAPE_LIST, 0, "0a0161" "0a00", "{\"value\":[\"YQ==\",\"\"]}" },
	};
	static const uint16_t slots[] = { 1 };
	static const struct wire wire[] = { { 1, 0, NULL } };
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct field f = { .name = A_value, .number = 1, .kind = (uint8_t)t[i].kind, .shape = (uint8_t)t[i].shape };
		struct type type = {
			.name = STR_INIT("Plain"), .flags = (uint8_t)t[i].flags, .n_fields = 1, .n_wire = 1, .fields = &f, .wire = wire, .slots = slots,
		};
		struct val v;
		CHECK_ROW(i, proto_decode(&a, unhex(&a, t[i].hex), &type, &v, NULL) == 0);
		CHECK_STR_ROW(i, tree_text(&a, v), t[i].tree);
		CHECK_STR_ROW(i, str_of(to_hex(&a, encode(&a, v, &type))), t[i].hex);
	}
}

/* not { not { ... } }, so many levels deep. */
static str nested(struct arena *a, unsigned depth)
{
	size_t room = (size_t)depth * 8 + 1, at = room;
	char *p = arena_alloc(a, room, 1);
	for (unsigned i = 0; i < depth; i++) {
		char head[8];
		size_t n = 0;
		head[n++] = (char)0xe2; /* field 28, bytes */
		head[n++] = 1;
		for (size_t len = room - at; ; len >>= 7) {
			head[n++] = (char)(len & 0x7f) | (char)(len >= 0x80 ? 0x80 : 0);
			if (len < 0x80)
				break;
		}
		at -= n;
		memcpy(p + at, head, n);
	}
	return str_span(p + at, room - at);
}

TEST(proto_depth)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct type *type = TYPE(apiextensions_v1, JSONSchemaProps);
	struct err err = ERR_INIT;
	struct val v, again;
	CHECK(proto_decode(&a, nested(&a, VAL_MAX_DEPTH - 1), type, &v, NULL) == 0);
	str bytes = encode(&a, v, type);
	CHECK(proto_decode(&a, bytes, type, &again, NULL) == 0);
	CHECK(val_equal(v, again));
	CHECK_INT(proto_decode(&a, nested(&a, VAL_MAX_DEPTH), type, &v, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "proto: exceeded max depth");

	/* Groups of unknown fields nest too. */
	size_t n = 100000;
	char *groups = arena_alloc(&a, n * 2, 1);
	memset(groups, 0x7b, n);
	memset(groups + n, 0x7c, n);
	CHECK(proto_decode(&a, str_span(groups, n * 2), TYPE(core_v1, KeyToPath), &v, NULL) == 0);
	CHECK_INT(proto_decode(&a, str_span(groups, n * 2 - 1), TYPE(core_v1, KeyToPath), &v, &err), -ERR_BAD_REQUEST);
}

/* Input that repeats itself must not cost more than its length: pieces of one message, alternating list fields, one map key. */
TEST(proto_hostile_repetition)
{
	static const struct {
		const char *type, *hex, *path;
	} t[] = {
		{ "core/v1.Affinity", "0a0412020801", "{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1},{\"weight\":1}," },
		{ "core/v1.PodSecurityContext", "20013a00", "{\"supplementalGroups\":[1,1," },
		{ "core/v1.ConfigMap", "12050a01611200" "12050a01621200", "{\"data\":{\"a\":\"\",\"b\":\"\"}}" },
		{ "meta/v1.APIResource", "22030a0161", "{\"verbs\":[\"a\",\"a\"," },
		{ "meta/v1.Condition", "22020805", "{\"lastTransitionTime\":\"1970-01-01T00:00:05Z\"}" },
	};
	enum { TIMES = 50000 };
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		str one = unhex(&a, t[i].hex);
		char *all = arena_alloc(&a, one.n * TIMES, 1);
		for (size_t k = 0; k < TIMES; k++)
			memcpy(all + k * one.n, one.p, one.n);
		size_t before = a.used;
		struct val v;
		CHECK_ROW(i, proto_decode(&a, str_span(all, one.n * TIMES), schema_type(str_of(t[i].type)), &v, NULL) == 0);
		CHECK_ROW(i, a.used - before < one.n * TIMES * 40);
		CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 24);
		CHECK_ROW(i, json_encode(&text, v, &(struct json_encode_options){ .plain = true }, NULL) == 0);
		CHECK_ROW(i, str_starts(buf_str(&text), str_of(t[i].path)));
	}
}

/* A tree that was put together by hand need not be in order. */
TEST(proto_encode_sorts_maps)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct member m[] = {
		{ atom_make(&a, STR("b")), VAL_LIT("1") }, { atom_make(&a, STR("a")), VAL_LIT("2") }, { atom_make(&a, STR("b")), VAL_LIT("3") },
	};
	struct val v = OBJECT(&a, F(data, val_object(&a, m, ARRAY_LEN(m))), F(nodeName, VAL_LIT("not a field of it")));
	str bytes = encode(&a, v, TYPE(core_v1, ConfigMap));
	struct val back;
	CHECK(proto_decode(&a, bytes, TYPE(core_v1, ConfigMap), &back, NULL) == 0);
	CHECK_STR(tree_text(&a, back), "{\"data\":{\"a\":\"2\",\"b\":\"3\"}}");
}

TEST(proto_encode_errors)
{
	static const struct {
		const char *type, *json, *message;
	} t[] = {
		{ "core/v1.KeyToPath", "{\"key\":5}", "proto: field key cannot hold an integer" },
		{ "core/v1.KeyToPath", "{\"mode\":\"x\"}", "proto: field mode cannot hold a string" },
		{ "core/v1.KeyToPath", "{\"mode\":4294967296}", "proto: field mode cannot hold an integer" },
		{ "core/v1.ContainerPort", "{\"containerPort\":{}}", "proto: field containerPort cannot hold an object" },
		{ "core/v1.Affinity", "{\"nodeAffinity\":[]}", "proto: a NodeAffinity is not an object" },
		{ "core/v1.PodSecurityContext", "{\"sysctls\":{}}", "proto: field sysctls cannot hold an object" },
		{ "core/v1.ConfigMap", "{\"data\":[]}", "proto: field data cannot hold a list" },
		{ "core/v1.ConfigMap", "{\"binaryData\":{\"a\":\"*\"}}", "proto: field binaryData: illegal base64 data at input byte 0" },
		{ "meta/v1.Condition", "{\"lastTransitionTime\":\"now\"}",
		  "parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"now\" as \"2006\"" },
		{ "metrics/v1beta1.NodeMetrics", "{\"window\":\"1x\"}", "time: unknown unit \"x\" in duration \"1x\"" },
		{ "meta/v1.APIResource", "{\"verbs\":[1]}", "proto: field verbs cannot hold an integer" },
		{ "apps/v1.RollingUpdateDeployment", "{\"maxSurge\":true}", "proto: field maxSurge cannot hold a boolean" },
		{ "apiextensions/v1.JSONSchemaProps", "{\"items\":5}", "proto: a value does not fit JSONSchemaPropsOrArray" },
		{ "apiextensions/v1.JSONSchemaProps", "{\"minimum\":\"5\"}", "proto: field minimum cannot hold a string" },
		{ "etcdserverpb.Compare", "{\"result\":\"ABOUT\"}", "proto: field result has no value \"ABOUT\"" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
		struct val v;
		struct err err = ERR_INIT;
		CHECK_ROW(i, json_decode(&a, str_of(t[i].json), &(struct json_decode_options){ 0 }, &v, NULL) == 0);
		CHECK_ROW(i, proto_encode(&b, v, schema_type(str_of(t[i].type)), &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
		CHECK_ROW(i, b.n == 0);
	}
}

TEST(proto_encode_too_large)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(10000);
	char *text = arena_alloc(&a, 20000, 1);
	memset(text, 'x', 20000);
	struct val v = OBJECT(&a, F(key, val_of_str(str_span(text, 20000))));
	struct err err = ERR_INIT;
	CHECK_INT(proto_encode(&b, v, TYPE(core_v1, KeyToPath), &err), -ERR_TOO_LARGE);
	CHECK_STR(err_str(&err), "the protobuf message is larger than 10000 bytes");
}

TEST(proto_envelope)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	const struct type *type = NULL;
	struct val v, meta = OBJECT(&a, F(name, VAL_LIT("n")));
	struct val object = OBJECT(&a, F(kind, VAL_LIT("ConfigMap")), F(apiVersion, VAL_LIT("v1")), F(metadata, meta));
	CHECK(proto_encode_object(&b, object, TYPE(core_v1, ConfigMap), NULL) == 0);
	CHECK_STR(str_of(to_hex(&a, buf_str(&b))),
		  "6b387300" "0a0f" "0a027631" "1209436f6e6669674d6170" "1213" "0a11" "0a016e" "1200" "1a00" "2200" "2a00" "3200" "3800" "4200"
		  "1a00" "2200");
	CHECK(proto_is_envelope(buf_str(&b)));
	CHECK(!proto_is_envelope(STR("k8s")));
	CHECK(proto_decode_object(&a, buf_str(&b), &v, &type, NULL) == 0);
	CHECK(type == TYPE(core_v1, ConfigMap));
	CHECK_STR(tree_text(&a, v), "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\"}}");

	/* Without apiVersion and kind in the tree they are those of the type. */
	CLEANUP(buf_done) struct buf again = BUF_INIT(1 << 20);
	CHECK(proto_encode_object(&again, OBJECT(&a, F(metadata, meta)), TYPE(core_v1, ConfigMap), NULL) == 0);
	CHECK(str_eq(buf_str(&b), buf_str(&again)));
}

TEST(proto_envelope_errors)
{
	static const struct {
		const char *hex, *message;
	} t[] = {
		{ "", "empty data" },
		{ "6b3873", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]" },
		{ "7b7d", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]" },
		{ "6b387300", "empty body" },
		{ "6b3873000a00", "Object 'Kind' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"\"}'" },
		{ "6b3873000a05" "1203506f64", "Object 'apiVersion' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"Pod\"}'" },
		{ "6b3873000a09" "0a027632" "1203506f64", "no kind \"Pod\" is registered for version \"v2\"" },
		{ "6b3873000a09" "0a027631" "1203506f64" "1202" "0a05", "unexpected EOF" },
		{ "6b3873000a05", "unexpected EOF" },
		{ "6b3873000801", "proto: wrong wireType = 0 for field TypeMeta" },
		{ "6b3873000a020801", "proto: wrong wireType = 0 for field APIVersion" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		const struct type *type;
		struct val v;
		CHECK_ROW(i, proto_decode_object(&a, unhex(&a, t[i].hex), &v, &type, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}

static void add_field(struct buf *b, char tag, str s)
{
	buf_addc(b, tag);
	if (s.n >= 128)
		buf_addc(b, (char)(s.n % 128 | 128));
	buf_addc(b, (char)(s.n < 128 ? s.n : s.n / 128));
	buf_add(b, s);
}

/* Raw JSON fields may hold objects in envelopes of their own: watch events do. */
TEST(proto_watch_event)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf pod = BUF_INIT(1000), raw = BUF_INIT(1000), event = BUF_INIT(1000);
	struct val v = OBJECT(&a, F(spec, OBJECT(&a, F(nodeName, VAL_LIT("n")))));
	CHECK(proto_encode_object(&pod, v, TYPE(core_v1, Pod), NULL) == 0);
	add_field(&raw, 0x0a, buf_str(&pod));
	add_field(&event, 0x0a, STR("ADDED"));
	add_field(&event, 0x12, buf_str(&raw));
	CHECK(proto_decode(&a, buf_str(&event), TYPE(meta_v1, WatchEvent), &v, NULL) == 0);
	CHECK_STR(tree_text(&a, v), "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"spec\":{\"nodeName\":\"n\"}}}");

	/* The envelope of the event itself names no kind. */
	CLEANUP(buf_done) struct buf envelope = BUF_INIT(1000);
	CHECK(proto_encode_object(&envelope, v, TYPE(meta_v1, WatchEvent), NULL) == 0);
	CHECK(str_starts(buf_str(&envelope), STR("k8s\0\x0a\x04\x0a\0\x12\0\x12")));
	struct val again;
	CHECK(proto_decode_object_as(&a, buf_str(&envelope), TYPE(meta_v1, WatchEvent), &again, NULL) == 0);
	CHECK(val_equal(v, again));
}

TEST(proto_nested_envelopes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf inner = BUF_INIT(10000);
	CHECK(proto_encode_object(&inner, VAL_EMPTY_OBJECT, TYPE(core_v1, List), NULL) == 0);
	for (unsigned level = 1; level < 8; level++) {
		CLEANUP(buf_done) struct buf raw = BUF_INIT(10000), list = BUF_INIT(10000);
		add_field(&raw, 0x0a, buf_str(&inner));
		add_field(&list, 0x12, buf_str(&raw));
		buf_reset(&inner);
		buf_add(&inner, STR("k8s\0\x0a\x0a\x0a\x02v1\x12\x04List"));
		add_field(&inner, 0x12, buf_str(&list));
		struct err err = ERR_INIT;
		const struct type *type;
		struct val v;
		int r = proto_decode_object(&a, buf_str(&inner), &v, &type, &err);
		CHECK_INT(r, level <= 4 ? 0 : -ERR_BAD_REQUEST);
		CHECK_STR(err_str(&err), r < 0 ? "proto: objects are nested too deeply" : "");
	}
}
