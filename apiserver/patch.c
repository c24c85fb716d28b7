/*
 * PATCH: the stored object, changed. Three kinds of patch describe the change; the fourth, apply, describes what the
 * client wants to be responsible for, and makes the object when there is none.
 */
#include "machinery/patch.h"

#include "apiserver/apiserver.h"
#include "apiserver/meta.h"
#include "apiserver/negotiate.h"
#include "apiserver/resets.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "machinery/apply.h"
#include "machinery/validate.h"

#define APPLY_TYPE "application/apply-patch+yaml"

/* What machinery/ says about a patch, as the API server passes it on (machinery/patch.h has the table). */
static int patch_failed(struct request *q, const struct err *err)
{
	str text = arena_str(q->arena, err_str(err));
	switch (err->code) {
	case ERR_INVALID: return request_fail(q, ERR_INVALID, VAL_EMPTY_OBJECT, PATCH_REJECTED);
	case ERR_TOO_LARGE: return request_fail(q, ERR_TOO_LARGE, VAL_EMPTY_OBJECT, STR_FMT, STR_ARG(text));
	case ERR_INTERNAL: return fail_plain(q, STR_FMT, STR_ARG(text));
	default: return fail_bad_request(q, STR_FMT, STR_ARG(text));
	}
}

/* The patched object makes no sense: 422 with the patch (or what it led to) as the value. */
static int result_invalid(struct request *q, str shown, str why)
{
	struct field_errors e;
	field_errors_init(&e, q->arena);
	field_invalid(&e, FIELD(NULL, "patch"), val_of_str(shown), STR_FMT, STR_ARG(why));
	return fail_invalid(q, STR_NONE, STR_NONE, STR_NONE, &e);
}

static struct strict_errors *collector(struct request *q)
{
	if (str_eq(q->field_validation, STR("Ignore")))
		return NULL;
	struct strict_errors *strict = ARENA_NEW(q->arena, struct strict_errors);
	strict->arena = q->arena;
	return strict;
}

/* The patch as a free tree. prefix stands before the decoder's error. */
static int decode_free(struct request *q, str json, struct strict_errors *strict, const char *prefix, struct val *ret)
{
	struct err err = ERR_INIT;
	struct json_decode_options opt = { .strict = strict, .sort_keys = true };
	int r = json_decode(q->arena, json, &opt, ret, &err);
	return r < 0 ? fail_bad_request(q, "%s" STR_FMT, strict ? prefix : "", STR_ARG(err_str(&err))) : 0;
}

/* JSON patch and JSON merge patch: on the JSON of the object, which is then decoded again. */
static int json_patch(struct request *q, struct val live, bool merge, struct val *ret)
{
	struct err err = ERR_INIT;
	struct strict_errors *strict = collector(q);
	struct val doc, patch;
	int r = decode_free(q, q->body, strict, "error decoding patch: ", &patch);
	if (r < 0)
		return r;
	r = patch_document(q->arena, live, write_type(q), &doc, &err);
	if (r == 0 && merge)
		r = strict ? merge_patch_check(patch, &err) : 0;
	else if (r == 0)
		r = json_patch_check(patch, strict, &err);
	if (r == 0)
		r = merge ? merge_patch_apply(q->arena, doc, patch, &doc, &err) :
			    json_patch_apply(q->arena, doc, patch, JSON_PATCH_COPY_MAX, &doc, &err);
	if (r < 0)
		return patch_failed(q, &err);
	CLEANUP(buf_done) struct buf text = BUF_INIT(64 << 20);
	r = json_encode(&text, doc, &(struct json_encode_options){ 0 }, &err);
	if (r < 0)
		return patch_failed(q, &err);
	str json = arena_str(q->arena, buf_str(&text)), why;
	struct object_kind kind;
	if (write_decode_text(q, json, write_type(q), strict, ret, &kind, &why) < 0 ||
	    (strict && write_strict_failed(q, strict, &why)))
		return result_invalid(q, json, why);
	return 0;
}

static int strategic_patch(struct request *q, struct val live, struct val *ret)
{
	struct err err = ERR_INIT;
	const struct type *type = write_type(q);
	struct strict_errors *strict = collector(q);
	struct val doc, patch;
	str why;
	int r = decode_free(q, q->body, strict, "", &patch);
	if (r < 0)
		return r;
	if (!val_is(patch, VAL_OBJECT) && !val_is_nil(patch)) {
		const char *what = val_is(patch, VAL_LIST) ? "array" : val_is(patch, VAL_STRING) ? "string" :
				   val_is(patch, VAL_BOOL) ? "bool" : "number";
		return fail_bad_request(q, "json: cannot unmarshal %s into Go value of type map[string]interface {}", what);
	}
	r = patch_document(q->arena, live, type, &doc, &err);
	if (r == 0)
		r = strategic_patch_apply(q->arena, doc, patch, type, &doc, &err);
	if (r < 0)
		return patch_failed(q, &err);
	r = strategic_patch_convert(q->arena, doc, type, &doc, &err);
	if (r == 0) { /* what it is does not change, whatever the patch says */
		doc = val_with(q->arena, doc, val_of_str(type->name), kind);
		doc = val_with(q->arena, doc, val_of_str(type_api_version(q->arena, type)), apiVersion);
		r = val_canonical(q->arena, doc, type, strict, ret, &err);
	}
	why = arena_str(q->arena, err_str(&err));
	if (r < 0 || (strict && write_strict_failed(q, strict, &why)))
		return result_invalid(q, patch_go_text(q->arena, patch), why);
	return 0;
}

