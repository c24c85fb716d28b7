/*
 * pod_view: a pod as the kubelet sees it at one moment: the object, what the runtime has of it, and what the kubelet itself knows.
 * pod_actions.h and pod_status.h are pure functions of it, so that everything about restarts, phases and reasons is tested
 * without a runtime.
 */
#ifndef C8S_KUBELET_POD_VIEW_H
#define C8S_KUBELET_POD_VIEW_H

#include "codec/val.h"
#include "machinery/resources.h" /* container_is_sidecar */

/* What the kubelet knows about one container beyond what the runtime tells. */
struct container_note {
	str name;
	bool started, ready;          /* as the probes have it; without a probe: as soon as it runs */
	/* Why the last try to make or start it failed ("ErrImagePull", "CreateContainerConfigError", ...), or why it waits
	 * ("CrashLoopBackOff", "ImagePullBackOff"); empty: nothing to tell. */
	str waiting_reason, waiting_message;
	int64_t backoff_until_ns;     /* clock_wall_ns; 0: it may start now */
	/* core/v1.ResourceRequirements that the runtime was last given for it; VAL_NONE: those of the spec. */
	struct val actuated;
	struct val devices;           /* list of ResourceStatus: how its devices are; VAL_NONE: it has none */
};

struct pod_view {
	struct val pod;               /* core/v1.Pod as the API server or a file has it; resources: those that are allocated */
	struct val status;            /* the last status that was told (core/v1.PodStatus); VAL_NONE: none */
	struct val sandboxes;         /* list of runtime.v1.PodSandboxStatus, the newest first */
	/* List of runtime.v1.ContainerStatus, the newest of each name first. message is what the status will say: with the
	 * termination message after it. */
	struct val containers;
	const struct container_note *notes;
	size_t n_notes;
	int64_t now_ns;               /* clock_wall_ns */
	bool terminating;             /* deleted, evicted, or over its deadline: nothing starts any more */
	bool terminated;              /* all has ended, and will not start again */
	str fail_reason, fail_message; /* why the kubelet ended it ("Evicted", "DeadlineExceeded", ...); phase will be Failed */
	bool rejected;                /* the node did not take it: fail_reason and fail_message are those of admission */
	str host_address, host_address6;
	bool volumes_mounted;         /* before, nothing is done about it */
	str runtime_name;             /* in containerID: "containerd" */
	bool recursive_readonly;      /* the runtime can mount so */
	struct val actuated;          /* as container_note.actuated, of spec.resources */
	/* List of PodCondition: PodResizePending, PodResizeInProgress; what counts is observedGeneration, reason, message. */
	struct val resize;
	struct val disruption;        /* PodCondition DisruptionTarget (reason, message) of a pod that the kubelet ended; or none */
};

/* The note of a container; one of zeros if there is none. */
const struct container_note *pod_view_note(const struct pod_view *v, str name);
/* The newest status that the runtime has of a container of that name; VAL_NONE: none. */
struct val pod_view_container(const struct pod_view *v, str name);
/* What the API server has last been told, or, before anything was, what it knows: core/v1.PodStatus. */
struct val pod_view_status(const struct pod_view *v);

#endif
