/* pods: which pods and containers logs, exec and attach mean. */
#ifndef C8S_KUBECTL_PODS_H
#define C8S_KUBECTL_PODS_H

#include "kubectl/builder.h"

/* (suspends) What POD, TYPE/NAME or TYPE NAME name; a name alone is a pod's. */
int ktl_named_object(struct ktl *k, struct ktl_texts args, struct ktl_info *ret);
/*
 * (suspends) The pods of an object: itself, or those that its selector chooses, the best one first. When there are none yet, waits for
 * one. logs: for those, not for a session. doing: what for, in an error ("cannot attach to").
 */
int ktl_pods_of(struct ktl *k, const struct ktl_info *object, int64_t timeout_ns, bool logs, const char *doing, struct val *ret);
/* The name of the container that is meant: that which was named, that of the annotation, or the first one, which is told then. */
int ktl_choose_container(struct ktl *k, struct val pod, str named, bool quiet, struct val *ret);

#endif
