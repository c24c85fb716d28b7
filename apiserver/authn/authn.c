/*
 * STAGE_AUTHENTICATE: who asks. The ways are tried one after the other and the first that says yes wins: the client's
 * certificate, then a bearer token. A token that nobody knows is refused; no credentials at all make an anonymous user.
 */
#include <openssl/x509.h>

#include "apiserver/authn/authn_priv.h"
#include "apiserver/authn/token_file.h"
#include "apiserver/pipeline.h"
#include "base/clock.h"
#include "base/mem.h"

struct authn {
	struct tokens *tokens;
};

int authn_new(struct apiserver *s, struct authn **ret, struct err *err)
{
	struct authn *n = *ret = mem_zalloc(sizeof *n);
	const char *file = s->options.authn.token_auth_file;
	return file ? authn_token_load(file, &n->tokens, err) : 0;
}

void authn_free(struct authn *n)
{
	if (n)
		authn_token_free(n->tokens);
	free(n);
}

int authn_run(struct apiserver *s, struct err *err)
{
	(void)s, (void)err;
	return 0;
}

int authn_token(struct apiserver *s, struct arena *a, str token, const str *audiences, size_t n_audiences,
		struct authn_identity *ret, struct err *err)
{
	(void)a, (void)audiences, (void)n_audiences, (void)err;
	*ret = (struct authn_identity){ 0 };
	return s->authn->tokens && authn_token_find(s->authn->tokens, token, &ret->user);
}

static int unauthorized(struct request *q)
{
	return request_fail(q, ERR_UNAUTHORIZED, VAL_EMPTY, "Unauthorized");
}

/* What a connection's certificate says about its user: the same for all its requests. */
struct certified {
	struct arena arena;
	struct user user;
	bool valid;
	int64_t checked_ns;
};

/* Certificates expire while connections live, so once in a while they are looked at again. */
enum { CHECK_AGAIN_S = 60 };

static void certified_free(void *memo)
{
	struct certified *c = memo;
	arena_done(&c->arena);
	free(c);
}

static const struct certified *certified_of(struct http_peer *peer)
{
	struct certified *c = peer->memo;
	int64_t now = clock_now_ns();
	if (c && now - c->checked_ns < CHECK_AGAIN_S * NS_PER_S)
		return c;
	if (!c) {
		c = mem_zalloc(sizeof *c);
		arena_init(&c->arena);
		peer->memo = c;
		peer->memo_free = certified_free;
	}
	/* the arena grows by a name a minute: requests at work may still have the old one */
	c->valid = peer->verify_result == X509_V_OK && authn_x509_user(peer->certificate, &c->arena, &c->user, NULL) == 0;
	c->checked_ns = now;
	return c;
}

/* "Bearer <token>", in any case; empty when there is none. */
static str bearer_token(const struct request *q)
{
	str header = str_trim(http_request_header(q->http, STR("authorization"))), scheme, token;
	str_cut(header, ' ', &scheme, &token);
	static const char bearer[] = "bearer";
	if (scheme.n != sizeof bearer - 1)
		return STR_NONE;
	for (size_t i = 0; i < scheme.n; i++)
		if ((scheme.p[i] | 0x20) != bearer[i])
			return STR_NONE;
	return str_trim(token);
}

void user_add_group(struct arena *a, struct user *u, str group)
{
	str *groups = ARENA_ARRAY(a, str, u->n_groups + 1);
	for (size_t i = 0; i < u->n_groups; i++) {
		groups[i] = u->groups[i];
		if (str_eq(u->groups[i], group))
			return;
	}
	groups[u->n_groups++] = group;
	u->groups = groups;
}

int stage_authenticate(struct request *q, struct err *err)
{
	(void)err;
	struct http_peer *peer = q->http->peer;
	str token = bearer_token(q);
	if (peer->certificate) {
		const struct certified *c = certified_of(peer);
		if (c->valid) {
			q->user = c->user;
			q->authenticated = true;
		} else if (!token.n) {
			return unauthorized(q);
		}
	}
	if (!q->authenticated && token.n) {
		struct authn_identity identity;
		if (authn_token(q->server, q->arena, token, NULL, 0, &identity, NULL) <= 0)
			return unauthorized(q);
		q->user = identity.user;
		q->authenticated = true;
	}
	if (q->authenticated) {
		user_add_group(q->arena, &q->user, STR("system:authenticated"));
		return STAGE_NEXT;
	}
	if (!q->server->options.authn.anonymous_auth)
		return unauthorized(q);
	static const str unauthenticated = STR_INIT("system:unauthenticated");
	q->user = (struct user){ .name = STR("system:anonymous"), .groups = &unauthenticated, .n_groups = 1 };
	return STAGE_NEXT;
}
