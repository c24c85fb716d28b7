/*
 * ClusterRoles that are made of others: their rules are all rules of the roles that their selectors match, in the
 * order of names, each once. They are written by server-side apply under the name of Kubernetes' controller, before
 * the write that changed them is answered, so that whoever asks next sees them; what other servers change is noticed
 * by the loop.
 *
 * In Kubernetes a controller does this beside the API server, and a server without it shows default roles without
 * rules. Here those of the default roles (admin, edit, view) that nothing refers to stay so, too, until a binding or
 * another role needs them.
 */
#include "apiserver/authz/authz_priv.h"
#include "apiserver/authz/rbac.h"
#include "apiserver/cache.h"
#include "apiserver/hooks.h"
#include "apiserver/inprocess.h"
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "machinery/selector.h"

enum {
	PASSES_MAX = 16,              /* roles made of roles made of roles... */
	RETRY_MS = 1000,
};

static const struct kind *cluster_roles(struct apiserver *s)
{
	return kinds_find(&s->kinds, STR(RBAC_GROUP), STR("clusterroles"));
}

static bool is_default(struct val role)
{
	return str_eq(val_as_str(val_find(val_get(role, metadata, labels), STR("kubernetes.io/bootstrapping"))),
		      STR("rbac-defaults"));
}

static bool is_aggregated(struct val role) { return val_len(val_get(role, aggregationRule, clusterRoleSelectors)) > 0; }

/* An aggregated role whose rules somebody may want to use. */
static bool is_needed(struct apiserver *s, struct val role)
{
	return !is_default(role) || val_len(val_get(role, rules)) || rbac_is_bound(authz_rbac(s), val_str(role, metadata, name));
}

/* ---- what its rules are ---- */

/* Goes through the roles that a role is made of, in the order of Kubernetes; visit returns false to stop. */
static int each_part(struct apiserver *s, struct arena *a, struct val role, bool (*visit)(struct val part, void *arg),
		     void *arg, struct err *err)
{
	str own = val_str(role, metadata, name);
	VAL_EACH(text, val_get(role, aggregationRule, clusterRoleSelectors)) {
		struct selector selector;
		struct omap_iter it;
		int r = selector_of_object(a, *text, &selector, err);
		if (r < 0)
			return r;
		omap_seek(&it, cluster_roles(s)->objects, STR_NONE);
		for (struct object *o; (o = omap_next(&it, NULL));)
			if (!str_eq(val_str(o->val, metadata, name), own) &&
			    selector_matches(&selector, val_get(o->val, metadata, labels)) && !visit(o->val, arg))
				return 0;
	}
	return 0;
}

struct gathering {
	struct arena *arena;
	struct val_builder rules;
	struct map seen;              /* hash, as bytes, to the rule that has it */
};

static bool gather(struct val part, void *arg)
{
	struct gathering *g = arg;
	VAL_EACH(rule, val_get(part, rules)) {
		uint64_t *hash = ARENA_NEW(g->arena, uint64_t);
		*hash = val_hash(*rule);
		str key = str_span((const char *)hash, sizeof *hash);
		const struct val *same = map_get(&g->seen, key);
		if (same && val_equal(*same, *rule))
			continue;
		struct val *copy = ARENA_NEW(g->arena, struct val);
		*copy = val_copy(g->arena, *rule);
		map_put(&g->seen, key, copy);
		val_add_item(&g->rules, *copy);
	}
	return true;
}

/* Members in the order of their names, as apply wants them. */
static struct val for_apply(struct arena *a, struct val rules)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(rule, rules)
		val_add_item(&b, val_sorted(a, *rule));
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

/* 1: its rules were written; 0: they are right. */
static int put_right(struct apiserver *s, str name, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct object *o = cache_get(cluster_roles(s), name);
	struct gathering g = { &a, val_builder(&a), MAP_INIT };
	if (!o || !is_aggregated(o->val))
		return 0;
	int r = each_part(s, &a, o->val, gather, &g, err);
	map_done(&g.seen);
	if (r < 0)
		return r;
	struct val rules = g.rules.n ? val_end_list(&g.rules) : VAL_EMPTY, now = val_get(o->val, rules);
	if (val_len(rules) ? val_equal(rules, now) : !val_len(now))
		return 0;
	struct val patch = OBJECT(&a, F(metadata, OBJECT(&a, F(name, val_of_str(arena_str(&a, name))))),
				  F(rules, for_apply(&a, rules)));
	const struct inprocess w = { .server = s, .group = STR(RBAC_GROUP), .resource = STR("clusterroles"),
				     .manager = STR("clusterrole-aggregation-controller") };
	r = inprocess_apply(&w, patch, err);
	return r == -ERR_NOT_FOUND ? 0 : r < 0 ? r : 1;
}

/* ---- which ones ---- */

/* Names of aggregated roles that have to have their rules. */
struct needs {
	struct arena arena;
	struct map seen;
	str *names;
	size_t n, cap;
};

static void add_need(struct needs *needs, str name)
{
	if (map_get(&needs->seen, name))
		return;
	if (needs->n == needs->cap) {
		size_t cap = needs->cap ? 2 * needs->cap : 8;
		str *names = ARENA_ARRAY(&needs->arena, str, cap);
		if (needs->n)
			memcpy(names, needs->names, needs->n * sizeof *names);
		needs->names = names;
		needs->cap = cap;
	}
	name = arena_str(&needs->arena, name);
	map_put(&needs->seen, name, needs);
	needs->names[needs->n++] = name;
}

