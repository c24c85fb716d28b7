/*
 * STAGE_DECODE: what they say, with defaults. First the request finds its endpoint; then what it sends is decoded and
 * becomes the object that shall be stored: for a create the body, for an update the body in place of the stored one, for
 * a patch the stored one changed. All of it depends on what is stored now, so after a conflict it is done again.
 */
#include <stdarg.h>

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/local.h"
#include "apiserver/meta.h"
#include "apiserver/negotiate.h"
#include "apiserver/pipeline.h"
#include "apiserver/resets.h"
#include "apiserver/route.h"
#include "apiserver/stored.h"
#include "apiserver/strategy.h"
#include "apiserver/subresource.h"
#include "apiserver/write.h"
#include "base/encoding.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "machinery/apply.h"
#include "machinery/convert.h"
#include "machinery/validate.h"

int fail_plain(struct request *q, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(q->arena, fmt, ap);
	va_end(ap);
	return request_fail_as(q, ERR_INTERNAL, 500, STR_NONE, VAL_EMPTY, STR_FMT, STR_ARG(text));
}

int write_not_found(struct request *q)
{
	return fail_not_found(q, q->group, q->resource, q->name);
}

/* ---- the body ---- */

int write_read_body(struct request *q, struct err *err)
{
	size_t max = (size_t)q->server->options.max_body_bytes;
	int r = q->local ? local_read_body(q, max, err) : http_read_all(q->http, max, &q->body, err);
	if (r == -ERR_TOO_LARGE)
		return request_fail(q, ERR_TOO_LARGE, VAL_EMPTY_OBJECT, "Request entity too large: limit is %zu", max);
	return r;
}

bool write_strict_failed(struct request *q, const struct strict_errors *strict, str *ret_why)
{
	if (!strict->n)
		return false;
	if (!str_eq(q->field_validation, STR("Strict"))) {
		for (size_t i = 0; i < strict->n; i++)
			request_warn(q, strict->text[i]);
		return false;
	}
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	buf_add(&b, STR("strict decoding error: "));
	for (size_t i = 0; i < strict->n; i++) {
		if (i)
			buf_add(&b, STR(", "));
		buf_add(&b, strict->text[i]);
	}
	*ret_why = arena_str(q->arena, buf_str(&b));
	return true;
}

/* Why an object of one type cannot be had as one of another. */
static str wrong_type(struct request *q, const struct type *type, const struct type *expected, const struct object_kind *k)
{
	if (!type)
		return arena_printf(q->arena, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT
				    "\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"", STR_ARG(k->kind),
				    STR_ARG(k->api_version));
	str internal, version;
	str_cut(expected->package->name, '/', &internal, &version);
	return arena_printf(q->arena, "converting (" STR_FMT "." STR_FMT ") to (" STR_FMT "." STR_FMT "): unknown conversion",
			    STR_ARG(type->package->version), STR_ARG(type->name), STR_ARG(internal), STR_ARG(expected->name));
}

static bool same_kind(const struct type *a, const struct type *b)
{
	return a && str_eq(a->name, b->name) && str_eq(a->package->group, b->package->group);
}

int write_decode_text(struct request *q, str json, const struct type *expected, struct strict_errors *strict, struct val *ret,
		      struct object_kind *ret_kind, str *ret_why)
{
	struct err err = ERR_INIT;
	const struct type *type = NULL;
	int r = json_decode_expected(q->arena, json, expected, strict, ret, &type, ret_kind, &err);
	if (r < 0) {
		*ret_why = arena_str(q->arena, err_str(&err));
		return r;
	}
	if (!same_kind(type, expected)) {
		*ret_why = wrong_type(q, type, expected, ret_kind);
		return -ERR_BAD_REQUEST;
	}
	return 0;
}

/* As much of a body as an error message shows. */
static str summary(struct request *q, str body)
{
	enum { SHOWN = 30 };
	str head = str_head(body, SHOWN);
	if (!body.n)
		return STR("<empty>");
	if (body.p[0] != '{') {
		char *hex = arena_alloc(q->arena, 2 * SHOWN, 1);
		head = str_span(hex, hex_encode(hex, head));
	}
	return body.n > SHOWN ? arena_join(q->arena, head, STR(" ...")) : head;
}

