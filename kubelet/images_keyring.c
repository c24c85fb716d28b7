/*
 * Credentials for an image, as Docker's configuration files have them: by host, with * and ? in its parts, and maybe the beginning of a
 * path. Several may fit; they are tried in turn, the more special ones first.
 */
#include <stdlib.h>

#include "base/encoding.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "kubelet/credential_provider.h"
#include "kubelet/images_priv.h"

enum { CONFIG_MAX = 1 << 20, CREDENTIALS_MAX = 1000 };

/* ---- patterns ---- */

/* "host[:port]" and "/path" */
static void split_host(str text, str *ret_host, str *ret_path)
{
	ptrdiff_t slash = str_chr(text, '/');

	*ret_host = slash < 0 ? text : str_head(text, (size_t)slash);
	*ret_path = slash < 0 ? STR_NONE : str_skip(text, (size_t)slash);
}

/* Does a character fit what the pattern begins with: itself, ?, [a-z], [^a-z] or \x? A set that does not end fits nothing. */
static bool char_matches(str pattern, char c, str *ret_rest)
{
	bool negated, found = false;

	*ret_rest = str_skip(pattern, 1);
	if (pattern.p[0] == '?')
		return true;
	if (pattern.p[0] == '\\' && pattern.n > 1) {
		*ret_rest = str_skip(pattern, 2);
		return pattern.p[1] == c;
	}
	if (pattern.p[0] != '[')
		return pattern.p[0] == c;
	size_t i = 1 + (negated = pattern.n > 1 && pattern.p[1] == '^');
	for (bool first = true; i < pattern.n && (first || pattern.p[i] != ']'); first = false) {
		bool range = i + 2 < pattern.n && pattern.p[i + 1] == '-';
		found |= c >= pattern.p[i] && c <= pattern.p[range ? i + 2 : i];
		i += range ? 3 : 1;
	}
	*ret_rest = str_skip(pattern, i + 1);
	return i < pattern.n && found != negated;
}

/* Part of a host, with *, in steps of at most pattern times text: only the last * is ever taken back. */
static bool part_matches(str pattern, str text)
{
	str star = STR_NONE, star_text = STR_NONE, rest;

	while (text.n || pattern.n) {
		if (pattern.n && pattern.p[0] == '*') {
			star = pattern = str_skip(pattern, 1);
			star_text = text;
			continue;
		}
		if (pattern.n && text.n && char_matches(pattern, text.p[0], &rest)) {
			pattern = rest;
			text = str_skip(text, 1);
			continue;
		}
		if (!star.p || !star_text.n)
			return false;
		pattern = star;
		text = star_text = str_skip(star_text, 1);
	}
	return true;
}

static str cut_port(str *host)
{
	str port = STR_NONE;
	ptrdiff_t colon = str_rchr(*host, ':');

	if (colon >= 0 && str_chr(str_skip(*host, (size_t)colon), ']') < 0) {
		port = str_skip(*host, (size_t)colon + 1);
		*host = str_head(*host, (size_t)colon);
	}
	return port;
}

bool image_pattern_matches(str pattern, str repository)
{
	str host, path, target, target_path;

	split_host(pattern, &host, &path);
	split_host(repository, &target, &target_path);
	str port = cut_port(&host), target_port = cut_port(&target);
	if (!str_eq(port, target_port) || !str_starts(target_path, path))
		return false;
	for (bool more = true; more;) {
		str part, target_part;
		more = str_cut(host, '.', &part, &host);
		if (str_cut(target, '.', &target_part, &target) != more || !part_matches(part, target_part))
			return false;
	}
	return true;
}

/* "https://index.docker.io/v1/" is "index.docker.io". */
static str pattern_of(struct arena *a, str place)
{
	static const str schemes[] = { STR_INIT("https://"), STR_INIT("http://") };
	str host, path, ignored;

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (str_starts(place, schemes[i])) {
			place = str_skip(place, schemes[i].n);
			break;
		}
	(void)str_cut(place, '?', &place, &ignored);
	(void)str_cut(place, '#', &place, &ignored);
	split_host(place, &host, &path);
	if (str_starts(path, STR("/v1/")) || str_starts(path, STR("/v2/")))
		path = str_skip(path, 3);
	return str_eq(path, STR("/")) ? host : arena_join(a, host, path);
}

/* Does the image come from Docker's own registry? */
static bool is_default_registry(str repository)
{
	str first, rest;

	if (!str_cut(repository, '/', &first, &rest))
		return repository.n > 0;
	return first.n && (str_eq(first, STR("docker.io")) || str_eq(first, STR("index.docker.io")) ||
			   (str_chr(first, '.') < 0 && str_chr(first, ':') < 0));
}

/* ---- reading them ---- */

/* base64(user:password); the padding may be missing. */
static int decode_auth(struct arena *a, str auth, struct image_credential *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONFIG_MAX), plain = BUF_INIT(CONFIG_MAX);
	int r;

	buf_add(&text, auth);
	if (!str_ends(str_trim(auth), STR("=")))
		for (size_t n = auth.n; n % 4 == 2 || n % 4 == 3; n++)
			buf_addc(&text, '=');
	if ((r = base64_decode_buf(&plain, buf_str(&text), err)) < 0)
		return r;
	if (!str_cut(arena_str(a, buf_str(&plain)), ':', &ret->user, &ret->password))
		return err_set(err, ERR_BAD_REQUEST, "unable to parse auth field, must be formatted as base64(username:password)");
	return 0;
}

