/* What differs between kinds in how they are updated and deleted: Kubernetes' strategies as a table. */
#include "apiserver/strategy.h"

enum {
	CREATES = STRATEGY_CREATE_ON_UPDATE,
	VERSION = STRATEGY_VERSION_REQUIRED,
	RETURNS = STRATEGY_RETURN_DELETED,
};

static const struct {
	str group, resource;
	unsigned flags;
} table[] = {
	{ STR_INIT(""), STR_INIT("endpoints"), CREATES },
	{ STR_INIT(""), STR_INIT("events"), CREATES | STRATEGY_NO_DEPENDENTS },
	{ STR_INIT(""), STR_INIT("limitranges"), CREATES },
	{ STR_INIT(""), STR_INIT("namespaces"), RETURNS },
	{ STR_INIT(""), STR_INIT("persistentvolumeclaims"), RETURNS },
	{ STR_INIT(""), STR_INIT("persistentvolumes"), RETURNS },
	{ STR_INIT(""), STR_INIT("pods"), RETURNS | STRATEGY_GRACEFUL },
	{ STR_INIT(""), STR_INIT("podtemplates"), RETURNS },
	{ STR_INIT(""), STR_INIT("replicationcontrollers"), STRATEGY_ORPHAN },
	{ STR_INIT(""), STR_INIT("resourcequotas"), RETURNS },
	{ STR_INIT(""), STR_INIT("serviceaccounts"), RETURNS },
	{ STR_INIT(""), STR_INIT("services"), CREATES | RETURNS },
	{ STR_INIT("admissionregistration.k8s.io"), STR_INIT("mutatingadmissionpolicies"), VERSION },
	{ STR_INIT("admissionregistration.k8s.io"), STR_INIT("mutatingadmissionpolicybindings"), VERSION },
	{ STR_INIT("admissionregistration.k8s.io"), STR_INIT("mutatingwebhookconfigurations"), VERSION },
	{ STR_INIT("admissionregistration.k8s.io"), STR_INIT("validatingadmissionpolicies"), VERSION },
	{ STR_INIT("admissionregistration.k8s.io"), STR_INIT("validatingadmissionpolicybindings"), VERSION },
	{ STR_INIT("admissionregistration.k8s.io"), STR_INIT("validatingwebhookconfigurations"), VERSION },
	{ STR_INIT("apiextensions.k8s.io"), STR_INIT("customresourcedefinitions"), VERSION },
	{ STR_INIT("batch"), STR_INIT("jobs"), STRATEGY_ORPHAN },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("clustertrustbundles"), VERSION },
	{ STR_INIT("certificates.k8s.io"), STR_INIT("podcertificaterequests"), VERSION },
	{ STR_INIT("coordination.k8s.io"), STR_INIT("leasecandidates"), CREATES | VERSION },
	{ STR_INIT("coordination.k8s.io"), STR_INIT("leases"), CREATES | VERSION },
	{ STR_INIT("events.k8s.io"), STR_INIT("events"), CREATES | STRATEGY_NO_DEPENDENTS },
	{ STR_INIT("internal.apiserver.k8s.io"), STR_INIT("storageversions"), VERSION },
	{ STR_INIT("node.k8s.io"), STR_INIT("runtimeclasses"), CREATES | VERSION },
	{ STR_INIT("policy"), STR_INIT("poddisruptionbudgets"), VERSION },
	{ STR_INIT("rbac.authorization.k8s.io"), STR_INIT("clusterrolebindings"), CREATES },
	{ STR_INIT("rbac.authorization.k8s.io"), STR_INIT("clusterroles"), CREATES },
	{ STR_INIT("rbac.authorization.k8s.io"), STR_INIT("rolebindings"), CREATES },
	{ STR_INIT("rbac.authorization.k8s.io"), STR_INIT("roles"), CREATES },
	{ STR_INIT("resource.k8s.io"), STR_INIT("deviceclasses"), RETURNS },
	{ STR_INIT("resource.k8s.io"), STR_INIT("devicetaintrules"), RETURNS },
	{ STR_INIT("resource.k8s.io"), STR_INIT("resourceclaims"), RETURNS },
	{ STR_INIT("resource.k8s.io"), STR_INIT("resourceclaimtemplates"), RETURNS },
	{ STR_INIT("resource.k8s.io"), STR_INIT("resourcepoolstatusrequests"), VERSION | RETURNS },
	{ STR_INIT("resource.k8s.io"), STR_INIT("resourceslices"), RETURNS },
	{ STR_INIT("storage.k8s.io"), STR_INIT("csidrivers"), VERSION | RETURNS },
	{ STR_INIT("storage.k8s.io"), STR_INIT("csinodes"), VERSION | RETURNS },
	{ STR_INIT("storage.k8s.io"), STR_INIT("csistoragecapacities"), VERSION },
	{ STR_INIT("storage.k8s.io"), STR_INIT("storageclasses"), RETURNS },
	{ STR_INIT("storage.k8s.io"), STR_INIT("volumeattachments"), VERSION | RETURNS },
	{ STR_INIT("storage.k8s.io"), STR_INIT("volumeattributesclasses"), RETURNS },
	{ STR_INIT("storagemigration.k8s.io"), STR_INIT("storageversionmigrations"), VERSION },
};

unsigned strategy_of(const struct kind *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(table[i].resource, kind->resource) && str_eq(table[i].group, kind->group))
			return table[i].flags;
	return 0;
}
