/* /configz of the controller manager: its flags, as the KubeControllerManagerConfiguration that they stand for. */
#include "cmd/flags_config.h"
#include "cmd/kube_controller_manager.h"
#include "codec/codec.h"
#include "codec/types.h"

#define CONFIG_TYPE TYPE(kubecontrollermanagerconfig_v1alpha1, KubeControllerManagerConfiguration)

enum { TEXT_MAX = 1 << 20 };

static const struct flag_field fields[] = {
	{ "allocate-node-cidrs", "KubeCloudShared.AllocateNodeCIDRs", PAIRS_EQUAL },
	{ "allow-untagged-cloud", "KubeCloudShared.AllowUntaggedCloud", PAIRS_EQUAL },
	{ "attach-detach-reconcile-sync-period", "AttachDetachController.ReconcilerSyncLoopPeriod", PAIRS_EQUAL },
	{ "bind-address", "Generic.Address", PAIRS_EQUAL },
	{ "cidr-allocator-type", "KubeCloudShared.CIDRAllocatorType", PAIRS_EQUAL },
	{ "cloud-config", "KubeCloudShared.CloudProvider.CloudConfigFile", PAIRS_EQUAL },
	{ "cloud-provider", "KubeCloudShared.CloudProvider.Name", PAIRS_EQUAL },
	{ "cluster-cidr", "KubeCloudShared.ClusterCIDR", PAIRS_EQUAL },
	{ "cluster-name", "KubeCloudShared.ClusterName", PAIRS_EQUAL },
	{ "cluster-signing-cert-file", "CSRSigningController.ClusterSigningCertFile", PAIRS_EQUAL },
	{ "cluster-signing-duration", "CSRSigningController.ClusterSigningDuration", PAIRS_EQUAL },
	{ "cluster-signing-key-file", "CSRSigningController.ClusterSigningKeyFile", PAIRS_EQUAL },
	{ "cluster-signing-kube-apiserver-client-cert-file", "CSRSigningController.KubeAPIServerClientSignerConfiguration.CertFile", PAIRS_EQUAL },
	{ "cluster-signing-kube-apiserver-client-key-file", "CSRSigningController.KubeAPIServerClientSignerConfiguration.KeyFile", PAIRS_EQUAL },
	{ "cluster-signing-kubelet-client-cert-file", "CSRSigningController.KubeletClientSignerConfiguration.CertFile", PAIRS_EQUAL },
	{ "cluster-signing-kubelet-client-key-file", "CSRSigningController.KubeletClientSignerConfiguration.KeyFile", PAIRS_EQUAL },
	{ "cluster-signing-kubelet-serving-cert-file", "CSRSigningController.KubeletServingSignerConfiguration.CertFile", PAIRS_EQUAL },
	{ "cluster-signing-kubelet-serving-key-file", "CSRSigningController.KubeletServingSignerConfiguration.KeyFile", PAIRS_EQUAL },
	{ "cluster-signing-legacy-unknown-cert-file", "CSRSigningController.LegacyUnknownSignerConfiguration.CertFile", PAIRS_EQUAL },
	{ "cluster-signing-legacy-unknown-key-file", "CSRSigningController.LegacyUnknownSignerConfiguration.KeyFile", PAIRS_EQUAL },
	{ "concurrent-cron-job-syncs", "CronJobController.ConcurrentCronJobSyncs", PAIRS_EQUAL },
	{ "concurrent-daemonset-syncs", "DaemonSetController.ConcurrentDaemonSetSyncs", PAIRS_EQUAL },
	{ "concurrent-deployment-syncs", "DeploymentController.ConcurrentDeploymentSyncs", PAIRS_EQUAL },
	{ "concurrent-device-taint-eviction-syncs", "DeviceTaintEvictionController.ConcurrentSyncs", PAIRS_EQUAL },
	{ "concurrent-endpoint-syncs", "EndpointController.ConcurrentEndpointSyncs", PAIRS_EQUAL },
	{ "concurrent-ephemeralvolume-syncs", "EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs", PAIRS_EQUAL },
	{ "concurrent-gc-syncs", "GarbageCollectorController.ConcurrentGCSyncs", PAIRS_EQUAL },
	{ "concurrent-horizontal-pod-autoscaler-syncs", "HPAController.ConcurrentHorizontalPodAutoscalerSyncs", PAIRS_EQUAL },
	{ "concurrent-job-syncs", "JobController.ConcurrentJobSyncs", PAIRS_EQUAL },
	{ "concurrent-namespace-syncs", "NamespaceController.ConcurrentNamespaceSyncs", PAIRS_EQUAL },
	{ "concurrent-replicaset-syncs", "ReplicaSetController.ConcurrentRSSyncs", PAIRS_EQUAL },
	{ "concurrent-resource-quota-syncs", "ResourceQuotaController.ConcurrentResourceQuotaSyncs", PAIRS_EQUAL },
	{ "concurrent-resourceclaim-syncs", "ResourceClaimController.ConcurrentSyncs", PAIRS_EQUAL },
	{ "concurrent-service-endpoint-syncs", "EndpointSliceController.ConcurrentServiceEndpointSyncs", PAIRS_EQUAL },
	{ "concurrent-service-syncs", "ServiceController.ConcurrentServiceSyncs", PAIRS_EQUAL },
	{ "concurrent-serviceaccount-token-syncs", "SAController.ConcurrentSATokenSyncs", PAIRS_EQUAL },
	{ "concurrent-statefulset-syncs", "StatefulSetController.ConcurrentStatefulSetSyncs", PAIRS_EQUAL },
	{ "concurrent-ttl-after-finished-syncs", "TTLAfterFinishedController.ConcurrentTTLSyncs", PAIRS_EQUAL },
	{ "concurrent-validating-admission-policy-status-syncs", "ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs", PAIRS_EQUAL },
	{ "concurrent_rc_syncs", "ReplicationController.ConcurrentRCSyncs", PAIRS_EQUAL },
	{ "configure-cloud-routes", "KubeCloudShared.ConfigureCloudRoutes", PAIRS_EQUAL },
	{ "contention-profiling", "Generic.Debugging.enableContentionProfiling", PAIRS_EQUAL },
	{ "controller-start-interval", "Generic.ControllerStartInterval", PAIRS_EQUAL },
	{ "controllers", "Generic.Controllers", PAIRS_EQUAL },
	{ "disable-attach-detach-reconcile-sync", "AttachDetachController.DisableAttachDetachReconcilerSync", PAIRS_EQUAL },
	{ "disable-force-detach-on-timeout", "AttachDetachController.disableForceDetachOnTimeout", PAIRS_EQUAL },
	{ "enable-dynamic-provisioning", "PersistentVolumeBinderController.VolumeConfiguration.EnableDynamicProvisioning", PAIRS_EQUAL },
	{ "enable-garbage-collector", "GarbageCollectorController.EnableGarbageCollector", PAIRS_EQUAL },
	{ "enable-hostpath-provisioner", "PersistentVolumeBinderController.VolumeConfiguration.EnableHostPathProvisioning", PAIRS_EQUAL },
	{ "enable-leader-migration", "Generic.LeaderMigrationEnabled", PAIRS_EQUAL },
	{ "endpoint-updates-batch-period", "EndpointController.EndpointUpdatesBatchPeriod", PAIRS_EQUAL },
	{ "endpointslice-updates-batch-period", "EndpointSliceController.EndpointUpdatesBatchPeriod", PAIRS_EQUAL },
	{ "external-cloud-volume-plugin", "KubeCloudShared.ExternalCloudVolumePlugin", PAIRS_EQUAL },
	{ "flex-volume-plugin-dir", "PersistentVolumeBinderController.VolumeConfiguration.FlexVolumePluginDir", PAIRS_EQUAL },
	{ "horizontal-pod-autoscaler-cpu-initialization-period", "HPAController.HorizontalPodAutoscalerCPUInitializationPeriod", PAIRS_EQUAL },
	{ "horizontal-pod-autoscaler-downscale-stabilization", "HPAController.HorizontalPodAutoscalerDownscaleStabilizationWindow", PAIRS_EQUAL },
	{ "horizontal-pod-autoscaler-initial-readiness-delay", "HPAController.HorizontalPodAutoscalerInitialReadinessDelay", PAIRS_EQUAL },
	{ "horizontal-pod-autoscaler-sync-period", "HPAController.HorizontalPodAutoscalerSyncPeriod", PAIRS_EQUAL },
	{ "horizontal-pod-autoscaler-tolerance", "HPAController.HorizontalPodAutoscalerTolerance", PAIRS_EQUAL },
	{ "kube-api-burst", "Generic.ClientConnection.burst", PAIRS_EQUAL },
	{ "kube-api-content-type", "Generic.ClientConnection.contentType", PAIRS_EQUAL },
	{ "kube-api-qps", "Generic.ClientConnection.qps", PAIRS_EQUAL },
	{ "large-cluster-size-threshold", "NodeLifecycleController.LargeClusterSizeThreshold", PAIRS_EQUAL },
	{ "leader-elect", "Generic.LeaderElection.leaderElect", PAIRS_EQUAL },
	{ "leader-elect-lease-duration", "Generic.LeaderElection.leaseDuration", PAIRS_EQUAL },
	{ "leader-elect-renew-deadline", "Generic.LeaderElection.renewDeadline", PAIRS_EQUAL },
	{ "leader-elect-resource-lock", "Generic.LeaderElection.resourceLock", PAIRS_EQUAL },
	{ "leader-elect-resource-name", "Generic.LeaderElection.resourceName", PAIRS_EQUAL },
	{ "leader-elect-resource-namespace", "Generic.LeaderElection.resourceNamespace", PAIRS_EQUAL },
	{ "leader-elect-retry-period", "Generic.LeaderElection.retryPeriod", PAIRS_EQUAL },
	{ "legacy-service-account-token-clean-up-period", "LegacySATokenCleaner.CleanUpPeriod", PAIRS_EQUAL },
	{ "max-endpoints-per-slice", "EndpointSliceController.MaxEndpointsPerSlice", PAIRS_EQUAL },
	{ "min-resync-period", "Generic.MinResyncPeriod", PAIRS_EQUAL },
	{ "mirroring-concurrent-service-endpoint-syncs", "EndpointSliceMirroringController.MirroringConcurrentServiceEndpointSyncs", PAIRS_EQUAL },
	{ "mirroring-endpointslice-updates-batch-period", "EndpointSliceMirroringController.MirroringEndpointUpdatesBatchPeriod", PAIRS_EQUAL },
	{ "mirroring-max-endpoints-per-subset", "EndpointSliceMirroringController.MirroringMaxEndpointsPerSubset", PAIRS_EQUAL },
	{ "namespace-sync-period", "NamespaceController.NamespaceSyncPeriod", PAIRS_EQUAL },
	{ "node-cidr-mask-size", "NodeIPAMController.NodeCIDRMaskSize", PAIRS_EQUAL },
	{ "node-cidr-mask-size-ipv4", "NodeIPAMController.NodeCIDRMaskSizeIPv4", PAIRS_EQUAL },
	{ "node-cidr-mask-size-ipv6", "NodeIPAMController.NodeCIDRMaskSizeIPv6", PAIRS_EQUAL },
	{ "node-eviction-rate", "NodeLifecycleController.NodeEvictionRate", PAIRS_EQUAL },
	{ "node-monitor-grace-period", "NodeLifecycleController.NodeMonitorGracePeriod", PAIRS_EQUAL },
	{ "node-monitor-period", "KubeCloudShared.NodeMonitorPeriod", PAIRS_EQUAL },
	{ "node-startup-grace-period", "NodeLifecycleController.NodeStartupGracePeriod", PAIRS_EQUAL },
	{ "node-sync-period", "KubeCloudShared.NodeSyncPeriod", PAIRS_EQUAL },
	{ "profiling", "Generic.Debugging.enableProfiling", PAIRS_EQUAL },
	{ "pv-recycler-increment-timeout-nfs", "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.IncrementTimeoutNFS", PAIRS_EQUAL },
	{ "pv-recycler-minimum-timeout-hostpath", "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MinimumTimeoutHostPath", PAIRS_EQUAL },
	{ "pv-recycler-minimum-timeout-nfs", "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MinimumTimeoutNFS", PAIRS_EQUAL },
	{ "pv-recycler-pod-template-filepath-hostpath", "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.PodTemplateFilePathHostPath", PAIRS_EQUAL },
	{ "pv-recycler-pod-template-filepath-nfs", "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.PodTemplateFilePathNFS", PAIRS_EQUAL },
	{ "pv-recycler-timeout-increment-hostpath", "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.IncrementTimeoutHostPath", PAIRS_EQUAL },
	{ "pvclaimbinder-sync-period", "PersistentVolumeBinderController.PVClaimBinderSyncPeriod", PAIRS_EQUAL },
	{ "resource-quota-sync-period", "ResourceQuotaController.ResourceQuotaSyncPeriod", PAIRS_EQUAL },
	{ "root-ca-file", "SAController.RootCAFile", PAIRS_EQUAL },
	{ "route-reconciliation-period", "KubeCloudShared.RouteReconciliationPeriod", PAIRS_EQUAL },
	{ "secondary-node-eviction-rate", "NodeLifecycleController.SecondaryNodeEvictionRate", PAIRS_EQUAL },
	{ "secure-port", "Generic.Port", PAIRS_EQUAL },
	{ "service-account-private-key-file", "SAController.ServiceAccountKeyFile", PAIRS_EQUAL },
	{ "service-cluster-ip-range", "NodeIPAMController.ServiceCIDR", PAIRS_EQUAL },
	{ "terminated-pod-gc-threshold", "PodGCController.TerminatedPodGCThreshold", PAIRS_EQUAL },
	{ "unhealthy-zone-threshold", "NodeLifecycleController.UnhealthyZoneThreshold", PAIRS_EQUAL },
	{ "use-service-account-credentials", "KubeCloudShared.UseServiceAccountCredentials", PAIRS_EQUAL },
	{ NULL, NULL, PAIRS_EQUAL },
};