static int cannot_decode(struct request *q, const struct type *expected, const struct object_kind *kind, str why)
{
	if (!kind->kind.n) {
		str shown = summary(q, q->body);
		return fail_bad_request(q,
					"the object provided is unrecognized (must be of type " STR_FMT "): " STR_FMT " (" STR_FMT ")",
					STR_ARG(expected->name), STR_ARG(why), STR_ARG(shown));
	}
	str group, version = kind->api_version;
	if (str_chr(version, '/') >= 0)
		str_cut(kind->api_version, '/', &group, &version);
	return fail_bad_request(q, STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT ": " STR_FMT,
				STR_ARG(kind->kind), STR_ARG(version), STR_ARG(expected->name), STR_ARG(why));
}

static int decode_proto(struct request *q, const struct type *expected, struct val *ret, struct object_kind *kind, str *ret_why)
{
	struct err err = ERR_INIT;
	const struct type *type = NULL;
	int r = proto_decode_object(q->arena, q->body, ret, &type, &err);
	*ret_why = arena_str(q->arena, err_str(&err));
	if (r < 0)
		return r;
	*kind = (struct object_kind){ val_str(*ret, apiVersion), val_str(*ret, kind) };
	if (same_kind(type, expected))
		return 0;
	*ret_why = wrong_type(q, type, expected, kind);
	return -ERR_BAD_REQUEST;
}

/* A tree of this process. */
static int take_local(struct request *q, const struct type *expected, struct strict_errors *strict, struct val *ret,
		      struct object_kind *kind, str *ret_why)
{
	struct err err = ERR_INIT;
	struct val sent = q->local->body;
	*kind = (struct object_kind){ val_str(sent, apiVersion), val_str(sent, kind) };
	if (!same_kind(q->local->body_type, expected)) {
		*ret_why = wrong_type(q, q->local->body_type, expected, kind);
		return -ERR_BAD_REQUEST;
	}
	int r = val_canonical(q->arena, sent, expected, strict, ret, &err);
	*ret_why = arena_str(q->arena, err_str(&err));
	return r;
}

/* The body of a YAML request as JSON in the arena; duplicate keys go to strict. */
static int yaml_body(struct request *q, struct strict_errors *strict, str *ret_json, str *ret_why)
{
	size_t max = 16 * (size_t)q->server->options.max_body_bytes;
	CLEANUP(buf_done) struct buf json = BUF_INIT(max);
	CLEANUP(buf_done) struct buf duplicates = BUF_INIT(max);
	struct err err = ERR_INIT;
	int r = yaml_to_json(q->body, &json, &duplicates, &err);
	*ret_why = arena_str(q->arena, err_str(&err));
	*ret_json = arena_str(q->arena, buf_str(&json));
	if (r == 0 && strict && duplicates.n)
		strict->text[strict->n++] = arena_str(q->arena, buf_str(&duplicates));
	return r;
}

int write_decode_body(struct request *q, const struct type *expected, struct val *ret, struct err *err)
{
	enum media media;
	int r = negotiate_body(q, &media, err);
	if (r < 0)
		return r;
	struct strict_errors *strict = NULL;
	if (!str_eq(q->field_validation, STR("Ignore"))) {
		strict = ARENA_NEW(q->arena, struct strict_errors);
		strict->arena = q->arena;
	}
	struct object_kind kind = { STR_NONE, STR_NONE };
	str why, json = q->body;
	if (q->local && q->local->body_type) {
		r = take_local(q, expected, strict, ret, &kind, &why);
	} else if (media == MEDIA_PROTO) {
		r = decode_proto(q, expected, ret, &kind, &why);
	} else {
		r = media == MEDIA_YAML ? yaml_body(q, strict, &json, &why) : 0;
		if (r == 0)
			r = write_decode_text(q, json, expected, strict, ret, &kind, &why);
	}
	if (r < 0 || (strict && write_strict_failed(q, strict, &why)))
		return cannot_decode(q, expected, &kind, why);
	if (!str_eq(kind.api_version, type_api_version(q->arena, expected))) {
		str want = type_api_version(q->arena, expected);
		return fail_bad_request(q,
					"the API version in the data (" STR_FMT ") does not match the expected API version (" STR_FMT ")",
					STR_ARG(kind.api_version), STR_ARG(want));
	}
	return default_object(q->arena, expected, *ret, ret, err);
}

