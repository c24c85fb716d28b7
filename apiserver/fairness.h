/* How many requests are at work at a time: STAGE_FAIRNESS lets them in, fairness_leave says that one has gone. */
#ifndef C8S_APISERVER_FAIRNESS_H
#define C8S_APISERVER_FAIRNESS_H

#include "apiserver/request.h"

struct flow_control {
	unsigned reading, writing; /* at work now */
};

void fairness_leave(struct request *q);

#endif
