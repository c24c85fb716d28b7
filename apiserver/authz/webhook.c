/*
 * Another server decides: it is asked by a SubjectAccessReview. What it says is kept for a while, a yes longer than a no, unless
 * the question is so large that keeping it would be a way to fill the memory. One that cannot be asked has no opinion, or denies:
 * then the decision comes with an error that says why.
 */
#include "apiserver/webhook_reviewer.h"

#include "apiserver/authz/authz_priv.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { ANSWERS_MAX = 8192, KEPT_ATTRIBUTES_MAX = 10000, SPEC_MAX = 16 << 20 };

struct way {
	struct authz_webhook_options options;
	struct webhook_reviewer reviewer;
};

/* ---- the question ---- */

static struct val text_or_none(str s) { return s.n ? VAL_STR(s) : VAL_EMPTY; }

static struct val requirement(struct arena *a, str key, const char *op, const str *values, size_t n)
{
	struct val_builder list = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&list, VAL_STR(values[i]));
	return OBJECT(a, F(key, VAL_STR(key)), F(operator, VAL_STR(str_of(op))), F(values, n ? val_end_list(&list) : VAL_EMPTY));
}

/* Selectors only narrow, so one that cannot be read, or an operator that reviews do not know, is left out. */
static struct val field_requirements(struct arena *a, str text)
{
	struct field_selector s;
	struct val_builder list = val_builder(a);
	if (!text.n || field_selector_parse(a, text, &s, NULL) < 0 || !s.n)
		return VAL_EMPTY;
	for (size_t i = 0; i < s.n; i++)
		val_add_item(&list, requirement(a, s.terms[i].field, s.terms[i].negated ? "NotIn" : "In", &s.terms[i].value, 1));
	return OBJECT(a, F(requirements, val_end_list(&list)));
}

static struct val label_requirements(struct arena *a, str text)
{
	static const char *const names[] = {
		[SELECTOR_IN] = "In", [SELECTOR_EQUALS] = "In", [SELECTOR_DOUBLE_EQUALS] = "In", [SELECTOR_NOT_IN] = "NotIn",
		[SELECTOR_NOT_EQUALS] = "NotIn", [SELECTOR_EXISTS] = "Exists", [SELECTOR_NOT_EXISTS] = "DoesNotExist",
	};
	struct selector s;
	struct val_builder list = val_builder(a);
	if (!text.n || selector_parse(a, text, &s, NULL) < 0)
		return VAL_EMPTY;
	for (size_t i = 0; i < s.n; i++)
		if (names[s.all[i].op])
			val_add_item(&list, requirement(a, atom_str(s.all[i].key), names[s.all[i].op], s.all[i].values,
							s.all[i].n_values));
	return list.n ? OBJECT(a, F(requirements, val_end_list(&list))) : VAL_EMPTY;
}

static struct val resource_attributes(struct arena *a, const struct authz_attributes *what)
{
	return OBJECT(a, F(namespace, text_or_none(what->namespace)), F(verb, text_or_none(what->verb)),
		      F(group, text_or_none(what->group)), F(version, text_or_none(what->version)),
		      F(resource, text_or_none(what->resource)), F(subresource, text_or_none(what->subresource)),
		      F(name, text_or_none(what->name)), F(fieldSelector, field_requirements(a, what->field_selector)),
		      F(labelSelector, label_requirements(a, what->label_selector)));
}

static struct val spec_of(struct arena *a, const struct authz_attributes *what, bool v1)
{
	const struct user *u = what->user;
	struct val_builder groups = val_builder(a);
	for (size_t i = 0; i < u->n_groups; i++)
		val_add_item(&groups, VAL_STR(u->groups[i]));
	struct val list = u->n_groups ? val_end_list(&groups) : VAL_EMPTY;
	struct val path = OBJECT(a, F(path, text_or_none(what->path)), F(verb, text_or_none(what->verb)));
	return OBJECT(a, F(resourceAttributes, what->is_resource ? resource_attributes(a, what) : VAL_EMPTY),
		      F(nonResourceAttributes, what->is_resource ? VAL_EMPTY : path), F(user, text_or_none(u->name)),
		      F(groups, v1 ? list : VAL_EMPTY), F(group, v1 ? VAL_EMPTY : list),
		      F(extra, val_len(u->extra) ? u->extra : VAL_EMPTY), F(uid, text_or_none(u->uid)));
}