/* ---- what is stored ---- */

int write_load(struct request *q, bool fresh, struct err *err)
{
	str key;
	int r = meta_key_of(q, &key);
	if (r < 0)
		return r;
	object_unref(TAKE(q->current));
	r = stored_get(q, q->endpoint->kind, key, fresh, &q->current, err);
	q->old = q->current ? q->current->val : VAL_EMPTY;
	return r;
}

const struct type *write_type(const struct request *q)
{
	const struct subresource_view *view = subresource_view(q);
	return view ? view->type : q->endpoint->type;
}

int write_live(struct request *q, struct val *ret, struct err *err)
{
	const struct subresource_view *view = subresource_view(q);
	*ret = VAL_EMPTY;
	int r = q->current ? convert_object(q->arena, q->old, q->endpoint->kind->hub, q->endpoint->type, ret, err) : 0;
	return r == 0 && view && q->current ? view->show(q, *ret, true, ret, err) : r;
}

/* The stored object with what was written to its view, in the endpoint's version. */
static int take_view(struct request *q, const struct subresource_view *view, struct val shown, struct val *ret, struct err *err)
{
	struct val stored;
	int r = convert_object(q->arena, q->old, q->endpoint->kind->hub, q->endpoint->type, &stored, err);
	return r < 0 ? r : view->take(q, stored, shown, ret, err);
}

/*
 * A DaemonSet's templateGeneration is an annotation in this version of the API, and always there: whoever makes one owns it.
 */
static struct val with_template_generation(struct request *q, struct val object)
{
	static const str name = STR_INIT("deprecated.daemonset.template.generation");
	struct val annotations = val_get(object, metadata, annotations);
	if (!str_eq(q->resource, STR("daemonsets")) || val_exists(val_find(annotations, name)))
		return object;
	annotations = val_sorted(q->arena, val_put(q->arena, annotations, atom_make(q->arena, name), VAL_LIT("0")));
	return meta_put(q->arena, object, A_annotations, annotations);
}

struct val write_managed(struct request *q, const struct type *type, struct val live, struct val object)
{
	struct apply_request req = apply_request_of(q, q->endpoint, type, request_manager(q));
	struct err ignored = ERR_INIT;
	struct val with;
	if (apply_update(q->arena, &req, live, object, &with, &ignored) == 0)
		return with;
	log_warn("managedFields could not be computed", KV("path", q->path), KV("error", &ignored));
	return meta_put(q->arena, object, A_managedFields, VAL_EMPTY);
}

int write_take(struct request *q, struct val live, struct val object, bool managed, struct err *err)
{
	if (!managed)
		object = write_managed(q, write_type(q), live, with_template_generation(q, object));
	q->type = q->endpoint->kind->hub;
	const struct subresource_view *view = subresource_view(q);
	int r = view ? take_view(q, view, object, &object, err) : 0;
	return r < 0 ? r : convert_object(q->arena, object, q->endpoint->type, q->type, &q->object, err);
}

/* ---- the verbs ---- */

static int decode_create(struct request *q, struct err *err)
{
	int r;
	if (q->attempt == 0) {
		if ((r = write_read_body(q, err)) < 0 || (r = write_options(q, STR("CreateOptions"), false)) < 0 ||
		    (r = write_decode_body(q, q->endpoint->type, &q->sent, err)) < 0)
			return r;
		q->sent = meta_wipe(q->arena, q->sent);
		if ((r = meta_set_namespace(q, &q->sent)) < 0)
			return r;
		q->sent = meta_dedup_owners(q, q->sent, false);
	}
	return write_take(q, VAL_EMPTY, q->sent, false, err);
}

