#include "machinery/testing.h"

TEST(strategic_patch_three_way)
{
	enum mode { OVERWRITE, CONFLICTS, PRECONDITIONS };
	static const struct {
		enum mode mode;
		const char *type, *original, *modified, *current, *want;
	} t[] = {
		/* what changed, what is gone, what others did */
		{ OVERWRITE, "core/v1.Pod", "{}", "{}", "{}", "{}" },
		{ OVERWRITE, "core/v1.Pod", "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':{'a':'2'}}}",
		  "{'metadata':{'labels':{'a':'1','z':'9'}}}", "{'metadata':{'labels':{'a':'2'}}}" },
		{ OVERWRITE, "core/v1.Pod", "{'metadata':{'labels':{'a':'1','b':'2'}}}",
		  "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':{'a':'1','b':'2','z':'9'}}}",
		  "{'metadata':{'labels':{'b':null}}}" },
		{ OVERWRITE, "core/v1.Pod", "{'metadata':{'labels':{'a':'1','b':'2'}}}",
		  "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':{'a':'5','z':'9'}}}",
		  "{'metadata':{'labels':{'a':'1','b':null}}}" },
		{ OVERWRITE, "core/v1.Pod", "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{}}",
		  "{'metadata':{'labels':{'a':'1','z':'9'}}}", "{'metadata':{'labels':null}}" },
		{ OVERWRITE, "core/v1.Pod", "{}", "{'metadata':{'labels':{'a':'1'}}}",
		  "{'metadata':{'labels':{'a':'1','b':'2'}}}", "{}" },
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'nodeName':'a'}}", "{'spec':{'nodeName':'b'}}",
		  "{'spec':{'nodeName':'c'}}", "{'spec':{'nodeName':'b'}}" },
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'nodeName':'a'}}", "{'spec':{'nodeName':'a'}}",
		  "{'spec':{'nodeName':'a'},'status':{'phase':'Running'}}", "{}" },
		/* lists of objects */
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'containers':[{'name':'a','image':'1'}]}}",
		  "{'spec':{'containers':[{'name':'a','image':'2'}]}}",
		  "{'spec':{'containers':[{'name':'a','image':'1','imagePullPolicy':'Always'},{'name':'side'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'a'}],'containers':[{'image':'2','name':'a'}]}}" },
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'side'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'a'}],'containers':[{'$patch':'delete','name':'b'}]}}" },
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'name':'c'},{'name':'a','image':'2'}]}}",
		  "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'c'},{'name':'a'}],'containers':[{'name':'c'},{'image':'2','name':'a'},{'$patch':'delete','name':'b'}]}}" },
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'name':'b'},{'name':'a'}]}}",
		  "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}]}}" },
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'name':'a','image':'x'},{'name':'b'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'a'}]}}" },
		{ OVERWRITE, "core/v1.Pod",
		  "{'spec':{'containers':[{'name':'a','env':[{'name':'A','value':'1'},{'name':'B'}]}]}}",
		  "{'spec':{'containers':[{'name':'a','env':[{'name':'A','value':'2'}]}]}}",
		  "{'spec':{'containers':[{'name':'a','env':[{'name':'A','value':'1'},{'name':'B'},{'name':'C'}]}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'a'}],'containers':[{'$setElementOrder/env':[{'name':'A'}],'env':[{'name':'A','value':'2'},{'$patch':'delete','name':'B'}],'name':'a'}]}}" },
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
		  "{'spec':{'volumes':[{'name':'v','hostPath':{'path':'/x'}}]}}",
		  "{'spec':{'volumes':[{'name':'v','emptyDir':{}},{'name':'token'}]}}",
		  "{'spec':{'$setElementOrder/volumes':[{'name':'v'}],'volumes':[{'$retainKeys':['hostPath','name'],'emptyDir':null,'hostPath':{'path':'/x'},'name':'v'}]}}" },
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'tolerations':[{'key':'a'}]}}",
		  "{'spec':{'tolerations':[{'key':'b'}]}}", "{'spec':{'tolerations':[{'key':'a'},{'key':'c'}]}}",
		  "{'spec':{'tolerations':[{'key':'b'}]}}" },
		{ OVERWRITE, "apps/v1.Deployment",
		  "{'spec':{'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':1}}}}",
		  "{'spec':{'strategy':{'type':'Recreate'}}}",
		  "{'spec':{'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':1,'maxUnavailable':1}}}}",
		  "{'spec':{'strategy':{'$retainKeys':['type'],'rollingUpdate':null,'type':'Recreate'}}}" },
		{ OVERWRITE, "apps/v1.Deployment", "{'spec':{'strategy':{'type':'Recreate'}}}",
		  "{'spec':{'strategy':{'type':'Recreate'}}}",
		  "{'spec':{'strategy':{'type':'Recreate','rollingUpdate':{}}}}",
		  "{'spec':{'strategy':{'$retainKeys':['type']}}}" },
		{ OVERWRITE, "core/v1.Service", "{'spec':{'ports':[{'port':80}]}}", "{'spec':{'ports':[{'port':81}]}}",
		  "{'spec':{'ports':[{'port':80,'nodePort':30000,'protocol':'TCP'}],'clusterIP':'10.0.0.1'}}",
		  "{'spec':{'$setElementOrder/ports':[{'port':81}],'ports':[{'port':81},{'$patch':'delete','port':80}]}}" },
		/* primitives */
		{ OVERWRITE, "core/v1.Pod", "{'metadata':{'finalizers':['a','b']}}",
		  "{'metadata':{'finalizers':['a','c']}}", "{'metadata':{'finalizers':['a','b','x']}}",
		  "{'metadata':{'$deleteFromPrimitiveList/finalizers':['b'],'$setElementOrder/finalizers':['a','c'],'finalizers':['c']}}" },
		{ OVERWRITE, "core/v1.Pod", "{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':['a']}}",
		  "{'metadata':{'finalizers':['x','a']}}", "{'metadata':{'$setElementOrder/finalizers':['a']}}" },
		{ OVERWRITE, "core/v1.Pod", "{'metadata':{'finalizers':['b','a']}}",
		  "{'metadata':{'finalizers':['b','a']}}", "{'metadata':{'finalizers':['b','a']}}",
		  "{'metadata':{'$setElementOrder/finalizers':['b','a']}}" },
		/* directives in the configuration itself, null in it */
		{ OVERWRITE, "core/v1.Pod", "{}", "{'metadata':{'labels':{'a':null}}}",
		  "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':{'a':null}}}" },
		{ OVERWRITE, "core/v1.Pod", "{'metadata':{'labels':{'a':null}}}", "{'metadata':{'labels':{'a':null}}}",
		  "{'metadata':{'labels':{'b':'1'}}}", "{'metadata':{'labels':{'a':null}}}" },
		{ OVERWRITE, "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'image':'x'}]}}", "{'spec':{'containers':[{'name':'a'}]}}",
		  "! map: map[image:x] does not contain declared merge key: name" },
		/* conflicts, when nothing is to be overwritten */
		{ CONFLICTS, "core/v1.Pod", "{'spec':{'nodeName':'a'}}", "{'spec':{'nodeName':'b'}}",
		  "{'spec':{'nodeName':'c'}}",
		  "! patch:\nspec:\n  nodeName: b\n\nconflicts with changes made from original to current:\nspec:\n  nodeName: c\n\n" },
		{ CONFLICTS, "core/v1.Pod", "{'spec':{'nodeName':'a'}}", "{'spec':{'nodeName':'b'}}",
		  "{'spec':{'nodeName':'b'}}", "{}" },
		{ CONFLICTS, "core/v1.Pod", "{'spec':{'nodeName':'a'}}", "{'spec':{'nodeName':'b'}}",
		  "{'spec':{'nodeName':'a','hostname':'h'}}", "{'spec':{'nodeName':'b'}}" },
		{ CONFLICTS, "core/v1.Pod", "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{}}",
		  "{'metadata':{'labels':{'a':'2'}}}",
		  "! patch:\nmetadata:\n  labels: null\n\nconflicts with changes made from original to current:\nmetadata:\n  labels:\n    a: \"2\"\n\n" },
		{ CONFLICTS, "core/v1.Pod", "{'spec':{'containers':[{'name':'a','image':'1'}]}}",
		  "{'spec':{'containers':[{'name':'a','image':'2'}]}}",
		  "{'spec':{'containers':[{'name':'a','image':'3'}]}}",
		  "! patch:\nspec:\n  $setElementOrder/containers:\n  - name: a\n  containers:\n  - image: \"2\"\n    name: a\n\nconflicts with changes made from original to current:\nspec:\n  containers:\n  - image: \"3\"\n    name: a\n\n" },
		{ CONFLICTS, "core/v1.Pod", "{'spec':{'containers':[{'name':'a','image':'1'}]}}",
		  "{'spec':{'containers':[{'name':'a','image':'2'}]}}",
		  "{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b','image':'3'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'a'}],'containers':[{'image':'2','name':'a'}]}}" },
		{ CONFLICTS, "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'name':'a'},{'name':'b','image':'x'}]}}",
		  "! patch:\nspec:\n  $setElementOrder/containers:\n  - name: a\n  containers:\n  - $patch: delete\n    name: b\n\nconflicts with changes made from original to current:\nspec:\n  containers:\n  - image: x\n    name: b\n\n" },
		{ CONFLICTS, "core/v1.Pod", "{'spec':{'tolerations':[{'key':'a'}]}}",
		  "{'spec':{'tolerations':[{'key':'b'}]}}", "{'spec':{'tolerations':[{'key':'c'}]}}",
		  "! patch:\nspec:\n  tolerations:\n  - key: b\n\nconflicts with changes made from original to current:\nspec:\n  tolerations:\n  - key: c\n\n" },
		{ CONFLICTS, "core/v1.Pod", "{'spec':{'containers':[{'name':'a','args':['x']}]}}",
		  "{'spec':{'containers':[{'name':'a','args':['y']}]}}",
		  "{'spec':{'containers':[{'name':'a','args':['y','y']}]}}",
		  "! patch:\nspec:\n  $setElementOrder/containers:\n  - name: a\n  containers:\n  - args:\n    - \"y\"\n    name: a\n\nconflicts with changes made from original to current:\nspec:\n  containers:\n  - args:\n    - \"y\"\n    - \"y\"\n    name: a\n\n" },
		{ CONFLICTS, "core/v1.Pod", "{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':['b']}}",
		  "{'metadata':{'finalizers':['c']}}",
		  "! unable to find api field in struct ObjectMeta for the json field \"$deleteFromPrimitiveList/finalizers\"" },
		{ CONFLICTS, "policy/v1.PodDisruptionBudget", "{'spec':{'selector':{'matchLabels':{'a':'1'}}}}",
		  "{'spec':{'selector':{'matchLabels':{'a':'2'}}}}", "{'spec':{'selector':{'matchLabels':{'a':'3'}}}}",
		  "{'spec':{'selector':{'matchLabels':{'a':'2'}}}}" },
		{ PRECONDITIONS, "core/v1.Pod", "{'kind':'Pod','metadata':{'name':'a'}}",
		  "{'kind':'Pod','metadata':{'name':'b'}}", "{'kind':'Pod','metadata':{'name':'a'}}",
		  "! precondition failed for: map[metadata:map[name:b]]" },
		{ PRECONDITIONS, "core/v1.Pod", "{'kind':'Pod'}", "{'kind':'Pod'}", "{'kind':'Pod'}", "{}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val original = testing_tree(&a, t[i].original), modified = testing_tree(&a, t[i].modified);
		struct val current = testing_tree(&a, t[i].current), v = VAL_EMPTY;
		struct err err = ERR_INIT;
		int r = strategic_patch_three_way(&a, original, modified, current, schema_type(str_of(t[i].type)),
						  t[i].mode != CONFLICTS,
						  t[i].mode == PRECONDITIONS ? PATCH_SAME_OBJECT : 0, &v, &err);
		CHECK_STR_ROW(i, testing_result(&a, r, v, &err), t[i].want);
	}
}

