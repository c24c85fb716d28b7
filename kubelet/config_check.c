/*
 * What is wrong with a configuration, in Kubernetes' words and order. Durations and numbers have been read by their types before; here
 * is what they may be, and what goes together. Gates that cannot be switched off in 1.36 are not asked.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/go.h"
#include "kubelet/config_priv.h"
#include "machinery/field_error.h"
#include "machinery/image_name.h"
#include "machinery/names.h"
#include "machinery/resources.h"

enum { USER_IDS = 65536, SAMPLING_MAX = 1000000 };

void config_error(struct config_errors *e, const char *fmt, ...)
{
	va_list ap;

	if (e->n == CONFIG_ERRORS_MAX)
		return;
	va_start(ap, fmt);
	e->text[e->n++] = arena_vprintf(e->arena, fmt, ap);
	va_end(ap);
}

#define WRONG(e, fmt, ...) config_error(e, "invalid configuration: " fmt, ##__VA_ARGS__)

static const char *quoted(struct config_errors *e, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);

	buf_add_quoted(&b, text);
	return arena_str(e->arena, buf_str(&b)).p;
}

static const char *duration(struct config_errors *e, struct val text)
{
	char out[DURATION_TEXT_MAX];

	return arena_str(e->arena, duration_format(config_duration_ns(text), out)).p;
}

static const char *number(struct config_errors *e, double d)
{
	char out[GO_FLOAT_MAX];

	return arena_str(e->arena, go_format_float(d, false, GO_FLOAT_G, out)).p;
}

static bool is_one_of(str text, const char *const *words)
{
	for (; *words; words++)
		if (str_eq(text, str_of(*words)))
			return true;
	return false;
}

/* ---- numbers ---- */

struct range {
	atom field;
	int64_t low, high;
	const char *name, *must;
};

#define NOT_NEGATIVE(field, name) { A_##field, 0, INT64_MAX, name, "must not be a negative number" }

static void check_range(struct config_errors *e, struct val c, const struct range *r)
{
	int64_t i = val_as_int(val_member(c, r->field));

	if (i < r->low || i > r->high)
		WRONG(e, "%s %" PRId64 " %s", r->name, i, r->must);
}

#define CHECK_RANGES(e, c, ...)                                                                    \
	do {                                                                                       \
		static const struct range ranges_[] = { __VA_ARGS__ };                             \
		for (size_t i_ = 0; i_ < ARRAY_LEN(ranges_); i_++)                                 \
			check_range(e, c, &ranges_[i_]);                                           \
	} while (0)

static void check_quota_period(struct config_errors *e, struct val c)
{
	struct val period = val_get(c, cpuCFSQuotaPeriod);
	int64_t ns = config_duration_ns(period);
	bool gate = config_gate(c, STR("CustomCPUCFSQuotaPeriod"));

	if (!gate && ns != 100 * NS_PER_MS)
		WRONG(e, "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) %s requires feature gate CustomCPUCFSQuotaPeriod", duration(e, period));
	if (gate && (ns < NS_PER_MS || ns > NS_PER_S))
		WRONG(e, "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) %s must be between 1ms and 1sec, inclusive", duration(e, period));
}

static void check_images(struct config_errors *e, struct val c)
{
	int64_t high = val_int(c, imageGCHighThresholdPercent), low = val_int(c, imageGCLowThresholdPercent);
	struct val least = val_get(c, imageMinimumGCAge), most = val_get(c, imageMaximumGCAge);
	int64_t least_ns = config_duration_ns(least), most_ns = config_duration_ns(most);

	CHECK_RANGES(e, c,
		{ A_imageGCHighThresholdPercent, 0, 100, "imageGCHighThresholdPercent (--image-gc-high-threshold)", "must be between 0 and 100, inclusive" },
		{ A_imageGCLowThresholdPercent, 0, 100, "imageGCLowThresholdPercent (--image-gc-low-threshold)", "must be between 0 and 100, inclusive" });
	if (low >= high)
		WRONG(e, "imageGCLowThresholdPercent (--image-gc-low-threshold) %" PRId64 " must be less than imageGCHighThresholdPercent "
		      "(--image-gc-high-threshold) %" PRId64, low, high);
	if (least_ns < 0)
		WRONG(e, "imageMinimumGCAge %s must not be negative", duration(e, least));
	if (most_ns < 0)
		WRONG(e, "imageMaximumGCAge %s must not be negative", duration(e, most));
	if (most_ns > 0 && most_ns <= least_ns)
		WRONG(e, "imageMaximumGCAge %s must be greater than imageMinimumGCAge %s", duration(e, most), duration(e, least));
}

