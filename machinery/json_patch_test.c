#include "machinery/testing.h"

TEST(json_patch_apply)
{
	static const struct {
		const char *doc, *patch, *want;
	} t[] = {
		/* the situations of RFC 6902, appendix A, in their order */
		{ "{'fruit':'apple'}", "[{'op':'add','path':'/herb','value':'dill'}]",
		  "{'fruit':'apple','herb':'dill'}" },
		{ "{'fruit':['apple','herb']}", "[{'op':'add','path':'/fruit/1','value':'dill'}]",
		  "{'fruit':['apple','dill','herb']}" },
		{ "{'herb':'dill','fruit':'apple'}", "[{'op':'remove','path':'/herb'}]", "{'fruit':'apple'}" },
		{ "{'fruit':['apple','dill','herb']}", "[{'op':'remove','path':'/fruit/1'}]",
		  "{'fruit':['apple','herb']}" },
		{ "{'herb':'dill','fruit':'apple'}", "[{'op':'replace','path':'/herb','value':'sage'}]",
		  "{'fruit':'apple','herb':'sage'}" },
		{ "{'fruit':{'apple':'herb','pip':'seed'},'dill':{'stem':'leaf'}}",
		  "[{'op':'move','from':'/fruit/pip','path':'/dill/root'}]",
		  "{'dill':{'root':'seed','stem':'leaf'},'fruit':{'apple':'herb'}}" },
		{ "{'fruit':['one','four','two','three']}", "[{'op':'move','from':'/fruit/1','path':'/fruit/3'}]",
		  "{'fruit':['one','two','three','four']}" },
		{ "{'herb':'dill','fruit':['a',2,'c']}",
		  "[{'op':'test','path':'/herb','value':'dill'},{'op':'test','path':'/fruit/1','value':2}]",
		  "{'fruit':['a',2,'c'],'herb':'dill'}" },
		{ "{'herb':'dill'}", "[{'op':'test','path':'/herb','value':'apple'}]",
		  "! testing value /herb failed: test failed" },
		{ "{'fruit':'apple'}", "[{'op':'add','path':'/box','value':{'lid':{}}}]",
		  "{'box':{'lid':{}},'fruit':'apple'}" },
		{ "{'fruit':'apple'}", "[{'op':'add','path':'/herb','value':'dill','extra':7}]",
		  "{'fruit':'apple','herb':'dill'}" },
		{ "{'fruit':'apple'}", "[{'op':'add','path':'/herb/bud','value':'dill'}]",
		  "! add operation does not apply: doc is missing path: \"/herb/bud\": missing value" },
		{ "{'/':9,'~1':10}", "[{'op':'test','path':'/~01','value':10}]", "{'/':9,'~1':10}" },
		{ "{'/':9,'~1':10}", "[{'op':'test','path':'/~01','value':'10'}]",
		  "! testing value /~01 failed: test failed" },
		{ "{'fruit':['apple']}", "[{'op':'add','path':'/fruit/-','value':['x','y']}]",
		  "{'fruit':['apple',['x','y']]}" },
		/* add */
		{ "{}", "[]", "{}" },
		{ "{}", "null", "{}" },
		{ "[1,2]", "[{'op':'add','path':'/0','value':0}]", "[0,1,2]" },
		{ "[]", "[{'op':'add','path':'/0','value':0},{'op':'add','path':'/1','value':1}]", "[0,1]" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/2','value':3}]", "{'a':[1,2,3]}" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/3','value':3}]",
		  "! error in add for path: '/a/3': Unable to access invalid index: 3: invalid index referenced" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/-1','value':3}]", "{'a':[1,2,3]}" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/-3','value':3}]", "{'a':[3,1,2]}" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/-4','value':3}]",
		  "! error in add for path: '/a/-4': Unable to access invalid index: -4: invalid index referenced" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/+1','value':3}]", "{'a':[1,3,2]}" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/01','value':3}]", "{'a':[1,3,2]}" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/x','value':3}]",
		  "! error in add for path: '/a/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/','value':3}]",
		  "! error in add for path: '/a/': value was not a proper array index: '': strconv.Atoi: parsing \"\": invalid syntax" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/1.0','value':3}]",
		  "! error in add for path: '/a/1.0': value was not a proper array index: '1.0': strconv.Atoi: parsing \"1.0\": invalid syntax" },
		{ "{'a':[1,2]}", "[{'op':'add','path':'/a/99999999999999999999','value':3}]",
		  "! error in add for path: '/a/99999999999999999999': value was not a proper array index: '99999999999999999999': strconv.Atoi: parsing \"99999999999999999999\": value out of range" },
		{ "{'a':1}", "[{'op':'add','path':'/a/b','value':3}]",
		  "! add operation does not apply: doc is missing path: \"/a/b\": missing value" },
		{ "{'a':null}", "[{'op':'add','path':'/a/b','value':3}]",
		  "! add operation does not apply: doc is missing path: \"/a/b\": missing value" },
		{ "{'a':'x'}", "[{'op':'add','path':'/a','value':{'b':[]}}]", "{'a':{'b':[]}}" },
		{ "{'a':'x'}", "[{'op':'add','path':'','value':{}}]",
		  "! add operation does not apply: doc is missing path: \"\": missing value" },
		{ "{'a':'x'}", "[{'op':'add','path':'/','value':1}]", "{'':1,'a':'x'}" },
		{ "{'a':'x'}", "[{'op':'add','path':'b/c','value':1}]", "{'a':'x','c':1}" },
		{ "{'a':'x'}", "[{'op':'add','path':'b','value':1}]",
		  "! add operation does not apply: doc is missing path: \"b\": missing value" },
		{ "{'a':'x'}", "[{'op':'add','path':'/b'}]", "{'a':'x','b':null}" },
		{ "{'a':'x'}", "[{'op':'add','path':'/b','value':null}]", "{'a':'x','b':null}" },
		{ "{'a':'x'}", "[{'op':'add','value':1}]", "! add operation failed to decode path: missing value" },
		{ "{'a':'x'}", "[{'op':'add','path':1,'value':1}]",
		  "! add operation failed to decode path: missing value" },
		{ "{'a':{'b':{'c':[{'d':1}]}}}",
		  "[{'op':'add','path':'/a/b/c/0/e','value':2},{'op':'add','path':'/a/b/c/-1/f','value':3}]",
		  "{'a':{'b':{'c':[{'d':1,'e':2,'f':3}]}}}" },
		{ "{'m~n':{'x/y':1}}", "[{'op':'add','path':'/m~0n/x~1z','value':2}]", "{'m~n':{'x/y':1,'x/z':2}}" },
		{ "{}", "[{'op':'add','path':'/~','value':2},{'op':'add','path':'/~2','value':3}]", "{'~':2,'~2':3}" },
		/* remove */
		{ "{'a':1}", "[{'op':'remove','path':'/b'}]",
		  "! error in remove for path: '/b': Unable to remove nonexistent key: b: missing value" },
		{ "{'a':1}", "[{'op':'remove','path':''}]",
		  "! remove operation does not apply: doc is missing path: \"\": missing value" },
		{ "{'a':1}", "[{'op':'remove','path':'/b/c'}]",
		  "! remove operation does not apply: doc is missing path: \"/b/c\": missing value" },
		{ "{'a':1}", "[{'op':'remove'}]", "! remove operation failed to decode path: missing value" },
		{ "{'a':null}", "[{'op':'remove','path':'/a'}]", "{}" },
		{ "{'a':[1,2,3]}", "[{'op':'remove','path':'/a/-1'}]", "{'a':[1,2]}" },
		{ "{'a':[1,2,3]}", "[{'op':'remove','path':'/a/-3'}]", "{'a':[2,3]}" },
		{ "{'a':[1,2,3]}", "[{'op':'remove','path':'/a/-4'}]",
		  "! error in remove for path: '/a/-4': Unable to access invalid index: -4: invalid index referenced" },
		{ "{'a':[1,2,3]}", "[{'op':'remove','path':'/a/3'}]",
		  "! error in remove for path: '/a/3': Unable to access invalid index: 3: invalid index referenced" },
		{ "{'a':[1,2,3]}", "[{'op':'remove','path':'/a/-'}]",
		  "! error in remove for path: '/a/-': strconv.Atoi: parsing \"-\": invalid syntax" },
		{ "{'a':[1,2,3]}",
		  "[{'op':'remove','path':'/a/0'},{'op':'remove','path':'/a/0'},{'op':'remove','path':'/a/0'}]",
		  "{'a':[]}" },
		{ "{'a':[]}", "[{'op':'remove','path':'/a/0'}]",
		  "! error in remove for path: '/a/0': Unable to access invalid index: 0: invalid index referenced" },
		{ "{'a':1,'b':2}", "[{'op':'remove','path':'/a'},{'op':'remove','path':'/a'}]",
		  "! error in remove for path: '/a': Unable to remove nonexistent key: a: missing value" },
		/* replace */
		{ "{'a':1}", "[{'op':'replace','path':'/b','value':2}]", "{'a':1,'b':2}" },
		{ "{'a':1}", "[{'op':'replace','path':'/b/c','value':2}]",
		  "! replace operation does not apply: doc is missing path: /b/c: missing value" },
		{ "{'a':1}", "[{'op':'replace','path':'','value':{'x':1}}]", "{'x':1}" },
		{ "{'a':1}", "[{'op':'replace','path':'','value':[1]},{'op':'add','path':'/-','value':2}]", "[1,2]" },
		{ "{'a':1}", "[{'op':'replace','path':'','value':'x'}]",
		  "! replace operation value must be object or array: %!w(<nil>)" },
		{ "{'a':1}", "[{'op':'replace','path':'','value':null}]",
		  "! replace operation value must be object or array: %!w(<nil>)" },
		{ "{'a':1}", "[{'op':'replace','value':2}]",
		  "! replace operation failed to decode path: operation missing path field: missing value" },
		{ "{'a':1}", "[{'op':'replace','path':{},'value':2}]",
		  "! replace operation failed to decode path: json: cannot unmarshal object into Go value of type string" },
		{ "{'a':[1,2]}", "[{'op':'replace','path':'/a/1','value':[]}]", "{'a':[1,[]]}" },
		{ "{'a':[1,2]}", "[{'op':'replace','path':'/a/2','value':3}]",
		  "! replace operation does not apply: doc is missing key: /a/2: missing value" },
		{ "{'a':[1,2]}", "[{'op':'replace','path':'/a/-1','value':3}]", "{'a':[1,3]}" },
		{ "{'a':[1,2]}", "[{'op':'replace','path':'/a/-','value':3}]",
		  "! replace operation does not apply: doc is missing key: /a/-: missing value" },
		{ "{'a':[1,2]}", "[{'op':'replace','path':'/a/0','value':null}]", "{'a':[null,2]}" },
		{ "{'a':{'b':1}}", "[{'op':'replace','path':'/a'}]", "{'a':null}" },
		/* move */
		{ "{'a':{'b':1}}", "[{'op':'move','from':'/a/b','path':'/c'}]", "{'a':{},'c':1}" },
		{ "{'a':{'b':1}}", "[{'op':'move','from':'/a/c','path':'/c'}]",
		  "! error in move for path: 'c': Unable to remove nonexistent key: c: missing value" },
		{ "{'a':{'b':1}}", "[{'op':'move','from':'/a','path':'/a/b'}]",
		  "! move operation does not apply: doc is missing destination path: /a/b: missing value" },
		{ "{'a':{'b':1}}", "[{'op':'move','from':'/x/c','path':'/c'}]",
		  "! move operation does not apply: doc is missing from path: /x/c: missing value" },
		{ "{'a':{'b':1}}", "[{'op':'move','from':'/a','path':'/x/c'}]",
		  "! move operation does not apply: doc is missing destination path: /x/c: missing value" },
		{ "{'a':{'b':1}}", "[{'op':'move','path':'/x/c'}]",
		  "! move operation failed to decode from: operation, missing from field: missing value" },
		{ "{'a':{'b':1}}", "[{'op':'move','from':'/a'}]",
		  "! move operation failed to decode path: operation missing path field: missing value" },
		{ "{'a':[1,2,3]}", "[{'op':'move','from':'/a/0','path':'/a/-'}]", "{'a':[2,3,1]}" },
		{ "{'a':[1,2,3]}", "[{'op':'move','from':'/a/5','path':'/a/0'}]",
		  "! error in move for path: '5': Unable to access invalid index: 5: invalid index referenced" },
		{ "{'a':[1,2,3],'b':[]}",
		  "[{'op':'move','from':'/a/-1','path':'/b/0'},{'op':'move','from':'/a','path':'/b/1'}]",
		  "{'b':[3,[1,2]]}" },
		{ "{'a':{'b':1}}", "[{'op':'move','from':'/a','path':'/a'}]", "{'a':{'b':1}}" },
		{ "{'a':{'b':{'c':1}}}",
		  "[{'op':'add','path':'/a/b/d','value':2},{'op':'move','from':'/a/b','path':'/z'},{'op':'add','path':'/z/e','value':3}]",
		  "{'a':{},'z':{'c':1,'d':2,'e':3}}" },
		/* copy */
		{ "{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':'/c'},{'op':'add','path':'/c/d','value':2}]",
		  "{'a':{'b':1},'c':{'b':1,'d':2}}" },
		{ "{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':'/a/c'},{'op':'copy','from':'/a','path':'/a/c/d'}]",
		  "{'a':{'b':1,'c':{'b':1,'d':{'b':1,'c':{'b':1}}}}}" },
		{ "{'a':{'b':1}}", "[{'op':'copy','from':'/nope','path':'/c'}]", "{'a':{'b':1},'c':null}" },
		{ "{'a':{'b':1}}", "[{'op':'copy','from':'/x/nope','path':'/c'}]",
		  "! copy operation does not apply: doc is missing from path: /x/nope: missing value" },
		{ "{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':'/x/c'}]",
		  "! copy operation does not apply: doc is missing destination path: /x/c: missing value" },
		{ "{'a':[1]}", "[{'op':'copy','from':'/a/1','path':'/c'}]",
		  "! error in copy for from: '/a/1': Unable to access invalid index: 1: invalid index referenced" },
		{ "{'a':[1]}", "[{'op':'copy','from':'/a/0','path':'/a/9'}]",
		  "! error while adding value during copy: Unable to access invalid index: 9: invalid index referenced" },
		{ "{'a':[1]}", "[{'op':'copy','from':'/a/0','path':'/a/-'},{'op':'copy','from':'/a','path':'/a/0'}]",
		  "{'a':[[1,1],1,1]}" },
		{ "{'a':[1]}", "[{'op':'copy','path':'/c'}]",
		  "! copy operation failed to decode from: operation, missing from field: missing value" },
		{ "{'a':[1]}", "[{'op':'copy','from':'/a'}]", "! copy operation failed to decode path: missing value" },
		/* test */
		{ "{'a':{'b':[1,{'c':null}]}}", "[{'op':'test','path':'/a','value':{'b':[1,{'c':null}]}}]",
		  "{'a':{'b':[1,{'c':null}]}}" },
		{ "{'a':{'b':1,'c':2}}", "[{'op':'test','path':'/a','value':{'c':2,'b':1}}]", "{'a':{'b':1,'c':2}}" },
		{ "{'a':{'b':1,'c':2}}", "[{'op':'test','path':'/a','value':{'c':2}}]",
		  "! testing value /a failed: test failed" },
		{ "{'a':{'b':1}}", "[{'op':'test','path':'/a','value':{'c':2,'b':1}}]",
		  "! testing value /a failed: test failed" },
		{ "{'a':{'b':1}}", "[{'op':'test','path':'/a','value':[1]}]", "! testing value /a failed: test failed" },
		{ "{'a':[1]}", "[{'op':'test','path':'/a','value':{'b':1}}]", "! testing value /a failed: test failed" },
		{ "{'a':[1,2]}", "[{'op':'test','path':'/a','value':[2,1]}]", "! testing value /a failed: test failed" },
		{ "{'a':[1,2]}", "[{'op':'test','path':'/a','value':[1]}]", "! testing value /a failed: test failed" },
		{ "{'a':1}", "[{'op':'test','path':'/a','value':1.0}]", "! testing value /a failed: test failed" },
		{ "{'a':1}", "[{'op':'test','path':'/a','value':'1'}]", "! testing value /a failed: test failed" },
		{ "{'a':null}", "[{'op':'test','path':'/a','value':null}]", "{'a':null}" },
		{ "{'a':null}", "[{'op':'test','path':'/a'}]", "{'a':null}" },
		{ "{'a':null}", "[{'op':'test','path':'/a','value':{}}]", "! testing value /a failed: test failed" },
		{ "{'a':1}", "[{'op':'test','path':'/b','value':null}]", "{'a':1}" },
		{ "{'a':1}", "[{'op':'test','path':'/b','value':1}]", "! testing value /b failed: test failed" },
		{ "{'a':1}", "[{'op':'test','path':'/b/c','value':1}]",
		  "! test operation does not apply: is missing path: /b/c: missing value" },
		{ "{'a':[1]}", "[{'op':'test','path':'/a/1','value':1}]",
		  "! error in test for path: '/a/1': Unable to access invalid index: 1: invalid index referenced" },
		{ "{'a':1}", "[{'op':'test','path':'','value':{'a':1}}]", "{'a':1}" },
		{ "{'a':1}", "[{'op':'test','path':'','value':{'a':2}}]", "! testing value  failed: test failed" },
		{ "{'a':1}", "[{'op':'test','value':1}]",
		  "! test operation failed to decode path: operation missing path field: missing value" },
		{ "{'spec':{'x':1}}", "[{'op':'test','path':'/spec/x','value':2}]",
		  "! testing value /spec/x failed: test failed" },
		{ "{'a':1}",
		  "[{'op':'add','path':'/b','value':2},{'op':'test','path':'','value':{'b':2,'a':1}},{'op':'remove','path':'/a'}]",
		  "{'b':2}" },
		/* what is no operation */
		{ "{'a':1}", "[{'op':'bogus','path':'/a'}]", "! Unexpected kind: bogus" },
		{ "{'a':1}", "[{'path':'/a'}]", "! Unexpected kind: unknown" },
		{ "{'a':1}", "[{'op':5,'path':'/a'}]", "! Unexpected kind: unknown" },
		{ "{'a':1}", "[null]", "! Unexpected kind: unknown" },
		{ "{'a':1}", "[1]", "! json: cannot unmarshal number into Go value of type jsonpatch.Operation" },
		{ "{'a':1}", "{}", "! json: cannot unmarshal object into Go value of type jsonpatch.Patch" },
		{ "{'a':1}", "'x'", "! json: cannot unmarshal string into Go value of type jsonpatch.Patch" },
		{ "'x'", "[]", "! json: cannot unmarshal string into Go value of type jsonpatch.partialDoc" },
		{ "1", "[]", "! json: cannot unmarshal number into Go value of type jsonpatch.partialDoc" },
		{ "{'a':1}", "[{'op':'add','path':'/b','value':1},{'op':'remove','path':'/nope'}]",
		  "! error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val doc = testing_tree(&a, t[i].doc), patch = testing_tree(&a, t[i].patch), v = VAL_EMPTY;
		struct err err = ERR_INIT;
		int r = json_patch_apply(&a, doc, patch, JSON_PATCH_COPY_MAX, &v, &err);
		CHECK_STR_ROW(i, testing_result(&a, r, v, &err), t[i].want);
	}
}

