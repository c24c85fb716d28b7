#include "controllers/quota_usage.h"

#include "codec/types.h"
#include "controllers/plan_testing.h"

/* What the status becomes when these objects are counted; "": nothing changes. */
static str counted(struct arena *a, const char *quota, const struct type *type, const char *objects)
{
	struct quota_count q;
	const struct resource *r = schema_resource(type, STR(""));
	quota_count_init(&q, a, tree(a, quota));
	if (quota_count_covers(&q, r))
		VAL_EACH(o, tree(a, objects))
			quota_count_add(&q, r, *o);
	struct val status = quota_count_status(&q);
	return val_exists(status) ? tree_text(a, status) : STR("");
}

#define POD(cpu) "{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'" cpu "'}}}]},'status':{'phase':'Running'}}"
#define OVER "{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]},'status':{'phase':'Succeeded'}}"

TEST(quota_counting)
{
	static const struct {
		const char *quota;
		const struct type *type;
		const char *objects, *want;
	} t[] = {
		{ "{'spec':{'hard':{'pods':'3','cpu':'2'}}}", TYPE(core_v1, Pod), "[" POD("500m") "," POD("1") "," OVER "]",
		  "{'hard':{'cpu':'2','pods':'3'},'used':{'cpu':'1500m','pods':'2'}}" },
		{ "{'spec':{'hard':{'pods':'3'}}}", TYPE(core_v1, Pod), "[]", "{'hard':{'pods':'3'},'used':{'pods':'0'}}" },
		{ "{'spec':{'hard':{'pods':'3'}},'status':{'hard':{'pods':'3'},'used':{'pods':'1'}}}", TYPE(core_v1, Pod), "[" POD("1") "]", "" },
		{ "{'spec':{'hard':{'pods':'3'},'scopes':['BestEffort']}}", TYPE(core_v1, Pod),
		  "[" POD("1") ",{'spec':{'containers':[{'name':'c'}]}}]", "{'hard':{'pods':'3'},'used':{'pods':'1'}}" },
		{ "{'spec':{'hard':{'configmaps':'3','count/configmaps':'4'}}}", TYPE(core_v1, ConfigMap), "[{},{}]",
		  "{'hard':{'configmaps':'3','count/configmaps':'4'},'used':{'configmaps':'2','count/configmaps':'2'}}" },
		/* What nobody measures stays as it was. */
		{ "{'spec':{'hard':{'pods':'3','other':'1'}},'status':{'hard':{'pods':'2','other':'1'},'used':{'other':'1','gone':'1'}}}",
		  TYPE(core_v1, Pod), "[]", "{'hard':{'other':'1','pods':'3'},'used':{'other':'1','pods':'0'}}" },
		{ "{'spec':{'hard':{'count/resourceclaims.resource.k8s.io':'3','requests.x.test/gpu':'1'}}}", TYPE(resource_v1, ResourceClaim), "[{}]",
		  "{'hard':{'count/resourceclaims.resource.k8s.io':'3','requests.x.test/gpu':'1'},'used':{'count/resourceclaims.resource.k8s.io':'1'}}" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, counted(&a, t[i].quota, t[i].type, t[i].objects), t[i].want);
}

TEST(quota_changes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct resource *pods = schema_resource(TYPE(core_v1, Pod), STR(""));
	struct quota_count q;
	quota_count_init(&q, &a, tree(&a, "{'spec':{'hard':{'cpu':'2','pods':'1'}}}"));
	CHECK(quota_count_covers(&q, pods));
	CHECK(!quota_count_covers(&q, schema_resource(TYPE(core_v1, Secret), STR(""))));
	CHECK(quota_count_differs(&q, pods, tree(&a, POD("1")), tree(&a, OVER)));
	CHECK(!quota_count_differs(&q, pods, tree(&a, POD("1")), tree(&a, POD("1"))));
}
