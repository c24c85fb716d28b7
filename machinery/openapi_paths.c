/*
 * OpenAPI: the operations of a resource. Query parameters come from the option types of the API (ListOptions, PodExecOptions, ...);
 * parameters that all operations of a path share are written once, at the path.
 */
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/openapi_priv.h"

enum { OPERATIONS_MAX = 8, PARAMETERS_MAX = 64 };

struct operation {
	const char *method;
	const char *action;           /* x-kubernetes-action */
	const char *verb;             /* first word of the operation id */
	str id_rest;                  /* what follows group and version in it */
	str description;
	const struct type *body;      /* what is sent; NULL: nothing */
	const struct type *answer;    /* NULL: text */
	const char *const *media;     /* of the answer, when it has none of the usual ones */
	unsigned created;             /* also answers 201 (bit 0) and 202 (bit 1) */
	bool streams, patches, connects;
	const struct field **query;   /* sorted by name, room for PARAMETERS_MAX */
	size_t n_query;
};

/* A path and its operations. */
struct path {
	struct openapi *o;
	const struct resource *r;
	str kind;                     /* for x-kubernetes-group-version-kind */
	struct operation ops[OPERATIONS_MAX];
	size_t n;
	bool has_name, has_namespace, has_rest;
};

/* ---- words ---- */

static str capitalised(struct arena *a, str s)
{
	str copy = arena_str(a, s);
	if (copy.n && copy.p[0] >= 'a' && copy.p[0] <= 'z')
		((char *)copy.p)[0] -= 'a' - 'A';
	return copy;
}

/* "rbac.authorization.k8s.io" is RbacAuthorization in ids, rbacAuthorization in tags; the core group is core. */
static str group_word(struct arena *a, str group, bool tag)
{
	str word = STR(""), part, rest = group.n ? group : STR("core");
	if (str_ends(rest, STR(".k8s.io")))
		rest = str_head(rest, rest.n - strlen(".k8s.io"));
	while (rest.n) {
		(void)str_cut(rest, '.', &part, &rest);
		word = arena_join(a, word, tag && !word.n ? part : capitalised(a, part));
	}
	return word;
}

static str base_path(struct arena *a, str group, str version)
{
	return group.n ? arena_printf(a, "/apis/" STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version))
		       : arena_printf(a, "/api/" STR_FMT, STR_ARG(version));
}

/* ---- parameters ---- */

/* Adds the fields of an option type that can stand in a query, in order of their names; those behind a feature gate are left out. */
static void add_query(struct operation *op, const struct type *options, bool without_watch)
{
	for (uint16_t i = 0; i < options->n_fields && op->n_query < PARAMETERS_MAX; i++) {
		const struct field *f = &options->fields[i];
		bool watch_only = f->name == A_watch || f->name == A_allowWatchBookmarks;
		bool no_parameter = f->kind == KIND_MESSAGE || f->kind == KIND_TIME || f->name == A_kind || f->name == A_apiVersion;
		if (no_parameter || f->facts->gate.n || (without_watch && watch_only))
			continue;
		size_t at = op->n_query;
		while (at > 0 && str_cmp(atom_str(op->query[at - 1]->name), atom_str(f->name)) > 0)
			at--;
		if (at > 0 && op->query[at - 1]->name == f->name)
			continue;
		memmove(op->query + at + 1, op->query + at, (op->n_query - at) * sizeof(op->query[0]));
		op->query[at] = f;
		op->n_query++;
	}
}

/* Version 3 puts the type into a schema. */
static struct val parameter(struct openapi *o, str name, const char *in, str description, struct val type)
{
	struct arena *a = o->arena;
	bool path = in[0] == 'p';
	struct val unique = val_put(a, type, A_uniqueItems, val_of_bool(true));
	struct val p = OBJECT(a, F(description, description.n ? VAL_STR(description) : VAL_EMPTY), F(in, VAL_STR(str_of(in))),
			      F(name, VAL_STR(name)), F(required, path ? val_of_bool(true) : VAL_EMPTY),
			      F(schema, o->v3 ? unique : VAL_EMPTY));
	if (!o->v3)
		VAL_EACH_MEMBER(m, unique)
			p = val_put(a, p, m->key, m->val);
	return p;
}

