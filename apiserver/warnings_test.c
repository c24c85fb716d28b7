#include "apiserver/warnings_priv.h"

#include "base/buf.h"
#include "base/encoding.h"
#include "codec/types.h"
#include "machinery/testing.h"
#include "net/test_certs.h"

/* Objects are written with ' for "; of several warnings each has a line. */
struct case_of {
	const struct type *type;
	const char *old, *object, *subresource; /* old NULL: a new object; subresource NULL: none */
	const char *want;
};

static str warnings_of(struct arena *a, const struct case_of *t)
{
	struct request q = {
		.arena = a, .type = t->type, .subresource = str_of(t->subresource),
		.old = t->old ? testing_typed(a, t->type, t->old) : VAL_EMPTY, .object = testing_typed(a, t->type, t->object),
	};
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	if (!t->old)
		q.sent = q.object;
	warnings_add(&q);
	for (unsigned i = 0; i < q.n_warnings; i++)
		buf_addf(&b, "%s" STR_FMT, i ? "\n" : "", STR_ARG(q.warnings[i]));
	return arena_str(a, buf_str(&b));
}

static void check_all(const struct case_of *t, size_t n)
{
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < n; i++) {
		str got = warnings_of(&a, &t[i]);
		if (!str_eq(got, str_of(t[i].want)))
			fail_msg("%s: got\n" STR_FMT "\nbut want\n%s", t[i].object, STR_ARG(got), t[i].want);
		arena_reset(&a);
	}
	arena_done(&a);
}

#define POD TYPE(core_v1, Pod)
#define POD_OF(spec) "{'metadata':{'name':'p'},'spec':{" spec "}}"
#define IN_CONTAINER(fields) POD_OF("'containers':[{'name':'c'," fields "}]")
#define NULL_SELECTOR ".labelSelector: a null labelSelector results in matching no pod"

