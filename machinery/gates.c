/* See gates.h. Some gates depend on others: both must be on. */
#include "machinery/gates.h"

#include "base/buf.h"

enum { GATE_ALPHA = 1, GATE_BETA = 2, GATE_GA = 3, GATE_DEPRECATED = 4, GATE_STAGE = 7, GATE_ON = 8, GATE_LOCKED = 16 };

struct gate {
	str name;
	unsigned flags;
	const char *needs; /* what must be on when it is, with commas; NULL: nothing */
};

/* In the order of names. */
static const struct gate gates[] = {
	{ STR_INIT("APIResponseCompression"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("APIServerIdentity"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("APIServerTracing"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("APIServingWithRoutine"), GATE_ALPHA, NULL },
	{ STR_INIT("AggregatedDiscoveryRemoveBetaType"), GATE_DEPRECATED | GATE_LOCKED, NULL },
	{ STR_INIT("AllowDNSOnlyNodeCSR"), GATE_DEPRECATED, NULL },
	{ STR_INIT("AllowInsecureKubeletCertificateSigningRequests"), GATE_DEPRECATED, NULL },
	{ STR_INIT("AllowOverwriteTerminationGracePeriodSeconds"), GATE_DEPRECATED | GATE_LOCKED, NULL },
	{ STR_INIT("AllowParsingUserUIDFromCertAuth"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("AllowServiceExternalIPs"), GATE_GA | GATE_ON, NULL },
	{ STR_INIT("AllowUnsafeMalformedObjectDeletion"), GATE_ALPHA, NULL },
	{ STR_INIT("AnonymousAuthConfigurableEndpoints"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("AnyVolumeDataSource"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("AtomicFIFO"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("AuthorizeNodeWithSelectors"), GATE_GA | GATE_ON | GATE_LOCKED, "AuthorizeWithSelectors" },
	{ STR_INIT("AuthorizePodWebsocketUpgradeCreatePermission"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("AuthorizeWithSelectors"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("BtreeWatchCache"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("CBORServingAndStorage"), GATE_ALPHA, NULL },
	{ STR_INIT("CPUManagerPolicyAlphaOptions"), GATE_ALPHA, NULL },
	{ STR_INIT("CPUManagerPolicyBetaOptions"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("CPUManagerPolicyOptions"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("CRDObservedGenerationTracking"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("CRDValidationRatcheting"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("CRIListStreaming"), GATE_ALPHA, NULL },
	{ STR_INIT("CSIServiceAccountTokenSecrets"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("CSIVolumeHealth"), GATE_ALPHA, NULL },
	{ STR_INIT("ChangeContainerStatusOnKubeletRestart"), GATE_DEPRECATED, NULL },
	{ STR_INIT("ClearingNominatedNodeNameAfterBinding"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ClientsAllowCARotation"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ClientsAllowCBOR"), GATE_ALPHA, NULL },
	{ STR_INIT("ClientsAllowTLSCacheGC"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ClientsPreferCBOR"), GATE_ALPHA, NULL },
	{ STR_INIT("CloudControllerManagerWatchBasedRoutesReconciliation"), GATE_ALPHA, NULL },
	{ STR_INIT("CloudControllerManagerWebhook"), GATE_ALPHA, NULL },
	{ STR_INIT("ClusterTrustBundle"), GATE_BETA, NULL },
	{ STR_INIT("ClusterTrustBundleProjection"), GATE_BETA, "ClusterTrustBundle" },
	{ STR_INIT("ComponentFlagz"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ComponentStatusz"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ConcurrentWatchObjectDecode"), GATE_BETA, NULL },
	{ STR_INIT("ConsistentListFromCache"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ConstrainedImpersonation"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ContainerCheckpoint"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ContainerRestartRules"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ContainerStopSignals"), GATE_ALPHA, NULL },
	{ STR_INIT("ContextualLogging"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ControllerManagerReleaseLeaderElectionLockOnExit"), GATE_ALPHA, NULL },
	{ STR_INIT("CoordinatedLeaderElection"), GATE_BETA, NULL },
	{ STR_INIT("CrossNamespaceVolumeDataSource"), GATE_ALPHA, NULL },
	{ STR_INIT("CustomCPUCFSQuotaPeriod"), GATE_GA | GATE_ON, NULL },
	{ STR_INIT("CustomResourceFieldSelectors"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("DRAAdminAccess"), GATE_GA | GATE_ON | GATE_LOCKED, "DynamicResourceAllocation" },
	{ STR_INIT("DRAConsumableCapacity"), GATE_BETA | GATE_ON, "DynamicResourceAllocation" },
	{ STR_INIT("DRADeviceBindingConditions"), GATE_BETA | GATE_ON, "DynamicResourceAllocation,DRAResourceClaimDeviceStatus" },
	{ STR_INIT("DRADeviceTaintRules"), GATE_BETA, "DRADeviceTaints" },
	{ STR_INIT("DRADeviceTaints"), GATE_BETA | GATE_ON, "DynamicResourceAllocation" },
	{ STR_INIT("DRAExtendedResource"), GATE_BETA | GATE_ON, "DynamicResourceAllocation" },
	{ STR_INIT("DRAListTypeAttributes"), GATE_ALPHA, "DynamicResourceAllocation" },
	{ STR_INIT("DRANodeAllocatableResources"), GATE_ALPHA, "DynamicResourceAllocation" },
	{ STR_INIT("DRAPartitionableDevices"), GATE_BETA | GATE_ON, "DynamicResourceAllocation" },
	{ STR_INIT("DRAPrioritizedList"), GATE_GA | GATE_ON, "DynamicResourceAllocation" },
	{ STR_INIT("DRAResourceClaimDeviceStatus"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("DRAResourceClaimGranularStatusAuthorization"), GATE_BETA | GATE_ON, "DynamicResourceAllocation,DRAResourceClaimDeviceStatus" },
	{ STR_INIT("DRAResourcePoolStatus"), GATE_ALPHA, "DynamicResourceAllocation" },
	{ STR_INIT("DRASchedulerFilterTimeout"), GATE_BETA | GATE_ON, "DynamicResourceAllocation" },
	{ STR_INIT("DRAWorkloadResourceClaims"), GATE_ALPHA, "DynamicResourceAllocation,GenericWorkload" },
	{ STR_INIT("DeclarativeValidation"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("DeclarativeValidationBeta"), GATE_BETA | GATE_ON, "DeclarativeValidation" },
	{ STR_INIT("DeclarativeValidationTakeover"), GATE_DEPRECATED, "DeclarativeValidation" },
	{ STR_INIT("DeploymentReplicaSetTerminatingReplicas"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("DetectCacheInconsistency"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("DisableAllocatorDualWrite"), GATE_GA | GATE_ON | GATE_LOCKED, "MultiCIDRServiceAllocator" },
	{ STR_INIT("DisableCPUQuotaWithExclusiveCPUs"), GATE_DEPRECATED | GATE_ON, NULL },
	{ STR_INIT("DisableNodeKubeProxyVersion"), GATE_DEPRECATED | GATE_LOCKED, NULL },
	{ STR_INIT("DynamicResourceAllocation"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("EnvFiles"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("EventedPLEG"), GATE_ALPHA, NULL },
	{ STR_INIT("ExecProbeTimeout"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ExtendWebSocketsToKubelet"), GATE_BETA | GATE_ON, "NodeDeclaredFeatures" },
	{ STR_INIT("ExternalServiceAccountTokenSigner"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("GangScheduling"), GATE_ALPHA, "GenericWorkload" },
	{ STR_INIT("GenericWorkload"), GATE_ALPHA, NULL },
	{ STR_INIT("GitRepoVolumeDriver"), GATE_DEPRECATED | GATE_LOCKED, NULL },
	{ STR_INIT("GracefulNodeShutdown"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("GracefulNodeShutdownBasedOnPodPriority"), GATE_BETA | GATE_ON, "GracefulNodeShutdown" },
	{ STR_INIT("HPAConfigurableTolerance"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("HPAScaleToZero"), GATE_ALPHA, NULL },
	{ STR_INIT("HostnameOverride"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ImageMaximumGCAge"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ImageVolume"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ImageVolumeWithDigest"), GATE_ALPHA, "ImageVolume" },
	{ STR_INIT("InOrderInformers"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("InOrderInformersBatchProcess"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("InPlacePodLevelResourcesVerticalScaling"), GATE_BETA | GATE_ON, "InPlacePodVerticalScaling,PodLevelResources,NodeDeclaredFeatures" },
	{ STR_INIT("InPlacePodVerticalScaling"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("InPlacePodVerticalScalingExclusiveCPUs"), GATE_ALPHA, "InPlacePodVerticalScaling" },
	{ STR_INIT("InPlacePodVerticalScalingExclusiveMemory"), GATE_ALPHA, "InPlacePodVerticalScaling" },
	{ STR_INIT("InPlacePodVerticalScalingInitContainers"), GATE_BETA | GATE_ON, "InPlacePodVerticalScaling,NodeDeclaredFeatures" },
	{ STR_INIT("InformerResourceVersion"), GATE_GA | GATE_ON, NULL },
	{ STR_INIT("JobBackoffLimitPerIndex"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("JobManagedBy"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("JobPodReplacementPolicy"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("JobSuccessPolicy"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("KMSv1"), GATE_DEPRECATED, NULL },
	{ STR_INIT("KubeletCgroupDriverFromCRI"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("KubeletCrashLoopBackOffMax"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("KubeletEnsureSecretPulledImages"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("KubeletFineGrainedAuthz"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("KubeletInUserNamespace"), GATE_ALPHA, NULL },
	{ STR_INIT("KubeletPSI"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("KubeletPodResourcesDynamicResources"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("KubeletPodResourcesGet"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("KubeletPodResourcesListUseActivePods"), GATE_DEPRECATED | GATE_ON, NULL },
	{ STR_INIT("KubeletRegistrationGetOnExistsOnly"), GATE_DEPRECATED, NULL },
	{ STR_INIT("KubeletSeparateDiskGC"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("KubeletServiceAccountTokenForCredentialProviders"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("KubeletTracing"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ListFromCacheSnapshot"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("LocalStorageCapacityIsolationFSQuotaMonitoring"), GATE_BETA, NULL },
	{ STR_INIT("LogarithmicScaleDown"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("LoggingAlphaOptions"), GATE_ALPHA, NULL },
	{ STR_INIT("LoggingBetaOptions"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ManifestBasedAdmissionControlConfig"), GATE_ALPHA, NULL },
	{ STR_INIT("MatchLabelKeysInPodAffinity"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("MatchLabelKeysInPodTopologySpread"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("MatchLabelKeysInPodTopologySpreadSelectorMerge"), GATE_BETA | GATE_ON, "MatchLabelKeysInPodTopologySpread" },
	{ STR_INIT("MaxUnavailableStatefulSet"), GATE_BETA, NULL },
	{ STR_INIT("MemoryQoS"), GATE_ALPHA, NULL },
	{ STR_INIT("MultiCIDRServiceAllocator"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("MutableCSINodeAllocatableCount"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("MutablePVNodeAffinity"), GATE_ALPHA, NULL },
	{ STR_INIT("MutablePodResourcesForSuspendedJobs"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("MutableSchedulingDirectivesForSuspendedJobs"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("MutatingAdmissionPolicy"), GATE_GA | GATE_ON, NULL },
	{ STR_INIT("NFTablesProxyMode"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("NodeDeclaredFeatures"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("NodeInclusionPolicyInPodTopologySpread"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("NodeLogQuery"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("NodeSwap"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("NominatedNodeNameForExpectation"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("OpenAPIEnums"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("OpportunisticBatching"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("OrderedNamespaceDeletion"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("PLEGOnDemandRelist"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("PersistentVolumeClaimUnusedSinceTime"), GATE_ALPHA, NULL },
	{ STR_INIT("PodAndContainerStatsFromCRI"), GATE_ALPHA, NULL },
	{ STR_INIT("PodCertificateRequest"), GATE_BETA, "AuthorizeNodeWithSelectors" },
	{ STR_INIT("PodDeletionCost"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("PodLevelResourceManagers"), GATE_ALPHA, "PodLevelResources" },
	{ STR_INIT("PodLevelResources"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("PodLifecycleSleepAction"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("PodLifecycleSleepActionAllowZero"), GATE_GA | GATE_ON | GATE_LOCKED, "PodLifecycleSleepAction" },
	{ STR_INIT("PodLogsQuerySplitStreams"), GATE_ALPHA, NULL },
	{ STR_INIT("PodObservedGenerationTracking"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("PodReadyToStartContainersCondition"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("PodSchedulingReadiness"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("PodTopologyLabelsAdmission"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("PodsAPI"), GATE_ALPHA, NULL },
	{ STR_INIT("PortForwardWebsockets"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("PreferSameTrafficDistribution"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("PreventStaticPodAPIReferences"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ProcMountType"), GATE_GA | GATE_ON | GATE_LOCKED, "UserNamespacesSupport" },
	{ STR_INIT("QOSReserved"), GATE_ALPHA, NULL },
	{ STR_INIT("RecoverVolumeExpansionFailure"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("RecursiveReadOnlyMounts"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ReduceDefaultCrashLoopBackOffDecay"), GATE_ALPHA, NULL },
	{ STR_INIT("RelaxedDNSSearchValidation"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("RelaxedEnvironmentVariableValidation"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("RelaxedServiceNameValidation"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ReloadKubeletClientCAFile"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ReloadKubeletServerCertificateFile"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("RemoteRequestHeaderUID"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ResilientWatchCacheInitialization"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ResourceHealthStatus"), GATE_BETA | GATE_ON, "DynamicResourceAllocation" },
	{ STR_INIT("ResourceHealthStatusMessage"), GATE_BETA | GATE_ON, "ResourceHealthStatus" },
	{ STR_INIT("RestartAllContainersOnContainerExits"), GATE_BETA | GATE_ON, "ContainerRestartRules,NodeDeclaredFeatures" },
	{ STR_INIT("RetryGenerateName"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("RotateKubeletServerCertificate"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("RuntimeClassInImageCriApi"), GATE_ALPHA, NULL },
	{ STR_INIT("SELinuxChangePolicy"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("SELinuxMount"), GATE_BETA, NULL },
	{ STR_INIT("SELinuxMountReadWriteOncePod"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("SchedulerAsyncAPICalls"), GATE_BETA, NULL },
	{ STR_INIT("SchedulerAsyncPreemption"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("SchedulerPopFromBackoffQ"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("SchedulerQueueingHints"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("SeparateCacheWatchRPC"), GATE_DEPRECATED | GATE_LOCKED, NULL },
	{ STR_INIT("SeparateTaintEvictionController"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ServiceAccountNodeAudienceRestriction"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("ServiceAccountTokenJTI"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ServiceAccountTokenNodeBinding"), GATE_GA | GATE_ON | GATE_LOCKED, "ServiceAccountTokenNodeBindingValidation" },
	{ STR_INIT("ServiceAccountTokenNodeBindingValidation"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ServiceAccountTokenPodNodeInfo"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("ServiceCIDRStatusFieldWiping"), GATE_DEPRECATED | GATE_ON, NULL },
	{ STR_INIT("ShardedListAndWatch"), GATE_ALPHA, NULL },
	{ STR_INIT("SidecarContainers"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("SizeBasedListCostEstimate"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("StaleControllerConsistencyDaemonSet"), GATE_BETA | GATE_ON, "AtomicFIFO" },
	{ STR_INIT("StaleControllerConsistencyJob"), GATE_BETA | GATE_ON, "AtomicFIFO" },
	{ STR_INIT("StaleControllerConsistencyReplicaSet"), GATE_BETA | GATE_ON, "AtomicFIFO" },
	{ STR_INIT("StaleControllerConsistencyStatefulSet"), GATE_BETA | GATE_ON, "AtomicFIFO" },
	{ STR_INIT("StatefulSetSemanticRevisionComparison"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("StorageCapacityScoring"), GATE_ALPHA, NULL },
	{ STR_INIT("StorageNamespaceIndex"), GATE_DEPRECATED | GATE_ON, NULL },
	{ STR_INIT("StorageVersionAPI"), GATE_ALPHA, "APIServerIdentity" },
	{ STR_INIT("StorageVersionHash"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("StorageVersionMigrator"), GATE_BETA, NULL },
	{ STR_INIT("StreamingCollectionEncodingToJSON"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("StreamingCollectionEncodingToProtobuf"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("StrictIPCIDRValidation"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("StructuredAuthenticationConfiguration"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("StructuredAuthenticationConfigurationEgressSelector"), GATE_BETA | GATE_ON, "StructuredAuthenticationConfiguration" },
	{ STR_INIT("StructuredAuthenticationConfigurationJWKSMetrics"), GATE_BETA | GATE_ON, "StructuredAuthenticationConfiguration" },
	{ STR_INIT("SupplementalGroupsPolicy"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("SystemdWatchdog"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("TaintTolerationComparisonOperators"), GATE_ALPHA, NULL },
	{ STR_INIT("TokenRequestServiceAccountUIDValidation"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("TopologyAwareWorkloadScheduling"), GATE_ALPHA, "GenericWorkload" },
	{ STR_INIT("TopologyManagerPolicyAlphaOptions"), GATE_ALPHA, NULL },
	{ STR_INIT("TopologyManagerPolicyBetaOptions"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("TopologyManagerPolicyOptions"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("TranslateStreamCloseWebsocketRequests"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("UnauthenticatedHTTP2DOSMitigation"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("UnknownVersionInteroperabilityProxy"), GATE_BETA | GATE_ON, "APIServerIdentity" },
	{ STR_INIT("UnlockWhileProcessingFIFO"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("UserNamespacesHostNetworkSupport"), GATE_ALPHA, "UserNamespacesSupport,NodeDeclaredFeatures" },
	{ STR_INIT("UserNamespacesSupport"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("VolumeAttributesClass"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("VolumeLimitScaling"), GATE_ALPHA, NULL },
	{ STR_INIT("WatchCacheInitializationPostStartHook"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("WatchList"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("WatchListClient"), GATE_BETA | GATE_ON, NULL },
	{ STR_INIT("WinDSR"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("WinOverlay"), GATE_GA | GATE_ON | GATE_LOCKED, NULL },
	{ STR_INIT("WindowsCPUAndMemoryAffinity"), GATE_ALPHA, NULL },
	{ STR_INIT("WindowsGracefulNodeShutdown"), GATE_BETA | GATE_ON, "GracefulNodeShutdown" },
	{ STR_INIT("WindowsHostNetwork"), GATE_DEPRECATED, NULL },
	{ STR_INIT("WorkloadAwarePreemption"), GATE_ALPHA, "GangScheduling" },
	{ STR_INIT("WorkloadWithJob"), GATE_ALPHA, "GenericWorkload" },
};

static const struct gate *find(str name)
{
	size_t low = 0, high = ARRAY_LEN(gates);

	while (low < high) {
		size_t middle = (low + high) / 2;
		int c = str_cmp(gates[middle].name, name);
		if (c == 0)
			return &gates[middle];
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Said of the gate itself, or of all of its stage. */
static bool is_on(struct val said, const struct gate *g)
{
	struct val own = val_find(said, g->name), all = VAL_EMPTY;

	if ((g->flags & GATE_STAGE) == GATE_ALPHA)
		all = val_find(said, STR("AllAlpha"));
	else if ((g->flags & GATE_STAGE) == GATE_BETA)
		all = val_find(said, STR("AllBeta"));
	if (val_is(own, VAL_BOOL))
		return own.b;
	return val_is(all, VAL_BOOL) ? all.b : g->flags & GATE_ON;
}

bool gate_is_on(struct val said, str name)
{
	const struct gate *g = find(name);

	return g && is_on(said, g);
}

/* ---- what may be said ---- */

static void check_needs(struct arena *a, struct val said, const struct gate *g, gates_complain *complain, void *arg)
{
	str rest = str_of(g->needs), need;
	CLEANUP(buf_done) struct buf missing = BUF_INIT(4096);

	for (bool more = true; more;) {
		more = str_cut(rest, ',', &need, &rest);
		const struct gate *other = find(need);
		if (!other || !is_on(said, other))
			buf_addf(&missing, "%s" STR_FMT, missing.n ? " " : "", STR_ARG(need));
	}
	if (missing.n)
		complain(arg, arena_printf(a, STR_FMT " is enabled, but depends on features that are disabled: [" STR_FMT "]", STR_ARG(g->name),
					   STR_ARG(buf_str(&missing))));
}

void gates_check(struct arena *a, struct val said, gates_complain *complain, void *arg)
{
	VAL_EACH_MEMBER(m, said) {
		str name = atom_str(m->key);
		const struct gate *g = find(name);
		bool on = val_as_bool(m->val);
		if (!g && !str_eq(name, STR("AllAlpha")) && !str_eq(name, STR("AllBeta"))) {
			complain(arg, arena_printf(a, "unrecognized feature gate: " STR_FMT, STR_ARG(name)));
			return;
		}
		if (g && (g->flags & GATE_LOCKED) && on != !!(g->flags & GATE_ON))
			complain(arg, arena_printf(a, "cannot set feature gate " STR_FMT " to %s, feature is locked to %s", STR_ARG(name),
						   on ? "true" : "false", on ? "false" : "true"));
	}
}

void gates_check_needs(struct arena *a, struct val said, gates_complain *complain, void *arg)
{
	for (size_t i = 0; i < ARRAY_LEN(gates); i++)
		if (gates[i].needs && is_on(said, &gates[i]))
			check_needs(a, said, &gates[i], complain, arg);
}
