/* Between the files of the kubelet command. */
#ifndef C8S_CMD_KUBELET_H
#define C8S_CMD_KUBELET_H

#include "cmd/flags_config.h"
#include "cmd/runtime_flags.h"
#include "kubelet/config.h"

/* What the command line says. */
struct kubelet_flags {
	const char *config, *config_dir, *kubeconfig, *bootstrap_kubeconfig, *cert_dir, *root_dir, *hostname_override, *node_ip, *lock_file,
		*image_credential_provider_config, *image_credential_provider_bin_dir, *local_path_root, *api_servers_file;
	const char *const *node_labels;
	bool exit_on_lock_contention, pod_routes, seccomp_default, version;
	int64_t dead_per_container, dead_total, dead_min_age_ns;
	struct flag_settings settings; /* fields of KubeletConfiguration */
	struct runtime_flags runtime;
};

extern const struct flag kubelet_flags[];
extern const struct flag_field kubelet_fields[];

/*
 * From flags to what the kubelet runs with: checks with Kubernetes' texts, reads the configuration. The config is the caller's to release;
 * all else is in the flags or the arena. 0, or the exit code after a message.
 */
int kubelet_complete(const struct kubelet_flags *f, struct arena *a, struct kubelet_options *ret);

/* ---- kubelet_lock.c: only one kubelet of those that share a file ---- */

struct kubelet_lock {
	int fd, watch_fd;             /* -1: none */
};

/* Waits until the file is ours. Blocks. */
int kubelet_lock_take(struct kubelet_lock *l, const char *path, bool watch, struct err *err);
/* (suspends) Waits until another one wants it. */
int kubelet_lock_wait(struct kubelet_lock *l, struct err *err);
void kubelet_lock_release(struct kubelet_lock *l);

#endif
