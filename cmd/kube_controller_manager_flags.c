/* All flags of kube-controller-manager 1.36, and ours; and what they come to. */
#include "cmd/kube_controller_manager.h"

#include "base/clock.h"
#include "base/log.h"
#include "cmd/flags_component.h"

#define AT(member) FLAG_WORKS, offsetof(struct controller_manager_flags, member)
#define WORKERS(name, initial, what) { name, FLAG_INT, TUNING, initial, what " at a time" }

const struct flag controller_manager_flags[] = {
	FLAG_GROUP("Generic"),
	{ "kubeconfig", FLAG_STRING, AT(kubeconfig), NULL, "how to reach the API server; none: as a pod does" },
	{ "master", FLAG_STRING, AT(master), NULL, "URL of the API server, instead of that in --kubeconfig" },
	{ "kube-api-burst", FLAG_INT, AT(burst), "30", "requests to the API server in a short burst" },
	{ "kube-api-content-type", FLAG_STRING, TUNING, "application/vnd.kubernetes.protobuf", "media type of requests to the API server" },
	{ "kube-api-qps", FLAG_FLOAT, AT(qps), "20", "requests per second to the API server, for each controller" },
	{ "allocate-node-cidrs", FLAG_BOOL, AT(allocate_node_cidrs), "false", "give every node a network for its pods; needs --cluster-cidr" },
	{ "cidr-allocator-type", FLAG_STRING, REFUSED, "RangeAllocator", "how these are given" },
	{ "cloud-config", FLAG_STRING, LATER, NULL, "configuration of a cloud provider; deprecated" },
	{ "cloud-provider", FLAG_STRING, LATER, NULL, "external, or none" },
	{ "cluster-cidr", FLAG_STRING, AT(cluster_cidr), NULL, "network of all pods, or one of each family with a comma" },
	{ "cluster-name", FLAG_STRING, AT(cluster_name), "kubernetes", "name of the cluster" },
	{ "configure-cloud-routes", FLAG_BOOL, TUNING, "true", "make routes at the cloud provider" },
	{ "controller-shutdown-timeout", FLAG_DURATION, TUNING, "10s", "how long controllers may take to stop" },
	{ "controller-start-interval", FLAG_DURATION, TUNING, "0s", "time between the starts of two controllers" },
	{ "controllers", FLAG_LIST, AT(controllers), "*", "controllers to run: * all that are on by default, foo, -foo" },
	{ "external-cloud-volume-plugin", FLAG_STRING, REFUSED, NULL, "volumes of a cloud provider" },
	{ "min-resync-period", FLAG_DURATION, TUNING, "12h0m0s", "time after which everything is looked at again" },
	{ "node-monitor-period", FLAG_DURATION, AT(monitor_period_ns), "5s", "time between two looks at the health of nodes" },
	{ "node-sync-period", FLAG_DURATION, TUNING, "0s", "no longer used" },
	{ "route-reconciliation-period", FLAG_DURATION, TUNING, "10s", "time between two looks at routes of a cloud provider" },
	{ "use-service-account-credentials", FLAG_BOOL, AT(use_accounts), "false", "an identity of its own for each controller" },
	{ "allow-untagged-cloud", FLAG_BOOL, TUNING, "false", "no longer used" },

	FLAG_GROUP("Leader election"),
	{ "leader-elect", FLAG_BOOL, AT(elect), "true", "become the leader before working, where there are several" },
	{ "leader-elect-lease-duration", FLAG_DURATION, AT(lease_ns), "15s", "how long others wait after the leader was last seen" },
	{ "leader-elect-renew-deadline", FLAG_DURATION, AT(renew_ns), "10s", "how long the leader tries to renew before it gives up" },
	{ "leader-elect-resource-lock", FLAG_STRING, AT(lock), "leases", "kind of object that is the lock: leases" },
	{ "leader-elect-resource-name", FLAG_STRING, AT(lock_name), "kube-controller-manager", "its name" },
	{ "leader-elect-resource-namespace", FLAG_STRING, AT(lock_namespace), "kube-system", "its namespace" },
	{ "leader-elect-retry-period", FLAG_DURATION, AT(retry_ns), "2s", "time between two tries" },
	{ "enable-leader-migration", FLAG_BOOL, REFUSED, "false", "move controllers between managers" },
	{ "leader-migration-config", FLAG_STRING, REFUSED, NULL, "file that says which" },

	COMPONENT_SERVER_FLAGS(struct controller_manager_flags, "10257"),

	FLAG_GROUP("Nodes"),
	{ "large-cluster-size-threshold", FLAG_INT, AT(large_cluster_size), "50", "nodes from which a zone counts as large" },
	{ "node-cidr-mask-size", FLAG_INT, AT(node_mask), "0", "mask of a node's network; 24, or 64 of IPv6, unless given" },
	{ "node-cidr-mask-size-ipv4", FLAG_INT, AT(node_mask_v4), "0", "the same of IPv4" },
	{ "node-cidr-mask-size-ipv6", FLAG_INT, AT(node_mask_v6), "0", "the same of IPv6" },
	{ "node-eviction-rate", FLAG_FLOAT, AT(eviction_rate), "0.1", "failed nodes per second whose pods are deleted" },
	{ "node-monitor-grace-period", FLAG_DURATION, AT(monitor_grace_ns), "50s", "silence after which a node counts as failed" },
	{ "node-startup-grace-period", FLAG_DURATION, AT(startup_grace_ns), "1m0s", "the same for one that has just begun" },
	{ "secondary-node-eviction-rate", FLAG_FLOAT, AT(secondary_eviction_rate), "0.01", "that rate in a zone that is not healthy" },
	{ "service-cluster-ip-range", FLAG_STRING, AT(service_cidr), NULL, "network of services, which no node gets" },
	{ "unhealthy-zone-threshold", FLAG_FLOAT, AT(unhealthy_zone), "0.55", "part of a zone's nodes that make it not healthy" },

	FLAG_GROUP("Certificates and service accounts"),
	{ "cluster-signing-cert-file", FLAG_STRING, AT(signing.cert), NULL, "certificate of the authority that signs requests" },
	{ "cluster-signing-duration", FLAG_DURATION, AT(signing_ns), "8760h0m0s", "longest life of what it signs" },
	{ "cluster-signing-key-file", FLAG_STRING, AT(signing.key), NULL, "its key" },
	{ "cluster-signing-kube-apiserver-client-cert-file", FLAG_STRING, AT(signing_of[SIGNER_CLIENT].cert), NULL, "another one for kubernetes.io/kube-apiserver-client" },
	{ "cluster-signing-kube-apiserver-client-key-file", FLAG_STRING, AT(signing_of[SIGNER_CLIENT].key), NULL, "its key" },
	{ "cluster-signing-kubelet-client-cert-file", FLAG_STRING, AT(signing_of[SIGNER_KUBELET_CLIENT].cert), NULL, "another one for kubernetes.io/kube-apiserver-client-kubelet" },
	{ "cluster-signing-kubelet-client-key-file", FLAG_STRING, AT(signing_of[SIGNER_KUBELET_CLIENT].key), NULL, "its key" },
	{ "cluster-signing-kubelet-serving-cert-file", FLAG_STRING, AT(signing_of[SIGNER_KUBELET_SERVING].cert), NULL, "another one for kubernetes.io/kubelet-serving" },
	{ "cluster-signing-kubelet-serving-key-file", FLAG_STRING, AT(signing_of[SIGNER_KUBELET_SERVING].key), NULL, "its key" },
	{ "cluster-signing-legacy-unknown-cert-file", FLAG_STRING, AT(signing_of[SIGNER_LEGACY].cert), NULL, "another one for kubernetes.io/legacy-unknown" },
	{ "cluster-signing-legacy-unknown-key-file", FLAG_STRING, AT(signing_of[SIGNER_LEGACY].key), NULL, "its key" },
	{ "legacy-service-account-token-clean-up-period", FLAG_DURATION, AT(legacy_token_ns), "8760h0m0s", "age at which unused tokens in secrets go" },
	{ "root-ca-file", FLAG_STRING, AT(root_ca_file), NULL, "authorities that pods trust: kube-root-ca.crt" },
	{ "service-account-private-key-file", FLAG_STRING, AT(account_key_file), NULL, "key that signs tokens in secrets" },

	FLAG_GROUP("Other controllers"),
	{ "attach-detach-reconcile-sync-period", FLAG_DURATION, TUNING, "1m0s", "time between two looks at attached volumes" },
	{ "disable-attach-detach-reconcile-sync", FLAG_BOOL, TUNING, "false", "do not look at them" },
	{ "disable-force-detach-on-timeout", FLAG_BOOL, TUNING, "false", "never detach volumes by force" },
	{ "enable-dynamic-provisioning", FLAG_BOOL, TUNING, "true", "make volumes for claims" },
	{ "enable-garbage-collector", FLAG_BOOL, REFUSED, "true", "remove what has lost its owner" },
	{ "enable-hostpath-provisioner", FLAG_BOOL, TUNING, "false", "make volumes of host paths, for tests" },
	{ "endpoint-updates-batch-period", FLAG_DURATION, TUNING, "0s", "how long changes of endpoints are gathered" },
	{ "endpointslice-updates-batch-period", FLAG_DURATION, TUNING, "0s", "the same of endpoint slices" },
	{ "flex-volume-plugin-dir", FLAG_STRING, TUNING, "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/", "folder with executable volume plugins" },
	{ "horizontal-pod-autoscaler-cpu-initialization-period", FLAG_DURATION, TUNING, "5m0s", "first time of a pod in which its CPU does not count" },
	{ "horizontal-pod-autoscaler-downscale-stabilization", FLAG_DURATION, TUNING, "5m0s", "time looked back at before scaling down" },
	{ "horizontal-pod-autoscaler-initial-readiness-delay", FLAG_DURATION, TUNING, "30s", "first time in which readiness comes and goes" },
	{ "horizontal-pod-autoscaler-sync-period", FLAG_DURATION, TUNING, "15s", "time between two looks" },
	{ "horizontal-pod-autoscaler-tolerance", FLAG_FLOAT, TUNING, "0.1", "least change that counts" },
	{ "max-endpoints-per-slice", FLAG_INT, TUNING, "100", "endpoints in a slice" },
	{ "mirroring-endpointslice-updates-batch-period", FLAG_DURATION, TUNING, "0s", "how long changes of mirrored endpoints are gathered" },
	{ "mirroring-max-endpoints-per-subset", FLAG_INT, TUNING, "1000", "endpoints mirrored of a subset" },
	{ "namespace-sync-period", FLAG_DURATION, TUNING, "5m0s", "time between two looks at namespaces" },
	{ "pv-recycler-increment-timeout-nfs", FLAG_INT, TUNING, "30", "seconds for each Gi of a recycled NFS volume" },
	{ "pv-recycler-minimum-timeout-hostpath", FLAG_INT, TUNING, "60", "least seconds to recycle a host path" },
	{ "pv-recycler-minimum-timeout-nfs", FLAG_INT, TUNING, "300", "least seconds to recycle an NFS volume" },
	{ "pv-recycler-pod-template-filepath-hostpath", FLAG_STRING, TUNING, NULL, "pod that recycles a host path" },
	{ "pv-recycler-pod-template-filepath-nfs", FLAG_STRING, TUNING, NULL, "pod that recycles an NFS volume" },
	{ "pv-recycler-timeout-increment-hostpath", FLAG_INT, TUNING, "30", "seconds for each Gi of a recycled host path" },
	{ "pvclaimbinder-sync-period", FLAG_DURATION, TUNING, "15s", "time between two looks at volumes and claims" },
	{ "resource-quota-sync-period", FLAG_DURATION, TUNING, "5m0s", "time between two looks at quotas" },
	{ "terminated-pod-gc-threshold", FLAG_INT, AT(terminated_pods), "12500", "ended pods that are kept; 0 or less: all" },
	{ "local-path-root", FLAG_STRING, AT(provisioner_root), NULL, "folder on nodes in which volumes of the class local-path are made; none: no such class" },

	FLAG_GROUP("Accepted, without effect: all of it is done by one thread"),
	WORKERS("concurrent-cron-job-syncs", "5", "cron jobs"),
	WORKERS("concurrent-daemonset-syncs", "2", "daemon sets"),
	WORKERS("concurrent-deployment-syncs", "5", "deployments"),
	WORKERS("concurrent-device-taint-eviction-syncs", "8", "evictions by device taints"),
	WORKERS("concurrent-endpoint-syncs", "5", "endpoints"),
	WORKERS("concurrent-ephemeralvolume-syncs", "5", "ephemeral volumes"),
	WORKERS("concurrent-gc-syncs", "20", "objects to remove"),
	WORKERS("concurrent-horizontal-pod-autoscaler-syncs", "5", "autoscalers"),
	WORKERS("concurrent-job-syncs", "5", "jobs"),
	WORKERS("concurrent-namespace-syncs", "10", "namespaces"),
	WORKERS("concurrent-replicaset-syncs", "5", "replica sets"),
	WORKERS("concurrent-resource-quota-syncs", "5", "quotas"),
	WORKERS("concurrent-resourceclaim-syncs", "50", "resource claims"),
	WORKERS("concurrent-service-endpoint-syncs", "5", "services"),
	WORKERS("concurrent-service-syncs", "1", "load balancers"),
	WORKERS("concurrent-serviceaccount-token-syncs", "5", "tokens"),
	WORKERS("concurrent-statefulset-syncs", "5", "stateful sets"),
	WORKERS("concurrent-ttl-after-finished-syncs", "5", "finished jobs"),
	WORKERS("concurrent-validating-admission-policy-status-syncs", "5", "admission policies"),
	WORKERS("concurrent_rc_syncs", "5", "replication controllers"),
	WORKERS("mirroring-concurrent-service-endpoint-syncs", "5", "mirrored endpoints"),

	FLAG_GROUP("Debugging"),
	{ "contention-profiling", FLAG_BOOL, TUNING, "false", "profile waiting for locks" },
	{ "profiling", FLAG_BOOL, TUNING, "true", "serve profiles" },

	FLAG_GROUP("Feature gate"),
	EMULATION_FLAGS,
	{ "feature-gates", FLAG_LIST, AT(feature_gates), NULL, "features to switch on or off: A=true,B=false" },

	METRICS_FLAGS,

	LOGS_FLAGS(AT(log_format), AT(verbosity)),

	FLAG_GROUP("Global"),
	{ "version", FLAG_BOOL, AT(version), "false", "print the version and quit" },
	{ 0 },
};

