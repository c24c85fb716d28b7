/*
 * All flags of kubelet 1.36, and ours. Most of Kubernetes' stand for fields of KubeletConfiguration; one list makes both their rows in the
 * table of flags and the table that says which field it is.
 */
#include "cmd/kubelet.h"

#define AT(member) FLAG_WORKS, offsetof(struct kubelet_flags, member)
#define TUNING FLAG_TUNING, 0
#define LATER FLAG_LATER, 0
#define REFUSED FLAG_REFUSED, 0

/* X(type, flag, field, kind of pairs, effect, default, help) */
#define SETTINGS(X) \
	X(TEXT, "address", "address", EQUAL, WORKS, "0.0.0.0", "address that the server listens on; 0.0.0.0 or :: is all") \
	X(TEXT, "allowed-unsafe-sysctls", "allowedUnsafeSysctls", EQUAL, WORKS, NULL, "unsafe sysctls that pods may set; * at the end stands for anything") \
	X(BOOL, "anonymous-auth", "authentication.anonymous.enabled", EQUAL, WORKS, "false", "let callers without credentials in, as system:anonymous") \
	X(BOOL, "authentication-token-webhook", "authentication.webhook.enabled", EQUAL, WORKS, "true", "ask the API server about tokens") \
	X(TEXT, "authentication-token-webhook-cache-ttl", "authentication.webhook.cacheTTL", EQUAL, WORKS, "2m0s", "how long its answers are kept") \
	X(TEXT, "authorization-mode", "authorization.mode", EQUAL, WORKS, "Webhook", "AlwaysAllow, or Webhook to ask the API server") \
	X(TEXT, "authorization-webhook-cache-authorized-ttl", "authorization.webhook.cacheAuthorizedTTL", EQUAL, WORKS, "5m0s", "how long a yes is kept") \
	X(TEXT, "authorization-webhook-cache-unauthorized-ttl", "authorization.webhook.cacheUnauthorizedTTL", EQUAL, WORKS, "30s", "how long a no is kept") \
	X(TEXT, "cgroup-driver", "cgroupDriver", EQUAL, WORKS, "cgroupfs", "cgroupfs or systemd; what the runtime says wins") \
	X(TEXT, "cgroup-root", "cgroupRoot", EQUAL, WORKS, NULL, "control group that those of pods are made in") \
	X(BOOL, "cgroups-per-qos", "cgroupsPerQOS", EQUAL, WORKS, "true", "a control group for each quality of service and each pod") \
	X(TEXT, "client-ca-file", "authentication.x509.clientCAFile", EQUAL, WORKS, NULL, "authorities of client certificates") \
	X(TEXT, "cluster-dns", "clusterDNS", EQUAL, WORKS, NULL, "addresses of the cluster's DNS servers") \
	X(TEXT, "cluster-domain", "clusterDomain", EQUAL, WORKS, NULL, "DNS domain of the cluster") \
	X(TEXT, "container-log-max-files", "containerLogMaxFiles", EQUAL, WORKS, "5", "log files kept for a container, at least 2") \
	X(TEXT, "container-log-max-size", "containerLogMaxSize", EQUAL, WORKS, "10Mi", "size at which a log is rotated") \
	X(TEXT, "container-runtime-endpoint", "containerRuntimeEndpoint", EQUAL, WORKS, NULL, "socket of the container runtime: unix:///path; none: the one in this program") \
	X(BOOL, "contention-profiling", "enableContentionProfiling", EQUAL, TUNING, "false", "profile waiting for locks") \
	X(BOOL, "cpu-cfs-quota", "cpuCFSQuota", EQUAL, WORKS, "true", "enforce CPU limits") \
	X(TEXT, "cpu-cfs-quota-period", "cpuCFSQuotaPeriod", EQUAL, WORKS, "100ms", "period that CPU limits are enforced in") \
	X(TEXT, "cpu-manager-policy", "cpuManagerPolicy", EQUAL, LATER, "none", "none, or static to give whole CPUs to guaranteed pods") \
	X(TEXT, "cpu-manager-policy-options", "cpuManagerPolicyOptions", ONE, LATER, NULL, "KEY=VALUE: a setting of that policy") \
	X(TEXT, "cpu-manager-reconcile-period", "cpuManagerReconcilePeriod", EQUAL, TUNING, "10s", "time between two looks at CPU assignments") \
	X(BOOL, "enable-controller-attach-detach", "enableControllerAttachDetach", EQUAL, TUNING, "true", "volumes are attached by the controller") \
	X(BOOL, "enable-debugging-handlers", "enableDebuggingHandlers", EQUAL, WORKS, "true", "serve logs, exec, attach and port-forward") \
	X(BOOL, "enable-server", "enableServer", EQUAL, WORKS, "true", "run the kubelet's server") \
	X(TEXT, "enforce-node-allocatable", "enforceNodeAllocatable", EQUAL, WORKS, "pods", "what is enforced: none, or of pods, system-reserved, kube-reserved, and these with -compressible") \
	X(TEXT, "event-burst", "eventBurst", EQUAL, WORKS, "100", "events in a short burst") \
	X(TEXT, "event-qps", "eventRecordQPS", EQUAL, WORKS, "50", "events per second; 0: no limit") \
	X(TEXT, "eviction-hard", "evictionHard", LESS, WORKS, "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%", "thresholds at which pods are evicted at once") \
	X(TEXT, "eviction-max-pod-grace-period", "evictionMaxPodGracePeriod", EQUAL, WORKS, "0", "most seconds that a pod gets in a soft eviction; below 0: what it says") \
	X(TEXT, "eviction-minimum-reclaim", "evictionMinimumReclaim", EQUAL, WORKS, NULL, "least that an eviction frees, by signal") \
	X(TEXT, "eviction-pressure-transition-period", "evictionPressureTransitionPeriod", EQUAL, WORKS, "5m0s", "how long a node stays under pressure after the signal is gone") \
	X(TEXT, "eviction-soft", "evictionSoft", LESS, WORKS, NULL, "thresholds at which pods are evicted after a while") \
	X(TEXT, "eviction-soft-grace-period", "evictionSoftGracePeriod", EQUAL, WORKS, NULL, "that while, by signal") \
	X(BOOL, "fail-cgroupv1", "failCgroupV1", EQUAL, WORKS, "true", "do not start on a machine with control groups of version 1") \
	X(BOOL, "fail-swap-on", "failSwapOn", EQUAL, WORKS, "true", "do not start on a machine that swaps") \
	X(TEXT, "feature-gates", "featureGates", EQUAL, WORKS, NULL, "features to switch on or off: A=true,B=false") \
	X(TEXT, "file-check-frequency", "fileCheckFrequency", EQUAL, WORKS, "20s", "time between two looks at files of static pods") \
	X(TEXT, "hairpin-mode", "hairpinMode", EQUAL, TUNING, "promiscuous-bridge", "how a pod reaches itself through a service; the network plugin's matter") \
	X(TEXT, "healthz-bind-address", "healthzBindAddress", EQUAL, WORKS, "127.0.0.1", "address of the health check") \
	X(TEXT, "healthz-port", "healthzPort", EQUAL, WORKS, "10248", "port of the health check; 0: none") \
	X(TEXT, "http-check-frequency", "httpCheckFrequency", EQUAL, WORKS, "20s", "time between two looks at the URL of static pods") \
	X(TEXT, "image-gc-high-threshold", "imageGCHighThresholdPercent", EQUAL, WORKS, "85", "percent of the disk at which images start to be removed") \
	X(TEXT, "image-gc-low-threshold", "imageGCLowThresholdPercent", EQUAL, WORKS, "80", "percent of the disk down to which images are removed") \
	X(TEXT, "image-service-endpoint", "imageServiceEndpoint", EQUAL, WORKS, NULL, "socket of the image service; that of the runtime unless given") \
	X(BOOL, "kernel-memcg-notification", "kernelMemcgNotification", EQUAL, TUNING, "false", "let the kernel tell about memory thresholds") \
	X(TEXT, "kube-api-burst", "kubeAPIBurst", EQUAL, WORKS, "100", "requests to the API server in a short burst") \
	X(TEXT, "kube-api-content-type", "contentType", EQUAL, TUNING, "application/vnd.kubernetes.protobuf", "media type of requests to the API server") \
	X(TEXT, "kube-api-qps", "kubeAPIQPS", EQUAL, WORKS, "50", "requests per second to the API server") \
	X(TEXT, "kube-reserved", "kubeReserved", EQUAL, WORKS, NULL, "resources kept for the kubelet and the runtime: cpu=200m,memory=500Mi") \
	X(TEXT, "kube-reserved-cgroup", "kubeReservedCgroup", EQUAL, LATER, NULL, "control group that --kube-reserved is enforced on") \
	X(TEXT, "kubelet-cgroups", "kubeletCgroups", EQUAL, LATER, NULL, "control group for the kubelet") \
	X(BOOL, "local-storage-capacity-isolation", "localStorageCapacityIsolation", EQUAL, WORKS, "true", "count and limit local storage of pods") \
	X(TEXT, "log-flush-frequency", "logging.flushFrequency", EQUAL, TUNING, "5s", "longest time that lines of the log wait") \
	X(TEXT, "log-json-info-buffer-size", "logging.options.json.infoBufferSize", EQUAL, TUNING, "0", "buffer of the log in format json") \
	X(BOOL, "log-json-split-stream", "logging.options.json.splitStream", EQUAL, REFUSED, "false", "errors to standard error, the rest to standard output") \
	X(TEXT, "log-text-info-buffer-size", "logging.options.text.infoBufferSize", EQUAL, TUNING, "0", "the same in format text") \
	X(BOOL, "log-text-split-stream", "logging.options.text.splitStream", EQUAL, REFUSED, "false", "the same in format text") \
	X(TEXT, "logging-format", "logging.format", EQUAL, WORKS, "text", "text or json") \
	X(BOOL, "make-iptables-util-chains", "makeIPTablesUtilChains", EQUAL, TUNING, "true", "make some iptables chains that other programs look for") \
	X(TEXT, "manifest-url", "staticPodURL", EQUAL, WORKS, NULL, "URL with static pods") \
	X(TEXT, "manifest-url-header", "staticPodURLHeader", COLON, WORKS, NULL, "HTTP headers for that URL: a:hello,b:again") \
	X(TEXT, "max-open-files", "maxOpenFiles", EQUAL, WORKS, "1000000", "files that the kubelet can have open") \
	X(TEXT, "max-pods", "maxPods", EQUAL, WORKS, "110", "greatest number of pods on the node") \
	X(TEXT, "memory-manager-policy", "memoryManagerPolicy", EQUAL, LATER, "None", "None or Static") \
	X(TEXT, "minimum-image-ttl-duration", "imageMinimumGCAge", EQUAL, WORKS, "2m0s", "age below which unused images are kept") \
	X(TEXT, "node-status-max-images", "nodeStatusMaxImages", EQUAL, WORKS, "50", "images listed in the node's status; -1: all") \
	X(TEXT, "node-status-update-frequency", "nodeStatusUpdateFrequency", EQUAL, WORKS, "10s", "how often the state of the node is computed") \
	X(TEXT, "oom-score-adj", "oomScoreAdj", EQUAL, WORKS, "-999", "score of the kubelet for the OOM killer") \
	X(TEXT, "pod-cidr", "podCIDR", EQUAL, LATER, NULL, "network of pods when there is no API server") \
	X(TEXT, "pod-manifest-path", "staticPodPath", EQUAL, WORKS, NULL, "file or folder with static pods") \
	X(TEXT, "pod-max-pids", "podPidsLimit", EQUAL, WORKS, "-1", "greatest number of processes in a pod; -1: what the node has") \
	X(TEXT, "pods-per-core", "podsPerCore", EQUAL, WORKS, "0", "greatest number of pods for each core; 0: no limit") \
	X(TEXT, "port", "port", EQUAL, WORKS, "10250", "port of the server") \
	X(BOOL, "protect-kernel-defaults", "protectKernelDefaults", EQUAL, LATER, "false", "fail instead of changing kernel settings") \
	X(TEXT, "provider-id", "providerID", EQUAL, WORKS, NULL, "id of the node that a cloud provider knows it by") \
	X(TEXT, "qos-reserved", "qosReserved", EQUAL, LATER, NULL, "part of memory requests kept from lower classes: memory=50%") \
	X(TEXT, "read-only-port", "readOnlyPort", EQUAL, WORKS, "0", "port of a server without authentication; 0: none") \
	X(BOOL, "register-node", "registerNode", EQUAL, WORKS, "true", "register the node with the API server") \
	X(TEXT, "register-with-taints", "registerWithTaints", EQUAL, WORKS, NULL, "taints the node registers with: key=value:effect,...") \
	X(TEXT, "registry-burst", "registryBurst", EQUAL, WORKS, "10", "image pulls in a short burst") \
	X(TEXT, "registry-qps", "registryPullQPS", EQUAL, WORKS, "5", "image pulls per second; 0: no limit") \
	X(TEXT, "reserved-cpus", "reservedSystemCPUs", EQUAL, WORKS, NULL, "CPUs kept for the system: 0-3,5") \
	X(TEXT, "reserved-memory", "reservedMemory", EQUAL, LATER, NULL, "memory kept on NUMA nodes: 0:memory=1Gi,hugepages-1Gi=2Gi") \
	X(TEXT, "resolv-conf", "resolvConf", EQUAL, WORKS, "/etc/resolv.conf", "resolver file that pods get their settings from") \
	X(BOOL, "rotate-certificates", "rotateCertificates", EQUAL, WORKS, "false", "get a new client certificate before the old one expires") \
	X(BOOL, "rotate-server-certificates", "serverTLSBootstrap", EQUAL, WORKS, "false", "get the server's certificate from the cluster") \
	X(BOOL, "runonce", "runOnce", EQUAL, REFUSED, "false", "no longer supported") \
	X(TEXT, "runtime-request-timeout", "runtimeRequestTimeout", EQUAL, WORKS, "2m0s", "how long calls of the container runtime may take, except long ones") \
	X(BOOL, "serialize-image-pulls", "serializeImagePulls", EQUAL, WORKS, "true", "pull one image at a time") \
	X(TEXT, "streaming-connection-idle-timeout", "streamingConnectionIdleTimeout", EQUAL, WORKS, "4h0m0s", "when idle streams are closed; 0: never") \
	X(TEXT, "sync-frequency", "syncFrequency", EQUAL, WORKS, "1m0s", "longest time between two looks at a pod") \
	X(TEXT, "system-cgroups", "systemCgroups", EQUAL, LATER, NULL, "control group for other processes that are in none") \
	X(TEXT, "system-reserved", "systemReserved", EQUAL, WORKS, NULL, "resources kept for the system: cpu=200m,memory=500Mi") \
	X(TEXT, "system-reserved-cgroup", "systemReservedCgroup", EQUAL, LATER, NULL, "control group that --system-reserved is enforced on") \
	X(TEXT, "tls-cert-file", "tlsCertFile", EQUAL, WORKS, NULL, "file with the server's certificate; made in --cert-dir unless given") \
	X(TEXT, "tls-cipher-suites", "tlsCipherSuites", EQUAL, WORKS, NULL, "cipher suites of the server") \
	X(TEXT, "tls-min-version", "tlsMinVersion", EQUAL, WORKS, NULL, "lowest version of TLS: VersionTLS12 or VersionTLS13") \
	X(TEXT, "tls-private-key-file", "tlsPrivateKeyFile", EQUAL, WORKS, NULL, "file with the key of --tls-cert-file") \
	X(TEXT, "topology-manager-policy", "topologyManagerPolicy", EQUAL, LATER, "none", "none, best-effort, restricted or single-numa-node") \
	X(TEXT, "topology-manager-policy-options", "topologyManagerPolicyOptions", EQUAL, LATER, NULL, "settings of that policy: a=b,c=d") \
	X(TEXT, "topology-manager-scope", "topologyManagerScope", EQUAL, LATER, "container", "container or pod") \
	X(TEXT, "v", "logging.verbosity", EQUAL, WORKS, "0", "4 and more: everything") \
	X(TEXT, "vmodule", "logging.vmodule", EQUAL, TUNING, NULL, "verbosity by source file: pattern=N,...") \
	X(TEXT, "volume-plugin-dir", "volumePluginDir", EQUAL, LATER, "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/", "folder with executable volume plugins") \
	X(TEXT, "volume-stats-agg-period", "volumeStatsAggPeriod", EQUAL, WORKS, "1m0s", "time between two measurements of volumes; below 0: none")

