/* trust_bundles: what a projected volume shows of ClusterTrustBundles. Pure. */
#ifndef C8S_KUBELET_TRUST_BUNDLES_H
#define C8S_KUBELET_TRUST_BUNDLES_H

#include "codec/val.h"

/*
 * The certificates that a ClusterTrustBundleProjection asks for: of the bundle of a name, or of all bundles of a signer whose labels match
 * (without a selector none does, with an empty one all do). bundles: list of ClusterTrustBundle. Each certificate is there once, without
 * whatever stood around it, in an order that is the same until this process ends and another in the next: nobody should come to
 * rely on it. *ret_pem lives in the arena. When there is no such bundle: -ERR_NOT_FOUND, or nothing where the projection is optional.
 */
int trust_bundle_pem(struct arena *a, struct val bundles, struct val projection, str *ret_pem, struct err *err);

#endif
