#include "machinery/testing.h"
#include "machinery/validate_priv.h"

TEST(internal_form)
{
	static const struct {
		const struct type *type;
		const char *object, *want;
	} t[] = {
		{ TYPE(apps_v1, DeploymentStrategy), "{'type':'Foo'}", "{'Type':'Foo','RollingUpdate':null}" },
		{ TYPE(core_v1, SeccompProfile), "{'type':'RuntimeDefault','localhostProfile':'x'}",
		  "{'Type':'RuntimeDefault','LocalhostProfile':'x'}" },
		{ TYPE(policy_v1, PodDisruptionBudgetSpec),
		  "{'minAvailable':1,'maxUnavailable':'5%','selector':{'matchLabels':{'a':'b'}}}",
		  "{'MinAvailable':1,'Selector':{'matchLabels':{'a':'b'}},'MaxUnavailable':'5%',"
		  "'UnhealthyPodEvictionPolicy':null}" },
		{ TYPE(core_v1, HTTPGetAction), "{'port':80}",
		  "{'Path':'','Port':80,'Host':'','Scheme':'','HTTPHeaders':null}" },
		{ TYPE(core_v1, Toleration), "{'key':'a'}",
		  "{'Key':'a','Operator':'','Value':'','Effect':'','TolerationSeconds':null}" },
		{ TYPE(core_v1, RBDVolumeSource), "{'monitors':['m'],'image':'i'}",
		  "{'CephMonitors':['m'],'RBDImage':'i','FSType':'','RBDPool':'','RadosUser':'','Keyring':'',"
		  "'SecretRef':null,'ReadOnly':false}" },
		/* types of package meta are the same inside and outside */
		{ TYPE(meta_v1, LabelSelector), "{'matchExpressions':[{'operator':'In'}]}",
		  "{'matchExpressions':[{'key':'','operator':'In'}]}" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, testing_text(&a, internal_form(&a, t[i].type,
								testing_typed(&a, t[i].type, t[i].object))), t[i].want);
	arena_done(&a);
}

/* Flags of the host are part of the security context, and metadata is not a member of its own. */
TEST(internal_form_of_templates)
{
	struct arena a = ARENA_INIT;
	struct val template = testing_typed(&a, TYPE(core_v1, PodTemplateSpec),
					    "{'metadata':{'labels':{'a':'b'}},'spec':{'hostPID':true}}");
	str text = testing_text(&a, internal_form(&a, TYPE(core_v1, PodTemplateSpec), template));

	CHECK(str_starts(text, STR("{'labels':{'a':'b'},'Spec':{'Volumes':null,'InitContainers':null,'Containers':null,")));
	CHECK(str_find(text, STR("'SecurityContext':{'HostNetwork':false,'HostPID':true,'HostIPC':false,"
				 "'ShareProcessNamespace':null,")) > 0);
	CHECK(str_find(text, STR("'ServiceAccountName':''")) > 0 && str_find(text, STR("'ServiceAccount':")) < 0);
	arena_done(&a);
}

TEST(val_semantic_equal)
{
	static const struct {
		const struct type *type;
		const char *a, *b;
		bool want;
	} t[] = {
		{ TYPE(core_v1, ResourceRequirements), "{'limits':{'cpu':'1','memory':'1Ki'}}",
		  "{'limits':{'cpu':'1000m','memory':'1024'}}", true },
		{ TYPE(core_v1, ResourceRequirements), "{'limits':{'cpu':'1'}}", "{'limits':{'cpu':'1','memory':'1'}}",
		  false },
		{ TYPE(core_v1, ResourceRequirements), "{'limits':{}}", "{}", true },
		{ TYPE(core_v1, EnvVar), "{'name':'a','value':'1'}", "{'name':'a','value':'1000m'}", false },
		/* a pointer is nil or not, whatever it points to */
		{ TYPE(core_v1, PodSpec), "{'securityContext':{}}", "{}", false },
		{ TYPE(core_v1, PodSpec), "{'hostPID':false}", "{}", true },
		{ TYPE(core_v1, PodSpec), "{'shareProcessNamespace':false}", "{}", false },
		{ TYPE(core_v1, PodSpec), "{'containers':[]}", "{}", true },
		{ NULL, "{}", "[]", true },
		{ NULL, "['a']", "['b']", false },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val x = t[i].type ? testing_typed(&a, t[i].type, t[i].a) : testing_tree(&a, t[i].a);
		struct val y = t[i].type ? testing_typed(&a, t[i].type, t[i].b) : testing_tree(&a, t[i].b);
		CHECK_ROW(i, val_semantic_equal(t[i].type, x, y) == t[i].want);
		CHECK_ROW(i, val_semantic_equal(t[i].type, y, x) == t[i].want);
	}
	arena_done(&a);
}
