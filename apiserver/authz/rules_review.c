/* SelfSubjectRulesReview: all that I may do in a namespace, as far as those who decide can tell. */
#include "apiserver/admission/admission.h"
#include "apiserver/authz/authz_priv.h"
#include "apiserver/meta.h"
#include "apiserver/write.h"
#include "codec/atoms.h"

int rules_review_handle(struct request *q, struct err *err)
{
	struct arena *a = q->arena;
	struct val sent;
	int r = write_read_body(q, err);
	if (r < 0 || (r = write_options(q, STR("CreateOptions"), false)) < 0 ||
	    (r = write_decode_body(q, q->endpoint->type, &sent, err)) < 0)
		return r;
	sent = meta_wipe(a, sent);
	if ((r = admission_pass(q, q->endpoint->type, &sent, err)) < 0)
		return r;
	str namespace = val_str(sent, spec, namespace);
	if (!namespace.n)
		return fail_bad_request(q, "no namespace on request");
	struct authz_rules rules = { .resources = val_builder(a), .paths = val_builder(a), .error = STR_NONE };
	if ((r = authz_list_rules(q->server, a, &q->user, namespace, &rules, err)) < 0)
		return r;
	struct val status = OBJECT(a, F(resourceRules, val_end_list(&rules.resources)),
				   F(nonResourceRules, val_end_list(&rules.paths)), F(incomplete, val_of_bool(rules.incomplete)),
				   F(evaluationError, rules.error.n ? val_of_str(rules.error) : VAL_EMPTY));
	struct val review = OBJECT(a, F(kind, val_get(sent, kind)), F(apiVersion, val_get(sent, apiVersion)),
				   F(metadata, VAL_EMPTY_OBJECT), F(spec, VAL_EMPTY_OBJECT), F(status, status));
	r = val_canonical(a, review, q->endpoint->type, NULL, &review, err);
	answer_val(q, 201, review, q->endpoint->type);
	return r;
}