/* ---- what they come to ---- */

enum { MASK_MAX = 128 };

static const char *unless_empty(const char *text) { return text && text[0] ? text : NULL; }

static struct signing_files files_of(struct signing_files f) { return (struct signing_files){ unless_empty(f.cert), unless_empty(f.key) }; }

/* One authority for all signers, or one of its own for each that signs. */
static int check_signing(const struct command *c, const struct controller_manager_flags *f)
{
	/* As Kubernetes calls them here. */
	static const char *const names[] = { [SIGNER_KUBELET_SERVING] = "cluster-signing-kubelet-serving",
		[SIGNER_KUBELET_CLIENT] = "cluster-signing-kube-apiserver-client", [SIGNER_CLIENT] = "cluster-signing-kube-apiserver",
		[SIGNER_LEGACY] = "cluster-signing-legacy-unknown" };
	struct signing_files all = files_of(f->signing);

	for (size_t i = 0; i < SIGNER_MAX; i++) {
		struct signing_files own = files_of(f->signing_of[i]);
		if (!own.cert != !own.key)
			return cmd_usage(c, "\"%s\": cannot specify %s", names[i], own.cert ? "cert without key" : "key without cert");
		if (own.cert && (all.cert || all.key))
			return cmd_usage(c, "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time");
	}
	if (!all.cert != !all.key)
		return cmd_usage(c, "--cluster-signing-cert-file and --cluster-signing-key-file go together");
	return 0;
}

