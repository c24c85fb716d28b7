#include "cni/bridge_vlan.h"

#include <stdio.h>

#include "base/random.h"
#include "cni/netns.h"
#include "codec/atoms.h"

enum { VLAN_MAX = 4094, NATIVE_OF_TRUNK = 1 };

/* ---- configuration ---- */

static int trunk_error(struct plugin *p, const char *what, struct err *err)
{
	return plugin_fail(p, CNI_INVALID_CONFIG, err, "%s", what);
}

/* *ret_there: whether it is given. */
static int trunk_number(struct plugin *p, struct val item, const char *name, uint16_t *ret, bool *ret_there, struct err *err)
{
	struct val v = val_find(item, str_of(name));

	*ret_there = !val_is_nil(v);
	if (!*ret_there)
		return 0;
	if (!val_is(v, VAL_INT) || v.i < 1 || v.i > VLAN_MAX)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "incorrect trunk %s parameter", name);
	*ret = (uint16_t)v.i;
	return 0;
}

static int load_trunk(struct plugin *p, struct val item, struct bridge_vlans *v, struct err *err)
{
	struct link_vlan range = { 0 }, one = { 0 };
	bool has_first, has_last, has_one;
	int r;

	if ((r = trunk_number(p, item, "minID", &range.first, &has_first, err)) < 0 ||
	    (r = trunk_number(p, item, "maxID", &range.last, &has_last, err)) < 0 ||
	    (r = trunk_number(p, item, "id", &one.first, &has_one, err)) < 0)
		return r;
	if (has_first != has_last)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "minID and maxID should be configured simultaneously, %s is missing",
				   has_first ? "maxID" : "minID");
	if (has_first && range.last < range.first)
		return trunk_error(p, "minID is greater than maxID in trunk parameter", err);
	if (v->n + has_first + has_one > BRIDGE_TRUNKS_MAX)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "more than %d trunks", BRIDGE_TRUNKS_MAX);
	if (has_first)
		v->trunks[v->n++] = range;
	one.last = one.first;
	if (has_one)
		v->trunks[v->n++] = one;
	return 0;
}

int bridge_vlans_load(struct plugin *p, struct bridge_vlans *ret, struct err *err)
{
	struct val trunks = val_get(p->config, vlanTrunk);
	int64_t native = 0;
	int r;

	*ret = (struct bridge_vlans){ 0 };
	if ((r = plugin_int(p, "vlan", INT32_MIN, INT32_MAX, &native, err)) < 0 ||
	    (r = plugin_bool(p, "preserveDefaultVlan", &ret->keep_default, err)) < 0)
		return r;
	if (native < 0 || native > VLAN_MAX)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "invalid VLAN ID %lld (must be between 0 and %d)",
				   (long long)native, VLAN_MAX);
	if (!val_is_nil(trunks) && !val_is(trunks, VAL_LIST))
		return plugin_fail(p, CNI_DECODING_FAILURE, err, "failed to load netconf: \"vlanTrunk\" must be a list");
	ret->native = (uint16_t)native;
	VAL_EACH(item, trunks)
		if ((r = load_trunk(p, *item, ret, err)) < 0)
			return r;
	return 0;
}

bool bridge_vlans_used(const struct bridge_vlans *v) { return v->native || v->n; }

/* ---- ports ---- */

int bridge_vlans_set(struct netlink *n, const struct link *bridge, int port, const struct bridge_vlans *v, struct err *err)
{
	uint16_t native = v->native ? v->native : NATIVE_OF_TRUNK;
	int r = 0;

	if (!v->keep_default && bridge->default_vlan && (r = link_vlan_del(n, port, bridge->default_vlan, err)) < 0)
		return r;
	for (size_t i = 0; i < v->n && r == 0; i++)
		r = link_vlan_add(n, port, v->trunks[i], err);
	return r < 0 ? r : link_vlan_add(n, port, (struct link_vlan){ native, native, true }, err);
}

/* ---- the gateway ---- */

static int gateway_add(struct netlink *n, const struct link *bridge, const char *name, struct err *err)
{
	char port[IFNAMSIZ], setting[64];
	struct link_spec spec = { .name = name, .kind = "veth", .mtu = bridge->mtu, .peer_name = port };
	struct err e = ERR_INIT;

	(void)snprintf(port, sizeof(port), "veth%08x", (unsigned)random_u64());
	int r = link_add(n, &spec, &e);
	if (r < 0 && r != -ERR_ALREADY_EXISTS) {
		if (err)
			*err = e;
		return r;
	}
	(void)snprintf(setting, sizeof(setting), "net/ipv6/conf/%s/accept_ra", name);
	(void)sysctl_set(setting, "0", NULL);
	return 0;
}

/* Who made the pair may have been killed before it was complete, so all of it is done again: it changes nothing then. */
int bridge_vlans_gateway(struct netlink *n, const struct link *bridge, const struct bridge_vlans *v, struct link *ret,
			 struct err *err)
{
	struct bridge_vlans untagged = { .native = v->native, .keep_default = v->keep_default };
	const struct link_change up = { .up = LINK_ON }, plugged = { .up = LINK_ON, .master = bridge->index };
	char name[IFNAMSIZ + 8];
	int r;

	(void)snprintf(name, sizeof(name), "%s.%u", bridge->name, v->native);
	if ((r = link_get(n, name, ret, err)) == -ERR_NOT_FOUND && (r = gateway_add(n, bridge, name, err)) == 0)
		r = link_get(n, name, ret, err);
	if (r < 0)
		return err_wrap(err, r, "failed to create vlan interface");
	if (!str_eq(str_of(ret->kind), STR("veth")))
		return err_set(err, ERR_CONFLICT, "\"%s\" already exists but is not a veth", name);
	if ((r = link_set(n, ret->peer, &plugged, err)) < 0 || (r = bridge_vlans_set(n, bridge, ret->peer, &untagged, err)) < 0 ||
	    (r = link_set(n, ret->index, &up, err)) < 0)
		return err_wrap(err, r, "failed to set up vlan interface");
	return 0;
}
