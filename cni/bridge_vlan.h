/* bridge_vlan: pods of one bridge that are kept apart by VLANs, for the plugin bridge. */
#ifndef C8S_CNI_BRIDGE_VLAN_H
#define C8S_CNI_BRIDGE_VLAN_H

#include "cni/link.h"
#include "cni/plugin.h"

enum { BRIDGE_TRUNKS_MAX = 64 };

/* What a pod's port is in. */
struct bridge_vlans {
	uint16_t native;                            /* frames without a tag; 0: the bridge's default */
	bool keep_default;                          /* also in the one that the bridge gives to new ports */
	struct link_vlan trunks[BRIDGE_TRUNKS_MAX]; /* frames with a tag */
	size_t n;
};

/* vlan, vlanTrunk and preserveDefaultVlan of a configuration; messages are the reference plugin's. */
int bridge_vlans_load(struct plugin *p, struct bridge_vlans *ret, struct err *err);
/* Whether VLANs matter at all. */
bool bridge_vlans_used(const struct bridge_vlans *v);
/* Puts a port into its VLANs, and takes it out of the default one. */
int bridge_vlans_set(struct netlink *n, const struct link *bridge, int port, const struct bridge_vlans *v, struct err *err);
/* The node's own link in the native VLAN, BRIDGE.VLAN, which has the gateway's addresses: made, or made right again. */
int bridge_vlans_gateway(struct netlink *n, const struct link *bridge, const struct bridge_vlans *v, struct link *ret,
			 struct err *err);

#endif