static struct val query_parameter(struct openapi *o, const struct field *f)
{
	return parameter(o, atom_str(f->name), "query", str_of(f->description), openapi_plain(o, f));
}

static bool has_query(const struct operation *op, const struct field *f)
{
	for (size_t i = 0; i < op->n_query; i++)
		if (op->query[i]->name == f->name)
			return true;
	return false;
}

static bool shared(const struct path *p, const struct field *f)
{
	for (size_t i = 0; i < p->n; i++)
		if (!has_query(&p->ops[i], f))
			return false;
	return true;
}

/* Keeps the list in order of names. */
static void add_sorted(struct val_builder *b, struct val item)
{
	val_add_item(b, item);
	struct val *items = b->room;
	for (uint32_t i = b->n - 1; i > 0 && str_cmp(val_str(items[i - 1], name), val_str(item, name)) > 0; i--) {
		items[i] = items[i - 1];
		items[i - 1] = item;
	}
}

static struct val path_parameters(const struct path *p)
{
	struct val_builder b = val_builder(p->o->arena);
	struct val string = OBJECT(p->o->arena, F(type, VAL_LIT("string")));

	str name_of = arena_join(p->o->arena, STR("name of the "), p->r->kind);
	if (p->has_name)
		add_sorted(&b, parameter(p->o, STR("name"), "path", name_of, string));
	if (p->has_namespace)
		add_sorted(&b, parameter(p->o, STR("namespace"), "path", STR("namespace of the object"), string));
	if (p->has_rest)
		add_sorted(&b, parameter(p->o, STR("path"), "path", STR("rest of the URL"), string));
	for (size_t i = 0; p->n && i < p->ops[0].n_query; i++)
		if (shared(p, p->ops[0].query[i]))
			add_sorted(&b, query_parameter(p->o, p->ops[0].query[i]));
	if (p->n && !p->ops[0].connects)
		add_sorted(&b, parameter(p->o, STR("pretty"), "query", STR("true: answer with indentation"), string));
	return val_end_list(&b);
}

/* ---- operations ---- */

static const char *const object_media[] = { "application/json", "application/vnd.kubernetes.protobuf", "application/yaml", NULL };
static const char *const list_media[] = {
	"application/json", "application/json;stream=watch", "application/vnd.kubernetes.protobuf",
	"application/vnd.kubernetes.protobuf;stream=watch", "application/yaml", NULL,
};
static const char *const patch_media[] = {
	"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
	"application/strategic-merge-patch+json", NULL,
};
static const char *const log_media[] = {
	"application/json", "application/vnd.kubernetes.protobuf", "application/yaml", "text/plain", NULL,
};
static const char *const any_media[] = { "*/*", NULL };

static const char *const *answer_media(const struct operation *op)
{
	return op->media ? op->media : op->connects ? any_media : op->streams ? list_media : op->answer ? object_media : log_media;
}

static struct val media_list(struct arena *a, const char *const *media)
{
	struct val_builder b = val_builder(a);
	for (; *media; media++)
		val_add_item(&b, VAL_STR(str_of(*media)));
	return val_end_list(&b);
}

static struct val media_content(struct arena *a, const char *const *media, struct val schema)
{
	struct val_builder b = val_builder(a);
	for (; *media; media++)
		val_add_member(&b, atom_make(a, str_of(*media)), OBJECT(a, F(schema, schema)));
	return val_end_object(&b);
}

static struct val responses(struct openapi *o, const struct operation *op)
{
	struct arena *a = o->arena;
	static const struct { const char *code, *text; } codes[] = { { "200", "OK" }, { "201", "Created" }, { "202", "Accepted" } };
	struct val schema = op->answer ? openapi_ref(o, op->answer) : OBJECT(a, F(type, VAL_LIT("string")));
	struct val_builder b = val_builder(a);

