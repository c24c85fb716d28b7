/*
 * JSON Patch as the library that Kubernetes uses applies it. Its texts reach users of kubectl and of admission webhooks;
 * the API server itself says PATCH_REJECTED. Where the library would crash (null inside a list that is tested, "replace"
 * of the whole document without a value) there is an ordinary error here.
 */
#include "machinery/json_patch_tree.h"

/* ---- the shape of a patch ---- */

/* One operation against the members that it can have. */
static int check_members(struct val operation, uint32_t i, struct strict_errors *s, struct err *err)
{
	static const str strings[] = { STR_INIT("op"), STR_INIT("path"), STR_INIT("from") };

	VAL_EACH_MEMBER(m, operation) {
		str key = atom_str(m->key);
		bool known = str_eq(key, STR("value")), string = false;
		for (size_t k = 0; k < ARRAY_LEN(strings); k++)
			string = string || str_eq(key, strings[k]);
		if (string && m->val.type != VAL_STRING && m->val.type != VAL_NULL)
			return err_set(err, ERR_BAD_REQUEST,
				       "error decoding patch: json: cannot unmarshal %s into Go struct field "
				       "jsonPatchOp." STR_FMT " of type string",
				       patch_json_type(m->val), STR_ARG(key));
		if (!known && !string && s->n < ARRAY_LEN(s->text))
			s->text[s->n++] =
				arena_printf(s->arena, "json patch unknown field \"[%u]." STR_FMT "\"", i, STR_ARG(key));
	}
	return 0;
}