static struct val text_or_none(str s) { return s.n ? VAL_STR(s) : VAL_EMPTY; }

/* The SHA-256 of the JSON that Kubernetes makes of it. */
static str hash_of(struct arena *a, const struct image_credential *c, str email)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
	struct val v = OBJECT(a, F(username, text_or_none(c->user)), F(password, text_or_none(c->password)), F(email, text_or_none(email)));
	struct json_encode_options o = { 0 };
	char hex[SHA256_HEX + 1];

	if (json_encode(&b, v, &o, NULL) < 0)
		return STR_NONE;
	sha256_hex(buf_str(&b), hex);
	return arena_str(a, str_span(hex, SHA256_HEX));
}

static int add_auths(struct arena *a, struct val auths, struct val secret, struct image_credentials *all, struct err *err)
{
	VAL_EACH_MEMBER(m, auths) {
		struct image_credential c = { .pattern = pattern_of(a, atom_str(m->key)), .user = val_str(m->val, username),
					      .password = val_str(m->val, password), .secret = secret };
		int r = val_str(m->val, auth).n ? decode_auth(a, val_str(m->val, auth), &c, err) : 0;
		if (r < 0)
			return r;
		c.hash = hash_of(a, &c, val_str(m->val, email));
		if (all->n < CREDENTIALS_MAX)
			all->items[all->n++] = c;
	}
	return 0;
}

static int add_json(struct arena *a, str text, bool whole, struct val secret, struct image_credentials *all, struct err *err)
{
	struct json_decode_options o = { 0 };
	struct val v;
	int r = json_decode(a, text, &o, &v, err);

	return r < 0 ? r : add_auths(a, whole ? val_get(v, auths) : v, secret, all, err);
}

static int add_secret(struct arena *a, struct val secret, struct image_credentials *all, struct err *err)
{
	static const struct {
		str type, key;
		bool whole;                    /* a config.json, not only its "auths" */
	} kinds[] = {
		{ STR_INIT("kubernetes.io/dockerconfigjson"), STR_INIT(".dockerconfigjson"), true },
		{ STR_INIT("kubernetes.io/dockercfg"), STR_INIT(".dockercfg"), false },
	};
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
	int r;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		str data = val_as_str(val_find(val_get(secret, data), kinds[i].key));
		if (!data.n || !str_eq(val_str(secret, type), kinds[i].type))
			continue;
		if ((r = base64_decode_buf(&b, data, err)) < 0)
			return r;
		return add_json(a, arena_str(a, buf_str(&b)), kinds[i].whole, secret, all, err);
	}
	return 0;
}

/* The node's own; a file that cannot be read is as none. */
static void add_file(const struct images_manager *m, struct arena *a, struct image_credentials *all)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
	size_t before = all->n;

	if (!m->o.root || file_read(arena_printf(a, "%s/config.json", m->o.root).p, &b, NULL) < 0)
		return;
	if (add_json(a, arena_str(a, buf_str(&b)), true, VAL_EMPTY, all, NULL) < 0)
		all->n = before;
}

/* What a provider says is more of the same, without secret. */
struct gathering {
	struct arena *arena;
	struct image_credentials *all;
};

static void add_found(void *arg, struct val auth, struct val account)
{
	struct gathering *g = arg;
	size_t before = g->all->n;

	(void)add_auths(g->arena, auth, VAL_EMPTY, g->all, NULL);
	for (size_t i = before; i < g->all->n; i++)
		g->all->items[i].account = account;
}

/* ---- choosing ---- */

static int by_pattern(const void *x, const void *y)
{
	const struct image_credential *a = x, *b = y;

	return str_cmp(b->pattern, a->pattern);
}

/* Of items from `from` on those that fit, the more special first; those of one place in the order that they came in. */
static void choose(struct image_credentials *all, size_t from, str repository)
{
	size_t n = from, hub = from;

	for (size_t i = from; i < all->n; i++)
		if (image_pattern_matches(all->items[i].pattern, repository)) {
			struct image_credential c = all->items[i];
			size_t at = n++;
			memmove(&all->items[at + 1], &all->items[at], (i - at) * sizeof(c));
			for (; at > from && by_pattern(&all->items[at - 1], &c) > 0; at--)
				all->items[at] = all->items[at - 1];
			all->items[at] = c;
		}
	if (n > from || !is_default_registry(repository)) {
		all->n = n;
		return;
	}
	for (size_t i = from; i < all->n; i++)
		if (str_eq(all->items[i].pattern, STR("index.docker.io")))
			all->items[hub++] = all->items[i];
	all->n = hub;
}

int image_credentials_find(const struct images_manager *m, struct arena *a, struct val pod, struct val secrets, str repository,
			   struct image_credentials *ret, struct err *err)
{
	struct image_credentials all = { .items = ARENA_ARRAY(a, struct image_credential, CREDENTIALS_MAX) };
	struct gathering gathering = { a, &all };
	int r;

	VAL_EACH(secret, secrets)
		if ((r = add_secret(a, *secret, &all, err)) < 0)
			return r;
	choose(&all, 0, repository);
	size_t own = all.n;
	add_file(m, a, &all);
	choose(&all, own, repository);
	own = all.n;
	if (m->o.providers)
		credential_providers_ask(m->o.providers, a, repository, pod, add_found, &gathering);
	choose(&all, own, repository);
	*ret = all;
	return fiber_check(err);
}
