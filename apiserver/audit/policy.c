/* The policy stays the tree that it was decoded to; requests are compared with it rule by rule. */
#include "apiserver/audit/policy.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/names.h"

enum { JSON_MAX = 16 << 20, SHOWN = 200 };

#define NAME_TEXT(name, text) STR_INIT(text),
const str audit_level_names[AUDIT_LEVEL_MAX] = { AUDIT_LEVELS(NAME_TEXT) };
const str audit_stage_names[AUDIT_STAGE_MAX] = { AUDIT_STAGES(NAME_TEXT) };
#undef NAME_TEXT

struct rule {
	struct val val;
	struct audit_verdict verdict;
};

struct audit_policy {
	struct arena memory;
	struct rule *rules;
	size_t n;
	struct audit_verdict otherwise;
};

static int find(const str *names, size_t n, str s)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(names[i], s))
			return (int)i;
	return -1;
}

/* ---- reading ---- */

static void check_stages(struct field_errors *e, const struct field_path *at, struct val stages)
{
	int64_t i = 0;
	VAL_EACH(stage, stages) {
		if (find(audit_stage_names, AUDIT_STAGE_MAX, val_as_str(*stage)) < 0)
			field_invalid(e, FIELD_INDEX(at, i), *stage,
				      "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic");
		i++;
	}
}

static void check_level(struct field_errors *e, const struct field_path *at, struct val level)
{
	static const str known[] = { STR_INIT("None"), STR_INIT("Metadata"), STR_INIT("Request"), STR_INIT("RequestResponse"), { NULL, 0 } };
	if (!val_as_str(level).n)
		field_required(e, at, "%s", "");
	else if (find(audit_level_names, AUDIT_LEVEL_MAX, val_as_str(level)) < 0)
		field_not_supported(e, at, level, known);
}

static void check_urls(struct field_errors *e, const struct field_path *at, struct val urls)
{
	int64_t i = 0;
	VAL_EACH(url, urls) {
		const struct field_path *here = FIELD_INDEX(at, i++);
		str s = val_as_str(*url);
		if (str_eq(s, STR("*")))
			continue;
		if (!str_starts(s, STR("/")))
			field_invalid(e, here, *url, "non-resource URL rules must begin with a '/' character");
		if (s.n && str_chr(str_head(s, s.n - 1), '*') >= 0)
			field_invalid(e, here, *url, "non-resource URL wildcards '*' must be the final character of the rule");
	}
}

static void check_resources(struct field_errors *e, const struct field_path *at, struct val resources)
{
	VAL_EACH(r, resources) {
		str group = val_str(*r, group);
		struct name_errors bad = { 0 };
		if (group.n && !str_eq(group, STR("*")) && name_check_dns1123_subdomain(group, &bad)) {
			str why = name_errors_join(e->arena, &bad, ",");
			field_invalid(e, FIELD(at, "group"), val_of_str(group), STR_FMT, STR_ARG(why));
		}
		if (val_len(val_get(*r, resourceNames)) && !val_len(val_get(*r, resources)))
			field_invalid(e, FIELD(at, "resourceNames"), val_get(*r, resourceNames),
				      "using resourceNames requires at least one resource");
	}
}

static void check_rule(struct field_errors *e, const struct field_path *at, struct val rule)
{
	struct val urls = val_get(rule, nonResourceURLs);
	check_level(e, FIELD(at, "level"), val_get(rule, level));
	check_urls(e, FIELD(at, "nonResourceURLs"), urls);
	check_resources(e, FIELD(at, "resources"), val_get(rule, resources));
	check_stages(e, FIELD(at, "omitStages"), val_get(rule, omitStages));
	if (val_len(urls) && (val_len(val_get(rule, resources)) || val_len(val_get(rule, namespaces))))
		field_invalid(e, FIELD(at, "nonResourceURLs"), urls, "rules cannot apply to both regular resources and non-resource URLs");
}

static int check(struct arena *a, struct val policy, struct err *err)
{
	struct field_errors e;
	int64_t i = 0;
	field_errors_init(&e, a);
	check_stages(&e, FIELD(NULL, "omitStages"), val_get(policy, omitStages));
	VAL_EACH(rule, val_get(policy, rules))
		check_rule(&e, FIELD_INDEX(FIELD(NULL, "rules"), i++), *rule);
	if (e.n) {
		str text = field_errors_plain(&e);
		return err_set(err, ERR_BAD_REQUEST, STR_FMT, STR_ARG(text));
	}
	return i ? 0 : err_set(err, ERR_BAD_REQUEST, "loaded illegal policy with 0 rules");
}

static int check_kind(struct arena *a, str json, struct err *err)
{
	struct val v;
	int r = json_decode(a, json, &(const struct json_decode_options){ .sort_keys = true }, &v, err);
	if (r < 0)
		return r;
	str kind = val_str(v, kind), version = val_str(v, apiVersion);
	if (!kind.n || !version.n)
		return err_set(err, ERR_BAD_REQUEST, "Object '%s' is missing in '" STR_FMT "'", kind.n ? "apiVersion" : "Kind",
			       STR_ARG(str_head(json, SHOWN)));
	if (!str_eq(kind, STR("Policy")) || !str_eq(version, STR("audit.k8s.io/v1")))
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT
			       "\" in scheme \"k8s.io/apiserver/pkg/audit/scheme.go:30\"", STR_ARG(kind), STR_ARG(version));
	return 0;
}

