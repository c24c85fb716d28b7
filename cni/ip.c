#include <arpa/inet.h>
#include <stdio.h>

#include "base/encoding.h"
#include "cni/ip.h"

struct ip ip_of(int family, const void *bytes)
{
	struct ip a = { .family = (uint8_t)family };
	memcpy(a.b, bytes, ip_len(a));
	return a;
}

bool ip_parse(str text, struct ip *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char copy[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	if (text.n >= sizeof(copy) || !text.n || memchr(text.p, '\0', text.n))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	if (inet_pton(AF_INET, copy, bytes) == 1)
		*ret = ip_of(AF_INET, bytes);
	else if (inet_pton(AF_INET6, copy, bytes) != 1)
		return false;
	else if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
		*ret = ip_of(AF_INET, bytes + sizeof(mapped));
	else
		*ret = ip_of(AF_INET6, bytes);
	return true;
}

bool ip_net_parse(str text, struct ip_net *ret)
{
	str address, length;
	struct ip a;
	int64_t prefix;

	if (!str_cut(text, '/', &address, &length) || !ip_parse(address, &a) || !str_to_i64(length, &prefix) ||
	    prefix < 0 || prefix > ip_bits(a))
		return false;
	*ret = (struct ip_net){ a, (uint8_t)prefix };
	return true;
}

const char *ip_text(struct ip a, char text[IP_TEXT])
{
	if (!ip_exists(a) || !inet_ntop(a.family, a.b, text, IP_TEXT))
		text[0] = '\0';
	return text;
}

const char *ip_net_text(struct ip_net n, char text[IP_TEXT])
{
	(void)ip_text(n.ip, text);
	size_t len = strlen(text);
	(void)snprintf(text + len, IP_TEXT - len, "/%u", n.prefix);
	return text;
}

str ip_str(struct arena *a, struct ip ip)
{
	char text[IP_TEXT];
	return arena_str(a, str_of(ip_text(ip, text)));
}

str ip_net_str(struct arena *a, struct ip_net n)
{
	char text[IP_TEXT];
	return arena_str(a, str_of(ip_net_text(n, text)));
}

int ip_cmp(struct ip a, struct ip b)
{
	if (a.family != b.family)
		return a.family < b.family ? -1 : 1;
	return memcmp(a.b, b.b, ip_exists(a) ? ip_len(a) : 0);
}

bool ip_is_zero(struct ip a)
{
	static const uint8_t zero[16];
	return memcmp(a.b, zero, ip_len(a)) == 0;
}

bool ip_is_loopback(struct ip a)
{
	static const uint8_t one[16] = { [15] = 1 };
	return ip_is_v4(a) ? a.b[0] == 127 : memcmp(a.b, one, sizeof(one)) == 0;
}

struct ip ip_next(struct ip a)
{
	for (size_t i = ip_len(a); i-- && ++a.b[i] == 0;)
		;
	return a;
}

struct ip ip_prev(struct ip a)
{
	for (size_t i = ip_len(a); i-- && a.b[i]-- == 0;)
		;
	return a;
}

struct ip ip_net_mask(struct ip_net n)
{
	struct ip mask = { .family = n.ip.family };
	for (size_t i = 0; i < n.prefix; i++)
		mask.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	return mask;
}

struct ip ip_net_first(struct ip_net n)
{
	struct ip mask = ip_net_mask(n);
	for (size_t i = 0; i < ip_len(n.ip); i++)
		n.ip.b[i] &= mask.b[i];
	return n.ip;
}

struct ip ip_net_last(struct ip_net n)
{
	struct ip mask = ip_net_mask(n);
	for (size_t i = 0; i < ip_len(n.ip); i++)
		n.ip.b[i] |= (uint8_t)~mask.b[i];
	return n.ip;
}

bool ip_net_has(struct ip_net n, struct ip a)
{
	return a.family == n.ip.family && ip_eq(ip_net_first(n), ip_net_first((struct ip_net){ a, n.prefix }));
}

bool ip_net_eq(struct ip_net a, struct ip_net b)
{
	return a.prefix == b.prefix && ip_eq(a.ip, b.ip);
}

const char *mac_text(const uint8_t mac[6], char text[MAC_TEXT])
{
	(void)snprintf(text, MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	return text;
}

bool mac_parse(str text, uint8_t ret[6])
{
	uint8_t mac[6];
	size_t n;

	if (text.n != MAC_TEXT - 1)
		return false;
	for (size_t i = 0; i < sizeof(mac); i++) {
		str byte = str_span(text.p + 3 * i, 2);
		if ((i && text.p[3 * i - 1] != ':') || hex_decode((char *)mac + i, byte, &n, NULL) < 0)
			return false;
	}
	memcpy(ret, mac, sizeof(mac));
	return true;
}
