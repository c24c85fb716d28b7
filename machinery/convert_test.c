#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/convert_priv.h"
#include "machinery/testing.h"

static str convert_text(struct arena *a, const char *object, const struct type *to)
{
	const struct type *from;
	struct val v;
	struct err err = ERR_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	if (json_decode_object(a, testing_json(a, object), NULL, &v, &from, &err) < 0 || !from)
		fail_msg("%s: %s", object, err.msg);
	if (convert_object(a, v, from, to, &v, &err) < 0)
		return testing_error(a, &err);
	CHECK(json_encode(&b, v, &(struct json_encode_options){ .type = to, .plain = true }, NULL) == 0);
	return testing_swap(a, buf_str(&b), '"', '\'');
}

struct pair_row {
	const struct type *to;
	const char *object, *want;
};

static void check_rows(const struct pair_row *rows, size_t n)
{
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < n; i++) {
		CHECK_STR_ROW(i, convert_text(&a, rows[i].object, rows[i].to), rows[i].want);
		arena_reset(&a);
	}
	arena_done(&a);
}

#define META "'metadata':{'name':'x','namespace':'d'}"

TEST(convert_events_between_their_groups)
{
	static const struct pair_row rows[] = {
		{ .to = TYPE(core_v1, Event),
		  .object = "{'kind':'Event','apiVersion':'events.k8s.io/v1'," META ",'eventTime':'2024-01-02T03:04:05.000006Z',"
			    "'reportingController':'c','reportingInstance':'i','action':'a','reason':'r','regarding':{'kind':'Pod','name':'p'},"
			    "'note':'n','type':'Normal','deprecatedSource':{'component':'s'},"
			    "'deprecatedFirstTimestamp':'2024-01-02T03:04:05Z','deprecatedCount':3}",
		  .want = "{'kind':'Event','apiVersion':'v1'," META ",'involvedObject':{'kind':'Pod','name':'p'},'reason':'r','message':'n',"
			  "'source':{'component':'s'},'firstTimestamp':'2024-01-02T03:04:05Z','lastTimestamp':null,'count':3,'type':'Normal',"
			  "'eventTime':'2024-01-02T03:04:05.000006Z','action':'a','reportingComponent':'c','reportingInstance':'i'}" },
		{ .to = TYPE(events_v1, Event),
		  .object = "{'kind':'Event','apiVersion':'v1'," META ",'involvedObject':{'name':'p'},'message':'n','count':2,"
			    "'lastTimestamp':'2024-01-02T03:04:05Z','reportingComponent':'c','series':{'count':2}}",
		  .want = "{'kind':'Event','apiVersion':'events.k8s.io/v1'," META ",'eventTime':null,'series':{'count':2,'lastObservedTime':null},"
			  "'reportingController':'c','regarding':{'name':'p'},'note':'n','deprecatedSource':{},"
			  "'deprecatedFirstTimestamp':null,'deprecatedLastTimestamp':'2024-01-02T03:04:05Z','deprecatedCount':2}" },
	};
	check_rows(rows, ARRAY_LEN(rows));
}

#define CLAIM "{'kind':'ResourceClaim','apiVersion':'resource.k8s.io/"

