/*
 * pod_rules: what actions and statuses both ask about a pod and its containers: what state they are in, whether they start
 * again, whether the sandbox still serves. Pure functions of the view.
 */
#ifndef C8S_KUBELET_POD_RULES_H
#define C8S_KUBELET_POD_RULES_H

#include "kubelet/pod_view.h"

enum cri_state { CRI_NONE, CRI_CREATED, CRI_RUNNING, CRI_EXITED, CRI_UNKNOWN };

/* Of runtime.v1.ContainerStatus; CRI_NONE for VAL_NONE. */
enum cri_state container_cri_state(struct val status);
/* How often it was started before, as the kubelet wrote it into the container. */
int64_t container_cri_restarts(struct val status);

/* cpu in thousandths and memory in bytes, of a map of resources; 0 if it does not have them. */
int64_t resources_cpu_milli(struct val resources);
int64_t resources_memory(struct val resources);
/* The object of that name in a list (containers, their statuses); VAL_NONE: there is none. */
struct val find_named(struct val list, str name);
/* The container of that name in spec, of whichever list; VAL_NONE: there is none. */
struct val pod_find_container(struct val pod, str name);

/* Whether a container that ended with this code starts again, by its rules, its policy or that of the pod. */
bool container_restarts_after(struct val pod, struct val container, int64_t exit_code);
/* Whether the next look at the pod would start it: it has never run, its state is not known, or it restarts. Not in a deleted pod. */
bool container_starts_next(const struct pod_view *v, struct val container);
/* Whether a rule of the container restarts all containers when it ends with this code. */
bool container_restarts_all(struct val container, int64_t exit_code);

/* Whether any container has such a rule. */
bool pod_may_restart_all(struct val pod);
/* Whether that is going on. */
bool pod_restarts_all(const struct pod_view *v);
/* Whether the runtime still has anything that such a restart must remove. */
bool pod_has_leftovers(const struct pod_view *v);
bool sandbox_is_ready(struct val sandbox);
/* Whether a new sandbox is needed, its attempt, and the id of the present one ("": there is none, or its network is another). */
bool pod_needs_sandbox(const struct pod_view *v, unsigned *ret_attempt, str *ret_id);
bool pod_uses_host_network(struct val pod);
/* From a file or a URL, not from the API server. */
bool pod_is_static(struct val pod);
/* Whether a container (init containers do not count) was ever made, or was made in the present sandbox. */
bool pod_has_made_container(const struct pod_view *v);
bool pod_has_made_container_now(const struct pod_view *v);

#endif
