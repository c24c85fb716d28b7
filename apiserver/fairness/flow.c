/*
 * Compiled schemas: texts copied next to each other, lists that match everything marked so. Most requests are decided by who asks,
 * and comparing a few names costs less than looking them up would.
 */
#include "apiserver/fairness/flow.h"

#include <stdlib.h>

#include "codec/atoms.h"

/* A list of words, or all of them. */
struct names {
	const str *v;
	size_t n;
	bool any;
};

enum subject_kind { SUBJECT_USER, SUBJECT_GROUP, SUBJECT_ACCOUNT, SUBJECT_NAMESPACE };

struct subject {
	enum subject_kind kind;
	bool any;                     /* user or group "*" */
	str name;                     /* of an account "system:serviceaccount:NS:NAME", of all of a namespace up to the last ":" */
};

struct resource_rule {
	struct names verbs, groups, resources, namespaces;
	bool cluster;
};

struct url_rule {
	struct names verbs, urls;
};

struct flow_rule {
	const struct subject *subjects;
	size_t n_subjects;
	const struct resource_rule *resources;
	size_t n_resources;
	const struct url_rule *urls;
	size_t n_urls;
};

/* ---- matching ---- */

static bool contains(const struct names *names, str s)
{
	if (names->any)
		return true;
	for (size_t i = 0; i < names->n; i++)
		if (str_eq(names->v[i], s))
			return true;
	return false;
}

/* Verbs of what is no resource are methods in capital letters. */
static bool contains_method(const struct names *names, str method)
{
	if (names->any)
		return true;
	for (size_t i = 0; i < names->n; i++) {
		size_t k = 0;
		while (k < method.n && names->v[i].n == method.n && names->v[i].p[k] == (method.p[k] | 0x20))
			k++;
		if (k == method.n && names->v[i].n == k)
			return true;
	}
	return false;
}

/* "pods", or "pods/status" */
static bool contains_resource(const struct names *names, str resource, str subresource)
{
	if (names->any || !subresource.n)
		return contains(names, resource);
	for (size_t i = 0; i < names->n; i++) {
		str name = names->v[i];
		if (name.n == resource.n + 1 + subresource.n && str_starts(name, resource) && name.p[resource.n] == '/' &&
		    str_ends(name, subresource))
			return true;
	}
	return false;
}

/* "/healthz" is also all that is below it, and so is "/healthz/" and a star behind a slash. */
static bool contains_path(const struct names *names, str path)
{
	if (names->any)
		return true;
	for (size_t i = 0; i < names->n; i++) {
		str url = names->v[i];
		if (str_eq(url, path) || str_eq(url, STR("*")))
			return true;
		if (url.n && url.p[url.n - 1] == '*')
			url.n--;
		bool slash = url.n && url.p[url.n - 1] == '/';
		if (str_starts(path, url) && (slash || (path.n > url.n && path.p[url.n] == '/')))
			return true;
	}
	return false;
}

static bool is_subject(const struct subject *s, const struct user *u)
{
	switch (s->kind) {
	case SUBJECT_USER:
	case SUBJECT_ACCOUNT:
		return s->any || str_eq(s->name, u->name);
	case SUBJECT_NAMESPACE:
		return str_starts(u->name, s->name);
	case SUBJECT_GROUP:
		break;
	}
	for (size_t i = 0; i < u->n_groups && !s->any; i++)
		if (str_eq(u->groups[i], s->name))
			return true;
	return s->any;
}

static bool resource_fits(const struct resource_rule *r, const struct request *q)
{
	return contains(&r->verbs, q->verb_text) && contains_resource(&r->resources, q->resource, q->subresource) &&
	       contains(&r->groups, q->group) && (q->namespace.n ? contains(&r->namespaces, q->namespace) : r->cluster);
}

