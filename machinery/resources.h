/*
 * Resources that containers ask for: the classes of names, sums over the containers of a pod, and the QoS class that
 * follows from them. Pure functions over typed trees (maps sorted by key), any thread.
 */
#ifndef C8S_MACHINERY_RESOURCES_H
#define C8S_MACHINERY_RESOURCES_H

#include "codec/quantity.h"
#include "codec/val.h"

/* ---- names ---- */

/* Of Kubernetes itself: without a prefix, or with one that ends in kubernetes.io. */
bool resource_is_native(str name);
/* vendor.example/gpu: asked for in whole numbers. */
bool resource_is_extended(str name);
bool resource_is_huge_page(str name);
/* Known without a prefix, in a quota or elsewhere. */
bool resource_is_standard(str name);
/* Known without a prefix in containers: cpu, memory, ephemeral-storage, hugepages-*. */
bool resource_is_of_containers(str name);
/* What a pod can ask for as a whole: cpu, memory, hugepages-*. */
bool resource_is_pod_level(str name);
/* Counted in whole units: pods, services, extended resources, ... */
bool resource_is_integer(str name);
/* A request may be lower than the limit. */
bool resource_can_overcommit(str name);

/* ---- amounts ---- */

/* The quantity of a tree's text; zero for what is absent or is no quantity. */
struct quantity quantity_of(struct val text);
/* The entry of a map that is sorted by key; VAL_NONE if there is none. */
struct val sorted_find(struct val map, str key);

/*
 * What the containers of a pod spec need together of every resource, by their A_requests or A_limits: the sum over
 * containers and sidecars, or what an init container needs with the sidecars before it, whichever is more. A map in the
 * arena, sorted by key.
 */
struct val pod_container_resources(struct arena *a, struct val spec, atom which);
/* Guaranteed, Burstable or BestEffort. */
str pod_qos_class(struct val spec);
/* An init container that stays: restartPolicy Always. */
bool container_is_sidecar(struct val container);

#endif
