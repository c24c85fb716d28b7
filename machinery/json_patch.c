/*
 * JSON Patch as the library that Kubernetes uses applies it. Its texts reach users of kubectl and of admission webhooks; the
 * API server itself says PATCH_REJECTED. Where the library would crash (null inside a list that is tested, "replace" of the
 * whole document without a value) there is an ordinary error here.
 */
#include "machinery/json_patch_tree.h"


/* ---- the shape of a patch ---- */

static int check_string(struct val operation, const char *name, struct err *err)
{
	struct val v = val_find(operation, str_of(name));
	if (val_is_nil(v) || v.type == VAL_STRING)
		return 0;
	return err_set(err, ERR_BAD_REQUEST, "error decoding patch: json: cannot unmarshal %s into Go struct field jsonPatchOp.%s of type string",
		       patch_json_type(v), name);
}

static void check_unknown(struct strict_errors *s, uint32_t i, struct val operation)
{
	static const str known[] = { STR_INIT("op"), STR_INIT("path"), STR_INIT("from"), STR_INIT("value") };

	VAL_EACH_MEMBER(m, operation) {
		str key = atom_str(m->key);
		bool found = false;
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			found = found || str_eq(key, known[k]);
		if (!found && s->n < ARRAY_LEN(s->text))
			s->text[s->n++] = arena_printf(s->arena, "json patch unknown field \"[%u]." STR_FMT "\"", i, STR_ARG(key));
	}
}

int json_patch_check(struct val patch, struct strict_errors *strict, struct err *err)
{
	const char *prefix = strict ? "error decoding patch: " : "";
	uint32_t i = 0;
	int r;

	if (!val_is_nil(patch) && patch.type != VAL_LIST)
		return err_set(err, ERR_BAD_REQUEST, "%sjson: cannot unmarshal %s into Go value of type %s", prefix, patch_json_type(patch),
			       strict ? "[]handlers.jsonPatchOp" : "jsonpatch.Patch");
	VAL_EACH(op, patch) {
		if (op->type != VAL_OBJECT && !val_is_nil(*op))
			return err_set(err, ERR_BAD_REQUEST, "%sjson: cannot unmarshal %s into Go value of type %s", prefix,
				       patch_json_type(*op), strict ? "handlers.jsonPatchOp" : "jsonpatch.Operation");
		if (strict) {
			if ((r = check_string(*op, "op", err)) < 0 || (r = check_string(*op, "path", err)) < 0 ||
			    (r = check_string(*op, "from", err)) < 0)
				return r;
			check_unknown(strict, i, *op);
		}
		i++;
	}
	if (i > JSON_PATCH_OPERATIONS_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "Request entity too large: The allowed maximum operations in a JSON patch is %d, got %u",
			       JSON_PATCH_OPERATIONS_MAX, i);
	return 0;
}

/* ---- pointers ---- */

/* A pointer's token with ~1 and ~0 decoded. */
static str token_decode(struct arena *a, str token)
{
	if (str_chr(token, '~') < 0)
		return token;
	char *out = arena_alloc(a, token.n, 1);
	size_t n = 0;
	for (size_t i = 0; i < token.n; i++) {
		char next = token.p[i] == '~' && i + 1 < token.n ? token.p[i + 1] : 0;
		out[n++] = next == '1' ? '/' : token.p[i];
		i += next == '0' || next == '1';
	}
	return str_span(out, n);
}

/* strconv.Atoi with its error in *ret_why. */
static bool index_parse(struct arena *a, str key, int64_t *ret, str *ret_why)
{
	str digits = key;
	bool syntax = true;

	if (key.n > 1 && key.p[0] == '+' && key.p[1] != '-')
		digits = str_skip(key, 1);
	if (str_to_i64(digits, ret))
		return true;
	for (size_t i = digits.n && digits.p[0] == '-'; i < digits.n; i++) {
		syntax = digits.p[i] < '0' || digits.p[i] > '9';
		if (syntax)
			break;
	}
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(1024);
	buf_add_quoted(&quoted, key);
	*ret_why = arena_printf(a, "strconv.Atoi: parsing " STR_FMT ": %s", STR_ARG(buf_str(&quoted)),
				syntax ? "invalid syntax" : "value out of range");
	return false;
}

