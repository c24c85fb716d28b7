#include "cni/host_local.h"

#include "base/file.h"
#include "cni/result.h"
#include "codec/atoms.h"

static int open_store(struct plugin *p, const struct host_local *h, struct host_store *s, struct err *err)
{
	int r = host_store_open(s, arena_printf(p->arena, STR_FMT "/%s", STR_ARG(h->data_dir), p->network).p, err);
	if (r < 0)
		p->code = CNI_IO_FAILURE;
	return r;
}

/* ---- DNS ---- */

static str next_word(str *line)
{
	str word;

	*line = str_trim(*line);
	for (size_t i = 0; i <= line->n; i++) {
		if (i < line->n && line->p[i] != ' ' && line->p[i] != '\t')
			continue;
		word = str_head(*line, i);
		*line = str_skip(*line, i);
		return word;
	}
	return STR_NONE;
}

/* The content of a resolv.conf as a result has it. */
static int load_dns(struct plugin *p, str path, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(64 << 10);
	struct val_builder servers = val_builder(p->arena), search = val_builder(p->arena), options = val_builder(p->arena);
	struct val domain = VAL_EMPTY;
	int r = file_read(arena_str(p->arena, path).p, &text, err);

	if (r < 0)
		return r;
	for (str rest = arena_str(p->arena, buf_str(&text)), line; rest.n;) {
		(void)str_cut(rest, '\n', &line, &rest);
		str key = next_word(&line), word = next_word(&line);
		if (!word.n || strchr("#;", key.p[0]))
			continue;
		if (str_eq(key, STR("nameserver")))
			val_add_item(&servers, val_of_str(word));
		else if (str_eq(key, STR("domain")))
			domain = val_of_str(word);
		else if (str_eq(key, STR("search")) || str_eq(key, STR("options")))
			for (; word.n; word = next_word(&line))
				val_add_item(str_eq(key, STR("search")) ? &search : &options, val_of_str(word));
	}
	*ret = OBJECT(p->arena, F(nameservers, servers.n ? val_end_list(&servers) : VAL_EMPTY), F(domain, domain),
		      F(search, search.n ? val_end_list(&search) : VAL_EMPTY),
		      F(options, options.n ? val_end_list(&options) : VAL_EMPTY));
	return 0;
}

/* ---- whose an address is ---- */

struct owner {
	str id, ifname;
	const struct host_range_set *set;    /* looks only at these */
	struct inet found;
	bool old_too;                        /* also files that do not name an interface */
};

static bool is_owner(const struct owner *o, str id, str ifname)
{
	return str_eq(id, o->id) && (str_eq(ifname, o->ifname) || (o->old_too && !ifname.n));
}

static bool find_one(struct inet ip, str id, str ifname, void *arg)
{
	struct owner *o = arg;
	if (is_owner(o, id, ifname) && (!o->set || host_range_for(o->set, ip)))
		o->found = ip;
	return false;
}

static bool release(struct inet ip, str id, str ifname, void *arg)
{
	struct owner *o = arg;
	if (!is_owner(o, id, ifname))
		return false;
	o->found = ip;
	return true;
}

/* ---- ADD ---- */

static int take_requested(struct plugin *p, struct host_store *s, const struct host_range_set *set, size_t index,
			  struct inet ip, struct err *err)
{
	const struct host_range *r = host_range_for(set, ip);
	char text[INET_TEXT];

	if (inet_eq(ip, r->gateway))
		return err_set(err, ERR_CONFLICT, "requested ip %s is subnet's gateway", inet_text(ip, text));
	int got = host_store_reserve(s, ip, p->id, p->ifname, index, err);
	if (got == 0)
		return err_set(err, ERR_CONFLICT, "requested IP address %s is not available in range set " STR_FMT,
			       inet_text(ip, text),
			       STR_ARG(host_range_set_text(p->arena, set)));
	return got < 0 ? got : 0;
}

static int take_any(struct plugin *p, struct host_store *s, const struct host_range_set *set, size_t index,
		    struct inet *ret, struct err *err)
{
	struct owner o = { .id = str_of(p->id), .ifname = str_of(p->ifname), .set = set, .old_too = true };
	char text[INET_TEXT];
	int r = host_store_each(s, find_one, &o, err);

	if (r < 0)
		return r;
	if (inet_exists(o.found))
		return err_set(err, ERR_CONFLICT, "%s has been allocated to %s, duplicate allocation is not allowed",
			       inet_text(o.found, text), p->id);
	r = host_store_next(s, set, index, p->id, p->ifname, ret, err);
	if (r == -ERR_NOT_FOUND) {
		p->code = CNI_TRY_AGAIN_LATER;
		return err_set(err, ERR_UNAVAILABLE, "no IP addresses available in range set: " STR_FMT,
			       STR_ARG(host_range_set_text(p->arena, set)));
	}
	return r;
}

/* One address of one set; from those that are asked for, if one of them is in it. */
static int take(struct plugin *p, struct host_local *h, struct host_store *s, size_t index, struct val_builder *ips,
		struct err *err)
{
	const struct host_range_set *set = &h->sets[index];
	struct inet ip = { 0 };
	int r;

