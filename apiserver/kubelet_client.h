/*
 * The server's way to nodes and pods: whom to call, with which certificate, and clients that keep connections. One of it
 * per server, made when first needed.
 */
#ifndef C8S_APISERVER_KUBELET_CLIENT_H
#define C8S_APISERVER_KUBELET_CLIENT_H

#include "apiserver/request.h"
#include "net/http_client.h"

struct kubelet_client;

enum kubelet_trust {
	KUBELET_VERIFIED,             /* kubelets, with our client certificate; checked when an authority is configured */
	KUBELET_UNVERIFIED,           /* the same, not checked: the client asked for it */
	KUBELET_OTHERS,               /* pods and services: nobody knows their certificates, and they see none of ours */
	KUBELET_TRUSTS,
};

/* For calls from this server. Lives as long as the server. Fails when the configured files cannot be read. */
int kubelet_http(struct apiserver *s, enum kubelet_trust trust, struct http_client **ret, struct err *err);
/* (suspends) Takes NULL. */
void kubelet_client_free(struct kubelet_client *k);

/* Where a kubelet listens. */
struct kubelet_place {
	str host;                     /* name or address */
	uint16_t port;
	str authority;                /* host:port for URLs */
	bool websockets;              /* it says that it takes WebSockets in all their protocols */
};

/* By --kubelet-preferred-address-types and the node's status. 404 when there is no such node. */
int kubelet_find(struct request *q, str node, struct kubelet_place *ret);

/* host:port as URLs have it: addresses of IPv6 in brackets. */
str kubelet_authority(struct arena *a, str host, str port);

#endif
