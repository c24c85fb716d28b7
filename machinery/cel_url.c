/*
 * URLs with the rules and the texts of Go's url.ParseRequestURI, which wants an absolute URL or a path. A fragment is cut off
 * afterwards, as Kubernetes does by parsing a second time.
 */
#include "base/buf.h"
#include "machinery/cel_url.h"

static bool is_hex(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }
static unsigned hex(char c) { return (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10); }
static bool is_alnum(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }

bool cel_url_unescape(struct arena *a, str s, bool query, str *ret)
{
	char *out = arena_alloc(a, s.n + 1, 1);
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '%') {
			if (i + 2 >= s.n || !is_hex(s.p[i + 1]) || !is_hex(s.p[i + 2]))
				return false;
			out[n++] = (char)(hex(s.p[i + 1]) * 16 + hex(s.p[i + 2]));
			i += 2;
		} else {
			out[n++] = query && s.p[i] == '+' ? ' ' : s.p[i];
		}
	}
	*ret = str_span(out, n);
	return true;
}

static int bad(struct err *err, str text, const char *what)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1024 * 1024);

	buf_add_quoted(&b, text);
	return err_set(err, ERR_INVALID, "parse " STR_FMT ": %s", STR_ARG(buf_str(&b)), what);
}

static int bad_escape(struct err *err, str text, str where)
{
	char what[64];
	size_t i = 0;

	while (i < where.n && (where.p[i] != '%' || (i + 2 < where.n && is_hex(where.p[i + 1]) && is_hex(where.p[i + 2]))))
		i++;
	snprintf(what, sizeof(what), "invalid URL escape \"" STR_FMT "\"", STR_ARG(str_head(str_skip(where, i), 3)));
	return bad(err, text, what);
}

/* scheme: and what follows; false when the first segment has a colon that no scheme ends with. */
static bool cut_scheme(str text, str *ret_scheme, str *ret_rest, const char **ret_what)
{
	*ret_scheme = STR("");
	*ret_rest = text;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (c == ':') {
			*ret_what = "missing protocol scheme";
			*ret_scheme = str_head(text, i);
			*ret_rest = str_skip(text, i + 1);
			return i > 0;
		}
		bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
		if (!letter && (i == 0 || (!(c >= '0' && c <= '9') && c != '+' && c != '-' && c != '.')))
			return true;
	}
	return true;
}

static bool valid_port(str port)
{
	for (size_t i = 0; i < port.n; i++)
		if (port.p[i] < '0' || port.p[i] > '9')
			return false;
	return true;
}

/* host[:port], after the user's part. */
static int parse_host(str text, str host, str *ret, struct err *err)
{
	ptrdiff_t at = str_rchr(host, '@');
	char what[128];

	host = at >= 0 ? str_skip(host, (size_t)at + 1) : host;
	ptrdiff_t close = str_rchr(host, ']');
	if (str_starts(host, STR("[")) && close < 0)
		return bad(err, text, "missing ']' in host");
	str after = close >= 0 ? str_skip(host, (size_t)close + 1) : host;
	ptrdiff_t colon = close >= 0 ? (after.n ? 0 : -1) : str_rchr(after, ':');
	str port = colon >= 0 ? str_skip(after, (size_t)colon) : STR("");
	if (port.n && (port.p[0] != ':' || !valid_port(str_skip(port, 1)))) {
		snprintf(what, sizeof(what), "invalid port \"" STR_FMT "\" after host", STR_ARG(str_head(port, 64)));
		return bad(err, text, what);
	}
	for (size_t i = 0; i < host.n; i++)
		if ((unsigned char)host.p[i] < 0x80 && !is_alnum(host.p[i]) && !strchr("-._~!$&'()*+,;=:[]<>\"%", host.p[i])) {
			snprintf(what, sizeof(what), "invalid character \"%c\" in host name", host.p[i]);
			return bad(err, text, what);
		}
	*ret = host;
	return 0;
}

int cel_url_parse(struct arena *a, str text, struct cel_url *ret, struct err *err)
{
	const char *what = NULL;
	str rest, host;
	int r;

	*ret = (struct cel_url){ .text = text };
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return bad(err, text, "net/url: invalid control character in URL");
	if (!text.n)
		return bad(err, text, "empty url");
	if (!cut_scheme(text, &ret->scheme, &rest, &what))
		return bad(err, text, what);
	str scheme = arena_str(a, ret->scheme);
	for (size_t i = 0; i < scheme.n; i++)
		((char *)(uintptr_t)scheme.p)[i] |= scheme.p[i] >= 'A' && scheme.p[i] <= 'Z' ? 0x20 : 0;
	ret->scheme = scheme;
	/* The fragment belongs to path or query for the first parse, which decides; none of it changes what is accepted here. */
	str_cut(rest, '#', &rest, &host);
	str_cut(rest, '?', &rest, &ret->query);
	if (!str_starts(rest, STR("/"))) {
		if (ret->scheme.n && rest.n)
			return 0; /* opaque, such as mailto:x */
		return bad(err, text, "invalid URI for request");
	}
	if (ret->scheme.n && str_starts(rest, STR("//"))) {
		rest = str_skip(rest, 2);
		ptrdiff_t slash = str_chr(rest, '/');
		host = slash >= 0 ? str_head(rest, (size_t)slash) : rest;
		if ((r = parse_host(text, host, &ret->host, err)) < 0)
			return r;
		rest = str_skip(rest, host.n);
	}
	ret->raw_path = rest;
	if (!cel_url_unescape(a, rest, false, &ret->path))
		return bad_escape(err, text, rest);
	return 0;
}

str cel_url_hostname(const struct cel_url *u)
{
	str host = u->host;
	ptrdiff_t close = str_rchr(host, ']');

	if (str_starts(host, STR("[")) && close > 0)
		return str_span(host.p + 1, (size_t)close - 1);
	ptrdiff_t colon = str_rchr(host, ':');
	return colon >= 0 ? str_head(host, (size_t)colon) : host;
}

str cel_url_port(const struct cel_url *u)
{
	ptrdiff_t colon = str_rchr(u->host, ':'), close = str_rchr(u->host, ']');

	return colon > close ? str_skip(u->host, (size_t)colon + 1) : STR("");
}

static bool path_byte(char c) { return is_alnum(c) || (c && strchr("-_.~$&+,/:;=@", c)); }

str cel_url_escaped_path(struct arena *a, const struct cel_url *u)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1024 * 1024);
	bool fine = true;

	/* What was written is kept when it is a right way to write it. */
	for (size_t i = 0; i < u->raw_path.n; i++)
		fine &= path_byte(u->raw_path.p[i]) || (u->raw_path.p[i] && strchr("!'()*[]%", u->raw_path.p[i]));
	if (fine)
		return u->raw_path;
	for (size_t i = 0; i < u->path.n; i++)
		if (path_byte(u->path.p[i]))
			buf_addc(&b, u->path.p[i]);
		else
			buf_addf(&b, "%%%02X", (unsigned char)u->path.p[i]);
	return arena_str(a, buf_str(&b));
}
