#include "kubelet/cri_config_testing.h"

static str security_text(struct arena *a, const struct kubelet_node *n, const struct cri_container_input *in)
{
	struct val v = VAL_EMPTY, typed;
	struct err err = ERR_INIT;
	int r = cri_config_container_security(n, a, in, &v, &err);

	if (r >= 0) {
		v = val_without(a, val_without(a, v, maskedPaths), readonlyPaths);
		CHECK_INT(cri_config_typed(a, v, TYPE(cri_v1, LinuxContainerSecurityContext), &typed, &err), 0);
		v = typed;
	}
	return testing_shown(a, r, v, &err);
}

#define NAMESPACES "'namespaceOptions':{'pid':'CONTAINER','usernsOptions':{'mode':'NODE'}}"
#define UNCONFINED "'seccomp':{'profileType':'Unconfined'}"

TEST(security_of_container)
{
	static const struct {
		const char *spec, *container, *want;
	} t[] = {
		{ "", "", "{" NAMESPACES ",'runAsUser':{}," UNCONFINED "}" },
		/* The container goes before the pod, member by member. */
		{ "'securityContext':{'runAsUser':1,'runAsGroup':2,'fsGroup':3,'supplementalGroups':[4,5],'supplementalGroupsPolicy':'Strict',"
		  "'seLinuxOptions':{'level':'s0'}},", "'securityContext':{'runAsUser':7},",
		  "{" NAMESPACES ",'selinuxOptions':{'level':'s0'},'runAsUser':{'value':7},'runAsGroup':{'value':2},'supplementalGroups':[3,4,5],"
		  "'supplementalGroupsPolicy':'Strict'," UNCONFINED "}" },
		{ "", "'securityContext':{'privileged':true,'readOnlyRootFilesystem':true,'allowPrivilegeEscalation':true,"
		  "'capabilities':{'add':['NET_ADMIN'],'drop':['ALL']}},",
		  "{'capabilities':{'addCapabilities':['NET_ADMIN'],'dropCapabilities':['ALL']},'privileged':true," NAMESPACES
		  ",'runAsUser':{},'readonlyRootfs':true," UNCONFINED "}" },
		{ "", "'securityContext':{'allowPrivilegeEscalation':false},", "{" NAMESPACES ",'runAsUser':{},'noNewPrivs':true," UNCONFINED "}" },
		{ "'hostNetwork':true,'hostPID':true,'hostIPC':true,", "",
		  "{'namespaceOptions':{'network':'NODE','pid':'NODE','ipc':'NODE','usernsOptions':{'mode':'NODE'}},'runAsUser':{}," UNCONFINED "}" },
		{ "'shareProcessNamespace':true,'hostUsers':true,", "",
		  "{'namespaceOptions':{'usernsOptions':{'mode':'NODE'}},'runAsUser':{}," UNCONFINED "}" },
		{ "'hostUsers':false,", "", "! can't set `spec.hostUsers: false`, runtime does not support user namespaces" },
		{ "'securityContext':{'supplementalGroupsPolicy':'Other'},", "", "! unsupported supplementalGroupsPolicy: Other" },
		/* Seccomp. */
		{ "'securityContext':{'seccompProfile':{'type':'RuntimeDefault'}},", "", "{" NAMESPACES ",'runAsUser':{},'seccomp':{}}" },
		{ "'securityContext':{'seccompProfile':{'type':'RuntimeDefault'}},", "'securityContext':{'seccompProfile':{'type':'Unconfined'}},",
		  "{" NAMESPACES ",'runAsUser':{}," UNCONFINED "}" },
		{ "", "'securityContext':{'seccompProfile':{'type':'Localhost','localhostProfile':'a/b.json'}},",
		  "{" NAMESPACES ",'runAsUser':{},'seccomp':{'profileType':'Localhost','localhostRef':'/var/lib/kubelet/seccomp/a/b.json'}}" },
		{ "", "'securityContext':{'seccompProfile':{'type':'Localhost'}},", "! localhostProfile must be set if seccompProfile type is Localhost." },
		{ "", "'securityContext':{'seccompProfile':{'type':'Localhost','localhostProfile':'../../x'}},",
		  "! localhostProfile \"../../x\" is not below /var/lib/kubelet/seccomp" },
		{ "", "'securityContext':{'seccompProfile':{'type':'Localhost','localhostProfile':'../seccomp2'}},",
		  "! localhostProfile \"../seccomp2\" is not below /var/lib/kubelet/seccomp" },
		/* AppArmor, for new and old runtimes. */
		{ "'securityContext':{'appArmorProfile':{'type':'RuntimeDefault'}},", "",
		  "{" NAMESPACES ",'runAsUser':{}," UNCONFINED ",'apparmor':{},'apparmorProfile':'runtime/default'}" },
		{ "'securityContext':{'appArmorProfile':{'type':'RuntimeDefault'}},",
		  "'securityContext':{'appArmorProfile':{'type':'Localhost','localhostProfile':'mine'}},",
		  "{" NAMESPACES ",'runAsUser':{}," UNCONFINED
		  ",'apparmor':{'profileType':'Localhost','localhostRef':'mine'},'apparmorProfile':'localhost/mine'}" },
		{ "", "'securityContext':{'appArmorProfile':{'type':'Localhost'}},", "! missing localhost apparmor profile name" },
		{ "", "'securityContext':{'appArmorProfile':{'type':'Odd'}},", "! unknown apparmor profile type: \"Odd\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		struct val pod = testing_pod(&a, t[i].spec, t[i].container, "");
		struct cri_container_input in = { .pod = pod, .container = testing_container(pod), .image_uid = -1 };
		CHECK_STR_ROW(i, security_text(&a, &n, &in), t[i].want);
	}
}

TEST(security_apparmor_annotation)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct val pod = testing_pod(&a, "'securityContext':{'appArmorProfile':{'type':'RuntimeDefault'}},", "",
				     "'annotations':{'container.apparmor.security.beta.kubernetes.io/c':'localhost/old'},");
	struct cri_container_input in = { .pod = pod, .container = testing_container(pod), .image_uid = -1 };

	CHECK_STR(security_text(&a, &n, &in), "{" NAMESPACES ",'runAsUser':{}," UNCONFINED
		  ",'apparmor':{'profileType':'Localhost','localhostRef':'old'},'apparmorProfile':'localhost/old'}");
}

