/*
 * Roles and bindings that every cluster has, put right at every start: what is missing is made, rules and subjects
 * that are missing are added, and what somebody has added stays. One whose annotation says that it is somebody's own
 * is left alone. A binding of another role than it should be is made anew, since that cannot be changed.
 */
#include "apiserver/authz/authz_priv.h"
#include "apiserver/authz/rbac.h"
#include "apiserver/authz/rbac_defaults.h"
#include "apiserver/authz/rbac_rules.h"
#include "apiserver/bootstrap_priv.h"
#include "apiserver/meta.h"
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "machinery/gates.h"

#define AUTOUPDATE "rbac.authorization.kubernetes.io/autoupdate"
#define BOOTSTRAPPING "kubernetes.io/bootstrapping"
#define AGGREGATE_TO "rbac.authorization.k8s.io/aggregate-to-"

enum { ATTEMPTS_MAX = 3 };

/* ---- objects of rows ---- */

static struct val text(str s) { return val_of_str(s); }

static struct val one_entry(struct arena *a, str key, str value)
{
	return val_put(a, VAL_EMPTY, atom_make(a, key), text(value));
}

static struct val label_of(struct arena *a, const char *aggregate)
{
	return one_entry(a, arena_join(a, STR(AGGREGATE_TO), str_of(aggregate)), STR("true"));
}

static struct val metadata(struct arena *a, const char *namespace, const char *name, const char *part_of)
{
	struct val labels = one_entry(a, STR(BOOTSTRAPPING), STR("rbac-defaults"));
	if (part_of)
		VAL_EACH_MEMBER(m, label_of(a, part_of))
			labels = val_put(a, labels, m->key, m->val);
	return OBJECT(a, F(name, text(str_of(name))), F(namespace, namespace ? text(str_of(namespace)) : VAL_EMPTY),
		      F(labels, labels), F(annotations, one_entry(a, STR(AUTOUPDATE), STR("true"))));
}

