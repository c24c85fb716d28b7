#include "base/test.h"

#include "codec/atoms.h"
#include "codec/types.h"

TEST(schema_every_field_is_found_by_its_atom)
{
	for (size_t i = 0; i < schema_n_types; i++) {
		const struct type *t = schema_types[i];
		for (unsigned f = 0; f < t->n_fields; f++) {
			const struct field *field = &t->fields[f];
			CHECK_ROW(i, type_field(t, field->name) == field);
			CHECK_ROW(i, (field->kind == KIND_MESSAGE) == (field->type != NULL));
			CHECK_ROW(i, (field->kind == KIND_ENUM) == (field->facts->enum_values != NULL));
		}
		unsigned found = 0;
		for (atom name = 1; name <= ATOM_COUNT; name++)
			found += type_field(t, name) != NULL;
		CHECK_ROW(i, found == t->n_fields);
		CHECK_ROW(i, type_field(t, (atom)t) == NULL);
	}
}

/* Every number leads to one field of the type or of an embedded one. */
TEST(schema_wire_numbers_rise)
{
	for (size_t i = 0; i < schema_n_types; i++) {
		const struct type *t = schema_types[i];
		for (unsigned w = 0; w < t->n_wire; w++) {
			CHECK_ROW(i, w == 0 || t->wire[w].number > t->wire[w - 1].number);
			if (t->wire[w].embedded)
				continue;
			CHECK_ROW(i, t->wire[w].field < t->n_fields);
			CHECK_ROW(i, t->fields[t->wire[w].field].number == t->wire[w].number);
		}
	}
}

TEST(schema_types_are_found_by_name)
{
	for (size_t i = 0; i < schema_n_types; i++) {
		const struct type *t = schema_types[i];
		struct arena a = ARENA_INIT;
		str name = arena_printf(&a, STR_FMT "." STR_FMT, STR_ARG(t->package->name), STR_ARG(t->name));
		CHECK_ROW(i, schema_type(name) == t);
		if (t->flags & TYPE_KIND)
			CHECK_ROW(i, schema_kind(type_api_version(&a, t), t->name) == t);
		arena_done(&a);
	}
	CHECK(schema_type(STR("core/v1.PodSpec")) == TYPE(core_v1, PodSpec));
	CHECK(schema_type(STR("core/v1.Nothing")) == NULL);
	CHECK(schema_type(STR("PodSpec")) == NULL);
	CHECK(schema_type(STR("")) == NULL);
}

