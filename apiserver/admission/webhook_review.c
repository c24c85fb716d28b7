#include "apiserver/admission/webhook_review.h"

#include "apiserver/subresource.h"
#include "base/encoding.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/convert.h"

/* ---- the request ---- */

static void find_equivalents(struct hook_request *h)
{
	const struct endpoint *own = h->q->endpoint;
	const struct kinds *kinds = &h->q->server->kinds;
	enum { VERSIONS_MAX = 16 };
	if (!own->kind)
		return;
	h->equivalents = ARENA_ARRAY(h->q->arena, const struct endpoint *, VERSIONS_MAX);
	for (size_t i = 0; i < kinds->n_endpoints && h->n_equivalents < VERSIONS_MAX; i++) {
		const struct endpoint *e = &kinds->endpoints[i];
		if (e->kind == own->kind && e != own && str_eq(e->subresource, own->subresource))
			h->equivalents[h->n_equivalents++] = e;
	}
}

struct hook_request hook_request_of(struct request *q)
{
	struct hook_request h = { .q = q, .name = q->name };
	bool namespaces = !q->group.n && str_eq(q->resource, STR("namespaces"));
	h.target = (struct hook_target){
		.operation = admission_operation(q), .group = q->group, .version = q->version, .resource = q->resource,
		.subresource = q->subresource, .namespace = q->namespace,
	};
	if (!h.name.n)
		h.name = val_str(q->object, metadata, name);
	if (namespaces && !q->namespace.n)
		h.target.namespace = h.name;
	find_equivalents(&h);
	h.stored = q->endpoint->kind && (!q->type || q->type == q->endpoint->kind->hub);
	return h;
}

const struct type *hook_type(const struct hook_request *h, const struct endpoint *e)
{
	const struct subresource_view *view = h->stored ? subresource_view(h->q) : NULL;
	return !h->stored ? h->q->type : view ? view->type : e->type;
}

/* An object of the hub version in that of an endpoint, or what the endpoint shows of it. */
static int show(const struct hook_request *h, const struct endpoint *e, struct val object, struct val *ret, struct err *err)
{
	struct request *q = h->q;
	const struct type *hub = h->stored ? q->endpoint->kind->hub : q->type;
	*ret = VAL_EMPTY;
	if (!val_exists(object))
		return 0;
	/* plugins put things in without regard to the order of the schema */
	int r = val_canonical(q->arena, object, hub, NULL, ret, err);
	if (r < 0 || !h->stored)
		return r;
	r = convert_object(q->arena, *ret, hub, e->type, ret, err);
	const struct subresource_view *view = subresource_view(q);
	return r == 0 && view ? view->show(q, *ret, true, ret, err) : r;
}

/* JSON of what is in a review as it is; null for nothing. */
static int raw(struct arena *a, struct val v, const struct type *type, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(HOOK_REVIEW_MAX);
	str text = STR("null");
	if (val_exists(v)) {
		int r = json_encode(&b, v, &(struct json_encode_options){ .type = type }, err);
		if (r < 0)
			return r;
		text = arena_str(a, buf_str(&b));
	}
	*ret = (struct val){ .type = VAL_RAW, .n = (uint32_t)text.n, .s = text.p };
	return 0;
}

int hook_version_of(const struct hook_request *h, const struct endpoint *e, struct hook_version *ret, struct err *err)
{
	*ret = (struct hook_version){ .endpoint = e, .type = hook_type(h, e) };
	struct arena *a = h->q->arena;
	int r;
	if ((r = show(h, e, h->q->object, &ret->object, err)) < 0 || (r = show(h, e, h->q->old, &ret->old, err)) < 0 ||
	    (r = raw(a, ret->object, ret->type, &ret->object_json, err)) < 0)
		return r;
	return raw(a, ret->old, ret->type, &ret->old_json, err);
}

int hook_version_take(const struct hook_request *h, const struct hook_version *v, struct val object, const struct type *type,
		      struct err *err)
{
	struct request *q = h->q;
	const struct endpoint *e = v->endpoint;
	if (!h->stored) {
		q->object = object;
		return 0;
	}
	const struct type *hub = q->endpoint->kind->hub;
	const struct subresource_view *view = subresource_view(q);
	if (view) {
		struct val stored;
		int r = convert_object(q->arena, q->object, hub, e->type, &stored, err);
		if (r == 0)
			r = view->take(q, stored, object, &object, err);
		if (r < 0)
			return r;
		type = e->type;
	}
	return convert_object(q->arena, object, type, hub, &q->object, err);
}

