#include "scheduler/copies.h"

#include "codec/atoms.h"
#include "codec/json.h"
#include "machinery/testing.h"

static struct frozen *object(struct arena *a, const char *quoted)
{
	return val_freeze(testing_tree(a, quoted));
}

static void put(struct copies *c, struct arena *a, const char *quoted)
{
	CLEANUP(frozen_unrefp) struct frozen *f = object(a, quoted);
	copies_put(c, f);
}

static int assume(struct copies *c, struct arena *a, const char *quoted, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *f = object(a, quoted);
	return copies_assume(c, f, err);
}

static str kind_of(struct val v) { return val_str(v, kind); }

TEST(copies_assume_until_newer)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct copies c;
	struct err err = ERR_INIT;
	copies_init(&c, NULL, NULL);
	put(&c, &a, "{'kind':'told','metadata':{'namespace':'n','name':'x','resourceVersion':'5'}}");
	CHECK_INT(assume(&c, &a, "{'kind':'old','metadata':{'namespace':'n','name':'x','resourceVersion':'4'}}", &err), -ERR_CONFLICT);
	CHECK_STR(err_str(&err), "\"n/x\" is out of sync (stored: 5, assume: 4)");
	CHECK_INT(assume(&c, &a, "{'metadata':{'namespace':'n','name':'y','resourceVersion':'4'}}", &err), -ERR_NOT_FOUND);
	CHECK_INT(assume(&c, &a, "{'kind':'assumed','metadata':{'namespace':'n','name':'x','resourceVersion':'5'}}", &err), 0);
	CHECK_STR(kind_of(copies_val(&c, STR("n/x"))), "assumed");
	CHECK_STR(kind_of(copies_told(&c, STR("n/x"))->val), "told");
	/* The same version again (a resync) does not end it, another's restore neither; a newer one does. */
	put(&c, &a, "{'kind':'told','metadata':{'namespace':'n','name':'x','resourceVersion':'5'}}");
	copies_restore(&c, STR("n/x"), STR("4"));
	CHECK_STR(kind_of(copies_val(&c, STR("n/x"))), "assumed");
	put(&c, &a, "{'kind':'newer','metadata':{'namespace':'n','name':'x','resourceVersion':'10'}}");
	CHECK_STR(kind_of(copies_val(&c, STR("n/x"))), "newer");
	CHECK_INT(assume(&c, &a, "{'kind':'again','metadata':{'namespace':'n','name':'x','resourceVersion':'10'}}", &err), 0);
	copies_restore(&c, STR("n/x"), STR("10"));
	CHECK_STR(kind_of(copies_val(&c, STR("n/x"))), "newer");
	copies_remove(&c, STR("n/x"));
	CHECK(!copies_get(&c, STR("n/x")));
	copies_done(&c);
}

static str members(struct copies *c, struct arena *a, const char *group)
{
	str all = STR("");
	COPIES_EACH(x, c, str_of(group))
		all = arena_printf(a, STR_FMT STR_FMT " ", STR_ARG(all), STR_ARG(x->key));
	return all;
}

TEST(copies_groups)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct copies c;
	copies_init(&c, kind_of, NULL);
	put(&c, &a, "{'kind':'A','metadata':{'name':'x'}}");
	put(&c, &a, "{'kind':'A','metadata':{'name':'y'}}");
	put(&c, &a, "{'kind':'B','metadata':{'name':'z'}}");
	CHECK_STR(members(&c, &a, "A"), "x y ");
	put(&c, &a, "{'kind':'B','metadata':{'name':'x'}}");
	CHECK_STR(members(&c, &a, "A"), "y ");
	CHECK_STR(members(&c, &a, "B"), "z x ");
	copies_remove(&c, STR("y"));
	CHECK_STR(members(&c, &a, "A"), "");
	copies_done(&c);
}
