#include "machinery/ip.h"

#include <stdio.h>

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool ip_is_v4(const struct ip *ip) { return memcmp(ip->b, mapped_prefix, sizeof(mapped_prefix)) == 0; }
bool ip_equal(const struct ip *a, const struct ip *b) { return memcmp(a->b, b->b, sizeof(a->b)) == 0; }

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number at the start of s, of any length but not above max. Returns how many digits it has, 0 if it is none or too big. */
static size_t scan_number(str s, int base, unsigned max, unsigned *ret)
{
	size_t n = 0;
	*ret = 0;
	for (; n < s.n; n++) {
		int d = digit_value(s.p[n]);
		if (d < 0 || d >= base)
			break;
		*ret = *ret * (unsigned)base + (unsigned)d;
		if (*ret > max)
			return 0;
	}
	return n;
}

/* All of s as four octets. */
static bool parse_v4(str s, uint8_t out[4], unsigned *liberties)
{
	for (size_t i = 0; i < 4; i++) {
		unsigned octet;
		size_t n = scan_number(s, 10, 255, &octet);
		if (n == 0)
			return false;
		if (n > 1 && s.p[0] == '0')
			*liberties |= IP_LEADING_ZEROS;
		out[i] = (uint8_t)octet;
		s = str_skip(s, n);
		if (i < 3) {
			if (s.n == 0 || s.p[0] != '.')
				return false;
			s = str_skip(s, 1);
		}
	}
	return s.n == 0;
}

/* Groups with ':' between them, the last perhaps as IPv4, into at most max bytes. Returns how many bytes they are, or -1. */
static ptrdiff_t parse_groups(str s, uint8_t *out, size_t max, bool may_end_in_v4, unsigned *liberties)
{
	size_t used = 0;
	for (bool more = s.n > 0; more;) {
		str text;
		unsigned group;
		more = str_cut(s, ':', &text, &s);
		if (!more && may_end_in_v4 && str_chr(text, '.') >= 0) {
			if (used + 4 > max || !parse_v4(text, out + used, liberties))
				return -1;
			return (ptrdiff_t)used + 4;
		}
		size_t n = scan_number(text, 16, 0xffff, &group);
		if (n == 0 || n != text.n || used + 2 > max)
			return -1;
		if (n > 4)
			*liberties |= IP_LEADING_ZEROS;
		out[used++] = (uint8_t)(group >> 8);
		out[used++] = (uint8_t)group;
	}
	return (ptrdiff_t)used;
}

static bool parse_v6(str s, uint8_t b[16], unsigned *liberties)
{
	enum { WITH_GAP = 14 }; /* "::" stands for at least one group */
	uint8_t tail[WITH_GAP];
	ptrdiff_t gap = str_find(s, STR("::"));

	if (gap < 0)
		return parse_groups(s, b, 16, true, liberties) == 16;
	memset(b, 0, 16);
	ptrdiff_t before = parse_groups(str_head(s, (size_t)gap), b, WITH_GAP, false, liberties);
	ptrdiff_t after = parse_groups(str_skip(s, (size_t)gap + 2), tail, WITH_GAP, true, liberties);
	if (before < 0 || after < 0 || before + after > WITH_GAP)
		return false;
	memcpy(b + 16 - after, tail, (size_t)after);
	return true;
}

bool ip_parse(str text, struct ip *ret, unsigned *ret_liberties)
{
	unsigned liberties = 0;
	bool ok;
	ptrdiff_t colon = str_chr(text, ':');

	memcpy(ret->b, mapped_prefix, sizeof(mapped_prefix));
	ret->family = colon < 0 ? 4 : 6;
	ok = colon < 0 ? parse_v4(text, ret->b + 12, &liberties) : parse_v6(text, ret->b, &liberties);
	if (ok && colon >= 0 && ip_is_v4(ret))
		liberties |= IP_MAPPED;
	if (ret_liberties)
		*ret_liberties = liberties;
	return ok;
}

static unsigned group_at(const struct ip *ip, size_t i) { return (unsigned)ip->b[2 * i] << 8 | ip->b[2 * i + 1]; }