static void check_numbers(struct config_errors *e, struct val c)
{
	if (val_int(c, nodeLeaseDurationSeconds) <= 0)
		WRONG(e, "nodeLeaseDurationSeconds must be greater than 0");
	if (val_str(c, systemCgroups).n && !val_str(c, cgroupRoot).n)
		WRONG(e, "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified");
	CHECK_RANGES(e, c,
		NOT_NEGATIVE(eventBurst, "eventBurst (--event-burst)"),
		NOT_NEGATIVE(eventRecordQPS, "eventRecordQPS (--event-qps)"),
		{ A_healthzPort, 0, 65535, "healthzPort (--healthz-port)", "must be between 1 and 65535, inclusive" });
	check_quota_period(e, c);
	check_images(e, c);
	CHECK_RANGES(e, c,
		{ A_iptablesDropBit, 0, 31, "iptablesDropBit (--iptables-drop-bit)", "must be between 0 and 31, inclusive" },
		{ A_iptablesMasqueradeBit, 0, 31, "iptablesMasqueradeBit (--iptables-masquerade-bit)", "must be between 0 and 31, inclusive" },
		NOT_NEGATIVE(kubeAPIBurst, "kubeAPIBurst (--kube-api-burst)"),
		NOT_NEGATIVE(kubeAPIQPS, "kubeAPIQPS (--kube-api-qps)"),
		{ A_nodeStatusMaxImages, -1, INT64_MAX, "nodeStatusMaxImages (--node-status-max-images)", "must be -1 or greater" },
		NOT_NEGATIVE(maxOpenFiles, "maxOpenFiles (--max-open-files)"),
		NOT_NEGATIVE(maxPods, "maxPods (--max-pods)"),
		{ A_oomScoreAdj, -1000, 1000, "oomScoreAdj (--oom-score-adj)", "must be between -1000 and 1000, inclusive" },
		NOT_NEGATIVE(podsPerCore, "podsPerCore (--pods-per-core)"),
		{ A_port, 1, 65535, "port (--port)", "must be between 1 and 65535, inclusive" },
		{ A_readOnlyPort, 0, 65535, "readOnlyPort (--read-only-port)", "must be between 0 and 65535, inclusive" },
		NOT_NEGATIVE(registryBurst, "registryBurst (--registry-burst)"),
		NOT_NEGATIVE(registryPullQPS, "registryPullQPS (--registry-qps)"));
}

static void check_pulls(struct config_errors *e, struct val c)
{
	struct val most = val_get(c, maxParallelImagePulls);

	if (val_exists(most) && most.i < 1)
		WRONG(e, "maxParallelImagePulls %" PRId64 " must be a positive number", most.i);
	if (val_bool(c, serializeImagePulls) && val_as_int(most) > 1)
		WRONG(e, "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false");
	if (val_bool(c, serverTLSBootstrap) && !config_gate(c, STR("RotateKubeletServerCertificate")))
		WRONG(e, "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate");
	if (val_bool(c, runOnce))
		WRONG(e, "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set");
}

/* ---- words ---- */

static void check_taints(struct config_errors *e, struct val c)
{
	static const char *const effects[] = { "", "NoSchedule", "PreferNoSchedule", "NoExecute", NULL };
	struct name_errors ignored;

	VAL_EACH(t, val_get(c, registerWithTaints)) {
		str key = val_str(*t, key), value = val_str(*t, value), effect = val_str(*t, effect);
		if (name_check_label_key(key, &ignored) || (value.n && name_check_label_value(value, &ignored)) || !is_one_of(effect, effects))
			config_error(e, "invalid taint: {" STR_FMT " " STR_FMT " " STR_FMT " %s}", STR_ARG(key), STR_ARG(value), STR_ARG(effect),
				     val_has(*t, timeAdded) ? val_str(*t, timeAdded).p : "<nil>");
		if (val_has(*t, timeAdded))
			WRONG(e, "taint.TimeAdded is not nil");
	}
}

