/*
 * IP addresses and CIDR blocks as Kubernetes reads them, and the checks of API fields that hold them.
 *
 * Old fields accept what Go's parser took in 2014: octets and prefix lengths with leading zeros, IPv4 written as ::ffff:1.2.3.4,
 * IPv6 in any spelling, blocks with bits behind the prefix. New fields want the canonical form. The parsers here accept all of
 * it and say which liberties were taken; the checks decide. Pure functions, any thread.
 */
#ifndef C8S_MACHINERY_IP_H
#define C8S_MACHINERY_IP_H

#include "machinery/names.h"

struct ip {
	uint8_t family; /* 4 or 6, as it was written */
	uint8_t b[16];  /* IPv4 as ::ffff:a.b.c.d */
};

/* Liberties that a text takes. */
enum {
	IP_LEADING_ZEROS = 1 << 0, /* 010.1.1.1, 10.0.0.0/08, 00001:: */
	IP_MAPPED = 1 << 1,        /* ::ffff:10.0.0.1 */
};

/* False when text is not an address; ret_liberties may be NULL. */
bool ip_parse(str text, struct ip *ret, unsigned *ret_liberties);
/* IPv4, or IPv6 that carries one. */
bool ip_is_v4(const struct ip *ip);
bool ip_equal(const struct ip *a, const struct ip *b);
/* An address that others can reach: not this machine's own (loopback), nor good for one link only, nor for many at once. */
bool ip_is_reachable(const struct ip *ip);

enum { IP_TEXT_MAX = 48, CIDR_TEXT_MAX = 52 };
/* RFC 5952; an IPv4 address that was written as IPv6 appears as IPv4. Returns a slice of out, which is terminated. */
str ip_format(const struct ip *ip, char out[IP_TEXT_MAX]);

struct cidr {
	struct ip ip;  /* with the bits behind the prefix */
	uint8_t bits;  /* up to 32 or 128, by ip.family */
};

bool cidr_parse(str text, struct cidr *ret, unsigned *ret_liberties);
/* The first address of the block: without the bits behind the prefix. */
struct ip cidr_network(const struct cidr *c);
bool cidr_contains(const struct cidr *c, const struct ip *ip);
/* The block in its canonical form: network/bits. */
str cidr_format(const struct cidr *c, char out[CIDR_TEXT_MAX]);

/* ---- checks, as those of names.h; texts that are not literals are put into the arena ---- */

/* Canonical forms only, for fields that came after Kubernetes 1.33. An interface address may have bits behind the prefix. */
size_t ip_check(struct arena *a, str value, struct name_errors *ret);
size_t cidr_check(struct arena *a, str value, struct name_errors *ret);
size_t ip_check_interface_address(struct arena *a, str value, struct name_errors *ret);
/* Old fields. strict forbids leading zeros, mapped addresses and stray bits, but not other spellings of IPv6. */
size_t ip_check_legacy(str value, bool strict, struct name_errors *ret);
size_t cidr_check_legacy(str value, bool strict, struct name_errors *ret);

/*
 * Warnings for valid but unusual values of old fields; path is the field's ("spec.clusterIPs[0]"). They return the number of
 * texts written into ret (in the arena), at most 2.
 */
size_t ip_warnings(struct arena *a, str path, str value, str ret[2]);
size_t cidr_warnings(struct arena *a, str path, str value, str ret[2]);

#endif
