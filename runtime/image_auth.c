#include "runtime/image_auth.h"

#include "base/buf.h"
#include "base/encoding.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "net/http1.h"

enum { CONFIG_MAX = 1 << 20 };

/* ---- challenges ---- */

static bool is_token_char(char c) { return http1_is_token(str_span(&c, 1)); }

static str take_token(str *s)
{
	size_t n = 0;
	while (n < s->n && is_token_char(s->p[n]))
		n++;
	str token = str_head(*s, n);
	*s = str_skip(*s, n);
	return token;
}

static void skip_separators(str *s)
{
	while (s->n && (s->p[0] == ' ' || s->p[0] == '\t' || s->p[0] == ','))
		*s = str_skip(*s, 1);
}

static str take_quoted(struct arena *a, str *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	size_t i = 1;
	for (; i < s->n && s->p[i] != '"'; i++) {
		if (s->p[i] == '\\' && i + 1 < s->n)
			i++;
		buf_addc(&b, s->p[i]);
	}
	*s = str_skip(*s, i + 1);
	return arena_str(a, buf_str(&b));
}

static void set_param(struct auth_challenge *c, str name, str value)
{
	if (http1_eq_nocase(name, STR("realm")))
		c->realm = value;
	else if (http1_eq_nocase(name, STR("service")))
		c->service = value;
	else if (http1_eq_nocase(name, STR("scope")))
		c->scope = value;
	else if (http1_eq_nocase(name, STR("error")))
		c->error = value;
}

static enum auth_scheme scheme_of(str word)
{
	if (http1_eq_nocase(word, STR("bearer")))
		return AUTH_BEARER;
	return http1_eq_nocase(word, STR("basic")) ? AUTH_BASIC : AUTH_NONE;
}

/* A word that no '=' follows begins the next challenge. */
static void parse_header(struct arena *a, str s, struct auth_challenge *best)
{
	struct auth_challenge c = { 0 };
	for (skip_separators(&s); s.n; skip_separators(&s)) {
		str word = take_token(&s);
		if (!word.n)
			break;
		if (!s.n || s.p[0] != '=') {
			if (c.scheme > best->scheme)
				*best = c;
			c = (struct auth_challenge){ .scheme = scheme_of(word) };
			continue;
		}
		s = str_skip(s, 1);
		str value = s.n && s.p[0] == '"' ? take_quoted(a, &s) : arena_str(a, take_token(&s));
		set_param(&c, word, value);
	}
	if (c.scheme > best->scheme)
		*best = c;
}

void auth_challenge_parse(struct arena *a, const struct http_header *headers, size_t n, struct auth_challenge *ret)
{
	*ret = (struct auth_challenge){ 0 };
	for (size_t i = 0; i < n; i++)
		if (str_eq(headers[i].name, STR("www-authenticate")))
			parse_header(a, headers[i].value, ret);
}

/* ---- Docker's configuration ---- */

/* "https://index.docker.io/v1/" is "docker.io"; else scheme and the versions of old APIs go. */
static str normal_key(str key)
{
	static const str schemes[] = { STR_INIT("https://"), STR_INIT("http://") };
	static const str versions[] = { STR_INIT("/v1"), STR_INIT("/v2") };
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (str_starts(key, schemes[i]))
			key = str_skip(key, schemes[i].n);
	while (key.n && key.p[key.n - 1] == '/')
		key.n--;
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		if (str_ends(key, versions[i]))
			key.n -= versions[i].n;
	if (str_eq(key, STR("index.docker.io")) || str_eq(key, STR("registry-1.docker.io")))
		return STR("docker.io");
	return key;
}

/* Whether key is the domain, or the domain with the beginning of the path. */
static bool fits(str key, str domain, str path)
{
	if (!str_starts(key, domain))
		return false;
	str rest = str_skip(key, domain.n);
	if (!rest.n)
		return true;
	rest = str_skip(rest, 1);
	return key.p[domain.n] == '/' && str_starts(path, rest) && (path.n == rest.n || path.p[rest.n] == '/');
}

static int read_entry(struct arena *a, struct val entry, struct image_auth *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
	*ret = (struct image_auth){ .user = val_str(entry, username), .password = val_str(entry, password),
				    .identity_token = val_str(entry, identitytoken), .registry_token = val_str(entry, registrytoken) };
	str coded = val_str(entry, auth);
	if (!coded.n)
		return 0;
	int r = base64_decode_buf(&b, coded, err);
	if (r < 0)
		return err_wrap(err, r, "\"auth\"");
	str plain = arena_str(a, buf_str(&b));
	if (!str_cut(plain, ':', &ret->user, &ret->password))
		return err_set(err, ERR_INVALID, "\"auth\" is not user:password in base64");
	while (ret->password.n && ret->password.p[ret->password.n - 1] == '\0') /* some programs padded it */
		ret->password.n--;
	return 0;
}

static int find_in(struct arena *a, struct val top, str domain, str path, struct image_auth *ret, struct err *err)
{
	struct val best = VAL_EMPTY;
	size_t best_n = 0;
	VAL_EACH_MEMBER(m, val_get(top, auths)) {
		str key = normal_key(atom_str(m->key));
		if (fits(key, domain, path) && key.n > best_n) {
			best = m->val;
			best_n = key.n;
		}
	}
	VAL_EACH_MEMBER(m, val_get(top, credHelpers))
		if (str_eq(normal_key(atom_str(m->key)), domain))
			return err_set(err, ERR_INVALID, "the credentials of " STR_FMT " are kept by the helper docker-credential-" STR_FMT
				       ", which is not supported; put them into \"auths\"", STR_ARG(domain), STR_ARG(val_as_str(m->val)));
	if (val_exists(best) && !val_len(best) && val_str(top, credsStore).n)
		return err_set(err, ERR_INVALID, "the credentials of " STR_FMT " are kept by the helper docker-credential-" STR_FMT
			       ", which is not supported; put them into \"auths\"", STR_ARG(domain), STR_ARG(val_str(top, credsStore)));
	return val_exists(best) ? read_entry(a, best, ret, err) : 0;
}

int auth_find(struct arena *a, char *const *files, str domain, str path, struct image_auth *ret, struct err *err)
{
	*ret = (struct image_auth){ 0 };
	for (; *files; files++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
		struct val top;
		int r = file_read(*files, &b, err);
		if (r == -ERR_NOT_FOUND)
			continue;
		if (r == 0)
			r = json_decode(a, arena_str(a, buf_str(&b)), &(struct json_decode_options){ 0 }, &top, err);
		if (r == 0)
			r = find_in(a, top, domain, path, ret, err);
		if (r < 0)
			return err_wrap(err, r, "%s", *files);
		if (ret->user.n || ret->identity_token.n || ret->registry_token.n)
			return 0;
	}
	return 0;
}
