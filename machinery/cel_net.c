/* Kubernetes' functions of addresses, address blocks and URLs. Addresses must be spelt as Go's net/netip wants them. */
#include "base/buf.h"
#include "machinery/cel_priv.h"
#include "machinery/cel_url.h"
#include "machinery/ip.h"

/* ---- addresses ---- */

static str quoted(struct cel_eval *ev, str s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1024 * 1024);

	buf_add_quoted(&b, s);
	return arena_str(ev->arena, buf_str(&b));
}

/* What netip.ParseAddr has against a text, and where in it: from `at` on when that is not the whole. */
struct complaint {
	const char *what;
	size_t at;       /* SIZE_MAX: nowhere in particular */
};

static struct complaint v4_complaint(str s)
{
	unsigned fields = 0, digits = 0, value = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c >= '0' && c <= '9') {
			if (digits == 1 && value == 0)
				return (struct complaint){ "IPv4 field has octet with leading zero", SIZE_MAX };
			value = value * 10 + (unsigned)(c - '0');
			digits++;
			if (value > 255)
				return (struct complaint){ "IPv4 field has value >255", SIZE_MAX };
		} else if (c == '.') {
			if (!digits || i + 1 == s.n)
				return (struct complaint){ "IPv4 field must have at least one digit", i };
			if (fields == 3)
				return (struct complaint){ "IPv4 address too long", SIZE_MAX };
			fields++;
			digits = value = 0;
		} else {
			return (struct complaint){ "unexpected character", i };
		}
	}
	return (struct complaint){ "IPv4 address too short", SIZE_MAX };
}

static bool is_hex(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

static struct complaint v6_complaint(str s)
{
	size_t i = str_starts(s, STR("::")) ? 2 : 0;
	bool ellipsis = i == 2;

	for (unsigned fields = 0; i < s.n; fields++) {
		size_t begin = i;
		if (fields == 8)
			return (struct complaint){ "trailing garbage after address", i };
		while (i < s.n && is_hex(s.p[i]))
			i++;
		if (i - begin > 4)
			return (struct complaint){ "each group must have 4 or less digits", begin };
		if (i == begin)
			return (struct complaint){ "each colon-separated field must have at least one digit", i };
		if (i == s.n)
			break;
		if (s.p[i] != ':')
			return (struct complaint){ "unexpected character, want colon", i };
		if (++i == s.n)
			return (struct complaint){ "colon must be followed by more characters", i - 1 };
		if (s.p[i] == ':') {
			if (ellipsis)
				return (struct complaint){ "multiple :: in address", i };
			ellipsis = true;
			i++;
		}
	}
	return (struct complaint){ "address string too short", SIZE_MAX };
}

static const char *complaint(struct cel_eval *ev, str s)
{
	struct complaint c = { "unable to parse IP", SIZE_MAX };

	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '.' || s.p[i] == ':') {
			c = s.p[i] == '.' ? v4_complaint(s) : v6_complaint(s);
			break;
		} else if (s.p[i] == '%') {
			c.what = "missing IPv6 address";
			break;
		}
	if (c.at == SIZE_MAX)
		return c.what;
	str rest = quoted(ev, str_skip(s, c.at));
	return arena_printf(ev->arena, "%s (at " STR_FMT ")", c.what, STR_ARG(rest)).p;
}

/* False with an error. */
static bool parse_ip(struct cel_eval *ev, str text, struct ip *ret, struct cel_val *ret_error)
{
	unsigned liberties = 0;
	str q = quoted(ev, text);

	if (text.n > 1 && str_chr(text, '%') > 0 && str_chr(text, ':') >= 0)
		*ret_error = cel_fail(ev, "IP address " STR_FMT " with zone value is not allowed", STR_ARG(q));
	else if (!ip_parse(text, ret, &liberties) || liberties & IP_LEADING_ZEROS)
		*ret_error = cel_fail(ev, "IP Address " STR_FMT " parse error during conversion from string: ParseAddr(" STR_FMT "): %s",
				      STR_ARG(q), STR_ARG(q), complaint(ev, text));
	else if (liberties & IP_MAPPED)
		*ret_error = cel_fail(ev, "IPv4-mapped IPv6 address " STR_FMT " is not allowed", STR_ARG(q));
	else
		return true;
	return false;
}