static void check_topology(struct config_errors *e, struct val c)
{
	static const char *const policies[] = { "none", "best-effort", "restricted", "single-numa-node", NULL };
	static const char *const scopes[] = { "container", "pod", NULL };

	if (!is_one_of(val_str(c, topologyManagerPolicy), policies))
		WRONG(e, "topologyManagerPolicy (--topology-manager-policy) %s must be one of: [\"none\" \"best-effort\" \"restricted\" "
		      "\"single-numa-node\"]", quoted(e, val_str(c, topologyManagerPolicy)));
	if (!is_one_of(val_str(c, topologyManagerScope), scopes))
		WRONG(e, "topologyManagerScope (--topology-manager-scope) %s must be one of: \"container\", or \"pod\"",
		      quoted(e, val_str(c, topologyManagerScope)));
}

static bool is_short(int64_t ns) { return ns < 0 || (ns > 0 && ns < NS_PER_S); }

static void check_shutdown(struct config_errors *e, struct val c)
{
	struct val all = val_get(c, shutdownGracePeriod), critical = val_get(c, shutdownGracePeriodCriticalPods);
	int64_t all_ns = config_duration_ns(all), critical_ns = config_duration_ns(critical);
	bool gate = config_gate(c, STR("GracefulNodeShutdown")), by_priority = config_gate(c, STR("GracefulNodeShutdownBasedOnPodPriority"));
	bool given = all_ns > 0 || critical_ns > 0, priorities = val_len(val_get(c, shutdownGracePeriodByPodPriority));

	if (gate && critical_ns > all_ns)
		WRONG(e, "shutdownGracePeriodCriticalPods %s must be <= shutdownGracePeriod %s", duration(e, critical), duration(e, all));
	if (gate && is_short(all_ns))
		WRONG(e, "shutdownGracePeriod %s must be either zero or otherwise >= 1 sec", duration(e, all));
	if (gate && is_short(critical_ns))
		WRONG(e, "shutdownGracePeriodCriticalPods %s must be either zero or otherwise >= 1 sec", duration(e, critical));
	if (!gate && given)
		WRONG(e, "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown");
	if (by_priority && priorities && given)
		WRONG(e, "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time");
	if (!by_priority && priorities)
		WRONG(e, "Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority");
}

static void check_restarts(struct config_errors *e, struct val c)
{
	static const char *const behaviours[] = { "", "NoSwap", "LimitedSwap", NULL };
	struct val most = val_get(c, crashLoopBackOff, maxContainerRestartPeriod);
	int64_t ns = config_duration_ns(most);
	bool gate = config_gate(c, STR("KubeletCrashLoopBackOffMax"));

	if (!is_one_of(val_str(c, memorySwap, swapBehavior), behaviours))
		WRONG(e, "memorySwap.swapBehavior %s must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"",
		      quoted(e, val_str(c, memorySwap, swapBehavior)));
	if (gate && !val_exists(most))
		WRONG(e, "FeatureGate KubeletCrashLoopBackOffMax is enabled, CrashLoopBackOff.MaxContainerRestartPeriod must be set");
	else if (gate && (ns / NS_PER_MS < 1000 || ns / NS_PER_MS > 300000))
		WRONG(e, "CrashLoopBackOff.MaxContainerRestartPeriod (got: %s seconds) must be set between 1s and 300s",
		      number(e, (double)ns / (double)NS_PER_S));
	else if (!gate && val_exists(most))
		WRONG(e, "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set");
}

/* ---- what of the node is enforced ---- */

static bool list_has(struct val list, size_t n, str word)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(val_as_str(val_at(list, i)), word))
			return true;
	return false;
}

static void check_exclusive(struct config_errors *e, struct val list, const char *plain, const char *compressible)
{
	if (list_has(list, val_len(list), str_of(plain)) && list_has(list, val_len(list), str_of(compressible)))
		WRONG(e, "both \"%s\" and \"%s\" cannot be specified together in enforceNodeAllocatable (--enforce-node-allocatable)", plain,
		      compressible);
}