TEST(schema_kinds)
{
	static const struct {
		const char *api_version, *kind;
		const struct type *want;
	} rows[] = {
		{ "v1", "Pod", TYPE(core_v1, Pod) },
		{ "v1", "PodList", TYPE(core_v1, PodList) },
		{ "v1", "Status", TYPE(meta_v1, Status) },
		{ "v1", "Config", TYPE(clientcmd_v1, Config) },
		{ "apps/v1", "Deployment", TYPE(apps_v1, Deployment) },
		{ "apps/v1beta1", "Deployment", TYPE(apps_v1beta1, Deployment) },
		{ "networking.k8s.io/v1", "Ingress", TYPE(networking_v1, Ingress) },
		{ "apps/v1", "Pod", NULL },
		{ "v1", "PodSpec", NULL },
		{ "v1", "pod", NULL },
		{ "apps/v", "Deployment", NULL },
		{ "apps.v1", "Deployment", NULL },
		{ "", "", NULL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_ROW(i, schema_kind(str_of(rows[i].api_version), str_of(rows[i].kind)) == rows[i].want);
	CHECK(TYPE(core_v1, PodList)->flags & TYPE_LIST);
	CHECK(!(TYPE(core_v1, Pod)->flags & TYPE_LIST));
}

TEST(schema_fields)
{
	const struct field *f = type_field(TYPE(core_v1, Container), A_ports);
	CHECK_INT(f->number, 6);
	CHECK_INT(f->shape, SHAPE_LIST);
	CHECK(f->type == TYPE(core_v1, ContainerPort));
	CHECK(f->flags == (FIELD_MERGE | FIELD_MAP_LIST));
	CHECK_STR(f->facts->merge_key, "containerPort");
	CHECK(f->facts->map_keys[0] == A_containerPort && f->facts->map_keys[1] == A_protocol && f->facts->map_keys[2] == 0);

	f = type_field(TYPE(core_v1, ContainerPort), A_protocol);
	CHECK_INT(f->kind, KIND_STRING);
	CHECK_STR(f->facts->default_json, "\"TCP\"");
	CHECK_STR(f->facts->go_type, "v1.Protocol");
	CHECK_STR(f->facts->values[2], "SCTP");
	CHECK(f->facts->values[3].p == NULL);

	f = type_field(TYPE(core_v1, ResourceRequirements), A_limits);
	CHECK_INT(f->shape, SHAPE_MAP);
	CHECK_INT(f->kind, KIND_QUANTITY);
	CHECK_STR(f->facts->go_type, "v1.ResourceList");

	CHECK(type_field(TYPE(core_v1, Pod), A_metadata)->flags & FIELD_ALWAYS);
	CHECK(!(type_field(TYPE(meta_v1, ObjectMeta), A_creationTimestamp)->flags & FIELD_ALWAYS));
	CHECK(type_field(TYPE(core_v1, PodSpec), A_containers)->flags & FIELD_REQUIRED);
	CHECK(TYPE(core_v1, Pod)->fields[0].name == A_kind && TYPE(core_v1, Pod)->fields[1].name == A_apiVersion);
	CHECK(TYPE(meta_v1, LabelSelector)->flags & TYPE_ATOMIC);
	CHECK_STR(type_field(TYPE(resource_v1beta2, Device), A_capacity)->facts->go_type, "map[v1beta2.QualifiedName]v1beta2.DeviceCapacity");
}

TEST(schema_embedded_fields_stand_in_the_object_around_them)
{
	const struct type *t = TYPE(admissionregistration_v1, NamedRuleWithOperations);
	const struct field *f = type_field(t, A_apiGroups);
	CHECK(f && f->flags & FIELD_EMBEDDED);
	const struct wire *w = &t->wire[t->n_wire - 1];
	CHECK(w->number == 2 && w->embedded == TYPE(admissionregistration_v1, RuleWithOperations));
	w = &w->embedded->wire[w->embedded->n_wire - 1];
	CHECK(w->number == 2 && w->embedded == TYPE(admissionregistration_v1, Rule));
}

TEST(schema_zero_values)
{
	static const struct {
		const struct type *type;
		const char *json;
	} rows[] = {
		{ TYPE(core_v1, Pod), "{\"metadata\":{},\"spec\":{\"containers\":null},\"status\":{}}" },
		{ TYPE(core_v1, Container), "{\"name\":\"\",\"resources\":{}}" },
		{ TYPE(core_v1, ResourceFieldSelector), "{\"resource\":\"\",\"divisor\":\"0\"}" },
		{ TYPE(core_v1, Event), "{\"metadata\":{},\"involvedObject\":{},\"source\":{},\"firstTimestamp\":null,\"lastTimestamp\":null,"
					"\"eventTime\":null,\"reportingComponent\":\"\",\"reportingInstance\":\"\"}" },
		{ TYPE(core_v1, HTTPGetAction), "{\"port\":0}" },
		{ TYPE(meta_v1, ObjectMeta), "{}" },
		{ TYPE(apiextensions_v1, JSONSchemaPropsOrBool), "false" },
		{ TYPE(mvccpb, KeyValue), "{}" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_STR_ROW(i, rows[i].type->zero_json, rows[i].json);

	static const char meta[] = "\n\0\022\0\032\0\"\0*\0002\0008\0B";
	CHECK(str_eq(TYPE(meta_v1, ObjectMeta)->zero_wire, str_span(meta, sizeof(meta))));
	static const char selector[] = "\n\0\022\0\032\003\n\0010";
	CHECK(str_eq(TYPE(core_v1, ResourceFieldSelector)->zero_wire, str_span(selector, sizeof(selector) - 1)));
	static const char action[] = "\n\0\022\006\b\0\020\0\032\0\032\0\"";
	CHECK(str_eq(TYPE(core_v1, HTTPGetAction)->zero_wire, str_span(action, sizeof(action))));
	CHECK(TYPE(mvccpb, KeyValue)->zero_wire.n == 0);
}

static const struct resource *resource_find(const char *group, const char *version, const char *name)
{
	for (size_t i = 0; i < schema_n_resources; i++) {
		const struct resource *r = &schema_resources[i];
		if (str_eq(r->group, str_of(group)) && str_eq(r->version, str_of(version)) && str_eq(r->name, str_of(name)))
			return r;
	}
	return NULL;
}

TEST(schema_resources)
{
	const struct resource *r = resource_find("", "v1", "pods");
	CHECK(r && r->type == TYPE(core_v1, Pod));
	CHECK_INT(r->flags, RESOURCE_NAMESPACED | RESOURCE_PROTOBUF | RESOURCE_DEFAULT);
	CHECK_INT(r->verbs, 0xff);
	CHECK_STR(r->singular, "pod");
	CHECK_STR(r->short_names[0], "po");
	CHECK(r->short_names[1].p == NULL);
	CHECK_STR(r->key_prefix, "pods");
	CHECK_STR(r->storage_version, "v1");

	r = resource_find("", "v1", "pods/eviction");
	CHECK(r && r->type == TYPE(policy_v1, Eviction));
	CHECK_INT(r->verbs, VERB_CREATE);
	CHECK_STR(r->response_group, "policy");
	CHECK_STR(r->response_version, "v1");
	CHECK(r->key_prefix.n == 0);

	r = resource_find("", "v1", "nodes");
	CHECK_STR(r->key_prefix, "minions");
	CHECK(!(r->flags & RESOURCE_NAMESPACED));

	r = resource_find("resource.k8s.io", "v1beta1", "deviceclasses");
	CHECK_STR(r->storage_version, "resource.k8s.io/v1");
	CHECK(!(r->flags & RESOURCE_DEFAULT));
	CHECK(!(resource_find("apiextensions.k8s.io", "v1", "customresourcedefinitions")->flags & RESOURCE_PROTOBUF));
}

TEST(schema_discovery_order)
{
	static const char *const first[] = { "apiregistration.k8s.io/v1", "/v1", "apps/v1", "events.k8s.io/v1", "authentication.k8s.io/v1" };
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++) {
		str group, version;
		CHECK(str_cut(str_of(first[i]), '/', &group, &version));
		CHECK_ROW(i, str_eq(schema_api_versions[i].group, group) && str_eq(schema_api_versions[i].version, version));
	}
	CHECK_STR(schema_resources[0].name, "apiservices");
}

TEST(schema_rpcs)
{
	CHECK_STR(rpc_RuntimeService_RunPodSandbox.path, "/runtime.v1.RuntimeService/RunPodSandbox");
	CHECK(rpc_RuntimeService_RunPodSandbox.request == TYPE(cri_v1, RunPodSandboxRequest));
	CHECK(!rpc_RuntimeService_RunPodSandbox.stream_request && !rpc_RuntimeService_RunPodSandbox.stream_response);
	CHECK(rpc_Watch_Watch.stream_request && rpc_Watch_Watch.stream_response);
	CHECK_STR(rpc_dra_v1_DRAPlugin_NodePrepareResources.path, "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources");
	const struct field *f = type_field(TYPE(etcdserverpb, RangeRequest), A_sortOrder);
	CHECK_INT(f->kind, KIND_ENUM);
	CHECK_STR(f->facts->enum_values[2].name, "DESCEND");
	CHECK(f->facts->enum_values[3].name.n == 0);
	CHECK(type_field(TYPE(etcdserverpb, Compare), A_modRevision)->flags & FIELD_ONEOF);
}

TEST(atom_names)
{
	struct arena a = ARENA_INIT;
	for (atom name = 1; name <= ATOM_COUNT; name++)
		CHECK_ROW(name, atom_find(atom_str(name)) == name);
	CHECK(atom_find(STR("")) == 0);
	CHECK(atom_find(STR("noSuchNameAnywhere")) == 0);
	CHECK(atom_make(&a, STR("metadata")) == A_metadata);
	CHECK_STR(atom_str(A__ref), "$ref");
	CHECK_STR(atom_str(A_x_kubernetes_validations), "x-kubernetes-validations");
	CHECK_STR(atom_str(A__Bool), "bool");
	atom other = atom_make(&a, STR("example.com/label"));
	CHECK(other >= ATOM_LIMIT);
	CHECK_STR(atom_str(other), "example.com/label");
	CHECK(atom_eq(other, atom_make(&a, STR("example.com/label"))));
	CHECK_STR(atom_str(atom_make(&a, STR(""))), "");
	arena_done(&a);
}

TEST(schema_every_type_is_described)
{
	for (size_t i = 0; i < schema_n_types; i++)
		if (!schema_types[i]->description[0])
			fail_msg(STR_FMT "." STR_FMT " has no description", STR_ARG(schema_types[i]->package->name), STR_ARG(schema_types[i]->name));
}

TEST(schema_resources_of_types)
{
	CHECK_STR(schema_resource(TYPE(core_v1, Pod), STR(""))->name, "pods");
	CHECK_STR(schema_resource(TYPE(core_v1, Pod), STR("status"))->name, "pods/status");
	CHECK(schema_resource(TYPE(core_v1, PodSpec), STR("")) == NULL);
	CHECK(type_is_namespaced(TYPE(core_v1, Pod)));
	CHECK(!type_is_namespaced(TYPE(core_v1, Node)));
	CHECK(type_is_namespaced(TYPE(autoscaling_v1, Scale)));
}

/* A default that is only the zero that a field has anyway is none; what contains one is marked, through any depth. */
TEST(schema_marks_defaults)
{
	const struct type *port = TYPE(core_v1, ContainerPort), *meta = TYPE(meta_v1, ObjectMeta);

	CHECK(type_field(port, A_protocol)->flags & FIELD_DEFAULT);
	CHECK(!(type_field(port, A_containerPort)->flags & FIELD_DEFAULT));
	CHECK(port->flags & TYPE_DEFAULTS);
	CHECK(TYPE(core_v1, Pod)->flags & TYPE_DEFAULTS);
	CHECK(TYPE(apps_v1, DeploymentList)->flags & TYPE_DEFAULTS);
	CHECK(!(meta->flags & TYPE_DEFAULTS));
	CHECK(!(TYPE(core_v1, ConfigMap)->flags & TYPE_DEFAULTS));
	for (size_t i = 0; i < schema_n_types; i++)
		for (unsigned k = 0; k < schema_types[i]->n_fields; k++) {
			const struct field *f = &schema_types[i]->fields[k];
			CHECK_ROW(i, !(f->flags & FIELD_DEFAULT) || f->facts->default_json.n);
			CHECK_ROW(i, !f->type || !(f->type->flags & TYPE_DEFAULTS) || schema_types[i]->flags & TYPE_DEFAULTS);
		}
}
