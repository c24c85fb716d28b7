#include "controllers/cluster_role_plan.h"

#include "base/map.h"
#include "codec/atoms.h"
#include "machinery/selector.h"

/* Rules, each once, in the order in which they came. */
struct gathering {
	struct arena *arena;
	struct val_builder rules;
	struct map seen;              /* a rule's hash, as bytes, to the last rule with it */
};

struct seen {
	uint64_t hash;
	struct val rule;
	struct seen *before;          /* another one with that hash */
};

static void gather(struct gathering *g, struct val rules)
{
	VAL_EACH(rule, rules) {
		struct seen *new = ARENA_NEW(g->arena, struct seen);
		*new = (struct seen){ .hash = val_hash(*rule), .rule = *rule };
		str key = str_span((const char *)&new->hash, sizeof new->hash);
		const struct seen *same = new->before = map_get(&g->seen, key);
		while (same && !val_equal(same->rule, *rule))
			same = same->before;
		if (same)
			continue;
		(void)map_put(&g->seen, key, new);
		val_add_item(&g->rules, *rule);
	}
}

static int gather_parts(struct gathering *g, struct val role, struct val roles, struct err *err)
{
	VAL_EACH(text, val_get(role, aggregationRule, clusterRoleSelectors)) {
		struct selector selector;
		int r = selector_of_object(g->arena, *text, &selector, err);
		if (r < 0)
			return r;
		VAL_EACH(part, roles)
			if (!str_eq(val_str(*part, metadata, name), val_str(role, metadata, name)) &&
			    selector_matches(&selector, val_get(*part, metadata, labels)))
				gather(g, val_get(*part, rules));
	}
	return 0;
}

int cluster_role_rules(struct arena *a, struct val role, struct val roles, struct val *ret, struct err *err)
{
	struct gathering g = { .arena = a, .rules = val_builder(a) };
	map_init(&g.seen);
	int r = gather_parts(&g, role, roles, err);
	map_done(&g.seen);
	if (r < 0)
		return r;
	struct val rules = g.rules.n ? val_end_list(&g.rules) : VAL_EMPTY_LIST, had = val_get(role, rules);
	if (val_equal(rules, had) || (!val_len(rules) && !val_len(had)))
		return 0;
	*ret = rules;
	return 1;
}
