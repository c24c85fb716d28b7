#include "kubelet/admit.h"

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"

static struct val json(struct arena *a, const char *text)
{
	struct val v = VAL_EMPTY;
	struct err err = ERR_INIT;

	if (json_decode(a, str_of(text), &(struct json_decode_options){ .sort_keys = false }, &v, &err) < 0)
		fail_msg("%s in %s", err.msg, text);
	return v;
}

#define NODE                                                                                                          \
	"{\"metadata\":{\"name\":\"n1\",\"labels\":{\"kubernetes.io/os\":\"linux\",\"disk\":\"ssd\"}},\"spec\":{\"taints\":["   \
	"{\"key\":\"t\",\"value\":\"1\",\"effect\":\"NoExecute\"},{\"key\":\"u\",\"effect\":\"NoSchedule\"}]},\"status\":{"     \
	"\"allocatable\":{\"cpu\":\"2\",\"ephemeral-storage\":\"10Gi\",\"example.com/gpu\":\"1\",\"hugepages-2Mi\":\"0\","      \
	"\"memory\":\"25169936384\",\"pods\":\"3\"}}}"
#define OTHERS                                                                                                        \
	"[{\"metadata\":{\"uid\":\"o\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"20m\","  \
	"\"memory\":\"50Mi\"}},\"ports\":[{\"hostPort\":80,\"protocol\":\"TCP\"},{\"hostPort\":53,\"hostIP\":\"10.0.0.1\","     \
	"\"protocol\":\"UDP\"}]}]}},{\"metadata\":{\"uid\":\"over\"},\"spec\":{\"containers\":[{\"resources\":{\"requests\":{"  \
	"\"cpu\":\"2\"}},\"ports\":[{\"hostPort\":81}]}]},\"status\":{\"phase\":\"Failed\"}}]"

#define TOLERANT "\"tolerations\":[{\"operator\":\"Exists\"}],"
#define C(inside) "\"containers\":[{\"name\":\"c\"" inside "}]"
#define ASKS(requests) C(",\"resources\":{\"requests\":{" requests "}}")
#define POD(spec) "{\"metadata\":{\"uid\":\"p\",\"name\":\"p\"},\"spec\":{" TOLERANT spec "}}"
#define PORT(port) POD(C(",\"ports\":[" port "]"))
#define SYSCTL(name, more) POD(more "\"securityContext\":{\"sysctls\":[{\"name\":\"" name "\",\"value\":\"1\"}]}," C(""))

struct row {
	const char *pod, *reason, *message; /* NULL: it may run */
};

static void check_rows(const struct row *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node node = { .name = STR("n1"), .allowed_sysctls = json(&a, "[\"kernel.msg*\",\"net.core.somaxconn\"]") };
		struct admit_input in = { .pod = json(&a, t[i].pod), .others = json(&a, OTHERS), .node = json(&a, NODE) };
		str reason = STR(""), message = STR("");
		bool ok = admit_pod(&node, &a, &in, &reason, &message);
		CHECK_STR_ROW(i, reason, t[i].reason ? t[i].reason : "");
		CHECK_STR_ROW(i, message, t[i].message ? t[i].message : "");
		CHECK_ROW(i, ok == !t[i].reason);
	}
}