/* ---- the question ---- */

static struct val text_of(str s) { return s.n ? val_of_str(s) : VAL_EMPTY; }

static struct val kind_of(struct arena *a, const struct type *t)
{
	return OBJECT(a, F(group, text_of(t->package->group)), F(version, text_of(t->package->version)), F(kind, text_of(t->name)));
}

static struct val resource_of(struct arena *a, str group, str version, str resource)
{
	return OBJECT(a, F(group, text_of(group)), F(version, text_of(version)), F(resource, text_of(resource)));
}

static struct val user_of(struct request *q)
{
	struct val_builder groups = val_builder(q->arena);
	for (size_t i = 0; i < q->user.n_groups; i++)
		val_add_item(&groups, val_of_str(q->user.groups[i]));
	return OBJECT(q->arena, F(username, text_of(q->user.name)), F(uid, text_of(q->user.uid)),
		      F(groups, groups.n ? val_end_list(&groups) : VAL_EMPTY),
		      F(extra, val_len(q->user.extra) ? q->user.extra : VAL_EMPTY));
}

/* CreateOptions, UpdateOptions or DeleteOptions; streams have none. */
static int options_of(const struct hook_request *h, struct val *ret, struct err *err)
{
	struct request *q = h->q;
	enum admission_operation op = h->target.operation;
	struct val version = VAL_LIT("meta.k8s.io/v1");
	if (op == ADMISSION_CONNECT)
		return raw(q->arena, VAL_EMPTY, NULL, ret, err);
	if (op == ADMISSION_DELETE) {
		struct val o = val_put(q->arena, q->delete_options, A_kind, VAL_LIT("DeleteOptions"));
		o = val_put(q->arena, o, A_apiVersion, version);
		int r = val_canonical(q->arena, o, TYPE(meta_v1, DeleteOptions), NULL, &o, err);
		return r < 0 ? r : raw(q->arena, o, TYPE(meta_v1, DeleteOptions), ret, err);
	}
	struct val dry = q->dry_run ? LIST(q->arena, VAL_LIT("All")) : VAL_EMPTY;
	struct val o = OBJECT(q->arena, F(kind, op == ADMISSION_CREATE ? VAL_LIT("CreateOptions") : VAL_LIT("UpdateOptions")),
			      F(apiVersion, version), F(dryRun, dry), F(fieldManager, text_of(q->field_manager)),
			      F(fieldValidation, text_of(request_query(q, STR("fieldValidation")))));
	return raw(q->arena, o, NULL, ret, err);
}

int hook_review(const struct hook_request *h, const struct hook_version *v, const struct type *review, str uid, struct buf *ret,
		struct err *err)
{
	struct request *q = h->q;
	struct arena *a = q->arena;
	struct val options;
	int r = options_of(h, &options, err);
	if (r < 0)
		return r;
	const struct resource *as = v->endpoint->main->resource;
	struct val request = OBJECT(
		a, F(uid, val_of_str(uid)), F(kind, kind_of(a, v->type)),
		F(resource, resource_of(a, as->group, as->version, as->name)),
		F(subResource, text_of(q->subresource)), F(requestKind, kind_of(a, hook_type(h, q->endpoint))),
		F(requestResource, resource_of(a, q->group, q->version, q->resource)),
		F(requestSubResource, text_of(q->subresource)),
		F(name, text_of(h->name)), F(namespace, text_of(h->target.namespace)),
		F(operation, val_of_str(hook_operation_text(h->target.operation))), F(userInfo, user_of(q)),
		F(object, v->object_json), F(oldObject, v->old_json), F(dryRun, val_of_bool(q->dry_run)), F(options, options));
	struct val all = OBJECT(a, F(kind, VAL_LIT("AdmissionReview")), F(apiVersion, val_of_str(type_api_version(a, review))),
				F(request, request));
	r = json_encode(ret, all, &(struct json_encode_options){ .type = review }, err);
	buf_addc(ret, '\n');
	return r < 0 ? r : buf_check(ret, "the review", err);
}

/* ---- the answer ---- */

