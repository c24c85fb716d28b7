/* OpenAPI: schemas of types, and the documents around them. Operations are in openapi_paths.c. */
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "machinery/openapi_priv.h"

/* ---- names ---- */

static str package_prefix(struct arena *a, str package)
{
	static const struct { const char *package, *prefix; } special[] = {
		{ "meta/", "io.k8s.apimachinery.pkg.apis." },
		{ "apiextensions/", "io.k8s.apiextensions-apiserver.pkg.apis." },
		{ "apiregistration/", "io.k8s.kube-aggregator.pkg.apis." },
		{ "version", "io.k8s.apimachinery.pkg." },
		{ "runtime", "io.k8s.apimachinery.pkg." },
	};
	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		if (str_starts(package, str_of(special[i].package)))
			return arena_join(a, str_of(special[i].prefix), package);
	return arena_join(a, STR("io.k8s.api."), package);
}

str openapi_name(struct arena *a, const struct type *type)
{
	str prefix = package_prefix(a, type->package->name);
	str name = arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(prefix), STR_ARG(type->name));
	char *p = (char *)name.p;
	for (size_t i = 0; i < name.n; i++)
		if (p[i] == '/')
			p[i] = '.';
	return name;
}

static struct val ref_by_name(struct openapi *o, str name)
{
	str base = o->v3 ? STR("#/components/schemas/") : STR("#/definitions/");
	return OBJECT(o->arena, F(_ref, VAL_STR(arena_join(o->arena, base, name))));
}

struct val openapi_ref(struct openapi *o, const struct type *type)
{
	size_t i = 0;
	while (i < o->n_types && o->types[i] != type)
		i++;
	if (i == o->n_types && i < OPENAPI_TYPES_MAX)
		o->types[o->n_types++] = type;
	return ref_by_name(o, openapi_name(o->arena, type));
}

/* ---- scalars ---- */

struct scalar_schema {
	const char *name;        /* of a schema of its own; NULL: written in place */
	const char *type, *format;
	const char *either;      /* version 3: oneOf type and this */
	const char *description;
	const char *zero;        /* default of list elements in version 3, as JSON */
};

