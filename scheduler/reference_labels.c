/* Selectors of labels and of nodes, straight from their definitions. */
#include <stdlib.h>

#include "codec/atoms.h"
#include "scheduler/reference.h"

struct val reference_label(struct val object, str key) { return val_find(val_get(object, metadata, labels), key); }

static bool is_one_of(struct val values, str text)
{
	VAL_EACH(v, values)
		if (str_eq(val_as_str(*v), text))
			return true;
	return false;
}

/* Numbers of Gt and Lt; false: the text is none. */
static bool number_of(str text, long long *ret)
{
	char digits[32], *end = NULL;

	if (!text.n || text.n >= sizeof(digits))
		return false;
	memcpy(digits, text.p, text.n);
	digits[text.n] = '\0';
	*ret = strtoll(digits, &end, 10);
	return !*end;
}

/* One requirement against what an object has under its key (VAL_NONE: nothing). */
static bool holds(struct val requirement, struct val has)
{
	str how = val_str(requirement, operator);
	struct val values = val_get(requirement, values);
	long long limit = 0, number = 0;

	if (str_eq(how, STR("Exists")))
		return val_exists(has);
	if (str_eq(how, STR("DoesNotExist")))
		return !val_exists(has);
	if (str_eq(how, STR("In")))
		return val_exists(has) && is_one_of(values, val_as_str(has));
	if (str_eq(how, STR("NotIn")))
		return !val_exists(has) || !is_one_of(values, val_as_str(has));
	if (!val_exists(has) || !number_of(val_as_str(val_at(values, 0)), &limit) || !number_of(val_as_str(has), &number))
		return false;
	return str_eq(how, STR("Gt")) ? number > limit : str_eq(how, STR("Lt")) && number < limit;
}

bool reference_selects(struct val selector, struct val labels)
{
	if (!val_exists(selector))
		return false;
	VAL_EACH_MEMBER(m, val_get(selector, matchLabels)) {
		struct val has = val_find(labels, atom_str(m->key));
		if (!val_exists(has) || !str_eq(val_as_str(has), val_as_str(m->val)))
			return false;
	}
	VAL_EACH(e, val_get(selector, matchExpressions))
		if (!holds(*e, val_find(labels, val_str(*e, key))))
			return false;
	return true;
}

bool reference_selects_all(struct val selector)
{
	return val_exists(selector) && !val_len(val_get(selector, matchLabels)) && !val_len(val_get(selector, matchExpressions));
}

bool reference_term_matches(struct val term, struct val node)
{
	struct val labels = val_get(term, matchExpressions), fields = val_get(term, matchFields);

	if (!val_len(labels) && !val_len(fields))
		return false;
	VAL_EACH(e, labels)
		if (!holds(*e, reference_label(node, val_str(*e, key))))
			return false;
	VAL_EACH(e, fields)
		if (!str_eq(val_str(*e, key), STR("metadata.name")) || !holds(*e, val_get(node, metadata, name)))
			return false;
	return true;
}

bool reference_terms_match(struct val node_selector, struct val node)
{
	VAL_EACH(t, val_get(node_selector, nodeSelectorTerms))
		if (reference_term_matches(*t, node))
			return true;
	return false;
}

bool reference_node_affinity(struct val pod, struct val node)
{
	struct val required = val_get(pod, spec, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution);

	VAL_EACH_MEMBER(m, val_get(pod, spec, nodeSelector)) {
		struct val has = reference_label(node, atom_str(m->key));
		if (!val_exists(has) || !str_eq(val_as_str(has), val_as_str(m->val)))
			return false;
	}
	return !val_exists(required) || reference_terms_match(required, node);
}
