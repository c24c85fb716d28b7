/*
 * Configurations of networks. The first byte says whose: a list or a single plugin, as files have them (what can be read is a chain
 * of plugins that have types, and can be written and read again); or what a plugin of ours gets on its standard input (what
 * can be read has ranges that are in their networks, and VLANs that exist).
 */
#include "cni/bridge_vlan.h"
#include "cni/cni_priv.h"
#include "cni/host_local.h"
#include "cni/result.h"
#include "codec/atoms.h"
#include "fuzz/fuzz.h"

static void file(struct arena *a, str text, bool single)
{
	struct cni_config net, again;
	struct err err = ERR_INIT;

	if (cni_config_parse(a, text, single, &net, &err) < 0) {
		check(err.n > 0, "an error says what is wrong");
		return;
	}
	check(cni_check_network(net.name, NULL) == 0 && val_len(net.plugins) > 0, "a network has a name and plugins");
	VAL_EACH(p, net.plugins)
		check(val_str(*p, type).n > 0, "a plugin has a type");
	check(cni_config_parse(a, net.text, false, &again, NULL) == 0 && str_eq(again.name, net.name) &&
	      str_eq(again.version, net.version) && val_len(again.plugins) == val_len(net.plugins), "it can be read again");
}

static void ranges(const struct host_local *h)
{
	check(h->n > 0, "there are addresses to give out");
	for (size_t i = 0; i < h->n; i++) {
		check(h->sets[i].n > 0, "a set has ranges");
		for (size_t k = 0; k < h->sets[i].n; k++) {
			const struct host_range *r = &h->sets[i].ranges[k];
			check(inet_net_has(r->subnet, r->start) && inet_net_has(r->subnet, r->end) &&
			      inet_cmp(r->start, r->end) <= 0 && inet_exists(r->gateway), "a range is in its network");
			check(host_range_for(&h->sets[i], r->start) && host_range_for(&h->sets[i], r->end), "and is found");
		}
	}
}

static void input(struct arena *a, str text)
{
	struct plugin p = { .arena = a, .command = "ADD", .id = "id", .netns = "/ns", .ifname = "eth0", .args = "IP=10.0.0.9;K",
			    .path = "" };
	struct bridge_vlans vlans;
	struct rules_owner *valid;
	struct host_local h;
	struct err err = ERR_INIT;
	size_t n;

	if (plugin_load(&p, text, &err) < 0) {
		check(err.n > 0 && p.code, "an error has a code and words");
		return;
	}
	check(cni_version_known(p.version) && cni_check_network(str_of(p.network), NULL) == 0, "it has a version and a name");
	if (host_local_load(&p, &h, NULL) == 0)
		ranges(&h);
	if (bridge_vlans_load(&p, &vlans, NULL) == 0)
		for (size_t i = 0; i < vlans.n; i++)
			check(vlans.trunks[i].first >= 1 && vlans.trunks[i].first <= vlans.trunks[i].last &&
			      vlans.trunks[i].last <= 4094, "a VLAN has a number");
	if (plugin_valid(&p, &valid, &n, NULL) == 0)
		for (size_t i = 0; i < n; i++)
			check(valid[i].id && valid[i].ifname, "an attachment has a name, which may be empty");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	if (n < 1)
		return 0;
	str text = str_span((const char *)data + 1, n - 1);
	if (data[0] == 'l' || data[0] == 's')
		file(&a, text, data[0] == 's');
	else
		input(&a, text);
	arena_done(&a);
	return 0;
}
