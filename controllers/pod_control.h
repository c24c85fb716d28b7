/*
 * pod_control: pods from templates: made, deleted, adopted, released, counted; what ReplicaSet, ReplicationController, DaemonSet, StatefulSet and Job share.
 */
#ifndef C8S_CONTROLLERS_POD_CONTROL_H
#define C8S_CONTROLLERS_POD_CONTROL_H

#include "controllers/controller.h"

/* A pod from a template (core/v1.PodTemplateSpec): labels, annotations, finalizers, spec, owner; generateName "<owner>-" (cut as 1.36 cuts it). */
struct val pod_from_template(struct arena *a, struct val template, struct val owner, struct val owner_ref);
/* (suspends) Creates; events SuccessfulCreate "Created pod: x", FailedCreate "Error creating: ..." about the owner. */
int pod_control_create(struct controller *c, struct arena *a, struct val owner, struct val pod, struct frozen **ret, struct err *err);
/* (suspends) Deletes; events SuccessfulDelete "Deleted pod: x", FailedDelete. A pod that is gone is fine: 1, else 0. */
int pod_control_delete(struct controller *c, struct val owner, str namespace, str name, struct err *err);
/*
 * (suspends) Calls make(i) for i in 0..n-1 in batches that double (1, 2, 4 ...), those of a batch at once; stops after a batch with errors.
 * How many succeeded; the first error in err.
 */
size_t pod_control_batches(size_t n, int (*make)(size_t i, void *arg, struct err *err), void *arg, struct err *err);
/* (suspends) The same with all n at once. */
size_t pod_control_at_once(size_t n, int (*make)(size_t i, void *arg, struct err *err), void *arg, struct err *err);

/* Indexes the informer for what follows; any number of controllers may ask for it. */
void pod_control_index(struct informer *pods);
/* Those that this uid controls, and those of a namespace that nobody controls. */
struct informer_iter pods_of_owner(const struct informer *pods, str uid);
struct informer_iter pods_without_owner(const struct informer *pods, str namespace);
/*
 * (suspends) The pods that belong to an owner: those that it controls and that match, after adopting orphans that match and releasing those
 * that no longer do (ControllerRefManager). can_adopt is asked once before the first adoption (a fresh read of the owner: same uid, not being
 * deleted). List of pods in the arena.
 */
int pod_control_claim(struct controller *c, struct arena *a, struct val owner, const char *api_version, const char *kind, struct val selector,
		      struct informer *pods, struct val *ret, struct err *err);
/* (suspends) The same among active ones only: others are neither adopted nor released nor returned. */
int pod_control_claim_active(struct controller *c, struct arena *a, struct val owner, const char *api_version, const char *kind,
			     struct val selector, struct informer *pods, struct val *ret, struct err *err);
/*
 * (suspends) The same for objects of any type: of `candidates` (a list) those that the owner controls and that match after adopting and
 * releasing. member (may be NULL) says what belongs to the owner besides the selector.
 */
int controller_claim(struct controller *c, struct arena *a, const struct type *type, struct val candidates, struct val owner,
		     const char *api_version, const char *kind, struct val selector, bool (*member)(struct val object, struct val owner),
		     struct val *ret, struct err *err);

bool pod_is_active(struct val pod);            /* neither Succeeded nor Failed, nor being deleted */
bool pod_is_terminating(struct val pod);       /* being deleted, but neither Succeeded nor Failed yet */
/* now_ns: clock_wall_ns(). */
bool pod_is_available(struct val pod, int64_t min_ready_s, int64_t now_ns);
/* When the first of them that is ready will have been so for long enough, in nanoseconds from now; -1: none will. */
int64_t pods_available_in_ns(struct val pods, int64_t min_ready_s, int64_t now_ns);
struct val pod_condition(struct val pod, const char *type);
/* Order in which pods are to be deleted first when there are too many: ActivePodsWithRanks of 1.36. Sorted list in the arena. ranks may be NULL. */
struct val pods_in_deletion_order(struct arena *a, struct val pods, const int64_t *ranks, int64_t now_ns);

#endif
