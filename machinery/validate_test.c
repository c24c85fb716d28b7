/* Defaults, and what the server fills in. */
#include "machinery/validate_testing.h"

static str members(struct arena *a, struct val v, const char *const *names)
{
	struct val_builder b = val_builder(a);
	for (; *names; names++)
		val_add_member(&b, atom_make(a, str_of(*names)), val_find(v, str_of(*names)));
	return testing_text(a, val_end_object(&b));
}

#define POD(spec) "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n'},'spec':{" spec "}}"
#define C(more) "'containers':[{'name':'c','image':'i'" more "}]"
#define DEFAULTS "'terminationMessagePath':'/dev/termination-log','terminationMessagePolicy':'File','imagePullPolicy':'Always'"

TEST(default_pod)
{
	static const struct {
		const char *pod, *member, *want;
	} t[] = {
		{ POD(C("")), "containers", "[{'name':'c','image':'i'," DEFAULTS "}]" },
		{ POD("'containers':[{'name':'c','image':'i:1'}]"), "containers",
		  "[{'name':'c','image':'i:1','terminationMessagePath':'/dev/termination-log',"
		  "'terminationMessagePolicy':'File',"
		  "'imagePullPolicy':'IfNotPresent'}]" },
		{ POD(C(",'ports':[{'containerPort':1}],'env':[{'name':'A',"
			"'valueFrom':{'fieldRef':{'fieldPath':'metadata.name'}}}]")), "containers",
		  "[{'name':'c','image':'i','ports':[{'containerPort':1,'protocol':'TCP'}],"
		  "'env':[{'name':'A','valueFrom':{'fieldRef':{'apiVersion':'v1','fieldPath':'metadata.name'}}}]," DEFAULTS "}]" },
		{ POD("'hostNetwork':true," C(",'ports':[{'containerPort':1}]")), "containers",
		  "[{'name':'c','image':'i','ports':[{'hostPort':1,'containerPort':1,'protocol':'TCP'}]," DEFAULTS "}]" },
		{ POD(C(",'resources':{'limits':{'cpu':'1','memory':'100000u'},'requests':{'cpu':'500m'}}")), "containers",
		  "[{'name':'c','image':'i','resources':{'limits':{'cpu':'1','memory':'100m'},"
		  "'requests':{'cpu':'500m','memory':'100m'}}," DEFAULTS "}]" },
		{ POD(C(",'livenessProbe':{'httpGet':{'port':80}},'lifecycle':{'preStop':{'httpGet':{'port':80}}}")),
		  "containers",
		  "[{'name':'c','image':'i','livenessProbe':{'httpGet':{'path':'/','port':80,'scheme':'HTTP'},"
		  "'timeoutSeconds':1,"
		  "'periodSeconds':10,'successThreshold':1,'failureThreshold':3},"
		  "'lifecycle':{'preStop':{'httpGet':{'path':'/','port':80,'scheme':'HTTP'}}}," DEFAULTS "}]" },
		{ POD("'volumes':[{'name':'a'},{'name':'b','hostPath':{'path':'/'}},{'name':'c',"
		      "'secret':{'secretName':'s'}},"
		      "{'name':'d','projected':{'sources':[{'serviceAccountToken':{'path':'t'}}]}},{'name':'e',"
		      "'rbd':{'monitors':['m'],'image':'i'}},"
		      "{'name':'f','ephemeral':{'volumeClaimTemplate':{}}},{'name':'g','image':{'reference':'r'}}]," C("")), "volumes",
		  "[{'name':'a','emptyDir':{}},{'name':'b','hostPath':{'path':'/','type':''}},{'name':'c',"
		  "'secret':{'secretName':'s','defaultMode':420}},"
		  "{'name':'d','projected':{'sources':[{'serviceAccountToken':{'expirationSeconds':3600,'path':'t'}}],"
		  "'defaultMode':420}},"
		  "{'name':'e','rbd':{'monitors':['m'],'image':'i','pool':'rbd','user':'admin',"
		  "'keyring':'/etc/ceph/keyring'}},"
		  "{'name':'f','ephemeral':{'volumeClaimTemplate':{'spec':{'volumeMode':'Filesystem'}}}},"
		  "{'name':'g','image':{'reference':'r','pullPolicy':'Always'}}]" },
		{ POD("'resources':{'limits':{'cpu':'4','memory':'1Gi'}}," C(",'resources':{'requests':{'cpu':'1'}}")),
		  "resources",
		  "{'limits':{'cpu':'4','memory':'1Gi'},'requests':{'cpu':'1','memory':'1Gi'}}" },
		{ POD("'serviceAccount':'a'," C("")), "serviceAccountName", "'a'" },
		{ POD("'terminationGracePeriodSeconds':-5," C("")), "terminationGracePeriodSeconds", "1" },
		{ POD(C("")), "dnsPolicy", "'ClusterFirst'" },
		{ POD(C("")), "enableServiceLinks", "true" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct type *type;
		struct val pod = testing_object(&a, t[i].pod, &type), again;
		CHECK_STR_ROW(i, testing_text(&a, val_find(val_get(pod, spec), str_of(t[i].member))), t[i].want);
		CHECK_INT(default_object(&a, type, pod, &again, NULL), 0);
		CHECK_ROW(i, val_equal(pod, again));
	}
	arena_done(&a);
}

#define TEMPLATE "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}"
#define WORKLOAD(version, kind, spec) "{'apiVersion':'" version "','kind':'" kind "','metadata':{'name':'x','namespace':'n'},'spec':{" spec "}}"

TEST(default_workloads)
{
	static const struct {
		const char *object;
		const char *names[8]; /* of the spec */
		const char *want;
	} t[] = {
		{ WORKLOAD("v1", "ReplicationController", TEMPLATE), { "replicas", "selector", NULL },
		  "{'replicas':1,'selector':{'a':'b'}}" },
		{ WORKLOAD("apps/v1", "Deployment", TEMPLATE),
		  { "replicas", "strategy", "revisionHistoryLimit", "progressDeadlineSeconds", NULL },
		  "{'replicas':1,'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':'25%',"
		  "'maxSurge':'25%'}},"
		  "'revisionHistoryLimit':10,'progressDeadlineSeconds':600}" },
		{ WORKLOAD("apps/v1", "Deployment", "'strategy':{'type':'Recreate'}," TEMPLATE), { "strategy", NULL },
		  "{'strategy':{'type':'Recreate'}}" },
		{ WORKLOAD("apps/v1", "DaemonSet", TEMPLATE), { "updateStrategy", NULL },
		  "{'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':1,'maxSurge':0}}}" },
		{ WORKLOAD("apps/v1", "StatefulSet", TEMPLATE),
		  { "podManagementPolicy", "updateStrategy", "persistentVolumeClaimRetentionPolicy", NULL },
		  "{'podManagementPolicy':'OrderedReady','updateStrategy':{'type':'RollingUpdate',"
		  "'rollingUpdate':{'partition':0}},"
		  "'persistentVolumeClaimRetentionPolicy':{'whenDeleted':'Retain','whenScaled':'Retain'}}" },
		{ WORKLOAD("batch/v1", "Job", TEMPLATE),
		  { "parallelism", "completions", "backoffLimit", "completionMode", "suspend", "podReplacementPolicy",
		    NULL },
		  "{'parallelism':1,'completions':1,'backoffLimit':6,'completionMode':'NonIndexed','suspend':false,"
		  "'podReplacementPolicy':'TerminatingOrFailed'}" },
		{ WORKLOAD("batch/v1", "Job",
			   "'parallelism':2,'backoffLimitPerIndex':1,'podFailurePolicy':{'rules':[{'action':'Count',"
					      "'onPodConditions':[{'type':'a'}]}]}," TEMPLATE),
		  { "parallelism", "completions", "backoffLimit", "podReplacementPolicy", "podFailurePolicy", NULL },
		  "{'parallelism':2,'backoffLimit':2147483647,'podReplacementPolicy':'Failed',"
		  "'podFailurePolicy':{'rules':[{'action':'Count','onPodConditions':[{'type':'a','status':'True'}]}]}}" },
		{ WORKLOAD("batch/v1", "CronJob", "'schedule':'@daily'"),
		  { "concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit", NULL },
		  "{'concurrencyPolicy':'Allow','suspend':false,'successfulJobsHistoryLimit':3,"
		  "'failedJobsHistoryLimit':1}" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct type *type;
		struct val object = testing_object(&a, t[i].object, &type);
		CHECK_STR_ROW(i, members(&a, val_get(object, spec), t[i].names), t[i].want);
	}
	arena_done(&a);
}

/* ---- preparing ---- */

TEST(prepare_create_pod)
{
	struct arena a = ARENA_INIT;
	struct val made;

	testing_create(&a, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n','labels':{'l':'1'}},"
			   "'spec':{'containers':[{'name':'c','image':'i','lifecycle':{'stopSignal':'SIGTERM'}}],"
			   "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z',"
			   "'whenUnsatisfiable':'DoNotSchedule','labelSelector':{},"
			   "'matchLabelKeys':['l','x']}]},'status':{'phase':'Running','podIP':'1.2.3.4'}}", &made);
	CHECK_STR(testing_text(&a, val_get(made, status)), "{'phase':'Pending','qosClass':'BestEffort'}");
	CHECK_INT(val_int(made, metadata, generation), 1);
	/* a feature that is off */
	CHECK(!val_has(val_at(val_get(made, spec, containers), 0), lifecycle));
	CHECK_STR(testing_text(&a, val_get(val_at(val_get(made, spec, topologySpreadConstraints), 0), labelSelector)),
		  "{'matchExpressions':[{'key':'l','operator':'In','values':['1']}]}");
	arena_done(&a);
}

TEST(prepare_create_gated_pod)
{
	struct arena a = ARENA_INIT;
	struct val made, condition;

	testing_create(&a, POD("'schedulingGates':[{'name':'g'}]," C("")), &made);
	condition = val_at(val_get(made, status, conditions), 0);
	CHECK_STR(val_str(condition, reason), "SchedulingGated");
	CHECK(val_has(condition, lastTransitionTime));
	arena_done(&a);
}

TEST(prepare_create_job)
{
	struct arena a = ARENA_INIT;
	struct val made;

	CHECK_STR(testing_create(&a, "{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'j','namespace':'n',"
				     "'uid':'u'},'spec':{'template':"
				     "{'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}}}",
				     &made), "");
	CHECK_STR(testing_text(&a, val_get(made, spec, selector)),
		  "{'matchLabels':{'batch.kubernetes.io/controller-uid':'u'}}");
	CHECK_STR(testing_text(&a, val_get(made, spec, template, metadata, labels)),
		  "{'batch.kubernetes.io/controller-uid':'u','batch.kubernetes.io/job-name':'j','controller-uid':'u',"
		  "'job-name':'j'}");
	arena_done(&a);
}

#define STORED(generation, spec) \
	"{'apiVersion':'apps/v1','kind':'DaemonSet','metadata':{'name':'d','namespace':'n','uid':'u','resourceVersion':'1','generation':" generation \
	",'annotations':{'deprecated.daemonset.template.generation':'1'}},'spec':{" spec "}}"
#define SELECTOR "'selector':{'matchLabels':{'a':'b'}},"
#define OTHER "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'j'}]}}"

TEST(prepare_update)
{
	static const struct {
		const char *object, *old, *subresource;
		int64_t generation;
		const char *template_generation;
	} t[] = {
		{ STORED("7", SELECTOR TEMPLATE), STORED("3", SELECTOR TEMPLATE), "", 3, "1" },
		{ STORED("7", SELECTOR OTHER), STORED("3", SELECTOR TEMPLATE), "", 4, "2" },
		{ STORED("7", SELECTOR "'minReadySeconds':1," TEMPLATE), STORED("3", SELECTOR TEMPLATE), "", 4, "1" },
		/* the status endpoint changes nothing else */
		{ STORED("7", SELECTOR OTHER), STORED("3", SELECTOR TEMPLATE), "status", 3, "1" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val made;
		CHECK_STR_ROW(i, testing_update(&a, t[i].object, t[i].old, t[i].subresource, &made), "");
		CHECK_ROW(i, val_int(made, metadata, generation) == t[i].generation);
		CHECK_STR_ROW(i, val_as_str(val_find(val_get(made, metadata, annotations),
						     STR("deprecated.daemonset.template.generation"))),
			      t[i].template_generation);
	}
	arena_done(&a);
}

TEST(prepare_update_pod_status)
{
	struct arena a = ARENA_INIT;
	struct val made;
	const char *old = "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n','uid':'u',"
			  "'resourceVersion':'1'},"
			  "'spec':{" C("") "},'status':{'qosClass':'BestEffort','observedGeneration':2,"
			  "'conditions':[{'type':'Ready','status':'False','observedGeneration':2}]}}";
	const char *now = "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n','uid':'u',"
			  "'resourceVersion':'1'},"
			  "'spec':{'containers':[]},'status':{'phase':'Running','conditions':[{'type':'Ready',"
			  "'status':'True'}]}}";

	CHECK_STR(testing_update(&a, now, old, "status", &made), "");
	CHECK_INT(val_len(val_get(made, spec, containers)), 1);
	CHECK_STR(testing_text(&a, val_get(made, status)),
		  "{'observedGeneration':2,'phase':'Running','conditions':[{'type':'Ready','observedGeneration':2,"
		  "'status':'True'}],"
		  "'qosClass':'BestEffort'}");
	arena_done(&a);
}

/* Kinds without rules get the checks that all objects do. */
TEST(validate_unknown_kind)
{
	struct arena a = ARENA_INIT;
	const struct type *type = schema_kind(STR("metrics.k8s.io/v1beta1"), STR("NodeMetrics"));
	struct field_errors errors;

	field_errors_init(&errors, &a);
	validate_create(type, testing_typed(&a, type, "{'metadata':{'name':'a/b','labels':{'-':'x'}}}"), &errors);
	CHECK_STR(testing_lines(&a, &errors), "metadata.name: Invalid value: 'a/b': may not contain '/'\n"
					      "metadata.labels: Invalid value: '-': " NAME_PART_TEXT);
	arena_done(&a);
}

TEST(validate_message)
{
	struct arena a = ARENA_INIT;
	const struct type *type;
	struct val pod = testing_object(&a, POD(""), &type);
	struct field_errors errors;

	field_errors_init(&errors, &a);
	validate_create(type, pod, &errors);
	CHECK_STR(field_errors_message(&errors, type, STR("p")), "Pod \"p\" is invalid: spec.containers: Required value");
	arena_done(&a);
}
