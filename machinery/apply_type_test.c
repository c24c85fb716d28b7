#include "machinery/apply_testing.h"

/* What a type is, in words. */
static str shape_text(struct arena *a, struct apply_type t, str default_json)
{
	static const char *const scalars[] = { "", " numeric", " string", " boolean", " untyped" };
	CLEANUP(buf_done) struct buf b = BUF_INIT(1024);
	struct apply_shape s;

	t.schema->shape(t, &s);
	buf_add(&b, str_of(scalars[s.scalar]));
	if (s.list)
		buf_addf(&b, " list %s", s.list_atomic ? "atomic" : "associative");
	for (const atom *key = s.keys; key && *key; key++)
		buf_addf(&b, "%s" STR_FMT, key == s.keys ? " by " : ",", STR_ARG(atom_str(*key)));
	if (s.map)
		buf_addf(&b, " map %s", s.map_atomic ? "atomic" : "separable");
	if (default_json.n)
		buf_addf(&b, " default=" STR_FMT, STR_ARG(default_json));
	return testing_swap(a, str_skip(buf_str(&b), 1), '"', '\'');
}

/* Follows a path of names; "x[]" goes to the items of x, "*" to any member. */
static str shape_at(struct arena *a, struct apply_type t, str path)
{
	str step, default_json = STR_NONE;
	while (path.n) {
		str_cut(path, '.', &step, &path);
		str name = str_ends(step, STR("[]")) ? str_head(step, step.n - 2) : step;
		if (!t.schema)
			return STR("nothing");
		struct apply_type below = { 0 };
		default_json = t.schema->default_json(t, atom_make(a, name));
		if (!t.schema->member(t, atom_make(a, name), &below))
			return STR("not declared");
		t = below;
		if (name.n < step.n) {
			t = t.schema->item(t);
			default_json = STR_NONE;
		}
	}
	return shape_text(a, t, default_json);
}

