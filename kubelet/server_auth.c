/*
 * Who asks: a certificate of the CA, a token that the API server knows (TokenReview), or, where that is allowed, nobody in particular.
 * A credential that is shown must be good: a bad one is refused also where none would do. What they may do is the API server's to say
 * (SubjectAccessReview), about a subresource of this node; some paths are covered by two, of which one is enough.
 *
 * Answers are remembered for a while, the least recently used ones forgotten first. Keys are SHA-256 sums: no token stays in memory.
 */
#include <stdlib.h>

#include "apiserver/authn/x509.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "client/client.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/server_priv.h"

enum { REMEMBERED_MAX = 8192, REVIEW_MS = 10000, SPEC_MAX = 1 << 20 };

/* ---- what was said before ---- */

struct said {
	struct list link;             /* in memory.order */
	char key[SHA256_HEX + 1];
	int64_t until_ns;             /* clock_now_ns */
	struct frozen *answer;
};

struct memory {
	struct map by_key;
	struct list order;            /* the most recently used first */
};

struct kubelet_auth {
	struct memory tokens;         /* answers: UserInfo, or null for nobody */
	struct memory rights;         /* answers: true or false */
	int64_t token_s, allowed_s, denied_s;
};

static void forget(struct memory *m, struct said *s)
{
	map_remove(&m->by_key, str_of(s->key));
	list_remove(&s->link);
	frozen_unref(s->answer);
	free(s);
}

static void memory_init(struct memory *m)
{
	map_init(&m->by_key);
	list_init(&m->order);
}

static void memory_done(struct memory *m)
{
	while (!list_empty(&m->order))
		forget(m, CONTAINER_OF(m->order.next, struct said, link));
	map_done(&m->by_key);
}

struct kubelet_auth *kubelet_auth_new(int64_t token_s, int64_t allowed_s, int64_t denied_s)
{
	struct kubelet_auth *auth = mem_zalloc(sizeof *auth);

	memory_init(&auth->tokens);
	memory_init(&auth->rights);
	auth->token_s = token_s;
	auth->allowed_s = allowed_s;
	auth->denied_s = denied_s;
	return auth;
}

void kubelet_auth_free(struct kubelet_auth *auth)
{
	if (!auth)
		return;
	memory_done(&auth->tokens);
	memory_done(&auth->rights);
	free(auth);
}

/* The answer, copied into the arena. */
static bool recall(struct memory *m, str key, struct arena *a, struct val *ret)
{
	struct said *s = map_get(&m->by_key, key);

	if (!s)
		return false;
	if (s->until_ns <= clock_now_ns()) {
		forget(m, s);
		return false;
	}
	list_remove(&s->link);
	list_add_front(&m->order, &s->link);
	*ret = val_copy(a, s->answer->val);
	return true;
}

static void remember(struct memory *m, str key, struct val answer, int64_t seconds)
{
	struct said *s = map_get(&m->by_key, key);

	if (s)
		forget(m, s);
	if (seconds <= 0)
		return;
	if (map_len(&m->by_key) >= REMEMBERED_MAX)
		forget(m, CONTAINER_OF(m->order.prev, struct said, link));
	s = mem_zalloc(sizeof *s);
	memcpy(s->key, key.p, MIN(key.n, (size_t)SHA256_HEX));
	s->until_ns = clock_now_ns() + seconds * NS_PER_S;
	s->answer = val_freeze(answer);
	map_put(&m->by_key, str_of(s->key), s);
	list_add_front(&m->order, &s->link);
}

/* ---- who ---- */

static str bearer_token(const struct http_exchange *x)
{
	str header = str_trim(http_request_header(x, STR("authorization"))), scheme, token, rest;

	str_cut(header, ' ', &scheme, &token);
	str_cut(token, ' ', &token, &rest);
	bool bearer = scheme.n == 6 && strncasecmp(scheme.p, "bearer", 6) == 0;
	return bearer ? token : STR_NONE;
}

static bool is_in(const struct user *u, str group)
{
	for (size_t i = 0; i < u->n_groups; i++)
		if (str_eq(u->groups[i], group))
			return true;
	return false;
}

