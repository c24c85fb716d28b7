#include <arpa/inet.h>
#include <stdio.h>

#include "base/encoding.h"
#include "cni/inet.h"

struct inet inet_of(int family, const void *bytes)
{
	struct inet a = { .family = (uint8_t)family };
	memcpy(a.b, bytes, inet_len(a));
	return a;
}

bool inet_parse(str text, struct inet *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char copy[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	if (text.n >= sizeof(copy) || !text.n || memchr(text.p, '\0', text.n))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	if (inet_pton(AF_INET, copy, bytes) == 1)
		*ret = inet_of(AF_INET, bytes);
	else if (inet_pton(AF_INET6, copy, bytes) != 1)
		return false;
	else if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
		*ret = inet_of(AF_INET, bytes + sizeof(mapped));
	else
		*ret = inet_of(AF_INET6, bytes);
	return true;
}

bool inet_net_parse(str text, struct inet_net *ret)
{
	str address, length;
	struct inet a;
	int64_t prefix;

	if (!str_cut(text, '/', &address, &length) || !inet_parse(address, &a) || !str_to_i64(length, &prefix) ||
	    prefix < 0 || prefix > inet_bits(a))
		return false;
	*ret = (struct inet_net){ a, (uint8_t)prefix };
	return true;
}

const char *inet_text(struct inet a, char text[INET_TEXT])
{
	if (!inet_exists(a) || !inet_ntop(a.family, a.b, text, INET_TEXT))
		text[0] = '\0';
	return text;
}

const char *inet_net_text(struct inet_net n, char text[INET_TEXT])
{
	(void)inet_text(n.ip, text);
	size_t len = strlen(text);
	(void)snprintf(text + len, INET_TEXT - len, "/%u", n.prefix);
	return text;
}

str inet_str(struct arena *a, struct inet ip)
{
	char text[INET_TEXT];
	return arena_str(a, str_of(inet_text(ip, text)));
}

str inet_net_str(struct arena *a, struct inet_net n)
{
	char text[INET_TEXT];
	return arena_str(a, str_of(inet_net_text(n, text)));
}

int inet_cmp(struct inet a, struct inet b)
{
	if (a.family != b.family)
		return a.family < b.family ? -1 : 1;
	return memcmp(a.b, b.b, inet_exists(a) ? inet_len(a) : 0);
}

bool inet_is_zero(struct inet a)
{
	static const uint8_t zero[16];
	return memcmp(a.b, zero, inet_len(a)) == 0;
}

bool inet_is_loopback(struct inet a)
{
	static const uint8_t one[16] = { [15] = 1 };
	return inet_is_v4(a) ? a.b[0] == 127 : memcmp(a.b, one, sizeof(one)) == 0;
}

struct inet inet_next(struct inet a)
{
	for (size_t i = inet_len(a); i-- && ++a.b[i] == 0;)
		;
	return a;
}

struct inet inet_prev(struct inet a)
{
	for (size_t i = inet_len(a); i-- && a.b[i]-- == 0;)
		;
	return a;
}

struct inet inet_net_mask(struct inet_net n)
{
	struct inet mask = { .family = n.ip.family };
	for (size_t i = 0; i < n.prefix; i++)
		mask.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	return mask;
}

struct inet inet_net_first(struct inet_net n)
{
	struct inet mask = inet_net_mask(n);
	for (size_t i = 0; i < inet_len(n.ip); i++)
		n.ip.b[i] &= mask.b[i];
	return n.ip;
}

struct inet inet_net_last(struct inet_net n)
{
	struct inet mask = inet_net_mask(n);
	for (size_t i = 0; i < inet_len(n.ip); i++)
		n.ip.b[i] |= (uint8_t)~mask.b[i];
	return n.ip;
}

bool inet_net_has(struct inet_net n, struct inet a)
{
	return a.family == n.ip.family && inet_eq(inet_net_first(n), inet_net_first((struct inet_net){ a, n.prefix }));
}

bool inet_net_eq(struct inet_net a, struct inet_net b)
{
	return a.prefix == b.prefix && inet_eq(a.ip, b.ip);
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
