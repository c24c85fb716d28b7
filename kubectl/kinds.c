#include "kubectl/kinds.h"

#include "net/url.h"

/* ---- made once ---- */

/* Those that were made already, so that the same resource is the same pointer. */
struct known {
	struct ktl_kind kind;
	struct known *next;
};

static struct ktl_kind *add(struct ktl *k, const struct ktl_kind *kind)
{
	struct known *n = ARENA_NEW(&k->arena, struct known);
	n->kind = *kind;
	n->next = k->kinds;
	k->kinds = n;
	return &n->kind;
}

static const struct ktl_kind *lookup(struct ktl *k, str group, str version, str resource)
{
	for (struct known *n = k->kinds; n; n = n->next)
		if (str_eq(n->kind.resource, resource) && str_eq(n->kind.group, group) && str_eq(n->kind.version, version))
			return &n->kind;
	return NULL;
}

static struct val list_of(struct ktl *k, const str *texts)
{
	struct val_builder b = val_builder(&k->arena);
	for (; texts && texts->p; texts++)
		val_add_item(&b, VAL_STR(*texts));
	return val_end_list(&b);
}

static const struct ktl_kind *built_in(struct ktl *k, const struct resource *r)
{
	const struct ktl_kind *old = lookup(k, r->group, r->version, r->name);
	struct ktl_kind kind = {
		.group = r->group, .version = r->version, .resource = r->name, .singular = r->singular, .kind = r->kind,
		.namespaced = r->flags & RESOURCE_NAMESPACED, .verbs = r->verbs, .type = r->type,
	};
	if (old)
		return old;
	kind.short_names = list_of(k, r->short_names);
	kind.categories = list_of(k, r->categories);
	return add(k, &kind);
}

/* ---- discovery ---- */

static unsigned verb_of(str name)
{
	static const char *const names[] = { "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch" };
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, str_of(names[i])))
			return 1u << i;
	return 0;
}

static void add_discovered(struct ktl *k, str group, str version, struct val r)
{
	struct ktl_kind kind = {
		.group = group, .version = version, .resource = val_str(r, resource), .kind = val_str(r, responseKind, kind),
		.singular = val_str(r, singularResource), .namespaced = str_eq(val_str(r, scope), STR("Namespaced")),
		.short_names = val_get(r, shortNames), .categories = val_get(r, categories),
	};
	if (lookup(k, group, version, kind.resource))
		return;
	VAL_EACH(v, val_get(r, verbs))
		kind.verbs |= verb_of(val_as_str(*v));
	kind.type = schema_kind(group.n ? arena_printf(&k->arena, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)) : version, kind.kind);
	(void)add(k, &kind);
}

/* (suspends) Groups of /api and /apis, in the server's order, in the form of apidiscovery.k8s.io. */
static int discover(struct ktl *k)
{
	static const char *const paths[] = { "/api", "/apis" };
	struct val_builder groups = val_builder(&k->arena);
	if (k->discovered)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct val v;
		struct client_raw q = {
			.method = STR("GET"), .path = str_of(paths[i]),
			.accept = STR("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
				      "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"),
		};
		if (ktl_call(k, &q, &v) < 0)
			return -1;
		VAL_EACH(g, val_get(v, items))
			val_add_item(&groups, *g);
	}
	k->discovery = val_end_list(&groups);
	k->discovered = true;
	VAL_EACH(g, k->discovery)
		VAL_EACH(version, val_get(*g, versions))
			VAL_EACH(r, val_get(*version, resources))
				add_discovered(k, val_str(*g, metadata, name), val_str(*version, version), *r);
	return 0;
}

/* ---- by name ---- */

/* "pods.v1.metrics.k8s.io" may be version and group, or a group alone. */
struct asked {
	str name, group, version;
	bool has_group;
};

static bool names(const struct ktl_kind *kind, str name)
{
	if (str_eq(kind->resource, name) || str_eq(kind->singular, name))
		return true;
	VAL_EACH(s, kind->short_names)
		if (str_eq(val_as_str(*s), name))
			return true;
	return false;
}

