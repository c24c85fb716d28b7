/* attach: a session with a process in a container, for kubectl exec, attach and run. */
#ifndef C8S_KUBECTL_ATTACH_H
#define C8S_KUBECTL_ATTACH_H

#include "kubectl/builder.h"

struct ktl_attach {
	bool stdin, tty, quiet;
	int64_t timeout_ns;
	bool wait_for_exit;          /* of run: the pod's exit code is ours */
	bool on_failure;             /* its restart policy: only success ends it */
};

/* (suspends) Waits until a pod that was just created runs, shows what it has written, and attaches to it. */
int ktl_attach_started(struct ktl *k, const struct ktl_info *pod, const struct ktl_attach *a);

#endif
