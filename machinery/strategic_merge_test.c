#include "machinery/testing.h"

#include "codec/types.h"

TEST(strategic_patch_apply)
{
	static const struct {
		const char *type, *doc, *patch, *want;
	} t[] = {
		/* objects: as a JSON merge patch */
		{ "core/v1.Pod", "{'metadata':{'name':'p'}}", "{}", "{'metadata':{'name':'p'}}" },
		{ "core/v1.Pod", "{'metadata':{'name':'p','labels':{'a':'1'}}}", "{'metadata':{'labels':{'b':'2'}}}",
		  "{'metadata':{'labels':{'a':'1','b':'2'},'name':'p'}}" },
		{ "core/v1.Pod", "{'metadata':{'labels':{'a':'1','b':'2'}}}", "{'metadata':{'labels':{'a':null}}}",
		  "{'metadata':{'labels':{'b':'2'}}}" },
		{ "core/v1.Pod", "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':null}}", "{'metadata':{}}" },
		{ "core/v1.Pod", "{'metadata':{}}", "{'metadata':{'labels':{'a':null,'b':'1'}}}",
		  "{'metadata':{'labels':{'b':'1'}}}" },
		{ "core/v1.Pod", "{}", "{'spec':{'nodeName':null,'nodeSelector':{'a':null}}}",
		  "{'spec':{'nodeSelector':{}}}" },
		{ "core/v1.Pod", "{'spec':{'nodeName':'a'}}", "{'spec':'x'}", "{'spec':'x'}" },
		{ "core/v1.Pod", "{'spec':{'nodeName':'a'}}", "{'spec':null}", "{}" },
		{ "core/v1.Pod", "{'spec':{'hostNetwork':true}}", "{'spec':{'hostNetwork':false,'priority':5}}",
		  "{'spec':{'hostNetwork':false,'priority':5}}" },
		{ "core/v1.Pod", "{'spec':{'priority':1}}", "{'spec':{'priority':1.5}}", "{'spec':{'priority':1.5}}" },
		{ "core/v1.Pod", "{'status':{'phase':'A'}}", "{'bogus':{'x':[1,{'y':null}]}}",
		  "{'bogus':{'x':[1,{}]},'status':{'phase':'A'}}" },
		{ "core/v1.Pod",
		  "{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{}]}}}}}",
		  "{'spec':{'affinity':{'podAffinity':{}}}}",
		  "{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{}]}},'podAffinity':{}}}}" },
		/* lists without merge key are replaced */
		{ "core/v1.Pod", "{'spec':{'tolerations':[{'key':'a'},{'key':'b'}]}}",
		  "{'spec':{'tolerations':[{'key':'c'}]}}", "{'spec':{'tolerations':[{'key':'c'}]}}" },
		{ "core/v1.Pod", "{'spec':{'tolerations':[{'key':'a'}]}}", "{'spec':{'tolerations':[]}}",
		  "{'spec':{'tolerations':[]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','args':['1','2']}]}}",
		  "{'spec':{'containers':[{'name':'a','args':['3']}]}}",
		  "{'spec':{'containers':[{'args':['3'],'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'tolerations':[{'key':'a'}]}}",
		  "{'spec':{'tolerations':[{'$patch':'delete','key':'a'},{'key':null}]}}",
		  "{'spec':{'tolerations':[{'$patch':'delete','key':'a'},{'key':null}]}}" },
		/* lists of objects merge by key; new items come first */
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b','image':'1'}]}}",
		  "{'spec':{'containers':[{'name':'b','image':'2'}]}}",
		  "{'spec':{'containers':[{'image':'1','name':'a'},{'image':'2','name':'b'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'name':'c'}]}}",
		  "{'spec':{'containers':[{'name':'c'},{'name':'a'},{'name':'b'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}}",
		  "{'spec':{'containers':[{'name':'x'},{'name':'b','image':'2'},{'name':'y'}]}}",
		  "{'spec':{'containers':[{'name':'x'},{'name':'a'},{'image':'2','name':'b'},{'name':'y'},{'name':'c'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}}",
		  "{'spec':{'containers':[{'name':'c'},{'name':'a'}]}}",
		  "{'spec':{'containers':[{'name':'b'},{'name':'c'},{'name':'a'}]}}" },
		{ "core/v1.Pod",
		  "{'spec':{'containers':[{'name':'a','env':[{'name':'A','value':'1'},{'name':'B','value':'2'}]}]}}",
		  "{'spec':{'containers':[{'name':'a','env':[{'name':'B','value':'3'},{'name':'C'}]}]}}",
		  "{'spec':{'containers':[{'env':[{'name':'A','value':'1'},{'name':'B','value':'3'},{'name':'C'}],'name':'a'}]}}" },
		{ "core/v1.Pod",
		  "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80},{'containerPort':81}]}]}}",
		  "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':81,'name':'x'}]}]}}",
		  "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80},{'containerPort':81,'name':'x'}]}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80}]}]}}",
		  "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80.5,'name':'x'}]}]}}",
		  "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80.5,'name':'x'},{'containerPort':80}]}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','volumeMounts':[{'mountPath':'/a','name':'v'}]}]}}",
		  "{'spec':{'containers':[{'name':'a','volumeMounts':[{'mountPath':'/b','name':'v'}]}]}}",
		  "{'spec':{'containers':[{'name':'a','volumeMounts':[{'mountPath':'/b','name':'v'},{'mountPath':'/a','name':'v'}]}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','image':'1'},{'name':'a','image':'2'}]}}",
		  "{'spec':{'containers':[{'name':'a','image':'3'}]}}",
		  "{'spec':{'containers':[{'image':'3','name':'a'},{'image':'2','name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','image':'1'}]}}",
		  "{'spec':{'containers':[{'name':'b','image':'1'},{'name':'b','args':[]}]}}",
		  "{'spec':{'containers':[{'args':[],'image':'1','name':'b'},{'image':'1','name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','image':'1'}]}}",
		  "{'spec':{'containers':[{'name':'b','image':null,'env':[{'$patch':'delete','name':'x'}]}]}}",
		  "{'spec':{'containers':[{'env':[{'$patch':'delete','name':'x'}],'image':null,'name':'b'},{'image':'1','name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[]}}", "{'spec':{'containers':[]}}",
		  "{'spec':{'containers':[]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[]}}",
		  "{'spec':{'containers':[{'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[]}}", "{'spec':{'containers':[{'name':'a','image':null}]}}",
		  "{'spec':{'containers':[{'image':null,'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{}}",
		  "{'spec':{'containers':[{'name':'a','image':null},{'name':'b','$patch':'delete'}]}}",
		  "{'spec':{'containers':[{'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'imagePullSecrets':[{'name':'a'}]}}",
		  "{'spec':{'imagePullSecrets':[{'name':'b'},{'name':'a'}]}}",
		  "{'spec':{'imagePullSecrets':[{'name':'b'},{'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'hostAliases':[{'ip':'1','hostnames':['a']}]}}",
		  "{'spec':{'hostAliases':[{'ip':'1','hostnames':['b']},{'ip':'2'}]}}",
		  "{'spec':{'hostAliases':[{'hostnames':['b'],'ip':'1'},{'ip':'2'}]}}" },
		{ "core/v1.Pod", "{'status':{'conditions':[{'type':'A','status':'True'},{'type':'B'}]}}",
		  "{'status':{'conditions':[{'type':'B','status':'False'}]}}",
		  "{'status':{'conditions':[{'status':'True','type':'A'},{'status':'False','type':'B'}]}}" },
		{ "core/v1.Service", "{'spec':{'ports':[{'port':80,'protocol':'TCP'},{'port':443}]}}",
		  "{'spec':{'ports':[{'port':80,'targetPort':8080}]}}",
		  "{'spec':{'ports':[{'port':80,'protocol':'TCP','targetPort':8080},{'port':443}]}}" },
		{ "core/v1.Service", "{'spec':{'ports':[{'port':53,'protocol':'TCP'},{'port':53,'protocol':'UDP'}]}}",
		  "{'spec':{'ports':[{'port':53,'protocol':'UDP','name':'x'}]}}",
		  "{'spec':{'ports':[{'name':'x','port':53,'protocol':'UDP'},{'port':53,'protocol':'UDP'}]}}" },
		/* $patch */
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'name':'a','$patch':'delete'}]}}", "{'spec':{'containers':[{'name':'b'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'a'}]}}",
		  "{'spec':{'containers':[{'name':'a','$patch':'delete'},{'name':'c'}]}}",
		  "{'spec':{'containers':[{'name':'c'},{'name':'b'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'name':'z','$patch':'delete'}]}}", "{'spec':{'containers':[{'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','image':'1'}]}}",
		  "{'spec':{'containers':[{'name':'a','$patch':'delete'},{'name':'a','args':[]}]}}",
		  "{'spec':{'containers':[{'args':[],'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'$patch':'replace'},{'name':'c'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'name':'c'},{'name':'b'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'$patch':'replace'}]}}", "{'spec':{'containers':[]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'$patch':'merge','name':'a'}]}}",
		  "! merging lists cannot yet be specified in the patch" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'$patch':'bogus','name':'a'}]}}",
		  "! unknown patch type: bogus in map: map[$patch:bogus name:a]" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'$patch':5,'name':'a'}]}}",
		  "! unknown patch type: %!s(int64=5) in map: map[$patch:5 name:a]" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'$patch':null,'name':'a'}]}}",
		  "! unknown patch type: %!s(<nil>) in map: map[$patch:<nil> name:a]" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'containers':[{'$patch':'delete'}]}}",
		  "! map: map[$patch:delete] does not contain declared merge key: name" },
		{ "core/v1.Pod", "{'metadata':{'labels':{'a':'1'}}}",
		  "{'metadata':{'labels':{'$patch':'replace','b':'2','c':null}}}",
		  "{'metadata':{'labels':{'b':'2','c':null}}}" },
		{ "core/v1.Pod", "{'metadata':{'labels':{'a':'1'}}}",
		  "{'metadata':{'labels':{'$patch':'delete','b':'2'}}}", "{'metadata':{'labels':{}}}" },
		{ "core/v1.Pod", "{'metadata':{'labels':{'a':'1'}}}",
		  "{'metadata':{'labels':{'$patch':'merge','b':'2'}}}",
		  "! unknown patch type: merge in map: map[$patch:merge b:2]" },
		{ "core/v1.Pod", "{'metadata':{}}", "{'metadata':{'labels':{'$patch':'replace','b':'2'}}}",
		  "{'metadata':{}}" },
		{ "core/v1.Pod", "{'metadata':{'name':'a'}}", "{'$patch':'replace','metadata':{'name':'b'}}",
		  "{'metadata':{'name':'b'}}" },
		{ "core/v1.Pod", "{'metadata':{'name':'a'}}", "{'$patch':'delete'}", "{}" },
		{ "core/v1.Pod", "{'metadata':{'name':'a'}}", "{'$patch':'x','b':[1,true,null,'s',{'t':2.5}]}",
		  "! unknown patch type: x in map: map[$patch:x b:[1 true <nil> s map[t:2.5]]]" },
		{ "apps/v1.Deployment", "{'spec':{'strategy':{'type':'RollingUpdate','rollingUpdate':{}}}}",
		  "{'spec':{'strategy':{'$patch':'replace','type':'Recreate'}}}",
		  "{'spec':{'strategy':{'type':'Recreate'}}}" },
		/* $retainKeys */
		{ "apps/v1.Deployment", "{'spec':{'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':1}}}}",
		  "{'spec':{'strategy':{'$retainKeys':['type'],'type':'Recreate'}}}",
		  "{'spec':{'strategy':{'type':'Recreate'}}}" },
		{ "apps/v1.Deployment", "{'spec':{'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':1}}}}",
		  "{'spec':{'strategy':{'$retainKeys':['type','rollingUpdate'],'rollingUpdate':{'maxUnavailable':2}}}}",
		  "{'spec':{'strategy':{'rollingUpdate':{'maxSurge':1,'maxUnavailable':2},'type':'RollingUpdate'}}}" },
		{ "apps/v1.Deployment", "{'spec':{'strategy':{'type':'RollingUpdate'}}}",
		  "{'spec':{'strategy':{'$retainKeys':['rollingUpdate'],'type':'Recreate'}}}",
		  "! invalid patch format of retainKeys" },
		{ "apps/v1.Deployment", "{'spec':{'strategy':{'type':'RollingUpdate'}}}",
		  "{'spec':{'strategy':{'$retainKeys':['rollingUpdate'],'type':null}}}", "{'spec':{'strategy':{}}}" },
		{ "apps/v1.Deployment", "{'spec':{'strategy':{'type':'RollingUpdate'}}}",
		  "{'spec':{'strategy':{'$retainKeys':'type','type':'Recreate'}}}",
		  "! invalid patch format of retainKeys" },
		{ "apps/v1.Deployment", "{'spec':{'strategy':{'type':'RollingUpdate'}}}",
		  "{'spec':{'strategy':{'$retainKeys':[]}}}", "{'spec':{'strategy':{}}}" },
		{ "apps/v1.Deployment", "{'spec':{}}", "{'spec':{'strategy':{'$retainKeys':['type'],'type':'Recreate'}}}",
		  "{'spec':{'strategy':{'$retainKeys':['type'],'type':'Recreate'}}}" },
		{ "core/v1.Pod", "{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
		  "{'spec':{'volumes':[{'name':'v','$retainKeys':['name','hostPath'],'hostPath':{'path':'/x'}}]}}",
		  "{'spec':{'volumes':[{'hostPath':{'path':'/x'},'name':'v'}]}}" },
		{ "core/v1.Pod", "{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
		  "{'spec':{'volumes':[{'name':'v','$retainKeys':['hostPath'],'hostPath':{'path':'/x'}}]}}",
		  "! invalid patch format of retainKeys" },
		{ "core/v1.Pod", "{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
		  "{'spec':{'volumes':[{'name':'w','$retainKeys':['name'],'emptyDir':{}}]}}",
		  "{'spec':{'volumes':[{'$retainKeys':['name'],'emptyDir':{},'name':'w'},{'emptyDir':{},'name':'v'}]}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b'],'name':'x'}}",
		  "{'metadata':{'$retainKeys':['finalizers'],'$setElementOrder/finalizers':['b','a'],'$deleteFromPrimitiveList/finalizers':['q']}}",
		  "{'metadata':{'finalizers':['b','a']}}" },
		/* sets of primitives */
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b']}}", "{'metadata':{'finalizers':['c']}}",
		  "{'metadata':{'finalizers':['c','a','b']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b']}}", "{'metadata':{'finalizers':['c','a']}}",
		  "{'metadata':{'finalizers':['c','a','b']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b','c']}}", "{'metadata':{'finalizers':['b','d','b']}}",
		  "{'metadata':{'finalizers':['a','b','d','c']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','a','b']}}", "{'metadata':{'finalizers':['c']}}",
		  "{'metadata':{'finalizers':['c','a','b']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b','a','c','b','d']}}",
		  "{'metadata':{'finalizers':['e','a','e']}}", "{'metadata':{'finalizers':['e','a','b','c','d']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':[]}}",
		  "{'metadata':{'finalizers':['a']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':null}}",
		  "{'metadata':{}}" },
		{ "core/v1.Pod", "{'metadata':{}}", "{'metadata':{'finalizers':['b','a','b']}}",
		  "{'metadata':{'finalizers':['b','a','b']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':[1]}}",
		  "! list element types are not identical: [[a] [1]]" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':['b',null]}}",
		  "! list element types are not identical: [[a] [b <nil>]]" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':[['b']]}}",
		  "! list element types are not identical: [[a] [[b]]]" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':[]}}", "{'metadata':{'finalizers':[['b']]}}",
		  "! lists of lists are not supported" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':[]}}", "{'metadata':{'finalizers':[{'a':'b'}]}}",
		  "! cannot merge lists without merge key for string" },
		{ "core/v1.Node", "{'spec':{'podCIDRs':['a','b']}}", "{'spec':{'podCIDRs':['c','a']}}",
		  "{'spec':{'podCIDRs':['c','a','b']}}" },
		/* $deleteFromPrimitiveList */
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b','a']}}",
		  "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a','x']}}", "{'metadata':{'finalizers':['b']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b']}}",
		  "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a','b']}}", "{'metadata':{'finalizers':[]}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b']}}",
		  "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a'],'finalizers':['c']}}",
		  "{'metadata':{'finalizers':['c','b']}}" },
		{ "core/v1.Pod", "{'metadata':{}}", "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a']}}",
		  "{'metadata':{}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}",
		  "{'metadata':{'$deleteFromPrimitiveList/finalizers':'a'}}", "{'metadata':{'finalizers':['a']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}",
		  "{'metadata':{'$deleteFromPrimitiveList/finalizers':null}}", "{'metadata':{}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}", "{'metadata':{'$deleteFromPrimitiveList':['a']}}",
		  "! invalid patch format of primitive list" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}",
		  "{'metadata':{'$deleteFromPrimitiveListX/finalizers':['a']}}",
		  "! invalid patch format of primitive list" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','args':['x','y']}]}}",
		  "{'spec':{'containers':[{'name':'a','$deleteFromPrimitiveList/args':['x']}]}}",
		  "{'spec':{'containers':[{'args':['y'],'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'tolerations':[{'key':'a'}]}}",
		  "{'spec':{'$deleteFromPrimitiveList/tolerations':[{'key':'a'}]}}",
		  "! cannot merge lists without merge key for struct" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a']}}",
		  "{'metadata':{'$deleteFromPrimitiveList/finalizers':[1]}}",
		  "! list element types are not identical: [[a] [1]]" },
		/* $setElementOrder */
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'c'},{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'containers':[{'name':'c'},{'name':'a'},{'name':'b'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'c'},{'name':'a'}]}}",
		  "{'spec':{'containers':[{'name':'b'},{'name':'c'},{'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'c'},{'name':'x'},{'name':'a'}],'containers':[{'name':'x','image':'1'}]}}",
		  "{'spec':{'containers':[{'name':'b'},{'name':'c'},{'image':'1','name':'x'},{'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'d'},{'name':'b'}],'containers':[{'name':'d'},{'name':'a','$patch':'delete'}]}}",
		  "{'spec':{'containers':[{'name':'c'},{'name':'d'},{'name':'b'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'a'},{'name':'c'}],'containers':[{'name':'c'},{'name':'a'}]}}",
		  "! The order in patch list:\n[map[name:c] map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:a] map[name:c]]\n" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'a'}],'containers':[{'name':'b'}]}}",
		  "! The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'$setElementOrder/containers':[],'containers':[{'name':'c'},{'name':'d'}]}}",
		  "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'d'},{'name':'c'}]}}" },
		{ "core/v1.Pod", "{'spec':{}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}],'containers':[{'name':'b'},{'name':'a','image':null},{'name':'z','$patch':'delete'}]}}",
		  "{'spec':{'containers':[{'name':'b'},{'image':null,'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{}}", "{'spec':{'$setElementOrder/containers':[{'name':'b'}]}}",
		  "{'spec':{}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[]}}", "{'spec':{'$setElementOrder/containers':[{'name':'b'}]}}",
		  "! no elements in any of the given slices" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'$setElementOrder/containers':'x'}}",
		  "! expected a []interface {}, but received a string" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'$setElementOrder/containers':null}}",
		  "! expected a []interface {}, but received a %!s(<nil>)" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'$setElementOrder':[]}}",
		  "! invalid patch format of setElementOrder list" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'$setElementOrder/bogus':[{'name':'a'}]}}",
		  "! unable to find api field in struct PodSpec for the json field \"bogus\"" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'image':'a'}]}}",
		  "! map: map[image:a] does not contain declared merge key: name" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'$setElementOrder/containers':['a']}}", "! value for key 0 is not a map" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'a'}],'containers':{}}}",
		  "! expected a []interface {}, but received a map[string]interface {}" },
		{ "core/v1.Pod", "{'spec':{'nodeName':'a'}}", "{'spec':{'$setElementOrder/nodeName':['a']}}",
		  "! expected a []interface {}, but received a string" },
		{ "core/v1.Pod", "{'spec':{'hostname':'a'}}", "{'spec':{'$setElementOrder/nodeName':['a']}}",
		  "! expected slice or array type, but got: struct" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b','c']}}",
		  "{'metadata':{'$setElementOrder/finalizers':['c','a']}}", "{'metadata':{'finalizers':['b','c','a']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b','c']}}",
		  "{'metadata':{'$setElementOrder/finalizers':['d','c'],'finalizers':['d']}}",
		  "{'metadata':{'finalizers':['d','a','b','c']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b','c']}}",
		  "{'metadata':{'$setElementOrder/finalizers':['d','c'],'finalizers':['d'],'$deleteFromPrimitiveList/finalizers':['b']}}",
		  "{'metadata':{'finalizers':['d','a','c']}}" },
		{ "core/v1.Pod", "{'metadata':{'finalizers':['a','b','c']}}",
		  "{'metadata':{'$setElementOrder/finalizers':['c'],'finalizers':['d']}}",
		  "! The order in patch list:\n[d]\n doesn't match $setElementOrder list:\n[c]\n" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a','env':[{'name':'A'},{'name':'B'}]}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}],'containers':[{'name':'b','image':'x'},{'name':'a','$setElementOrder/env':[{'name':'B'},{'name':'A'}]}]}}",
		  "{'spec':{'containers':[{'image':'x','name':'b'},{'env':[{'name':'B'},{'name':'A'}],'name':'a'}]}}" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		  "{'spec':{'$setElementOrder/containers':[{'name':'b'}],'containers':[{'name':'b'},{'$patch':'replace'}]}}",
		  "! The order in patch list:\n[map[name:b] map[$patch:replace]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n" },
		/* what does not fit */
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[{'image':'nokey'}]}}",
		  "! map: map[image:nokey] does not contain declared merge key: name" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'image':'x'}]}}", "{'spec':{'containers':[{'name':'a'}]}}",
		  "! map: map[image:x] does not contain declared merge key: name" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':['x']}}",
		  "! list element types are not identical: [[map[name:a]] [x]]" },
		{ "core/v1.Pod", "{'spec':{'containers':['x']}}", "{'spec':{'containers':['y']}}",
		  "! expected a map[string]interface {}, but received a string" },
		{ "core/v1.Pod", "{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[{'name':null}]}}",
		  "{'spec':{'containers':[{'name':null},{'name':'a'}]}}" },
		{ "core/v1.Pod", "{'bogus':{'a':1}}", "{'bogus':{'a':2}}",
		  "! unable to find api field in struct Pod for the json field \"bogus\"" },
		{ "core/v1.Pod", "{'spec':{'bogus':[1]}}", "{'spec':{'bogus':[2]}}",
		  "! unable to find api field in struct PodSpec for the json field \"bogus\"" },
		{ "core/v1.Pod", "{'Spec':{'NodeName':'x'}}", "{'Spec':{'NodeName':'y'}}", "{'Spec':{'NodeName':'y'}}" },
		{ "core/v1.Pod", "{'metadata':{'labels':{'a':{'b':1}}}}", "{'metadata':{'labels':{'a':{'c':1}}}}",
		  "! merging an object in json but data type is not struct, instead is: map" },
		{ "core/v1.Pod", "{'metadata':{'labels':{'a':['b']}}}", "{'metadata':{'labels':{'a':['c']}}}",
		  "! merging an object in json but data type is not struct, instead is: map" },
		{ "core/v1.Pod", "{'spec':{'containers':{'a':{'b':1}}}}", "{'spec':{'containers':{'a':{'b':2}}}}",
		  "! merging an object in json but data type is not struct, instead is: slice" },
		{ "core/v1.Pod", "{'spec':{'nodeName':{'a':{'b':1}}}}", "{'spec':{'nodeName':{'a':{'b':2}}}}",
		  "! merging an object in json but data type is not struct, instead is: string" },
		{ "core/v1.Pod", "{'metadata':{'creationTimestamp':{'a':{'b':1}}}}",
		  "{'metadata':{'creationTimestamp':{'a':{'b':2}}}}",
		  "! unable to find api field in struct Time for the json field \"a\"" },
		{ "core/v1.Pod", "{'spec':{'securityContext':[{'a':1}]}}", "{'spec':{'securityContext':[{'a':2}]}}",
		  "{'spec':{'securityContext':[{'a':2}]}}" },
		{ "apps/v1.ControllerRevision", "{'data':{'spec':{'a':1}}}", "{'data':{'spec':{'a':2}}}",
		  "! unable to find api field in struct RawExtension for the json field \"spec\"" },
		{ "apps/v1.ControllerRevision", "{'data':{'a':1}}", "{'data':{'a':2}}", "{'data':{'a':2}}" },
		{ "certificates/v1.CertificateSigningRequest", "{'spec':{'extra':{'a':['x']}}}",
		  "{'spec':{'extra':{'a':['y']}}}",
		  "! merging an object in json but data type is not struct, instead is: map" },
		{ "apiextensions/v1.CustomResourceDefinition", "{'spec':{'versions':[{'name':'v1'}]}}",
		  "{'spec':{'versions':[{'name':'v2'}]}}", "{'spec':{'versions':[{'name':'v2'}]}}" },
		{ "policy/v1.PodDisruptionBudget", "{'spec':{'selector':{'matchLabels':{'a':'1'}},'minAvailable':1}}",
		  "{'spec':{'selector':{'matchLabels':{'b':'2'}}}}",
		  "{'spec':{'minAvailable':1,'selector':{'matchLabels':{'b':'2'}}}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val doc = testing_tree(&a, t[i].doc), patch = testing_tree(&a, t[i].patch), v = VAL_EMPTY;
		const struct type *type = schema_type(str_of(t[i].type));
		struct err err = ERR_INIT;
		CHECK_ROW(i, type != NULL);
		int r = strategic_patch_apply(&a, doc, patch, type, &v, &err);
		CHECK_STR_ROW(i, testing_result(&a, r, v, &err), t[i].want);
	}
}

