#include "apiserver/admission/webhook_call.h"

#include <stdarg.h>

#include "apiserver/audit/audit.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"

/* ---- whether to ask ---- */

/* The endpoint by which a webhook's rules take the request: the client's own, or one of the same objects. */
static const struct endpoint *endpoint_for(const struct hook_request *h, const struct hook *hook)
{
	struct val rules = val_get(hook->spec, rules);
	if (hook_rules_match(rules, &h->target))
		return h->q->endpoint;
	if (!hook->equivalent || !h->n_equivalents)
		return NULL;
	VAL_EACH(rule, rules) {
		for (size_t i = 0; i < h->n_equivalents; i++) {
			const struct resource *r = h->equivalents[i]->main->resource;
			struct hook_target t = h->target;
			t.group = r->group;
			t.version = r->version;
			t.resource = r->name;
			if (hook_rule_matches(*rule, &t))
				return h->equivalents[i];
		}
	}
	return NULL;
}

static int namespace_matches(const struct hook_request *h, const struct hook *hook, struct err *err)
{
	struct request *q = h->q;
	bool namespaces = str_eq(q->resource, STR("namespaces"));
	if ((!h->target.namespace.n && !namespaces) || selector_is_everything(&hook->namespaces))
		return 1;
	if (namespaces && !q->subresource.n &&
	    (h->target.operation == ADMISSION_CREATE || h->target.operation == ADMISSION_UPDATE))
		return selector_matches(&hook->namespaces, val_get(q->object, metadata, labels));
	struct object *namespace;
	int r = admission_find(q, STR_NONE, STR("namespaces"), h->target.namespace, &namespace, err);
	if (r < 0)
		return r;
	if (!namespace)
		return fail_not_found(q, STR_NONE, STR("namespaces"), h->target.namespace);
	return selector_matches(&hook->namespaces, val_get(namespace->val, metadata, labels));
}

static bool object_matches(const struct request *q, const struct hook *hook)
{
	if (selector_is_everything(&hook->objects))
		return true;
	return (val_exists(q->object) && selector_matches(&hook->objects, val_get(q->object, metadata, labels))) ||
	       (val_exists(q->old) && selector_matches(&hook->objects, val_get(q->old, metadata, labels)));
}

int hook_wants(const struct hook_request *h, const struct hook *hook, const struct endpoint **ret, struct err *err)
{
	*ret = endpoint_for(h, hook);
	if (!*ret || !object_matches(h->q, hook))
		return 0;
	int r = namespace_matches(h, hook, err);
	struct val conditions = val_get(hook->spec, matchConditions);
	if (r <= 0 || !val_len(conditions))
		return r;
	/* nothing here evaluates CEL: that is as good as an expression that fails */
	if (hook->ignore)
		return 0;
	return fail_forbidden(h->q, h->q->group, h->q->resource, h->name,
			      "expression '" STR_FMT "' resulted in error: CEL is not supported by this server",
			      STR_ARG(val_str(val_at(conditions, 0), expression)));
}

/* ---- asking ---- */

void hook_outcome(struct hook_call *c, enum hook_outcome outcome, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	c->outcome = outcome;
	c->code = code;
	c->why = arena_vprintf(c->request->q->arena, fmt, ap);
	va_end(ap);
}

static void failed(struct hook_call *c, int r, int code, const char *what, const struct err *err)
{
	/* only one's own end is none of the webhook's: anything else that could not be asked has failed */
	bool canceled = r == -ERR_CANCELED && fiber_check(NULL) < 0;
	hook_outcome(c, canceled ? HOOK_CANCELED : HOOK_FAILED, code, "%s: " STR_FMT, what, STR_ARG(err_str(err)));
}

/* The first version of AdmissionReview that the webhook names and this server knows. */
static const struct type *review_of(const struct hook *hook)
{
	VAL_EACH(version, val_get(hook->spec, admissionReviewVersions)) {
		if (str_eq(val_as_str(*version), STR("v1")))
			return TYPE(admission_v1, AdmissionReview);
		if (str_eq(val_as_str(*version), STR("v1beta1")))
			return TYPE(admission_v1beta1, AdmissionReview);
	}
	return NULL;
}

static bool takes_dry_runs(const struct hook *hook)
{
	str effects = val_str(hook->spec, sideEffects);
	return str_eq(effects, STR("None")) || str_eq(effects, STR("NoneOnDryRun"));
}

/* What is left of the time for this webhook, and for the whole request. */
static int64_t time_left_ms(const struct hook_call *c)
{
	int64_t left = c->deadline_ns == INT64_MAX ? INT64_MAX : (c->deadline_ns - clock_now_ns()) / NS_PER_MS;
	int64_t ms = c->hook->timeout_ms && c->hook->timeout_ms < left ? c->hook->timeout_ms : left;
	return ms == INT64_MAX ? 0 : MAX(ms, INT64_C(1));
}

static bool send(struct hook_call *c, str review, struct webhook_reply *ret)
{
	struct arena *a = c->request->q->arena;
	struct webhook *client;
	struct err err = ERR_INIT;
	int64_t ms = time_left_ms(c);
	str query = ms ? arena_printf(a, "timeout=%llds", (long long)((ms + 999) / 1000)) : STR_NONE;
	int r = hook_client(c->source, c->hook, &client, &err);
	if (r < 0) {
		failed(c, r, 500, "could not get REST client", &err);
		return false;
	}
	r = webhook_post(client, a, query, review, ms, ret, &err);
	if (r == 0 && (r = webhook_reply_check(ret, a, &err)) < 0) {
		failed(c, r, ret->status, "failed to call webhook", &err);
		return false;
	}
	if (r < 0)
		failed(c, r, 503, "failed to call webhook", &err);
	return r == 0;
}

