#include "machinery/apply_testing.h"

TEST(apply_stories)
{
	static const struct story_row t[] = {
		{ "= v1 ConfigMap", "two managers of different keys", NULL, NULL },
		{ "apply m1", "{'data':{'a':'1','b':'2'}}", "{'data':{'a':'1','b':'2'}}",
		  "m1 Apply @0 {'f:data':{'f:a':{},'f:b':{}}}" },
		{ "apply m2", "{'data':{'c':'3'}}", "{'data':{'a':'1','b':'2','c':'3'}}",
		  "m1 Apply @0 {'f:data':{'f:a':{},'f:b':{}}} | m2 Apply @1 {'f:data':{'f:c':{}}}" },
		{ "apply m1", "{'data':{'a':'1'}}", "{'data':{'a':'1','c':'3'}}",
		  "m2 Apply @1 {'f:data':{'f:c':{}}} | m1 Apply @2 {'f:data':{'f:a':{}}}" },
		{ "apply m2", "{}", "{'data':{'a':'1'}}", "m1 Apply @2 {'f:data':{'f:a':{}}}" },
		{ "apply m1", "{}", "{}", "" },
		{ "= v1 ConfigMap", "conflict, force, and losing a field", NULL, NULL },
		{ "apply m1", "{'data':{'a':'1','b':'2'}}", "{'data':{'a':'1','b':'2'}}",
		  "m1 Apply @0 {'f:data':{'f:a':{},'f:b':{}}}" },
		{ "apply m2", "{'data':{'a':'2'}}", "! Apply failed with 1 conflict: conflict with 'm1': .data.a",
		  ".data.a: conflict with 'm1'" },
		{ "apply m2 force", "{'data':{'a':'2'}}", "{'data':{'a':'2','b':'2'}}",
		  "m1 Apply @0 {'f:data':{'f:b':{}}} | m2 Apply @2 {'f:data':{'f:a':{}}}" },
		{ "apply m1", "{'data':{'a':'1','b':'2'}}",
		  "! Apply failed with 1 conflict: conflict with 'm2': .data.a", ".data.a: conflict with 'm2'" },
		{ "apply m1", "{'data':{'b':'2'}}", "{'data':{'a':'2','b':'2'}}",
		  "m1 Apply @0 {'f:data':{'f:b':{}}} | m2 Apply @2 {'f:data':{'f:a':{}}}" },
		{ "= v1 ConfigMap", "the same value is shared, and stays while one of them applies it", NULL, NULL },
		{ "apply m1", "{'data':{'a':'1'}}", "{'data':{'a':'1'}}", "m1 Apply @0 {'f:data':{'f:a':{}}}" },
		{ "apply m2", "{'data':{'a':'1'}}", "{'data':{'a':'1'}}",
		  "m2 Apply {'f:data':{'f:a':{}}} | m1 Apply @0 {'f:data':{'f:a':{}}}" },
		{ "apply m1", "{}", "{'data':{'a':'1'}}", "m2 Apply {'f:data':{'f:a':{}}}" },
		{ "apply m2", "{}", "{}", "" },
		{ "= v1 ConfigMap", "nothing changes: no new time", NULL, NULL },
		{ "apply m1", "{'data':{'a':'1'}}", "{'data':{'a':'1'}}", "m1 Apply @0 {'f:data':{'f:a':{}}}" },
		{ "apply m1", "{'data':{'a':'1'}}", "{'data':{'a':'1'}}", "m1 Apply @0 {'f:data':{'f:a':{}}}" },
		{ "apply m2", "{'data':{'a':'1'}}", "{'data':{'a':'1'}}",
		  "m2 Apply {'f:data':{'f:a':{}}} | m1 Apply @0 {'f:data':{'f:a':{}}}" },
		{ "update u", "{'data':{'a':'1'}}", "{'data':{'a':'1'}}",
		  "m2 Apply {'f:data':{'f:a':{}}} | m1 Apply @0 {'f:data':{'f:a':{}}}" },
		{ "= v1 ConfigMap", "updates take fields", NULL, NULL },
		{ "update u", "{'data':{'a':'1','b':'1'}}", "{'data':{'a':'1','b':'1'}}",
		  "u Update @0 {'f:data':{'.':{},'f:a':{},'f:b':{}}}" },
		{ "update v", "{'data':{'a':'2','b':'1'}}", "{'data':{'a':'2','b':'1'}}",
		  "u Update @0 {'f:data':{'.':{},'f:b':{}}} | v Update @1 {'f:data':{'f:a':{}}}" },
		{ "apply m1", "{'data':{'a':'3'}}",
		  "! Apply failed with 1 conflict: conflict with 'v' using v1: .data.a",
		  ".data.a: conflict with 'v' using v1" },
		{ "apply m1", "{'data':{'b':'1'}}", "{'data':{'a':'2','b':'1'}}",
		  "m1 Apply {'f:data':{'f:b':{}}} | u Update @0 {'f:data':{'.':{},'f:b':{}}} | v Update @1 {"
		  "'f:data':{'f:a':{}}}" },
		{ "update u", "{'data':{'a':'2'}}", "{'data':{'a':'2'}}",
		  "u Update @0 {'f:data':{}} | v Update @1 {'f:data':{'f:a':{}}}" },
		{ "update u", "{}", "{}", "" },
		{ "= v1 ConfigMap", "conflicts with several managers", NULL, NULL },
		{ "update u", "{'data':{'a':'1'}}", "{'data':{'a':'1'}}",
		  "u Update @0 {'f:data':{'.':{},'f:a':{}}}" },
		{ "update v", "{'data':{'a':'1','b':'1'}}", "{'data':{'a':'1','b':'1'}}",
		  "u Update @0 {'f:data':{'.':{},'f:a':{}}} | v Update @1 {'f:data':{'f:b':{}}}" },
		{ "apply m1", "{'data':{'c':'1'},'metadata':{'labels':{'x':'y'}}}",
		  "{'data':{'a':'1','b':'1','c':'1'},'metadata':{'labels':{'x':'y'}}}",
		  "m1 Apply @2 {'f:data':{'f:c':{}},'f:metadata':{'f:labels':{'f:x':{}}}} | u Update @0 {'f:data':{"
		  "'.':{},'f:a':{}}} | v Update @1 {'f:data':{'f:b':{}}}" },
		{ "apply m2", "{'data':{'a':'2','b':'2','c':'2'},'metadata':{'labels':{'x':'z'}}}",
		  "! Apply failed with 4 conflicts: conflicts with 'm1':\n- .data.c\n- .metadata.labels.x\nconflicts "
		  "with 'u' using v1:\n- .data.a\nconflicts with 'v' using v1:\n- .data.b",
		  ".data.c: conflict with 'm1' | .metadata.labels.x: conflict with 'm1' | .data.a: conflict with 'u' "
		  "using v1 | .data.b: conflict with 'v' using v1" },
		{ "= v1 ConfigMap", "manager without a name", NULL, NULL },
		{ "apply ", "{'data':{'a':'1'}}", "{'data':{'a':'1'}}", "unknown Apply @0 {'f:data':{'f:a':{}}}" },
		{ "update ", "{'data':{'a':'2'}}", "{'data':{'a':'2'}}", "unknown Update @1 {'f:data':{'f:a':{}}}" },
		{ "= v1 ConfigMap", "labels and annotations", NULL, NULL },
		{ "update u",
		  "{'metadata':{'labels':{'app':'x','kubernetes.io/name':'<&>'},'annotations':{'a':'b'}}}",
		  "{'metadata':{'annotations':{'a':'b'},'labels':{'app':'x','kubernetes.io/name':'<&>'}}}",
		  "u Update @0 {'f:metadata':{'f:annotations':{'.':{},'f:a':{}},'f:labels':{'.':{},'f:app':{},"
		  "'f:kubernetes.io/name':{}}}}" },
		{ "apply m1", "{'metadata':{'labels':{'app':'x','tier':'é'}}}",
		  "{'metadata':{'annotations':{'a':'b'},'labels':{'app':'x','kubernetes.io/name':'<&>','tier':'é'}}}",
		  "m1 Apply @1 {'f:metadata':{'f:labels':{'f:app':{},'f:tier':{}}}} | u Update @0 {'f:metadata':{"
		  "'f:annotations':{'.':{},'f:a':{}},'f:labels':{'.':{},'f:app':{},'f:kubernetes.io/name':{}}}}" },
		{ "update u", "{'metadata':{'labels':{'tier':'é'}}}", "{'metadata':{'labels':{'tier':'é'}}}",
		  "m1 Apply @1 {'f:metadata':{'f:labels':{'f:tier':{}}}} | u Update @0 {'f:metadata':{'f:labels':{"
		  "}}}" },
		{ "apply m1", "{'metadata':{'labels':{}}}", "{}",
		  "m1 Apply @3 {'f:metadata':{'f:labels':{}}} | u Update @0 {'f:metadata':{'f:labels':{}}}" },
		{ "apply m1", "{'metadata':{'labels':null}}",
		  "! Apply failed with 1 conflict: conflict with 'u' using v1: .metadata.labels",
		  ".metadata.labels: conflict with 'u' using v1" },
		{ "= v1 ConfigMap", "finalizers are a set, owners have keys", NULL, NULL },
		{ "apply m1",
		  "{'metadata':{'finalizers':['a/x','b/y'],'ownerReferences':[{'uid':'1','name':'o','kind':'K',"
		  "'apiVersion':'v1'}]}}",
		  "{'metadata':{'finalizers':['a/x','b/y'],'ownerReferences':[{'apiVersion':'v1','kind':'K',"
		  "'name':'o','uid':'1'}]}}",
		  "m1 Apply @0 {'f:metadata':{'f:finalizers':{'v:\\'a/x\\'':{},'v:\\'b/y\\'':{}},"
		  "'f:ownerReferences':{'k:{\\'uid\\':\\'1\\'}':{}}}}" },
		{ "apply m2", "{'metadata':{'finalizers':['c/z','a/x']}}",
		  "{'metadata':{'finalizers':['c/z','a/x','b/y'],'ownerReferences':[{'apiVersion':'v1','kind':'K',"
		  "'name':'o','uid':'1'}]}}",
		  "m1 Apply @0 {'f:metadata':{'f:finalizers':{'v:\\'a/x\\'':{},'v:\\'b/y\\'':{}},"
		  "'f:ownerReferences':{'k:{\\'uid\\':\\'1\\'}':{}}}} | m2 Apply @1 {'f:metadata':{'f:finalizers':{"
		  "'v:\\'a/x\\'':{},'v:\\'c/z\\'':{}}}}" },
		{ "apply m1",
		  "{'metadata':{'finalizers':['b/y'],'ownerReferences':[{'uid':'2','name':'p','kind':'K',"
		  "'apiVersion':'v1'}]}}",
		  "{'metadata':{'finalizers':['c/z','a/x','b/y'],'ownerReferences':[{'apiVersion':'v1','kind':'K',"
		  "'name':'p','uid':'2'}]}}",
		  "m2 Apply @1 {'f:metadata':{'f:finalizers':{'v:\\'a/x\\'':{},'v:\\'c/z\\'':{}}}} | m1 Apply @2 {"
		  "'f:metadata':{'f:finalizers':{'v:\\'b/y\\'':{}},'f:ownerReferences':{'k:{\\'uid\\':\\'2\\'}':{"
		  "}}}}" },
		{ "apply m2", "{'metadata':{'finalizers':['c/z','c/z']}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .metadata.finalizers: duplicate "
		  "entries for key [='c/z']", "" },
		{ "apply m2", "{'metadata':{'finalizers':['c/z',null]}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .metadata.finalizers: element 1: "
		  "associative list without keys has an element that's an explicit null", "" },
		{ "apply m2", "{'metadata':{'finalizers':[{}]}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .metadata.finalizers: element 0: "
		  "associative list without keys has an element that's a map type", "" },
		{ "apply m2", "{'metadata':{'finalizers':[[]]}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .metadata.finalizers: element 0: "
		  "not supported: associative list with lists as elements", "" },
		{ "= v1 ConfigMap", "bytes, immutability and removal of a whole map", NULL, NULL },
		{ "apply m1", "{'binaryData':{'a':'AAEC'},'data':{'k':'v'},'immutable':true}",
		  "{'binaryData':{'a':'AAEC'},'data':{'k':'v'},'immutable':true}",
		  "m1 Apply @0 {'f:binaryData':{'f:a':{}},'f:data':{'f:k':{}},'f:immutable':{}}" },
		{ "apply m1", "{'immutable':false}", "{'immutable':false}", "m1 Apply @1 {'f:immutable':{}}" },
		{ "apply m1", "{'binaryData':{},'data':null}", "{}", "m1 Apply @2 {'f:binaryData':{},'f:data':{}}" },
		{ "= v1 ConfigMap", "what does not fit", NULL, NULL },
		{ "apply m1", "{'data':{'x':5}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .data.x: expected string, got "
		  "&value.valueUnstructured{Value:5}", "" },
		{ "apply m1", "{'data':['x']}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .data: expected map, got &{[x]}",
		  "" },
		{ "apply m1", "{'data':'x'}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .data: expected map, got &{x}",
		  "" },
		{ "apply m1", "{'data':{'x':{'y':1}}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .data.x: expected string, got "
		  "&value.valueUnstructured{Value:map[string]interface {}{'y':1}}", "" },
		{ "apply m1", "{'data':{'x':[true,null,'s',1.5]}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .data.x: expected string, got "
		  "&value.valueUnstructured{Value:[]interface {}{true, interface {}(nil), 's', 1.5}}", "" },
		{ "apply m1", "{'immutable':'yes'}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .immutable: expected boolean, "
		  "got &{yes}", "" },
		{ "apply m1", "{'immutable':{'a':[1]}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .immutable: expected boolean, "
		  "got &{map[a:[1]]}", "" },
		{ "apply m1", "{'bogus':1}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .bogus: field not declared in "
		  "schema", "" },
		{ "apply m1", "{'metadata':{'bogus':{'a':1}}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .metadata.bogus: field not "
		  "declared in schema", "" },
		{ "apply m1", "{'metadata':{'generation':'x'}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .metadata.generation: expected "
		  "numeric (int or float), got string", "" },
		{ "apply m1", "{'metadata':{'generation':true}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .metadata.generation: expected "
		  "numeric (int or float), got bool", "" },
		{ "apply m1", "{'metadata':{'labels':{'a':null}}}", "{'metadata':{'labels':{'a':''}}}",
		  "m1 Apply @11 {'f:metadata':{'f:labels':{'f:a':{}}}}" },
		{ "apply m1", "{'metadata':{'finalizers':{'a':1}}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .metadata.finalizers: expected "
		  "list, got &{map[a:1]}", "" },
		{ "apply m1", "{'metadata':{'creationTimestamp':['x']}}",
		  "! failed to create typed patch object (/n; /v1, Kind=ConfigMap): .metadata.creationTimestamp: "
		  "expected any scalar, got &{[x]}", "" },
		{ "= v1 ConfigMap", "another kind or version", NULL, NULL },
		{ "apply m1 kind=Secret", "{}", "! invalid object type: /v1, Kind=Secret", "" },
		{ "apply m1 version=v2", "{}", "! invalid object type: /v2, Kind=ConfigMap", "" },
		{ "apply m1 version=", "{}", "! invalid object type: /, Kind=ConfigMap", "" },
		{ "apply m1 kind=", "{}", "! invalid object type: /v1, Kind=", "" },
		{ "apply m1 version=a/b/c", "{}", "! invalid object type: /, Kind=", "" },
		{ "apply m1 version=apps/v1", "{}", "! invalid object type: apps/v1, Kind=ConfigMap", "" },
		{ "apply m1", "{'metadata':{'managedFields':[]}}", "! metadata.managedFields must be nil", "" },
		{ "apply m1", "{'metadata':{'managedFields':[{'manager':'x'}]}}",
		  "! metadata.managedFields must be nil", "" },
		{ "apply m1", "{'metadata':{'managedFields':null}}", "{}", "" },
		{ "= v1 ConfigMap", "an object that nobody tracked", NULL, NULL },
		{ "update u", "{'data':{'a':'1'},'metadata':{'labels':{'x':'y'}}}",
		  "{'data':{'a':'1'},'metadata':{'labels':{'x':'y'}}}",
		  "u Update @0 {'f:data':{'.':{},'f:a':{}},'f:metadata':{'f:labels':{'.':{},'f:x':{}}}}" },
		{ "update u", "{'data':{'a':'2'},'metadata':{'labels':{'x':'y'},'managedFields':[{}]}}",
		  "{'data':{'a':'2'},'metadata':{'labels':{'x':'y'}}}", "" },
		{ "update u", "{'data':{'a':'3'},'metadata':{'labels':{'x':'y'}}}",
		  "{'data':{'a':'3'},'metadata':{'labels':{'x':'y'}}}", "" },
		{ "apply m1", "{'data':{'a':'3'}}", "{'data':{'a':'3'},'metadata':{'labels':{'x':'y'}}}",
		  "m1 Apply {'f:data':{'f:a':{}}} | before-first-apply Update @3 {'f:data':{'.':{},'f:a':{}},"
		  "'f:metadata':{'f:labels':{'.':{},'f:x':{}}}}" },
		{ "apply m1", "{'data':{'a':'4'}}",
		  "! Apply failed with 1 conflict: conflict with 'before-first-apply' using v1: .data.a",
		  ".data.a: conflict with 'before-first-apply' using v1" },
		{ "= v1 ConfigMap", "clients that send managedFields", NULL, NULL },
		{ "update u", "{'data':{'a':'1','b':'1'}}", "{'data':{'a':'1','b':'1'}}",
		  "u Update @0 {'f:data':{'.':{},'f:a':{},'f:b':{}}}" },
		{ "update u",
		  "{'data':{'a':'1','b':'1'},'metadata':{'managedFields':[{'manager':'x','operation':'Update',"
		  "'apiVersion':'v1','time':'2026-01-01T00:00:00Z','fieldsType':'FieldsV1','fieldsV1':{'f:data':{"
		  "'f:b':{},'f:a':{}}}}]}}", "{'data':{'a':'1','b':'1'}}",
		  "x Update @0 {'f:data':{'f:a':{},'f:b':{}}}" },
		{ "update u", "{'data':{'a':'2','b':'1'},'metadata':{'managedFields':[{'manager':'y'}]}}",
		  "{'data':{'a':'2','b':'1'}}",
		  "x Update @0 {'f:data':{'f:b':{}}} | u Update @2 {'f:data':{'f:a':{}}}" },
		{ "update u",
		  "{'data':{'a':'2','b':'2'},'metadata':{'managedFields':[{'manager':'x','operation':'Apply',"
		  "'apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:b':{}}}}]}}",
		  "{'data':{'a':'2','b':'2'}}", "u Update @3 {'f:data':{'f:b':{}}}" },
		{ "update u sub=status", "{'data':{'a':'3','b':'2'},'metadata':{'managedFields':[{}]}}",
		  "{'data':{'a':'3','b':'2'}}",
		  "u Update @3 {'f:data':{'f:b':{}}} | u Update/status @4 {'f:data':{'f:a':{}}}" },
		{ "= v1 ConfigMap", "too many updaters", NULL, NULL },
		{ "update u00", "{'data':{'k0':'0'}}", "{'data':{'k0':'0'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}}" },
		{ "update u01", "{'data':{'k0':'0','k1':'1'}}", "{'data':{'k0':'0','k1':'1'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}} | u01 Update @1 {'f:data':{'f:k1':{}}}" },
		{ "update u02", "{'data':{'k0':'0','k1':'1','k2':'2'}}", "{'data':{'k0':'0','k1':'1','k2':'2'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}} | u01 Update @1 {'f:data':{'f:k1':{}}} | u02 Update "
		  "@2 {'f:data':{'f:k2':{}}}" },
		{ "update u03", "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3'}}",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}} | u01 Update @1 {'f:data':{'f:k1':{}}} | u02 Update "
		  "@2 {'f:data':{'f:k2':{}}} | u03 Update @3 {'f:data':{'f:k3':{}}}" },
		{ "update u04", "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4'}}",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}} | u01 Update @1 {'f:data':{'f:k1':{}}} | u02 Update "
		  "@2 {'f:data':{'f:k2':{}}} | u03 Update @3 {'f:data':{'f:k3':{}}} | u04 Update @4 {'f:data':{"
		  "'f:k4':{}}}" },
		{ "update u05", "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5'}}",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}} | u01 Update @1 {'f:data':{'f:k1':{}}} | u02 Update "
		  "@2 {'f:data':{'f:k2':{}}} | u03 Update @3 {'f:data':{'f:k3':{}}} | u04 Update @4 {'f:data':{"
		  "'f:k4':{}}} | u05 Update @5 {'f:data':{'f:k5':{}}}" },
		{ "update u06", "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6'}}",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}} | u01 Update @1 {'f:data':{'f:k1':{}}} | u02 Update "
		  "@2 {'f:data':{'f:k2':{}}} | u03 Update @3 {'f:data':{'f:k3':{}}} | u04 Update @4 {'f:data':{"
		  "'f:k4':{}}} | u05 Update @5 {'f:data':{'f:k5':{}}} | u06 Update @6 {'f:data':{'f:k6':{}}}" },
		{ "update u07", "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7'}}",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}} | u01 Update @1 {'f:data':{'f:k1':{}}} | u02 Update "
		  "@2 {'f:data':{'f:k2':{}}} | u03 Update @3 {'f:data':{'f:k3':{}}} | u04 Update @4 {'f:data':{"
		  "'f:k4':{}}} | u05 Update @5 {'f:data':{'f:k5':{}}} | u06 Update @6 {'f:data':{'f:k6':{}}} | u07 "
		  "Update @7 {'f:data':{'f:k7':{}}}" },
		{ "update u08",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7','k8':'8'}}",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7','k8':'8'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}} | u01 Update @1 {'f:data':{'f:k1':{}}} | u02 Update "
		  "@2 {'f:data':{'f:k2':{}}} | u03 Update @3 {'f:data':{'f:k3':{}}} | u04 Update @4 {'f:data':{"
		  "'f:k4':{}}} | u05 Update @5 {'f:data':{'f:k5':{}}} | u06 Update @6 {'f:data':{'f:k6':{}}} | u07 "
		  "Update @7 {'f:data':{'f:k7':{}}} | u08 Update @8 {'f:data':{'f:k8':{}}}" },
		{ "update u09",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7','k8':'8',"
		  "'k9':'9'}}",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7','k8':'8',"
		  "'k9':'9'}}",
		  "u00 Update @0 {'f:data':{'.':{},'f:k0':{}}} | u01 Update @1 {'f:data':{'f:k1':{}}} | u02 Update "
		  "@2 {'f:data':{'f:k2':{}}} | u03 Update @3 {'f:data':{'f:k3':{}}} | u04 Update @4 {'f:data':{"
		  "'f:k4':{}}} | u05 Update @5 {'f:data':{'f:k5':{}}} | u06 Update @6 {'f:data':{'f:k6':{}}} | u07 "
		  "Update @7 {'f:data':{'f:k7':{}}} | u08 Update @8 {'f:data':{'f:k8':{}}} | u09 Update @9 {"
		  "'f:data':{'f:k9':{}}}" },
		{ "update u10",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7','k8':'8',"
		  "'k9':'9','k10':'10'}}",
		  "{'data':{'k0':'0','k1':'1','k10':'10','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7',"
		  "'k8':'8','k9':'9'}}",
		  "ancient-changes Update @1 {'f:data':{'.':{},'f:k0':{},'f:k1':{}}} | u02 Update @2 {'f:data':{"
		  "'f:k2':{}}} | u03 Update @3 {'f:data':{'f:k3':{}}} | u04 Update @4 {'f:data':{'f:k4':{}}} | u05 "
		  "Update @5 {'f:data':{'f:k5':{}}} | u06 Update @6 {'f:data':{'f:k6':{}}} | u07 Update @7 {"
		  "'f:data':{'f:k7':{}}} | u08 Update @8 {'f:data':{'f:k8':{}}} | u09 Update @9 {'f:data':{'f:k9':{"
		  "}}} | u10 Update @10 {'f:data':{'f:k10':{}}}" },
		{ "update u11",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7','k8':'8',"
		  "'k9':'9','k10':'10','k11':'11'}}",
		  "{'data':{'k0':'0','k1':'1','k10':'10','k11':'11','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6',"
		  "'k7':'7','k8':'8','k9':'9'}}",
		  "ancient-changes Update @2 {'f:data':{'.':{},'f:k0':{},'f:k1':{},'f:k2':{}}} | u03 Update @3 {"
		  "'f:data':{'f:k3':{}}} | u04 Update @4 {'f:data':{'f:k4':{}}} | u05 Update @5 {'f:data':{'f:k5':{"
		  "}}} | u06 Update @6 {'f:data':{'f:k6':{}}} | u07 Update @7 {'f:data':{'f:k7':{}}} | u08 Update @8 "
		  "{'f:data':{'f:k8':{}}} | u09 Update @9 {'f:data':{'f:k9':{}}} | u10 Update @10 {'f:data':{"
		  "'f:k10':{}}} | u11 Update @11 {'f:data':{'f:k11':{}}}" },
		{ "update u12",
		  "{'data':{'k0':'0','k1':'1','k2':'2','k3':'3','k4':'4','k5':'5','k6':'6','k7':'7','k8':'8',"
		  "'k9':'9','k10':'10','k11':'11','k12':'12'}}",
		  "{'data':{'k0':'0','k1':'1','k10':'10','k11':'11','k12':'12','k2':'2','k3':'3','k4':'4','k5':'5',"
		  "'k6':'6','k7':'7','k8':'8','k9':'9'}}",
		  "ancient-changes Update @3 {'f:data':{'.':{},'f:k0':{},'f:k1':{},'f:k2':{},'f:k3':{}}} | u04 "
		  "Update @4 {'f:data':{'f:k4':{}}} | u05 Update @5 {'f:data':{'f:k5':{}}} | u06 Update @6 {"
		  "'f:data':{'f:k6':{}}} | u07 Update @7 {'f:data':{'f:k7':{}}} | u08 Update @8 {'f:data':{'f:k8':{"
		  "}}} | u09 Update @9 {'f:data':{'f:k9':{}}} | u10 Update @10 {'f:data':{'f:k10':{}}} | u11 Update "
		  "@11 {'f:data':{'f:k11':{}}} | u12 Update @12 {'f:data':{'f:k12':{}}}" },
		{ "= v1 ConfigMap", "kubectl takes over what it applied from the client", NULL, NULL },
		{ "update kubectl-client-side-apply",
		  "{'metadata':{'annotations':{'kubectl.kubernetes.io/last-applied-configuration':'{"
		  "\\'apiVersion\\':\\'v1\\',\\'kind\\':\\'ConfigMap\\',\\'metadata\\':{\\'name\\':\\'n\\'},"
		  "\\'data\\':{\\'a\\':\\'1\\',\\'b\\':\\'1\\'}}'}},'data':{'a':'1','b':'1','c':'1'}}",
		  "{'data':{'a':'1','b':'1','c':'1'},'metadata':{'annotations':{"
		  "'kubectl.kubernetes.io/last-applied-configuration':'{\\'apiVersion\\':\\'v1\\',"
		  "\\'kind\\':\\'ConfigMap\\',\\'metadata\\':{\\'name\\':\\'n\\'},\\'data\\':{\\'a\\':\\'1\\',"
		  "\\'b\\':\\'1\\'}}'}}}",
		  "kubectl-client-side-apply Update @0 {'f:data':{'.':{},'f:a':{},'f:b':{},'f:c':{}},'f:metadata':{"
		  "'f:annotations':{'.':{},'f:kubectl.kubernetes.io/last-applied-configuration':{}}}}" },
		{ "apply m1", "{'data':{'a':'2'}}",
		  "! Apply failed with 1 conflict: conflict with 'kubectl-client-side-apply' using v1: .data.a",
		  ".data.a: conflict with 'kubectl-client-side-apply' using v1" },
		{ "apply kubectl", "{'data':{'a':'2','c':'2'}}",
		  "! Apply failed with 1 conflict: conflict with 'kubectl-client-side-apply' using v1: .data.c",
		  ".data.c: conflict with 'kubectl-client-side-apply' using v1" },
		{ "apply kubectl", "{'data':{'a':'2'}}",
		  "{'data':{'a':'2','b':'1','c':'1'},'metadata':{'annotations':{"
		  "'kubectl.kubernetes.io/last-applied-configuration':'{\\'apiVersion\\':\\'v1\\',\\'data\\':{"
		  "\\'a\\':\\'2\\'},\\'kind\\':\\'ConfigMap\\',\\'metadata\\':{\\'name\\':\\'n\\'}}\\n'}}}",
		  "kubectl Apply @3 {'f:data':{'f:a':{}}} | kubectl-client-side-apply Update @0 {'f:data':{'.':{},"
		  "'f:b':{},'f:c':{}},'f:metadata':{'f:annotations':{'.':{},"
		  "'f:kubectl.kubernetes.io/last-applied-configuration':{}}}}" },
		{ "apply kubectl",
		  "{'data':{'a':'3'},'metadata':{'annotations':{'x':'<y>',"
		  "'kubectl.kubernetes.io/last-applied-configuration':'z'}}}",
		  "! Apply failed with 1 conflict: conflict with 'kubectl-client-side-apply' using v1: "
		  ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
		  ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration: conflict with "
		  "'kubectl-client-side-apply' using v1" },
		{ "= v1 ConfigMap", "the annotation of another version helps nothing", NULL, NULL },
		{ "update kubectl-client-side-apply",
		  "{'metadata':{'annotations':{'kubectl.kubernetes.io/last-applied-configuration':'{"
		  "\\'apiVersion\\':\\'v2\\',\\'kind\\':\\'ConfigMap\\',\\'data\\':{\\'a\\':\\'1\\'}}'}},'data':{"
		  "'a':'1'}}",
		  "{'data':{'a':'1'},'metadata':{'annotations':{'kubectl.kubernetes.io/last-applied-configuration':'{"
		  "\\'apiVersion\\':\\'v2\\',\\'kind\\':\\'ConfigMap\\',\\'data\\':{\\'a\\':\\'1\\'}}'}}}",
		  "kubectl-client-side-apply Update @0 {'f:data':{'.':{},'f:a':{}},'f:metadata':{'f:annotations':{"
		  "'.':{},'f:kubectl.kubernetes.io/last-applied-configuration':{}}}}" },
		{ "apply kubectl", "{'data':{'a':'2'}}",
		  "! Apply failed with 1 conflict: conflict with 'kubectl-client-side-apply' using v1: .data.a",
		  ".data.a: conflict with 'kubectl-client-side-apply' using v1" },
		{ "= example.com/v1 Widget", "an unknown kind: members apart, lists as a whole", NULL, NULL },
		{ "apply m1", "{'spec':{'size':1,'tags':['a','b'],'nested':{'x':{'y':1}}}}",
		  "{'spec':{'nested':{'x':{'y':1}},'size':1,'tags':['a','b']}}",
		  "m1 Apply @0 {'f:spec':{'.':{},'f:nested':{'.':{},'f:x':{'.':{},'f:y':{}}},'f:size':{},'f:tags':{"
		  "}}}" },
		{ "apply m2", "{'spec':{'nested':{'x':{'z':2}},'color':'red'}}",
		  "{'spec':{'color':'red','nested':{'x':{'y':1,'z':2}},'size':1,'tags':['a','b']}}",
		  "m1 Apply @0 {'f:spec':{'.':{},'f:nested':{'.':{},'f:x':{'.':{},'f:y':{}}},'f:size':{},'f:tags':{"
		  "}}} | m2 Apply @1 {'f:spec':{'.':{},'f:color':{},'f:nested':{'.':{},'f:x':{'.':{},'f:z':{}}}}}" },
		{ "apply m2", "{'spec':{'tags':['a','b','c']}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.tags",
		  ".spec.tags: conflict with 'm1'" },
		{ "apply m1", "{'spec':{'size':1.5}}", "{'spec':{'color':'red','nested':{'x':{'z':2}},'size':1.5}}",
		  "m2 Apply @1 {'f:spec':{'.':{},'f:color':{},'f:nested':{'.':{},'f:x':{'.':{},'f:z':{}}}}} | m1 "
		  "Apply @3 {'f:spec':{'.':{},'f:size':{}}}" },
		{ "apply m2", "{'spec':{'nested':{'x':{'z':{'deep':[{'a':1}]}}}}}",
		  "{'spec':{'nested':{'x':{'z':{'deep':[{'a':1}]}}},'size':1.5}}",
		  "m1 Apply @3 {'f:spec':{'.':{},'f:size':{}}} | m2 Apply @4 {'f:spec':{'.':{},'f:nested':{'.':{},"
		  "'f:x':{'.':{},'f:z':{'.':{},'f:deep':{}}}}}}" },
		{ "update u", "{'spec':{'nested':{'x':{'z':5}},'list':[]}}",
		  "{'spec':{'list':[],'nested':{'x':{'z':5}}}}",
		  "m1 Apply @3 {'f:spec':{}} | m2 Apply @4 {'f:spec':{'.':{},'f:nested':{'.':{},'f:x':{}}}} | u "
		  "Update @5 {'f:spec':{'f:list':{},'f:nested':{'f:x':{'f:z':{}}}}}" },
		{ "apply m1", "{'spec':null}", "{'spec':{'list':[],'nested':{'x':{'z':5}}}}",
		  "m1 Apply @3 {'f:spec':{}} | m2 Apply @4 {'f:spec':{'.':{},'f:nested':{'.':{},'f:x':{}}}} | u "
		  "Update @5 {'f:spec':{'f:list':{},'f:nested':{'f:x':{'f:z':{}}}}}" },
		{ "apply m1", "{'spec':{'nested':'scalar'}}",
		  "! Apply failed with 1 conflict: conflict with 'm2': .spec.nested",
		  ".spec.nested: conflict with 'm2'" },
		{ "apply m1 force", "{'spec':{'nested':'scalar','null':null,'e':{},'l':[null,{}]}}",
		  "{'spec':{'e':{},'l':[null,{}],'list':[],'nested':'scalar','null':null}}",
		  "m2 Apply @4 {'f:spec':{}} | m1 Apply @8 {'f:spec':{'.':{},'f:e':{},'f:l':{},'f:nested':{},"
		  "'f:null':{}}} | u Update @5 {'f:spec':{'f:list':{}}}" },
		{ "apply m1", "{}", "{'spec':{'list':[]}}",
		  "m2 Apply @4 {'f:spec':{}} | u Update @5 {'f:spec':{'f:list':{}}}" },
		{ "= example.com/v1 Widget", "nulls and empty values", NULL, NULL },
		{ "apply m1", "{'a':null,'b':{},'c':[],'d':{'e':null}}", "{'a':null,'b':{},'c':[],'d':{'e':null}}",
		  "m1 Apply @0 {'f:a':{},'f:b':{},'f:c':{},'f:d':{'.':{},'f:e':{}}}" },
		{ "apply m2", "{'a':1,'b':{'x':1},'c':[1],'d':{'e':{'f':1}}}",
		  "! Apply failed with 2 conflicts: conflicts with 'm1':\n- .a\n- .c",
		  ".a: conflict with 'm1' | .c: conflict with 'm1'" },
		{ "apply m2", "{'a':null,'b':null,'c':null,'d':null}",
		  "! Apply failed with 2 conflicts: conflicts with 'm1':\n- .b\n- .c",
		  ".b: conflict with 'm1' | .c: conflict with 'm1'" },
		{ "update u", "{'b':{}}", "{'b':{}}", "m1 Apply @0 {'f:b':{}}" },
		{ "update u", "{'a':{'x':1},'b':[1]}", "{'a':{'x':1},'b':[1]}",
		  "u Update @4 {'f:a':{'.':{},'f:x':{}},'f:b':{}}" },
		{ "apply m1 force", "{'a':'s','b':{'y':{}}}", "{'a':'s','b':{'y':{}}}",
		  "m1 Apply @5 {'f:a':{},'f:b':{'.':{},'f:y':{}}}" },
	};
	stories_run(t, ARRAY_LEN(t), NULL);
}

