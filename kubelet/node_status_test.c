#include "kubelet/node_status.h"

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

static const struct kubelet_node node = {
	.name = STR_INIT("n1"), .address = STR_INIT("10.0.0.5"), .root = STR_INIT("/"), .max_pods = 110,
	.cpus_milli = 2000, .memory_bytes = INT64_C(24682416) * 1024,
};

static struct val json(struct arena *a, const char *text)
{
	struct val v = VAL_EMPTY;
	struct err err = ERR_INIT;

	if (json_decode(a, str_of(text), &(struct json_decode_options){ 0 }, &v, &err) < 0)
		fail_msg("%s in %s", err.msg, text);
	return v;
}

static str shown(struct arena *a, struct val v, const struct type *type)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct err err = ERR_INIT;

	if (json_encode(&b, v, &(struct json_encode_options){ .type = type }, &err) < 0)
		fail_msg("%s", err.msg);
	return arena_str(a, buf_str(&b));
}

#define RUNTIME_READY                                                                                                      \
	"{\"status\":{\"conditions\":[{\"type\":\"RuntimeReady\",\"status\":true},{\"type\":\"NetworkReady\",\"status\":true}]}," \
	"\"runtimeHandlers\":[{\"features\":{\"recursiveReadOnlyMounts\":true}},{\"name\":\"runc\",\"features\":{"                \
	"\"recursiveReadOnlyMounts\":true}}],\"features\":{\"supplementalGroupsPolicy\":true}}"

static struct node_facts facts(struct arena *a)
{
	return (struct node_facts){
		.reserved = json(a, "{\"memory\":\"100Mi\",\"ephemeral-storage\":\"1\"}"),
		.runtime_version = json(a, "{\"runtimeName\":\"containerd\",\"runtimeVersion\":\"2.1.9+unknown\"}"),
		.runtime_status = json(a, RUNTIME_READY), .kubelet_version = STR("v1.36.4"), .port = 10250,
		.now_ns = INT64_C(1700000000) * 1000000000,
	};
}

TEST(node_object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_facts f = facts(&a);

	f.labels = json(&a, "{\"zone\":\"z1\",\"kubernetes.io/os\":\"other\"}");
	f.taints = json(&a, "[{\"key\":\"story.example/n2\",\"effect\":\"NoSchedule\"}]");
	struct val o = node_object_make(&node, &f, &a);
	CHECK_STR(val_str(o, metadata, name), "n1");
	struct val labels = val_get(o, metadata, labels);
	CHECK_INT(val_len(labels), 6);
	CHECK_STR(val_as_str(val_find(labels, STR("kubernetes.io/hostname"))), "n1");
	CHECK_STR(val_as_str(val_find(labels, STR("beta.kubernetes.io/os"))), "linux");
	CHECK_STR(val_as_str(val_find(labels, STR("kubernetes.io/os"))), "other"); /* the flag wins */
	CHECK_STR(shown(&a, val_get(o, metadata, annotations), NULL),
		  "{\"volumes.kubernetes.io/controller-managed-attach-detach\":\"true\"}");
	CHECK_STR(shown(&a, val_get(o, spec), TYPE(core_v1, NodeSpec)),
		  "{\"taints\":[{\"key\":\"story.example/n2\",\"effect\":\"NoSchedule\"}]}");
}

#define CONDITION(type, status, since, reason, message)                                                              \
	"{\"type\":\"" type "\",\"status\":\"" status "\",\"lastHeartbeatTime\":\"2023-11-14T22:13:20Z\",\"lastTransitionTime\":\"" \
	since "\",\"reason\":\"" reason "\",\"message\":\"" message "\"}"
#define NOW "2023-11-14T22:13:20Z"
#define THEN "2020-01-01T00:00:00Z"

