/* The table of all controllers, in the order of starting, and the names that --controllers may use. */
#include "base/str.h"
#include "controllers/controller_priv.h"

extern const struct controller_kind controller_bootstrap_signer, controller_cluster_role_aggregation, controller_cron_job, controller_csr_approving,
	controller_csr_cleaner, controller_csr_signing, controller_daemon_set, controller_deployment, controller_disruption, controller_endpoint_slice,
	controller_endpoint_slice_mirroring, controller_endpoints, controller_ephemeral_volume, controller_garbage_collector, controller_job, controller_legacy_token_cleaner,
	controller_local_path, controller_namespace, controller_node_ipam, controller_node_lifecycle, controller_pod_gc, controller_pv_binder, controller_pv_protection,
	controller_pvc_protection, controller_replica_set, controller_replication_controller, controller_resource_claim, controller_resource_quota,
	controller_root_ca_publisher, controller_service_account, controller_service_account_token, controller_stateful_set, controller_taint_eviction,
	controller_token_cleaner, controller_ttl_after_finished;

const struct controller_kind *const controller_kinds[] = {
	&controller_service_account_token, /* first: others may wait for tokens */
	&controller_endpoints,
	&controller_endpoint_slice,
	&controller_endpoint_slice_mirroring,
	&controller_replication_controller,
	&controller_pod_gc,
	&controller_resource_quota,
	&controller_namespace,
	&controller_service_account,
	&controller_garbage_collector,
	&controller_daemon_set,
	&controller_job,
	&controller_deployment,
	&controller_replica_set,
	&controller_disruption,
	&controller_stateful_set,
	&controller_cron_job,
	&controller_csr_signing,
	&controller_csr_approving,
	&controller_csr_cleaner,
	&controller_bootstrap_signer,
	&controller_token_cleaner,
	&controller_node_ipam,
	&controller_node_lifecycle,
	&controller_taint_eviction,
	&controller_pv_binder,
	&controller_local_path,
	&controller_cluster_role_aggregation,
	&controller_legacy_token_cleaner,
	&controller_pvc_protection,
	&controller_pv_protection,
	&controller_ttl_after_finished,
	&controller_root_ca_publisher,
	&controller_ephemeral_volume,
	&controller_resource_claim,
	NULL,
};

/* Names that controllers had once; --controllers may still use them. */
static const struct {
	const char *name, *alias;
} aliases[] = {
	{ "bootstrap-signer-controller", "bootstrapsigner" }, { "certificatesigningrequest-approving-controller", "csrapproving" },
	{ "certificatesigningrequest-cleaner-controller", "csrcleaner" },
	{ "certificatesigningrequest-signing-controller", "csrsigning" },
	{ "clusterrole-aggregation-controller", "clusterrole-aggregation" }, { "cronjob-controller", "cronjob" },
	{ "daemonset-controller", "daemonset" }, { "deployment-controller", "deployment" }, { "disruption-controller", "disruption" },
	{ "endpoints-controller", "endpoint" }, { "endpointslice-controller", "endpointslice" },
	{ "endpointslice-mirroring-controller", "endpointslicemirroring" }, { "ephemeral-volume-controller", "ephemeral-volume" },
	{ "garbage-collector-controller", "garbagecollector" },
	{ "job-controller", "job" }, { "legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner" },
	{ "namespace-controller", "namespace" }, { "node-ipam-controller", "nodeipam" },
	{ "node-lifecycle-controller", "nodelifecycle" }, { "persistentvolume-binder-controller", "persistentvolume-binder" },
	{ "persistentvolume-protection-controller", "pv-protection" },
	{ "persistentvolumeclaim-protection-controller", "pvc-protection" }, { "pod-garbage-collector-controller", "podgc" },
	{ "replicaset-controller", "replicaset" }, { "replicationcontroller-controller", "replicationcontroller" },
	{ "resourceclaim-controller", "resource-claim-controller" }, { "resourcequota-controller", "resourcequota" },
	{ "root-ca-certificate-publisher-controller", "root-ca-cert-publisher" },
	{ "serviceaccount-controller", "serviceaccount" }, { "serviceaccount-token-controller", "serviceaccount-token" },
	{ "statefulset-controller", "statefulset" }, { "token-cleaner-controller", "tokencleaner" },
	{ "ttl-after-finished-controller", "ttl-after-finished" },
};

bool controller_is_called(const struct controller_kind *kind, const char *name)
{
	if (strcmp(name, kind->name) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (strcmp(aliases[i].name, kind->name) == 0)
			return strcmp(aliases[i].alias, name) == 0;
	return false;
}

bool controllers_knows(const char *name)
{
	static const char *const absent[] = {
		"attachdetach", "cloud-node-lifecycle", "cloud-node-lifecycle-controller", "device-taint-eviction-controller",
		"horizontal-pod-autoscaler-controller", "horizontalpodautoscaling",
		"kube-apiserver-serving-clustertrustbundle-publisher-controller", "node-route-controller", "persistentvolume-attach-detach-controller",
		"persistentvolume-expander", "persistentvolume-expander-controller", "podcertificaterequest-cleaner-controller",
		"podgroup-protection-controller", "resourcepoolstatusrequest-controller",
		"route", "selinux-warning-controller", "service", "service-cidr-controller", "service-lb-controller", "storage-version-gc",
		"storage-version-migrator-controller", "storageversion-garbage-collector-controller", "svm", "ttl", "ttl-controller",
		"validatingadmissionpolicy-status-controller", "volumeattributesclass-protection-controller",
	};

	for (size_t i = 0; controller_kinds[i]; i++)
		if (controller_is_called(controller_kinds[i], name))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		if (strcmp(name, absent[i]) == 0)
			return true;
	return false;
}
