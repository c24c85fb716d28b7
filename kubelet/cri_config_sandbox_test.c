#include "codec/proto.h"
#include "kubelet/cri_config_testing.h"

/* The whole of it for a pod that says much. What is made is what would come out of the wire at the other end. */
TEST(sandbox_config_whole)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf wire = BUF_INIT(1 << 16);
	struct kubelet_node n = testing_node();
	struct err err = ERR_INIT;
	struct val config, back;
	struct val pod = testing_pod(
		&a, "'dnsPolicy':'ClusterFirst','securityContext':{'sysctls':[{'name':'net.core.somaxconn','value':'9'},{'name':'net/ipv4/conf/e.1/x','value':'1'}]},",
		"'ports':[{'name':'http','hostPort':8080,'containerPort':80,'protocol':'TCP','hostIP':'127.0.0.1'},"
		"{'name':'http','containerPort':81,'protocol':'TCP'},{'containerPort':53,'protocol':'UDP'},{'containerPort':53,'protocol':'UDP'},"
		"{'containerPort':53,'protocol':'UDP','hostIP':'::1'}],'resources':{'requests':{'cpu':'100m'}},",
		"'labels':{'app':'x','zz':'y'},'annotations':{'note':'n'},");

	n.cgroup_v2 = true;
	n.cluster_dns = LIST(&a, VAL_LIT("10.0.0.10"));
	CHECK_STR(testing_shown(&a, sandbox_config_make(&n, &a, pod, 3, &config, &err), config, &err),
		  "{'metadata':{'name':'p','uid':'u1','namespace':'ns','attempt':3},'hostname':'p','logDirectory':'/var/log/pods/ns_p_u1',"
		  "'dnsConfig':{'servers':['10.0.0.10'],'searches':['ns.svc.cluster.local','svc.cluster.local','cluster.local'],"
		  "'options':['ndots:5']},'portMappings':[{'containerPort':80,'hostPort':8080,'hostIp':'127.0.0.1'},"
		  "{'protocol':'UDP','containerPort':53},{'protocol':'UDP','containerPort':53,'hostIp':'::1'}],"
		  "'labels':{'app':'x','io.kubernetes.pod.name':'p','io.kubernetes.pod.namespace':'ns','io.kubernetes.pod.uid':'u1','zz':'y'},"
		  "'annotations':{'note':'n'},'linux':{'cgroupParent':'/kubepods/burstable/podu1',"
		  "'securityContext':{'namespaceOptions':{'pid':'CONTAINER','usernsOptions':{'mode':'NODE'}},'seccomp':{}},"
		  "'sysctls':{'net.core.somaxconn':'9','net.ipv4.conf.e/1.x':'1'},'overhead':{},"
		  "'resources':{'cpuPeriod':100000,'cpuShares':102,'unified':{'memory.oom.group':'1'}}}}");
	CHECK_INT(proto_encode(&wire, config, TYPE(cri_v1, PodSandboxConfig), &err), 0);
	CHECK_INT(proto_decode(&a, buf_str(&wire), TYPE(cri_v1, PodSandboxConfig), &back, &err), 0);
	CHECK_STR(testing_text(&a, back), arena_str(&a, testing_text(&a, config)).p);
}

TEST(sandbox_hostname)
{
#define LONG "a234567890b234567890c234567890d234567890e234567890f234567890" /* 60 */
	static const struct {
		const char *spec, *metadata, *want;
	} t[] = {
		{ "", "", "'p'" },
		{ "'hostname':'h',", "", "'h'" },
		{ "'hostname':'h','subdomain':'s',", "", "'h'" },
		{ "'hostname':'h','subdomain':'s','setHostnameAsFQDN':true,", "", "'h.s.ns.svc.cluster.local'" },
		{ "'setHostnameAsFQDN':true,", "", "'p'" },
		{ "'hostNetwork':true,'hostname':'h',", "", "null" },
		{ "'hostnameOverride':'over.example','hostname':'h','subdomain':'s','setHostnameAsFQDN':true,", "", "'over.example'" },
		{ "'hostname':'" LONG "','subdomain':'s','setHostnameAsFQDN':true,", "",
		  "! failed to construct FQDN from pod hostname and cluster domain, FQDN " LONG ".s.ns.svc.cluster.local is too long (64 characters is "
		  "the max, 83 characters requested)" },
		{ "'hostnameOverride':'" LONG "-a-bcd',", "", "'" LONG "-a'" }, /* cut at 63, and not to end so */
		{ "'hostname':'A.b',", "",
		  "! pod Hostname 'A.b' is not a valid DNS label: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
		  "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
		  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		struct err err = ERR_INIT;
		struct val config = VAL_EMPTY;
		int r = sandbox_config_make(&n, &a, testing_pod(&a, t[i].spec, "", t[i].metadata), 0, &config, &err);
		struct val hostname = val_get(config, hostname);
		str got = testing_shown(&a, r, val_exists(hostname) ? hostname : VAL_NULL_VALUE, &err);
		CHECK_STR_ROW(i, testing_swap(&a, got, '"', '\''), t[i].want);
	}
}

TEST(sandbox_cgroup_parent)
{
	static const struct {
		const char *root, *resources, *want;
	} t[] = {
		{ "", "", "/kubepods/besteffort/podu1" },
		{ "/", "", "/kubepods/besteffort/podu1" },
		{ "/c8s-x", "'resources':{'limits':{'cpu':'1'}},", "/c8s-x/kubepods/burstable/podu1" },
		{ "", "'resources':{'requests':{'cpu':'1','memory':'1'},'limits':{'cpu':'1','memory':'1'}},", "/kubepods/podu1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		n.cgroup_root = str_of(t[i].root);
		CHECK_STR_ROW(i, pod_cgroup_parent(&n, &a, testing_pod(&a, "", t[i].resources, "")), t[i].want);
	}
}