static bool need_part(struct val part, void *arg)
{
	if (is_aggregated(part))
		add_need(arg, val_str(part, metadata, name));
	return true;
}

/* Those that are needed, and what they are made of: the parts behind, so that going backwards puts parts right first. */
static int find_needs(struct apiserver *s, struct needs *needs, struct err *err)
{
	struct omap_iter it;
	omap_seek(&it, cluster_roles(s)->objects, STR_NONE);
	for (struct object *o; (o = omap_next(&it, NULL));)
		if (is_aggregated(o->val) && is_needed(s, o->val))
			add_need(needs, val_str(o->val, metadata, name));
	for (size_t i = 0; i < needs->n; i++) {
		struct object *o = cache_get(cluster_roles(s), needs->names[i]);
		int r = o ? each_part(s, &needs->arena, o->val, need_part, needs, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int pass(struct apiserver *s, struct needs *needs, struct err *err)
{
	int r = find_needs(s, needs, err), changed = 0, failed = 0;
	for (size_t i = needs->n; r >= 0 && i-- > 0;) {
		int written = put_right(s, needs->names[i], err);
		changed |= written > 0;
		failed = written < 0 ? written : failed;
	}
	return r < 0 ? r : failed < 0 ? failed : changed;
}

int rbac_aggregate(struct apiserver *s, struct err *err)
{
	int r = cluster_roles(s) ? 1 : 0;
	for (int i = 0; i < PASSES_MAX && r > 0; i++) {
		struct needs needs = { .arena = ARENA_INIT };
		r = pass(s, &needs, err);
		map_done(&needs.seen);
		arena_done(&needs.arena);
	}
	return r < 0 ? r : 0;
}

/* ---- when ---- */

/* Bindings matter when they are of such a role. */
static bool matters(struct apiserver *s, struct val object)
{
	if (!val_has(object, roleRef))
		return true;
	struct object *role = str_eq(val_str(object, roleRef, kind), STR("ClusterRole")) ?
				      cache_get(cluster_roles(s), val_str(object, roleRef, name)) : NULL;
	return role && is_aggregated(role->val);
}

struct follower {
	struct cache_watcher watcher;
	struct kind *kind;
	struct fiber_cond *woken;
};

static void wake(struct cache_watcher *w)
{
	fiber_cond_signal(CONTAINER_OF(w, struct follower, watcher)->woken);
}

/* Takes the events that came, and begins (again) to hear of them. True when one of them matters. */
static bool listen(struct apiserver *s, struct follower *f)
{
	bool due = false;
	const struct cache_event *e;
	if (!f->kind)
		return false;
	while (f->watcher.kind && (e = cache_watch_next(&f->watcher)))
		due = due || matters(s, e->object->val);
	if (f->watcher.kind && !f->watcher.ended)
		return due;
	cache_watch_end(&f->watcher);
	if (cache_watch_begin(f->kind, cache_revision(s->cache), &f->watcher, NULL) < 0)
		f->watcher.kind = NULL;
	return true;
}

int rbac_aggregate_run(struct apiserver *s, struct err *err)
{
	static const str resources[] = { STR_INIT("clusterroles"), STR_INIT("rolebindings"), STR_INIT("clusterrolebindings") };
	struct fiber_cond woken = FIBER_COND_INIT(woken, "a change of roles");
	struct follower f[ARRAY_LEN(resources)];
	bool due = true;
	int r = 0;
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		f[i] = (struct follower){ .watcher.wake = wake, .kind = kinds_find(&s->kinds, STR(RBAC_GROUP), resources[i]),
					  .woken = &woken };
	while (r == 0) {
		for (size_t i = 0; i < ARRAY_LEN(f); i++)
			due |= listen(s, &f[i]);
		if (!due) {
			r = fiber_cond_wait(&woken, err);
			continue;
		}
		due = false;
		struct err failed = ERR_INIT;
		if (rbac_aggregate(s, &failed) < 0 && (r = fiber_check(err)) == 0) {
			log_warn("rules of aggregated roles could not be written yet", KV("error", &failed));
			due = true;
			r = fiber_sleep_ms(RETRY_MS, err);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		cache_watch_end(&f[i].watcher);
	return r;
}

/* ---- before a write is answered ---- */

static int begin(struct request *q, struct val old, struct val *object)
{
	(void)old;
	return val_exists(*object) ? rbac_escalation_check(q, NULL) : 0;
}

static void finish(struct request *q, bool stored, struct val old, struct val object)
{
	struct err err = ERR_INIT;
	if (!stored || q->dry_run || str_eq(q->user.name, STR("system:apiserver")) ||
	    !matters(q->server, val_exists(object) ? object : old))
		return;
	int r = cache_wait_current(q->server->cache, &err);
	if (r < 0 || (r = rbac_aggregate(q->server, &err)) < 0)
		log_warn("rules of aggregated roles could not be written yet", KV("error", &err));
}

const struct kind_hooks role_hooks = { .begin = begin };
const struct kind_hooks cluster_role_hooks = { .begin = begin, .finish = finish };
const struct kind_hooks role_binding_hooks = { .begin = begin, .finish = finish };
