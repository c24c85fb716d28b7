#include "net/http_proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/encoding.h"
#include "net/http1.h"
#include "net/http_proxy_priv.h"
#include "net/stream_priv.h"

enum { HEAD_MAX = 64 << 10 };

/* ---- which ---- */

static str environment(const char *large, const char *small)
{
	const char *value = getenv(large);
	if (!value || !*value)
		value = getenv(small);
	return value ? str_of(value) : STR_NONE;
}

/* An address as 16 bytes, IPv4 mapped into IPv6; the number of bits that count from the front is then 96 more. */
static bool parse_ip(str text, unsigned char ret[16], unsigned *ret_before)
{
	char copy[INET6_ADDRSTRLEN] = "";
	if (!text.n || text.n >= sizeof(copy))
		return false;
	memcpy(copy, text.p, text.n);
	memcpy(ret, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	*ret_before = 96;
	if (inet_pton(AF_INET, copy, ret + 12) == 1)
		return true;
	*ret_before = 0;
	return inet_pton(AF_INET6, copy, ret) == 1;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
	unsigned rest = bits % 8;
	return memcmp(a, b, bits / 8) == 0 && (!rest || (a[bits / 8] ^ b[bits / 8]) >> (8 - rest) == 0);
}

static bool is_loopback(str host)
{
	static const unsigned char v4[] = "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f", v6[] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1";
	unsigned char ip[16];
	unsigned before;
	if (!parse_ip(host, ip, &before))
		return http1_eq_nocase(host, STR("localhost"));
	return same_bits(ip, v4, 104) || same_bits(ip, v6, 128);
}

/* "10.0.0.0/8" */
static bool in_network(str entry, str host)
{
	unsigned char ip[16], network[16];
	unsigned before_ip, before;
	str address, bits;
	int64_t n;
	return str_cut(entry, '/', &address, &bits) && parse_ip(host, ip, &before_ip) && parse_ip(address, network, &before) &&
	       str_to_i64(bits, &n) && n >= 0 && n <= 128 - (int64_t)before && same_bits(ip, network, before + (unsigned)n);
}

/* "example.com" is that host and those below it, ".example.com" and "*.example.com" only those below. */
static bool in_domain(str entry, str host)
{
	if (str_starts(entry, STR("*.")))
		entry = str_skip(entry, 1);
	if (!entry.n || entry.n > host.n)
		return false;
	str end = str_skip(host, host.n - entry.n);
	if (!http1_eq_nocase(end, entry))
		return false;
	return entry.p[0] == '.' ? host.n > entry.n : host.n == entry.n || host.p[host.n - entry.n - 1] == '.';
}

static bool excluded(str entry, const struct url *u)
{
	unsigned char a[16], b[16];
	unsigned before;
	int64_t port = 0;
	if (str_eq(entry, STR("*")) || in_network(entry, u->host))
		return true;
	ptrdiff_t colon = str_rchr(entry, ':');
	if (colon >= 0 && !parse_ip(entry, a, &before)) {
		if (!str_to_i64(str_skip(entry, (size_t)colon + 1), &port) || port != u->port)
			return false;
		entry = str_head(entry, (size_t)colon);
	}
	if (entry.n > 1 && entry.p[0] == '[' && entry.p[entry.n - 1] == ']')
		entry = str_span(entry.p + 1, entry.n - 2);
	if (parse_ip(entry, a, &before))
		return parse_ip(u->host, b, &before) && same_bits(a, b, 128);
	return in_domain(entry, u->host);
}

static bool is_direct(const struct url *u)
{
	str list = environment("NO_PROXY", "no_proxy"), entry;
	if (is_loopback(u->host))
		return true;
	while (list.n) {
		str_cut(list, ',', &entry, &list);
		if (excluded(str_trim(entry), u))
			return true;
	}
	return false;
}

static int fill_user(struct arena *a, str userinfo, struct http_proxy *p, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	str user, password;
	if (!userinfo.n)
		return 0;
	(void)str_cut(userinfo, ':', &user, &password);
	int r = url_path_unescape(a, user, &p->user, err);
	if (r < 0 || (r = url_path_unescape(a, password, &p->password, err)) < 0)
		return r;
	buf_add(&b, STR("Basic "));
	base64_encode_buf(&b, arena_printf(a, STR_FMT ":" STR_FMT, STR_ARG(p->user), STR_ARG(p->password)));
	p->authorization = arena_str(a, buf_str(&b));
	return 0;
}

int http_proxy_parse(struct arena *a, str url, struct http_proxy *ret, struct err *err)
{
	static const struct {
		str scheme;
		enum http_proxy_kind kind;
		uint16_t port;
	} kinds[] = {
		{ STR_INIT("http"), HTTP_PROXY_PLAIN, 80 },
		{ STR_INIT("https"), HTTP_PROXY_TLS, 443 },
		{ STR_INIT("socks5"), HTTP_PROXY_SOCKS5, 1080 },
		{ STR_INIT("socks5h"), HTTP_PROXY_SOCKS5, 1080 },
	};
	struct url u;
	if (url_parse(a, arena_str(a, url), &u, err) < 0 || !u.host.n)
		return err_set(err, ERR_INVALID, "could not parse: " STR_FMT, STR_ARG(str_head(url, 250)));
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!str_eq(u.scheme, kinds[i].scheme))
			continue;
		*ret = (struct http_proxy){ .kind = kinds[i].kind, .host = arena_str(a, u.host).p, .port = u.port ? u.port : kinds[i].port };
		return fill_user(a, u.userinfo, ret, err) < 0 ?
			       err_set(err, ERR_INVALID, "could not parse: " STR_FMT, STR_ARG(str_head(url, 250))) : 0;
	}
	return err_set(err, ERR_INVALID, "unsupported scheme \"" STR_FMT "\", must be http, https, or socks5",
		       STR_ARG(str_head(u.scheme, 40)));
}