/* One word of the list; whether it is one that needs cgroupsPerQOS. */
static bool check_enforcement(struct config_errors *e, struct val c, str word)
{
	static const char *const system[] = { "system-reserved", "system-reserved-compressible", NULL };
	static const char *const kube[] = { "kube-reserved", "kube-reserved-compressible", NULL };

	if (str_eq(word, STR("pods")))
		return true;
	if (is_one_of(word, system) && !val_str(c, systemReservedCgroup).n)
		WRONG(e, "systemReservedCgroup (--system-reserved-cgroup) must be specified when \"system-reserved\" or "
		      "\"system-reserved-compressible\" included in enforceNodeAllocatable (--enforce-node-allocatable)");
	if (is_one_of(word, kube) && !val_str(c, kubeReservedCgroup).n)
		WRONG(e, "kubeReservedCgroup (--kube-reserved-cgroup) must be specified when \"kube-reserved\" or "
		      "\"kube-reserved-compressible\" included in enforceNodeAllocatable (--enforce-node-allocatable)");
	if (is_one_of(word, system) || is_one_of(word, kube))
		return true;
	if (!str_eq(word, STR("none")))
		WRONG(e, "option %s specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are \"pods\", "
		      "\"system-reserved\", \"system-reserved-compressible\", \"kube-reserved\", \"kube-reserved-compressible\" or \"none\"",
		      quoted(e, word));
	else if (val_len(val_get(c, enforceNodeAllocatable)) > 1)
		WRONG(e, "enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when \"none\" is specified");
	return false;
}

static void check_allocatable(struct config_errors *e, struct val c)
{
	struct val list = val_get(c, enforceNodeAllocatable);

	check_exclusive(e, list, "system-reserved", "system-reserved-compressible");
	check_exclusive(e, list, "kube-reserved", "kube-reserved-compressible");
	for (size_t i = 0; i < val_len(list); i++) {
		str word = val_as_str(val_at(list, i));
		if (list_has(list, i, word))
			WRONG(e, "duplicated enforcements %s in enforceNodeAllocatable (--enforce-node-allocatable)", quoted(e, word));
		else if (check_enforcement(e, c, word) && !val_bool(c, cgroupsPerQOS))
			WRONG(e, "cgroupsPerQOS (--cgroups-per-qos) must be set to true when %s contained in enforceNodeAllocatable "
			      "(--enforce-node-allocatable)", quoted(e, word));
	}
}

/* ---- images that need no proof ---- */

/* NULL, or what is wrong with a pattern: a registry or path with a * at its end, or an image without tag and digest. */
static const char *pattern_error(struct config_errors *e, str pattern)
{
	bool wild = str_ends(pattern, STR("/*"));
	str name = wild ? str_head(pattern, pattern.n - 1) : pattern;
	struct image_name image;
	const char *wrong = NULL;

	if (str_trim(pattern).n != pattern.n)
		wrong = "leading/trailing spaces are not allowed";
	else if (!name.n)
		wrong = "the supplied pattern is too short";
	else if (str_chr(name, '*') >= 0)
		wrong = "not a valid wildcard pattern, only patterns ending with '/*' are allowed";
	else if (wild && name.n == 1)
		return "at least registry hostname is required";
	else if (wild)
		return NULL;
	else if (!image_name_parse(name, &image))
		return "failed to parse as an image name: invalid reference format";
	else if (image.tag.n || image.digest.n)
		wrong = "neither tag nor digest is accepted in an image reference";
	return wrong ? arena_printf(e->arena, "%s: " STR_FMT, wrong, STR_ARG(pattern)).p : NULL;
}

static void check_allowed_images(struct config_errors *e, struct val list)
{
	VAL_EACH(p, list) {
		const char *wrong = pattern_error(e, val_as_str(*p));
		if (wrong) {
			WRONG(e, "invalid image pattern in `preloadedImagesVerificationAllowlist`: %s", wrong);
			return;
		}
	}
}

static void check_verification(struct config_errors *e, struct val c)
{
	static const char *const policies[] = { "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify", NULL };
	str policy = val_str(c, imagePullCredentialsVerificationPolicy);
	struct val allowed = val_get(c, preloadedImagesVerificationAllowlist);

	if (config_gate(c, STR("KubeletEnsureSecretPulledImages"))) {
		if (!is_one_of(policy, policies))
			WRONG(e, "option %s specified for imagePullCredentialsVerificationPolicy. Valid options are \"NeverVerify\", "
			      "\"NeverVerifyPreloadedImages\", \"NeverVerifyAllowlistedImages\" or \"AlwaysVerify\"", quoted(e, policy));
		if (val_len(allowed) && !str_eq(policy, STR("NeverVerifyAllowlistedImages")))
			WRONG(e, "can't set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is not "
			      "\"NeverVerifyAllowlistedImages\"");
		else
			check_allowed_images(e, allowed);
		return;
	}
	if (policy.n)
		WRONG(e, "`imagePullCredentialsVerificationPolicy` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled");
	if (val_len(allowed))
		WRONG(e, "`preloadedImagesVerificationAllowlist` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled");
}