TEST(merge_patch_three_way)
{
	static const struct {
		unsigned preconditions;
		const char *original, *modified, *current, *want;
	} t[] = {
		{ 0, "{'a':1}", "{'a':2}", "{'a':1,'b':9}", "{'a':2}" },
		{ 0, "{'a':1,'b':2}", "{'a':1}", "{'a':1,'b':2,'c':3}", "{'b':null}" },
		{ 0, "{'a':1,'b':2}", "{'a':1}", "{'a':5,'c':3}", "{'a':1,'b':null}" },
		{ 0, "{'a':{'x':1,'y':2}}", "{'a':{'x':1}}", "{'a':{'x':1,'y':3,'z':4}}", "{'a':{'y':null}}" },
		{ 0, "{'a':[1]}", "{'a':[1,2]}", "{'a':[1,3]}", "{'a':[1,2]}" },
		{ 0, "{}", "{'a':{}}", "{}", "{'a':{}}" },
		{ 0, "{'a':{}}", "{}", "{'a':{'b':1}}", "{'a':null}" },
		{ 0, "{}", "{'a':null}", "{'a':1}", "{'a':null}" },
		{ 0, "{'a':1}", "{'a':null}", "{'a':1}", "{'a':null}" },
		{ 0, "{}", "{'a':[{'b':null}]}", "{}", "{'a':[{}]}" },
		{ 0, "{'a':{'b':1}}", "{'a':2}", "{'a':{'b':1}}", "{'a':2}" },
		{ 0, "{'kind':'A','spec':{'x':1}}", "{'kind':'A','spec':{'x':2},'metadata':{'labels':{'l':'1'}}}",
		  "{'kind':'A','spec':{'x':1},'metadata':{'labels':{'k':'0'},'uid':'u'},'status':{}}",
		  "{'metadata':{'labels':{'l':'1'}},'spec':{'x':2}}" },
		{ PATCH_SAME_OBJECT, "{'kind':'A'}", "{'kind':'B'}", "{'kind':'A'}",
		  "! precondition failed for: map[kind:B]" },
		{ PATCH_SAME_OBJECT, "{'metadata':{'name':'a'}}", "{'metadata':{'name':'b'}}",
		  "{'metadata':{'name':'a'}}", "! precondition failed for: map[metadata:map[name:b]]" },
		{ PATCH_SAME_OBJECT, "{'apiVersion':'v1'}", "{}", "{'apiVersion':'v1'}",
		  "! precondition failed for: map[apiVersion:<nil>]" },
		{ PATCH_SAME_OBJECT, "{'apiVersion':'v1','kind':'A','metadata':{'name':'n'}}",
		  "{'apiVersion':'v1','kind':'A','metadata':{'name':'n','labels':{}}}",
		  "{'apiVersion':'v1','kind':'A','metadata':{'name':'n'}}", "{'metadata':{'labels':{}}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val original = testing_tree(&a, t[i].original), modified = testing_tree(&a, t[i].modified);
		struct val current = testing_tree(&a, t[i].current), v = VAL_EMPTY;
		struct err err = ERR_INIT;
		int r = merge_patch_three_way(&a, original, modified, current, t[i].preconditions, &v, &err);
		CHECK_STR_ROW(i, testing_result(&a, r, v, &err), t[i].want);
	}
}

TEST(last_applied)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val object = testing_unsorted(
		&a, "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'c'},'data':{'b':'<','a':'1'}}");
	struct err err = ERR_INIT;
	struct val v;
	str text;

	CHECK_STR(last_applied_get(object), "");
	CHECK_INT(last_applied_text(&a, object, &text, &err), 0);
	CHECK_STR(text, "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"1\",\"b\":\"\\u003c\"},\"kind\":\"ConfigMap\","
			"\"metadata\":{\"annotations\":{},\"name\":\"c\"}}\n");
	CHECK_INT(last_applied_update(&a, object, &v, &err), 0);
	CHECK_STR(last_applied_get(v), text.p);

	/* The annotation does not contain itself, other annotations stay. */
	v = last_applied_set(&a, testing_unsorted(&a, "{'metadata':{'annotations':{'z':'1','a':'2'}}}"),
			     STR("old"));
	CHECK_STR(last_applied_get(v), "old");
	CHECK_INT(last_applied_text(&a, v, &text, &err), 0);
	CHECK_STR(text, "{\"metadata\":{\"annotations\":{\"a\":\"2\",\"z\":\"1\"}}}\n");
	CHECK_INT(last_applied_update(&a, v, &v, &err), 0);
	CHECK_STR(testing_text(&a, v),
		  "{'metadata':{'annotations':{'a':'2','kubectl.kubernetes.io/last-applied-configuration':"
		  "'{\\'metadata\\':{\\'annotations\\':{\\'a\\':\\'2\\',\\'z\\':\\'1\\'}}}\\n','z':'1'}}}");
}
