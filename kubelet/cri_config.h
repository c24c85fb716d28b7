/*
 * cri_config: what the runtime is told about a pod and its containers (runtime.v1.PodSandboxConfig and ContainerConfig), made from the
 * objects. Pure but for the lookups, which suspend.
 */
#ifndef C8S_KUBELET_CRI_CONFIG_H
#define C8S_KUBELET_CRI_CONFIG_H

#include "kubelet/kubelet.h"

/* Where other objects come from; each returns VAL_NONE and -ERR_NOT_FOUND when there is none. What they return lives in the arena. */
struct cri_lookups {
	int (*config_map)(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err);
	int (*secret)(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err);
	struct val (*services)(void *arg, struct arena *a); /* list of core/v1.Service; VAL_NONE: not read yet */
	void *arg;
};

/* A mount that the volumes have made ready. */
struct cri_mount {
	str container_path, host_path;
	bool readonly, selinux_relabel, recursive_readonly;
	str propagation;              /* "PROPAGATION_PRIVATE", ... as CRI has them */
	struct val image;             /* of image volumes: ImageSpec; VAL_NONE: none */
	str image_sub_path;
	struct val uid_mappings, gid_mappings;
};

struct cri_container_input {
	struct val pod, container;
	unsigned attempt;
	str image_ref;                /* what the pull answered */
	str image_user;               /* of ImageStatus: user name or id, for runAsNonRoot */
	int64_t image_uid;            /* -1: not known */
	const struct cri_mount *mounts;
	size_t n_mounts;
	struct val pod_ips;           /* as status.podIPs: list of { ip }; for the downward API */
	str target_id;                /* of an ephemeral container: the container whose processes it sees */
	struct val devices, cdi_devices, extra_env; /* of device plugins: lists of Device, CDIDevice, KeyValue; VAL_NONE: none */
	struct val extra_annotations; /* of device plugins: a map of texts */
};

/*
 * (suspends) Both are typed trees, as if they had come from the wire, in the arena or shared with the pod. Errors are the messages that
 * follow "Failed to create pod sandbox: ". Neither touches a file: the log folder of the pod is the caller's to make.
 */
int sandbox_config_make(const struct kubelet_node *n, struct arena *a, struct val pod, unsigned attempt, struct val *ret, struct err *err);
/*
 * (suspends) On error *ret_reason is what the container's waiting state says: "CreateContainerConfigError" (with messages as in 1.36:
 * secret "x" not found, couldn't find key k in ConfigMap ns/name, container has runAsNonRoot and image will run as root ...).
 */
int container_config_make(const struct kubelet_node *n, const struct cri_lookups *l, struct arena *a, const struct cri_container_input *in,
			  struct val *ret, str *ret_reason, struct err *err);
/*
 * Makes what a container needs of files that are no volumes: the folder of its logs, <root>/pods/<uid>/etc-hosts, and a new, empty file
 * below containers/<name> for its termination message. Their mounts (0 to 2) go behind those of the volumes. Blocks for a few small
 * writes. Errors are those of CreateContainerConfigError.
 */
int container_files_make(const struct kubelet_node *n, struct arena *a, const struct cri_container_input *in, struct cri_mount ret[2],
			 size_t *ret_n, struct err *err);
/* Just runtime.v1.LinuxContainerResources, for updates in place. */
struct val container_resources_make(const struct kubelet_node *n, struct arena *a, struct val pod, struct val container);

/*
 * (suspends) The environment: list of runtime.v1.KeyValue, each key once; also what $(NAME) in commands, arguments and subPathExpr means.
 * In the order envFrom, env, services. As in 1.36, names are not looked at again: the API server has checked those of env, and those of
 * envFrom may be any.
 */
int container_env_make(const struct kubelet_node *n, const struct cri_lookups *l, struct arena *a, const struct cri_container_input *in,
		       struct val *ret, struct err *err);
/* $(NAME), $$ as Kubernetes expands them, by an environment as above. A text that would be larger than 16 MiB stays as it is. */
str env_expand(struct arena *a, str text, struct val env);

/* The downward API. A fieldRef's or resourceFieldRef's text; limits that are not given are those of the pod or the node. */
int pod_field_value(const struct kubelet_node *n, struct arena *a, struct val pod, struct val pod_ips, struct val selector, str *ret,
		    struct err *err);
int container_resource_value(const struct kubelet_node *n, struct arena *a, struct val pod, struct val container, struct val selector,
			     str *ret, struct err *err);

/* "<log_root>/<ns>_<name>_<uid>" and "<container>/<attempt>.log" below it. */
str pod_log_folder(const struct kubelet_node *n, struct arena *a, struct val pod);
str container_log_path(struct arena *a, str container, unsigned attempt);
/* Its host name (of at most 63 bytes) and, with spec.subdomain, "<subdomain>.<ns>.svc.<cluster domain>"; else "". */
int pod_hostname(const struct kubelet_node *n, struct arena *a, struct val pod, str *ret_hostname, str *ret_domain, struct err *err);
/* "/kubepods/burstable/pod<uid>", below the node's cgroup root. */
str pod_cgroup_parent(const struct kubelet_node *n, struct arena *a, struct val pod);
/* Of status, or computed. */
str pod_qos(struct val pod);
/* The number in the annotation io.kubernetes.container.hash: what a change of means that the container is made anew. */
uint32_t container_hash(struct val container);

#endif
