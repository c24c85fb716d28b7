/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define META "'metadata':{'name':'x','namespace':'n','uid':'22222222-2222-4222-8222-222222222222','resourceVersion':'5'}"
#define JOB_OF(spec, status) "{'apiVersion':'batch/v1','kind':'Job'," META ",'spec':{" spec "},'status':{" status "}}"
#define JOB(spec) JOB_OF(spec, "")
#define CRON(spec) "{'apiVersion':'batch/v1','kind':'CronJob'," META ",'spec':{" spec "}}"
#define TEMPLATE "'template':{'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}"
#define JOB_SPEC "'jobTemplate':{'spec':{" TEMPLATE "}}"
/* A job that chooses its pods itself, so that no uid is in its template. */
#define OWN \
	"'manualSelector':true,'selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}}," \
	"'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}"

TEST(validate_job)
{
	static const struct create_row t[] = {
		{ JOB(TEMPLATE),
		  "" },
		{ JOB(""),
		  "spec.template.spec.containers: Required value\n"
		  "spec.template.spec.restartPolicy: Required value: valid values: 'OnFailure', 'Never'" },
		{ JOB("'parallelism':-1,'completions':-1,'backoffLimit':-1,'activeDeadlineSeconds':-1,"
		      "'ttlSecondsAfterFinished':-1,'maxFailedIndexes':1,'managedBy':'x'," TEMPLATE),
		  "spec.parallelism: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.completions: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified\n"
		  "spec.managedBy: Invalid value: 'x': must be a domain-prefixed path (such as 'acme.io/foo')\n"
		  "spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode" },
		{ JOB("'completionMode':'Foo','backoffLimitPerIndex':1," TEMPLATE),
		  "spec.completionMode: Unsupported value: 'Foo': supported values: 'NonIndexed', 'Indexed'" },
		{ JOB("'completionMode':'Indexed','parallelism':100001," TEMPLATE),
		  "spec.completions: Required value: when completion mode is Indexed\n"
		  "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is"
		  " Indexed" },
		{ JOB("'completionMode':'Indexed','completions':100001,'backoffLimitPerIndex':1,'parallelism':10001," TEMPLATE),
		  "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000\n"
		  "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are above"
		  " 100000 and used with backoff limit per index" },
		{ JOB("'podFailurePolicy':{'rules':[{},{'action':'FailIndex','onExitCodes':{'operator':'In',"
		      "'values':[2,0,2],'containerName':'x'}},{'action':'Foo','onExitCodes':{'values':[]},"
		      "'onPodConditions':[{'type':'-','status':'x'}]}]},'podReplacementPolicy':'TerminatingOrFailed',"
		      "" TEMPLATE),
		  "spec.podFailurePolicy.rules[0].action: Required value: valid values: ['Count' 'FailIndex' 'FailJob'"
		  " 'Ignore']\n"
		  "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is"
		  " required\n"
		  "spec.podFailurePolicy.rules[1].action: Invalid value: 'FailIndex': requires the backoffLimitPerIndex to"
		  " be set\n"
		  "spec.podFailurePolicy.rules[1].onExitCodes.containerName: Invalid value: 'x': must be one of the"
		  " container or initContainer names in the pod template\n"
		  "spec.podFailurePolicy.rules[1].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In"
		  " operator\n"
		  "spec.podFailurePolicy.rules[1].onExitCodes.values[2]: Duplicate value: 2\n"
		  "spec.podFailurePolicy.rules[1].onExitCodes.values: Invalid value: [2,0,2]: must be ordered\n"
		  "spec.podFailurePolicy.rules[2].action: Unsupported value: 'Foo': supported values: 'Count', 'FailIndex',"
		  " 'FailJob', 'Ignore'\n"
		  "spec.podFailurePolicy.rules[2].onExitCodes.operator: Required value: valid values: ['In' 'NotIn']\n"
		  "spec.podFailurePolicy.rules[2].onExitCodes.values: Invalid value: []: at least one value is required\n"
		  "spec.podFailurePolicy.rules[2].onPodConditions[0].type: Invalid value: '-': " NAME_PART_TEXT "\n"
		  "spec.podFailurePolicy.rules[2].onPodConditions[0].status: Unsupported value: 'x': supported values:"
		  " 'False', 'True', 'Unknown'\n"
		  "spec.podFailurePolicy.rules[2]: Invalid value: specifying both OnExitCodes and OnPodConditions is not"
		  " supported\n"
		  "spec.podReplacementPolicy: Unsupported value: 'TerminatingOrFailed': supported values: 'Failed'" },
		{ JOB("'successPolicy':{'rules':[]}," TEMPLATE),
		  "spec.successPolicy: Invalid value: {'Rules':[]}: requires indexed completion mode" },
		{ JOB("'completionMode':'Indexed','completions':5,'successPolicy':{'rules':[{},{'succeededCount':6,"
		      "'succeededIndexes':'0-2,4'},{'succeededIndexes':'3-1'},{'succeededIndexes':'7'},"
		      "{'succeededIndexes':'a'},{'succeededIndexes':'2,1'}]}," TEMPLATE),
		  "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be"
		  " specified\n"
		  "spec.successPolicy.rules[1].succeededCount: Invalid value: 6: must be less than or equal to 5 (the"
		  " number of specified completions)\n"
		  "spec.successPolicy.rules[1].succeededCount: Invalid value: 6: must be less than or equal to 4 (the"
		  " number of indexes in the specified succeededIndexes field)\n"
		  "spec.successPolicy.rules[2].succeededIndexes: Invalid value: '3-1': error parsing succeededIndexes:"
		  " non-increasing order, previous: 3, current: 1\n"
		  "spec.successPolicy.rules[3].succeededIndexes: Invalid value: '7': error parsing succeededIndexes: too"
		  " large index: '7'\n"
		  "spec.successPolicy.rules[4].succeededIndexes: Invalid value: 'a': error parsing succeededIndexes: cannot"
		  " convert string to integer for index: 'a'\n"
		  "spec.successPolicy.rules[5].succeededIndexes: Invalid value: '2,1': error parsing succeededIndexes:"
		  " non-increasing order, previous: 2, current: 1" },
		{ JOB("'template':{'spec':{'restartPolicy':'Always','containers':[{'name':'c','image':'i'}]}}"),
		  "spec.template.spec.restartPolicy: Required value: valid values: 'OnFailure', 'Never'" },
		{ JOB("'podFailurePolicy':{'rules':[]},'template':{'spec':{'restartPolicy':'OnFailure',"
		      "'containers':[{'name':'c','image':'i'}]}}"),
		  "spec.template.spec.restartPolicy: Invalid value: 'OnFailure': only 'Never' is supported when"
		  " podFailurePolicy is specified" },
		{ JOB("'selector':{'matchLabels':{'a':'b'}}," TEMPLATE),
		  "spec.selector: Invalid value: {'matchLabels':{'a':'b',"
		  "'batch.kubernetes.io/controller-uid':'22222222-2222"
		  "-4222-8222-222222222222'}}: `selector` not auto-generated\n"
		  "spec.template.metadata.labels: Invalid value:"
		  " {'batch.kubernetes.io/controller-uid':'22222222-2222-4222-8222-222222222222',"
		  "'batch.kubernetes.io/job-na"
		  "me':'x','controller-uid':'22222222-2222-4222-8222-222222222222','job-name':'x'}: `selector` does not"
		  " match template `labels`" },
		{ JOB("'manualSelector':true," TEMPLATE),
		  "spec.selector: Required value\n"
		  "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`" },
		{ JOB("'template':{'metadata':{'labels':{'controller-uid':'x'}},'spec':{'restartPolicy':'Never',"
		      "'containers':[{'name':'c','image':'i'}]}}"),
		  "spec.template.metadata.labels[controller-uid]: Invalid value:"
		  " {'batch.kubernetes.io/controller-uid':'22222222-2222-4222-8222-222222222222',"
		  "'batch.kubernetes.io/job-na"
		  "me':'x','controller-uid':'x','job-name':'x'}: must be '22222222-2222-4222-8222-222222222222'" },
		{ JOB(OWN),
		  "" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_cron_job)
{
	static const struct create_row t[] = {
		{ CRON("'schedule':'* * * * *'," JOB_SPEC),
		  "" },
		{ CRON(""),
		  "spec.schedule: Required value\n"
		  "spec.jobTemplate.spec.template.spec.containers: Required value\n"
		  "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: 'OnFailure', 'Never'" },
		{ CRON("'schedule':'60 * * * *'," JOB_SPEC),
		  "spec.schedule: Invalid value: '60 * * * *': end of range (60) above maximum (59): 60" },
		{ CRON("'schedule':'* * * *'," JOB_SPEC),
		  "spec.schedule: Invalid value: '* * * *': expected exactly 5 fields, found 4: [* * * *]" },
		{ CRON("'schedule':'TZ=UTC * * * * *','timeZone':'Local'," JOB_SPEC),
		  "spec.schedule: Invalid value: 'TZ=UTC * * * * *': cannot use TZ or CRON_TZ in schedule, use timeZone"
		  " field instead\n"
		  "spec.timeZone: Invalid value: 'Local': timeZone must be an explicit time zone as defined in"
		  " https://www.iana.org/time-zones" },
		{ CRON("'schedule':'@daily','timeZone':'a b','concurrencyPolicy':'x','startingDeadlineSeconds':-1,"
		      "'successfulJobsHistoryLimit':-1,'failedJobsHistoryLimit':-1," JOB_SPEC),
		  "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.timeZone: Invalid value: 'a b': unknown time zone a b\n"
		  "spec.concurrencyPolicy: Unsupported value: 'x': supported values: 'Allow', 'Forbid', 'Replace'\n"
		  "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0\n"
		  "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0" },
		{ CRON("'schedule':'@daily','jobTemplate':{'spec':{'manualSelector':true,'selector':{}," TEMPLATE "}}"),
		  "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated\n"
		  "spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: 'nil', 'false'" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_job_update)
{
	static const struct update_row t[] = {
		{ JOB("'parallelism':3,'suspend':true," OWN),
		  JOB(OWN), "",
		  "spec.completions: Invalid value: null: field is immutable" },
		{ JOB("'completions':3,'completionMode':'Indexed','backoffLimitPerIndex':1," OWN),
		  JOB(OWN), "",
		  "spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism\n"
		  "spec.completionMode: Invalid value: 'Indexed': field is immutable\n"
		  "spec.backoffLimitPerIndex: Invalid value: 1: field is immutable" },
		{ JOB("'completions':3,'parallelism':3,'completionMode':'Indexed'," OWN),
		  JOB("'completions':2,'parallelism':2,'completionMode':'Indexed'," OWN), "",
		  "" },
		{ JOB("'completions':3,'parallelism':2,'completionMode':'Indexed'," OWN),
		  JOB("'completions':2,'parallelism':2,'completionMode':'Indexed'," OWN), "",
		  "spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism" },
		{ JOB("'manualSelector':true,'selector':{'matchLabels':{'a':'b'}},'suspend':true,"
		      "'template':{'metadata':{'labels':{'a':'b',"
		      "'c':'d'}},'spec':{'nodeSelector':{'x':'y'},'restartPolicy':'Never','containers':[{'name':'c',"
		      "'image':'i','resources':{'limits':{'cpu':'1'}}}]}}"),
		  JOB("'suspend':true," OWN), "",
		  "" },
		{ JOB_OF(OWN, "'active':-1,'ready':2,'failed':1,'completedIndexes':'1','conditions':[{'type':'Complete',"
		      "'status':'True'},{'type':'Failed','status':'True'}],'completionTime':'2026-01-01T00:00:00Z',"
		      "'startTime':'2026-01-02T00:00:00Z'"),
		  JOB_OF(OWN, "'failed':2,'succeeded':1,'startTime':'2026-01-01T00:00:00Z',"
			      "'conditions':[{'type':'FailureTarget',"
		      "'status':'True'}]"), "status",
		  "status.active: Invalid value: -1: must be greater than or equal to 0\n"
		  "status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions\n"
		  "status.completionTime: Invalid value: '2026-01-01T00:00:00Z': must be equal to or after `startTime`\n"
		  "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true"
		  " condition\n"
		  "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true"
		  " condition\n"
		  "status.completedIndexes: Invalid value: '1': error parsing completedIndexes: too large index: '1'\n"
		  "status.completedIndexes: Invalid value: '1': cannot set non-empty completedIndexes when non-indexed"
		  " completion mode\n"
		  "status.ready: Invalid value: 2: cannot set more ready pods than active\n"
		  "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition\n"
		  "status.failed: Invalid value: 1: cannot decrease the failed counter\n"
		  "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter\n"
		  "status.startTime: Invalid value: '2026-01-02T00:00:00Z': field is immutable for unsuspended job"
		  " once set" },
		{ JOB_OF("'completions':5,'completionMode':'Indexed','backoffLimitPerIndex':1," OWN,
			 "'completedIndexes':'0-2',"
		      "'failedIndexes':'2,3','uncountedTerminatedPods':{'succeeded':['a',''],'failed':['a']},"
		      "'active':1,'conditions':[{'type':'SuccessCriteriaMet','status':'True'},{'type':'Complete',"
		      "'status':'True'}]"),
		  JOB_OF("'completions':5,'completionMode':'Indexed','backoffLimitPerIndex':1," OWN, ""), "status",
		  "status.uncountedTerminatedPods.succeeded[1]: Invalid value: '': must not be empty\n"
		  "status.uncountedTerminatedPods.failed[0]: Duplicate value: 'a'\n"
		  "status.completionTime: Required value: completionTime is required for Complete jobs\n"
		  "status.active: Invalid value: 1: active>0 is invalid for finished job\n"
		  "status.startTime: Required value: startTime is required for finished job\n"
		  "status.uncountedTerminatedPods: Invalid value: {'Succeeded':['a',''],'Failed':['a']}: must be empty for"
		  " finished job\n"
		  "status.failedIndexes: Invalid value: '2,3': failedIndexes and completedIndexes overlap at index: 2" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}
