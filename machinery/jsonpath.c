#include "machinery/jsonpath_priv.h"

#include <stdio.h>

#include "codec/go.h"
#include "codec/json.h"
#include "machinery/patch_priv.h"

/*
 * Every step takes a list of values to another one. A step that fails still leaves a list: filters that only ask whether something
 * exists look at it and ignore the error, as Kubernetes does.
 *
 * Recursion here follows the template, whose depth the parser bounds; trees are walked with an explicit stack. The number of values
 * produced is bounded, which bounds time and memory too: "..*..*..*" multiplies.
 */

struct values {
	struct val *all;
	size_t n, cap;
};

struct run {
	struct arena *arena;
	const struct nodes *root;
	const struct jsonpath_options *opt;
	struct err *err;
	size_t left;                            /* values that may still be produced */
	unsigned begin_range, in_range, end_range;
	size_t last_end;                        /* where the {end} that was met last stands */
	struct values found;                    /* lists */
};

static int walk(struct run *run, const struct values *in, const struct node *node, struct values *out);

static int add(struct run *run, struct values *list, struct val v)
{
	if (run->left == 0)
		return err_set(run->err, ERR_BAD_REQUEST, "the expression yields too many values");
	run->left--;
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 4;
		struct val *more = ARENA_ARRAY(run->arena, struct val, cap);
		if (list->n)
			memcpy(more, list->all, list->n * sizeof(*more));
		list->all = more;
		list->cap = cap;
	}
	list->all[list->n++] = v;
	return 0;
}

static int walk_list(struct run *run, const struct values *in, const struct nodes *list, struct values *out)
{
	struct values cur = *in;
	for (size_t i = 0; i < list->n; i++) {
		struct values next = { 0 };
		int r = walk(run, &cur, &list->all[i], &next);
		cur = next;
		if (r < 0) {
			*out = cur;
			return r;
		}
	}
	*out = cur;
	return 0;
}

/* ---- steps ---- */

static int walk_literal(struct run *run, const struct values *in, struct val literal, struct values *out)
{
	int r = 0;
	for (size_t i = 0; i < in->n && r >= 0; i++)
		r = add(run, out, literal);
	return r;
}

static int walk_identifier(struct run *run, const struct values *in, const struct node *node, struct values *out)
{
	if (str_eq(node->text, STR("range"))) {
		run->begin_range++;
		*out = *in;
		return 0;
	}
	if (str_eq(node->text, STR("end"))) {
		if (run->in_range == 0)
			return err_set(run->err, ERR_BAD_REQUEST, "not in range, nothing to end");
		run->end_range++;
		return 0;
	}
	*out = *in;
	return err_set(run->err, ERR_BAD_REQUEST, "unrecognized identifier " STR_FMT, STR_ARG(node->text));
}

static int walk_field(struct run *run, const struct values *in, const struct node *node, struct values *out)
{
	for (size_t i = 0; i < in->n; i++) {
		struct val v = val_member(in->all[i], node->key);
		int r = val_exists(v) ? add(run, out, v) : 0;
		if (r < 0)
			return r;
	}
	if (in->n && out->n == 0 && !run->opt->allow_missing_keys)
		return err_set(run->err, ERR_BAD_REQUEST, STR_FMT " is not found", STR_ARG(node->text));
	return 0;
}

/* Item i of what is inside of a value: also of a string, whose bytes count as numbers. */
static struct val inside(struct val v, size_t i)
{
	switch (v.type) {
	case VAL_LIST: return v.items[i];
	case VAL_OBJECT: return v.members[i].val;
	case VAL_STRING: return val_of_int((unsigned char)v.s[i]);
	default: return VAL_EMPTY;
	}
}

static size_t inside_len(struct val v) { return v.type == VAL_STRING ? v.n : val_len(v); }

static int walk_wildcard(struct run *run, const struct values *in, struct values *out)
{
	for (size_t i = 0; i < in->n; i++)
		for (size_t j = 0; j < inside_len(in->all[i]); j++) {
			int r = add(run, out, inside(in->all[i], j));
			if (r < 0)
				return r;
		}
	return 0;
}

/* A container on the way down, and what of it was not visited yet. */
struct level {
	struct val v;
	size_t next;
	struct level *up;
};

/* The value and all that it contains, from the outside to the inside; but nothing that contains nothing. */
static int descend(struct run *run, struct val top, struct values *out)
{
	struct level *level = NULL, *spare = NULL;
	struct val v = top;

	for (;;) {
		if (inside_len(v)) {
			int r = add(run, out, v);
			if (r < 0)
				return r;
		}
		if (inside_len(v) && v.type != VAL_STRING) {
			struct level *deeper = spare ? spare : ARENA_NEW(run->arena, struct level);
			spare = spare ? spare->up : NULL;
			*deeper = (struct level){ v, 0, level };
			level = deeper;
		}
		while (level && level->next == inside_len(level->v)) {
			struct level *done = level;
			level = level->up;
			done->up = spare;
			spare = done;
		}
		if (!level)
			return 0;
		v = inside(level->v, level->next++);
	}
}

