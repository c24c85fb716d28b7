#include "base/clock.h"
#include "controllers/plan_testing.h"
#include "controllers/replica_set_plan.h"

static struct val pods(struct arena *a, size_t n)
{
	struct val_builder list = val_builder(a);

	for (size_t i = 0; i < n; i++)
		val_add_item(&list, OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(arena_printf(a, "p%zu", i)))))));
	return val_end_list(&list);
}

TEST(replica_set_numbers)
{
	static const struct {
		int replicas;
		size_t have, create, delete;
	} t[] = {
		{ 0, 0, 0, 0 }, { 3, 0, 3, 0 }, { 3, 1, 2, 0 }, { 3, 3, 0, 0 }, { 3, 5, 0, 2 }, { 0, 2, 0, 2 }, { 2000, 0, 500, 0 }, { 1, 700, 0, 500 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val set = OBJECT(&a, F(spec, OBJECT(&a, F(replicas, val_of_int(t[i].replicas)))));
		struct replica_set_plan plan = replica_set_plan(&a, set, pods(&a, t[i].have), VAL_EMPTY_LIST, 0);
		CHECK_ROW(i, plan.create == t[i].create);
		CHECK_ROW(i, val_len(plan.delete) == t[i].delete);
	}
}

/* Of two nodes the one with more pods of the deployment gives one up, whichever set they are of. */
TEST(replica_set_crowded_node)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val set = tree(&a, "{'spec':{'replicas':1}}");
	struct val mine = tree(&a, "[{'metadata':{'name':'a','uid':'a'},'spec':{'nodeName':'n1'}},"
				   "{'metadata':{'name':'b','uid':'b'},'spec':{'nodeName':'n2'}}]");
	struct val related = tree(&a, "[{'spec':{'nodeName':'n1'}},{'spec':{'nodeName':'n2'}},{'spec':{'nodeName':'n2'}},"
				      "{'spec':{'nodeName':'n1'},'status':{'phase':'Failed'}},"
				      "{'spec':{'nodeName':'n1'},'status':{'phase':'Failed'}}]");

	CHECK_STR(val_str(val_at(replica_set_plan(&a, set, mine, related, 0).delete, 0), metadata, name), "b");
	CHECK_STR(val_str(val_at(replica_set_plan(&a, set, mine, VAL_EMPTY_LIST, 0).delete, 0), metadata, name), "a");
}

#define SET(status) \
	"{'metadata':{'generation':2},'spec':{'replicas':2,'minReadySeconds':10,'template':{'metadata':{'labels':{'app':'w','v':'1'}}}}" status "}"
#define FAILURE "{'type':'ReplicaFailure','status':'True','lastTransitionTime':'1970-01-01T00:16:40Z','reason':'FailedCreate','message':'no'}"

TEST(replica_set_status)
{
	static const struct {
		const char *set, *pods;
		int terminating;
		const char *failure, *status; /* NULL: as it was */
	} t[] = {
		{ SET(""), "[]", 0, NULL, "{'terminatingReplicas':0,'observedGeneration':2}" },
		{ SET(""), "[]", -1, NULL, "{'observedGeneration':2}" },
		{ SET(",'status':{'terminatingReplicas':1,'observedGeneration':2}"), "[]", 1, NULL, NULL },
		{ SET(",'status':{'terminatingReplicas':1,'observedGeneration':1}"), "[]", 1, NULL, "{'terminatingReplicas':1,'observedGeneration':2}" },
		{ SET(""),
		  "[{'metadata':{'labels':{'app':'w','v':'1','x':'y'}}},{'metadata':{'labels':{'app':'w'}}},"
		  "{'status':{'conditions':[{'type':'Ready','status':'True','lastTransitionTime':'1970-01-01T00:16:35Z'}]}},"
		  "{'status':{'conditions':[{'type':'Ready','status':'True','lastTransitionTime':'1970-01-01T00:16:30Z'}]}}]",
		  2, NULL,
		  "{'replicas':4,'fullyLabeledReplicas':1,'readyReplicas':2,'availableReplicas':1,'terminatingReplicas':2,'observedGeneration':2}" },
		{ SET(""), "[]", -1, "no", "{'observedGeneration':2,'conditions':[" FAILURE "]}" },
		{ SET(""), "[{},{},{}]", -1, "gone", "{'replicas':3,'observedGeneration':2,'conditions':[{'type':'ReplicaFailure','status':'True',"
		  "'lastTransitionTime':'1970-01-01T00:16:40Z','reason':'FailedDelete','message':'gone'}]}" },
		{ SET(",'status':{'observedGeneration':2,'conditions':[" FAILURE "]}"), "[]", -1, "another reason", NULL },
		{ SET(",'status':{'observedGeneration':2,'conditions':[" FAILURE "]}"), "[]", -1, NULL, "{'observedGeneration':2}" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val set = tree(&a, t[i].set);
		struct val after = replica_set_status(&a, set, tree(&a, t[i].pods), t[i].terminating, t[i].failure, 1000 * NS_PER_S);
		CHECK_ROW(i, val_same(after, set) == !t[i].status);
		if (t[i].status)
			CHECK_STR_ROW(i, tree_text(&a, val_get(after, status)), t[i].status);
	}
}