str ip_format(const struct ip *ip, char out[IP_TEXT_MAX])
{
	size_t n = 0, gap = 8, gap_length = 1; /* only runs of two and more zero groups are shortened */

	if (ip_is_v4(ip)) {
		n = (size_t)snprintf(out, IP_TEXT_MAX, "%u.%u.%u.%u", ip->b[12], ip->b[13], ip->b[14], ip->b[15]);
		return str_span(out, n);
	}
	for (size_t i = 0; i < 8; i++) {
		size_t end = i;
		while (end < 8 && group_at(ip, end) == 0)
			end++;
		if (end - i > gap_length)
			gap = i, gap_length = end - i;
		i = end;
	}
	for (size_t i = 0; i < 8; i++) {
		if (i == gap) {
			n += (size_t)snprintf(out + n, IP_TEXT_MAX - n, "::");
			i += gap_length - 1;
			continue;
		}
		const char *colon = i && i != gap + gap_length ? ":" : "";
		n += (size_t)snprintf(out + n, IP_TEXT_MAX - n, "%s%x", colon, group_at(ip, i));
	}
	return str_span(out, n);
}

/* ---- blocks ---- */

bool cidr_parse(str text, struct cidr *ret, unsigned *ret_liberties)
{
	str address, length;
	unsigned liberties, bits;

	if (!str_cut(text, '/', &address, &length) || !ip_parse(address, &ret->ip, &liberties))
		return false;
	size_t n = scan_number(length, 10, ret->ip.family == 4 ? 32 : 128, &bits);
	if (n == 0 || n != length.n)
		return false;
	if (n > 1 && length.p[0] == '0')
		liberties |= IP_LEADING_ZEROS;
	ret->bits = (uint8_t)bits;
	if (ret_liberties)
		*ret_liberties = liberties;
	return true;
}

/* Length of the prefix within the 16 bytes. */
static unsigned bits_of_16(const struct cidr *c) { return c->ip.family == 4 ? c->bits + 96u : c->bits; }

static struct ip masked(struct ip ip, unsigned bits)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned keep = bits > 8 * i ? MIN(bits - 8 * i, 8u) : 0;
		ip.b[i] &= (uint8_t)(0xff00u >> keep);
	}
	return ip;
}

struct ip cidr_network(const struct cidr *c) { return masked(c->ip, bits_of_16(c)); }

bool cidr_contains(const struct cidr *c, const struct ip *ip)
{
	struct ip network = cidr_network(c), other = masked(*ip, bits_of_16(c));
	/* Every IPv4 address lies in ::/0 only by the way it is stored. */
	return ip_is_v4(&c->ip) == ip_is_v4(ip) && ip_equal(&network, &other);
}

bool ip_is_reachable(const struct ip *ip)
{
	static const char *const closed[] = { "0.0.0.0/32", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32",
					      "::/128", "::1/128", "fe80::/10", "ff00::/8" };
	for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
		struct cidr range;
		if (cidr_parse(str_of(closed[i]), &range, NULL) && cidr_contains(&range, ip))
			return false;
	}
	return true;
}

str cidr_format(const struct cidr *c, char out[CIDR_TEXT_MAX])
{
	struct ip network = cidr_network(c);
	unsigned bits = bits_of_16(c);
	char ip[IP_TEXT_MAX];

	ip_format(&network, ip);
	int n = snprintf(out, CIDR_TEXT_MAX, "%s/%u", ip, ip_is_v4(&network) ? bits - 96 : bits);
	return str_span(out, (size_t)n);
}

/* ---- checks ---- */

static size_t complain(struct name_errors *ret, str value, str text)
{
	if (ret) {
		ret->n = 1;
		ret->text[0] = text;
		ret->value[0] = value;
	}
	return 1;
}

static size_t complain_canonical(struct arena *a, struct name_errors *ret, str value, str canonical)
{
	return ret ? complain(ret, value, arena_printf(a, "must be in canonical form (\"" STR_FMT "\")", STR_ARG(canonical))) : 1;
}

