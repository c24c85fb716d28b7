#include "controllers/taints.h"

#include "codec/atoms.h"

static bool is_taint(struct val taint, str key, str effect) { return str_eq(val_str(taint, key), key) && str_eq(val_str(taint, effect), effect); }

bool taints_have(struct val taints, str key, str effect)
{
	VAL_EACH(t, taints)
		if (is_taint(*t, key, effect))
			return true;
	return false;
}

struct val taints_add(struct arena *a, struct val taints, str key, const char *effect, struct val time)
{
	if (taints_have(taints, key, str_of(effect)))
		return taints;
	return val_list_append(a, val_exists(taints) ? taints : VAL_EMPTY_LIST,
			       OBJECT(a, F(key, VAL_STR(key)), F(effect, VAL_STR(str_of(effect))), F(timeAdded, time)));
}

struct val taints_remove(struct arena *a, struct val taints, str key, const char *effect)
{
	struct val_builder kept = val_builder(a);

	if (!taints_have(taints, key, str_of(effect)))
		return taints;
	VAL_EACH(t, taints)
		if (!is_taint(*t, key, str_of(effect)))
			val_add_item(&kept, *t);
	return val_end_list(&kept);
}

bool toleration_tolerates(struct val toleration, struct val taint)
{
	str effect = val_str(toleration, effect), key = val_str(toleration, key), operator = val_str(toleration, operator);

	if ((effect.n && !str_eq(effect, val_str(taint, effect))) || (key.n && !str_eq(key, val_str(taint, key))))
		return false;
	if (!operator.n || str_eq(operator, STR("Equal")))
		return str_eq(val_str(toleration, value), val_str(taint, value));
	return str_eq(operator, STR("Exists"));
}

/* The first that tolerates it counts. */
static struct val toleration_of(struct val tolerations, struct val taint)
{
	VAL_EACH(t, tolerations)
		if (toleration_tolerates(*t, taint))
			return *t;
	return VAL_EMPTY;
}

int64_t taints_tolerated_s(struct val no_execute_taints, struct val tolerations, bool *ret_all)
{
	int64_t least = INT64_MAX;
	bool all = true;

	VAL_EACH(taint, no_execute_taints) {
		struct val t = toleration_of(tolerations, *taint);
		all &= val_exists(t);
		if (val_has(t, tolerationSeconds))
			least = MIN(least, val_int(t, tolerationSeconds));
	}
	if (ret_all)
		*ret_all = all;
	if (!all)
		return 0;
	return least == INT64_MAX ? TOLERATED_FOREVER : MAX(least, (int64_t)0);
}

struct val taints_no_execute(struct arena *a, struct val node)
{
	struct val_builder list = val_builder(a);

	VAL_EACH(t, val_get(node, spec, taints))
		if (str_eq(val_str(*t, effect), STR(NO_EXECUTE)))
			val_add_item(&list, *t);
	return val_end_list(&list);
}
