#include "kubelet/config.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/config_priv.h"

#define HEADER "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
/* The tests run on machines of both kinds of control groups. */
#define ANY_CGROUPS "failCgroupV1: false\n"

struct folder {
	char path[64];
};

static struct folder folder_make(void)
{
	struct folder f = { "/tmp/kubelet-config-XXXXXX" };

	CHECK(mkdtemp(f.path));
	return f;
}

static void folder_remove(const struct folder *f)
{
	int tree = path_open_tree("/tmp", NULL);

	CHECK_INT(path_remove(tree, f->path + 5, NULL), 0);
	close(tree);
}

static const char *put(struct arena *a, const struct folder *f, const char *name, const char *text)
{
	const char *path = arena_printf(a, "%s/%s", f->path, name).p;
	str dir = str_head(str_of(path), (size_t)str_rchr(str_of(path), '/'));

	CHECK_INT(file_make_dirs(arena_str(a, dir).p, 0755, NULL), 0);
	CHECK_INT(file_replace(path, str_of(text), 0644, NULL), 0);
	return path;
}

static struct val parse(struct arena *a, const char *json)
{
	struct val v = VAL_EMPTY;

	CHECK_INT(json_decode(a, str_of(json), &(const struct json_decode_options){ .sort_keys = true }, &v, NULL), 0);
	return v;
}

/* What is loaded from one file (NULL: none) and flags, as JSON; or the error. */
static str load(struct arena *a, const char *file, const char *folder, const char *flags)
{
	CLEANUP(frozen_unrefp) struct frozen *f = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct err err = ERR_INIT;

	if (kubelet_config_load(file, folder, flags ? parse(a, flags) : VAL_EMPTY, &f, &err) < 0)
		return arena_str(a, err_str(&err));
	CHECK_INT(json_encode(&b, f->val, &(const struct json_encode_options){ .type = TYPE(kubeletconfig_v1beta1, KubeletConfiguration) }, &err), 0);
	return arena_str(a, buf_str(&b));
}

static bool has(str text, const char *part) { return str_find(text, str_of(part)) >= 0; }