static int check(const struct command *c, const struct controller_manager_flags *f)
{
	for (const char *const *e = f->controllers; *e; e++)
		if (strcmp(*e, "*") != 0 && !controllers_knows(*e + ((*e)[0] == '-')))
			return cmd_usage(c, "\"%s\" is not in the list of known controllers", *e + ((*e)[0] == '-'));
	if (f->server.secure_port < 0 || f->server.secure_port > UINT16_MAX)
		return cmd_usage(c, "--secure-port %lld must be between 0 and 65535, inclusive. 0 for turning off secure port",
				 (long long)f->server.secure_port);
	if (f->allocate_node_cidrs && !unless_empty(f->cluster_cidr))
		return cmd_usage(c, "--allocate-node-cidrs needs --cluster-cidr");
	if (f->node_mask && (f->node_mask_v4 || f->node_mask_v6))
		return cmd_usage(c, "usage of --node-cidr-mask-size is not allowed with --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6");
	if (f->elect && strcmp(f->lock, "leases") != 0)
		return cmd_usage(c, "--leader-elect-resource-lock: Invalid lock-type %s", f->lock);
	return check_signing(c, f);
}

static int mask_of(int64_t given, int64_t general)
{
	int64_t mask = given ? given : general;
	return mask < 0 || mask > MASK_MAX ? MASK_MAX : (int)mask;
}

