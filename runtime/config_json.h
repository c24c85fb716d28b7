/*
 * config_json: what OCI is told: config.json of a sandbox's first process and of a container, from CRI's configuration and the image's.
 *
 *	config_json.c       the whole                  config_mounts.c    mounts, devices
 *	config_user.c       who it runs as             config_security.c  capabilities, seccomp
 *	config_apparmor.c   AppArmor's profile         config_selinux.c   SELinux' labels
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

/* SELinux' labels, of processes and of files; "": none. */
struct config_labels {
	str process, files;
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
	struct config_labels labels;
	struct val apparmor;             /* the profile, or VAL_NONE */
	pid_t target_pid;                /* whose PID namespace it shares; 0: the sandbox's */
	const char *const *image_mounts; /* where the images of config.mounts[i] are, NULL for the others */
};

/* (may block: it looks at files of the node) Free trees in the arena. */
int config_json_container(const struct config_input *in, struct arena *a, struct val *ret, struct err *err);
/* root: the pause image's; NULL: our own. args: VAL_NONE for our own. */
int config_json_sandbox(const struct sandbox *s, const char *root, struct val image, const struct config_labels *labels, struct arena *a,
			struct val *ret, struct err *err);
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

struct config_profile {
	enum { PROFILE_NONE, PROFILE_DEFAULT, PROFILE_UNCONFINED, PROFILE_LOCALHOST } kind;
	str ref;
};

/* A profile of CRI: the present form, or the old one: "runtime/default", "docker/default", "unconfined", "localhost/NAME". */
int config_profile_of(struct val now, str old, struct config_profile *ret, struct err *err);

/* The name of the profile; VAL_NONE: none. Errors are containerd's. */
int config_apparmor(struct val security, struct val *ret_profile, struct err *err);
/* (suspends) Before that: the kernel has the default profile, if this container needs it. */
int config_apparmor_load(struct runtime *r, struct val security, struct err *err);
/* The default profile, for apparmor_parser. abi: that knows version 3.0 of it; runtime: the profile of this process. */
void config_apparmor_text(struct buf *out, bool abi, str runtime);

/* The kernel has it, and a policy. */
bool config_selinux_on(void);
/* PodSandboxConfig with a level that no other pod has, unless it has one, or there is nothing to be labelled. */
struct val config_selinux_pod(struct runtime *r, struct arena *a, struct val config);
/* Labels by a container's SELinuxOption and its pod's (VAL_NONE: the container is the pod's first process). */
int config_selinux(struct arena *a, struct val own, struct val pod, struct config_labels *ret, struct err *err);
/* As containerd has it: s0, s0-s1, s0:c1, s0:c1,c2.c5 */
bool config_selinux_level_ok(str level);
/* (blocks) A file, or a folder with all that is in it; nothing happens without a label. */
int config_selinux_relabel(struct arena *a, str path, str label, struct err *err);

#endif
