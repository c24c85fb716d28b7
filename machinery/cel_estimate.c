/*
 * The estimate of what a program can cost, by cel-go's rules with Kubernetes' table of functions: servers refuse expressions whose estimate
 * is too high. A size is a range of characters, items or members. It is known of literals, of what types declare (CEL_SIZED)
 * and of what follows from both; everything else may be of any size.
 */
#include <math.h>

#include "machinery/cel_priv.h"

struct range {
	uint64_t min, max;
};

/* What is known of a node. */
struct known {
	struct range cost;
	bool sized;
	struct range size;
	bool entries;                     /* the sizes of its elements are known too */
	struct range key, val;
	bool is_list;                     /* of which kind it is, then */
	const struct cel_type *declared;  /* the type that a variable, or a part of it, is declared with */
};

struct estimator {
	const struct cel_program *p;
	struct arena *scratch;            /* instead of the stack: this recurses */
	struct known *locals;             /* by slot */
};

static const struct range any_size = { 0, UINT64_MAX }, one = { 1, 1 };

static void estimate(struct estimator *e, const struct cel_node *n, struct known *ret);

static struct known *estimated(struct estimator *e, const struct cel_node *n)
{
	struct known *k = ARENA_NEW(e->scratch, struct known);

	estimate(e, n, k);
	return k;
}

/* ---- ranges ---- */

static uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }
static uint64_t times(uint64_t a, uint64_t b) { return b && a > UINT64_MAX / b ? UINT64_MAX : a * b; }

static uint64_t scaled(uint64_t x, double factor)
{
	double d = ceil((double)x * factor);

	return d >= 0x1p64 ? UINT64_MAX : (uint64_t)d;
}

static struct range add(struct range a, struct range b) { return (struct range){ plus(a.min, b.min), plus(a.max, b.max) }; }
static struct range multiply(struct range a, struct range b) { return (struct range){ times(a.min, b.min), times(a.max, b.max) }; }
static struct range scale(struct range a, double f) { return (struct range){ scaled(a.min, f), scaled(a.max, f) }; }
static struct range either(struct range a, struct range b) { return (struct range){ MIN(a.min, b.min), MAX(a.max, b.max) }; }
static struct range fixed(uint64_t n) { return (struct range){ n, n }; }

/* ---- sizes ---- */

static bool is_scalar(const struct cel_type *t)
{
	while (t->kind == CEL_OPTIONAL)
		t = t->elem;
	return t->kind == CEL_BOOL || t->kind == CEL_DOUBLE || t->kind == CEL_DURATION || t->kind == CEL_INT || t->kind == CEL_TIMESTAMP ||
	       t->kind == CEL_UINT;
}

/* What is declared, and else what the type says, unless the size is known already. */
static void settle_size(struct known *k, const struct cel_node *n)
{
	if (k->sized)
		return;
	k->sized = k->declared || is_scalar(n->type);
	k->size = k->declared ? (struct range){ 0, k->declared->max_size } : one;
}

static struct range size_of(const struct known *k) { return k->sized ? k->size : any_size; }

/* The element that an index or a loop takes. */
static const struct cel_type *declared_element(const struct cel_type *t) { return t ? t->elem : NULL; }

static const struct cel_type *declared_field(struct estimator *e, const struct cel_type *t, str name)
{
	if (!t)
		return NULL;
	if (t->kind == CEL_OBJECT)
		return cel_type_field((struct arena *)(uintptr_t)&e->p->arena, t, name);
	/* Members of a map have a size of their own only where they may be anything. */
	return t->kind == CEL_MAP && t->elem && cel_type_is_dyn(t->elem) ? t->elem : NULL;
}

/* ---- names, fields ---- */

static struct known estimate_ident(struct estimator *e, const struct cel_node *n)
{
	struct known k = { .cost = one };

	if (n->ident.place == CEL_LOCAL) {
		const struct known *local = &e->locals[n->ident.slot];
		k = *local;
		k.cost = one;
		/* A size by its path or type comes before what was computed. */
		if (k.declared || is_scalar(n->type))
			k.sized = false;
	} else if (n->ident.place == CEL_VARIABLE && e->p->env->options & CEL_SIZED) {
		k.declared = e->p->env->vars[n->ident.slot].type;
	}
	settle_size(&k, n);
	return k;
}

