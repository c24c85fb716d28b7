#include "scheduler/label_match.h"

#include "codec/atoms.h"

void label_match_compile(struct arena *a, const struct nodes *t, const struct selector *s, struct label_match *ret)
{
	struct label_want *all = ARENA_ARRAY(a, struct label_want, s->n);

	for (size_t i = 0; i < s->n; i++) {
		const struct requirement *r = &s->all[i];
		word *values = ARENA_ARRAY(a, word, r->n_values);
		all[i] = (struct label_want){ .key = word_find(t, atom_str(r->key)), .op = r->op, .values = values, .number = r->number };
		for (uint32_t k = 0; k < r->n_values; k++) {
			word w = word_find(t, r->values[k]);
			if (w)
				values[all[i].n_values++] = w;
		}
	}
	*ret = (struct label_match){ s->n, all, s->nothing };
}

static bool has_value(const struct label_want *w, word value)
{
	for (uint32_t i = 0; i < w->n_values; i++)
		if (w->values[i] == value)
			return true;
	return false;
}

static bool want_holds(const struct nodes *t, const struct label_want *w, word value)
{
	int64_t number;

	switch ((enum selector_op)w->op) {
	case SELECTOR_IN:
	case SELECTOR_EQUALS:
	case SELECTOR_DOUBLE_EQUALS: return value && has_value(w, value);
	case SELECTOR_NOT_IN:
	case SELECTOR_NOT_EQUALS: return !value || !has_value(w, value);
	case SELECTOR_EXISTS: return value;
	case SELECTOR_NOT_EXISTS: return !value;
	case SELECTOR_GREATER: return value && str_to_i64(word_str(t, value), &number) && number > w->number;
	case SELECTOR_LESS: return value && str_to_i64(word_str(t, value), &number) && number < w->number;
	}
	return false;
}

bool label_match(const struct nodes *t, const struct label_match *m, const struct label *labels, uint32_t n)
{
	for (size_t i = 0; i < m->n; i++)
		if (!want_holds(t, &m->all[i], labels_find(labels, n, m->all[i].key)))
			return false;
	return !m->nothing;
}

/* ---- nodes ---- */

static void term_compile(struct arena *a, const struct nodes *t, const struct node_term *term, struct node_term_match *ret)
{
	struct node_name_want *names = ARENA_ARRAY(a, struct node_name_want, term->n_fields);

	*ret = (struct node_term_match){ .never = term->empty || term->n_errors, .names = names };
	label_match_compile(a, t, &term->labels, &ret->labels);
	for (size_t i = 0; i < term->n_fields; i++) {
		const struct node_field *f = &term->fields[i];
		if (str_eq(f->field, STR("metadata.name")))
			names[ret->n_names++] = (struct node_name_want){ word_find(t, f->value), f->negated };
		else
			ret->never |= (f->value.n == 0) == f->negated; /* a field that nodes do not have is empty */
	}
}

void node_term_match_compile(struct arena *a, const struct nodes *t, struct val term, struct node_term_match *ret)
{
	struct node_term compiled;

	node_term_compile(a, term, NULL, &compiled);
	term_compile(a, t, &compiled, ret);
}

bool node_term_match(const struct nodes *t, const struct node_term_match *m, uint32_t node)
{
	if (m->never)
		return false;
	for (size_t i = 0; i < m->n_names; i++)
		if ((m->names[i].name == t->name[node]) == m->names[i].negated)
			return false;
	return label_match(t, &m->labels, t->labels[node], t->n_labels[node]);
}

void node_match_compile(struct arena *a, const struct nodes *t, struct val pod_spec, struct node_match *ret)
{
	struct node_affinity affinity;
	struct node_term_match *terms;

	node_affinity_compile(a, pod_spec, &affinity);
	terms = ARENA_ARRAY(a, struct node_term_match, affinity.terms.n);
	for (size_t i = 0; i < affinity.terms.n; i++)
		term_compile(a, t, &affinity.terms.terms[i], &terms[i]);
	*ret = (struct node_match){ .has_terms = affinity.has_terms, .n = affinity.terms.n, .terms = terms };
	label_match_compile(a, t, &affinity.labels, &ret->labels);
}

bool node_match(const struct nodes *t, const struct node_match *m, uint32_t node)
{
	if (!label_match(t, &m->labels, t->labels[node], t->n_labels[node]))
		return false;
	for (size_t i = 0; i < m->n; i++)
		if (node_term_match(t, &m->terms[i], node))
			return true;
	return !m->has_terms;
}