TEST(json_patch_copy_limit)
{
	static const struct {
		const char *doc, *patch, *want;
	} t[] = {
		{ "{'a':'12345678'}", "[{'op':'copy','from':'/a','path':'/b'},{'op':'copy','from':'/a','path':'/c'}]",
		  "{'a':'12345678','b':'12345678','c':'12345678'}" },
		{ "{'a':'12345678'}",
		  "[{'op':'copy','from':'/a','path':'/b'},{'op':'copy','from':'/a','path':'/c'},{'op':'copy','from':'/a','path':'/d'}]",
		  "! Unable to complete the copy, the accumulated size increase of copy is 30, exceeding the limit 20" },
		{ "{'a':{'b':['<',{'c':null}]}}", "[{'op':'copy','from':'/a','path':'/b'}]",
		  "! Unable to complete the copy, the accumulated size increase of copy is 27, exceeding the limit 20" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val doc = testing_tree(&a, t[i].doc), patch = testing_tree(&a, t[i].patch), v = VAL_EMPTY;
		struct err err = ERR_INIT;
		int r = json_patch_apply(&a, doc, patch, 20, &v, &err);
		CHECK_STR_ROW(i, testing_result(&a, r, v, &err), t[i].want);
	}
}

/* Only what a pointer went through is sorted, as the messages that quote the patched object show. */
TEST(json_patch_order)
{
	static const struct {
		const char *doc, *patch, *want;
	} t[] = {
		{ "{'z':{'y':1,'b':2},'kind':'K','meta':{'n':1,'a':{'d':1,'c':2}}}",
		  "[{'op':'add','path':'/x','value':{'q':1,'p':2}}]",
		  "{'kind':'K','meta':{'n':1,'a':{'d':1,'c':2}},'x':{'q':1,'p':2},'z':{'y':1,'b':2}}" },
		{ "{'z':{'y':1,'b':2},'meta':{'n':1,'a':{'d':1,'c':2}}}", "[{'op':'test','path':'/meta/n','value':1}]",
		  "{'meta':{'a':{'d':1,'c':2},'n':1},'z':{'y':1,'b':2}}" },
		{ "{'z':{'y':1,'b':2},'meta':{'n':1,'a':{'d':1,'c':2}}}",
		  "[{'op':'copy','from':'/meta','path':'/z/m'},{'op':'remove','path':'/meta/n'}]",
		  "{'meta':{'a':{'d':1,'c':2}},'z':{'b':2,'m':{'n':1,'a':{'d':1,'c':2}},'y':1}}" },
		{ "{'z':[{'y':1,'b':2},{'d':1,'c':2}]}",
		  "[{'op':'move','from':'/z/0','path':'/z/1'},{'op':'add','path':'/z/0/a','value':1}]",
		  "{'z':[{'a':1,'c':2,'d':1},{'y':1,'b':2}]}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val v;
		struct val doc = testing_unsorted(&a, t[i].doc), patch = testing_unsorted(&a, t[i].patch);
		CHECK_ROW(i, json_patch_apply(&a, doc, patch, 0, &v, NULL) == 0);
		CHECK_STR_ROW(i, testing_text(&a, v), t[i].want);
	}
}

TEST(json_patch_check)
{
	static const struct {
		const char *patch;
		bool strict;
		const char *want; /* error, or the unknown fields */
	} t[] = {
		{ "null", true, "" },
		{ "[]", true, "" },
		{ "[null]", true, "" },
		{ "[{'op':'add','path':'/a','from':null,'value':{'x':1}}]", true, "" },
		{ "{}", true,
		  "! error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp" },
		{ "'x'", true,
		  "! error decoding patch: json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp" },
		{ "[1]", true,
		  "! error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp" },
		{ "[[]]", true,
		  "! error decoding patch: json: cannot unmarshal array into Go value of type handlers.jsonPatchOp" },
		{ "[{'op':1}]", true,
		  "! error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string" },
		{ "[{'op':'add','path':{}}]", true,
		  "! error decoding patch: json: cannot unmarshal object into Go struct field jsonPatchOp.path of type string" },
		{ "[{'from':[1]}]", true,
		  "! error decoding patch: json: cannot unmarshal array into Go struct field jsonPatchOp.from of type string" },
		{ "[{'op':'add','foo':1},{'op':'add','Path':'/'}]", true,
		  "json patch unknown field \"[0].foo\";json patch unknown field \"[1].Path\";" },
		{ "{}", false, "! json: cannot unmarshal object into Go value of type jsonpatch.Patch" },
		{ "[true]", false, "! json: cannot unmarshal bool into Go value of type jsonpatch.Operation" },
		{ "[{'op':1,'foo':2}]", false, "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct strict_errors *strict = t[i].strict ? ARENA_NEW(&a, struct strict_errors) : NULL;
		struct err err = ERR_INIT;
		str got = STR("");
		if (strict)
			strict->arena = &a;
		if (json_patch_check(testing_unsorted(&a, t[i].patch), strict, &err) < 0) {
			CHECK_ROW(i, err.code == ERR_BAD_REQUEST);
			got = testing_error(&a, &err);
		}
		for (size_t k = 0; strict && k < strict->n; k++)
			got = arena_printf(&a, STR_FMT STR_FMT ";", STR_ARG(got), STR_ARG(strict->text[k]));
		CHECK_STR_ROW(i, got, t[i].want);
	}
}

/* n times the same operation. */
static struct val operations(struct arena *a, const char *op, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, testing_tree(a, op));
	return val_end_list(&b);
}

TEST(json_patch_operations_max)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val doc = testing_tree(&a, "{'l':[]}"), v = VAL_EMPTY;
	struct err err = ERR_INIT;
	const char *op = "{'op':'add','path':'/l/-','value':1}";

	CHECK_INT(json_patch_apply(&a, doc, operations(&a, op, JSON_PATCH_OPERATIONS_MAX), 0, &v, &err), 0);
	CHECK_INT(val_len(val_find(v, STR("l"))), JSON_PATCH_OPERATIONS_MAX);
	CHECK_INT(json_patch_apply(&a, doc, operations(&a, op, JSON_PATCH_OPERATIONS_MAX + 1), 0, &v, &err),
		  -ERR_TOO_LARGE);
	CHECK_STR(err_str(&err),
		  "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001");
}

/* A list and an object that are long enough for every index inside, against plain arrays. */
TEST(json_patch_long)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	enum { ITEMS = 3000, STEPS = 4000 };
	struct val_builder items = val_builder(&a), members = val_builder(&a), ops = val_builder(&a);
	int64_t *want = ARENA_ARRAY(&a, int64_t, ITEMS + STEPS);
	uint32_t n = ITEMS, seed = 1;
	struct err err = ERR_INIT;
	struct val v;

	for (int64_t i = 0; i < ITEMS; i++) {
		val_add_item(&items, val_of_int(want[i] = i));
		val_add_member(&members, atom_make(&a, arena_printf(&a, "key-%d", (int)i)), val_of_int(i));
	}
	for (int64_t i = 0; i < STEPS; i++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t at = (seed >> 8) % n;
		bool add = seed >> 30;
		str text = add ? arena_printf(&a, "{'op':'add','path':'/list/%u','value':%d}", at, (int)-i)
			       : arena_printf(&a, "{'op':'remove','path':'/list/%u'}", at);
		val_add_item(&ops, testing_tree(&a, text.p));
		n += add;
		memmove(want + at + add, want + at + !add, (n - at - add) * sizeof(*want));
		if (add)
			want[at] = -i;
		n -= !add;
		text = arena_printf(&a, "{'op':'%s','path':'/map/key-%d'}", i < ITEMS ? "remove" : "add", (int)i);
		val_add_item(&ops, testing_tree(&a, text.p));
	}
	struct member m[] = {
		{ atom_make(&a, STR("list")), val_end_list(&items) },
		{ atom_make(&a, STR("map")), val_end_object(&members) },
	};
	CHECK_INT(json_patch_apply(&a, val_object(&a, m, 2), val_end_list(&ops), 0, &v, &err), 0);
	struct val list = val_find(v, STR("list")), map = val_find(v, STR("map"));
	CHECK_INT(val_len(list), n);
	for (uint32_t i = 0; i < n; i++)
		CHECK_ROW(i, val_at(list, i).i == want[i]);
	CHECK_INT(val_len(map), STEPS - ITEMS);
	CHECK(val_is(val_find(map, STR("key-3999")), VAL_NULL));
}

/* Moving things into each other does not nest without bound. */
TEST(json_patch_depth)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder ops = val_builder(&a);
	struct err err = ERR_INIT;
	struct val v;

	for (int i = 0; i < 1000; i++) {
		val_add_item(&ops, testing_tree(&a, "{'op':'add','path':'/new','value':{}}"));
		val_add_item(&ops, testing_tree(&a, "{'op':'move','from':'/chain','path':'/new/chain'}"));
		val_add_item(&ops, testing_tree(&a, "{'op':'test','path':'/new/chain/x','value':null}"));
		val_add_item(&ops, testing_tree(&a, "{'op':'move','from':'/new','path':'/chain'}"));
	}
	CHECK_INT(json_patch_apply(&a, testing_tree(&a, "{'chain':{}}"), val_end_list(&ops), 0, &v, &err),
		  -ERR_INVALID);
	CHECK_STR(err_str(&err), "exceeded max depth of 200");
}