TEST(security_user_of_the_image)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct val pod = testing_pod(&a, "", "", "");
	struct cri_container_input in = { .pod = pod, .container = testing_container(pod), .image_uid = 100 };

	n.seccomp_default = true;
	CHECK_STR(security_text(&a, &n, &in), "{" NAMESPACES ",'runAsUser':{'value':100},'seccomp':{}}");
	in.image_uid = -1;
	in.image_user = STR("www");
	CHECK_STR(security_text(&a, &n, &in), "{" NAMESPACES ",'runAsUsername':'www','seccomp':{}}");
}

TEST(security_target_of_ephemeral_container)
{
	static const struct {
		const char *spec, *want;
	} t[] = {
		{ "", "{'pid':'TARGET','targetId':'abc','usernsOptions':{'mode':'NODE'}}" },
		{ "'shareProcessNamespace':true,", "{'usernsOptions':{'mode':'NODE'}}" },
		{ "'hostPID':true,", "{'pid':'NODE','usernsOptions':{'mode':'NODE'}}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		struct err err = ERR_INIT;
		struct val v, typed;
		CHECK_INT(cri_config_namespaces(&n, &a, testing_pod(&a, t[i].spec, "", ""), STR("abc"), &v, &err), 0);
		CHECK_INT(cri_config_typed(&a, v, TYPE(cri_v1, NamespaceOption), &typed, &err), 0);
		CHECK_STR_ROW(i, testing_text(&a, typed), t[i].want);
	}
}

static bool has(struct val list, const char *text)
{
	VAL_EACH(i, list)
		if (str_eq(val_as_str(*i), str_of(text)))
			return true;
	return false;
}

TEST(security_proc_is_masked_unless_asked_for)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct err err = ERR_INIT;
	struct val pod = testing_pod(&a, "", "", ""), bare = testing_pod(&a, "", "'securityContext':{'procMount':'Unmasked'},", ""), v;
	struct cri_container_input in = { .pod = pod, .container = testing_container(pod), .image_uid = -1 };

	CHECK_INT(cri_config_container_security(&n, &a, &in, &v, &err), 0);
	CHECK(has(val_get(v, maskedPaths), "/proc/kcore") && has(val_get(v, maskedPaths), "/sys/devices/virtual/powercap"));
	CHECK(has(val_get(v, readonlyPaths), "/proc/sysrq-trigger"));
	in = (struct cri_container_input){ .pod = bare, .container = testing_container(bare), .image_uid = -1 };
	CHECK_INT(cri_config_container_security(&n, &a, &in, &v, &err), 0);
	CHECK_INT(val_len(val_get(v, maskedPaths)) + val_len(val_get(v, readonlyPaths)), 0);
}

