/* Where a pod's names are looked up: by the node's resolv.conf, the cluster's servers or its own wishes, within the limits of resolvers. */
#include "base/file.h"
#include "base/map.h"
#include "codec/atoms.h"
#include "kubelet/cri_config_priv.h"
#include "machinery/names.h"

enum { RESOLV_CONF_MAX = 10 << 20, SERVERS_MAX = 3, SEARCHES_MAX = 32, SEARCH_CHARS_MAX = 2048 };

struct dns {
	struct val servers, searches, options; /* lists of texts */
};

/* A list of texts without a second one of a kind; for options a kind is what stands before the ':', and the last one counts. */
struct unique {
	struct arena *arena;
	struct map seen;
	struct unique_text {
		str text;
		struct unique_text *next;
	} *first, **end;
};

static void unique_done(struct unique *u) { map_done(&u->seen); }

static void unique_add(struct unique *u, str kind, str text, bool replace)
{
	struct unique_text *t = map_get(&u->seen, kind);

	if (t) {
		t->text = replace ? text : t->text;
		return;
	}
	t = ARENA_NEW(u->arena, struct unique_text);
	t->text = text;
	if (!u->end)
		u->end = &u->first;
	*u->end = t;
	u->end = &t->next;
	map_put(&u->seen, kind, t);
}

static void unique_add_option(struct unique *u, str option)
{
	str kind, value;
	str_cut(option, ':', &kind, &value);
	unique_add(u, kind, option, true);
}

static struct val unique_list(const struct unique *u)
{
	struct val_builder b = val_builder(u->arena);
	for (const struct unique_text *t = u->first; t; t = t->next)
		val_add_item(&b, VAL_STR(t->text));
	return val_end_list(&b);
}

static struct val join_lists(struct arena *a, struct val x, struct val y)
{
	CLEANUP(unique_done) struct unique u = { .arena = a };
	VAL_EACH(t, x)
		unique_add(&u, val_as_str(*t), val_as_str(*t), false);
	VAL_EACH(t, y)
		unique_add(&u, val_as_str(*t), val_as_str(*t), false);
	return unique_list(&u);
}

/* ---- resolv.conf ---- */

/* The next word of a line; empty at its end. */
static str next_word(str *line)
{
	size_t n = 0;

	*line = str_trim(*line);
	while (n < line->n && !strchr(" \t\r\v\f", line->p[n]))
		n++;
	str word = str_head(*line, n);
	*line = str_skip(*line, n);
	return word;
}

static struct val search_domains(struct arena *a, str line)
{
	struct val_builder b = val_builder(a);
	for (str word; (word = next_word(&line)).n;)
		if (!str_eq(word, STR(".")))
			val_add_item(&b, VAL_STR(str_ends(word, STR(".")) ? str_head(word, word.n - 1) : word));
	return val_end_list(&b);
}

/* The text must live as long as the result. */
static int resolv_conf_parse(struct arena *a, str text, struct dns *ret, struct err *err)
{
	CLEANUP(unique_done) struct unique options = { .arena = a };
	struct val_builder servers = val_builder(a);
	unsigned bad = 0;

	while (text.n) {
		str line;
		str_cut(text, '\n', &line, &text);
		str word = next_word(&line);
		if (str_eq(word, STR("nameserver"))) {
			str address = next_word(&line);
			if (address.n)
				val_add_item(&servers, VAL_STR(address));
			else
				bad++;
		} else if (str_eq(word, STR("search"))) {
			ret->searches = search_domains(a, line);
		} else if (str_eq(word, STR("options"))) {
			while ((word = next_word(&line)).n)
				unique_add_option(&options, word);
		}
	}
	if (bad)
		return err_set(err, ERR_INVALID, "Encountered error while parsing resolv conf file. Error: nameserver list is empty ");
	ret->servers = val_end_list(&servers);
	ret->options = unique_list(&options);
	return 0;
}

static int resolv_conf_read(const struct kubelet_node *n, struct arena *a, struct dns *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(RESOLV_CONF_MAX);
	struct err why = ERR_INIT;
	int r;

	if (!n->resolv_conf.n)
		return 0;
	if ((r = file_read(arena_str(a, n->resolv_conf).p, &b, &why)) == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "open " STR_FMT ": no such file or directory", STR_ARG(n->resolv_conf));
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	return resolv_conf_parse(a, arena_str(a, buf_str(&b)), ret, err);
}

/* ---- limits ---- */

static void tell(const struct kubelet_node *n, struct val pod, const char *reason, str message)
{
	if (n->hooks && n->hooks->event)
		n->hooks->event(n->hooks->arg, pod, true, reason, message);
}

static str list_line(struct arena *a, struct val list)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(RESOLV_CONF_MAX);
	VAL_EACH(t, list) {
		if (t != list.items)
			buf_addc(&b, ' ');
		buf_add(&b, val_as_str(*t));
	}
	return arena_str(a, buf_str(&b));
}

