/*
 * Bootstrap tokens, that nodes join a cluster with: "id.secret", kept as a Secret bootstrap-token-<id> of kube-system. Who has
 * one is system:bootstrap:<id>. A Secret that does not fit is no error: nobody learns which tokens there are.
 */
#include <openssl/crypto.h>

#include "apiserver/authn/authn_priv.h"
#include "apiserver/cache.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/time.h"

enum { ID_BYTES = 6, SECRET_BYTES = 16, GROUP_NAME_MAX = 256 };

static const str group_prefix = STR_INIT("system:bootstrappers:");

static bool is_word(str s, size_t n)
{
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9')))
			return false;
	return s.n == n;
}

/* One of the Secret's values, in the arena; empty when there is none. */
static str data_of(struct val secret, const char *key, struct arena *a)
{
	str text = val_as_str(val_find(val_get(secret, data), str_of(key)));
	char *room = arena_alloc(a, base64_decoded_max(text.n) + 1, 1);
	size_t n;
	return text.n && base64_decode(room, text, &n, NULL) == 0 ? str_span(room, n) : STR_NONE;
}

static bool has_expired(str text)
{
	struct timestamp end;
	int64_t now = clock_wall_ns();
	if (!text.n)
		return false;
	return time_parse(text, &end, NULL) < 0 || end.seconds < now / NS_PER_S ||
	       (end.seconds == now / NS_PER_S && end.nanos <= now % NS_PER_S);
}

/* system:bootstrappers: and then letters, digits, colons and dashes, of which the last one is a letter or digit. */
static bool is_group(str s)
{
	str name = str_skip(s, group_prefix.n);
	if (!str_starts(s, group_prefix) || !name.n || name.n > GROUP_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		bool joins = (name.p[i] == ':' || name.p[i] == '-') && i + 1 < name.n;
		if (!joins && !is_word(str_span(name.p + i, 1), 1))
			return false;
	}
	return true;
}

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* The group of all of them and those of the Secret: sorted, each once. False when one of them cannot be given. */
static bool take_groups(str text, struct arena *a, struct user *ret)
{
	size_t n = 0, unique = 0, most = 2;
	for (size_t i = 0; i < text.n; i++)
		most += text.p[i] == ',';
	str *groups = ARENA_ARRAY(a, str, most), group;
	groups[n++] = STR("system:bootstrappers");
	for (bool more = text.n; more;) {
		more = str_cut(text, ',', &group, &text);
		if (!is_group(group))
			return false;
		groups[n++] = group;
	}
	qsort(groups, n, sizeof *groups, by_text);
	for (size_t i = 0; i < n; i++)
		if (!unique || !str_eq(groups[i], groups[unique - 1]))
			groups[unique++] = groups[i];
	ret->groups = groups;
	ret->n_groups = unique;
	return true;
}

/* NULL, or what is wrong with the Secret. */
static const char *refuse(struct val secret, str id, str token, struct arena *a, struct user *ret)
{
	str kept = data_of(secret, "token-secret", a);
	if (val_has(secret, metadata, deletionTimestamp))
		return "it is deleted and awaiting removal";
	if (!str_eq(val_str(secret, type), STR("bootstrap.kubernetes.io/token")))
		return "it has another type";
	if (kept.n != token.n || CRYPTO_memcmp(kept.p, token.p, token.n) != 0)
		return "token-secret does not match";
	if (!str_eq(data_of(secret, "token-id", a), id))
		return "token-id does not match";
	if (has_expired(data_of(secret, "expiration", a)))
		return "it has expired";
	if (!str_eq(data_of(secret, "usage-bootstrap-authentication", a), STR("true")))
		return "usage-bootstrap-authentication is not true";
	return take_groups(data_of(secret, "auth-extra-groups", a), a, ret) ? NULL : "auth-extra-groups has an invalid group";
}

static int token_user(void *self, struct arena *a, str token, const str *audiences, size_t n_audiences,
		      struct authn_identity *ret, struct err *err)
{
	struct apiserver *s = self;
	str id, secret;
	(void)audiences, (void)n_audiences, (void)err;
	if (!str_cut(token, '.', &id, &secret) || !is_word(id, ID_BYTES) || !is_word(secret, SECRET_BYTES))
		return 0;
	str key = arena_printf(a, "kube-system/bootstrap-token-" STR_FMT, STR_ARG(id));
	struct object *o = cache_get(kinds_find(&s->kinds, STR_NONE, STR("secrets")), key);
	if (!o)
		return 0;
	const char *why = refuse(o->val, id, secret, a, &ret->user);
	if (why) {
		log_debug("a bootstrap token is refused", KV("secret", key), KV("reason", why));
		return 0;
	}
	ret->user.name = arena_printf(a, "system:bootstrap:" STR_FMT, STR_ARG(id));
	return 1;
}

int authn_bootstrap_way(struct apiserver *s, struct authn_way *ret, struct err *err)
{
	(void)err;
	*ret = (struct authn_way){ .name = "bootstrap tokens", .self = s->options.authn.bootstrap_tokens ? s : NULL,
				   .token = token_user };
	return 0;
}
