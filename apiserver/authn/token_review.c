/* Whom does this token stand for (TokenReview), and who am I (SelfSubjectReview). */
#include "apiserver/admission/admission.h"
#include "apiserver/authn/authn_priv.h"
#include "apiserver/meta.h"
#include "apiserver/write.h"
#include "codec/atoms.h"

static int decode(struct request *q, struct val *ret, struct err *err)
{
	int r = write_read_body(q, err);
	if (r < 0 || (r = write_options(q, STR("CreateOptions"), false)) < 0 ||
	    (r = write_decode_body(q, q->endpoint->type, ret, err)) < 0)
		return r;
	*ret = write_managed(q, q->endpoint->type, VAL_EMPTY, val_without(q->arena, meta_wipe(q->arena, *ret), status));
	return admission_pass(q, q->endpoint->type, ret, err);
}

static int answer_review(struct request *q, struct val review, struct err *err)
{
	int r = val_canonical(q->arena, review, q->endpoint->type, NULL, &review, err);
	answer_val(q, 201, review, q->endpoint->type);
	return r;
}

static struct val texts(struct arena *a, const str *list, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, val_of_str(list[i]));
	return val_end_list(&b);
}

static struct val user_info(struct arena *a, const struct user *u)
{
	return OBJECT(a, F(username, val_of_str(u->name)), F(uid, val_of_str(u->uid)), F(groups, texts(a, u->groups, u->n_groups)),
		      F(extra, u->extra));
}

int self_review_handle(struct request *q, struct err *err)
{
	struct val sent;
	int r = decode(q, &sent, err);
	if (r < 0)
		return r;
	return answer_review(q, OBJECT(q->arena, F(kind, val_get(sent, kind)), F(apiVersion, val_get(sent, apiVersion)),
				       F(metadata, OBJECT(q->arena, F(creationTimestamp, meta_now(q)))),
				       F(status, OBJECT(q->arena, F(userInfo, user_info(q->arena, &q->user))))), err);
}

/* What the review says of a token, as it would be if it came as an Authorization header. */
static int status_of_token(struct request *q, struct val spec, struct val *ret)
{
	struct arena *a = q->arena;
	struct err why = ERR_INIT;
	struct authn_identity who = { 0 };
	size_t n = val_len(val_get(spec, audiences));
	str *audiences = ARENA_ARRAY(a, str, n + 1);
	bool spaced;
	for (size_t i = 0; i < n; i++)
		audiences[i] = val_as_str(val_at(val_get(spec, audiences), i));
	str token = authn_bearer(arena_join(a, STR("Bearer "), val_str(spec, token)), &spaced);
	int r = token.n ? authn_token(q->server, a, token, audiences, n, &who, &why) : 0;
	if (r == -ERR_CANCELED)
		return r;
	if (r <= 0) {
		str text = r < 0 ? arena_str(a, err_str(&why)) : STR("invalid bearer token");
		*ret = OBJECT(a, F(user, VAL_EMPTY_OBJECT), F(error, val_of_str(text)));
		return 0;
	}
	size_t n_common;
	const struct authn *own = q->server->authn;
	authn_common(a, who.audiences, who.n_audiences, n ? audiences : own->audiences, n ? n : own->n_audiences, &n_common);
	if (!n_common)
		return fail_internal(q, "error validating audiences");
	authn_add_authenticated(a, &who.user);
	*ret = OBJECT(a, F(authenticated, val_of_bool(true)), F(user, user_info(a, &who.user)),
		      F(audiences, texts(a, who.audiences, who.n_audiences)));
	return 0;
}

int token_review_handle(struct request *q, struct err *err)
{
	struct val review, status;
	int r = decode(q, &review, err);
	if (r < 0)
		return r;
	struct val spec = val_get(review, spec);
	if (!val_str(spec, token).n)
		return fail_bad_request(q, "token is required for TokenReview in authentication");
	if ((r = status_of_token(q, spec, &status)) < 0)
		return r;
	return answer_review(q, val_with(q->arena, review, status, status), err);
}