static struct known estimate_select(struct estimator *e, const struct cel_node *n)
{
	const struct known *operand = estimated(e, n->select.operand);
	struct known k = { .cost = operand->cost };
	uint8_t kind = n->select.operand->type->kind;

	if (n->select.test) {
		settle_size(&k, n);
		return k;
	}
	/* The optional form is a call. */
	if (n->select.optional || kind == CEL_MAP || kind == CEL_OBJECT || kind == CEL_PARAM)
		k.cost = add(k.cost, one);
	if (!n->select.optional)
		k.declared = declared_field(e, operand->declared, n->select.field);
	settle_size(&k, n);
	return k;
}

/* ---- calls ---- */

struct call {
	const char *name, *id;
	const struct cel_node *node;
	const struct known *args;   /* the receiver of a method is the first */
	size_t n;
	struct range cost;          /* out, without that of the arguments */
	bool sized;
	struct range size;          /* out: of the result */
};

static struct range arg_size(const struct call *c, size_t i) { return i < c->n ? size_of(&c->args[i]) : any_size; }

static void cost_by_size(struct call *c, size_t i, double factor, bool same_size)
{
	c->cost = scale(arg_size(c, i), factor);
	c->sized = same_size;
	c->size = arg_size(c, i);
}

/* The size of the elements of a list by its declaration. */
static struct range element_size(const struct call *c)
{
	const struct cel_type *elem = declared_element(c->args[0].declared);

	return elem ? (struct range){ 0, elem->max_size } : any_size;
}

static void cost_of_traversal(struct call *c)
{
	const struct cel_type *t = c->node->call.args[0]->type;
	const struct cel_type *elem = t->kind == CEL_LIST ? t->elem : t->kind == CEL_MAP ? t->key : NULL;
	struct range each = one;

	if (!elem) {
		c->cost = scale(arg_size(c, 0), 0.1);
		return;
	}
	if (elem->kind == CEL_STRING || elem->kind == CEL_BYTES)
		each = add(each, scale(element_size(c), 0.1));
	c->cost = multiply(arg_size(c, 0), each);
}

/* How often something can be replaced, and what stays of the text. */
static void cost_of_replace(struct call *c)
{
	struct range text = arg_size(c, 0), old = arg_size(c, 1), with = arg_size(c, 2), count = { 0, 0 }, kept = { 0, 0 };

	if (old.min == 0) {
		count.max = plus(text.max, 1);
		kept.max = text.max;
	} else if (with.max <= old.min) {
		kept.max = text.max;
	} else {
		count.max = scaled(text.max, 1.0 / (double)old.min);
	}
	if (old.max == 0) {
		count.min = plus(text.min, 1);
		kept.min = text.min;
	} else if (old.max <= with.min) {
		kept.min = text.min;
	} else {
		count.min = scaled(text.min, 1.0 / (double)old.max);
	}
	c->cost = scale(text, 0.2);
	c->sized = true;
	c->size = add(multiply(count, with), kept);
}

static const struct cel_node *literal_arg(const struct call *c, size_t i)
{
	const struct cel_node *n = i < c->n ? c->node->call.args[i] : NULL;

	return n && n->kind == CEL_N_LITERAL && n->literal.kind == CEL_INT ? n : NULL;
}

static void cost_of_split(struct call *c)
{
	const struct cel_node *limit = literal_arg(c, 2);

	c->cost = scale(arg_size(c, 0), 0.2);
	c->sized = true;
	c->size = (struct range){ 0, limit ? (uint64_t)limit->literal.i : arg_size(c, 0).max };
}

static void cost_of_join(struct call *c)
{
	struct range list = arg_size(c, 0), size = multiply(list, element_size(c));

	if (c->n > 1) {
		struct range gaps = { list.min ? list.min - 1 : 0, list.max ? list.max - 1 : 0 };
		size = add(size, multiply(arg_size(c, 1), gaps));
	}
	c->cost = scale(size, 0.1);
	c->sized = true;
	c->size = size;
}

static void cost_of_pattern(struct call *c, bool result)
{
	struct range text = arg_size(c, 0);

	c->cost = multiply(scale(add(text, one), 0.1), scale(arg_size(c, 1), 0.25));
	c->sized = result;
	c->size = (struct range){ 0, text.max };
}

