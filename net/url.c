/* As Go's net/url: the sets of bytes that stay as they are, the errors and their texts. */
#include "net/url.h"

#include <arpa/inet.h>

/* What stays as it is: always, in a segment of a path, in a host. Go keeps the last set for hosts beside the first. */
enum { KEEP = 1, KEEP_SEGMENT = 2, KEEP_HOST = 4 };

static const unsigned char keep[256] = {
	['0' ... '9'] = 7, ['a' ... 'z'] = 7, ['A' ... 'Z'] = 7, ['-'] = 7, ['_'] = 7, ['.'] = 7, ['~'] = 7,
	['$'] = 6, ['&'] = 6, ['+'] = 6, ['='] = 6, [':'] = 6, ['@'] = 2,
	['!'] = 4, ['\''] = 4, ['('] = 4, [')'] = 4, ['*'] = 4, [','] = 4, [';'] = 4, ['['] = 4, [']'] = 4,
	['<'] = 4, ['>'] = 4, ['"'] = 4,
};

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Position of the first escape that is not one, or -1. */
static ptrdiff_t bad_escape(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '%' && (s.n - i < 3 || hex_value(s.p[i + 1]) < 0 || hex_value(s.p[i + 2]) < 0))
			return (ptrdiff_t)i;
	return -1;
}

bool url_escapes_valid(str s) { return bad_escape(s) < 0; }

static int escape_error(str at, struct err *err)
{
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(64);
	buf_add_quoted(&quoted, str_head(at, 3));
	return err_set(err, ERR_BAD_REQUEST, "invalid URL escape %s", quoted.p);
}

static int unescape(struct arena *a, str s, bool plus, str *ret, struct err *err)
{
	ptrdiff_t bad = bad_escape(s);
	if (bad >= 0)
		return escape_error(str_skip(s, (size_t)bad), err);
	if (str_chr(s, '%') < 0 && !(plus && str_chr(s, '+') >= 0)) {
		*ret = s;
		return 0;
	}
	char *out = arena_alloc(a, s.n, 1);
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c == '%') {
			c = (char)(hex_value(s.p[i + 1]) << 4 | hex_value(s.p[i + 2]));
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		out[n++] = c;
	}
	*ret = str_span(out, n);
	return 0;
}

int url_path_unescape(struct arena *a, str s, str *ret, struct err *err) { return unescape(a, s, false, ret, err); }
int url_query_unescape(struct arena *a, str s, str *ret, struct err *err) { return unescape(a, s, true, ret, err); }

static void escape(struct buf *b, str s, unsigned char class)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (keep[c] & class)
			buf_addc(b, s.p[i]);
		else if (c == ' ' && class == KEEP)
			buf_addc(b, '+');
		else
			buf_addf(b, "%%%02X", c);
	}
}

void url_path_escape(struct buf *b, str segment) { escape(b, segment, KEEP_SEGMENT); }
void url_query_escape(struct buf *b, str s) { escape(b, s, KEEP); }

/* ---- queries ---- */

static int pair_parse(struct arena *a, str pair, struct url_param *ret, struct err *err)
{
	str key, value;
	(void)str_cut(pair, '=', &key, &value);
	int r = url_query_unescape(a, key, &ret->key, err);
	return r < 0 ? r : url_query_unescape(a, value, &ret->value, err);
}

int url_query_parse(struct arena *a, str query, struct url_query *ret_query, struct err *err)
{
	size_t cap = 1;
	int result = 0;
	bool semicolon = false;

	*ret_query = (struct url_query){ 0 };
	for (size_t i = 0; i < query.n; i++)
		cap += query.p[i] == '&';
	if (cap > URL_PARAMS_MAX)
		return err_set(err, ERR_BAD_REQUEST, "number of URL query parameters exceeded limit");
	ret_query->params = ARENA_ARRAY(a, struct url_param, cap);
	while (query.n) {
		str pair;
		(void)str_cut(query, '&', &pair, &query);
		if (str_chr(pair, ';') >= 0) {
			semicolon = true;
			continue;
		}
		if (!pair.n)
			continue;
		int r = pair_parse(a, pair, &ret_query->params[ret_query->n], result < 0 ? NULL : err);
		if (r < 0)
			result = r;
		else
			ret_query->n++;
	}
	if (semicolon)
		return err_set(err, ERR_BAD_REQUEST, "invalid semicolon separator in query");
	return result;
}

void url_query_add(struct buf *b, str key, str value)
{
	if (b->n)
		buf_addc(b, '&');
	url_query_escape(b, key);
	buf_addc(b, '=');
	url_query_escape(b, value);
}

/* ---- whole URLs ---- */

static bool is_scheme_byte(char c)
{
	return (keep[(unsigned char)c] & KEEP && c != '_' && c != '~') || c == '+';
}

static int cut_scheme(struct arena *a, str text, str *ret_scheme, str *ret_rest, struct err *err)
{
	size_t n = 0;
	while (n < text.n && ((text.p[n] | 32) >= 'a' && (text.p[n] | 32) <= 'z'))
		n++;
	while (n > 0 && n < text.n && is_scheme_byte(text.p[n]))
		n++;
	if (n == 0 || n == text.n || text.p[n] != ':')
		return err_set(err, ERR_BAD_REQUEST, "missing protocol scheme");
	if (!str_starts(str_skip(text, n), STR("://")))
		return err_set(err, ERR_BAD_REQUEST, "no host in URL");
	char *scheme = arena_alloc(a, n, 1);
	for (size_t i = 0; i < n; i++)
		scheme[i] = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] | 32) : text.p[i];
	*ret_scheme = str_span(scheme, n);
	*ret_rest = str_skip(text, n + 3);
	return 0;
}

