#include "machinery/testing.h"

TEST(merge_patch_apply)
{
	static const struct {
		const char *doc, *patch, *want;
	} t[] = {
		/* the situations of RFC 7386, appendix A */
		{ "{'k':'v'}", "{'k':'w'}", "{'k':'w'}" },
		{ "{'k':'v'}", "{'v':'w'}", "{'k':'v','v':'w'}" },
		{ "{'k':'v'}", "{'k':null}", "{}" },
		{ "{'k':'v','v':'w'}", "{'k':null}", "{'v':'w'}" },
		{ "{'k':['v']}", "{'k':'w'}", "{'k':'w'}" },
		{ "{'k':'w'}", "{'k':['v']}", "{'k':['v']}" },
		{ "{'k':{'v':'w'}}", "{'k':{'v':'x','w':null}}", "{'k':{'v':'x'}}" },
		{ "{'k':[{'v':'w'}]}", "{'k':[1]}", "{'k':[1]}" },
		{ "['k','v']", "['w','x']", "['w','x']" },
		{ "{'k':'v'}", "['w']", "['w']" },
		{ "{'k':'y'}", "null", "! Invalid JSON Patch" },
		{ "{'k':'y'}", "'z'", "! Invalid JSON Patch" },
		{ "{'n':null}", "{'k':1}", "{'k':1,'n':null}" },
		{ "[1,2]", "{'k':'v','w':null}", "{'k':'v'}" },
		{ "{}", "{'k':{'l':{'m':null}}}", "{'k':{'l':{}}}" },
		/* more */
		{ "{}", "{}", "{}" },
		{ "{'a':{'b':{'c':1,'d':2},'e':3}}", "{'a':{'b':{'c':null,'x':{'y':null,'z':1}}}}",
		  "{'a':{'b':{'d':2,'x':{'z':1}},'e':3}}" },
		{ "{'a':[1,{'b':1}]}", "{'a':[{'b':null,'c':2},null]}", "{'a':[{'c':2},null]}" },
		{ "{'a':{'x':1}}", "{'a':[{'b':null,'c':2},null]}", "{'a':[{'b':null,'c':2},null]}" },
		{ "{'a':null}", "{'a':{'b':null}}", "{'a':{}}" },
		{ "{'a':5}", "{'a':{'b':null,'c':{'d':null}}}", "{'a':{'c':{}}}" },
		{ "{'a':{'b':1}}", "{'a':{}}", "{'a':{'b':1}}" },
		{ "{'b':1,'a':2}", "{'c':3}", "{'a':2,'b':1,'c':3}" },
		{ "{'a':1}", "5", "! Invalid JSON Patch" },
		{ "{'a':1}", "true", "! Invalid JSON Patch" },
		{ "{'spec':{'replicas':1,'template':{'x':1}}}", "{'spec':{'replicas':3,'template':null}}",
		  "{'spec':{'replicas':3}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val doc = testing_tree(&a, t[i].doc), patch = testing_tree(&a, t[i].patch), v = VAL_EMPTY;
		struct err err = ERR_INIT;
		int r = merge_patch_apply(&a, doc, patch, &v, &err);
		CHECK_STR_ROW(i, testing_result(&a, r, v, &err), t[i].want);
	}
}

TEST(merge_patch_create)
{
	static const struct {
		const char *original, *modified, *want;
	} t[] = {
		{ "{}", "{}", "{}" },
		{ "{'a':1}", "{'a':1}", "{}" },
		{ "{'a':1}", "{'a':2}", "{'a':2}" },
		{ "{'a':1}", "{'a':'1'}", "{'a':'1'}" },
		{ "{'a':1}", "{'a':1.0}", "{}" },
		{ "{'a':1}", "{}", "{'a':null}" },
		{ "{'a':1}", "{'a':null}", "{'a':null}" },
		{ "{'a':null}", "{'a':null}", "{}" },
		{ "{'a':null}", "{}", "{'a':null}" },
		{ "{}", "{'a':{'b':null}}", "{'a':{'b':null}}" },
		{ "{'a':{'b':1,'c':2}}", "{'a':{'b':1,'d':3}}", "{'a':{'c':null,'d':3}}" },
		{ "{'a':{'b':1}}", "{'a':{'b':1}}", "{}" },
		{ "{'a':{'b':1}}", "{'a':[1]}", "{'a':[1]}" },
		{ "{'a':[1,2]}", "{'a':[2,1]}", "{'a':[2,1]}" },
		{ "{'a':[{'b':1,'c':2}]}", "{'a':[{'c':2,'b':1}]}", "{}" },
		{ "{'a':{'b':{'c':1}}}", "{'a':{'b':{}}}", "{'a':{'b':{'c':null}}}" },
		{ "{'z':1,'y':2}", "{'b':{'z':1,'a':2},'a':1}", "{'a':1,'b':{'a':2,'z':1},'y':null,'z':null}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val original = testing_tree(&a, t[i].original), modified = testing_tree(&a, t[i].modified);
		struct val v = VAL_EMPTY;
		struct err err = ERR_INIT;
		int r = merge_patch_create(&a, original, modified, &v, &err);
		CHECK_STR_ROW(i, testing_result(&a, r, v, &err), t[i].want);
	}
}

TEST(merge_patch_check)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;

	CHECK_INT(merge_patch_check(testing_tree(&a, "{}"), &err), 0);
	CHECK_INT(merge_patch_check(testing_tree(&a, "null"), &err), 0);
	CHECK_INT(merge_patch_check(testing_tree(&a, "[]"), &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err),
		  "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}");
}

TEST(merge_patch_depth)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val deep = VAL_EMPTY_OBJECT, v;
	struct err err = ERR_INIT;

	for (int i = 0; i < VAL_RECURSION_MAX + 1; i++) {
		struct member m = { atom_make(&a, STR("x")), deep };
		deep = val_object(&a, &m, 1);
	}
	CHECK_INT(merge_patch_apply(&a, VAL_EMPTY_OBJECT, deep, &v, &err), -ERR_BAD_REQUEST);
	CHECK_INT(merge_patch_apply(&a, deep, deep, &v, &err), -ERR_BAD_REQUEST);
	CHECK_INT(merge_patch_create(&a, deep, deep, &v, &err), -ERR_BAD_REQUEST);
	/* The document's depth does not matter. */
	CHECK_INT(merge_patch_apply(&a, deep, testing_tree(&a, "{'a':1}"), &v, &err), 0);
	CHECK_INT(merge_patch_apply(&a, deep, val_find(deep, STR("x")), &v, &err), 0);
}
