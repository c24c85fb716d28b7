/*
 * Tokens of service accounts, that this cluster has issued: by TokenRequest (token_request.c), or long ago as Secrets of type
 * kubernetes.io/service-account-token, which never expire. The signature says that the cluster has issued it; whether it still
 * counts is looked up each time: the account, and what the token is bound to (a pod, a node, a Secret), must be those of then.
 */
#include <openssl/crypto.h>

#include "apiserver/authn/authn_priv.h"
#include "apiserver/authn/jwt_verify.h"
#include "apiserver/cache.h"
#include "apiserver/inprocess.h"
#include "apiserver/meta.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/time.h"

/* Clocks may differ so much; and what is deleted is given so much time to end. */
#define LEEWAY_NS (60 * NS_PER_S)
#define LEGACY_ISSUER STR("kubernetes/serviceaccount")
#define LEGACY_CLAIM "kubernetes.io/serviceaccount/"
#define LAST_USED STR("kubernetes.io/legacy-token-last-used")
#define INVALID_SINCE STR("kubernetes.io/legacy-token-invalid-since")
#define ANNOTATION(name) STR("authentication.k8s.io/" name)

/* One token on its way through the checks. */
struct check {
	struct apiserver *server;
	struct arena *arena;
	str token;
	struct val claims;
	str namespace, account, account_uid;
	int64_t now_ns;
	struct authn_identity *ret;
};

static int refuse(struct err *err, const char *why) { return err_set(err, ERR_UNAUTHORIZED, "%s", why); }

static void annotate(struct check *c, str key, str value)
{
	c->ret->annotations = val_put(c->arena, c->ret->annotations, atom_make(c->arena, key), val_of_str(value));
}

/* ---- what the claims say ---- */

static bool is_issuer(const struct apiserver *s, str issuer)
{
	for (const char *const *p = s->options.authn.service_account_issuers; p && *p; p++)
		if (str_eq(issuer, str_of(*p)))
			return true;
	return false;
}

/* One text or a list of texts. */
static int audiences_of(struct check *c, const str **ret, size_t *ret_n, struct err *err)
{
	struct val aud = val_get(c->claims, aud);
	size_t n = val_is(aud, VAL_STRING) ? 1 : val_is(aud, VAL_LIST) ? val_len(aud) : 0;
	str *list = ARENA_ARRAY(c->arena, str, n + 1);
	*ret = list;
	*ret_n = n;
	if (!val_is_nil(aud) && !val_is(aud, VAL_STRING) && !val_is(aud, VAL_LIST))
		return refuse(err, "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience");
	for (size_t i = 0; i < n; i++) {
		struct val one = val_is(aud, VAL_LIST) ? val_at(aud, i) : aud;
		if (!val_is(one, VAL_STRING))
			return refuse(err, "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience");
		list[i] = val_as_str(one);
	}
	return 0;
}

/* Old tokens say nothing of their audience: they are for this server. */
static int check_audiences(struct check *c, const str *asked, size_t n_asked, struct err *err)
{
	const struct authn *n = c->server->authn;
	const str *list;
	size_t n_list;
	int r = audiences_of(c, &list, &n_list, err);
	if (r < 0)
		return r;
	if (!n_list) {
		annotate(c, ANNOTATION("legacy-token"), val_str(c->claims, sub));
		list = n->audiences;
		n_list = n->n_audiences;
	}
	c->ret->audiences = authn_common(c->arena, list, n_list, asked, n_asked, &c->ret->n_audiences);
	if (c->ret->n_audiences)
		return 0;
	return err_set(err, ERR_UNAUTHORIZED, "token audiences " STR_FMT " is invalid for the target audiences " STR_FMT,
		       STR_ARG(authn_quoted(c->arena, list, n_list)), STR_ARG(authn_quoted(c->arena, asked, n_asked)));
}

/* A claim with a time, in seconds; false when there is none. Hostile numbers are as good as the end of time. */
static int time_claim(struct val claim, bool *ret_given, int64_t *ret_ns, struct err *err)
{
	*ret_given = !val_is_nil(claim);
	if (*ret_given && !val_is(claim, VAL_INT) && !val_is(claim, VAL_DOUBLE))
		return refuse(err, "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate");
	double seconds = val_as_double(claim);
	*ret_ns = seconds >= 9e9 ? INT64_MAX / 2 : seconds <= -9e9 ? INT64_MIN / 2 : val_as_int(claim) * NS_PER_S;
	return 0;
}

