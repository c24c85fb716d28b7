#include "apiserver/admission/tolerations.h"

#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/testing.h"

static struct val list(struct arena *a, const char *quoted)
{
	str pod = arena_printf(a, "{'spec':{'tolerations':%s}}", quoted);
	return val_get(testing_typed(a, TYPE(core_v1, Pod), pod.p), spec, tolerations);
}

TEST(tolerations_merge)
{
	static const struct {
		const char *first, *second, *want;
	} rows[] = {
		{ "[]", "[]", "[]" },
		{ "[{'key':'a','operator':'Exists'}]", "[{'key':'a','operator':'Exists','effect':'NoSchedule'}]",
		  "[{'key':'a','operator':'Exists'}]" },
		{ "[{'key':'a','operator':'Equal','value':'x'}]", "[{'operator':'Exists'}]", "[{'operator':'Exists'}]" },
		{ "[{'key':'a','operator':'Equal','value':'x'}]", "[{'key':'a','operator':'Equal','value':'y'}]",
		  "[{'key':'a','operator':'Equal','value':'x'},{'key':'a','operator':'Equal','value':'y'}]" },
		{ "[{'key':'a','operator':'Exists','effect':'NoExecute','tolerationSeconds':5}]",
		  "[{'key':'a','operator':'Exists','effect':'NoExecute','tolerationSeconds':9}]",
		  "[{'effect':'NoExecute','key':'a','operator':'Exists','tolerationSeconds':9}]" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val merged = tolerations_merge(&a, list(&a, rows[i].first), list(&a, rows[i].second));
		CHECK_STR_ROW(i, testing_result(&a, 0, merged, NULL), rows[i].want);
	}
}

TEST(tolerations_allowed)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val by = list(&a, "[{'key':'a','operator':'Exists'},{'key':'b','operator':'Equal','value':'x'}]");
	CHECK(tolerations_allowed(list(&a, "[{'key':'a','operator':'Equal','value':'z'},{'key':'b','operator':'Equal','value':'x'}]"), by));
	CHECK(!tolerations_allowed(list(&a, "[{'key':'b','operator':'Equal','value':'y'}]"), by));
	CHECK(tolerations_allowed(list(&a, "[{'key':'b'}]"), VAL_EMPTY));
}