static void cost_of_containment(struct call *c, bool cidr)
{
	struct range address = { 4, 16 };

	c->cost = scale(add(address, address), 0.1);
	if (cidr)
		c->cost = add(c->cost, add(scale(address, 0.1), one));
	if (str_ends(str_of(c->id), STR("_string")))
		c->cost = add(c->cost, scale(arg_size(c, 1), 0.1));
}

static void cost_of_equality(struct call *c)
{
	const struct cel_type *a = c->node->call.args[0]->type, *b = c->node->call.args[1]->type;

	if (cel_type_same(a, b) && a->kind >= CEL_QUANTITY && a->kind <= CEL_FORMAT) {
		uint64_t url = a->kind == CEL_URL && c->args[1].sized ? arg_size(c, 1).max : 1;
		c->cost = a->kind == CEL_FORMAT ? (struct range){ 1, 7 } : scale((struct range){ 1, url }, a->kind == CEL_URL ? 0.1 : 1);
		return;
	}
	uint64_t smaller = MIN(arg_size(c, 0).max, arg_size(c, 1).max);
	c->cost = scale((struct range){ smaller > 0, smaller }, 0.1);
}

static void cost_of_new_list(struct call *c, double factor, struct range size)
{
	c->cost = add(scale(size, factor), fixed(1 + 10));
	c->sized = true;
	c->size = size;
}

static uint64_t int_arg(const struct call *c, size_t i, uint64_t otherwise)
{
	const struct cel_node *n = literal_arg(c, i);

	return n ? (uint64_t)MAX(n->literal.i, (int64_t)0) : otherwise;
}

enum rule {
	ONE, TRAVERSE, FIRST_TENTH, FIRST_TENTH_SIZED, REPLACE, SPLIT, JOIN, FIND, FIRST_FIFTH, CONTAINS_IP, CONTAINS_CIDR, VALIDATE, SELECTOR,
	CHECK, SLICE, RANGE, REVERSE, FLATTEN, DISTINCT, SORT, SETS, SETS_TWICE, TO_BYTES, TO_STRING, QUOTE, SECOND_TENTH, IN_LIST, MATCHES,
	CONTAINS, ADD_TEXT, ADD_LIST, EQUALITY, INCLUDES,
};

static const struct {
	const char *name;
	enum rule rule;
} by_name[] = {
	{ "check", CHECK }, { "fieldSelector", SELECTOR }, { "labelSelector", SELECTOR },
	{ "isSorted", TRAVERSE }, { "sum", TRAVERSE }, { "max", TRAVERSE }, { "min", TRAVERSE }, { "indexOf", TRAVERSE },
	{ "lastIndexOf", TRAVERSE }, { "url", FIRST_TENTH_SIZED }, { "lowerAscii", FIRST_TENTH_SIZED },
	{ "upperAscii", FIRST_TENTH_SIZED }, { "substring", FIRST_TENTH_SIZED }, { "trim", FIRST_TENTH_SIZED }, { "replace", REPLACE },
	{ "split", SPLIT }, { "join", JOIN }, { "find", FIND }, { "findAll", FIND }, { "cidr", FIRST_TENTH }, { "isIP", FIRST_TENTH },
	{ "isCIDR", FIRST_TENTH }, { "ip.isCanonical", FIRST_FIFTH }, { "containsIP", CONTAINS_IP }, { "containsCIDR", CONTAINS_CIDR },
	{ "quantity", FIRST_TENTH }, { "isQuantity", FIRST_TENTH }, { "semver", FIRST_TENTH }, { "isSemver", FIRST_TENTH },
	{ "validate", VALIDATE },
}, by_id[] = {
	{ "string_to_ip", FIRST_TENTH }, { "list_slice", SLICE }, { "lists_range", RANGE }, { "list_reverse", REVERSE },
	{ "list_flatten", FLATTEN }, { "list_flatten_int", FLATTEN }, { "list_distinct", DISTINCT }, { "list_sets_contains_list", SETS },
	{ "list_sets_intersects_list", SETS }, { "list_sets_equivalent_list", SETS_TWICE }, { "string_format", FIRST_TENTH },
	{ "string_to_bytes", TO_BYTES }, { "bytes_to_string", TO_STRING }, { "strings_quote", QUOTE }, { "starts_with_string", SECOND_TENTH },
	{ "ends_with_string", SECOND_TENTH }, { "in_list", IN_LIST }, { "matches_string", MATCHES }, { "contains_string", CONTAINS },
	{ "add_string", ADD_TEXT }, { "add_bytes", ADD_TEXT }, { "add_list", ADD_LIST }, { "less_string", EQUALITY },
	{ "greater_string", EQUALITY }, { "less_equals_string", EQUALITY }, { "greater_equals_string", EQUALITY }, { "less_bytes", EQUALITY },
	{ "greater_bytes", EQUALITY }, { "less_equals_bytes", EQUALITY }, { "greater_equals_bytes", EQUALITY }, { "equals", EQUALITY },
	{ "not_equals", EQUALITY }, { "dra_includes_dyn_dyn", INCLUDES },
};