static int apply_conflict(struct request *q, const struct apply_conflicts *c)
{
	struct val_builder causes = val_builder(q->arena);
	for (size_t i = 0; i < c->n; i++)
		val_add_item(&causes, OBJECT(q->arena, F(reason, VAL_LIT("FieldManagerConflict")),
					     F(message, val_of_str(c->v[i].message)), F(field, val_of_str(c->v[i].field))));
	return request_fail(q, ERR_CONFLICT, OBJECT(q->arena, F(causes, val_end_list(&causes))), STR_FMT, STR_ARG(c->message));
}

static int apply(struct request *q, struct val live, struct val *ret)
{
	struct err err = ERR_INIT;
	CLEANUP(buf_done) struct buf json = BUF_INIT(64 << 20);
	CLEANUP(buf_done) struct buf duplicates = BUF_INIT(1 << 20);
	struct val patch;
	int r = yaml_to_json(q->body, &json, &duplicates, &err);
	if (r < 0) {
		(void)err_wrap(&err, r, "error converting YAML to JSON");
	} else {
		struct json_decode_options opt = { .sort_keys = true };
		r = json_decode(q->arena, arena_str(q->arena, buf_str(&json)), &opt, &patch, &err);
	}
	if (r < 0)
		return fail_bad_request(q, "error decoding YAML: " STR_FMT, STR_ARG(err_str(&err)));
	struct apply_request req = apply_request_of(q, q->endpoint, write_type(q), q->field_manager);
	struct apply_conflicts conflicts;
	r = apply_patch(q->arena, &req, live, patch, q->force, ret, &conflicts, &err);
	if (r == -ERR_CONFLICT)
		return apply_conflict(q, &conflicts);
	if (r < 0)
		return patch_failed(q, &err);
	if (duplicates.n && str_eq(q->field_validation, STR("Strict")))
		return fail_bad_request(q, "error strict decoding YAML: " STR_FMT, STR_ARG(buf_str(&duplicates)));
	if (duplicates.n && str_eq(q->field_validation, STR("Warn")))
		request_warn(q, buf_str(&duplicates));
	return 0;
}

static int patched(struct request *q, str type, struct val live, struct val *ret)
{
	if (str_eq(type, STR(APPLY_TYPE)))
		return apply(q, live, ret);
	if (!q->current)
		return write_not_found(q);
	if (str_eq(type, STR("application/strategic-merge-patch+json")))
		return strategic_patch(q, live, ret);
	return json_patch(q, live, str_eq(type, STR("application/merge-patch+json")), ret);
}

static bool is_patch_type(str type)
{
	static const str types[] = { STR_INIT("application/json-patch+json"), STR_INIT("application/merge-patch+json"),
				     STR_INIT("application/strategic-merge-patch+json"), STR_INIT(APPLY_TYPE) };
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(type, types[i]))
			return true;
	return false;
}

int write_patch(struct request *q, struct err *err)
{
	str type = negotiate_content_type(q);
	bool is_apply = str_eq(type, STR(APPLY_TYPE));
	int r;
	if (q->attempt == 0) {
		if (!is_patch_type(type))
			return negotiate_fail_patch(q);
		if ((r = write_read_body(q, err)) < 0 || (r = write_options(q, STR("PatchOptions"), is_apply)) < 0 ||
		    (r = write_load(q, false, err)) < 0)
			return r;
	}
	if (!q->current && q->subresource.n)
		return write_not_found(q);
	struct val live, object;
	if ((r = write_live(q, &live, err)) < 0 || (r = patched(q, type, live, &object)) < 0)
		return r;
	str uid = val_str(object, metadata, uid);
	if (!q->current && uid.n)
		return fail_conflict(q, q->group, q->resource, q->name,
				     "uid mismatch: the provided object specified uid " STR_FMT ", and no existing object was found",
				     STR_ARG(uid));
	if ((r = meta_set_namespace(q, &object)) < 0 || (r = meta_check_name(q, object)) < 0)
		return r;
	/* A patch may name the version that it is meant for. */
	str version = val_str(object, metadata, resourceVersion);
	if (q->current && version.n && !str_eq(version, val_str(q->old, metadata, resourceVersion)))
		return fail_conflict(q, q->group, q->resource, q->name,
				     "the object has been modified; please apply your changes to the latest version and try again");
	if (q->current && !version.n)
		object = meta_put(q->arena, object, A_resourceVersion, val_get(q->old, metadata, resourceVersion));
	if ((r = default_object(q->arena, write_type(q), object, &object, err)) < 0)
		return r;
	return write_take(q, live, object, is_apply, err);
}