static int check_times(struct check *c, struct err *err)
{
	bool given;
	int64_t at;
	int r = time_claim(val_get(c->claims, nbf), &given, &at, err);
	if (r < 0)
		return r;
	if (given && c->now_ns + LEEWAY_NS < at)
		return refuse(err, "service account token is not valid yet");
	if ((r = time_claim(val_get(c->claims, exp), &given, &at, err)) < 0)
		return r;
	if (given && c->now_ns - LEEWAY_NS > at)
		return refuse(err, "service account token has expired");
	if ((r = time_claim(val_get(c->claims, iat), &given, &at, err)) < 0)
		return r;
	return given && c->now_ns + LEEWAY_NS < at ? refuse(err, "service account token is issued in the future") : 0;
}

/* ---- what there is ---- */

/* (suspends) Borrowed until something suspends. The cache may be behind the store: what is not there is looked for again. */
static struct object *find(struct check *c, str resource, str name)
{
	struct kind *kind = kinds_find(&c->server->kinds, STR_NONE, resource);
	if (!kind || !name.n || str_chr(name, '/') >= 0 || str_chr(c->namespace, '/') >= 0)
		return NULL;
	str key = meta_key(c->arena, kind, c->namespace, name);
	struct object *o = cache_get(kind, key);
	if (!o && cache_wait_current(c->server->cache, NULL) == 0)
		o = cache_get(kind, key);
	return o;
}

static bool is_long_deleted(const struct check *c, const struct object *o)
{
	struct timestamp at;
	str text = val_str(o->val, metadata, deletionTimestamp);
	return text.n && time_unformat(text, &at) && at.seconds * NS_PER_S + at.nanos < c->now_ns - LEEWAY_NS;
}

static int check_account(struct check *c, struct err *err)
{
	struct object *o = find(c, STR("serviceaccounts"), c->account);
	if (!o)
		return err_set(err, ERR_UNAUTHORIZED, "serviceaccounts \"" STR_FMT "\" not found", STR_ARG(c->account));
	str uid = val_str(o->val, metadata, uid);
	if (!str_eq(uid, c->account_uid))
		return err_set(err, ERR_UNAUTHORIZED, "service account UID (" STR_FMT ") does not match claim (" STR_FMT ")",
			       STR_ARG(uid), STR_ARG(c->account_uid));
	if (is_long_deleted(c, o))
		return err_set(err, ERR_UNAUTHORIZED, "service account " STR_FMT "/" STR_FMT " has been deleted",
			       STR_ARG(c->namespace), STR_ARG(c->account));
	return 0;
}

/* What a token is bound to must be what it was: kind is its name in messages. */
static int check_bound(struct check *c, const char *kind, str resource, struct val ref, struct err *err)
{
	struct object *o = find(c, resource, val_str(ref, name));
	if (!o)
		return refuse(err, "service account token has been invalidated");
	str uid = val_str(o->val, metadata, uid), claimed = val_str(ref, uid);
	if (!str_eq(uid, claimed))
		return err_set(err, ERR_UNAUTHORIZED, "%s UID (" STR_FMT ") does not match service account %s ref claim (" STR_FMT ")",
			       kind, STR_ARG(uid), kind, STR_ARG(claimed));
	return is_long_deleted(c, o) ? refuse(err, "service account token has been invalidated") : 0;
}

static int check_bindings(struct check *c, struct val own, struct err *err)
{
	struct val secret = val_get(own, secret), pod = val_get(own, pod), node = val_get(own, node);
	int r = 0;
	if (!val_is_nil(secret))
		r = check_bound(c, "secret", STR("secrets"), secret, err);
	if (r == 0 && !val_is_nil(pod))
		r = check_bound(c, "pod", STR("pods"), pod, err);
	/* the node of a pod is only told */
	if (r == 0 && !val_is_nil(node) && val_is_nil(pod))
		r = check_bound(c, "node", STR("nodes"), node, err);
	return r;
}

/* ---- the user ---- */

static void add_extra(struct check *c, struct val_builder *b, const char *name, str value)
{
	if (value.n)
		val_add_member(b, atom_make(c->arena, str_of(name)), LIST(c->arena, val_of_str(value)));
}

static void make_user(struct check *c, struct val own)
{
	struct arena *a = c->arena;
	struct user *u = &c->ret->user;
	str *groups = ARENA_ARRAY(a, str, 2), id = val_str(c->claims, jti);
	groups[0] = STR("system:serviceaccounts");
	groups[1] = arena_printf(a, "system:serviceaccounts:" STR_FMT, STR_ARG(c->namespace));
	*u = (struct user){ .uid = c->account_uid, .groups = groups, .n_groups = 2 };
	u->name = arena_printf(a, "system:serviceaccount:" STR_FMT ":" STR_FMT, STR_ARG(c->namespace), STR_ARG(c->account));
	struct val pod = val_get(own, pod), node = val_get(own, node);
	bool has_pod = val_str(pod, name).n && val_str(pod, uid).n, has_node = val_str(node, name).n;
	struct val_builder b = val_builder(a);
	if (id.n)
		add_extra(c, &b, "authentication.kubernetes.io/credential-id", arena_join(a, STR("JTI="), id));
	add_extra(c, &b, "authentication.kubernetes.io/node-name", val_str(node, name));
	add_extra(c, &b, "authentication.kubernetes.io/node-uid", has_node ? val_str(node, uid) : STR_NONE);
	add_extra(c, &b, "authentication.kubernetes.io/pod-name", has_pod ? val_str(pod, name) : STR_NONE);
	add_extra(c, &b, "authentication.kubernetes.io/pod-uid", has_pod ? val_str(pod, uid) : STR_NONE);
	u->extra = b.n ? val_end_object(&b) : VAL_EMPTY;
}

