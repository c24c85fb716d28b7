/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define META "'metadata':{'name':'x','namespace':'n','uid':'22222222-2222-4222-8222-222222222222','resourceVersion':'5'}"
#define WORKLOAD(version, kind, spec) "{'apiVersion':'" version "','kind':'" kind "'," META ",'spec':{" spec "}}"
#define RC(spec) WORKLOAD("v1", "ReplicationController", spec)
#define RS(spec) WORKLOAD("apps/v1", "ReplicaSet", spec)
#define DEPLOYMENT(spec) WORKLOAD("apps/v1", "Deployment", spec)
#define DS(spec) WORKLOAD("apps/v1", "DaemonSet", spec)
#define STS(spec) WORKLOAD("apps/v1", "StatefulSet", spec)
#define BUDGET(spec) WORKLOAD("policy/v1", "PodDisruptionBudget", spec)
#define WITH_STATUS(kind, spec, status) "{'apiVersion':'apps/v1','kind':'" kind "'," META ",'spec':{" spec "},'status':{" status "}}"
#define REVISION(members) "{'apiVersion':'apps/v1','kind':'ControllerRevision'," META members "}"
#define TEMPLATE "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}"
#define SELECTOR "'selector':{'matchLabels':{'a':'b'}}"

TEST(validate_workloads)
{
	static const struct create_row t[] = {
		{ RC(TEMPLATE),
		  "" },
		{ RC(""),
		  "spec.selector: Required value\n"
		  "spec.template: Required value" },
		{ RC("'replicas':-1,'minReadySeconds':-1,'selector':{'a':'b'}," "'template':{'metadata':{'labels':{'x':'y'}},"
		      "'spec':{'restartPolicy':'Never','activeDeadlineSeconds':1,'containers':[{'name':'c',"
		      "'image':'i'}]}}"),
		  "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.replicas: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.template.metadata.labels: Invalid value: {'x':'y'}: `selector` does not match template `labels`\n"
		  "spec.template.spec.restartPolicy: Unsupported value: 'Never': supported values: 'Always'\n"
		  "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is"
		  " not Supported" },
		{ RS(SELECTOR "," TEMPLATE),
		  "" },
		{ RS(""),
		  "spec.selector: Required value\n"
		  "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`\n"
		  "spec.template.spec.containers: Required value" },
		{ RS("'replicas':-1,'selector':{'matchExpressions':[{'key':'a','operator':'Foo'}]}," TEMPLATE),
		  "spec.replicas: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.selector.matchExpressions[0].operator: Invalid value: 'Foo': not a valid selector operator\n"
		  "spec.selector: Invalid value: {'matchExpressions':[{'key':'a','operator':'Foo'}]}: invalid label"
		  " selector" },
		{ DEPLOYMENT(SELECTOR "," TEMPLATE),
		  "" },
		{ DEPLOYMENT("'selector':{}," "'template':{'metadata':{'labels':{'x':'y'}},'spec':{'restartPolicy':'Never',"
		      "'activeDeadlineSeconds':1,'containers':[{'name':'c','image':'i'}]}}"),
		  "spec.selector: Invalid value: {}: empty selector is invalid for deployment\n"
		  "spec.template.spec.restartPolicy: Unsupported value: 'Never': supported values: 'Always'\n"
		  "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not"
		  " Supported" },
		{ DEPLOYMENT(SELECTOR ",'strategy':{'type':'Foo'},'minReadySeconds':600,'revisionHistoryLimit':-1," TEMPLATE),
		  "spec.strategy: Unsupported value: {'Type':'Foo','RollingUpdate':null}: supported values: 'Recreate',"
		  " 'RollingUpdate'\n"
		  "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds" },
		{ DEPLOYMENT(SELECTOR ",'strategy':{'rollingUpdate':{'maxSurge':0,'maxUnavailable':'0%'}}," TEMPLATE),
		  "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: '0%': may not be 0 when `maxSurge` is 0" },
		{ DEPLOYMENT(SELECTOR ",'strategy':{'rollingUpdate':{'maxSurge':'x','maxUnavailable':'101%'}}," TEMPLATE),
		  "spec.strategy.rollingUpdate.maxSurge: Invalid value: 'x': a valid percent string must be a numeric"
		  " string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')\n"
		  "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: '101%': must not be greater than 100%" },
		{ DEPLOYMENT(SELECTOR ",'strategy':{'type':'Recreate','rollingUpdate':{}}," TEMPLATE),
		  "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'" },
		{ DS(SELECTOR "," TEMPLATE),
		  "" },
		{ DS("'selector':{}," "'template':{'metadata':{'labels':{'x':'y'}},'spec':{'restartPolicy':'Never',"
		      "'activeDeadlineSeconds':1,'containers':[{'name':'c','image':'i'}]}}"),
		  "spec.selector: Invalid value: {}: empty selector is invalid for daemonset\n"
		  "spec.template.spec.restartPolicy: Unsupported value: 'Never': supported values: 'Always'\n"
		  "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not"
		  " Supported" },
		{ DS(SELECTOR ",'updateStrategy':{'type':'Foo'}," TEMPLATE),
		  "spec.updateStrategy: Unsupported value: {'Type':'Foo','RollingUpdate':null}: supported values:"
		  " 'RollingUpdate', 'OnDelete'" },
		{ DS(SELECTOR ",'updateStrategy':{'rollingUpdate':{'maxSurge':1}}," TEMPLATE),
		  "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is"
		  " non-zero" },
		{ DS(SELECTOR ",'updateStrategy':{'rollingUpdate':{'maxUnavailable':0}}," TEMPLATE),
		  "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0" },
		{ STS(SELECTOR "," TEMPLATE),
		  "" },
		{ STS("'selector':{}," "'template':{'metadata':{'labels':{'x':'y'}},'spec':{'restartPolicy':'Never',"
		      "'activeDeadlineSeconds':1,'containers':[{'name':'c','image':'i'}]}}"),
		  "spec.selector: Invalid value: {}: empty selector is invalid for statefulset\n"
		  "spec.template.spec.restartPolicy: Unsupported value: 'Never': supported values: 'Always'\n"
		  "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not"
		  " Supported" },
		{ STS(SELECTOR ",'replicas':-1,'ordinals':{'start':-1},'serviceName':'A','podManagementPolicy':'x',"
		      "'updateStrategy':{'type':'OnDelete','rollingUpdate':{'partition':1}},"
		      "'persistentVolumeClaimRetentionPolicy':{'whenScaled':'x'},"
		      "'volumeClaimTemplates':[{'metadata':{'name':'v'}}]," TEMPLATE),
		  "spec.podManagementPolicy: Invalid value: 'x': must be 'OrderedReady' or 'Parallel'\n"
		  "spec.updateStrategy.rollingUpdate: Invalid value: {'Partition':1,'MaxUnavailable':null}: only allowed"
		  " for updateStrategy 'RollingUpdate'\n"
		  "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: 'x': supported values:"
		  " 'Retain', 'Delete'\n"
		  "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required\n"
		  "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value\n"
		  "spec.replicas: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.serviceName: Invalid value: 'A': " LABEL_TEXT },
		{ STS(SELECTOR ",'volumeClaimTemplates':[{'metadata':{'name':'v'},'spec':{'accessModes':['ReadWriteOnce'],"
		      "'resources':{'requests':{'storage':'1'}}}}],'template':{'metadata':{'labels':{'a':'b'}},"
		      "'spec':{'containers':[{'name':'c','image':'i','volumeMounts':[{'name':'v','mountPath':'/v'}]}]}}"),
		  "" },
		{ REVISION(""),
		  "data: Required value: data is mandatory" },
		{ REVISION(",'revision':-1,'data':[]"),
		  "revision: Invalid value: -1: must be greater than or equal to 0\n"
		  "data: Required value: data must be a valid JSON object" },
		{ BUDGET("'minAvailable':1,'maxUnavailable':1"),
		  "spec: Invalid value: {'MinAvailable':1,'Selector':null,'MaxUnavailable':1,"
		  "'UnhealthyPodEvictionPolicy':nu"
		  "ll}: minAvailable and maxUnavailable cannot be both set" },
		{ BUDGET("'minAvailable':'101%','unhealthyPodEvictionPolicy':'x','selector':{'matchLabels':{'-':'b'}}"),
		  "spec.minAvailable: Invalid value: '101%': must not be greater than 100%\n"
		  "spec.selector.matchLabels: Invalid value: '-': " NAME_PART_TEXT "\n"
		  "spec.unhealthyPodEvictionPolicy: Unsupported value: 'x': supported values: 'AlwaysAllow',"
		  " 'IfHealthyBudget'" },
		{ BUDGET("'maxUnavailable':-1"),
		  "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_workload_updates)
{
	static const struct update_row t[] = {
		{ DEPLOYMENT("'selector':{'matchLabels':{'a':'c'}}," TEMPLATE),
		  DEPLOYMENT(SELECTOR "," TEMPLATE), "",
		  "spec.template.metadata.labels: Invalid value: {'a':'b'}: `selector` does not match template `labels`\n"
		  "spec.selector: Invalid value: {'matchLabels':{'a':'c'}}: field is immutable" },
		{ RS("'selector':{'matchLabels':{'a':'c'}}," TEMPLATE),
		  RS(SELECTOR "," TEMPLATE), "",
		  "spec.template.metadata.labels: Invalid value: {'a':'b'}: `selector` does not match template `labels`\n"
		  "spec.selector: Invalid value: {'matchLabels':{'a':'c'}}: field is immutable" },
		{ DS("'selector':{'matchLabels':{'a':'c'}}," TEMPLATE),
		  DS(SELECTOR "," TEMPLATE), "",
		  "spec.selector: Invalid value: {'matchLabels':{'a':'c'}}: field is immutable\n"
		  "spec.template.metadata.labels: Invalid value: {'a':'b'}: `selector` does not match template `labels`" },
		{ STS(SELECTOR ",'serviceName':'y','replicas':3," TEMPLATE),
		  STS(SELECTOR ",'serviceName':'x'," TEMPLATE), "",
		  "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
		  " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
		  " are forbidden" },
		{ REVISION(",'data':{'a':2}"),
		  REVISION(",'data':{'a':1}"), "",
		  "data: Invalid value: {'a':2}: field is immutable" },
		{ WITH_STATUS("Deployment", SELECTOR "," TEMPLATE, "'replicas':-1,'readyReplicas':2,'availableReplicas':3,"
		      "'collisionCount':0"),
		  WITH_STATUS("Deployment", SELECTOR "," TEMPLATE, "'collisionCount':1"), "status",
		  "status.replicas: Invalid value: -1: must be greater than or equal to 0\n"
		  "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas\n"
		  "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas\n"
		  "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas\n"
		  "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas\n"
		  "status.collisionCount: Invalid value: 0: cannot be decremented" },
		{ WITH_STATUS("StatefulSet", SELECTOR "," TEMPLATE,
			      "'replicas':1,'currentReplicas':2,'availableReplicas':1"),
		  WITH_STATUS("StatefulSet", SELECTOR "," TEMPLATE, "'collisionCount':1,'replicas':0"), "status",
		  "status.currentReplicas: Invalid value: 2: cannot be greater than status.replicas\n"
		  "status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas\n"
		  "status.collisionCount: Invalid value: 0: cannot be decremented" },
		{ WITH_STATUS("DaemonSet", SELECTOR "," TEMPLATE, "'numberReady':-1,'currentNumberScheduled':0,"
		      "'numberMisscheduled':0,'desiredNumberScheduled':0"),
		  WITH_STATUS("DaemonSet", SELECTOR "," TEMPLATE, "'numberReady':1,'currentNumberScheduled':0,"
		      "'numberMisscheduled':0,'desiredNumberScheduled':0"), "status",
		  "status.numberReady: Invalid value: -1: must be greater than or equal to 0" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}
