/*
 * Defaults and validation of built-in kinds. The schema gives the declarative part (default values, enums, required and bounded fields);
 * what needs a rule of its own is hand-written, one file per group: defaults_core.c, validate_core.c, ... Each file ends in a table of
 * kinds and functions, so that there is one place per kind to look at.
 */
#ifndef C8S_MACHINERY_VALIDATE_H
#define C8S_MACHINERY_VALIDATE_H

#include "machinery/field_error.h"

/* The object with Kubernetes' defaults set (idempotent). Objects are typed trees. */
int default_object(struct arena *a, const struct type *type, struct val object, struct val *ret, struct err *err);

/* All that is wrong with a new object, or with the change from old to new; nothing is added when it is valid. */
void validate_create(const struct type *type, struct val object, struct field_errors *errors);
void validate_update(const struct type *type, struct val object, struct val old, struct field_errors *errors);
/* The same for a write to a subresource: "status", "scale", ... */
void validate_subresource(const struct type *type, str subresource, struct val object, struct val old, struct field_errors *errors);

#endif
