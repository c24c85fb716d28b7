/*
 * Ways to the pods of other nodes, for a node whose network c8s makes itself: routes where the nodes share a link, VXLAN otherwise
 * (cni_routes_sync). They follow the Node objects of the cluster: spec.podCIDRs behind the InternalIP of status.addresses.
 */
#ifndef C8S_CMD_NODE_ROUTES_H
#define C8S_CMD_NODE_ROUTES_H

#include "cni/cni.h"

struct node_routes_options {
	const char *kubeconfig;       /* of a user that may list and watch nodes */
	const char *certificate;      /* file with a certificate and its key that somebody renews, and that then counts before the kubeconfig's; NULL: none */
	const char *servers_file;     /* as client_config has it; NULL: none */
	str node_name;                /* of ourselves */
	const char *cni_conf_dir;     /* those of the runtime */
	const char *cni_cache_dir;
};

/*
 * (suspends, until canceled) Keeps them in step as nodes come, change and go; what somebody else has removed comes back within half a minute.
 * When the server cannot be asked, or does not know our own node, they stay as they are; so do they when this ends. Where somebody has put
 * another network's configuration beside ours, they are that network's matter, and none are kept. Errors are logged.
 */
int node_routes_run(const struct node_routes_options *o, struct err *err);

/*
 * What the list of nodes, which is put in order of their age, comes down to, in the arena; our own ranges are in it. *ret_own: our address; NULL:
 * we are not among them, or have none yet.
 */
void node_routes_plan(struct arena *a, struct val *nodes, size_t n, str own_name, const char **ret_own, struct cni_route **ret, size_t *ret_n);

#endif
