/* Which kinds have hooks (kinds.h), and whose they are. */
#include "apiserver/hooks.h"

static const struct {
	str group, resource;
	const struct kind_hooks *hooks;
} table[] = {
	{ STR_INIT("certificates.k8s.io"), STR_INIT("certificatesigningrequests"), &csr_hooks },
	{ STR_INIT("flowcontrol.apiserver.k8s.io"), STR_INIT("flowschemas"), &flow_schema_hooks },
	{ STR_INIT("flowcontrol.apiserver.k8s.io"), STR_INIT("prioritylevelconfigurations"), &priority_level_hooks },
	{ STR_INIT("rbac.authorization.k8s.io"), STR_INIT("clusterrolebindings"), &role_binding_hooks },
	{ STR_INIT("rbac.authorization.k8s.io"), STR_INIT("clusterroles"), &cluster_role_hooks },
	{ STR_INIT("rbac.authorization.k8s.io"), STR_INIT("rolebindings"), &role_binding_hooks },
	{ STR_INIT("rbac.authorization.k8s.io"), STR_INIT("roles"), &role_hooks },
	{ STR_INIT(""), STR_INIT("services"), &service_hooks },
};

const struct kind_hooks *hooks_of(const struct kind *kind)
{
	static const struct kind_hooks none;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(table[i].resource, kind->resource) && str_eq(table[i].group, kind->group))
			return table[i].hooks;
	return &none;
}
