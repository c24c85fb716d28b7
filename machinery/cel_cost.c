/*
 * What the call of a function costs at run time: Kubernetes' table (staging/src/k8s.io/apiserver/pkg/cel/library/cost.go) over cel-go's
 * own. Most go by the size of an argument; everything else costs 1.
 */
#include <math.h>

#include "machinery/cel_format_kind.h"
#include "machinery/cel_priv.h"

uint64_t cel_actual_size(struct cel_val v)
{
	switch (v.kind) {
	case CEL_STRING:
		return cel_runes(cel_text(v));
	case CEL_BYTES:
		return v.n;
	case CEL_LIST:
	case CEL_MAP:
		return cel_len(v);
	case CEL_IP:
		return v.ip ? 16 : 1;
	case CEL_OPTIONAL:
		return v.optional ? cel_actual_size(*v.optional) : 1;
	default:
		return 1;
	}
}

static uint64_t share(double size, double factor) { return (uint64_t)ceil(size * factor); }

/* The cost of looking at everything in a value once. */
static uint64_t traversal(struct cel_eval *ev, struct cel_val v, unsigned depth)
{
	struct cel_val key, item;
	uint64_t sum = 0;

	if (v.kind == CEL_STRING || v.kind == CEL_BYTES)
		return (uint64_t)((double)v.n * 0.1);
	if ((v.kind != CEL_LIST && v.kind != CEL_MAP && v.kind != CEL_OBJECT) || depth >= VAL_RECURSION_MAX)
		return 1;
	for (size_t i = 0; i < cel_len(v) && cel_work(ev, 1); i++) {
		if (v.kind == CEL_LIST) {
			sum += traversal(ev, cel_at(ev->arena, v, i), depth + 1);
		} else {
			cel_member_at(ev->arena, v, i, &key, &item);
			sum += traversal(ev, key, depth + 1) + traversal(ev, item, depth + 1);
		}
	}
	return sum;
}

enum rule {
	ONE,
	TRAVERSE,         /* the receiver */
	FIRST,            /* a tenth of the first argument, rounded up */
	FIRST_TWICE,
	RESULT_TWICE,
	PATTERN,          /* text times pattern */
	CONTAINS,
	IN_LIST,
	SMALLER,          /* a tenth of the smaller of two */
	BOTH,
	CONTAINS_IP,
	CONTAINS_CIDR,
	VALIDATE,
	OUTPUT_LIST,
	FLATTEN,
	SELF_COMPARE,     /* a list with itself */
	SELF_COMPARE_KEYS,
	SETS,
	SETS_TWICE,
};

struct rule_of {
	const char *name;
	enum rule rule;
};

/* By the function's name, whatever the overload. */
static const struct rule_of by_name[] = {
	{ "isSorted", TRAVERSE }, { "sum", TRAVERSE }, { "max", TRAVERSE }, { "min", TRAVERSE }, { "indexOf", TRAVERSE },
	{ "lastIndexOf", TRAVERSE }, { "url", FIRST }, { "lowerAscii", FIRST }, { "upperAscii", FIRST }, { "substring", FIRST },
	{ "trim", FIRST }, { "replace", FIRST_TWICE }, { "split", FIRST_TWICE }, { "join", RESULT_TWICE }, { "find", PATTERN },
	{ "findAll", PATTERN }, { "cidr", FIRST }, { "isIP", FIRST }, { "isCIDR", FIRST }, { "ip.isCanonical", FIRST_TWICE },
	{ "containsIP", CONTAINS_IP }, { "containsCIDR", CONTAINS_CIDR }, { "quantity", FIRST }, { "isQuantity", FIRST },
	{ "semver", FIRST }, { "isSemver", FIRST }, { "validate", VALIDATE },
};

/* By the overload, when the checker found just one. */
static const struct rule_of by_id[] = {
	{ "string_to_ip", FIRST }, { "starts_with_string", FIRST }, { "ends_with_string", FIRST }, { "string_to_bytes", FIRST },
	{ "bytes_to_string", FIRST }, { "strings_quote", FIRST }, { "string_format", FIRST }, { "in_list", IN_LIST },
	{ "less_string", SMALLER }, { "greater_string", SMALLER }, { "less_equals_string", SMALLER }, { "greater_equals_string", SMALLER },
	{ "less_bytes", SMALLER }, { "greater_bytes", SMALLER }, { "less_equals_bytes", SMALLER }, { "greater_equals_bytes", SMALLER },
	{ "equals", SMALLER }, { "not_equals", SMALLER }, { "add_string", BOTH }, { "add_bytes", BOTH }, { "matches", ONE },
	{ "matches_string", PATTERN }, { "contains_string", CONTAINS }, { "list_slice", OUTPUT_LIST }, { "lists_range", OUTPUT_LIST },
	{ "list_reverse", OUTPUT_LIST }, { "list_flatten", FLATTEN }, { "list_flatten_int", FLATTEN }, { "list_distinct", SELF_COMPARE },
	{ "list_sets_contains_list", SETS }, { "list_sets_intersects_list", SETS }, { "list_sets_equivalent_list", SETS_TWICE },
};

