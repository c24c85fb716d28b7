#include "controllers/node_ipam_plan.h"

#include <stdlib.h>

#include "base/mem.h"

/* Where the bits of an address begin: IPv4 is kept as ::ffff:a.b.c.d. */
static unsigned first_bit(const struct cidr_set *s) { return s->whole.ip.family == 4 ? 96 : 0; }

int cidr_set_init(struct cidr_set *s, const struct cidr *whole, unsigned bits, struct err *err)
{
	char text[CIDR_TEXT_MAX];
	str name = cidr_format(whole, text);

	if (bits < whole->bits || bits > (whole->ip.family == 4 ? 32U : 128U))
		return err_set(err, ERR_INVALID, "blocks of /%u cannot be cut out of " STR_FMT, bits, STR_ARG(name));
	if (bits - whole->bits > CIDR_SET_BITS_MAX)
		return err_set(err, ERR_INVALID, "New CIDR set failed; the node CIDR size is too big: blocks of /%u in " STR_FMT, bits, STR_ARG(name));
	*s = (struct cidr_set){ .whole = *whole, .bits = bits, .n = 1U << (bits - whole->bits) };
	s->whole.ip = cidr_network(whole);
	s->taken = mem_zalloc(s->n / 8 + 1);
	return 0;
}

void cidr_set_done(struct cidr_set *s)
{
	free(s->taken);
	*s = (struct cidr_set){ 0 };
}

static bool is_taken(const struct cidr_set *s, uint32_t i) { return s->taken[i / 8] & 1U << i % 8; }

static void set_taken(struct cidr_set *s, uint32_t i, bool taken)
{
	if (is_taken(s, i) == taken)
		return;
	s->taken[i / 8] ^= (uint8_t)(1U << i % 8);
	s->n_taken += taken ? 1 : (uint32_t)-1;
}

static struct cidr block(const struct cidr_set *s, uint32_t i)
{
	struct cidr c = { .ip = s->whole.ip, .bits = (uint8_t)s->bits };
	unsigned from = first_bit(s) + s->whole.bits, to = first_bit(s) + s->bits;

	for (unsigned at = to; at > from; at--, i >>= 1)
		if (i & 1)
			c.ip.b[(at - 1) / 8] |= (uint8_t)(0x80U >> (at - 1) % 8);
	return c;
}

static uint32_t index_of(const struct cidr_set *s, const struct ip *ip)
{
	uint32_t i = 0;

	for (unsigned at = first_bit(s) + s->whole.bits; at < first_bit(s) + s->bits; at++)
		i = i << 1 | !!(ip->b[at / 8] & 0x80U >> at % 8);
	return i;
}

bool cidr_set_take(struct cidr_set *s, struct cidr *ret)
{
	for (uint32_t tried = 0; tried < s->n && s->n_taken < s->n; tried++) {
		uint32_t i = (s->next + tried) % s->n;
		if (is_taken(s, i))
			continue;
		set_taken(s, i, true);
		s->next = (i + 1) % s->n;
		*ret = block(s, i);
		return true;
	}
	return false;
}

static bool mark(struct cidr_set *s, const struct cidr *c, bool taken)
{
	struct ip network = cidr_network(c);
	uint32_t first = 0, n = s->n;

	if (c->ip.family != s->whole.ip.family)
		return false;
	if (cidr_contains(&s->whole, &network) && c->bits >= s->whole.bits) {
		first = index_of(s, &network);
		n = c->bits >= s->bits ? 1 : 1U << (s->bits - c->bits);
	} else if (!cidr_contains(c, &s->whole.ip)) {
		return false;
	}
	for (uint32_t i = first; i < first + n; i++)
		set_taken(s, i, taken);
	return true;
}

bool cidr_set_occupy(struct cidr_set *s, const struct cidr *c) { return mark(s, c, true); }
bool cidr_set_release(struct cidr_set *s, const struct cidr *c) { return mark(s, c, false); }
