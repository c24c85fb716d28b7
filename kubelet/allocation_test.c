#include "kubelet/allocation.h"

#include "base/test.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"

static struct val decode(struct arena *a, const char *text, const struct type *type)
{
	struct err err = ERR_INIT;
	struct val v = VAL_EMPTY;

	CHECK_INT(json_decode(a, str_of(text), &(struct json_decode_options){ .type = type }, &v, &err), 0);
	return v;
}

/* A pod whose container c (and those of more) has these resources. */
static struct val pod_of(struct arena *a, const char *resources, const char *more)
{
	str text = arena_printf(a, "{\"metadata\":{\"name\":\"p\",\"labels\":{\"x\":\"y\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\","
				"\"resources\":%s}]%s}}", resources, more);
	return decode(a, text.p, TYPE(core_v1, Pod));
}

static str show(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	CHECK_INT(json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL), 0);
	return arena_str(a, buf_str(&b));
}

TEST(allocation_compares_amounts)
{
	static const struct {
		const char *given, *asked;
		bool same, grows;
	} t[] = {
		{ "{}", "{}", true, false },
		{ "{\"requests\":{\"cpu\":\"1\"}}", "{\"requests\":{\"cpu\":\"1000m\"}}", true, false },
		{ "{\"requests\":{\"cpu\":\"1\"}}", "{\"requests\":{\"cpu\":\"2\"}}", false, true },
		{ "{\"requests\":{\"cpu\":\"1\"}}", "{\"requests\":{\"cpu\":\"500m\"}}", false, false },
		{ "{\"requests\":{\"cpu\":\"1\"}}", "{\"requests\":{\"cpu\":\"500m\",\"memory\":\"1Mi\"}}", false, true },
		{ "{\"limits\":{\"memory\":\"1Gi\"}}", "{\"limits\":{\"memory\":\"2Gi\"}}", false, false },
		{ "{\"limits\":{\"memory\":\"1Gi\"}}", "{}", false, false },
		{ "{}", "{\"limits\":{\"memory\":\"1Gi\"}}", false, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val given = allocation_of(&a, pod_of(&a, t[i].given, "")), pod = pod_of(&a, t[i].asked, "");
		CHECK_ROW(i, allocation_is_same(pod, given) == t[i].same);
		CHECK_ROW(i, allocation_grows(&a, pod, given) == t[i].grows);
		CHECK_ROW(i, allocation_is_same(allocation_apply(&a, pod, given), given));
	}
}

TEST(allocation_changes_nothing_but_resources)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val old = pod_of(&a, "{\"requests\":{\"cpu\":\"1\"}}",
				",\"initContainers\":[{\"name\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"3\"}}}],\"resources\":{\"requests\":{\"cpu\":\"4\"}}");
	struct val new = pod_of(&a, "{\"requests\":{\"cpu\":\"2\"}}",
				",\"initContainers\":[{\"name\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"5\"}}}],\"resources\":{\"requests\":{\"cpu\":\"6\"}}");
	struct val given = allocation_of(&a, old);

	CHECK_STR(show(&a, given), "{\"initContainers\":[{\"name\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"3\"}}}],"
		  "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}],\"resources\":{\"requests\":{\"cpu\":\"4\"}}}");
	CHECK(val_equal(allocation_apply(&a, new, given), old));
	/* A container that came later keeps what it asks for. */
	struct val debug = pod_of(&a, "{\"requests\":{\"cpu\":\"2\"}}", ",\"ephemeralContainers\":[{\"name\":\"d\"}]");
	CHECK_STR(show(&a, val_get(allocation_apply(&a, debug, given), spec, ephemeralContainers)), "[{\"name\":\"d\"}]");
}