static enum rule rule_for(const struct call *c)
{
	str id = str_of(c->id);

	if (str_ends(id, STR("_sort")) || str_ends(id, STR("_sortByAssociatedKeys")))
		return SORT;
	for (size_t i = 0; i < ARRAY_LEN(by_name); i++)
		if (strcmp(by_name[i].name, c->name) == 0)
			return by_name[i].rule;
	for (size_t i = 0; i < ARRAY_LEN(by_id); i++)
		if (strcmp(by_id[i].name, c->id) == 0)
			return by_id[i].rule;
	return ONE;
}

/* Lists that functions make, and conversions of texts. */
static void cost_of_making(struct call *c, enum rule rule)
{
	struct range first = arg_size(c, 0);
	double text = str_starts(str_of(c->id), STR("list_string")) || str_starts(str_of(c->id), STR("list_bytes")) ? 2.1 : 2.0;

	switch (rule) {
	case SLICE:
		cost_of_new_list(c, 1, fixed(int_arg(c, 2, first.max) - int_arg(c, 1, 0)));
		break;
	case RANGE:
		cost_of_new_list(c, 1, fixed(int_arg(c, 0, UINT64_MAX)));
		break;
	case REVERSE:
		cost_of_new_list(c, 1, first);
		break;
	case FLATTEN:
		cost_of_new_list(c, c->n == 2 ? (double)int_arg(c, 1, UINT64_MAX) : 1, first);
		break;
	case DISTINCT:
		cost_of_new_list(c, 2, multiply(first, first));
		break;
	case SORT:
		first = arg_size(c, c->n - 1);
		cost_of_new_list(c, text, multiply(first, first));
		break;
	case TO_BYTES:
		c->cost = scale(first, 0.1);
		c->size = (struct range){ first.min, first.max * 4 };
		c->sized = true;
		break;
	case TO_STRING:
		c->cost = scale(first, 0.1);
		c->size = (struct range){ first.min / 4, first.max };
		c->sized = true;
		break;
	default:
		c->cost = scale(first, 0.1);
		c->size = (struct range){ first.min + 2, first.max * 2 + 2 };
		c->sized = true;
	}
}

static void cost_of_call(struct call *c)
{
	struct range selector;
	enum rule rule = rule_for(c);

	switch (rule) {
	case ONE:
		c->cost = one;
		break;
	case TRAVERSE:
		cost_of_traversal(c);
		break;
	case FIRST_TENTH:
		cost_by_size(c, 0, 0.1, false);
		break;
	case FIRST_TENTH_SIZED:
		cost_by_size(c, 0, 0.1, true);
		break;
	case FIRST_FIFTH:
		cost_by_size(c, 0, 0.2, false);
		break;
	case SECOND_TENTH:
		cost_by_size(c, 1, 0.1, false);
		break;
	case IN_LIST:
		cost_by_size(c, 1, 1, false);
		break;
	case REPLACE:
		cost_of_replace(c);
		break;
	case SPLIT:
		cost_of_split(c);
		break;
	case JOIN:
		cost_of_join(c);
		break;
	case FIND:
	case MATCHES:
		cost_of_pattern(c, rule == FIND);
		break;
	case CONTAINS:
		c->cost = multiply(scale(arg_size(c, 0), 0.1), scale(arg_size(c, 1), 0.1));
		break;
	case CONTAINS_IP:
	case CONTAINS_CIDR:
		cost_of_containment(c, rule == CONTAINS_CIDR);
		break;
	case VALIDATE:
		c->cost = scale(scale(arg_size(c, 1), 0.1), 128 * 0.25);
		break;
	case SELECTOR:
		selector = arg_size(c, 1);
		c->cost = add(fixed(10), add(scale(selector, 0.1), scale(scale(selector, 0.5), 50)));
		break;
	case CHECK:
		c->cost = fixed(350000);
		break;
	case SETS:
	case SETS_TWICE:
		c->cost = add(scale(multiply(arg_size(c, 0), arg_size(c, 1)), rule == SETS ? 1 : 2), one);
		break;
	case ADD_TEXT:
	case ADD_LIST:
		c->sized = true;
		c->size = add(arg_size(c, 0), arg_size(c, 1));
		c->cost = rule == ADD_LIST ? one : scale(c->size, 0.1);
		break;
	case EQUALITY:
		cost_of_equality(c);
		break;
	case INCLUDES:
		c->cost = (struct range){ 0, 48 }; /* attributes of a device have no more values */
		break;
	default:
		cost_of_making(c, rule);
	}
}

