/*
 * serviceaccounts/token: a token that says who a workload is, for whom, for how long, and as long as which object exists. It is signed
 * and nowhere kept.
 */
#include "apiserver/admission/admission.h"
#include "apiserver/audit/audit.h"
#include "apiserver/authn/authn_priv.h"
#include "apiserver/authn/jwt.h"
#include "apiserver/cache.h"
#include "apiserver/meta.h"
#include "apiserver/write.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum {
	LIFE_MIN_S = 600,
	POD_LIFE_S = 3607,            /* what kubelets ask for: such tokens live on for a year, and the server warns */
	POD_LIFE_EXTENDED_S = 365 * 24 * 3600,
	CLAIMS_MAX = 1 << 20,
};

#define LIFE_MAX_S (INT64_C(1) << 32)
#define GROUP STR("authentication.k8s.io")

/* What a token is bound to; names are empty where there is none. */
struct bound {
	struct val pod, node, secret; /* {name, uid} */
	str uid;
};

static struct val reference(struct request *q, str name, str uid)
{
	return OBJECT(q->arena, F(name, val_of_str(arena_str(q->arena, name))),
		      F(uid, uid.n ? val_of_str(arena_str(q->arena, uid)) : VAL_EMPTY));
}

static struct val reference_of(struct request *q, const struct object *o)
{
	return reference(q, val_str(o->val, metadata, name), val_str(o->val, metadata, uid));
}

static int find(struct request *q, str resource, str name, struct object **ret)
{
	struct kind *kind = kinds_find(&q->server->kinds, STR_NONE, resource);
	*ret = cache_get(kind, meta_key(q->arena, kind, q->namespace, name));
	return *ret ? 0 : fail_not_found(q, STR_NONE, resource, name);
}

static int bind_pod(struct request *q, str name, struct bound *b)
{
	struct object *pod;
	int r = find(q, STR("pods"), name, &pod);
	if (r < 0)
		return r;
	if (!str_eq(val_str(pod->val, spec, serviceAccountName), q->name))
		return fail_bad_request(q, "cannot bind token for serviceaccount \"" STR_FMT
					"\" to pod running with different serviceaccount name.", STR_ARG(q->name));
	b->pod = reference_of(q, pod);
	str node = val_str(pod->val, spec, nodeName);
	if (node.n) {
		struct object *o = cache_get(kinds_find(&q->server->kinds, STR_NONE, STR("nodes")), node);
		b->node = o ? reference_of(q, o) : reference(q, node, STR_NONE);
	}
	b->uid = val_str(b->pod, uid);
	return 0;
}

static int bind(struct request *q, struct val ref, struct bound *b)
{
	str version = val_str(ref, apiVersion), kind = val_str(ref, kind), name = val_str(ref, name), group, rest;
	struct object *o;
	int r;
	if (!str_cut(version, '/', &group, &rest)) {
		rest = group;
		group = STR_NONE;
	}
	if (!group.n && str_eq(kind, STR("Pod"))) {
		r = bind_pod(q, name, b);
	} else if (!group.n && (str_eq(kind, STR("Node")) || str_eq(kind, STR("Secret")))) {
		bool node = str_eq(kind, STR("Node"));
		r = find(q, node ? STR("nodes") : STR("secrets"), name, &o);
		if (r == 0) {
			*(node ? &b->node : &b->secret) = reference_of(q, o);
			b->uid = arena_str(q->arena, val_str(o->val, metadata, uid));
		}
	} else {
		return fail_bad_request(q, "cannot bind token to object of type " STR_FMT "/" STR_FMT ", Kind=" STR_FMT,
					STR_ARG(group), STR_ARG(rest), STR_ARG(kind));
	}
	str uid = val_str(ref, uid);
	if (r == 0 && uid.n && !str_eq(uid, b->uid))
		return fail_conflict(q, group, kind, name, "the UID in the bound object reference (" STR_FMT
				     ") does not match the UID in record. The object might have been deleted and then recreated", STR_ARG(uid));
	return r;
}

/* ---- the request ---- */

static struct val server_audiences(struct request *q)
{
	const struct authn *n = q->server->authn;
	struct val_builder b = val_builder(q->arena);
	for (size_t i = 0; i < n->n_audiences; i++)
		val_add_item(&b, val_of_str(n->audiences[i]));
	return val_end_list(&b);
}

