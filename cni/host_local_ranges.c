/* The configuration of host-local: where ranges may stand in it, what they must fulfil. */
#include "base/buf.h"
#include "cni/host_local.h"
#include "codec/atoms.h"

enum { RANGES_MAX = 1024, REQUESTED_MAX = 64 };

static const char *text_of(struct plugin *p, struct inet ip) { return inet_str(p->arena, ip).p; }

/* ---- one range ---- */

static bool range_has(const struct host_range *r, struct inet ip)
{
	return inet_net_has(r->subnet, ip) && (!inet_exists(r->start) || inet_cmp(ip, r->start) >= 0) &&
	       (!inet_exists(r->end) || inet_cmp(ip, r->end) <= 0);
}

static bool overlap(const struct host_range *a, const struct host_range *b)
{
	return range_has(a, b->start) || range_has(a, b->end) || range_has(b, a->start) || range_has(b, a->end);
}

static int load_ip(struct plugin *p, struct val v, struct inet *ret, struct err *err)
{
	if (val_is_nil(v) || (val_is(v, VAL_STRING) && !v.n))
		return 0;
	if (!inet_parse(val_as_str(v), ret))
		return plugin_fail(p, CNI_DECODING_FAILURE, err, "invalid IP address: " STR_FMT, STR_ARG(val_as_str(v)));
	return 0;
}

/* Fills in what is not given: from .1 to the last but the broadcast address, and .1 is the gateway. */
static int complete(struct plugin *p, struct host_range *r, struct err *err)
{
	char subnet[INET_TEXT];
	struct inet first = inet_net_first(r->subnet), end = r->end;

	(void)inet_net_text(r->subnet, subnet);
	if (r->subnet.prefix > inet_bits(first) - 2)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "Network %s too small to allocate from", subnet);
	if (!inet_eq(r->subnet.ip, first))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "Network has host bits set. For a subnet mask of length %u the network address is %s",
				   r->subnet.prefix, text_of(p, first));
	if (!inet_exists(r->gateway))
		r->gateway = inet_next(first);
	r->end = (struct inet){ 0 };
	if (inet_exists(r->start) && !range_has(r, r->start))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "RangeStart %s not in network %s", text_of(p, r->start), subnet);
	if (!inet_exists(r->start))
		r->start = inet_next(first);
	if (inet_exists(end) && !range_has(r, end))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "RangeEnd %s not in network %s", text_of(p, end), subnet);
	r->end = inet_exists(end) ? end : inet_net_last(r->subnet);
	if (!inet_exists(end) && inet_is_v4(first))
		r->end = inet_prev(r->end);
	return 0;
}

static int load_range(struct plugin *p, struct val v, struct host_range *r, struct err *err)
{
	str subnet = val_str(v, subnet);
	int result;

	*r = (struct host_range){ 0 };
	if (!inet_net_parse(subnet, &r->subnet))
		return plugin_fail(p, CNI_DECODING_FAILURE, err, "invalid CIDR address: " STR_FMT, STR_ARG(subnet));
	if ((result = load_ip(p, val_get(v, rangeStart), &r->start, err)) < 0 ||
	    (result = load_ip(p, val_get(v, rangeEnd), &r->end, err)) < 0 ||
	    (result = load_ip(p, val_get(v, gateway), &r->gateway, err)) < 0)
		return result;
	return complete(p, r, err);
}

/* ---- sets ---- */

str host_range_set_text(struct arena *a, const struct host_range_set *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 10);
	char start[INET_TEXT], end[INET_TEXT];

	for (size_t i = 0; i < s->n; i++)
		buf_addf(&b, "%s%s-%s", i ? "," : "", inet_text(s->ranges[i].start, start), inet_text(s->ranges[i].end, end));
	return arena_str(a, buf_str(&b));
}

const struct host_range *host_range_for(const struct host_range_set *s, struct inet ip)
{
	for (size_t i = 0; i < s->n; i++)
		if (range_has(&s->ranges[i], ip))
			return &s->ranges[i];
	return NULL;
}

static int check_set(struct plugin *p, const struct host_range_set *s, struct err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct host_range *r = &s->ranges[i];
		if (r->subnet.ip.family != s->ranges[0].subnet.ip.family)
			return plugin_fail(p, CNI_INVALID_CONFIG, err, "mixed address families");
		for (size_t k = 0; k < i; k++)
			if (overlap(r, &s->ranges[k]))
				return plugin_fail(p, CNI_INVALID_CONFIG, err, "subnets %s-%s and %s-%s overlap",
						   text_of(p, s->ranges[k].start),
						   text_of(p, s->ranges[k].end), text_of(p, r->start), text_of(p, r->end));
	}
	return 0;
}

