/*
 * owners: whom a change of an object concerns that may have an owner: that one, or, when it has none, all that might adopt it. The same for
 * every kind that owns pods, and for Deployments, which own ReplicaSets. Nothing here suspends.
 */
#ifndef C8S_CONTROLLERS_OWNERS_H
#define C8S_CONTROLLERS_OWNERS_H

#include "controllers/controller.h"

/* Those of one kind. */
struct owners {
	struct informer *all;
	const char *kind;                  /* "DaemonSet" */
	struct val (*selector)(struct arena *a, struct val owner); /* as a LabelSelector; NULL: spec.selector */
	struct expectations *expectations; /* of pods, by the owner's key */
	int64_t delay_ms;                  /* of looking at one that an orphan might belong to */
	int64_t available_ms;              /* of looking again at one of whose pods has been ready for minReadySeconds */
};

/* What controls the object, borrowed from the informer; NULL: another kind does, or it is gone. */
struct frozen *owner_of(const struct owners *o, struct val object);
/* All that might want an object that nobody controls. The informer has the index "namespace". */
void owners_add_adopters(struct controller *c, const struct owners *o, struct val object);
/* What controller_keys of their pods do, and of themselves (expectations of one that is gone are forgotten). */
void owners_pod_changed(struct controller *c, const struct owners *o, struct frozen *old, struct frozen *object);
void owners_changed(struct controller *c, const struct owners *o, struct frozen *old, struct frozen *object);

#endif