	for (unsigned i = 0; i < ARRAY_LEN(codes); i++) {
		if (i && !(op->created & 1u << (i - 1)))
			continue;
		struct val text = VAL_STR(str_of(codes[i].text));
		struct val answer = o->v3 ? OBJECT(a, F(description, text), F(content, media_content(a, answer_media(op), schema)))
					  : OBJECT(a, F(description, text), F(schema, schema));
		val_add_member(&b, atom_make(a, str_of(codes[i].code)), answer);
	}
	val_add_member(&b, atom_make(a, STR("401")), OBJECT(a, F(description, VAL_LIT("Unauthorized"))));
	return val_end_object(&b);
}

static void add_body_v3(struct openapi *o, const struct operation *op, struct val_builder *b)
{
	if (!op->body)
		return;
	struct val content = media_content(o->arena, op->patches ? patch_media : any_media, openapi_ref(o, op->body));
	bool required = op->body != TYPE(meta_v1, DeleteOptions);
	val_add_member(b, A_requestBody, OBJECT(o->arena, F(content, content), F(required, required ? val_of_bool(true) : VAL_EMPTY)));
}

static struct val parameters(const struct path *p, const struct operation *op)
{
	struct openapi *o = p->o;
	struct val_builder b = val_builder(o->arena);

	if (!o->v3 && op->body) {
		bool required = op->body != TYPE(meta_v1, DeleteOptions);
		val_add_item(&b, OBJECT(o->arena, F(in, VAL_LIT("body")), F(name, VAL_LIT("body")),
					F(required, required ? val_of_bool(true) : VAL_EMPTY), F(schema, openapi_ref(o, op->body))));
	}
	for (size_t i = 0; i < op->n_query; i++)
		if (!shared(p, op->query[i]))
			val_add_item(&b, query_parameter(o, op->query[i]));
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

static struct val operation_doc(const struct path *p, const struct operation *op)
{
	struct openapi *o = p->o;
	struct arena *a = o->arena;
	const struct resource *r = p->r;
	struct val_builder b = val_builder(a);
	str tag = arena_printf(a, STR_FMT "_" STR_FMT, STR_ARG(group_word(a, r->group, true)), STR_ARG(r->version));
	str id = arena_printf(a, "%s" STR_FMT STR_FMT STR_FMT, op->verb, STR_ARG(group_word(a, r->group, false)),
			      STR_ARG(capitalised(a, r->version)), STR_ARG(op->id_rest));
	struct val kind = OBJECT(a, F(group, VAL_STR(r->response_kind.n ? r->response_group : r->group)), F(kind, VAL_STR(p->kind)),
				 F(version, VAL_STR(r->response_kind.n ? r->response_version : r->version)));

	val_add_member(&b, A_description, VAL_STR(op->description));
	val_add_member(&b, A_operationId, VAL_STR(id));
	val_add_member(&b, A_parameters, parameters(p, op));
	if (o->v3) {
		add_body_v3(o, op, &b);
	} else {
		val_add_member(&b, A_consumes, media_list(a, op->patches ? patch_media : any_media));
		val_add_member(&b, A_produces, media_list(a, answer_media(op)));
		val_add_member(&b, A_schemes, LIST(a, VAL_LIT("https")));
	}
	val_add_member(&b, A_responses, responses(o, op));
	val_add_member(&b, A_tags, LIST(a, VAL_STR(tag)));
	val_add_member(&b, A_x_kubernetes_action, VAL_STR(str_of(op->action)));
	val_add_member(&b, A_x_kubernetes_group_version_kind, kind);
	return val_end_object(&b);
}

static void finish_path(const struct path *p, str where, struct val_builder *paths)
{
	struct val_builder b = val_builder(p->o->arena);

	if (!p->n)
		return;
	for (size_t i = 0; i < p->n; i++)
		val_add_member(&b, atom_make(p->o->arena, str_of(p->ops[i].method)), operation_doc(p, &p->ops[i]));
	struct val common = path_parameters(p);
	if (common.n)
		val_add_member(&b, A_parameters, common);
	val_add_member(paths, atom_make(p->o->arena, where), val_end_object(&b));
}

static struct operation *add_op(struct path *p, const char *method, const char *action, const char *verb, str id_rest, str description)
{
	struct operation *op = &p->ops[p->n++];
	*op = (struct operation){ .method = method, .action = action, .verb = verb, .id_rest = id_rest, .description = description };
	op->query = ARENA_ARRAY(p->o->arena, const struct field *, PARAMETERS_MAX);
	return op;
}

/* ---- a resource ---- */

/* The type of lists of a kind. */
static const struct type *list_type(struct arena *a, const struct resource *r)
{
	str api_version = r->group.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(r->group), STR_ARG(r->version)) : r->version;
	return schema_kind(api_version, arena_join(a, r->kind, STR("List")));
}