TEST(convert_resources_of_devices)
{
	static const struct pair_row rows[] = {
		{ .to = TYPE(resource_v1, ResourceClaim),
		  .object = CLAIM "v1beta1'," META ",'spec':{'devices':{'requests':[{'name':'a','deviceClassName':'gpu','count':2},"
				  "{'name':'b','firstAvailable':[{'name':'s','deviceClassName':'c'}]}]}}}",
		  .want = CLAIM "v1'," META ",'spec':{'devices':{'requests':[{'name':'a','exactly':{'deviceClassName':'gpu','count':2}},"
				"{'name':'b','firstAvailable':[{'name':'s','deviceClassName':'c'}]}]}},'status':{}}" },
		{ .to = TYPE(resource_v1beta1, ResourceClaim),
		  .object = CLAIM "v1'," META ",'spec':{'devices':{'requests':[{'name':'a','exactly':{'deviceClassName':'gpu','count':2}}]}}}",
		  .want = CLAIM "v1beta1'," META ",'spec':{'devices':{'requests':[{'name':'a','deviceClassName':'gpu','count':2}]}},'status':{}}" },
		{ .to = TYPE(resource_v1beta2, ResourceClaim),
		  .object = CLAIM "v1'," META ",'spec':{'devices':{'requests':[{'name':'a','exactly':{'deviceClassName':'gpu'}}]}}}",
		  .want = CLAIM "v1beta2'," META ",'spec':{'devices':{'requests':[{'name':'a','exactly':{'deviceClassName':'gpu'}}]}},"
				"'status':{}}" },
		{ .to = TYPE(resource_v1beta1, ResourceSlice),
		  .object = "{'kind':'ResourceSlice','apiVersion':'resource.k8s.io/v1','metadata':{'name':'x'},'spec':{'driver':'d',"
			    "'pool':{'name':'p','generation':1,'resourceSliceCount':1},'nodeName':'n','devices':[{'name':'e'},"
			    "{'name':'f','attributes':{'k':{'int':1}}}]}}",
		  .want = "{'kind':'ResourceSlice','apiVersion':'resource.k8s.io/v1beta1','metadata':{'name':'x'},'spec':{'driver':'d',"
			  "'pool':{'name':'p','generation':1,'resourceSliceCount':1},'nodeName':'n','devices':[{'name':'e','basic':{}},"
			  "{'name':'f','basic':{'attributes':{'k':{'int':1}}}}]}}" },
		{ .to = TYPE(resource_v1, ResourceSlice),
		  .object = "{'kind':'ResourceSlice','apiVersion':'resource.k8s.io/v1beta1','metadata':{'name':'x'},'spec':{'driver':'d',"
			    "'pool':{'name':'p','generation':1,'resourceSliceCount':1},'devices':[{'name':'f','basic':{'nodeName':'n'}}]}}",
		  .want = "{'kind':'ResourceSlice','apiVersion':'resource.k8s.io/v1','metadata':{'name':'x'},'spec':{'driver':'d',"
			  "'pool':{'name':'p','generation':1,'resourceSliceCount':1},'devices':[{'name':'f','nodeName':'n'}]}}" },
	};
	check_rows(rows, ARRAY_LEN(rows));
}

#define HPA "{'kind':'HorizontalPodAutoscaler','apiVersion':'autoscaling/"
#define REF "'scaleTargetRef':{'kind':'Deployment','name':'w'}"

TEST(convert_autoscalers)
{
	static const struct pair_row rows[] = {
		{ .to = TYPE(autoscaling_v2, HorizontalPodAutoscaler),
		  .object = HPA "v1'," META ",'spec':{" REF ",'maxReplicas':3}}",
		  .want = HPA "v2'," META ",'spec':{" REF ",'maxReplicas':3,'metrics':[{'type':'Resource','resource':{'name':'cpu',"
			      "'target':{'type':'Utilization','averageUtilization':80}}}]},'status':{'desiredReplicas':0,'currentMetrics':null}}" },
		{ .to = TYPE(autoscaling_v2, HorizontalPodAutoscaler),
		  .object = HPA "v1'," META ",'spec':{" REF ",'maxReplicas':3,'targetCPUUtilizationPercentage':50},"
				"'status':{'currentReplicas':2,'desiredReplicas':3,'currentCPUUtilizationPercentage':90}}",
		  .want = HPA "v2'," META ",'spec':{" REF ",'maxReplicas':3,'metrics':[{'type':'Resource','resource':{'name':'cpu',"
			      "'target':{'type':'Utilization','averageUtilization':50}}}]},'status':{'currentReplicas':2,'desiredReplicas':3,"
			      "'currentMetrics':[{'type':'Resource','resource':{'name':'cpu','current':{'averageUtilization':90}}}]}}" },
		{ .to = TYPE(autoscaling_v1, HorizontalPodAutoscaler),
		  .object = HPA "v2','metadata':{'name':'x','annotations':{'a':'b','autoscaling.alpha.kubernetes.io/metrics':'[]'}},"
				"'spec':{" REF ",'maxReplicas':3,'metrics':[{'type':'Resource','resource':{'name':'cpu','target':"
				"{'type':'Utilization','averageUtilization':40}}}]}}",
		  .want = HPA "v1','metadata':{'name':'x','annotations':{'a':'b'}},'spec':{" REF ",'maxReplicas':3,"
			      "'targetCPUUtilizationPercentage':40},'status':{'currentReplicas':0,'desiredReplicas':0}}" },
	};
	check_rows(rows, ARRAY_LEN(rows));
}