TEST(admit_resources)
{
	static const struct row t[] = {
		{ POD(C("")), NULL, NULL },
		{ POD(ASKS("\"cpu\":\"500\"")), "OutOfcpu",
		  "Node didn't have enough resource: cpu, requested: 500000, used: 20, capacity: 2000" },
		{ POD(ASKS("\"cpu\":\"1980m\"")), NULL, NULL },
		{ POD(ASKS("\"cpu\":\"1981m\"")), "OutOfcpu",
		  "Node didn't have enough resource: cpu, requested: 1981, used: 20, capacity: 2000" },
		{ POD(ASKS("\"memory\":\"5Ti\"")), "OutOfmemory",
		  "Node didn't have enough resource: memory, requested: 5497558138880, used: 52428800, capacity: 25169936384" },
		{ POD(ASKS("\"ephemeral-storage\":\"11Gi\"")), "OutOfephemeral-storage",
		  "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240" },
		{ POD(ASKS("\"example.com/gpu\":\"2\"")), "OutOfexample.com/gpu",
		  "Node didn't have enough resource: example.com/gpu, requested: 2, used: 0, capacity: 1" },
		{ POD(ASKS("\"hugepages-2Mi\":\"2Mi\"")), "OutOfhugepages-2Mi",
		  "Node didn't have enough resource: hugepages-2Mi, requested: 2097152, used: 0, capacity: 0" },
		{ POD(ASKS("\"example.test/fpga\":\"1\"")), NULL, NULL }, /* not of this node */
		{ POD("\"resources\":{\"requests\":{\"cpu\":\"3\"}}," C("")), "OutOfcpu",
		  "Node didn't have enough resource: cpu, requested: 3000, used: 20, capacity: 2000" },
		{ POD("\"overhead\":{\"cpu\":\"1\"}," ASKS("\"cpu\":\"1\"")), "OutOfcpu",
		  "Node didn't have enough resource: cpu, requested: 2000, used: 20, capacity: 2000" },
		{ POD("\"initContainers\":[{\"name\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"3\"}}}]," C("")), "OutOfcpu",
		  "Node didn't have enough resource: cpu, requested: 3000, used: 20, capacity: 2000" },
	};
	check_rows(t, ARRAY_LEN(t));
}

TEST(admit_too_many)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node node = { .name = STR("n1") };
	struct admit_input in = { .pod = json(&a, POD(ASKS("\"cpu\":\"500\""))), .node = json(&a, NODE),
				  .others = json(&a, "[{\"metadata\":{\"uid\":\"1\"}},{\"metadata\":{\"uid\":\"2\"}},{\"metadata\":{\"uid\":\"3\"}},"
						     "{\"metadata\":{\"uid\":\"p\"}}]") };
	str reason = STR_NONE, message = STR_NONE;

	CHECK(!admit_pod(&node, &a, &in, &reason, &message));
	CHECK_STR(reason, "OutOfpods");
	CHECK_STR(message, "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3");
}

TEST(admit_places)
{
#define AFFINITY "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
#define PORTS "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
#define TAINT "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
	static const struct row t[] = {
		{ POD("\"nodeSelector\":{\"disk\":\"ssd\"}," C("")), NULL, NULL },
		{ POD("\"nodeSelector\":{\"disk\":\"hdd\"}," C("")), AFFINITY },
		{ POD("\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
		      "\"matchExpressions\":[{\"key\":\"disk\",\"operator\":\"NotIn\",\"values\":[\"ssd\"]}]}]}}}," C("")), AFFINITY },
		{ POD("\"nodeName\":\"n1\"," C("")), NULL, NULL },
		{ POD("\"nodeName\":\"n2\"," C("")), "NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name" },
		{ PORT("{\"hostPort\":80}"), PORTS },
		{ PORT("{\"hostPort\":80,\"hostIP\":\"10.0.0.9\"}"), PORTS },
		{ PORT("{\"hostPort\":80,\"protocol\":\"UDP\"}"), NULL, NULL },
		{ PORT("{\"hostPort\":53,\"protocol\":\"UDP\",\"hostIP\":\"10.0.0.2\"}"), NULL, NULL },
		{ PORT("{\"hostPort\":53,\"protocol\":\"UDP\"}"), PORTS },
		{ PORT("{\"hostPort\":81}"), NULL, NULL }, /* of a pod that is over */
		{ PORT("{\"containerPort\":80}"), NULL, NULL },
		{ "{\"spec\":{" C("") "}}", TAINT },
		{ "{\"spec\":{\"tolerations\":[{\"key\":\"t\",\"value\":\"2\"}]," C("") "}}", TAINT },
		{ "{\"spec\":{\"tolerations\":[{\"key\":\"t\",\"operator\":\"Equal\",\"value\":\"1\",\"effect\":\"NoExecute\"}]," C("") "}}", NULL,
		  NULL },
		{ "{\"spec\":{\"tolerations\":[{\"key\":\"t\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}]," C("") "}}", TAINT },
		{ "{\"metadata\":{\"annotations\":{\"kubernetes.io/config.source\":\"file\"}},\"spec\":{" C("") "}}", NULL, NULL },
		{ "{\"metadata\":{\"annotations\":{\"kubernetes.io/config.source\":\"api\"}},\"spec\":{" C("") "}}", TAINT },
	};
	check_rows(t, ARRAY_LEN(t));
}