TEST(warnings_of_pods)
{
	static const struct case_of t[] = {
		{ POD, NULL, POD_OF(""), NULL, "" },
		{ POD, NULL, "{'metadata':{'name':'a.b'}}", NULL,
		  "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
		  "recommended: [must not contain dots]" },
		{ POD, POD_OF(""), "{'metadata':{'name':'a.b'}}", NULL, "" },
		{ POD, NULL, POD_OF("'nodeSelector':{'beta.kubernetes.io/os':'linux','x':'y'}"), NULL,
		  "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead" },
		{ POD, NULL,
		  POD_OF("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{"
			 "'matchExpressions':[{'key':'node-role.kubernetes.io/master','operator':'Exists'}]}]}}}"),
		  NULL,
		  "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
		  ".key: node-role.kubernetes.io/master is use \"node-role.kubernetes.io/control-plane\" instead" },
		{ POD, NULL, POD_OF("'topologySpreadConstraints':[{'topologyKey':'k'}]"), NULL,
		  "spec.topologySpreadConstraints[0]" NULL_SELECTOR },
		{ POD, NULL, POD_OF("'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1}]}}"),
		  NULL,
		  "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm" NULL_SELECTOR },
		{ POD, NULL, POD_OF("'volumes':[{'name':'v','gitRepo':{'repository':'r'}}]"), NULL,
		  "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+" },
		{ POD, NULL, POD_OF("'imagePullSecrets':[{'name':'s'},{'name':'s'},{}]"), NULL,
		  "spec.imagePullSecrets[1].name: duplicate name \"s\"\nspec.imagePullSecrets[2].name: invalid empty name \"\"" },
		{ POD, NULL, POD_OF("'hostAliases':[{'ip':'1.1.1.1'},{'ip':'1.1.1.1'}]"), NULL,
		  "spec.hostAliases[1].ip: duplicate ip \"1.1.1.1\"" },
		{ POD, NULL, POD_OF("'dnsConfig':{'nameservers':['::FFFF']}"), NULL,
		  "spec.dnsConfig.nameservers[0]: IPv6 address \"::FFFF\" should be in RFC 5952 canonical format (\"::ffff\")" },
		{ POD, NULL, POD_OF("'terminationGracePeriodSeconds':-1"), NULL,
		  "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1" },
		{ POD, POD_OF(""), "{'metadata':{'name':'p'},'status':{'podIPs':[{'ip':'010.0.0.1'}]}}", "status",
		  "status.podIPs[0].ip: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"" },
	};
	check_all(t, ARRAY_LEN(t));
}

TEST(warnings_of_containers)
{
	static const struct case_of t[] = {
		{ POD, NULL, IN_CONTAINER("'resources':{'requests':{'memory':'500m'}}"), NULL,
		  "spec.containers[0].resources.requests[memory]: fractional byte value \"500m\" is invalid, must be an integer" },
		{ POD, NULL, IN_CONTAINER("'env':[{'name':'A','value':'1'},{'name':'A','value':'$(A)2'}]"), NULL, "" },
		{ POD, NULL, IN_CONTAINER("'env':[{'name':'A','value':'1'},{'name':'A','value':'2'}]"), NULL,
		  "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply" },
		{ POD, NULL, IN_CONTAINER("'ports':[{'containerPort':80,'hostIP':'1.2.3.4','protocol':'TCP'}]"), NULL,
		  "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP "
		  "HostIP:1.2.3.4}" },
		{ POD, NULL, IN_CONTAINER("'ports':[{'containerPort':80,'name':'a'},{'containerPort':80,'name':'b'}]"), NULL,
		  "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]" },
		{ POD, NULL, IN_CONTAINER("'ports':[{'containerPort':80,'hostPort':1},{'containerPort':80}]"), NULL,
		  "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]" },
		{ POD, NULL,
		  IN_CONTAINER("'ports':[{'containerPort':80,'hostPort':1},{'containerPort':80,'hostPort':1,'hostIP':'1.1.1.1'}]"), NULL,
		  "spec.containers[0].ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]" },
		{ POD, NULL,
		  POD_OF("'initContainers':[{'name':'i','ports':[{'containerPort':1,'name':'x'}]}],"
			 "'containers':[{'name':'c','ports':[{'containerPort':2,'name':'x'}]}]"),
		  NULL,
		  "spec.containers[0].ports[0]: duplicate port name \"x\" with spec.initContainers[0].ports[0], services and probes that "
		  "select ports by name will use spec.initContainers[0].ports[0]" },
		{ POD, NULL,
		  "{'metadata':{'name':'p','annotations':{'seccomp.security.alpha.kubernetes.io/pod':'x',"
		  "'container.apparmor.security.beta.kubernetes.io/c':'unconfined'}},'spec':{'containers':[{'name':'c'}]}}",
		  NULL,
		  "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the \"seccompProfile\" "
		  "field instead\n"
		  "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "
		  "\"appArmorProfile\" field instead" },
	};
	check_all(t, ARRAY_LEN(t));
}

#define VOLUME(source) POD_OF("'volumes':[{'name':'v'," source "}]")

TEST(warnings_of_volume_paths)
{
	static const struct case_of t[] = {
		{ POD, NULL, VOLUME("'configMap':{'name':'m','items':[{'key':'a','path':'x'},{'key':'b','path':'xy'}]}"), NULL, "" },
		{ POD, NULL, VOLUME("'configMap':{'name':'m','items':[{'key':'a','path':'x/y'},{'key':'b','path':'x'}]}"), NULL,
		  "volume \"v\" (ConfigMap \"m\"): overlapping paths: \"x\" with \"x/y\"" },
		{ POD, NULL, VOLUME("'secret':{'secretName':'s','items':[{'key':'a','path':'x'},{'key':'b','path':'x/'}]}"), NULL,
		  "volume \"v\" (Secret \"s\"): overlapping paths: \"x\" with \"x\"" },
		{ POD, NULL, VOLUME("'projected':{'sources':[{}]}"), NULL, "volume \"v\" (Projected) has no sources provided" },
		{ POD, NULL,
		  VOLUME("'projected':{'sources':[{'serviceAccountToken':{'path':'t'}},{'downwardAPI':{'items':[{'path':'t/u'}]}}]}"),
		  NULL,
		  "volume \"v\" (Projected): overlapping paths: \"t/u\" (DownwardAPI) with \"t\" (ServiceAccountToken)" },
	};
	check_all(t, ARRAY_LEN(t));
}

#define TEMPLATE "'template':{'spec':{'topologySpreadConstraints':[{'topologyKey':'k'}]}}"
#define META(generation) "'metadata':{'name':'x','generation':" #generation "}"
#define IN_TEMPLATE "spec.template.spec.topologySpreadConstraints[0]" NULL_SELECTOR

TEST(warnings_of_workloads)
{
	static const struct case_of t[] = {
		{ TYPE(apps_v1, Deployment), NULL, "{" META(1) ",'spec':{" TEMPLATE "}}", NULL, IN_TEMPLATE },
		{ TYPE(apps_v1, Deployment), "{" META(1) "}", "{" META(1) ",'spec':{" TEMPLATE "}}", NULL, "" },
		{ TYPE(apps_v1, Deployment), "{" META(1) "}", "{" META(2) ",'spec':{" TEMPLATE "}}", NULL, IN_TEMPLATE },
		{ TYPE(apps_v1, Deployment), "{" META(1) "}", "{" META(2) ",'spec':{" TEMPLATE "}}", "status", "" },
		{ TYPE(apps_v1, ReplicaSet), NULL, "{'metadata':{'name':'a.b'}}", NULL,
		  "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
		  "recommended: [must not contain dots]" },
		/* The template that is replaced is the one that is looked at. */
		{ TYPE(core_v1, ReplicationController), "{" META(1) ",'spec':{" TEMPLATE "}}", "{" META(2) "}", NULL, IN_TEMPLATE },
		{ TYPE(apps_v1, DaemonSet), "{" META(1) "}",
		  "{'metadata':{'name':'x','annotations':{'deprecated.daemonset.template.generation':'2'}},'spec':{" TEMPLATE "}}", NULL,
		  IN_TEMPLATE },
		{ TYPE(apps_v1, StatefulSet), NULL,
		  "{" META(1) ",'spec':{'revisionHistoryLimit':-1,'volumeClaimTemplates':[{'spec':{'resources':{'requests':"
		  "{'storage':'1500m'}}}}]}}",
		  NULL,
		  "spec.volumeClaimTemplates[0].resources.requests[storage]: fractional byte value \"1500m\" is invalid, must be an "
		  "integer\nspec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended" },
		{ TYPE(batch_v1, Job), NULL, "{" META(1) ",'spec':{'completionMode':'Indexed','completions':100001,'parallelism':10001}}",
		  NULL,
		  "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
		  "might not be able to track completedIndexes when a big number of indexes fail" },
		{ TYPE(batch_v1, CronJob), "{" META(1) "}", "{" META(1) ",'spec':{'schedule':'TZ=UTC * * * * *'}}", NULL,
		  "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
		  "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details" },
		{ TYPE(core_v1, PodTemplate), NULL, "{" META(1) "," TEMPLATE "}", NULL,
		  "template.spec.topologySpreadConstraints[0]" NULL_SELECTOR },
	};
	check_all(t, ARRAY_LEN(t));
}

TEST(warnings_of_networking)
{
	static const struct case_of t[] = {
		{ TYPE(core_v1, Service), NULL,
		  "{'spec':{'type':'ClusterIP','clusterIP':'None','sessionAffinity':'ClientIP','externalIPs':['1.1.1.1']}}", NULL,
		  "spec.externalIPs is ignored for headless services\nspec.SessionAffinity is ignored for headless services" },
		{ TYPE(core_v1, Service), NULL, "{'spec':{'type':'ClusterIP','externalIPs':['1.1.1.1'],'sessionAffinity':'None'}}", NULL,
		  "spec.externalIPs is deprecated and may no longer be implemented in some clusters" },
		{ TYPE(core_v1, Service), NULL, "{'spec':{'type':'ExternalName','externalIPs':['1.1.1.1']}}", NULL,
		  "spec.externalIPs is ignored when spec.type is \"ExternalName\"" },
		{ TYPE(core_v1, Service), NULL, "{'spec':{'type':'NodePort','externalName':'x','trafficDistribution':'PreferClose'}}", NULL,
		  "spec.externalName is ignored when spec.type is not \"ExternalName\"\n"
		  "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"" },
		{ TYPE(core_v1, Service), "{}", "{'status':{'loadBalancer':{'ingress':[{'ip':'::ffff:1.2.3.4'}]}}}", "status",
		  "status.loadBalancer.ingress[0]: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\"" },
		{ TYPE(core_v1, Endpoints), NULL, "{'subsets':[{'notReadyAddresses':[{'ip':'01.2.3.4'}]}]}", NULL,
		  "subsets[0].notReadyAddresses[0].ip: non-standard IP address \"01.2.3.4\" is invalid: use \"1.2.3.4\"" },
		{ TYPE(core_v1, Endpoints), NULL,
		  "{'metadata':{'labels':{'endpoints.kubernetes.io/managed-by':'endpoint-controller'}},"
		  "'subsets':[{'addresses':[{'ip':'01.2.3.4'}]}]}",
		  NULL, "" },
		{ TYPE(discovery_v1, EndpointSlice), NULL, "{'addressType':'FQDN','endpoints':[{'addresses':['a.b']}]}", NULL,
		  "spec.addressType: FQDN endpoints are deprecated" },
		{ TYPE(networking_v1, Ingress), NULL, "{'metadata':{'annotations':{'kubernetes.io/ingress.class':'x'}}}", NULL,
		  "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead" },
		{ TYPE(networking_v1, NetworkPolicy), NULL,
		  "{'spec':{'egress':[{'to':[{},{'ipBlock':{'cidr':'10.0.0.0/8','except':['10.0.0.1/24']}}]}]}}", NULL,
		  "spec.egress[0].to[1].ipBlock.except[0]: CIDR value \"10.0.0.1/24\" is ambiguous in this context (should be "
		  "\"10.0.0.0/24\" or \"10.0.0.1/32\"?)" },
	};
	check_all(t, ARRAY_LEN(t));
}

#define FORMATS(formats) "{'spec':{'versions':[{'schema':{'openAPIV3Schema':{'properties':{" formats "}}}}]}}"
#define UNLABELLED "deprecated since v1.14; use \"kubernetes.io/arch\" instead"

TEST(warnings_of_other_kinds)
{
	static const struct case_of t[] = {
		{ TYPE(core_v1, PersistentVolume), NULL,
		  "{'metadata':{'annotations':{'volume.beta.kubernetes.io/storage-class':'x'}},"
		  "'spec':{'persistentVolumeReclaimPolicy':'Recycle','rbd':{}}}",
		  NULL,
		  "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \"storageClassName\" attribute "
		  "instead\n"
		  "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to "
		  "use dynamic provisioning.\n"
		  "spec.rbd: deprecated in v1.28, non-functional in v1.31+" },
		{ TYPE(core_v1, PersistentVolumeClaim), NULL, "{'spec':{'resources':{'requests':{'storage':'1m'}}}}", NULL,
		  "spec.resources.requests[storage]: fractional byte value \"1m\" is invalid, must be an integer" },
		{ TYPE(core_v1, Node), NULL, "{'spec':{'externalID':'x','podCIDRs':['10.0.0.0/24']}}", NULL,
		  "spec.externalID: this field is deprecated, and is unused by Kubernetes" },
		{ TYPE(core_v1, ServiceAccount), NULL, "{'metadata':{'annotations':{'kubernetes.io/enforce-mountable-secrets':'true'}}}",
		  NULL,
		  "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to "
		  "isolate access to mounted secrets" },
		{ TYPE(core_v1, ResourceQuota), NULL, "{'spec':{'hard':{'cpu':'2','limits.cpu':'1','limits.memory':'1Gi'}}}", NULL,
		  "ResourceQuota cpu (2) should be less than limits.cpu (1)" },
		{ TYPE(storage_v1, StorageClass), NULL,
		  "{'allowedTopologies':[{'matchLabelExpressions':[{'key':'beta.kubernetes.io/arch','values':['x']}]}]}", NULL,
		  "allowedTopologies[0].matchLabelExpressions[0].key: " UNLABELLED },
		{ TYPE(storage_v1, CSIStorageCapacity), NULL, "{'nodeTopology':{'matchLabels':{'beta.kubernetes.io/arch':'x'}}}", NULL,
		  "nodeTopology.matchLabels.beta.kubernetes.io/arch: " UNLABELLED },
		{ TYPE(storage_v1, CSIDriver), "{'spec':{'tokenRequests':[{'audience':'a'}]}}",
		  "{'spec':{'tokenRequests':[{'audience':'a'}]}}", NULL, "" },
		{ TYPE(storage_v1, CSIDriver), NULL, "{'spec':{'tokenRequests':[{'audience':'a'}]}}", NULL,
		  "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of "
		  "tokens in volume attributes" },
		{ TYPE(node_v1, RuntimeClass), NULL, "{'scheduling':{'nodeSelector':{'beta.kubernetes.io/arch':'x'}}}", NULL,
		  "scheduling.nodeSelector: " UNLABELLED },
		{ TYPE(resource_v1, ResourceSlice), NULL, "{'spec':{'driver':'A.example.com'}}", NULL,
		  "spec.driver: driver names should be lowercase; \"A.example.com\" contains uppercase characters" },
		{ TYPE(admissionregistration_v1, ValidatingWebhookConfiguration), NULL, "{'metadata':{'name':'a.static.k8s.io'}}", NULL,
		  "metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and cannot be "
		  "managed via the API" },
		{ TYPE(apiextensions_v1, CustomResourceDefinition), NULL,
		  FORMATS("'a':{'type':'string','format':'date-time'},'b':{'type':'integer','format':'int64'},"
			  "'c':{'type':'array','items':{'type':'string','format':'odd'}}"),
		  NULL, "unrecognized format \"odd\"" },
		{ TYPE(apiextensions_v1, CustomResourceDefinition), FORMATS("'a':{'type':'string','format':'odd'}"),
		  FORMATS("'a':{'type':'string','format':'odd'},'b':{'type':'boolean','format':'date'}"), NULL,
		  "unrecognized format \"date\"" },
	};
	check_all(t, ARRAY_LEN(t));
}

TEST(warnings_of_key_pairs)
{
	struct arena a = ARENA_INIT;
	struct test_cert one = test_cert_new("one", NULL, NULL), two = test_cert_new("two", NULL, NULL);
	str cert = str_of(one.cert), key = str_of(one.key);
	const struct {
		str cert, key;
		const char *want;
	} t[] = {
		{ cert, key, "" },
		{ arena_join(&a, STR("text before\n"), cert), key, "" },
		{ STR("x"), key, "tls: failed to find any PEM data in certificate input" },
		{ key, cert,
		  "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have "
		  "been switched" },
		{ STR("-----BEGIN X-----\n-----END X-----\n"), key,
		  "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following "
		  "types: [X]" },
		{ cert, STR(""), "tls: failed to find any PEM data in key input" },
		{ cert, cert, "tls: found a certificate rather than a key in the PEM for the private key" },
		{ cert, STR("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "tls: failed to parse private key" },
		{ STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), key, "x509: malformed certificate" },
		{ cert, str_of(two.key), "tls: private key does not match public key" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct request q = { .arena = &a };
		warn_key_pair(&q, t[i].cert, t[i].key);
		CHECK_INT(q.n_warnings, t[i].want[0] ? 1 : 0);
		if (q.n_warnings)
			CHECK_STR(q.warnings[0], t[i].want);
	}
	test_cert_done(&one);
	test_cert_done(&two);
	arena_done(&a);
}