/* What v1 calls size is width in v2. There is no other version. */
static int rename_convert(const struct apply_converter *c, struct arena *a, struct val object, str api_version,
			  struct val *ret, struct apply_type *ret_type, struct err *err)
{
	atom size = atom_make(a, STR("size")), width = atom_make(a, STR("width"));
	bool v1 = str_eq(api_version, STR("example.com/v1"));
	atom from = v1 ? width : size, to = v1 ? size : width;
	struct val moved = val_member(object, from);

	(void)c;
	if (!v1 && !str_eq(api_version, STR("example.com/v2")))
		return err_set(err, ERR_NOT_FOUND, "no such version");
	*ret_type = apply_type_deduced();
	*ret = val_with(a, object, val_of_str(api_version), apiVersion);
	if (val_exists(moved))
		*ret = val_put(a, val_put(a, *ret, from, VAL_EMPTY), to, moved);
	return 0;
}

TEST(apply_stories_of_versions)
{
	static const struct apply_converter converter = { rename_convert };
	static const struct story_row t[] = {
		{ "= example.com/v1 Sized", "managers that use other versions", NULL, NULL },
		{ "apply m1", "{'size':1,'color':'red'}", "{'color':'red','size':1}",
		  "m1 Apply @0 {'f:color':{},'f:size':{}}" },
		{ "apply m2 at=example.com/v2", "{'width':2}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .size", ".size: conflict with 'm1'" },
		{ "apply m2 at=example.com/v2 force", "{'width':2}", "{'color':'red','width':2}",
		  "m1 Apply example.com/v1 @0 {'f:color':{}} | m2 Apply @2 {'f:width':{}}" },
		{ "update u at=example.com/v2", "{'width':3,'color':'red'}", "{'color':'red','width':3}",
		  "m1 Apply example.com/v1 @0 {'f:color':{}} | u Update @3 {'f:width':{}}" },
		{ "apply m2", "{'size':4}",
		  "! Apply failed with 1 conflict: conflict with 'u' using example.com/v2: .width",
		  ".width: conflict with 'u' using example.com/v2" },
		{ "apply m1 at=example.com/v2", "{'color':'red','width':3}", "{'color':'red','width':3}",
		  "m1 Apply @0 {'f:color':{},'f:width':{}} | u Update @3 {'f:width':{}}" },
		{ "apply m1 at=example.com/v2", "{}", "{'width':3}", "u Update @3 {'f:width':{}}" },
		{ "update u",
		  "{'size':3,'metadata':{'managedFields':[{'manager':'gone','operation':'Update',"
		  "'apiVersion':'example.com/v9','fieldsType':'FieldsV1','fieldsV1':{'f:size':{}}},{'manager':'kept',"
		  "'operation':'Update','apiVersion':'example.com/v2','fieldsType':'FieldsV1','fieldsV1':{'f:width':{"
		  "},'f:color':{}}}]}}", "{'size':3}", "kept Update example.com/v2 {'f:color':{},'f:width':{}}" },
		{ "apply m3", "{'size':9}",
		  "! Apply failed with 1 conflict: conflict with 'kept' using example.com/v2: .width",
		  ".width: conflict with 'kept' using example.com/v2" },
	};
	stories_run(t, ARRAY_LEN(t), &converter);
}