/* A token that lives longer than was asked for, so that old clients go on: that it is used beyond that is told. */
static int check_stale(struct check *c, struct val own, struct err *err)
{
	bool given;
	int64_t at;
	int r = time_claim(val_get(own, warnafter), &given, &at, err);
	if (r < 0 || !given || !at || c->now_ns <= at)
		return r;
	annotate(c, ANNOTATION("stale-token"),
		 arena_printf(c->arena, "subject: " STR_FMT ", seconds after warning threshold: %lld",
			      STR_ARG(val_str(c->claims, sub)), (long long)(c->now_ns / NS_PER_S - at / NS_PER_S)));
	return 0;
}

static int check_bound_token(struct check *c, struct err *err)
{
	struct val own = val_get(c->claims, kubernetes_io);
	c->namespace = val_str(own, namespace);
	c->account = val_str(own, serviceaccount, name);
	c->account_uid = val_str(own, serviceaccount, uid);
	int r = check_times(c, err);
	if (r == 0)
		r = check_account(c, err);
	if (r == 0)
		r = check_bindings(c, own, err);
	if (r == 0)
		r = check_stale(c, own, err);
	if (r == 0)
		make_user(c, own);
	return r;
}

/* ---- tokens that are Secrets ---- */

static str date_of(int64_t wall_ns, char text[TIME_TEXT_MAX])
{
	return str_head(time_format((struct timestamp){ wall_ns / NS_PER_S, 0 }, text), sizeof "2006-01-02" - 1);
}

static struct val set_last_used(struct arena *a, struct val live, void *arg)
{
	const str *today = arg;
	struct val labels = val_get(live, metadata, labels);
	labels = val_sorted(a, val_put(a, labels, atom_make(a, LAST_USED), val_of_str(*today)));
	return val_with(a, live, labels, metadata, labels);
}

/* (suspends) Once a day the Secret is told that it is in use. */
static void note_use(struct check *c, str name, str last_used)
{
	char today[TIME_TEXT_MAX], tomorrow[TIME_TEXT_MAX];
	str day = date_of(c->now_ns, today);
	struct err err = ERR_INIT;
	if (str_eq(last_used, day) || str_eq(last_used, date_of(c->now_ns + 24 * 3600 * NS_PER_S, tomorrow)))
		return;
	if (inprocess_update(INPROCESS(c->server, "", "secrets"), c->namespace, name, set_last_used, &day, &err) < 0)
		log_warn("ignoring that the use of a token could not be noted", KV("namespace", c->namespace), KV("secret", name),
			 KV("error", &err));
}

static bool is_kept(struct check *c, struct val secret)
{
	str text = val_as_str(val_find(val_get(secret, data), STR("token")));
	char *room = arena_alloc(c->arena, base64_decoded_max(text.n) + 1, 1);
	size_t n;
	return base64_decode(room, text, &n, NULL) == 0 && n == c->token.n && CRYPTO_memcmp(room, c->token.p, n) == 0;
}

static int check_legacy_account(struct check *c, str secret, bool *ret_listed, struct err *err)
{
	struct object *o = find(c, STR("serviceaccounts"), c->account);
	if (!o)
		return err_set(err, ERR_UNAUTHORIZED, "serviceaccounts \"" STR_FMT "\" not found", STR_ARG(c->account));
	if (val_has(o->val, metadata, deletionTimestamp))
		return err_set(err, ERR_UNAUTHORIZED, "ServiceAccount " STR_FMT "/" STR_FMT " has been deleted",
			       STR_ARG(c->namespace), STR_ARG(c->account));
	str uid = val_str(o->val, metadata, uid);
	if (!str_eq(uid, c->account_uid))
		return err_set(err, ERR_UNAUTHORIZED, "ServiceAccount UID (" STR_FMT ") does not match claim (" STR_FMT ")",
			       STR_ARG(uid), STR_ARG(c->account_uid));
	*ret_listed = false;
	VAL_EACH(ref, val_get(o->val, secrets))
		*ret_listed = *ret_listed || str_eq(val_str(*ref, name), secret);
	return 0;
}