/* Resources whose deletion answers with the object instead of a Status. */
static bool returns_deleted(const struct resource *r)
{
	static const str names[] = {
		STR_INIT("persistentvolumes"), STR_INIT("persistentvolumeclaims"), STR_INIT("pods"), STR_INIT("podtemplates"),
		STR_INIT("resourcequotas"), STR_INIT("services"), STR_INIT("serviceaccounts"), STR_INIT("csidrivers"),
		STR_INIT("csinodes"), STR_INIT("storageclasses"), STR_INIT("volumeattachments"), STR_INIT("volumeattributesclasses"),
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(r->name, names[i]))
			return true;
	return str_eq(r->group, STR("resource.k8s.io"));
}

static const char *article(str kind) { return kind.n && strchr("AEIOU", kind.p[0]) ? "an" : "a"; }

#define SAY(...) arena_printf(p->o->arena, __VA_ARGS__)
#define KIND STR_ARG(p->r->kind)

static void collection_ops(struct path *p, str scope)
{
	const struct resource *r = p->r;
	str id = SAY(STR_FMT STR_FMT, STR_ARG(scope), KIND);
	struct operation *op;

	if (r->verbs & VERB_LIST) {
		op = add_op(p, "get", "list", "list", id, SAY("list or watch objects of kind " STR_FMT, KIND));
		op->answer = list_type(p->o->arena, r);
		op->streams = true;
		add_query(op, TYPE(meta_v1, ListOptions), false);
	}
	if (r->verbs & VERB_CREATE) {
		op = add_op(p, "post", "post", "create", id, SAY("create %s " STR_FMT, article(r->kind), KIND));
		op->body = op->answer = r->type;
		op->created = 3;
		add_query(op, TYPE(meta_v1, CreateOptions), false);
	}
	if (r->verbs & VERB_DELETE_COLLECTION) {
		op = add_op(p, "delete", "deletecollection", "delete", arena_join(p->o->arena, STR("Collection"), id),
			    SAY("delete collection of " STR_FMT, KIND));
		op->body = TYPE(meta_v1, DeleteOptions);
		op->answer = TYPE(meta_v1, Status);
		add_query(op, TYPE(meta_v1, ListOptions), true);
		add_query(op, TYPE(meta_v1, DeleteOptions), true);
	}
}

static void replace_op(struct path *p, str id, str description)
{
	struct operation *op = add_op(p, "put", "put", "replace", id, description);
	op->body = op->answer = p->r->type;
	op->created = 1;
	add_query(op, TYPE(meta_v1, UpdateOptions), false);
}

static void patch_op(struct path *p, str id, str description)
{
	struct operation *op = add_op(p, "patch", "patch", "patch", id, description);
	op->body = TYPE(meta_v1, Patch);
	op->answer = p->r->type;
	op->patches = true;
	op->created = 1;
	add_query(op, TYPE(meta_v1, PatchOptions), false);
}

static void object_ops(struct path *p, str scope)
{
	const struct resource *r = p->r;
	str id = SAY(STR_FMT STR_FMT, STR_ARG(scope), KIND);

	if (r->verbs & VERB_GET)
		add_op(p, "get", "get", "read", id, SAY("read the specified " STR_FMT, KIND))->answer = r->type;
	if (r->verbs & VERB_UPDATE)
		replace_op(p, id, SAY("replace the specified " STR_FMT, KIND));
	if (r->verbs & VERB_PATCH)
		patch_op(p, id, SAY("partially update the specified " STR_FMT, KIND));
	if (r->verbs & VERB_DELETE) {
		struct operation *op = add_op(p, "delete", "delete", "delete", id, SAY("delete %s " STR_FMT, article(r->kind), KIND));
		op->body = TYPE(meta_v1, DeleteOptions);
		op->answer = returns_deleted(r) ? r->type : TYPE(meta_v1, Status);
		op->created = 2;
		add_query(op, TYPE(meta_v1, DeleteOptions), false);
	}
}