static const char *type_name(struct val v)
{
	switch (v.type) {
	case VAL_BOOL: return "bool";
	case VAL_INT: return "int64";
	case VAL_DOUBLE: return "float64";
	case VAL_STRING: return "string";
	case VAL_OBJECT: return "map[string]interface {}";
	default: return "<nil>";
	}
}

/* Start and end of a slice for a list of n items. 1: take them, 0: nothing at all is wanted. */
static int resolve_slice(struct run *run, const struct slice_bound slice[3], int64_t n, int64_t *ret_start, int64_t *ret_end)
{
	int64_t start = slice[0].known ? slice[0].value : 0, end = slice[1].known ? slice[1].value : n;

	if (start < 0)
		start += n;
	if (end < 0 || (end == 0 && slice[1].derived))
		end += n;
	*ret_start = start;
	*ret_end = end;
	if (start == end)
		return 0;
	if (start >= n || start < 0)
		return err_set(run->err, ERR_BAD_REQUEST, "array index out of bounds: index %lld, length %lld", (long long)start,
			       (long long)n);
	if (end > n || end < 0)
		return err_set(run->err, ERR_BAD_REQUEST, "array index out of bounds: index %lld, length %lld", (long long)end - 1,
			       (long long)n);
	if (start > end)
		return err_set(run->err, ERR_BAD_REQUEST, "starting index %lld is greater than ending index %lld", (long long)start,
			       (long long)end);
	if (slice[2].known && slice[2].value <= 0)
		return err_set(run->err, ERR_BAD_REQUEST, "step must be > 0");
	return 1;
}

static int slice_one(struct run *run, struct val v, const struct node *node, struct values *out)
{
	int64_t start, end, step = node->slice[2].known ? node->slice[2].value : 1;

	if (v.type != VAL_LIST)
		return err_set(run->err, ERR_BAD_REQUEST, "%s is not array or slice", type_name(v));
	int r = resolve_slice(run, node->slice, v.n, &start, &end);
	if (r <= 0)
		return r;
	for (int64_t i = start; i < end; i += step) {
		if ((r = add(run, out, v.items[i])) < 0)
			return r;
		if (step >= end - i)
			break;
	}
	return 1;
}

static int walk_array(struct run *run, const struct values *in, const struct node *node, struct values *out)
{
	for (size_t i = 0; i < in->n; i++) {
		if (in->all[i].type == VAL_NULL)
			continue;
		int r = slice_one(run, in->all[i], node, out);
		if (r < 0)
			*out = *in;
		/* A slice of nothing ends the whole step, as in Kubernetes. */
		if (r <= 0)
			return r;
	}
	return 0;
}

static int walk_union(struct run *run, const struct values *in, const struct node *node, struct values *out)
{
	for (size_t i = 0; i < node->nodes.n; i++) {
		struct values part = { 0 };
		int r = walk_list(run, in, &node->nodes.all[i].nodes, &part);
		for (size_t j = 0; j < part.n && r >= 0; j++)
			r = add(run, out, part.all[j]);
		if (r < 0) {
			*out = *in;
			return r;
		}
	}
	return 0;
}

/* ---- filters ---- */

enum order { LESS, EQUAL, MORE, UNEQUAL };

/* How two values compare; only values of the same basic type do, and of bools only whether they are equal. */
static int compare(struct run *run, struct val x, struct val y, bool only_equality, enum order *ret)
{
	bool basic = x.type >= VAL_BOOL && x.type <= VAL_STRING && y.type >= VAL_BOOL && y.type <= VAL_STRING;
	if (!basic)
		return err_set(run->err, ERR_BAD_REQUEST, "invalid type for comparison");
	if (x.type != y.type)
		return err_set(run->err, ERR_BAD_REQUEST, "incompatible types for comparison");
	switch (x.type) {
	case VAL_BOOL:
		if (!only_equality)
			return err_set(run->err, ERR_BAD_REQUEST, "invalid type for comparison");
		*ret = x.b == y.b ? EQUAL : UNEQUAL;
		return 0;
	case VAL_INT: *ret = x.i < y.i ? LESS : x.i > y.i ? MORE : EQUAL; return 0;
	case VAL_DOUBLE: *ret = x.d < y.d ? LESS : x.d > y.d ? MORE : x.d == y.d ? EQUAL : UNEQUAL; return 0;
	default: break;
	}
	int c = str_cmp(val_as_str(x), val_as_str(y));
	*ret = c < 0 ? LESS : c > 0 ? MORE : EQUAL;
	return 0;
}

