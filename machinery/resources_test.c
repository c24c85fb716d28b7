#include "machinery/resources.h"

#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/testing.h"

TEST(resource_names)
{
	static const struct {
		const char *name;
		bool native, extended, standard, integer, overcommit;
	} t[] = {
		{ "cpu", true, false, true, false, true },
		{ "pods", true, false, true, true, true },
		{ "foo", true, false, false, false, true },
		{ "hugepages-2Mi", true, false, true, false, false },
		{ "example.com/gpu", false, true, false, true, false },
		{ "kubernetes.io/x", true, false, false, false, true },
		{ "requests.example.com/x", false, false, false, false, false },
		{ "-/x", false, false, false, false, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str name = str_of(t[i].name);
		CHECK_ROW(i, resource_is_native(name) == t[i].native);
		CHECK_ROW(i, resource_is_extended(name) == t[i].extended);
		CHECK_ROW(i, resource_is_standard(name) == t[i].standard);
		CHECK_ROW(i, resource_is_integer(name) == t[i].integer);
		CHECK_ROW(i, resource_can_overcommit(name) == t[i].overcommit);
	}
}

#define C(requests) "{'resources':{'requests':{" requests "}}}"
#define SIDECAR(requests) "{'restartPolicy':'Always','resources':{'requests':{" requests "}}}"

TEST(pod_container_resources)
{
	static const struct {
		const char *spec, *want;
	} t[] = {
		{ "{'containers':[{}]}", "{}" },
		{ "{'containers':[" C("'cpu':'100m','memory':'1Mi'") "," C("'cpu':'1'") "]}",
		  "{'cpu':'1100m','memory':'1Mi'}" },
		/* an init container needs more than all the others */
		{ "{'initContainers':[" C("'cpu':'2'") "," C("'cpu':'3'") "],'containers':[" C("'cpu':'1'") "]}",
		  "{'cpu':'3'}" },
		/* sidecars run beside everything that comes after them */
		{ "{'initContainers':[" C("'cpu':'2'") "," SIDECAR("'cpu':'1'") "," C("'cpu':'3'") "],'containers':[" C("'cpu':'1'") "]}",
		  "{'cpu':'4'}" },
		{ "{'initContainers':[" SIDECAR("'cpu':'1'") "],'containers':[" C("'cpu':'1'") "," C("'cpu':'1'") "]}",
		  "{'cpu':'3'}" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val spec = testing_typed(&a, TYPE(core_v1, PodSpec), t[i].spec);
		CHECK_STR_ROW(i, testing_text(&a, pod_container_resources(&a, spec, A_requests)), t[i].want);
	}
	arena_done(&a);
}

#define R(requests, limits) "{'resources':{'requests':{" requests "},'limits':{" limits "}}}"
#define FULL "'cpu':'1','memory':'1Gi'"

TEST(pod_qos_class)
{
	static const struct {
		const char *spec, *want;
	} t[] = {
		{ "{'containers':[{}]}", "BestEffort" },
		{ "{'containers':[" R("'cpu':'0'", "") "]}", "BestEffort" },
		{ "{'containers':[" R("'ephemeral-storage':'1'", "") "]}", "BestEffort" },
		{ "{'containers':[" R("'cpu':'1'", "") "]}", "Burstable" },
		{ "{'containers':[" R(FULL, FULL) "]}", "Guaranteed" },
		{ "{'containers':[" R(FULL, FULL) ",{}]}", "Burstable" },
		{ "{'containers':[" R(FULL, FULL) "],'initContainers':[" R("'cpu':'1'", "'cpu':'1'") "]}", "Burstable" },
		{ "{'containers':[" R("'cpu':'1000m','memory':'1Gi'", FULL) "]}", "Guaranteed" },
		{ "{'containers':[{}],'resources':{'requests':{" FULL "},'limits':{" FULL "}}}", "Guaranteed" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, pod_qos_class(testing_typed(&a, TYPE(core_v1, PodSpec), t[i].spec)), t[i].want);
	arena_done(&a);
}
