#include "kubelet/cri_config_testing.h"

TEST(downward_fields)
{
	static const struct {
		const char *path, *want;
	} t[] = {
		{ "metadata.name", "p" }, { "metadata.namespace", "ns" }, { "metadata.uid", "u1" },
		{ "spec.nodeName", "n1" }, { "spec.host", "n1" }, { "spec.serviceAccountName", "sa" },
		{ "status.hostIP", "192.168.0.7" }, { "status.hostIPs", "192.168.0.7,fd00::7" },
		{ "status.podIP", "10.1.0.2" }, { "status.podIPs", "10.1.0.2,fd01::2" },
		{ "metadata.labels", "a=\"1\"\nb=\"x\\\"y\"" },
		{ "metadata.labels['a']", "1" }, { "metadata.labels['none']", "" }, { "metadata.annotations['Big']", "yes" },
		{ "metadata.annotations", "Big=\"yes\"" },
		{ "metadata.labels['']", "! invalid key subscript in metadata.labels['']: name part must be non-empty;name part must consist of "
		  "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
		  "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')" },
		{ "metadata.name['a']", "! field label does not support subscript: metadata.name['a']" },
		{ "status.phase", "! unsupported fieldPath: status.phase" },
		{ "spec.image", "! field label not supported: spec.image" },
		{ "['a']", "! field label not supported: ['a']" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		struct err err = ERR_INIT;
		struct val pod = testing_pod(&a, "'nodeName':'n1','serviceAccountName':'sa',", "",
					     "'labels':{'b':'x\\'y','a':'1'},'annotations':{'Big':'yes'},");
		struct val ips = testing_typed(&a, NULL, "[{'ip':'fd01:0::2'},{'ip':'10.1.0.2'},{'ip':'10.1.0.3'}]");
		struct val selector = OBJECT(&a, F(apiVersion, VAL_LIT("v1")), F(fieldPath, VAL_STR(str_of(t[i].path))));
		str got = STR_NONE;
		n.address6 = STR("fd00::7");
		if (pod_field_value(&n, &a, pod, ips, selector, &got, &err) < 0)
			got = arena_join(&a, STR("! "), err_str(&err));
		CHECK_STR_ROW(i, got, t[i].want);
	}
}

TEST(downward_version_and_no_address_yet)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct val pod = testing_pod(&a, "", "", "");
	struct err err = ERR_INIT;
	str got;

	CHECK_INT(pod_field_value(&n, &a, pod, VAL_EMPTY, testing_typed(&a, NULL, "{'apiVersion':'v2','fieldPath':'metadata.name'}"), &got, &err),
		  -ERR_INVALID);
	CHECK_STR(err_str(&err), "unsupported pod version: v2");
	CHECK_INT(pod_field_value(&n, &a, pod, VAL_EMPTY, testing_typed(&a, NULL, "{'apiVersion':'v1','fieldPath':'status.podIPs'}"), &got, &err), 0);
	CHECK_STR(got, "");
}

TEST(downward_resources)
{
	static const struct {
		const char *selector, *want;
	} t[] = {
		{ "'resource':'limits.cpu'", "1" },
		{ "'resource':'limits.cpu','divisor':'1m'", "120" },
		{ "'resource':'requests.cpu','divisor':'1m'", "15" },
		{ "'resource':'limits.memory','divisor':'0'", "33554432" },
		{ "'resource':'limits.memory','divisor':'1Mi'", "32" },
		{ "'resource':'requests.memory','divisor':'10Mi'", "2" },
		/* What is not limited is limited by the node. */
		{ "'resource':'limits.ephemeral-storage','divisor':'1Gi'", "8" },
		{ "'resource':'requests.ephemeral-storage'", "0" },
		{ "'resource':'limits.hugepages-2Mi','divisor':'1Mi'", "4" },
		{ "'resource':'requests.hugepages-1Gi'", "0" },
		{ "'containerName':'free','resource':'limits.cpu','divisor':'1m'", "3500" },
		{ "'containerName':'free','resource':'limits.memory','divisor':'1Mi'", "900" },
		{ "'containerName':'free','resource':'requests.cpu'", "0" },
		{ "'containerName':'init','resource':'limits.cpu'", "0" },
		{ "'containerName':'nobody','resource':'limits.cpu'", "! container nobody not found" },
		{ "'resource':'limits.gpu'", "! unsupported container resource : limits.gpu" },
		{ "'resource':'cpu'", "! unsupported container resource : cpu" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct kubelet_node n = testing_node();
		struct err err = ERR_INIT;
		struct val pod = testing_typed(&a, TYPE(core_v1, Pod),
					       "{'spec':{'initContainers':[{'name':'init'}],'containers':[{'name':'c','resources':{"
					       "'requests':{'cpu':'15m','memory':'16Mi'},'limits':{'cpu':'120m','memory':'32Mi','hugepages-2Mi':'4Mi'}}},"
					       "{'name':'free'}]}}");
		str got = STR_NONE;
		n.allocatable = testing_typed(&a, NULL, "{'cpu':'3500m','memory':'900Mi','ephemeral-storage':'7.5Gi'}");
		if (container_resource_value(&n, &a, pod, testing_container(pod),
					     testing_typed(&a, NULL, arena_printf(&a, "{%s}", t[i].selector).p), &got, &err) < 0)
			got = arena_join(&a, STR("! "), err_str(&err));
		CHECK_STR_ROW(i, got, t[i].want);
	}
}

TEST(downward_limits_of_the_pod_go_before_those_of_the_node)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet_node n = testing_node();
	struct val pod = testing_pod(&a, "'resources':{'limits':{'cpu':'2'}},", "", "");
	struct err err = ERR_INIT;
	str got;

	CHECK_INT(container_resource_value(&n, &a, pod, testing_container(pod), testing_typed(&a, NULL, "{'resource':'limits.cpu'}"), &got, &err), 0);
	CHECK_STR(got, "2");
	CHECK_INT(container_resource_value(&n, &a, pod, testing_container(pod), testing_typed(&a, NULL, "{'resource':'limits.memory'}"), &got, &err), 0);
	CHECK_STR(got, "1048576000");
}
