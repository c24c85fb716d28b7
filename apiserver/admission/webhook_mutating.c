/*
 * MutatingAdmissionWebhook: servers that may change an object before it is stored. They are asked one after the other, so that each
 * sees what those before it have made of the object. When the object has changed after one was asked that wants to know,
 * it is asked a second time.
 */
#include "apiserver/admission/webhook_call.h"
#include "apiserver/admission/webhook_metrics.h"
#include "apiserver/audit/audit.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "codec/atoms.h"
#include "machinery/patch.h"
#include "machinery/validate.h"

enum { ANNOTATION_MAX = 64 << 20 };

/* ---- who is asked again ---- */

struct names {
	str *v;
	size_t n;
};

struct webhook_rounds {
	struct names asked;           /* those who want to know of changes that come after them */
	struct names again;           /* those who are to be asked in the second round */
	struct val last;              /* the object when the first round was over */
};

static bool has(const struct names *n, str name)
{
	for (size_t i = 0; i < n->n; i++)
		if (str_eq(n->v[i], name))
			return true;
	return false;
}

/* Doubles when it is full: n is a power of two. */
static void add(struct arena *a, struct names *n, str name)
{
	if (has(n, name))
		return;
	if ((n->n & (n->n - 1)) == 0) {
		str *room = ARENA_ARRAY(a, str, n->n ? 2 * n->n : 1);
		if (n->n)
			memcpy(room, n->v, n->n * sizeof *room);
		n->v = room;
	}
	n->v[n->n++] = arena_str(a, name);
}

/* The object has changed: all who were asked before are to be asked again. */
static void changed(struct arena *a, struct webhook_rounds *w)
{
	for (size_t i = 0; i < w->asked.n; i++)
		add(a, &w->again, w->asked.v[i]);
	w->asked.n = 0;
}

/* ---- what the audit is told ---- */

static str audit_key(const struct hook_call *c, const char *prefix)
{
	return arena_printf(c->request->q->arena, "%s.webhook.admission.k8s.io/round_%u_index_%u", prefix, c->round, c->index);
}

static str audit_json(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(ANNOTATION_MAX);
	(void)json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL);
	return arena_str(a, buf_str(&b));
}

static void annotate(const struct hook_call *c, bool mutated, struct val patch)
{
	struct request *q = c->request->q;
	struct val configuration = val_of_str(c->hook->configuration), webhook = val_of_str(c->hook->name);
	if (!q->audit)
		return;
	if (val_exists(patch))
		audit_annotate_request(q, audit_key(c, "patch"),
				       audit_json(q->arena, OBJECT(q->arena, F(configuration, configuration), F(webhook, webhook),
								   F(patch, patch), F(patchType, VAL_LIT("JSONPatch")))));
	audit_annotate(q, audit_key(c, "mutation"),
		       audit_json(q->arena, OBJECT(q->arena, F(configuration, configuration), F(webhook, webhook),
						   F(mutated, val_of_bool(mutated)))));
}

/* ---- its patch ---- */

static int broken(struct hook_call *c, const struct err *err)
{
	hook_outcome(c, HOOK_BROKEN, 0, STR_FMT, STR_ARG(err_str(err)));
	return -ERR_INTERNAL;
}

/* The operations; an empty list when there is nothing to do. */
static int decode_patch(struct hook_call *c, struct val *ret)
{
	struct arena *a = c->request->q->arena;
	struct err err = ERR_INIT;
	*ret = VAL_EMPTY_LIST;
	if (!c->response.patch.n)
		return 0;
	int r = json_decode(a, c->response.patch, &(struct json_decode_options){ .sort_keys = true }, ret, &err);
	if (r == 0)
		r = json_patch_check(*ret, NULL, &err);
	if (r < 0)
		hook_outcome(c, HOOK_FAILED, 503, "received undecodable patch in webhook response: " STR_FMT,
			     STR_ARG(err_str(&err)));
	else if (val_len(*ret) && !val_exists(c->version->object))
		hook_outcome(c, HOOK_BROKEN, 0, "admission webhook \"" STR_FMT
			     "\" attempted to modify the object, which is not supported for this operation",
			     STR_ARG(c->hook->name));
	else if (val_len(*ret) && !str_eq(c->response.patch_type, STR("JSONPatch")))
		hook_outcome(c, HOOK_FAILED, 400, "unsupported patch type \"" STR_FMT "\"", STR_ARG(c->response.patch_type));
	return c->outcome == HOOK_ALLOWED ? 0 : -ERR_INTERNAL;
}

/* A patch may make another version of the kind of an object, but no other kind. */
static const struct type *type_after(struct val doc, const struct type *before)
{
	str version = val_str(doc, apiVersion), kind = val_str(doc, kind);
	const struct type *type = version.n && kind.n ? schema_kind(version, kind) : before;
	return type && str_eq(type->name, before->name) && str_eq(type->package->group, before->package->group) ? type : NULL;
}

