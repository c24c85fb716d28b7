/* The index of roles and bindings: what it says, and any order of changes compared with looking at everything. */
#include "apiserver/authz/rbac.h"

#include "apiserver/authz/rbac_rules.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "machinery/testing.h"

/* ---- looking at everything ---- */

enum { WORLD_MAX = 64 };

struct thing {
	enum rbac_kind kind;
	str key;
	struct frozen *frozen;
};

struct world {
	struct arena arena;
	struct thing things[WORLD_MAX];
	size_t n;
	struct rbac *rbac;
};

static void world_begin(struct world *w)
{
	*w = (struct world){ .arena = ARENA_INIT, .rbac = rbac_new(NULL) };
}

static void world_end(struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		frozen_unref(w->things[i].frozen);
	rbac_free(w->rbac);
	arena_done(&w->arena);
}

static struct thing *world_find(struct world *w, enum rbac_kind kind, str key)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->things[i].kind == kind && str_eq(w->things[i].key, key))
			return &w->things[i];
	return NULL;
}

static void world_put(struct world *w, enum rbac_kind kind, const char *key_text, struct val object)
{
	str key = str_of(key_text);
	struct thing *t = world_find(w, kind, key);
	if (!t && val_exists(object)) {
		CHECK(w->n < WORLD_MAX);
		t = &w->things[w->n++];
		*t = (struct thing){ kind, arena_str(&w->arena, key), NULL };
	}
	if (t)
		frozen_unref(TAKE(t->frozen));
	if (t && val_exists(object))
		t->frozen = val_freeze(object);
	struct frozen *now = t ? t->frozen : NULL;
	rbac_put(w->rbac, kind, key, now ? now->val : VAL_EMPTY, now);
}

static void world_json(struct world *w, enum rbac_kind kind, const char *key, const char *json)
{
	world_put(w, kind, key, testing_tree(&w->arena, json));
}

static bool is_subject(struct arena *a, struct val s, const struct user *u, str namespace)
{
	str kind = val_str(s, kind), name = val_str(s, name);
	if (str_eq(kind, STR("User")))
		return str_eq(name, u->name);
	for (size_t i = 0; i < u->n_groups && str_eq(kind, STR("Group")); i++)
		if (str_eq(name, u->groups[i]))
			return true;
	if (!str_eq(kind, STR("ServiceAccount")))
		return false;
	namespace = val_str(s, namespace).n ? val_str(s, namespace) : namespace;
	return namespace.n && str_eq(u->name, arena_printf(a, "system:serviceaccount:" STR_FMT ":" STR_FMT, STR_ARG(namespace),
							   STR_ARG(name)));
}

static bool role_allows(struct world *w, struct arena *a, struct val ref, str namespace, const struct authz_attributes *what)
{
	bool cluster = str_eq(val_str(ref, kind), STR("ClusterRole"));
	str name = val_str(ref, name);
	str key = cluster ? name : arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
	struct thing *role = world_find(w, cluster ? RBAC_CLUSTER_ROLE : RBAC_ROLE, key);
	struct rbac_words words = { MAP_INIT };
	size_t n = 0;
	struct rbac_rule *rules = role && role->frozen ?
					  rbac_rules_compile(&words, val_get(role->frozen->val, rules), &n) : NULL;
	struct rbac_question q = rbac_question(&words, a, what);
	bool yes = false;
	for (size_t i = 0; i < n; i++)
		yes |= rbac_rule_allows(&rules[i], &q);
	rbac_rules_free(&words, rules, n);
	rbac_words_done(&words);
	return yes;
}

static bool world_allows(struct world *w, const struct authz_attributes *what)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t i = 0; i < w->n; i++) {
		const struct thing *t = &w->things[i];
		str namespace = STR_NONE, name;
		if (!t->frozen || (t->kind != RBAC_ROLE_BINDING && t->kind != RBAC_CLUSTER_ROLE_BINDING))
			continue;
		if (t->kind == RBAC_ROLE_BINDING) {
			str_cut(t->key, '/', &namespace, &name);
			if (!str_eq(namespace, what->namespace))
				continue;
		}
		bool applies = false;
		VAL_EACH(s, val_get(t->frozen->val, subjects))
			applies |= is_subject(&a, *s, what->user, namespace);
		if (applies && role_allows(w, &a, val_get(t->frozen->val, roleRef), namespace, what))
			return true;
	}
	return false;
}

/* ---- tables ---- */

static const str groups[] = { STR_INIT("devs"), STR_INIT("ops") };