static bool rule_fits(const struct flow_rule *rule, const struct request *q)
{
	size_t i = 0;
	while (i < rule->n_subjects && !is_subject(&rule->subjects[i], &q->user))
		i++;
	if (i == rule->n_subjects)
		return false;
	if (q->is_resource) {
		for (i = 0; i < rule->n_resources; i++)
			if (resource_fits(&rule->resources[i], q))
				return true;
		return false;
	}
	for (i = 0; i < rule->n_urls; i++)
		if (contains_method(&rule->urls[i].verbs, q->method) && contains_path(&rule->urls[i].urls, q->path))
			return true;
	return false;
}

struct flow_schema *flow_match(const struct flow_table *t, const struct request *q)
{
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < t->schemas[i].n_rules; k++)
			if (rule_fits(&t->schemas[i].rules[k], q))
				return &t->schemas[i];
	return t->catch_all;
}

str flow_distinguisher(const struct flow_schema *f, const struct request *q)
{
	if (f->by == FLOW_BY_USER)
		return q->user.name;
	return f->by == FLOW_BY_NAMESPACE ? q->namespace : STR_NONE;
}

uint64_t flow_hash(const struct flow_schema *f, str distinguisher)
{
	/* the last step of splitmix64: hands are dealt from all bits */
	uint64_t x = f->hash + 0x9e3779b97f4a7c15 * str_hash(distinguisher);
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* ---- compiling ---- */

/* A star alone is everything; among others it is a name like any. */
static struct names names_of(struct arena *a, struct val list)
{
	struct names names = { .n = val_len(list) };
	str *v = ARENA_ARRAY(a, str, names.n);
	size_t i = 0;
	VAL_EACH(item, list)
		v[i++] = arena_str(a, val_as_str(*item));
	names.v = v;
	names.any = names.n == 1 && str_eq(v[0], STR("*"));
	return names;
}

static bool subject_of(struct arena *a, struct val s, struct subject *ret)
{
	str kind = val_str(s, kind);
	*ret = (struct subject){ .kind = SUBJECT_USER };
	if (str_eq(kind, STR("User")) && val_exists(val_get(s, user))) {
		ret->name = arena_str(a, val_str(s, user, name));
		ret->any = str_eq(ret->name, STR("*"));
		return true;
	}
	if (str_eq(kind, STR("Group")) && val_exists(val_get(s, group))) {
		ret->kind = SUBJECT_GROUP;
		ret->name = arena_str(a, val_str(s, group, name));
		ret->any = str_eq(ret->name, STR("*"));
		return true;
	}
	if (!str_eq(kind, STR("ServiceAccount")) || !val_exists(val_get(s, serviceAccount)))
		return false;
	str namespace = val_str(s, serviceAccount, namespace), name = val_str(s, serviceAccount, name);
	bool all = str_eq(name, STR("*"));
	ret->kind = all ? SUBJECT_NAMESPACE : SUBJECT_ACCOUNT;
	ret->name = arena_printf(a, "system:serviceaccount:" STR_FMT ":" STR_FMT, STR_ARG(namespace), STR_ARG(all ? STR("") : name));
	return true;
}

static void rule_compile(struct arena *a, struct val rule, struct flow_rule *ret)
{
	struct val subjects = val_get(rule, subjects), resources = val_get(rule, resourceRules), urls = val_get(rule, nonResourceRules);
	struct subject *s = ARENA_ARRAY(a, struct subject, val_len(subjects));
	struct resource_rule *r = ARENA_ARRAY(a, struct resource_rule, val_len(resources));
	struct url_rule *u = ARENA_ARRAY(a, struct url_rule, val_len(urls));
	*ret = (struct flow_rule){ .subjects = s, .resources = r, .urls = u };
	VAL_EACH(item, subjects)
		ret->n_subjects += subject_of(a, *item, &s[ret->n_subjects]);
	VAL_EACH(item, resources)
		r[ret->n_resources++] = (struct resource_rule){
			.verbs = names_of(a, val_get(*item, verbs)), .groups = names_of(a, val_get(*item, apiGroups)),
			.resources = names_of(a, val_get(*item, resources)), .namespaces = names_of(a, val_get(*item, namespaces)),
			.cluster = val_bool(*item, clusterScope),
		};
	VAL_EACH(item, urls)
		u[ret->n_urls++] = (struct url_rule){ names_of(a, val_get(*item, verbs)), names_of(a, val_get(*item, nonResourceURLs)) };
}

static void schema_compile(struct arena *a, struct val object, struct priority_level *level, struct flow_schema *ret)
{
	struct val rules = val_get(object, spec, rules);
	str by = val_str(object, spec, distinguisherMethod, type);
	struct flow_rule *v = ARENA_ARRAY(a, struct flow_rule, val_len(rules));
	*ret = (struct flow_schema){
		.name = arena_str(a, val_str(object, metadata, name)), .uid = arena_str(a, val_str(object, metadata, uid)),
		.precedence = val_int(object, spec, matchingPrecedence), .level = level, .rules = v,
	};
	if (by.n)
		ret->by = str_eq(by, STR("ByNamespace")) ? FLOW_BY_NAMESPACE : FLOW_BY_USER;
	VAL_EACH(rule, rules)
		rule_compile(a, *rule, &v[ret->n_rules++]);
}

static int by_precedence(const void *x, const void *y)
{
	const struct flow_schema *a = x, *b = y;
	if (a->precedence != b->precedence)
		return a->precedence < b->precedence ? -1 : 1;
	return str_cmp(a->name, b->name);
}

static struct flow_schema *find(const struct flow_table *t, str name)
{
	for (size_t i = 0; i < t->n; i++)
		if (str_eq(t->schemas[i].name, name))
			return &t->schemas[i];
	return NULL;
}

/* system:masters, whatever they ask for: before all others. */
static void imagine_exempt(struct flow_table *t, const struct levels *levels)
{
	static const struct subject masters = { SUBJECT_GROUP, false, STR_INIT("system:masters") };
	static const struct resource_rule resources = { { .any = true }, { .any = true }, { .any = true }, { .any = true }, true };
	static const struct url_rule urls = { { .any = true }, { .any = true } };
	static const struct flow_rule rule = { &masters, 1, &resources, 1, &urls, 1 };
	memmove(&t->schemas[1], &t->schemas[0], t->n++ * sizeof *t->schemas);
	t->schemas[0] = (struct flow_schema){ .name = STR("exempt"), .uid = STR(""), .precedence = 1, .rules = &rule, .n_rules = 1,
					      .level = levels_find(levels, STR("exempt")) };
}

/* It needs no rules: it is taken when nothing fits. */
static void imagine_catch_all(struct flow_table *t, const struct levels *levels)
{
	t->schemas[t->n++] = (struct flow_schema){ .name = STR("catch-all"), .uid = STR(""), .precedence = 10000, .by = FLOW_BY_USER,
						   .level = levels_find(levels, STR("catch-all")) };
}

void flow_table_init(struct flow_table *t, const struct levels *levels, const struct val *objects, size_t n)
{
	*t = (struct flow_table){ .memory = ARENA_INIT };
	t->schemas = ARENA_ARRAY(&t->memory, struct flow_schema, n + 2);
	for (size_t i = 0; i < n; i++) {
		struct priority_level *level = levels_find(levels, val_str(objects[i], spec, priorityLevelConfiguration, name));
		if (level)
			schema_compile(&t->memory, objects[i], level, &t->schemas[t->n++]);
	}
	qsort(t->schemas, t->n, sizeof *t->schemas, by_precedence);
	if (!find(t, STR("exempt")))
		imagine_exempt(t, levels);
	if (!find(t, STR("catch-all")))
		imagine_catch_all(t, levels);
	t->catch_all = find(t, STR("catch-all"));
	for (size_t i = 0; i < t->n; i++)
		t->schemas[i].hash = str_hash(t->schemas[i].name);
}

void flow_table_done(struct flow_table *t) { arena_done(&t->memory); }