static void pass_on(struct hook_call *c)
{
	struct request *q = c->request->q;
	VAL_EACH_MEMBER(m, c->response.annotations)
		audit_annotate(q, arena_printf(q->arena, STR_FMT "/" STR_FMT, STR_ARG(c->hook->name), STR_ARG(atom_str(m->key))),
			       val_as_str(m->val));
	VAL_EACH(w, c->response.warnings)
		request_warn(q, val_as_str(*w));
}

static void receive(struct hook_call *c, const struct webhook_reply *reply, const struct type *type, str uid)
{
	struct arena *a = c->request->q->arena;
	struct err err = ERR_INIT;
	struct val review;
	if (!reply->body.n) {
		hook_outcome(c, HOOK_FAILED, 503,
			     "failed to call webhook: 0-length response with status code: %d and content type: " STR_FMT,
			     reply->status, STR_ARG(reply->content_type));
		return;
	}
	int r = hook_response_decode(a, reply->body, type, &review, &err);
	if (r < 0) {
		failed(c, r, 503, "failed to call webhook", &err);
		return;
	}
	r = hook_response_of(a, review, type, uid, c->mutating, &c->response, &err);
	if (r < 0) {
		failed(c, r, 503, "received invalid webhook response", &err);
		return;
	}
	pass_on(c);
	c->outcome = c->response.allowed ? HOOK_ALLOWED : HOOK_DENIED;
	c->code = c->response.allowed ? 200 : (int)MAX(val_int(c->response.status, code), INT64_C(400));
}

void hook_ask(struct hook_call *c)
{
	struct request *q = c->request->q;
	const struct type *type = review_of(c->hook);
	struct webhook_reply reply;
	struct err err = ERR_INIT;
	char *uid = arena_alloc(q->arena, UUID_TEXT + 1, 1);
	CLEANUP(buf_done) struct buf review = BUF_INIT(HOOK_REVIEW_MAX);
	if (q->dry_run && !takes_dry_runs(c->hook)) {
		hook_outcome(c, HOOK_UNFIT, 400, "admission webhook \"" STR_FMT "\" does not support dry run",
			     STR_ARG(c->hook->name));
		return;
	}
	if (!type) {
		hook_outcome(c, HOOK_FAILED, 400,
			     "could not create admission objects: webhook does not accept known AdmissionReview "
			     "versions (v1, v1beta1)");
		return;
	}
	uuid_v4(uid);
	int r = hook_review(c->request, c->version, type, str_span(uid, UUID_TEXT), &review, &err);
	if (r < 0)
		failed(c, r, 400, "could not create admission objects", &err);
	else if (send(c, buf_str(&review), &reply))
		receive(c, &reply, type, str_span(uid, UUID_TEXT));
}

/* ---- what follows ---- */

/* The Status that a webhook gives for its refusal, made to be one. */
static int deny(struct hook_call *c)
{
	struct request *q = c->request->q;
	struct arena *a = q->arena;
	struct val status = c->response.status;
	str message = val_str(status, message), reason = val_str(status, reason), state = val_str(status, status);
	int64_t code = val_int(status, code);
	if (code < 400)
		code = 400;
	if (code > 999)
		code = 500; /* HTTP has no such status */
	if (!state.n || str_eq(state, STR("Success")))
		state = STR("Failure");
	str why = message.n ? message : reason;
	str text = arena_printf(a, "admission webhook \"" STR_FMT "\" denied the request%s" STR_FMT, STR_ARG(c->hook->name),
				why.n ? ": " : " without explanation", STR_ARG(why));
	struct val meta = val_get(status, metadata);
	q->failure = OBJECT(a, F(kind, VAL_LIT("Status")), F(apiVersion, VAL_LIT("v1")),
			    F(metadata, val_exists(meta) ? meta : VAL_EMPTY_OBJECT), F(status, val_of_str(state)),
			    F(message, val_of_str(text)), F(reason, reason.n ? val_of_str(reason) : VAL_EMPTY),
			    F(details, val_get(status, details)), F(code, val_of_int(code)));
	return -ERR_FORBIDDEN;
}

static void fail_open(struct hook_call *c)
{
	struct request *q = c->request->q;
	str key = arena_printf(q->arena, "failed-open.%s.webhook.admission.k8s.io/round_%u_index_%u",
			       c->mutating ? "mutation" : "validating", c->round, c->index);
	log_warn("a webhook failed and is ignored", KV("webhook", c->hook->name), KV("error", c->why));
	audit_annotate(q, key, arena_str(q->arena, c->hook->name));
}

int hook_conclude(struct hook_call *c)
{
	struct request *q = c->request->q;
	switch (c->outcome) {
	case HOOK_DENIED:
		return deny(c);
	case HOOK_FAILED:
		if (!c->hook->ignore)
			return fail_internal(q, "failed calling webhook \"" STR_FMT "\": " STR_FMT, STR_ARG(c->hook->name),
					     STR_ARG(c->why));
		fail_open(c);
		return 0;
	case HOOK_UNFIT:
		return fail_bad_request(q, STR_FMT, STR_ARG(c->why));
	case HOOK_BROKEN:
		return fail_internal(q, STR_FMT, STR_ARG(c->why));
	default:
		return 0;
	}
}
