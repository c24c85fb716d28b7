#include "apiserver/admission/limit_ranger.h"

#include "codec/types.h"
#include "machinery/testing.h"

#define RANGE(items) "{'spec':{'limits':[" items "]}}"
#define POD(containers) "{'spec':{'containers':[" containers "]}}"

TEST(limit_ranger_defaults)
{
	static const struct {
		const char *range, *pod, *want;
	} rows[] = {
		{ RANGE("{'type':'Container','max':{'cpu':'1'}}"), POD("{'name':'c'}"), "{'spec':{'containers':[{'name':'c'}]}}" },
		{ RANGE("{'type':'Pod','default':{'cpu':'1'}}"), POD("{'name':'c'}"), "{'spec':{'containers':[{'name':'c'}]}}" },
		{ RANGE("{'type':'Container','default':{'memory':'2Gi','cpu':'1'},'defaultRequest':{'memory':'1Gi'}}"),
		  POD("{'name':'c'},{'name':'d','resources':{'limits':{'cpu':'7'},'requests':{'memory':'5'}}}"),
		  "{'metadata':{'annotations':{'kubernetes.io/limit-ranger':'LimitRanger plugin set: memory request for container c; "
		  "cpu, memory limit for container c; memory limit for container d'}},'spec':{'containers':["
		  "{'name':'c','resources':{'limits':{'cpu':'1','memory':'2Gi'},'requests':{'memory':'1Gi'}}},"
		  "{'name':'d','resources':{'limits':{'cpu':'7','memory':'2Gi'},'requests':{'memory':'5'}}}]}}" },
		{ RANGE("{'type':'Container','defaultRequest':{'cpu':'1'}},{'type':'Container','defaultRequest':{'cpu':'2'}}"),
		  "{'spec':{'initContainers':[{'name':'i'}],'containers':[]}}",
		  "{'metadata':{'annotations':{'kubernetes.io/limit-ranger':'LimitRanger plugin set: cpu request for init container i'}},"
		  "'spec':{'containers':[],'initContainers':[{'name':'i','resources':{'requests':{'cpu':'2'}}}]}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val range = testing_typed(&a, TYPE(core_v1, LimitRange), rows[i].range);
		struct val pod = testing_typed(&a, TYPE(core_v1, Pod), rows[i].pod);
		CHECK_STR_ROW(i, testing_result(&a, 0, limit_range_default(&a, range, pod), NULL), rows[i].want);
	}
}

#define REQUESTS(cpu) "'resources':{'requests':{'cpu':'" cpu "'}}"
#define BOTH(request, limit) "'resources':{'requests':{'cpu':'" request "'},'limits':{'cpu':'" limit "'}}"

TEST(limit_ranger_bounds_of_pods)
{
	static const struct {
		const char *range, *pod, *want;
	} rows[] = {
		{ RANGE("{'type':'Container','min':{'cpu':'100m'},'max':{'cpu':'1'}}"), POD("{'name':'c'," BOTH("100m", "1") "}"), "" },
		{ RANGE("{'type':'Container','min':{'cpu':'100m'}}"), POD("{'name':'c'}"),
		  "minimum cpu usage per Container is 100m.  No request is specified" },
		{ RANGE("{'type':'Container','min':{'cpu':'100m'}}"), POD("{'name':'c'," REQUESTS("99m") "}"),
		  "minimum cpu usage per Container is 100m, but request is 99m" },
		{ RANGE("{'type':'Container','min':{'cpu':'100m'}}"), POD("{'name':'c'," BOTH("1", "50m") "}"),
		  "minimum cpu usage per Container is 100m, but limit is 50m" },
		{ RANGE("{'type':'Container','max':{'cpu':'1'}}"), POD("{'name':'c'," REQUESTS("1") "}"),
		  "maximum cpu usage per Container is 1.  No limit is specified" },
		{ RANGE("{'type':'Container','max':{'cpu':'1'}}"), POD("{'name':'c'," BOTH("1", "1001m") "}"),
		  "maximum cpu usage per Container is 1, but limit is 1001m" },
		{ RANGE("{'type':'Container','max':{'cpu':'1'}}"), POD("{'name':'c'," BOTH("2", "1") "}"),
		  "maximum cpu usage per Container is 1, but request is 2" },
		{ RANGE("{'type':'Container','maxLimitRequestRatio':{'cpu':'2'}}"), POD("{'name':'c'," BOTH("1", "2") "}"), "" },
		{ RANGE("{'type':'Container','maxLimitRequestRatio':{'cpu':'2'}}"), POD("{'name':'c'," BOTH("1", "2500m") "}"),
		  "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000" },
		{ RANGE("{'type':'Container','maxLimitRequestRatio':{'cpu':'2'}}"), POD("{'name':'c'}"),
		  "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0" },
		{ RANGE("{'type':'Container','maxLimitRequestRatio':{'cpu':'2'}}"), POD("{'name':'c'," BOTH("1", "0") "}"),
		  "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0" },
		/* several, and the same of two containers once */
		{ RANGE("{'type':'Container','max':{'cpu':'1','memory':'1Gi'}}"), POD("{'name':'c'},{'name':'d'}"),
		  "[maximum cpu usage per Container is 1.  No limit is specified, "
		  "maximum memory usage per Container is 1Gi.  No limit is specified]" },
		{ RANGE("{'type':'Container','max':{'cpu':'1'}}"), POD("{'name':'c'},{'name':'d'}"),
		  "maximum cpu usage per Container is 1.  No limit is specified" },
		/* pods: containers and sidecars together, or what one init container needs beside them */
		{ RANGE("{'type':'Pod','max':{'cpu':'2'}}"), POD("{'name':'c'," BOTH("1", "1") "},{'name':'d'," BOTH("1", "1500m") "}"),
		  "maximum cpu usage per Pod is 2, but limit is 2500m" },
		{ RANGE("{'type':'Pod','max':{'cpu':'2'}}"),
		  "{'spec':{'initContainers':[{'name':'s','restartPolicy':'Always'," BOTH("1", "1") "},{'name':'i'," BOTH("2", "2") "}],"
		  "'containers':[{'name':'c'," BOTH("500m", "500m") "}]}}",
		  "maximum cpu usage per Pod is 2, but limit is 3" },
		{ RANGE("{'type':'Pod','max':{'cpu':'2'}}"),
		  "{'spec':{" BOTH("1", "2") ",'containers':[{'name':'c'," BOTH("5", "5") "}]}}", "" },
		{ RANGE("{'type':'PersistentVolumeClaim','max':{'storage':'1Gi'}}"), POD("{'name':'c'}"), "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val range = testing_typed(&a, TYPE(core_v1, LimitRange), rows[i].range);
		struct val pod = testing_typed(&a, TYPE(core_v1, Pod), rows[i].pod);
		CHECK_STR_ROW(i, limit_range_check_pod(&a, range, pod), rows[i].want);
	}
}

TEST(limit_ranger_bounds_of_claims)
{
	static const struct {
		const char *request, *want;
	} rows[] = {
		{ "'requests':{'storage':'1Gi'}", "" },
		{ "'requests':{'storage':'500Mi'}", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi" },
		{ "'requests':{'storage':'3Gi'}", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi" },
		{ "", "[minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified, "
		      "maximum storage usage per PersistentVolumeClaim is 2Gi.  No request is specified]" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val range = testing_typed(&a, TYPE(core_v1, LimitRange),
						 RANGE("{'type':'PersistentVolumeClaim','min':{'storage':'1Gi'},'max':{'storage':'2Gi'}}"));
		str claim = arena_printf(&a, "{'spec':{'resources':{%s}}}", rows[i].request);
		CHECK_STR_ROW(i, limit_range_check_claim(&a, range, testing_typed(&a, TYPE(core_v1, PersistentVolumeClaim), claim.p)),
			      rows[i].want);
	}
}