static void union_entries(struct known *k, const struct known *a, const struct known *b)
{
	if (!a->entries || !b->entries)
		return;
	k->entries = true;
	k->is_list = a->is_list;
	k->key = either(a->key, b->key);
	k->val = either(a->val, b->val);
}

/* a[b]: what is in a. */
static void estimate_index(struct known *k, const struct known *of, const char *id)
{
	if (strcmp(id, "index_list") != 0 && strcmp(id, "index_map") != 0)
		return;
	k->sized = of->entries;
	k->size = of->val;
	k->declared = declared_element(of->declared);
}

static struct known estimate_call(struct estimator *e, const struct cel_node *n)
{
	struct known *args = ARENA_ARRAY(e->scratch, struct known, n->call.n + 1), k = { 0 };
	struct range sum = { 0, 0 }, cost = { UINT64_MAX, 0 };

	for (size_t i = 0; i < n->call.n; i++) {
		estimate(e, n->call.args[i], &args[i]);
		sum = add(sum, args[i].cost);
	}
	if (str_eq(n->call.name, STR("dyn"))) {
		k = args[0];
		k.cost = add(sum, one);
		return k;
	}
	for (size_t i = 0; i < n->call.n_overloads && i < 64; i++) {
		const struct cel_overload *o = n->call.overloads[i];
		if (!(n->call.fits >> i & 1))
			continue;
		struct call c = { .name = o->name, .id = o->id, .node = n, .args = args, .n = n->call.n };
		cost_of_call(&c);
		if (o->cost)
			c.cost = fixed(o->cost);
		cost = either(cost, c.cost);
		if (c.sized)
			k.size = k.sized ? either(k.size, c.size) : c.size;
		k.sized |= c.sized;
		if (n->call.n == 2)
			estimate_index(&k, &args[0], o->id);
	}
	if (str_eq(n->call.name, STR("_+_")))
		union_entries(&k, &args[0], &args[1]);
	settle_size(&k, n);
	k.cost = add(sum, cost.max || !cost.min ? cost : fixed(cost.min == UINT64_MAX ? 0 : cost.min));
	return k;
}

static struct known estimate_logic(struct estimator *e, const struct cel_node *n)
{
	struct known k = { .sized = true, .size = one };

	for (size_t i = 0; i < n->call.n; i++) {
		const struct known *arg = estimated(e, n->call.args[i]);
		k.cost.min = i ? k.cost.min : arg->cost.min;
		k.cost.max = plus(k.cost.max, arg->cost.max);
	}
	return k;
}

static struct known estimate_cond(struct estimator *e, const struct cel_node *n)
{
	const struct known *test = estimated(e, n->call.args[0]), *yes = estimated(e, n->call.args[1]), *no = estimated(e, n->call.args[2]);
	struct known k = { .cost = add(test->cost, either(yes->cost, no->cost)), .sized = true, .size = either(size_of(yes), size_of(no)) };

	union_entries(&k, yes, no);
	return k;
}

/* ---- aggregates ---- */

static struct known estimate_list(struct estimator *e, const struct cel_node *n)
{
	struct known k = { .cost = fixed(10), .sized = true, .size = fixed(n->list.n), .entries = true, .is_list = true, .key = one };

	k.val = (struct range){ n->list.n ? UINT64_MAX : 0, 0 };
	for (size_t i = 0; i < n->list.n; i++) {
		const struct known *item = estimated(e, n->list.items[i]);
		k.cost = add(k.cost, item->cost);
		k.val = either(k.val, size_of(item));
	}
	return k;
}

static struct known estimate_map(struct estimator *e, const struct cel_node *n)
{
	bool object = n->kind == CEL_N_OBJECT;
	struct known k = { .cost = fixed(object ? 40 : 30), .sized = !object, .size = fixed(n->map.n), .entries = !object };