static void watch_op(struct path *p, const char *action, str id, str description)
{
	struct operation *op = add_op(p, "get", action, "watch", id, description);
	op->answer = TYPE(meta_v1, WatchEvent);
	op->streams = true;
	add_query(op, TYPE(meta_v1, ListOptions), false);
}

/* ---- subresources ---- */

/* Streams and proxies: one operation per method, with the fields of the options as parameters. */
static void connect_ops(struct path *p, const struct type *options, str parent_kind, str sub, str scope)
{
	static const struct { const char *method, *word, *shout; bool proxy_only; unsigned verb; } methods[] = {
		{ "get", "Get", "GET", false, VERB_GET },       { "post", "Post", "POST", false, VERB_CREATE },
		{ "put", "Put", "PUT", true, VERB_UPDATE },     { "delete", "Delete", "DELETE", true, VERB_DELETE },
		{ "patch", "Patch", "PATCH", true, VERB_PATCH }, { "options", "Options", "OPTIONS", true, VERB_GET },
		{ "head", "Head", "HEAD", true, VERB_GET },
	};
	bool proxy = str_eq(sub, STR("proxy"));

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if ((methods[i].proxy_only && !proxy) || !(p->r->verbs & methods[i].verb))
			continue;
		str id = SAY("%s" STR_FMT STR_FMT STR_FMT "%s", methods[i].word, STR_ARG(scope), STR_ARG(parent_kind),
			     STR_ARG(capitalised(p->o->arena, sub)), p->has_rest ? "WithPath" : "");
		str text = SAY("connect %s requests to " STR_FMT " of " STR_FMT, methods[i].shout, STR_ARG(sub),
			       STR_ARG(parent_kind));
		struct operation *op = add_op(p, methods[i].method, "connect", "connect", id, text);
		op->connects = true;
		add_query(op, options, false);
	}
}

static void subresource_ops(struct path *p, str parent_kind, str sub, str scope)
{
	const struct resource *r = p->r;
	str id = SAY(STR_FMT STR_FMT STR_FMT, STR_ARG(scope), STR_ARG(parent_kind), STR_ARG(capitalised(p->o->arena, sub)));
	str of_parent = SAY(STR_FMT " of the specified " STR_FMT, STR_ARG(sub), STR_ARG(parent_kind));
	bool is_log = str_eq(sub, STR("log"));
	struct operation *op;

	if (r->verbs & VERB_GET) {
		op = add_op(p, "get", "get", "read", id, SAY("read " STR_FMT, STR_ARG(of_parent)));
		op->answer = is_log ? NULL : r->type;
		if (is_log)
			add_query(op, TYPE(core_v1, PodLogOptions), false);
	}
	if (r->verbs & VERB_CREATE) {
		str text = SAY("create " STR_FMT " of %s " STR_FMT, STR_ARG(sub), article(parent_kind), STR_ARG(parent_kind));
		op = add_op(p, "post", "post", "create", id, text);
		op->body = op->answer = r->type;
		op->created = 3;
		add_query(op, TYPE(meta_v1, CreateOptions), false);
	}
	if (r->verbs & VERB_UPDATE)
		replace_op(p, id, SAY("replace " STR_FMT, STR_ARG(of_parent)));
	if (r->verbs & VERB_PATCH)
		patch_op(p, id, SAY("partially update " STR_FMT, STR_ARG(of_parent)));
}

static struct path *path_of(struct openapi *o, const struct resource *r, bool has_name, bool has_namespace)
{
	struct path *p = ARENA_NEW(o->arena, struct path);
	p->o = o;
	p->r = r;
	p->kind = r->response_kind.n ? r->response_kind : r->kind;
	p->has_name = has_name;
	p->has_namespace = has_namespace;
	return p;
}

