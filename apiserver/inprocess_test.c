#include "apiserver/inprocess.h"

#include "apiserver/hooks.h"
#include "apiserver/read_fixture.h"
#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "machinery/testing.h"

static struct val tree(struct arena *a, const char *json)
{
	struct val v;
	CHECK_INT(json_decode(a, testing_json(a, json), &(struct json_decode_options){ .sort_keys = true }, &v, NULL), 0);
	return v;
}

static struct val append(struct arena *a, struct val live, void *arg)
{
	unsigned *calls = arg;
	str said = val_as_str(val_find(val_get(live, data), STR("x")));
	if (++*calls > 2)
		return VAL_EMPTY;
	return val_with(a, live, val_put(a, VAL_EMPTY, atom_make(a, STR("x")), val_of_str(arena_join(a, said, STR("!")))), data);
}

static struct val stored(struct read_fixture *f, str resource, const char *key)
{
	struct object *o = cache_get(kinds_find(&f->server.kinds, STR(""), resource), str_of(key));
	return o ? o->val : VAL_EMPTY;
}

FIBER_TEST(inprocess_writes_like_a_request)
{
	struct read_fixture f;
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	unsigned calls = 0;
	read_fixture_init(&f);
	const struct inprocess *w = INPROCESS(&f.server, "", "configmaps");
	struct val map = tree(&a, "{'metadata':{'name':'m','namespace':'n'},'data':{'x':'a'}}");

	CHECK_INT(inprocess_create(w, map, &err), 0);
	struct val v = stored(&f, w->resource, "n/m");
	CHECK_INT(val_str(v, metadata, uid).n, 36);
	CHECK(val_str(v, metadata, creationTimestamp).n && val_str(v, metadata, resourceVersion).n);
	CHECK_STR(val_str(val_at(val_get(v, metadata, managedFields), 0), manager), "kube-apiserver");
	CHECK_INT(inprocess_create(w, map, &err), -ERR_ALREADY_EXISTS);
	CHECK_STR(err_str(&err), "configmaps \"m\" already exists");
	CHECK_INT(inprocess_create(w, tree(&a, "{'metadata':{'name':'M','namespace':'n'}}"), &err), -ERR_INVALID);

	CHECK_INT(inprocess_update(w, STR("n"), STR("m"), append, &calls, &err), 0);
	CHECK_INT(inprocess_update(w, STR("n"), STR("m"), append, &calls, &err), 0);
	CHECK_INT(inprocess_update(w, STR("n"), STR("m"), append, &calls, &err), 0); /* as it is */
	CHECK_STR(val_as_str(val_find(val_get(stored(&f, w->resource, "n/m"), data), STR("x"))), "a!!");
	CHECK_INT(inprocess_update(w, STR("n"), STR("other"), append, &calls, &err), -ERR_NOT_FOUND);

	const struct inprocess applier = { .server = &f.server, .resource = STR("configmaps"), .manager = STR("applier") };
	CHECK_INT(inprocess_apply(&applier, tree(&a, "{'data':{'y':'b'},'metadata':{'name':'m','namespace':'n'}}"), &err), 0);
	v = stored(&f, w->resource, "n/m");
	CHECK_STR(val_as_str(val_find(val_get(v, data), STR("y"))), "b");
	CHECK_STR(val_str(val_at(val_get(v, metadata, managedFields), 0), manager), "applier");
	CHECK_STR(val_str(val_at(val_get(v, metadata, managedFields), 0), operation), "Apply");

	CHECK_INT(inprocess_delete(w, STR("n"), STR("m"), &err), 0);
	CHECK_INT(inprocess_delete(w, STR("n"), STR("m"), &err), -ERR_NOT_FOUND);
	CHECK_INT(inprocess_create(INPROCESS(&f.server, "", "nothings"), map, &err), -ERR_NOT_FOUND);
	arena_done(&a);
	read_fixture_done(&f);
}
