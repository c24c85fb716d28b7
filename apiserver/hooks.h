/* Kinds that do something of their own when they are written. */
#ifndef C8S_APISERVER_HOOKS_H
#define C8S_APISERVER_HOOKS_H

#include "apiserver/kinds.h"

/* Never NULL. */
const struct kind_hooks *hooks_of(const struct kind *kind);

extern const struct kind_hooks csr_hooks, flow_schema_hooks, priority_level_hooks, service_hooks;
extern const struct kind_hooks role_hooks, cluster_role_hooks, role_binding_hooks; /* authz/rbac_aggregate.c */

#endif
