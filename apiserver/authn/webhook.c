/*
 * Tokens that another server knows: it is asked by a TokenReview. What it says about a token is kept for a while, yes and no
 * alike; failures are not. Several requests with the same token at the same time are one question.
 */
#include "apiserver/webhook_reviewer.h"

#include "apiserver/authn/authn_priv.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { ANSWERS_MAX = 32 * 1024, LOOKUP_MS = 30 * 1000 };

/* A question that is being asked. The fiber that asks it looks after it; those who wait hold references. */
struct flight {
	struct webhook_cache_key key;
	struct fiber_cond ended;
	bool over;
	unsigned refs;
	int result;
	struct frozen *answer;        /* the TokenReview's status */
	struct err err;
};

struct way {
	struct apiserver *server;
	struct webhook_reviewer reviewer;
	int64_t ttl_ns;
	struct map flights;
};

static str flight_key(const struct flight *f) { return str_span((const char *)f->key.sum, sizeof f->key.sum); }

static void flight_unref(struct flight *f)
{
	if (--f->refs)
		return;
	frozen_unref(f->answer);
	free(f);
}

/* ---- asking ---- */

static struct val audience_list(struct arena *a, const str *audiences, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, VAL_STR(audiences[i]));
	return val_end_list(&b);
}

/* (suspends) */
static int ask(struct way *w, str token, const str *audiences, size_t n, struct frozen **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val spec = OBJECT(&a, F(token, VAL_STR(token)), F(audiences, audience_list(&a, audiences, n)));
	DEADLINE_SCOPE(LOOKUP_MS);
	return webhook_reviewer_ask(&w->reviewer, &a, spec, 0, WEBHOOK_PAUSE_MS, ret, err);
}

/* "I could not find out" is no answer to be kept. */
static bool is_failure(struct val status) { return !val_bool(status, authenticated) && val_str(status, error).n; }

/* (suspends) Asks, for all who wait for it. */
static struct flight *fly(struct way *w, const struct webhook_cache_key *key, str token, const str *audiences, size_t n)
{
	struct flight *f = mem_zalloc(sizeof *f);
	f->key = *key;
	f->refs = 2;
	fiber_cond_init(&f->ended, "the answer of a token webhook");
	map_put(&w->flights, flight_key(f), f);
	f->result = ask(w, token, audiences, n, &f->answer, &f->err);
	if (f->result < 0)
		log_error("a webhook that knows tokens could not be asked", KV("error", &f->err));
	else if (!is_failure(f->answer->val))
		webhook_cache_put(w->reviewer.answers, key, f->answer, w->ttl_ns);
	f->over = true;
	map_remove(&w->flights, flight_key(f));
	fiber_cond_broadcast(&f->ended);
	flight_unref(f);
	return f;
}

/* (suspends) The answer as a reference, from whoever has it. */
static int find_answer(struct way *w, const struct webhook_cache_key *key, str token, const str *audiences, size_t n,
		       struct frozen **ret, struct err *err)
{
	for (;;) {
		int r = 0;
		if ((*ret = webhook_cache_get(w->reviewer.answers, key)))
			return 0;
		struct flight *f = map_get(&w->flights, str_span((const char *)key->sum, sizeof key->sum));
		bool mine = !f;
		if (mine)
			f = fly(w, key, token, audiences, n);
		else
			f->refs++;
		while (!f->over && (r = fiber_cond_wait(&f->ended, err)) == 0)
			;
		/* One who was canceled while asking for all does not speak for the others. */
		bool again = r == 0 && !mine && f->result == -ERR_CANCELED;
		if (r == 0 && f->result < 0 && err)
			*err = f->err;
		if (r == 0)
			r = f->result;
		if (r == 0)
			*ret = frozen_ref(f->answer);
		flight_unref(f);
		if (!again)
			return r;
	}
}

/* ---- reading the answer ---- */

static struct user user_of(struct arena *a, struct val info)
{
	struct val groups = val_get(info, groups);
	str *list = ARENA_ARRAY(a, str, val_len(groups));
	for (size_t i = 0; i < val_len(groups); i++)
		list[i] = arena_str(a, val_as_str(val_at(groups, i)));
	return (struct user){ .name = arena_str(a, val_str(info, username)), .uid = arena_str(a, val_str(info, uid)),
			      .groups = list, .n_groups = val_len(groups), .extra = val_copy(a, val_get(info, extra)) };
}

/* The audiences that the answer names; one that names none knows only tokens of this server. */
static const str *meant_for(struct way *w, struct arena *a, struct val got, size_t *ret_n)
{
	if (!val_len(got))
		return authn_list(a, w->server->options.authn.api_audiences, ret_n);
	str *list = ARENA_ARRAY(a, str, val_len(got));
	for (size_t i = 0; i < val_len(got); i++)
		list[i] = val_as_str(val_at(got, i));
	*ret_n = val_len(got);
	return list;
}

static int webhook_token(void *self, struct arena *a, str token, const str *audiences, size_t n_audiences,
			 struct authn_identity *ret, struct err *err)
{
	struct way *w = self;
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	str *texts = ARENA_ARRAY(a, str, n_audiences + 1);
	size_t n;
	texts[0] = token;
	for (size_t i = 0; i < n_audiences; i++)
		texts[i + 1] = audiences[i];
	struct webhook_cache_key key = webhook_cache_key(w->reviewer.answers, texts, n_audiences + 1);
	int r = find_answer(w, &key, token, audiences, n_audiences, &answer, err);
	if (r < 0)
		return r;
	struct val status = answer->val;
	*ret = (struct authn_identity){ 0 };
	const str *got = meant_for(w, a, val_get(status, audiences), &n);
	ret->audiences = authn_common(a, got, n, audiences, n_audiences, &ret->n_audiences);
	if (!ret->n_audiences)
		return 0;
	if (is_failure(status))
		return err_set(err, ERR_UNAUTHORIZED, STR_FMT, STR_ARG(val_str(status, error)));
	if (!val_bool(status, authenticated))
		return 0;
	ret->user = user_of(a, val_get(status, user));
	return 1;
}

/* ---- making ---- */

static void way_free(void *self)
{
	struct way *w = self;
	webhook_reviewer_done(&w->reviewer);
	map_done(&w->flights);
	free(w);
}

int authn_webhook_way(struct apiserver *s, struct authn_way *ret, struct err *err)
{
	const struct authn_options *o = &s->options.authn;
	*ret = (struct authn_way){ .name = "webhook" };
	if (!o->webhook_config_file)
		return 0;
	const struct type *type = webhook_review_type(o->webhook_version, TYPE(authentication_v1, TokenReview),
							TYPE(authentication_v1beta1, TokenReview));
	if (!type)
		return err_set(err, ERR_INVALID,
			       "unsupported authentication webhook version \"%s\", supported versions are \"v1\", \"v1beta1\"",
			       o->webhook_version);
	struct webhook_reviewer reviewer;
	int r = webhook_reviewer_open(&reviewer, s, o->webhook_config_file, type, ANSWERS_MAX, err);
	if (r < 0)
		return err_wrap(err, r, "--authentication-token-webhook-config-file");
	struct way *w = mem_zalloc(sizeof *w);
	*w = (struct way){ .server = s, .reviewer = reviewer, .ttl_ns = o->webhook_cache_ttl_ns };
	map_init(&w->flights);
	ret->self = w;
	ret->token = webhook_token;
	ret->free = way_free;
	return 0;
}
