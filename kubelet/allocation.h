/*
 * allocation: the resources that a pod has been given, which are not those that it asks for while a resize waits. Pure functions;
 * pod_allocation.c keeps track of them. What is given is a core/v1.PodSpec with nothing but resources, and the names and resources
 * of containers and init containers.
 */
#ifndef C8S_KUBELET_ALLOCATION_H
#define C8S_KUBELET_ALLOCATION_H

#include "kubelet/kubelet.h"

/* What the pod asks for. */
struct val allocation_of(struct arena *a, struct val pod);
/* Whether the pod asks for just what is given: amounts count, not how they are written. */
bool allocation_is_same(struct val pod, struct val given);
/* The pod with what is given in place of what it asks for. */
struct val allocation_apply(struct arena *a, struct val pod, struct val given);
/* The pod with whichever is more of its requests and those of another spec: what it may use while it changes from one to the other. */
struct val allocation_max(struct arena *a, struct val pod, struct val spec);
/* A resize that asks for more CPU or memory than the pod has. */
bool allocation_grows(struct arena *a, struct val pod, struct val given);
/* Why this node will never do that resize, by its configuration; "": it may. */
str allocation_infeasible(const struct kubelet_node *n, struct arena *a, struct val config, struct val pod, struct val given);
/* core/v1.ResourceRequirements ask for the same CPU and memory. */
bool resources_same(struct val x, struct val y);

/*
 * The message of an event: Pod resize started: {"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}],"generation":2}. text is
 * "Pod resize started", error (may be "") what stands behind it.
 */
str resize_message(struct arena *a, const char *text, struct val pod, int64_t generation, str error);

/*
 * Lists of PodCondition: PodResizePending and PodResizeInProgress of a pod, at most one of each, in this order. In the arena or shared.
 */
struct val resize_condition(struct val list, const char *type);
/* With (reason and message may be "") and without one of the type. */
struct val resize_condition_put(struct arena *a, struct val list, const char *type, str reason, str message, int64_t generation);
struct val resize_condition_remove(struct arena *a, struct val list, const char *type);

#define RESIZE_PENDING "PodResizePending"
#define RESIZE_IN_PROGRESS "PodResizeInProgress"

#endif