static struct cel_val of_ip(struct cel_eval *ev, const struct ip *ip)
{
	struct ip *copy = ARENA_NEW(ev->arena, struct ip);

	*copy = *ip;
	return (struct cel_val){ .kind = CEL_IP, .ip = copy };
}

static struct cel_val string_to_ip(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;
	struct ip ip;

	(void)n;
	return parse_ip(ev, cel_text(v[0]), &ip, &error) ? of_ip(ev, &ip) : error;
}

static struct cel_val is_ip(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;
	struct ip ip;

	(void)n;
	return cel_of_bool(parse_ip(ev, cel_text(v[0]), &ip, &error));
}

static struct cel_val is_canonical(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	char text[IP_TEXT_MAX];
	struct cel_val error;
	struct ip ip;

	(void)n;
	if (!parse_ip(ev, cel_text(v[0]), &ip, &error))
		return error;
	return cel_of_bool(str_eq(ip_format(&ip, text), cel_text(v[0])));
}

static struct cel_val family(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)n;
	return cel_of_int(v[0].ip->family);
}

static bool is_v4(const struct ip *ip) { return ip->family == 4; }

static bool all_zero(const uint8_t *b, size_t n)
{
	while (n && !b[n - 1])
		n--;
	return n == 0;
}

static bool unspecified(const struct ip *ip) { return is_v4(ip) ? all_zero(ip->b + 12, 4) : all_zero(ip->b, 16); }
static bool loopback(const struct ip *ip) { return is_v4(ip) ? ip->b[12] == 127 : all_zero(ip->b, 15) && ip->b[15] == 1; }
static bool multicast(const struct ip *ip) { return is_v4(ip) ? ip->b[12] >> 4 == 14 : ip->b[0] == 0xff; }
static bool link_local(const struct ip *ip) { return is_v4(ip) ? ip->b[12] == 169 && ip->b[13] == 254 : ip->b[0] == 0xfe && ip->b[1] >> 6 == 2; }

static bool link_local_multicast(const struct ip *ip)
{
	if (is_v4(ip))
		return ip->b[12] == 224 && ip->b[13] == 0 && ip->b[14] == 0;
	return ip->b[0] == 0xff && (ip->b[1] & 0x0f) == 2;
}

static bool global_unicast(const struct ip *ip)
{
	bool broadcast = is_v4(ip) && ip->b[12] == 255 && ip->b[13] == 255 && ip->b[14] == 255 && ip->b[15] == 255;

	return !broadcast && !unspecified(ip) && !loopback(ip) && !multicast(ip) && !link_local(ip);
}

#define IP_TEST(name, test)                                                                             \
	static struct cel_val name(struct cel_eval *ev, const struct cel_val *v, size_t n)              \
	{                                                                                               \
		(void)ev;                                                                               \
		(void)n;                                                                                \
		return cel_of_bool(test(v[0].ip));                                                      \
	}

IP_TEST(is_unspecified, unspecified)
IP_TEST(is_loopback, loopback)
IP_TEST(is_link_local_multicast, link_local_multicast)
IP_TEST(is_link_local_unicast, link_local)
IP_TEST(is_global_unicast, global_unicast)

/* ---- blocks ---- */

static const char *prefix_complaint(struct cel_eval *ev, str text)
{
	ptrdiff_t slash = str_rchr(text, '/');
	struct cel_val error;
	struct ip ip;

	if (slash < 0)
		return "no '/'";
	str front = str_head(text, (size_t)slash), bits = str_skip(text, (size_t)slash + 1);
	if (!parse_ip(ev, front, &ip, &error)) {
		str q = quoted(ev, front);
		return arena_printf(ev->arena, "ParseAddr(" STR_FMT "): %s", STR_ARG(q), complaint(ev, front)).p;
	}
	int64_t n;
	if (!str_to_i64(bits, &n) || (bits.n > 1 && bits.p[0] == '0') || n < 0)
		return arena_printf(ev->arena, "bad bits after slash: " STR_FMT, STR_ARG(quoted(ev, bits))).p;
	return "prefix length out of range";
}