/* 1: passes, 0: does not. */
static int apply_operator(struct run *run, str op, struct val x, struct val y)
{
	bool equals = str_eq(op, STR("==")), unequal = str_eq(op, STR("!="));
	bool less = str_eq(op, STR("<")), more = str_eq(op, STR(">"));
	bool less_equal = str_eq(op, STR("<=")), more_equal = str_eq(op, STR(">="));
	enum order order = UNEQUAL;

	if (!equals && !unequal && !less && !more && !less_equal && !more_equal)
		return err_set(run->err, ERR_BAD_REQUEST, "unrecognized filter operator " STR_FMT, STR_ARG(op));
	int r = compare(run, x, y, equals || unequal, &order);
	if (r < 0)
		return r;
	if (equals || unequal)
		return (order == EQUAL) == equals;
	/* > is Kubernetes' "not <=", and >= its "not <". */
	if (less || more_equal)
		return (order == LESS) == less;
	return (order == LESS || order == EQUAL) == less_equal;
}

static int one_operand(struct run *run, struct val item, const struct nodes *list, struct val *ret)
{
	struct values in = { .all = &item, .n = 1, .cap = 1 }, got = { 0 };
	int r = walk_list(run, &in, list, &got);
	if (r < 0)
		return r;
	if (got.n > 1)
		return err_set(run->err, ERR_BAD_REQUEST, "can only compare one element at a time");
	if (got.n)
		*ret = got.all[0];
	return (int)got.n;
}

static bool exists(struct run *run, struct val item, const struct nodes *list)
{
	struct values in = { .all = &item, .n = 1, .cap = 1 }, got = { 0 };
	struct err *err = run->err;
	run->err = NULL;
	(void)walk_list(run, &in, list, &got);
	run->err = err;
	return got.n > 0;
}

static int refuse_to_filter(struct run *run, struct val v)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT(sizeof(run->err->msg));
	if (val_exists(v))
		jsonpath_add_plain(&shown, v);
	else
		buf_add(&shown, STR("<invalid reflect.Value>"));
	return err_set(run->err, ERR_BAD_REQUEST, STR_FMT " is not array or slice and cannot be filtered", STR_ARG(buf_str(&shown)));
}

/* Of a comparison that fails, what was found before it stays; of all else that fails, the input. */
static int filter_item(struct run *run, struct val item, const struct node *node, const struct values *in, struct values *out)
{
	struct val left, right;
	int passes;

	if (str_eq(node->text, STR("exists"))) {
		passes = exists(run, item, &node->left);
	} else {
		int r = one_operand(run, item, &node->left, &left);
		if (r > 0)
			r = one_operand(run, item, &node->right, &right);
		if (r < 0)
			*out = *in;
		if (r <= 0)
			return r;
		passes = apply_operator(run, node->text, left, right);
	}
	return passes > 0 ? add(run, out, item) : passes;
}