static void user_add_group(struct arena *a, struct user *u, str group)
{
	str *groups = ARENA_ARRAY(a, str, u->n_groups + 1);

	if (is_in(u, group))
		return;
	if (u->n_groups)
		memcpy(groups, u->groups, u->n_groups * sizeof(*groups));
	groups[u->n_groups++] = group;
	u->groups = groups;
}

static void user_of_info(struct arena *a, struct val info, struct user *ret)
{
	struct val list = val_get(info, groups);
	str *groups = ARENA_ARRAY(a, str, val_len(list));

	*ret = (struct user){ .name = val_str(info, username), .uid = val_str(info, uid), .groups = groups, .extra = val_get(info, extra) };
	VAL_EACH(g, list)
		groups[ret->n_groups++] = val_as_str(*g);
}

/* (suspends) *ret: UserInfo, or null for nobody. */
static int review_token(struct kubelet_call *c, str token, struct val *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	struct val spec = OBJECT(c->arena, F(token, val_of_str(token)));
	DEADLINE_SCOPE(REVIEW_MS);
	int r = client_create(c->o->client, TYPE(authentication_v1, TokenReview), OBJECT(c->arena, F(spec, spec)), NULL, &answer, err);

	if (r < 0)
		return r;
	struct val status = val_get(answer->val, status);
	*ret = val_bool(status, authenticated) ? val_copy(c->arena, val_get(status, user)) : VAL_NULL_VALUE;
	return 0;
}

/* 1: known; -ERR_UNAUTHORIZED: not. */
static int token_user(struct kubelet_call *c, str token, struct user *ret, struct err *err)
{
	struct kubelet_auth *auth = c->o->auth;
	char key[SHA256_HEX + 1];
	struct val info;

	sha256_hex(token, key);
	if (!auth || !recall(&auth->tokens, str_of(key), c->arena, &info)) {
		int r = review_token(c, token, &info, err);
		if (r < 0)
			return r;
		if (auth)
			remember(&auth->tokens, str_of(key), info, auth->token_s);
	}
	if (!val_is(info, VAL_OBJECT))
		return err_set(err, ERR_UNAUTHORIZED, "invalid bearer token");
	user_of_info(c->arena, info, ret);
	return 1;
}

/* 1: known; 0: no certificate. */
static int certificate_user(struct kubelet_call *c, struct user *ret, struct err *err)
{
	const struct http_peer *peer = c->x->peer;

	if (!peer || !peer->certificate)
		return 0;
	if (peer->verify_result != 0)
		return err_set(err, ERR_UNAUTHORIZED, "x509: certificate signed by unknown authority");
	return authn_x509_user(peer->certificate, c->arena, ret, err);
}

/* 1: known. */
static int find_user(struct kubelet_call *c, struct user *ret, struct err *err)
{
	int r = certificate_user(c, ret, err);
	str token = bearer_token(c->x);

	if (r <= 0 && token.n && c->o->client && !c->o->no_tokens)
		r = token_user(c, token, ret, err);
	if (r > 0)
		user_add_group(c->arena, ret, STR("system:authenticated"));
	if (r == 0 && c->o->anonymous) {
		*ret = (struct user){ .name = STR("system:anonymous") };
		user_add_group(c->arena, ret, STR("system:unauthenticated"));
		r = 1;
	}
	return r;
}

/* ---- what ---- */

static str api_verb(str method)
{
	static const struct {
		const char *method, *verb;
	} verbs[] = { { "POST", "create" }, { "GET", "get" }, { "PUT", "update" }, { "PATCH", "patch" }, { "DELETE", "delete" } };

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (str_eq(method, str_of(verbs[i].method)))
			return str_of(verbs[i].verb);
	return STR_NONE;
}

/* The subresources of which one has to be allowed; the second may be empty. */
static void subresources(const struct kubelet_call *c, str ret[2])
{
	static const struct {
		const char *path, *first, *second;
	} known[] = {
		{ "pods", "pods", "proxy" }, { "runningpods", "pods", "proxy" }, { "healthz", "healthz", "proxy" },
		{ "configz", "configz", "proxy" }, { "stats", "stats", "" }, { "metrics", "metrics", "" }, { "logs", "log", "" },
		{ "checkpoint", "checkpoint", "" },
	};

	ret[0] = STR("proxy");
	ret[1] = STR_NONE;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (!str_eq(c->parts[0], str_of(known[i].path)))
			continue;
		ret[0] = str_of(known[i].first);
		ret[1] = str_of(known[i].second);
	}
}