/* The codes that the API server answers with. */
TEST(strategic_patch_errors)
{
	static const struct {
		const char *patch;
		int want;
	} t[] = {
		{ "null", 0 },
		{ "[]", -ERR_BAD_REQUEST },
		{ "'x'", -ERR_BAD_REQUEST },
		{ "{'metadata':{'$retainKeys':1}}", -ERR_BAD_REQUEST },
		{ "{'metadata':{'$deleteFromPrimitiveList':[]}}", -ERR_BAD_REQUEST },
		{ "{'metadata':{'$setElementOrder':[]}}", -ERR_BAD_REQUEST },
		{ "{'metadata':{'finalizers':[[]]}}", -ERR_INVALID },
		{ "{'metadata':{'$patch':'x'}}", -ERR_INTERNAL },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val doc = testing_tree(&a, "{'metadata':{'finalizers':[]}}"), v;
		struct err err = ERR_INIT;
		int r = strategic_patch_apply(&a, doc, testing_tree(&a, t[i].patch), TYPE(core_v1, Pod), &v,
					      &err);
		CHECK_ROW(i, r == t[i].want);
	}
}

TEST(strategic_patch_custom_resource)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val v;

	CHECK_INT(strategic_patch_apply(&a, VAL_EMPTY_OBJECT, VAL_EMPTY_OBJECT, NULL, &v, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "strategic merge patch format is not supported");
}