static void add_subresource(struct openapi *o, const struct resource *parent, const struct resource *r, str object,
			    struct val_builder *paths)
{
	str sub = str_skip(r->name, parent->name.n + 1);
	bool namespaced = parent->flags & RESOURCE_NAMESPACED;
	str scope = namespaced ? STR("Namespaced") : STR("");
	str where = arena_printf(o->arena, STR_FMT "/" STR_FMT, STR_ARG(object), STR_ARG(sub));
	bool connects = str_ends(r->kind, STR("Options"));

	for (int rest = 0; rest <= (connects && str_eq(sub, STR("proxy"))); rest++) {
		struct path *p = path_of(o, r, true, namespaced);
		p->has_rest = rest;
		if (connects)
			connect_ops(p, r->type, parent->kind, sub, scope);
		else
			subresource_ops(p, parent->kind, sub, scope);
		finish_path(p, rest ? arena_join(o->arena, where, STR("/{path}")) : where, paths);
	}
}

/* Deprecated paths under watch/; clients that still use them expect them in the document. */
static void add_watches(struct openapi *o, const struct resource *r, str base, str in, struct val_builder *paths)
{
	bool namespaced = r->flags & RESOURCE_NAMESPACED;
	str scope = namespaced ? STR("Namespaced") : STR("");
	str list = arena_printf(o->arena, "watch changes of a list of " STR_FMT "; deprecated: list with the parameter watch",
				STR_ARG(r->kind));
	str one = arena_printf(o->arena,
			       "watch changes of one " STR_FMT "; deprecated: list with the parameters watch and fieldSelector",
			       STR_ARG(r->kind));
	str where = arena_printf(o->arena, STR_FMT "/watch" STR_FMT "/" STR_FMT, STR_ARG(base), STR_ARG(in), STR_ARG(r->name));

	if (namespaced) {
		struct path *all = path_of(o, r, false, false);
		watch_op(all, "watchlist", arena_printf(o->arena, STR_FMT "ListForAllNamespaces", STR_ARG(r->kind)), list);
		finish_path(all, arena_printf(o->arena, STR_FMT "/watch/" STR_FMT, STR_ARG(base), STR_ARG(r->name)), paths);
	}
	struct path *many = path_of(o, r, false, namespaced);
	watch_op(many, "watchlist", arena_printf(o->arena, STR_FMT STR_FMT "List", STR_ARG(scope), STR_ARG(r->kind)), list);
	finish_path(many, where, paths);
	struct path *single = path_of(o, r, true, namespaced);
	watch_op(single, "watch", arena_printf(o->arena, STR_FMT STR_FMT, STR_ARG(scope), STR_ARG(r->kind)), one);
	finish_path(single, arena_join(o->arena, where, STR("/{name}")), paths);
}

void openapi_paths(struct openapi *o, const struct resource *r, struct val_builder *paths)
{
	bool namespaced = r->flags & RESOURCE_NAMESPACED;
	str scope = namespaced ? STR("Namespaced") : STR(""), in = namespaced ? STR("/namespaces/{namespace}") : STR("");
	str base = base_path(o->arena, r->group, r->version);
	str collection = arena_printf(o->arena, STR_FMT STR_FMT "/" STR_FMT, STR_ARG(base), STR_ARG(in), STR_ARG(r->name));
	str object = arena_join(o->arena, collection, STR("/{name}"));

	struct path *many = path_of(o, r, false, namespaced), *one = path_of(o, r, true, namespaced);
	collection_ops(many, scope);
	finish_path(many, collection, paths);
	object_ops(one, scope);
	finish_path(one, object, paths);
	if (namespaced && (r->verbs & VERB_LIST)) {
		struct resource lists = *r;
		lists.verbs = r->verbs & (VERB_LIST | VERB_WATCH);
		struct path *all = path_of(o, &lists, false, false);
		collection_ops(all, STR(""));
		all->ops[0].id_rest = arena_join(o->arena, all->ops[0].id_rest, STR("ForAllNamespaces"));
		finish_path(all, arena_printf(o->arena, STR_FMT "/" STR_FMT, STR_ARG(base), STR_ARG(r->name)), paths);
	}
	for (size_t i = 0; i < schema_n_resources; i++) {
		const struct resource *sub = &schema_resources[i];
		if (str_eq(sub->group, r->group) && str_eq(sub->version, r->version) && str_starts(sub->name, r->name) &&
		    sub->name.n > r->name.n && sub->name.p[r->name.n] == '/' && o->served(sub, o->arg))
			add_subresource(o, r, sub, object, paths);
	}
	if (r->verbs & VERB_WATCH)
		add_watches(o, r, base, in, paths);
}