TEST(apply_type_of_builtin)
{
#define CRD "apiextensions.k8s.io/v1", "CustomResourceDefinition"
#define SCHEMA "spec.versions[].schema.openAPIV3Schema."
	static const struct {
		const char *version, *kind, *path, *want;
	} t[] = {
		{ "v1", "Pod", "spec", "map separable default={}" },
		{ "v1", "Pod", "spec.containers", "list associative by name" },
		{ "v1", "Pod", "spec.containers[]", "map separable" },
		{ "v1", "Pod", "spec.containers[].ports", "list associative by containerPort,protocol" },
		{ "v1", "Pod", "spec.containers[].ports[].protocol", "string default='TCP'" },
		{ "v1", "Pod", "spec.containers[].ports[].containerPort", "numeric default=0" },
		{ "v1", "Pod", "spec.containers[].args", "list atomic" },
		{ "v1", "Pod", "spec.containers[].resources.limits", "map separable" },
		{ "v1", "Pod", "spec.containers[].resources.limits.*", "untyped" },
		{ "v1", "Pod", "spec.containers[].resources.claims", "list associative by name" },
		{ "v1", "Pod", "spec.containers[].volumeMounts", "list associative by mountPath" },
		{ "v1", "Pod", "spec.containers[].env[].valueFrom.secretKeyRef", "map atomic" },
		{ "v1", "Pod", "spec.containers[].livenessProbe.httpGet.port", "untyped list atomic map separable" },
		{ "v1", "Pod", "spec.nodeSelector", "map atomic" },
		{ "v1", "Pod", "spec.tolerations", "list atomic" },
		{ "v1", "Pod", "spec.imagePullSecrets[]", "map atomic" },
		{ "v1", "Pod", "spec.imagePullSecrets[].name", "string default=''" },
		{ "v1", "Pod", "spec.topologySpreadConstraints",
		  "list associative by topologyKey,whenUnsatisfiable" },
		{ "v1", "Pod", "spec.terminationGracePeriodSeconds", "numeric" },
		{ "v1", "Pod", "spec.hostNetwork", "boolean" },
		{ "v1", "Pod", "spec.volumes[].emptyDir.sizeLimit", "untyped" },
		{ "v1", "Pod", "spec.bogus", "not declared" },
		{ "v1", "Pod", "status.conditions", "list associative by type" },
		{ "v1", "Pod", "status.hostIPs", "list atomic" },
		{ "v1", "Pod", "status.startTime", "untyped" },
		{ "v1", "Pod", "metadata.labels", "map separable" },
		{ "v1", "Pod", "metadata.finalizers", "list associative" },
		{ "v1", "Pod", "metadata.ownerReferences", "list associative by uid" },
		{ "v1", "Pod", "metadata.ownerReferences[]", "map atomic" },
		{ "v1", "Service", "spec.ports", "list associative by port,protocol" },
		{ "v1", "Service", "spec.selector", "map atomic" },
		{ "v1", "Secret", "data.*", "string" },
		{ "v1", "PersistentVolume", "spec.claimRef", "map separable" },
		{ "v1", "PersistentVolume", "spec.nodeAffinity.required", "map atomic" },
		{ "v1", "ServiceAccount", "secrets", "list associative by name" },
		{ "v1", "ServiceAccount", "secrets[]", "map atomic" },
		{ "v1", "Event", "involvedObject", "map atomic default={}" },
		{ "v1", "Event", "eventTime", "untyped" },
		{ "v1", "Node", "spec.taints", "list atomic" },
		{ "apps/v1", "Deployment", "spec.selector", "map atomic" },
		{ "apps/v1", "ControllerRevision", "data", "untyped list atomic map atomic" },
		{ CRD, "spec.versions", "list atomic" },
		{ CRD, SCHEMA "default", "untyped list atomic map separable" },
		{ CRD, SCHEMA "items", "untyped list atomic map separable" },
		{ CRD, SCHEMA "properties", "map separable" },
		{ CRD, SCHEMA "x-kubernetes-validations", "list associative by rule" },
		{ CRD, SCHEMA "maximum", "numeric" },
		{ "autoscaling/v1", "HorizontalPodAutoscaler", "spec.scaleTargetRef", "map atomic default={}" },
		{ "autoscaling/v2", "HorizontalPodAutoscaler", "spec.scaleTargetRef", "map separable default={}" },
		{ "networking.k8s.io/v1", "NetworkPolicy", "spec.podSelector", "map atomic default={}" },
		{ "rbac.authorization.k8s.io/v1", "RoleBinding", "roleRef", "map atomic default={}" },
		{ "certificates.k8s.io/v1", "CertificateSigningRequest", "spec.extra", "map separable" },
		{ "certificates.k8s.io/v1", "CertificateSigningRequest", "spec.extra.*", "list atomic" },
		{ "certificates.k8s.io/v1", "CertificateSigningRequest", "spec.extra.*[]", "string" },
		{ "coordination.k8s.io/v1", "Lease", "spec.renewTime", "untyped" },
		{ "resource.k8s.io/v1", "ResourceClaim", "spec.devices.config[].opaque.parameters",
		  "untyped list atomic map atomic" },
		{ "discovery.k8s.io/v1", "EndpointSlice", "endpoints[].targetRef", "map atomic" },
		{ "policy/v1", "PodDisruptionBudget", "spec.minAvailable", "untyped list atomic map separable" },
		{ "storage.k8s.io/v1", "CSINode", "spec.drivers", "list associative by name" },
		{ "storage.k8s.io/v1", "StorageClass", "parameters", "map separable" },
	};
#undef CRD
#undef SCHEMA
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct type *type = schema_kind(str_of(t[i].version), str_of(t[i].kind));
		CHECK_ROW(i, type);
		CHECK_STR_ROW(i, shape_at(&a, apply_type_of(type), str_of(t[i].path)), t[i].want);
	}
}

/* ---- a schema of somebody else's ---- */

struct gadget_node {
	const char *name;
	struct apply_shape shape;
	const char *default_json;
	const struct gadget_node *fields; /* ended by a nameless one; of a list: its item */
};

static struct apply_type gadget_type(const struct gadget_node *node);

static void gadget_shape(struct apply_type t, struct apply_shape *ret)
{
	*ret = ((const struct gadget_node *)t.node)->shape;
}

static const struct gadget_node *gadget_field(struct apply_type t, atom name)
{
	const struct gadget_node *node = t.node;
	for (const struct gadget_node *f = node->shape.map ? node->fields : NULL; f && f->name; f++)
		if (str_eq(str_of(f->name), atom_str(name)))
			return f;
	return NULL;
}

static int gadget_member(struct apply_type t, atom name, struct apply_type *ret)
{
	const struct gadget_node *f = gadget_field(t, name);
	if (f)
		*ret = gadget_type(f);
	return f ? 2 : 0;
}

static struct apply_type gadget_item(struct apply_type t)
{
	return gadget_type(((const struct gadget_node *)t.node)->fields);
}

