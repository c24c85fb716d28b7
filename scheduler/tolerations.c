#include "scheduler/tolerations.h"

#include "codec/atoms.h"

unsigned taint_effect(str name)
{
	static const str names[TAINT_EFFECTS] = {
		[TAINT_NO_SCHEDULE] = STR_INIT("NoSchedule"), [TAINT_PREFER_NO_SCHEDULE] = STR_INIT("PreferNoSchedule"),
		[TAINT_NO_EXECUTE] = STR_INIT("NoExecute"),
	};
	unsigned effect = 0;

	while (effect < TAINT_EFFECTS && !str_eq(names[effect], name))
		effect++;
	return effect;
}

/* What one toleration says, before its texts are compared with those of a taint. */
struct saying {
	str key, value;         /* key "": every key */
	bool any_value;
	unsigned effect;        /* TAINT_EFFECTS: every effect */
};

/* False for one that tolerates nothing. */
static bool saying_read(struct val toleration, struct saying *ret)
{
	str operator = val_str(toleration, operator), effect = val_str(toleration, effect);

	*ret = (struct saying){
		.key = val_str(toleration, key), .value = val_str(toleration, value),
		.any_value = str_eq(operator, STR("Exists")), .effect = taint_effect(effect),
	};
	if (effect.n && ret->effect == TAINT_EFFECTS)
		return false;
	return ret->any_value || !operator.n || str_eq(operator, STR("Equal"));
}

struct tolerations tolerations_compile(struct arena *a, const struct nodes *t, struct val list)
{
	struct toleration *all = ARENA_ARRAY(a, struct toleration, val_len(list));
	size_t n = 0;

	VAL_EACH(toleration, list) {
		struct saying s;
		if (!saying_read(*toleration, &s))
			continue;
		all[n] = (struct toleration){ s.key.n ? word_find(t, s.key) : 0, s.any_value ? 0 : word_find(t, s.value), (uint8_t)s.effect };
		if ((!s.key.n || all[n].key) && (s.any_value || all[n].value))
			n++;
	}
	return (struct tolerations){ n, all };
}

bool tolerations_cover(const struct tolerations *all, const struct taint *taint)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct toleration *x = &all->all[i];
		if ((!x->key || x->key == taint->key) && (!x->value || x->value == taint->value) &&
		    (x->effect == TAINT_EFFECTS || x->effect == taint->effect))
			return true;
	}
	return false;
}

bool tolerations_allow(struct val tolerations, str key, str value, unsigned effect)
{
	VAL_EACH(toleration, tolerations) {
		struct saying s;
		if (saying_read(*toleration, &s) && (!s.key.n || str_eq(s.key, key)) && (s.any_value || str_eq(s.value, value)) &&
		    (s.effect == TAINT_EFFECTS || s.effect == effect))
			return true;
	}
	return false;
}

bool node_object_is_tainted(struct val node, struct val tolerations)
{
	VAL_EACH(taint, val_get(node, spec, taints)) {
		unsigned effect = taint_effect(val_str(*taint, effect));
		if ((effect == TAINT_NO_SCHEDULE || effect == TAINT_NO_EXECUTE) &&
		    !tolerations_allow(tolerations, val_str(*taint, key), val_str(*taint, value), effect))
			return true;
	}
	return false;
}
