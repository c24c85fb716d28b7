/* device_capacity: how much of a device that can be shared a request takes, by what the device says may be asked for (requestPolicy). Pure. */
#ifndef C8S_SCHEDULER_DEVICE_CAPACITY_H
#define C8S_SCHEDULER_DEVICE_CAPACITY_H

#include "codec/quantity.h"
#include "codec/val.h"

/* capacity: a DeviceCapacity; asked: the quantity of the request, VAL_NONE if it says nothing. Rounded up to what may be asked for. */
struct quantity capacity_consumed(struct val capacity, struct val asked);
/* Whether as much may be asked for. */
bool capacity_permits(struct val capacity, struct quantity amount);
/* All that requests (a map of quantities) take of a device: a map, in the arena. */
struct val capacity_consumed_all(struct arena *a, struct val capacities, struct val requests);

#endif