#define TYPE_TEXT FLAG_SETTING
#define TYPE_BOOL FLAG_SETTING_BOOL
#define SETTING_ROW(type, name, field, pairs, effect, initial, help) \
	{ name, TYPE_##type, FLAG_##effect, offsetof(struct kubelet_flags, settings), initial, help },
#define SETTING_FIELD(type, name, field, pairs, effect, initial, help) { name, field, PAIRS_##pairs },

const struct flag_field kubelet_fields[] = { SETTINGS(SETTING_FIELD) { NULL, NULL, PAIRS_EQUAL } };

const struct flag kubelet_flags[] = {
	FLAG_GROUP("Kubelet"),
	{ "api-servers-file", FLAG_STRING, AT(api_servers_file), NULL, "file with URLs of further API servers, one per line, for when that of --kubeconfig cannot be reached" },
	{ "bootstrap-kubeconfig", FLAG_STRING, AT(bootstrap_kubeconfig), NULL, "kubeconfig to get a client certificate with, when the file of --kubeconfig is not there yet" },
	{ "cert-dir", FLAG_STRING, AT(cert_dir), "/var/lib/kubelet/pki", "where keys and certificates are kept that are made" },
	{ "cloud-provider", FLAG_STRING, LATER, NULL, "external: a controller of the cloud completes the node" },
	{ "config", FLAG_STRING, AT(config), NULL, "file with KubeletConfiguration" },
	{ "config-dir", FLAG_STRING, AT(config_dir), NULL, "folder whose *.conf are merged over that, in the order of names" },
	{ "exit-on-lock-contention", FLAG_BOOL, AT(exit_on_lock_contention), "false", "stop when somebody else opens the file of --lock-file" },
	{ "hostname-override", FLAG_STRING, AT(hostname_override), NULL, "name of the node, instead of that of the host" },
	{ "image-credential-provider-bin-dir", FLAG_STRING, AT(image_credential_provider_bin_dir), NULL, "folder with programs that get credentials for images" },
	{ "image-credential-provider-config", FLAG_STRING, AT(image_credential_provider_config), NULL, "file, or folder of files, with CredentialProviderConfig" },
	{ "kubeconfig", FLAG_STRING, AT(kubeconfig), NULL, "how to reach the API server; none: static pods only" },
	{ "local-path-root", FLAG_STRING, AT(local_path_root), NULL, "folder of volumes of the class local-path; those that are gone are removed from it" },
	{ "lock-file", FLAG_STRING, AT(lock_file), NULL, "file that only one kubelet at a time holds" },
	{ "node-ip", FLAG_STRING, AT(node_ip), NULL, "address of the node, or one of each family with a comma; :: prefers IPv6" },
	{ "node-labels", FLAG_LIST, AT(node_labels), NULL, "labels that the node registers with: a=b,c=d" },
	{ "root-dir", FLAG_STRING, AT(root_dir), "/var/lib/kubelet", "where volumes and the kubelet's state are" },
	{ "runtime-cgroups", FLAG_STRING, LATER, NULL, "control group of the runtime" },
	{ "seccomp-default", FLAG_BOOL, AT(seccomp_default), "false", "containers without a seccomp profile get RuntimeDefault" },
	{ "version", FLAG_BOOL, AT(version), "false", "print the version and quit" },
	{ "maximum-dead-containers", FLAG_INT, AT(dead_total), "-1", "dead containers kept on the node; below 0: any number; deprecated" },
	{ "maximum-dead-containers-per-container", FLAG_INT, AT(dead_per_container), "1", "dead ones kept of each container; deprecated" },
	{ "minimum-container-ttl-duration", FLAG_DURATION, AT(dead_min_age_ns), "0s", "age below which dead containers are kept; deprecated" },
	{ "experimental-allocatable-ignore-eviction", FLAG_BOOL, REFUSED, "false", "leave thresholds of evictions out of what is allocatable; deprecated" },
	{ "experimental-mounter-path", FLAG_STRING, REFUSED, NULL, "another program to mount with; deprecated" },

	FLAG_GROUP("Built-in runtime, used when there is no --container-runtime-endpoint"),
	RUNTIME_FLAGS("runtime-", offsetof(struct kubelet_flags, runtime)),
	RUNTIME_NETWORK_FLAGS("runtime-", offsetof(struct kubelet_flags, runtime)),
	{ "pod-routes", FLAG_BOOL, AT(pod_routes), "false", "keep routes (VXLAN beyond the link) to the pods of all nodes; the user of --kubeconfig has to be allowed to list nodes" },

	FLAG_GROUP("Fields of KubeletConfiguration; flags win over files"),
	SETTINGS(SETTING_ROW)

	FLAG_GROUP("Of cAdvisor, which c8s does not contain"),
	{ "application-metrics-count-limit", FLAG_INT, TUNING, "100", "metrics of an application" },
	{ "boot-id-file", FLAG_STRING, TUNING, "/proc/sys/kernel/random/boot_id", "files with the boot id" },
	{ "container-hints", FLAG_STRING, TUNING, "/etc/cadvisor/container_hints.json", "file with hints about containers" },
	{ "containerd", FLAG_STRING, TUNING, "/run/containerd/containerd.sock", "socket of containerd" },
	{ "containerd-namespace", FLAG_STRING, TUNING, "k8s.io", "namespace in containerd" },
	{ "enable-load-reader", FLAG_BOOL, TUNING, "false", "read the load of processors" },
	{ "event-storage-age-limit", FLAG_STRING, TUNING, "default=0", "how long events are kept" },
	{ "event-storage-event-limit", FLAG_STRING, TUNING, "default=0", "how many events are kept" },
	{ "global-housekeeping-interval", FLAG_DURATION, TUNING, "1m0s", "time between two looks at all" },
	{ "housekeeping-interval", FLAG_DURATION, TUNING, "10s", "time between two looks at containers" },
	{ "log-cadvisor-usage", FLAG_BOOL, TUNING, "false", "log its own usage" },
	{ "machine-id-file", FLAG_STRING, TUNING, "/etc/machine-id,/var/lib/dbus/machine-id", "files with the machine id" },
	{ "storage-driver-buffer-duration", FLAG_DURATION, TUNING, "1m0s", "how long figures are kept before they are written" },
	{ "storage-driver-db", FLAG_STRING, TUNING, "cadvisor", "name of the database" },
	{ "storage-driver-host", FLAG_STRING, TUNING, "localhost:8086", "host of the database" },
	{ "storage-driver-password", FLAG_STRING, TUNING, "root", "password for the database" },
	{ "storage-driver-secure", FLAG_BOOL, TUNING, "false", "secure connection to the database" },
	{ "storage-driver-table", FLAG_STRING, TUNING, "stats", "table of the database" },
	{ "storage-driver-user", FLAG_STRING, TUNING, "root", "user of the database" },
	{ 0 },
};
