/* conntrack: connections that the kernel remembers how to translate. */
#ifndef C8S_CNI_CONNTRACK_H
#define C8S_CNI_CONNTRACK_H

#include "base/err.h"

/*
 * Forgets the connections of a family and protocol that were made to this port. Without it, a peer that goes on sending UDP is
 * led to where the port was before, for as long as it does not pause.
 */
int conntrack_forget(int family, uint8_t protocol, uint16_t port, struct err *err);

#endif
