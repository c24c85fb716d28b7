/*
 * The roles and bindings that every cluster has, as rows of text; rbac_bootstrap.c makes objects of them.
 *
 * A rule is "VERBS GROUPS RESOURCES [NAMES]", or "VERBS ~ URLS"; several with a newline between them; one that begins with
 * "?GATE " is there when that feature gate is on. Lists have commas; "-" is the core group. A subject is "group NAME", "user NAME" or "account NAMESPACE/NAME"; several with
 * commas.
 */
#ifndef C8S_APISERVER_AUTHZ_RBAC_DEFAULTS_H
#define C8S_APISERVER_AUTHZ_RBAC_DEFAULTS_H

#include "base/defs.h"

struct rbac_default_role {
	const char *namespace;        /* NULL: a ClusterRole */
	const char *name;
	const char *part_of;          /* label aggregate-to-...; NULL: none */
	const char *made_of;          /* it aggregates roles with that label; NULL: it has its own rules */
	const char *rules;
	const char *gate;             /* feature gate that must be on; NULL: none */
};

struct rbac_default_binding {
	const char *namespace;        /* NULL: a ClusterRoleBinding, of a ClusterRole; else of a Role beside it */
	const char *name;
	const char *role;             /* NULL: that of its name */
	const char *subjects;         /* NULL: nobody */
	const char *gate;             /* as above */
};

extern const struct rbac_default_role rbac_default_roles[];
extern const struct rbac_default_binding rbac_default_bindings[];
extern const size_t rbac_n_default_roles, rbac_n_default_bindings;

#endif