TEST(kubelet_config_defaults)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str got = load(&a, NULL, NULL, "{\"failCgroupV1\":false}");

	CHECK_STR(got,
		"{\"kind\":\"KubeletConfiguration\",\"apiVersion\":\"kubelet.config.k8s.io/v1beta1\",\"enableServer\":true,"
		"\"podLogsDir\":\"/var/log/pods\",\"syncFrequency\":\"1m0s\",\"fileCheckFrequency\":\"20s\",\"httpCheckFrequency\":\"20s\","
		"\"address\":\"0.0.0.0\",\"port\":10250,\"authentication\":{\"x509\":{},\"webhook\":{\"enabled\":true,\"cacheTTL\":\"2m0s\"},"
		"\"anonymous\":{\"enabled\":false}},\"authorization\":{\"mode\":\"Webhook\",\"webhook\":{\"cacheAuthorizedTTL\":\"5m0s\","
		"\"cacheUnauthorizedTTL\":\"30s\"}},\"registryPullQPS\":5,\"registryBurst\":10,"
		"\"imagePullCredentialsVerificationPolicy\":\"NeverVerifyPreloadedImages\",\"eventRecordQPS\":50,\"eventBurst\":100,"
		"\"enableDebuggingHandlers\":true,\"healthzPort\":10248,\"healthzBindAddress\":\"127.0.0.1\",\"oomScoreAdj\":-999,"
		"\"streamingConnectionIdleTimeout\":\"4h0m0s\",\"nodeStatusUpdateFrequency\":\"10s\",\"nodeStatusReportFrequency\":\"5m0s\","
		"\"nodeLeaseDurationSeconds\":40,\"imageMinimumGCAge\":\"2m0s\",\"imageMaximumGCAge\":\"0s\","
		"\"imageGCHighThresholdPercent\":85,\"imageGCLowThresholdPercent\":80,\"volumeStatsAggPeriod\":\"1m0s\","
		"\"cgroupsPerQOS\":true,\"cgroupDriver\":\"cgroupfs\",\"cpuManagerPolicy\":\"none\",\"cpuManagerReconcilePeriod\":\"10s\","
		"\"memoryManagerPolicy\":\"None\",\"topologyManagerPolicy\":\"none\",\"topologyManagerScope\":\"container\","
		"\"runtimeRequestTimeout\":\"2m0s\",\"hairpinMode\":\"promiscuous-bridge\",\"maxPods\":110,\"podPidsLimit\":-1,"
		"\"resolvConf\":\"/etc/resolv.conf\",\"cpuCFSQuota\":true,\"cpuCFSQuotaPeriod\":\"100ms\",\"nodeStatusMaxImages\":50,"
		"\"maxOpenFiles\":1000000,\"contentType\":\"application/vnd.kubernetes.protobuf\",\"kubeAPIQPS\":50,\"kubeAPIBurst\":100,"
		"\"serializeImagePulls\":true,\"evictionHard\":{\"imagefs.available\":\"15%\",\"imagefs.inodesFree\":\"5%\","
		"\"memory.available\":\"100Mi\",\"nodefs.available\":\"10%\",\"nodefs.inodesFree\":\"5%\"},"
		"\"evictionPressureTransitionPeriod\":\"5m0s\",\"mergeDefaultEvictionSettings\":false,\"enableControllerAttachDetach\":true,"
		"\"makeIPTablesUtilChains\":true,\"iptablesMasqueradeBit\":14,\"iptablesDropBit\":15,\"failSwapOn\":true,\"memorySwap\":{},"
		"\"containerLogMaxSize\":\"10Mi\",\"containerLogMaxFiles\":5,\"containerLogMaxWorkers\":1,"
		"\"containerLogMonitorInterval\":\"10s\",\"configMapAndSecretChangeDetectionStrategy\":\"Watch\","
		"\"enforceNodeAllocatable\":[\"pods\"],\"volumePluginDir\":\"/usr/libexec/kubernetes/kubelet-plugins/volume/exec/\","
		"\"logging\":{\"format\":\"text\",\"flushFrequency\":{\"Duration\":\"5s\"},\"verbosity\":0,\"options\":{\"text\":{"
		"\"infoBufferSize\":\"0\"},\"json\":{\"infoBufferSize\":\"0\"}}},\"enableSystemLogHandler\":true,\"shutdownGracePeriod\":\"0s\","
		"\"shutdownGracePeriodCriticalPods\":\"0s\",\"crashLoopBackOff\":{\"maxContainerRestartPeriod\":\"5m0s\"},"
		"\"enableProfilingHandler\":true,\"enableDebugFlagsHandler\":true,\"seccompDefault\":false,\"memoryThrottlingFactor\":0.9,"
		"\"memoryReservationPolicy\":\"None\",\"registerNode\":true,\"localStorageCapacityIsolation\":true,"
		"\"containerRuntimeEndpoint\":\"\",\"failCgroupV1\":false}");
}