size_t ip_check_legacy(str value, bool strict, struct name_errors *ret)
{
	struct ip ip;
	unsigned liberties;

	if (ret)
		ret->n = 0;
	if (!ip_parse(value, &ip, &liberties))
		return complain(ret, value, STR("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
	if (strict && (liberties & IP_LEADING_ZEROS))
		return complain(ret, value, STR("must not have leading 0s"));
	if (strict && (liberties & IP_MAPPED))
		return complain(ret, value, STR("must not be an IPv4-mapped IPv6 address"));
	return 0;
}

size_t ip_check(struct arena *a, str value, struct name_errors *ret)
{
	struct ip ip;
	char text[IP_TEXT_MAX];

	size_t n = ip_check_legacy(value, true, ret);
	if (n)
		return n;
	ip_parse(value, &ip, NULL);
	str canonical = ip_format(&ip, text);
	return str_eq(value, canonical) ? 0 : complain_canonical(a, ret, value, canonical);
}

size_t cidr_check_legacy(str value, bool strict, struct name_errors *ret)
{
	struct cidr c;
	unsigned liberties;

	if (ret)
		ret->n = 0;
	if (!cidr_parse(value, &c, &liberties))
		return complain(ret, value, STR("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
	if (!strict)
		return 0;
	if (liberties & IP_LEADING_ZEROS)
		return complain(ret, value, STR("must not have leading 0s in IP or prefix length"));
	if (liberties & IP_MAPPED)
		return complain(ret, value, STR("must not have an IPv4-mapped IPv6 address"));
	struct ip network = cidr_network(&c);
	if (!ip_equal(&network, &c.ip))
		return complain(ret, value, STR("must not have bits set beyond the prefix length"));
	return 0;
}

size_t cidr_check(struct arena *a, str value, struct name_errors *ret)
{
	struct cidr c;
	char text[CIDR_TEXT_MAX];

	size_t n = cidr_check_legacy(value, true, ret);
	if (n)
		return n;
	cidr_parse(value, &c, NULL);
	str canonical = cidr_format(&c, text);
	return str_eq(value, canonical) ? 0 : complain_canonical(a, ret, value, canonical);
}

size_t ip_check_interface_address(struct arena *a, str value, struct name_errors *ret)
{
	struct cidr c;
	char ip[IP_TEXT_MAX], text[CIDR_TEXT_MAX];

	if (ret)
		ret->n = 0;
	if (!cidr_parse(value, &c, NULL))
		return complain(ret, value, STR("must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"));
	unsigned bits = ip_is_v4(&c.ip) && c.bits > 32 ? c.bits - 96u : c.bits;
	ip_format(&c.ip, ip);
	int n = snprintf(text, sizeof(text), "%s/%d", ip, (int)bits);
	str canonical = str_span(text, (size_t)n);
	return str_eq(value, canonical) ? 0 : complain_canonical(a, ret, value, canonical);
}

/* ---- warnings ---- */

size_t ip_warnings(struct arena *a, str path, str value, str ret[2])
{
	struct ip ip;
	unsigned liberties;
	char text[IP_TEXT_MAX];

	if (!ip_parse(value, &ip, &liberties))
		return 0;
	str canonical = ip_format(&ip, text);
	if (liberties)
		ret[0] = arena_printf(a, STR_FMT ": non-standard IP address \"" STR_FMT "\" is invalid: use \"" STR_FMT "\"",
				      STR_ARG(path), STR_ARG(value), STR_ARG(canonical));
	else if (ip.family == 6 && !str_eq(value, canonical))
		ret[0] = arena_printf(a,
				      STR_FMT ": IPv6 address \"" STR_FMT "\" should be in RFC 5952 canonical format (\"" STR_FMT "\")",
				      STR_ARG(path), STR_ARG(value), STR_ARG(canonical));
	else
		return 0;
	return 1;
}

size_t cidr_warnings(struct arena *a, str path, str value, str ret[2])
{
	struct cidr c;
	unsigned liberties;
	char text[CIDR_TEXT_MAX], single[IP_TEXT_MAX];
	size_t n = 0;

	if (!cidr_parse(value, &c, &liberties))
		return 0;
	str canonical = cidr_format(&c, text);
	struct ip network = cidr_network(&c);
	if (!ip_equal(&network, &c.ip))
		ret[n++] = arena_printf(a,
					STR_FMT ": CIDR value \"" STR_FMT "\" is ambiguous in this context (should be \"" STR_FMT
						"\" or \"" STR_FMT "/%d\"?)",
					STR_ARG(path), STR_ARG(value), STR_ARG(canonical), STR_ARG(ip_format(&c.ip, single)),
					c.ip.family == 4 ? 32 : 128);
	if (liberties)
		ret[n++] = arena_printf(a, STR_FMT ": non-standard CIDR value \"" STR_FMT "\" is invalid: use \"" STR_FMT "\"",
					STR_ARG(path), STR_ARG(value), STR_ARG(canonical));
	if (n == 0 && c.ip.family == 6 && !str_eq(value, canonical))
		ret[n++] = arena_printf(
			a, STR_FMT ": IPv6 CIDR value \"" STR_FMT "\" should be in RFC 5952 canonical format (\"" STR_FMT "\")",
			STR_ARG(path), STR_ARG(value), STR_ARG(canonical));
	return n;
}
