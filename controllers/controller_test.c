#include "base/clock.h"
#include "controllers/controller.h"
#include "controllers/plan_testing.h"

TEST(controller_scaled_value)
{
	static const struct {
		const char *value;
		int64_t total, up, down;
	} t[] = {
		{ "3", 10, 3, 3 }, { "'25%'", 10, 3, 2 }, { "'25%'", 4, 1, 1 }, { "'0%'", 7, 0, 0 }, { "'100%'", 7, 7, 7 }, { "'1%'", 1, 1, 0 },
		{ "'x'", 7, -1, -1 }, { "'-5%'", 7, -1, -1 }, { "'5'", 7, -1, -1 }, { "'%'", 7, -1, -1 }, { "null", 7, -1, -1 },
		{ "'200%'", 2147483647, 4294967294, 4294967294 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val v = val_get(tree(&a, arena_printf(&a, "{'value':%s}", t[i].value).p), value);
		CHECK_ROW(i, scaled_value(v, t[i].total, true) == t[i].up);
		CHECK_ROW(i, scaled_value(v, t[i].total, false) == t[i].down);
	}
}

TEST(controller_keys)
{
	str namespace, name;

	controller_split(STR("a/b"), &namespace, &name);
	CHECK_STR(namespace, "a");
	CHECK_STR(name, "b");
	controller_split(STR("b"), &namespace, &name);
	CHECK_STR(namespace, "");
	CHECK_STR(name, "b");
}

TEST(controller_conditions)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val list = condition_set(&a, VAL_EMPTY, tree(&a, "{'type':'A','status':'True','reason':'r','lastTransitionTime':'T'}"), false), same;

	CHECK_STR(tree_text(&a, list), "[{'type':'A','status':'True','reason':'r','lastTransitionTime':'T'}]");
	same = condition_set(&a, list, tree(&a, "{'type':'A','status':'True','reason':'r'}"), true);
	CHECK(val_same(list, same));
	/* Another reason is no transition. */
	list = condition_set(&a, list, tree(&a, "{'type':'A','status':'True','reason':'s'}"), false);
	CHECK_STR(tree_text(&a, list), "[{'type':'A','status':'True','reason':'s','lastTransitionTime':'T'}]");
	list = condition_set(&a, list, tree(&a, "{'type':'B','status':'False','lastTransitionTime':'U'}"), false);
	list = condition_set(&a, list, tree(&a, "{'type':'A','status':'False'}"), true);
	CHECK_INT(val_len(list), 2);
	CHECK_STR(val_str(val_at(list, 0), status), "False");
	CHECK(val_str(val_at(list, 0), lastTransitionTime).n > 1);
	CHECK(val_str(val_at(list, 0), lastUpdateTime).n > 1);
	CHECK_STR(val_str(condition_find(list, "B"), lastTransitionTime), "U");
	list = condition_remove(&a, list, "A");
	CHECK_INT(val_len(list), 1);
	CHECK(!val_exists(condition_find(list, "A")));
	CHECK(val_same(list, condition_remove(&a, list, "A")));
}

TEST(controller_namespace_ending)
{
	struct err err = ERR_INIT;

	(void)err_set(&err, ERR_FORBIDDEN, "pods \"x\" is forbidden: unable to create new content in namespace n because it is being terminated");
	CHECK(error_is_namespace_ending(&err));
	(void)err_set(&err, ERR_FORBIDDEN, "pods \"x\" is forbidden: exceeded quota");
	CHECK(!error_is_namespace_ending(&err));
	CHECK(!error_is_namespace_ending(NULL));
}