	k.key = k.val = (struct range){ n->map.n ? UINT64_MAX : 0, 0 };
	for (size_t i = 0; i < n->map.n; i++) {
		if (!object) {
			const struct known *key = estimated(e, n->map.entries[i].key);
			k.cost = add(k.cost, key->cost);
			k.key = either(k.key, size_of(key));
		}
		const struct known *val = estimated(e, n->map.entries[i].val);
		k.cost = add(k.cost, val->cost);
		k.val = either(k.val, size_of(val));
	}
	return k;
}

/* ---- comprehensions ---- */

static struct known variable(const struct cel_type *declared, bool sized, struct range size)
{
	return (struct known){ .declared = declared, .sized = sized, .size = size };
}

static void set_variables(struct estimator *e, const struct cel_node *n, const struct known *range)
{
	struct known *slots = e->locals + n->fold.slot;
	bool list = range->entries ? range->is_list : n->fold.range->type->kind == CEL_LIST, two = n->fold.iter2.n > 0;
	const struct cel_type *elem = declared_element(range->declared), *key = range->declared ? range->declared->key : NULL;

	slots[2] = variable(elem, range->entries, range->val);
	if (list)
		slots[1] = two ? variable(NULL, range->entries, range->key) : slots[2];
	else
		slots[1] = variable(key, range->entries, range->key);
}

static struct known estimate_fold(struct estimator *e, const struct cel_node *n)
{
	const struct known *range = estimated(e, n->fold.range), *init = estimated(e, n->fold.init);
	struct range sum = add(range->cost, init->cost);
	struct known k = { 0 };

	e->locals[n->fold.slot] = *init;
	if (cel_fold_is_bind(n)) {
		estimate(e, n->fold.result, &k);
		k.cost = add(sum, k.cost);
		return k;
	}
	set_variables(e, n, range);
	const struct known *cond = estimated(e, n->fold.cond), *step = estimated(e, n->fold.step), *result = estimated(e, n->fold.result);
	k.cost = add(add(sum, result->cost), multiply(size_of(range), add(step->cost, cond->cost)));
	if (n->fold.init->kind == CEL_N_LITERAL) {
		k.sized = true;
		k.size = init->size;
	} else if (n->fold.init->kind == CEL_N_LIST || n->fold.init->kind == CEL_N_MAP) {
		k.sized = true;
		k.size = size_of(range);
		k.entries = step->entries;
		k.is_list = step->is_list;
		k.key = step->key;
		k.val = step->val;
	}
	settle_size(&k, n);
	return k;
}

static struct known estimate_literal(const struct cel_node *n)
{
	struct known k = { .sized = true, .size = one };

	if (n->literal.kind == CEL_STRING || n->literal.kind == CEL_BYTES)
		k.size = fixed(cel_actual_size(n->literal));
	return k;
}

static void estimate(struct estimator *e, const struct cel_node *n, struct known *ret)
{
	switch ((enum cel_node_kind)n->kind) {
	case CEL_N_LITERAL:
		*ret = estimate_literal(n);
		return;
	case CEL_N_IDENT:
		*ret = estimate_ident(e, n);
		return;
	case CEL_N_SELECT:
		*ret = estimate_select(e, n);
		return;
	case CEL_N_CALL:
		*ret = estimate_call(e, n);
		return;
	case CEL_N_AND:
	case CEL_N_OR:
		*ret = estimate_logic(e, n);
		return;
	case CEL_N_COND:
		*ret = estimate_cond(e, n);
		return;
	case CEL_N_LIST:
		*ret = estimate_list(e, n);
		return;
	case CEL_N_MAP:
	case CEL_N_OBJECT:
		*ret = estimate_map(e, n);
		return;
	case CEL_N_FOLD:
		*ret = estimate_fold(e, n);
		return;
	case CEL_N_BAD:
		*ret = (struct known){ 0 };
	}
}

uint64_t cel_estimate(struct cel_program *p, struct arena *scratch)
{
	struct estimator e = { .p = p, .scratch = scratch, .locals = ARENA_ARRAY(scratch, struct known, p->n_slots + 1) };

	memset(e.locals, 0, (p->n_slots + 1) * sizeof(*e.locals));
	return estimated(&e, p->root)->cost.max;
}