static int decode(struct arena *a, str text, struct val *ret, str *ret_warning, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(JSON_MAX), duplicates = BUF_INIT(4096);
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	int r = yaml_to_json(text, &json, &duplicates, err);
	if (r < 0)
		return r;
	str lasting = arena_str(a, buf_str(&json));
	strict->arena = a;
	*ret_warning = STR("");
	if ((r = check_kind(a, lasting, err)) < 0 ||
	    (r = json_decode(a, lasting, &(struct json_decode_options){ .type = TYPE(audit_v1, Policy), .strict = strict }, ret, err)) < 0)
		return r;
	struct err unknown = ERR_INIT;
	if (strict_errors_fail(strict, &unknown) < 0)
		*ret_warning = arena_str(a, err_str(&unknown));
	else if (duplicates.n)
		*ret_warning = arena_printf(a, "strict decoding error: " STR_FMT, STR_ARG(buf_str(&duplicates)));
	return 0;
}

static unsigned stages_of(struct val stages)
{
	unsigned bits = 0;
	VAL_EACH(stage, stages)
		bits |= 1U << find(audit_stage_names, AUDIT_STAGE_MAX, val_as_str(*stage));
	return bits;
}

static void compile(struct audit_policy *p, struct val policy)
{
	struct val rules = val_get(policy, rules);
	p->otherwise = (struct audit_verdict){ AUDIT_NONE, stages_of(val_get(policy, omitStages)), val_bool(policy, omitManagedFields) };
	p->rules = ARENA_ARRAY(&p->memory, struct rule, val_len(rules));
	VAL_EACH(rule, rules) {
		struct val managed = val_get(*rule, omitManagedFields);
		p->rules[p->n++] = (struct rule){ *rule, {
			.level = (enum audit_level)find(audit_level_names, AUDIT_LEVEL_MAX, val_str(*rule, level)),
			.omit = p->otherwise.omit | stages_of(val_get(*rule, omitStages)),
			.omit_managed_fields = val_exists(managed) ? val_as_bool(managed) : p->otherwise.omit_managed_fields,
		} };
	}
}

int audit_policy_parse(str text, struct audit_policy **ret, str *ret_warning, struct err *err)
{
	struct audit_policy *p = mem_zalloc(sizeof *p);
	struct val policy;
	int r = decode(&p->memory, text, &policy, ret_warning, err);
	if (r < 0)
		r = err_wrap(err, r, "failed decoding");
	else
		r = check(&p->memory, policy, err);
	if (r < 0) {
		audit_policy_free(p);
		return r;
	}
	compile(p, policy);
	*ret = p;
	return 0;
}

void audit_policy_free(struct audit_policy *p)
{
	if (!p)
		return;
	arena_done(&p->memory);
	free(p);
}

/* ---- judging ---- */

static bool contains(struct val list, str s)
{
	VAL_EACH(item, list)
		if (str_eq(val_as_str(*item), s))
			return true;
	return false;
}

static bool contains_verb(struct val verbs, const struct request *q)
{
	char lower[16];
	if (q->is_resource)
		return contains(verbs, q->verb_text);
	for (size_t i = 0; i < q->method.n && i < sizeof lower; i++)
		lower[i] = (char)(q->method.p[i] | 0x20);
	return q->method.n <= sizeof lower && contains(verbs, str_span(lower, q->method.n));
}

static bool in_groups(struct val groups, const struct user *u)
{
	for (size_t i = 0; i < u->n_groups; i++)
		if (contains(groups, u->groups[i]))
			return true;
	return false;
}

/* "pods", "pods/log", "*", a star and a slash before a subresource, or behind a resource */
static bool names_resource(str pattern, const struct request *q)
{
	str head, tail;
	if (str_eq(pattern, STR("*")))
		return true;
	bool slash = str_cut(pattern, '/', &head, &tail);
	if (slash && str_eq(tail, STR("*")) && str_eq(head, q->resource))
		return true;
	if (slash != (q->subresource.n > 0) || !str_eq(tail, q->subresource))
		return false;
	return str_eq(head, q->resource) || (slash && str_eq(head, STR("*")));
}

static bool in_resources(struct val groups, const struct request *q)
{
	VAL_EACH(g, groups) {
		str group = val_str(*g, group);
		struct val resources = val_get(*g, resources), names = val_get(*g, resourceNames);
		if (!str_eq(group, q->group) && !str_eq(group, STR("*")))
			continue;
		if (!val_len(resources))
			return true;
		if (val_len(names) && !contains(names, q->name))
			continue;
		VAL_EACH(r, resources)
			if (names_resource(val_as_str(*r), q))
				return true;
	}
	return false;
}

static bool in_urls(struct val urls, str path)
{
	VAL_EACH(url, urls) {
		str s = val_as_str(*url);
		bool prefix = s.n && s.p[s.n - 1] == '*';
		if (str_eq(s, path) || (prefix && str_starts(path, str_head(s, s.n - 1))))
			return true;
	}
	return false;
}

static bool matches(struct val rule, const struct request *q)
{
	struct val users = val_get(rule, users), groups = val_get(rule, userGroups), verbs = val_get(rule, verbs);
	struct val namespaces = val_get(rule, namespaces), resources = val_get(rule, resources), urls = val_get(rule, nonResourceURLs);
	if ((val_len(users) && !contains(users, q->user.name)) || (val_len(groups) && !in_groups(groups, &q->user)) ||
	    (val_len(verbs) && !contains_verb(verbs, q)))
		return false;
	if (val_len(namespaces) || val_len(resources))
		return q->is_resource && (!val_len(namespaces) || contains(namespaces, q->namespace)) &&
		       (!val_len(resources) || in_resources(resources, q));
	return !val_len(urls) || (!q->is_resource && in_urls(urls, q->path));
}

struct audit_verdict audit_policy_judge(const struct audit_policy *p, const struct request *q)
{
	for (size_t i = 0; i < p->n; i++)
		if (matches(p->rules[i].val, q))
			return p->rules[i].verdict;
	return p->otherwise;
}