TEST(allocation_holds_the_larger)
{
	static const struct {
		const char *now, *before, *want;
	} t[] = {
		{ "{\"requests\":{\"cpu\":\"1\",\"memory\":\"2Mi\"}}", "{\"requests\":{\"cpu\":\"2\",\"memory\":\"1Mi\"}}",
		  "{\"requests\":{\"cpu\":\"2\",\"memory\":\"2Mi\"}}" },
		{ "{\"requests\":{\"memory\":\"2Mi\"}}", "{\"requests\":{\"cpu\":\"2\"}}", "{\"requests\":{\"cpu\":\"2\",\"memory\":\"2Mi\"}}" },
		{ "{\"limits\":{\"cpu\":\"1\"}}", "{\"limits\":{\"cpu\":\"2\"}}", "{\"limits\":{\"cpu\":\"1\"}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val before = allocation_of(&a, pod_of(&a, t[i].before, "")), pod = pod_of(&a, t[i].now, "");
		CHECK_STR_ROW(i, show(&a, val_get(val_at(val_get(allocation_max(&a, pod, before), spec, containers), 0), resources)), t[i].want);
	}
}

#define GUARANTEED(cpu, memory) "{\"limits\":{\"cpu\":\"" cpu "\",\"memory\":\"" memory "\"},\"requests\":{\"cpu\":\"" cpu "\",\"memory\":\"" memory "\"}}"
#define FIXED "Resize is infeasible for Guaranteed Pods alongside "

TEST(allocation_knows_what_can_never_be)
{
	static const struct {
		const char *config, *given, *asked, *more;
		bool swap;
		const char *want;
	} t[] = {
		{ "{}", GUARANTEED("1", "1Gi"), GUARANTEED("2", "1Gi"), "", false, "" },
		{ "{\"cpuManagerPolicy\":\"static\"}", GUARANTEED("1", "1Gi"), GUARANTEED("2", "1Gi"), "", false, FIXED "CPU Manager policy \"static\"" },
		{ "{\"cpuManagerPolicy\":\"static\"}", GUARANTEED("1", "1Gi"), GUARANTEED("1", "2Gi"), "", false, "" },
		{ "{\"cpuManagerPolicy\":\"static\"}", "{\"requests\":{\"cpu\":\"1\"}}", "{\"requests\":{\"cpu\":\"2\"}}", "", false, "" },
		{ "{\"memoryManagerPolicy\":\"Static\"}", GUARANTEED("1", "1Gi"), GUARANTEED("2", "2Gi"), "", false,
		  FIXED "Memory Manager policy \"Static\"" },
		{ "{\"featureGates\":{\"InPlacePodLevelResourcesVerticalScaling\":false}}", "{}", "{}", ",\"resources\":{\"requests\":{\"cpu\":\"1\"}}",
		  false, "InPlacePodLevelResourcesVerticalScaling is disabled" },
		{ "{}", "{}", "{}", ",\"resources\":{\"requests\":{\"cpu\":\"1\"}}", false, "" },
		{ "{}", "{\"requests\":{\"memory\":\"1Mi\"}}", "{\"requests\":{\"memory\":\"2Mi\"}}", "", true,
		  "In-place resize of containers with swap is not supported." },
		{ "{}", "{\"requests\":{\"memory\":\"1Mi\"}}", "{\"requests\":{\"memory\":\"1Mi\",\"cpu\":\"1\"}}", "", true, "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = { .swap_limited = t[i].swap, .cgroup_v2 = true, .swap_controller = true };
		struct val config = decode(&a, t[i].config, TYPE(kubeletconfig_v1beta1, KubeletConfiguration));
		struct val given = allocation_of(&a, pod_of(&a, t[i].given, ""));
		CHECK_STR_ROW(i, allocation_infeasible(&n, &a, config, pod_of(&a, t[i].asked, t[i].more), given), t[i].want);
	}
}

TEST(resize_messages_are_those_of_kubernetes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = pod_of(&a, "{\"requests\":{\"memory\":\"20Mi\",\"cpu\":\"20m\"},\"limits\":{\"cpu\":\"40m\"}}", "");

	CHECK_STR(resize_message(&a, "Pod resize started", pod, 2, STR_NONE),
		  "Pod resize started: {\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"cpu\":\"40m\"},"
		  "\"requests\":{\"cpu\":\"20m\",\"memory\":\"20Mi\"}}}],\"generation\":2}");
	pod = pod_of(&a, "{}", ",\"initContainers\":[{\"name\":\"i\"}]");
	CHECK_STR(resize_message(&a, "Pod resize OutOfcpu", pod, 3, STR("it's \"full\"")),
		  "Pod resize OutOfcpu: {\"initContainers\":[{\"name\":\"i\",\"resources\":{}}],\"containers\":[{\"name\":\"c\",\"resources\":{}}],"
		  "\"generation\":3,\"error\":\"it's \\\"full\\\"\"}");
}

TEST(resize_conditions_have_an_order)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val list = resize_condition_put(&a, VAL_EMPTY_LIST, RESIZE_IN_PROGRESS, STR_NONE, STR_NONE, 2);

	list = resize_condition_put(&a, list, RESIZE_PENDING, STR("Deferred"), STR("no room"), 3);
	CHECK_STR(show(&a, list), "[{\"type\":\"PodResizePending\",\"observedGeneration\":3,\"reason\":\"Deferred\",\"message\":\"no room\"},"
		  "{\"type\":\"PodResizeInProgress\",\"observedGeneration\":2}]");
	list = resize_condition_put(&a, list, RESIZE_PENDING, STR("Infeasible"), STR_NONE, 4);
	CHECK_STR(val_str(resize_condition(list, RESIZE_PENDING), reason), "Infeasible");
	list = resize_condition_remove(&a, list, RESIZE_PENDING);
	CHECK_STR(show(&a, list), "[{\"type\":\"PodResizeInProgress\",\"observedGeneration\":2}]");
	CHECK(!val_exists(resize_condition(list, RESIZE_PENDING)));
}