/* "a,b,-" */
static struct val words(struct arena *a, str list)
{
	struct val_builder b = val_builder(a);
	while (list.n) {
		str word;
		str_cut(list, ',', &word, &list);
		val_add_item(&b, text(str_eq(word, STR("-")) ? STR("") : word));
	}
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

static struct val rule_of(struct arena *a, str row)
{
	str verbs, groups, things, names;
	str_cut(row, ' ', &verbs, &row);
	str_cut(row, ' ', &groups, &row);
	str_cut(row, ' ', &things, &names);
	if (str_eq(groups, STR("~")))
		return OBJECT(a, F(verbs, words(a, verbs)), F(nonResourceURLs, words(a, things)));
	return OBJECT(a, F(verbs, words(a, verbs)), F(apiGroups, words(a, groups)), F(resources, words(a, things)),
		      F(resourceNames, words(a, names)));
}

static struct val role_of(struct apiserver *s, struct arena *a, const struct rbac_default_role *d)
{
	struct val_builder rules = val_builder(a);
	str rows = str_of(d->rules), row, gate;
	while (rows.n) {
		str_cut(rows, '\n', &row, &rows);
		if (str_starts(row, STR("?"))) {
			str_cut(str_skip(row, 1), ' ', &gate, &row);
			if (!gate_is_on(s->options.gates, gate))
				continue;
		}
		val_add_item(&rules, rule_of(a, row));
	}
	struct val selector = d->made_of ? OBJECT(a, F(matchLabels, label_of(a, d->made_of))) : VAL_EMPTY;
	return OBJECT(a, F(metadata, metadata(a, d->namespace, d->name, d->part_of)),
		      F(rules, rules.n ? val_end_list(&rules) : VAL_EMPTY),
		      F(aggregationRule, d->made_of ? OBJECT(a, F(clusterRoleSelectors, LIST(a, selector))) : VAL_EMPTY));
}

static struct val subject_of(struct arena *a, str row)
{
	str kind, name, namespace;
	str_cut(row, ' ', &kind, &name);
	if (str_eq(kind, STR("account"))) {
		str_cut(name, '/', &namespace, &name);
		return OBJECT(a, F(kind, VAL_LIT("ServiceAccount")), F(name, text(name)), F(namespace, text(namespace)));
	}
	return OBJECT(a, F(kind, str_eq(kind, STR("group")) ? VAL_LIT("Group") : VAL_LIT("User")), F(apiGroup, VAL_LIT(RBAC_GROUP)),
		      F(name, text(name)));
}

static struct val binding_of(struct arena *a, const struct rbac_default_binding *d)
{
	struct val_builder subjects = val_builder(a);
	str rows = str_of(d->subjects), row;
	while (rows.n) {
		str_cut(rows, ',', &row, &rows);
		val_add_item(&subjects, subject_of(a, row));
	}
	struct val ref = OBJECT(a, F(apiGroup, VAL_LIT(RBAC_GROUP)),
				F(kind, d->namespace ? VAL_LIT("Role") : VAL_LIT("ClusterRole")),
				F(name, text(str_of(d->role ? d->role : d->name))));
	return OBJECT(a, F(metadata, metadata(a, d->namespace, d->name, NULL)),
		      F(subjects, subjects.n ? val_end_list(&subjects) : VAL_EMPTY), F(roleRef, ref));
}

/* ---- putting right ---- */

static struct val merged(struct arena *a, struct val live, struct val want)
{
	VAL_EACH_MEMBER(m, want)
		if (!val_exists(val_find(live, atom_str(m->key))))
			live = val_put(a, live, m->key, m->val);
	return val_sorted(a, live);
}

static struct val with_metadata(struct arena *a, struct val live, struct val want)
{
	struct val labels = val_get(live, metadata, labels), annotations = val_get(live, metadata, annotations);
	struct val more_labels = merged(a, labels, val_get(want, metadata, labels));
	struct val more_annotations = merged(a, annotations, val_get(want, metadata, annotations));
	if (val_len(more_labels) != val_len(labels))
		live = meta_put(a, live, A_labels, more_labels);
	if (val_len(more_annotations) != val_len(annotations))
		live = meta_put(a, live, A_annotations, more_annotations);
	return live;
}

/* live with those of list that it does not have. */
static struct val with_items(struct arena *a, struct val live, struct val list)
{
	VAL_EACH(item, list) {
		bool there = false;
		VAL_EACH(old, live)
			there = there || val_equal(*old, *item);
		if (!there)
			live = val_list_append(a, live, *item);
	}
	return live;
}

static bool is_protected(struct val live)
{
	return str_eq(val_as_str(val_find(val_get(live, metadata, annotations), STR(AUTOUPDATE))), STR("false"));
}

static struct val revise_role(struct arena *a, struct val live, struct val want)
{
	struct val rules = val_get(live, rules), object = with_metadata(a, live, want);
	struct val_builder missing = val_builder(a);
	if (rbac_rules_missing(a, &rules, 1, val_get(want, rules), &missing, NULL) == 0 && missing.n) {
		VAL_EACH(rule, val_end_list(&missing))
			rules = val_list_append(a, rules, *rule);
		object = val_put(a, object, A_rules, rules);
	}
	struct val old = val_get(live, aggregationRule, clusterRoleSelectors);
	if (!val_has(want, aggregationRule))
		return val_has(live, aggregationRule) ? val_put(a, object, A_aggregationRule, VAL_EMPTY) : object;
	struct val selectors = with_items(a, old, val_get(want, aggregationRule, clusterRoleSelectors));
	return val_same(selectors, old) ? object : val_with(a, object, selectors, aggregationRule, clusterRoleSelectors);
}

static struct val revise_binding(struct arena *a, struct val live, struct val want)
{
	struct val old = val_get(live, subjects), object = with_metadata(a, live, want);
	struct val subjects = with_items(a, old, val_get(want, subjects));
	return val_same(subjects, old) ? object : val_put(a, object, A_subjects, subjects);
}

/* VAL_NONE: it is as it should be. */
static struct val revise(struct arena *a, struct val live, void *arg)
{
	const struct val *want = arg;
	if (is_protected(live))
		return VAL_EMPTY;
	struct val object = val_has(*want, roleRef) ? revise_binding(a, live, *want) : revise_role(a, live, *want);
	return val_same(object, live) ? VAL_EMPTY : object;
}

/* 1: done; 0: somebody else was there meanwhile. */
static int attempt(const struct inprocess *w, struct arena *a, struct val want, struct err *err)
{
	str namespace = val_str(want, metadata, namespace), name = val_str(want, metadata, name);
	str key = namespace.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)) : name;
	struct val live = bootstrap_find(w->server, a, w->group, w->resource, key);
	int r = 0;
	bool another = val_has(live, roleRef) && !val_equal(val_get(live, roleRef), val_get(want, roleRef));
	if (val_exists(live) && !another) {
		if (!val_exists(revise(a, live, &want)))
			return 1;
		r = inprocess_update(w, namespace, name, revise, &want, err);
		return r == -ERR_NOT_FOUND ? 0 : r < 0 ? r : 1;
	}
	if (another && is_protected(live))
		return 1;
	if (another)
		r = inprocess_delete(w, namespace, name, err);
	if (r == 0 || r == -ERR_NOT_FOUND)
		r = inprocess_create(w, want, err);
	return r == -ERR_ALREADY_EXISTS ? 0 : r < 0 ? r : 1;
}