/* Whether all of them are this server's. */
static bool is_for_server(struct request *q, struct val audiences)
{
	const struct authn *n = q->server->authn;
	VAL_EACH(audience, audiences) {
		bool known = false;
		for (size_t i = 0; i < n->n_audiences; i++)
			known = known || str_eq(n->audiences[i], val_as_str(*audience));
		if (!known)
			return false;
	}
	return true;
}

static int check_request(struct request *q, struct val request, struct val account)
{
	struct field_errors e;
	field_errors_init(&e, q->arena);
	str uid = val_str(request, metadata, uid), has = val_str(account, metadata, uid);
	struct val life = val_get(request, spec, expirationSeconds);
	if (uid.n && !str_eq(uid, has))
		return fail_conflict(q, GROUP, STR("TokenRequest"), q->name, "the UID in the token request (" STR_FMT
				     ") does not match the UID of the service account (" STR_FMT ")", STR_ARG(uid),
				     STR_ARG(has));
	const struct field_path *at = FIELD(FIELD(NULL, "spec"), "expirationSeconds");
	if (val_as_int(life) < LIFE_MIN_S)
		field_invalid(&e, at, life, "may not specify a duration less than 10 minutes");
	if (val_as_int(life) > LIFE_MAX_S)
		field_invalid(&e, at, life, "may not specify a duration larger than 2^32 seconds");
	return e.n ? fail_invalid(q, GROUP, STR("TokenRequest"), STR_NONE, &e) : 0;
}

static int decode(struct request *q, struct val *ret, struct err *err)
{
	int r = write_read_body(q, err);
	if (r < 0 || (r = write_options(q, STR("CreateOptions"), false)) < 0 ||
	    (r = write_decode_body(q, TYPE(authentication_v1, TokenRequest), ret, err)) < 0 ||
	    (r = meta_set_namespace(q, ret)) < 0)
		return r;
	str name = val_str(*ret, metadata, name);
	if (name.n && !str_eq(name, q->name)) {
		struct field_errors e;
		field_errors_init(&e, q->arena);
		field_invalid(&e, FIELD(FIELD(NULL, "metadata"), "name"), val_of_str(name),
			      "must match the service account name if specified");
		return fail_invalid(q, GROUP, STR("TokenRequest"), q->name, &e);
	}
	*ret = meta_put(q->arena, *ret, A_creationTimestamp, VAL_EMPTY);
	*ret = val_without(q->arena, *ret, status);
	*ret = write_managed(q, TYPE(authentication_v1, TokenRequest), VAL_EMPTY, *ret);
	return admission_pass(q, TYPE(authentication_v1, TokenRequest), ret, err);
}

/* ---- the token ---- */

static void claim(struct request *q, struct val_builder *b, str name, struct val v)
{
	val_add_member(b, atom_make(q->arena, name), v);
}

/* How long a token lives. */
struct life {
	int64_t shown_s;              /* as the answer says */
	int64_t real_s;
	int64_t warn_s;               /* after which its use is told; 0: never */
};

static struct life life_of(struct request *q, struct val *request, const struct bound *bound)
{
	const struct authn_options *o = &q->server->options.authn;
	int64_t asked_s = val_int(*request, spec, expirationSeconds), max_s = o->service_account_max_expiration_ns / NS_PER_S;
	if (max_s > 0 && asked_s > max_s) {
		request_warn(q, arena_printf(q->arena, "requested expiration of %lld seconds shortened to %lld seconds",
					     (long long)asked_s, (long long)max_s));
		asked_s = max_s;
		*request = val_with(q->arena, *request, val_of_int(asked_s), spec, expirationSeconds);
	}
	bool extended = o->service_account_extend_expiration && val_exists(bound->pod) && asked_s == POD_LIFE_S &&
			is_for_server(q, val_get(*request, spec, audiences));
	return (struct life){ asked_s, extended ? POD_LIFE_EXTENDED_S : asked_s, extended ? asked_s : 0 };
}

