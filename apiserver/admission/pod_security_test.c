#include "apiserver/admission/pod_security.h"

#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/testing.h"

/* A pod with one container "c": what is in its spec, and in its container beside the name. */
#define POD(spec, container) "{'spec':{" spec "'containers':[{'name':'c'" container "}]}}"
#define SECURE(more)                                                                                          \
	",'securityContext':{'allowPrivilegeEscalation':false,'runAsNonRoot':true,'capabilities':{'drop':['ALL']}," \
	"'seccompProfile':{'type':'RuntimeDefault'}" more "}"
#define CONTEXT(text) ",'securityContext':{" text "}"

static void check_pods(enum pod_level level, const char *const (*rows)[3], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		int64_t minor = POD_LATEST;
		if (rows[i][0])
			str_to_i64(str_of(rows[i][0]), &minor);
		struct pod_standard s = { level, (int)minor };
		struct val pod = testing_typed(&a, TYPE(core_v1, Pod), rows[i][1]);
		struct val metadata = val_get(pod, metadata), spec = val_get(pod, spec);
		size_t before = a.used;
		pod_checks failed = pod_standard_failed(s, metadata, spec);
		CHECK_ROW(i, a.used == before);
		CHECK_STR_ROW(i, testing_swap(&a, pod_standard_why(&a, s, failed, metadata, spec, true), '"', '\''), rows[i][2]);
	}
}