/* Everything that version 1 has no field for, through version 1 and back. */
TEST(convert_autoscalers_keep_all_in_annotations)
{
	static const char object[] = HPA
		"v2'," META ",'spec':{" REF ",'maxReplicas':3,'metrics':["
		"{'type':'Object','object':{'describedObject':{'kind':'Service','name':'s'},'target':{'type':'AverageValue','averageValue':'2'},"
		"'metric':{'name':'m','selector':{'matchLabels':{'a':'b'}}}}},"
		"{'type':'Object','object':{'describedObject':{'kind':'Service','name':'s'},'target':{'type':'Value','value':'3'},"
		"'metric':{'name':'m'}}},"
		"{'type':'Pods','pods':{'metric':{'name':'m'},'target':{'type':'AverageValue','averageValue':'10m'}}},"
		"{'type':'Resource','resource':{'name':'memory','target':{'type':'AverageValue','averageValue':'1Gi'}}},"
		"{'type':'ContainerResource','containerResource':{'name':'memory','target':{'type':'Utilization','averageUtilization':7},"
		"'container':'c'}},"
		"{'type':'External','external':{'metric':{'name':'q'},'target':{'type':'Value','value':'30'}}},"
		"{'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization','averageUtilization':40}}}],"
		"'behavior':{'scaleDown':{'stabilizationWindowSeconds':300,'selectPolicy':'Max',"
		"'policies':[{'type':'Pods','value':4,'periodSeconds':15}],'tolerance':'100m'}}},"
		"'status':{'currentReplicas':1,'desiredReplicas':2,'currentMetrics':["
		"{'type':'Resource','resource':{'name':'cpu','current':{'averageValue':'5m','averageUtilization':33}}},"
		"{'type':'External','external':{'metric':{'name':'q'},'current':{'value':'31'}}}],"
		"'conditions':[{'type':'AbleToScale','status':'True','lastTransitionTime':'2024-01-02T03:04:05Z','reason':'R'}]}}";
	static const char annotations[] =
		"{'autoscaling.alpha.kubernetes.io/behavior':'{\\'ScaleUp\\':null,\\'ScaleDown\\':{\\'StabilizationWindowSeconds\\':300,"
		"\\'SelectPolicy\\':\\'Max\\',\\'Policies\\':[{\\'Type\\':\\'Pods\\',\\'Value\\':4,\\'PeriodSeconds\\':15}],"
		"\\'Tolerance\\':\\'100m\\'}}',"
		"'autoscaling.alpha.kubernetes.io/conditions':'[{\\'type\\':\\'AbleToScale\\',\\'status\\':\\'True\\',"
		"\\'lastTransitionTime\\':\\'2024-01-02T03:04:05Z\\',\\'reason\\':\\'R\\'}]',"
		"'autoscaling.alpha.kubernetes.io/current-metrics':'[{\\'type\\':\\'Resource\\',\\'resource\\':{\\'name\\':\\'cpu\\',"
		"\\'currentAverageUtilization\\':33,\\'currentAverageValue\\':\\'5m\\'}},{\\'type\\':\\'External\\',\\'external\\':"
		"{\\'metricName\\':\\'q\\',\\'currentValue\\':\\'31\\'}}]',"
		"'autoscaling.alpha.kubernetes.io/metrics':'[{\\'type\\':\\'Object\\',\\'object\\':{\\'target\\':{\\'kind\\':\\'Service\\',"
		"\\'name\\':\\'s\\'},\\'metricName\\':\\'m\\',\\'targetValue\\':\\'0\\',\\'selector\\':{\\'matchLabels\\':{\\'a\\':\\'b\\'}},"
		"\\'averageValue\\':\\'2\\'}},{\\'type\\':\\'Object\\',\\'object\\':{\\'target\\':{\\'kind\\':\\'Service\\',\\'name\\':\\'s\\'},"
		"\\'metricName\\':\\'m\\',\\'targetValue\\':\\'3\\'}},{\\'type\\':\\'Pods\\',\\'pods\\':{\\'metricName\\':\\'m\\',"
		"\\'targetAverageValue\\':\\'10m\\'}},{\\'type\\':\\'Resource\\',\\'resource\\':{\\'name\\':\\'memory\\',"
		"\\'targetAverageValue\\':\\'1Gi\\'}},{\\'type\\':\\'ContainerResource\\',\\'containerResource\\':{\\'name\\':\\'memory\\',"
		"\\'targetAverageUtilization\\':7,\\'container\\':\\'c\\'}},{\\'type\\':\\'External\\',\\'external\\':{\\'metricName\\':\\'q\\',"
		"\\'targetValue\\':\\'30\\'}}]'}";
	struct arena a = ARENA_INIT;
	struct val v2, v1, back;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	const struct type *old = TYPE(autoscaling_v1, HorizontalPodAutoscaler), *new = TYPE(autoscaling_v2, HorizontalPodAutoscaler);

	v2 = testing_typed(&a, new, object);
	CHECK(convert_object(&a, v2, new, old, &v1, NULL) == 0);
	CHECK_STR(testing_text(&a, val_get(v1, metadata, annotations)), annotations);
	CHECK_INT(val_int(v1, spec, targetCPUUtilizationPercentage), 40);
	CHECK_INT(val_int(v1, status, currentCPUUtilizationPercentage), 33);
	CHECK(convert_object(&a, v1, old, new, &back, NULL) == 0);
	CHECK(json_encode(&b, back, &(struct json_encode_options){ .type = new, .plain = true }, NULL) == 0);
	CHECK_STR(testing_swap(&a, buf_str(&b), '"', '\''), object);
	arena_done(&a);
}

