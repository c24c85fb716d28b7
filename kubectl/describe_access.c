/* Roles, cluster roles and their bindings. */
#include <stdlib.h>

#include "kubectl/describe.h"

static void say_head(struct ktl_page *p, struct val object)
{
	ktl_say(p, 0, "Name:\t" STR_FMT "\n", STR_ARG(val_str(object, metadata, name)));
	ktl_say_labels(p, "Labels", val_get(object, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(object, metadata, annotations));
}

/* ---- rules ---- */

/* One resource, or path, with what may be done to it. */
struct rule {
	str group, resource, name, url;
	bool has_name;
	struct val verbs;
	str key;                     /* that they are sorted by, as Kubernetes writes a rule */
};

struct rules {
	struct ktl *k;
	struct rule *v;
	size_t n, cap;
};

static bool same_subject(const struct rule *x, const struct rule *y)
{
	return str_eq(x->group, y->group) && str_eq(x->resource, y->resource) && str_eq(x->name, y->name) && x->has_name == y->has_name && !x->url.n &&
	       !y->url.n;
}

/* Verbs of the same resource come together; those of paths stay apart. */
static void add_rule(struct rules *list, struct rule rule, struct val verb)
{
	struct arena *a = &list->k->arena;
	for (size_t i = 0; i < list->n; i++) {
		if (!same_subject(&list->v[i], &rule))
			continue;
		VAL_EACH(old, list->v[i].verbs)
			if (str_eq(val_as_str(*old), val_as_str(verb)))
				return;
		list->v[i].verbs = val_list_append(a, list->v[i].verbs, verb);
		return;
	}
	if (list->n == list->cap) {
		struct rule *more = ARENA_ARRAY(a, struct rule, list->cap ? 2 * list->cap : 32);
		if (list->n)
			memcpy(more, list->v, list->n * sizeof(*more));
		list->v = more;
		list->cap = list->cap ? 2 * list->cap : 32;
	}
	rule.verbs = LIST(a, verb);
	list->v[list->n++] = rule;
}

static void break_down(struct rules *list, struct val rule)
{
	struct val names = val_get(rule, resourceNames);
	VAL_EACH(g, val_get(rule, apiGroups))
		VAL_EACH(r, val_get(rule, resources))
			VAL_EACH(verb, val_get(rule, verbs)) {
				struct rule one = { .group = val_as_str(*g), .resource = val_as_str(*r) };
				if (!val_len(names))
					add_rule(list, one, *verb);
				one.has_name = true;
				VAL_EACH(name, names) {
					one.name = val_as_str(*name);
					add_rule(list, one, *verb);
				}
			}
	VAL_EACH(url, val_get(rule, nonResourceURLs))
		VAL_EACH(verb, val_get(rule, verbs))
			add_rule(list, (struct rule){ .url = val_as_str(*url) }, *verb);
}

static int by_key(const void *x, const void *y) { return str_cmp(((const struct rule *)x)->key, ((const struct rule *)y)->key); }

/* "pods.metrics.k8s.io/log" */
static str resource_of(struct ktl *k, const struct rule *r)
{
	str name, below;
	(void)str_cut(r->resource, '/', &name, &below);
	return arena_printf(&k->arena, STR_FMT "%s" STR_FMT "%s" STR_FMT, STR_ARG(name), r->group.n ? "." : "", STR_ARG(r->group), below.n ? "/" : "",
			    STR_ARG(below));
}

void ktl_say_rules(struct ktl_page *p, unsigned level, struct val rules)
{
	struct ktl *k = p->k;
	struct rules list = { .k = k };
	VAL_EACH(rule, rules)
		break_down(&list, *rule);
	for (size_t i = 0; i < list.n; i++) {
		struct rule *r = &list.v[i];
		r->key = arena_printf(&k->arena, "[" STR_FMT "],APIGroups:[" STR_FMT "],Resources:[" STR_FMT "],ResourceNames:[" STR_FMT "],NonResourceURLs:[" STR_FMT "]",
				      STR_ARG(ktl_join(k, r->verbs, " ")), STR_ARG(r->group), STR_ARG(r->resource), STR_ARG(r->name), STR_ARG(r->url));
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_key);
	for (size_t i = 0; i < list.n; i++) {
		const struct rule *r = &list.v[i];
		ktl_say(p, level, STR_FMT "\t[" STR_FMT "]\t[" STR_FMT "]\t[" STR_FMT "]\n", STR_ARG(resource_of(k, r)), STR_ARG(r->url), STR_ARG(r->name),
			STR_ARG(ktl_join(k, r->verbs, " ")));
	}
}

int ktl_describe_role(struct ktl_page *p, struct val role)
{
	say_head(p, role);
	ktl_say(p, 0, "PolicyRule:\n");
	ktl_say(p, 1, "Resources\tNon-Resource URLs\tResource Names\tVerbs\n");
	ktl_say(p, 1, "---------\t-----------------\t--------------\t-----\n");
	ktl_say_rules(p, 1, val_get(role, rules));
	return 0;
}

/* ---- bindings ---- */

int ktl_describe_binding(struct ktl_page *p, struct val binding)
{
	say_head(p, binding);
	ktl_say(p, 0, "Role:\n");
	ktl_say(p, 1, "Kind:\t" STR_FMT "\n", STR_ARG(val_str(binding, roleRef, kind)));
	ktl_say(p, 1, "Name:\t" STR_FMT "\n", STR_ARG(val_str(binding, roleRef, name)));
	ktl_say(p, 0, "Subjects:\n");
	ktl_say(p, 1, "Kind\tName\tNamespace\n");
	ktl_say(p, 1, "----\t----\t---------\n");
	VAL_EACH(s, val_get(binding, subjects))
		ktl_say(p, 1, STR_FMT "\t" STR_FMT "\t" STR_FMT "\n", STR_ARG(val_str(*s, kind)), STR_ARG(val_str(*s, name)), STR_ARG(val_str(*s, namespace)));
	return 0;
}