static struct val review_spec(struct kubelet_call *c, const struct user *u, str verb, str subresource)
{
	struct val_builder groups = val_builder(c->arena);

	for (size_t i = 0; i < u->n_groups; i++)
		val_add_item(&groups, val_of_str(u->groups[i]));
	struct val what = OBJECT(c->arena, F(verb, verb.n ? val_of_str(verb) : VAL_EMPTY), F(version, VAL_LIT("v1")),
				 F(resource, VAL_LIT("nodes")), F(subresource, val_of_str(subresource)),
				 F(name, val_of_str(c->o->node->name)));
	return OBJECT(c->arena, F(resourceAttributes, what), F(user, val_of_str(u->name)), F(groups, val_end_list(&groups)),
		      F(extra, val_len(u->extra) ? u->extra : VAL_EMPTY), F(uid, u->uid.n ? val_of_str(u->uid) : VAL_EMPTY));
}

/* (suspends) */
static int review_access(struct kubelet_call *c, struct val spec, bool *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	DEADLINE_SCOPE(REVIEW_MS);
	int r = client_create(c->o->client, TYPE(authorization_v1, SubjectAccessReview), OBJECT(c->arena, F(spec, spec)), NULL, &answer, err);

	if (r == 0)
		*ret = val_bool(answer->val, status, allowed) && !val_bool(answer->val, status, denied);
	return r;
}

static int may(struct kubelet_call *c, struct val spec, bool *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(SPEC_MAX);
	struct kubelet_auth *auth = c->o->auth;
	char key[SHA256_HEX + 1];
	struct val answer;

	if (!auth)
		return review_access(c, spec, ret, err);
	int r = json_encode(&json, spec, &(struct json_encode_options){ 0 }, err);
	if (r < 0)
		return r;
	sha256_hex(buf_str(&json), key);
	if (recall(&auth->rights, str_of(key), c->arena, &answer)) {
		*ret = val_as_bool(answer);
		return 0;
	}
	if ((r = review_access(c, spec, ret, err)) == 0)
		remember(&auth->rights, str_of(key), val_of_bool(*ret), *ret ? auth->allowed_s : auth->denied_s);
	return r;
}

static bool forbidden(struct kubelet_call *c, const struct user *u, str verb, const str asked[2])
{
	call_error(c, 403, "Forbidden (user=" STR_FMT ", verb=" STR_FMT ", resource=nodes, subresource(s)=[" STR_FMT "%s" STR_FMT "])\n",
		   STR_ARG(u->name), STR_ARG(verb), STR_ARG(asked[0]), asked[1].n ? " " : "", STR_ARG(asked[1]));
	return false;
}

bool call_is_allowed(struct kubelet_call *c)
{
	struct err err = ERR_INIT;
	struct user user = { 0 };
	str asked[2], verb = api_verb(c->x->method);
	bool allowed = false;

	if (find_user(c, &user, &err) <= 0) {
		if (err.code)
			log_info("a request could not be authenticated", KV("peer", c->x->peer->address), KV("error", &err));
		call_error(c, 401, "Unauthorized");
		return false;
	}
	if (c->o->allow_all)
		return true;
	subresources(c, asked);
	for (int i = 0; i < 2 && asked[i].n && !allowed && c->o->client; i++) {
		if (may(c, review_spec(c, &user, verb, asked[i]), &allowed, &err) == 0)
			continue;
		log_warn("a request could not be authorized", KV("user", user.name), KV("error", &err));
		call_error(c, 500, "Authorization error (user=" STR_FMT ", verb=" STR_FMT ", resource=nodes, subresource=" STR_FMT ")",
			   STR_ARG(user.name), STR_ARG(verb), STR_ARG(asked[i]));
		return false;
	}
	return allowed || forbidden(c, &user, verb, asked);
}