/* What people write into annotations may be anything. */
TEST(convert_autoscalers_pass_over_bad_annotations)
{
	static const char *const texts[] = { "", "nonsense", "{}", "[1]", "[{'type':5}]", "null", "[null]" };
	struct arena a = ARENA_INIT;
	const struct type *old = TYPE(autoscaling_v1, HorizontalPodAutoscaler), *new = TYPE(autoscaling_v2, HorizontalPodAutoscaler);
	static const char *const names[] = { "metrics", "current-metrics", "conditions", "behavior" };

	for (size_t i = 0; i < ARRAY_LEN(texts) * ARRAY_LEN(names); i++) {
		struct val v = testing_typed(&a, old, HPA "v1'," META ",'spec':{" REF ",'maxReplicas':3}}"), back;
		str name = arena_printf(&a, "autoscaling.alpha.kubernetes.io/%s", names[i % ARRAY_LEN(names)]);
		struct val annotations = val_put(&a, VAL_EMPTY, atom_make(&a, name),
						 VAL_STR(testing_json(&a, texts[i / ARRAY_LEN(names)])));
		v = val_with(&a, v, annotations, metadata, annotations);
		CHECK_ROW(i, convert_object(&a, v, old, new, &back, NULL) == 0);
		CHECK_ROW(i, !val_has(back, metadata, annotations));
		CHECK_ROW(i, val_len(val_get(back, spec, metrics)) >= 1);
		arena_reset(&a);
	}
	arena_done(&a);
}

/* ---- versions without a rule have the same fields ---- */

struct compared {
	const struct type *seen[128][2];
	size_t n;
};

static void check_alike(struct compared *p, const struct type *x, const struct type *y)
{
	if (x == y)
		return;
	for (size_t i = 0; i < p->n; i++)
		if (p->seen[i][0] == x && p->seen[i][1] == y)
			return;
	CHECK(p->n < ARRAY_LEN(p->seen));
	p->seen[p->n][0] = x;
	p->seen[p->n++][1] = y;
	CHECK_STR(x->name, y->name.p);
	CHECK_INT(x->n_fields, y->n_fields);
	for (size_t i = 0; i < x->n_fields; i++) {
		const struct field *f = &x->fields[i], *g = type_field(y, f->name);
		CHECK(g && f->kind == g->kind && f->shape == g->shape);
		if (f->type)
			check_alike(p, f->type, g->type);
	}
}

TEST(convert_without_a_rule_loses_nothing)
{
	struct compared p = { .n = 0 };
	size_t alike = 0;

	for (size_t i = 0; i < schema_n_resources; i++)
		for (size_t j = 0; j < schema_n_resources; j++) {
			const struct resource *x = &schema_resources[i], *y = &schema_resources[j];
			if (i == j || !x->key_prefix.n || !str_eq(x->key_prefix, y->key_prefix) || convert_rule_of(x->type, y->type))
				continue;
			p.n = 0;
			check_alike(&p, x->type, y->type);
			alike++;
		}
	CHECK(alike > 20);
}