static bool in_group(const struct asked *q, str group, str version)
{
	/* As kubectl, a group may be cut off: "deployments.app" is no match, but "ingresses.networking" is. */
	bool group_fits = !q->has_group || str_eq(group, q->group) || (q->group.n && str_starts(group, q->group));
	return group_fits && (!q->version.n || str_eq(version, q->version));
}

static bool resource_names(const struct resource *r, str name)
{
	if (str_eq(r->name, name) || str_eq(r->singular, name))
		return true;
	for (const str *s = r->short_names; s && s->p; s++)
		if (str_eq(*s, name))
			return true;
	return false;
}

/* Groups and versions are in the order in which servers prefer them. */
static const struct ktl_kind *find_built_in(struct ktl *k, const struct asked *q)
{
	for (size_t i = 0; i < schema_n_api_versions; i++) {
		const struct api_version *v = &schema_api_versions[i];
		if (!in_group(q, v->group, v->version))
			continue;
		for (const struct resource *r = schema_resources; r < schema_resources + schema_n_resources; r++)
			if (str_eq(r->group, v->group) && str_eq(r->version, v->version) && str_chr(r->name, '/') < 0 &&
			    ((r->flags & RESOURCE_DEFAULT) || q->version.n) && resource_names(r, q->name))
				return built_in(k, r);
	}
	return NULL;
}

static const struct ktl_kind *find_discovered(struct ktl *k, const struct asked *q)
{
	VAL_EACH(g, k->discovery)
		VAL_EACH(version, val_get(*g, versions)) {
			str group = val_str(*g, metadata, name), name = val_str(*version, version);
			if (!in_group(q, group, name))
				continue;
			VAL_EACH(r, val_get(*version, resources)) {
				const struct ktl_kind *kind = lookup(k, group, name, val_str(*r, resource));
				if (kind && names(kind, q->name))
					return kind;
			}
		}
	return NULL;
}

/* The ways to read an argument, in kubectl's order. */
static size_t readings(str arg, struct asked out[2])
{
	size_t n = 0;
	struct asked q = { 0 };
	str rest;
	if (str_cut(arg, '.', &q.name, &rest) && str_chr(rest, '.') >= 0) {
		q.has_group = true;
		(void)str_cut(rest, '.', &q.version, &q.group);
		out[n++] = q;
	}
	q = (struct asked){ 0 };
	q.has_group = str_cut(arg, '.', &q.name, &q.group);
	out[n++] = q;
	return n;
}