TEST(kubelet_config_file)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		/* What is given stays, also where it is zero but not nothing. */
		{ "maxPods: 10\nhealthzPort: 0\nresolvConf: ''\n", "\"maxPods\":10" },
		{ "maxPods: 10\nhealthzPort: 0\nresolvConf: ''\n", "\"healthzPort\":0" },
		{ "maxPods: 10\nhealthzPort: 0\nresolvConf: ''\n", "\"resolvConf\":\"\"" },
		{ "maxPods: 0\nsyncFrequency: 0s\n", "\"maxPods\":110" },
		{ "maxPods: 0\nsyncFrequency: 0s\n", "\"syncFrequency\":\"1m0s\"" },
		{ "authentication:\n  anonymous:\n    enabled: true\n", "\"anonymous\":{\"enabled\":true}" },
		{ "authentication:\n  anonymous:\n    enabled: true\n", "\"webhook\":{\"enabled\":true,\"cacheTTL\":\"2m0s\"}" },
		/* Those that depend on others. */
		{ "nodeStatusUpdateFrequency: 7s\n", "\"nodeStatusReportFrequency\":\"7s\"" },
		{ "maxParallelImagePulls: 3\n", "\"serializeImagePulls\":false" },
		{ "maxParallelImagePulls: 1\n", "\"serializeImagePulls\":true" },
		{ "podPidsLimit: -7\n", "\"podPidsLimit\":-1" },
		/* Thresholds: all of the defaults, or only what is there, unless asked for. */
		{ "evictionHard: {memory.available: 5%}\n", "\"evictionHard\":{\"memory.available\":\"5%\"}," },
		{ "evictionHard: {memory.available: 5%}\nmergeDefaultEvictionSettings: true\n",
		  "\"memory.available\":\"5%\",\"nodefs.available\":\"10%\",\"nodefs.inodesFree\":\"5%\"}" },
		{ "evictionHard: {}\n", "\"serializeImagePulls\":true,\"evictionPressureTransitionPeriod\"" },
		{ "enforceNodeAllocatable: []\n", "\"configMapAndSecretChangeDetectionStrategy\":\"Watch\",\"volumePluginDir\"" },
		/* Both forms of this one. */
		{ "logging: {flushFrequency: 3s}\n", "\"flushFrequency\":{\"Duration\":\"3s\"}" },
		{ "logging: {flushFrequency: 4000000000}\n", "\"flushFrequency\":{\"Duration\":\"4s\"}" },
		/* Unknown fields are only told about. */
		{ "nothing: here\nmaxPods: 7\n", "\"maxPods\":7" },
		{ "maxPods: 7\nmaxPods: 8\n", "\"maxPods\":8" },
		{ "containerRuntimeEndpoint: unix:///run/x.sock\n", "\"containerRuntimeEndpoint\":\"unix:///run/x.sock\"" },
	};
	struct folder f = folder_make();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		const char *file = put(&a, &f, "config.yaml", arena_printf(&a, HEADER ANY_CGROUPS "%s", rows[i].text).p);
		str got = load(&a, file, NULL, NULL);
		if (!has(got, rows[i].want))
			print_error("row %zu: %s in " STR_FMT "\n", i, rows[i].want, STR_ARG(got));
		CHECK(has(got, rows[i].want));
	}
	folder_remove(&f);
}

TEST(kubelet_config_paths_are_relative_to_the_file)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct folder f = folder_make();
	const char *file = put(&a, &f, "config.yaml", HEADER ANY_CGROUPS "staticPodPath: ../pods/\ntlsCertFile: /a/../b\nauthentication: {x509: {clientCAFile: ca.crt}}\n");
	str got = load(&a, file, NULL, NULL);

	CHECK(has(got, "\"staticPodPath\":\"/tmp/pods\""));
	CHECK(has(got, "\"tlsCertFile\":\"/a/../b\""));
	CHECK(has(got, arena_printf(&a, "\"clientCAFile\":\"%s/ca.crt\"", f.path).p));
	folder_remove(&f);
}

TEST(kubelet_config_bad_files)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ NULL, "failed to read kubelet config file \"%s\", error: open %s: no such file or directory" },
		{ "", "kubelet config file \"%s\" was empty" },
		{ "kind: KubeletConfiguration\n", "failed to decode: Object 'apiVersion' is missing in 'kind: KubeletConfiguration\n'" },
		{ "a: b\n", "failed to decode: Object 'Kind' is missing in 'a: b\n'" },
		{ "kind: Pod\napiVersion: v1\n", "failed to decode: no kind \"Pod\" is registered for version \"v1\"" },
		{ "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\n",
		  "failed to cast object to KubeletConfiguration, unexpected type: kubelet.config.k8s.io/v1, Kind=CredentialProviderConfig" },
		{ HEADER "maxPods: many\n",
		  "failed to decode: json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32" },
		{ HEADER "featureGates: {Nonsense: true}\n", "unrecognized feature gate: Nonsense" },
	};
	struct folder f = folder_make();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		const char *path = rows[i].text ? put(&a, &f, "bad", rows[i].text) : arena_printf(&a, "%s/none", f.path).p;
		const char *cause = rows[i].want;
		if (i < 2)
			cause = i == 0 ? arena_printf(&a, "failed to read kubelet config file \"%s\", error: open %s: no such file or directory", path, path).p :
					 arena_printf(&a, "kubelet config file \"%s\" was empty", path).p;
		CHECK_STR_ROW(i, load(&a, path, NULL, NULL),
			      arena_printf(&a, "failed to load kubelet config file, path: %s, error: failed to load Kubelet config file %s, error %s",
					   path, path, cause).p);
	}
	folder_remove(&f);
}

