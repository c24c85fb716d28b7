#include "machinery/testing.h"

TEST(strategic_patch_convert)
{
	static const struct {
		const char *type, *doc, *want;
	} t[] = {
		{ "apps/v1.Deployment", "{'spec':{'replicas':3}}", "{'spec':{'replicas':3}}" },
		{ "apps/v1.Deployment", "{'spec':{'replicas':3.0}}", "{'spec':{'replicas':3}}" },
		{ "apps/v1.Deployment", "{'spec':{'replicas':4294967298}}", "{'spec':{'replicas':2}}" },
		{ "apps/v1.Deployment", "{'spec':{'replicas':null,'template':null}}",
		  "{'spec':{'replicas':null,'template':null}}" },
		{ "apps/v1.Deployment", "{'metadata':{'labels':{'a':null}}}", "{'metadata':{'labels':{'a':null}}}" },
		{ "core/v1.Pod", "{'spec':{'nodeName':'n','bogus':1}}", "{'spec':{'bogus':1,'nodeName':'n'}}" },
		{ "apps/v1.Deployment", "{'spec':{'replicas':2.5}}", "! cannot convert float64 to int32" },
		{ "apps/v1.Deployment", "{'spec':{'replicas':'3'}}", "! unrecognized type: int32" },
		{ "apps/v1.Deployment", "{'spec':{'paused':'yes'}}", "! unrecognized type: bool" },
		{ "apps/v1.Deployment", "{'spec':'x'}", "! cannot restore struct from: string" },
		{ "apps/v1.Deployment", "{'spec':[1]}", "! cannot restore struct from: slice" },
		{ "apps/v1.Deployment", "{'metadata':{'labels':'x'}}", "! cannot restore map from string" },
		{ "apps/v1.Deployment", "{'metadata':{'labels':{'a':1}}}", "! cannot convert int64 to string" },
		{ "apps/v1.Deployment", "{'metadata':{'labels':{'a':{}}}}", "! unrecognized type: string" },
		{ "apps/v1.Deployment", "{'metadata':{'finalizers':{'a':1}}}", "! cannot restore slice from map" },
		{ "apps/v1.Deployment", "{'metadata':{'finalizers':[1]}}", "! cannot convert int64 to string" },
		{ "apps/v1.Deployment", "{'metadata':{'finalizers':[2.5]}}", "! unrecognized type: string" },
		{ "apps/v1.Deployment", "{'spec':{'template':{'spec':{'containers':{}}}}}",
		  "! cannot restore slice from map" },
		{ "apps/v1.Deployment", "{'spec':{'template':{'spec':{'containers':['x']}}}}",
		  "! cannot restore struct from: string" },
		{ "apps/v1.Deployment", "{'spec':{'template':{'spec':{'dnsPolicy':1}}}}",
		  "! cannot convert int64 to v1.DNSPolicy" },
		{ "core/v1.Pod", "{'status':{'phase':7}}", "! cannot convert int64 to v1.PodPhase" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val v = VAL_EMPTY;
		struct err err = ERR_INIT;
		int r = strategic_patch_convert(&a, testing_tree(&a, t[i].doc), schema_type(str_of(t[i].type)),
						&v, &err);
		CHECK_STR_ROW(i, testing_result(&a, r, v, &err), t[i].want);
	}
}
