/* The machine stops, and with it the containers of a cluster that is a service. */
#ifndef C8S_CMD_MACHINE_STOP_H
#define C8S_CMD_MACHINE_STOP_H

#include "base/err.h"

struct up_cluster;

/* (suspends) Ends the containers of a cluster that has stopped, politely, and their monitors. Takes half a minute at most. */
int machine_stop_containers(const struct up_cluster *c, struct err *err);

#endif