static int ensure(const struct inprocess *w, struct arena *a, struct val want, struct err *err)
{
	int r = 0;
	if (!kinds_find(&w->server->kinds, w->group, w->resource))
		return 0;
	for (int i = 0; i < ATTEMPTS_MAX && r == 0; i++)
		r = attempt(w, a, want, err);
	return r < 0 ? r : r == 0 ? err_set(err, ERR_CONFLICT, "it changes too fast") : 0;
}

/* ---- all of them, at the same time ---- */

struct job {
	struct apiserver *server;
	const struct rbac_default_role *role;
	const struct rbac_default_binding *binding;
	int result;
};

static int run_job(void *arg)
{
	struct job *j = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	bool local = j->role ? j->role->namespace : j->binding->namespace;
	struct inprocess w = { .server = j->server, .group = STR(RBAC_GROUP), .manager = STR("kube-apiserver") };
	if (j->role)
		w.resource = local ? STR("roles") : STR("clusterroles");
	else
		w.resource = local ? STR("rolebindings") : STR("clusterrolebindings");
	if (!apiserver_gate(j->server, j->role ? j->role->gate : j->binding->gate))
		return 0;
	int r = j->result = ensure(&w, &a, j->role ? role_of(j->server, &a, j->role) : binding_of(&a, j->binding), &err);
	if (r < 0 && r != -ERR_CANCELED)
		log_warn("a default role or binding cannot be made yet", KV("resource", w.resource),
			 KV("name", j->role ? j->role->name : j->binding->name), KV("error", &err));
	return r;
}

int rbac_bootstrap(struct apiserver *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(fiber_group_done) struct fiber_group group;
	size_t n = rbac_n_default_roles + rbac_n_default_bindings;
	struct job *jobs = ARENA_ARRAY(&a, struct job, n);
	fiber_group_init(&group);
	for (size_t i = 0; i < n; i++) {
		bool role = i < rbac_n_default_roles;
		jobs[i] = (struct job){ s, role ? &rbac_default_roles[i] : NULL,
					role ? NULL : &rbac_default_bindings[i - rbac_n_default_roles], 0 };
		int r = fiber_group_spawn(&group, run_job, &jobs[i], err, "default roles");
		if (r < 0)
			return r;
	}
	int r = fiber_group_wait(&group, err);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = jobs[i].result;
	s->roles_made = r >= 0;
	return r;
}