/* As a real kubelet with this machine and runtime writes it. */
TEST(node_status_golden)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_facts f = facts(&a);
	struct err err = ERR_INIT;
	struct val s;

	CHECK_INT(node_status_make(&node, &f, &a, VAL_EMPTY, &s, &err), 0);
	CHECK_STR(val_str(s, capacity, cpu), "2");
	CHECK_STR(val_str(s, capacity, memory), "24682416Ki");
	CHECK_STR(val_str(s, capacity, pods), "110");
	CHECK(val_exists(val_find(val_get(s, capacity), STR("ephemeral-storage"))));
	CHECK_STR(val_str(s, allocatable, cpu), "2");
	CHECK_STR(shown(&a, val_get(s, conditions), NULL),
		  "[" CONDITION("MemoryPressure", "False", NOW, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
		  "," CONDITION("DiskPressure", "False", NOW, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
		  "," CONDITION("PIDPressure", "False", NOW, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
		  "," CONDITION("Ready", "True", NOW, "KubeletReady", "kubelet is posting ready status") "]");
	CHECK_STR(shown(&a, val_get(s, addresses), NULL),
		  "[{\"type\":\"InternalIP\",\"address\":\"10.0.0.5\"},{\"type\":\"Hostname\",\"address\":\"n1\"}]");
	CHECK_STR(shown(&a, val_get(s, daemonEndpoints), NULL), "{\"kubeletEndpoint\":{\"Port\":10250}}");
	CHECK_STR(val_str(s, nodeInfo, containerRuntimeVersion), "containerd://2.1.9+unknown");
	CHECK_STR(val_str(s, nodeInfo, kubeletVersion), "v1.36.4");
	CHECK_STR(val_str(s, nodeInfo, operatingSystem), "linux");
	if (str_eq(val_as_str(val_find(val_get(s, capacity), STR("hugepages-2Mi"))), STR("0")))
		CHECK_STR(val_str(s, allocatable, memory), "24580016Ki");
}

TEST(node_status_features)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_facts f = facts(&a);
	struct err err = ERR_INIT;
	struct val s;

	CHECK_INT(node_status_make(&node, &f, &a, VAL_EMPTY, &s, &err), 0);
	CHECK_STR(shown(&a, val_get(s, runtimeHandlers), NULL),
		  "[{\"features\":{\"recursiveReadOnlyMounts\":true,\"userNamespaces\":false}},"
		  "{\"name\":\"runc\",\"features\":{\"recursiveReadOnlyMounts\":true,\"userNamespaces\":false}}]");
	CHECK_STR(shown(&a, val_get(s, features), NULL), "{\"supplementalGroupsPolicy\":true}");
	CHECK_STR(shown(&a, val_get(s, declaredFeatures), NULL),
		  "[\"ExtendWebSocketsToKubelet\",\"InPlacePodLevelResourcesVerticalScaling\","
		  "\"InPlacePodVerticalScalingInitContainers\",\"RestartAllContainersOnContainerExits\"]");
}

TEST(node_conditions_change)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_facts f = facts(&a);
	struct err err = ERR_INIT;
	struct val s, old = json(&a, "{\"conditions\":["
		"{\"type\":\"NetworkUnavailable\",\"status\":\"False\",\"reason\":\"RouteCreated\",\"message\":\"m\","
		"\"lastHeartbeatTime\":\"2023-11-14T22:13:20Z\",\"lastTransitionTime\":\"" THEN "\"},"
		"{\"type\":\"MemoryPressure\",\"status\":\"False\",\"lastTransitionTime\":\"" THEN "\"},"
		"{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"" THEN "\"}],"
		"\"capacity\":{\"example.com/gpu\":\"4\",\"cpu\":\"77\"},\"volumesAttached\":[{\"name\":\"v\",\"devicePath\":\"d\"}]}");

	f.disk_pressure = true;
	f.shutdown = STR("node is shutting down");
	CHECK_INT(node_status_make(&node, &f, &a, old, &s, &err), 0);
	CHECK_STR(shown(&a, val_get(s, conditions), NULL),
		  "[" CONDITION("NetworkUnavailable", "False", THEN, "RouteCreated", "m")
		  "," CONDITION("MemoryPressure", "False", THEN, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
		  "," CONDITION("Ready", "False", NOW, "KubeletNotReady", "node is shutting down")
		  "," CONDITION("DiskPressure", "True", NOW, "KubeletHasDiskPressure", "kubelet has disk pressure")
		  "," CONDITION("PIDPressure", "False", NOW, "KubeletHasSufficientPID", "kubelet has sufficient PID available") "]");
	CHECK_STR(val_str(s, capacity, cpu), "2");
	CHECK_STR(val_as_str(val_find(val_get(s, allocatable), STR("example.com/gpu"))), "4");
	CHECK_INT(val_len(val_get(s, volumesAttached)), 1);
}

TEST(node_not_ready)
{
	static const struct {
		const char *runtime, *problems, *message;
	} t[] = {
		{ NULL, "[]", "container runtime status check may not have completed yet" },
		{ RUNTIME_READY, "[\"CSINode is not yet initialized\"]", "CSINode is not yet initialized" },
		{ "{\"status\":{\"conditions\":[{\"type\":\"RuntimeReady\",\"status\":true},{\"type\":\"NetworkReady\",\"reason\":"
		  "\"NetworkPluginNotReady\",\"message\":\"Network plugin returns error: cni plugin not initialized\"}]}}", "[]",
		  "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns "
		  "error: cni plugin not initialized" },
		{ "{\"status\":{\"conditions\":[{\"type\":\"RuntimeReady\",\"reason\":\"r\",\"message\":\"m\"}]}}", "[\"x\",\"x\"]",
		  "[container runtime not ready: RuntimeReady=false reason:r message:m, container runtime network not ready: <nil>, x]" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct node_facts f = facts(&a);
		struct err err = ERR_INIT;
		struct val s;
		f.runtime_status = t[i].runtime ? json(&a, t[i].runtime) : VAL_EMPTY;
		f.problems = json(&a, t[i].problems);
		CHECK_INT(node_status_make(&node, &f, &a, VAL_EMPTY, &s, &err), 0);
		struct val ready = val_at(val_get(s, conditions), 3);
		CHECK_STR_ROW(i, val_str(ready, status), "False");
		CHECK_STR_ROW(i, val_str(ready, message), t[i].message);
	}
}

TEST(node_capacity_and_reserved)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_facts f = facts(&a);
	struct err err = ERR_INIT;
	struct val capacity, allocatable;

	f.reserved = json(&a, "{\"cpu\":\"500m\",\"memory\":\"1000Gi\"}");
	f.devices = json(&a, "{\"example.com/gpu\":\"3\"}");
	CHECK_INT(node_capacity(&node, &f, &a, &capacity, &allocatable, &err), 0);
	CHECK_STR(val_str(capacity, cpu), "2");
	CHECK_STR(val_str(allocatable, cpu), "1500m");
	CHECK_STR(val_str(allocatable, memory), "0"); /* never below */
	CHECK_STR(val_as_str(val_find(allocatable, STR("example.com/gpu"))), "3");
	CHECK_STR(atom_str(capacity.members[0].key), "cpu"); /* sorted by name */
	CHECK_STR(atom_str(capacity.members[2].key), "example.com/gpu");
}