bool ktl_kind_known(struct ktl *k, str arg, const struct ktl_kind **ret)
{
	struct asked q[2];
	size_t n = readings(ktl_lower(k, arg), q);
	for (size_t i = 0; i < n; i++)
		if ((*ret = find_built_in(k, &q[i])))
			return true;
	if (discover(k) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((*ret = find_discovered(k, &q[i])))
			return true;
	return false;
}

int ktl_kind_find(struct ktl *k, str arg, const struct ktl_kind **ret)
{
	size_t before = k->n_failures;
	str name, rest;
	if (ktl_kind_known(k, arg, ret))
		return 0;
	if (k->n_failures > before)
		return -1;
	(void)str_cut(arg, '.', &name, &rest);
	return ktl_fail(k, "the server doesn't have a resource type " STR_FMT, STR_ARG(ktl_quote(k, name)));
}

/* ---- by kind ---- */

const struct ktl_kind *ktl_kind_of_type(struct ktl *k, const struct type *type) { return built_in(k, schema_resource(type, STR(""))); }

int ktl_kind_of(struct ktl *k, str api_version, str kind, const struct ktl_kind **ret)
{
	const struct type *type = schema_kind(api_version, kind);
	const struct resource *r = type ? schema_resource(type, STR("")) : NULL;
	*ret = NULL;
	if (r) {
		*ret = built_in(k, r);
		return 0;
	}
	if (discover(k) < 0)
		return -1;
	for (struct known *n = k->kinds; n; n = n->next)
		if (str_eq(n->kind.kind, kind) && str_chr(n->kind.resource, '/') < 0 && str_eq(ktl_kind_api_version(k, &n->kind), api_version))
			*ret = &n->kind;
	return 0;
}

/* ---- many ---- */

int ktl_kinds_all(struct ktl *k, const struct ktl_kind ***ret, size_t *ret_n)
{
	size_t n = 0;
	if (discover(k) < 0)
		return -1;
	VAL_EACH(g, k->discovery)
		VAL_EACH(version, val_get(*g, versions))
			n += val_len(val_get(*version, resources));
	*ret = ARENA_ARRAY(&k->arena, const struct ktl_kind *, n + 1);
	*ret_n = 0;
	VAL_EACH(g, k->discovery) {
		struct val seen = VAL_EMPTY_OBJECT; /* each resource once, in the version that the server prefers */
		VAL_EACH(version, val_get(*g, versions))
			VAL_EACH(r, val_get(*version, resources)) {
				str name = val_str(*r, resource);
				if (val_exists(val_find(seen, name)))
					continue;
				seen = val_put(&k->arena, seen, atom_make(&k->arena, name), val_of_bool(true));
				(*ret)[(*ret_n)++] = lookup(k, val_str(*g, metadata, name), val_str(*version, version), name);
			}
	}
	return 0;
}

static bool has_category(const struct ktl_kind *kind, str name)
{
	VAL_EACH(c, kind->categories)
		if (str_eq(val_as_str(*c), name))
			return true;
	return false;
}

int ktl_category(struct ktl *k, str name, struct val *ret)
{
	static const char *const known[] = { "all", "api-extensions" };
	struct val_builder b = val_builder(&k->arena);
	const struct ktl_kind **kinds;
	size_t n;
	*ret = VAL_EMPTY;
	/* Only where a server is asked anyway, or the name says that it is a category: types are looked up without asking. */
	bool maybe = k->discovered;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		maybe |= str_eq(name, str_of(known[i]));
	if (!maybe)
		return 0;
	if (ktl_kinds_all(k, &kinds, &n) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (has_category(kinds[i], name))
			val_add_item(&b, VAL_STR(ktl_kind_resource(k, kinds[i])));
	struct val list = val_end_list(&b);
	if (val_len(list))
		*ret = list;
	return 0;
}

/* ---- texts ---- */

str ktl_kind_api_version(struct ktl *k, const struct ktl_kind *kind)
{
	return kind->group.n ? arena_printf(&k->arena, STR_FMT "/" STR_FMT, STR_ARG(kind->group), STR_ARG(kind->version)) : kind->version;
}

static str in_its_group(struct ktl *k, str name, str group)
{
	return group.n ? arena_printf(&k->arena, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(group)) : name;
}

str ktl_kind_group_version(struct ktl *k, const struct ktl_kind *kind)
{
	return arena_printf(&k->arena, STR_FMT "/" STR_FMT, STR_ARG(kind->group), STR_ARG(kind->version));
}

str ktl_kind_resource(struct ktl *k, const struct ktl_kind *kind) { return in_its_group(k, kind->resource, kind->group); }
str ktl_kind_label(struct ktl *k, const struct ktl_kind *kind) { return in_its_group(k, ktl_lower(k, kind->kind), kind->group); }

static void add_part(struct buf *b, str part)
{
	buf_addc(b, '/');
	url_path_escape(b, part);
}

str ktl_kind_path(struct ktl *k, const struct ktl_kind *kind, str namespace, str name, str subresource)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 * 1024);
	buf_add(&b, kind->group.n ? STR("/apis") : STR("/api"));
	if (kind->group.n)
		add_part(&b, kind->group);
	add_part(&b, kind->version);
	if (kind->namespaced && namespace.n) {
		buf_add(&b, STR("/namespaces"));
		add_part(&b, namespace);
	}
	add_part(&b, kind->resource);
	if (name.n)
		add_part(&b, name);
	if (subresource.n) {
		buf_addc(&b, '/');
		buf_add(&b, subresource);
	}
	return arena_str(&k->arena, buf_str(&b));
}