/* Long lists, with every second item changed and the order reversed. */
TEST(strategic_patch_long_list)
{
	enum { N = 20000 };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder doc = val_builder(&a), patch = val_builder(&a), order = val_builder(&a);
	atom name = atom_make(&a, STR("name")), value = atom_make(&a, STR("value"));
	struct err err = ERR_INIT;
	struct val v;

	for (int i = 0; i < N; i++) {
		struct val key = val_of_str(arena_printf(&a, "key-%d", i));
		val_add_item(&doc, val_object(&a, &(struct member){ name, key }, 1));
		key = val_of_str(arena_printf(&a, "key-%d", N - 1 - i));
		struct member m[] = { { name, key }, { value, VAL_LIT("x") } };
		if (i % 2)
			val_add_item(&patch, val_object(&a, m, 2));
		val_add_item(&order, val_object(&a, m, 1));
	}
	struct val container = testing_tree(&a, "{'name':'c'}");
	struct val p = val_put(&a, container, atom_make(&a, STR("env")), val_end_list(&patch));
	p = val_put(&a, p, atom_make(&a, STR("$setElementOrder/env")), val_end_list(&order));
	struct val d = val_put(&a, container, atom_make(&a, STR("env")), val_end_list(&doc));
	CHECK_INT(strategic_patch_apply(&a, d, p, TYPE(core_v1, Container), &v, &err), 0);
	struct val env = val_find(v, STR("env"));
	CHECK_INT(val_len(env), N);
	CHECK_STR(val_as_str(val_find(val_at(env, 0), STR("name"))), "key-19999");
	CHECK_STR(val_as_str(val_find(val_at(env, 1), STR("value"))), "x");
	CHECK_STR(val_as_str(val_find(val_at(env, N - 1), STR("name"))), "key-0");
}