static const struct scalar_schema scalars[] = {
	[KIND_STRING] = { .type = "string", .zero = "\"\"" },
	[KIND_BOOL] = { .type = "boolean", .zero = "false" },
	[KIND_INT32] = { .type = "integer", .format = "int32", .zero = "0" },
	[KIND_INT64] = { .type = "integer", .format = "int64", .zero = "0" },
	[KIND_UINT32] = { .type = "integer", .format = "int64", .zero = "0" },
	[KIND_UINT64] = { .type = "integer", .format = "int64", .zero = "0" },
	[KIND_DOUBLE] = { .type = "number", .format = "double", .zero = "0" },
	[KIND_FLOAT] = { .type = "number", .format = "float", .zero = "0" },
	[KIND_BYTES] = { .type = "string", .format = "byte" },
	[KIND_TIME] = { "io.k8s.apimachinery.pkg.apis.meta.v1.Time", "string", "date-time", NULL, "A point in time, in RFC 3339.", NULL },
	[KIND_MICROTIME] = { "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "string", "date-time", NULL,
			     "A point in time with microseconds, in RFC 3339.", NULL },
	[KIND_DURATION] = { "io.k8s.apimachinery.pkg.apis.meta.v1.Duration", "string", NULL, NULL, "A length of time, such as 1m30s.", NULL },
	[KIND_QUANTITY] = { "io.k8s.apimachinery.pkg.api.resource.Quantity", "string", NULL, "number",
			    "An amount with a suffix, such as 100m, 1.5 or 64Mi.", NULL },
	[KIND_INT_OR_STRING] = { "io.k8s.apimachinery.pkg.util.intstr.IntOrString", "integer", "int-or-string", "string",
				 "A number or a text, such as a port number or its name.", NULL },
	[KIND_JSON] = { "io.k8s.apimachinery.pkg.runtime.RawExtension", "object", NULL, NULL, "Any JSON object.", NULL },
	[KIND_FIELDS] = { "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "object", NULL, NULL, "A set of fields.", NULL },
};

/* Beside the kinds: the JSON values of apiextensions, which may be of any type. */
enum { SCALAR_ANY = KIND_MESSAGE + 1 };
static const struct scalar_schema any_json = {
	.name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
	.description = "Any JSON value.",
};

static const struct scalar_schema *scalar_of(size_t i)
{
	return i == SCALAR_ANY ? &any_json : i < ARRAY_LEN(scalars) ? &scalars[i] : NULL;
}

static struct val text_or_none(const char *s) { return s ? VAL_STR(str_of(s)) : VAL_EMPTY; }

static struct val scalar_schema(struct openapi *o, const struct scalar_schema *s)
{
	struct val type = text_or_none(s->type);
	if (s->either && o->v3) {
		struct val either = text_or_none(s->either);
		struct val one_of = LIST(o->arena, OBJECT(o->arena, F(type, type)), OBJECT(o->arena, F(type, either)));
		return OBJECT(o->arena, F(description, text_or_none(s->description)), F(format, text_or_none(s->format)),
			      F(oneOf, one_of));
	}
	/* Version 2 cannot say "either": such values are texts there. */
	if (s->either)
		type = VAL_LIT("string");
	return OBJECT(o->arena, F(description, text_or_none(s->description)), F(type, type), F(format, text_or_none(s->format)));
}

/* ---- fields ---- */

static struct val parse_json(struct openapi *o, str text)
{
	struct val v = VAL_EMPTY;
	if (text.n)
		(void)json_decode(o->arena, text, &(struct json_decode_options){ 0 }, &v, NULL);
	return v;
}

/* The schema of one element, without description and default. */
static struct val element_schema(struct openapi *o, const struct type *owner, const struct field *f)
{
	if (f->kind == KIND_MESSAGE)
		return openapi_ref(o, f->type);
	if (f->kind == KIND_STRINGS) {
		struct val item = o->v3 ? OBJECT(o->arena, F(type, VAL_LIT("string")), F(default, VAL_LIT("")))
					: OBJECT(o->arena, F(type, VAL_LIT("string")));
		return OBJECT(o->arena, F(type, VAL_LIT("array")), F(items, item));
	}
	size_t i = f->kind == KIND_JSON && str_starts(owner->package->name, STR("apiextensions/")) ? (size_t)SCALAR_ANY : f->kind;
	const struct scalar_schema *s = scalar_of(i);
	if (s->name) {
		o->scalars[i] = true;
		return ref_by_name(o, str_of(s->name));
	}
	return scalar_schema(o, s);
}

/* An element of a list or map; version 3 gives its zero value as default. */
static struct val collection_element(struct openapi *o, const struct type *owner, const struct field *f)
{
	struct val e = element_schema(o, owner, f);
	if (!o->v3)
		return e;
	if (f->kind == KIND_MESSAGE && f->type->form == FORM_OBJECT)
		return OBJECT(o->arena, F(allOf, LIST(o->arena, e)), F(default, VAL_EMPTY_OBJECT));
	const struct scalar_schema *s = f->kind < KIND_STRINGS ? scalar_of(f->kind) : NULL;
	return s && s->zero ? val_put(o->arena, e, A_default, parse_json(o, str_of(s->zero))) : e;
}

struct val openapi_plain(struct openapi *o, const struct field *f)
{
	/* A query parameter that may be repeated is documented like one that may not. */
	return OBJECT(o->arena, F(type, text_or_none(scalars[f->kind].type)));
}

static struct val strings(struct arena *a, const str *list)
{
	struct val_builder b = val_builder(a);
	for (; list && list->p; list++)
		val_add_item(&b, VAL_STR(*list));
	return val_end_list(&b);
}

/* Kubernetes lists the values of an enum in order of the alphabet. */
static struct val sorted_strings(struct arena *a, const str *list)
{
	struct val v = strings(a, list);
	struct val *items = (struct val *)v.items;
	for (uint32_t i = 1; i < v.n; i++)
		for (uint32_t j = i; j > 0 && str_cmp(val_as_str(items[j - 1]), val_as_str(items[j])) > 0; j--) {
			struct val swap = items[j];
			items[j] = items[j - 1];
			items[j - 1] = swap;
		}
	return v;
}

static void add_extensions(struct openapi *o, const struct field *f, struct val_builder *b)
{
	struct arena *a = o->arena;
	const struct field_facts *facts = f->facts;
	const char *strategy = f->flags & FIELD_REPLACE ? "replace"
			       : (f->flags & FIELD_MERGE) && (f->flags & FIELD_RETAIN_KEYS) ? "merge,retainKeys"
			       : f->flags & FIELD_MERGE ? "merge"
			       : f->flags & FIELD_RETAIN_KEYS ? "retainKeys" : NULL;

	if (facts->map_keys) {
		struct val_builder keys = val_builder(a);
		for (const atom *k = facts->map_keys; *k; k++)
			val_add_item(&keys, VAL_STR(atom_str(*k)));
		val_add_member(b, A_x_kubernetes_list_map_keys, val_end_list(&keys));
	}
	bool list = f->shape == SHAPE_LIST || f->kind == KIND_BYTES; /* bytes are a list in Go */
	if (list && (f->flags & (FIELD_SET | FIELD_MAP_LIST | FIELD_ATOMIC)))
		val_add_member(b, A_x_kubernetes_list_type,
			       text_or_none(f->flags & FIELD_SET ? "set" : f->flags & FIELD_MAP_LIST ? "map" : "atomic"));
	else if (f->flags & (FIELD_ATOMIC | FIELD_GRANULAR))
		val_add_member(b, A_x_kubernetes_map_type, text_or_none(f->flags & FIELD_ATOMIC ? "atomic" : "granular"));
	if (facts->merge_key.n)
		val_add_member(b, atom_make(a, STR("x-kubernetes-patch-merge-key")), VAL_STR(facts->merge_key));
	if (strategy)
		val_add_member(b, atom_make(a, STR("x-kubernetes-patch-strategy")), text_or_none(strategy));
}

/* What a reference stands beside makes the difference: version 3 needs allOf then, version 2 takes siblings. */
static void add_shape(struct openapi *o, const struct type *owner, const struct field *f, bool alone, struct val_builder *b)
{
	if (f->shape == SHAPE_LIST) {
		val_add_member(b, A_type, VAL_LIT("array"));
		val_add_member(b, A_items, collection_element(o, owner, f));
	} else if (f->shape == SHAPE_MAP) {
		val_add_member(b, A_type, VAL_LIT("object"));
		val_add_member(b, A_additionalProperties, collection_element(o, owner, f));
	} else {
		struct val e = element_schema(o, owner, f);
		if (o->v3 && !alone && val_has(e, _ref))
			val_add_member(b, A_allOf, LIST(o->arena, e));
		else
			VAL_EACH_MEMBER(m, e)
				val_add_member(b, m->key, m->val);
	}
}

/* Fields that nearly all kinds have are described here and not with each kind. */
static str description_of(const struct field *f)
{
	static const struct { atom name; str text; } common[] = {
		{ A_apiVersion, STR_INIT("Group and version of the kind, such as apps/v1.") },
		{ A_kind, STR_INIT("Kind of the object, such as Deployment.") },
		{ A_metadata, STR_INIT("Name, labels, owners and what else objects of all kinds have.") },
		{ A_items, STR_INIT("The objects of the list.") },
	};
	for (size_t i = 0; i < ARRAY_LEN(common) && !f->description[0]; i++)
		if (common[i].name == f->name)
			return common[i].text;
	return str_of(f->description);
}

static struct val property(struct openapi *o, const struct type *owner, const struct field *f)
{
	str description = description_of(f);
	struct val_builder b = val_builder(o->arena), extensions = val_builder(o->arena);
	struct val default_value = o->v3 ? parse_json(o, f->facts->default_json) : VAL_EMPTY;

	add_extensions(o, f, &extensions);
	struct val ext = val_end_object(&extensions);
	if (description.n)
		val_add_member(&b, A_description, VAL_STR(description));
	add_shape(o, owner, f, !description.n && !val_exists(default_value) && !ext.n, &b);
	val_add_member(&b, A_default, default_value);
	if (f->facts->values && f->shape == SHAPE_ONE)
		val_add_member(&b, A_enum, sorted_strings(o->arena, f->facts->values));
	VAL_EACH_MEMBER(m, ext)
		val_add_member(&b, m->key, m->val);
	return val_end_object(&b);
}

/* ---- types ---- */

static struct val gvk(struct arena *a, str group, str version, str kind)
{
	return OBJECT(a, F(group, VAL_STR(group)), F(kind, VAL_STR(kind)), F(version, VAL_STR(version)));
}

/* The kinds that a schema stands for. Options and events of a watch exist in every group version. */
static struct val kinds_of(struct openapi *o, const struct type *t)
{
	bool everywhere = t == TYPE(meta_v1, DeleteOptions) || t == TYPE(meta_v1, WatchEvent);
	struct val_builder b = val_builder(o->arena);

	if (!(t->flags & TYPE_KIND) && !everywhere)
		return VAL_EMPTY;
	val_add_item(&b, everywhere ? gvk(o->arena, STR(""), STR("v1"), t->name) : gvk(o->arena, t->package->group, t->package->version, t->name));
	if (everywhere && o->v3 && o->group.n)
		val_add_item(&b, gvk(o->arena, o->group, o->version, t->name));
	for (size_t i = 0; everywhere && !o->v3 && i < schema_n_api_versions; i++)
		if (schema_api_versions[i].group.n)
			val_add_item(&b, gvk(o->arena, schema_api_versions[i].group, schema_api_versions[i].version, t->name));
	return val_end_list(&b);
}

static struct val type_schema(struct openapi *o, const struct type *t)
{
	struct val_builder b = val_builder(o->arena), properties = val_builder(o->arena), required = val_builder(o->arena);

	if (t->description[0])
		val_add_member(&b, A_description, VAL_STR(str_of(t->description)));
	if (t->form != FORM_OBJECT)
		return val_end_object(&b);
	for (uint16_t i = 0; i < t->n_fields; i++) {
		const struct field *f = &t->fields[i];
		val_add_member(&properties, f->name, property(o, t, f));
		if (f->flags & FIELD_REQUIRED)
			val_add_item(&required, VAL_STR(atom_str(f->name)));
	}
	val_add_member(&b, A_type, VAL_LIT("object"));
	if (required.n)
		val_add_member(&b, A_required, val_end_list(&required));
	if (properties.n)
		val_add_member(&b, A_properties, val_end_object(&properties));
	val_add_member(&b, A_x_kubernetes_group_version_kind, kinds_of(o, t));
	if (t->flags & TYPE_ATOMIC)
		val_add_member(&b, A_x_kubernetes_map_type, VAL_LIT("atomic"));
	return val_end_object(&b);
}

/* All schemas that were referred to so far, and those that they refer to. */
static struct val schemas(struct openapi *o)
{
	struct val_builder b = val_builder(o->arena);

	for (size_t i = 0; i < o->n_types; i++) {
		struct val schema = type_schema(o, o->types[i]); /* may add types */
		val_add_member(&b, atom_make(o->arena, openapi_name(o->arena, o->types[i])), schema);
	}
	for (size_t i = 0; i < OPENAPI_SCALARS; i++)
		if (o->scalars[i])
			val_add_member(&b, atom_make(o->arena, str_of(scalar_of(i)->name)), scalar_schema(o, scalar_of(i)));
	return val_end_object(&b);
}

/* ---- documents ---- */

static bool served_by_default(const struct resource *r, void *arg)
{
	(void)arg;
	return r->flags & RESOURCE_DEFAULT;
}

static struct openapi open_document(struct arena *a, bool v3, openapi_served served, void *arg)
{
	return (struct openapi){
		.arena = a,
		.v3 = v3,
		.served = served ? served : served_by_default,
		.arg = arg,
		.types = ARENA_ARRAY(a, const struct type *, OPENAPI_TYPES_MAX),
	};
}

static struct val info(struct arena *a)
{
	return OBJECT(a, F(title, VAL_LIT("Kubernetes")), F(version, VAL_LIT("unversioned")));
}

static struct val bearer_token(struct arena *a)
{
	struct val scheme = OBJECT(a, F(description, VAL_LIT("A bearer token.")), F(type, VAL_LIT("apiKey")),
				   F(name, VAL_LIT("authorization")), F(in, VAL_LIT("header")));
	return val_object(a, &(struct member){ atom_make(a, STR("BearerToken")), scheme }, 1);
}

/* The paths of one group version; false when nothing of it is served. */
static bool add_group_version(struct openapi *o, str group, str version, struct val_builder *paths)
{
	bool any = false;
	for (size_t i = 0; i < schema_n_resources; i++) {
		const struct resource *r = &schema_resources[i];
		if (!str_eq(r->group, group) || !str_eq(r->version, version) || !o->served(r, o->arg))
			continue;
		if (!any)
			openapi_discovery_path(o, group, version, paths);
		any = true;
		if (str_chr(r->name, '/') < 0)
			openapi_paths(o, r, paths);
	}
	return any;
}

static struct val v3_document(struct openapi *o, struct val_builder *paths)
{
	struct arena *a = o->arena;
	struct val all = schemas(o);
	struct val components = OBJECT(a, F(schemas, all.n ? all : VAL_EMPTY));
	components = val_put(a, components, atom_make(a, STR("securitySchemes")), bearer_token(a));
	return OBJECT(a, F(openapi, VAL_LIT("3.0.0")), F(info, info(a)), F(paths, val_end_object(paths)), F(components, components));
}

struct val openapi_v3(struct arena *a, str group, str version, openapi_served served, void *arg)
{
	struct openapi o = open_document(a, true, served, arg);
	struct val_builder paths = val_builder(a);

	o.group = group;
	o.version = version;
	return add_group_version(&o, group, version, &paths) ? v3_document(&o, &paths) : VAL_EMPTY;
}

struct val openapi_v3_root(struct arena *a, str name)
{
	struct openapi o = open_document(a, true, NULL, NULL);
	struct val_builder paths = val_builder(a);

	return openapi_root_path(&o, name, &paths) ? v3_document(&o, &paths) : VAL_EMPTY;
}

struct val openapi_v2(struct arena *a, openapi_served served, void *arg)
{
	struct openapi o = open_document(a, false, served, arg);
	struct val_builder paths = val_builder(a);
	str group = STR("");

	openapi_root_paths(&o, &paths);
	for (size_t i = 0; i < schema_n_api_versions; i++) {
		const struct api_version *v = &schema_api_versions[i];
		if (!add_group_version(&o, v->group, v->version, &paths) || !v->group.n || str_eq(group, v->group))
			continue;
		group = v->group;
		(void)openapi_root_path(&o, arena_join(a, STR("apis/"), group), &paths);
	}
	struct val security = LIST(a, val_object(a, &(struct member){ atom_make(a, STR("BearerToken")), VAL_EMPTY_LIST }, 1));
	struct val doc = OBJECT(a, F(swagger, VAL_LIT("2.0")), F(info, info(a)), F(paths, val_end_object(&paths)),
				F(definitions, schemas(&o)), F(securityDefinitions, bearer_token(a)));
	return val_put(a, doc, atom_make(a, STR("security")), security);
}
