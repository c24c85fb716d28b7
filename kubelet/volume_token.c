/*
 * Service account tokens for projected volumes, kept until four fifths of their life or a day have passed. A server that does not
 * answer is no harm as long as the token of before is good.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "kubelet/volume_priv.h"

enum { LIFE_DEFAULT_S = 3600, LIFE_MAX_S = 24 * 3600, JITTER_S = 10 };

struct token {
	str key, pod_uid;
	char *text, *memory;             /* memory: of key and pod_uid */
	size_t n;
	int64_t expiry_s, life_s;
};

static void token_free(struct token *t)
{
	if (!t)
		return;
	if (t->text)
		explicit_bzero(t->text, t->n);
	free(t->text);
	free(t->memory);
	free(t);
}

static bool is_stale(const struct token *t, int64_t now_s)
{
	int64_t jitter = (int64_t)random_below(JITTER_S), issued = t->expiry_s - t->life_s;

	return now_s > issued + LIFE_MAX_S - jitter || now_s > t->expiry_s - t->life_s * 20 / 100 - jitter;
}

/* Named in a message, as client-go prints the request. */
static str token_key(struct arena *a, struct val pod, str audience, int64_t life_s)
{
	str audiences = audience.n ? arena_printf(a, "[]string{\"" STR_FMT "\"}", STR_ARG(audience)) : STR("[]string(nil)");

	return arena_printf(a, "\"" STR_FMT "\"/\"" STR_FMT "\"/" STR_FMT "/%" PRId64 "/v1.BoundObjectReference{Kind:\"Pod\", "
			    "APIVersion:\"v1\", Name:\"" STR_FMT "\", UID:\"" STR_FMT "\"}/\"\"",
			    STR_ARG(val_str(pod, spec, serviceAccountName)), STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(audiences),
			    life_s, STR_ARG(val_str(pod, metadata, name)), STR_ARG(val_str(pod, metadata, uid)));
}

static void token_keep(struct map *tokens, str key, str uid, str text, int64_t expiry_s, int64_t life_s)
{
	struct token *t = mem_zalloc(sizeof *t);

	t->memory = mem_alloc(key.n + uid.n + 1);
	memcpy(t->memory, key.p, key.n);
	memcpy(t->memory + key.n, uid.p, uid.n);
	t->key = str_span(t->memory, key.n);
	t->pod_uid = str_span(t->memory + key.n, uid.n);
	t->text = mem_alloc(text.n + 1);
	memcpy(t->text, text.p, text.n);
	t->n = text.n;
	t->expiry_s = expiry_s;
	t->life_s = life_s;
	token_free(map_put(tokens, t->key, t));
}

int volume_token(struct volumes *v, struct arena *a, struct val pod, struct val source, str *ret, struct err *err)
{
	const struct volumes_options *o = volumes_options(v);
	int64_t life_s = val_has(source, expirationSeconds) ? val_int(source, expirationSeconds) : LIFE_DEFAULT_S, expiry_s = 0;
	str key = token_key(a, pod, val_str(source, audience), life_s), text;
	struct token *t = map_get(volumes_tokens(v), key);

	if (t && !is_stale(t, clock_wall_ns() / NS_PER_S)) {
		*ret = arena_str(a, str_span(t->text, t->n));
		return 0;
	}
	int r = o->token ? o->token(o->arg, a, pod, val_str(source, audience), &life_s, &text, &expiry_s, err) :
			   err_set(err, ERR_UNAVAILABLE, "cannot use TokenManager when kubelet is in standalone mode");
	if (r == 0) {
		token_keep(volumes_tokens(v), key, val_str(pod, metadata, uid), text, expiry_s, life_s);
		*ret = text;
		return 0;
	}
	t = map_get(volumes_tokens(v), key);
	if (!t)
		return err_wrap(err, r, "failed to fetch token");
	if (clock_wall_ns() / NS_PER_S > t->expiry_s)
		return err_wrap(err, r, "token " STR_FMT " expired and refresh failed", STR_ARG(key));
	log_warn("cannot renew a token; the old one is still good", KV("pod", val_str(pod, metadata, name)),
		 KV("error", (const struct err *)err));
	*ret = arena_str(a, str_span(t->text, t->n));
	return 0;
}

void volume_tokens_forget(struct volumes *v, str pod_uid)
{
	struct map_iter it = map_iter(volumes_tokens(v));
	struct token *t;

	while ((t = map_next(&it, NULL)))
		if (!pod_uid.n || str_eq(t->pod_uid, pod_uid)) {
			(void)map_remove(volumes_tokens(v), t->key);
			token_free(t);
		}
}
