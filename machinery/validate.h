/*
 * Defaults and validation of built-in kinds. The schema gives the defaults that are plain constants; what needs a rule
 * of its own is hand-written, one file per group: defaults_core.c, validate_core.c, ... Each group has a table of kinds
 * and functions, so that there is one place per kind to look at. Kubernetes 1.36 has declarative rules for validation
 * too (facts->rules), but enforces them for a few new kinds only; for all others the hand-written rules count, and
 * these are the ones implemented here.
 *
 * Objects are typed trees. Nothing here suspends or keeps state: any thread.
 */
#ifndef C8S_MACHINERY_VALIDATE_H
#define C8S_MACHINERY_VALIDATE_H

#include "machinery/field_error.h"

/*
 * The object with Kubernetes' defaults set (idempotent). Kubernetes does this whenever it decodes an object, that of
 * the store included: what prepare_create adds can lead to further defaults (a Job takes the labels of its template),
 * which a caller that keeps the object instead of reading it back gets by a second call after validation. What gets no
 * defaults is shared with the argument.
 */
int default_object(struct arena *a, const struct type *type, struct val object, struct val *ret, struct err *err);

/*
 * What Kubernetes fills in or resets when a request is executed, once, after admission and before validation: a new
 * object gets its first status and generation, a Job its selector, a Pod its QoS class and the selectors of
 * matchLabelKeys; an update keeps what its endpoint must not change (subresource "": the object itself) and counts
 * generations. metadata that all kinds have alike (name, uid, times, resourceVersion) is left to the caller and must be
 * set before. gates: what is said of feature gates (gates.h); fields of features that are off are taken away.
 */
int prepare_create(struct arena *a, const struct type *type, struct val gates, struct val object, struct val *ret, struct err *err);
int prepare_update(struct arena *a, const struct type *type, struct val gates, str subresource, struct val object, struct val old,
		   struct val *ret, struct err *err);

/* All that is wrong with a new object, or with the change from old to new; nothing is added when it is valid. */
void validate_create(const struct type *type, struct val object, struct field_errors *errors);
void validate_update(const struct type *type, struct val object, struct val old, struct field_errors *errors);
/* The same for a write to a subresource: "status", "scale", ... */
void validate_subresource(const struct type *type, str subresource, struct val object, struct val old,
			  struct field_errors *errors);
/*
 * The part of a Service's rules about its addresses and their families, which has to hold before addresses are taken for it; old is
 * VAL_NONE for a new one.
 */
void validate_service_addresses(struct val service, struct val old, struct field_errors *errors);

#endif