/* Zero is the default in the options: where it says something, -1 does. */
static int number_of(int64_t n) { return n > 0 ? (int)MIN(n, (int64_t)INT32_MAX) : -1; }
static double rate_of(double r) { return r > 0 ? r : -1; }

/* One of them does something here. */
static int read_gates(const struct command *c, struct controller_manager_flags *f)
{
	for (const char *const *g = f->feature_gates; *g; g++) {
		str name, value;
		bool on;
		if (!str_cut(str_of(*g), '=', &name, &value) || !flag_parse_bool(value, &on))
			return cmd_usage(c, "invalid argument \"%s\" for \"--feature-gates\" flag: missing bool value for " STR_FMT, *g, STR_ARG(name));
		if (str_eq(name, STR("ControllerManagerReleaseLeaderElectionLockOnExit")))
			f->release = on;
		else
			log_warn("the feature gate has no effect", KV("gate", name));
	}
	return 0;
}

int controller_manager_complete(const struct command *c, struct controller_manager_flags *f, struct controllers_options *ret)
{
	int r = check(c, f);

	if (r != 0 || (r = read_gates(c, f)) != 0)
		return r;
	*ret = (struct controllers_options){
		.enabled = f->controllers, .cluster_name = f->cluster_name, .root_ca_file = unless_empty(f->root_ca_file),
		.signing = files_of(f->signing),
		.service_account_key_file = unless_empty(f->account_key_file), .legacy_token_s = f->legacy_token_ns / NS_PER_S,
		.signing_duration_s = f->signing_ns / NS_PER_S, .cluster_cidr = unless_empty(f->cluster_cidr),
		.service_cidr = unless_empty(f->service_cidr), .node_mask_v4 = mask_of(f->node_mask_v4, f->node_mask),
		.node_mask_v6 = mask_of(f->node_mask_v6, f->node_mask), .allocate_node_cidrs = f->allocate_node_cidrs,
		.node_monitor_period_ms = f->monitor_period_ns / NS_PER_MS, .node_monitor_grace_ms = f->monitor_grace_ns / NS_PER_MS,
		.node_startup_grace_ms = f->startup_grace_ns / NS_PER_MS, .node_eviction_rate = rate_of(f->eviction_rate),
		.secondary_node_eviction_rate = rate_of(f->secondary_eviction_rate), .large_cluster_size = number_of(f->large_cluster_size),
		.unhealthy_zone_threshold = f->unhealthy_zone, .terminated_pod_gc_threshold = number_of(f->terminated_pods),
		.provisioner_root = unless_empty(f->provisioner_root),
	};
	for (size_t i = 0; i < SIGNER_MAX; i++)
		ret->signing_of[i] = files_of(f->signing_of[i]);
	return 0;
}