/* ":8080", ":" or nothing. */
static int parse_port(str s, struct url *u, struct err *err)
{
	int64_t port = 0;
	u->port = str_eq(u->scheme, STR("https")) ? 443 : str_eq(u->scheme, STR("http")) ? 80 : 0;
	if (s.n < 2)
		return 0;
	if (!str_to_i64(str_skip(s, 1), &port) || port < 0 || port > UINT16_MAX) {
		CLEANUP(buf_done) struct buf quoted = BUF_INIT(1024);
		buf_add_quoted(&quoted, str_head(s, 64));
		return err_set(err, ERR_BAD_REQUEST, "invalid port %s after host", quoted.p);
	}
	u->port = (uint16_t)port;
	return 0;
}

/* An address in brackets, with a zone after "%25" at most. */
static int parse_literal(struct arena *a, str authority, struct url *u, str *ret_port, struct err *err)
{
	struct in6_addr address;
	char text[INET6_ADDRSTRLEN];
	ptrdiff_t close = str_rchr(authority, ']');
	if (close < 0)
		return err_set(err, ERR_BAD_REQUEST, "missing ']' in host");
	str inside = str_skip(str_head(authority, (size_t)close), 1);
	ptrdiff_t zone = str_find(inside, STR("%25"));
	str plain = zone >= 0 ? str_head(inside, (size_t)zone) : inside;
	if (plain.n >= sizeof(text))
		return err_set(err, ERR_BAD_REQUEST, "invalid IP-literal");
	memcpy(text, plain.p, plain.n);
	text[plain.n] = '\0';
	if (memchr(text, '\0', plain.n) || inet_pton(AF_INET6, text, &address) != 1)
		return err_set(err, ERR_BAD_REQUEST, "invalid IP-literal");
	int r = url_path_unescape(a, inside, &u->host, err);
	if (r < 0)
		return r;
	for (size_t i = plain.n; i < u->host.n; i++)
		if (u->host.p[i] != '%' && !(keep[(unsigned char)u->host.p[i]] & KEEP_HOST))
			return err_set(err, ERR_BAD_REQUEST, "invalid IP-literal");
	u->ipv6 = true;
	*ret_port = str_skip(authority, (size_t)close + 1);
	return 0;
}

static int parse_name(struct arena *a, str authority, struct url *u, str *ret_port, struct err *err)
{
	ptrdiff_t colon = str_chr(authority, ':');
	str name = colon >= 0 ? str_head(authority, (size_t)colon) : authority;
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];
		if (c == '%' || c >= 0x80 || (keep[c] & KEEP_HOST && c != '[' && c != ']'))
			continue;
		return err_set(err, ERR_BAD_REQUEST, "invalid character in host name");
	}
	int r = url_path_unescape(a, name, &u->host, err);
	if (r < 0)
		return r;
	/* An escape is for bytes beyond ASCII alone. */
	for (size_t i = 0; u->host.p != name.p && i < u->host.n; i++)
		if (!(u->host.p[i] & 0x80) && !(keep[(unsigned char)u->host.p[i]] & KEEP_HOST))
			return err_set(err, ERR_BAD_REQUEST, "invalid character in host name");
	*ret_port = colon >= 0 ? str_skip(authority, (size_t)colon) : STR_NONE;
	return 0;
}

static int parse_authority(struct arena *a, str authority, struct url *u, struct err *err)
{
	str port = STR_NONE;
	ptrdiff_t at = str_rchr(authority, '@');
	if (at >= 0) {
		u->userinfo = str_head(authority, (size_t)at);
		authority = str_skip(authority, (size_t)at + 1);
		if (!url_escapes_valid(u->userinfo))
			return err_set(err, ERR_BAD_REQUEST, "net/url: invalid userinfo");
	}
	bool literal = authority.n && authority.p[0] == '[';
	int r = literal ? parse_literal(a, authority, u, &port, err) : parse_name(a, authority, u, &port, err);
	if (r < 0)
		return r;
	if (!u->host.n)
		return err_set(err, ERR_BAD_REQUEST, "no host in URL");
	if (port.n && port.p[0] != ':')
		return err_set(err, ERR_BAD_REQUEST, "invalid port after host");
	u->authority = authority;
	return parse_port(port, u, err);
}

int url_parse(struct arena *a, str text, struct url *ret_url, struct err *err)
{
	struct url u = { 0 };
	str rest, authority;

	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return err_set(err, ERR_BAD_REQUEST, "net/url: invalid control character in URL");
	(void)str_cut(text, '#', &rest, &u.fragment);
	int r = cut_scheme(a, rest, &u.scheme, &rest, err);
	if (r < 0)
		return r;
	size_t n = 0;
	while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
		n++;
	authority = str_head(rest, n);
	if ((r = parse_authority(a, authority, &u, err)) < 0)
		return r;
	(void)str_cut(str_skip(rest, n), '?', &u.path, &u.query);
	ptrdiff_t bad = bad_escape(u.path);
	if (bad >= 0)
		return escape_error(str_skip(u.path, (size_t)bad), err);
	*ret_url = u;
	return 0;
}