/* ---- processors and memory ---- */

/* NULL, or what is wrong with "0-5,34". */
static const char *cpus_error(struct config_errors *e, str list)
{
	for (bool more = true; more;) {
		str range, first, last;
		int64_t from, to;
		more = str_cut(list, ',', &range, &list);
		bool two = str_cut(range, '-', &first, &last);
		str bad = !str_to_i64(first, &from) ? first : two && !str_to_i64(last, &to) ? last : STR_NONE;
		if (bad.p)
			return arena_printf(e->arena, "strconv.Atoi: parsing %s: invalid syntax", quoted(e, bad)).p;
		if (two && from > to)
			return arena_printf(e->arena, "invalid range %s (%" PRId64 " > %" PRId64 ")", quoted(e, range), from, to).p;
	}
	return NULL;
}

static void check_cpus(struct config_errors *e, struct val c)
{
	str cpus = val_str(c, reservedSystemCPUs);

	if (!cpus.n)
		return;
	if (val_str(c, systemReservedCgroup).n || val_str(c, kubeReservedCgroup).n)
		WRONG(e, "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or "
		      "kubeReservedCgroup (--kube-reserved-cgroup)");
	const char *wrong = cpus_error(e, cpus);
	if (wrong)
		WRONG(e, "unable to parse reservedSystemCPUs (--reserved-cpus) " STR_FMT ", error: %s", STR_ARG(cpus), wrong);
}

static bool is_reserved_before(struct val list, size_t n, int64_t node, atom resource)
{
	for (size_t i = 0; i < n; i++)
		if (val_int(val_at(list, i), numaNode) == node && val_exists(val_member(val_get(val_at(list, i), limits), resource)))
			return true;
	return false;
}

static void check_memory(struct config_errors *e, struct val c)
{
	struct val list = val_get(c, reservedMemory);

	for (size_t i = 0; i < val_len(list); i++) {
		int64_t node = val_int(val_at(list, i), numaNode);
		VAL_EACH_MEMBER(m, val_get(val_at(list, i), limits)) {
			str name = atom_str(m->key);
			if (!resource_is_huge_page(name) && !str_eq(name, STR("memory")))
				WRONG(e, "the limit type %s for NUMA node %" PRId64 " is not supported, only [memory hugepages-<HugePageSize>] is "
				      "accepted", quoted(e, name), node);
			if (quantity_of(m->val).nanos == 0)
				WRONG(e, "reserved memory may not be zero for NUMA node %" PRId64 " and resource %s", node, quoted(e, name));
			if (is_reserved_before(list, i, node, m->key))
				WRONG(e, "the reserved memory has a duplicate value for NUMA node %" PRId64 " and resource %s", node, quoted(e, name));
		}
	}
}

/* ---- the machine ---- */

static void check_machine(struct config_errors *e, struct val c, bool unified)
{
	struct val single = val_get(c, singleProcessOOMKill), ids = val_get(c, userNamespaces, idsPerPod);

	if (!unified && val_bool(c, failCgroupV1))
		config_error(e, "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed "
			     "in a future release");
	else if (!unified && val_is(single, VAL_BOOL) && !single.b)
		WRONG(e, "singleProcessOOMKill must not be explicitly set to false when using cgroup v1");
	else if (!val_exists(ids))
		return;
	else if (ids.i < USER_IDS)
		WRONG(e, "userNamespaces.idsPerPod must not be less than %d", USER_IDS);
	else if (ids.i % USER_IDS)
		WRONG(e, "userNamespaces.idsPerPod must be a multiple of %d", USER_IDS);
	else if (ids.i > UINT32_MAX)
		WRONG(e, "userNamespaces.idsPerPod must not be more than %" PRIu32, UINT32_MAX);
}

/* ---- logs and traces: errors of fields ---- */

static void check_format(struct field_errors *f, const struct field_path *at, struct val c, struct val logging)
{
	static const char *const formats[] = { "text", "json", NULL };
	str format = val_str(logging, format);

	if (!is_one_of(format, formats))
		field_invalid(f, FIELD(at, "format"), VAL_STR(format), "Unsupported log format");
	else if (str_eq(format, STR("json")) && !config_gate(c, STR("LoggingBetaOptions")))
		field_forbidden(f, FIELD(at, "format"), "Log format json is disabled, see LoggingBetaOptions feature");
}