static bool parse_cidr(struct cel_eval *ev, str text, struct cidr *ret, struct cel_val *ret_error)
{
	static const char again[] = "network address parse error during conversion from string: ";
	unsigned liberties = 0;
	str q = quoted(ev, text);

	if (!cidr_parse(text, ret, &liberties) || liberties & IP_LEADING_ZEROS)
		*ret_error = cel_fail(ev, "%s%snetip.ParsePrefix(" STR_FMT "): %s", again, again, STR_ARG(q), prefix_complaint(ev, text));
	else if (liberties & IP_MAPPED)
		*ret_error = cel_fail(ev, "%sIPv4-mapped IPv6 address " STR_FMT " is not allowed", again, STR_ARG(q));
	else
		return true;
	return false;
}

static struct cel_val of_cidr(struct cel_eval *ev, const struct cidr *c)
{
	struct cidr *copy = ARENA_NEW(ev->arena, struct cidr);

	*copy = *c;
	return (struct cel_val){ .kind = CEL_CIDR, .cidr = copy };
}

static struct cel_val string_to_cidr(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;
	struct cidr c;

	(void)n;
	return parse_cidr(ev, cel_text(v[0]), &c, &error) ? of_cidr(ev, &c) : error;
}

static struct cel_val is_cidr(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;
	struct cidr c;

	(void)n;
	return cel_of_bool(parse_cidr(ev, cel_text(v[0]), &c, &error));
}

static struct cel_val cidr_contains_ip(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;
	struct ip own;
	const struct ip *ip = v[1].kind == CEL_IP ? v[1].ip : &own;

	(void)n;
	if (v[1].kind == CEL_STRING && !parse_ip(ev, cel_text(v[1]), &own, &error))
		return cel_no_overload(ev);
	return cel_of_bool(ip->family == v[0].cidr->ip.family && cidr_contains(v[0].cidr, ip));
}

static struct cel_val cidr_contains_cidr(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;
	struct cidr own;
	const struct cidr *c = v[1].kind == CEL_CIDR ? v[1].cidr : &own;

	(void)n;
	if (v[1].kind == CEL_STRING && !parse_cidr(ev, cel_text(v[1]), &own, &error))
		return error;
	return cel_of_bool(c->ip.family == v[0].cidr->ip.family && c->bits >= v[0].cidr->bits && cidr_contains(v[0].cidr, &c->ip));
}

static struct cel_val cidr_to_ip(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return of_ip(ev, &v[0].cidr->ip);
}

static struct cel_val cidr_masked(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cidr c = { cidr_network(v[0].cidr), v[0].cidr->bits };

	(void)n;
	return of_cidr(ev, &c);
}

static struct cel_val cidr_prefix_length(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)n;
	return cel_of_int(v[0].cidr->bits);
}

/* ---- URLs ---- */

static struct cel_val string_to_url(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_url *u = ARENA_NEW(ev->arena, struct cel_url);
	struct err err = ERR_INIT;

	(void)n;
	if (cel_url_parse(ev->arena, cel_text(v[0]), u, &err) < 0)
		return cel_fail(ev, "URL parse error during conversion from string: " STR_FMT, STR_ARG(err_str(&err)));
	return (struct cel_val){ .kind = CEL_URL, .url = u };
}

static struct cel_val is_url(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_url u;

	(void)n;
	return cel_of_bool(cel_url_parse(ev->arena, cel_text(v[0]), &u, NULL) >= 0);
}

#define URL_PART(name, value)                                                                          \
	static struct cel_val name(struct cel_eval *ev, const struct cel_val *v, size_t n)             \
	{                                                                                              \
		const struct cel_url *u = v[0].url;                                                    \
		(void)ev;                                                                              \
		(void)n;                                                                               \
		return cel_of_str(value);                                                              \
	}

