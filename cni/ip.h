/* ip: addresses and networks of both families, passed by value. An IPv4 address in IPv6 form (::ffff:1.2.3.4) is read as IPv4. */
#ifndef C8S_CNI_IP_H
#define C8S_CNI_IP_H

#include <sys/socket.h>

#include "base/arena.h"
#include "base/err.h"

struct ip {
	uint8_t family;    /* AF_INET or AF_INET6; 0: none */
	uint8_t b[16];     /* network order; the first four for IPv4 */
};

/* An address with the length of its network's prefix: 10.1.2.3/24. */
struct ip_net {
	struct ip ip;
	uint8_t prefix;
};

enum { IP_TEXT = 64, MAC_TEXT = 18 };

static inline bool ip_exists(struct ip a) { return a.family != 0; }
static inline bool ip_is_v4(struct ip a) { return a.family == AF_INET; }
/* Bytes (bits) of an address of that family. */
static inline size_t ip_len(struct ip a) { return ip_is_v4(a) ? 4 : 16; }
static inline uint8_t ip_bits(struct ip a) { return (uint8_t)(8 * ip_len(a)); }

/* The address with these bytes. */
struct ip ip_of(int family, const void *bytes);
/* False, and nothing written, when it is none. */
bool ip_parse(str text, struct ip *ret);
bool ip_net_parse(str text, struct ip_net *ret);
const char *ip_text(struct ip a, char text[IP_TEXT]);
const char *ip_net_text(struct ip_net n, char text[IP_TEXT]);
/* The same in an arena. */
str ip_str(struct arena *a, struct ip ip);
str ip_net_str(struct arena *a, struct ip_net n);

/* By family, then as numbers. */
int ip_cmp(struct ip a, struct ip b);
static inline bool ip_eq(struct ip a, struct ip b) { return ip_cmp(a, b) == 0; }
bool ip_is_zero(struct ip a);
bool ip_is_loopback(struct ip a);
/* The one after (before) it; the last one is followed by the first. */
struct ip ip_next(struct ip a);
struct ip ip_prev(struct ip a);

/* The first (last) address of the network. */
struct ip ip_net_first(struct ip_net n);
struct ip ip_net_last(struct ip_net n);
/* The mask as an address. */
struct ip ip_net_mask(struct ip_net n);
bool ip_net_has(struct ip_net n, struct ip a);
bool ip_net_eq(struct ip_net a, struct ip_net b);
/* The network that is just this address. */
static inline struct ip_net ip_net_host(struct ip a) { return (struct ip_net){ a, ip_bits(a) }; }

/* "0a:58:0a:01:02:03". */
const char *mac_text(const uint8_t mac[6], char text[MAC_TEXT]);
bool mac_parse(str text, uint8_t ret[6]);

#endif