static bool is_field(const char *name)
{
	const struct flag_field *f = fields;

	while (f->name && strcmp(f->name, name) != 0)
		f++;
	return f->name;
}

static bool is_given(const struct flag_settings *s, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(s->items[i].name, name) == 0)
			return true;
	return false;
}

/* The table of flags once more, as one that collects the texts of those that are fields. */
static const struct flag *collecting(struct arena *a, size_t *ret_n)
{
	size_t n = 0, kept = 0;

	while (controller_manager_flags[n].name || controller_manager_flags[n].help)
		n++;
	struct flag *rows = ARENA_ARRAY(a, struct flag, n + 1);
	for (size_t i = 0; i < n; i++) {
		struct flag row = controller_manager_flags[i];
		if (row.name && is_field(row.name)) {
			row.type = row.type == FLAG_BOOL ? FLAG_SETTING_BOOL : FLAG_SETTING;
			row.effect = FLAG_WORKS;
		} else {
			row.effect = FLAG_TUNING;
		}
		row.offset = 0;
		if (row.name)
			rows[kept++] = row;
	}
	rows[kept] = (struct flag){ .name = NULL };
	*ret_n = kept;
	return rows;
}

int controller_manager_config(const struct command *c, int argc, char **argv, struct arena *a, struct val *ret)
{
	CLEANUP(buf_done) struct buf none = BUF_INIT(TEXT_MAX), text = BUF_INIT(TEXT_MAX);
	struct flag_settings given = { .n = 0 }, all;
	struct err err = ERR_INIT;
	struct val config;
	size_t n;
	const struct flag *rows = collecting(a, &n);
	int r = flags_parse(c, argc, argv, rows, &given, a, &none);

	if (r != 0)
		return r;
	all = (struct flag_settings){ .items = ARENA_ARRAY(a, struct flag_setting, given.n + n), .n = given.n, .cap = given.n + n };
	if (given.n)
		memcpy(all.items, given.items, given.n * sizeof(*given.items));
	for (size_t i = 0; i < n; i++)
		if (rows[i].initial && is_field(rows[i].name) && !is_given(&given, given.n, rows[i].name))
			all.items[all.n++] = (struct flag_setting){ rows[i].name, rows[i].initial };
	if (flags_config(a, &all, fields, CONFIG_TYPE, NULL, &config, &err) < 0)
		return cmd_usage(c, "%s", err.msg);
	/* From a free tree to a typed one, whose texts are those of the text. */
	if (json_encode(&text, config, &(struct json_encode_options){ .indent = 0 }, &err) < 0 ||
	    json_decode(a, arena_str(a, buf_str(&text)), &(struct json_decode_options){ .type = CONFIG_TYPE }, ret, &err) < 0)
		return cmd_fail(c, &err);
	return 0;
}
