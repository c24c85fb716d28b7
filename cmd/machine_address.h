/* The address that others know this machine by. */
#ifndef C8S_CMD_MACHINE_ADDRESS_H
#define C8S_CMD_MACHINE_ADDRESS_H

#include "machinery/ip.h"

/* That of the default route of this family (AF_INET, AF_INET6); where there is none, the first of a link that is up. False: none. No packet is sent. */
bool machine_address(int family, char out[IP_TEXT_MAX]);

#endif