/* Nothing that a client sends may exhaust the stack or take forever. */
TEST(apply_deep_objects)
{
	struct apply_request req = { .custom = apply_type_deduced(), .api_version = STR("example.com/v1"),
				     .kind = STR("Widget"), .manager = STR("m") };
	static const struct {
		unsigned depth;
		int want;
	} t[] = { { 1, 0 }, { 150, 0 }, { 198, 0 }, { 199, -ERR_BAD_REQUEST }, { 5000, -ERR_BAD_REQUEST } };

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct val deep = val_of_int(1), object, out;
		for (unsigned d = 0; d < t[i].depth; d++)
			deep = OBJECT(&a, F(value, deep));
		object = OBJECT(&a, F(apiVersion, VAL_STR(req.api_version)), F(kind, VAL_STR(req.kind)), F(spec, deep));
		CHECK_ROW(i, apply_patch(&a, &req, VAL_EMPTY, object, false, &out, NULL, &err) == t[i].want);
		CHECK_ROW(i, apply_update(&a, &req, VAL_EMPTY, object, &out, &err) == t[i].want);
		if (t[i].want == 0) {
			out = val_with(&a, out, VAL_LIT("u"), metadata, uid);
			object = val_without(&a, object, spec);
			CHECK_ROW(i, apply_patch(&a, &req, out, object, true, &out, NULL, &err) == 0);
		}
	}
}
