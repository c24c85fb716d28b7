/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define POD_OF(meta, spec, status) \
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n','uid':'22222222-2222-4222-8222-222222222222'," \
	"'resourceVersion':'5'" meta "},'spec':{" spec "},'status':{" status "}}"
#define POD(spec) \
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n','uid':'22222222-2222-4222-8222-222222222222'," \
	"'resourceVersion':'5'},'spec':{" spec "}}"
#define C(members) "'containers':[{'name':'c','image':'i'" members "}]"
#define ONE C("")

TEST(validate_pod_update)
{
	static const struct update_row t[] = {
		{ POD("'containers':[{'name':'c','image':'j'}],'activeDeadlineSeconds':5,"
		      "'tolerations':[{'operator':'Exists'}]"),
		  POD(ONE), "",
		  "" },
		{ POD("'containers':[{'name':'c','image':''}]"),
		  POD(C(",'imagePullPolicy':'IfNotPresent'")), "",
		  "spec.containers[0].image: Required value\n"
		  "spec.containers[0].image: Required value" },
		{ POD("'containers':[{'name':'c','image':'i'},{'name':'d','image':'i'}]"),
		  POD(ONE), "",
		  "spec.containers: Forbidden: pod updates may not add or remove containers" },
		{ POD("'restartPolicy':'Never'," C(",'env':[{'name':'A','value':'b'}]")),
		  POD(ONE), "",
		  "spec: Forbidden: pod updates may not change fields other than"
		  " `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations"
		  "` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1"
		  " if it was previously negative)\n"
		  "@@ -10,7 +10,13 @@\n"
		  "    'WorkingDir': '',\n"
		  "    'Ports': null,\n"
		  "    'EnvFrom': null,\n"
		  "-   'Env': null,\n"
		  "+   'Env': [\n"
		  "+    {\n"
		  "+     'Name': 'A',\n"
		  "+     'Value': 'b',\n"
		  "+     'ValueFrom': null\n"
		  "+    }\n"
		  "+   ],\n"
		  "    'Resources': {\n"
		  "     'Limits': null,\n"
		  "     'Requests': null,\n"
		  "@@ -35,7 +41,7 @@\n"
		  "   }\n"
		  "  ],\n"
		  "  'EphemeralContainers': null,\n"
		  "- 'RestartPolicy': 'Always',\n"
		  "+ 'RestartPolicy': 'Never',\n"
		  "  'TerminationGracePeriodSeconds': 30,\n"
		  "  'ActiveDeadlineSeconds': null,\n"
		  "  'DNSPolicy': 'ClusterFirst',\n" },
		{ POD("'hostPID':true,'nodeSelector':{'a':'b'}," ONE),
		  POD(ONE), "",
		  "spec: Forbidden: pod updates may not change fields other than"
		  " `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations"
		  "` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1"
		  " if it was previously negative)\n"
		  "@@ -39,13 +39,15 @@\n"
		  "  'TerminationGracePeriodSeconds': 30,\n"
		  "  'ActiveDeadlineSeconds': null,\n"
		  "  'DNSPolicy': 'ClusterFirst',\n"
		  "- 'NodeSelector': null,\n"
		  "+ 'NodeSelector': {\n"
		  "+  'a': 'b'\n"
		  "+ },\n"
		  "  'ServiceAccountName': '',\n"
		  "  'AutomountServiceAccountToken': null,\n"
		  "  'NodeName': '',\n"
		  "  'SecurityContext': {\n"
		  "   'HostNetwork': false,\n"
		  "-  'HostPID': false,\n"
		  "+  'HostPID': true,\n"
		  "   'HostIPC': false,\n"
		  "   'ShareProcessNamespace': null,\n"
		  "   'HostUsers': null,\n" },
		{ POD("'activeDeadlineSeconds':6," ONE),
		  POD("'activeDeadlineSeconds':5," ONE), "",
		  "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value" },
		{ POD(ONE),
		  POD("'activeDeadlineSeconds':5," ONE), "",
		  "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value" },
		{ POD("'tolerations':[{'key':'a','operator':'Exists','effect':'NoExecute','tolerationSeconds':9}]," ONE),
		  POD("'tolerations':[{'key':'a','operator':'Exists','effect':'NoExecute','tolerationSeconds':5}]," ONE),
		  "",
		  "" },
		{ POD(ONE),
		  POD("'tolerations':[{'operator':'Exists'}]," ONE), "",
		  "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds" },
		{ POD("'schedulingGates':[{'name':'b'}]," ONE),
		  POD("'schedulingGates':[{'name':'a'}]," ONE), "",
		  "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'" },
		{ POD("'nodeSelector':{'a':'b','c':'d'},'schedulingGates':[{'name':'a'}]," ONE),
		  POD("'nodeSelector':{'a':'b'},'schedulingGates':[{'name':'a'}]," ONE), "",
		  "" },
		{ POD("'nodeSelector':{'a':'c'},'schedulingGates':[{'name':'a'}]," ONE),
		  POD("'nodeSelector':{'a':'b'},'schedulingGates':[{'name':'a'}]," ONE), "",
		  "spec.nodeSelector: Invalid value: {'a':'c'}: only additions to spec.nodeSelector are allowed (no"
		  " mutations or deletions)" },
		{ POD("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'b',"
		      "'operator':'Exists'}]}]}}},'schedulingGates':[{'name':'a'}]," ONE),
		  POD("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'a',"
		      "'operator':'Exists'}]}]}}},'schedulingGates':[{'name':'a'}]," ONE), "",
		  "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: Invalid"
		  " value: {'MatchExpressions':[{'Key':'b','Operator':'Exists','Values':null}],'MatchFields':null}: only"
		  " additions are allowed (no mutations or deletions)" },
		{ POD("'hostNetwork':true,'hostUsers':false," C(",'resources':{'limits':{'hugepages-2Mi':'3Mi',"
								"'cpu':'1'}}")),
		  POD("'hostNetwork':true,'hostUsers':false," C(",'resources':{'limits':{'hugepages-2Mi':'3Mi',"
		      "'cpu':'1'}}")), "",
		  "" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}

TEST(validate_pod_subresources)
{
	static const struct update_row t[] = {
		{ POD("'ephemeralContainers':[{'name':'e','image':'j'}]," ONE),
		  POD("'ephemeralContainers':[{'name':'e','image':'i'},{'name':'f','image':'i'}]," ONE),
		  "ephemeralcontainers",
		  "spec.ephemeralContainers: Forbidden: existing ephemeral containers 'e' may not be changed\n"
		  "@@ -1,6 +1,6 @@\n"
		  " {\n"
		  "  'Name': 'e',\n"
		  "- 'Image': 'i',\n"
		  "+ 'Image': 'j',\n"
		  "  'Command': null,\n"
		  "  'Args': null,\n"
		  "  'WorkingDir': '',\n"
		  "\n"
		  "spec.ephemeralContainers: Forbidden: existing ephemeral containers 'f' may not be removed\n" },
		{ POD("'ephemeralContainers':[{'name':'e','image':'i'}],'hostPID':true," ONE),
		  POD(ONE), "ephemeralcontainers",
		  "" },
		{ POD(C(",'resources':{'requests':{'cpu':'2'}}")),
		  POD(C(",'resources':{'requests':{'cpu':'1'}}")), "resize",
		  "" },
		{ POD(C(",'resources':{'requests':{'memory':'2'}}")),
		  POD(C(",'resources':{'requests':{'cpu':'1'}}")), "resize",
		  "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed" },
		{ POD(C(",'resources':{'requests':{'cpu':'1'}}")),
		  POD(ONE), "resize",
		  "spec: Invalid value: '': Pod QOS Class may not change as a result of resizing" },
		{ POD(C(",'resources':{'requests':{'cpu':'1','ephemeral-storage':'2'}}")),
		  POD(C(",'resources':{'requests':{'cpu':'1','ephemeral-storage':'1'}}")), "resize",
		  "spec: Forbidden: only cpu and memory resources are mutable" },
		{ POD("'containers':[{'name':'d','image':'i'}]"),
		  POD(ONE), "resize",
		  "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize" },
		{ POD("'resources':{'limits':{'cpu':'2'}}," ONE),
		  POD("'resources':{'limits':{'cpu':'1','memory':'1'}}," ONE), "resize",
		  "spec: Invalid value: '': Pod QOS Class may not change as a result of resizing\n"
		  "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed\n"
		  "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed" },
		{ POD_OF("", ONE, "'conditions':[{'type':'-'}],'qosClass':'x','nominatedNodeName':'A',"
		      "'podIPs':[{'ip':'x'},{'ip':'1.2.3.4'}],'hostIP':'1.2.3.4','hostIPs':[{'ip':'1.2.3.5'},"
		      "{'ip':'::1'}]"),
		  POD_OF("", ONE, "'qosClass':'BestEffort'"), "status",
		  "status.conditions[0].Type: Invalid value: '-': " NAME_PART_TEXT "\n"
		  "status.nominatedNodeName: Invalid value: 'A': " SUBDOMAIN_TEXT "\n"
		  "status.qosClass: Invalid value: 'x': field is immutable\n"
		  "status.podIPs[0]: Invalid value: 'x': must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)\n"
		  "status.podIPs: Internal error: failed to check for dual stack with error:invalid IP[0]: x\n"
		  "status.podIPs: Invalid value: [{'IP':'x'},{'IP':'1.2.3.4'}]: may specify no more than one IP for each IP"
		  " family\n"
		  "status.hostIPs[0].ip: Invalid value: '1.2.3.5': must be equal to `hostIP`" },
		{ POD_OF("", "'restartPolicy':'Never'," ONE, "'containerStatuses':[{'name':'c','image':'',"
		      "'imageID':'','ready':false,'restartCount':0,'user':{'linux':{'uid':-1,'gid':0}}}]"),
		  POD_OF("", "'restartPolicy':'Never'," ONE, "'containerStatuses':[{'name':'c','image':'',"
		      "'imageID':'','ready':false,'restartCount':0,'state':{'terminated':{'exitCode':0}}}]"), "status",
		  "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state\n"
		  "status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 2147483647,"
		  " inclusive" },
		{ POD_OF(",'annotations':{'kubernetes.io/config.mirror':'x'}", ONE, ""),
		  POD(ONE), "status",
		  "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation\n"
		  "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: 'x': must set spec.nodeName if mirror"
		  " pod annotation is set" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}
