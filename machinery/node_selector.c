#include "machinery/node_selector.h"

#include "base/buf.h"
#include "codec/atoms.h"

enum { TEXT_MAX = 1 << 20 };

static const struct {
	str name;
	enum selector_op op;
} label_operators[] = {
	{ STR_INIT("In"), SELECTOR_IN },         { STR_INIT("NotIn"), SELECTOR_NOT_IN },
	{ STR_INIT("Exists"), SELECTOR_EXISTS }, { STR_INIT("DoesNotExist"), SELECTOR_NOT_EXISTS },
	{ STR_INIT("Gt"), SELECTOR_GREATER },    { STR_INIT("Lt"), SELECTOR_LESS },
};

static const str label_operator_names[] = {
	STR_INIT("In"), STR_INIT("NotIn"), STR_INIT("Exists"), STR_INIT("DoesNotExist"), STR_INIT("Gt"), STR_INIT("Lt"), { NULL, 0 },
};

static const str field_operator_names[] = { STR_INIT("In"), STR_INIT("NotIn"), { NULL, 0 } };

/* Adds a requirement to the *n of all, or an error. */
static void compile_label(struct field_errors *e, const struct field_path *at, struct val expression, struct requirement *all,
			  size_t *n)
{
	struct val list = val_get(expression, values), name = val_get(expression, operator);
	str *values = val_exists(list) ? ARENA_ARRAY(e->arena, str, val_len(list)) : NULL;
	size_t n_values = 0;

	VAL_EACH(v, list)
		values[n_values++] = val_as_str(*v);
	for (size_t i = 0; i < ARRAY_LEN(label_operators); i++)
		if (str_eq(val_as_str(name), label_operators[i].name)) {
			if (selector_requirement(e, at, val_str(expression, key), label_operators[i].op, values, n_values, &all[*n]))
				++*n;
			return;
		}
	field_not_supported(e, FIELD(at, "operator"), val_of_str(val_as_str(name)), label_operator_names);
}

static void compile_field(struct field_errors *e, const struct field_path *at, struct val expression, struct node_field *ret)
{
	struct val values = val_get(expression, values);
	str name = val_str(expression, operator);
	bool in = str_eq(name, STR("In"));

	if (!in && !str_eq(name, STR("NotIn")))
		field_not_supported(e, FIELD(at, "operator"), val_of_str(name), field_operator_names);
	else if (val_len(values) != 1)
		field_invalid(e, FIELD(at, "values"), val_exists(values) ? values : VAL_NULL_VALUE, "must have one element");
	*ret = (struct node_field){ arena_str(e->arena, val_str(expression, key)), arena_str(e->arena, val_as_str(val_at(values, 0))),
				    !in };
}

void node_term_compile(struct arena *a, struct val term, const struct field_path *at, struct node_term *ret)
{
	struct val expressions = val_get(term, matchExpressions), fields = val_get(term, matchFields);
	struct requirement *all = ARENA_ARRAY(a, struct requirement, val_len(expressions));
	struct node_field *node_fields = ARENA_ARRAY(a, struct node_field, val_len(fields));
	size_t n = 0, i = 0, n_fields = 0;
	struct field_errors errors;

	field_errors_init(&errors, a);
	VAL_EACH(e, expressions)
		compile_label(&errors, FIELD_INDEX(FIELD(at, "matchExpressions"), i++), *e, all, &n);
	VAL_EACH(e, fields) {
		compile_field(&errors, FIELD_INDEX(FIELD(at, "matchFields"), n_fields), *e, &node_fields[n_fields]);
		n_fields++;
	}
	*ret = (struct node_term){
		.labels = selector_of_requirements(a, all, n),
		.n_fields = n_fields,
		.fields = node_fields,
		.empty = val_len(expressions) + val_len(fields) == 0,
	};
	ret->errors = field_errors_join(&errors, &ret->n_errors);
}

bool node_term_matches(const struct node_term *t, struct val node)
{
	str name = val_str(node, metadata, name);

	if (t->empty || t->n_errors || !selector_matches(&t->labels, val_get(node, metadata, labels)))
		return false;
	for (size_t i = 0; i < t->n_fields && name.n; i++) {
		bool is_name = str_eq(t->fields[i].field, STR("metadata.name"));
		if (str_eq(is_name ? name : STR_NONE, t->fields[i].value) == t->fields[i].negated)
			return false;
	}
	return true;
}

void node_selector_compile(struct arena *a, struct val node_selector, const struct field_path *at, struct node_selector *ret)
{
	struct val list = val_get(node_selector, nodeSelectorTerms);
	struct node_term *terms = ARENA_ARRAY(a, struct node_term, val_len(list));
	size_t n = 0;

	VAL_EACH(term, list) {
		node_term_compile(a, *term, FIELD_INDEX(FIELD(at, "nodeSelectorTerms"), n), &terms[n]);
		n++;
	}
	*ret = (struct node_selector){ n, terms };
}

int node_selector_check(const struct node_selector *s, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	size_t wrong = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->terms[i].n_errors)
			buf_addf(&b, "%s" STR_FMT, wrong ? ", " : "", STR_ARG(s->terms[i].errors));
		wrong += s->terms[i].n_errors;
	}
	if (wrong == 0)
		return 0;
	return err_set(err, ERR_INVALID, "%s" STR_FMT "%s", wrong > 1 ? "[" : "", STR_ARG(buf_str(&b)), wrong > 1 ? "]" : "");
}

int node_selector_matches(const struct node_selector *s, struct val node, struct err *err)
{
	for (size_t i = 0; i < s->n; i++)
		if (node_term_matches(&s->terms[i], node))
			return 1;
	return node_selector_check(s, err);
}

void node_affinity_compile(struct arena *a, struct val pod_spec, struct node_affinity *ret)
{
	struct val terms = val_get(pod_spec, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution);
	ret->labels = selector_of_labels(a, val_get(pod_spec, nodeSelector));
	ret->has_terms = !val_is_nil(terms);
	node_selector_compile(a, terms, NULL, &ret->terms);
}

int node_affinity_matches(const struct node_affinity *f, struct val node, struct err *err)
{
	if (!selector_matches(&f->labels, val_get(node, metadata, labels)))
		return 0;
	return f->has_terms ? node_selector_matches(&f->terms, node, err) : 1;
}