TEST(admit_sysctls)
{
#define FORBIDDEN(name, why) "SysctlForbidden", "forbidden sysctl: \"" name "\" " why
	static const struct row t[] = {
		{ SYSCTL("kernel.shm_rmid_forced", ""), NULL, NULL },
		{ SYSCTL("net.ipv4.ip_unprivileged_port_start", ""), NULL, NULL },
		{ SYSCTL("net/ipv4/tcp_syncookies", ""), NULL, NULL },
		{ SYSCTL("kernel.msgmax", ""), NULL, NULL }, /* by the node's list */
		{ SYSCTL("net.core.somaxconn", ""), NULL, NULL },
		{ SYSCTL("net.core.somaxconn2", ""), FORBIDDEN("net.core.somaxconn2", "not allowlisted") },
		{ SYSCTL("kernel.sem", ""), FORBIDDEN("kernel.sem", "not allowlisted") },
		{ SYSCTL("kernel/sem", ""), FORBIDDEN("kernel.sem", "not allowlisted") },
		{ SYSCTL("vm.swappiness", ""), FORBIDDEN("vm.swappiness", "not allowlisted") },
		{ SYSCTL("net.ipv4.tcp_rmem", "\"hostNetwork\":true,"),
		  FORBIDDEN("net.ipv4.tcp_rmem", "not allowed with host Net enabled") },
		{ SYSCTL("kernel.msgmax", "\"hostIPC\":true,"), FORBIDDEN("kernel.msgmax", "not allowed with host IPC enabled") },
		{ SYSCTL("kernel.msgmax", "\"hostNetwork\":true,"), NULL, NULL },
	};
	check_rows(t, ARRAY_LEN(t));
}

TEST(admit_system)
{
	static const struct row t[] = {
		{ POD("\"os\":{\"name\":\"linux\"}," C("")), NULL, NULL },
		{ POD("\"os\":{\"name\":\"windows\"}," C("")), "PodOSNotSupported",
		  "Failed to admit pod as the OS field doesn't match node OS" },
		{ "{\"metadata\":{\"labels\":{\"kubernetes.io/os\":\"windows\"}},\"spec\":{" TOLERANT C("") "}}",
		  "PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label" },
		{ POD("\"securityContext\":{\"supplementalGroupsPolicy\":\"Strict\"}," C("")), "SupplementalGroupsPolicyNotSupported",
		  "SupplementalGroupsPolicy=Strict is not supported in this node" },
		{ POD("\"securityContext\":{\"supplementalGroupsPolicy\":\"Merge\"}," C("")), NULL, NULL },
	};
	check_rows(t, ARRAY_LEN(t));
}

TEST(admit_under_pressure)
{
	static const struct {
		bool memory, disk, pids, down;
		const char *pod, *reason, *message;
	} t[] = {
		{ true, false, false, false, POD(ASKS("\"cpu\":\"1m\"")), NULL, NULL },
		{ true, false, false, false, "{\"spec\":{" C("") "}}", "Evicted", "The node had condition: [MemoryPressure]. " },
		{ true, false, false, false, POD(C("")), NULL, NULL }, /* tolerates everything */
		{ false, true, false, false, POD(ASKS("\"cpu\":\"1m\"")), "Evicted", "The node had condition: [DiskPressure]. " },
		{ true, true, true, false, POD(C("")), "Evicted", "The node had condition: [MemoryPressure DiskPressure PIDPressure]. " },
		{ false, true, false, false, POD("\"priority\":2000000000," C("")), NULL, NULL },
		{ false, false, false, true, POD("\"priority\":2000000000," C("")), "NodeShutdown",
		  "Pod was rejected as the node is shutting down." },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node node = { .name = STR("n1") };
		struct admit_input in = { .pod = json(&a, t[i].pod), .others = VAL_EMPTY_LIST, .node = json(&a, NODE),
					  .memory_pressure = t[i].memory, .disk_pressure = t[i].disk, .pids_pressure = t[i].pids,
					  .shutting_down = t[i].down };
		str reason = STR(""), message = STR("");
		bool ok = admit_pod(&node, &a, &in, &reason, &message);
		CHECK_STR_ROW(i, reason, t[i].reason ? t[i].reason : "");
		CHECK_STR_ROW(i, message, t[i].message ? t[i].message : "");
		CHECK_ROW(i, ok == !t[i].reason);
	}
}

