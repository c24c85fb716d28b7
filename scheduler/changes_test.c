#include "scheduler/changes.h"

#include "base/test.h"
#include "codec/codec.h"
#include "codec/types.h"

static struct val decode(struct arena *a, const struct type *type, const char *json)
{
	struct val v = VAL_EMPTY;

	CHECK_INT(json_decode(a, str_of(json), &(struct json_decode_options){ .type = type }, &v, NULL), 0);
	return v;
}

TEST(changes_of_nodes)
{
	static const struct { const char *old, *new; unsigned events; } t[] = {
		{ "{}", "{}", 0 },
		{ "{}", "{\"metadata\":{\"annotations\":{\"a\":\"b\"}}}", 0 },
		{ "{}", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", EV_NODE_LABEL },
		{ "{}", "{\"spec\":{\"unschedulable\":true}}", EV_NODE_TAINT },
		{ "{\"spec\":{\"taints\":[{\"key\":\"a\",\"effect\":\"NoSchedule\"}]}}", "{}", EV_NODE_TAINT },
		{ "{\"status\":{\"allocatable\":{\"cpu\":\"1\"}}}", "{\"status\":{\"allocatable\":{\"cpu\":\"2\"}}}", EV_NODE_ALLOCATABLE },
		{ "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}",
		  "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}", EV_NODE_CONDITION },
		{ "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"message\":\"a\"}]}}",
		  "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"message\":\"b\"}]}}", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_ROW(i, node_changes(decode(&a, TYPE(core_v1, Node), t[i].old), decode(&a, TYPE(core_v1, Node), t[i].new)) == t[i].events);
	}
}

TEST(changes_of_pods)
{
#define CPU(amount) "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"" amount "\"}}}]}}"
#define PENDING(reason) "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}," \
	"\"status\":{\"conditions\":[{\"type\":\"PodResizePending\",\"status\":\"True\",\"reason\":\"" reason "\"}]}}"
	static const struct { const char *old, *new; unsigned events; } t[] = {
		{ "{}", "{}", 0 },
		{ "{}", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", EV_POD_LABEL },
		{ CPU("2"), CPU("1"), EV_POD_SCALE_DOWN },
		{ CPU("1"), CPU("2"), 0 },
		{ CPU("1"), CPU("1000m"), 0 },
		/* A resize that cannot be done: what was asked for does not count any more. */
		{ CPU("1"), PENDING("Infeasible"), EV_POD_SCALE_DOWN },
		{ CPU("1"), PENDING("Deferred"), 0 },
		{ PENDING("Infeasible"), PENDING("Infeasible"), 0 },
		{ "{\"spec\":{\"schedulingGates\":[{\"name\":\"a\"}]}}", "{}", EV_POD_GATES },
		{ "{\"spec\":{\"schedulingGates\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}", "{\"spec\":{\"schedulingGates\":[{\"name\":\"a\"}]}}", 0 },
		{ "{}", "{\"spec\":{\"tolerations\":[{\"operator\":\"Exists\"}]}}", EV_POD_TOLERATION },
		{ "{}", "{\"status\":{\"resourceClaimStatuses\":[{\"name\":\"a\",\"resourceClaimName\":\"b\"}]}}", EV_CLAIM },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_ROW(i, pod_changes(decode(&a, TYPE(core_v1, Pod), t[i].old), decode(&a, TYPE(core_v1, Pod), t[i].new)) == t[i].events);
	}
}