static str invalid_index(struct arena *a, int64_t i)
{
	return arena_printf(a, "Unable to access invalid index: %lld: invalid index referenced", (long long)i);
}

/* An index below the length n; else false with the reason. */
static bool index_find(struct arena *a, str key, int64_t n, uint32_t *ret, str *ret_why)
{
	int64_t i;

	if (!index_parse(a, key, &i, ret_why))
		return false;
	if (i < -n || i >= n) {
		*ret_why = invalid_index(a, i);
		return false;
	}
	*ret = (uint32_t)(i < 0 ? i + n : i);
	return true;
}

/*
 * The list or object that holds what the pointer points to, and the last token; NULL when there is no such place.
 * What stands before the first "/" is ignored.
 */
static struct node *pointer_find(struct tree *t, str pointer, str *ret_key)
{
	ptrdiff_t slash = str_chr(pointer, '/');
	struct val *place = &t->root;
	str token, rest, why;

	if (slash < 0)
		return NULL;
	rest = str_skip(pointer, (size_t)slash + 1);
	for (unsigned depth = 0; depth <= VAL_RECURSION_MAX; depth++) {
		struct node *n = tree_open(t, place);
		bool last = !str_cut(rest, '/', &token, &rest);
		uint32_t i;

		*ret_key = token_decode(t->arena, token);
		if (!n || last)
			return n;
		if (!node_is_list(n))
			place = node_member(n, *ret_key);
		else
			place = index_find(t->arena, *ret_key, node_len(n), &i, &why) ? node_item(n, i) : NULL;
		if (!place)
			return NULL;
	}
	return NULL;
}

/* ---- what operations do to the list or object ---- */

/* *ret_place is NULL for a member that does not exist. */
static bool place_get(struct tree *t, struct node *n, str key, struct val **ret_place, str *ret_why)
{
	uint32_t i;

	if (!node_is_list(n)) {
		*ret_place = node_member(n, key);
		return true;
	}
	if (!index_find(t->arena, key, node_len(n), &i, ret_why))
		return false;
	*ret_place = node_item(n, i);
	return true;
}

static bool place_add(struct tree *t, struct node *n, str key, struct val v, str *ret_why)
{
	if (!node_is_list(n)) {
		node_put(t, n, key, v);
		return true;
	}
	int64_t len = node_len(n), i = len;
	str why;
	if (!str_eq(key, STR("-"))) {
		if (!index_parse(t->arena, key, &i, &why)) {
			*ret_why = arena_printf(t->arena, "value was not a proper array index: '" STR_FMT "': " STR_FMT, STR_ARG(key),
						STR_ARG(why));
			return false;
		}
		if (i > len || i < -(len + 1)) {
			*ret_why = invalid_index(t->arena, i);
			return false;
		}
		i = i < 0 ? i + len + 1 : i;
	}
	node_insert(t, n, (uint32_t)i, v);
	return true;
}

static bool place_remove(struct tree *t, struct node *n, str key, str *ret_why)
{
	uint32_t i;

	if (node_is_list(n)) {
		if (!index_find(t->arena, key, node_len(n), &i, ret_why))
			return false;
		node_drop(n, i);
		return true;
	}
	if (node_remove(n, key))
		return true;
	*ret_why = arena_printf(t->arena, "Unable to remove nonexistent key: " STR_FMT ": missing value", STR_ARG(key));
	return false;
}

/* ---- operations ---- */

struct operation {
	struct tree *tree;
	struct val op;
	size_t copy_max, *copied; /* bytes of JSON; *copied over all operations */
	struct err *err;
};

#define FAIL(o, ...) err_set((o)->err, ERR_INVALID, __VA_ARGS__)

/* Reads "path" or "from". why says what the library says when there is none. */
static bool operation_pointer(const struct operation *o, struct val v, str *ret, const char *why_missing, str *ret_why)
{
	*ret = val_as_str(v);
	if (v.type == VAL_STRING)
		return true;
	*ret_why = val_is_nil(v) ? str_of(why_missing)
				 : arena_printf(o->tree->arena, "json: cannot unmarshal %s into Go value of type string", patch_json_type(v));
	return false;
}

static bool operation_path(const struct operation *o, str *ret, str *ret_why)
{
	return operation_pointer(o, val_find(o->op, STR("path")), ret, "operation missing path field: missing value", ret_why);
}

