/*
 * Server-side apply. The first byte says what the rest is:
 *
 * - even: two FieldsV1 texts with a NUL between them. What parses must encode to what parses to the same again, and
 *   the operations must obey the laws of sets.
 * - odd: two objects of one kind with a NUL between them, one that is there (created by an update) and one that is
 *   applied to it. The managers that come out must be readable, and the object typed. Applying the same again changes
 *   nothing, and when the applier applies nothing any more, it owns nothing; both only hold for objects without a
 *   schema, for in Kubernetes items of lists that omit their keys get lost.
 */
#include <string.h>

#include "codec/atoms.h"
#include "codec/codec.h"
#include "fuzz/fuzz.h"
#include "machinery/apply.h"
#include "machinery/managed_fields.h"

static struct field_set reread(struct arena *a, struct field_set s)
{
	struct err err = ERR_INIT;
	struct field_set again;
	struct val raw = field_set_val(a, s);

	check(json_error_offset(val_as_str(raw)) < 0, "an encoded set is JSON");
	check(field_set_parse(a, val_as_str(raw), &again, &err) == 0, "an encoded set can be read");
	return again;
}

static void sets(struct arena *a, str first, str second)
{
	struct field_set x, y;
	if (field_set_parse(a, first, &x, NULL) < 0 || field_set_parse(a, second, &y, NULL) < 0)
		return;
	struct field_set both = field_set_union(a, x, y), common = field_set_intersection(a, x, y);
	struct field_set only_x = field_set_difference(a, x, y), only_y = field_set_difference(a, y, x);

	check(field_set_equal(x, reread(a, x)), "reading what was written gives the set");
	check(field_set_equal(both, reread(a, both)), "and so it does for a union");
	check(field_set_equal(both, field_set_union(a, y, x)), "x + y = y + x");
	check(field_set_equal(field_set_union(a, only_x, common), x), "(x - y) + (x & y) = x");
	check(field_set_equal(field_set_union(a, field_set_union(a, only_x, only_y), common), both),
	      "(x - y) + (y - x) + (x & y) = x + y");
	check(field_set_size(only_x) + field_set_size(common) == field_set_size(x), "and no path is in two of them");
	check(field_set_empty(field_set_intersection(a, only_x, y)), "(x - y) & y is empty");
	struct field_set less = field_set_recursive_difference(a, x, y);
	check(field_set_empty(field_set_difference(a, less, only_x)), "a recursive difference leaves nothing more");
	check(field_set_empty(field_set_difference(a, field_set_leaves(a, x), x)), "leaves are part of the set");
}

static bool owns_anything(struct arena *a, struct val object, str manager)
{
	struct managed m;
	check(managed_decode(a, val_get(object, metadata, managedFields), &m, NULL) == 0, "managers can be read");
	return managed_find(&m, manager_id(a, manager, true, STR_NONE, STR_NONE)) != NULL;
}

/* Decodes an object; its kind decides whether it is typed. */
static int object_of(struct arena *a, str text, struct apply_request *req, struct val *ret)
{
	struct json_decode_options opt = { .sort_keys = true };
	struct val v;
	if (json_decode(a, text, &opt, &v, NULL) < 0 || v.type != VAL_OBJECT)
		return -1;
	req->api_version = val_str(v, apiVersion);
	req->kind = val_str(v, kind);
	req->type = schema_kind(req->api_version, req->kind);
	req->custom = apply_type_deduced();
	*ret = v;
	if (!req->api_version.n || !req->kind.n)
		return -1;
	if (req->type && (!type_field(req->type, A_metadata) || (req->type->flags & TYPE_LIST)))
		return -1;
	return req->type ? val_canonical(a, v, req->type, NULL, ret, NULL) : 0;
}

/* The objects are equal but for who manages them and since when. */
static bool same_content(struct arena *a, struct val x, struct val y)
{
	return val_equal(val_without(a, x, metadata, managedFields), val_without(a, y, metadata, managedFields));
}

static void objects(struct arena *a, str first, str second)
{
	struct apply_request req = { .manager = STR("applier"), .now = { 1767225600, 0 } };
	struct err err = ERR_INIT;
	struct val live, patch, once, twice, none;

	if (object_of(a, first, &req, &live) < 0)
		return;
	req.manager = STR("updater");
	if (apply_update(a, &req, VAL_EMPTY, val_without(a, live, metadata, managedFields), &live, &err) < 0)
		return;
	req.manager = STR("applier");
	if (json_decode(a, second, &(struct json_decode_options){ .sort_keys = true }, &patch, NULL) < 0)
		return;
	live = val_with(a, live, VAL_LIT("u"), metadata, uid);
	if (apply_patch(a, &req, live, patch, false, &once, NULL, &err) < 0 &&
	    apply_patch(a, &req, live, patch, true, &once, NULL, &err) < 0)
		return;
	owns_anything(a, once, req.manager);
	if (req.type) {
		check(val_canonical(a, once, req.type, NULL, &twice, &err) == 0 && val_equal(once, twice),
		      "the result is typed");
		apply_patch(a, &req, once, patch, true, &twice, NULL, &err);
		return;
	}
	check(apply_patch(a, &req, once, patch, true, &twice, NULL, &err) == 0, "what was applied can be so again");
	check(same_content(a, once, twice), "applying again changes nothing");
	none = OBJECT(a, F(apiVersion, VAL_STR(req.api_version)), F(kind, VAL_STR(req.kind)));
	check(apply_patch(a, &req, once, none, false, &twice, NULL, &err) == 0, "an applier can give up everything");
	check(!owns_anything(a, twice, req.manager), "and then owns nothing");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	str first, second;

	if (n < 2)
		return 0;
	str_cut(str_span((const char *)data + 1, n - 1), '\0', &first, &second);
	if (data[0] % 2)
		objects(&a, first, second);
	else
		sets(&a, first, second);
	arena_done(&a);
	return 0;
}
