#include "codec/schema.h"

#include "codec/schema_tables.h"

const struct field_facts schema_no_facts = { .gate = STR_INIT("") };

static bool api_version_is(const struct type *t, str api_version)
{
	const struct type_package *p = t->package;

	if (!p->group.n)
		return str_eq(p->version, api_version);
	return api_version.n == p->group.n + 1 + p->version.n && str_starts(api_version, p->group) &&
	       api_version.p[p->group.n] == '/' && str_ends(api_version, p->version);
}

const struct type *schema_kind(str api_version, str kind)
{
	for (uint32_t i = kind_hash(api_version, kind);; i++) {
		unsigned slot = schema_kind_slots[i & schema_kind_mask];
		if (!slot)
			return NULL;
		const struct type *t = schema_types[slot - 1];
		if (str_eq(t->name, kind) && api_version_is(t, api_version))
			return t;
	}
}

const struct type *schema_type(str full_name)
{
	size_t dot = full_name.n;
	while (dot && full_name.p[dot - 1] != '.')
		dot--;
	if (!dot)
		return NULL;
	str package = str_span(full_name.p, dot - 1), name = str_span(full_name.p + dot, full_name.n - dot);
	size_t low = 0, high = schema_n_types;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct type *t = schema_types[middle];
		int order = str_cmp(t->package->name, package);
		if (order == 0)
			order = str_cmp(t->name, name);
		if (order == 0)
			return t;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

str type_api_version(struct arena *a, const struct type *t)
{
	const struct type_package *p = t->package;
	return p->group.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(p->group), STR_ARG(p->version)) : p->version;
}

const struct resource *schema_resource(const struct type *type, str subresource)
{
	for (const struct resource *r = schema_resources; r < schema_resources + schema_n_resources; r++) {
		str name, below;
		if (r->type != type)
			continue;
		(void)str_cut(r->name, '/', &name, &below);
		if (str_eq(below, subresource))
			return r;
	}
	return NULL;
}

bool type_is_namespaced(const struct type *type)
{
	const struct resource *r = schema_resource(type, STR(""));
	for (const struct resource *s = schema_resources; !r && s < schema_resources + schema_n_resources; s++)
		if (s->type == type)
			r = s;
	return r && (r->flags & RESOURCE_NAMESPACED);
}