static bool operation_from(const struct operation *o, str *ret, str *ret_why)
{
	return operation_pointer(o, val_find(o->op, STR("from")), ret, "operation, missing from field: missing value", ret_why);
}

/* The value of the operation; null when it has none. */
static struct val operation_value(const struct operation *o)
{
	struct val v = val_find(o->op, STR("value"));
	return val_exists(v) ? v : VAL_NULL_VALUE;
}

static int operation_add(const struct operation *o)
{
	str path, key, why;

	if (!operation_path(o, &path, &why))
		return FAIL(o, "add operation failed to decode path: missing value");
	struct node *n = pointer_find(o->tree, path, &key);
	if (!n)
		return FAIL(o, "add operation does not apply: doc is missing path: \"" STR_FMT "\": missing value", STR_ARG(path));
	if (!place_add(o->tree, n, key, operation_value(o), &why))
		return FAIL(o, "error in add for path: '" STR_FMT "': " STR_FMT, STR_ARG(path), STR_ARG(why));
	return 0;
}

static int operation_remove(const struct operation *o)
{
	str path, key, why;

	if (!operation_path(o, &path, &why))
		return FAIL(o, "remove operation failed to decode path: missing value");
	struct node *n = pointer_find(o->tree, path, &key);
	if (!n)
		return FAIL(o, "remove operation does not apply: doc is missing path: \"" STR_FMT "\": missing value", STR_ARG(path));
	if (!place_remove(o->tree, n, key, &why))
		return FAIL(o, "error in remove for path: '" STR_FMT "': " STR_FMT, STR_ARG(path), STR_ARG(why));
	return 0;
}

static int operation_replace(const struct operation *o)
{
	struct val v = operation_value(o), *place;
	str path, key, why;

	if (!operation_path(o, &path, &why))
		return FAIL(o, "replace operation failed to decode path: " STR_FMT, STR_ARG(why));
	if (path.n == 0) {
		if (v.type != VAL_OBJECT && v.type != VAL_LIST)
			return FAIL(o, "replace operation value must be object or array: %%!w(<nil>)");
		o->tree->root = v;
		return 0;
	}
	struct node *n = pointer_find(o->tree, path, &key);
	if (!n)
		return FAIL(o, "replace operation does not apply: doc is missing path: " STR_FMT ": missing value", STR_ARG(path));
	if (!place_get(o->tree, n, key, &place, &why))
		return FAIL(o, "replace operation does not apply: doc is missing key: " STR_FMT ": missing value", STR_ARG(path));
	if (place)
		*place = v;
	else
		node_put(o->tree, n, key, v);
	return 0;
}

static int operation_move(const struct operation *o)
{
	struct val *place, v;
	str from, path, key, why;

	if (!operation_from(o, &from, &why))
		return FAIL(o, "move operation failed to decode from: " STR_FMT, STR_ARG(why));
	struct node *n = pointer_find(o->tree, from, &key);
	if (!n)
		return FAIL(o, "move operation does not apply: doc is missing from path: " STR_FMT ": missing value", STR_ARG(from));
	if (!place_get(o->tree, n, key, &place, &why))
		return FAIL(o, "error in move for path: '" STR_FMT "': " STR_FMT, STR_ARG(key), STR_ARG(why));
	v = place ? *place : VAL_NULL_VALUE;
	if (!place_remove(o->tree, n, key, &why))
		return FAIL(o, "error in move for path: '" STR_FMT "': " STR_FMT, STR_ARG(key), STR_ARG(why));
	if (!operation_path(o, &path, &why))
		return FAIL(o, "move operation failed to decode path: " STR_FMT, STR_ARG(why));
	if (!(n = pointer_find(o->tree, path, &key)))
		return FAIL(o, "move operation does not apply: doc is missing destination path: " STR_FMT ": missing value", STR_ARG(path));
	if (!place_add(o->tree, n, key, v, &why))
		return FAIL(o, "error in move for path: '" STR_FMT "': " STR_FMT, STR_ARG(path), STR_ARG(why));
	return 0;
}

