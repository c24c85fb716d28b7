/*
 * objects: the ConfigMaps and Secrets that pods of this node refer to (environment, volumes, secrets for images), each followed by a watch
 * of its own, which is all that a node is permitted. A watch begins with the first pod that refers to the object and ends with the last
 * one, or as soon as the object is found to be immutable. A change of an object is told for every pod that refers to it, so that what
 * the pod sees of it changes within moments.
 */
#ifndef C8S_KUBELET_OBJECTS_H
#define C8S_KUBELET_OBJECTS_H

#include "codec/val.h"

struct client;
struct frozen;
struct objects;
struct type;

struct objects_options {
	struct client *client;        /* NULL: there is no API server, and nothing is found */
	bool no_watches;              /* every lookup asks the API server: strategies Get and Cache of the configuration */
	/*
	 * (suspends) What a pod refers to has changed, or its own labels and annotations have. appeared: an object is there that was
	 * missing before. Called by objects_run, for one pod after another.
	 */
	void (*changed)(void *arg, str uid, bool appeared);
	void *arg;
};

struct objects *objects_new(const struct objects_options *o) NONNULL_RESULT;
/* (suspends) NULL is fine. */
void objects_free(struct objects *o);
/* (suspends, until canceled) Tells changes, and ends watches that nobody needs. */
int objects_run(struct objects *o, struct err *err);

/* A pod is looked at, as it is now: what it refers to is followed from here on. Cheap when it is still the same. Does not suspend. */
void objects_follow(struct objects *o, struct frozen *pod);
/* It needs them no longer. Unknown ones are fine. */
void objects_forget(struct objects *o, str uid);
/* Tells the pod as changed; those that project ClusterTrustBundles. */
void objects_touch(struct objects *o, str uid);
void objects_touch_bundles(struct objects *o);

/*
 * (suspends) core/v1.ConfigMap or Secret, in the arena. The copy answers; when its first list has not come yet, that is waited for a
 * second. -ERR_NOT_FOUND: configmap "x" not found.
 */
int objects_get(struct objects *o, const struct type *type, struct arena *a, str namespace, str name, struct val *ret, struct err *err);

/* How many are being watched. */
size_t objects_watched(const struct objects *o);

#endif
