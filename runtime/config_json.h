/*
 * config_json: what OCI is told: config.json of a sandbox's first process and of a container, from CRI's configuration and the image's.
 *
 *	config_json.c       the whole                  config_mounts.c    mounts, devices
 *	config_user.c       who it runs as             config_security.c  capabilities, seccomp, AppArmor, SELinux
 *	config_resources.c  limits                     config_volumes.c   volumes that the image declares
 *	config_cdi.c        devices by CDI
 */
#ifndef C8S_RUNTIME_CONFIG_JSON_H
#define C8S_RUNTIME_CONFIG_JSON_H

#include "runtime/container.h"

struct config_user {
	uint32_t uid, gid;
	const uint32_t *groups;          /* sorted; in the arena */
	size_t n_groups;
};

/* What a container's configuration is made of. */
struct config_input {
	struct sandbox *sandbox;
	struct val config;               /* ContainerConfig */
	struct val image;                /* "config" of the OCI image configuration */
	str image_name;
	const char *id, *folder, *cgroup;
	const char *root;                /* the root file system, mounted */
	struct config_user user;
	pid_t target_pid;                /* whose PID namespace it shares; 0: the sandbox's */
	const char *const *image_mounts; /* where the images of config.mounts[i] are, NULL for the others */
};

/* (may block: it looks at files of the node) Free trees in the arena. */
int config_json_container(const struct config_input *in, struct arena *a, struct val *ret, struct err *err);
/* root: the pause image's; NULL: our own. args: VAL_NONE for our own. */
int config_json_sandbox(const struct sandbox *s, const char *root, struct val image, struct arena *a, struct val *ret, struct err *err);
/* The process of an exec, from the container's own. */
struct val config_json_exec(struct arena *a, struct val config_json, struct val args, bool terminal);

/* ---- parts ---- */

/*
 * From the image's /etc/passwd and /etc/group (root: a descriptor of its top), as containerd does it. security: the
 * container's (or sandbox's) security context; image_user: the image's User. Blocks.
 */
int config_user_find(int root, struct val security, str image_user, struct arena *a, struct config_user *ret, struct err *err);
struct val config_user_json(struct arena *a, const struct config_user *u);

/* linux.resources without devices, from LinuxContainerResources. */
struct val config_resources(struct arena *a, struct val resources);
/* What oom_score_adj it can have. */
int64_t config_oom_score_adj(int64_t wanted);

int config_mounts(const struct config_input *in, struct arena *a, struct val *ret_mounts, str *ret_propagation, struct err *err);
int config_devices(const struct config_input *in, struct arena *a, struct val *ret_devices, struct val *ret_rules, struct err *err);
/* Folders for the volumes that the image declares, filled with what the image has there. (blocks) Mounts of CRI's form. */
int config_volumes(const struct config_input *in, struct arena *a, struct val *ret_mounts, struct err *err);

/* What the CDI devices of the container change in the whole. Blocks. */
int config_cdi(const struct config_input *in, struct arena *a, struct val *config, struct err *err);

struct val config_capabilities(struct arena *a, struct val security);
/* VAL_NONE: none. */
int config_seccomp(struct arena *a, struct val security, struct val capabilities, struct val *ret, struct err *err);
int config_apparmor(struct arena *a, struct val security, struct val *ret_profile, struct err *err);
struct val config_selinux_label(struct arena *a, struct val options, bool of_files);

#endif
