/* namespace_plan: what the status of a namespace says while its content is being deleted. Pure. */
#ifndef C8S_CONTROLLERS_NAMESPACE_PLAN_H
#define C8S_CONTROLLERS_NAMESPACE_PLAN_H

#include "codec/val.h"

/* What happened when one resource was deleted. */
struct namespace_resource {
	str group, name;
	size_t remaining;             /* objects */
	struct val finalizers;        /* those that they have: {finalizer: objects}; VAL_NONE: none */
};

/* All of it. Texts are borrowed, or in the arena. */
struct namespace_content {
	struct arena *arena;
	size_t n_discovery_failed;
	str discovery_failure;        /* ""; discovery worked */
	str *errors;                  /* of deleting */
	size_t n_errors;
	struct namespace_resource *resources; /* with something remaining */
	size_t n_resources;
	bool pods_first;              /* pods remain, nothing else was tried: what remains is not told */
};

void namespace_content_fail(struct namespace_content *c, str message);
void namespace_content_remains(struct namespace_content *c, str group, str name, struct val items);

/* The conditions as they should be; those there are, if nothing has changed (val_same). A time moves only with its condition's status. */
struct val namespace_conditions(struct arena *a, struct val conditions, const struct namespace_content *c);

/* In how many seconds the last of the pods should be over that still run; 0: there are none, or the namespace waits for longer than that. */
int64_t namespace_pods_estimate(struct val pods, int64_t deleted_ns, int64_t now_ns);
enum { NAMESPACE_FINALIZER_ESTIMATE_S = 15 };

#endif