static int look_up_legacy(struct check *c, str name, struct err *err)
{
	bool listed = false;
	struct object *o = find(c, STR("secrets"), name);
	if (!o || val_has(o->val, metadata, deletionTimestamp))
		return refuse(err, "Token has been invalidated");
	if (!is_kept(c, o->val))
		return refuse(err, "Token does not match server's copy");
	struct val labels = val_get(o->val, metadata, labels);
	str last_used = arena_str(c->arena, val_as_str(val_find(labels, LAST_USED)));
	bool invalid = val_as_str(val_find(labels, INVALID_SINCE)).n;
	int r = check_legacy_account(c, name, &listed, err);
	if (r < 0)
		return r;
	if (invalid) {
		annotate(c, ANNOTATION("legacy-token-invalidated"),
			 arena_printf(c->arena, STR_FMT "/" STR_FMT, STR_ARG(name), STR_ARG(c->namespace)));
		note_use(c, name, last_used);
		return err_set(err, ERR_UNAUTHORIZED, "the token in secret " STR_FMT "/" STR_FMT " for service account " STR_FMT
			       "/" STR_FMT " has been marked invalid. Use tokens from the TokenRequest API or manually created "
			       "secret-based tokens, or remove the '" STR_FMT "' label from the secret to temporarily allow use of "
			       "this token", STR_ARG(c->namespace), STR_ARG(name), STR_ARG(c->namespace), STR_ARG(c->account),
			       STR_ARG(INVALID_SINCE));
	}
	if (listed) {
		c->ret->warning = STR("Use tokens from the TokenRequest API or manually created secret-based tokens instead of "
				      "auto-generated secret-based tokens.");
		annotate(c, ANNOTATION("legacy-token-autogenerated-secret"), name);
	} else {
		annotate(c, ANNOTATION("legacy-token-manual-secret"), name);
	}
	note_use(c, name, last_used);
	return 0;
}

static int check_legacy_token(struct check *c, struct err *err)
{
	str subject = val_str(c->claims, sub), secret = val_as_str(val_find(c->claims, STR(LEGACY_CLAIM "secret.name")));
	c->namespace = val_as_str(val_find(c->claims, STR(LEGACY_CLAIM "namespace")));
	c->account = val_as_str(val_find(c->claims, STR(LEGACY_CLAIM "service-account.name")));
	c->account_uid = val_as_str(val_find(c->claims, STR(LEGACY_CLAIM "service-account.uid")));
	const struct {
		str claim;
		const char *missing;
	} needed[] = {
		{ subject, "sub claim is missing" },
		{ c->namespace, "namespace claim is missing" },
		{ secret, "secretName claim is missing" },
		{ c->account, "serviceAccountName claim is missing" },
		{ c->account_uid, "serviceAccountUID claim is missing" },
	};
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (!needed[i].claim.n)
			return refuse(err, needed[i].missing);
	if (!str_eq(subject, arena_printf(c->arena, "system:serviceaccount:" STR_FMT ":" STR_FMT, STR_ARG(c->namespace),
					  STR_ARG(c->account))))
		return refuse(err, "sub claim is invalid");
	int r = c->server->options.authn.service_account_lookup ? look_up_legacy(c, secret, err) : 0;
	if (r == 0)
		make_user(c, VAL_EMPTY);
	return r;
}

/* ---- as one of the ways ---- */

static int token_user(void *self, struct arena *a, str token, const str *audiences, size_t n_audiences,
		      struct authn_identity *ret, struct err *err)
{
	struct apiserver *s = self;
	struct check c = { .server = s, .arena = a, .token = token, .now_ns = clock_wall_ns(), .ret = ret };
	struct jwt jwt;
	int r;
	if (!jwt_recall(s->authn->keys, NULL, a, token, &c.claims)) {
		if (jwt_peek(a, token, &jwt, NULL) < 0)
			return 0;
		str issuer = val_str(jwt.claims, iss);
		if (!str_eq(issuer, LEGACY_ISSUER) && !is_issuer(s, issuer))
			return 0;
		if ((r = jwt_verify(s->authn->keys, NULL, a, token, &c.claims, err)) < 0)
			return r;
	}
	if ((r = check_audiences(&c, audiences, n_audiences, err)) < 0)
		return r;
	bool legacy = str_eq(val_str(c.claims, iss), LEGACY_ISSUER);
	r = legacy ? check_legacy_token(&c, err) : check_bound_token(&c, err);
	return r < 0 ? r : 1;
}

int authn_service_account_way(struct apiserver *s, struct authn_way *ret, struct err *err)
{
	(void)err;
	*ret = (struct authn_way){ .name = "service accounts", .self = s->authn->keys ? s : NULL, .token = token_user };
	return 0;
}
