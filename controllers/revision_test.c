#include "controllers/plan_testing.h"
#include "controllers/revision.h"

/* Names that a real controller gave. */
TEST(revision_names)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val template = tree(&a, "{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'name':'c','image':'registry.k8s.io/pause:3.10.2','resources':{},"
				       "'terminationMessagePath':'/dev/termination-log','terminationMessagePolicy':'File','imagePullPolicy':'IfNotPresent'}],"
				       "'restartPolicy':'Always','terminationGracePeriodSeconds':1,'dnsPolicy':'ClusterFirst','securityContext':{},"
				       "'schedulerName':'default-scheduler'}}");
	struct val data, back, again;

	CHECK_INT(revision_data(&a, template, &data, NULL), 0);
	CHECK_STR(tree_text(&a, data),
		  "{'spec':{'template':{'$patch':'replace','metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'image':'registry.k8s.io/pause:3.10.2',"
		  "'imagePullPolicy':'IfNotPresent','name':'c','resources':{},'terminationMessagePath':'/dev/termination-log',"
		  "'terminationMessagePolicy':'File'}],'dnsPolicy':'ClusterFirst','restartPolicy':'Always','schedulerName':'default-scheduler',"
		  "'securityContext':{},'terminationGracePeriodSeconds':1}}}}");
	CHECK_STR(revision_hash(&a, data, 0), "846898c985");
	CHECK_STR(revision_name(&a, tree(&a, "{'metadata':{'name':'w'}}"), STR("846898c985")), "w-846898c985");
	CHECK_INT(revision_template(&a, OBJECT(&a, F(data, data)), &back, NULL), 0);
	CHECK_INT(revision_data(&a, back, &again, NULL), 0);
	CHECK(val_equal(again, data));
}

static bool is_b(str name, void *arg)
{
	(void)arg;
	return str_eq(name, STR("b"));
}

TEST(revision_history)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val all = tree(&a, "[{'metadata':{'name':'c'},'revision':3,'data':{'x':1}},{'metadata':{'name':'a'},'revision':1,'data':{'x':1}},"
				  "{'metadata':{'name':'d'},'revision':4,'data':{'x':2}},{'metadata':{'name':'b'},'revision':2,'data':{'x':3}}]");
	struct val sorted = revisions_sorted(&a, all);

	CHECK_STR(val_str(val_at(sorted, 0), metadata, name), "a");
	CHECK_INT(revisions_next(sorted), 5);
	CHECK_INT(revisions_next(VAL_EMPTY_LIST), 1);
	CHECK_STR(val_str(revisions_find(sorted, tree(&a, "{'x':1}")), metadata, name), "c");
	CHECK(!val_exists(revisions_find(sorted, tree(&a, "{'x':9}"))));
	struct val old = revisions_outdated(&a, sorted, 1, is_b, NULL);
	CHECK_INT(val_len(old), 2);
	CHECK_STR(val_str(val_at(old, 1), metadata, name), "c");
	CHECK_INT(val_len(revisions_outdated(&a, sorted, 3, is_b, NULL)), 0);
}