/* ---- making room ---- */

#define OTHER(uid, more, requests, limits)                                                                            \
	"{\"metadata\":{\"uid\":\"" uid "\"},\"spec\":{" more "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{" requests \
	"},\"limits\":{" limits "}}}]}}"
#define FULL(cpu) "\"cpu\":\"" cpu "\",\"memory\":\"1Gi\""

TEST(admit_makes_room)
{
	static const struct {
		const char *wanted, *others, *victims, *error;
	} t[] = {
		/* One that is big enough, rather than two small ones; then what is missing from that. */
		{ "1", OTHER("a", "", "\"cpu\":\"300m\"", "") "," OTHER("b", "", "\"cpu\":\"1\"", "") "," OTHER("c", "", "\"cpu\":\"700m\"", ""),
		  "b", NULL },
		{ "1500m", OTHER("a", "", "\"cpu\":\"300m\"", "") "," OTHER("b", "", "\"cpu\":\"1\"", "") "," OTHER("c", "", "\"cpu\":\"700m\"", ""),
		  "bc", NULL },
		/* Guaranteed ones only when nothing else helps. */
		{ "1", OTHER("g", "", FULL("1"), FULL("1")) "," OTHER("b", "", "\"cpu\":\"1\"", ""), "b", NULL },
		{ "2", OTHER("g", "", FULL("1"), FULL("1")) "," OTHER("b", "", "\"cpu\":\"1\"", ""), "bg", NULL },
		/* Other critical pods stay. */
		{ "1", OTHER("k", "\"priority\":2000000001,", "\"cpu\":\"2\"", ""), NULL,
		  "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to "
		  "preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]" },
		{ "500m", OTHER("a", "", "\"cpu\":\"1\"", ""), "", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf got = BUF_INIT(100);
		struct err err = ERR_INIT;
		struct val victims = VAL_EMPTY;
		str pod = arena_printf(&a, "{\"metadata\":{\"uid\":\"p\"},\"spec\":{\"priority\":2000000000," TOLERANT
				       "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%s\"}}}]}}", t[i].wanted);
		str others = arena_printf(&a, "[%s]", t[i].others);
		struct admit_input in = { .pod = json(&a, pod.p), .others = json(&a, others.p), .node = json(&a, NODE) };
		int r = admit_victims(&a, &in, &victims, &err);
		CHECK_STR_ROW(i, err_str(&err), t[i].error ? t[i].error : "");
		CHECK_ROW(i, (r < 0) == (t[i].error != NULL));
		VAL_EACH(v, victims)
			buf_add(&got, val_str(*v, metadata, uid));
		if (r == 0)
			CHECK_STR_ROW(i, buf_str(&got), t[i].victims);
	}
}

/* What is not about resources is told first: making room would be in vain. */
TEST(admit_critical_order)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node node = { .name = STR("n1") };
	str reason = STR_NONE, message = STR_NONE;
	struct admit_input in = { .pod = json(&a, POD("\"priority\":2000000000,\"nodeName\":\"n2\"," ASKS("\"cpu\":\"500\""))),
				  .others = VAL_EMPTY_LIST, .node = json(&a, NODE) };

	CHECK(!admit_pod(&node, &a, &in, &reason, &message));
	CHECK_STR(reason, "NodeName");
	in.pod = json(&a, POD("\"priority\":1,\"nodeName\":\"n2\"," ASKS("\"cpu\":\"500\"")));
	CHECK(!admit_pod(&node, &a, &in, &reason, &message));
	CHECK_STR(reason, "OutOfcpu");
}