int http_proxy_find(struct arena *a, const struct url *u, struct http_proxy *ret, struct err *err)
{
	bool https = str_eq(u->scheme, STR("https"));
	str text = https ? environment("HTTPS_PROXY", "https_proxy") : environment("HTTP_PROXY", "http_proxy");
	if (!text.n || is_direct(u))
		return 0;
	if (str_find(text, STR("://")) < 0)
		text = arena_join(a, STR("http://"), text);
	int r = http_proxy_parse(a, text, ret, err);
	return r < 0 ? err_wrap(err, r, "invalid proxy address in %s", https ? "HTTPS_PROXY" : "HTTP_PROXY") : 1;
}

/* ---- through it ---- */

/* (suspends) The answer to CONNECT; nothing may follow it, because it is for us to speak first. */
static int read_answer(struct stream *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char piece[1024];
	/* One piece more than the parser takes, so that it is the parser that complains. */
	CLEANUP(buf_done) struct buf in = BUF_INIT(HEAD_MAX + sizeof(piece));
	struct http1_parser p;
	struct http1_head head;
	size_t used;
	http1_response_init(&p, HEAD_MAX, true);
	for (;;) {
		ssize_t n = stream_read(s, piece, sizeof(piece), err);
		if (n <= 0)
			return n < 0 ? (int)n : err_set(err, ERR_UNAVAILABLE, "unexpected EOF");
		buf_add(&in, str_span(piece, (size_t)n));
		int r = http1_parse(&p, buf_str(&in), &a, &head, &used, err);
		if (r < 0)
			return err_set(err, ERR_UNAVAILABLE, "malformed HTTP response");
		if (r == 0)
			continue;
		if (head.status / 100 != 2)
			return err_set(err, head.status / 100 == 4 ? ERR_FORBIDDEN : ERR_UNAVAILABLE, "%d " STR_FMT, head.status, STR_ARG(str_head(head.reason, 200)));
		return used == in.n ? 0 : err_set(err, ERR_UNAVAILABLE, "malformed HTTP response");
	}
}

/* (suspends) */
static int ask(struct stream *s, const struct http_proxy *p, const char *host, uint16_t port, struct err *err)
{
	CLEANUP(buf_done) struct buf target = BUF_INIT(HEAD_MAX), out = BUF_INIT(HEAD_MAX);
	buf_addf(&target, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
	http1_add_request(&out, STR("CONNECT"), buf_str(&target));
	http1_add_header(&out, STR("host"), buf_str(&target));
	if (p->authorization.n)
		http1_add_header(&out, STR("proxy-authorization"), p->authorization);
	http1_add_end(&out);
	int r = buf_check(&out, "the head of the request", err);
	if (r == 0)
		r = stream_write(s, out.p, out.n, err);
	return r < 0 ? r : read_answer(s, err);
}

int http_proxy_connect(const struct http_proxy *p, struct tls_context *tls, struct stream **ret, struct err *err)
{
	bool secure = p->kind == HTTP_PROXY_TLS;
	if (secure && !tls)
		return err_set(err, ERR_BAD_REQUEST, "no TLS settings for an https proxy");
	int r = stream_dial(p->host, p->port, secure ? tls : NULL, ret, err);
	return r < 0 ? err_wrap(err, r, "proxyconnect tcp") : 0;
}

int http_proxy_dial(const struct http_proxy *p, const char *host, uint16_t port, struct tls_context *tls, bool secure,
		    struct stream **ret, struct err *err)
{
	CLEANUP(stream_freep) struct stream *s = NULL;
	int fd, r = http_proxy_connect(p, tls, &s, err);
	if (r < 0)
		return r;
	r = p->kind == HTTP_PROXY_SOCKS5 ? socks5_ask(s, p, host, port, err) : ask(s, p, host, port, err);
	if (r < 0)
		return r;
	if (!secure) {
		*ret = TAKE(s);
		return 0;
	}
	if (p->kind != HTTP_PROXY_TLS)
		fd = stream_release(TAKE(s));
	else if ((r = stream_bridge(TAKE(s), &fd, err)) < 0)
		return r;
	return stream_connect_tls(fd, tls, host, ret, err);
}