static void check_routing(struct field_errors *f, const struct field_path *at, struct val routing)
{
	if (val_bool(routing, splitStream))
		field_forbidden(f, FIELD(at, "splitStream"), "Feature LoggingAlphaOptions is disabled");
	if (quantity_value(quantity_of(val_get(routing, infoBufferSize))) != 0)
		field_forbidden(f, FIELD(at, "infoBufferSize"), "Feature LoggingAlphaOptions is disabled");
}

static void check_verbosity(struct field_errors *f, const struct field_path *at, int64_t level)
{
	if (level > INT32_MAX)
		field_invalid(f, at, val_of_int(level), "Must be <= %d", INT32_MAX);
}

static void check_modules(struct field_errors *f, const struct field_path *at, struct val logging)
{
	struct val modules = val_get(logging, vmodule);

	if (val_len(modules) && !str_eq(val_str(logging, format), STR("text")))
		field_forbidden(f, at, "Only supported for text log format");
	for (size_t i = 0; i < val_len(modules); i++) {
		str pattern = val_str(val_at(modules, i), filePattern);
		if (!pattern.n)
			field_required(f, FIELD_INDEX(at, i), "File pattern must not be empty");
		if (str_chr(pattern, '=') >= 0 || str_chr(pattern, ',') >= 0)
			field_invalid(f, FIELD_INDEX(at, i), VAL_STR(pattern), "File pattern must not contain equal sign or comma");
		check_verbosity(f, FIELD_INDEX(at, i), val_int(val_at(modules, i), verbosity));
	}
}

static void check_logging(struct field_errors *f, struct val c)
{
	const struct field_path *at = FIELD(NULL, "logging"), *options = FIELD(at, "options");
	struct val logging = val_get(c, logging);
	int64_t flush = config_duration_ns(val_get(logging, flushFrequency, Duration));

	if (flush <= 0)
		field_error_add(f, FIELD_ERROR_INVALID, FIELD(at, "flushFrequency"), FIELD_VALUE_OMITTED,
				"v1.TimeOrMetaDuration{Duration:v1.Duration{Duration:%" PRId64 "}, SerializeAsString:true}: "
				"Must be greater than zero", flush);
	check_format(f, at, c, logging);
	check_verbosity(f, FIELD(at, "verbosity"), val_int(logging, verbosity));
	check_modules(f, FIELD(at, "vmodule"), logging);
	if (config_gate(c, STR("LoggingAlphaOptions")))
		return;
	check_routing(f, FIELD(options, "text"), val_get(logging, options, text));
	check_routing(f, FIELD(options, "json"), val_get(logging, options, json));
}

static void check_tracing(struct field_errors *f, struct val c)
{
	static const char *const schemes[] = { "dns", "unix", "unix-abstract", NULL };
	const struct field_path *at = FIELD(NULL, "tracing");
	struct val tracing = val_get(c, tracing), rate = val_get(tracing, samplingRatePerMillion), endpoint = val_get(tracing, endpoint);
	str scheme, rest;

	if (val_as_int(rate) < 0)
		field_invalid(f, FIELD(at, "samplingRatePerMillion"), rate, "sampling rate must be positive");
	if (val_as_int(rate) > SAMPLING_MAX)
		field_invalid(f, FIELD(at, "samplingRatePerMillion"), rate, "sampling rate per million must be less than or equal to one million");
	if (!val_exists(endpoint) || str_find(val_as_str(endpoint), STR("//")) < 0)
		return;
	(void)str_cut(val_as_str(endpoint), ':', &scheme, &rest);
	if (!is_one_of(scheme, schemes))
		field_invalid(f, FIELD(at, "endpoint"), endpoint, "unsupported scheme: " STR_FMT ".  Options are none, dns, unix, or "
			      "unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md", STR_ARG(scheme));
}

static void check_fields(struct config_errors *e, struct val c)
{
	static const char previous[] = "1.35";
	struct field_errors f;
	str hidden = val_str(c, showHiddenMetricsForVersion);

	if (hidden.n && !str_eq(hidden, str_of(previous)))
		config_error(e, "invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: %s: must be omitted or have the "
			     "value '%s'; only the previous minor version is allowed", quoted(e, hidden), previous);
	field_errors_init(&f, e->arena);
	check_logging(&f, c);
	check_tracing(&f, c);
	for (size_t i = 0; i < f.n; i++)
		config_error(e, STR_FMT ": " STR_FMT, STR_ARG(f.list[i].field), STR_ARG(f.list[i].body));
}