int json_patch_check(struct val patch, struct strict_errors *strict, struct err *err)
{
	const char *prefix = strict ? "error decoding patch: " : "";
	uint32_t i = 0;
	int r;

	for (size_t k = 0; strict && k < strict->n; k++)
		strict->text[k] = arena_join(strict->arena, STR("json patch "), strict->text[k]);
	if (!val_is_nil(patch) && patch.type != VAL_LIST)
		return err_set(err, ERR_BAD_REQUEST, "%sjson: cannot unmarshal %s into Go value of type %s", prefix,
			       patch_json_type(patch), strict ? "[]handlers.jsonPatchOp" : "jsonpatch.Patch");
	VAL_EACH(op, patch) {
		if (op->type != VAL_OBJECT && !val_is_nil(*op))
			return err_set(err, ERR_BAD_REQUEST, "%sjson: cannot unmarshal %s into Go value of type %s",
				       prefix, patch_json_type(*op),
				       strict ? "handlers.jsonPatchOp" : "jsonpatch.Operation");
		if (strict && (r = check_members(*op, i, strict, err)) < 0)
			return r;
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
static struct patch_node *pointer_find(struct patch_tree *t, str pointer, str *ret_key)
{
	ptrdiff_t slash = str_chr(pointer, '/');
	struct val *place = &t->root;
	str token, rest, why;

	if (slash < 0)
		return NULL;
	rest = str_skip(pointer, (size_t)slash + 1);
	for (unsigned depth = 0; depth <= VAL_RECURSION_MAX; depth++) {
		struct patch_node *n = patch_tree_open(t, place);
		bool last = !str_cut(rest, '/', &token, &rest);
		uint32_t i;

		*ret_key = token_decode(t->arena, token);
		if (!n || last)
			return n;
		if (!patch_node_is_list(n))
			place = patch_node_member(n, *ret_key);
		else
			place = index_find(t->arena, *ret_key, patch_node_len(n), &i, &why) ? patch_node_item(n, i)
											    : NULL;
		if (!place)
			return NULL;
	}
	return NULL;
}

/* ---- what operations do to the list or object ---- */

/* *ret_place is NULL for a member that does not exist. */
static bool place_get(struct patch_tree *t, struct patch_node *n, str key, struct val **ret_place, str *ret_why)
{
	uint32_t i;

	if (!patch_node_is_list(n)) {
		*ret_place = patch_node_member(n, key);
		return true;
	}
	if (!index_find(t->arena, key, patch_node_len(n), &i, ret_why))
		return false;
	*ret_place = patch_node_item(n, i);
	return true;
}

static bool place_add(struct patch_tree *t, struct patch_node *n, str key, struct val v, str *ret_why)
{
	if (!patch_node_is_list(n)) {
		patch_node_put(t, n, key, v);
		return true;
	}
	int64_t len = patch_node_len(n), i = len;
	str why;
	if (!str_eq(key, STR("-"))) {
		if (!index_parse(t->arena, key, &i, &why)) {
			*ret_why = arena_printf(t->arena, "value was not a proper array index: '" STR_FMT "': " STR_FMT,
						STR_ARG(key), STR_ARG(why));
			return false;
		}
		if (i > len || i < -(len + 1)) {
			*ret_why = invalid_index(t->arena, i);
			return false;
		}
		i = i < 0 ? i + len + 1 : i;
	}
	patch_node_insert(t, n, (uint32_t)i, v);
	return true;
}

static bool place_remove(struct patch_tree *t, struct patch_node *n, str key, str *ret_why)
{
	uint32_t i;

	if (patch_node_is_list(n)) {
		if (!index_find(t->arena, key, patch_node_len(n), &i, ret_why))
			return false;
		patch_node_drop(n, i);
		return true;
	}
	if (patch_node_remove(n, key))
		return true;
	*ret_why = arena_printf(t->arena, "Unable to remove nonexistent key: " STR_FMT ": missing value", STR_ARG(key));
	return false;
}

/* ---- operations ---- */

struct operation {
	struct patch_tree *tree;
	struct val op;
	size_t copy_max, *copied; /* bytes of JSON; *copied over all operations */
	struct err *err;
};

#define FAIL(o, ...) err_set((o)->err, ERR_INVALID, __VA_ARGS__)

/* what: "add operation does not apply: doc is missing path". */
static int missing(const struct operation *o, const char *what, str pointer)
{
	return FAIL(o, "%s: " STR_FMT ": missing value", what, STR_ARG(pointer));
}

/* what: "error in add for path". */
static int failed(const struct operation *o, const char *what, str pointer, str why)
{
	return FAIL(o, "%s: '" STR_FMT "': " STR_FMT, what, STR_ARG(pointer), STR_ARG(why));
}

/* Reads "path" or "from". why says what the library says when there is none. */
static bool operation_pointer(const struct operation *o, struct val v, str *ret, const char *why_missing, str *ret_why)
{
	*ret = val_as_str(v);
	if (v.type == VAL_STRING)
		return true;
	*ret_why = str_of(why_missing);
	if (!val_is_nil(v))
		*ret_why = arena_printf(o->tree->arena, "json: cannot unmarshal %s into Go value of type string",
					patch_json_type(v));
	return false;
}

static bool operation_path(const struct operation *o, str *ret, str *ret_why)
{
	return operation_pointer(o, val_find(o->op, STR("path")), ret, "operation missing path field: missing value",
				 ret_why);
}

static bool operation_from(const struct operation *o, str *ret, str *ret_why)
{
	return operation_pointer(o, val_find(o->op, STR("from")), ret, "operation, missing from field: missing value",
				 ret_why);
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
	struct patch_node *n = pointer_find(o->tree, path, &key);
	if (!n)
		return FAIL(o, "add operation does not apply: doc is missing path: \"" STR_FMT "\": missing value",
			    STR_ARG(path));
	if (!place_add(o->tree, n, key, operation_value(o), &why))
		return failed(o, "error in add for path", path, why);
	return 0;
}

static int operation_remove(const struct operation *o)
{
	str path, key, why;

	if (!operation_path(o, &path, &why))
		return FAIL(o, "remove operation failed to decode path: missing value");
	struct patch_node *n = pointer_find(o->tree, path, &key);
	if (!n)
		return FAIL(o, "remove operation does not apply: doc is missing path: \"" STR_FMT "\": missing value",
			    STR_ARG(path));
	if (!place_remove(o->tree, n, key, &why))
		return failed(o, "error in remove for path", path, why);
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
	struct patch_node *n = pointer_find(o->tree, path, &key);
	if (!n)
		return missing(o, "replace operation does not apply: doc is missing path", path);
	if (!place_get(o->tree, n, key, &place, &why))
		return missing(o, "replace operation does not apply: doc is missing key", path);
	if (place)
		*place = v;
	else
		patch_node_put(o->tree, n, key, v);
	return 0;
}

static int operation_move(const struct operation *o)
{
	struct val *place, v;
	str from, path, key, why;

	if (!operation_from(o, &from, &why))
		return FAIL(o, "move operation failed to decode from: " STR_FMT, STR_ARG(why));
	struct patch_node *n = pointer_find(o->tree, from, &key);
	if (!n)
		return missing(o, "move operation does not apply: doc is missing from path", from);
	if (!place_get(o->tree, n, key, &place, &why))
		return failed(o, "error in move for path", key, why);
	v = place ? *place : VAL_NULL_VALUE;
	if (!place_remove(o->tree, n, key, &why))
		return failed(o, "error in move for path", key, why);
	if (!operation_path(o, &path, &why))
		return FAIL(o, "move operation failed to decode path: " STR_FMT, STR_ARG(why));
	if (!(n = pointer_find(o->tree, path, &key)))
		return missing(o, "move operation does not apply: doc is missing destination path", path);
	if (!place_add(o->tree, n, key, v, &why))
		return failed(o, "error in move for path", path, why);
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
		return FAIL(o,
			    "Unable to complete the copy, the accumulated size increase of copy is %zu, "
			    "exceeding the limit %zu",
			    *o->copied, o->copy_max);
	return 0;
}

static int operation_copy(const struct operation *o)
{
	struct val *place, v = VAL_NULL_VALUE;
	str from, path, key, why;
	int r;

	if (!operation_from(o, &from, &why))
		return FAIL(o, "copy operation failed to decode from: " STR_FMT, STR_ARG(why));
	struct patch_node *n = pointer_find(o->tree, from, &key);
	if (!n)
		return missing(o, "copy operation does not apply: doc is missing from path", from);
	if (!place_get(o->tree, n, key, &place, &why))
		return failed(o, "error in copy for from", from, why);
	if (!operation_path(o, &path, &why))
		return FAIL(o, "copy operation failed to decode path: missing value");
	/* The value is taken before the destination is looked up: opening that can move it. */
	if (place && ((r = patch_tree_value(o->tree, place, &v, o->err)) < 0))
		return r;
	bool counted = place && v.type != VAL_NULL;
	if (!(n = pointer_find(o->tree, path, &key)))
		return missing(o, "copy operation does not apply: doc is missing destination path", path);
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
		struct patch_node *n = pointer_find(o->tree, path, &key);
		if (!n)
			return missing(o, "test operation does not apply: is missing path", path);
		if (!place_get(o->tree, n, key, &place, &why))
			return failed(o, "error in test for path", path, why);
	}
	struct val absent = VAL_NULL_VALUE;
	if ((r = patch_tree_equal(o->tree, place ? place : &absent, operation_value(o), &equal, o->err)) < 0)
		return r;
	return equal ? 0 : FAIL(o, "testing value " STR_FMT " failed: test failed", STR_ARG(path));
}

static const struct {
	str name;
	int (*run)(const struct operation *o);
} operations[] = {
	{ STR_INIT("add"), operation_add },	    { STR_INIT("remove"), operation_remove },
	{ STR_INIT("replace"), operation_replace }, { STR_INIT("move"), operation_move },
	{ STR_INIT("copy"), operation_copy },	    { STR_INIT("test"), operation_test },
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
	CLEANUP(patch_tree_done) struct patch_tree t;
	size_t copied = 0;
	int r = json_patch_check(patch, NULL, err);

	patch_tree_init(&t, a, doc);
	if (r < 0)
		return r;
	if (!patch_tree_open(&t, &t.root))
		return err_set(err, ERR_INVALID, "json: cannot unmarshal %s into Go value of type jsonpatch.partialDoc",
			       patch_json_type(doc));
	VAL_EACH(op, patch) {
		struct operation o = { .tree = &t, .op = *op, .copy_max = copy_max, .copied = &copied, .err = err };
		if ((r = operation_run(&o)) < 0)
			return r;
	}
	return patch_tree_value(&t, &t.root, ret, err);
}