TEST(pod_security_baseline)
{
	static const char *const rows[][3] = {
		{ NULL, POD("", ""), "" },
		{ NULL, POD("'securityContext':{'appArmorProfile':{'type':'RuntimeDefault'}},", ""), "" },
		{ NULL, POD("'securityContext':{'appArmorProfile':{'type':'Unconfined'}},", ""),
		  "forbidden AppArmor profile (pod must not set AppArmor profile type to 'Unconfined')" },
		{ NULL, "{'metadata':{'annotations':{'container.apparmor.security.beta.kubernetes.io/c':'unconfined',"
			"'container.apparmor.security.beta.kubernetes.io/d':'localhost/x'}},"
			"'spec':{'containers':[{'name':'c','securityContext':{'appArmorProfile':{'type':'Unconfined'}}}]}}",
		  "forbidden AppArmor profiles (container 'c' and annotation must not set AppArmor profile type to 'Unconfined', "
		  "'container.apparmor.security.beta.kubernetes.io/c='unconfined'')" },
		{ NULL, POD("", CONTEXT("'capabilities':{'add':['CHOWN','NET_BIND_SERVICE']}")), "" },
		{ NULL, POD("'initContainers':[{'name':'i','securityContext':{'capabilities':{'add':['NET_RAW']}}}],",
			    CONTEXT("'capabilities':{'add':['SYS_TIME','NET_ADMIN','SYS_TIME']}")),
		  "non-default capabilities (containers 'i', 'c' must not include 'NET_ADMIN', 'NET_RAW', 'SYS_TIME' in "
		  "securityContext.capabilities.add)" },
		{ NULL, POD("'hostNetwork':true,'hostPID':true,'hostIPC':true,", ""),
		  "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)" },
		{ NULL, POD("'volumes':[{'name':'v','emptyDir':{}}],", ""), "" },
		{ NULL, POD("'volumes':[{'name':'v','hostPath':{'path':'/'}},{'name':'w','hostPath':{'path':'/'}}],", ""),
		  "hostPath volumes (volumes 'v', 'w')" },
		{ NULL, POD("", ",'ports':[{'containerPort':80}]"), "" },
		{ NULL, POD("", ",'ports':[{'containerPort':80,'hostPort':9},{'containerPort':81,'hostPort':80}]"),
		  "hostPort (container 'c' uses hostPorts 80, 9)" },
		{ NULL, POD("'initContainers':[{'name':'z','livenessProbe':{'httpGet':{'host':'h','port':1}}}],",
			    ",'lifecycle':{'preStop':{'tcpSocket':{'host':'g','port':1}}}"),
		  "probe or lifecycle host (containers 'c', 'z' use probe or lifecycle hosts 'g', 'h')" },
		{ "33", POD("", ",'livenessProbe':{'httpGet':{'host':'h','port':1}}"), "" },
		{ NULL, POD("", ",'livenessProbe':{'httpGet':{'port':1}}"), "" },
		{ NULL, POD("", CONTEXT("'privileged':false")), "" },
		{ NULL, POD("'ephemeralContainers':[{'name':'e','securityContext':{'privileged':true}}],", CONTEXT("'privileged':true")),
		  "privileged (containers 'c', 'e' must not set securityContext.privileged=true)" },
		{ NULL, POD("", CONTEXT("'procMount':'Default'")), "" },
		{ NULL, POD("", CONTEXT("'procMount':'Unmasked'")),
		  "procMount (container 'c' must not set securityContext.procMount to 'Unmasked')" },
		{ NULL, POD("'hostUsers':false,", CONTEXT("'procMount':'Unmasked'")), "" },
		{ "34", POD("'hostUsers':false,", CONTEXT("'procMount':'Unmasked'")),
		  "procMount (container 'c' must not set securityContext.procMount to 'Unmasked')" },
		{ NULL, POD("'securityContext':{'seLinuxOptions':{'type':'container_engine_t'}},", ""), "" },
		{ "30", POD("'securityContext':{'seLinuxOptions':{'type':'container_engine_t'}},", ""),
		  "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type 'container_engine_t')" },
		{ NULL, POD("'securityContext':{'seLinuxOptions':{'user':'u'}},",
			    CONTEXT("'seLinuxOptions':{'type':'bad_t','role':'r'}")),
		  "seLinuxOptions (pod and container 'c' set forbidden securityContext.seLinuxOptions: type 'bad_t'; "
		  "user may not be set; role may not be set)" },
		{ "18", "{'metadata':{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'unconfined',"
			"'container.seccomp.security.alpha.kubernetes.io/c':'x','container.seccomp.security.alpha.kubernetes.io/d':'x'}},"
			"'spec':{'containers':[{'name':'c'}]}}",
		  "seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/c='x', "
		  "seccomp.security.alpha.kubernetes.io/pod='unconfined')" },
		{ "18", "{'metadata':{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'docker/default'}},'spec':{}}", "" },
		{ NULL, POD("'securityContext':{'seccompProfile':{'type':'Unconfined'}},",
			    CONTEXT("'seccompProfile':{'type':'Unconfined'}")),
		  "seccompProfile (pod and container 'c' must not set securityContext.seccompProfile.type to 'Unconfined')" },
		{ NULL, POD("", CONTEXT("'seccompProfile':{'type':'Localhost','localhostProfile':'x'}")), "" },
		{ NULL, POD("'securityContext':{'sysctls':[{'name':'net.ipv4.tcp_rmem','value':'1'}]},", ""), "" },
		{ "31", POD("'securityContext':{'sysctls':[{'name':'net.ipv4.tcp_rmem','value':'1'}]},", ""),
		  "forbidden sysctls (net.ipv4.tcp_rmem)" },
		{ NULL, POD("'securityContext':{'sysctls':[{'name':'b','value':'1'},{'name':'a','value':'1'}]},", ""),
		  "forbidden sysctls (b, a)" },
		{ NULL, POD("'securityContext':{'windowsOptions':{'hostProcess':true}},",
			    CONTEXT("'windowsOptions':{'hostProcess':true}")),
		  "hostProcess (pod and container 'c' must not set securityContext.windowsOptions.hostProcess=true)" },
		{ NULL, POD("'hostPID':true,", CONTEXT("'privileged':true")),
		  "host namespaces (hostPID=true), privileged (container 'c' must not set securityContext.privileged=true)" },
	};
	check_pods(POD_BASELINE, rows, ARRAY_LEN(rows));
}

