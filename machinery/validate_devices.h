/* What the files that check kinds of resource.k8s.io share. */
#ifndef C8S_MACHINERY_VALIDATE_DEVICES_H
#define C8S_MACHINERY_VALIDATE_DEVICES_H

#include "machinery/validate_groups.h"

enum { DEVICE_DOMAIN_MAX = 63, DEVICE_ID_MAX = 32 };

/* False, with an error, when a list or map has more than max members. */
bool check_size(struct field_errors *e, const struct field_path *at, struct val list, uint32_t max);
/* Items that differ by a member of that name, or by themselves when key is 0. */
void check_unique(struct field_errors *e, const struct field_path *at, struct val list, atom key);
/* Subdomains with slashes between them. */
void check_pool_name(struct field_errors *e, const struct field_path *at, str name);
/* The name of an attribute or capacity: [domain/]identifier. */
void check_device_key(struct field_errors *e, const struct field_path *at, str key);
/* old: the taint before an update, whose effect stays allowed; else VAL_NONE. */
void check_device_taint(struct field_errors *e, const struct field_path *at, struct val taint, struct val old);
/* bindingConditions and bindingFailureConditions of a device or of its allocation. */
void check_binding_conditions(struct field_errors *e, const struct field_path *at, struct val device);

#endif