/* ---- asking ---- */

static bool may_be_kept(const struct authz_attributes *what)
{
	return what->namespace.n + what->verb.n + what->group.n + what->version.n + what->resource.n + what->subresource.n +
	       what->name.n + what->path.n < KEPT_ATTRIBUTES_MAX;
}

/* (suspends) The status of the answer, as a reference; or of one that is still known. */
static int find_answer(struct way *w, struct arena *a, const struct authz_attributes *what, struct frozen **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(SPEC_MAX);
	bool v1 = w->reviewer.type == TYPE(authorization_v1, SubjectAccessReview);
	struct val spec = spec_of(a, what, v1);
	const struct json_encode_options opt = { .type = v1 ? TYPE(authorization_v1, SubjectAccessReviewSpec) :
								     TYPE(authorization_v1beta1, SubjectAccessReviewSpec) };
	int r = json_encode(&text, spec, &opt, err);
	if (r < 0)
		return r;
	str question = buf_str(&text);
	struct webhook_cache_key key = webhook_cache_key(w->reviewer.answers, &question, 1);
	if ((*ret = webhook_cache_get(w->reviewer.answers, &key)))
		return 0;
	int64_t timeout_ms = w->options.timeout_ns / NS_PER_MS;
	if ((r = webhook_reviewer_ask(&w->reviewer, a, spec, timeout_ms, WEBHOOK_PAUSE_MS, ret, err)) < 0)
		return r;
	if (may_be_kept(what))
		webhook_cache_put(w->reviewer.answers, &key, *ret, val_bool((*ret)->val, allowed) ?
				  w->options.authorized_ttl_ns : w->options.unauthorized_ttl_ns);
	return 0;
}

static int webhook_decide(void *self, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err)
{
	struct way *w = self;
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	struct err e = ERR_INIT;
	*ret_reason = STR_NONE;
	int r = find_answer(w, a, what, &answer, &e);
	if (r < 0) {
		log_error("a webhook that decides could not be asked", KV("name", w->options.name), KV("error", &e));
		if (err)
			*err = e;
		return w->options.deny_on_failure ? AUTHZ_DENY : r;
	}
	bool allowed = val_bool(answer->val, allowed), denied = val_bool(answer->val, denied);
	*ret_reason = arena_str(a, val_str(answer->val, reason));
	if (denied && allowed)
		(void)err_set(err, ERR_INTERNAL, "webhook subject access review returned both allow and deny response");
	return denied ? AUTHZ_DENY : allowed ? AUTHZ_ALLOW : AUTHZ_NO_OPINION;
}

static int webhook_rules(void *self, struct arena *a, const struct user *u, str namespace, struct authz_rules *rules,
			 struct err *err)
{
	static const str why = STR_INIT("webhook authorizer does not support user rule resolution");
	(void)self, (void)u, (void)namespace, (void)err;
	rules->incomplete = true;
	rules->error = rules->error.n ? arena_printf(a, STR_FMT ", " STR_FMT, STR_ARG(rules->error), STR_ARG(why)) : why;
	return 0;
}

/* ---- making ---- */

static void way_free(void *self)
{
	struct way *w = self;
	webhook_reviewer_done(&w->reviewer);
	free(w);
}

int authz_webhook_way(struct apiserver *s, const struct authz_webhook_options *o, struct authz_way *ret, struct err *err)
{
	const struct type *type = webhook_review_type(o->version, TYPE(authorization_v1, SubjectAccessReview),
							TYPE(authorization_v1beta1, SubjectAccessReview));
	struct webhook_reviewer reviewer;
	if (!type)
		return err_set(err, ERR_INVALID,
			       "unsupported webhook authorizer version \"%s\", supported versions are \"v1\", \"v1beta1\"",
			       o->version);
	int r = webhook_reviewer_open(&reviewer, s, o->kubeconfig_file, type, ANSWERS_MAX, err);
	if (r < 0)
		return r;
	struct way *w = mem_zalloc(sizeof *w);
	*w = (struct way){ .options = *o, .reviewer = reviewer };
	*ret = (struct authz_way){ .type = "Webhook", .name = o->name, .self = w, .decide = webhook_decide, .rules = webhook_rules,
				   .free = way_free };
	return 0;
}
