/*
 * The issuers of --authentication-config: one way made of one way per issuer. When the file changes, new ones are made, and take
 * over once all of them can tell whom tokens stand for; the old ones go when the last request that asks them has its answer. What
 * the file says about strangers counts from the start of the server and cannot be changed, as in Kubernetes.
 */
#include <stdlib.h>

#include "apiserver/authn/authn_priv.h"
#include "apiserver/config_file.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"

enum { READY_MS = 60000, READY_LOOK_MS = 100 };

/* What one text of the file says. */
struct set {
	unsigned refs;
	struct arena arena;
	struct authn_anonymous anonymous;
	struct authn_way ways[AUTHN_ISSUERS_MAX];
	size_t n;
	struct fiber_group runners;   /* one per way */
};

struct issuers {
	struct apiserver *server;
	struct config_file file;
	struct set *now;
};

/* ---- sets ---- */

static void set_unref(struct set *t)
{
	if (!t || --t->refs)
		return;
	for (size_t i = 0; i < t->n; i++)
		t->ways[i].free(t->ways[i].self);
	arena_done(&t->arena);
	free(t);
}

static void set_unrefp(struct set **t) { set_unref(*t); }

static struct set *set_ref(struct set *t)
{
	t->refs++;
	return t;
}

static int set_new(struct issuers *x, struct set **ret, struct err *err)
{
	struct set *t = mem_zalloc(sizeof *t);
	t->refs = 1;
	t->anonymous.enabled = x->server->options.authn.anonymous_auth;
	fiber_group_init(&t->runners);
	int r = authn_config_read(x->server, &t->arena, buf_str(&x->file.text), t->ways, &t->n, &t->anonymous, err);
	if (r < 0)
		set_unref(t);
	else
		*ret = t;
	return r;
}

static int set_start(struct set *t, struct err *err)
{
	int r = 0;
	for (size_t i = 0; i < t->n && r == 0; i++)
		r = fiber_group_spawn(&t->runners, authn_run_way, &t->ways[i], err, "issuer");
	return r;
}

static bool set_is_ready(const struct set *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!t->ways[i].is_ready(t->ways[i].self))
			return false;
	return true;
}

/* (suspends) */
static int set_wait_ready(const struct set *t, struct err *err)
{
	DEADLINE_SCOPE(READY_MS);
	int r = 0;
	while (!set_is_ready(t) && r == 0)
		r = fiber_sleep_ms(READY_LOOK_MS, err);
	return r;
}

/* ---- new ones ---- */

static bool same_anonymous(const struct authn_anonymous *a, const struct authn_anonymous *b)
{
	bool same = a->enabled == b->enabled && a->n_paths == b->n_paths;
	for (size_t i = 0; same && i < a->n_paths; i++)
		same = str_eq(a->paths[i], b->paths[i]);
	return same;
}

/* (suspends) */
static int take_over(struct issuers *x, struct err *err)
{
	struct set *next = NULL;
	int r = set_new(x, &next, err);
	if (r < 0)
		return r;
	if (!same_anonymous(&next->anonymous, &x->now->anonymous))
		r = err_set(err, ERR_INVALID, "anonymous: Forbidden: changed from initial configuration file");
	if (r == 0 && (r = set_start(next, err)) == 0 && (r = set_wait_ready(next, err)) < 0)
		x->file.seen = false; /* tried again with the same text: the issuers may be there by then */
	if (r == 0) {
		struct set *old = x->now;
		x->now = next;
		x->server->authn->anonymous = next->anonymous; /* the same, in memory that stays */
		next = old;
	}
	fiber_group_done(&next->runners);
	set_unref(next);
	return r;
}

static void look(struct issuers *x)
{
	struct err why = ERR_INIT;
	int r = config_file_look(&x->file, &why);
	if (r > 0 && (r = take_over(x, &why)) == 0)
		log_info("reloaded authentication config", KV("file", x->file.path));
	if (r < 0 && r != -ERR_CANCELED)
		log_error("failed to reload authentication config; the old one stays", KV("file", x->file.path), KV("error", &why));
}

/* ---- the way ---- */

static int issuers_run(void *self, struct err *err)
{
	struct issuers *x = self;
	int r = set_start(x->now, err);
	while (r == 0 && (r = fiber_sleep_ms(CONFIG_LOOK_AGAIN_MS, err)) == 0)
		look(x);
	fiber_group_done(&x->now->runners);
	return r;
}

/* At most one of them knows a token's issuer. */
static int issuers_token(void *self, struct arena *a, str token, const str *audiences, size_t n_audiences,
			 struct authn_identity *ret, struct err *err)
{
	struct issuers *x = self;
	CLEANUP(set_unrefp) struct set *t = set_ref(x->now);
	int r = 0;
	for (size_t i = 0; i < t->n && r == 0; i++)
		r = t->ways[i].token(t->ways[i].self, a, token, audiences, n_audiences, ret, err);
	return r;
}

static void issuers_free(void *self)
{
	struct issuers *x = self;
	set_unref(x->now);
	config_file_done(&x->file);
	free(x);
}

int authn_issuers_way(struct apiserver *s, struct authn_way *ret, struct err *err)
{
	*ret = (struct authn_way){ .name = "issuers" };
	if (!s->options.authn.config_file)
		return 0;
	struct issuers *x = mem_zalloc(sizeof *x);
	x->server = s;
	config_file_init(&x->file, s->options.authn.config_file);
	int r = config_file_look(&x->file, err);
	if (r < 0)
		err_wrap(err, r, "failed to load authentication configuration from file \"%s\"", x->file.path);
	else
		r = set_new(x, &x->now, err);
	if (r < 0) {
		issuers_free(x);
		return r;
	}
	s->authn->anonymous = x->now->anonymous;
	*ret = (struct authn_way){ .name = "issuers", .self = x, .token = issuers_token, .run = issuers_run, .free = issuers_free };
	return 0;
}