TEST(kubelet_config_drop_ins)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct folder f = folder_make();
	const char *file = put(&a, &f, "config.yaml", HEADER ANY_CGROUPS "maxPods: 5\nclusterDNS: [10.0.0.1]\nevictionHard: {memory.available: 1Mi}\n");
	const char *dir = arena_printf(&a, "%s/d", f.path).p;

	put(&a, &f, "d/20-late.conf", HEADER "maxPods: 20\nevictionHard: {nodefs.available: 1%}\n");
	put(&a, &f, "d/10-early.conf", HEADER "maxPods: 10\nport: 1234\nclusterDNS: [10.0.0.2, 10.0.0.3]\nnodeStatusUpdateFrequency: 7s\n");
	put(&a, &f, "d/15/99-inner.conf", HEADER "port: 4321\nhealthzPort: null\nlogging: {flushFrequency: 9s}\n");
	put(&a, &f, "d/99-not.yaml", "no configuration at all");
	str got = load(&a, file, dir, NULL);
	CHECK(has(got, "\"maxPods\":20"));
	CHECK(has(got, "\"port\":4321"));
	CHECK(has(got, "\"clusterDNS\":[\"10.0.0.2\",\"10.0.0.3\"]"));
	CHECK(has(got, "\"evictionHard\":{\"memory.available\":\"1Mi\",\"nodefs.available\":\"1%\"}"));
	CHECK(has(got, "\"healthzPort\":10248"));
	CHECK(has(got, "\"flushFrequency\":{\"Duration\":\"9s\"}"));
	/* The file had its defaults already. */
	CHECK(has(got, "\"nodeStatusReportFrequency\":\"5m0s\""));

	const char *bad = put(&a, &f, "d/30.conf", HEADER "maxPods: 1\nmaxPods: 2\n");
	CHECK_STR(load(&a, file, dir, NULL), arena_printf(&a, "failed to merge kubelet configs: failed to walk through kubelet dropin directory \"%s\": "
		  "failed to load kubelet dropin file, path: %s, error: strict decoding error: yaml: unmarshal errors:\n  line 4: key \"maxPods\" "
		  "already set in map", dir, bad).p);
	put(&a, &f, "d/30.conf", "kind: Pod\napiVersion: v1\n");
	CHECK_STR(load(&a, file, dir, NULL), arena_printf(&a, "failed to merge kubelet configs: failed to walk through kubelet dropin directory \"%s\": "
		  "failed to load kubelet dropin file, path: %s, unknown apiVersion/kind: v1, Kind=Pod", dir, bad).p);
	CHECK_STR(load(&a, file, "/nowhere/d", NULL), "failed to merge kubelet configs: failed to walk through kubelet dropin directory "
		  "\"/nowhere/d\": lstat /nowhere/d: no such file or directory");
	folder_remove(&f);
}

TEST(kubelet_config_flags_win)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct folder f = folder_make();
	const char *file = put(&a, &f, "config.yaml", HEADER "maxPods: 5\nreadOnlyPort: 10255\nevictionHard: {memory.available: 1Mi}\n"
			       "featureGates: {MemoryQoS: true, NodeLogQuery: true}\nauthentication: {anonymous: {enabled: true}}\n");
	str got = load(&a, file, NULL, "{\"failCgroupV1\":false,\"maxPods\":0,\"readOnlyPort\":0,\"evictionHard\":{\"nodefs.available\":\"1%\"},"
		       "\"featureGates\":{\"MemoryQoS\":false,\"AllAlpha\":false},\"authentication\":{\"x509\":{\"clientCAFile\":\"ca\"}},"
		       "\"logging\":{\"flushFrequency\":\"2s\"}}");

	CHECK(!has(got, "maxPods"));
	CHECK(!has(got, "readOnlyPort"));
	CHECK(has(got, "\"evictionHard\":{\"nodefs.available\":\"1%\"}"));
	CHECK(has(got, "\"featureGates\":{\"AllAlpha\":false,\"MemoryQoS\":false,\"NodeLogQuery\":true}"));
	CHECK(has(got, "\"x509\":{\"clientCAFile\":\"ca\"},\"webhook\":{\"enabled\":true,\"cacheTTL\":\"2m0s\"},\"anonymous\":{\"enabled\":true}"));
	CHECK(has(got, "\"flushFrequency\":{\"Duration\":\"2s\"}"));
	/* Gates of flags count for defaults already. */
	got = load(&a, NULL, NULL, "{\"failCgroupV1\":false,\"featureGates\":{\"KubeletCrashLoopBackOffMax\":false}}");
	CHECK(has(got, "\"crashLoopBackOff\":{}"));
	CHECK_STR(load(&a, NULL, NULL, "{\"featureGates\":{\"Nonsense\":true}}"), "unrecognized feature gate: Nonsense");
	folder_remove(&f);
}