/* list: of ranges. */
static int load_set(struct plugin *p, struct val list, struct host_local *h, struct err *err)
{
	struct host_range_set *s = &h->sets[h->n];
	int r = 0;

	*s = (struct host_range_set){ .ranges = ARENA_ARRAY(p->arena, struct host_range, val_len(list) + 1) };
	if (!val_is(list, VAL_LIST) || !list.n)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "invalid range set %zu: empty range set", h->n);
	VAL_EACH(v, list)
		if ((r = load_range(p, *v, &s->ranges[s->n++], err)) < 0)
			return err_wrap(err, r, "invalid range set %zu", h->n);
	if ((r = check_set(p, s, err)) < 0)
		return err_wrap(err, r, "invalid range set %zu", h->n);
	h->n++;
	return 0;
}

static int check_sets(struct plugin *p, const struct host_local *h, struct err *err)
{
	for (size_t i = 0; i < h->n; i++)
		for (size_t k = i + 1; k < h->n; k++)
			for (size_t x = 0; x < h->sets[i].n; x++)
				for (size_t y = 0; y < h->sets[k].n; y++)
					if (overlap(&h->sets[i].ranges[x], &h->sets[k].ranges[y]))
						return plugin_fail(p, CNI_INVALID_CONFIG, err, "range set %zu overlaps with %zu", i, k);
	return 0;
}

static size_t count_ranges(struct val sets)
{
	size_t n = 0;
	VAL_EACH(set, sets)
		n += val_len(*set);
	return n;
}

/* Those of the call come first, then the short form of one range, then the long form. */
static int load_sets(struct plugin *p, struct val ipam, struct host_local *h, struct err *err)
{
	struct val given = val_get(p->config, runtimeConfig, ipRanges), ranges = val_get(ipam, ranges);
	int r = 0;

	if (count_ranges(given) + count_ranges(ranges) > RANGES_MAX)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "more than %d ranges", RANGES_MAX);
	h->sets = ARENA_ARRAY(p->arena, struct host_range_set, (size_t)val_len(given) + val_len(ranges) + 1);
	VAL_EACH(set, given)
		if ((r = load_set(p, *set, h, err)) < 0)
			return r;
	if (val_str(ipam, subnet).n && (r = load_set(p, LIST(p->arena, ipam), h, err)) < 0)
		return r;
	VAL_EACH(set, ranges)
		if ((r = load_set(p, *set, h, err)) < 0)
			return r;
	if (!h->n)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "no IP ranges specified");
	return check_sets(p, h, err);
}

/* ---- addresses that are asked for ---- */

static int add_requested(struct plugin *p, struct host_local *h, str text, struct err *err)
{
	str address, prefix;

	(void)str_cut(text, '/', &address, &prefix);
	if (h->n_requested == REQUESTED_MAX)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "more than %d addresses are asked for", REQUESTED_MAX);
	if (!inet_parse(address, &h->requested[h->n_requested]))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "cannot understand ip: " STR_FMT, STR_ARG(text));
	h->n_requested++;
	return 0;
}

static int load_requested(struct plugin *p, struct host_local *h, struct err *err)
{
	const struct val lists[] = { val_get(p->config, args, cni, ips), val_get(p->config, runtimeConfig, ips) };
	str ip = plugin_arg(p, STR("IP"));
	int r;

	h->requested = ARENA_ARRAY(p->arena, struct inet, REQUESTED_MAX);
	if (ip.n && (r = add_requested(p, h, ip, err)) < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(v, lists[i])
			if ((r = add_requested(p, h, val_as_str(*v), err)) < 0)
				return r;
	return 0;
}

int host_local_load(struct plugin *p, struct host_local *ret, struct err *err)
{
	struct val ipam = val_get(p->config, ipam);
	int r;

	*ret = (struct host_local){ .routes = val_get(ipam, routes), .data_dir = val_str(ipam, dataDir), .resolv_conf = val_str(ipam, resolvConf) };
	if (!val_is(ipam, VAL_OBJECT))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "IPAM config missing 'ipam' key");
	if (!ret->data_dir.n)
		ret->data_dir = STR("/var/lib/cni/networks");
	if ((r = load_requested(p, ret, err)) < 0)
		return r;
	return load_sets(p, ipam, ret, err);
}