static str decide(struct world *w, str user, const char *namespace, const char *verb)
{
	struct user u = { .name = user, .groups = groups, .n_groups = ARRAY_LEN(groups) };
	struct authz_attributes what = { .user = &u, .verb = str_of(verb), .is_resource = true, .resource = STR("pods"),
					 .namespace = str_of(namespace) };
	str reason;
	bool yes = rbac_decide(w->rbac, &w->arena, &what, &reason) == AUTHZ_ALLOW;
	CHECK(yes == world_allows(w, &what));
	return arena_printf(&w->arena, "%s " STR_FMT, yes ? "yes" : "no", STR_ARG(reason));
}

#define ROLE(verb) "{'rules':[{'verbs':['" verb "'],'apiGroups':[''],'resources':['pods']}]}"
#define BINDING(kind, role, subjects) "{'roleRef':{'kind':'" kind "','name':'" role "'},'subjects':[" subjects "]}"

TEST(decisions_tell_their_reason)
{
	struct world w;
	world_begin(&w);
	CHECK_STR(decide(&w, STR("alice"), "", "get"), "no ");
	world_json(&w, RBAC_CLUSTER_ROLE_BINDING, "all",
		   BINDING("ClusterRole", "reader", "{'kind':'Group','name':'nobodies'},{'kind':'Group','name':'ops'},"
						    "{'kind':'User','name':'alice'}"));
	CHECK_STR(decide(&w, STR("alice"), "", "get"),
		  "no RBAC: clusterrole.rbac.authorization.k8s.io \"reader\" not found");
	world_json(&w, RBAC_CLUSTER_ROLE, "reader", ROLE("get"));
	CHECK_STR(decide(&w, STR("alice"), "x", "get"),
		  "yes RBAC: allowed by ClusterRoleBinding \"all\" of ClusterRole \"reader\" to Group \"ops\"");
	CHECK_STR(decide(&w, STR("alice"), "x", "list"), "no ");
	world_json(&w, RBAC_ROLE_BINDING, "x/local",
		   BINDING("Role", "lister", "{'kind':'ServiceAccount','name':'bot'},"
					     "{'kind':'ServiceAccount','name':'bot','namespace':'y'}"));
	world_json(&w, RBAC_ROLE, "x/lister", ROLE("list"));
	CHECK_STR(decide(&w, STR("system:serviceaccount:x:bot"), "x", "list"),
		  "yes RBAC: allowed by RoleBinding \"local/x\" of Role \"lister\" to ServiceAccount \"bot/x\"");
	CHECK_STR(decide(&w, STR("system:serviceaccount:y:bot"), "x", "list"),
		  "yes RBAC: allowed by RoleBinding \"local/x\" of Role \"lister\" to ServiceAccount \"bot/y\"");
	CHECK_STR(decide(&w, STR("system:serviceaccount:x:bot"), "y", "list"), "no ");
	CHECK_STR(decide(&w, STR("system:serviceaccount:x:bot"), "", "list"), "no ");
	world_json(&w, RBAC_CLUSTER_ROLE_BINDING, "strange", BINDING("Cat", "tom", "{'kind':'Group','name':'devs'}"));
	world_json(&w, RBAC_ROLE, "x/lister", NULL);
	CHECK_STR(decide(&w, STR("system:serviceaccount:x:bot"), "x", "list"),
		  "no RBAC: [unsupported role reference kind: \"Cat\", role.rbac.authorization.k8s.io \"lister\" not found]");
	CHECK(rbac_is_bound(w.rbac, STR("reader")));
	world_json(&w, RBAC_CLUSTER_ROLE_BINDING, "all", NULL);
	CHECK(!rbac_is_bound(w.rbac, STR("reader")));
	world_end(&w);
}

TEST(roles_of_a_user)
{
	struct world w;
	struct user u = { .name = STR("alice"), .groups = groups, .n_groups = ARRAY_LEN(groups) };
	size_t n;
	world_begin(&w);
	world_json(&w, RBAC_CLUSTER_ROLE_BINDING, "b",
		   BINDING("ClusterRole", "one", "{'kind':'Group','name':'ops'},{'kind':'User','name':'alice'}"));
	world_json(&w, RBAC_CLUSTER_ROLE_BINDING, "a", BINDING("ClusterRole", "two", "{'kind':'Group','name':'devs'}"));
	world_json(&w, RBAC_ROLE_BINDING, "x/a", BINDING("ClusterRole", "two", "{'kind':'Group','name':'devs'}"));
	world_json(&w, RBAC_CLUSTER_ROLE, "one", ROLE("get"));
	struct rbac_held *held = rbac_held(w.rbac, &w.arena, &u, STR("x"), &n);
	CHECK_INT(n, 3);
	CHECK_STR(held[0].name, "two");
	CHECK(!held[0].found && held[1].found);
	CHECK_STR(held[1].name, "one"); /* once, though two subjects are meant */
	CHECK_INT(val_len(held[1].rules), 1);
	CHECK_STR(held[2].binding, "x/a");
	CHECK_STR(rbac_held_errors(&w.arena, held, n, true), "clusterroles.rbac.authorization.k8s.io \"two\" not found");
	rbac_held(w.rbac, &w.arena, &u, STR_NONE, &n);
	CHECK_INT(n, 2);
	world_end(&w);
}

