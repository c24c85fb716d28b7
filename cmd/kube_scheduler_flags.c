/* All flags of kube-scheduler 1.36, and ours. Some stand for fields of KubeSchedulerConfiguration. */
#include "cmd/kube_scheduler.h"

#include "cmd/flags_component.h"

#define AT(member) FLAG_WORKS, offsetof(struct kube_scheduler_flags, member)
#define SETTING FLAG_WORKS, offsetof(struct kube_scheduler_flags, settings)

const struct flag_field kube_scheduler_fields[] = {
	{ "contention-profiling", "enableContentionProfiling", PAIRS_EQUAL },
	{ "kube-api-burst", "clientConnection.burst", PAIRS_EQUAL },
	{ "kube-api-content-type", "clientConnection.contentType", PAIRS_EQUAL },
	{ "kube-api-qps", "clientConnection.qps", PAIRS_EQUAL },
	{ "kubeconfig", "clientConnection.kubeconfig", PAIRS_EQUAL },
	{ "leader-elect", "leaderElection.leaderElect", PAIRS_EQUAL },
	{ "leader-elect-lease-duration", "leaderElection.leaseDuration", PAIRS_EQUAL },
	{ "leader-elect-renew-deadline", "leaderElection.renewDeadline", PAIRS_EQUAL },
	{ "leader-elect-resource-lock", "leaderElection.resourceLock", PAIRS_EQUAL },
	{ "leader-elect-resource-name", "leaderElection.resourceName", PAIRS_EQUAL },
	{ "leader-elect-resource-namespace", "leaderElection.resourceNamespace", PAIRS_EQUAL },
	{ "leader-elect-retry-period", "leaderElection.retryPeriod", PAIRS_EQUAL },
	{ "profiling", "enableProfiling", PAIRS_EQUAL },
	{ NULL, NULL, PAIRS_EQUAL },
};

const struct flag kube_scheduler_flags[] = {
	FLAG_GROUP("c8s"),
	{ "seed", FLAG_INT, AT(seed), "0", "makes the choice between equal nodes repeatable; 0: by chance" },

	FLAG_GROUP("Misc"),
	{ "config", FLAG_STRING, AT(config), NULL, "file with KubeSchedulerConfiguration" },
	{ "master", FLAG_STRING, AT(master), NULL, "address of the API server; wins over the kubeconfig" },
	{ "write-config-to", FLAG_STRING, AT(write_config_to), NULL, "write the configuration in force to this file and quit" },

	COMPONENT_SERVER_FLAGS(struct kube_scheduler_flags, "10259"),

	FLAG_GROUP("Deprecated"),
	{ "contention-profiling", FLAG_SETTING_BOOL, SETTING, "true", "profile waiting for locks; not with --config" },
	{ "kube-api-burst", FLAG_SETTING, SETTING, "100", "requests to the API server in a short burst; not with --config" },
	{ "kube-api-content-type", FLAG_SETTING, SETTING, "application/vnd.kubernetes.protobuf", "media type of requests to the API server; not with --config" },
	{ "kube-api-qps", FLAG_SETTING, SETTING, "50", "requests per second to the API server; not with --config" },
	{ "kubeconfig", FLAG_SETTING, SETTING, NULL, "kubeconfig of the scheduler; not with --config" },
	{ "pod-max-in-unschedulable-pods-duration", FLAG_DURATION, AT(unschedulable_max_ns), "5m0s", "how long a pod that fits nowhere waits for events before it is tried again" },
	{ "profiling", FLAG_SETTING_BOOL, SETTING, "true", "serve profiles; not with --config" },

	FLAG_GROUP("Leader election"),
	{ "leader-elect", FLAG_SETTING_BOOL, SETTING, "true", "become the leader before working, where there are several" },
	{ "leader-elect-lease-duration", FLAG_SETTING, SETTING, "15s", "how long others wait after the leader was last seen" },
	{ "leader-elect-renew-deadline", FLAG_SETTING, SETTING, "10s", "how long the leader tries to renew before it gives up" },
	{ "leader-elect-resource-lock", FLAG_SETTING, SETTING, "leases", "kind of object that is the lock: leases" },
	{ "leader-elect-resource-name", FLAG_SETTING, SETTING, "kube-scheduler", "its name" },
	{ "leader-elect-resource-namespace", FLAG_SETTING, SETTING, "kube-system", "its namespace" },
	{ "leader-elect-retry-period", FLAG_SETTING, SETTING, "2s", "time between two tries" },

	FLAG_GROUP("Feature gate"),
	EMULATION_FLAGS,
	{ "feature-gates", FLAG_LIST, AT(feature_gates), NULL, "features to switch on or off: A=true,B=false" },

	METRICS_FLAGS,

	LOGS_FLAGS(AT(logging_format), AT(verbosity)),

	FLAG_GROUP("Global"),
	{ "version", FLAG_BOOL, AT(version), "false", "print the version and quit" },
	{ 0 },
};
