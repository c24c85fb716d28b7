#include "machinery/apply_testing.h"

TEST(apply_stories_of_kinds)
{
	static const struct story_row t[] = {
		{ "= apps/v1 Deployment status", "containers are merged by name", NULL, NULL },
		{ "apply m1",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a','image':'a:1'},{'name':'b',"
		  "'image':'b:1'}]}},'replicas':2,'selector':{'matchLabels':{'app':'x'}}}}",
		  "{'spec':{'replicas':2,'selector':{'matchLabels':{'app':'x'}},'strategy':{},'template':{"
		  "'metadata':{},'spec':{'containers':[{'image':'a:1','name':'a','resources':{}},{'image':'b:1',"
		  "'name':'b','resources':{}}]}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'a\\'}':{'.':{},'f:image':{},'f:name':{}},'k:{\\'name\\':\\'b\\'}':{'.':{},"
		  "'f:image':{},'f:name':{}}}}}}}" },
		{ "apply m2",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'c:1','ports':[{"
		  "'containerPort':80},{'containerPort':80,'protocol':'UDP'}],'env':[{'name':'A','value':'1'}]}]}}}}",
		  "{'spec':{'replicas':2,'selector':{'matchLabels':{'app':'x'}},'strategy':{},'template':{"
		  "'metadata':{},'spec':{'containers':[{'image':'a:1','name':'a','resources':{}},{'image':'b:1',"
		  "'name':'b','resources':{}},{'env':[{'name':'A','value':'1'}],'image':'c:1','name':'c','ports':[{"
		  "'containerPort':80},{'containerPort':80,'protocol':'UDP'}],'resources':{}}]}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'a\\'}':{'.':{},'f:image':{},'f:name':{}},'k:{\\'name\\':\\'b\\'}':{'.':{},"
		  "'f:image':{},'f:name':{}}}}}}} | m2 Apply @1 {'f:spec':{'f:template':{'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'c\\'}':{'.':{},'f:env':{'k:{\\'name\\':\\'A\\'}':{'.':{},'f:name':{},'f:value':{"
		  "}}},'f:image':{},'f:name':{},'f:ports':{'k:{\\'containerPort\\':80,\\'protocol\\':\\'TCP\\'}':{"
		  "'.':{},'f:containerPort':{}},'k:{\\'containerPort\\':80,\\'protocol\\':\\'UDP\\'}':{'.':{},"
		  "'f:containerPort':{},'f:protocol':{}}}}}}}}}" },
		{ "apply m2", "{'spec':{'template':{'spec':{'containers':[{'name':'a','image':'a:2'}]}}}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': "
		  ".spec.template.spec.containers[name='a'].image",
		  ".spec.template.spec.containers[name='a'].image: conflict with 'm1'" },
		{ "apply m1", "{'spec':{'template':{'spec':{'containers':[{'name':'b','image':'b:2'}]}}}}",
		  "{'spec':{'selector':null,'strategy':{},'template':{'metadata':{},'spec':{'containers':[{"
		  "'image':'b:2','name':'b','resources':{}},{'env':[{'name':'A','value':'1'}],'image':'c:1',"
		  "'name':'c','ports':[{'containerPort':80},{'containerPort':80,'protocol':'UDP'}],'resources':{"
		  "}}]}}},'status':{}}",
		  "m2 Apply @1 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},"
		  "'f:env':{'k:{\\'name\\':\\'A\\'}':{'.':{},'f:name':{},'f:value':{}}},'f:image':{},'f:name':{},"
		  "'f:ports':{'k:{\\'containerPort\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:containerPort':{}},"
		  "'k:{\\'containerPort\\':80,\\'protocol\\':\\'UDP\\'}':{'.':{},'f:containerPort':{},'f:protocol':{"
		  "}}}}}}}}} | m1 Apply @3 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'b\\'}':{'.':{},'f:image':{},'f:name':{}}}}}}}" },
		{ "apply m2",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'c','env':[{'name':'B','value':'2'}]}]}}}}",
		  "{'spec':{'selector':null,'strategy':{},'template':{'metadata':{},'spec':{'containers':[{"
		  "'image':'b:2','name':'b','resources':{}},{'env':[{'name':'B','value':'2'}],'name':'c',"
		  "'resources':{}}]}}},'status':{}}",
		  "m1 Apply @3 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'b\\'}':{'.':{},"
		  "'f:image':{},'f:name':{}}}}}}} | m2 Apply @4 {'f:spec':{'f:template':{'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'c\\'}':{'.':{},'f:env':{'k:{\\'name\\':\\'B\\'}':{'.':{},'f:name':{},'f:value':{"
		  "}}},'f:name':{}}}}}}}" },
		{ "= apps/v1 Deployment status", "where new items go", NULL, NULL },
		{ "apply m1",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a'},{'name':'c'},{'name':'d'}]}}}}",
		  "{'spec':{'selector':null,'strategy':{},'template':{'metadata':{},'spec':{'containers':[{"
		  "'name':'a','resources':{}},{'name':'c','resources':{}},{'name':'d','resources':{}}]}}},'status':{"
		  "}}",
		  "m1 Apply @0 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'d\\'}':{'.':{},"
		  "'f:name':{}}}}}}}" },
		{ "apply m2", "{'spec':{'template':{'spec':{'containers':[{'name':'b'},{'name':'c'}]}}}}",
		  "{'spec':{'selector':null,'strategy':{},'template':{'metadata':{},'spec':{'containers':[{"
		  "'name':'a','resources':{}},{'name':'b','resources':{}},{'name':'c','resources':{}},{'name':'d',"
		  "'resources':{}}]}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'d\\'}':{'.':{},"
		  "'f:name':{}}}}}}} | m2 Apply @1 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'b\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}}}}}}}" },
		{ "apply m3",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'d'},{'name':'c'},{'name':'a'}]}}}}",
		  "{'spec':{'selector':null,'strategy':{},'template':{'metadata':{},'spec':{'containers':[{"
		  "'name':'b','resources':{}},{'name':'d','resources':{}},{'name':'c','resources':{}},{'name':'a',"
		  "'resources':{}}]}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'d\\'}':{'.':{},"
		  "'f:name':{}}}}}}} | m2 Apply @1 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'b\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}}}}}}} | m3 "
		  "Apply @2 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'d\\'}':{'.':{},"
		  "'f:name':{}}}}}}}" },
		{ "apply m4",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'x'},{'name':'a'},{'name':'y'}]}}}}",
		  "{'spec':{'selector':null,'strategy':{},'template':{'metadata':{},'spec':{'containers':[{"
		  "'name':'b','resources':{}},{'name':'d','resources':{}},{'name':'c','resources':{}},{'name':'x',"
		  "'resources':{}},{'name':'a','resources':{}},{'name':'y','resources':{}}]}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'d\\'}':{'.':{},"
		  "'f:name':{}}}}}}} | m2 Apply @1 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'b\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}}}}}}} | m3 "
		  "Apply @2 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'d\\'}':{'.':{},"
		  "'f:name':{}}}}}}} | m4 Apply @3 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'a\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'x\\'}':{'.':{},'f:name':{}},'k:{"
		  "\\'name\\':\\'y\\'}':{'.':{},'f:name':{}}}}}}}" },
		{ "apply m5",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'z'},{'name':'y'},{'name':'x'},{'name':'d'},{"
		  "'name':'c'},{'name':'b'},{'name':'a'}]}}}}",
		  "{'spec':{'selector':null,'strategy':{},'template':{'metadata':{},'spec':{'containers':[{"
		  "'name':'z','resources':{}},{'name':'y','resources':{}},{'name':'x','resources':{}},{'name':'d',"
		  "'resources':{}},{'name':'c','resources':{}},{'name':'b','resources':{}},{'name':'a','resources':{"
		  "}}]}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'d\\'}':{'.':{},"
		  "'f:name':{}}}}}}} | m2 Apply @1 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'b\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}}}}}}} | m3 "
		  "Apply @2 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'d\\'}':{'.':{},"
		  "'f:name':{}}}}}}} | m4 Apply @3 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'a\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'x\\'}':{'.':{},'f:name':{}},'k:{"
		  "\\'name\\':\\'y\\'}':{'.':{},'f:name':{}}}}}}} | m5 Apply @4 {'f:spec':{'f:template':{'f:spec':{"
		  "'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'b\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'d\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'x\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'y\\'}':{'.':{},"
		  "'f:name':{}},'k:{\\'name\\':\\'z\\'}':{'.':{},'f:name':{}}}}}}}" },
		{ "= apps/v1 Deployment status", "keys that are missing or come twice", NULL, NULL },
		{ "apply m1", "{'spec':{'template':{'spec':{'containers':[{'name':'a'},{'name':'a'}]}}}}",
		  "! failed to create typed patch object (/n; apps/v1, Kind=Deployment): "
		  ".spec.template.spec.containers: duplicate entries for key [name='a']", "" },
		{ "apply m1", "{'spec':{'template':{'spec':{'containers':[{'image':'i'}]}}}}",
		  "{'spec':{'selector':null,'strategy':{},'template':{'metadata':{},'spec':{'containers':[{"
		  "'image':'i','name':'','resources':{}}]}}},'status':{}}",
		  "m1 Apply @1 {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'\\'}':{'.':{},"
		  "'f:image':{}}}}}}}" },
		{ "apply m1", "{'spec':{'template':{'spec':{'containers':[null]}}}}",
		  "! failed to create typed patch object (/n; apps/v1, Kind=Deployment): "
		  ".spec.template.spec.containers: element 0: associative list with keys may not have a null element",
		  "" },
		{ "apply m1", "{'spec':{'template':{'spec':{'containers':['a']}}}}",
		  "! failed to create typed patch object (/n; apps/v1, Kind=Deployment): "
		  ".spec.template.spec.containers: element 0: associative list with keys may not have non-map "
		  "elements", "" },
		{ "apply m1",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a','ports':[{'name':'p'},{"
		  "'containerPort':0}]}]}}}}",
		  "! failed to create typed patch object (/n; apps/v1, Kind=Deployment): "
		  ".spec.template.spec.containers[name='a'].ports: duplicate entries for key [containerPort=0,"
		  "protocol='TCP']", "" },
		{ "apply m1",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a','ports':[{'containerPort':1,"
		  "'protocol':'TCP'},{'containerPort':1}]}]}}}}",
		  "! failed to create typed patch object (/n; apps/v1, Kind=Deployment): "
		  ".spec.template.spec.containers[name='a'].ports: duplicate entries for key [containerPort=1,"
		  "protocol='TCP']", "" },
		{ "apply m1",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a','env':[{'name':'x'},{'name':'y'},{"
		  "'name':'x'},{'name':'x'}]}]}}}}",
		  "! failed to create typed patch object (/n; apps/v1, Kind=Deployment): errors:\n  "
		  ".spec.template.spec.containers[name='a'].env: duplicate entries for key [name='x']\n  "
		  ".spec.template.spec.containers[name='a'].env: duplicate entries for key [name='x']", "" },
		{ "apply m1", "{'spec':{'template':{'spec':{'containers':{'name':'a'}}}}}",
		  "! failed to create typed patch object (/n; apps/v1, Kind=Deployment): "
		  ".spec.template.spec.containers: expected list, got &{map[name:a]}", "" },
		{ "= apps/v1 Deployment status", "atomic parts are owned as a whole", NULL, NULL },
		{ "apply m1",
		  "{'spec':{'selector':{'matchLabels':{'a':'b'}},'template':{'spec':{'nodeSelector':{'x':'y'},"
		  "'tolerations':[{'key':'k'}]}}}}",
		  "{'spec':{'selector':{'matchLabels':{'a':'b'}},'strategy':{},'template':{'metadata':{},'spec':{"
		  "'containers':null,'nodeSelector':{'x':'y'},'tolerations':[{'key':'k'}]}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:selector':{},'f:template':{'f:spec':{'f:nodeSelector':{},"
		  "'f:tolerations':{}}}}}" },
		{ "apply m2", "{'spec':{'selector':{'matchLabels':{'c':'d'}}}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.selector",
		  ".spec.selector: conflict with 'm1'" },
		{ "apply m2 force", "{'spec':{'selector':{'matchLabels':{'c':'d'}}}}",
		  "{'spec':{'selector':{'matchLabels':{'c':'d'}},'strategy':{},'template':{'metadata':{},'spec':{"
		  "'containers':null,'nodeSelector':{'x':'y'},'tolerations':[{'key':'k'}]}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:template':{'f:spec':{'f:nodeSelector':{},'f:tolerations':{}}}}} | m2 "
		  "Apply @2 {'f:spec':{'f:selector':{}}}" },
		{ "apply m2",
		  "{'spec':{'selector':{'matchLabels':{'c':'d'}},'template':{'spec':{'nodeSelector':{'x':'y',"
		  "'z':'w'}}}}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.template.spec.nodeSelector",
		  ".spec.template.spec.nodeSelector: conflict with 'm1'" },
		{ "apply m1", "{'spec':{'template':{'spec':{'tolerations':[]}}}}",
		  "{'spec':{'selector':{'matchLabels':{'c':'d'}},'strategy':{},'template':{'metadata':{},'spec':{"
		  "'containers':null}}},'status':{}}",
		  "m2 Apply @2 {'f:spec':{'f:selector':{}}} | m1 Apply @4 {'f:spec':{'f:template':{'f:spec':{"
		  "'f:tolerations':{}}}}}" },
		{ "= apps/v1 Deployment status", "structs come and go", NULL, NULL },
		{ "apply m1",
		  "{'spec':{'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':1,"
		  "'maxUnavailable':'25%'}},'template':{'spec':{'securityContext':{'runAsUser':1,'sysctls':[{"
		  "'name':'a','value':'b'}]},'affinity':{}}}}}",
		  "{'spec':{'selector':null,'strategy':{'rollingUpdate':{'maxSurge':1,'maxUnavailable':'25%'},"
		  "'type':'RollingUpdate'},'template':{'metadata':{},'spec':{'affinity':{},'containers':null,"
		  "'securityContext':{'runAsUser':1,'sysctls':[{'name':'a','value':'b'}]}}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:strategy':{'f:rollingUpdate':{'f:maxSurge':{},'f:maxUnavailable':{}},"
		  "'f:type':{}},'f:template':{'f:spec':{'f:affinity':{},'f:securityContext':{'f:runAsUser':{},"
		  "'f:sysctls':{}}}}}}" },
		{ "apply m2", "{'spec':{'template':{'spec':{'securityContext':{'runAsGroup':2}}}}}",
		  "{'spec':{'selector':null,'strategy':{'rollingUpdate':{'maxSurge':1,'maxUnavailable':'25%'},"
		  "'type':'RollingUpdate'},'template':{'metadata':{},'spec':{'affinity':{},'containers':null,"
		  "'securityContext':{'runAsGroup':2,'runAsUser':1,'sysctls':[{'name':'a','value':'b'}]}}}},"
		  "'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:strategy':{'f:rollingUpdate':{'f:maxSurge':{},'f:maxUnavailable':{}},"
		  "'f:type':{}},'f:template':{'f:spec':{'f:affinity':{},'f:securityContext':{'f:runAsUser':{},"
		  "'f:sysctls':{}}}}}} | m2 Apply @1 {'f:spec':{'f:template':{'f:spec':{'f:securityContext':{"
		  "'f:runAsGroup':{}}}}}}" },
		{ "apply m1", "{'spec':{'strategy':{'type':'Recreate'}}}",
		  "{'spec':{'selector':null,'strategy':{'type':'Recreate'},'template':{'metadata':{},'spec':{"
		  "'containers':null,'securityContext':{'runAsGroup':2}}}},'status':{}}",
		  "m2 Apply @1 {'f:spec':{'f:template':{'f:spec':{'f:securityContext':{'f:runAsGroup':{}}}}}} | m1 "
		  "Apply @2 {'f:spec':{'f:strategy':{'f:type':{}}}}" },
		{ "apply m2", "{}",
		  "{'spec':{'selector':null,'strategy':{'type':'Recreate'},'template':{'metadata':{},'spec':{"
		  "'containers':null}}},'status':{}}", "m1 Apply @2 {'f:spec':{'f:strategy':{'f:type':{}}}}" },
		{ "apply m1", "{'spec':{'template':{'spec':{'securityContext':{},'affinity':null}}}}",
		  "{'spec':{'selector':null,'strategy':{},'template':{'metadata':{},'spec':{'containers':null,"
		  "'securityContext':{}}}},'status':{}}",
		  "m1 Apply @4 {'f:spec':{'f:template':{'f:spec':{'f:affinity':{},'f:securityContext':{}}}}}" },
		{ "= apps/v1 Deployment status", "status belongs to its subresource", NULL, NULL },
		{ "apply m1", "{'spec':{'replicas':1},'status':{'replicas':9}}",
		  "{'spec':{'replicas':1,'selector':null,'strategy':{},'template':{'metadata':{},'spec':{"
		  "'containers':null}}},'status':{'replicas':9}}", "m1 Apply @0 {'f:spec':{'f:replicas':{}}}" },
		{ "update ctl sub=status reset=spec",
		  "{'spec':{'replicas':1},'status':{'replicas':1,'conditions':[{'type':'Available',"
		  "'status':'True'}]}}",
		  "{'spec':{'replicas':1,'selector':null,'strategy':{},'template':{'metadata':{},'spec':{"
		  "'containers':null}}},'status':{'conditions':[{'lastTransitionTime':null,'lastUpdateTime':null,"
		  "'status':'True','type':'Available'}],'replicas':1}}",
		  "m1 Apply @0 {'f:spec':{'f:replicas':{}}} | ctl Update/status @1 {'f:status':{'f:conditions':{'.':{"
		  "},'k:{\\'type\\':\\'Available\\'}':{'.':{},'f:lastTransitionTime':{},'f:lastUpdateTime':{},"
		  "'f:status':{},'f:type':{}}},'f:replicas':{}}}" },
		{ "apply ctl2 sub=status reset=spec", "{'status':{'replicas':2}}",
		  "! Apply failed with 1 conflict: conflict with 'ctl' with subresource 'status' using apps/v1: "
		  ".status.replicas",
		  ".status.replicas: conflict with 'ctl' with subresource 'status' using apps/v1" },
		{ "apply ctl2 sub=status reset=spec force",
		  "{'spec':{'paused':true},'status':{'replicas':2,'conditions':[{'type':'Progressing',"
		  "'status':'False'}]}}",
		  "{'spec':{'paused':true,'replicas':1,'selector':null,'strategy':{},'template':{'metadata':{},"
		  "'spec':{'containers':null}}},'status':{'conditions':[{'lastTransitionTime':null,"
		  "'lastUpdateTime':null,'status':'True','type':'Available'},{'lastTransitionTime':null,"
		  "'lastUpdateTime':null,'status':'False','type':'Progressing'}],'replicas':2}}",
		  "m1 Apply @0 {'f:spec':{'f:replicas':{}}} | ctl2 Apply/status @3 {'f:status':{'f:conditions':{'k:{"
		  "\\'type\\':\\'Progressing\\'}':{'.':{},'f:status':{},'f:type':{}}},'f:replicas':{}}} | ctl "
		  "Update/status @1 {'f:status':{'f:conditions':{'.':{},'k:{\\'type\\':\\'Available\\'}':{'.':{},"
		  "'f:lastTransitionTime':{},'f:lastUpdateTime':{},'f:status':{},'f:type':{}}}}}" },
		{ "apply m1", "{'spec':{'replicas':2}}",
		  "{'spec':{'paused':true,'replicas':2,'selector':null,'strategy':{},'template':{'metadata':{},"
		  "'spec':{'containers':null}}},'status':{'conditions':[{'lastTransitionTime':null,"
		  "'lastUpdateTime':null,'status':'True','type':'Available'},{'lastTransitionTime':null,"
		  "'lastUpdateTime':null,'status':'False','type':'Progressing'}],'replicas':2}}",
		  "ctl2 Apply/status @3 {'f:status':{'f:conditions':{'k:{\\'type\\':\\'Progressing\\'}':{'.':{},"
		  "'f:status':{},'f:type':{}}},'f:replicas':{}}} | m1 Apply @4 {'f:spec':{'f:replicas':{}}} | ctl "
		  "Update/status @1 {'f:status':{'f:conditions':{'.':{},'k:{\\'type\\':\\'Available\\'}':{'.':{},"
		  "'f:lastTransitionTime':{},'f:lastUpdateTime':{},'f:status':{},'f:type':{}}}}}" },
		{ "= apps/v1 Deployment status", "a create by update owns what is always there", NULL, NULL },
		{ "update u",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a','image':'i','resources':{'limits':{"
		  "'cpu':'1'}}}]}},'replicas':1,'selector':{'matchLabels':{'app':'x'}}}}",
		  "{'spec':{'replicas':1,'selector':{'matchLabels':{'app':'x'}},'strategy':{},'template':{"
		  "'metadata':{},'spec':{'containers':[{'image':'i','name':'a','resources':{'limits':{"
		  "'cpu':'1'}}}]}}},'status':{}}",
		  "u Update @0 {'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'a\\'}':{'.':{},'f:image':{},'f:name':{},'f:resources':{'.':{},'f:limits':{'.':{"
		  "},'f:cpu':{}}}}}}}}}" },
		{ "update u",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a','image':'i','resources':{'limits':{"
		  "'cpu':'1'},'claims':[{'name':'c'}]}},{'name':'b'}]}},'replicas':1,'selector':{'matchLabels':{"
		  "'app':'x'}}}}",
		  "{'spec':{'replicas':1,'selector':{'matchLabels':{'app':'x'}},'strategy':{},'template':{"
		  "'metadata':{},'spec':{'containers':[{'image':'i','name':'a','resources':{'claims':[{'name':'c'}],"
		  "'limits':{'cpu':'1'}}},{'name':'b','resources':{}}]}}},'status':{}}",
		  "u Update @1 {'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'a\\'}':{'.':{},'f:image':{},'f:name':{},'f:resources':{'.':{},'f:claims':{'.':{"
		  "},'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{}}},'f:limits':{'.':{},'f:cpu':{}}}},'k:{"
		  "\\'name\\':\\'b\\'}':{'.':{},'f:name':{},'f:resources':{}}}}}}}" },
		{ "update v",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'b'}]}},'replicas':1,'selector':{"
		  "'matchLabels':{'app':'x'}}}}",
		  "{'spec':{'replicas':1,'selector':{'matchLabels':{'app':'x'}},'strategy':{},'template':{"
		  "'metadata':{},'spec':{'containers':[{'name':'b','resources':{}}]}}},'status':{}}",
		  "u Update @1 {'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'b\\'}':{'.':{},'f:name':{},'f:resources':{}}}}}}}" },
		{ "= apps/v1 Deployment status", "numbers and quantities", NULL, NULL },
		{ "apply m1",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a','resources':{'limits':{'cpu':'1000m',"
		  "'memory':1}}}]}},'replicas':2.0}}",
		  "{'spec':{'replicas':2,'selector':null,'strategy':{},'template':{'metadata':{},'spec':{"
		  "'containers':[{'name':'a','resources':{'limits':{'cpu':'1','memory':'1'}}}]}}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:replicas':{},'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'a\\'}':{'.':{},'f:name':{},'f:resources':{'f:limits':{'f:cpu':{},'f:memory':{"
		  "}}}}}}}}}" },
		{ "apply m2",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a','resources':{'limits':{'cpu':'1'}}}]}}}}",
		  "{'spec':{'replicas':2,'selector':null,'strategy':{},'template':{'metadata':{},'spec':{"
		  "'containers':[{'name':'a','resources':{'limits':{'cpu':'1','memory':'1'}}}]}}},'status':{}}",
		  "m2 Apply {'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:name':{},'f:resources':{'f:limits':{'f:cpu':{}}}}}}}}} | m1 Apply @0 {'f:spec':{'f:replicas':{"
		  "},'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{},"
		  "'f:resources':{'f:limits':{'f:cpu':{},'f:memory':{}}}}}}}}}" },
		{ "apply m1",
		  "{'spec':{'template':{'spec':{'containers':[{'name':'a','resources':{'limits':{'cpu':'x'}}}]}}}}",
		  "! Apply failed with 1 conflict: conflict with 'm2': "
		  ".spec.template.spec.containers[name='a'].resources.limits.cpu",
		  ".spec.template.spec.containers[name='a'].resources.limits.cpu: conflict with 'm2'" },
		{ "apply m1", "{'spec':{'template':{'spec':{'containers':[{'name':'a'}]}},'replicas':1.5}}",
		  "! failed to convert new object (/n; apps/v1, Kind=Deployment) to proper version: unable to "
		  "convert unstructured object to apps/v1, Kind=Deployment: cannot convert float64 to int32", "" },
		{ "apply m1", "{'spec':{'template':{'spec':{'containers':[{'name':'a'}]}},'replicas':'2'}}",
		  "! failed to create typed patch object (/n; apps/v1, Kind=Deployment): .spec.replicas: expected "
		  "numeric (int or float), got string", "" },
		{ "apply m1", "{'spec':{'strategy':{'rollingUpdate':{'maxSurge':{'a':1}}}}}",
		  "! failed to convert new object (/n; apps/v1, Kind=Deployment) to proper version: unable to "
		  "convert unstructured object to apps/v1, Kind=Deployment: json: cannot unmarshal object into Go "
		  "value of type int32", "" },
		{ "= v1 Service status", "ports by number and protocol", NULL, NULL },
		{ "apply m1", "{'spec':{'ports':[{'port':80,'name':'http'},{'port':53,'protocol':'UDP'}]}}",
		  "{'spec':{'ports':[{'name':'http','port':80,'targetPort':0},{'port':53,'protocol':'UDP',"
		  "'targetPort':0}]},'status':{'loadBalancer':{}}}",
		  "m1 Apply @0 {'f:spec':{'f:ports':{'k:{\\'port\\':53,\\'protocol\\':\\'UDP\\'}':{'.':{},'f:port':{"
		  "},'f:protocol':{}},'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:name':{},'f:port':{"
		  "}}}}}" },
		{ "apply m2",
		  "{'spec':{'ports':[{'port':80,'protocol':'UDP','name':'u'},{'port':443,'targetPort':'https'}]}}",
		  "{'spec':{'ports':[{'name':'http','port':80,'targetPort':0},{'port':53,'protocol':'UDP',"
		  "'targetPort':0},{'name':'u','port':80,'protocol':'UDP','targetPort':0},{'port':443,"
		  "'targetPort':'https'}]},'status':{'loadBalancer':{}}}",
		  "m1 Apply @0 {'f:spec':{'f:ports':{'k:{\\'port\\':53,\\'protocol\\':\\'UDP\\'}':{'.':{},'f:port':{"
		  "},'f:protocol':{}},'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:name':{},'f:port':{"
		  "}}}}} | m2 Apply @1 {'f:spec':{'f:ports':{'k:{\\'port\\':80,\\'protocol\\':\\'UDP\\'}':{'.':{},"
		  "'f:name':{},'f:port':{},'f:protocol':{}},'k:{\\'port\\':443,\\'protocol\\':\\'TCP\\'}':{'.':{},"
		  "'f:port':{},'f:targetPort':{}}}}}" },
		{ "apply m1", "{'spec':{'ports':[{'port':80,'name':'web'}]}}",
		  "{'spec':{'ports':[{'name':'web','port':80,'targetPort':0},{'name':'u','port':80,'protocol':'UDP',"
		  "'targetPort':0},{'port':443,'targetPort':'https'}]},'status':{'loadBalancer':{}}}",
		  "m2 Apply @1 {'f:spec':{'f:ports':{'k:{\\'port\\':80,\\'protocol\\':\\'UDP\\'}':{'.':{},'f:name':{"
		  "},'f:port':{},'f:protocol':{}},'k:{\\'port\\':443,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{},"
		  "'f:targetPort':{}}}}} | m1 Apply @2 {'f:spec':{'f:ports':{'k:{\\'port\\':80,"
		  "\\'protocol\\':\\'TCP\\'}':{'.':{},'f:name':{},'f:port':{}}}}}" },
		{ "apply m2", "{'spec':{'ports':[{'port':80,'name':'web2'}]}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.ports[port=80,protocol='TCP'].name",
		  ".spec.ports[port=80,protocol='TCP'].name: conflict with 'm1'" },
		{ "apply m2 force", "{'spec':{'ports':[{'port':80,'name':'web2','targetPort':8080}]}}",
		  "{'spec':{'ports':[{'name':'web2','port':80,'targetPort':8080}]},'status':{'loadBalancer':{}}}",
		  "m1 Apply @2 {'f:spec':{'f:ports':{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{"
		  "}}}}} | m2 Apply @4 {'f:spec':{'f:ports':{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},"
		  "'f:name':{},'f:port':{},'f:targetPort':{}}}}}" },
		{ "apply m1", "{'spec':{'ports':[{'port':80},{'port':80}]}}",
		  "! failed to create typed patch object (/n; /v1, Kind=Service): .spec.ports: duplicate entries for "
		  "key [port=80,protocol='TCP']", "" },
		{ "apply m1", "{'spec':{'ports':[{'port':'x'}]}}",
		  "! failed to create typed patch object (/n; /v1, Kind=Service): .spec.ports[port='x',"
		  "protocol='TCP'].port: expected numeric (int or float), got string", "" },
		{ "apply m1", "{'spec':{'ports':[],'selector':{'a':'b'}}}",
		  "{'spec':{'ports':[{'name':'web2','port':80,'targetPort':8080}],'selector':{'a':'b'}},'status':{"
		  "'loadBalancer':{}}}",
		  "m2 Apply @4 {'f:spec':{'f:ports':{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:name':{"
		  "},'f:port':{},'f:targetPort':{}}}}} | m1 Apply @7 {'f:spec':{'f:selector':{}}}" },
		{ "apply m2", "{'spec':{'ports':[],'selector':{'a':'c'},'externalIPs':['1.1.1.1']}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.selector",
		  ".spec.selector: conflict with 'm1'" },
		{ "update u",
		  "{'spec':{'ports':[{'port':1,'protocol':'TCP'},{'port':1,'protocol':'TCP'}],'selector':{'a':'b'}}}",
		  "{'spec':{'ports':[{'port':1,'protocol':'TCP','targetPort':0},{'port':1,'protocol':'TCP',"
		  "'targetPort':0}],'selector':{'a':'b'}},'status':{'loadBalancer':{}}}",
		  "m1 Apply @7 {'f:spec':{'f:selector':{}}} | u Update @9 {'f:spec':{'f:ports':{'k:{\\'port\\':1,"
		  "\\'protocol\\':\\'TCP\\'}':{}}}}" },
		{ "apply m1", "{'spec':{'ports':[{'port':1,'name':'n'}],'selector':{'a':'b'}}}",
		  "! Apply failed with 1 conflict: conflict with 'u' using v1: .spec.ports[port=1,protocol='TCP']",
		  ".spec.ports[port=1,protocol='TCP']: conflict with 'u' using v1" },
		{ "= v1 Node", "a node", NULL, NULL },
		{ "apply m1", "{'spec':{'taints':[{'key':'a','effect':'NoSchedule'}],'podCIDRs':['10.0.0.0/24']}}",
		  "{'spec':{'podCIDRs':['10.0.0.0/24'],'taints':[{'effect':'NoSchedule','key':'a'}]},'status':{"
		  "'daemonEndpoints':{'kubeletEndpoint':{'Port':0}},'nodeInfo':{'architecture':'','bootID':'',"
		  "'containerRuntimeVersion':'','kernelVersion':'','kubeProxyVersion':'','kubeletVersion':'',"
		  "'machineID':'','operatingSystem':'','osImage':'','systemUUID':''}}}",
		  "m1 Apply @0 {'f:spec':{'f:podCIDRs':{'v:\\'10.0.0.0/24\\'':{}},'f:taints':{}}}" },
		{ "apply m2", "{'spec':{'taints':[{'key':'b','effect':'NoExecute'}]}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.taints",
		  ".spec.taints: conflict with 'm1'" },
		{ "update kubelet sub=status",
		  "{'spec':{'taints':[{'key':'a','effect':'NoSchedule'}],'podCIDRs':['10.0.0.0/24']},'status':{"
		  "'capacity':{'cpu':'4','example.com/x':'1'},'conditions':[{'type':'Ready','status':'True',"
		  "'lastHeartbeatTime':'2026-01-01T00:00:00Z'}],'addresses':[{'type':'Hostname','address':'n'}]}}",
		  "{'spec':{'podCIDRs':['10.0.0.0/24'],'taints':[{'effect':'NoSchedule','key':'a'}]},'status':{"
		  "'addresses':[{'address':'n','type':'Hostname'}],'capacity':{'cpu':'4','example.com/x':'1'},"
		  "'conditions':[{'lastHeartbeatTime':'2026-01-01T00:00:00Z','lastTransitionTime':null,"
		  "'status':'True','type':'Ready'}],'daemonEndpoints':{'kubeletEndpoint':{'Port':0}},'nodeInfo':{"
		  "'architecture':'','bootID':'','containerRuntimeVersion':'','kernelVersion':'',"
		  "'kubeProxyVersion':'','kubeletVersion':'','machineID':'','operatingSystem':'','osImage':'',"
		  "'systemUUID':''}}}",
		  "m1 Apply @0 {'f:spec':{'f:podCIDRs':{'v:\\'10.0.0.0/24\\'':{}},'f:taints':{}}} | kubelet "
		  "Update/status @2 {'f:status':{'f:addresses':{'.':{},'k:{\\'type\\':\\'Hostname\\'}':{'.':{},"
		  "'f:address':{},'f:type':{}}},'f:capacity':{'.':{},'f:cpu':{},'f:example.com/x':{}},"
		  "'f:conditions':{'.':{},'k:{\\'type\\':\\'Ready\\'}':{'.':{},'f:lastHeartbeatTime':{},"
		  "'f:lastTransitionTime':{},'f:status':{},'f:type':{}}}}}" },
		{ "apply m2 sub=status",
		  "{'status':{'capacity':{'example.com/y':'2'},'addresses':[{'type':'Hostname','address':'other'}]}}",
		  "! Apply failed with 1 conflict: conflict with 'kubelet' with subresource 'status' using v1: "
		  ".status.addresses[type='Hostname'].address",
		  ".status.addresses[type='Hostname'].address: conflict with 'kubelet' with subresource 'status' "
		  "using v1" },
		{ "apply m3", "{'spec':{'podCIDRs':['10.0.1.0/24']}}",
		  "{'spec':{'podCIDRs':['10.0.0.0/24','10.0.1.0/24'],'taints':[{'effect':'NoSchedule','key':'a'}]},"
		  "'status':{'addresses':[{'address':'n','type':'Hostname'}],'capacity':{'cpu':'4',"
		  "'example.com/x':'1'},'conditions':[{'lastHeartbeatTime':'2026-01-01T00:00:00Z',"
		  "'lastTransitionTime':null,'status':'True','type':'Ready'}],'daemonEndpoints':{'kubeletEndpoint':{"
		  "'Port':0}},'nodeInfo':{'architecture':'','bootID':'','containerRuntimeVersion':'',"
		  "'kernelVersion':'','kubeProxyVersion':'','kubeletVersion':'','machineID':'','operatingSystem':'',"
		  "'osImage':'','systemUUID':''}}}",
		  "m1 Apply @0 {'f:spec':{'f:podCIDRs':{'v:\\'10.0.0.0/24\\'':{}},'f:taints':{}}} | m3 Apply @4 {"
		  "'f:spec':{'f:podCIDRs':{'v:\\'10.0.1.0/24\\'':{}}}} | kubelet Update/status @2 {'f:status':{"
		  "'f:addresses':{'.':{},'k:{\\'type\\':\\'Hostname\\'}':{'.':{},'f:address':{},'f:type':{}}},"
		  "'f:capacity':{'.':{},'f:cpu':{},'f:example.com/x':{}},'f:conditions':{'.':{},'k:{"
		  "\\'type\\':\\'Ready\\'}':{'.':{},'f:lastHeartbeatTime':{},'f:lastTransitionTime':{},'f:status':{},"
		  "'f:type':{}}}}}" },
		{ "= v1 Pod status", "a pod", NULL, NULL },
		{ "update u",
		  "{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':1},{"
		  "'containerPort':1}]}],'imagePullSecrets':[{}],'hostAliases':[{'ip':'1.1.1.1','hostnames':['a']}],"
		  "'volumes':[{'name':'v','emptyDir':{}}]}}",
		  "{'spec':{'containers':[{'image':'i','name':'c','ports':[{'containerPort':1},{'containerPort':1}],"
		  "'resources':{}}],'hostAliases':[{'hostnames':['a'],'ip':'1.1.1.1'}],'imagePullSecrets':[{}],"
		  "'volumes':[{'emptyDir':{},'name':'v'}]},'status':{}}",
		  "u Update @0 {'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:image':{},'f:name':{},"
		  "'f:ports':{'.':{},'k:{\\'containerPort\\':1,\\'protocol\\':\\'TCP\\'}':{}},'f:resources':{}}},"
		  "'f:hostAliases':{'.':{},'k:{\\'ip\\':\\'1.1.1.1\\'}':{'.':{},'f:hostnames':{},'f:ip':{}}},"
		  "'f:imagePullSecrets':{'.':{},'k:{\\'name\\':\\'\\'}':{}},'f:volumes':{'.':{},'k:{"
		  "\\'name\\':\\'v\\'}':{'.':{},'f:emptyDir':{},'f:name':{}}}}}" },
		{ "apply m1",
		  "{'spec':{'volumes':[{'name':'w','configMap':{'name':'c','items':[{'key':'k','path':'p'}]}}],"
		  "'topologySpreadConstraints':[{'topologyKey':'t','whenUnsatisfiable':'DoNotSchedule','maxSkew':1,"
		  "'labelSelector':{'matchLabels':{'a':'b'}}}],'readinessGates':[{'conditionType':'x'}],"
		  "'schedulingGates':[{'name':'g'}]}}",
		  "{'spec':{'containers':[{'image':'i','name':'c','ports':[{'containerPort':1},{'containerPort':1}],"
		  "'resources':{}}],'hostAliases':[{'hostnames':['a'],'ip':'1.1.1.1'}],'imagePullSecrets':[{}],"
		  "'readinessGates':[{'conditionType':'x'}],'schedulingGates':[{'name':'g'}],"
		  "'topologySpreadConstraints':[{'labelSelector':{'matchLabels':{'a':'b'}},'maxSkew':1,"
		  "'topologyKey':'t','whenUnsatisfiable':'DoNotSchedule'}],'volumes':[{'emptyDir':{},'name':'v'},{"
		  "'configMap':{'items':[{'key':'k','path':'p'}],'name':'c'},'name':'w'}]},'status':{}}",
		  "m1 Apply @1 {'f:spec':{'f:readinessGates':{},'f:schedulingGates':{'k:{\\'name\\':\\'g\\'}':{'.':{"
		  "},'f:name':{}}},'f:topologySpreadConstraints':{'k:{\\'topologyKey\\':\\'t\\',"
		  "\\'whenUnsatisfiable\\':\\'DoNotSchedule\\'}':{'.':{},'f:labelSelector':{},'f:maxSkew':{},"
		  "'f:topologyKey':{},'f:whenUnsatisfiable':{}}},'f:volumes':{'k:{\\'name\\':\\'w\\'}':{'.':{},"
		  "'f:configMap':{'f:items':{},'f:name':{}},'f:name':{}}}}} | u Update @0 {'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'c\\'}':{'.':{},'f:image':{},'f:name':{},'f:ports':{'.':{},'k:{"
		  "\\'containerPort\\':1,\\'protocol\\':\\'TCP\\'}':{}},'f:resources':{}}},'f:hostAliases':{'.':{},"
		  "'k:{\\'ip\\':\\'1.1.1.1\\'}':{'.':{},'f:hostnames':{},'f:ip':{}}},'f:imagePullSecrets':{'.':{},"
		  "'k:{\\'name\\':\\'\\'}':{}},'f:volumes':{'.':{},'k:{\\'name\\':\\'v\\'}':{'.':{},'f:emptyDir':{},"
		  "'f:name':{}}}}}" },
		{ "apply m2", "{'spec':{'imagePullSecrets':[{'name':''},{'name':'s'}]}}",
		  "! Apply failed with 1 conflict: conflict with 'u' using v1: .spec.imagePullSecrets[name='']",
		  ".spec.imagePullSecrets[name='']: conflict with 'u' using v1" },
		{ "apply m2", "{'spec':{'containers':[{'name':'c','ports':[{'containerPort':1,'name':'p'}]}]}}",
		  "! Apply failed with 1 conflict: conflict with 'u' using v1: "
		  ".spec.containers[name='c'].ports[containerPort=1,protocol='TCP']",
		  ".spec.containers[name='c'].ports[containerPort=1,protocol='TCP']: conflict with 'u' using v1" },
		{ "apply m2 force", "{'spec':{'containers':[{'name':'c','ports':[{'containerPort':1,'name':'p'}]}]}}",
		  "{'spec':{'containers':[{'image':'i','name':'c','ports':[{'containerPort':1,'name':'p'}],"
		  "'resources':{}}],'hostAliases':[{'hostnames':['a'],'ip':'1.1.1.1'}],'imagePullSecrets':[{}],"
		  "'readinessGates':[{'conditionType':'x'}],'schedulingGates':[{'name':'g'}],"
		  "'topologySpreadConstraints':[{'labelSelector':{'matchLabels':{'a':'b'}},'maxSkew':1,"
		  "'topologyKey':'t','whenUnsatisfiable':'DoNotSchedule'}],'volumes':[{'emptyDir':{},'name':'v'},{"
		  "'configMap':{'items':[{'key':'k','path':'p'}],'name':'c'},'name':'w'}]},'status':{}}",
		  "m1 Apply @1 {'f:spec':{'f:readinessGates':{},'f:schedulingGates':{'k:{\\'name\\':\\'g\\'}':{'.':{"
		  "},'f:name':{}}},'f:topologySpreadConstraints':{'k:{\\'topologyKey\\':\\'t\\',"
		  "\\'whenUnsatisfiable\\':\\'DoNotSchedule\\'}':{'.':{},'f:labelSelector':{},'f:maxSkew':{},"
		  "'f:topologyKey':{},'f:whenUnsatisfiable':{}}},'f:volumes':{'k:{\\'name\\':\\'w\\'}':{'.':{},"
		  "'f:configMap':{'f:items':{},'f:name':{}},'f:name':{}}}}} | m2 Apply @4 {'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{},'f:ports':{'k:{\\'containerPort\\':1,"
		  "\\'protocol\\':\\'TCP\\'}':{'.':{},'f:containerPort':{},'f:name':{}}}}}}} | u Update @0 {"
		  "'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:image':{},'f:name':{},'f:ports':{},"
		  "'f:resources':{}}},'f:hostAliases':{'.':{},'k:{\\'ip\\':\\'1.1.1.1\\'}':{'.':{},'f:hostnames':{},"
		  "'f:ip':{}}},'f:imagePullSecrets':{'.':{},'k:{\\'name\\':\\'\\'}':{}},'f:volumes':{'.':{},'k:{"
		  "\\'name\\':\\'v\\'}':{'.':{},'f:emptyDir':{},'f:name':{}}}}}" },
		{ "update kubelet sub=status reset=spec",
		  "{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':1,'name':'p'}]}],"
		  "'imagePullSecrets':[{}],'hostAliases':[{'ip':'1.1.1.1','hostnames':['a']}],'volumes':[{'name':'v',"
		  "'emptyDir':{}}]},'status':{'phase':'Running','podIPs':[{'ip':'10.0.0.1'}],'conditions':[{"
		  "'type':'Ready','status':'True'}],'containerStatuses':[{'name':'c','ready':true,'restartCount':0,"
		  "'image':'i','imageID':''}]}}",
		  "{'spec':{'containers':[{'image':'i','name':'c','ports':[{'containerPort':1,'name':'p'}],"
		  "'resources':{}}],'hostAliases':[{'hostnames':['a'],'ip':'1.1.1.1'}],'imagePullSecrets':[{}],"
		  "'volumes':[{'emptyDir':{},'name':'v'}]},'status':{'conditions':[{'lastProbeTime':null,"
		  "'lastTransitionTime':null,'status':'True','type':'Ready'}],'containerStatuses':[{'image':'i',"
		  "'imageID':'','lastState':{},'name':'c','ready':true,'restartCount':0,'state':{}}],"
		  "'phase':'Running','podIPs':[{'ip':'10.0.0.1'}]}}",
		  "m1 Apply @1 {'f:spec':{'f:readinessGates':{},'f:schedulingGates':{'k:{\\'name\\':\\'g\\'}':{'.':{"
		  "},'f:name':{}}},'f:topologySpreadConstraints':{'k:{\\'topologyKey\\':\\'t\\',"
		  "\\'whenUnsatisfiable\\':\\'DoNotSchedule\\'}':{'.':{},'f:labelSelector':{},'f:maxSkew':{},"
		  "'f:topologyKey':{},'f:whenUnsatisfiable':{}}},'f:volumes':{'k:{\\'name\\':\\'w\\'}':{'.':{},"
		  "'f:configMap':{'f:items':{},'f:name':{}},'f:name':{}}}}} | m2 Apply @4 {'f:spec':{'f:containers':{"
		  "'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{},'f:ports':{'k:{\\'containerPort\\':1,"
		  "\\'protocol\\':\\'TCP\\'}':{'.':{},'f:containerPort':{},'f:name':{}}}}}}} | u Update @0 {"
		  "'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:image':{},'f:name':{},'f:ports':{},"
		  "'f:resources':{}}},'f:hostAliases':{'.':{},'k:{\\'ip\\':\\'1.1.1.1\\'}':{'.':{},'f:hostnames':{},"
		  "'f:ip':{}}},'f:imagePullSecrets':{'.':{},'k:{\\'name\\':\\'\\'}':{}},'f:volumes':{'.':{},'k:{"
		  "\\'name\\':\\'v\\'}':{'.':{},'f:emptyDir':{},'f:name':{}}}}} | kubelet Update/status @5 {"
		  "'f:status':{'f:conditions':{'.':{},'k:{\\'type\\':\\'Ready\\'}':{'.':{},'f:lastProbeTime':{},"
		  "'f:lastTransitionTime':{},'f:status':{},'f:type':{}}},'f:containerStatuses':{},'f:phase':{},"
		  "'f:podIPs':{'.':{},'k:{\\'ip\\':\\'10.0.0.1\\'}':{'.':{},'f:ip':{}}}}}" },
		{ "= v1 PersistentVolume", "a granular field of an atomic type", NULL, NULL },
		{ "apply m1", "{'spec':{'claimRef':{'name':'a'},'capacity':{'storage':'1Gi'}}}",
		  "{'spec':{'capacity':{'storage':'1Gi'},'claimRef':{'name':'a'}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:capacity':{'f:storage':{}},'f:claimRef':{'f:name':{}}}}" },
		{ "apply m2", "{'spec':{'claimRef':{'namespace':'b'},'capacity':{'storage':'1024Mi'}}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.capacity.storage",
		  ".spec.capacity.storage: conflict with 'm1'" },
		{ "apply m2", "{'spec':{'claimRef':{'namespace':'b'}}}",
		  "{'spec':{'capacity':{'storage':'1Gi'},'claimRef':{'name':'a','namespace':'b'}},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:capacity':{'f:storage':{}},'f:claimRef':{'f:name':{}}}} | m2 Apply @2 {"
		  "'f:spec':{'f:claimRef':{'f:namespace':{}}}}" },
		{ "apply m1", "{'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{}]}}}}",
		  "{'spec':{'claimRef':{'namespace':'b'},'nodeAffinity':{'required':{'nodeSelectorTerms':[{}]}}},"
		  "'status':{}}",
		  "m2 Apply @2 {'f:spec':{'f:claimRef':{'f:namespace':{}}}} | m1 Apply @3 {'f:spec':{"
		  "'f:nodeAffinity':{'f:required':{}}}}" },
		{ "= autoscaling/v1 HorizontalPodAutoscaler", "a reference that is atomic", NULL, NULL },
		{ "apply m1", "{'spec':{'scaleTargetRef':{'kind':'Deployment','name':'d'},'maxReplicas':3}}",
		  "{'spec':{'maxReplicas':3,'scaleTargetRef':{'kind':'Deployment','name':'d'}},'status':{"
		  "'currentReplicas':0,'desiredReplicas':0}}",
		  "m1 Apply @0 {'f:spec':{'f:maxReplicas':{},'f:scaleTargetRef':{}}}" },
		{ "apply m2", "{'spec':{'scaleTargetRef':{'kind':'Deployment','name':'d','apiVersion':'apps/v1'}}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.scaleTargetRef",
		  ".spec.scaleTargetRef: conflict with 'm1'" },
		{ "= v1 Pod", "only resources can be owned through resize", NULL, NULL },
		{ "apply m1", "{'spec':{'containers':[{'name':'c','image':'i'}]}}",
		  "{'spec':{'containers':[{'image':'i','name':'c','resources':{}}]},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:image':{},'f:name':{"
		  "}}}}}" },
		{ "apply m2 sub=resize only=spec.containers.*.resources",
		  "{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'cpu':'1'}}}],"
		  "'priority':1}}",
		  "{'spec':{'containers':[{'image':'i','name':'c','resources':{'limits':{'cpu':'1'}}}],'priority':1},"
		  "'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:image':{},'f:name':{"
		  "}}}}} | m2 Apply/resize @1 {'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},"
		  "'f:resources':{'f:limits':{'f:cpu':{}}}}}}}" },
		{ "update m3 sub=resize only=spec.containers.*.resources",
		  "{'spec':{'containers':[{'name':'c','image':'j','resources':{'limits':{'cpu':'2'}}}]}}",
		  "{'spec':{'containers':[{'image':'j','name':'c','resources':{'limits':{'cpu':'2'}}}]},'status':{}}",
		  "m1 Apply @0 {'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:image':{},'f:name':{"
		  "}}}}} | m2 Apply/resize @1 {'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{}}}} | m3 "
		  "Update/resize @2 {'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'f:resources':{'f:limits':{"
		  "'f:cpu':{}}}}}}}" },
		{ "= apiextensions.k8s.io/v1 CustomResourceDefinition status",
		  "custom resource definitions hold typeless parts", NULL, NULL },
		{ "apply m1",
		  "{'spec':{'group':'g','names':{'plural':'ws','kind':'W'},'scope':'Namespaced','versions':[{"
		  "'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object',"
		  "'properties':{'spec':{'type':'object','default':{'a':1},'additionalProperties':{"
		  "'type':'string'}}}}}}]}}",
		  "{'spec':{'group':'g','names':{'kind':'W','plural':'ws'},'scope':'Namespaced','versions':[{"
		  "'name':'v1','schema':{'openAPIV3Schema':{'properties':{'spec':{'additionalProperties':{"
		  "'type':'string'},'default':{'a':1},'type':'object'}},'type':'object'}},'served':true,"
		  "'storage':true}]},'status':{'acceptedNames':{'kind':'','plural':''},'conditions':null,"
		  "'storedVersions':null}}",
		  "m1 Apply @0 {'f:spec':{'f:group':{},'f:names':{'f:kind':{},'f:plural':{}},'f:scope':{},"
		  "'f:versions':{}}}" },
		{ "apply m2", "{'spec':{'names':{'shortNames':['w'],'singular':'w'},'versions':[{'name':'v2'}]}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.versions",
		  ".spec.versions: conflict with 'm1'" },
		{ "apply m2", "{'spec':{'conversion':{'strategy':'None'},'preserveUnknownFields':false}}",
		  "{'spec':{'conversion':{'strategy':'None'},'group':'g','names':{'kind':'W','plural':'ws'},"
		  "'scope':'Namespaced','versions':[{'name':'v1','schema':{'openAPIV3Schema':{'properties':{'spec':{"
		  "'additionalProperties':{'type':'string'},'default':{'a':1},'type':'object'}},'type':'object'}},"
		  "'served':true,'storage':true}]},'status':{'acceptedNames':{'kind':'','plural':''},"
		  "'conditions':null,'storedVersions':null}}",
		  "m1 Apply @0 {'f:spec':{'f:group':{},'f:names':{'f:kind':{},'f:plural':{}},'f:scope':{},"
		  "'f:versions':{}}} | m2 Apply @2 {'f:spec':{'f:conversion':{'f:strategy':{}},"
		  "'f:preserveUnknownFields':{}}}" },
	};
	stories_run(t, ARRAY_LEN(t), NULL);
}