/* ---- random changes ---- */

static const char *pick(const char *const *words, size_t n) { return words[random_below(n)]; }
#define PICK(...) pick((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static struct val random_words(struct arena *a, const char *const *words, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 1 + random_below(3); i-- > 0;)
		val_add_item(&b, val_of_str(str_of(pick(words, n))));
	return val_end_list(&b);
}
#define WORDS(a, ...) \
	random_words(a, (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static struct val random_role(struct arena *a)
{
	struct val_builder rules = val_builder(a);
	for (size_t i = random_below(3); i-- > 0;)
		val_add_item(&rules, OBJECT(a, F(verbs, WORDS(a, "get", "list", "frob", "*")), F(apiGroups, WORDS(a, "", "apps", "*")),
					    F(resources, WORDS(a, "pods", "pods/log", "*/log", "*", "jobs")),
					    F(resourceNames, random_below(2) ? WORDS(a, "n", "m") : VAL_EMPTY)));
	return OBJECT(a, F(rules, val_end_list(&rules)));
}

static struct val random_binding(struct arena *a)
{
	struct val_builder subjects = val_builder(a);
	for (size_t i = random_below(4); i-- > 0;)
		val_add_item(&subjects, OBJECT(a, F(kind, val_of_str(str_of(PICK("User", "Group", "ServiceAccount", "Cat")))),
					       F(name, val_of_str(str_of(PICK("a", "b", "c")))),
					       F(namespace, val_of_str(str_of(PICK("", "x", "y"))))));
	return OBJECT(a, F(roleRef, OBJECT(a, F(kind, val_of_str(str_of(PICK("Role", "ClusterRole")))),
					   F(name, val_of_str(str_of(PICK("r", "s")))))),
		      F(subjects, val_end_list(&subjects)));
}

static void random_change(struct world *w)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	enum rbac_kind kind = (enum rbac_kind)random_below(RBAC_KINDS);
	bool local = kind == RBAC_ROLE || kind == RBAC_ROLE_BINDING, role = kind == RBAC_ROLE || kind == RBAC_CLUSTER_ROLE;
	str key = arena_printf(&a, "%s%s", local ? PICK("x/", "y/") : "", role ? PICK("r", "s") : PICK("1", "2", "3", "4"));
	world_put(w, kind, key.p, random_below(4) == 0 ? VAL_EMPTY : role ? random_role(&a) : random_binding(&a));
}

TEST(random_changes_are_taken_in)
{
	static const str few[] = { STR_INIT("a"), STR_INIT("c") };
	struct world w;
	size_t allowed = 0;
	random_seed(42);
	world_begin(&w);
	for (int i = 0; i < 20000; i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		random_change(&w);
		struct user u = { .name = str_of(PICK("a", "b", "system:serviceaccount:x:a", "system:serviceaccount:y:b")),
				  .groups = few, .n_groups = random_below(3) };
		struct authz_attributes what = {
			.user = &u, .verb = str_of(PICK("get", "list", "frob", "watch")), .is_resource = true,
			.group = str_of(PICK("", "apps", "batch")), .resource = str_of(PICK("pods", "jobs", "nodes")),
			.subresource = str_of(PICK("", "log")), .namespace = str_of(PICK("", "x", "y", "z")),
			.name = str_of(PICK("", "n", "m")),
		};
		str reason;
		bool yes = rbac_decide(w.rbac, &a, &what, &reason) == AUTHZ_ALLOW;
		CHECK_ROW(i, yes == world_allows(&w, &what));
		CHECK_ROW(i, !yes || str_starts(reason, STR("RBAC: allowed by ")));
		allowed += yes;
	}
	CHECK(allowed > 500 && allowed < 19500);
	world_end(&w);
	random_unseed();
}
