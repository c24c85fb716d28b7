/* Those who are asked by reviews. */
#include "apiserver/webhook_reviewer.h"

#include <errno.h>

#include "base/fiber.h"
#include "base/random.h"
#include "codec/atoms.h"

int webhook_reviewer_open(struct webhook_reviewer *w, struct apiserver *s, const char *kubeconfig_file, const struct type *type,
			  size_t answers_max, struct err *err)
{
	*w = (struct webhook_reviewer){ .type = type };
	int r = webhook_open(s, kubeconfig_file, &w->hook, err);
	if (r == 0)
		w->answers = webhook_cache_new(answers_max);
	return r;
}

void webhook_reviewer_done(struct webhook_reviewer *w)
{
	webhook_free(w->hook);
	webhook_cache_free(w->answers);
	*w = (struct webhook_reviewer){ 0 };
}

/* ---- asking ---- */

/* May the next try go better? Answers 500, 504 and 429, and connections that were cut. */
static bool may_pass(int r, const struct err *err)
{
	return r == -ERR_INTERNAL || r == -ERR_SERVER_TIMEOUT || r == -ERR_TOO_MANY_REQUESTS || err->sys == ECONNRESET;
}

/* (suspends) */
static int ask_again(struct webhook_reviewer *w, struct arena *a, struct val review, int64_t timeout_ms, int64_t pause_ms,
		     struct val *ret, struct err *err)
{
	enum { TRIES = 5, JITTER_PERCENT = 20 };
	struct err e = ERR_INIT;
	int r;
	for (int i = 1;; i++) {
		r = webhook_ask(w->hook, a, w->type, review, timeout_ms, ret, &e);
		if (r >= 0)
			return r;
		if (i == TRIES || !may_pass(r, &e))
			break;
		int64_t jitter = (int64_t)random_below((uint64_t)(pause_ms * JITTER_PERCENT / 100) + 1);
		if (fiber_sleep_ms(pause_ms + jitter, NULL) < 0)
			break; /* what went wrong says more than that there is no more time */
		pause_ms = pause_ms * 3 / 2;
		err_clear(&e);
	}
	if (err)
		*err = e;
	return r;
}

int webhook_reviewer_ask(struct webhook_reviewer *w, struct arena *a, struct val spec, int64_t timeout_ms, int64_t pause_ms,
			 struct frozen **ret, struct err *err)
{
	struct val answer, review = OBJECT(a, F(kind, VAL_STR(w->type->name)), F(apiVersion, VAL_STR(type_api_version(a, w->type))),
					   F(spec, spec));
	int r = ask_again(w, a, review, timeout_ms, pause_ms, &answer, err);
	if (r < 0)
		return r;
	struct val status = val_get(answer, status);
	*ret = val_freeze(val_exists(status) ? status : VAL_EMPTY_OBJECT);
	return 0;
}
