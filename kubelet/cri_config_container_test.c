#include "codec/proto.h"
#include "kubelet/cri_config_testing.h"

static const struct cri_lookups nothing = { 0 };

TEST(container_hash_is_that_of_kubernetes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val c = testing_typed(&a, TYPE(core_v1, Container), "{'name':'test_container','image':'foo/image:v1','args':['x']}");

	/* The value that Kubernetes' own test has, from 1.31 on. */
	CHECK_INT(container_hash(c), 0x8e45cbd0);
	CHECK(container_hash(val_with(&a, c, VAL_LIT("foo/image:v2"), image)) != 0x8e45cbd0);
}

TEST(container_config_whole)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf wire = BUF_INIT(1 << 16);
	struct kubelet_node n = testing_node();
	struct err err = ERR_INIT;
	struct val config = VAL_EMPTY, back;
	str reason = STR("none");
	const struct cri_mount mounts[] = {
		{ .container_path = STR("/data"), .host_path = STR("/h"), .readonly = true, .propagation = STR("PROPAGATION_HOST_TO_CONTAINER") },
		{ .container_path = STR("/img"), .image = OBJECT(&a, F(image, VAL_LIT("i"))), .image_sub_path = STR("s") },
	};
	struct val pod = testing_pod(
		&a, "'terminationGracePeriodSeconds':30,",
		"'command':['sh','$(A)'],'args':['$(DEV)'],'workingDir':'/w','tty':true,'stdin':true,'env':[{'name':'A','value':'1'}],"
		"'terminationMessagePath':'/dev/termination-log','terminationMessagePolicy':'File',"
		"'ports':[{'containerPort':80,'protocol':'TCP'}],'lifecycle':{'preStop':{'exec':{'command':['a<b']}},'stopSignal':'SIGRTMIN+3'},",
		"'deletionGracePeriodSeconds':5,");
	struct cri_container_input in = {
		.pod = pod, .container = testing_container(pod), .attempt = 2, .image_ref = STR("sha256:1"), .image_uid = 7, .mounts = mounts,
		.n_mounts = 2, .extra_env = testing_typed(&a, NULL, "[{'key':'DEV','value':'0'},{'key':'A','value':'dev'}]"),
		.devices = testing_typed(&a, NULL, "[{'containerPath':'/dev/x','hostPath':'/dev/y','permissions':'rw'}]"),
		.cdi_devices = testing_typed(&a, NULL, "[{'name':'v/c=d'}]"),
		.extra_annotations = testing_typed(&a, NULL, "{'io.kubernetes.container.hash':'forged','mine':'1'}"),
	};

	CHECK_INT(container_config_make(&n, &nothing, &a, &in, &config, &reason, &err), 0);
	CHECK_INT(proto_encode(&wire, config, TYPE(cri_v1, ContainerConfig), &err), 0);
	CHECK_INT(proto_decode(&a, buf_str(&wire), TYPE(cri_v1, ContainerConfig), &back, &err), 0);
	CHECK_STR(testing_text(&a, back), arena_str(&a, testing_text(&a, config)).p);
	config = val_without(&a, config, linux, securityContext, maskedPaths);
	config = val_without(&a, config, linux, resources, hugepageLimits);
	CHECK_STR(testing_text(&a, config),
		  "{'metadata':{'name':'c','attempt':2},'image':{'image':'sha256:1','userSpecifiedImage':'img'},'command':['sh','1'],'args':['0'],"
		  "'workingDir':'/w','envs':[{'key':'DEV','value':'0'},{'key':'A','value':'dev'},{'key':'A','value':'1'}],"
		  "'mounts':[{'containerPath':'/data','hostPath':'/h','readonly':true,'propagation':'PROPAGATION_HOST_TO_CONTAINER'},"
		  "{'containerPath':'/img','image':{'image':'i'},'imageSubPath':'s'}],"
		  "'devices':[{'containerPath':'/dev/x','hostPath':'/dev/y','permissions':'rw'}],"
		  "'labels':{'io.kubernetes.container.name':'c','io.kubernetes.pod.name':'p','io.kubernetes.pod.namespace':'ns',"
		  "'io.kubernetes.pod.uid':'u1'},'annotations':{'io.kubernetes.container.hash':'aeae6188',"
		  "'io.kubernetes.container.ports':'[{\\'containerPort\\':80,\\'protocol\\':\\'TCP\\'}]',"
		  "'io.kubernetes.container.preStopHandler':'{\\'exec\\':{\\'command\\':[\\'a\\\\u003cb\\']}}',"
		  "'io.kubernetes.container.restartCount':'2','io.kubernetes.container.terminationMessagePath':'/dev/termination-log',"
		  "'io.kubernetes.container.terminationMessagePolicy':'File','io.kubernetes.pod.deletionGracePeriod':'5',"
		  "'io.kubernetes.pod.terminationGracePeriod':'30','mine':'1'},'logPath':'c/2.log','stdin':true,'tty':true,"
		  "'linux':{'resources':{'cpuPeriod':100000,'cpuShares':2,'oomScoreAdj':1000},"
		  "'securityContext':{'namespaceOptions':{'pid':'CONTAINER','usernsOptions':{'mode':'NODE'}},'runAsUser':{'value':7},"
		  "'readonlyPaths':['/proc/bus','/proc/fs','/proc/irq','/proc/sys','/proc/sysrq-trigger'],'seccomp':{'profileType':'Unconfined'}}},"
		  "'CDIDevices':[{'name':'v/c=d'}],'stopSignal':'SIGRTMINPLUS3'}");
	CHECK_STR(reason, "none");
}

