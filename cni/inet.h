/* inet: addresses and networks of both families, passed by value. An IPv4 address in IPv6 form (::ffff:1.2.3.4) is read as IPv4. */
#ifndef C8S_CNI_INET_H
#define C8S_CNI_INET_H

#include <sys/socket.h>

#include "base/arena.h"
#include "base/err.h"

struct inet {
	uint8_t family;    /* AF_INET or AF_INET6; 0: none */
	uint8_t b[16];     /* network order; the first four for IPv4 */
};

/* An address with the length of its network's prefix: 10.1.2.3/24. */
struct inet_net {
	struct inet ip;
	uint8_t prefix;
};

enum { INET_TEXT = 64, MAC_TEXT = 18 };

static inline bool inet_exists(struct inet a) { return a.family != 0; }
static inline bool inet_is_v4(struct inet a) { return a.family == AF_INET; }
/* Bytes (bits) of an address of that family. */
static inline size_t inet_len(struct inet a) { return inet_is_v4(a) ? 4 : 16; }
static inline uint8_t inet_bits(struct inet a) { return (uint8_t)(8 * inet_len(a)); }

/* The address with these bytes. */
struct inet inet_of(int family, const void *bytes);
/* False, and nothing written, when it is none. */
bool inet_parse(str text, struct inet *ret);
bool inet_net_parse(str text, struct inet_net *ret);
const char *inet_text(struct inet a, char text[INET_TEXT]);
const char *inet_net_text(struct inet_net n, char text[INET_TEXT]);
/* The same in an arena. */
str inet_str(struct arena *a, struct inet ip);
str inet_net_str(struct arena *a, struct inet_net n);

/* By family, then as numbers. */
int inet_cmp(struct inet a, struct inet b);
static inline bool inet_eq(struct inet a, struct inet b) { return inet_cmp(a, b) == 0; }
bool inet_is_zero(struct inet a);
bool inet_is_loopback(struct inet a);
/* The one after (before) it; the last one is followed by the first. */
struct inet inet_next(struct inet a);
struct inet inet_prev(struct inet a);

/* The first (last) address of the network. */
struct inet inet_net_first(struct inet_net n);
struct inet inet_net_last(struct inet_net n);
/* The mask as an address. */
struct inet inet_net_mask(struct inet_net n);
bool inet_net_has(struct inet_net n, struct inet a);
bool inet_net_eq(struct inet_net a, struct inet_net b);
/* The network that is just this address. */
static inline struct inet_net inet_net_host(struct inet a) { return (struct inet_net){ a, inet_bits(a) }; }

/* "0a:58:0a:01:02:03". */
const char *mac_text(const uint8_t mac[6], char text[MAC_TEXT]);
bool mac_parse(str text, uint8_t ret[6]);

#endif
