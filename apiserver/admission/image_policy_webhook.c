/*
 * ImagePolicyWebhook: another server decides which images pods may use. Its answers are kept for a while, so that pods that
 * are alike cost one question.
 */
#include <stdlib.h>

#include "apiserver/admission/plugins.h"
#include "apiserver/audit/audit.h"
#include "apiserver/meta.h"
#include "apiserver/webhook_reviewer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"

#define AUDIT_PREFIX "imagepolicywebhook.image-policy.k8s.io/"
#define FAILED_OPEN "alpha.image-policy.k8s.io/failed-open"

enum { ANSWERS_MAX = 1024, SPEC_MAX = 64 << 20 };

struct image_policy {
	struct webhook_reviewer reviewer;
	int64_t allow_ns, deny_ns, pause_ns;
	bool default_allow;
};

/* ---- the question ---- */

static void add_images(struct request *q, struct val_builder *b, struct val containers)
{
	VAL_EACH(c, containers)
		val_add_item(b, OBJECT(q->arena, F(image, val_get(*c, image))));
}

static struct val spec_of(struct request *q)
{
	struct val_builder images = val_builder(q->arena), notes = val_builder(q->arena);
	struct val spec = val_get(q->object, spec);
	if (q->subresource.n) {
		add_images(q, &images, val_get(spec, ephemeralContainers));
	} else {
		add_images(q, &images, val_get(spec, containers));
		add_images(q, &images, val_get(spec, initContainers));
	}
	VAL_EACH_MEMBER(m, val_get(q->object, metadata, annotations))
		if (str_find(atom_str(m->key), STR(".image-policy.k8s.io/")) >= 0)
			val_add_member(&notes, m->key, m->val);
	return OBJECT(q->arena, F(containers, images.n ? val_end_list(&images) : VAL_EMPTY),
		      F(annotations, notes.n ? val_end_object(&notes) : VAL_EMPTY), F(namespace, val_of_str(q->namespace)));
}

/* (suspends) The status of the answer, as a reference; or of one that is still known. */
static int ask(struct request *q, struct image_policy *p, struct val spec, struct frozen **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(SPEC_MAX);
	int r = json_encode(&text, spec, &(struct json_encode_options){ 0 }, err);
	if (r < 0)
		return r;
	struct webhook_cache *answers = p->reviewer.answers;
	struct webhook_cache_key key = webhook_cache_key(answers, (const str[]){ buf_str(&text) }, 1);
	if ((*ret = webhook_cache_get(answers, &key)))
		return 0;
	if ((r = webhook_reviewer_ask(&p->reviewer, q->arena, spec, 0, p->pause_ns / NS_PER_MS, ret, err)) < 0)
		return r;
	webhook_cache_put(answers, &key, *ret, val_bool((*ret)->val, allowed) ? p->allow_ns : p->deny_ns);
	return 0;
}

/* There is no answer. */
static int failed(struct request *q, const struct image_policy *p, const struct err *why)
{
	if (!p->default_allow)
		return admission_forbid(q, STR_FMT, STR_ARG(err_str(why)));
	audit_annotate(q, STR(AUDIT_PREFIX "failed-open"), STR("true"));
	struct val notes = val_put(q->arena, val_get(q->object, metadata, annotations), atom_make(q->arena, STR(FAILED_OPEN)),
				   VAL_LIT("true"));
	q->object = meta_put(q->arena, q->object, A_annotations, val_sorted(q->arena, notes));
	return 0;
}

static int validate(struct request *q, struct err *err)
{
	struct image_policy *p = admission_state(q->server, &admission_image_policy_webhook);
	enum admission_operation op = admission_operation(q);
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	struct err why = ERR_INIT;
	if (q->group.n || !str_eq(q->resource, STR("pods")) || (op != ADMISSION_CREATE && op != ADMISSION_UPDATE) ||
	    (q->subresource.n && !str_eq(q->subresource, STR("ephemeralcontainers"))))
		return 0;
	int r = ask(q, p, spec_of(q), &answer, &why);
	if (r == -ERR_CANCELED)
		return err_set(err, ERR_CANCELED, "%s", why.msg);
	if (r < 0)
		return failed(q, p, &why);
	struct val status = answer->val;
	VAL_EACH_MEMBER(m, val_get(status, auditAnnotations))
		audit_annotate(q, arena_join(q->arena, STR(AUDIT_PREFIX), atom_str(m->key)), val_as_str(m->val));
	str reason = val_str(status, reason);
	if (val_bool(status, allowed))
		return 0;
	return reason.n ? admission_forbid(q, "image policy webhook backend denied one or more images: " STR_FMT, STR_ARG(reason)) :
			  admission_forbid(q, "one or more images rejected by webhook backend");
}

/* ---- configuration ---- */

/* -1: never; 0: the default; else a number of units within bounds. */
static int duration(struct val v, int64_t unit_ns, int64_t min_ns, int64_t max_ns, int64_t default_ns, int64_t *ret, struct err *err)
{
	int64_t n = val_as_int(v);
	char low[DURATION_TEXT_MAX], high[DURATION_TEXT_MAX], has[DURATION_TEXT_MAX];
	*ret = n == 0 ? default_ns : 0;
	if (n == 0 || n == -1)
		return 0;
	n = n > INT64_MAX / unit_ns ? INT64_MAX : n < INT64_MIN / unit_ns ? INT64_MIN : n * unit_ns;
	*ret = n;
	if (n >= min_ns && n <= max_ns)
		return 0;
	return err_set(err, ERR_BAD_REQUEST, "valid value is between " STR_FMT " and " STR_FMT ", got " STR_FMT,
		       STR_ARG(duration_format(min_ns, low)), STR_ARG(duration_format(max_ns, high)), STR_ARG(duration_format(n, has)));
}

static int read_config(struct val config, struct image_policy *p, struct err *err)
{
	enum { S_PER_MIN = 60 };
	int64_t minute = S_PER_MIN * NS_PER_S;
	struct val c = val_get(config, imagePolicy);
	p->default_allow = val_bool(c, defaultAllow);
	int r = duration(val_get(c, retryBackoff), NS_PER_MS, 1, 5 * minute, 500 * NS_PER_MS, &p->pause_ns, err);
	if (r == 0)
		r = duration(val_get(c, allowTTL), NS_PER_S, NS_PER_S, 30 * minute, 5 * minute, &p->allow_ns, err);
	if (r == 0)
		r = duration(val_get(c, denyTTL), NS_PER_S, NS_PER_S, 30 * minute, 30 * NS_PER_S, &p->deny_ns, err);
	return r;
}

static void plugin_close(void *state)
{
	struct image_policy *p = state;
	webhook_reviewer_done(&p->reviewer);
	free(p);
}

static int plugin_open(struct apiserver *s, struct val config, void **ret_state, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	if (!val_exists(config))
		return err_set(err, ERR_BAD_REQUEST, "no config specified");
	struct image_policy *p = mem_zalloc(sizeof *p);
	int r = read_config(config, p, err);
	if (r == 0)
		r = webhook_reviewer_open(&p->reviewer, s, arena_str(&a, val_str(config, imagePolicy, kubeConfigFile)).p,
					  TYPE(imagepolicy_v1alpha1, ImageReview), ANSWERS_MAX, err);
	if (r < 0)
		plugin_close(p);
	else
		*ret_state = p;
	return r;
}

const struct admission_plugin admission_image_policy_webhook = {
	.name = "ImagePolicyWebhook", .optional = true, .validate = validate, .open = plugin_open, .close = plugin_close,
};