/* In the order of names, as Kubernetes has them. */
static str claims_of(struct request *q, struct val request, struct val account, const struct bound *bound,
		     const struct life *life)
{
	int64_t now = clock_wall_ns() / NS_PER_S;
	char *id = arena_alloc(q->arena, UUID_TEXT + 1, 1);
	uuid_v4(id);
	audit_annotate(q, STR("authentication.kubernetes.io/issued-credential-id"), arena_printf(q->arena, "JTI=%s", id));
	str namespace = val_str(account, metadata, namespace), name = val_str(account, metadata, name);
	struct val_builder b = val_builder(q->arena), own = val_builder(q->arena);
	claim(q, &own, STR("namespace"), val_of_str(namespace));
	claim(q, &own, STR("node"), bound->node);
	claim(q, &own, STR("pod"), bound->pod);
	claim(q, &own, STR("secret"), bound->secret);
	claim(q, &own, STR("serviceaccount"), reference(q, name, val_str(account, metadata, uid)));
	claim(q, &own, STR("warnafter"), life->warn_s ? val_of_int(now + life->warn_s) : VAL_EMPTY);
	claim(q, &b, STR("aud"), val_get(request, spec, audiences));
	claim(q, &b, STR("exp"), val_of_int(now + life->real_s));
	claim(q, &b, STR("iat"), val_of_int(now));
	claim(q, &b, STR("iss"), val_of_str(str_of(q->server->options.authn.service_account_issuers[0])));
	claim(q, &b, STR("jti"), val_of_str(str_span(id, UUID_TEXT)));
	claim(q, &b, STR("kubernetes.io"), val_end_object(&own));
	claim(q, &b, STR("nbf"), val_of_int(now));
	claim(q, &b, STR("sub"), val_of_str(arena_printf(q->arena, "system:serviceaccount:" STR_FMT ":" STR_FMT,
							 STR_ARG(namespace), STR_ARG(name))));
	CLEANUP(buf_done) struct buf json = BUF_INIT(CLAIMS_MAX);
	(void)json_encode(&json, val_end_object(&b), &(struct json_encode_options){ 0 }, NULL);
	return arena_str(q->arena, buf_str(&json));
}

static int sign(struct request *q, str claims, str *ret, struct err *err)
{
	struct apiserver *s = q->server;
	if (!s->signer) {
		const char *file = s->options.authn.service_account_signing_key_file;
		int r = file ? jwt_signer_open(file, &s->signer, err) : err_set(err, ERR_INVALID, "there is no key to sign with");
		if (r < 0)
			return fail_internal(q, "failed to generate token: " STR_FMT, STR_ARG(err_str(err)));
	}
	int r = jwt_sign(s->signer, q->arena, claims, ret, err);
	return r < 0 ? fail_internal(q, "failed to generate token: " STR_FMT, STR_ARG(err_str(err))) : r;
}

static struct val with_account(struct request *q, struct val request, struct val account)
{
	struct val audiences = val_get(request, spec, audiences);
	request = meta_put(q->arena, request, A_name, val_get(account, metadata, name));
	request = meta_put(q->arena, request, A_uid, val_get(account, metadata, uid));
	request = meta_put(q->arena, request, A_creationTimestamp, meta_now(q));
	if (!val_len(audiences))
		request = val_with(q->arena, request, server_audiences(q), spec, audiences);
	return val_copy(q->arena, request);
}

int token_request_handle(struct request *q, struct err *err)
{
	struct val request;
	struct object *o;
	int r = decode(q, &request, err);
	if (r < 0 || (r = cache_wait_current(q->server->cache, err)) < 0 ||
	    (r = find(q, STR("serviceaccounts"), q->name, &o)) < 0 ||
	    (r = check_request(q, request, o->val)) < 0)
		return r;
	struct val account = val_copy(q->arena, o->val), ref = val_get(request, spec, boundObjectRef);
	request = with_account(q, request, account);
	struct bound bound = { .uid = STR_NONE };
	if (val_exists(ref) && (r = bind(q, ref, &bound)) < 0)
		return r;
	struct life life = life_of(q, &request, &bound);
	str claims = claims_of(q, request, account, &bound, &life), token;
	if ((r = sign(q, claims, &token, err)) < 0)
		return r;
	struct timestamp end = meta_timestamp(q);
	char text[TIME_TEXT_MAX];
	end.seconds += life.shown_s;
	struct val status = OBJECT(q->arena, F(token, val_of_str(token)),
				   F(expirationTimestamp, val_of_str(arena_str(q->arena, time_format(end, text)))));
	r = val_canonical(q->arena, val_with(q->arena, request, status, status), TYPE(authentication_v1, TokenRequest),
			  NULL, &request, err);
	answer_val(q, 201, request, TYPE(authentication_v1, TokenRequest));
	return r;
}
