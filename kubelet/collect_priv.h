/* Between the files of collect.h. */
#ifndef C8S_KUBELET_COLLECT_PRIV_H
#define C8S_KUBELET_COLLECT_PRIV_H

#include "kubelet/collect.h"

/* Where the log of a runtime.v1.Container is: the kubelet has told the runtime so when it made it. "" for one that is not of a pod. */
str collect_log_path(const struct collect_options *o, struct arena *a, struct val container);
/* (suspends) Its log and all that was rotated away from it. */
void collect_remove_log(const struct collect_options *o, struct val container);
/* (suspends) Folders of pods that are gone, and links that lead nowhere. */
int collect_folders(const struct collect_options *o, struct err *err);

#endif