TEST(pod_security_restricted)
{
	static const char *const rows[][3] = {
		{ NULL, POD("", SECURE("")), "" },
		{ NULL, POD("'os':{'name':'windows'},", CONTEXT("'runAsNonRoot':true")), "" },
		{ "24", POD("'os':{'name':'windows'},", CONTEXT("'runAsNonRoot':true,'allowPrivilegeEscalation':false")),
		  "unrestricted capabilities (container 'c' must set securityContext.capabilities.drop=['ALL']), seccompProfile (pod or "
		  "container 'c' must set securityContext.seccompProfile.type to 'RuntimeDefault' or 'Localhost')" },
		{ NULL, POD("", ""),
		  "allowPrivilegeEscalation != false (container 'c' must set securityContext.allowPrivilegeEscalation=false), "
		  "unrestricted capabilities (container 'c' must set securityContext.capabilities.drop=['ALL']), "
		  "runAsNonRoot != true (pod or container 'c' must set securityContext.runAsNonRoot=true), "
		  "seccompProfile (pod or container 'c' must set securityContext.seccompProfile.type to 'RuntimeDefault' or "
		  "'Localhost')" },
		{ "7", POD("'securityContext':{'runAsNonRoot':true},", ""), "" },
		{ "18", POD("'securityContext':{'runAsNonRoot':true},", CONTEXT("'capabilities':{'add':['SYS_TIME']}")),
		  "non-default capabilities (container 'c' must not include 'SYS_TIME' in securityContext.capabilities.add), "
		  "allowPrivilegeEscalation != false (container 'c' must set securityContext.allowPrivilegeEscalation=false)" },
		{ NULL, POD("'initContainers':[{'name':'i'" CONTEXT("'allowPrivilegeEscalation':false,'capabilities':{'drop':['ALL'],"
								    "'add':['CHOWN','NET_BIND_SERVICE']}") "}],"
			    "'securityContext':{'runAsNonRoot':true,'seccompProfile':{'type':'Localhost'}},",
			    CONTEXT("'allowPrivilegeEscalation':false,'capabilities':{'drop':['KILL']}")),
		  "unrestricted capabilities (container 'c' must set securityContext.capabilities.drop=['ALL']; container 'i' must not "
		  "include 'CHOWN' in securityContext.capabilities.add)" },
		{ NULL, POD("'hostUsers':false,", SECURE(",'procMount':'Unmasked'")),
		  "procMount (container 'c' must not set securityContext.procMount to 'Unmasked')" },
		{ NULL, POD("'volumes':[{'name':'a','configMap':{'name':'x'}},{'name':'b','nfs':{'server':'s','path':'/'}},"
			    "{'name':'d','hostPath':{'path':'/'}},{'name':'e','image':{'reference':'x'}}],", SECURE("")),
		  "restricted volume types (volumes 'b', 'd' use restricted volume types 'hostPath', 'nfs')" },
		{ NULL, POD("'volumes':[{'name':'a'}],", SECURE("")),
		  "restricted volume types (volume 'a' uses restricted volume type 'unknown')" },
		{ NULL, POD("'securityContext':{'runAsNonRoot':false},", SECURE("")),
		  "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)" },
		{ NULL, POD("'hostUsers':false,'securityContext':{'runAsNonRoot':false,'runAsUser':0},", SECURE(",'runAsUser':0")), "" },
		{ NULL, POD("'securityContext':{'runAsUser':0},", SECURE(",'runAsUser':0")),
		  "runAsUser=0 (pod and container 'c' must not set runAsUser=0)" },
		{ "22", POD("'securityContext':{'runAsUser':0},", SECURE("")), "" },
		{ NULL, POD("", SECURE(",'runAsUser':1")), "" },
		{ NULL, POD("'securityContext':{'seccompProfile':{'type':'Unconfined'}},", SECURE("")),
		  "seccompProfile (pod must not set securityContext.seccompProfile.type to 'Unconfined')" },
	};
	check_pods(POD_RESTRICTED, rows, ARRAY_LEN(rows));
}

TEST(pod_security_privileged_allows_everything)
{
	static const char *const rows[][3] = { { NULL, POD("'hostPID':true,", CONTEXT("'privileged':true")), "" } };
	check_pods(POD_PRIVILEGED, rows, ARRAY_LEN(rows));
}

/* "enforce audit warn" and the errors of labels. */
static str policy_text(struct arena *a, const struct pod_policy *p, const struct field_errors *e)
{
	str text = arena_printf(a, STR_FMT " " STR_FMT " " STR_FMT, STR_ARG(pod_standard_text(a, p->enforce)),
				STR_ARG(pod_standard_text(a, p->audit)), STR_ARG(pod_standard_text(a, p->warn)));
	return e->n ? arena_printf(a, STR_FMT " ! " STR_FMT, STR_ARG(text), STR_ARG(field_errors_plain(e))) : text;
}

