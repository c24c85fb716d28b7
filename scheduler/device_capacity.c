#include "scheduler/device_capacity.h"

#include "codec/atoms.h"
#include "machinery/resources.h"

/* Steps from min up to at least amount; a step that is no step is none. */
static struct quantity round_up(struct quantity amount, struct val range)
{
	struct quantity min = quantity_of(val_get(range, min));
	int64_t step = quantity_value(quantity_of(val_get(range, step))), from = quantity_value(min), added;

	if (quantity_cmp(amount, min) < 0)
		return min;
	if (step <= 0 || __builtin_sub_overflow(quantity_value(amount), from, &added))
		return amount;
	int64_t n = added / step + (added % step != 0), up, sum;
	if (__builtin_mul_overflow(step, n, &up) || __builtin_add_overflow(from, up, &sum))
		return amount;
	return quantity_of_int(sum, QUANTITY_BINARY_SI);
}

struct quantity capacity_consumed(struct val capacity, struct val asked)
{
	struct val policy = val_get(capacity, requestPolicy), range = val_get(policy, validRange);

	if (!val_exists(asked))
		return quantity_of(val_is_nil(val_get(policy, default)) ? val_get(capacity, value) : val_get(policy, default));
	struct quantity amount = quantity_of(asked);
	if (val_has(range, min))
		return round_up(amount, range);
	VAL_EACH(v, val_get(policy, validValues))
		if (quantity_cmp(amount, quantity_of(*v)) <= 0)
			return quantity_of(*v);
	return amount;
}

bool capacity_permits(struct val capacity, struct quantity amount)
{
	struct val policy = val_get(capacity, requestPolicy), range = val_get(policy, validRange), values = val_get(policy, validValues);

	if (!val_is_nil(val_get(policy, default)) && quantity_cmp(amount, quantity_of(val_get(policy, default))) == 0)
		return true;
	if (val_exists(range)) {
		int64_t step = quantity_value(quantity_of(val_get(range, step))), added;
		if (val_has(range, max) && quantity_cmp(amount, quantity_of(val_get(range, max))) > 0)
			return false;
		return step <= 0 || (!__builtin_sub_overflow(quantity_value(amount), quantity_value(quantity_of(val_get(range, min))), &added) &&
				     added % step == 0);
	}
	VAL_EACH(v, values)
		if (quantity_cmp(amount, quantity_of(*v)) == 0)
			return true;
	return !val_len(values);
}

struct val capacity_consumed_all(struct arena *a, struct val capacities, struct val requests)
{
	struct val_builder b = val_builder(a);
	char text[QUANTITY_TEXT_MAX];

	VAL_EACH_MEMBER(m, capacities) {
		struct quantity amount = capacity_consumed(m->val, val_find(requests, atom_str(m->key)));
		val_add_member(&b, m->key, VAL_STR(arena_str(a, quantity_format(amount, text))));
	}
	return val_end_object(&b);
}