static int apply_patch(struct hook_call *c, struct val patch, struct val *ret, const struct type **ret_type)
{
	struct arena *a = c->request->q->arena;
	const struct type *type = c->version->type;
	struct err err = ERR_INIT;
	struct val doc;
	int r = patch_document(a, c->version->object, type, &doc, &err);
	if (r == 0)
		r = json_patch_apply(a, doc, patch, JSON_PATCH_COPY_MAX, &doc, &err);
	if (r < 0)
		return broken(c, &err);
	*ret_type = type_after(doc, type);
	if (!*ret_type) {
		str internal, version, kind = val_str(doc, kind);
		str_cut(type->package->name, '/', &internal, &version);
		(void)err_set(&err, ERR_INTERNAL,
			      "converting (" STR_FMT "." STR_FMT ") to (" STR_FMT "." STR_FMT "): unknown conversion", STR_ARG(type->package->version), STR_ARG(kind), STR_ARG(internal), STR_ARG(type->name));
		return broken(c, &err);
	}
	r = val_canonical(a, doc, *ret_type, NULL, ret, &err);
	return r < 0 ? broken(c, &err) : 0;
}

/* Makes what the webhook wants of q->object. True when that changes it. */
static bool take_patch(struct hook_call *c, struct val *ret_patch)
{
	struct arena *a = c->request->q->arena;
	const struct type *type = NULL;
	struct val patch, object;
	struct err err = ERR_INIT;
	if (decode_patch(c, &patch) < 0 || !val_len(patch) || apply_patch(c, patch, &object, &type) < 0)
		return false;
	bool differs = !val_equal(object, c->version->object);
	*ret_patch = patch;
	int r = default_object(a, type, object, &object, &err);
	if (r == 0)
		r = hook_version_take(c->request, c->version, object, type, &err);
	if (r < 0)
		(void)broken(c, &err);
	return r == 0 && differs;
}

/* ---- the plugin ---- */

static int ask_one(struct hook_call *c, struct err *err)
{
	struct request *q = c->request->q;
	struct admission_rounds *rounds = q->rounds;
	struct hook_version version;
	struct val patch = VAL_EMPTY;
	struct err why = ERR_INIT;
	if (hook_version_of(c->request, c->version->endpoint, &version, &why) < 0)
		return fail_internal(q, STR_FMT, STR_ARG(err_str(&why)));
	c->version = &version;
	int64_t begun_ns = clock_now_ns();
	hook_ask(c);
	bool mutated = c->outcome == HOOK_ALLOWED && take_patch(c, &patch);
	hook_metrics_count(c->source->metrics, c, clock_now_ns() - begun_ns);
	annotate(c, mutated, patch);
	if (mutated) {
		changed(q->arena, rounds->webhooks);
		rounds->again = true;
	}
	if (c->hook->again)
		add(q->arena, &rounds->webhooks->asked, c->hook->uid);
	int r = c->outcome == HOOK_CANCELED ? fiber_check(err) : hook_conclude(c);
	return r == 0 && c->outcome != HOOK_ALLOWED ? fiber_check(err) : r;
}

static int ask_all(struct request *q, struct hook_source *source, const struct hook_list *list, struct err *err)
{
	struct admission_rounds *rounds = q->rounds;
	struct hook_request h = hook_request_of(q);
	for (size_t i = 0; i < list->n; i++) {
		struct hook *hook = list->hooks[i];
		const struct endpoint *e;
		int r = hook_wants(&h, hook, &e, err);
		if (r < 0)
			return r;
		if (r == 0 || (rounds->round && !has(&rounds->webhooks->again, hook->uid)))
			continue;
		struct hook_version version = { .endpoint = e };
		struct hook_call c = {
			.source = source, .hook = hook, .request = &h, .version = &version, .mutating = true,
			.round = rounds->round, .index = (unsigned)i, .deadline_ns = fiber_deadline_ns(),
		};
		if ((r = ask_one(&c, err)) < 0)
			return r;
	}
	return 0;
}

static int mutate(struct request *q, struct err *err)
{
	struct hook_source *source = admission_state(q->server, &admission_mutating_webhook);
	if (hook_is_exempt(q))
		return 0;
	CLEANUP(hook_list_unrefp) struct hook_list *list = hook_list_now(source);
	if (!list->n)
		return 0;
	if (!q->rounds->webhooks)
		q->rounds->webhooks = ARENA_NEW(q->arena, struct webhook_rounds);
	struct webhook_rounds *w = q->rounds->webhooks;
	if (q->rounds->round && !val_equal(w->last, q->object))
		changed(q->arena, w); /* the plugins before this one have done something in the second round */
	int r = ask_all(q, source, list, err);
	w->last = q->object;
	return r;
}

static int plugin_open(struct apiserver *s, struct val config, void **ret_state, struct err *err)
{
	return hook_source_new(s, STR("mutatingwebhookconfigurations"), "admit", config, (struct hook_source **)ret_state, err);
}

static void plugin_close(void *state) { hook_source_free(state); }

const struct admission_plugin admission_mutating_webhook = {
	.name = "MutatingAdmissionWebhook", .mutate = mutate, .open = plugin_open, .close = plugin_close,
};