/*
 * An update that names a uid is meant for that object only: 409 as the storage of Kubernetes words it, also when there is none
 * any more.
 */
static int check_uid(struct request *q, struct val object)
{
	const struct kind *kind = q->endpoint->kind;
	str uid = val_str(object, metadata, uid), record = val_str(q->old, metadata, uid);
	if (!uid.n || str_eq(uid, record))
		return 0;
	str key = cache_store_key(q->arena, kind, meta_key(q->arena, kind, q->namespace, q->name));
	return fail_conflict(q, q->group, q->resource, q->name,
			     "StorageError: invalid object, Code: 4, Key: " STR_FMT ", ResourceVersion: 0, AdditionalErrorMsg: "
			     "Precondition failed: UID in precondition: " STR_FMT ", UID in object meta: " STR_FMT,
			     STR_ARG(key), STR_ARG(uid), STR_ARG(record));
}

/*
 * The version that the client wants to replace must be the one that is stored; kinds that allow it take the newest when
 * none is named.
 */
static int check_version(struct request *q, struct val *object)
{
	str text = val_str(*object, metadata, resourceVersion);
	int64_t version = 0;
	if (text.n && (!str_to_i64(text, &version) || version < 0))
		return fail_plain(q, "strconv.ParseUint: parsing \"" STR_FMT "\": invalid syntax", STR_ARG(text));
	if (version == q->current->revision)
		return 0;
	if (version == 0 && (strategy_of(q->endpoint->kind) & STRATEGY_VERSION_REQUIRED)) {
		struct field_errors e;
		field_errors_init(&e, q->arena);
		field_invalid(&e, FIELD(FIELD(NULL, "metadata"), "resourceVersion"), val_of_int(0),
			      "must be specified for an update");
		return fail_invalid(q, q->group, q->resource, q->name, &e);
	}
	if (version == 0) {
		*object = meta_put(q->arena, *object, A_resourceVersion, val_get(q->old, metadata, resourceVersion));
		return 0;
	}
	return fail_conflict(q, q->group, q->resource, q->name,
			     "the object has been modified; please apply your changes to the latest version and try again");
}

static int decode_update(struct request *q, struct err *err)
{
	int r;
	if (q->attempt == 0) {
		if ((r = write_read_body(q, err)) < 0 || (r = write_options(q, STR("UpdateOptions"), false)) < 0 ||
		    (r = write_decode_body(q, write_type(q), &q->sent, err)) < 0 ||
		    (r = meta_set_namespace(q, &q->sent)) < 0 || (r = meta_check_name(q, q->sent)) < 0 ||
		    (r = write_load(q, false, err)) < 0)
			return r;
		q->sent = meta_dedup_owners(q, q->sent, false);
	}
	struct val object = q->sent, live;
	if ((r = check_uid(q, object)) < 0)
		return r;
	if (!q->current && (q->subresource.n || !(strategy_of(q->endpoint->kind) & STRATEGY_CREATE_ON_UPDATE)))
		return write_not_found(q);
	if ((r = q->current ? check_version(q, &object) : 0) < 0 || (r = write_live(q, &live, err)) < 0)
		return r;
	return write_take(q, live, object, false, err);
}

static int decode_stored(struct request *q, struct err *err)
{
	switch (q->verb) {
	case REQUEST_CREATE: return decode_create(q, err);
	case REQUEST_UPDATE: return decode_update(q, err);
	case REQUEST_PATCH: return write_patch(q, err);
	case REQUEST_DELETE:
	case REQUEST_DELETE_COLLECTION: return write_delete_options(q, err);
	default: return 0;
	}
}

int stage_decode(struct request *q, struct err *err)
{
	int r;
	if (!q->is_resource)
		return STAGE_NEXT;
	if (q->attempt == 0 && ((r = route(q)) < 0 || (r = negotiate_accept(q, err)) < 0))
		return r;
	if (q->endpoint->kind && !subresource_find(q))
		r = decode_stored(q, err);
	else
		r = 0; /* it does everything by itself, in STAGE_STORE */
	return r < 0 ? r : STAGE_NEXT;
}
