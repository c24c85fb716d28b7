/* logs: what a container has written, for kubectl logs and for run, which shows what was written before it could attach. */
#ifndef C8S_KUBECTL_LOGS_H
#define C8S_KUBECTL_LOGS_H

#include "kubectl/ktl.h"

/* (suspends) To standard output, each line with the prefix before it. query: options, encoded. */
int ktl_copy_log(struct ktl *k, struct val pod, str container, str query, str prefix);

#endif
