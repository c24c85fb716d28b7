/* What the ways to a runtime have in common. */
#ifndef C8S_KUBELET_CRI_CLIENT_PRIV_H
#define C8S_KUBELET_CRI_CLIENT_PRIV_H

#include "kubelet/cri_client.h"

/* All but close as the functions of cri_client.h, without deadlines of their own. */
struct cri_transport {
	int (*ask)(struct cri *c, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err);
	int (*follow)(struct cri *c, void (*on_event)(struct val event, void *arg), void *arg, struct err *err);
	void (*close)(struct cri *c);
};

/* Embedded, as the first member, by each. */
struct cri {
	const struct cri_transport *transport;
};

#endif
