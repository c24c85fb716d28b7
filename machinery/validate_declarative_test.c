#include "machinery/validate_priv.h"
#include "machinery/validate_testing.h"

#define WORKLOAD(spec) "{'spec':{" spec "}}"
#define GANG(count) "'schedulingPolicy':{'gang':{'minCount':" count "}}"

TEST(check_declared)
{
	static const struct {
		const char *object, *old, *want;
	} t[] = {
		{ WORKLOAD("'podGroupTemplates':[{'name':'a'," GANG("1") "}]"), NULL, "" },
		{ WORKLOAD(""), NULL, "spec.podGroupTemplates: Required value" },
		{ WORKLOAD("'podGroupTemplates':[{'name':'A'," GANG("-1") "},{'name':'b'," GANG("0") "}]"), NULL,
		  "spec.podGroupTemplates[0].name: Invalid value: 'A': " LABEL_TEXT "\n"
		  "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than"
		  " or equal to 1\n"
		  "spec.podGroupTemplates[1].schedulingPolicy.gang.minCount: Required value" },
		{ WORKLOAD("'podGroupTemplates':[{'name':'a','schedulingPolicy':{}},{'name':'a',"
			   "'schedulingPolicy':{'basic':{},'gang':{'minCount':1}}}]"),
		  NULL,
		  "spec.podGroupTemplates[1]: Duplicate value: {'name':'a','schedulingPolicy':{'basic':{},"
		  "'gang':{'minCount':1}},"
		  "'schedulingConstraints':null}\n"
		  "spec.podGroupTemplates[0].schedulingPolicy: Invalid value: '': must specify one of: `basic`, `gang`\n"
		  "spec.podGroupTemplates[1].schedulingPolicy: Invalid value: '{basic, gang}': must specify exactly"
		  " one of: `basic`, `gang`" },
		{ WORKLOAD("'controllerRef':{'kind':'a/b','name':'c'},'podGroupTemplates':[{'name':'a'," GANG("1") "}]"),
		  NULL,
		  "spec.controllerRef.kind: Invalid value: 'a/b': may not contain '/'" },
		/* what was wrong before and did not change is not looked at */
		{ WORKLOAD("'podGroupTemplates':[{'name':'A'," GANG("1") "}]"),
		  WORKLOAD("'podGroupTemplates':[{'name':'A'," GANG("1") "}]"), "" },
		{ WORKLOAD("'podGroupTemplates':[{'name':'b'," GANG("1") "}]"),
		  WORKLOAD("'podGroupTemplates':[{'name':'a'," GANG("1") "}]"),
		  "spec.podGroupTemplates: Invalid value: null: field is immutable" },
	};
	const struct type *type = TYPE(scheduling_v1alpha2, Workload);
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct field_errors errors;
		field_errors_init(&errors, &a);
		check_declared(&errors, type, testing_typed(&a, type, t[i].object),
			       t[i].old ? testing_typed(&a, type, t[i].old) : VAL_EMPTY);
		CHECK_STR_ROW(i, testing_lines(&a, &errors), t[i].want);
	}
	arena_done(&a);
}