TEST(security_non_root)
{
	static const struct {
		const char *spec, *container;
		int64_t uid;
		const char *user, *want;
	} t[] = {
		{ "", "", 0, "", "" },
		{ "'securityContext':{'runAsNonRoot':true},", "", 0, "",
		  "container has runAsNonRoot and image will run as root (pod: \"p_ns(u1)\", container: c)" },
		{ "'securityContext':{'runAsNonRoot':true},", "", -1, "",
		  "container has runAsNonRoot and image will run as root (pod: \"p_ns(u1)\", container: c)" },
		{ "'securityContext':{'runAsNonRoot':true},", "", 1000, "", "" },
		{ "'securityContext':{'runAsNonRoot':true},", "", -1, "www",
		  "container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root (pod: \"p_ns(u1)\", container: c)" },
		{ "'securityContext':{'runAsNonRoot':true},", "'securityContext':{'runAsUser':5},", 0, "", "" },
		{ "'securityContext':{'runAsNonRoot':true,'runAsUser':5},", "'securityContext':{'runAsUser':0},", 7, "",
		  "container's runAsUser breaks non-root policy (pod: \"p_ns(u1)\", container: c)" },
		{ "'securityContext':{'runAsNonRoot':true},", "'securityContext':{'runAsNonRoot':false},", 0, "", "" },
		{ "'securityContext':{'runAsNonRoot':true},", "", 4294967295, "",
		  "container has runAsNonRoot and image has an invalid user id (4294967295). (Must be 1-(2147483647)): must be between 0 and "
		  "2147483647, inclusive (pod: \"p_ns(u1)\", container: c)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct val pod = testing_pod(&a, t[i].spec, t[i].container, "");
		struct cri_container_input in = { .pod = pod, .container = testing_container(pod), .image_uid = t[i].uid,
						  .image_user = str_of(t[i].user) };
		CHECK_ROW(i, (cri_config_check_non_root(&in, &err) < 0) == (t[i].want[0] != '\0'));
		CHECK_STR_ROW(i, err_str(&err), t[i].want);
	}
}

static struct val extra(void *arg, struct arena *a, struct val pod)
{
	(void)arg;
	(void)pod;
	return LIST(a, val_of_int(99));
}

static int ids(void *arg, struct arena *a, struct val pod, struct val *ret, struct err *err)
{
	(void)pod;
	(void)err;
	*ret = testing_typed(a, NULL, arg);
	return 0;
}

TEST(security_of_sandbox)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_hooks hooks = { .extra_groups = extra, .user_namespace = ids,
				       .arg = "{'mode':'POD','uids':[{'hostId':65536,'length':65536}]}" };
	struct kubelet_node n = testing_node();
	struct err err = ERR_INIT;
	struct val v, typed;
	struct val pod = testing_pod(&a, "'hostUsers':false,'securityContext':{'runAsUser':0,'fsGroup':3,'supplementalGroups':[4]},"
				     "'initContainers':[{'name':'i','image':'i','securityContext':{'privileged':true}}],", "", "");

	n.hooks = &hooks;
	CHECK_INT(cri_config_sandbox_security(&n, &a, pod, &v, &err), 0);
	CHECK_INT(cri_config_typed(&a, v, TYPE(cri_v1, LinuxSandboxSecurityContext), &typed, &err), 0);
	CHECK_STR(testing_text(&a, typed),
		  "{'namespaceOptions':{'pid':'CONTAINER','usernsOptions':{'uids':[{'hostId':65536,'length':65536}]}},'runAsUser':{},"
		  "'supplementalGroups':[3,99,4],'privileged':true,'seccomp':{}}");
}