	for (size_t i = 0; i < h->n_requested && !inet_exists(ip); i++) {
		if (!host_range_for(set, h->requested[i]))
			continue;
		ip = h->requested[i];
		h->requested[i] = h->requested[--h->n_requested];
	}
	r = inet_exists(ip) ? take_requested(p, s, set, index, ip, err) : take_any(p, s, set, index, &ip, err);
	if (r < 0)
		return err_wrap(err, r, "failed to allocate for range %zu", index);
	const struct host_range *range = host_range_for(set, ip);
	val_add_item(ips, OBJECT(p->arena,
				 F(address, val_of_str(inet_net_str(p->arena, (struct inet_net){ ip, range->subnet.prefix }))),
				 F(gateway, val_of_str(inet_str(p->arena, range->gateway)))));
	return 0;
}

static int add(struct plugin *p, struct val *ret, struct err *err)
{
	CLEANUP(host_store_close) struct host_store s = HOST_STORE_INIT;
	struct val_builder ips = val_builder(p->arena);
	struct val dns = VAL_EMPTY;
	struct host_local h;
	size_t done = 0;
	int r;

	if ((r = host_local_load(p, &h, err)) < 0 || (h.resolv_conf.n && (r = load_dns(p, h.resolv_conf, &dns, err)) < 0) ||
	    (r = open_store(p, &h, &s, err)) < 0)
		return r;
	while (done < h.n && (r = take(p, &h, &s, done, &ips, err)) == 0)
		done++;
	if (r == 0 && h.n_requested)
		r = err_set(err, ERR_CONFLICT, "failed to allocate all requested IPs: " STR_FMT,
			    STR_ARG(inet_str(p->arena, h.requested[0])));
	if (r < 0) {
		/* What an earlier call gave out stays: then nothing was taken by this one. */
		struct owner o = { .id = str_of(p->id), .ifname = str_of(p->ifname) };
		if (done)
			(void)host_store_each(&s, release, &o, NULL);
		return r;
	}
	*ret = OBJECT(p->arena, F(cniVersion, VAL_LIT(CNI_VERSION)), F(ips, val_end_list(&ips)), F(routes, h.routes), F(dns, dns));
	return 0;
}

/* ---- the others ---- */

static int del(struct plugin *p, struct err *err)
{
	CLEANUP(host_store_close) struct host_store s = HOST_STORE_INIT;
	struct owner o = { .id = str_of(p->id), .ifname = str_of(p->ifname) };
	struct host_local h;
	int r;

	if ((r = host_local_load(p, &h, err)) < 0 || (r = open_store(p, &h, &s, err)) < 0 ||
	    (r = host_store_each(&s, release, &o, err)) < 0)
		return r;
	if (inet_exists(o.found))
		return 0;
	o.old_too = true;
	return host_store_each(&s, release, &o, err);
}

static int check(struct plugin *p, struct err *err)
{
	CLEANUP(host_store_close) struct host_store s = HOST_STORE_INIT;
	struct owner o = { .id = str_of(p->id), .ifname = str_of(p->ifname), .old_too = true };
	struct host_local h;
	int r;

	if ((r = host_local_load(p, &h, err)) < 0 || (r = open_store(p, &h, &s, err)) < 0 ||
	    (r = host_store_each(&s, find_one, &o, err)) < 0)
		return r;
	return inet_exists(o.found) ? 0 : err_set(err, ERR_NOT_FOUND,
						  "host-local: Failed to find address added by container %s", p->id);
}

struct valid {
	const struct rules_owner *owners;
	size_t n;
};

static bool release_invalid(struct inet ip, str id, str ifname, void *arg)
{
	const struct valid *v = arg;

	(void)ip;
	for (size_t i = 0; i < v->n; i++)
		if (str_eq(id, str_of(v->owners[i].id)) && (!ifname.n || str_eq(ifname, str_of(v->owners[i].ifname))))
			return false;
	return true;
}

static int gc(struct plugin *p, struct err *err)
{
	CLEANUP(host_store_close) struct host_store s = HOST_STORE_INIT;
	struct rules_owner *owners;
	struct host_local h;
	struct valid v;
	int r;

	if ((r = host_local_load(p, &h, err)) < 0 || (r = plugin_valid(p, &owners, &v.n, err)) < 0 ||
	    (r = open_store(p, &h, &s, err)) < 0)
		return r;
	v.owners = owners;
	return host_store_each(&s, release_invalid, &v, err);
}

static int status(struct plugin *p, struct err *err)
{
	CLEANUP(host_store_close) struct host_store s = HOST_STORE_INIT;
	struct host_local h;
	int r = host_local_load(p, &h, err);

	if (r == 0)
		r = open_store(p, &h, &s, err);
	if (r < 0)
		p->code = CNI_NOT_AVAILABLE;
	return r;
}

const struct plugin_ops plugin_host_local = { "host-local", add, check, del, gc, status };
