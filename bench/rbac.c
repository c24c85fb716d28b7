/*
 * What a decision by roles costs in a cluster of 1,000 roles and 10,000 bindings, beside the way of looking at every
 * binding: which is right, too, and what one would write first. Half of the bindings are for the whole cluster, half
 * in namespaces; users have one binding of their own and two groups. 500 of them ask in turn. Each number is
 * the best of several rounds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/authz/rbac.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { ROLES = 1000, BINDINGS = 10000, NAMESPACES = 100, RULES = 5, ROUNDS = 100, STEPS = 500, NAIVE_STEPS = 10 };

static struct world {
	struct arena arena;
	struct rbac *rbac;
	struct map roles;             /* name to struct val */
	struct val bindings[BINDINGS];
	str namespaces[BINDINGS];
} world;

static struct val text(const char *fmt, int i)
{
	char buf[64];
	int n = snprintf(buf, sizeof buf, fmt, i);
	return val_of_str(arena_str(&world.arena, str_span(buf, (size_t)n)));
}

static void make_role(int i)
{
	struct arena *a = &world.arena;
	struct val_builder rules = val_builder(a);
	for (int k = 0; k < RULES; k++)
		val_add_item(&rules, OBJECT(a, F(verbs, LIST(a, VAL_LIT("get"), VAL_LIT("list"), VAL_LIT("watch"))),
					    F(apiGroups, LIST(a, VAL_LIT(""), text("group%d.example.com", i % 50))),
					    F(resources, LIST(a, text("things%d", i + k), text("things%d/status", i + k)))));
	struct frozen *f = val_freeze(OBJECT(a, F(rules, val_end_list(&rules))));
	struct val *kept = ARENA_NEW(a, struct val);
	*kept = val_copy(a, f->val);
	str name = val_as_str(text("role%d", i));
	map_put(&world.roles, name, kept);
	rbac_put(world.rbac, RBAC_CLUSTER_ROLE, name, f->val, f);
	frozen_unref(f);
}

static void make_binding(int i)
{
	struct arena *a = &world.arena;
	bool local = i % 2;
	struct val user = OBJECT(a, F(kind, VAL_LIT("User")), F(name, text("user%d", i)));
	struct val group = OBJECT(a, F(kind, VAL_LIT("Group")), F(name, text("group%d", i)));
	struct val ref = OBJECT(a, F(kind, VAL_LIT("ClusterRole")), F(name, text("role%d", i % ROLES)));
	struct frozen *f = val_freeze(OBJECT(a, F(roleRef, ref), F(subjects, LIST(a, user, group))));
	world.bindings[i] = val_copy(a, f->val);
	world.namespaces[i] = local ? val_as_str(text("ns%d", i % NAMESPACES)) : STR_NONE;
	str key = val_as_str(text("binding%d", i));
	if (local)
		key = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(world.namespaces[i]), STR_ARG(key));
	rbac_put(world.rbac, local ? RBAC_ROLE_BINDING : RBAC_CLUSTER_ROLE_BINDING, key, f->val, f);
	frozen_unref(f);
}

/* ---- looking at everything ---- */

static bool has(struct val list, str s)
{
	VAL_EACH(item, list)
		if (str_eq(val_as_str(*item), s) || str_eq(val_as_str(*item), STR("*")))
			return true;
	return false;
}

static bool applies(struct val subjects, const struct user *u)
{
	VAL_EACH(s, subjects) {
		if (str_eq(val_str(*s, kind), STR("User")) && str_eq(val_str(*s, name), u->name))
			return true;
		for (size_t i = 0; str_eq(val_str(*s, kind), STR("Group")) && i < u->n_groups; i++)
			if (str_eq(val_str(*s, name), u->groups[i]))
				return true;
	}
	return false;
}

static bool naive(struct arena *a, const struct authz_attributes *what)
{
	for (int i = 0; i < BINDINGS; i++) {
		struct val b = world.bindings[i];
		if ((world.namespaces[i].n && !str_eq(world.namespaces[i], what->namespace)) ||
		    !applies(val_get(b, subjects), what->user))
			continue;
		const struct val *role = map_get(&world.roles, val_str(b, roleRef, name));
		str resource = what->subresource.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(what->resource),
								  STR_ARG(what->subresource)) : what->resource;
		VAL_EACH(rule, val_get(*role, rules))
			if (has(val_get(*rule, verbs), what->verb) && has(val_get(*rule, apiGroups), what->group) &&
			    has(val_get(*rule, resources), resource))
				return true;
	}
	return false;
}

/* ---- both ---- */

struct question {
	struct user user;
	str groups[3];
	struct authz_attributes what;
};

static struct question *questions;

static void make_question(int i, bool allowed)
{
	struct question *q = &questions[i];
	int n = (i * 7919) % BINDINGS;
	*q = (struct question){ .groups = { STR("system:authenticated"), val_as_str(text("group%d", (n + 13) % BINDINGS)),
					    STR("nobodies") } };
	q->user = (struct user){ .name = val_as_str(text("user%d", n)), .groups = q->groups, .n_groups = 3 };
	q->what = (struct authz_attributes){
		.user = &q->user, .verb = allowed ? STR("list") : STR("delete"), .is_resource = true,
		.group = val_as_str(text("group%d.example.com", n % ROLES % 50)),
		.resource = val_as_str(text("things%d", n % ROLES + RULES - 1)), .subresource = STR("status"),
		.namespace = val_as_str(text("ns%d", n % NAMESPACES)),
	};
}

static double measure(bool indexed, int steps, bool want)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int64_t least = INT64_MAX;
	for (int round = 0; round < ROUNDS; round++) {
		int64_t begun = clock_now_ns();
		for (int i = 0; i < steps; i++) {
			const struct authz_attributes *what = &questions[i].what;
			str reason;
			bool yes = indexed ? rbac_decide(world.rbac, &a, what, &reason) == AUTHZ_ALLOW : naive(&a, what);
			if (yes != want) {
				fprintf(stderr, "bench rbac: question %d is answered wrongly\n", i);
				exit(1);
			}
			arena_reset(&a);
		}
		least = MIN(least, clock_now_ns() - begun);
	}
	return (double)least / steps;
}

int main(void)
{
	world.rbac = rbac_new(NULL);
	questions = mem_array(STEPS, sizeof *questions);
	for (int i = 0; i < ROLES; i++)
		make_role(i);
	for (int i = 0; i < BINDINGS; i++)
		make_binding(i);
	for (int allowed = 1; allowed >= 0; allowed--) {
		for (int i = 0; i < STEPS; i++)
			make_question(i, allowed);
		double index = measure(true, STEPS, allowed), every = measure(false, NAIVE_STEPS, allowed);
		printf("%-9s %8.0f ns per decision, %10.0f ns when every binding is looked at: %.0f times faster\n",
		       allowed ? "allowed" : "forbidden", index, every, every / index);
	}
	rbac_free(world.rbac);
	map_done(&world.roles);
	arena_done(&world.arena);
	free(questions);
	return 0;
}
