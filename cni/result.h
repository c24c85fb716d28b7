/*
 * result: what plugins answer, in the forms of all versions of the specification, as free trees. Between plugins of this folder a result has the
 * newest form: interfaces, ips (address, gateway, interface), routes (dst, gw), dns. 0.3 and 0.4 say of each address whether it
 * is IPv4 or IPv6; 0.1 and 0.2 have one address of each: ip4 and ip6.
 */
#ifndef C8S_CNI_RESULT_H
#define C8S_CNI_RESULT_H

#include "codec/val.h"

#define CNI_VERSION "1.1.0"   /* the newest */

/* All that there are, oldest first; NULL-ended. */
extern const char *const cni_versions[];

/* Whether we speak it. "" counts as 0.1.0. */
bool cni_version_known(str version);
/* -1, 0, 1; "" counts as 0.1.0, and what is no version is before all that are. */
int cni_version_cmp(str a, str b);

/* A result of some version in the form of another. from: the version that it has when it does not say ("": 0.1.0). */
int result_convert(struct arena *a, struct val result, str from, str to, struct val *ret, struct err *err);

/* The rules for names that the specification has. -ERR_INVALID with the words of libcni. */
int cni_check_id(str id, struct err *err);
int cni_check_network(str name, struct err *err);
int cni_check_ifname(str ifname, struct err *err);

#endif