/* A patch that its types would let nest for ever. */
TEST(strategic_patch_depth)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val deep = VAL_EMPTY_OBJECT, v;
	struct err err = ERR_INIT;

	for (int i = 0; i < VAL_RECURSION_MAX + 1; i++)
		deep = val_object(&a, &(struct member){ atom_make(&a, STR("not")), deep }, 1);
	CHECK_INT(strategic_patch_apply(&a, deep, deep, TYPE(apiextensions_v1, JSONSchemaProps), &v, &err),
		  -ERR_BAD_REQUEST);
	CHECK_INT(strategic_patch_apply(&a, VAL_EMPTY_OBJECT, deep, TYPE(apiextensions_v1, JSONSchemaProps), &v, &err),
		  -ERR_BAD_REQUEST);
	CHECK_INT(strategic_patch_create(&a, deep, deep, TYPE(apiextensions_v1, JSONSchemaProps), 0, &v, &err),
		  -ERR_BAD_REQUEST);
}

/* The same item over and over: each merge makes it again, with one member more. */
TEST(strategic_patch_same_item)
{
	enum { N = 5000 };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder items = val_builder(&a);
	struct err err = ERR_INIT;
	struct val v;

	for (int i = 0; i < N; i++)
		val_add_item(&items, testing_tree(&a, arena_printf(&a, "{'name':'a','member-%d':1}", i).p));
	struct val patch = val_object(&a, &(struct member){ atom_make(&a, STR("containers")), val_end_list(&items) }, 1);
	CHECK_INT(strategic_patch_apply(&a, testing_tree(&a, "{'containers':[{'name':'a'}]}"), patch, TYPE(core_v1, PodSpec), &v,
					&err),
		  -ERR_TOO_LARGE);
	CHECK_STR(err_str(&err), "the patch merges more than 1048576 members and items");
}