/* The configuration with defaults, some of it replaced: what is refused. */
TEST(kubelet_config_check)
{
	static const struct {
		const char *change, *want;
	} rows[] = {
#define IC "invalid configuration: "
		{ "{}", "" },
		{ "{\"nodeLeaseDurationSeconds\":-1}", IC "nodeLeaseDurationSeconds must be greater than 0" },
		{ "{\"systemCgroups\":\"/x\"}", IC "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified" },
		{ "{\"eventBurst\":-1,\"eventRecordQPS\":-2}", "[" IC "eventBurst (--event-burst) -1 must not be a negative number, " IC
		  "eventRecordQPS (--event-qps) -2 must not be a negative number]" },
		{ "{\"healthzPort\":0}", "" },
		{ "{\"healthzPort\":65536}", IC "healthzPort (--healthz-port) 65536 must be between 1 and 65535, inclusive" },
		{ "{\"cpuCFSQuotaPeriod\":\"2s\"}", IC "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 2s must be between 1ms and 1sec, inclusive" },
		{ "{\"cpuCFSQuotaPeriod\":\"200ms\",\"featureGates\":{\"CustomCPUCFSQuotaPeriod\":false}}",
		  IC "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 200ms requires feature gate CustomCPUCFSQuotaPeriod" },
		{ "{\"imageGCLowThresholdPercent\":90}", IC "imageGCLowThresholdPercent (--image-gc-low-threshold) 90 must be less than "
		  "imageGCHighThresholdPercent (--image-gc-high-threshold) 85" },
		{ "{\"imageMaximumGCAge\":\"1m0s\"}", IC "imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge 2m0s" },
		{ "{\"port\":0}", IC "port (--port) 0 must be between 1 and 65535, inclusive" },
		{ "{\"oomScoreAdj\":-1001}", IC "oomScoreAdj (--oom-score-adj) -1001 must be between -1000 and 1000, inclusive" },
		{ "{\"maxParallelImagePulls\":0}", IC "maxParallelImagePulls 0 must be a positive number" },
		{ "{\"maxParallelImagePulls\":2}", IC "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
		  "(--serialize-image-pulls) is set to false" },
		{ "{\"serverTLSBootstrap\":true}", "" },
		{ "{\"serverTLSBootstrap\":true,\"featureGates\":{\"RotateKubeletServerCertificate\":false}}",
		  IC "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate" },
		{ "{\"runOnce\":true}", IC "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set" },
		{ "{\"registerWithTaints\":[{\"key\":\"a\",\"effect\":\"Never\"},{\"key\":\"b\",\"value\":\"c\",\"effect\":\"NoExecute\"}]}",
		  "invalid taint: {a  Never <nil>}" },
		{ "{\"topologyManagerPolicy\":\"x\"}", IC "topologyManagerPolicy (--topology-manager-policy) \"x\" must be one of: [\"none\" "
		  "\"best-effort\" \"restricted\" \"single-numa-node\"]" },
		{ "{\"topologyManagerScope\":\"x\"}", IC "topologyManagerScope (--topology-manager-scope) \"x\" must be one of: \"container\", or \"pod\"" },
		{ "{\"shutdownGracePeriod\":\"10s\",\"shutdownGracePeriodCriticalPods\":\"20s\"}",
		  IC "shutdownGracePeriodCriticalPods 20s must be <= shutdownGracePeriod 10s" },
		{ "{\"shutdownGracePeriod\":\"10ms\"}", IC "shutdownGracePeriod 10ms must be either zero or otherwise >= 1 sec" },
		{ "{\"shutdownGracePeriod\":\"10s\",\"shutdownGracePeriodByPodPriority\":[{\"priority\":1,\"shutdownGracePeriodSeconds\":2}]}",
		  IC "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time" },
		{ "{\"featureGates\":{\"ResourceHealthStatus\":false,\"ResourceHealthStatusMessage\":true}}", "ResourceHealthStatusMessage is enabled, "
		  "but depends on features that are disabled: [ResourceHealthStatus]" },
		{ "{\"featureGates\":{\"NodeSwap\":false}}", "cannot set feature gate NodeSwap to false, feature is locked to true" },
		{ "{\"memorySwap\":{\"swapBehavior\":\"x\"}}", IC "memorySwap.swapBehavior \"x\" must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"" },
		{ "{\"crashLoopBackOff\":{\"maxContainerRestartPeriod\":\"500ms\"}}",
		  IC "CrashLoopBackOff.MaxContainerRestartPeriod (got: 0.5 seconds) must be set between 1s and 300s" },
		{ "{\"enforceNodeAllocatable\":[\"pods\",\"system-reserved\"]}", IC "systemReservedCgroup (--system-reserved-cgroup) must be specified "
		  "when \"system-reserved\" or \"system-reserved-compressible\" included in enforceNodeAllocatable (--enforce-node-allocatable)" },
		{ "{\"enforceNodeAllocatable\":[\"pods\",\"pods\"]}",
		  IC "duplicated enforcements \"pods\" in enforceNodeAllocatable (--enforce-node-allocatable)" },
		{ "{\"enforceNodeAllocatable\":[\"none\",\"pods\"]}", IC "enforceNodeAllocatable (--enforce-node-allocatable) may not contain "
		  "additional enforcements when \"none\" is specified" },
		{ "{\"cgroupsPerQOS\":false}", IC "cgroupsPerQOS (--cgroups-per-qos) must be set to true when \"pods\" contained in "
		  "enforceNodeAllocatable (--enforce-node-allocatable)" },
		{ "{\"cgroupsPerQOS\":false,\"enforceNodeAllocatable\":[\"none\"]}", "" },
		{ "{\"hairpinMode\":\"x\"}", IC "option \"x\" specified for hairpinMode (--hairpin-mode). Valid options are \"none\", "
		  "\"hairpin-veth\" or \"promiscuous-bridge\"" },
		{ "{\"preloadedImagesVerificationAllowlist\":[\"a/b\"]}", IC "can't set `preloadedImagesVerificationAllowlist` if "
		  "`imagePullCredentialsVertificationPolicy` is not \"NeverVerifyAllowlistedImages\"" },
		{ "{\"imagePullCredentialsVerificationPolicy\":\"NeverVerifyAllowlistedImages\",\"preloadedImagesVerificationAllowlist\":[\"a/*\","
		  "\"b:tag\"]}", IC "invalid image pattern in `preloadedImagesVerificationAllowlist`: neither tag nor digest is accepted in an "
		  "image reference: b:tag" },
		{ "{\"reservedSystemCPUs\":\"0-2,7\"}", "" },
		{ "{\"reservedSystemCPUs\":\"2-1\"}", IC "unable to parse reservedSystemCPUs (--reserved-cpus) 2-1, error: invalid range \"2-1\" (2 > 1)" },
		{ "{\"reservedSystemCPUs\":\"0,x\"}", IC "unable to parse reservedSystemCPUs (--reserved-cpus) 0,x, error: strconv.Atoi: parsing "
		  "\"x\": invalid syntax" },
		{ "{\"reservedMemory\":[{\"numaNode\":0,\"limits\":{\"cpu\":\"1\"}}]}", IC "the limit type \"cpu\" for NUMA node 0 is not supported, "
		  "only [memory hugepages-<HugePageSize>] is accepted" },
		{ "{\"reservedMemory\":[{\"numaNode\":1,\"limits\":{\"memory\":\"1\"}},{\"numaNode\":1,\"limits\":{\"memory\":\"1\"}}]}",
		  IC "the reserved memory has a duplicate value for NUMA node 1 and resource \"memory\"" },
		{ "{\"userNamespaces\":{\"idsPerPod\":65537}}", IC "userNamespaces.idsPerPod must be a multiple of 65536" },
		{ "{\"showHiddenMetricsForVersion\":\"1.34\"}", "invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: "
		  "\"1.34\": must be omitted or have the value '1.35'; only the previous minor version is allowed" },
		{ "{\"logging\":{\"format\":\"xml\"}}", "logging.format: Invalid value: \"xml\": Unsupported log format" },
		{ "{\"logging\":{\"flushFrequency\":{\"Duration\":\"-1s\"}}}", "logging.flushFrequency: Invalid value: v1.TimeOrMetaDuration{Duration:"
		  "v1.Duration{Duration:-1000000000}, SerializeAsString:true}: Must be greater than zero" },
		{ "{\"logging\":{\"options\":{\"json\":{\"splitStream\":true}}}}",
		  "logging.options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled" },
		{ "{\"tracing\":{\"endpoint\":\"http://x\",\"samplingRatePerMillion\":-1}}",
		  "[tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive, tracing.endpoint: Invalid value: \"http://x\": "
		  "unsupported scheme: http.  Options are none, dns, unix, or unix-abstract.  See "
		  "https://github.com/grpc/grpc/blob/master/doc/naming.md]" },
		{ "{\"memoryThrottlingFactor\":1.5}", IC "memoryThrottlingFactor 1.5 must be greater than 0 and less than or equal to 1.0" },
		{ "{\"memoryReservationPolicy\":\"TieredReservation\"}",
		  IC "memoryReservationPolicy \"TieredReservation\" requires MemoryQoS feature gate to be enabled" },
		{ "{\"memoryReservationPolicy\":\"TieredReservation\",\"featureGates\":{\"AllAlpha\":true,\"MemoryQoS\":true}}", "" },
		{ "{\"containerLogMaxFiles\":1}", IC "containerLogMaxFiles must be greater than 1" },
		{ "{\"containerLogMonitorInterval\":\"2s\"}",
		  IC "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s" },
		{ "{\"podLogsDir\":\"logs\"}", IC "pod logs path \"logs\" must be absolute path" },
		{ "{\"podLogsDir\":\"/var/\"}", IC "pod logs path \"/var/\" must be normalized" },
#undef IC
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct val v, changes = parse(&a, rows[i].change);
		CHECK_INT(config_set_defaults(&a, VAL_EMPTY_OBJECT, false, &v, &err), 0);
		VAL_EACH_MEMBER(m, changes) {
			VAL_EACH_MEMBER(inner, m->val)
				v = val_put(&a, v, m->key, val_put(&a, val_member(v, m->key), inner->key, inner->val));
			if (!val_is(m->val, VAL_OBJECT))
				v = val_put(&a, v, m->key, m->val);
		}
		(void)config_check(v, true, &err);
		CHECK_STR_ROW(i, err_str(&err), rows[i].want);
	}
}

TEST(kubelet_config_cgroup_version)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val v;

	CHECK_INT(config_set_defaults(&a, VAL_EMPTY_OBJECT, false, &v, NULL), 0);
	CHECK_INT(config_check(v, false, &err), -ERR_INVALID);
	CHECK_STR(err_str(&err), "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a "
		  "future release");
	v = val_with(&a, v, val_of_bool(false), failCgroupV1);
	CHECK_INT(config_check(v, false, NULL), 0);
	CHECK_INT(config_check(val_with(&a, v, val_of_bool(false), singleProcessOOMKill), false, NULL), -ERR_INVALID);
}

TEST(kubelet_config_gates)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val all = parse(&a, "{\"featureGates\":{\"AllAlpha\":true,\"AllBeta\":false,\"GracefulNodeShutdown\":true}}");

	CHECK(!config_gate(VAL_EMPTY, STR("MemoryQoS")));
	CHECK(config_gate(VAL_EMPTY, STR("GracefulNodeShutdown")));
	CHECK(!config_gate(VAL_EMPTY, STR("NoSuchGate")));
	CHECK(config_gate(all, STR("MemoryQoS")));
	CHECK(config_gate(all, STR("GracefulNodeShutdown")));
	CHECK(!config_gate(all, STR("GracefulNodeShutdownBasedOnPodPriority")));
	CHECK(config_gate(all, STR("NodeSwap")));
	CHECK_INT(config_duration_ns(VAL_LIT("1m30s")), INT64_C(90000000000));
	CHECK_INT(config_duration_ns(VAL_EMPTY), 0);
}