/* ---- the rest ---- */

static void check_memory_quality(struct config_errors *e, struct val c)
{
	static const char *const policies[] = { "None", "TieredReservation", NULL };
	struct val factor = val_get(c, memoryThrottlingFactor);
	str policy = val_str(c, memoryReservationPolicy);
	bool gate = config_gate(c, STR("MemoryQoS"));
	double d = val_as_double(factor);

	if (gate && !val_exists(factor))
		WRONG(e, "memoryThrottlingFactor is required when MemoryQoS feature flag is enabled");
	if (val_exists(factor) && (d <= 0 || d > 1))
		WRONG(e, "memoryThrottlingFactor %s must be greater than 0 and less than or equal to 1.0", number(e, d));
	if (!gate && str_eq(policy, STR("TieredReservation")))
		WRONG(e, "memoryReservationPolicy \"TieredReservation\" requires MemoryQoS feature gate to be enabled");
	if (!is_one_of(policy, policies))
		WRONG(e, "option %s specified for memoryReservationPolicy. Valid options are \"None\" or \"TieredReservation\"", quoted(e, policy));
}

static void check_logs(struct config_errors *e, struct val c)
{
	str dir = val_str(c, podLogsDir);

	if (val_bool(c, enableSystemLogQuery) && !val_bool(c, enableSystemLogHandler))
		WRONG(e, "enableSystemLogHandler is required for enableSystemLogQuery");
	if (val_int(c, containerLogMaxWorkers) < 1)
		WRONG(e, "containerLogMaxWorkers must be greater than or equal to 1");
	if (config_duration_ns(val_get(c, containerLogMonitorInterval)) < 3 * NS_PER_S)
		WRONG(e, "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s");
	if (val_int(c, containerLogMaxFiles) <= 1)
		WRONG(e, "containerLogMaxFiles must be greater than 1");
	if (!dir.n)
		WRONG(e, "podLogsDir was not specified");
	if (!dir.n || dir.p[0] != '/')
		WRONG(e, "pod logs path %s must be absolute path", quoted(e, dir));
	str rooted = dir.n && dir.p[0] == '/' ? dir : arena_join(e->arena, STR("/"), dir);
	if (!dir.n || !str_eq(path_clean(e->arena, rooted), rooted))
		WRONG(e, "pod logs path %s must be normalized", quoted(e, dir));
	for (size_t i = 0; i < dir.n; i++)
		if ((unsigned char)dir.p[i] > 127) {
			WRONG(e, "pod logs path %s mut contains ASCII characters only", quoted(e, dir));
			return;
		}
}

/* One as it is, several in brackets, equal ones once. */
static int fail(const struct config_errors *e, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);

	for (size_t i = 0; i < e->n; i++) {
		bool seen = false;
		for (size_t j = 0; j < i; j++)
			seen |= str_eq(e->text[i], e->text[j]);
		if (!seen)
			buf_addf(&b, "%s" STR_FMT, b.n ? ", " : "", STR_ARG(e->text[i]));
	}
	return err_set(err, ERR_INVALID, e->n > 1 ? "[" STR_FMT "]" : STR_FMT, STR_ARG(buf_str(&b)));
}

int config_check(struct val c, bool unified, struct err *err)
{
	static const char *const hairpins[] = { "none", "hairpin-veth", "promiscuous-bridge", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct config_errors *e = ARENA_NEW(&a, struct config_errors);

	e->arena = &a;
	config_check_gates(e, val_get(c, featureGates));
	if (e->n)
		return fail(e, err);
	check_numbers(e, c);
	check_pulls(e, c);
	check_taints(e, c);
	check_topology(e, c);
	check_shutdown(e, c);
	check_restarts(e, c);
	check_allocatable(e, c);
	if (!is_one_of(val_str(c, hairpinMode), hairpins))
		WRONG(e, "option %s specified for hairpinMode (--hairpin-mode). Valid options are \"none\", \"hairpin-veth\" or "
		      "\"promiscuous-bridge\"", quoted(e, val_str(c, hairpinMode)));
	check_verification(e, c);
	check_cpus(e, c);
	check_memory(e, c);
	check_machine(e, c, unified);
	check_fields(e, c);
	check_memory_quality(e, c);
	check_logs(e, c);
	return e->n ? fail(e, err) : 0;
}