/* As Kubernetes' client, which knows reviews of both versions and Status. */
int hook_response_decode(struct arena *a, str body, const struct type *review, struct val *ret, struct err *err)
{
	const struct type *type = NULL;
	struct object_kind kind;
	int r = json_decode_expected(a, body, review, NULL, ret, &type, &kind, err);
	if (r < 0)
		return r;
	if (type == review) /* once more, as it says that it is: what it leaves out was taken from what is expected */
		return json_decode(a, body, &(struct json_decode_options){ .type = review }, ret, err);
	if (type == TYPE(meta_v1, Status) && !str_eq(val_str(*ret, status), STR("Success")))
		return err_set(err, ERR_BAD_REQUEST, STR_FMT, STR_ARG(val_str(*ret, message)));
	if (type == TYPE(admission_v1, AdmissionReview) || type == TYPE(admission_v1beta1, AdmissionReview))
		return err_set(err, ERR_BAD_REQUEST, "converting (" STR_FMT ".AdmissionReview) to (" STR_FMT
			       ".AdmissionReview): unknown conversion", STR_ARG(type->package->version), STR_ARG(review->package->version));
	return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT
		       "\" in scheme \"pkg/util/webhook/client.go:71\"", STR_ARG(kind.kind), STR_ARG(kind.api_version));
}

static int check_patch(str patch, struct val patch_type, bool mutating, struct err *err)
{
	bool typed = val_exists(patch_type);
	str type = val_as_str(patch_type);
	if (!mutating && patch.n)
		return err_set(err, ERR_BAD_REQUEST, "validating webhook may not return response.patch");
	if (!mutating && typed)
		return err_set(err, ERR_BAD_REQUEST, "validating webhook may not return response.patchType");
	if (patch.n && !typed)
		return err_set(err, ERR_BAD_REQUEST, "webhook returned response.patch but not response.patchType");
	if (!patch.n && typed)
		return err_set(err, ERR_BAD_REQUEST, "webhook returned response.patchType but not response.patch");
	if (typed && !type.n)
		return err_set(err, ERR_BAD_REQUEST, "webhook returned invalid response.patchType of \"\"");
	return 0;
}

static int wrong_kind(struct val review, struct err *err)
{
	str group, version = val_str(review, apiVersion);
	if (!str_cut(version, '/', &group, &version)) {
		version = group;
		group = STR_NONE;
	}
	return err_set(err, ERR_BAD_REQUEST, "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got " STR_FMT
		       "/" STR_FMT ", Kind=" STR_FMT, STR_ARG(group), STR_ARG(version), STR_ARG(val_str(review, kind)));
}

/* What only the newer version is strict about. */
static int check_review(struct val review, str uid, struct err *err)
{
	str has = val_str(review, response, uid);
	if (!str_eq(has, uid))
		return err_set(err, ERR_BAD_REQUEST, "expected response.uid=\"" STR_FMT "\", got \"" STR_FMT "\"", STR_ARG(uid),
			       STR_ARG(str_head(has, 128)));
	if (!str_eq(val_str(review, kind), STR("AdmissionReview")) ||
	    !str_eq(val_str(review, apiVersion), STR("admission.k8s.io/v1")))
		return wrong_kind(review, err);
	return 0;
}

int hook_response_of(struct arena *a, struct val review, const struct type *type, str uid, bool mutating, struct hook_response *ret,
		     struct err *err)
{
	struct val response = val_get(review, response);
	bool strict = type == TYPE(admission_v1, AdmissionReview);
	str patch = val_str(response, patch);
	struct val patch_type = val_get(response, patchType);
	if (!val_exists(response))
		return err_set(err, ERR_BAD_REQUEST, "webhook response was absent");
	int r = strict ? check_review(review, uid, err) : 0;
	if (r == 0 && strict)
		r = check_patch(patch, patch_type, mutating, err);
	if (r < 0)
		return r;
	*ret = (struct hook_response){
		.allowed = val_bool(response, allowed), .patch_type = strict ? val_as_str(patch_type) : STR("JSONPatch"),
		.status = val_get(response, status), .annotations = val_get(response, auditAnnotations),
		.warnings = val_get(response, warnings),
	};
	if (!mutating || !patch.n)
		return 0;
	char *text = arena_alloc(a, base64_decoded_max(patch.n) + 1, 1);
	size_t n;
	r = base64_decode(text, patch, &n, err);
	ret->patch = str_span(text, n);
	return r;
}