static str gadget_default(struct apply_type t, atom name)
{
	const struct gadget_node *f = gadget_field(t, name);
	return f && f->default_json ? str_of(f->default_json) : STR_NONE;
}

static const struct apply_schema gadget_schema = { gadget_shape, gadget_member, gadget_item, gadget_default };

static struct apply_type gadget_type(const struct gadget_node *node)
{
	return (struct apply_type){ &gadget_schema, node, 0 };
}

TEST(apply_stories_of_a_schema)
{
#define NUMBER { .scalar = APPLY_NUMERIC }
#define STRING { .scalar = APPLY_STRING }
#define MAP { .map = true }
	static const atom port_keys[] = { A_port, A_protocol, 0 };
	static const struct gadget_node string = { .shape = STRING };
	static const struct gadget_node port_fields[] = {
		{ "port", NUMBER, NULL, NULL }, { "protocol", STRING, "\"TCP\"", NULL }, { "name", STRING, NULL, NULL },
		{ .name = NULL },
	};
	static const struct gadget_node port = { .shape = MAP, .fields = port_fields };
	static const struct gadget_node spec[] = {
		{ "size", NUMBER, NULL, NULL },
		{ "tags", { .list = true }, NULL, &string },
		{ "steps", { .list = true, .list_atomic = true }, NULL, &string },
		{ "ports", { .list = true, .keys = port_keys }, NULL, &port },
		{ "rgb", { .map = true, .map_atomic = true }, NULL, port_fields },
		{ .name = NULL },
	};
	static const struct gadget_node metadata[] = {
		{ "name", STRING, NULL, NULL }, { "uid", STRING, NULL, NULL }, { .name = NULL },
	};
	static const struct gadget_node root_fields[] = {
		{ "apiVersion", STRING, NULL, NULL }, { "kind", STRING, NULL, NULL },
		{ "metadata", MAP, NULL, metadata }, { "spec", MAP, NULL, spec }, { .name = NULL },
	};
	static const struct gadget_node root = { .shape = MAP, .fields = root_fields };
	static const struct story_row t[] = {
		{ "apply m1", "{'spec':{'size':7,'ports':[{'port':1}],'tags':['x'],'rgb':{'port':1}}}",
		  "{'spec':{'ports':[{'port':1}],'rgb':{'port':1},'size':7,'tags':['x']}}",
		  "m1 Apply @0 {'f:spec':{'f:ports':{'k:{\\'port\\':1,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{}}},"
		  "'f:rgb':{},'f:size':{},'f:tags':{'v:\\'x\\'':{}}}}" },
		{ "apply m2", "{'spec':{'ports':[{'port':2},{'port':1,'protocol':'TCP','name':'n'}],'tags':['y']}}",
		  "{'spec':{'ports':[{'port':2},{'name':'n','port':1,'protocol':'TCP'}],'rgb':{'port':1},'size':7,"
		  "'tags':['x','y']}}",
		  "m1 Apply @0 {'f:spec':{'f:ports':{'k:{\\'port\\':1,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{}}},"
		  "'f:rgb':{},'f:size':{},'f:tags':{'v:\\'x\\'':{}}}} | m2 Apply @1 {'f:spec':{'f:ports':{"
		  "'k:{\\'port\\':1,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:name':{},'f:port':{},'f:protocol':{}},"
		  "'k:{\\'port\\':2,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{}}},'f:tags':{'v:\\'y\\'':{}}}}" },
		{ "apply m2", "{'spec':{'rgb':{'port':2},'steps':['a']}}",
		  "! Apply failed with 1 conflict: conflict with 'm1': .spec.rgb", ".spec.rgb: conflict with 'm1'" },
		{ "apply m1", "{'spec':{'bogus':1}}",
		  "! failed to create typed patch object (/n; example.com/v1, Kind=Gadget): .spec.bogus: "
		  "field not declared in schema",
		  "" },
		{ "apply m1", "{}",
		  "{'spec':{'ports':[{'port':2},{'name':'n','port':1,'protocol':'TCP'}],'tags':['y']}}",
		  "m2 Apply @1 {'f:spec':{'f:ports':{'k:{\\'port\\':1,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:name':{},"
		  "'f:port':{},'f:protocol':{}},'k:{\\'port\\':2,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{}}},"
		  "'f:tags':{'v:\\'y\\'':{}}}}" },
	};
#undef NUMBER
#undef STRING
#undef MAP
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct story s;

	story_begin(&s, &a, "= example.com/v1 Gadget");
	s.req.custom = gadget_type(&root);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		story_step(&s, i, &t[i]);
}
