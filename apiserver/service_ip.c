/*
 * Addresses. The choice is Kubernetes': of each range the lower part (a sixteenth, at least 16 and at most 256 addresses) is
 * left to those who name their address; others get one of the rest, the first that is free from a random place on.
 */
#include "apiserver/service_ip_priv.h"

#include "apiserver/cache.h"
#include "apiserver/inprocess.h"
#include "base/mem.h"
#include "base/random.h"
#include "codec/atoms.h"

enum { BAND_MIN = 16, BAND_MAX = 256, BAND_STEP = 16, V6_BITS_MIN = 64, TRIES_PER_TURN = 4096 };

/* ---- the ranges of the flag ---- */

int service_ip_new(const char *ranges, int first_port, int last_port, struct ip_allocators **ret, struct err *err)
{
	str text[2];
	str_cut(str_of(ranges), ',', &text[0], &text[1]);
	struct ip_allocators al = { .first_port = first_port, .last_port = last_port };
	for (size_t i = 0; i < 2 && text[i].n; i++) {
		struct cidr *c = &al.ranges[al.n_ranges++];
		if (!cidr_parse(str_trim(text[i]), c, NULL))
			return err_set(err, ERR_INVALID, "service range \"" STR_FMT "\" is no CIDR", STR_ARG(text[i]));
		if (c->ip.family == 6 && c->bits < V6_BITS_MIN)
			return err_set(err, ERR_INVALID,
				       "service range \"" STR_FMT "\": IPv6 needs a prefix of at least 64 bits",
				       STR_ARG(text[i]));
	}
	if (!al.n_ranges)
		return err_set(err, ERR_INVALID, "no range of service addresses is given");
	if (al.n_ranges == 2 && al.ranges[0].ip.family == al.ranges[1].ip.family)
		return err_set(err, ERR_INVALID, "two service ranges must be of different families");
	if (first_port < 1 || last_port > 65535 || first_port > last_port)
		return err_set(err, ERR_INVALID, "the range of node ports is empty");
	struct ip_allocators *made = mem_alloc(sizeof *made);
	*made = al;
	fiber_cond_init(&made->ports_free, "its turn to take node ports");
	made->leaks = mem_zalloc(port_count(&al));
	*ret = made;
	return 0;
}

void service_ip_free(struct ip_allocators *al)
{
	if (!al)
		return;
	free(al->leaks);
	free(al);
}

size_t service_ip_n_ranges(const struct ip_allocators *al) { return al->n_ranges; }
const struct cidr *service_ip_range(const struct ip_allocators *al, size_t i) { return &al->ranges[i]; }
str ip_family_of(const struct ip *ip) { return ip_is_v4(ip) ? STR("IPv4") : STR("IPv6"); }
str service_ip_family(const struct ip_allocators *al) { return ip_family_of(&al->ranges[0].ip); }

bool service_ip_has_family(const struct ip_allocators *al, str family)
{
	for (size_t i = 0; i < al->n_ranges; i++)
		if (str_eq(ip_family_of(&al->ranges[i].ip), family))
			return true;
	return false;
}

/* ---- arithmetic ---- */

static struct ip ip_plus(struct ip ip, uint64_t n)
{
	for (size_t i = sizeof ip.b; i-- > 0 && n;) {
		n += ip.b[i];
		ip.b[i] = (uint8_t)n;
		n >>= 8;
	}
	return ip;
}

/* The last address of the range: with all bits behind the prefix set. */
static struct ip cidr_last(const struct cidr *c)
{
	struct ip ip = cidr_network(c);
	for (unsigned bit = c->bits + (ip.family == 4 ? 96 : 0); bit < 128; bit++)
		ip.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return ip;
}

/* The addresses of a range that Services can have: not the network's own, and in IPv4 not the broadcast address. */
struct span {
	struct ip first, last;
	uint64_t n, band;             /* how many there are; how many of them are for those who ask by name */
};

static struct span span_of(const struct cidr *c)
{
	unsigned host_bits = (c->ip.family == 4 ? 32 : 128) - c->bits;
	uint64_t all = host_bits >= 64 ? UINT64_MAX : (uint64_t)1 << host_bits;
	struct span s = { .first = ip_plus(cidr_network(c), 1), .last = cidr_last(c), .n = all - 1 };
	if (c->ip.family == 4 && s.n) {
		s.n--;
		s.last = ip_plus(cidr_network(c), all - 2);
	}
	if (all > BAND_MIN) {
		s.band = MAX(all / BAND_STEP, (uint64_t)BAND_MIN);
		s.band = MIN(s.band, (uint64_t)BAND_MAX);
	}
	s.band = MIN(s.band, s.n);
	return s;
}

static bool span_has(const struct span *s, const struct ip *ip)
{
	return s->n && memcmp(ip->b, s->first.b, sizeof ip->b) >= 0 && memcmp(ip->b, s->last.b, sizeof ip->b) <= 0;
}

struct ip service_ip_first(const struct ip_allocators *al) { return span_of(&al->ranges[0]).first; }

/* ---- the ranges that there are ---- */

static bool is_ready(struct val cidr)
{
	if (val_has(cidr, metadata, deletionTimestamp))
		return false;
	VAL_EACH(c, val_get(cidr, status, conditions))
		if (str_eq(val_str(*c, type), STR("Ready")))
			return str_eq(val_str(*c, status), STR("True"));
	return true; /* the controller that says so may not run */
}

/* Walks the ranges of a family that addresses can be taken from. */
struct ranges {
	const struct ip_allocators *al;
	struct omap *all;             /* ServiceCIDRs as they were; NULL: they are not served, and the flag counts */
	struct omap_iter it;
	struct val cidrs;
	size_t at;
	str family;
};