TEST(convert_refuses_what_is_no_version_of_the_same)
{
	static const struct pair_row rows[] = {
		{ .to = TYPE(core_v1, Pod), .object = "{'kind':'ConfigMap','apiVersion':'v1'," META "}",
		  .want = "! core/v1.ConfigMap cannot be converted to core/v1.Pod" },
		{ .to = TYPE(core_v1, Event), .object = "{'kind':'Event','apiVersion':'audit.k8s.io/v1','level':'None'}",
		  .want = "! audit/v1.Event cannot be converted to core/v1.Event" },
		{ .to = TYPE(networking_v1, Ingress),
		  .object = "{'kind':'Ingress','apiVersion':'networking.k8s.io/v1beta1'," META ",'spec':{'backend':{'serviceName':'s'}}}",
		  .want = "! networking/v1beta1.Ingress cannot be converted to networking/v1.Ingress: unknown field 'spec.backend'" },
		{ .to = TYPE(networking_v1, IPAddress),
		  .object = "{'kind':'IPAddress','apiVersion':'networking.k8s.io/v1beta1','metadata':{'name':'1.2.3.4'},"
			    "'spec':{'parentRef':{'resource':'services','name':'s'}}}",
		  .want = "{'kind':'IPAddress','apiVersion':'networking.k8s.io/v1','metadata':{'name':'1.2.3.4'},"
			  "'spec':{'parentRef':{'resource':'services','name':'s'}}}" },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_STR_ROW(i, testing_swap(&a, convert_text(&a, rows[i].object, rows[i].to), '"', '\''), rows[i].want);
	arena_done(&a);
}

TEST(convert_stored_definitions)
{
	static const char *const rows[][2] = {
		{ "'version':'v1','scope':'Namespaced','names':{'plural':'ws','kind':'W'},"
		  "'validation':{'openAPIV3Schema':{'type':'object'}},'subresources':{'status':{}},"
		  "'additionalPrinterColumns':[{'name':'A','type':'string','JSONPath':'.a'}],"
		  "'versions':[{'name':'v1','served':true,'storage':true},{'name':'v2','served':true,'storage':false}],"
		  "'conversion':{'strategy':'Webhook','webhookClientConfig':{'url':'https://x'},'conversionReviewVersions':['v1']},"
		  "'preserveUnknownFields':false",
		  "'names':{'plural':'ws','kind':'W'},'scope':'Namespaced','versions':["
		  "{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object'}},'subresources':{'status':{}},"
		  "'additionalPrinterColumns':[{'name':'A','type':'string','jsonPath':'.a'}]},"
		  "{'name':'v2','served':true,'schema':{'openAPIV3Schema':{'type':'object'}},'subresources':{'status':{}},"
		  "'additionalPrinterColumns':[{'name':'A','type':'string','jsonPath':'.a'}]}],"
		  "'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'url':'https://x'},'conversionReviewVersions':['v1']}}" },
		{ "'version':'v1','scope':'Cluster','names':{'plural':'ws','kind':'W'}",
		  "'names':{'plural':'ws','kind':'W'},'scope':'Cluster','versions':[{'name':'v1','served':true,'storage':true}],"
		  "'preserveUnknownFields':true" },
	};
	struct arena a = ARENA_INIT;
	const struct type *type;
	struct val v;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		str text = arena_printf(&a, "{'kind':'CustomResourceDefinition','apiVersion':'apiextensions.k8s.io/v1beta1','metadata':"
					    "{'name':'ws.g'},'spec':{'group':'g',%s}}", rows[i][0]);
		str want = arena_printf(&a, "{'kind':'CustomResourceDefinition','apiVersion':'apiextensions.k8s.io/v1','metadata':"
					    "{'name':'ws.g'},'spec':{'group':'g',%s}}", rows[i][1]);
		CHECK_ROW(i, convert_stored(&a, testing_tree(&a, text.p), &v, &type, NULL) == 0 && type);
		CHECK_STR_ROW(i, testing_text(&a, v), want.p);
	}
	CHECK(convert_stored(&a, testing_tree(&a, "{'kind':'CustomResourceDefinition','apiVersion':'other/v1beta1'}"), &v, &type, NULL) == 0);
	CHECK(!type);
	arena_done(&a);
}