/* Counts the JSON of a copied value. */
static int copy_account(const struct operation *o, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX / 2);
	int r;

	if (!o->copy_max)
		return 0;
	if ((r = json_encode(&b, v, &(struct json_encode_options){ 0 }, o->err)) < 0)
		return r;
	*o->copied += b.n;
	if (*o->copied > o->copy_max)
		return FAIL(o, "Unable to complete the copy, the accumulated size increase of copy is %zu, exceeding the limit %zu", *o->copied,
			    o->copy_max);
	return 0;
}

static int operation_copy(const struct operation *o)
{
	struct val *place, v = VAL_NULL_VALUE;
	str from, path, key, why;
	int r;

	if (!operation_from(o, &from, &why))
		return FAIL(o, "copy operation failed to decode from: " STR_FMT, STR_ARG(why));
	struct node *n = pointer_find(o->tree, from, &key);
	if (!n)
		return FAIL(o, "copy operation does not apply: doc is missing from path: " STR_FMT ": missing value", STR_ARG(from));
	if (!place_get(o->tree, n, key, &place, &why))
		return FAIL(o, "error in copy for from: '" STR_FMT "': " STR_FMT, STR_ARG(from), STR_ARG(why));
	if (!operation_path(o, &path, &why))
		return FAIL(o, "copy operation failed to decode path: missing value");
	/* The value is taken before the destination is looked up: opening that can move it. */
	if (place && ((r = tree_value(o->tree, place, &v, o->err)) < 0))
		return r;
	bool counted = place && v.type != VAL_NULL;
	if (!(n = pointer_find(o->tree, path, &key)))
		return FAIL(o, "copy operation does not apply: doc is missing destination path: " STR_FMT ": missing value", STR_ARG(path));
	if (counted && (r = copy_account(o, v)) < 0)
		return r;
	if (!place_add(o->tree, n, key, v, &why))
		return FAIL(o, "error while adding value during copy: " STR_FMT, STR_ARG(why));
	return 0;
}

static int operation_test(const struct operation *o)
{
	struct val *place;
	str path, key, why;
	bool equal;
	int r;

	if (!operation_path(o, &path, &why))
		return FAIL(o, "test operation failed to decode path: " STR_FMT, STR_ARG(why));
	place = &o->tree->root;
	if (path.n) {
		struct node *n = pointer_find(o->tree, path, &key);
		if (!n)
			return FAIL(o, "test operation does not apply: is missing path: " STR_FMT ": missing value", STR_ARG(path));
		if (!place_get(o->tree, n, key, &place, &why))
			return FAIL(o, "error in test for path: '" STR_FMT "': " STR_FMT, STR_ARG(path), STR_ARG(why));
	}
	struct val absent = VAL_NULL_VALUE;
	if ((r = tree_equal(o->tree, place ? place : &absent, operation_value(o), &equal, o->err)) < 0)
		return r;
	return equal ? 0 : FAIL(o, "testing value " STR_FMT " failed: test failed", STR_ARG(path));
}

static const struct {
	str name;
	int (*run)(const struct operation *o);
} operations[] = {
	{ STR_INIT("add"), operation_add },   { STR_INIT("remove"), operation_remove }, { STR_INIT("replace"), operation_replace },
	{ STR_INIT("move"), operation_move }, { STR_INIT("copy"), operation_copy },     { STR_INIT("test"), operation_test },
};

static int operation_run(const struct operation *o)
{
	struct val op = val_find(o->op, STR("op"));
	str kind = op.type == VAL_STRING ? val_as_str(op) : STR("unknown");

	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		if (str_eq(kind, operations[i].name))
			return operations[i].run(o);
	return FAIL(o, "Unexpected kind: " STR_FMT, STR_ARG(kind));
}

int json_patch_apply(struct arena *a, struct val doc, struct val patch, size_t copy_max, struct val *ret, struct err *err)
{
	CLEANUP(tree_done) struct tree t;
	size_t copied = 0;
	int r = json_patch_check(patch, NULL, err);

	tree_init(&t, a, doc);
	if (r < 0)
		return r;
	if (!tree_open(&t, &t.root))
		return err_set(err, ERR_INVALID, "json: cannot unmarshal %s into Go value of type jsonpatch.partialDoc", patch_json_type(doc));
	VAL_EACH(op, patch) {
		struct operation o = { .tree = &t, .op = *op, .copy_max = copy_max, .copied = &copied, .err = err };
		if ((r = operation_run(&o)) < 0)
			return r;
	}
	return tree_value(&t, &t.root, ret, err);
}