URL_PART(url_scheme, u->scheme)
URL_PART(url_host, u->host)
URL_PART(url_hostname, cel_url_hostname(u))
URL_PART(url_port, cel_url_port(u))
URL_PART(url_escaped_path, cel_url_escaped_path(ev->arena, u))

/* a=1&a=2&b: lists by key; pairs with a wrong escape or a ';' are left out. */
static struct cel_val url_query(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	str rest = v[0].url->query, pair, key, val;
	struct cel_pair *pairs = ARENA_ARRAY(ev->arena, struct cel_pair, rest.n + 1);
	size_t count = 0;

	(void)n;
	while (rest.n && cel_work(ev, count + 1)) {
		str_cut(rest, '&', &pair, &rest);
		if (!pair.n || str_chr(pair, ';') >= 0)
			continue;
		str_cut(pair, '=', &key, &val);
		if (!cel_url_unescape(ev->arena, key, true, &key) || !cel_url_unescape(ev->arena, val, true, &val))
			continue;
		size_t i = 0;
		while (i < count && !str_eq(cel_text(pairs[i].key), key))
			i++;
		if (i == count)
			pairs[count++] = (struct cel_pair){ cel_of_str(key), cel_list_take(ev->arena, NULL, 0) };
		struct cel_val one = cel_of_str(val);
		pairs[i].val = cel_list_join(ev, pairs[i].val, cel_of_list(ev->arena, &one, 1));
	}
	return cel_of_pairs(ev->arena, NULL, pairs, count, NULL);
}

static const struct cel_overload overloads[] = {
	{ "cidr", "string_to_cidr", "s:c", false, string_to_cidr, 0 },
	{ "containsCIDR", "cidr_contains_cidr", "cc:b", true, cidr_contains_cidr, 0 },
	{ "containsCIDR", "cidr_contains_cidr_string", "cs:b", true, cidr_contains_cidr, 0 },
	{ "containsIP", "cidr_contains_ip_ip", "ca:b", true, cidr_contains_ip, 0 },
	{ "containsIP", "cidr_contains_ip_string", "cs:b", true, cidr_contains_ip, 0 },
	{ "family", "ip_family", "a:i", true, family, 0 },
	{ "ip", "cidr_ip", "c:a", true, cidr_to_ip, 0 },
	{ "ip", "string_to_ip", "s:a", false, string_to_ip, 0 },
	{ "ip.isCanonical", "ip_is_canonical", "s:b", false, is_canonical, 0 },
	{ "isCIDR", "is_cidr", "s:b", false, is_cidr, 0 },
	{ "isGlobalUnicast", "ip_is_global_unicast", "a:b", true, is_global_unicast, 0 },
	{ "isIP", "is_ip", "s:b", false, is_ip, 0 },
	{ "isLinkLocalMulticast", "ip_is_link_local_multicast", "a:b", true, is_link_local_multicast, 0 },
	{ "isLinkLocalUnicast", "ip_is_link_local_unicast", "a:b", true, is_link_local_unicast, 0 },
	{ "isLoopback", "ip_is_loopback", "a:b", true, is_loopback, 0 },
	{ "isUnspecified", "ip_is_unspecified", "a:b", true, is_unspecified, 0 },
	{ "masked", "cidr_masked", "c:c", true, cidr_masked, 0 },
	{ "prefixLength", "cidr_prefix_length", "c:i", true, cidr_prefix_length, 0 },
	{ "getEscapedPath", "url_get_escaped_path", "l:s", true, url_escaped_path, 0 },
	{ "getHost", "url_get_host", "l:s", true, url_host, 0 },
	{ "getHostname", "url_get_hostname", "l:s", true, url_hostname, 0 },
	{ "getPort", "url_get_port", "l:s", true, url_port, 0 },
	{ "getQuery", "url_get_query", "l:MsLs", true, url_query, 0 },
	{ "getScheme", "url_get_scheme", "l:s", true, url_scheme, 0 },
	{ "isURL", "is_url_string", "s:b", false, is_url, 0 },
	{ "url", "string_to_url", "s:l", false, string_to_url, 0 },
};

const struct cel_library cel_lib_net = { overloads, ARRAY_LEN(overloads), false };
