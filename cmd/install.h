/* A cluster that is a service of systemd: where others have to know of it. */
#ifndef C8S_CMD_INSTALL_H
#define C8S_CMD_INSTALL_H

#include "base/err.h"

struct up_cluster;

/* (suspends) Stops the service of a cluster and removes its unit; nothing happens when there is none. */
int install_remove(const struct up_cluster *c, struct err *err);

#endif