static void ranges_done(struct ranges *r) { omap_free(r->all); }

static void ranges_begin(struct ranges *r, const struct apiserver *s, str family)
{
	const struct kind *kind = kinds_find(&s->kinds, STR("networking.k8s.io"), STR("servicecidrs"));
	*r = (struct ranges){ .al = s->allocators, .family = family };
	if (kind) {
		r->all = omap_snapshot(kind->objects);
		omap_seek(&r->it, r->all, STR_NONE);
	}
}

static bool ranges_next(struct ranges *r, struct cidr *ret)
{
	for (;;) {
		if (!r->all) {
			if (r->at == r->al->n_ranges)
				return false;
			*ret = r->al->ranges[r->at++];
		} else if (r->at == val_len(r->cidrs)) {
			const struct object *o = omap_next(&r->it, NULL);
			if (!o)
				return false;
			r->cidrs = is_ready(o->val) ? val_get(o->val, spec, cidrs) : VAL_EMPTY;
			r->at = 0;
			continue;
		} else if (!cidr_parse(val_as_str(val_at(r->cidrs, r->at++)), ret, NULL)) {
			continue;
		}
		if (str_eq(ip_family_of(&ret->ip), r->family) && (ret->ip.family == 4 || ret->bits >= V6_BITS_MIN))
			return true;
	}
}

/* ---- taking ---- */

/* 1: somebody has it. */
static int make_address(const struct ip_owner *o, const struct ip *ip, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char text[IP_TEXT_MAX];
	struct val family = val_of_str(ip_family_of(ip));
	struct val labels = val_put(&a, VAL_EMPTY, atom_make(&a, STR("ipaddress.kubernetes.io/ip-family")), family);
	labels = val_put(&a, labels, atom_make(&a, STR("ipaddress.kubernetes.io/managed-by")), VAL_LIT("ipallocator.k8s.io"));
	struct val parent = OBJECT(&a, F(resource, VAL_LIT("services")), F(namespace, val_of_str(o->namespace)),
				   F(name, val_of_str(o->name)));
	struct val object = OBJECT(&a, F(metadata, OBJECT(&a, F(name, val_of_str(ip_format(ip, text))), F(labels, labels))),
				   F(spec, OBJECT(&a, F(parentRef, parent))));
	int r = inprocess_create(INPROCESS(o->server, "networking.k8s.io", "ipaddresses"), object, err);
	return r == -ERR_ALREADY_EXISTS ? 1 : r;
}

static int try_take(const struct ip_owner *o, const struct ip *ip, struct err *err)
{
	CLEANUP(ranges_done) struct ranges ranges;
	struct cidr c;
	bool any = false;
	ranges_begin(&ranges, o->server, ip_family_of(ip));
	while (ranges_next(&ranges, &c)) {
		struct span span = span_of(&c);
		any = true;
		if (span_has(&span, ip))
			return o->dry_run ? 0 : make_address(o, ip, err);
		if (o->dry_run) { /* a dry run looks at one range only, and names it */
			char text[IP_TEXT_MAX], range[CIDR_TEXT_MAX];
			return err_set(err, ERR_INVALID,
				       "the provided IP (" STR_FMT ") is not in the valid range. The range of valid IPs is " STR_FMT, STR_ARG(ip_format(ip, text)), STR_ARG(cidr_format(&c, range)));
		}
	}
	if (o->dry_run && !any)
		return err_set(err, ERR_INVALID, "allocator not ready");
	return err_set(err, ERR_INVALID, "the provided network does not match the current range");
}

int service_ip_take(const struct ip_owner *o, const struct ip *ip, struct err *err)
{
	int r = try_take(o, ip, err);
	return r == 1 ? err_set(err, ERR_INVALID, "provided IP is already allocated") : r;
}

/* The first free one of n addresses from `from` on, beginning at a random one. 1: there is none. */
static int take_between(const struct ip_owner *o, struct ip from, uint64_t n, struct ip *ret, struct err *err)
{
	const struct kind *kind = kinds_find(&o->server->kinds, STR("networking.k8s.io"), STR("ipaddresses"));
	uint64_t start = n ? random_below(n) : 0;
	for (uint64_t i = 0; i < n; i++) {
		char text[IP_TEXT_MAX];
		uint64_t at = start < n - i ? start + i : start - (n - i);
		struct ip ip = ip_plus(from, at);
		int r;
		if (i % TRIES_PER_TURN == TRIES_PER_TURN - 1 && (r = fiber_yield(err)) < 0)
			return r;
		if (kind && cache_get(kind, ip_format(&ip, text)))
			continue;
		r = make_address(o, &ip, err);
		if (r <= 0) {
			*ret = ip;
			return r;
		}
	}
	return 1;
}

int service_ip_take_any(const struct ip_owner *o, str family, struct ip *ret, struct err *err)
{
	CLEANUP(ranges_done) struct ranges ranges;
	struct cidr c;
	int r = 1;
	ranges_begin(&ranges, o->server, family);
	while (r == 1 && ranges_next(&ranges, &c)) {
		struct span span = span_of(&c);
		if (o->dry_run) { /* which one it would be is not worth finding out: the range's own */
			*ret = cidr_network(&c);
			return 0;
		}
		r = take_between(o, ip_plus(span.first, span.band), span.n - span.band, ret, err);
		if (r == 1)
			r = take_between(o, span.first, span.band, ret, err);
	}
	return r;
}

int service_ip_give_back(struct apiserver *s, const struct ip *ip, struct err *err)
{
	char text[IP_TEXT_MAX];
	int r = inprocess_delete(INPROCESS(s, "networking.k8s.io", "ipaddresses"), STR_NONE, ip_format(ip, text), err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}
