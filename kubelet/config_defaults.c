/*
 * The defaults of KubeletConfiguration v1beta1. A typed tree has no member for what Go's struct cannot tell from the zero value, so that
 * "is not there" is the one condition for a default; durations are the exception, whose zero is written as 0s.
 */
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/config_priv.h"

enum { DEPTH_MAX = 3 };

struct config_default {
	enum { BOOL, INT, TEXT, DURATION, DURATION_POINTER, DOUBLE } kind;
	atom path[DEPTH_MAX]; /* ended by 0 if it is shorter */
	const char *text;     /* of texts and durations */
	double number;        /* of the others */
};

#define IS_BOOL(value, ...) { BOOL, { __VA_ARGS__ }, NULL, value }
#define IS_INT(value, ...) { INT, { __VA_ARGS__ }, NULL, value }
#define IS_TEXT(value, ...) { TEXT, { __VA_ARGS__ }, value, 0 }
#define IS_DURATION(value, ...) { DURATION, { __VA_ARGS__ }, value, 0 }
#define IS_DURATION_POINTER(value, ...) { DURATION_POINTER, { __VA_ARGS__ }, value, 0 }

/* containerRuntimeEndpoint has none here: without it the kubelet runs containers itself. */
static const struct config_default defaults[] = {
	IS_BOOL(true, A_enableServer),
	IS_DURATION("1m0s", A_syncFrequency),
	IS_DURATION("20s", A_fileCheckFrequency),
	IS_DURATION("20s", A_httpCheckFrequency),
	IS_TEXT("0.0.0.0", A_address),
	IS_INT(10250, A_port),
	IS_BOOL(false, A_authentication, A_anonymous, A_enabled),
	IS_BOOL(true, A_authentication, A_webhook, A_enabled),
	IS_DURATION("2m0s", A_authentication, A_webhook, A_cacheTTL),
	IS_TEXT("Webhook", A_authorization, A_mode),
	IS_DURATION("5m0s", A_authorization, A_webhook, A_cacheAuthorizedTTL),
	IS_DURATION("30s", A_authorization, A_webhook, A_cacheUnauthorizedTTL),
	IS_INT(5, A_registryPullQPS),
	IS_INT(10, A_registryBurst),
	IS_INT(50, A_eventRecordQPS),
	IS_INT(100, A_eventBurst),
	IS_BOOL(true, A_enableDebuggingHandlers),
	IS_INT(10248, A_healthzPort),
	IS_TEXT("127.0.0.1", A_healthzBindAddress),
	IS_INT(-999, A_oomScoreAdj),
	IS_DURATION("4h0m0s", A_streamingConnectionIdleTimeout),
	IS_DURATION("10s", A_nodeStatusUpdateFrequency),
	IS_INT(40, A_nodeLeaseDurationSeconds),
	IS_DURATION("2m0s", A_imageMinimumGCAge),
	IS_INT(85, A_imageGCHighThresholdPercent),
	IS_INT(80, A_imageGCLowThresholdPercent),
	IS_DURATION("1m0s", A_volumeStatsAggPeriod),
	IS_BOOL(true, A_cgroupsPerQOS),
	IS_TEXT("cgroupfs", A_cgroupDriver),
	IS_TEXT("none", A_cpuManagerPolicy),
	IS_DURATION("10s", A_cpuManagerReconcilePeriod),
	IS_TEXT("None", A_memoryManagerPolicy),
	IS_TEXT("none", A_topologyManagerPolicy),
	IS_TEXT("container", A_topologyManagerScope),
	IS_DURATION("2m0s", A_runtimeRequestTimeout),
	IS_TEXT("promiscuous-bridge", A_hairpinMode),
	IS_INT(110, A_maxPods),
	IS_INT(-1, A_podPidsLimit),
	IS_TEXT("/etc/resolv.conf", A_resolvConf),
	IS_BOOL(true, A_cpuCFSQuota),
	IS_DURATION_POINTER("100ms", A_cpuCFSQuotaPeriod),
	IS_INT(50, A_nodeStatusMaxImages),
	IS_INT(1000000, A_maxOpenFiles),
	IS_TEXT("application/vnd.kubernetes.protobuf", A_contentType),
	IS_INT(50, A_kubeAPIQPS),
	IS_INT(100, A_kubeAPIBurst),
	IS_DURATION("5m0s", A_evictionPressureTransitionPeriod),
	IS_BOOL(false, A_mergeDefaultEvictionSettings),
	IS_BOOL(true, A_enableControllerAttachDetach),
	IS_BOOL(true, A_makeIPTablesUtilChains),
	IS_INT(14, A_iptablesMasqueradeBit),
	IS_INT(15, A_iptablesDropBit),
	IS_BOOL(true, A_failSwapOn),
	IS_TEXT("10Mi", A_containerLogMaxSize),
	IS_INT(5, A_containerLogMaxFiles),
	IS_INT(1, A_containerLogMaxWorkers),
	IS_DURATION_POINTER("10s", A_containerLogMonitorInterval),
	IS_TEXT("Watch", A_configMapAndSecretChangeDetectionStrategy),
	IS_TEXT("/usr/libexec/kubernetes/kubelet-plugins/volume/exec/", A_volumePluginDir),
	IS_TEXT("text", A_logging, A_format),
	IS_DURATION("5s", A_logging, A_flushFrequency, A_Duration),
	IS_BOOL(true, A_enableSystemLogHandler),
	IS_BOOL(true, A_enableProfilingHandler),
	IS_BOOL(true, A_enableDebugFlagsHandler),
	IS_BOOL(false, A_seccompDefault),
	IS_BOOL(true, A_failCgroupV1),
	{ DOUBLE, { A_memoryThrottlingFactor }, NULL, 0.9 },
	IS_TEXT("None", A_memoryReservationPolicy),
	IS_BOOL(true, A_registerNode),
	IS_BOOL(true, A_localStorageCapacityIsolation),
	IS_TEXT("/var/log/pods", A_podLogsDir),
};

