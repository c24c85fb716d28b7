/*
 * The tables are made from schema_resources. Rows that are stored under the same key are versions of one kind: the
 * first of them that is served makes the kind, and all of them find it by its prefix.
 */
#include "apiserver/kinds.h"
#include "base/mem.h"

static bool served_by_default(const struct resource *r, void *arg)
{
	(void)arg;
	return r->flags & RESOURCE_DEFAULT;
}

/*
 * The type of the storage version. CustomResourceDefinitions are the one kind whose storage version (v1beta1) is no
 * longer an API: those are kept in v1, which every server that may share the store reads as well.
 */
static const struct type *hub_of(const struct resource *r)
{
	const struct type *type = schema_kind(r->storage_version, r->kind);
	return type ? type : r->type;
}

static str path_of(struct arena *a, str group, str version, str resource)
{
	return arena_printf(a, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version), STR_ARG(resource));
}

static struct kind *kind_of(struct kinds *k, const struct resource *r)
{
	static const struct kind_hooks no_hooks;

	if (!r->key_prefix.n)
		return NULL;
	str prefix = arena_printf(&k->memory, "/registry/" STR_FMT "/", STR_ARG(r->key_prefix));
	struct kind *kind = map_get(&k->by_prefix, prefix);
	if (kind)
		return kind;
	const struct type *hub = hub_of(r);
	kind = &k->kinds[k->n_kinds++];
	*kind = (struct kind){
		.group = hub->package->group,
		.resource = r->name,
		.prefix = prefix,
		.hub = hub,
		.namespaced = r->flags & RESOURCE_NAMESPACED,
		.protobuf = r->flags & RESOURCE_PROTOBUF,
		.hooks = &no_hooks,
	};
	list_init(&kind->watchers);
	map_put(&k->by_prefix, prefix, kind);
	return kind;
}

/* Rows of subresources come after the row of their resource; without it there is nothing they could belong to. */
static void endpoint_add(struct kinds *k, const struct resource *r)
{
	struct endpoint *e = &k->endpoints[k->n_endpoints];
	str name, subresource;

	*e = (struct endpoint){ .resource = r, .main = e };
	if (str_cut(r->name, '/', &name, &subresource)) {
		e->subresource = subresource;
		e->main = map_get(&k->by_path, path_of(&k->memory, r->group, r->version, name));
		if (!e->main)
			return;
		e->kind = e->main->kind;
		e->type = e->main->type;
	} else {
		e->kind = kind_of(k, r);
		e->type = r->type;
	}
	k->n_endpoints++;
	map_put(&k->by_path, path_of(&k->memory, r->group, r->version, r->name), e);
	map_put(&k->served, arena_printf(&k->memory, STR_FMT "/" STR_FMT, STR_ARG(r->group), STR_ARG(r->version)), e);
}

void kinds_init(struct kinds *k, bool (*served)(const struct resource *r, void *arg), void *arg)
{
	*k = (struct kinds){
		.kinds = mem_array(schema_n_resources, sizeof *k->kinds),
		.endpoints = mem_array(schema_n_resources, sizeof *k->endpoints),
	};
	for (size_t i = 0; i < schema_n_resources; i++)
		if ((served ? served : served_by_default)(&schema_resources[i], arg))
			endpoint_add(k, &schema_resources[i]);
}

void kinds_done(struct kinds *k)
{
	map_done(&k->by_path);
	map_done(&k->by_prefix);
	map_done(&k->served);
	arena_done(&k->memory);
	free(k->kinds);
	free(k->endpoints);
	*k = (struct kinds){ 0 };
}

const struct endpoint *kinds_endpoint(const struct kinds *k, str group, str version, str resource, str subresource)
{
	char path[512];
	size_t n = 0;
	const str parts[] = { group, version, resource, subresource };

	for (size_t i = 0; i < ARRAY_LEN(parts) && (i < 3 || subresource.n); i++) {
		if (n + 1 + parts[i].n > sizeof path)
			return NULL; /* longer than any name */
		if (i)
			path[n++] = '/';
		if (parts[i].n)
			memcpy(path + n, parts[i].p, parts[i].n);
		n += parts[i].n;
	}
	return map_get(&k->by_path, str_span(path, n));
}

struct kind *kinds_find(const struct kinds *k, str group, str resource)
{
	for (size_t i = 0; i < k->n_endpoints; i++) {
		const struct resource *r = k->endpoints[i].resource;
		if (str_eq(r->name, resource) && str_eq(r->group, group))
			return k->endpoints[i].kind;
	}
	return NULL;
}

struct kind *kinds_of_key(const struct kinds *k, str store_key, str *ret_key)
{
	static const str root = STR_INIT("/registry/");

	if (!str_starts(store_key, root))
		return NULL;
	/* One word ("pods/") or two ("services/specs/"): the rest is at most namespace and name. */
	for (size_t n = root.n, words = 0; words < 2; words++) {
		ptrdiff_t slash = str_chr(str_skip(store_key, n), '/');
		if (slash < 0)
			return NULL;
		n += (size_t)slash + 1;
		struct kind *kind = map_get(&k->by_prefix, str_head(store_key, n));
		if (kind) {
			*ret_key = str_skip(store_key, n);
			return kind;
		}
	}
	return NULL;
}