static enum rule find_rule(const struct rule_of *rules, size_t n, str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(name, str_of(rules[i].name)))
			return rules[i].rule;
	return ONE;
}

static enum rule rule_for(const struct cel_node *call)
{
	enum rule r = find_rule(by_name, ARRAY_LEN(by_name), call->call.name);

	if (r != ONE || !call->call.only)
		return r;
	str id = str_of(call->call.only->id);
	if (str_ends(id, STR("_sort")))
		return SELF_COMPARE;
	if (str_ends(id, STR("_sortByAssociatedKeys")))
		return SELF_COMPARE_KEYS;
	return find_rule(by_id, ARRAY_LEN(by_id), id);
}

/* As Go converts on the machines that costs are compared with: below zero around the end, beyond the largest to the middle. */
static uint64_t whole(double d)
{
	if (d <= -0x1p63 || d >= 0x1p64)
		return 1ULL << 63;
	return d < 0 ? (uint64_t)(int64_t)d : (uint64_t)d;
}

/* A list made by a function. */
static uint64_t allocating(double factor, uint64_t size) { return whole((double)size * factor) + 1 + 10; }

static uint64_t self_compare(struct cel_eval *ev, struct cel_val list)
{
	uint64_t n = cel_len(list);
	struct cel_val first = n ? cel_at(ev->arena, list, 0) : cel_of_null();

	return allocating(first.kind == CEL_STRING || first.kind == CEL_BYTES ? 2.1 : 2.0, n * n);
}

static uint64_t pattern_cost(uint64_t text, uint64_t pattern) { return share(1.0 + (double)text, 0.1) * share((double)pattern, 0.25); }

static uint64_t contains_address(const struct cel_node *call, const struct cel_val *args, bool cidr)
{
	uint64_t size = cel_actual_size(args[0]), cost = share((double)(size + size), 0.1);

	if (cidr)
		cost += share((double)size, 0.1) + 1;
	if (call->call.only && str_ends(str_of(call->call.only->id), STR("_string")))
		cost += share((double)cel_actual_size(args[1]), 0.1);
	return cost;
}

static uint64_t equality(const struct cel_val *args)
{
	/* Kubernetes' own types compare at once. */
	if (args[0].kind >= CEL_QUANTITY && args[0].kind <= CEL_FORMAT)
		return 1;
	return share((double)MIN(cel_actual_size(args[0]), cel_actual_size(args[1])), 0.1);
}

uint64_t cel_call_cost(struct cel_eval *ev, const struct cel_node *call, const struct cel_val *args, size_t n, struct cel_val result)
{
	double first = n ? (double)cel_actual_size(args[0]) : 0;

	/* Functions look at texts, and their characters are counted here, whatever that costs. */
	for (size_t i = 0; i < n; i++)
		cel_work(ev, cel_text(args[i]).n / 64);
	if (call->call.only && call->call.only->cost)
		return call->call.only->cost;
	switch (rule_for(call)) {
	case ONE:
		return 1;
	case TRAVERSE:
		return traversal(ev, args[0], 0);
	case FIRST:
		return share(first, 0.1);
	case FIRST_TWICE:
		return share(first * 2, 0.1);
	case RESULT_TWICE:
		return share((double)cel_actual_size(result) * 2, 0.1);
	case PATTERN:
		return pattern_cost(cel_actual_size(args[0]), cel_actual_size(args[1]));
	case CONTAINS:
		return share(first, 0.1) * share((double)cel_actual_size(args[1]), 0.1);
	case IN_LIST:
		return cel_actual_size(args[1]);
	case SMALLER:
		return equality(args);
	case BOTH:
		return share(first + (double)cel_actual_size(args[1]), 0.1);
	case CONTAINS_IP:
		return contains_address(call, args, false);
	case CONTAINS_CIDR:
		return contains_address(call, args, true);
	case VALIDATE:
		return args[0].kind == CEL_FORMAT ? pattern_cost(cel_actual_size(args[1]), args[0].format->pattern_size) : 1;
	case OUTPUT_LIST:
		return allocating(1, cel_actual_size(result));
	case FLATTEN:
		return allocating(n == 2 && args[1].kind == CEL_INT ? (double)args[1].i : 1, cel_actual_size(args[0]));
	case SELF_COMPARE:
		return self_compare(ev, args[0]);
	case SELF_COMPARE_KEYS:
		return self_compare(ev, args[1]);
	case SETS:
		return 1 + cel_actual_size(args[0]) * cel_actual_size(args[1]);
	case SETS_TWICE:
		return 1 + 2 * cel_actual_size(args[0]) * cel_actual_size(args[1]);
	}
	return 1;
}
