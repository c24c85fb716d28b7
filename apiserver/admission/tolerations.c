#include "apiserver/admission/tolerations.h"

#include "codec/atoms.h"

/* Does `wide` tolerate all that t does? */
static bool covers(struct val wide, struct val t)
{
	str key = val_str(wide, key), operator = val_str(wide, operator), effect = val_str(wide, effect);
	bool exists = str_eq(operator, STR("Exists"));
	if (val_equal(wide, t))
		return true;
	if (!str_eq(val_str(t, key), key) && (key.n || !exists))
		return false;
	if (effect.n && !str_eq(val_str(t, effect), effect))
		return false;
	if (str_eq(effect, STR("NoExecute")) && val_has(wide, tolerationSeconds) &&
	    (!val_has(t, tolerationSeconds) || val_int(t, tolerationSeconds) > val_int(wide, tolerationSeconds)))
		return false;
	if (exists)
		return true;
	return (!operator.n || str_eq(operator, STR("Equal"))) && str_eq(val_str(t, operator), STR("Equal")) &&
	       str_eq(val_str(t, value), val_str(wide, value));
}

static bool is_redundant(struct val all, size_t i, struct val merged)
{
	struct val t = val_at(all, i);
	VAL_EACH(m, merged)
		if (covers(*m, t))
			return true;
	for (size_t k = i + 1; k < val_len(all); k++)
		if (!val_equal(val_at(all, k), t) && covers(val_at(all, k), t))
			return true;
	return false;
}

/* More tolerations than anybody has are not compared, which would take the square of their number. */
enum { COMPARED_MAX = 1000 };

struct val tolerations_merge(struct arena *a, struct val first, struct val second)
{
	struct val all = first, merged = VAL_EMPTY_LIST;
	VAL_EACH(t, second)
		all = val_list_append(a, all, *t);
	if (val_len(all) > COMPARED_MAX)
		return all;
	for (size_t i = 0; i < val_len(all); i++)
		if (!is_redundant(all, i, merged))
			merged = val_list_append(a, merged, val_at(all, i));
	return merged;
}

bool tolerations_allowed(struct val tolerations, struct val by)
{
	if (!val_len(by))
		return true;
	if (val_len(tolerations) > COMPARED_MAX)
		return false;
	VAL_EACH(t, tolerations) {
		bool covered = false;
		VAL_EACH(w, by)
			covered = covered || covers(*w, *t);
		if (!covered)
			return false;
	}
	return true;
}
