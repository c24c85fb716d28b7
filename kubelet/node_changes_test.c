#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/node_status.h"

static const struct kubelet_node node = { .name = STR_INIT("n2") };

static struct val json(struct arena *a, const char *text)
{
	struct val v = VAL_EMPTY;

	if (json_decode(a, str_of(text), &(struct json_decode_options){ 0 }, &v, NULL) < 0)
		fail_msg("%s", text);
	return v;
}

static str encoded(struct arena *a, struct val v, const struct type *type)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	CHECK_INT(json_encode(&b, v, &(struct json_encode_options){ .type = type }, NULL), 0);
	return arena_str(a, buf_str(&b));
}

#define STATUS(memory, ready, beat, boot)                                                                              \
	"{\"conditions\":[{\"type\":\"MemoryPressure\",\"status\":\"" memory "\",\"lastHeartbeatTime\":\"" beat "\"},{\"type\":\"Ready\"," \
	"\"status\":\"" ready "\",\"lastHeartbeatTime\":\"" beat "\"}],\"nodeInfo\":{\"bootID\":\"" boot "\"}}"

TEST(node_changes)
{
	static const struct {
		const char *before, *after;
		bool changed;
		const char *events;
	} t[] = {
		{ STATUS("False", "True", "1", "b"), STATUS("False", "True", "2", "b"), false, "" },
		{ STATUS("False", "True", "1", "b"), STATUS("False", "False", "1", "b"), true, "Node n2 status is now: NodeNotReady;" },
		{ STATUS("False", "Unknown", "1", "b"), STATUS("True", "True", "1", "b"), true,
		  "Node n2 status is now: NodeHasInsufficientMemory;Node n2 status is now: NodeReady;" },
		{ "{}", STATUS("False", "True", "1", "b"), true, "Node n2 status is now: NodeHasSufficientMemory;" },
		{ STATUS("False", "True", "1", "b"), STATUS("False", "True", "1", "c"), true, "Node n2 has been rebooted, boot id: c;" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf got = BUF_INIT(4096);
		struct val before = json(&a, t[i].before), after = json(&a, t[i].after);
		CHECK_ROW(i, node_status_changed(&a, before, after) == t[i].changed);
		VAL_EACH(e, node_status_events(&node, &a, before, after)) {
			buf_add(&got, val_str(*e, message));
			buf_addc(&got, ';');
		}
		CHECK_STR_ROW(i, buf_str(&got), t[i].events);
	}
}

TEST(node_lease)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val lease = node_lease_make(&node, &a, VAL_EMPTY, STR_NONE, 40, INT64_C(1700000000123456789));
	const struct type *type = TYPE(coordination_v1, Lease);

	CHECK_STR(encoded(&a, lease, type),
		  "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":\"n2\",\"namespace\":\"kube-node-lease\"},"
		  "\"spec\":{\"holderIdentity\":\"n2\",\"leaseDurationSeconds\":40,\"renewTime\":\"2023-11-14T22:13:20.123456Z\"}}");
	lease = val_with(&a, lease, VAL_LIT("7"), metadata, resourceVersion);
	lease = node_lease_make(&node, &a, lease, STR("u"), 40, INT64_C(1700000010000000000));
	CHECK_STR(encoded(&a, val_get(lease, metadata), TYPE(meta_v1, ObjectMeta)),
		  "{\"name\":\"n2\",\"namespace\":\"kube-node-lease\",\"resourceVersion\":\"7\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
		  "\"kind\":\"Node\",\"name\":\"n2\",\"uid\":\"u\"}]}");
	CHECK_STR(val_str(lease, spec, renewTime), "2023-11-14T22:13:30.000000Z");
}
