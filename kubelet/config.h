/*
 * config: what a kubelet is told: flags and KubeletConfiguration files (with drop-in folders), with the defaults of 1.36.
 *
 *	config.c             files and flags put together    config_defaults.c    what nobody said
 *	config_check.c       what is refused, with Kubernetes' messages
 *	config_gates.c       feature gates
 *
 * Two things differ from Kubernetes' kubelet. Without --config the defaults are those of an empty file, not the ones of old that let
 * everybody in. And containerRuntimeEndpoint has no default: none means the runtime inside this process.
 */
#ifndef C8S_KUBELET_CONFIG_H
#define C8S_KUBELET_CONFIG_H

#include "codec/val.h"

/* Texts and trees live as long as the kubelet. */
struct kubelet_options {
	/* Flags that are no part of the configuration. NULL: not given. */
	const char *kubeconfig, *bootstrap_kubeconfig;   /* kubeconfig NULL: standalone, static pods only */
	const char *api_servers_file;                    /* client_config's servers_file */
	const char *cert_dir;                            /* /var/lib/kubelet/pki */
	const char *root;                                /* --root-dir: /var/lib/kubelet */
	const char *hostname_override, *node_ip;         /* node_ip: one, or two of both families with a comma */
	struct val node_labels;                          /* map */
	const char *image_credential_provider_config, *image_credential_provider_bin_dir;
	const char *local_path_root;                     /* local_path.h; NULL: nothing is removed */
	/* What collect.h keeps of dead containers. */
	int dead_per_container, dead_total;              /* 1; -1: any number */
	int64_t dead_min_age_ns;
	/* The runtime in this process instead of containerRuntimeEndpoint; NULL: none. Set by who runs both. */
	struct runtime *inside;
	/* kubelet.config.k8s.io/v1beta1.KubeletConfiguration, complete: files, then flags, then defaults; typed and frozen. */
	struct frozen *config;
};

/*
 * Reads the file of --config (NULL: none) and those of --config-dir (*.conf in the order of names, merged over it), lays `flags`
 * (KubeletConfiguration of those flags that are given; VAL_NONE: none) over them, fills in the defaults, checks. Blocks.
 */
int kubelet_config_load(const char *file, const char *folder, struct val flags, struct frozen **ret, struct err *err);
/* Durations of the configuration ("10s", "5m0s") as nanoseconds; 0 for none. They have been checked. */
int64_t config_duration_ns(struct val text);
/* Whether a feature gate of Kubernetes is on: as the configuration says, else as in 1.36. Unknown ones are off. */
bool config_gate(struct val config, str name);

#endif