static int walk_filter(struct run *run, const struct values *in, const struct node *node, struct values *out)
{
	for (size_t i = 0; i < in->n; i++) {
		struct val v = in->all[i];
		if (v.type != VAL_LIST) {
			*out = *in;
			return refuse_to_filter(run, v);
		}
		for (size_t j = 0; j < v.n; j++) {
			int r = filter_item(run, v.items[j], node, in, out);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int walk(struct run *run, const struct values *in, const struct node *node, struct values *out)
{
	int r = 0;
	switch (node->type) {
	case NODE_TEXT: return add(run, out, val_of_str(node->text));
	case NODE_LIST: return walk_list(run, in, &node->nodes, out);
	case NODE_FIELD: return walk_field(run, in, node, out);
	case NODE_IDENTIFIER: return walk_identifier(run, in, node, out);
	case NODE_ARRAY: return walk_array(run, in, node, out);
	case NODE_FILTER: return walk_filter(run, in, node, out);
	case NODE_LITERAL: return walk_literal(run, in, node->literal, out);
	case NODE_WILDCARD: return walk_wildcard(run, in, out);
	case NODE_UNION: return walk_union(run, in, node, out);
	case NODE_RECURSIVE:
		for (size_t i = 0; i < in->n && r >= 0; i++)
			r = descend(run, in->all[i], out);
		return r;
	}
	return r;
}

/* ---- templates ---- */

/* Ranges may be nested; each level costs a frame on the stack. */
enum { RANGES_MAX = 64 };

static int run_from(struct run *run, size_t from, struct val value, bool silent);

/* The part after a {range}, once for each value. Without values once for nothing, to find where the range ends. */
static int run_range(struct run *run, size_t from, const struct values *over, bool silent)
{
	int r = 0;
	if (run->in_range == RANGES_MAX)
		return err_set(run->err, ERR_BAD_REQUEST, "ranges are nested more than %d levels deep", RANGES_MAX);
	run->in_range++;
	for (size_t i = 0; i < over->n && r >= 0; i++)
		r = run_from(run, from, val_is_nil(over->all[i]) ? VAL_EMPTY : over->all[i], silent);
	if (over->n == 0)
		r = run_from(run, from, VAL_EMPTY, true);
	run->in_range--;
	return r;
}

static int run_from(struct run *run, size_t from, struct val value, bool silent)
{
	/* An action without steps gives its input: that must live as long as the result. */
	struct val *copy = ARENA_ARRAY(run->arena, struct val, 1);
	const struct values in = { .all = copy, .n = 1, .cap = 1 };

	*copy = value;
	for (size_t i = from; i < run->root->n; i++) {
		struct values out = { 0 };
		int r = walk(run, &in, &run->root->all[i], &out);
		if (r < 0)
			return r;
		if (run->end_range > 0 && run->end_range <= run->in_range) {
			run->end_range--;
			run->last_end = i;
			return 0;
		}
		if (run->begin_range > 0) {
			run->begin_range--;
			if ((r = run_range(run, i + 1, &out, silent)) < 0)
				return r;
			if (run->last_end > i && run->last_end < run->root->n)
				i = run->last_end;
			continue;
		}
		struct val list = { .type = VAL_LIST, .n = (uint32_t)out.n, .items = out.all };
		if (!silent && (r = add(run, &run->found, list)) < 0)
			return r;
		if (silent && (r = add(run, &(struct values){ 0 }, VAL_EMPTY)) < 0)
			return r;
	}
	return 0;
}

int jsonpath_find(const struct jsonpath *path, struct arena *a, struct val root, const struct jsonpath_options *opt, struct val *ret,
		  struct err *err)
{
	struct run run = {
		.arena = a,
		.root = &path->nodes,
		.opt = opt,
		.err = err,
		.left = opt->max_values ? opt->max_values : JSONPATH_MAX_VALUES,
		.last_end = SIZE_MAX,
	};
	int r = run_from(&run, 0, root, false);
	if (r < 0)
		return r;
	*ret = (struct val){ .type = VAL_LIST, .n = (uint32_t)run.found.n, .items = run.found.all };
	return 0;
}

/* ---- output ---- */

static void add_scalar(struct buf *b, struct val v)
{
	char number[GO_INT_MAX], real[GO_FLOAT_MAX];
	switch (v.type) {
	case VAL_BOOL: buf_add(b, v.b ? STR("true") : STR("false")); break;
	case VAL_INT: buf_add(b, go_format_int(v.i, number)); break;
	case VAL_DOUBLE: buf_add(b, go_format_float(v.d, false, GO_FLOAT_G, real)); break;
	case VAL_STRING:
	case VAL_RAW: buf_add(b, val_as_str(v)); break;
	case VAL_NULL: buf_add(b, STR("null")); break;
	default: buf_add(b, STR("<no value>")); break;
	}
}

void jsonpath_add_plain(struct buf *b, struct val v) { patch_go_print(b, v); }

int jsonpath_print_value(struct buf *out, struct val v, struct err *err)
{
	if (v.type >= VAL_LIST)
		return json_encode(out, v, &(struct json_encode_options){ 0 }, err);
	add_scalar(out, v);
	return 0;
}

static int print_list(struct buf *out, struct val list, bool as_json, struct err *err)
{
	int r;
	if (as_json) {
		if ((r = json_encode(out, list, &(struct json_encode_options){ .indent = 4 }, err)) < 0)
			return r;
		buf_addc(out, '\n');
		return 0;
	}
	for (uint32_t i = 0; i < list.n; i++) {
		if (i)
			buf_addc(out, ' ');
		if ((r = jsonpath_print_value(out, list.items[i], err)) < 0)
			return r;
	}
	return 0;
}

int jsonpath_print(const struct jsonpath *path, struct arena *a, struct val root, const struct jsonpath_options *opt, struct buf *out,
		   struct err *err)
{
	size_t start = out->n;
	struct val lists;
	int r = jsonpath_find(path, a, root, opt, &lists, err);
	if (r < 0)
		return r;
	VAL_EACH(list, lists) {
		if ((r = print_list(out, *list, opt->as_json, err)) < 0)
			break;
	}
	if (r >= 0)
		r = buf_check(out, "the output", err);
	if (r < 0 && out->p) {
		out->n = start;
		out->p[start] = '\0';
	}
	return r;
}