/* ---- paths that are no resources ---- */

static void add_get(struct openapi *o, str where, str id, str tag, const char *description, const struct operation *op,
		    struct val_builder *paths)
{
	struct arena *a = o->arena;
	struct val media = o->v3 ? VAL_EMPTY : media_list(a, answer_media(op));
	struct val get = OBJECT(a, F(description, VAL_STR(str_of(description))), F(operationId, VAL_STR(id)),
				F(consumes, op->answer ? media : VAL_EMPTY), F(produces, media),
				F(schemes, o->v3 ? VAL_EMPTY : LIST(a, VAL_LIT("https"))), F(responses, responses(o, op)),
				F(tags, LIST(a, VAL_STR(tag))));
	val_add_member(paths, atom_make(a, where), val_object(a, &(struct member){ atom_make(a, STR("get")), get }, 1));
}

void openapi_discovery_path(struct openapi *o, str group, str version, struct val_builder *paths)
{
	struct arena *a = o->arena;
	struct operation op = { .answer = TYPE(meta_v1, APIResourceList) };
	str tag = arena_printf(a, STR_FMT "_" STR_FMT, STR_ARG(group_word(a, group, true)), STR_ARG(version));
	str id = arena_printf(a, "get" STR_FMT STR_FMT "APIResources", STR_ARG(group_word(a, group, false)),
			      STR_ARG(capitalised(a, version)));
	add_get(o, arena_join(a, base_path(a, group, version), STR("/")), id, tag, "get available resources", &op, paths);
}

static const char *const json_media[] = { "application/json", NULL };
static const char *const keys_media[] = { "application/jwk-set+json", NULL };

static const struct root {
	str name;
	const char *id, *tag, *description;
	struct operation op;
} roots[] = {
	{ STR_INIT("api"), "getCoreAPIVersions", "core", "get available API versions", { .answer = TYPE(meta_v1, APIVersions) } },
	{ STR_INIT("apis"), "getAPIVersions", "apis", "get available API versions", { .answer = TYPE(meta_v1, APIGroupList) } },
	{ STR_INIT("version"), "getCodeVersion", "version", "get the version of the server",
	  { .answer = TYPE(version, Info), .media = json_media } },
	{ STR_INIT(".well-known/openid-configuration"), "getServiceAccountIssuerOpenIDConfiguration", "WellKnown",
	  "get what OpenID Connect needs to know about the issuer of service account tokens", { .media = json_media } },
	{ STR_INIT("openid/v1/jwks"), "getServiceAccountIssuerOpenIDKeyset", "openid",
	  "get the public keys of service account tokens", { .media = keys_media } },
};

bool openapi_root_path(struct openapi *o, str name, struct val_builder *paths)
{
	struct arena *a = o->arena;
	str where = arena_printf(a, "/" STR_FMT "/", STR_ARG(name)), group = str_skip(name, strlen("apis/"));

	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		if (str_eq(roots[i].name, name)) {
			add_get(o, where, str_of(roots[i].id), str_of(roots[i].tag), roots[i].description, &roots[i].op, paths);
			return true;
		}
	if (!str_starts(name, STR("apis/")) || str_chr(group, '/') >= 0)
		return false;
	struct operation op = { .answer = TYPE(meta_v1, APIGroup) };
	str id = arena_printf(a, "get" STR_FMT "APIGroup", STR_ARG(group_word(a, group, false)));
	add_get(o, where, id, group_word(a, group, true), "get information of a group", &op, paths);
	return true;
}

void openapi_root_paths(struct openapi *o, struct val_builder *paths)
{
	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		(void)openapi_root_path(o, roots[i].name, paths);
}