static struct val fit_servers(const struct kubelet_node *n, struct arena *a, struct val pod, struct val servers)
{
	if (val_len(servers) <= SERVERS_MAX)
		return servers;
	servers.n = SERVERS_MAX;
	tell(n, pod, "DNSConfigForming",
	     arena_join(a, STR("Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "),
			list_line(a, servers)));
	return servers;
}

static struct val fit_searches(const struct kubelet_node *n, struct arena *a, struct val pod, struct val searches)
{
	struct val_builder b = val_builder(a);
	uint32_t before = val_len(searches), kept = 0;
	size_t chars = 0;

	/* glibc 2.28 gives up on a longer domain. */
	for (uint32_t i = 0; i < MIN(before, (uint32_t)SEARCHES_MAX); i++) {
		str domain = val_as_str(val_at(searches, i));
		if (domain.n > NAME_SUBDOMAIN_MAX)
			continue;
		val_add_item(&b, VAL_STR(domain));
		chars += domain.n + (kept++ ? 1 : 0);
	}
	struct val fit = val_end_list(&b);
	while (chars > SEARCH_CHARS_MAX && fit.n)
		chars -= MIN(chars, val_as_str(fit.items[--fit.n]).n + 1);
	if (val_len(fit) != before)
		tell(n, pod, "DNSConfigForming",
		     arena_join(a, STR("Search Line limits were exceeded, some search paths have been omitted, the applied search line "
				       "is: "), list_line(a, fit)));
	return fit;
}

/* ---- policies ---- */

static struct val cluster_searches(const struct kubelet_node *n, struct arena *a, struct val pod, struct val of_host)
{
	str namespace = val_str(pod, metadata, namespace);

	if (!n->cluster_domain.n)
		return of_host;
	str of_services = arena_join(a, STR("svc."), n->cluster_domain);
	str of_namespace = arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(namespace), STR_ARG(of_services));
	return join_lists(a, LIST(a, VAL_STR(of_namespace), VAL_STR(of_services), VAL_STR(n->cluster_domain)), of_host);
}

static void tell_missing_cluster_dns(const struct kubelet_node *n, struct arena *a, struct val pod)
{
	static const char text[] = "kubelet does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" policy. "
				   "Falling back to \"Default\" policy.";
	str name = cri_config_pod_name(a, pod);

	tell(n, VAL_EMPTY, "MissingClusterDNS", str_of(text));
	tell(n, pod, "MissingClusterDNS", arena_printf(a, "pod: \"" STR_FMT "\". %s", STR_ARG(name), text));
}

/* As the node does it. Without a resolv.conf a pod asks itself, and so finds nothing. */
static void use_host(const struct kubelet_node *n, struct arena *a, struct dns *dns)
{
	struct val_builder b = val_builder(a);

	if (n->resolv_conf.n)
		return;
	if (n->address.n || !n->address6.n)
		val_add_item(&b, VAL_LIT("127.0.0.1"));
	if (n->address6.n)
		val_add_item(&b, VAL_LIT("::1"));
	*dns = (struct dns){ .servers = val_end_list(&b), .searches = LIST(a, VAL_LIT(".")), .options = dns->options };
}

static void add_wishes(struct arena *a, struct val config, struct dns *dns)
{
	CLEANUP(unique_done) struct unique options = { .arena = a };

	VAL_EACH(t, dns->options)
		unique_add_option(&options, val_as_str(*t));
	VAL_EACH(o, val_get(config, options)) {
		str name = val_str(*o, name), value = val_str(*o, value);
		unique_add(&options, name, value.n ? arena_printf(a, STR_FMT ":" STR_FMT, STR_ARG(name), STR_ARG(value)) : name, true);
	}
	*dns = (struct dns){ join_lists(a, dns->servers, val_get(config, nameservers)),
			     join_lists(a, dns->searches, val_get(config, searches)), unique_list(&options) };
}

int cri_config_dns(const struct kubelet_node *n, struct arena *a, struct val pod, struct val *ret, struct err *err)
{
	str policy = val_str(pod, spec, dnsPolicy);
	bool of_host = str_eq(policy, STR("Default")) || (str_eq(policy, STR("ClusterFirst")) && val_bool(pod, spec, hostNetwork));
	struct dns dns = { 0 };
	int r;

	if ((r = resolv_conf_read(n, a, &dns, err)) < 0)
		return r;
	if (str_eq(policy, STR("None"))) {
		dns = (struct dns){ 0 };
	} else if (!of_host && val_len(n->cluster_dns)) {
		dns = (struct dns){ n->cluster_dns, cluster_searches(n, a, pod, dns.searches), LIST(a, VAL_LIT("ndots:5")) };
	} else {
		if (!of_host)
			tell_missing_cluster_dns(n, a, pod);
		use_host(n, a, &dns);
	}
	if (val_has(pod, spec, dnsConfig))
		add_wishes(a, val_get(pod, spec, dnsConfig), &dns);
	*ret = OBJECT(a, F(servers, fit_servers(n, a, pod, dns.servers)), F(searches, fit_searches(n, a, pod, dns.searches)),
		      F(options, dns.options));
	return 0;
}