TEST(pod_security_labels)
{
#define L "pod-security.kubernetes.io/"
	static const struct {
		const char *labels, *want;
	} rows[] = {
		{ "{}", "privileged:latest privileged:latest baseline:v1.9" },
		{ "{'x':'y'}", "privileged:latest privileged:latest baseline:v1.9" },
		{ "{'" L "enforce':'restricted'}", "restricted:latest privileged:latest restricted:latest" },
		{ "{'" L "enforce':'restricted','" L "enforce-version':'v1.30'}", "restricted:v1.30 privileged:latest restricted:v1.30" },
		{ "{'" L "enforce':'restricted','" L "warn-version':'v1.2'}", "restricted:latest privileged:latest restricted:v1.2" },
		{ "{'" L "enforce':'restricted','" L "warn':'privileged'}", "restricted:latest privileged:latest privileged:v1.9" },
		{ "{'" L "audit':'baseline','" L "audit-version':'latest'}", "privileged:latest baseline:latest baseline:v1.9" },
		{ "{'" L "enforce':'bogus','" L "enforce-version':'1.3'}",
		  "restricted:latest privileged:latest baseline:v1.9 ! "
		  "[metadata.labels[" L "enforce]: Invalid value: 'bogus': must be one of privileged, baseline, restricted, "
		  "metadata.labels[" L "enforce-version]: Invalid value: '1.3': must be 'latest' or 'v1.x']" },
		{ "{'" L "audit':'bogus','" L "warn':'bogus'}",
		  "privileged:latest privileged:latest privileged:v1.9 ! "
		  "[metadata.labels[" L "audit]: Invalid value: 'bogus': must be one of privileged, baseline, restricted, "
		  "metadata.labels[" L "warn]: Invalid value: 'bogus': must be one of privileged, baseline, restricted]" },
		{ "{'" L "warn-version':'v1.05'}",
		  "privileged:latest privileged:latest baseline:latest ! "
		  "metadata.labels[" L "warn-version]: Invalid value: 'v1.05': must be 'latest' or 'v1.x'" },
	};
#undef L
	const struct pod_policy defaults = {
		{ POD_PRIVILEGED, POD_LATEST }, { POD_PRIVILEGED, POD_LATEST }, { POD_BASELINE, 9 },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct field_errors e;
		field_errors_init(&e, &a);
		struct pod_policy p = pod_policy_of(testing_tree(&a, rows[i].labels), &defaults, &e, NULL);
		CHECK_STR_ROW(i, testing_swap(&a, policy_text(&a, &p, &e), '"', '\''), rows[i].want);
	}
}

TEST(pod_security_configuration)
{
#define HEAD "'apiVersion':'pod-security.admission.config.k8s.io/v1','kind':'PodSecurityConfiguration'"
	static const struct {
		const char *config, *want;
	} rows[] = {
		{ NULL, "privileged:latest privileged:latest privileged:latest" },
		{ "{" HEAD ",'defaults':{'enforce':'baseline','audit':'restricted','audit-version':'v1.1','warn-version':'latest'}}",
		  "baseline:latest restricted:v1.1 privileged:latest" },
		{ "{" HEAD ",'exemptions':{'usernames':['a'],'namespaces':['b'],'runtimeClasses':['c']}}",
		  "privileged:latest privileged:latest privileged:latest" },
		{ "{" HEAD ",'defaults':{'enforce':'x'},'exemptions':{'usernames':['a','','a']}}",
		  "! [defaults.enforce: Invalid value: 'x': must be one of privileged, baseline, restricted, "
		  "exemptions.usernames[1]: Invalid value: '': username must not be empty, "
		  "exemptions.usernames[2]: Duplicate value: 'a']" },
		{ "{'apiVersion':'v1','kind':'Pod'}", "! no kind 'Pod' is registered for version 'v1'" },
	};
#undef HEAD
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct pod_security_config c;
		struct err err = ERR_INIT;
		int r = pod_security_config_read(&a, testing_tree(&a, rows[i].config), &c, &err);
		str got = r < 0 ? testing_error(&a, &err) : policy_text(&a, &c.defaults, &(struct field_errors){ 0 });
		CHECK_STR_ROW(i, testing_swap(&a, got, '"', '\''), rows[i].want);
	}
}