static struct val value_of(const struct config_default *d)
{
	switch (d->kind) {
	case BOOL: return val_of_bool(d->number != 0);
	case INT: return val_of_int((int64_t)d->number);
	case DOUBLE: return val_of_double(d->number);
	default: return VAL_STR(str_of(d->text));
	}
}

static struct val set_default(struct arena *a, struct val config, const struct config_default *d)
{
	size_t n = 0;

	while (n < DEPTH_MAX && d->path[n])
		n++;
	struct val there = val_path(config, d->path, n);
	if (val_exists(there) && (d->kind != DURATION || config_duration_ns(there) != 0))
		return config;
	return val_put_path(a, config, d->path, n, value_of(d));
}

/* Those that depend on others. */
static struct val set_dependent(struct arena *a, struct val c)
{
	struct val update = val_get(c, nodeStatusUpdateFrequency), pulls = val_get(c, maxParallelImagePulls);

	if (config_duration_ns(val_get(c, nodeStatusReportFrequency)) == 0)
		c = val_with(a, c, config_duration_ns(update) ? update : VAL_LIT("5m0s"), nodeStatusReportFrequency);
	if (val_int(c, podPidsLimit) < 0)
		c = val_with(a, c, val_of_int(-1), podPidsLimit);
	if (!val_has(c, serializeImagePulls))
		c = val_with(a, c, val_of_bool(!val_exists(pulls) || val_as_int(pulls) < 2), serializeImagePulls);
	if (config_gate(c, STR("KubeletCrashLoopBackOffMax")) && !val_has(c, crashLoopBackOff, maxContainerRestartPeriod))
		c = val_with(a, c, VAL_LIT("5m0s"), crashLoopBackOff, maxContainerRestartPeriod);
	if (config_gate(c, STR("KubeletEnsureSecretPulledImages")) && !val_has(c, imagePullCredentialsVerificationPolicy))
		c = val_with(a, c, VAL_LIT("NeverVerifyPreloadedImages"), imagePullCredentialsVerificationPolicy);
	return c;
}

int config_set_defaults(struct arena *a, struct val config, bool allocatable_given, struct val *ret, struct err *err)
{
	config = set_dependent(a, config);
	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		config = set_default(a, config, &defaults[i]);
	if (!allocatable_given && !val_has(config, enforceNodeAllocatable))
		config = val_with(a, config, LIST(a, VAL_LIT("pods")), enforceNodeAllocatable);
	return val_canonical(a, config, TYPE(kubeletconfig_v1beta1, KubeletConfiguration), NULL, ret, err);
}

int config_set_eviction(struct arena *a, struct val config, bool given, struct val *ret, struct err *err)
{
	static const struct {
		str signal, threshold;
	} thresholds[] = {
		{ STR_INIT("memory.available"), STR_INIT("100Mi") }, { STR_INIT("nodefs.available"), STR_INIT("10%") },
		{ STR_INIT("nodefs.inodesFree"), STR_INIT("5%") }, { STR_INIT("imagefs.available"), STR_INIT("15%") },
		{ STR_INIT("imagefs.inodesFree"), STR_INIT("5%") },
	};
	struct val map = val_get(config, evictionHard);

	if (given && !val_bool(config, mergeDefaultEvictionSettings)) {
		*ret = config;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(thresholds); i++)
		if (!val_exists(val_find(map, thresholds[i].signal)))
			map = val_put(a, map, atom_make(a, thresholds[i].signal), VAL_STR(thresholds[i].threshold));
	return val_canonical(a, val_with(a, config, map, evictionHard), TYPE(kubeletconfig_v1beta1, KubeletConfiguration), NULL, ret, err);
}