static int ids(void *arg, struct arena *a, struct val pod, struct val *ret, struct err *err)
{
	(void)arg;
	(void)pod;
	(void)err;
	*ret = testing_typed(a, NULL, "{'mode':'POD','uids':[{'hostId':65536,'length':65536}],'gids':[{'hostId':131072,'length':65536}]}");
	return 0;
}

TEST(container_mounts_have_the_ids_of_the_user_namespace)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct kubelet_hooks hooks = { .user_namespace = ids };
	struct kubelet_node n = testing_node();
	struct err err = ERR_INIT;
	struct val config = VAL_EMPTY;
	str reason;
	const struct cri_mount mount = { .container_path = STR("/data"), .host_path = STR("/h") };
	struct val pod = testing_pod(&a, "'hostUsers':false,", "", "");
	struct cri_container_input in = { .pod = pod, .container = testing_container(pod), .image_uid = 0, .mounts = &mount, .n_mounts = 1 };

	n.hooks = &hooks;
	CHECK_INT(container_config_make(&n, &nothing, &a, &in, &config, &reason, &err), 0);
	CHECK_STR(testing_text(&a, val_get(config, mounts)),
		  "[{'containerPath':'/data','hostPath':'/h','uidMappings':[{'hostId':65536,'length':65536}],"
		  "'gidMappings':[{'hostId':131072,'length':65536}]}]");
}

TEST(container_config_errors_have_a_reason)
{
	static const struct {
		const char *spec, *container, *want;
	} t[] = {
		{ "'securityContext':{'runAsNonRoot':true},", "",
		  "container has runAsNonRoot and image will run as root (pod: \"p_ns(u1)\", container: c)" },
		{ "'hostname':'-',", "", NULL },
		{ "", "'envFrom':[{'secretRef':{'name':'se'}}],", "couldn't get secret ns/se, no kubeClient defined" },
		{ "", "'securityContext':{'seccompProfile':{'type':'Localhost'}},", "localhostProfile must be set if seccompProfile type is Localhost." },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		struct err err = ERR_INIT;
		struct val config;
		str reason = STR_NONE;
		struct val pod = testing_pod(&a, t[i].spec, t[i].container, "");
		struct cri_container_input in = { .pod = pod, .container = testing_container(pod), .image_uid = -1 };
		CHECK_ROW(i, container_config_make(&n, &nothing, &a, &in, &config, &reason, &err) < 0);
		CHECK_STR_ROW(i, reason, "CreateContainerConfigError");
		if (t[i].want)
			CHECK_STR_ROW(i, err_str(&err), t[i].want);
	}
}

TEST(container_log_paths)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();

	CHECK_STR(container_log_path(&a, STR("c"), 4), "c/4.log");
	CHECK_STR(pod_log_folder(&n, &a, testing_pod(&a, "", "", "")), "/var/log/pods/ns_p_u1");
}
